// How a region becomes programs: where it is split, which values stay in memory between the parts, which are computed
// again.
//
// Depends on: base.
// Threads: thread-compatible.
// One program for a whole training step is fast and needs the most memory: the compiler keeps what the forward pass
// computed for the backward pass, also what the program never kept, and its schedule lets temporaries live side by side.
// A region whose values are large is therefore split into *parts*, one program each, at places where little is in flight.
// Between parts only what a later part reads is in memory; what can be computed again in one pass over values that are
// there anyway is not kept.
#ifndef TT_RUNTIME_PLAN_H_
#define TT_RUNTIME_PLAN_H_
#include "base/arena.h"

// Operations in the order of recording. Wires as in rt_region_t: 0 undefined, 2n+1 external n, 2(n+1) value n.
typedef struct rt_plan_op_t {
  int32_t first_wire, n_wires, first_value, n_values;
  bool again;               // light, and gives the same when it is computed again
} rt_plan_op_t;

typedef struct rt_plan_graph_t {
  int n_ops, n_values, n_external;
  const rt_plan_op_t* ops;
  const int64_t* wires;
  const int64_t* value_bytes;
  const bool* value_new;          // false: it takes over the buffer of what it is the next value of
  const bool* value_live;         // stays when the region has run
  const int64_t* external_bytes;
  const bool* external_live;
} rt_plan_graph_t;

// Regions that make fewer bytes than |whole| are one part; else a part makes about |1 / parts| of them.
typedef struct rt_plan_limits_t {
  int64_t whole;
  int parts;
  int64_t smallest;               // values below this are always kept
} rt_plan_limits_t;

typedef struct rt_plan_t {
  int n_parts;
  int32_t* first;           // of each part its first operation; n_parts + 1 of them
  // The last part that finds the value in memory: -1 it is never read after its own part. Later parts that want it
  // compute it again.
  int32_t *last_value, *last_external;
} rt_plan_t;

// False: memory is out. Everything lies in |arena|.
bool rt_plan_make(const rt_plan_graph_t* graph, const rt_plan_limits_t* limits, tt_arena_t* arena, rt_plan_t* out);

#endif  // TT_RUNTIME_PLAN_H_
