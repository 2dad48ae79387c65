// Sorting, control flow, custom calls, random bits: the ops whose regions are more than a reducer, or that stand alone.
#include "hlo/ir.h"

// ---------------------------------------------------------------- sort
void hlo_sort(hlo_builder_t* b, int n, const hlo_t* xs, int dim, bool stable, hlo_region_t* comparator, hlo_t* out) {
  hlo_poison_all(b, n, out);
  if (!hlo_usable(b, "sort", n, xs)) return;
  int d = n > 0 ? hlo_dim(b, dim, xs[0]->rank) : 0;
  hlo_type_t* types = hlo_alloc(b, (size_t)n * sizeof *types);
  hlo_type_t* args = hlo_alloc(b, (size_t)n * 2 * sizeof *args);
  if (b->error || !types || !args) return;
  for (int i = 0; i < n; i++) {
    if (!hlo_same_dims(xs[i], xs[0])) {
      hlo_fail(b, TT_INTERNAL, "sort: operands %s and %s differ in shape", hlo_text_shape(b, xs[0]),
               hlo_text_shape(b, xs[i]));
      return;
    }
    types[i] = hlo_type_of(xs[i]);
    args[2 * i] = args[2 * i + 1] = (hlo_type_t){xs[i]->dtype, 0, xs[i]->dims};
  }
  hlo_type_t verdict = {TT_BOOL, 0, NULL};
  if (!hlo_region_seal(b, "sort", comparator, true, 2 * n, args, 1, &verdict)) return;
  if (n == 0 || xs[0]->rank == 0 || hlo_numel(xs[0]) == 0) {  // in order already
    for (int i = 0; i < n; i++) out[i] = xs[i];
    return;
  }
  const char* attrs = hlo_text(b, "dimension = %d : i64, is_stable = %s", d, stable ? "true" : "false");
  hlo_op_results(b, hlo_op(b, "stablehlo.sort", n, xs, attrs, 1, &comparator, n, types), n, out);
}

// (l, r, l index, r index) -> "l before r": NaN is larger than everything, -0 equals 0.
static hlo_region_t* order_region(hlo_builder_t* b, tt_dtype_t dtype, bool descending, tt_dtype_t index_dtype) {
  hlo_region_t* region = hlo_region_begin(b);
  hlo_t l = hlo_region_arg(b, region, dtype, 0, NULL), r = hlo_region_arg(b, region, dtype, 0, NULL);
  (void)hlo_region_arg(b, region, index_dtype, 0, NULL);
  (void)hlo_region_arg(b, region, index_dtype, 0, NULL);
  hlo_t before = hlo_compare(b, descending ? HLO_GT : HLO_LT, l, r);
  if (tt_is_float(dtype)) {
    hlo_t large = descending ? l : r, small = descending ? r : l;
    hlo_t nan_only = hlo_and_(b, hlo_is_nan(b, large), hlo_compare(b, HLO_EQ, small, small));
    before = hlo_or_(b, before, nan_only);
  }
  hlo_region_end(b, region, 1, &before);
  return region;
}

void hlo_sort_with_index(hlo_builder_t* b, hlo_t x, int dim, bool descending, hlo_t* out_values, hlo_t* out_indices) {
  *out_values = *out_indices = hlo_poison(b);
  if (!hlo_usable(b, "sort", 1, &x)) return;
  if (tt_is_complex(x->dtype)) {
    hlo_fail(b, TT_UNIMPLEMENTED, "Sort does not support complex dtypes on CPU");
    return;
  }
  int d = hlo_dim(b, dim, x->rank);
  if (b->error) return;
  if (x->rank == 0 || x->dims[d] < 2 || hlo_numel(x) == 0) {
    *out_values = x;
    *out_indices = hlo_splat(b, TT_I64, 0, x->rank, x->dims);
    return;
  }
  // 32-bit indices when they suffice: less to move, and 64-bit ones are slow on TPUs.
  tt_dtype_t index_dtype = x->dims[d] <= INT32_MAX ? TT_I32 : TT_I64;
  hlo_t in[2] = {x, hlo_iota(b, index_dtype, x->rank, x->dims, d)}, out[2];
  hlo_sort(b, 2, in, d, true, order_region(b, x->dtype, descending, index_dtype), out);
  *out_values = out[0];
  *out_indices = hlo_convert(b, out[1], TT_I64);
}

// ---------------------------------------------------------------- control flow
void hlo_while(hlo_builder_t* b, int n, const hlo_t* init, hlo_region_t* cond, hlo_region_t* body, hlo_t* out) {
  hlo_poison_all(b, n, out);
  if (!hlo_usable(b, "while", n, init)) return;
  hlo_type_t* types = hlo_alloc(b, (size_t)n * sizeof *types);
  if (!types) return;
  for (int i = 0; i < n; i++) types[i] = hlo_type_of(init[i]);
  hlo_type_t verdict = {TT_BOOL, 0, NULL};
  if (!hlo_region_seal(b, "while condition", cond, false, n, types, 1, &verdict) ||
      !hlo_region_seal(b, "while body", body, false, n, types, n, types)) {
    return;
  }
  hlo_region_t* regions[2] = {cond, body};
  hlo_op_results(b, hlo_op(b, "stablehlo.while", n, init, NULL, 2, regions, n, types), n, out);
}

void hlo_if(hlo_builder_t* b, hlo_t pred, hlo_region_t* then_region, hlo_region_t* else_region, int n, hlo_t* out) {
  hlo_poison_all(b, n, out);
  if (!hlo_usable(b, "if", 1, &pred)) return;
  if (pred->dtype != TT_BOOL || pred->rank != 0) {
    hlo_fail(b, TT_INTERNAL, "if: the predicate is %s, not a 0-d bool", hlo_text_shape(b, pred));
    return;
  }
  hlo_type_t* types = hlo_alloc(b, (size_t)n * sizeof *types);
  if (!types) return;
  if (!then_region || then_region->n_results != n) {
    hlo_fail(b, TT_INTERNAL, "if: its regions must have %d results", n);
    return;
  }
  for (int i = 0; i < n; i++) types[i] = hlo_type_of(then_region->results[i]);
  if (!hlo_region_seal(b, "if", then_region, false, 0, NULL, n, types) ||
      !hlo_region_seal(b, "else", else_region, false, 0, NULL, n, types)) {
    return;
  }
  hlo_region_t* regions[2] = {then_region, else_region};
  hlo_op_results(b, hlo_op(b, "stablehlo.if", 1, &pred, NULL, 2, regions, n, types), n, out);
}

// ---------------------------------------------------------------- custom calls
void hlo_custom_call(hlo_builder_t* b, const char* target, int n_in, const hlo_t* in, int n_out,
                     const tt_dtype_t* dtypes, const int* ranks, const int64_t* const* dims, const char* config,
                     hlo_t* out) {
  hlo_poison_all(b, n_out, out);
  if (!hlo_usable(b, "custom_call", n_in, in)) return;
  hlo_type_t* types = hlo_alloc(b, (size_t)n_out * sizeof *types);
  if (!types) return;
  for (int i = 0; i < n_out; i++) types[i] = (hlo_type_t){dtypes[i], ranks[i], dims[i]};
  tt_strbuf_t s;  // quotes the target as MLIR does, which for names is as JSON does
  tt_strbuf_init(&s);
  tt_strbuf_puts(&s, "call_target_name = ");
  tt_strbuf_json(&s, target);
  // A dictionary is the typed FFI's form of a configuration.
  if (config) tt_strbuf_printf(&s, ", api_version = 4 : i32, backend_config = %s", config);
  const char* attrs = hlo_text_or_fail(b, s.failed ? NULL : tt_arena_copy(&b->arena, s.data, s.len + 1));
  tt_strbuf_deinit(&s);
  hlo_op_results(b, hlo_op(b, "stablehlo.custom_call", n_in, in, attrs, 0, NULL, n_out, types), n_out, out);
}

// ---------------------------------------------------------------- random
hlo_t hlo_rng_bits(hlo_builder_t* b, hlo_t state, tt_dtype_t dtype, int rank, const int64_t* dims, hlo_t* out_state) {
  *out_state = hlo_poison(b);
  if (!hlo_usable(b, "rng_bits", 1, &state) || !hlo_check_dims(b, "rng_bits", rank, dims)) return hlo_poison(b);
  if (state->dtype != TT_U64 || state->rank != 1 || state->dims[0] != 2 || !tt_is_unsigned(dtype)) {
    return hlo_fail(b, TT_INTERNAL, "rng_bits: state %s, bits of %s", hlo_text_shape(b, state), tt_dtype_name(dtype));
  }
  for (int i = 0; i < rank; i++) {
    if (dims[i] > 0) continue;
    *out_state = state;
    return hlo_splat(b, dtype, 0, rank, dims);
  }
  hlo_type_t types[2] = {hlo_type_of(state), {dtype, rank, dims}};
  hlo_t out[2];
  const char* attrs = "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>";
  hlo_op_results(b, hlo_op(b, "stablehlo.rng_bit_generator", 1, &state, attrs, 0, NULL, 2, types), 2, out);
  *out_state = out[0];
  return out[1];
}
