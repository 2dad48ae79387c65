// Conformance of a PJRT plugin with what src/pjrt needs; the same tests for every plugin.
//
//   pjrt_cts PLUGIN      (or the environment variable TT_TEST_PLUGIN)
//   pjrt_cts LIBTPU --topologies "v5e:2x2 tpu7x:2x2x1"    only the ahead-of-time tests, for a plugin without its device
// The fake plugin computes nothing; where a test looks at computed values it looks at copied ones there.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h wants those before it.
#include <cmocka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/caps.h"
#include "pjrt/pjrt.h"

static const char* g_path;
static const char* g_topologies;
static tt_plugin_t* g_plugin;
static tt_client_t* g_client;

static void check(tt_status_t status, const char* what, int line) {
  if (!status) return;
  print_error("line %d: %s: %s: %s\n", line, what, tt_code_name(tt_status_code(status)), tt_status_message(status));
  tt_status_free(status);
  fail();
}
#define OK(expr) check((expr), #expr, __LINE__)

static void fails_with(tt_status_t status, tt_code_t code, const char* words, int line) {
  bool right = (!code || tt_status_code(status) == code) && status && strstr(tt_status_message(status), words);
  if (!right) {
    print_error("line %d: got %s: \"%s\", expected words \"%s\"\n", line, tt_code_name(tt_status_code(status)),
                tt_status_message(status), words);
  }
  tt_status_free(status);
  assert_true(right);
}
#define FAILS(expr, code, words) fails_with((expr), (code), (words), __LINE__)

static bool is_fake(void) { return strcmp(tt_client_platform(g_client), "fake") == 0; }

static tt_exe_t* compile(const char* text, int device, const char* overrides) {
  tt_exe_t* exe = NULL;
  tt_compile_options_t options = {.device = device, .overrides = overrides};
  OK(tt_exe_compile(g_client, text, strlen(text), &options, &exe));
  return exe;
}

static tt_pbuf_t* put_f32(int device, int64_t n, const float* data) {
  tt_pbuf_t* b = NULL;
  OK(tt_pbuf_from_host(g_client, device, TT_F32, 1, &n, data, TT_HOST_COPY, NULL, NULL, &b));
  return b;
}

static void expect_f32(tt_pbuf_t* b, int64_t n, const float* expected) {
  float got[64];
  assert_true(n <= 64);
  OK(tt_pbuf_to_host(g_client, b, got, (size_t)n * sizeof(float)));
  for (int64_t i = 0; i < n; i++) {
    if (memcmp(&got[i], &expected[i], sizeof got[i])) {
      print_error("element %lld: %g, expected %g\n", (long long)i, (double)got[i], (double)expected[i]);
      fail();
    }
  }
}

static const char k_add[] =
    "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.add %a, %b : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n";
static const char k_donate[] =
    "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.add %a, %b : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n";
static const float k_a[4] = {1, 2, 3, 4}, k_b[4] = {10, 20, 30, 40};
static const float k_sum[4] = {11, 22, 33, 44};

// ---------------------------------------------------------------- plugin and client
static void test_open(void** state) {
  (void)state;
  tt_plugin_t* again;
  int major = -1, minor = -1;
  OK(tt_plugin_open(g_path, &again));
  assert_ptr_equal(again, g_plugin);
  tt_plugin_release(again);
  tt_plugin_version(g_plugin, &major, &minor);
  assert_int_equal(major, 0);
  assert_true(minor >= 40);
  const char* version = tt_plugin_attribute(g_plugin, "stablehlo_current_version");
  assert_true(version && version[0] >= '0' && version[0] <= '9' && strchr(version, '.'));
  assert_null(tt_plugin_attribute(g_plugin, "no such attribute"));
  print_message("PJRT %d.%d, StableHLO %s\n", major, minor, version);
}

static void test_devices(void** state) {
  (void)state;
  assert_int_equal(tt_client_device_count(g_client), 4);
  for (int i = 0; i < 4; i++) {
    assert_true(strlen(tt_client_device_kind(g_client, i)) > 0);
    assert_true(strlen(tt_client_device_string(g_client, i)) > 0);
    assert_true(tt_client_device_id(g_client, i) >= 0);
  }
  assert_string_equal(tt_client_device_kind(g_client, 4), "");
  assert_int_equal(tt_client_device_id(g_client, -1), -1);
  for (const char* c = tt_client_platform(g_client); *c; c++) assert_false(*c >= 'A' && *c <= 'Z');
  assert_true(strlen(tt_client_platform_version(g_client)) > 0);
  if (!strcmp(tt_client_platform(g_client), "cpu")) assert_true(tt_client_caps(g_client) & TT_CAP_F64);
}

static void test_client_options(void** state) {
  (void)state;
  tt_client_t* c;
  tt_client_options_t two = {.cpu_device_count = 2};
  OK(tt_client_create(g_plugin, &two, &c));
  assert_int_equal(tt_client_device_count(c), 2);
  tt_client_release(c);
  tt_client_options_t extra = {.extra = "cpu_device_count=3"};
  OK(tt_client_create(g_plugin, &extra, &c));
  assert_int_equal(tt_client_device_count(c), 3);
  tt_client_retain(c);
  tt_client_release(c);
  tt_client_release(c);
  tt_client_options_t bad = {.extra = "nonsense"};
  FAILS(tt_client_create(g_plugin, &bad, &c), TT_INVALID_ARGUMENT, "nonsense");
  assert_null(c);
}

static void test_memory_stats(void** state) {
  (void)state;
  int64_t in_use, limit, peak;
  tt_status_t status = tt_client_memory_stats(g_client, 0, &in_use, &limit, &peak);
  if (status) assert_int_equal(tt_status_code(status), TT_UNIMPLEMENTED);
  else assert_true(in_use >= 0);
  tt_status_free(status);
  FAILS(tt_client_memory_stats(g_client, 99, &in_use, &limit, &peak), TT_INVALID_ARGUMENT, "99");
}

// ---------------------------------------------------------------- buffers
static void test_put_get_all_dtypes(void** state) {
  (void)state;
  static const int64_t k_shapes[][3] = {{0, 0, 0}, {3, 0, 0}, {2, 3, 4}, {5, 0, 2}};
  static const int k_ranks[] = {0, 1, 3, 3};
  unsigned char in[24 * 16], out[24 * 16];
  for (size_t i = 0; i < sizeof in; i++) in[i] = (unsigned char)(i * 7 + 1);
  for (int d = 1; d < TT_DTYPE_COUNT; d++) {
    if (d == TT_BOOL) memset(in, 1, sizeof in);
    for (size_t s = 0; s < 4; s++) {
      size_t n = 1;
      for (int i = 0; i < k_ranks[s]; i++) n *= (size_t)k_shapes[s][i];
      n *= tt_dtype_size((tt_dtype_t)d);
      tt_pbuf_t* b;
      OK(tt_pbuf_from_host(g_client, 1, (tt_dtype_t)d, k_ranks[s], k_shapes[s], n ? in : NULL, TT_HOST_COPY, NULL, NULL,
                           &b));
      memset(out, 0, sizeof out);
      OK(tt_pbuf_to_host(g_client, b, n ? out : NULL, n));
      assert_memory_equal(in, out, n);
      tt_pevent_t* event;
      memset(out, 0, sizeof out);
      OK(tt_pbuf_to_host_async(g_client, b, out, n, &event));
      if (event) OK(tt_pevent_await(g_client, event));
      tt_pevent_free(g_client, event);
      assert_memory_equal(in, out, n);
      size_t on_device;
      OK(tt_pbuf_size_on_device(g_client, b, &on_device));
      assert_true(on_device >= n);
      tt_pbuf_free(g_client, b);
    }
    if (d == TT_BOOL) {
      for (size_t i = 0; i < sizeof in; i++) in[i] = (unsigned char)(i * 7 + 1);
    }
  }
}

static void count_done(void* ctx) { atomic_fetch_add((atomic_int*)ctx, 1); }

static void test_zero_copy(void** state) {
  (void)state;
  atomic_int done = 0;
  int64_t n = 4;
  float* data = aligned_alloc(64, 64);
  assert_non_null(data);
  memcpy(data, k_a, sizeof k_a);
  tt_pbuf_t* b;
  OK(tt_pbuf_from_host(g_client, 0, TT_F32, 1, &n, data, TT_HOST_UNTIL_DONE, count_done, &done, &b));
  expect_f32(b, 4, k_a);
  // Donating it must not write into our memory.
  tt_exe_t* exe = compile(k_donate, 0, NULL);
  tt_pbuf_t *other = put_f32(0, 4, k_b), *args[2] = {b, other}, *out;
  OK(tt_exe_run(exe, 2, args, 0, NULL, &out, NULL));
  expect_f32(out, 4, is_fake() ? k_a : k_sum);
  assert_memory_equal(data, k_a, sizeof k_a);
  tt_pbuf_free(g_client, out);
  tt_pbuf_free(g_client, b);
  tt_pbuf_free(g_client, other);
  tt_exe_release(exe);
  for (int i = 0; i < 1000 && !atomic_load(&done); i++) {
    struct timespec t = {.tv_nsec = 1000000};
    nanosleep(&t, NULL);
  }
  assert_int_equal(atomic_load(&done), 1);
  free(data);
}

static void test_copy_to_device(void** state) {
  (void)state;
  tt_pbuf_t *b = put_f32(0, 4, k_a), *c, *d;
  OK(tt_pbuf_copy_to_device(g_client, b, 2, &c));
  expect_f32(c, 4, k_a);
  OK(tt_pbuf_copy_to_device(g_client, c, 2, &d));  // to itself: a copy of its own
  assert_ptr_not_equal(c, d);
  tt_pbuf_free(g_client, c);
  expect_f32(d, 4, k_a);
  tt_pbuf_free(g_client, d);
  FAILS(tt_pbuf_copy_to_device(g_client, b, 9, &c), TT_INVALID_ARGUMENT, "device 9");
  assert_null(c);
  tt_pbuf_free(g_client, b);
  tt_pbuf_free(g_client, NULL);
}

static void test_wrong_host_size(void** state) {
  (void)state;
  char bytes[8];
  tt_pbuf_t* b = put_f32(0, 4, k_a);
  FAILS(tt_pbuf_to_host(g_client, b, bytes, sizeof bytes), TT_INVALID_ARGUMENT, "");
  tt_pbuf_free(g_client, b);
}

// ---------------------------------------------------------------- executables
static void test_compile_error(void** state) {
  (void)state;
  tt_exe_t* exe;
  const char* text =
      is_fake() ? "module {}"
                : "func.func @main() -> tensor<f32> { %0 = stablehlo.nope : tensor<f32> return %0 : tensor<f32> }";
  FAILS(tt_exe_compile(g_client, text, strlen(text), NULL, &exe), 0, is_fake() ? "@main" : "stablehlo.nope");
  assert_null(exe);
  tt_compile_options_t far = {.device = 4};
  FAILS(tt_exe_compile(g_client, k_add, strlen(k_add), &far, &exe), TT_INVALID_ARGUMENT, "device 4");
}

static void test_run_on_every_device(void** state) {
  (void)state;
  for (int device = 0; device < 4; device++) {
    tt_exe_t* exe = compile(k_add, device, NULL);
    assert_int_equal(tt_exe_output_count(exe), 1);
    tt_pbuf_t *args[2] = {put_f32(device, 4, k_a), put_f32(device, 4, k_b)}, *out, *copy, *none;
    tt_pevent_t* done;
    OK(tt_exe_run(exe, 2, args, 0, NULL, &out, &done));
    OK(tt_pevent_await(g_client, done));
    assert_true(tt_pevent_is_ready(g_client, done));
    tt_pevent_free(g_client, done);
    OK(tt_pbuf_await(g_client, out));
    expect_f32(out, 4, is_fake() ? k_a : k_sum);
    OK(tt_pbuf_copy_to_device(g_client, out, (device + 1) % 4, &copy));
    expect_f32(copy, 4, is_fake() ? k_a : k_sum);
    FAILS(tt_exe_run(exe, 1, args, 0, NULL, &none, NULL), TT_INVALID_ARGUMENT, "");
    tt_pbuf_t* elsewhere[2] = {args[0], copy};
    FAILS(tt_exe_run(exe, 2, elsewhere, 0, NULL, &none, NULL), TT_INVALID_ARGUMENT, "");
    tt_pbuf_free(g_client, copy);
    tt_pbuf_free(g_client, out);
    tt_pbuf_free(g_client, args[0]);
    tt_pbuf_free(g_client, args[1]);
    tt_exe_release(exe);
  }
}

static void test_run_allocates_nothing(void** state) {
  (void)state;
  tt_exe_t* exe = compile(k_add, 0, NULL);
  tt_pbuf_t *args[2] = {put_f32(0, 4, k_a), put_f32(0, 4, k_b)}, *out;
  float got[4];
  uint64_t before = tt_alloc_count();
  for (int i = 0; i < 10; i++) {
    OK(tt_exe_run(exe, 2, args, 0, NULL, &out, NULL));
    OK(tt_pbuf_to_host(g_client, out, got, sizeof got));
    tt_pbuf_free(g_client, out);
  }
  assert_int_equal(tt_alloc_count() - before, 0);
  tt_pbuf_free(g_client, args[0]);
  tt_pbuf_free(g_client, args[1]);
  tt_exe_release(exe);
}

static void test_donation(void** state) {
  (void)state;
  static const int64_t k_keep[1] = {0};
  tt_exe_t* exe = compile(k_donate, 0, NULL);
  tt_pbuf_t *args[2] = {put_f32(0, 4, k_a), put_f32(0, 4, k_b)}, *out;
  float got[4];
  OK(tt_exe_run(exe, 2, args, 1, k_keep, &out, NULL));  // kept: still there afterwards
  expect_f32(out, 4, is_fake() ? k_a : k_sum);
  assert_false(tt_pbuf_is_deleted(g_client, args[0]));
  expect_f32(args[0], 4, k_a);
  tt_pbuf_free(g_client, out);
  OK(tt_exe_run(exe, 2, args, 0, NULL, &out, NULL));
  expect_f32(out, 4, is_fake() ? k_a : k_sum);
  assert_true(tt_pbuf_is_deleted(g_client, args[0]));
  assert_false(tt_pbuf_is_deleted(g_client, args[1]));
  tt_pbuf_t* again;
  FAILS(tt_exe_run(exe, 2, args, 0, NULL, &again, NULL), TT_INVALID_ARGUMENT, "deleted or donated");
  FAILS(tt_pbuf_to_host(g_client, args[0], got, sizeof got), 0, "");
  tt_pbuf_free(g_client, args[0]);
  tt_pbuf_free(g_client, args[1]);
  tt_pbuf_free(g_client, out);
  tt_exe_release(exe);
}

static void test_serialize(void** state) {
  (void)state;
  void* bytes;
  size_t len;
  tt_exe_t *exe = compile(k_add, 0, NULL), *loaded;
  OK(tt_exe_serialize(exe, &bytes, &len));
  assert_true(len > 0);
  tt_exe_release(exe);
  for (int device = 0; device < 4; device += 3) {  // made for device 0, loaded for others too
    tt_compile_options_t options = {.device = device};
    OK(tt_exe_deserialize(g_client, bytes, len, &options, &loaded));
    assert_int_equal(tt_exe_output_count(loaded), 1);
    tt_pbuf_t *args[2] = {put_f32(device, 4, k_a), put_f32(device, 4, k_b)}, *out;
    OK(tt_exe_run(loaded, 2, args, 0, NULL, &out, NULL));
    expect_f32(out, 4, is_fake() ? k_a : k_sum);
    tt_pbuf_free(g_client, out);
    tt_pbuf_free(g_client, args[0]);
    tt_pbuf_free(g_client, args[1]);
    tt_exe_release(loaded);
  }
  FAILS(tt_exe_deserialize(g_client, "garbage", 7, NULL, &loaded), 0, "");
  assert_null(loaded);
  tt_free(bytes);
}

static void test_overrides(void** state) {
  (void)state;
  tt_exe_t* exe;
  tt_compile_options_t unknown = {.overrides = "xla_there_is_no_such_flag=1"};
  FAILS(tt_exe_compile(g_client, k_add, strlen(k_add), &unknown, &exe), TT_INVALID_ARGUMENT,
        "xla_there_is_no_such_flag");
  tt_exe_release(compile(k_add, 0, "?xla_there_is_no_such_flag=1;?xla_nor_this=true"));
  tt_exe_release(compile(k_add, 0, tt_client_fast_flags(g_client)));
  tt_compile_options_t bad = {.overrides = "xla_flag"};
  FAILS(tt_exe_compile(g_client, k_add, strlen(k_add), &bad, &exe), TT_INVALID_ARGUMENT, "xla_flag");
}

// What PyTorch needs of max and min, and of rows and columns.
static void test_values(void** state) {
  (void)state;
  if (is_fake()) return;
  static const char k_text[] =
      "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) {\n"
      "  %0 = stablehlo.maximum %a, %b : tensor<4xf32>\n  %1 = stablehlo.reshape %b : (tensor<4xf32>) -> "
      "tensor<2x2xf32>\n"
      "  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>\n"
      "  return %0, %2 : tensor<4xf32>, tensor<2x2xf32>\n}\n";
  static const float k_transposed[4] = {10, 30, 20, 40};
  float nan_a[4], got[4];
  uint32_t nan_bits = 0x7fc00000;
  memcpy(nan_a, k_a, sizeof k_a);
  memcpy(&nan_a[1], &nan_bits, sizeof nan_bits);
  tt_exe_t* exe = compile(k_text, 0, NULL);
  assert_int_equal(tt_exe_output_count(exe), 2);
  tt_pbuf_t *args[2] = {put_f32(0, 4, nan_a), put_f32(0, 4, k_b)}, *out[2];
  OK(tt_exe_run(exe, 2, args, 0, NULL, out, NULL));
  OK(tt_pbuf_to_host(g_client, out[0], got, sizeof got));
  assert_true(got[0] == 10 && got[1] != got[1]);
  expect_f32(out[1], 4, k_transposed);
  for (int i = 0; i < 2; i++) {
    tt_pbuf_free(g_client, out[i]);
    tt_pbuf_free(g_client, args[i]);
  }
  tt_exe_release(exe);
}

static void test_stats(void** state) {
  (void)state;
  tt_exe_t* exe = compile(k_add, 0, NULL);
  tt_exe_stats_t s;
  OK(tt_exe_stats(exe, &s));
  assert_true(s.argument_bytes == -1 || s.argument_bytes >= 32);
  assert_true(s.output_bytes == -1 || s.output_bytes >= 16);
  assert_true(s.flops == -1.0 || s.flops >= 0);
  tt_exe_release(exe);
}

// ---------------------------------------------------------------- events
static void on_ready(tt_status_t status, void* ctx) {
  tt_status_free(status);
  count_done(ctx);
}

static void test_on_ready(void** state) {
  (void)state;
  tt_exe_t* exe = compile(k_add, 0, NULL);
  tt_pbuf_t *args[2] = {put_f32(0, 4, k_a), put_f32(0, 4, k_b)}, *out[8];
  atomic_int called = 0;
  for (int i = 0; i < 8; i++) {
    tt_pevent_t *ready, *done;
    OK(tt_exe_run(exe, 2, args, 0, NULL, &out[i], &done));
    OK(tt_pbuf_ready_event(g_client, out[i], &ready));
    OK(tt_pevent_on_ready(g_client, ready, on_ready, &called));
    OK(tt_pevent_on_ready(g_client, done, on_ready, &called));
    tt_pevent_free(g_client, ready);  // freeing an event does not lose its callbacks
    tt_pevent_free(g_client, done);
  }
  for (int i = 0; i < 8; i++) OK(tt_pbuf_await(g_client, out[i]));
  for (int i = 0; i < 5000 && atomic_load(&called) < 16; i++) {
    struct timespec t = {.tv_nsec = 1000000};
    nanosleep(&t, NULL);
  }
  assert_int_equal(atomic_load(&called), 16);
  for (int i = 0; i < 8; i++) tt_pbuf_free(g_client, out[i]);
  tt_pbuf_free(g_client, args[0]);
  tt_pbuf_free(g_client, args[1]);
  tt_exe_release(exe);
  tt_pevent_free(g_client, NULL);
}

// ---------------------------------------------------------------- ahead of time
static void compile_for(const char* name) {
  tt_topology_t* topology;
  tt_exe_stats_t s;
  void* bytes;
  size_t len;
  OK(tt_topology_create(g_plugin, name, &topology));
  OK(tt_topology_compile(topology, k_add, strlen(k_add), "?xla_there_is_no_such_flag=1", &s, &bytes, &len));
  assert_true(len > 0);
  assert_true(s.argument_bytes >= 32 && s.output_bytes >= 16 && s.code_bytes > 0 && s.flops > 0);
  tt_free(bytes);
  OK(tt_topology_compile(topology, k_add, strlen(k_add), NULL, NULL, NULL, NULL));
  FAILS(tt_topology_compile(topology, "nonsense", 8, NULL, &s, &bytes, &len), 0, "");
  assert_null(bytes);
  tt_topology_release(topology);
  print_message("%s: code %lld, arguments %lld, outputs %lld bytes, %g flops\n", name, (long long)s.code_bytes,
                (long long)s.argument_bytes, (long long)s.output_bytes, s.flops);
}

static void test_topology(void** state) {
  (void)state;
  tt_topology_t* topology;
  char names[256];
  snprintf(names, sizeof names, "%s", g_topologies ? g_topologies : is_fake() ? "fake:2x2" : "");
  for (char* name = strtok(names, " "); name; name = strtok(NULL, " ")) compile_for(name);
  FAILS(tt_topology_create(g_plugin, "no such topology", &topology), 0, "no such topology");
  assert_null(topology);
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_open),
      cmocka_unit_test(test_devices),
      cmocka_unit_test(test_client_options),
      cmocka_unit_test(test_memory_stats),
      cmocka_unit_test(test_put_get_all_dtypes),
      cmocka_unit_test(test_zero_copy),
      cmocka_unit_test(test_copy_to_device),
      cmocka_unit_test(test_wrong_host_size),
      cmocka_unit_test(test_compile_error),
      cmocka_unit_test(test_run_on_every_device),
      cmocka_unit_test(test_run_allocates_nothing),
      cmocka_unit_test(test_donation),
      cmocka_unit_test(test_serialize),
      cmocka_unit_test(test_overrides),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_stats),
      cmocka_unit_test(test_on_ready),
      cmocka_unit_test(test_topology),
  };
  const struct CMUnitTest ahead_of_time[] = {cmocka_unit_test(test_topology)};
  g_path = argc > 1 ? argv[1] : getenv("TT_TEST_PLUGIN");
  if (argc > 3 && !strcmp(argv[2], "--topologies")) g_topologies = argv[3];
  if (!g_path) {
    fprintf(stderr, "usage: pjrt_cts PLUGIN [--topologies \"NAME NAME\"]\n");
    return 2;
  }
  tt_status_t status = tt_plugin_open(g_path, &g_plugin);
  tt_client_options_t options = {.cpu_device_count = 4};
  if (!status && !g_topologies) status = tt_client_create(g_plugin, &options, &g_client);
  if (status) {
    fprintf(stderr, "pjrt_cts: %s\n", tt_status_message(status));
    tt_status_free(status);
    return 1;
  }
  int failed =
      g_topologies ? cmocka_run_group_tests(ahead_of_time, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
  tt_client_release(g_client);
  tt_plugin_release(g_plugin);
  return failed;
}
