// See common.h.
#include "ops/common.h"

// Rank in the lattice among floats of the same category; f8 never meets another dtype in PyTorch.
static tt_dtype_t promote_floats(tt_dtype_t a, tt_dtype_t b) {
  if (a == b) return a;
  if (a == TT_F64 || b == TT_F64) return TT_F64;
  if (a == TT_F32 || b == TT_F32) return TT_F32;
  bool a_half = a == TT_F16 || a == TT_BF16, b_half = b == TT_F16 || b == TT_BF16;
  if (a_half && b_half) return TT_F32;
  return a_half ? a : b_half ? b : TT_F32;
}

static tt_dtype_t promote_ints(tt_dtype_t a, tt_dtype_t b) {
  if (a == b) return a;
  size_t na = tt_dtype_size(a), nb = tt_dtype_size(b);
  bool ua = tt_is_unsigned(a), ub = tt_is_unsigned(b);
  if (ua == ub) return na >= nb ? a : b;
  tt_dtype_t wide_signed = ua ? b : a;
  size_t unsigned_size = ua ? na : nb, signed_size = ua ? nb : na;
  if (signed_size > unsigned_size) return wide_signed;
  return unsigned_size == 1 ? TT_I16 : unsigned_size == 2 ? TT_I32 : TT_I64;
}

tt_dtype_t tt_real_dtype(tt_dtype_t dtype) {
  return dtype == TT_C64 ? TT_F32 : dtype == TT_C128 ? TT_F64 : dtype;
}

tt_dtype_t tt_complex_dtype(tt_dtype_t dtype) {
  return tt_is_complex(dtype) ? dtype : dtype == TT_F64 ? TT_C128 : TT_C64;
}

tt_dtype_t tt_float_dtype(tt_dtype_t dtype) { return tt_is_integral(dtype) ? TT_F32 : dtype; }

int tt_mantissa_bits(tt_dtype_t dtype) {
  switch (tt_real_dtype(dtype)) {
    case TT_F64: return 53;
    case TT_F32: return 24;
    case TT_F16: return 11;
    case TT_BF16: return 8;
    case TT_F8E4M3FN: case TT_F8E4M3FNUZ: return 4;
    case TT_F8E5M2: case TT_F8E5M2FNUZ: return 3;
    default: return 0;
  }
}

// Order of PyTorch's categories: bool < integer < floating < complex.
static int category(tt_dtype_t dtype) {
  switch (tt_dtype_kind(dtype)) {
    case 'b': return 1;
    case 'u': case 'i': return 2;
    case 'f': return 3;
    case 'c': return 4;
    default: return 0;
  }
}

tt_dtype_t tt_promote(tt_dtype_t a, tt_dtype_t b) {
  if (a == b || b == TT_DT_NONE) return a;
  if (a == TT_DT_NONE) return b;
  int ca = category(a), cb = category(b);
  if (ca == 4 || cb == 4) {
    if (a == TT_C128 || b == TT_C128 || a == TT_F64 || b == TT_F64) return TT_C128;
    return TT_C64;
  }
  if (ca != cb) return ca > cb ? a : b;
  return ca == 3 ? promote_floats(a, b) : promote_ints(a, b);
}

// What a lower-priority group contributes: nothing unless its category is higher.
static tt_dtype_t join_groups(tt_dtype_t higher, tt_dtype_t lower) {
  if (higher == TT_DT_NONE) return lower;
  return category(lower) > category(higher) ? tt_promote(higher, lower) : higher;
}

tt_dtype_t tt_promote_args(tt_lower_t* l, int n, const int* args) {
  tt_dtype_t dims = TT_DT_NONE, zero = TT_DT_NONE, number = TT_DT_NONE;
  for (int k = 0; k < n; k++) {
    int i = args[k];
    if (!tt_has(l, i)) continue;
    if (tt_is_tensor(l, i)) {
      hlo_t x = tt_in(l, i);
      tt_dtype_t* group = x->rank > 0 ? &dims : &zero;
      *group = tt_promote(*group, x->dtype);
    } else {
      // A Python float or complex brings its category only; PyTorch gives it the default dtype.
      tt_dtype_t d = tt_scalar_dtype(l, i);
      number = tt_promote(number, d == TT_F64 ? TT_F32 : d == TT_C128 ? TT_C64 : d);
    }
  }
  return join_groups(join_groups(dims, zero), number);
}

tt_dtype_t tt_common_dtype(tt_lower_t* l, int n) {
  static const int k_args[] = {0, 1, 2, 3};
  if (tt_out_count(l) == 0) return tt_promote_args(l, n, k_args);
  tt_dtype_t in = TT_DT_NONE, out = tt_out_dtype(l, 0);
  for (int i = 0; i < n; i++)
    if (tt_has(l, i) && tt_is_tensor(l, i) && tt_in(l, i)->rank > 0) in = tt_promote(in, tt_in(l, i)->dtype);
  return category(in) == category(out) ? in : out;
}

hlo_t tt_in_as(tt_lower_t* l, int i, tt_dtype_t dtype) { return hlo_convert(tt_b(l), tt_in(l, i), dtype); }

hlo_t tt_operand(tt_lower_t* l, int i, tt_dtype_t dtype) {
  return tt_is_tensor(l, i) ? tt_in_as(l, i, dtype) : tt_scalar(l, i, dtype);
}

int tt_reduce_dims(tt_lower_t* l, int i, int rank, int64_t out_dims[TT_MAX_RANK]) {
  int n = 0, n_out = 0;
  const int64_t* dims = tt_has(l, i) ? tt_ints(l, i, &n) : NULL;
  bool named[TT_MAX_RANK] = {false};
  for (int k = 0; k < n; k++) {
    int d = hlo_dim(tt_b(l), dims[k], rank);
    if (d >= 0 && d < TT_MAX_RANK) named[d] = true;
  }
  for (int d = 0; d < rank; d++)
    if (n == 0 || named[d]) out_dims[n_out++] = d;
  return n_out;
}

hlo_t tt_to_out_dims(tt_lower_t* l, int i, hlo_t x) {
  if (tt_out_count(l) <= i) return x;
  const tt_type_t* type = tt_out(l, i);
  return hlo_broadcast_to(tt_b(l), x, type->rank, type->dims);
}

hlo_t tt_like(hlo_builder_t* b, hlo_t x, hlo_t y) { return hlo_broadcast_to(b, x, y->rank, y->dims); }

hlo_t tt_round_to(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype) {
  return hlo_convert(b, hlo_convert(b, x, dtype), x->dtype);
}
