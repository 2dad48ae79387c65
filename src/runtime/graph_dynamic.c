// Building graphs whose sizes are bounds: the operand of true sizes, windows that begin where the sizes say, checks.
#include <string.h>

#include "runtime/graph.h"

static tt_status_t value(tt_graph_t* g, int id, hlo_t* out) {
  if (g->lower) return tt_error(TT_FAILED_PRECONDITION, "a traced decomposition has no bounded sizes");
  return rt_graph_value(g, id, out);
}

tt_status_t tt_graph_sizes(tt_graph_t* g, int n, int* out_id) {
  const int64_t dims = n;
  *out_id = -1;
  if (g->lower) return tt_error(TT_FAILED_PRECONDITION, "a traced decomposition has no bounded sizes");
  return rt_graph_give(g, tt_emit_operand(g->e, (tt_operand_t){.kind = TT_OPERAND_SIZES}, TT_I64, 1, &dims), out_id);
}

// Value |x| and, along its |dim|, the place |start|.
static tt_status_t place_along(tt_graph_t* g, int x, int dim, int start, hlo_t* out_x, hlo_t* out_place) {
  TT_TRY(value(g, x, out_x));
  if (dim < 0 || dim >= (*out_x)->rank)
    return tt_error(TT_OUT_OF_RANGE, "dim %d of a value of rank %d", dim, (*out_x)->rank);
  return rt_graph_place(g, start, out_place);
}

tt_status_t tt_graph_slice(tt_graph_t* g, int x, int dim, int start, int64_t size, int* out_id) {
  hlo_t v, place;
  *out_id = -1;
  TT_TRY(place_along(g, x, dim, start, &v, &place));
  return rt_graph_give(g, hlo_slice_at(g->b, v, dim, place, size), out_id);
}

tt_status_t tt_graph_update(tt_graph_t* g, int x, int update, int dim, int start, int* out_id) {
  hlo_t v, u, place;
  *out_id = -1;
  TT_TRY(place_along(g, x, dim, start, &v, &place));
  TT_TRY(value(g, update, &u));
  return rt_graph_give(g, hlo_update_at(g->b, v, hlo_convert(g->b, u, v->dtype), dim, place), out_id);
}

// ---------------------------------------------------------------- factors
// |size| of a factor as 0-d of |like|'s dtype.
static tt_status_t factor_size(tt_graph_t* g, const tt_factor_t* f, tt_dtype_t dtype, hlo_t* out) {
  if (f->size < 0) {
    *out = hlo_scalar_int(g->b, dtype, f->bound);
    return NULL;
  }
  TT_TRY(value(g, f->size, out));
  *out = hlo_convert(g->b, hlo_reshape(g->b, *out, 0, NULL), dtype);
  return NULL;
}

// Product of the bounds; -1 when it is not a size.
static int64_t room(int n, const tt_factor_t* factors) {
  int64_t total = 1;
  for (int i = 0; i < n; i++)
    if (factors[i].bound < 0 || __builtin_mul_overflow(total, factors[i].bound, &total)) return -1;
  return total;
}

static hlo_t digit(hlo_builder_t* b, hlo_t index, int64_t inner, int64_t bound, bool outermost) {
  if (inner > 1) index = hlo_divide(b, index, hlo_scalar_int(b, index->dtype, inner));
  return outermost ? index : hlo_remainder(b, index, hlo_scalar_int(b, index->dtype, bound));
}

tt_status_t tt_graph_mask(tt_graph_t* g, int n, const tt_factor_t* factors, int* out_id) {
  *out_id = -1;
  int64_t total = room(n, factors), inner = total;
  if (n < 1 || total < 1) return tt_error(TT_INVALID_ARGUMENT, "a mask of %lld elements", (long long)total);
  tt_dtype_t dtype = total > INT32_MAX ? TT_I64 : TT_I32;
  hlo_t index = hlo_iota(g->b, dtype, 1, &total, 0), mask = NULL;
  for (int i = 0; i < n; i++) {
    inner /= factors[i].bound;
    if (factors[i].size < 0) continue;
    hlo_t size;
    TT_TRY(factor_size(g, &factors[i], dtype, &size));
    hlo_t in = hlo_compare(g->b, HLO_LT, digit(g->b, index, inner, factors[i].bound, i == 0), size);
    mask = mask ? hlo_and_(g->b, mask, in) : in;
  }
  return rt_graph_give(g, mask ? mask : hlo_splat(g->b, TT_BOOL, 1, 1, &total), out_id);
}

tt_status_t tt_graph_regroup(tt_graph_t* g, int x, int dim, int n_from, const tt_factor_t* from, int n_to,
                             const tt_factor_t* to, int* out_id) {
  hlo_builder_t* b = g->b;
  hlo_t v;
  *out_id = -1;
  TT_TRY(value(g, x, &v));
  int64_t before = room(n_from, from), after = room(n_to, to), inner = after;
  if (dim < 0 || dim >= v->rank || v->dims[dim] != before || before < 1 || after < 1)
    return tt_error(TT_INVALID_ARGUMENT, "dim %d is not made of these factors", dim);
  tt_dtype_t dtype = before > INT32_MAX || after > INT32_MAX ? TT_I64 : TT_I32;
  hlo_t index = hlo_iota(b, dtype, 1, &after, 0), flat = hlo_splat(b, dtype, 0, 1, &after), one = hlo_scalar_int(b, dtype, 1);
  for (int i = 0; i < n_to; i++) {  // number of the element among those that are there
    hlo_t size;
    TT_TRY(factor_size(g, &to[i], dtype, &size));
    inner /= to[i].bound;
    flat = hlo_add(b, hlo_multiply(b, flat, size), digit(b, index, inner, to[i].bound, i == 0));
  }
  hlo_t place = hlo_splat(b, dtype, 0, 1, &after);
  int64_t step = 1;
  for (int i = n_from - 1; i >= 0; i--) {
    hlo_t size;
    TT_TRY(factor_size(g, &from[i], dtype, &size));
    size = hlo_maximum(b, size, one);  // of nothing nothing is taken
    hlo_t at = i ? hlo_remainder(b, flat, size) : flat;
    place = hlo_add(b, place, hlo_multiply(b, at, hlo_scalar_int(b, dtype, step)));
    flat = hlo_divide(b, flat, size);
    step *= from[i].bound;
  }
  place = hlo_clamp(b, hlo_scalar_int(b, dtype, 0), place, hlo_scalar_int(b, dtype, before - 1));
  return rt_graph_give(g, hlo_take(b, v, place, dim), out_id);
}

tt_status_t tt_graph_check(tt_graph_t* g, int bad, int number, tt_code_t code, const char* message) {
  hlo_t when, what;
  TT_TRY(value(g, bad, &when));
  TT_TRY(value(g, number, &what));
  char* text = tt_arena_copy(hlo_builder_arena(g->b), message, strlen(message) + 1);
  if (!text) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_lower_t l = {.e = g->e, .name = "check"};
  tt_check(&l, hlo_convert(g->b, hlo_reshape(g->b, when, 0, NULL), TT_BOOL), hlo_reshape(g->b, what, 0, NULL), code, text);
  return hlo_builder_error(g->b);
}
