// Lowerings of two operands, elementwise: arithmetic, division, powers, comparisons, logic, bits.
//
// Depends on: ops/op.h, ops/math.h.
// Threads: as op.h.
// The Scalar overloads share the Tensor ones' lowerings: an operand is whichever the argument is.
#include <math.h>

#include "ops/common.h"
#include "ops/math.h"

typedef hlo_t (*binary_fn)(hlo_builder_t* b, hlo_t x, hlo_t y);

// A number is rounded to a half type before it is used beside it, as on the CPU, unless the row says that it stays wide.
static hlo_t operand(tt_lower_t* l, int i, tt_dtype_t dtype) {
  hlo_t x = tt_operand(l, i, dtype);
  if (tt_is_tensor(l, i) || dtype != TT_F32 || (tt_row(l)->flags & TT_OP_WIDE_NUMBERS)) return x;
  tt_dtype_t common = tt_common_dtype(l, 2);
  return common == TT_BF16 || common == TT_F16 ? tt_round_to(tt_b(l), x, common) : x;
}

static void fail_on_zero(tt_lower_t* l, hlo_t divisor, hlo_t result) {
  if (!tt_is_integral(divisor->dtype) || hlo_numel(result) == 0) return;
  hlo_builder_t* b = tt_b(l);
  hlo_t is_zero = hlo_compare(b, HLO_EQ, divisor, tt_num(b, divisor, 0));
  tt_check(l, hlo_reduce_all(b, is_zero, HLO_R_OR), NULL, TT_INVALID_ARGUMENT, "ZeroDivisionError");
}

// ---------------------------------------------------------------- sums
typedef enum sum_t { SUM_ADD, SUM_SUB, SUM_RSUB } sum_t;

static void lower_sum(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_opmath(tt_common_dtype(l, 2));
  sum_t kind = (sum_t)tt_row(l)->kind;
  hlo_t x = operand(l, 0, dtype), y = operand(l, 1, dtype);
  hlo_t* scaled = kind == SUM_RSUB ? &x : &y;
  bool has_factor = tt_has(l, 2) && !tt_scalar_is_one(l, 2);
  if (dtype == TT_BOOL) {  // only add reaches bool
    if (has_factor) y = hlo_and_(b, y, tt_scalar(l, 2, dtype));
    tt_ret(l, 0, hlo_or_(b, x, y));
    return;
  }
  if (has_factor) *scaled = hlo_multiply(b, *scaled, operand(l, 2, dtype));
  tt_ret(l, 0, kind == SUM_ADD ? hlo_add(b, x, y) : kind == SUM_SUB ? hlo_subtract(b, x, y) : hlo_subtract(b, y, x));
}

// ---------------------------------------------------------------- arithmetic in the result's dtype
static hlo_t mul(hlo_builder_t* b, hlo_t x, hlo_t y) {
  return x->dtype == TT_BOOL ? hlo_and_(b, x, y) : hlo_multiply(b, x, y);
}
static hlo_t ldexp_(hlo_builder_t* b, hlo_t x, hlo_t y) { return hlo_multiply(b, x, tt_math_exp2(b, y)); }

static hlo_t logaddexp2_(hlo_builder_t* b, hlo_t x, hlo_t y) {
  const double ln2 = 0.69314718055994530942;
  if (tt_is_complex(x->dtype))
    return tt_mul_num(b, tt_math_logaddexp(b, tt_mul_num(b, x, ln2), tt_mul_num(b, y, ln2)), 1 / ln2);
  hlo_t delta = hlo_negate(b, hlo_abs(b, hlo_subtract(b, x, y)));
  hlo_t tail = tt_mul_num(b, hlo_log_plus_one(b, tt_math_exp2(b, delta)), 1 / ln2);
  hlo_t same_inf = hlo_and_(b, hlo_compare(b, HLO_EQ, x, y), tt_math_isinf(b, x));
  return hlo_select(b, same_inf, x, hlo_add(b, hlo_maximum(b, x, y), tail));
}

// Functions of floating values; integers are converted first.
#define FLOAT2_FNS(X)                                                                                   \
  X(div, tt_math_divide) X(atan2, hlo_atan2) X(hypot, tt_math_hypot) X(copysign, tt_math_copysign)          \
  X(logaddexp, tt_math_logaddexp) X(logaddexp2, logaddexp2_) X(xlogy, tt_math_xlogy)                    \
  X(xlog1py, tt_math_xlog1py) X(ldexp, ldexp_)

enum {
  FN_mul,
#define X(name, fn) FN_##name,
  FLOAT2_FNS(X)
#undef X
};
static const binary_fn k_fns[] = {
    mul,
#define X(name, fn) fn,
    FLOAT2_FNS(X)
#undef X
};

static void lower_math(tt_lower_t* l) {
  tt_dtype_t dtype = tt_opmath(tt_common_dtype(l, 2));
  if (tt_row(l)->kind != FN_mul) dtype = tt_float_dtype(dtype);
  tt_ret(l, 0, k_fns[tt_row(l)->kind](tt_b(l), operand(l, 0, dtype), operand(l, 1, dtype)));
}

// ---------------------------------------------------------------- division with rounding
typedef enum quotient_t { QUOTIENT_FLOOR, QUOTIENT_TRUNC, QUOTIENT_REMAINDER, QUOTIENT_FMOD } quotient_t;

static void divide_as(tt_lower_t* l, quotient_t kind) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_opmath(tt_common_dtype(l, 2));
  hlo_t x = operand(l, 0, dtype), y = operand(l, 1, dtype), r = x;
  switch (kind) {
    case QUOTIENT_FLOOR: r = tt_math_floor_div(b, x, y); break;
    case QUOTIENT_TRUNC: r = tt_math_trunc(b, hlo_divide(b, x, y)); break;
    case QUOTIENT_REMAINDER: r = tt_math_remainder(b, x, y); break;
    case QUOTIENT_FMOD: r = hlo_remainder(b, x, y); break;
  }
  fail_on_zero(l, y, r);
  tt_ret(l, 0, r);
}

static void lower_quotient(tt_lower_t* l) { divide_as(l, (quotient_t)tt_row(l)->kind); }

static void lower_div_mode(tt_lower_t* l) {
  const char* mode = tt_str(l, 2);
  if (mode) {
    divide_as(l, mode[0] == 'f' ? QUOTIENT_FLOOR : QUOTIENT_TRUNC);
    return;
  }
  tt_dtype_t dtype = tt_float_dtype(tt_opmath(tt_common_dtype(l, 2)));
  tt_ret(l, 0, tt_math_divide(tt_b(l), operand(l, 0, dtype), operand(l, 1, dtype)));
}

// ---------------------------------------------------------------- powers
// The exponents that programs really use cost a product or a root instead of a power; which one it is, is known only at
// run time, so that every exponent shares the program. Small arrays are not worth the branch.
static hlo_t pow_by_scalar(hlo_builder_t* b, hlo_t x, hlo_t e) {
  const int64_t worth_a_branch = 4096;
  if (hlo_numel(x) < worth_a_branch)
    return hlo_select(b, tt_cmp_num(b, HLO_EQ, e, 0.5), hlo_sqrt(b, x), hlo_power(b, x, e));
  static const double k_cheap[] = {2, 3, 0.5, -1};
  hlo_t is_cheap = tt_cmp_num(b, HLO_EQ, e, k_cheap[0]);
  for (int i = 1; i < 4; i++) is_cheap = hlo_or_(b, is_cheap, tt_cmp_num(b, HLO_EQ, e, k_cheap[i]));
  hlo_region_t* cheap = hlo_region_begin(b);
  hlo_t x2 = hlo_multiply(b, x, x);
  hlo_t r = hlo_divide(b, tt_num(b, x, 1), x);
  r = hlo_select(b, tt_cmp_num(b, HLO_EQ, e, 0.5), hlo_sqrt(b, x), r);
  r = hlo_select(b, tt_cmp_num(b, HLO_EQ, e, 3), hlo_multiply(b, x2, x), r);
  r = hlo_select(b, tt_cmp_num(b, HLO_EQ, e, 2), x2, r);
  hlo_region_end(b, cheap, 1, &r);
  hlo_region_t* other = hlo_region_begin(b);
  hlo_t p = hlo_power(b, x, e);
  hlo_region_end(b, other, 1, &p);
  hlo_t out;
  hlo_if(b, is_cheap, cheap, other, 1, &out);
  return out;
}

// z**0 is 1 for every z, and 0**w is 0 wherever the real part of w is positive; the polar form gives NaN there.
static hlo_t pow_complex(hlo_builder_t* b, hlo_t x, hlo_t e) {
  hlo_broadcast2(b, &x, &e);
  hlo_t r = hlo_power(b, x, e);
  hlo_t x_zero = tt_cmp_num(b, HLO_EQ, x, 0), e_zero = tt_cmp_num(b, HLO_EQ, e, 0);
  hlo_t vanishes = hlo_and_(b, x_zero, tt_cmp_num(b, HLO_GT, hlo_real(b, e), 0));
  r = hlo_select(b, vanishes, tt_num(b, x, 0), r);
  // The square is exact as a product, and by far the most frequent power.
  r = hlo_select(b, tt_cmp_num(b, HLO_EQ, e, 2), hlo_multiply(b, x, x), r);
  return hlo_select(b, e_zero, tt_num(b, x, 1), r);
}

static void lower_pow(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_opmath(tt_common_dtype(l, 2));
  hlo_t x = operand(l, 0, dtype), e = operand(l, 1, dtype), r = x;
  if (dtype == TT_BOOL) {
    r = hlo_or_(b, x, hlo_not_(b, e));
  } else if (tt_is_complex(dtype)) {
    r = pow_complex(b, x, e);
  } else if (!tt_is_float(dtype)) {
    r = tt_math_int_pow(b, x, e);
  } else {
    r = tt_is_tensor(l, 1) ? hlo_power(b, x, e) : pow_by_scalar(b, x, e);
  }
  if (tt_is_signed_int(dtype) && !tt_is_tensor(l, 1))
    tt_check(l, tt_cmp_num(b, HLO_LT, e, 0), NULL, TT_INVALID_ARGUMENT,
             "Integers to negative integer powers are not allowed.");
  tt_ret(l, 0, r);
}

// ---------------------------------------------------------------- comparisons and logic
static void lower_compare(tt_lower_t* l) {
  static const int k_args[] = {0, 1};
  tt_dtype_t dtype = tt_promote_args(l, 2, k_args);
  if (tt_is_float(dtype) && tt_dtype_size(dtype) == 1) dtype = TT_F32;  // f8 compares as the f32 it stands for
  tt_ret(l, 0, hlo_compare(tt_b(l), (hlo_cmp_t)tt_row(l)->kind, operand(l, 0, dtype), operand(l, 1, dtype)));
}

static void lower_logical(tt_lower_t* l) {
  hlo_t x = operand(l, 0, TT_BOOL), y = operand(l, 1, TT_BOOL);
  tt_ret(l, 0, hlo_binary(tt_b(l), (hlo_binary_t)tt_row(l)->kind, x, y));
}

static void lower_bitwise(tt_lower_t* l) {
  tt_dtype_t dtype = tt_common_dtype(l, 2);
  hlo_t x = operand(l, 0, dtype), y = operand(l, 1, dtype);
  tt_ret(l, 0, hlo_binary(tt_b(l), (hlo_binary_t)tt_row(l)->kind, x, y));
}

// A count outside the width shifts everything out: 0, or the sign for arithmetic right shifts.
static void lower_shift(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bool left = tt_row(l)->kind == HLO_shift_left;
  tt_dtype_t dtype = tt_opmath(tt_common_dtype(l, 2));
  hlo_t x = operand(l, 0, dtype), n = operand(l, 1, dtype);
  if (tt_is_float(dtype)) {  // __lshift__ and __rshift__ of floats scale
    hlo_t scale = tt_math_exp2(b, n);
    tt_ret(l, 0, left ? hlo_multiply(b, x, scale) : hlo_divide(b, x, scale));
    return;
  }
  int64_t width = (int64_t)tt_dtype_size(dtype) * 8;
  hlo_t in_range = hlo_compare(b, HLO_LT, n, hlo_scalar_int(b, dtype, width));
  if (tt_is_signed_int(dtype)) in_range = hlo_and_(b, in_range, tt_cmp_num(b, HLO_GE, n, 0));
  n = hlo_select(b, in_range, n, hlo_scalar_int(b, dtype, width - 1));
  if (!left && tt_is_signed_int(dtype)) {
    tt_ret(l, 0, hlo_shift_right_arithmetic(b, x, n));
    return;
  }
  hlo_t shifted = left ? hlo_shift_left(b, x, n) : hlo_shift_right_logical(b, x, n);
  tt_ret(l, 0, hlo_select(b, in_range, shifted, hlo_scalar_int(b, dtype, 0)));
}

// ---------------------------------------------------------------- extremes
typedef enum extreme_t { EXTREME_MAX, EXTREME_MIN, EXTREME_FMAX, EXTREME_FMIN } extreme_t;

static void lower_extreme(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  extreme_t kind = (extreme_t)tt_row(l)->kind;
  tt_dtype_t dtype = tt_common_dtype(l, 2);
  hlo_t x = operand(l, 0, dtype), y = operand(l, 1, dtype);
  bool is_max = kind == EXTREME_MAX || kind == EXTREME_FMAX;
  hlo_t r;
  if (dtype == TT_BOOL) r = is_max ? hlo_or_(b, x, y) : hlo_and_(b, x, y);
  else r = is_max ? hlo_maximum(b, x, y) : hlo_minimum(b, x, y);
  if (kind >= EXTREME_FMAX && tt_is_float(dtype)) {
    r = hlo_select(b, hlo_is_nan(b, y), x, r);
    r = hlo_select(b, hlo_is_nan(b, x), y, r);
  }
  tt_ret(l, 0, r);
}

static void lower_heaviside(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_common_dtype(l, 2);
  hlo_t x = operand(l, 0, dtype), at_zero = operand(l, 1, dtype);
  hlo_t zero = tt_num(b, x, 0);
  hlo_t step = hlo_convert(b, hlo_compare(b, HLO_GT, x, zero), dtype);
  tt_ret(l, 0, hlo_select(b, hlo_compare(b, HLO_EQ, x, zero), at_zero, step));
}

static void lower_nextafter(tt_lower_t* l) {
  tt_dtype_t dtype = tt_float_dtype(tt_common_dtype(l, 2));
  hlo_t x = operand(l, 0, dtype), y = operand(l, 1, dtype);
  hlo_broadcast2(tt_b(l), &x, &y);
  tt_ret(l, 0, hlo_next_after(tt_b(l), x, y));
}

// ---------------------------------------------------------------- greatest common divisor
// Euclid on whole arrays until every remainder is 0.
static hlo_t gcd(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_broadcast2(b, &x, &y);
  hlo_t init[2] = {x, y}, out[2];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t rest = hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t more = hlo_reduce_all(b, hlo_compare(b, HLO_NE, rest, tt_num(b, rest, 0)), HLO_R_OR);
  hlo_region_end(b, cond, 1, &more);
  hlo_region_t* body = hlo_region_begin(b);
  hlo_t p = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  hlo_t q = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  hlo_t zero = tt_num(b, q, 0), done = hlo_compare(b, HLO_EQ, q, zero);
  hlo_t divisor = hlo_select(b, done, tt_num(b, q, 1), q);
  hlo_t next[2] = {hlo_select(b, done, p, q), hlo_select(b, done, zero, hlo_remainder(b, p, divisor))};
  hlo_region_end(b, body, 2, next);
  hlo_while(b, 2, init, cond, body, out);
  return tt_is_unsigned(x->dtype) ? out[0] : hlo_abs(b, out[0]);
}

static void lower_gcd(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_common_dtype(l, 2);
  if (tt_dtype_size(dtype) < 4) dtype = TT_I32;  // C's integer promotions: |x / g * y| may exceed the narrow type
  hlo_t x = operand(l, 0, dtype), y = operand(l, 1, dtype), g = gcd(b, x, y);
  if (tt_row(l)->kind == 0) {
    tt_ret(l, 0, g);
    return;
  }
  hlo_t zero = tt_num(b, g, 0), is_zero = hlo_compare(b, HLO_EQ, g, zero);
  hlo_t multiple = hlo_multiply(b, hlo_divide(b, x, hlo_select(b, is_zero, tt_num(b, g, 1), g)), y);
  if (!tt_is_unsigned(dtype)) multiple = hlo_abs(b, multiple);
  tt_ret(l, 0, hlo_select(b, is_zero, zero, multiple));
}

// ---------------------------------------------------------------- rows
#define ROW(text, fn, k) {.name = text, .lower = fn, .kind = (int)(k), .flags = TT_OP_POINTWISE}
// As on the CPU: these take a number as it is beside half floats; all others round it to the half type first.
#define WIDE(text, fn, k, more) \
  {.name = text, .lower = fn, .kind = (int)(k), .flags = TT_OP_POINTWISE | TT_OP_WIDE_NUMBERS | (more)}
#define SUM(text, k) {.name = text, .lower = lower_sum, .kind = k, .flags = TT_OP_POINTWISE, .unit = TT_ARG(2)}
#define CHECKED(text, fn, k) {.name = text, .lower = fn, .kind = k, .flags = TT_OP_POINTWISE | TT_OP_CHECKS}
#define COMPARE(op, k) ROW(#op ".Tensor", lower_compare, k), ROW(#op ".Scalar", lower_compare, k)
#define BITWISE(op, k)                                                                  \
  ROW("bitwise_" op ".Tensor", lower_bitwise, k), ROW("bitwise_" op ".Scalar", lower_bitwise, k), \
      ROW("bitwise_" op ".Scalar_Tensor", lower_bitwise, k)
#define SHIFT(op, k)                                                                  \
  ROW("bitwise_" op ".Tensor", lower_shift, k), ROW("bitwise_" op ".Tensor_Scalar", lower_shift, k), \
      ROW("bitwise_" op ".Scalar_Tensor", lower_shift, k)

static const tt_op_row_t k_rows[] = {
    SUM("add.Tensor", SUM_ADD), SUM("add.Scalar", SUM_ADD),
    SUM("sub.Tensor", SUM_SUB), SUM("sub.Scalar", SUM_SUB),
    SUM("rsub.Tensor", SUM_RSUB), SUM("rsub.Scalar", SUM_RSUB),
    WIDE("mul.Tensor", lower_math, FN_mul, 0), WIDE("mul.Scalar", lower_math, FN_mul, 0),
    WIDE("div.Tensor", lower_math, FN_div, 0), WIDE("div.Scalar", lower_math, FN_div, 0),
    WIDE("div.Tensor_mode", lower_div_mode, 0, TT_OP_CHECKS), WIDE("div.Scalar_mode", lower_div_mode, 0, TT_OP_CHECKS),
    WIDE("floor_divide", lower_quotient, QUOTIENT_FLOOR, TT_OP_CHECKS),
    WIDE("floor_divide.Scalar", lower_quotient, QUOTIENT_FLOOR, TT_OP_CHECKS),
    CHECKED("remainder.Tensor", lower_quotient, QUOTIENT_REMAINDER),
    CHECKED("remainder.Scalar", lower_quotient, QUOTIENT_REMAINDER),
    CHECKED("remainder.Scalar_Tensor", lower_quotient, QUOTIENT_REMAINDER),
    CHECKED("fmod.Tensor", lower_quotient, QUOTIENT_FMOD),
    CHECKED("fmod.Scalar", lower_quotient, QUOTIENT_FMOD),
    ROW("pow.Tensor_Tensor", lower_pow, 0), CHECKED("pow.Tensor_Scalar", lower_pow, 0),
    ROW("pow.Scalar", lower_pow, 0),
    COMPARE(eq, HLO_EQ), COMPARE(ne, HLO_NE), COMPARE(lt, HLO_LT),
    COMPARE(le, HLO_LE), COMPARE(gt, HLO_GT), COMPARE(ge, HLO_GE),
    ROW("logical_and", lower_logical, HLO_and_), ROW("logical_or", lower_logical, HLO_or_),
    ROW("logical_xor", lower_logical, HLO_xor_),
    BITWISE("and", HLO_and_), BITWISE("or", HLO_or_), BITWISE("xor", HLO_xor_),
    SHIFT("left_shift", HLO_shift_left), SHIFT("right_shift", HLO_shift_right_arithmetic),
    ROW("__lshift__.Tensor", lower_shift, HLO_shift_left), ROW("__lshift__.Scalar", lower_shift, HLO_shift_left),
    ROW("__rshift__.Tensor", lower_shift, HLO_shift_right_arithmetic),
    ROW("__rshift__.Scalar", lower_shift, HLO_shift_right_arithmetic),
    ROW("maximum", lower_extreme, EXTREME_MAX), ROW("minimum", lower_extreme, EXTREME_MIN),
    ROW("fmax", lower_extreme, EXTREME_FMAX), ROW("fmin", lower_extreme, EXTREME_FMIN),
    ROW("atan2", lower_math, FN_atan2), ROW("hypot", lower_math, FN_hypot),
    ROW("copysign.Tensor", lower_math, FN_copysign), ROW("copysign.Scalar", lower_math, FN_copysign),
    ROW("logaddexp", lower_math, FN_logaddexp), ROW("logaddexp2", lower_math, FN_logaddexp2),
    ROW("xlogy.Tensor", lower_math, FN_xlogy), ROW("xlogy.Scalar_Self", lower_math, FN_xlogy),
    ROW("xlogy.Scalar_Other", lower_math, FN_xlogy),
    ROW("special_xlog1py", lower_math, FN_xlog1py), ROW("special_xlog1py.self_scalar", lower_math, FN_xlog1py),
    ROW("special_xlog1py.other_scalar", lower_math, FN_xlog1py),
    ROW("ldexp.Tensor", lower_math, FN_ldexp),
    ROW("heaviside", lower_heaviside, 0), ROW("nextafter", lower_nextafter, 0),
    {.name = "gcd", .lower = lower_gcd, .kind = 0}, {.name = "lcm", .lower = lower_gcd, .kind = 1},
};
TT_OP_FAMILY(binary, k_rows)
