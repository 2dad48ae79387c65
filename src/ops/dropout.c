// Dropout as one op, and its backward.
//
// Depends on: ops/nn.h.
// Threads: as op.h.
#include "ops/nn.h"

// input * mask / keep, or all zeros when nothing is kept.
static hlo_t dropped(hlo_builder_t* b, hlo_t x, hlo_t mask, hlo_t keep) {
  hlo_t zero = hlo_scalar(b, keep->dtype, 0), one = hlo_scalar(b, keep->dtype, 1);
  hlo_t scale = hlo_select(b, hlo_compare(b, HLO_EQ, keep, zero), zero, hlo_divide(b, one, keep));
  // A product, not a select: what is dropped keeps NaN and infinity visible, as in PyTorch.
  return hlo_multiply(b, hlo_multiply(b, x, hlo_convert(b, mask, x->dtype)), hlo_convert(b, scale, x->dtype));
}

static hlo_t draw(tt_lower_t* l, hlo_t x, hlo_t keep) {
  return tt_keep_mask(tt_b(l), tt_random_bits(l, TT_U32, x->rank, x->dims), keep);
}

// native_dropout(input, p, train) -> (output, mask)
static void lower_native_dropout(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = hlo_convert(b, in, tt_opmath(in->dtype));
  if (tt_has(l, 2) && !tt_bool(l, 2)) {
    tt_ret(l, 0, in);
    tt_ret(l, 1, hlo_splat(b, TT_BOOL, 1, x->rank, x->dims));
    return;
  }
  hlo_t keep = hlo_subtract(b, hlo_scalar(b, TT_F32, 1), tt_scalar(l, 1, TT_F32)), mask = draw(l, x, keep);
  tt_ret(l, 0, hlo_convert(b, dropped(b, x, mask, keep), in->dtype));
  tt_ret(l, 1, mask);
}

// _fused_dropout(self, p, generator) -> (output, mask u8): p is the probability to keep.
static void lower_fused_dropout(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = hlo_convert(b, in, tt_opmath(in->dtype)), keep = tt_scalar(l, 1, TT_F32);
  hlo_t mask = draw(l, x, keep);
  tt_ret(l, 0, hlo_convert(b, dropped(b, x, mask, keep), in->dtype));
  tt_ret(l, 1, hlo_convert(b, mask, TT_U8));
}

// native_dropout_backward(grad_output, mask, scale)
static void lower_native_dropout_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t result = tt_float_dtype(tt_in(l, 0)->dtype), d = tt_opmath(result);  // |scale| is a float
  hlo_t g = tt_in_as(l, 0, d);
  g = hlo_multiply(b, hlo_multiply(b, g, tt_in_as(l, 1, d)), tt_scalar(l, 2, d));
  tt_ret(l, 0, hlo_convert(b, g, result));
}

static const tt_op_row_t k_rows[] = {
    {.name = "native_dropout", .lower = lower_native_dropout, .flags = TT_OP_RANDOM},
    {.name = "_fused_dropout", .lower = lower_fused_dropout, .flags = TT_OP_RANDOM},
    {.name = "native_dropout_backward", .lower = lower_native_dropout_backward},
};
TT_OP_FAMILY(dropout, k_rows)
