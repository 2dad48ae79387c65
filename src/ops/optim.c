// Fused optimizer steps and gradient scaling: one program for all parameters of a group.
//
// Depends on: ops/op.h, ops/math.h.
// Threads: as op.h.
// The `_` overloads write into their lists with tt_mutate; the functional ones, which functionalization makes of them,
// return every list. Learning rates, betas and the like are run-time operands, so that schedules never recompile;
// step counters may live on the host.
#include "ops/common.h"
#include "ops/math.h"

// ---------------------------------------------------------------- what the optimizers share
typedef struct step_t {
  tt_lower_t* l;
  bool functional;
  hlo_t skip;           // 0-d i1: a non-finite gradient was found, nothing may change; NULL when nobody looked
  tt_dtype_t scalars;   // dtype of scalar arithmetic: double, as PyTorch's, where the device has it
} step_t;

static step_t begin(tt_lower_t* l, int found_inf) {
  hlo_builder_t* b = tt_b(l);
  step_t s = {.l = l, .functional = tt_row(l)->kind & 1};
  s.scalars = tt_caps(l) & TT_CAP_F64 ? TT_F64 : TT_F32;
  if (tt_has(l, found_inf)) {
    hlo_t flag = tt_in(l, found_inf);
    s.skip = hlo_reshape(b, tt_cmp_num(b, HLO_EQ, flag, 1), 0, NULL);
  }
  return s;
}

// Argument |i| (a float or a tensor of one number) for scalar arithmetic.
static hlo_t number(const step_t* s, int i) {
  return hlo_reshape(tt_b(s->l), tt_operand(s->l, i, s->scalars), 0, NULL);
}

static hlo_t step_count(const step_t* s, int steps, int j) {
  hlo_builder_t* b = tt_b(s->l);
  return hlo_reshape(b, hlo_convert(b, tt_in_list(s->l, steps, j), s->scalars), 0, NULL);
}

// Element j of a list, in the dtype of the arithmetic.
static hlo_t element(const step_t* s, int arg, int j, tt_dtype_t math) {
  return hlo_convert(tt_b(s->l), tt_in_list(s->l, arg, j), math);
}

static void write(const step_t* s, int arg, int j, hlo_t value) {
  hlo_builder_t* b = tt_b(s->l);
  hlo_t old = tt_in_list(s->l, arg, j);
  hlo_t r = hlo_convert(b, value, old->dtype);
  if (s->skip) r = hlo_select(b, s->skip, old, r);
  if (!s->functional) {
    tt_mutate(s->l, arg, j, r);
    return;
  }
  int at = 0;
  for (int k = 0; k < arg; k++) at += tt_list_len(s->l, k);
  tt_ret(s->l, at + j, r);
}

// Functional overloads return the lists that do not change as well.
static void keep(const step_t* s, int arg, int j) {
  if (s->functional) write(s, arg, j, tt_in_list(s->l, arg, j));
}

// The gradient as the step sees it: unscaled (and then stored so), negated to maximize.
static hlo_t gradient(const step_t* s, int j, tt_dtype_t math, int grad_scale, bool maximize) {
  hlo_builder_t* b = tt_b(s->l);
  hlo_t g = element(s, 1, j, math);
  if (tt_has(s->l, grad_scale)) {
    hlo_t scale = hlo_reshape(b, tt_in_as(s->l, grad_scale, math), 0, NULL);
    g = hlo_divide(b, g, scale);
    write(s, 1, j, g);
  } else {
    keep(s, 1, j);
  }
  return maximize ? hlo_negate(b, g) : g;
}

static hlo_t scaled(hlo_builder_t* b, hlo_t x, hlo_t factor) {
  return hlo_multiply(b, x, hlo_convert(b, factor, x->dtype));
}
static hlo_t one_minus(hlo_builder_t* b, hlo_t x) { return hlo_subtract(b, tt_num(b, x, 1), x); }

// ---------------------------------------------------------------- adam, adamw
enum { ADAM_PARAMS, ADAM_GRADS, ADAM_AVGS, ADAM_SQS, ADAM_MAX_SQS, ADAM_STEPS, ADAM_LR, ADAM_BETA1, ADAM_BETA2,
       ADAM_DECAY, ADAM_EPS, ADAM_AMSGRAD, ADAM_MAXIMIZE, ADAM_SCALE, ADAM_FOUND_INF };

typedef struct adam_t {
  hlo_t lr, beta1, beta2, decay, eps;
  bool decoupled, amsgrad, maximize;
} adam_t;

static void adam_element(const step_t* s, const adam_t* a, int j) {
  hlo_builder_t* b = tt_b(s->l);
  tt_dtype_t math = tt_opmath(tt_in_list(s->l, ADAM_PARAMS, j)->dtype);
  hlo_t p = element(s, ADAM_PARAMS, j, math), m = element(s, ADAM_AVGS, j, math), v = element(s, ADAM_SQS, j, math);
  hlo_t g = gradient(s, j, math, ADAM_SCALE, a->maximize);
  hlo_t step = step_count(s, ADAM_STEPS, j);
  if (a->decoupled) p = scaled(b, p, one_minus(b, hlo_multiply(b, a->lr, a->decay)));
  else g = hlo_add(b, g, scaled(b, p, a->decay));
  m = hlo_add(b, m, scaled(b, hlo_subtract(b, g, m), one_minus(b, a->beta1)));
  v = hlo_add(b, scaled(b, v, a->beta2), scaled(b, hlo_multiply(b, g, g), one_minus(b, a->beta2)));
  hlo_t largest = v;
  if (a->amsgrad) {
    largest = hlo_maximum(b, element(s, ADAM_MAX_SQS, j, math), v);
    write(s, ADAM_MAX_SQS, j, largest);
  } else if (j < tt_list_len(s->l, ADAM_MAX_SQS)) {
    keep(s, ADAM_MAX_SQS, j);
  }
  hlo_t correction1 = one_minus(b, hlo_power(b, a->beta1, step));
  hlo_t correction2 = hlo_sqrt(b, one_minus(b, hlo_power(b, a->beta2, step)));
  hlo_t root = hlo_divide(b, hlo_sqrt(b, largest), hlo_convert(b, correction2, math));
  hlo_t denominator = hlo_add(b, root, hlo_convert(b, a->eps, math));
  hlo_t move = hlo_divide(b, scaled(b, m, hlo_divide(b, a->lr, correction1)), denominator);
  write(s, ADAM_PARAMS, j, hlo_subtract(b, p, move));
  write(s, ADAM_AVGS, j, m);
  write(s, ADAM_SQS, j, v);
}

static void lower_adam(tt_lower_t* l) {
  step_t s = begin(l, ADAM_FOUND_INF);
  adam_t a = {.lr = number(&s, ADAM_LR), .beta1 = number(&s, ADAM_BETA1), .beta2 = number(&s, ADAM_BETA2),
              .decay = number(&s, ADAM_DECAY), .eps = number(&s, ADAM_EPS), .decoupled = (tt_row(l)->kind & 2) != 0,
              .amsgrad = tt_bool(l, ADAM_AMSGRAD), .maximize = tt_bool(l, ADAM_MAXIMIZE)};
  for (int j = 0; j < tt_list_len(l, ADAM_PARAMS); j++) adam_element(&s, &a, j);
}

// ---------------------------------------------------------------- sgd
enum { SGD_PARAMS, SGD_GRADS, SGD_BUFFERS, SGD_DECAY, SGD_MOMENTUM, SGD_LR, SGD_DAMPENING, SGD_NESTEROV,
       SGD_MAXIMIZE, SGD_FIRST, SGD_SCALE, SGD_FOUND_INF };

static void lower_sgd(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  step_t s = begin(l, SGD_FOUND_INF);
  hlo_t decay = number(&s, SGD_DECAY), momentum = number(&s, SGD_MOMENTUM), lr = number(&s, SGD_LR);
  hlo_t fresh = one_minus(b, number(&s, SGD_DAMPENING));
  // Without momentum the buffers, if any, are left alone.
  hlo_t has_momentum = tt_cmp_num(b, HLO_NE, momentum, 0);
  bool first = tt_bool(l, SGD_FIRST), nesterov = tt_bool(l, SGD_NESTEROV), maximize = tt_bool(l, SGD_MAXIMIZE);
  for (int j = 0; j < tt_list_len(l, SGD_PARAMS); j++) {
    tt_dtype_t math = tt_opmath(tt_in_list(l, SGD_PARAMS, j)->dtype);
    hlo_t p = element(&s, SGD_PARAMS, j, math);
    hlo_t g = gradient(&s, j, math, SGD_SCALE, maximize);
    g = hlo_add(b, g, scaled(b, p, decay));
    if (j < tt_list_len(l, SGD_BUFFERS)) {
      hlo_t old = element(&s, SGD_BUFFERS, j, math);
      hlo_t buf = first ? g : hlo_add(b, scaled(b, old, momentum), scaled(b, g, fresh));
      write(&s, SGD_BUFFERS, j, hlo_select(b, has_momentum, buf, old));
      hlo_t moved = nesterov ? hlo_add(b, g, scaled(b, buf, momentum)) : buf;
      g = hlo_select(b, has_momentum, moved, g);
    }
    write(&s, SGD_PARAMS, j, hlo_subtract(b, p, scaled(b, g, lr)));
  }
}

// ---------------------------------------------------------------- adagrad
enum { ADA_PARAMS, ADA_GRADS, ADA_SUMS, ADA_STEPS, ADA_LR, ADA_LR_DECAY, ADA_DECAY, ADA_EPS, ADA_MAXIMIZE,
       ADA_SCALE, ADA_FOUND_INF };

static void lower_adagrad(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  step_t s = begin(l, ADA_FOUND_INF);
  hlo_t lr = number(&s, ADA_LR), lr_decay = number(&s, ADA_LR_DECAY), decay = number(&s, ADA_DECAY);
  hlo_t eps = number(&s, ADA_EPS);
  for (int j = 0; j < tt_list_len(l, ADA_PARAMS); j++) {
    tt_dtype_t math = tt_opmath(tt_in_list(l, ADA_PARAMS, j)->dtype);
    hlo_t p = element(&s, ADA_PARAMS, j, math);
    hlo_t g = gradient(&s, j, math, ADA_SCALE, tt_bool(l, ADA_MAXIMIZE));
    g = hlo_add(b, g, scaled(b, p, decay));
    hlo_t done = tt_add_num(b, step_count(&s, ADA_STEPS, j), -1);
    hlo_t rate = hlo_divide(b, lr, tt_add_num(b, hlo_multiply(b, done, lr_decay), 1));
    hlo_t sum = hlo_add(b, element(&s, ADA_SUMS, j, math), hlo_multiply(b, g, g));
    hlo_t denominator = hlo_add(b, hlo_sqrt(b, sum), hlo_convert(b, eps, math));
    write(&s, ADA_PARAMS, j, hlo_subtract(b, p, hlo_divide(b, scaled(b, g, rate), denominator)));
    write(&s, ADA_SUMS, j, sum);
    if (!(tt_row(l)->kind & 4)) keep(&s, ADA_STEPS, j);
  }
}

// ---------------------------------------------------------------- gradient scaling
// (list, found_inf) -> (unscaled list, found_inf or 1)
static void lower_unscale(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n = tt_list_len(l, 0);
  hlo_t bad = hlo_scalar(b, TT_BOOL, 0), found = tt_in(l, 1);
  for (int j = 0; j < n; j++) {
    hlo_t x = tt_in_list(l, 0, j);
    tt_dtype_t math = tt_opmath(x->dtype);
    hlo_t wide = hlo_convert(b, x, math);
    bad = hlo_or_(b, bad, hlo_reduce_all(b, hlo_not_(b, hlo_is_finite(b, wide)), HLO_R_OR));
    hlo_t inv_scale = hlo_reshape(b, tt_in_as(l, 2, math), 0, NULL);
    tt_ret(l, j, hlo_convert(b, hlo_multiply(b, wide, inv_scale), x->dtype));
  }
  tt_ret(l, n, hlo_select(b, bad, tt_num(b, found, 1), found));
}

// (scale, growth_tracker, found_inf, growth, backoff, interval) -> (scale, growth_tracker)
static void lower_update_scale(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t scale = tt_in(l, 0), tracker = tt_in(l, 1);
  hlo_t found = hlo_reshape(b, tt_cmp_num(b, HLO_NE, tt_in(l, 2), 0), 0, NULL);
  hlo_t grown = hlo_multiply(b, scale, tt_scalar(l, 3, scale->dtype));
  hlo_t shrunk = hlo_multiply(b, scale, tt_scalar(l, 4, scale->dtype));
  hlo_t good = tt_add_num(b, tracker, 1);
  hlo_t is_due = hlo_compare(b, HLO_EQ, good, hlo_scalar_int(b, tracker->dtype, tt_int(l, 5)));
  hlo_t due = hlo_reshape(b, is_due, scale->rank, scale->dims);
  hlo_t may_grow = hlo_and_(b, due, hlo_is_finite(b, grown));
  hlo_t next = hlo_select(b, may_grow, grown, scale);
  hlo_t zero = tt_num(b, tracker, 0);
  tt_ret(l, 0, hlo_select(b, found, shrunk, next));
  tt_ret(l, 1, hlo_select(b, found, zero, hlo_select(b, is_due, zero, good)));
}

// ---------------------------------------------------------------- rows
// kind: bit 0 functional, bit 1 decoupled weight decay, bit 2 step counters are not among the results.
#define FLAGS (TT_OP_HOST_OPERANDS | TT_OP_NO_META)
#define STEP(op, fn, k)                                                         \
  {.name = op "_", .lower = fn, .kind = (k), .flags = FLAGS},                   \
      {.name = op "_.tensor_lr", .lower = fn, .kind = (k), .flags = FLAGS},     \
      {.name = op, .lower = fn, .kind = (k) | 1, .flags = FLAGS},               \
      {.name = op ".tensor_lr", .lower = fn, .kind = (k) | 5, .flags = FLAGS}

static const tt_op_row_t k_rows[] = {
    STEP("_fused_adam", lower_adam, 0),
    STEP("_fused_adamw", lower_adam, 2),
    STEP("_fused_sgd", lower_sgd, 0),
    STEP("_fused_adagrad", lower_adagrad, 0),
    {.name = "_amp_foreach_non_finite_check_and_unscale", .lower = lower_unscale, .flags = FLAGS},
    {.name = "_amp_update_scale", .lower = lower_update_scale, .flags = FLAGS},
};
TT_OP_FAMILY(optim, k_rows)
