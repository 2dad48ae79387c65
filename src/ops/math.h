// Elementwise functions with PyTorch's values where a plain StableHLO op falls short: branch cuts, signed zeros, poles,
// and the last digits.
//
// Depends on: hlo.
// Threads: as hlo/builder.h.
// |x| is floating or complex, already in the dtype the arithmetic is done in; results have the same dtype unless said.
#ifndef TT_OPS_MATH_H_
#define TT_OPS_MATH_H_
#include "hlo/builder.h"

typedef hlo_t (*tt_math_fn)(hlo_builder_t* b, hlo_t x);

// Constants of x's dtype.
hlo_t tt_num(hlo_builder_t* b, hlo_t like, double value);     // 0-d of |like|'s dtype
hlo_t tt_add_num(hlo_builder_t* b, hlo_t x, double value);
hlo_t tt_mul_num(hlo_builder_t* b, hlo_t x, double value);
hlo_t tt_cmp_num(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, double value);

// Real functions, extended to complex where PyTorch has them.
hlo_t tt_math_acos(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_acosh(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_asin(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_asinh(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_atan(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_atanh(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_cosh(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_sinh(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_sqrt(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_rsqrt(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_reciprocal(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_log2(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_log10(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_exp2(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_digamma(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_erfinv(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_sinc(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_trunc(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_frac(hlo_builder_t* b, hlo_t x);
hlo_t tt_math_sgn(hlo_builder_t* b, hlo_t x);      // any dtype but bool; 0 for NaN; z/|z| for complex
hlo_t tt_math_logaddexp(hlo_builder_t* b, hlo_t x, hlo_t y);
hlo_t tt_math_hypot(hlo_builder_t* b, hlo_t x, hlo_t y);
hlo_t tt_math_xlogy(hlo_builder_t* b, hlo_t x, hlo_t y);
hlo_t tt_math_xlog1py(hlo_builder_t* b, hlo_t x, hlo_t y);
hlo_t tt_math_divide(hlo_builder_t* b, hlo_t x, hlo_t y);
hlo_t tt_math_int_pow(hlo_builder_t* b, hlo_t x, hlo_t e);    // wraps; negative exponents as integer division would
hlo_t tt_math_floor_div(hlo_builder_t* b, hlo_t x, hlo_t y);  // any real dtype: PyTorch's rounding_mode="floor"
hlo_t tt_math_remainder(hlo_builder_t* b, hlo_t x, hlo_t y);  // any real dtype: sign of the divisor
hlo_t tt_math_lerp(hlo_builder_t* b, hlo_t start, hlo_t end, hlo_t weight);

hlo_t tt_math_signbit(hlo_builder_t* b, hlo_t x);                 // i1; any real dtype
hlo_t tt_math_copysign(hlo_builder_t* b, hlo_t magnitude, hlo_t sign);
hlo_t tt_math_isinf(hlo_builder_t* b, hlo_t x);                   // i1; any dtype
hlo_t tt_math_conj(hlo_builder_t* b, hlo_t x);                    // of a real value: itself

#endif  // TT_OPS_MATH_H_
