// Householder QR: factors, explicit Q, and products with it.
//
// Depends on: ops/linalg.h, ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// `Qr` and `ProductOfElementaryHouseholderReflectors` are XLA's own calls, expanded to blocked loops on every platform.
#include <string.h>
#include "ops/common.h"
#include "ops/linalg.h"

static int64_t min64(int64_t x, int64_t y) { return x < y ? x : y; }

void la_qr(hlo_builder_t* b, hlo_t a, hlo_t* out_packed, hlo_t* out_tau) {
  int64_t k = min64(a->dims[1], a->dims[2]);
  const int64_t tau_dims[2] = {a->dims[0], k};
  if (hlo_numel(a) == 0) {
    *out_packed = a;
    *out_tau = hlo_splat(b, a->dtype, 0, 2, tau_dims);
    return;
  }
  const tt_dtype_t dtypes[2] = {a->dtype, a->dtype};
  const int ranks[2] = {3, 2};
  const int64_t* const dims[2] = {a->dims, tau_dims};
  hlo_t out[2];
  hlo_custom_call(b, "Qr", 1, &a, 2, dtypes, ranks, dims, NULL, out);
  *out_packed = out[0];
  *out_tau = out[1];
}

hlo_t la_q(hlo_builder_t* b, hlo_t packed, hlo_t tau, int64_t cols) {
  int64_t batch = packed->dims[0], m = packed->dims[1], k = min64(min64(packed->dims[2], cols), tau->dims[1]);
  if (batch * m * cols == 0 || k == 0) return la_eye(b, packed->dtype, batch, m, cols);
  // Reflectors that are missing are the identity: tau 0.
  hlo_t in[2] = {la_pad(b, la_slice(b, packed, m, k), m, cols), NULL}, out;
  const int64_t lo[2] = {0}, hi[2] = {0, cols - k}, start[2] = {0}, limit[2] = {batch, k};
  in[1] = hlo_pad(b, hlo_slice(b, tau, start, limit, NULL), hlo_scalar(b, tau->dtype, 0), lo, hi, NULL);
  const int rank = 3;
  const int64_t* const dims = in[0]->dims;
  hlo_custom_call(b, "ProductOfElementaryHouseholderReflectors", 2, in, 1, &packed->dtype, &rank, &dims, NULL, &out);
  return out;
}

// ---------------------------------------------------------------- rows' lowerings
static void lower_qr(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const char* mode = tt_str(l, 1);
  hlo_t a = la_in(l, 0), packed, tau;
  int64_t m = a->dims[1], n = a->dims[2], k = min64(m, n);
  bool complete = mode != NULL && strcmp(mode, "complete") == 0, only_r = mode != NULL && strcmp(mode, "r") == 0;
  la_qr(b, a, &packed, &tau);
  if (only_r) la_ret_zeros(l, 0);
  else la_ret(l, 0, la_q(b, packed, tau, complete ? m : k));
  hlo_t r = la_triangle(b, la_slice(b, packed, k, n), false, 0);
  la_ret(l, 1, complete ? la_pad(b, r, m, n) : r);
}

static void lower_geqrf(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0), packed, tau;
  la_qr(b, la_in(l, 0), &packed, &tau);
  int64_t dims[TT_MAX_RANK];
  for (int i = 0; i < self->rank; i++) dims[i] = self->dims[i];
  tt_ret(l, 0, hlo_reshape(b, packed, self->rank, dims));
  la_order_columns(l, 0, self->rank);
  dims[self->rank - 2] = tau->dims[1];
  tt_ret(l, 1, hlo_reshape(b, tau, self->rank - 1, dims));
}

static hlo_t tau_in(tt_lower_t* l, int i) {
  hlo_t x = tt_in(l, i);
  int64_t last = x->dims[x->rank - 1], batch = 1;
  for (int d = 0; d < x->rank - 1; d++) batch *= x->dims[d];
  return hlo_reshape(tt_b(l), hlo_convert(tt_b(l), x, tt_opmath(x->dtype)), 2, (const int64_t[]){batch, last});
}

static void lower_householder_product(tt_lower_t* l) {
  hlo_t a = la_in(l, 0);
  la_ret(l, 0, la_q(tt_b(l), a, tau_in(l, 1), a->dims[2]));
}

static void lower_ormqr(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a = la_in(l, 0), other = la_in(l, 2), q = la_q(b, a, tau_in(l, 1), a->dims[1]);
  if (tt_bool(l, 4)) q = la_adjoint(b, q);
  la_ret(l, 0, tt_bool(l, 3) ? hlo_matmul(b, q, other) : hlo_matmul(b, other, q));
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "linalg_qr", .lower = lower_qr},
    {.name = "geqrf", .lower = lower_geqrf, .flags = TT_OP_NO_META},
    {.name = "linalg_householder_product", .lower = lower_householder_product},
    {.name = "ormqr", .lower = lower_ormqr},
};
TT_OP_FAMILY(linalg_qr, k_rows)
