// Scans along one dim: running sums, products, extremes with their positions, and log-sum-exp.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// A 0-d tensor is its own scan.
#include <math.h>

#include "ops/common.h"

static tt_dtype_t scan_dtype(tt_lower_t* l, int dtype_arg) {
  if (tt_out_count(l) > 0) return tt_out_dtype(l, 0);
  tt_dtype_t asked = tt_dtype_arg(l, dtype_arg);
  tt_dtype_t in = tt_in(l, 0)->dtype;
  return asked != TT_DT_NONE ? asked : tt_is_integral(in) ? TT_I64 : in;
}

static hlo_t scan(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int dim) {
  return x->rank && hlo_numel(x) > 0 ? hlo_scan(b, x, reducer, dim, false) : x;
}

// (self, dim, dtype)
static void lower_cumulate(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = scan_dtype(l, 2);
  hlo_t x = tt_in(l, 0);
  int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  x = hlo_convert(b, hlo_convert(b, x, out), tt_opmath(out));
  tt_ret(l, 0, hlo_convert(b, scan(b, x, (hlo_reducer_t)tt_row(l)->kind, dim), out));
}

// Running extreme and where it was last reached. NaN is above and below everything, and every NaN is a new one.
static void running_extreme(tt_lower_t* l, int dim_arg) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  tt_dtype_t dtype = x->dtype;
  int dim = hlo_dim(b, tt_int(l, dim_arg), x->rank);
  if (x->rank == 0 || hlo_numel(x) == 0) {
    tt_ret(l, 0, x);
    tt_ret(l, 1, hlo_splat(b, TT_I64, 0, x->rank, x->dims));
    return;
  }
  if (dtype == TT_BOOL) x = hlo_convert(b, x, TT_U8);
  hlo_t values = scan(b, x, (hlo_reducer_t)tt_row(l)->kind, dim);
  hlo_t reached = hlo_or_(b, hlo_compare(b, HLO_EQ, x, values), hlo_is_nan(b, x));
  hlo_t place = hlo_iota(b, TT_I64, x->rank, x->dims, dim);
  place = hlo_select(b, reached, place, hlo_zeros_like(b, place));
  tt_ret(l, 0, hlo_convert(b, values, dtype));
  tt_ret(l, 1, scan(b, place, HLO_R_MAX, dim));
}

static void lower_running_extreme(tt_lower_t* l) { running_extreme(l, 1); }
static void lower_running_extreme_helper(tt_lower_t* l) { running_extreme(l, 3); }

// log(exp(x) + exp(y)), overflow-free; of complex values the one with the larger real part leads.
static hlo_t log_add_exp(hlo_builder_t* b, hlo_t x, hlo_t y) {
  hlo_t rx = hlo_real(b, x), ry = hlo_real(b, y);
  hlo_t x_leads = hlo_or_(b, hlo_compare(b, HLO_GE, rx, ry), hlo_is_nan(b, x));
  hlo_t hi = hlo_select(b, x_leads, x, y), lo = hlo_select(b, x_leads, y, x);
  hlo_t sum = hlo_add(b, hi, hlo_log_plus_one(b, hlo_exponential(b, hlo_subtract(b, lo, hi))));
  // Equal infinities: their difference would be nan.
  hlo_t infinite = hlo_compare(b, HLO_EQ, hlo_abs(b, rx), hlo_scalar(b, rx->dtype, INFINITY));
  hlo_t stuck = hlo_and_(b, infinite, hlo_compare(b, HLO_EQ, rx, ry));
  // A partner of -inf adds nothing (for complex values its phase would be lost in nan otherwise).
  hlo_t nothing = hlo_compare(b, HLO_EQ, hlo_real(b, lo), hlo_scalar(b, rx->dtype, -INFINITY));
  return hlo_select(b, hlo_or_(b, stuck, hlo_and_(b, nothing, hlo_not_(b, hlo_is_nan(b, hi)))), hi, sum);
}

// (self, dim)
static void lower_logcumsumexp(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t out = tt_out_count(l) > 0 ? tt_out_dtype(l, 0) : tt_in(l, 0)->dtype, math = tt_opmath(out);
  hlo_t x = tt_in_as(l, 0, math);
  int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  if (x->rank && hlo_numel(x) > 0 && x->dims[dim] > 1) {
    hlo_t nothing = tt_is_complex(math) ? hlo_scalar_complex(b, math, -INFINITY, 0) : hlo_scalar(b, math, -INFINITY);
    hlo_region_t* region = hlo_region_begin(b);
    hlo_t before = hlo_region_arg(b, region, math, 0, NULL), here = hlo_region_arg(b, region, math, 0, NULL);
    hlo_t sum = log_add_exp(b, before, here);
    hlo_region_end(b, region, 1, &sum);
    int64_t size[TT_MAX_RANK], lo[TT_MAX_RANK] = {0};
    for (int i = 0; i < x->rank; i++) size[i] = i == dim ? x->dims[i] : 1;
    lo[dim] = x->dims[dim] - 1;
    const hlo_window_t window = {.size = size, .pad_lo = lo};
    hlo_t scanned;
    hlo_reduce_window_region(b, 1, &x, &nothing, &window, region, &scanned);
    x = scanned;
  }
  tt_ret(l, 0, hlo_convert(b, x, out));
}

static const tt_op_row_t k_rows[] = {
    {.name = "cumsum", .lower = lower_cumulate, .kind = HLO_R_ADD},
    {.name = "cumprod", .lower = lower_cumulate, .kind = HLO_R_MUL},
    {.name = "cummax", .lower = lower_running_extreme, .kind = HLO_R_MAX},
    {.name = "cummin", .lower = lower_running_extreme, .kind = HLO_R_MIN},
    {.name = "_cummax_helper", .lower = lower_running_extreme_helper, .kind = HLO_R_MAX, .flags = TT_OP_NO_META},
    {.name = "_cummin_helper", .lower = lower_running_extreme_helper, .kind = HLO_R_MIN, .flags = TT_OP_NO_META},
    {.name = "logcumsumexp", .lower = lower_logcumsumexp},
    {.name = "_logcumsumexp", .lower = lower_logcumsumexp, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(scan, k_rows)
