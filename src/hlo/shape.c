// Shape ops. What changes nothing builds nothing: identities fold, and chains of one kind become one op.
#include "hlo/ir.h"

// ---------------------------------------------------------------- broadcasting
bool hlo_common_dims(hlo_builder_t* b, const char* who, int n, const hlo_t* xs, int* out_rank, int64_t* out_dims) {
  int rank = 0;
  for (int i = 0; i < n; i++) rank = xs[i]->rank > rank ? xs[i]->rank : rank;
  for (int d = 0; d < rank; d++) out_dims[d] = 1;
  for (int i = 0; i < n; i++) {
    for (int d = 0; d < xs[i]->rank; d++) {
      int64_t* out = &out_dims[rank - xs[i]->rank + d];
      int64_t size = xs[i]->dims[d];
      if (size == 1 || size == *out) continue;
      if (*out == 1) {
        *out = size;
        continue;
      }
      hlo_fail(b, TT_INVALID_ARGUMENT, "%s: shapes %s and %s do not broadcast", who, hlo_text_shape(b, xs[0]),
               hlo_text_shape(b, xs[i]));
      return false;
    }
  }
  *out_rank = rank;
  return true;
}

void hlo_broadcast2(hlo_builder_t* b, hlo_t* x, hlo_t* y) {
  hlo_t in[2] = {*x, *y};
  int rank;
  int64_t dims[HLO_MAX_RANK];
  if (!hlo_usable(b, "broadcast", 2, in) || !hlo_common_dims(b, "broadcast", 2, in, &rank, dims)) {
    *x = *y = hlo_poison(b);
    return;
  }
  *x = hlo_broadcast_to(b, *x, rank, dims);
  *y = hlo_broadcast_to(b, *y, rank, dims);
}

static bool check_broadcast(hlo_builder_t* b, hlo_t x, int rank, const int64_t* dims, const int64_t* map) {
  if (!hlo_check_dims(b, "broadcast_in_dim", rank, dims)) return false;
  bool used[HLO_MAX_RANK] = {false};
  for (int i = 0; i < x->rank; i++) {
    bool fits = map[i] >= 0 && map[i] < rank && !used[map[i]] && (x->dims[i] == 1 || x->dims[i] == dims[map[i]]);
    if (fits) {
      used[map[i]] = true;
      continue;
    }
    hlo_fail(b, TT_INVALID_ARGUMENT, "broadcast_in_dim: %s does not fit %s with dims %s", hlo_text_shape(b, x),
             hlo_text_dims(b, rank, dims), hlo_text_list(b, x->rank, map));
    return false;
  }
  return true;
}

// XLA wants the map ascending. Transposes |x| so that it is; |map| is sorted in place.
static hlo_t sort_map(hlo_builder_t* b, hlo_t x, int64_t* map) {
  int64_t perm[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) perm[i] = i;
  for (int i = 1; i < x->rank; i++) {
    int64_t m = map[i], p = perm[i];
    int j = i;
    for (; j > 0 && map[j - 1] > m; j--) {
      map[j] = map[j - 1];
      perm[j] = perm[j - 1];
    }
    map[j] = m;
    perm[j] = p;
  }
  return hlo_transpose(b, x, perm);
}

hlo_t hlo_broadcast_in_dim(hlo_builder_t* b, hlo_t x, int rank, const int64_t* dims, const int64_t* map) {
  if (!hlo_usable(b, "broadcast_in_dim", 1, &x) || !check_broadcast(b, x, rank, dims, map)) return hlo_poison(b);
  int64_t m[HLO_MAX_RANK];
  memcpy(m, map, (size_t)x->rank * sizeof *m);
  x = sort_map(b, x, m);
  if (b->error || hlo_dims_equal(x->rank, x->dims, rank, dims)) return b->error ? hlo_poison(b) : x;
  if (hlo_kind(x) == HLO_KIND_BROADCAST) {  // of a broadcast: both maps at once
    hlo_t source = x->op->operands[0];
    int64_t both[HLO_MAX_RANK];
    for (int i = 0; i < source->rank; i++) both[i] = m[x->op->ints[i]];
    return hlo_broadcast_in_dim(b, source, rank, dims, both);
  }
  const char* attrs = hlo_text(b, "broadcast_dimensions = %s", hlo_text_array(b, x->rank, m));
  int x_rank = x->rank;
  hlo_t y = hlo_op1(b, "stablehlo.broadcast_in_dim", 1, &x, attrs, x->dtype, rank, dims);
  if (y->op) {
    y->op->kind = HLO_KIND_BROADCAST;
    y->op->ints = hlo_copy_ints(b, x_rank, m);
  }
  return b->error ? hlo_poison(b) : y;
}

hlo_t hlo_broadcast_to(hlo_builder_t* b, hlo_t x, int rank, const int64_t* dims) {
  if (!hlo_usable(b, "broadcast_to", 1, &x) || !hlo_check_dims(b, "broadcast_to", rank, dims)) return hlo_poison(b);
  if (x->rank > rank) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "broadcast_to: %s has more dims than %s", hlo_text_shape(b, x),
                    hlo_text_dims(b, rank, dims));
  }
  int64_t map[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) map[i] = rank - x->rank + i;
  return hlo_broadcast_in_dim(b, x, rank, dims, map);
}

// ---------------------------------------------------------------- reshape, transpose
hlo_t hlo_reshape(hlo_builder_t* b, hlo_t x, int rank, const int64_t* dims) {
  if (!hlo_usable(b, "reshape", 1, &x) || !hlo_check_dims(b, "reshape", rank, dims)) return hlo_poison(b);
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  if (n != hlo_numel(x)) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "shape '%s' is invalid for input of size %lld",
                    hlo_text_dims(b, rank, dims), (long long)hlo_numel(x));
  }
  if (hlo_kind(x) == HLO_KIND_RESHAPE) x = x->op->operands[0];
  if (hlo_dims_equal(x->rank, x->dims, rank, dims)) return x;
  hlo_t scalar = hlo_splat_source(x);
  if (scalar) return hlo_broadcast_to(b, scalar, rank, dims);
  hlo_t y = hlo_op1(b, "stablehlo.reshape", 1, &x, NULL, x->dtype, rank, dims);
  if (y->op) y->op->kind = HLO_KIND_RESHAPE;
  return y;
}

hlo_t hlo_flatten(hlo_builder_t* b, hlo_t x) {
  if (!hlo_usable(b, "flatten", 1, &x)) return hlo_poison(b);
  int64_t n = hlo_numel(x);
  return hlo_reshape(b, x, 1, &n);
}

hlo_t hlo_transpose(hlo_builder_t* b, hlo_t x, const int64_t* perm) {
  bool seen[HLO_MAX_RANK], identity = true;
  if (!hlo_usable(b, "transpose", 1, &x) || !hlo_dim_set(b, "transpose", x->rank, perm, x->rank, seen)) {
    return hlo_poison(b);
  }
  int64_t p[HLO_MAX_RANK], dims[HLO_MAX_RANK];
  bool chain = hlo_kind(x) == HLO_KIND_TRANSPOSE;
  for (int i = 0; i < x->rank; i++) {
    int from = hlo_dim(b, perm[i], x->rank);
    dims[i] = x->dims[from];
    p[i] = chain ? x->op->ints[from] : from;
    identity = identity && p[i] == i;
  }
  if (chain) x = x->op->operands[0];
  if (identity) return x;
  hlo_t scalar = hlo_splat_source(x);
  if (scalar) return hlo_broadcast_to(b, scalar, x->rank, dims);
  const char* attrs = hlo_text(b, "permutation = %s", hlo_text_array(b, x->rank, p));
  hlo_t y = hlo_op1(b, "stablehlo.transpose", 1, &x, attrs, x->dtype, x->rank, dims);
  if (y->op) {
    y->op->kind = HLO_KIND_TRANSPOSE;
    y->op->ints = hlo_copy_ints(b, x->rank, p);
  }
  return b->error ? hlo_poison(b) : y;
}

hlo_t hlo_swap_dims(hlo_builder_t* b, hlo_t x, int d0, int d1) {
  if (!hlo_usable(b, "swap_dims", 1, &x)) return hlo_poison(b);
  d0 = hlo_dim(b, d0, x->rank);
  d1 = hlo_dim(b, d1, x->rank);
  if (b->error || x->rank == 0) return b->error ? hlo_poison(b) : x;
  int64_t perm[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) perm[i] = i;
  perm[d0] = d1;
  perm[d1] = d0;
  return hlo_transpose(b, x, perm);
}

hlo_t hlo_unsqueeze(hlo_builder_t* b, hlo_t x, int dim) {
  if (!hlo_usable(b, "unsqueeze", 1, &x)) return hlo_poison(b);
  int at = hlo_dim(b, dim, x->rank + 1);
  int64_t dims[HLO_MAX_RANK + 1];
  for (int i = 0; i <= x->rank; i++) dims[i] = i < at ? x->dims[i] : i == at ? 1 : x->dims[i - 1];
  return hlo_reshape(b, x, x->rank + 1, dims);
}

hlo_t hlo_squeeze(hlo_builder_t* b, hlo_t x, int dim) {
  if (!hlo_usable(b, "squeeze", 1, &x)) return hlo_poison(b);
  int at = hlo_dim(b, dim, x->rank);
  if (b->error || x->rank == 0) return b->error ? hlo_poison(b) : x;
  if (x->dims[at] != 1) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "squeeze: dim %d of %s is not 1", at, hlo_text_shape(b, x));
  }
  int64_t dims[HLO_MAX_RANK];
  for (int i = 0; i < x->rank - 1; i++) dims[i] = x->dims[i < at ? i : i + 1];
  return hlo_reshape(b, x, x->rank - 1, dims);
}

// ---------------------------------------------------------------- slice, pad, concat, reverse
hlo_t hlo_slice(hlo_builder_t* b, hlo_t x, const int64_t* start, const int64_t* limit, const int64_t* stride) {
  if (!hlo_usable(b, "slice", 1, &x)) return hlo_poison(b);
  int64_t dims[HLO_MAX_RANK], steps[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    steps[i] = stride ? stride[i] : 1;
    if (start[i] < 0 || limit[i] < start[i] || limit[i] > x->dims[i] || steps[i] < 1) {
      return hlo_fail(b, TT_INVALID_ARGUMENT, "slice: %lld:%lld:%lld of dim %d of %s", (long long)start[i],
                      (long long)limit[i], (long long)steps[i], i, hlo_text_shape(b, x));
    }
    dims[i] = limit[i] == start[i] ? 0 : (limit[i] - start[i] - 1) / steps[i] + 1;
  }
  if (hlo_dims_equal(x->rank, x->dims, x->rank, dims)) return x;
  hlo_t scalar = hlo_splat_source(x);
  if (scalar) return hlo_broadcast_to(b, scalar, x->rank, dims);
  const char* attrs = hlo_text(b, "start_indices = %s, limit_indices = %s, strides = %s",
                               hlo_text_array(b, x->rank, start), hlo_text_array(b, x->rank, limit),
                               hlo_text_array(b, x->rank, steps));
  return hlo_op1(b, "stablehlo.slice", 1, &x, attrs, x->dtype, x->rank, dims);
}

hlo_t hlo_slice_dim(hlo_builder_t* b, hlo_t x, int dim, int64_t start, int64_t limit, int64_t stride) {
  if (!hlo_usable(b, "slice_dim", 1, &x)) return hlo_poison(b);
  int64_t starts[HLO_MAX_RANK], limits[HLO_MAX_RANK], strides[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    starts[i] = 0;
    limits[i] = x->dims[i];
    strides[i] = 1;
  }
  int d = hlo_dim(b, dim, x->rank);
  if (b->error) return hlo_poison(b);
  if (x->rank == 0) return hlo_fail(b, TT_INVALID_ARGUMENT, "slice() cannot be applied to a 0-dim tensor.");
  starts[d] = start;
  limits[d] = limit;
  strides[d] = stride;
  return hlo_slice(b, x, starts, limits, strides);
}

hlo_t hlo_pad(hlo_builder_t* b, hlo_t x, hlo_t value, const int64_t* lo, const int64_t* hi, const int64_t* interior) {
  hlo_t in[2] = {x, value};
  if (!hlo_usable(b, "pad", 2, in)) return hlo_poison(b);
  if (value->rank != 0 || value->dtype != x->dtype) {
    return hlo_fail(b, TT_INTERNAL, "pad: the value %s does not suit %s", hlo_text_shape(b, value),
                    hlo_text_shape(b, x));
  }
  int64_t dims[HLO_MAX_RANK], inner[HLO_MAX_RANK];
  bool nothing = true;
  for (int i = 0; i < x->rank; i++) {
    inner[i] = interior ? interior[i] : 0;
    dims[i] = x->dims[i] + lo[i] + hi[i] + (x->dims[i] > 1 ? (x->dims[i] - 1) * inner[i] : 0);
    nothing = nothing && lo[i] == 0 && hi[i] == 0 && dims[i] == x->dims[i];
    if (inner[i] >= 0 && dims[i] >= 0) continue;
    return hlo_fail(b, TT_INVALID_ARGUMENT, "pad: %lld, %lld, %lld on dim %d of %s leaves no size", (long long)lo[i],
                    (long long)hi[i], (long long)inner[i], i, hlo_text_shape(b, x));
  }
  if (nothing) return x;
  const char* attrs = hlo_text(b, "edge_padding_low = %s, edge_padding_high = %s, interior_padding = %s",
                               hlo_text_array(b, x->rank, lo), hlo_text_array(b, x->rank, hi),
                               hlo_text_array(b, x->rank, inner));
  return hlo_op1(b, "stablehlo.pad", 2, in, attrs, x->dtype, x->rank, dims);
}

hlo_t hlo_concat(hlo_builder_t* b, int n, const hlo_t* xs, int dim) {
  if (!hlo_usable(b, "concat", n, xs)) return hlo_poison(b);
  if (n < 1) return hlo_fail(b, TT_INVALID_ARGUMENT, "concat: expected a non-empty list of tensors");
  if (xs[0]->rank == 0) return hlo_fail(b, TT_INVALID_ARGUMENT, "concat: 0-d values cannot be concatenated");
  int d = hlo_dim(b, dim, xs[0]->rank), n_kept = 0;
  hlo_t* kept = hlo_alloc(b, (size_t)n * sizeof *kept);
  if (b->error || !kept) return hlo_poison(b);
  int64_t dims[HLO_MAX_RANK];
  memcpy(dims, xs[0]->dims, (size_t)xs[0]->rank * sizeof *dims);
  for (int i = 0; i < n; i++) {
    dims[d] = xs[i]->rank > d ? xs[i]->dims[d] : 0;
    if (xs[i]->dtype != xs[0]->dtype || !hlo_dims_equal(xs[i]->rank, xs[i]->dims, xs[0]->rank, dims)) {
      return hlo_fail(b, TT_INVALID_ARGUMENT, "concat: %s and %s do not fit along dim %d", hlo_text_shape(b, xs[0]),
                      hlo_text_shape(b, xs[i]), d);
    }
    if (xs[i]->dims[d] > 0) kept[n_kept++] = xs[i];
  }
  if (n_kept == 0) return xs[0];
  if (n_kept == 1) return kept[0];
  dims[d] = 0;
  for (int i = 0; i < n_kept; i++) dims[d] += kept[i]->dims[d];
  return hlo_op1(b, "stablehlo.concatenate", n_kept, kept, hlo_text(b, "dimension = %d : i64", d), xs[0]->dtype,
                 xs[0]->rank, dims);
}

hlo_t hlo_reverse(hlo_builder_t* b, hlo_t x, int n_dims, const int64_t* dims) {
  bool set[HLO_MAX_RANK];
  if (!hlo_usable(b, "reverse", 1, &x) || !hlo_dim_set(b, "reverse", n_dims, dims, x->rank, set)) return hlo_poison(b);
  int64_t kept[HLO_MAX_RANK];
  int n = 0;
  for (int i = 0; i < x->rank; i++) {
    if (set[i] && x->dims[i] > 1) kept[n++] = i;
  }
  if (n == 0 || hlo_splat_source(x)) return x;
  return hlo_op1(b, "stablehlo.reverse", 1, &x, hlo_text(b, "dimensions = %s", hlo_text_array(b, n, kept)), x->dtype,
                 x->rank, x->dims);
}

// ---------------------------------------------------------------- dynamic slices
// Copies operands then starts into |out| (room for 2 + rank); checks the starts.
static bool join_starts(hlo_builder_t* b, const char* who, hlo_t x, const hlo_t* starts, int n, hlo_t* out) {
  if (!hlo_usable(b, who, x->rank, starts)) return false;
  for (int i = 0; i < x->rank; i++) {
    if (starts[i]->rank != 0 || !tt_is_int(starts[i]->dtype) || starts[i]->dtype != starts[0]->dtype) {
      hlo_fail(b, TT_INTERNAL, "%s: starts must be 0-d integers of one dtype; start %d is %s", who, i,
               hlo_text_shape(b, starts[i]));
      return false;
    }
    out[n + i] = starts[i];
  }
  return true;
}

hlo_t hlo_dynamic_slice(hlo_builder_t* b, hlo_t x, const hlo_t* starts, const int64_t* sizes) {
  hlo_t in[HLO_MAX_RANK + 1] = {x};
  if (!hlo_usable(b, "dynamic_slice", 1, &x) || !join_starts(b, "dynamic_slice", x, starts, 1, in)) {
    return hlo_poison(b);
  }
  for (int i = 0; i < x->rank; i++) {
    if (sizes[i] < 0 || sizes[i] > x->dims[i]) {
      return hlo_fail(b, TT_INVALID_ARGUMENT, "dynamic_slice: sizes %s of %s", hlo_text_dims(b, x->rank, sizes),
                      hlo_text_shape(b, x));
    }
  }
  if (hlo_dims_equal(x->rank, x->dims, x->rank, sizes)) return x;  // clamping leaves only start 0
  const char* attrs = hlo_text(b, "slice_sizes = %s", hlo_text_array(b, x->rank, sizes));
  return hlo_op1(b, "stablehlo.dynamic_slice", 1 + x->rank, in, attrs, x->dtype, x->rank, sizes);
}

hlo_t hlo_dynamic_update_slice(hlo_builder_t* b, hlo_t x, hlo_t update, const hlo_t* starts) {
  hlo_t in[HLO_MAX_RANK + 2] = {x, update};
  if (!hlo_usable(b, "dynamic_update_slice", 2, in) ||
      !join_starts(b, "dynamic_update_slice", x, starts, 2, in)) {
    return hlo_poison(b);
  }
  bool fits = update->rank == x->rank && update->dtype == x->dtype;
  for (int i = 0; fits && i < x->rank; i++) fits = update->dims[i] <= x->dims[i];
  if (!fits) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "dynamic_update_slice: %s does not fit into %s",
                    hlo_text_shape(b, update), hlo_text_shape(b, x));
  }
  if (hlo_same_dims(x, update)) return update;
  if (hlo_numel(update) == 0) return x;
  return hlo_op1(b, "stablehlo.dynamic_update_slice", 2 + x->rank, in, NULL, x->dtype, x->rank, x->dims);
}

// Zeros but for |start| along |dim|.
static bool starts_along(hlo_builder_t* b, const char* who, hlo_t x, int dim, hlo_t start, hlo_t starts[HLO_MAX_RANK]) {
  hlo_t in[2] = {x, start};
  if (!hlo_usable(b, who, 2, in)) return false;
  if (dim < 0 || dim >= x->rank) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "%s: no dim %d in %s", who, dim, hlo_text_shape(b, x));
    return false;
  }
  for (int d = 0; d < x->rank; d++) starts[d] = d == dim ? start : hlo_scalar_int(b, start->dtype, 0);
  return true;
}

hlo_t hlo_slice_at(hlo_builder_t* b, hlo_t x, int dim, hlo_t start, int64_t size) {
  hlo_t starts[HLO_MAX_RANK];
  if (!starts_along(b, "slice_at", x, dim, start, starts)) return hlo_poison(b);
  int64_t sizes[HLO_MAX_RANK];
  memcpy(sizes, x->dims, (size_t)x->rank * sizeof *sizes);
  sizes[dim] = size;
  return hlo_dynamic_slice(b, x, starts, sizes);
}

hlo_t hlo_update_at(hlo_builder_t* b, hlo_t x, hlo_t update, int dim, hlo_t start) {
  hlo_t starts[HLO_MAX_RANK];
  if (!starts_along(b, "update_at", x, dim, start, starts)) return hlo_poison(b);
  return hlo_dynamic_update_slice(b, x, update, starts);
}
