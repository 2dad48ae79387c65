// Checks on values (index bounds and the like): flags computed beside the result, looked at when the host waits anyway.
#include <stdio.h>
#include <string.h>

#include "runtime/entry.h"

// Reads one flag; NULL when all was well.
static tt_status_t verdict(rt_pending_check_t* p) {
  int64_t flag[2] = {0, 0};
  TT_TRY(tt_pbuf_to_host(g_rt.client, p->flag, flag, sizeof flag));
  if (flag[0] <= 0 || flag[0] > p->entry->n_messages) return NULL;
  const rt_message_t* m = &p->entry->messages[flag[0] - 1];
  char text[512];
  const char* at = strstr(m->text, "%lld");
  if (at) snprintf(text, sizeof text, "%.*s%lld%s", (int)(at - m->text), m->text, (long long)flag[1], at + 4);
  else snprintf(text, sizeof text, "%s", m->text);
  return p->where[0] ? tt_error(m->code, "%s (raised by %s at %s)", text, p->entry->op_name, p->where)
                     : tt_error(m->code, "%s (raised by %s)", text, p->entry->op_name);
}

tt_status_t rt_checks_drain(void) {
  tt_status_t first = NULL;
  for (;;) {
    rt_lock();
    if (!g_rt.n_pending) {
      rt_unlock();
      return first;
    }
    rt_pending_check_t p = g_rt.pending[0];
    g_rt.n_pending--;
    memmove(&g_rt.pending[0], &g_rt.pending[1], (size_t)g_rt.n_pending * sizeof p);
    rt_unlock();
    tt_status_t status = verdict(&p);
    rt_lock();
    tt_pbuf_free(g_rt.client, p.flag);
    rt_entry_release(p.entry);
    if (status) RT_COUNT(failed_checks, 1);
    rt_unlock();
    if (first) tt_status_free(status);
    else first = status;
  }
}

void rt_checks_push_locked(tt_pbuf_t* flag, rt_entry_t* entry, const char* where) {
  if (g_rt.n_pending == RT_MAX_PENDING_CHECKS) {
    tt_pbuf_free(g_rt.client, flag);
    return;
  }
  rt_pending_check_t* p = &g_rt.pending[g_rt.n_pending++];
  p->flag = flag;
  p->entry = entry;
  entry->refs++;
  snprintf(p->where, sizeof p->where, "%s", where);
}

tt_status_t rt_checks_push(tt_pbuf_t* flag, rt_entry_t* entry, const char* where) {
  rt_lock();
  bool full = g_rt.n_pending == RT_MAX_PENDING_CHECKS;
  rt_unlock();
  tt_status_t status = full ? rt_checks_drain() : NULL;
  rt_lock();
  rt_checks_push_locked(flag, entry, where);
  rt_unlock();
  return status;
}
