// A graph under construction: shared by graph.c (values, calls, compiling, running), graph_control.c (control flow) and
// graph_dynamic.c (bounded sizes).
//
// Depends on: tt/graph.h, runtime/entry.
// Threads: thread-compatible: one graph, one thread.
#ifndef TT_RUNTIME_GRAPH_H_
#define TT_RUNTIME_GRAPH_H_
#include "runtime/entry.h"
#include "tt/graph.h"

// A region that is open or waits for the if or while it belongs to.
typedef struct rt_graph_region_t {
  hlo_region_t* region;
  tt_region_kind_t kind;
  bool open;
  int first_check;           // of the emission's checks when it began
  uint64_t rng_drawn;
  int n_checks;              // what it reports: moved out of the emission when it ended
  tt_check_t* checks;        // arena; |bad| and |value| are dead outside
  int64_t base;              // its check i is reported as number base + i + 1
} rt_graph_region_t;

struct tt_graph_t {
  hlo_builder_t* b;
  tt_emit_t own;             // of a graph that stands alone
  tt_emit_t* e;              // &own, or that of the lowering being traced
  tt_lower_t* lower;         // when wrapped around a lowering
  tt_strbuf_t* script;       // what is done to it is written there; NULL not
  int device;
  hlo_t* values;             // by id
  int n_values, cap_values;
  int n_params, n_calls;
  int n_outputs;
  int* outputs;              // ids
  int* donate;
  int64_t (*strides)[TT_MAX_RANK];  // by output; first entry -1: row-major
  bool* writes;              // by output: written back into the storage of donate[i]
  rt_graph_region_t* regions;
  int n_regions, cap_regions;
  int64_t check_serial;      // numbers of checks that regions report
};

// Numbers |v|; -1 when memory is out.
int rt_graph_add(tt_graph_t* g, hlo_t v);
// The same, or what is wrong: with memory, or with what was built so far.
TT_MUST_USE tt_status_t rt_graph_give(tt_graph_t* g, hlo_t v, int* out_id);
// The value of an id that a caller names.
TT_MUST_USE tt_status_t rt_graph_value(const tt_graph_t* g, int id, hlo_t* out);
// |id|, of one integer, as a place along a dim.
TT_MUST_USE tt_status_t rt_graph_place(tt_graph_t* g, int id, hlo_t* out);

#endif  // TT_RUNTIME_GRAPH_H_
