// Orthogonal polynomials of run-time degree: Chebyshev (four kinds, plain and shifted), Hermite, Laguerre, Legendre.
//
// Depends on: ops/common.h, ops/math.h.
// Threads: as op.h (a lowering runs on one thread).
// The degree is a tensor: all elements walk the recurrence together until the highest degree among them is reached.
// Chebyshev polynomials of higher degree inside (-1, 1) use their trigonometric form, as PyTorch does.
#include <math.h>
#include "ops/common.h"
#include "ops/math.h"

typedef enum poly_t { CHEB_T, CHEB_U, CHEB_V, CHEB_W, HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE } poly_t;
enum { SHIFTED = 16 };  // added to row.kind: the argument is 2 x - 1

static hlo_t pick(hlo_builder_t* b, hlo_t when, hlo_t yes, hlo_t no) { return hlo_select(b, when, yes, no); }

// p1 and the step p[k] from p[k-1] = q and p[k-2] = p.
static hlo_t first(hlo_builder_t* b, poly_t kind, hlo_t x) {
  hlo_t x2 = tt_mul_num(b, x, 2);
  switch (kind) {
    case CHEB_U: case HERMITE_H: return x2;
    case CHEB_V: return tt_add_num(b, x2, -1);
    case CHEB_W: return tt_add_num(b, x2, 1);
    case LAGUERRE: return hlo_subtract(b, tt_num(b, x, 1), x);
    case CHEB_T: case HERMITE_HE: case LEGENDRE: break;
  }
  return x;
}

static hlo_t step(hlo_builder_t* b, poly_t kind, hlo_t x, hlo_t k, hlo_t p, hlo_t q) {
  hlo_t below = tt_add_num(b, k, -1), x2 = tt_mul_num(b, x, 2);
  switch (kind) {
    case HERMITE_H:
      return hlo_subtract(b, hlo_multiply(b, x2, q), hlo_multiply(b, tt_mul_num(b, below, 2), p));
    case HERMITE_HE:
      return hlo_subtract(b, hlo_multiply(b, x, q), hlo_multiply(b, below, p));
    case LAGUERRE: {
      hlo_t a = hlo_subtract(b, tt_add_num(b, tt_mul_num(b, below, 2), 1), x);
      return hlo_divide(b, hlo_subtract(b, hlo_multiply(b, a, q), hlo_multiply(b, below, p)), k);
    }
    case LEGENDRE: {
      hlo_t a = hlo_multiply(b, tt_add_num(b, tt_mul_num(b, below, 2), 1), x);
      return hlo_divide(b, hlo_subtract(b, hlo_multiply(b, a, q), hlo_multiply(b, below, p)), k);
    }
    case CHEB_T: case CHEB_U: case CHEB_V: case CHEB_W: break;
  }
  return hlo_subtract(b, hlo_multiply(b, x2, q), p);
}

// Value at degree n >= 1 by the recurrence, elementwise degrees; degrees of 1 and below give p1.
static hlo_t recurrence(hlo_builder_t* b, poly_t kind, hlo_t x, hlo_t n) {
  hlo_t init[3] = {hlo_scalar(b, x->dtype, 2), hlo_full_like(b, x, 1), first(b, kind, x)}, out[3];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t k = hlo_region_arg(b, cond, x->dtype, 0, NULL);
  (void)hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t q = hlo_region_arg(b, cond, x->dtype, x->rank, x->dims);
  hlo_t live = hlo_and_(b, hlo_compare(b, HLO_LE, k, n), hlo_not_(b, hlo_is_nan(b, q)));
  hlo_t go = hlo_reduce_all(b, live, HLO_R_OR);
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  k = hlo_region_arg(b, body, x->dtype, 0, NULL);
  hlo_t p = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  q = hlo_region_arg(b, body, x->dtype, x->rank, x->dims);
  live = hlo_compare(b, HLO_LE, k, n);
  hlo_t next[3] = {tt_add_num(b, k, 1), hlo_select(b, live, q, p),
                   hlo_select(b, live, step(b, kind, x, k, p, q), q)};
  hlo_region_end(b, body, 3, next);
  hlo_while(b, 3, init, cond, body, out);
  return out[2];
}

// Values of the four Chebyshev kinds inside (-1, 1) by angle.
static hlo_t by_angle(hlo_builder_t* b, poly_t kind, hlo_t x, hlo_t n, hlo_t at_minus_one, hlo_t at_one) {
  hlo_t angle = tt_math_acos(b, x), half = tt_mul_num(b, angle, 0.5);
  hlo_t n_half = hlo_multiply(b, tt_add_num(b, n, 0.5), angle);
  hlo_t n_one = hlo_multiply(b, tt_add_num(b, n, 1), angle);
  hlo_t edge = hlo_select(b, tt_cmp_num(b, HLO_GT, x, 0), at_one, at_minus_one);
  hlo_t top, below;
  switch (kind) {
    case CHEB_U: top = hlo_sine(b, n_one), below = hlo_sine(b, angle); break;
    case CHEB_V: top = hlo_cosine(b, n_half), below = hlo_cosine(b, half); break;
    case CHEB_W: top = hlo_sine(b, n_half), below = hlo_sine(b, half); break;
    default: return hlo_cosine(b, hlo_multiply(b, n, angle));
  }
  return hlo_select(b, tt_cmp_num(b, HLO_EQ, below, 0), edge, hlo_divide(b, top, below));
}

static hlo_t chebyshev(hlo_builder_t* b, poly_t kind, hlo_t x, hlo_t n) {
  hlo_t half_n = tt_mul_num(b, n, 0.5), even = hlo_compare(b, HLO_EQ, hlo_floor(b, half_n), half_n);
  hlo_t sign = hlo_select(b, even, tt_num(b, x, 1), tt_num(b, x, -1));
  hlo_t n1 = tt_add_num(b, n, 1), n21 = tt_add_num(b, tt_mul_num(b, n, 2), 1);
  hlo_t unit = hlo_full_like(b, x, 1);
  hlo_t plus = kind == CHEB_U ? n1 : kind == CHEB_W ? n21 : unit;
  hlo_t minus = kind == CHEB_U ? hlo_multiply(b, n1, sign) : kind == CHEB_V ? hlo_multiply(b, n21, sign) : sign;
  hlo_t a = hlo_abs(b, x), inside = tt_cmp_num(b, HLO_LT, a, 1);
  hlo_t closed = hlo_and_(b, inside, tt_cmp_num(b, HLO_GT, n, kind == CHEB_T ? 6 : 8));
  hlo_t on_edge = tt_cmp_num(b, HLO_EQ, a, 1);
  hlo_t walked = recurrence(b, kind, x, hlo_select(b, hlo_or_(b, closed, on_edge), tt_num(b, x, 1), n));
  hlo_t safe = hlo_select(b, inside, x, tt_num(b, x, 0));
  hlo_t y = pick(b, closed, by_angle(b, kind, safe, n, minus, plus), walked);
  return pick(b, on_edge, pick(b, tt_cmp_num(b, HLO_GT, x, 0), plus, minus), y);
}

static hlo_t other(hlo_builder_t* b, poly_t kind, hlo_t x, hlo_t n) {
  if (kind == HERMITE_H || kind == HERMITE_HE) {
    // Beyond these degrees PyTorch gives NaN instead of walking on.
    double limit = x->dtype == TT_F64 ? 512 : 128;
    hlo_t beyond = tt_cmp_num(b, HLO_GT, n, limit);
    hlo_t y = recurrence(b, kind, x, hlo_select(b, beyond, tt_num(b, x, 1), n));
    return pick(b, beyond, tt_num(b, x, NAN), y);
  }
  hlo_t edge = kind == LAGUERRE ? tt_cmp_num(b, HLO_EQ, x, 0) : tt_cmp_num(b, HLO_EQ, hlo_abs(b, x), 1);
  hlo_t y = recurrence(b, kind, x, hlo_select(b, edge, tt_num(b, x, 1), n)), one = tt_num(b, x, 1);
  if (kind == LAGUERRE) return pick(b, edge, one, y);
  hlo_t half_n = tt_mul_num(b, n, 0.5), even = hlo_compare(b, HLO_EQ, hlo_floor(b, half_n), half_n);
  hlo_t up = hlo_or_(b, tt_cmp_num(b, HLO_GT, x, 0), even);
  return pick(b, edge, pick(b, up, one, tt_num(b, x, -1)), y);
}

static void lower_polynomial(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int kind = tt_row(l)->kind & (SHIFTED - 1);
  tt_dtype_t math = tt_math_dtype(l, 0);
  hlo_t x = tt_operand(l, 0, math), n = tt_operand(l, 1, math);
  hlo_broadcast2(b, &x, &n);
  if (tt_row(l)->kind & SHIFTED) x = tt_add_num(b, tt_mul_num(b, x, 2), -1);
  n = tt_math_trunc(b, n);
  hlo_t y = kind <= CHEB_W ? chebyshev(b, (poly_t)kind, x, n) : other(b, (poly_t)kind, x, n);
  y = pick(b, tt_cmp_num(b, HLO_EQ, n, 0), tt_num(b, x, 1), y);
  tt_ret(l, 0, pick(b, tt_cmp_num(b, HLO_LT, n, 0), tt_num(b, x, 0), y));
}

// ---------------------------------------------------------------- rows
#define P(name_, kind_)                                                   \
  {.name = name_, .lower = lower_polynomial, .kind = kind_},              \
  {.name = name_ ".x_scalar", .lower = lower_polynomial, .kind = kind_},  \
  {.name = name_ ".n_scalar", .lower = lower_polynomial, .kind = kind_}
static const tt_op_row_t k_rows[] = {
    P("special_chebyshev_polynomial_t", CHEB_T),
    P("special_chebyshev_polynomial_u", CHEB_U),
    P("special_chebyshev_polynomial_v", CHEB_V),
    P("special_chebyshev_polynomial_w", CHEB_W),
    P("special_shifted_chebyshev_polynomial_t", CHEB_T | SHIFTED),
    P("special_shifted_chebyshev_polynomial_u", CHEB_U | SHIFTED),
    P("special_shifted_chebyshev_polynomial_v", CHEB_V | SHIFTED),
    P("special_shifted_chebyshev_polynomial_w", CHEB_W | SHIFTED),
    P("special_hermite_polynomial_h", HERMITE_H),
    P("special_hermite_polynomial_he", HERMITE_HE),
    P("special_laguerre_polynomial_l", LAGUERRE),
    P("special_legendre_polynomial_p", LEGENDRE),
};
TT_OP_FAMILY(special_poly, k_rows)
