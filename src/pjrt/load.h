// Judging a plugin file that this machine has not loaded before, in a process that may die of it.
//
// Depends on: base.
// Threads: thread-safe.
#ifndef TT_PJRT_LOAD_H_
#define TT_PJRT_LOAD_H_
#include "base/status.h"

// NULL when |path| may be loaded. FAILED_PRECONDITION when loading it killed the probing process; the message names
// the signal. The verdict is remembered by path, size and time of change, so that only new files cost a probe.
TT_MUST_USE tt_status_t tt_plugin_probe(const char* path);

#endif  // TT_PJRT_LOAD_H_
