// Ops that rearrange, join and repeat values, and the writes of a view's content into its base.
#include <string.h>
#include "ops/common.h"
#include "ops/indexing.h"
#include "ops/op.h"

static hlo_t zeros_of(tt_lower_t* l, tt_dtype_t dtype, int arg) {
  int n = 0;
  const int64_t* dims = tt_ints(l, arg, &n);
  return hlo_splat(tt_b(l), dtype, 0, n, dims);
}

static hlo_t zero_of(hlo_builder_t* b, hlo_t like) { return hlo_scalar(b, like->dtype, 0); }

// ---------------------------------------------------------------- *_scatter and backwards of views
// |src| written into |x| at start, start + step, ... along |dim|.
static hlo_t write_slice(hlo_builder_t* b, hlo_t x, hlo_t src, int dim, int64_t start, int64_t step) {
  if (hlo_numel(src) == 0) return x;
  if (step == 1) {
    hlo_t starts[TT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) starts[i] = hlo_scalar_int(b, TT_I32, i == dim ? start : 0);
    return hlo_dynamic_update_slice(b, x, src, starts);
  }
  int64_t lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0}, interior[TT_MAX_RANK] = {0};
  lo[dim] = start;
  interior[dim] = step - 1;
  hi[dim] = x->dims[dim] - start - ((src->dims[dim] - 1) * step + 1);
  hlo_t spread = hlo_pad(b, src, zero_of(b, src), lo, hi, interior);
  hlo_t ones = hlo_splat(b, TT_BOOL, 1, 1, &src->dims[dim]);
  hlo_t mask = hlo_pad(b, ones, hlo_scalar(b, TT_BOOL, 0), &lo[dim], &hi[dim], &interior[dim]);
  const int64_t map = dim;
  return hlo_select(b, hlo_broadcast_in_dim(b, mask, x->rank, x->dims, &map), spread, x);
}

static void lower_slice_scatter(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const int dim = hlo_dim(b, tt_int(l, 2), x->rank);
  int64_t start = tt_int_or(l, 3, 0), end = tt_int_or(l, 4, INT64_MAX);
  const int64_t step = tt_int_or(l, 5, 1);
  tt_clamp_slice(x->dims[dim], &start, &end);
  int64_t dims[TT_MAX_RANK];
  memcpy(dims, x->dims, sizeof(int64_t) * (size_t)x->rank);
  dims[dim] = (end - start + step - 1) / step;
  hlo_t src = hlo_broadcast_to(b, tt_in_as(l, 1, x->dtype), x->rank, dims);
  tt_ret(l, 0, write_slice(b, x, src, dim, start, step));
}

static hlo_t write_select(hlo_builder_t* b, hlo_t x, hlo_t src, int dim, int64_t index) {
  if (index < 0) index += x->dims[dim];
  int64_t dims[TT_MAX_RANK];
  memcpy(dims, x->dims, sizeof(int64_t) * (size_t)x->rank);
  dims[dim] = 1;
  return write_slice(b, x, hlo_reshape(b, src, x->rank, dims), dim, index, 1);
}

static void lower_select_scatter(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  const int dim = hlo_dim(tt_b(l), tt_int(l, 2), x->rank);
  tt_ret(l, 0, write_select(tt_b(l), x, tt_in_as(l, 1, x->dtype), dim, tt_int(l, 3)));
}

static void lower_slice_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t grad = tt_in(l, 0);
  int rank = 0;
  const int64_t* sizes = tt_ints(l, 1, &rank);
  const int dim = hlo_dim(b, tt_int(l, 2), rank);
  int64_t start = tt_int(l, 3), end = tt_int(l, 4);
  const int64_t step = tt_int(l, 5);
  tt_clamp_slice(sizes[dim], &start, &end);
  if (grad->dims[dim] == 0) {
    tt_ret(l, 0, zeros_of(l, grad->dtype, 1));
    return;
  }
  int64_t lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0}, interior[TT_MAX_RANK] = {0};
  lo[dim] = start;
  interior[dim] = step - 1;
  hi[dim] = sizes[dim] - start - ((grad->dims[dim] - 1) * step + 1);
  tt_ret(l, 0, hlo_pad(b, grad, zero_of(b, grad), lo, hi, interior));
}

static void lower_select_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int rank = 0;
  const int64_t* sizes = tt_ints(l, 1, &rank);
  const int dim = hlo_dim(b, tt_int(l, 2), rank);
  int64_t index = tt_int(l, 3);
  if (index < 0) index += sizes[dim];
  hlo_t grad = hlo_unsqueeze(b, tt_in(l, 0), dim);
  int64_t lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0};
  lo[dim] = index;
  hi[dim] = sizes[dim] - index - 1;
  tt_ret(l, 0, hlo_pad(b, grad, zero_of(b, grad), lo, hi, NULL));
}

// Diagonal |offset| of x's dims d1, d2 replaced by |diag| (other dims, then the diagonal). Works by a mask: row r,
// column r + offset takes the diagonal's element, which one row-independent pad of |diag| puts under its column.
static hlo_t write_diagonal(hlo_builder_t* b, hlo_t x, hlo_t diag, int64_t offset, int d1, int d2) {
  if (hlo_numel(diag) == 0) return x;
  int64_t perm[TT_MAX_RANK], inverse[TT_MAX_RANK], lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0}, map[TT_MAX_RANK];
  tt_perm_to_back(x->rank, d1, d2, perm);
  tt_perm_inverse(x->rank, perm, inverse);
  x = hlo_transpose(b, x, perm);
  const int row = x->rank - 2, col = x->rank - 1;
  lo[row] = offset > 0 ? offset : 0;
  hi[row] = x->dims[col] - lo[row] - diag->dims[row];
  hlo_t padded = hlo_pad(b, diag, zero_of(b, diag), lo, hi, NULL);
  for (int i = 0; i < row; i++) map[i] = i;
  map[row] = col;
  padded = hlo_broadcast_in_dim(b, padded, x->rank, x->dims, map);
  hlo_t r = hlo_iota(b, TT_I32, 2, x->dims + row, 0), c = hlo_iota(b, TT_I32, 2, x->dims + row, 1);
  hlo_t on = hlo_compare(b, HLO_EQ, hlo_subtract(b, c, r), hlo_scalar_int(b, TT_I32, offset));
  return hlo_transpose(b, hlo_select(b, on, padded, x), inverse);
}

static void lower_diagonal_scatter(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const int d1 = hlo_dim(b, tt_int(l, 3), x->rank), d2 = hlo_dim(b, tt_int(l, 4), x->rank);
  tt_ret(l, 0, write_diagonal(b, x, tt_in_as(l, 1, x->dtype), tt_int(l, 2), d1, d2));
}

static void lower_diagonal_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t grad = tt_in(l, 0), zeros = zeros_of(l, grad->dtype, 1);
  const int d1 = hlo_dim(b, tt_int(l, 3), zeros->rank), d2 = hlo_dim(b, tt_int(l, 4), zeros->rank);
  tt_ret(l, 0, write_diagonal(b, zeros, grad, tt_int(l, 2), d1, d2));
}

static void lower_diag_embed(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const int rank = x->rank + 1;
  const int64_t offset = tt_int(l, 1), side = x->dims[x->rank - 1] + (offset < 0 ? -offset : offset);
  const int d1 = hlo_dim(b, tt_int(l, 2), rank), d2 = hlo_dim(b, tt_int(l, 3), rank);
  int64_t dims[TT_MAX_RANK];
  for (int i = 0, next = 0; i < rank && i < TT_MAX_RANK; i++) dims[i] = i == d1 || i == d2 ? side : x->dims[next++];
  tt_ret(l, 0, write_diagonal(b, hlo_splat(b, x->dtype, 0, rank, dims), x, offset, d1, d2));
}

static void lower_unfold_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t grad = tt_in_as(l, 0, tt_math_dtype(l, 0));
  int rank = 0;
  const int64_t* sizes = tt_ints(l, 1, &rank);
  const int64_t step = tt_int(l, 4);
  if (rank == 0) {
    tt_ret(l, 0, hlo_reshape(b, hlo_slice_dim(b, grad, 0, 0, 1, 1), 0, NULL));
    return;
  }
  const int dim = hlo_dim(b, tt_int(l, 2), rank);
  int64_t perm[TT_MAX_RANK + 1];
  for (int i = 0; i < grad->rank; i++) perm[i] = i <= dim ? i : i - 1;
  perm[dim + 1] = grad->rank - 1;
  grad = hlo_transpose(b, grad, perm);
  int64_t dims[TT_MAX_RANK + 1];  // istft gives one gradient for all of a batch
  for (int i = 0; i < grad->rank; i++) dims[i] = i < dim ? sizes[i] : i > dim + 1 ? sizes[i - 1] : grad->dims[i];
  tt_ret(l, 0, tt_windows_add(b, hlo_broadcast_to(b, grad, grad->rank, dims), dim, sizes[dim], step, 1));
}

// ---------------------------------------------------------------- joining
static void lower_cat(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const int n = tt_list_len(l, 0);
  const tt_dtype_t dtype = tt_out_dtype(l, 0);
  hlo_t* parts = tt_arena_alloc(hlo_builder_arena(b), sizeof(hlo_t) * (size_t)(n ? n : 1));
  if (!parts) return;
  hlo_t skipped = NULL;
  int count = 0;
  for (int i = 0; i < n; i++) {
    hlo_t x = tt_in_list(l, 0, i);
    if (!x) continue;
    if (x->rank == 1 && x->dims[0] == 0) {  // an empty 1-D tensor joins anything (a legacy of PyTorch's)
      skipped = x;
    } else {
      parts[count++] = hlo_convert(b, x, dtype);
    }
  }
  if (count == 0) {
    const int64_t zero = 0;
    tt_ret(l, 0, skipped ? hlo_convert(b, skipped, dtype) : hlo_splat(b, dtype, 0, 1, &zero));
    return;
  }
  tt_ret(l, 0, count == 1 ? parts[0] : hlo_concat(b, count, parts, hlo_dim(b, tt_int(l, 1), parts[0]->rank)));
}

static void lower_stack(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const int n = tt_list_len(l, 0);
  const tt_dtype_t dtype = tt_out_dtype(l, 0);
  hlo_t* parts = tt_arena_alloc(hlo_builder_arena(b), sizeof(hlo_t) * (size_t)(n ? n : 1));
  if (!parts || n == 0) return;
  const int dim = hlo_dim(b, tt_int(l, 1), tt_in_list(l, 0, 0)->rank + 1);
  for (int i = 0; i < n; i++) parts[i] = hlo_unsqueeze(b, hlo_convert(b, tt_in_list(l, 0, i), dtype), dim);
  tt_ret(l, 0, n == 1 ? parts[0] : hlo_concat(b, n, parts, dim));
}

static void lower_block_diag(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const int n = tt_list_len(l, 0);
  const tt_dtype_t dtype = tt_out_dtype(l, 0);
  hlo_t* parts = tt_arena_alloc(hlo_builder_arena(b), sizeof(hlo_t) * (size_t)(n ? n : 1));
  if (!parts || n == 0) return;
  int64_t cols = 0, at = 0;
  for (int i = 0; i < n; i++) {
    hlo_t x = hlo_convert(b, tt_in_list(l, 0, i), dtype);
    const int64_t dims[2] = {x->rank == 2 ? x->dims[0] : 1, x->rank == 0 ? 1 : x->dims[x->rank - 1]};
    parts[i] = hlo_reshape(b, x, 2, dims);
    cols += dims[1];
  }
  for (int i = 0; i < n; i++) {
    const int64_t width = parts[i]->dims[1], lo[2] = {0, at}, hi[2] = {0, cols - at - width};
    parts[i] = hlo_pad(b, parts[i], zero_of(b, parts[i]), lo, hi, NULL);
    at += width;
  }
  tt_ret(l, 0, n == 1 ? parts[0] : hlo_concat(b, n, parts, 0));
}

// ---------------------------------------------------------------- turning and repeating
static hlo_t reverse_if_any(hlo_builder_t* b, hlo_t x, int n, const int64_t* dims) {
  return n == 0 || x->rank == 0 ? x : hlo_reverse(b, x, n, dims);
}

static void lower_flip(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* dims = tt_ints(l, 1, &n);
  int64_t wrapped[TT_MAX_RANK];
  for (int i = 0; i < n && i < TT_MAX_RANK; i++) wrapped[i] = hlo_dim(tt_b(l), dims[i], x->rank);
  tt_ret(l, 0, reverse_if_any(tt_b(l), x, n, wrapped));
}

static void lower_rot90(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* dims = tt_ints(l, 2, &n);
  const int64_t at[2] = {hlo_dim(b, dims[0], x->rank), hlo_dim(b, dims[1], x->rank)};
  const int64_t k = ((tt_int(l, 1) % 4) + 4) % 4;
  if (k == 2) x = hlo_reverse(b, x, 2, at);
  if (k == 1) x = hlo_swap_dims(b, hlo_reverse(b, x, 1, &at[1]), (int)at[0], (int)at[1]);
  if (k == 3) x = hlo_swap_dims(b, hlo_reverse(b, x, 1, &at[0]), (int)at[0], (int)at[1]);
  tt_ret(l, 0, x);
}

// Rolls by an operand: x joined to itself is sliced at n - shift, so that a moving shift is no new program.
static hlo_t roll_dim(hlo_builder_t* b, hlo_t x, hlo_t shift, int dim) {
  const int64_t n = x->dims[dim];
  if (n <= 1) return x;
  hlo_t size = hlo_scalar_int(b, TT_I64, n);
  hlo_t start = hlo_remainder(b, hlo_subtract(b, size, hlo_remainder(b, shift, size)), size);  // in [0, n)
  const hlo_t twice[2] = {x, x};
  return hlo_slice_at(b, hlo_concat(b, 2, twice, dim), dim, start, n);
}

static void lower_roll(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* dims = tt_ints(l, 2, &n);
  if (hlo_numel(x) <= 1) {
    tt_ret(l, 0, x);
    return;
  }
  if (n == 0) {
    tt_ret(l, 0, tt_reshape_like(b, roll_dim(b, hlo_flatten(b, x), tt_scalar_at(l, 1, 0, TT_I64), 0), x));
    return;
  }
  hlo_t out = x;
  for (int i = 0; i < n; i++) out = roll_dim(b, out, tt_scalar_at(l, 1, i, TT_I64), hlo_dim(b, dims[i], x->rank));
  tt_ret(l, 0, out);
}

static void lower_repeat(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int n = 0;
  const int64_t* repeats = tt_ints(l, 1, &n);
  int64_t wide[2 * TT_MAX_RANK], map[TT_MAX_RANK], dims[TT_MAX_RANK];
  const int rank = n > x->rank ? n : x->rank;  // tile may give fewer
  int m = 0;
  for (int i = 0; i < rank && i < TT_MAX_RANK; i++) {
    const int from = i - (rank - x->rank);
    const int64_t times = i >= rank - n ? repeats[i - (rank - n)] : 1, size = from >= 0 ? x->dims[from] : 1;
    if (times != 1) wide[m++] = times;
    if (from >= 0) map[from] = m;
    if (from >= 0) wide[m++] = size;
    dims[i] = times * size;
  }
  tt_ret(l, 0, hlo_reshape(b, hlo_broadcast_in_dim(b, x, m, wide, map), rank, dims));
}

// ---------------------------------------------------------------- triangles
static void lower_tri(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const bool upper = tt_row(l)->kind == 1;
  if (x->rank < 2) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "%s: input tensor must have at least 2 dimensions",
                          upper ? "triu" : "tril"));
    return;
  }
  const int64_t* dims = x->dims + x->rank - 2;
  hlo_t diagonal = tt_scalar(l, 1, TT_I64);
  hlo_t beyond = hlo_subtract(b, hlo_iota(b, TT_I64, 2, dims, 1), hlo_iota(b, TT_I64, 2, dims, 0));
  hlo_t keep = hlo_compare(b, upper ? HLO_GE : HLO_LE, beyond, diagonal);
  tt_ret(l, 0, hlo_select(b, keep, x, zero_of(b, x)));
}

// Position k of the triangle lies in the row that counts how many rows end at or before k.
static void lower_tri_indices(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const bool upper = tt_row(l)->kind == 1;
  const int64_t rows = tt_int(l, 0), cols = tt_int(l, 1), offset = tt_int(l, 2);
  int64_t n = 0;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t edge = upper ? r + offset : r + offset + 1;
    const int64_t inside = edge < 0 ? 0 : edge > cols ? cols : edge;
    n += upper ? cols - inside : inside;
  }
  const tt_dtype_t dtype = tt_out_dtype(l, 0);
  if (n == 0) {
    const int64_t none[2] = {2, 0};
    tt_ret(l, 0, hlo_splat(b, dtype, 0, 2, none));
    return;
  }
  hlo_t edge = tt_affine(b, hlo_iota(b, TT_I64, 1, &rows, 0), 1, upper ? offset : offset + 1);
  hlo_t inside = hlo_clamp(b, hlo_scalar_int(b, TT_I64, 0), edge, hlo_scalar_int(b, TT_I64, cols));
  hlo_t width = upper ? hlo_subtract(b, hlo_full_like(b, inside, (double)cols), inside) : inside;
  hlo_t ends = hlo_scan(b, width, HLO_R_ADD, 0, false);
  hlo_t marks = tt_put(b, hlo_splat(b, TT_I64, 0, 1, &n), ends, hlo_full_like(b, ends, 1), 0, HLO_R_ADD);
  hlo_t row = hlo_scan(b, marks, HLO_R_ADD, 0, false);
  hlo_t begin = hlo_subtract(b, ends, width);
  if (upper) begin = hlo_subtract(b, begin, inside);
  hlo_t col = hlo_subtract(b, hlo_iota(b, TT_I64, 1, &n, 0), tt_take(b, begin, row, 0));
  const hlo_t both[2] = {hlo_unsqueeze(b, row, 0), hlo_unsqueeze(b, col, 0)};
  tt_ret(l, 0, hlo_convert(b, hlo_concat(b, 2, both, 0), dtype));
}

// ---------------------------------------------------------------- channels and pixels
// [..., C*r*r, H, W] -> [..., C, H*r, W*r], or back.
static void lower_pixel_shuffle(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const bool back = tt_row(l)->kind == 1;
  const int lead = x->rank - 3;
  if (lead < 0) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "pixel_shuffle expects input to have at least 3 dimensions"));
    return;
  }
  const int64_t r = tt_int(l, 1), c = x->dims[lead], h = x->dims[lead + 1], w = x->dims[lead + 2];
  const int64_t wide_forward[5] = {c / (r * r), r, r, h, w}, wide_back[5] = {c, h / r, r, w / r, r};
  const int64_t order_forward[5] = {0, 3, 1, 4, 2}, order_back[5] = {0, 2, 4, 1, 3};
  const int64_t out_forward[3] = {c / (r * r), h * r, w * r}, out_back[3] = {c * r * r, h / r, w / r};
  int64_t wide[TT_MAX_RANK + 2], perm[TT_MAX_RANK + 2], out[TT_MAX_RANK];
  for (int i = 0; i < lead; i++) {
    wide[i] = out[i] = x->dims[i];
    perm[i] = i;
  }
  for (int i = 0; i < 5; i++) {
    wide[lead + i] = back ? wide_back[i] : wide_forward[i];
    perm[lead + i] = lead + (back ? order_back[i] : order_forward[i]);
  }
  for (int i = 0; i < 3; i++) out[lead + i] = back ? out_back[i] : out_forward[i];
  tt_ret(l, 0, hlo_reshape(b, hlo_transpose(b, hlo_reshape(b, x, lead + 5, wide), perm), x->rank, out));
}

static void lower_channel_shuffle(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  if (x->rank < 3) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "channel_shuffle expects input with > 2 dims"));
    return;
  }
  const int64_t groups = tt_int(l, 1);
  int64_t wide[TT_MAX_RANK + 1] = {x->dims[0], groups, x->dims[1] / groups};
  for (int i = 2; i < x->rank; i++) wide[i + 1] = x->dims[i];
  tt_ret(l, 0, tt_reshape_like(b, hlo_swap_dims(b, hlo_reshape(b, x, x->rank + 1, wide), 1, 2), x));
}

static const tt_op_row_t k_rows[] = {
    {"slice_scatter", .lower = lower_slice_scatter},
    {"select_scatter", .lower = lower_select_scatter},
    {"diagonal_scatter", .lower = lower_diagonal_scatter},
    {"slice_backward", .lower = lower_slice_backward},
    {"select_backward", .lower = lower_select_backward},
    {"diagonal_backward", .lower = lower_diagonal_backward},
    {"unfold_backward", .lower = lower_unfold_backward},
    {"diag_embed", .lower = lower_diag_embed},
    {"cat", .lower = lower_cat},
    {"stack", .lower = lower_stack},
    {"_stack", .lower = lower_stack},
    {"block_diag", .lower = lower_block_diag},
    {"flip", .lower = lower_flip},
    {"rot90", .lower = lower_rot90},
    {"roll", .lower = lower_roll, .runtime = TT_ARG(1)},
    {"repeat", .lower = lower_repeat},
    {"tile", .lower = lower_repeat},
    {"tril", .lower = lower_tri, .kind = 0, .runtime = TT_ARG(1)},
    {"triu", .lower = lower_tri, .kind = 1, .runtime = TT_ARG(1)},
    {"tril_indices", .lower = lower_tri_indices, .kind = 0},
    {"triu_indices", .lower = lower_tri_indices, .kind = 1},
    {"pixel_shuffle", .lower = lower_pixel_shuffle, .kind = 0},
    {"pixel_unshuffle", .lower = lower_pixel_shuffle, .kind = 1},
    {"channel_shuffle", .lower = lower_channel_shuffle},
    {"native_channel_shuffle", .lower = lower_channel_shuffle},
};
TT_OP_FAMILY(arrange, k_rows)
