// Elementwise ops: dtype rules, NumPy broadcasting, comparison, conversion, complex numbers.
#include "hlo/ir.h"

// ---------------------------------------------------------------- tables
static const char* const k_unary_names[HLO_UNARY_COUNT] = {
#define X(name, text) [HLO_##name] = "stablehlo." text,
    HLO_UNARY_OPS(X)
#undef X
#define X(name, text) [HLO_##name] = "chlo." text,
    HLO_CHLO_UNARY_OPS(X)
#undef X
};

static const char* const k_binary_names[HLO_BINARY_COUNT] = {
#define X(name, text) [HLO_##name] = "stablehlo." text,
    HLO_BINARY_OPS(X)
#undef X
#define X(name, text) [HLO_##name] = "chlo." text,
    HLO_CHLO_BINARY_OPS(X)
#undef X
};

// Kinds (tt_dtype_kind) that an op accepts; what is not listed here takes floats and complex.
static const char* const k_unary_kinds[HLO_UNARY_COUNT] = {
    [HLO_abs] = "ifc", [HLO_ceil] = "f", [HLO_count_leading_zeros] = "ui", [HLO_floor] = "f", [HLO_negate] = "uifc",
    [HLO_not_] = "bui", [HLO_popcnt] = "ui", [HLO_round_nearest_afz] = "f", [HLO_round_nearest_even] = "f",
    [HLO_sign] = "ifc", [HLO_bessel_i1e] = "f", [HLO_digamma] = "f", [HLO_erf] = "f", [HLO_erf_inv] = "f",
    [HLO_erfc] = "f", [HLO_lgamma] = "f",
};
static const char* const k_binary_kinds[HLO_BINARY_COUNT] = {
    [HLO_add] = "buifc", [HLO_and_] = "bui", [HLO_divide] = "uifc", [HLO_maximum] = "buif", [HLO_minimum] = "buif",
    [HLO_multiply] = "buifc", [HLO_or_] = "bui", [HLO_power] = "uifc", [HLO_remainder] = "uif", [HLO_shift_left] = "ui",
    [HLO_shift_right_arithmetic] = "ui", [HLO_shift_right_logical] = "ui", [HLO_subtract] = "uifc", [HLO_xor_] = "bui",
    [HLO_next_after] = "f", [HLO_polygamma] = "f", [HLO_zeta] = "f",
};

static bool accepts(const char* kinds, tt_dtype_t dtype) {
  return strchr(kinds ? kinds : "fc", tt_dtype_kind(dtype)) != NULL;
}

static hlo_t refuse(hlo_builder_t* b, const char* name, tt_dtype_t dtype) {
  return hlo_fail(b, TT_UNIMPLEMENTED, "%s: not defined for %s", name, tt_dtype_name(dtype));
}

static bool equal_dtypes(hlo_builder_t* b, const char* name, hlo_t x, hlo_t y) {
  if (x->dtype == y->dtype) return true;
  hlo_fail(b, TT_INTERNAL, "%s: operands are %s and %s; convert them first", name, tt_dtype_name(x->dtype),
           tt_dtype_name(y->dtype));
  return false;
}

static tt_dtype_t part_dtype(tt_dtype_t dtype) {
  return dtype == TT_C64 ? TT_F32 : dtype == TT_C128 ? TT_F64 : dtype;
}

// ---------------------------------------------------------------- unary, binary
// Ops that have a plain meaning on integers that StableHLO does not define. NULL when there is none.
static hlo_t unary_on_integral(hlo_builder_t* b, hlo_unary_t op, hlo_t x) {
  switch (op) {
    case HLO_abs:
      return tt_is_signed_int(x->dtype) ? NULL : x;
    case HLO_sign:
      if (tt_is_signed_int(x->dtype)) return NULL;
      return hlo_convert(b, hlo_convert(b, x, TT_BOOL), x->dtype);
    case HLO_ceil:
    case HLO_floor:
    case HLO_round_nearest_afz:
    case HLO_round_nearest_even:
      return x;
    default:
      return NULL;
  }
}

hlo_t hlo_unary(hlo_builder_t* b, hlo_unary_t op, hlo_t x) {
  const char* name = k_unary_names[op];
  if (!hlo_usable(b, name, 1, &x)) return hlo_poison(b);
  if (tt_is_integral(x->dtype)) {
    hlo_t y = unary_on_integral(b, op, x);
    if (y) return y;
  }
  if (!accepts(k_unary_kinds[op], x->dtype)) return refuse(b, name, x->dtype);
  return hlo_op1(b, name, 1, &x, NULL, op == HLO_abs ? part_dtype(x->dtype) : x->dtype, x->rank, x->dims);
}

// Arithmetic on booleans under the name of the logic that it is.
static hlo_binary_t on_bool(hlo_binary_t op) {
  if (op == HLO_add || op == HLO_maximum) return HLO_or_;
  return op == HLO_multiply || op == HLO_minimum ? HLO_and_ : op;
}

hlo_t hlo_binary(hlo_builder_t* b, hlo_binary_t op, hlo_t x, hlo_t y) {
  const char* name = k_binary_names[op];
  hlo_t in[2] = {x, y};
  if (!hlo_usable(b, name, 2, in) || !equal_dtypes(b, name, x, y)) return hlo_poison(b);
  if (!accepts(k_binary_kinds[op], x->dtype)) return refuse(b, name, x->dtype);
  if (x->dtype == TT_BOOL) name = k_binary_names[on_bool(op)];
  hlo_broadcast2(b, &in[0], &in[1]);
  return hlo_op1(b, name, 2, in, NULL, x->dtype, in[0]->rank, in[0]->dims);
}

// ---------------------------------------------------------------- comparison, selection
static hlo_t compare(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, hlo_t y, bool total) {
  static const char* const k_directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  hlo_t in[2] = {x, y};
  if (!hlo_usable(b, "compare", 2, in) || !equal_dtypes(b, "compare", x, y)) return hlo_poison(b);
  const char* type = tt_is_signed_int(x->dtype) ? "SIGNED" : tt_is_integral(x->dtype) ? "UNSIGNED" : "FLOAT";
  if (total && tt_is_float(x->dtype)) type = "TOTALORDER";
  if (tt_is_complex(x->dtype) && cmp != HLO_EQ && cmp != HLO_NE) {
    return hlo_fail(b, TT_UNIMPLEMENTED, "compare: complex numbers have no order");
  }
  hlo_broadcast2(b, &in[0], &in[1]);
  const char* attrs = hlo_text(b, "comparison_direction = #stablehlo<comparison_direction %s>, "
                               "compare_type = #stablehlo<comparison_type %s>", k_directions[cmp], type);
  return hlo_op1(b, "stablehlo.compare", 2, in, attrs, TT_BOOL, in[0]->rank, in[0]->dims);
}

hlo_t hlo_compare(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, hlo_t y) { return compare(b, cmp, x, y, false); }
hlo_t hlo_compare_total(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, hlo_t y) { return compare(b, cmp, x, y, true); }

hlo_t hlo_select(hlo_builder_t* b, hlo_t pred, hlo_t on_true, hlo_t on_false) {
  hlo_t in[3] = {pred, on_true, on_false};
  if (!hlo_usable(b, "select", 3, in) || !equal_dtypes(b, "select", on_true, on_false)) return hlo_poison(b);
  if (pred->dtype != TT_BOOL) return hlo_fail(b, TT_INTERNAL, "select: the predicate is not bool");
  if (on_true == on_false && hlo_dims_equal(pred->rank, pred->dims, 0, NULL)) return on_true;
  int rank;
  int64_t dims[HLO_MAX_RANK];
  if (!hlo_common_dims(b, "select", 3, in, &rank, dims)) return hlo_poison(b);
  for (int i = 0; i < 3; i++) {
    if (i > 0 || in[i]->rank > 0) in[i] = hlo_broadcast_to(b, in[i], rank, dims);  // a 0-d predicate is legal
  }
  return hlo_op1(b, "stablehlo.select", 3, in, NULL, on_true->dtype, rank, dims);
}

hlo_t hlo_clamp(hlo_builder_t* b, hlo_t lo, hlo_t x, hlo_t hi) {
  hlo_t in[3] = {lo, x, hi};
  if (!hlo_usable(b, "clamp", 3, in) || !equal_dtypes(b, "clamp", x, lo) || !equal_dtypes(b, "clamp", x, hi)) {
    return hlo_poison(b);
  }
  if (tt_is_complex(x->dtype)) return refuse(b, "clamp", x->dtype);
  for (int i = 0; i < 3; i += 2) {
    if (in[i]->rank > 0) in[i] = hlo_broadcast_to(b, in[i], x->rank, x->dims);  // 0-d bounds are legal
  }
  return hlo_op1(b, "stablehlo.clamp", 3, in, NULL, x->dtype, x->rank, x->dims);
}

hlo_t hlo_is_finite(hlo_builder_t* b, hlo_t x) {
  if (!hlo_usable(b, "is_finite", 1, &x)) return hlo_poison(b);
  if (tt_is_integral(x->dtype)) return hlo_splat(b, TT_BOOL, 1, x->rank, x->dims);
  if (tt_is_complex(x->dtype)) {
    return hlo_and_(b, hlo_is_finite(b, hlo_real(b, x)), hlo_is_finite(b, hlo_imag(b, x)));
  }
  return hlo_op1(b, "stablehlo.is_finite", 1, &x, NULL, TT_BOOL, x->rank, x->dims);
}

hlo_t hlo_is_nan(hlo_builder_t* b, hlo_t x) {
  if (!hlo_usable(b, "is_nan", 1, &x)) return hlo_poison(b);
  if (tt_is_integral(x->dtype)) return hlo_splat(b, TT_BOOL, 0, x->rank, x->dims);
  return hlo_compare(b, HLO_NE, x, x);
}

// ---------------------------------------------------------------- conversion
static hlo_t raw_convert(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype) {
  if (x->dtype == dtype) return x;
  return hlo_op1(b, "stablehlo.convert", 1, &x, NULL, dtype, x->rank, x->dims);
}

hlo_t hlo_convert(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype) {
  if (!hlo_usable(b, "convert", 1, &x)) return hlo_poison(b);
  if (x->dtype == dtype) return x;
  hlo_t scalar = hlo_splat_source(x);
  if (scalar) return hlo_broadcast_to(b, hlo_convert(b, scalar, dtype), x->rank, x->dims);
  if (dtype == TT_BOOL) return hlo_compare(b, HLO_NE, x, hlo_zeros_like(b, x));
  if (tt_is_complex(dtype)) {
    tt_dtype_t part = part_dtype(dtype);
    return hlo_complex(b, hlo_convert(b, hlo_real(b, x), part), hlo_convert(b, hlo_imag(b, x), part));
  }
  if (tt_is_complex(x->dtype)) return hlo_convert(b, hlo_real(b, x), dtype);
  // Out of an 8- or 16-bit range PyTorch's CPU kernels wrap (they go through a wider integer); XLA would saturate.
  if (tt_is_float(x->dtype) && tt_is_int(dtype) && tt_dtype_size(dtype) < 4) x = raw_convert(b, x, TT_I32);
  // PyTorch saturates what has no infinity; XLA gives NaN.
  if (dtype == TT_F8E4M3FN) {
    if (tt_is_int(x->dtype) || tt_dtype_size(x->dtype) == 1) x = raw_convert(b, x, TT_F32);
    x = hlo_clamp(b, hlo_scalar(b, x->dtype, -448), x, hlo_scalar(b, x->dtype, 448));
  }
  return raw_convert(b, x, dtype);
}

// f32[..., 2] of complex64[...].
static hlo_t complex_to_parts(hlo_builder_t* b, hlo_t x) {
  hlo_t parts[2] = {hlo_unsqueeze(b, hlo_real(b, x), x->rank), hlo_unsqueeze(b, hlo_imag(b, x), x->rank)};
  return hlo_concat(b, 2, parts, x->rank);
}

static hlo_t parts_to_complex(hlo_builder_t* b, hlo_t x) {
  int last = x->rank - 1;
  return hlo_complex(b, hlo_squeeze(b, hlo_slice_dim(b, x, last, 0, 1, 1), last),
                     hlo_squeeze(b, hlo_slice_dim(b, x, last, 1, 2, 1), last));
}

// Splits the last dim into [-1, n].
static hlo_t split_last(hlo_builder_t* b, hlo_t x, int64_t n) {
  int64_t dims[HLO_MAX_RANK + 1];
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[x->rank] = n;
  dims[x->rank - 1] /= n;
  return hlo_reshape(b, x, x->rank + 1, dims);
}

static hlo_t merge_last_two(hlo_builder_t* b, hlo_t x) {
  int64_t dims[HLO_MAX_RANK];
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[x->rank - 2] *= dims[x->rank - 1];
  return hlo_reshape(b, x, x->rank - 1, dims);
}

// Between dtypes that are neither bool nor complex.
static hlo_t bitcast_real(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype) {
  if (b->error || x->dtype == dtype) return b->error ? hlo_poison(b) : x;
  int64_t from = (int64_t)tt_dtype_size(x->dtype), to = (int64_t)tt_dtype_size(dtype);
  int rank = x->rank;
  int64_t dims[HLO_MAX_RANK + 1];
  memcpy(dims, x->dims, (size_t)rank * sizeof *dims);
  if (to < from) {
    dims[rank++] = from / to;
  } else if (to > from) {
    if (rank == 0 || dims[rank - 1] != to / from) {
      return hlo_fail(b, TT_INVALID_ARGUMENT, "bitcast: %s to %s needs a last dim of %lld", hlo_text_shape(b, x),
                      tt_dtype_name(dtype), (long long)(to / from));
    }
    rank--;
  }
  return hlo_op1(b, "stablehlo.bitcast_convert", 1, &x, NULL, dtype, rank, dims);
}

hlo_t hlo_bitcast(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype) {
  if (!hlo_usable(b, "bitcast", 1, &x)) return hlo_poison(b);
  if (x->dtype == dtype) return x;
  if (x->dtype == TT_BOOL) return hlo_bitcast(b, hlo_convert(b, x, TT_U8), dtype);
  if (dtype == TT_BOOL) return hlo_convert(b, hlo_bitcast(b, x, TT_U8), TT_BOOL);
  int64_t from = (int64_t)tt_dtype_size(x->dtype), to = (int64_t)tt_dtype_size(dtype);
  if (tt_is_complex(x->dtype)) {  // XLA casts no complex bits: by way of [re, im] in a last dim
    int64_t part = from / 2;
    hlo_t parts = complex_to_parts(b, x);
    if (tt_is_complex(dtype)) return parts_to_complex(b, bitcast_real(b, parts, part_dtype(dtype)));
    return to < part ? merge_last_two(b, bitcast_real(b, parts, dtype)) : bitcast_real(b, parts, dtype);
  }
  if (!tt_is_complex(dtype)) return bitcast_real(b, x, dtype);
  tt_dtype_t part = part_dtype(dtype);
  if (from < to && (x->rank == 0 || x->dims[x->rank - 1] != to / from)) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "bitcast: %s to %s needs a last dim of %lld", hlo_text_shape(b, x),
                    tt_dtype_name(dtype), (long long)(to / from));
  }
  if (from < to / 2) x = split_last(b, x, to / 2 / from);
  return parts_to_complex(b, bitcast_real(b, x, part));
}

// ---------------------------------------------------------------- complex
hlo_t hlo_complex(hlo_builder_t* b, hlo_t re, hlo_t im) {
  hlo_t in[2] = {re, im};
  if (!hlo_usable(b, "complex", 2, in) || !equal_dtypes(b, "complex", re, im)) return hlo_poison(b);
  if (re->dtype != TT_F32 && re->dtype != TT_F64) return refuse(b, "complex", re->dtype);
  hlo_broadcast2(b, &in[0], &in[1]);
  return hlo_op1(b, "stablehlo.complex", 2, in, NULL, re->dtype == TT_F32 ? TT_C64 : TT_C128, in[0]->rank, in[0]->dims);
}

static hlo_t complex_part(hlo_builder_t* b, hlo_t x, const char* name, int part) {
  if (x->op && strcmp(x->op->name, "stablehlo.complex") == 0) return x->op->operands[part];
  return hlo_op1(b, name, 1, &x, NULL, part_dtype(x->dtype), x->rank, x->dims);
}

hlo_t hlo_real(hlo_builder_t* b, hlo_t x) {
  if (!hlo_usable(b, "real", 1, &x)) return hlo_poison(b);
  return tt_is_complex(x->dtype) ? complex_part(b, x, "stablehlo.real", 0) : x;
}

hlo_t hlo_imag(hlo_builder_t* b, hlo_t x) {
  if (!hlo_usable(b, "imag", 1, &x)) return hlo_poison(b);
  return tt_is_complex(x->dtype) ? complex_part(b, x, "stablehlo.imag", 1) : hlo_zeros_like(b, x);
}

hlo_t hlo_after(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t in[2] = {x, y};
  if (!hlo_usable(b, "after", 2, in)) return hlo_poison(b);
  hlo_type_t types[2] = {hlo_type_of(x), hlo_type_of(y)};
  hlo_t out[2];
  hlo_op_results(b, hlo_op(b, "stablehlo.optimization_barrier", 2, in, NULL, 0, NULL, 2, types), 2, out);
  return out[0];
}

hlo_t hlo_optimization_barrier(hlo_builder_t* b, hlo_t x) {
  if (!hlo_usable(b, "optimization_barrier", 1, &x)) return hlo_poison(b);
  return hlo_op1(b, "stablehlo.optimization_barrier", 1, &x, NULL, x->dtype, x->rank, x->dims);
}
