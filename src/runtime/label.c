#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "runtime/runtime.h"

// A program has as many labels as it has lines that make large tensors: each text is kept once, for ever, so that a step
// that has run before allocates nothing here.
static tt_map_t g_labels;

static const char* intern(const char* text) {
  size_t n = strlen(text);
  uint64_t hash = tt_hash64(text, n, 0);
  char* kept = tt_map_find(&g_labels, hash, text, n);
  if (kept) return kept;
  kept = tt_strdup(text);
  if (kept && !tt_map_put(&g_labels, hash, kept, n, kept)) {
    tt_free(kept);
    return NULL;
  }
  return kept;
}

void tt_storage_set_label(tt_storage_t* s, const char* label) {
  rt_lock();
  s->label = label && label[0] ? intern(label) : NULL;
  rt_unlock();
}

void rt_label(tt_storage_t* s, const char* op, const char* where) {
  char text[256];
  snprintf(text, sizeof text, "%s%s%s", op, where[0] ? " at " : "", where);
  tt_storage_set_label(s, text);
}
