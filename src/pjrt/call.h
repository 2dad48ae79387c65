// Calling into a plugin whose version is not ours.
//
// Depends on: base, pjrt_c_api.h.
// Threads: macros.
// A plugin's function table may be shorter than the header's (an older plugin) and any entry may be NULL. Argument
// structs are zeroed literals with the header's size: out fields that an older plugin does not know stay zero.
#ifndef TT_PJRT_CALL_H_
#define TT_PJRT_CALL_H_
#include <pjrt_c_api.h>
#include <stddef.h>

#include "base/status.h"

#define TT_PJRT_HAS(plugin, Fn) \
  (offsetof(PJRT_Api, Fn) + sizeof(void*) <= (plugin)->api->struct_size && (plugin)->api->Fn != NULL)

// A zeroed argument struct: TT_PJRT_ARGS(PJRT_Buffer_Delete, .buffer = b)
#define TT_PJRT_ARGS(Fn, ...) {.struct_size = Fn##_Args_STRUCT_SIZE, __VA_ARGS__}

// Status of a call: the plugin's error, or UNIMPLEMENTED when it has no such function.
#define TT_PJRT_CALL(plugin, Fn, args)                                                                 \
  (TT_PJRT_HAS(plugin, Fn) ? tt_pjrt_check((plugin), (plugin)->api->Fn(args), #Fn, __FILE__, __LINE__) \
                           : tt_pjrt_missing((plugin), #Fn, __FILE__, __LINE__))

// For calls whose failure nobody can act on (destructors): absent functions are skipped, errors are freed.
#define TT_PJRT_CALL_QUIETLY(plugin, Fn, args)                                    \
  do {                                                                            \
    if (TT_PJRT_HAS(plugin, Fn)) tt_pjrt_drop((plugin), (plugin)->api->Fn(args)); \
  } while (0)

struct tt_plugin_t;
// Takes |error|; NULL is success.
tt_status_t tt_pjrt_take_error(const struct tt_plugin_t* plugin, PJRT_Error* error, const char* function,
                               const char* file, int line);
tt_status_t tt_pjrt_missing(const struct tt_plugin_t* plugin, const char* function, const char* file, int line);
void tt_pjrt_drop_error(const struct tt_plugin_t* plugin, PJRT_Error* error);

static inline tt_status_t tt_pjrt_check(const struct tt_plugin_t* plugin, PJRT_Error* error, const char* function,
                                        const char* file, int line) {
  return error ? tt_pjrt_take_error(plugin, error, function, file, line) : NULL;
}

static inline void tt_pjrt_drop(const struct tt_plugin_t* plugin, PJRT_Error* error) {
  if (error) tt_pjrt_drop_error(plugin, error);
}

#endif  // TT_PJRT_CALL_H_
