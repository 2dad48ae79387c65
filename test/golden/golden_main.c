// The StableHLO of one or more rows of every op family, kept as text: a change of a lowering is a change of these files.
//
//   golden FOLDER                            compares with FOLDER/FAMILY.mlir; with TT_BLESS set, rewrites them
//   golden FOLDER --tpu TOPOLOGY LIBTPU.so   compiles each program for a TPU instead; no chip is needed
//
// Arguments of a case, in schema order: f32[2,3] a tensor, {f32[2] f32[2]} a list of them, [1,2] ints, 3 an int,
// 0.5 a float, true, false, none, 'text'. Then, where a lowering wants to know them, "->" and the types of the results.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "pjrt/pjrt.h"
#include "tt/tt.h"

typedef struct golden_t {
  const char *family, *row, *args;
} golden_t;

static const golden_t k_cases[] = {  // grouped by family
    {"activation", "gelu", "f32[4,8] 'tanh'"},
    {"activation", "gelu", "bf16[8] 'none'"},
    {"activation", "glu", "f32[4,8] -1"},
    {"arrange", "cat", "{f32[2,3] f32[4,3]} 0"},
    {"arrange", "select_scatter", "f32[4,3] f32[3] 0 -1"},
    {"batch_norm", "native_batch_norm", "f32[2,3,4] f32[3] f32[3] f32[3] f32[3] true 0.1 0.00001"},
    {"binary", "add.Tensor", "bf16[4,1] f32[3] 1"},
    {"binary", "add.Tensor", "i32[4] i64[4] 2"},
    {"binary", "div.Tensor", "i32[4] i32[4]"},
    {"binary", "floor_divide", "i32[4] i32[4]"},
    {"binary", "remainder.Tensor", "f32[4] f32[4]"},
    {"conv", "convolution", "f32[2,3,8,8] f32[4,3,3,3] f32[4] [1,1] [1,1] [1,1] false [0,0] 1"},
    {"conv", "convolution", "f32[1,4,5] f32[4,2,3] none [2] [1] [1] true [1] 2"},
    {"distance", "linalg_cross", "f32[4,3] f32[4,3] -1"},
    {"dropout", "native_dropout", "f32[4,8] 0.5 true"},
    {"embedding", "embedding", "f32[10,4] i64[2,3] -1 false false"},
    {"fft", "_fft_r2c", "f32[4,8] [1] 0 true -> complex<f32>[4,5]"},
    {"grid_sample", "grid_sampler_2d", "f32[1,2,4,4] f32[1,3,3,2] 0 0 false"},
    {"index", "index.Tensor", "f32[4,5] {i64[3]}"},
    {"linalg", "cholesky", "f32[4,4] false -> f32[4,4]"},
    {"loss", "mse_loss", "f32[4,3] f32[4,3] 1"},
    {"loss", "nll_loss_forward", "f32[4,5] i64[4] none 1 -100"},
    {"matmul", "mm", "f32[2,3] f32[3,4]"},
    {"matmul", "mm", "bf16[2,3] bf16[3,4]"},
    {"matmul", "mm", "i64[2,3] i64[3,4]"},
    {"matmul", "addmm", "f32[4] f32[2,3] f32[3,4] 1 1"},
    {"matmul", "bmm", "f16[2,3,4] f16[2,4,5]"},
    {"norm", "native_layer_norm", "f32[4,8] [8] f32[8] f32[8] 0.00001"},
    {"norm", "native_layer_norm", "bf16[4,8] [8] none none 0.00001"},
    {"pad", "constant_pad_nd", "f32[2,3] [1,-1] 0.5"},
    {"pad", "reflection_pad1d", "f32[2,6] [2,1]"},
    {"pointwise", "where.self", "i1[4,1] f32[4,3] f32[3]"},
    {"pointwise", "clamp", "f32[4] 0.0 none"},
    {"pool", "max_pool2d_with_indices", "f32[1,2,6,6] [2,2] [2,2] [0,0] [1,1] false"},
    {"pool", "avg_pool2d", "f32[1,2,6,6] [3,3] [2,2] [1,1] false true none"},
    {"pool_adaptive", "_adaptive_avg_pool2d", "f32[1,2,7,7] [3,3]"},
    {"reduce", "sum", "i32[4,3] none"},
    {"reduce", "sum.dim_IntList", "bf16[4,3] [0] false none"},
    {"reduce", "amax", "f32[4,3] [1] true"},
    {"reduce", "argmax", "f32[4,3] 1 false"},
    {"reduce", "var.correction", "f32[4,3] [1] 1 false"},
    {"rnn", "_thnn_fused_lstm_cell", "f32[2,16] f32[2,16] f32[2,4] none none"},
    {"scan", "cumsum", "f32[40] 0 none"},
    {"scatter", "gather", "f32[4,3] 0 i64[2,3] false"},
    {"scatter", "scatter_add", "f32[4,3] 0 i64[2,3] f32[2,3]"},
    {"shape", "permute", "f32[2,3,4] [2,0,1]"},
    {"shape", "slice.Tensor", "f32[8,3] 0 1 7 2"},
    {"softmax", "_softmax", "f32[4,8] -1 false"},
    {"softmax", "_log_softmax", "bf16[4,8] 0 false"},
    {"sort", "topk", "f32[4,8] 3 1 true true"},
    {"sort", "sort.stable", "i32[8] true 0 true"},
    {"special", "special_zeta", "f32[4] f32[4]"},
    {"unary", "tanh", "f16[4]"},
    {"unary", "isnan", "f32[4]"},
    {"unary", "bitwise_not", "i1[4]"},
    {"upsample", "upsample_nearest2d", "f32[1,2,4,4] [8,8] none none"},
    {"upsample", "upsample_bilinear2d", "f32[1,2,4,4] [7,7] false none none"},
};
enum { N_CASES = sizeof k_cases / sizeof *k_cases, MAX_ARGS = 16, MAX_INTS = 128 };

// ---------------------------------------------------------------- arguments
typedef struct scratch_t {
  tt_graph_t* graph;
  int64_t ints[MAX_INTS];
  int n_ints;
  char strings[4][32];
  int n_strings;
} scratch_t;

// "f32[2,3]"; NULL when |p| is no type.
static const char* parse_type(scratch_t* s, const char* p, tt_type_desc_t* out) {
  for (int d = 1; d < TT_DTYPE_COUNT; d++) {
    const char* name = tt_dtype_mlir((tt_dtype_t)d);
    size_t n = strlen(name);
    if (strncmp(p, name, n) || p[n] != '[') continue;
    *out = (tt_type_desc_t){.dtype = (tt_dtype_t)d, .dims = &s->ints[s->n_ints]};
    p += n + 1;
    while (*p != ']') {
      s->ints[s->n_ints++] = strtoll(p, (char**)&p, 10);
      out->rank++;
      if (*p == ',') p++;
    }
    return p + 1;
  }
  return NULL;
}

static const char* parse_tensor(scratch_t* s, const char* p, int64_t* out_id, tt_status_t* status) {
  tt_type_desc_t type;
  int id = -1;
  p = parse_type(s, p, &type);
  if (p && !*status) *status = tt_graph_param(s->graph, type.dtype, type.rank, type.dims, &id);
  *out_id = id;
  return p;
}

static const char* parse_list(scratch_t* s, const char* p, tt_value_t* v, tt_status_t* status) {
  v->kind = *p == '{' ? TT_V_NODES : TT_V_INTS;
  int64_t* items = &s->ints[s->n_ints];
  v->u.ints = items;
  s->n_ints += 8;  // a list's longest
  for (p++; *p != '}' && *p != ']';) {
    int64_t* item = &items[v->n];
    if (v->kind == TT_V_INTS) *item = strtoll(p, (char**)&p, 10);
    else if (!(p = parse_tensor(s, p, item, status))) return NULL;
    v->n++;
    if (*p == ' ' || *p == ',') p++;
  }
  return p + 1;
}

static const char* parse_value(scratch_t* s, const char* p, tt_value_t* v, tt_status_t* status) {
  static const struct {
    const char* word;
    tt_value_t value;
  } k_words[] = {{"none", {.kind = TT_V_NONE}},
                 {"true", {.kind = TT_V_BOOL, .u.i = 1}},
                 {"false", {.kind = TT_V_BOOL, .u.i = 0}}};
  *v = (tt_value_t){0};
  if (*p == '{' || *p == '[') return parse_list(s, p, v, status);
  if (*p == '\'') {
    char* text = s->strings[s->n_strings++];
    v->kind = TT_V_STRING;
    v->u.string = text;
    for (p++; *p != '\''; p++) text[v->n++] = *p;
    return p + 1;
  }
  for (size_t i = 0; i < sizeof k_words / sizeof *k_words; i++) {
    size_t n = strlen(k_words[i].word);
    if (strncmp(p, k_words[i].word, n) == 0) {
      *v = k_words[i].value;
      return p + n;
    }
  }
  if (*p == '-' || isdigit((unsigned char)*p)) {
    char* end;
    v->u.i = strtoll(p, &end, 10);
    v->kind = TT_V_INT;
    if (*end == '.') {
      v->u.f = strtod(p, &end);
      v->kind = TT_V_FLOAT;
    }
    return end;
  }
  v->kind = TT_V_NODE;
  return parse_tensor(s, p, &v->u.i, status);
}

// ---------------------------------------------------------------- one case
static tt_status_t lower(const golden_t* c, char** out_text, size_t* out_len) {
  scratch_t s = {0};
  tt_value_t args[MAX_ARGS];
  tt_type_desc_t types[4];
  int n = 0, n_types = 0, ids[16], n_ids = 16, n_outs = 0;
  bool results = false;
  tt_status_t status = tt_graph_create(0, &s.graph);
  for (const char* p = c->args; !status && *p;) {
    if (strncmp(p, "-> ", 3) == 0) {
      results = true;
      p += 3;
    }
    p = results ? parse_type(&s, p, &types[n_types++]) : parse_value(&s, p, &args[n++], &status);
    if (!p) {
      fprintf(stderr, "%s: cannot read \"%s\"\n", c->row, c->args);
      exit(2);
    }
    while (*p == ' ') p++;
  }
  if (!status) status = tt_graph_call(s.graph, c->row, n, args, n_types, types, ids, &n_ids);
  for (int i = 0; !status && i < n_ids; i++)
    if (ids[i] >= 0) ids[n_outs++] = ids[i];
  if (!status) status = tt_graph_outputs(s.graph, n_outs, ids, NULL);
  if (!status) status = tt_graph_text(s.graph, out_text, out_len);
  tt_graph_destroy(s.graph);
  return status;
}

static bool report(const golden_t* c, tt_status_t status) {
  if (!status) return true;
  printf("FAIL %s(%s): %s: %.2000s\n", c->row, c->args, tt_code_name(tt_status_code(status)), tt_status_message(status));
  tt_status_free(status);
  return false;
}

// ---------------------------------------------------------------- kept text
static bool same_text(const char* path, const tt_strbuf_t* now) {
  FILE* f = fopen(path, "rb");
  char* kept = calloc(now->len + 2, 1);
  size_t n = f && kept ? fread(kept, 1, now->len + 1, f) : 0;
  if (f) fclose(f);
  bool same = f && kept && n == now->len && memcmp(kept, now->data, n) == 0;
  if (!f) printf("FAIL %s does not exist: ./dev test --c --bless\n", path);
  else if (!same) {
    size_t i = 0, start = 0;
    int line = 1;
    for (; i < n && i < now->len && kept[i] == now->data[i]; i++)
      if (kept[i] == '\n') line++, start = i + 1;
    printf("FAIL %s:%d differs (./dev test --c --bless takes the new text over)\n  kept %.*s\n  now  %.*s\n", path, line,
           (int)strcspn(kept + start, "\n"), kept + start, (int)strcspn(now->data + start, "\n"), now->data + start);
  }
  free(kept);
  return same;
}

static bool write_text(const char* path, const tt_strbuf_t* now) {
  FILE* f = fopen(path, "wb");
  bool ok = f && fwrite(now->data, 1, now->len, f) == now->len;
  return f && fclose(f) == 0 && ok;
}

static int compare(const char* folder, bool bless) {
  int bad = 0;
  tt_strbuf_t text;
  tt_strbuf_init(&text);
  for (int i = 0; i < N_CASES; i++) {
    const golden_t* c = &k_cases[i];
    char* one = NULL;
    size_t len = 0;
    bad += !report(c, lower(c, &one, &len));
    tt_strbuf_printf(&text, "// %s(%s)\n%s\n", c->row, c->args, one ? one : "");
    tt_text_free(one);
    if (i + 1 < N_CASES && strcmp(k_cases[i + 1].family, c->family) == 0) continue;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.mlir", folder, c->family);
    bad += bless ? !write_text(path, &text) : !same_text(path, &text);
    tt_strbuf_clear(&text);
  }
  tt_strbuf_deinit(&text);
  return bad;
}

static int compile_all(const char* topology_name, const char* library) {
  int bad = 0;
  tt_plugin_t* plugin = NULL;
  tt_topology_t* topology = NULL;
  tt_status_t status = tt_plugin_open(library, &plugin);
  if (!status) status = tt_topology_create(plugin, topology_name, &topology);
  if (status) {
    printf("%s\n", tt_status_message(status));
    return 1;
  }
  for (int i = 0; i < N_CASES; i++) {
    char* text = NULL;
    size_t len = 0;
    status = lower(&k_cases[i], &text, &len);
    if (!status) status = tt_topology_compile(topology, text, len, NULL, NULL, NULL, NULL);
    bad += !report(&k_cases[i], status);
    tt_text_free(text);
    fflush(stdout);
  }
  tt_topology_release(topology);
  tt_plugin_release(plugin);
  return bad;
}

int main(int argc, char** argv) {
  if (argc != 2 && !(argc == 5 && strcmp(argv[2], "--tpu") == 0)) {
    fprintf(stderr, "usage: golden FOLDER [--tpu TOPOLOGY LIBTPU.so]\n");
    return 2;
  }
  const char* bless = getenv("TT_BLESS");
  int bad = argc == 5 ? compile_all(argv[3], argv[4]) : compare(argv[1], bless && *bless);
  printf("%d programs, %d failed\n", N_CASES, bad);
  return bad != 0;
}
