// Distributions that need a loop: Poisson, binomial, gamma and Dirichlet, and the gradients of the last two.
//
// Depends on: ops/random.h, ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// Small means are inverted by a walk over the probabilities; large ones use transformed rejection (Hormann 1993), gamma
// Marsaglia and Tsang (2000). All elements loop together until the last one has accepted.
#include "ops/common.h"
#include "ops/math.h"
#include "ops/random.h"

static hlo_t C(hlo_builder_t* b, hlo_t like, double v) { return hlo_scalar(b, like->dtype, v); }
static hlo_t add_c(hlo_builder_t* b, hlo_t x, double v) { return hlo_add(b, x, C(b, x, v)); }
static hlo_t mul_c(hlo_builder_t* b, hlo_t x, double v) { return hlo_multiply(b, x, C(b, x, v)); }
static hlo_t gt_c(hlo_builder_t* b, hlo_t x, double v) { return hlo_compare(b, HLO_GT, x, C(b, x, v)); }
static hlo_t lt_c(hlo_builder_t* b, hlo_t x, double v) { return hlo_compare(b, HLO_LT, x, C(b, x, v)); }

// ---------------------------------------------------------------- loops
// Random numbers inside a loop come from a key that the loop carries.
static hlo_t loop_bits(hlo_builder_t* b, hlo_t* key, hlo_t like) {
  hlo_t next;
  hlo_t bits = hlo_rng_bits(b, *key, like->dtype == TT_F64 ? TT_U64 : TT_U32, like->rank, like->dims, &next);
  *key = next;
  return bits;
}

// One attempt: a candidate and whether it is accepted.
typedef void (*attempt_fn)(hlo_builder_t* b, const void* context, hlo_t* key, hlo_t* out_candidate,
                           hlo_t* out_accepted);

// Repeats |attempt| until every element marked in |active| has accepted; others keep |initial|.
static hlo_t reject_loop(tt_lower_t* l, hlo_t initial, hlo_t active, attempt_fn attempt, const void* context) {
  hlo_builder_t* b = tt_b(l);
  const int64_t two = 2;
  hlo_t init[3] = {tt_random_bits(l, TT_U64, 1, &two), initial, active}, out[3];
  hlo_region_t* cond = hlo_region_begin(b);
  (void)hlo_region_arg(b, cond, TT_U64, 1, &two);
  (void)hlo_region_arg(b, cond, initial->dtype, initial->rank, initial->dims);
  hlo_t go = hlo_reduce_all(b, hlo_region_arg(b, cond, TT_BOOL, active->rank, active->dims), HLO_R_OR);
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  hlo_t key = hlo_region_arg(b, body, TT_U64, 1, &two);
  hlo_t value = hlo_region_arg(b, body, initial->dtype, initial->rank, initial->dims);
  hlo_t todo = hlo_region_arg(b, body, TT_BOOL, active->rank, active->dims);
  hlo_t candidate, accepted;
  attempt(b, context, &key, &candidate, &accepted);
  hlo_t next[3] = {key, hlo_select(b, hlo_and_(b, todo, accepted), candidate, value),
                   hlo_and_(b, todo, hlo_not_(b, accepted))};
  hlo_region_end(b, body, 3, next);
  hlo_while(b, 3, init, cond, body, out);
  return out[1];
}

// Number of terms p0, p1, … whose running sum stays below |u|, with p[k] = p[k-1] * (a / k - c). Means are at most 10,
// so 64 terms are all that a float can tell from 1.
static hlo_t walk_pmf(hlo_builder_t* b, hlo_t u, hlo_t p0, hlo_t a, hlo_t c) {
  hlo_t zero = hlo_zeros_like(b, u);
  hlo_t init[4] = {hlo_scalar(b, u->dtype, 0), p0, p0, zero}, out[4];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t k = hlo_region_arg(b, cond, u->dtype, 0, NULL);
  (void)hlo_region_arg(b, cond, u->dtype, u->rank, u->dims);
  hlo_t sum = hlo_region_arg(b, cond, u->dtype, u->rank, u->dims);
  (void)hlo_region_arg(b, cond, u->dtype, u->rank, u->dims);
  hlo_t go = hlo_and_(b, lt_c(b, k, 64), hlo_reduce_all(b, hlo_compare(b, HLO_GT, u, sum), HLO_R_OR));
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  k = add_c(b, hlo_region_arg(b, body, u->dtype, 0, NULL), 1);
  hlo_t p = hlo_region_arg(b, body, u->dtype, u->rank, u->dims);
  sum = hlo_region_arg(b, body, u->dtype, u->rank, u->dims);
  hlo_t count = hlo_region_arg(b, body, u->dtype, u->rank, u->dims);
  count = hlo_add(b, count, hlo_convert(b, hlo_compare(b, HLO_GT, u, sum), u->dtype));
  p = hlo_multiply(b, p, hlo_subtract(b, hlo_divide(b, a, k), c));
  hlo_t next[4] = {k, p, hlo_add(b, sum, p), count};
  hlo_region_end(b, body, 4, next);
  hlo_while(b, 4, init, cond, body, out);
  return out[3];
}

// log k! - (k + 1/2) log(k + 1) + (k + 1) - log(2 pi) / 2: the tail of Stirling's series.
static hlo_t stirling_tail(hlo_builder_t* b, hlo_t k) {
  hlo_t inv = hlo_divide(b, C(b, k, 1), add_c(b, k, 1)), square = hlo_multiply(b, inv, inv);
  hlo_t inner = add_c(b, mul_c(b, square, 1.0 / 1260), -1.0 / 360);
  return hlo_multiply(b, inv, add_c(b, hlo_multiply(b, square, inner), 1.0 / 12));
}

// ---------------------------------------------------------------- Poisson
typedef struct poisson_t {
  hlo_t rate, scale, a, inv_alpha, limit;
} poisson_t;

// log of the Poisson probability of |k| >= 0, in a form that keeps its digits when |rate| is large.
static hlo_t poisson_log_pmf(hlo_builder_t* b, hlo_t rate, hlo_t k) {
  hlo_t k1 = hlo_maximum(b, k, C(b, k, 1));
  hlo_t e = hlo_divide(b, hlo_subtract(b, k1, rate), rate);
  hlo_t deviance = hlo_subtract(b, hlo_multiply(b, add_c(b, e, 1), hlo_log_plus_one(b, e)), e);
  hlo_t inv = hlo_divide(b, C(b, k, 1), k1);
  hlo_t tail = hlo_multiply(b, inv, add_c(b, mul_c(b, hlo_multiply(b, inv, inv), -1.0 / 360), 1.0 / 12));
  hlo_t norm = mul_c(b, hlo_log(b, mul_c(b, k1, 6.283185307179586)), 0.5);
  hlo_t body = hlo_negate(b, hlo_add(b, hlo_multiply(b, rate, deviance), hlo_add(b, norm, tail)));
  return hlo_select(b, lt_c(b, k, 1), hlo_negate(b, rate), body);
}

static void poisson_attempt(hlo_builder_t* b, const void* context, hlo_t* key, hlo_t* out_k, hlo_t* out_accepted) {
  const poisson_t* d = context;
  hlo_t u = add_c(b, tt_bits_unit_open(b, loop_bits(b, key, d->rate), d->rate->dtype), -0.5);
  hlo_t v = tt_bits_unit_open(b, loop_bits(b, key, d->rate), d->rate->dtype);
  hlo_t us = hlo_subtract(b, C(b, u, 0.5), hlo_abs(b, u));
  hlo_t spread = hlo_add(b, hlo_divide(b, mul_c(b, d->a, 2), us), d->scale);
  hlo_t k = hlo_floor(b, add_c(b, hlo_add(b, hlo_multiply(b, spread, u), d->rate), 0.43));
  hlo_t quick = hlo_and_(b, hlo_not_(b, lt_c(b, us, 0.07)), hlo_compare(b, HLO_LE, v, d->limit));
  hlo_t out = hlo_or_(b, lt_c(b, k, 0), hlo_and_(b, lt_c(b, us, 0.013), hlo_compare(b, HLO_GT, v, us)));
  hlo_t envelope = hlo_add(b, hlo_divide(b, d->a, hlo_multiply(b, us, us)), d->scale);
  hlo_t lhs = hlo_log(b, hlo_divide(b, hlo_multiply(b, v, d->inv_alpha), envelope));
  hlo_t slow = hlo_compare(b, HLO_LE, lhs, poisson_log_pmf(b, d->rate, hlo_maximum(b, k, C(b, k, 0))));
  *out_k = k;
  *out_accepted = hlo_or_(b, quick, hlo_and_(b, hlo_not_(b, out), slow));
}

static void lower_poisson(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t rate = tt_in_as(l, 0, s.math);
  hlo_t valid = hlo_compare(b, HLO_GE, rate, C(b, rate, 0));
  tt_check(l, hlo_not_(b, hlo_reduce_all(b, valid, HLO_R_AND)), NULL, TT_INVALID_ARGUMENT,
           "invalid Poisson rate, expected rate to be non-negative");
  hlo_t usable = hlo_and_(b, valid, hlo_is_finite(b, rate));
  hlo_t large = hlo_and_(b, usable, hlo_compare(b, HLO_GE, rate, C(b, rate, 10)));
  hlo_t low = hlo_select(b, hlo_and_(b, usable, hlo_not_(b, large)), rate, C(b, rate, 0));
  hlo_t u = tt_bits_unit_open(b, tt_random_bits(l, s.math == TT_F64 ? TT_U64 : TT_U32, s.rank, s.dims), s.math);
  hlo_t small = walk_pmf(b, u, hlo_exponential(b, hlo_negate(b, low)), low, C(b, low, 0));
  poisson_t d = {.rate = hlo_select(b, large, rate, C(b, rate, 10))};
  d.scale = add_c(b, mul_c(b, hlo_sqrt(b, d.rate), 2.53), 0.931);
  d.a = add_c(b, mul_c(b, d.scale, 0.02483), -0.059);
  d.inv_alpha = add_c(b, hlo_divide(b, C(b, rate, 1.1328), add_c(b, d.scale, -3.4)), 1.1239);
  d.limit = hlo_subtract(b, C(b, rate, 0.9277), hlo_divide(b, C(b, rate, 3.6224), add_c(b, d.scale, -2)));
  tt_ret(l, 0, reject_loop(l, small, large, poisson_attempt, &d));
}

// ---------------------------------------------------------------- binomial
typedef struct binomial_t {
  hlo_t n, p, odds, scale, a, centre, limit, alpha, mode, log_mode;
} binomial_t;

// The part of the log probability that depends on |k|, from (k + 1/2) log(…) and the tails of both factorials.
static hlo_t binomial_shape(hlo_builder_t* b, const binomial_t* d, hlo_t k) {
  hlo_t rest = hlo_subtract(b, d->n, k), rest1 = add_c(b, rest, 1);
  hlo_t ratio = hlo_divide(b, hlo_multiply(b, d->odds, rest1), add_c(b, k, 1));
  hlo_t n1 = add_c(b, d->n, 1);
  hlo_t value = hlo_multiply(b, add_c(b, k, 0.5), hlo_log(b, ratio));
  value = hlo_subtract(b, value, hlo_multiply(b, n1, hlo_log(b, rest1)));
  return hlo_subtract(b, hlo_subtract(b, value, stirling_tail(b, k)), stirling_tail(b, rest));
}

static void binomial_attempt(hlo_builder_t* b, const void* context, hlo_t* key, hlo_t* out_k, hlo_t* out_accepted) {
  const binomial_t* d = context;
  hlo_t u = add_c(b, tt_bits_unit_open(b, loop_bits(b, key, d->n), d->n->dtype), -0.5);
  hlo_t v = tt_bits_unit_open(b, loop_bits(b, key, d->n), d->n->dtype);
  hlo_t us = hlo_subtract(b, C(b, u, 0.5), hlo_abs(b, u));
  hlo_t spread = hlo_add(b, hlo_divide(b, mul_c(b, d->a, 2), us), d->scale);
  hlo_t k = hlo_floor(b, hlo_add(b, hlo_multiply(b, spread, u), d->centre));
  hlo_t quick = hlo_and_(b, hlo_not_(b, lt_c(b, us, 0.07)), hlo_compare(b, HLO_LE, v, d->limit));
  hlo_t out = hlo_or_(b, lt_c(b, k, 0), hlo_compare(b, HLO_GT, k, d->n));
  hlo_t safe = hlo_clamp(b, C(b, k, 0), k, d->n);
  hlo_t envelope = hlo_add(b, hlo_divide(b, d->a, hlo_multiply(b, us, us)), d->scale);
  hlo_t lhs = hlo_log(b, hlo_divide(b, hlo_multiply(b, v, d->alpha), envelope));
  hlo_t rhs = hlo_subtract(b, binomial_shape(b, d, safe), d->log_mode);
  *out_k = safe;
  hlo_t slow = hlo_and_(b, hlo_not_(b, out), hlo_compare(b, HLO_LE, lhs, rhs));
  *out_accepted = hlo_and_(b, hlo_not_(b, out), hlo_or_(b, quick, slow));
}

static hlo_t binomial_large(tt_lower_t* l, hlo_t small, hlo_t large, hlo_t n, hlo_t p) {
  hlo_builder_t* b = tt_b(l);
  binomial_t d = {.n = hlo_select(b, large, n, C(b, n, 40)), .p = hlo_select(b, large, p, C(b, p, 0.5))};
  hlo_t q = hlo_subtract(b, C(b, p, 1), d.p), mean = hlo_multiply(b, d.n, d.p);
  hlo_t deviation = hlo_sqrt(b, hlo_multiply(b, mean, q));
  d.odds = hlo_divide(b, d.p, q);
  d.scale = add_c(b, mul_c(b, deviation, 2.53), 1.15);
  d.a = add_c(b, hlo_add(b, mul_c(b, d.scale, 0.0248), mul_c(b, d.p, 0.01)), -0.0873);
  d.centre = add_c(b, mean, 0.5);
  d.limit = hlo_subtract(b, C(b, p, 0.92), hlo_divide(b, C(b, p, 4.2), d.scale));
  d.alpha = hlo_multiply(b, add_c(b, hlo_divide(b, C(b, p, 5.1), d.scale), 2.83), deviation);
  d.mode = hlo_floor(b, hlo_multiply(b, add_c(b, d.n, 1), d.p));
  d.log_mode = binomial_shape(b, &d, d.mode);
  return reject_loop(l, small, large, binomial_attempt, &d);
}

static void lower_binomial(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t n = tt_in_as(l, 0, s.math), p = tt_in_as(l, 1, s.math);
  hlo_broadcast2(b, &n, &p);
  hlo_t nan = hlo_or_(b, hlo_is_nan(b, n), hlo_is_nan(b, p));
  hlo_t usable = hlo_and_(b, hlo_is_finite(b, n), hlo_not_(b, nan));
  // The rarer of the two outcomes is counted.
  hlo_t flip = gt_c(b, p, 0.5);
  hlo_t rare = hlo_clamp(b, C(b, p, 0), hlo_select(b, flip, hlo_subtract(b, C(b, p, 1), p), p), C(b, p, 0.5));
  rare = hlo_select(b, usable, rare, C(b, p, 0));
  hlo_t count = hlo_select(b, usable, hlo_maximum(b, hlo_floor(b, n), C(b, n, 0)), C(b, n, 0));
  hlo_t large = hlo_compare(b, HLO_GE, hlo_multiply(b, count, rare), C(b, n, 10));
  hlo_t few = hlo_select(b, large, C(b, n, 0), count);
  hlo_t u = tt_bits_unit_open(b, tt_random_bits(l, s.math == TT_F64 ? TT_U64 : TT_U32, n->rank, n->dims), s.math);
  hlo_t odds = hlo_divide(b, rare, hlo_subtract(b, C(b, p, 1), rare));
  hlo_t none = hlo_exponential(b, hlo_multiply(b, few, hlo_log_plus_one(b, hlo_negate(b, rare))));
  hlo_t k = walk_pmf(b, u, none, hlo_multiply(b, add_c(b, few, 1), odds), odds);
  k = binomial_large(l, hlo_minimum(b, k, few), large, count, rare);
  k = hlo_select(b, flip, hlo_subtract(b, count, k), k);
  tt_ret(l, 0, hlo_convert(b, hlo_select(b, nan, C(b, k, __builtin_nan("")), k), s.dtype));
}

// ---------------------------------------------------------------- gamma, Dirichlet
typedef struct gamma_t {
  hlo_t d, c;
} gamma_t;

static void gamma_attempt(hlo_builder_t* b, const void* context, hlo_t* key, hlo_t* out_value, hlo_t* out_accepted) {
  const gamma_t* g = context;
  hlo_t x = tt_bits_normal(b, loop_bits(b, key, g->d), g->d->dtype);
  hlo_t u = tt_bits_unit_open(b, loop_bits(b, key, g->d), g->d->dtype);
  hlo_t root = add_c(b, hlo_multiply(b, g->c, x), 1);
  hlo_t v = hlo_multiply(b, root, hlo_multiply(b, root, root));
  // d * (1 - v + log v), with 1 - v written so that a large shape keeps its digits.
  hlo_t cx = hlo_multiply(b, g->c, x);
  hlo_t excess = hlo_multiply(b, cx, add_c(b, hlo_multiply(b, cx, add_c(b, cx, 3)), 3));
  hlo_t safe = hlo_maximum(b, excess, C(b, x, -0.9999999));
  hlo_t gain = hlo_multiply(b, g->d, hlo_subtract(b, hlo_log_plus_one(b, safe), safe));
  hlo_t bound = hlo_add(b, mul_c(b, hlo_multiply(b, x, x), 0.5), gain);
  *out_value = hlo_multiply(b, g->d, v);
  *out_accepted = hlo_and_(b, gt_c(b, v, 0), hlo_compare(b, HLO_LT, hlo_log(b, u), bound));
}

static hlo_t smallest_normal(hlo_builder_t* b, tt_dtype_t math) {
  return hlo_scalar(b, math, math == TT_F64 ? 2.2250738585072014e-308 : 1.1754943508222875e-38);
}

static hlo_t sample_gamma(tt_lower_t* l, hlo_t alpha) {
  hlo_builder_t* b = tt_b(l);
  hlo_t usable = hlo_and_(b, hlo_is_finite(b, alpha), gt_c(b, alpha, 0));
  hlo_t safe = hlo_select(b, usable, alpha, C(b, alpha, 1));
  hlo_t boosted = lt_c(b, safe, 1);
  gamma_t g = {.d = add_c(b, hlo_select(b, boosted, add_c(b, safe, 1), safe), -1.0 / 3)};
  g.c = hlo_divide(b, C(b, alpha, 1), hlo_sqrt(b, mul_c(b, g.d, 9)));
  hlo_t x = reject_loop(l, hlo_zeros_like(b, alpha), usable, gamma_attempt, &g);
  tt_dtype_t bits = alpha->dtype == TT_F64 ? TT_U64 : TT_U32;
  hlo_t u = tt_bits_unit_open(b, tt_random_bits(l, bits, alpha->rank, alpha->dims), alpha->dtype);
  hlo_t boost = hlo_power(b, u, hlo_divide(b, C(b, alpha, 1), safe));
  x = hlo_select(b, boosted, hlo_multiply(b, x, boost), x);
  x = hlo_maximum(b, x, smallest_normal(b, alpha->dtype));
  hlo_t zero = hlo_compare(b, HLO_EQ, alpha, C(b, alpha, 0));
  hlo_t edge = hlo_select(b, zero, smallest_normal(b, alpha->dtype), C(b, alpha, __builtin_nan("")));
  return hlo_select(b, usable, x, edge);
}

static void lower_standard_gamma(tt_lower_t* l) {
  tt_rand_shape_t s = tt_rand_shape(l);
  tt_ret(l, 0, hlo_convert(tt_b(l), sample_gamma(l, tt_in_as(l, 0, s.math)), s.dtype));
}

static void lower_sample_dirichlet(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_rand_shape_t s = tt_rand_shape(l);
  hlo_t x = sample_gamma(l, tt_in_as(l, 0, s.math));
  const int64_t last = x->rank - 1;
  hlo_t sum = x->rank == 0 ? x : hlo_reduce_keep(b, x, HLO_R_ADD, 1, &last);
  double below_one = x->dtype == TT_F64 ? 1 - 1.1102230246251565e-16 : 1 - 5.9604644775390625e-08;
  hlo_t share = hlo_clamp(b, smallest_normal(b, x->dtype), hlo_divide(b, x, sum), C(b, x, below_one));
  tt_ret(l, 0, hlo_convert(b, share, s.dtype));
}

// ---------------------------------------------------------------- gradients through the sample
// Both are -(d/d shape of the distribution function) / density, an integral over the part of the axis on one side of
// the sample. With t = log of the distance it is smooth and decays, and a double exponential rule sums it.
#define NODES 96

typedef hlo_t (*integrand_fn)(hlo_builder_t* b, const void* context, hlo_t s);

// Integral over s in (0, inf) of |f|, whose decay has the elementwise length |scale|.
static hlo_t integrate(hlo_builder_t* b, hlo_t scale, integrand_fn f, const void* context) {
  hlo_t init[2] = {hlo_scalar(b, scale->dtype, 0), hlo_zeros_like(b, scale)}, out[2];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t i = hlo_region_arg(b, cond, scale->dtype, 0, NULL);
  (void)hlo_region_arg(b, cond, scale->dtype, scale->rank, scale->dims);
  hlo_t go = lt_c(b, i, NODES);
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  i = hlo_region_arg(b, body, scale->dtype, 0, NULL);
  hlo_t sum = hlo_region_arg(b, body, scale->dtype, scale->rank, scale->dims);
  // s = scale * exp(t - exp(-t)) for t on an even grid over [-4.5, 6].
  const double step = 10.5 / (NODES - 1);
  hlo_t t = add_c(b, mul_c(b, i, step), -4.5);
  hlo_t fall = hlo_exponential(b, hlo_negate(b, t));
  hlo_t s0 = hlo_exponential(b, hlo_subtract(b, t, fall));
  hlo_t weight = mul_c(b, hlo_multiply(b, s0, add_c(b, fall, 1)), step);
  hlo_t term = hlo_multiply(b, hlo_multiply(b, weight, scale), f(b, context, hlo_multiply(b, s0, scale)));
  hlo_t next[2] = {add_c(b, i, 1), hlo_add(b, sum, hlo_select(b, hlo_is_finite(b, term), term, C(b, sum, 0)))};
  hlo_region_end(b, body, 2, next);
  hlo_while(b, 2, init, cond, body, out);
  return out[1];
}

typedef struct shape_grad_t {
  hlo_t x, a, b, left, offset;  // |left|: integrate below the sample; |offset|: what log t is measured from
} shape_grad_t;

// Gamma: t = x exp(-s) below the sample and x exp(s) above it.
static hlo_t gamma_integrand(hlo_builder_t* b, const void* context, hlo_t s) {
  const shape_grad_t* g = context;
  hlo_t signed_s = hlo_select(b, g->left, hlo_negate(b, s), s);
  hlo_t grow = hlo_subtract(b, hlo_multiply(b, g->a, signed_s),
                            hlo_multiply(b, g->x, hlo_exponential_minus_one(b, signed_s)));
  return hlo_multiply(b, hlo_add(b, g->offset, signed_s), hlo_exponential(b, grow));
}

static void lower_standard_gamma_grad(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_math_dtype(l, 0);
  shape_grad_t g = {.a = tt_in_as(l, 0, math), .x = tt_in_as(l, 1, math)};
  hlo_broadcast2(b, &g.a, &g.x);
  g.left = hlo_compare(b, HLO_LE, g.x, g.a);
  g.offset = hlo_subtract(b, hlo_log(b, g.x), tt_math_digamma(b, g.a));
  hlo_t gap = hlo_abs(b, hlo_subtract(b, g.a, g.x));
  hlo_t pace = hlo_maximum(b, gap, hlo_minimum(b, hlo_sqrt(b, hlo_maximum(b, g.x, g.a)), hlo_maximum(b, g.a, g.x)));
  hlo_t area = hlo_multiply(b, integrate(b, hlo_divide(b, C(b, g.x, 1), pace), gamma_integrand, &g), g.x);
  tt_ret(l, 0, hlo_select(b, g.left, hlo_negate(b, area), area));
}

// Beta(a, b): t = x exp(-s) below the sample; 1 - t = (1 - x) exp(-s) above it.
static hlo_t beta_integrand(hlo_builder_t* b, const void* context, hlo_t s) {
  const shape_grad_t* g = context;
  hlo_t y = hlo_subtract(b, C(b, g->x, 1), g->x), fall = hlo_exponential(b, hlo_negate(b, s));
  hlo_t moved = hlo_negate(b, hlo_exponential_minus_one(b, hlo_negate(b, s)));  // 1 - exp(-s)
  hlo_t from = hlo_select(b, g->left, g->x, y), other = hlo_select(b, g->left, y, g->x);
  hlo_t near = hlo_select(b, g->left, g->a, g->b), far = hlo_select(b, g->left, g->b, g->a);
  hlo_t ratio = hlo_log_plus_one(b, hlo_divide(b, hlo_multiply(b, from, moved), other));
  hlo_t grow = hlo_subtract(b, hlo_multiply(b, add_c(b, far, -1), ratio), hlo_multiply(b, near, s));
  hlo_t log_t = hlo_select(b, g->left, hlo_subtract(b, hlo_log(b, g->x), s),
                           hlo_log_plus_one(b, hlo_negate(b, hlo_multiply(b, y, fall))));
  return hlo_multiply(b, hlo_multiply(b, hlo_subtract(b, log_t, g->offset), hlo_exponential(b, grow)), from);
}

static void lower_dirichlet_grad(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t total = tt_in_as(l, 2, math);
  shape_grad_t g = {.x = tt_in_as(l, 0, math), .a = tt_in_as(l, 1, math)};
  hlo_broadcast2(b, &g.x, &total);
  hlo_broadcast2(b, &g.a, &total);
  g.b = hlo_subtract(b, total, g.a);
  g.left = hlo_compare(b, HLO_LE, hlo_multiply(b, g.x, total), g.a);
  g.offset = hlo_subtract(b, tt_math_digamma(b, g.a), tt_math_digamma(b, total));
  hlo_t y = hlo_subtract(b, C(b, g.x, 1), g.x);
  // Rate of decay at the sample, but never below the width of the bulk.
  hlo_t drift = hlo_divide(b, hlo_abs(b, hlo_subtract(b, hlo_multiply(b, g.x, total), g.a)),
                           hlo_select(b, g.left, y, g.x));
  hlo_t near = hlo_select(b, g.left, g.a, g.b);
  hlo_t pace = hlo_maximum(b, drift, hlo_minimum(b, hlo_sqrt(b, near), near));
  hlo_t area = integrate(b, hlo_divide(b, C(b, g.x, 1), pace), beta_integrand, &g);
  tt_ret(l, 0, hlo_divide(b, hlo_select(b, g.left, hlo_negate(b, area), area), y));
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "poisson", .lower = lower_poisson, .flags = TT_OP_RANDOM | TT_OP_CHECKS},
    {.name = "binomial", .lower = lower_binomial, .flags = TT_OP_RANDOM | TT_OP_NO_META},
    {.name = "_standard_gamma", .lower = lower_standard_gamma, .flags = TT_OP_RANDOM},
    {.name = "_standard_gamma_grad", .lower = lower_standard_gamma_grad, .flags = TT_OP_NO_META},
    {.name = "_sample_dirichlet", .lower = lower_sample_dirichlet, .flags = TT_OP_RANDOM | TT_OP_NO_META},
    {.name = "_dirichlet_grad", .lower = lower_dirichlet_grad, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(random_reject, k_rows)
