#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "runtime/runtime.h"

static tt_map_t g_layouts;
static uint32_t g_next_id = 1;

// Bytes of a dense array; -1 when no memory could hold it.
static int64_t bytes_of(tt_dtype_t dtype, int rank, const int64_t* dims, int64_t* out_numel) {
  int64_t numel = 1, bytes;
  for (int i = 0; i < rank; i++)
    if (dims[i] < 0 || __builtin_mul_overflow(numel, dims[i], &numel)) return -1;
  *out_numel = numel;
  return __builtin_mul_overflow(numel, (int64_t)tt_dtype_size(dtype), &bytes) ? -1 : bytes;
}

const rt_layout_t* rt_layout_get(tt_dtype_t dtype, int rank, const int64_t* dims) {
  return rt_layout_get_padded(dtype, rank, dims, dims);
}

const rt_layout_t* rt_layout_get_padded(tt_dtype_t dtype, int rank, const int64_t* dims, const int64_t* physical) {
  int64_t numel, unused, size_bytes = bytes_of(dtype, rank, dims, &numel);
  int64_t buffer_bytes = bytes_of(dtype, rank, physical, &unused);
  if (size_bytes < 0 || buffer_bytes < 0) return NULL;
  size_t dims_bytes = (size_t)rank * sizeof(int64_t);
  bool padded = rank && memcmp(dims, physical, dims_bytes) != 0;
  struct {
    int64_t dtype, rank, dims[2 * TT_MAX_RANK];
  } key;
  key.dtype = (int64_t)dtype;
  key.rank = rank;
  if (rank) memcpy(key.dims, dims, dims_bytes);
  if (padded) memcpy(key.dims + rank, physical, dims_bytes);
  size_t len = 2 * sizeof(int64_t) + (padded ? 2 : 1) * dims_bytes;
  uint64_t hash = tt_hash64(&key, len, 0);
  rt_layout_t* found = tt_map_find(&g_layouts, hash, &key, len);
  if (found) return found;
  // The key lies behind the layout in the same block.
  char* block = tt_malloc(sizeof(rt_layout_t) + 2 * dims_bytes + len);
  if (!block) return NULL;
  rt_layout_t* layout = (rt_layout_t*)(void*)block;
  layout->id = g_next_id++;
  layout->dtype = dtype;
  layout->rank = rank;
  layout->numel = numel;
  layout->size_bytes = size_bytes;
  layout->buffer_bytes = buffer_bytes;
  layout->padded = padded;
  layout->physical = layout->dims + rank;
  if (rank) memcpy(layout->dims, dims, dims_bytes), memcpy(layout->dims + rank, physical, dims_bytes);
  void* key_copy = block + sizeof(rt_layout_t) + 2 * dims_bytes;
  memcpy(key_copy, &key, len);
  if (!tt_map_put(&g_layouts, hash, key_copy, len, layout)) {
    tt_free(block);
    return NULL;
  }
  return layout;
}
