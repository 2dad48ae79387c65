// See nn.h.
#include "ops/nn.h"

hlo_t tt_dot(tt_lower_t* l, hlo_t lhs, hlo_t rhs, int n_batch, const int64_t* lhs_batch, const int64_t* rhs_batch,
             int n_contract, const int64_t* lhs_contract, const int64_t* rhs_contract) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t wide = tt_opmath(lhs->dtype);
  if (wide != lhs->dtype && (tt_caps(l) & TT_CAP_SLOW_SMALL_CONV)) {
    // That compiler's fast dot is the one of f32; others want the narrow inputs for their matrix units.
    lhs = hlo_convert(b, lhs, wide);
    rhs = hlo_convert(b, rhs, wide);
  }
  return hlo_dot_general(b, lhs, rhs, n_batch, lhs_batch, rhs_batch, n_contract, lhs_contract, rhs_contract, wide);
}

hlo_t tt_mm(tt_lower_t* l, hlo_t lhs, hlo_t rhs) {
  static const int64_t one[] = {1}, zero[] = {0};
  return tt_dot(l, lhs, rhs, 0, NULL, NULL, 1, one, zero);
}

void tt_spatial(tt_lower_t* l, int arg, int n, const int64_t* missing, int64_t out[]) {
  int count = 0;
  const int64_t* values = tt_has(l, arg) ? tt_ints(l, arg, &count) : NULL;
  if (count == 0 && missing == NULL) hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "argument %d must not be empty", arg);
  if (count > 1 && count < n)
    hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "argument %d: expected %d values, got %d", arg, n, count);
  for (int i = 0; i < n; i++) {
    if (count == 0) out[i] = missing != NULL ? missing[i] : 1;
    else if (count == 1) out[i] = values[0];
    else out[i] = i < count ? values[i] : values[count - 1];
  }
}

hlo_t tt_along(hlo_builder_t* b, hlo_t v, hlo_t like, int dim) {
  int64_t map[1] = {dim};
  return hlo_broadcast_in_dim(b, v, like->rank, like->dims, map);
}

hlo_t tt_over(hlo_builder_t* b, hlo_t v, hlo_t like, int n, const int64_t* dims) {
  int64_t map[TT_MAX_RANK];
  int k = 0;
  for (int d = 0; d < like->rank; d++) {
    bool dropped = false;
    for (int i = 0; i < n; i++) dropped |= dims[i] == d;
    if (!dropped && k < TT_MAX_RANK) map[k++] = d;
  }
  return hlo_broadcast_in_dim(b, v, like->rank, like->dims, map);
}

int64_t tt_count_over(hlo_t x, int n, const int64_t* dims) {
  int64_t count = 1;
  for (int i = 0; i < n; i++) count *= x->dims[dims[i]];
  return count;
}

hlo_t tt_times(hlo_builder_t* b, hlo_t x, double factor) {
  return hlo_multiply(b, x, hlo_scalar(b, x->dtype, factor));
}

void tt_moments(hlo_builder_t* b, hlo_t x, int n, const int64_t* dims, hlo_t* out_mean, hlo_t* out_var) {
  hlo_t count = hlo_scalar(b, x->dtype, (double)tt_count_over(x, n, dims));
  hlo_t mean = hlo_divide(b, hlo_reduce(b, x, HLO_R_ADD, n, dims), count);
  hlo_t centred = hlo_subtract(b, x, tt_over(b, mean, x, n, dims));
  *out_mean = mean;
  *out_var = hlo_divide(b, hlo_reduce(b, hlo_multiply(b, centred, centred), HLO_R_ADD, n, dims), count);
}

hlo_t tt_conj(hlo_builder_t* b, hlo_t x) {
  return tt_is_complex(x->dtype) ? hlo_complex(b, hlo_real(b, x), hlo_negate(b, hlo_imag(b, x))) : x;
}

hlo_t tt_keep_mask(hlo_builder_t* b, hlo_t bits, hlo_t keep) {
  // 24 bits are a whole f32 significand: the uniform value is exact and below 1.
  hlo_t high = hlo_shift_right_logical(b, bits, hlo_full_like(b, bits, 8));
  hlo_t uniform = tt_times(b, hlo_convert(b, hlo_convert(b, high, TT_I32), keep->dtype), 1.0 / (1 << 24));
  return hlo_compare(b, HLO_LT, uniform, keep);
}

hlo_t tt_flat_planes(hlo_builder_t* b, hlo_t x, int n) {
  int64_t dims[2] = {1, 1};
  for (int d = 0; d < x->rank; d++) dims[d < x->rank - n ? 0 : 1] *= x->dims[d];
  return hlo_reshape(b, x, 2, dims);
}

bool tt_mask_bit(tt_lower_t* l, int arg, int i) {
  int n = 0;
  const int64_t* bits = tt_ints(l, arg, &n);
  return i < n && bits[i] != 0;
}

void tt_ret_like(tt_lower_t* l, int i, hlo_t value, int arg) {
  tt_ret(l, i, tt_out_count(l) > i ? value : hlo_convert(tt_b(l), value, tt_in(l, arg)->dtype));
}
