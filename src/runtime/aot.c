// Ahead of time: the public face of topologies.
#include "tt/aot.h"

#include <string.h>

#include "base/alloc.h"
#include "cache/disk.h"
#include "pjrt/pjrt.h"
#include "runtime/environment.h"

struct tt_aot_t {
  tt_plugin_t* plugin;
  tt_topology_t* topology;
  int devices;
};

static tt_compiled_t* body(const tt_aot_program_t* program) { return (tt_compiled_t*)(uintptr_t)program; }

tt_status_t tt_aot_open(const char* library, const char* topology, tt_aot_t** out_aot) {
  *out_aot = NULL;
  tt_aot_t* aot = tt_calloc(1, sizeof *aot);
  if (!aot) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_status_t status = tt_plugin_open(library, &aot->plugin);
  if (!status) status = tt_topology_create(aot->plugin, topology, &aot->topology);
  if (!status) status = tt_topology_devices(aot->topology, &aot->devices);
  if (status) {
    tt_aot_close(aot);
    return status;
  }
  *out_aot = aot;
  return NULL;
}

void tt_aot_close(tt_aot_t* aot) {
  if (!aot) return;
  tt_topology_release(aot->topology);
  if (aot->plugin) tt_plugin_release(aot->plugin);
  tt_free(aot);
}

int tt_aot_devices(const tt_aot_t* aot) { return aot->devices; }
const char* tt_aot_device_kind(const tt_aot_t* aot) { return tt_topology_device_kind(aot->topology); }
const char* tt_aot_platform_version(const tt_aot_t* aot) { return tt_topology_platform_version(aot->topology); }

tt_status_t tt_aot_compile(tt_aot_t* aot, const char* text, size_t len, const char* flags, int replicas,
                           int partitions, tt_aot_program_t** out_program) {
  return tt_topology_compile_program(aot->topology, text, len, flags, replicas, partitions,
                                     (tt_compiled_t**)out_program);
}

void tt_aot_program_free(tt_aot_program_t* program) { tt_compiled_free(body(program)); }

tt_status_t tt_aot_memory(const tt_aot_program_t* program, tt_aot_memory_t* out_memory) {
  tt_exe_stats_t s;
  *out_memory = (tt_aot_memory_t){-1, -1, -1, -1, -1, -1};
  TT_TRY(tt_compiled_stats(body(program), &s));
  *out_memory = (tt_aot_memory_t){s.code_bytes,  s.argument_bytes, s.output_bytes,
                                  s.alias_bytes, s.temp_bytes,     s.peak_bytes};
  return NULL;
}

tt_status_t tt_aot_costs(const tt_aot_program_t* program, void (*each)(void* ctx, const char* name, double value),
                         void* ctx) {
  return tt_compiled_costs(body(program), each, ctx);
}

tt_status_t tt_aot_optimized(const tt_aot_program_t* program, char out_format[32], void** out_bytes, size_t* out_len) {
  return tt_compiled_optimized(body(program), out_format, out_bytes, out_len);
}

tt_status_t tt_aot_serialize(const tt_aot_program_t* program, void** out_bytes, size_t* out_len) {
  return tt_compiled_serialize(body(program), out_bytes, out_len);
}

tt_status_t tt_aot_store(const tt_aot_t* aot, const tt_aot_program_t* program, const char* text, size_t len,
                         const char* flags, int device, const char* cache_dir) {
  enum { LIMIT_GIB = 16 };
  if (!rt_disk_is_open()) rt_disk_open(cache_dir, (int64_t)LIMIT_GIB << 30);
  if (!rt_disk_is_open() || strcmp(rt_disk_dir(), cache_dir) != 0)
    return tt_error(TT_FAILED_PRECONDITION, "the cache in %s cannot be opened%s%s", cache_dir,
                    rt_disk_is_open() ? ": this process uses " : "", rt_disk_dir());
  const char* platform = tt_topology_platform(aot->topology);
  tt_environment_t about = {.plugin = aot->plugin, .platform = platform, .version = tt_aot_platform_version(aot),
                            .kind = tt_aot_device_kind(aot), .flags = tt_platform_flags(platform),
                            .fast_flags = tt_platform_fast_flags(platform)};
  char* environment = rt_environment_text(&about);
  void* bytes = NULL;
  size_t n = 0;
  tt_strbuf_t key;
  tt_strbuf_init(&key);
  tt_status_t status = environment ? tt_aot_serialize(program, &bytes, &n)
                                   : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  if (!status) rt_program_key(environment, device, flags, text, len, &key);
  if (!status && (key.failed || !rt_disk_store(key.data, key.len, NULL, 0, bytes, n)))
    status = tt_error(TT_FAILED_PRECONDITION, "the cache in %s took nothing: is it full, or not to be written?", cache_dir);
  tt_strbuf_deinit(&key);
  tt_free(environment);
  tt_free(bytes);
  return status;
}

void tt_aot_bytes_free(void* bytes) { tt_free(bytes); }
