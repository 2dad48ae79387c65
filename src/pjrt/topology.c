// Compiling for chips that are not here.
#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/environment.h"
#include "pjrt/objects.h"

// Strings of a plugin need not end with a NUL: they are kept, ended, in the topology.
static void keep_text(char* out, size_t size, const char* data, size_t len) {
  if (len >= size) len = size - 1;
  if (data) memcpy(out, data, len);
  out[data ? len : 0] = 0;
}

static void read_texts(tt_topology_t* topology) {
  PJRT_TopologyDescription_PlatformVersion_Args version =
      TT_PJRT_ARGS(PJRT_TopologyDescription_PlatformVersion, .topology = topology->topology);
  tt_status_t status = TT_PJRT_CALL(topology->plugin, PJRT_TopologyDescription_PlatformVersion, &version);
  if (!status)
    keep_text(topology->version, sizeof topology->version, version.platform_version, version.platform_version_size);
  tt_status_free(status);
  PJRT_TopologyDescription_PlatformName_Args name =
      TT_PJRT_ARGS(PJRT_TopologyDescription_PlatformName, .topology = topology->topology);
  status = TT_PJRT_CALL(topology->plugin, PJRT_TopologyDescription_PlatformName, &name);
  if (!status) keep_text(topology->platform, sizeof topology->platform, name.platform_name, name.platform_name_size);
  for (char* c = topology->platform; *c; c++) *c = (char)tolower((unsigned char)*c);
  tt_status_free(status);
  PJRT_TopologyDescription_GetDeviceDescriptions_Args devices =
      TT_PJRT_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions, .topology = topology->topology);
  status = TT_PJRT_CALL(topology->plugin, PJRT_TopologyDescription_GetDeviceDescriptions, &devices);
  if (!status && devices.num_descriptions) {
    PJRT_DeviceDescription_Kind_Args kind =
        TT_PJRT_ARGS(PJRT_DeviceDescription_Kind, .device_description = devices.descriptions[0]);
    status = TT_PJRT_CALL(topology->plugin, PJRT_DeviceDescription_Kind, &kind);
    if (!status) keep_text(topology->kind, sizeof topology->kind, kind.device_kind, kind.device_kind_size);
  }
  tt_status_free(status);
}

tt_status_t tt_topology_create(tt_plugin_t* plugin, const char* name, tt_topology_t** out_topology) {
  *out_topology = NULL;
  tt_environment_before_topology();
  TT_TRY(tt_plugin_initialize(plugin));
  PJRT_TopologyDescription_Create_Args args =
      TT_PJRT_ARGS(PJRT_TopologyDescription_Create, .topology_name = name, .topology_name_size = strlen(name));
  tt_status_t status = TT_PJRT_CALL(plugin, PJRT_TopologyDescription_Create, &args);
  if (status) return tt_status_annotate(status, "topology \"%s\"", name);
  tt_topology_t* topology = tt_calloc(1, sizeof *topology);
  if (!topology) {
    PJRT_TopologyDescription_Destroy_Args destroy =
        TT_PJRT_ARGS(PJRT_TopologyDescription_Destroy, .topology = args.topology);
    TT_PJRT_CALL_QUIETLY(plugin, PJRT_TopologyDescription_Destroy, &destroy);
    return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  topology->plugin = plugin;
  tt_plugin_retain(plugin);
  topology->topology = args.topology;
  read_texts(topology);
  *out_topology = topology;
  return NULL;
}

void tt_topology_release(tt_topology_t* topology) {
  if (!topology) return;
  PJRT_TopologyDescription_Destroy_Args args =
      TT_PJRT_ARGS(PJRT_TopologyDescription_Destroy, .topology = topology->topology);
  TT_PJRT_CALL_QUIETLY(topology->plugin, PJRT_TopologyDescription_Destroy, &args);
  tt_plugin_release(topology->plugin);
  tt_free(topology);
}

tt_status_t tt_topology_devices(const tt_topology_t* topology, int* out_count) {
  PJRT_TopologyDescription_GetDeviceDescriptions_Args args =
      TT_PJRT_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions, .topology = topology->topology);
  *out_count = 0;
  TT_TRY(TT_PJRT_CALL(topology->plugin, PJRT_TopologyDescription_GetDeviceDescriptions, &args));
  *out_count = (int)args.num_descriptions;
  return NULL;
}

const char* tt_topology_device_kind(const tt_topology_t* topology) { return topology->kind; }
const char* tt_topology_platform(const tt_topology_t* topology) { return topology->platform; }
const char* tt_topology_platform_version(const tt_topology_t* topology) { return topology->version; }

// ---------------------------------------------------------------- compiling
// The ids of the first |n| devices in the topology's order; tt_free them.
static tt_status_t device_ids(const tt_topology_t* topology, int n, int** out_ids) {
  PJRT_TopologyDescription_GetDeviceDescriptions_Args all =
      TT_PJRT_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions, .topology = topology->topology);
  TT_TRY(TT_PJRT_CALL(topology->plugin, PJRT_TopologyDescription_GetDeviceDescriptions, &all));
  if ((size_t)n > all.num_descriptions)
    return tt_error(TT_INVALID_ARGUMENT, "%d devices of a topology that has %zu", n, all.num_descriptions);
  int* ids = tt_malloc((size_t)n * sizeof *ids);
  if (!ids) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_status_t status = NULL;
  for (int i = 0; i < n && !status; i++) {
    PJRT_DeviceDescription_Id_Args id =
        TT_PJRT_ARGS(PJRT_DeviceDescription_Id, .device_description = all.descriptions[i]);
    status = TT_PJRT_CALL(topology->plugin, PJRT_DeviceDescription_Id, &id);
    ids[i] = id.id;
  }
  if (status) tt_free(ids);
  else *out_ids = ids;
  return status;
}

static tt_status_t compile_once(tt_topology_t* topology, const PJRT_Program* program, const char* overrides,
                                const tt_spread_t* spread, PJRT_Executable** out_executable) {
  tt_strbuf_t proto;
  tt_strbuf_init(&proto);
  tt_status_t status =
      tt_compile_options_write(spread, NULL, overrides, &topology->plugin->unknown_flags, &proto);
  if (!status) {
    PJRT_Compile_Args args = TT_PJRT_ARGS(PJRT_Compile, .topology = topology->topology, .program = program,
                                          .compile_options = proto.data, .compile_options_size = proto.len);
    status = TT_PJRT_CALL(topology->plugin, PJRT_Compile, &args);
    *out_executable = args.executable;
  }
  tt_strbuf_deinit(&proto);
  return status;
}

tt_status_t tt_topology_compile_program(tt_topology_t* topology, const char* text, size_t text_len,
                                        const char* overrides, int replicas, int partitions,
                                        tt_compiled_t** out_compiled) {
  *out_compiled = NULL;
  int devices = 1;  // any topology has one: a plugin that cannot count is asked only for more
  if (partitions > 1 || replicas > 1) TT_TRY(tt_topology_devices(topology, &devices));
  if (partitions < 1 || replicas < 1 || (int64_t)partitions * replicas > devices)
    return tt_error(TT_INVALID_ARGUMENT, "%d replicas of %d partitions on a topology of %d devices", replicas,
                    partitions, devices);
  int* ids = NULL;
  if (partitions > 1 || replicas > 1) TT_TRY(device_ids(topology, replicas * partitions, &ids));
  tt_spread_t spread = {replicas, partitions, ids};
  tt_compiled_t* compiled = tt_calloc(1, sizeof *compiled);
  if (!compiled) {
    tt_free(ids);
    return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  PJRT_Program program = tt_mlir_program(text, text_len);
  tt_status_t status = compile_once(topology, &program, overrides, &spread, &compiled->executable);
  for (int i = 0; status && i < TT_MAX_UNKNOWN_FLAGS; i++) {
    if (!tt_unknown_flags_learn(&topology->plugin->unknown_flags, status, overrides)) break;
    tt_status_free(status);
    status = compile_once(topology, &program, overrides, &spread, &compiled->executable);
  }
  tt_free(ids);
  if (status) {
    tt_free(compiled);
    return status;
  }
  compiled->plugin = topology->plugin;
  tt_plugin_retain(compiled->plugin);
  *out_compiled = compiled;
  return NULL;
}

void tt_compiled_free(tt_compiled_t* compiled) {
  if (!compiled) return;
  PJRT_Executable_Destroy_Args args = TT_PJRT_ARGS(PJRT_Executable_Destroy, .executable = compiled->executable);
  TT_PJRT_CALL_QUIETLY(compiled->plugin, PJRT_Executable_Destroy, &args);
  tt_plugin_release(compiled->plugin);
  tt_free(compiled);
}

tt_status_t tt_topology_compile(tt_topology_t* topology, const char* text, size_t text_len, const char* overrides,
                                tt_exe_stats_t* out_stats, void** out_bytes, size_t* out_len) {
  if (out_bytes) *out_bytes = NULL;
  if (out_len) *out_len = 0;
  tt_compiled_t* compiled;
  TT_TRY(tt_topology_compile_program(topology, text, text_len, overrides, 1, 1, &compiled));
  tt_status_t status = out_stats ? tt_compiled_stats(compiled, out_stats) : NULL;
  if (!status && out_bytes && out_len) status = tt_compiled_serialize(compiled, out_bytes, out_len);
  tt_compiled_free(compiled);
  return status;
}

// ---------------------------------------------------------------- what the compiler says about a program
tt_status_t tt_compiled_stats(const tt_compiled_t* compiled, tt_exe_stats_t* out_stats) {
  return tt_executable_stats(compiled->plugin, compiled->executable, out_stats);
}

tt_status_t tt_compiled_serialize(const tt_compiled_t* compiled, void** out_bytes, size_t* out_len) {
  return tt_executable_serialize(compiled->plugin, compiled->executable, out_bytes, out_len);
}

tt_status_t tt_compiled_costs(const tt_compiled_t* compiled, void (*each)(void* ctx, const char* name, double value),
                              void* ctx) {
  PJRT_Executable_GetCostAnalysis_Args costs =
      TT_PJRT_ARGS(PJRT_Executable_GetCostAnalysis, .executable = compiled->executable);
  TT_TRY(TT_PJRT_CALL(compiled->plugin, PJRT_Executable_GetCostAnalysis, &costs));
  for (size_t i = 0; i < costs.num_properties; i++) {
    const PJRT_NamedValue* v = &costs.properties[i];
    char name[160];
    keep_text(name, sizeof name, v->name, v->name_size);
    if (v->type == PJRT_NamedValue_kFloat) each(ctx, name, (double)v->float_value);
    if (v->type == PJRT_NamedValue_kInt64) each(ctx, name, (double)v->int64_value);
  }
  return NULL;
}

tt_status_t tt_compiled_optimized(const tt_compiled_t* compiled, char out_format[32], void** out_bytes,
                                  size_t* out_len) {
  *out_bytes = NULL;
  *out_len = 0;
  PJRT_Program program = {.struct_size = PJRT_Program_STRUCT_SIZE};
  PJRT_Executable_OptimizedProgram_Args args =
      TT_PJRT_ARGS(PJRT_Executable_OptimizedProgram, .executable = compiled->executable, .program = &program);
  TT_TRY(TT_PJRT_CALL(compiled->plugin, PJRT_Executable_OptimizedProgram, &args));  // the size
  program.code = tt_malloc(program.code_size + 1);
  if (!program.code) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_status_t status = TT_PJRT_CALL(compiled->plugin, PJRT_Executable_OptimizedProgram, &args);
  if (status) {
    tt_free(program.code);
    return status;
  }
  keep_text(out_format, 32, program.format, program.format_size);
  *out_bytes = program.code;
  *out_len = program.code_size;
  return NULL;
}
