// Control flow in graphs: branches and loops as StableHLO regions.
//
// A check inside a region cannot be looked at outside it. So every branch and loop body has two more results, the number
// of the check that failed (0: none) and its value; outside, they are checks again, one for each message.
#include "runtime/graph.h"

#include <string.h>

#include "base/alloc.h"

static tt_status_t no_memory(void) { return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted"); }

static tt_status_t add_checked(tt_graph_t* g, hlo_t v, int* out_id) {
  TT_TRY(hlo_builder_error(g->b));
  *out_id = rt_graph_add(g, v);
  return *out_id < 0 ? no_memory() : NULL;
}

static tt_status_t bad_id(const tt_graph_t* g, int id) {
  return id < 0 || id >= g->n_values ? tt_error(TT_INVALID_ARGUMENT, "there is no value %d", id) : NULL;
}

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
  return add_checked(g, hlo_region_arg(g->b, g->regions[region].region, dtype, rank, dims), out_id);
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
  for (int i = 0; i < n; i++) {
    TT_TRY(bad_id(g, ids[i]));
    results[i] = g->values[ids[i]];
  }
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
  TT_TRY(bad_id(g, pred));
  TT_TRY(bad_region(g, then_region, false));
  TT_TRY(bad_region(g, else_region, false));
  hlo_builder_t* b = g->b;
  hlo_t* out = tt_arena_alloc(hlo_builder_arena(b), ((size_t)n + 2) * sizeof *out);
  if (!out) return no_memory();
  rt_graph_region_t *yes = &g->regions[then_region], *no = &g->regions[else_region];
  hlo_if(b, hlo_convert(b, hlo_reshape(b, g->values[pred], 0, NULL), TT_BOOL), yes->region, no->region, n + 2, out);
  for (int i = 0; i < n; i++) TT_TRY(add_checked(g, out[i], &out_ids[i]));
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
  for (int i = 0; i < n; i++) {
    TT_TRY(bad_id(g, init[i]));
    in[i] = g->values[init[i]];
  }
  in[n] = in[n + 1] = hlo_scalar_int(b, TT_I64, 0);
  hlo_while(b, n + 2, in, g->regions[condition].region, g->regions[body].region, out);
  for (int i = 0; i < n; i++) TT_TRY(add_checked(g, out[i], &out_ids[i]));
  return report(g, &g->regions[body], out[n], out[n + 1]);
}

// ---------------------------------------------------------------- rows
static tt_status_t row_starts(tt_graph_t* g, int x, int index, hlo_t starts[TT_MAX_RANK]) {
  TT_TRY(not_traced(g));
  TT_TRY(bad_id(g, x));
  TT_TRY(bad_id(g, index));
  if (g->values[x]->rank < 1) return tt_error(TT_INVALID_ARGUMENT, "a 0-d value has no rows");
  starts[0] = hlo_convert(g->b, hlo_reshape(g->b, g->values[index], 0, NULL), TT_I32);
  for (int d = 1; d < g->values[x]->rank; d++) starts[d] = hlo_scalar_int(g->b, TT_I32, 0);
  return hlo_builder_error(g->b);
}

tt_status_t tt_graph_row(tt_graph_t* g, int x, int index, int* out_id) {
  hlo_t starts[TT_MAX_RANK];
  int64_t sizes[TT_MAX_RANK];
  *out_id = -1;
  TT_TRY(row_starts(g, x, index, starts));
  hlo_t v = g->values[x];
  for (int d = 0; d < v->rank; d++) sizes[d] = d ? v->dims[d] : 1;
  return add_checked(g, hlo_squeeze(g->b, hlo_dynamic_slice(g->b, v, starts, sizes), 0), out_id);
}

tt_status_t tt_graph_set_row(tt_graph_t* g, int x, int index, int row, int* out_id) {
  hlo_t starts[TT_MAX_RANK];
  *out_id = -1;
  TT_TRY(row_starts(g, x, index, starts));
  TT_TRY(bad_id(g, row));
  hlo_t update = hlo_unsqueeze(g->b, hlo_convert(g->b, g->values[row], g->values[x]->dtype), 0);
  return add_checked(g, hlo_dynamic_update_slice(g->b, g->values[x], update, starts), out_id);
}
