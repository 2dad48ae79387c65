#include "ops/view.h"

#include <string.h>

// ---------------------------------------------------------------- planning
// Fills digits for dims (n_i, s_i), i < k, sorted by stride, descending. False when they do not nest at this offset.
static bool plan_digits(tt_view_plan_t* p, int64_t total, int k, const int64_t* n, const int64_t* s, int64_t offset) {
  p->n = 0;
  int64_t rest = offset;
  if (k == 0) {
    p->radix[0] = total > 0 ? total : 1;
    p->len[0] = 1;
    p->start[0] = offset;
    p->n = 1;
    return true;
  }
  for (int i = 0; i < k; i++) {
    int64_t outer = i ? s[i - 1] : 0;
    if (i && (s[i] >= outer || outer % s[i] != 0)) return false;
    p->radix[p->n] = i ? outer / s[i] : (total + s[0] - 1) / s[0];
    p->len[p->n] = n[i];
    p->start[p->n] = rest / s[i];
    rest %= s[i];
    if (p->start[p->n] + n[i] > p->radix[p->n]) return false;
    p->n++;
  }
  if (s[k - 1] > 1) {
    p->radix[p->n] = s[k - 1];
    p->len[p->n] = 1;
    p->start[p->n] = rest;
    p->n++;
  }
  return true;
}

void tt_view_plan(int64_t total, int rank, const int64_t* sizes, const int64_t* strides, int64_t offset, tt_view_plan_t* p) {
  p->n = 0;
  p->n_sorted = 0;
  for (int d = 0; d < rank; d++) {
    if (sizes[d] == 0) {
      p->form = TT_VIEW_EMPTY;
      return;
    }
    if (sizes[d] == 1 || strides[d] == 0) continue;
    int at = p->n_sorted++;
    while (at > 0 && strides[p->sorted[at - 1]] < strides[d]) p->sorted[at] = p->sorted[at - 1], at--;
    p->sorted[at] = (int8_t)d;
  }
  int64_t n[TT_MAX_RANK], s[TT_MAX_RANK];
  n[0] = s[0] = 0;
  int k = p->n_sorted;
  for (int i = 0; i < k; i++) n[i] = sizes[p->sorted[i]], s[i] = strides[p->sorted[i]];
  p->form = TT_VIEW_BOX;
  if (plan_digits(p, total, k, n, s, offset)) return;
  int m = 0;  // merge contiguous neighbours
  for (int i = 0; i < k; i++) {
    if (m && s[m - 1] == n[i] * s[i]) n[m - 1] *= n[i], s[m - 1] = s[i];
    else n[m] = n[i], s[m] = s[i], m++;
  }
  p->form = TT_VIEW_MERGED;
  if (plan_digits(p, total, m, n, s, offset)) return;
  p->form = TT_VIEW_GATHER;
  p->n = 1;
  p->start[0] = offset;
}

void tt_view_row_major(int rank, const int64_t* sizes, int64_t* out_strides) {
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; d--) {
    out_strides[d] = stride;
    stride *= sizes[d] > 1 ? sizes[d] : 1;
  }
}

bool tt_view_is_contiguous(int rank, const int64_t* sizes, const int64_t* strides) {
  int64_t expect = 1;
  for (int d = 0; d < rank; d++)
    if (sizes[d] == 0) return true;
  for (int d = rank - 1; d >= 0; d--) {
    if (sizes[d] != 1 && strides[d] != expect) return false;
    expect *= sizes[d];
  }
  return true;
}

bool tt_view_is_dense(int rank, const int64_t* sizes, const int64_t* strides, int8_t* out_perm) {
  int8_t perm[TT_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    perm[d] = (int8_t)d;
    if (sizes[d] == 0) {
      for (int i = 0; i < rank; i++) perm[i] = (int8_t)i;
      if (out_perm) memcpy(out_perm, perm, (size_t)rank);
      return true;
    }
  }
  // Insertion sort by stride, descending; size-1 dims stay where they are relative to their neighbours.
  for (int i = 1; i < rank; i++) {
    int8_t d = perm[i];
    if (sizes[d] == 1) continue;
    int at = i, j = i - 1;
    for (; j >= 0; j--) {
      int8_t e = perm[j];
      if (sizes[e] == 1) continue;
      if (strides[e] >= strides[d]) break;
      at = j;
    }
    for (int t = i; t > at; t--) perm[t] = perm[t - 1];
    perm[at] = d;
  }
  int64_t expect = 1;
  for (int i = rank - 1; i >= 0; i--) {
    int d = perm[i];
    if (sizes[d] == 1) continue;
    if (strides[d] != expect) return false;
    expect *= sizes[d];
  }
  if (out_perm) memcpy(out_perm, perm, (size_t)rank);
  return true;
}

bool tt_view_overlaps(int rank, const int64_t* sizes, const int64_t* strides) {
  int64_t n[TT_MAX_RANK], s[TT_MAX_RANK];
  int k = 0;
  for (int d = 0; d < rank; d++) {
    if (sizes[d] == 0) return false;
    if (sizes[d] == 1) continue;
    if (strides[d] == 0) return true;
    int at = k++;
    while (at > 0 && s[at - 1] > strides[d]) n[at] = n[at - 1], s[at] = s[at - 1], at--;
    n[at] = sizes[d], s[at] = strides[d];
  }
  int64_t reach = 0;  // largest offset of the dims so far
  for (int i = 0; i < k; i++) {
    if (s[i] <= reach) return true;
    reach += (n[i] - 1) * s[i];
  }
  return false;
}

// ---------------------------------------------------------------- emission
hlo_t tt_view_reinterpret(hlo_builder_t* b, hlo_t v, tt_dtype_t dtype) {
  if (v->dtype == dtype) return v;
  if (v->dtype == TT_BOOL) return tt_view_reinterpret(b, hlo_convert(b, v, TT_U8), dtype);
  if (dtype == TT_BOOL) return hlo_convert(b, tt_view_reinterpret(b, v, TT_U8), TT_BOOL);
  int64_t n = v->dims[0];
  if (tt_is_complex(v->dtype)) {  // pairs (re, im)
    tt_dtype_t part = v->dtype == TT_C64 ? TT_F32 : TT_F64;
    hlo_t parts[2] = {hlo_unsqueeze(b, hlo_real(b, v), 1), hlo_unsqueeze(b, hlo_imag(b, v), 1)};
    hlo_t pairs = hlo_concat(b, 2, parts, 1);
    return tt_view_reinterpret(b, hlo_reshape(b, pairs, 1, &(int64_t){n * 2}), part == dtype ? part : dtype);
  }
  if (tt_is_complex(dtype)) {
    hlo_t flat = tt_view_reinterpret(b, v, dtype == TT_C64 ? TT_F32 : TT_F64);
    if (flat->dims[0] % 2) flat = hlo_slice_dim(b, flat, 0, 0, flat->dims[0] - 1, 1);
    const int64_t pair[2] = {flat->dims[0] / 2, 2}, count = pair[0];
    hlo_t pairs = hlo_reshape(b, flat, 2, pair);
    hlo_t re = hlo_reshape(b, hlo_slice_dim(b, pairs, 1, 0, 1, 1), 1, &count);
    hlo_t im = hlo_reshape(b, hlo_slice_dim(b, pairs, 1, 1, 2, 1), 1, &count);
    return hlo_complex(b, re, im);
  }
  int64_t from = (int64_t)tt_dtype_size(v->dtype), to = (int64_t)tt_dtype_size(dtype);
  if (from < to) {
    if ((n * from) % to) {  // a tail that is no whole element cannot be seen through this dtype
      n -= n % (to / from);
      v = hlo_slice_dim(b, v, 0, 0, n, 1);
    }
    const int64_t group[2] = {n * from / to, to / from};
    return hlo_bitcast(b, hlo_reshape(b, v, 2, group), dtype);
  }
  hlo_t out = hlo_bitcast(b, v, dtype);
  return from > to ? hlo_reshape(b, out, 1, &(int64_t){n * from / to}) : out;
}

// |base| as the mixed-radix box of the plan (padded at the end where L is no multiple).
static hlo_t to_box(hlo_builder_t* b, hlo_t base, tt_dtype_t dtype, const tt_view_plan_t* p) {
  int64_t want = 1;
  for (int i = 0; i < p->n; i++) want *= p->radix[i];
  hlo_t v = base;
  if (base->dtype != dtype) v = tt_view_reinterpret(b, hlo_flatten(b, base), dtype);
  int64_t total = hlo_numel(v);
  if (total != want) {
    v = hlo_flatten(b, v);
    const int64_t zero = 0, extra = want - total;
    v = hlo_pad(b, v, hlo_scalar(b, dtype, 0), &zero, &extra, NULL);
  }
  return hlo_reshape(b, v, p->n, p->radix);
}

// Start operands of the box; |*out_static| when all are zero.
static void box_starts(hlo_builder_t* b, const tt_view_plan_t* p, const hlo_t* digits, hlo_t* out, bool* out_static) {
  hlo_t zero = hlo_scalar_int(b, TT_I64, 0);
  *out_static = true;
  for (int i = 0; i < p->n; i++) {
    out[i] = digits[i] ? digits[i] : zero;
    if (digits[i]) *out_static = false;
  }
}

// Flat indices of every element of the view, shaped as the view, with a last dim of 1.
static hlo_t flat_indices(hlo_builder_t* b, int rank, const int64_t* sizes, const int64_t* strides, hlo_t offset) {
  hlo_t index = hlo_broadcast_to(b, offset ? offset : hlo_scalar_int(b, TT_I64, 0), rank, sizes);
  for (int d = 0; d < rank; d++) {
    if (sizes[d] == 1 || strides[d] == 0) continue;
    hlo_t i = hlo_iota(b, TT_I64, rank, sizes, d);
    index = hlo_add(b, index, hlo_multiply(b, i, hlo_scalar_int(b, TT_I64, strides[d])));
  }
  return hlo_unsqueeze(b, index, rank);
}

// Dims of the view in sorted order, without size-1 and broadcast dims; perm: sorted position of each kept view dim.
static int kept_dims(const tt_view_plan_t* p, int rank, int64_t* perm_to_view, int64_t* view_dims) {
  int n = 0;
  for (int d = 0; d < rank; d++)
    for (int i = 0; i < p->n_sorted; i++)
      if (p->sorted[i] == d) perm_to_view[n] = i, view_dims[n++] = d;
  return n;
}

hlo_t tt_view_read(hlo_builder_t* b, hlo_t base, tt_dtype_t dtype, int rank, const int64_t* sizes, const int64_t* strides,
                   const tt_view_plan_t* p, const hlo_t* digits) {
  if (p->form == TT_VIEW_EMPTY) return hlo_splat(b, dtype, 0, rank, sizes);
  if (p->form == TT_VIEW_GATHER) {
    hlo_t flat = hlo_flatten(b, base);
    if (flat->dtype != dtype) flat = tt_view_reinterpret(b, flat, dtype);
    static const int64_t k_zero = 0, k_one = 1;
    hlo_gather_t g = {.n_collapsed = 1, .collapsed_slice_dims = &k_zero, .n_map = 1, .start_index_map = &k_zero,
                      .index_vector_dim = rank, .slice_sizes = &k_one};
    return hlo_gather(b, flat, flat_indices(b, rank, sizes, strides, digits[0]), &g);
  }
  hlo_t v = to_box(b, base, dtype, p);
  hlo_t starts[TT_MAX_RANK + 1];
  bool all_static;
  box_starts(b, p, digits, starts, &all_static);
  if (all_static) {
    const int64_t zeros[TT_MAX_RANK + 1] = {0};
    v = hlo_slice(b, v, zeros, p->len, NULL);
  } else {
    v = hlo_dynamic_slice(b, v, starts, p->len);
  }
  int64_t sorted_sizes[TT_MAX_RANK], perm[TT_MAX_RANK], view_dims[TT_MAX_RANK];
  for (int i = 0; i < p->n_sorted; i++) sorted_sizes[i] = sizes[p->sorted[i]];
  v = hlo_reshape(b, v, p->n_sorted, sorted_sizes);
  kept_dims(p, rank, perm, view_dims);
  v = hlo_transpose(b, v, perm);
  return hlo_broadcast_in_dim(b, v, rank, sizes, view_dims);
}

hlo_t tt_view_write(hlo_builder_t* b, hlo_t base, hlo_t value, int rank, const int64_t* sizes, const int64_t* strides,
                    const tt_view_plan_t* p, const hlo_t* digits) {
  if (p->form == TT_VIEW_EMPTY) return base;
  tt_dtype_t dtype = value->dtype;
  hlo_t next;
  int64_t total;
  if (p->form == TT_VIEW_GATHER) {
    hlo_t flat = hlo_flatten(b, base);
    if (flat->dtype != dtype) flat = tt_view_reinterpret(b, flat, dtype);
    static const int64_t k_zero = 0;
    hlo_scatter_t s = {.n_inserted = 1, .inserted_window_dims = &k_zero, .n_map = 1,
                       .scatter_dims_to_operand_dims = &k_zero, .index_vector_dim = rank};
    next = hlo_scatter(b, flat, flat_indices(b, rank, sizes, strides, digits[0]), value, HLO_R_ASSIGN, &s);
    total = next->dims[0];
  } else {
    int64_t perm[TT_MAX_RANK], view_dims[TT_MAX_RANK], back[TT_MAX_RANK], kept_sizes[TT_MAX_RANK];
    int n = kept_dims(p, rank, perm, view_dims);
    for (int i = 0; i < n; i++) kept_sizes[i] = sizes[view_dims[i]];
    for (int i = 0; i < n; i++) back[perm[i]] = i;
    hlo_t update = hlo_transpose(b, hlo_reshape(b, value, n, kept_sizes), back);
    update = hlo_reshape(b, update, p->n, p->len);
    hlo_t starts[TT_MAX_RANK + 1];
    bool all_static;
    box_starts(b, p, digits, starts, &all_static);
    hlo_t box = to_box(b, base, dtype, p);
    if (base->op) {
      // The base is computed in this program, which may use the result more than once. XLA's CPU compiler then may write the slice into its buffer and let another
      // user of the result compute it once more, from the overwritten buffer: wrong where the update reads the base. A
      // selection is never written in place over what it reads elsewhere.
      hlo_t there = hlo_dynamic_update_slice(b, hlo_splat(b, TT_BOOL, 0, p->n, p->radix), hlo_splat(b, TT_BOOL, 1, p->n, p->len), starts);
      next = hlo_select(b, there, hlo_dynamic_update_slice(b, hlo_splat(b, dtype, 0, p->n, p->radix), update, starts), box);
    } else {
      next = hlo_dynamic_update_slice(b, box, update, starts);
    }
    total = hlo_numel(base) * (int64_t)tt_dtype_size(base->dtype) / (int64_t)tt_dtype_size(dtype);
    next = hlo_flatten(b, next);
    if (next->dims[0] != total) next = hlo_slice_dim(b, next, 0, 0, total, 1);
  }
  if (dtype != base->dtype) {
    hlo_t flat = tt_view_reinterpret(b, next, base->dtype);
    int64_t have = flat->dims[0], want = hlo_numel(base);
    if (have < want) {  // bytes past the last whole element are kept
      hlo_t parts[2] = {flat, hlo_slice_dim(b, hlo_flatten(b, base), 0, have, want, 1)};
      flat = hlo_concat(b, 2, parts, 0);
    }
    next = flat;
  }
  return hlo_reshape(b, next, base->rank, base->dims);
}
