// Cells of recurrent networks, fused: what LSTM, GRU and their cells run once per time step.
//
// Depends on: ops/nn.h.
// Threads: as op.h.
// The workspace is ours alone to read: activated gates for the LSTM (i, f, g, o), and (r, z, n, h, h_n) for the GRU,
// where h_n is the hidden part of the new gate before r scales it.
#include "ops/nn.h"

// Chunk |i| of |n| along the last dim.
static hlo_t chunk(hlo_builder_t* b, hlo_t x, int i, int n) {
  int64_t size = x->dims[x->rank - 1] / n;
  return hlo_slice_dim(b, x, x->rank - 1, i * size, (i + 1) * size, 1);
}

static hlo_t plus_bias(tt_lower_t* l, hlo_t x, int arg) {
  return tt_has(l, arg) ? hlo_add(tt_b(l), x, tt_in_as(l, arg, x->dtype)) : x;
}

static hlo_t one_minus(hlo_builder_t* b, hlo_t x) { return hlo_subtract(b, hlo_scalar(b, x->dtype, 1), x); }

// g * s * (1 - s): through a sigmoid of value s.
static hlo_t through_sigmoid(hlo_builder_t* b, hlo_t g, hlo_t s) {
  return hlo_multiply(b, g, hlo_multiply(b, s, one_minus(b, s)));
}

// g * (1 - t^2): through a tanh of value t.
static hlo_t through_tanh(hlo_builder_t* b, hlo_t g, hlo_t t) {
  return hlo_multiply(b, g, one_minus(b, hlo_multiply(b, t, t)));
}

static hlo_t sum_batch(hlo_builder_t* b, hlo_t x) {
  static const int64_t batch[] = {0};
  return hlo_reduce(b, x, HLO_R_ADD, 1, batch);
}

// _thnn_fused_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias) -> (hy, cy, workspace)
static void lower_lstm_cell(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_in(l, 0)->dtype, d = tt_opmath(dtype);
  hlo_t gates = hlo_add(b, plus_bias(l, tt_in_as(l, 0, d), 3), plus_bias(l, tt_in_as(l, 1, d), 4));
  hlo_t i = hlo_logistic(b, chunk(b, gates, 0, 4)), f = hlo_logistic(b, chunk(b, gates, 1, 4));
  hlo_t g = hlo_tanh(b, chunk(b, gates, 2, 4)), o = hlo_logistic(b, chunk(b, gates, 3, 4));
  hlo_t cy = hlo_add(b, hlo_multiply(b, f, tt_in_as(l, 2, d)), hlo_multiply(b, i, g));
  hlo_t parts[] = {i, f, g, o};
  tt_ret(l, 0, hlo_convert(b, hlo_multiply(b, o, hlo_tanh(b, cy)), dtype));
  tt_ret(l, 1, hlo_convert(b, cy, dtype));
  tt_ret(l, 2, hlo_convert(b, hlo_concat(b, 4, parts, gates->rank - 1), dtype));
}

// _thnn_fused_lstm_cell_backward_impl(grad_hy, grad_cy, cx, cy, workspace, has_bias)
// -> (grad_gates, grad_cx, grad_bias)
static void lower_lstm_cell_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_in(l, 4)->dtype, d = tt_opmath(dtype);
  tt_ret(l, 2, NULL);
  if (!tt_has(l, 0) && !tt_has(l, 1)) return;
  hlo_t cx = tt_in_as(l, 2, d), cy = tt_in_as(l, 3, d), workspace = tt_in_as(l, 4, d);
  hlo_t i = chunk(b, workspace, 0, 4), f = chunk(b, workspace, 1, 4), g = chunk(b, workspace, 2, 4);
  hlo_t o = chunk(b, workspace, 3, 4), t = hlo_tanh(b, cy), zero = hlo_zeros_like(b, cy);
  hlo_t dh = tt_has(l, 0) ? tt_in_as(l, 0, d) : zero, dc = tt_has(l, 1) ? tt_in_as(l, 1, d) : zero;
  dc = hlo_add(b, dc, through_tanh(b, hlo_multiply(b, dh, o), t));
  hlo_t parts[] = {
      through_sigmoid(b, hlo_multiply(b, dc, g), i), through_sigmoid(b, hlo_multiply(b, dc, cx), f),
      through_tanh(b, hlo_multiply(b, dc, i), g), through_sigmoid(b, hlo_multiply(b, dh, t), o),
  };
  hlo_t gates = hlo_concat(b, 4, parts, workspace->rank - 1);
  tt_ret(l, 0, hlo_convert(b, gates, dtype));
  tt_ret(l, 1, hlo_convert(b, hlo_multiply(b, dc, f), dtype));
  if (tt_bool(l, 5)) tt_ret(l, 2, hlo_convert(b, sum_batch(b, gates), dtype));
}

// _thnn_fused_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias) -> (hy, workspace)
static void lower_gru_cell(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_in(l, 0)->dtype, d = tt_opmath(dtype);
  hlo_t x = plus_bias(l, tt_in_as(l, 0, d), 3), h = plus_bias(l, tt_in_as(l, 1, d), 4), hx = tt_in_as(l, 2, d);
  hlo_t r = hlo_logistic(b, hlo_add(b, chunk(b, x, 0, 3), chunk(b, h, 0, 3)));
  hlo_t z = hlo_logistic(b, hlo_add(b, chunk(b, x, 1, 3), chunk(b, h, 1, 3)));
  hlo_t hn = chunk(b, h, 2, 3), n = hlo_tanh(b, hlo_add(b, chunk(b, x, 2, 3), hlo_multiply(b, r, hn)));
  hlo_t hy = hlo_add(b, n, hlo_multiply(b, z, hlo_subtract(b, hx, n))), parts[] = {r, z, n, hx, hn};
  tt_ret(l, 0, hlo_convert(b, hy, dtype));
  tt_ret(l, 1, hlo_convert(b, hlo_concat(b, 5, parts, x->rank - 1), dtype));
}

// _thnn_fused_gru_cell_backward(grad_hy, workspace, has_bias)
// -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
static void lower_gru_cell_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_in(l, 1)->dtype, d = tt_opmath(dtype);
  hlo_t g = tt_in_as(l, 0, d), w = tt_in_as(l, 1, d);
  hlo_t r = chunk(b, w, 0, 5), z = chunk(b, w, 1, 5), n = chunk(b, w, 2, 5), hx = chunk(b, w, 3, 5);
  hlo_t hn = chunk(b, w, 4, 5), dn = through_tanh(b, hlo_multiply(b, g, one_minus(b, z)), n);
  hlo_t dz = through_sigmoid(b, hlo_multiply(b, g, hlo_subtract(b, hx, n)), z);
  hlo_t dr = through_sigmoid(b, hlo_multiply(b, dn, hn), r);
  hlo_t input[] = {dr, dz, dn}, hidden[] = {dr, dz, hlo_multiply(b, dn, r)};
  hlo_t dx = hlo_concat(b, 3, input, w->rank - 1), dh = hlo_concat(b, 3, hidden, w->rank - 1);
  bool bias = tt_bool(l, 2);
  tt_ret(l, 0, hlo_convert(b, dx, dtype));
  tt_ret(l, 1, hlo_convert(b, dh, dtype));
  tt_ret(l, 2, hlo_convert(b, hlo_multiply(b, g, z), dtype));
  tt_ret(l, 3, bias ? hlo_convert(b, sum_batch(b, dx), dtype) : NULL);
  tt_ret(l, 4, bias ? hlo_convert(b, sum_batch(b, dh), dtype) : NULL);
}

static const tt_op_row_t k_rows[] = {
    // PyTorch's meta kernel breaks on a cell without biases.
    {.name = "_thnn_fused_lstm_cell", .lower = lower_lstm_cell, .flags = TT_OP_NO_META},
    {.name = "_thnn_fused_lstm_cell_backward_impl", .lower = lower_lstm_cell_backward},
    {.name = "_thnn_fused_gru_cell", .lower = lower_gru_cell, .flags = TT_OP_NO_META},
    {.name = "_thnn_fused_gru_cell_backward", .lower = lower_gru_cell_backward, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(rnn, k_rows)
