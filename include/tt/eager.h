// What a front end (the PyTorch shim) needs: storages, tensors as views of them, and dispatch of one ATen operation.
//
// Depends on: tt/types.h.
// Threads: thread-safe, except where a comment says otherwise. No function needs Python's GIL; callbacks may take it.
//
// The model. A storage owns a value: a device buffer, kept in some dense layout, or nothing yet ("undefined", read as
// zeros). A tensor is (sizes, strides, offset, dtype) over a storage; making a view costs no device work. tt_dispatch
// packs op and arguments into a signature; an entry of the signature cache holds the results' metadata together with
// the executable. On a miss the front end's callbacks infer metadata, and, where the op table has no row, trace
// PyTorch's decomposition into the same graph.
#ifndef TT_EAGER_H_
#define TT_EAGER_H_
#include "tt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------- runtime
// Process-wide runtime: one plugin, one client. Opened by the first call that needs a device.
typedef struct tt_runtime_options_t {
  const char* plugin_path;     // resolved library path
  int cpu_device_count;        // 0: the plugin's default
  const char* client_options;  // "name=value;…" or NULL
  const char* cache_dir;       // executable cache on disk; NULL or "": memory only
  int64_t cache_limit_bytes;   // 0: default (4 GiB)
} tt_runtime_options_t;
// Opens the runtime; a second call is OK and does nothing. In a forked child of an opened runtime: FAILED_PRECONDITION.
TT_API TT_MUST_USE tt_status_t tt_runtime_open(const tt_runtime_options_t* options);
TT_API bool tt_runtime_is_open(void);
TT_API bool tt_runtime_in_bad_fork(void);
TT_API int tt_device_count(void);                                  // 0 when not open
TT_API const char* tt_device_kind(int device);                     // borrowed; "" when not open
TT_API const char* tt_runtime_info(const char* what);              // "platform", "platform_version", "plugin_path", "api_version", "stablehlo_version"; borrowed, "" unknown
TT_API TT_MUST_USE tt_status_t tt_device_synchronize(int device);  // waits; raises what failed since (checks included)
TT_API void tt_runtime_shutdown(void);                             // waits for work in flight; called at exit
TT_API TT_MUST_USE tt_status_t tt_device_mem_info(int device, int64_t* out_free, int64_t* out_total);

// Numbers for statistics and tests; "executions", "compiles", "lowerings", "metas", "traces", "disk_hits", "disk_writes", "allocs", "h2d", "d2h", "h2d_bytes", "d2h_bytes", "syncs", "signature_misses".
TT_API int64_t tt_counter(const char* name);  // -1: no such counter
TT_API const char* tt_counter_name(int i);    // NULL past the end

typedef enum tt_mode_t { TT_MODE_STRICT, TT_MODE_DEBUG, TT_MODE_DEFER } tt_mode_t;
TT_API void tt_mode_set(tt_mode_t mode);  // of the calling thread
TT_API tt_mode_t tt_mode_get(void);
TT_API void tt_mode_set_default(tt_mode_t mode);  // of threads that never set one
// Runs what is recorded, without waiting for the device. |why| is named in the report of cuts.
TT_API TT_MUST_USE tt_status_t tt_defer_run(const char* why);
// How regions are split into programs: those that make fewer than |whole| bytes are not; the others into about |parts|, where that
// needs less memory (0: always); values of fewer than |smallest| bytes are never computed again. For regions compiled from now on.
TT_API void tt_defer_plan(int64_t whole, int parts, int64_t smallest);
TT_API void tt_defer_wait(void);  // until no fused program is being compiled; what is recorded stays recorded
// Where recorded regions ended and why, and what became of them, as JSON; free with tt_text_free. NULL: memory is out.
TT_API char* tt_defer_report(void);
// Matmul/convolution precision of f32: 0 default (fastest), 1 high, 2 highest (f32 products). Process-wide.
TT_API void tt_precision_set(int precision);
// The dtype that a number with a fraction takes beside integers (torch.set_default_dtype). Process-wide; f32 at first.
TT_API void tt_default_dtype_set(tt_dtype_t dtype);

// ---------------------------------------------------------------- storages
typedef struct tt_storage_t tt_storage_t;  // counted

TT_API TT_MUST_USE tt_status_t tt_storage_create(int device, size_t nbytes, tt_storage_t** out_storage);  // undefined value
TT_API void tt_storage_retain(tt_storage_t* storage);
TT_API void tt_storage_release(tt_storage_t* storage);      // accepts NULL
TT_API void* tt_storage_address(const tt_storage_t* storage);  // unique while it lives, never dereferenceable
TT_API size_t tt_storage_nbytes(const tt_storage_t* storage);
// The live storage that |address| points into; borrowed, NULL when there is none. Slow: for addresses that came back.
TT_API tt_storage_t* tt_storage_find(const void* address);
TT_API int tt_storage_device(const tt_storage_t* storage);
// Changes the size; keeps the common prefix of the bytes (device work when there is a value).
TT_API TT_MUST_USE tt_status_t tt_storage_resize(tt_storage_t* storage, size_t nbytes);
// Raw bytes [offset, offset+n) from / to the host; blocking. For serialisation and the like.
TT_API TT_MUST_USE tt_status_t tt_storage_read(tt_storage_t* storage, size_t offset, void* out, size_t n);
TT_API TT_MUST_USE tt_status_t tt_storage_write(tt_storage_t* storage, size_t offset, const void* data, size_t n);
// A short text kept for out-of-memory reports ("train.py:31 linear"); copied. May be NULL.
TT_API void tt_storage_set_label(tt_storage_t* storage, const char* label);

typedef struct tt_memory_stats_t {  // bytes unless said; per device; our own account (storages that hold a value)
  int64_t allocated, peak_allocated, total_allocated, total_freed;
  int64_t live_storages, allocations, frees, oom_count;
} tt_memory_stats_t;
// Recorded values have no bytes until they are run: a front end that is asked for figures calls tt_defer_run first.
TT_API void tt_memory_stats(int device, tt_memory_stats_t* out);
TT_API void tt_memory_reset_peak(int device);
TT_API void tt_memory_reset_accumulated(int device);
TT_API int tt_memory_largest(int device, char* out_text, size_t out_size);  // the report of the largest live storages; bytes written

// ---------------------------------------------------------------- tensors and values
typedef enum tt_tensor_flags_t {
  TT_T_HOST = 1,        // lives on the CPU: |host_data| is valid, |storage| is NULL
  TT_T_UNDEFINED = 2,   // no tensor (hole in a list)
  TT_T_WRAPPED = 4,     // a wrapped Python number (0-d, host)
  TT_T_CONJ = 8,        // lazy conjugate bit
  TT_T_NEG = 16,        // lazy negative bit
} tt_tensor_flags_t;

typedef struct tt_tensor_t {
  tt_storage_t* storage;   // borrowed; NULL for host tensors and for empty storages without memory
  const void* host_data;
  int64_t offset;          // in elements of |dtype|
  const int64_t* sizes;    // borrowed during the call
  const int64_t* strides;  // in elements
  int32_t rank;
  uint8_t dtype;           // tt_dtype_t
  uint8_t flags;
  int16_t device;
} tt_tensor_t;

typedef enum tt_value_kind_t {
  TT_V_NONE, TT_V_TENSOR, TT_V_TENSORS, TT_V_INT, TT_V_FLOAT, TT_V_BOOL, TT_V_COMPLEX, TT_V_INTS, TT_V_FLOATS, TT_V_BOOLS,
  TT_V_SCALARS, TT_V_STRING, TT_V_DTYPE, TT_V_GENERATOR, TT_V_NODE, TT_V_NODES,
} tt_value_kind_t;

typedef struct tt_value_t {  // 24 bytes; everything pointed to is borrowed during the call
  uint8_t kind;       // tt_value_kind_t
  uint8_t reserved[3];
  int32_t n;          // list length, string length
  union {
    int64_t i;                       // INT, BOOL, DTYPE (tt_dtype_t), NODE (graph value id)
    double f;                        // FLOAT, real part of COMPLEX
    const tt_tensor_t* tensor;       // TENSOR; TENSORS: n of them
    const int64_t* ints;             // INTS; NODES: ids, -1 a hole
    const double* floats;            // FLOATS
    const uint8_t* bools;            // BOOLS
    const struct tt_value_t* items;  // SCALARS: n of INT/FLOAT/BOOL/COMPLEX
    const char* string;              // STRING, NUL-terminated
    void* generator;                 // GENERATOR: tt_rng_t*; NULL the device's default
  } u;
  double im;          // imaginary part of COMPLEX
} tt_value_t;

// ---------------------------------------------------------------- operations
#define TT_MAX_ARGS 64

typedef enum tt_variant_t { TT_FUNCTIONAL, TT_INPLACE, TT_OUT } tt_variant_t;

// How the front end describes an overload, once.
typedef struct tt_op_desc_t {
  const char* name;        // full name for messages and fallbacks: "aten::add_.Tensor"
  const char* row;         // functional overload looked up in the op table: "add.Tensor"
  uint8_t variant;         // tt_variant_t
  uint8_t n_args;          // of this overload's schema
  uint8_t n_returns;       // of this overload's schema
  uint8_t n_outs;          // OUT: the last n_outs arguments are the outs
  // Of each argument: 1 when the schema writes into it (for OUT also the outs).
  uint8_t mutates[TT_MAX_ARGS];
  // Of each argument: 1 Scalar/float/float?/Scalar[]/float[] (a run-time operand unless the row fixes it), 0 otherwise.
  uint8_t is_scalar[TT_MAX_ARGS];
} tt_op_desc_t;

typedef struct tt_op_t tt_op_t;  // lives as long as the process
TT_API TT_MUST_USE tt_status_t tt_op_create(const tt_op_desc_t* desc, tt_op_t** out_op);
TT_API bool tt_op_has_row(const tt_op_t* op);
TT_API const char* tt_op_name(const tt_op_t* op);
TT_API int tt_table_count(void);                 // the op table, for the front end's registration
TT_API const char* tt_table_name(int i);         // "add.Tensor"
TT_API bool tt_table_has(const char* name);
TT_API uint32_t tt_table_flags(const char* name);  // tt_op_flags_t; 0 without a row

// Metadata of one result.
typedef struct tt_meta_t {
  int64_t sizes[TT_MAX_RANK];
  int64_t strides[TT_MAX_RANK];
  int32_t rank;
  tt_dtype_t dtype;
  bool defined;        // false: an undefined tensor is returned
  int8_t sized_dim;    // data-dependent results: the dim whose true size comes with the result
} tt_meta_t;

typedef struct tt_lower_t tt_lower_t;

// Callbacks of the front end; |call| is what tt_dispatch was given. Set once.
typedef struct tt_frontend_t {
  // Runs the op on meta tensors. Appends the metadata of every *fresh* return, lists flattened, with
  // tt_metas_push(sink, …); for OUT, of every out argument. Raises (returns a status or throws through its own
  // means by returning a status with code CANCELLED after storing the exception) what PyTorch raises. |sink| is NULL
  // for rows whose results' types come from the lowering: then it only raises.
  tt_status_t (*infer)(void* call, const tt_op_t* op, void* sink);
  // Traces the op's decomposition into |lower| through the tt_graph_* functions of tt/graph.h and sets its results.
  // DECLINED when there is none.
  tt_status_t (*trace)(void* call, const tt_op_t* op, tt_lower_t* lower);
  // Writes "file.py:12 in f" of the innermost user frame into |out|; cheap; may write "".
  void (*where)(char* out, size_t size);
  // Names the front end and everything of its that decides a trace ("torch 2.13.0"): part of the cache key. May be NULL.
  const char* version;
} tt_frontend_t;
TT_API void tt_frontend_set(const tt_frontend_t* frontend);
TT_API bool tt_metas_push(void* sink, const tt_meta_t* meta);  // false when memory is out

typedef struct tt_result_t {
  tt_storage_t* storage;   // one reference, the caller's; NULL for an undefined result
  const tt_meta_t* meta;   // borrowed until the thread's next dispatch
  int64_t true_size;       // >= 0: of dim meta->sized_dim (data-dependent results; compact, dims ordered as in |meta|); else -1
} tt_result_t;

typedef struct tt_results_t {  // grown by the core, reused by the caller; init to zero; tt_results_free at the end
  tt_result_t* items;
  int n, cap;
  bool must_resize;        // OUT: an out argument has the wrong shape; resize_to[k] are the wanted shapes, nothing ran
  const tt_meta_t* resize_to;
  int n_resize;
} tt_results_t;
TT_API void tt_results_free(tt_results_t* results);

// Runs |op| on |device|. In-place and out arguments are written through their views. DECLINED: no row and no trace:
// the front end falls back. Fresh results come in |results| in schema order, list returns flattened.
TT_API TT_MUST_USE tt_status_t tt_dispatch(const tt_op_t* op, int device, const tt_value_t* args, void* call, tt_results_t* results);

// ---------------------------------------------------------------- copies
// dst (device) <- host data, dense row-major of |dtype| with dst's sizes; converts and writes through the view.
TT_API TT_MUST_USE tt_status_t tt_copy_from_host(const tt_tensor_t* dst, const void* data, tt_dtype_t dtype);
// host data (dense row-major, dtype of src) <- src; blocking.
TT_API TT_MUST_USE tt_status_t tt_copy_to_host(const tt_tensor_t* src, void* out_data);
// The same without waiting; *out_event becomes ready when |out_data| is filled.
typedef struct tt_event_t tt_event_t;
TT_API TT_MUST_USE tt_status_t tt_copy_to_host_async(const tt_tensor_t* src, void* out_data, tt_event_t** out_event);
// dst <- src, both on devices (same or different ones): broadcast, conversion, views on both sides.
TT_API TT_MUST_USE tt_status_t tt_copy_device(const tt_tensor_t* dst, const tt_tensor_t* src);

// ---------------------------------------------------------------- streams and events
// Streams of a device are numbered; 0 is the default. Work is issued in program order on all of them.
TT_API TT_MUST_USE tt_status_t tt_event_record(int device, int stream, bool timing, tt_event_t** out_event);  // everything issued so far
TT_API bool tt_event_query(tt_event_t* event);
TT_API TT_MUST_USE tt_status_t tt_event_wait(tt_event_t* event);   // blocks the host
TT_API TT_MUST_USE tt_status_t tt_event_elapsed_ms(tt_event_t* start, tt_event_t* end, double* out_ms);
TT_API void tt_event_release(tt_event_t* event);

// ---------------------------------------------------------------- random numbers
typedef struct tt_rng_t tt_rng_t;  // a generator's state: (seed, offset). Counted by its owner; not thread-safe (PyTorch locks).
TT_API TT_MUST_USE tt_status_t tt_rng_create(tt_rng_t** out_rng);
TT_API void tt_rng_destroy(tt_rng_t* rng);
TT_API void tt_rng_set(tt_rng_t* rng, uint64_t seed, uint64_t offset);
TT_API void tt_rng_get(const tt_rng_t* rng, uint64_t* out_seed, uint64_t* out_offset);
TT_API tt_rng_t* tt_rng_default(int device);  // lives as long as the process; NULL for a bad device

#ifdef __cplusplus
}
#endif
#endif  // TT_EAGER_H_
