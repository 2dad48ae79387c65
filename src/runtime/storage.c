#define _GNU_SOURCE
// Storages, their values, and the account of device memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "runtime/defer.h"

// ---------------------------------------------------------------- addresses
// Addresses come from a reserved range that is never mapped readable: unique while in use, and a dereference by mistake
// faults at a telling place. Sizes are rounded to powers of two so that freed addresses can be handed out again.
enum { MIN_SHIFT = 9, MAX_SHIFT = 46 };
static struct {
  uintptr_t next, end;
  void** free[MAX_SHIFT + 1];  // stacks by size class
  size_t n_free[MAX_SHIFT + 1], cap_free[MAX_SHIFT + 1];
} g_addresses;

static int size_class(size_t nbytes) {
  int shift = MIN_SHIFT;
  while (shift < MAX_SHIFT && ((size_t)1 << shift) < nbytes) shift++;
  return shift;
}

static void* address_take(size_t nbytes) {
  int c = size_class(nbytes);
  if (g_addresses.n_free[c]) return g_addresses.free[c][--g_addresses.n_free[c]];
  if (!g_addresses.next) {
    size_t span = (size_t)1 << 45;
    void* p = MAP_FAILED;
    for (; span >= (size_t)1 << 32 && p == MAP_FAILED; span >>= 1)
      p = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // Where nothing can be reserved, numbers above every user mapping still are unique.
    g_addresses.next = p == MAP_FAILED ? (uintptr_t)1 << 60 : (uintptr_t)p;
    g_addresses.end = p == MAP_FAILED ? UINTPTR_MAX : g_addresses.next + span;
  }
  size_t size = (size_t)1 << c;
  if (size > g_addresses.end - g_addresses.next) return NULL;
  void* p = (void*)g_addresses.next;
  g_addresses.next += size;
  return p;
}

static void address_give(void* address, size_t nbytes) {
  int c = size_class(nbytes);
  if (g_addresses.n_free[c] == g_addresses.cap_free[c]) {
    size_t cap = g_addresses.cap_free[c] ? g_addresses.cap_free[c] * 2 : 64;
    void** p = tt_realloc(g_addresses.free[c], cap * sizeof *p);
    if (!p) return;  // the address is lost, which costs nothing
    g_addresses.free[c] = p;
    g_addresses.cap_free[c] = cap;
  }
  g_addresses.free[c][g_addresses.n_free[c]++] = address;
}

// ---------------------------------------------------------------- cells
static rt_cell_t* g_free_cells;

static void account(int device, int64_t bytes) {
  tt_memory_stats_t* m = &g_rt.devices[device].memory;
  m->allocated += bytes;
  if (bytes >= 0) {
    m->total_allocated += bytes;
    m->allocations++;
    if (m->allocated > m->peak_allocated) m->peak_allocated = m->allocated;
  } else {
    m->total_freed -= bytes;
    m->frees++;
  }
}

rt_cell_t* rt_cell_create(tt_pbuf_t* buffer, const rt_layout_t* layout, int device) {
  rt_cell_t* cell = g_free_cells;
  if (cell) {
    g_free_cells = cell->next_free;
  } else if (!(cell = tt_malloc(sizeof *cell))) {
    tt_pbuf_free(g_rt.client, buffer);
    return NULL;
  }
  *cell = (rt_cell_t){.buffer = buffer, .layout = layout, .refs = 1, .device = (int16_t)device};
  if (buffer) account(device, layout->buffer_bytes);
  return cell;
}

void rt_cell_fulfil(rt_cell_t* cell, tt_pbuf_t* buffer) {
  cell->buffer = buffer;
  cell->pending = false;
  account(cell->device, cell->layout->buffer_bytes);
}

void rt_cell_spend(rt_cell_t* cell) {
  if (!cell->buffer) return;
  account(cell->device, -cell->layout->buffer_bytes);
  tt_pbuf_free(g_rt.client, cell->buffer);
  cell->buffer = NULL;
}

void rt_memory_transient(int device, int64_t bytes) {
  tt_memory_stats_t* m = &g_rt.devices[device].memory;
  if (m->allocated + bytes > m->peak_allocated) m->peak_allocated = m->allocated + bytes;
}

void rt_cell_release(rt_cell_t* cell) {
  if (!cell || --cell->refs > 0) return;
  if (cell->buffer) {
    account(cell->device, -cell->layout->buffer_bytes);
    tt_pbuf_free(g_rt.client, cell->buffer);
  }
  cell->next_free = g_free_cells;
  g_free_cells = cell;
}

// ---------------------------------------------------------------- storages
static tt_storage_t* g_free_storages;

tt_storage_t* rt_storage_wrap(int device, size_t nbytes, rt_cell_t* cell) {
  void* address = address_take(nbytes);
  tt_storage_t* s = g_free_storages;
  if (s) g_free_storages = s->next;
  else s = tt_malloc(sizeof *s);
  if (!s || !address) {
    tt_free(s);
    rt_cell_release(cell);
    return NULL;
  }
  memset(s, 0, sizeof *s);
  atomic_init(&s->refs, 1);
  s->device = device;
  s->nbytes = nbytes;
  s->address = address;
  s->cell = cell;
  tt_storage_t* head = &g_rt.devices[device].live;
  s->next = head->next;
  s->prev = head;
  head->next->prev = s;
  head->next = s;
  g_rt.devices[device].memory.live_storages++;
  return s;
}

void rt_storage_set(tt_storage_t* s, rt_cell_t* cell) {
  rt_cell_t* old = s->cell;
  s->cell = cell;
  rt_cell_release(old);
}

tt_status_t tt_storage_create(int device, size_t nbytes, tt_storage_t** out) {
  *out = NULL;
  TT_TRY(rt_check_device(device));
  rt_lock();
  *out = rt_storage_wrap(device, nbytes, NULL);
  rt_unlock();
  if (*out && nbytes >= RT_LABEL_BYTES && g_rt.frontend.where) {
    char where[160] = "";
    g_rt.frontend.where(where, sizeof where);
    rt_label(*out, "allocated", where);
  }
  return *out ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "no address space for a storage of %zu bytes", nbytes);
}

void tt_storage_retain(tt_storage_t* s) { atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed); }

void tt_storage_release(tt_storage_t* s) {
  if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1) return;
  rt_lock();
  rt_cell_release(s->cell);
  s->prev->next = s->next;
  s->next->prev = s->prev;
  g_rt.devices[s->device].memory.live_storages--;
  address_give(s->address, s->nbytes);
  s->next = g_free_storages;
  g_free_storages = s;
  rt_unlock();
}

void* tt_storage_address(const tt_storage_t* s) { return s->address; }

tt_storage_t* tt_storage_find(const void* address) {
  uintptr_t at = (uintptr_t)address;
  tt_storage_t* found = NULL;
  rt_lock();
  for (int d = 0; d < g_rt.n_devices && !found; d++) {
    const tt_storage_t* head = &g_rt.devices[d].live;
    for (tt_storage_t* s = head->next; s && s != head && !found; s = s->next) {
      uintptr_t base = (uintptr_t)s->address;
      if (at >= base && at - base < s->nbytes) found = s;
    }
  }
  rt_unlock();
  return found;
}
size_t tt_storage_nbytes(const tt_storage_t* s) { return s->nbytes; }
int tt_storage_device(const tt_storage_t* s) { return s->device; }

// ---------------------------------------------------------------- raw bytes
// The value as |numel| dense elements on the host; zeros when undefined. |out| has room for the cell's bytes.
static tt_status_t read_all(tt_storage_t* s, unsigned char* out, size_t size) {
  rt_defer_ask("a read of bytes");
  rt_lock();
  tt_status_t status = s->cell && s->cell->pending ? rt_defer_flush(RT_CUT_READ) : NULL;
  rt_cell_t* cell = s->cell && !status ? rt_cell_retain(s->cell) : NULL;
  rt_unlock();
  if (status) return status;
  if (!cell) {
    memset(out, 0, size);
    return NULL;
  }
  size_t have = (size_t)cell->layout->size_bytes;
  if (have == size) {
    status = rt_cell_to_host(cell, out);
  } else {
    unsigned char* all = tt_malloc(have);
    if (!all) status = tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for %zu bytes", have);
    else status = rt_cell_to_host(cell, all);
    if (!status) {
      memset(out, 0, size);
      memcpy(out, all, have < size ? have : size);
    }
    tt_free(all);
  }
  rt_lock();
  RT_COUNT(d2h, 1);
  RT_COUNT(d2h_bytes, (int64_t)have);
  rt_cell_release(cell);
  rt_unlock();
  return status;
}

// Replaces the value by |size| raw bytes, as u8.
static tt_status_t write_all(tt_storage_t* s, const unsigned char* data, size_t size) {
  const int64_t n = (int64_t)size;
  tt_pbuf_t* buffer = NULL;
  TT_TRY(tt_pbuf_from_host(g_rt.client, s->device, TT_U8, 1, &n, data, TT_HOST_COPY, NULL, NULL, &buffer));
  rt_lock();
  RT_COUNT(h2d, 1);
  RT_COUNT(h2d_bytes, n);
  const rt_layout_t* layout = rt_layout_get(TT_U8, 1, &n);
  rt_cell_t* cell = layout ? rt_cell_create(buffer, layout, s->device) : NULL;
  if (cell) rt_storage_set(s, cell);
  rt_unlock();
  return cell ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for a buffer's record");
}

tt_status_t tt_storage_read(tt_storage_t* s, size_t offset, void* out, size_t n) {
  if (offset > s->nbytes || n > s->nbytes - offset)
    return tt_error(TT_OUT_OF_RANGE, "read of bytes [%zu, %zu) of a storage of %zu", offset, offset + n, s->nbytes);
  if (!n) return NULL;
  if (offset == 0 && n == s->nbytes) return read_all(s, out, n);
  unsigned char* all = tt_malloc(s->nbytes);
  if (!all) return tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for %zu bytes", s->nbytes);
  tt_status_t status = read_all(s, all, s->nbytes);
  if (!status) memcpy(out, all + offset, n);
  tt_free(all);
  return status;
}

tt_status_t tt_storage_write(tt_storage_t* s, size_t offset, const void* data, size_t n) {
  if (offset > s->nbytes || n > s->nbytes - offset)
    return tt_error(TT_OUT_OF_RANGE, "write of bytes [%zu, %zu) of a storage of %zu", offset, offset + n, s->nbytes);
  if (!n) return NULL;
  if (offset == 0 && n == s->nbytes) return write_all(s, data, n);
  unsigned char* all = tt_malloc(s->nbytes);
  if (!all) return tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for %zu bytes", s->nbytes);
  tt_status_t status = read_all(s, all, s->nbytes);
  if (!status) {
    memcpy(all + offset, data, n);
    status = write_all(s, all, s->nbytes);
  }
  tt_free(all);
  return status;
}

tt_status_t tt_storage_resize(tt_storage_t* s, size_t nbytes) {
  if (nbytes == s->nbytes) return NULL;
  unsigned char* bytes = NULL;
  bool had_value = s->cell != NULL && nbytes && s->nbytes;
  if (had_value) {  // rare: through the host
    bytes = tt_calloc(nbytes > s->nbytes ? nbytes : s->nbytes, 1);
    if (!bytes) return tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for %zu bytes", nbytes);
    tt_status_t status = read_all(s, bytes, s->nbytes);
    if (status) {
      tt_free(bytes);
      return status;
    }
  }
  rt_lock();
  void* address = address_take(nbytes);
  if (address) {
    address_give(s->address, s->nbytes);
    s->address = address;
    s->nbytes = nbytes;
    rt_storage_set(s, NULL);
  }
  rt_unlock();
  tt_status_t status = address ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "no address space for %zu bytes", nbytes);
  if (!status && had_value) status = write_all(s, bytes, nbytes);
  tt_free(bytes);
  return status;
}

// ---------------------------------------------------------------- statistics
void tt_memory_stats(int device, tt_memory_stats_t* out) {
  memset(out, 0, sizeof *out);
  if (device < 0 || device >= g_rt.n_devices) return;
  rt_lock();
  *out = g_rt.devices[device].memory;
  rt_unlock();
}

void tt_memory_reset_peak(int device) {
  if (device < 0 || device >= g_rt.n_devices) return;
  rt_lock();
  g_rt.devices[device].memory.peak_allocated = g_rt.devices[device].memory.allocated;
  rt_unlock();
}

void tt_memory_reset_accumulated(int device) {
  if (device < 0 || device >= g_rt.n_devices) return;
  rt_lock();
  tt_memory_stats_t* m = &g_rt.devices[device].memory;
  m->total_allocated = m->total_freed = m->allocations = m->frees = m->oom_count = 0;
  rt_unlock();
}

static int64_t live_bytes(const tt_storage_t* s) { return s->cell ? s->cell->layout->buffer_bytes : 0; }

int tt_memory_largest(int device, char* out, size_t size) {
  enum { TOP = 8 };
  const tt_storage_t* top[TOP] = {0};
  int n = 0;
  if (size) out[0] = 0;
  if (device < 0 || device >= g_rt.n_devices) return 0;
  rt_lock();
  const tt_storage_t* head = &g_rt.devices[device].live;
  for (const tt_storage_t* s = head->next; s != head; s = s->next) {
    if (!s->cell) continue;
    int at = n < TOP ? n++ : TOP;
    while (at > 0 && live_bytes(top[at - 1]) < live_bytes(s)) {
      if (at < TOP) top[at] = top[at - 1];
      at--;
    }
    if (at < TOP) top[at] = s;
  }
  size_t used = 0;
  for (int i = 0; i < n && used < size; i++) {
    const rt_layout_t* l = top[i]->cell->layout;
    char dims[256];
    size_t k = 0;
    dims[0] = 0;
    for (int d = 0; d < l->rank && k < sizeof dims - 24; d++)
      k += (size_t)snprintf(dims + k, sizeof dims - k, "%s%lld", d ? ", " : "", (long long)l->dims[d]);
    int w = snprintf(out + used, size - used, "  %10.2f MiB  %s[%s]%s%s\n", (double)l->buffer_bytes / 1048576.0,
                     tt_dtype_name(l->dtype), dims, top[i]->label ? "  " : "", top[i]->label ? top[i]->label : "");
    if (w < 0) break;
    used += (size_t)w;
  }
  rt_unlock();
  return (int)(used < size ? used : size);
}
