#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "runtime/runtime.h"

static tt_map_t g_layouts;
static uint32_t g_next_id = 1;

const rt_layout_t* rt_layout_get(tt_dtype_t dtype, int rank, const int64_t* dims) {
  int64_t numel = 1, size_bytes;
  for (int i = 0; i < rank; i++)
    if (dims[i] < 0 || __builtin_mul_overflow(numel, dims[i], &numel)) return NULL;
  if (__builtin_mul_overflow(numel, (int64_t)tt_dtype_size(dtype), &size_bytes)) return NULL;
  struct {
    int64_t dtype, rank, dims[TT_MAX_RANK];
  } key;
  key.dtype = (int64_t)dtype;
  key.rank = rank;
  size_t dims_bytes = (size_t)rank * sizeof(int64_t);
  if (rank) memcpy(key.dims, dims, dims_bytes);
  size_t len = 2 * sizeof(int64_t) + dims_bytes;
  uint64_t hash = tt_hash64(&key, len, 0);
  rt_layout_t* found = tt_map_find(&g_layouts, hash, &key, len);
  if (found) return found;
  // The key lies behind the layout in the same block.
  char* block = tt_malloc(sizeof(rt_layout_t) + dims_bytes + len);
  if (!block) return NULL;
  rt_layout_t* layout = (rt_layout_t*)(void*)block;
  layout->id = g_next_id++;
  layout->dtype = dtype;
  layout->rank = rank;
  layout->numel = numel;
  layout->size_bytes = size_bytes;
  if (rank) memcpy(layout->dims, dims, dims_bytes);
  void* key_copy = block + sizeof(rt_layout_t) + dims_bytes;
  memcpy(key_copy, &key, len);
  if (!tt_map_put(&g_layouts, hash, key_copy, len, layout)) {
    tt_free(block);
    return NULL;
  }
  return layout;
}
