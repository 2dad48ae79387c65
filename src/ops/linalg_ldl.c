// Symmetric and Hermitian indefinite factorisation with Bunch and Kaufman's pivoting, and its solver.
//
// Depends on: ops/linalg.h, ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// A = L D L^T (or L D L^H) with blocks of one or two rows in D, packed and pivoted as LAPACK's sytrf does for the lower
// triangle: pivot p > 0 swaps row k with p - 1; p < 0 at k and k + 1 marks a block of two and swaps row k + 1 with
// -p - 1. All matrices of a batch walk k together; one that took two rows at k sits out k + 1.
#include <math.h>
#include "ops/common.h"
#include "ops/linalg.h"

static hlo_t either(hlo_builder_t* b, hlo_t when, hlo_t yes, hlo_t no) { return hlo_select(b, when, yes, no); }

static hlo_t size_of(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_complex(x->dtype)) return hlo_abs(b, x);
  return hlo_add(b, hlo_abs(b, hlo_real(b, x)), hlo_abs(b, hlo_imag(b, x)));
}

// Entry at |row| ([batch, 1, 1] or 0-d) of a column [batch, n, 1]: [batch, 1, 1].
static hlo_t entry(hlo_builder_t* b, hlo_t column, hlo_t row) {
  hlo_t at = hlo_compare(b, HLO_EQ, la_rows(b, column), row);
  return hlo_reduce_keep(b, either(b, at, column, hlo_scalar(b, column->dtype, 0)), HLO_R_ADD, 1, (const int64_t[]){1});
}

// Column number |col| [batch, 1, 1] of a matrix: [batch, n, 1].
static hlo_t column_at(hlo_builder_t* b, hlo_t a, hlo_t col) {
  hlo_t at = hlo_compare(b, HLO_EQ, la_cols(b, a), col);
  return hlo_reduce_keep(b, either(b, at, a, hlo_scalar(b, a->dtype, 0)), HLO_R_ADD, 1, (const int64_t[]){2});
}

// Swaps rows |p| and |q| ([batch, 1, 1]) of |x|.
static hlo_t swap_rows(hlo_builder_t* b, hlo_t x, hlo_t p, hlo_t q) {
  hlo_t rows = la_rows(b, x), zero = hlo_scalar(b, x->dtype, 0);
  hlo_t at_p = hlo_compare(b, HLO_EQ, rows, p), at_q = hlo_compare(b, HLO_EQ, rows, q);
  hlo_t row_p = hlo_reduce_keep(b, either(b, at_p, x, zero), HLO_R_ADD, 1, (const int64_t[]){1});
  hlo_t row_q = hlo_reduce_keep(b, either(b, at_q, x, zero), HLO_R_ADD, 1, (const int64_t[]){1});
  return either(b, at_p, row_q, either(b, at_q, row_p, x));
}

static hlo_t swap_both(hlo_builder_t* b, hlo_t x, hlo_t p, hlo_t q) {
  return hlo_swap_dims(b, swap_rows(b, hlo_swap_dims(b, swap_rows(b, x, p, q), 1, 2), p, q), 1, 2);
}

// Largest entry of |column| where |on|: its size and row, both [batch, 1, 1].
static void largest(hlo_builder_t* b, hlo_t column, hlo_t on, hlo_t* out_size, hlo_t* out_row) {
  hlo_t size = size_of(b, column), value, index;
  size = either(b, on, size, hlo_scalar(b, size->dtype, 0));
  hlo_arg_reduce(b, size, true, 1, &value, &index);
  *out_size = hlo_unsqueeze(b, value, 1);
  *out_row = hlo_unsqueeze(b, index, 1);
}

typedef struct ldl_t {
  bool hermitian;
} ldl_t;

typedef struct choice_t {
  hlo_t two;    // i1 [batch, 1, 1]: take a block of two
  hlo_t pivot;  // row to bring in
  hlo_t zero;   // the column is zero: nothing to eliminate
} choice_t;

static choice_t choose(hlo_builder_t* b, hlo_t w, hlo_t k) {
  hlo_t column = la_col_at(b, w, k), rows = la_rows(b, column), here, col_size, col_row, row_size, unused;
  hlo_t diagonal = size_of(b, entry(b, column, k));
  largest(b, column, hlo_compare(b, HLO_GT, rows, k), &col_size, &col_row);
  hlo_t other = column_at(b, w, col_row);
  hlo_t others = hlo_and_(b, hlo_compare(b, HLO_GE, rows, k), hlo_compare(b, HLO_NE, rows, col_row));
  largest(b, other, others, &row_size, &unused);
  tt_dtype_t real = diagonal->dtype;
  hlo_t alpha = hlo_scalar(b, real, (1 + sqrt(17.0)) / 8), none = hlo_scalar(b, real, 0);
  hlo_t bound = hlo_multiply(b, alpha, col_size);
  hlo_t nonzero = either(b, hlo_compare(b, HLO_GT, row_size, none), row_size, hlo_scalar(b, real, 1));
  hlo_t ratio = hlo_divide(b, col_size, nonzero);
  hlo_t stay = hlo_or_(b, hlo_compare(b, HLO_GE, diagonal, bound),
                       hlo_compare(b, HLO_GE, diagonal, hlo_multiply(b, bound, ratio)));
  here = hlo_compare(b, HLO_GE, size_of(b, entry(b, other, col_row)), hlo_multiply(b, alpha, row_size));
  choice_t c;
  c.zero = hlo_compare(b, HLO_EQ, hlo_maximum(b, diagonal, col_size), none);
  stay = hlo_or_(b, stay, c.zero);
  c.two = hlo_and_(b, hlo_not_(b, stay), hlo_not_(b, here));
  c.pivot = either(b, stay, hlo_broadcast_to(b, k, 3, col_row->dims), col_row);
  return c;
}

static hlo_t turned(hlo_builder_t* b, const ldl_t* d, hlo_t x) {  // transpose or adjoint, as the factorisation asks
  return d->hermitian ? la_adjoint(b, x) : hlo_swap_dims(b, x, 1, 2);
}

// L's two columns for the block of rows k and k + 1: X D^-1 for the columns x0, x1 of the remaining matrix.
static void solve_block(hlo_builder_t* b, const ldl_t* d, hlo_t d11, hlo_t d21, hlo_t d22, hlo_t* x0, hlo_t* x1) {
  hlo_t d12 = d->hermitian ? la_conj(b, d21) : d21;
  hlo_t det = hlo_subtract(b, hlo_multiply(b, d11, d22), hlo_multiply(b, d12, d21));
  hlo_t y0 = hlo_divide(b, hlo_subtract(b, hlo_multiply(b, *x0, d22), hlo_multiply(b, *x1, d21)), det);
  hlo_t y1 = hlo_divide(b, hlo_subtract(b, hlo_multiply(b, *x1, d11), hlo_multiply(b, *x0, d12)), det);
  *x0 = y0;
  *x1 = y1;
}

// values: remaining matrix (both triangles), packed result, pivots [batch, n, 1] i32, info [batch, 1, 1] i32, and
// whether k belongs to a block that began before it [batch, 1, 1].
static void factor_step(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values) {
  const ldl_t* d = context;
  hlo_t w = values[0], rows = la_rows(b, w), cols = la_cols(b, w), sits_out = values[4];
  hlo_t zero = hlo_scalar(b, w->dtype, 0);
  hlo_t k1 = hlo_add(b, k, la_int(b, 1)), active = hlo_not_(b, sits_out);
  choice_t c = choose(b, w, k);
  hlo_t two = c.two, front = either(b, two, k1, k);
  hlo_t moved = swap_both(b, w, front, c.pivot);
  hlo_t x0 = la_col_at(b, moved, k), x1 = la_col_at(b, moved, k1);
  hlo_t d11 = entry(b, x0, k), d21 = entry(b, x0, k1), d22 = entry(b, x1, k1);
  // One row: the column divided by its pivot. Two: both columns through the inverse of the block.
  hlo_t safe = either(b, c.zero, hlo_scalar(b, w->dtype, 1), d11);
  if (d->hermitian) safe = hlo_convert(b, hlo_real(b, safe), w->dtype);
  hlo_t single = hlo_divide(b, x0, safe), l0 = x0, l1 = x1;
  solve_block(b, d, d11, d21, d22, &l0, &l1);
  hlo_t row = la_rows(b, x0), below1 = hlo_compare(b, HLO_GT, row, k), below2 = hlo_compare(b, HLO_GT, row, k1);
  single = either(b, below1, single, zero);
  l0 = either(b, below2, l0, zero);
  l1 = either(b, below2, l1, zero);
  hlo_t one_update = hlo_multiply(b, single, turned(b, d, x0));
  hlo_t two_update = hlo_add(b, hlo_multiply(b, l0, turned(b, d, x0)), hlo_multiply(b, l1, turned(b, d, x1)));
  hlo_t edge = either(b, two, k1, k);
  hlo_t inner = hlo_and_(b, hlo_compare(b, HLO_GT, rows, edge), hlo_compare(b, HLO_GT, cols, edge));
  hlo_t next = either(b, inner, hlo_subtract(b, moved, either(b, two, two_update, one_update)), moved);
  hlo_t first = either(b, two, either(b, below2, l0, x0), either(b, below1, single, x0));
  hlo_t second = either(b, below2, l1, x1);
  hlo_t at0 = hlo_and_(b, hlo_compare(b, HLO_EQ, cols, k), hlo_compare(b, HLO_GE, rows, k));
  hlo_t at1 = hlo_and_(b, hlo_and_(b, two, hlo_compare(b, HLO_EQ, cols, k1)), hlo_compare(b, HLO_GE, rows, k1));
  hlo_t packed = either(b, at0, first, either(b, at1, second, values[1]));
  hlo_t number = hlo_convert(b, hlo_add(b, c.pivot, la_int(b, 1)), TT_I32);
  hlo_t pivot = either(b, two, hlo_negate(b, number), number), place = la_rows(b, values[2]);
  hlo_t here = hlo_or_(b, hlo_compare(b, HLO_EQ, place, k), hlo_and_(b, two, hlo_compare(b, HLO_EQ, place, k1)));
  hlo_t unset = hlo_compare(b, HLO_EQ, values[3], hlo_scalar_int(b, TT_I32, 0));
  hlo_t fresh = hlo_and_(b, hlo_and_(b, c.zero, active), unset);
  values[0] = either(b, active, next, w);
  values[1] = either(b, active, packed, values[1]);
  values[2] = either(b, hlo_and_(b, active, here), pivot, values[2]);
  values[3] = either(b, fresh, hlo_convert(b, k1, TT_I32), values[3]);
  values[4] = hlo_and_(b, active, two);
}

static void lower_ldl_factor(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a = la_in(l, 0);
  int64_t batch = a->dims[0], n = a->dims[1];
  ldl_t d = {.hermitian = tt_bool(l, 1) && tt_is_complex(a->dtype)};
  if (hlo_numel(a) == 0) {
    for (int i = 0; i < 3; i++) la_ret_zeros(l, i);
    return;
  }
  hlo_t lower = la_triangle(b, a, true, 1);
  hlo_t full = d.hermitian ? la_hermitian(b, a, true)
                           : hlo_add(b, la_triangle(b, a, true, 0), hlo_swap_dims(b, lower, 1, 2));
  const int64_t column[3] = {batch, n, 1}, single[3] = {batch, 1, 1};
  hlo_t values[5] = {full, la_triangle(b, a, true, 0), hlo_splat(b, TT_I32, 0, 3, column),
                     hlo_splat(b, TT_I32, 0, 3, single), hlo_splat(b, TT_BOOL, 0, 3, single)};
  la_loop(b, n, 5, values, factor_step, &d);
  if (tt_bool(l, 2)) {
    hlo_t bad = hlo_compare(b, HLO_NE, values[3], hlo_scalar_int(b, TT_I32, 0));
    tt_check(l, hlo_reduce_all(b, bad, HLO_R_OR), NULL, TT_INVALID_ARGUMENT,
             "torch.linalg.ldl_factor_ex: The factorization could not be completed because D is exactly singular.");
  }
  la_ret(l, 0, values[1]);
  la_ret(l, 1, values[2]);
  la_ret(l, 2, values[3]);
}

// ---------------------------------------------------------------- solve
typedef struct ldl_solve_t {
  ldl_t d;
  hlo_t ld;      // [batch, n, n]
  hlo_t pivots;  // [batch, n, 1] i64
  hlo_t second;  // [batch, n, 1] i1: row is the second of a block of two
  int64_t n;
} ldl_solve_t;

// values: second flags, whether the row before began a block.
static void mark_step(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values) {
  hlo_t pivots = context, row = la_rows(b, pivots);
  hlo_t negative = hlo_compare(b, HLO_LT, entry(b, pivots, k), la_int(b, 0));
  values[0] = either(b, hlo_compare(b, HLO_EQ, row, k), values[1], values[0]);
  values[1] = hlo_and_(b, negative, hlo_not_(b, values[1]));
}

static hlo_t is_second(hlo_builder_t* b, const ldl_solve_t* s, hlo_t k) {
  hlo_t starts[3] = {la_int(b, 0), k, la_int(b, 0)};
  return hlo_dynamic_slice(b, s->second, starts, (const int64_t[]){s->second->dims[0], 1, 1});
}

// values: right-hand side. Applies L^-1 and D^-1.
static void forward_step(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values) {
  const ldl_solve_t* s = context;
  hlo_t x = values[0], k1 = hlo_add(b, k, la_int(b, 1)), pivot = entry(b, s->pivots, k);
  hlo_t two = hlo_compare(b, HLO_LT, pivot, la_int(b, 0)), zero = hlo_scalar(b, x->dtype, 0);
  hlo_t p = hlo_subtract(b, hlo_abs(b, pivot), la_int(b, 1));
  hlo_t moved = swap_rows(b, x, either(b, two, k1, k), p), rows = la_rows(b, moved);
  hlo_t c0 = la_col_at(b, s->ld, k), c1 = la_col_at(b, s->ld, k1), row = la_rows(b, c0);
  hlo_t d11 = entry(b, c0, k), d21 = entry(b, c0, k1), d22 = entry(b, c1, k1);
  hlo_t d12 = s->d.hermitian ? la_conj(b, d21) : d21;
  hlo_t x0 = la_row_at(b, moved, k), x1 = la_row_at(b, moved, k1);
  hlo_t below1 = either(b, hlo_compare(b, HLO_GT, row, k), c0, zero);
  hlo_t beyond = hlo_compare(b, HLO_GT, row, k1);
  hlo_t one = hlo_subtract(b, moved, hlo_multiply(b, below1, x0));
  hlo_t pair = hlo_subtract(b, moved, hlo_add(b, hlo_multiply(b, either(b, beyond, c0, zero), x0),
                                             hlo_multiply(b, either(b, beyond, c1, zero), x1)));
  hlo_t at0 = hlo_compare(b, HLO_EQ, rows, k), at1 = hlo_compare(b, HLO_EQ, rows, k1);
  one = either(b, at0, hlo_divide(b, x0, d11), one);
  hlo_t det = hlo_subtract(b, hlo_multiply(b, d11, d22), hlo_multiply(b, d12, d21));
  hlo_t y0 = hlo_divide(b, hlo_subtract(b, hlo_multiply(b, d22, x0), hlo_multiply(b, d12, x1)), det);
  hlo_t y1 = hlo_divide(b, hlo_subtract(b, hlo_multiply(b, d11, x1), hlo_multiply(b, d21, x0)), det);
  pair = either(b, at0, y0, either(b, at1, y1, pair));
  values[0] = either(b, is_second(b, s, k), x, either(b, two, pair, one));
}

// Applies L^-T or L^-H from the last row up.
static void backward_step(hlo_builder_t* b, void* context, hlo_t i, hlo_t* values) {
  const ldl_solve_t* s = context;
  hlo_t x = values[0], k = hlo_subtract(b, la_int(b, s->n - 1), i), k0 = hlo_subtract(b, k, la_int(b, 1));
  hlo_t pivot = entry(b, s->pivots, k), two = is_second(b, s, k), zero = hlo_scalar(b, x->dtype, 0);
  hlo_t start = hlo_and_(b, hlo_compare(b, HLO_LT, pivot, la_int(b, 0)), hlo_not_(b, two));
  hlo_t p = hlo_subtract(b, hlo_abs(b, pivot), la_int(b, 1)), rows = la_rows(b, x);
  hlo_t c1 = la_col_at(b, s->ld, k), c0 = la_col_at(b, s->ld, hlo_maximum(b, k0, la_int(b, 0)));
  hlo_t below = hlo_compare(b, HLO_GT, la_rows(b, c1), k);
  hlo_t fix1 = hlo_matmul(b, turned(b, &s->d, either(b, below, c1, zero)), x);
  hlo_t fix0 = hlo_matmul(b, turned(b, &s->d, either(b, below, c0, zero)), x);
  hlo_t at1 = hlo_compare(b, HLO_EQ, rows, k), at0 = hlo_and_(b, two, hlo_compare(b, HLO_EQ, rows, k0));
  hlo_t fixed = hlo_subtract(b, x, either(b, at1, fix1, either(b, at0, fix0, zero)));
  values[0] = either(b, start, x, swap_rows(b, fixed, hlo_broadcast_to(b, k, 3, p->dims), p));
}

static void lower_ldl_solve(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_type_t* out = tt_out(l, 0);
  int rank = out->rank - 2;
  tt_dtype_t math = tt_opmath(out->dtype);
  ldl_solve_t s = {.ld = la_batch_to(b, tt_in_as(l, 0, math), 2, rank, out->dims)};
  s.d.hermitian = tt_bool(l, 3) && tt_is_complex(math);
  s.n = s.ld->dims[1];
  hlo_t x = la_batch_to(b, tt_in_as(l, 2, math), 2, rank, out->dims);
  if (hlo_numel(x) == 0) {
    la_ret_zeros(l, 0);
    return;
  }
  hlo_t pivots = la_batch_to(b, tt_in(l, 1), 1, rank, out->dims);
  s.pivots = hlo_unsqueeze(b, hlo_convert(b, pivots, TT_I64), 2);
  const int64_t single[3] = {x->dims[0], 1, 1};
  hlo_t marks[2] = {hlo_splat(b, TT_BOOL, 0, 3, s.pivots->dims), hlo_splat(b, TT_BOOL, 0, 3, single)};
  la_loop(b, s.n, 2, marks, mark_step, (void*)(uintptr_t)s.pivots);
  s.second = marks[0];
  la_loop(b, s.n, 1, &x, forward_step, &s);
  la_loop(b, s.n, 1, &x, backward_step, &s);
  la_ret(l, 0, x);
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "linalg_ldl_factor_ex", .lower = lower_ldl_factor, .flags = TT_OP_CHECKS},
    {.name = "linalg_ldl_solve", .lower = lower_ldl_solve},
};
TT_OP_FAMILY(linalg_ldl, k_rows)
