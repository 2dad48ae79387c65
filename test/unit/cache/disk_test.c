// The executable cache on disk: whatever happens to a file, it is the right entry or a miss.
#define _GNU_SOURCE
#include "test/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cache/disk.h"

static char g_dir[] = "/tmp/tt_disk_XXXXXX";

// The only entry file below g_dir (and the number of files there).
static int find_file(char* out, size_t size) {
  char command[256];
  snprintf(command, sizeof command, "find %s -type f", g_dir);
  FILE* p = popen(command, "r");
  int n = 0;
  char line[512];
  while (p && fgets(line, sizeof line, p)) {
    line[strcspn(line, "\n")] = 0;
    if (out) snprintf(out, size, "%s", line);
    n++;
  }
  if (p) pclose(p);
  return n;
}

static void empty_dir(void) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s/*", g_dir);
  assert_int_equal(system(command), 0);
}

static int fresh(void** state) {
  (void)state;
  empty_dir();
  rt_disk_open(g_dir, 0);
  return !rt_disk_is_open();
}

static bool find(const char* key, const char* meta, const char* exe) {
  void* block;
  const void *m, *x;
  size_t m_len, x_len;
  if (!rt_disk_find(key, strlen(key), &block, &m, &m_len, &x, &x_len)) {
    assert_null(block);
    return false;
  }
  assert_int_equal(m_len, strlen(meta));
  assert_int_equal(x_len, strlen(exe));
  assert_memory_equal(m, meta, m_len);
  assert_memory_equal(x, exe, x_len);
  tt_free(block);
  return true;
}

static bool store(const char* key, const char* meta, const char* exe) {
  return rt_disk_store(key, strlen(key), meta, strlen(meta), exe, strlen(exe));
}

static void test_round_trip(void** state) {
  (void)state;
  assert_string_equal(rt_disk_dir(), g_dir);
  assert_false(find("key", "", ""));
  assert_true(store("key", "meta", "executable"));
  assert_true(find("key", "meta", "executable"));
  assert_true(store("key", "meta2", "other"));  // replaced
  assert_true(find("key", "meta2", "other"));
  assert_true(store("empty", "", ""));
  assert_true(find("empty", "", ""));
  assert_false(find("ke", "", ""));
  assert_false(find("key ", "", ""));
  assert_int_equal(find_file(NULL, 0), 2);  // no temporaries are left
}

// Reads the only file, lets |damage| be done, and expects a miss each time; the whole file again is a hit.
static char g_path[512];
static unsigned char g_bytes[1024];
static size_t g_size;

static void read_entry(void) {
  assert_true(store("the key", "its meta", "its executable"));
  assert_int_equal(find_file(g_path, sizeof g_path), 1);
  FILE* f = fopen(g_path, "rb");
  assert_non_null(f);
  g_size = fread(g_bytes, 1, sizeof g_bytes, f);
  fclose(f);
}

static void write_entry(const void* bytes, size_t n) {
  FILE* f = fopen(g_path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

static bool entry_found(void) { return find("the key", "its meta", "its executable"); }

static void test_truncated_at_every_length(void** state) {
  (void)state;
  read_entry();
  for (size_t n = 0; n < g_size; n++) {
    int64_t before = rt_disk_rejects();
    write_entry(g_bytes, n);
    assert_false(entry_found());
    assert_int_equal(rt_disk_rejects(), before + 1);
  }
  write_entry(g_bytes, g_size);
  assert_true(entry_found());
  g_bytes[g_size] = 'x';
  write_entry(g_bytes, g_size + 1);
  assert_false(entry_found());
}

static void test_every_bit_altered(void** state) {
  (void)state;
  read_entry();
  for (size_t bit = 0; bit < g_size * 8; bit++) {
    if (bit / 8 >= 12 && bit / 8 < 16) continue;  // reserved
    g_bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    write_entry(g_bytes, g_size);
    assert_false(entry_found());
    g_bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  for (size_t from = 0; from < g_size; from += 16) {  // a page that never reached the disk reads as zeros
    unsigned char torn[sizeof g_bytes];
    memcpy(torn, g_bytes, g_size);
    memset(torn + from, 0, g_size - from);
    write_entry(torn, g_size);
    assert_false(entry_found());
  }
  assert_true(store("the key", "its meta", "its executable"));  // storing again heals it
  assert_true(entry_found());
}

static void test_foreign_files(void** state) {
  (void)state;
  read_entry();
  char mine[sizeof g_path];
  snprintf(mine, sizeof mine, "%s", g_path);
  unlink(mine);
  assert_true(store("another", "its meta", "its executable"));
  assert_int_equal(find_file(g_path, sizeof g_path), 1);
  assert_int_equal(rename(g_path, mine), 0);  // a whole entry under the name of another key
  assert_false(entry_found());
  unlink(mine);
  char elsewhere[64];
  snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", g_dir);
  snprintf(g_path, sizeof g_path, "%s", elsewhere);
  write_entry(g_bytes, g_size);
  assert_int_equal(symlink(elsewhere, mine), 0);  // links are not followed
  assert_false(entry_found());
  unlink(mine);
  assert_int_equal(mkdir(mine, 0700), 0);
  assert_false(entry_found());
  assert_false(store("the key", "its meta", "its executable"));
  rmdir(mine);
  assert_true(store("the key", "its meta", "its executable"));
  struct stat st;
  assert_int_equal(stat(mine, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_eviction(void** state) {
  (void)state;
  char body[1025] = "", key[16];
  memset(body, 'b', 1024);
  for (int i = 0; i < 30; i++) {
    snprintf(key, sizeof key, "k%d", i);
    assert_true(store(key, "", body));
    struct timespec pause = {0, 12000000};  // times of files are as coarse as the kernel's tick
    nanosleep(&pause, NULL);
  }
  assert_int_equal(find_file(NULL, 0), 30);
  assert_true(find("k0", "", body));  // recently used now
  struct timespec pause = {0, 12000000};
  nanosleep(&pause, NULL);
  rt_disk_open(g_dir, 20 * 1100);  // as the next process, with a smaller limit
  assert_true(store("last", "", body));
  int left = find_file(NULL, 0);
  assert_in_range(left, 12, 20);
  assert_true(find("k0", "", body));
  assert_true(find("last", "", body));
  assert_true(find("k29", "", body));
  assert_false(find("k1", "", body));
  assert_false(find("k2", "", body));
}

static void test_bad_folders(void** state) {
  (void)state;
  char path[4096];
  snprintf(path, sizeof path, "%s/a/b/c", g_dir);
  rt_disk_open(path, 0);
  assert_true(rt_disk_is_open());
  assert_true(store("k", "m", "x"));
  assert_true(find("k", "m", "x"));
  rt_disk_open("/proc/nowhere", 0);
  assert_false(rt_disk_is_open());
  assert_false(store("k", "m", "x"));
  assert_false(find("k", "m", "x"));
  memset(path, 'a', sizeof path - 1);
  path[0] = '/';
  path[sizeof path - 1] = 0;
  rt_disk_open(path, 0);
  assert_false(rt_disk_is_open());
}

// ---------------------------------------------------------------- writers killed at any moment
enum { KILLED_KEYS = 8, BODY = 200000 };

static void fill_body(char* body, int key, int version) {
  for (int i = 0; i < BODY; i++) body[i] = (char)('a' + (i + key * 7 + version) % 26);
  snprintf(body, 16, "%d %d", key, version);
}

static void write_until_killed(int seed) {
  static char body[BODY];
  for (int n = seed;; n++) {
    char key[16];
    int k = n % KILLED_KEYS;
    snprintf(key, sizeof key, "key%d", k);
    fill_body(body, k, n);
    rt_disk_store(key, strlen(key), &k, sizeof k, body, sizeof body);
  }
}

static int check_keys(void) {
  static char want[BODY];
  int found = 0;
  for (int k = 0; k < KILLED_KEYS; k++) {
    char key[16];
    void* block;
    const void *meta, *exe;
    size_t meta_len, exe_len;
    snprintf(key, sizeof key, "key%d", k);
    if (!rt_disk_find(key, strlen(key), &block, &meta, &meta_len, &exe, &exe_len)) continue;
    int got_key = -1, version = -1;
    assert_int_equal(meta_len, sizeof k);
    assert_memory_equal(meta, &k, sizeof k);
    assert_int_equal(exe_len, BODY);
    assert_int_equal(sscanf(exe, "%d %d", &got_key, &version), 2);
    assert_int_equal(got_key, k);
    fill_body(want, k, version);
    assert_memory_equal(exe, want, BODY);
    tt_free(block);
    found++;
  }
  return found;
}

static void test_killed_writers(void** state) {
  (void)state;
  int64_t rejects = rt_disk_rejects();
  for (int round = 0; round < 25; round++) {
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
      children[i] = fork();
      assert_true(children[i] >= 0);
      if (children[i] == 0) write_until_killed(round * 1000 + i * 3);
    }
    for (int i = 0; i < 2; i++) {
      struct timespec pause = {0, random_below(12000000)};
      nanosleep(&pause, NULL);
      check_keys();  // while they write
      kill(children[i], SIGKILL);
      assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    }
    check_keys();
  }
  assert_int_equal(check_keys(), KILLED_KEYS);
  assert_int_equal(rt_disk_rejects(), rejects);  // a name holds a whole entry or nothing, at every moment
}

#define TEST(f) cmocka_unit_test_setup(f, fresh)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_round_trip), TEST(test_truncated_at_every_length), TEST(test_every_bit_altered), TEST(test_foreign_files),
      TEST(test_eviction),   TEST(test_bad_folders),               TEST(test_killed_writers)};
  if (!mkdtemp(g_dir)) return 2;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  empty_dir();
  rmdir(g_dir);
  return failed;
}
