// Reductions: sums, means, products, truth, extremes and their positions, moments, norms.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// Halves and f8 accumulate in f32 and round once, as PyTorch's CPU kernels do; integers accumulate in the result's
// dtype (modular arithmetic makes the order and the width above it irrelevant).
#include <math.h>

#include "ops/common.h"

// Where a reduction's shape arguments stand in the schema; 0 is "not there" (argument 0 is always the tensor).
typedef struct shape_args_t {
  int dim, keep, dtype;
  bool dim_is_int;      // int or int?, not a list
  bool empty_is_none;   // an empty list reduces nothing (all.dims, any.dims)
} shape_args_t;

typedef struct reduction_t {
  int n;
  int64_t dims[TT_MAX_RANK];
  bool keep;
} reduction_t;

static const shape_args_t k_full = {0, 0, 1, false, false};           // (self, dtype)
static const shape_args_t k_bare = {0, 0, 0, false, false};           // (self)
static const shape_args_t k_list = {1, 2, 3, false, false};           // (self, dim[], keepdim, dtype)
static const shape_args_t k_list_bare = {1, 2, 0, false, false};      // (self, dim[], keepdim)
static const shape_args_t k_dim = {1, 2, 3, true, false};             // (self, dim, keepdim, dtype)
static const shape_args_t k_dim_bare = {1, 2, 0, true, false};        // (self, dim, keepdim)
static const shape_args_t k_truth_list = {1, 2, 0, false, true};      // (self, dim[]?, keepdim)
static const shape_args_t k_count = {1, 0, 0, true, false};           // (self, dim?)
static const shape_args_t k_count_list = {1, 0, 0, false, false};     // (self, dim[])
static const shape_args_t k_moments = {1, 3, 0, false, false};        // (self, dim[]?, correction, keepdim)

static reduction_t all_dims(hlo_t x) {
  reduction_t r = {.n = x->rank};
  for (int i = 0; i < x->rank; i++) r.dims[i] = i;
  return r;
}

static reduction_t read_reduction(tt_lower_t* l, hlo_t x, const shape_args_t* args) {
  reduction_t r = {0};
  if (args->dim == 0 || !tt_has(l, args->dim)) {
    r = all_dims(x);
  } else if (args->dim_is_int) {
    int dim = hlo_dim(tt_b(l), tt_int(l, args->dim), x->rank);
    r.n = x->rank ? 1 : 0;
    r.dims[0] = dim;
  } else if (!args->empty_is_none || tt_list_len(l, args->dim) > 0) {
    r.n = tt_reduce_dims(l, args->dim, x->rank, r.dims);
  }
  r.keep = args->keep && tt_bool(l, args->keep);
  return r;
}

static int64_t reduced_count(hlo_t x, const reduction_t* r) {
  int64_t n = 1;
  for (int i = 0; i < r->n; i++) n *= x->dims[r->dims[i]];
  return n;
}

static hlo_t reduce(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, const reduction_t* r) {
  if (r->n == 0) return x;
  return r->keep ? hlo_reduce_keep(b, x, reducer, r->n, r->dims) : hlo_reduce(b, x, reducer, r->n, r->dims);
}

// |x| reduced with the dims kept, whatever the op asked for: a statistic that is subtracted from its input.
static hlo_t reduce_kept(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, const reduction_t* r) {
  return r->n ? hlo_reduce_keep(b, x, reducer, r->n, r->dims) : x;
}

// |kept| (dims kept as 1) without them, unless the op keeps them.
static hlo_t drop_kept(hlo_builder_t* b, hlo_t kept, const reduction_t* r) {
  if (r->keep) return kept;
  for (int i = r->n - 1; i >= 0; i--) kept = hlo_squeeze(b, kept, (int)r->dims[i]);
  return kept;
}

// ---------------------------------------------------------------- sums and products
// Result dtype of a sum: known, asked for, or PyTorch's rule (integers and bool sum as i64).
static tt_dtype_t sum_dtype(tt_lower_t* l, const shape_args_t* args, hlo_t x) {
  if (tt_out_count(l) > 0) return tt_out_dtype(l, 0);
  tt_dtype_t asked = args->dtype ? tt_dtype_arg(l, args->dtype) : TT_DT_NONE;
  if (asked != TT_DT_NONE) return asked;
  return tt_is_integral(x->dtype) ? TT_I64 : x->dtype;
}

enum { SUM, SUM_OF_NUMBERS, MEAN, PRODUCT };

static void lower_sum(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const shape_args_t* args = tt_row(l)->data;
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, args);
  tt_dtype_t out = sum_dtype(l, args, x);
  if (tt_row(l)->kind == SUM_OF_NUMBERS && !tt_is_integral(x->dtype)) {
    x = hlo_select(b, hlo_is_nan(b, x), hlo_zeros_like(b, x), x);
  }
  int64_t count = reduced_count(x, &r);
  hlo_t y = reduce(b, hlo_convert(b, x, tt_opmath(out)), tt_row(l)->kind == PRODUCT ? HLO_R_MUL : HLO_R_ADD, &r);
  if (tt_row(l)->kind == MEAN) y = hlo_divide(b, y, hlo_scalar(b, y->dtype, (double)count));
  tt_ret(l, 0, hlo_convert(b, y, out));
}

static void lower_truth(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, tt_row(l)->data);
  // uint8 results are PyTorch's old truth values.
  tt_dtype_t out = tt_out_count(l) > 0 ? tt_out_dtype(l, 0) : x->dtype == TT_U8 ? TT_U8 : TT_BOOL;
  hlo_t y = reduce(b, hlo_convert(b, x, TT_BOOL), (hlo_reducer_t)tt_row(l)->kind, &r);
  tt_ret(l, 0, hlo_convert(b, y, out));
}

static void lower_count_nonzero(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, tt_row(l)->data);
  tt_ret(l, 0, reduce(b, hlo_convert(b, hlo_convert(b, x, TT_BOOL), TT_I64), HLO_R_ADD, &r));
}

static void lower_trace(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  if (x->rank != 2) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "trace: expected a matrix, but got tensor with dim %d", x->rank));
    return;
  }
  int64_t rows = x->dims[0], cols = x->dims[1], n = rows < cols ? rows : cols;
  tt_dtype_t out = sum_dtype(l, &k_bare, x);
  // The diagonal of the first n rows is every (cols + 1)-th element of them.
  hlo_t flat = hlo_flatten(b, hlo_slice_dim(b, x, 0, 0, n, 1));
  hlo_t diagonal = hlo_slice_dim(b, flat, 0, 0, n * cols, cols + 1);
  tt_ret(l, 0, hlo_convert(b, hlo_reduce_all(b, hlo_convert(b, diagonal, tt_opmath(out)), HLO_R_ADD), out));
}

static hlo_t u64(hlo_builder_t* b, int64_t value) { return hlo_scalar_int(b, TT_U64, value); }

// Bits of the f64 equal to |x| (f32), put together from x's own: TPUs hold an f64 as two f32 and have no bits of it.
static hlo_t f64_bits_of_f32(hlo_builder_t* b, hlo_t x) {
  hlo_t bits = hlo_convert(b, hlo_bitcast(b, x, TT_U32), TT_U64);
  hlo_t sign = hlo_shift_left(b, hlo_shift_right_logical(b, bits, u64(b, 31)), u64(b, 63));
  hlo_t exponent = hlo_and_(b, hlo_shift_right_logical(b, bits, u64(b, 23)), u64(b, 0xff));
  hlo_t mantissa = hlo_and_(b, bits, u64(b, 0x7fffff)), zero = u64(b, 0);
  hlo_t subnormal = hlo_and_(b, hlo_compare(b, HLO_EQ, exponent, zero), hlo_compare(b, HLO_NE, mantissa, zero));
  // A subnormal's first set bit moves up to where the hidden one is.
  hlo_t shift = hlo_subtract(b, hlo_count_leading_zeros(b, mantissa), u64(b, 40));
  shift = hlo_select(b, subnormal, shift, zero);
  hlo_t fraction = hlo_and_(b, hlo_shift_left(b, mantissa, shift), u64(b, 0x7fffff));
  hlo_t wide = hlo_add(b, exponent, u64(b, 1023 - 127));
  wide = hlo_select(b, subnormal, hlo_subtract(b, u64(b, 1023 - 127 + 1), shift), wide);
  wide = hlo_select(b, hlo_compare(b, HLO_EQ, exponent, u64(b, 0xff)), u64(b, 0x7ff), wide);
  hlo_t empty = hlo_and_(b, hlo_compare(b, HLO_EQ, exponent, zero), hlo_compare(b, HLO_EQ, mantissa, zero));
  wide = hlo_select(b, empty, zero, wide);
  hlo_t magnitude = hlo_or_(b, hlo_shift_left(b, wide, u64(b, 52)), hlo_shift_left(b, fraction, u64(b, 29)));
  return hlo_or_(b, sign, magnitude);
}

// XOR of the elements' bits, each widened to its 64-bit equivalent first.
static void lower_hash_tensor(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  static const shape_args_t args = {1, 2, 0, false, false};
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, &args);
  if (x->dtype == TT_F64) {
    x = hlo_bitcast(b, x, TT_U64);
  } else if (tt_is_float(x->dtype)) {
    x = f64_bits_of_f32(b, hlo_convert(b, x, TT_F32));
  } else {
    x = hlo_convert(b, tt_is_signed_int(x->dtype) ? hlo_convert(b, x, TT_I64) : x, TT_U64);
  }
  tt_ret(l, 0, reduce(b, x, HLO_R_XOR, &r));
}

// ---------------------------------------------------------------- extremes
static void lower_extreme(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, tt_row(l)->data);
  if (r.n && reduced_count(x, &r) == 0) {
    x = hlo_fail(b, TT_INVALID_ARGUMENT, "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                 "the reduction dim with the 'dim' argument.", tt_row(l)->kind == HLO_R_MAX ? "max" : "min");
    r.n = 0;
  }
  tt_ret(l, 0, reduce(b, x, (hlo_reducer_t)tt_row(l)->kind, &r));
}

static void lower_aminmax(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, tt_row(l)->data);
  if (r.n && reduced_count(x, &r) == 0) {
    x = hlo_fail(b, TT_INVALID_ARGUMENT, "aminmax(): cannot compute aminmax over an empty dimension as the operation "
                 "has no identity.");
    r.n = 0;
  }
  tt_ret(l, 0, reduce(b, x, HLO_R_MIN, &r));
  tt_ret(l, 1, reduce(b, x, HLO_R_MAX, &r));
}

// Values and positions of the extremes along |dim| (dropped); a 0-d tensor is its own extreme.
static void arg_extreme(hlo_builder_t* b, hlo_t x, bool is_max, int dim, hlo_t* out_value, hlo_t* out_index) {
  if (x->rank == 0) {
    *out_value = x;
    *out_index = hlo_scalar_int(b, TT_I64, 0);
    return;
  }
  tt_dtype_t dtype = x->dtype;
  if (dtype == TT_BOOL) x = hlo_convert(b, x, TT_U8);
  hlo_arg_reduce(b, x, is_max, dim, out_value, out_index);
  *out_value = hlo_convert(b, *out_value, dtype);
}

static void lower_extreme_dim(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), value, index;
  int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  arg_extreme(b, x, tt_row(l)->kind == HLO_R_MAX, dim, &value, &index);
  if (tt_bool(l, 2) && x->rank) {
    value = hlo_unsqueeze(b, value, dim);
    index = hlo_unsqueeze(b, index, dim);
  }
  tt_ret(l, 0, value);
  tt_ret(l, 1, index);
}

static void lower_arg_extreme(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), value, index;
  bool is_max = tt_row(l)->kind == HLO_R_MAX, keep = tt_bool(l, 2);
  int rank = x->rank;
  if (tt_has(l, 1)) {
    int dim = hlo_dim(b, tt_int(l, 1), rank);
    arg_extreme(b, x, is_max, dim, &value, &index);
    if (keep && rank) index = hlo_unsqueeze(b, index, dim);
  } else {
    arg_extreme(b, rank ? hlo_flatten(b, x) : x, is_max, 0, &value, &index);
    int64_t ones[TT_MAX_RANK];
    for (int i = 0; i < rank; i++) ones[i] = 1;
    if (keep) index = hlo_reshape(b, index, rank, ones);
  }
  tt_ret(l, 0, index);
}

// ---------------------------------------------------------------- moments
static hlo_t squared_magnitude(hlo_builder_t* b, hlo_t x) {
  if (!tt_is_complex(x->dtype)) return hlo_multiply(b, x, x);
  hlo_t re = hlo_real(b, x), im = hlo_imag(b, x);
  return hlo_add(b, hlo_multiply(b, re, re), hlo_multiply(b, im, im));
}

enum { MOMENT_STD = 1, MOMENT_WITH_MEAN = 2 };

// Two passes: the squares are of deviations, so nothing cancels.
static void lower_moments(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, &k_moments);
  double count = (double)reduced_count(x, &r);
  double divisor = count - (tt_has(l, 2) ? tt_f64(l, 2) : 1.0);
  x = hlo_convert(b, x, tt_opmath(x->dtype));
  hlo_t mean = hlo_divide(b, reduce_kept(b, x, HLO_R_ADD, &r), hlo_scalar(b, x->dtype, count));
  hlo_t squares = reduce(b, squared_magnitude(b, hlo_subtract(b, x, mean)), HLO_R_ADD, &r);
  hlo_t y = hlo_divide(b, squares, hlo_scalar(b, squares->dtype, divisor > 0 ? divisor : 0.0));
  tt_ret(l, 0, tt_row(l)->kind & MOMENT_STD ? hlo_sqrt(b, y) : y);
  if (tt_row(l)->kind & MOMENT_WITH_MEAN) tt_ret(l, 1, drop_kept(b, mean, &r));
}

static void lower_logsumexp(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, &k_list_bare);
  tt_dtype_t out = tt_out_count(l) > 0 ? tt_out_dtype(l, 0) : tt_float_dtype(x->dtype);
  x = hlo_convert(b, x, tt_opmath(out));
  hlo_t top = reduce_kept(b, hlo_real(b, x), HLO_R_MAX, &r);
  // An infinite maximum is not subtracted: inf - inf would make a nan out of a plain infinity.
  hlo_t infinite = hlo_compare(b, HLO_EQ, hlo_abs(b, top), hlo_scalar(b, top->dtype, INFINITY));
  top = hlo_convert(b, hlo_select(b, infinite, hlo_zeros_like(b, top), top), x->dtype);
  hlo_t sum = reduce(b, hlo_exponential(b, hlo_subtract(b, x, top)), HLO_R_ADD, &r);
  tt_ret(l, 0, hlo_add(b, hlo_log(b, sum), drop_kept(b, top, &r)));
}

// ---------------------------------------------------------------- norms
static hlo_t norm_of(hlo_builder_t* b, hlo_t x, double p, const reduction_t* r) {
  if (p == 2.0) return hlo_sqrt(b, reduce(b, squared_magnitude(b, x), HLO_R_ADD, r));
  if (p == 0.0) {
    hlo_t nonzero = hlo_convert(b, x, TT_BOOL);
    return reduce(b, hlo_convert(b, nonzero, tt_real_dtype(x->dtype)), HLO_R_ADD, r);
  }
  hlo_t a = hlo_abs(b, x);
  if (p == 1.0) return reduce(b, a, HLO_R_ADD, r);
  if (isinf(p)) return reduce(b, a, p > 0 ? HLO_R_MAX : HLO_R_MIN, r);
  hlo_t power = hlo_scalar(b, a->dtype, p), root = hlo_scalar(b, a->dtype, 1.0 / p);
  return hlo_power(b, reduce(b, hlo_power(b, a, power), HLO_R_ADD, r), root);
}

// norm's many overloads: order in argument 1 (None is 2), dim in 2 and keepdim in 3, dtype last.
static void lower_norm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const shape_args_t* args = tt_row(l)->data;
  hlo_t x = tt_in(l, 0);
  reduction_t r = read_reduction(l, x, args);
  tt_dtype_t dtype = args->dtype ? tt_dtype_arg(l, args->dtype) : TT_DT_NONE;
  if (dtype == TT_DT_NONE) dtype = x->dtype;
  double p = tt_has(l, 1) ? tt_f64(l, 1) : 2.0;
  tt_ret(l, 0, hlo_convert(b, norm_of(b, hlo_convert(b, x, tt_opmath(dtype)), p, &r), tt_real_dtype(dtype)));
}

static void lower_dist(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_promote_args(l, 2, (const int[]){0, 1});
  hlo_t d = hlo_subtract(b, tt_in_as(l, 0, tt_opmath(dtype)), tt_in_as(l, 1, tt_opmath(dtype)));
  reduction_t r = all_dims(d);
  tt_ret(l, 0, hlo_convert(b, norm_of(b, d, tt_f64(l, 2), &r), tt_real_dtype(dtype)));
}

// (self, p, dim, maxnorm): each slice along |dim| whose norm is above maxnorm is scaled down to it.
static void lower_renorm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  tt_dtype_t dtype = x->dtype;
  int dim = hlo_dim(b, tt_int(l, 2), x->rank);
  reduction_t r = {.keep = true};
  for (int i = 0; i < x->rank; i++) {
    if (i != dim) r.dims[r.n++] = i;
  }
  x = hlo_convert(b, x, tt_opmath(dtype));
  hlo_t norm = norm_of(b, x, tt_f64(l, 1), &r);
  hlo_t limit = tt_scalar(l, 3, norm->dtype);
  hlo_t scale = hlo_divide(b, limit, hlo_add(b, norm, hlo_scalar(b, norm->dtype, 1e-7)));
  scale = hlo_select(b, hlo_compare(b, HLO_GT, norm, limit), scale, hlo_scalar(b, norm->dtype, 1.0));
  tt_ret(l, 0, hlo_convert(b, hlo_multiply(b, x, hlo_convert(b, scale, x->dtype)), dtype));
}

// ---------------------------------------------------------------- the rows
static const shape_args_t k_norm_full = {0, 0, 0, false, false};        // (self, p)
static const shape_args_t k_norm_dtype = {0, 0, 2, false, false};       // (self, p, dtype)
static const shape_args_t k_norm_dim = {2, 3, 0, false, false};         // (self, p, dim, keepdim)
static const shape_args_t k_norm_dim_dtype = {2, 3, 4, false, false};   // (self, p, dim, keepdim, dtype)
static const shape_args_t k_aminmax = {1, 2, 0, true, false};

static const tt_op_row_t k_rows[] = {
    {.name = "sum", .lower = lower_sum, .kind = SUM, .data = &k_full},
    {.name = "sum.dim_IntList", .lower = lower_sum, .kind = SUM, .data = &k_list},
    {.name = "nansum", .lower = lower_sum, .kind = SUM_OF_NUMBERS, .flags = TT_OP_MORE_DTYPES, .data = &k_list},
    {.name = "mean", .lower = lower_sum, .kind = MEAN, .data = &k_full},
    {.name = "mean.dim", .lower = lower_sum, .kind = MEAN, .data = &k_list},
    {.name = "prod", .lower = lower_sum, .kind = PRODUCT, .data = &k_full},
    {.name = "prod.dim_int", .lower = lower_sum, .kind = PRODUCT, .data = &k_dim},
    {.name = "all", .lower = lower_truth, .kind = HLO_R_AND, .data = &k_bare},
    {.name = "all.dim", .lower = lower_truth, .kind = HLO_R_AND, .data = &k_dim_bare},
    {.name = "all.dims", .lower = lower_truth, .kind = HLO_R_AND, .data = &k_truth_list},
    {.name = "any", .lower = lower_truth, .kind = HLO_R_OR, .data = &k_bare},
    {.name = "any.dim", .lower = lower_truth, .kind = HLO_R_OR, .data = &k_dim_bare},
    {.name = "any.dims", .lower = lower_truth, .kind = HLO_R_OR, .data = &k_truth_list},
    {.name = "_is_all_true", .lower = lower_truth, .kind = HLO_R_AND, .data = &k_bare},
    {.name = "_is_any_true", .lower = lower_truth, .kind = HLO_R_OR, .data = &k_bare},
    {.name = "count_nonzero", .lower = lower_count_nonzero, .data = &k_count},
    {.name = "count_nonzero.dim_IntList", .lower = lower_count_nonzero, .data = &k_count_list},
    {.name = "trace", .lower = lower_trace, .flags = TT_OP_MORE_DTYPES},
    {.name = "hash_tensor", .lower = lower_hash_tensor},
    {.name = "amax", .lower = lower_extreme, .kind = HLO_R_MAX, .data = &k_list_bare},
    {.name = "amin", .lower = lower_extreme, .kind = HLO_R_MIN, .data = &k_list_bare},
    {.name = "max", .lower = lower_extreme, .kind = HLO_R_MAX, .data = &k_bare},
    {.name = "min", .lower = lower_extreme, .kind = HLO_R_MIN, .data = &k_bare},
    {.name = "aminmax", .lower = lower_aminmax, .data = &k_aminmax},
    {.name = "_aminmax", .lower = lower_aminmax, .flags = TT_OP_NO_META, .data = &k_bare},
    {.name = "_aminmax.dim", .lower = lower_aminmax, .flags = TT_OP_NO_META, .data = &k_dim_bare},
    {.name = "max.dim", .lower = lower_extreme_dim, .kind = HLO_R_MAX},
    {.name = "min.dim", .lower = lower_extreme_dim, .kind = HLO_R_MIN},
    {.name = "argmax", .lower = lower_arg_extreme, .kind = HLO_R_MAX},
    {.name = "argmin", .lower = lower_arg_extreme, .kind = HLO_R_MIN},
    {.name = "var.correction", .lower = lower_moments, .fixed = TT_ARG(2)},
    {.name = "std.correction", .lower = lower_moments, .kind = MOMENT_STD, .fixed = TT_ARG(2)},
    {.name = "var_mean.correction", .lower = lower_moments, .kind = MOMENT_WITH_MEAN, .fixed = TT_ARG(2)},
    {.name = "std_mean.correction", .lower = lower_moments, .kind = MOMENT_STD | MOMENT_WITH_MEAN, .fixed = TT_ARG(2)},
    {.name = "logsumexp", .lower = lower_logsumexp},
    {.name = "linalg_vector_norm", .lower = lower_norm, .fixed = TT_ARG(1), .data = &k_norm_dim_dtype},
    {.name = "norm.Scalar", .lower = lower_norm, .fixed = TT_ARG(1), .data = &k_norm_full},
    {.name = "norm.ScalarOpt_dtype", .lower = lower_norm, .fixed = TT_ARG(1), .data = &k_norm_dtype},
    {.name = "norm.ScalarOpt_dim", .lower = lower_norm, .fixed = TT_ARG(1), .data = &k_norm_dim},
    {.name = "norm.ScalarOpt_dim_dtype", .lower = lower_norm, .fixed = TT_ARG(1), .data = &k_norm_dim_dtype},
    {.name = "native_norm", .lower = lower_norm, .flags = TT_OP_NO_META, .fixed = TT_ARG(1), .data = &k_norm_full},
    {.name = "native_norm.ScalarOpt_dim_dtype", .lower = lower_norm, .flags = TT_OP_NO_META, .fixed = TT_ARG(1),
     .data = &k_norm_dim_dtype},
    {.name = "dist", .lower = lower_dist, .fixed = TT_ARG(2)},
    {.name = "renorm", .lower = lower_renorm, .fixed = TT_ARG(1)},
};
TT_OP_FAMILY(reduce, k_rows)
