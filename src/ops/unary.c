// Lowerings of one tensor argument, elementwise: roundings, exponentials, trigonometry, classification.
//
// Depends on: ops/op.h, ops/math.h.
// Threads: as op.h.
#include <float.h>
#include <math.h>

#include "ops/common.h"
#include "ops/math.h"

static const double kPi = 3.14159265358979323846;

static hlo_t deg2rad(hlo_builder_t* b, hlo_t x) { return tt_mul_num(b, x, kPi / 180.0); }
static hlo_t rad2deg(hlo_builder_t* b, hlo_t x) { return tt_mul_num(b, x, 180.0 / kPi); }
// X(name, function). Functions of a floating or complex value; integers are converted first.
#define FLOAT_FNS(X)                                                                                            \
  X(acos, tt_math_acos) X(acosh, tt_math_acosh) X(asin, tt_math_asin) X(asinh, tt_math_asinh)                   \
  X(atan, tt_math_atan) X(atanh, tt_math_atanh) X(cos, hlo_cosine) X(cosh, tt_math_cosh)                        \
  X(sin, hlo_sine) X(sinh, tt_math_sinh) X(tan, hlo_tan) X(tanh, hlo_tanh) X(exp, hlo_exponential)              \
  X(exp2, tt_math_exp2) X(expm1, hlo_exponential_minus_one) X(log, hlo_log) X(log10, tt_math_log10)             \
  X(log1p, hlo_log_plus_one) X(log2, tt_math_log2) X(sqrt, tt_math_sqrt) X(rsqrt, tt_math_rsqrt)                \
  X(reciprocal, tt_math_reciprocal) X(sigmoid, hlo_logistic) X(erf, hlo_erf) X(erfc, hlo_erfc)                  \
  X(erfinv, tt_math_erfinv) X(lgamma, hlo_lgamma) X(digamma, tt_math_digamma) X(sinc, tt_math_sinc)             \
  X(deg2rad, deg2rad) X(rad2deg, rad2deg)
// Roundings: integers are whole already.
#define ROUND_FNS(X) X(ceil, hlo_ceil) X(floor, hlo_floor) X(round, hlo_round_nearest_even) X(trunc, tt_math_trunc)
// Functions of any dtype that keep it.
#define SAME_FNS(X)                                                                                             \
  X(neg, hlo_negate) X(sign, tt_math_sgn) X(sgn, tt_math_sgn) X(frac, tt_math_frac)                             \
  X(conj_physical, tt_math_conj) X(_conj_physical, tt_math_conj)

enum {
#define X(name, fn) FN_##name,
  FLOAT_FNS(X) ROUND_FNS(X) SAME_FNS(X)
#undef X
};
static const tt_math_fn k_fns[] = {
#define X(name, fn) fn,
    FLOAT_FNS(X) ROUND_FNS(X) SAME_FNS(X)
#undef X
};
static hlo_t apply(tt_lower_t* l, hlo_t x) { return k_fns[tt_row(l)->kind](tt_b(l), x); }

static hlo_t in_math(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  tt_dtype_t dtype = tt_is_complex(x->dtype) ? x->dtype : tt_math_dtype(l, 0);
  return hlo_convert(tt_b(l), x, dtype);
}

static void lower_float(tt_lower_t* l) {
  hlo_t x = in_math(l);
  x = hlo_convert(tt_b(l), x, tt_float_dtype(x->dtype));
  tt_ret(l, 0, apply(l, x));
}

static void lower_round(tt_lower_t* l) {
  hlo_t x = in_math(l);
  tt_ret(l, 0, tt_is_float(x->dtype) ? apply(l, x) : x);
}

static void lower_same(tt_lower_t* l) { tt_ret(l, 0, apply(l, in_math(l))); }

static void lower_abs(tt_lower_t* l) {
  hlo_t x = in_math(l);
  bool has_sign = !tt_is_unsigned(x->dtype) && x->dtype != TT_BOOL;
  tt_ret(l, 0, has_sign ? hlo_abs(tt_b(l), x) : x);
}

static void lower_round_decimals(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = in_math(l);
  int64_t decimals = tt_int(l, 1);
  if (!tt_is_float(x->dtype)) {
    tt_ret(l, 0, x);
    return;
  }
  double power = pow(10.0, fabs((double)decimals));
  hlo_t scaled = decimals >= 0 ? tt_mul_num(b, x, power) : hlo_divide(b, x, tt_num(b, x, power));
  hlo_t whole = hlo_round_nearest_even(b, scaled);
  tt_ret(l, 0, decimals >= 0 ? hlo_divide(b, whole, tt_num(b, x, power)) : tt_mul_num(b, whole, power));
}

// ---------------------------------------------------------------- classification
typedef enum class_t {
  CLASS_NAN, CLASS_INF, CLASS_POSINF, CLASS_NEGINF, CLASS_SIGNBIT, CLASS_NOT
} class_t;

static void lower_class(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), r = x;
  // f8 has no arithmetic of its own.
  if (tt_is_float(x->dtype)) x = hlo_convert(b, x, tt_opmath(x->dtype));
  bool is_float = tt_is_float(x->dtype);
  switch ((class_t)tt_row(l)->kind) {
    case CLASS_NAN: r = hlo_is_nan(b, x); break;
    case CLASS_INF: r = tt_math_isinf(b, x); break;
    case CLASS_POSINF: r = is_float ? tt_cmp_num(b, HLO_EQ, x, INFINITY) : hlo_compare(b, HLO_NE, x, x); break;
    case CLASS_NEGINF: r = is_float ? tt_cmp_num(b, HLO_EQ, x, -INFINITY) : hlo_compare(b, HLO_NE, x, x); break;
    case CLASS_SIGNBIT: r = tt_math_signbit(b, x); break;
    case CLASS_NOT: r = hlo_not_(b, hlo_convert(b, x, TT_BOOL)); break;
  }
  tt_ret(l, 0, r);
}

static void lower_bitwise_not(tt_lower_t* l) { tt_ret(l, 0, hlo_not_(tt_b(l), tt_in(l, 0))); }

static void lower_angle(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  if (tt_is_complex(x->dtype)) {
    tt_ret(l, 0, hlo_atan2(b, hlo_imag(b, x), hlo_real(b, x)));
    return;
  }
  x = hlo_convert(b, x, tt_float_dtype(tt_math_dtype(l, 0)));
  hlo_t r = hlo_select(b, tt_cmp_num(b, HLO_LT, x, 0), tt_num(b, x, kPi), tt_num(b, x, 0));
  tt_ret(l, 0, hlo_select(b, hlo_is_nan(b, x), x, r));
}

// ---------------------------------------------------------------- nan_to_num
static double max_finite(tt_dtype_t dtype) {
  switch (dtype) {
    case TT_F64: return DBL_MAX;
    case TT_F16: return 65504.0;
    case TT_BF16: return 3.3895313892515355e38;
    default: return FLT_MAX;
  }
}

static hlo_t nan_to_num(tt_lower_t* l, hlo_t x) {
  hlo_builder_t* b = tt_b(l);
  double max = max_finite(x->dtype);
  hlo_t nan = tt_has(l, 1) ? tt_scalar(l, 1, x->dtype) : tt_num(b, x, 0);
  hlo_t posinf = tt_has(l, 2) ? tt_scalar(l, 2, x->dtype) : tt_num(b, x, max);
  hlo_t neginf = tt_has(l, 3) ? tt_scalar(l, 3, x->dtype) : tt_num(b, x, -max);
  hlo_t r = hlo_select(b, hlo_is_nan(b, x), nan, x);
  r = hlo_select(b, tt_cmp_num(b, HLO_EQ, x, INFINITY), posinf, r);
  return hlo_select(b, tt_cmp_num(b, HLO_EQ, x, -INFINITY), neginf, r);
}

static void lower_nan_to_num(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  if (tt_is_complex(x->dtype)) {
    hlo_t re = nan_to_num(l, hlo_real(tt_b(l), x)), im = nan_to_num(l, hlo_imag(tt_b(l), x));
    x = hlo_complex(tt_b(l), re, im);
  } else if (tt_is_float(x->dtype)) {
    x = nan_to_num(l, x);
  }
  tt_ret(l, 0, x);
}

// ---------------------------------------------------------------- frexp
// On the bits, so that subnormals (flushed by arithmetic) come out right.
static void lower_frexp(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  bool wide = x->dtype == TT_F64;
  tt_dtype_t f = wide ? TT_F64 : TT_F32, u = wide ? TT_U64 : TT_U32, s = wide ? TT_I64 : TT_I32;
  int digits = wide ? 52 : 23, width = wide ? 64 : 32, bias = wide ? 1022 : 126;
  int64_t exp_mask = wide ? 0x7ff : 0xff, frac_mask = ((int64_t)1 << digits) - 1;
  hlo_t bits = hlo_bitcast(b, hlo_convert(b, x, f), u);
#define NUM(v) hlo_scalar_int(b, u, (v))
  hlo_t frac = hlo_and_(b, bits, NUM(frac_mask));
  hlo_t sign = hlo_shift_left(b, hlo_shift_right_logical(b, bits, NUM(width - 1)), NUM(width - 1));
  hlo_t exp = hlo_and_(b, hlo_shift_right_logical(b, bits, NUM(digits)), NUM(exp_mask));
  hlo_t zeros = hlo_count_leading_zeros(b, frac);
  hlo_t is_small = hlo_compare(b, HLO_EQ, exp, NUM(0)), no_frac = hlo_compare(b, HLO_EQ, frac, NUM(0));
  // A subnormal's leading digit becomes the hidden one. No fraction: the shift is unused, keep it in range.
  hlo_t shift = hlo_select(b, no_frac, NUM(0), hlo_subtract(b, zeros, NUM(width - 1 - digits)));
  hlo_t small_frac = hlo_and_(b, hlo_shift_left(b, frac, shift), NUM(frac_mask));
  hlo_t digits_of = hlo_select(b, is_small, small_frac, frac);
  hlo_t mantissa = hlo_or_(b, sign, hlo_or_(b, NUM((int64_t)bias << digits), digits_of));
#undef NUM
  hlo_t small_exp = hlo_subtract(b, hlo_scalar_int(b, s, width - bias - digits), hlo_convert(b, zeros, s));
  hlo_t big_exp = hlo_subtract(b, hlo_convert(b, exp, s), hlo_scalar_int(b, s, bias));
  hlo_t is_zero = hlo_and_(b, is_small, no_frac);
  hlo_t is_special = hlo_or_(b, is_zero, hlo_compare(b, HLO_EQ, exp, hlo_scalar_int(b, u, exp_mask)));
  hlo_t exponent = hlo_select(b, is_special, hlo_scalar_int(b, s, 0), hlo_select(b, is_small, small_exp, big_exp));
  hlo_t keep = hlo_convert(b, x, f);
  tt_ret(l, 0, hlo_select(b, is_special, keep, hlo_bitcast(b, mantissa, f)));
  tt_ret(l, 1, hlo_convert(b, exponent, TT_I32));
}

// The Bessel function from its exponentially scaled sister.
static void lower_i0(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = hlo_convert(b, tt_in(l, 0), tt_float_dtype(tt_math_dtype(l, 0)));
  tt_sub_arg_t arg = {.value = x, .from_arg = -1, .from_elem = -1};
  tt_type_t type = {.dtype = x->dtype, .rank = x->rank, .dims = x->dims};
  hlo_t scaled = tt_sub(l, "special_i0e", 1, &arg, &type);
  tt_ret(l, 0, hlo_multiply(b, hlo_exponential(b, hlo_abs(b, x)), scaled));
}

static const tt_op_row_t k_rows[] = {
#define X(op, fn) {.name = #op, .lower = lower_float, .kind = FN_##op, .flags = TT_OP_POINTWISE},
    FLOAT_FNS(X)
#undef X
#define X(op, fn) {.name = #op, .lower = lower_round, .kind = FN_##op, .flags = TT_OP_POINTWISE},
    ROUND_FNS(X)
#undef X
#define X(op, fn) {.name = #op, .lower = lower_same, .kind = FN_##op, .flags = TT_OP_POINTWISE},
    SAME_FNS(X)
#undef X
    {.name = "abs", .lower = lower_abs, .flags = TT_OP_POINTWISE},
    {.name = "round.decimals", .lower = lower_round_decimals, .flags = TT_OP_POINTWISE},
    {.name = "isnan", .lower = lower_class, .kind = CLASS_NAN, .flags = TT_OP_POINTWISE},
    {.name = "isinf", .lower = lower_class, .kind = CLASS_INF, .flags = TT_OP_POINTWISE},
    {.name = "isposinf", .lower = lower_class, .kind = CLASS_POSINF, .flags = TT_OP_POINTWISE},
    {.name = "isneginf", .lower = lower_class, .kind = CLASS_NEGINF, .flags = TT_OP_POINTWISE},
    {.name = "signbit", .lower = lower_class, .kind = CLASS_SIGNBIT, .flags = TT_OP_POINTWISE},
    {.name = "logical_not", .lower = lower_class, .kind = CLASS_NOT, .flags = TT_OP_POINTWISE},
    {.name = "bitwise_not", .lower = lower_bitwise_not, .flags = TT_OP_POINTWISE},
    {.name = "angle", .lower = lower_angle, .flags = TT_OP_POINTWISE},
    {.name = "nan_to_num", .lower = lower_nan_to_num, .flags = TT_OP_POINTWISE},
    {.name = "frexp.Tensor", .lower = lower_frexp, .flags = TT_OP_POINTWISE},
    {.name = "i0", .lower = lower_i0, .flags = TT_OP_POINTWISE},
};
TT_OP_FAMILY(unary, k_rows)
