#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tt_status_rep_t {
  tt_code_t code;
  char site[64];
  char message[];  // NUL-terminated
};

static struct {
  struct tt_status_rep_t rep;
  char text[64];
} k_no_memory = {{TT_RESOURCE_EXHAUSTED, "status.c"}, "host memory is exhausted"};

static bool is_static(tt_status_t s) { return s == &k_no_memory.rep; }

tt_status_t tt_status_vmake(tt_code_t code, const char* file, int line, const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  if (n < 0) n = 0;
  tt_status_t s = malloc(sizeof *s + (size_t)n + 1);
  if (!s) {
    va_end(again);
    return &k_no_memory.rep;
  }
  s->code = code;
  const char* base = strrchr(file, '/');
  snprintf(s->site, sizeof s->site, "%s:%d", base ? base + 1 : file, line);
  vsnprintf(s->message, (size_t)n + 1, format, again);
  va_end(again);
  return s;
}

tt_status_t tt_status_make(tt_code_t code, const char* file, int line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  tt_status_t s = tt_status_vmake(code, file, line, format, args);
  va_end(args);
  return s;
}

tt_status_t tt_status_annotate(tt_status_t status, const char* format, ...) {
  if (!status || is_static(status)) return status;
  char context[512];
  va_list args;
  va_start(args, format);
  vsnprintf(context, sizeof context, format, args);
  va_end(args);
  tt_status_t s = tt_status_make(status->code, status->site, 0, "%s: %s", context, status->message);
  if (is_static(s)) return status;  // keep the original failure rather than lose it
  memcpy(s->site, status->site, sizeof s->site);
  free(status);
  return s;
}

tt_status_t tt_status_clone(tt_status_t status) {
  if (!status || is_static(status)) return status;
  tt_status_t s = tt_status_make(status->code, status->site, 0, "%s", status->message);
  if (!is_static(s)) memcpy(s->site, status->site, sizeof s->site);
  return s;
}

tt_status_t tt_status_create(tt_code_t code, const char* message) {
  return tt_status_make(code, "callback", 0, "%s", message);
}

tt_code_t tt_status_code(tt_status_t status) { return status ? status->code : TT_OK; }
const char* tt_status_message(tt_status_t status) {
  return !status ? "" : is_static(status) ? k_no_memory.text : status->message;
}
const char* tt_status_site(tt_status_t status) { return status ? status->site : ""; }
void tt_status_free(tt_status_t status) {
  if (!is_static(status)) free(status);
}

const char* tt_code_name(tt_code_t code) {
  switch (code) {
    case TT_OK: return "OK";
#define TT_X(name, number, exception) case TT_##name: return #name;
      TT_STATUS_CODES(TT_X)
#undef TT_X
  }
  return "UNKNOWN";
}

const char* tt_code_exception(tt_code_t code) {
  switch (code) {
    case TT_OK: return "";
#define TT_X(name, number, exception) case TT_##name: return exception;
      TT_STATUS_CODES(TT_X)
#undef TT_X
  }
  return "RuntimeError";
}
