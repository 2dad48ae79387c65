// Compiling for chips that are not here.
#include <string.h>

#include "base/alloc.h"
#include "pjrt/environment.h"
#include "pjrt/objects.h"

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

static tt_status_t compile_once(tt_topology_t* topology, const PJRT_Program* program, const char* overrides,
                                PJRT_Executable** out_executable) {
  tt_strbuf_t proto;
  tt_strbuf_init(&proto);
  tt_status_t status = tt_compile_options_write(-1, NULL, overrides, &topology->plugin->unknown_flags, &proto);
  if (!status) {
    PJRT_Compile_Args args = TT_PJRT_ARGS(PJRT_Compile, .topology = topology->topology, .program = program,
                                          .compile_options = proto.data, .compile_options_size = proto.len);
    status = TT_PJRT_CALL(topology->plugin, PJRT_Compile, &args);
    *out_executable = args.executable;
  }
  tt_strbuf_deinit(&proto);
  return status;
}

static tt_status_t compile(tt_topology_t* topology, const char* text, size_t text_len, const char* overrides,
                           PJRT_Executable** out_executable) {
  PJRT_Program program = tt_mlir_program(text, text_len);
  tt_status_t status = compile_once(topology, &program, overrides, out_executable);
  for (int i = 0; status && i < TT_MAX_UNKNOWN_FLAGS; i++) {
    if (!tt_unknown_flags_learn(&topology->plugin->unknown_flags, status, overrides)) break;
    tt_status_free(status);
    status = compile_once(topology, &program, overrides, out_executable);
  }
  return status;
}

tt_status_t tt_topology_compile(tt_topology_t* topology, const char* text, size_t text_len, const char* overrides,
                                tt_exe_stats_t* out_stats, void** out_bytes, size_t* out_len) {
  if (out_bytes) *out_bytes = NULL;
  if (out_len) *out_len = 0;
  PJRT_Executable* executable = NULL;
  tt_status_t status = compile(topology, text, text_len, overrides, &executable);
  if (status) return status;
  if (out_stats) status = tt_executable_stats(topology->plugin, executable, out_stats);
  if (!status && out_bytes && out_len) {
    status = tt_executable_serialize(topology->plugin, executable, out_bytes, out_len);
  }
  PJRT_Executable_Destroy_Args args = TT_PJRT_ARGS(PJRT_Executable_Destroy, .executable = executable);
  TT_PJRT_CALL_QUIETLY(topology->plugin, PJRT_Executable_Destroy, &args);
  return status;
}
