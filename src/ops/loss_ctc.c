// Connectionist temporal classification, forward and backward.
//
// Depends on: ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// Lengths are operands, so a changing batch does not recompile. The lattice has L = 2 S + 1 states: blank, label, blank,
// …; S is the longest target that the arguments allow. States past a sample's own end never reach the ones that count.
#include <math.h>
#include "ops/common.h"

typedef struct ctc_t {
  tt_dtype_t math;
  int64_t t, n, c, length;  // time, batch, classes, states
  hlo_t log_probs;          // [t, n, c]
  hlo_t input_lengths;      // [n, 1] i64
  hlo_t target_lengths;     // [n, 1] i64
  hlo_t state_class;        // [t, n, L] i64: class of each state
  hlo_t state_log_prob;     // [t, n, L]
  hlo_t skip;               // [n, L]: a state may be entered from two before it
} ctc_t;

static hlo_t C(hlo_builder_t* b, hlo_t like, double v) { return hlo_scalar(b, like->dtype, v); }
static hlo_t int_c(hlo_builder_t* b, int64_t v) { return hlo_scalar_int(b, TT_I64, v); }

// ---------------------------------------------------------------- reading
static hlo_t lengths_at(tt_lower_t* l, int arg, int64_t n) {
  hlo_builder_t* b = tt_b(l);
  const int64_t dims[2] = {n, 1}, one = 1;
  if (tt_is_tensor(l, arg)) return hlo_reshape(b, hlo_convert(b, tt_in(l, arg), TT_I64), 2, dims);
  if (n == 0) return hlo_splat(b, TT_I64, 0, 2, dims);
  hlo_t* parts = tt_arena_alloc(hlo_builder_arena(b), (size_t)n * sizeof(hlo_t));
  if (parts == NULL) return hlo_fail(b, TT_RESOURCE_EXHAUSTED, "out of memory");
  for (int64_t i = 0; i < n; i++) parts[i] = hlo_reshape(b, tt_scalar_at(l, arg, (int)i, TT_I64), 1, &one);
  return hlo_reshape(b, hlo_concat(b, (int)n, parts, 0), 2, dims);
}

// Targets as [n, s]; those given as one concatenated vector are cut apart by their lengths.
static hlo_t targets_at(tt_lower_t* l, int arg, const ctc_t* k, int64_t s) {
  hlo_builder_t* b = tt_b(l);
  hlo_t given = hlo_convert(b, tt_in(l, arg), TT_I64);
  const int64_t dims[2] = {k->n, s};
  if (hlo_numel(given) == 0 || s == 0) return hlo_splat(b, TT_I64, 0, 2, dims);
  hlo_t column = hlo_iota(b, TT_I64, 2, dims, 1), index = column;
  int64_t last = given->dims[given->rank - 1] - 1;
  if (given->rank == 1) {
    hlo_t ends = hlo_scan(b, k->target_lengths, HLO_R_ADD, 0, false);
    index = hlo_add(b, column, hlo_subtract(b, ends, k->target_lengths));
  }
  index = hlo_clamp(b, int_c(b, 0), index, int_c(b, last));
  hlo_t labels = given->rank == 1 ? hlo_take(b, given, index, 0) : hlo_take_along(b, given, index, 1);
  return hlo_clamp(b, int_c(b, 0), labels, int_c(b, k->c - 1));
}

// [n, L]: blank, label, blank, …
static hlo_t interleave(hlo_builder_t* b, hlo_t labels, int64_t blank) {
  const int64_t lo[2] = {0, 1}, hi[2] = {0, 1}, interior[2] = {0, 1};
  if (labels->dims[1] > 0) return hlo_pad(b, labels, int_c(b, blank), lo, hi, interior);
  return hlo_broadcast_to(b, int_c(b, blank), 2, (const int64_t[]){labels->dims[0], 1});
}

// |x| moved by |by| states along dim 1 (positive: later), with |fill| at the end that opens.
static hlo_t shifted(hlo_builder_t* b, hlo_t x, int64_t by, hlo_t fill) {
  const int64_t lo[2] = {0, by}, hi[2] = {0, -by};
  return hlo_pad(b, x, fill, lo, hi, NULL);
}

static void check_lengths(tt_lower_t* l, const ctc_t* k, int64_t s) {
  hlo_builder_t* b = tt_b(l);
  hlo_t longest = hlo_reduce_all(b, k->input_lengths, HLO_R_MAX);
  const char* text = tt_arena_printf(hlo_builder_arena(b),
      "Expected input_lengths to have value at most %lld, but got value %%lld "
      "(while checking arguments for ctc_loss_allocate_outputs)", (long long)k->t);
  tt_check(l, hlo_compare(b, HLO_GT, longest, int_c(b, k->t)), longest, TT_INVALID_ARGUMENT, text ? text : "ctc_loss");
  longest = hlo_reduce_all(b, k->target_lengths, HLO_R_MAX);
  text = tt_arena_printf(hlo_builder_arena(b),
      "Expected tensor to have size at least %%lld at dimension 1, but got size %lld for argument #2 'targets' "
      "(while checking arguments for ctc_loss_allocate_outputs)", (long long)s);
  tt_check(l, hlo_compare(b, HLO_GT, longest, int_c(b, s)), longest, TT_INVALID_ARGUMENT, text ? text : "ctc_loss");
}

// Reads log_probs, targets, input_lengths, target_lengths from argument |first| on.
static ctc_t ctc_at(tt_lower_t* l, int first, int64_t length, int64_t blank, bool check) {
  hlo_builder_t* b = tt_b(l);
  hlo_t given = tt_in(l, first), targets = tt_in(l, first + 1);
  ctc_t k = {.math = tt_opmath(given->dtype)};
  k.log_probs = hlo_convert(b, given, k.math);
  k.t = given->dims[0], k.n = given->dims[1], k.c = given->dims[2], k.length = length;
  k.input_lengths = lengths_at(l, first + 2, k.n);
  k.target_lengths = lengths_at(l, first + 3, k.n);
  if (check && k.n > 0) check_lengths(l, &k, targets->rank == 1 ? hlo_numel(targets) : targets->dims[1]);
  hlo_t classes = interleave(b, targets_at(l, first + 1, &k, (length - 1) / 2), blank);
  hlo_t same = hlo_compare(b, HLO_EQ, classes, shifted(b, classes, 2, int_c(b, blank)));
  hlo_t label = hlo_compare(b, HLO_NE, classes, int_c(b, blank));
  k.skip = hlo_and_(b, label, hlo_not_(b, same));
  const int64_t dims[3] = {k.t, k.n, length};
  k.state_class = hlo_broadcast_to(b, classes, 3, dims);
  k.state_log_prob = hlo_take_along(b, k.log_probs, k.state_class, 2);
  return k;
}

static hlo_t log_add3(hlo_builder_t* b, hlo_t x, hlo_t y, hlo_t z) {
  hlo_t top = hlo_maximum(b, hlo_maximum(b, x, y), z);
  top = hlo_select(b, hlo_compare(b, HLO_EQ, top, C(b, top, -INFINITY)), C(b, top, 0), top);
  hlo_t sum = hlo_add(b, hlo_exponential(b, hlo_subtract(b, x, top)), hlo_exponential(b, hlo_subtract(b, y, top)));
  sum = hlo_add(b, sum, hlo_exponential(b, hlo_subtract(b, z, top)));
  return hlo_add(b, hlo_log(b, sum), top);
}

static hlo_t state_index(hlo_builder_t* b, const ctc_t* k) {
  return hlo_iota(b, TT_I64, 2, (const int64_t[]){k->n, k->length}, 1);
}

// ---------------------------------------------------------------- the two sweeps
// Row |t| of a [t, n, L] value as [n, L].
static hlo_t time_row(hlo_builder_t* b, const ctc_t* k, hlo_t x, hlo_t t) {
  hlo_t starts[3] = {t, int_c(b, 0), int_c(b, 0)};
  return hlo_squeeze(b, hlo_dynamic_slice(b, x, starts, (const int64_t[]){1, k->n, k->length}), 0);
}

typedef hlo_t (*sweep_fn)(hlo_builder_t* b, const ctc_t* k, hlo_t row, hlo_t t);

// Fills [t, n, L] by applying |step| to the row before, from time |first| by |stride|.
static hlo_t sweep(hlo_builder_t* b, const ctc_t* k, hlo_t start, int64_t first, int64_t stride, sweep_fn step) {
  const int64_t dims[3] = {k->t, k->n, k->length};
  hlo_t init[4] = {int_c(b, 0), int_c(b, first), start, hlo_splat(b, k->math, -INFINITY, 3, dims)}, out[4];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t go = hlo_compare(b, HLO_LT, hlo_region_arg(b, cond, TT_I64, 0, NULL), int_c(b, k->t));
  (void)hlo_region_arg(b, cond, TT_I64, 0, NULL);
  (void)hlo_region_arg(b, cond, k->math, 2, start->dims);
  (void)hlo_region_arg(b, cond, k->math, 3, dims);
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  hlo_t i = hlo_region_arg(b, body, TT_I64, 0, NULL), t = hlo_region_arg(b, body, TT_I64, 0, NULL);
  hlo_t row = hlo_region_arg(b, body, k->math, 2, start->dims), all = hlo_region_arg(b, body, k->math, 3, dims);
  row = step(b, k, row, t);
  hlo_t starts[3] = {t, int_c(b, 0), int_c(b, 0)};
  hlo_t next[4] = {hlo_add(b, i, int_c(b, 1)), hlo_add(b, t, int_c(b, stride)), row,
                   hlo_dynamic_update_slice(b, all, hlo_unsqueeze(b, row, 0), starts)};
  hlo_region_end(b, body, 4, next);
  hlo_while(b, 4, init, cond, body, out);
  return out[3];
}

static hlo_t alpha_step(hlo_builder_t* b, const ctc_t* k, hlo_t row, hlo_t t) {
  hlo_t none = C(b, row, -INFINITY), first = hlo_compare(b, HLO_EQ, t, int_c(b, 0));
  hlo_t skipped = hlo_select(b, k->skip, shifted(b, row, 2, none), none);
  hlo_t sum = log_add3(b, row, shifted(b, row, 1, none), skipped);
  // Before the first frame a path may stand in state 0 or 1.
  hlo_t open = hlo_compare(b, HLO_LT, state_index(b, k), int_c(b, 2));
  sum = hlo_select(b, first, hlo_select(b, open, C(b, row, 0), none), sum);
  return hlo_add(b, sum, time_row(b, k, k->state_log_prob, t));
}

static hlo_t beta_step(hlo_builder_t* b, const ctc_t* k, hlo_t row, hlo_t t) {
  hlo_t none = C(b, row, -INFINITY), state = state_index(b, k);
  hlo_t may_skip = shifted(b, k->skip, -2, hlo_scalar(b, TT_BOOL, 0));
  hlo_t skipped = hlo_select(b, may_skip, shifted(b, row, -2, none), none);
  hlo_t sum = log_add3(b, row, shifted(b, row, -1, none), skipped);
  // At a sample's last frame a path must stand in one of its last two states.
  hlo_t end = hlo_multiply(b, k->target_lengths, int_c(b, 2));
  hlo_t closing = hlo_and_(b, hlo_compare(b, HLO_LE, state, end),
                           hlo_compare(b, HLO_GE, state, hlo_subtract(b, end, int_c(b, 1))));
  hlo_t last = hlo_compare(b, HLO_EQ, hlo_add(b, t, int_c(b, 1)), k->input_lengths);
  sum = hlo_select(b, last, hlo_select(b, closing, C(b, row, 0), none), sum);
  return hlo_add(b, sum, time_row(b, k, k->state_log_prob, t));
}

static hlo_t fresh_row(hlo_builder_t* b, const ctc_t* k) {
  return hlo_splat(b, k->math, -INFINITY, 2, (const int64_t[]){k->n, k->length});
}

// ---------------------------------------------------------------- forward
// alpha [n, L] of each sample's last frame.
static hlo_t last_alpha(hlo_builder_t* b, const ctc_t* k, hlo_t alpha) {
  hlo_t frame = hlo_clamp(b, int_c(b, 0), hlo_subtract(b, k->input_lengths, int_c(b, 1)), int_c(b, k->t - 1));
  hlo_t index = hlo_broadcast_to(b, hlo_unsqueeze(b, frame, 0), 3, (const int64_t[]){1, k->n, k->length});
  return hlo_squeeze(b, hlo_take_along(b, alpha, index, 0), 0);
}

static hlo_t neg_log_likelihood(hlo_builder_t* b, const ctc_t* k, hlo_t alpha) {
  hlo_t ends = last_alpha(b, k, alpha), none = C(b, ends, -INFINITY), state = state_index(b, k);
  hlo_t last = hlo_multiply(b, k->target_lengths, int_c(b, 2));
  hlo_t closing = hlo_and_(b, hlo_compare(b, HLO_LE, state, last),
                           hlo_compare(b, HLO_GE, state, hlo_subtract(b, last, int_c(b, 1))));
  ends = hlo_select(b, closing, ends, none);
  const int64_t dim = 1;
  hlo_t top = hlo_reduce_keep(b, ends, HLO_R_MAX, 1, &dim);
  top = hlo_select(b, hlo_compare(b, HLO_EQ, top, none), C(b, top, 0), top);
  hlo_t sum = hlo_reduce_keep(b, hlo_exponential(b, hlo_subtract(b, ends, top)), HLO_R_ADD, 1, &dim);
  hlo_t loss = hlo_negate(b, hlo_add(b, hlo_log(b, sum), top));
  // Without frames only the empty target is possible.
  hlo_t no_label = hlo_compare(b, HLO_EQ, k->target_lengths, int_c(b, 0));
  hlo_t edge = hlo_select(b, no_label, C(b, loss, 0), C(b, loss, INFINITY));
  return hlo_select(b, hlo_compare(b, HLO_EQ, k->input_lengths, int_c(b, 0)), edge, loss);
}

static void lower_ctc(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t given = tt_in(l, 0), targets = tt_in(l, 1);
  int64_t bound = targets->rank == 1 ? hlo_numel(targets) : targets->dims[1];
  int64_t length = tt_out_count(l) > 1 ? tt_out(l, 1)->dims[2] : 2 * bound + 1;
  ctc_t k = ctc_at(l, 0, length, tt_int(l, 4), true);
  hlo_t alpha = sweep(b, &k, fresh_row(b, &k), 0, 1, alpha_step);
  hlo_t loss = neg_log_likelihood(b, &k, alpha);
  tt_ret(l, 0, hlo_convert(b, hlo_squeeze(b, loss, 1), given->dtype));
  tt_ret(l, 1, hlo_convert(b, hlo_swap_dims(b, alpha, 0, 1), given->dtype));
}

// ---------------------------------------------------------------- backward
static void lower_ctc_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t given = tt_in(l, 1);
  tt_dtype_t math = tt_opmath(given->dtype);
  hlo_t alpha = hlo_swap_dims(b, tt_in_as(l, 6, math), 0, 1);
  ctc_t k = ctc_at(l, 1, alpha->dims[2], tt_int(l, 7), false);
  hlo_t end = hlo_multiply(b, k.target_lengths, int_c(b, 2));
  hlo_t used = hlo_compare(b, HLO_LE, state_index(b, &k), end);  // PyTorch leaves the rest of alpha unset
  alpha = hlo_select(b, hlo_unsqueeze(b, used, 0), alpha, C(b, alpha, -INFINITY));
  hlo_t beta = sweep(b, &k, fresh_row(b, &k), k.t - 1, -1, beta_step);
  const int64_t per_sample[3] = {1, k.n, 1};
  hlo_t loss = hlo_reshape(b, tt_in_as(l, 5, math), 3, per_sample);
  hlo_t grad = hlo_reshape(b, tt_in_as(l, 0, math), 3, per_sample);
  // Share of the paths that pass through each state at each time. alpha and beta both count the frame's probability.
  hlo_t exponent = hlo_subtract(b, hlo_add(b, hlo_add(b, alpha, beta), loss), k.state_log_prob);
  hlo_t dead = hlo_and_(b, hlo_compare(b, HLO_EQ, k.state_log_prob, C(b, alpha, -INFINITY)),
                        hlo_is_finite(b, loss));
  hlo_t share = hlo_select(b, dead, C(b, alpha, 0), hlo_exponential(b, exponent));
  hlo_t full = hlo_put_along(b, hlo_exponential(b, k.log_probs), k.state_class, hlo_negate(b, share), 2, HLO_R_ADD);
  full = hlo_multiply(b, full, grad);
  hlo_t time = hlo_iota(b, TT_I64, 3, (const int64_t[]){k.t, k.n, 1}, 0);
  hlo_t off = hlo_compare(b, HLO_GE, time, hlo_unsqueeze(b, k.input_lengths, 0));
  if (tt_bool(l, 8)) off = hlo_or_(b, off, hlo_compare(b, HLO_EQ, loss, C(b, loss, INFINITY)));
  full = hlo_select(b, off, C(b, full, 0), full);
  tt_ret(l, 0, hlo_convert(b, full, given->dtype));
}

// ---------------------------------------------------------------- rows
// Result sizes come from the lowering: PyTorch's would depend on the values of the lengths.
static const tt_op_row_t k_rows[] = {
    {.name = "_ctc_loss", .lower = lower_ctc, .flags = TT_OP_CHECKS | TT_OP_NO_META,
     .runtime = TT_ARG(2) | TT_ARG(3)},
    {.name = "_ctc_loss.Tensor", .lower = lower_ctc, .flags = TT_OP_CHECKS | TT_OP_NO_META},
    {.name = "_ctc_loss_backward", .lower = lower_ctc_backward, .flags = TT_OP_NO_META,
     .runtime = TT_ARG(3) | TT_ARG(4)},
    {.name = "_ctc_loss_backward.Tensor", .lower = lower_ctc_backward, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(loss_ctc, k_rows)
