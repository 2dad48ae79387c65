// src/pjrt against a plugin that fails, is old, is short, is late. Argument: the fake plugin's path.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h wants those before it.
#include <cmocka.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pjrt/pjrt.h"
#include "test/fake_pjrt/fake_pjrt.h"

static char g_folder[] = "/tmp/tt_fault_XXXXXX";
static const char* g_path;
static tt_plugin_t* g_plugin;
static const fake_pjrt_control_t* g_fake;

static const char k_text[] =
    "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> (tensor<4xf32>, "
    "tensor<2xi64>) {}";
static const float k_data[4] = {1, 2, 3, 4};

static void expect(tt_status_t status, tt_code_t code, const char* words, int line) {
  bool right = tt_status_code(status) == code && strstr(tt_status_message(status), words);
  if (!right) {
    print_error("line %d: %s: \"%s\", expected %s: \"%s\"\n", line, tt_code_name(tt_status_code(status)),
                tt_status_message(status), tt_code_name(code), words);
  }
  tt_status_free(status);
  assert_true(right);
}
#define OK(expr) expect((expr), TT_OK, "", __LINE__)
#define FAILS(expr, code, words) expect((expr), (code), (words), __LINE__)

// ---------------------------------------------------------------- the n-th failure
static void count_done(void* ctx) { atomic_fetch_add((atomic_int*)ctx, 1); }

static void on_ready(tt_status_t status, void* ctx) {
  tt_status_free(status);
  count_done(ctx);
}

// Keeps the first failure.
static bool good(tt_status_t* first, tt_status_t status) {
  if (!status) return true;
  if (*first) tt_status_free(status);
  else *first = status;
  return false;
}

// Callbacks come when they come, also after the one who asked has gone: what they count outlives everybody.
static atomic_int g_given_back, g_ready;

static void use_buffers(tt_client_t* c, tt_exe_t* exe, tt_status_t* first) {
  int64_t n = 4;
  float got[4];
  size_t size;
  int given_back = atomic_load(&g_given_back);
  tt_pbuf_t *a = NULL, *b = NULL, *copy = NULL, *same = NULL, *out[2] = {NULL, NULL}, *args[2];
  tt_pevent_t *event = NULL, *d2h = NULL;
  bool zero_copied =
      good(first, tt_pbuf_from_host(c, 0, TT_F32, 1, &n, k_data, TT_HOST_UNTIL_DONE, count_done, &g_given_back, &a));
  good(first, tt_pbuf_from_host(c, 0, TT_F32, 1, &n, k_data, TT_HOST_COPY, NULL, NULL, &b));
  args[0] = a;
  args[1] = b;
  if (a && b && good(first, tt_exe_run(exe, 2, args, 0, NULL, out, &event))) {
    good(first, tt_pevent_on_ready(c, event, on_ready, &g_ready));
    good(first, tt_pevent_await(c, event));
    tt_pevent_free(c, event);
    good(first, tt_pbuf_await(c, out[0]));
    good(first, tt_pbuf_to_host(c, out[0], got, sizeof got));
    if (good(first, tt_pbuf_to_host_async(c, out[0], got, sizeof got, &d2h))) good(first, tt_pevent_await(c, d2h));
    tt_pevent_free(c, d2h);
    good(first, tt_pbuf_size_on_device(c, out[0], &size));
    good(first, tt_pbuf_copy_to_device(c, out[0], 1, &copy));
    good(first, tt_pbuf_copy_to_device(c, out[0], 0, &same));
    tt_pbuf_is_deleted(c, out[0]);
  }
  tt_pbuf_t* all[] = {a, b, copy, same, out[0], out[1]};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tt_pbuf_free(c, all[i]);
  for (int i = 0; zero_copied && i < 1000 && atomic_load(&g_given_back) == given_back; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (zero_copied) assert_true(atomic_load(&g_given_back) > given_back);  // the caller's memory
}

// Everything that src/pjrt can do, each step tolerating that it failed.
static tt_status_t use_everything(const char* platform) {
  tt_status_t first = NULL;
  tt_client_t* c = NULL;
  tt_exe_t *exe = NULL, *loaded = NULL;
  tt_topology_t* topology = NULL;
  tt_exe_stats_t stats;
  void* bytes = NULL;
  size_t len = 0;
  int64_t cores;
  char extra[64];
  snprintf(extra, sizeof extra, "platform=%s", platform);
  tt_client_options_t options = {.cpu_device_count = 2, .extra = extra};
  tt_compile_options_t flags = {.overrides = "fake_flag=1;?missing=2"};
  if (good(&first, tt_client_create(g_plugin, &options, &c))) {
    tt_client_device_attribute_int(c, 0, "num_cores", &cores);
    if (good(&first, tt_exe_compile(c, k_text, strlen(k_text), &flags, &exe))) {
      good(&first, tt_exe_stats(exe, &stats));
      use_buffers(c, exe, &first);
      if (good(&first, tt_exe_serialize(exe, &bytes, &len))) {
        good(&first, tt_exe_deserialize(c, bytes, len, NULL, &loaded));
        tt_free(bytes);
      }
    }
    tt_exe_release(exe);
    tt_exe_release(loaded);
    tt_client_release(c);
  }
  if (good(&first, tt_topology_create(g_plugin, "fake:1x1", &topology))) {
    bytes = NULL;
    good(&first, tt_topology_compile(topology, k_text, strlen(k_text), NULL, &stats, &bytes, &len));
    tt_free(bytes);
    tt_topology_release(topology);
  }
  return first;
}

// "cpu" takes the short way to host memory, "fake" the plugin's.
static void fail_every_call(const char* platform) {
  int64_t n = 0, seen = 0;
  for (;;) {
    g_fake->reset();
    g_fake->fail_at(++n, TT_RESOURCE_EXHAUSTED);
    tt_status_t status = use_everything(platform);
    bool failed = g_fake->has_failed();
    if (status) {
      assert_int_equal(tt_status_code(status), TT_RESOURCE_EXHAUSTED);
      assert_non_null(strstr(tt_status_message(status), "failure asked for"));
      seen++;
    }
    tt_status_free(status);
    if (g_fake->live()) print_error("call %lld: %lld objects leaked\n", (long long)n, (long long)g_fake->live());
    assert_int_equal(g_fake->live(), 0);
    if (!failed) break;
  }
  assert_true(n > 60 && seen > 30);
  print_message("platform %s: %lld calls, %lld of their failures reach the caller\n", platform, (long long)n - 1,
                (long long)seen);
}

static void test_every_call_fails_once(void** state) {
  (void)state;
  fail_every_call("fake");
  fail_every_call("cpu");
}

static void test_every_code(void** state) {
  (void)state;
  for (int code = 1; code <= 17; code++) {
    tt_client_t* c;
    g_fake->reset();
    g_fake->fail_at(1, code);
    FAILS(tt_client_create(g_plugin, NULL, &c),
          code == 16   ? TT_PERMISSION_DENIED
          : code == 17 ? TT_UNKNOWN
                       : (tt_code_t)code,
          "failure asked for");
  }
  g_fake->reset();
  assert_int_equal(g_fake->live(), 0);
}

static int64_t g_outstanding, g_alloc_fail_in;

static void* failing_realloc(void* ctx, void* old, size_t size) {
  (void)ctx;
  if (!size) {
    g_outstanding--;
    free(old);
    return NULL;
  }
  if (g_alloc_fail_in > 0 && --g_alloc_fail_in == 0) return NULL;
  void* p = realloc(old, size);
  if (p && !old) g_outstanding++;
  return p;
}

static void test_every_allocation_fails_once(void** state) {
  (void)state;
  tt_alloc_hooks_t hooks = {failing_realloc, NULL};
  tt_alloc_set_hooks(&hooks);
  int64_t n = 0;
  bool failed;
  do {
    g_fake->reset();
    g_alloc_fail_in = ++n;
    g_outstanding = 0;
    tt_status_t status = use_everything("fake");
    failed = g_alloc_fail_in == 0;
    if (failed) assert_int_equal(tt_status_code(status), TT_RESOURCE_EXHAUSTED);
    tt_status_free(status);
    assert_int_equal(g_fake->live(), 0);
    assert_int_equal(g_outstanding, 0);
  } while (failed);
  g_alloc_fail_in = 0;
  tt_alloc_set_hooks(NULL);
  assert_true(n > 20);
}

// ---------------------------------------------------------------- events
static tt_status_t g_seen;

static void keep_status(tt_status_t status, void* ctx) {
  g_seen = status;
  count_done(ctx);
}

static void test_events_late_and_reversed(void** state) {
  (void)state;
  for (int mode = FAKE_EVENTS_LATE; mode <= FAKE_EVENTS_REVERSE; mode++) {
    g_fake->reset();
    g_fake->set_events((fake_events_t)mode);
    for (int i = 0; i < 3; i++) OK(use_everything("fake"));
    for (int i = 0; i < 3; i++) OK(use_everything("cpu"));
    // Values that nobody waited for may still be on their way.
    for (int i = 0; i < 1000 && g_fake->live(); i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(g_fake->live(), 0);
  }
}

static void test_failed_execution(void** state) {
  (void)state;
  for (int mode = FAKE_EVENTS_NOW; mode <= FAKE_EVENTS_REVERSE; mode++) {
    tt_client_t* c;
    tt_exe_t* exe;
    int64_t n = 4;
    float got[4];
    tt_pbuf_t *args[2], *out[2];
    tt_pevent_t *done, *d2h;
    atomic_int called = 0;
    g_fake->reset();
    g_fake->set_events((fake_events_t)mode);
    OK(tt_client_create(g_plugin, NULL, &c));
    OK(tt_exe_compile(c, k_text, strlen(k_text), NULL, &exe));
    for (int i = 0; i < 2; i++) OK(tt_pbuf_from_host(c, 0, TT_F32, 1, &n, k_data, TT_HOST_COPY, NULL, NULL, &args[i]));
    g_fake->fail_execution("division by cucumber");
    OK(tt_exe_run(exe, 2, args, 0, NULL, out, &done));
    OK(tt_pevent_on_ready(c, done, keep_status, &called));
    FAILS(tt_pevent_await(c, done), TT_INTERNAL, "division by cucumber");
    FAILS(tt_pbuf_await(c, out[0]), TT_INTERNAL, "division by cucumber");
    FAILS(tt_pbuf_to_host(c, out[0], got, sizeof got), TT_INTERNAL, "division by cucumber");
    OK(tt_pbuf_to_host_async(c, out[0], got, sizeof got, &d2h));
    FAILS(tt_pevent_await(c, d2h), TT_INTERNAL, "division by cucumber");
    while (!atomic_load(&called)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    FAILS(g_seen, TT_INTERNAL, "division by cucumber");
    tt_pevent_free(c, done);
    tt_pevent_free(c, d2h);
    for (int i = 0; i < 2; i++) {
      tt_pbuf_free(c, args[i]);
      tt_pbuf_free(c, out[i]);
    }
    tt_exe_release(exe);
    tt_client_release(c);
    for (int i = 0; i < 1000 && g_fake->live(); i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(g_fake->live(), 0);
  }
}

// ---------------------------------------------------------------- other plugins than ours
// A copy of the fake plugin is another library: it reads the environment anew.
static tt_status_t open_copy(const char* variable, const char* value, tt_plugin_t** out) {
  static int s_number;
  char path[256], buffer[1 << 16];
  snprintf(path, sizeof path, "%s/fake%d.so", g_folder, s_number++);
  FILE *from = fopen(g_path, "rb"), *to = fopen(path, "wb");
  assert_true(from && to);
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, from)) > 0;) fwrite(buffer, 1, n, to);
  fclose(from);
  fclose(to);
  setenv(variable, value, 1);
  tt_status_t status = tt_plugin_open(path, out);
  unsetenv(variable);
  return status;
}

static void test_unfit_plugins(void** state) {
  (void)state;
  tt_plugin_t* p;
  FAILS(tt_plugin_open("/nowhere/at/all.so", &p), TT_NOT_FOUND, "/nowhere/at/all.so");
  FAILS(tt_plugin_open("", &p), TT_INVALID_ARGUMENT, "empty");
  FAILS(tt_plugin_open("/tmp", &p), TT_FAILED_PRECONDITION, "folder");
  FAILS(tt_plugin_open("/proc/self/cmdline", &p), TT_FAILED_PRECONDITION, "cannot be loaded");
  FAILS(open_copy("FAKE_PJRT_MAJOR", "1", &p), TT_FAILED_PRECONDITION, "1.81");
  FAILS(open_copy("FAKE_PJRT_MINOR", "39", &p), TT_FAILED_PRECONDITION, "too old");
  FAILS(open_copy("FAKE_PJRT_CUT", "PJRT_Error_Destroy", &p), TT_FAILED_PRECONDITION, "too short");
  FAILS(open_copy("FAKE_PJRT_NULL", "1", &p), TT_FAILED_PRECONDITION, "returned nothing");
  FAILS(open_copy("FAKE_PJRT_CRASH", "1", &p), TT_FAILED_PRECONDITION, "crashes (signal 6");
  FAILS(open_copy("FAKE_PJRT_EXIT", "1", &p), TT_FAILED_PRECONDITION, "ends the process while it is loaded");
  assert_null(p);
}

static void open_cut(const char* function, const char* extra, tt_client_t** out_client) {
  tt_plugin_t* p;
  tt_client_options_t options = {.cpu_device_count = 2, .extra = extra};
  OK(open_copy("FAKE_PJRT_CUT", function, &p));
  OK(tt_client_create(p, &options, out_client));
  tt_plugin_release(p);
}

static void test_short_tables(void** state) {
  (void)state;
  tt_client_t* c;
  tt_exe_t* exe;
  tt_pbuf_t *b, *copy;
  tt_exe_stats_t stats;
  void* bytes;
  size_t len;
  int64_t n = 4;
  float got[4] = {0};

  open_cut("PJRT_LoadedExecutable_Execute", NULL, &c);
  OK(tt_exe_compile(c, k_text, strlen(k_text), NULL, &exe));
  FAILS(tt_exe_run(exe, 0, NULL, 0, NULL, NULL, NULL), TT_UNIMPLEMENTED, "PJRT_LoadedExecutable_Execute");
  tt_exe_release(exe);
  FAILS(tt_exe_deserialize(c, "x", 1, NULL, &exe), TT_UNIMPLEMENTED, "PJRT_Executable_DeserializeAndLoad");
  tt_client_release(c);

  // Without the functions that run, store or load executables, or anything of buffers.
  open_cut("PJRT_Executable_Serialize", NULL, &c);
  FAILS(tt_exe_compile(c, "no program", 10, NULL, &exe), TT_INVALID_ARGUMENT, "@main");
  FAILS(tt_exe_deserialize(c, "x", 1, NULL, &exe), TT_UNIMPLEMENTED, "PJRT_Executable_DeserializeAndLoad");
  tt_client_release(c);

  open_cut("PJRT_Buffer_UnsafePointer", "platform=cpu", &c);  // host memory, but no way to its address
  OK(tt_pbuf_from_host(c, 0, TT_F32, 1, &n, k_data, TT_HOST_COPY, NULL, NULL, &b));
  OK(tt_pbuf_to_host(c, b, got, sizeof got));
  assert_memory_equal(got, k_data, sizeof got);
  OK(tt_pbuf_copy_to_device(c, b, 1, &copy));
  tt_pbuf_free(c, b);
  tt_pbuf_free(c, copy);
  tt_client_release(c);

  // Short of copies between devices, and so of everything that comes later in the table.
  open_cut("PJRT_Buffer_CopyToDevice", NULL, &c);
  OK(tt_pbuf_from_host(c, 0, TT_F32, 1, &n, k_data, TT_HOST_COPY, NULL, NULL, &b));
  FAILS(tt_pbuf_copy_to_device(c, b, 1, &copy), TT_UNIMPLEMENTED, "PJRT_Buffer_ToHostBuffer");
  tt_pbuf_free(c, b);
  tt_client_release(c);

  open_cut("PJRT_Executable_GetCompiledMemoryStats", NULL, &c);
  OK(tt_exe_compile(c, k_text, strlen(k_text), NULL, &exe));
  OK(tt_exe_stats(exe, &stats));
  assert_int_equal(stats.code_bytes, -1);
  assert_true(stats.flops == 42.0);
  OK(tt_exe_serialize(exe, &bytes, &len));
  tt_free(bytes);
  tt_exe_release(exe);
  tt_client_release(c);
}

static void test_no_topologies(void** state) {
  (void)state;
  tt_plugin_t* p;
  tt_topology_t* t;
  OK(open_copy("FAKE_PJRT_CUT", "PJRT_TopologyDescription_Create", &p));
  FAILS(tt_topology_create(p, "v5e:2x2", &t), TT_UNIMPLEMENTED, "PJRT_TopologyDescription_Create");
  OK(open_copy("FAKE_PJRT_CUT", "PJRT_Compile", &p));
  OK(tt_topology_create(p, "fake:2", &t));
  FAILS(tt_topology_compile(t, k_text, strlen(k_text), NULL, NULL, NULL, NULL), TT_UNIMPLEMENTED, "PJRT_Compile");
  tt_topology_release(t);
}

static void test_refused_device_count(void** state) {
  (void)state;
  tt_client_t* c;
  tt_client_options_t options = {.cpu_device_count = 2};
  setenv("FAKE_PJRT_NO_COUNT", "1", 1);
  OK(tt_client_create(g_plugin, &options, &c));
  assert_int_equal(tt_client_device_count(c), 4);
  tt_client_release(c);
  tt_client_options_t unknown = {.extra = "colour=blue"};
  FAILS(tt_client_create(g_plugin, &unknown, &c), TT_INVALID_ARGUMENT, "colour");
  unsetenv("FAKE_PJRT_NO_COUNT");
}

static void test_options_reach_the_plugin(void** state) {
  (void)state;
  tt_client_t* c;
  tt_exe_t* exe;
  int64_t len = 0;
  OK(tt_client_create(g_plugin, NULL, &c));
  tt_compile_options_t options = {.device = 2, .overrides = "fake_level=3"};
  OK(tt_exe_compile(c, k_text, strlen(k_text), &options, &exe));
  const void* bytes = g_fake->last_options(&len);
  assert_non_null(memmem(bytes, (size_t)len, "fake_level", 10));
  assert_non_null(memmem(bytes, (size_t)len, "\x1a\x03\x0a\x01\x02", 5));
  tt_exe_release(exe);
  tt_client_release(c);
}

static void test_attributes(void** state) {
  (void)state;
  assert_string_equal(tt_plugin_attribute(g_plugin, "stablehlo_current_version"), "1.13.3");
  assert_string_equal(tt_plugin_attribute(g_plugin, "motto"), "nothing computed");
  assert_string_equal(tt_plugin_attribute(g_plugin, "is_fake"), "true");
}

// A plugin's verdict is kept: the second opening of the same file forks nothing, and a changed file is tried again.
static void test_verdicts_are_remembered(void** state) {
  (void)state;
  char file[256], line[512];
  int bad = 0, good_ones = 0;
  snprintf(file, sizeof file, "%s/torch_tpu/plugins", g_folder);
  FILE* f = fopen(file, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    if (!strncmp(line, "bad 6 ", 6)) bad++;
    if (!strncmp(line, "ok 0 ", 5)) good_ones++;
  }
  fclose(f);
  assert_int_equal(bad, 1);
  assert_true(good_ones >= 5);
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_every_code),
      cmocka_unit_test(test_every_call_fails_once),
      cmocka_unit_test(test_every_allocation_fails_once),
      cmocka_unit_test(test_events_late_and_reversed),
      cmocka_unit_test(test_failed_execution),
      cmocka_unit_test(test_unfit_plugins),
      cmocka_unit_test(test_short_tables),
      cmocka_unit_test(test_no_topologies),
      cmocka_unit_test(test_refused_device_count),
      cmocka_unit_test(test_options_reach_the_plugin),
      cmocka_unit_test(test_verdicts_are_remembered),
  };
  g_path = argc > 1 ? argv[1] : getenv("TT_TEST_FAKE");
  if (!g_path || !mkdtemp(g_folder)) {
    fprintf(stderr, "usage: fault_test FAKE_PLUGIN\n");
    return 2;
  }
  setenv("XDG_CACHE_HOME", g_folder, 1);
  tt_status_t status = tt_plugin_open(g_path, &g_plugin);
  if (status) {
    fprintf(stderr, "fault_test: %s\n", tt_status_message(status));
    tt_status_free(status);
    return 1;
  }
  const fake_pjrt_control_t* (*get)(void);
  void* symbol = dlsym(dlopen(g_path, RTLD_NOW | RTLD_NOLOAD), "fake_pjrt_control");
  if (!symbol) return 2;
  memcpy(&get, &symbol, sizeof get);
  g_fake = get();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", g_folder);
  return system(command) ? 3 : failed;
}
