// The graph behind hlo/builder.h: op nodes, regions, and the helpers that the builder's own files share.
//
// Depends on: hlo/builder.h. Private to hlo.
// Threads: thread-compatible.
// Ops sit in their region's list in creation order, and an operand always precedes its user: that is what lets the
// printer find the live ops in one backward pass and number values in print order.
#ifndef TT_HLO_IR_H_
#define TT_HLO_IR_H_
#include "base/map.h"
#include "hlo/builder.h"

// Largest rank of a value. Above TT_MAX_RANK, because lowerings split dims (a reshape may double the rank).
#define HLO_MAX_RANK 64

// What folding needs to recognise; everything else is OTHER.
typedef enum hlo_kind_t { HLO_KIND_OTHER, HLO_KIND_CONSTANT, HLO_KIND_RESHAPE, HLO_KIND_BROADCAST, HLO_KIND_TRANSPOSE }
    hlo_kind_t;

typedef struct hlo_op_t hlo_op_t;
struct hlo_op_t {
  const char* name;       // "stablehlo.add"; a literal, or in the arena
  const char* attrs;      // text between the braces; NULL when there is none
  const char* where;      // text inside loc(...); NULL when there is none
  hlo_region_t* parent;
  hlo_op_t *prev, *next;  // in parent's list
  hlo_t* operands;
  hlo_region_t** regions;
  hlo_value_t* results;
  const int64_t* ints;    // BROADCAST: map; TRANSPOSE: permutation
  int n_operands, n_regions, n_results;
  hlo_kind_t kind;
  uint32_t mark;          // equals the builder's mark when live in the print under way
};

typedef struct hlo_arg_t hlo_arg_t;
struct hlo_arg_t {
  hlo_value_t value;  // first member: a value without an op is one of these
  hlo_region_t* region;
  hlo_arg_t* next;
};

typedef struct hlo_adopted_t hlo_adopted_t;  // an outer constant and its copy inside the region
struct hlo_adopted_t {
  hlo_t outer, inner;
  hlo_adopted_t* next;
};

struct hlo_region_t {
  hlo_region_t* parent;  // NULL: @main
  hlo_op_t *first, *last;
  hlo_op_t* last_adopted;  // copies of outer constants come first
  hlo_adopted_t* adopted;
  hlo_arg_t *first_arg, *last_arg;
  hlo_t* results;
  int n_args, n_results;
  bool ended;
};

// An attribute's text that is printed once, at the module's head: "#a0 = text".
typedef struct hlo_alias_t hlo_alias_t;
struct hlo_alias_t {
  const char *name, *text;  // arena
  hlo_alias_t* next;
};

struct hlo_builder_t {
  tt_arena_t arena;
  tt_status_t error;
  hlo_region_t root;
  hlo_region_t* current;
  hlo_arg_t poison;            // what a failed call yields: a scalar f32
  hlo_region_t poison_region;  // what hlo_region_begin yields after a failure
  tt_map_t constants;          // (region, dtype, bytes) -> hlo_value_t*
  hlo_precision_t precision;
  const char* where;           // of ops made from now on
  hlo_alias_t* aliases;        // newest first
  uint32_t mark;
};

typedef struct hlo_type_t {
  tt_dtype_t dtype;
  int rank;
  const int64_t* dims;
} hlo_type_t;

static inline hlo_t hlo_poison(hlo_builder_t* b) { return &b->poison.value; }
static inline hlo_type_t hlo_type_of(hlo_t v) { return (hlo_type_t){v->dtype, v->rank, v->dims}; }

// ---------------------------------------------------------------- making ops
// A new op at the end of the current region. Operands must be visible there. NULL after a failure.
// |attrs| and |name| are borrowed for the builder's life (literals or arena); the rest is copied.
hlo_op_t* hlo_op(hlo_builder_t* b, const char* name, int n_in, const hlo_t* in, const char* attrs, int n_regions,
                 hlo_region_t* const* regions, int n_out, const hlo_type_t* types);
// The same for one result and no region: its value, or the poison.
hlo_t hlo_op1(hlo_builder_t* b, const char* name, int n_in, const hlo_t* in, const char* attrs, tt_dtype_t dtype,
              int rank, const int64_t* dims);
hlo_t hlo_op1_region(hlo_builder_t* b, const char* name, int n_in, const hlo_t* in, const char* attrs,
                     hlo_region_t* region, tt_dtype_t dtype, int rank, const int64_t* dims);
void hlo_op_results(hlo_builder_t* b, const hlo_op_t* op, int n, hlo_t* out);  // poison when |op| is NULL
void hlo_poison_all(hlo_builder_t* b, int n, hlo_t* out);
void* hlo_alloc(hlo_builder_t* b, size_t size_bytes);  // from the arena; NULL (and failed) when memory is out
const int64_t* hlo_copy_ints(hlo_builder_t* b, int n, const int64_t* v);
bool hlo_usable(hlo_builder_t* b, const char* who, int n, const hlo_t* values);  // no failure so far, none is NULL

// The op's kind when |v| is the result of one; OTHER for arguments.
static inline hlo_kind_t hlo_kind(hlo_t v) { return v->op ? v->op->kind : HLO_KIND_OTHER; }
// |v| is a 0-d value spread over its dims: yields that 0-d value, else NULL.
hlo_t hlo_splat_source(hlo_t v);

// ---------------------------------------------------------------- attribute text (arena; "" when memory is out)
const char* hlo_text_or_fail(hlo_builder_t* b, const char* text);
#define hlo_text(b, ...) hlo_text_or_fail((b), tt_arena_printf(&(b)->arena, __VA_ARGS__))
const char* hlo_text_array(hlo_builder_t* b, int n, const int64_t* v);                      // array<i64: 1, 2>
const char* hlo_text_list(hlo_builder_t* b, int n, const int64_t* v);                       // [1, 2]
const char* hlo_text_pairs(hlo_builder_t* b, int n, const int64_t* lo, const int64_t* hi);  // dense<[[..]]> : tensor<..>
const char* hlo_text_shape(hlo_builder_t* b, hlo_t v);                                      // f32[2,3], for messages
const char* hlo_text_dims(hlo_builder_t* b, int rank, const int64_t* dims);                 // [2,3], for messages
const char* hlo_text_precision(hlo_builder_t* b);                                           // precision_config = [..]
void hlo_put_type(tt_strbuf_t* s, tt_dtype_t dtype, int rank, const int64_t* dims);         // tensor<2x3xf32>

// The name that stands for |text|, the same for equal texts; for what is long and used often.
const char* hlo_text_alias(hlo_builder_t* b, const char* text);

// ---------------------------------------------------------------- dims
// Records which of |dims| occur, wrapping negative ones. False (and failed) on a repeated or wild one.
bool hlo_dim_set(hlo_builder_t* b, const char* who, int n, const int64_t* dims, int rank, bool* set);
bool hlo_check_dims(hlo_builder_t* b, const char* who, int rank, const int64_t* dims);
bool hlo_dims_equal(int rank_a, const int64_t* a, int rank_b, const int64_t* c);
// NumPy's common shape. False (and failed) when there is none.
bool hlo_common_dims(hlo_builder_t* b, const char* who, int n, const hlo_t* xs, int* out_rank, int64_t* out_dims);
int64_t hlo_window_out(int64_t in, int64_t size, int64_t stride, int64_t base_dilation, int64_t window_dilation,
                       int64_t lo, int64_t hi);  // number of window positions

// ---------------------------------------------------------------- regions
// Checks that |region| has |n_args| arguments and |n_results| results of these types, and makes it independent of
// outer constants. |strict|: no other outer value may be used. False (and failed) otherwise.
bool hlo_region_seal(hlo_builder_t* b, const char* who, hlo_region_t* region, bool strict, int n_args,
                     const hlo_type_t* args, int n_results, const hlo_type_t* results);
hlo_t hlo_combine(hlo_builder_t* b, hlo_reducer_t reducer, hlo_t a, hlo_t x);  // a reducer x, elementwise
// (a, x) -> a reducer x, both 0-d.
hlo_region_t* hlo_reducer_region(hlo_builder_t* b, hlo_reducer_t reducer, tt_dtype_t dtype);
// Seals a region of 2n 0-d arguments (a0, a1, …, x0, x1, …) and n 0-d results, with the dtypes of |xs|.
bool hlo_seal_combiner(hlo_builder_t* b, const char* who, hlo_region_t* region, int n, const hlo_t* xs);

#endif  // TT_HLO_IR_H_
