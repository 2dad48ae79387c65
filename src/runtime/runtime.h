// The process-wide runtime: client, lock, storages and their values, counters.
//
// Depends on: pjrt, ops, cache, base.
// Threads: one lock (rt_lock) guards everything below unless a comment says otherwise. It is never held while a
// callback of the front end runs, nor while a program compiles. Order of locks: Python's GIL, then rt_lock.
//
// Values. A *cell* is a device buffer with its layout, counted: several storages may share one (copies are lazy), and a
// cell with one owner may be donated to the program that replaces it. A *layout* is an interned (dtype, dims).
#ifndef TT_RUNTIME_RUNTIME_H_
#define TT_RUNTIME_RUNTIME_H_
#include <stdatomic.h>
#include "base/strbuf.h"
#include "ops/lower.h"
#include "pjrt/pjrt.h"
#include "runtime/plan.h"
#include "tt/eager.h"

#define TT_MAX_DEVICES 512

// ---------------------------------------------------------------- layouts
typedef struct rt_layout_t {
  uint32_t id;
  tt_dtype_t dtype;
  int32_t rank;
  int64_t numel;
  int64_t size_bytes;          // of the value
  int64_t buffer_bytes;        // of the buffer: more where it is padded
  bool padded;                 // the value is the corner at 0 of the buffer; what is beyond it is anything
  const int64_t* physical;     // dims of the buffer; equal to |dims| where it is not padded
  int64_t dims[];
} rt_layout_t;
// The one layout of this dtype and dims; NULL when memory is out, or when no memory could hold it. Layouts live as long as the process.
const rt_layout_t* rt_layout_get(tt_dtype_t dtype, int rank, const int64_t* dims);
const rt_layout_t* rt_layout_get_padded(tt_dtype_t dtype, int rank, const int64_t* dims, const int64_t* physical);

// ---------------------------------------------------------------- cells
typedef struct rt_cell_t {
  struct rt_cell_t* next_free;
  tt_pbuf_t* buffer;
  const rt_layout_t* layout;
  int32_t refs;
  int16_t device;
  bool ready;                  // known to be computed
  bool pending;                // recorded, not run yet: no buffer
  uint64_t mark;               // (region, number in its wiring)
} rt_cell_t;
// A cell with one reference.
rt_cell_t* rt_cell_create(tt_pbuf_t* buffer, const rt_layout_t* layout, int device);  // takes |buffer|; NULL: memory is out (buffer freed)
static inline rt_cell_t* rt_cell_retain(rt_cell_t* cell) { cell->refs++; return cell; }
void rt_cell_release(rt_cell_t* cell);  // accepts NULL
void rt_cell_fulfil(rt_cell_t* cell, tt_pbuf_t* buffer);  // a pending cell gets its buffer (taken)
void rt_cell_spend(rt_cell_t* cell);    // its buffer was donated: the cell has none any more
// A program that needs |bytes| of its own while it runs has been started: they count for the peak.
void rt_memory_transient(int device, int64_t bytes);

// ---------------------------------------------------------------- storages
struct tt_storage_t {
  atomic_int refs;
  int32_t device;
  size_t nbytes;
  void* address;
  rt_cell_t* cell;             // NULL: undefined
  uint64_t mark;               // (dispatch number, slot) of the dispatch being packed
  const char* label;           // where it was made, for reports; kept for ever (label.c)
  struct tt_storage_t *prev, *next;  // live storages of the device
};
// Replaces the value. Takes |cell|.
void rt_storage_set(tt_storage_t* storage, rt_cell_t* cell);
// Makes a storage around a cell (taken) without locking; NULL: memory is out.
tt_storage_t* rt_storage_wrap(int device, size_t nbytes, rt_cell_t* cell);

// ---------------------------------------------------------------- counters
#define RT_COUNTERS(X)                                                                                                    \
  X(executions) X(compiles) X(lowerings) X(metas) X(traces) X(disk_hits) X(disk_writes) X(h2d) X(d2h) X(h2d_bytes)          \
  X(d2h_bytes) X(syncs) X(signature_misses) X(signature_hits) X(scalar_uploads) X(donations) X(failed_checks)      \
  X(recorded) X(regions_fused) X(regions_unfused) X(fused_compiles) X(fused_failures) X(cuts_read) X(cuts_sync) X(cuts_op) X(cuts_period)      \
  X(cuts_limit) X(cuts_device) X(cuts_mode) X(programs_dropped)
typedef enum rt_counter_t {
#define X(name) RT_C_##name,
  RT_COUNTERS(X)
#undef X
  RT_COUNTER_COUNT
} rt_counter_t;

// ---------------------------------------------------------------- the runtime
typedef struct rt_pending_check_t {
  tt_pbuf_t* flag;                  // i64[2]
  struct rt_entry_t* entry;         // messages
  char where[160];
} rt_pending_check_t;

enum { RT_MAX_PENDING_CHECKS = 256 };

typedef struct rt_device_t {
  tt_storage_t live;                // list head (prev/next only)
  tt_memory_stats_t memory;
  tt_rng_t* rng;
} rt_device_t;

typedef struct rt_t {
  tt_client_t* client;              // NULL: not open
  int pid;                          // of the opener
  int n_devices;
  rt_device_t* devices;
  uint32_t caps;
  char* environment;                // text of everything but the program that decides what an executable is
  tt_frontend_t frontend;
  int precision;
  tt_dtype_t default_dtype;
  uint64_t dispatch_number;
  rt_plan_limits_t plan_limits;     // of fused regions
  int keep_programs;                // compiled programs alive from which the caches let go of those used longest ago
  int64_t counters[RT_COUNTER_COUNT];
  rt_pending_check_t pending[RT_MAX_PENDING_CHECKS];
  int n_pending;
} rt_t;
extern rt_t g_rt;

void rt_lock(void);
void rt_unlock(void);
#define RT_COUNT(name, n) (g_rt.counters[RT_C_##name] += (n))

// One line to the log, when TORCH_TPU_VERBOSE is set.
void rt_log(const char* format, ...) TT_PRINTF(1, 2);

static inline int64_t rt_numel(const tt_tensor_t* t) {
  int64_t n = 1;
  for (int d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

// Fails when the runtime is not open, the process is a fork of the opener, or |device| does not exist.
TT_MUST_USE tt_status_t rt_check_device(int device);
// Turns a plugin's out-of-memory into ours with the report of the largest live storages. Takes and returns |status|.
TT_MUST_USE tt_status_t rt_explain_oom(tt_status_t status, int device);

// ---------------------------------------------------------------- scalars (scalar.c)
// Starts a call: buffers handed out from here on stay valid until the next call starts.
void rt_scalar_begin(void);
// Device buffer of a 0-d constant; borrowed, or the caller's to free when *out_owned. |bits| holds the value in
// |dtype|'s format.
TT_MUST_USE tt_status_t rt_scalar_buffer(int device, tt_dtype_t dtype, const void* bits, tt_pbuf_t** out_buffer, bool* out_owned);
// Writes value |v| as |dtype| (C conversions; complex to real takes the real part) into |out|; returns its size.
size_t rt_scalar_bits(const tt_value_t* v, tt_dtype_t dtype, unsigned char out[16]);
// Converts one host element.
size_t rt_host_scalar_bits(const void* data, tt_dtype_t from, tt_dtype_t to, unsigned char out[16]);

// ---------------------------------------------------------------- random numbers (rng.c)
// The state {seed, offset} a program draws from; the generator moves on by |blocks|.
void rt_rng_draw(tt_rng_t* rng, uint64_t blocks, unsigned char out_state[16]);
TT_MUST_USE tt_status_t rt_rng_upload(int device, const unsigned char state[16], tt_pbuf_t** out_buffer);  // as u64[2]

// ---------------------------------------------------------------- labels (label.c)
// Tensors of this size and more remember the operation and the user's line that made them.
#define RT_LABEL_BYTES (1u << 20)
void rt_label(tt_storage_t* storage, const char* op, const char* where);  // takes the lock

// ---------------------------------------------------------------- pending checks (checks.c)
// Takes |flag|; retains |entry|. May have to wait for older checks: their failure is returned.
TT_MUST_USE tt_status_t rt_checks_push(tt_pbuf_t* flag, struct rt_entry_t* entry, const char* where);
// The same under the lock; when the table is full the flag is dropped unread.
void rt_checks_push_locked(tt_pbuf_t* flag, struct rt_entry_t* entry, const char* where);
TT_MUST_USE tt_status_t rt_checks_drain(void);  // waits for all; the first failure is returned, the others dropped

#endif  // TT_RUNTIME_RUNTIME_H_
