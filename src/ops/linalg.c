// Linear algebra, shared blocks and the direct solvers: LU, Cholesky, triangular systems, determinants.
//
// Depends on: ops/linalg.h, ops/common.h, ops/lower.h (the caller's strides).
// Threads: as op.h (a lowering runs on one thread).
#include "ops/common.h"
#include "ops/linalg.h"
#include "ops/lower.h"

// ---------------------------------------------------------------- reading and writing
hlo_t la_flat(hlo_builder_t* b, hlo_t x) {
  if (x->rank < 2) return hlo_fail(b, TT_INVALID_ARGUMENT, "expected a matrix or a batch of matrices");
  int64_t batch = 1;
  for (int i = 0; i < x->rank - 2; i++) batch *= x->dims[i];
  return hlo_reshape(b, x, 3, (const int64_t[]){batch, x->dims[x->rank - 2], x->dims[x->rank - 1]});
}

hlo_t la_in(tt_lower_t* l, int i) {
  hlo_t x = tt_in(l, i);
  return la_flat(tt_b(l), hlo_convert(tt_b(l), x, tt_opmath(x->dtype)));
}

void la_ret(tt_lower_t* l, int i, hlo_t x) {
  const tt_type_t* type = tt_out(l, i);
  tt_ret(l, i, hlo_reshape(tt_b(l), x, type->rank, type->dims));
}

void la_order_columns(tt_lower_t* l, int i, int rank) {
  int order[TT_MAX_RANK];
  for (int d = 0; d < rank - 2; d++) order[d] = d;
  order[rank - 2] = rank - 1;
  order[rank - 1] = rank - 2;
  tt_ret_order(l, i, order);
}

void la_ret_columns(tt_lower_t* l, int i, hlo_t x) {
  la_ret(l, i, x);
  la_order_columns(l, i, tt_out(l, i)->rank);
}

void la_ret_zeros(tt_lower_t* l, int i) {
  const tt_type_t* type = tt_out(l, i);
  tt_dtype_t dtype = type->dtype == TT_DT_NONE ? TT_I32 : type->dtype;  // a result that nobody looks at has none
  tt_ret(l, i, hlo_splat(tt_b(l), dtype, 0, type->rank, type->dims));
}

hlo_t la_batch_to(hlo_builder_t* b, hlo_t x, int core, int rank, const int64_t* batch) {
  int64_t dims[TT_MAX_RANK], flat[3] = {1, 1, 1};
  for (int i = 0; i < rank; i++) flat[0] *= dims[i] = batch[i];
  for (int i = 0; i < core; i++) flat[i + 1] = dims[rank + i] = x->dims[x->rank - core + i];
  return hlo_reshape(b, hlo_broadcast_to(b, x, rank + core, dims), core + 1, flat);
}

bool la_contiguous(tt_lower_t* l, int i) {
  const tt_value_t* v = &l->args[i].v;
  if (v->kind != TT_V_TENSOR || v->u.tensor == NULL || v->u.tensor->strides == NULL) return true;
  const tt_tensor_t* t = v->u.tensor;
  int64_t expected = 1;
  for (int d = t->rank - 1; d >= 0; d--) {
    if (t->sizes[d] == 0) return true;
    if (t->sizes[d] != 1 && t->strides[d] != expected) return false;
    expected *= t->sizes[d];
  }
  return true;
}

// ---------------------------------------------------------------- elements
hlo_t la_int(hlo_builder_t* b, int64_t v) { return hlo_scalar_int(b, TT_I64, v); }
hlo_t la_rows(hlo_builder_t* b, hlo_t x) { return hlo_iota(b, TT_I64, x->rank, x->dims, x->rank - 2); }
hlo_t la_cols(hlo_builder_t* b, hlo_t x) { return hlo_iota(b, TT_I64, x->rank, x->dims, x->rank - 1); }

hlo_t la_conj(hlo_builder_t* b, hlo_t x) {
  return tt_is_complex(x->dtype) ? hlo_complex(b, hlo_real(b, x), hlo_negate(b, hlo_imag(b, x))) : x;
}
hlo_t la_adjoint(hlo_builder_t* b, hlo_t x) { return la_conj(b, hlo_swap_dims(b, x, 1, 2)); }

hlo_t la_eye(hlo_builder_t* b, tt_dtype_t dtype, int64_t batch, int64_t rows, int64_t cols) {
  const int64_t dims[3] = {batch, rows, cols};
  hlo_t same = hlo_compare(b, HLO_EQ, hlo_iota(b, TT_I64, 3, dims, 1), hlo_iota(b, TT_I64, 3, dims, 2));
  return hlo_convert(b, same, dtype);
}

hlo_t la_triangle(hlo_builder_t* b, hlo_t x, bool lower, int64_t k) {
  hlo_t bound = hlo_add(b, la_cols(b, x), la_int(b, k));
  hlo_t keep = hlo_compare(b, lower ? HLO_GE : HLO_LE, la_rows(b, x), bound);
  return hlo_select(b, keep, x, hlo_scalar(b, x->dtype, 0));
}

hlo_t la_diagonal(hlo_builder_t* b, hlo_t x) {
  int64_t k = x->dims[1] < x->dims[2] ? x->dims[1] : x->dims[2];
  x = la_slice(b, x, k, k);
  hlo_t on = hlo_compare(b, HLO_EQ, la_rows(b, x), la_cols(b, x));
  return hlo_reduce(b, hlo_select(b, on, x, hlo_scalar(b, x->dtype, 0)), HLO_R_ADD, 1, (const int64_t[]){1});
}

hlo_t la_pad(hlo_builder_t* b, hlo_t x, int64_t rows, int64_t cols) {
  if (rows == x->dims[1] && cols == x->dims[2]) return x;
  const int64_t lo[3] = {0}, hi[3] = {0, rows - x->dims[1], cols - x->dims[2]};
  return hlo_pad(b, x, hlo_scalar(b, x->dtype, 0), lo, hi, NULL);
}

hlo_t la_slice(hlo_builder_t* b, hlo_t x, int64_t rows, int64_t cols) {
  if (rows == x->dims[1] && cols == x->dims[2]) return x;
  const int64_t start[3] = {0}, limit[3] = {x->dims[0], rows, cols};
  return hlo_slice(b, x, start, limit, NULL);
}

hlo_t la_hermitian(hlo_builder_t* b, hlo_t x, bool lower) {
  hlo_t half = la_triangle(b, x, lower, lower ? 1 : -1);
  hlo_t on = hlo_compare(b, HLO_EQ, la_rows(b, x), la_cols(b, x));
  hlo_t diagonal = hlo_select(b, on, hlo_convert(b, hlo_real(b, x), x->dtype), hlo_scalar(b, x->dtype, 0));
  return hlo_add(b, hlo_add(b, half, la_adjoint(b, half)), diagonal);
}

hlo_t la_norm2(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_complex(x->dtype)) return hlo_multiply(b, x, x);
  hlo_t re = hlo_real(b, x), im = hlo_imag(b, x);
  return hlo_add(b, hlo_multiply(b, re, re), hlo_multiply(b, im, im));
}

double la_eps(tt_dtype_t dtype) {
  return tt_real_dtype(dtype) == TT_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
}

hlo_t la_col_at(hlo_builder_t* b, hlo_t x, hlo_t k) {
  hlo_t starts[3] = {la_int(b, 0), la_int(b, 0), k};
  return hlo_dynamic_slice(b, x, starts, (const int64_t[]){x->dims[0], x->dims[1], 1});
}

hlo_t la_row_at(hlo_builder_t* b, hlo_t x, hlo_t k) {
  hlo_t starts[3] = {la_int(b, 0), k, la_int(b, 0)};
  return hlo_dynamic_slice(b, x, starts, (const int64_t[]){x->dims[0], 1, x->dims[2]});
}

enum { LOOP_MAX = 8 };
void la_loop(hlo_builder_t* b, int64_t count, int n, hlo_t* values, la_step_fn step, void* context) {
  hlo_t init[LOOP_MAX + 1], carried[LOOP_MAX + 1];
  if (n > LOOP_MAX) {
    hlo_fail(b, TT_INTERNAL, "too many loop values");
    return;
  }
  init[0] = la_int(b, 0);
  for (int i = 0; i < n; i++) init[i + 1] = values[i];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t go = hlo_compare(b, HLO_LT, hlo_region_arg(b, cond, TT_I64, 0, NULL), la_int(b, count));
  for (int i = 0; i < n; i++) (void)hlo_region_arg(b, cond, values[i]->dtype, values[i]->rank, values[i]->dims);
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  hlo_t k = hlo_region_arg(b, body, TT_I64, 0, NULL);
  for (int i = 0; i < n; i++) {
    carried[i + 1] = hlo_region_arg(b, body, values[i]->dtype, values[i]->rank, values[i]->dims);
  }
  step(b, context, k, carried + 1);
  carried[0] = hlo_add(b, k, la_int(b, 1));
  hlo_region_end(b, body, n + 1, carried);
  hlo_while(b, n + 1, init, cond, body, carried);
  for (int i = 0; i < n; i++) values[i] = carried[i + 1];
}

// ---------------------------------------------------------------- permutations
hlo_t la_swap_entries(hlo_builder_t* b, hlo_t x, hlo_t k, hlo_t p) {
  hlo_t starts[2] = {la_int(b, 0), k};
  hlo_t at_k = hlo_dynamic_slice(b, x, starts, (const int64_t[]){x->dims[0], 1});
  hlo_t at_p = hlo_take_along(b, x, p, 1), i = hlo_iota(b, TT_I64, 2, x->dims, 1);
  x = hlo_select(b, hlo_compare(b, HLO_EQ, i, p), at_k, x);
  return hlo_select(b, hlo_compare(b, HLO_EQ, i, k), at_p, x);
}

hlo_t la_first_true(hlo_builder_t* b, hlo_t flags) {
  hlo_t position = hlo_add(b, hlo_iota(b, TT_I32, 2, flags->dims, 1), hlo_scalar_int(b, TT_I32, 1));
  hlo_t none = hlo_scalar_int(b, TT_I32, INT32_MAX), zero = hlo_scalar_int(b, TT_I32, 0);
  hlo_t first = hlo_reduce(b, hlo_select(b, flags, position, none), HLO_R_MIN, 1, (const int64_t[]){1});
  return hlo_select(b, hlo_compare(b, HLO_EQ, first, none), zero, first);
}

static void perm_step(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values) {
  hlo_t pivots = context, starts[2] = {la_int(b, 0), k};
  hlo_t p = hlo_dynamic_slice(b, pivots, starts, (const int64_t[]){pivots->dims[0], 1});
  values[0] = la_swap_entries(b, values[0], k, p);
}

hlo_t la_perm_of_pivots(hlo_builder_t* b, hlo_t pivots, int64_t rows) {
  hlo_t from0 = hlo_subtract(b, hlo_convert(b, pivots, TT_I64), la_int(b, 1));
  hlo_t perm = hlo_iota(b, TT_I64, 2, (const int64_t[]){pivots->dims[0], rows}, 1);
  if (hlo_numel(pivots) > 0) la_loop(b, pivots->dims[1], 1, &perm, perm_step, (void*)(uintptr_t)from0);
  return perm;
}

hlo_t la_permute_rows(hlo_builder_t* b, hlo_t x, hlo_t perm) {
  return hlo_take_along(b, x, hlo_broadcast_to(b, hlo_unsqueeze(b, perm, 2), 3, x->dims), 1);
}

static hlo_t inverse_perm(hlo_builder_t* b, hlo_t perm) {
  return hlo_put_along(b, hlo_zeros_like(b, perm), perm, hlo_iota(b, TT_I64, 2, perm->dims, 1), 1, HLO_R_ASSIGN);
}

hlo_t la_lu_solve(hlo_builder_t* b, hlo_t lu, hlo_t perm, hlo_t rhs, bool adjoint) {
  if (hlo_numel(rhs) == 0) return rhs;
  if (!adjoint) {
    hlo_t y = hlo_triangular_solve(b, lu, la_permute_rows(b, rhs, perm), true, true, true, 0);
    return hlo_triangular_solve(b, lu, y, true, false, false, 0);
  }
  hlo_t y = hlo_triangular_solve(b, lu, rhs, true, false, false, 2);
  y = hlo_triangular_solve(b, lu, y, true, true, true, 2);
  return la_permute_rows(b, y, inverse_perm(b, perm));
}

// ---------------------------------------------------------------- LU rows
// Raises for the first batch element whose |info| is not zero.
static void check_info(tt_lower_t* l, hlo_t info, const char* single, const char* batched) {
  hlo_builder_t* b = tt_b(l);
  if (hlo_numel(info) == 0) return;
  hlo_t bad = hlo_compare(b, HLO_NE, info, hlo_scalar_int(b, TT_I32, 0));
  bool one = tt_in(l, 0)->rank <= 2;
  hlo_t flat = hlo_reshape(b, bad, 2, (const int64_t[]){1, hlo_numel(info)});
  hlo_t value = one ? hlo_reduce_all(b, info, HLO_R_MAX)
                    : hlo_subtract(b, hlo_reshape(b, la_first_true(b, flat), 0, NULL), hlo_scalar_int(b, TT_I32, 1));
  tt_check(l, hlo_reduce_all(b, bad, HLO_R_OR), hlo_convert(b, value, TT_I64), TT_INVALID_ARGUMENT,
           one ? single : batched);
}

#define NOT_POSITIVE "The factorization could not be completed because the input is not positive-definite"
#define UNUSABLE " is zero and using it on lu_solve would result in a division by zero."
#define SINGULAR " is zero, the inversion could not be completed because the input matrix is singular."

static void lower_lu_factor(tt_lower_t* l) {
  la_lu_t f = la_lu(tt_b(l), la_in(l, 0), tt_bool(l, 1));
  if (tt_bool(l, 2)) {
    check_info(l, f.info, "torch.linalg.lu_factor_ex: Diagonal element %lld of U" UNUSABLE,
               "torch.linalg.lu_factor_ex: (Batch element %lld): A diagonal element of U" UNUSABLE);
  }
  la_ret(l, 0, f.lu);
  la_ret(l, 1, f.pivots);
  la_ret(l, 2, f.info);
}

// P with P[perm[i], i] = 1.
static hlo_t perm_matrix(hlo_builder_t* b, hlo_t perm, tt_dtype_t dtype) {
  int64_t batch = perm->dims[0], m = perm->dims[1];
  hlo_t rows = hlo_iota(b, TT_I64, 3, (const int64_t[]){batch, m, m}, 1);
  return hlo_convert(b, hlo_compare(b, HLO_EQ, rows, hlo_unsqueeze(b, perm, 1)), dtype);
}

static void ret_unpacked(tt_lower_t* l, hlo_t lu) {
  hlo_builder_t* b = tt_b(l);
  int64_t m = lu->dims[1], n = lu->dims[2], k = m < n ? m : n;
  hlo_t lower = la_triangle(b, la_slice(b, lu, m, k), true, 1);
  la_ret(l, 1, hlo_add(b, lower, la_eye(b, lu->dtype, lu->dims[0], m, k)));
  la_ret(l, 2, la_triangle(b, la_slice(b, lu, k, n), false, 0));
}

static bool expects_empty(tt_lower_t* l, int i) {
  const tt_type_t* type = tt_out(l, i);
  for (int d = 0; d < type->rank; d++) {
    if (type->dims[d] == 0) return true;
  }
  return false;
}

static void lower_lu(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  la_lu_t f = la_lu(b, la_in(l, 0), tt_bool(l, 1));
  if (expects_empty(l, 0)) la_ret_zeros(l, 0);
  else la_ret(l, 0, perm_matrix(b, f.perm, f.lu->dtype));
  ret_unpacked(l, f.lu);
}

static void lower_lu_unpack(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t lu = la_in(l, 0);
  if (expects_empty(l, 0)) {
    la_ret_zeros(l, 0);
  } else {
    hlo_t given = tt_in(l, 1), one = la_int(b, 1);
    hlo_t pivots = hlo_reshape(b, given, 2, (const int64_t[]){lu->dims[0], given->dims[given->rank - 1]});
    hlo_t wide = hlo_convert(b, pivots, TT_I64);
    hlo_t bad = hlo_or_(b, hlo_compare(b, HLO_LT, wide, one), hlo_compare(b, HLO_GT, wide, la_int(b, lu->dims[1])));
    tt_check(l, hlo_reduce_all(b, bad, HLO_R_OR), NULL, TT_INVALID_ARGUMENT,
             "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
             "Did you properly pass the result of lu_factor?");
    hlo_t safe = hlo_clamp(b, one, wide, la_int(b, lu->dims[1]));
    la_ret(l, 0, perm_matrix(b, la_perm_of_pivots(b, safe, lu->dims[1]), lu->dtype));
  }
  if (tt_bool(l, 2)) {
    ret_unpacked(l, lu);
    return;
  }
  la_ret_zeros(l, 1);
  la_ret_zeros(l, 2);
}

// X of A X = B (or X A = B) with A = factors, A^H when |adjoint|.
static hlo_t solve_sided(hlo_builder_t* b, hlo_t lu, hlo_t perm, hlo_t rhs, bool left, bool adjoint) {
  if (left) return la_lu_solve(b, lu, perm, rhs, adjoint);
  return la_adjoint(b, la_lu_solve(b, lu, perm, la_adjoint(b, rhs), !adjoint));
}

static void lower_lu_solve(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_type_t* out = tt_out(l, 0);
  int rank = out->rank - 2;
  tt_dtype_t math = tt_opmath(out->dtype);
  hlo_t lu = la_batch_to(b, tt_in_as(l, 0, math), 2, rank, out->dims);
  hlo_t pivots = la_batch_to(b, tt_in(l, 1), 1, rank, out->dims);
  hlo_t rhs = la_batch_to(b, tt_in_as(l, 2, math), 2, rank, out->dims);
  hlo_t perm = la_perm_of_pivots(b, pivots, lu->dims[1]);
  la_ret(l, 0, solve_sided(b, lu, perm, rhs, tt_bool(l, 3), tt_bool(l, 4)));
}

static void lower_solve_ex(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a_in = tt_in(l, 0), rhs = tt_in(l, 1);
  const tt_type_t* out = tt_out(l, 0);
  tt_dtype_t math = tt_opmath(out->dtype);
  bool vector = rhs->rank == 1 || (a_in->rank - 1 == rhs->rank);
  for (int i = 0; vector && rhs->rank > 1 && i < rhs->rank; i++) vector = rhs->dims[i] == a_in->dims[i];
  rhs = hlo_convert(b, rhs, math);
  if (vector) rhs = hlo_unsqueeze(b, rhs, rhs->rank);
  hlo_t a = la_in(l, 0);
  la_lu_t f = la_lu(b, a, true);
  if (tt_bool(l, 3)) {
    check_info(l, f.info, "torch.linalg.solve_ex: The solver failed because the input matrix is singular.",
               "torch.linalg.solve_ex: (Batch element %lld): The solver failed because the input matrix is singular.");
  }
  int rank = vector ? out->rank - 1 : out->rank - 2;
  int64_t packed[TT_MAX_RANK], row[TT_MAX_RANK];
  for (int i = 0; i < a_in->rank; i++) packed[i] = row[i] = a_in->dims[i];
  hlo_t lu = la_batch_to(b, hlo_reshape(b, f.lu, a_in->rank, packed), 2, rank, out->dims);
  hlo_t perm = la_batch_to(b, hlo_reshape(b, f.perm, a_in->rank - 1, row), 1, rank, out->dims);
  rhs = la_batch_to(b, rhs, 2, rank, out->dims);
  la_ret(l, 0, solve_sided(b, lu, perm, rhs, tt_bool(l, 2), false));
  la_ret(l, 1, f.lu);
  la_ret(l, 2, f.pivots);
  la_ret(l, 3, f.info);
}

static void lower_inv_ex(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a = la_in(l, 0);
  la_lu_t f = la_lu(b, a, true);
  if (tt_bool(l, 1)) {
    check_info(l, f.info, "linalg.inv_ex: The diagonal element %lld" SINGULAR,
               "linalg.inv_ex: (Batch element %lld): A diagonal element" SINGULAR);
  }
  la_ret(l, 0, la_lu_solve(b, f.lu, f.perm, la_eye(b, a->dtype, a->dims[0], a->dims[1], a->dims[2]), false));
  la_ret(l, 1, f.info);
}

// The backward formula of determinants expects the factors of A^T when A is real and contiguous.
static bool factors_transposed(tt_lower_t* l, hlo_t a) { return la_contiguous(l, 0) && !tt_is_complex(a->dtype); }

// row.kind: 1 for sign and log.
static void lower_det(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a = la_in(l, 0);
  la_lu_t f = la_lu(b, factors_transposed(l, a) ? hlo_swap_dims(b, a, 1, 2) : a, true);
  hlo_t diagonal = la_diagonal(b, f.lu), one = hlo_scalar(b, a->dtype, 1);
  hlo_t unmoved = hlo_add(b, hlo_iota(b, TT_I32, 2, f.pivots->dims, 1), hlo_scalar_int(b, TT_I32, 1));
  hlo_t moved = hlo_compare(b, HLO_NE, f.pivots, unmoved);
  hlo_t flips = hlo_select(b, moved, hlo_scalar(b, a->dtype, -1), one);
  const int64_t dim = 1;
  hlo_t parity = hlo_reduce(b, flips, HLO_R_MUL, 1, &dim);
  int at = tt_row(l)->kind == 1 ? 2 : 1;
  if (at == 1) {
    la_ret(l, 0, hlo_multiply(b, parity, hlo_reduce(b, diagonal, HLO_R_MUL, 1, &dim)));
  } else {
    hlo_t sign = hlo_reduce(b, hlo_sign(b, diagonal), HLO_R_MUL, 1, &dim);
    la_ret(l, 0, hlo_multiply(b, parity, sign));
    la_ret(l, 1, hlo_reduce(b, hlo_log(b, hlo_abs(b, diagonal)), HLO_R_ADD, 1, &dim));
  }
  la_ret(l, at, f.lu);
  la_ret(l, at + 1, f.pivots);
}

// ---------------------------------------------------------------- Cholesky
// values: remaining matrix, info. Elimination without square roots finds the first minor that is not positive.
static void minor_step(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values) {
  (void)context;
  hlo_t w = values[0], column = la_col_at(b, w, k), d = la_row_at(b, column, k);
  hlo_t real = hlo_reshape(b, hlo_real(b, d), 1, &w->dims[0]);
  hlo_t bad = hlo_not_(b, hlo_compare(b, HLO_GT, real, hlo_scalar(b, real->dtype, 0)));
  hlo_t fresh = hlo_compare(b, HLO_EQ, values[1], hlo_scalar_int(b, TT_I32, 0));
  hlo_t order = hlo_convert(b, hlo_add(b, k, la_int(b, 1)), TT_I32);
  values[1] = hlo_select(b, hlo_and_(b, bad, fresh), order, values[1]);
  hlo_t product = hlo_multiply(b, hlo_divide(b, column, d), la_adjoint(b, column));
  values[0] = hlo_subtract(b, w, product);
}

// Order of the leading minor that is not positive-definite; only computed when some factor failed.
static hlo_t cholesky_info(hlo_builder_t* b, hlo_t a, hlo_t factor) {
  int64_t batch = a->dims[0], n = a->dims[1];
  const int64_t dims[2] = {1, 2};
  hlo_t failed = hlo_reduce(b, hlo_is_nan(b, factor), HLO_R_OR, 2, dims);
  hlo_t none = hlo_splat(b, TT_I32, 0, 1, &batch), out;
  hlo_region_t* slow = hlo_region_begin(b);
  hlo_t values[2] = {a, none};
  la_loop(b, n, 2, values, minor_step, NULL);
  hlo_t at_least_one = hlo_maximum(b, values[1], hlo_scalar_int(b, TT_I32, 1));
  hlo_t order = hlo_select(b, failed, at_least_one, none);
  hlo_region_end(b, slow, 1, &order);
  hlo_region_t* fast = hlo_region_begin(b);
  hlo_region_end(b, fast, 1, &none);
  hlo_if(b, hlo_reduce_all(b, failed, HLO_R_OR), slow, fast, 1, &out);
  return out;
}

// row.kind: 1 for the op that has no info result.
static void lower_cholesky(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bool raises = tt_row(l)->kind == 1, upper = tt_bool(l, 1);
  hlo_t a = la_in(l, 0);
  if (hlo_numel(a) == 0) {
    la_ret_zeros(l, 0);
    if (!raises) la_ret_zeros(l, 1);
    return;
  }
  a = la_hermitian(b, a, !upper);
  hlo_t factor = la_triangle(b, hlo_cholesky(b, a, true), true, 0);
  hlo_t info = cholesky_info(b, a, factor);
  if (raises) {
    check_info(l, info, "cholesky: " NOT_POSITIVE " (the leading minor of order %lld is not positive-definite).",
               "cholesky: (Batch element %lld): " NOT_POSITIVE ".");
  } else if (tt_bool(l, 2)) {
    check_info(l, info, "linalg.cholesky_ex: " NOT_POSITIVE " (the leading minor of order %lld is not "
               "positive-definite).", "linalg.cholesky_ex: (Batch element %lld): " NOT_POSITIVE ".");
  }
  la_ret(l, 0, upper ? la_adjoint(b, factor) : factor);
  if (!raises) la_ret(l, 1, info);
}

static hlo_t cholesky_solve(hlo_builder_t* b, hlo_t factor, hlo_t rhs, bool upper) {
  if (hlo_numel(rhs) == 0) return rhs;
  hlo_t y = hlo_triangular_solve(b, factor, rhs, true, !upper, false, upper ? 2 : 0);
  return hlo_triangular_solve(b, factor, y, true, !upper, false, upper ? 0 : 2);
}

static void lower_cholesky_solve(tt_lower_t* l) {
  tt_ret(l, 0, hlo_reshape(tt_b(l), cholesky_solve(tt_b(l), la_in(l, 1), la_in(l, 0), tt_bool(l, 2)),
                           tt_in(l, 0)->rank, tt_in(l, 0)->dims));
}

static void lower_cholesky_inverse(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t factor = la_in(l, 0), zero = hlo_scalar(b, factor->dtype, 0);
  hlo_t info = la_first_true(b, hlo_compare(b, HLO_EQ, la_diagonal(b, factor), zero));
  check_info(l, info, "cholesky_inverse: The diagonal element %lld" SINGULAR,
             "cholesky_inverse: (Batch element %lld): A diagonal element" SINGULAR);
  hlo_t eye = la_eye(b, factor->dtype, factor->dims[0], factor->dims[1], factor->dims[2]);
  la_ret(l, 0, cholesky_solve(b, factor, eye, tt_bool(l, 1)));
}

// ---------------------------------------------------------------- triangular systems
static void lower_solve_triangular(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_type_t* out = tt_out(l, 0);
  tt_dtype_t math = tt_opmath(out->dtype);
  hlo_t a = la_batch_to(b, tt_in_as(l, 0, math), 2, out->rank - 2, out->dims);
  hlo_t rhs = la_batch_to(b, tt_in_as(l, 1, math), 2, out->rank - 2, out->dims);
  if (hlo_numel(rhs) == 0) {
    la_ret_zeros(l, 0);
    return;
  }
  la_ret(l, 0, hlo_triangular_solve(b, a, rhs, tt_bool(l, 3), !tt_bool(l, 2), tt_bool(l, 4), 0));
}

static void lower_triangular_solve(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_type_t* out = tt_out(l, 0);
  tt_dtype_t math = tt_opmath(out->dtype);
  hlo_t rhs = la_batch_to(b, tt_in_as(l, 0, math), 2, out->rank - 2, out->dims);
  hlo_t a = la_batch_to(b, tt_in_as(l, 1, math), 2, out->rank - 2, out->dims);
  la_ret(l, 1, a);
  if (hlo_numel(rhs) == 0) {
    la_ret_zeros(l, 0);
    return;
  }
  la_ret(l, 0, hlo_triangular_solve(b, a, rhs, true, !tt_bool(l, 2), tt_bool(l, 4), tt_bool(l, 3) ? 1 : 0));
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "linalg_lu_factor_ex", .lower = lower_lu_factor, .flags = TT_OP_CHECKS},
    {.name = "linalg_lu", .lower = lower_lu},
    {.name = "lu_unpack", .lower = lower_lu_unpack, .flags = TT_OP_CHECKS},
    {.name = "linalg_lu_solve", .lower = lower_lu_solve},
    {.name = "_linalg_solve_ex", .lower = lower_solve_ex, .flags = TT_OP_CHECKS},
    {.name = "linalg_inv_ex", .lower = lower_inv_ex, .flags = TT_OP_CHECKS},
    {.name = "_linalg_det", .lower = lower_det},
    {.name = "_linalg_slogdet", .lower = lower_det, .kind = 1},
    {.name = "linalg_cholesky_ex", .lower = lower_cholesky, .flags = TT_OP_CHECKS},
    {.name = "cholesky", .lower = lower_cholesky, .kind = 1, .flags = TT_OP_CHECKS},
    {.name = "cholesky_inverse", .lower = lower_cholesky_inverse, .flags = TT_OP_CHECKS},
    {.name = "_cholesky_solve_helper", .lower = lower_cholesky_solve},
    {.name = "linalg_solve_triangular", .lower = lower_solve_triangular},
    {.name = "triangular_solve", .lower = lower_triangular_solve},
};
TT_OP_FAMILY(linalg, k_rows)
