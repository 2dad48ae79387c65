// Padding with constants, reflections and copies of the edge, their gradients, and im2col / col2im.
#include "ops/common.h"
#include "ops/indexing.h"
#include "ops/op.h"

// PyTorch lists pairs from the last dim backwards.
static void read_pads(tt_lower_t* l, int arg, int rank, int64_t lo[TT_MAX_RANK], int64_t hi[TT_MAX_RANK]) {
  int n = 0;
  const int64_t* pad = tt_ints(l, arg, &n);
  for (int i = 0; i < rank; i++) lo[i] = hi[i] = 0;
  for (int i = 0; i < n / 2 && i < rank; i++) {
    lo[rank - 1 - i] = pad[2 * i];
    hi[rank - 1 - i] = pad[2 * i + 1];
  }
}

static void lower_constant_pad(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int64_t lo[TT_MAX_RANK], hi[TT_MAX_RANK];
  read_pads(l, 1, x->rank, lo, hi);
  tt_ret(l, 0, hlo_pad(tt_b(l), x, tt_scalar(l, 2, x->dtype), lo, hi, NULL));
}

// ---------------------------------------------------------------- reflection and replication
typedef enum edge_t { EDGE_REFLECT, EDGE_REPLICATE } edge_t;

static hlo_t spread_dim(hlo_builder_t* b, hlo_t x, int dim, int64_t n) {
  int64_t dims[TT_MAX_RANK], map[TT_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    dims[i] = i == dim ? n : x->dims[i];
    map[i] = i;
  }
  return hlo_broadcast_in_dim(b, x, x->rank, dims, map);
}

// Positive pads are cut from x itself and joined; negative ones then crop, as in PyTorch, which reflects about the
// uncropped edge.
static hlo_t pad_edges(hlo_builder_t* b, hlo_t x, int dim, int64_t lo, int64_t hi, edge_t edge) {
  const int64_t n = x->dims[dim], at = dim;
  hlo_t parts[3];
  int count = 0;
  if (lo > 0) {
    parts[count++] = edge == EDGE_REFLECT ? hlo_reverse(b, hlo_slice_dim(b, x, dim, 1, lo + 1, 1), 1, &at)
                                          : spread_dim(b, hlo_slice_dim(b, x, dim, 0, 1, 1), dim, lo);
  }
  parts[count++] = x;
  if (hi > 0) {
    parts[count++] = edge == EDGE_REFLECT ? hlo_reverse(b, hlo_slice_dim(b, x, dim, n - 1 - hi, n - 1, 1), 1, &at)
                                          : spread_dim(b, hlo_slice_dim(b, x, dim, n - 1, n, 1), dim, hi);
  }
  if (count > 1) x = hlo_concat(b, count, parts, dim);
  if (lo >= 0 && hi >= 0) return x;
  return hlo_slice_dim(b, x, dim, lo < 0 ? -lo : 0, x->dims[dim] - (hi < 0 ? -hi : 0), 1);
}

static void lower_pad_edges(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int64_t lo[TT_MAX_RANK], hi[TT_MAX_RANK];
  read_pads(l, 1, x->rank, lo, hi);
  const tt_type_t* out = tt_out_count(l) > 0 ? tt_out(l, 0) : NULL;
  int64_t numel = hlo_numel(x);
  if (out && numel == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, out->rank, out->dims));
    return;
  }
  for (int i = 0; i < x->rank; i++) {
    if (lo[i] != 0 || hi[i] != 0) x = pad_edges(b, x, i, lo[i], hi[i], (edge_t)tt_row(l)->kind);
  }
  tt_ret(l, 0, x);
}

static hlo_t pad_zero(hlo_builder_t* b, hlo_t x, int dim, int64_t lo_dim, int64_t hi_dim) {
  int64_t lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0};
  lo[dim] = lo_dim;
  hi[dim] = hi_dim;
  return lo_dim == 0 && hi_dim == 0 ? x : hlo_pad(b, x, hlo_scalar(b, x->dtype, 0), lo, hi, NULL);
}

// What a pad's |part| of the gradient gives back to the input of |n|: mirrored next to the edge, or summed on it.
static hlo_t edge_gradient(hlo_builder_t* b, hlo_t part, int dim, int64_t n, bool low, edge_t edge) {
  const int64_t at = dim, width = part->dims[dim];
  if (edge == EDGE_REFLECT) {
    part = hlo_reverse(b, part, 1, &at);
    return low ? pad_zero(b, part, dim, 1, n - 1 - width) : pad_zero(b, part, dim, n - 1 - width, 1);
  }
  part = hlo_reduce_keep(b, part, HLO_R_ADD, 1, &at);
  return low ? pad_zero(b, part, dim, 0, n - 1) : pad_zero(b, part, dim, n - 1, 0);
}

static hlo_t unpad_edges(hlo_builder_t* b, hlo_t g, int dim, int64_t n, int64_t lo, int64_t hi, edge_t edge) {
  g = pad_zero(b, g, dim, lo < 0 ? -lo : 0, hi < 0 ? -hi : 0);
  if (lo < 0) lo = 0;
  if (hi < 0) hi = 0;
  hlo_t out = hlo_slice_dim(b, g, dim, lo, lo + n, 1);
  if (lo > 0) out = hlo_add(b, out, edge_gradient(b, hlo_slice_dim(b, g, dim, 0, lo, 1), dim, n, true, edge));
  if (hi > 0) {
    out = hlo_add(b, out, edge_gradient(b, hlo_slice_dim(b, g, dim, lo + n, lo + n + hi, 1), dim, n, false, edge));
  }
  return out;
}

static void lower_pad_edges_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 1);
  hlo_t g = tt_in_as(l, 0, tt_math_dtype(l, 0));
  int64_t lo[TT_MAX_RANK], hi[TT_MAX_RANK];
  read_pads(l, 2, x->rank, lo, hi);
  if (hlo_numel(x) == 0) {
    tt_ret(l, 0, hlo_zeros_like(b, x));
    return;
  }
  for (int i = 0; i < x->rank; i++) {
    if (lo[i] != 0 || hi[i] != 0) g = unpad_edges(b, g, i, x->dims[i], lo[i], hi[i], (edge_t)tt_row(l)->kind);
  }
  tt_ret(l, 0, g);
}

// ---------------------------------------------------------------- im2col and col2im
typedef struct unfold_t {
  int64_t kernel[2], dilation[2], pad[2], stride[2], out[2];  // out: number of window positions
} unfold_t;

static void pair_arg(tt_lower_t* l, int i, int64_t out[2]) {
  int n = 0;
  const int64_t* v = tt_ints(l, i, &n);
  out[0] = n > 0 ? v[0] : 1;
  out[1] = n > 1 ? v[1] : out[0];
}

static unfold_t unfold_args(tt_lower_t* l, int first, const int64_t image[2]) {
  unfold_t u;
  pair_arg(l, first, u.kernel);
  pair_arg(l, first + 1, u.dilation);
  pair_arg(l, first + 2, u.pad);
  pair_arg(l, first + 3, u.stride);
  for (int i = 0; i < 2; i++) {
    u.out[i] = (image[i] + 2 * u.pad[i] - u.dilation[i] * (u.kernel[i] - 1) - 1) / u.stride[i] + 1;
  }
  return u;
}

// [N, C, oh, kh, ow, kw] <-> [N, C, kh, kw, oh, ow]
static const int64_t k_to_columns[6] = {0, 1, 3, 5, 2, 4};
static const int64_t k_from_columns[6] = {0, 1, 4, 2, 5, 3};

static void lower_im2col(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const bool batched = x->rank == 4;
  if (!batched) x = hlo_unsqueeze(b, x, 0);
  const unfold_t u = unfold_args(l, 1, x->dims + x->rank - 2);
  const int64_t n = x->dims[0], c = x->dims[1];
  x = pad_zero(b, pad_zero(b, x, 2, u.pad[0], u.pad[0]), 3, u.pad[1], u.pad[1]);
  x = tt_windows_read(b, x, 3, u.out[1], u.kernel[1], u.stride[1], u.dilation[1]);
  x = tt_windows_read(b, x, 2, u.out[0], u.kernel[0], u.stride[0], u.dilation[0]);
  const int64_t dims[3] = {n, c * u.kernel[0] * u.kernel[1], u.out[0] * u.out[1]};
  x = hlo_transpose(b, x, k_to_columns);
  tt_ret(l, 0, batched ? hlo_reshape(b, x, 3, dims) : hlo_reshape(b, x, 2, dims + 1));
}

static void lower_col2im(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in_as(l, 0, tt_math_dtype(l, 0));
  const bool batched = x->rank == 3;
  if (!batched) x = hlo_unsqueeze(b, x, 0);
  int64_t image[2];
  pair_arg(l, 1, image);
  const unfold_t u = unfold_args(l, 2, image);
  const int64_t window = u.kernel[0] * u.kernel[1], n = x->dims[0], c = window ? x->dims[1] / window : 0;
  const int64_t dims[6] = {n, c, u.kernel[0], u.kernel[1], u.out[0], u.out[1]};
  x = hlo_transpose(b, hlo_reshape(b, x, 6, dims), k_from_columns);
  x = tt_windows_add(b, x, 2, image[0] + 2 * u.pad[0], u.stride[0], u.dilation[0]);
  x = tt_windows_add(b, x, 3, image[1] + 2 * u.pad[1], u.stride[1], u.dilation[1]);
  x = hlo_slice_dim(b, x, 2, u.pad[0], u.pad[0] + image[0], 1);
  x = hlo_slice_dim(b, x, 3, u.pad[1], u.pad[1] + image[1], 1);
  tt_ret(l, 0, batched ? x : hlo_squeeze(b, x, 0));
}

static const tt_op_row_t k_rows[] = {
    {"constant_pad_nd", .lower = lower_constant_pad},
    {"reflection_pad1d", .lower = lower_pad_edges, .kind = EDGE_REFLECT},
    {"reflection_pad2d", .lower = lower_pad_edges, .kind = EDGE_REFLECT},
    {"reflection_pad3d", .lower = lower_pad_edges, .kind = EDGE_REFLECT},
    {"replication_pad1d", .lower = lower_pad_edges, .kind = EDGE_REPLICATE},
    {"replication_pad2d", .lower = lower_pad_edges, .kind = EDGE_REPLICATE},
    {"replication_pad3d", .lower = lower_pad_edges, .kind = EDGE_REPLICATE},
    {"reflection_pad1d_backward", .lower = lower_pad_edges_backward, .kind = EDGE_REFLECT},
    {"reflection_pad2d_backward", .lower = lower_pad_edges_backward, .kind = EDGE_REFLECT},
    {"reflection_pad3d_backward", .lower = lower_pad_edges_backward, .kind = EDGE_REFLECT},
    {"replication_pad1d_backward", .lower = lower_pad_edges_backward, .kind = EDGE_REPLICATE},
    {"replication_pad2d_backward", .lower = lower_pad_edges_backward, .kind = EDGE_REPLICATE},
    {"replication_pad3d_backward", .lower = lower_pad_edges_backward, .kind = EDGE_REPLICATE},
    {"im2col", .lower = lower_im2col},
    {"col2im", .lower = lower_col2im},
};
TT_OP_FAMILY(pad, k_rows)
