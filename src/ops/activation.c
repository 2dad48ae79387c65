// Activation functions and their backwards.
//
// Depends on: ops/op.h, ops/math.h, ops/random.h.
// Threads: as op.h.
#include <math.h>

#include "ops/common.h"
#include "ops/math.h"
#include "ops/random.h"

// Argument |i| in the dtype of the arithmetic, tensor or Scalar.
static hlo_t arg(tt_lower_t* l, int i) { return tt_operand(l, i, tt_math_dtype(l, 0)); }
static hlo_t plus(hlo_builder_t* b, hlo_t x, double v) { return tt_add_num(b, x, v); }
static hlo_t times(hlo_builder_t* b, hlo_t x, double v) { return tt_mul_num(b, x, v); }
static hlo_t mul3(hlo_builder_t* b, hlo_t x, hlo_t y, hlo_t z) { return hlo_multiply(b, hlo_multiply(b, x, y), z); }
static hlo_t one_minus(hlo_builder_t* b, hlo_t x) { return hlo_subtract(b, tt_num(b, x, 1), x); }
static hlo_t zero_where(hlo_builder_t* b, hlo_t pred, hlo_t x) { return hlo_select(b, pred, tt_num(b, x, 0), x); }
static hlo_t or_zero(hlo_builder_t* b, hlo_t pred, hlo_t x) { return hlo_select(b, pred, x, tt_num(b, x, 0)); }

// ---------------------------------------------------------------- gates on sign or range
static void lower_relu(tt_lower_t* l) {
  hlo_t x = tt_in_as(l, 0, tt_out_dtype(l, 0));
  tt_ret(l, 0, tt_is_unsigned(x->dtype) || x->dtype == TT_BOOL ? x : hlo_maximum(tt_b(l), x, tt_num(tt_b(l), x, 0)));
}

static void lower_leaky_relu(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0);
  tt_ret(l, 0, hlo_select(b, tt_cmp_num(b, HLO_GT, x, 0), x, hlo_multiply(b, x, arg(l, 1))));
}

static void lower_leaky_relu_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0);
  tt_ret(l, 0, hlo_select(b, tt_cmp_num(b, HLO_GT, arg(l, 1), 0), g, hlo_multiply(b, g, arg(l, 2))));
}

static void lower_prelu(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0);
  tt_ret(l, 0, hlo_select(b, tt_cmp_num(b, HLO_GT, x, 0), x, hlo_multiply(b, arg(l, 1), x)));
}

static void lower_prelu_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1), positive = tt_cmp_num(b, HLO_GT, x, 0);
  tt_ret(l, 0, hlo_select(b, positive, g, hlo_multiply(b, arg(l, 2), g)));
  tt_ret(l, 1, zero_where(b, positive, hlo_multiply(b, x, g)));
}

static void lower_threshold(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0);
  tt_ret(l, 0, hlo_select(b, hlo_compare(b, HLO_LE, x, arg(l, 1)), arg(l, 2), x));
}

static void lower_threshold_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_ret(l, 0, zero_where(b, hlo_compare(b, HLO_LE, arg(l, 1), arg(l, 2)), arg(l, 0)));
}

static void lower_hardtanh(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_ret(l, 0, hlo_minimum(b, hlo_maximum(b, arg(l, 0), arg(l, 1)), arg(l, 2)));
}

static void lower_hardtanh_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 1);
  hlo_t inside = hlo_and_(b, hlo_compare(b, HLO_GT, x, arg(l, 2)), hlo_compare(b, HLO_LT, x, arg(l, 3)));
  tt_ret(l, 0, or_zero(b, inside, arg(l, 0)));
}

// min(max(x + 3, 0), 6) / 6.
static hlo_t hard_gate(hlo_builder_t* b, hlo_t x) {
  hlo_t r = hlo_minimum(b, hlo_maximum(b, plus(b, x, 3), tt_num(b, x, 0)), tt_num(b, x, 6));
  return times(b, r, 1.0 / 6.0);
}

static void lower_hardsigmoid(tt_lower_t* l) { tt_ret(l, 0, hard_gate(tt_b(l), arg(l, 0))); }

static void lower_hardsigmoid_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1);
  hlo_t inside = hlo_and_(b, tt_cmp_num(b, HLO_GT, x, -3), tt_cmp_num(b, HLO_LT, x, 3));
  tt_ret(l, 0, or_zero(b, inside, times(b, g, 1.0 / 6.0)));
}

static void lower_hardswish(tt_lower_t* l) {
  hlo_t x = arg(l, 0);
  tt_ret(l, 0, hlo_multiply(tt_b(l), x, hard_gate(tt_b(l), x)));
}

static void lower_hardswish_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1);
  hlo_t slope = hlo_multiply(b, g, plus(b, times(b, x, 1.0 / 3.0), 0.5));
  hlo_t r = hlo_select(b, tt_cmp_num(b, HLO_GE, x, 3), g, slope);
  tt_ret(l, 0, zero_where(b, tt_cmp_num(b, HLO_LE, x, -3), r));
}

static void lower_hardshrink(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0), bound = arg(l, 1);
  hlo_t inside = hlo_and_(b, hlo_compare(b, HLO_GE, x, hlo_negate(b, bound)), hlo_compare(b, HLO_LE, x, bound));
  tt_ret(l, 0, zero_where(b, inside, x));
}

static void lower_shrink_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 1), bound = arg(l, 2);
  hlo_t outside = hlo_or_(b, hlo_compare(b, HLO_LT, x, hlo_negate(b, bound)), hlo_compare(b, HLO_GT, x, bound));
  tt_ret(l, 0, or_zero(b, outside, arg(l, 0)));
}

static void lower_softshrink(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0), bound = arg(l, 1);
  hlo_t below = hlo_select(b, hlo_compare(b, HLO_LT, x, hlo_negate(b, bound)), hlo_add(b, x, bound), times(b, x, 0));
  tt_ret(l, 0, hlo_select(b, hlo_compare(b, HLO_GT, x, bound), hlo_subtract(b, x, bound), below));
}

// ---------------------------------------------------------------- elu
// Negative side: alpha * scale * expm1(input_scale * x); positive side: scale * x.
static void lower_elu(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0), scale = arg(l, 2);
  hlo_t curve = hlo_exponential_minus_one(b, hlo_multiply(b, x, arg(l, 3)));
  hlo_t neg = hlo_multiply(b, curve, hlo_multiply(b, arg(l, 1), scale));
  tt_ret(l, 0, hlo_select(b, tt_cmp_num(b, HLO_LT, x, 0), neg, hlo_multiply(b, x, scale)));
}

static void lower_elu_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), scale = arg(l, 2), in_scale = arg(l, 3), x = arg(l, 5);
  hlo_t coef = hlo_multiply(b, arg(l, 1), scale);
  hlo_t slope = tt_bool(l, 4) ? hlo_add(b, x, coef)
                              : hlo_multiply(b, hlo_exponential(b, hlo_multiply(b, x, in_scale)), coef);
  hlo_t neg = hlo_multiply(b, hlo_multiply(b, g, in_scale), slope);
  tt_ret(l, 0, hlo_select(b, tt_cmp_num(b, HLO_GT, x, 0), hlo_multiply(b, g, scale), neg));
}

// ---------------------------------------------------------------- gelu
static const double kSqrtHalf = 0.70710678118654752440;
static const double kSqrt2OverPi = 0.79788456080286535588;
static const double kCube = 0.044715;

static bool is_tanh_form(tt_lower_t* l, int i) {
  const char* form = tt_str(l, i);
  return form && form[0] == 't';
}

static hlo_t gelu_tanh(hlo_builder_t* b, hlo_t x) {
  hlo_t x3 = mul3(b, x, x, x);
  return hlo_tanh(b, times(b, hlo_add(b, x, times(b, x3, kCube)), kSqrt2OverPi));
}

static void lower_gelu(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0);
  hlo_t gate = is_tanh_form(l, 1) ? gelu_tanh(b, x) : hlo_erf(b, times(b, x, kSqrtHalf));
  tt_ret(l, 0, hlo_multiply(b, times(b, x, 0.5), plus(b, gate, 1)));
}

static void lower_gelu_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1), slope;
  hlo_t x2 = hlo_multiply(b, x, x);
  if (is_tanh_form(l, 2)) {
    hlo_t t = gelu_tanh(b, x);
    hlo_t inner = times(b, plus(b, times(b, x2, 3 * kCube), 1), kSqrt2OverPi);
    hlo_t right = mul3(b, times(b, x, 0.5), one_minus(b, hlo_multiply(b, t, t)), inner);
    slope = hlo_add(b, times(b, plus(b, t, 1), 0.5), right);
  } else {
    hlo_t cdf = times(b, plus(b, hlo_erf(b, times(b, x, kSqrtHalf)), 1), 0.5);
    hlo_t pdf = times(b, hlo_exponential(b, times(b, x2, -0.5)), 0.5 * kSqrt2OverPi);
    slope = hlo_add(b, cdf, hlo_multiply(b, x, pdf));
  }
  tt_ret(l, 0, hlo_multiply(b, g, slope));
}

// ---------------------------------------------------------------- smooth gates
static void lower_silu(tt_lower_t* l) {
  hlo_t x = arg(l, 0);
  tt_ret(l, 0, hlo_multiply(tt_b(l), x, hlo_logistic(tt_b(l), x)));
}

static void lower_silu_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1), s = hlo_logistic(b, x);
  hlo_t slope = hlo_multiply(b, s, plus(b, hlo_multiply(b, x, one_minus(b, s)), 1));
  tt_ret(l, 0, hlo_multiply(b, g, tt_math_conj(b, slope)));
}

static hlo_t mish_gate(hlo_builder_t* b, hlo_t x) {
  return hlo_tanh(b, hlo_log_plus_one(b, hlo_exponential(b, x)));
}

static void lower_mish(tt_lower_t* l) {
  hlo_t x = arg(l, 0);
  tt_ret(l, 0, hlo_multiply(tt_b(l), x, mish_gate(tt_b(l), x)));
}

static void lower_mish_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1), t = mish_gate(b, x);
  hlo_t slope = mul3(b, x, hlo_logistic(b, x), one_minus(b, hlo_multiply(b, t, t)));
  tt_ret(l, 0, hlo_multiply(b, g, hlo_add(b, t, slope)));
}

static void lower_softplus(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0), beta = arg(l, 1), z = hlo_multiply(b, x, beta);
  hlo_t soft = hlo_divide(b, hlo_log_plus_one(b, hlo_exponential(b, z)), beta);
  tt_ret(l, 0, hlo_select(b, hlo_compare(b, HLO_GT, z, arg(l, 2)), x, soft));
}

static void lower_softplus_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), z = hlo_multiply(b, arg(l, 1), arg(l, 2));
  tt_ret(l, 0, hlo_select(b, hlo_compare(b, HLO_GT, z, arg(l, 3)), g, hlo_multiply(b, g, hlo_logistic(b, z))));
}

// The buffer is scratch that only the CPU's kernel fills; other devices may declare it empty.
static hlo_t scratch(hlo_builder_t* b, hlo_t z, const tt_type_t* type) {
  bool same = type->rank == z->rank;
  for (int d = 0; same && d < z->rank; d++) same = type->dims[d] == z->dims[d];
  return same ? z : hlo_splat(b, z->dtype, 0, type->rank, type->dims);
}

static void lower_log_sigmoid(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0), z = hlo_exponential(b, hlo_negate(b, hlo_abs(b, x)));
  tt_ret(l, 0, hlo_subtract(b, hlo_minimum(b, x, tt_num(b, x, 0)), hlo_log_plus_one(b, z)));
  tt_ret(l, 1, tt_out_count(l) > 1 ? scratch(b, z, tt_out(l, 1)) : z);
}

static void lower_log_sigmoid_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_ret(l, 0, hlo_multiply(b, arg(l, 0), hlo_logistic(b, hlo_negate(b, arg(l, 1)))));
}

static void lower_tanh_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t y = arg(l, 1);
  tt_ret(l, 0, hlo_multiply(b, arg(l, 0), tt_math_conj(b, one_minus(b, hlo_multiply(b, y, y)))));
}

static void lower_sigmoid_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t y = arg(l, 1);
  tt_ret(l, 0, hlo_multiply(b, arg(l, 0), tt_math_conj(b, hlo_multiply(b, one_minus(b, y), y))));
}

// ---------------------------------------------------------------- logit
// A negative eps means none.
static void lower_logit(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = hlo_convert(b, arg(l, 0), tt_float_dtype(tt_math_dtype(l, 0)));
  if (tt_has(l, 1)) {
    hlo_t eps = tt_scalar(l, 1, x->dtype);
    hlo_t inside = hlo_minimum(b, hlo_maximum(b, x, eps), one_minus(b, eps));
    x = hlo_select(b, tt_cmp_num(b, HLO_LT, eps, 0), x, inside);
  }
  tt_ret(l, 0, hlo_log(b, hlo_divide(b, x, one_minus(b, x))));
}

static void lower_logit_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1);
  hlo_t lo = tt_num(b, x, 0), hi = tt_num(b, x, 1), outside = tt_num(b, x, NAN);
  if (tt_has(l, 2)) {
    hlo_t eps = arg(l, 2), none = tt_cmp_num(b, HLO_LT, eps, 0);
    hi = hlo_select(b, none, hi, one_minus(b, eps));
    outside = hlo_select(b, none, outside, lo);
    lo = hlo_select(b, none, lo, eps);
  }
  hlo_t inside = hlo_and_(b, hlo_compare(b, HLO_GE, x, lo), hlo_compare(b, HLO_LE, x, hi));
  hlo_t r = hlo_divide(b, g, hlo_multiply(b, x, one_minus(b, x)));
  tt_ret(l, 0, hlo_select(b, inside, r, outside));
}

// ---------------------------------------------------------------- glu
static hlo_t half_of(tt_lower_t* l, hlo_t x, int dim, int which) {
  if (x->rank == 0) return hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "glu does not support 0-dimensional tensors");
  int64_t half = x->dims[dim] / 2;
  return hlo_slice_dim(tt_b(l), x, dim, which * half, (which + 1) * half, 1);
}

static void lower_glu(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = arg(l, 0);
  int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  tt_ret(l, 0, hlo_multiply(b, half_of(l, x, dim, 0), hlo_logistic(b, half_of(l, x, dim, 1))));
}

static void lower_glu_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 0), x = arg(l, 1);
  int dim = hlo_dim(b, tt_int(l, 2), x->rank);
  hlo_t a = half_of(l, x, dim, 0), s = hlo_logistic(b, half_of(l, x, dim, 1));
  hlo_t gs = hlo_multiply(b, g, s);
  hlo_t parts[2] = {gs, mul3(b, gs, one_minus(b, s), a)};
  tt_ret(l, 0, hlo_concat(b, 2, parts, dim));
}

static void lower_glu_jvp(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t y = arg(l, 0), x = arg(l, 1), dx = arg(l, 2);
  int dim = hlo_dim(b, tt_int(l, 3), x->rank);
  hlo_t s = hlo_logistic(b, half_of(l, x, dim, 1)), da = half_of(l, dx, dim, 0), db = half_of(l, dx, dim, 1);
  tt_ret(l, 0, hlo_add(b, hlo_multiply(b, da, s), mul3(b, y, db, one_minus(b, s))));
}

// Tangent of glu_backward: products g*s and g*s*(1-s)*a differentiated by the product rule.
static void lower_glu_backward_jvp(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t g = arg(l, 1), x = arg(l, 2), dg = arg(l, 3), dx = arg(l, 4);
  int dim = hlo_dim(b, tt_int(l, 5), x->rank);
  hlo_t a = half_of(l, x, dim, 0), s = hlo_logistic(b, half_of(l, x, dim, 1));
  hlo_t da = half_of(l, dx, dim, 0), db = half_of(l, dx, dim, 1);
  hlo_t s1 = hlo_multiply(b, s, one_minus(b, s)), ds = hlo_multiply(b, s1, db);
  hlo_t ds1 = hlo_multiply(b, ds, one_minus(b, times(b, s, 2)));
  hlo_t first = hlo_add(b, hlo_multiply(b, dg, s), hlo_multiply(b, g, ds));
  hlo_t second = hlo_add(b, mul3(b, dg, s1, a), hlo_add(b, mul3(b, g, ds1, a), mul3(b, g, s1, da)));
  hlo_t parts[2] = {first, second};
  tt_ret(l, 0, hlo_concat(b, 2, parts, dim));
}

// ---------------------------------------------------------------- rrelu
// Training draws a slope per element and leaves it in |noise|; otherwise the mean slope serves all.
static void lower_rrelu(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bool functional = tt_row(l)->kind == 1;
  hlo_t x = arg(l, 0), lower = arg(l, 2), upper = arg(l, 3), noise = tt_in(l, 1);
  hlo_t positive = tt_cmp_num(b, HLO_GT, x, 0);
  if (!tt_bool(l, 4)) {
    hlo_t slope = times(b, hlo_add(b, lower, upper), 0.5);
    tt_ret(l, 0, hlo_select(b, positive, x, hlo_multiply(b, x, slope)));
    if (functional) tt_ret(l, 1, noise);
    return;
  }
  bool wide = x->dtype == TT_F64;
  hlo_t unit = tt_bits_unit(b, tt_random_bits(l, wide ? TT_U64 : TT_U32, x->rank, x->dims), x->dtype, wide ? 53 : 24);
  hlo_t slope = hlo_add(b, lower, hlo_multiply(b, unit, hlo_subtract(b, upper, lower)));
  slope = hlo_select(b, positive, tt_num(b, x, 1), slope);
  hlo_t stored = hlo_convert(b, slope, noise->dtype);
  tt_ret(l, 0, hlo_multiply(b, x, hlo_convert(b, stored, x->dtype)));
  if (functional) tt_ret(l, 1, stored);
  else tt_mutate(l, 1, 0, stored);
}

// ---------------------------------------------------------------- rows
#define ROW(text, fn) {.name = text, .lower = fn, .flags = TT_OP_POINTWISE}

static const tt_op_row_t k_rows[] = {
    ROW("relu", lower_relu),
    ROW("leaky_relu", lower_leaky_relu), ROW("leaky_relu_backward", lower_leaky_relu_backward),
    ROW("_prelu_kernel", lower_prelu), ROW("_prelu_kernel_backward", lower_prelu_backward),
    ROW("threshold", lower_threshold), ROW("threshold_backward", lower_threshold_backward),
    ROW("hardtanh", lower_hardtanh), ROW("hardtanh_backward", lower_hardtanh_backward),
    ROW("hardsigmoid", lower_hardsigmoid), ROW("hardsigmoid_backward", lower_hardsigmoid_backward),
    ROW("hardswish", lower_hardswish), ROW("hardswish_backward", lower_hardswish_backward),
    ROW("hardshrink", lower_hardshrink), ROW("hardshrink_backward", lower_shrink_backward),
    ROW("softshrink", lower_softshrink), ROW("softshrink_backward", lower_shrink_backward),
    ROW("elu", lower_elu), ROW("elu_backward", lower_elu_backward),
    ROW("gelu", lower_gelu), ROW("gelu_backward", lower_gelu_backward),
    ROW("silu", lower_silu), ROW("silu_backward", lower_silu_backward),
    ROW("mish", lower_mish), ROW("mish_backward", lower_mish_backward),
    ROW("softplus", lower_softplus), ROW("softplus_backward", lower_softplus_backward),
    ROW("log_sigmoid_forward", lower_log_sigmoid), ROW("log_sigmoid_backward", lower_log_sigmoid_backward),
    ROW("tanh_backward", lower_tanh_backward), ROW("sigmoid_backward", lower_sigmoid_backward),
    ROW("logit", lower_logit), ROW("logit_backward", lower_logit_backward),
    {.name = "glu", .lower = lower_glu}, {.name = "glu_backward", .lower = lower_glu_backward},
    {.name = "glu_jvp", .lower = lower_glu_jvp}, {.name = "glu_backward_jvp", .lower = lower_glu_backward_jvp},
    {.name = "rrelu_with_noise", .lower = lower_rrelu, .kind = 0, .flags = TT_OP_RANDOM},
    {.name = "rrelu_with_noise_", .lower = lower_rrelu, .kind = 1, .flags = TT_OP_RANDOM},
    {.name = "rrelu_with_noise_functional", .lower = lower_rrelu, .kind = 1, .flags = TT_OP_RANDOM},
};
TT_OP_FAMILY(activation, k_rows)
