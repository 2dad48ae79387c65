// Bodies of the PJRT layer's objects, shared by the files of this folder only.
//
// Depends on: base, pjrt/call.
// Threads: as pjrt.h.
#ifndef TT_PJRT_OBJECTS_H_
#define TT_PJRT_OBJECTS_H_
#include <pthread.h>
#include <stdatomic.h>

#include "base/strbuf.h"
#include "pjrt/call.h"
#include "pjrt/pjrt.h"

typedef struct tt_plugin_attr_t {
  char* name;
  char* value;
} tt_plugin_attr_t;

// Compiler flags that were written "?name=value" and that this plugin turned out not to know. Append-only.
enum { TT_MAX_UNKNOWN_FLAGS = 32, TT_FLAG_NAME_SIZE = 96 };
typedef struct tt_unknown_flags_t {
  pthread_mutex_t lock;  // of writers
  atomic_int count;
  char names[TT_MAX_UNKNOWN_FLAGS][TT_FLAG_NAME_SIZE];
} tt_unknown_flags_t;

bool tt_unknown_flags_has(const tt_unknown_flags_t* flags, const char* name);
// True when |status| is a refusal of a flag that |overrides| has with a "?": compiling again leaves it out.
bool tt_unknown_flags_learn(tt_unknown_flags_t* flags, tt_status_t status, const char* overrides);

struct tt_plugin_t {
  struct tt_plugin_t* next;  // in the process's list
  atomic_int refs;           // informational: a plugin, once loaded, stays
  char* path;
  const PJRT_Api* api;
  int major, minor;
  pthread_mutex_t lock;  // guards what follows
  bool is_initialized;
  bool has_attrs;
  tt_plugin_attr_t* attrs;
  size_t attr_count;
  tt_unknown_flags_t unknown_flags;
};

typedef struct tt_device_t {
  PJRT_Device* device;
  PJRT_DeviceDescription* description;
  int id;
  char* kind;
  char* text;
} tt_device_t;

struct tt_client_t {
  atomic_int refs;
  tt_plugin_t* plugin;
  PJRT_Client* client;
  char* platform;
  char* platform_version;
  tt_device_t* devices;  // addressable ones
  int device_count;
  uint32_t caps;
  bool is_host_memory;     // device memory is this process's memory
  int max_exes;            // loaded executables this process has room for
  const char* flags;       // of every compilation; static
  const char* fast_flags;  // static
  const char* lean_flags;  // static
};

struct tt_exe_t {
  atomic_int refs;
  tt_client_t* client;
  PJRT_LoadedExecutable* loaded;
  PJRT_Executable* executable;
  int output_count;
  int64_t temp_bytes;
};

struct tt_topology_t {
  tt_plugin_t* plugin;
  PJRT_TopologyDescription* topology;
  char kind[64], version[1024], platform[32];  // platform in lower case, as a client's
};

struct tt_compiled_t {
  tt_plugin_t* plugin;
  PJRT_Executable* executable;
};

// Asks for the plugin's attributes, then runs its one-time initialisation; later calls do nothing.
tt_status_t tt_plugin_initialize(tt_plugin_t* plugin);

// The devices that a program runs on. |partitions| > 1: the SPMD partitioner divides it by its sharding annotations;
// |replicas| run the same program, each with its own replica_id. |devices| are global ids, replica by replica; NULL:
// the compiler's choice.
typedef struct tt_spread_t {
  int replicas, partitions;
  const int* devices;
} tt_spread_t;
// A serialised CompileOptionsProto. |flags| and |overrides| are both "name=value;…" or NULL; the latter wins. Flags with
// a "?" that are in |unknown| are left out.
tt_status_t tt_compile_options_write(const tt_spread_t* spread, const char* flags, const char* overrides,
                                     const tt_unknown_flags_t* unknown, tt_strbuf_t* out);
tt_status_t tt_executable_stats(const tt_plugin_t* plugin, PJRT_Executable* executable, tt_exe_stats_t* out_stats);
tt_status_t tt_executable_serialize(const tt_plugin_t* plugin, PJRT_Executable* executable, void** out_bytes,
                                    size_t* out_len);

// Copy of |len| bytes as a NUL-terminated string; NULL when memory is out.
char* tt_string_copy(const char* data, size_t len);

// Client and topology options from "name=value;name=value".
typedef struct tt_named_values_t {
  PJRT_NamedValue items[32];
  size_t count;
  char* text;  // what names and strings point into
} tt_named_values_t;
tt_status_t tt_named_values_parse(const char* text, tt_named_values_t* out);  // |text| may be NULL
void tt_named_values_deinit(tt_named_values_t* values);

// MLIR text as PJRT takes it; |text| is borrowed, and only read.
static inline PJRT_Program tt_mlir_program(const char* text, size_t text_len) {
  return (PJRT_Program){.struct_size = PJRT_Program_STRUCT_SIZE, .code = (char*)text, .code_size = text_len,
                        .format = "mlir", .format_size = 4};
}

#endif  // TT_PJRT_OBJECTS_H_
