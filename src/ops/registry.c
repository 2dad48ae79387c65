#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "ops/op.h"

#define TT_FAMILY(name) const tt_op_row_t* tt_family_##name(int* out_count);
#include "ops/families.def"
#undef TT_FAMILY

typedef const tt_op_row_t* (*family_fn)(int* out_count);
static const family_fn k_families[] = {
#define TT_FAMILY(name) tt_family_##name,
#include "ops/families.def"
#undef TT_FAMILY
    NULL,
};

// Rows by name. Built once; never freed, since rows live as long as the process.
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static tt_map_t g_by_name;

static void build(void) {
  tt_map_init(&g_by_name);
  for (const family_fn* f = k_families; *f; f++) {
    int n = 0;
    const tt_op_row_t* rows = (*f)(&n);
    for (int i = 0; i < n; i++) {
      size_t len = strlen(rows[i].name);
      // The table is read-only data; the map only hands out what it was given.
      tt_map_put(&g_by_name, tt_hash64(rows[i].name, len, 0), rows[i].name, len, (void*)(uintptr_t)&rows[i]);
    }
  }
}

int tt_op_count(void) {
  int total = 0;
  for (const family_fn* f = k_families; *f; f++) {
    int n = 0;
    (*f)(&n);
    total += n;
  }
  return total;
}

const tt_op_row_t* tt_op_at(int i) {
  for (const family_fn* f = k_families; *f; f++) {
    int n = 0;
    const tt_op_row_t* rows = (*f)(&n);
    if (i < n) return &rows[i];
    i -= n;
  }
  return NULL;
}

const tt_op_row_t* tt_op_find(const char* name) {
  pthread_once(&g_once, build);
  size_t len = strlen(name);
  return tt_map_find(&g_by_name, tt_hash64(name, len, 0), name, len);
}
