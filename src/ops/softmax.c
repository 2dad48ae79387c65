// Softmax, its logarithm, its masked and safe forms, and their gradients.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// Everything is computed in f32 for halves, with the row's maximum subtracted first. A 0-d tensor is a row of one.
#include <math.h>

#include "ops/common.h"

// One row dimension; n is 0 for a 0-d tensor.
typedef struct row_t {
  int n;
  int64_t dim;
} row_t;

static row_t row_of(tt_lower_t* l, int arg, hlo_t x) {
  int64_t dim = tt_has(l, arg) ? tt_int(l, arg) : -1;
  return (row_t){x->rank ? 1 : 0, hlo_dim(tt_b(l), dim, x->rank)};
}

static hlo_t row_reduce(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, row_t row) {
  return row.n ? hlo_reduce_keep(b, x, reducer, 1, &row.dim) : x;
}

// Input in the dtype of the arithmetic: that of the result, which may be wider than the input (half_to_float).
static hlo_t math_input(tt_lower_t* l, int arg, tt_dtype_t out) {
  return tt_in_as(l, arg, tt_opmath(out));
}

static tt_dtype_t result_dtype(tt_lower_t* l, bool widen) {
  return tt_out_count(l) > 0 ? tt_out_dtype(l, 0) : widen ? TT_F32 : tt_in(l, 0)->dtype;
}

static hlo_t softmax(hlo_builder_t* b, hlo_t x, row_t row) {
  hlo_t e = hlo_exponential(b, hlo_subtract(b, x, row_reduce(b, x, HLO_R_MAX, row)));
  return hlo_divide(b, e, row_reduce(b, e, HLO_R_ADD, row));
}

// (self, dim, half_to_float)
static void lower_softmax(tt_lower_t* l) {
  tt_dtype_t out = result_dtype(l, tt_bool(l, 2));
  hlo_t x = math_input(l, 0, out);
  tt_ret(l, 0, hlo_convert(tt_b(l), softmax(tt_b(l), x, row_of(l, 1, x)), out));
}

static void lower_log_softmax(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = result_dtype(l, tt_bool(l, 2));
  hlo_t x = math_input(l, 0, out);
  row_t row = row_of(l, 1, x);
  hlo_t shifted = hlo_subtract(b, x, row_reduce(b, x, HLO_R_MAX, row));
  hlo_t log_sum = hlo_log(b, row_reduce(b, hlo_exponential(b, shifted), HLO_R_ADD, row));
  tt_ret(l, 0, hlo_convert(b, hlo_subtract(b, shifted, log_sum), out));
}

// (self, dim, dtype): a row of nothing but -inf gives zeros instead of nan.
static void lower_safe_softmax(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = tt_dtype_arg(l, 2);
  if (tt_out_count(l) > 0) out = tt_out_dtype(l, 0);
  if (out == TT_DT_NONE) out = tt_in(l, 0)->dtype;
  hlo_t x = math_input(l, 0, out);
  row_t row = row_of(l, 1, x);
  hlo_t empty = row_reduce(b, hlo_compare(b, HLO_EQ, x, hlo_scalar(b, x->dtype, -INFINITY)), HLO_R_AND, row);
  hlo_t y = softmax(b, x, row);
  tt_ret(l, 0, hlo_convert(b, hlo_select(b, empty, hlo_zeros_like(b, y), y), out));
}

// (grad_output, output, dim, input_dtype)
static void lower_softmax_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = tt_out_count(l) > 0 ? tt_out_dtype(l, 0) : tt_dtype_arg(l, 3);
  tt_dtype_t math = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t grad = tt_in_as(l, 0, math), y = tt_in_as(l, 1, math);
  hlo_t weighted = hlo_multiply(b, grad, y);
  hlo_t sum = row_reduce(b, weighted, HLO_R_ADD, row_of(l, 2, y));
  tt_ret(l, 0, hlo_convert(b, hlo_subtract(b, weighted, hlo_multiply(b, y, sum)), out));
}

static void lower_log_softmax_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = tt_out_count(l) > 0 ? tt_out_dtype(l, 0) : tt_dtype_arg(l, 3);
  tt_dtype_t math = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t grad = tt_in_as(l, 0, math), y = tt_in_as(l, 1, math);
  hlo_t sum = row_reduce(b, grad, HLO_R_ADD, row_of(l, 2, y));
  tt_ret(l, 0, hlo_convert(b, hlo_subtract(b, grad, hlo_multiply(b, hlo_exponential(b, y), sum)), out));
}

// Mask (true: left out) at x's dims. Type 0 is [L, L] or of x's rank, 1 is a padding mask [B, L], 2 has x's dims.
static hlo_t full_mask(hlo_builder_t* b, hlo_t mask, hlo_t x, int64_t type) {
  if (type == 1 && mask->rank == 2 && x->rank >= 2) {
    const int64_t map[] = {0, x->rank - 1};
    return hlo_broadcast_in_dim(b, mask, x->rank, x->dims, map);
  }
  return hlo_broadcast_to(b, mask, x->rank, x->dims);
}

// (self, mask, dim, mask_type)
static void lower_masked_softmax(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = result_dtype(l, false);
  hlo_t x = math_input(l, 0, out);
  hlo_t mask = full_mask(b, tt_in_as(l, 1, TT_BOOL), x, tt_int_or(l, 3, 2));
  x = hlo_select(b, mask, hlo_scalar(b, x->dtype, -INFINITY), x);
  tt_ret(l, 0, hlo_convert(b, softmax(b, x, row_of(l, 2, x)), out));
}

// (grad_output, output, mask, dim)
static void lower_masked_softmax_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = result_dtype(l, false);
  hlo_t grad = math_input(l, 0, out), y = math_input(l, 1, out), zero = hlo_scalar(b, y->dtype, 0);
  hlo_t mask = full_mask(b, tt_in_as(l, 2, TT_BOOL), y, 2);
  hlo_t weighted = hlo_select(b, mask, zero, hlo_multiply(b, grad, y));
  hlo_t sum = row_reduce(b, weighted, HLO_R_ADD, row_of(l, 3, y));
  hlo_t dx = hlo_select(b, mask, zero, hlo_subtract(b, weighted, hlo_multiply(b, y, sum)));
  tt_ret(l, 0, hlo_convert(b, dx, out));
}

static const tt_op_row_t k_rows[] = {
    {.name = "_softmax", .lower = lower_softmax},
    {.name = "_log_softmax", .lower = lower_log_softmax},
    {.name = "_safe_softmax", .lower = lower_safe_softmax},
    {.name = "_softmax_backward_data", .lower = lower_softmax_backward},
    {.name = "_log_softmax_backward_data", .lower = lower_log_softmax_backward},
    {.name = "_masked_softmax", .lower = lower_masked_softmax, .flags = TT_OP_NO_META},
    {.name = "_masked_softmax_backward", .lower = lower_masked_softmax_backward, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(softmax, k_rows)
