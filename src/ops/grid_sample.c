// grid_sampler in two and three dims: every interpolation, padding and alignment, with gradients.
//
// A sample is a weighted sum of taps: per dim 1 (nearest), 2 (linear) or 4 (cubic) of them, crossed. All taps of all
// samples are read by one gather of rows (channels last), and given back by one scatter.
#include "ops/common.h"
#include "ops/indexing.h"
#include "ops/op.h"

typedef enum mode_t { MODE_LINEAR, MODE_NEAREST, MODE_CUBIC } mode_t;
typedef enum padding_t { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } padding_t;

// One dim's taps; every value is [N, P].
typedef struct axis_t {
  int n;
  hlo_t index[4];   // i32, inside the input
  hlo_t inside[4];  // false: the tap reads zero
  hlo_t weight[4];
  hlo_t slope[4];   // of the weight by the grid's coordinate
} axis_t;

typedef struct sampler_t {
  hlo_builder_t* b;
  tt_dtype_t dtype;
  mode_t mode;
  padding_t padding;
  bool align;
  int nd;
  int64_t n, c, points;        // batch, channels, samples per image
  int64_t size[3];             // input's spatial dims, outermost first
  axis_t axis[3];
} sampler_t;

static hlo_t num(const sampler_t* s, double v) { return hlo_scalar(s->b, s->dtype, v); }

// x mirrored into [low/2, high/2]; *slope is multiplied by the mirroring's sign.
static hlo_t reflect(const sampler_t* s, hlo_t x, int64_t twice_low, int64_t twice_high, hlo_t* slope) {
  hlo_builder_t* b = s->b;
  if (twice_low == twice_high) {
    *slope = hlo_zeros_like(b, x);
    return hlo_zeros_like(b, x);
  }
  hlo_t low = num(s, (double)twice_low / 2), span = num(s, (double)(twice_high - twice_low) / 2);
  x = hlo_subtract(b, x, low);
  hlo_t sign = hlo_select(b, hlo_compare(b, HLO_LT, x, num(s, 0)), num(s, -1), num(s, 1));
  x = hlo_abs(b, x);
  hlo_t extra = hlo_remainder(b, x, span), flips = hlo_floor(b, hlo_divide(b, x, span));
  hlo_t odd = hlo_compare(b, HLO_NE, hlo_remainder(b, flips, num(s, 2)), num(s, 0));
  *slope = hlo_multiply(b, *slope, hlo_select(b, odd, hlo_negate(b, sign), sign));
  return hlo_add(b, hlo_select(b, odd, hlo_subtract(b, span, extra), extra), low);
}

// x held inside [0, size - 1] (NaN becomes 0); the slope vanishes where it is held.
static hlo_t hold(const sampler_t* s, hlo_t x, int64_t size, hlo_t* slope) {
  hlo_builder_t* b = s->b;
  hlo_t low = num(s, 0), high = num(s, (double)(size - 1));
  hlo_t free = hlo_and_(b, hlo_compare(b, HLO_GT, x, low), hlo_compare(b, HLO_LT, x, high));
  *slope = hlo_select(b, free, *slope, low);
  return hlo_clamp(b, low, hlo_select(b, hlo_is_nan(b, x), low, x), high);
}

static hlo_t apply_padding(const sampler_t* s, hlo_t x, int64_t size, hlo_t* slope) {
  if (s->padding == PAD_ZEROS) return x;
  if (s->padding == PAD_REFLECTION) {
    x = s->align ? reflect(s, x, 0, 2 * (size - 1), slope) : reflect(s, x, -1, 2 * size - 1, slope);
  }
  return hold(s, x, size, slope);
}

// Tap |k| at the whole-numbered position |x|.
static void set_tap(const sampler_t* s, axis_t* a, int k, hlo_t x, int64_t size, hlo_t weight, hlo_t slope) {
  hlo_builder_t* b = s->b;
  hlo_t low = num(s, 0), high = num(s, (double)(size - 1));
  a->inside[k] = hlo_and_(b, hlo_compare(b, HLO_GE, x, low), hlo_compare(b, HLO_LE, x, high));
  a->index[k] = hlo_convert(b, hlo_select(b, a->inside[k], x, low), TT_I32);
  a->weight[k] = weight;
  a->slope[k] = slope;
}

// a x^3 + b x^2 + c x + d, and its derivative.
static hlo_t cubic(const sampler_t* s, hlo_t x, const double k[4]) {
  hlo_builder_t* b = s->b;
  hlo_t y = hlo_add(b, hlo_multiply(b, x, num(s, k[0])), num(s, k[1]));
  y = hlo_add(b, hlo_multiply(b, y, x), num(s, k[2]));
  return hlo_add(b, hlo_multiply(b, y, x), num(s, k[3]));
}

static hlo_t cubic_slope(const sampler_t* s, hlo_t x, const double k[4]) {
  const double d[4] = {0, 3 * k[0], 2 * k[1], k[2]};
  return cubic(s, x, d);
}

// Keys' kernel with a = -0.75 for distances below 1, and from 1 to 2.
static const double k_near[4] = {1.25, -2.25, 0, 1};
static const double k_far[4] = {-0.75, 3.75, -6, 3};

static void cubic_axis(const sampler_t* s, axis_t* a, hlo_t x, int64_t size, hlo_t slope) {
  hlo_builder_t* b = s->b;
  hlo_t base = hlo_floor(b, x), t = hlo_subtract(b, x, base);
  a->n = 4;
  for (int k = 0; k < 4; k++) {
    const double* kernel = k == 1 || k == 2 ? k_near : k_far;
    const bool before = k < 2;  // the tap lies left of x: its distance grows with x
    hlo_t distance = before ? hlo_add(b, t, num(s, 1 - k)) : hlo_subtract(b, num(s, k - 1), t);
    hlo_t change = cubic_slope(s, distance, kernel);
    hlo_t ignored = slope;
    hlo_t at = apply_padding(s, hlo_add(b, base, num(s, k - 1)), size, &ignored);
    set_tap(s, a, k, at, size, cubic(s, distance, kernel),
            hlo_multiply(b, before ? change : hlo_negate(b, change), slope));
  }
}

static void make_axis(const sampler_t* s, axis_t* a, hlo_t grid, int64_t size) {
  hlo_builder_t* b = s->b;
  hlo_t x = hlo_add(b, grid, num(s, 1));
  const double factor = s->align ? (double)(size - 1) / 2 : (double)size / 2;
  if (s->align) {
    x = hlo_multiply(b, hlo_divide(b, x, num(s, 2)), num(s, (double)(size - 1)));
  } else {
    x = hlo_divide(b, hlo_subtract(b, hlo_multiply(b, x, num(s, (double)size)), num(s, 1)), num(s, 2));
  }
  hlo_t slope = hlo_full_like(b, x, factor);
  if (s->mode == MODE_CUBIC) {
    cubic_axis(s, a, x, size, slope);
    return;
  }
  x = apply_padding(s, x, size, &slope);
  if (s->mode == MODE_NEAREST) {
    a->n = 1;
    set_tap(s, a, 0, hlo_round_nearest_even(b, x), size, hlo_full_like(b, x, 1), hlo_zeros_like(b, x));
    return;
  }
  hlo_t base = hlo_floor(b, x), next = hlo_add(b, base, num(s, 1));
  a->n = 2;
  set_tap(s, a, 0, base, size, hlo_subtract(b, next, x), hlo_negate(b, slope));
  set_tap(s, a, 1, next, size, hlo_subtract(b, x, base), slope);
}

// |arg|: input, grid, mode, padding, align_corners follow each other from here.
static bool read_sampler(tt_lower_t* l, int arg, sampler_t* s) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, arg);
  *s = (sampler_t){.b = b, .dtype = tt_opmath(x->dtype), .mode = (mode_t)tt_int(l, arg + 2)};
  hlo_t grid = tt_in_as(l, arg + 1, s->dtype);
  s->padding = (padding_t)tt_int(l, arg + 3);
  s->align = tt_bool(l, arg + 4);
  s->nd = x->rank - 2;
  if (s->nd < 2 || s->nd > 3 || grid->rank != s->nd + 2) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "grid_sampler: expected a 4-D or 5-D input and a grid of the same rank");
    return false;
  }
  s->n = x->dims[0];
  s->c = x->dims[1];
  s->points = 1;
  for (int i = 0; i < s->nd; i++) s->points *= grid->dims[1 + i];
  const int64_t dims[3] = {s->n, s->points, s->nd};
  grid = hlo_reshape(b, grid, 3, dims);
  for (int i = 0; i < s->nd; i++) {
    s->size[i] = x->dims[2 + i];
    const int64_t at = s->nd - 1 - i;  // the grid's first coordinate is the innermost dim
    make_axis(s, &s->axis[i], hlo_squeeze(b, hlo_slice_dim(b, grid, 2, at, at + 1, 1), 2), s->size[i]);
  }
  return !hlo_failed(b);
}

// All taps crossed; every value is [N, K, P].
typedef struct taps_t {
  int n;
  hlo_t row;      // of the input as [N * S, C]
  hlo_t inside;
  hlo_t weight;
  hlo_t slope[3]; // of the weight by each dim's coordinate; NULL unless asked for
} taps_t;

static taps_t cross_taps(const sampler_t* s, bool slopes) {
  hlo_builder_t* b = s->b;
  hlo_t rows[64], inside[64], weight[64], slope[3][64];
  taps_t t = {.n = 1};
  for (int d = 0; d < s->nd; d++) t.n *= s->axis[d].n;
  for (int k = 0; k < t.n; k++) {
    int rest = k, pick[3] = {0};
    for (int d = s->nd - 1; d >= 0; d--) {
      pick[d] = rest % s->axis[d].n;
      rest /= s->axis[d].n;
    }
    hlo_t row = s->axis[0].index[pick[0]];
    inside[k] = s->axis[0].inside[pick[0]];
    weight[k] = s->axis[0].weight[pick[0]];
    for (int d = 1; d < s->nd; d++) {
      row = hlo_add(b, tt_affine(b, row, s->size[d], 0), s->axis[d].index[pick[d]]);
      inside[k] = hlo_and_(b, inside[k], s->axis[d].inside[pick[d]]);
      weight[k] = hlo_multiply(b, weight[k], s->axis[d].weight[pick[d]]);
    }
    for (int of = 0; slopes && of < s->nd; of++) {
      hlo_t product = NULL;
      for (int d = 0; d < s->nd; d++) {
        hlo_t factor = d == of ? s->axis[d].slope[pick[d]] : s->axis[d].weight[pick[d]];
        product = product ? hlo_multiply(b, product, factor) : factor;
      }
      slope[of][k] = hlo_unsqueeze(b, product, 1);
    }
    rows[k] = hlo_unsqueeze(b, row, 1);
    inside[k] = hlo_unsqueeze(b, inside[k], 1);
    weight[k] = hlo_unsqueeze(b, weight[k], 1);
  }
  int64_t volume = 1;
  for (int d = 0; d < s->nd; d++) volume *= s->size[d];
  const int64_t dims[3] = {s->n, t.n, s->points};
  t.row = hlo_add(b, hlo_concat(b, t.n, rows, 1), tt_affine(b, hlo_iota(b, TT_I32, 3, dims, 0), volume, 0));
  t.inside = hlo_concat(b, t.n, inside, 1);
  t.weight = hlo_concat(b, t.n, weight, 1);
  for (int of = 0; slopes && of < s->nd; of++) t.slope[of] = hlo_concat(b, t.n, slope[of], 1);
  return t;
}

// [N, C, spatial…] -> [N * S, C]
static hlo_t to_rows(const sampler_t* s, hlo_t x) {
  const int64_t spatial = s->c * s->n > 0 ? hlo_numel(x) / (s->n * s->c) : 0;
  const int64_t dims[3] = {s->n, s->c, spatial}, rows[2] = {s->n * spatial, s->c}, perm[3] = {0, 2, 1};
  return hlo_reshape(s->b, hlo_transpose(s->b, hlo_reshape(s->b, x, 3, dims), perm), 2, rows);
}

// [N, P, C] (or [N * P, C]) -> dims of |like|-shaped [N, C, spatial…]
static hlo_t from_rows(const sampler_t* s, hlo_t rows, int64_t per_image, int rank, const int64_t* dims) {
  const int64_t wide[3] = {s->n, per_image, s->c}, perm[3] = {0, 2, 1};
  return hlo_reshape(s->b, hlo_transpose(s->b, hlo_reshape(s->b, rows, 3, wide), perm), rank, dims);
}

// [N, K, P] made [N, K, P, C]
static hlo_t over_channels(const sampler_t* s, hlo_t x) {
  const int64_t dims[4] = {x->dims[0], x->dims[1], x->dims[2], s->c}, map[3] = {0, 1, 2};
  return hlo_broadcast_in_dim(s->b, x, 4, dims, map);
}

static void lower_grid_sampler(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), grid = tt_in(l, 1);
  sampler_t s;
  if (!read_sampler(l, 0, &s)) return;
  int64_t dims[5] = {s.n, s.c};
  for (int i = 0; i < s.nd; i++) dims[2 + i] = grid->dims[1 + i];
  if (s.n * s.c * s.points == 0) {
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, s.nd + 2, dims));
    return;
  }
  const taps_t t = cross_taps(&s, false);
  hlo_t values = hlo_convert(b, hlo_take(b, to_rows(&s, x), t.row, 0), s.dtype);
  values = hlo_select(b, over_channels(&s, t.inside), values, num(&s, 0));
  values = hlo_multiply(b, values, over_channels(&s, t.weight));  // a NaN coordinate gives NaN outside too
  const int64_t taps_dim = 1;
  tt_ret(l, 0, from_rows(&s, hlo_reduce(b, values, HLO_R_ADD, 1, &taps_dim), s.points, s.nd + 2, dims));
}

static hlo_t grid_gradient(const sampler_t* s, const taps_t* t, hlo_t x, hlo_t grad, hlo_t grid) {
  hlo_builder_t* b = s->b;
  const int64_t channels = 3, taps_dim = 1;
  hlo_t values = hlo_convert(b, hlo_take(b, to_rows(s, x), t->row, 0), s->dtype);
  values = hlo_select(b, over_channels(s, t->inside), hlo_multiply(b, values, grad), num(s, 0));
  hlo_t dots = hlo_reduce(b, values, HLO_R_ADD, 1, &channels);  // [N, K, P]
  hlo_t parts[3];
  for (int d = 0; d < s->nd; d++) {
    hlo_t part = hlo_reduce(b, hlo_multiply(b, dots, t->slope[d]), HLO_R_ADD, 1, &taps_dim);
    parts[s->nd - 1 - d] = hlo_unsqueeze(b, part, 2);
  }
  return tt_reshape_like(b, hlo_concat(b, s->nd, parts, 2), grid);
}

static void lower_grid_sampler_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 1), grid = tt_in(l, 2);
  int n_mask = 0;
  const int64_t* mask = tt_ints(l, 6, &n_mask);
  const bool want_input = n_mask < 1 || mask[0], want_grid = n_mask < 2 || mask[1];
  sampler_t s;
  if (!read_sampler(l, 1, &s)) return;
  if (hlo_numel(x) == 0 || s.points == 0) {
    tt_ret(l, 0, want_input ? hlo_zeros_like(b, x) : NULL);
    tt_ret(l, 1, want_grid ? hlo_zeros_like(b, grid) : NULL);
    return;
  }
  const taps_t t = cross_taps(&s, want_grid);
  const int64_t grad_dims[4] = {s.n, t.n, s.points, s.c}, point_dims[3] = {s.n, s.points, s.c}, map[3] = {0, 2, 3};
  hlo_t grad = hlo_reshape(b, to_rows(&s, tt_in_as(l, 0, s.dtype)), 3, point_dims);
  grad = hlo_broadcast_in_dim(b, grad, 4, grad_dims, map);
  if (want_input) {
    const int64_t volume = hlo_numel(x) / (s.n * s.c), rows[2] = {s.n * volume, s.c};
    hlo_t row = hlo_select(b, t.inside, t.row, hlo_scalar_int(b, TT_I32, rows[0]));  // dropped outside
    hlo_t updates = hlo_multiply(b, grad, over_channels(&s, t.weight));
    hlo_t out = tt_put(b, hlo_splat(b, s.dtype, 0, 2, rows), row, updates, 0, HLO_R_ADD);
    tt_ret(l, 0, from_rows(&s, out, volume, x->rank, x->dims));
  } else {
    tt_ret(l, 0, NULL);
  }
  tt_ret(l, 1, want_grid ? grid_gradient(&s, &t, x, grad, grid) : NULL);
}

static const tt_op_row_t k_rows[] = {
    {"grid_sampler_2d", .lower = lower_grid_sampler},
    {"grid_sampler_3d", .lower = lower_grid_sampler},
    {"_grid_sampler_2d_cpu_fallback", .lower = lower_grid_sampler},
    {"grid_sampler_2d_backward", .lower = lower_grid_sampler_backward},
    {"grid_sampler_3d_backward", .lower = lower_grid_sampler_backward},
};
TT_OP_FAMILY(grid_sample, k_rows)
