// Gather and scatter, and the three forms of them that PyTorch's indexing needs.
#include "hlo/ir.h"

// ---------------------------------------------------------------- checks
// |dims| are distinct, in range and, where |sorted|, ascending.
static bool check_list(hlo_builder_t* b, const char* who, const char* what, int n, const int64_t* dims, int64_t rank,
                       bool sorted) {
  uint64_t seen = 0, one = 1;
  bool good = n >= 0 && n <= HLO_MAX_RANK;
  for (int i = 0; good && i < n; i++) {
    good = dims[i] >= 0 && dims[i] < rank && dims[i] < 64 && !(seen & one << dims[i]) &&
           (!sorted || i == 0 || dims[i] > dims[i - 1]);
    if (good) seen |= one << dims[i];
  }
  if (!good) hlo_fail(b, TT_INTERNAL, "%s: %s %s of rank %lld", who, what, hlo_text_list(b, n, dims), (long long)rank);
  return good;
}

static bool fail_if(hlo_builder_t* b, bool wrong, const char* who, const char* what) {
  if (wrong) hlo_fail(b, TT_INTERNAL, "%s: %s", who, what);
  return !wrong;
}

static bool in_list(int64_t d, int n, const int64_t* list) {
  for (int i = 0; i < n; i++) {
    if (list[i] == d) return true;
  }
  return false;
}

// Number of components of one index: the index vector dim may be the (absent) one after the last.
static bool check_indices(hlo_builder_t* b, const char* who, hlo_t indices, int64_t vector_dim, int n_map) {
  if (!fail_if(b, !tt_is_int(indices->dtype), who, "indices must be integers") ||
      !fail_if(b, vector_dim < 0 || vector_dim > indices->rank, who, "index_vector_dim out of range")) {
    return false;
  }
  int64_t parts = vector_dim == indices->rank ? 1 : indices->dims[vector_dim];
  return fail_if(b, parts != n_map, who, "one mapped dim per index component, please");
}

// Operand batching dims are as large as the indices' they go with.
static bool check_batching(hlo_builder_t* b, const char* who, hlo_t x, hlo_t indices, int n, const int64_t* operand,
                           int n_indices, const int64_t* index_dims, int64_t vector_dim) {
  if (!check_list(b, who, "operand batching dims", n, operand, x->rank, true) ||
      !check_list(b, who, "index batching dims", n_indices, index_dims, indices->rank, false) ||
      !fail_if(b, n != n_indices || in_list(vector_dim, n_indices, index_dims), who, "batching dims do not pair")) {
    return false;
  }
  for (int i = 0; i < n; i++) {
    if (!fail_if(b, x->dims[operand[i]] != indices->dims[index_dims[i]], who, "batching dims differ in size")) {
      return false;
    }
  }
  return true;
}

// ---------------------------------------------------------------- gather
static bool check_gather(hlo_builder_t* b, hlo_t x, hlo_t indices, const hlo_gather_t* g) {
  const char* who = "gather";
  if (!check_indices(b, who, indices, g->index_vector_dim, g->n_map) ||
      !check_batching(b, who, x, indices, g->n_operand_batching, g->operand_batching_dims, g->n_indices_batching,
                      g->start_indices_batching_dims, g->index_vector_dim) ||
      !check_list(b, who, "collapsed dims", g->n_collapsed, g->collapsed_slice_dims, x->rank, true) ||
      !check_list(b, who, "mapped dims", g->n_map, g->start_index_map, x->rank, false)) {
    return false;
  }
  int batch_rank = indices->rank - (g->index_vector_dim < indices->rank);
  bool offsets = g->n_offset_dims + g->n_collapsed + g->n_operand_batching == x->rank;
  if (!fail_if(b, !offsets, who, "offset, collapsed and batching dims must make up the operand's rank") ||
      !check_list(b, who, "offset dims", g->n_offset_dims, g->offset_dims, batch_rank + g->n_offset_dims, true)) {
    return false;
  }
  for (int d = 0; d < x->rank; d++) {
    bool gone = in_list(d, g->n_collapsed, g->collapsed_slice_dims) ||
                in_list(d, g->n_operand_batching, g->operand_batching_dims);
    int64_t size = g->slice_sizes[d];
    if (!fail_if(b, size < 0 || size > x->dims[d] || (gone && size > 1), who, "slice sizes out of range")) return false;
  }
  return true;
}

hlo_t hlo_gather(hlo_builder_t* b, hlo_t x, hlo_t indices, const hlo_gather_t* g) {
  hlo_t in[2] = {x, indices};
  if (!hlo_usable(b, "gather", 2, in) || !check_gather(b, x, indices, g)) return hlo_poison(b);
  int rank = indices->rank - (g->index_vector_dim < indices->rank) + g->n_offset_dims;
  if (rank > HLO_MAX_RANK) return hlo_fail(b, TT_UNIMPLEMENTED, "gather: the result has %d dims", rank);
  int64_t dims[HLO_MAX_RANK];
  int next_offset = 0, next_batch = 0;
  for (int d = 0; d < rank; d++) {
    if (in_list(d, g->n_offset_dims, g->offset_dims)) {
      while (in_list(next_offset, g->n_collapsed, g->collapsed_slice_dims) ||
             in_list(next_offset, g->n_operand_batching, g->operand_batching_dims)) {
        next_offset++;
      }
      dims[d] = g->slice_sizes[next_offset++];
    } else {
      if (next_batch == g->index_vector_dim) next_batch++;
      dims[d] = indices->dims[next_batch++];
    }
  }
  const char* numbers = hlo_text(
      b, "#stablehlo.gather<offset_dims = %s, collapsed_slice_dims = %s, operand_batching_dims = %s, "
         "start_indices_batching_dims = %s, start_index_map = %s, index_vector_dim = %lld>",
      hlo_text_list(b, g->n_offset_dims, g->offset_dims), hlo_text_list(b, g->n_collapsed, g->collapsed_slice_dims),
      hlo_text_list(b, g->n_operand_batching, g->operand_batching_dims),
      hlo_text_list(b, g->n_indices_batching, g->start_indices_batching_dims),
      hlo_text_list(b, g->n_map, g->start_index_map), (long long)g->index_vector_dim);
  const char* attrs = hlo_text(b, "dimension_numbers = %s, slice_sizes = %s, indices_are_sorted = %s", numbers,
                               hlo_text_array(b, x->rank, g->slice_sizes), g->indices_are_sorted ? "true" : "false");
  return hlo_op1(b, "stablehlo.gather", 2, in, attrs, x->dtype, rank, dims);
}

// ---------------------------------------------------------------- scatter
// Size of each update window dim is at most the operand's; batch dims of updates are the indices'.
static bool check_updates(hlo_builder_t* b, hlo_t x, hlo_t indices, hlo_t updates, const hlo_scatter_t* s) {
  int next_window = 0, next_batch = 0;
  for (int d = 0; d < updates->rank; d++) {
    int64_t size = updates->dims[d];
    bool wrong;
    if (in_list(d, s->n_update_window, s->update_window_dims)) {
      while (in_list(next_window, s->n_inserted, s->inserted_window_dims) ||
             in_list(next_window, s->n_input_batching, s->input_batching_dims)) {
        next_window++;
      }
      wrong = size > x->dims[next_window++];
    } else {
      if (next_batch == s->index_vector_dim) next_batch++;
      wrong = size != indices->dims[next_batch++];
    }
    if (!wrong) continue;
    hlo_fail(b, TT_INTERNAL, "scatter: updates %s do not suit operand %s and indices %s", hlo_text_shape(b, updates),
             hlo_text_shape(b, x), hlo_text_shape(b, indices));
    return false;
  }
  return true;
}

static bool check_scatter(hlo_builder_t* b, hlo_t x, hlo_t indices, hlo_t updates, const hlo_scatter_t* s) {
  const char* who = "scatter";
  if (!check_indices(b, who, indices, s->index_vector_dim, s->n_map) ||
      !check_batching(b, who, x, indices, s->n_input_batching, s->input_batching_dims, s->n_indices_batching,
                      s->scatter_indices_batching_dims, s->index_vector_dim) ||
      !check_list(b, who, "inserted dims", s->n_inserted, s->inserted_window_dims, x->rank, true) ||
      !check_list(b, who, "mapped dims", s->n_map, s->scatter_dims_to_operand_dims, x->rank, false) ||
      !check_list(b, who, "update window dims", s->n_update_window, s->update_window_dims, updates->rank, true)) {
    return false;
  }
  int batch_rank = indices->rank - (s->index_vector_dim < indices->rank);
  bool window = s->n_update_window + s->n_inserted + s->n_input_batching == x->rank;
  return fail_if(b, x->dtype != updates->dtype, who, "operand and updates differ in dtype") &&
         fail_if(b, !window, who, "window, inserted and batching dims must make up the operand's rank") &&
         fail_if(b, updates->rank != batch_rank + s->n_update_window, who, "updates have the wrong rank") &&
         check_updates(b, x, indices, updates, s);
}

static const char* scatter_attrs(hlo_builder_t* b, const hlo_scatter_t* s) {
  const char* numbers = hlo_text(
      b, "#stablehlo.scatter<update_window_dims = %s, inserted_window_dims = %s, input_batching_dims = %s, "
         "scatter_indices_batching_dims = %s, scatter_dims_to_operand_dims = %s, index_vector_dim = %lld>",
      hlo_text_list(b, s->n_update_window, s->update_window_dims),
      hlo_text_list(b, s->n_inserted, s->inserted_window_dims),
      hlo_text_list(b, s->n_input_batching, s->input_batching_dims),
      hlo_text_list(b, s->n_indices_batching, s->scatter_indices_batching_dims),
      hlo_text_list(b, s->n_map, s->scatter_dims_to_operand_dims), (long long)s->index_vector_dim);
  return hlo_text(b, "scatter_dimension_numbers = %s, indices_are_sorted = %s, unique_indices = %s", numbers,
                  s->indices_are_sorted ? "true" : "false", s->unique_indices ? "true" : "false");
}

void hlo_scatter_region(hlo_builder_t* b, int n, const hlo_t* xs, hlo_t indices, const hlo_t* updates,
                        const hlo_scatter_t* dims, hlo_region_t* region, hlo_t* out) {
  hlo_poison_all(b, n, out);
  if (!hlo_usable(b, "scatter", n, xs) || !hlo_usable(b, "scatter", n, updates) ||
      !hlo_usable(b, "scatter", 1, &indices)) {
    return;
  }
  hlo_t* in = hlo_alloc(b, (size_t)(2 * n + 1) * sizeof *in);
  hlo_type_t* types = hlo_alloc(b, (size_t)n * sizeof *types);
  if (!in || !types) return;
  for (int i = 0; i < n; i++) {
    if (!check_scatter(b, xs[i], indices, updates[i], dims)) return;
    if (!hlo_same_dims(xs[i], xs[0]) || !hlo_same_dims(updates[i], updates[0])) {
      hlo_fail(b, TT_INTERNAL, "scatter: operands differ in shape");
      return;
    }
    in[i] = xs[i];
    in[n + 1 + i] = updates[i];
    types[i] = hlo_type_of(xs[i]);
  }
  in[n] = indices;
  if (!hlo_seal_combiner(b, "scatter", region, n, xs)) return;
  if (hlo_numel(updates[0]) == 0 || hlo_numel(xs[0]) == 0) {  // nothing to write
    for (int i = 0; i < n; i++) out[i] = xs[i];
    return;
  }
  hlo_op_t* op = hlo_op(b, "stablehlo.scatter", 2 * n + 1, in, scatter_attrs(b, dims), 1, &region, n, types);
  hlo_op_results(b, op, n, out);
}

hlo_t hlo_scatter(hlo_builder_t* b, hlo_t x, hlo_t indices, hlo_t updates, hlo_reducer_t reducer,
                  const hlo_scatter_t* dims) {
  if (!hlo_usable(b, "scatter", 1, &x)) return hlo_poison(b);
  hlo_t out;
  hlo_scatter_region(b, 1, &x, indices, &updates, dims, hlo_reducer_region(b, reducer, x->dtype), &out);
  return out;
}

// ---------------------------------------------------------------- the forms that PyTorch needs
// XLA clamps indices in their own dtype: a narrow one could not hold the bound.
static hlo_t widen_index(hlo_builder_t* b, hlo_t index) {
  if (b->error || !tt_is_int(index->dtype) || tt_dtype_size(index->dtype) >= 4) return index;
  return hlo_convert(b, index, TT_I32);
}

hlo_t hlo_take(hlo_builder_t* b, hlo_t x, hlo_t index, int dim) {
  hlo_t in[2] = {x, index};
  if (!hlo_usable(b, "take", 2, in)) return hlo_poison(b);
  if (x->rank == 0) x = hlo_unsqueeze(b, x, 0);
  int d = hlo_dim(b, dim, x->rank), rank = x->rank - 1 + index->rank;
  if (b->error) return hlo_poison(b);
  if (rank > HLO_MAX_RANK) return hlo_fail(b, TT_UNIMPLEMENTED, "take: the result has %d dims", rank);
  int64_t dims[HLO_MAX_RANK], offsets[HLO_MAX_RANK], sizes[HLO_MAX_RANK], at = d;
  for (int i = 0; i < rank; i++) {
    bool from_index = i >= d && i < d + index->rank;
    dims[i] = i < d ? x->dims[i] : from_index ? index->dims[i - d] : x->dims[i - index->rank + 1];
  }
  for (int i = 0; i < x->rank; i++) {
    sizes[i] = i == d ? 1 : x->dims[i];
    if (i != d) offsets[i < d ? i : i - 1] = i < d ? i : i - 1 + index->rank;
  }
  for (int i = 0; i < rank; i++) {
    if (dims[i] == 0) return hlo_splat(b, x->dtype, 0, rank, dims);
  }
  index = widen_index(b, index);
  hlo_gather_t g = {.n_offset_dims = x->rank - 1, .offset_dims = offsets, .n_collapsed = 1, .collapsed_slice_dims = &at,
                    .n_map = 1, .start_index_map = &at, .index_vector_dim = index->rank, .slice_sizes = sizes};
  return hlo_gather(b, x, index, &g);
}

// |x| and |index| are of one rank (at least 1) and index's dims but |d| lie inside x's. False (and failed) otherwise.
static bool check_along(hlo_builder_t* b, const char* who, hlo_t x, hlo_t index, int d) {
  bool fits = x->rank == index->rank;
  for (int i = 0; fits && i < x->rank; i++) fits = i == d || index->dims[i] <= x->dims[i];
  if (!fits) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "%s: index %s does not suit %s along dim %d", who, hlo_text_shape(b, index),
             hlo_text_shape(b, x), d);
  }
  return fits && !b->error;
}

// The corner of |x| whose dims are |dims|.
static hlo_t corner(hlo_builder_t* b, hlo_t x, const int64_t* dims) {
  int64_t zeros[HLO_MAX_RANK] = {0};
  return hlo_slice(b, x, zeros, dims, NULL);
}

// All dims but |d|, ascending, and x's size along |d| with index's elsewhere.
static int along_dims(hlo_t x, hlo_t index, int d, int64_t* others, int64_t* dims) {
  int n = 0;
  for (int i = 0; i < x->rank; i++) {
    dims[i] = i == d ? x->dims[i] : index->dims[i];
    if (i != d) others[n++] = i;
  }
  return n;
}

hlo_t hlo_take_along(hlo_builder_t* b, hlo_t x, hlo_t index, int dim) {
  hlo_t in[2] = {x, index};
  if (!hlo_usable(b, "take_along", 2, in)) return hlo_poison(b);
  if (x->rank == 0 || index->rank == 0) {
    if (x->rank == 0) x = hlo_unsqueeze(b, x, 0);
    if (index->rank == 0) return hlo_squeeze(b, hlo_take_along(b, x, hlo_unsqueeze(b, index, 0), dim), 0);
  }
  int d = hlo_dim(b, dim, x->rank);
  if (!check_along(b, "take_along", x, index, d)) return hlo_poison(b);
  if (hlo_numel(index) == 0) return hlo_splat(b, x->dtype, 0, index->rank, index->dims);
  int64_t others[HLO_MAX_RANK], dims[HLO_MAX_RANK], ones[HLO_MAX_RANK], at = d;
  int n = along_dims(x, index, d, others, dims);
  for (int i = 0; i < x->rank; i++) ones[i] = 1;
  index = widen_index(b, index);
  hlo_gather_t g = {.n_collapsed = 1, .collapsed_slice_dims = &at, .n_operand_batching = n,
                    .operand_batching_dims = others, .n_indices_batching = n, .start_indices_batching_dims = others,
                    .n_map = 1, .start_index_map = &at, .index_vector_dim = index->rank, .slice_sizes = ones};
  return hlo_gather(b, corner(b, x, dims), index, &g);
}

hlo_t hlo_put_along(hlo_builder_t* b, hlo_t x, hlo_t index, hlo_t src, int dim, hlo_reducer_t reducer) {
  hlo_t in[3] = {x, index, src};
  if (!hlo_usable(b, "put_along", 3, in)) return hlo_poison(b);
  if (index->rank == 0) index = hlo_unsqueeze(b, index, 0);
  if (src->rank == 0) src = hlo_unsqueeze(b, src, 0);
  if (x->rank == 0) {
    return hlo_squeeze(b, hlo_put_along(b, hlo_unsqueeze(b, x, 0), index, src, dim, reducer), 0);
  }
  int d = hlo_dim(b, dim, x->rank);
  if (!check_along(b, "put_along", x, index, d)) return hlo_poison(b);
  if (src->rank != index->rank) return hlo_fail(b, TT_INVALID_ARGUMENT, "put_along: src has another rank than index");
  if (hlo_numel(index) == 0 || hlo_numel(x) == 0) return x;
  int64_t others[HLO_MAX_RANK], dims[HLO_MAX_RANK], at = d;
  int n = along_dims(x, index, d, others, dims);
  hlo_t part = corner(b, x, dims);
  index = widen_index(b, index);
  hlo_scatter_t s = {.n_inserted = 1, .inserted_window_dims = &at, .n_input_batching = n, .input_batching_dims = others,
                     .n_indices_batching = n, .scatter_indices_batching_dims = others, .n_map = 1,
                     .scatter_dims_to_operand_dims = &at, .index_vector_dim = index->rank};
  hlo_t done = hlo_scatter(b, part, index, corner(b, src, index->dims), reducer, &s);
  if (part == x || b->error) return done;
  hlo_t starts[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) starts[i] = hlo_scalar_int(b, TT_I32, 0);
  return hlo_dynamic_update_slice(b, x, done, starts);
}
