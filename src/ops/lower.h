// The engine side of op.h: what a lowering in progress is made of.
//
// Depends on: ops/op.h, include/tt/eager.h (values).
// Threads: thread-compatible.
// An *emission* is one program being written: one op in eager mode, many in a graph. It collects what the program needs
// besides tensors (scalars, view offsets, generator state) as operands in parameter order, and what it reports besides
// results (checks). A *lowering* is one op inside an emission.
#ifndef TT_OPS_LOWER_H_
#define TT_OPS_LOWER_H_
#include "ops/op.h"
#include "tt/eager.h"

// Where a parameter's value comes from at run time.
typedef enum tt_operand_kind_t {
  TT_OPERAND_BASE,    // value of storage slot |index|
  TT_OPERAND_SCALAR,  // argument |arg|, element |elem|, of node |index|, as |dtype|
  TT_OPERAND_DIGIT,   // digit |elem| of the offset of tensor |index| (order of tensors in the signature), i64
  TT_OPERAND_HOST,    // host tensor |index| (order of tensors in the signature), as |dtype|
  TT_OPERAND_RNG,     // u64[2] {seed, offset}
  TT_OPERAND_PARAM,   // tensor argument |index| of a graph
  TT_OPERAND_SIZES,   // i64[n]: the numbers a graph with bounded sizes is given at each run
} tt_operand_kind_t;

typedef struct tt_operand_t {
  uint8_t kind;
  uint8_t dtype;
  int16_t arg;
  int32_t index;
  int32_t elem;
} tt_operand_t;

typedef struct tt_check_t {
  hlo_t bad;           // 0-d i1
  hlo_t value;         // 0-d i64
  tt_code_t code;
  const char* message;
} tt_check_t;

// A process group of the program, by name.
typedef struct tt_group_t tt_group_t;
struct tt_group_t {
  const char* name;  // arena
  hlo_groups_t groups;
  tt_group_t* next;
};

typedef struct tt_emit_t {
  hlo_builder_t* b;
  uint32_t caps;
  tt_operand_t* operands;  // arena; in parameter order
  hlo_t* params;           // the values, in the same order
  int n_operands, cap_operands;
  int rng_node;            // operation whose generator state is drawn from
  uint64_t rng_drawn;      // blocks drawn so far: how far the offset advances
  tt_check_t* checks;
  int n_checks, cap_checks;
  tt_group_t* groups;
} tt_emit_t;

void tt_emit_init(tt_emit_t* e, hlo_builder_t* b, uint32_t caps);
// A parameter for |operand|; the same operand gives the same value.
hlo_t tt_emit_operand(tt_emit_t* e, tt_operand_t operand, tt_dtype_t dtype, int rank, const int64_t* dims);
// Declares group |name|: |n| groups of |size| replica ids, |ids| group by group. All are copied. False: no memory.
bool tt_emit_group(tt_emit_t* e, const char* name, int64_t n, int64_t size, const int64_t* ids);
// All checks folded into one i64[2] {number of the first that failed + 1 or 0, its value}; NULL when there is none.
hlo_t tt_emit_check_value(tt_emit_t* e);

typedef struct tt_larg_t {
  tt_value_t v;       // as the caller passed it; pointers live as long as the lowering
  hlo_t* tensors;     // TENSOR/NODE: 1; TENSORS/NODES: n; NULL elements are holes
  int n;
  bool runtime;       // its value is an operand
  bool is_one;        // unit argument that is exactly 1
  int16_t src_arg;    // argument number in the outermost op (sub-lowerings borrow arguments)
  int32_t src_elem;
} tt_larg_t;

// How a result lies in memory, where it is not as the meta kernel says or row-major.
typedef struct tt_place_t {
  hlo_t count;        // DATA_DEPENDENT: true size along |sized_dim|, or NULL
  int8_t sized_dim;
  bool strided;       // with |strides|
  int64_t strides[TT_MAX_RANK];
} tt_place_t;

typedef struct tt_write_t {
  int arg, elem;
  hlo_t value;
} tt_write_t;

struct tt_lower_t {
  tt_emit_t* e;
  const tt_op_row_t* row;
  const char* name;   // for messages
  int node;           // number of the op in the emission (0 in eager mode)
  int n_args;
  tt_larg_t* args;
  int n_outs;         // expected results; 0 unknown
  const tt_type_t* outs;
  hlo_t* rets;        // results given so far; NULL holes
  tt_place_t* places; // of each
  int n_rets, cap_rets;
  tt_write_t* writes;
  int n_writes, cap_writes;
  void* graph;        // tt_graph_t* wrapped around this lowering during a trace
};

// Runs the row's lowering, then checks and converts results to the expected types.
TT_MUST_USE tt_status_t tt_lower_run(tt_lower_t* l);
// Converts results to the expected types and checks their dims (also after a trace).
TT_MUST_USE tt_status_t tt_lower_finish(tt_lower_t* l);
// Promotion of PyTorch between two dtypes of the same category tier.
tt_dtype_t tt_lattice_promote(tt_dtype_t a, tt_dtype_t b);

#endif  // TT_OPS_LOWER_H_
