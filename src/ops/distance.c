// Distances between rows (cdist, pdist) and their gradients; the cross product.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// A distance is a reduction over broadcast differences, which the compiler fuses without storing them; only the
// Euclidean one of many rows is a matrix product, on the same conditions as PyTorch.
#include <math.h>

#include "ops/common.h"

static hlo_t reduce_dim(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int dim) {
  const int64_t dims[] = {dim};
  return hlo_reduce(b, x, reducer, 1, dims);
}

// p-norm along the last dim.
static hlo_t last_norm(hlo_builder_t* b, hlo_t diff, double p) {
  int last = diff->rank - 1;
  if (diff->dims[last] == 0) return hlo_splat(b, diff->dtype, 0, last, diff->dims);
  if (p == 2.0) return hlo_sqrt(b, reduce_dim(b, hlo_multiply(b, diff, diff), HLO_R_ADD, last));
  if (p == 0.0) return reduce_dim(b, hlo_convert(b, hlo_convert(b, diff, TT_BOOL), diff->dtype), HLO_R_ADD, last);
  hlo_t a = hlo_abs(b, diff);
  if (p == 1.0) return reduce_dim(b, a, HLO_R_ADD, last);
  if (isinf(p)) return reduce_dim(b, a, HLO_R_MAX, last);
  hlo_t sum = reduce_dim(b, hlo_power(b, a, hlo_scalar(b, a->dtype, p)), HLO_R_ADD, last);
  return hlo_power(b, sum, hlo_scalar(b, a->dtype, 1.0 / p));
}

// Gradient of the distance with respect to each difference, times |grad|; all of one shape.
static hlo_t difference_grad(hlo_builder_t* b, hlo_t diff, hlo_t grad, hlo_t dist, double p) {
  hlo_t zero = hlo_scalar(b, diff->dtype, 0), one = hlo_scalar(b, diff->dtype, 1);
  if (p == 0.0) return hlo_zeros_like(b, diff);
  if (p == 1.0) return hlo_multiply(b, grad, hlo_sign(b, diff));
  hlo_t a = hlo_abs(b, diff);
  if (isinf(p)) {
    hlo_t attains = hlo_compare(b, HLO_EQ, a, dist);
    return hlo_select(b, attains, hlo_multiply(b, grad, hlo_sign(b, diff)), zero);
  }
  hlo_t flat = hlo_compare(b, HLO_EQ, dist, zero);
  // The divisor is made harmless where its quotient is not used.
  hlo_t safe = hlo_select(b, flat, one, dist);
  if (p == 2.0) return hlo_select(b, flat, zero, hlo_divide(b, hlo_multiply(b, grad, diff), safe));
  hlo_t power = hlo_scalar(b, diff->dtype, p - 1.0);
  if (p < 1.0) flat = hlo_or_(b, flat, hlo_compare(b, HLO_EQ, diff, zero));
  hlo_t slope = hlo_multiply(b, hlo_sign(b, diff), hlo_power(b, a, power));
  return hlo_select(b, flat, zero, hlo_divide(b, hlo_multiply(b, slope, grad), hlo_power(b, safe, power)));
}

// [..., P, M] and [..., R, M] to differences [..., P, R, M].
static hlo_t differences(hlo_builder_t* b, hlo_t x1, hlo_t x2) {
  return hlo_subtract(b, hlo_unsqueeze(b, x1, x1->rank - 1), hlo_unsqueeze(b, x2, x2->rank - 2));
}

// sqrt(|x1|^2 + |x2|^2 - 2 x1.x2), the form for many rows.
static hlo_t euclidean_by_product(hlo_builder_t* b, hlo_t x1, hlo_t x2) {
  hlo_t n1 = reduce_dim(b, hlo_multiply(b, x1, x1), HLO_R_ADD, x1->rank - 1);
  hlo_t n2 = reduce_dim(b, hlo_multiply(b, x2, x2), HLO_R_ADD, x2->rank - 1);
  hlo_t norms = hlo_add(b, hlo_unsqueeze(b, n1, n1->rank), hlo_unsqueeze(b, n2, n2->rank - 1));
  int64_t d1[TT_MAX_RANK], d2[TT_MAX_RANK];
  int rank = norms->rank;
  for (int i = 0; i < rank - 2; i++) d1[i] = d2[i] = norms->dims[i];
  for (int i = 1; i <= 2; i++) {
    d1[rank - i] = x1->dims[x1->rank - i];
    d2[rank - i] = x2->dims[x2->rank - i];
  }
  x1 = hlo_broadcast_to(b, x1, rank, d1);
  x2 = hlo_broadcast_to(b, x2, rank, d2);
  hlo_t products = hlo_matmul(b, x1, hlo_swap_dims(b, x2, rank - 1, rank - 2));
  hlo_t square = hlo_subtract(b, norms, hlo_multiply(b, hlo_scalar(b, x1->dtype, 2), products));
  return hlo_sqrt(b, hlo_maximum(b, square, hlo_scalar(b, x1->dtype, 0)));
}

// (x1, x2, p, compute_mode)
static void lower_cdist(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t x1 = tt_in_as(l, 0, math), x2 = tt_in_as(l, 1, math);
  if (x1->rank < 2 || x2->rank < 2) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "cdist only supports at least 2D tensors"));
    return;
  }
  double p = tt_f64(l, 2);
  int64_t mode = tt_int_or(l, 3, 0), rows1 = x1->dims[x1->rank - 2], rows2 = x2->dims[x2->rank - 2];
  bool by_product = p == 2.0 && (mode == 1 || (mode == 0 && (rows1 > 25 || rows2 > 25)));
  tt_ret(l, 0, by_product ? euclidean_by_product(b, x1, x2) : last_norm(b, differences(b, x1, x2), p));
}

// (x1, x2)
static void lower_euclidean(tt_lower_t* l) {
  tt_dtype_t math = tt_math_dtype(l, 0);
  tt_ret(l, 0, euclidean_by_product(tt_b(l), tt_in_as(l, 0, math), tt_in_as(l, 1, math)));
}

// Sums over the batch dims in which |x| is larger than the result expected.
static hlo_t sum_to_out(tt_lower_t* l, hlo_t x) {
  hlo_builder_t* b = tt_b(l);
  if (tt_out_count(l) == 0) return x;
  const tt_type_t* want = tt_out(l, 0);
  int64_t extra[TT_MAX_RANK];
  int n = 0, lead = x->rank - want->rank;
  for (int i = 0; i < x->rank; i++) {
    if (i < lead || want->dims[i - lead] != x->dims[i]) extra[n++] = i;
  }
  return n ? hlo_reshape(b, hlo_reduce(b, x, HLO_R_ADD, n, extra), want->rank, want->dims) : x;
}

// (grad, x1, x2, p, cdist): the gradient of x1, over the common batch.
static void lower_cdist_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t grad = tt_in_as(l, 0, math), dist = tt_in_as(l, 4, math);
  hlo_t diff = differences(b, tt_in_as(l, 1, math), tt_in_as(l, 2, math));
  grad = hlo_broadcast_to(b, hlo_unsqueeze(b, grad, grad->rank), diff->rank, diff->dims);
  dist = hlo_broadcast_to(b, hlo_unsqueeze(b, dist, dist->rank), diff->rank, diff->dims);
  hlo_t dx = difference_grad(b, diff, grad, dist, tt_f64(l, 3));
  tt_ret(l, 0, sum_to_out(l, reduce_dim(b, dx, HLO_R_ADD, dx->rank - 2)));
}

// Number of the first pair (i, i + 1) of row i among the pairs i < j of n rows in order: i (2n - i - 1) / 2.
static hlo_t pair_row_start(hlo_builder_t* b, hlo_t i, int64_t n) {
  hlo_t twice = hlo_multiply(b, i, hlo_subtract(b, hlo_scalar_int(b, TT_I64, 2 * n - 1), i));
  return hlo_shift_right_logical(b, twice, hlo_scalar_int(b, TT_I64, 1));
}

// (self, p): distances of the pairs i < j, row by row.
static void lower_pdist(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in_as(l, 0, tt_math_dtype(l, 0));
  int64_t n = x->rank == 2 ? x->dims[0] : 0, pairs = n > 1 ? n * (n - 1) / 2 : 0;
  if (pairs == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, 1, &pairs));
    return;
  }
  // Row of every pair: how many rows have begun by then. All but the last row begin somewhere.
  int64_t starts = n - 1;
  hlo_t i = hlo_iota(b, TT_I64, 1, &starts, 0);
  hlo_t marks = hlo_splat(b, TT_I64, 0, 1, &pairs), ones = hlo_splat(b, TT_I64, 1, 1, &starts);
  marks = hlo_put_along(b, marks, pair_row_start(b, i, n), ones, 0, HLO_R_ADD);
  hlo_t one = hlo_scalar_int(b, TT_I64, 1);
  hlo_t row = hlo_subtract(b, hlo_scan(b, marks, HLO_R_ADD, 0, false), one);
  hlo_t within = hlo_subtract(b, hlo_iota(b, TT_I64, 1, &pairs, 0), pair_row_start(b, row, n));
  hlo_t col = hlo_add(b, hlo_add(b, within, row), one);
  hlo_t diff = hlo_subtract(b, hlo_take(b, x, row, 0), hlo_take(b, x, col, 0));
  tt_ret(l, 0, last_norm(b, diff, tt_f64(l, 1)));
}

// Pair values [pairs] as a symmetric matrix [n, n] with zeros on the diagonal.
static hlo_t square_of_pairs(hlo_builder_t* b, hlo_t pairs, int64_t n) {
  const int64_t dims[] = {n, n};
  hlo_t i = hlo_iota(b, TT_I64, 2, dims, 0), j = hlo_iota(b, TT_I64, 2, dims, 1), one = hlo_scalar_int(b, TT_I64, 1);
  hlo_t lo = hlo_minimum(b, i, j), hi = hlo_maximum(b, i, j), diagonal = hlo_compare(b, HLO_EQ, i, j);
  hlo_t k = hlo_add(b, pair_row_start(b, lo, n), hlo_subtract(b, hlo_subtract(b, hi, lo), one));
  k = hlo_select(b, diagonal, hlo_scalar_int(b, TT_I64, 0), k);
  return hlo_select(b, diagonal, hlo_scalar(b, pairs->dtype, 0), hlo_take(b, pairs, k, 0));
}

// (grad, self, p, pdist)
static void lower_pdist_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t x = tt_in_as(l, 1, math);
  if (x->rank != 2 || x->dims[0] < 2 || x->dims[1] == 0) {
    tt_ret(l, 0, hlo_zeros_like(b, x));
    return;
  }
  int64_t n = x->dims[0];
  hlo_t grad = square_of_pairs(b, tt_in_as(l, 0, math), n), dist = square_of_pairs(b, tt_in_as(l, 3, math), n);
  hlo_t diff = differences(b, x, x);
  grad = hlo_broadcast_to(b, hlo_unsqueeze(b, grad, 2), 3, diff->dims);
  dist = hlo_broadcast_to(b, hlo_unsqueeze(b, dist, 2), 3, diff->dims);
  tt_ret(l, 0, reduce_dim(b, difference_grad(b, diff, grad, dist, tt_f64(l, 2)), HLO_R_ADD, 1));
}

// x rotated so that component (i + by) % 3 stands at i.
static hlo_t rotate3(hlo_builder_t* b, hlo_t x, int dim, int64_t by) {
  hlo_t parts[] = {hlo_slice_dim(b, x, dim, by, 3, 1), hlo_slice_dim(b, x, dim, 0, by, 1)};
  return hlo_concat(b, 2, parts, dim);
}

// (self, other, dim)
static void lower_cross(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t x = tt_in_as(l, 0, math), y = tt_in_as(l, 1, math);
  hlo_broadcast2(b, &x, &y);
  int dim = hlo_dim(b, tt_int(l, 2), x->rank);
  if (x->rank == 0 || x->dims[dim] != 3) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "linalg.cross: inputs dimension %d must have length 3", dim));
    return;
  }
  hlo_t plus = hlo_multiply(b, rotate3(b, x, dim, 1), rotate3(b, y, dim, 2));
  hlo_t minus = hlo_multiply(b, rotate3(b, x, dim, 2), rotate3(b, y, dim, 1));
  tt_ret(l, 0, hlo_subtract(b, plus, minus));
}

static const tt_op_row_t k_rows[] = {
    {.name = "_cdist_forward", .lower = lower_cdist, .fixed = TT_ARG(2)},
    {.name = "_cdist_backward", .lower = lower_cdist_backward, .fixed = TT_ARG(3)},
    {.name = "_euclidean_dist", .lower = lower_euclidean},
    {.name = "_pdist_forward", .lower = lower_pdist, .fixed = TT_ARG(1)},
    {.name = "_pdist_backward", .lower = lower_pdist_backward, .fixed = TT_ARG(2)},
    {.name = "linalg_cross", .lower = lower_cross},
};
TT_OP_FAMILY(distance, k_rows)
