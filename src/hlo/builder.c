// The builder's core: errors that stick, op nodes, arguments, regions, attribute text.
#include "hlo/ir.h"

#include <string.h>

#include "base/alloc.h"

// Rank-0 values point here: a caller that indexes the dims of a stand-in after a failure reads ones, not wild memory.
static const int64_t k_ones[HLO_MAX_RANK] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// ---------------------------------------------------------------- life, errors
hlo_builder_t* hlo_builder_create(void) {
  hlo_builder_t* b = tt_calloc(1, sizeof *b);
  if (!b) return NULL;
  tt_arena_init(&b->arena);
  tt_map_init(&b->constants);
  b->current = &b->root;
  b->poison.value.dtype = TT_F32;
  b->poison.value.dims = k_ones;
  b->poison.region = &b->root;
  b->poison_region.parent = &b->root;
  b->precision = HLO_PRECISION_HIGHEST;
  return b;
}

void hlo_builder_destroy(hlo_builder_t* b) {
  if (!b) return;
  tt_status_free(b->error);
  tt_map_deinit(&b->constants);
  tt_arena_deinit(&b->arena);
  tt_free(b);
}

tt_arena_t* hlo_builder_arena(hlo_builder_t* b) { return &b->arena; }

hlo_t hlo_fail(hlo_builder_t* b, tt_code_t code, const char* format, ...) {
  if (!b->error) {
    va_list args;
    va_start(args, format);
    b->error = tt_status_vmake(code, __FILE__, __LINE__, format, args);
    va_end(args);
  }
  return hlo_poison(b);
}

bool hlo_failed(const hlo_builder_t* b) { return b->error != NULL; }
tt_status_t hlo_builder_error(hlo_builder_t* b) { return tt_status_clone(b->error); }

bool hlo_is_light(const hlo_builder_t* b) {
  static const char* const k_heavy[] = {
      "dot_general", "convolution", "cholesky", "triangular_solve", "fft", "sort", "while", "if", "case", "custom_call", "gather",
      "scatter", "select_and_scatter", "reduce_window", "rng_bit_generator", "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
      "collective_permute", "top_k"};
  for (const hlo_op_t* op = b->root.first; op; op = op->next) {
    const char* dot = strchr(op->name, '.');
    for (size_t i = 0; dot && i < sizeof k_heavy / sizeof k_heavy[0]; i++)
      if (!strcmp(dot + 1, k_heavy[i])) return false;
  }
  return true;
}

void hlo_set_precision(hlo_builder_t* b, hlo_precision_t precision) { b->precision = precision; }

static void put_quoted(tt_strbuf_t* s, const char* text) {
  tt_strbuf_puts(s, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < 0x20 || c == '"' || c == '\\') tt_strbuf_printf(s, "\\%02X", c);
    else tt_strbuf_append(s, text, 1);
  }
  tt_strbuf_puts(s, "\"");
}

void hlo_set_where(hlo_builder_t* b, const char* name, const char* file, int line) {
  b->where = NULL;
  if (!name) return;
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  put_quoted(&s, name);
  if (file) {
    tt_strbuf_puts(&s, "(");
    put_quoted(&s, file);
    tt_strbuf_printf(&s, ":%d:1)", line);
  }
  char* kept = s.failed ? NULL : hlo_alloc(b, s.len + 1);
  if (kept) memcpy(kept, s.data, s.len + 1);
  b->where = kept;
  tt_strbuf_deinit(&s);
}

void* hlo_alloc(hlo_builder_t* b, size_t size_bytes) {
  void* p = tt_arena_alloc(&b->arena, size_bytes ? size_bytes : 1);
  if (!p) hlo_fail(b, TT_RESOURCE_EXHAUSTED, "out of host memory while building a program");
  return p;
}

const int64_t* hlo_copy_ints(hlo_builder_t* b, int n, const int64_t* v) {
  if (n <= 0) return k_ones;
  int64_t* copy = hlo_alloc(b, (size_t)n * sizeof *v);
  if (copy) memcpy(copy, v, (size_t)n * sizeof *v);
  return copy;
}

bool hlo_usable(hlo_builder_t* b, const char* who, int n, const hlo_t* values) {
  if (b->error) return false;
  for (int i = 0; i < n; i++) {
    if (values[i]) continue;
    hlo_fail(b, TT_INTERNAL, "%s: operand %d is missing", who, i);
    return false;
  }
  return true;
}

void hlo_poison_all(hlo_builder_t* b, int n, hlo_t* out) {
  for (int i = 0; i < n; i++) out[i] = hlo_poison(b);
}

// ---------------------------------------------------------------- dims
bool hlo_dims_equal(int rank_a, const int64_t* a, int rank_b, const int64_t* c) {
  return rank_a == rank_b && (rank_a == 0 || memcmp(a, c, (size_t)rank_a * sizeof *a) == 0);
}

bool hlo_same_dims(hlo_t x, hlo_t y) { return hlo_dims_equal(x->rank, x->dims, y->rank, y->dims); }

int hlo_dim(hlo_builder_t* b, int64_t dim, int rank) {
  int64_t n = rank > 0 ? rank : 1;
  if (dim < -n || dim >= n) {
    hlo_fail(b, TT_OUT_OF_RANGE, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
             (long long)-n, (long long)(n - 1), (long long)dim);
    return 0;
  }
  return (int)(dim < 0 ? dim + n : dim);
}

bool hlo_check_dims(hlo_builder_t* b, const char* who, int rank, const int64_t* dims) {
  if (rank < 0 || rank > HLO_MAX_RANK) {
    hlo_fail(b, TT_UNIMPLEMENTED, "%s: rank %d is not supported (at most %d)", who, rank, HLO_MAX_RANK);
    return false;
  }
  for (int i = 0; i < rank; i++) {
    if (dims[i] >= 0) continue;
    hlo_fail(b, TT_INVALID_ARGUMENT, "%s: dimension %d has negative size %lld", who, i, (long long)dims[i]);
    return false;
  }
  return true;
}

bool hlo_dim_set(hlo_builder_t* b, const char* who, int n, const int64_t* dims, int rank, bool* set) {
  memset(set, 0, HLO_MAX_RANK * sizeof *set);
  for (int i = 0; i < n; i++) {
    int d = hlo_dim(b, dims[i], rank);
    if (b->error) return false;
    if (set[d]) {
      hlo_fail(b, TT_INVALID_ARGUMENT, "%s: dim %d appears multiple times in the list of dims", who, d);
      return false;
    }
    set[d] = true;
  }
  return true;
}

// ---------------------------------------------------------------- values and ops
static bool set_type(hlo_builder_t* b, hlo_value_t* v, hlo_type_t type, const char* who) {
  if (type.dtype <= TT_DT_NONE || type.dtype >= TT_DTYPE_COUNT) {
    hlo_fail(b, TT_INTERNAL, "%s: a value without a dtype", who);
    return false;
  }
  if (!hlo_check_dims(b, who, type.rank, type.dims)) return false;
  v->dtype = type.dtype;
  v->rank = type.rank;
  v->dims = hlo_copy_ints(b, type.rank, type.dims);
  return v->dims != NULL;
}

static hlo_region_t* region_of(hlo_t v) { return v->op ? v->op->parent : ((const hlo_arg_t*)v)->region; }

// |inner| is |outer| or lies in it.
static bool region_within(const hlo_region_t* inner, const hlo_region_t* outer) {
  while (inner && inner != outer) inner = inner->parent;
  return inner != NULL;
}

static void link_op(hlo_region_t* region, hlo_op_t* op, hlo_op_t* after) {
  op->parent = region;
  op->prev = after;
  op->next = after ? after->next : region->first;
  if (op->next) op->next->prev = op;
  else region->last = op;
  if (after) after->next = op;
  else region->first = op;
}

static hlo_op_t* new_op(hlo_builder_t* b, const char* name, int n_in, const hlo_t* in, int n_regions, int n_out) {
  hlo_op_t* op = hlo_alloc(b, sizeof *op);
  if (!op) return NULL;
  op->name = name;
  op->where = b->where;
  op->n_operands = n_in;
  op->n_regions = n_regions;
  op->n_results = n_out;
  op->operands = hlo_alloc(b, (size_t)n_in * sizeof *op->operands);
  op->regions = hlo_alloc(b, (size_t)n_regions * sizeof *op->regions);
  op->results = hlo_alloc(b, (size_t)n_out * sizeof *op->results);
  if (!op->operands || !op->regions || !op->results) return NULL;
  if (n_in) memcpy(op->operands, in, (size_t)n_in * sizeof *in);
  return op;
}

hlo_op_t* hlo_op(hlo_builder_t* b, const char* name, int n_in, const hlo_t* in, const char* attrs, int n_regions,
                 hlo_region_t* const* regions, int n_out, const hlo_type_t* types) {
  if (!hlo_usable(b, name, n_in, in)) return NULL;
  for (int i = 0; i < n_in; i++) {
    if (region_within(b->current, region_of(in[i]))) continue;
    hlo_fail(b, TT_INTERNAL, "%s: operand %d belongs to a region that is closed", name, i);
    return NULL;
  }
  hlo_op_t* op = new_op(b, name, n_in, in, n_regions, n_out);
  if (!op) return NULL;
  op->attrs = attrs;
  if (n_regions) memcpy(op->regions, regions, (size_t)n_regions * sizeof *regions);
  for (int i = 0; i < n_out; i++) {
    op->results[i].op = op;
    op->results[i].index = i;
    if (!set_type(b, &op->results[i], types[i], name)) return NULL;
  }
  link_op(b->current, op, b->current->last);
  return op;
}

hlo_t hlo_op1(hlo_builder_t* b, const char* name, int n_in, const hlo_t* in, const char* attrs, tt_dtype_t dtype,
              int rank, const int64_t* dims) {
  hlo_type_t type = {dtype, rank, dims};
  hlo_op_t* op = hlo_op(b, name, n_in, in, attrs, 0, NULL, 1, &type);
  return op ? &op->results[0] : hlo_poison(b);
}

hlo_t hlo_op1_region(hlo_builder_t* b, const char* name, int n_in, const hlo_t* in, const char* attrs,
                     hlo_region_t* region, tt_dtype_t dtype, int rank, const int64_t* dims) {
  hlo_type_t type = {dtype, rank, dims};
  hlo_op_t* op = hlo_op(b, name, n_in, in, attrs, 1, &region, 1, &type);
  return op ? &op->results[0] : hlo_poison(b);
}

void hlo_op_results(hlo_builder_t* b, const hlo_op_t* op, int n, hlo_t* out) {
  for (int i = 0; i < n; i++) out[i] = op ? &op->results[i] : hlo_poison(b);
}

hlo_t hlo_splat_source(hlo_t v) {
  if (hlo_kind(v) != HLO_KIND_BROADCAST || v->op->operands[0]->rank != 0) return NULL;
  return v->op->operands[0];
}

static hlo_t add_arg(hlo_builder_t* b, hlo_region_t* region, hlo_type_t type, const char* who) {
  hlo_arg_t* arg = hlo_alloc(b, sizeof *arg);
  if (!arg || !set_type(b, &arg->value, type, who)) return hlo_poison(b);
  arg->region = region;
  arg->value.index = region->n_args++;
  if (region->last_arg) region->last_arg->next = arg;
  else region->first_arg = arg;
  region->last_arg = arg;
  return &arg->value;
}

hlo_t hlo_param(hlo_builder_t* b, tt_dtype_t dtype, int rank, const int64_t* dims) {
  if (b->error) return hlo_poison(b);
  return add_arg(b, &b->root, (hlo_type_t){dtype, rank, dims}, "parameter");
}

int hlo_param_count(const hlo_builder_t* b) { return b->root.n_args; }

// ---------------------------------------------------------------- regions
hlo_region_t* hlo_region_begin(hlo_builder_t* b) {
  if (b->error) return &b->poison_region;
  hlo_region_t* region = hlo_alloc(b, sizeof *region);
  if (!region) return &b->poison_region;
  region->parent = b->current;
  b->current = region;
  return region;
}

hlo_t hlo_region_arg(hlo_builder_t* b, hlo_region_t* region, tt_dtype_t dtype, int rank, const int64_t* dims) {
  if (b->error) return hlo_poison(b);
  return add_arg(b, region, (hlo_type_t){dtype, rank, dims}, "region argument");
}

void hlo_region_end(hlo_builder_t* b, hlo_region_t* region, int n, const hlo_t* results) {
  if (region == &b->poison_region) return;
  if (region != b->current || region == &b->root) {
    hlo_fail(b, TT_INTERNAL, "regions must be ended in the reverse order of their beginnings");
    return;
  }
  b->current = region->parent;
  region->ended = true;
  if (!hlo_usable(b, "region result", n, results)) return;
  for (int i = 0; i < n; i++) {
    if (region_within(region, region_of(results[i]))) continue;
    hlo_fail(b, TT_INTERNAL, "region result %d belongs to a region that is closed", i);
    return;
  }
  region->results = hlo_alloc(b, (size_t)n * sizeof *results);
  if (!region->results) return;
  if (n) memcpy(region->results, results, (size_t)n * sizeof *results);
  region->n_results = n;
}

// A copy of |v|, an outer value computed from constants alone, at the head of |region|. NULL when it is not one.
static hlo_t adopt(hlo_builder_t* b, hlo_region_t* region, hlo_t v) {
  if (region_within(region_of(v), region)) return v;
  for (hlo_adopted_t* a = region->adopted; a; a = a->next) {
    if (a->outer == v) return a->inner;
  }
  const hlo_op_t* from = v->op;
  if (!from || from->n_regions) return NULL;
  hlo_op_t* op = new_op(b, from->name, from->n_operands, from->operands, 0, from->n_results);
  hlo_adopted_t* entry = hlo_alloc(b, sizeof *entry);
  if (!op || !entry) return NULL;
  for (int i = 0; i < op->n_operands; i++) {
    op->operands[i] = adopt(b, region, from->operands[i]);
    if (!op->operands[i]) return NULL;
  }
  op->attrs = from->attrs;
  op->kind = from->kind;
  op->ints = from->ints;
  for (int i = 0; i < op->n_results; i++) {
    op->results[i] = from->results[i];
    op->results[i].op = op;
  }
  link_op(region, op, region->last_adopted);
  region->last_adopted = op;
  *entry = (hlo_adopted_t){v, &op->results[v->index], region->adopted};
  region->adopted = entry;
  return entry->inner;
}

static bool adopt_all(hlo_builder_t* b, const char* who, hlo_region_t* region, bool strict, int n, hlo_t* values) {
  for (int i = 0; i < n; i++) {
    // A body that may capture still gets its own constants: XLA then sees them as constants, not as loop state.
    if (!strict && hlo_kind(values[i]) != HLO_KIND_CONSTANT) continue;
    hlo_t v = adopt(b, region, values[i]);
    if (!v) {
      hlo_fail(b, TT_INTERNAL, "%s: its region uses a value from outside, which only while and if may do", who);
      return false;
    }
    values[i] = v;
  }
  return true;
}

static bool adopt_into(hlo_builder_t* b, const char* who, hlo_region_t* top, bool strict, hlo_region_t* region) {
  for (hlo_op_t* op = region->first; op; op = op->next) {
    if (!adopt_all(b, who, top, strict, op->n_operands, op->operands)) return false;
    for (int i = 0; i < op->n_regions; i++) {
      if (!adopt_into(b, who, top, strict, op->regions[i])) return false;
    }
  }
  return adopt_all(b, who, top, strict, region->n_results, region->results);
}

static bool same_type(hlo_t v, hlo_type_t type) {
  return v->dtype == type.dtype && hlo_dims_equal(v->rank, v->dims, type.rank, type.dims);
}

bool hlo_region_seal(hlo_builder_t* b, const char* who, hlo_region_t* region, bool strict, int n_args,
                     const hlo_type_t* args, int n_results, const hlo_type_t* results) {
  if (b->error) return false;
  if (!region || !region->ended || region->n_args != n_args || region->n_results != n_results) {
    hlo_fail(b, TT_INTERNAL, "%s: its region must be ended with %d arguments and %d results", who, n_args, n_results);
    return false;
  }
  int i = 0;
  for (hlo_arg_t* arg = region->first_arg; arg; arg = arg->next, i++) {
    if (same_type(&arg->value, args[i])) continue;
    hlo_fail(b, TT_INTERNAL, "%s: region argument %d is %s, not %s%s", who, i, hlo_text_shape(b, &arg->value),
             tt_dtype_name(args[i].dtype), hlo_text_dims(b, args[i].rank, args[i].dims));
    return false;
  }
  for (i = 0; i < n_results; i++) {
    if (same_type(region->results[i], results[i])) continue;
    hlo_fail(b, TT_INTERNAL, "%s: region result %d is %s, not %s%s", who, i, hlo_text_shape(b, region->results[i]),
             tt_dtype_name(results[i].dtype), hlo_text_dims(b, results[i].rank, results[i].dims));
    return false;
  }
  return adopt_into(b, who, region, strict, region);
}

bool hlo_seal_combiner(hlo_builder_t* b, const char* who, hlo_region_t* region, int n, const hlo_t* xs) {
  hlo_type_t* types = hlo_alloc(b, (size_t)n * 2 * sizeof *types);
  if (!types) return false;
  for (int i = 0; i < n; i++) types[i] = types[n + i] = (hlo_type_t){xs[i]->dtype, 0, k_ones};
  return hlo_region_seal(b, who, region, true, 2 * n, types, n, types);
}

hlo_t hlo_combine(hlo_builder_t* b, hlo_reducer_t reducer, hlo_t a, hlo_t x) {
  static const hlo_binary_t k_binary[] = {[HLO_R_ADD] = HLO_add,     [HLO_R_MUL] = HLO_multiply,
                                          [HLO_R_MAX] = HLO_maximum, [HLO_R_MIN] = HLO_minimum,
                                          [HLO_R_AND] = HLO_and_,    [HLO_R_OR] = HLO_or_,
                                          [HLO_R_XOR] = HLO_xor_};
  return reducer == HLO_R_ASSIGN ? x : hlo_binary(b, k_binary[reducer], a, x);
}

hlo_region_t* hlo_reducer_region(hlo_builder_t* b, hlo_reducer_t reducer, tt_dtype_t dtype) {
  hlo_region_t* region = hlo_region_begin(b);
  hlo_t a = hlo_region_arg(b, region, dtype, 0, NULL);
  hlo_t x = hlo_region_arg(b, region, dtype, 0, NULL);
  hlo_t r = hlo_combine(b, reducer, a, x);
  hlo_region_end(b, region, 1, &r);
  return region;
}

// ---------------------------------------------------------------- attribute text
const char* hlo_text_or_fail(hlo_builder_t* b, const char* text) {
  if (text) return text;
  hlo_fail(b, TT_RESOURCE_EXHAUSTED, "out of host memory while building a program");
  return "";
}

static const char* finish_text(hlo_builder_t* b, tt_strbuf_t* s) {
  const char* text = s->failed ? NULL : tt_arena_copy(&b->arena, s->data ? s->data : "", s->len + 1);
  tt_strbuf_deinit(s);
  return hlo_text_or_fail(b, text);
}

static const char* join(hlo_builder_t* b, const char* open, const char* sep, const char* close, int n,
                        const int64_t* v) {
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_strbuf_puts(&s, open);
  for (int i = 0; i < n; i++) tt_strbuf_printf(&s, "%s%lld", i ? sep : "", (long long)v[i]);
  tt_strbuf_puts(&s, close);
  return finish_text(b, &s);
}

const char* hlo_text_array(hlo_builder_t* b, int n, const int64_t* v) {
  return n ? join(b, "array<i64: ", ", ", ">", n, v) : "array<i64>";
}

const char* hlo_text_list(hlo_builder_t* b, int n, const int64_t* v) { return join(b, "[", ", ", "]", n, v); }
const char* hlo_text_dims(hlo_builder_t* b, int rank, const int64_t* dims) {
  return join(b, "[", ",", "]", rank, dims);
}

const char* hlo_text_shape(hlo_builder_t* b, hlo_t v) {
  return hlo_text(b, "%s%s", tt_dtype_name(v->dtype), hlo_text_dims(b, v->rank, v->dims));
}

const char* hlo_text_pairs(hlo_builder_t* b, int n, const int64_t* lo, const int64_t* hi) {
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_strbuf_puts(&s, n ? "dense<[" : "dense<");
  for (int i = 0; i < n; i++) {
    tt_strbuf_printf(&s, "%s[%lld, %lld]", i ? ", " : "", lo ? (long long)lo[i] : 0, hi ? (long long)hi[i] : 0);
  }
  tt_strbuf_printf(&s, "%s : tensor<%dx2xi64>", n ? "]>" : ">", n);
  return finish_text(b, &s);
}

const char* hlo_text_precision(hlo_builder_t* b) {
  static const char* const k_names[] = {"DEFAULT", "HIGH", "HIGHEST"};
  const char* p = k_names[b->precision];
  return hlo_text(b, "precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]", p, p);
}
