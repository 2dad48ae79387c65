// Making, annotating and passing on errors.
//
// Depends on: include/tt/types.h.
// Threads: thread-safe; one status object has one owner.
// A status is returned, annotated, or freed exactly once. Making one cannot fail: when memory is out, a static
// "out of memory" status stands in.
#ifndef TT_BASE_STATUS_H_
#define TT_BASE_STATUS_H_
#include <stdarg.h>
#include "tt/types.h"

// Makes a status with a printf-style message; records the call site.
#define tt_error(code, ...) tt_status_make((code), __FILE__, __LINE__, __VA_ARGS__)
TT_MUST_USE tt_status_t tt_status_make(tt_code_t code, const char* file, int line, const char* format, ...)
    TT_PRINTF(4, 5);
TT_MUST_USE tt_status_t tt_status_vmake(tt_code_t code, const char* file, int line, const char* format, va_list args);

// Puts "<context>: " in front of the message. Takes |status| and returns it (or its replacement). NULL stays NULL.
TT_MUST_USE tt_status_t tt_status_annotate(tt_status_t status, const char* format, ...) TT_PRINTF(2, 3);

// A second reference to the same failure (message copied). NULL stays NULL.
TT_MUST_USE tt_status_t tt_status_clone(tt_status_t status);

#define TT_TRY(expr)                    \
  do {                                  \
    tt_status_t tt_try_status_ = (expr); \
    if (tt_try_status_) return tt_try_status_; \
  } while (0)

#define TT_TRY_GOTO(status, label, expr) \
  do {                                   \
    (status) = (expr);                   \
    if (status) goto label;              \
  } while (0)

#endif  // TT_BASE_STATUS_H_
