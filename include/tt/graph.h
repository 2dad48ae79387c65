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
// Declares process group |name| of the program: |n| groups of |size| replica ids, |ids| group by group. Collectives name
// their group in their arguments; every member's program must be the same.
TT_API TT_MUST_USE tt_status_t tt_graph_group(tt_graph_t* graph, const char* name, int64_t n, int64_t size, const int64_t* ids);
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
// Result |i| becomes the value of the storage of the argument named in |donate|, when that tensor is all of its storage;
// the result is then undefined (no storage). Otherwise it is a fresh result, for the caller to copy.
TT_API TT_MUST_USE tt_status_t tt_graph_write_back(tt_graph_t* graph, int i);
// Products of f32 in what is called from here on: as tt_precision_set. Without it, the process's.
TT_API void tt_graph_precision(tt_graph_t* graph, int precision);
// Compiles through the executable cache (memory, disk, plugin). |overrides|: "xla_flag=value;…" for this program, or NULL.
TT_API TT_MUST_USE tt_status_t tt_graph_compile(tt_graph_t* graph, const char* overrides, tt_program_t** out_program);
// The serialized executable of a program's text (tt_graph_text) in the cache on disk, and one put there, which compiling
// the text then finds. |overrides| as above. Not there, or no cache: *out_data is NULL. Free with tt_text_free.
TT_API TT_MUST_USE tt_status_t tt_executable_export(int device, const char* text, size_t len, const char* overrides,
                                                    char** out_data, size_t* out_len);
TT_API TT_MUST_USE tt_status_t tt_executable_import(int device, const char* text, size_t len, const char* overrides,
                                                    const void* data, size_t data_len);

// ---------------------------------------------------------------- control flow
// What is called between begin and end belongs to the region, which may use values from outside. Regions nest. Checks on
// values inside are reported as those outside are; random numbers only in branches (a loop would draw the same again).
typedef enum tt_region_kind_t { TT_REGION_BRANCH, TT_REGION_CONDITION, TT_REGION_BODY } tt_region_kind_t;
TT_API TT_MUST_USE tt_status_t tt_graph_region_begin(tt_graph_t* graph, tt_region_kind_t kind, int* out_region);
// A value carried by the loop; of condition and body, in the order of the while's init.
TT_API TT_MUST_USE tt_status_t tt_graph_region_arg(tt_graph_t* graph, int region, tt_dtype_t dtype, int rank, const int64_t* dims, int* out_id);
TT_API TT_MUST_USE tt_status_t tt_graph_region_end(tt_graph_t* graph, int region, int n, const int* ids);
// |pred|: one bool. Both branches give |n| results of equal types.
TT_API TT_MUST_USE tt_status_t tt_graph_if(tt_graph_t* graph, int pred, int then_region, int else_region, int n, int* out_ids);
TT_API TT_MUST_USE tt_status_t tt_graph_while(tt_graph_t* graph, int n, const int* init, int condition, int body, int* out_ids);
// x[index] along dim 0, and x with x[index] replaced. |index|: one integer, in range (clamped otherwise).
TT_API TT_MUST_USE tt_status_t tt_graph_row(tt_graph_t* graph, int x, int index, int* out_id);
TT_API TT_MUST_USE tt_status_t tt_graph_set_row(tt_graph_t* graph, int x, int index, int row, int* out_id);

TT_API void tt_program_retain(tt_program_t* program);
TT_API void tt_program_release(tt_program_t* program);
// Runs on tensors (any views; made dense when they are not) and gives fresh storages in |results|. A donated argument's
// storage loses its value unless the tensor's storage is shared with a live result. |rng| is the generator for random
// ops, NULL the default one.
TT_API TT_MUST_USE tt_status_t tt_program_run(tt_program_t* program, int n_args, const tt_tensor_t* args, tt_rng_t* rng, tt_results_t* results);
TT_API int tt_program_outputs(const tt_program_t* program);

// ---------------------------------------------------------------- bounded sizes
// A program may be written for the largest sizes its tensors can have. Its parameters and results then have room for
// more than is in them: the value is the corner at 0 of the buffer, what lies beyond is anything, and the calls that
// would mix it in must be masked by whoever builds the graph. Numbers that depend on the true sizes come as an operand.
TT_API TT_MUST_USE tt_status_t tt_graph_sizes(tt_graph_t* graph, int n, int* out_id);  // i64[n]; once a graph
// x[start, start + size) along |dim|, and x with |update| written from |start| on. |start|: one integer, clamped so that
// the window is inside.
TT_API TT_MUST_USE tt_status_t tt_graph_slice(tt_graph_t* graph, int x, int dim, int start, int64_t size, int* out_id);
TT_API TT_MUST_USE tt_status_t tt_graph_update(tt_graph_t* graph, int x, int update, int dim, int start, int* out_id);
// A dim of bounded size may be made of factors, outermost first: each has room for |bound| and |size| of them are there
// (a value id of one integer; -1: all of them). Mask: i1[product of bounds], true where an index is in every factor.
typedef struct tt_factor_t {
  int size;
  int64_t bound;
} tt_factor_t;
TT_API TT_MUST_USE tt_status_t tt_graph_mask(tt_graph_t* graph, int n, const tt_factor_t* factors, int* out_id);
// Dim |dim| of x, made of factors |from|, taken apart anew as |to|: as many elements are there before and after, and
// they keep their order.
TT_API TT_MUST_USE tt_status_t tt_graph_regroup(tt_graph_t* graph, int x, int dim, int n_from, const tt_factor_t* from,
                                                int n_to, const tt_factor_t* to, int* out_id);
// When |bad| (one bool) is true at a run, |code| is raised with |message|, in which "%lld" becomes |value| (one integer).
TT_API TT_MUST_USE tt_status_t tt_graph_check(tt_graph_t* graph, int bad, int value, tt_code_t code, const char* message);
typedef struct tt_true_sizes_t {
  int n_numbers;
  const int64_t* numbers;  // value of tt_graph_sizes
  const int64_t* results;  // sizes of all results, one after another
} tt_true_sizes_t;
// As tt_program_run, with arguments whose sizes may be below those of the parameters. Results have their true sizes.
TT_API TT_MUST_USE tt_status_t tt_program_run_bounded(tt_program_t* program, int n_args, const tt_tensor_t* args,
                                                      const tt_true_sizes_t* sizes, tt_rng_t* rng, tt_results_t* results);

// A graph over a lowering in progress (tt_frontend_t.trace): arguments of the op are values already.
TT_API tt_graph_t* tt_lower_graph(tt_lower_t* lower);                     // borrowed
// Value id of tensor argument |arg| (element |elem| of a list); -1 when None.
TT_API int tt_lower_arg(tt_lower_t* lower, int arg, int elem);
TT_API TT_MUST_USE tt_status_t tt_lower_result(tt_lower_t* lower, int i, int id);  // i-th return

#ifdef __cplusplus
}
#endif
#endif  // TT_GRAPH_H_
