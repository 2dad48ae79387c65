// Fused programs: a region lowered node after node into one program, compiled in the background, cached by its wiring.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "runtime/fuse.h"

typedef struct rt_record_t {
  int seen, ran_fused;
  bool queued, failed;
  int n_nodes, n_outs, n_external, n_live, n_dead;
  rt_site_t* site;          // where it ended last
  char began[160];          // the user's line of the first operation when it was met first; "" not known
  rt_fused_t* fused;        // NULL: not ready
  uint64_t last_met;
  rt_entry_t* entries[];    // of the nodes: the key names entries by address, so they stay as long as the record does
} rt_record_t;

static tt_map_t g_records;
enum { MAX_RECORDS = 4096, COMPILE_WHEN_SEEN = 2 };

static pthread_mutex_t g_queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_queue_wake = PTHREAD_COND_INITIALIZER, g_queue_idle = PTHREAD_COND_INITIALIZER;
static rt_job_t *g_queue_head, **g_queue_tail = &g_queue_head;
static bool g_worker_started, g_worker_busy;

// ---------------------------------------------------------------- the compiling thread
static void job_free(rt_job_t* job) {
  rt_lock();
  for (int i = 0; i < job->n_nodes; i++) rt_entry_release(job->nodes[i].entry);
  rt_unlock();
  tt_free(job->nodes);
  tt_free(job->wires);
  tt_free(job->external);
  tt_free(job->out_live);
  tt_free(job->external_dead);
  tt_free(job);
}

static void* worker(void* unused) {
  (void)unused;
  pthread_mutex_lock(&g_queue_lock);
  for (;;) {
    while (!g_queue_head) {
      g_worker_busy = false;
      pthread_cond_broadcast(&g_queue_idle);
      pthread_cond_wait(&g_queue_wake, &g_queue_lock);
    }
    rt_job_t* job = g_queue_head;
    g_queue_head = job->next;
    if (!g_queue_head) g_queue_tail = &g_queue_head;
    g_worker_busy = true;
    pthread_mutex_unlock(&g_queue_lock);
    rt_fused_t* fused = NULL;
    // A region that cannot be fused keeps running node by node: slower, never wrong.
    tt_status_t status = rt_fused_build(job, &fused);
    rt_lock();
    job->record->fused = fused;
    job->record->failed = status != NULL;
    if (status) RT_COUNT(fused_failures, 1);
    else RT_COUNT(fused_compiles, 1);
    rt_unlock();
    if (status) rt_log("a region of %d operations could not be fused: %s", job->n_nodes, tt_status_message(status));
    tt_status_free(status);
    job_free(job);
    pthread_mutex_lock(&g_queue_lock);
  }
  return NULL;
}

void rt_fused_wait(void) {
  pthread_mutex_lock(&g_queue_lock);
  while (g_queue_head || g_worker_busy) pthread_cond_wait(&g_queue_idle, &g_queue_lock);
  pthread_mutex_unlock(&g_queue_lock);
}

void tt_defer_wait(void) { rt_fused_wait(); }

void rt_fused_stop(void) {
  pthread_mutex_lock(&g_queue_lock);
  rt_job_t* dropped = g_queue_head;
  g_queue_head = NULL;
  g_queue_tail = &g_queue_head;
  pthread_mutex_unlock(&g_queue_lock);
  while (dropped) {
    rt_job_t* next = dropped->next;
    job_free(dropped);
    dropped = next;
  }
  rt_fused_wait();
}

static bool enqueue(rt_job_t* job) {
  pthread_mutex_lock(&g_queue_lock);
  if (!g_worker_started) {
    pthread_t thread;
    g_worker_started = pthread_create(&thread, NULL, worker, NULL) == 0;
    if (g_worker_started) pthread_detach(thread);
  }
  bool ok = g_worker_started;
  if (ok) {
    job->next = NULL;
    *g_queue_tail = job;
    g_queue_tail = &job->next;
    g_worker_busy = true;
    pthread_cond_signal(&g_queue_wake);
  }
  pthread_mutex_unlock(&g_queue_lock);
  return ok;
}

// ---------------------------------------------------------------- liveness and lookup (under the lock)
// Which pending results somebody outside the region can reach, and which outside values die with it.
static bool liveness(const rt_region_t* r, uint8_t* out_live, uint8_t* external_dead) {
  size_t n = (size_t)r->n_outs + (size_t)r->n_external + 1;
  int32_t* uses = tt_calloc(n, sizeof *uses);
  if (!uses) return false;
  int32_t* external_uses = uses + r->n_outs;
  for (int i = 0; i < r->n_refs; i++) {
    int64_t wire = r->wires[i];
    if (wire % 2) external_uses[wire / 2]++;
    else if (wire) uses[wire / 2 - 1]++;
  }
  for (int i = 0; i < r->n_outs; i++) out_live[i] = r->outs[i] && r->outs[i]->refs > 1 + uses[i];
  for (int i = 0; i < r->n_external; i++) external_dead[i] = r->external[i]->refs == external_uses[i];
  tt_free(uses);
  return true;
}

static void* copy_of(const void* data, size_t n) {
  void* p = tt_malloc(n + 1);
  if (p && n) memcpy(p, data, n);
  return p;
}

static rt_job_t* job_create(const rt_region_t* r, rt_record_t* record, const uint8_t* out_live, const uint8_t* external_dead) {
  rt_job_t* job = tt_calloc(1, sizeof *job);
  if (!job) return NULL;
  *job = (rt_job_t){.record = record, .device = r->device, .n_nodes = r->n_nodes, .n_refs = r->n_refs, .n_outs = r->n_outs,
                 .n_external = r->n_external};
  job->nodes = copy_of(r->nodes, (size_t)r->n_nodes * sizeof *r->nodes);
  job->wires = copy_of(r->wires, (size_t)r->n_refs * sizeof *r->wires);
  job->external = tt_malloc(((size_t)r->n_external + 1) * sizeof *job->external);
  job->out_live = copy_of(out_live, (size_t)r->n_outs);
  job->external_dead = copy_of(external_dead, (size_t)r->n_external);
  if (!job->nodes || !job->wires || !job->external || !job->out_live || !job->external_dead) {
    job->n_nodes = 0;
    tt_free(job->nodes), tt_free(job->wires), tt_free(job->external), tt_free(job->out_live), tt_free(job->external_dead);
    tt_free(job);
    return NULL;
  }
  for (int i = 0; i < r->n_nodes; i++) job->nodes[i].entry->refs++;
  for (int i = 0; i < r->n_external; i++) job->external[i] = r->external[i]->layout;
  return job;
}

static void record_free(rt_record_t* r) {
  for (int i = 0; i < r->n_nodes; i++) rt_entry_release(r->entries[i]);
  rt_fused_free(r->fused);
  tt_free(r);
}

static uint64_t record_stamp(const void* record) { return ((const rt_record_t*)record)->last_met; }

static bool record_leaves(const tt_map_slot_t* s, const void* oldest) {
  rt_record_t* r = s->value;
  bool in_work = r->queued && !r->fused && !r->failed;  // the compiling thread's
  if (r->last_met >= *(const uint64_t*)oldest || in_work) return false;
  record_free(r);
  return true;
}

void rt_fused_halve(void) { rt_map_halve(&g_records, record_stamp, record_leaves); }

static rt_record_t* record_for(rt_region_t* r) {
  uint64_t hash = tt_hash64(r->key.data, r->key.len, 0);
  rt_record_t* record = tt_map_find(&g_records, hash, r->key.data, r->key.len);
  if (record) return record;
  if (g_records.count >= MAX_RECORDS) rt_fused_halve();
  size_t entries = (size_t)r->n_nodes * sizeof *record->entries;
  record = tt_calloc(1, sizeof *record + entries + r->key.len);
  if (!record) return NULL;
  char* key = (char*)record->entries + entries;
  memcpy(key, r->key.data, r->key.len);
  if (!tt_map_put(&g_records, hash, key, r->key.len, record)) {
    tt_free(record);
    return NULL;
  }
  record->n_nodes = r->n_nodes;
  record->n_outs = r->n_outs;
  record->n_external = r->n_external;
  if (r->nodes[0].where >= 0) snprintf(record->began, sizeof record->began, "%s", r->text.data + r->nodes[0].where);
  for (int i = 0; i < r->n_nodes; i++) {
    record->entries[i] = r->nodes[i].entry;
    record->entries[i]->refs++;
  }
  return record;
}

const rt_fused_t* rt_fused_find(rt_region_t* r) {
  if (r->n_nodes < 2) return NULL;  // one operation is a program already
  size_t outs = (size_t)r->n_outs, externals = (size_t)r->n_external;
  uint8_t* flags = tt_malloc(outs + externals + 1);
  if (!flags) return NULL;
  const rt_fused_t* found = NULL;
  rt_record_t* record = NULL;
  if (liveness(r, flags, flags + outs)) {
    tt_strbuf_append(&r->key, flags, outs + externals);
    if (!r->key.failed) record = record_for(r);
  }
  if (record) {
    found = record->fused;
    record->last_met = g_rt.dispatch_number;
    if (!record->seen++) {
      for (size_t i = 0; i < outs; i++) record->n_live += flags[i];
      for (size_t i = 0; i < externals; i++) record->n_dead += flags[outs + i];
    }
    record->ran_fused += found != NULL;
    record->site = r->site;
    if (!found && !record->queued && record->seen >= COMPILE_WHEN_SEEN) {
      rt_job_t* job = job_create(r, record, flags, flags + outs);
      if (job && !enqueue(job)) {
        rt_unlock();
        job_free(job);
        rt_lock();
      } else if (job) {
        record->queued = true;
      }
    }
  }
  tt_free(flags);
  return found;
}

// ---------------------------------------------------------------- running (under the lock)
static rt_cell_t* value_cell(const rt_region_t* r, int value) {
  return value < r->n_external ? r->external[value] : r->outs[value - r->n_external];
}

static tt_status_t run_part(const rt_fused_t* f, const rt_part_t* part, rt_region_t* r) {
  tt_status_t status = NULL;
  rt_scalar_begin();
  int filled = 0;
  for (; filled < part->n_sources; filled++) {
    const rt_source_t* s = &part->sources[filled];
    f->owned[filled] = false;
    if (s->kind == RT_SOURCE_VALUE) {
      f->buffers[filled] = value_cell(r, s->index)->buffer;
      if (!f->buffers[filled]) status = tt_error(TT_FAILED_PRECONDITION, "a value this depends on could not be computed");
    } else if (s->kind == RT_SOURCE_RNG) {
      f->owned[filled] = true;
      status = rt_rng_upload(r->device, r->bits[s->index].data, &f->buffers[filled]);
    } else {
      status = rt_scalar_buffer(r->device, (tt_dtype_t)s->dtype, r->bits[s->index].data, &f->buffers[filled], &f->owned[filled]);
    }
    if (status) break;
  }
  tt_pbuf_t** outputs = f->buffers + part->n_sources;
  if (!status) status = tt_exe_run(part->exe, part->n_sources, f->buffers, 0, NULL, outputs, NULL);
  for (int i = 0; i < filled; i++)
    if (f->owned[i]) tt_pbuf_free(g_rt.client, f->buffers[i]);
  if (status) return status;
  RT_COUNT(executions, 1);
  // What was donated is not there twice; what dies here still is, beside the results and what the program needs itself.
  for (int i = 0; i < part->n_outs; i++)
    if (part->outs[i].donor >= 0) rt_cell_spend(value_cell(r, part->outs[i].donor));
  for (int i = 0; i < part->n_outs; i++) {
    const rt_fused_out_t* o = &part->outs[i];
    const rt_node_t* n = &r->nodes[o->node];
    if (o->out >= 0) rt_cell_fulfil(r->outs[o->out], outputs[i]);
    else rt_checks_push_locked(outputs[i], n->entry, n->where >= 0 ? r->text.data + n->where : "");
  }
  rt_memory_transient(r->device, tt_exe_temp_bytes(part->exe));
  return NULL;
}

tt_status_t rt_fused_run(const rt_fused_t* f, rt_region_t* r) {
  RT_COUNT(regions_fused, 1);
  RT_COUNT(donations, f->n_donated);
  for (int p = 0; p < f->n_parts; p++) {
    const rt_part_t* part = &f->parts[p];
    tt_status_t status = part->exe ? run_part(f, part, r) : NULL;
    if (status) return tt_status_annotate(status, "a fused region of %d operations", r->n_nodes);
    for (int i = 0; i < part->n_last; i++) {
      rt_cell_t* cell = value_cell(r, part->last[i]);
      if (cell) rt_cell_spend(cell);
    }
  }
  return NULL;
}

// ---------------------------------------------------------------- report (under the lock)
static void report_end(const char* name, const rt_entry_t* e, const char* where, tt_strbuf_t* json) {
  tt_strbuf_printf(json, ",\"%s\":{\"op\":", name);
  tt_strbuf_json(json, e->op_name);
  tt_strbuf_puts(json, ",\"where\":");
  tt_strbuf_json(json, where[0] ? where : e->where ? e->where : "");
  tt_strbuf_puts(json, "}");
}

void rt_fused_report(tt_strbuf_t* json) {
  bool first = true;
  for (size_t i = 0; i < g_records.cap; i++) {
    const rt_record_t* r = g_records.slots[i].value;
    if (!r) continue;
    const char* state = r->fused ? "fused" : r->failed ? "failed" : r->queued ? "compiling" : "met once";
    tt_strbuf_printf(json, "%s{\"state\":\"%s\",\"nodes\":%d,\"met\":%d,\"ran_fused\":%d,\"inputs\":%d,\"dead_inputs\":%d,\"results\":%d"
                     ",\"live_results\":%d,\"donated\":%d,\"programs\":%d,\"made_again\":%lld", first ? "" : ",", state, r->n_nodes, r->seen, r->ran_fused, r->n_external,
                     r->n_dead, r->n_outs, r->n_live, r->fused ? r->fused->n_donated : 0,
                     r->fused ? r->fused->n_parts : 0, r->fused ? (long long)r->fused->made_again : 0LL);
    first = false;
    report_end("first", r->entries[0], r->began, json);
    report_end("last", r->entries[r->n_nodes - 1], "", json);
    if (r->site) {
      tt_strbuf_puts(json, ",\"cut\":");
      rt_explain_place(r->site, json);
      tt_strbuf_puts(json, "}");
    }
    tt_strbuf_puts(json, "}");
  }
}
