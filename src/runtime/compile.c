// Programs by text: two signatures that lower to the same program share one executable.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "cache/disk.h"
#include "runtime/defer.h"
#include "runtime/entry.h"
#include "runtime/environment.h"

enum { MAX_PROGRAMS = 8192 };

static tt_map_t g_programs;

typedef struct program_key_t {
  tt_hash128_t hash;
  uint64_t len, overrides;
  int32_t device, fast;
} program_key_t;

// ---------------------------------------------------------------- bounds
static int compare(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

void rt_map_halve(tt_map_t* map, uint64_t (*stamp)(const void* value), tt_map_leaves_fn leaves) {
  uint64_t* stamps = tt_malloc((map->count + 1) * sizeof *stamps);
  if (!stamps) return;
  size_t n = 0;
  for (size_t i = 0; i < map->cap; i++)
    if (map->slots[i].value) stamps[n++] = stamp(map->slots[i].value);
  qsort(stamps, n, sizeof *stamps, compare);
  if (n) tt_map_sweep(map, leaves, &stamps[n / 2]);
  tt_free(stamps);
}

// |all|: a bool. Else only those go that nothing but this table holds.
static bool program_leaves(const tt_map_slot_t* s, const void* all) {
  if (!*(const bool*)all && tt_exe_is_shared(s->value)) return false;
  tt_exe_release(s->value);
  tt_free((void*)(uintptr_t)s->key);
  return true;
}

static void drop_programs(bool all) { tt_map_sweep(&g_programs, program_leaves, &all); }

// What the caches let go of is compiled again, or read from disk, when it is wanted again. Programs that compiled models
// hold stay, so that the next time comes only when as many more are alive.
static void bound_programs(void) {
  static int next;  // under the lock
  rt_lock();
  int limit = g_rt.keep_programs, before = tt_exe_count();
  if (before >= (next > limit ? next : limit)) {
    rt_entries_halve();
    rt_fused_halve();
    drop_programs(false);
    int after = tt_exe_count();
    next = after + limit / 4;
    RT_COUNT(programs_dropped, before - after);
  }
  rt_unlock();
}

// ---------------------------------------------------------------- dump
static char g_dump[1024];

void rt_dump_open(const char* folder) { snprintf(g_dump, sizeof g_dump, "%s", folder ? folder : ""); }

// Failures are quiet: whoever asked for the files sees that they are missing.
static void dump(const char* text, size_t len, tt_hash128_t hash, const char* what) {
  char path[sizeof g_dump + 64];
  snprintf(path, sizeof path, "%s/%016llx%016llx.mlir", g_dump, (unsigned long long)hash.lo, (unsigned long long)hash.hi);
  FILE* f = fopen(path, "wb");
  if (!f) return;
  fputs("// ", f);
  fputs(what, f);
  fputs("\n", f);
  fwrite(text, 1, len, f);
  fclose(f);
}

// ---------------------------------------------------------------- compiling
tt_status_t rt_compile(int device, const char* text, size_t len, bool fast, const char* overrides, const char* what,
                       tt_exe_t** out_exe) {
  *out_exe = NULL;
  // 128 bits of the text and its length stand for it: a text is our own printer's, not an adversary's.
  program_key_t key = {.hash = tt_hash128(text, len), .len = len, .device = device, .fast = fast};
  if (overrides) key.overrides = tt_hash64(overrides, strlen(overrides), 0);
  uint64_t hash = tt_hash64(&key, sizeof key, 0);
  rt_lock();
  tt_exe_t* found = tt_map_find(&g_programs, hash, &key, sizeof key);
  if (found) tt_exe_retain(found);
  rt_unlock();
  if (found) {
    *out_exe = found;
    return NULL;
  }
  bound_programs();
  if (g_dump[0]) dump(text, len, key.hash, what);
  tt_compile_options_t options = {.device = device, .overrides = fast ? tt_client_fast_flags(g_rt.client) : overrides};
  tt_status_t status = tt_exe_compile(g_rt.client, text, len, &options, out_exe);
  if (status) {
    size_t shown = len < 4000 ? len : 4000;
    tt_status_t out = tt_error(tt_status_code(status), "%s: the compiler refused the program: %s\nStableHLO%s:\n%.*s", what,
                               tt_status_message(status), shown < len ? " (first 4000 bytes)" : "", (int)shown, text);
    tt_status_free(status);
    return out;
  }
  program_key_t* copy = tt_malloc(sizeof *copy);
  rt_lock();
  RT_COUNT(compiles, 1);
  if (g_programs.count >= MAX_PROGRAMS) drop_programs(true);
  if (copy && !tt_map_find(&g_programs, hash, &key, sizeof key)) {
    *copy = key;
    if (tt_map_put(&g_programs, hash, copy, sizeof *copy, *out_exe)) {
      tt_exe_retain(*out_exe);
      copy = NULL;
    }
  }
  rt_unlock();
  tt_free(copy);
  return NULL;
}

tt_status_t rt_load(int device, const void* bytes, size_t len, const char* overrides, tt_exe_t** out_exe) {
  bound_programs();
  tt_compile_options_t options = {.device = device, .overrides = overrides};
  return tt_exe_deserialize(g_rt.client, bytes, len, &options, out_exe);
}

static void disk_key(int device, const char* text, size_t len, const char* overrides, tt_strbuf_t* key) {
  tt_strbuf_init(key);
  rt_program_key(g_rt.environment, device, overrides, text, len, key);
}

tt_status_t rt_compile_cached(int device, const tt_strbuf_t* text, const char* overrides, const char* what,
                              tt_exe_t** out_exe) {
  tt_strbuf_t key;
  disk_key(device, text->data, text->len, overrides, &key);
  void* block = NULL;
  const void *meta, *exe;
  size_t meta_len, exe_len;
  tt_status_t status = NULL;
  *out_exe = NULL;
  if (!key.failed && rt_disk_find(key.data, key.len, &block, &meta, &meta_len, &exe, &exe_len)) {
    tt_status_free(rt_load(device, exe, exe_len, overrides, out_exe));
    tt_free(block);
    if (*out_exe) {
      rt_lock();
      RT_COUNT(disk_hits, 1);
      rt_unlock();
      tt_strbuf_deinit(&key);
      return NULL;
    }
  }
  status = rt_compile(device, text->data, text->len, false, overrides, what, out_exe);
  if (!status && !key.failed && rt_disk_is_open()) {
    void* bytes = NULL;
    size_t len = 0;
    tt_status_t serialized = tt_exe_serialize(*out_exe, &bytes, &len);
    if (!serialized && rt_disk_store(key.data, key.len, NULL, 0, bytes, len)) {
      rt_lock();
      RT_COUNT(disk_writes, 1);
      rt_unlock();
    }
    tt_status_free(serialized);
    tt_free(bytes);
  }
  tt_strbuf_deinit(&key);
  return status;
}

tt_status_t tt_executable_export(int device, const char* text, size_t len, const char* overrides, char** out_data, size_t* out_len) {
  *out_data = NULL;
  *out_len = 0;
  TT_TRY(rt_check_device(device));
  tt_strbuf_t key;
  disk_key(device, text, len, overrides, &key);
  void* block = NULL;
  const void *meta, *exe;
  size_t meta_len, exe_len;
  tt_status_t status = key.failed ? tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted") : NULL;
  if (!status && rt_disk_find(key.data, key.len, &block, &meta, &meta_len, &exe, &exe_len)) {
    *out_data = tt_malloc(exe_len + 1);
    if (*out_data) memcpy(*out_data, exe, exe_len), *out_len = exe_len;
    else status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    tt_free(block);
  }
  tt_strbuf_deinit(&key);
  return status;
}

tt_status_t tt_executable_import(int device, const char* text, size_t len, const char* overrides, const void* data, size_t data_len) {
  TT_TRY(rt_check_device(device));
  tt_strbuf_t key;
  disk_key(device, text, len, overrides, &key);
  if (!key.failed && rt_disk_is_open()) rt_disk_store(key.data, key.len, NULL, 0, data, data_len);
  bool failed = key.failed;
  tt_strbuf_deinit(&key);
  return failed ? tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted") : NULL;
}
