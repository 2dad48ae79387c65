// Bump allocation for everything about one graph: freed all at once, never singly.
//
// Depends on: base/alloc.
// Threads: thread-compatible.
#ifndef TT_BASE_ARENA_H_
#define TT_BASE_ARENA_H_
#include <stdarg.h>
#include <stddef.h>
#include "tt/types.h"

typedef struct tt_arena_block_t tt_arena_block_t;
typedef struct tt_arena_t {
  tt_arena_block_t* head;  // newest block
  size_t total_bytes;      // of all blocks
} tt_arena_t;

void tt_arena_init(tt_arena_t* arena);                     // allocates nothing
void tt_arena_deinit(tt_arena_t* arena);                   // frees all blocks
void* tt_arena_alloc(tt_arena_t* arena, size_t size_bytes);  // zeroed, 16-byte aligned; NULL when memory is out
void* tt_arena_copy(tt_arena_t* arena, const void* data, size_t size_bytes);
char* tt_arena_printf(tt_arena_t* arena, const char* format, ...) TT_PRINTF(2, 3);  // NULL when memory is out

#endif  // TT_BASE_ARENA_H_
