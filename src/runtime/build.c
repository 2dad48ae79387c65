// The miss path: metadata from the front end, lowering through the table, one program, one entry.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/disk.h"
#include "runtime/entry.h"
#include "tt/graph.h"

typedef struct build_t {
  rt_call_t* call;
  const tt_op_t* op;
  hlo_builder_t* b;
  tt_emit_t own;
  tt_emit_t* e;          // &own, or that of the larger program
  tt_lower_t l;
  rt_metas_t* metas;
  hlo_t* base;           // by slot: current value of the storage; NULL not read yet
  hlo_t* original;       // by slot: the parameter
  bool* is_written;      // by slot
  hlo_t* outputs;        // of the program
  int* aliases;          // by output: donated parameter
  int n_outputs;
  rt_entry_t* entry;
} build_t;

bool tt_metas_push(void* sink, const tt_meta_t* meta) {
  rt_metas_t* m = sink;
  if (!tt_grow(&m->items, m->n, &m->cap, sizeof *m->items)) return false;
  m->items[m->n++] = *meta;
  return true;
}

static void* scratch(build_t* w, size_t count, size_t size) {
  void* p = tt_arena_alloc(hlo_builder_arena(w->b), count * size + 1);
  if (!p) hlo_fail(w->b, TT_RESOURCE_EXHAUSTED, "host memory is exhausted while lowering");
  return p;
}

// ---------------------------------------------------------------- reading arguments
static hlo_t base_value(build_t* w, int slot) {
  if (w->base[slot]) return w->base[slot];
  const rt_layout_t* l = w->call->slots[slot].layout;
  hlo_t v;
  if (l) {
    tt_operand_t o = {.kind = TT_OPERAND_BASE, .index = slot};
    w->original[slot] = tt_emit_operand(w->e, o, l->dtype, l->rank, l->physical);
    v = rt_without_padding(w->b, w->original[slot], l);
  } else {
    v = NULL;  // undefined: the reader decides the dtype of its zeros
  }
  return w->base[slot] = v;
}

// The slot's value, or zeros of |dtype| for an undefined storage.
static hlo_t base_or_zeros(build_t* w, int slot, tt_dtype_t dtype) {
  hlo_t v = base_value(w, slot);
  if (v) return v;
  const int64_t n = rt_slot_elements(&w->call->slots[slot], dtype);
  return hlo_splat(w->b, dtype, 0, 1, &n);
}

static void digit_operands(build_t* w, int tref, const tt_view_plan_t* plan, hlo_t* out) {
  for (int i = 0; i < plan->n; i++)
    out[i] = plan->start[i] == 0 ? NULL
                                 : tt_emit_operand(w->e, (tt_operand_t){.kind = TT_OPERAND_DIGIT, .arg = (int16_t)w->l.node, .index = tref, .elem = i},
                                                   TT_I64, 0, NULL);
}

static hlo_t read_tensor(build_t* w, int tref) {
  const rt_tref_t* r = &w->call->trefs[tref];
  const tt_tensor_t* t = r->t;
  if (t->flags & TT_T_HOST)
    return tt_emit_operand(w->e, (tt_operand_t){.kind = TT_OPERAND_HOST, .arg = (int16_t)w->l.node, .index = tref, .dtype = r->present_as},
                           (tt_dtype_t)r->present_as, 0, NULL);
  if (!t->storage) return hlo_splat(w->b, (tt_dtype_t)t->dtype, 0, t->rank, t->sizes);
  if (r->standard) return base_value(w, r->slot);
  tt_view_plan_t plan;
  hlo_t digits[TT_MAX_RANK + 1];
  tt_view_plan(rt_slot_elements(&w->call->slots[r->slot], (tt_dtype_t)t->dtype), t->rank, t->sizes, t->strides, t->offset, &plan);
  if (plan.form == TT_VIEW_EMPTY) return hlo_splat(w->b, (tt_dtype_t)t->dtype, 0, t->rank, t->sizes);
  digit_operands(w, tref, &plan, digits);
  return tt_view_read(w->b, base_or_zeros(w, r->slot, (tt_dtype_t)t->dtype), (tt_dtype_t)t->dtype, t->rank, t->sizes,
                      t->strides, &plan, digits);
}

static bool is_out_arg(const tt_op_t* op, int i) { return op->desc.variant == TT_OUT && i >= op->desc.n_args - op->desc.n_outs; }

// Presents the call's arguments to the lowering.
static void bind_args(build_t* w) {
  const tt_op_t* op = w->op;
  int n = op->desc.n_args - (op->desc.variant == TT_OUT ? op->desc.n_outs : 0);
  tt_larg_t* args = scratch(w, (size_t)n, sizeof *args);
  if (!args) return;
  int tref = 0;
  for (int i = 0; i < n; i++) {
    const tt_value_t* v = &w->call->args[i];
    tt_larg_t* a = &args[i];
    a->v = *v;
    a->src_arg = -1;
    uint8_t cls = op->classes[i];
    a->runtime = cls != RT_ARG_STATIC && v->kind != TT_V_NONE && v->kind != TT_V_TENSOR && v->kind != TT_V_TENSORS;
    if (cls == RT_ARG_UNIT)
      a->is_one = v->kind == TT_V_FLOAT ? v->u.f == 1.0 : (v->kind == TT_V_INT || v->kind == TT_V_BOOL) && v->u.i == 1;
    if (v->kind != TT_V_TENSOR && v->kind != TT_V_TENSORS) continue;
    a->n = v->kind == TT_V_TENSOR ? 1 : v->n;
    a->tensors = scratch(w, (size_t)a->n, sizeof *a->tensors);
    if (!a->tensors) return;
    for (int j = 0; j < a->n; j++)
      if (!(v->u.tensor[j].flags & TT_T_UNDEFINED)) a->tensors[j] = read_tensor(w, tref++);
  }
  w->l.args = args;
  w->l.n_args = n;
}

// First tref of argument |arg|, element |elem|; -1 when it is no tensor.
static int tref_of(const rt_call_t* c, int arg, int elem) {
  int tref = 0;
  for (int i = 0; i <= arg; i++) {
    const tt_value_t* v = &c->args[i];
    if (v->kind != TT_V_TENSOR && v->kind != TT_V_TENSORS) continue;
    int n = v->kind == TT_V_TENSOR ? 1 : v->n;
    for (int j = 0; j < n; j++) {
      bool defined = !(v->u.tensor[j].flags & TT_T_UNDEFINED);
      if (i == arg && j == elem) return defined ? tref : -1;
      tref += defined;
    }
  }
  return -1;
}

// ---------------------------------------------------------------- expected types
static tt_status_t expect_types(build_t* w) {
  const tt_op_t* op = w->op;
  rt_call_t* c = w->call;
  tt_type_t* types;
  int n = 0;
  if (op->desc.variant == TT_FUNCTIONAL) {
    types = scratch(w, (size_t)w->metas->n, sizeof *types);
    if (!types) return hlo_builder_error(w->b);
    for (; n < w->metas->n; n++) {
      const tt_meta_t* m = &w->metas->items[n];
      types[n] = (tt_type_t){m->defined ? m->dtype : TT_DT_NONE, m->rank, m->sizes};
    }
  } else {
    types = scratch(w, (size_t)c->n_trefs, sizeof *types);
    if (!types) return hlo_builder_error(w->b);
    for (int i = 0; i < op->desc.n_args; i++) {
      if (!op->desc.mutates[i] || (op->desc.variant == TT_OUT && !is_out_arg(op, i))) continue;
      const tt_value_t* v = &c->args[i];
      int count = v->kind == TT_V_TENSOR ? 1 : v->kind == TT_V_TENSORS ? v->n : 0;
      for (int j = 0; j < count; j++) {
        const tt_tensor_t* t = &v->u.tensor[j];
        if (!(t->flags & TT_T_UNDEFINED)) types[n++] = (tt_type_t){(tt_dtype_t)t->dtype, t->rank, t->sizes};
      }
    }
  }
  w->l.outs = types;
  w->l.n_outs = n;
  return NULL;
}

// ---------------------------------------------------------------- results
static int add_output(build_t* w, hlo_t v) {
  w->outputs[w->n_outputs] = v;
  w->aliases[w->n_outputs] = -1;
  return w->n_outputs++;
}

// |v| in memory order: dims sorted by stride, so that the buffer is the storage. |out_dims| receives them.
static hlo_t to_memory_order(hlo_builder_t* b, hlo_t v, const int8_t* perm, int64_t* out_dims) {
  int64_t p[TT_MAX_RANK];
  for (int i = 0; i < v->rank; i++) {
    p[i] = perm[i];
    out_dims[i] = v->dims[perm[i]];
  }
  return hlo_transpose(b, v, p);
}

static tt_status_t layout_for(tt_dtype_t dtype, int rank, const int64_t* dims, const rt_layout_t** out) {
  rt_lock();
  *out = rt_layout_get(dtype, rank, dims);
  rt_unlock();
  return *out ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
}

// |v|, in memory order, holds its first |count| entries along dim |at|: those alone, one after another, in front of a
// row of the same size.
static hlo_t compact(hlo_builder_t* b, hlo_t v, int at, hlo_t count) {
  int64_t n = hlo_numel(v), inner = 1;
  for (int d = at + 1; d < v->rank; d++) inner *= v->dims[d];
  hlo_t flat = hlo_reshape(b, v, 1, &n), k = hlo_iota(b, TT_I64, 1, &n, 0);
  hlo_t width = hlo_scalar_int(b, TT_I64, inner * v->dims[at]);
  hlo_t used = hlo_multiply(b, hlo_maximum(b, hlo_convert(b, count, TT_I64), hlo_scalar_int(b, TT_I64, 1)),
                            hlo_scalar_int(b, TT_I64, inner));
  hlo_t from = hlo_add(b, hlo_multiply(b, hlo_divide(b, k, used), width), hlo_remainder(b, k, used));
  return hlo_take(b, flat, hlo_minimum(b, from, hlo_scalar_int(b, TT_I64, n - 1)), 0);
}

static tt_status_t fresh_result(build_t* w, int i, rt_fresh_t* f) {
  hlo_t v = w->l.rets[i];
  const tt_place_t* place = &w->l.places[i];
  f->output = f->count_output = -1;
  if (i < w->metas->n) {
    f->meta = w->metas->items[i];
  } else {  // known from the lowering only: row-major
    f->meta = (tt_meta_t){.defined = v != NULL};
    if (v) {
      f->meta.rank = v->rank;
      f->meta.dtype = v->dtype;
      for (int d = 0; d < v->rank; d++) f->meta.sizes[d] = v->dims[d];
      tt_view_row_major(v->rank, f->meta.sizes, f->meta.strides);
    }
  }
  if (!v || !f->meta.defined) {
    f->meta.defined = false;
    return NULL;
  }
  const tt_meta_t* m = &f->meta;
  if (place->strided) memcpy(f->meta.strides, place->strides, sizeof f->meta.strides);
  f->meta.sized_dim = place->sized_dim;
  if (place->count) f->count_output = add_output(w, hlo_convert(w->b, place->count, TT_I64));
  if (hlo_numel(v) == 0) return NULL;
  int8_t perm[TT_MAX_RANK];
  int64_t dims[TT_MAX_RANK];
  if (tt_view_is_dense(m->rank, m->sizes, m->strides, perm)) {
    v = to_memory_order(w->b, v, perm, dims);
    int at = 0;
    while (place->count && perm[at] != place->sized_dim) at++;
    if (at > 0) v = compact(w->b, v, at, place->count);
    TT_TRY(layout_for(m->dtype, v->rank, v->dims, &f->layout));
  } else {  // holes or overlap: a row of the extent, written through the view
    int64_t extent = 1;
    for (int d = 0; d < m->rank; d++) extent += (m->sizes[d] - 1) * m->strides[d];
    tt_view_plan_t plan;
    tt_view_plan(extent, m->rank, m->sizes, m->strides, 0, &plan);
    hlo_t digits[TT_MAX_RANK + 1] = {0};
    v = tt_view_write(w->b, hlo_splat(w->b, m->dtype, 0, 1, &extent), v, m->rank, m->sizes, m->strides, &plan, digits);
    TT_TRY(layout_for(m->dtype, 1, &extent, &f->layout));
  }
  f->nbytes = (size_t)f->layout->size_bytes;
  f->output = add_output(w, v);
  return NULL;
}

// Writes |v| through tensor |tref| into its storage's current value.
static tt_status_t write_through(build_t* w, int tref, hlo_t v, const rt_layout_t** out_layouts) {
  const rt_tref_t* r = &w->call->trefs[tref];
  const tt_tensor_t* t = r->t;
  if (t->flags & TT_T_HOST) return tt_error(TT_INVALID_ARGUMENT, "%s: cannot write into a CPU tensor", w->op->desc.name);
  if (!t->storage) return NULL;  // empty
  v = hlo_convert(w->b, v, (tt_dtype_t)t->dtype);
  if (hlo_numel(v) == 0) return NULL;
  int slot = r->slot;
  int8_t perm[TT_MAX_RANK];
  int64_t dims[TT_MAX_RANK];
  bool whole = t->offset == 0 && (size_t)hlo_numel(v) * tt_dtype_size((tt_dtype_t)t->dtype) ==
                                       w->call->slots[slot].nbytes &&
               tt_view_is_dense(t->rank, t->sizes, t->strides, perm);
  if (whole) {
    w->base[slot] = to_memory_order(w->b, v, perm, dims);
    TT_TRY(layout_for((tt_dtype_t)t->dtype, t->rank, dims, &out_layouts[slot]));
  } else {
    if (tt_view_overlaps(t->rank, t->sizes, t->strides))
      return tt_error(TT_INVALID_ARGUMENT,
                      "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                      "location. Please clone() the tensor before performing the operation.");
    hlo_t base = base_or_zeros(w, slot, (tt_dtype_t)t->dtype);
    // In a larger program others use the result too: tt_view_write must not write in place (its comment says why).
    if (w->e != &w->own && !base->op) base = hlo_optimization_barrier(w->b, base);
    tt_view_plan_t plan;
    hlo_t digits[TT_MAX_RANK + 1] = {0};
    tt_view_plan(hlo_numel(base) * (int64_t)tt_dtype_size(base->dtype) / (int64_t)tt_dtype_size((tt_dtype_t)t->dtype), t->rank,
                 t->sizes, t->strides, t->offset, &plan);
    if (!r->standard) digit_operands(w, tref, &plan, digits);
    w->base[slot] = tt_view_write(w->b, base, v, t->rank, t->sizes, t->strides, &plan, digits);
    if (!out_layouts[slot]) TT_TRY(layout_for(base->dtype, base->rank, base->dims, &out_layouts[slot]));
  }
  w->is_written[slot] = true;
  return NULL;
}

// Applies results and explicit mutations to the arguments they go to, then emits the changed storages.
static tt_status_t write_arguments(build_t* w) {
  const tt_op_t* op = w->op;
  rt_call_t* c = w->call;
  const rt_layout_t** layouts = scratch(w, (size_t)c->n_slots, sizeof *layouts);
  if (!layouts) return hlo_builder_error(w->b);
  int ret = 0;
  if (op->desc.variant != TT_FUNCTIONAL && w->l.n_rets) {
    for (int i = 0; i < op->desc.n_args; i++) {
      if (!op->desc.mutates[i] || (op->desc.variant == TT_OUT && !is_out_arg(op, i))) continue;
      int count = c->args[i].kind == TT_V_TENSOR ? 1 : c->args[i].kind == TT_V_TENSORS ? c->args[i].n : 0;
      for (int j = 0; j < count; j++) {
        int tref = tref_of(c, i, j);
        if (tref < 0) continue;
        if (ret < w->l.n_rets && w->l.rets[ret]) TT_TRY(write_through(w, tref, w->l.rets[ret], layouts));
        ret++;
      }
    }
  }
  for (int k = 0; k < w->l.n_writes; k++) {
    const tt_write_t* m = &w->l.writes[k];
    int tref = tref_of(c, m->arg, m->elem);
    if (tref < 0) continue;
    const tt_tensor_t* t = c->trefs[tref].t;
    if (m->value->rank != t->rank) return tt_error(TT_INTERNAL, "%s: new value of argument %d has rank %d, not %d", op->desc.name, m->arg, m->value->rank, t->rank);
    TT_TRY(write_through(w, tref, m->value, layouts));
  }
  rt_entry_t* entry = w->entry;
  for (int s = 0; s < c->n_slots; s++) entry->n_writes += w->is_written[s];
  entry->writes = entry->n_writes ? tt_calloc((size_t)entry->n_writes, sizeof *entry->writes) : NULL;
  if (entry->n_writes && !entry->writes) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  int k = 0;
  for (int s = 0; s < c->n_slots; s++) {
    if (!w->is_written[s]) continue;
    rt_slot_write_t* out = &entry->writes[k++];
    *out = (rt_slot_write_t){.slot = s, .layout = layouts[s], .donated = -1};
    out->output = add_output(w, w->base[s]);
    if (!w->original[s] || c->slots[s].layout != layouts[s]) continue;
    for (int p = 0; p < w->e->n_operands; p++)
      if (w->e->params[p] == w->original[s]) out->donated = p;
    w->aliases[out->output] = out->donated;
  }
  return NULL;
}

static tt_status_t collect_outputs(build_t* w) {
  rt_entry_t* entry = w->entry;
  int fresh = w->op->desc.variant == TT_FUNCTIONAL ? w->l.n_rets : 0;
  size_t room = (size_t)fresh * 2 + (size_t)w->call->n_slots + 2;
  w->outputs = scratch(w, room, sizeof *w->outputs);
  w->aliases = scratch(w, room, sizeof *w->aliases);
  if (!w->outputs || !w->aliases) return hlo_builder_error(w->b);
  if (fresh) {
    entry->fresh = tt_calloc((size_t)fresh, sizeof *entry->fresh);
    if (!entry->fresh) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    entry->n_fresh = fresh;
    for (int i = 0; i < fresh; i++) TT_TRY(fresh_result(w, i, &entry->fresh[i]));
  }
  TT_TRY(write_arguments(w));
  entry->check_output = -1;
  hlo_t check = tt_emit_check_value(w->e);
  if (check) {
    entry->check_output = add_output(w, check);
    entry->messages = tt_calloc((size_t)w->e->n_checks, sizeof *entry->messages);
    if (!entry->messages) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    entry->n_messages = w->e->n_checks;
    for (int i = 0; i < w->e->n_checks; i++)
      entry->messages[i] = (rt_message_t){w->e->checks[i].code, tt_strdup(w->e->checks[i].message)};
  }
  entry->n_outputs = w->n_outputs;
  return hlo_builder_error(w->b);
}

// ---------------------------------------------------------------- program
// Small programs spend their time in the call: compile them quickly rather than well.
static bool is_small(const build_t* w) {
  const int64_t limit = 1 << 16;
  int64_t elements = 0;
  for (int i = 0; i < w->e->n_operands; i++) elements += hlo_numel(w->e->params[i]);
  for (int i = 0; i < w->n_outputs; i++) elements += hlo_numel(w->outputs[i]);
  return elements <= limit;
}

static tt_status_t compile(build_t* w) {
  rt_entry_t* entry = w->entry;
  entry->n_operands = w->e->n_operands;
  entry->rng_drawn = w->e->rng_drawn;
  entry->operands = tt_malloc((size_t)(w->e->n_operands + 1) * sizeof *entry->operands);
  if (!entry->operands) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  if (w->e->n_operands) memcpy(entry->operands, w->e->operands, (size_t)w->e->n_operands * sizeof *entry->operands);
  if (!w->n_outputs) return NULL;
  tt_strbuf_t text;
  tt_strbuf_init(&text);
  tt_status_t status = hlo_print(w->b, w->n_outputs, w->outputs, w->aliases, &text);
  if (!status) status = rt_compile(w->call->device, text.data, text.len, is_small(w), NULL, w->op->desc.name, &entry->exe);
  tt_strbuf_deinit(&text);
  return status;
}

static tt_status_t infer(build_t* w, void* call_ctx, bool* out_resize) {
  const tt_op_t* op = w->op;
  *out_resize = false;
  if (op->internal || !g_rt.frontend.infer) return NULL;
  if (op->row && (op->row->flags & (TT_OP_NO_META | TT_OP_DATA_DEPENDENT))) return g_rt.frontend.infer(call_ctx, op, NULL);
  if (op->row && (op->row->flags & TT_OP_META_EVERY_CALL)) {  // asked already: part of the signature
    for (int i = 0; i < w->call->n_sized; i++)
      if (!tt_metas_push(w->metas, &w->call->sized[i])) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  } else {
    rt_lock();
    RT_COUNT(metas, 1);
    rt_unlock();
    TT_TRY(g_rt.frontend.infer(call_ctx, op, w->metas));
  }
  if (op->desc.variant != TT_OUT) return NULL;
  int k = 0;
  for (int i = op->desc.n_args - op->desc.n_outs; i < op->desc.n_args; i++) {
    const tt_value_t* v = &w->call->args[i];
    int n = v->kind == TT_V_TENSOR ? 1 : v->kind == TT_V_TENSORS ? v->n : 0;
    for (int j = 0; j < n && k < w->metas->n; j++, k++) {
      const tt_meta_t* m = &w->metas->items[k];
      const tt_tensor_t* t = &v->u.tensor[j];
      if (t->flags & TT_T_UNDEFINED) continue;
      if (m->rank != t->rank || memcmp(m->sizes, t->sizes, (size_t)m->rank * 8)) *out_resize = true;
    }
  }
  return NULL;
}

// Arguments, expected types and scratch of the lowering.
static tt_status_t prepare(build_t* w) {
  size_t slots = (size_t)w->call->n_slots;
  if (!w->base) w->base = scratch(w, slots, sizeof *w->base);
  w->original = scratch(w, slots, sizeof *w->original);
  w->is_written = scratch(w, slots, sizeof *w->is_written);
  w->l.e = w->e;
  w->l.row = w->op->row;
  w->l.name = w->op->desc.name;
  if (!w->base || !w->original || !w->is_written) return hlo_builder_error(w->b);
  TT_TRY(expect_types(w));
  bind_args(w);
  return hlo_builder_error(w->b);
}

static tt_status_t lower(build_t* w, void* call_ctx) {
  const tt_op_t* op = w->op;
  w->e = &w->own;
  tt_emit_init(w->e, w->b, g_rt.caps);
  hlo_set_precision(w->b, (hlo_precision_t)g_rt.precision);
  TT_TRY(prepare(w));
  rt_lock();
  RT_COUNT(lowerings, 1);
  if (!op->row) RT_COUNT(traces, 1);
  rt_unlock();
  if (op->row) return tt_lower_run(&w->l);
  if (!g_rt.frontend.trace) return tt_error(TT_DECLINED, "%s is not in the op table", op->desc.name);
  tt_strbuf_t script;
  tt_strbuf_init(&script);
  tt_graph_t* g = tt_lower_graph(&w->l);
  if (!g) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  rt_graph_script(g, &script);
  tt_status_t status = g_rt.frontend.trace(call_ctx, op, &w->l);
  tt_graph_destroy(w->l.graph);
  w->l.graph = NULL;
  if (!status && !script.failed) {
    w->entry->script = script.data;
    w->entry->script_len = script.len;
  } else {
    tt_strbuf_deinit(&script);
  }
  return status ? status : tt_lower_finish(&w->l);
}

tt_status_t rt_entry_build(rt_call_t* call, void* call_ctx, rt_metas_t* metas, rt_entry_t** out_entry) {
  *out_entry = NULL;
  build_t w = {.call = call, .op = call->op, .metas = metas};
  bool resize = false;
  TT_TRY(infer(&w, call_ctx, &resize));
  if (resize) return NULL;
  w.b = hlo_builder_create();
  rt_entry_t* entry = w.entry = tt_calloc(1, sizeof *entry);
  tt_status_t status = NULL;
  if (!w.b || !entry) {
    status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    goto done;
  }
  entry->refs = 1;
  entry->op_name = call->op->desc.name;
  entry->check_output = -1;
  status = lower(&w, call_ctx);
  if (tt_status_code(status) == TT_DECLINED && !call->op->row) {
    tt_status_free(status);
    status = NULL;
    entry->declined = true;
    goto done;
  }
  if (!status) status = collect_outputs(&w);
  if (!status) status = compile(&w);
  if (!status && (call->op->row || entry->script)) entry->recipe = rt_recipe_create(call);
  entry->n_slots = call->n_slots;
done:
  hlo_builder_destroy(w.b);
  if (status) {
    rt_lock();
    rt_entry_release(entry);
    rt_unlock();
    return status;
  }
  *out_entry = entry;
  return NULL;
}

void rt_entry_release(rt_entry_t* e) {
  if (!e || --e->refs > 0) return;
  tt_exe_release(e->exe);
  for (int i = 0; i < e->n_messages; i++) tt_free(e->messages[i].text);
  tt_free(e->messages);
  tt_free(e->operands);
  tt_free(e->fresh);
  tt_free(e->writes);
  tt_free(e->key);
  tt_free(e->recipe);
  tt_free(e->script);
  tt_free(e->where);
  tt_free(e);
}

// ---------------------------------------------------------------- recipes
struct rt_recipe_t {
  const tt_op_t* op;
  int device, precision;
  int n_trefs, n_slots;
  tt_value_t* args;
  rt_tref_t* trefs;
  rt_slot_t* slots;
};

// A block being laid out: sizes first, then the same calls again with memory.
typedef struct layout_t {
  char* block;  // NULL while measuring
  size_t used;
} layout_t;

static void* place(layout_t* l, const void* data, size_t n) {
  size_t at = (l->used + 15) & ~(size_t)15;
  l->used = at + n;
  if (!l->block) return NULL;
  if (data && n) memcpy(l->block + at, data, n);
  return l->block + at;
}

static const tt_tensor_t* place_tensors(layout_t* l, const tt_tensor_t* from, int n) {
  tt_tensor_t* to = place(l, from, (size_t)n * sizeof *to);
  for (int i = 0; i < n; i++) {
    const int64_t* sizes = place(l, from[i].sizes, (size_t)from[i].rank * 8);
    const int64_t* strides = place(l, from[i].strides, (size_t)from[i].rank * 8);
    if (to) to[i].sizes = sizes, to[i].strides = strides, to[i].host_data = NULL;
  }
  return to;
}

static void place_value(layout_t* l, const tt_value_t* v, tt_value_t* to) {
  const void* p = NULL;
  switch (v->kind) {
    case TT_V_TENSOR: p = place_tensors(l, v->u.tensor, 1); break;
    case TT_V_TENSORS: p = place_tensors(l, v->u.tensor, v->n); break;
    case TT_V_INTS: case TT_V_FLOATS: p = place(l, v->u.ints, (size_t)v->n * 8); break;
    case TT_V_BOOLS: p = place(l, v->u.bools, (size_t)v->n); break;
    case TT_V_SCALARS: p = place(l, v->u.items, (size_t)v->n * sizeof *v); break;
    case TT_V_STRING: p = place(l, v->u.string, (size_t)v->n + 1); break;
    case TT_V_GENERATOR: break;
    default: return;
  }
  if (to) to->u.tensor = p;
}

static void lay_out(layout_t* l, const rt_call_t* c, rt_recipe_t* out) {
  int n = c->op->desc.n_args;
  tt_value_t* args = place(l, c->args, (size_t)n * sizeof *args);
  rt_tref_t* trefs = place(l, c->trefs, (size_t)c->n_trefs * sizeof *trefs);
  rt_slot_t* slots = place(l, c->slots, (size_t)c->n_slots * sizeof *slots);
  int tref = 0;
  for (int i = 0; i < n; i++) {
    const tt_value_t* v = &c->args[i];
    place_value(l, v, args ? &args[i] : NULL);
    if (!args || (v->kind != TT_V_TENSOR && v->kind != TT_V_TENSORS)) continue;
    int count = v->kind == TT_V_TENSOR ? 1 : v->n;
    for (int j = 0; j < count; j++)
      if (!(args[i].u.tensor[j].flags & TT_T_UNDEFINED)) trefs[tref++].t = &args[i].u.tensor[j];
  }
  if (!out) return;
  out->args = args;
  out->trefs = trefs;
  out->slots = slots;
}

rt_recipe_t* rt_recipe_create(const rt_call_t* call) {
  layout_t l = {.used = sizeof(rt_recipe_t)};
  lay_out(&l, call, NULL);
  rt_recipe_t* r = tt_calloc(1, l.used);
  if (!r) return NULL;
  l = (layout_t){(char*)r, sizeof *r};
  lay_out(&l, call, r);
  r->op = call->op;
  r->device = call->device;
  r->precision = g_rt.precision;
  r->n_trefs = call->n_trefs;
  r->n_slots = call->n_slots;
  return r;
}

tt_status_t rt_recipe_emit(const rt_entry_t* entry, tt_emit_t* e, int node, const hlo_t* slots, hlo_t* out_outputs) {
  const rt_recipe_t* r = entry->recipe;
  rt_call_t call = {.op = r->op, .device = r->device, .args = r->args, .trefs = r->trefs, .n_trefs = r->n_trefs,
                    .slots = r->slots, .n_slots = r->n_slots};
  rt_metas_t metas = {0};
  rt_entry_t shell = {.refs = 1, .check_output = -1};
  build_t w = {.call = &call, .op = r->op, .metas = &metas, .b = e->b, .e = e, .entry = &shell};
  hlo_set_precision(w.b, (hlo_precision_t)r->precision);
  w.base = scratch(&w, (size_t)r->n_slots, sizeof *w.base);
  if (!w.base) return hlo_builder_error(w.b);
  if (r->n_slots) memcpy(w.base, slots, (size_t)r->n_slots * sizeof *w.base);
  // Types of the results: the entry knows them; the front end is not asked again.
  tt_status_t status = NULL;
  uint32_t flags = r->op->row ? r->op->row->flags : 0;
  bool from_meta = !(flags & (TT_OP_NO_META | TT_OP_DATA_DEPENDENT)) && !r->op->internal;
  for (int i = 0; from_meta && i < entry->n_fresh && !status; i++)
    if (!tt_metas_push(&metas, &entry->fresh[i].meta)) status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_check_t* outer_checks = e->checks;
  int outer_n = e->n_checks, outer_cap = e->cap_checks;
  e->checks = NULL;
  e->n_checks = e->cap_checks = 0;
  e->rng_node = node;
  e->rng_drawn = 0;
  w.l.node = node;
  if (!status) status = prepare(&w);
  if (!status) status = r->op->row ? tt_lower_run(&w.l) : rt_script_run(entry->script, entry->script_len, &w.l);
  if (!status) status = collect_outputs(&w);
  if (!status && w.n_outputs != entry->n_outputs)
    status = tt_error(TT_INTERNAL, "%s: lowered twice with %d and %d results", entry->op_name, entry->n_outputs, w.n_outputs);
  for (int i = 0; !status && i < w.n_outputs; i++) out_outputs[i] = w.outputs[i];
  e->checks = outer_checks;
  e->n_checks = outer_n;
  e->cap_checks = outer_cap;
  tt_free(metas.items);
  for (int i = 0; i < shell.n_messages; i++) tt_free(shell.messages[i].text);
  tt_free(shell.messages);
  tt_free(shell.fresh);
  tt_free(shell.writes);
  return status;
}
