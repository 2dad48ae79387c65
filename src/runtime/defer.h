// DeferAndFuse: operations recorded now, run later as one program.
//
// Depends on: runtime/entry.
// Threads: everything under rt_lock unless said otherwise; fused programs compile on a thread of their own.
//
// A *region* is a run of recorded operations (nodes). Their results are *pending* cells: layouts without buffers. The
// region is run (flushed) when a value is needed, at a synchronisation, or at a cut. A region seen before runs as ONE
// fused program: values that nothing can reach any more are not outputs of it, and buffers that die in it are donated.
// A region not seen before runs node by node through the entries' own executables; when it comes a second time its
// fused program is compiled in the background, and node by node it runs until that is ready.
// Cuts must repeat, or a loop never meets its program again: a region also ends where the recorded operations have
// come full circle (the last |RT_CONTEXT| equal those before the region began).
#ifndef TT_RUNTIME_DEFER_H_
#define TT_RUNTIME_DEFER_H_
#include "runtime/entry.h"

enum { RT_MAX_NODES = 4096, RT_CONTEXT = 12, RT_MIN_PERIOD = 256 };

typedef enum rt_cut_t {
  RT_CUT_READ,      // the host needs a value
  RT_CUT_SYNC,      // synchronize, event
  RT_CUT_OP,        // an operation that cannot be recorded
  RT_CUT_PERIOD,    // the loop came full circle
  RT_CUT_LIMIT,     // too many nodes
  RT_CUT_DEVICE,    // another device
  RT_CUT_MODE,      // a strict operation needs a pending value
  RT_CUT_COUNT
} rt_cut_t;

typedef struct rt_node_t {
  rt_entry_t* entry;        // one reference
  int32_t first_ref;        // into the region's refs: one for each storage slot of the entry
  int32_t first_bits;       // into the region's bits: one for each operand that is no storage
  int32_t first_out;        // into the region's outs: one for each program output
  int32_t where;            // offset into the region's text, -1
} rt_node_t;

typedef struct rt_bits_t {
  unsigned char data[16];   // a scalar in its dtype; for the generator {seed, offset}
} rt_bits_t;

typedef struct rt_region_t {
  int device;
  int n_nodes, n_refs, n_bits, n_outs;
  int cap_nodes, cap_refs, cap_bits, cap_outs;
  rt_node_t* nodes;
  int64_t* wires;           // of each ref: 0 undefined, 2n+1 external n, 2(n+1) the region's out n
  int cap_wires;
  rt_cell_t** refs;         // cells read, one reference for each use; NULL undefined
  rt_bits_t* bits;
  rt_cell_t** outs;         // pending results, one reference each; NULL none
  tt_strbuf_t key;          // entries and wiring
  tt_strbuf_t text;
  uint64_t serial;          // of the region: marks of cells
  int n_external;           // cells from outside, numbered by first use
  int cap_external;
  rt_cell_t** external;     // borrowed from refs
  struct rt_site_t* site;   // while it is being run: where it ended; NULL not known
} rt_region_t;

// Records the packed call as entry |e|; results as in tt_dispatch. False: it cannot be recorded (run it strictly).
// |where|: the user's line, for entries with checks; "" otherwise (asked before: the front end is never called under the
// lock).
bool rt_defer_record(rt_call_t* call, rt_entry_t* e, const char* where, tt_results_t* results, tt_status_t* out_status);
// Runs everything recorded. The lock is held; it is not given up.
TT_MUST_USE tt_status_t rt_defer_flush(rt_cut_t why);
bool rt_defer_pending(void);
// Under the lock: can |e| be recorded?
bool rt_defer_can(const rt_entry_t* e);

// ---------------------------------------------------------------- the account of cuts (explain.c)
typedef struct rt_site_t rt_site_t;  // a place where regions end; lives as long as the process
// Says, for the cut this thread may make next, what makes it and the user's line.
void rt_defer_note(const char* op, const char* where);
// The same, asking the front end for the line when something is recorded. No lock held.
void rt_defer_ask(const char* op);
rt_site_t* rt_explain_cut(rt_cut_t why, int n_nodes);  // NULL: too many places
void rt_explain_place(const rt_site_t* site, tt_strbuf_t* json);  // '{"reason":…' without the closing brace

// ---------------------------------------------------------------- fused programs (fuse.c)
typedef struct rt_fused_t rt_fused_t;
void rt_fused_halve(void);  // forgets the regions met longest ago
// The program for the region's key and liveness (appended to the key here), or NULL: not ready. Notes that it was met.
const rt_fused_t* rt_fused_find(rt_region_t* region);
// Runs it: fills the pending cells. Under the lock.
TT_MUST_USE tt_status_t rt_fused_run(const rt_fused_t* fused, rt_region_t* region);
void rt_fused_report(tt_strbuf_t* json);  // what became of each region met
// Waits until no fused program is being compiled. No lock held.
void rt_fused_wait(void);
// Drops what is queued and waits for the one in work: before the process ends.
void rt_fused_stop(void);

#endif  // TT_RUNTIME_DEFER_H_
