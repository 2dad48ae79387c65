// Layer, group and root-mean-square normalisation, forward and backward. (Batch normalisation: batch_norm.c.)
//
// Depends on: ops/nn.h.
// Threads: as op.h.
// Arithmetic is in f32 for halves. With d the normalised elements of one statistic, x^ = (x - mean) * rstd and a the
// gradient times the weight, all three input gradients are rstd * (a - mean_d(a) - x^ * mean_d(a * x^)), where the
// middle term is absent for the root-mean-square form.
#include <float.h>
#include "ops/nn.h"

static hlo_t mean_over(hlo_builder_t* b, hlo_t x, int n, const int64_t* dims) {
  hlo_t sum = hlo_reduce(b, x, HLO_R_ADD, n, dims);
  return tt_over(b, hlo_divide(b, sum, hlo_scalar(b, x->dtype, (double)tt_count_over(x, n, dims))), x, n, dims);
}

// The input gradient above; |rstd| has x^'s dims.
static hlo_t centred_gradient(hlo_builder_t* b, hlo_t a, hlo_t xhat, hlo_t rstd, int n, const int64_t* dims,
                              bool centre) {
  hlo_t rest = hlo_multiply(b, xhat, mean_over(b, hlo_multiply(b, a, xhat), n, dims));
  hlo_t dx = hlo_subtract(b, a, rest);
  if (centre) dx = hlo_subtract(b, dx, mean_over(b, a, n, dims));
  return hlo_multiply(b, dx, rstd);
}

static hlo_t inverse_std(hlo_builder_t* b, hlo_t var, hlo_t eps) { return hlo_rsqrt(b, hlo_add(b, var, eps)); }

// The last dims that int list |arg| names by their sizes; returns how many.
static int last_dims(tt_lower_t* l, int arg, hlo_t x, int64_t dims[]) {
  int n = 0;
  tt_ints(l, arg, &n);
  if (n < 1 || n > x->rank) {
    hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "normalized_shape has %d dims, the input %d", n, x->rank);
    n = x->rank;
  }
  for (int i = 0; i < n; i++) dims[i] = x->rank - n + i;
  return n;
}

// |v| (x without its last |n| dims) as a statistic of rank x.rank with ones for those dims.
static hlo_t keep_ones(hlo_builder_t* b, hlo_t v, hlo_t x, int n) {
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d < x->rank; d++) dims[d] = d < x->rank - n ? x->dims[d] : 1;
  return hlo_reshape(b, v, x->rank, dims);
}

// Sum over all but the last |n| dims: a gradient of weight or bias.
static hlo_t sum_leading(hlo_builder_t* b, hlo_t x, int n) {
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d < x->rank - n; d++) dims[d] = d;
  return hlo_reduce(b, x, HLO_R_ADD, x->rank - n, dims);
}

// native_layer_norm(input, normalized_shape, weight, bias, eps) -> (out, mean, rstd)
static void lower_layer_norm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_math_dtype(l, 0);
  hlo_t x = tt_in_as(l, 0, d), mean, var;
  int64_t dims[TT_MAX_RANK];
  int n = last_dims(l, 1, x, dims);
  tt_moments(b, x, n, dims, &mean, &var);
  hlo_t rstd = inverse_std(b, var, tt_scalar(l, 4, d));
  hlo_t y = hlo_multiply(b, hlo_subtract(b, x, tt_over(b, mean, x, n, dims)), tt_over(b, rstd, x, n, dims));
  if (tt_has(l, 2)) y = hlo_multiply(b, y, tt_in_as(l, 2, d));
  if (tt_has(l, 3)) y = hlo_add(b, y, tt_in_as(l, 3, d));
  tt_ret_like(l, 0, y, 0);
  tt_ret(l, 1, keep_ones(b, mean, x, n));
  tt_ret(l, 2, keep_ones(b, rstd, x, n));
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, mask)
static void lower_layer_norm_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 1)->dtype);
  hlo_t g = tt_in_as(l, 0, d), x = tt_in_as(l, 1, d), rstd = tt_like(b, tt_in_as(l, 4, d), x);
  int64_t dims[TT_MAX_RANK];
  int n = last_dims(l, 2, x, dims);
  hlo_t xhat = hlo_multiply(b, hlo_subtract(b, x, tt_in_as(l, 3, d)), rstd);
  tt_ret(l, 2, NULL);  // None unless asked for
  if (tt_mask_bit(l, 7, 0)) {
    hlo_t a = tt_has(l, 5) ? hlo_multiply(b, g, tt_in_as(l, 5, d)) : g;
    tt_ret_like(l, 0, centred_gradient(b, a, xhat, rstd, n, dims, true), 1);
  }
  if (tt_mask_bit(l, 7, 1) && tt_has(l, 5)) tt_ret_like(l, 1, sum_leading(b, hlo_multiply(b, g, xhat), n), 5);
  if (tt_mask_bit(l, 7, 2) && tt_has(l, 6)) tt_ret_like(l, 2, sum_leading(b, g, n), 6);
}

// _fused_rms_norm(input, normalized_shape, weight, eps) -> (out, rstd)
static void lower_rms_norm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t x = tt_in_as(l, 0, d);
  int64_t dims[TT_MAX_RANK];
  int n = last_dims(l, 1, x, dims);
  hlo_t eps = tt_has(l, 3) ? tt_scalar(l, 3, d) : hlo_scalar(b, d, d == TT_F64 ? DBL_EPSILON : (double)FLT_EPSILON);
  hlo_t square = hlo_reduce(b, hlo_multiply(b, x, x), HLO_R_ADD, n, dims);
  square = hlo_divide(b, square, hlo_scalar(b, d, (double)tt_count_over(x, n, dims)));
  hlo_t rstd = inverse_std(b, square, eps);
  hlo_t y = hlo_multiply(b, x, tt_over(b, rstd, x, n, dims));
  if (tt_has(l, 2)) y = hlo_multiply(b, y, tt_in_as(l, 2, d));
  tt_ret_like(l, 0, y, 0);
  tt_ret(l, 1, keep_ones(b, rstd, x, n));
}

// _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, mask)
static void lower_rms_norm_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 1)->dtype);
  hlo_t g = tt_in_as(l, 0, d), x = tt_in_as(l, 1, d), rstd = tt_like(b, tt_in_as(l, 3, d), x);
  int64_t dims[TT_MAX_RANK];
  int n = last_dims(l, 2, x, dims);
  hlo_t xhat = hlo_multiply(b, x, rstd);
  tt_ret(l, 1, NULL);
  if (tt_mask_bit(l, 5, 0)) {
    hlo_t a = tt_has(l, 4) ? hlo_multiply(b, g, tt_in_as(l, 4, d)) : g;
    tt_ret_like(l, 0, centred_gradient(b, a, xhat, rstd, n, dims, false), 1);
  }
  if (tt_mask_bit(l, 5, 1) && tt_has(l, 4)) tt_ret_like(l, 1, sum_leading(b, hlo_multiply(b, g, xhat), n), 4);
}

// ---------------------------------------------------------------- group norm
typedef struct groups_t {
  int64_t dims[4];   // [N, G, C/G, HxW]
  int64_t flat[1];   // [C]
} groups_t;

static const int64_t k_group[] = {2, 3};

// Reads N, C, HxW and group from argument |at| on.
static groups_t read_groups(tt_lower_t* l, int at) {
  int64_t n = tt_int(l, at), c = tt_int(l, at + 1), hw = tt_int(l, at + 2), g = tt_int(l, at + 3);
  if (g < 1 || c % g != 0) {
    hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "group norm: %lld channels do not divide into %lld groups", (long long)c,
             (long long)g);
    g = 1;
  }
  return (groups_t){.dims = {n, g, c / g, hw}, .flat = {c}};
}

static hlo_t per_channel(hlo_builder_t* b, hlo_t v, const groups_t* s) {
  static const int64_t map[] = {1, 2};
  return hlo_broadcast_in_dim(b, hlo_reshape(b, v, 2, s->dims + 1), 4, s->dims, map);
}

static hlo_t per_group(hlo_builder_t* b, hlo_t v, const groups_t* s) {
  static const int64_t map[] = {0, 1};
  return hlo_broadcast_in_dim(b, hlo_reshape(b, v, 2, s->dims), 4, s->dims, map);
}

static hlo_t channel_sum(hlo_builder_t* b, hlo_t x, const groups_t* s) {
  static const int64_t dims[] = {0, 3};
  return hlo_reshape(b, hlo_reduce(b, x, HLO_R_ADD, 2, dims), 1, s->flat);
}

// native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> (out, mean, rstd)
static void lower_group_norm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_math_dtype(l, 0);
  hlo_t in = tt_in_as(l, 0, d), mean, var;
  groups_t s = read_groups(l, 3);
  hlo_t x = hlo_reshape(b, in, 4, s.dims);
  tt_moments(b, x, 2, k_group, &mean, &var);
  hlo_t rstd = inverse_std(b, var, tt_scalar(l, 7, d));
  hlo_t y = hlo_multiply(b, hlo_subtract(b, x, per_group(b, mean, &s)), per_group(b, rstd, &s));
  if (tt_has(l, 1)) y = hlo_multiply(b, y, per_channel(b, tt_in_as(l, 1, d), &s));
  if (tt_has(l, 2)) y = hlo_add(b, y, per_channel(b, tt_in_as(l, 2, d), &s));
  tt_ret_like(l, 0, hlo_reshape(b, y, in->rank, in->dims), 0);
  tt_ret(l, 1, mean);
  tt_ret(l, 2, rstd);
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, mask)
static void lower_group_norm_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 1);
  tt_dtype_t d = tt_opmath(in->dtype);
  groups_t s = read_groups(l, 5);
  hlo_t g = hlo_reshape(b, tt_in_as(l, 0, d), 4, s.dims), x = hlo_reshape(b, tt_in_as(l, 1, d), 4, s.dims);
  hlo_t rstd = per_group(b, tt_in_as(l, 3, d), &s);
  hlo_t xhat = hlo_multiply(b, hlo_subtract(b, x, per_group(b, tt_in_as(l, 2, d), &s)), rstd);
  tt_ret(l, 2, NULL);
  if (tt_mask_bit(l, 9, 0)) {
    hlo_t a = tt_has(l, 4) ? hlo_multiply(b, g, per_channel(b, tt_in_as(l, 4, d), &s)) : g;
    tt_ret_like(l, 0, hlo_reshape(b, centred_gradient(b, a, xhat, rstd, 2, k_group, true), in->rank, in->dims), 1);
  }
  if (tt_mask_bit(l, 9, 1)) tt_ret(l, 1, channel_sum(b, hlo_multiply(b, g, xhat), &s));
  if (tt_mask_bit(l, 9, 2)) tt_ret(l, 2, channel_sum(b, g, &s));
}

static const tt_op_row_t k_rows[] = {
    {.name = "native_layer_norm", .lower = lower_layer_norm},
    {.name = "native_layer_norm_backward", .lower = lower_layer_norm_backward},
    {.name = "_fused_rms_norm", .lower = lower_rms_norm},
    {.name = "_fused_rms_norm_backward", .lower = lower_rms_norm_backward},
    {.name = "native_group_norm", .lower = lower_group_norm},
    {.name = "native_group_norm_backward", .lower = lower_group_norm_backward},
};
TT_OP_FAMILY(norm, k_rows)
