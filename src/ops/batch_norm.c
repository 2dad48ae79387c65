// Batch normalisation: forward in all its overloads, backward, and the pieces of synchronised batch normalisation.
//
// Depends on: ops/nn.h.
// Threads: as op.h.
// Channels are dim 1; statistics are over all other dims, in f32 for halves. Running statistics are new values of their
// arguments (tt_mutate) except in the functional overloads, which return them. With running statistics in use (eval)
// the saved mean and inverse deviation are theirs.
#include "ops/nn.h"

// Where an overload's arguments are; -1: it has none.
typedef struct form_t {
  int8_t running;   // running_mean; running_var follows
  int8_t training;  // the bool; -1: |trains| says
  int8_t momentum;  // eps follows
  bool trains;
  bool reserve;     // returns an empty byte tensor after the three
  bool returns_running;
} form_t;

static int other_dims(hlo_t x, int64_t dims[]) {
  int n = 0;
  for (int d = 0; d < x->rank; d++)
    if (d != 1) dims[n++] = d;
  return n;
}

static bool has_channels(tt_lower_t* l, hlo_t x) {
  if (x->rank >= 2) return true;
  hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "batch norm: input of rank %d has no channel dim", x->rank);
  return false;
}

static hlo_t inverse_std(hlo_builder_t* b, hlo_t var, hlo_t eps) { return hlo_rsqrt(b, hlo_add(b, var, eps)); }

// old + momentum * (fresh - old), in old's dtype.
static hlo_t moved(hlo_builder_t* b, hlo_t old, hlo_t fresh, hlo_t momentum) {
  hlo_t wide = hlo_convert(b, old, fresh->dtype), one = hlo_scalar(b, fresh->dtype, 1);
  hlo_t kept = hlo_multiply(b, hlo_subtract(b, one, momentum), wide);
  return hlo_convert(b, hlo_add(b, kept, hlo_multiply(b, momentum, fresh)), old->dtype);
}

static hlo_t normalised(tt_lower_t* l, hlo_t x, hlo_t mean, hlo_t invstd, int weight_arg) {
  hlo_builder_t* b = tt_b(l);
  hlo_t y = hlo_subtract(b, x, tt_along(b, mean, x, 1)), scale = invstd;
  if (tt_has(l, weight_arg)) scale = hlo_multiply(b, scale, tt_in_as(l, weight_arg, x->dtype));
  y = hlo_multiply(b, y, tt_along(b, scale, x, 1));
  if (tt_has(l, weight_arg + 1)) y = hlo_add(b, y, tt_along(b, tt_in_as(l, weight_arg + 1, x->dtype), x, 1));
  return y;
}

// New running statistics of batch moments over |count| elements; NULL where there is none.
static void update_running(tt_lower_t* l, int running, hlo_t mean, hlo_t var, hlo_t unbias, hlo_t momentum,
                           hlo_t out[2]) {
  hlo_builder_t* b = tt_b(l);
  out[0] = out[1] = NULL;
  if (running < 0) return;
  if (tt_has(l, running)) out[0] = moved(b, tt_in(l, running), mean, momentum);
  if (tt_has(l, running + 1)) out[1] = moved(b, tt_in(l, running + 1), hlo_multiply(b, var, unbias), momentum);
}

// count / (count - 1) of a batch of |count|, which makes a biased variance unbiased.
static hlo_t unbias_factor(hlo_builder_t* b, tt_dtype_t d, int64_t count) {
  return hlo_scalar(b, d, (double)count / ((double)count - 1));
}

// batch norm(input, weight, bias, [running_mean, running_var,] [training,] momentum, eps)
static void lower_batch_norm(tt_lower_t* l) {
  const form_t* f = tt_row(l)->data;
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t x = tt_in_as(l, 0, d), mean, var, fresh[2] = {NULL, NULL}, eps = tt_scalar(l, f->momentum + 1, d);
  if (!has_channels(l, x)) return;
  bool given = f->running >= 0 && tt_has(l, f->running) && tt_has(l, f->running + 1);
  bool train = f->training >= 0 ? tt_bool(l, f->training) : f->trains;
  int64_t dims[TT_MAX_RANK];
  int n = other_dims(x, dims);
  if (train || !given) {
    tt_moments(b, x, n, dims, &mean, &var);
    hlo_t unbias = unbias_factor(b, d, tt_count_over(x, n, dims));
    if (train) update_running(l, f->running, mean, var, unbias, tt_scalar(l, f->momentum, d), fresh);
  } else {
    mean = tt_in_as(l, f->running, d);
    var = tt_in_as(l, f->running + 1, d);
  }
  hlo_t invstd = inverse_std(b, var, eps);
  tt_ret_like(l, 0, normalised(l, x, mean, invstd, 1), 0);
  static const int64_t none[] = {0};
  // In eval PyTorch's CPU kernel saves nothing, its meta kernel says otherwise: as expected here.
  for (int i = 1; i < 3; i++) {
    bool nothing = tt_out_count(l) > i && tt_out(l, i)->rank == 1 && tt_out(l, i)->dims[0] == 0 && mean->dims[0] > 0;
    tt_ret(l, i, nothing ? hlo_splat(b, d, 0, 1, none) : i == 1 ? mean : invstd);
  }
  int next = 3;
  if (f->reserve) tt_ret(l, next++, hlo_splat(b, TT_U8, 0, 1, none));
  for (int i = 0; i < 2; i++) {
    if (f->returns_running) tt_ret(l, next++, fresh[i] != NULL ? fresh[i] : tt_in(l, f->running + i));
    else if (fresh[i] != NULL) tt_mutate(l, f->running + i, 0, fresh[i]);
  }
}

// [native_]batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
// mask, …)
static void lower_batch_norm_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 1)->dtype);
  hlo_t g = tt_in_as(l, 0, d), x = tt_in_as(l, 1, d), mean, invstd;
  if (!has_channels(l, x)) return;
  bool train = tt_bool(l, 7);
  if (train) {
    mean = tt_in_as(l, 5, d);
    invstd = tt_in_as(l, 6, d);
  } else {
    mean = tt_in_as(l, 3, d);
    invstd = inverse_std(b, tt_in_as(l, 4, d), tt_scalar(l, 8, d));
  }
  int64_t dims[TT_MAX_RANK];
  int n = other_dims(x, dims);
  hlo_t count = hlo_scalar(b, d, (double)tt_count_over(x, n, dims));
  hlo_t centred = hlo_subtract(b, x, tt_along(b, mean, x, 1));
  hlo_t sum = hlo_reduce(b, g, HLO_R_ADD, n, dims);
  hlo_t dot = hlo_reduce(b, hlo_multiply(b, g, centred), HLO_R_ADD, n, dims);
  tt_ret(l, 2, NULL);  // None unless asked for
  if (tt_mask_bit(l, 9, 0)) {
    hlo_t scale = tt_has(l, 2) ? hlo_multiply(b, invstd, tt_in_as(l, 2, d)) : invstd, dx = g;
    if (train) {
      hlo_t k = hlo_divide(b, hlo_multiply(b, dot, hlo_multiply(b, invstd, invstd)), count);
      dx = hlo_subtract(b, dx, tt_along(b, hlo_divide(b, sum, count), x, 1));
      dx = hlo_subtract(b, dx, hlo_multiply(b, centred, tt_along(b, k, x, 1)));
    }
    tt_ret_like(l, 0, hlo_multiply(b, dx, tt_along(b, scale, x, 1)), 1);
  }
  if (tt_mask_bit(l, 9, 1)) tt_ret(l, 1, hlo_multiply(b, dot, invstd));
  if (tt_mask_bit(l, 9, 2)) tt_ret(l, 2, sum);
}

// ---------------------------------------------------------------- synchronised batch norm, piece by piece
// batch_norm_stats(input, eps) -> (mean, invstd)
static void lower_stats(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t x = tt_in_as(l, 0, d), mean, var;
  int64_t dims[TT_MAX_RANK];
  if (!has_channels(l, x)) return;
  tt_moments(b, x, other_dims(x, dims), dims, &mean, &var);
  tt_ret(l, 0, mean);
  tt_ret(l, 1, inverse_std(b, var, tt_scalar(l, 1, d)));
}

// batch_norm_update_stats(input, running_mean, running_var, momentum) -> (mean, var)
static void lower_update_stats(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t x = tt_in_as(l, 0, d), mean, var, fresh[2];
  int64_t dims[TT_MAX_RANK];
  if (!has_channels(l, x)) return;
  int n = other_dims(x, dims);
  tt_moments(b, x, n, dims, &mean, &var);
  update_running(l, 1, mean, var, unbias_factor(b, d, tt_count_over(x, n, dims)), tt_scalar(l, 3, d), fresh);
  for (int i = 0; i < 2; i++)
    if (fresh[i] != NULL) tt_mutate(l, 1 + i, 0, fresh[i]);
  tt_ret(l, 0, mean);
  tt_ret(l, 1, var);
}

// batch_norm_elemt(input, weight, bias, mean, invstd, eps)
static void lower_elemt(tt_lower_t* l) {
  tt_dtype_t d = tt_opmath(tt_in(l, 0)->dtype);
  hlo_t x = tt_in_as(l, 0, d);
  if (!has_channels(l, x)) return;
  tt_ret(l, 0, hlo_convert(tt_b(l), normalised(l, x, tt_in_as(l, 3, d), tt_in_as(l, 4, d), 1), tt_in(l, 0)->dtype));
}

// batch_norm_gather_stats[_with_counts](input, mean [R, C], invstd [R, C], running_mean, running_var, momentum, eps,
// count or counts [R]) -> (mean, invstd)
static void lower_gather_stats(tt_lower_t* l) {
  static const int64_t ranks[] = {0};
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 1)->dtype);
  hlo_t mean = tt_in_as(l, 1, d), invstd = tt_in_as(l, 2, d), eps = tt_scalar(l, 6, d), one = hlo_scalar(b, d, 1);
  hlo_t count = tt_is_tensor(l, 7) ? tt_in_as(l, 7, d) : tt_scalar(l, 7, d);
  count = count->rank == 0 ? tt_like(b, count, mean) : tt_along(b, hlo_flatten(b, count), mean, 0);
  hlo_t total = hlo_reduce(b, count, HLO_R_ADD, 1, ranks);
  hlo_t all = hlo_divide(b, hlo_reduce(b, hlo_multiply(b, count, mean), HLO_R_ADD, 1, ranks), total);
  hlo_t apart = hlo_subtract(b, mean, all);
  hlo_t var = hlo_subtract(b, hlo_divide(b, one, hlo_multiply(b, invstd, invstd)), eps);
  var = hlo_multiply(b, count, hlo_add(b, var, hlo_multiply(b, apart, apart)));
  var = hlo_divide(b, hlo_reduce(b, var, HLO_R_ADD, 1, ranks), total);
  hlo_t fresh[2], unbias = hlo_divide(b, total, hlo_subtract(b, total, one));
  update_running(l, 3, all, var, unbias, tt_scalar(l, 5, d), fresh);
  for (int i = 0; i < 2; i++)
    if (fresh[i] != NULL) tt_mutate(l, 3 + i, 0, fresh[i]);
  tt_ret(l, 0, all);
  tt_ret(l, 1, inverse_std(b, var, eps));
}

// batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g)
// -> (sum_dy, sum_dy_xmu, grad_weight, grad_bias)
static void lower_backward_reduce(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_opmath(tt_in(l, 1)->dtype);
  hlo_t g = tt_in_as(l, 0, d), x = tt_in_as(l, 1, d);
  int64_t dims[TT_MAX_RANK];
  if (!has_channels(l, x)) return;
  int n = other_dims(x, dims);
  hlo_t centred = hlo_subtract(b, x, tt_along(b, tt_in_as(l, 2, d), x, 1));
  hlo_t sum = hlo_reduce(b, g, HLO_R_ADD, n, dims);
  hlo_t dot = hlo_reduce(b, hlo_multiply(b, g, centred), HLO_R_ADD, n, dims);
  tt_dtype_t param = tt_has(l, 4) ? tt_in(l, 4)->dtype : d;
  tt_ret(l, 0, tt_bool(l, 5) ? sum : NULL);
  tt_ret(l, 1, tt_bool(l, 5) ? dot : NULL);
  tt_ret(l, 2, tt_bool(l, 6) ? hlo_convert(b, hlo_multiply(b, dot, tt_in_as(l, 3, d)), param) : NULL);
  tt_ret(l, 3, tt_bool(l, 7) ? hlo_convert(b, sum, param) : NULL);
}

// batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count)
static void lower_backward_elemt(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 1);
  tt_dtype_t d = tt_opmath(in->dtype);
  hlo_t g = tt_in_as(l, 0, d), x = tt_in_as(l, 1, d), invstd = tt_in_as(l, 3, d);
  if (!has_channels(l, x)) return;
  hlo_t count = hlo_reduce_all(b, tt_in_as(l, 7, d), HLO_R_ADD);
  hlo_t centred = hlo_subtract(b, x, tt_along(b, tt_in_as(l, 2, d), x, 1));
  hlo_t k = hlo_divide(b, hlo_multiply(b, tt_in_as(l, 6, d), hlo_multiply(b, invstd, invstd)), count);
  hlo_t dx = hlo_subtract(b, g, tt_along(b, hlo_divide(b, tt_in_as(l, 5, d), count), x, 1));
  dx = hlo_subtract(b, dx, hlo_multiply(b, centred, tt_along(b, k, x, 1)));
  hlo_t scale = tt_has(l, 4) ? hlo_multiply(b, invstd, tt_in_as(l, 4, d)) : invstd;
  tt_ret(l, 0, hlo_convert(b, hlo_multiply(b, dx, tt_along(b, scale, x, 1)), in->dtype));
}

static const form_t k_plain = {.running = 3, .training = 5, .momentum = 6};
static const form_t k_no_stats = {.running = -1, .training = 3, .momentum = 4};
static const form_t k_functional = {.running = 3, .training = 5, .momentum = 6, .returns_running = true};
static const form_t k_eval = {.running = 3, .training = -1, .momentum = 5};
static const form_t k_update = {.running = 3, .training = -1, .momentum = 5, .trains = true, .reserve = true};
static const form_t k_update_functional = {.running = 3, .training = -1, .momentum = 5, .trains = true,
                                           .reserve = true, .returns_running = true};
static const form_t k_no_update = {.running = 3, .training = -1, .momentum = 5, .reserve = true};

static const tt_op_row_t k_rows[] = {
    {.name = "native_batch_norm", .lower = lower_batch_norm, .data = &k_plain},
    {.name = "_native_batch_norm_legit", .lower = lower_batch_norm, .data = &k_plain},
    {.name = "_native_batch_norm_legit.no_stats", .lower = lower_batch_norm, .data = &k_no_stats},
    {.name = "_native_batch_norm_legit_functional", .lower = lower_batch_norm, .data = &k_functional},
    {.name = "_native_batch_norm_legit_no_training", .lower = lower_batch_norm, .data = &k_eval},
    {.name = "_batch_norm_with_update", .lower = lower_batch_norm, .data = &k_update},
    {.name = "_batch_norm_with_update_functional", .lower = lower_batch_norm, .data = &k_update_functional},
    {.name = "_batch_norm_no_update", .lower = lower_batch_norm, .data = &k_no_update},
    {.name = "native_batch_norm_backward", .lower = lower_batch_norm_backward},
    {.name = "batch_norm_backward", .lower = lower_batch_norm_backward},
    {.name = "batch_norm_stats", .lower = lower_stats, .flags = TT_OP_NO_META},
    {.name = "batch_norm_update_stats", .lower = lower_update_stats, .flags = TT_OP_NO_META},
    {.name = "batch_norm_elemt", .lower = lower_elemt, .flags = TT_OP_NO_META},
    {.name = "batch_norm_gather_stats", .lower = lower_gather_stats, .flags = TT_OP_NO_META},
    {.name = "batch_norm_gather_stats_with_counts", .lower = lower_gather_stats, .flags = TT_OP_NO_META},
    {.name = "batch_norm_backward_reduce", .lower = lower_backward_reduce, .flags = TT_OP_NO_META},
    {.name = "batch_norm_backward_elemt", .lower = lower_backward_elemt, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(batch_norm, k_rows)
