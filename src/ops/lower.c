#include "ops/lower.h"

#include <string.h>

// ---------------------------------------------------------------- emission
void tt_emit_init(tt_emit_t* e, hlo_builder_t* b, uint32_t caps) {
  memset(e, 0, sizeof *e);
  e->b = b;
  e->caps = caps;
}

// Doubles an arena array of |n| used elements when full. False (and a recorded failure) when memory is out.
static bool arena_grow(hlo_builder_t* b, void** items, int n, int* cap, size_t size) {
  if (n < *cap) return true;
  int bigger = *cap ? *cap * 2 : 8;
  void* p = tt_arena_alloc(hlo_builder_arena(b), (size_t)bigger * size);
  if (!p) {
    hlo_fail(b, TT_RESOURCE_EXHAUSTED, "host memory is exhausted while lowering");
    return false;
  }
  if (n) memcpy(p, *items, (size_t)n * size);
  *items = p;
  *cap = bigger;
  return true;
}

hlo_t tt_emit_operand(tt_emit_t* e, tt_operand_t operand, tt_dtype_t dtype, int rank, const int64_t* dims) {
  for (int i = 0; i < e->n_operands; i++) {
    const tt_operand_t* o = &e->operands[i];
    if (o->kind == operand.kind && o->dtype == operand.dtype && o->arg == operand.arg && o->index == operand.index &&
        o->elem == operand.elem)
      return e->params[i];
  }
  int cap = e->cap_operands;
  void *operands = e->operands, *params = e->params;
  if (!arena_grow(e->b, &params, e->n_operands, &cap, sizeof *e->params)) return hlo_scalar(e->b, TT_F32, 0);
  cap = e->cap_operands;
  if (!arena_grow(e->b, &operands, e->n_operands, &cap, sizeof *e->operands)) return hlo_scalar(e->b, TT_F32, 0);
  e->operands = operands;
  e->params = params;
  e->cap_operands = cap;
  hlo_t v = hlo_param(e->b, dtype, rank, dims);
  e->operands[e->n_operands] = operand;
  e->params[e->n_operands++] = v;
  return v;
}

bool tt_emit_group(tt_emit_t* e, const char* name, int64_t n, int64_t size, const int64_t* ids) {
  tt_arena_t* arena = hlo_builder_arena(e->b);
  tt_group_t* g = tt_arena_alloc(arena, sizeof *g);
  char* text = tt_arena_copy(arena, name, strlen(name) + 1);
  int64_t* copy = tt_arena_copy(arena, ids, (size_t)(n * size) * sizeof *ids);
  if (!g || !text || !copy) return false;
  *g = (tt_group_t){text, {n, size, copy}, e->groups};
  e->groups = g;
  return true;
}

hlo_t tt_emit_check_value(tt_emit_t* e) {
  if (!e->n_checks) return NULL;
  hlo_builder_t* b = e->b;
  hlo_t number = hlo_scalar_int(b, TT_I64, 0), value = number;
  for (int i = e->n_checks - 1; i >= 0; i--) {  // the first failing check wins
    const tt_check_t* c = &e->checks[i];
    number = hlo_select(b, c->bad, hlo_scalar_int(b, TT_I64, i + 1), number);
    value = hlo_select(b, c->bad, c->value, value);
  }
  const int64_t one = 1;
  hlo_t parts[2] = {hlo_reshape(b, number, 1, &one), hlo_reshape(b, value, 1, &one)};
  return hlo_concat(b, 2, parts, 0);
}

// ---------------------------------------------------------------- arguments
hlo_builder_t* tt_b(tt_lower_t* l) { return l->e->b; }
const tt_op_row_t* tt_row(tt_lower_t* l) { return l->row; }
int tt_nargs(tt_lower_t* l) { return l->n_args; }
uint32_t tt_caps(tt_lower_t* l) { return l->e->caps; }

static tt_larg_t* arg(tt_lower_t* l, int i) {
  static tt_larg_t none;
  if (i >= 0 && i < l->n_args) return &l->args[i];
  hlo_fail(l->e->b, TT_INTERNAL, "%s: lowering asks for argument %d of %d", l->name, i, l->n_args);
  return &none;
}

bool tt_has(tt_lower_t* l, int i) {
  if (i >= l->n_args) return false;
  const tt_larg_t* a = arg(l, i);
  if (a->v.kind == TT_V_TENSOR || a->v.kind == TT_V_NODE) return a->tensors && a->tensors[0];
  return a->v.kind != TT_V_NONE;
}

bool tt_is_tensor(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  return (a->v.kind == TT_V_TENSOR || a->v.kind == TT_V_NODE) && a->tensors && a->tensors[0];
}

hlo_t tt_in_or_null(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  return (a->v.kind == TT_V_TENSOR || a->v.kind == TT_V_NODE) && a->tensors ? a->tensors[0] : NULL;
}

hlo_t tt_in(tt_lower_t* l, int i) {
  hlo_t v = tt_in_or_null(l, i);
  return v ? v : hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d is not a tensor", l->name, i);
}

int tt_list_len(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  switch (a->v.kind) {
    case TT_V_TENSORS: case TT_V_NODES: return a->n;
    case TT_V_INTS: case TT_V_FLOATS: case TT_V_BOOLS: case TT_V_SCALARS: return a->v.n;
    default: return 0;
  }
}

hlo_t tt_in_list(tt_lower_t* l, int i, int j) {
  const tt_larg_t* a = arg(l, i);
  if ((a->v.kind == TT_V_TENSORS || a->v.kind == TT_V_NODES) && j >= 0 && j < a->n) return a->tensors[j];
  return hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d has no tensor %d", l->name, i, j);
}

int64_t tt_int(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  if (a->runtime) {
    hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d is a run-time operand; its value is not known here", l->name, i);
    return 0;
  }
  switch (a->v.kind) {
    case TT_V_INT: case TT_V_BOOL: case TT_V_DTYPE: return a->v.u.i;
    case TT_V_FLOAT: return (int64_t)a->v.u.f;
    default:
      hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d is not an int", l->name, i);
      return 0;
  }
}

int64_t tt_int_or(tt_lower_t* l, int i, int64_t when_none) {
  return i >= l->n_args || arg(l, i)->v.kind == TT_V_NONE ? when_none : tt_int(l, i);
}

bool tt_bool(tt_lower_t* l, int i) { return tt_int_or(l, i, 0) != 0; }

static double value_re(const tt_value_t* v) {
  return v->kind == TT_V_FLOAT || v->kind == TT_V_COMPLEX ? v->u.f : (double)v->u.i;
}

double tt_f64(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  if (a->runtime || a->v.kind == TT_V_NONE) {
    hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d has no value the lowering may read (is it in `fixed`?)", l->name, i);
    return 0;
  }
  return value_re(&a->v);
}

const int64_t* tt_ints(tt_lower_t* l, int i, int* out_n) {
  const tt_larg_t* a = i < l->n_args ? arg(l, i) : NULL;
  *out_n = 0;
  if (!a || a->v.kind == TT_V_NONE) return NULL;
  if (a->v.kind == TT_V_INT) {  // int[1] given as an int
    *out_n = 1;
    return &a->v.u.i;
  }
  if (a->v.kind == TT_V_BOOLS && !a->runtime && a->v.n > 0) {
    int64_t* bits = tt_arena_alloc(hlo_builder_arena(l->e->b), (size_t)a->v.n * sizeof *bits);
    for (int k = 0; bits && k < a->v.n; k++) bits[k] = a->v.u.bools[k];
    *out_n = bits ? a->v.n : 0;
    return bits;
  }
  if (a->v.kind != TT_V_INTS || a->runtime) {
    hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d is not a readable int list", l->name, i);
    return NULL;
  }
  *out_n = a->v.n;
  return a->v.u.ints;
}

const hlo_groups_t* tt_group(tt_lower_t* l, int i) {
  static const int64_t zero = 0;
  static const hlo_groups_t alone = {1, 1, &zero};
  const char* name = tt_str(l, i);
  for (const tt_group_t* g = l->e->groups; g && name; g = g->next)
    if (!strcmp(g->name, name)) return &g->groups;
  hlo_fail(l->e->b, TT_INVALID_ARGUMENT, "%s: there is no process group \"%s\" in this program", l->name, name ? name : "");
  return &alone;
}

const char* tt_str(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  return a->v.kind == TT_V_STRING ? a->v.u.string : NULL;
}

tt_dtype_t tt_dtype_arg(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  return a->v.kind == TT_V_DTYPE || a->v.kind == TT_V_INT ? (tt_dtype_t)a->v.u.i : TT_DT_NONE;
}

static tt_dtype_t value_dtype(const tt_value_t* v) {
  switch (v->kind) {
    case TT_V_BOOL: return TT_BOOL;
    case TT_V_INT: return TT_I64;
    case TT_V_COMPLEX: return TT_C128;
    default: return TT_F64;
  }
}

tt_dtype_t tt_scalar_dtype(tt_lower_t* l, int i) { return value_dtype(&arg(l, i)->v); }
bool tt_scalar_is_one(tt_lower_t* l, int i) {
  const tt_larg_t* a = arg(l, i);
  return a->is_one || (!a->runtime && a->v.kind != TT_V_NONE && a->v.kind != TT_V_COMPLEX && value_re(&a->v) == 1);
}

static hlo_t constant(tt_lower_t* l, const tt_value_t* v, tt_dtype_t dtype) {
  hlo_builder_t* b = l->e->b;
  if (v->kind == TT_V_COMPLEX || tt_is_complex(dtype)) {
    double im = v->kind == TT_V_COMPLEX ? v->im : 0;
    if (tt_is_complex(dtype)) return hlo_scalar_complex(b, dtype, value_re(v), im);
    return hlo_scalar(b, dtype, value_re(v));
  }
  if (v->kind != TT_V_FLOAT && tt_is_int(dtype)) return hlo_scalar_int(b, dtype, v->u.i);
  if (tt_is_int(dtype)) return hlo_scalar_int(b, dtype, (int64_t)v->u.f);
  return hlo_scalar(b, dtype, value_re(v));
}

static hlo_t scalar_operand(tt_lower_t* l, const tt_larg_t* a, int i, int elem, tt_dtype_t dtype) {
  tt_operand_t o = {.kind = TT_OPERAND_SCALAR, .dtype = (uint8_t)dtype, .index = l->node,
                    .arg = a->src_arg >= 0 ? a->src_arg : (int16_t)i, .elem = a->src_arg >= 0 ? a->src_elem + elem : elem};
  return tt_emit_operand(l->e, o, dtype, 0, NULL);
}

hlo_t tt_scalar(tt_lower_t* l, int i, tt_dtype_t dtype) {
  const tt_larg_t* a = arg(l, i);
  switch (a->v.kind) {
    case TT_V_INT: case TT_V_FLOAT: case TT_V_BOOL: case TT_V_COMPLEX: break;
    default: return hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d is not a scalar", l->name, i);
  }
  return a->runtime ? scalar_operand(l, a, i, 0, dtype) : constant(l, &a->v, dtype);
}

hlo_t tt_scalar_at(tt_lower_t* l, int i, int j, tt_dtype_t dtype) {
  const tt_larg_t* a = arg(l, i);
  if (j < 0 || j >= a->v.n) return hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d has no element %d", l->name, i, j);
  if (a->runtime) return scalar_operand(l, a, i, j, dtype);
  switch (a->v.kind) {
    case TT_V_SCALARS: return constant(l, &a->v.u.items[j], dtype);
    case TT_V_FLOATS: return constant(l, &(tt_value_t){.kind = TT_V_FLOAT, .u.f = a->v.u.floats[j]}, dtype);
    case TT_V_INTS: return constant(l, &(tt_value_t){.kind = TT_V_INT, .u.i = a->v.u.ints[j]}, dtype);
    default: return hlo_fail(l->e->b, TT_INTERNAL, "%s: argument %d is not a list of scalars", l->name, i);
  }
}

// ---------------------------------------------------------------- expected results
int tt_out_count(tt_lower_t* l) { return l->n_outs; }

const tt_type_t* tt_out(tt_lower_t* l, int i) {
  static const tt_type_t k_stand_in = {TT_F32, 0, NULL};
  if (i >= 0 && i < l->n_outs) return &l->outs[i];
  hlo_fail(l->e->b, TT_INVALID_ARGUMENT, "%s: the type of result %d must be given (it does not follow from the operands)",
           l->name, i);
  return &k_stand_in;
}

tt_dtype_t tt_lattice_promote(tt_dtype_t a, tt_dtype_t b) {
  if (a == b || b == TT_DT_NONE) return a;
  if (a == TT_DT_NONE) return b;
  if (a == TT_BOOL) return b;
  if (b == TT_BOOL) return a;
  bool ca = tt_is_complex(a), cb = tt_is_complex(b), fa = tt_is_float(a), fb = tt_is_float(b);
  if (ca || cb) return a == TT_C128 || b == TT_C128 || a == TT_F64 || b == TT_F64 ? TT_C128 : TT_C64;
  if (fa && fb) {
    size_t sa = tt_dtype_size(a), sb = tt_dtype_size(b);
    if (sa != sb) return sa > sb ? a : b;
    return TT_F32;  // f16 with bf16
  }
  if (fa || fb) return fa ? a : b;
  size_t sa = tt_dtype_size(a), sb = tt_dtype_size(b);
  bool ua = tt_is_unsigned(a), ub = tt_is_unsigned(b);
  if (ua == ub) return sa > sb ? a : b;
  size_t su = ua ? sa : sb, ss = ua ? sb : sa;
  if (ss > su) return ua ? b : a;
  return su == 1 ? TT_I16 : su == 2 ? TT_I32 : TT_I64;
}

tt_dtype_t tt_out_dtype(tt_lower_t* l, int i) {
  if (i < l->n_outs && l->outs[i].dtype != TT_DT_NONE) return l->outs[i].dtype;
  tt_dtype_t dtype = TT_DT_NONE;
  for (int k = 0; k < l->n_args; k++)
    for (int j = 0; j < l->args[k].n; j++)
      if (l->args[k].tensors[j]) dtype = tt_lattice_promote(dtype, l->args[k].tensors[j]->dtype);
  return dtype == TT_DT_NONE ? TT_F32 : dtype;
}

tt_dtype_t tt_opmath(tt_dtype_t dtype) { return tt_is_float(dtype) && dtype != TT_F64 ? TT_F32 : dtype; }

// ---------------------------------------------------------------- results
static void set_ret(tt_lower_t* l, int i, hlo_t value, hlo_t count, int dim) {
  while (i >= l->cap_rets) {
    int cap = l->cap_rets;
    void *rets = l->rets, *places = l->places;
    if (!arena_grow(l->e->b, &rets, cap, &cap, sizeof *l->rets)) return;
    cap = l->cap_rets;
    if (!arena_grow(l->e->b, &places, cap, &cap, sizeof *l->places)) return;
    l->rets = rets;
    l->places = places;
    l->cap_rets = cap;
  }
  l->rets[i] = value;
  l->places[i] = (tt_place_t){.count = count, .sized_dim = (int8_t)dim};
  if (i >= l->n_rets) l->n_rets = i + 1;
}

void tt_ret(tt_lower_t* l, int i, hlo_t value) { set_ret(l, i, value, NULL, 0); }
void tt_ret_sized(tt_lower_t* l, int i, hlo_t padded, hlo_t count) { set_ret(l, i, padded, count, 0); }
void tt_ret_sized_dim(tt_lower_t* l, int i, hlo_t padded, hlo_t count, int dim) { set_ret(l, i, padded, count, dim); }

void tt_ret_strides(tt_lower_t* l, int i, const int64_t* strides) {
  if (i >= l->n_rets || !l->rets[i]) return;
  l->places[i].strided = true;
  for (int d = 0; d < l->rets[i]->rank; d++) l->places[i].strides[d] = strides[d];
}

void tt_ret_order(tt_lower_t* l, int i, const int* order) {
  if (i >= l->n_rets || !l->rets[i]) return;
  int64_t strides[TT_MAX_RANK], step = 1;
  for (int k = l->rets[i]->rank - 1; k >= 0; k--) {
    strides[order[k]] = step;
    step *= l->rets[i]->dims[order[k]] > 1 ? l->rets[i]->dims[order[k]] : 1;
  }
  tt_ret_strides(l, i, strides);
}

const int64_t* tt_strides(tt_lower_t* l, int i) {
  const tt_value_t* v = &arg(l, i)->v;
  return v->kind == TT_V_TENSOR && v->u.tensor ? v->u.tensor->strides : NULL;
}

void tt_mutate(tt_lower_t* l, int arg_index, int j, hlo_t value) {
  void* writes = l->writes;
  if (!arena_grow(l->e->b, &writes, l->n_writes, &l->cap_writes, sizeof *l->writes)) return;
  l->writes = writes;
  l->writes[l->n_writes++] = (tt_write_t){arg_index, j, value};
}

void tt_check(tt_lower_t* l, hlo_t bad, hlo_t value, tt_code_t code, const char* message) {
  tt_emit_t* e = l->e;
  void* checks = e->checks;
  if (!arena_grow(e->b, &checks, e->n_checks, &e->cap_checks, sizeof *e->checks)) return;
  e->checks = checks;
  hlo_t v = value ? hlo_convert(e->b, value, TT_I64) : hlo_scalar_int(e->b, TT_I64, 0);
  e->checks[e->n_checks++] = (tt_check_t){bad, v, code, message};
}

hlo_t tt_random_bits(tt_lower_t* l, tt_dtype_t dtype, int rank, const int64_t* dims) {
  tt_emit_t* e = l->e;
  hlo_builder_t* b = e->b;
  static const int64_t k_two = 2;
  hlo_t base = tt_emit_operand(e, (tt_operand_t){.kind = TT_OPERAND_RNG, .index = e->rng_node}, TT_U64, 1, &k_two);
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  if (n == 0) return hlo_splat(b, dtype, 0, rank, dims);
  hlo_t state = base;
  if (e->rng_drawn) {
    const uint64_t skip[2] = {0, e->rng_drawn};
    state = hlo_add(b, base, hlo_array(b, TT_U64, 1, &k_two, skip));
  }
  hlo_t next;
  hlo_t bits = hlo_rng_bits(b, state, dtype, rank, dims, &next);
  // One counter step gives two 32-bit words. Steps are counted by us, so that the stream does not depend on a compiler.
  uint64_t bytes = (uint64_t)n * (tt_dtype_size(dtype) < 4 ? 4 : tt_dtype_size(dtype));
  e->rng_drawn += (bytes + 7) / 8 + 1;
  return bits;
}

// ---------------------------------------------------------------- running
tt_status_t tt_lower_finish(tt_lower_t* l) {
  hlo_builder_t* b = l->e->b;
  TT_TRY(hlo_builder_error(b));
  if (l->n_outs && l->n_rets != l->n_outs && !(l->n_rets == 0 && l->n_writes))
    return tt_error(TT_INTERNAL, "%s: the lowering gave %d results, PyTorch expects %d", l->name, l->n_rets, l->n_outs);
  for (int i = 0; i < l->n_rets; i++) {
    hlo_t v = l->rets[i];
    if (!v) {
      if (i < l->n_outs && l->outs[i].dtype != TT_DT_NONE)
        return tt_error(TT_INTERNAL, "%s: the lowering gave no result %d", l->name, i);
      continue;
    }
    if (i >= l->n_outs) continue;
    const tt_type_t* want = &l->outs[i];
    if (want->dtype == TT_DT_NONE) {  // undefined in PyTorch: dropped
      l->rets[i] = NULL;
      continue;
    }
    bool same = v->rank == want->rank;
    for (int d = 0; same && d < v->rank; d++) same = v->dims[d] == want->dims[d];
    if (!same) {
      tt_strbuf_t s;
      tt_strbuf_init(&s);
      for (int d = 0; d < v->rank; d++) tt_strbuf_printf(&s, "%s%lld", d ? ", " : "", (long long)v->dims[d]);
      tt_strbuf_puts(&s, "], PyTorch expects [");
      for (int d = 0; d < want->rank; d++) tt_strbuf_printf(&s, "%s%lld", d ? ", " : "", (long long)want->dims[d]);
      tt_status_t status = tt_error(TT_INTERNAL, "%s: the lowering gave result %d the shape [%s]", l->name, i, s.data ? s.data : "");
      tt_strbuf_deinit(&s);
      return status;
    }
    l->rets[i] = hlo_convert(b, v, want->dtype);
  }
  return hlo_builder_error(b);
}

tt_status_t tt_lower_run(tt_lower_t* l) {
  l->row->lower(l);
  return tt_lower_finish(l);
}

hlo_t tt_sub(tt_lower_t* l, const char* name, int n_args, const tt_sub_arg_t* args, const tt_type_t* type) {
  hlo_builder_t* b = l->e->b;
  const tt_op_row_t* row = tt_op_find(name);
  if (!row) return hlo_fail(b, TT_INTERNAL, "%s: no row named %s", l->name, name);
  tt_larg_t* largs = tt_arena_alloc(hlo_builder_arena(b), (size_t)n_args * sizeof *largs + sizeof(hlo_t) * (size_t)n_args);
  if (!largs) return hlo_fail(b, TT_RESOURCE_EXHAUSTED, "host memory is exhausted while lowering");
  hlo_t* values = (hlo_t*)(void*)(largs + n_args);
  for (int i = 0; i < n_args; i++) {
    tt_larg_t* a = &largs[i];
    a->src_arg = -1;
    if (args[i].value) {
      values[i] = args[i].value;
      *a = (tt_larg_t){.v.kind = TT_V_NODE, .tensors = &values[i], .n = 1, .src_arg = -1};
      continue;
    }
    if (args[i].from_arg < 0) continue;  // None
    const tt_larg_t* from = arg(l, args[i].from_arg);
    int elem = args[i].from_elem;
    *a = *from;
    if (from->src_arg < 0) a->src_arg = (int16_t)args[i].from_arg, a->src_elem = 0;
    if (elem < 0) continue;
    if (from->v.kind == TT_V_TENSORS || from->v.kind == TT_V_NODES) {
      values[i] = tt_in_list(l, args[i].from_arg, elem);
      *a = (tt_larg_t){.v.kind = TT_V_NODE, .tensors = &values[i], .n = 1, .src_arg = -1};
      continue;
    }
    a->src_elem += elem;
    if (from->v.kind == TT_V_SCALARS) a->v = from->v.u.items[elem];
    else if (from->v.kind == TT_V_FLOATS) a->v = (tt_value_t){.kind = TT_V_FLOAT, .u.f = from->v.u.floats[elem]};
    else if (from->v.kind == TT_V_INTS) a->v = (tt_value_t){.kind = TT_V_INT, .u.i = from->v.u.ints[elem]};
  }
  tt_lower_t sub = {.e = l->e, .row = row, .name = name, .node = l->node, .n_args = n_args, .args = largs,
                    .n_outs = type ? 1 : 0, .outs = type};
  row->lower(&sub);
  if (type && sub.n_rets == 1 && sub.rets[0]) sub.rets[0] = hlo_convert(b, sub.rets[0], type->dtype);
  return sub.n_rets >= 1 && sub.rets[0] ? sub.rets[0] : hlo_fail(b, TT_INTERNAL, "%s: %s gave no result", l->name, name);
}
