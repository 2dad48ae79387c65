// Ahead of time, with the fake plugin: argument its path. Programs, spreads over devices, the cache a device looks into.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h wants those before it.
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fake_pjrt/fake_pjrt.h"
#include "tt/aot.h"
#include "tt/graph.h"

static const char* g_path;
static char g_folder[] = "/tmp/tt_aot_XXXXXX";
static const char k_text[] = "func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>) {}";

static void expect(tt_status_t status, tt_code_t code, const char* words, int line) {
  bool right = tt_status_code(status) == code && strstr(tt_status_message(status), words);
  if (!right) print_error("line %d: %s: \"%s\"\n", line, tt_code_name(tt_status_code(status)), tt_status_message(status));
  tt_status_free(status);
  assert_true(right);
}
#define OK(expr) expect((expr), TT_OK, "", __LINE__)
#define FAILS(expr, code, words) expect((expr), (code), (words), __LINE__)

static const fake_pjrt_control_t* fake(void) {
  void* library = dlopen(g_path, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  const fake_pjrt_control_t* (*get)(void) = NULL;
  *(void**)&get = dlsym(library, "fake_pjrt_control");
  assert_non_null(get);
  return get();
}

static bool sent(const char* bytes, size_t n) {
  int64_t len = 0;
  const void* options = fake()->last_options(&len);
  return memmem(options, (size_t)len, bytes, n) != NULL;
}
#define SENT(bytes) assert_true(sent((bytes), sizeof(bytes) - 1))

static void test_topology(void** state) {
  (void)state;
  tt_aot_t* aot;
  FAILS(tt_aot_open(g_path, "v5e:2x2", &aot), TT_INVALID_ARGUMENT, "topology \"v5e:2x2\"");
  assert_null(aot);
  OK(tt_aot_open(g_path, "fake:2x2", &aot));
  assert_int_equal(tt_aot_devices(aot), 4);
  assert_string_equal(tt_aot_device_kind(aot), "fake");
  assert_string_equal(tt_aot_platform_version(aot), "fake 1");
  tt_aot_close(aot);
  tt_aot_close(NULL);
}

// Of the build options: 4 replicas, 5 partitions, 6 SPMD, 9 the assignment {1 replicas, 2 partitions, 3 {1 ids} ...}.
static void test_spread(void** state) {
  (void)state;
  tt_aot_t* aot;
  tt_aot_program_t* program;
  OK(tt_aot_open(g_path, "fake:2x2", &aot));
  OK(tt_aot_compile(aot, k_text, strlen(k_text), NULL, 1, 1, &program));
  SENT("\x1a\x04\x20\x01\x28\x01");  // one of each, on a device of the compiler's choice
  tt_aot_program_free(program);
  OK(tt_aot_compile(aot, k_text, strlen(k_text), NULL, 4, 1, &program));
  SENT("\x20\x04\x28\x01\x4a\x0c\x08\x04\x10\x01\x1a\x06\x0a\x04\x0a\x0b\x0c\x0d");
  tt_aot_program_free(program);
  OK(tt_aot_compile(aot, k_text, strlen(k_text), "fake_flag=7", 2, 2, &program));
  SENT("\x20\x02\x28\x02\x30\x01\x4a\x10\x08\x02\x10\x02\x1a\x04\x0a\x02\x0a\x0c\x1a\x04\x0a\x02\x0b\x0d");
  SENT("fake_flag");
  tt_aot_program_free(program);
  FAILS(tt_aot_compile(aot, k_text, strlen(k_text), NULL, 1, 5, &program), TT_INVALID_ARGUMENT, "topology of 4 devices");
  FAILS(tt_aot_compile(aot, k_text, strlen(k_text), NULL, 0, 1, &program), TT_INVALID_ARGUMENT, "0 replicas");
  FAILS(tt_aot_compile(aot, k_text, strlen(k_text), "other=1", 1, 1, &program), TT_INVALID_ARGUMENT, "other");
  tt_aot_close(aot);
}

static void count(void* ctx, const char* name, double value) {
  (void)value;
  if (!strcmp(name, "flops")) ++*(int*)ctx;
}

static void test_facts(void** state) {
  (void)state;
  tt_aot_t* aot;
  tt_aot_program_t* program;
  OK(tt_aot_open(g_path, "fake:2x2", &aot));
  OK(tt_aot_compile(aot, k_text, strlen(k_text), NULL, 1, 1, &program));
  tt_aot_close(aot);  // the program may outlive it
  tt_aot_memory_t memory;
  OK(tt_aot_memory(program, &memory));
  assert_true(memory.argument_bytes >= 0);
  int flops = 0;
  OK(tt_aot_costs(program, count, &flops));
  assert_int_equal(flops, 1);
  char format[32];
  void* bytes = NULL;
  size_t n = 0;
  FAILS(tt_aot_optimized(program, format, &bytes, &n), TT_UNIMPLEMENTED, "PJRT_Executable_OptimizedProgram");
  OK(tt_aot_serialize(program, &bytes, &n));
  assert_true(n > strlen(k_text));
  tt_aot_bytes_free(bytes);
  tt_aot_program_free(program);
  tt_aot_program_free(NULL);
}

// x * x, as a graph.
static tt_graph_t* square(const char* platform) {
  tt_graph_t* g;
  int x, out, n = 1;
  const int64_t four = 4;
  OK(platform ? tt_graph_create_for(platform, &g) : tt_graph_create(0, &g));
  OK(tt_graph_param(g, TT_F32, 1, &four, &x));
  tt_value_t args[2] = {{.kind = TT_V_NODE, .u.i = x}, {.kind = TT_V_NODE, .u.i = x}};
  OK(tt_graph_call(g, "mul.Tensor", 2, args, 0, NULL, &out, &n));
  OK(tt_graph_outputs(g, 1, &out, NULL));
  return g;
}

// What was compiled for a description of the device is found by a runtime on the device: it compiles nothing.
static void test_cache(void** state) {
  (void)state;
  tt_graph_t* g = square("fake");
  tt_aot_t* aot;
  tt_aot_program_t* program;
  char* text;
  size_t len;
  OK(tt_graph_text(g, &text, &len));
  tt_graph_destroy(g);
  OK(tt_aot_open(g_path, "fake:2x2", &aot));
  OK(tt_aot_compile(aot, text, len, NULL, 1, 1, &program));
  OK(tt_aot_store(aot, program, text, len, NULL, 0, g_folder));
  FAILS(tt_aot_store(aot, program, text, len, NULL, 0, "/tmp/another"), TT_FAILED_PRECONDITION, "this process uses");
  tt_runtime_options_t options = {.plugin_path = g_path, .cache_dir = g_folder, .cache_limit_bytes = 1 << 24};
  OK(tt_runtime_open(&options));
  int64_t compiled = fake()->calls("PJRT_Client_Compile");
  tt_program_t* loaded;
  g = square(NULL);
  OK(tt_graph_compile(g, NULL, &loaded));
  assert_int_equal(fake()->calls("PJRT_Client_Compile"), compiled);
  assert_int_equal(fake()->calls("PJRT_Executable_DeserializeAndLoad"), 1);
  tt_program_release(loaded);
  OK(tt_graph_compile(g, "fake_level=1", &loaded));  // another key
  assert_int_equal(fake()->calls("PJRT_Client_Compile"), compiled + 1);
  tt_program_release(loaded);
  tt_graph_destroy(g);
  tt_text_free(text);
  tt_aot_program_free(program);
  tt_aot_close(aot);
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_topology),
      cmocka_unit_test(test_spread),
      cmocka_unit_test(test_facts),
      cmocka_unit_test(test_cache),
  };
  if (argc < 2 || !mkdtemp(g_folder)) {
    fprintf(stderr, "usage: aot_test FAKE_PLUGIN\n");
    return 2;
  }
  g_path = argv[1];
  setenv("XDG_CACHE_HOME", g_folder, 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
