// A program for a slice, on several devices of one client in this process.
#include "base/alloc.h"
#include "pjrt/pjrt.h"
#include "tt/aot.h"

struct tt_replicas_t {
  tt_client_t* client;
  int replicas;
};

tt_status_t tt_replicas_open(const char* library, int replicas, tt_replicas_t** out) {
  *out = NULL;
  if (replicas < 1) return tt_error(TT_INVALID_ARGUMENT, "%d replicas", replicas);
  tt_replicas_t* r = tt_calloc(1, sizeof *r);
  if (!r) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  r->replicas = replicas;
  tt_plugin_t* plugin = NULL;
  tt_client_options_t options = {.cpu_device_count = replicas};
  tt_status_t status = tt_plugin_open(library, &plugin);
  if (!status) status = tt_client_create(plugin, &options, &r->client);
  if (plugin) tt_plugin_release(plugin);  // the client keeps it
  if (!status && tt_client_device_count(r->client) < replicas)
    status = tt_error(TT_FAILED_PRECONDITION, "%d replicas want as many devices; this client has %d", replicas,
                      tt_client_device_count(r->client));
  if (status) {
    tt_replicas_close(r);
    return status;
  }
  *out = r;
  return NULL;
}

void tt_replicas_close(tt_replicas_t* r) {
  if (!r) return;
  if (r->client) tt_client_release(r->client);
  tt_free(r);
}

static size_t bytes_of(const tt_host_array_t* a) {
  size_t n = tt_dtype_size(a->dtype);
  for (int i = 0; i < a->rank; i++) n *= (size_t)a->dims[i];
  return n;
}

// Buffers of one run, and the tables by replica that point into them.
typedef struct run_t {
  int n_in, n_out;  // of all replicas
  tt_pbuf_t **in, **out;
  tt_pbuf_t* const** in_of;
  tt_pbuf_t*** out_of;
} run_t;

static bool run_init(run_t* s, int replicas, int n_args, int n_results) {
  s->n_in = replicas * n_args;
  s->n_out = replicas * n_results;
  s->in = tt_calloc((size_t)s->n_in + 1, sizeof *s->in);
  s->out = tt_calloc((size_t)s->n_out + 1, sizeof *s->out);
  s->in_of = tt_calloc((size_t)replicas, sizeof *s->in_of);
  s->out_of = tt_calloc((size_t)replicas, sizeof *s->out_of);
  if (!s->in || !s->out || !s->in_of || !s->out_of) return false;
  for (int i = 0; i < replicas; i++) {
    s->in_of[i] = s->in + (ptrdiff_t)i * n_args;
    s->out_of[i] = s->out + (ptrdiff_t)i * n_results;
  }
  return true;
}

static void run_deinit(run_t* s, tt_client_t* client) {
  for (int i = 0; s->in && i < s->n_in; i++) tt_pbuf_free(client, s->in[i]);
  for (int i = 0; s->out && i < s->n_out; i++) tt_pbuf_free(client, s->out[i]);
  tt_free(s->in);
  tt_free(s->out);
  tt_free(s->in_of);
  tt_free(s->out_of);
}

tt_status_t tt_replicas_run(tt_replicas_t* r, const char* text, size_t len, int n_args, const tt_host_array_t* args,
                            int n_results, tt_host_array_t* results) {
  tt_compile_options_t options = {.replicas = r->replicas};
  tt_exe_t* exe = NULL;
  TT_TRY(tt_exe_compile(r->client, text, len, &options, &exe));
  run_t s = {0};
  tt_status_t status = NULL;
  if (tt_exe_output_count(exe) != n_results)
    status = tt_error(TT_INVALID_ARGUMENT, "the program has %d results, there is room for %d", tt_exe_output_count(exe),
                      n_results);
  if (!status && !run_init(&s, r->replicas, n_args, n_results))
    status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (int i = 0; i < s.n_in && !status; i++)
    status = tt_pbuf_from_host(r->client, i / n_args, args[i].dtype, args[i].rank, args[i].dims, args[i].data,
                               TT_HOST_COPY, NULL, NULL, &s.in[i]);
  if (!status) status = tt_exe_run_all(exe, r->replicas, n_args, s.in_of, s.out_of);
  for (int i = 0; i < s.n_out && !status; i++)
    status = tt_pbuf_to_host(r->client, s.out[i], results[i].data, bytes_of(&results[i]));
  run_deinit(&s, r->client);
  tt_exe_release(exe);
  return status;
}
