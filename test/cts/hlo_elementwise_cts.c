// Conformance: elementwise ops, constants, conversions.
#include <math.h>

#include "hlo_case.h"

#define IN cts_in
#define EXPECT cts_expect
#define D(...) ((const int64_t[]){__VA_ARGS__})

// ---------------------------------------------------------------- unary, binary
typedef struct unary_t {
  hlo_unary_t op;
  const char *in, *out;
} unary_t;

static void float_unary(cts_t* c) {
  static const unary_t k[] = {
      {HLO_abs, "-2 -0 nan", "2 0 nan"},
      {HLO_cbrt, "8 -27 0", "2 -3 0"},
      {HLO_ceil, "1.2 -1.2 -0.5", "2 -1 -0"},
      {HLO_cosine, "0 1 2", "1 0.5403023 -0.4161468"},
      {HLO_exponential, "0 1 -inf", "1 2.7182818 0"},
      {HLO_exponential_minus_one, "0 1e-6 1", "0 1.0000005e-6 1.7182818"},
      {HLO_floor, "1.2 -1.2 0.5", "1 -2 0"},
      {HLO_log, "1 0 -1", "0 -inf nan"},
      {HLO_log_plus_one, "0 1e-6 1", "0 9.999995e-7 0.69314718"},
      {HLO_logistic, "0 100 -1", "0.5 1 0.26894142"},
      {HLO_negate, "0 1 inf", "-0 -1 -inf"},
      {HLO_round_nearest_afz, "0.5 1.5 -2.5", "1 2 -3"},
      {HLO_round_nearest_even, "0.5 1.5 -2.5", "0 2 -2"},
      {HLO_rsqrt, "4 0.25 1", "0.5 2 1"},
      {HLO_sign, "-3 nan 7", "-1 nan 1"},
      {HLO_sine, "0 1 2", "0 0.84147098 0.9092974"},
      {HLO_sqrt, "4 -1 2", "2 nan 1.4142136"},
      {HLO_tan, "0 1 -1", "0 1.5574077 -1.5574077"},
      {HLO_tanh, "0 1 -100", "0 0.76159416 -1"},
      {HLO_acos, "1 0 -1", "0 1.5707963 3.1415927"},
      {HLO_acosh, "1 2 10", "0 1.3169579 2.9932228"},
      {HLO_asin, "0 1 -0.5", "0 1.5707963 -0.52359878"},
      {HLO_asinh, "0 1 -1", "0 0.88137359 -0.88137359"},
      {HLO_atan, "0 1 -1", "0 0.78539816 -0.78539816"},
      {HLO_atanh, "0 0.5 -0.5", "0 0.54930614 -0.54930614"},
      {HLO_bessel_i1e, "0 1 -1", "0 0.20791042 -0.20791042"},
      {HLO_cosh, "0 1 -1", "1 1.5430806 1.5430806"},
      {HLO_digamma, "1 2 0.5", "-0.57721566 0.42278434 -1.9635100"},
      {HLO_erf, "0 1 -1", "0 0.84270079 -0.84270079"},
      {HLO_erf_inv, "0 0.5 1", "0 0.47693628 inf"},
      {HLO_erfc, "0 1 -1", "1 0.15729921 1.8427008"},
      {HLO_lgamma, "1 0.5 10", "0 0.57236494 12.801827"},
      {HLO_sinh, "0 1 -1", "0 1.1752012 -1.1752012"},
  };
  for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
    EXPECT(c, hlo_unary(c->b, k[i].op, IN(c, TT_F32, "3", k[i].in)), "3", k[i].out);
  }
}

static void int_unary(cts_t* c) {
  hlo_t x = IN(c, TT_I32, "4", "-3 0 7 -2147483648");
  hlo_t u = IN(c, TT_U8, "3", "0 1 200"), p = IN(c, TT_BOOL, "2", "true false");
  EXPECT(c, hlo_abs(c->b, x), "4", "3 0 7 -2147483648");
  EXPECT(c, hlo_sign(c->b, x), "4", "-1 0 1 -1");
  EXPECT(c, hlo_not_(c->b, x), "4", "2 -1 -8 2147483647");
  EXPECT(c, hlo_negate(c->b, x), "4", "3 0 -7 -2147483648");
  EXPECT(c, hlo_popcnt(c->b, u), "3", "0 1 3");
  EXPECT(c, hlo_count_leading_zeros(c->b, u), "3", "8 7 0");
  EXPECT(c, hlo_abs(c->b, u), "3", "0 1 200");
  EXPECT(c, hlo_sign(c->b, u), "3", "0 1 1");
  EXPECT(c, hlo_floor(c->b, x), "4", "-3 0 7 -2147483648");
  EXPECT(c, hlo_not_(c->b, p), "2", "false true");
  EXPECT(c, hlo_negate(c->b, u), "3", "0 255 56");
}

static void complex_unary(cts_t* c) {
  hlo_t z = IN(c, TT_C64, "2", "3 4 0 -1");
  EXPECT(c, hlo_abs(c->b, z), "2", "5 1");
  EXPECT(c, hlo_negate(c->b, z), "2", "-3 -4 -0 1");
  EXPECT(c, hlo_exponential(c->b, z), "2", "-13.128783 -15.200784 0.54030231 -0.84147098");
  EXPECT(c, hlo_sqrt(c->b, z), "2", "2 1 0.70710678 -0.70710678");
  EXPECT(c, hlo_log(c->b, z), "2", "1.6094379 0.92729522 0 -1.5707963");
  EXPECT(c, hlo_real(c->b, z), "2", "3 0");
  EXPECT(c, hlo_imag(c->b, z), "2", "4 -1");
  EXPECT(c, hlo_is_finite(c->b, z), "2", "true true");
  EXPECT(c, hlo_is_nan(c->b, hlo_complex(c->b, hlo_real(c->b, z), hlo_scalar(c->b, TT_F32, NAN))), "2", "true true");
  EXPECT(c, hlo_sinh(c->b, z), "2", "-6.5481200 -7.6192317 0 -0.84147098");
}

static void float_binary(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "4", "1 -2 nan 5.5"), y = IN(c, TT_F32, "4", "2 3 1 -2");
  EXPECT(c, hlo_add(b, x, y), "4", "3 1 nan 3.5");
  EXPECT(c, hlo_atan2(b, x, y), "4", "0.46364761 -0.58800260 nan 1.9195673");
  EXPECT(c, hlo_divide(b, x, y), "4", "0.5 -0.66666667 nan -2.75");
  EXPECT(c, hlo_maximum(b, x, y), "4", "2 3 nan 5.5");
  EXPECT(c, hlo_minimum(b, x, y), "4", "1 -2 nan -2");
  EXPECT(c, hlo_multiply(b, x, y), "4", "2 -6 nan -11");
  EXPECT(c, hlo_power(b, x, y), "4", "1 -8 nan 0.033057851");
  EXPECT(c, hlo_remainder(b, x, y), "4", "1 -2 nan 1.5");
  EXPECT(c, hlo_subtract(b, x, y), "4", "-1 -5 nan 7.5");
  EXPECT(c, hlo_next_after(b, hlo_scalar(b, TT_F64, 1), hlo_scalar(b, TT_F64, 2)), "", "1.0000000000000002");
  EXPECT(c, hlo_polygamma(b, hlo_scalar(b, TT_F32, 1), hlo_scalar(b, TT_F32, 1)), "", "1.6449341");
  EXPECT(c, hlo_zeta(b, hlo_scalar(b, TT_F32, 2), hlo_scalar(b, TT_F32, 1)), "", "1.6449341");
}

static void int_binary(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_I64, "3", "7 -7 9223372036854775807"), y = IN(c, TT_I64, "3", "2 2 1");
  EXPECT(c, hlo_add(b, x, y), "3", "9 -5 -9223372036854775808");
  EXPECT(c, hlo_and_(b, x, y), "3", "2 0 1");
  EXPECT(c, hlo_or_(b, x, y), "3", "7 -5 9223372036854775807");
  EXPECT(c, hlo_xor_(b, x, y), "3", "5 -5 9223372036854775806");
  EXPECT(c, hlo_divide(b, x, y), "3", "3 -3 9223372036854775807");
  EXPECT(c, hlo_remainder(b, x, y), "3", "1 -1 0");
  EXPECT(c, hlo_power(b, x, y), "3", "49 49 9223372036854775807");
  EXPECT(c, hlo_shift_left(b, x, y), "3", "28 -28 -2");
  EXPECT(c, hlo_shift_right_arithmetic(b, x, y), "3", "1 -2 4611686018427387903");
  EXPECT(c, hlo_shift_right_logical(b, x, y), "3", "1 4611686018427387902 4611686018427387903");
  EXPECT(c, hlo_maximum(b, x, y), "3", "7 2 9223372036854775807");
}

static void bool_binary(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_BOOL, "4", "false false true true"), y = IN(c, TT_BOOL, "4", "false true false true");
  EXPECT(c, hlo_add(b, x, y), "4", "false true true true");
  EXPECT(c, hlo_multiply(b, x, y), "4", "false false false true");
  EXPECT(c, hlo_maximum(b, x, y), "4", "false true true true");
  EXPECT(c, hlo_minimum(b, x, y), "4", "false false false true");
  EXPECT(c, hlo_xor_(b, x, y), "4", "false true true false");
  EXPECT(c, hlo_compare(b, HLO_LT, x, y), "4", "false true false false");
  EXPECT(c, hlo_compare(b, HLO_GE, x, y), "4", "true false true true");
}

static void complex_binary(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_C128, "2", "1 2 3 -1"), y = IN(c, TT_C128, "2", "1 2 0 2");
  EXPECT(c, hlo_add(b, x, y), "2", "2 4 3 1");
  EXPECT(c, hlo_multiply(b, x, y), "2", "-3 4 2 6");
  EXPECT(c, hlo_divide(b, x, y), "2", "1 0 -0.5 -1.5");
  EXPECT(c, hlo_compare(b, HLO_EQ, x, y), "2", "true false");
  EXPECT(c, hlo_compare(b, HLO_NE, x, y), "2", "false true");
}

// ---------------------------------------------------------------- comparison, selection
static void compares(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "5", "1 2 nan -0 inf"), y = IN(c, TT_F32, "5", "2 2 nan 0 nan");
  EXPECT(c, hlo_compare(b, HLO_EQ, x, y), "5", "false true false true false");
  EXPECT(c, hlo_compare(b, HLO_NE, x, y), "5", "true false true false true");
  EXPECT(c, hlo_compare(b, HLO_LE, x, y), "5", "true true false true false");
  EXPECT(c, hlo_compare_total(b, HLO_LT, x, y), "5", "true false false true true");
  EXPECT(c, hlo_compare_total(b, HLO_EQ, x, y), "5", "false true true false false");
  EXPECT(c, hlo_is_nan(b, x), "5", "false false true false false");
  EXPECT(c, hlo_is_finite(b, x), "5", "true true false true false");
  hlo_t u = IN(c, TT_U64, "2", "18446744073709551615 1");
  EXPECT(c, hlo_compare(b, HLO_GT, u, hlo_scalar(b, TT_U64, 5)), "2", "true false");
  EXPECT(c, hlo_compare_total(b, HLO_GT, u, hlo_scalar(b, TT_U64, 5)), "2", "true false");
  EXPECT(c, hlo_is_nan(b, u), "2", "false false");
  EXPECT(c, hlo_is_finite(b, u), "2", "true true");
}

static void selects(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t p = IN(c, TT_BOOL, "2,1", "true false"), s = IN(c, TT_BOOL, "", "false");
  hlo_t x = IN(c, TT_F32, "3", "1 2 3"), y = IN(c, TT_F32, "", "9");
  EXPECT(c, hlo_select(b, p, x, y), "2,3", "1 2 3 9 9 9");
  EXPECT(c, hlo_select(b, s, x, y), "3", "9 9 9");
  EXPECT(c, hlo_clamp(b, hlo_scalar(b, TT_F32, 1.5), x, hlo_scalar(b, TT_F32, 2.5)), "3", "1.5 2 2.5");
  EXPECT(c, hlo_clamp(b, IN(c, TT_F32, "3", "2 0 0"), x, hlo_scalar(b, TT_F32, 2.5)), "3", "2 2 2.5");
  EXPECT(c, hlo_optimization_barrier(b, x), "3", "1 2 3");
}

// ---------------------------------------------------------------- conversion
static void converts(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "6", "0 -0 0.5 nan -1.7 300.9"), z = IN(c, TT_C64, "3", "0 0 0 2 -1.5 nan");
  EXPECT(c, hlo_convert(b, x, TT_BOOL), "6", "false false true true true true");
  EXPECT(c, hlo_convert(b, z, TT_BOOL), "3", "false true true");
  EXPECT(c, hlo_convert(b, x, TT_I32), "6", "0 0 0 ? -1 300");
  EXPECT(c, hlo_convert(b, x, TT_I64), "6", "0 0 0 ? -1 300");
  EXPECT(c, hlo_convert(b, x, TT_U8), "6", "0 0 0 ? 255 44");
  EXPECT(c, hlo_convert(b, x, TT_I8), "6", "0 0 0 ? -1 44");
  EXPECT(c, hlo_convert(b, z, TT_F32), "3", "0 0 -1.5");
  EXPECT(c, hlo_convert(b, z, TT_I16), "3", "0 0 -1");
  EXPECT(c, hlo_convert(b, z, TT_C128), "3", "0 0 0 2 -1.5 nan");
  EXPECT(c, hlo_convert(b, x, TT_C64), "6", "0 0 -0 0 0.5 0 nan 0 -1.7 0 300.9 0");
  EXPECT(c, hlo_convert(b, hlo_convert(b, x, TT_BF16), TT_F32), "6", "0 -0 0.5 nan -1.703125 300");
  EXPECT(c, hlo_convert(b, x, TT_F16), "6", "0 -0 0.5 nan -1.7 301");
  hlo_t i = IN(c, TT_I64, "3", "9007199254740993 -1 256"), p = IN(c, TT_BOOL, "2", "true false");
  EXPECT(c, hlo_convert(b, i, TT_I32), "3", "1 -1 256");
  EXPECT(c, hlo_convert(b, i, TT_U8), "3", "1 255 0");
  EXPECT(c, hlo_convert(b, i, TT_F64), "3", "9007199254740992 -1 256");
  EXPECT(c, hlo_convert(b, i, TT_BOOL), "3", "true true true");
  EXPECT(c, hlo_convert(b, i, TT_U64), "3", "9007199254740993 18446744073709551615 256");
  EXPECT(c, hlo_convert(b, p, TT_F32), "2", "1 0");
  EXPECT(c, hlo_convert(b, p, TT_I64), "2", "1 0");
  EXPECT(c, hlo_convert(b, p, TT_C64), "2", "1 0 0 0");
  EXPECT(c, hlo_convert(b, hlo_convert(b, x, TT_F8E5M2), TT_F32), "6", "0 -0 0.5 nan -1.75 320");
  EXPECT(c, hlo_convert(b, hlo_convert(b, x, TT_F8E4M3FN), TT_F32), "6", "0 -0 0.5 nan -1.75 288");
}

static void bitcasts(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2", "1 -2"), z = IN(c, TT_C64, "2", "1 2 3 4"), p = IN(c, TT_BOOL, "2", "true false");
  EXPECT(c, hlo_bitcast(b, x, TT_I32), "2", "1065353216 -1073741824");
  EXPECT(c, hlo_bitcast(b, x, TT_U8), "2,4", "0 0 128 63 0 0 0 192");
  EXPECT(c, hlo_bitcast(b, x, TT_U64), "", "13835058056347516928");
  EXPECT(c, hlo_bitcast(b, hlo_bitcast(b, x, TT_U8), TT_F32), "2", "1 -2");
  EXPECT(c, hlo_bitcast(b, z, TT_F32), "2,2", "1 2 3 4");
  EXPECT(c, hlo_bitcast(b, z, TT_U16), "2,4", "0 16256 0 16384 0 16448 0 16512");
  EXPECT(c, hlo_bitcast(b, z, TT_I64), "2", "4611686019492741120 4647714816524288000");
  EXPECT(c, hlo_bitcast(b, hlo_bitcast(b, z, TT_I64), TT_C64), "2", "1 2 3 4");
  EXPECT(c, hlo_bitcast(b, hlo_bitcast(b, z, TT_U16), TT_C64), "2", "1 2 3 4");
  EXPECT(c, hlo_bitcast(b, x, TT_C64), "", "1 -2");
  EXPECT(c, hlo_bitcast(b, hlo_bitcast(b, z, TT_C128), TT_C64), "2", "1 2 3 4");
  EXPECT(c, hlo_bitcast(b, p, TT_U8), "2", "1 0");
  EXPECT(c, hlo_bitcast(b, hlo_bitcast(b, p, TT_I8), TT_BOOL), "2", "true false");
  EXPECT(c, hlo_bitcast(b, IN(c, TT_C128, "2", "1 2 3 4"), TT_I64), "2,2",
         "4607182418800017408 4611686018427387904 4613937818241073152 4616189618054758400");
}

// ---------------------------------------------------------------- constants
static void constants(cts_t* c) {
  hlo_builder_t* b = c->b;
  EXPECT(c, hlo_scalar(b, TT_F32, 0.1), "", "0.1");
  EXPECT(c, hlo_scalar(b, TT_F32, -0.0), "", "-0");
  EXPECT(c, hlo_scalar(b, TT_F32, NAN), "", "nan");
  EXPECT(c, hlo_scalar(b, TT_F64, -INFINITY), "", "-inf");
  EXPECT(c, hlo_scalar(b, TT_F64, 1.0 / 3), "", "0.3333333333333333");
  EXPECT(c, hlo_scalar(b, TT_F32, 1.17549435e-38), "", "1.17549435e-38");
  EXPECT(c, hlo_scalar(b, TT_F64, 1e300), "", "1e300");
  EXPECT(c, hlo_scalar(b, TT_BF16, 1.5), "", "1.5");
  EXPECT(c, hlo_scalar(b, TT_F16, -65504), "", "-65504");
  EXPECT(c, hlo_scalar(b, TT_F16, 1e6), "", "inf");
  EXPECT(c, hlo_convert(b, hlo_optimization_barrier(b, hlo_scalar(b, TT_F8E4M3FN, -448)), TT_F32), "", "-448");
  EXPECT(c, hlo_convert(b, hlo_optimization_barrier(b, hlo_scalar(b, TT_F8E5M2, 0.75)), TT_F32), "", "0.75");
  EXPECT(c, hlo_convert(b, hlo_optimization_barrier(b, hlo_scalar(b, TT_F8E4M3FNUZ, -240)), TT_F32), "", "-240");
  EXPECT(c, hlo_convert(b, hlo_optimization_barrier(b, hlo_scalar(b, TT_F8E5M2FNUZ, 0.75)), TT_F32), "", "0.75");
  EXPECT(c, hlo_scalar_int(b, TT_I64, INT64_MIN), "", "-9223372036854775808");
  EXPECT(c, hlo_scalar_int(b, TT_U64, -1), "", "18446744073709551615");
  EXPECT(c, hlo_scalar(b, TT_U8, 255), "", "255");
  EXPECT(c, hlo_scalar(b, TT_I16, -32768), "", "-32768");
  EXPECT(c, hlo_scalar(b, TT_BOOL, 0.5), "", "true");
  EXPECT(c, hlo_scalar_complex(b, TT_C64, 1, -INFINITY), "", "1 -inf");
  EXPECT(c, hlo_scalar_complex(b, TT_C128, NAN, -0.0), "", "nan -0");
  EXPECT(c, hlo_splat(b, TT_I32, 7, 2, D(2, 2)), "2,2", "7 7 7 7");
  EXPECT(c, hlo_splat(b, TT_F32, 7, 2, D(2, 0)), "2,0", "");
  EXPECT(c, hlo_lowest(b, TT_I8), "", "-128");
  EXPECT(c, hlo_highest(b, TT_U32), "", "4294967295");
  EXPECT(c, hlo_highest(b, TT_F32), "", "inf");
  EXPECT(c, hlo_lowest(b, TT_BF16), "", "-inf");
}

static void arrays(cts_t* c) {
  hlo_builder_t* b = c->b;
  EXPECT(c, hlo_array(b, TT_I64, 1, D(3), D(1, -2, INT64_MAX)), "3", "1 -2 9223372036854775807");
  EXPECT(c, hlo_array(b, TT_F32, 2, D(2, 3), (const float[]){1, 2.5f, -0.0f, INFINITY, NAN, 1e-7f}), "2,3",
         "1 2.5 -0 inf nan 1e-7");
  EXPECT(c, hlo_array(b, TT_F64, 1, D(2), (const double[]){0.1, -INFINITY}), "2", "0.1 -inf");
  EXPECT(c, hlo_array(b, TT_BOOL, 1, D(3), (const uint8_t[]){1, 0, 1}), "3", "true false true");
  EXPECT(c, hlo_array(b, TT_BF16, 1, D(2), (const uint16_t[]){0x3f80, 0xc000}), "2", "1 -2");
  EXPECT(c, hlo_array(b, TT_C64, 1, D(2), (const float[]){1, 2, 3, NAN}), "2", "1 2 3 nan");
  EXPECT(c, hlo_array(b, TT_U8, 3, D(1, 2, 2), (const uint8_t[]){1, 2, 3, 255}), "1,2,2", "1 2 3 255");
  EXPECT(c, hlo_array(b, TT_F32, 2, D(0, 3), NULL), "0,3", "");
  EXPECT(c, hlo_array(b, TT_F32, 1, D(3), (const float[]){4, 4, 4}), "3", "4 4 4");
  EXPECT(c, hlo_iota(b, TT_I64, 2, D(2, 3), 1), "2,3", "0 1 2 0 1 2");
  EXPECT(c, hlo_iota(b, TT_F32, 2, D(2, 3), 0), "2,3", "0 0 0 1 1 1");
  EXPECT(c, hlo_iota(b, TT_C64, 1, D(2), 0), "2", "0 0 1 0");
  EXPECT(c, hlo_iota(b, TT_BOOL, 1, D(3), 0), "3", "false true true");
  EXPECT(c, hlo_iota(b, TT_U8, 1, D(3), 0), "3", "0 1 2");
}

const cts_case_t k_elementwise_cases[] = {
    {"elementwise/float_unary", float_unary},     {"elementwise/int_unary", int_unary},
    {"elementwise/complex_unary", complex_unary}, {"elementwise/float_binary", float_binary},
    {"elementwise/int_binary", int_binary},       {"elementwise/bool_binary", bool_binary},
    {"elementwise/complex_binary", complex_binary}, {"elementwise/compare", compares},
    {"elementwise/select", selects},              {"elementwise/convert", converts},
    {"elementwise/bitcast", bitcasts},            {"elementwise/constants", constants},
    {"elementwise/arrays", arrays},               {NULL, NULL}};
