// hlo/builder: shape inference, folding, errors, regions, printed text. Needs no plugin.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "hlo/ir.h"

#define D(...) ((const int64_t[]){__VA_ARGS__})

static int setup(void** state) {
  *state = hlo_builder_create();
  return *state ? 0 : -1;
}

static int teardown(void** state) {
  hlo_builder_destroy(*state);
  return 0;
}

static void check_shape(hlo_t v, tt_dtype_t dtype, int rank, const int64_t* dims) {
  assert_int_equal(v->dtype, dtype);
  assert_int_equal(v->rank, rank);
  for (int i = 0; i < rank; i++) assert_int_equal(v->dims[i], dims[i]);
}

// The builder failed with |code| and says |words|; a fresh one replaces it.
static void check_error(void** state, tt_code_t code, const char* words) {
  tt_status_t status = hlo_builder_error(*state);
  assert_non_null(status);
  assert_int_equal(tt_status_code(status), code);
  if (!strstr(tt_status_message(status), words)) assert_string_equal(tt_status_message(status), words);
  tt_status_free(status);
  hlo_builder_destroy(*state);
  *state = hlo_builder_create();
}

static void check_text(hlo_builder_t* b, int n, const hlo_t* results, const int* aliases, const char* want) {
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_status_t status = hlo_print(b, n, results, aliases, &s);
  assert_string_equal(status ? tt_status_message(status) : "", "");
  assert_string_equal(s.data, want);
  tt_strbuf_deinit(&s);
}

static hlo_t f32(hlo_builder_t* b, int rank, const int64_t* dims) { return hlo_param(b, TT_F32, rank, dims); }

// ---------------------------------------------------------------- inference
static void test_elementwise_shapes(void** state) {
  hlo_builder_t* b = *state;
  hlo_t x = f32(b, 2, D(2, 1)), y = f32(b, 1, D(3));
  check_shape(hlo_add(b, x, y), TT_F32, 2, D(2, 3));
  check_shape(hlo_compare(b, HLO_LT, x, y), TT_BOOL, 2, D(2, 3));
  check_shape(hlo_select(b, hlo_scalar(b, TT_BOOL, 1), x, y), TT_F32, 2, D(2, 3));
  check_shape(hlo_complex(b, x, y), TT_C64, 2, D(2, 3));
  check_shape(hlo_abs(b, hlo_complex(b, x, y)), TT_F32, 2, D(2, 3));
  check_shape(hlo_add(b, hlo_param(b, TT_F32, 2, D(0, 1)), y), TT_F32, 2, D(0, 3));
  check_shape(hlo_bitcast(b, y, TT_U8), TT_U8, 2, D(3, 4));
  check_shape(hlo_bitcast(b, hlo_param(b, TT_F64, 0, NULL), TT_C64), TT_C64, 0, NULL);
  for (int op = 0; op < HLO_UNARY_COUNT; op++) {
    bool ints = op == HLO_not_ || op == HLO_popcnt || op == HLO_count_leading_zeros;
    hlo_t v = ints ? hlo_param(b, TT_I32, 1, D(3)) : y;
    check_shape(hlo_unary(b, (hlo_unary_t)op, v), v->dtype, 1, D(3));
  }
  assert_false(hlo_failed(b));
}

static void test_reduction_shapes(void** state) {
  hlo_builder_t* b = *state;
  hlo_t x = f32(b, 3, D(2, 3, 4)), v, i;
  check_shape(hlo_reduce(b, x, HLO_R_ADD, 2, D(0, -1)), TT_F32, 1, D(3));
  check_shape(hlo_reduce_keep(b, x, HLO_R_MAX, 1, D(1)), TT_F32, 3, D(2, 1, 4));
  check_shape(hlo_reduce_all(b, x, HLO_R_ADD), TT_F32, 0, NULL);
  hlo_arg_reduce(b, x, true, 1, &v, &i);
  check_shape(v, TT_F32, 2, D(2, 4));
  check_shape(i, TT_I64, 2, D(2, 4));
  hlo_sort_with_index(b, x, -1, false, &v, &i);
  check_shape(i, TT_I64, 3, D(2, 3, 4));
  check_shape(hlo_scan(b, hlo_param(b, TT_I32, 2, D(2, 1000)), HLO_R_ADD, 1, false), TT_I32, 2, D(2, 1000));
  assert_int_equal(hlo_window_out(6, 2, 2, 1, 1, 0, 0), 3);
  assert_int_equal(hlo_window_out(6, 3, 1, 1, 1, 1, 1), 6);
  assert_int_equal(hlo_window_out(6, 2, 1, 1, 3, 0, 0), 3);
  assert_int_equal(hlo_window_out(6, 2, 1, 2, 1, 0, 0), 10);
  assert_int_equal(hlo_window_out(1, 3, 1, 1, 1, 0, 0), 0);
  assert_int_equal(hlo_window_out(0, 1, 1, 1, 1, 0, 0), 0);
  assert_false(hlo_failed(b));
}

static void test_linalg_shapes(void** state) {
  hlo_builder_t* b = *state;
  hlo_t x = f32(b, 3, D(5, 2, 3)), y = f32(b, 3, D(5, 3, 4));
  check_shape(hlo_matmul(b, x, y), TT_F32, 3, D(5, 2, 4));
  check_shape(hlo_dot_general(b, x, y, 0, NULL, NULL, 1, D(2), D(1), TT_F64), TT_F64, 4, D(5, 2, 5, 4));
  hlo_conv_t conv = {.n_spatial = 2, .lhs_batch = -1, .stride = D(2, 2), .pad_lo = D(1, 1), .pad_hi = D(1, 1)};
  check_shape(hlo_convolution(b, f32(b, 4, D(8, 3, 32, 31)), f32(b, 4, D(16, 3, 3, 3)), &conv, TT_DT_NONE), TT_F32, 4,
              D(8, 16, 16, 16));
  check_shape(hlo_fft(b, x, HLO_RFFT, 1, D(3)), TT_C64, 3, D(5, 2, 2));
  check_shape(hlo_fft(b, hlo_param(b, TT_C128, 1, D(3)), HLO_IRFFT, 1, D(5)), TT_F64, 1, D(5));
  check_shape(hlo_take(b, x, hlo_param(b, TT_I64, 2, D(7, 8)), 1), TT_F32, 4, D(5, 7, 8, 3));
  check_shape(hlo_take_along(b, x, hlo_param(b, TT_I64, 3, D(5, 9, 2)), 1), TT_F32, 3, D(5, 9, 2));
  assert_false(hlo_failed(b));
}

// ---------------------------------------------------------------- folding
static void test_identities_fold(void** state) {
  hlo_builder_t* b = *state;
  hlo_t x = f32(b, 2, D(2, 3));
  assert_ptr_equal(hlo_reshape(b, x, 2, D(2, 3)), x);
  assert_ptr_equal(hlo_reshape(b, hlo_reshape(b, x, 1, D(6)), 2, D(2, 3)), x);
  assert_ptr_equal(hlo_transpose(b, x, D(0, 1)), x);
  assert_ptr_equal(hlo_transpose(b, hlo_transpose(b, x, D(1, 0)), D(1, 0)), x);
  assert_ptr_equal(hlo_convert(b, x, TT_F32), x);
  assert_ptr_equal(hlo_slice(b, x, D(0, 0), D(2, 3), NULL), x);
  assert_ptr_equal(hlo_broadcast_to(b, x, 2, D(2, 3)), x);
  assert_ptr_equal(hlo_pad(b, x, hlo_scalar(b, TT_F32, 0), D(0, 0), D(0, 0), NULL), x);
  assert_ptr_equal(hlo_concat(b, 1, &x, 0), x);
  assert_ptr_equal(hlo_reverse(b, x, 0, NULL), x);
  assert_ptr_equal(hlo_reduce(b, x, HLO_R_ADD, 0, NULL), x);
  assert_ptr_equal(hlo_bitcast(b, x, TT_F32), x);
  assert_ptr_equal(hlo_real(b, hlo_complex(b, x, hlo_zeros_like(b, x))), x);
  assert_ptr_equal(hlo_real(b, x), x);
  hlo_t whole = hlo_param(b, TT_I32, 0, NULL);
  assert_ptr_equal(hlo_floor(b, whole), whole);
  hlo_t wide = hlo_broadcast_in_dim(b, f32(b, 1, D(3)), 2, D(2, 3), D(1));
  hlo_t wider = hlo_broadcast_in_dim(b, wide, 3, D(2, 4, 3), D(0, 2));
  assert_ptr_equal(wider->op->operands[0], wide->op->operands[0]);
  assert_non_null(hlo_splat_source(hlo_transpose(b, hlo_splat(b, TT_F32, 1, 2, D(4, 5)), D(1, 0))));
  assert_non_null(hlo_splat_source(hlo_reshape(b, hlo_splat(b, TT_F32, 1, 2, D(4, 5)), 1, D(20))));
  assert_false(hlo_failed(b));
}

static void test_scalars_are_shared_within_a_region(void** state) {
  hlo_builder_t* b = *state;
  hlo_t one = hlo_scalar(b, TT_F32, 1);
  assert_ptr_equal(hlo_scalar(b, TT_F32, 1), one);
  assert_ptr_equal(hlo_scalar_int(b, TT_F32, 1), one);
  assert_ptr_not_equal(hlo_scalar(b, TT_F64, 1), one);
  assert_ptr_not_equal(hlo_scalar(b, TT_F32, 0), hlo_scalar(b, TT_F32, -0.0));
  hlo_region_t* r = hlo_region_begin(b);
  assert_ptr_not_equal(hlo_scalar(b, TT_F32, 1), one);
  hlo_region_end(b, r, 0, NULL);
}

// ---------------------------------------------------------------- constants
static void check_constant(hlo_t v, const char* want) { assert_string_equal(v->op->attrs, want); }

static void test_constant_text(void** state) {
  hlo_builder_t* b = *state;
  check_constant(hlo_scalar(b, TT_F32, 1), "value = dense<1.0e+00> : tensor<f32>");
  check_constant(hlo_scalar(b, TT_F32, 0.1), "value = dense<1.0e-01> : tensor<f32>");
  check_constant(hlo_scalar(b, TT_F64, 0.1), "value = dense<1.0e-01> : tensor<f64>");
  check_constant(hlo_scalar(b, TT_F64, 1.0 / 3), "value = dense<3.3333333333333331e-01> : tensor<f64>");
  check_constant(hlo_scalar(b, TT_F32, 1.0 / 3), "value = dense<3.33333343e-01> : tensor<f32>");
  check_constant(hlo_scalar(b, TT_F32, -0.0), "value = dense<0x80000000> : tensor<f32>");
  check_constant(hlo_scalar(b, TT_F32, INFINITY), "value = dense<0x7F800000> : tensor<f32>");
  check_constant(hlo_scalar(b, TT_F32, 1e300), "value = dense<0x7F800000> : tensor<f32>");
  check_constant(hlo_scalar(b, TT_F64, -INFINITY), "value = dense<0xFFF0000000000000> : tensor<f64>");
  check_constant(hlo_scalar(b, TT_F16, 1), "value = dense<0x3C00> : tensor<f16>");
  check_constant(hlo_scalar(b, TT_BF16, 1), "value = dense<0x3F80> : tensor<bf16>");
  check_constant(hlo_scalar_complex(b, TT_C64, 1, NAN), "value = dense<(1.0e+00, 0x7FC00000)> : tensor<complex<f32>>");
  check_constant(hlo_scalar(b, TT_BOOL, 3), "value = dense<true> : tensor<i1>");
  check_constant(hlo_scalar(b, TT_I8, -1e9), "value = dense<0> : tensor<i8>");
  check_constant(hlo_scalar_int(b, TT_U64, -1), "value = dense<18446744073709551615> : tensor<ui64>");
  check_constant(hlo_scalar(b, TT_I64, 1e30), "value = dense<9223372036854775807> : tensor<i64>");
  check_constant(hlo_array(b, TT_I32, 2, D(2, 2), ((const int32_t[]){1, 2, 3, 4})),
                 "value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>");
  check_constant(hlo_array(b, TT_F32, 2, D(2, 0), NULL), "value = dense<> : tensor<2x0xf32>");
}

static void check_bits(hlo_builder_t* b, tt_dtype_t dtype, double v, const char* hex) {
  assert_non_null(strstr(hlo_scalar(b, dtype, v)->op->attrs, hex));
}

static void test_small_floats_round_once_to_even(void** state) {
  hlo_builder_t* b = *state;
  check_bits(b, TT_F16, 65519, "0x7BFF");   // below half way to 65536
  check_bits(b, TT_F16, 65520, "0x7C00");   // half way: to even, which is infinity
  check_bits(b, TT_F16, 5.9604644775390625e-08, "0x0001");
  check_bits(b, TT_F16, 2.98023223876953125e-08, "0x0000");
  check_bits(b, TT_F16, 2049, "0x6800");
  check_bits(b, TT_F16, 2051, "0x6802");
  check_bits(b, TT_F16, 6.103515625e-05, "0x0400");
  check_bits(b, TT_F16, 6.1005353927612305e-05, "0x0400");  // largest subnormal and a half carries
  check_bits(b, TT_BF16, 3.4028234663852886e38, "0x7F80");
  check_bits(b, TT_BF16, 1.00390625, "0x3F80");
  check_bits(b, TT_BF16, -1.01171875, "0xBF82");
  check_bits(b, TT_BF16, NAN, "0x7FC0");
  check_bits(b, TT_F8E4M3FN, 448, "0x7E");
  check_bits(b, TT_F8E4M3FN, 464, "0x7E");
  check_bits(b, TT_F8E4M3FN, 465, "0x7F");
  check_bits(b, TT_F8E4M3FN, -INFINITY, "0xFF");
  check_bits(b, TT_F8E4M3FN, 0.001953125, "0x01");
  check_bits(b, TT_F8E5M2, 57344, "0x7B");
  check_bits(b, TT_F8E5M2, 61440, "0x7C");
  check_bits(b, TT_F8E4M3FNUZ, -0.0, "0x00");
  check_bits(b, TT_F8E4M3FNUZ, 240, "0x7F");
  check_bits(b, TT_F8E4M3FNUZ, 1000, "0x80");
  check_bits(b, TT_F8E5M2FNUZ, 1, "0x40");
  check_bits(b, TT_F8E5M2FNUZ, -1e-30, "0x00");
}

// ---------------------------------------------------------------- errors
static void test_errors_name_the_trouble(void** state) {
  hlo_builder_t* b = *state;
  hlo_add(b, f32(b, 2, D(2, 3)), f32(b, 1, D(4)));
  check_error(state, TT_INVALID_ARGUMENT, "shapes float32[2,3] and float32[4] do not broadcast");
  b = *state;
  hlo_add(b, f32(b, 0, NULL), hlo_param(b, TT_F64, 0, NULL));
  check_error(state, TT_INTERNAL, "stablehlo.add: operands are float32 and float64; convert them first");
  b = *state;
  hlo_subtract(b, hlo_param(b, TT_BOOL, 0, NULL), hlo_param(b, TT_BOOL, 0, NULL));
  check_error(state, TT_UNIMPLEMENTED, "stablehlo.subtract: not defined for bool");
  b = *state;
  assert_int_equal(hlo_dim(b, -1, 3), 2);
  hlo_dim(b, 3, 3);
  check_error(state, TT_OUT_OF_RANGE, "expected to be in range of [-3, 2], but got 3");
  b = *state;
  hlo_reshape(b, f32(b, 1, D(6)), 2, D(2, 2));
  check_error(state, TT_INVALID_ARGUMENT, "shape '[2,2]' is invalid for input of size 6");
  b = *state;
  hlo_slice_dim(b, f32(b, 1, D(6)), 0, 2, 7, 1);
  check_error(state, TT_INVALID_ARGUMENT, "slice: 2:7:1 of dim 0 of float32[6]");
  b = *state;
  hlo_compare(b, HLO_LT, hlo_param(b, TT_C64, 0, NULL), hlo_param(b, TT_C64, 0, NULL));
  check_error(state, TT_UNIMPLEMENTED, "complex numbers have no order");
  b = *state;
  hlo_negate(b, NULL);
  check_error(state, TT_INTERNAL, "operand 0 is missing");
  b = *state;
  hlo_matmul(b, f32(b, 2, D(2, 3)), f32(b, 2, D(2, 3)));
  check_error(state, TT_INVALID_ARGUMENT, "dot: dim 1 of float32[2,3] and dim 0 of float32[2,3] differ in size");
}

static void test_first_error_sticks_and_nothing_crashes(void** state) {
  hlo_builder_t* b = *state;
  hlo_t bad = hlo_fail(b, TT_VALUE_ERROR, "number %d", 1);
  (void)hlo_fail(b, TT_INTERNAL, "number %d", 2);
  check_shape(bad, TT_F32, 0, NULL);
  assert_int_equal(bad->dims[5], 1);
  hlo_t v, i, outs[2];
  hlo_arg_reduce(b, bad, true, 3, &v, &i);
  hlo_sort_with_index(b, i, 9, true, &v, &i);
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t a = hlo_region_arg(b, r, TT_F32, 0, NULL);
  hlo_region_end(b, r, 1, &a);
  hlo_while(b, 1, &a, r, r, outs);
  hlo_if(b, a, r, r, 2, outs);
  assert_ptr_equal(outs[1], bad);
  assert_ptr_equal(hlo_transpose(b, hlo_matmul(b, bad, bad), D(7, 7)), bad);
  assert_ptr_equal(hlo_put_along(b, bad, i, v, 4, HLO_R_ADD), bad);
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_status_t status = hlo_print(b, 1, &bad, NULL, &s);
  assert_int_equal(tt_status_code(status), TT_VALUE_ERROR);
  tt_status_free(status);
  tt_strbuf_deinit(&s);
  check_error(state, TT_VALUE_ERROR, "number 1");
}

// ---------------------------------------------------------------- regions
static void test_reducer_may_not_capture(void** state) {
  hlo_builder_t* b = *state;
  hlo_t outer = f32(b, 0, NULL), x = f32(b, 1, D(3)), init = hlo_scalar(b, TT_F32, 0), out;
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t acc = hlo_region_arg(b, r, TT_F32, 0, NULL);
  (void)hlo_region_arg(b, r, TT_F32, 0, NULL);
  hlo_t y = hlo_add(b, acc, outer);
  hlo_region_end(b, r, 1, &y);
  hlo_reduce_region(b, 1, &x, &init, 1, D(0), r, &out);
  check_error(state, TT_INTERNAL, "reduce: its region uses a value from outside");
}

static void test_region_values_do_not_leak(void** state) {
  hlo_builder_t* b = *state;
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t a = hlo_region_arg(b, r, TT_F32, 0, NULL);
  hlo_region_end(b, r, 1, &a);
  hlo_negate(b, a);
  check_error(state, TT_INTERNAL, "stablehlo.negate: operand 0 belongs to a region that is closed");
}

static void test_region_types_are_checked(void** state) {
  hlo_builder_t* b = *state;
  hlo_t x = f32(b, 1, D(3)), init = hlo_scalar(b, TT_F32, 0), out;
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t a = hlo_region_arg(b, r, TT_F32, 0, NULL), c = hlo_region_arg(b, r, TT_F64, 0, NULL);
  hlo_region_end(b, r, 1, &a);
  (void)c;
  hlo_reduce_region(b, 1, &x, &init, 1, D(0), r, &out);
  check_error(state, TT_INTERNAL, "reduce: region argument 1 is float64[], not float32[]");
}

// ---------------------------------------------------------------- text
static void test_text_of_a_module(void** state) {
  hlo_builder_t* b = *state;
  hlo_t x = f32(b, 2, D(2, 3)), y = f32(b, 1, D(3));
  hlo_t dead = hlo_exponential(b, x);
  (void)hlo_tanh(b, dead);
  hlo_t out[2] = {hlo_add(b, x, y), y};
  check_text(b, 2, out, (const int[]){0, -1},
             "module @tt {\n"
             "  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<3xf32>) "
             "-> (tensor<2x3xf32>, tensor<3xf32>) {\n"
             "    %0 = \"stablehlo.broadcast_in_dim\"(%arg1) {broadcast_dimensions = array<i64: 1>} : "
             "(tensor<3xf32>) -> tensor<2x3xf32>\n"
             "    %1 = \"stablehlo.add\"(%arg0, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n"
             "    func.return %1, %arg1 : tensor<2x3xf32>, tensor<3xf32>\n"
             "  }\n"
             "}\n");
}

static void test_text_of_regions(void** state) {
  hlo_builder_t* b = *state;
  hlo_t two = hlo_scalar(b, TT_F32, 2), x = f32(b, 1, D(4)), init = hlo_scalar(b, TT_F32, 0), out;
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t a = hlo_region_arg(b, r, TT_F32, 0, NULL), v = hlo_region_arg(b, r, TT_F32, 0, NULL);
  hlo_t y = hlo_add(b, a, hlo_multiply(b, v, two));  // |two| is copied inside
  hlo_region_end(b, r, 1, &y);
  hlo_reduce_region(b, 1, &x, &init, 1, D(0), r, &out);
  check_text(b, 1, &out, NULL,
             "module @tt {\n"
             "  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<f32>) {\n"
             "    %0 = \"stablehlo.constant\"() {value = dense<0.0e+00> : tensor<f32>} : () -> tensor<f32>\n"
             "    %1 = \"stablehlo.reduce\"(%arg0, %0) ({\n"
             "    ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):\n"
             "      %2 = \"stablehlo.constant\"() {value = dense<2.0e+00> : tensor<f32>} : () -> tensor<f32>\n"
             "      %3 = \"stablehlo.multiply\"(%a1, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
             "      %4 = \"stablehlo.add\"(%a0, %3) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
             "      \"stablehlo.return\"(%4) : (tensor<f32>) -> ()\n"
             "    }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>\n"
             "    func.return %1 : tensor<f32>\n"
             "  }\n"
             "}\n");
}

static void test_text_of_several_results(void** state) {
  hlo_builder_t* b = *state;
  hlo_t state_in = hlo_param(b, TT_U64, 1, D(2)), next;
  hlo_t bits = hlo_rng_bits(b, state_in, TT_U32, 1, D(3), &next), out[2] = {next, bits};
  check_text(b, 2, out, (const int[]){0, -1},
             "module @tt {\n"
             "  func.func public @main(%arg0: tensor<2xui64> {tf.aliasing_output = 0 : i32}) -> (tensor<2xui64>, "
             "tensor<3xui32>) {\n"
             "    %0:2 = \"stablehlo.rng_bit_generator\"(%arg0) {rng_algorithm = #stablehlo<rng_algorithm "
             "THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)\n"
             "    func.return %0#0, %0#1 : tensor<2xui64>, tensor<3xui32>\n"
             "  }\n"
             "}\n");
}

// A dead op before the live ones changes nothing in the text; printing twice gives the same.
static void test_text_is_stable(void** state) {
  hlo_builder_t* b = *state;
  tt_strbuf_t s[3];
  for (int i = 0; i < 3; i++) tt_strbuf_init(&s[i]);
  for (int i = 0; i < 3; i++) {
    hlo_builder_t* other = i == 2 ? hlo_builder_create() : b;
    static hlo_t y;
    if (i != 1) {
      hlo_t x = f32(other, 1, D(100));
      if (i == 2) (void)hlo_scan(other, hlo_cosine(other, x), HLO_R_MUL, 0, true);
      hlo_t v, index;
      hlo_arg_reduce(other, hlo_scan(other, x, HLO_R_ADD, 0, false), true, 0, &v, &index);
      y = index;
    }
    assert_null(hlo_print(other, 1, &y, NULL, &s[i]));
    assert_string_equal(s[i].data, s[0].data);
    if (i == 2) hlo_builder_destroy(other);
  }
  for (int i = 0; i < 3; i++) tt_strbuf_deinit(&s[i]);
}

static void check_print_error(hlo_builder_t* b, int n, const hlo_t* results, const int* aliases, const char* want) {
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_status_t status = hlo_print(b, n, results, aliases, &s);
  assert_string_equal(tt_status_message(status), want);
  tt_status_free(status);
  tt_strbuf_deinit(&s);
}

static void test_bad_donations_are_refused(void** state) {
  hlo_builder_t* b = *state;
  hlo_t x = f32(b, 1, D(3)), y = f32(b, 1, D(4)), out[2] = {hlo_negate(b, x), hlo_negate(b, x)};
  check_print_error(b, 1, out, (const int[]){1},
                    "result 0 is float32[3], but the parameter donated to it is float32[4]");
  check_print_error(b, 1, out, (const int[]){2}, "result 0 takes the buffer of parameter 2 of 2");
  check_print_error(b, 2, out, (const int[]){0, 0}, "parameter 0 is donated to two results");
  (void)y;
}

// ---------------------------------------------------------------- memory
typedef struct limit_t {
  int left;
} limit_t;

static void* limited_realloc(void* ctx, void* old, size_t size_bytes) {
  limit_t* limit = ctx;
  if (size_bytes == 0) {
    free(old);
    return NULL;
  }
  if (limit->left-- <= 0) return NULL;
  return realloc(old, size_bytes);
}

// Whichever allocation fails, the builder ends with an error or a program, and leaks nothing (run under ASan).
static void test_out_of_memory_is_an_error(void** state) {
  (void)state;
  bool done = false;
  for (int n = 0; n < 2000 && !done; n++) {
    limit_t limit = {n};
    tt_alloc_set_hooks(&(tt_alloc_hooks_t){limited_realloc, &limit});
    hlo_builder_t* b = hlo_builder_create();
    if (b) {
      tt_strbuf_t s;
      tt_strbuf_init(&s);
      hlo_t x = f32(b, 1, D(3000)), v, i;
      hlo_sort_with_index(b, hlo_scan(b, x, HLO_R_ADD, 0, false), 0, true, &v, &i);
      tt_status_t status = hlo_print(b, 1, &i, NULL, &s);
      done = !status;
      if (status) assert_int_equal(tt_status_code(status), TT_RESOURCE_EXHAUSTED);
      tt_status_free(status);
      tt_strbuf_deinit(&s);
    }
    hlo_builder_destroy(b);
    tt_alloc_set_hooks(NULL);
  }
  assert_true(done);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_elementwise_shapes), TEST(test_reduction_shapes), TEST(test_linalg_shapes), TEST(test_identities_fold),
      TEST(test_scalars_are_shared_within_a_region), TEST(test_constant_text),
      TEST(test_small_floats_round_once_to_even),
      TEST(test_errors_name_the_trouble), TEST(test_first_error_sticks_and_nothing_crashes),
      TEST(test_reducer_may_not_capture), TEST(test_region_values_do_not_leak), TEST(test_region_types_are_checked),
      TEST(test_text_of_a_module), TEST(test_text_of_regions), TEST(test_text_of_several_results),
      TEST(test_text_is_stable), TEST(test_bad_donations_are_refused), TEST(test_out_of_memory_is_an_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
