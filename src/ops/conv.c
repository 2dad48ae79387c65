// Convolutions of one to three (or more) spatial dims, transposed ones, and their gradients.
//
// Depends on: ops/nn.h.
// Threads: as op.h.
// The three products of a convolution (output, input gradient, weight gradient) are each ONE plain convolution with its
// own strides, dilations and padding; a transposed convolution is the input gradient of a plain one. Sums are kept in
// f32 for halves. Where the device's compiler has no fast path for a case, the same convolution is written as a gather
// of patches and one product (|as_patches|).
#include "ops/nn.h"

#define MAX_SPATIAL (TT_MAX_RANK / 2 - 2)

// lhs [N, G*I, s…] * rhs [G*O, I, k…] -> [N, G*O, t…]
typedef struct conv_t {
  int n;  // spatial dims
  int64_t groups;
  int64_t stride[MAX_SPATIAL], lhs_dilation[MAX_SPATIAL], rhs_dilation[MAX_SPATIAL];
  int64_t lo[MAX_SPATIAL], hi[MAX_SPATIAL];
  bool few_samples;  // few samples, large kernels: the gradient of a first layer's weight
} conv_t;

static int64_t dilated(int64_t size, int64_t dilation) { return size == 0 ? 0 : (size - 1) * dilation + 1; }

// Size of spatial dim |i| of the result; 0 when the kernel does not fit.
static int64_t out_size(const conv_t* c, int i, int64_t lhs, int64_t rhs) {
  int64_t room = dilated(lhs, c->lhs_dilation[i]) + c->lo[i] + c->hi[i] - dilated(rhs, c->rhs_dilation[i]);
  return room < 0 ? 0 : room / c->stride[i] + 1;
}

static void out_dims(const conv_t* c, hlo_t lhs, hlo_t rhs, int64_t dims[]) {
  dims[0] = lhs->dims[0];
  dims[1] = rhs->dims[0];
  for (int i = 0; i < c->n; i++) dims[2 + i] = out_size(c, i, lhs->dims[2 + i], rhs->dims[2 + i]);
}

// Positions that output |o| reads with kernel element |k|: o * stride + k * dilation, as i32[out, kernel].
static hlo_t patch_index(hlo_builder_t* b, int64_t out, int64_t kernel, int64_t stride, int64_t dilation) {
  int64_t dims[] = {out, kernel};
  hlo_t o = hlo_multiply(b, hlo_iota(b, TT_I32, 2, dims, 0), hlo_scalar_int(b, TT_I32, stride));
  hlo_t k = hlo_multiply(b, hlo_iota(b, TT_I32, 2, dims, 1), hlo_scalar_int(b, TT_I32, dilation));
  return hlo_add(b, o, k);
}

// The convolution as a product of gathered patches: patches [N, G, I, t0, k0, t1, k1, …] with rhs [G, O, I, k…].
static hlo_t as_patches(tt_lower_t* l, hlo_t lhs, hlo_t rhs, const conv_t* c) {
  hlo_builder_t* b = tt_b(l);
  int64_t lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0}, interior[TT_MAX_RANK] = {0}, dims[TT_MAX_RANK];
  int64_t per_group = rhs->dims[1];
  for (int i = 0; i < c->n; i++) {
    lo[2 + i] = c->lo[i];
    hi[2 + i] = c->hi[i];
    interior[2 + i] = c->lhs_dilation[i] - 1;
  }
  int64_t result[TT_MAX_RANK];
  out_dims(c, lhs, rhs, result);
  hlo_t x = hlo_pad(b, lhs, hlo_scalar(b, lhs->dtype, 0), lo, hi, interior);
  for (int i = 0; i < c->n; i++)
    x = hlo_take(b, x, patch_index(b, result[2 + i], rhs->dims[2 + i], c->stride[i], c->rhs_dilation[i]), 2 + 2 * i);
  dims[0] = x->dims[0], dims[1] = c->groups, dims[2] = per_group;
  for (int d = 2; d < x->rank; d++) dims[d + 1] = x->dims[d];
  x = hlo_reshape(b, x, x->rank + 1, dims);
  int64_t w_dims[TT_MAX_RANK] = {c->groups, rhs->dims[0] / c->groups};
  for (int d = 1; d < rhs->rank; d++) w_dims[d + 1] = rhs->dims[d];
  hlo_t w = hlo_reshape(b, rhs, rhs->rank + 1, w_dims);
  int64_t batch_x[] = {1}, batch_w[] = {0}, contract_x[MAX_SPATIAL + 1] = {2}, contract_w[MAX_SPATIAL + 1] = {2};
  for (int i = 0; i < c->n; i++) {
    contract_x[i + 1] = 4 + 2 * i;
    contract_w[i + 1] = 3 + i;
  }
  hlo_t y = tt_dot(l, x, w, 1, batch_x, batch_w, c->n + 1, contract_x, contract_w);  // [G, N, t…, O]
  int64_t perm[TT_MAX_RANK] = {1, 0, y->rank - 1};
  for (int i = 0; i < c->n; i++) perm[3 + i] = 2 + i;
  return hlo_reshape(b, hlo_transpose(b, y, perm), c->n + 2, result);
}

// True when the compiler would leave its fast path, or has none.
static bool wants_patches(tt_lower_t* l, hlo_t lhs, hlo_t rhs, const conv_t* c) {
  tt_dtype_t d = lhs->dtype;
  if (!tt_is_float(d)) return true;
  if (!(tt_caps(l) & TT_CAP_SLOW_SMALL_CONV)) return false;
  if (d == TT_F64 || c->n > 3 || c->few_samples) return true;
  for (int i = 0; i < c->n; i++)
    if (dilated(rhs->dims[2 + i], c->rhs_dilation[i]) > lhs->dims[2 + i]) return true;
  return false;
}

// The convolution, accumulated in and returned as opmath dtype.
static hlo_t convolve(tt_lower_t* l, hlo_t lhs, hlo_t rhs, const conv_t* c) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t wide = tt_opmath(lhs->dtype);
  int64_t dims[TT_MAX_RANK];
  out_dims(c, lhs, rhs, dims);
  int64_t numel = hlo_numel(lhs) * hlo_numel(rhs);
  for (int d = 0; d < c->n + 2; d++) numel *= dims[d] > 0;
  if (numel == 0) return hlo_splat(b, wide, 0, c->n + 2, dims);
  if (wants_patches(l, lhs, rhs, c)) return as_patches(l, lhs, rhs, c);
  if (tt_caps(l) & TT_CAP_SLOW_SMALL_CONV) {  // its fast path is the one of f32
    lhs = hlo_convert(b, lhs, wide);
    rhs = hlo_convert(b, rhs, wide);
  }
  hlo_conv_t conv = {
      .n_spatial = c->n, .stride = c->stride, .pad_lo = c->lo, .pad_hi = c->hi, .lhs_dilation = c->lhs_dilation,
      .rhs_dilation = c->rhs_dilation, .feature_groups = c->groups, .lhs_batch = -1,
  };
  return hlo_convolution(b, lhs, rhs, &conv, wide);
}

// ---------------------------------------------------------------- the three products of a plain convolution
typedef struct plain_t {  // arguments of y = conv(x, w)
  int n;
  int64_t groups;
  int64_t stride[MAX_SPATIAL], padding[MAX_SPATIAL], dilation[MAX_SPATIAL];
} plain_t;

// |y_spatial|: the result's sizes, or NULL for as many as fit. A transposed convolution may have been padded by more than
// a stride, of which its gradient sees nothing.
static hlo_t forward(tt_lower_t* l, hlo_t x, hlo_t w, const plain_t* p, const int64_t* y_spatial) {
  conv_t c = {.n = p->n, .groups = p->groups};
  for (int i = 0; i < p->n; i++) {
    c.stride[i] = p->stride[i];
    c.lhs_dilation[i] = 1;
    c.rhs_dilation[i] = p->dilation[i];
    c.lo[i] = c.hi[i] = p->padding[i];
    if (y_spatial != NULL && y_spatial[i] > 0)
      c.hi[i] = (y_spatial[i] - 1) * p->stride[i] + dilated(w->dims[2 + i], p->dilation[i]) - x->dims[2 + i] - c.lo[i];
  }
  return convolve(l, x, w, &c);
}

// dx of spatial sizes |x_spatial|: g, spread by the stride, convolved with the flipped kernel.
static hlo_t input_gradient(tt_lower_t* l, hlo_t g, hlo_t w, const plain_t* p, const int64_t* x_spatial) {
  hlo_builder_t* b = tt_b(l);
  int64_t groups = p->groups, out = w->dims[0] / groups, in = w->dims[1];
  int64_t split[TT_MAX_RANK] = {groups, out, in}, perm[TT_MAX_RANK], merged[TT_MAX_RANK] = {groups * in, out};
  int64_t spatial[MAX_SPATIAL];
  conv_t c = {.n = p->n, .groups = groups};
  for (int i = 0; i < p->n; i++) {
    spatial[i] = 2 + i;
    split[3 + i] = merged[2 + i] = w->dims[2 + i];
    int64_t reach = p->dilation[i] * (w->dims[2 + i] - 1);
    c.stride[i] = 1;
    c.lhs_dilation[i] = p->stride[i];
    c.rhs_dilation[i] = p->dilation[i];
    c.lo[i] = reach - p->padding[i];
    c.hi[i] = x_spatial[i] + reach - c.lo[i] - dilated(g->dims[2 + i], p->stride[i]);
  }
  for (int d = 0; d < p->n + 3; d++) perm[d] = d;
  perm[1] = 2, perm[2] = 1;
  hlo_t flipped = hlo_transpose(b, hlo_reshape(b, w, p->n + 3, split), perm);
  flipped = hlo_reverse(b, hlo_reshape(b, flipped, p->n + 2, merged), p->n, spatial);
  return convolve(l, g, flipped, &c);
}

// dw of spatial sizes |w_spatial|: x convolved with g as the kernel, samples and channels exchanged.
static hlo_t weight_gradient(tt_lower_t* l, hlo_t x, hlo_t g, const plain_t* p, const int64_t* w_spatial) {
  hlo_builder_t* b = tt_b(l);
  int64_t batch = x->dims[0], groups = p->groups, in = groups > 0 ? x->dims[1] / groups : 0;
  // x [N, G, I, s…] becomes [I, G*N, s…]: sample index i, feature (g, n).
  int64_t split[TT_MAX_RANK] = {batch, groups, in}, perm[TT_MAX_RANK] = {2, 1, 0};
  int64_t merged[TT_MAX_RANK] = {in, groups * batch};
  conv_t c = {.n = p->n, .groups = groups};
  for (int i = 0; i < p->n; i++) {
    int64_t size = x->dims[2 + i];
    split[3 + i] = merged[2 + i] = size;
    perm[3 + i] = 3 + i;
    c.stride[i] = p->dilation[i];
    c.lhs_dilation[i] = 1;
    c.rhs_dilation[i] = p->stride[i];
    c.lo[i] = p->padding[i];
    c.hi[i] = dilated(w_spatial[i], p->dilation[i]) - 1 + dilated(g->dims[2 + i], p->stride[i]) - size - c.lo[i];
  }
  // There a product of patches is several times faster; not when they would take more than 256 MiB.
  int64_t patches = in * groups * batch;
  for (int i = 0; i < p->n; i++) patches *= w_spatial[i] * g->dims[2 + i];
  c.few_samples = in <= 4 && groups == 1 && patches <= (int64_t)1 << 26;
  hlo_t lhs = hlo_transpose(b, hlo_reshape(b, x, p->n + 3, split), perm);
  lhs = hlo_reshape(b, lhs, p->n + 2, merged);
  hlo_t rhs = hlo_swap_dims(b, g, 0, 1);                    // [G*O, N, t…]
  return hlo_swap_dims(b, convolve(l, lhs, rhs, &c), 0, 1);  // [I, G*O, k…] -> [G*O, I, k…]
}

// ---------------------------------------------------------------- rows
// Reads stride, padding, dilation and groups, the first at argument |at|: …, stride, padding, dilation, transposed,
// output_padding, groups.
static bool read_conv(tt_lower_t* l, int at, hlo_t x, plain_t* p) {
  static const int64_t zeros[MAX_SPATIAL] = {0};
  p->n = x->rank - 2;
  p->groups = tt_int(l, at + 5);
  if (p->n < 1 || p->n > MAX_SPATIAL || p->groups < 1) {
    hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "convolution: unsupported rank %d or groups", x->rank);
    return false;
  }
  tt_spatial(l, at, p->n, NULL, p->stride);
  tt_spatial(l, at + 1, p->n, zeros, p->padding);
  tt_spatial(l, at + 2, p->n, NULL, p->dilation);
  return true;
}

// [convolution, convolution_overrideable, _convolution](input, weight, bias, stride, padding, dilation, transposed,
// output_padding, groups, …)
static void lower_convolution(tt_lower_t* l) {
  static const int64_t zeros[MAX_SPATIAL] = {0};
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), w = tt_in(l, 1), y;
  plain_t p;
  if (!read_conv(l, 3, x, &p)) return;
  if (tt_bool(l, 6)) {
    int64_t extra[MAX_SPATIAL], spatial[MAX_SPATIAL];
    tt_spatial(l, 7, p.n, zeros, extra);
    for (int i = 0; i < p.n; i++) {
      int64_t reach = p.dilation[i] * (w->dims[2 + i] - 1);
      spatial[i] = (x->dims[2 + i] - 1) * p.stride[i] - 2 * p.padding[i] + reach + extra[i] + 1;
    }
    y = input_gradient(l, x, w, &p, spatial);
  } else {
    y = forward(l, x, w, &p, NULL);
  }
  if (tt_has(l, 2)) y = hlo_add(b, y, tt_along(b, tt_in_as(l, 2, y->dtype), y, 1));
  tt_ret_like(l, 0, y, 0);
}

// convolution_backward(grad_output, input, weight, [bias_sizes,] stride, padding, dilation, transposed, output_padding,
// groups, output_mask); row kind: position of stride.
static void lower_convolution_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = tt_in(l, 0), x = tt_in(l, 1), w = tt_in(l, 2);
  int at = tt_row(l)->kind, mask = at + 6;
  plain_t p;
  if (!read_conv(l, at, x, &p)) return;
  bool transposed = tt_bool(l, at + 3);
  tt_ret(l, 2, NULL);  // None unless asked for
  if (tt_mask_bit(l, mask, 0))
    tt_ret_like(l, 0, transposed ? forward(l, g, w, &p, x->dims + 2) : input_gradient(l, g, w, &p, x->dims + 2), 1);
  if (tt_mask_bit(l, mask, 1))
    tt_ret_like(l, 1, weight_gradient(l, transposed ? g : x, transposed ? x : g, &p, w->dims + 2), 2);
  if (tt_mask_bit(l, mask, 2)) {
    int64_t dims[TT_MAX_RANK] = {0};
    for (int i = 0; i < p.n; i++) dims[1 + i] = 2 + i;
    tt_ret_like(l, 2, hlo_reduce(b, hlo_convert(b, g, tt_opmath(g->dtype)), HLO_R_ADD, p.n + 1, dims), 2);
  }
}

// conv_tbc(self [T, B, I], weight [k, I, O], bias [O], pad)
static void lower_conv_tbc(tt_lower_t* l) {
  static const int64_t x_perm[] = {1, 2, 0}, w_perm[] = {2, 1, 0}, y_perm[] = {2, 0, 1};
  hlo_builder_t* b = tt_b(l);
  plain_t p = {.n = 1, .groups = 1, .stride = {1}, .padding = {tt_int(l, 3)}, .dilation = {1}};
  hlo_t y = forward(l, hlo_transpose(b, tt_in(l, 0), x_perm), hlo_transpose(b, tt_in(l, 1), w_perm), &p, NULL);
  tt_ret_like(l, 0, hlo_add(b, hlo_transpose(b, y, y_perm), tt_in_as(l, 2, y->dtype)), 0);
}

static const tt_op_row_t k_rows[] = {
    {.name = "convolution", .lower = lower_convolution},
    {.name = "_convolution", .lower = lower_convolution},
    {.name = "convolution_overrideable", .lower = lower_convolution, .flags = TT_OP_NO_META},
    {.name = "convolution_backward", .lower = lower_convolution_backward, .kind = 4},
    {.name = "convolution_backward_overrideable", .lower = lower_convolution_backward, .kind = 3,
     .flags = TT_OP_NO_META},
    {.name = "conv_tbc", .lower = lower_conv_tbc, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(conv, k_rows)
