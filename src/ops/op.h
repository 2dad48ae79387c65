// THE op table: one row per functional ATen overload, its lowering beside it.
//
// Depends on: hlo, base.
// Threads: the table is immutable; a lowering runs on one thread.
//
// A row serves `op`, `op_` and `op.out`: in-place and out= variants are derived from the schema by the caller, who also
// reads strided views before and writes them after. A lowering therefore sees logical dense arrays and returns logical
// dense arrays; it never sees strides, storages or devices.
//
// Arguments are numbered by the schema of the *functional* overload, defaults filled in: add.Tensor(self=0, other=1,
// alpha=2). Floating and Scalar arguments are *run-time operands* unless the row names them in |fixed|: a lowering asks
// tt_scalar(l, i, dtype) for a 0-d value and cannot see the number, so that a changing value never recompiles.
// Integers, bools, dtypes, strings and int lists are part of the signature and can be read; an integer named in
// |runtime| is an operand too.
//
// What the result must be (dtype, dims) is known before the lowering runs, from PyTorch's own meta kernel: tt_out(l, i).
// Results are converted to that dtype automatically; a wrong shape is an internal error that names the op.
#ifndef TT_OPS_OP_H_
#define TT_OPS_OP_H_
#include "base/caps.h"
#include "hlo/builder.h"
#include "tt/types.h"

typedef struct tt_lower_t tt_lower_t;
typedef void (*tt_lower_fn)(tt_lower_t* l);

#define TT_ARG(i) (1u << (i))

typedef struct tt_op_row_t {
  const char* name;   // "add.Tensor", "tanh" (no trailing dot for the default overload)
  tt_lower_fn lower;
  int kind;           // free for the lowering: an hlo_unary_t, a reducer, …
  uint32_t flags;     // tt_op_flags_t of tt/types.h
  uint32_t fixed;     // TT_ARG bits: float/Scalar arguments that are baked in (read them with tt_f64)
  uint32_t runtime;   // TT_ARG bits: int / int-list arguments that are operands (read them with tt_scalar)
  uint32_t unit;      // TT_ARG bits: run-time scalars for which "is exactly 1" is part of the signature
  const void* data;   // free for the lowering
} tt_op_row_t;

// At the bottom of a family file: `TT_OP_FAMILY(pointwise, k_rows)`; one line in families.def.
#define TT_OP_FAMILY(family, rows)                                     \
  const tt_op_row_t* tt_family_##family(int* out_count);               \
  const tt_op_row_t* tt_family_##family(int* out_count) {              \
    *out_count = (int)(sizeof(rows) / sizeof((rows)[0]));              \
    return (rows);                                                     \
  }

int tt_op_count(void);
const tt_op_row_t* tt_op_at(int i);
const tt_op_row_t* tt_op_find(const char* name);  // "add.Tensor"; NULL when there is no row. Thread-safe.

// ---------------------------------------------------------------- inside a lowering
hlo_builder_t* tt_b(tt_lower_t* l);
const tt_op_row_t* tt_row(tt_lower_t* l);
int tt_nargs(tt_lower_t* l);
bool tt_has(tt_lower_t* l, int i);                       // argument is not None (an empty list counts as given)
bool tt_is_tensor(tt_lower_t* l, int i);
hlo_t tt_in(tt_lower_t* l, int i);                       // tensor argument; fails when None
hlo_t tt_in_or_null(tt_lower_t* l, int i);               // NULL when None
int tt_list_len(tt_lower_t* l, int i);                   // of a tensor list, int list, float list, scalar list; 0 when None
hlo_t tt_in_list(tt_lower_t* l, int i, int j);           // element; NULL when undefined
int64_t tt_int(tt_lower_t* l, int i);                    // int, bool or dtype-like argument; fails when it is an operand
int64_t tt_int_or(tt_lower_t* l, int i, int64_t when_none);
bool tt_bool(tt_lower_t* l, int i);
double tt_f64(tt_lower_t* l, int i);                     // a |fixed| float or Scalar (or an int)
const int64_t* tt_ints(tt_lower_t* l, int i, int* out_n);  // int or bool list; NULL and 0 when None
const char* tt_str(tt_lower_t* l, int i);                // NULL when None
tt_dtype_t tt_dtype_arg(tt_lower_t* l, int i);           // ScalarType argument; TT_DT_NONE when None
// A Scalar, float, bool or int argument as 0-d value of |dtype|: an operand when it is run-time, else a constant.
hlo_t tt_scalar(tt_lower_t* l, int i, tt_dtype_t dtype);
hlo_t tt_scalar_at(tt_lower_t* l, int i, int j, tt_dtype_t dtype);  // element j of a Scalar/float/int list
// Kind of a Scalar argument's Python value: TT_BOOL, TT_I64, TT_F64 or TT_C128 (known even for operands).
tt_dtype_t tt_scalar_dtype(tt_lower_t* l, int i);
// True when the argument is named in the row's |unit| and is exactly 1 in this signature: the one value worth a
// program of its own (alpha and beta of add, addmm, …).
bool tt_scalar_is_one(tt_lower_t* l, int i);

// What is expected, from the meta kernel. |i| counts returns, then mutated arguments that are not returned.
typedef struct tt_type_t {
  tt_dtype_t dtype;
  int rank;
  const int64_t* dims;
} tt_type_t;
int tt_out_count(tt_lower_t* l);                         // 0 when unknown (NO_META, DATA_DEPENDENT, typeless graphs)
const tt_type_t* tt_out(tt_lower_t* l, int i);           // fails (and gives a 0-d f32) when unknown
tt_dtype_t tt_out_dtype(tt_lower_t* l, int i);           // expected dtype; when unknown, the promoted dtype of the tensor inputs
// The dtype arithmetic is done in: f32 for f16, bf16 and f8, else |dtype| itself (PyTorch's opmath).
tt_dtype_t tt_opmath(tt_dtype_t dtype);

// Results, in the order of the schema's returns; NULL for one that is None. List returns: give every element in order (tt_ret(l, 0..n-1)).
void tt_ret(tt_lower_t* l, int i, hlo_t value);
// DATA_DEPENDENT: |padded| holds the result in its first |count| (0-d, i64) entries along dim 0.
void tt_ret_sized(tt_lower_t* l, int i, hlo_t padded, hlo_t count);
// The same along dim |dim|.
void tt_ret_sized_dim(tt_lower_t* l, int i, hlo_t padded, hlo_t count, int dim);
// The one thing a lowering may say about memory: how result |i| (given already) lies there, where PyTorch's CPU kernel
// does so and no meta kernel says it. In eager mode only: graphs have said before what their results are.
void tt_ret_strides(tt_lower_t* l, int i, const int64_t* strides);
void tt_ret_order(tt_lower_t* l, int i, const int* order);  // dense, with dim order[0] outermost
// Strides of tensor argument |i| as the caller has it; NULL where that is unknown. For results that lie as it does.
const int64_t* tt_strides(tt_lower_t* l, int i);
// New value of argument |arg| (element |j| of a list; 0 otherwise) for schemas that write into an argument of a
// *functional-looking* overload (batch norm's running statistics, fused optimizers). Same shape and dtype as it had.
void tt_mutate(tt_lower_t* l, int arg, int j, hlo_t value);

// Random bits of u8/u32/u64 from the generator: THREE_FRY at (seed, offset); the offset advances by what was drawn.
hlo_t tt_random_bits(tt_lower_t* l, tt_dtype_t dtype, int rank, const int64_t* dims);

// A check on values: when |bad| (0-d i1) is true the op raises |code| with |message|, in which "%lld" (at most once)
// becomes |value| (0-d i64, or NULL). The message is static text or lives in the builder's arena. The exception
// is raised at the latest at the next synchronisation, naming the op and the Python line.
void tt_check(tt_lower_t* l, hlo_t bad, hlo_t value, tt_code_t code, const char* message);

// Compute one row inside another: |args| are dense values; used by list ops (foreach) and composites.
// |type| is the expected result (NULL: unknown).
typedef struct tt_sub_arg_t {
  hlo_t value;        // tensor argument, or NULL
  int from_arg;       // when value is NULL: take argument |from_arg| of the outer op (element |from_elem| of a list, -1 whole); -1: None
  int from_elem;
} tt_sub_arg_t;
hlo_t tt_sub(tt_lower_t* l, const char* name, int n_args, const tt_sub_arg_t* args, const tt_type_t* type);

// The replicas that the group named by string argument |i| consists of, as the program's maker declared it; fails (and
// gives a group of one) for a name it does not know.
const hlo_groups_t* tt_group(tt_lower_t* l, int i);

// Declared abilities of the device's compiler (tt_caps_t, base/caps.h).
uint32_t tt_caps(tt_lower_t* l);

// ---------------------------------------------------------------- shared by lowerings (ops/common.c)
// Tensor argument |i| converted to |dtype|.
hlo_t tt_in_as(tt_lower_t* l, int i, tt_dtype_t dtype);
// Argument |i|, tensor or Scalar, as value of |dtype|.
hlo_t tt_operand(tt_lower_t* l, int i, tt_dtype_t dtype);
// Reduction dims of argument |i| (None or empty: all) wrapped, sorted, deduplicated; returns the count.
int tt_reduce_dims(tt_lower_t* l, int i, int rank, int64_t out_dims[TT_MAX_RANK]);

#endif  // TT_OPS_OP_H_
