// upsample_*: nearest, linear, cubic and antialiased resizing, with gradients.
//
// Along each dim a result is a weighted sum of few inputs. Which ones, and the weights, are computed here exactly as
// PyTorch's CPU kernels compute them (in float unless the tensor is double) and become small tables; a dim is one
// gather, a product and a sum. The gradient uses the transposed table, so that it is a gather too. A sum over a table
// row touches no other values: an inf or NaN spreads no further than in PyTorch (a product with a matrix would).
#include <math.h>
#include <string.h>
#include "ops/common.h"
#include "ops/indexing.h"
#include "ops/op.h"

typedef enum filter_t { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, LINEAR_AA, CUBIC_AA, LANCZOS_AA } filter_t;

typedef struct table_t {
  int64_t rows;    // results
  int64_t inputs;
  int64_t taps;
  int32_t* index;  // [rows, taps]
  double* weight;  // [rows, taps]
} table_t;

typedef struct axis_t {
  filter_t filter;
  bool f64;        // arithmetic of the tables
  bool align;
  bool backward;
  int64_t in, out;
  double given;    // scale factor that the caller gave; 0 none
} axis_t;

// One operation's result in the arithmetic of the tables.
static double r(const axis_t* a, double v) { return a->f64 ? v : (double)(float)v; }

static bool table_alloc(hlo_builder_t* b, table_t* t) {
  const size_t n = (size_t)(t->rows * t->taps) + 1;
  t->index = tt_arena_alloc(hlo_builder_arena(b), n * sizeof *t->index);
  t->weight = tt_arena_alloc(hlo_builder_arena(b), n * sizeof *t->weight);
  if (t->index && t->weight) return true;
  hlo_fail(b, TT_RESOURCE_EXHAUSTED, "upsample: out of memory");
  return false;
}

// ---------------------------------------------------------------- tables
static double axis_scale(const axis_t* a) {
  if (a->align) return a->out > 1 ? r(a, (double)(a->in - 1) / (double)(a->out - 1)) : 0;
  return a->given > 0 ? r(a, 1.0 / a->given) : r(a, (double)a->in / (double)a->out);
}

static double source_position(const axis_t* a, double scale, int64_t i) {
  if (a->align) return r(a, scale * (double)i);
  const double x = r(a, r(a, scale * ((double)i + 0.5)) - 0.5);
  return a->filter == LINEAR && x < 0 ? 0 : x;
}

static int64_t limit(int64_t v, int64_t n) { return v < 0 ? 0 : v >= n ? n - 1 : v; }

static void nearest_row(const axis_t* a, double scale, int64_t i, table_t* t) {
  t->weight[i] = 1;
  if (a->backward && a->filter == NEAREST && (a->out == a->in || a->out == 2 * a->in)) {
    t->index[i] = (int32_t)(a->out == a->in ? i : i / 2);  // PyTorch's gradient ignores a given scale here
    return;
  }
  const double at = a->filter == NEAREST ? (double)i : (double)i + 0.5;
  t->index[i] = (int32_t)limit((int64_t)floor(r(a, at * scale)), a->in);
}

static void linear_row(const axis_t* a, double scale, int64_t i, table_t* t) {
  int32_t* index = t->index + 2 * i;
  double* weight = t->weight + 2 * i;
  if (a->in == a->out) {
    index[0] = index[1] = (int32_t)i;
    weight[0] = 1;
    return;
  }
  const double x = source_position(a, scale, i);
  const int64_t base = limit((int64_t)x, a->in);
  double part = r(a, x - (double)base);
  part = part < 0 ? 0 : part > 1 ? 1 : part;
  index[0] = (int32_t)base;
  index[1] = (int32_t)limit(base + 1, a->in);
  weight[0] = r(a, 1 - part);
  weight[1] = part;
}

static double cubic_near(const axis_t* a, double k, double x) {
  return r(a, r(a, r(a, r(a, r(a, (k + 2) * x) - (k + 3)) * x) * x) + 1);
}

static double cubic_far(const axis_t* a, double k, double x) {
  return r(a, r(a, r(a, r(a, r(a, r(a, k * x) - 5 * k) * x) + 8 * k) * x) - 4 * k);
}

static void cubic_row(const axis_t* a, double scale, int64_t i, table_t* t) {
  const double k = -0.75, x = source_position(a, scale, i);
  int64_t base = (int64_t)floor(x);
  if (base > a->in - 1) base = a->in - 1;
  double part = r(a, x - (double)base);
  part = part < 0 ? 0 : part > 1 ? 1 : part;
  const double rest = r(a, 1 - part);
  const double weight[4] = {cubic_far(a, k, r(a, part + 1)), cubic_near(a, k, part), cubic_near(a, k, rest),
                            cubic_far(a, k, r(a, rest + 1))};
  for (int j = 0; j < 4; j++) {
    t->index[4 * i + j] = (int32_t)limit(base - 1 + j, a->in);
    t->weight[4 * i + j] = weight[j];
  }
}

static double sinc(double x) {
  const double angle = 3.14159265358979323846 * x;
  return x == 0 ? 1 : sin(angle) / angle;
}

static double aa_weight(const axis_t* a, double x) {
  x = fabs(x);
  if (a->filter == LINEAR_AA) return x < 1 ? r(a, 1 - x) : 0;
  if (a->filter == CUBIC_AA) return x < 1 ? cubic_near(a, -0.5, x) : x < 2 ? cubic_far(a, -0.5, x) : 0;
  return x < 3 ? r(a, sinc(x) * sinc(x / 3)) : 0;
}

static double aa_support(const axis_t* a, double scale) {
  const double radius = a->filter == LINEAR_AA ? 1 : a->filter == CUBIC_AA ? 2 : 3;
  return scale >= 1 ? r(a, radius * scale) : radius;
}

static void aa_row(const axis_t* a, double scale, int64_t i, table_t* t) {
  const double support = aa_support(a, scale), inverse = scale >= 1 ? r(a, 1 / scale) : 1;
  const double center = r(a, scale * ((double)i + 0.5));
  int64_t begin = (int64_t)r(a, r(a, center - support) + 0.5), end = (int64_t)r(a, r(a, center + support) + 0.5);
  begin = begin < 0 ? 0 : begin;
  end = end > a->in ? a->in : end;
  int64_t n = end - begin < 0 ? 0 : end - begin > t->taps ? t->taps : end - begin;
  double total = 0;
  for (int64_t j = 0; j < t->taps; j++) {
    const bool used = j < n;
    const double x = r(a, r(a, (double)(j + begin)) - center);
    const double w = used ? aa_weight(a, r(a, r(a, x + 0.5) * inverse)) : 0;
    t->index[t->taps * i + j] = (int32_t)limit(begin + (used || n == 0 ? j : n - 1), a->in);
    t->weight[t->taps * i + j] = w;
    total = r(a, total + w);
  }
  for (int64_t j = 0; j < n && total != 0; j++) {
    t->weight[t->taps * i + j] = r(a, t->weight[t->taps * i + j] / total);
  }
}

static bool make_table(hlo_builder_t* b, const axis_t* a, table_t* t) {
  static void (*const k_row[])(const axis_t*, double, int64_t, table_t*) = {nearest_row, nearest_row, linear_row,
                                                                           cubic_row,   aa_row,      aa_row, aa_row};
  const double scale = axis_scale(a);
  *t = (table_t){.rows = a->out, .inputs = a->in};
  t->taps = a->filter <= NEAREST_EXACT ? 1 : a->filter == LINEAR ? 2 : a->filter == CUBIC ? 4
            : (int64_t)ceil(aa_support(a, scale)) * 2 + 1;
  if (!table_alloc(b, t)) return false;
  for (int64_t i = 0; i < a->out; i++) k_row[a->filter](a, scale, i, t);
  return true;
}

// Inputs become results. Rows that have fewer taps than the longest repeat one with weight 0.
static bool transpose_table(hlo_builder_t* b, const table_t* t, table_t* out) {
  *out = (table_t){.rows = t->inputs, .inputs = t->rows, .taps = 1};
  int32_t* count = tt_arena_alloc(hlo_builder_arena(b), sizeof(int32_t) * (size_t)(t->inputs + 1));
  if (!count) return false;
  for (int64_t e = 0; e < t->rows * t->taps; e++) {
    if (t->weight[e] == 0) continue;
    const int32_t n = ++count[t->index[e]];
    if (n > out->taps) out->taps = n;
  }
  if (!table_alloc(b, out)) return false;
  memset(count, 0, sizeof(int32_t) * (size_t)t->inputs);
  for (int64_t e = 0; e < t->rows * t->taps; e++) {
    if (t->weight[e] == 0) continue;
    const int64_t at = t->index[e] * out->taps + count[t->index[e]]++;
    out->index[at] = (int32_t)(e / t->taps);
    out->weight[at] = t->weight[e];
  }
  for (int64_t i = 0; i < out->rows; i++) {
    for (int64_t k = count[i] > 0 ? count[i] : 1; k < out->taps; k++) {
      out->index[i * out->taps + k] = out->index[i * out->taps];
    }
  }
  return true;
}

// ---------------------------------------------------------------- application
// k when row i takes input i / k (out = in * k); 0 otherwise.
static int64_t repeat_factor(const table_t* t) {
  if (t->taps != 1 || t->inputs == 0 || t->rows % t->inputs != 0) return 0;
  const int64_t k = t->rows / t->inputs;
  for (int64_t i = 0; i < t->rows; i++) {
    if (t->index[i] != i / k) return 0;
  }
  return k;
}

static hlo_t repeat_dim(hlo_builder_t* b, hlo_t x, int dim, int64_t k) {
  int64_t wide[TT_MAX_RANK + 1], map[TT_MAX_RANK], dims[TT_MAX_RANK];
  for (int i = 0, m = 0; i < x->rank; i++) {
    map[i] = m;
    wide[m++] = x->dims[i];
    if (i == dim) wide[m++] = k;
    dims[i] = i == dim ? x->dims[i] * k : x->dims[i];
  }
  return hlo_reshape(b, hlo_broadcast_in_dim(b, x, x->rank + 1, wide, map), x->rank, dims);
}

// Sums runs of |k| along |dim|: the gradient of repeat_dim.
static hlo_t sum_runs(hlo_builder_t* b, hlo_t x, int dim, int64_t k) {
  int64_t wide[TT_MAX_RANK + 1];
  const int64_t at = dim + 1;
  for (int i = 0, m = 0; i < x->rank; i++) {
    wide[m++] = i == dim ? x->dims[i] / k : x->dims[i];
    if (i == dim) wide[m++] = k;
  }
  return hlo_reduce(b, hlo_reshape(b, x, x->rank + 1, wide), HLO_R_ADD, 1, &at);
}

// The tables' rows by one gather, then the weighted sum.
static hlo_t apply_table(hlo_builder_t* b, hlo_t x, int dim, const table_t* t) {
  const int64_t dims[2] = {t->rows, t->taps}, taps_dim = dim + 1, map[2] = {dim, dim + 1};
  if (t->taps == 1 && t->rows > 0) {
    bool plain = true;
    for (int64_t i = 0; i < t->rows; i++) plain = plain && t->weight[i] == 1;
    if (plain) return hlo_take(b, x, hlo_array(b, TT_I32, 1, dims, t->index), dim);
  }
  hlo_t index = hlo_array(b, TT_I32, 2, dims, t->index), weight;
  if (x->dtype == TT_F64) {
    weight = hlo_array(b, TT_F64, 2, dims, t->weight);
  } else {
    float* narrow = tt_arena_alloc(hlo_builder_arena(b), sizeof(float) * (size_t)(t->rows * t->taps + 1));
    if (!narrow) return hlo_fail(b, TT_RESOURCE_EXHAUSTED, "upsample: out of memory");
    for (int64_t i = 0; i < t->rows * t->taps; i++) narrow[i] = (float)t->weight[i];
    weight = hlo_convert(b, hlo_array(b, TT_F32, 2, dims, narrow), x->dtype);
  }
  hlo_t taps = hlo_take(b, x, index, dim);
  weight = hlo_broadcast_in_dim(b, weight, taps->rank, taps->dims, map);
  return hlo_reduce(b, hlo_multiply(b, taps, weight), HLO_R_ADD, 1, &taps_dim);
}

// PyTorch resizes bytes one dim after the other in integers, with weights of 15 bits, and stores bytes in between.
static hlo_t apply_byte_table(hlo_builder_t* b, hlo_t x, int dim, const table_t* t) {
  const int64_t n = t->rows * t->taps, dims[2] = {t->rows, t->taps}, taps_dim = dim + 1, map[2] = {dim, dim + 1};
  int32_t* weight = tt_arena_alloc(hlo_builder_arena(b), sizeof(int32_t) * (size_t)(n + 1));
  if (!weight) return hlo_fail(b, TT_RESOURCE_EXHAUSTED, "upsample: out of memory");
  double largest = 0;
  for (int64_t i = 0; i < n; i++) {
    // Taps that fell on the same edge pixel weigh as one, which is rounded once.
    if (i % t->taps != 0 && t->index[i] == t->index[i - 1]) {
      t->weight[i] += t->weight[i - 1];
      t->weight[i - 1] = 0;
    }
    if (t->weight[i] > largest) largest = t->weight[i];
  }
  int bits = 0;
  while (bits < 22 && (int)(0.5 + largest * (double)(1 << (bits + 1))) < (1 << 15)) bits++;
  for (int64_t i = 0; i < n; i++) {
    const double scaled = t->weight[i] * (double)(1 << bits);
    weight[i] = (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  }
  hlo_t taps = hlo_convert(b, hlo_take(b, x, hlo_array(b, TT_I32, 2, dims, t->index), dim), TT_I32);
  hlo_t factors = hlo_broadcast_in_dim(b, hlo_array(b, TT_I32, 2, dims, weight), taps->rank, taps->dims, map);
  hlo_t sum = hlo_reduce(b, hlo_multiply(b, taps, factors), HLO_R_ADD, 1, &taps_dim);
  sum = tt_affine(b, sum, 1, bits > 0 ? 1 << (bits - 1) : 0);
  sum = hlo_shift_right_arithmetic(b, sum, hlo_scalar_int(b, TT_I32, bits));
  sum = hlo_clamp(b, hlo_scalar_int(b, TT_I32, 0), sum, hlo_scalar_int(b, TT_I32, 255));
  return hlo_convert(b, sum, TT_U8);
}

// |sizes| are the spatial sizes of the side that is not x's; scales begin at argument |first_scale|.
static void resize(tt_lower_t* l, bool backward, bool align, int first_scale) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const filter_t filter = (filter_t)(tt_row(l)->kind & 0xff);
  const bool nearest = filter <= NEAREST_EXACT, byte = x->dtype == TT_U8 && !nearest;
  const tt_dtype_t dtype = byte || (nearest && !backward) ? x->dtype : tt_opmath(x->dtype);
  int n_target = 0;
  const int64_t* target = tt_ints(l, backward ? 2 : 1, &n_target);
  if (backward) {
    target += 2;
    n_target -= 2;
  }
  if (hlo_numel(x) == 0) {
    int64_t dims[TT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) dims[i] = i < 2 ? x->dims[i] : target[i - 2];
    tt_ret(l, 0, hlo_splat(b, x->dtype, 0, x->rank, dims));
    return;
  }
  x = hlo_convert(b, x, dtype);
  for (int i = n_target - 1; i >= 0; i--) {
    const int dim = 2 + i, scale_arg = first_scale + i;
    axis_t a = {.filter = filter, .f64 = dtype == TT_F64 || byte, .align = align, .in = x->dims[dim], .out = target[i]};
    if (backward) {
      a.backward = true;
      a.f64 = a.f64 && !nearest;
      a.in = target[i];
      a.out = x->dims[dim];
    }
    if (byte && a.in == a.out) continue;
    if (tt_has(l, scale_arg)) a.given = tt_f64(l, scale_arg);
    table_t table, back;
    if (!make_table(b, &a, &table)) return;
    const int64_t k = repeat_factor(&table);
    if (k > 0) {
      if (k > 1) x = backward ? sum_runs(b, x, dim, k) : repeat_dim(b, x, dim, k);
      continue;
    }
    if (backward && !transpose_table(b, &table, &back)) return;
    x = byte ? apply_byte_table(b, x, dim, &table) : apply_table(b, x, dim, backward ? &back : &table);
  }
  tt_ret(l, 0, x);
}

enum { BACKWARD = 0x100 };

static void lower_nearest(tt_lower_t* l) {
  const bool backward = (tt_row(l)->kind & BACKWARD) != 0;
  resize(l, backward, false, backward ? 3 : 2);
}

static void lower_interpolate(tt_lower_t* l) {
  const bool backward = (tt_row(l)->kind & BACKWARD) != 0;
  resize(l, backward, tt_bool(l, backward ? 3 : 2), backward ? 4 : 3);
}

#define NEAREST_ROW(name, kind_) {name, .lower = lower_nearest, .kind = (kind_), .fixed = 0x7cu}
#define FILTER_ROW(name, kind_) {name, .lower = lower_interpolate, .kind = (kind_), .fixed = 0x7cu}
static const tt_op_row_t k_rows[] = {
    NEAREST_ROW("upsample_nearest1d", NEAREST),
    NEAREST_ROW("upsample_nearest2d", NEAREST),
    NEAREST_ROW("upsample_nearest3d", NEAREST),
    NEAREST_ROW("_upsample_nearest_exact1d", NEAREST_EXACT),
    NEAREST_ROW("_upsample_nearest_exact2d", NEAREST_EXACT),
    NEAREST_ROW("_upsample_nearest_exact3d", NEAREST_EXACT),
    NEAREST_ROW("upsample_nearest1d_backward", NEAREST | BACKWARD),
    NEAREST_ROW("upsample_nearest2d_backward", NEAREST | BACKWARD),
    NEAREST_ROW("upsample_nearest3d_backward", NEAREST | BACKWARD),
    NEAREST_ROW("_upsample_nearest_exact1d_backward", NEAREST_EXACT | BACKWARD),
    NEAREST_ROW("_upsample_nearest_exact2d_backward", NEAREST_EXACT | BACKWARD),
    NEAREST_ROW("_upsample_nearest_exact3d_backward", NEAREST_EXACT | BACKWARD),
    FILTER_ROW("upsample_linear1d", LINEAR),
    FILTER_ROW("upsample_bilinear2d", LINEAR),
    FILTER_ROW("upsample_trilinear3d", LINEAR),
    FILTER_ROW("upsample_bicubic2d", CUBIC),
    FILTER_ROW("_upsample_bilinear2d_aa", LINEAR_AA),
    FILTER_ROW("_upsample_bicubic2d_aa", CUBIC_AA),
    FILTER_ROW("_upsample_lanczos2d_aa", LANCZOS_AA),
    FILTER_ROW("upsample_linear1d_backward", LINEAR | BACKWARD),
    FILTER_ROW("upsample_bilinear2d_backward", LINEAR | BACKWARD),
    FILTER_ROW("upsample_trilinear3d_backward", LINEAR | BACKWARD),
    FILTER_ROW("upsample_bicubic2d_backward", CUBIC | BACKWARD),
    FILTER_ROW("_upsample_bilinear2d_aa_backward", LINEAR_AA | BACKWARD),
    FILTER_ROW("_upsample_bicubic2d_aa_backward", CUBIC_AA | BACKWARD),
};
TT_OP_FAMILY(upsample, k_rows)
