// Tensors from nothing but arguments: constants, ranges, identity matrices, index triangles.
//
// Depends on: ops/op.h.
// Threads: as op.h.
#include "ops/common.h"
#include "ops/math.h"

// Expected dtype of the result, or what PyTorch would choose without a dtype argument.
static tt_dtype_t dtype_or(tt_lower_t* l, tt_dtype_t fallback) {
  return tt_out_count(l) ? tt_out_dtype(l, 0) : fallback;
}

// ---------------------------------------------------------------- constants
// Broadcasts 0-d |value| to the result: to the expected dims, or to those that int list |size_arg| names.
static void ret_filled(tt_lower_t* l, hlo_t value, int size_arg) {
  int rank = 0;
  const int64_t* dims = NULL;
  if (tt_out_count(l)) {
    rank = tt_out(l, 0)->rank;
    dims = tt_out(l, 0)->dims;
  } else {
    dims = tt_ints(l, size_arg, &rank);
  }
  tt_ret(l, 0, hlo_broadcast_to(tt_b(l), value, rank, dims));
}

// kind: the value. Size is argument 0, or 1 after a tensor that gives the default dtype.
static void lower_constant(tt_lower_t* l) {
  bool is_new = tt_is_tensor(l, 0);
  tt_dtype_t dtype = dtype_or(l, is_new ? tt_in(l, 0)->dtype : TT_F32);
  ret_filled(l, hlo_scalar(tt_b(l), dtype, tt_row(l)->kind), is_new ? 1 : 0);
}

static void lower_full(tt_lower_t* l) {
  int size_arg = tt_is_tensor(l, 0) ? 1 : 0;
  tt_dtype_t value = tt_scalar_dtype(l, size_arg + 1);
  tt_dtype_t natural = value == TT_F64 ? TT_F32 : value == TT_C128 ? TT_C64 : value;
  tt_dtype_t dtype = dtype_or(l, size_arg ? tt_in(l, 0)->dtype : natural);
  ret_filled(l, tt_scalar(l, size_arg + 1, dtype), size_arg);
}

static void lower_scalar_tensor(tt_lower_t* l) { tt_ret(l, 0, tt_scalar(l, 0, dtype_or(l, TT_F32))); }

static void lower_eye(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int64_t n = tt_int(l, 0), dims[2] = {n, tt_row(l)->kind ? tt_int(l, 1) : n};
  hlo_t on = hlo_compare(b, HLO_EQ, hlo_iota(b, TT_I32, 2, dims, 0), hlo_iota(b, TT_I32, 2, dims, 1));
  tt_ret(l, 0, hlo_convert(b, on, dtype_or(l, TT_F32)));
}

// ---------------------------------------------------------------- ranges
// Widest dtype for a range's arithmetic: PyTorch's CPU kernels step in double.
static tt_dtype_t range_dtype(tt_lower_t* l, tt_dtype_t dtype) {
  bool has_f64 = (tt_caps(l) & TT_CAP_F64) != 0;
  if (tt_is_complex(dtype)) return dtype;
  return has_f64 || dtype == TT_F64 ? TT_F64 : TT_F32;
}

// PyTorch has no ranges of bool.
static bool refuse_bool(tt_lower_t* l, tt_dtype_t dtype) {
  if (dtype != TT_BOOL) return false;
  hlo_fail(tt_b(l), TT_UNIMPLEMENTED, "a range has no dtype bool");
  return true;
}

// start + step * i. kind: 0 (end), 1 (start, end), 2 (start, end, step).
static void lower_arange(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_type_t* type = tt_out(l, 0);
  if (refuse_bool(l, type->dtype)) return;
  tt_dtype_t math = tt_is_integral(type->dtype) ? TT_I64 : range_dtype(l, type->dtype);
  int kind = tt_row(l)->kind;
  hlo_t r = hlo_iota(b, math, type->rank, type->dims, 0);
  if (kind == 2) r = hlo_multiply(b, r, tt_scalar(l, 2, math));
  if (kind >= 1) r = hlo_add(b, r, tt_scalar(l, 0, math));
  tt_ret(l, 0, r);
}

// The first half counts from the start, the second from the end, so that both ends are exact.
static hlo_t linspace(tt_lower_t* l, tt_dtype_t dtype, tt_dtype_t math, int64_t n) {
  hlo_builder_t* b = tt_b(l);
  // PyTorch stores the ends in the result's dtype before it steps.
  hlo_t start = hlo_convert(b, tt_operand(l, 0, dtype), math), end = hlo_convert(b, tt_operand(l, 1, dtype), math);
  if (n <= 1) return hlo_broadcast_to(b, start, 1, &n);
  tt_dtype_t real = tt_real_dtype(math);
  // Compilers multiply by the reciprocal of a constant, which is not exact; of the larger of it and 0 or 1 they do not know.
  hlo_t parts = hlo_convert(b, hlo_compare(b, HLO_EQ, start, end), real);
  parts = hlo_maximum(b, hlo_scalar(b, real, (double)(n - 1)), parts);
  hlo_t step = hlo_divide(b, hlo_subtract(b, end, start), hlo_convert(b, parts, math));
  hlo_t i = hlo_iota(b, TT_I64, 1, &n, 0);
  hlo_t left = hlo_subtract(b, hlo_scalar_int(b, TT_I64, n - 1), i);
  hlo_t in_first = hlo_compare(b, HLO_LT, i, hlo_scalar_int(b, TT_I64, n / 2));
  hlo_t up = hlo_convert(b, hlo_convert(b, i, real), math), down = hlo_convert(b, hlo_convert(b, left, real), math);
  hlo_t from_start = hlo_add(b, start, hlo_multiply(b, step, up));
  return hlo_select(b, in_first, from_start, hlo_subtract(b, end, hlo_multiply(b, step, down)));
}

static void lower_linspace(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = dtype_or(l, TT_F32);
  if (refuse_bool(l, dtype)) return;
  // Integer ranges step in double; floating ones in their own dtype, powers in a wider one.
  bool is_power = tt_row(l)->kind == 1;
  tt_dtype_t math = tt_is_integral(dtype) ? range_dtype(l, dtype) : is_power ? tt_opmath(dtype) : dtype;
  hlo_t r = linspace(l, dtype, math, tt_int(l, 2));
  if (is_power) r = hlo_power(b, tt_scalar(l, 3, math), r);
  tt_ret(l, 0, r);
}

// ---------------------------------------------------------------- index triangles
// Sum of clamp(t, 0, cols) over all t <= x.
static hlo_t ramp_sum(hlo_builder_t* b, hlo_t x, int64_t cols) {
  hlo_t zero = hlo_scalar_int(b, TT_I64, 0), max = hlo_scalar_int(b, TT_I64, cols);
  hlo_t y = hlo_minimum(b, hlo_maximum(b, x, zero), max);
  hlo_t triangle = hlo_divide(b, hlo_multiply(b, y, tt_add_num(b, y, 1)), hlo_scalar_int(b, TT_I64, 2));
  hlo_t over = hlo_maximum(b, hlo_subtract(b, x, max), zero);
  return hlo_add(b, triangle, hlo_multiply(b, over, max));
}

// Number of indices in the rows before |row|.
static hlo_t before_row(hlo_builder_t* b, hlo_t row, bool upper, int64_t cols, int64_t offset) {
  hlo_t shift = hlo_scalar_int(b, TT_I64, upper ? offset - 1 : offset);
  hlo_t ramp = hlo_subtract(b, ramp_sum(b, hlo_add(b, row, shift), cols), ramp_sum(b, shift, cols));
  if (!upper) return ramp;
  return hlo_subtract(b, hlo_multiply(b, row, hlo_scalar_int(b, TT_I64, cols)), ramp);
}

// Entry k is in the last row that starts at or before k: found bit by bit, since the starts have a closed form.
static void lower_triangle_indices(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bool upper = tt_row(l)->kind == 1;
  int64_t rows = tt_int(l, 0), cols = tt_int(l, 1), offset = tt_int(l, 2);
  const int64_t n = tt_out(l, 0)->dims[1], flat[2] = {1, n};
  hlo_t k = hlo_iota(b, TT_I64, 1, &n, 0), row = hlo_zeros_like(b, k);
  for (int64_t bit = (int64_t)1 << 40; bit > 0; bit >>= 1) {
    if (bit >= rows) continue;
    hlo_t next = hlo_add(b, row, hlo_scalar_int(b, TT_I64, bit));
    hlo_t fits = hlo_compare(b, HLO_LT, next, hlo_scalar_int(b, TT_I64, rows));
    hlo_t starts = hlo_compare(b, HLO_LE, before_row(b, next, upper, cols, offset), k);
    row = hlo_select(b, hlo_and_(b, fits, starts), next, row);
  }
  hlo_t col = hlo_subtract(b, k, before_row(b, row, upper, cols, offset));
  if (upper) {
    hlo_t first = hlo_add(b, row, hlo_scalar_int(b, TT_I64, offset));
    col = hlo_add(b, col, hlo_maximum(b, first, hlo_scalar_int(b, TT_I64, 0)));
  }
  hlo_t parts[2] = {hlo_reshape(b, row, 2, flat), hlo_reshape(b, col, 2, flat)};
  tt_ret(l, 0, hlo_concat(b, 2, parts, 0));
}

// ---------------------------------------------------------------- rows
#define ROW(text, fn, k) {.name = text, .lower = fn, .kind = k}
// The length of a range is part of the signature, its ends are operands: a moving range does not recompile.
#define ARANGE(text, k) {.name = text, .lower = lower_arange, .kind = k, .flags = TT_OP_META_EVERY_CALL}
#define SPACE(op, k)                                                              \
  ROW(op, lower_linspace, k), ROW(op ".Tensor_Tensor", lower_linspace, k),        \
      ROW(op ".Tensor_Scalar", lower_linspace, k), ROW(op ".Scalar_Tensor", lower_linspace, k)

static const tt_op_row_t k_rows[] = {
    ROW("zeros", lower_constant, 0), ROW("ones", lower_constant, 1), ROW("empty.memory_format", lower_constant, 0),
    ROW("empty_strided", lower_constant, 0), ROW("empty_permuted", lower_constant, 0),
    ROW("_efficientzerotensor", lower_constant, 0),
    ROW("new_zeros", lower_constant, 0), ROW("new_ones", lower_constant, 1), ROW("new_empty", lower_constant, 0),
    ROW("new_empty_strided", lower_constant, 0),
    ROW("full", lower_full, 0), ROW("new_full", lower_full, 0), ROW("scalar_tensor", lower_scalar_tensor, 0),
    ROW("eye", lower_eye, 0), ROW("eye.m", lower_eye, 1),
    ARANGE("arange", 0), ARANGE("arange.start", 1), ARANGE("arange.start_step", 2),
    SPACE("linspace", 0), SPACE("logspace", 1),
    ROW("tril_indices", lower_triangle_indices, 0), ROW("triu_indices", lower_triangle_indices, 1),
};
TT_OP_FAMILY(factory, k_rows)
