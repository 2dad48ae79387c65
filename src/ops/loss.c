// Losses that compare elements or pick classes, forward and backward. CTC is in loss_ctc.c.
//
// Depends on: ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// |reduction| is PyTorch's: 0 none, 1 mean, 2 sum.
#include "ops/common.h"

enum { REDUCE_NONE = 0, REDUCE_MEAN = 1, REDUCE_SUM = 2 };

static hlo_t C(hlo_builder_t* b, hlo_t like, double v) { return hlo_scalar(b, like->dtype, v); }

// ---------------------------------------------------------------- reductions
static hlo_t reduced(hlo_builder_t* b, hlo_t x, int64_t reduction) {
  if (reduction == REDUCE_NONE) return x;
  hlo_t sum = hlo_reduce_all(b, x, HLO_R_ADD);
  return reduction == REDUCE_SUM ? sum : hlo_divide(b, sum, C(b, x, (double)hlo_numel(x)));
}

// Result |i| as |dtype|, for ops without a meta kernel, too.
static void ret_as(tt_lower_t* l, int i, hlo_t x, tt_dtype_t dtype) { tt_ret(l, i, hlo_convert(tt_b(l), x, dtype)); }

// Gradient of |x| elements through the reduction: divided by their number for a mean.
static hlo_t spread(hlo_builder_t* b, hlo_t grad, hlo_t x, int64_t reduction) {
  if (reduction != REDUCE_MEAN) return grad;
  return hlo_divide(b, grad, C(b, grad, (double)hlo_numel(x)));
}

typedef struct pair_t {
  tt_dtype_t math;
  hlo_t x, y;  // input and target, of one shape
} pair_t;

static pair_t pair_at(tt_lower_t* l, int arg) {
  hlo_t x = tt_in(l, arg), y = tt_in(l, arg + 1);
  pair_t p = {.math = tt_opmath(tt_promote(x->dtype, y->dtype))};
  p.x = hlo_convert(tt_b(l), x, p.math);
  p.y = hlo_convert(tt_b(l), y, p.math);
  hlo_broadcast2(tt_b(l), &p.x, &p.y);
  return p;
}

// ---------------------------------------------------------------- mse, smooth l1, huber
static void lower_mse(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 0);
  hlo_t d = hlo_subtract(b, p.x, p.y);
  tt_ret(l, 0, reduced(b, hlo_multiply(b, d, d), tt_int(l, 2)));
}

static void lower_mse_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 1);
  hlo_t grad = spread(b, hlo_multiply(b, tt_in_as(l, 0, p.math), hlo_scalar(b, p.math, 2)), p.x, tt_int(l, 3));
  tt_ret(l, 0, hlo_multiply(b, hlo_subtract(b, p.x, p.y), grad));
}

static void lower_smooth_l1(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 0);
  hlo_t beta = tt_scalar(l, 3, p.math), z = hlo_abs(b, hlo_subtract(b, p.x, p.y));
  hlo_t half = C(b, z, 0.5);
  hlo_t inner = hlo_divide(b, hlo_multiply(b, hlo_multiply(b, half, z), z), beta);
  hlo_t outer = hlo_subtract(b, z, hlo_multiply(b, half, beta));
  tt_ret(l, 0, reduced(b, hlo_select(b, hlo_compare(b, HLO_LT, z, beta), inner, outer), tt_int(l, 2)));
}

static void lower_huber(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 0);
  hlo_t delta = tt_scalar(l, 3, p.math), z = hlo_abs(b, hlo_subtract(b, p.x, p.y));
  hlo_t half = C(b, z, 0.5);
  hlo_t inner = hlo_multiply(b, hlo_multiply(b, half, z), z);
  hlo_t outer = hlo_multiply(b, delta, hlo_subtract(b, z, hlo_multiply(b, half, delta)));
  tt_ret(l, 0, reduced(b, hlo_select(b, hlo_compare(b, HLO_LE, z, delta), inner, outer), tt_int(l, 2)));
}

// Both have slope -outer, linear, +outer, with bounds at -|at| and +|at|. row.kind: 0 smooth l1 (inner x / at,
// outer 1), 1 huber (inner x, outer at).
static void lower_l1_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bool huber = tt_row(l)->kind == 1;
  pair_t p = pair_at(l, 1);
  hlo_t at = tt_scalar(l, 4, p.math), x = hlo_subtract(b, p.x, p.y);
  hlo_t outer = huber ? at : C(b, x, 1), inner = huber ? x : hlo_divide(b, x, at);
  hlo_t above = hlo_select(b, hlo_compare(b, HLO_GE, x, at), outer, inner);
  hlo_t low = hlo_compare(b, HLO_LE, x, hlo_negate(b, at));
  hlo_t slope = hlo_select(b, low, hlo_negate(b, outer), above);
  hlo_t grad = spread(b, tt_in_as(l, 0, p.math), x, tt_int(l, 3));
  tt_ret(l, 0, hlo_multiply(b, slope, grad));
}

// ---------------------------------------------------------------- soft margin
static void lower_soft_margin(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 0);
  hlo_t z = hlo_exponential(b, hlo_negate(b, hlo_multiply(b, p.x, p.y)));
  tt_ret(l, 0, reduced(b, hlo_log_plus_one(b, z), tt_int(l, 2)));
}

static void lower_soft_margin_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 1);
  hlo_t share = hlo_logistic(b, hlo_negate(b, hlo_multiply(b, p.x, p.y)));
  hlo_t grad = spread(b, tt_in_as(l, 0, p.math), p.x, tt_int(l, 3));
  tt_ret(l, 0, hlo_negate(b, hlo_multiply(b, hlo_multiply(b, p.y, share), grad)));
}

// ---------------------------------------------------------------- binary cross entropy
static hlo_t outside_unit(hlo_builder_t* b, hlo_t x) {  // NaN counts as outside
  hlo_t in = hlo_and_(b, hlo_compare(b, HLO_GE, x, C(b, x, 0)), hlo_compare(b, HLO_LE, x, C(b, x, 1)));
  return hlo_not_(b, hlo_reduce_all(b, in, HLO_R_AND));
}

static hlo_t weighted(tt_lower_t* l, hlo_t x, int weight_arg) {
  return tt_has(l, weight_arg) ? hlo_multiply(tt_b(l), x, tt_in_as(l, weight_arg, x->dtype)) : x;
}

static void lower_bce(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 0);
  tt_check(l, outside_unit(b, p.x), NULL, TT_INVALID_ARGUMENT, "all elements of input should be between 0 and 1");
  tt_check(l, outside_unit(b, p.y), NULL, TT_INVALID_ARGUMENT, "all elements of target should be between 0 and 1");
  hlo_t floor = C(b, p.x, -100);  // PyTorch's stand-in for log(0)
  hlo_t log_x = hlo_maximum(b, hlo_log(b, p.x), floor);
  hlo_t log_1x = hlo_maximum(b, hlo_log_plus_one(b, hlo_negate(b, p.x)), floor);
  hlo_t loss = hlo_subtract(b, hlo_multiply(b, hlo_subtract(b, p.y, C(b, p.y, 1)), log_1x),
                            hlo_multiply(b, p.y, log_x));
  tt_ret(l, 0, reduced(b, weighted(l, loss, 2), tt_int(l, 3)));
}

static void lower_bce_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 1);
  hlo_t variance = hlo_multiply(b, hlo_subtract(b, C(b, p.x, 1), p.x), p.x);
  hlo_t slope = hlo_divide(b, hlo_subtract(b, p.x, p.y), hlo_maximum(b, variance, C(b, p.x, 1e-12)));
  hlo_t grad = spread(b, tt_in_as(l, 0, p.math), p.x, tt_int(l, 4));
  tt_ret(l, 0, weighted(l, hlo_multiply(b, grad, slope), 3));
}

static void lower_bce_with_logits(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  pair_t p = pair_at(l, 0);
  hlo_t one = C(b, p.x, 1), minus_abs = hlo_negate(b, hlo_abs(b, p.x));
  hlo_t soft = hlo_add(b, hlo_log_plus_one(b, hlo_exponential(b, minus_abs)),
                       hlo_maximum(b, hlo_negate(b, p.x), C(b, p.x, 0)));
  if (tt_has(l, 3)) {
    hlo_t weight = hlo_subtract(b, tt_in_as(l, 3, p.math), one);
    soft = hlo_multiply(b, soft, hlo_add(b, hlo_multiply(b, weight, p.y), one));
  }
  hlo_t loss = hlo_add(b, hlo_multiply(b, hlo_subtract(b, one, p.y), p.x), soft);
  tt_ret(l, 0, reduced(b, weighted(l, loss, 2), tt_int(l, 4)));
}

// ---------------------------------------------------------------- negative log likelihood
// Classes are along dim 1, or dim 0 of a single sample.
typedef struct classes_t {
  int dim;
  int64_t count;
  hlo_t target;   // i64, in range (0 where ignored), with a size 1 at |dim|
  hlo_t keep;     // i1, same shape: not ignored
  hlo_t weight;   // of |math| dtype, same shape: of the target's class; 0 where ignored
} classes_t;

static classes_t classes_at(tt_lower_t* l, hlo_t self, int target_arg, int weight_arg, int64_t ignore, bool check) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_opmath(self->dtype);
  classes_t c = {.dim = self->rank < 2 ? 0 : 1};
  c.count = self->dims[c.dim];
  hlo_t target = hlo_convert(b, tt_in(l, target_arg), TT_I64), zero = hlo_scalar_int(b, TT_I64, 0);
  if (self->rank == 1 && target->rank == 1) {
    target = hlo_reshape(b, target, 1, (const int64_t[]){1});
  } else {
    target = hlo_unsqueeze(b, target, c.dim);
  }
  c.keep = hlo_compare(b, HLO_NE, target, hlo_scalar_int(b, TT_I64, ignore));
  if (check) {
    hlo_t outside = hlo_or_(b, hlo_compare(b, HLO_LT, target, zero),
                            hlo_compare(b, HLO_GE, target, hlo_scalar_int(b, TT_I64, c.count)));
    hlo_t bad = hlo_and_(b, c.keep, outside);
    hlo_t culprit = hlo_reduce_all(b, hlo_select(b, bad, target, hlo_lowest(b, TT_I64)), HLO_R_MAX);
    tt_check(l, hlo_reduce_all(b, bad, HLO_R_OR), culprit, TT_OUT_OF_RANGE, "Target %lld is out of bounds.");
  }
  c.target = hlo_clamp(b, zero, hlo_select(b, c.keep, target, zero), hlo_scalar_int(b, TT_I64, c.count - 1));
  c.weight = hlo_convert(b, c.keep, math);
  if (tt_has(l, weight_arg)) {
    hlo_t of_class = hlo_take(b, tt_in_as(l, weight_arg, math), c.target, 0);
    c.weight = hlo_select(b, c.keep, of_class, hlo_scalar(b, math, 0));
  }
  return c;
}

static void lower_nll_forward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0);
  int64_t reduction = tt_int(l, 3);
  classes_t c = classes_at(l, self, 1, 2, tt_int(l, 4), true);
  tt_dtype_t math = c.weight->dtype;
  hlo_t picked = hlo_convert(b, hlo_take_along(b, self, c.target, c.dim), math);
  // An ignored sample may hold an infinity, which a weight of zero would turn into NaN.
  hlo_t loss = hlo_select(b, c.keep, hlo_negate(b, hlo_multiply(b, picked, c.weight)), C(b, picked, 0));
  if (reduction == REDUCE_NONE && self->rank > 1) {
    tt_ret(l, 0, hlo_squeeze(b, loss, c.dim));
    tt_ret(l, 1, hlo_scalar(b, self->dtype, 0));
    return;
  }
  hlo_t total = hlo_reduce_all(b, c.weight, HLO_R_ADD), sum = hlo_reduce_all(b, loss, HLO_R_ADD);
  tt_ret(l, 0, reduction == REDUCE_MEAN ? hlo_divide(b, sum, total) : sum);
  tt_ret(l, 1, total);
}

static void lower_nll_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 1);
  int64_t reduction = tt_int(l, 4);
  classes_t c = classes_at(l, self, 2, 3, tt_int(l, 5), false);
  tt_dtype_t math = c.weight->dtype;
  hlo_t grad = tt_in_as(l, 0, math);
  if (reduction == REDUCE_NONE && self->rank > 1) grad = hlo_unsqueeze(b, grad, c.dim);
  else if (grad->rank > 0) grad = hlo_reshape(b, grad, 0, NULL);
  if (reduction == REDUCE_MEAN) {
    hlo_t total = tt_in_as(l, 6, math);
    grad = hlo_divide(b, grad, total->rank > 0 ? hlo_reshape(b, total, 0, NULL) : total);
  }
  hlo_t value = hlo_negate(b, hlo_multiply(b, grad, c.weight));
  hlo_t iota = hlo_iota(b, TT_I64, self->rank, self->dims, c.dim);
  hlo_t here = hlo_and_(b, hlo_compare(b, HLO_EQ, iota, c.target), c.keep);
  tt_ret(l, 0, hlo_select(b, here, value, hlo_scalar(b, math, 0)));
}

// ---------------------------------------------------------------- multi margin
typedef struct margin_t {
  int64_t n, c;
  tt_dtype_t dtype, math;
  hlo_t x;        // [n, c]
  hlo_t target;   // [n, 1] for multi margin, [n, c] for multilabel, i64, clamped to be in range
  hlo_t raw;      // the same as given
} margin_t;

static margin_t margin_at(tt_lower_t* l, int self_arg) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, self_arg), target = hlo_convert(b, tt_in(l, self_arg + 1), TT_I64);
  margin_t m = {.dtype = self->dtype, .math = tt_opmath(self->dtype)};
  m.n = self->rank < 2 ? 1 : self->dims[0];
  m.c = self->rank == 0 ? 1 : self->dims[self->rank - 1];
  m.x = hlo_reshape(b, hlo_convert(b, self, m.math), 2, (const int64_t[]){m.n, m.c});
  m.raw = hlo_reshape(b, target, 2, (const int64_t[]){m.n, m.n == 0 ? 1 : hlo_numel(target) / m.n});
  m.target = hlo_clamp(b, hlo_scalar_int(b, TT_I64, 0), m.raw, hlo_scalar_int(b, TT_I64, m.c - 1));
  return m;
}

static void check_target(tt_lower_t* l, const margin_t* m, int64_t low, const char* message) {
  hlo_builder_t* b = tt_b(l);
  hlo_t bad = hlo_or_(b, hlo_compare(b, HLO_LT, m->raw, hlo_scalar_int(b, TT_I64, low)),
                      hlo_compare(b, HLO_GE, m->raw, hlo_scalar_int(b, TT_I64, m->c)));
  tt_check(l, hlo_reduce_all(b, bad, HLO_R_OR), NULL, TT_INVALID_ARGUMENT, message);
}

// Per-sample values [n] in the shape of the loss: [n], or 0-d for a single sample.
static hlo_t per_sample(hlo_builder_t* b, hlo_t x, int self_rank, int64_t reduction) {
  if (reduction != REDUCE_NONE) return reduced(b, x, reduction);
  return self_rank < 2 ? hlo_reshape(b, x, 0, NULL) : x;
}

// The gradient of the loss per sample: [n, 1] or 0-d, divided for a mean.
static hlo_t grad_per_sample(tt_lower_t* l, const margin_t* m, int64_t reduction) {
  hlo_builder_t* b = tt_b(l);
  hlo_t grad = tt_in_as(l, 0, m->math);
  if (reduction == REDUCE_NONE) return hlo_reshape(b, grad, 2, (const int64_t[]){m->n, 1});
  grad = grad->rank > 0 ? hlo_reshape(b, grad, 0, NULL) : grad;
  return reduction == REDUCE_MEAN ? hlo_divide(b, grad, C(b, grad, (double)m->n)) : grad;
}

// Hinge margin - x[target] + x[j], zero at the target itself and where it is not positive.
static hlo_t hinge(hlo_builder_t* b, const margin_t* m, hlo_t margin, hlo_t* out_here) {
  hlo_t own = hlo_take_along(b, m->x, m->target, 1);
  hlo_t z = hlo_add(b, hlo_subtract(b, margin, own), m->x);
  *out_here = hlo_compare(b, HLO_EQ, hlo_iota(b, TT_I64, 2, m->x->dims, 1), m->target);
  hlo_t off = hlo_or_(b, *out_here, hlo_compare(b, HLO_LE, z, C(b, z, 0)));
  return hlo_select(b, off, C(b, z, 0), z);
}

static void lower_multi_margin(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  margin_t m = margin_at(l, 0);
  int rank = tt_in(l, 0)->rank;
  check_target(l, &m, 0, "target out of range");
  hlo_t here, z = hinge(b, &m, tt_scalar(l, 3, m.math), &here);
  if (tt_f64(l, 2) == 2) z = hlo_multiply(b, z, z);
  if (tt_has(l, 4)) z = hlo_multiply(b, z, hlo_take(b, tt_in_as(l, 4, m.math), m.target, 0));
  hlo_t sum = hlo_reduce(b, z, HLO_R_ADD, 1, (const int64_t[]){1});
  tt_ret(l, 0, per_sample(b, hlo_divide(b, sum, C(b, sum, (double)m.c)), rank, tt_int(l, 5)));
}

static void lower_multi_margin_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  margin_t m = margin_at(l, 1);
  hlo_t here, z = hinge(b, &m, tt_scalar(l, 4, m.math), &here);
  hlo_t positive = hlo_compare(b, HLO_GT, z, C(b, z, 0));
  hlo_t slope = tt_f64(l, 3) == 2 ? hlo_multiply(b, z, C(b, z, 2)) : hlo_convert(b, positive, m.math);
  if (tt_has(l, 5)) slope = hlo_multiply(b, slope, hlo_take(b, tt_in_as(l, 5, m.math), m.target, 0));
  hlo_t own = hlo_negate(b, hlo_reduce_keep(b, slope, HLO_R_ADD, 1, (const int64_t[]){1}));
  hlo_t full = hlo_divide(b, hlo_select(b, here, own, slope), C(b, z, (double)m.c));
  full = hlo_multiply(b, full, grad_per_sample(l, &m, tt_int(l, 6)));
  hlo_t self = tt_in(l, 1);
  ret_as(l, 0, hlo_reshape(b, full, self->rank, self->dims), m.dtype);
}

// ---------------------------------------------------------------- multilabel margin
// Targets count until the first negative one.
static hlo_t label_mask(hlo_builder_t* b, const margin_t* m) {
  hlo_t given = hlo_compare(b, HLO_GE, m->raw, hlo_scalar_int(b, TT_I64, 0));
  return hlo_scan(b, given, HLO_R_AND, 1, false);
}

// max(0, 1 - x[target k] + x[j]) as [n, k, j] with the zeros of unused labels, or of classes that are targets.
static hlo_t label_hinges(hlo_builder_t* b, const margin_t* m, hlo_t mask, hlo_t is_target) {
  hlo_t own = hlo_unsqueeze(b, hlo_take_along(b, m->x, m->target, 1), 2);
  hlo_t z = hlo_add(b, hlo_subtract(b, C(b, own, 1), own), hlo_unsqueeze(b, m->x, 1));
  hlo_t on = hlo_and_(b, hlo_unsqueeze(b, mask, 2), hlo_not_(b, hlo_unsqueeze(b, is_target, 1)));
  on = hlo_and_(b, on, hlo_compare(b, HLO_GT, z, C(b, z, 0)));
  return hlo_select(b, on, z, C(b, z, 0));
}

static void lower_multilabel_margin(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0), target = tt_in(l, 1);
  if (self->rank > 2 || (self->rank > 0 && self->dims[self->rank - 1] == 0)) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "Expected non-empty vector or matrix with optional 0-dim batch size");
    return;
  }
  bool same = hlo_numel(self) == hlo_numel(target) && (self->rank == 2 ? target->rank == 2 : target->rank <= 1);
  if (!same || (self->rank == 2 && self->dims[0] != target->dims[0])) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "inconsistent target size for the input's size");
    return;
  }
  margin_t m = margin_at(l, 0);
  check_target(l, &m, -1, "argument #2 'target' is out of range");
  hlo_t mask = label_mask(b, &m);
  hlo_t none = hlo_splat(b, TT_I32, 0, 2, m.x->dims);
  hlo_t marked = hlo_put_along(b, none, m.target, hlo_convert(b, mask, TT_I32), 1, HLO_R_MAX);
  hlo_t is_target = hlo_convert(b, marked, TT_BOOL);
  hlo_t sum = hlo_reduce(b, label_hinges(b, &m, mask, is_target), HLO_R_ADD, 2, (const int64_t[]){1, 2});
  tt_ret(l, 0, per_sample(b, hlo_divide(b, sum, C(b, sum, (double)m.c)), self->rank, tt_int(l, 2)));
  tt_ret(l, 1, hlo_reshape(b, hlo_convert(b, is_target, m.dtype), target->rank, target->dims));
}

static void lower_multilabel_margin_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  margin_t m = margin_at(l, 1);
  hlo_t self = tt_in(l, 1), mask = label_mask(b, &m);
  hlo_t is_target = hlo_convert(b, hlo_reshape(b, tt_in(l, 4), 2, m.x->dims), TT_BOOL);
  hlo_t z = label_hinges(b, &m, mask, is_target);
  hlo_t on = hlo_convert(b, hlo_compare(b, HLO_GT, z, C(b, z, 0)), m.math);
  hlo_t up = hlo_reduce(b, on, HLO_R_ADD, 1, (const int64_t[]){1});
  hlo_t down = hlo_negate(b, hlo_reduce(b, on, HLO_R_ADD, 1, (const int64_t[]){2}));
  hlo_t full = hlo_put_along(b, up, m.target, down, 1, HLO_R_ADD);
  full = hlo_divide(b, full, C(b, full, (double)m.c));
  full = hlo_multiply(b, full, grad_per_sample(l, &m, tt_int(l, 3)));
  ret_as(l, 0, hlo_reshape(b, full, self->rank, self->dims), m.dtype);
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "mse_loss", .lower = lower_mse},
    {.name = "mse_loss_backward", .lower = lower_mse_backward},
    {.name = "smooth_l1_loss", .lower = lower_smooth_l1},
    {.name = "smooth_l1_loss_backward", .lower = lower_l1_backward},
    {.name = "huber_loss", .lower = lower_huber},
    {.name = "huber_loss_backward", .lower = lower_l1_backward, .kind = 1},
    {.name = "soft_margin_loss", .lower = lower_soft_margin},
    {.name = "soft_margin_loss_backward", .lower = lower_soft_margin_backward},
    {.name = "binary_cross_entropy", .lower = lower_bce, .flags = TT_OP_CHECKS},
    {.name = "binary_cross_entropy_backward", .lower = lower_bce_backward},
    {.name = "binary_cross_entropy_with_logits", .lower = lower_bce_with_logits},
    {.name = "nll_loss_forward", .lower = lower_nll_forward, .flags = TT_OP_CHECKS},
    {.name = "nll_loss_backward", .lower = lower_nll_backward},
    {.name = "nll_loss2d_forward", .lower = lower_nll_forward, .flags = TT_OP_CHECKS},
    {.name = "nll_loss2d_backward", .lower = lower_nll_backward},
    {.name = "multi_margin_loss", .lower = lower_multi_margin, .flags = TT_OP_CHECKS, .fixed = TT_ARG(2)},
    {.name = "multi_margin_loss_backward", .lower = lower_multi_margin_backward, .flags = TT_OP_NO_META,
     .fixed = TT_ARG(3)},
    // PyTorch's meta kernel gives a single sample's loss the shape [1]; its kernels give it none.
    {.name = "multilabel_margin_loss_forward", .lower = lower_multilabel_margin, .flags = TT_OP_CHECKS | TT_OP_NO_META},
    {.name = "multilabel_margin_loss_backward", .lower = lower_multilabel_margin_backward, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(loss, k_rows)
