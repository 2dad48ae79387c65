#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static tt_alloc_hooks_t g_hooks;
static atomic_uint_fast64_t g_count;

void tt_alloc_set_hooks(const tt_alloc_hooks_t* hooks) {
  if (hooks) g_hooks = *hooks;
  else memset(&g_hooks, 0, sizeof g_hooks);
}

void* tt_realloc(void* old, size_t size_bytes) {
  if (size_bytes == 0) size_bytes = 1;
  atomic_fetch_add_explicit(&g_count, 1, memory_order_relaxed);
  return g_hooks.realloc_fn ? g_hooks.realloc_fn(g_hooks.ctx, old, size_bytes) : realloc(old, size_bytes);
}

void* tt_malloc(size_t size_bytes) { return tt_realloc(NULL, size_bytes); }

void* tt_calloc(size_t count, size_t size_bytes) {
  if (size_bytes && count > SIZE_MAX / size_bytes) return NULL;
  void* p = tt_malloc(count * size_bytes);
  if (p) memset(p, 0, count * size_bytes);
  return p;
}

void tt_free(void* p) {
  if (!p) return;
  if (g_hooks.realloc_fn) g_hooks.realloc_fn(g_hooks.ctx, p, 0);
  else free(p);
}

char* tt_strdup(const char* s) {
  size_t n = strlen(s) + 1;
  char* p = tt_malloc(n);
  if (p) memcpy(p, s, n);
  return p;
}

bool tt_grow(void* array, int used, int* cap, size_t size_bytes) {
  if (used < *cap) return true;
  int bigger = *cap ? *cap * 2 : 64;
  while (bigger <= used) bigger *= 2;
  void* items;
  memcpy(&items, array, sizeof items);  // any object pointer has this representation here; a cast would alias
  void* p = tt_realloc(items, (size_t)bigger * size_bytes);
  if (!p) return false;
  memcpy(array, &p, sizeof p);
  *cap = bigger;
  return true;
}

uint64_t tt_alloc_count(void) { return atomic_load_explicit(&g_count, memory_order_relaxed); }
