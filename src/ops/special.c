// Special functions of one and two variables: Bessel, Airy, error functions, incomplete gamma, zeta, logit.
// Orthogonal polynomials are in special_poly.c.
//
// Depends on: ops/common.h, ops/math.h.
// Threads: as op.h (a lowering runs on one thread).
// Smooth pieces are Chebyshev series (special_tables.inc); the singular factor is written out, so that relative
// precision holds near zeros, poles and in the tails.
#include <math.h>
#include "ops/common.h"
#include "ops/math.h"

#define PI 3.14159265358979323846

// ---------------------------------------------------------------- Chebyshev series
typedef struct cheb_t {
  double low, high;
  int n;
  const double* c;
} cheb_t;
#define TT_CHEB(name, lo, hi, ...)                      \
  static const double k_##name##_c[] = {__VA_ARGS__};   \
  static const cheb_t k_##name = {lo, hi, (int)(sizeof(k_##name##_c) / sizeof(double)), k_##name##_c};
#include "ops/special_tables.inc"

// Series at |x|; terms that the dtype cannot see are left out.
static hlo_t cheb(hlo_builder_t* b, const cheb_t* s, hlo_t x) {
  int n = s->n;
  if (x->dtype != TT_F64) {
    while (n > 1 && fabs(s->c[n - 1]) < 1e-9) n--;
  }
  double half = (s->high - s->low) / 2, mid = (s->high + s->low) / 2;
  hlo_t t = tt_mul_num(b, tt_add_num(b, x, -mid), 1 / half), t2 = tt_mul_num(b, t, 2);
  hlo_t b1 = tt_num(b, x, n > 1 ? s->c[n - 1] : 0), b2 = tt_num(b, x, 0);
  for (int k = n - 2; k >= 1; k--) {
    hlo_t next = hlo_add(b, hlo_subtract(b, hlo_multiply(b, t2, b1), b2), tt_num(b, x, s->c[k]));
    b2 = b1;
    b1 = next;
  }
  return hlo_add(b, hlo_subtract(b, hlo_multiply(b, t, b1), b2), tt_num(b, x, s->c[0]));
}

static hlo_t pick(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, double bound, hlo_t yes, hlo_t no) {
  return hlo_select(b, tt_cmp_num(b, cmp, x, bound), yes, no);
}
static hlo_t over(hlo_builder_t* b, double n, hlo_t x) { return hlo_divide(b, tt_num(b, x, n), x); }
static hlo_t at_most(hlo_builder_t* b, hlo_t x, double v) { return hlo_minimum(b, x, tt_num(b, x, v)); }
static hlo_t at_least(hlo_builder_t* b, hlo_t x, double v) { return hlo_maximum(b, x, tt_num(b, x, v)); }
static hlo_t square(hlo_builder_t* b, hlo_t x) { return hlo_multiply(b, x, x); }

// ---------------------------------------------------------------- modified Bessel
static hlo_t i0e(hlo_builder_t* b, hlo_t x) {
  hlo_t a = hlo_abs(b, x), far = over(b, 8, at_least(b, a, 8));
  hlo_t tail = hlo_multiply(b, cheb(b, &k_i0e_far, far), hlo_rsqrt(b, at_least(b, a, 8)));
  return pick(b, HLO_LE, a, 8, cheb(b, &k_i0e_near, a), tail);
}

static hlo_t i1e(hlo_builder_t* b, hlo_t x) {
  hlo_t a = hlo_abs(b, x), far = over(b, 8, at_least(b, a, 8));
  hlo_t tail = hlo_multiply(b, cheb(b, &k_i1e_far, far), hlo_rsqrt(b, at_least(b, a, 8)));
  hlo_t near = hlo_multiply(b, cheb(b, &k_i1e_near, a), x);
  return pick(b, HLO_LE, a, 8, near, hlo_multiply(b, tail, hlo_sign(b, x)));
}

static hlo_t i0(hlo_builder_t* b, hlo_t x) { return hlo_multiply(b, i0e(b, x), hlo_exponential(b, hlo_abs(b, x))); }
static hlo_t i1(hlo_builder_t* b, hlo_t x) { return hlo_multiply(b, i1e(b, x), hlo_exponential(b, hlo_abs(b, x))); }

// K of order 0 or 1, times exp(x) when |scaled|. Infinite at zero, NaN below.
static hlo_t bessel_k(hlo_builder_t* b, hlo_t x, int order, bool scaled) {
  hlo_t low = at_most(b, x, 2), high = at_least(b, x, 2), log_half = hlo_log(b, tt_mul_num(b, low, 0.5));
  hlo_t near;
  if (order == 0) {
    near = hlo_subtract(b, cheb(b, &k_k0_near, square(b, low)), hlo_multiply(b, log_half, i0(b, low)));
  } else {
    near = hlo_add(b, hlo_divide(b, cheb(b, &k_k1_near, square(b, low)), low), hlo_multiply(b, log_half, i1(b, low)));
  }
  if (scaled) near = hlo_multiply(b, near, hlo_exponential(b, low));
  hlo_t far = hlo_multiply(b, cheb(b, order == 0 ? &k_k0_far : &k_k1_far, over(b, 2, high)), hlo_rsqrt(b, high));
  if (!scaled) far = hlo_multiply(b, far, hlo_exponential(b, hlo_negate(b, high)));
  hlo_t y = pick(b, HLO_LE, x, 2, near, far);
  return pick(b, HLO_EQ, x, 0, tt_num(b, x, INFINITY), pick(b, HLO_LT, x, 0, tt_num(b, x, NAN), y));
}
static hlo_t k0(hlo_builder_t* b, hlo_t x) { return bessel_k(b, x, 0, false); }
static hlo_t k1(hlo_builder_t* b, hlo_t x) { return bessel_k(b, x, 1, false); }
static hlo_t k0e(hlo_builder_t* b, hlo_t x) { return bessel_k(b, x, 0, true); }
static hlo_t k1e(hlo_builder_t* b, hlo_t x) { return bessel_k(b, x, 1, true); }

// ---------------------------------------------------------------- Bessel
// The asymptotic form for |x| >= 5: sqrt(2 / (pi x)) (P cos - Q sin) for J, (P sin + Q cos) for Y.
static hlo_t bessel_far(hlo_builder_t* b, hlo_t x, int order, bool second_kind) {
  hlo_t a = at_least(b, x, 5), s = square(b, over(b, 5, a));
  hlo_t p = cheb(b, order == 0 ? &k_p0_far : &k_p1_far, s);
  hlo_t q = hlo_divide(b, cheb(b, order == 0 ? &k_q0_far : &k_q1_far, s), a);
  hlo_t chi = tt_add_num(b, a, order == 0 ? -PI / 4 : -3 * PI / 4);
  hlo_t sine = hlo_sine(b, chi), cosine = hlo_cosine(b, chi);
  hlo_t wave = second_kind ? hlo_add(b, hlo_multiply(b, p, sine), hlo_multiply(b, q, cosine))
                           : hlo_subtract(b, hlo_multiply(b, p, cosine), hlo_multiply(b, q, sine));
  return hlo_multiply(b, wave, hlo_sqrt(b, over(b, 2 / PI, a)));
}

static hlo_t j_near(hlo_builder_t* b, hlo_t x, int order) {
  hlo_t s = at_most(b, square(b, x), 25);
  hlo_t y = cheb(b, order == 0 ? &k_j0_near : &k_j1_near, s);
  y = hlo_multiply(b, y, tt_add_num(b, s, order == 0 ? -(J0_ZERO_1_SQUARED) : -(J1_ZERO_1_SQUARED)));
  y = hlo_multiply(b, y, tt_add_num(b, s, order == 0 ? -(J0_ZERO_2_SQUARED) : -(J1_ZERO_2_SQUARED)));
  return order == 0 ? y : hlo_multiply(b, y, x);
}

static hlo_t j0(hlo_builder_t* b, hlo_t x) {
  hlo_t a = hlo_abs(b, x);
  return pick(b, HLO_LE, a, 5, j_near(b, a, 0), bessel_far(b, a, 0, false));
}

static hlo_t j1(hlo_builder_t* b, hlo_t x) {
  hlo_t a = hlo_abs(b, x), far = hlo_multiply(b, bessel_far(b, a, 1, false), hlo_sign(b, x));
  return pick(b, HLO_LE, a, 5, j_near(b, x, 1), far);
}

static hlo_t bessel_y(hlo_builder_t* b, hlo_t x, int order) {
  hlo_t s = at_most(b, square(b, x), 25), log_j = hlo_multiply(b, hlo_log(b, x), j_near(b, x, order)), near;
  if (order == 0) {
    near = hlo_add(b, cheb(b, &k_y0_near, s), tt_mul_num(b, log_j, 2 / PI));
  } else {
    near = hlo_multiply(b, cheb(b, &k_y1_near, s), x);
    near = hlo_add(b, near, tt_mul_num(b, hlo_subtract(b, log_j, over(b, 1, x)), 2 / PI));
  }
  hlo_t y = pick(b, HLO_LE, x, 5, near, bessel_far(b, x, order, true));
  return pick(b, HLO_EQ, x, 0, tt_num(b, x, -INFINITY), pick(b, HLO_LT, x, 0, tt_num(b, x, NAN), y));
}
static hlo_t y0(hlo_builder_t* b, hlo_t x) { return bessel_y(b, x, 0); }
static hlo_t y1(hlo_builder_t* b, hlo_t x) { return bessel_y(b, x, 1); }

static hlo_t spherical_j0(hlo_builder_t* b, hlo_t x) {
  hlo_t safe = pick(b, HLO_EQ, x, 0, tt_num(b, x, 1), x);
  hlo_t y = pick(b, HLO_EQ, x, 0, tt_num(b, x, 1), hlo_divide(b, hlo_sine(b, safe), safe));
  return hlo_select(b, tt_math_isinf(b, x), tt_num(b, x, 0), y);
}

static hlo_t airy_ai(hlo_builder_t* b, hlo_t x) {
  hlo_t mid = cheb(b, &k_airy_mid, hlo_clamp(b, tt_num(b, x, -3), x, tt_num(b, x, 3)));
  hlo_t a = at_least(b, hlo_abs(b, x), 3), root = hlo_sqrt(b, a), quarter = hlo_rsqrt(b, root);
  hlo_t z = tt_mul_num(b, hlo_multiply(b, a, root), 2.0 / 3), inv = over(b, 1, z), s = square(b, inv);
  hlo_t angle = tt_add_num(b, z, PI / 4);
  hlo_t wave = hlo_subtract(b, hlo_multiply(b, cheb(b, &k_airy_f, s), hlo_sine(b, angle)),
                            hlo_multiply(b, hlo_multiply(b, cheb(b, &k_airy_g, s), inv), hlo_cosine(b, angle)));
  hlo_t left = tt_mul_num(b, hlo_multiply(b, wave, quarter), 0.56418958354775628695);
  hlo_t right = hlo_multiply(b, hlo_multiply(b, cheb(b, &k_airy_dec, inv), quarter),
                             tt_mul_num(b, hlo_exponential(b, hlo_negate(b, z)), 0.28209479177387814347));
  hlo_t y = pick(b, HLO_LT, x, -3, left, pick(b, HLO_GT, x, 3, right, mid));
  return hlo_select(b, tt_math_isinf(b, x), tt_num(b, x, NAN), y);
}

// ---------------------------------------------------------------- error functions
static hlo_t erfcx(hlo_builder_t* b, hlo_t x) {
  hlo_t a = hlo_abs(b, x), shift = tt_add_num(b, a, 3);
  hlo_t t = hlo_select(b, tt_math_isinf(b, a), tt_num(b, x, 1), hlo_divide(b, tt_add_num(b, a, -3), shift));
  hlo_t positive = hlo_divide(b, cheb(b, &k_erfcx, t), tt_add_num(b, a, 0.5));
  // 2 exp(x^2) - erfcx(-x); the square is split, because its rounding error would be magnified by the exponential.
  hlo_t coarse = tt_mul_num(b, hlo_floor(b, tt_mul_num(b, at_most(b, a, 1e4), 16)), 1.0 / 16);
  hlo_t rest = hlo_multiply(b, hlo_subtract(b, a, coarse), hlo_add(b, a, coarse));
  hlo_t grow = hlo_multiply(b, hlo_exponential(b, square(b, coarse)), hlo_exponential(b, rest));
  hlo_t negative = hlo_subtract(b, tt_mul_num(b, grow, 2), positive);
  return pick(b, HLO_LT, x, 0, negative, hlo_select(b, hlo_is_nan(b, x), x, positive));
}

static hlo_t log_ndtr(hlo_builder_t* b, hlo_t x) {
  hlo_t t = tt_mul_num(b, x, 0.70710678118654752440);
  hlo_t low = hlo_subtract(b, hlo_log(b, tt_mul_num(b, erfcx(b, hlo_negate(b, t)), 0.5)), square(b, t));
  hlo_t high = hlo_log_plus_one(b, tt_mul_num(b, hlo_erfc(b, t), -0.5));
  return pick(b, HLO_LT, x, -1, low, high);
}

static hlo_t ndtri(hlo_builder_t* b, hlo_t p) {
  hlo_t upper = tt_cmp_num(b, HLO_GT, p, 0.5);
  hlo_t q = hlo_select(b, upper, hlo_subtract(b, tt_num(b, p, 1), p), p);
  hlo_t inside = hlo_clamp(b, tt_num(b, p, 0.125), p, tt_num(b, p, 0.875));
  hlo_t centre = tt_math_erfinv(b, tt_mul_num(b, tt_add_num(b, inside, -0.5), 2));
  centre = tt_mul_num(b, centre, 1.41421356237309504880);
  hlo_t r = hlo_sqrt(b, tt_mul_num(b, hlo_log(b, at_most(b, q, 0.135)), -2)), z = over(b, 1, r);
  hlo_t series = pick(b, HLO_LE, r, 8, cheb(b, &k_ndtri_near, at_least(b, z, 0.125)),
                      cheb(b, &k_ndtri_far, at_most(b, z, 0.125)));
  hlo_t tail = hlo_subtract(b, r, hlo_multiply(b, hlo_add(b, hlo_log(b, r), series), z));
  tail = hlo_select(b, upper, tail, hlo_negate(b, tail));
  hlo_t y = pick(b, HLO_GE, q, 0.134, centre, tail);
  hlo_t edge = hlo_select(b, upper, tt_num(b, p, INFINITY), tt_num(b, p, -INFINITY));
  y = pick(b, HLO_EQ, q, 0, edge, y);
  return pick(b, HLO_LT, q, 0, tt_num(b, p, NAN), y);
}

static hlo_t entr(hlo_builder_t* b, hlo_t x) {
  hlo_t inside = hlo_negate(b, hlo_multiply(b, x, hlo_log(b, x)));
  hlo_t y = pick(b, HLO_EQ, x, 0, tt_num(b, x, 0), pick(b, HLO_LT, x, 0, tt_num(b, x, -INFINITY), inside));
  return hlo_select(b, hlo_is_nan(b, x), x, y);
}

// ---------------------------------------------------------------- one-variable rows
static const tt_math_fn k_unary[] = {i0e, i1e, i1, i0, k0, k1, k0e, k1e, j0, j1, y0, y1, spherical_j0, airy_ai,
                                     erfcx, log_ndtr, ndtri, entr};
enum { I0E, I1E, I1, I0, K0, K1, K0E, K1E, J0, J1, Y0, Y1, SPHERICAL_J0, AIRY_AI, ERFCX, LOG_NDTR, NDTRI, ENTR };

static void lower_unary(tt_lower_t* l) {
  tt_ret(l, 0, k_unary[tt_row(l)->kind](tt_b(l), tt_in_as(l, 0, tt_math_dtype(l, 0))));
}

// ---------------------------------------------------------------- logit
static void lower_logit(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in_as(l, 0, tt_math_dtype(l, 0)), one = tt_num(b, x, 1);
  if (tt_has(l, 1)) {
    hlo_t low = tt_scalar(l, 1, x->dtype), high = hlo_subtract(b, one, low);
    x = hlo_select(b, hlo_compare(b, HLO_LT, x, low), low, hlo_select(b, hlo_compare(b, HLO_GT, x, high), high, x));
  }
  tt_ret(l, 0, hlo_log(b, hlo_divide(b, x, hlo_subtract(b, one, x))));
}

static void lower_logit_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t grad = tt_in_as(l, 0, math), x = tt_in_as(l, 1, math), one = tt_num(b, x, 1);
  hlo_t slope = hlo_divide(b, grad, hlo_multiply(b, x, hlo_subtract(b, one, x)));
  hlo_t low = tt_has(l, 2) ? tt_scalar(l, 2, math) : tt_num(b, x, 0), high = hlo_subtract(b, one, low);
  hlo_t out = hlo_or_(b, hlo_compare(b, HLO_LT, x, low), hlo_compare(b, HLO_GT, x, high));
  if (!tt_has(l, 2)) {
    hlo_t edge = hlo_or_(b, tt_cmp_num(b, HLO_EQ, x, 0), tt_cmp_num(b, HLO_EQ, x, 1));
    slope = hlo_select(b, edge, tt_mul_num(b, grad, INFINITY), slope);
  }
  tt_ret(l, 0, hlo_select(b, out, tt_num(b, x, tt_has(l, 2) ? 0 : NAN), slope));
}

// ---------------------------------------------------------------- zeta, polygamma
// The compiler's zeta is for positive q. From below zero q moves up to ZETA_FROM, and the terms (q + k)^-x on the way are
// summed one by one: those of q on both sides of zero nearly cancel, which a zeta(x, q) that is rounded would not.
enum { ZETA_FROM = 10 };
static hlo_t zeta_below_zero(hlo_builder_t* b, hlo_t x, hlo_t* q) {
  hlo_t init[3] = {hlo_scalar(b, x->dtype, 0), *q, hlo_zeros_like(b, x)}, out[3];
  hlo_t whole = hlo_compare(b, HLO_EQ, hlo_floor(b, x), x);
  hlo_t steady = hlo_or_(b, hlo_not_(b, whole), hlo_compare(b, HLO_EQ, hlo_floor(b, *q), *q));  // a pole, or not real
  steady = hlo_or_(b, steady, tt_cmp_num(b, HLO_GE, *q, 0));
  init[1] = hlo_select(b, steady, tt_num(b, x, ZETA_FROM), *q);
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t k = hlo_region_arg(b, cond, x->dtype, 0, NULL);
  hlo_t low = tt_cmp_num(b, HLO_LT, hlo_region_arg(b, cond, x->dtype, x->rank, x->dims), ZETA_FROM);
  (void)hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t go = hlo_and_(b, tt_cmp_num(b, HLO_LT, k, 1e5), hlo_reduce_all(b, low, HLO_R_OR));
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  k = tt_add_num(b, hlo_region_arg(b, body, x->dtype, 0, NULL), 1);
  hlo_t at = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  hlo_t sum = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  low = tt_cmp_num(b, HLO_LT, at, ZETA_FROM);
  hlo_t term = hlo_power(b, at, hlo_negate(b, x));
  hlo_t next[3] = {k, hlo_select(b, low, tt_add_num(b, at, 1), at), hlo_select(b, low, hlo_add(b, sum, term), sum)};
  hlo_region_end(b, body, 3, next);
  hlo_while(b, 3, init, cond, body, out);
  *q = hlo_select(b, steady, *q, out[1]);
  return hlo_select(b, steady, tt_num(b, x, 0), out[2]);
}

static hlo_t hurwitz(hlo_builder_t* b, hlo_t x, hlo_t q) {
  hlo_t pole = hlo_and_(b, tt_cmp_num(b, HLO_LE, q, 0), hlo_compare(b, HLO_EQ, hlo_floor(b, q), q));
  pole = hlo_and_(b, pole, tt_cmp_num(b, HLO_GE, x, 1));
  hlo_t below = zeta_below_zero(b, x, &q);
  hlo_t y = hlo_select(b, pole, tt_num(b, x, INFINITY), hlo_add(b, hlo_zeta(b, x, q), below));
  return hlo_select(b, tt_cmp_num(b, HLO_LT, x, 1), tt_num(b, x, NAN), y);  // the compiler's goes on below 1
}

static void lower_zeta(tt_lower_t* l) {
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t x = tt_operand(l, 0, math), q = tt_operand(l, 1, math);
  hlo_broadcast2(tt_b(l), &x, &q);
  tt_ret(l, 0, hurwitz(tt_b(l), x, q));
}

// Derivative of digamma; the reflection formula covers the left half.
static hlo_t trigamma(hlo_builder_t* b, hlo_t x) {
  hlo_t left = tt_cmp_num(b, HLO_LT, x, 0.5);
  hlo_t at = hlo_select(b, left, hlo_subtract(b, tt_num(b, x, 1), x), x);
  hlo_t y = hlo_zeta(b, hlo_full_like(b, x, 2), at);
  // The part of a turn is exact, also just below a whole number. At whole numbers PyTorch's kernel has the sine of a
  // rounded multiple of pi, and so a large number instead of a pole.
  hlo_t whole = hlo_round_nearest_even(b, x), turn = hlo_subtract(b, x, whole);
  turn = hlo_select(b, hlo_compare(b, HLO_EQ, x, whole), x, turn);
  hlo_t bound = over(b, PI * PI, square(b, hlo_sine(b, tt_mul_num(b, turn, PI))));
  return hlo_select(b, left, hlo_subtract(b, bound, y), y);
}

static void lower_polygamma(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int64_t n = tt_int(l, 0);
  hlo_t x = tt_in_as(l, 1, tt_math_dtype(l, 0)), y;
  if (n == 0) {
    y = tt_math_digamma(b, x);
  } else if (n == 1) {
    y = trigamma(b, x);
  } else {
    double factorial = exp(lgamma((double)n + 1));
    y = hurwitz(b, hlo_full_like(b, x, (double)n + 1), x);
    y = tt_mul_num(b, y, n % 2 == 0 ? -factorial : factorial);
  }
  tt_ret(l, 0, y);
}

// ---------------------------------------------------------------- incomplete gamma
// x^a exp(-x) / Gamma(a + 1); Stirling's form keeps the digits of a large |a|.
static hlo_t gamma_front(hlo_builder_t* b, hlo_t a, hlo_t x) {
  hlo_t small = hlo_subtract(b, hlo_multiply(b, a, hlo_log(b, x)), x);
  small = hlo_subtract(b, small, hlo_lgamma(b, tt_add_num(b, a, 1)));
  hlo_t big = at_least(b, a, 10), mu = hlo_divide(b, hlo_subtract(b, x, big), big), inv = over(b, 1, big);
  hlo_t s = square(b, inv);
  hlo_t tail = tt_add_num(b, hlo_multiply(b, s, tt_add_num(b, tt_mul_num(b, s, -1.0 / 1680), 1.0 / 1260)), -1.0 / 360);
  tail = hlo_multiply(b, inv, tt_add_num(b, hlo_multiply(b, s, tail), 1.0 / 12));
  hlo_t large = hlo_multiply(b, big, hlo_subtract(b, hlo_log_plus_one(b, mu), mu));
  large = hlo_subtract(b, hlo_subtract(b, large, tail), tt_mul_num(b, hlo_log(b, tt_mul_num(b, big, 2 * PI)), 0.5));
  return hlo_exponential(b, pick(b, HLO_LT, a, 10, small, large));
}

static double rounding(tt_dtype_t dtype) { return dtype == TT_F64 ? 1.1102230246251565e-16 : 5.9604644775390625e-08; }

// 1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + …
static hlo_t gamma_series(hlo_builder_t* b, hlo_t a, hlo_t x) {
  hlo_t one = hlo_full_like(b, x, 1), init[3] = {hlo_scalar(b, x->dtype, 0), one, one}, out[3];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t k = hlo_region_arg(b, cond, x->dtype, 0, NULL);
  hlo_t term = hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t sum = hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t more = hlo_compare(b, HLO_GT, term, tt_mul_num(b, sum, rounding(x->dtype)));
  hlo_t go = hlo_and_(b, tt_cmp_num(b, HLO_LT, k, 5000), hlo_reduce_all(b, more, HLO_R_OR));
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  k = tt_add_num(b, hlo_region_arg(b, body, x->dtype, 0, NULL), 1);
  term = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  sum = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  term = hlo_multiply(b, term, hlo_divide(b, x, hlo_add(b, a, k)));
  hlo_t next[3] = {k, term, hlo_add(b, sum, term)};
  hlo_region_end(b, body, 3, next);
  hlo_while(b, 3, init, cond, body, out);
  return out[2];
}

// Lentz's evaluation of the continued fraction of Q(a, x) x^-a exp(x) Gamma(a).
static hlo_t gamma_fraction(hlo_builder_t* b, hlo_t a, hlo_t x) {
  hlo_t start = tt_add_num(b, hlo_subtract(b, x, a), 1), d0 = over(b, 1, start);
  hlo_t init[5] = {hlo_scalar(b, x->dtype, 0), hlo_full_like(b, x, 1e30), d0, d0, hlo_full_like(b, x, 2)}, out[5];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t k = hlo_region_arg(b, cond, x->dtype, 0, NULL);
  for (int i = 0; i < 3; i++) (void)hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t change = hlo_abs(b, tt_add_num(b, hlo_region_arg(b, cond, x->dtype, x->rank, x->dims), -1));
  hlo_t more = tt_cmp_num(b, HLO_GT, change, 4 * rounding(x->dtype));
  hlo_t go = hlo_and_(b, tt_cmp_num(b, HLO_LT, k, 5000), hlo_reduce_all(b, more, HLO_R_OR));
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  k = tt_add_num(b, hlo_region_arg(b, body, x->dtype, 0, NULL), 1);
  hlo_t c = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  hlo_t d = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  hlo_t h = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  (void)hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  hlo_t numerator = hlo_multiply(b, k, hlo_subtract(b, a, k));
  hlo_t denominator = hlo_add(b, start, tt_mul_num(b, k, 2));
  d = over(b, 1, hlo_add(b, hlo_multiply(b, numerator, d), denominator));
  c = hlo_add(b, denominator, hlo_divide(b, numerator, c));
  hlo_t factor = hlo_multiply(b, c, d);
  hlo_t next[5] = {k, c, d, hlo_multiply(b, h, factor), factor};
  hlo_region_end(b, body, 5, next);
  hlo_while(b, 5, init, cond, body, out);
  return out[3];
}

// row.kind: 1 for the upper function.
static void lower_igamma(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bool upper = tt_row(l)->kind == 1;
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t a = tt_in_as(l, 0, math), x = tt_in_as(l, 1, math);
  hlo_broadcast2(b, &a, &x);
  hlo_t usable = hlo_and_(b, hlo_and_(b, tt_cmp_num(b, HLO_GT, a, 0), tt_cmp_num(b, HLO_GT, x, 0)),
                          hlo_and_(b, hlo_is_finite(b, a), hlo_is_finite(b, x)));
  hlo_t by_series = hlo_or_(b, tt_cmp_num(b, HLO_LE, x, 1), hlo_compare(b, HLO_LE, x, a));
  // Each method sees only arguments for which it converges.
  hlo_t on_series = hlo_and_(b, usable, by_series), on_fraction = hlo_and_(b, usable, hlo_not_(b, by_series));
  hlo_t sa = hlo_select(b, on_series, a, tt_num(b, a, 1)), sx = hlo_select(b, on_series, x, tt_num(b, x, 0.5));
  hlo_t fa = hlo_select(b, on_fraction, a, tt_num(b, a, 1)), fx = hlo_select(b, on_fraction, x, tt_num(b, x, 4));
  hlo_t front = gamma_front(b, hlo_select(b, usable, a, tt_num(b, a, 1)), hlo_select(b, usable, x, tt_num(b, x, 1)));
  hlo_t p = hlo_multiply(b, front, gamma_series(b, sa, sx));
  hlo_t q = hlo_multiply(b, hlo_multiply(b, front, fa), gamma_fraction(b, fa, fx));
  hlo_t one = tt_num(b, x, 1), zero = tt_num(b, x, 0), nan = tt_num(b, x, NAN);
  hlo_t y = upper ? hlo_select(b, by_series, hlo_subtract(b, one, p), q)
                  : hlo_select(b, by_series, p, hlo_subtract(b, one, q));
  hlo_t all = upper ? zero : one, none = upper ? one : zero;  // the values at x = inf and at x = 0
  y = hlo_select(b, tt_math_isinf(b, x), all, y);
  y = hlo_select(b, tt_math_isinf(b, a), hlo_select(b, tt_math_isinf(b, x), nan, none), y);
  y = pick(b, HLO_EQ, x, 0, none, y);
  y = pick(b, HLO_EQ, a, 0, pick(b, HLO_GT, x, 0, all, nan), y);
  hlo_t bad = hlo_or_(b, tt_cmp_num(b, HLO_LT, a, 0), tt_cmp_num(b, HLO_LT, x, 0));
  bad = hlo_or_(b, bad, hlo_or_(b, hlo_is_nan(b, a), hlo_is_nan(b, x)));
  tt_ret(l, 0, hlo_select(b, bad, nan, y));
}

// ---------------------------------------------------------------- rows
#define U(name_, kind_) {.name = name_, .lower = lower_unary, .kind = kind_, .flags = TT_OP_POINTWISE}
static const tt_op_row_t k_rows[] = {
    U("special_i0e", I0E), U("special_i1", I1), U("special_i1e", I1E),
    U("special_bessel_j0", J0), U("special_bessel_j1", J1), U("special_bessel_y0", Y0), U("special_bessel_y1", Y1),
    U("special_modified_bessel_i0", I0), U("special_modified_bessel_i1", I1),
    U("special_modified_bessel_k0", K0), U("special_modified_bessel_k1", K1),
    U("special_scaled_modified_bessel_k0", K0E), U("special_scaled_modified_bessel_k1", K1E),
    U("special_spherical_bessel_j0", SPHERICAL_J0), U("special_airy_ai", AIRY_AI),
    U("special_erfcx", ERFCX), U("special_log_ndtr", LOG_NDTR), U("special_ndtri", NDTRI), U("special_entr", ENTR),
    {.name = "logit", .lower = lower_logit, .flags = TT_OP_POINTWISE},
    {.name = "logit_backward", .lower = lower_logit_backward, .flags = TT_OP_POINTWISE},
    {.name = "special_zeta", .lower = lower_zeta},
    {.name = "special_zeta.other_scalar", .lower = lower_zeta},
    {.name = "special_zeta.self_scalar", .lower = lower_zeta},
    {.name = "polygamma", .lower = lower_polygamma},
    {.name = "igamma", .lower = lower_igamma},
    {.name = "igammac", .lower = lower_igamma, .kind = 1},
};
TT_OP_FAMILY(special, k_rows)
