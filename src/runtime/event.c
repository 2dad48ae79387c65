// Events: a mark behind everything issued so far on a device.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <time.h>

#include "base/alloc.h"
#include "runtime/defer.h"

struct tt_event_t {
  atomic_int refs;           // the owner's, and one for each outstanding callback
  atomic_int outstanding;    // values not yet there
  atomic_int_fast64_t done_ns;  // when the last became ready
  int device;
  bool timing;
  tt_pevent_t* transfer;     // of an asynchronous copy, or NULL
  int n_cells;
  rt_cell_t** cells;         // what was unready at the record; kept until it is ready
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void drop_cells(tt_event_t* e) {
  rt_lock();
  for (int i = 0; i < e->n_cells; i++) rt_cell_release(e->cells[i]);
  rt_unlock();
  tt_free(e->cells);
  e->cells = NULL;
  e->n_cells = 0;
}

static void unref(tt_event_t* e) {
  if (atomic_fetch_sub(&e->refs, 1) > 1) return;
  if (e->cells) drop_cells(e);
  if (e->transfer) tt_pevent_free(g_rt.client, e->transfer);
  tt_free(e);
}

static void on_ready(tt_status_t status, void* ctx) {
  tt_event_t* e = ctx;
  tt_status_free(status);  // a failed value surfaces where it is read
  if (atomic_fetch_sub(&e->outstanding, 1) == 1) atomic_store(&e->done_ns, now_ns());
  // The last reference is the owner's: freeing cells on the plugin's thread could deadlock with rt_lock holders.
  atomic_fetch_sub(&e->refs, 1);
}

static tt_event_t* event_new(int device, bool timing) {
  tt_event_t* e = tt_calloc(1, sizeof *e);
  if (!e) return NULL;
  atomic_init(&e->refs, 1);
  atomic_init(&e->outstanding, 1);  // one for the recording itself
  e->device = device;
  e->timing = timing;
  return e;
}

static void settle(tt_event_t* e) {
  if (atomic_fetch_sub(&e->outstanding, 1) == 1) atomic_store(&e->done_ns, now_ns());
}

tt_status_t tt_event_record(int device, int stream, bool timing, tt_event_t** out_event) {
  (void)stream;  // work of all streams is issued in program order
  *out_event = NULL;
  TT_TRY(rt_check_device(device));
  tt_event_t* e = event_new(device, timing);
  if (!e) return tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for an event");
  rt_defer_ask("an event");
  rt_lock();
  tt_status_free(rt_defer_flush(RT_CUT_SYNC));  // a failure surfaces where a value is read
  int n = 0;
  tt_storage_t* head = &g_rt.devices[device].live;
  for (tt_storage_t* s = head->next; s != head; s = s->next) n += s->cell && !s->cell->ready && s->cell->buffer;
  e->cells = n ? tt_malloc((size_t)n * sizeof *e->cells) : NULL;
  if (e->cells) {
    for (tt_storage_t* s = head->next; s != head; s = s->next)
      if (s->cell && !s->cell->ready && s->cell->buffer) e->cells[e->n_cells++] = rt_cell_retain(s->cell);
  }
  rt_unlock();
  for (int i = 0; i < e->n_cells; i++) {
    tt_pevent_t* ready = NULL;
    tt_status_t status = tt_pbuf_ready_event(g_rt.client, e->cells[i]->buffer, &ready);
    if (!status && tt_pevent_is_ready(g_rt.client, ready)) {
      tt_pevent_free(g_rt.client, ready);
      rt_lock();
      e->cells[i]->ready = true;
      rt_unlock();
      continue;
    }
    atomic_fetch_add(&e->outstanding, 1);
    atomic_fetch_add(&e->refs, 1);
    if (!status) status = tt_pevent_on_ready(g_rt.client, ready, on_ready, e);
    if (status) on_ready(status, e);
    if (ready) tt_pevent_free(g_rt.client, ready);
  }
  settle(e);
  *out_event = e;
  return NULL;
}

bool tt_event_query(tt_event_t* e) {
  if (e->transfer) return tt_pevent_is_ready(g_rt.client, e->transfer);
  return atomic_load(&e->outstanding) == 0;
}

tt_status_t tt_event_wait(tt_event_t* e) {
  if (e->transfer) return tt_pevent_await(g_rt.client, e->transfer);
  for (int i = 0; i < e->n_cells; i++) tt_status_free(tt_pbuf_await(g_rt.client, e->cells[i]->buffer));
  while (atomic_load(&e->outstanding) > 0) {  // callbacks trail the values by moments
    struct timespec pause = {0, 20000};
    nanosleep(&pause, NULL);
  }
  if (e->cells) drop_cells(e);
  return rt_checks_drain();
}

tt_status_t tt_event_elapsed_ms(tt_event_t* start, tt_event_t* end, double* out_ms) {
  *out_ms = 0;
  if (!start->timing || !end->timing)
    return tt_error(TT_INVALID_ARGUMENT, "Both events must be created with argument 'enable_timing=True'.");
  if (!tt_event_query(start) || !tt_event_query(end))
    return tt_error(TT_FAILED_PRECONDITION, "Both events must be completed before calculating elapsed time.");
  *out_ms = (double)(atomic_load(&end->done_ns) - atomic_load(&start->done_ns)) / 1e6;
  return NULL;
}

void tt_event_release(tt_event_t* e) {
  if (!e) return;
  // Outstanding callbacks hold references; wait for them rather than let the plugin's thread free.
  while (atomic_load(&e->refs) > 1) {
    struct timespec pause = {0, 20000};
    nanosleep(&pause, NULL);
  }
  unref(e);
}

tt_status_t tt_copy_to_host_async(const tt_tensor_t* src, void* out_data, tt_event_t** out_event) {
  // The value must be dense first; the blocking path knows how. A transfer in the plugin's own queue is used when it is.
  *out_event = NULL;
  TT_TRY(tt_copy_to_host(src, out_data));
  tt_event_t* e = event_new(src->device, false);
  if (!e) return tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for an event");
  rt_defer_ask("an event");
  settle(e);
  *out_event = e;
  return NULL;
}
