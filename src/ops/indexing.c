// Checked indices, reads and writes along one dim.
#include "ops/indexing.h"

hlo_t tt_at_least_1d(hlo_builder_t* b, hlo_t x) {
  const int64_t one = 1;
  return x->rank == 0 ? hlo_reshape(b, x, 1, &one) : x;
}

hlo_t tt_reshape_like(hlo_builder_t* b, hlo_t x, hlo_t like) {
  return hlo_same_dims(x, like) ? x : hlo_reshape(b, x, like->rank, like->dims);
}

hlo_t tt_affine(hlo_builder_t* b, hlo_t x, int64_t scale, int64_t shift) {
  if (scale != 1) x = hlo_multiply(b, x, hlo_scalar_int(b, x->dtype, scale));
  if (shift != 0) x = hlo_add(b, x, hlo_scalar_int(b, x->dtype, shift));
  return x;
}

hlo_t tt_splat_int(hlo_builder_t* b, tt_dtype_t dtype, int64_t value, int rank, const int64_t* dims) {
  return hlo_broadcast_to(b, hlo_scalar_int(b, dtype, value), rank, dims);
}

const char* tt_bounds_message(tt_lower_t* l, int64_t dim, int64_t size) {
  const char* text = tt_arena_printf(hlo_builder_arena(tt_b(l)),
                                     "index %%lld is out of bounds for dimension %lld with size %lld", (long long)dim,
                                     (long long)size);
  return text ? text : "index %lld is out of bounds";
}

hlo_t tt_index_ready(tt_lower_t* l, hlo_t index, int64_t size, const tt_index_rule_t* rule) {
  hlo_builder_t* b = tt_b(l);
  if (!tt_is_int(index->dtype)) {
    return hlo_fail(b, TT_INTERNAL, "an index of dtype %s where integers are expected (masks are expanded first)",
                    tt_dtype_name(index->dtype));
  }
  index = hlo_convert(b, index, TT_I64);
  if (rule->message && hlo_numel(index) > 0) {
    // One reduction finds both whether a value is bad and which one: good values become the neutral element.
    hlo_t bad = hlo_or_(b, hlo_compare(b, HLO_LT, index, hlo_scalar_int(b, TT_I64, rule->wrap ? -size : 0)),
                        hlo_compare(b, HLO_GE, index, hlo_scalar_int(b, TT_I64, size)));
    hlo_t none = hlo_scalar_int(b, TT_I64, INT64_MIN);
    hlo_t worst = hlo_reduce_all(b, hlo_select(b, bad, index, none), HLO_R_MAX);
    tt_check(l, hlo_compare(b, HLO_NE, worst, none), worst, rule->code, rule->message);
  }
  if (rule->wrap) {
    hlo_t negative = hlo_compare(b, HLO_LT, index, hlo_scalar_int(b, TT_I64, 0));
    index = hlo_select(b, negative, tt_affine(b, index, 1, size), index);
  }
  return size <= INT32_MAX ? hlo_convert(b, index, TT_I32) : index;
}

hlo_t tt_take(hlo_builder_t* b, hlo_t x, hlo_t index, int dim) {
  if (hlo_numel(index) > 0 && hlo_numel(x) > 0) return hlo_take(b, x, index, dim);
  int64_t dims[2 * TT_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < dim; i++) dims[rank++] = x->dims[i];
  for (int i = 0; i < index->rank; i++) dims[rank++] = index->dims[i];
  for (int i = dim + 1; i < x->rank; i++) dims[rank++] = x->dims[i];
  return hlo_splat(b, x->dtype, 0, rank, dims);
}

hlo_t tt_put(hlo_builder_t* b, hlo_t x, hlo_t index, hlo_t updates, int dim, hlo_reducer_t reducer) {
  if (hlo_numel(updates) == 0 || hlo_numel(x) == 0) return x;
  int64_t window[TT_MAX_RANK];
  int n_window = 0;
  for (int i = 0; i < updates->rank; i++) {
    if (i < dim || i >= dim + index->rank) window[n_window++] = i;
  }
  const int64_t target = dim;
  const hlo_scatter_t dims = {
      .n_update_window = n_window,
      .update_window_dims = window,
      .n_inserted = 1,
      .inserted_window_dims = &target,
      .n_map = 1,
      .scatter_dims_to_operand_dims = &target,
      .index_vector_dim = index->rank,
  };
  return hlo_scatter(b, x, index, updates, reducer, &dims);
}

void tt_clamp_slice(int64_t size, int64_t* start, int64_t* end) {
  if (*start < 0) *start += size;
  if (*end < 0) *end += size;
  if (*start < 0) *start = 0;
  if (*start > size) *start = size;
  if (*end > size) *end = size;
  if (*end < *start) *end = *start;
}

void tt_perm_to_back(int rank, int d1, int d2, int64_t perm[TT_MAX_RANK]) {
  int n = 0;
  for (int i = 0; i < rank; i++) {
    if (i != d1 && i != d2) perm[n++] = i;
  }
  perm[n++] = d1;
  perm[n] = d2;
}

void tt_perm_inverse(int rank, const int64_t* perm, int64_t inverse[TT_MAX_RANK]) {
  for (int i = 0; i < rank; i++) inverse[perm[i]] = i;
}

static hlo_t window_index(hlo_builder_t* b, int64_t n, int64_t size, int64_t step, int64_t dilation) {
  const int64_t dims[2] = {n, size};
  return hlo_add(b, tt_affine(b, hlo_iota(b, TT_I32, 2, dims, 0), step, 0),
                 tt_affine(b, hlo_iota(b, TT_I32, 2, dims, 1), dilation, 0));
}

// x with dim |dim| replaced by |n| dims.
static hlo_t replace_dim(hlo_builder_t* b, hlo_t x, int dim, int drop, int n, const int64_t* with) {
  int64_t dims[TT_MAX_RANK + 1];
  int rank = 0;
  if (x->rank - drop + n > TT_MAX_RANK + 1) return hlo_fail(b, TT_INVALID_ARGUMENT, "too many dims");
  for (int i = 0; i < dim; i++) dims[rank++] = x->dims[i];
  for (int i = 0; i < n; i++) dims[rank++] = with[i];
  for (int i = dim + drop; i < x->rank; i++) dims[rank++] = x->dims[i];
  return hlo_reshape(b, x, rank, dims);
}

static hlo_t pad_dim(hlo_builder_t* b, hlo_t x, int dim, int64_t extra) {
  int64_t lo[TT_MAX_RANK + 1] = {0}, hi[TT_MAX_RANK + 1] = {0};
  hi[dim] = extra;
  return extra == 0 ? x : hlo_pad(b, x, hlo_scalar(b, x->dtype, 0), lo, hi, NULL);
}

hlo_t tt_windows_read(hlo_builder_t* b, hlo_t x, int dim, int64_t n, int64_t size, int64_t step, int64_t dilation) {
  if (dilation != 1 || size > step) return tt_take(b, x, window_index(b, n, size, step, dilation), dim);
  // Windows that do not overlap are a reshape.
  const int64_t dims[2] = {n, step};
  if (n * step <= x->dims[dim]) {
    x = hlo_slice_dim(b, x, dim, 0, n * step, 1);
  } else {
    x = pad_dim(b, x, dim, n * step - x->dims[dim]);
  }
  return hlo_slice_dim(b, replace_dim(b, x, dim, 1, 2, dims), dim + 1, 0, size, 1);
}

hlo_t tt_windows_add(hlo_builder_t* b, hlo_t windows, int dim, int64_t length, int64_t step, int64_t dilation) {
  const int64_t n = windows->dims[dim], size = windows->dims[dim + 1];
  if (dilation == 1 && size <= step && n > 0) {
    const int64_t total = n * step;
    hlo_t x = replace_dim(b, pad_dim(b, windows, dim + 1, step - size), dim, 2, 1, &total);
    return pad_dim(b, x, dim, length - total);
  }
  int64_t dims[TT_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < windows->rank; i++) {
    if (i != dim + 1) dims[rank++] = i == dim ? length : windows->dims[i];
  }
  hlo_t zeros = hlo_splat(b, windows->dtype, 0, rank, dims);
  return tt_put(b, zeros, window_index(b, n, size, step, dilation), windows, dim, HLO_R_ADD);
}
