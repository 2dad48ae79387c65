// The parts of a cache key that are not the program: the same text for a device and for its description ahead of time.
//
// Depends on: pjrt.
// Threads: thread-safe.
#ifndef TT_RUNTIME_ENVIRONMENT_H_
#define TT_RUNTIME_ENVIRONMENT_H_
#include "base/strbuf.h"
#include "pjrt/pjrt.h"

// What is compiled for. |flags| and |fast_flags| are those of the platform.
typedef struct tt_environment_t {
  const tt_plugin_t* plugin;
  const char *platform, *version, *kind, *flags, *fast_flags;
} tt_environment_t;

// One named part a line; tt_free it; NULL when memory is out.
char* rt_environment_text(const tt_environment_t* about);
// The key of a program by its text (src/runtime/compile.c looks it up). |overrides| may be NULL.
void rt_program_key(const char* environment, int device, const char* overrides, const char* text, size_t len,
                    tt_strbuf_t* out_key);

#endif  // TT_RUNTIME_ENVIRONMENT_H_
