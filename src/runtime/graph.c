// Whole programs through the op table.
#include "tt/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cache/disk.h"
#include "runtime/defer.h"
#include "runtime/graph.h"

struct tt_program_t {
  atomic_int refs;
  rt_entry_t* entry;         // fresh results, operands, messages
  int device;
  int* donated;              // by result: parameter, -1
  bool* writes;              // by result: it becomes the parameter's storage's value
  int n_params;
  const rt_layout_t** params;  // by parameter
};

int rt_graph_add(tt_graph_t* g, hlo_t v) {
  if (!tt_grow(&g->values, g->n_values, &g->cap_values, sizeof *g->values)) return -1;
  g->values[g->n_values] = v;
  return g->n_values++;
}

tt_status_t rt_graph_give(tt_graph_t* g, hlo_t v, int* out_id) {
  *out_id = -1;
  TT_TRY(hlo_builder_error(g->b));
  *out_id = rt_graph_add(g, v);
  return *out_id < 0 ? tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted") : NULL;
}

tt_status_t rt_graph_value(const tt_graph_t* g, int id, hlo_t* out) {
  if (id < 0 || id >= g->n_values) return tt_error(TT_INVALID_ARGUMENT, "there is no value %d", id);
  *out = g->values[id];
  return NULL;
}

tt_status_t rt_graph_place(tt_graph_t* g, int id, hlo_t* out) {
  TT_TRY(rt_graph_value(g, id, out));
  *out = hlo_convert(g->b, hlo_reshape(g->b, *out, 0, NULL), TT_I32);
  return NULL;
}

static tt_graph_t* graph_new(hlo_builder_t* b) {
  tt_graph_t* g = b ? tt_calloc(1, sizeof *g) : NULL;
  if (g) g->b = b;
  return g;
}

static tt_status_t create(int device, uint32_t caps, tt_graph_t** out) {
  hlo_builder_t* b = hlo_builder_create();
  *out = graph_new(b);
  if (!*out) {
    hlo_builder_destroy(b);
    return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  tt_emit_init(&(*out)->own, b, caps);
  hlo_set_precision(b, (hlo_precision_t)g_rt.precision);
  (*out)->e = &(*out)->own;
  (*out)->device = device;
  return NULL;
}

tt_status_t tt_graph_create(int device, tt_graph_t** out) { return create(device, g_rt.caps, out); }

tt_status_t tt_graph_create_for(const char* platform, tt_graph_t** out) {
  return create(0, tt_platform_caps(platform), out);
}

void tt_graph_destroy(tt_graph_t* g) {
  if (!g) return;
  if (!g->lower) hlo_builder_destroy(g->b);
  tt_free(g->values);
  tt_free(g->outputs);
  tt_free(g->donate);
  tt_free(g->strides);
  tt_free(g->writes);
  tt_free(g->regions);
  tt_free(g);
}

tt_status_t tt_graph_group(tt_graph_t* g, const char* name, int64_t n, int64_t size, const int64_t* ids) {
  if (n < 1 || size < 1) return tt_error(TT_INVALID_ARGUMENT, "%lld groups of %lld replicas", (long long)n, (long long)size);
  return tt_emit_group(g->e, name, n, size, ids) ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
}

void tt_graph_where(tt_graph_t* g, const char* name, const char* file, int line) {
  hlo_set_where(g->b, name, file, line);
}

tt_status_t tt_graph_param(tt_graph_t* g, tt_dtype_t dtype, int rank, const int64_t* dims, int* out_id) {
  *out_id = -1;
  if (g->lower) return tt_error(TT_FAILED_PRECONDITION, "a traced decomposition has no parameters of its own");
  hlo_t v = tt_emit_operand(g->e, (tt_operand_t){.kind = TT_OPERAND_PARAM, .index = g->n_params}, dtype, rank, dims);
  g->n_params++;
  return rt_graph_give(g, v, out_id);
}

tt_status_t tt_graph_constant(tt_graph_t* g, tt_dtype_t dtype, int rank, const int64_t* dims, const void* data, int* out_id) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  *out_id = -1;
  if (!data && n) return tt_error(TT_INVALID_ARGUMENT, "a constant of %lld elements without data", (long long)n);
  if (g->script) rt_script_constant(g->script, dtype, rank, dims, data);
  return rt_graph_give(g, hlo_array(g->b, dtype, rank, dims, data), out_id);
}

static tt_status_t bind_value(tt_graph_t* g, const char* name, int i, const tt_value_t* v, tt_larg_t* a) {
  a->v = *v;
  a->src_arg = -1;
  if (v->kind != TT_V_NODE && v->kind != TT_V_NODES) {
    if (v->kind == TT_V_TENSOR || v->kind == TT_V_TENSORS)
      return tt_error(TT_INVALID_ARGUMENT, "%s: argument %d is a tensor; graphs take values (TT_V_NODE)", name, i);
    return NULL;
  }
  a->n = v->kind == TT_V_NODE ? 1 : v->n;
  a->tensors = tt_arena_alloc(hlo_builder_arena(g->b), (size_t)a->n * sizeof *a->tensors + 1);
  if (!a->tensors) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (int j = 0; j < a->n; j++) {
    int64_t id = v->kind == TT_V_NODE ? v->u.i : v->u.ints[j];
    if (id < -1 || id >= g->n_values) return tt_error(TT_INVALID_ARGUMENT, "%s: there is no value %lld", name, (long long)id);
    a->tensors[j] = id < 0 ? NULL : g->values[id];
  }
  return NULL;
}

tt_status_t tt_graph_call(tt_graph_t* g, const char* name, int n_args, const tt_value_t* args, int n_types,
                          const tt_type_desc_t* types, int* out_ids, int* inout_n) {
  int room = *inout_n;
  *inout_n = 0;
  const tt_op_row_t* row = tt_op_find(name);
  if (!row) return tt_error(TT_UNIMPLEMENTED, "%s is not in the op table", name);
  if (row->flags & TT_OP_DATA_DEPENDENT)
    return tt_error(TT_UNIMPLEMENTED, "%s has a result whose size depends on values; a graph's sizes are fixed", name);
  tt_arena_t* arena = hlo_builder_arena(g->b);
  tt_larg_t* largs = tt_arena_alloc(arena, (size_t)(n_args + 1) * sizeof *largs);
  tt_type_t* outs = tt_arena_alloc(arena, (size_t)(n_types + 1) * sizeof *outs);
  if (!largs || !outs) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (int i = 0; i < n_args; i++) TT_TRY(bind_value(g, name, i, &args[i], &largs[i]));
  for (int i = 0; i < n_types; i++) outs[i] = (tt_type_t){types[i].dtype, types[i].rank, types[i].dims};
  tt_lower_t l = {.e = g->e, .row = row, .name = name, .node = g->n_calls++, .n_args = n_args, .args = largs,
                  .n_outs = n_types, .outs = outs};
  TT_TRY(tt_lower_run(&l));
  int n = l.n_rets + l.n_writes;
  if (n > room) *inout_n = n;  // for the caller to try again with
  if (n > room) return tt_error(TT_INVALID_ARGUMENT, "%s has %d results, there is room for %d", name, n, room);
  for (int i = 0; i < n; i++) {
    hlo_t v = i < l.n_rets ? l.rets[i] : l.writes[i - l.n_rets].value;
    out_ids[i] = v ? rt_graph_add(g, v) : -1;
    if (v && out_ids[i] < 0) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  *inout_n = n;
  if (g->script) rt_script_call(g->script, name, n_args, args, n_types, types);
  return NULL;
}

tt_status_t tt_graph_type(tt_graph_t* g, int id, tt_dtype_t* out_dtype, int* out_rank, int64_t out_dims[TT_MAX_RANK]) {
  if (id < 0 || id >= g->n_values) return tt_error(TT_INVALID_ARGUMENT, "there is no value %d", id);
  hlo_t v = g->values[id];
  *out_dtype = v->dtype;
  *out_rank = v->rank;
  if (v->rank) memcpy(out_dims, v->dims, (size_t)v->rank * sizeof(int64_t));
  return NULL;
}

tt_status_t tt_graph_outputs(tt_graph_t* g, int n, const int* ids, const int* donate) {
  if (n < 0) return tt_error(TT_INVALID_ARGUMENT, "%d outputs", n);
  tt_free(g->outputs);
  tt_free(g->donate);
  tt_free(g->strides);
  tt_free(g->writes);
  g->n_outputs = 0;
  g->outputs = tt_calloc((size_t)n + 1, sizeof *g->outputs);
  g->donate = tt_calloc((size_t)n + 1, sizeof *g->donate);
  g->strides = tt_calloc((size_t)n + 1, sizeof *g->strides);
  g->writes = tt_calloc((size_t)n + 1, sizeof *g->writes);
  if (!g->outputs || !g->donate || !g->strides || !g->writes) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (int i = 0; i < n; i++) {
    if (ids[i] < 0 || ids[i] >= g->n_values) return tt_error(TT_INVALID_ARGUMENT, "there is no value %d", ids[i]);
    if (donate && donate[i] >= g->n_params) return tt_error(TT_INVALID_ARGUMENT, "there is no parameter %d", donate[i]);
    g->outputs[i] = ids[i];
    g->donate[i] = donate ? donate[i] : -1;
    g->strides[i][0] = -1;
  }
  g->n_outputs = n;
  return NULL;
}

tt_status_t tt_graph_write_back(tt_graph_t* g, int i) {
  if (i < 0 || i >= g->n_outputs) return tt_error(TT_INVALID_ARGUMENT, "there is no output %d", i);
  if (g->donate[i] < 0) return tt_error(TT_INVALID_ARGUMENT, "output %d names no parameter that it is written to", i);
  g->writes[i] = true;
  return NULL;
}

void tt_graph_precision(tt_graph_t* g, int precision) { hlo_set_precision(g->b, (hlo_precision_t)precision); }

tt_status_t tt_graph_output_strides(tt_graph_t* g, int i, int rank, const int64_t* strides) {
  if (i < 0 || i >= g->n_outputs) return tt_error(TT_INVALID_ARGUMENT, "there is no output %d", i);
  hlo_t v = g->values[g->outputs[i]];
  if (rank != v->rank || !tt_view_is_dense(rank, v->dims, strides, NULL))
    return tt_error(TT_INVALID_ARGUMENT, "strides of output %d are not those of a dense tensor of its shape", i);
  if (rank) memcpy(g->strides[i], strides, (size_t)rank * sizeof(int64_t));
  return NULL;
}

// ---------------------------------------------------------------- compiling
// Fills entry->fresh and gives the program's results in memory order.
static tt_status_t plan_outputs(tt_graph_t* g, rt_entry_t* e, hlo_t* results, int* aliases) {
  e->fresh = tt_calloc((size_t)g->n_outputs + 1, sizeof *e->fresh);
  if (!e->fresh) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  e->n_fresh = g->n_outputs;
  for (int i = 0; i < g->n_outputs; i++) {
    hlo_t v = g->values[g->outputs[i]];
    rt_fresh_t* f = &e->fresh[i];
    f->meta = (tt_meta_t){.rank = v->rank, .dtype = v->dtype, .defined = true};
    f->output = f->count_output = -1;
    if (v->rank) memcpy(f->meta.sizes, v->dims, (size_t)v->rank * sizeof(int64_t));
    if (g->strides[i][0] == -1) tt_view_row_major(f->meta.rank, f->meta.sizes, f->meta.strides);
    else memcpy(f->meta.strides, g->strides[i], sizeof f->meta.strides);
    if (hlo_numel(v) == 0) continue;
    int8_t perm[TT_MAX_RANK];
    int64_t p[TT_MAX_RANK], dims[TT_MAX_RANK];
    tt_view_is_dense(v->rank, v->dims, f->meta.strides, perm);
    for (int d = 0; d < v->rank; d++) p[d] = perm[d], dims[d] = v->dims[perm[d]];
    rt_lock();
    f->layout = rt_layout_get(v->dtype, v->rank, dims);
    rt_unlock();
    if (!f->layout) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    f->nbytes = (size_t)f->layout->size_bytes;
    f->output = e->n_outputs;
    results[e->n_outputs] = hlo_transpose(g->b, v, p);
    aliases[e->n_outputs] = -1;
    for (int k = 0; g->donate[i] >= 0 && k < g->e->n_operands; k++) {
      const tt_operand_t* o = &g->e->operands[k];
      hlo_t param = g->e->params[k];
      bool same = o->kind == TT_OPERAND_PARAM && o->index == g->donate[i] && param->dtype == v->dtype && param->rank == v->rank;
      for (int d = 0; same && d < v->rank; d++) same = param->dims[d] == dims[d];
      if (same) aliases[e->n_outputs] = k;
    }
    e->n_outputs++;
  }
  return NULL;
}

static tt_status_t plan_checks(tt_graph_t* g, rt_entry_t* e, hlo_t* results, int* aliases) {
  e->check_output = -1;
  hlo_t check = tt_emit_check_value(g->e);
  if (!check) return NULL;
  e->messages = tt_calloc((size_t)g->e->n_checks, sizeof *e->messages);
  if (!e->messages) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  e->n_messages = g->e->n_checks;
  for (int i = 0; i < e->n_messages; i++)
    e->messages[i] = (rt_message_t){g->e->checks[i].code, tt_strdup(g->e->checks[i].message)};
  aliases[e->n_outputs] = -1;
  results[e->n_outputs] = check;
  e->check_output = e->n_outputs++;
  return NULL;
}

// Layouts of the parameters; false: memory is out.
static bool plan_params(tt_graph_t* g, tt_program_t* p) {
  if (!p->params) return false;
  p->n_params = g->n_params;
  bool ok = true;
  rt_lock();
  for (int i = 0; i < g->e->n_operands; i++) {
    const tt_operand_t* o = &g->e->operands[i];
    hlo_t v = g->e->params[i];
    if (o->kind == TT_OPERAND_PARAM) ok = (p->params[o->index] = rt_layout_get(v->dtype, v->rank, v->dims)) && ok;
  }
  rt_unlock();
  return ok;
}

static tt_status_t print_graph(tt_graph_t* g, rt_entry_t* e, tt_strbuf_t* text) {
  tt_arena_t* arena = hlo_builder_arena(g->b);
  size_t room = (size_t)g->n_outputs + 2;
  hlo_t* results = tt_arena_alloc(arena, room * sizeof *results);
  int* aliases = tt_arena_alloc(arena, room * sizeof *aliases);
  if (!results || !aliases) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  TT_TRY(plan_outputs(g, e, results, aliases));
  TT_TRY(plan_checks(g, e, results, aliases));
  TT_TRY(hlo_builder_error(g->b));
  return hlo_print(g->b, e->n_outputs, results, aliases, text);
}

tt_status_t tt_graph_text(tt_graph_t* g, char** out_text, size_t* out_len) {
  *out_text = NULL;
  rt_entry_t* e = tt_calloc(1, sizeof *e);
  if (!e) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  e->refs = 1;
  tt_strbuf_t text;
  tt_strbuf_init(&text);
  tt_status_t status = print_graph(g, e, &text);
  rt_lock();
  rt_entry_release(e);
  rt_unlock();
  if (status) {
    tt_strbuf_deinit(&text);
    return status;
  }
  *out_text = text.data;
  *out_len = text.len;
  return NULL;
}

void tt_text_free(char* text) { tt_free(text); }

static void program_free(tt_program_t* p) {
  if (!p) return;
  tt_free(p->donated);
  tt_free(p->writes);
  tt_free(p->params);
  tt_free(p);
}

tt_status_t tt_graph_compile(tt_graph_t* g, const char* overrides, tt_program_t** out_program) {
  *out_program = NULL;
  TT_TRY(rt_check_device(g->device));
  tt_program_t* p = tt_calloc(1, sizeof *p);
  rt_entry_t* e = tt_calloc(1, sizeof *e);
  tt_strbuf_t text;
  tt_strbuf_init(&text);
  tt_status_t status = p && e ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  if (!status) {
    atomic_init(&p->refs, 1);
    p->entry = e;
    p->device = g->device;
    p->donated = tt_calloc((size_t)g->n_outputs + 1, sizeof *p->donated);
    p->writes = tt_calloc((size_t)g->n_outputs + 1, sizeof *p->writes);
    p->params = tt_calloc((size_t)g->n_params + 1, sizeof *p->params);
    e->refs = 1;
    e->op_name = "compiled graph";
    status = p->donated && p->writes && plan_params(g, p) ? print_graph(g, e, &text) : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  if (!status) {
    for (int i = 0; i < g->n_outputs; i++) p->donated[i] = g->donate[i], p->writes[i] = g->writes[i];
    e->n_operands = g->e->n_operands;
    e->rng_drawn = g->e->rng_drawn;
    e->operands = tt_malloc(((size_t)e->n_operands + 1) * sizeof *e->operands);
    if (!e->operands) status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    else if (e->n_operands) memcpy(e->operands, g->e->operands, (size_t)e->n_operands * sizeof *e->operands);
  }
  if (!status && e->n_outputs) status = rt_compile_cached(g->device, &text, overrides, "graph", &e->exe);
  tt_strbuf_deinit(&text);
  if (status) {
    program_free(p);
    rt_lock();
    rt_entry_release(e);
    rt_unlock();
    return status;
  }
  *out_program = p;
  return NULL;
}

void tt_program_retain(tt_program_t* p) { atomic_fetch_add(&p->refs, 1); }

void tt_program_release(tt_program_t* p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) > 1) return;
  rt_lock();
  rt_entry_release(p->entry);
  rt_unlock();
  program_free(p);
}

int tt_program_outputs(const tt_program_t* p) { return p->entry->n_fresh; }

// ---------------------------------------------------------------- running
typedef struct run_t {
  tt_program_t* p;
  int n_args;
  const tt_tensor_t* args;
  rt_cell_t** cells;        // by argument
  tt_pbuf_t** buffers;      // operands, then outputs
  int64_t* keep;
  const tt_true_sizes_t* bounded;  // NULL: all sizes are the program's
  const tt_meta_t* metas;          // by result, of a bounded program
  const rt_layout_t** layouts;
} run_t;

// Under the lock. The generator's state as a buffer, advanced.
static tt_status_t rng_operand(const run_t* r, tt_rng_t* rng, tt_pbuf_t** out) {
  unsigned char state[16];
  rt_rng_draw(rng ? rng : tt_rng_default(r->p->device), r->p->entry->rng_drawn, state);
  return rt_rng_upload(r->p->device, state, out);
}

static tt_status_t sizes_operand(const run_t* r, tt_pbuf_t** out) {
  if (!r->bounded) return tt_error(TT_INVALID_ARGUMENT, "a program with bounded sizes must be told the true ones");
  const int64_t n = r->bounded->n_numbers;
  return tt_pbuf_from_host(g_rt.client, r->p->device, TT_I64, 1, &n, r->bounded->numbers, TT_HOST_COPY, NULL, NULL, out);
}

static tt_status_t execute(run_t* r, tt_rng_t* rng) {
  rt_entry_t* e = r->p->entry;
  tt_pbuf_t *state = NULL, *sizes = NULL;
  tt_status_t status = NULL;
  for (int i = 0; i < e->n_operands && !status; i++) {
    const tt_operand_t* o = &e->operands[i];
    if (o->kind == TT_OPERAND_PARAM) r->buffers[i] = o->index < r->n_args ? r->cells[o->index]->buffer : NULL;
    else if (o->kind == TT_OPERAND_RNG) {
      status = rng_operand(r, rng, &state);
      r->buffers[i] = state;
    } else if (o->kind == TT_OPERAND_SIZES) {
      status = sizes_operand(r, &sizes);
      r->buffers[i] = sizes;
    } else {
      status = tt_error(TT_INTERNAL, "a graph has an operand of kind %d", o->kind);
    }
  }
  int n_keep = 0;
  for (int i = 0; i < e->n_fresh; i++) {
    int d = r->p->donated[i];
    if (d < 0) continue;
    // Ours and the storage's reference: any more, and somebody else still reads the value.
    if (r->cells[d]->refs > 2) {
      for (int k = 0; k < e->n_operands; k++)
        if (e->operands[k].kind == TT_OPERAND_PARAM && e->operands[k].index == d) r->keep[n_keep++] = k;
    } else {
      RT_COUNT(donations, 1);
    }
  }
  if (!status) status = tt_exe_run(e->exe, e->n_operands, r->buffers, n_keep, r->keep, r->buffers + e->n_operands, NULL);
  tt_pbuf_free(g_rt.client, state);
  tt_pbuf_free(g_rt.client, sizes);
  if (!status) RT_COUNT(executions, 1);
  return status;
}

// True when a result in |layout| can replace the value of argument |arg|'s storage: the tensor is all of it, as kept.
static bool takes_value(const run_t* r, int arg, const rt_layout_t* layout) {
  const tt_tensor_t* t = &r->args[arg];
  if (!t->storage || !t->storage->cell || (size_t)layout->size_bytes != t->storage->nbytes) return false;
  if (!r->bounded) return t->storage->cell == r->cells[arg] && r->cells[arg]->layout == layout;
  const rt_layout_t* kept = t->storage->cell->layout;  // padded otherwise, perhaps
  if (kept->dtype != layout->dtype || kept->rank != layout->rank || t->offset) return false;
  for (int d = 0; d < kept->rank; d++)
    if (kept->dims[d] != layout->dims[d]) return false;
  return tt_view_is_contiguous(t->rank, t->sizes, t->strides);
}

// Metadata and layouts of a bounded program's results. True strides keep the order that the program's have in memory.
static tt_status_t true_results(run_t* r, tt_meta_t* metas, const rt_layout_t** layouts) {
  const rt_entry_t* e = r->p->entry;
  const int64_t* sizes = r->bounded->results;
  for (int i = 0; i < e->n_fresh; i++) {
    const rt_fresh_t* f = &e->fresh[i];
    tt_meta_t* m = &metas[i];
    *m = f->meta;
    int8_t perm[TT_MAX_RANK];
    int64_t dims[TT_MAX_RANK], physical[TT_MAX_RANK], step = 1;
    tt_view_is_dense(m->rank, f->meta.sizes, f->meta.strides, perm);
    for (int d = 0; d < m->rank; d++) {
      m->sizes[d] = *sizes++;
      if (m->sizes[d] < 0 || m->sizes[d] > f->meta.sizes[d])
        return tt_error(TT_INVALID_ARGUMENT, "result %d has size %lld in dim %d, above the program's bound %lld", i,
                        (long long)m->sizes[d], d, (long long)f->meta.sizes[d]);
    }
    for (int d = m->rank - 1; d >= 0; d--) {
      dims[d] = m->sizes[perm[d]];
      physical[d] = f->meta.sizes[perm[d]];
      m->strides[perm[d]] = step;
      step *= dims[d] > 1 ? dims[d] : 1;
    }
    if (f->output < 0) continue;
    rt_lock();
    layouts[i] = rt_layout_get_padded(m->dtype, m->rank, dims, physical);
    rt_unlock();
    if (!layouts[i]) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  r->metas = metas;
  r->layouts = layouts;
  return NULL;
}

// Room for the metadata of a bounded program's results, which the caller may read until the thread's next call.
static tt_meta_t* thread_metas(int n) {
  static _Thread_local tt_meta_t* metas;
  static _Thread_local int room;
  if (n <= room) return metas;
  tt_meta_t* more = tt_realloc(metas, (size_t)n * sizeof *more);
  if (more) metas = more, room = n;
  return more;
}

static const tt_meta_t k_undefined;

static tt_status_t deliver(run_t* r, tt_results_t* results) {
  rt_entry_t* e = r->p->entry;
  tt_pbuf_t** out = r->buffers + e->n_operands;
  tt_result_t* items = tt_realloc(results->items, ((size_t)e->n_fresh + 1) * sizeof *items);
  if (!items) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  results->items = items;
  results->cap = e->n_fresh + 1;
  results->n = e->n_fresh;
  bool lost = false;
  for (int i = 0; i < e->n_fresh; i++) {
    rt_fresh_t* f = &e->fresh[i];
    const rt_layout_t* layout = r->bounded ? r->layouts[i] : f->layout;
    size_t nbytes = r->bounded && layout ? (size_t)layout->size_bytes : f->nbytes;
    rt_cell_t* cell = f->output >= 0 ? rt_cell_create(out[f->output], layout, r->p->device) : NULL;
    if (cell && r->p->writes[i] && takes_value(r, r->p->donated[i], layout)) {
      rt_storage_set(r->args[r->p->donated[i]].storage, cell);
      items[i] = (tt_result_t){.meta = &k_undefined, .true_size = -1};
      continue;
    }
    const tt_meta_t* meta = r->bounded ? &r->metas[i] : &f->meta;
    items[i] = (tt_result_t){.meta = meta, .true_size = -1, .storage = rt_storage_wrap(r->p->device, nbytes, cell)};
    if (!items[i].storage) lost = true;
    int d = r->p->donated[i];
    if (d >= 0 && r->cells[d]->refs == 2 && r->args[d].storage && r->args[d].storage->cell == r->cells[d])
      rt_storage_set(r->args[d].storage, NULL);  // its buffer went into the result
  }
  return lost ? tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted") : NULL;
}

tt_status_t tt_program_run(tt_program_t* p, int n_args, const tt_tensor_t* args, tt_rng_t* rng, tt_results_t* results) {
  return tt_program_run_bounded(p, n_args, args, NULL, rng, results);
}

// The cell that argument |i| is passed as.
static tt_status_t bind_argument(run_t* r, int i) {
  const tt_tensor_t* t = &r->args[i];
  const rt_layout_t* l = i < r->p->n_params ? r->p->params[i] : NULL;
  if (t->storage && t->storage->device != r->p->device)
    return tt_error(TT_INVALID_ARGUMENT, "argument %d is on tpu:%d, the program runs on tpu:%d", i, t->storage->device, r->p->device);
  if (!r->bounded || !l) return rt_dense_cell(t, &r->cells[i]);
  if (t->rank != l->rank || (tt_dtype_t)t->dtype != l->dtype)
    return tt_error(TT_INVALID_ARGUMENT, "argument %d is of another type than the program's parameter", i);
  for (int d = 0; d < l->rank; d++)
    if (t->sizes[d] != l->dims[d]) return rt_padded_cell(t, l->dims, &r->cells[i]);
  return rt_dense_cell(t, &r->cells[i]);
}

tt_status_t tt_program_run_bounded(tt_program_t* p, int n_args, const tt_tensor_t* args, const tt_true_sizes_t* sizes,
                                   tt_rng_t* rng, tt_results_t* results) {
  results->n = 0;
  results->must_resize = false;
  TT_TRY(rt_check_device(p->device));
  rt_entry_t* e = p->entry;
  run_t r = {.p = p, .n_args = n_args, .args = args, .bounded = sizes};
  size_t n = (size_t)n_args + (size_t)e->n_operands * 2 + (size_t)e->n_outputs + 4;
  r.cells = tt_calloc(n, sizeof(void*));
  r.buffers = tt_calloc(n, sizeof(void*));
  r.keep = tt_calloc(n, sizeof *r.keep);
  tt_meta_t* metas = sizes ? thread_metas(e->n_fresh + 1) : NULL;
  const rt_layout_t** layouts = sizes ? tt_calloc((size_t)e->n_fresh + 1, sizeof *layouts) : NULL;
  bool room = r.cells && r.buffers && r.keep && (!sizes || (metas && layouts));
  tt_status_t status = room ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (int i = 0; i < n_args && !status; i++) status = bind_argument(&r, i);
  if (!status && sizes) status = true_results(&r, metas, layouts);
  rt_defer_ask("a compiled program");
  rt_lock();
  if (!status && rt_defer_pending()) status = rt_defer_flush(RT_CUT_OP);
  if (!status && e->exe) status = execute(&r, rng);
  if (!status) status = deliver(&r, results);
  for (int i = 0; i < n_args; i++) rt_cell_release(r.cells ? r.cells[i] : NULL);
  rt_unlock();
  if (!status && e->check_output >= 0) status = rt_checks_push(r.buffers[e->n_operands + e->check_output], e, "");
  tt_free(r.cells);
  tt_free(r.buffers);
  tt_free(r.keep);
  tt_free(layouts);
  if (status) {
    for (int i = 0; i < results->n; i++) tt_storage_release(results->items[i].storage);
    results->n = 0;
  }
  if (!status && tt_mode_get() == TT_MODE_DEBUG) status = tt_device_synchronize(p->device);
  return rt_explain_oom(status, p->device);
}

// ---------------------------------------------------------------- a graph over a lowering
tt_graph_t* tt_lower_graph(tt_lower_t* l) {
  if (l->graph) return l->graph;
  tt_graph_t* g = graph_new(l->e->b);
  if (!g) return NULL;
  g->lower = l;
  g->e = l->e;
  l->graph = g;
  return g;
}

int tt_lower_arg(tt_lower_t* l, int arg, int elem) {
  tt_graph_t* g = tt_lower_graph(l);
  if (!g || arg < 0 || arg >= l->n_args || elem < 0 || elem >= l->args[arg].n || !l->args[arg].tensors[elem]) return -1;
  if (g->script) rt_script_arg(g->script, arg, elem);
  return rt_graph_add(g, l->args[arg].tensors[elem]);
}

void rt_graph_script(tt_graph_t* graph, tt_strbuf_t* script) { graph->script = script; }

tt_status_t tt_lower_result(tt_lower_t* l, int i, int id) {
  tt_graph_t* g = l->graph;
  if (!g || id < 0 || id >= g->n_values) return tt_error(TT_INVALID_ARGUMENT, "there is no value %d", id);
  if (g->script) rt_script_result(g->script, i, id);
  tt_ret(l, i, g->values[id]);
  return hlo_builder_error(g->b);
}
