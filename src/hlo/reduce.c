// Reductions, windows, scans.
#include "hlo/ir.h"

// ---------------------------------------------------------------- reduce
// The dims of |x| that are not in |set|.
static int kept_dims(hlo_t x, const bool* set, int64_t* out) {
  int rank = 0;
  for (int i = 0; i < x->rank; i++) {
    if (!set[i]) out[rank++] = x->dims[i];
  }
  return rank;
}

// Operands of a variadic op: xs then inits, checked; NULL (and failed) when they do not suit.
static hlo_t* join_inits(hlo_builder_t* b, const char* who, int n, const hlo_t* xs, const hlo_t* inits) {
  if (!hlo_usable(b, who, n, xs) || !hlo_usable(b, who, n, inits)) return NULL;
  hlo_t* in = hlo_alloc(b, (size_t)(2 * n) * sizeof *in);
  for (int i = 0; in && i < n; i++) {
    in[i] = xs[i];
    in[n + i] = inits[i];
    if (hlo_same_dims(xs[i], xs[0]) && inits[i]->rank == 0 && inits[i]->dtype == xs[i]->dtype) continue;
    hlo_fail(b, TT_INTERNAL, "%s: operand %d, %s with initial value %s, does not suit operand 0, %s", who, i,
             hlo_text_shape(b, xs[i]), hlo_text_shape(b, inits[i]), hlo_text_shape(b, xs[0]));
    return NULL;
  }
  return in;
}

void hlo_reduce_region(hlo_builder_t* b, int n, const hlo_t* xs, const hlo_t* inits, int n_dims, const int64_t* dims,
                       hlo_region_t* region, hlo_t* out) {
  hlo_poison_all(b, n, out);
  hlo_t* in = join_inits(b, "reduce", n, xs, inits);
  bool set[HLO_MAX_RANK];
  if (!in || !hlo_dim_set(b, "reduce", n_dims, dims, xs[0]->rank, set)) return;
  int64_t kept[HLO_MAX_RANK], reduced[HLO_MAX_RANK];
  int rank = kept_dims(xs[0], set, kept), n_reduced = 0;
  for (int i = 0; i < xs[0]->rank; i++) {
    if (set[i]) reduced[n_reduced++] = i;
  }
  hlo_type_t* types = hlo_alloc(b, (size_t)n * sizeof *types);
  if (!types || !hlo_seal_combiner(b, "reduce", region, n, xs)) return;
  for (int i = 0; i < n; i++) types[i] = (hlo_type_t){xs[i]->dtype, rank, kept};
  const char* attrs = hlo_text(b, "dimensions = %s", hlo_text_array(b, n_reduced, reduced));
  hlo_op_results(b, hlo_op(b, "stablehlo.reduce", 2 * n, in, attrs, 1, &region, n, types), n, out);
}

hlo_t hlo_reduce(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int n_dims, const int64_t* dims) {
  if (!hlo_usable(b, "reduce", 1, &x)) return hlo_poison(b);
  bool set[HLO_MAX_RANK], units = true;
  if (!hlo_dim_set(b, "reduce", n_dims, dims, x->rank, set)) return hlo_poison(b);
  for (int i = 0; i < x->rank; i++) units = units && (!set[i] || x->dims[i] == 1);
  if (units) {  // one element each (also a 0-d x): nothing to combine
    int64_t kept[HLO_MAX_RANK];
    int rank = kept_dims(x, set, kept);
    return hlo_reshape(b, x, rank, kept);
  }
  hlo_t init = hlo_neutral(b, reducer, x->dtype), out;
  hlo_reduce_region(b, 1, &x, &init, n_dims, dims, hlo_reducer_region(b, reducer, x->dtype), &out);
  return out;
}

hlo_t hlo_reduce_all(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer) {
  if (!hlo_usable(b, "reduce", 1, &x)) return hlo_poison(b);
  int64_t dims[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) dims[i] = i;
  return hlo_reduce(b, x, reducer, x->rank, dims);
}

hlo_t hlo_reduce_keep(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int n_dims, const int64_t* dims) {
  hlo_t y = hlo_reduce(b, x, reducer, n_dims, dims);
  bool set[HLO_MAX_RANK];
  if (b->error || !hlo_dim_set(b, "reduce", n_dims, dims, x->rank, set)) return hlo_poison(b);
  int64_t keep[HLO_MAX_RANK];
  for (int i = 0; i < x->rank; i++) keep[i] = set[i] ? 1 : x->dims[i];
  return hlo_reshape(b, y, x->rank, keep);
}

// (acc, acc index, x, x index) -> the one that wins. Ties, NaN with NaN too, go to the lower index, so that the
// order in which XLA combines does not matter.
static hlo_region_t* arg_region(hlo_builder_t* b, bool is_max, tt_dtype_t dtype, tt_dtype_t index_dtype) {
  hlo_region_t* region = hlo_region_begin(b);
  hlo_t a = hlo_region_arg(b, region, dtype, 0, NULL), ai = hlo_region_arg(b, region, index_dtype, 0, NULL);
  hlo_t x = hlo_region_arg(b, region, dtype, 0, NULL), xi = hlo_region_arg(b, region, index_dtype, 0, NULL);
  hlo_t wins = hlo_compare(b, is_max ? HLO_GT : HLO_LT, a, x), tie = hlo_compare(b, HLO_EQ, a, x);
  if (tt_is_float(dtype)) {
    hlo_t a_nan = hlo_is_nan(b, a);
    wins = hlo_or_(b, wins, a_nan);
    tie = hlo_or_(b, tie, hlo_and_(b, a_nan, hlo_is_nan(b, x)));
  }
  hlo_t lower = hlo_compare(b, HLO_LT, ai, xi);
  hlo_t first = hlo_select(b, tie, lower, wins);
  hlo_t results[2] = {hlo_select(b, first, a, x), hlo_select(b, first, ai, xi)};
  hlo_region_end(b, region, 2, results);
  return region;
}

void hlo_arg_reduce(hlo_builder_t* b, hlo_t x, bool is_max, int dim, hlo_t* out_value, hlo_t* out_index) {
  *out_value = *out_index = hlo_poison(b);
  if (!hlo_usable(b, "arg_reduce", 1, &x)) return;
  if (tt_is_complex(x->dtype)) {
    hlo_fail(b, TT_UNIMPLEMENTED, "arg_reduce: complex numbers have no order");
    return;
  }
  int64_t d = hlo_dim(b, dim, x->rank);
  if (b->error) return;
  if (x->rank == 0) {
    *out_value = x;
    *out_index = hlo_scalar_int(b, TT_I64, 0);
    return;
  }
  if (x->dims[d] == 0) {
    hlo_fail(b, TT_OUT_OF_RANGE, "Expected reduction dim %lld to have non-zero size.", (long long)d);
    return;
  }
  // 32-bit indices when they suffice: 64-bit ones are slow on TPUs.
  tt_dtype_t index_dtype = x->dims[d] <= INT32_MAX ? TT_I32 : TT_I64;
  hlo_t xs[2] = {x, hlo_iota(b, index_dtype, x->rank, x->dims, (int)d)};
  hlo_t inits[2] = {is_max ? hlo_lowest(b, x->dtype) : hlo_highest(b, x->dtype), hlo_highest(b, index_dtype)};
  hlo_t out[2];
  hlo_reduce_region(b, 2, xs, inits, 1, &d, arg_region(b, is_max, x->dtype, index_dtype), out);
  *out_value = out[0];
  *out_index = hlo_convert(b, out[1], TT_I64);
}

// ---------------------------------------------------------------- windows
int64_t hlo_window_out(int64_t in, int64_t size, int64_t stride, int64_t base_dilation, int64_t window_dilation,
                       int64_t lo, int64_t hi) {
  int64_t padded = (in > 0 ? (in - 1) * base_dilation + 1 : 0) + lo + hi;
  int64_t window = size > 0 ? (size - 1) * window_dilation + 1 : 0;
  return padded <= 0 || padded < window ? 0 : (padded - window) / stride + 1;
}

static int64_t or_one(const int64_t* v, int i) { return v ? v[i] : 1; }
static int64_t or_zero(const int64_t* v, int i) { return v ? v[i] : 0; }

static bool window_dims(hlo_builder_t* b, const char* who, hlo_t x, const hlo_window_t* w, int64_t* dims) {
  for (int i = 0; i < x->rank; i++) {
    int64_t size = or_one(w->size, i), stride = or_one(w->stride, i);
    int64_t base = or_one(w->base_dilation, i), dilation = or_one(w->window_dilation, i);
    if (size < 1 || stride < 1 || base < 1 || dilation < 1) {
      hlo_fail(b, TT_INVALID_ARGUMENT, "%s: window sizes, strides and dilations must be positive", who);
      return false;
    }
    dims[i] = hlo_window_out(x->dims[i], size, stride, base, dilation, or_zero(w->pad_lo, i), or_zero(w->pad_hi, i));
  }
  return true;
}

static const char* ones_or(hlo_builder_t* b, int rank, const int64_t* v) {
  int64_t ones[HLO_MAX_RANK];
  for (int i = 0; i < rank; i++) ones[i] = or_one(v, i);
  return hlo_text_array(b, rank, ones);
}

void hlo_reduce_window_region(hlo_builder_t* b, int n, const hlo_t* xs, const hlo_t* inits, const hlo_window_t* window,
                              hlo_region_t* region, hlo_t* out) {
  hlo_poison_all(b, n, out);
  hlo_t* in = join_inits(b, "reduce_window", n, xs, inits);
  int64_t dims[HLO_MAX_RANK];
  if (!in || !window_dims(b, "reduce_window", xs[0], window, dims)) return;
  int rank = xs[0]->rank;
  hlo_type_t* types = hlo_alloc(b, (size_t)n * sizeof *types);
  if (!types || !hlo_seal_combiner(b, "reduce_window", region, n, xs)) return;
  for (int i = 0; i < n; i++) types[i] = (hlo_type_t){xs[i]->dtype, rank, dims};
  const char* attrs = hlo_text(
      b, "window_dimensions = %s, window_strides = %s, base_dilations = %s, window_dilations = %s, padding = %s",
      ones_or(b, rank, window->size), ones_or(b, rank, window->stride), ones_or(b, rank, window->base_dilation),
      ones_or(b, rank, window->window_dilation), hlo_text_pairs(b, rank, window->pad_lo, window->pad_hi));
  hlo_op_results(b, hlo_op(b, "stablehlo.reduce_window", 2 * n, in, attrs, 1, &region, n, types), n, out);
}

hlo_t hlo_reduce_window(hlo_builder_t* b, hlo_t x, hlo_t init, hlo_reducer_t reducer, const hlo_window_t* window) {
  if (!hlo_usable(b, "reduce_window", 1, &x)) return hlo_poison(b);
  hlo_t out;
  hlo_reduce_window_region(b, 1, &x, &init, window, hlo_reducer_region(b, reducer, x->dtype), &out);
  return out;
}

static hlo_region_t* select_region(hlo_builder_t* b, hlo_cmp_t select, tt_dtype_t dtype) {
  hlo_region_t* region = hlo_region_begin(b);
  hlo_t l = hlo_region_arg(b, region, dtype, 0, NULL), r = hlo_region_arg(b, region, dtype, 0, NULL);
  hlo_t pick = hlo_compare(b, select, l, r);
  hlo_region_end(b, region, 1, &pick);
  return region;
}

hlo_t hlo_select_and_scatter(hlo_builder_t* b, hlo_t x, hlo_t source, hlo_t init, hlo_cmp_t select,
                             hlo_reducer_t scatter, const hlo_window_t* window) {
  hlo_t in[3] = {x, source, init};
  int64_t dims[HLO_MAX_RANK];
  if (!hlo_usable(b, "select_and_scatter", 3, in)) return hlo_poison(b);
  hlo_window_t w = *window;
  w.base_dilation = w.window_dilation = NULL;
  if (!window_dims(b, "select_and_scatter", x, &w, dims)) return hlo_poison(b);
  if (source->dtype != x->dtype || init->dtype != x->dtype || init->rank != 0 ||
      !hlo_dims_equal(source->rank, source->dims, x->rank, dims)) {
    return hlo_fail(b, TT_INTERNAL, "select_and_scatter: source %s and initial value %s do not suit %s",
                    hlo_text_shape(b, source), hlo_text_shape(b, init), hlo_text_shape(b, x));
  }
  hlo_region_t* regions[2] = {select_region(b, select, x->dtype), hlo_reducer_region(b, scatter, x->dtype)};
  const char* attrs = hlo_text(b, "window_dimensions = %s, window_strides = %s, padding = %s",
                               ones_or(b, x->rank, w.size), ones_or(b, x->rank, w.stride),
                               hlo_text_pairs(b, x->rank, w.pad_lo, w.pad_hi));
  hlo_type_t type = hlo_type_of(x);
  hlo_t out;
  hlo_op_results(b, hlo_op(b, "stablehlo.select_and_scatter", 3, in, attrs, 2, regions, 1, &type), 1, &out);
  return out;
}

// ---------------------------------------------------------------- scan
// Elements per block. Larger: fewer levels, more work each. Measured on CPU (three XLA versions) and on libtpu's own
// estimates for 1e3 to 1e6 elements: against log-step shifts, a recursion over even and odd elements, and one window
// over everything, blocks of 16 compile fastest for long scans and run within noise of the best.
enum { SCAN_BLOCK = 16 };

// |x| moved by one along |d|, away from where the scan starts; a neutral element comes in.
static hlo_t shift(hlo_builder_t* b, hlo_t x, hlo_t neutral, int d, bool reverse) {
  int64_t lo[HLO_MAX_RANK] = {0}, hi[HLO_MAX_RANK] = {0};
  lo[d] = reverse ? -1 : 1;
  hi[d] = -lo[d];
  return hlo_pad(b, x, neutral, lo, hi, NULL);
}

// Scans each line of a short dim: a window that reaches back to the start.
static hlo_t scan_window(hlo_builder_t* b, hlo_t x, hlo_t neutral, hlo_reducer_t reducer, int d, bool reverse) {
  int64_t size[HLO_MAX_RANK], pad[HLO_MAX_RANK] = {0};
  for (int i = 0; i < x->rank; i++) size[i] = i == d ? x->dims[d] : 1;
  pad[d] = x->dims[d] - 1;
  hlo_window_t w = {.size = size, .pad_lo = reverse ? NULL : pad, .pad_hi = reverse ? pad : NULL};
  return hlo_reduce_window(b, x, neutral, reducer, &w);
}

hlo_t hlo_scan(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int dim, bool reverse) {
  if (!hlo_usable(b, "scan", 1, &x)) return hlo_poison(b);
  int d = hlo_dim(b, dim, x->rank);
  if (b->error || x->rank == 0 || reducer == HLO_R_ASSIGN) return b->error ? hlo_poison(b) : x;
  int64_t n = x->dims[d];
  if (n < 2 || hlo_numel(x) == 0) return x;
  hlo_t neutral = hlo_neutral(b, reducer, x->dtype);
  if (n <= SCAN_BLOCK) return scan_window(b, x, neutral, reducer, d, reverse);
  // Scan blocks; scan the blocks' totals; what precedes a block goes onto all of it.
  int64_t n_blocks = (n + SCAN_BLOCK - 1) / SCAN_BLOCK, whole[HLO_MAX_RANK], split[HLO_MAX_RANK + 1];
  int64_t none[HLO_MAX_RANK] = {0}, hi[HLO_MAX_RANK] = {0};
  hi[d] = n_blocks * SCAN_BLOCK - n;
  for (int i = 0; i < x->rank; i++) {
    whole[i] = x->dims[i] + hi[i];
    split[i < d ? i : i + 1] = x->dims[i];
  }
  split[d] = n_blocks;
  split[d + 1] = SCAN_BLOCK;
  hlo_t blocks = hlo_reshape(b, hlo_pad(b, x, neutral, none, hi, NULL), x->rank + 1, split);
  blocks = scan_window(b, blocks, neutral, reducer, d + 1, reverse);
  int64_t last = reverse ? 0 : SCAN_BLOCK - 1;
  hlo_t totals = hlo_squeeze(b, hlo_slice_dim(b, blocks, d + 1, last, last + 1, 1), d + 1);
  hlo_t before = shift(b, hlo_scan(b, totals, reducer, d, reverse), neutral, d, reverse);
  blocks = hlo_combine(b, reducer, hlo_unsqueeze(b, before, d + 1), blocks);
  return hlo_slice_dim(b, hlo_reshape(b, blocks, x->rank, whole), d, 0, n, 1);
}
