#include "runtime/plan.h"

#include <string.h>

typedef struct planner_t {
  const rt_plan_graph_t* g;
  int64_t smallest;
  rt_plan_t* plan;
  int32_t* part;            // of each operation
  int32_t* maker;           // of each value: its operation
  int64_t* made;            // bytes made before each operation; n_ops + 1 of them
  int32_t* last_use;        // of each value: the last operation that reads it, -1
} planner_t;

enum { DEPTH = 6 };         // operations computed again for one value, one after the other

// ---------------------------------------------------------------- where to split
static void survey(planner_t* p) {
  const rt_plan_graph_t* g = p->g;
  memset(p->last_use, -1, (size_t)g->n_values * sizeof *p->last_use);
  for (int i = 0; i < g->n_ops; i++) {
    const rt_plan_op_t* op = &g->ops[i];
    p->made[i + 1] = p->made[i];
    for (int v = op->first_value; v < op->first_value + op->n_values; v++) {
      p->maker[v] = i;
      if (g->value_new[v]) p->made[i + 1] += g->value_bytes[v];
    }
    for (int w = op->first_wire; w < op->first_wire + op->n_wires; w++)
      if (g->wires[w] && g->wires[w] % 2 == 0) p->last_use[g->wires[w] / 2 - 1] = i;
  }
}

// What splitting before operation |at| costs a part that began at |start|: values that would otherwise never have left
// the program. What is read far away has to be written in any case.
static int64_t in_flight(const planner_t* p, int start, int at, int64_t share) {
  const rt_plan_graph_t* g = p->g;
  int64_t sum = 0;
  for (int v = g->ops[start].first_value; v < g->ops[at].first_value; v++) {
    int32_t last = p->last_use[v];
    if (last >= at && !g->value_live[v] && p->made[last] - p->made[at] <= share) sum += g->value_bytes[v];
  }
  return sum;
}

static void split(planner_t* p, const rt_plan_limits_t* limits) {
  const rt_plan_graph_t* g = p->g;
  rt_plan_t* plan = p->plan;
  int64_t total = p->made[g->n_ops], share = total / limits->parts;
  plan->n_parts = 0;
  plan->first[0] = 0;
  for (int start = 0; start < g->n_ops;) {
    int best = g->n_ops;
    int64_t least = INT64_MAX;
    // The rest is not worth a part of its own when little is left.
    bool split_here = total >= limits->whole && total - p->made[start] > 2 * share;
    for (int at = start + 1; split_here && at < g->n_ops && p->made[at] - p->made[start] <= 2 * share; at++) {
      if (p->made[at] - p->made[start] < share) continue;
      int64_t cost = in_flight(p, start, at, share);
      if (cost < least) least = cost, best = at;
    }
    // One operation that makes more than two shares: a part ends after it.
    if (split_here && least == INT64_MAX)
      for (best = start + 1; best < g->n_ops && p->made[best] - p->made[start] < share;) best++;
    for (int i = start; i < best; i++) p->part[i] = plan->n_parts;
    plan->first[++plan->n_parts] = best;
    start = best;
  }
}

// ---------------------------------------------------------------- what stays in memory
static void keep_all(planner_t* p) {
  const rt_plan_graph_t* g = p->g;
  rt_plan_t* plan = p->plan;
  memset(plan->last_value, -1, (size_t)g->n_values * sizeof *plan->last_value);
  memset(plan->last_external, -1, (size_t)g->n_external * sizeof *plan->last_external);
  for (int i = 0; i < g->n_ops; i++) {
    for (int w = g->ops[i].first_wire; w < g->ops[i].first_wire + g->ops[i].n_wires; w++) {
      int64_t wire = g->wires[w];
      if (wire % 2) plan->last_external[wire / 2] = p->part[i];
      else if (wire && p->part[p->maker[wire / 2 - 1]] < p->part[i]) plan->last_value[wire / 2 - 1] = p->part[i];
    }
  }
}

// Bytes that stay longer in memory when what |wire| stands for is wanted in part |t|. |commit|: makes it so.
static int64_t want(planner_t* p, int64_t wire, int t, int depth, bool commit);

static int64_t want_inputs(planner_t* p, int op, int t, int depth, bool commit) {
  int64_t sum = 0;
  const rt_plan_op_t* o = &p->g->ops[op];
  for (int w = o->first_wire; w < o->first_wire + o->n_wires; w++) sum += want(p, p->g->wires[w], t, depth, commit);
  return sum;
}

static int64_t want(planner_t* p, int64_t wire, int t, int depth, bool commit) {
  if (!wire) return 0;
  int64_t n = wire % 2 ? wire / 2 : wire / 2 - 1;
  if (wire % 2) {
    int32_t* last = &p->plan->last_external[n];
    int64_t cost = p->g->external_live[n] || *last >= t ? 0 : p->g->external_bytes[n];
    if (commit && *last < t) *last = t;
    return cost;
  }
  int maker = p->maker[n];
  int32_t* last = &p->plan->last_value[n];
  if (p->part[maker] == t || *last >= t) return 0;
  int64_t kept = p->g->value_live[n] ? 0 : p->g->value_bytes[n];
  if (kept >= p->smallest && p->g->ops[maker].again && depth > 0 && want_inputs(p, maker, t, depth - 1, false) < kept)
    return want_inputs(p, maker, t, depth - 1, commit);
  if (commit) *last = t;
  return kept;
}

static bool reads(const rt_plan_graph_t* g, int op, int v) {
  for (int w = g->ops[op].first_wire; w < g->ops[op].first_wire + g->ops[op].n_wires; w++)
    if (g->wires[w] == 2 * ((int64_t)v + 1)) return true;
  return false;
}

// Values that are read long after they were made, and can be had again from what stays anyway, need not stay. The part
// after the one that made a value takes it: it has just been written.
static void forget(planner_t* p) {
  const rt_plan_graph_t* g = p->g;
  for (int v = 0; v < g->n_values; v++) {
    int maker = p->maker[v], home = p->part[maker], kept = -1;
    if (g->value_live[v] || g->value_bytes[v] < p->smallest || !g->ops[maker].again || p->plan->last_value[v] < home + 2) continue;
    int64_t cost = 0;
    for (int op = maker + 1; op <= p->last_use[v] && cost <= g->value_bytes[v] / 4; op++) {
      if (p->part[op] == home || !reads(g, op, v)) continue;
      if (p->part[op] == home + 1) kept = home + 1;
      else cost += want_inputs(p, maker, p->part[op], DEPTH, false);
    }
    if (cost > g->value_bytes[v] / 4) continue;
    for (int op = maker + 1; op <= p->last_use[v]; op++)
      if (p->part[op] > home + 1 && reads(g, op, v)) (void)want_inputs(p, maker, p->part[op], DEPTH, true);
    p->plan->last_value[v] = kept;
  }
}

bool rt_plan_make(const rt_plan_graph_t* g, const rt_plan_limits_t* limits, tt_arena_t* arena, rt_plan_t* out) {
  size_t ops = (size_t)g->n_ops + 1, values = (size_t)g->n_values + 1;
  planner_t p = {.g = g, .smallest = limits->smallest, .plan = out};
  out->first = tt_arena_alloc(arena, (ops + 1) * sizeof *out->first);
  out->last_value = tt_arena_alloc(arena, values * sizeof *out->last_value);
  out->last_external = tt_arena_alloc(arena, ((size_t)g->n_external + 1) * sizeof *out->last_external);
  p.part = tt_arena_alloc(arena, ops * sizeof *p.part);
  p.maker = tt_arena_alloc(arena, values * sizeof *p.maker);
  p.made = tt_arena_alloc(arena, (ops + 1) * sizeof *p.made);
  p.last_use = tt_arena_alloc(arena, values * sizeof *p.last_use);
  if (!out->first || !out->last_value || !out->last_external || !p.part || !p.maker || !p.made || !p.last_use) return false;
  survey(&p);
  split(&p, limits);
  keep_all(&p);
  if (out->n_parts > 2) forget(&p);
  return true;
}
