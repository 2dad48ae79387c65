// Entries as bytes: the part of a disk-cache file that says how an executable is fed and what comes out of it.
#include <string.h>

#include "base/alloc.h"
#include "runtime/entry.h"

static void put_layout(tt_strbuf_t* s, const rt_layout_t* l) {
  int64_t head[2] = {l ? (int64_t)l->dtype : 0, l ? l->rank : 0};
  tt_strbuf_append(s, head, sizeof head);
  if (l) tt_strbuf_append(s, l->dims, (size_t)l->rank * 8);
}

bool rt_entry_write(const rt_entry_t* e, tt_strbuf_t* s) {
  int64_t head[9] = {e->declined, e->n_operands, e->n_fresh, e->n_writes, e->n_messages, e->check_output, (int64_t)e->rng_drawn, e->n_outputs,
                     (int64_t)e->script_len};
  tt_strbuf_append(s, head, sizeof head);
  tt_strbuf_append(s, e->operands, (size_t)e->n_operands * sizeof *e->operands);
  for (int i = 0; i < e->n_fresh; i++) {
    const rt_fresh_t* f = &e->fresh[i];
    int64_t part[7] = {f->meta.defined, (int64_t)f->meta.dtype, f->meta.rank, (int64_t)f->nbytes, f->output, f->count_output,
                       f->meta.sized_dim};
    tt_strbuf_append(s, part, sizeof part);
    tt_strbuf_append(s, f->meta.sizes, (size_t)f->meta.rank * 8);
    tt_strbuf_append(s, f->meta.strides, (size_t)f->meta.rank * 8);
    put_layout(s, f->layout);
  }
  for (int i = 0; i < e->n_writes; i++) {
    const rt_slot_write_t* w = &e->writes[i];
    int64_t part[3] = {w->slot, w->output, w->donated};
    tt_strbuf_append(s, part, sizeof part);
    put_layout(s, w->layout);
  }
  for (int i = 0; i < e->n_messages; i++) {
    int64_t part[2] = {(int64_t)e->messages[i].code, (int64_t)strlen(e->messages[i].text)};
    tt_strbuf_append(s, part, sizeof part);
    tt_strbuf_append(s, e->messages[i].text, (size_t)part[1]);
  }
  if (e->script_len) tt_strbuf_append(s, e->script, e->script_len);
  return !s->failed;
}

typedef struct reader_t {
  const char* p;
  size_t left;
  bool bad;
} reader_t;

static void get(reader_t* r, void* out, size_t n) {
  if (r->bad || n > r->left) {
    r->bad = true;
    memset(out, 0, n);
    return;
  }
  memcpy(out, r->p, n);
  r->p += n;
  r->left -= n;
}

// A count that the rest of the file could hold; guards allocations against damaged files.
static int count(reader_t* r, int64_t n) {
  if (n < 0 || (uint64_t)n > r->left) r->bad = true;
  return r->bad ? 0 : (int)n;
}

static const rt_layout_t* get_layout(reader_t* r) {
  int64_t head[2], dims[TT_MAX_RANK];
  get(r, head, sizeof head);
  if (head[0] < 0 || head[0] >= TT_DTYPE_COUNT || head[1] < 0 || head[1] > TT_MAX_RANK) r->bad = true;
  if (r->bad || !head[0]) return NULL;
  get(r, dims, (size_t)head[1] * 8);
  const rt_layout_t* layout = r->bad ? NULL : rt_layout_get((tt_dtype_t)head[0], (int)head[1], dims);
  if (!layout) r->bad = true;
  return layout;
}

static void get_fresh(reader_t* r, rt_fresh_t* f) {
  int64_t part[7];
  get(r, part, sizeof part);
  if (part[2] < 0 || part[2] > TT_MAX_RANK || part[6] < 0 || part[6] >= TT_MAX_RANK) r->bad = true;
  if (r->bad) return;
  f->meta.defined = part[0] != 0;
  f->meta.dtype = (tt_dtype_t)part[1];
  f->meta.rank = (int32_t)part[2];
  f->nbytes = (size_t)part[3];
  f->output = (int32_t)part[4];
  f->count_output = (int32_t)part[5];
  f->meta.sized_dim = (int8_t)part[6];
  get(r, f->meta.sizes, (size_t)part[2] * 8);
  get(r, f->meta.strides, (size_t)part[2] * 8);
  f->layout = get_layout(r);
}

// |layout_get| needs the lock: callers hold it.
rt_entry_t* rt_entry_read(const void* data, size_t len) {
  reader_t r = {.p = data, .left = len};
  int64_t head[9];
  get(&r, head, sizeof head);
  rt_entry_t* e = tt_calloc(1, sizeof *e);
  if (!e) return NULL;
  e->refs = 1;
  e->declined = head[0] != 0;
  e->n_operands = count(&r, head[1]);
  e->check_output = (int)head[5];
  e->rng_drawn = (uint64_t)head[6];
  e->n_outputs = (int)head[7];
  e->operands = tt_calloc((size_t)e->n_operands + 1, sizeof *e->operands);
  if (!e->operands) r.bad = true, e->n_operands = 0;
  get(&r, e->operands ? e->operands : (void*)head, (size_t)e->n_operands * sizeof *e->operands);
  int n_fresh = count(&r, head[2]), n_writes = count(&r, head[3]), n_messages = count(&r, head[4]);
  e->fresh = n_fresh ? tt_calloc((size_t)n_fresh, sizeof *e->fresh) : NULL;
  e->writes = n_writes ? tt_calloc((size_t)n_writes, sizeof *e->writes) : NULL;
  e->messages = n_messages ? tt_calloc((size_t)n_messages, sizeof *e->messages) : NULL;
  if ((n_fresh && !e->fresh) || (n_writes && !e->writes) || (n_messages && !e->messages)) r.bad = true;
  for (int i = 0; i < n_fresh && !r.bad; i++, e->n_fresh++) get_fresh(&r, &e->fresh[i]);
  for (int i = 0; i < n_writes && !r.bad; i++, e->n_writes++) {
    int64_t part[3];
    get(&r, part, sizeof part);
    e->writes[i] = (rt_slot_write_t){.slot = (int32_t)part[0], .output = (int32_t)part[1], .donated = (int32_t)part[2]};
    e->writes[i].layout = get_layout(&r);
  }
  for (int i = 0; i < n_messages && !r.bad; i++) {
    int64_t part[2];
    get(&r, part, sizeof part);
    int n = count(&r, part[1]);
    char* text = r.bad ? NULL : tt_calloc((size_t)n + 1, 1);
    if (!text) {
      r.bad = true;
      break;
    }
    get(&r, text, (size_t)n);
    e->messages[e->n_messages++] = (rt_message_t){(tt_code_t)part[0], text};
  }
  size_t script_len = (size_t)count(&r, head[8]);
  e->script = script_len ? tt_malloc(script_len) : NULL;
  if (script_len && !e->script) r.bad = true;
  if (e->script) get(&r, e->script, e->script_len = script_len);
  for (int i = 0; i < e->n_fresh; i++)
    if (e->fresh[i].output >= e->n_outputs || e->fresh[i].count_output >= e->n_outputs) r.bad = true;
  for (int i = 0; i < e->n_writes; i++)
    if (e->writes[i].output < 0 || e->writes[i].output >= e->n_outputs || e->writes[i].slot < 0) r.bad = true;
  if (e->check_output >= e->n_outputs) r.bad = true;
  if (r.bad || r.left) {
    rt_entry_release(e);
    return NULL;
  }
  return e;
}
