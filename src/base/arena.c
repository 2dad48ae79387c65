#include "base/arena.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct tt_arena_block_t {
  tt_arena_block_t* next;
  size_t used, size;
  _Alignas(16) unsigned char data[];
};

enum { MIN_BLOCK = 16 * 1024 };

void tt_arena_init(tt_arena_t* arena) { memset(arena, 0, sizeof *arena); }

void tt_arena_deinit(tt_arena_t* arena) {
  for (tt_arena_block_t* b = arena->head; b;) {
    tt_arena_block_t* next = b->next;
    tt_free(b);
    b = next;
  }
  tt_arena_init(arena);
}

void* tt_arena_alloc(tt_arena_t* arena, size_t size_bytes) {
  if (size_bytes > SIZE_MAX / 2) return NULL;
  size_t n = (size_bytes + 15) & ~(size_t)15;
  tt_arena_block_t* b = arena->head;
  if (!b || b->size - b->used < n) {
    size_t size = n > MIN_BLOCK ? n : MIN_BLOCK;
    b = tt_malloc(sizeof *b + size);
    if (!b) return NULL;
    b->next = arena->head;
    b->used = 0;
    b->size = size;
    arena->head = b;
    arena->total_bytes += size;
  }
  void* p = b->data + b->used;
  b->used += n;
  memset(p, 0, n);
  return p;
}

void* tt_arena_copy(tt_arena_t* arena, const void* data, size_t size_bytes) {
  void* p = tt_arena_alloc(arena, size_bytes ? size_bytes : 1);
  if (p && size_bytes) memcpy(p, data, size_bytes);
  return p;
}

char* tt_arena_printf(tt_arena_t* arena, const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char* p = n < 0 ? NULL : tt_arena_alloc(arena, (size_t)n + 1);
  if (p) vsnprintf(p, (size_t)n + 1, format, again);
  va_end(again);
  return p;
}
