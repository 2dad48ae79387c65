// View ops in value form: reshapes, permutations, slices, splits and reinterpretations of dense arrays.
//
// Eager views cost no device work and never come here; these rows serve graphs (torch.compile, decompositions), the
// *_copy twins and unsafe_* forms.
#include <string.h>
#include "ops/indexing.h"
#include "ops/op.h"

// ---------------------------------------------------------------- reshapes
static void lower_identity(tt_lower_t* l) { tt_ret(l, 0, tt_in(l, 0)); }

// view and kin: one entry of the size may be -1.
static void lower_view(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* size = tt_ints(l, 1, &n);
  int64_t dims[TT_MAX_RANK];
  int64_t known = 1;
  int unknown = -1;
  for (int i = 0; i < n && i < TT_MAX_RANK; i++) {
    dims[i] = size[i];
    if (size[i] < 0) {
      unknown = i;
    } else {
      known *= size[i];
    }
  }
  if (unknown >= 0) dims[unknown] = known ? hlo_numel(x) / known : 0;
  tt_ret(l, 0, hlo_reshape(b, x, n, dims));
}

static void lower_squeeze_all(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int64_t dims[TT_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; i++) {
    if (x->dims[i] != 1) dims[rank++] = x->dims[i];
  }
  tt_ret(l, 0, hlo_reshape(tt_b(l), x, rank, dims));
}

static hlo_t squeeze_mask(hlo_builder_t* b, hlo_t x, uint32_t mask) {
  int64_t dims[TT_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; i++) {
    if (!((mask >> i) & 1u) || x->dims[i] != 1) dims[rank++] = x->dims[i];
  }
  return hlo_reshape(b, x, rank, dims);
}

static void lower_squeeze_dim(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  tt_ret(l, 0, squeeze_mask(tt_b(l), x, 1u << hlo_dim(tt_b(l), tt_int(l, 1), x->rank)));
}

static void lower_squeeze_dims(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* dims = tt_ints(l, 1, &n);
  uint32_t mask = 0;
  for (int i = 0; i < n; i++) mask |= 1u << hlo_dim(tt_b(l), dims[i], x->rank);
  tt_ret(l, 0, squeeze_mask(tt_b(l), x, mask));
}

static void lower_unsqueeze(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  tt_ret(l, 0, hlo_unsqueeze(tt_b(l), x, hlo_dim(tt_b(l), tt_int(l, 1), x->rank + 1)));
}

// expand: -1 keeps a dim; new dims come in front.
static void lower_expand(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* size = tt_ints(l, 1, &n);
  int64_t dims[TT_MAX_RANK];
  for (int i = 0; i < n && i < TT_MAX_RANK; i++) {
    const int at = i - (n - x->rank);
    dims[i] = size[i] < 0 && at >= 0 ? x->dims[at] : size[i];
  }
  tt_ret(l, 0, hlo_broadcast_to(tt_b(l), x, n, dims));
}

static void lower_flatten(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_at_least_1d(b, tt_in(l, 0));
  const int from = hlo_dim(b, tt_int(l, 1), x->rank), to = hlo_dim(b, tt_int(l, 2), x->rank);
  int64_t dims[TT_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; i++) {
    if (i > from && i <= to) {
      dims[rank - 1] *= x->dims[i];
    } else {
      dims[rank++] = x->dims[i];
    }
  }
  tt_ret(l, 0, hlo_reshape(b, x, rank, dims));
}

static void lower_unflatten(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  int n = 0;
  const int64_t* sizes = tt_ints(l, 2, &n);
  if (x->rank - 1 + n > TT_MAX_RANK) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "unflatten: too many dims");
    return;
  }
  int64_t known = 1;
  for (int i = 0; i < n; i++) known *= sizes[i] < 0 ? 1 : sizes[i];
  int64_t dims[TT_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < dim; i++) dims[rank++] = x->dims[i];
  for (int i = 0; i < n; i++) dims[rank++] = sizes[i] < 0 ? (known ? x->dims[dim] / known : 0) : sizes[i];
  for (int i = dim + 1; i < x->rank; i++) dims[rank++] = x->dims[i];
  tt_ret(l, 0, hlo_reshape(b, x, rank, dims));
}

// ---------------------------------------------------------------- permutations
static void lower_permute(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* dims = tt_ints(l, 1, &n);
  int64_t perm[TT_MAX_RANK] = {0};
  for (int i = 0; i < x->rank && i < n; i++) perm[i] = hlo_dim(tt_b(l), dims[i], x->rank);
  tt_ret(l, 0, hlo_transpose(tt_b(l), x, perm));
}

static void lower_transpose(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  const int d0 = hlo_dim(tt_b(l), tt_int(l, 1), x->rank), d1 = hlo_dim(tt_b(l), tt_int(l, 2), x->rank);
  tt_ret(l, 0, d0 == d1 ? x : hlo_swap_dims(tt_b(l), x, d0, d1));
}

static void lower_t(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  tt_ret(l, 0, x->rank < 2 ? x : hlo_swap_dims(tt_b(l), x, 0, 1));
}

static void lower_reverse_dims(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int64_t perm[TT_MAX_RANK];
  for (int i = 0; i < x->rank; i++) perm[i] = x->rank - 1 - i;
  tt_ret(l, 0, x->rank < 2 ? x : hlo_transpose(tt_b(l), x, perm));
}

static hlo_t conjugate(hlo_builder_t* b, hlo_t x) {
  return tt_is_complex(x->dtype) ? hlo_complex(b, hlo_real(b, x), hlo_negate(b, hlo_imag(b, x))) : x;
}

static void lower_matrix_transpose(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  if (x->rank >= 2) x = hlo_swap_dims(tt_b(l), x, x->rank - 2, x->rank - 1);
  tt_ret(l, 0, tt_row(l)->kind ? conjugate(tt_b(l), x) : x);
}

static void lower_movedim(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int n = 1, n_to = 1;
  const int64_t one_from = tt_row(l)->kind ? 0 : tt_int(l, 1), one_to = tt_row(l)->kind ? 0 : tt_int(l, 2);
  const int64_t* from = tt_row(l)->kind ? tt_ints(l, 1, &n) : &one_from;
  const int64_t* to = tt_row(l)->kind ? tt_ints(l, 2, &n_to) : &one_to;
  if (x->rank == 0) {
    tt_ret(l, 0, x);
    return;
  }
  int64_t perm[TT_MAX_RANK];
  bool used[TT_MAX_RANK] = {false};
  for (int i = 0; i < x->rank; i++) perm[i] = -1;
  for (int i = 0; i < n && i < n_to; i++) {
    const int source = hlo_dim(b, from[i], x->rank);
    perm[hlo_dim(b, to[i], x->rank)] = source;
    used[source] = true;
  }
  for (int i = 0, next = 0; i < x->rank; i++) {
    if (perm[i] >= 0) continue;
    while (next < x->rank && used[next]) next++;
    perm[i] = next++;
  }
  tt_ret(l, 0, hlo_transpose(b, x, perm));
}

// ---------------------------------------------------------------- slices
static void lower_slice(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  if (x->rank == 0) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "slice() cannot be applied to a 0-dim tensor."));
    return;
  }
  int64_t start = tt_int_or(l, 2, 0), end = tt_int_or(l, 3, INT64_MAX);
  tt_clamp_slice(x->dims[dim], &start, &end);
  tt_ret(l, 0, hlo_slice_dim(b, x, dim, start, end, tt_int_or(l, 4, 1)));
}

static hlo_t select_at(hlo_builder_t* b, hlo_t x, int dim, int64_t index) {
  if (index < 0) index += x->dims[dim];
  return hlo_squeeze(b, hlo_slice_dim(b, x, dim, index, index + 1, 1), dim);
}

static void lower_select(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  tt_ret(l, 0, select_at(tt_b(l), x, hlo_dim(tt_b(l), tt_int(l, 1), x->rank), tt_int(l, 2)));
}

static void lower_narrow(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  const int dim = hlo_dim(tt_b(l), tt_int(l, 1), x->rank);
  int64_t start = tt_int(l, 2);
  if (start < 0) start += x->dims[dim];
  tt_ret(l, 0, hlo_slice_dim(tt_b(l), x, dim, start, start + tt_int(l, 3), 1));
}

static void lower_diagonal(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const int64_t offset = tt_int(l, 1);
  const int d1 = hlo_dim(b, tt_int(l, 2), x->rank), d2 = hlo_dim(b, tt_int(l, 3), x->rank);
  int64_t perm[TT_MAX_RANK];
  tt_perm_to_back(x->rank, d1, d2, perm);
  x = hlo_transpose(b, x, perm);
  const int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1];
  const int64_t r0 = offset < 0 ? -offset : 0, c0 = offset > 0 ? offset : 0;
  int64_t count = rows - r0 < cols - c0 ? rows - r0 : cols - c0;
  if (count < 0) count = 0;
  // In the flattened matrix the diagonal is a slice of stride cols + 1.
  int64_t dims[TT_MAX_RANK];
  memcpy(dims, x->dims, sizeof(int64_t) * (size_t)x->rank);
  const int last = x->rank - 2;
  dims[last] = rows * cols;
  const int64_t start = count ? r0 * cols + c0 : 0;
  x = hlo_reshape(b, x, last + 1, dims);
  tt_ret(l, 0, hlo_slice_dim(b, x, last, start, count ? start + (count - 1) * (cols + 1) + 1 : start, cols + 1));
}

static void lower_unfold(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_at_least_1d(b, tt_in(l, 0));
  const int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  const int64_t size = tt_int(l, 2), step = tt_int(l, 3);
  if (tt_in(l, 0)->rank == 0) {  // a 0-d tensor unfolds into [size]
    tt_ret(l, 0, hlo_slice_dim(b, x, 0, 0, size, 1));
    return;
  }
  const int64_t n = (x->dims[dim] - size) / step + 1;
  hlo_t windows = tt_windows_read(b, x, dim, n, size, step, 1);
  int64_t perm[TT_MAX_RANK];
  for (int i = 0; i < windows->rank; i++) perm[i] = i <= dim ? i : i + 1;
  perm[windows->rank - 1] = dim + 1;
  tt_ret(l, 0, hlo_transpose(b, windows, perm));
}

// ---------------------------------------------------------------- splits: list results
static void ret_pieces(tt_lower_t* l, hlo_t x, int dim, int64_t piece) {
  const int64_t total = x->dims[dim];
  if (piece <= 0) piece = total > 0 ? total : 1;
  int i = 0;
  int64_t at = 0;
  do {
    const int64_t end = at + piece < total ? at + piece : total;
    tt_ret(l, i++, hlo_slice_dim(tt_b(l), x, dim, at, end, 1));
    at = end;
  } while (at < total && !hlo_failed(tt_b(l)));
}

static void lower_split(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  ret_pieces(l, x, hlo_dim(tt_b(l), tt_int(l, 2), x->rank), tt_int(l, 1));
}

static void lower_chunk(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const int64_t chunks = tt_int(l, 1);
  const int dim = hlo_dim(b, tt_int(l, 2), x->rank);
  if (x->dims[dim] == 0) {  // an empty dim still gives the number of chunks that was asked for
    for (int i = 0; i < chunks; i++) tt_ret(l, i, x);
    return;
  }
  ret_pieces(l, x, dim, (x->dims[dim] + chunks - 1) / chunks);
}

static void lower_split_sizes(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* sizes = tt_ints(l, 1, &n);
  const int dim = hlo_dim(b, tt_int(l, 2), x->rank);
  int64_t at = 0;
  for (int i = 0; i < n; i++) {
    tt_ret(l, i, hlo_slice_dim(b, x, dim, at, at + sizes[i], 1));
    at += sizes[i];
  }
}

static void lower_unbind(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  const int dim = hlo_dim(tt_b(l), tt_int(l, 1), x->rank);
  for (int i = 0; i < x->dims[dim]; i++) tt_ret(l, i, select_at(tt_b(l), x, dim, i));
}

// ---------------------------------------------------------------- as_strided
typedef struct strided_t {
  int rank;
  const int64_t *size, *stride;
  int64_t offset;
} strided_t;

static strided_t strided_args(tt_lower_t* l, int first) {
  strided_t s = {.offset = tt_int_or(l, first + 2, 0)};
  int n = 0;
  s.size = tt_ints(l, first, &s.rank);
  s.stride = tt_ints(l, first + 1, &n);
  if (n != s.rank || s.rank > TT_MAX_RANK) {
    hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "mismatch in length of strides and shape");
    s.rank = 0;
  }
  return s;
}

static hlo_t strided_index(hlo_builder_t* b, const strided_t* s) {
  hlo_t index = tt_splat_int(b, TT_I64, s->offset, s->rank, s->size);
  for (int i = 0; i < s->rank; i++) {
    if (s->size[i] <= 1 || s->stride[i] == 0) continue;
    index = hlo_add(b, index, tt_affine(b, hlo_iota(b, TT_I64, s->rank, s->size, i), s->stride[i], 0));
  }
  return index;
}

// Dims that move (size > 1, stride > 0) by falling stride, when each nests in the one before, so that the view is a
// slice of a reshape; -1 when they do not.
static int nested_order(const strided_t* s, int order[TT_MAX_RANK]) {
  int n = 0;
  for (int i = 0; i < s->rank; i++) {
    if (s->size[i] == 1 || s->stride[i] == 0) continue;
    int at = n++;
    for (; at > 0 && s->stride[order[at - 1]] < s->stride[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  for (int k = 0; k + 1 < n; k++) {
    const int64_t outer = s->stride[order[k]], inner = s->stride[order[k + 1]];
    if (outer % inner != 0 || s->size[order[k + 1]] > outer / inner) return -1;
  }
  return n;
}

static hlo_t read_nested(hlo_builder_t* b, hlo_t flat, const strided_t* s, int n, const int* order) {
  const int64_t total = n ? s->size[order[0]] * s->stride[order[0]] : 1;
  const int64_t have = flat->dims[0] - s->offset < total ? flat->dims[0] - s->offset : total;
  flat = hlo_slice_dim(b, flat, 0, s->offset, s->offset + have, 1);
  if (have < total) {  // only the skipped tail of the last row is missing
    const int64_t lo = 0, hi = total - have;
    flat = hlo_pad(b, flat, hlo_scalar(b, flat->dtype, 0), &lo, &hi, NULL);
  }
  int64_t dims[TT_MAX_RANK + 1], zero[TT_MAX_RANK + 1] = {0}, limit[TT_MAX_RANK + 1];
  int64_t map[TT_MAX_RANK], perm[TT_MAX_RANK];
  for (int k = 0; k < n; k++) {
    dims[k] = k == 0 ? s->size[order[0]] : s->stride[order[k - 1]] / s->stride[order[k]];
    limit[k] = s->size[order[k]];
  }
  dims[n] = n ? s->stride[order[n - 1]] : 1;
  limit[n] = 1;
  hlo_t x = hlo_slice(b, hlo_reshape(b, flat, n + 1, dims), zero, limit, NULL);
  x = hlo_reshape(b, x, n, limit);
  int m = 0;
  for (int i = 0; i < s->rank; i++) {  // back to the view's order, then the broadcast and unit dims
    for (int k = 0; k < n; k++) {
      if (order[k] != i) continue;
      map[m] = i;
      perm[m++] = k;
    }
  }
  if (n > 1) x = hlo_transpose(b, x, perm);
  return hlo_broadcast_in_dim(b, x, s->rank, s->size, map);
}

static void lower_as_strided(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const strided_t s = strided_args(l, 1);
  int64_t numel = 1;
  for (int i = 0; i < s.rank; i++) numel *= s.size[i];
  if (numel == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, s.rank, s.size));
    return;
  }
  int order[TT_MAX_RANK];
  const int n = nested_order(&s, order);
  hlo_t flat = hlo_flatten(b, x);
  tt_ret(l, 0, n >= 0 ? read_nested(b, flat, &s, n, order) : hlo_take(b, flat, strided_index(b, &s), 0));
}

static void lower_as_strided_scatter(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  hlo_t src = hlo_convert(b, tt_in(l, 1), x->dtype);
  const strided_t s = strided_args(l, 2);
  hlo_t index = hlo_flatten(b, strided_index(b, &s));
  hlo_t flat = tt_put(b, hlo_flatten(b, x), index, hlo_flatten(b, src), 0, HLO_R_ASSIGN);
  tt_ret(l, 0, tt_reshape_like(b, flat, x));
}

// ---------------------------------------------------------------- reinterpretations
static hlo_t complex_to_pairs(hlo_builder_t* b, hlo_t x) {
  const hlo_t parts[2] = {hlo_unsqueeze(b, hlo_real(b, x), x->rank), hlo_unsqueeze(b, hlo_imag(b, x), x->rank)};
  return hlo_concat(b, 2, parts, x->rank);
}

static hlo_t pairs_to_complex(hlo_builder_t* b, hlo_t x) {
  const int last = x->rank - 1;
  return hlo_complex(b, select_at(b, x, last, 0), select_at(b, x, last, 1));
}

static hlo_t with_last_dims(hlo_builder_t* b, hlo_t x, int keep, int64_t d0, int64_t d1) {
  int64_t dims[TT_MAX_RANK + 2];
  memcpy(dims, x->dims, sizeof(int64_t) * (size_t)keep);
  dims[keep] = d0;
  dims[keep + 1] = d1;
  return hlo_reshape(b, x, d1 > 0 ? keep + 2 : keep + 1, dims);
}

static tt_dtype_t part_dtype(tt_dtype_t dtype) {
  return dtype == TT_C64 ? TT_F32 : dtype == TT_C128 ? TT_F64 : dtype == TT_BOOL ? TT_U8 : dtype;
}

// The bytes of the last dim read as |to|. Complex and bool have no bit pattern in XLA: they go by their parts.
static hlo_t view_as_dtype(hlo_builder_t* b, hlo_t x, tt_dtype_t to) {
  if (x->dtype == to) return x;
  hlo_t out = tt_at_least_1d(b, x);
  const int keep = out->rank - 1;
  int64_t last = out->dims[keep];
  if (tt_is_complex(out->dtype)) {
    last *= 2;
    out = with_last_dims(b, complex_to_pairs(b, out), keep, last, 0);
  } else {
    out = hlo_convert(b, out, part_dtype(out->dtype));
  }
  const int64_t from_size = (int64_t)tt_dtype_size(out->dtype), to_size = (int64_t)tt_dtype_size(part_dtype(to));
  if (to_size > from_size) out = with_last_dims(b, out, keep, last * from_size / to_size, to_size / from_size);
  if (part_dtype(to) != out->dtype) out = hlo_bitcast(b, out, part_dtype(to));
  last = last * from_size / to_size;
  if (to_size < from_size) out = with_last_dims(b, out, keep, last, 0);
  if (tt_is_complex(to)) {
    out = pairs_to_complex(b, with_last_dims(b, out, keep, last / 2, 2));
  } else {
    out = hlo_convert(b, out, to);
  }
  return x->rank == 0 ? hlo_reshape(b, out, 0, NULL) : out;
}

static void lower_view_dtype(tt_lower_t* l) { tt_ret(l, 0, view_as_dtype(tt_b(l), tt_in(l, 0), tt_dtype_arg(l, 1))); }
static void lower_view_as_real(tt_lower_t* l) { tt_ret(l, 0, complex_to_pairs(tt_b(l), tt_in(l, 0))); }
static void lower_view_as_complex(tt_lower_t* l) { tt_ret(l, 0, pairs_to_complex(tt_b(l), tt_in(l, 0))); }
static void lower_conj(tt_lower_t* l) { tt_ret(l, 0, conjugate(tt_b(l), tt_in(l, 0))); }
static void lower_neg_view(tt_lower_t* l) { tt_ret(l, 0, hlo_negate(tt_b(l), tt_in(l, 0))); }
static void lower_real(tt_lower_t* l) { tt_ret(l, 0, hlo_real(tt_b(l), tt_in(l, 0))); }
static void lower_imag(tt_lower_t* l) { tt_ret(l, 0, hlo_imag(tt_b(l), tt_in(l, 0))); }

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {"alias", .lower = lower_identity},
    {"alias_copy", .lower = lower_identity},
    {"detach", .lower = lower_identity},
    {"detach_copy", .lower = lower_identity},
    {"lift", .lower = lower_identity},
    {"lift_fresh", .lower = lower_identity},
    {"lift_fresh_copy", .lower = lower_identity},
    {"resolve_conj", .lower = lower_identity},
    {"resolve_neg", .lower = lower_identity},
    {"_fw_primal_copy", .lower = lower_identity},
    {"view", .lower = lower_view},
    {"view_copy", .lower = lower_view},
    {"_unsafe_view", .lower = lower_view},
    {"reshape", .lower = lower_view},
    {"_reshape_copy", .lower = lower_view},
    {"_reshape_alias", .lower = lower_view},
    {"_reshape_alias_copy", .lower = lower_view},
    {"flatten.using_ints", .lower = lower_flatten},
    {"unflatten.int", .lower = lower_unflatten},
    {"squeeze", .lower = lower_squeeze_all},
    {"squeeze.dim", .lower = lower_squeeze_dim},
    {"squeeze.dims", .lower = lower_squeeze_dims},
    {"squeeze_copy", .lower = lower_squeeze_all},
    {"squeeze_copy.dim", .lower = lower_squeeze_dim},
    {"squeeze_copy.dims", .lower = lower_squeeze_dims},
    {"unsqueeze", .lower = lower_unsqueeze},
    {"unsqueeze_copy", .lower = lower_unsqueeze},
    {"expand", .lower = lower_expand},
    {"expand_copy", .lower = lower_expand},
    {"permute", .lower = lower_permute},
    {"permute_copy", .lower = lower_permute},
    {"transpose.int", .lower = lower_transpose},
    {"transpose_copy.int", .lower = lower_transpose},
    {"swapdims", .lower = lower_transpose},
    {"swapaxes", .lower = lower_transpose},
    {"t", .lower = lower_t},
    {"t_copy", .lower = lower_t},
    {"numpy_T", .lower = lower_reverse_dims},
    {"mT", .lower = lower_matrix_transpose},
    {"mH", .lower = lower_matrix_transpose, .kind = 1},
    {"adjoint", .lower = lower_matrix_transpose, .kind = 1},
    {"movedim.int", .lower = lower_movedim},
    {"movedim.intlist", .lower = lower_movedim, .kind = 1},
    {"slice.Tensor", .lower = lower_slice},
    {"slice_copy.Tensor", .lower = lower_slice},
    {"select.int", .lower = lower_select},
    {"select_copy.int", .lower = lower_select},
    {"narrow", .lower = lower_narrow},
    {"narrow_copy", .lower = lower_narrow},
    {"diagonal", .lower = lower_diagonal},
    {"diagonal_copy", .lower = lower_diagonal},
    {"unfold", .lower = lower_unfold},
    {"unfold_copy", .lower = lower_unfold},
    {"split.Tensor", .lower = lower_split},
    {"split_copy.Tensor", .lower = lower_split},
    {"unsafe_split.Tensor", .lower = lower_split},
    {"split.sizes", .lower = lower_split_sizes},
    {"split_with_sizes", .lower = lower_split_sizes},
    {"split_with_sizes_copy", .lower = lower_split_sizes},
    {"unsafe_split_with_sizes", .lower = lower_split_sizes},
    {"chunk", .lower = lower_chunk},
    {"unsafe_chunk", .lower = lower_chunk},
    {"unbind.int", .lower = lower_unbind},
    {"unbind_copy.int", .lower = lower_unbind},
    {"as_strided", .lower = lower_as_strided},
    {"as_strided_copy", .lower = lower_as_strided},
    {"as_strided_scatter", .lower = lower_as_strided_scatter},
    {"view.dtype", .lower = lower_view_dtype},
    {"view_copy.dtype", .lower = lower_view_dtype},
    {"view_as_real", .lower = lower_view_as_real},
    {"view_as_real_copy", .lower = lower_view_as_real},
    {"view_as_complex", .lower = lower_view_as_complex},
    {"view_as_complex_copy", .lower = lower_view_as_complex},
    {"_conj", .lower = lower_conj},
    {"_conj_copy", .lower = lower_conj},
    {"_neg_view", .lower = lower_neg_view},
    {"_neg_view_copy", .lower = lower_neg_view},
    {"real", .lower = lower_real},
    {"imag", .lower = lower_imag},
};
TT_OP_FAMILY(shape, k_rows)
