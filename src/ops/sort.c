// Order statistics: sort, topk, kthvalue, medians, mode; and searching in sorted sequences.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// PyTorch's order: NaN is the largest value. A 0-d tensor is sorted as one element.
#include <math.h>
#include <string.h>

#include "ops/common.h"

// Stable sort along |dim|, which must exist.
static void sort_along(hlo_builder_t* b, hlo_t x, int dim, bool descending, hlo_t* out_values, hlo_t* out_indices) {
  tt_dtype_t dtype = x->dtype;
  if (dtype == TT_BOOL) x = hlo_convert(b, x, TT_U8);
  hlo_sort_with_index(b, x, dim, descending, out_values, out_indices);
  *out_values = hlo_convert(b, *out_values, dtype);
}

// The tensor with at least one dim, so that there is one to sort along.
static hlo_t as_row(hlo_builder_t* b, hlo_t x) { return x->rank ? x : hlo_unsqueeze(b, x, 0); }

// Undoes as_row: results of a 0-d input are 0-d.
static void ret_pair(tt_lower_t* l, hlo_t values, hlo_t indices, bool drop, int dim) {
  hlo_builder_t* b = tt_b(l);
  tt_ret(l, 0, drop ? hlo_squeeze(b, values, dim) : values);
  tt_ret(l, 1, drop ? hlo_squeeze(b, indices, dim) : indices);
}

static void sort_op(tt_lower_t* l, int dim_arg, int descending_arg) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = as_row(b, in), values, indices;
  int dim = hlo_dim(b, tt_int(l, dim_arg), in->rank);
  sort_along(b, x, dim, tt_bool(l, descending_arg), &values, &indices);
  ret_pair(l, values, indices, in->rank == 0, 0);
}

static void lower_sort(tt_lower_t* l) { sort_op(l, 1, 2); }
static void lower_sort_stable(tt_lower_t* l) { sort_op(l, 2, 3); }

// (self, k, dim, largest, sorted)
static void lower_topk(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = as_row(b, in), values, indices;
  int dim = hlo_dim(b, tt_int(l, 2), in->rank);
  int64_t k = tt_int(l, 1);
  if (k < 0 || k > x->dims[dim]) {
    k = 0;
    x = hlo_fail(b, TT_INVALID_ARGUMENT, "selected index k out of range");
    tt_ret(l, 0, x);
    return;
  }
  sort_along(b, x, dim, tt_bool(l, 3), &values, &indices);
  values = hlo_slice_dim(b, values, dim, 0, k, 1);
  indices = hlo_slice_dim(b, indices, dim, 0, k, 1);
  ret_pair(l, values, indices, in->rank == 0 && k == 1, 0);
}

// Slice [place, place + 1) of |sorted| along |dim|, |place| the same everywhere.
static void pick(hlo_builder_t* b, int dim, int64_t place, hlo_t* values, hlo_t* indices) {
  *values = hlo_slice_dim(b, *values, dim, place, place + 1, 1);
  *indices = hlo_slice_dim(b, *indices, dim, place, place + 1, 1);
}

// (self, k, dim, keepdim)
static void lower_kthvalue(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = as_row(b, in), values, indices;
  int dim = hlo_dim(b, tt_int(l, 2), in->rank);
  int64_t k = tt_int(l, 1);
  if (k < 1 || k > x->dims[dim]) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "kthvalue(): selected number k out of range for dimension %d", dim));
    return;
  }
  sort_along(b, x, dim, false, &values, &indices);
  pick(b, dim, k - 1, &values, &indices);
  ret_pair(l, values, indices, in->rank == 0 || !tt_bool(l, 3), dim);
}

// ---------------------------------------------------------------- medians
// Lower median along |dim| (kept as 1). |skip_nan|: of the numbers only; else the first NaN wins.
static void median_along(hlo_builder_t* b, hlo_t x, int dim, bool skip_nan, hlo_t* values, hlo_t* indices) {
  const int64_t n = x->dims[dim], middle = (n - 1) / 2, dims[] = {dim};
  sort_along(b, x, dim, false, values, indices);
  if (!tt_is_float(x->dtype)) {
    pick(b, dim, middle, values, indices);
    return;
  }
  hlo_t nans = hlo_reduce_keep(b, hlo_convert(b, hlo_is_nan(b, x), TT_I64), HLO_R_ADD, 1, dims);
  hlo_t numbers = hlo_subtract(b, hlo_scalar_int(b, TT_I64, n), nans), one = hlo_scalar_int(b, TT_I64, 1);
  hlo_t zero = hlo_scalar_int(b, TT_I64, 0), place;
  if (skip_nan) {
    hlo_t last = hlo_maximum(b, hlo_subtract(b, numbers, one), zero);
    place = hlo_shift_right_logical(b, last, one);
  } else {
    // NaNs are sorted last and stably, so the first of them stands right after the numbers.
    place = hlo_select(b, hlo_compare(b, HLO_GT, nans, zero), numbers, hlo_scalar_int(b, TT_I64, middle));
  }
  *values = hlo_take_along(b, *values, place, dim);
  *indices = hlo_take_along(b, *indices, place, dim);
}

static void lower_median(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = hlo_flatten(b, tt_in(l, 0)), values, indices;
  if (x->dims[0] == 0) {
    tt_ret(l, 0, tt_is_float(x->dtype) ? hlo_scalar(b, x->dtype, NAN) : hlo_lowest(b, x->dtype));
    return;
  }
  median_along(b, x, 0, tt_row(l)->kind != 0, &values, &indices);
  tt_ret(l, 0, hlo_squeeze(b, values, 0));
}

// (self, dim, keepdim)
static void lower_median_dim(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = as_row(b, in), values, indices;
  int dim = hlo_dim(b, tt_int(l, 1), in->rank);
  if (x->dims[dim] == 0) {
    tt_ret(l, 0, hlo_fail(b, TT_OUT_OF_RANGE, "median(): Expected reduction dim %d to have non-zero size.", dim));
    return;
  }
  median_along(b, x, dim, tt_row(l)->kind != 0, &values, &indices);
  ret_pair(l, values, indices, in->rank == 0 || !tt_bool(l, 2), dim);
}

// (self, dim, keepdim): the most frequent value, the smallest of several, and the last place it stands at.
static void lower_mode(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = as_row(b, in), values, indices;
  int dim = hlo_dim(b, tt_int(l, 1), in->rank);
  int64_t n = x->dims[dim];
  if (n == 0) {
    tt_ret(l, 0, hlo_fail(b, TT_OUT_OF_RANGE, "mode(): Expected reduction dim %d to have non-zero size.", dim));
    return;
  }
  sort_along(b, x, dim, false, &values, &indices);
  if (n > 1 && hlo_numel(x) > 0) {
    // Length so far of the run of equal values each element stands in; its first maximum ends the first longest run.
    hlo_t place = hlo_iota(b, TT_I64, x->rank, x->dims, dim);
    hlo_t before = hlo_slice_dim(b, values, dim, 0, n - 1, 1), after = hlo_slice_dim(b, values, dim, 1, n, 1);
    hlo_t starts = hlo_compare(b, HLO_NE, before, after);
    int64_t lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0};
    lo[dim] = 1;
    starts = hlo_pad(b, starts, hlo_scalar(b, TT_BOOL, 1), lo, hi, NULL);
    hlo_t start = hlo_scan(b, hlo_select(b, starts, place, hlo_zeros_like(b, place)), HLO_R_MAX, dim, false);
    hlo_t longest, end;
    hlo_arg_reduce(b, hlo_subtract(b, place, start), true, dim, &longest, &end);
    end = hlo_unsqueeze(b, end, dim);
    values = hlo_take_along(b, values, end, dim);
    indices = hlo_take_along(b, indices, end, dim);
  }
  ret_pair(l, values, indices, in->rank == 0 || !tt_bool(l, 2), dim);
}

// ---------------------------------------------------------------- searching
// When an element sends the search to its right. The first two are PyTorch's searchsorted, whose element that does not
// compare (NaN) counts as too small; the third keeps NaNs at the end, where sort puts them.
typedef enum search_t { SEARCH_LEFT, SEARCH_RIGHT, SEARCH_NAN_LAST } search_t;

// Position of each of |values| [..., m] in |seq| [..., n] (equal leading dims), as i32 or i64 by n.
static hlo_t search(hlo_builder_t* b, hlo_t seq, hlo_t values, search_t kind) {
  int last = seq->rank - 1;
  int64_t n = seq->dims[last];
  tt_dtype_t it = n < (INT64_C(1) << 30) ? TT_I32 : TT_I64;
  hlo_t lo = hlo_splat(b, it, 0, values->rank, values->dims);
  if (n == 0 || hlo_numel(values) == 0) return lo;
  hlo_t hi = hlo_splat(b, it, (double)n, values->rank, values->dims);
  hlo_t one = hlo_scalar_int(b, it, 1), end = hlo_scalar_int(b, it, n - 1);
  for (int64_t left = n; left > 0; left /= 2) {
    hlo_t middle = hlo_shift_right_logical(b, hlo_add(b, lo, hi), one);
    hlo_t element = hlo_take_along(b, seq, hlo_minimum(b, middle, end), last);
    hlo_t right = kind == SEARCH_NAN_LAST
                      ? hlo_compare(b, HLO_LT, element, values)
                      : hlo_not_(b, hlo_compare(b, kind == SEARCH_LEFT ? HLO_GE : HLO_GT, element, values));
    right = hlo_and_(b, right, hlo_compare(b, HLO_LT, lo, hi));
    lo = hlo_select(b, right, hlo_add(b, middle, one), lo);
    hi = hlo_select(b, right, hi, middle);
  }
  return lo;
}

static void ret_positions(tt_lower_t* l, hlo_t seq, hlo_t values, search_t kind, bool i32) {
  hlo_builder_t* b = tt_b(l);
  hlo_t flat = seq->rank == 1 ? hlo_flatten(b, values) : values;
  bool matches = seq->rank == flat->rank;
  for (int i = 0; matches && i < seq->rank - 1; i++) matches = seq->dims[i] == flat->dims[i];
  if (!matches) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "torch.searchsorted(): boundaries tensor should be 1 dimension or "
                          "the first N-1 dimensions of boundaries tensor and input value tensor must match"));
    return;
  }
  hlo_t places = hlo_convert(b, search(b, seq, flat, kind), i32 ? TT_I32 : TT_I64);
  tt_ret(l, 0, hlo_reshape(b, places, values->rank, values->dims));
}

// Refuses what PyTorch refuses about side and sorter; true when all is well.
static bool check_search_args(tt_lower_t* l, hlo_t seq, hlo_t sorter, const char* side) {
  hlo_builder_t* b = tt_b(l);
  if (side && strcmp(side, "left") != 0 && strcmp(side, "right") != 0) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
  } else if (side && strcmp(side, "left") == 0 && tt_bool(l, 3)) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "torch.searchsorted(): side and right can't be set to opposites, got side of left "
             "while right was True");
  } else if (seq->rank == 0) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "torch.searchsorted(): boundaries tensor should have positive dimension, but got "
             "0 dimension");
  } else if (sorter && sorter->dtype != TT_I64) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "torch.searchsorted(): sorter must be a tensor of long dtype");
  } else if (sorter && !hlo_same_dims(sorter, seq)) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "torch.searchsorted(): boundary and sorter must have the same size");
  }
  return !hlo_failed(b);
}

// (sorted_sequence, self, out_int32, right, side, sorter)
static void lower_searchsorted(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_promote_args(l, 2, (const int[]){0, 1});
  hlo_t seq = tt_in_as(l, 0, dtype), values = tt_operand(l, 1, dtype), sorter = tt_in_or_null(l, 5);
  const char* side = tt_str(l, 4);
  if (!check_search_args(l, seq, sorter, side)) return;
  if (sorter && hlo_numel(seq) > 0) {
    hlo_t size = hlo_scalar_int(b, TT_I64, seq->dims[seq->rank - 1]);
    hlo_t outside = hlo_or_(b, hlo_compare(b, HLO_LT, sorter, hlo_scalar_int(b, TT_I64, 0)),
                            hlo_compare(b, HLO_GE, sorter, size));
    tt_check(l, hlo_reduce_all(b, outside, HLO_R_OR), NULL, TT_INVALID_ARGUMENT,
             "torch.searchsorted(): sorter index out of range");
    seq = hlo_take_along(b, seq, sorter, seq->rank - 1);
  }
  bool right = tt_bool(l, 3) || (side && strcmp(side, "right") == 0);
  ret_positions(l, seq, values, right ? SEARCH_RIGHT : SEARCH_LEFT, tt_bool(l, 2));
}

// (self, boundaries, out_int32, right)
static void lower_bucketize(tt_lower_t* l) {
  tt_dtype_t dtype = tt_promote_args(l, 2, (const int[]){1, 0});
  hlo_t values = tt_operand(l, 0, dtype), seq = tt_in_as(l, 1, dtype);
  if (seq->rank != 1) {
    tt_ret(l, 0, hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "boundaries tensor must be 1 dimension, but got dim(%d)",
                          seq->rank));
    return;
  }
  ret_positions(l, seq, values, tt_bool(l, 3) ? SEARCH_RIGHT : SEARCH_LEFT, tt_bool(l, 2));
}

// (elements, test_elements, assume_unique, invert), either of the first two possibly a Scalar.
static void lower_isin(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_promote_args(l, 2, (const int[]){0, 1});
  hlo_t x = tt_operand(l, 0, dtype), tests = hlo_flatten(b, tt_operand(l, 1, dtype));
  hlo_t flat = hlo_flatten(b, x), found;
  int64_t n = tests->dims[0];
  const int64_t last[] = {1};
  if (n == 0 || flat->dims[0] == 0) {
    found = hlo_splat(b, TT_BOOL, 0, 1, flat->dims);
  } else if (n <= 64 || flat->dims[0] == 1) {
    hlo_t equal = hlo_compare(b, HLO_EQ, hlo_unsqueeze(b, flat, 1), hlo_unsqueeze(b, tests, 0));
    found = hlo_reduce(b, equal, HLO_R_OR, 1, last);
  } else {
    if (dtype == TT_BOOL) tests = hlo_convert(b, tests, TT_U8), flat = hlo_convert(b, flat, TT_U8);
    hlo_t sorted, unused;
    sort_along(b, tests, 0, false, &sorted, &unused);
    hlo_t place = search(b, sorted, flat, SEARCH_NAN_LAST);
    place = hlo_minimum(b, place, hlo_scalar_int(b, place->dtype, n - 1));
    found = hlo_compare(b, HLO_EQ, hlo_take_along(b, sorted, place, 0), flat);
  }
  if (tt_bool(l, 3)) found = hlo_not_(b, found);
  tt_ret(l, 0, hlo_reshape(b, found, x->rank, x->dims));
}

static const tt_op_row_t k_rows[] = {
    {.name = "sort", .lower = lower_sort},
    {.name = "sort.stable", .lower = lower_sort_stable},
    {.name = "topk", .lower = lower_topk},
    {.name = "kthvalue", .lower = lower_kthvalue},
    {.name = "median", .lower = lower_median},
    {.name = "median.dim", .lower = lower_median_dim},
    {.name = "nanmedian", .lower = lower_median, .kind = 1},
    {.name = "nanmedian.dim", .lower = lower_median_dim, .kind = 1},
    {.name = "mode", .lower = lower_mode},
    {.name = "searchsorted.Tensor", .lower = lower_searchsorted, .flags = TT_OP_CHECKS},
    {.name = "searchsorted.Scalar", .lower = lower_searchsorted, .flags = TT_OP_CHECKS},
    {.name = "bucketize.Tensor", .lower = lower_bucketize},
    {.name = "bucketize.Scalar", .lower = lower_bucketize},
    {.name = "isin.Tensor_Tensor", .lower = lower_isin},
    {.name = "isin.Tensor_Scalar", .lower = lower_isin},
    {.name = "isin.Scalar_Tensor", .lower = lower_isin},
};
TT_OP_FAMILY(sort, k_rows)
