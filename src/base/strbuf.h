// A growing byte string: text being printed, signatures being packed.
//
// Depends on: base/alloc.
// Threads: thread-compatible.
// Out of memory is sticky: |failed| is set, later appends do nothing; check once at the end.
#ifndef TT_BASE_STRBUF_H_
#define TT_BASE_STRBUF_H_
#include <stddef.h>
#include <string.h>
#include "tt/types.h"

typedef struct tt_strbuf_t {
  char* data;  // NUL-terminated once anything was appended
  size_t len, cap;
  bool failed;
} tt_strbuf_t;

void tt_strbuf_init(tt_strbuf_t* s);     // allocates nothing
void tt_strbuf_deinit(tt_strbuf_t* s);
bool tt_strbuf_reserve(tt_strbuf_t* s, size_t extra);  // room for |extra| more bytes and a NUL
void tt_strbuf_append(tt_strbuf_t* s, const void* data, size_t len);
void tt_strbuf_puts(tt_strbuf_t* s, const char* text);
void tt_strbuf_printf(tt_strbuf_t* s, const char* format, ...) TT_PRINTF(2, 3);
void tt_strbuf_json(tt_strbuf_t* s, const char* text);  // appends |text| as a quoted JSON string

// Empties, keeping the memory.
static inline void tt_strbuf_clear(tt_strbuf_t* s) {
  s->len = 0;
  s->failed = false;
}

#endif  // TT_BASE_STRBUF_H_
