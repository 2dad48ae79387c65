// Shared by the lowerings that draw: what to draw, and random bits turned into uniforms and normals.
//
// Depends on: ops/op.h.
// Threads: as op.h (a lowering runs on one thread).
#ifndef TT_OPS_RANDOM_H_
#define TT_OPS_RANDOM_H_
#include "ops/op.h"

typedef struct tt_rand_shape_t {
  tt_dtype_t dtype;  // of the result
  tt_dtype_t math;   // real floating dtype of the arithmetic
  int rank;
  const int64_t* dims;
} tt_rand_shape_t;

// Shape of result 0; the first argument's when the result is not known.
tt_rand_shape_t tt_rand_shape(tt_lower_t* l);

// |bits| (u32 for f32, u64 for f64) as |math|:
// multiples of 2^-digits in [0, 1);
hlo_t tt_bits_unit(hlo_builder_t* b, hlo_t bits, tt_dtype_t math, int digits);
// in (0, 1), symmetric about 1/2;
hlo_t tt_bits_unit_open(hlo_builder_t* b, hlo_t bits, tt_dtype_t math);
// standard normal.
hlo_t tt_bits_normal(hlo_builder_t* b, hlo_t bits, tt_dtype_t math);

#endif  // TT_OPS_RANDOM_H_
