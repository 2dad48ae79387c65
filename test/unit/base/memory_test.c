// Allocation hooks, arena, strings, hashes, map: the map against a plain list.
#include "test/unit/unit.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/strbuf.h"

// ---------------------------------------------------------------- allocation hooks
static int64_t g_live, g_fail_after;

static void* counting_realloc(void* ctx, void* old, size_t size) {
  assert_ptr_equal(ctx, &g_live);
  if (size == 0) {
    g_live--;
    free(old);
    return NULL;
  }
  if (g_fail_after >= 0 && g_fail_after-- == 0) return NULL;
  if (!old) g_live++;
  return realloc(old, size);
}

static int hook(void** state) {
  (void)state;
  g_live = 0;
  g_fail_after = -1;
  tt_alloc_set_hooks(&(tt_alloc_hooks_t){counting_realloc, &g_live});
  return 0;
}

static int unhook(void** state) {
  (void)state;
  tt_alloc_set_hooks(NULL);
  return g_live != 0;  // everything was given back
}

static void test_alloc(void** state) {
  (void)state;
  uint64_t before = tt_alloc_count();
  unsigned char* p = tt_calloc(3, 5);
  for (int i = 0; i < 15; i++) assert_int_equal(p[i], 0);
  p = tt_realloc(p, 100);
  char* s = tt_strdup("copy");
  assert_string_equal(s, "copy");
  void* nothing = tt_malloc(0);
  assert_non_null(nothing);
  assert_int_equal(tt_alloc_count() - before, 4);
  assert_null(tt_calloc(SIZE_MAX / 2, 3));
  g_fail_after = 0;
  assert_null(tt_malloc(1));
  g_fail_after = 0;
  assert_null(tt_strdup("x"));
  tt_free(p);
  tt_free(s);
  tt_free(nothing);
  tt_free(NULL);
}

// ---------------------------------------------------------------- arena
static void test_arena(void** state) {
  (void)state;
  tt_arena_t a;
  tt_arena_init(&a);
  unsigned char* blocks[300];
  size_t sizes[300];
  for (int i = 0; i < 300; i++) {
    sizes[i] = i % 50 == 49 ? 40000 : (size_t)random_below(600);
    blocks[i] = tt_arena_alloc(&a, sizes[i]);
    assert_int_equal((uintptr_t)blocks[i] % 16, 0);
    for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], 0);
    memset(blocks[i], i & 0xff, sizes[i]);
  }
  for (int i = 0; i < 300; i++)  // no block was given out twice
    for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], i & 0xff);
  assert_string_equal(tt_arena_printf(&a, "%s-%d", "text", 7), "text-7");
  assert_memory_equal(tt_arena_copy(&a, "abc", 3), "abc", 3);
  assert_non_null(tt_arena_copy(&a, NULL, 0));
  assert_null(tt_arena_alloc(&a, SIZE_MAX - 3));
  g_fail_after = 0;
  assert_null(tt_arena_alloc(&a, 1 << 20));
  assert_non_null(tt_arena_alloc(&a, 1 << 20));
  tt_arena_deinit(&a);
  assert_null(a.head);
}

// ---------------------------------------------------------------- strings
static void test_strbuf(void** state) {
  (void)state;
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  char want[6000] = "";
  size_t len = 0;
  for (int i = 0; i < 1000; i++) {
    len += (size_t)sprintf(want + len, "%d,", i);
    tt_strbuf_printf(&s, "%d,", i);
  }
  assert_int_equal(s.len, len);
  assert_string_equal(s.data, want);
  tt_strbuf_clear(&s);
  tt_strbuf_append(&s, "a\0b", 3);
  tt_strbuf_append(&s, NULL, 0);
  assert_int_equal(s.len, 3);
  assert_memory_equal(s.data, "a\0b", 4);
  for (size_t n = 250; n < 260; n++) {  // around the first capacity
    tt_strbuf_deinit(&s);
    for (size_t i = 0; i < n; i++) tt_strbuf_puts(&s, "x");
    assert_int_equal(strlen(s.data), n);
    tt_strbuf_deinit(&s);
    tt_strbuf_printf(&s, "%*s", (int)n, "");
    assert_int_equal(strlen(s.data), n);
  }
  tt_strbuf_deinit(&s);
  g_fail_after = 0;
  tt_strbuf_puts(&s, "lost");
  tt_strbuf_puts(&s, "lost too: failure is sticky");
  assert_true(s.failed);
  assert_int_equal(s.len, 0);
  tt_strbuf_clear(&s);
  tt_strbuf_puts(&s, "well");
  assert_string_equal(s.data, "well");
  assert_false(tt_strbuf_reserve(&s, SIZE_MAX / 2 + 10));
  tt_strbuf_deinit(&s);
}

static void test_json(void** state) {
  (void)state;
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_strbuf_json(&s, "");
  tt_strbuf_json(&s, "a\"b\\c\n\t\x01 \x7f\xc3\xa9");
  assert_string_equal(s.data, "\"\"\"a\\\"b\\\\c\\u000a\\u0009\\u0001 \x7f\xc3\xa9\"");
  tt_strbuf_deinit(&s);
}

// ---------------------------------------------------------------- hash
static void test_hash(void** state) {
  (void)state;
  unsigned char data[200];
  for (int i = 0; i < 200; i++) data[i] = (unsigned char)random_u64();
  uint64_t seen[201];
  for (size_t n = 0; n <= 200; n++) {  // every length differs, and trailing zeros count
    seen[n] = tt_hash64(data, n, 5);
    assert_int_equal(seen[n], tt_hash64(data, n, 5));
    assert_true(seen[n] != tt_hash64(data, n, 6));
    for (size_t k = 0; k < n; k++) assert_true(seen[k] != seen[n]);
  }
  memset(data, 0, sizeof data);
  for (size_t n = 1; n < 64; n++) assert_true(tt_hash64(data, n, 0) != tt_hash64(data, n - 1, 0));
  tt_hash128_t whole = tt_hash128(data, 100);
  assert_true(whole.lo != whole.hi);
  for (int bit = 0; bit < 800; bit++) {  // one bit anywhere moves about half of the result's bits
    data[bit / 8] ^= (unsigned char)(1 << (bit % 8));
    tt_hash128_t h = tt_hash128(data, 100);
    int moved = __builtin_popcountll(h.lo ^ whole.lo) + __builtin_popcountll(h.hi ^ whole.hi);
    assert_in_range(moved, 30, 98);
    data[bit / 8] ^= (unsigned char)(1 << (bit % 8));
  }
}

// ---------------------------------------------------------------- map
enum { KEYS = 700 };
static char g_keys[KEYS][16];
static void* g_reference[KEYS];

static size_t check_map(const tt_map_t* m, uint64_t (*hash)(int)) {
  size_t n = 0;
  for (int i = 0; i < KEYS; i++) {
    n += g_reference[i] != NULL;
    assert_ptr_equal(tt_map_find(m, hash(i), g_keys[i], strlen(g_keys[i])), g_reference[i]);
  }
  assert_int_equal(m->count, n);
  return n;
}

static uint64_t hash_good(int i) { return tt_hash64(g_keys[i], strlen(g_keys[i]), 0); }
static uint64_t hash_crowded(int i) { return (uint64_t)(i % 7); }              // long runs of collisions
static uint64_t hash_at_the_end(int i) { return UINT64_MAX - (uint64_t)(i % 5); }  // runs that wrap around

static void exercise_map(uint64_t (*hash)(int)) {
  tt_map_t m;
  tt_map_init(&m);
  for (int i = 0; i < KEYS; i++) snprintf(g_keys[i], sizeof g_keys[i], "key%d", i);
  memset(g_reference, 0, sizeof g_reference);
  assert_null(tt_map_find(&m, 1, "x", 1));
  assert_null(tt_map_remove(&m, 1, "x", 1));
  for (int step = 0; step < 6000; step++) {
    int i = (int)random_below(KEYS);
    size_t len = strlen(g_keys[i]);
    if (random_below(5) < (step < 3000 ? 3 : 2)) {  // grows, then shrinks
      void* value = g_keys[random_below(KEYS)];
      assert_true(tt_map_put(&m, hash(i), g_keys[i], len, value));
      g_reference[i] = value;
    } else {
      assert_ptr_equal(tt_map_remove(&m, hash(i), g_keys[i], len), g_reference[i]);
      g_reference[i] = NULL;
    }
    if (step % 50 == 0) check_map(&m, hash);
  }
  for (int i = 0; i < KEYS; i++) {
    assert_ptr_equal(tt_map_remove(&m, hash(i), g_keys[i], strlen(g_keys[i])), g_reference[i]);
    g_reference[i] = NULL;
    if (i % 50 == 0) check_map(&m, hash);
  }
  assert_int_equal(m.count, 0);
  tt_map_deinit(&m);
}

static void test_map(void** state) {
  (void)state;
  exercise_map(hash_good);
  exercise_map(hash_crowded);
  exercise_map(hash_at_the_end);
}

static bool is_odd(const tt_map_slot_t* s, const void* ctx) {
  assert_ptr_equal(ctx, &g_live);
  return strlen(s->key) % 2 == 1;
}

static void test_map_sweep(void** state) {
  (void)state;
  tt_map_t m;
  tt_map_init(&m);
  tt_map_sweep(&m, is_odd, &g_live);  // nothing there
  static char keys[300][12];
  for (int i = 0; i < 300; i++) {
    snprintf(keys[i], sizeof keys[i], "%d", i);
    assert_true(tt_map_put(&m, (uint64_t)i % 7, keys[i], strlen(keys[i]), keys[i]));
  }
  g_fail_after = 0;
  tt_map_sweep(&m, is_odd, &g_live);  // memory is out: all stay
  assert_int_equal(m.count, 300);
  g_fail_after = -1;
  tt_map_sweep(&m, is_odd, &g_live);
  assert_int_equal(m.count, 90);  // those of two digits
  for (int i = 0; i < 300; i++) {
    void* found = tt_map_find(&m, (uint64_t)i % 7, keys[i], strlen(keys[i]));
    assert_ptr_equal(found, i >= 10 && i < 100 ? keys[i] : NULL);
  }
  tt_map_deinit(&m);
}

static void test_map_out_of_memory(void** state) {
  (void)state;
  tt_map_t m;
  tt_map_init(&m);
  g_fail_after = 0;
  assert_false(tt_map_put(&m, 1, "a", 1, &m));
  int n = 0;
  static char keys[200][12];
  for (; n < 200; n++) {
    snprintf(keys[n], sizeof keys[n], "%d", n);
    g_fail_after = n ? 0 : -1;  // the table may not grow any more
    if (!tt_map_put(&m, (uint64_t)n, keys[n], strlen(keys[n]), &m)) break;
  }
  assert_in_range(n, 40, 63);
  for (int i = 0; i < n; i++) assert_ptr_equal(tt_map_find(&m, (uint64_t)i, keys[i], strlen(keys[i])), &m);
  assert_null(tt_map_find(&m, (uint64_t)n, keys[n], strlen(keys[n])));
  g_fail_after = -1;
  tt_map_deinit(&m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, hook, unhook)
int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_alloc), TEST(test_arena), TEST(test_strbuf),
                                     TEST(test_json),  TEST(test_hash),  TEST(test_map), TEST(test_map_sweep),
                                     TEST(test_map_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
