#include "runtime/defer.h"

#include <string.h>

#include "base/alloc.h"

static rt_region_t g_region = {.serial = 1};

// The entries recorded last, over regions: where a loop comes full circle is seen here.
enum { HISTORY = 8192 };
static struct {
  const rt_entry_t* ring[HISTORY];
  uint64_t n;               // recorded ever
  uint64_t start;           // number of the region's first node
} g_history;

bool rt_defer_pending(void) { return g_region.n_nodes > 0; }

static bool room_for(rt_region_t* r, const rt_entry_t* e) {
  return tt_grow(&r->nodes, r->n_nodes + 1, &r->cap_nodes, sizeof *r->nodes) &&
         tt_grow(&r->refs, r->n_refs + e->n_slots, &r->cap_refs, sizeof *r->refs) &&
         tt_grow(&r->wires, r->n_refs + e->n_slots, &r->cap_wires, sizeof *r->wires) &&
         tt_grow(&r->external, r->n_external + e->n_slots, &r->cap_external, sizeof *r->external) &&
         tt_grow(&r->bits, r->n_bits + e->n_operands, &r->cap_bits, sizeof *r->bits) &&
         tt_grow(&r->outs, r->n_outs + e->n_outputs, &r->cap_outs, sizeof *r->outs);
}

// ---------------------------------------------------------------- where to cut
static const rt_entry_t* past(uint64_t i) { return g_history.ring[i % HISTORY]; }

// True when |count| entries before position |a| equal those before |b| (b is the later one).
static bool same_context(uint64_t a, uint64_t b, uint64_t count) {
  if (a < count || b - a + count >= HISTORY) return false;
  for (uint64_t i = 1; i <= count; i++)
    if (past(a - i) != past(b - i)) return false;
  return true;
}

// Would recording |e| now begin a new round of the loop the region is a round of?
static bool full_circle(const rt_entry_t* e) {
  uint64_t now = g_history.n, length = now - g_history.start;
  if (length < RT_MIN_PERIOD) return false;
  // The region began like this, in this context: one round is complete.
  if (g_history.start >= RT_CONTEXT && past(g_history.start) == e && same_context(g_history.start, now, RT_CONTEXT)) return true;
  // The region holds the loop's run-up: cut where whole rounds, of any phase, have just been repeated once. The last time
  // this entry was recorded proposes the period; short ones are taken several at a time.
  if (!e->last_recorded) return false;
  uint64_t period = now - (e->last_recorded - 1);
  if (period < RT_MIN_PERIOD) period *= (RT_MIN_PERIOD + period - 1) / period;
  return period <= length / 2 && past(now - period) == e && same_context(now - period, now, period);
}

static void remember(rt_entry_t* e) {
  g_history.ring[g_history.n++ % HISTORY] = e;
  e->last_recorded = g_history.n;
}

// ---------------------------------------------------------------- recording
static rt_cell_t* pending_cell(const rt_layout_t* layout, int device) {
  rt_cell_t* c = rt_cell_create(NULL, layout, device);
  if (c) c->pending = true;
  return c;
}

static tt_status_t operand_bits(const rt_call_t* c, rt_entry_t* e, const tt_operand_t* o, rt_bits_t* out) {
  memset(out, 0, sizeof *out);
  switch (o->kind) {
    case TT_OPERAND_SCALAR: rt_operand_scalar_bits(c, o, out->data); return NULL;
    case TT_OPERAND_DIGIT: memcpy(out->data, &c->digits[c->trefs[o->index].first_digit + o->elem], 8); return NULL;
    case TT_OPERAND_HOST: {
      const tt_tensor_t* t = c->trefs[o->index].t;
      rt_host_scalar_bits(t->host_data, (tt_dtype_t)t->dtype, (tt_dtype_t)o->dtype, out->data);
      return NULL;
    }
    case TT_OPERAND_RNG: rt_rng_draw(rt_call_generator(c), e->rng_drawn, out->data); return NULL;
    default: return tt_error(TT_INTERNAL, "operand of kind %d in a recorded operation", o->kind);
  }
}

// The cell's number in the wiring: (node, output) of this region, or its number among the externals.
static int64_t put_wire(rt_region_t* r, rt_cell_t* cell) {
  int64_t wire = 0;  // undefined
  if (cell && cell->mark >> 24 == r->serial) {
    wire = (int64_t)(cell->mark & 0xffffff);
  } else if (cell) {
    int64_t n = r->n_external;
    r->external[r->n_external++] = cell;
    wire = n * 2 + 1;
    cell->mark = r->serial << 24 | (uint64_t)wire;
    tt_strbuf_append(&r->key, &cell->layout->id, sizeof cell->layout->id);
  }
  tt_strbuf_append(&r->key, &wire, sizeof wire);
  return wire;
}

bool rt_defer_can(const rt_entry_t* e) {
  if (!e->recipe) return false;
  for (int i = 0; i < e->n_fresh; i++)
    if (e->fresh[i].count_output >= 0) return false;  // its size is needed now
  return true;
}

// The storages of the results, still without values: the part that can fail for a program's own fault, before anything is
// recorded.
static tt_status_t make_results(const rt_call_t* c, const rt_entry_t* e, tt_results_t* results) {
  for (int i = 0; i < e->n_fresh; i++) {
    const rt_fresh_t* f = &e->fresh[i];
    tt_result_t* out = rt_results_add(results);
    if (!out) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    *out = (tt_result_t){.meta = &f->meta, .true_size = -1};
    if (!f->meta.defined) continue;
    out->storage = rt_storage_wrap(c->device, f->nbytes, NULL);
    if (!out->storage) return tt_error(TT_RESOURCE_EXHAUSTED, "no address space for a result of %zu bytes", f->nbytes);
  }
  return NULL;
}

bool rt_defer_record(rt_call_t* c, rt_entry_t* e, const char* where, tt_results_t* results, tt_status_t* out_status) {
  *out_status = NULL;
  if (!rt_defer_can(e)) return false;
  rt_region_t* r = &g_region;
  tt_status_t status = NULL;
  int cut = r->n_nodes && r->device != c->device ? RT_CUT_DEVICE : r->n_nodes >= RT_MAX_NODES ? RT_CUT_LIMIT : full_circle(e) ? RT_CUT_PERIOD : -1;
  if (cut >= 0) {
    rt_defer_note(e->op_name, e->where);
    status = rt_defer_flush((rt_cut_t)cut);
  }
  if (status || !room_for(r, e)) {
    *out_status = status ? status : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    return true;
  }
  int first_result = results->n;
  *out_status = make_results(c, e, results);
  if (*out_status) return true;
  if (!r->n_nodes) g_history.start = g_history.n;
  remember(e);
  r->device = c->device;
  rt_node_t* node = &r->nodes[r->n_nodes];
  *node = (rt_node_t){.entry = e, .first_ref = r->n_refs, .first_bits = r->n_bits, .first_out = r->n_outs, .where = -1};
  e->refs++;
  tt_strbuf_append(&r->key, &e, sizeof e);
  for (int s = 0; s < e->n_slots; s++) {
    rt_cell_t* cell = c->slots[s].storage->cell;
    r->wires[r->n_refs] = put_wire(r, cell);
    r->refs[r->n_refs++] = cell ? rt_cell_retain(cell) : NULL;
  }
  for (int i = 0; i < e->n_operands && !status; i++)
    if (e->operands[i].kind != TT_OPERAND_BASE) status = operand_bits(c, e, &e->operands[i], &r->bits[r->n_bits++]);
  for (int i = 0; i < e->n_outputs; i++) r->outs[r->n_outs + i] = NULL;
  r->n_outs += e->n_outputs;
  if (where[0] && (e->check_output >= 0 || !r->n_nodes)) {
    node->where = (int32_t)r->text.len;
    tt_strbuf_append(&r->text, where, strlen(where) + 1);
  }
  for (int i = 0; i < e->n_writes && !status; i++) {
    const rt_slot_write_t* w = &e->writes[i];
    rt_cell_t* cell = pending_cell(w->layout, c->device);
    if (!cell) status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    else {
      cell->mark = r->serial << 24 | (uint64_t)(node->first_out + w->output + 1) << 1;
      r->outs[node->first_out + w->output] = rt_cell_retain(cell);
      rt_storage_set(c->slots[w->slot].storage, cell);
    }
  }
  for (int i = 0; i < e->n_fresh && !status; i++) {
    const rt_fresh_t* f = &e->fresh[i];
    if (f->output < 0 || !f->meta.defined) continue;
    rt_cell_t* cell = pending_cell(f->layout, c->device);
    if (!cell) {
      status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
      break;
    }
    cell->mark = r->serial << 24 | (uint64_t)(node->first_out + f->output + 1) << 1;
    r->outs[node->first_out + f->output] = rt_cell_retain(cell);
    rt_storage_set(results->items[first_result + i].storage, cell);
  }
  r->n_nodes++;
  RT_COUNT(recorded, 1);
  *out_status = status;
  return true;
}

// ---------------------------------------------------------------- node by node
static tt_status_t node_operand(const rt_region_t* r, const rt_node_t* n, const tt_operand_t* o, int* next_bits, tt_pbuf_t** out,
                                bool* out_owned) {
  *out_owned = false;
  if (o->kind == TT_OPERAND_BASE) {
    const rt_cell_t* cell = r->refs[n->first_ref + o->index];
    if (!cell || !cell->buffer) return tt_error(TT_FAILED_PRECONDITION, "a value this depends on could not be computed");
    *out = cell->buffer;
    return NULL;
  }
  const rt_bits_t* bits = &r->bits[n->first_bits + (*next_bits)++];
  if (o->kind == TT_OPERAND_RNG) {
    *out_owned = true;
    return rt_rng_upload(r->device, bits->data, out);
  }
  return rt_scalar_buffer(r->device, o->kind == TT_OPERAND_DIGIT ? TT_I64 : (tt_dtype_t)o->dtype, bits->data, out, out_owned);
}

static struct {
  tt_pbuf_t** buffers;
  bool* owned;
  int64_t* keep;
  int cap_buffers, cap_owned, cap_keep;
} g_scratch;

// Gives |buffer| (taken) to the pending cell, or frees it when nobody can reach the value.
static void fulfil(rt_cell_t** out, tt_pbuf_t* buffer) {
  rt_cell_t* cell = *out;
  if (cell && cell->refs > 1) rt_cell_fulfil(cell, buffer);
  else tt_pbuf_free(g_rt.client, buffer);
}

static tt_status_t run_node(rt_region_t* r, rt_node_t* n) {
  rt_entry_t* e = n->entry;
  if (!e->exe) return NULL;
  int total = e->n_operands + e->n_outputs + 1;
  if (!tt_grow(&g_scratch.buffers, total, &g_scratch.cap_buffers, sizeof(void*)) ||
      !tt_grow(&g_scratch.owned, total, &g_scratch.cap_owned, sizeof(bool)) ||
      !tt_grow(&g_scratch.keep, total, &g_scratch.cap_keep, sizeof(int64_t)))
    return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  rt_scalar_begin();
  tt_status_t status = NULL;
  int filled = 0, next_bits = 0, n_keep = 0;
  for (; filled < e->n_operands; filled++) {
    status = node_operand(r, n, &e->operands[filled], &next_bits, &g_scratch.buffers[filled], &g_scratch.owned[filled]);
    if (status) break;
  }
  for (int i = 0; i < e->n_writes; i++) {
    const rt_slot_write_t* w = &e->writes[i];
    if (w->donated < 0) continue;
    if (r->refs[n->first_ref + w->slot]->refs > 1) g_scratch.keep[n_keep++] = w->donated;
    else RT_COUNT(donations, 1);
  }
  tt_pbuf_t** outputs = g_scratch.buffers + e->n_operands;
  if (!status) status = tt_exe_run(e->exe, e->n_operands, g_scratch.buffers, n_keep, g_scratch.keep, outputs, NULL);
  for (int i = 0; i < filled; i++)
    if (g_scratch.owned[i]) tt_pbuf_free(g_rt.client, g_scratch.buffers[i]);
  if (status) return tt_status_annotate(status, "%s (deferred; first issued at %s)", e->op_name, e->where ? e->where : "?");
  RT_COUNT(executions, 1);
  for (int i = 0; i < e->n_writes; i++) {
    rt_cell_t* old = r->refs[n->first_ref + e->writes[i].slot];
    if (e->writes[i].donated >= 0 && old->refs == 1) rt_cell_spend(old);
  }
  for (int i = 0; i < e->n_outputs; i++) {
    if (i == e->check_output) rt_checks_push_locked(outputs[i], e, n->where >= 0 ? r->text.data + n->where : "");
    else fulfil(&r->outs[n->first_out + i], outputs[i]);
  }
  rt_memory_transient(r->device, tt_exe_temp_bytes(e->exe));
  return NULL;
}

// Drops the region's hold on one node's operands and results.
static void release_node(rt_region_t* r, rt_node_t* n) {
  for (int s = 0; s < n->entry->n_slots; s++) rt_cell_release(r->refs[n->first_ref + s]);
  for (int i = 0; i < n->entry->n_outputs; i++) {
    // A result read later in the region is kept by those uses' references.
    rt_cell_release(r->outs[n->first_out + i]);
  }
  rt_entry_release(n->entry);
}

static void reset(rt_region_t* r) {
  r->n_nodes = r->n_refs = r->n_bits = r->n_outs = r->n_external = 0;
  tt_strbuf_clear(&r->key);
  tt_strbuf_clear(&r->text);
  r->serial++;
}

tt_status_t rt_defer_flush(rt_cut_t why) {
  rt_region_t* r = &g_region;
  if (!r->n_nodes) return NULL;
  static const rt_counter_t k_cuts[RT_CUT_COUNT] = {
      RT_C_cuts_read, RT_C_cuts_sync, RT_C_cuts_op, RT_C_cuts_period, RT_C_cuts_limit, RT_C_cuts_device, RT_C_cuts_mode};
  g_rt.counters[k_cuts[why]]++;
  r->site = rt_explain_cut(why, r->n_nodes);
  tt_status_t status = NULL;
  const rt_fused_t* fused = rt_fused_find(r);
  if (fused) {
    status = rt_fused_run(fused, r);
    for (int i = 0; i < r->n_nodes; i++) release_node(r, &r->nodes[i]);
  } else {
    RT_COUNT(regions_unfused, 1);
    for (int i = 0; i < r->n_nodes; i++) {
      tt_status_t failed = status ? NULL : run_node(r, &r->nodes[i]);
      if (failed) status = failed;
      release_node(r, &r->nodes[i]);
    }
  }
  int device = r->device;
  reset(r);
  if (tt_status_code(status) == TT_RESOURCE_EXHAUSTED) {
    rt_unlock();
    status = rt_explain_oom(status, device);
    rt_lock();
  }
  return status;
}

tt_status_t tt_defer_run(const char* why) {
  rt_defer_ask(why);
  rt_lock();
  tt_status_t status = rt_defer_flush(RT_CUT_SYNC);
  rt_unlock();
  return status;
}
