// Matrix exponential by scaling, Taylor series and squaring.
//
// Depends on: ops/linalg.h, ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// No system is solved, so that the program is matrix products only. Each matrix of a batch has its own scaling; those
// that need fewer squarings stand still while the others go on.
#include "ops/common.h"
#include "ops/linalg.h"

enum { DEGREE = 18 };
// Largest norm for which the next term is below rounding: x^19 / 19!.
static double reach(tt_dtype_t real) { return real == TT_F64 ? 1 : 3; }

typedef struct taylor_t {
  hlo_t a, eye;
} taylor_t;

// Horner's rule: value = eye + a value / (DEGREE - k).
static void taylor_step(hlo_builder_t* b, void* context, hlo_t k, hlo_t* values) {
  const taylor_t* t = context;
  hlo_t order = hlo_convert(b, hlo_subtract(b, la_int(b, DEGREE), k), t->a->dtype);
  values[0] = hlo_add(b, t->eye, hlo_divide(b, hlo_matmul(b, t->a, values[0]), order));
}

typedef hlo_t (*repeat_fn)(hlo_builder_t* b, hlo_t x);
static hlo_t halved(hlo_builder_t* b, hlo_t x) { return hlo_multiply(b, x, hlo_scalar(b, x->dtype, 0.5)); }
static hlo_t squared(hlo_builder_t* b, hlo_t x) { return hlo_matmul(b, x, x); }

// Applies |fn| to |x| as often as |times| [batch, 1, 1] says.
static hlo_t repeat(hlo_builder_t* b, hlo_t x, hlo_t times, repeat_fn fn) {
  hlo_t init[2] = {la_int(b, 0), x}, out[2];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t k = hlo_region_arg(b, cond, TT_I64, 0, NULL);
  (void)hlo_region_arg(b, cond, x->dtype, 3, x->dims);
  hlo_t go = hlo_compare(b, HLO_LT, k, hlo_reduce_all(b, times, HLO_R_MAX));
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  k = hlo_region_arg(b, body, TT_I64, 0, NULL);
  hlo_t y = hlo_region_arg(b, body, x->dtype, 3, x->dims);
  hlo_t next[2] = {hlo_add(b, k, la_int(b, 1)),
                   hlo_select(b, hlo_compare(b, HLO_LT, k, times), fn(b, y), y)};
  hlo_region_end(b, body, 2, next);
  hlo_while(b, 2, init, cond, body, out);
  return out[1];
}

static void lower_matrix_exp(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t a = la_in(l, 0);
  if (hlo_numel(a) == 0) {
    la_ret_zeros(l, 0);
    return;
  }
  int64_t batch = a->dims[0], n = a->dims[1];
  hlo_t sums = hlo_reduce(b, hlo_abs(b, a), HLO_R_ADD, 1, (const int64_t[]){1});
  hlo_t norm = hlo_reduce(b, sums, HLO_R_MAX, 1, (const int64_t[]){1});
  tt_dtype_t real = norm->dtype;
  // As few squarings as reach allows: they magnify errors. A matrix that is not finite needs none: nor is its result.
  hlo_t finite = hlo_is_finite(b, norm);
  hlo_t safe = hlo_select(b, finite, hlo_maximum(b, norm, hlo_scalar(b, real, 0.25)), hlo_scalar(b, real, 0.25));
  safe = hlo_divide(b, safe, hlo_scalar(b, real, reach(real)));
  hlo_t log2 = hlo_multiply(b, hlo_log(b, safe), hlo_scalar(b, real, 1.4426950408889634));
  hlo_t steps = hlo_maximum(b, hlo_ceil(b, log2), hlo_scalar(b, real, 0));
  steps = hlo_reshape(b, steps, 3, (const int64_t[]){batch, 1, 1});
  hlo_t times = hlo_convert(b, steps, TT_I64);
  // Halving is exact; a factor from exp() or power() would not be, and squaring magnifies its error.
  taylor_t t = {.a = repeat(b, a, times, halved), .eye = la_eye(b, a->dtype, batch, n, n)};
  hlo_t value = t.eye;
  la_loop(b, DEGREE, 1, &value, taylor_step, &t);
  la_ret(l, 0, repeat(b, value, times, squared));
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "linalg_matrix_exp", .lower = lower_matrix_exp},
};
TT_OP_FAMILY(linalg_exp, k_rows)
