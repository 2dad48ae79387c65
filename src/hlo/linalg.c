// Dots, convolutions, factorisations, transforms.
#include "hlo/ir.h"

// ---------------------------------------------------------------- dot
// The dims of |v| that are neither batch nor contracted, appended to |dims|.
static int free_dims(hlo_t v, const bool* batch, const bool* contract, int rank, int64_t* dims) {
  for (int i = 0; i < v->rank; i++) {
    if (!batch[i] && !contract[i]) dims[rank++] = v->dims[i];
  }
  return rank;
}

static bool check_pairs(hlo_builder_t* b, hlo_t lhs, hlo_t rhs, int n, const int64_t* l, const int64_t* r) {
  for (int i = 0; i < n; i++) {
    if (lhs->dims[l[i]] == rhs->dims[r[i]]) continue;
    hlo_fail(b, TT_INVALID_ARGUMENT, "dot: dim %lld of %s and dim %lld of %s differ in size", (long long)l[i],
             hlo_text_shape(b, lhs), (long long)r[i], hlo_text_shape(b, rhs));
    return false;
  }
  return true;
}

static bool wrap_all(hlo_builder_t* b, int n, const int64_t* dims, int rank, int64_t* out) {
  for (int i = 0; i < n; i++) out[i] = hlo_dim(b, dims[i], rank);
  return !b->error;
}

// A dot's dims, checked and wrapped: of each side which are batch and contracted, as lists in pairs and as sets.
typedef struct dot_side_t {
  bool batch[HLO_MAX_RANK], contract[HLO_MAX_RANK];
  int64_t batch_dims[HLO_MAX_RANK], contract_dims[HLO_MAX_RANK];
} dot_side_t;

static bool dot_side(hlo_builder_t* b, hlo_t v, int n_batch, const int64_t* batch, int n_contract,
                     const int64_t* contract, dot_side_t* out) {
  return hlo_dim_set(b, "dot", n_batch, batch, v->rank, out->batch) &&
         hlo_dim_set(b, "dot", n_contract, contract, v->rank, out->contract) &&
         wrap_all(b, n_batch, batch, v->rank, out->batch_dims) &&
         wrap_all(b, n_contract, contract, v->rank, out->contract_dims);
}

// |v| spread over |dims|: batch dims first, contracted ones from |contract_at|, free ones from |free_at|.
static hlo_t spread(hlo_builder_t* b, hlo_t v, const dot_side_t* side, int n_batch, int n_contract, int contract_at,
                    int free_at, int rank, const int64_t* dims) {
  int64_t map[HLO_MAX_RANK];
  for (int i = 0; i < n_batch; i++) map[side->batch_dims[i]] = i;
  for (int i = 0; i < n_contract; i++) map[side->contract_dims[i]] = contract_at + i;
  for (int i = 0; i < v->rank; i++) {
    if (!side->batch[i] && !side->contract[i]) map[i] = free_at++;
  }
  return hlo_broadcast_in_dim(b, v, rank, dims, map);
}

// A product over [batch, lhs free, contracted, rhs free], then a sum: what TPUs, which have no 64-bit dots, can
// compile. As fast as XLA's CPU dot of 64-bit integers, and of this order of dims the fastest.
static hlo_t dot_by_sum(hlo_builder_t* b, hlo_t lhs, hlo_t rhs, const dot_side_t* l, const dot_side_t* r, int n_batch,
                        int n_contract) {
  int64_t dims[3 * HLO_MAX_RANK], summed[HLO_MAX_RANK];
  for (int i = 0; i < n_batch; i++) dims[i] = lhs->dims[l->batch_dims[i]];
  int at = free_dims(lhs, l->batch, l->contract, n_batch, dims);
  for (int i = 0; i < n_contract; i++) {
    summed[i] = at + i;
    dims[at + i] = lhs->dims[l->contract_dims[i]];
  }
  int rank = free_dims(rhs, r->batch, r->contract, at + n_contract, dims);
  hlo_t x = spread(b, lhs, l, n_batch, n_contract, at, n_batch, rank, dims);
  hlo_t y = spread(b, rhs, r, n_batch, n_contract, at, at + n_contract, rank, dims);
  return hlo_reduce(b, hlo_multiply(b, x, y), HLO_R_ADD, n_contract, summed);
}

hlo_t hlo_dot_general(hlo_builder_t* b, hlo_t lhs, hlo_t rhs, int n_batch, const int64_t* lhs_batch,
                      const int64_t* rhs_batch, int n_contract, const int64_t* lhs_contract,
                      const int64_t* rhs_contract, tt_dtype_t result) {
  hlo_t in[2] = {lhs, rhs};
  dot_side_t l, r;
  if (!hlo_usable(b, "dot", 2, in) || !dot_side(b, lhs, n_batch, lhs_batch, n_contract, lhs_contract, &l) ||
      !dot_side(b, rhs, n_batch, rhs_batch, n_contract, rhs_contract, &r) ||
      !check_pairs(b, lhs, rhs, n_batch, l.batch_dims, r.batch_dims) ||
      !check_pairs(b, lhs, rhs, n_contract, l.contract_dims, r.contract_dims)) {
    return hlo_poison(b);
  }
  if (lhs->dtype != rhs->dtype) {
    return hlo_fail(b, TT_INTERNAL, "dot: operands are %s and %s; convert them first", tt_dtype_name(lhs->dtype),
                    tt_dtype_name(rhs->dtype));
  }
  if (!result) result = lhs->dtype;
  if (tt_is_integral(lhs->dtype) && (tt_dtype_size(lhs->dtype) == 8 || lhs->dtype == TT_BOOL)) {
    return hlo_convert(b, dot_by_sum(b, lhs, rhs, &l, &r, n_batch, n_contract), result);
  }
  int64_t dims[3 * HLO_MAX_RANK];
  for (int i = 0; i < n_batch; i++) dims[i] = lhs->dims[l.batch_dims[i]];
  int rank = free_dims(rhs, r.batch, r.contract, free_dims(lhs, l.batch, l.contract, n_batch, dims), dims);
  const char* numbers = hlo_text(
      b, "#stablehlo.dot<lhs_batching_dimensions = %s, rhs_batching_dimensions = %s, "
         "lhs_contracting_dimensions = %s, rhs_contracting_dimensions = %s>",
      hlo_text_list(b, n_batch, l.batch_dims), hlo_text_list(b, n_batch, r.batch_dims),
      hlo_text_list(b, n_contract, l.contract_dims), hlo_text_list(b, n_contract, r.contract_dims));
  const char* attrs = hlo_text(b, "dot_dimension_numbers = %s, %s", numbers, hlo_text_precision(b));
  return hlo_op1(b, "stablehlo.dot_general", 2, in, attrs, result, rank, dims);
}

hlo_t hlo_matmul(hlo_builder_t* b, hlo_t lhs, hlo_t rhs) {
  hlo_t in[2] = {lhs, rhs};
  if (!hlo_usable(b, "matmul", 2, in)) return hlo_poison(b);
  if (lhs->rank < 2 || lhs->rank != rhs->rank) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "matmul: %s and %s", hlo_text_shape(b, lhs), hlo_text_shape(b, rhs));
  }
  int64_t batch[HLO_MAX_RANK], l = lhs->rank - 1, r = rhs->rank - 2;
  for (int i = 0; i < lhs->rank - 2; i++) batch[i] = i;
  return hlo_dot_general(b, lhs, rhs, lhs->rank - 2, batch, batch, 1, &l, &r, TT_DT_NONE);
}

// ---------------------------------------------------------------- convolution
// Dim numbers of one of the three arrays: |a| and |c| are batch and feature (or out and in).
typedef struct conv_dims_t {
  int64_t a, c;
  int64_t spatial[HLO_MAX_RANK];
} conv_dims_t;

static bool conv_dims(hlo_builder_t* b, int n, bool use_default, int64_t a, int64_t c, const int64_t* spatial,
                      conv_dims_t* out) {
  bool seen[HLO_MAX_RANK];
  int64_t all[HLO_MAX_RANK];
  out->a = all[0] = use_default ? 0 : a;
  out->c = all[1] = use_default ? 1 : c;
  for (int i = 0; i < n; i++) out->spatial[i] = all[2 + i] = use_default || !spatial ? i + 2 : spatial[i];
  for (int i = 0; i < n + 2; i++) {
    if (all[i] >= 0) continue;
    hlo_fail(b, TT_INTERNAL, "convolution: a negative dim number");
    return false;
  }
  return hlo_dim_set(b, "convolution", n + 2, all, n + 2, seen);
}

// "[b, f, 0, 1]", the letter at each dim's place.
static const char* conv_text(hlo_builder_t* b, int n, const conv_dims_t* d, const char* a, const char* c) {
  const char* text = "[";
  for (int at = 0; at < n + 2; at++) {
    const char* comma = at ? ", " : "";
    if (at == d->a) {
      text = hlo_text(b, "%s%s%s", text, comma, a);
    } else if (at == d->c) {
      text = hlo_text(b, "%s%s%s", text, comma, c);
    } else {
      for (int i = 0; i < n; i++) {
        if (d->spatial[i] == at) text = hlo_text(b, "%s%s%d", text, comma, i);
      }
    }
  }
  return hlo_text(b, "%s]", text);
}

static int64_t or_one(const int64_t* v, int i) { return v ? v[i] : 1; }
static int64_t or_zero(const int64_t* v, int i) { return v ? v[i] : 0; }

static bool check_conv(hlo_builder_t* b, hlo_t lhs, hlo_t rhs, const hlo_conv_t* c, const conv_dims_t* l,
                       const conv_dims_t* r, int64_t groups, int64_t batch_groups) {
  for (int i = 0; i < c->n_spatial; i++) {
    if (or_one(c->stride, i) >= 1 && or_one(c->lhs_dilation, i) >= 1 && or_one(c->rhs_dilation, i) >= 1) continue;
    hlo_fail(b, TT_INVALID_ARGUMENT, "convolution: strides and dilations must be positive");
    return false;
  }
  int64_t out = rhs->dims[r->a];
  if (lhs->dtype == rhs->dtype && groups >= 1 && batch_groups >= 1 && lhs->dims[l->c] == rhs->dims[r->c] * groups &&
      out % groups == 0 && out % batch_groups == 0 && lhs->dims[l->a] % batch_groups == 0) {
    return true;
  }
  hlo_fail(b, TT_INVALID_ARGUMENT, "convolution: %s by %s in %lld groups and %lld batch groups",
           hlo_text_shape(b, lhs), hlo_text_shape(b, rhs), (long long)groups, (long long)batch_groups);
  return false;
}

static const char* conv_attrs(hlo_builder_t* b, const hlo_conv_t* c, const char* numbers, int64_t groups,
                              int64_t batch_groups) {
  int n = c->n_spatial;
  int64_t stride[HLO_MAX_RANK], lhs_dilation[HLO_MAX_RANK], rhs_dilation[HLO_MAX_RANK];
  const char* reversal = "";
  for (int i = 0; i < n; i++) {
    stride[i] = or_one(c->stride, i);
    lhs_dilation[i] = or_one(c->lhs_dilation, i);
    rhs_dilation[i] = or_one(c->rhs_dilation, i);
    reversal = hlo_text(b, "%s%s%s", reversal, i ? ", " : ": ", c->window_reversal ? "true" : "false");
  }
  return hlo_text(b,
                  "window_strides = %s, padding = %s, lhs_dilation = %s, rhs_dilation = %s, "
                  "window_reversal = array<i1%s>, dimension_numbers = %s, feature_group_count = %lld : i64, "
                  "batch_group_count = %lld : i64, %s",
                  hlo_text_array(b, n, stride), hlo_text_pairs(b, n, c->pad_lo, c->pad_hi),
                  hlo_text_array(b, n, lhs_dilation), hlo_text_array(b, n, rhs_dilation), reversal, numbers,
                  (long long)groups, (long long)batch_groups, hlo_text_precision(b));
}

hlo_t hlo_convolution(hlo_builder_t* b, hlo_t lhs, hlo_t rhs, const hlo_conv_t* c, tt_dtype_t result) {
  hlo_t in[2] = {lhs, rhs};
  if (!hlo_usable(b, "convolution", 2, in)) return hlo_poison(b);
  int n = c->n_spatial;
  if (n < 0 || lhs->rank != n + 2 || rhs->rank != n + 2) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "convolution: %s by %s with %d spatial dims", hlo_text_shape(b, lhs),
                    hlo_text_shape(b, rhs), n);
  }
  int64_t groups = c->feature_groups ? c->feature_groups : 1, batch_groups = c->batch_groups ? c->batch_groups : 1;
  bool use_default = c->lhs_batch == -1 || (c->lhs_batch == 0 && c->lhs_feature == 0);
  conv_dims_t l, r, o;
  if (!conv_dims(b, n, use_default, c->lhs_batch, c->lhs_feature, c->lhs_spatial, &l) ||
      !conv_dims(b, n, use_default, c->rhs_out, c->rhs_in, c->rhs_spatial, &r) ||
      !conv_dims(b, n, use_default, c->out_batch, c->out_feature, c->out_spatial, &o) ||
      !check_conv(b, lhs, rhs, c, &l, &r, groups, batch_groups)) {
    return hlo_poison(b);
  }
  int64_t dims[HLO_MAX_RANK];
  dims[o.a] = lhs->dims[l.a] / batch_groups;
  dims[o.c] = rhs->dims[r.a];
  for (int i = 0; i < n; i++) {
    dims[o.spatial[i]] = hlo_window_out(lhs->dims[l.spatial[i]], rhs->dims[r.spatial[i]], or_one(c->stride, i),
                                        or_one(c->lhs_dilation, i), or_one(c->rhs_dilation, i), or_zero(c->pad_lo, i),
                                        or_zero(c->pad_hi, i));
  }
  const char* numbers = hlo_text(b, "#stablehlo.conv<%sx%s->%s>", conv_text(b, n, &l, "b", "f"),
                                 conv_text(b, n, &r, "o", "i"), conv_text(b, n, &o, "b", "f"));
  return hlo_op1(b, "stablehlo.convolution", 2, in, conv_attrs(b, c, numbers, groups, batch_groups),
                 result ? result : lhs->dtype, n + 2, dims);
}

// ---------------------------------------------------------------- factorisations
static bool check_square(hlo_builder_t* b, const char* who, hlo_t x) {
  bool good = x->rank >= 2 && x->dims[x->rank - 1] == x->dims[x->rank - 2] &&
              (tt_is_float(x->dtype) || tt_is_complex(x->dtype));
  if (!good) hlo_fail(b, TT_INVALID_ARGUMENT, "%s: %s is no batch of square matrices", who, hlo_text_shape(b, x));
  return good;
}

hlo_t hlo_cholesky(hlo_builder_t* b, hlo_t x, bool lower) {
  if (!hlo_usable(b, "cholesky", 1, &x) || !check_square(b, "cholesky", x)) return hlo_poison(b);
  if (hlo_numel(x) == 0) return x;
  return hlo_op1(b, "stablehlo.cholesky", 1, &x, lower ? "lower = true" : "lower = false", x->dtype, x->rank, x->dims);
}

hlo_t hlo_triangular_solve(hlo_builder_t* b, hlo_t a, hlo_t rhs, bool left_side, bool lower, bool unit_diagonal,
                           int transpose) {
  static const char* const k_transposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  hlo_t in[2] = {a, rhs};
  if (!hlo_usable(b, "triangular_solve", 2, in) || !check_square(b, "triangular_solve", a)) return hlo_poison(b);
  bool fits = rhs->rank == a->rank && rhs->dtype == a->dtype && transpose >= 0 && transpose <= 2;
  for (int i = 0; fits && i < a->rank - 2; i++) fits = a->dims[i] == rhs->dims[i];
  if (!fits || rhs->dims[a->rank - (left_side ? 2 : 1)] != a->dims[a->rank - 1]) {
    return hlo_fail(b, TT_INVALID_ARGUMENT, "triangular_solve: %s with %s", hlo_text_shape(b, a),
                    hlo_text_shape(b, rhs));
  }
  if (hlo_numel(rhs) == 0) return rhs;
  const char* attrs = hlo_text(
      b, "left_side = %s, lower = %s, unit_diagonal = %s, transpose_a = #stablehlo<transpose %s>",
      left_side ? "true" : "false", lower ? "true" : "false", unit_diagonal ? "true" : "false",
      k_transposes[transpose]);
  return hlo_op1(b, "stablehlo.triangular_solve", 2, in, attrs, rhs->dtype, rhs->rank, rhs->dims);
}

// ---------------------------------------------------------------- fft
hlo_t hlo_fft(hlo_builder_t* b, hlo_t x, hlo_fft_t type, int n_lengths, const int64_t* lengths) {
  static const char* const k_types[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  if (!hlo_usable(b, "fft", 1, &x)) return hlo_poison(b);
  if (n_lengths < 1 || n_lengths > 3 || n_lengths > x->rank) {
    return hlo_fail(b, TT_UNIMPLEMENTED, "fft: %d transformed dims of %s", n_lengths, hlo_text_shape(b, x));
  }
  bool real_in = type == HLO_RFFT;
  if (real_in ? x->dtype != TT_F32 && x->dtype != TT_F64 : !tt_is_complex(x->dtype)) {
    return hlo_fail(b, TT_UNIMPLEMENTED, "fft: %s is not defined for %s", k_types[type], tt_dtype_name(x->dtype));
  }
  int64_t dims[HLO_MAX_RANK];
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  for (int i = 0; i < n_lengths; i++) {
    int at = x->rank - n_lengths + i;
    bool half = i == n_lengths - 1;
    int64_t want = half && type == HLO_IRFFT ? lengths[i] / 2 + 1 : lengths[i];
    if (lengths[i] < 1 || x->dims[at] != want) {
      return hlo_fail(b, TT_INVALID_ARGUMENT, "fft: lengths %s of %s", hlo_text_list(b, n_lengths, lengths),
                      hlo_text_shape(b, x));
    }
    if (half && type == HLO_RFFT) dims[at] = lengths[i] / 2 + 1;
    if (half && type == HLO_IRFFT) dims[at] = lengths[i];
  }
  bool wide = x->dtype == TT_C128 || x->dtype == TT_F64;
  tt_dtype_t out = type == HLO_IRFFT ? (wide ? TT_F64 : TT_F32) : wide ? TT_C128 : TT_C64;
  if (hlo_numel(x) == 0) return hlo_splat(b, out, 0, x->rank, dims);
  const char* attrs = hlo_text(b, "fft_type = #stablehlo<fft_type %s>, fft_length = %s", k_types[type],
                               hlo_text_array(b, n_lengths, lengths));
  return hlo_op1(b, "stablehlo.fft", 1, &x, attrs, out, x->rank, dims);
}
