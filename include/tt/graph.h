// Whole programs through the op table: what torch.compile, traced decompositions and plain C programs use.
//
// Depends on: tt/types.h, tt/eager.h (values).
// Threads: thread-compatible: one graph, one thread. Executables are thread-safe.
// A graph's values are numbered. tt_graph_call applies one row of the op table to values and constants, arguments in
// schema order with defaults filled in (TT_V_NODE / TT_V_NODES for tensors). Errors are statuses at the call that made
// the mistake.
#ifndef TT_GRAPH_H_
#define TT_GRAPH_H_
#include "tt/eager.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_graph_t tt_graph_t;
typedef struct tt_program_t tt_program_t;  // compiled; counted

typedef struct tt_type_desc_t {
  tt_dtype_t dtype;
  int32_t rank;
  const int64_t* dims;
} tt_type_desc_t;

TT_API TT_MUST_USE tt_status_t tt_graph_create(int device, tt_graph_t** out_graph);
// A graph that is only printed (tt_graph_text), lowered for the compiler of |platform| ("tpu", "cpu", "cuda"), whatever
// plugin this process runs on; no runtime needs to be open.
TT_API TT_MUST_USE tt_status_t tt_graph_create_for(const char* platform, tt_graph_t** out_graph);
TT_API void tt_graph_destroy(tt_graph_t* graph);  // accepts NULL
// An argument of the program: dense, row-major.
TT_API TT_MUST_USE tt_status_t tt_graph_param(tt_graph_t* graph, tt_dtype_t dtype, int rank, const int64_t* dims, int* out_id);
// A constant from dense host data (small: its text goes into the program).
TT_API TT_MUST_USE tt_status_t tt_graph_constant(tt_graph_t* graph, tt_dtype_t dtype, int rank, const int64_t* dims, const void* data, int* out_id);
// Applies row |name|. |types| (n_types of them, or NULL/0) are the expected results, as PyTorch's meta kernels give
// them; without them the lowering decides. Result ids (|*inout_n| holds the capacity of out_ids, then the count):
// returns in order, then mutated arguments in order.
TT_API TT_MUST_USE tt_status_t tt_graph_call(tt_graph_t* graph, const char* name, int n_args, const tt_value_t* args, int n_types,
                                             const tt_type_desc_t* types, int* out_ids, int* inout_n);
// What the compiler's reports say of calls from now on: |name| made them, in |file| (or NULL), line |line|. NULL |name|:
// nothing, as at first. It becomes part of the program's text.
TT_API void tt_graph_where(tt_graph_t* graph, const char* name, const char* file, int line);
TT_API TT_MUST_USE tt_status_t tt_graph_type(tt_graph_t* graph, int id, tt_dtype_t* out_dtype, int* out_rank, int64_t out_dims[TT_MAX_RANK]);
// Results of the program. |donate[i]| is the parameter number whose buffer result i may reuse, or -1; NULL: none.
TT_API TT_MUST_USE tt_status_t tt_graph_outputs(tt_graph_t* graph, int n, const int* ids, const int* donate);
// Strides result |i| shall have in memory (dense, any order of dims); row-major when never called.
TT_API TT_MUST_USE tt_status_t tt_graph_output_strides(tt_graph_t* graph, int i, int rank, const int64_t* strides);
TT_API TT_MUST_USE tt_status_t tt_graph_text(tt_graph_t* graph, char** out_text, size_t* out_len);  // StableHLO; free with tt_text_free
TT_API void tt_text_free(char* text);
// Compiles through the executable cache (memory, disk, plugin).
TT_API TT_MUST_USE tt_status_t tt_graph_compile(tt_graph_t* graph, tt_program_t** out_program);

TT_API void tt_program_retain(tt_program_t* program);
TT_API void tt_program_release(tt_program_t* program);
// Runs on tensors (any views; made dense when they are not) and gives fresh storages in |results|. A donated argument's
// storage loses its value unless the tensor's storage is shared with a live result. |rng| is the generator for random
// ops, NULL the default one.
TT_API TT_MUST_USE tt_status_t tt_program_run(tt_program_t* program, int n_args, const tt_tensor_t* args, tt_rng_t* rng, tt_results_t* results);
TT_API int tt_program_outputs(const tt_program_t* program);

// A graph over a lowering in progress (tt_frontend_t.trace): arguments of the op are values already.
TT_API tt_graph_t* tt_lower_graph(tt_lower_t* lower);                     // borrowed
// Value id of tensor argument |arg| (element |elem| of a list); -1 when None.
TT_API int tt_lower_arg(tt_lower_t* lower, int arg, int elem);
TT_API TT_MUST_USE tt_status_t tt_lower_result(tt_lower_t* lower, int i, int id);  // i-th return

#ifdef __cplusplus
}
#endif
#endif  // TT_GRAPH_H_
