// See math.h.
#include "ops/math.h"

#include <float.h>
#include <math.h>

#include "ops/common.h"

static const double kPi = 3.14159265358979323846;
static const double kLn2 = 0.69314718055994530942;
static const double kInvLn2 = 1.44269504088896340736;
static const double kInvLn10 = 0.43429448190325182765;
static const double kHalfSqrtPi = 0.88622692545275801365;

hlo_t tt_num(hlo_builder_t* b, hlo_t like, double value) { return hlo_scalar(b, like->dtype, value); }
hlo_t tt_add_num(hlo_builder_t* b, hlo_t x, double value) { return hlo_add(b, x, tt_num(b, x, value)); }
hlo_t tt_mul_num(hlo_builder_t* b, hlo_t x, double value) {
  if (!tt_is_complex(x->dtype)) return hlo_multiply(b, x, tt_num(b, x, value));
  // By parts: a complex product would make NaN of infinity times the factor's zero.
  return hlo_complex(b, tt_mul_num(b, hlo_real(b, x), value), tt_mul_num(b, hlo_imag(b, x), value));
}
hlo_t tt_cmp_num(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, double value) {
  return hlo_compare(b, cmp, x, tt_num(b, x, value));
}

// ---------------------------------------------------------------- signs and parts
hlo_t tt_math_signbit(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_float(x->dtype)) {
    if (!tt_is_signed_int(x->dtype)) return hlo_compare(b, HLO_NE, x, x);
    return hlo_compare(b, HLO_LT, x, hlo_scalar_int(b, x->dtype, 0));
  }
  // Through f32 whatever the width: the sign survives the conversion, and TPUs cannot look at the bits of an f64.
  hlo_t bits = hlo_bitcast(b, hlo_convert(b, x, TT_F32), TT_I32);
  return hlo_compare(b, HLO_LT, bits, hlo_scalar_int(b, TT_I32, 0));
}

hlo_t tt_math_copysign(hlo_builder_t* b, hlo_t magnitude, hlo_t sign) {
  hlo_t abs = hlo_abs(b, magnitude);
  return hlo_select(b, tt_math_signbit(b, sign), hlo_negate(b, abs), abs);
}

hlo_t tt_math_conj(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_complex(x->dtype)) return x;
  return hlo_complex(b, hlo_real(b, x), hlo_negate(b, hlo_imag(b, x)));
}

static hlo_t is_inf_real(hlo_builder_t* b, hlo_t x) { return tt_cmp_num(b, HLO_EQ, hlo_abs(b, x), INFINITY); }

hlo_t tt_math_isinf(hlo_builder_t* b, hlo_t x) {
  if (tt_is_complex(x->dtype)) return hlo_or_(b, is_inf_real(b, hlo_real(b, x)), is_inf_real(b, hlo_imag(b, x)));
  if (!tt_is_float(x->dtype)) return hlo_compare(b, HLO_NE, x, x);
  return is_inf_real(b, x);
}

hlo_t tt_math_sgn(hlo_builder_t* b, hlo_t x) {
  if (tt_is_integral(x->dtype)) return x->dtype == TT_BOOL ? x : hlo_sign(b, x);
  if (tt_is_complex(x->dtype)) {
    hlo_t abs = hlo_abs(b, x);
    hlo_t unit = hlo_divide(b, x, hlo_complex(b, abs, hlo_zeros_like(b, abs)));
    return hlo_select(b, tt_cmp_num(b, HLO_EQ, abs, 0), tt_num(b, x, 0), unit);
  }
  return hlo_select(b, hlo_is_nan(b, x), tt_num(b, x, 0), hlo_sign(b, x));
}

// ---------------------------------------------------------------- complex branch cuts
// On a cut the two sides differ by the sign of a zero, which StableHLO's decompositions lose. Each function is taken on
// one side only, and the other follows from its symmetry.

// f(conj z) = conj f(z), cut along the real axis.
static hlo_t by_conjugate(hlo_builder_t* b, hlo_unary_t op, hlo_t z) {
  hlo_t im = hlo_imag(b, z);
  hlo_t w = hlo_unary(b, op, hlo_complex(b, hlo_real(b, z), hlo_abs(b, im)));
  hlo_t w_im = hlo_imag(b, w);
  return hlo_complex(b, hlo_real(b, w), hlo_select(b, tt_math_signbit(b, im), hlo_negate(b, w_im), w_im));
}

// f(-conj z) = -conj f(z), cut along the imaginary axis.
static hlo_t by_reflection(hlo_builder_t* b, hlo_unary_t op, hlo_t z) {
  hlo_t re = hlo_real(b, z);
  hlo_t w = hlo_unary(b, op, hlo_complex(b, hlo_abs(b, re), hlo_imag(b, z)));
  hlo_t w_re = hlo_real(b, w);
  return hlo_complex(b, hlo_select(b, tt_math_signbit(b, re), hlo_negate(b, w_re), w_re), hlo_imag(b, w));
}

#define CUT(name, op, how)                                                          \
  hlo_t tt_math_##name(hlo_builder_t* b, hlo_t x) {                                 \
    return tt_is_complex(x->dtype) ? how(b, HLO_##op, x) : hlo_unary(b, HLO_##op, x); \
  }
CUT(acos, acos, by_conjugate)
CUT(acosh, acosh, by_conjugate)
CUT(asin, asin, by_conjugate)
CUT(atanh, atanh, by_conjugate)
CUT(sqrt, sqrt, by_conjugate)
CUT(asinh, asinh, by_reflection)
CUT(atan, atan, by_reflection)
#undef CUT

hlo_t tt_math_rsqrt(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_complex(x->dtype)) return hlo_rsqrt(b, x);
  return tt_math_reciprocal(b, tt_math_sqrt(b, x));
}

hlo_t tt_math_divide(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t q = hlo_divide(b, x, y);
  if (!tt_is_complex(q->dtype)) return q;
  // By zero, whatever its signs: each part over +0.
  hlo_t zero = tt_num(b, hlo_real(b, x), 0);
  hlo_t at_zero = hlo_complex(b, hlo_divide(b, hlo_real(b, x), zero), hlo_divide(b, hlo_imag(b, x), zero));
  return hlo_select(b, tt_cmp_num(b, HLO_EQ, y, 0), at_zero, q);
}

hlo_t tt_math_reciprocal(hlo_builder_t* b, hlo_t x) { return hlo_divide(b, tt_num(b, x, 1), x); }

// ---------------------------------------------------------------- exponentials and logarithms
// exp(|x|)/2 - exp(-|x|)/2 without the overflow of exp below that of sinh, and without cancellation near 0.
static hlo_t sinh_real(hlo_builder_t* b, hlo_t x) {
  hlo_t a = hlo_abs(b, x), half = hlo_exponential(b, tt_mul_num(b, a, 0.5));
  hlo_t large = hlo_multiply(b, tt_mul_num(b, half, 0.5), half);
  hlo_t m = hlo_exponential_minus_one(b, a);
  hlo_t small = tt_mul_num(b, hlo_add(b, m, hlo_divide(b, m, tt_add_num(b, m, 1))), 0.5);
  hlo_t r = hlo_select(b, tt_cmp_num(b, HLO_GT, a, 22), large, small);
  return hlo_select(b, tt_math_signbit(b, x), hlo_negate(b, r), r);
}

static hlo_t cosh_real(hlo_builder_t* b, hlo_t x) {
  hlo_t a = hlo_abs(b, x), half = hlo_exponential(b, tt_mul_num(b, a, 0.5));
  hlo_t large = hlo_multiply(b, tt_mul_num(b, half, 0.5), half);
  hlo_t e = hlo_exponential(b, a);
  hlo_t small = tt_mul_num(b, hlo_add(b, e, hlo_divide(b, tt_num(b, e, 1), e)), 0.5);
  return hlo_select(b, tt_cmp_num(b, HLO_GT, a, 22), large, small);
}

// (s cos y, c sin y); a real argument stays real even where s or c is infinite.
static hlo_t hyperbolic_complex(hlo_builder_t* b, hlo_t z, bool is_sinh) {
  hlo_t x = hlo_real(b, z), y = hlo_imag(b, z), cos_y = hlo_cosine(b, y), sin_y = hlo_sine(b, y);
  hlo_t s = sinh_real(b, x), c = cosh_real(b, x);
  hlo_t re = hlo_multiply(b, is_sinh ? s : c, cos_y), im = hlo_multiply(b, is_sinh ? c : s, sin_y);
  // Far out s and c are exp(|x|)/2 but for a sign, and may overflow where the products do not: multiply in between.
  hlo_t a = hlo_abs(b, x), half = hlo_exponential(b, tt_mul_num(b, a, 0.5)), low = tt_mul_num(b, half, 0.5);
  hlo_t signed_low = tt_math_copysign(b, low, x);
  hlo_t far_re = hlo_multiply(b, hlo_multiply(b, is_sinh ? signed_low : low, cos_y), half);
  hlo_t far_im = hlo_multiply(b, hlo_multiply(b, is_sinh ? low : signed_low, sin_y), half);
  hlo_t is_far = tt_cmp_num(b, HLO_GT, a, 22);
  im = hlo_select(b, is_far, far_im, im);
  return hlo_complex(b, hlo_select(b, is_far, far_re, re), hlo_select(b, tt_cmp_num(b, HLO_EQ, y, 0), y, im));
}

hlo_t tt_math_sinh(hlo_builder_t* b, hlo_t x) {
  return tt_is_complex(x->dtype) ? hyperbolic_complex(b, x, true) : sinh_real(b, x);
}
hlo_t tt_math_cosh(hlo_builder_t* b, hlo_t x) {
  return tt_is_complex(x->dtype) ? hyperbolic_complex(b, x, false) : cosh_real(b, x);
}

hlo_t tt_math_log2(hlo_builder_t* b, hlo_t x) { return tt_mul_num(b, hlo_log(b, x), kInvLn2); }
hlo_t tt_math_log10(hlo_builder_t* b, hlo_t x) { return tt_mul_num(b, hlo_log(b, x), kInvLn10); }

hlo_t tt_math_exp2(hlo_builder_t* b, hlo_t x) {
  // exp(x ln 2) would lose as many digits as x has before the point.
  if (!tt_is_complex(x->dtype)) return hlo_power(b, tt_num(b, x, 2), x);
  return hlo_exponential(b, tt_mul_num(b, x, kLn2));
}

static hlo_t logaddexp_complex(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_broadcast2(b, &x, &y);
  hlo_t xr = hlo_real(b, x), yr = hlo_real(b, y);
  hlo_t x_is_less = hlo_compare(b, HLO_LT, xr, yr);
  hlo_t lo = hlo_select(b, x_is_less, x, y), hi = hlo_select(b, x_is_less, y, x);
  hlo_t sum = hlo_add(b, hi, hlo_log_plus_one(b, hlo_exponential(b, hlo_subtract(b, lo, hi))));
  hlo_t both = hlo_log(b, hlo_add(b, hlo_exponential(b, lo), hlo_exponential(b, hi)));
  hlo_t lo_r = hlo_real(b, lo), hi_r = hlo_real(b, hi);
  // Equal infinite real parts have no difference: -inf wins as it is, +inf adds up the phases.
  hlo_t same_inf = hlo_and_(b, hlo_compare(b, HLO_EQ, lo_r, hi_r), tt_math_isinf(b, hi_r));
  hlo_t at_inf = hlo_select(b, tt_cmp_num(b, HLO_LT, hi_r, 0), hi, both);
  hlo_t nan = hlo_scalar_complex(b, x->dtype, NAN, NAN);
  hlo_t any_nan = hlo_or_(b, hlo_is_nan(b, xr), hlo_is_nan(b, yr));
  return hlo_select(b, any_nan, nan, hlo_select(b, same_inf, at_inf, sum));
}

hlo_t tt_math_logaddexp(hlo_builder_t* b, hlo_t x, hlo_t y) {
  if (tt_is_complex(x->dtype)) return logaddexp_complex(b, x, y);
  hlo_t delta = hlo_negate(b, hlo_abs(b, hlo_subtract(b, x, y)));
  hlo_t sum = hlo_add(b, hlo_maximum(b, x, y), hlo_log_plus_one(b, hlo_exponential(b, delta)));
  hlo_t same_inf = hlo_and_(b, hlo_compare(b, HLO_EQ, x, y), tt_math_isinf(b, x));
  return hlo_select(b, same_inf, x, sum);
}

hlo_t tt_math_xlogy(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t r = hlo_select(b, tt_cmp_num(b, HLO_EQ, x, 0), tt_num(b, x, 0), hlo_multiply(b, x, hlo_log(b, y)));
  return hlo_select(b, hlo_is_nan(b, y), tt_num(b, x, NAN), r);
}

hlo_t tt_math_xlog1py(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t r = hlo_select(b, tt_cmp_num(b, HLO_EQ, x, 0), tt_num(b, x, 0), hlo_multiply(b, x, hlo_log_plus_one(b, y)));
  return hlo_select(b, hlo_is_nan(b, y), tt_num(b, x, NAN), r);
}

// ---------------------------------------------------------------- special
// The compiler's own is off by 1e-4 in f32. Below 10 ten steps up, psi(y) = psi(y + 10) - 1/y - ... - 1/(y + 9), then
// Stirling's series; below 0 the reflection formula.
hlo_t tt_math_digamma(hlo_builder_t* b, hlo_t x) {
  enum { STEPS = 10 };
  static const double k_series[] = {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12};
  hlo_t negative = tt_cmp_num(b, HLO_LT, x, 0), one = tt_num(b, x, 1);
  hlo_t y = hlo_select(b, negative, hlo_subtract(b, one, x), x), low = tt_cmp_num(b, HLO_LT, y, STEPS);
  // The sum of the steps as one fraction.
  hlo_t at = hlo_select(b, low, y, one), above = one, below = at;
  for (int k = 1; k < STEPS; k++) {
    hlo_t next = tt_add_num(b, at, k);
    above = hlo_add(b, hlo_multiply(b, above, next), below);
    below = hlo_multiply(b, below, next);
  }
  hlo_t steps = hlo_select(b, low, hlo_divide(b, above, below), tt_num(b, x, 0));
  y = hlo_select(b, low, tt_add_num(b, y, STEPS), y);
  hlo_t z = hlo_divide(b, one, hlo_multiply(b, y, y)), tail = tt_num(b, x, k_series[0]);
  for (size_t k = 1; k < sizeof k_series / sizeof k_series[0]; k++)
    tail = tt_add_num(b, hlo_multiply(b, tail, z), k_series[k]);
  tail = hlo_add(b, hlo_multiply(b, tail, z), hlo_divide(b, tt_num(b, x, 0.5), y));
  hlo_t value = hlo_subtract(b, hlo_subtract(b, hlo_log(b, y), tail), steps);
  // pi / tan(pi r), r the part of x after the point: exact, and so is which of sine and cosine is small.
  hlo_t whole = hlo_round_nearest_even(b, x), turn = tt_mul_num(b, hlo_subtract(b, x, whole), kPi);
  hlo_t turned = tt_mul_num(b, hlo_divide(b, hlo_cosine(b, turn), hlo_sine(b, turn)), kPi);
  hlo_t nan = tt_num(b, x, NAN);
  hlo_t left = hlo_select(b, hlo_compare(b, HLO_EQ, x, whole), nan, hlo_subtract(b, value, turned));
  value = hlo_select(b, negative, left, value);
  // PyTorch's pole at 0 has a sign, the others have none.
  hlo_t pole = tt_math_copysign(b, tt_num(b, x, INFINITY), hlo_negate(b, x));
  return hlo_select(b, tt_cmp_num(b, HLO_EQ, x, 0), pole, value);
}

hlo_t tt_math_erfinv(hlo_builder_t* b, hlo_t x) {
  hlo_t y = hlo_erf_inv(b, x);
  if (x->dtype != TT_F32) return y;
  // The f32 polynomial is off by 5e-6 in the tails: one Newton step against erfc, where 1-|x| is exact.
  hlo_t a = hlo_abs(b, y), ax = hlo_abs(b, x);
  hlo_t miss = hlo_subtract(b, hlo_erfc(b, a), hlo_subtract(b, tt_num(b, x, 1), ax));
  hlo_t step = hlo_multiply(b, miss, tt_mul_num(b, hlo_exponential(b, hlo_multiply(b, a, a)), kHalfSqrtPi));
  hlo_t better = tt_math_copysign(b, hlo_add(b, a, step), y);
  hlo_t tail = hlo_and_(b, tt_cmp_num(b, HLO_GT, ax, 0.5), tt_cmp_num(b, HLO_LT, ax, 1));
  return hlo_select(b, tail, better, y);
}

hlo_t tt_math_sinc(hlo_builder_t* b, hlo_t x) {
  hlo_t px = tt_mul_num(b, x, kPi);
  return hlo_select(b, tt_cmp_num(b, HLO_EQ, x, 0), tt_num(b, x, 1), hlo_divide(b, hlo_sine(b, px), px));
}

// ---------------------------------------------------------------- rounding and division
hlo_t tt_math_trunc(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_float(x->dtype)) return x;
  return hlo_select(b, tt_math_signbit(b, x), hlo_ceil(b, x), hlo_floor(b, x));
}

hlo_t tt_math_frac(hlo_builder_t* b, hlo_t x) { return hlo_subtract(b, x, tt_math_trunc(b, x)); }

static hlo_t signs_differ(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t zero = tt_num(b, x, 0);
  return hlo_compare(b, HLO_NE, hlo_compare(b, HLO_LT, x, zero), hlo_compare(b, HLO_LT, y, zero));
}

static hlo_t floor_div_float(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t zero = tt_num(b, x, 0), quotient = hlo_divide(b, x, y);
  hlo_t mod = hlo_remainder(b, x, y);
  hlo_t div = hlo_divide(b, hlo_subtract(b, x, mod), y);
  hlo_t down = hlo_and_(b, hlo_compare(b, HLO_NE, mod, zero), signs_differ(b, y, mod));
  div = hlo_select(b, down, tt_add_num(b, div, -1), div);
  // |div| is whole up to rounding: snap to the nearest whole number.
  hlo_t whole = hlo_floor(b, div);
  hlo_t up = tt_cmp_num(b, HLO_GT, hlo_subtract(b, div, whole), 0.5);
  whole = hlo_select(b, up, tt_add_num(b, whole, 1), whole);
  hlo_t signed_zero = tt_math_copysign(b, hlo_zeros_like(b, quotient), quotient);
  whole = hlo_select(b, hlo_compare(b, HLO_EQ, div, zero), signed_zero, whole);
  return hlo_select(b, hlo_compare(b, HLO_EQ, y, zero), quotient, whole);
}

// By squaring, on whole arrays, until no exponent has bits left. (The compiler's own integer power looks at six bits.)
hlo_t tt_math_int_pow(hlo_builder_t* b, hlo_t x, hlo_t e) {
  hlo_broadcast2(b, &x, &e);
  hlo_t zero = tt_num(b, x, 0), one = tt_num(b, x, 1);
  hlo_t negative = tt_is_unsigned(x->dtype) ? NULL : hlo_compare(b, HLO_LT, e, zero);
  hlo_t init[3] = {hlo_full_like(b, x, 1), x, negative ? hlo_select(b, negative, zero, e) : e}, out[3];
  hlo_region_t* cond = hlo_region_begin(b);
  for (int i = 0; i < 2; i++) hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t rest = hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t more = hlo_reduce_all(b, tt_cmp_num(b, HLO_NE, rest, 0), HLO_R_OR);
  hlo_region_end(b, cond, 1, &more);
  hlo_region_t* body = hlo_region_begin(b);
  hlo_t s[3];
  for (int i = 0; i < 3; i++) s[i] = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  hlo_t bit = hlo_scalar_int(b, x->dtype, 1);
  hlo_t odd = hlo_compare(b, HLO_NE, hlo_and_(b, s[2], bit), tt_num(b, x, 0));
  hlo_t next[3] = {hlo_select(b, odd, hlo_multiply(b, s[0], s[1]), s[0]), hlo_multiply(b, s[1], s[1]),
                   hlo_shift_right_logical(b, s[2], bit)};
  hlo_region_end(b, body, 3, next);
  hlo_while(b, 3, init, cond, body, out);
  if (!negative) return out[0];
  // To a negative power only 1 and -1 do not vanish.
  hlo_t is_odd = hlo_compare(b, HLO_NE, hlo_and_(b, e, one), zero);
  hlo_t minus_one = tt_num(b, x, -1);
  hlo_t flipped = hlo_select(b, hlo_compare(b, HLO_EQ, x, minus_one), hlo_select(b, is_odd, minus_one, one), zero);
  hlo_t small = hlo_select(b, hlo_compare(b, HLO_EQ, x, one), one, flipped);
  return hlo_select(b, negative, small, out[0]);
}

hlo_t tt_math_floor_div(hlo_builder_t* b, hlo_t x, hlo_t y) {
  if (tt_is_float(x->dtype)) return floor_div_float(b, x, y);
  hlo_t q = hlo_divide(b, x, y);
  if (!tt_is_signed_int(x->dtype)) return q;
  hlo_t rest = hlo_compare(b, HLO_NE, hlo_multiply(b, q, y), x);
  hlo_t down = hlo_and_(b, rest, signs_differ(b, x, y));
  return hlo_select(b, down, hlo_subtract(b, q, hlo_scalar_int(b, q->dtype, 1)), q);
}

hlo_t tt_math_remainder(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t mod = hlo_remainder(b, x, y);
  if (tt_is_unsigned(x->dtype)) return mod;
  hlo_t wrong = hlo_and_(b, hlo_compare(b, HLO_NE, mod, tt_num(b, x, 0)), signs_differ(b, y, mod));
  return hlo_select(b, wrong, hlo_add(b, mod, y), mod);
}

hlo_t tt_math_hypot(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t ax = hlo_abs(b, x), ay = hlo_abs(b, y);
  hlo_t hi = hlo_maximum(b, ax, ay), lo = hlo_minimum(b, ax, ay);
  hlo_t ratio = hlo_divide(b, lo, hi);
  hlo_t r = hlo_multiply(b, hi, hlo_sqrt(b, tt_add_num(b, hlo_multiply(b, ratio, ratio), 1)));
  r = hlo_select(b, tt_cmp_num(b, HLO_EQ, hi, 0), hi, r);
  hlo_t any_inf = hlo_or_(b, tt_math_isinf(b, x), tt_math_isinf(b, y));  // beats NaN, as in C
  return hlo_select(b, any_inf, tt_num(b, x, INFINITY), r);
}

hlo_t tt_math_lerp(hlo_builder_t* b, hlo_t start, hlo_t end, hlo_t weight) {
  hlo_t diff = hlo_subtract(b, end, start);
  hlo_t one = tt_num(b, weight, 1);
  hlo_t near_start = tt_cmp_num(b, HLO_LT, hlo_abs(b, weight), 0.5);
  hlo_t from_start = hlo_add(b, start, hlo_multiply(b, weight, diff));
  hlo_t from_end = hlo_subtract(b, end, hlo_multiply(b, diff, hlo_subtract(b, one, weight)));
  return hlo_select(b, near_start, from_start, from_end);
}
