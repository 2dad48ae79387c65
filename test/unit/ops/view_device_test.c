// Reading and writing through views, as compiled programs, against plain loops. Argument: a plugin.
#include "test/unit/unit.h"

#include "base/strbuf.h"
#include "ops/view.h"
#include "pjrt/pjrt.h"

enum { BATCH = 24, MAX_ELEMENTS = 4096 };
static tt_client_t* g_client;

typedef struct case_t {
  int rank;
  int64_t total, offset, sizes[6], strides[6];
  tt_view_plan_t plan;
} case_t;

static int64_t numel(const case_t* c) {
  int64_t n = 1;
  for (int d = 0; d < c->rank; d++) n *= c->sizes[d];
  return n;
}

static int64_t position(const case_t* c, int64_t e) {
  int64_t at = c->offset;
  for (int d = c->rank - 1; d >= 0; d--) {
    at += e % c->sizes[d] * c->strides[d];
    e /= c->sizes[d];
  }
  return at;
}

static case_t random_case(void) {
  for (;;) {
    case_t c = {.rank = (int)random_below(5)};
    int64_t stride = 1 + (random_below(4) == 0) * random_below(3);
    for (int d = c.rank - 1; d >= 0; d--) {
      int64_t full = 1 + random_below(5), step = 1 + (random_below(4) == 0);
      c.sizes[d] = 1 + random_below((full + step - 1) / step);
      c.strides[d] = stride * step;
      stride *= full;
      if (random_below(8) == 0) c.strides[d] = 0, c.sizes[d] = 1 + random_below(4);
      if (random_below(30) == 0) c.sizes[d] = 0;
      if (random_below(10) == 0) c.strides[d] = random_below(9);
    }
    for (int i = c.rank - 1; i > 0 && random_below(2); i--) {
      int k = (int)random_below(i + 1);
      int64_t n = c.sizes[i], s = c.strides[i];
      c.sizes[i] = c.sizes[k], c.strides[i] = c.strides[k];
      c.sizes[k] = n, c.strides[k] = s;
    }
    int64_t reach = 1;
    for (int d = 0; d < c.rank; d++) reach += c.sizes[d] ? (c.sizes[d] - 1) * c.strides[d] : 0;
    c.offset = random_below(3) ? random_below(20) : 0;
    c.total = reach + c.offset + (random_below(3) ? random_below(20) : 0);
    if (c.total > MAX_ELEMENTS || numel(&c) > MAX_ELEMENTS) continue;
    tt_view_plan(c.total, c.rank, c.sizes, c.strides, c.offset, &c.plan);
    return c;
  }
}

// Parameters of the case's program: the digits that are not static zeros.
static void add_digits(hlo_builder_t* b, const case_t* c, hlo_t* digits, int64_t* values, int* n) {
  int count = c->plan.form == TT_VIEW_EMPTY ? 0 : c->plan.n;
  for (int i = 0; i < count; i++) {
    digits[i] = NULL;
    if (!c->plan.start[i]) continue;
    digits[i] = hlo_param(b, TT_I64, 0, NULL);
    values[(*n)++] = c->plan.start[i];
  }
}

static void run(hlo_builder_t* b, int n_out, const hlo_t* outs, int n_args, tt_pbuf_t** args, tt_pbuf_t** results) {
  tt_strbuf_t text;
  tt_strbuf_init(&text);
  OK(hlo_print(b, n_out, outs, NULL, &text));
  tt_exe_t* exe = NULL;
  tt_compile_options_t options = {.overrides = tt_client_fast_flags(g_client)};
  OK(tt_exe_compile(g_client, text.data, text.len, &options, &exe));
  OK(tt_exe_run(exe, n_args, args, 0, NULL, results, NULL));
  for (int i = 0; i < n_args; i++) tt_pbuf_free(g_client, args[i]);
  tt_exe_release(exe);
  tt_strbuf_deinit(&text);
  hlo_builder_destroy(b);
}

static tt_pbuf_t* put(tt_dtype_t dtype, int rank, const int64_t* dims, const void* data) {
  tt_pbuf_t* buffer = NULL;
  OK(tt_pbuf_from_host(g_client, 0, dtype, rank, dims, data, TT_HOST_COPY, NULL, NULL, &buffer));
  return buffer;
}

static void take(tt_pbuf_t* buffer, void* out, int64_t bytes) {
  OK(tt_pbuf_to_host(g_client, buffer, out, (size_t)bytes));
  tt_pbuf_free(g_client, buffer);
}

static void read_and_write(int round) {
  static int32_t base[MAX_ELEMENTS], got[MAX_ELEMENTS], want[MAX_ELEMENTS], fresh[MAX_ELEMENTS];
  case_t cases[BATCH];
  hlo_builder_t* b = hlo_builder_create();
  hlo_t outs[2 * BATCH];
  int64_t values[BATCH * 8];
  tt_pbuf_t *args[BATCH * 8], *results[2 * BATCH];
  int n_args = 0;
  for (int i = 0; i < MAX_ELEMENTS; i++) base[i] = i, fresh[i] = -1 - i;
  for (int i = 0; i < BATCH; i++) {
    case_t* c = &cases[i];
    *c = random_case();
    hlo_t flat = hlo_param(b, TT_I32, 1, &c->total), value = hlo_param(b, TT_I32, c->rank, c->sizes), digits[TT_MAX_RANK + 1];
    args[n_args++] = put(TT_I32, 1, &c->total, base);
    args[n_args++] = put(TT_I32, c->rank, c->sizes, fresh);
    int n = 0;
    add_digits(b, c, digits, values, &n);
    for (int k = 0; k < n; k++) args[n_args++] = put(TT_I64, 0, NULL, &values[k]);
    outs[2 * i] = tt_view_read(b, flat, TT_I32, c->rank, c->sizes, c->strides, &c->plan, digits);
    bool shared = tt_view_overlaps(c->rank, c->sizes, c->strides);  // writing needs elements of one's own
    outs[2 * i + 1] = shared ? flat : tt_view_write(b, flat, value, c->rank, c->sizes, c->strides, &c->plan, digits);
  }
  run(b, 2 * BATCH, outs, n_args, args, results);
  for (int i = 0; i < BATCH; i++) {
    const case_t* c = &cases[i];
    int64_t n = numel(c);
    bool shared = tt_view_overlaps(c->rank, c->sizes, c->strides);
    memcpy(want, base, sizeof want);
    take(results[2 * i], got, n * 4);
    for (int64_t e = 0; e < n; e++) {
      int64_t at = position(c, e);
      if (got[e] != base[at]) print_error("round %d case %d form %d element %d\n", round, i, (int)c->plan.form, (int)e);
      assert_int_equal(got[e], base[at]);
      if (!shared) want[at] = fresh[e];
    }
    take(results[2 * i + 1], got, c->total * 4);
    assert_memory_equal(got, want, (size_t)c->total * 4);
  }
}

static void test_random_views(void** state) {
  (void)state;
  for (int round = 0; round < 10; round++) read_and_write(round);
}

// A storage seen through another dtype: element |i| of the view is the same bytes; a tail is kept by writes.
static void test_other_dtypes(void** state) {
  (void)state;
  static const struct {
    tt_dtype_t base, view;
    int64_t n;
  } k_pairs[] = {
      {TT_F32, TT_I32, 6}, {TT_I32, TT_U8, 6},  {TT_U8, TT_I32, 27}, {TT_F32, TT_C64, 7},  {TT_C64, TT_F32, 5},
      {TT_I64, TT_I16, 4}, {TT_I16, TT_I64, 9}, {TT_U8, TT_F32, 16}, {TT_C64, TT_I16, 3}, {TT_BF16, TT_F16, 8},
      {TT_F16, TT_U8, 5},  {TT_U8, TT_C64, 24}, {TT_I32, TT_C64, 8}, {TT_F32, TT_I64, 5},
  };
  enum { N = sizeof k_pairs / sizeof *k_pairs };
  unsigned char bytes[64], fresh[64], got[64], want[64];
  for (int i = 0; i < 64; i++) {  // no byte is one that makes a NaN's payload or a subnormal
    bytes[i] = (unsigned char)(0x30 + i % 16);
    fresh[i] = (unsigned char)(0x40 + i % 8);
  }
  hlo_builder_t* b = hlo_builder_create();
  hlo_t outs[2 * N];
  tt_pbuf_t *args[2 * N], *results[2 * N];
  for (int i = 0; i < N; i++) {
    int64_t base_bytes = k_pairs[i].n * (int64_t)tt_dtype_size(k_pairs[i].base), one = 1;
    int64_t count = base_bytes / (int64_t)tt_dtype_size(k_pairs[i].view);
    tt_view_plan_t plan;
    tt_view_plan(count, 1, &count, &one, 0, &plan);
    hlo_t base = hlo_param(b, k_pairs[i].base, 1, &k_pairs[i].n), value = hlo_param(b, k_pairs[i].view, 1, &count);
    hlo_t digits[2] = {NULL, NULL};
    args[2 * i] = put(k_pairs[i].base, 1, &k_pairs[i].n, bytes);
    args[2 * i + 1] = put(k_pairs[i].view, 1, &count, fresh);
    outs[2 * i] = tt_view_read(b, base, k_pairs[i].view, 1, &count, &one, &plan, digits);
    outs[2 * i + 1] = tt_view_write(b, base, value, 1, &count, &one, &plan, digits);
  }
  run(b, 2 * N, outs, 2 * N, args, results);
  for (int i = 0; i < N; i++) {
    size_t base_bytes = (size_t)k_pairs[i].n * tt_dtype_size(k_pairs[i].base), size = tt_dtype_size(k_pairs[i].view);
    size_t seen = base_bytes / size * size;
    take(results[2 * i], got, (int64_t)seen);
    if (memcmp(got, bytes, seen)) print_error("%s as %s\n", tt_dtype_name(k_pairs[i].base), tt_dtype_name(k_pairs[i].view));
    assert_memory_equal(got, bytes, seen);
    memcpy(want, bytes, sizeof want);
    memcpy(want, fresh, seen);
    take(results[2 * i + 1], got, (int64_t)base_bytes);
    assert_memory_equal(got, want, base_bytes);
  }
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_views), cmocka_unit_test(test_other_dtypes)};
  tt_plugin_t* plugin = NULL;
  if (argc < 2) return 2;
  tt_status_t status = tt_plugin_open(argv[1], &plugin);
  if (!status) status = tt_client_create(plugin, &(tt_client_options_t){.cpu_device_count = 1}, &g_client);
  if (status) {
    fprintf(stderr, "%s\n", tt_status_message(status));
    return 1;
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tt_client_release(g_client);
  tt_plugin_release(plugin);
  return failed;
}
