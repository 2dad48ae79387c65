// Control flow in graphs: branches and loops as StableHLO regions.
//
// A check inside a region cannot be looked at outside it. So every branch and loop body has two more results, the number
// of the check that failed (0: none) and its value; outside, they are checks again, one for each message.
#include "runtime/graph.h"

#include <string.h>

#include "base/alloc.h"

static tt_status_t no_memory(void) { return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted"); }

static tt_status_t bad_region(const tt_graph_t* g, int region, bool open) {
  if (region < 0 || region >= g->n_regions || g->regions[region].open != open)
    return tt_error(TT_INVALID_ARGUMENT, "region %d is not %s", region, open ? "open" : "complete");
  return NULL;
}

// A traced decomposition is kept as a script of calls, in which there is no control flow.
static tt_status_t not_traced(const tt_graph_t* g) {
  return g->lower ? tt_error(TT_UNIMPLEMENTED, "control flow inside a traced decomposition") : NULL;
}

tt_status_t tt_graph_region_begin(tt_graph_t* g, tt_region_kind_t kind, int* out_region) {
  *out_region = -1;
  TT_TRY(not_traced(g));
  if (!tt_grow(&g->regions, g->n_regions, &g->cap_regions, sizeof *g->regions)) return no_memory();
  g->regions[g->n_regions] = (rt_graph_region_t){.region = hlo_region_begin(g->b), .kind = kind, .open = true,
                                                 .first_check = g->e->n_checks, .rng_drawn = g->e->rng_drawn};
  *out_region = g->n_regions++;
  return hlo_builder_error(g->b);
}

tt_status_t tt_graph_region_arg(tt_graph_t* g, int region, tt_dtype_t dtype, int rank, const int64_t* dims, int* out_id) {
  *out_id = -1;
  TT_TRY(bad_region(g, region, true));
  return rt_graph_give(g, hlo_region_arg(g->b, g->regions[region].region, dtype, rank, dims), out_id);
}

// Moves the checks of the region out of the emission; the first that failed as number and value.
static tt_status_t fold_checks(tt_graph_t* g, rt_graph_region_t* r, hlo_t* number, hlo_t* value) {
  tt_emit_t* e = g->e;
  hlo_builder_t* b = g->b;
  r->n_checks = e->n_checks - r->first_check;
  r->base = g->check_serial;
  g->check_serial += r->n_checks;
  r->checks = tt_arena_alloc(hlo_builder_arena(b), ((size_t)r->n_checks + 1) * sizeof *r->checks);
  if (!r->checks) return no_memory();
  if (r->n_checks) memcpy(r->checks, e->checks + r->first_check, (size_t)r->n_checks * sizeof *r->checks);
  e->n_checks = r->first_check;
  *number = *value = hlo_scalar_int(b, TT_I64, 0);
  for (int i = r->n_checks - 1; i >= 0; i--) {
    *number = hlo_select(b, r->checks[i].bad, hlo_scalar_int(b, TT_I64, r->base + i + 1), *number);
    *value = hlo_select(b, r->checks[i].bad, r->checks[i].value, *value);
  }
  return NULL;
}

tt_status_t tt_graph_region_end(tt_graph_t* g, int region, int n, const int* ids) {
  TT_TRY(bad_region(g, region, true));
  rt_graph_region_t* r = &g->regions[region];
  hlo_builder_t* b = g->b;
  hlo_t* results = tt_arena_alloc(hlo_builder_arena(b), ((size_t)n + 2) * sizeof *results);
  if (!results) return no_memory();
  for (int i = 0; i < n; i++) TT_TRY(rt_graph_value(g, ids[i], &results[i]));
  hlo_t number = NULL, value = NULL;
  TT_TRY(fold_checks(g, r, &number, &value));
  if (r->kind != TT_REGION_BRANCH) {
    if (g->e->rng_drawn != r->rng_drawn)
      return tt_error(TT_UNIMPLEMENTED, "random numbers inside a loop: every turn of a compiled loop would draw the same");
    hlo_t failed = hlo_region_arg(b, r->region, TT_I64, 0, NULL), with = hlo_region_arg(b, r->region, TT_I64, 0, NULL);
    hlo_t before = hlo_compare(b, HLO_NE, failed, hlo_scalar_int(b, TT_I64, 0));  // the first turn that failed wins
    number = hlo_select(b, before, failed, number);
    value = hlo_select(b, before, with, value);
  }
  if (r->kind == TT_REGION_CONDITION) {
    if (r->n_checks) return tt_error(TT_UNIMPLEMENTED, "an operation that checks values inside a loop's condition");
    if (n != 1) return tt_error(TT_INVALID_ARGUMENT, "a loop's condition gives one bool, not %d results", n);
    results[0] = hlo_convert(b, hlo_reshape(b, results[0], 0, NULL), TT_BOOL);
  } else {
    results[n++] = number;
    results[n++] = value;
  }
  hlo_region_end(b, r->region, n, results);
  r->open = false;
  return hlo_builder_error(b);
}

// The checks of region |r|, outside it.
static tt_status_t report(tt_graph_t* g, const rt_graph_region_t* r, hlo_t number, hlo_t value) {
  tt_lower_t l = {.e = g->e, .name = "control flow"};
  for (int i = 0; i < r->n_checks; i++) {
    hlo_t mine = hlo_compare(g->b, HLO_EQ, number, hlo_scalar_int(g->b, TT_I64, r->base + i + 1));
    tt_check(&l, mine, value, r->checks[i].code, r->checks[i].message);
  }
  return hlo_builder_error(g->b);
}

tt_status_t tt_graph_if(tt_graph_t* g, int pred, int then_region, int else_region, int n, int* out_ids) {
  hlo_t p;
  TT_TRY(rt_graph_value(g, pred, &p));
  TT_TRY(bad_region(g, then_region, false));
  TT_TRY(bad_region(g, else_region, false));
  hlo_builder_t* b = g->b;
  hlo_t* out = tt_arena_alloc(hlo_builder_arena(b), ((size_t)n + 2) * sizeof *out);
  if (!out) return no_memory();
  rt_graph_region_t *yes = &g->regions[then_region], *no = &g->regions[else_region];
  hlo_if(b, hlo_convert(b, hlo_reshape(b, p, 0, NULL), TT_BOOL), yes->region, no->region, n + 2, out);
  for (int i = 0; i < n; i++) TT_TRY(rt_graph_give(g, out[i], &out_ids[i]));
  TT_TRY(report(g, yes, out[n], out[n + 1]));
  return report(g, no, out[n], out[n + 1]);
}

tt_status_t tt_graph_while(tt_graph_t* g, int n, const int* init, int condition, int body, int* out_ids) {
  TT_TRY(bad_region(g, condition, false));
  TT_TRY(bad_region(g, body, false));
  hlo_builder_t* b = g->b;
  hlo_t* in = tt_arena_alloc(hlo_builder_arena(b), ((size_t)n + 2) * 2 * sizeof *in);
  if (!in) return no_memory();
  hlo_t* out = in + n + 2;
  for (int i = 0; i < n; i++) TT_TRY(rt_graph_value(g, init[i], &in[i]));
  in[n] = in[n + 1] = hlo_scalar_int(b, TT_I64, 0);
  hlo_while(b, n + 2, in, g->regions[condition].region, g->regions[body].region, out);
  for (int i = 0; i < n; i++) TT_TRY(rt_graph_give(g, out[i], &out_ids[i]));
  return report(g, &g->regions[body], out[n], out[n + 1]);
}

// ---------------------------------------------------------------- rows
static tt_status_t row_of(tt_graph_t* g, int x, int index, hlo_t* out_x, hlo_t* out_place) {
  TT_TRY(not_traced(g));
  TT_TRY(rt_graph_value(g, x, out_x));
  if ((*out_x)->rank < 1) return tt_error(TT_INVALID_ARGUMENT, "a 0-d value has no rows");
  return rt_graph_place(g, index, out_place);
}

tt_status_t tt_graph_row(tt_graph_t* g, int x, int index, int* out_id) {
  hlo_t v, place;
  *out_id = -1;
  TT_TRY(row_of(g, x, index, &v, &place));
  return rt_graph_give(g, hlo_squeeze(g->b, hlo_slice_at(g->b, v, 0, place, 1), 0), out_id);
}

tt_status_t tt_graph_set_row(tt_graph_t* g, int x, int index, int row, int* out_id) {
  hlo_t v, u, place;
  *out_id = -1;
  TT_TRY(row_of(g, x, index, &v, &place));
  TT_TRY(rt_graph_value(g, row, &u));
  u = hlo_unsqueeze(g->b, hlo_convert(g->b, u, v->dtype), 0);
  return rt_graph_give(g, hlo_update_at(g->b, v, u, 0, place), out_id);
}
