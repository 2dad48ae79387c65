// Singular value and Hermitian eigenvalue decompositions by one-sided Jacobi rotations; least squares on top.
//
// Depends on: ops/linalg.h, ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// Columns are kept as rows of [batch, n/2, length] pairs: `top` and `bottom`. A step rotates all n/2 pairs at once so
// that each becomes orthogonal; then the columns move one place round the ring (the first stands still), so that after
// n - 1 steps each has met every other and all are home again. Sweeps repeat until no pair was off by more than
// rounding. A column of zeros takes no part, which is what an odd n is padded with.
#include <math.h>
#include "ops/common.h"
#include "ops/linalg.h"

enum { MAX_SWEEPS = 30 };

// ---------------------------------------------------------------- the rotations
typedef struct jacobi_t {
  int64_t core;  // leading entries of a row that are the column itself; the rest is carried along
} jacobi_t;

static hlo_t core_of(hlo_builder_t* b, hlo_t x, int64_t core) { return hlo_slice_dim(b, x, 2, 0, core, 1); }

// conj(x) . y over the last dim, kept as size 1.
static hlo_t inner(hlo_builder_t* b, hlo_t x, hlo_t y) {
  return hlo_reduce_keep(b, hlo_multiply(b, la_conj(b, x), y), HLO_R_ADD, 1, (const int64_t[]){2});
}

static hlo_t norm2(hlo_builder_t* b, hlo_t x) {
  return hlo_reduce_keep(b, la_norm2(b, x), HLO_R_ADD, 1, (const int64_t[]){2});
}

// Rotates each pair; |out_off|: the largest cosine between the columns of a pair, over the whole batch.
static void rotate(hlo_builder_t* b, int64_t core, hlo_t* x, hlo_t* y, hlo_t* out_off) {
  hlo_t cx = core_of(b, *x, core), cy = core_of(b, *y, core);
  hlo_t alpha = norm2(b, cx), beta = norm2(b, cy), gamma = inner(b, cx, cy), size = hlo_abs(b, gamma);
  hlo_t zero = hlo_scalar(b, size->dtype, 0), one = hlo_scalar(b, size->dtype, 1);
  hlo_t scale = hlo_multiply(b, hlo_sqrt(b, alpha), hlo_sqrt(b, beta));
  hlo_t live = hlo_and_(b, hlo_compare(b, HLO_GT, size, zero), hlo_compare(b, HLO_GT, scale, zero));
  hlo_t safe = hlo_select(b, live, size, one);
  *out_off = hlo_reduce_all(b, hlo_select(b, live, hlo_divide(b, size, scale), zero), HLO_R_MAX);
  hlo_t zeta = hlo_divide(b, hlo_subtract(b, beta, alpha), hlo_add(b, safe, safe));
  hlo_t root = hlo_sqrt(b, hlo_add(b, hlo_multiply(b, zeta, zeta), one));
  hlo_t t = hlo_divide(b, one, hlo_add(b, hlo_abs(b, zeta), root));
  t = hlo_select(b, hlo_compare(b, HLO_LT, zeta, zero), hlo_negate(b, t), t);
  hlo_t c = hlo_rsqrt(b, hlo_add(b, hlo_multiply(b, t, t), one)), s = hlo_multiply(b, c, t);
  c = hlo_select(b, live, c, one);
  s = hlo_select(b, live, s, zero);
  hlo_t turned = *y;
  if (tt_is_complex((*x)->dtype)) {  // turn y so that the product of the pair is real and positive
    hlo_t phase = hlo_divide(b, la_conj(b, gamma), hlo_convert(b, safe, gamma->dtype));
    turned = hlo_multiply(b, *y, hlo_select(b, live, phase, hlo_scalar(b, gamma->dtype, 1)));
  } else {
    turned = hlo_multiply(b, *y, hlo_select(b, hlo_compare(b, HLO_LT, gamma, zero), hlo_negate(b, one), one));
  }
  c = hlo_convert(b, c, (*x)->dtype);
  s = hlo_convert(b, s, (*x)->dtype);
  hlo_t new_x = hlo_subtract(b, hlo_multiply(b, c, *x), hlo_multiply(b, s, turned));
  *y = hlo_add(b, hlo_multiply(b, s, *x), hlo_multiply(b, c, turned));
  *x = new_x;
}

// One place round the ring: the first of top stands still.
static void advance(hlo_builder_t* b, hlo_t* top, hlo_t* bottom) {
  int64_t h = (*top)->dims[1];
  if (h < 2) return;
  hlo_t first = hlo_slice_dim(b, *top, 1, 0, 1, 1), from_bottom = hlo_slice_dim(b, *bottom, 1, 0, 1, 1);
  hlo_t last = hlo_slice_dim(b, *top, 1, h - 1, h, 1), up[3] = {first, from_bottom, NULL};
  int n = 2;
  if (h > 2) up[n++] = hlo_slice_dim(b, *top, 1, 1, h - 1, 1);
  hlo_t down[2] = {hlo_slice_dim(b, *bottom, 1, 1, h, 1), last};
  *top = hlo_concat(b, n, up, 1);
  *bottom = hlo_concat(b, 2, down, 1);
}

static void pair_step(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values) {
  (void)k;
  hlo_t off;
  rotate(b, ((const jacobi_t*)context)->core, &values[0], &values[1], &off);
  advance(b, &values[0], &values[1]);
  values[2] = hlo_maximum(b, values[2], off);
}

// |rows| [batch, n, length], n even: the first |core| entries of all rows become orthogonal to each other.
static hlo_t orthogonalise(hlo_builder_t* b, hlo_t rows, int64_t core) {
  int64_t n = rows->dims[1], h = n / 2;
  tt_dtype_t real = tt_real_dtype(rows->dtype);
  hlo_t top = hlo_slice_dim(b, rows, 1, 0, h, 1), bottom = hlo_slice_dim(b, rows, 1, h, n, 1);
  double tolerance = la_eps(real) * fmax(8, sqrt((double)core));
  hlo_t init[4] = {la_int(b, 0), hlo_scalar(b, real, 1), top, bottom}, out[4];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t sweep = hlo_region_arg(b, cond, TT_I64, 0, NULL), off = hlo_region_arg(b, cond, real, 0, NULL);
  for (int i = 0; i < 2; i++) (void)hlo_region_arg(b, cond, top->dtype, 3, top->dims);
  hlo_t go = hlo_and_(b, hlo_compare(b, HLO_LT, sweep, la_int(b, MAX_SWEEPS)),
                      hlo_compare(b, HLO_GT, off, hlo_scalar(b, real, tolerance)));
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  sweep = hlo_region_arg(b, body, TT_I64, 0, NULL);
  (void)hlo_region_arg(b, body, real, 0, NULL);
  hlo_t values[3];
  for (int i = 0; i < 2; i++) values[i] = hlo_region_arg(b, body, top->dtype, 3, top->dims);
  values[2] = hlo_scalar(b, real, 0);
  jacobi_t context = {.core = core};
  la_loop(b, n - 1, 3, values, pair_step, &context);
  hlo_t next[4] = {hlo_add(b, sweep, la_int(b, 1)), values[2], values[0], values[1]};
  hlo_region_end(b, body, 4, next);
  hlo_while(b, 4, init, cond, body, out);
  return hlo_concat(b, 2, out + 2, 1);
}

// Rows in the order of |keys| [batch, n].
static hlo_t sort_rows(hlo_builder_t* b, hlo_t rows, hlo_t keys, bool descending, hlo_t* out_keys) {
  hlo_t index;
  hlo_sort_with_index(b, keys, 1, descending, out_keys, &index);
  return hlo_take_along(b, rows, hlo_broadcast_to(b, hlo_unsqueeze(b, index, 2), 3, rows->dims), 1);
}

// Lengths of the rows' first |core| entries: [batch, n].
static hlo_t lengths(hlo_builder_t* b, hlo_t rows, int64_t core) {
  return hlo_squeeze(b, hlo_sqrt(b, norm2(b, core_of(b, rows, core))), 2);
}

// Size of the largest element as [batch, 1, 1], 1 for a zero matrix: squares must not overflow or vanish.
static hlo_t safe_scale(hlo_builder_t* b, hlo_t a) {
  hlo_t size = hlo_abs(b, a);
  hlo_t top = hlo_reduce(b, size, HLO_R_MAX, 2, (const int64_t[]){1, 2});
  hlo_t usable = hlo_and_(b, hlo_compare(b, HLO_GT, top, hlo_scalar(b, top->dtype, 0)), hlo_is_finite(b, top));
  hlo_t scale = hlo_select(b, usable, top, hlo_scalar(b, top->dtype, 1));
  return hlo_reshape(b, scale, 3, (const int64_t[]){a->dims[0], 1, 1});
}

// ---------------------------------------------------------------- SVD
// SVD of a square matrix: m = x diag(s) j^H. |out_x| and |out_j| may be NULL together.
static void square_svd(hlo_builder_t* b, hlo_t m, hlo_t* out_x, hlo_t* out_s, hlo_t* out_j) {
  int64_t batch = m->dims[0], n = m->dims[1], even = n + n % 2;
  hlo_t rows = la_pad(b, hlo_swap_dims(b, m, 1, 2), even, n);
  if (out_x != NULL) {  // the same rotations, applied to the identity, give j
    hlo_t both[2] = {rows, la_eye(b, m->dtype, batch, even, n)};
    rows = hlo_concat(b, 2, both, 2);
  }
  rows = orthogonalise(b, rows, n);
  hlo_t keys = lengths(b, rows, n);
  if (even != n) {  // the padding goes last, also among zeros
    hlo_t pad = hlo_compare(b, HLO_EQ, hlo_iota(b, TT_I64, 2, keys->dims, 1), la_int(b, n));
    keys = hlo_select(b, pad, hlo_scalar(b, keys->dtype, -1), keys);
  }
  hlo_t sorted;
  rows = sort_rows(b, rows, keys, true, &sorted);
  *out_s = hlo_slice_dim(b, sorted, 1, 0, n, 1);
  if (out_x == NULL) return;
  rows = hlo_slice_dim(b, rows, 1, 0, n, 1);
  hlo_t columns = hlo_swap_dims(b, core_of(b, rows, n), 1, 2), packed, tau;
  *out_j = hlo_swap_dims(b, hlo_slice_dim(b, rows, 2, n, 2 * n, 1), 1, 2);
  // Columns of length zero say nothing about their direction: QR completes the basis. Its R is diagonal, up to phases.
  la_qr(b, columns, &packed, &tau);
  hlo_t d = la_diagonal(b, packed), size = hlo_abs(b, d), zero = hlo_scalar(b, size->dtype, 0);
  hlo_t one = hlo_scalar(b, d->dtype, 1), flat = hlo_compare(b, HLO_EQ, size, zero);
  hlo_t whole = hlo_convert(b, hlo_select(b, flat, hlo_scalar(b, size->dtype, 1), size), d->dtype);
  hlo_t phase = hlo_select(b, flat, one, hlo_divide(b, d, whole));
  *out_x = hlo_multiply(b, la_q(b, packed, tau, n), hlo_unsqueeze(b, phase, 1));
}

void la_svd(hlo_builder_t* b, hlo_t a, bool full, hlo_t* out_u, hlo_t* out_s, hlo_t* out_vh) {
  int64_t batch = a->dims[0], m = a->dims[1], n = a->dims[2];
  if (m < n) {
    hlo_t u, vh;
    la_svd(b, la_adjoint(b, a), full, out_u ? &u : NULL, out_s, out_u ? &vh : NULL);
    if (out_u == NULL) return;
    *out_u = la_adjoint(b, vh);
    *out_vh = la_adjoint(b, u);
    return;
  }
  hlo_t scale = safe_scale(b, a), packed, tau, x, j;
  la_qr(b, hlo_divide(b, a, hlo_convert(b, scale, a->dtype)), &packed, &tau);
  // a = Q R and R^H = x diag(s) j^H: the triangle's adjoint converges faster than the matrix itself.
  hlo_t r = la_triangle(b, la_slice(b, packed, n, n), false, 0);
  square_svd(b, la_adjoint(b, r), out_u ? &x : NULL, out_s, out_u ? &j : NULL);
  *out_s = hlo_multiply(b, *out_s, hlo_squeeze(b, scale, 2));
  if (out_u == NULL) return;
  *out_vh = la_adjoint(b, x);
  if (!full || m == n) {
    *out_u = hlo_matmul(b, la_q(b, packed, tau, n), j);
    return;
  }
  hlo_t wide = la_pad(b, j, m, m), eye = la_eye(b, a->dtype, batch, m, m);
  hlo_t rest = hlo_compare(b, HLO_GE, la_rows(b, eye), la_int(b, n));
  *out_u = hlo_matmul(b, la_q(b, packed, tau, m), hlo_select(b, rest, eye, wide));
}

static void check_finite(tt_lower_t* l, hlo_t a, const char* message) {
  hlo_builder_t* b = tt_b(l);
  hlo_t finite = hlo_is_finite(b, hlo_real(b, a));
  if (tt_is_complex(a->dtype)) finite = hlo_and_(b, finite, hlo_is_finite(b, hlo_imag(b, a)));
  tt_check(l, hlo_not_(b, hlo_reduce_all(b, finite, HLO_R_AND)), NULL, TT_INVALID_ARGUMENT, message);
}

static void lower_svd(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a = la_in(l, 0), u, s, vh;
  bool full = tt_bool(l, 1), vectors = tt_bool(l, 2);
  if (hlo_numel(a) == 0) {
    la_ret(l, 1, hlo_splat(b, tt_real_dtype(a->dtype), 0, 2, (const int64_t[]){a->dims[0], 0}));
    if (vectors) {
      int64_t k = full ? -1 : 0;
      la_ret_columns(l, 0, la_eye(b, a->dtype, a->dims[0], a->dims[1], k < 0 ? a->dims[1] : k));
      la_ret_columns(l, 2, la_eye(b, a->dtype, a->dims[0], k < 0 ? a->dims[2] : k, a->dims[2]));
    } else {
      la_ret_zeros(l, 0);
      la_ret_zeros(l, 2);
    }
    return;
  }
  check_finite(l, a, "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite "
                     "values.");
  la_svd(b, a, full, vectors ? &u : NULL, &s, vectors ? &vh : NULL);
  la_ret(l, 1, s);
  if (vectors) {
    la_ret_columns(l, 0, u);
    la_ret_columns(l, 2, vh);
  } else {
    la_ret_zeros(l, 0);
    la_ret_zeros(l, 2);
  }
}

// ---------------------------------------------------------------- Hermitian eigenvalues
// a + c I with c above the largest eigenvalue in size is positive definite and well conditioned: its singular vectors
// are a's eigenvectors. Rayleigh quotients with a itself then give the eigenvalues to full precision.
static void hermitian_eig(hlo_builder_t* b, hlo_t a, hlo_t* out_values, hlo_t* out_vectors) {
  int64_t batch = a->dims[0], n = a->dims[1], even = n + n % 2;
  hlo_t scale = safe_scale(b, a), unit = hlo_divide(b, a, hlo_convert(b, scale, a->dtype));
  hlo_t size = hlo_abs(b, unit);
  hlo_t row_sums = hlo_reduce(b, size, HLO_R_ADD, 1, (const int64_t[]){2});
  hlo_t bound = hlo_reduce(b, row_sums, HLO_R_MAX, 1, (const int64_t[]){1});
  hlo_t frobenius = hlo_sqrt(b, hlo_reduce(b, la_norm2(b, unit), HLO_R_ADD, 2, (const int64_t[]){1, 2}));
  bound = hlo_minimum(b, bound, frobenius);
  hlo_t shift = hlo_multiply(b, bound, hlo_scalar(b, bound->dtype, 1.25));
  shift = hlo_add(b, shift, hlo_scalar(b, bound->dtype, 1e-3));
  shift = hlo_reshape(b, shift, 3, (const int64_t[]){batch, 1, 1});
  hlo_t eye = la_eye(b, a->dtype, batch, n, n);
  hlo_t lifted = hlo_add(b, unit, hlo_multiply(b, eye, hlo_convert(b, shift, a->dtype)));
  hlo_t rows = orthogonalise(b, la_pad(b, hlo_swap_dims(b, lifted, 1, 2), even, n), n);
  rows = hlo_slice_dim(b, rows, 1, 0, n, 1);
  hlo_t length = hlo_unsqueeze(b, lengths(b, rows, n), 2), values;
  rows = hlo_divide(b, rows, hlo_convert(b, length, rows->dtype));
  hlo_t image = hlo_matmul(b, rows, hlo_swap_dims(b, unit, 1, 2));
  values = hlo_real(b, hlo_squeeze(b, inner(b, rows, image), 2));
  rows = sort_rows(b, rows, values, false, &values);
  *out_values = hlo_multiply(b, values, hlo_squeeze(b, scale, 2));
  if (out_vectors != NULL) *out_vectors = hlo_swap_dims(b, rows, 1, 2);
}

static void lower_eigh(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const char* uplo = tt_str(l, 1);
  bool upper = uplo != NULL && (uplo[0] == 'U' || uplo[0] == 'u'), vectors = tt_bool(l, 2);
  hlo_t a = la_in(l, 0), values, columns;
  if (hlo_numel(a) == 0) {
    la_ret_zeros(l, 0);
    la_ret_zeros(l, 1);
    return;
  }
  hermitian_eig(b, la_hermitian(b, a, !upper), &values, vectors ? &columns : NULL);
  la_ret(l, 0, values);
  if (vectors) la_ret(l, 1, columns);
  else la_ret_zeros(l, 1);
}

// ---------------------------------------------------------------- least squares
typedef struct lstsq_t {
  hlo_t a, rhs;        // [batch, m, n], [batch, m, k]
  hlo_t x, s, rank;    // solution, singular values, rank [batch]
} lstsq_t;

static void solve_least_squares(tt_lower_t* l, lstsq_t* p) {
  hlo_builder_t* b = tt_b(l);
  hlo_t u, vh;
  la_svd(b, p->a, false, &u, &p->s, &vh);
  tt_dtype_t real = p->s->dtype;
  int64_t larger = p->a->dims[1] > p->a->dims[2] ? p->a->dims[1] : p->a->dims[2];
  hlo_t rcond = tt_has(l, 2) ? tt_scalar(l, 2, real) : hlo_scalar(b, real, la_eps(real) * (double)larger);
  hlo_t top = hlo_reduce_keep(b, p->s, HLO_R_MAX, 1, (const int64_t[]){1});
  hlo_t keep = hlo_compare(b, HLO_GT, p->s, hlo_multiply(b, top, rcond));
  p->rank = hlo_reduce(b, hlo_convert(b, keep, TT_I64), HLO_R_ADD, 1, (const int64_t[]){1});
  hlo_t one = hlo_scalar(b, real, 1), zero = hlo_scalar(b, real, 0);
  hlo_t inverse = hlo_select(b, keep, hlo_divide(b, one, hlo_select(b, keep, p->s, one)), zero);
  hlo_t y = hlo_matmul(b, la_adjoint(b, u), p->rhs);
  y = hlo_multiply(b, y, hlo_convert(b, hlo_unsqueeze(b, inverse, 2), y->dtype));
  p->x = hlo_matmul(b, la_adjoint(b, vh), y);
}

static void lower_lstsq(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a = tt_in(l, 0), rhs = tt_in(l, 1);
  tt_dtype_t math = tt_opmath(a->dtype), real = tt_real_dtype(math);
  const char* driver = tt_str(l, 3);
  char kind = driver == NULL ? 'y' : driver[4];  // gels, gelsy, gelsd, gelss
  bool vector = rhs->rank == a->rank - 1;
  rhs = hlo_convert(b, rhs, math);
  if (vector) rhs = hlo_unsqueeze(b, rhs, rhs->rank);
  int64_t dims[TT_MAX_RANK], m = a->dims[a->rank - 2], n = a->dims[a->rank - 1], k = rhs->dims[rhs->rank - 1];
  int rank = a->rank > rhs->rank ? a->rank - 2 : rhs->rank - 2;
  for (int i = 0; i < rank; i++) {  // trailing alignment of the leading dims
    int ai = a->rank - 2 - rank + i, ri = rhs->rank - 2 - rank + i;
    int64_t ad = ai >= 0 ? a->dims[ai] : 1, rd = ri >= 0 ? rhs->dims[ri] : 1;
    dims[i] = ad == 1 ? rd : ad;
  }
  lstsq_t p = {.a = la_batch_to(b, hlo_convert(b, a, math), 2, rank, dims), .rhs = la_batch_to(b, rhs, 2, rank, dims)};
  const int64_t none = 0;
  hlo_t empty = hlo_splat(b, real, 0, 1, &none);
  if (hlo_numel(p.a) == 0 || hlo_numel(p.rhs) == 0) {
    p.x = hlo_splat(b, math, 0, 3, (const int64_t[]){p.a->dims[0], n, k});
    p.rank = hlo_splat(b, TT_I64, m < n ? (double)m : (double)n, 1, &p.a->dims[0]);
    p.s = hlo_splat(b, real, 0, 2, (const int64_t[]){p.a->dims[0], m < n ? m : n});
  } else {
    solve_least_squares(l, &p);
  }
  if (kind == '\0') {
    int64_t smaller = m < n ? m : n;
    hlo_t low = hlo_reduce_all(b, p.rank, HLO_R_MIN);
    tt_check(l, hlo_compare(b, HLO_LT, low, la_int(b, smaller)), hlo_add(b, low, la_int(b, 1)), TT_INVALID_ARGUMENT,
             "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not "
             "have full rank (error code: %lld).");
  }
  int64_t shape[TT_MAX_RANK];
  for (int i = 0; i < rank; i++) shape[i] = dims[i];
  tt_ret(l, 2, kind == '\0' ? hlo_splat(b, TT_I64, 0, 1, &none) : hlo_reshape(b, p.rank, rank, shape));
  shape[rank] = n, shape[rank + 1] = k;
  tt_ret(l, 0, hlo_reshape(b, p.x, vector ? rank + 1 : rank + 2, shape));
  // LAPACK puts the solution column by column where the right-hand side was, which may have more rows.
  int64_t strides[TT_MAX_RANK], rows = m > n ? m : n, step = (rows > 1 ? rows : 1) * (k > 1 ? k : 1);
  strides[rank] = 1, strides[rank + 1] = rows > 1 ? rows : 1;
  for (int i = rank - 1; i >= 0; i--) {
    strides[i] = step;
    step *= dims[i] > 1 ? dims[i] : 1;
  }
  tt_ret_strides(l, 0, strides);
  if (m > n && kind != 'y' && hlo_numel(p.a) > 0) {
    hlo_t miss = la_norm2(b, hlo_subtract(b, p.rhs, hlo_matmul(b, p.a, p.x)));
    shape[rank] = k;
    hlo_t sums = hlo_reduce(b, miss, HLO_R_ADD, 1, (const int64_t[]){1});
    sums = hlo_reshape(b, sums, vector ? rank : rank + 1, shape);
    // Residuals are given only when every matrix has full rank.
    hlo_t full = hlo_reduce_all(b, hlo_compare(b, HLO_EQ, p.rank, la_int(b, n)), HLO_R_AND);
    if (sums->rank == 0) tt_ret(l, 1, sums);
    else tt_ret_sized(l, 1, sums, hlo_select(b, full, la_int(b, sums->dims[0]), la_int(b, 0)));
  } else {
    tt_ret(l, 1, empty);
  }
  shape[rank] = m < n ? m : n;
  tt_ret(l, 3, kind == 'd' || kind == 's' ? hlo_reshape(b, p.s, rank + 1, shape) : empty);
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "_linalg_svd", .lower = lower_svd, .flags = TT_OP_CHECKS},
    {.name = "_linalg_eigh", .lower = lower_eigh},
    {.name = "linalg_lstsq", .lower = lower_lstsq, .flags = TT_OP_DATA_DEPENDENT | TT_OP_CHECKS},
};
TT_OP_FAMILY(linalg_jacobi, k_rows)
