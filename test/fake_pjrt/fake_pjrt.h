// A PJRT plugin that computes nothing and can be told to misbehave: what tests of src/pjrt are made of.
//
// Depends on: pjrt_c_api.h, include/tt, tools/mlir_main.h.
// Threads: thread-safe.
// Build it as a shared library; find these functions with dlsym on the loaded plugin. Its programs return, for each
// result, the donated argument, else the bytes of the first argument of the same size, else zeros.
// Environment, read by GetPjrtApi: FAKE_PJRT_MAJOR, FAKE_PJRT_MINOR (version told), FAKE_PJRT_CUT (name of the first
// function that the table does not have), FAKE_PJRT_NULL=1 (GetPjrtApi returns NULL), FAKE_PJRT_CRASH=1,
// FAKE_PJRT_EXIT=1 (what a broken library may do when it is asked for its table).
// Client options: "cpu_device_count" (refused when FAKE_PJRT_NO_COUNT=1), "platform" (its name; default "fake").
// Compiler flags: names beginning with "fake_" are known, others are refused in XLA's words.
#ifndef FAKE_PJRT_H_
#define FAKE_PJRT_H_
#include <stdbool.h>
#include <stdint.h>

typedef enum fake_events_t {
  FAKE_EVENTS_NOW,      // complete at once
  FAKE_EVENTS_LATE,     // on another thread, a little later, in order
  FAKE_EVENTS_REVERSE,  // on another thread, the newest first
} fake_events_t;

typedef struct fake_pjrt_control_t {
  void (*reset)(void);                                 // counters to zero, no failures, events at once
  void (*fail_at)(int64_t n, int code);                // the n-th call from now on fails (1: the next); 0: none
  void (*fail_function)(const char* name, int64_t n);  // the n-th call of |name| from now on fails; NULL: none
  bool (*has_failed)(void);                            // a failure asked for was given
  int64_t (*calls)(const char* name);                  // calls so far; NULL: of all functions
  int64_t (*live)(void);                               // objects that were made and not freed
  void (*set_events)(fake_events_t mode);
  void (*fail_execution)(const char* message);    // the next execution's buffers and events end in this error
  const void* (*last_options)(int64_t* out_len);  // CompileOptionsProto of the last compile or load
} fake_pjrt_control_t;

// The one exported symbol besides GetPjrtApi.
const fake_pjrt_control_t* fake_pjrt_control(void);

#endif  // FAKE_PJRT_H_
