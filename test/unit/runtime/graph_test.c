// Mistakes with the graph interface are statuses at the call that made them, and leave the graph usable or failed.
#include "test/unit/unit.h"

#include "tt/tt.h"

static tt_graph_t* g_graph;
static int g_x;  // f32[2,3]

static int setup(void** state) {
  (void)state;
  const int64_t dims[2] = {2, 3};
  OK(tt_graph_create(0, &g_graph));
  OK(tt_graph_param(g_graph, TT_F32, 2, dims, &g_x));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  tt_graph_destroy(g_graph);
  return 0;
}

static tt_value_t node(int64_t id) { return (tt_value_t){.kind = TT_V_NODE, .u.i = id}; }
static tt_value_t integer(int64_t i) { return (tt_value_t){.kind = TT_V_INT, .u.i = i}; }

static tt_status_t call(const char* name, int n, const tt_value_t* args, int* out_id) {
  int count = 1;
  return tt_graph_call(g_graph, name, n, args, 0, NULL, out_id, &count);
}

static void test_types_and_text(void** state) {
  (void)state;
  int y, rank;
  tt_dtype_t dtype;
  int64_t dims[TT_MAX_RANK];
  OK(call("transpose.int", 3, (const tt_value_t[]){node(g_x), integer(0), integer(-1)}, &y));
  OK(tt_graph_type(g_graph, y, &dtype, &rank, dims));
  assert_int_equal(dtype, TT_F32);
  assert_int_equal(rank, 2);
  assert_int_equal(dims[0], 3);
  assert_int_equal(dims[1], 2);
  OK(tt_graph_outputs(g_graph, 1, &y, NULL));
  char* text;
  size_t len;
  OK(tt_graph_text(g_graph, &text, &len));
  assert_non_null(strstr(text, "stablehlo.transpose"));
  assert_non_null(strstr(text, "tensor<3x2xf32>"));
  tt_text_free(text);
  OK(tt_graph_output_strides(g_graph, 0, 2, (const int64_t[]){1, 3}));  // column-major: nothing is left to do
  OK(tt_graph_text(g_graph, &text, &len));
  assert_int_equal(strlen(text), len);
  assert_non_null(strstr(text, "-> (tensor<2x3xf32>)"));
  tt_text_free(text);
}

static void test_bad_calls(void** state) {
  (void)state;
  int y, rank;
  tt_dtype_t dtype;
  int64_t dims[TT_MAX_RANK];
  FAILS(call("no_such_op", 0, NULL, &y), TT_UNIMPLEMENTED, "no_such_op is not in the op table");
  FAILS(call("nonzero", 1, (const tt_value_t[]){node(g_x)}, &y), TT_UNIMPLEMENTED, "nonzero");
  FAILS(call("relu", 1, (const tt_value_t[]){node(99)}, &y), TT_INVALID_ARGUMENT, "there is no value 99");
  FAILS(call("relu", 1, (const tt_value_t[]){node(-2)}, &y), TT_INVALID_ARGUMENT, "there is no value -2");
  tt_tensor_t t = {0};
  FAILS(call("relu", 1, (const tt_value_t[]){{.kind = TT_V_TENSOR, .u.tensor = &t}}, &y), TT_INVALID_ARGUMENT, "TT_V_NODE");
  FAILS(tt_graph_type(g_graph, 99, &dtype, &rank, dims), TT_INVALID_ARGUMENT, "no value 99");
  OK(call("relu", 1, (const tt_value_t[]){node(g_x)}, &y));  // none of these spoiled the graph
  int none = 0;
  FAILS(tt_graph_call(g_graph, "relu", 1, (const tt_value_t[]){node(g_x)}, 0, NULL, &y, &none), TT_INVALID_ARGUMENT,
        "room for 0");
}

static void test_bad_shapes(void** state) {
  (void)state;
  int y;
  tt_status_t status = call("mm", 2, (const tt_value_t[]){node(g_x), node(g_x)}, &y);
  assert_non_null(status);
  assert_non_null(strstr(tt_status_message(status), "float32[2,3]"));
  tt_status_free(status);
}

static void test_bad_outputs(void** state) {
  (void)state;
  FAILS(tt_graph_outputs(g_graph, 1, (const int[]){5}, NULL), TT_INVALID_ARGUMENT, "no value 5");
  FAILS(tt_graph_outputs(g_graph, -1, NULL, NULL), TT_INVALID_ARGUMENT, "-1 outputs");
  FAILS(tt_graph_outputs(g_graph, 1, &g_x, (const int[]){3}), TT_INVALID_ARGUMENT, "no parameter 3");
  FAILS(tt_graph_output_strides(g_graph, 0, 2, (const int64_t[]){3, 1}), TT_INVALID_ARGUMENT, "no output 0");
  OK(tt_graph_outputs(g_graph, 1, &g_x, NULL));
  FAILS(tt_graph_output_strides(g_graph, 0, 2, (const int64_t[]){4, 1}), TT_INVALID_ARGUMENT, "dense");
  FAILS(tt_graph_output_strides(g_graph, 0, 1, (const int64_t[]){1}), TT_INVALID_ARGUMENT, "dense");
}

static void test_not_open(void** state) {
  (void)state;
  tt_program_t* program = NULL;
  tt_storage_t* storage = NULL;
  assert_false(tt_runtime_is_open());
  assert_int_equal(tt_device_count(), 0);
  OK(tt_graph_outputs(g_graph, 1, &g_x, NULL));
  FAILS(tt_graph_compile(g_graph, NULL, &program), TT_FAILED_PRECONDITION, "");
  assert_null(program);
  FAILS(tt_storage_create(0, 16, &storage), TT_FAILED_PRECONDITION, "");
  FAILS(tt_device_synchronize(0), TT_FAILED_PRECONDITION, "");
  assert_string_equal(tt_runtime_info("no such thing"), "");
  assert_int_equal(tt_counter("no such counter"), -1);
  FAILS(tt_runtime_open(&(tt_runtime_options_t){.plugin_path = "/no/such/plugin.so"}), TT_NOT_FOUND, "/no/such/plugin.so");
  assert_false(tt_runtime_is_open());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_types_and_text), TEST(test_bad_calls), TEST(test_bad_shapes),
                                     TEST(test_bad_outputs), TEST(test_not_open)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
