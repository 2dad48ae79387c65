// What plugins read from the process environment; set before they are loaded, never overriding the user.
//
// Depends on: nothing.
// Threads: calls setenv, so a plugin should be opened before other threads read the environment.
#ifndef TT_PJRT_ENVIRONMENT_H_
#define TT_PJRT_ENVIRONMENT_H_

// Before dlopen of |path|: keeps log lines of XLA out of the terminal (unless TORCH_TPU_VERBOSE=1), and keeps libtpu
// from asking a metadata server for minutes on a machine that has no TPU.
void tt_environment_before_load(const char* path);
// Before the first topology of a process: libtpu must not stop because another process holds the TPU.
void tt_environment_before_topology(void);

#endif  // TT_PJRT_ENVIRONMENT_H_
