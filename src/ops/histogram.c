// Histograms: histc, histogram and the pieces of histogramdd.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// Every form finds a bin for each value and adds weights into bins; the forms differ in how the bin is found, and they
// follow PyTorch's CPU arithmetic, because a value on an edge falls to the side that rounding puts it.
#include <math.h>

#include "ops/common.h"

// Edges of |bins| equal bins between lo and hi (0-d): linspace, computed from both ends.
static hlo_t bin_edges(hlo_builder_t* b, hlo_t lo, hlo_t hi, int64_t bins) {
  const int64_t n = bins + 1;
  tt_dtype_t dtype = lo->dtype;
  hlo_t i = hlo_iota(b, dtype, 1, &n, 0), steps = hlo_scalar(b, dtype, (double)bins);
  hlo_t step = hlo_divide(b, hlo_subtract(b, hi, lo), steps);
  hlo_t up = hlo_add(b, lo, hlo_multiply(b, step, i));
  hlo_t down = hlo_subtract(b, hi, hlo_multiply(b, step, hlo_subtract(b, steps, i)));
  return hlo_select(b, hlo_compare(b, HLO_LT, i, hlo_scalar(b, dtype, (double)(n / 2))), up, down);
}

// How many of |edges| [n] are <= each of |x| [m]: the upper bound, as i64.
static hlo_t edges_passed(hlo_builder_t* b, hlo_t edges, hlo_t x) {
  hlo_t one = hlo_scalar_int(b, TT_I64, 1), end = hlo_scalar_int(b, TT_I64, edges->dims[0] - 1);
  hlo_t lo = hlo_splat(b, TT_I64, 0, 1, x->dims);
  hlo_t hi = hlo_splat(b, TT_I64, (double)edges->dims[0], 1, x->dims);
  for (int64_t left = edges->dims[0]; left > 0; left /= 2) {
    hlo_t middle = hlo_shift_right_logical(b, hlo_add(b, lo, hi), one);
    hlo_t edge = hlo_take(b, edges, hlo_minimum(b, middle, end), 0);
    hlo_t right = hlo_and_(b, hlo_compare(b, HLO_LE, edge, x), hlo_compare(b, HLO_LT, lo, hi));
    lo = hlo_select(b, right, hlo_add(b, middle, one), lo);
    hi = hlo_select(b, right, hi, middle);
  }
  return lo;
}

// Bin of each of |x| [m] by proportion between lo and hi; garbage where x is outside.
static hlo_t bin_by_proportion(hlo_builder_t* b, hlo_t x, hlo_t lo, hlo_t hi, int64_t bins) {
  hlo_t scaled = hlo_multiply(b, hlo_subtract(b, x, lo), hlo_scalar(b, x->dtype, (double)bins));
  hlo_t bin = hlo_divide(b, scaled, hlo_subtract(b, hi, lo));
  hlo_t zero = hlo_scalar(b, x->dtype, 0), top = hlo_scalar(b, x->dtype, (double)bins);
  bin = hlo_select(b, hlo_compare(b, HLO_GE, bin, zero), hlo_minimum(b, bin, top), zero);
  return hlo_convert(b, bin, TT_I64);
}

// The proportional bin corrected by a look at the edges around it.
static hlo_t bin_by_edges(hlo_builder_t* b, hlo_t x, hlo_t edges, hlo_t guess, int64_t bins) {
  hlo_t bin = hlo_subtract(b, guess, hlo_scalar_int(b, TT_I64, 1)), start = hlo_scalar_int(b, TT_I64, 0);
  hlo_t first = hlo_maximum(b, bin, start), last = hlo_scalar_int(b, TT_I64, bins);
  bin = hlo_subtract(b, first, hlo_scalar_int(b, TT_I64, 1));
  for (int64_t k = 0; k < 3; k++) {  // edges guess - 1, guess and guess + 1, as far as they exist
    hlo_t place = hlo_add(b, first, hlo_scalar_int(b, TT_I64, k));
    hlo_t limit = hlo_minimum(b, hlo_add(b, guess, hlo_scalar_int(b, TT_I64, 1)), last);
    hlo_t edge = hlo_take(b, edges, hlo_minimum(b, place, last), 0);
    hlo_t passed = hlo_and_(b, hlo_compare(b, HLO_LE, place, limit), hlo_compare(b, HLO_LE, edge, x));
    bin = hlo_add(b, bin, hlo_convert(b, passed, TT_I64));
  }
  return bin;
}

// Range of the values, as 0-d, widened by |margin| on both sides when it is empty. No values at all: 0 and 1.
static void data_range(hlo_builder_t* b, hlo_t x, double margin, hlo_t* lo, hlo_t* hi) {
  if (hlo_numel(x) == 0) {
    *lo = hlo_scalar(b, x->dtype, 0);
    *hi = hlo_scalar(b, x->dtype, 1);
  } else {
    *lo = hlo_reduce_all(b, x, HLO_R_MIN);
    *hi = hlo_reduce_all(b, x, HLO_R_MAX);
  }
  hlo_t flat = hlo_compare(b, HLO_EQ, *lo, *hi), by = hlo_scalar(b, x->dtype, margin);
  *lo = hlo_select(b, flat, hlo_subtract(b, *lo, by), *lo);
  *hi = hlo_select(b, flat, hlo_add(b, *hi, by), *hi);
}

// Where values lie inside [lo, hi]; NaN does not.
static hlo_t inside(hlo_builder_t* b, hlo_t x, hlo_t lo, hlo_t hi) {
  return hlo_and_(b, hlo_compare(b, HLO_GE, x, lo), hlo_compare(b, HLO_LE, x, hi));
}

// Weights [m] added into |size| bins [size] at |bin| [m]; nothing is added where |valid| is false.
static hlo_t fill_bins(hlo_builder_t* b, hlo_t bin, hlo_t valid, hlo_t weight, int64_t size) {
  hlo_t bins = hlo_splat(b, weight->dtype, 0, 1, &size);
  if (bin->dims[0] == 0 || size == 0) return bins;
  bin = hlo_select(b, valid, bin, hlo_scalar_int(b, TT_I64, 0));
  weight = hlo_select(b, valid, weight, hlo_scalar(b, weight->dtype, 0));
  weight = hlo_broadcast_to(b, weight, 1, bin->dims);
  return hlo_put_along(b, bins, bin, weight, 0, HLO_R_ADD);
}

// The right edge belongs to the last bin.
static hlo_t clip_bin(hlo_builder_t* b, hlo_t bin, int64_t bins) {
  return hlo_minimum(b, hlo_maximum(b, bin, hlo_scalar_int(b, TT_I64, 0)), hlo_scalar_int(b, TT_I64, bins - 1));
}

static void check_range(tt_lower_t* l, hlo_t lo, hlo_t hi, const char* message) {
  hlo_builder_t* b = tt_b(l);
  hlo_t finite = hlo_and_(b, hlo_is_finite(b, lo), hlo_is_finite(b, hi));
  tt_check(l, hlo_not_(b, finite), NULL, TT_INVALID_ARGUMENT, message);
}

// (self, bins, min, max): equal limits ask for the data's own.
static void lower_histc(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = tt_out_count(l) > 0 ? tt_out_dtype(l, 0) : tt_in(l, 0)->dtype, math = tt_opmath(out);
  hlo_t x = hlo_flatten(b, tt_in_as(l, 0, math)), lo = tt_scalar(l, 2, math), hi = tt_scalar(l, 3, math);
  int64_t bins = tt_int(l, 1);
  if (bins <= 0) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "bins must be > 0, but got %lld for dimension 0", (long long)bins));
    return;
  }
  tt_check(l, hlo_compare(b, HLO_GT, lo, hi), NULL, TT_INVALID_ARGUMENT, "torch.histc(): max must be larger than min");
  hlo_t from_data = hlo_compare(b, HLO_EQ, lo, hi);
  if (x->dims[0] > 0) {
    lo = hlo_select(b, from_data, hlo_reduce_all(b, x, HLO_R_MIN), lo);
    hi = hlo_select(b, from_data, hlo_reduce_all(b, x, HLO_R_MAX), hi);
  }
  hlo_t flat = hlo_compare(b, HLO_EQ, lo, hi), one = hlo_scalar(b, math, 1);
  lo = hlo_select(b, flat, hlo_subtract(b, lo, one), lo);
  hi = hlo_select(b, flat, hlo_add(b, hi, one), hi);
  check_range(l, lo, hi, "torch.histc: range of [min, max] is not finite");
  hlo_t bin = clip_bin(b, bin_by_proportion(b, x, lo, hi, bins), bins);
  tt_ret(l, 0, hlo_convert(b, fill_bins(b, bin, inside(b, x, lo, hi), one, bins), out));
}

// ---------------------------------------------------------------- several dims
typedef struct bins_t {
  int n;                          // dims
  int64_t bins[TT_MAX_RANK];
  hlo_t edges[TT_MAX_RANK];       // [bins + 1]
  bool even;                      // edges are equidistant: the bin is found by proportion
} bins_t;

// Counts of the rows of |x| [m, dims] in the product of the bins.
static hlo_t count_rows(hlo_builder_t* b, hlo_t x, const bins_t* s, hlo_t weight) {
  int64_t m = x->dims[0];
  hlo_t place = hlo_splat(b, TT_I64, 0, 1, &m), valid = hlo_splat(b, TT_BOOL, 1, 1, &m);
  int64_t size = 1;
  for (int d = 0; d < s->n; d++) {
    hlo_t column = hlo_squeeze(b, hlo_slice_dim(b, x, 1, d, d + 1, 1), 1);
    int64_t bins = s->bins[d];
    hlo_t lo = hlo_squeeze(b, hlo_slice_dim(b, s->edges[d], 0, 0, 1, 1), 0);
    hlo_t hi = hlo_squeeze(b, hlo_slice_dim(b, s->edges[d], 0, bins, bins + 1, 1), 0), bin;
    if (s->even) {
      bin = bin_by_edges(b, column, s->edges[d], bin_by_proportion(b, column, lo, hi, bins), bins);
    } else {
      bin = hlo_subtract(b, edges_passed(b, s->edges[d], column), hlo_scalar_int(b, TT_I64, 1));
    }
    valid = hlo_and_(b, valid, inside(b, column, lo, hi));
    place = hlo_add(b, hlo_multiply(b, place, hlo_scalar_int(b, TT_I64, bins)), clip_bin(b, bin, bins));
    size *= bins;
  }
  return hlo_reshape(b, fill_bins(b, place, valid, weight, size), s->n, s->bins);
}

// Counts divided by their sum and by the volume of their bins.
static hlo_t as_density(hlo_builder_t* b, hlo_t counts, const bins_t* s) {
  counts = hlo_divide(b, counts, hlo_reduce_all(b, counts, HLO_R_ADD));
  for (int d = 0; d < s->n; d++) {
    int64_t n = s->bins[d];
    const int64_t map[] = {d};
    hlo_t width = hlo_subtract(b, hlo_slice_dim(b, s->edges[d], 0, 1, n + 1, 1),
                               hlo_slice_dim(b, s->edges[d], 0, 0, n, 1));
    counts = hlo_divide(b, counts, hlo_broadcast_in_dim(b, width, counts->rank, counts->dims, map));
  }
  return counts;
}

// Input [..., dims] as rows; histogram's input has one column, whatever its dims.
static hlo_t as_rows(hlo_builder_t* b, hlo_t x, int n) {
  const int64_t dims[] = {n ? hlo_numel(x) / n : 0, n};
  return hlo_reshape(b, x, 2, dims);
}

// Limits of dim |d|: from the range argument (lo0, hi0, lo1, …) or from the data.
static void limits_of(tt_lower_t* l, hlo_t rows, int d, int range_arg, hlo_t* lo, hlo_t* hi) {
  hlo_builder_t* b = tt_b(l);
  if (!tt_has(l, range_arg)) {
    data_range(b, hlo_slice_dim(b, rows, 1, d, d + 1, 1), 0.5, lo, hi);
    check_range(l, *lo, *hi, "torch.histogramdd: dimension 0's range is not finite");
    return;
  }
  *lo = tt_scalar_at(l, range_arg, 2 * d, rows->dtype);
  *hi = tt_scalar_at(l, range_arg, 2 * d + 1, rows->dtype);
  hlo_t flat = hlo_compare(b, HLO_EQ, *lo, *hi), half = hlo_scalar(b, rows->dtype, 0.5);
  *lo = hlo_select(b, flat, hlo_subtract(b, *lo, half), *lo);
  *hi = hlo_select(b, flat, hlo_add(b, *hi, half), *hi);
}

static hlo_t histogram(tt_lower_t* l, hlo_t rows, const bins_t* s, int weight_arg, bool density) {
  hlo_builder_t* b = tt_b(l);
  hlo_t weight = tt_has(l, weight_arg) ? hlo_flatten(b, tt_in_as(l, weight_arg, rows->dtype))
                                       : hlo_scalar(b, rows->dtype, 1);
  hlo_t counts = count_rows(b, rows, s, weight);
  return density ? as_density(b, counts, s) : counts;
}

// (self, bins, range, weight, density)
static void lower_histogram_count(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t rows = as_rows(b, tt_in(l, 0), 1), lo, hi;
  bins_t s = {.n = 1, .bins = {tt_int(l, 1)}, .even = true};
  limits_of(l, rows, 0, 2, &lo, &hi);
  s.edges[0] = bin_edges(b, lo, hi, s.bins[0]);
  tt_ret(l, 0, histogram(l, rows, &s, 3, tt_bool(l, 4)));
  tt_ret(l, 1, s.edges[0]);
}

// (self, bins, weight, density)
static void lower_histogram_bins(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t rows = as_rows(b, tt_in(l, 0), 1), edges = tt_in_as(l, 1, rows->dtype);
  bins_t s = {.n = 1, .bins = {edges->dims[0] - 1}, .edges = {edges}};
  tt_ret(l, 0, histogram(l, rows, &s, 2, tt_bool(l, 3)));
  tt_ret(l, 1, edges);
}

// (self, bins[], range, weight, density), for the edges alone and for the counts.
static void lower_histogramdd_edges(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n;
  const int64_t* bins = tt_ints(l, 1, &n);
  hlo_t rows = as_rows(b, tt_in(l, 0), n), lo, hi;
  for (int d = 0; d < n; d++) {
    limits_of(l, rows, d, 2, &lo, &hi);
    tt_ret(l, d, bin_edges(b, lo, hi, bins[d]));
  }
}

static void lower_histogramdd_counts(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bins_t s = {.even = true};
  const int64_t* bins = tt_ints(l, 1, &s.n);
  hlo_t rows = as_rows(b, tt_in(l, 0), s.n), lo, hi;
  for (int d = 0; d < s.n; d++) {
    s.bins[d] = bins[d];
    limits_of(l, rows, d, 2, &lo, &hi);
    s.edges[d] = bin_edges(b, lo, hi, bins[d]);
  }
  tt_ret(l, 0, histogram(l, rows, &s, 3, tt_bool(l, 4)));
}

// (self, bins: tensors, weight, density)
static void lower_histogramdd_bins(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bins_t s = {.n = tt_list_len(l, 1)};
  hlo_t rows = as_rows(b, tt_in(l, 0), s.n);
  for (int d = 0; d < s.n; d++) {
    s.edges[d] = hlo_convert(b, tt_in_list(l, 1, d), rows->dtype);
    s.bins[d] = s.edges[d]->dims[0] - 1;
  }
  tt_ret(l, 0, histogram(l, rows, &s, 2, tt_bool(l, 3)));
}

static const tt_op_row_t k_rows[] = {
    {.name = "histc", .lower = lower_histc, .flags = TT_OP_CHECKS | TT_OP_MORE_DTYPES},
    {.name = "histogram.bin_ct", .lower = lower_histogram_count, .flags = TT_OP_CHECKS | TT_OP_NO_META},
    {.name = "histogram.bins_tensor", .lower = lower_histogram_bins, .flags = TT_OP_NO_META},
    {.name = "_histogramdd_bin_edges", .lower = lower_histogramdd_edges,
     .flags = TT_OP_CHECKS | TT_OP_NO_META},
    {.name = "_histogramdd_from_bin_cts", .lower = lower_histogramdd_counts,
     .flags = TT_OP_CHECKS | TT_OP_NO_META},
    {.name = "_histogramdd_from_bin_tensors", .lower = lower_histogramdd_bins, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(histogram, k_rows)
