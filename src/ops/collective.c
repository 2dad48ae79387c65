// Functional collectives: what DTensor, FSDP and tensor parallelism dispatch to, as programs over replicas.
//
// Depends on: ops/op.h.
// Threads: as op.h.
// A group's name stands for its replicas (tt_group). Waiting is nothing: inside a program every value is there in time.
#include <string.h>

#include "ops/common.h"

// ---------------------------------------------------------------- reductions
static hlo_reducer_t reducer_of(tt_lower_t* l, int arg, bool* out_mean) {
  static const struct {
    const char* name;
    hlo_reducer_t reducer;
  } k_names[] = {{"sum", HLO_R_ADD}, {"avg", HLO_R_ADD},  {"max", HLO_R_MAX}, {"min", HLO_R_MIN}, {"product", HLO_R_MUL},
                 {"band", HLO_R_AND}, {"bor", HLO_R_OR}, {"bxor", HLO_R_XOR}};
  const char* name = tt_str(l, arg);
  *out_mean = name && !strcmp(name, "avg");
  for (size_t i = 0; name && i < sizeof k_names / sizeof k_names[0]; i++)
    if (!strcmp(name, k_names[i].name)) return k_names[i].reducer;
  hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "there is no reduction \"%s\"", name ? name : "");
  return HLO_R_ADD;
}

static hlo_t divided(hlo_builder_t* b, hlo_t x, int64_t n) {
  return hlo_divide(b, x, hlo_full_like(b, x, (double)n));
}

static hlo_t all_reduce(tt_lower_t* l, hlo_t x) {
  bool mean;
  hlo_reducer_t reducer = reducer_of(l, 1, &mean);
  const hlo_groups_t* g = tt_group(l, 2);
  hlo_t y = hlo_all_reduce(tt_b(l), x, reducer, g);
  return mean ? divided(tt_b(l), y, g->size) : y;
}

static hlo_t reduce_scatter(tt_lower_t* l, hlo_t x) {
  bool mean;
  hlo_reducer_t reducer = reducer_of(l, 1, &mean);
  const hlo_groups_t* g = tt_group(l, 3);
  hlo_t y = hlo_reduce_scatter(tt_b(l), x, reducer, 0, g);
  return mean ? divided(tt_b(l), y, g->size) : y;
}

static hlo_t all_gather(tt_lower_t* l, hlo_t x) { return hlo_all_gather(tt_b(l), x, 0, tt_group(l, 2)); }

// One tensor, or each of a list. Row data: what is done to one.
typedef hlo_t (*one_fn)(tt_lower_t* l, hlo_t x);
typedef struct how_t {
  one_fn one;
} how_t;

static void lower_each(tt_lower_t* l) {
  const how_t* how = tt_row(l)->data;
  if (tt_is_tensor(l, 0)) {
    tt_ret(l, 0, how->one(l, tt_in(l, 0)));
    return;
  }
  for (int i = 0; i < tt_list_len(l, 0); i++) tt_ret(l, i, how->one(l, tt_in_list(l, 0, i)));
}

// ---------------------------------------------------------------- exchanges
static bool all_equal(int n, const int64_t* sizes) {
  for (int i = 1; i < n; i++)
    if (sizes[i] != sizes[0]) return false;
  return true;
}

static void lower_all_to_all(tt_lower_t* l) {
  int n_out, n_in;
  const int64_t *out = tt_ints(l, 1, &n_out), *in = tt_ints(l, 2, &n_in);
  if (!all_equal(n_out, out) || !all_equal(n_in, in)) {
    hlo_fail(tt_b(l), TT_UNIMPLEMENTED,
             "all_to_all_single with pieces of different sizes: a program's sizes are the same for every replica");
  }
  tt_ret(l, 0, hlo_all_to_all(tt_b(l), tt_in(l, 0), 0, 0, tt_group(l, 3)));
}

static void lower_shard_dim(tt_lower_t* l) {
  hlo_t x = tt_in(l, 0);
  int gather = hlo_dim(tt_b(l), tt_int(l, 1), x->rank), shard = hlo_dim(tt_b(l), tt_int(l, 2), x->rank);
  tt_ret(l, 0, hlo_all_to_all(tt_b(l), x, shard, gather, tt_group(l, 3)));
}

// The replica's place in its group, 0-d i64.
static hlo_t place_in_group(hlo_builder_t* b, const hlo_groups_t* g) {
  int64_t n = g->n * g->size;
  int64_t* places = tt_arena_alloc(hlo_builder_arena(b), (size_t)n * sizeof *places);
  if (!places) return hlo_fail(b, TT_RESOURCE_EXHAUSTED, "host memory is exhausted while lowering");
  memset(places, 0, (size_t)n * sizeof *places);
  for (int64_t i = 0; i < n; i++)
    if (g->ids[i] >= 0 && g->ids[i] < n) places[g->ids[i]] = i % g->size;
  hlo_t start = hlo_convert(b, hlo_replica_id(b), TT_I32);
  const int64_t one = 1;
  return hlo_reshape(b, hlo_dynamic_slice(b, hlo_array(b, TT_I64, 1, &n, places), &start, &one), 0, NULL);
}

static tt_dtype_t bits_of(tt_dtype_t d) {
  switch (tt_dtype_size(d)) {
    case 1: return TT_U8;
    case 2: return TT_U16;
    case 4: return TT_U32;
    default: return TT_U64;
  }
}

// The sum of the source's bits and the others' zeros.
static void lower_broadcast(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  const hlo_groups_t* g = tt_group(l, 2);
  if (tt_is_complex(x->dtype)) {
    hlo_fail(b, TT_UNIMPLEMENTED, "broadcast of complex numbers to replicas");
    return;
  }
  tt_dtype_t bits = bits_of(x->dtype);
  hlo_t y = x->dtype == TT_BOOL ? hlo_convert(b, x, bits) : hlo_bitcast(b, x, bits);
  hlo_t mine = hlo_compare(b, HLO_EQ, place_in_group(b, g), hlo_scalar_int(b, TT_I64, tt_int(l, 1)));
  y = hlo_all_reduce(b, hlo_select(b, mine, y, hlo_zeros_like(b, y)), HLO_R_ADD, g);
  tt_ret(l, 0, x->dtype == TT_BOOL ? hlo_convert(b, y, TT_BOOL) : hlo_bitcast(b, y, x->dtype));
}

static void lower_same(tt_lower_t* l) { tt_ret(l, 0, tt_in(l, 0)); }

// ---------------------------------------------------------------- what differs from replica to replica
// replica_index(base, strides, sizes, steps): base + sum of steps[d] * coordinate d, where the replica's coordinate d is
// (replica id / strides[d]) % sizes[d].
static void lower_replica_index(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  int n, n_sizes, n_steps;
  const int64_t *strides = tt_ints(l, 1, &n), *sizes = tt_ints(l, 2, &n_sizes), *steps = tt_ints(l, 3, &n_steps);
  if (n != n_sizes || n != n_steps) {
    hlo_fail(b, TT_INVALID_ARGUMENT, "replica_index: %d strides, %d sizes, %d steps", n, n_sizes, n_steps);
    return;
  }
  hlo_t id = hlo_convert(b, hlo_replica_id(b), TT_I32), sum = hlo_scalar_int(b, TT_I64, tt_int(l, 0));
  for (int d = 0; d < n; d++) {
    if (!steps[d]) continue;
    hlo_t at = hlo_remainder(b, hlo_divide(b, id, hlo_scalar_int(b, TT_I32, strides[d])),
                             hlo_scalar_int(b, TT_I32, sizes[d]));
    sum = hlo_add(b, sum, hlo_multiply(b, hlo_convert(b, at, TT_I64), hlo_scalar_int(b, TT_I64, steps[d])));
  }
  tt_ret(l, 0, sum);
}

// narrow_at(x, dim, start, length), start a 0-d tensor.
static void lower_narrow_at(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  int dim = hlo_dim(b, tt_int(l, 1), x->rank);
  tt_ret(l, 0, hlo_slice_at(b, x, dim, hlo_convert(b, tt_in(l, 2), TT_I64), tt_int(l, 3)));
}

static void lower_after(tt_lower_t* l) { tt_ret(l, 0, hlo_after(tt_b(l), tt_in(l, 0), tt_in(l, 1))); }

// ---------------------------------------------------------------- rows
#define EACH(text, fn) {.name = "_c10d_functional::" text, .lower = lower_each, .data = &(const how_t){fn}}
static const tt_op_row_t k_rows[] = {
    EACH("all_reduce", all_reduce),
    EACH("all_reduce_coalesced", all_reduce),
    EACH("all_gather_into_tensor", all_gather),
    EACH("all_gather_into_tensor_coalesced", all_gather),
    EACH("reduce_scatter_tensor", reduce_scatter),
    EACH("reduce_scatter_tensor_coalesced", reduce_scatter),
    {.name = "_c10d_functional::all_to_all_single", .lower = lower_all_to_all},
    {.name = "_c10d_functional::broadcast", .lower = lower_broadcast},
    {.name = "_c10d_functional::wait_tensor", .lower = lower_same},
    {.name = "_dtensor::shard_dim_alltoall", .lower = lower_shard_dim},
    {.name = "tpu::replica_index", .lower = lower_replica_index},
    {.name = "tpu::narrow_at", .lower = lower_narrow_at},
    {.name = "tpu::after", .lower = lower_after},
};
TT_OP_FAMILY(collective, k_rows)
