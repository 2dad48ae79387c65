// Scaled dot-product attention, forward and backward, and the fused multi-head and encoder-layer inference ops.
//
// Depends on: ops/nn.h.
// Threads: as op.h.
// Scores, softmax and sums are in f32 for halves. A row whose keys are all masked gives zeros. Heads may be grouped: G
// query heads share one key/value head. The backward pass recomputes the probabilities from the log-sum-exp, and the
// dropout mask from a seed that the forward pass drew and returned: nothing of size L x S is kept in between.
#include <math.h>
#include "ops/nn.h"

typedef struct attention_t {
  tt_dtype_t in, d;         // input dtype; dtype of the arithmetic
  int64_t B, H, G, L, S, E, V;  // H key/value heads, G query heads for each
  hlo_t q, k, v;            // [B, H, G*L, E], [B, H, S, E], [B, H, S, V]
  hlo_t scale;              // 0-d
  hlo_t keep;               // 0-d f32; NULL without dropout
} attention_t;

static const int64_t k_heads[] = {0, 1}, k_two[] = {2}, k_three[] = {3};

static hlo_t dot_last(tt_lower_t* l, hlo_t x, hlo_t y) {  // [.., m, e] x [.., n, e]
  return tt_dot(l, x, y, 2, k_heads, k_heads, 1, k_three, k_three);
}
static hlo_t dot_plain(tt_lower_t* l, hlo_t x, hlo_t y) {  // [.., m, k] x [.., k, n]
  return tt_dot(l, x, y, 2, k_heads, k_heads, 1, k_three, k_two);
}
static hlo_t dot_first(tt_lower_t* l, hlo_t x, hlo_t y) {  // [.., k, m] x [.., k, n]
  return tt_dot(l, x, y, 2, k_heads, k_heads, 1, k_two, k_two);
}

// Probabilities as an operand beside a tensor of dtype |in|: halves where matrix units want them, else f32 beside f32.
static hlo_t as_factor(tt_lower_t* l, hlo_t x, tt_dtype_t in) {
  return (tt_caps(l) & TT_CAP_SLOW_SMALL_CONV) ? x : hlo_convert(tt_b(l), x, in);
}
static hlo_t beside(tt_lower_t* l, hlo_t x, hlo_t other) { return hlo_convert(tt_b(l), x, other->dtype); }

// x [batch…, heads, rows, last] as [B, H, per * rows, last].
static hlo_t as_heads(hlo_builder_t* b, hlo_t x, int64_t B, int64_t H) {
  int64_t rows = x->rank >= 3 ? x->dims[x->rank - 3] * x->dims[x->rank - 2] / (H > 0 ? H : 1) : 0;
  int64_t dims[] = {B, H, rows, x->rank > 0 ? x->dims[x->rank - 1] : 1};
  return hlo_reshape(b, x, 4, dims);
}

// Reads query, key and value from argument |at| on; false (and a failure) when the shapes are none of attention's.
static bool read_attention(tt_lower_t* l, int at, int dropout_arg, int scale_arg, attention_t* a) {
  hlo_builder_t* b = tt_b(l);
  hlo_t q = tt_in(l, at), k = tt_in(l, at + 1), v = tt_in(l, at + 2);
  int r = q->rank;
  if (r < 3 || r > 4 || k->rank != r || v->rank != r || k->dims[r - 3] == 0 || q->dims[r - 3] % k->dims[r - 3] != 0 ||
      v->dims[r - 3] != k->dims[r - 3] || (r == 4 && (k->dims[0] != q->dims[0] || v->dims[0] != q->dims[0]))) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "attention: unsupported shapes of query, key and value");
    return false;
  }
  a->in = q->dtype;
  a->d = tt_opmath(q->dtype);
  a->B = r == 4 ? q->dims[0] : 1;
  a->H = k->dims[r - 3];
  a->G = q->dims[r - 3] / a->H;
  a->L = q->dims[r - 2];
  a->S = k->dims[r - 2];
  a->E = q->dims[r - 1];
  a->V = v->dims[r - 1];
  a->q = as_heads(b, q, a->B, a->H);
  a->k = as_heads(b, k, a->B, a->H);
  a->v = as_heads(b, v, a->B, a->H);
  a->scale = tt_has(l, scale_arg) ? tt_scalar(l, scale_arg, a->d)
                                  : hlo_scalar(b, a->d, a->E > 0 ? 1 / sqrt((double)a->E) : 1);
  a->keep = NULL;
  if (tt_f64(l, dropout_arg) != 0) a->keep = hlo_scalar(b, TT_F32, 1 - tt_f64(l, dropout_arg));
  return true;
}

// x, broadcastable to [B, H*G, L, S], as [B, H, G*L, S].
static hlo_t score_like(hlo_builder_t* b, hlo_t x, const attention_t* a) {
  int64_t full[] = {a->B, a->H * a->G, a->L, a->S}, dims[] = {a->B, a->H, a->G * a->L, a->S};
  return hlo_reshape(b, hlo_broadcast_to(b, x, 4, full), 4, dims);
}

// Scores with scale, bias (added; a bool one keeps where true) and causal mask.
static hlo_t masked_scores(tt_lower_t* l, const attention_t* a, hlo_t bias, bool causal) {
  hlo_builder_t* b = tt_b(l);
  hlo_t s = hlo_multiply(b, dot_last(l, a->q, a->k), a->scale), masked = hlo_scalar(b, a->d, -INFINITY);
  if (bias != NULL && bias->dtype == TT_BOOL) s = hlo_select(b, score_like(b, bias, a), s, masked);
  else if (bias != NULL) s = hlo_add(b, s, score_like(b, hlo_convert(b, bias, a->d), a));
  if (!causal) return s;
  int64_t dims[] = {a->L, a->S};
  hlo_t seen = hlo_compare(b, HLO_GE, hlo_iota(b, TT_I32, 2, dims, 0), hlo_iota(b, TT_I32, 2, dims, 1));
  return hlo_select(b, score_like(b, seen, a), s, masked);
}

// Dropout mask times 1 / keep, in the scores' dims, from a seed.
static hlo_t dropout_factor(hlo_builder_t* b, const attention_t* a, hlo_t seed) {
  int64_t dims[] = {a->B, a->H, a->G * a->L, a->S}, one[] = {1};
  hlo_t words[] = {hlo_reshape(b, hlo_bitcast(b, seed, TT_U64), 1, one), hlo_splat(b, TT_U64, 0, 1, one)}, next;
  hlo_t bits = hlo_rng_bits(b, hlo_concat(b, 2, words, 0), TT_U32, 4, dims, &next);
  hlo_t mask = hlo_convert(b, tt_keep_mask(b, bits, a->keep), TT_F32), zero = hlo_scalar(b, TT_F32, 0);
  hlo_t scale = hlo_divide(b, hlo_scalar(b, TT_F32, 1), a->keep);
  scale = hlo_select(b, hlo_compare(b, HLO_EQ, a->keep, zero), zero, scale);
  return hlo_convert(b, hlo_multiply(b, mask, scale), a->d);
}

static hlo_t over_rows(hlo_builder_t* b, hlo_t v, hlo_t like) { return tt_over(b, v, like, 1, k_three); }

// exp(s - max), its row sums, and log-sum-exp; rows without any finite score give zeros and -inf.
static hlo_t unnormalised(hlo_builder_t* b, hlo_t s, hlo_t* out_sum, hlo_t* out_lse) {
  hlo_t zero = hlo_scalar(b, s->dtype, 0), lowest = hlo_scalar(b, s->dtype, -INFINITY);
  hlo_t top = hlo_reduce(b, s, HLO_R_MAX, 1, k_three);
  top = hlo_select(b, hlo_compare(b, HLO_EQ, top, lowest), zero, top);
  hlo_t p = hlo_exponential(b, hlo_subtract(b, s, over_rows(b, top, s)));
  *out_sum = hlo_reduce(b, p, HLO_R_ADD, 1, k_three);
  *out_lse = hlo_add(b, top, hlo_log(b, *out_sum));
  return p;
}

// Attention's output [B, H, G*L, V] in the arithmetic's dtype and log-sum-exp [B, H, G*L].
static hlo_t attend(tt_lower_t* l, const attention_t* a, hlo_t bias, bool causal, hlo_t seed, hlo_t* out_lse) {
  hlo_builder_t* b = tt_b(l);
  hlo_t sum, p = unnormalised(b, masked_scores(l, a, bias, causal), &sum, out_lse);
  if (a->keep != NULL) p = hlo_multiply(b, p, dropout_factor(b, a, seed));
  p = as_factor(l, p, a->in);
  hlo_t y = dot_plain(l, p, beside(l, a->v, p)), zero = hlo_scalar(b, a->d, 0);
  hlo_t inverse = hlo_divide(b, hlo_scalar(b, a->d, 1), sum);
  inverse = hlo_select(b, hlo_compare(b, HLO_EQ, sum, zero), zero, inverse);
  return hlo_multiply(b, y, over_rows(b, inverse, y));
}

static hlo_t out_shaped(hlo_builder_t* b, hlo_t y, hlo_t q, int64_t last) {
  int64_t dims[TT_MAX_RANK];
  for (int d = 0; d < q->rank; d++) dims[d] = d < q->rank - 1 ? q->dims[d] : last;
  return hlo_convert(b, hlo_reshape(b, y, q->rank, dims), q->dtype);
}

// [_scaled_dot_product_fused_attention_overrideable](query, key, value, attn_bias, dropout_p, is_causal,
// return_debug_mask, scale) -> (output, logsumexp, None, None, max_q, max_k, seed, offset, None), and
// tpu::attention, the same without return_debug_mask -> (output, logsumexp, seed). Row kind: place of the seed.
static void lower_fused_attention(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int at_seed = tt_row(l)->kind;
  bool alone = at_seed == 2;
  attention_t a;
  if (!read_attention(l, 0, 4, alone ? 6 : 7, &a)) return;
  hlo_t seed = hlo_scalar_int(b, TT_I64, 0), lse;
  if (a.keep != NULL) seed = hlo_bitcast(b, tt_random_bits(l, TT_U64, 0, NULL), TT_I64);
  hlo_t y = attend(l, &a, tt_in_or_null(l, 3), tt_bool(l, 5), seed, &lse);
  int64_t rows[] = {a.B, a.H * a.G, a.L};
  if (!alone) {
    tt_ret(l, at_seed + 2, NULL);
    tt_ret(l, at_seed + 1, seed);
  }
  tt_ret(l, 0, out_shaped(b, y, tt_in(l, 0), a.V));
  tt_ret(l, 1, hlo_reshape(b, lse, 3, rows));
  tt_ret(l, at_seed, seed);
}

// _scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, attn_mask, scale)
static void lower_flash_attention(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  attention_t a;
  hlo_t lse;
  if (!read_attention(l, 0, 3, 6, &a)) return;
  a.keep = NULL;  // the CPU's op refuses dropout
  hlo_t y = attend(l, &a, tt_in_or_null(l, 5), tt_bool(l, 4), NULL, &lse);
  int64_t rows[] = {a.B, a.H * a.G, a.L};
  tt_ret(l, 0, out_shaped(b, y, tt_in(l, 0), a.V));
  tt_ret(l, 1, hlo_reshape(b, lse, 3, rows));
}

// Sums |x| [B, H*G, L, S] over the dims along which |like| was broadcast.
static hlo_t sum_to(hlo_builder_t* b, hlo_t x, hlo_t like) {
  int64_t dims[4];
  int n = 0;
  for (int d = 0; d < 4; d++) {
    int from = d - (4 - like->rank);
    if (from < 0 || (like->dims[from] == 1 && x->dims[d] != 1)) dims[n++] = d;
  }
  if (n > 0) x = hlo_reduce(b, x, HLO_R_ADD, n, dims);
  return hlo_reshape(b, x, like->rank, like->dims);
}

typedef struct gradients_t {
  hlo_t q, k, v, bias;
} gradients_t;

// |at|: argument number of query; grad_out is argument 0.
static gradients_t attention_gradients(tt_lower_t* l, const attention_t* a, int at, hlo_t bias, hlo_t out, hlo_t lse,
                                       bool causal, hlo_t seed) {
  hlo_builder_t* b = tt_b(l);
  hlo_t go = as_heads(b, tt_in(l, 0), a->B, a->H), zero = hlo_scalar(b, a->d, 0);
  hlo_t lowest = hlo_scalar(b, a->d, -INFINITY);
  int64_t rows[] = {a->B, a->H, a->G * a->L};
  hlo_t s = masked_scores(l, a, bias, causal), sum;
  // A log-sum-exp that was kept in f32 has lost f64's digits.
  if (a->d == TT_F64 && lse->dtype != TT_F64) unnormalised(b, s, &sum, &lse);
  lse = hlo_reshape(b, hlo_convert(b, lse, a->d), 3, rows);
  hlo_t empty = over_rows(b, hlo_compare(b, HLO_EQ, lse, lowest), s);
  hlo_t p = hlo_select(b, empty, zero, hlo_exponential(b, hlo_subtract(b, s, over_rows(b, lse, s))));
  hlo_t dropped = p, dp = dot_last(l, go, a->v);
  if (a->keep != NULL) {
    hlo_t factor = dropout_factor(b, a, seed);
    dropped = hlo_multiply(b, p, factor);
    dp = hlo_multiply(b, dp, factor);
  }
  hlo_t wide_go = hlo_convert(b, go, a->d), wide_out = hlo_convert(b, as_heads(b, out, a->B, a->H), a->d);
  hlo_t delta = hlo_reduce(b, hlo_multiply(b, wide_go, wide_out), HLO_R_ADD, 1, k_three);
  hlo_t ds = hlo_multiply(b, p, hlo_subtract(b, dp, over_rows(b, delta, dp)));
  hlo_t narrow_ds = as_factor(l, hlo_multiply(b, ds, a->scale), a->in);
  dropped = as_factor(l, dropped, a->in);
  gradients_t g;
  g.q = out_shaped(b, dot_plain(l, narrow_ds, beside(l, a->k, narrow_ds)), tt_in(l, at), a->E);
  g.k = out_shaped(b, dot_first(l, narrow_ds, beside(l, a->q, narrow_ds)), tt_in(l, at + 1), a->E);
  g.v = out_shaped(b, dot_first(l, dropped, beside(l, go, dropped)), tt_in(l, at + 2), a->V);
  g.bias = NULL;
  if (bias != NULL && bias->dtype != TT_BOOL) {
    int64_t full[] = {a->B, a->H * a->G, a->L, a->S};
    g.bias = hlo_convert(b, sum_to(b, hlo_reshape(b, ds, 4, full), bias), bias->dtype);
  }
  return g;
}

// …_overrideable_backward(grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q,
// cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset, scale)
static void lower_fused_attention_backward(tt_lower_t* l) {
  attention_t a;
  if (!read_attention(l, 1, 12, 16, &a)) return;
  hlo_t seed = a.keep != NULL ? tt_in(l, 14) : NULL;
  gradients_t g = attention_gradients(l, &a, 1, tt_in_or_null(l, 4), tt_in(l, 6), tt_in(l, 7), tt_bool(l, 13), seed);
  tt_ret(l, 0, g.q);
  tt_ret(l, 1, g.k);
  tt_ret(l, 2, g.v);
  tt_ret(l, 3, g.bias);
}

// …_flash_attention_for_cpu_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask,
// scale)
static void lower_flash_attention_backward(tt_lower_t* l) {
  attention_t a;
  if (!read_attention(l, 1, 6, 9, &a)) return;
  a.keep = NULL;
  gradients_t g = attention_gradients(l, &a, 1, tt_in_or_null(l, 8), tt_in(l, 4), tt_in(l, 5), tt_bool(l, 7), NULL);
  tt_ret(l, 0, g.q);
  tt_ret(l, 1, g.k);
  tt_ret(l, 2, g.v);
}

// ---------------------------------------------------------------- multi-head attention and encoder layer (inference)
// x [B, T, in] W^T + bias with rows [from, to) of W [out, in].
static hlo_t project(tt_lower_t* l, hlo_t x, hlo_t w, hlo_t bias, int64_t from, int64_t to) {
  hlo_builder_t* b = tt_b(l);
  static const int64_t one[] = {1};
  hlo_t y = tt_dot(l, x, hlo_slice_dim(b, w, 0, from, to, 1), 0, NULL, NULL, 1, k_two, one);
  return hlo_add(b, y, hlo_convert(b, hlo_slice_dim(b, bias, 0, from, to, 1), y->dtype));
}

typedef struct mha_t {
  int64_t heads, width;
  hlo_t qkv_weight, qkv_bias, proj_weight, proj_bias;
  hlo_t mask;          // NULL: none; a bool one masks where true
  int64_t mask_type;   // 0 [T, S], 1 [B, S], else broadcastable to [B, H, T, S]
} mha_t;

static hlo_t split_heads(hlo_builder_t* b, hlo_t x, int64_t heads) {
  static const int64_t perm[] = {0, 2, 1, 3};
  int64_t dims[] = {x->dims[0], x->dims[1], heads, x->dims[2] / heads};
  return hlo_transpose(b, hlo_reshape(b, x, 4, dims), perm);
}

static hlo_t mha_mask(hlo_builder_t* b, const mha_t* m) {
  if (m->mask == NULL) return NULL;
  hlo_t mask = m->mask->dtype == TT_BOOL ? hlo_not_(b, m->mask) : m->mask;
  if (m->mask_type != 1 || mask->rank != 2) return mask;
  int64_t dims[] = {mask->dims[0], 1, 1, mask->dims[1]};
  return hlo_reshape(b, mask, 4, dims);
}

// Multi-head attention of [B, T, D] values; |out_weights| may be NULL: not wanted, else [B, H, T, S].
static hlo_t multi_head(tt_lower_t* l, const mha_t* m, hlo_t q, hlo_t k, hlo_t v, hlo_t* out_weights) {
  static const int64_t perm[] = {0, 2, 1, 3};
  hlo_builder_t* b = tt_b(l);
  int64_t D = m->width;
  attention_t a = {.in = q->dtype, .d = tt_opmath(q->dtype), .B = q->dims[0], .H = m->heads, .G = 1, .L = q->dims[1],
                   .S = k->dims[1], .E = D / m->heads, .V = D / m->heads};
  a.q = hlo_convert(b, split_heads(b, project(l, q, m->qkv_weight, m->qkv_bias, 0, D), m->heads), a.in);
  a.k = hlo_convert(b, split_heads(b, project(l, k, m->qkv_weight, m->qkv_bias, D, 2 * D), m->heads), a.in);
  a.v = hlo_convert(b, split_heads(b, project(l, v, m->qkv_weight, m->qkv_bias, 2 * D, 3 * D), m->heads), a.in);
  a.scale = hlo_scalar(b, a.d, a.E > 0 ? 1 / sqrt((double)a.E) : 1);
  hlo_t mask = mha_mask(b, m), lse, y = attend(l, &a, mask, false, NULL, &lse);
  if (out_weights != NULL) {
    hlo_t s = masked_scores(l, &a, mask, false), sum, p = unnormalised(b, s, &sum, &lse);
    *out_weights = hlo_divide(b, p, over_rows(b, sum, p));
  }
  int64_t dims[] = {q->dims[0], q->dims[1], D};
  y = hlo_convert(b, hlo_reshape(b, hlo_transpose(b, y, perm), 3, dims), a.in);
  return project(l, y, m->proj_weight, m->proj_bias, 0, m->proj_weight->dims[0]);
}

static bool check_mha(tt_lower_t* l, const mha_t* m, hlo_t q) {
  if (q->rank == 3 && m->heads > 0 && m->width % m->heads == 0) return true;
  hlo_fail(tt_b(l), TT_INVALID_ARGUMENT,
           "multi-head attention: expected a 3-D input and a width divisible by the heads");
  return false;
}

// _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
// mask, need_weights, average_attn_weights, mask_type) -> (out, weights or None)
static void lower_multi_head(tt_lower_t* l) {
  static const int64_t one[] = {1};
  hlo_builder_t* b = tt_b(l);
  mha_t m = {.width = tt_int(l, 3), .heads = tt_int(l, 4), .qkv_weight = tt_in(l, 5), .qkv_bias = tt_in(l, 6),
             .proj_weight = tt_in(l, 7), .proj_bias = tt_in(l, 8), .mask = tt_in_or_null(l, 9),
             .mask_type = tt_int_or(l, 12, 2)};
  hlo_t q = tt_in(l, 0), weights = NULL;
  if (!check_mha(l, &m, q)) return;
  hlo_t y = multi_head(l, &m, q, tt_in(l, 1), tt_in(l, 2), tt_bool(l, 10) ? &weights : NULL);
  if (weights != NULL && tt_bool(l, 11))
    weights = hlo_divide(b, hlo_reduce(b, weights, HLO_R_ADD, 1, one), hlo_scalar(b, weights->dtype, (double)m.heads));
  tt_ret(l, 0, hlo_convert(b, y, q->dtype));
  tt_ret(l, 1, weights != NULL ? hlo_convert(b, weights, q->dtype) : NULL);
}

static hlo_t layer_norm(tt_lower_t* l, hlo_t x, int weight_arg, hlo_t eps) {
  hlo_builder_t* b = tt_b(l);
  hlo_t mean, var;
  tt_moments(b, x, 1, k_two, &mean, &var);
  hlo_t rstd = hlo_rsqrt(b, hlo_add(b, var, eps));
  x = hlo_multiply(b, hlo_subtract(b, x, tt_over(b, mean, x, 1, k_two)), tt_over(b, rstd, x, 1, k_two));
  x = hlo_multiply(b, x, tt_in_as(l, weight_arg, x->dtype));
  return hlo_add(b, x, tt_in_as(l, weight_arg + 1, x->dtype));
}

static hlo_t activation(hlo_builder_t* b, hlo_t x, bool gelu) {
  if (!gelu) return hlo_maximum(b, x, hlo_scalar(b, x->dtype, 0));
  return hlo_multiply(b, tt_times(b, x, 0.5), hlo_erfc(b, tt_times(b, x, -0.70710678118654752440)));
}

// _transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
// norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2,
// ffn_bias_2, mask, mask_type)
static void lower_encoder_layer(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  mha_t m = {.width = tt_int(l, 1), .heads = tt_int(l, 2), .qkv_weight = tt_in(l, 3), .qkv_bias = tt_in(l, 4),
             .proj_weight = tt_in(l, 5), .proj_bias = tt_in(l, 6), .mask = tt_in_or_null(l, 18),
             .mask_type = tt_int_or(l, 19, 2)};
  hlo_t src = tt_in(l, 0), w1 = tt_in(l, 14), w2 = tt_in(l, 16);
  if (!check_mha(l, &m, src)) return;
  tt_dtype_t in = src->dtype, d = tt_opmath(in);
  hlo_t eps = tt_scalar(l, 9, d), x = hlo_convert(b, src, d), y = x;
  bool norm_first = tt_bool(l, 8);
  if (norm_first) y = layer_norm(l, y, 10, eps);
  y = hlo_convert(b, y, in);
  x = hlo_add(b, x, multi_head(l, &m, y, y, y, NULL));
  if (!norm_first) x = layer_norm(l, x, 10, eps);
  y = hlo_convert(b, norm_first ? layer_norm(l, x, 12, eps) : x, in);
  y = activation(b, project(l, y, w1, tt_in(l, 15), 0, w1->dims[0]), tt_bool(l, 7));
  x = hlo_add(b, x, project(l, hlo_convert(b, y, in), w2, tt_in(l, 17), 0, w2->dims[0]));
  if (!norm_first) x = layer_norm(l, x, 12, eps);
  tt_ret(l, 0, hlo_convert(b, x, in));
}

static const tt_op_row_t k_rows[] = {
    {.name = "_scaled_dot_product_fused_attention_overrideable", .lower = lower_fused_attention, .kind = 6,
     .flags = TT_OP_RANDOM, .fixed = TT_ARG(4)},
    {.name = "tpu::attention", .lower = lower_fused_attention, .kind = 2, .flags = TT_OP_RANDOM | TT_OP_NO_META,
     .fixed = TT_ARG(4)},
    {.name = "_scaled_dot_product_fused_attention_overrideable_backward", .lower = lower_fused_attention_backward,
     .fixed = TT_ARG(12)},
    {.name = "_scaled_dot_product_flash_attention_for_cpu", .lower = lower_flash_attention, .fixed = TT_ARG(3)},
    {.name = "_scaled_dot_product_flash_attention_for_cpu_backward", .lower = lower_flash_attention_backward,
     .fixed = TT_ARG(6)},
    {.name = "_native_multi_head_attention", .lower = lower_multi_head},
    {.name = "_transformer_encoder_layer_fwd", .lower = lower_encoder_layer},
};
TT_OP_FAMILY(attention, k_rows)
