// Traced decompositions as bytes: what the front end called, so that the operation can be lowered again, in a larger
// program or another process, without asking it.
//
// A script is a run of steps in the order of the trace; ids of values follow from that order. Every piece is padded to 8
// bytes, so that lists can be used where they lie.
#include <string.h>

#include "runtime/entry.h"
#include "tt/graph.h"

enum { STEP_ARG, STEP_CONSTANT, STEP_CALL, STEP_RESULT };

static void put(tt_strbuf_t* s, const void* data, size_t n) {
  static const char zeros[8] = {0};
  if (n) tt_strbuf_append(s, data, n);
  tt_strbuf_append(s, zeros, (8 - n % 8) % 8);
}

static void put_ints(tt_strbuf_t* s, int n, const int64_t* values) { put(s, values, (size_t)n * 8); }

void rt_script_arg(tt_strbuf_t* s, int arg, int elem) { put_ints(s, 3, (const int64_t[]){STEP_ARG, arg, elem}); }

void rt_script_result(tt_strbuf_t* s, int i, int id) { put_ints(s, 3, (const int64_t[]){STEP_RESULT, i, id}); }

void rt_script_constant(tt_strbuf_t* s, tt_dtype_t dtype, int rank, const int64_t* dims, const void* data) {
  int64_t n = (int64_t)tt_dtype_size(dtype);
  for (int i = 0; i < rank; i++) n *= dims[i];
  put_ints(s, 4, (const int64_t[]){STEP_CONSTANT, (int64_t)dtype, rank, n});
  put_ints(s, rank, dims);
  put(s, data, (size_t)n);
}

// Bytes that a value points to; 0 when it points to nothing.
static size_t payload(const tt_value_t* v) {
  switch (v->kind) {
    case TT_V_INTS: case TT_V_FLOATS: case TT_V_NODES: return (size_t)v->n * 8;
    case TT_V_BOOLS: return (size_t)v->n;
    case TT_V_SCALARS: return (size_t)v->n * sizeof(tt_value_t);
    case TT_V_STRING: return (size_t)v->n + 1;
    default: return 0;
  }
}

void rt_script_call(tt_strbuf_t* s, const char* name, int n_args, const tt_value_t* args, int n_types, const tt_type_desc_t* types) {
  size_t len = strlen(name) + 1;
  put_ints(s, 4, (const int64_t[]){STEP_CALL, (int64_t)len, n_args, n_types});
  put(s, name, len);
  for (int i = 0; i < n_args; i++) {
    tt_value_t v = args[i];
    if (v.kind == TT_V_GENERATOR) v.u.generator = NULL;  // the program draws from its own operand
    put(s, &v, sizeof v);
    put(s, args[i].u.string, payload(&v));
  }
  for (int i = 0; i < n_types; i++) {
    put_ints(s, 2, (const int64_t[]){(int64_t)types[i].dtype, types[i].rank});
    put_ints(s, types[i].rank, types[i].dims);
  }
}

// ---------------------------------------------------------------- reading
typedef struct reader_t {
  const char* p;
  size_t left;
} reader_t;

static const void* take(reader_t* r, size_t n) {
  size_t padded = n + (8 - n % 8) % 8;
  if (padded < n || padded > r->left) return NULL;
  const void* at = r->p;
  r->p += padded;
  r->left -= padded;
  return at;
}

static const int64_t* take_ints(reader_t* r, int64_t n) {
  return n < 0 || (uint64_t)n > r->left / 8 ? NULL : take(r, (size_t)n * 8);
}

static tt_status_t damaged(void) { return tt_error(TT_DATA_LOSS, "the record of a traced operation is damaged"); }

static tt_status_t run_call(tt_lower_t* l, reader_t* r) {
  enum { MAX_RESULTS = 1024 };
  tt_arena_t* arena = hlo_builder_arena(l->e->b);
  const int64_t* head = take_ints(r, 3);
  const char* name = head && head[0] > 0 ? take(r, (size_t)head[0]) : NULL;
  if (!name || name[head[0] - 1] || head[1] < 0 || head[1] > TT_MAX_ARGS || head[2] < 0 || (uint64_t)head[2] > r->left) return damaged();
  int n_args = (int)head[1], n_types = (int)head[2], room = MAX_RESULTS;
  tt_value_t* args = tt_arena_alloc(arena, (size_t)(n_args + 1) * sizeof *args);
  tt_type_desc_t* types = tt_arena_alloc(arena, (size_t)(n_types + 1) * sizeof *types);
  int* ids = tt_arena_alloc(arena, MAX_RESULTS * sizeof *ids);
  if (!args || !types || !ids) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (int i = 0; i < n_args; i++) {
    const tt_value_t* v = take(r, sizeof *v);
    if (!v || v->n < 0) return damaged();
    args[i] = *v;
    size_t n = payload(v);
    if (n && !(args[i].u.string = take(r, n))) return damaged();
  }
  for (int i = 0; i < n_types; i++) {
    const int64_t* type = take_ints(r, 2);
    const int64_t* dims = type ? take_ints(r, type[1]) : NULL;
    if (!dims || type[0] < 0 || type[0] >= TT_DTYPE_COUNT || type[1] > TT_MAX_RANK) return damaged();
    types[i] = (tt_type_desc_t){(tt_dtype_t)type[0], (int32_t)type[1], dims};
  }
  return tt_graph_call(tt_lower_graph(l), name, n_args, args, n_types, n_types ? types : NULL, ids, &room);
}

static tt_status_t run_step(tt_lower_t* l, reader_t* r) {
  const int64_t* step = take_ints(r, 1);
  const int64_t* two;
  if (!step) return damaged();
  switch (*step) {
    case STEP_ARG:
      two = take_ints(r, 2);
      return two ? (tt_lower_arg(l, (int)two[0], (int)two[1]), NULL) : damaged();
    case STEP_RESULT:
      two = take_ints(r, 2);
      return two ? tt_lower_result(l, (int)two[0], (int)two[1]) : damaged();
    case STEP_CONSTANT: {
      const int64_t* head = take_ints(r, 3);
      const int64_t* dims = head ? take_ints(r, head[1]) : NULL;
      const void* data = dims && head[2] >= 0 ? take(r, (size_t)head[2]) : NULL;
      if (!data || head[0] <= 0 || head[0] >= TT_DTYPE_COUNT || head[1] > TT_MAX_RANK) return damaged();
      int id;
      return tt_graph_constant(tt_lower_graph(l), (tt_dtype_t)head[0], (int)head[1], dims, data, &id);
    }
    case STEP_CALL: return run_call(l, r);
    default: return damaged();
  }
}

tt_status_t rt_script_run(const void* script, size_t len, tt_lower_t* l) {
  reader_t r = {script, len};
  tt_status_t status = tt_lower_graph(l) ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  while (!status && r.left) status = run_step(l, &r);
  tt_graph_destroy(l->graph);
  l->graph = NULL;
  return status ? status : tt_lower_finish(l);
}
