// Why regions ended where they did: an account by place, for torch.tpu.explain_fusion().
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "runtime/defer.h"

struct rt_site_t {
  rt_cut_t why;
  int64_t count, nodes_before, nodes_after;
  size_t key_len;
  char key[];                // the reason's letter, the operation, a tab, the user's line
};

enum { MAX_SITES = 1024, KEY_SIZE = 256 };
static tt_map_t g_sites;
static rt_site_t* g_last;                    // where the region before this one ended
static _Thread_local char t_place[KEY_SIZE]; // said by the thread that is about to cut: operation, tab, line

static const char* const k_reasons[RT_CUT_COUNT] = {"read", "sync", "op", "period", "limit", "device", "mode"};

void rt_defer_note(const char* op, const char* where) { snprintf(t_place, sizeof t_place, "%.80s\t%.160s", op, where ? where : ""); }

void rt_defer_ask(const char* op) {
  char where[160] = "";
  rt_lock();
  bool pending = rt_defer_pending();
  rt_unlock();
  if (pending && g_rt.frontend.where) g_rt.frontend.where(where, sizeof where);
  rt_defer_note(op, where);
}

rt_site_t* rt_explain_cut(rt_cut_t why, int n_nodes) {
  char key[KEY_SIZE + 1];
  size_t len = (size_t)snprintf(key, sizeof key, "%c%s", 'a' + (int)why, t_place[0] ? t_place : "\t");
  t_place[0] = 0;
  uint64_t hash = tt_hash64(key, len, 0);
  rt_site_t* site = tt_map_find(&g_sites, hash, key, len);
  if (!site && g_sites.count < MAX_SITES && (site = tt_calloc(1, sizeof *site + len + 1))) {
    site->why = why;
    site->key_len = len;
    memcpy(site->key, key, len + 1);
    if (!tt_map_put(&g_sites, hash, site->key, len, site)) {
      tt_free(site);
      site = NULL;
    }
  }
  if (g_last) g_last->nodes_after += n_nodes;
  if (site) {
    site->count++;
    site->nodes_before += n_nodes;
  }
  return g_last = site;
}

void rt_explain_place(const rt_site_t* s, tt_strbuf_t* json) {
  const char* tab = strchr(s->key, '\t');
  char op[96];
  snprintf(op, sizeof op, "%.*s", (int)(tab - s->key - 1), s->key + 1);
  tt_strbuf_printf(json, "{\"reason\":\"%s\",\"op\":", k_reasons[s->why]);
  tt_strbuf_json(json, op);
  tt_strbuf_puts(json, ",\"where\":");
  tt_strbuf_json(json, tab + 1);
}

char* tt_defer_report(void) {
  tt_strbuf_t json;
  tt_strbuf_init(&json);
  rt_lock();
  tt_strbuf_printf(&json, "{\"recorded\":%lld,\"regions_fused\":%lld,\"regions_unfused\":%lld,\"fused_compiles\":%lld,\"fused_failures\":%lld",
                   (long long)g_rt.counters[RT_C_recorded], (long long)g_rt.counters[RT_C_regions_fused],
                   (long long)g_rt.counters[RT_C_regions_unfused], (long long)g_rt.counters[RT_C_fused_compiles],
                   (long long)g_rt.counters[RT_C_fused_failures]);
  tt_strbuf_puts(&json, ",\"cuts\":[");
  bool first = true;
  for (size_t i = 0; i < g_sites.cap; i++) {
    const rt_site_t* s = g_sites.slots[i].value;
    if (!s) continue;
    if (!first) tt_strbuf_puts(&json, ",");
    first = false;
    rt_explain_place(s, &json);
    tt_strbuf_printf(&json, ",\"count\":%lld,\"nodes_before\":%lld,\"nodes_after\":%lld}", (long long)s->count,
                     (long long)s->nodes_before, (long long)s->nodes_after);
  }
  tt_strbuf_puts(&json, "],\"regions\":[");
  rt_fused_report(&json);
  tt_strbuf_puts(&json, "]}");
  rt_unlock();
  if (!json.failed) return json.data;
  tt_strbuf_deinit(&json);
  return NULL;
}
