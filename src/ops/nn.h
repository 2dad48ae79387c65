// Helpers that the neural-network families share: contractions with a wide accumulator, spatial arguments, statistics.
//
// Depends on: ops/op.h, ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
#ifndef TT_OPS_NN_H_
#define TT_OPS_NN_H_
#include "ops/common.h"

// Contraction whose sums are kept in the opmath dtype of the inputs (f32 for f16 and bf16): the result has that dtype.
hlo_t tt_dot(tt_lower_t* l, hlo_t lhs, hlo_t rhs, int n_batch, const int64_t* lhs_batch, const int64_t* rhs_batch,
             int n_contract, const int64_t* lhs_contract, const int64_t* rhs_contract);
// [m, k] x [k, n], accumulated as tt_dot.
hlo_t tt_mm(tt_lower_t* l, hlo_t lhs, hlo_t rhs);

// |n| spatial values of int list |arg| (stride, padding, kernel size…): one value stands for all of them, an empty or
// missing list for |missing| (NULL: fails).
void tt_spatial(tt_lower_t* l, int arg, int n, const int64_t* missing, int64_t out[]);

// 1-D |v| broadcast along dim |dim| of |like|'s dims.
hlo_t tt_along(hlo_builder_t* b, hlo_t v, hlo_t like, int dim);
// |v|, whose dims are those of |like| without the |n| |dims|, broadcast back over them.
hlo_t tt_over(hlo_builder_t* b, hlo_t v, hlo_t like, int n, const int64_t* dims);
// Product of the sizes of |dims|.
int64_t tt_count_over(hlo_t x, int n, const int64_t* dims);
// Mean and biased variance over |dims|, which are dropped; two passes, so that a large mean costs no digits.
void tt_moments(hlo_builder_t* b, hlo_t x, int n, const int64_t* dims, hlo_t* out_mean, hlo_t* out_var);
// x scaled by a host constant.
hlo_t tt_times(hlo_builder_t* b, hlo_t x, double factor);
// Complex conjugate; real values unchanged.
hlo_t tt_conj(hlo_builder_t* b, hlo_t x);
// i1 of |dims|, true with probability |keep| (0-d, f32 or f64), from |bits| of u32.
hlo_t tt_keep_mask(hlo_builder_t* b, hlo_t bits, hlo_t keep);
// |x| over its last |n| dims flattened to one; and the leading ones to one.
hlo_t tt_flat_planes(hlo_builder_t* b, hlo_t x, int n);
// tt_ret; where the result's type is unknown it gets the dtype of tensor argument |arg|, whatever it was computed in.
void tt_ret_like(tt_lower_t* l, int i, hlo_t value, int arg);
// True when bit |i| of bool-list argument |arg| is set.
bool tt_mask_bit(tt_lower_t* l, int arg, int i);

#endif  // TT_OPS_NN_H_
