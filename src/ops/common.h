// Small helpers that lowerings of every family share: dtype promotion and the reading of operands.
//
// Depends on: ops/op.h.
// Threads: as op.h (a lowering runs on one thread).
// tt_in_as, tt_operand and tt_reduce_dims are declared in op.h and implemented beside these.
#ifndef TT_OPS_COMMON_H_
#define TT_OPS_COMMON_H_
#include "ops/op.h"

// PyTorch's promotion of two tensor dtypes (torch.promote_types). TT_DT_NONE is neutral.
tt_dtype_t tt_promote(tt_dtype_t a, tt_dtype_t b);

// PyTorch's result type of |n| arguments, tensors or Scalars: a 0-d tensor counts only when its category (bool, integer,
// floating, complex) is above that of the tensors with dims, a Scalar only when above both. None is skipped. For
// results that are promoted, tt_out_dtype already says so; this is for ops that compare or that return another dtype.
tt_dtype_t tt_promote_args(tt_lower_t* l, int n, const int* args);

// The dtype that arguments 0..n-1 are computed in: what tensors with dims promote to. In-place and out= forms may expect
// a result that is narrower or wider, into which PyTorch casts afterwards; a result of another category (int / int is
// float) is the op's own choice, and computed in, as it is when no tensor has dims. For f16 and f8 see tt_opmath.
tt_dtype_t tt_common_dtype(tt_lower_t* l, int n);

// Real dtype of a complex one's parts (others unchanged), and complex dtype of a floating one's pairs.
tt_dtype_t tt_real_dtype(tt_dtype_t dtype);
tt_dtype_t tt_complex_dtype(tt_dtype_t dtype);

// Floating dtype that an integer or bool argument is computed in (PyTorch's int-to-float ops); others unchanged.
tt_dtype_t tt_float_dtype(tt_dtype_t dtype);

// Bits of a dtype's floating significand, the hidden one included: 24 for f32. 0 for integers.
int tt_mantissa_bits(tt_dtype_t dtype);

// Dtype the arithmetic of result |i| is done in.
static inline tt_dtype_t tt_math_dtype(tt_lower_t* l, int i) { return tt_opmath(tt_out_dtype(l, i)); }

// Value broadcast to the dims expected of result |i|; unchanged when they are unknown.
hlo_t tt_to_out_dims(tt_lower_t* l, int i, hlo_t x);

// x broadcast to y's dims.
hlo_t tt_like(hlo_builder_t* b, hlo_t x, hlo_t y);

// Rounds to |dtype| and comes back: what PyTorch's value would be after being stored in |dtype|.
hlo_t tt_round_to(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype);

#endif  // TT_OPS_COMMON_H_
