// Random numbers: uniform, normal, integers and the closed-form distributions; factories and permutations.
//
// Depends on: ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// All draws are counter-based (tt_random_bits), so a program is the same for every state of the generator. Uniforms
// keep as many bits as the result's significand holds, which is what makes PyTorch's half-open range hold exactly.
#include "ops/random.h"
#include "ops/common.h"

// ---------------------------------------------------------------- shapes and dtypes of what is drawn
tt_rand_shape_t tt_rand_shape(tt_lower_t* l) {
  tt_rand_shape_t s = {.dtype = tt_out_dtype(l, 0)};
  if (tt_out_count(l) > 0) {
    const tt_type_t* type = tt_out(l, 0);
    s.rank = type->rank;
    s.dims = type->dims;
  } else {
    hlo_t self = tt_in(l, 0);
    s.rank = self->rank;
    s.dims = self->dims;
  }
  s.math = tt_real_dtype(tt_opmath(s.dtype));
  if (!tt_is_float(s.math)) s.math = TT_F32;
  return s;
}

static tt_dtype_t bits_dtype(tt_dtype_t math) { return math == TT_F64 ? TT_U64 : TT_U32; }

// The top |digits| bits of |bits| as a float in [0, 2^digits).
static hlo_t top_bits(hlo_builder_t* b, hlo_t bits, tt_dtype_t math, int digits) {
  int width = (int)tt_dtype_size(bits->dtype) * 8;
  hlo_t shifted = hlo_shift_right_logical(b, bits, hlo_scalar_int(b, bits->dtype, width - digits));
  return hlo_convert(b, shifted, math);
}

static double inv_pow2(int n) {
  double r = 1;
  for (int i = 0; i < n; i++) r *= 0.5;
  return r;
}

hlo_t tt_bits_unit(hlo_builder_t* b, hlo_t bits, tt_dtype_t math, int digits) {
  return hlo_multiply(b, top_bits(b, bits, math, digits), hlo_scalar(b, math, inv_pow2(digits)));
}

hlo_t tt_bits_unit_open(hlo_builder_t* b, hlo_t bits, tt_dtype_t math) {
  // One bit less than the significand: k + 1/2 is exact, so neither 0 nor 1 can be reached by rounding.
  int digits = tt_mantissa_bits(math) - 1;
  hlo_t half = hlo_add(b, top_bits(b, bits, math, digits), hlo_scalar(b, math, 0.5));
  return hlo_multiply(b, half, hlo_scalar(b, math, inv_pow2(digits)));
}

hlo_t tt_bits_normal(hlo_builder_t* b, hlo_t bits, tt_dtype_t math) {
  int digits = tt_mantissa_bits(math) - 1;
  hlo_t half = hlo_add(b, top_bits(b, bits, math, digits), hlo_scalar(b, math, 0.5));
  hlo_t scaled = hlo_multiply(b, half, hlo_scalar(b, math, 2 * inv_pow2(digits)));
  hlo_t u = hlo_subtract(b, scaled, hlo_scalar(b, math, 1));
  return hlo_multiply(b, hlo_erf_inv(b, u), hlo_scalar(b, math, 1.4142135623730950488));
}

// In (0, 1] with full relative precision near 0, where logarithms look.
static hlo_t unit_log(hlo_builder_t* b, hlo_t bits, tt_dtype_t math) {
  int width = (int)tt_dtype_size(bits->dtype) * 8;
  hlo_t x = hlo_add(b, hlo_convert(b, bits, math), hlo_scalar(b, math, 0.5));
  return hlo_multiply(b, x, hlo_scalar(b, math, inv_pow2(width)));
}

static hlo_t draw(tt_lower_t* l, const tt_rand_shape_t* s) {
  return tt_random_bits(l, bits_dtype(s->math), s->rank, s->dims);
}

static hlo_t draw_unit(tt_lower_t* l, const tt_rand_shape_t* s, int digits) {
  return tt_bits_unit(tt_b(l), draw(l, s), s->math, digits);
}

static hlo_t draw_normal(tt_lower_t* l, const tt_rand_shape_t* s) {
  return tt_bits_normal(tt_b(l), draw(l, s), s->math);
}

// ---------------------------------------------------------------- uniform, normal
static hlo_t uniform_real(tt_lower_t* l, const tt_rand_shape_t* s, hlo_t from, hlo_t to) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_real_dtype(s->dtype);
  hlo_t u = draw_unit(l, s, tt_is_float(dtype) ? tt_mantissa_bits(dtype) : 24);
  if (from == NULL) return hlo_convert(b, u, dtype);
  hlo_t v = hlo_add(b, hlo_multiply(b, u, hlo_subtract(b, to, from)), from);
  v = hlo_convert(b, v, dtype);
  // Rounding of the scaled value may reach |to|, which the range excludes.
  hlo_t reached = hlo_compare(b, HLO_GE, v, hlo_convert(b, to, dtype));
  return hlo_select(b, reached, hlo_convert(b, from, dtype), v);
}

static void uniform_result(tt_lower_t* l, const tt_rand_shape_t* s, hlo_t from, hlo_t to) {
  hlo_t re = uniform_real(l, s, from, to);
  if (!tt_is_complex(s->dtype)) {
    tt_ret(l, 0, re);
    return;
  }
  tt_ret(l, 0, hlo_complex(tt_b(l), re, uniform_real(l, s, from, to)));
}

static void lower_uniform(tt_lower_t* l) {
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t from = tt_scalar(l, 1, s.math), to = tt_scalar(l, 2, s.math);
  tt_check(l, hlo_compare(tt_b(l), HLO_GT, from, to), NULL, TT_INVALID_ARGUMENT,
           "uniform_ expects to return a [from, to) range, but found from > to");
  uniform_result(l, &s, from, to);
}

static void lower_rand(tt_lower_t* l) {
  tt_rand_shape_t s = tt_rand_shape(l);
  uniform_result(l, &s, NULL, NULL);
}

// A standard normal of |s|; complex ones have the variance split over both parts.
static hlo_t standard_normal(tt_lower_t* l, const tt_rand_shape_t* s) {
  hlo_builder_t* b = tt_b(l);
  hlo_t re = draw_normal(l, s);
  if (!tt_is_complex(s->dtype)) return re;
  hlo_t scale = hlo_scalar(b, s->math, 0.70710678118654752440);
  return hlo_complex(b, hlo_multiply(b, re, scale), hlo_multiply(b, draw_normal(l, s), scale));
}

static void lower_randn(tt_lower_t* l) {
  tt_rand_shape_t s = tt_rand_shape(l);
  tt_ret(l, 0, standard_normal(l, &s));
}

static tt_dtype_t normal_dtype(const tt_rand_shape_t* s) {
  return tt_is_complex(s->dtype) ? tt_complex_dtype(s->math) : s->math;
}

// row.kind: index of the mean argument; the standard deviation follows it.
static void lower_normal(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  int mean_arg = tt_row(l)->kind;
  tt_dtype_t dtype = normal_dtype(&s);
  hlo_t std = tt_operand(l, mean_arg + 1, dtype);
  if (tt_is_tensor(l, mean_arg + 1)) {
    hlo_t bad = hlo_compare(b, HLO_LT, hlo_real(b, std), hlo_scalar(b, s.math, 0));
    tt_check(l, hlo_reduce_all(b, bad, HLO_R_OR), NULL, TT_INVALID_ARGUMENT,
             "normal expects all elements of std >= 0.0");
  }
  hlo_t z = standard_normal(l, &s);
  tt_ret(l, 0, hlo_add(b, hlo_multiply(b, z, std), tt_operand(l, mean_arg, dtype)));
}

// ---------------------------------------------------------------- bernoulli and dropout
// row.kind: index of the probability, tensor or scalar.
static void lower_bernoulli(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  int arg = tt_row(l)->kind;
  hlo_t p = tt_operand(l, arg, s.math);
  hlo_t in_range = hlo_and_(b, hlo_compare(b, HLO_GE, p, hlo_scalar(b, s.math, 0)),
                            hlo_compare(b, HLO_LE, p, hlo_scalar(b, s.math, 1)));
  tt_check(l, hlo_not_(b, hlo_reduce_all(b, in_range, HLO_R_AND)), NULL, TT_INVALID_ARGUMENT,
           !tt_is_tensor(l, arg)
               ? "bernoulli_ expects p to be in [0, 1]"
               : "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
                 "If so, please report an enhancement request to PyTorch.)");
  hlo_t u = draw_unit(l, &s, tt_mantissa_bits(s.math));
  tt_ret(l, 0, hlo_convert(b, hlo_compare(b, HLO_LT, u, p), s.dtype));
}

// ---------------------------------------------------------------- closed-form continuous distributions
// PyTorch's meta kernels look at these scalars, but only when a signature is new; a later value is checked here.
static hlo_t positive_scalar(tt_lower_t* l, int arg, tt_dtype_t math, const char* message) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_scalar(l, arg, math);
  tt_check(l, hlo_not_(b, hlo_compare(b, HLO_GT, x, hlo_scalar(b, math, 0))), NULL, TT_INVALID_ARGUMENT, message);
  return x;
}

static void lower_exponential(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t e = hlo_negate(b, hlo_log(b, unit_log(b, draw(l, &s), s.math)));
  // Never zero: callers divide by it (multinomial).
  e = hlo_maximum(b, e, hlo_scalar(b, s.math, inv_pow2(tt_mantissa_bits(s.math) + 1)));
  tt_ret(l, 0, hlo_divide(b, e, positive_scalar(l, 1, s.math, "exponential_ expects lambda > 0.0")));
}

static void lower_geometric(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t p = positive_scalar(l, 1, s.math, "geometric_ expects p to be in (0, 1)");
  tt_check(l, hlo_compare(b, HLO_GE, p, hlo_scalar(b, s.math, 1)), NULL, TT_INVALID_ARGUMENT,
           "geometric_ expects p to be in (0, 1)");
  hlo_t log_q = hlo_log_plus_one(b, hlo_negate(b, p));
  hlo_t k = hlo_ceil(b, hlo_divide(b, hlo_log(b, unit_log(b, draw(l, &s), s.math)), log_q));
  k = hlo_maximum(b, k, hlo_scalar(b, s.math, 1));
  tt_ret(l, 0, hlo_convert(b, k, s.dtype));
}

static void lower_cauchy(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t u = tt_bits_unit_open(b, draw(l, &s), s.math);
  hlo_t angle = hlo_multiply(b, hlo_subtract(b, u, hlo_scalar(b, s.math, 0.5)),
                             hlo_scalar(b, s.math, 3.14159265358979323846));
  hlo_t v = hlo_multiply(b, hlo_tan(b, angle), positive_scalar(l, 2, s.math, "cauchy_ expects sigma > 0.0"));
  tt_ret(l, 0, hlo_add(b, v, tt_scalar(l, 1, s.math)));
}

static void lower_log_normal(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t z = hlo_multiply(b, draw_normal(l, &s), positive_scalar(l, 2, s.math, "log_normal_ expects std > 0.0"));
  tt_ret(l, 0, hlo_exponential(b, hlo_add(b, z, tt_scalar(l, 1, s.math))));
}

// ---------------------------------------------------------------- integers
// Largest value that random_() without bounds gives in |dtype|.
static hlo_t random_max(hlo_builder_t* b, tt_dtype_t dtype) {
  if (tt_is_float(dtype)) return hlo_scalar_int(b, TT_U64, (int64_t)1 << tt_mantissa_bits(dtype));
  if (dtype == TT_BOOL) return hlo_scalar_int(b, TT_U64, 1);
  return hlo_convert(b, hlo_highest(b, dtype), TT_U64);
}

// Integers in [from, from + range) as |s|'s dtype; a |range| of 0 stands for 2^64. |from| and |range| are 0-d u64.
static hlo_t random_range(tt_lower_t* l, const tt_rand_shape_t* s, hlo_t from, hlo_t range) {
  hlo_builder_t* b = tt_b(l);
  hlo_t bits = tt_random_bits(l, TT_U64, s->rank, s->dims);
  hlo_t zero = hlo_scalar_int(b, TT_U64, 0);
  hlo_t whole = hlo_compare(b, HLO_EQ, range, zero);
  hlo_t divisor = hlo_maximum(b, range, hlo_scalar_int(b, TT_U64, 1));
  hlo_t r = hlo_select(b, whole, bits, hlo_remainder(b, bits, divisor));
  r = hlo_add(b, r, from);
  if (s->dtype == TT_U64) return r;
  return hlo_convert(b, hlo_convert(b, r, TT_I64), s->dtype);
}

static void random_between(tt_lower_t* l, hlo_t low, hlo_t high) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t from = hlo_convert(b, low, TT_U64);
  if (high == NULL) {
    hlo_t range = hlo_add(b, hlo_subtract(b, random_max(b, s.dtype), from), hlo_scalar_int(b, TT_U64, 1));
    tt_ret(l, 0, random_range(l, &s, from, range));
    return;
  }
  hlo_t v = random_range(l, &s, from, hlo_subtract(b, hlo_convert(b, high, TT_U64), from));
  if (tt_is_float(s.dtype)) {  // conversion may round up to |high|, which the range excludes
    hlo_t reached = hlo_compare(b, HLO_GE, v, hlo_convert(b, high, s.dtype));
    v = hlo_select(b, reached, hlo_convert(b, low, s.dtype), v);
  }
  tt_ret(l, 0, v);
}

static void lower_random(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t range = hlo_add(b, random_max(b, s.dtype), hlo_scalar_int(b, TT_U64, 1));
  tt_ret(l, 0, random_range(l, &s, hlo_scalar_int(b, TT_U64, 0), range));
}

// row.kind: low argument + 1 (0: zero) in the low nibble, high argument + 1 in the next.
#define BOUNDS(low, high) (((low) + 1) | (((high) + 1) << 4))
static void lower_random_between(tt_lower_t* l) {
  int low = (tt_row(l)->kind & 15) - 1, high = (tt_row(l)->kind >> 4) - 1;
  hlo_t from = low < 0 ? hlo_scalar_int(tt_b(l), TT_I64, 0) : tt_scalar(l, low, TT_I64);
  hlo_t to = NULL;
  if (tt_has(l, high)) {
    to = tt_is_tensor(l, high) ? hlo_convert(tt_b(l), tt_in(l, high), TT_I64) : tt_scalar(l, high, TT_I64);
    if (to->rank > 0) to = hlo_reshape(tt_b(l), to, 0, NULL);
    tt_check(l, hlo_compare(tt_b(l), HLO_GE, from, to), NULL, TT_INVALID_ARGUMENT,
             "random_ expects 'from' to be less than 'to'");
  }
  random_between(l, from, to);
}

static void lower_randperm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_type_t* out = tt_out(l, 0);
  // 64-bit keys: equal ones, which would bias the order, do not occur in practice.
  hlo_t operands[2] = {tt_random_bits(l, TT_U64, out->rank, out->dims),
                       hlo_iota(b, TT_I64, out->rank, out->dims, 0)};
  hlo_region_t* less = hlo_region_begin(b);
  hlo_t x = hlo_region_arg(b, less, TT_U64, 0, NULL), y = hlo_region_arg(b, less, TT_U64, 0, NULL);
  (void)hlo_region_arg(b, less, TT_I64, 0, NULL);
  (void)hlo_region_arg(b, less, TT_I64, 0, NULL);
  hlo_t before = hlo_compare(b, HLO_LT, x, y);
  hlo_region_end(b, less, 1, &before);
  hlo_t sorted[2];
  hlo_sort(b, 2, operands, 0, false, less, sorted);
  tt_ret(l, 0, hlo_convert(b, sorted[1], out->dtype));
}

// ---------------------------------------------------------------- multinomial
// First index along the last dim whose cumulative weight exceeds |x| ([rows, n] for |cdf| [rows, k]).
static hlo_t search_cdf(hlo_builder_t* b, hlo_t cdf, hlo_t x) {
  int64_t k = cdf->dims[1];
  int steps = 0;
  while (((int64_t)1 << steps) < k) steps++;
  hlo_t zeros = hlo_convert(b, hlo_zeros_like(b, x), TT_I64);
  hlo_t init[2] = {zeros, hlo_scalar_int(b, TT_I64, (int64_t)1 << steps)};
  hlo_region_t* cond = hlo_region_begin(b);
  (void)hlo_region_arg(b, cond, TT_I64, x->rank, x->dims);
  hlo_t go = hlo_compare(b, HLO_GT, hlo_region_arg(b, cond, TT_I64, 0, NULL), hlo_scalar_int(b, TT_I64, 1));
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  hlo_t low = hlo_region_arg(b, body, TT_I64, x->rank, x->dims);
  hlo_t step = hlo_divide(b, hlo_region_arg(b, body, TT_I64, 0, NULL), hlo_scalar_int(b, TT_I64, 2));
  hlo_t probe = hlo_add(b, low, step);
  hlo_t last = hlo_minimum(b, hlo_subtract(b, probe, hlo_scalar_int(b, TT_I64, 1)), hlo_scalar_int(b, TT_I64, k - 1));
  hlo_t below = hlo_compare(b, HLO_LE, hlo_take_along(b, cdf, last, 1), x);
  hlo_t inside = hlo_compare(b, HLO_LT, probe, hlo_scalar_int(b, TT_I64, k));
  hlo_t next[2] = {hlo_select(b, hlo_and_(b, below, inside), probe, low), step};
  hlo_region_end(b, body, 2, next);
  hlo_t out[2];
  hlo_while(b, 2, init, cond, body, out);
  return out[0];
}

// With replacement: inversion of the cumulative weights. |p|: [rows, k]; gives [rows, n].
static hlo_t sample_replaced(tt_lower_t* l, hlo_t p, int64_t n) {
  hlo_builder_t* b = tt_b(l);
  int64_t rows = p->dims[0], k = p->dims[1], dims[2] = {rows, n};
  hlo_t cdf = hlo_scan(b, p, HLO_R_ADD, 1, false);
  cdf = hlo_scan(b, cdf, HLO_R_MAX, 1, false);  // rounding of a parallel sum may break the order that search needs
  hlo_t total = hlo_slice_dim(b, cdf, 1, k - 1, k, 1);
  // One bit less than the significand keeps u * total below total after rounding.
  int digits = tt_mantissa_bits(p->dtype) - 1;
  hlo_t u = tt_bits_unit(b, tt_random_bits(l, bits_dtype(p->dtype), 2, dims), p->dtype, digits);
  hlo_t index = search_cdf(b, cdf, hlo_multiply(b, u, total));
  // The same rounding may step inside a class of weight zero: move to the nearest one before it that has weight.
  hlo_t iota = hlo_iota(b, TT_I64, 2, p->dims, 1);
  hlo_t positive = hlo_compare(b, HLO_GT, p, hlo_scalar(b, p->dtype, 0));
  hlo_t first = hlo_reduce_keep(b, hlo_select(b, positive, iota, hlo_scalar_int(b, TT_I64, k - 1)), HLO_R_MIN, 1,
                                (const int64_t[]){1});
  hlo_t nearest = hlo_scan(b, hlo_select(b, positive, iota, first), HLO_R_MAX, 1, false);
  return hlo_take_along(b, nearest, index, 1);
}

// Without replacement, or a single draw: the race of exponentials. |p|: [rows, k]; gives [rows, n].
static hlo_t sample_race(tt_lower_t* l, hlo_t p, int64_t n) {
  hlo_builder_t* b = tt_b(l);
  hlo_t bits = tt_random_bits(l, bits_dtype(p->dtype), p->rank, p->dims);
  hlo_t e = hlo_negate(b, hlo_log(b, unit_log(b, bits, p->dtype)));
  e = hlo_maximum(b, e, hlo_scalar(b, p->dtype, inv_pow2(tt_mantissa_bits(p->dtype) + 1)));
  hlo_t q = hlo_divide(b, p, e), value, index;
  if (n == 1) {
    hlo_arg_reduce(b, q, true, 1, &value, &index);
    return hlo_unsqueeze(b, index, 1);
  }
  hlo_sort_with_index(b, q, 1, true, &value, &index);
  return hlo_slice_dim(b, index, 1, 0, n, 1);
}

static void check_weights(tt_lower_t* l, hlo_t p, bool race) {
  hlo_builder_t* b = tt_b(l);
  hlo_t zero = hlo_scalar(b, p->dtype, 0);
  hlo_t negative = hlo_reduce_all(b, hlo_compare(b, HLO_LT, p, zero), HLO_R_OR);
  hlo_t wild = hlo_not_(b, hlo_reduce_all(b, hlo_is_finite(b, p), HLO_R_AND));
  if (race) {
    tt_check(l, hlo_or_(b, negative, wild), NULL, TT_INVALID_ARGUMENT,
             "probability tensor contains either `inf`, `nan` or element < 0");
  } else {
    tt_check(l, negative, NULL, TT_INVALID_ARGUMENT,
             "invalid multinomial distribution (encountering probability entry < 0)");
    tt_check(l, wild, NULL, TT_INVALID_ARGUMENT,
             "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  }
  hlo_t empty_row = hlo_compare(b, HLO_LE, hlo_reduce(b, p, HLO_R_ADD, 1, (const int64_t[]){1}), zero);
  tt_check(l, hlo_reduce_all(b, empty_row, HLO_R_OR), NULL, TT_INVALID_ARGUMENT,
           "invalid multinomial distribution (sum of probabilities <= 0)");
}

static void lower_multinomial(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0);
  int64_t n = tt_int(l, 1);
  bool race = !tt_bool(l, 2) || n == 1, vector = self->rank == 1;
  hlo_t p = hlo_convert(b, self, tt_opmath(self->dtype));
  if (vector) p = hlo_unsqueeze(b, p, 0);
  if (hlo_numel(p) > 0) check_weights(l, p, race);
  hlo_t index = race ? sample_race(l, p, n) : sample_replaced(l, p, n);
  tt_ret(l, 0, vector ? hlo_squeeze(b, index, 0) : index);
}

// ---------------------------------------------------------------- rows
#define R(name_, fn, kind_) {.name = name_, .lower = fn, .kind = kind_, .flags = TT_OP_RANDOM}
// Distributions whose parameters PyTorch checks: a cached signature must not let a bad one through.
#define RM(name_, fn, kind_) {.name = name_, .lower = fn, .kind = kind_, .flags = TT_OP_RANDOM | TT_OP_META_EVERY_CALL}
#define RCM(name_, fn, kind_) \
  {.name = name_, .lower = fn, .kind = kind_, .flags = TT_OP_RANDOM | TT_OP_CHECKS | TT_OP_META_EVERY_CALL}
#define RC(name_, fn, kind_) {.name = name_, .lower = fn, .kind = kind_, .flags = TT_OP_RANDOM | TT_OP_CHECKS}
#define RI(name_, low, high)                                                                   \
  {.name = name_, .lower = lower_random_between, .kind = BOUNDS(low, high), \
   .flags = TT_OP_RANDOM | TT_OP_CHECKS | TT_OP_META_EVERY_CALL,                                   \
   .runtime = ((low) < 0 ? 0u : TT_ARG((low) < 0 ? 0 : (low))) | TT_ARG(high)}
static const tt_op_row_t k_rows[] = {
    RCM("uniform", lower_uniform, 0),
    R("rand", lower_rand, 0),
    R("rand.generator", lower_rand, 0),
    R("rand_like", lower_rand, 0),
    R("rand_like.generator", lower_rand, 0),
    R("randn", lower_randn, 0),
    R("randn.generator", lower_randn, 0),
    R("randn_like", lower_randn, 0),
    R("randn_like.generator", lower_randn, 0),
    RM("normal_functional", lower_normal, 1),
    RM("normal_", lower_normal, 1),
    RC("normal.Tensor_float", lower_normal, 0),
    RC("normal.float_Tensor", lower_normal, 0),
    RC("normal.Tensor_Tensor", lower_normal, 0),
    R("normal.float_float", lower_normal, 0),
    RC("bernoulli", lower_bernoulli, 0),
    RCM("bernoulli.p", lower_bernoulli, 1),
    RCM("bernoulli_.float", lower_bernoulli, 1),
    RC("bernoulli.Tensor", lower_bernoulli, 1),
    RCM("exponential", lower_exponential, 0),
    RCM("geometric", lower_geometric, 0),
    RCM("cauchy", lower_cauchy, 0),
    RCM("log_normal", lower_log_normal, 0),
    R("random", lower_random, 0),
    RI("random.from", 1, 2),
    RI("random.to", -1, 1),
    RI("randint", -1, 0),
    RI("randint.generator", -1, 0),
    RI("randint.low", 0, 1),
    RI("randint.low_generator", 0, 1),
    RI("randint_like", -1, 1),
    RI("randint_like.generator", -1, 1),
    RI("randint_like.Tensor", -1, 1),
    RI("randint_like.Tensor_generator", -1, 1),
    RI("randint_like.low_dtype", 1, 2),
    RI("randint_like.low_generator_dtype", 1, 2),
    R("randperm", lower_randperm, 0),
    R("randperm.generator", lower_randperm, 0),
    RC("multinomial", lower_multinomial, 0),
};
TT_OP_FAMILY(random, k_rows)
