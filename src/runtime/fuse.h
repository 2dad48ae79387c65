// What a fused region consists of: shared by its builder (fuse_build.c) and its cache and running (fuse.c).
//
// Depends on: runtime/defer.
// Threads: a job belongs to the compiling thread; the rest under rt_lock.
#ifndef TT_RUNTIME_FUSE_H_
#define TT_RUNTIME_FUSE_H_
#include "runtime/defer.h"

// What compiling needs of a region, without its values.
typedef struct rt_job_t {
  struct rt_job_t* next;
  struct rt_record_t* record;
  int device, n_nodes, n_refs, n_outs, n_external;
  rt_node_t* nodes;         // entries retained
  int64_t* wires;
  const rt_layout_t** external;
  uint8_t* out_live;
  uint8_t* external_dead;
} rt_job_t;

// Values that parts pass on are numbered together: the externals, then the region's outs.
typedef enum rt_source_kind_t { RT_SOURCE_VALUE, RT_SOURCE_BITS, RT_SOURCE_RNG } rt_source_kind_t;

typedef struct rt_source_t {
  uint8_t kind;             // rt_source_kind_t
  uint8_t dtype;            // of BITS
  int32_t index;            // of the value, or into the region's bits
} rt_source_t;

typedef struct rt_fused_out_t {
  int32_t out;              // into the region's outs; -1: a check
  int32_t node;             // of the check
  int32_t donor;            // value whose buffer it takes over, -1
} rt_fused_out_t;

typedef struct rt_part_t {
  tt_exe_t* exe;            // NULL: nothing of it is wanted, nothing to run
  int n_sources, n_outs, n_last;
  rt_source_t* sources;
  rt_fused_out_t* outs;
  int32_t* last;            // values that nothing after this part reads
} rt_part_t;

struct rt_fused_t {
  int n_parts, n_donated;
  int64_t made_again;       // operations that a later part computes again
  rt_part_t* parts;
  tt_pbuf_t** buffers;      // scratch: operands, then outputs of the largest part
  bool* owned;
};

TT_MUST_USE tt_status_t rt_fused_build(const rt_job_t* job, rt_fused_t** out_fused);  // no lock
void rt_fused_free(rt_fused_t* fused);                                                // accepts NULL

#endif  // TT_RUNTIME_FUSE_H_
