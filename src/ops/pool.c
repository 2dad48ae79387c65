// Max and average pooling with fixed windows, forward and backward, in two and three dims.
//
// Depends on: ops/pool.h.
// Threads: as op.h.
#include "ops/pool.h"

// Overlapping windows beyond this many scatter in the backward pass instead of gathering.
#define MAX_GATHER_TERMS 64

static int64_t reach(const tt_pool_t* p, int i) { return p->dilation[i] * (p->kernel[i] - 1) + 1; }

static int64_t floor_div(int64_t a, int64_t n) { return a / n - (a % n != 0 && a < 0); }

// Reads kernel, stride and padding from argument |at| on, dilation after them when |dilated|, then ceil_mode.
static bool read_pool(tt_lower_t* l, int at, int n, bool dilated, hlo_t x, tt_pool_t* p) {
  static const int64_t zeros[TT_POOL_MAX] = {0}, ones[TT_POOL_MAX] = {1, 1, 1};
  p->n = n;
  tt_spatial(l, at, n, NULL, p->kernel);
  tt_spatial(l, at + 1, n, p->kernel, p->stride);
  tt_spatial(l, at + 2, n, zeros, p->padding);
  if (dilated) tt_spatial(l, at + 3, n, ones, p->dilation);
  bool ceil_mode = tt_bool(l, at + (dilated ? 4 : 3));
  if (x->rank < n) {
    hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "pooling: input of rank %d has no %d spatial dims", x->rank, n);
    return false;
  }
  for (int i = 0; i < n; i++) {
    if (!dilated) p->dilation[i] = 1;
    if (p->stride[i] <= 0 || p->kernel[i] <= 0 || p->dilation[i] <= 0) {
      hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "pooling: kernel, stride and dilation must be positive");
      return false;
    }
    int64_t size = p->in[i] = x->dims[x->rank - n + i];
    int64_t room = size + 2 * p->padding[i] - reach(p, i) + (ceil_mode ? p->stride[i] - 1 : 0);
    p->out[i] = floor_div(room, p->stride[i]) + 1;
    // The last window must start inside the input or its left padding.
    if (ceil_mode && (p->out[i] - 1) * p->stride[i] >= size + p->padding[i]) p->out[i]--;
  }
  return true;
}

static void with_spatial(hlo_t x, const tt_pool_t* p, const int64_t* spatial, int64_t dims[]) {
  for (int d = 0; d < x->rank; d++) dims[d] = x->dims[d];
  for (int i = 0; i < p->n; i++) dims[x->rank - p->n + i] = spatial[i];
}

typedef struct window_t {
  int64_t size[TT_MAX_RANK], stride[TT_MAX_RANK], base[TT_MAX_RANK], dilation[TT_MAX_RANK];
  int64_t lo[TT_MAX_RANK], hi[TT_MAX_RANK];
  hlo_window_t view;
} window_t;

static void plain_window(int rank, window_t* w) {
  for (int d = 0; d < rank; d++) {
    w->size[d] = w->stride[d] = w->base[d] = w->dilation[d] = 1;
    w->lo[d] = w->hi[d] = 0;
  }
  w->view = (hlo_window_t){.size = w->size, .stride = w->stride, .base_dilation = w->base,
                           .window_dilation = w->dilation, .pad_lo = w->lo, .pad_hi = w->hi};
}

static void forward_window(hlo_t x, const tt_pool_t* p, window_t* w) {
  plain_window(x->rank, w);
  for (int i = 0; i < p->n; i++) {
    int d = x->rank - p->n + i;
    int64_t end = (p->out[i] - 1) * p->stride[i] + reach(p, i) - p->padding[i];
    w->size[d] = p->kernel[i];
    w->stride[d] = p->stride[i];
    w->dilation[d] = p->dilation[i];
    w->lo[d] = p->padding[i];
    w->hi[d] = end > p->in[i] ? end - p->in[i] : 0;
  }
}

// ---------------------------------------------------------------- shared (pool.h)
hlo_region_t* tt_pool_max_region(hlo_builder_t* b, tt_dtype_t value, tt_dtype_t index) {
  hlo_region_t* region = hlo_region_begin(b);
  hlo_t v0 = hlo_region_arg(b, region, value, 0, NULL), i0 = hlo_region_arg(b, region, index, 0, NULL);
  hlo_t v1 = hlo_region_arg(b, region, value, 0, NULL), i1 = hlo_region_arg(b, region, index, 0, NULL);
  hlo_t take = hlo_compare(b, HLO_GT, v1, v0);
  hlo_t earlier = hlo_compare(b, HLO_LT, i1, i0);
  take = hlo_or_(b, take, hlo_and_(b, hlo_compare(b, HLO_EQ, v1, v0), earlier));
  if (tt_is_float(value)) {
    hlo_t nan0 = hlo_is_nan(b, v0), nan1 = hlo_is_nan(b, v1);
    take = hlo_and_(b, take, hlo_not_(b, nan0));
    take = hlo_or_(b, take, hlo_and_(b, nan1, hlo_or_(b, hlo_not_(b, nan0), hlo_not_(b, earlier))));
  }
  hlo_t out[2] = {hlo_select(b, take, v1, v0), hlo_select(b, take, i1, i0)};
  hlo_region_end(b, region, 2, out);
  return region;
}

hlo_t tt_plane_index(hlo_builder_t* b, hlo_t x, int n) {
  int64_t plane = 1;
  for (int d = x->rank - n; d < x->rank; d++) plane *= x->dims[d];
  tt_dtype_t dtype = plane < INT32_MAX ? TT_I32 : TT_I64;
  hlo_t index = NULL;
  int64_t step = 1;
  for (int d = x->rank - 1; d >= x->rank - n; d--) {
    hlo_t at = hlo_multiply(b, hlo_iota(b, dtype, x->rank, x->dims, d), hlo_scalar_int(b, dtype, step));
    index = index == NULL ? at : hlo_add(b, index, at);
    step *= x->dims[d];
  }
  return index != NULL ? index : hlo_fail(b, TT_INTERNAL, "plane of no dims");
}

hlo_t tt_put_planes(hlo_builder_t* b, hlo_t values, hlo_t indices, int n, int rank, const int64_t* dims,
                    hlo_reducer_t reducer) {
  hlo_t target = tt_flat_planes(b, hlo_splat(b, values->dtype, 0, rank, dims), n);
  hlo_t put = hlo_put_along(b, target, tt_flat_planes(b, indices, n), tt_flat_planes(b, values, n), 1, reducer);
  return hlo_reshape(b, put, rank, dims);
}

// Value of window floor((position + padding) / stride) - back[i] for every input position, |fill| where there is none.
static hlo_t spread(hlo_builder_t* b, hlo_t x, const tt_pool_t* p, const int64_t* back, hlo_t fill) {
  int64_t wide[TT_MAX_RANK], map[TT_MAX_RANK], merged[TT_MAX_RANK], lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0};
  int rank = 0, first = x->rank - p->n;
  for (int d = 0; d < x->rank; d++) {
    map[d] = rank;
    wide[rank++] = merged[d] = x->dims[d];
    if (d < first) continue;
    int i = d - first;
    wide[rank++] = p->stride[i];
    merged[d] *= p->stride[i];
    lo[d] = back[i] * p->stride[i] - p->padding[i];
    hi[d] = p->in[i] - merged[d] - lo[d];
  }
  x = hlo_reshape(b, hlo_broadcast_in_dim(b, x, rank, wide, map), first + p->n, merged);
  return hlo_pad(b, x, fill, lo, hi, NULL);
}

hlo_t tt_max_pool_gradient(hlo_builder_t* b, hlo_t grad, hlo_t indices, const tt_pool_t* p) {
  int64_t terms[TT_POOL_MAX], back[TT_POOL_MAX] = {0}, count = 1, dims[TT_MAX_RANK];
  for (int i = 0; i < p->n; i++) count *= terms[i] = (reach(p, i) + p->stride[i] - 1) / p->stride[i];
  with_spatial(grad, p, p->in, dims);
  if (count > MAX_GATHER_TERMS) return tt_put_planes(b, grad, indices, p->n, grad->rank, dims, HLO_R_ADD);
  hlo_t zero = hlo_scalar(b, grad->dtype, 0), sum = hlo_splat(b, grad->dtype, 0, grad->rank, dims);
  hlo_t here = tt_plane_index(b, sum, p->n), none = hlo_scalar_int(b, here->dtype, -1);
  indices = hlo_convert(b, indices, here->dtype);
  for (int64_t t = 0; t < count; t++) {
    int64_t rest = t;
    for (int i = 0; i < p->n; i++) {
      back[i] = rest % terms[i];
      rest /= terms[i];
    }
    hlo_t mine = hlo_compare(b, HLO_EQ, spread(b, indices, p, back, none), here);
    hlo_t part = hlo_select(b, mine, spread(b, grad, p, back, zero), zero);
    sum = t == 0 ? part : hlo_add(b, sum, part);
  }
  return sum;
}

// ---------------------------------------------------------------- max
// [max_pool2d_with_indices, max_pool3d_with_indices](self, kernel, stride, padding, dilation, ceil_mode); kind: dims.
static void lower_max_pool(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  tt_pool_t p;
  if (!read_pool(l, 1, tt_row(l)->kind, true, x, &p)) return;
  int64_t dims[TT_MAX_RANK];
  with_spatial(x, &p, p.out, dims);
  hlo_t index = tt_plane_index(b, x, p.n);
  hlo_t in[2] = {x, index}, out[2], init[2] = {hlo_lowest(b, x->dtype), hlo_highest(b, index->dtype)};
  if (hlo_numel(x) == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, x->rank, dims));
    tt_ret(l, 1, hlo_splat(b, TT_I64, 0, x->rank, dims));
    return;
  }
  window_t w;
  forward_window(x, &p, &w);
  hlo_reduce_window_region(b, 2, in, init, &w.view, tt_pool_max_region(b, x->dtype, index->dtype), out);
  tt_ret(l, 0, out[0]);
  tt_ret(l, 1, hlo_convert(b, out[1], TT_I64));
}

// …_backward(grad_output, self, kernel, stride, padding, dilation, ceil_mode, indices)
static void lower_max_pool_backward(tt_lower_t* l) {
  hlo_t x = tt_in(l, 1);
  tt_pool_t p;
  if (!read_pool(l, 2, tt_row(l)->kind, true, x, &p)) return;
  tt_ret_like(l, 0, tt_max_pool_gradient(tt_b(l), tt_in_as(l, 0, tt_opmath(x->dtype)), tt_in(l, 7), &p), 1);
}

// ---------------------------------------------------------------- average
// Elements that the average of each window is over along spatial dim |i|, as i64[out]; NULL when all are kernel[i].
static hlo_t window_count(hlo_builder_t* b, const tt_pool_t* p, int i, bool include_pad) {
  int64_t last_end = (p->out[i] - 1) * p->stride[i] - p->padding[i] + p->kernel[i];
  int64_t lo = include_pad ? -p->padding[i] : 0, hi = include_pad ? p->in[i] + p->padding[i] : p->in[i];
  if (-p->padding[i] >= lo && last_end <= hi) return NULL;
  int64_t dims[] = {p->out[i]};
  hlo_t start = hlo_multiply(b, hlo_iota(b, TT_I64, 1, dims, 0), hlo_scalar_int(b, TT_I64, p->stride[i]));
  start = hlo_subtract(b, start, hlo_scalar_int(b, TT_I64, p->padding[i]));
  hlo_t end = hlo_add(b, start, hlo_scalar_int(b, TT_I64, p->kernel[i]));
  end = hlo_minimum(b, end, hlo_scalar_int(b, TT_I64, hi));
  start = hlo_maximum(b, start, hlo_scalar_int(b, TT_I64, lo));
  return hlo_maximum(b, hlo_subtract(b, end, start), hlo_scalar_int(b, TT_I64, 1));
}

// x (in output dims) divided by each window's divisor. |at|: argument number of count_include_pad.
static hlo_t divide_by_count(tt_lower_t* l, hlo_t x, const tt_pool_t* p, int at) {
  hlo_builder_t* b = tt_b(l);
  if (tt_has(l, at + 1)) return hlo_divide(b, x, hlo_scalar_int(b, x->dtype, tt_int(l, at + 1)));
  hlo_t divisor = NULL;
  int64_t constant = 1;
  for (int i = 0; i < p->n; i++) {
    hlo_t count = window_count(b, p, i, tt_bool(l, at));
    if (count == NULL) {
      constant *= p->kernel[i];
      continue;
    }
    count = tt_along(b, hlo_convert(b, count, x->dtype), x, x->rank - p->n + i);
    divisor = divisor == NULL ? count : hlo_multiply(b, divisor, count);
  }
  hlo_t rest = hlo_scalar_int(b, x->dtype, constant);
  return hlo_divide(b, x, divisor == NULL ? rest : hlo_multiply(b, divisor, rest));
}

// avg_poolNd(self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override); kind: dims.
static void lower_avg_pool(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in_as(l, 0, tt_opmath(tt_in(l, 0)->dtype));
  tt_pool_t p;
  if (!read_pool(l, 1, tt_row(l)->kind, false, x, &p)) return;
  window_t w;
  forward_window(x, &p, &w);
  hlo_t sum = hlo_reduce_window(b, x, hlo_scalar(b, x->dtype, 0), HLO_R_ADD, &w.view);
  tt_ret_like(l, 0, divide_by_count(l, sum, &p, 5), 0);
}

// …_backward(grad_output, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
static void lower_avg_pool_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  static const int64_t none_back[TT_POOL_MAX] = {0};
  hlo_t x = tt_in(l, 1), g = tt_in_as(l, 0, tt_opmath(x->dtype)), zero = hlo_scalar(b, g->dtype, 0);
  tt_pool_t p;
  if (!read_pool(l, 2, tt_row(l)->kind, false, x, &p)) return;
  g = divide_by_count(l, g, &p, 6);
  bool tiles = true;
  for (int i = 0; i < p.n; i++) tiles &= p.kernel[i] == p.stride[i];
  if (tiles) {
    tt_ret_like(l, 0, spread(b, g, &p, none_back, zero), 1);
    return;
  }
  // Input position q is in window o when 0 <= q + padding - o * stride < kernel: a sum over the spread-out gradient.
  window_t w;
  plain_window(g->rank, &w);
  for (int i = 0; i < p.n; i++) {
    int d = g->rank - p.n + i;
    w.size[d] = p.kernel[i];
    w.base[d] = p.stride[i];
    w.lo[d] = p.kernel[i] - 1 - p.padding[i];
    w.hi[d] = p.in[i] + p.padding[i] - ((p.out[i] - 1) * p.stride[i] + 1);
  }
  tt_ret_like(l, 0, hlo_reduce_window(b, g, zero, HLO_R_ADD, &w.view), 1);
}

static const tt_op_row_t k_rows[] = {
    {.name = "max_pool2d_with_indices", .lower = lower_max_pool, .kind = 2},
    {.name = "max_pool3d_with_indices", .lower = lower_max_pool, .kind = 3},
    {.name = "max_pool2d_with_indices_backward", .lower = lower_max_pool_backward, .kind = 2},
    {.name = "max_pool3d_with_indices_backward", .lower = lower_max_pool_backward, .kind = 3},
    {.name = "avg_pool2d", .lower = lower_avg_pool, .kind = 2},
    {.name = "avg_pool3d", .lower = lower_avg_pool, .kind = 3},
    {.name = "avg_pool2d_backward", .lower = lower_avg_pool_backward, .kind = 2},
    {.name = "avg_pool3d_backward", .lower = lower_avg_pool_backward, .kind = 3},
};
TT_OP_FAMILY(pool, k_rows)
