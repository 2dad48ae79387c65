// Values in buffers that are larger than they are: what programs with bounded sizes take and give.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "runtime/defer.h"

enum { PAD_ON_HOST_BYTES = 1 << 20 };

hlo_t rt_without_padding(hlo_builder_t* b, hlo_t v, const rt_layout_t* layout) {
  static const int64_t k_origin[TT_MAX_RANK];
  return layout->padded ? hlo_slice(b, v, k_origin, layout->dims, NULL) : v;
}

// ---------------------------------------------------------------- on the host
// Copies the corner of |dims| from an array of |from| dims to one of |to| dims, all dense row-major.
static void copy_corner(int rank, const int64_t* dims, size_t item, const char* src, const int64_t* from, char* dst,
                        const int64_t* to) {
  int64_t at[TT_MAX_RANK] = {0};
  if (rank == 0) {
    memcpy(dst, src, item);
    return;
  }
  for (int d = 0; d < rank; d++)
    if (dims[d] == 0) return;
  size_t row = (size_t)dims[rank - 1] * item;
  for (;;) {
    int64_t i = 0, o = 0;
    for (int d = 0; d < rank; d++) i = i * from[d] + at[d], o = o * to[d] + at[d];
    memcpy(dst + (size_t)o * item, src + (size_t)i * item, row);
    int d = rank - 2;
    while (d >= 0 && ++at[d] == dims[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

tt_status_t rt_cell_to_host(const rt_cell_t* cell, void* out) {
  const rt_layout_t* l = cell->layout;
  if (!l->padded) return tt_pbuf_to_host(g_rt.client, cell->buffer, out, (size_t)l->size_bytes);
  char* all = tt_malloc((size_t)l->buffer_bytes + 1);
  if (!all) return tt_error(TT_RESOURCE_EXHAUSTED, "no host memory for %lld bytes", (long long)l->buffer_bytes);
  tt_status_t status = tt_pbuf_to_host(g_rt.client, cell->buffer, all, (size_t)l->buffer_bytes);
  if (!status) copy_corner(l->rank, l->dims, tt_dtype_size(l->dtype), all, l->physical, out, l->dims);
  tt_free(all);
  return status;
}

static tt_status_t pad_on_host(const rt_cell_t* from, const rt_layout_t* to, rt_cell_t** out_cell) {
  const rt_layout_t* l = from->layout;
  char* value = tt_malloc((size_t)l->size_bytes + 1);
  char* wide = tt_calloc((size_t)to->buffer_bytes + 1, 1);
  tt_status_t status = value && wide ? rt_cell_to_host(from, value) : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  if (!status) copy_corner(l->rank, l->dims, tt_dtype_size(l->dtype), value, l->dims, wide, to->physical);
  if (!status) status = rt_upload(from->device, l->dtype, l->rank, to->physical, wide, out_cell);
  if (!status) (*out_cell)->layout = to;
  tt_free(value);
  tt_free(wide);
  return status;
}

// ---------------------------------------------------------------- on the device
typedef struct change_t {
  int32_t device, dtype, rank;
  int64_t from[TT_MAX_RANK], to[TT_MAX_RANK];
} change_t;

static tt_map_t g_changes;  // change_t -> tt_exe_t*; few: pairs of buffers' dims

static tt_status_t compile_change(const change_t* c, tt_exe_t** out_exe) {
  static const int64_t k_none[TT_MAX_RANK];
  hlo_builder_t* b = hlo_builder_create();
  if (!b) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  int64_t high[TT_MAX_RANK];
  for (int d = 0; d < c->rank; d++) high[d] = c->to[d] - c->from[d];  // a negative one cuts off
  hlo_t v = hlo_param(b, (tt_dtype_t)c->dtype, c->rank, c->from);
  v = hlo_pad(b, v, hlo_scalar(b, (tt_dtype_t)c->dtype, 0), k_none, high, NULL);
  tt_strbuf_t text;
  tt_strbuf_init(&text);
  const int alias = -1;
  tt_status_t status = hlo_builder_error(b);
  if (!status) status = hlo_print(b, 1, &v, &alias, &text);
  if (!status) status = rt_compile_cached(c->device, &text, NULL, "padding", out_exe);
  tt_strbuf_deinit(&text);
  hlo_builder_destroy(b);
  return status;
}

static tt_status_t change_exe(const change_t* c, tt_exe_t** out_exe) {
  uint64_t hash = tt_hash64(c, sizeof *c, 0);
  rt_lock();
  *out_exe = tt_map_find(&g_changes, hash, c, sizeof *c);
  rt_unlock();
  if (*out_exe) return NULL;
  TT_TRY(compile_change(c, out_exe));
  change_t* key = tt_malloc(sizeof *key);
  if (!key) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  *key = *c;
  rt_lock();
  tt_exe_t* other = tt_map_find(&g_changes, hash, c, sizeof *c);
  bool kept = !other && tt_map_put(&g_changes, hash, key, sizeof *key, *out_exe);
  rt_unlock();
  if (kept) return NULL;
  tt_free(key);
  if (!other) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_exe_release(*out_exe);
  *out_exe = other;
  return NULL;
}

static tt_status_t change_on_device(const rt_cell_t* from, const rt_layout_t* to, rt_cell_t** out_cell) {
  const rt_layout_t* l = from->layout;
  change_t c;
  memset(&c, 0, sizeof c);
  c.device = from->device;
  c.dtype = (int32_t)l->dtype;
  c.rank = l->rank;
  memcpy(c.from, l->physical, (size_t)l->rank * sizeof(int64_t));
  memcpy(c.to, to->physical, (size_t)l->rank * sizeof(int64_t));
  tt_exe_t* exe;
  TT_TRY(change_exe(&c, &exe));
  tt_pbuf_t *in = from->buffer, *out = NULL;
  TT_TRY(tt_exe_run(exe, 1, &in, 0, NULL, &out, NULL));
  rt_lock();
  RT_COUNT(executions, 1);
  *out_cell = rt_cell_create(out, to, from->device);
  rt_unlock();
  return *out_cell ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
}

tt_status_t rt_padded_cell(const tt_tensor_t* t, const int64_t* physical, rt_cell_t** out_cell) {
  *out_cell = NULL;
  for (int d = 0; d < t->rank; d++)
    if (t->sizes[d] > physical[d])
      return tt_error(TT_INVALID_ARGUMENT, "size %lld of dim %d is above the program's bound %lld", (long long)t->sizes[d], d,
                      (long long)physical[d]);
  rt_cell_t* cell;
  TT_TRY(rt_value_cell(t, true, &cell));
  rt_lock();
  const rt_layout_t* to = rt_layout_get_padded((tt_dtype_t)t->dtype, t->rank, t->sizes, physical);
  rt_unlock();
  if (cell->layout == to) {
    *out_cell = cell;
    return NULL;
  }
  tt_status_t status;
  if (!to) status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  else if (cell->layout->padded || cell->layout->size_bytes > PAD_ON_HOST_BYTES) status = change_on_device(cell, to, out_cell);
  else status = pad_on_host(cell, to, out_cell);
  rt_lock();
  rt_cell_release(cell);
  rt_unlock();
  return status;
}
