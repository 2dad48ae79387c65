// Matrix products: mm, bmm, the add… forms, dot products, linear and the low-precision products.
//
// Depends on: ops/nn.h.
// Threads: as op.h.
// Half-precision products are summed in f32 and rounded once, after alpha, beta and bias. beta == 0 means "ignore
// self", NaN and all, also when beta is only known at run time.
#include "ops/nn.h"

// Refuses the dtypes that PyTorch's CPU kernels have no product for, in their words.
static hlo_t product_in(tt_lower_t* l, int arg, const char* kernel) {
  hlo_t x = tt_in(l, arg);
  tt_dtype_t d = x->dtype;
  const char* refused = d == TT_BOOL ? "Bool" : d == TT_U16 ? "UInt16" : d == TT_U32 ? "UInt32" : d == TT_U64 ? "UInt64"
                                                                                                              : NULL;
  if (refused != NULL) return hlo_fail(tt_b(l), TT_UNIMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, refused);
  // Narrow integers wrap at the end just as well, and 32 bits are what matrix units and compilers know.
  return tt_is_int(d) && tt_dtype_size(d) < 4 ? hlo_convert(tt_b(l), x, TT_I32) : x;
}

static hlo_t bmm(tt_lower_t* l, hlo_t lhs, hlo_t rhs) {
  static const int64_t zero[] = {0}, one[] = {1}, two[] = {2};
  return tt_dot(l, lhs, rhs, 1, zero, zero, 1, two, one);
}

// The one result; row kind: number of an out_dtype argument, 0 when there is none.
static void ret_product(tt_lower_t* l, hlo_t value) {
  int at = tt_row(l)->kind;
  if (at > 0 && tt_dtype_arg(l, at) != TT_DT_NONE) tt_ret(l, 0, hlo_convert(tt_b(l), value, tt_dtype_arg(l, at)));
  else tt_ret_like(l, 0, value, 0);
}

static void lower_mm(tt_lower_t* l) {
  ret_product(l, tt_mm(l, product_in(l, 0, "addmm_impl_cpu_"), product_in(l, 1, "addmm_impl_cpu_")));
}

static void lower_bmm(tt_lower_t* l) {
  ret_product(l, bmm(l, product_in(l, 0, "bmm"), product_in(l, 1, "bmm")));
}

static void lower_mv(tt_lower_t* l) {
  tt_ret_like(l, 0, tt_mm(l, product_in(l, 0, "addmv_impl_cpu"), product_in(l, 1, "addmv_impl_cpu")), 0);
}

// beta * self + alpha * product, in the product's dtype. |zero_alpha|: alpha == 0 hides the product's NaNs (BLAS).
static hlo_t combine(tt_lower_t* l, hlo_t self, hlo_t product, int beta_arg, int alpha_arg, bool zero_alpha) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = product->dtype;
  if (!tt_scalar_is_one(l, alpha_arg)) {
    hlo_t alpha = tt_scalar(l, alpha_arg, d), zero = hlo_scalar(b, d, 0);
    product = hlo_multiply(b, alpha, product);
    if (zero_alpha) product = hlo_select(b, hlo_compare(b, HLO_EQ, alpha, zero), zero, product);
  }
  self = hlo_convert(b, self, d);
  if (!tt_scalar_is_one(l, beta_arg)) {
    hlo_t beta = tt_scalar(l, beta_arg, d), zero = hlo_scalar(b, d, 0);
    self = hlo_select(b, hlo_compare(b, HLO_EQ, beta, zero), zero, hlo_multiply(b, beta, self));
  }
  return hlo_add(b, self, product);
}

// addmm, addmv and their out_dtype forms, in which the dtype precedes beta.
static void lower_addmm(tt_lower_t* l) {
  hlo_t product = tt_mm(l, product_in(l, 1, "addmm_impl_cpu_"), product_in(l, 2, "addmm_impl_cpu_"));
  int beta = tt_row(l)->kind > 0 ? 4 : 3;
  ret_product(l, tt_to_out_dims(l, 0, combine(l, tt_in(l, 0), product, beta, beta + 1, true)));
}

static void lower_addmm_activation(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t product = tt_mm(l, product_in(l, 1, "addmm_impl_cpu_"), product_in(l, 2, "addmm_impl_cpu_"));
  hlo_t x = combine(l, tt_in(l, 0), product, 3, 4, true);
  if (!tt_bool(l, 5)) {
    hlo_t zero = hlo_scalar(b, x->dtype, 0);
    tt_ret_like(l, 0, hlo_select(b, hlo_compare(b, HLO_LE, x, zero), zero, x), 0);
    return;
  }
  // Phi(x) through erfc keeps the digits of the left tail that 1 + erf(x) would cancel.
  hlo_t tail = hlo_erfc(b, tt_times(b, x, -0.70710678118654752440));
  tt_ret_like(l, 0, hlo_multiply(b, tt_times(b, x, 0.5), tail), 0);
}

static void lower_baddbmm(tt_lower_t* l) {
  hlo_t product = bmm(l, product_in(l, 1, "baddbmm"), product_in(l, 2, "baddbmm"));
  int beta = tt_row(l)->kind > 0 ? 4 : 3;
  ret_product(l, combine(l, tt_in(l, 0), product, beta, beta + 1, false));
}

static void lower_addbmm(tt_lower_t* l) {
  static const int64_t left[] = {0, 2}, right[] = {0, 1};
  hlo_t lhs = product_in(l, 1, "addbmm"), rhs = product_in(l, 2, "addbmm");
  hlo_t product = tt_dot(l, lhs, rhs, 0, NULL, NULL, 2, left, right);
  tt_ret_like(l, 0, combine(l, tt_in(l, 0), product, 3, 4, false), 0);
}

static void lower_addr(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t d = tt_math_dtype(l, 0);
  hlo_t column = hlo_unsqueeze(b, tt_in_as(l, 1, d), 1), row = hlo_unsqueeze(b, tt_in_as(l, 2, d), 0);
  if (d == TT_BOOL) {
    hlo_t product = hlo_and_(b, hlo_and_(b, tt_scalar(l, 4, d), column), row);
    hlo_t self = hlo_and_(b, tt_scalar(l, 3, d), tt_in_as(l, 0, d));
    tt_ret(l, 0, hlo_or_(b, self, product));
    return;
  }
  hlo_t y = tt_to_out_dims(l, 0, combine(l, tt_in(l, 0), hlo_multiply(b, column, row), 3, 4, false));
  tt_ret(l, 0, hlo_convert(b, y, tt_out_dtype(l, 0)));
}

// dot and vdot; row kind 1 conjugates the left operand.
static void lower_dot(tt_lower_t* l) {
  static const int64_t zero[] = {0};
  hlo_t lhs = product_in(l, 0, "dot"), rhs = product_in(l, 1, "dot");
  if (tt_row(l)->kind == 1) lhs = tt_conj(tt_b(l), lhs);
  tt_ret_like(l, 0, tt_dot(l, lhs, rhs, 0, NULL, NULL, 1, zero, zero), 0);
}

// linear(input, weight, bias): weight is [out, in], or [in] for a result without the last dim.
static void lower_linear(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = product_in(l, 0, "addmm_impl_cpu_"), w = product_in(l, 1, "addmm_impl_cpu_");
  int64_t lhs[] = {x->rank - 1}, rhs[] = {w->rank - 1};
  hlo_t y = tt_dot(l, x, w, 0, NULL, NULL, 1, lhs, rhs);
  if (tt_has(l, 2)) y = hlo_add(b, y, tt_in_as(l, 2, y->dtype));
  tt_ret_like(l, 0, y, 0);
}

// linear_backward(input, grad_output, weight, mask)
static void lower_linear_backward(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), g = tt_in(l, 1), w = tt_in(l, 2);
  int64_t leading[TT_MAX_RANK], last[] = {g->rank - 1}, zero[] = {0};
  int n = g->rank - 1;
  for (int d = 0; d < n; d++) leading[d] = d;
  tt_ret(l, 2, NULL);  // None unless asked for
  if (tt_mask_bit(l, 3, 0)) tt_ret_like(l, 0, tt_dot(l, g, w, 0, NULL, NULL, 1, last, zero), 0);
  if (!tt_mask_bit(l, 3, 1) && !tt_mask_bit(l, 3, 2)) return;
  // PyTorch returns both when it asks for one.
  tt_ret_like(l, 1, tt_dot(l, g, x, 0, NULL, NULL, n, leading, leading), 2);
  tt_ret_like(l, 2, hlo_reduce(b, hlo_convert(b, g, tt_opmath(g->dtype)), HLO_R_ADD, n, leading), 2);
}

static void lower_int_mm(tt_lower_t* l) {
  static const int64_t one[] = {1}, zero[] = {0};
  hlo_builder_t* b = tt_b(l);
  hlo_t lhs = tt_in(l, 0), rhs = tt_in(l, 1);
  if (lhs->dtype != rhs->dtype || (tt_caps(l) & TT_CAP_SLOW_SMALL_CONV)) {
    lhs = hlo_convert(b, lhs, TT_I32);
    rhs = hlo_convert(b, rhs, TT_I32);
  }
  tt_ret(l, 0, hlo_dot_general(b, lhs, rhs, 0, NULL, NULL, 1, one, zero, TT_I32));
}

// ---------------------------------------------------------------- scaled (f8) products
// Repeats each element of |scale| along |dim| so that it covers |size| elements: one scale per block.
static hlo_t repeat_blocks(hlo_builder_t* b, hlo_t scale, int dim, int64_t size) {
  int64_t have = scale->dims[dim];
  if (have == size || have == 1 || have == 0) return scale;
  int64_t block = (size + have - 1) / have, dims[3], map[2], n = 0;
  for (int d = 0; d < 2; d++) {
    map[d] = n;
    dims[n++] = scale->dims[d];
    if (d == dim) dims[n++] = block;
  }
  hlo_t wide = hlo_broadcast_in_dim(b, scale, 3, dims, map);
  int64_t flat[2] = {scale->dims[0], scale->dims[1]};
  flat[dim] = have * block;
  return hlo_slice_dim(b, hlo_reshape(b, wide, 2, flat), dim, 0, size, 1);
}

// A scale along the contracted dim goes onto its operand; any other commutes with the product.
static hlo_t apply_scale(hlo_builder_t* b, hlo_t x, hlo_t scale, int contract_dim, hlo_t* out_after) {
  scale = hlo_convert(b, scale, TT_F32);
  if (hlo_numel(scale) == 1) scale = hlo_reshape(b, scale, 0, NULL);
  *out_after = NULL;
  if (scale->rank < 2 || scale->dims[contract_dim] == 1) {
    *out_after = scale->rank < 2 ? scale : repeat_blocks(b, scale, 1 - contract_dim, x->dims[1 - contract_dim]);
    return x;
  }
  scale = repeat_blocks(b, repeat_blocks(b, scale, 0, x->dims[0]), 1, x->dims[1]);
  return hlo_multiply(b, hlo_convert(b, x, TT_F32), scale);
}

// (self, mat2) with the given scales; |bias|: number of that argument.
static hlo_t scaled_product(tt_lower_t* l, hlo_t scale_a, hlo_t scale_b, int bias) {
  hlo_builder_t* b = tt_b(l);
  hlo_t after_a, after_b, self = tt_in(l, 0), mat2 = tt_in(l, 1);
  if (self->rank != 2 || mat2->rank != 2 || self->dims[1] != mat2->dims[0])
    return hlo_fail(b, TT_INVALID_ARGUMENT, "mat1 and mat2 must be matrices whose shapes can be multiplied");
  hlo_t lhs = apply_scale(b, tt_in(l, 0), scale_a, 1, &after_a);
  hlo_t rhs = apply_scale(b, tt_in(l, 1), scale_b, 0, &after_b);
  if (lhs->dtype != rhs->dtype) {
    lhs = hlo_convert(b, lhs, TT_F32);
    rhs = hlo_convert(b, rhs, TT_F32);
  }
  hlo_t y = tt_mm(l, lhs, rhs);
  if (after_a != NULL) y = hlo_multiply(b, y, after_a);
  if (after_b != NULL) y = hlo_multiply(b, y, after_b);
  return tt_has(l, bias) ? hlo_add(b, y, tt_in_as(l, bias, TT_F32)) : y;
}

// e4m3fn has no infinity: what is too large becomes its largest value, as in the libraries that PyTorch calls.
static hlo_t saturated(hlo_builder_t* b, hlo_t y, tt_dtype_t out) {
  if (out == TT_F8E4M3FN) y = hlo_clamp(b, hlo_scalar(b, y->dtype, -448), y, hlo_scalar(b, y->dtype, 448));
  return hlo_convert(b, y, out);
}

// _scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)
static void lower_scaled_mm(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t y = scaled_product(l, tt_in(l, 2), tt_in(l, 3), 4);
  tt_dtype_t out = tt_dtype_arg(l, 6) != TT_DT_NONE ? tt_dtype_arg(l, 6) : tt_in(l, 0)->dtype;
  if (tt_has(l, 5) && tt_dtype_size(out) == 1) y = hlo_multiply(b, y, hlo_reshape(b, tt_in_as(l, 5, TT_F32), 0, NULL));
  tt_ret(l, 0, saturated(b, y, out));
}

// _scaled_mm_v2(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim,
// use_fast_accum); recipes 0 and 1 are one scale and one a row (or column).
static void lower_scaled_mm_v2(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  bool plain = true;
  for (int i = 2; i <= 5; i += 3) {
    int n, n_swizzle;
    const int64_t *recipe = tt_ints(l, i + 1, &n), *swizzle = tt_ints(l, i + 2, &n_swizzle);
    plain = plain && tt_list_len(l, i) == 1 && n == 1 && recipe[0] <= 1 && (n_swizzle == 0 || swizzle[0] == 0);
  }
  if (!plain) {
    tt_ret(l, 0, hlo_fail(b, TT_DECLINED, "_scaled_mm_v2: only scales of the whole matrix, of rows and of columns"));
    return;
  }
  hlo_t y = scaled_product(l, tt_in_list(l, 2, 0), tt_in_list(l, 5, 0), 8);
  tt_dtype_t out = tt_dtype_arg(l, 9);
  tt_ret(l, 0, saturated(b, y, out != TT_DT_NONE ? out : tt_in(l, 0)->dtype));
}

// ---------------------------------------------------------------- grouped products
// One pass over ragged dim 0 of |a| in tiles that never span two groups: at most (tiles + groups) small products.
typedef struct ragged_t {
  hlo_t a, w, ends;   // [M, K], [G, K, N], i32[G] cumulative ends
  int64_t tile;
} ragged_t;

static hlo_t at_group(hlo_builder_t* b, hlo_t w, hlo_t group) {
  hlo_t zero = hlo_scalar_int(b, TT_I32, 0), starts[3] = {group, zero, zero};
  int64_t sizes[3] = {1, w->dims[1], w->dims[2]};
  return hlo_reshape(b, hlo_dynamic_slice(b, w, starts, sizes), 2, sizes + 1);
}

// Loop state: next row, group, result. Gives rows [row, limit) of this tile and the state's next row and group.
static void ragged_step(hlo_builder_t* b, const ragged_t* r, hlo_t row, hlo_t group, hlo_t* out_start, hlo_t* out_mask,
                        hlo_t* out_row, hlo_t* out_group) {
  int64_t m = r->a->dims[0], one[] = {1}, dims[] = {r->tile, 1};
  hlo_t end = hlo_reshape(b, hlo_dynamic_slice(b, r->ends, &group, one), 0, NULL);
  hlo_t limit = hlo_minimum(b, hlo_add(b, row, hlo_scalar_int(b, TT_I32, r->tile)), end);
  hlo_t start = hlo_minimum(b, row, hlo_scalar_int(b, TT_I32, m - r->tile));
  hlo_t index = hlo_add(b, hlo_iota(b, TT_I32, 2, dims, 0), start);
  *out_mask = hlo_and_(b, hlo_compare(b, HLO_GE, index, row), hlo_compare(b, HLO_LT, index, limit));
  *out_start = start;
  hlo_t done = hlo_compare(b, HLO_GE, limit, end);
  *out_group = hlo_add(b, group, hlo_convert(b, done, TT_I32));
  *out_row = hlo_maximum(b, row, limit);  // an empty group may end before |row|
}

static hlo_region_t* ragged_cond(hlo_builder_t* b, int64_t groups, hlo_t result) {
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_region_arg(b, cond, TT_I32, 0, NULL);
  hlo_t group = hlo_region_arg(b, cond, TT_I32, 0, NULL);
  hlo_region_arg(b, cond, result->dtype, result->rank, result->dims);
  hlo_t more = hlo_compare(b, HLO_LT, group, hlo_scalar_int(b, TT_I32, groups));
  hlo_region_end(b, cond, 1, &more);
  return cond;
}

// |contracted|: |w| is [M, N] and the groups are stacked along a new dim: out[g] = a[rows of g]^T w[rows of g].
static hlo_t ragged_product(tt_lower_t* l, const ragged_t* r, bool contracted) {
  hlo_builder_t* b = tt_b(l);
  static const int64_t first[] = {0};
  int64_t groups = r->ends->dims[0], m = r->a->dims[0], k = r->a->dims[1], n = r->w->dims[r->w->rank - 1];
  int64_t flat[] = {m, n}, stacked[] = {groups, k, n}, a_tile[] = {r->tile, k}, n_tile[] = {r->tile, n};
  tt_dtype_t wide = tt_opmath(r->a->dtype);
  hlo_t zero = hlo_scalar_int(b, TT_I32, 0), init[3] = {zero, zero, NULL}, next[3], out[3];
  init[2] = hlo_splat(b, wide, 0, contracted ? 3 : 2, contracted ? stacked : flat);
  if (m == 0 || groups == 0) return init[2];
  hlo_region_t* cond = ragged_cond(b, groups, init[2]);
  hlo_region_t* body = hlo_region_begin(b);
  hlo_t row = hlo_region_arg(b, body, TT_I32, 0, NULL), group = hlo_region_arg(b, body, TT_I32, 0, NULL);
  hlo_t result = hlo_region_arg(b, body, wide, init[2]->rank, init[2]->dims), start, mask;
  ragged_step(b, r, row, group, &start, &mask, &next[0], &next[1]);
  hlo_t starts[2] = {start, zero}, tile = hlo_dynamic_slice(b, r->a, starts, a_tile);
  if (contracted) {
    hlo_t nothing = hlo_scalar(b, r->a->dtype, 0), g_starts[3] = {group, zero, zero};
    int64_t one_group[] = {1, k, n};
    hlo_t w = hlo_select(b, mask, hlo_dynamic_slice(b, r->w, starts, n_tile), nothing);
    hlo_t sum = tt_dot(l, hlo_select(b, mask, tile, nothing), w, 0, NULL, NULL, 1, first, first);
    hlo_t old = hlo_dynamic_slice(b, result, g_starts, one_group);
    next[2] = hlo_dynamic_update_slice(b, result, hlo_add(b, old, hlo_reshape(b, sum, 3, one_group)), g_starts);
  } else {
    hlo_t y = tt_mm(l, tile, at_group(b, r->w, group)), old = hlo_dynamic_slice(b, result, starts, n_tile);
    next[2] = hlo_dynamic_update_slice(b, result, hlo_select(b, mask, y, old), starts);
  }
  hlo_region_end(b, body, 3, next);
  hlo_while(b, 3, init, cond, body, out);
  return out[2];
}

// The four layouts of a grouped product of |a| and |w| with cumulative ends |offs|.
static hlo_t grouped(tt_lower_t* l, hlo_t a, hlo_t w, hlo_t offs) {
  hlo_builder_t* b = tt_b(l);
  if (a->rank == 3 && w->rank == 3) return bmm(l, a, w);
  if (offs == NULL) return hlo_fail(b, TT_INVALID_ARGUMENT, "grouped product of a 2-D tensor needs offsets");
  ragged_t r = {.a = a, .w = w, .ends = hlo_convert(b, offs, TT_I32)};
  bool columns = a->rank == 3;
  if (columns) {  // ragged columns of w: the transposed problem has ragged rows
    r.a = hlo_swap_dims(b, w, 0, 1);
    r.w = hlo_swap_dims(b, a, 1, 2);
  } else if (w->rank == 2) {
    r.a = hlo_swap_dims(b, a, 0, 1);
  }
  r.tile = r.a->dims[0] < 128 ? r.a->dims[0] : 128;
  hlo_t y = ragged_product(l, &r, !columns && w->rank == 2);
  return columns ? hlo_swap_dims(b, y, 0, 1) : y;
}

// _grouped_mm(self, mat2, offs, bias, out_dtype)
static void lower_grouped_mm(tt_lower_t* l) {
  hlo_t y = grouped(l, tt_in(l, 0), tt_in(l, 1), tt_in_or_null(l, 2));
  if (tt_has(l, 3)) y = hlo_add(tt_b(l), y, tt_in_as(l, 3, y->dtype));
  tt_ret_like(l, 0, y, 0);
}

// ---------------------------------------------------------------- _trilinear
// A factor of a product of several: an array whose dim i is number |label[i]| of the common index space.
typedef struct factor_t {
  hlo_t value;
  int label[TT_MAX_RANK];
} factor_t;

static bool has_label(const factor_t* f, int label) {
  for (int i = 0; i < f->value->rank; i++)
    if (f->label[i] == label) return true;
  return false;
}

// Spreads argument |arg| over the index space (|expand| lists the dims it lacks) and drops its dims of size 1.
static factor_t trilinear_factor(tt_lower_t* l, int arg, int expand_arg, int space) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in_as(l, arg, tt_opmath(tt_in(l, arg)->dtype));
  factor_t f = {.value = x};
  int64_t dims[TT_MAX_RANK];
  int n_expand, n = 0, from = 0;
  const int64_t* expand = tt_ints(l, expand_arg, &n_expand);
  for (int label = 0; label < space && from < x->rank; label++) {
    bool absent = false;
    for (int i = 0; i < n_expand; i++) absent |= expand[i] == label;
    if (absent) continue;
    if (x->dims[from] != 1) {
      f.label[n] = label;
      dims[n++] = x->dims[from];
    }
    from++;
  }
  f.value = hlo_reshape(b, x, n, dims);
  return f;
}

// Product of two factors, summed over the shared labels whose |keep| is false.
static factor_t multiply_factors(tt_lower_t* l, const factor_t* x, const factor_t* y, const bool* keep) {
  int64_t xb[TT_MAX_RANK], yb[TT_MAX_RANK], xc[TT_MAX_RANK], yc[TT_MAX_RANK];
  int nb = 0, nc = 0, n = 0;
  factor_t out;
  for (int i = 0; i < x->value->rank; i++)
    for (int j = 0; j < y->value->rank; j++) {
      if (x->label[i] != y->label[j]) continue;
      if (keep[x->label[i]]) {
        xb[nb] = i, yb[nb++] = j;
        out.label[n++] = x->label[i];
      } else {
        xc[nc] = i, yc[nc++] = j;
      }
    }
  for (int i = 0; i < x->value->rank; i++)
    if (!has_label(y, x->label[i])) out.label[n++] = x->label[i];
  for (int j = 0; j < y->value->rank; j++)
    if (!has_label(x, y->label[j])) out.label[n++] = y->label[j];
  out.value = tt_dot(l, x->value, y->value, nb, xb, yb, nc, xc, yc);
  return out;
}

// Sums what is left of the unwanted labels (they belonged to one factor only) and puts the others in order, with dims
// of size 1 where no factor has the label.
static hlo_t arrange(hlo_builder_t* b, factor_t* y, int space, const bool* wanted) {
  int64_t drop[TT_MAX_RANK], perm[TT_MAX_RANK], dims[TT_MAX_RANK];
  int n_drop = 0, n = 0, at = 0, rank = 0;
  for (int i = 0; i < y->value->rank; i++) {
    if (wanted[y->label[i]]) y->label[n++] = y->label[i];
    else drop[n_drop++] = i;
  }
  hlo_t value = n_drop > 0 ? hlo_reduce(b, y->value, HLO_R_ADD, n_drop, drop) : y->value;
  for (int d = 0; d < space; d++) {
    if (wanted[d]) dims[rank++] = 1;
    for (int i = 0; i < n; i++) {
      if (y->label[i] != d) continue;
      perm[at++] = i;
      dims[rank - 1] = value->dims[i];
    }
  }
  return hlo_reshape(b, hlo_transpose(b, value, perm), rank, dims);
}

// _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim)
static void lower_trilinear(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n_expand, n_sum, space;
  tt_ints(l, 3, &n_expand);
  space = tt_in(l, 0)->rank + n_expand;
  const int64_t* sum = tt_ints(l, 6, &n_sum);
  bool wanted[TT_MAX_RANK], keep[TT_MAX_RANK];
  for (int d = 0; d < space; d++) wanted[d] = true;
  for (int i = 0; i < n_sum; i++) wanted[hlo_dim(b, sum[i], space)] = false;
  factor_t f[3];
  for (int i = 0; i < 3; i++) f[i] = trilinear_factor(l, i, 3 + i, space);
  for (int d = 0; d < space; d++) keep[d] = wanted[d] || has_label(&f[2], d);
  factor_t y = multiply_factors(l, &f[0], &f[1], keep);
  y = multiply_factors(l, &y, &f[2], wanted);
  tt_ret_like(l, 0, arrange(b, &y, space, wanted), 0);
}

static const tt_op_row_t k_rows[] = {
    {.name = "mm", .lower = lower_mm},
    {.name = "mm.dtype", .lower = lower_mm, .kind = 2},
    {.name = "bmm", .lower = lower_bmm},
    {.name = "bmm.dtype", .lower = lower_bmm, .kind = 2},
    {.name = "mv", .lower = lower_mv},
    {.name = "addmm", .lower = lower_addmm, .unit = TT_ARG(3) | TT_ARG(4)},
    {.name = "addmm.dtype", .lower = lower_addmm, .kind = 3, .unit = TT_ARG(4) | TT_ARG(5)},
    {.name = "addmv", .lower = lower_addmm, .unit = TT_ARG(3) | TT_ARG(4)},
    {.name = "_addmm_activation", .lower = lower_addmm_activation, .unit = TT_ARG(3) | TT_ARG(4)},
    {.name = "baddbmm", .lower = lower_baddbmm, .unit = TT_ARG(3) | TT_ARG(4)},
    {.name = "baddbmm.dtype", .lower = lower_baddbmm, .kind = 3, .unit = TT_ARG(4) | TT_ARG(5)},
    {.name = "addbmm", .lower = lower_addbmm, .unit = TT_ARG(3) | TT_ARG(4)},
    {.name = "addr", .lower = lower_addr, .unit = TT_ARG(3) | TT_ARG(4)},
    {.name = "dot", .lower = lower_dot},
    {.name = "vdot", .lower = lower_dot, .kind = 1},
    {.name = "linear", .lower = lower_linear},
    {.name = "linear_backward", .lower = lower_linear_backward},
    {.name = "_int_mm", .lower = lower_int_mm},
    // The meta kernels ask for the layouts of one vendor's library.
    {.name = "_scaled_mm", .lower = lower_scaled_mm, .flags = TT_OP_NO_META},
    {.name = "_scaled_mm_v2", .lower = lower_scaled_mm_v2, .flags = TT_OP_NO_META},
    {.name = "_grouped_mm", .lower = lower_grouped_mm, .flags = TT_OP_NO_META},  // the meta kernel refuses all but BF16
    {.name = "_trilinear", .lower = lower_trilinear, .flags = TT_OP_NO_META},
};
TT_OP_FAMILY(matmul, k_rows)
