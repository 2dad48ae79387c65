// LU factors with partial pivoting: column by column, in panels when the matrix is large.
//
// Depends on: ops/linalg.h.
// Threads: as op.h (a lowering runs on one thread).
// A panel of columns is eliminated on its own; the rest of the matrix then gets one triangular solve and one product,
// over its full static shape with the finished part masked out.
#include "ops/linalg.h"

enum { PANEL = 32, PANELS_FROM = 96 };

static int64_t min64(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t round_up(int64_t x) { return (x + PANEL - 1) / PANEL * PANEL; }

// Size of an element as LAPACK compares pivots.
static hlo_t pivot_size(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_complex(x->dtype)) return hlo_abs(b, x);
  return hlo_add(b, hlo_abs(b, hlo_real(b, x)), hlo_abs(b, hlo_imag(b, x)));
}

// ---------------------------------------------------------------- one column
typedef struct lu_t {
  bool pivot;
  int64_t limit;  // columns to eliminate: min(m, n)
  hlo_t start;    // 0-d i64: column of the matrix where the panel begins
} lu_t;

// Row of the pivot for column |i| of the panel, whose diagonal is in row |k|: [batch, 1].
static hlo_t pivot_row(hlo_builder_t* b, const lu_t* c, hlo_t a, hlo_t i, hlo_t k) {
  hlo_t stay = hlo_broadcast_to(b, k, 2, (const int64_t[]){a->dims[0], 1});
  if (!c->pivot) return stay;
  hlo_t size = hlo_squeeze(b, pivot_size(b, la_col_at(b, a, i)), 2), best, p;
  hlo_t row = hlo_iota(b, TT_I64, 2, size->dims, 1);
  size = hlo_select(b, hlo_compare(b, HLO_GE, row, k), size, hlo_scalar(b, size->dtype, -1));
  hlo_arg_reduce(b, size, true, 1, &best, &p);
  return hlo_select(b, hlo_compare(b, HLO_LT, k, la_int(b, c->limit)), hlo_unsqueeze(b, p, 1), stay);
}

// values: panel, pivots, permutation of the panel's rows.
static void column_step(hlo_builder_t* b, void* context, hlo_t i, hlo_t* values) {
  const lu_t* c = context;
  hlo_t a = values[0], rows = la_rows(b, a), cols = la_cols(b, a), k = hlo_add(b, c->start, i);
  hlo_t p = pivot_row(b, c, a, i, k), p3 = hlo_unsqueeze(b, p, 2);
  hlo_t index = hlo_broadcast_to(b, p3, 3, (const int64_t[]){a->dims[0], 1, a->dims[2]});
  hlo_t row_k = la_row_at(b, a, k), row_p = hlo_take_along(b, a, index, 1);
  a = hlo_select(b, hlo_compare(b, HLO_EQ, rows, p3), row_k, a);
  a = hlo_select(b, hlo_compare(b, HLO_EQ, rows, k), row_p, a);
  hlo_t d = la_col_at(b, row_p, i), column = la_col_at(b, a, i), zero = hlo_scalar(b, a->dtype, 0);
  hlo_t scaled = hlo_select(b, hlo_compare(b, HLO_EQ, d, zero), column, hlo_divide(b, column, d));
  hlo_t active = hlo_compare(b, HLO_LT, k, la_int(b, c->limit));
  hlo_t below = hlo_and_(b, hlo_compare(b, HLO_GT, rows, k), active);
  hlo_t inner = hlo_and_(b, below, hlo_compare(b, HLO_GT, cols, i));
  hlo_t edge = hlo_and_(b, below, hlo_compare(b, HLO_EQ, cols, i));
  hlo_t updated = hlo_select(b, inner, hlo_subtract(b, a, hlo_multiply(b, scaled, row_p)), a);
  values[0] = hlo_select(b, edge, scaled, updated);
  hlo_t starts[2] = {la_int(b, 0), k};
  hlo_t pivot = hlo_convert(b, hlo_add(b, p, la_int(b, 1)), TT_I32);
  values[1] = hlo_dynamic_update_slice(b, values[1], pivot, starts);
  values[2] = la_swap_entries(b, values[2], k, p);
}

// ---------------------------------------------------------------- one panel
static hlo_t row_numbers(hlo_builder_t* b, int64_t batch, int64_t m) {
  return hlo_iota(b, TT_I64, 2, (const int64_t[]){batch, m}, 1);
}

// values: matrix, pivots, permutation; sizes are multiples of PANEL.
static void panel_step(hlo_builder_t* b, void* context, hlo_t j, hlo_t* values) {
  lu_t c = *(const lu_t*)context;
  hlo_t a = values[0], zero = la_int(b, 0), start = hlo_multiply(b, j, la_int(b, PANEL));
  hlo_t end = hlo_add(b, start, la_int(b, PANEL));
  int64_t batch = a->dims[0], m = a->dims[1], n = a->dims[2];
  c.start = start;
  hlo_t at_column[3] = {zero, zero, start}, at_row[3] = {zero, start, zero};
  hlo_t inner[3] = {hlo_dynamic_slice(b, a, at_column, (const int64_t[]){batch, m, PANEL}), values[1],
                    row_numbers(b, batch, m)};
  la_loop(b, PANEL, 3, inner, column_step, &c);
  hlo_t panel = inner[0];
  a = hlo_dynamic_update_slice(b, la_permute_rows(b, a, inner[2]), panel, at_column);
  hlo_t corner = hlo_dynamic_slice(b, panel, at_row, (const int64_t[]){batch, PANEL, PANEL});
  hlo_t band = hlo_dynamic_slice(b, a, at_row, (const int64_t[]){batch, PANEL, n});
  hlo_t solved = hlo_triangular_solve(b, corner, band, true, true, true, 0);
  solved = hlo_select(b, hlo_compare(b, HLO_GE, la_cols(b, band), end), solved, band);
  a = hlo_dynamic_update_slice(b, a, solved, at_row);
  hlo_t rest = hlo_and_(b, hlo_compare(b, HLO_GE, la_rows(b, a), end), hlo_compare(b, HLO_GE, la_cols(b, a), end));
  values[0] = hlo_select(b, rest, hlo_subtract(b, a, hlo_matmul(b, panel, solved)), a);
  values[1] = inner[1];
  values[2] = hlo_take_along(b, values[2], inner[2], 1);
}

la_lu_t la_lu(hlo_builder_t* b, hlo_t a, bool pivot) {
  int64_t batch = a->dims[0], m = a->dims[1], n = a->dims[2], k = min64(m, n);
  bool panels = k >= PANELS_FROM;
  int64_t rows = panels ? round_up(m) : m, cols = panels ? round_up(n) : n, steps = panels ? round_up(k) : k;
  lu_t c = {.pivot = pivot, .limit = k, .start = la_int(b, 0)};
  hlo_t values[3] = {la_pad(b, a, rows, cols), hlo_splat(b, TT_I32, 0, 2, (const int64_t[]){batch, steps}),
                     row_numbers(b, batch, rows)};
  if (batch * k > 0) {
    if (panels) la_loop(b, steps / PANEL, 3, values, panel_step, &c);
    else la_loop(b, k, 3, values, column_step, &c);
  }
  la_lu_t f = {.lu = la_slice(b, values[0], m, n), .pivots = hlo_slice_dim(b, values[1], 1, 0, k, 1),
               .perm = hlo_slice_dim(b, values[2], 1, 0, m, 1)};
  hlo_t zero = hlo_scalar(b, a->dtype, 0);
  f.info = la_first_true(b, hlo_compare(b, HLO_EQ, la_diagonal(b, f.lu), zero));
  return f;
}
