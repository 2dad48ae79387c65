// The hit path: signature, lookup, one execution.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "cache/disk.h"
#include "runtime/defer.h"

static tt_map_t g_entries;
enum { MAX_ENTRIES = 65536 };

// ---------------------------------------------------------------- op records
tt_status_t tt_op_create(const tt_op_desc_t* desc, tt_op_t** out_op) {
  *out_op = NULL;
  tt_op_t* op = tt_calloc(1, sizeof *op);
  if (!op) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  op->desc = *desc;
  op->desc.name = tt_strdup(desc->name);
  op->desc.row = tt_strdup(desc->row ? desc->row : "");
  if (!op->desc.name || !op->desc.row) {
    tt_free((void*)(uintptr_t)op->desc.name);
    tt_free((void*)(uintptr_t)op->desc.row);
    tt_free(op);
    return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  op->row = desc->row ? tt_op_find(desc->row) : NULL;
  for (int i = 0; i < desc->n_args && op->row; i++) {
    uint32_t bit = i < 32 ? TT_ARG(i) : 0;
    if (op->row->runtime & bit) op->classes[i] = RT_ARG_RUNTIME;
    else if (!desc->is_scalar[i] || (op->row->fixed & bit)) op->classes[i] = RT_ARG_STATIC;
    else op->classes[i] = op->row->unit & bit ? RT_ARG_UNIT : RT_ARG_RUNTIME;
  }
  *out_op = op;
  return NULL;
}

bool tt_op_has_row(const tt_op_t* op) { return op->row != NULL; }
const char* tt_op_name(const tt_op_t* op) { return op->desc.name; }
int tt_table_count(void) { return tt_op_count(); }
const char* tt_table_name(int i) { return tt_op_at(i)->name; }
bool tt_table_has(const char* name) { return tt_op_find(name) != NULL; }
uint32_t tt_table_flags(const char* name) {
  const tt_op_row_t* row = tt_op_find(name);
  return row ? row->flags : 0;
}

// ---------------------------------------------------------------- results
void tt_results_free(tt_results_t* r) {
  tt_free(r->items);
  memset(r, 0, sizeof *r);
}

tt_result_t* rt_results_add(tt_results_t* r) {
  return tt_grow(&r->items, r->n, &r->cap, sizeof *r->items) ? &r->items[r->n++] : NULL;
}

// ---------------------------------------------------------------- thread-local scratch
typedef struct scratch_t {
  rt_call_t call;
  rt_entry_t* last;        // keeps the metadata of the last results alive
  rt_metas_t metas;
  tt_pbuf_t** buffers;     // operands, then outputs
  int64_t* keep;
  bool* owned;
  size_t cap;
  rt_metas_t sized;        // META_EVERY_CALL: what the meta kernel says of this call
  char where[160];         // the user's line, once asked for
  bool has_where;
} scratch_t;
// A dispatch inside a callback of another (meta kernels never come here, traces may) needs scratch of its own.
enum { MAX_NESTING = 8 };
static _Thread_local scratch_t t_scratch[MAX_NESTING];
static _Thread_local int t_depth;

static bool scratch_reserve(scratch_t* s, size_t n) {
  if (n <= s->cap) return true;
  size_t cap = s->cap ? s->cap : 256;
  while (cap < n) cap *= 2;
  tt_pbuf_t** buffers = tt_realloc(s->buffers, cap * sizeof *buffers);
  if (buffers) s->buffers = buffers;
  int64_t* keep = tt_realloc(s->keep, cap * sizeof *keep);
  if (keep) s->keep = keep;
  bool* owned = tt_realloc(s->owned, cap * sizeof *owned);
  if (owned) s->owned = owned;
  if (!buffers || !keep || !owned) return false;
  s->cap = cap;
  return true;
}

// ---------------------------------------------------------------- operands
tt_rng_t* rt_call_generator(const rt_call_t* c) {
  for (int i = 0; i < c->op->desc.n_args; i++)
    if (c->args[i].kind == TT_V_GENERATOR && c->args[i].u.generator) return c->args[i].u.generator;
  return tt_rng_default(c->device);
}

void rt_operand_scalar_bits(const rt_call_t* c, const tt_operand_t* o, unsigned char out[16]) {
  const tt_value_t* v = &c->args[o->arg];
  tt_value_t element;
  switch (v->kind) {
    case TT_V_SCALARS: v = &v->u.items[o->elem]; break;
    case TT_V_FLOATS: element = (tt_value_t){.kind = TT_V_FLOAT, .u.f = v->u.floats[o->elem]}; v = &element; break;
    case TT_V_INTS: element = (tt_value_t){.kind = TT_V_INT, .u.i = v->u.ints[o->elem]}; v = &element; break;
    default: break;
  }
  rt_scalar_bits(v, (tt_dtype_t)o->dtype, out);
}

static tt_status_t fill_operand(const rt_call_t* c, const rt_entry_t* e, const tt_operand_t* o, tt_pbuf_t** out, bool* out_owned) {
  *out_owned = false;
  switch (o->kind) {
    case TT_OPERAND_BASE:
      *out = c->slots[o->index].storage->cell->buffer;
      return *out ? NULL : tt_error(TT_FAILED_PRECONDITION, "a value this depends on could not be computed");
    case TT_OPERAND_SCALAR: {
      unsigned char bits[16];
      rt_operand_scalar_bits(c, o, bits);
      return rt_scalar_buffer(c->device, (tt_dtype_t)o->dtype, bits, out, out_owned);
    }
    case TT_OPERAND_DIGIT:
      return rt_scalar_buffer(c->device, TT_I64, &c->digits[c->trefs[o->index].first_digit + o->elem], out, out_owned);
    case TT_OPERAND_HOST: {
      const tt_tensor_t* t = c->trefs[o->index].t;
      unsigned char bits[16];
      rt_host_scalar_bits(t->host_data, (tt_dtype_t)t->dtype, (tt_dtype_t)o->dtype, bits);
      return rt_scalar_buffer(c->device, (tt_dtype_t)o->dtype, bits, out, out_owned);
    }
    case TT_OPERAND_RNG: {
      unsigned char state[16];
      rt_rng_draw(rt_call_generator(c), e->rng_drawn, state);
      *out_owned = true;
      return rt_rng_upload(c->device, state, out);
    }
    default: return tt_error(TT_INTERNAL, "%s: operand of kind %d", e->op_name, o->kind);
  }
}

// ---------------------------------------------------------------- running
// Under the lock. Outputs land behind the operands in |s->buffers|.
static tt_status_t execute(scratch_t* s, rt_entry_t* e) {
  rt_call_t* c = &s->call;
  size_t n_in = (size_t)e->n_operands, n_out = (size_t)e->n_outputs;
  if (!scratch_reserve(s, n_in + n_out + 1)) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  rt_scalar_begin();
  tt_status_t status = NULL;
  size_t filled = 0;
  for (; filled < n_in && !status; filled++) {
    s->buffers[filled] = NULL;
    status = fill_operand(c, e, &e->operands[filled], &s->buffers[filled], &s->owned[filled]);
    if (status) break;
  }
  int n_keep = 0;
  for (int i = 0; i < e->n_writes; i++) {
    const rt_slot_write_t* w = &e->writes[i];
    if (w->donated < 0) continue;
    if (c->slots[w->slot].storage->cell->refs > 1) s->keep[n_keep++] = w->donated;
    else RT_COUNT(donations, 1);
  }
  if (!status) status = tt_exe_run(e->exe, (int)n_in, s->buffers, n_keep, s->keep, s->buffers + n_in, NULL);
  for (size_t i = 0; i < filled; i++)
    if (s->owned[i]) tt_pbuf_free(g_rt.client, s->buffers[i]);
  if (!status) RT_COUNT(executions, 1);
  return status;
}

// Turns outputs into results and new values. Takes the output buffers.
static tt_status_t deliver(scratch_t* s, rt_entry_t* e, tt_results_t* results) {
  rt_call_t* c = &s->call;
  tt_pbuf_t** out = s->buffers + e->n_operands;
  bool lost = false;
  for (int i = 0; i < e->n_writes; i++) {
    const rt_slot_write_t* w = &e->writes[i];
    rt_cell_t* old = c->slots[w->slot].storage->cell;
    if (w->donated >= 0 && old->refs == 1) rt_cell_spend(old);
    rt_cell_t* cell = rt_cell_create(out[w->output], w->layout, c->device);
    if (cell) rt_storage_set(c->slots[w->slot].storage, cell);
    else lost = true;
  }
  for (int i = 0; i < e->n_fresh; i++) {
    rt_fresh_t* f = &e->fresh[i];
    tt_result_t* r = rt_results_add(results);
    if (!r) {
      lost = true;
      if (f->output >= 0) tt_pbuf_free(g_rt.client, out[f->output]);
      continue;
    }
    *r = (tt_result_t){.meta = &f->meta, .true_size = -1};
    if (!f->meta.defined) continue;
    rt_cell_t* cell = f->output >= 0 ? rt_cell_create(out[f->output], f->layout, c->device) : NULL;
    r->storage = rt_storage_wrap(c->device, f->nbytes, cell);
    if (!r->storage || (f->output >= 0 && !cell)) lost = true;
  }
  if (e->exe) rt_memory_transient(c->device, tt_exe_temp_bytes(e->exe));
  return lost ? tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted") : NULL;
}

// Sizes of data-dependent results: read now, since the front end needs them. No lock held.
static tt_status_t read_counts(scratch_t* s, const rt_entry_t* e, tt_results_t* results, int first) {
  tt_status_t status = NULL;
  for (int i = 0; i < e->n_fresh; i++) {
    int o = e->fresh[i].count_output;
    if (o < 0) continue;
    tt_pbuf_t* buffer = s->buffers[e->n_operands + o];
    int64_t n = 0;
    if (!status) status = tt_pbuf_to_host(g_rt.client, buffer, &n, sizeof n);
    if (!status && first + i < results->n) results->items[first + i].true_size = n;
    rt_lock();
    RT_COUNT(d2h, 1);
    tt_pbuf_free(g_rt.client, buffer);
    rt_unlock();
  }
  return status;
}

static void drop_results(tt_results_t* results, int first) {
  for (int i = first; i < results->n; i++) tt_storage_release(results->items[i].storage);
  results->n = first;
}

static void describe_call(const rt_call_t* c, char* out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "%s(", c->op->desc.name);
  for (int i = 0; i < c->n_trefs && used < size; i++) {
    const tt_tensor_t* t = c->trefs[i].t;
    used += (size_t)snprintf(out + used, size - used, "%s%s[", i ? ", " : "", tt_dtype_name((tt_dtype_t)t->dtype));
    for (int d = 0; d < t->rank && used < size; d++)
      used += (size_t)snprintf(out + used, size - used, "%s%lld", d ? "," : "", (long long)t->sizes[d]);
    if (used < size) used += (size_t)snprintf(out + used, size - used, "]");
    if (i == 7 && c->n_trefs > 8 && used < size) {
      used += (size_t)snprintf(out + used, size - used, ", … %d more", c->n_trefs - 8);
      break;
    }
  }
  if (used < size) snprintf(out + used, size - used, ")");
}

// Takes |status|, gives it back with the call's name and, where memory ran out, the report. No lock held.
static tt_status_t call_failed(const scratch_t* s, tt_status_t status, tt_results_t* results, int first) {
  char what[512];
  describe_call(&s->call, what, sizeof what);
  status = rt_explain_oom(tt_status_annotate(status, "%s", what), s->call.device);
  drop_results(results, first);
  return status;
}

// The user's line of this call. No lock held: the front end may want Python's.
static void ask_where(scratch_t* s) {
  if (s->has_where) return;
  s->where[0] = 0;
  if (g_rt.frontend.where) g_rt.frontend.where(s->where, sizeof s->where);
  s->has_where = true;
}

// Large results remember who made them, for reports of memory that ran out. No lock held.
static void label_results(scratch_t* s, const tt_results_t* results, int first) {
  for (int i = first; i < results->n; i++) {
    tt_storage_t* storage = results->items[i].storage;
    if (!storage || storage->nbytes < RT_LABEL_BYTES) continue;
    ask_where(s);
    rt_label(storage, s->call.op->desc.name, s->where);
  }
}

// Holds the lock on entry, not on return.
static tt_status_t run_entry(scratch_t* s, rt_entry_t* e, tt_results_t* results) {
  int first = results->n;
  e->refs++;
  rt_entry_release(s->last);
  s->last = e;
  tt_status_t status = NULL;
  if (tt_mode_get() == TT_MODE_DEFER) {
    if (rt_defer_record(&s->call, e, s->where, results, &status)) {
      rt_unlock();
      if (status) return call_failed(s, status, results, first);
      label_results(s, results, first);
      return NULL;
    }
    rt_defer_note(e->op_name, s->where);
    status = rt_defer_flush(RT_CUT_OP);
  } else if (rt_defer_pending()) {
    rt_defer_note(e->op_name, e->where);
    status = rt_defer_flush(RT_CUT_MODE);
  }
  if (!status && e->exe) status = execute(s, e);
  if (!status) status = deliver(s, e, results);
  rt_unlock();
  if (status) return call_failed(s, status, results, first);
  label_results(s, results, first);
  status = read_counts(s, e, results, first);
  if (e->check_output >= 0) {
    ask_where(s);
    tt_status_t pushed = rt_checks_push(s->buffers[e->n_operands + e->check_output], e, s->where);
    if (status) tt_status_free(pushed);
    else status = pushed;
  }
  if (!status && tt_mode_get() == TT_MODE_DEBUG) status = tt_device_synchronize(s->call.device);
  if (status) drop_results(results, first);
  return status;
}

// ---------------------------------------------------------------- entries
static uint64_t entry_stamp(const void* entry) { return ((const rt_entry_t*)entry)->last_used; }

static bool entry_leaves(const tt_map_slot_t* s, const void* oldest) {
  rt_entry_t* e = s->value;
  if (e->last_used >= *(const uint64_t*)oldest) return false;
  rt_entry_release(e);
  return true;
}

void rt_entries_halve(void) { rt_map_halve(&g_entries, entry_stamp, entry_leaves); }

// Takes |entry|; gives the one that is in the table (another thread may have been first).
static rt_entry_t* insert_locked(rt_entry_t* entry, uint64_t hash, const tt_strbuf_t* key) {
  rt_entry_t* found = tt_map_find(&g_entries, hash, key->data, key->len);
  if (found) {
    rt_entry_release(entry);
    return found;
  }
  if (g_entries.count >= MAX_ENTRIES) rt_entries_halve();
  entry->last_used = g_rt.dispatch_number;
  entry->key = tt_malloc(key->len);
  if (!entry->key) return NULL;
  memcpy(entry->key, key->data, key->len);
  return tt_map_put(&g_entries, hash, entry->key, key->len, entry) ? entry : NULL;
}

// Looks the call up on disk. The lock is not held. Leaves call->key as it found it.
static rt_entry_t* load_from_disk(scratch_t* s, tt_strbuf_t* portable) {
  if (!rt_disk_is_open()) return NULL;
  void* block;
  const void *meta, *exe;
  size_t meta_len, exe_len;
  if (!rt_disk_find(portable->data, portable->len, &block, &meta, &meta_len, &exe, &exe_len)) return NULL;
  rt_lock();
  rt_entry_t* e = rt_entry_read(meta, meta_len);
  rt_unlock();
  if (e && e->n_outputs && !e->declined) {
    tt_status_t status = rt_load(s->call.device, exe, exe_len, NULL, &e->exe);
    if (status || tt_exe_output_count(e->exe) != e->n_outputs) {  // stale or foreign: a miss
      tt_status_free(status);
      rt_lock();
      rt_entry_release(e);
      rt_unlock();
      e = NULL;
    }
  }
  tt_free(block);
  if (e) {
    e->op_name = s->call.op->desc.name;
    e->recipe = s->call.op->row || e->script ? rt_recipe_create(&s->call) : NULL;
    e->n_slots = s->call.n_slots;
    rt_lock();
    RT_COUNT(disk_hits, 1);
    rt_unlock();
  }
  return e;
}

static void store_to_disk(const rt_entry_t* e, const tt_strbuf_t* portable) {
  if (!rt_disk_is_open()) return;
  tt_strbuf_t meta;
  tt_strbuf_init(&meta);
  void* bytes = NULL;
  size_t len = 0;
  tt_status_t status = e->exe ? tt_exe_serialize(e->exe, &bytes, &len) : NULL;
  if (!status && rt_entry_write(e, &meta) && rt_disk_store(portable->data, portable->len, meta.data, meta.len, bytes, len)) {
    rt_lock();
    RT_COUNT(disk_writes, 1);
    rt_unlock();
  }
  tt_status_free(status);  // a plugin that cannot serialise has no disk cache
  tt_free(bytes);
  tt_strbuf_deinit(&meta);
}

// The lock is not held. *out_entry NULL and no failure: out arguments must be resized (results say how).
static tt_status_t resolve_miss(scratch_t* s, void* call_ctx, tt_results_t* results, rt_entry_t** out_entry) {
  *out_entry = NULL;
  tt_strbuf_t local, portable;
  tt_strbuf_init(&local);
  tt_strbuf_append(&local, s->call.key.data, s->call.key.len);
  tt_strbuf_init(&portable);
  rt_entry_t* entry = NULL;
  s->metas.n = 0;
  rt_lock();
  tt_status_t status = rt_call_pack(&s->call, true);
  rt_unlock();
  if (!status) {
    tt_strbuf_append(&portable, s->call.key.data, s->call.key.len);
    entry = load_from_disk(s, &portable);
  }
  if (!status && !entry) {
    status = rt_entry_build(&s->call, call_ctx, &s->metas, &entry);
    if (entry) store_to_disk(entry, &portable);
  }
  if (entry) {
    ask_where(s);  // once a signature: what names the line of a failure that comes late
    entry->where = s->where[0] ? tt_strdup(s->where) : NULL;
    uint64_t hash = tt_hash64(local.data, local.len, 0);
    rt_lock();
    RT_COUNT(signature_misses, 1);
    entry = insert_locked(entry, hash, &local);
    if (entry) entry->refs++;
    rt_unlock();
    if (!entry) status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  } else if (!status) {
    results->must_resize = true;
    results->resize_to = s->metas.items;
    results->n_resize = s->metas.n;
  }
  tt_strbuf_deinit(&local);
  tt_strbuf_deinit(&portable);
  *out_entry = entry;
  return status;
}

static tt_status_t dispatch(scratch_t* s, const tt_op_t* op, int device, const tt_value_t* args, void* call_ctx,
                            tt_results_t* results) {
  rt_call_t* c = &s->call;
  c->op = op;
  c->device = device;
  c->args = args;
  c->n_sized = 0;
  s->has_where = false;
  s->where[0] = 0;
  if (op->row && (op->row->flags & TT_OP_META_EVERY_CALL) && g_rt.frontend.infer && !op->internal) {
    s->sized.n = 0;
    TT_TRY(g_rt.frontend.infer(call_ctx, op, &s->sized));
    c->sized = s->sized.items;
    c->n_sized = s->sized.n;
  }
  for (int attempt = 0; attempt < 5; attempt++) {
    rt_lock();
    tt_status_t status = rt_call_pack(c, false);
    if (status) {
      rt_unlock();
      return status;
    }
    uint64_t hash = tt_hash64(c->key.data, c->key.len, 0);
    rt_entry_t* e = tt_map_find(&g_entries, hash, c->key.data, c->key.len);
    if (e) {
      e->last_used = g_rt.dispatch_number;
      RT_COUNT(signature_hits, 1);
      if (e->declined) {
        rt_unlock();
        return tt_error(TT_DECLINED, "%s is not in the op table and has no decomposition that is", op->desc.name);
      }
      if (s->has_where || tt_mode_get() != TT_MODE_DEFER || (e->check_output < 0 && rt_defer_can(e) && rt_defer_pending()))
        return run_entry(s, e, results);
      rt_unlock();  // a recorded check, a cut and a region's beginning carry their line, which is asked for without the lock
      ask_where(s);
      continue;
    }
    rt_unlock();
    TT_TRY(resolve_miss(s, call_ctx, results, &e));
    if (!e) return NULL;  // resize first
    rt_lock();
    rt_entry_release(e);
    rt_unlock();
    // Once more from the top: storages may have changed while the lock was away.
  }
  return tt_error(TT_INTERNAL, "%s: arguments keep changing under the dispatch", op->desc.name);
}

tt_status_t tt_dispatch(const tt_op_t* op, int device, const tt_value_t* args, void* call_ctx, tt_results_t* results) {
  results->n = 0;
  results->must_resize = false;
  TT_TRY(rt_check_device(device));
  if (t_depth >= MAX_NESTING) return tt_error(TT_INTERNAL, "%s: dispatches nested too deeply", op->desc.name);
  scratch_t* s = &t_scratch[t_depth++];
  tt_status_t status = dispatch(s, op, device, args, call_ctx, results);
  t_depth--;
  return status;
}
