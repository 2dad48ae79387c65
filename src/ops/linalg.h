// Building blocks that the linear algebra files share. Matrices are [batch, rows, columns] with one batch dim.
//
// Depends on: ops/op.h.
// Threads: as op.h (a lowering runs on one thread).
// Factorisations that StableHLO lacks are while loops over static shapes, which every compiler takes.
#ifndef TT_OPS_LINALG_H_
#define TT_OPS_LINALG_H_
#include "ops/op.h"

// ---------------------------------------------------------------- reading and writing
// Argument |i| as [batch, rows, columns] of the dtype the arithmetic is done in.
hlo_t la_in(tt_lower_t* l, int i);
// Any value of rank >= 2 with its leading dims joined.
hlo_t la_flat(hlo_builder_t* b, hlo_t x);
// Gives |x| (leading dims joined, or any shape of the same size) as result |i|.
void la_ret(tt_lower_t* l, int i, hlo_t x);
// The same, with each matrix column by column in memory, as LAPACK leaves it.
void la_ret_columns(tt_lower_t* l, int i, hlo_t x);
void la_order_columns(tt_lower_t* l, int i, int rank);  // of a result that is given already
// Result |i| as zeros of its expected type: for empty matrices.
void la_ret_zeros(tt_lower_t* l, int i);
// Leading dims of |x| (all but its last |core| ones) broadcast to |rank| dims |batch|, then joined.
hlo_t la_batch_to(hlo_builder_t* b, hlo_t x, int core, int rank, const int64_t* batch);
// Whether PyTorch sees argument |i| as contiguous. Some backward formulas of PyTorch branch on it.
bool la_contiguous(tt_lower_t* l, int i);

// ---------------------------------------------------------------- elements
hlo_t la_int(hlo_builder_t* b, int64_t v);                     // 0-d i64
hlo_t la_rows(hlo_builder_t* b, hlo_t x);                      // i64 row numbers in x's dims
hlo_t la_cols(hlo_builder_t* b, hlo_t x);
hlo_t la_conj(hlo_builder_t* b, hlo_t x);
hlo_t la_adjoint(hlo_builder_t* b, hlo_t x);                   // conjugate transpose
hlo_t la_eye(hlo_builder_t* b, tt_dtype_t dtype, int64_t batch, int64_t rows, int64_t cols);
// x where row >= column + k (lower) or row <= column + k (upper), else 0.
hlo_t la_triangle(hlo_builder_t* b, hlo_t x, bool lower, int64_t k);
hlo_t la_diagonal(hlo_builder_t* b, hlo_t x);                  // [batch, min(rows, cols)]
hlo_t la_pad(hlo_builder_t* b, hlo_t x, int64_t rows, int64_t cols);  // with zeros, at the end
hlo_t la_slice(hlo_builder_t* b, hlo_t x, int64_t rows, int64_t cols);  // the leading block
// Full Hermitian matrix from one triangle; imaginary parts of the diagonal are dropped.
hlo_t la_hermitian(hlo_builder_t* b, hlo_t x, bool lower);
hlo_t la_norm2(hlo_builder_t* b, hlo_t x);                     // |x|^2 elementwise, real
double la_eps(tt_dtype_t dtype);                               // of the real dtype
// Column and row |k| (0-d i64) of x as [batch, rows, 1] and [batch, 1, cols]; element k of [batch, n] as [batch, 1].
hlo_t la_col_at(hlo_builder_t* b, hlo_t x, hlo_t k);
hlo_t la_row_at(hlo_builder_t* b, hlo_t x, hlo_t k);

// A loop with counter k (0-d i64) from 0 to |count|. |step| replaces the |n| carried values.
typedef void (*la_step_fn)(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values);
void la_loop(hlo_builder_t* b, int64_t count, int n, hlo_t* values, la_step_fn step, void* context);

// ---------------------------------------------------------------- LU
typedef struct la_lu_t {
  hlo_t lu;      // packed factors
  hlo_t pivots;  // [batch, k] i32, LAPACK's: row swaps, from 1
  hlo_t perm;    // [batch, rows] i64: row i of the factored matrix is row perm[i] of the given one
  hlo_t info;    // [batch] i32: first zero pivot, from 1; 0: none
} la_lu_t;
la_lu_t la_lu(hlo_builder_t* b, hlo_t a, bool pivot);
// Swaps entries |k| (0-d) and |p| ([batch, 1]) of the last dim of |x| [batch, n].
hlo_t la_swap_entries(hlo_builder_t* b, hlo_t x, hlo_t k, hlo_t p);
// Rows of |x| in the order |perm| [batch, rows].
hlo_t la_permute_rows(hlo_builder_t* b, hlo_t x, hlo_t perm);
// Position of the first true along dim 1, from 1, as i32; 0 when there is none.
hlo_t la_first_true(hlo_builder_t* b, hlo_t flags);
hlo_t la_perm_of_pivots(hlo_builder_t* b, hlo_t pivots, int64_t rows);
// A X = B, or A^H X = B, from A's factors.
hlo_t la_lu_solve(hlo_builder_t* b, hlo_t lu, hlo_t perm, hlo_t rhs, bool adjoint);

// ---------------------------------------------------------------- QR
// Householder factors: packed [batch, m, n] and tau [batch, min(m, n)], as geqrf gives them.
void la_qr(hlo_builder_t* b, hlo_t a, hlo_t* out_packed, hlo_t* out_tau);
// The first |cols| columns of the product of reflectors.
hlo_t la_q(hlo_builder_t* b, hlo_t packed, hlo_t tau, int64_t cols);

// ---------------------------------------------------------------- SVD
// a = U diag(s) V^H with k = min(m, n): u [batch, m, k or m], s [batch, k] descending, vh [batch, k or n, n].
// |out_u| and |out_vh| may be NULL together.
void la_svd(hlo_builder_t* b, hlo_t a, bool full, hlo_t* out_u, hlo_t* out_s, hlo_t* out_vh);

#endif  // TT_OPS_LINALG_H_
