// Lowers a region, node after node, into the programs of its parts.
#include <string.h>

#include "base/alloc.h"
#include "runtime/fuse.h"
#include "runtime/plan.h"

enum { WHOLE_NODES = 1024 };  // larger regions of large values are compiled in parts only: compile time grows faster than size

typedef struct fuse_t {
  const rt_job_t* job;
  const rt_plan_t* plan;
  const rt_layout_t** layouts;  // by value
  int32_t* maker;           // by out: its node
  int32_t* part;            // by node
  const char* flags;        // of the compiler; "" its own choice. Where it does not take them it is asked without
  int here;                 // the part in work
  hlo_builder_t* b;
  tt_emit_t e;
  hlo_t* external;          // by number; NULL not read yet
  hlo_t* outs;              // by number of the region's outs
  int32_t* origin;          // by out: the value read from memory that it is the next value of, -1
  int64_t made_again;
} fuse_t;

static tt_status_t no_memory(void) { return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted"); }

static tt_status_t emit_node(fuse_t* f, int i);

static hlo_t read_value(fuse_t* f, int value) {
  const rt_layout_t* l = f->layouts[value];
  tt_operand_t o = {.kind = TT_OPERAND_BASE, .index = value};
  return rt_without_padding(f->b, tt_emit_operand(&f->e, o, l->dtype, l->rank, l->physical), l);
}

static tt_status_t wired(fuse_t* f, int64_t wire, hlo_t* out) {
  *out = NULL;
  if (wire == 0) return NULL;
  if (wire % 2) {
    int n = (int)(wire / 2);
    if (!f->external[n]) f->external[n] = read_value(f, n);
    *out = f->external[n];
    return NULL;
  }
  int n = (int)(wire / 2 - 1);
  if (!f->outs[n]) {
    if (f->plan->last_value[n] >= f->here || f->job->out_live[n]) {
      f->outs[n] = read_value(f, f->job->n_external + n);
    } else {
      TT_TRY(emit_node(f, f->maker[n]));
      f->made_again++;
    }
  }
  *out = f->outs[n];
  return NULL;
}

// Number of the value in memory that |wire| is or became in this part, -1.
static int32_t came_from(const fuse_t* f, int64_t wire) {
  if (wire % 2) return (int32_t)(wire / 2);
  if (!wire) return -1;
  int n = (int)(wire / 2 - 1);
  return f->part[f->maker[n]] == f->here ? f->origin[n] : f->job->n_external + n;
}

static tt_status_t emit_node(fuse_t* f, int i) {
  const rt_job_t* job = f->job;
  const rt_node_t* n = &job->nodes[i];
  const rt_entry_t* e = n->entry;
  hlo_t* slots = tt_arena_alloc(hlo_builder_arena(f->b), ((size_t)e->n_slots + 1) * sizeof *slots);
  if (!slots) return no_memory();
  for (int s = 0; s < e->n_slots; s++) TT_TRY(wired(f, job->wires[n->first_ref + s], &slots[s]));
  TT_TRY(rt_recipe_emit(e, &f->e, i, slots, f->outs + n->first_out));
  for (int w = 0; w < e->n_writes; w++) {
    if (e->writes[w].donated < 0) continue;
    f->origin[n->first_out + e->writes[w].output] = came_from(f, job->wires[n->first_ref + e->writes[w].slot]);
  }
  return NULL;
}

static tt_status_t begin_part(fuse_t* f, int part) {
  const rt_job_t* job = f->job;
  f->here = part;
  f->b = hlo_builder_create();
  if (!f->b) return no_memory();
  tt_emit_init(&f->e, f->b, g_rt.caps);
  memset(f->external, 0, ((size_t)job->n_external + 1) * sizeof *f->external);
  memset(f->outs, 0, ((size_t)job->n_outs + 1) * sizeof *f->outs);
  for (int i = 0; i < job->n_outs; i++) f->origin[i] = -1;
  for (int i = f->plan->first[part]; i < f->plan->first[part + 1]; i++) TT_TRY(emit_node(f, i));
  return hlo_builder_error(f->b);
}

static bool same_layout(const rt_layout_t* l, hlo_t v) {
  if (l->padded || l->dtype != v->dtype || l->rank != v->rank) return false;
  for (int d = 0; d < v->rank; d++)
    if (l->dims[d] != v->dims[d]) return false;
  return true;
}

// Nothing reads the value after this part.
static bool ends_here(const fuse_t* f, int value) {
  const rt_job_t* job = f->job;
  int n = value - job->n_external;
  if (n < 0) return job->external_dead[value] && f->plan->last_external[value] == f->here;
  return !job->out_live[n] && f->plan->last_value[n] == f->here;
}

// The parameter that |value| is, when the program may take it over for result |n|; -1.
static int donor_parameter(const fuse_t* f, int value, int n, const int* aliases) {
  for (int p = 0; p < f->e.n_operands; p++) {
    if (f->e.operands[p].kind != TT_OPERAND_BASE || f->e.operands[p].index != value) continue;
    for (int k = 0; k < n; k++)
      if (aliases[k] == p) return -1;
    return p;
  }
  return -1;
}

// Outputs of the program with the parameters they take over.
static void choose_outputs(fuse_t* f, rt_fused_t* fused, rt_part_t* part, hlo_t* results, int* aliases) {
  const rt_job_t* job = f->job;
  int n = 0;
  for (int i = f->plan->first[f->here]; i < f->plan->first[f->here + 1]; i++) {
    const rt_node_t* node = &job->nodes[i];
    for (int o = 0; o < node->entry->n_outputs; o++) {
      int out = node->first_out + o;
      bool check = o == node->entry->check_output;
      if (!check && !job->out_live[out] && f->plan->last_value[out] <= f->here) continue;
      results[n] = f->outs[out];
      aliases[n] = -1;
      part->outs[n] = (rt_fused_out_t){check ? -1 : out, i, -1};
      int32_t origin = f->origin[out];
      if (!check && origin >= 0 && ends_here(f, origin) && same_layout(f->layouts[origin], results[n]))
        aliases[n] = donor_parameter(f, origin, n, aliases);
      if (aliases[n] >= 0) part->outs[n].donor = origin, fused->n_donated++;
      n++;
    }
  }
  part->n_outs = n;
}

// Where the program's parameters come from in a region of this shape.
static tt_status_t trace_sources(const fuse_t* f, rt_part_t* part) {
  part->n_sources = f->e.n_operands;
  for (int p = 0; p < f->e.n_operands; p++) {
    tt_operand_t o = f->e.operands[p];
    if (o.kind == TT_OPERAND_BASE) {
      part->sources[p] = (rt_source_t){.kind = RT_SOURCE_VALUE, .index = o.index};
      continue;
    }
    bool by_index = o.kind == TT_OPERAND_SCALAR || o.kind == TT_OPERAND_RNG;
    const rt_node_t* n = &f->job->nodes[by_index ? o.index : o.arg];
    if (by_index) o.index = 0;
    else o.arg = 0;
    int32_t bits = n->first_bits;
    bool found = false;
    for (int i = 0; i < n->entry->n_operands && !found; i++) {
      const tt_operand_t* own = &n->entry->operands[i];
      if (own->kind == TT_OPERAND_BASE) continue;
      found = own->kind == o.kind && own->dtype == o.dtype && own->arg == o.arg && own->index == o.index && own->elem == o.elem;
      if (!found) bits++;
    }
    if (!found) return tt_error(TT_INTERNAL, "%s: lowered again it wants another operand", n->entry->op_name);
    part->sources[p] = (rt_source_t){.kind = o.kind == TT_OPERAND_RNG ? RT_SOURCE_RNG : RT_SOURCE_BITS, .index = bits,
                                     .dtype = (uint8_t)(o.kind == TT_OPERAND_DIGIT ? TT_I64 : (tt_dtype_t)o.dtype)};
  }
  return NULL;
}

static tt_status_t list_last(const fuse_t* f, rt_part_t* part) {
  int total = f->job->n_external + f->job->n_outs;
  for (int pass = 0; pass < 2; pass++) {
    int n = 0;
    for (int v = 0; v < total; v++) {
      if (!ends_here(f, v)) continue;
      if (pass) part->last[n] = v;
      n++;
    }
    if (pass) break;
    part->n_last = n;
    part->last = tt_calloc((size_t)n + 1, sizeof *part->last);
    if (!part->last) return no_memory();
  }
  return NULL;
}

static tt_status_t build_part(fuse_t* f, rt_fused_t* fused, int i) {
  const rt_job_t* job = f->job;
  rt_part_t* part = &fused->parts[i];
  tt_strbuf_t text;
  tt_strbuf_init(&text);
  tt_status_t status = begin_part(f, i);
  if (!status) {
    size_t room = 1, operands = (size_t)f->e.n_operands + 1;
    for (int n = f->plan->first[i]; n < f->plan->first[i + 1]; n++) room += (size_t)job->nodes[n].entry->n_outputs;
    hlo_t* results = tt_arena_alloc(hlo_builder_arena(f->b), room * sizeof *results);
    int* aliases = tt_arena_alloc(hlo_builder_arena(f->b), room * sizeof *aliases);
    part->outs = tt_calloc(room, sizeof *part->outs);
    part->sources = tt_calloc(operands, sizeof *part->sources);
    status = results && aliases && part->outs && part->sources ? NULL : no_memory();
    if (!status) {
      choose_outputs(f, fused, part, results, aliases);
      status = trace_sources(f, part);
    }
    if (!status) status = list_last(f, part);
    if (!status && part->n_outs) status = hlo_print(f->b, part->n_outs, results, aliases, &text);
  }
  hlo_builder_destroy(f->b);
  f->b = NULL;
  if (!status && part->n_outs && f->flags[0]) tt_status_free(rt_compile_cached(job->device, &text, f->flags, "fused region", &part->exe));
  if (!status && part->n_outs && !part->exe) status = rt_compile_cached(job->device, &text, NULL, "fused region", &part->exe);
  tt_strbuf_deinit(&text);
  return status;
}

// ---------------------------------------------------------------- the plan
// Is the node's work light? Lowered once on its own; the entry remembers.
static bool is_light(const fuse_t* f, int i) {
  const rt_job_t* job = f->job;
  const rt_node_t* n = &job->nodes[i];
  rt_entry_t* e = n->entry;
  if (e->weight) return e->weight == RT_LIGHT;
  hlo_builder_t* b = hlo_builder_create();
  if (!b) return false;
  tt_emit_t emit;
  tt_emit_init(&emit, b, g_rt.caps);
  hlo_t* slots = tt_arena_alloc(hlo_builder_arena(b), ((size_t)e->n_slots + 1) * sizeof *slots);
  hlo_t* outs = tt_arena_alloc(hlo_builder_arena(b), ((size_t)e->n_outputs + 1) * sizeof *outs);
  bool ok = slots && outs;
  for (int s = 0; ok && s < e->n_slots; s++) {
    int64_t wire = job->wires[n->first_ref + s];
    if (!wire) continue;
    const rt_layout_t* l = f->layouts[wire % 2 ? wire / 2 : job->n_external + wire / 2 - 1];
    tt_operand_t o = {.kind = TT_OPERAND_BASE, .index = s};
    slots[s] = rt_without_padding(b, tt_emit_operand(&emit, o, l->dtype, l->rank, l->physical), l);
  }
  tt_status_t status = ok ? rt_recipe_emit(e, &emit, 0, slots, outs) : NULL;
  bool light = ok && !status && hlo_is_light(b);
  tt_status_free(status);
  hlo_builder_destroy(b);
  e->weight = light ? RT_LIGHT : RT_HEAVY;  // the compiling thread alone looks at it
  return light;
}

// Of each out its layout and node, of each node its part: for all parts alike. False: something is padded.
static bool survey(fuse_t* f) {
  const rt_job_t* job = f->job;
  bool plain = true;
  for (int v = 0; v < job->n_external; v++) {
    f->layouts[v] = job->external[v];
    plain &= !job->external[v]->padded;
  }
  for (int i = 0; i < job->n_nodes; i++) {
    const rt_node_t* n = &job->nodes[i];
    const rt_layout_t** layouts = f->layouts + job->n_external + n->first_out;
    for (int o = 0; o < n->entry->n_outputs; o++) f->maker[n->first_out + o] = i;
    for (int k = 0; k < n->entry->n_fresh; k++)
      if (n->entry->fresh[k].output >= 0) layouts[n->entry->fresh[k].output] = n->entry->fresh[k].layout;
    for (int k = 0; k < n->entry->n_writes; k++) layouts[n->entry->writes[k].output] = n->entry->writes[k].layout;
    for (int o = 0; o < n->entry->n_outputs; o++) plain &= !layouts[o] || !layouts[o]->padded;
  }
  return plain;
}

// What the plan is made of; *out_made: bytes that the region's operations make.
static tt_status_t describe(const fuse_t* f, tt_arena_t* arena, rt_plan_graph_t* out, int64_t* out_made) {
  const rt_job_t* job = f->job;
  size_t outs = (size_t)job->n_outs + 1, externals = (size_t)job->n_external + 1;
  rt_plan_op_t* ops = tt_arena_alloc(arena, ((size_t)job->n_nodes + 1) * sizeof *ops);
  int64_t* out_bytes = tt_arena_alloc(arena, outs * sizeof *out_bytes);
  int64_t* external_bytes = tt_arena_alloc(arena, externals * sizeof *external_bytes);
  bool *out_new = tt_arena_alloc(arena, outs), *out_live = tt_arena_alloc(arena, outs), *external_live = tt_arena_alloc(arena, externals);
  if (!ops || !out_bytes || !external_bytes || !out_new || !out_live || !external_live) return no_memory();
  for (int v = 0; v < job->n_outs; v++) {
    const rt_layout_t* l = f->layouts[job->n_external + v];
    out_bytes[v] = l ? l->buffer_bytes : 0;
    out_live[v] = job->out_live[v];
    out_new[v] = true;
  }
  int64_t made = 0;
  for (int i = 0; i < job->n_nodes; i++) {
    const rt_node_t* n = &job->nodes[i];
    ops[i] = (rt_plan_op_t){.first_wire = n->first_ref, .n_wires = n->entry->n_slots, .first_value = n->first_out, .n_values = n->entry->n_outputs};
    for (int k = 0; k < n->entry->n_writes; k++)
      if (n->entry->writes[k].donated >= 0) out_new[n->first_out + n->entry->writes[k].output] = false;
    for (int o = n->first_out; o < n->first_out + n->entry->n_outputs; o++) made += out_new[o] ? out_bytes[o] : 0;
  }
  for (int v = 0; v < job->n_external; v++) {
    external_bytes[v] = job->external[v]->buffer_bytes;
    external_live[v] = !job->external_dead[v];
  }
  *out_made = made;
  *out = (rt_plan_graph_t){.n_ops = job->n_nodes, .n_values = job->n_outs, .n_external = job->n_external, .ops = ops, .wires = job->wires,
                           .value_bytes = out_bytes, .value_new = out_new, .value_live = out_live, .external_bytes = external_bytes,
                           .external_live = external_live};
  return NULL;
}

static void weigh(const fuse_t* f, const rt_plan_graph_t* graph) {
  for (int i = 0; i < graph->n_ops; i++) {
    const rt_entry_t* e = f->job->nodes[i].entry;
    ((rt_plan_op_t*)(uintptr_t)graph->ops)[i].again = e->check_output < 0 && !e->rng_drawn && is_light(f, i);
  }
}

// ---------------------------------------------------------------- all of it
void rt_fused_free(rt_fused_t* f) {
  if (!f) return;
  for (int i = 0; f->parts && i < f->n_parts; i++) {
    tt_exe_release(f->parts[i].exe);
    tt_free(f->parts[i].sources);
    tt_free(f->parts[i].outs);
    tt_free(f->parts[i].last);
  }
  tt_free(f->parts);
  tt_free(f->buffers);
  tt_free(f->owned);
  tt_free(f);
}

static int64_t bytes_of(const fuse_t* f, int value) { return f->layouts[value] ? f->layouts[value]->buffer_bytes : 0; }

// Most bytes on the device while the region runs, of what it reads and makes, as the compiler says.
static int64_t peak_of(const fuse_t* f, const rt_fused_t* fused) {
  int64_t live = 0, peak = 0;
  for (int v = 0; v < f->job->n_external; v++) live += bytes_of(f, v);
  for (int p = 0; p < fused->n_parts; p++) {
    const rt_part_t* part = &fused->parts[p];
    for (int i = 0; i < part->n_outs; i++)
      if (part->outs[i].out >= 0 && part->outs[i].donor < 0) live += bytes_of(f, f->job->n_external + part->outs[i].out);
    int64_t now = live + (part->exe ? tt_exe_temp_bytes(part->exe) : 0);
    if (now > peak) peak = now;
    for (int i = 0; i < part->n_last; i++) {
      bool there = part->last[i] < f->job->n_external || f->plan->last_value[part->last[i] - f->job->n_external] >= 0;
      for (int o = 0; o < part->n_outs; o++) there &= part->outs[o].donor != part->last[i];
      if (there) live -= bytes_of(f, part->last[i]);
    }
  }
  return peak;
}

static tt_status_t build_parts(fuse_t* f, rt_fused_t** out_fused) {
  const rt_plan_t* plan = f->plan;
  rt_fused_t* fused = *out_fused = tt_calloc(1, sizeof *fused);
  if (!fused) return no_memory();
  for (int p = 0; p < plan->n_parts; p++)
    for (int i = plan->first[p]; i < plan->first[p + 1]; i++) f->part[i] = p;
  fused->parts = tt_calloc((size_t)plan->n_parts + 1, sizeof *fused->parts);
  if (!fused->parts) return no_memory();
  fused->n_parts = plan->n_parts;
  f->made_again = 0;
  int sources = 0, room = 0;
  for (int p = 0; p < plan->n_parts; p++) {
    TT_TRY(build_part(f, fused, p));
    const rt_part_t* part = &fused->parts[p];
    if (part->n_sources > sources) sources = part->n_sources;
    if (part->n_sources + part->n_outs > room) room = part->n_sources + part->n_outs;
  }
  fused->made_again = f->made_again;
  fused->buffers = tt_calloc((size_t)room + 1, sizeof(void*));
  fused->owned = tt_calloc((size_t)sources + 1, sizeof *fused->owned);
  return fused->buffers && fused->owned ? NULL : no_memory();
}

static tt_status_t build_planned(fuse_t* f, tt_arena_t* arena, const rt_plan_graph_t* graph, const rt_plan_limits_t* limits,
                                 rt_fused_t** out_fused, int64_t* out_peak) {
  rt_plan_t* plan = tt_arena_alloc(arena, sizeof *plan);
  if (!plan || !rt_plan_make(graph, limits, arena, plan)) return no_memory();
  f->plan = plan;
  tt_status_t status = build_parts(f, out_fused);
  if (!status) {
    *out_peak = peak_of(f, *out_fused);
    return NULL;
  }
  rt_fused_free(*out_fused);
  *out_fused = NULL;
  return status;
}

// Where values are large, both are tried: which needs less memory only the compiler knows.
static tt_status_t build_best(fuse_t* f, tt_arena_t* arena, rt_fused_t** out_fused) {
  rt_plan_graph_t graph;
  int64_t made = 0, whole_peak = INT64_MAX, parts_peak = INT64_MAX;
  bool plain = survey(f);
  TT_TRY(describe(f, arena, &graph, &made));
  rt_lock();
  rt_plan_limits_t many = g_rt.plan_limits, one = many;
  rt_unlock();
  one.whole = INT64_MAX;
  bool is_large = made >= many.whole;
  f->flags = is_large ? tt_client_lean_flags(g_rt.client) : "";
  bool try_whole = !is_large || !plain || (many.whole > 0 && f->job->n_nodes <= WHOLE_NODES);
  if (try_whole) TT_TRY(build_planned(f, arena, &graph, &one, out_fused, &whole_peak));
  if (!is_large || !plain) return NULL;
  weigh(f, &graph);
  rt_fused_t* parts = NULL;
  tt_status_t status = build_planned(f, arena, &graph, &many, &parts, &parts_peak);
  rt_log("a region of %d operations: peak %lld bytes in one program, %lld in %d", f->job->n_nodes, (long long)whole_peak, (long long)parts_peak,
         parts ? parts->n_parts : 0);
  if (!*out_fused || (parts && parts_peak < whole_peak - whole_peak / 32)) {
    rt_fused_free(*out_fused);
    *out_fused = parts;
    return status;
  }
  tt_status_free(status);
  rt_fused_free(parts);
  return NULL;
}

tt_status_t rt_fused_build(const rt_job_t* job, rt_fused_t** out_fused) {
  *out_fused = NULL;
  tt_arena_t arena;
  tt_arena_init(&arena);
  size_t outs = (size_t)job->n_outs + 1, externals = (size_t)job->n_external + 1, nodes = (size_t)job->n_nodes + 1;
  fuse_t f = {.job = job};
  f.layouts = tt_arena_alloc(&arena, (outs + externals) * sizeof *f.layouts);
  f.maker = tt_arena_alloc(&arena, outs * sizeof *f.maker);
  f.part = tt_arena_alloc(&arena, nodes * sizeof *f.part);
  f.external = tt_arena_alloc(&arena, externals * sizeof *f.external);
  f.outs = tt_arena_alloc(&arena, outs * sizeof *f.outs);
  f.origin = tt_arena_alloc(&arena, outs * sizeof *f.origin);
  tt_status_t status = f.layouts && f.maker && f.part && f.external && f.outs && f.origin ? NULL : no_memory();
  if (!status) status = build_best(&f, &arena, out_fused);
  tt_arena_deinit(&arena);
  return status;
}

void tt_defer_plan(int64_t whole, int parts, int64_t smallest) {
  rt_lock();
  g_rt.plan_limits = (rt_plan_limits_t){.whole = whole, .parts = parts > 1 ? parts : 1, .smallest = smallest};
  rt_unlock();
}
