#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"

void tt_strbuf_init(tt_strbuf_t* s) { memset(s, 0, sizeof *s); }

void tt_strbuf_deinit(tt_strbuf_t* s) {
  tt_free(s->data);
  tt_strbuf_init(s);
}

bool tt_strbuf_reserve(tt_strbuf_t* s, size_t extra) {
  if (s->failed) return false;
  if (extra < s->cap - s->len && s->cap) return true;
  size_t cap = s->cap ? s->cap : 256;
  while (cap - s->len <= extra) {
    if (cap > SIZE_MAX / 2) {
      s->failed = true;
      return false;
    }
    cap *= 2;
  }
  char* p = tt_realloc(s->data, cap);
  if (!p) {
    s->failed = true;
    return false;
  }
  s->data = p;
  s->cap = cap;
  return true;
}

void tt_strbuf_append(tt_strbuf_t* s, const void* data, size_t len) {
  if (!tt_strbuf_reserve(s, len)) return;
  if (len) memcpy(s->data + s->len, data, len);
  s->len += len;
  s->data[s->len] = 0;
}

void tt_strbuf_puts(tt_strbuf_t* s, const char* text) { tt_strbuf_append(s, text, strlen(text)); }

void tt_strbuf_printf(tt_strbuf_t* s, const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (n >= 0 && tt_strbuf_reserve(s, (size_t)n)) {
    vsnprintf(s->data + s->len, (size_t)n + 1, format, again);
    s->len += (size_t)n;
  }
  va_end(again);
}

void tt_strbuf_json(tt_strbuf_t* s, const char* text) {
  tt_strbuf_puts(s, "\"");
  for (const unsigned char* p = (const unsigned char*)text; *p; p++) {
    if (*p == '"' || *p == '\\') tt_strbuf_printf(s, "\\%c", *p);
    else if (*p < 0x20) tt_strbuf_printf(s, "\\u%04x", *p);
    else tt_strbuf_append(s, p, 1);
  }
  tt_strbuf_puts(s, "\"");
}
