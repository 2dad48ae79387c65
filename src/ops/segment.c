// segment_reduce and its gradient: reductions over consecutive runs of one dim.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// Data is seen as [batch, n, inner], segments as [batch, segments, inner]. Each entry's segment number is a running
// count of the segments that have ended before it; an entry outside all of them gets a number that scatters drop.
#include <math.h>
#include <string.h>

#include "ops/common.h"

typedef enum segment_op_t { SEG_SUM, SEG_MEAN, SEG_MAX, SEG_MIN, SEG_PROD, SEG_UNKNOWN } segment_op_t;

typedef struct segments_t {
  int64_t batch, n, inner, count;
  hlo_t lengths;  // [batch, count] i64
  hlo_t ids;      // [batch, n, inner] i64; |count| for entries in no segment
  hlo_t member;   // [batch, n, inner] i1: the entry is in a segment
} segments_t;

static segment_op_t segment_op(tt_lower_t* l, int arg) {
  static const char* const names[] = {"sum", "mean", "max", "min", "prod"};
  const char* name = tt_str(l, arg);
  for (int i = 0; name && i < SEG_UNKNOWN; i++) {
    if (strcmp(name, names[i]) == 0) return (segment_op_t)i;
  }
  hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "Unsupported reduction given! %s", name ? name : "None");
  return SEG_UNKNOWN;
}

static hlo_t reshape3(hlo_builder_t* b, hlo_t x, int64_t d0, int64_t d1, int64_t d2) {
  const int64_t dims[] = {d0, d1, d2};
  return hlo_reshape(b, x, 3, dims);
}

static hlo_t reshape2(hlo_builder_t* b, hlo_t x, int64_t d0, int64_t d1) {
  const int64_t dims[] = {d0, d1};
  return hlo_reshape(b, x, 2, dims);
}

// [batch, k] repeated over the inner entries.
static hlo_t over_inner(hlo_builder_t* b, hlo_t x, int64_t inner) {
  const int64_t dims[] = {x->dims[0], x->dims[1], inner}, map[] = {0, 1};
  return hlo_broadcast_in_dim(b, x, 3, dims, map);
}

// Reads lengths or offsets (one of them is given) for data of |data|'s dims along |axis|.
static segments_t read_segments(tt_lower_t* l, hlo_t data, int lengths_arg, int offsets_arg, int64_t axis) {
  hlo_builder_t* b = tt_b(l);
  segments_t s = {.batch = 1, .inner = 1};
  int at = hlo_dim(b, axis, data->rank);
  for (int i = 0; i < data->rank; i++) {
    if (i < at) s.batch *= data->dims[i];
    if (i > at) s.inner *= data->dims[i];
  }
  s.n = data->rank ? data->dims[at] : 1;
  hlo_t first = NULL, ends;
  if (tt_has(l, lengths_arg)) {
    hlo_t lengths = tt_in_as(l, lengths_arg, TT_I64);
    s.count = lengths->dims[lengths->rank - 1];
    s.lengths = reshape2(b, lengths, s.batch, s.count);
    ends = hlo_numel(s.lengths) ? hlo_scan(b, s.lengths, HLO_R_ADD, 1, false) : s.lengths;
  } else {
    hlo_t offsets = tt_in_as(l, offsets_arg, TT_I64);
    s.count = offsets->dims[offsets->rank - 1] - 1;
    offsets = reshape2(b, offsets, s.batch, s.count + 1);
    ends = hlo_slice_dim(b, offsets, 1, 1, s.count + 1, 1);
    s.lengths = hlo_subtract(b, ends, hlo_slice_dim(b, offsets, 1, 0, s.count, 1));
    first = hlo_slice_dim(b, offsets, 1, 0, 1, 1);
  }
  const int64_t grid[] = {s.batch, s.n};
  hlo_t ids = hlo_splat(b, TT_I64, 0, 2, grid), none = hlo_scalar_int(b, TT_I64, s.count);
  if (hlo_numel(ids) > 0 && s.count > 0) {
    ids = hlo_put_along(b, ids, ends, hlo_splat(b, TT_I64, 1, 2, ends->dims), 1, HLO_R_ADD);
    ids = hlo_scan(b, ids, HLO_R_ADD, 1, false);
    if (first) {
      hlo_t before = hlo_compare(b, HLO_LT, hlo_iota(b, TT_I64, 2, grid, 1), first);
      ids = hlo_select(b, before, none, ids);
    }
  }
  s.ids = over_inner(b, ids, s.inner);
  s.member = hlo_compare(b, HLO_LT, s.ids, none);
  return s;
}

// |data| [batch, n, inner] reduced into |start| [batch, count, inner].
static hlo_t gather_up(hlo_builder_t* b, const segments_t* s, hlo_t start, hlo_t data, hlo_reducer_t reducer) {
  if (hlo_numel(start) == 0 || hlo_numel(data) == 0) return start;
  return hlo_put_along(b, start, s->ids, data, 1, reducer);
}

static hlo_t segment_splat(hlo_builder_t* b, const segments_t* s, hlo_t value) {
  const int64_t dims[] = {s->batch, s->count, s->inner};
  return hlo_broadcast_to(b, value, 3, dims);
}

// |x| [batch, count, inner] at each entry's segment.
static hlo_t hand_down(hlo_builder_t* b, const segments_t* s, hlo_t x) {
  hlo_t last = hlo_scalar_int(b, TT_I64, s->count - 1);
  return hlo_take_along(b, x, hlo_minimum(b, s->ids, last), 1);
}

// Sum over each entry's segment of |x| (a count, an indicator), handed back to the entry.
static hlo_t segment_total(hlo_builder_t* b, const segments_t* s, hlo_t x) {
  hlo_t start = segment_splat(b, s, hlo_scalar(b, x->dtype, 0));
  return hand_down(b, s, gather_up(b, s, start, x, HLO_R_ADD));
}

static hlo_t start_value(tt_lower_t* l, segment_op_t op, int initial_arg, tt_dtype_t dtype) {
  hlo_builder_t* b = tt_b(l);
  if (tt_has(l, initial_arg)) return tt_scalar(l, initial_arg, dtype);
  double value = op == SEG_MAX ? -INFINITY : op == SEG_MIN ? INFINITY : op == SEG_PROD ? 1 : 0;
  return hlo_scalar(b, dtype, value);
}

// The lengths must be sane unless the caller vouches for them: the program would read the wrong segments silently.
static void check_lengths(tt_lower_t* l, const segments_t* s) {
  hlo_builder_t* b = tt_b(l);
  const int64_t along[] = {1};
  if (hlo_numel(s->lengths) == 0) return;
  hlo_t negative = hlo_compare(b, HLO_LT, s->lengths, hlo_scalar_int(b, TT_I64, 0));
  tt_check(l, hlo_reduce_all(b, negative, HLO_R_OR), NULL, TT_INVALID_ARGUMENT, "lengths contains negative value!");
  hlo_t sums = hlo_reduce(b, s->lengths, HLO_R_ADD, 1, along);
  hlo_t wrong = hlo_compare(b, HLO_NE, sums, hlo_scalar_int(b, TT_I64, s->n));
  tt_check(l, hlo_reduce_all(b, wrong, HLO_R_OR), NULL, TT_INVALID_ARGUMENT,
           "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
           "!unsafe.");
}

// (data, reduce, lengths, indices, offsets, axis, unsafe, initial)
static void lower_segment_reduce(tt_lower_t* l) {
  static const hlo_reducer_t reducers[] = {HLO_R_ADD, HLO_R_ADD, HLO_R_MAX, HLO_R_MIN, HLO_R_MUL};
  hlo_builder_t* b = tt_b(l);
  hlo_t data = tt_in(l, 0);
  segment_op_t op = segment_op(l, 1);
  if (op == SEG_UNKNOWN || (!tt_has(l, 2) && !tt_has(l, 4))) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "segment_reduce(): Either lengths or offsets must be defined."));
    return;
  }
  tt_dtype_t out = data->dtype, math = tt_opmath(out);
  int64_t axis = tt_int(l, 5);
  segments_t s = read_segments(l, data, 2, 4, axis);
  if (tt_has(l, 2) && !tt_bool(l, 6)) check_lengths(l, &s);
  hlo_t x = reshape3(b, hlo_convert(b, data, math), s.batch, s.n, s.inner);
  hlo_t initial = start_value(l, op, 7, math);
  hlo_t y = gather_up(b, &s, segment_splat(b, &s, initial), x, reducers[op]);
  if (op == SEG_MEAN) {
    hlo_t lengths = over_inner(b, hlo_convert(b, s.lengths, math), s.inner);
    hlo_t empty = hlo_compare(b, HLO_EQ, lengths, hlo_scalar(b, math, 0));
    hlo_t fallback = tt_has(l, 7) ? initial : hlo_scalar(b, math, NAN);
    y = hlo_select(b, empty, fallback, hlo_divide(b, y, lengths));
  }
  int64_t dims[TT_MAX_RANK];
  for (int i = 0; i < data->rank; i++) dims[i] = data->dims[i];
  if (data->rank) dims[hlo_dim(b, axis, data->rank)] = s.count;
  tt_ret(l, 0, hlo_convert(b, hlo_reshape(b, y, data->rank, dims), out));
}

// Gradient of a product: the output over the entry, except for entries that are 0 or NaN, which get the product of the
// others, found without dividing.
static hlo_t product_grad(hlo_builder_t* b, const segments_t* s, hlo_t x, hlo_t y, hlo_t g, hlo_t initial) {
  tt_dtype_t dtype = x->dtype;
  hlo_t one = hlo_scalar(b, dtype, 1), zero = hlo_scalar(b, dtype, 0);
  hlo_t nan = hlo_is_nan(b, x), bad = hlo_or_(b, nan, hlo_compare(b, HLO_EQ, x, zero));
  hlo_t good = gather_up(b, s, segment_splat(b, s, initial), hlo_select(b, bad, one, x), HLO_R_MUL);
  hlo_t nan_count = hlo_convert(b, nan, dtype);
  hlo_t other_bad = hlo_subtract(b, segment_total(b, s, hlo_convert(b, bad, dtype)), hlo_convert(b, bad, dtype));
  hlo_t other_nan = hlo_subtract(b, segment_total(b, s, nan_count), nan_count);
  hlo_t mixed = hlo_select(b, hlo_compare(b, HLO_GT, other_nan, zero), hlo_scalar(b, dtype, NAN), zero);
  hlo_t rest = hlo_select(b, hlo_compare(b, HLO_GT, other_bad, zero), mixed, hand_down(b, s, good));
  return hlo_select(b, bad, hlo_multiply(b, g, rest), hlo_divide(b, hlo_multiply(b, g, y), x));
}

// (grad, output, data, reduce, lengths, offsets, axis, initial)
static void lower_segment_reduce_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t data = tt_in(l, 2);
  segment_op_t op = segment_op(l, 3);
  tt_dtype_t math = tt_opmath(data->dtype);
  segments_t s = read_segments(l, data, 4, 5, tt_int(l, 6));
  if (op == SEG_UNKNOWN || hlo_numel(data) == 0 || s.count == 0) {
    tt_ret(l, 0, hlo_zeros_like(b, data));
    return;
  }
  hlo_t x = reshape3(b, hlo_convert(b, data, math), s.batch, s.n, s.inner);
  hlo_t y = hand_down(b, &s, reshape3(b, tt_in_as(l, 1, math), s.batch, s.count, s.inner));
  hlo_t g = hand_down(b, &s, reshape3(b, tt_in_as(l, 0, math), s.batch, s.count, s.inner)), dx = g;
  if (op == SEG_MEAN) {
    dx = hlo_divide(b, g, hand_down(b, &s, over_inner(b, hlo_convert(b, s.lengths, math), s.inner)));
  } else if (op == SEG_PROD) {
    dx = product_grad(b, &s, x, y, g, start_value(l, op, 7, math));
  } else if (op != SEG_SUM) {
    // Entries that reach the extreme share its gradient.
    hlo_t reached = hlo_or_(b, hlo_compare(b, HLO_EQ, x, y), hlo_is_nan(b, x));
    hlo_t share = hlo_divide(b, g, segment_total(b, &s, hlo_convert(b, reached, math)));
    dx = hlo_select(b, reached, share, hlo_scalar(b, math, 0));
  }
  dx = hlo_select(b, s.member, dx, hlo_scalar(b, math, 0));
  tt_ret(l, 0, hlo_convert(b, hlo_reshape(b, dx, data->rank, data->dims), data->dtype));
}

static const tt_op_row_t k_rows[] = {
    {.name = "segment_reduce", .lower = lower_segment_reduce, .flags = TT_OP_CHECKS},
    {.name = "_segment_reduce_backward", .lower = lower_segment_reduce_backward},
};
TT_OP_FAMILY(segment, k_rows)
