// gather, scatter and the index_* ops along one dim.
#include <string.h>
#include "ops/common.h"
#include "ops/indexing.h"
#include "ops/op.h"

static hlo_t ready_along(tt_lower_t* l, hlo_t index, int dim, int64_t size) {
  const tt_index_rule_t rule = {false, TT_INVALID_ARGUMENT, tt_bounds_message(l, dim, size)};
  return tt_index_ready(l, index, size, &rule);
}

// ---------------------------------------------------------------- gather
static void lower_gather(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t shape = tt_in(l, 2);
  hlo_t x = tt_at_least_1d(b, tt_in(l, 0)), index = tt_at_least_1d(b, shape);
  const int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  if (hlo_numel(index) == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, shape->rank, shape->dims));
    return;
  }
  index = ready_along(l, index, dim, x->dims[dim]);
  tt_ret(l, 0, tt_reshape_like(b, hlo_take_along(b, x, index, dim), shape));
}

// ---------------------------------------------------------------- scatter
typedef enum combine_t { C_ASSIGN, C_SUM, C_PROD, C_MEAN, C_AMAX, C_AMIN } combine_t;

static combine_t combine_named(tt_lower_t* l, const char* name) {
  static const struct {
    const char* name;
    combine_t combine;
  } k_names[] = {{"add", C_SUM},   {"sum", C_SUM},   {"multiply", C_PROD}, {"prod", C_PROD},
                 {"mean", C_MEAN}, {"amax", C_AMAX}, {"amin", C_AMIN}};
  for (size_t i = 0; i < sizeof(k_names) / sizeof(k_names[0]); i++) {
    if (name && strcmp(name, k_names[i].name) == 0) return k_names[i].combine;
  }
  hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "reduce argument must be either sum, prod, mean, amax or amin, got %s.",
           name ? name : "None");
  return C_SUM;
}

static hlo_reducer_t reducer_of(combine_t combine) {
  switch (combine) {
    case C_PROD: return HLO_R_MUL;
    case C_AMAX: return HLO_R_MAX;
    case C_AMIN: return HLO_R_MIN;
    case C_ASSIGN: return HLO_R_ASSIGN;
    default: return HLO_R_ADD;
  }
}

// A destination addressed along |dim|: by an index of its own rank (scatter), or by rows (index_add and kin).
typedef struct target_t {
  hlo_builder_t* b;
  hlo_t index;
  int dim;
  bool rows;
} target_t;

static hlo_t put_into(const target_t* t, hlo_t x, hlo_t src, hlo_reducer_t reducer) {
  return t->rows ? tt_put(t->b, x, t->index, src, t->dim, reducer)
                 : hlo_put_along(t->b, x, t->index, src, t->dim, reducer);
}

static hlo_t divide_mean(hlo_builder_t* b, hlo_t sum, hlo_t count) {
  count = hlo_convert(b, count, sum->dtype);
  hlo_t mean = hlo_divide(b, sum, count);
  if (!tt_is_signed_int(sum->dtype)) return mean;
  // The quotient of integers is floored.
  hlo_t rest = hlo_remainder(b, sum, count);
  hlo_t down = hlo_compare(b, HLO_LT, rest, hlo_scalar(b, sum->dtype, 0));
  return hlo_subtract(b, mean, hlo_convert(b, down, sum->dtype));
}

// x combined with |src|. Where |include_self| is false, touched positions forget what they held.
static hlo_t combine_into(const target_t* t, hlo_t x, hlo_t src, combine_t combine, bool include_self) {
  hlo_builder_t* b = t->b;
  const hlo_reducer_t reducer = reducer_of(combine);
  if (combine == C_ASSIGN) return put_into(t, x, src, reducer);
  hlo_t base = x;
  if (!include_self) {
    hlo_t neutral = hlo_neutral(b, reducer, x->dtype);
    base = put_into(t, x, hlo_broadcast_to(b, neutral, src->rank, src->dims), HLO_R_ASSIGN);
  }
  hlo_t out = put_into(t, base, src, reducer);
  if (combine != C_MEAN) return out;
  const tt_dtype_t count_dtype = tt_is_float(x->dtype) || tt_is_complex(x->dtype) ? x->dtype : TT_I64;
  hlo_t one = hlo_splat(b, count_dtype, 1, src->rank, src->dims);
  hlo_t count = put_into(t, hlo_splat(b, count_dtype, include_self ? 1 : 0, x->rank, x->dims), one, HLO_R_ADD);
  hlo_t least = hlo_scalar(b, count_dtype, 1);
  if (!include_self) count = hlo_select(b, hlo_compare(b, HLO_EQ, count, hlo_zeros_like(b, count)), least, count);
  return divide_mean(b, out, count);
}

// Sums and products in the dtype of arithmetic; copies and extremes need none.
static tt_dtype_t combine_dtype(tt_dtype_t dtype, combine_t combine) {
  return combine == C_SUM || combine == C_PROD || combine == C_MEAN ? tt_opmath(dtype) : dtype;
}

static void scatter_ret(tt_lower_t* l, hlo_t src, combine_t combine, bool include_self) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0), index = tt_at_least_1d(b, tt_in(l, 2));
  if (hlo_numel(index) == 0) {
    tt_ret(l, 0, self);
    return;
  }
  const tt_dtype_t dtype = combine_dtype(self->dtype, combine);
  hlo_t x = hlo_convert(b, tt_at_least_1d(b, self), dtype);
  src = hlo_convert(b, src, dtype);
  // A scalar source takes the index's extent.
  src = src->rank == 0 && index->rank > 0 ? hlo_broadcast_to(b, src, index->rank, index->dims) : src;
  const int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  const int64_t zero[TT_MAX_RANK] = {0};
  if (!hlo_same_dims(src, index)) src = hlo_slice(b, src, zero, index->dims, NULL);
  const target_t t = {.b = b, .index = ready_along(l, index, dim, x->dims[dim]), .dim = dim};
  tt_ret(l, 0, tt_reshape_like(b, combine_into(&t, x, src, combine, include_self), self));
}

static void lower_scatter_src(tt_lower_t* l) {
  scatter_ret(l, tt_at_least_1d(tt_b(l), tt_in(l, 3)), (combine_t)tt_row(l)->kind, true);
}

static void lower_scatter_value(tt_lower_t* l) { scatter_ret(l, tt_scalar(l, 3, tt_in(l, 0)->dtype), C_ASSIGN, true); }

static void lower_scatter_reduce_src(tt_lower_t* l) {
  scatter_ret(l, tt_at_least_1d(tt_b(l), tt_in(l, 3)), combine_named(l, tt_str(l, 4)), true);
}

static void lower_scatter_value_reduce(tt_lower_t* l) {
  scatter_ret(l, tt_scalar(l, 3, tt_in(l, 0)->dtype), combine_named(l, tt_str(l, 4)), true);
}

static void lower_scatter_reduce_two(tt_lower_t* l) {
  scatter_ret(l, tt_at_least_1d(tt_b(l), tt_in(l, 3)), combine_named(l, tt_str(l, 4)), tt_bool(l, 5));
}

// ---------------------------------------------------------------- index_select, index_add, index_copy, …
static void lower_index_select(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0), x = tt_at_least_1d(b, self);
  const int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  const tt_index_rule_t rule = {false, TT_OUT_OF_RANGE, "index out of range in self"};
  hlo_t index = tt_index_ready(l, tt_at_least_1d(b, tt_in(l, 2)), x->dims[dim], &rule);
  hlo_t out = tt_take(b, x, index, dim);
  tt_ret(l, 0, self->rank == 0 ? hlo_reshape(b, out, 0, NULL) : out);
}

// self, dim, index given; |src| has the dims of x with the index's length along dim, or is 0-d.
static void rows_ret(tt_lower_t* l, hlo_t src, combine_t combine, bool include_self, const tt_index_rule_t* rule) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0), index = tt_at_least_1d(b, tt_in(l, 2));
  hlo_t x = hlo_convert(b, tt_at_least_1d(b, self), combine_dtype(self->dtype, combine));
  const int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  int64_t dims[TT_MAX_RANK];
  memcpy(dims, x->dims, sizeof(int64_t) * (size_t)x->rank);
  dims[dim] = index->dims[0];
  src = hlo_convert(b, src, x->dtype);
  if (src->rank != x->rank && hlo_numel(src) == 1) src = hlo_reshape(b, src, 0, NULL);
  src = hlo_broadcast_to(b, src, x->rank, dims);
  const target_t t = {.b = b, .index = tt_index_ready(l, index, x->dims[dim], rule), .dim = dim, .rows = true};
  tt_ret(l, 0, tt_reshape_like(b, combine_into(&t, x, src, combine, include_self), self));
}

static void lower_index_add(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_dtype_t dtype = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t src = tt_in_as(l, 3, dtype);
  if (!tt_scalar_is_one(l, 4)) src = hlo_multiply(b, src, tt_scalar(l, 4, dtype));
  const tt_index_rule_t rule = {false, TT_OUT_OF_RANGE, "index out of range in self"};
  rows_ret(l, src, C_SUM, true, &rule);
}

static void lower_index_copy(tt_lower_t* l) {
  hlo_t x = tt_at_least_1d(tt_b(l), tt_in(l, 0));
  const int dim = hlo_dim(tt_b(l), tt_int(l, 1), x->rank);
  const char* bounds = tt_bounds_message(l, dim, x->dims[dim]);
  const char* text = tt_arena_printf(hlo_builder_arena(tt_b(l)), "index_copy_(): %s", bounds);
  const tt_index_rule_t rule = {false, TT_OUT_OF_RANGE, text};
  rows_ret(l, tt_in(l, 3), C_ASSIGN, true, &rule);
}

static void lower_index_fill(tt_lower_t* l) {
  hlo_t x = tt_at_least_1d(tt_b(l), tt_in(l, 0));
  const int dim = hlo_dim(tt_b(l), tt_int(l, 1), x->rank);
  const tt_index_rule_t rule = {true, TT_OUT_OF_RANGE, tt_bounds_message(l, dim, x->dims[dim])};
  rows_ret(l, tt_operand(l, 3, x->dtype), C_ASSIGN, true, &rule);
}

static void lower_index_reduce(tt_lower_t* l) {
  const tt_index_rule_t rule = {false, TT_OUT_OF_RANGE, "index out of range in self"};
  rows_ret(l, tt_in(l, 3), combine_named(l, tt_str(l, 4)), tt_bool(l, 5), &rule);
}

static const tt_op_row_t k_rows[] = {
    {"gather", .lower = lower_gather, .flags = TT_OP_CHECKS},
    {"scatter.src", .lower = lower_scatter_src, .kind = C_ASSIGN, .flags = TT_OP_CHECKS},
    {"scatter.value", .lower = lower_scatter_value, .flags = TT_OP_CHECKS},
    {"scatter.reduce", .lower = lower_scatter_reduce_src, .flags = TT_OP_CHECKS},
    {"scatter.value_reduce", .lower = lower_scatter_value_reduce, .flags = TT_OP_CHECKS},
    {"scatter_add", .lower = lower_scatter_src, .kind = C_SUM, .flags = TT_OP_CHECKS},
    {"scatter_reduce.two", .lower = lower_scatter_reduce_two, .flags = TT_OP_CHECKS},
    {"index_select", .lower = lower_index_select, .flags = TT_OP_CHECKS},
    {"index_add", .lower = lower_index_add, .flags = TT_OP_CHECKS, .unit = TT_ARG(4)},
    {"index_copy", .lower = lower_index_copy, .flags = TT_OP_CHECKS},
    {"index_fill.int_Scalar", .lower = lower_index_fill, .flags = TT_OP_CHECKS},
    {"index_fill.int_Tensor", .lower = lower_index_fill, .flags = TT_OP_CHECKS},
    {"index_reduce", .lower = lower_index_reduce, .flags = TT_OP_CHECKS},
};
TT_OP_FAMILY(scatter, k_rows)
