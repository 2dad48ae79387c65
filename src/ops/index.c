// Indexing by lists of index tensors (x[i, :, j]), by flat positions (take, put) and by masks (masked_scatter).
#include <string.h>
#include "ops/common.h"
#include "ops/indexing.h"
#include "ops/op.h"

// ---------------------------------------------------------------- x[i, :, j, ...]
// Which dims are indexed, and how the result is laid out: where the indexed dims are adjacent, the broadcast index
// takes their place; else it comes first.
typedef struct advanced_t {
  int n;                       // indexed dims
  int64_t dims[TT_MAX_RANK];   // … rising
  hlo_t at[TT_MAX_RANK];       // an index per indexed dim, broadcast to one shape
  int index_rank;
  const int64_t* index_dims;
  int first;                   // position of the index's dims in the result
  int out_rank;
  int64_t out_dims[2 * TT_MAX_RANK];
  int n_window;
  int64_t window[TT_MAX_RANK];  // positions of the untouched dims in the result
} advanced_t;

typedef enum clamp_t { INDEX_CHECKED, INDEX_UNCHECKED, INDEX_CLAMPED } clamp_t;

static hlo_t ready_index(tt_lower_t* l, hlo_t index, int64_t dim, int64_t size, clamp_t clamp) {
  hlo_builder_t* b = tt_b(l);
  const tt_index_rule_t checked = {true, TT_OUT_OF_RANGE, tt_bounds_message(l, dim, size)};
  const tt_index_rule_t unchecked = {true, TT_OUT_OF_RANGE, NULL};
  if (index->dtype == TT_U8) index = hlo_convert(b, index, TT_BOOL);  // a mask of old, refused as one
  if (clamp == INDEX_CLAMPED) {
    index = hlo_convert(b, index, TT_I64);
    index = hlo_clamp(b, hlo_scalar_int(b, TT_I64, -size), index, hlo_scalar_int(b, TT_I64, size - 1));
  }
  return tt_index_ready(l, index, size, clamp == INDEX_CHECKED ? &checked : &unchecked);
}

static void lay_out(hlo_t x, advanced_t* a) {
  bool indexed[TT_MAX_RANK] = {false};
  for (int i = 0; i < a->n; i++) indexed[a->dims[i]] = true;
  const bool adjacent = a->n == 0 || a->dims[a->n - 1] - a->dims[0] == a->n - 1;
  a->first = adjacent && a->n > 0 ? (int)a->dims[0] : 0;
  for (int i = 0; i <= x->rank; i++) {
    if (a->out_rank == a->first) {
      for (int k = 0; k < a->index_rank; k++) a->out_dims[a->out_rank++] = a->index_dims[k];
    }
    if (i == x->rank || indexed[i]) continue;
    a->window[a->n_window++] = a->out_rank;
    a->out_dims[a->out_rank++] = x->dims[i];
  }
}

// Reads the index list of argument |arg|.
static bool read_indices(tt_lower_t* l, hlo_t x, int arg, clamp_t clamp, advanced_t* a) {
  hlo_builder_t* b = tt_b(l);
  *a = (advanced_t){0};
  const int n = tt_list_len(l, arg);
  if (n > x->rank) {
    hlo_fail(b, TT_OUT_OF_RANGE, "too many indices for tensor of dimension %d (got %d)", x->rank, n);
    return false;
  }
  for (int i = 0; i < n; i++) {
    hlo_t index = tt_in_list(l, arg, i);
    if (!index) continue;
    a->dims[a->n] = i;
    a->at[a->n] = ready_index(l, index, a->n, x->dims[i], clamp);  // PyTorch's message counts the given indices
    a->n++;
  }
  // All indices share a shape and the narrowest dtype that addresses every indexed dim.
  tt_dtype_t dtype = TT_I32;
  for (int i = 0; i < a->n; i++) dtype = a->at[i]->dtype == TT_I64 ? TT_I64 : dtype;
  for (int i = 0; i < a->n; i++) a->at[i] = hlo_convert(b, a->at[i], dtype);
  for (int pass = 0; pass < 2; pass++) {  // the last one grows to the common shape, then the others do
    for (int i = 0; i + 1 < a->n; i++) hlo_broadcast2(b, &a->at[i], &a->at[a->n - 1]);
  }
  if (a->n > 0) {
    a->index_rank = a->at[0]->rank;
    a->index_dims = a->at[0]->dims;
  }
  if (x->rank + a->index_rank > TT_MAX_RANK) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "indexing: too many dims");
    return false;
  }
  lay_out(x, a);
  return !hlo_failed(b);
}

// The index tensors as one, coordinates in a last dim (left out when there is only one).
static hlo_t coordinates(hlo_builder_t* b, const advanced_t* a) {
  if (a->n == 1) return a->at[0];
  hlo_t parts[TT_MAX_RANK];
  for (int i = 0; i < a->n; i++) parts[i] = hlo_unsqueeze(b, a->at[i], a->index_rank);
  return hlo_concat(b, a->n, parts, a->index_rank);
}

static hlo_t read_at(hlo_builder_t* b, hlo_t x, const advanced_t* a) {
  if (a->n == 0) return x;
  int64_t numel = 1, sizes[TT_MAX_RANK];
  for (int i = 0; i < a->out_rank; i++) numel *= a->out_dims[i];
  if (numel == 0 || hlo_numel(x) == 0) return hlo_splat(b, x->dtype, 0, a->out_rank, a->out_dims);
  for (int i = 0; i < x->rank; i++) sizes[i] = x->dims[i];
  for (int i = 0; i < a->n; i++) sizes[a->dims[i]] = 1;
  const hlo_gather_t dims = {
      .n_offset_dims = a->n_window,
      .offset_dims = a->window,
      .n_collapsed = a->n,
      .collapsed_slice_dims = a->dims,
      .n_map = a->n,
      .start_index_map = a->dims,
      .index_vector_dim = a->index_rank,
      .slice_sizes = sizes,
  };
  return hlo_gather(b, x, coordinates(b, a), &dims);
}

static hlo_t write_at(hlo_builder_t* b, hlo_t x, hlo_t values, const advanced_t* a, hlo_reducer_t reducer) {
  values = hlo_broadcast_to(b, values, a->out_rank, a->out_dims);
  if (a->n == 0) return reducer == HLO_R_ADD ? hlo_add(b, x, values) : values;
  if (hlo_numel(values) == 0 || hlo_numel(x) == 0) return x;
  const hlo_scatter_t dims = {
      .n_update_window = a->n_window,
      .update_window_dims = a->window,
      .n_inserted = a->n,
      .inserted_window_dims = a->dims,
      .n_map = a->n,
      .scatter_dims_to_operand_dims = a->dims,
      .index_vector_dim = a->index_rank,
  };
  return hlo_scatter(b, x, coordinates(b, a), values, reducer, &dims);
}

static void lower_index(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  advanced_t a;
  if (!read_indices(l, x, 1, (clamp_t)tt_row(l)->kind, &a)) return;
  tt_ret(l, 0, read_at(tt_b(l), x, &a));
}

// _unsafe_masked_index: positions outside the mask read |fill|, whatever their index.
static void lower_masked_index(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), mask = tt_in_as(l, 1, TT_BOOL);
  advanced_t a;
  if (!read_indices(l, x, 2, INDEX_CLAMPED, &a)) return;
  hlo_t out = read_at(b, x, &a), fill = tt_scalar(l, 3, x->dtype);
  mask = hlo_broadcast_to(b, mask, out->rank, out->dims);
  tt_ret(l, 0, hlo_numel(x) == 0 ? hlo_broadcast_to(b, fill, out->rank, out->dims) : hlo_select(b, mask, out, fill));
}

static void lower_masked_index_put(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), mask = tt_in_as(l, 1, TT_BOOL);
  advanced_t a;
  if (!read_indices(l, x, 2, INDEX_CLAMPED, &a)) return;
  const tt_dtype_t dtype = tt_opmath(x->dtype);
  hlo_t values = hlo_broadcast_to(b, tt_in_as(l, 3, dtype), a.out_rank, a.out_dims);
  values = hlo_select(b, hlo_broadcast_to(b, mask, a.out_rank, a.out_dims), values, hlo_scalar(b, dtype, 0));
  tt_ret(l, 0, write_at(b, hlo_convert(b, x, dtype), values, &a, HLO_R_ADD));
}

// ---------------------------------------------------------------- x[mask] = values
// Exclusive count of true values before each position of the flattened mask, and their total (0-d), in i32 or i64.
static hlo_t mask_positions(hlo_builder_t* b, hlo_t flat_mask, hlo_t* out_count) {
  const int64_t n = flat_mask->dims[0];
  const tt_dtype_t dtype = n <= INT32_MAX ? TT_I32 : TT_I64;
  hlo_t ones = hlo_convert(b, flat_mask, dtype);
  if (n == 0) {
    *out_count = hlo_scalar_int(b, TT_I64, 0);
    return ones;
  }
  hlo_t inclusive = hlo_scan(b, ones, HLO_R_ADD, 0, false);
  *out_count = hlo_convert(b, hlo_squeeze(b, hlo_slice_dim(b, inclusive, 0, n - 1, n, 1), 0), TT_I64);
  return hlo_subtract(b, inclusive, ones);
}

// One mask over dims [dim, dim + mask.rank): no size depends on the data, so nothing is expanded. |values| are laid out
// like x with the masked dims as one of "number of true values", or broadcast to that.
static void put_by_mask(tt_lower_t* l, hlo_t x, hlo_t mask, int dim, hlo_t values, bool accumulate) {
  hlo_builder_t* b = tt_b(l);
  if (hlo_numel(x) == 0) {
    tt_ret(l, 0, x);
    return;
  }
  mask = hlo_convert(b, mask, TT_BOOL);
  const int mask_rank = mask->rank, joint_rank = x->rank - mask_rank + 1;
  int64_t map[TT_MAX_RANK], dims[TT_MAX_RANK];
  for (int i = 0; i < mask_rank; i++) map[i] = dim + i;
  hlo_t full_mask = hlo_broadcast_in_dim(b, mask, x->rank, x->dims, map);
  const int at = dim - (joint_rank - values->rank);  // of the counted dim in |values|
  const int64_t given = at >= 0 && at < values->rank ? values->dims[at] : 1;
  hlo_t count, position = mask_positions(b, hlo_flatten(b, mask), &count);
  if (given != 1) {
    hlo_t bad = hlo_compare(b, HLO_NE, count, hlo_scalar_int(b, TT_I64, given));
    const char* text = tt_arena_printf(hlo_builder_arena(b),
                                       "shape mismatch: value tensor with %lld entries cannot be broadcast to "
                                       "indexing result of %%lld",
                                       (long long)given);
    tt_check(l, bad, count, TT_INVALID_ARGUMENT, text ? text : "shape mismatch");
    values = tt_take(b, values, tt_reshape_like(b, position, mask), at);
  } else if (at >= 0 && at < values->rank) {
    int rank = 0;
    for (int i = 0; i < values->rank; i++) {
      if (i != at) dims[rank++] = values->dims[i];
      for (int k = 0; i == at && k < mask_rank; k++) dims[rank++] = 1;
    }
    values = hlo_reshape(b, values, rank, dims);
  }
  values = hlo_broadcast_to(b, values, x->rank, x->dims);
  tt_ret(l, 0, hlo_select(b, full_mask, accumulate ? hlo_add(b, x, values) : values, x));
}

// The only index when that is a mask; its dim.
static hlo_t only_mask(tt_lower_t* l, int arg, int* out_dim) {
  hlo_t mask = NULL;
  const int n = tt_list_len(l, arg);
  for (int i = 0; i < n; i++) {
    hlo_t index = tt_in_list(l, arg, i);
    if (!index) continue;
    if (mask || (index->dtype != TT_BOOL && index->dtype != TT_U8)) return NULL;
    mask = index;
    *out_dim = i;
  }
  return mask;
}

static void lower_index_put(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0);
  const bool accumulate = tt_bool(l, 3);
  const tt_dtype_t dtype = accumulate ? tt_opmath(self->dtype) : self->dtype;
  hlo_t x = hlo_convert(b, self, dtype), values = tt_in_as(l, 2, dtype);
  int dim = 0;
  hlo_t mask = only_mask(l, 1, &dim);
  if (mask && mask->rank > 0 && dim + mask->rank <= x->rank && values->rank <= x->rank - mask->rank + 1) {
    put_by_mask(l, x, mask, dim, values, accumulate);
    return;
  }
  advanced_t a;
  if (!read_indices(l, x, 1, (clamp_t)tt_row(l)->kind, &a)) return;
  while (values->rank > a.out_rank && values->dims[0] == 1) values = hlo_squeeze(b, values, 0);
  tt_ret(l, 0, write_at(b, x, values, &a, accumulate ? HLO_R_ADD : HLO_R_ASSIGN));
}

// ---------------------------------------------------------------- flat positions
static hlo_t flat_index(tt_lower_t* l, int arg, hlo_t x) {
  const long long n = (long long)hlo_numel(x);
  const char* text = tt_arena_printf(hlo_builder_arena(tt_b(l)),
                                     "out of range: tried to access index %%lld on a tensor of %lld elements.", n);
  const tt_index_rule_t rule = {true, TT_OUT_OF_RANGE, text};
  return tt_index_ready(l, tt_in(l, arg), n, &rule);
}

static void lower_take(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  tt_ret(l, 0, tt_take(tt_b(l), hlo_flatten(tt_b(l), x), flat_index(l, 1, x), 0));
}

static void lower_put(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t self = tt_in(l, 0);
  const bool accumulate = tt_bool(l, 3);
  const tt_dtype_t dtype = accumulate ? tt_opmath(self->dtype) : self->dtype;
  hlo_t index = hlo_flatten(b, flat_index(l, 1, self)), source = hlo_flatten(b, tt_in_as(l, 2, dtype));
  hlo_t flat = hlo_flatten(b, hlo_convert(b, self, dtype));
  flat = tt_put(b, flat, index, source, 0, accumulate ? HLO_R_ADD : HLO_R_ASSIGN);
  tt_ret(l, 0, tt_reshape_like(b, flat, self));
}

// ---------------------------------------------------------------- masked_scatter
static void lower_masked_scatter(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), mask = tt_in_as(l, 1, TT_BOOL), source = hlo_flatten(b, tt_in_as(l, 2, x->dtype));
  if (tt_in(l, 1)->dtype != TT_BOOL) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
             tt_dtype_name(tt_in(l, 1)->dtype));
    return;
  }
  hlo_broadcast2(b, &x, &mask);
  if (hlo_numel(x) == 0) {
    tt_ret(l, 0, x);
    return;
  }
  hlo_t count, position = mask_positions(b, hlo_flatten(b, mask), &count);
  hlo_t bad = hlo_compare(b, HLO_GT, count, hlo_scalar_int(b, TT_I64, hlo_numel(source)));
  tt_check(l, bad, NULL, TT_INVALID_ARGUMENT, "Number of elements of source < number of ones in mask");
  if (hlo_numel(source) == 0) {
    tt_ret(l, 0, x);
    return;
  }
  hlo_t values = tt_reshape_like(b, hlo_take(b, source, position, 0), x);
  tt_ret(l, 0, hlo_select(b, mask, values, x));
}

static void lower_masked_scatter_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t grad = tt_in(l, 0), mask = tt_in_as(l, 1, TT_BOOL);
  hlo_broadcast2(b, &grad, &mask);
  int n = 0;
  const int64_t* sizes = tt_ints(l, 2, &n);
  int64_t numel = 1;
  for (int i = 0; i < n; i++) numel *= sizes[i];
  hlo_t count, flat = hlo_flatten(b, mask), position = mask_positions(b, flat, &count);
  hlo_t beyond = hlo_scalar_int(b, position->dtype, numel);  // dropped
  position = hlo_select(b, flat, position, beyond);
  hlo_t zeros = hlo_splat(b, grad->dtype, 0, 1, &numel);
  hlo_t out = tt_put(b, zeros, position, hlo_flatten(b, grad), 0, HLO_R_ASSIGN);
  tt_ret(l, 0, hlo_reshape(b, out, n, sizes));
}

static const tt_op_row_t k_rows[] = {
    {"index.Tensor", .lower = lower_index, .kind = INDEX_CHECKED, .flags = TT_OP_CHECKS},
    {"_unsafe_index.Tensor", .lower = lower_index, .kind = INDEX_UNCHECKED},
    {"_unsafe_masked_index", .lower = lower_masked_index},
    {"_unsafe_masked_index_put_accumulate", .lower = lower_masked_index_put},
    {"index_put", .lower = lower_index_put, .kind = INDEX_CHECKED, .flags = TT_OP_CHECKS},
    {"_index_put_impl", .lower = lower_index_put, .kind = INDEX_CHECKED, .flags = TT_OP_CHECKS},
    {"_unsafe_index_put", .lower = lower_index_put, .kind = INDEX_UNCHECKED, .flags = TT_OP_CHECKS},
    {"take", .lower = lower_take, .flags = TT_OP_CHECKS},
    {"put", .lower = lower_put, .flags = TT_OP_CHECKS},
    {"masked_scatter", .lower = lower_masked_scatter, .flags = TT_OP_CHECKS},
    {"masked_scatter_backward", .lower = lower_masked_scatter_backward},
};
TT_OP_FAMILY(index, k_rows)
