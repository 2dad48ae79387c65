// The signature cache: what one operation on these shapes is, compiled, with its results' metadata.
//
// Depends on: runtime, ops/lower, ops/view.
// Threads: under rt_lock unless said otherwise.
#ifndef TT_RUNTIME_ENTRY_H_
#define TT_RUNTIME_ENTRY_H_
#include "base/map.h"
#include "ops/view.h"
#include "runtime/runtime.h"
#include "tt/graph.h"

typedef enum rt_arg_class_t {
  RT_ARG_STATIC,   // its value is part of the signature
  RT_ARG_RUNTIME,  // only its kind
  RT_ARG_UNIT,     // its kind, and whether it is exactly 1
} rt_arg_class_t;

struct tt_op_t {
  tt_op_desc_t desc;            // strings owned
  const tt_op_row_t* row;       // NULL: traced or declined
  uint8_t classes[TT_MAX_ARGS];
  bool internal;                // the core's own: results' types follow from the lowering, no front end is asked
};

typedef struct rt_fresh_t {
  tt_meta_t meta;
  const rt_layout_t* layout;    // of the buffer; NULL: no elements, no buffer
  size_t nbytes;
  int32_t output;               // program output, -1 none
  int32_t count_output;         // output with the true size of dim meta.sized_dim, -1
} rt_fresh_t;

typedef struct rt_slot_write_t {
  int32_t slot, output;
  const rt_layout_t* layout;
  int32_t donated;              // parameter whose buffer it takes over, -1
} rt_slot_write_t;

typedef struct rt_message_t {
  tt_code_t code;
  char* text;
} rt_message_t;

// A call as its signature describes it, kept so that it can be lowered again inside a larger program: arguments without
// storages or run-time values. One block of memory.
typedef struct rt_recipe_t rt_recipe_t;

enum { RT_LIGHT = 1, RT_HEAVY };

typedef struct rt_entry_t {
  int32_t refs;
  bool declined;                // nothing can be built for this op: fall back
  void* key;
  uint64_t last_used;
  const char* op_name;          // lives with the op
  char* where;                  // the user's line that issued it first; NULL not known
  tt_exe_t* exe;                // NULL: nothing to run
  int n_operands, n_fresh, n_writes, n_outputs, n_messages;
  tt_operand_t* operands;
  rt_fresh_t* fresh;
  rt_slot_write_t* writes;
  rt_message_t* messages;
  int check_output;             // -1: no checks
  uint64_t rng_drawn;
  rt_recipe_t* recipe;          // NULL: cannot be part of a larger program
  void* script;                 // of an operation with no row: its decomposition as traced
  size_t script_len;
  int n_slots;                  // storages taking part
  uint64_t last_recorded;       // number of its last recording, counted from 1
  uint8_t weight;               // 0 not known, RT_LIGHT or RT_HEAVY: the work of running it (hlo_is_light)
} rt_entry_t;

// ---------------------------------------------------------------- packing (signature.c)
typedef struct rt_tref_t {      // a tensor argument, in order of appearance
  const tt_tensor_t* t;
  int32_t slot;                 // storage slot; -1 host
  int32_t first_digit;          // into digits
  uint8_t present_as;           // host: dtype it is given to the program as
  bool standard;                // the storage's value is exactly this tensor
  bool written;                 // the operation writes through it
} rt_tref_t;

typedef struct rt_slot_t {      // a storage taking part, as it was when packed
  tt_storage_t* storage;
  const rt_layout_t* layout;    // of its value; NULL undefined
  size_t nbytes;
} rt_slot_t;

typedef struct rt_call_t {      // scratch of one dispatch; thread-local, reused
  const tt_op_t* op;
  int device;
  const tt_value_t* args;
  tt_strbuf_t key;
  rt_tref_t* trefs;
  int n_trefs, cap_trefs;
  rt_slot_t* slots;
  int n_slots, cap_slots;
  int64_t* digits;
  int n_digits, cap_digits;
  uint64_t stamp;
  const tt_meta_t* sized;       // metadata that belongs to the signature (META_EVERY_CALL), or NULL
  int n_sized;
} rt_call_t;

// Fills |call| from its op and args. |portable|: layouts by content instead of id (the disk key).
TT_MUST_USE tt_status_t rt_call_pack(rt_call_t* call, bool portable);
tt_rng_t* rt_call_generator(const rt_call_t* call);                            // the call's, or the device's default
void rt_operand_scalar_bits(const rt_call_t* call, const tt_operand_t* operand, unsigned char out[16]);
tt_result_t* rt_results_add(tt_results_t* results);                            // NULL: memory is out
// Elements of |dtype| that the slot's storage holds as the program sees it.
int64_t rt_slot_elements(const rt_slot_t* slot, tt_dtype_t dtype);

// ---------------------------------------------------------------- building (build.c)
typedef struct rt_metas_t {
  tt_meta_t* items;
  int n, cap;
} rt_metas_t;
// Builds the entry of the packed call, without the lock. |call_ctx| goes to the front end. When an out argument has the
// wrong shape *out_entry stays NULL and |metas| says the shapes.
TT_MUST_USE tt_status_t rt_entry_build(rt_call_t* call, void* call_ctx, rt_metas_t* metas, rt_entry_t** out_entry);
void rt_entry_release(rt_entry_t* entry);  // accepts NULL; under the lock
rt_recipe_t* rt_recipe_create(const rt_call_t* call);  // copies the packed call; NULL when memory is out
// Lowers the recipe as operation |node| of the program |e| is about. |slots|: by slot, the storage's value in its
// layout, or NULL when undefined. |out_outputs|: the entry's outputs, in its order. The operands that are not storages
// carry |node|: SCALAR and RNG in |index|, DIGIT and HOST in |arg|.
TT_MUST_USE tt_status_t rt_recipe_emit(const rt_entry_t* entry, tt_emit_t* e, int node, const hlo_t* slots, hlo_t* out_outputs);

// ---------------------------------------------------------------- traced decompositions (script.c)
void rt_script_arg(tt_strbuf_t* script, int arg, int elem);
void rt_script_constant(tt_strbuf_t* script, tt_dtype_t dtype, int rank, const int64_t* dims, const void* data);
void rt_script_call(tt_strbuf_t* script, const char* name, int n_args, const tt_value_t* args, int n_types, const tt_type_desc_t* types);
void rt_script_result(tt_strbuf_t* script, int i, int id);
// Lowers by the script instead of asking the front end; results as after tt_lower_run.
TT_MUST_USE tt_status_t rt_script_run(const void* script, size_t len, tt_lower_t* lower);
// From here on the trace into |graph| is written to |script| too (graph.c).
void rt_graph_script(tt_graph_t* graph, tt_strbuf_t* script);

// Serialised entry for the disk cache, without key and executable.
bool rt_entry_write(const rt_entry_t* entry, tt_strbuf_t* out);
rt_entry_t* rt_entry_read(const void* data, size_t len);  // NULL: not valid

// ---------------------------------------------------------------- copies (copy.c)
// A tensor equal to |t|, dense row-major in its own storage (one reference, the caller's), on the same device.
TT_MUST_USE tt_status_t rt_make_dense(const tt_tensor_t* t, tt_storage_t** out_storage);
// Retained cell holding exactly |t| row-major; computed when its storage holds it otherwise. Takes no lock held.
TT_MUST_USE tt_status_t rt_dense_cell(const tt_tensor_t* t, rt_cell_t** out_cell);
// The same; with |padded| its buffer may be larger than the value (rt_layout_t).
TT_MUST_USE tt_status_t rt_value_cell(const tt_tensor_t* t, bool padded, rt_cell_t** out_cell);
// A cell of host data, dense row-major. No lock held.
TT_MUST_USE tt_status_t rt_upload(int device, tt_dtype_t dtype, int rank, const int64_t* sizes, const void* data, rt_cell_t** out_cell);

// ---------------------------------------------------------------- padded buffers (padded.c)
// The value in a buffer of |layout|: |v| itself, or its corner.
hlo_t rt_without_padding(hlo_builder_t* b, hlo_t v, const rt_layout_t* layout);
// The cell's value, dense row-major, in |out|. Blocks.
TT_MUST_USE tt_status_t rt_cell_to_host(const rt_cell_t* cell, void* out);
// Retained cell that holds |t| row-major at the corner of a buffer of |physical| dims. One program for each pair of
// buffers' dims, whatever the sizes of |t|, save that an unpadded one above a MiB has a program of its own; a smaller
// one is padded on the host. No lock held.
TT_MUST_USE tt_status_t rt_padded_cell(const tt_tensor_t* t, const int64_t* physical, rt_cell_t** out_cell);

// ---------------------------------------------------------------- compiling (compile.c)
// Compiles |text| for |device| through the memory cache of programs. |fast|: prefer a quick compile to quick code (small
// programs, whose time is the call's). |overrides|: "xla_flag=value;…", or NULL. No lock held.
TT_MUST_USE tt_status_t rt_compile(int device, const char* text, size_t len, bool fast, const char* overrides, const char* what,
                                    tt_exe_t** out_exe);
// Programs that are compiled from now on are written to |folder| too, as HASH.mlir below a line "// op"; NULL or "": not.
void rt_dump_open(const char* folder);

// The same through the disk cache too.
TT_MUST_USE tt_status_t rt_compile_cached(int device, const tt_strbuf_t* text, const char* overrides, const char* what,
                                           tt_exe_t** out_exe);
// Loads a serialised executable. No lock held.
TT_MUST_USE tt_status_t rt_load(int device, const void* bytes, size_t len, const char* overrides, tt_exe_t** out_exe);

// Where more programs are alive than are to be kept, compiling and loading let the older halves of the caches go first.
void rt_entries_halve(void);  // those used longest ago (dispatch.c)
// Sweeps |map| with the median of its values' stamps, a uint64_t, as context of |leaves|.
void rt_map_halve(tt_map_t* map, uint64_t (*stamp)(const void* value), tt_map_leaves_fn leaves);

#endif  // TT_RUNTIME_ENTRY_H_
