#include "base/map.h"

#include <string.h>

#include "base/alloc.h"

void tt_map_init(tt_map_t* map) { memset(map, 0, sizeof *map); }

void tt_map_deinit(tt_map_t* map) {
  tt_free(map->slots);
  tt_map_init(map);
}

// The slot that holds the key, or the empty slot where it would go. Needs a table that is not full.
static tt_map_slot_t* probe(const tt_map_t* map, uint64_t hash, const void* key, size_t key_len) {
  size_t mask = map->cap - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    tt_map_slot_t* s = &map->slots[i];
    if (!s->value) return s;
    if (s->hash == hash && s->key_len == key_len && memcmp(s->key, key, key_len) == 0) return s;
  }
}

void* tt_map_find(const tt_map_t* map, uint64_t hash, const void* key, size_t key_len) {
  return map->count ? probe(map, hash, key, key_len)->value : NULL;
}

static bool grow(tt_map_t* map) {
  tt_map_t bigger = {.cap = map->cap ? map->cap * 2 : 64};
  bigger.slots = tt_calloc(bigger.cap, sizeof *bigger.slots);
  if (!bigger.slots) return false;
  for (size_t i = 0; i < map->cap; i++) {
    const tt_map_slot_t* s = &map->slots[i];
    if (s->value) *probe(&bigger, s->hash, s->key, s->key_len) = *s;
  }
  bigger.count = map->count;
  tt_free(map->slots);
  *map = bigger;
  return true;
}

bool tt_map_put(tt_map_t* map, uint64_t hash, const void* key, size_t key_len, void* value) {
  if (map->cap * 3 <= (map->count + 1) * 4 && !grow(map)) return false;
  tt_map_slot_t* s = probe(map, hash, key, key_len);
  if (!s->value) map->count++;
  *s = (tt_map_slot_t){hash, key, key_len, value};
  return true;
}

void* tt_map_remove(tt_map_t* map, uint64_t hash, const void* key, size_t key_len) {
  if (!map->count) return NULL;
  tt_map_slot_t* s = probe(map, hash, key, key_len);
  void* value = s->value;
  if (!value) return NULL;
  map->count--;
  // Close the gap: move back every follower whose home slot is not between the gap and itself.
  size_t mask = map->cap - 1, gap = (size_t)(s - map->slots);
  for (size_t i = (gap + 1) & mask; map->slots[i].value; i = (i + 1) & mask) {
    size_t home = map->slots[i].hash & mask;
    if (((i - home) & mask) >= ((i - gap) & mask)) {
      map->slots[gap] = map->slots[i];
      gap = i;
    }
  }
  memset(&map->slots[gap], 0, sizeof map->slots[gap]);
  return value;
}

void tt_map_sweep(tt_map_t* map, tt_map_leaves_fn leaves, const void* ctx) {
  if (!map->count) return;
  tt_map_t kept = {.slots = tt_calloc(map->cap, sizeof *kept.slots), .cap = map->cap};
  if (!kept.slots) return;
  for (size_t i = 0; i < map->cap; i++) {
    const tt_map_slot_t* s = &map->slots[i];
    if (!s->value || leaves(s, ctx)) continue;
    *probe(&kept, s->hash, s->key, s->key_len) = *s;
    kept.count++;
  }
  tt_free(map->slots);
  *map = kept;
}
