// Inside the fake plugin: objects, failures on demand, events.
//
// Depends on: pjrt_c_api.h, tools/mlir_main.h.
// Threads: thread-safe.
#ifndef FAKE_CORE_H_
#define FAKE_CORE_H_
#include <pjrt_c_api.h>
#include <pthread.h>

#include "fake_pjrt.h"
#include "tools/mlir_main.h"

enum { FAKE_MAX_DEVICES = 16, FAKE_MAX_VALUES = 256 };

// A value that will be there: shared by the events made of it.
typedef struct fake_async_t fake_async_t;
fake_async_t* fake_async_new(void);
fake_async_t* fake_async_retain(fake_async_t* async);
void fake_async_release(fake_async_t* async);
void fake_async_complete(fake_async_t* async, const char* error);  // |error| NULL: success; copied
void fake_async_schedule(fake_async_t* async, const char* error);  // completes it as the mode says
bool fake_async_is_done(fake_async_t* async);
PJRT_Error* fake_async_await(fake_async_t* async);
void fake_async_on_ready(fake_async_t* async, PJRT_Event_OnReadyCallback fn, void* ctx);
PJRT_Event* fake_event_new(fake_async_t* async);  // retains |async|
PJRT_Error* fake_event_destroy(PJRT_Event_Destroy_Args* args);
PJRT_Error* fake_event_is_ready(PJRT_Event_IsReady_Args* args);
PJRT_Error* fake_event_error(PJRT_Event_Error_Args* args);
PJRT_Error* fake_event_await(PJRT_Event_Await_Args* args);
PJRT_Error* fake_event_on_ready(PJRT_Event_OnReady_Args* args);

// Counting, and the failure that was asked for: begins every function.
PJRT_Error* fake_enter(const char* function);
PJRT_Error* fake_error(PJRT_Error_Code code, const char* format, ...) __attribute__((format(printf, 2, 3)));
void* fake_new(size_t size_bytes);  // zeroed, counted as live
void fake_delete(void* object);
const char* fake_take_execution_failure(void);  // NULL when none; valid until the next call

void fake_error_destroy(PJRT_Error_Destroy_Args* args);
void fake_error_message(PJRT_Error_Message_Args* args);
PJRT_Error* fake_error_code(PJRT_Error_GetCode_Args* args);

// Control functions implemented in fake_core.c.
void fake_reset(void);
void fake_fail_at(int64_t n, int code);
void fake_fail_function(const char* name, int64_t n);
bool fake_has_failed(void);
int64_t fake_calls(const char* name);
int64_t fake_live(void);
void fake_set_events(fake_events_t mode);
void fake_fail_execution(const char* message);

#define FAKE_ENTER(Fn)                     \
  do {                                     \
    PJRT_Error* fake_e_ = fake_enter(#Fn); \
    if (fake_e_) return fake_e_;           \
  } while (0)

#endif  // FAKE_CORE_H_
