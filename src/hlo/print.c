// Prints a module in MLIR's generic form: the one syntax that every StableHLO version reads alike.
#include "hlo/ir.h"

// ---------------------------------------------------------------- pieces
void hlo_put_type(tt_strbuf_t* s, tt_dtype_t dtype, int rank, const int64_t* dims) {
  tt_strbuf_puts(s, "tensor<");
  for (int i = 0; i < rank; i++) tt_strbuf_printf(s, "%lldx", (long long)dims[i]);
  tt_strbuf_puts(s, tt_dtype_mlir(dtype));
  tt_strbuf_puts(s, ">");
}

typedef struct printer_t {
  hlo_builder_t* b;
  tt_strbuf_t* s;
  int next_id;   // %N of the next op
  int next_arg;  // %aN of the next region argument
} printer_t;

static void put_value(printer_t* p, hlo_t v) {
  if (v->op) {
    tt_strbuf_printf(p->s, "%%%d", v->op->results[0].id);
    if (v->op->n_results > 1) tt_strbuf_printf(p->s, "#%d", v->index);
  } else if (((const hlo_arg_t*)v)->region->parent) {
    tt_strbuf_printf(p->s, "%%a%d", v->id);
  } else {
    tt_strbuf_printf(p->s, "%%arg%d", v->index);
  }
}

static void put_values(printer_t* p, int n, const hlo_t* values) {
  for (int i = 0; i < n; i++) {
    if (i) tt_strbuf_puts(p->s, ", ");
    put_value(p, values[i]);
  }
}

static void put_types(printer_t* p, int n, const hlo_t* values) {
  for (int i = 0; i < n; i++) {
    if (i) tt_strbuf_puts(p->s, ", ");
    hlo_put_type(p->s, values[i]->dtype, values[i]->rank, values[i]->dims);
  }
}

static void put_indent(printer_t* p, int indent) {
  for (int i = 0; i < indent; i++) tt_strbuf_puts(p->s, "  ");
}

// ---------------------------------------------------------------- live ops
static void mark_values(hlo_builder_t* b, int n, const hlo_t* values) {
  for (int i = 0; i < n; i++) {
    if (values[i]->op) values[i]->op->mark = b->mark;
  }
}

// Users come after their operands, so one pass from the end finds everything that is needed.
static void mark_region(hlo_builder_t* b, hlo_op_t* last) {
  for (hlo_op_t* op = last; op; op = op->prev) {
    if (op->mark != b->mark) continue;
    mark_values(b, op->n_operands, op->operands);
    for (int i = 0; i < op->n_regions; i++) {
      mark_values(b, op->regions[i]->n_results, op->regions[i]->results);
      mark_region(b, op->regions[i]->last);
    }
  }
}

// ---------------------------------------------------------------- ops
static void put_block(printer_t* p, hlo_op_t* first, int indent);

static void put_region(printer_t* p, hlo_region_t* region, int indent) {
  tt_strbuf_puts(p->s, "{\n");
  if (region->n_args) {
    put_indent(p, indent);
    tt_strbuf_puts(p->s, "^bb0(");
    for (hlo_arg_t* arg = region->first_arg; arg; arg = arg->next) {
      arg->value.id = p->next_arg++;
      tt_strbuf_printf(p->s, "%s%%a%d: ", arg == region->first_arg ? "" : ", ", arg->value.id);
      hlo_put_type(p->s, arg->value.dtype, arg->value.rank, arg->value.dims);
    }
    tt_strbuf_puts(p->s, "):\n");
  }
  put_block(p, region->first, indent + 1);
  put_indent(p, indent + 1);
  tt_strbuf_puts(p->s, "\"stablehlo.return\"(");
  put_values(p, region->n_results, region->results);
  tt_strbuf_puts(p->s, ") : (");
  put_types(p, region->n_results, region->results);
  tt_strbuf_puts(p->s, ") -> ()\n");
  put_indent(p, indent);
  tt_strbuf_puts(p->s, "}");
}

static void put_op(printer_t* p, hlo_op_t* op, int indent) {
  put_indent(p, indent);
  if (op->n_results) {
    op->results[0].id = p->next_id++;
    tt_strbuf_printf(p->s, "%%%d", op->results[0].id);
    if (op->n_results > 1) tt_strbuf_printf(p->s, ":%d", op->n_results);
    tt_strbuf_puts(p->s, " = ");
  }
  tt_strbuf_printf(p->s, "\"%s\"(", op->name);
  put_values(p, op->n_operands, op->operands);
  tt_strbuf_puts(p->s, ")");
  for (int i = 0; i < op->n_regions; i++) {
    tt_strbuf_puts(p->s, i ? ", " : " (");
    put_region(p, op->regions[i], indent);
  }
  if (op->n_regions) tt_strbuf_puts(p->s, ")");
  if (op->attrs) {
    tt_strbuf_puts(p->s, " {");
    tt_strbuf_puts(p->s, op->attrs);
    tt_strbuf_puts(p->s, "}");
  }
  tt_strbuf_puts(p->s, " : (");
  put_types(p, op->n_operands, op->operands);
  tt_strbuf_puts(p->s, op->n_results == 1 ? ") -> " : ") -> (");
  for (int i = 0; i < op->n_results; i++) {
    if (i) tt_strbuf_puts(p->s, ", ");
    hlo_put_type(p->s, op->results[i].dtype, op->results[i].rank, op->results[i].dims);
  }
  if (op->n_results != 1) tt_strbuf_puts(p->s, ")");
  if (op->where) tt_strbuf_printf(p->s, " loc(%s)", op->where);
  tt_strbuf_puts(p->s, "\n");
}

static void put_block(printer_t* p, hlo_op_t* first, int indent) {
  for (hlo_op_t* op = first; op; op = op->next) {
    if (op->mark == p->b->mark) put_op(p, op, indent);
  }
}

// ---------------------------------------------------------------- module
// |out_donor| of each parameter: the result that takes its buffer, or -1.
static tt_status_t donors(hlo_builder_t* b, int n_results, const hlo_t* results, const int* aliases, int* out_donor) {
  for (int i = 0; i < b->root.n_args; i++) out_donor[i] = -1;
  for (int i = 0; aliases && i < n_results; i++) {
    int a = aliases[i];
    if (a < 0) continue;
    if (a >= b->root.n_args) return tt_error(TT_INTERNAL, "result %d takes the buffer of parameter %d of %d", i, a,
                                             b->root.n_args);
    if (out_donor[a] >= 0) return tt_error(TT_INTERNAL, "parameter %d is donated to two results", a);
    hlo_arg_t* arg = b->root.first_arg;
    while (arg->value.index != a) arg = arg->next;
    if (arg->value.dtype != results[i]->dtype || !hlo_same_dims(&arg->value, results[i])) {
      return tt_error(TT_INTERNAL, "result %d is %s, but the parameter donated to it is %s", i,
                      hlo_text_shape(b, results[i]), hlo_text_shape(b, &arg->value));
    }
    out_donor[a] = i;
  }
  return NULL;
}

static tt_status_t check_printable(hlo_builder_t* b, int n_results, const hlo_t* results) {
  if (b->error) return tt_status_clone(b->error);
  if (b->current != &b->root) return tt_error(TT_INTERNAL, "a region is still open");
  for (int i = 0; i < n_results; i++) {
    if (!results[i]) return tt_error(TT_INTERNAL, "result %d is missing", i);
    hlo_region_t* home = results[i]->op ? results[i]->op->parent : ((const hlo_arg_t*)results[i])->region;
    if (home != &b->root) return tt_error(TT_INTERNAL, "result %d belongs to a region", i);
  }
  return NULL;
}

tt_status_t hlo_print(hlo_builder_t* b, int n_results, const hlo_t* results, const int* aliases, tt_strbuf_t* out) {
  TT_TRY(check_printable(b, n_results, results));
  int* donor = tt_arena_alloc(&b->arena, (size_t)(b->root.n_args + 1) * sizeof *donor);
  if (!donor) return tt_error(TT_RESOURCE_EXHAUSTED, "out of host memory while printing a program");
  TT_TRY(donors(b, n_results, results, aliases, donor));
  printer_t p = {.b = b, .s = out};
  b->mark++;
  mark_values(b, n_results, results);
  mark_region(b, b->root.last);
  for (const hlo_alias_t* a = b->aliases; a; a = a->next) tt_strbuf_printf(out, "%s = %s\n", a->name, a->text);
  tt_strbuf_puts(out, "module @tt {\n  func.func public @main(");
  for (hlo_arg_t* arg = b->root.first_arg; arg; arg = arg->next) {
    int i = arg->value.index;
    tt_strbuf_printf(out, "%s%%arg%d: ", i ? ", " : "", i);
    hlo_put_type(out, arg->value.dtype, arg->value.rank, arg->value.dims);
    if (donor[i] >= 0) tt_strbuf_printf(out, " {tf.aliasing_output = %d : i32}", donor[i]);
  }
  tt_strbuf_puts(out, ") -> (");
  put_types(&p, n_results, results);
  tt_strbuf_puts(out, ") {\n");
  put_block(&p, b->root.first, 2);
  tt_strbuf_puts(out, "    func.return");
  if (n_results) {
    tt_strbuf_puts(out, " ");
    put_values(&p, n_results, results);
    tt_strbuf_puts(out, " : ");
    put_types(&p, n_results, results);
  }
  tt_strbuf_puts(out, "\n  }\n}\n");
  if (out->failed) return tt_error(TT_RESOURCE_EXHAUSTED, "out of host memory while printing a program");
  return NULL;
}
