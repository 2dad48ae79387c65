// Embedding tables: lookups, bags, and their dense gradients.
#include <math.h>
#include "ops/common.h"
#include "ops/indexing.h"
#include "ops/op.h"

// ---------------------------------------------------------------- embedding
static void lower_embedding(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t weight = tt_in(l, 0);
  const tt_index_rule_t rule = {false, TT_OUT_OF_RANGE, "index out of range in self"};
  hlo_t index = tt_index_ready(l, tt_in(l, 1), weight->dims[0], &rule);
  tt_ret(l, 0, tt_take(b, weight, index, 0));
}

static hlo_t unchecked_index(tt_lower_t* l, hlo_t index, int64_t size) {
  const tt_index_rule_t rule = {false, TT_OUT_OF_RANGE, NULL};
  return tt_index_ready(l, index, size, &rule);
}

// A column of one number per row of |rows|, to multiply rows by.
static hlo_t per_row(hlo_builder_t* b, hlo_t column, hlo_t rows) {
  const int64_t map = 0;
  return hlo_broadcast_in_dim(b, column, rows->rank, rows->dims, &map);
}

// How often each of |n| values occurs in the 1-D |index|.
static hlo_t occurrences(hlo_builder_t* b, hlo_t index, int64_t n, tt_dtype_t dtype) {
  return tt_put(b, hlo_splat(b, dtype, 0, 1, &n), index, hlo_splat(b, dtype, 1, 1, index->dims), 0, HLO_R_ADD);
}

// |index| with |padding| moved out of range, where scatters drop it. A negative |padding| is none.
static hlo_t drop_padding(hlo_builder_t* b, hlo_t index, int64_t padding, int64_t size) {
  if (padding < 0) return index;
  hlo_t is_padding = hlo_compare(b, HLO_EQ, index, hlo_scalar_int(b, index->dtype, padding));
  return hlo_select(b, is_padding, hlo_scalar_int(b, index->dtype, size), index);
}

// Rows [n, width] added up into [n_weights, width].
static hlo_t add_rows(hlo_builder_t* b, hlo_t rows, hlo_t index, int64_t n_weights) {
  const int64_t dims[2] = {n_weights, rows->dims[1]};
  return tt_put(b, hlo_splat(b, rows->dtype, 0, 2, dims), index, rows, 0, HLO_R_ADD);
}

// Rows divided by how often their index occurs.
static hlo_t divide_by_frequency(hlo_builder_t* b, hlo_t rows, hlo_t index, int64_t n_weights) {
  hlo_t counts = occurrences(b, index, n_weights, rows->dtype);
  return hlo_divide(b, rows, per_row(b, tt_take(b, counts, index, 0), rows));
}

static void lower_embedding_dense_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t grad = tt_in_as(l, 0, tt_math_dtype(l, 0));
  const int64_t n_weights = tt_int(l, 2);
  hlo_t index = hlo_flatten(b, unchecked_index(l, tt_in(l, 1), n_weights));
  const int64_t dims[2] = {index->dims[0], grad->dims[grad->rank - 1]};
  hlo_t rows = hlo_reshape(b, grad, 2, dims);
  if (tt_bool(l, 4)) rows = divide_by_frequency(b, rows, index, n_weights);
  tt_ret(l, 0, add_rows(b, rows, drop_padding(b, index, tt_int(l, 3), n_weights), n_weights));
}

// Row norms [n] of |rows| [n, width]. |p| is part of the signature: it selects the formula.
static hlo_t row_norms(hlo_builder_t* b, hlo_t rows, double p) {
  const int64_t one = 1;
  hlo_t size = hlo_abs(b, rows);
  if (isinf(p)) return hlo_reduce(b, size, p > 0 ? HLO_R_MAX : HLO_R_MIN, 1, &one);
  if (p == 0.0) {
    hlo_t set = hlo_compare(b, HLO_NE, size, hlo_scalar(b, size->dtype, 0));
    return hlo_reduce(b, hlo_convert(b, set, size->dtype), HLO_R_ADD, 1, &one);
  }
  if (p == 1.0) return hlo_reduce(b, size, HLO_R_ADD, 1, &one);
  if (p == 2.0) return hlo_sqrt(b, hlo_reduce(b, hlo_multiply(b, size, size), HLO_R_ADD, 1, &one));
  hlo_t sum = hlo_reduce(b, hlo_power(b, size, hlo_scalar(b, size->dtype, p)), HLO_R_ADD, 1, &one);
  return hlo_power(b, sum, hlo_scalar(b, size->dtype, 1.0 / p));
}

static void lower_embedding_renorm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t weight = tt_in(l, 0);
  const tt_index_rule_t rule = {false, TT_OUT_OF_RANGE, "index out of range in self"};
  hlo_t index = hlo_flatten(b, tt_index_ready(l, tt_in(l, 1), weight->dims[0], &rule));
  if (hlo_numel(weight) == 0 || hlo_numel(index) == 0) {
    tt_ret(l, 0, weight);
    return;
  }
  const tt_dtype_t dtype = tt_opmath(weight->dtype);
  hlo_t rows = hlo_convert(b, tt_take(b, weight, index, 0), dtype), limit = tt_scalar(l, 2, dtype);
  hlo_t norm = row_norms(b, rows, tt_f64(l, 3));
  hlo_t scale = hlo_divide(b, limit, hlo_add(b, norm, hlo_scalar(b, dtype, 1e-7)));
  scale = hlo_select(b, hlo_compare(b, HLO_GT, norm, limit), scale, hlo_scalar(b, dtype, 1));
  hlo_t out = hlo_convert(b, hlo_multiply(b, rows, per_row(b, scale, rows)), weight->dtype);
  tt_ret(l, 0, tt_put(b, weight, index, out, 0, HLO_R_ASSIGN));  // repeated indices write the same row
}

// ---------------------------------------------------------------- embedding_bag
typedef enum bag_mode_t { BAG_SUM, BAG_MEAN, BAG_MAX } bag_mode_t;

// Bag of each index: the number of bags that begin at or before it, less one.
static hlo_t bag_of_index(tt_lower_t* l, hlo_t offsets, int64_t n_bags, int64_t n) {
  hlo_builder_t* b = tt_b(l);
  hlo_t marks = hlo_splat(b, TT_I32, 0, 1, &n);
  if (n_bags > 1) {
    hlo_t begins = unchecked_index(l, hlo_slice_dim(b, offsets, 0, 1, n_bags, 1), n);
    marks = tt_put(b, marks, begins, hlo_splat(b, TT_I32, 1, 1, begins->dims), 0, HLO_R_ADD);
  }
  return n > 0 ? hlo_scan(b, marks, HLO_R_ADD, 0, false) : marks;
}

static void check_offsets(tt_lower_t* l, hlo_t offsets, int64_t n) {
  hlo_builder_t* b = tt_b(l);
  const int64_t count = offsets->dims[0];
  if (count == 0) return;
  offsets = hlo_convert(b, offsets, TT_I64);
  hlo_t first = hlo_squeeze(b, hlo_slice_dim(b, offsets, 0, 0, 1, 1), 0);
  hlo_t last = hlo_squeeze(b, hlo_slice_dim(b, offsets, 0, count - 1, count, 1), 0);
  tt_check(l, hlo_compare(b, HLO_NE, first, hlo_scalar_int(b, TT_I64, 0)), first, TT_INVALID_ARGUMENT,
           "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
           "However, got %lld");
  const char* text = tt_arena_printf(hlo_builder_arena(b),
                                     "offsets[-1] can not be greater than input's length %lld but got offsets[-1] of "
                                     "%%lld",
                                     (long long)n);
  tt_check(l, hlo_compare(b, HLO_GT, last, hlo_scalar_int(b, TT_I64, n)), last, TT_INVALID_ARGUMENT,
           text ? text : "offsets[-1] can not be greater than input's length");
}

// Grown with zeros, or cut, to what the meta kernel gives result |i|, whose length varies with the mode.
static void ret_sized_1d(tt_lower_t* l, int i, hlo_t x) {
  hlo_builder_t* b = tt_b(l);
  const int64_t want = tt_out_count(l) > i && tt_out(l, i)->rank == 1 ? tt_out(l, i)->dims[0] : x->dims[0];
  const int64_t lo = 0, hi = want - x->dims[0];
  x = hlo_convert(b, x, tt_out_dtype(l, i));
  tt_ret(l, i, hi == 0 ? x : hlo_pad(b, x, hlo_scalar(b, x->dtype, 0), &lo, &hi, NULL));
}

typedef struct bag_t {
  hlo_t rows;      // [n, width], weighted
  hlo_t index;     // [n]
  hlo_t bag;       // [n]; out of range for padding
  hlo_t bag_size;  // [n_bags], padding not counted
  int64_t n_bags;
} bag_t;

// The largest row of each bag by column, and the index it came from; zeros for empty bags.
static hlo_t bag_max(hlo_builder_t* b, const bag_t* g, hlo_t* out_index) {
  const int64_t n = g->rows->dims[0], width = g->rows->dims[1], dims[2] = {g->n_bags, width};
  if (n == 0 || g->n_bags == 0 || width == 0) {
    *out_index = hlo_splat(b, g->index->dtype, 0, 2, dims);
    return hlo_splat(b, g->rows->dtype, 0, 2, dims);
  }
  hlo_t floor = hlo_broadcast_to(b, hlo_lowest(b, g->rows->dtype), 2, dims);
  hlo_t best = tt_put(b, floor, g->bag, g->rows, 0, HLO_R_MAX);
  // The first position that reaches the maximum.
  hlo_t reached = hlo_compare(b, HLO_EQ, g->rows, tt_take(b, best, g->bag, 0));
  hlo_t position = hlo_iota(b, TT_I32, 2, g->rows->dims, 0), none = hlo_scalar_int(b, TT_I32, n);
  hlo_t first = hlo_broadcast_to(b, none, 2, dims);
  first = tt_put(b, first, g->bag, hlo_select(b, reached, position, none), 0, HLO_R_MIN);
  hlo_t filled = hlo_compare(b, HLO_LT, first, none);
  hlo_t from = tt_take(b, g->index, hlo_minimum(b, first, hlo_scalar_int(b, TT_I32, n - 1)), 0);
  *out_index = hlo_select(b, filled, from, hlo_scalar_int(b, from->dtype, 0));
  hlo_t nonempty = hlo_compare(b, HLO_GT, g->bag_size, hlo_scalar(b, g->bag_size->dtype, 0));
  return hlo_select(b, per_row(b, nonempty, best), best, hlo_scalar(b, best->dtype, 0));
}

static void lower_embedding_bag(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t weight = tt_in(l, 0), offsets = tt_in(l, 2);
  const bag_mode_t mode = (bag_mode_t)tt_int(l, 4);
  const int64_t n_weights = weight->dims[0], padding = tt_int_or(l, 8, -1);
  const tt_dtype_t dtype = tt_opmath(weight->dtype);
  const char* text = tt_arena_printf(hlo_builder_arena(b),
                                     "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                                     "%%lld");
  const tt_index_rule_t rule = {false, TT_INVALID_ARGUMENT, text};
  bag_t g = {.n_bags = offsets->dims[0] - (tt_bool(l, 7) ? 1 : 0)};
  g.index = tt_index_ready(l, tt_in(l, 1), n_weights, &rule);
  const int64_t n = g.index->dims[0], width = weight->dims[1], dims[2] = {g.n_bags, width};
  check_offsets(l, offsets, n);
  g.rows = hlo_convert(b, tt_take(b, weight, g.index, 0), dtype);
  hlo_t scale = tt_in_or_null(l, 6);
  if (scale) g.rows = hlo_multiply(b, g.rows, per_row(b, hlo_convert(b, scale, dtype), g.rows));
  hlo_t bag = bag_of_index(l, offsets, g.n_bags, n);
  g.bag = bag;
  if (padding >= 0) {
    hlo_t is_padding = hlo_compare(b, HLO_EQ, g.index, hlo_scalar_int(b, g.index->dtype, padding));
    g.bag = hlo_select(b, is_padding, hlo_scalar_int(b, bag->dtype, g.n_bags), bag);
  }
  g.bag_size = occurrences(b, g.bag, g.n_bags, TT_I64);
  hlo_t out, max_index = NULL;
  if (mode == BAG_MAX) {
    out = bag_max(b, &g, &max_index);
  } else {
    out = tt_put(b, hlo_splat(b, dtype, 0, 2, dims), g.bag, g.rows, 0, HLO_R_ADD);
  }
  if (mode == BAG_MEAN) {
    hlo_t size = hlo_maximum(b, g.bag_size, hlo_scalar_int(b, TT_I64, 1));
    out = hlo_divide(b, out, per_row(b, hlo_convert(b, size, dtype), out));
  }
  tt_ret(l, 0, out);
  ret_sized_1d(l, 1, bag);
  ret_sized_1d(l, 2, mode == BAG_SUM ? hlo_zeros_like(b, g.bag_size) : g.bag_size);
  if (mode == BAG_MAX) {
    tt_ret(l, 3, max_index);
  } else {
    ret_sized_1d(l, 3, mode == BAG_SUM ? hlo_zeros_like(b, g.bag_size) : g.bag_size);
  }
}

// Where the arguments of the two backward overloads differ.
typedef struct bag_backward_t {
  int offsets, bag, bag_size, max_index, n_weights, by_frequency, mode, sparse, scale, padding;  // -1: has none
} bag_backward_t;
static const bag_backward_t k_backward = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const bag_backward_t k_dense_backward = {-1, 2, 3, 4, 5, 6, 7, -1, 8, 9};

// Bag of each of |n| indices: as the forward pass gave it (which may be longer), or from the offsets if it gave none.
static hlo_t given_bag(tt_lower_t* l, int bag_arg, int offsets_arg, int64_t n_bags, int64_t n) {
  hlo_t bag = tt_in(l, bag_arg);
  if (bag->dims[0] < n && offsets_arg >= 0) return bag_of_index(l, tt_in(l, offsets_arg), n_bags, n);
  return hlo_slice_dim(tt_b(l), unchecked_index(l, bag, n_bags), 0, 0, n, 1);
}

static hlo_t bag_max_backward(tt_lower_t* l, hlo_t grad, const bag_backward_t* arg, int64_t n_weights) {
  hlo_builder_t* b = tt_b(l);
  const int64_t bags = grad->dims[0], dims[2] = {n_weights, grad->dims[1]};
  hlo_t size = hlo_slice_dim(b, tt_in(l, arg->bag_size), 0, 0, bags, 1);
  hlo_t row = unchecked_index(l, tt_in(l, arg->max_index), n_weights);
  hlo_t empty = hlo_compare(b, HLO_EQ, size, hlo_scalar_int(b, size->dtype, 0));
  row = hlo_select(b, per_row(b, empty, row), hlo_scalar_int(b, row->dtype, n_weights), row);  // dropped
  if (hlo_numel(grad) == 0) return hlo_splat(b, grad->dtype, 0, 2, dims);
  return hlo_put_along(b, hlo_splat(b, grad->dtype, 0, 2, dims), row, grad, 0, HLO_R_ADD);
}

static void lower_embedding_bag_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const bag_backward_t* arg = tt_row(l)->data;
  hlo_t grad = tt_in_as(l, 0, tt_math_dtype(l, 0));
  const int64_t n_weights = tt_int(l, arg->n_weights);
  const bag_mode_t mode = (bag_mode_t)tt_int(l, arg->mode);
  if (arg->sparse >= 0 && tt_bool(l, arg->sparse)) {
    hlo_fail(b, TT_UNIMPLEMENTED, "embedding_bag: sparse gradients are not supported on this device");
    return;
  }
  if (mode == BAG_MAX) {
    tt_ret(l, 0, bag_max_backward(l, grad, arg, n_weights));
    return;
  }
  hlo_t index = unchecked_index(l, tt_in(l, 1), n_weights);
  hlo_t bag = given_bag(l, arg->bag, arg->offsets, grad->dims[0], index->dims[0]);
  hlo_t rows = tt_take(b, grad, bag, 0);
  if (mode == BAG_MEAN) {
    hlo_t size = hlo_maximum(b, tt_in(l, arg->bag_size), hlo_scalar_int(b, tt_in(l, arg->bag_size)->dtype, 1));
    rows = hlo_divide(b, rows, per_row(b, hlo_convert(b, tt_take(b, size, bag, 0), rows->dtype), rows));
  }
  hlo_t scale = tt_in_or_null(l, arg->scale);
  if (scale) rows = hlo_multiply(b, rows, per_row(b, hlo_convert(b, scale, rows->dtype), rows));
  if (tt_bool(l, arg->by_frequency)) rows = divide_by_frequency(b, rows, index, n_weights);
  tt_ret(l, 0, add_rows(b, rows, drop_padding(b, index, tt_int_or(l, arg->padding, -1), n_weights), n_weights));
}

static void lower_bag_scale_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  const tt_dtype_t dtype = tt_math_dtype(l, 0);
  hlo_t grad = tt_in_as(l, 0, dtype), weight = tt_in_as(l, 1, dtype);
  hlo_t index = unchecked_index(l, tt_in(l, 2), weight->dims[0]);
  const int64_t padding = tt_int_or(l, 6, -1), one = 1;
  hlo_t bags = tt_take(b, grad, given_bag(l, 4, 3, grad->dims[0], index->dims[0]), 0);
  hlo_t out = hlo_reduce(b, hlo_multiply(b, bags, tt_take(b, weight, index, 0)), HLO_R_ADD, 1, &one);
  if (padding >= 0) {
    hlo_t is_padding = hlo_compare(b, HLO_EQ, index, hlo_scalar_int(b, index->dtype, padding));
    out = hlo_select(b, is_padding, hlo_scalar(b, dtype, 0), out);
  }
  tt_ret(l, 0, out);
}

static const tt_op_row_t k_rows[] = {
    {"embedding", .lower = lower_embedding, .flags = TT_OP_CHECKS},
    {"embedding_dense_backward", .lower = lower_embedding_dense_backward},
    {"embedding_renorm", .lower = lower_embedding_renorm, .flags = TT_OP_CHECKS, .fixed = TT_ARG(3)},
    {"_embedding_bag", .lower = lower_embedding_bag, .flags = TT_OP_CHECKS},
    {"_embedding_bag_forward_only", .lower = lower_embedding_bag, .flags = TT_OP_CHECKS},
    {"_embedding_bag_backward", .lower = lower_embedding_bag_backward, .data = &k_backward},
    {"_embedding_bag_dense_backward", .lower = lower_embedding_bag_backward, .data = &k_dense_backward},
    {"_embedding_bag_per_sample_weights_backward", .lower = lower_bag_scale_backward},
};
TT_OP_FAMILY(embedding, k_rows)
