// Runs the conformance cases: hlo_cts PLUGIN.so [--tpu TOPOLOGY] [--fast] [--print] [NAME-PREFIX]
// --fast compiles with the flags meant for one-op programs (tt_client_fast_flags).
// Exit status: 0 all right, 1 some case failed, 2 bad usage.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "hlo_case.h"
#include "pjrt/pjrt.h"

// ---------------------------------------------------------------- cases
static int parse_dims(const char* text, int64_t* dims) {
  int rank = 0;
  while (*text) {
    char* end;
    dims[rank++] = strtoll(text, &end, 10);
    text = *end ? end + 1 : end;
  }
  return rank;
}

hlo_t cts_in(cts_t* c, tt_dtype_t dtype, const char* dims, const char* values) {
  int64_t d[64];
  int rank = parse_dims(dims, d);
  c->in_text[c->n_in] = values;
  return c->in[c->n_in++] = hlo_param(c->b, dtype, rank, d);
}

void cts_expect(cts_t* c, hlo_t v, const char* dims, const char* values) {
  int64_t d[64];
  int rank = parse_dims(dims, d);
  bool same = rank == v->rank;
  for (int i = 0; same && i < rank; i++) same = d[i] == v->dims[i];
  if (!same) hlo_fail(c->b, TT_INTERNAL, "result %d has rank %d, expected [%s]", c->n_out, v->rank, dims);
  c->out_text[c->n_out] = values;
  c->out[c->n_out++] = v;
}

// ---------------------------------------------------------------- numbers
// Next number of |*text|, which wraps around to |all|. False when there is none.
static bool next_token(const char** text, const char* all, char* out) {
  while (**text == ' ') (*text)++;
  if (!**text) *text = all;
  while (**text == ' ') (*text)++;
  size_t n = strcspn(*text, " ");
  if (n == 0 || n > 60) return false;
  memcpy(out, *text, n);
  out[n] = 0;
  *text += n;
  return true;
}

static double token_value(const char* token) {
  if (strcmp(token, "true") == 0) return 1;
  return strcmp(token, "false") == 0 ? 0 : strtod(token, NULL);
}

static tt_dtype_t part_of(tt_dtype_t d) { return d == TT_C64 ? TT_F32 : d == TT_C128 ? TT_F64 : d; }

static void encode(tt_dtype_t d, const char* token, void* out) {
  double v = token_value(token);
  float f = (float)v;
  int64_t i = tt_is_unsigned(d) ? (int64_t)strtoull(token, NULL, 10) : strtoll(token, NULL, 10);
  if (d == TT_BOOL) *(uint8_t*)out = v != 0;
  else if (d == TT_F32) memcpy(out, &f, 4);
  else if (d == TT_F64) memcpy(out, &v, 8);
  else memcpy(out, &i, tt_dtype_size(d));
}

static double decode_half(uint32_t bits, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, e = (int)(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  double m = bits & ((1u << mantissa_bits) - 1), v;
  if (e == (1 << exponent_bits) - 1) v = m ? NAN : INFINITY;
  else v = ldexp(e ? m + (1u << mantissa_bits) : m, (e ? e : 1) - bias - mantissa_bits);
  return bits & 0x8000 ? -v : v;
}

static bool matches(tt_dtype_t d, const char* token, const void* p) {
  if (strcmp(token, "?") == 0) return true;
  if (tt_is_integral(d)) {
    char want[16] = {0};
    encode(d, token, want);
    if (d == TT_BOOL) return token_value(token) == (double)*(const uint8_t*)p;
    return memcmp(want, p, tt_dtype_size(d)) == 0;
  }
  double want = token_value(token), got = 0, tolerance = 3e-6;
  uint16_t half;
  float f;
  if (d == TT_F64) {
    memcpy(&got, p, 8);
    tolerance = 1e-12;
  } else if (d == TT_F32) {
    memcpy(&f, p, 4);
    got = (double)f;
  } else {
    memcpy(&half, p, 2);
    got = d == TT_F16 ? decode_half(half, 5, 10) : decode_half(half, 8, 7);
    tolerance = d == TT_F16 ? 1e-3 : 8e-3;
  }
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (want == 0 && got == 0) return signbit(want) == signbit(got);
  return want == got || fabs(want - got) <= tolerance * (fabs(want) > 1 ? fabs(want) : 1);
}

static void print_value(tt_dtype_t d, const void* p) {
  float f;
  double x;
  uint16_t half;
  int64_t i = 0;
  if (d == TT_F32) {
    memcpy(&f, p, 4);
    printf(" %.9g", (double)f);
  } else if (d == TT_F64) {
    memcpy(&x, p, 8);
    printf(" %.17g", x);
  } else if (tt_is_float(d)) {
    memcpy(&half, p, 2);
    printf(" %g", d == TT_F16 ? decode_half(half, 5, 10) : decode_half(half, 8, 7));
  } else {
    int shift = tt_is_unsigned(d) || d == TT_BOOL ? 0 : 64 - 8 * (int)tt_dtype_size(d);
    memcpy(&i, p, tt_dtype_size(d));
    printf(" %lld", (long long)((int64_t)((uint64_t)i << shift) >> shift));
  }
}

// ---------------------------------------------------------------- running
static tt_status_t put_inputs(cts_t* c, tt_client_t* client, tt_pbuf_t** args) {
  for (int i = 0; i < c->n_in; i++) {
    hlo_t v = c->in[i];
    tt_dtype_t part = part_of(v->dtype);
    size_t n = (size_t)hlo_numel(v) * tt_dtype_size(v->dtype), step = tt_dtype_size(part);
    char* data = calloc(n + 16, 1);
    const char* text = c->in_text[i];
    char token[64];
    for (size_t at = 0; data && at < n; at += step) {
      if (next_token(&text, c->in_text[i], token)) encode(part, token, data + at);
    }
    tt_status_t status =
        tt_pbuf_from_host(client, 0, v->dtype, v->rank, v->dims, data, TT_HOST_COPY, NULL, NULL, &args[i]);
    free(data);
    if (status) return status;
  }
  return NULL;
}

static tt_status_t check_output(cts_t* c, int i, tt_client_t* client, tt_pbuf_t* buffer, bool* good) {
  hlo_t v = c->out[i];
  tt_dtype_t part = part_of(v->dtype);
  size_t n = (size_t)hlo_numel(v) * tt_dtype_size(v->dtype), step = tt_dtype_size(part);
  char* data = calloc(n + 16, 1);
  tt_status_t status = tt_pbuf_to_host(client, buffer, data, n);
  const char* text = c->out_text[i];
  char token[64];
  bool same = true;
  for (size_t at = 0; !status && at < n; at += step) {
    same = same && next_token(&text, c->out_text[i], token) && matches(part, token, data + at);
  }
  if (!status && !same) {
    printf("    result %d (%s)\n      want %s\n      got ", i, tt_dtype_name(v->dtype), c->out_text[i]);
    for (size_t at = 0; at < n && at < 64 * step; at += step) print_value(part, data + at);
    printf("\n");
    *good = false;
  }
  free(data);
  return status;
}

typedef struct setup_t {
  tt_client_t* client;
  tt_topology_t* topology;  // compile only, when set
  bool fast, print;
} setup_t;

static tt_status_t run_case(cts_t* c, const setup_t* setup, const tt_strbuf_t* text, bool* good) {
  tt_pbuf_t *args[CTS_MAX] = {NULL}, *outs[CTS_MAX] = {NULL};
  tt_exe_t* exe = NULL;
  tt_client_t* client = setup->client;
  tt_compile_options_t options = {.overrides = setup->fast ? tt_client_fast_flags(client) : NULL};
  tt_status_t status = tt_exe_compile(client, text->data, text->len, &options, &exe);
  if (!status) status = put_inputs(c, client, args);
  if (!status) status = tt_exe_run(exe, c->n_in, args, 0, NULL, outs, NULL);
  for (int i = 0; !status && i < c->n_out; i++) status = check_output(c, i, client, outs[i], good);
  for (int i = 0; i < CTS_MAX; i++) {
    tt_pbuf_free(client, args[i]);
    tt_pbuf_free(client, outs[i]);
  }
  tt_exe_release(exe);
  return status;
}

static bool try_case(const cts_case_t* item, const setup_t* setup) {
  cts_t c = {.b = hlo_builder_create()};
  tt_strbuf_t text;
  bool good = true;
  tt_strbuf_init(&text);
  item->build(&c);
  tt_status_t status = hlo_print(c.b, c.n_out, c.out, NULL, &text);
  if (setup->print) {
    printf("// %s\n%s\n", item->name, text.data ? text.data : "");
  } else if (!status && setup->topology) {
    status = tt_topology_compile(setup->topology, text.data, text.len, NULL, NULL, NULL, NULL);
  } else if (!status) {
    status = run_case(&c, setup, &text, &good);
  }
  if (status) {
    printf("    %s: %.2000s\n", tt_code_name(tt_status_code(status)), tt_status_message(status));
    if (text.data && !hlo_failed(c.b)) printf("%.6000s\n", text.data);
  }
  good = good && !status;
  if (!good) printf("FAIL %s\n", item->name);
  tt_status_free(status);
  tt_strbuf_deinit(&text);
  hlo_builder_destroy(c.b);
  return good;
}

int main(int argc, char** argv) {
  const char *plugin_path = NULL, *tpu = NULL, *prefix = "";
  setup_t setup = {0};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--tpu") == 0 && i + 1 < argc) tpu = argv[++i];
    else if (strcmp(argv[i], "--print") == 0) setup.print = true;
    else if (strcmp(argv[i], "--fast") == 0) setup.fast = true;
    else if (!plugin_path) plugin_path = argv[i];
    else prefix = argv[i];
  }
  if (!plugin_path) {
    fprintf(stderr, "usage: hlo_cts PLUGIN.so [--tpu TOPOLOGY] [--fast] [--print] [NAME-PREFIX]\n");
    return 2;
  }
  tt_plugin_t* plugin = NULL;
  tt_status_t status = tt_plugin_open(plugin_path, &plugin);
  if (!status && tpu) status = tt_topology_create(plugin, tpu, &setup.topology);
  if (!status && !tpu) status = tt_client_create(plugin, &(tt_client_options_t){.cpu_device_count = 1}, &setup.client);
  if (status) {
    fprintf(stderr, "%s\n", tt_status_message(status));
    return 1;
  }
  const cts_case_t* const lists[] = {k_elementwise_cases, k_shape_cases, k_index_cases, k_reduce_cases, k_linalg_cases,
                                     k_control_cases};
  int n = 0, n_bad = 0;
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
    for (const cts_case_t* item = lists[l]; item->name; item++) {
      if (strncmp(item->name, prefix, strlen(prefix)) != 0) continue;
      n++;
      n_bad += !try_case(item, &setup);
      fflush(stdout);
    }
  }
  printf("%d cases, %d failed\n", n, n_bad);
  tt_client_release(setup.client);
  tt_topology_release(setup.topology);
  tt_plugin_release(plugin);
  return n_bad != 0;
}
