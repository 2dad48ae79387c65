// Lists of tensors: every `_foreach_` overload is the row of its element op, mapped over the lists in one program.
//
// Depends on: ops/op.h.
// Threads: as op.h.
#include "ops/common.h"

// How the element op's arguments are taken from the list op's, one character each:
//   '0'..'9'  element j of that argument (a tensor list or a Scalar list)
//   'a'..'f'  argument 0..5 as it is, the same for every element
//   'A'..'F'  element j of that argument, a 1-D tensor of numbers
//   '-'       None
typedef struct map_t {
  const char* element;
  const char* args;
} map_t;

#define MAX_ELEMENT_ARGS 8

static tt_sub_arg_t element_arg(tt_lower_t* l, char code, int j) {
  if (code == '-') return (tt_sub_arg_t){.from_arg = -1, .from_elem = -1};
  if (code >= 'a') return (tt_sub_arg_t){.from_arg = code - 'a', .from_elem = -1};
  if (code < 'A') return (tt_sub_arg_t){.from_arg = code - '0', .from_elem = j};
  hlo_t one = hlo_slice_dim(tt_b(l), tt_in(l, code - 'A'), 0, j, j + 1, 1);
  return (tt_sub_arg_t){.value = hlo_reshape(tt_b(l), one, 0, NULL), .from_arg = -1, .from_elem = -1};
}

static void lower_map(tt_lower_t* l) {
  const map_t* map = tt_row(l)->data;
  int n_args = 0, n = 0;
  for (const char* c = map->args; *c; c++, n_args++)
    if (n == 0 && *c <= '9' && *c >= '0') n = tt_list_len(l, *c - '0');
  for (int j = 0; j < n; j++) {
    tt_sub_arg_t args[MAX_ELEMENT_ARGS];
    for (int i = 0; i < n_args && i < MAX_ELEMENT_ARGS; i++) args[i] = element_arg(l, map->args[i], j);
    const tt_type_t* type = j < tt_out_count(l) ? tt_out(l, j) : NULL;
    tt_ret(l, j, tt_sub(l, map->element, n_args, args, type));
  }
}

// ---------------------------------------------------------------- rows
#define MAP(text, op, how) {.name = "_foreach_" text, .lower = lower_map, .data = &(const map_t){op, how}}
// alpha of add and sub: 1 is worth a program of its own, as in the element op.
#define ALPHA(text, op, how) \
  {.name = "_foreach_" text, .lower = lower_map, .unit = TT_ARG(2), .data = &(const map_t){op, how}}
#define VALUE(text, op, how) \
  {.name = "_foreach_" text, .lower = lower_map, .unit = TT_ARG(3), .data = &(const map_t){op, how}}
#define UNARY(op) MAP(op, op, "0")
// An op of a list with a list, a Scalar, or a Scalar list.
#define BINARY(op, tensor, scalar)                                                                  \
  MAP(op ".List", tensor, "01"), MAP(op ".Scalar", scalar, "0b"), MAP(op ".ScalarList", scalar, "01")

static const tt_op_row_t k_rows[] = {
    UNARY("abs"), UNARY("acos"), UNARY("asin"), UNARY("atan"), UNARY("ceil"), UNARY("cos"), UNARY("cosh"),
    UNARY("erf"), UNARY("erfc"), UNARY("exp"), UNARY("expm1"), UNARY("floor"), UNARY("frac"), UNARY("lgamma"),
    UNARY("log"), UNARY("log10"), UNARY("log1p"), UNARY("log2"), UNARY("neg"), UNARY("reciprocal"), UNARY("round"),
    UNARY("rsqrt"), UNARY("sigmoid"), UNARY("sign"), UNARY("sin"), UNARY("sinh"), UNARY("sqrt"), UNARY("tan"),
    UNARY("tanh"), UNARY("trunc"), UNARY("zero"), UNARY("clone"), UNARY("max"),
    ALPHA("add.List", "add.Tensor", "01c"), ALPHA("add.Tensor", "add.Tensor", "0bc"),
    MAP("add.Scalar", "add.Scalar", "0b-"), MAP("add.ScalarList", "add.Scalar", "01-"),
    ALPHA("sub.List", "sub.Tensor", "01c"),
    MAP("sub.Scalar", "sub.Scalar", "0b-"), MAP("sub.ScalarList", "sub.Scalar", "01-"),
    BINARY("mul", "mul.Tensor", "mul.Scalar"), MAP("mul.Tensor", "mul.Tensor", "0b"),
    BINARY("div", "div.Tensor", "div.Scalar"), MAP("div.Tensor", "div.Tensor", "0b"),
    BINARY("clamp_max", "minimum", "clamp_max"), BINARY("clamp_min", "maximum", "clamp_min"),
    BINARY("maximum", "maximum", "clamp_min"), BINARY("minimum", "minimum", "clamp_max"),
    BINARY("pow", "pow.Tensor_Tensor", "pow.Tensor_Scalar"), MAP("pow.ScalarAndTensor", "pow.Scalar", "a1"),
    VALUE("addcmul.Scalar", "addcmul", "012d"), MAP("addcmul.ScalarList", "addcmul", "0123"),
    MAP("addcmul.Tensor", "addcmul", "012D"),
    VALUE("addcdiv.Scalar", "addcdiv", "012d"), MAP("addcdiv.ScalarList", "addcdiv", "0123"),
    MAP("addcdiv.Tensor", "addcdiv", "012D"),
    MAP("lerp.List", "lerp.Tensor", "012"), MAP("lerp.Scalar", "lerp.Scalar", "01c"),
    MAP("lerp.ScalarList", "lerp.Scalar", "012"),
    {.name = "_foreach_norm.Scalar", .lower = lower_map, .fixed = TT_ARG(1),
     .data = &(const map_t){"linalg_vector_norm", "0b--c"}},
    MAP("copy", "copy", "01"), MAP("mm", "mm", "01"),
};
TT_OP_FAMILY(foreach, k_rows)
