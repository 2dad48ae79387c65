// Lowerings of several operands, elementwise: selection, clamping, interpolation, filling and copying.
//
// Depends on: ops/op.h, ops/math.h.
// Threads: as op.h.
#include <math.h>

#include "ops/common.h"
#include "ops/math.h"

static void lower_where(tt_lower_t* l) {
  tt_dtype_t dtype = tt_out_dtype(l, 0);
  if (tt_out_count(l) == 0) {  // the condition takes no part in the promotion
    static const int k_values[] = {1, 2};
    dtype = tt_promote_args(l, 2, k_values);
  }
  hlo_t cond = tt_in_as(l, 0, TT_BOOL);
  tt_ret(l, 0, hlo_select(tt_b(l), cond, tt_operand(l, 1, dtype), tt_operand(l, 2, dtype)));
}

// ---------------------------------------------------------------- clamp
// clamp, clamp_min and clamp_max: NaN anywhere gives NaN, a lower bound above the upper one gives the upper one.
typedef enum clamp_t { CLAMP_BOTH, CLAMP_MIN, CLAMP_MAX } clamp_t;

static void lower_clamp(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  clamp_t kind = (clamp_t)tt_row(l)->kind;
  tt_dtype_t dtype = tt_common_dtype(l, kind == CLAMP_BOTH ? 3 : 2);
  int lo = kind == CLAMP_MAX ? -1 : 1, hi = kind == CLAMP_BOTH ? 2 : kind == CLAMP_MAX ? 1 : -1;
  hlo_t r = tt_in_as(l, 0, dtype);
  if (lo > 0 && tt_has(l, lo)) r = hlo_maximum(b, r, tt_operand(l, lo, dtype));
  if (hi > 0 && tt_has(l, hi)) r = hlo_minimum(b, r, tt_operand(l, hi, dtype));
  tt_ret(l, 0, r);
}

// ---------------------------------------------------------------- interpolation and fused products
static void lower_lerp(tt_lower_t* l) {
  tt_dtype_t dtype = tt_opmath(tt_common_dtype(l, 3));
  tt_ret(l, 0, tt_math_lerp(tt_b(l), tt_in_as(l, 0, dtype), tt_in_as(l, 1, dtype), tt_operand(l, 2, dtype)));
}

// self + value * t1 * t2, or / t2.
static void lower_addc(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_opmath(tt_common_dtype(l, 3));
  hlo_t self = tt_in_as(l, 0, dtype), t1 = tt_in_as(l, 1, dtype), t2 = tt_in_as(l, 2, dtype);
  if (tt_is_tensor(l, 3) || !tt_scalar_is_one(l, 3)) t1 = hlo_multiply(b, tt_operand(l, 3, dtype), t1);
  tt_ret(l, 0, hlo_add(b, self, hlo_binary(b, (hlo_binary_t)tt_row(l)->kind, t1, t2)));
}

// ---------------------------------------------------------------- complex numbers from parts
static const char* type_word(tt_dtype_t dtype) {
  return dtype == TT_F64 ? "Double" : dtype == TT_F32 ? "Float" : dtype == TT_F16 ? "Half" : tt_dtype_name(dtype);
}

static void lower_complex(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), y = tt_in(l, 1);
  if (x->dtype != y->dtype)
    hlo_fail(b, TT_INVALID_ARGUMENT, "Expected object of scalar type %s but got scalar type %s for second argument",
             type_word(x->dtype), type_word(y->dtype));
  hlo_broadcast2(b, &x, &y);
  if (tt_row(l)->kind == 0) {
    tt_ret(l, 0, hlo_complex(b, x, y));
    return;
  }
  tt_ret(l, 0, hlo_complex(b, hlo_multiply(b, x, hlo_cosine(b, y)), hlo_multiply(b, x, hlo_sine(b, y))));
}

// ---------------------------------------------------------------- filling and copying
static void lower_masked_fill(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  tt_ret(l, 0, hlo_select(b, tt_in_as(l, 1, TT_BOOL), tt_operand(l, 2, x->dtype), x));
}

// |value| in every element of argument 0.
static hlo_t filled(tt_lower_t* l, hlo_t value) { return tt_like(tt_b(l), value, tt_in(l, 0)); }

static void lower_fill(tt_lower_t* l) { tt_ret(l, 0, filled(l, tt_operand(l, 1, tt_in(l, 0)->dtype))); }

// A constant in the result's dims: zeros_like, ones_like and the empties, whose values nobody may rely on.
static void lower_constant_like(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  double value = tt_row(l)->kind;
  const tt_type_t* type = tt_out_count(l) ? tt_out(l, 0) : &(tt_type_t){x->dtype, x->rank, x->dims};
  tt_ret(l, 0, hlo_splat(tt_b(l), type->dtype, value, type->rank, type->dims));
}

static void lower_full_like(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  tt_dtype_t dtype = tt_out_count(l) ? tt_out_dtype(l, 0) : x->dtype;
  tt_ret(l, 0, filled(l, tt_scalar(l, 1, dtype)));
}

static void lower_copy(tt_lower_t* l) { tt_ret(l, 0, filled(l, tt_in_as(l, 1, tt_in(l, 0)->dtype))); }

static void lower_identity(tt_lower_t* l) { tt_ret(l, 0, tt_in(l, 0)); }

static void lower_to_copy(tt_lower_t* l) {
  tt_dtype_t dtype = tt_out_count(l) ? tt_out_dtype(l, 0) : tt_in(l, 0)->dtype;
  tt_ret(l, 0, tt_in_as(l, 0, dtype));
}

// ---------------------------------------------------------------- rows
#define ROW(text, fn, k) {.name = text, .lower = fn, .kind = (int)(k), .flags = TT_OP_POINTWISE}
#define ADDC(text, k) {.name = text, .lower = lower_addc, .kind = k, .flags = TT_OP_POINTWISE, .unit = TT_ARG(3)}

static const tt_op_row_t k_rows[] = {
    ROW("where.self", lower_where, 0),
    ROW("clamp", lower_clamp, CLAMP_BOTH), ROW("clamp.Tensor", lower_clamp, CLAMP_BOTH),
    ROW("clamp_min", lower_clamp, CLAMP_MIN), ROW("clamp_min.Tensor", lower_clamp, CLAMP_MIN),
    ROW("clamp_max", lower_clamp, CLAMP_MAX), ROW("clamp_max.Tensor", lower_clamp, CLAMP_MAX),
    ROW("lerp.Scalar", lower_lerp, 0), ROW("lerp.Tensor", lower_lerp, 0),
    ADDC("addcmul", HLO_multiply), ADDC("addcdiv", HLO_divide),
    ROW("complex", lower_complex, 0), ROW("polar", lower_complex, 1),
    ROW("masked_fill.Scalar", lower_masked_fill, 0), ROW("masked_fill.Tensor", lower_masked_fill, 0),
    ROW("fill.Scalar", lower_fill, 0), ROW("fill.Tensor", lower_fill, 0),
    ROW("zero", lower_constant_like, 0),
    ROW("zeros_like", lower_constant_like, 0), ROW("ones_like", lower_constant_like, 1),
    ROW("empty_like", lower_constant_like, 0), ROW("full_like", lower_full_like, 0),
    ROW("copy", lower_copy, 0), ROW("_to_copy", lower_to_copy, 0), ROW("clone", lower_identity, 0),
};
TT_OP_FAMILY(pointwise, k_rows)
