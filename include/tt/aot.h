// Programs for chips that are not here: a compiler plugin (libtpu) compiles for a named topology without a device.
//
// Depends on: tt/types.h.
// Threads: thread-compatible: one topology, one thread at a time. No runtime needs to be open.
// libtpu reads the process environment and may end the process on a program it does not like: who cannot afford that
// does this in a process of its own, as the Python side does.
#ifndef TT_AOT_H_
#define TT_AOT_H_
#include "tt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_aot_t tt_aot_t;                  // an open topology; owned
typedef struct tt_aot_program_t tt_aot_program_t;  // compiled for it; owned; may outlive it

// |library| is the plugin's path, |topology| as the plugin spells it ("v5e:2x2", "tpu7x:2x2x1").
TT_API TT_MUST_USE tt_status_t tt_aot_open(const char* library, const char* topology, tt_aot_t** out_aot);
TT_API void tt_aot_close(tt_aot_t* aot);                           // accepts NULL
TT_API int tt_aot_devices(const tt_aot_t* aot);                    // devices of the topology; a chip may have two
TT_API const char* tt_aot_device_kind(const tt_aot_t* aot);        // "TPU v5 lite"; "" when unknown; borrowed
TT_API const char* tt_aot_platform_version(const tt_aot_t* aot);   // "" when unknown; borrowed

// |text| is StableHLO; |flags| "xla_flag=value;..." or NULL. |replicas| devices run the program, each with its own
// replica_id, in the topology's order; |partitions| devices share each replica, divided by the program's sharding
// annotations. 1 and 1: one device. Errors carry the compiler's words: RESOURCE_EXHAUSTED where it does not fit.
TT_API TT_MUST_USE tt_status_t tt_aot_compile(tt_aot_t* aot, const char* text, size_t len, const char* flags,
                                              int replicas, int partitions, tt_aot_program_t** out_program);
TT_API void tt_aot_program_free(tt_aot_program_t* program);  // accepts NULL

// Bytes of one device's main memory, as the compiler counts them; -1: it does not say.
typedef struct tt_aot_memory_t {
  int64_t code_bytes, argument_bytes, output_bytes, alias_bytes, temp_bytes, peak_bytes;
} tt_aot_memory_t;
TT_API TT_MUST_USE tt_status_t tt_aot_memory(const tt_aot_program_t* program, tt_aot_memory_t* out_memory);
// |each| is called once for each numeric property of the compiler's cost analysis ("flops", "bytes accessed",
// "optimal_seconds", ...).
TT_API TT_MUST_USE tt_status_t tt_aot_costs(const tt_aot_program_t* program,
                                            void (*each)(void* ctx, const char* name, double value), void* ctx);
// The optimised program; |out_format| names its form ("hlo": a HloModuleProto). Free with tt_aot_bytes_free.
TT_API TT_MUST_USE tt_status_t tt_aot_optimized(const tt_aot_program_t* program, char out_format[32], void** out_bytes,
                                                size_t* out_len);
TT_API TT_MUST_USE tt_status_t tt_aot_serialize(const tt_aot_program_t* program, void** out_bytes, size_t* out_len);
TT_API void tt_aot_bytes_free(void* bytes);
// Puts |program|, compiled from |text| with |flags| for one device, into the cache of executables in folder |cache_dir|,
// where a runtime on such a device looks for it: a graph of the same text on device number |device|, with the same
// library. FAILED_PRECONDITION when this process has another cache open, or none can be.
TT_API TT_MUST_USE tt_status_t tt_aot_store(const tt_aot_t* aot, const tt_aot_program_t* program, const char* text,
                                            size_t len, const char* flags, int device, const char* cache_dir);

// ---------------------------------------------------------------- the same program on devices that are here
// A client of its own with several devices in this process, to run what was written for a slice: every replica of a
// program, with its own arguments, and what each of them gives.
typedef struct tt_replicas_t tt_replicas_t;  // owned
// A dense row-major array in host memory.
typedef struct tt_host_array_t {
  tt_dtype_t dtype;
  int rank;
  const int64_t* dims;
  void* data;
} tt_host_array_t;
TT_API TT_MUST_USE tt_status_t tt_replicas_open(const char* library, int replicas, tt_replicas_t** out);
TT_API void tt_replicas_close(tt_replicas_t* r);  // accepts NULL
// Compiles |text| for all replicas and runs it once. args[replica * n_args + i]; results likewise, filled in.
TT_API TT_MUST_USE tt_status_t tt_replicas_run(tt_replicas_t* r, const char* text, size_t len, int n_args,
                                               const tt_host_array_t* args, int n_results, tt_host_array_t* results);

#ifdef __cplusplus
}
#endif
#endif  // TT_AOT_H_
