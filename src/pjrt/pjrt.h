// A PJRT plugin as the core uses it: open, client, devices, buffers, executables, topologies.
//
// Depends on: base. This folder alone knows the PJRT C API, its versions and its plugins' habits.
// Threads: thread-safe unless said otherwise (PJRT objects are).
// Every call that may be newer than the plugin is checked against its function table first; what a plugin lacks is
// UNIMPLEMENTED, naming the function and the plugin, never a crash.
#ifndef TT_PJRT_PJRT_H_
#define TT_PJRT_PJRT_H_
#include "base/status.h"
#include "tt/types.h"

typedef struct tt_plugin_t tt_plugin_t;  // counted; one per library path per process
typedef struct tt_client_t tt_client_t;  // counted; keeps its plugin
typedef struct tt_exe_t tt_exe_t;        // counted; a loaded executable
typedef struct PJRT_Buffer tt_pbuf_t;    // a device buffer, owned by whoever holds it; freed with tt_pbuf_free
typedef struct PJRT_Event tt_pevent_t;   // owned; freed with tt_pevent_free
typedef struct tt_topology_t tt_topology_t;

// ---------------------------------------------------------------- plugin
// Opens |path| (absolute, or anything dlopen takes). Fails: NOT_FOUND no such file; FAILED_PRECONDITION no
// GetPjrtApi, API too old (< 0.40) or of another major version; the message names path, cause and cure.
// Plugin chatter on stderr at load is kept out of the user's terminal unless TORCH_TPU_VERBOSE=1.
TT_MUST_USE tt_status_t tt_plugin_open(const char* path, tt_plugin_t** out_plugin);
void tt_plugin_retain(tt_plugin_t* plugin);
void tt_plugin_release(tt_plugin_t* plugin);  // libraries are never unloaded: XLA cannot be
const char* tt_plugin_path(const tt_plugin_t* plugin);
void tt_plugin_version(const tt_plugin_t* plugin, int* out_major, int* out_minor);
// Named attribute as text ("stablehlo_current_version" -> "1.13.3"); NULL when the plugin does not say.
const char* tt_plugin_attribute(const tt_plugin_t* plugin, const char* name);

// ---------------------------------------------------------------- client
typedef struct tt_client_options_t {
  int cpu_device_count;  // > 0: passed as "cpu_device_count" to plugins that take it (retried without when refused)
  const char* extra;  // "name=value;name=value" client options, or NULL (integers, floats, bools, strings told apart)
} tt_client_options_t;
TT_MUST_USE tt_status_t tt_client_create(tt_plugin_t* plugin, const tt_client_options_t* options,
                                         tt_client_t** out_client);
void tt_client_retain(tt_client_t* client);
void tt_client_release(tt_client_t* client);
tt_plugin_t* tt_client_plugin(const tt_client_t* client);   // borrowed
const char* tt_client_platform(const tt_client_t* client);  // "cpu", "tpu", "cuda", … lower case
const char* tt_client_platform_version(const tt_client_t* client);
int tt_client_device_count(const tt_client_t* client);                     // addressable devices
const char* tt_client_device_kind(const tt_client_t* client, int device);  // "TPU v5 lite", "cpu"
const char* tt_client_device_string(const tt_client_t* client, int device);
int tt_client_device_id(const tt_client_t* client, int device);  // global id
bool tt_client_device_attribute_int(const tt_client_t* client, int device, const char* name, int64_t* out);
// Compiler flags of this platform, "" when none. |flags| are part of every compilation (and belong into cache keys);
// |fast_flags| may be given as overrides for small programs: they compile in 0.5-0.8 of the time; pointwise ones run
// as fast, softmax runs 1.5 times slower.
const char* tt_client_flags(const tt_client_t* client);
const char* tt_client_fast_flags(const tt_client_t* client);
// Overrides with which the compiler prefers a small peak of memory; "" where there are none.
const char* tt_client_lean_flags(const tt_client_t* client);
// Loaded executables that the process has room for: where programs are this process's code, each takes memory maps, and the
// compiler behind the CPU plugins ends the process when there are none left.
int tt_client_max_executables(const tt_client_t* client);
uint32_t tt_client_caps(const tt_client_t* client);  // tt_caps_t of ops/op.h, by platform
uint32_t tt_platform_caps(const char* platform);     // the same without a client
const char* tt_platform_flags(const char* platform);
const char* tt_platform_fast_flags(const char* platform);
// Bytes in use / limit as the plugin reports them; UNIMPLEMENTED where it does not.
TT_MUST_USE tt_status_t tt_client_memory_stats(tt_client_t* client, int device, int64_t* out_in_use, int64_t* out_limit,
                                               int64_t* out_peak);

// ---------------------------------------------------------------- buffers
typedef enum tt_host_t {
  TT_HOST_COPY,        // |data| is only read during the call
  TT_HOST_UNTIL_DONE,  // |data| must stay valid and unchanged until |done| was called (may alias: zero copy)
} tt_host_t;
// Host to device; |data| dense row-major. |done(ctx)| may run on any thread; NULL with TT_HOST_COPY.
TT_MUST_USE tt_status_t tt_pbuf_from_host(tt_client_t* client, int device, tt_dtype_t dtype, int rank,
                                          const int64_t* dims, const void* data, tt_host_t semantics,
                                          void (*done)(void* ctx), void* ctx, tt_pbuf_t** out_buffer);
// Device to host, dense row-major, blocking. |size_bytes| must be the buffer's dense size. Errors of the computation
// that produced the buffer surface here.
TT_MUST_USE tt_status_t tt_pbuf_to_host(tt_client_t* client, tt_pbuf_t* buffer, void* out_data, size_t size_bytes);
// The same without waiting: *out_event becomes ready when |out_data| is filled.
TT_MUST_USE tt_status_t tt_pbuf_to_host_async(tt_client_t* client, tt_pbuf_t* buffer, void* out_data, size_t size_bytes,
                                              tt_pevent_t** out_event);
void tt_pbuf_free(tt_client_t* client, tt_pbuf_t* buffer);                      // accepts NULL
TT_MUST_USE tt_status_t tt_pbuf_await(tt_client_t* client, tt_pbuf_t* buffer);  // until its value is there (or failed)
TT_MUST_USE tt_status_t tt_pbuf_ready_event(tt_client_t* client, tt_pbuf_t* buffer, tt_pevent_t** out_event);
TT_MUST_USE tt_status_t tt_pbuf_copy_to_device(tt_client_t* client, tt_pbuf_t* buffer, int device,
                                               tt_pbuf_t** out_buffer);
TT_MUST_USE tt_status_t tt_pbuf_size_on_device(tt_client_t* client, tt_pbuf_t* buffer, size_t* out_size_bytes);
bool tt_pbuf_is_deleted(tt_client_t* client, tt_pbuf_t* buffer);

// ---------------------------------------------------------------- events
TT_MUST_USE tt_status_t tt_pevent_await(tt_client_t* client, tt_pevent_t* event);
bool tt_pevent_is_ready(tt_client_t* client, tt_pevent_t* event);
// |fn| runs once, perhaps on the plugin's thread, perhaps before this returns; |status| is NULL or owned by |fn|.
TT_MUST_USE tt_status_t tt_pevent_on_ready(tt_client_t* client, tt_pevent_t* event,
                                           void (*fn)(tt_status_t status, void* ctx), void* ctx);
void tt_pevent_free(tt_client_t* client, tt_pevent_t* event);

// ---------------------------------------------------------------- executables
typedef struct tt_compile_options_t {
  int device;    // addressable device the executable runs on
  int replicas;  // > 1: on so many, from |device| on, each with its own replica_id
  // "xla_flag=value;…" into CompileOptionsProto.env_option_overrides, or NULL; added to tt_client_flags. A flag
  // written "?xla_flag=value" is left out on compilers that do not know it (learned from their refusal, once per
  // plugin).
  const char* overrides;
} tt_compile_options_t;
// Compiles MLIR text. INVALID_ARGUMENT / INTERNAL carry the compiler's words. Chatter on stderr is kept away.
TT_MUST_USE tt_status_t tt_exe_compile(tt_client_t* client, const char* text, size_t text_len,
                                       const tt_compile_options_t* options, tt_exe_t** out_exe);
TT_MUST_USE tt_status_t tt_exe_deserialize(tt_client_t* client, const void* bytes, size_t len,
                                           const tt_compile_options_t* options, tt_exe_t** out_exe);
// |*out_bytes| is tt_malloc'ed, the caller's.
TT_MUST_USE tt_status_t tt_exe_serialize(tt_exe_t* exe, void** out_bytes, size_t* out_len);
void tt_exe_retain(tt_exe_t* exe);
void tt_exe_release(tt_exe_t* exe);  // accepts NULL
bool tt_exe_is_shared(const tt_exe_t* exe);  // more than one reference is held
int tt_exe_count(void);                      // executables alive, of all clients
int tt_exe_output_count(const tt_exe_t* exe);
int64_t tt_exe_temp_bytes(const tt_exe_t* exe);  // memory it needs while it runs, besides arguments and results; 0 unknown
// Enqueues one execution. |keep| lists arguments that must not be donated in this call although the program says so.
// On success out_buffers[0..n) are owned by the caller; donated arguments are consumed (still to be freed).
// |out_done| may be NULL; else it receives the event of the whole execution.
TT_MUST_USE tt_status_t tt_exe_run(tt_exe_t* exe, int n_args, tt_pbuf_t* const* args, int n_keep, const int64_t* keep,
                                   tt_pbuf_t** out_buffers, tt_pevent_t** out_done);
// The same for a program compiled with |replicas|: arguments and results of each, args[replica][argument]. The program's
// donations hold. Nothing waits: the results become ready together.
TT_MUST_USE tt_status_t tt_exe_run_all(tt_exe_t* exe, int replicas, int n_args, tt_pbuf_t* const* const* args,
                                       tt_pbuf_t** const* out_buffers);
// Estimates of the compiler; fields it does not know are -1.
typedef struct tt_exe_stats_t {
  int64_t code_bytes, argument_bytes, output_bytes, alias_bytes, temp_bytes, peak_bytes;
  double flops, bytes_accessed, optimal_seconds;
} tt_exe_stats_t;
TT_MUST_USE tt_status_t tt_exe_stats(tt_exe_t* exe, tt_exe_stats_t* out_stats);

// ---------------------------------------------------------------- ahead of time
// |name| as the plugin spells it ("v5e:2x2", "tpu7x:2x2x1"). No device is needed.
TT_MUST_USE tt_status_t tt_topology_create(tt_plugin_t* plugin, const char* name, tt_topology_t** out_topology);
void tt_topology_release(tt_topology_t* topology);
// Chips (devices) of the topology and what its compiler calls one ("TPU v5 lite"; "" when it does not say; borrowed).
TT_MUST_USE tt_status_t tt_topology_devices(const tt_topology_t* topology, int* out_count);
const char* tt_topology_device_kind(const tt_topology_t* topology);
const char* tt_topology_platform(const tt_topology_t* topology);          // "tpu"; "" when it does not say; borrowed
const char* tt_topology_platform_version(const tt_topology_t* topology);  // "" when it does not say; borrowed

typedef struct tt_compiled_t tt_compiled_t;  // a program for a topology; owned; keeps its plugin
// |partitions| devices share the program, divided by its sharding annotations; |replicas| of that run it, in the
// topology's order of devices. 1 and 1: the compiler's choice of a device.
TT_MUST_USE tt_status_t tt_topology_compile_program(tt_topology_t* topology, const char* text, size_t text_len,
                                                    const char* overrides, int replicas, int partitions,
                                                    tt_compiled_t** out_compiled);
void tt_compiled_free(tt_compiled_t* compiled);  // accepts NULL
TT_MUST_USE tt_status_t tt_compiled_stats(const tt_compiled_t* compiled, tt_exe_stats_t* out_stats);
// Numeric properties of the compiler's cost analysis, one call of |each| a property; |name| is NUL-terminated.
TT_MUST_USE tt_status_t tt_compiled_costs(const tt_compiled_t* compiled,
                                          void (*each)(void* ctx, const char* name, double value), void* ctx);
// The program after optimisation; |*out_format| is "hlo" (HloModuleProto), "hlo_with_config" or "mlir".
// |*out_bytes| is tt_malloc'ed. UNIMPLEMENTED where the plugin keeps it to itself.
TT_MUST_USE tt_status_t tt_compiled_optimized(const tt_compiled_t* compiled, char out_format[32], void** out_bytes,
                                              size_t* out_len);
TT_MUST_USE tt_status_t tt_compiled_serialize(const tt_compiled_t* compiled, void** out_bytes, size_t* out_len);

// All at once, for the topology's first chip; |out_stats| may be NULL; |out_bytes| may be NULL (else tt_malloc'ed).
TT_MUST_USE tt_status_t tt_topology_compile(tt_topology_t* topology, const char* text, size_t text_len,
                                            const char* overrides, tt_exe_stats_t* out_stats, void** out_bytes,
                                            size_t* out_len);

#endif  // TT_PJRT_PJRT_H_
