// Collectives: what replicas of one program give each other.
#include <string.h>

#include "hlo/ir.h"

const char* hlo_text_alias(hlo_builder_t* b, const char* text) {
  int n = 0;
  for (hlo_alias_t* a = b->aliases; a; a = a->next, n++)
    if (!strcmp(a->text, text)) return a->name;
  hlo_alias_t* a = hlo_alloc(b, sizeof *a);
  if (!a) return "";
  *a = (hlo_alias_t){.name = hlo_text(b, "#a%d", n), .text = text, .next = b->aliases};
  b->aliases = a;
  return a->name;
}

// dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, by name.
static const char* table(hlo_builder_t* b, int64_t n, int64_t size, const int64_t* ids) {
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_strbuf_puts(&s, "dense<[");
  for (int64_t i = 0; i < n; i++) {
    tt_strbuf_puts(&s, i ? ", [" : "[");
    for (int64_t j = 0; j < size; j++) tt_strbuf_printf(&s, j ? ", %lld" : "%lld", (long long)ids[i * size + j]);
    tt_strbuf_puts(&s, "]");
  }
  tt_strbuf_printf(&s, "]> : tensor<%lldx%lldxi64>", (long long)n, (long long)size);
  const char* text = hlo_text_or_fail(b, s.failed ? NULL : tt_arena_copy(&b->arena, s.data, s.len + 1));
  tt_strbuf_deinit(&s);
  return b->error ? "" : hlo_text_alias(b, text);
}

static bool check(hlo_builder_t* b, const char* who, hlo_t x, int dim, const hlo_groups_t* g) {
  if (!hlo_usable(b, who, 1, &x)) return false;
  if (!g || g->n < 1 || g->size < 1) {
    hlo_fail(b, TT_INTERNAL, "%s: no groups", who);
    return false;
  }
  if (dim >= 0 && dim < x->rank) return true;
  hlo_fail(b, TT_INVALID_ARGUMENT, "%s: no dim %d in %s", who, dim, hlo_text_shape(b, x));
  return false;
}

static const int64_t* with_dim(hlo_builder_t* b, hlo_t x, int dim, int64_t size) {
  int64_t* dims = hlo_alloc(b, ((size_t)x->rank + 1) * sizeof *dims);
  if (!dims) return x->dims;
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[dim] = size;
  return dims;
}

static bool divides(hlo_builder_t* b, const char* who, hlo_t x, int dim, int64_t n) {
  if (x->dims[dim] % n == 0) return true;
  hlo_fail(b, TT_INVALID_ARGUMENT, "%s: dim %d of %s cannot be divided among %lld", who, dim, hlo_text_shape(b, x),
           (long long)n);
  return false;
}

hlo_t hlo_replica_id(hlo_builder_t* b) {
  return hlo_op1(b, "stablehlo.replica_id", 0, NULL, NULL, TT_U32, 0, NULL);
}

hlo_t hlo_all_reduce(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, const hlo_groups_t* g) {
  if (!hlo_usable(b, "all_reduce", 1, &x)) return hlo_poison(b);
  if (x->rank && !check(b, "all_reduce", x, 0, g)) return hlo_poison(b);
  if (g->size == 1) return x;
  const char* attrs = hlo_text(b, "replica_groups = %s", table(b, g->n, g->size, g->ids));
  return hlo_op1_region(b, "stablehlo.all_reduce", 1, &x, attrs, hlo_reducer_region(b, reducer, x->dtype), x->dtype,
                        x->rank, x->dims);
}

hlo_t hlo_all_gather(hlo_builder_t* b, hlo_t x, int dim, const hlo_groups_t* g) {
  if (!check(b, "all_gather", x, dim, g)) return hlo_poison(b);
  if (g->size == 1) return x;
  const char* attrs =
      hlo_text(b, "all_gather_dim = %d : i64, replica_groups = %s", dim, table(b, g->n, g->size, g->ids));
  return hlo_op1(b, "stablehlo.all_gather", 1, &x, attrs, x->dtype, x->rank,
                 with_dim(b, x, dim, x->dims[dim] * g->size));
}

hlo_t hlo_reduce_scatter(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int dim, const hlo_groups_t* g) {
  if (!check(b, "reduce_scatter", x, dim, g) || !divides(b, "reduce_scatter", x, dim, g->size)) return hlo_poison(b);
  if (g->size == 1) return x;
  const char* attrs =
      hlo_text(b, "scatter_dimension = %d : i64, replica_groups = %s", dim, table(b, g->n, g->size, g->ids));
  return hlo_op1_region(b, "stablehlo.reduce_scatter", 1, &x, attrs, hlo_reducer_region(b, reducer, x->dtype),
                        x->dtype, x->rank, with_dim(b, x, dim, x->dims[dim] / g->size));
}

hlo_t hlo_all_to_all(hlo_builder_t* b, hlo_t x, int split_dim, int concat_dim, const hlo_groups_t* g) {
  if (!check(b, "all_to_all", x, split_dim, g) || !check(b, "all_to_all", x, concat_dim, g) ||
      !divides(b, "all_to_all", x, split_dim, g->size)) {
    return hlo_poison(b);
  }
  if (g->size == 1) return x;
  int64_t* dims = hlo_alloc(b, (size_t)x->rank * sizeof *dims);
  if (!dims) return hlo_poison(b);
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[split_dim] /= g->size;
  dims[concat_dim] *= g->size;
  const char* attrs = hlo_text(
      b, "split_dimension = %d : i64, concat_dimension = %d : i64, split_count = %lld : i64, replica_groups = %s",
      split_dim, concat_dim, (long long)g->size, table(b, g->n, g->size, g->ids));
  return hlo_op1(b, "stablehlo.all_to_all", 1, &x, attrs, x->dtype, x->rank, dims);
}

hlo_t hlo_collective_permute(hlo_builder_t* b, hlo_t x, int n, const int64_t* pairs) {
  if (!hlo_usable(b, "collective_permute", 1, &x)) return hlo_poison(b);
  const char* attrs = hlo_text(b, "source_target_pairs = %s", table(b, n, 2, pairs));
  return hlo_op1(b, "stablehlo.collective_permute", 1, &x, attrs, x->dtype, x->rank, x->dims);
}
