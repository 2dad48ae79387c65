// Pooling whose windows follow from the output size (adaptive, fractional), and unpooling.
//
// Depends on: ops/pool.h.
// Threads: as op.h.
// Adaptive window o of |in| elements over |out| windows is [floor(o*in/out), ceil((o+1)*in/out)). The relation "window
// o covers element e" is symmetric in (o, out) and (e, in), so the backward pass is the same gather, turned around.
#include "ops/pool.h"

// Positions [out, widest] that each window covers and which of them are real; clamped into range.
static void adaptive_windows(hlo_builder_t* b, int64_t in, int64_t out, hlo_t* out_index, hlo_t* out_valid) {
  int64_t widest = 1;
  for (int64_t o = 0; o < out; o++) {
    int64_t width = ((o + 1) * in + out - 1) / out - o * in / out;
    if (width > widest) widest = width;
  }
  int64_t dims[] = {out, widest};
  hlo_t o = hlo_iota(b, TT_I64, 2, dims, 0), size = hlo_scalar_int(b, TT_I64, in), n = hlo_scalar_int(b, TT_I64, out);
  hlo_t start = hlo_divide(b, hlo_multiply(b, o, size), n);
  hlo_t next = hlo_multiply(b, hlo_add(b, o, hlo_scalar_int(b, TT_I64, 1)), size);
  hlo_t end = hlo_divide(b, hlo_add(b, next, hlo_scalar_int(b, TT_I64, out - 1)), n);
  hlo_t at = hlo_add(b, start, hlo_iota(b, TT_I64, 2, dims, 1));
  *out_valid = hlo_compare(b, HLO_LT, at, end);
  *out_index = hlo_convert(b, hlo_minimum(b, at, hlo_scalar_int(b, TT_I64, in - 1)), TT_I32);
}

// Elements of each window, f32/f64[out].
static hlo_t adaptive_count(hlo_builder_t* b, int64_t in, int64_t out, tt_dtype_t dtype) {
  hlo_t index, valid;
  static const int64_t one[] = {1};
  adaptive_windows(b, in, out, &index, &valid);
  return hlo_reduce(b, hlo_convert(b, valid, dtype), HLO_R_ADD, 1, one);
}

// x with dim |d| replaced by [out, widest]: the windows, |fill| where a window is narrower.
static hlo_t gather_windows(hlo_builder_t* b, hlo_t x, int d, int64_t out, hlo_t fill) {
  int64_t in = x->dims[d];
  if (in % out == 0) {
    int64_t dims[TT_MAX_RANK];
    for (int i = 0, k = 0; i < x->rank; i++) {
      dims[k++] = i == d ? out : x->dims[i];
      if (i == d) dims[k++] = in / out;
    }
    return hlo_reshape(b, x, x->rank + 1, dims);
  }
  hlo_t index, valid;
  int64_t map[] = {d, d + 1};
  adaptive_windows(b, in, out, &index, &valid);
  hlo_t windows = hlo_take(b, x, index, d);
  valid = hlo_broadcast_in_dim(b, valid, windows->rank, windows->dims, map);
  return hlo_select(b, valid, windows, fill);
}

// Sum of each adaptive window over the last |n| dims of x.
static hlo_t adaptive_sum(hlo_builder_t* b, hlo_t x, int n, const int64_t* out) {
  hlo_t zero = hlo_scalar(b, x->dtype, 0);
  int first = x->rank - n, left = n;
  int64_t dims[TT_POOL_MAX];
  for (int i = n - 1; i >= 0; i--) x = gather_windows(b, x, first + i, out[i], zero);
  for (int i = 0; i < n; i++) dims[i] = first + 2 * i + 1;
  return hlo_reduce(b, x, HLO_R_ADD, left, dims);
}

static hlo_t divide_by_counts(hlo_builder_t* b, hlo_t x, int n, const int64_t* in, const int64_t* out) {
  int64_t constant = 1;
  for (int i = 0; i < n; i++) {
    if (in[i] % out[i] == 0) constant *= in[i] / out[i];
    else x = hlo_divide(b, x, tt_along(b, adaptive_count(b, in[i], out[i], x->dtype), x, x->rank - n + i));
  }
  return constant == 1 ? x : hlo_divide(b, x, hlo_scalar_int(b, x->dtype, constant));
}

static bool any_zero(int n, const int64_t* sizes) {
  for (int i = 0; i < n; i++)
    if (sizes[i] <= 0) return true;
  return false;
}

static void with_last(hlo_t x, int n, const int64_t* sizes, int64_t dims[]) {
  for (int d = 0; d < x->rank; d++) dims[d] = d < x->rank - n ? x->dims[d] : sizes[d - (x->rank - n)];
}

// _adaptive_avg_poolNd(self, output_size); kind: dims.
static void lower_adaptive_avg(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n = tt_row(l)->kind;
  hlo_t x = tt_in_as(l, 0, tt_opmath(tt_in(l, 0)->dtype));
  const int64_t* in = x->dims + (x->rank - n);
  int64_t out[TT_POOL_MAX], dims[TT_MAX_RANK];
  tt_spatial(l, 1, n, NULL, out);
  with_last(x, n, out, dims);
  if (any_zero(n, out) || any_zero(n, in)) {
    tt_ret_like(l, 0, hlo_splat(b, x->dtype, 0, x->rank, dims), 0);
    return;
  }
  tt_ret_like(l, 0, divide_by_counts(b, adaptive_sum(b, x, n, out), n, in, out), 0);
}

// …_backward(grad_output, self): each element sums the shares of the windows that cover it.
static void lower_adaptive_avg_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n = tt_row(l)->kind;
  hlo_t x = tt_in(l, 1), g = tt_in_as(l, 0, tt_opmath(x->dtype));
  const int64_t *in = x->dims + (x->rank - n), *out = g->dims + (g->rank - n);
  if (any_zero(n, in) || any_zero(n, out)) {
    tt_ret_like(l, 0, hlo_splat(b, g->dtype, 0, x->rank, x->dims), 1);
    return;
  }
  g = divide_by_counts(b, g, n, in, out);
  for (int i = 0; i < n; i++) {
    int d = g->rank - n + i;
    int64_t over[] = {d + 1};
    if (in[i] % out[i] == 0) {  // every element is in one window
      int64_t wide[TT_MAX_RANK], map[TT_MAX_RANK], merged[TT_MAX_RANK];
      for (int k = 0; k < g->rank; k++) {
        map[k] = k > d ? k + 1 : k;
        wide[map[k]] = merged[k] = g->dims[k];
      }
      wide[d + 1] = in[i] / out[i];
      merged[d] = in[i];
      g = hlo_reshape(b, hlo_broadcast_in_dim(b, g, g->rank + 1, wide, map), g->rank, merged);
    } else {
      g = hlo_reduce(b, gather_windows(b, g, d, in[i], hlo_scalar(b, g->dtype, 0)), HLO_R_ADD, 1, over);
    }
  }
  tt_ret_like(l, 0, g, 1);
}

// adaptive_max_poolNd(self, output_size) -> (values, indices); kind: dims.
static void lower_adaptive_max(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n = tt_row(l)->kind;
  hlo_t x = tt_in(l, 0), pair[2] = {x, tt_plane_index(b, x, n)}, fill[2];
  int64_t out[TT_POOL_MAX], dims[TT_MAX_RANK];
  tt_spatial(l, 1, n, NULL, out);
  with_last(x, n, out, dims);
  if (any_zero(n, out) || hlo_numel(x) == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, x->rank, dims));
    tt_ret(l, 1, hlo_splat(b, TT_I64, 0, x->rank, dims));
    return;
  }
  fill[0] = hlo_lowest(b, x->dtype);
  fill[1] = hlo_highest(b, pair[1]->dtype);
  // Dim by dim: the winner of winners wins, ties go by index, and libtpu does not come to an end over all dims at once.
  for (int i = n - 1; i >= 0; i--) {
    int d = x->rank - n + i;
    const int64_t over = d + 1;
    hlo_t windows[2];
    for (int k = 0; k < 2; k++) windows[k] = gather_windows(b, pair[k], d, out[i], fill[k]);
    hlo_reduce_region(b, 2, windows, fill, 1, &over, tt_pool_max_region(b, x->dtype, fill[1]->dtype), pair);
  }
  tt_ret(l, 0, pair[0]);
  tt_ret(l, 1, hlo_convert(b, pair[1], TT_I64));
}

// adaptive_max_poolNd_backward(grad_output, self, indices)
static void lower_adaptive_max_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n = tt_row(l)->kind;
  hlo_t x = tt_in(l, 1), g = tt_in_as(l, 0, tt_opmath(x->dtype)), indices = tt_in(l, 2);
  tt_pool_t p = {.n = n};
  bool even = true;
  for (int i = 0; i < n; i++) {
    p.in[i] = x->dims[x->rank - n + i];
    p.out[i] = g->dims[g->rank - n + i];
    even = even && p.out[i] > 0 && p.in[i] % p.out[i] == 0;
    p.kernel[i] = p.stride[i] = even ? p.in[i] / p.out[i] : 1;
    p.dilation[i] = 1;
  }
  if (even && hlo_numel(x) > 0) tt_ret_like(l, 0, tt_max_pool_gradient(b, g, indices, &p), 1);
  else tt_ret_like(l, 0, tt_put_planes(b, g, indices, n, x->rank, x->dims, HLO_R_ADD), 1);
}

// ---------------------------------------------------------------- fractional max
// First position of each window, i32[planes, out], from samples[planes]: the last window ends at the input's end, the
// others are spaced by alpha = (in - kernel) / (out - 1), shifted by the sample.
static hlo_t fractional_starts(hlo_builder_t* b, hlo_t sample, int64_t in, int64_t out, int64_t kernel) {
  int64_t dims[] = {sample->dims[0], out};
  static const int64_t map[] = {0};
  hlo_t at = hlo_iota(b, TT_I32, 2, dims, 1), last = hlo_scalar_int(b, TT_I32, in - kernel);
  if (out == 1) return hlo_broadcast_to(b, last, 2, dims);
  hlo_t alpha = hlo_divide(b, hlo_scalar_int(b, sample->dtype, in - kernel), hlo_scalar_int(b, sample->dtype, out - 1));
  hlo_t s = hlo_broadcast_in_dim(b, sample, 2, dims, map);
  hlo_t moved = hlo_multiply(b, hlo_add(b, hlo_convert(b, at, s->dtype), s), alpha);
  hlo_t start = hlo_subtract(b, hlo_convert(b, moved, TT_I32), hlo_convert(b, hlo_multiply(b, s, alpha), TT_I32));
  return hlo_select(b, hlo_compare(b, HLO_EQ, at, hlo_scalar_int(b, TT_I32, out - 1)), last, start);
}

// fractional_max_poolNd(self, kernel, output_size, random_samples) -> (values, indices); kind: dims.
static void lower_fractional_max(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n = tt_row(l)->kind;
  hlo_t x = tt_in(l, 0), planes = tt_flat_planes(b, x, n), samples = tt_flat_planes(b, tt_in_as(l, 3, x->dtype), 1);
  samples = hlo_slice_dim(b, samples, 0, 0, planes->dims[0], 1);  // an input without batch uses the first of the batch
  samples = hlo_convert(b, samples, tt_opmath(x->dtype));
  int64_t kernel[TT_POOL_MAX], out[TT_POOL_MAX], dims[TT_MAX_RANK];
  tt_spatial(l, 1, n, NULL, kernel);
  tt_spatial(l, 2, n, NULL, out);
  // Positions [planes, o0, k0, o1, k1, …], flat in the plane.
  int64_t space[2 * TT_POOL_MAX + 1] = {planes->dims[0]}, step = 1;
  for (int i = 0; i < n; i++) space[1 + 2 * i] = out[i], space[2 + 2 * i] = kernel[i];
  hlo_t index = hlo_splat(b, TT_I32, 0, 2 * n + 1, space);
  for (int i = n - 1; i >= 0; i--) {
    int64_t in = x->dims[x->rank - n + i], map[] = {0, 1 + 2 * i};
    // Samples come in the order (width, height) in two dims and (depth, height, width) in three.
    int column = n == 2 ? 1 - i : i;
    int64_t one[] = {planes->dims[0]};
    hlo_t sample = hlo_reshape(b, hlo_slice_dim(b, samples, 1, column, column + 1, 1), 1, one);
    hlo_t start = fractional_starts(b, sample, in, out[i], kernel[i]);
    hlo_t at = hlo_add(b, hlo_broadcast_in_dim(b, start, 2 * n + 1, space, map),
                       hlo_iota(b, TT_I32, 2 * n + 1, space, 2 + 2 * i));
    index = hlo_add(b, index, hlo_multiply(b, at, hlo_scalar_int(b, TT_I32, step)));
    step *= in;
  }
  int64_t flat[] = {planes->dims[0], planes->dims[0] > 0 ? hlo_numel(index) / planes->dims[0] : 0};
  hlo_t values = hlo_take_along(b, planes, hlo_reshape(b, index, 2, flat), 1);
  hlo_t pair[2] = {hlo_reshape(b, values, 2 * n + 1, space), index}, result[2];
  hlo_t init[2] = {hlo_lowest(b, x->dtype), hlo_highest(b, TT_I32)};
  int64_t over[TT_POOL_MAX];
  for (int i = 0; i < n; i++) over[i] = 2 + 2 * i;
  hlo_reduce_region(b, 2, pair, init, n, over, tt_pool_max_region(b, x->dtype, TT_I32), result);
  with_last(x, n, out, dims);
  tt_ret(l, 0, hlo_reshape(b, result[0], x->rank, dims));
  tt_ret(l, 1, hlo_convert(b, hlo_reshape(b, result[1], x->rank, dims), TT_I64));
}

// …_backward(grad_output, self, kernel, output_size, indices)
static void lower_fractional_max_backward(tt_lower_t* l) {
  hlo_t x = tt_in(l, 1), g = tt_in_as(l, 0, tt_opmath(x->dtype));
  tt_ret_like(l, 0, tt_put_planes(tt_b(l), g, tt_in(l, 4), tt_row(l)->kind, x->rank, x->dims, HLO_R_ADD), 1);
}

// ---------------------------------------------------------------- unpooling
// max_unpoolNd(self, indices, output_size, …); kind: dims.
static void lower_max_unpool(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n = tt_row(l)->kind;
  hlo_t x = tt_in(l, 0), indices = tt_in(l, 1);
  int64_t out[TT_POOL_MAX], dims[TT_MAX_RANK], plane = 1;
  tt_spatial(l, 2, n, NULL, out);
  with_last(x, n, out, dims);
  for (int i = 0; i < n; i++) plane *= out[i];
  if (hlo_numel(x) == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, x->rank, dims));
    return;
  }
  hlo_t bad = hlo_compare(b, HLO_LT, indices, hlo_scalar_int(b, TT_I64, 0));
  bad = hlo_or_(b, bad, hlo_compare(b, HLO_GE, indices, hlo_scalar_int(b, TT_I64, plane)));
  hlo_t worst = hlo_select(b, bad, indices, hlo_lowest(b, TT_I64));
  tt_arena_t* arena = hlo_builder_arena(b);
  long long o0 = out[0], o1 = out[1], o2 = n == 3 ? out[2] : 0;
  const char* head = "Found an invalid max index: %lld (output volumes are of size";
  const char* message = n == 3 ? tt_arena_printf(arena, "%s %lldx%lldx%lld)", head, o0, o1, o2)
                               : tt_arena_printf(arena, "%s %lldx%lld)", head, o0, o1);
  tt_check(l, hlo_reduce_all(b, bad, HLO_R_OR), hlo_reduce_all(b, worst, HLO_R_MAX), TT_INVALID_ARGUMENT,
           message != NULL ? message : "Found an invalid max index: %lld");
  tt_ret(l, 0, tt_put_planes(b, x, indices, n, x->rank, dims, HLO_R_ASSIGN));
}

static const tt_op_row_t k_rows[] = {
    {.name = "_adaptive_avg_pool2d", .lower = lower_adaptive_avg, .kind = 2},
    {.name = "_adaptive_avg_pool3d", .lower = lower_adaptive_avg, .kind = 3},
    {.name = "_adaptive_avg_pool2d_backward", .lower = lower_adaptive_avg_backward, .kind = 2},
    {.name = "_adaptive_avg_pool3d_backward", .lower = lower_adaptive_avg_backward, .kind = 3},
    {.name = "adaptive_max_pool2d", .lower = lower_adaptive_max, .kind = 2},
    {.name = "adaptive_max_pool3d", .lower = lower_adaptive_max, .kind = 3},
    {.name = "adaptive_max_pool2d_backward", .lower = lower_adaptive_max_backward, .kind = 2},
    {.name = "adaptive_max_pool3d_backward", .lower = lower_adaptive_max_backward, .kind = 3},
    {.name = "fractional_max_pool2d", .lower = lower_fractional_max, .kind = 2},
    {.name = "fractional_max_pool3d", .lower = lower_fractional_max, .kind = 3},
    {.name = "fractional_max_pool2d_backward", .lower = lower_fractional_max_backward, .kind = 2},
    {.name = "fractional_max_pool3d_backward", .lower = lower_fractional_max_backward, .kind = 3,
     .flags = TT_OP_NO_META},
    {.name = "max_unpool2d", .lower = lower_max_unpool, .kind = 2, .flags = TT_OP_CHECKS},
    {.name = "max_unpool3d", .lower = lower_max_unpool, .kind = 3, .flags = TT_OP_CHECKS},
};
TT_OP_FAMILY(pool_adaptive, k_rows)
