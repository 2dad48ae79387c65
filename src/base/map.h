// Open-addressing table from byte strings to pointers. Keys are borrowed: they must outlive their entry.
//
// Depends on: base/alloc, base/hash.
// Threads: thread-compatible (callers lock).
#ifndef TT_BASE_MAP_H_
#define TT_BASE_MAP_H_
#include <stddef.h>
#include <stdint.h>
#include "tt/types.h"

typedef struct tt_map_slot_t {
  uint64_t hash;
  const void* key;
  size_t key_len;
  void* value;  // NULL: empty slot
} tt_map_slot_t;

typedef struct tt_map_t {
  tt_map_slot_t* slots;
  size_t cap, count;  // cap is a power of two or 0
} tt_map_t;

void tt_map_init(tt_map_t* map);
void tt_map_deinit(tt_map_t* map);  // frees the table, not keys or values
void* tt_map_find(const tt_map_t* map, uint64_t hash, const void* key, size_t key_len);  // NULL when absent
// Inserts or replaces; |value| is not NULL. False when memory is out (map unchanged).
bool tt_map_put(tt_map_t* map, uint64_t hash, const void* key, size_t key_len, void* value);
void* tt_map_remove(tt_map_t* map, uint64_t hash, const void* key, size_t key_len);  // the value removed, or NULL

// True when |slot|'s value is to leave the map; its key and value are then the callback's to free.
typedef bool (*tt_map_leaves_fn)(const tt_map_slot_t* slot, const void* ctx);
void tt_map_sweep(tt_map_t* map, tt_map_leaves_fn leaves, const void* ctx);  // does nothing when memory is out

#endif  // TT_BASE_MAP_H_
