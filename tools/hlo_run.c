// hlo_run: compiles a StableHLO text file with a PJRT plugin, runs it on made-up inputs, prints the outputs.
//
//   hlo_run [options] PLUGIN FILE.mlir      (FILE may be "-": standard input)
//     --tpu TOPOLOGY    only compile, for a TPU topology ("v5e:2x2"), and print the compiler's estimates
//     --flags F         compiler flags, "xla_flag=value;..."
//     --input I=V,V,..  values of argument I (repeated to fill it); default: 0, 1, 2, ... (floats: 0, 0.5, 1, ...)
//     --device N        run on device N
//     --max N           print at most N elements per output (default 64)
//     --time N          also time N runs
// Exit status: 0 right, 1 the plugin said no, 2 bad usage.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "pjrt/pjrt.h"
#include "tools/mlir_main.h"

enum { MAX_ARGS = 512 };

typedef struct options_t {
  const char *plugin, *file, *tpu, *flags;
  const char* inputs[MAX_ARGS];
  int device, max, time;
} options_t;

static int usage(void) {
  fprintf(
      stderr,
      "usage: hlo_run [--tpu TOPOLOGY] [--flags F] [--input I=V,V] [--device N] [--max N] [--time N] PLUGIN FILE\n");
  return 2;
}

static int fail(tt_status_t status, const char* what) {
  fprintf(stderr, "hlo_run: %s: %s: %s\n", what, tt_code_name(tt_status_code(status)), tt_status_message(status));
  tt_status_free(status);
  return 1;
}

static char* read_all(const char* path, size_t* out_len) {
  FILE* f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  if (!f) return NULL;
  size_t len = 0, cap = 1 << 16;
  char* data = malloc(cap + 1);
  while (data) {
    len += fread(data + len, 1, cap - len, f);
    if (len < cap) break;
    cap *= 2;
    char* more = realloc(data, cap + 1);
    if (!more) free(data);
    data = more;
  }
  if (f != stdin) fclose(f);
  if (data) data[len] = 0;
  *out_len = len;
  return data;
}

static double now_us(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// ---------------------------------------------------------------- numbers
static uint16_t f32_to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if (f != f) return 0x7fc0;
  return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// Small floating point formats from and to double, by exponent and mantissa width. |bias|, |fn| as in f8E4M3FN.
typedef struct small_float_t {
  int exponent_bits, mantissa_bits, bias;
  bool has_inf;
} small_float_t;

static small_float_t small_format(tt_dtype_t d) {
  switch (d) {
    case TT_F8E5M2: return (small_float_t){5, 2, 15, true};
    case TT_F8E4M3FN: return (small_float_t){4, 3, 7, false};
    case TT_F8E5M2FNUZ: return (small_float_t){5, 2, 16, false};
    case TT_F8E4M3FNUZ: return (small_float_t){4, 3, 8, false};
    default: return (small_float_t){5, 10, 15, true};
  }
}

static double small_to_double(unsigned bits, tt_dtype_t d) {
  small_float_t f = small_format(d);
  int width = f.exponent_bits + f.mantissa_bits;
  unsigned mantissa = bits & ((1u << f.mantissa_bits) - 1);
  int exponent = (int)((bits >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1));
  double sign = (bits >> width) & 1 ? -1 : 1;
  int top = (1 << f.exponent_bits) - 1;
  if (f.has_inf && exponent == top) return mantissa ? (double)NAN : sign * (double)INFINITY;
  if (d == TT_F8E4M3FN && exponent == top && mantissa == 7) return (double)NAN;
  if ((d == TT_F8E5M2FNUZ || d == TT_F8E4M3FNUZ) && bits == 0x80) return (double)NAN;
  double m = (double)mantissa / (double)(1 << f.mantissa_bits);
  return sign * (exponent ? ldexp(1 + m, exponent - f.bias) : ldexp(m, 1 - f.bias));
}

static unsigned double_to_small(double v, tt_dtype_t d) {
  small_float_t f = small_format(d);
  unsigned best = 0;
  double error = (double)INFINITY;
  unsigned n = 1u << (f.exponent_bits + f.mantissa_bits);
  for (unsigned b = 0; b < n; b++) {  // slow and obviously right
    double e = fabs(small_to_double(b, d) - fabs(v));
    if (e < error) {
      error = e;
      best = b;
    }
  }
  return v < 0 && best ? best | n : best;
}

static void store(void* data, size_t i, tt_dtype_t d, double v) {
  char* p = (char*)data + i * tt_dtype_size(d);
  int64_t n = v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : v != v ? 0 : (int64_t)v;
  float f = (float)v;
  uint16_t h;
  uint8_t b;
  switch (d) {
    case TT_BOOL:
      b = v != 0;
      memcpy(p, &b, 1);
      break;
    case TT_F32: memcpy(p, &f, 4); break;
    case TT_F64: memcpy(p, &v, 8); break;
    case TT_BF16:
      h = f32_to_bf16(f);
      memcpy(p, &h, 2);
      break;
    case TT_F16:
      h = (uint16_t)double_to_small(v, d);
      memcpy(p, &h, 2);
      break;
    case TT_C64:
      memcpy(p, &f, 4);
      memset(p + 4, 0, 4);
      break;
    case TT_C128:
      memcpy(p, &v, 8);
      memset(p + 8, 0, 8);
      break;
    case TT_F8E5M2:
    case TT_F8E4M3FN:
    case TT_F8E5M2FNUZ:
    case TT_F8E4M3FNUZ:
      b = (uint8_t)double_to_small(v, d);
      memcpy(p, &b, 1);
      break;
    default: memcpy(p, &n, tt_dtype_size(d)); break;  // integers, little endian
  }
}

static void print_element(const void* data, size_t i, tt_dtype_t d) {
  size_t size = tt_dtype_size(d);
  const char* p = (const char*)data + i * size;
  float f[2];
  double g[2];
  uint16_t h;
  uint32_t w;
  int64_t n = 0;
  memcpy(&n, p, size < 8 ? size : 8);
  switch (d) {
    case TT_BOOL: printf("%s", n ? "true" : "false"); break;
    case TT_F32:
      memcpy(f, p, 4);
      printf("%.9g", (double)f[0]);
      break;
    case TT_F64:
      memcpy(g, p, 8);
      printf("%.17g", g[0]);
      break;
    case TT_C64:
      memcpy(f, p, 8);
      printf("(%.9g,%.9g)", (double)f[0], (double)f[1]);
      break;
    case TT_C128:
      memcpy(g, p, 16);
      printf("(%.17g,%.17g)", g[0], g[1]);
      break;
    case TT_BF16:
      memcpy(&h, p, 2);
      w = (uint32_t)h << 16;
      memcpy(f, &w, 4);
      printf("%g", (double)f[0]);
      break;
    case TT_F16:
    case TT_F8E5M2:
    case TT_F8E4M3FN:
    case TT_F8E5M2FNUZ:
    case TT_F8E4M3FNUZ: printf("%g", small_to_double((unsigned)n & (size == 1 ? 0xffu : 0xffffu), d)); break;
    case TT_I8: printf("%d", (int8_t)n); break;
    case TT_I16: printf("%d", (int16_t)n); break;
    case TT_I32: printf("%d", (int32_t)n); break;
    case TT_U64: printf("%llu", (unsigned long long)n); break;
    default: printf("%lld", (long long)n); break;
  }
}

static void print_type(const mlir_type_t* t) {
  printf("tensor<");
  for (int i = 0; i < t->rank; i++) printf("%lldx", (long long)t->dims[i]);
  printf("%s>", tt_dtype_mlir(t->dtype));
}

static void fill(void* data, const mlir_type_t* t, const char* values) {
  double list[256];
  size_t n = 0, count = mlir_type_count(t);
  while (values && *values && n < 256) {
    char* end;
    list[n++] = strtod(values, &end);
    if (end == values) n--;
    values = *end == ',' ? end + 1 : end == values ? "" : end;
  }
  for (size_t i = 0; i < count; i++) {
    double v = n ? list[i % n] : tt_is_integral(t->dtype) ? (double)(i % 120) : 0.5 * (double)(i % 100);
    store(data, i, t->dtype, v);
  }
}

// ---------------------------------------------------------------- work
static int compile_for_tpu(const options_t* o, tt_plugin_t* plugin, const char* text, size_t len) {
  tt_topology_t* topology;
  tt_exe_stats_t s;
  tt_status_t status = tt_topology_create(plugin, o->tpu, &topology);
  if (status) return fail(status, o->tpu);
  double start = now_us();
  status = tt_topology_compile(topology, text, len, o->flags, &s, NULL, NULL);
  double took = now_us() - start;
  tt_topology_release(topology);
  if (status) return fail(status, o->file);
  printf("%s: compiled for %s in %.0f ms\n", o->file, o->tpu, took / 1e3);
  printf("bytes: code %lld, arguments %lld, outputs %lld, alias %lld, temporary %lld\n", (long long)s.code_bytes,
         (long long)s.argument_bytes, (long long)s.output_bytes, (long long)s.alias_bytes, (long long)s.temp_bytes);
  printf("flops %g, bytes accessed %g, seconds %g\n", s.flops, s.bytes_accessed, s.optimal_seconds);
  return 0;
}

static int print_outputs(const options_t* o, tt_client_t* client, tt_pbuf_t** buffers, const mlir_type_t* types,
                         int n) {
  int rc = 0;
  for (int i = 0; i < n; i++) {
    size_t bytes = mlir_type_bytes(&types[i]), count = mlir_type_count(&types[i]);
    void* data = malloc(bytes + 1);
    tt_status_t status =
        data ? tt_pbuf_to_host(client, buffers[i], data, bytes) : tt_error(TT_RESOURCE_EXHAUSTED, "memory");
    if (status) {
      rc = fail(status, "output");
    } else {
      printf("output %d: ", i);
      print_type(&types[i]);
      printf(" = [");
      for (size_t k = 0; k < count && k < (size_t)o->max; k++) {
        if (k) printf(", ");
        print_element(data, k, types[i].dtype);
      }
      printf("%s]\n", count > (size_t)o->max ? ", ..." : "");
    }
    free(data);
  }
  return rc;
}

static void free_buffers(tt_client_t* client, tt_pbuf_t** buffers, int n) {
  for (int i = 0; i < n; i++) tt_pbuf_free(client, buffers[i]);
}

static int run_exe(const options_t* o, tt_client_t* client, tt_exe_t* exe, const char* text, size_t len) {
  static mlir_type_t args[MAX_ARGS], results[MAX_ARGS];
  static tt_pbuf_t *in[MAX_ARGS], *out[MAX_ARGS];
  static int64_t keep[MAX_ARGS];  // timing runs the same arguments again, so nothing is donated
  int n_args, n_results, rc = 0;
  if (!mlir_parse_main(text, len, args, MAX_ARGS, &n_args, results, MAX_ARGS, &n_results)) {
    fprintf(stderr, "hlo_run: cannot read the types of @main\n");
    return 1;
  }
  for (int i = 0; i < n_args && !rc; i++) {
    void* data = malloc(mlir_type_bytes(&args[i]) + 1);
    if (!data) return 1;
    fill(data, &args[i], o->inputs[i]);
    tt_status_t status = tt_pbuf_from_host(client, o->device, args[i].dtype, args[i].rank, args[i].dims, data,
                                           TT_HOST_COPY, NULL, NULL, &in[i]);
    free(data);
    if (status) rc = fail(status, "input");
  }
  for (int i = 0; i < n_args; i++) keep[i] = i;
  tt_status_t status = rc ? NULL : tt_exe_run(exe, n_args, in, n_args, keep, out, NULL);
  if (status) rc = fail(status, "run");
  if (!rc) rc = print_outputs(o, client, out, results, n_results);
  free_buffers(client, out, rc ? 0 : n_results);
  double start = now_us(), best = 1e30;
  for (int i = 0; i < o->time && !rc; i++) {
    double t = now_us();
    status = tt_exe_run(exe, n_args, in, n_args, keep, out, NULL);
    if (!status && n_results) status = tt_pbuf_await(client, out[0]);
    if (status) rc = fail(status, "run");
    else free_buffers(client, out, n_results);
    t = now_us() - t;
    if (t < best) best = t;
  }
  if (o->time && !rc) printf("run: best %.2f us, mean %.2f us\n", best, (now_us() - start) / o->time);
  free_buffers(client, in, n_args);
  return rc;
}

static int run(const options_t* o) {
  tt_plugin_t* plugin;
  tt_client_t* client;
  tt_exe_t* exe;
  size_t len;
  char* text = read_all(o->file, &len);
  if (!text) {
    fprintf(stderr, "hlo_run: cannot read %s\n", o->file);
    return 2;
  }
  tt_status_t status = tt_plugin_open(o->plugin, &plugin);
  if (status) return fail(status, "plugin");
  if (o->tpu) {
    int tpu_rc = compile_for_tpu(o, plugin, text, len);
    free(text);
    return tpu_rc;
  }
  tt_client_options_t client_options = {.cpu_device_count = o->device + 1};
  status = tt_client_create(plugin, &client_options, &client);
  if (status) return fail(status, "client");
  tt_compile_options_t compile_options = {.device = o->device, .overrides = o->flags};
  double start = now_us();
  status = tt_exe_compile(client, text, len, &compile_options, &exe);
  if (status) return fail(status, o->file);
  if (o->time) printf("compile: %.1f ms\n", (now_us() - start) / 1e3);
  int rc = run_exe(o, client, exe, text, len);
  tt_exe_release(exe);
  tt_client_release(client);
  tt_plugin_release(plugin);
  free(text);
  return rc;
}

int main(int argc, char** argv) {
  options_t o = {.max = 64};
  int i = 1;
  for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
    const char *name = argv[i] + 2, *value = argv[i + 1];
    if (!strcmp(name, "tpu")) o.tpu = value;
    else if (!strcmp(name, "flags")) o.flags = value;
    else if (!strcmp(name, "device")) o.device = atoi(value);
    else if (!strcmp(name, "max")) o.max = atoi(value);
    else if (!strcmp(name, "time")) o.time = atoi(value);
    else if (!strcmp(name, "input") && strchr(value, '=') && atoi(value) >= 0 && atoi(value) < MAX_ARGS)
      o.inputs[atoi(value)] = strchr(value, '=') + 1;
    else return usage();
  }
  if (argc - i != 2) return usage();
  o.plugin = argv[i];
  o.file = argv[i + 1];
  return run(&o);
}
