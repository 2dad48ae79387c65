// The one way to host memory: a process-wide table, so that tests can count, poison and fail allocations.
//
// Depends on: nothing.
// Threads: thread-safe, except tt_alloc_set_hooks (call before other threads exist).
#ifndef TT_BASE_ALLOC_H_
#define TT_BASE_ALLOC_H_
#include <stddef.h>
#include "tt/types.h"

typedef struct tt_alloc_hooks_t {
  void* (*realloc_fn)(void* ctx, void* old, size_t size_bytes);  // size 0 frees
  void* ctx;
} tt_alloc_hooks_t;

void tt_alloc_set_hooks(const tt_alloc_hooks_t* hooks);  // NULL restores malloc; |hooks| is copied

// All return NULL when memory is out; tt_free accepts NULL.
TT_API void* tt_malloc(size_t size_bytes);
TT_API void* tt_calloc(size_t count, size_t size_bytes);  // zeroed; NULL also on overflow
TT_API void* tt_realloc(void* old, size_t size_bytes);
TT_API void tt_free(void* p);
TT_API char* tt_strdup(const char* s);

// Makes room for one more than |used| elements of |size_bytes| in the array at |*(T**)array|, doubling. False when memory is
// out (array unchanged).
bool tt_grow(void* array, int used, int* cap, size_t size_bytes);

// Number of tt_malloc/tt_calloc/tt_realloc calls of this process so far: what a steady training step must not move.
TT_API uint64_t tt_alloc_count(void);

#endif  // TT_BASE_ALLOC_H_
