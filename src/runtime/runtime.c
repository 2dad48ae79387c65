#define _GNU_SOURCE
#include "runtime/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cache/disk.h"
#include "runtime/defer.h"
#include "runtime/environment.h"

rt_t g_rt = {.precision = HLO_PRECISION_HIGHEST, .default_dtype = TT_F32,
             .plan_limits = {.whole = 8 << 20, .parts = 16, .smallest = 64 << 10}};

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_open_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool g_is_open, g_bad_fork;

void rt_lock(void) { pthread_mutex_lock(&g_lock); }
void rt_unlock(void) { pthread_mutex_unlock(&g_lock); }

// The lock may be held by a thread that does not exist in the child; the child may only be told that it cannot go on.
static void after_fork_in_child(void) {
  if (!atomic_load(&g_is_open)) return;
  atomic_store(&g_bad_fork, true);
  pthread_mutex_init(&g_lock, NULL);
}

// ---------------------------------------------------------------- opening
static tt_status_t open_locked(const tt_runtime_options_t* o) {
  tt_plugin_t* plugin = NULL;
  tt_client_t* client = NULL;
  tt_status_t status = NULL;
  TT_TRY(tt_plugin_open(o->plugin_path, &plugin));
  tt_client_options_t options = {.cpu_device_count = o->cpu_device_count, .extra = o->client_options};
  TT_TRY_GOTO(status, fail, tt_client_create(plugin, &options, &client));
  int n = tt_client_device_count(client);
  if (n > TT_MAX_DEVICES) n = TT_MAX_DEVICES;
  g_rt.devices = tt_calloc((size_t)(n ? n : 1), sizeof *g_rt.devices);
  tt_environment_t about = {.plugin = plugin, .platform = tt_client_platform(client), .version = tt_client_platform_version(client),
                            .kind = tt_client_device_kind(client, 0), .flags = tt_client_flags(client),
                            .fast_flags = tt_client_fast_flags(client)};
  g_rt.environment = rt_environment_text(&about);
  if (!g_rt.devices || !g_rt.environment) {
    status = tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    goto fail;
  }
  for (int i = 0; i < n; i++) {
    rt_device_t* d = &g_rt.devices[i];
    d->live.next = d->live.prev = &d->live;
    TT_TRY_GOTO(status, fail, tt_rng_create(&d->rng));
  }
  g_rt.caps = tt_client_caps(client);
  g_rt.keep_programs = tt_client_max_executables(client) / 2;
  const char* keep_programs = getenv("TORCH_TPU_KEEP_PROGRAMS");
  if (keep_programs && atoi(keep_programs) > 0) g_rt.keep_programs = atoi(keep_programs);
  // For the sweep over TPU compilers: every program is lowered for another platform and written out before it compiles.
  const char* platform = getenv("TORCH_TPU_LOWER_FOR");
  const char* dump = getenv("TORCH_TPU_DUMP");
  if (platform && *platform) g_rt.caps = tt_platform_caps(platform);
  rt_dump_open(dump);
  bool keep = !(platform && *platform) && !(dump && *dump);  // kept executables would hide their programs
  if (keep && o->cache_dir && *o->cache_dir) rt_disk_open(o->cache_dir, o->cache_limit_bytes);
  g_rt.pid = (int)getpid();
  g_rt.n_devices = n;
  g_rt.client = client;
  tt_plugin_release(plugin);
  pthread_atfork(NULL, NULL, after_fork_in_child);
  atomic_store(&g_is_open, true);
  return NULL;
fail:
  tt_client_release(client);
  tt_plugin_release(plugin);
  return status;
}

tt_status_t tt_runtime_open(const tt_runtime_options_t* options) {
  if (atomic_load(&g_bad_fork)) return rt_check_device(0);
  if (atomic_load(&g_is_open)) return NULL;
  pthread_mutex_lock(&g_open_lock);
  tt_status_t status = atomic_load(&g_is_open) ? NULL : open_locked(options);
  pthread_mutex_unlock(&g_open_lock);
  return status;
}

bool tt_runtime_is_open(void) { return atomic_load(&g_is_open); }
bool tt_runtime_in_bad_fork(void) { return atomic_load(&g_bad_fork); }

tt_status_t rt_check_device(int device) {
  if (atomic_load_explicit(&g_bad_fork, memory_order_relaxed))
    return tt_error(TT_FAILED_PRECONDITION,
                    "Cannot re-initialize TPU in forked subprocess. To use TPU with multiprocessing, you must use the "
                    "'spawn' start method");
  if (!atomic_load_explicit(&g_is_open, memory_order_relaxed))
    return tt_error(TT_FAILED_PRECONDITION, "the tpu runtime is not open");
  if (device < 0 || device >= g_rt.n_devices)
    return tt_error(TT_INVALID_ARGUMENT, "device index %d does not exist: there %s %d device%s (tpu:0..%d)", device,
                    g_rt.n_devices == 1 ? "is" : "are", g_rt.n_devices, g_rt.n_devices == 1 ? "" : "s", g_rt.n_devices - 1);
  return NULL;
}

int tt_device_count(void) { return atomic_load(&g_is_open) ? g_rt.n_devices : 0; }
const char* tt_device_kind(int device) {
  return atomic_load(&g_is_open) && device >= 0 && device < g_rt.n_devices ? tt_client_device_kind(g_rt.client, device) : "";
}

const char* tt_runtime_info(const char* what) {
  static char version[32];
  if (!atomic_load(&g_is_open)) return "";
  const tt_plugin_t* plugin = tt_client_plugin(g_rt.client);
  if (!strcmp(what, "platform")) return tt_client_platform(g_rt.client);
  if (!strcmp(what, "platform_version")) return tt_client_platform_version(g_rt.client);
  if (!strcmp(what, "plugin_path")) return tt_plugin_path(plugin);
  if (!strcmp(what, "environment")) return g_rt.environment;
  if (!strcmp(what, "cache_dir")) return rt_disk_dir();
  if (!strcmp(what, "api_version")) {
    int major, minor;
    tt_plugin_version(plugin, &major, &minor);
    snprintf(version, sizeof version, "%d.%d", major, minor);
    return version;
  }
  const char* v = tt_plugin_attribute(plugin, !strcmp(what, "stablehlo_version") ? "stablehlo_current_version" : what);
  return v ? v : "";
}

void tt_frontend_set(const tt_frontend_t* frontend) { g_rt.frontend = *frontend; }

// ---------------------------------------------------------------- modes
static _Thread_local int t_mode = -1;
static atomic_int g_default_mode = TT_MODE_STRICT;
void tt_mode_set(tt_mode_t mode) { t_mode = (int)mode; }
void tt_mode_set_default(tt_mode_t mode) { atomic_store(&g_default_mode, (int)mode); }
tt_mode_t tt_mode_get(void) { return (tt_mode_t)(t_mode >= 0 ? t_mode : atomic_load_explicit(&g_default_mode, memory_order_relaxed)); }
void tt_precision_set(int precision) {
  rt_lock();
  g_rt.precision = precision < 0 ? 0 : precision > 2 ? 2 : precision;
  rt_unlock();
}

void tt_default_dtype_set(tt_dtype_t dtype) {
  rt_lock();
  g_rt.default_dtype = dtype;
  rt_unlock();
}

void rt_log(const char* format, ...) {
  const char* verbose = getenv("TORCH_TPU_VERBOSE");
  if (!verbose || !*verbose || *verbose == '0') return;
  va_list args;
  va_start(args, format);
  fputs("torch_tpu: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

// ---------------------------------------------------------------- counters
static const char* const k_counter_names[] = {
#define X(name) #name,
    RT_COUNTERS(X)
#undef X
    "allocs", "disk_rejects", NULL};

const char* tt_counter_name(int i) { return i >= 0 && i <= RT_COUNTER_COUNT + 1 ? k_counter_names[i] : NULL; }

int64_t tt_counter(const char* name) {
  if (!strcmp(name, "allocs")) return (int64_t)tt_alloc_count();
  if (!strcmp(name, "disk_rejects")) return rt_disk_rejects();
  for (int i = 0; i < RT_COUNTER_COUNT; i++)
    if (!strcmp(name, k_counter_names[i])) {
      rt_lock();
      int64_t n = g_rt.counters[i];
      rt_unlock();
      return n;
    }
  return -1;
}

// ---------------------------------------------------------------- waiting
// Waits for every live value of |device| (-1: all). The first failure is returned.
static tt_status_t await_live(int device) {
  tt_status_t first = NULL;
  for (int d = 0; d < g_rt.n_devices; d++) {
    if (device >= 0 && d != device) continue;
    for (;;) {  // one unready cell at a time: the list may change while the lock is not held
      rt_cell_t* cell = NULL;
      rt_lock();
      tt_storage_t* head = &g_rt.devices[d].live;
      for (tt_storage_t* s = head->next; s != head && !cell; s = s->next)
        if (s->cell && !s->cell->ready && !s->cell->pending) cell = rt_cell_retain(s->cell);
      rt_unlock();
      if (!cell) break;
      tt_status_t status = tt_pbuf_await(g_rt.client, cell->buffer);
      rt_lock();
      cell->ready = true;
      rt_cell_release(cell);
      rt_unlock();
      if (first) tt_status_free(status);
      else first = status;
    }
  }
  return first;
}

tt_status_t tt_device_synchronize(int device) {
  TT_TRY(rt_check_device(device < 0 ? 0 : device));
  rt_defer_ask("synchronize");
  rt_lock();
  RT_COUNT(syncs, 1);
  tt_status_t flushed = rt_defer_flush(RT_CUT_SYNC);
  rt_unlock();
  tt_status_t waited = await_live(device);
  if (flushed) {
    tt_status_free(waited);
    waited = flushed;
  }
  tt_status_t checks = rt_checks_drain();
  if (!checks) return waited;
  tt_status_free(waited);
  return checks;
}

void tt_runtime_shutdown(void) {
  if (!atomic_load(&g_is_open) || atomic_load(&g_bad_fork)) return;
  rt_fused_stop();
  rt_lock();
  tt_status_free(rt_defer_flush(RT_CUT_SYNC));
  rt_unlock();
  tt_status_free(await_live(-1));
}

tt_status_t tt_device_mem_info(int device, int64_t* out_free, int64_t* out_total) {
  *out_free = *out_total = 0;
  TT_TRY(rt_check_device(device));
  int64_t in_use = 0, limit = 0, peak = 0;
  tt_status_t status = tt_client_memory_stats(g_rt.client, device, &in_use, &limit, &peak);
  if (!status && limit > 0) {
    *out_total = limit;
    *out_free = limit - in_use;
    return NULL;
  }
  tt_status_free(status);
  // The device is the host's memory: what the machine has.
  int64_t page = sysconf(_SC_PAGESIZE);
  *out_total = (int64_t)sysconf(_SC_PHYS_PAGES) * page;
  *out_free = (int64_t)sysconf(_SC_AVPHYS_PAGES) * page;
  return NULL;
}

tt_status_t rt_explain_oom(tt_status_t status, int device) {
  if (tt_status_code(status) != TT_RESOURCE_EXHAUSTED) return status;
  if (strstr(tt_status_message(status), "TPU out of memory")) return status;  // a recorded operation's, explained already
  char largest[2048];
  tt_memory_largest(device, largest, sizeof largest);
  rt_lock();
  tt_memory_stats_t* m = &g_rt.devices[device].memory;
  m->oom_count++;
  int64_t allocated = m->allocated, live = m->live_storages;
  rt_unlock();
  tt_status_t out = tt_error(TT_RESOURCE_EXHAUSTED,
                             "TPU out of memory on tpu:%d. %.2f MiB are held by %lld live tensors; the largest are:\n%s"
                             "Free some (del, smaller batch, no_grad) and go on: the runtime is usable. The plugin said: %s",
                             device, (double)allocated / 1048576.0, (long long)live, largest, tt_status_message(status));
  tt_status_free(status);
  return out;
}
