// Moving values between host and devices, and between views.
#include <string.h>

#include "base/alloc.h"
#include "runtime/defer.h"

// The core's own two operations, on rows of the table like any other.
static tt_op_t k_dense = {.desc = {.name = "tt::dense", .row = "clone", .variant = TT_FUNCTIONAL, .n_args = 2, .n_returns = 1},
                          .internal = true};
static tt_op_t k_copy = {.desc = {.name = "tt::copy_", .row = "copy", .variant = TT_INPLACE, .n_args = 3, .n_returns = 1,
                                  .mutates = {1}},
                         .internal = true};

static tt_status_t bind(tt_op_t* op) {
  if (op->row) return NULL;
  const tt_op_row_t* row = tt_op_find(op->desc.row);
  if (!row) return tt_error(TT_INTERNAL, "the op table has no row %s", op->desc.row);
  op->row = row;
  return NULL;
}

// Under the lock: the storage's value is exactly |t|, row-major, though its buffer may be |padded|.
static bool holds(const tt_tensor_t* t, bool padded) {
  const rt_cell_t* cell = t->storage ? t->storage->cell : NULL;
  if (!cell || t->offset || (cell->layout->padded && !padded) || cell->layout->dtype != (tt_dtype_t)t->dtype || cell->layout->rank != t->rank) return false;
  for (int d = 0; d < t->rank; d++)
    if (cell->layout->dims[d] != t->sizes[d]) return false;
  return tt_view_is_contiguous(t->rank, t->sizes, t->strides);
}

tt_status_t rt_make_dense(const tt_tensor_t* t, tt_storage_t** out_storage) {
  *out_storage = NULL;
  TT_TRY(bind(&k_dense));
  tt_results_t results = {0};
  tt_value_t args[2] = {{.kind = TT_V_TENSOR, .u.tensor = t}, {.kind = TT_V_NONE}};
  tt_status_t status = tt_dispatch(&k_dense, t->storage ? t->storage->device : t->device, args, NULL, &results);
  if (!status) *out_storage = results.items[0].storage;
  tt_results_free(&results);
  return status;
}

// A storage around host data; |data| dense row-major.
tt_status_t rt_upload(int device, tt_dtype_t dtype, int rank, const int64_t* sizes, const void* data, rt_cell_t** out_cell) {
  *out_cell = NULL;
  tt_pbuf_t* buffer = NULL;
  tt_status_t status = tt_pbuf_from_host(g_rt.client, device, dtype, rank, sizes, data, TT_HOST_COPY, NULL, NULL, &buffer);
  if (status) return rt_explain_oom(status, device);
  rt_lock();
  const rt_layout_t* layout = rt_layout_get(dtype, rank, sizes);
  if (layout) *out_cell = rt_cell_create(buffer, layout, device);
  else tt_pbuf_free(g_rt.client, buffer);
  RT_COUNT(h2d, 1);
  RT_COUNT(h2d_bytes, layout ? layout->size_bytes : 0);
  rt_unlock();
  return *out_cell ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
}

// Under the lock: runs what is recorded when the cell waits for it. On failure the cell is given back.
static tt_status_t settle(rt_cell_t** cell) {
  if (!(*cell)->pending) return NULL;
  tt_status_t status = rt_defer_flush(RT_CUT_READ);
  if (!status && (*cell)->pending) status = tt_error(TT_INTERNAL, "a recorded value was never computed");
  if (!status) return NULL;
  rt_cell_release(*cell);
  *cell = NULL;
  return status;
}

tt_status_t rt_dense_cell(const tt_tensor_t* t, rt_cell_t** out_cell) { return rt_value_cell(t, false, out_cell); }

tt_status_t rt_value_cell(const tt_tensor_t* t, bool padded, rt_cell_t** out_cell) {
  *out_cell = NULL;
  rt_defer_ask("a value is needed");
  rt_lock();
  if (holds(t, padded)) *out_cell = rt_cell_retain(t->storage->cell);
  tt_status_t status = *out_cell ? settle(out_cell) : NULL;
  rt_unlock();
  if (*out_cell || status) return status;
  if (rt_numel(t) == 0)  // programs take a buffer even where there is nothing in it
    return rt_upload(t->storage ? t->storage->device : t->device, (tt_dtype_t)t->dtype, t->rank, t->sizes, t, out_cell);
  tt_storage_t* dense = NULL;
  TT_TRY(rt_make_dense(t, &dense));
  rt_defer_ask("a value is needed");
  rt_lock();
  *out_cell = dense->cell ? rt_cell_retain(dense->cell) : NULL;
  status = *out_cell ? settle(out_cell) : NULL;
  rt_unlock();
  tt_storage_release(dense);
  if (status) return status;
  return *out_cell ? NULL : tt_error(TT_INTERNAL, "a dense copy has no value");
}

tt_status_t tt_copy_to_host(const tt_tensor_t* src, void* out_data) {
  if (rt_numel(src) == 0) return NULL;
  if (!src->storage) return tt_error(TT_INTERNAL, "a tensor with elements has no storage");
  TT_TRY(rt_check_device(src->storage->device));
  rt_cell_t* cell;
  TT_TRY(rt_value_cell(src, true, &cell));
  tt_status_t status = rt_cell_to_host(cell, out_data);
  rt_lock();
  cell->ready = true;
  RT_COUNT(d2h, 1);
  RT_COUNT(d2h_bytes, cell->layout->buffer_bytes);
  rt_cell_release(cell);
  bool pending = g_rt.n_pending > 0;
  rt_unlock();
  if (!pending) return status;
  tt_status_t checks = rt_checks_drain();
  if (!checks) return status;
  tt_status_free(status);
  return checks;
}

// True when writing all of |t| replaces the storage's whole value, in row-major order.
static bool covers_storage(const tt_tensor_t* t) {
  return t->offset == 0 && (size_t)rt_numel(t) * tt_dtype_size((tt_dtype_t)t->dtype) == t->storage->nbytes &&
         tt_view_is_contiguous(t->rank, t->sizes, t->strides);
}

static tt_status_t dispatch_copy(const tt_tensor_t* dst, const tt_tensor_t* src) {
  TT_TRY(bind(&k_copy));
  tt_results_t results = {0};
  tt_value_t args[3] = {{.kind = TT_V_TENSOR, .u.tensor = dst}, {.kind = TT_V_TENSOR, .u.tensor = src}, {.kind = TT_V_BOOL}};
  tt_status_t status = tt_dispatch(&k_copy, dst->storage->device, args, NULL, &results);
  tt_results_free(&results);
  return status;
}

// Writes a value that is on dst's device already. Takes |cell|, row-major of |sizes|.
static tt_status_t write_cell(const tt_tensor_t* dst, rt_cell_t* cell, tt_dtype_t dtype, int rank, const int64_t* sizes) {
  rt_lock();
  bool same = cell->layout->rank == dst->rank && (tt_dtype_t)dst->dtype == dtype;
  for (int d = 0; same && d < dst->rank; d++) same = dst->sizes[d] == sizes[d];
  if (same && covers_storage(dst)) {
    rt_storage_set(dst->storage, cell);
    rt_unlock();
    return NULL;
  }
  tt_storage_t* temp = rt_storage_wrap(dst->storage->device, (size_t)cell->layout->size_bytes, cell);
  rt_unlock();
  if (!temp) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  int64_t strides[TT_MAX_RANK];
  tt_view_row_major(rank, sizes, strides);
  tt_tensor_t src = {.storage = temp, .sizes = sizes, .strides = strides, .rank = rank, .dtype = (uint8_t)dtype,
                     .device = (int16_t)dst->storage->device};
  tt_status_t status = dispatch_copy(dst, &src);
  tt_storage_release(temp);
  return status;
}

tt_status_t tt_copy_from_host(const tt_tensor_t* dst, const void* data, tt_dtype_t dtype) {
  if (rt_numel(dst) == 0) return NULL;
  TT_TRY(rt_check_device(dst->storage->device));
  rt_cell_t* cell;
  TT_TRY(rt_upload(dst->storage->device, dtype, dst->rank, dst->sizes, data, &cell));
  return write_cell(dst, cell, dtype, dst->rank, dst->sizes);
}

tt_status_t tt_copy_device(const tt_tensor_t* dst, const tt_tensor_t* src) {
  if (rt_numel(dst) == 0 || rt_numel(src) == 0) return NULL;
  TT_TRY(rt_check_device(dst->storage->device));
  int from = src->storage->device, to = dst->storage->device;
  if (from == to) {
    // A whole value onto a whole storage is shared until either side is written.
    rt_lock();
    bool same = src->dtype == dst->dtype && src->rank == dst->rank && holds(src, true) && covers_storage(dst);
    for (int d = 0; same && d < dst->rank; d++) same = dst->sizes[d] == src->sizes[d];
    if (same && dst->storage != src->storage) rt_storage_set(dst->storage, rt_cell_retain(src->storage->cell));
    rt_unlock();
    return same ? NULL : dispatch_copy(dst, src);
  }
  rt_cell_t* cell;
  TT_TRY(rt_dense_cell(src, &cell));
  tt_pbuf_t* moved = NULL;
  tt_status_t status = tt_pbuf_copy_to_device(g_rt.client, cell->buffer, to, &moved);
  rt_lock();
  rt_cell_t* landed = status ? NULL : rt_cell_create(moved, cell->layout, to);
  rt_cell_release(cell);
  rt_unlock();
  if (status) return rt_explain_oom(status, to);
  if (!landed) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  return write_cell(dst, landed, (tt_dtype_t)src->dtype, src->rank, src->sizes);
}
