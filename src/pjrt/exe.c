// Executables: compile, load, store, run.
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/objects.h"

static atomic_int g_count;

static void free_executable(const tt_plugin_t* plugin, PJRT_Executable* executable) {
  if (!executable) return;
  PJRT_Executable_Destroy_Args args = TT_PJRT_ARGS(PJRT_Executable_Destroy, .executable = executable);
  TT_PJRT_CALL_QUIETLY(plugin, PJRT_Executable_Destroy, &args);
}

static void free_loaded(const tt_plugin_t* plugin, PJRT_LoadedExecutable* loaded) {
  if (!loaded) return;
  PJRT_LoadedExecutable_Destroy_Args args = TT_PJRT_ARGS(PJRT_LoadedExecutable_Destroy, .executable = loaded);
  TT_PJRT_CALL_QUIETLY(plugin, PJRT_LoadedExecutable_Destroy, &args);
}

// Wraps |loaded|, which is taken, also on failure.
static tt_status_t wrap(tt_client_t* client, PJRT_LoadedExecutable* loaded, tt_exe_t** out_exe) {
  tt_status_t status;
  tt_exe_t* exe = tt_calloc(1, sizeof *exe);
  if (!exe) {
    free_loaded(client->plugin, loaded);
    return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  }
  atomic_init(&exe->refs, 1);
  atomic_fetch_add(&g_count, 1);
  exe->client = client;
  tt_client_retain(client);
  exe->loaded = loaded;
  PJRT_LoadedExecutable_GetExecutable_Args get =
      TT_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable, .loaded_executable = loaded);
  TT_TRY_GOTO(status, fail, TT_PJRT_CALL(client->plugin, PJRT_LoadedExecutable_GetExecutable, &get));
  exe->executable = get.executable;
  PJRT_Executable_NumOutputs_Args outputs = TT_PJRT_ARGS(PJRT_Executable_NumOutputs, .executable = exe->executable);
  TT_TRY_GOTO(status, fail, TT_PJRT_CALL(client->plugin, PJRT_Executable_NumOutputs, &outputs));
  exe->output_count = (int)outputs.num_outputs;
  PJRT_Executable_GetCompiledMemoryStats_Args memory =
      TT_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats, .executable = exe->executable);
  status = TT_PJRT_CALL(client->plugin, PJRT_Executable_GetCompiledMemoryStats, &memory);
  if (!status && memory.temp_size_in_bytes > 0) exe->temp_bytes = memory.temp_size_in_bytes;
  tt_status_free(status);  // a plugin that cannot say: unknown
  *out_exe = exe;
  return NULL;
fail:
  tt_exe_release(exe);
  return status;
}

static tt_status_t write_options(const tt_client_t* client, const tt_compile_options_t* options, tt_strbuf_t* out) {
  int device = options ? options->device : 0;
  if (device < 0 || device >= client->device_count) {
    return tt_error(TT_INVALID_ARGUMENT, "device %d is not among the %d devices of platform %s", device,
                    client->device_count, client->platform);
  }
  int replicas = options && options->replicas > 1 ? options->replicas : 1;
  if (device + replicas > client->device_count) {
    return tt_error(TT_INVALID_ARGUMENT, "%d replicas from device %d on, of the %d devices of platform %s", replicas,
                    device, client->device_count, client->platform);
  }
  int* ids = tt_malloc((size_t)replicas * sizeof *ids);
  if (!ids) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (int i = 0; i < replicas; i++) ids[i] = client->devices[device + i].id;
  tt_spread_t spread = {replicas, 1, ids};
  tt_status_t status = tt_compile_options_write(&spread, client->flags, options ? options->overrides : NULL,
                                                &client->plugin->unknown_flags, out);
  tt_free(ids);
  return status;
}

static tt_status_t has_room(const tt_client_t* client) {
  if (tt_exe_count() < client->max_exes) return NULL;
  return tt_error(TT_RESOURCE_EXHAUSTED, "%d compiled programs are in use, as many as this process has memory maps for: drop "
                  "compiled models that are no longer needed, or raise the system's vm.max_map_count", client->max_exes);
}

static tt_status_t compile_once(tt_client_t* client, const PJRT_Program* program, const tt_compile_options_t* options,
                                PJRT_LoadedExecutable** out_loaded) {
  tt_strbuf_t proto;
  tt_strbuf_init(&proto);
  tt_status_t status = write_options(client, options, &proto);
  if (!status) {
    PJRT_Client_Compile_Args args = TT_PJRT_ARGS(PJRT_Client_Compile, .client = client->client, .program = program,
                                                 .compile_options = proto.data, .compile_options_size = proto.len);
    status = TT_PJRT_CALL(client->plugin, PJRT_Client_Compile, &args);
    *out_loaded = args.executable;
  }
  tt_strbuf_deinit(&proto);
  return status;
}

tt_status_t tt_exe_compile(tt_client_t* client, const char* text, size_t text_len, const tt_compile_options_t* options,
                           tt_exe_t** out_exe) {
  *out_exe = NULL;
  TT_TRY(has_room(client));
  PJRT_Program program = tt_mlir_program(text, text_len);
  const char* overrides = options ? options->overrides : NULL;
  PJRT_LoadedExecutable* loaded = NULL;
  tt_status_t status = compile_once(client, &program, options, &loaded);
  tt_unknown_flags_t* unknown = &client->plugin->unknown_flags;
  for (int i = 0; status && i < TT_MAX_UNKNOWN_FLAGS; i++) {  // a refusal names one flag
    bool learned = tt_unknown_flags_learn(unknown, status, client->flags) ||
                   tt_unknown_flags_learn(unknown, status, overrides);
    if (!learned) break;
    tt_status_free(status);
    status = compile_once(client, &program, options, &loaded);
  }
  return status ? status : wrap(client, loaded, out_exe);
}

tt_status_t tt_exe_deserialize(tt_client_t* client, const void* bytes, size_t len, const tt_compile_options_t* options,
                               tt_exe_t** out_exe) {
  *out_exe = NULL;
  TT_TRY(has_room(client));
  tt_strbuf_t proto;
  tt_strbuf_init(&proto);
  tt_status_t status = write_options(client, options, &proto);
  if (!status) {
    PJRT_Executable_DeserializeAndLoad_Args args =
        TT_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad, .client = client->client, .serialized_executable = bytes,
                     .serialized_executable_size = len, .overridden_serialized_compile_options = proto.data,
                     .overridden_serialized_compile_options_size = proto.len);
    status = TT_PJRT_CALL(client->plugin, PJRT_Executable_DeserializeAndLoad, &args);
    if (!status) status = wrap(client, args.loaded_executable, out_exe);
  }
  tt_strbuf_deinit(&proto);
  return status;
}

tt_status_t tt_executable_serialize(const tt_plugin_t* plugin, PJRT_Executable* executable, void** out_bytes,
                                    size_t* out_len) {
  *out_bytes = NULL;
  *out_len = 0;
  PJRT_Executable_Serialize_Args args = TT_PJRT_ARGS(PJRT_Executable_Serialize, .executable = executable);
  TT_TRY(TT_PJRT_CALL(plugin, PJRT_Executable_Serialize, &args));
  void* bytes = tt_malloc(args.serialized_bytes_size);
  if (bytes) memcpy(bytes, args.serialized_bytes, args.serialized_bytes_size);
  *out_len = bytes ? args.serialized_bytes_size : 0;
  *out_bytes = bytes;
  if (args.serialized_executable_deleter) args.serialized_executable_deleter(args.serialized_executable);
  return bytes ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
}

tt_status_t tt_exe_serialize(tt_exe_t* exe, void** out_bytes, size_t* out_len) {
  return tt_executable_serialize(exe->client->plugin, exe->executable, out_bytes, out_len);
}

void tt_exe_retain(tt_exe_t* exe) { atomic_fetch_add(&exe->refs, 1); }

void tt_exe_release(tt_exe_t* exe) {
  if (!exe || atomic_fetch_sub(&exe->refs, 1) != 1) return;
  free_executable(exe->client->plugin, exe->executable);
  free_loaded(exe->client->plugin, exe->loaded);
  tt_client_release(exe->client);
  atomic_fetch_sub(&g_count, 1);
  tt_free(exe);
}

bool tt_exe_is_shared(const tt_exe_t* exe) { return atomic_load(&exe->refs) > 1; }
int tt_exe_count(void) { return atomic_load(&g_count); }

int tt_exe_output_count(const tt_exe_t* exe) { return exe->output_count; }
int64_t tt_exe_temp_bytes(const tt_exe_t* exe) { return exe->temp_bytes; }

tt_status_t tt_exe_run(tt_exe_t* exe, int n_args, tt_pbuf_t* const* args, int n_keep, const int64_t* keep,
                       tt_pbuf_t** out_buffers, tt_pevent_t** out_done) {
  PJRT_ExecuteOptions options = {
      .struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
      .non_donatable_input_indices = keep,
      .num_non_donatable_input_indices = (size_t)n_keep,
  };
  PJRT_LoadedExecutable_Execute_Args call = TT_PJRT_ARGS(
      PJRT_LoadedExecutable_Execute, .executable = exe->loaded, .options = &options, .argument_lists = &args,
      .num_devices = 1, .num_args = (size_t)n_args, .output_lists = &out_buffers, .device_complete_events = out_done);
  if (out_done) *out_done = NULL;
  return TT_PJRT_CALL(exe->client->plugin, PJRT_LoadedExecutable_Execute, &call);
}

tt_status_t tt_exe_run_all(tt_exe_t* exe, int replicas, int n_args, tt_pbuf_t* const* const* args,
                           tt_pbuf_t** const* out_buffers) {
  PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE};
  PJRT_LoadedExecutable_Execute_Args call =
      TT_PJRT_ARGS(PJRT_LoadedExecutable_Execute, .executable = exe->loaded, .options = &options,
                   .argument_lists = args, .num_devices = (size_t)replicas, .num_args = (size_t)n_args,
                   .output_lists = out_buffers);
  return TT_PJRT_CALL(exe->client->plugin, PJRT_LoadedExecutable_Execute, &call);
}

// ---------------------------------------------------------------- estimates
static double property(const PJRT_Executable_GetCostAnalysis_Args* costs, const char* name) {
  size_t len = strlen(name);
  for (size_t i = 0; i < costs->num_properties; i++) {
    const PJRT_NamedValue* v = &costs->properties[i];
    if (v->name_size != len || memcmp(v->name, name, len) != 0) continue;
    if (v->type == PJRT_NamedValue_kFloat) return (double)v->float_value;
    if (v->type == PJRT_NamedValue_kInt64) return (double)v->int64_value;
  }
  return -1;
}

tt_status_t tt_executable_stats(const tt_plugin_t* plugin, PJRT_Executable* executable, tt_exe_stats_t* out_stats) {
  *out_stats = (tt_exe_stats_t){-1, -1, -1, -1, -1, -1, -1, -1, -1};
  PJRT_Executable_GetCompiledMemoryStats_Args memory =
      TT_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats, .executable = executable);
  tt_status_t status = TT_PJRT_CALL(plugin, PJRT_Executable_GetCompiledMemoryStats, &memory);
  if (!status) {
    out_stats->code_bytes = memory.generated_code_size_in_bytes;
    out_stats->argument_bytes = memory.argument_size_in_bytes;
    out_stats->output_bytes = memory.output_size_in_bytes;
    out_stats->alias_bytes = memory.alias_size_in_bytes;
    out_stats->temp_bytes = memory.temp_size_in_bytes;
    // A plugin older than the field leaves it zero.
    out_stats->peak_bytes = memory.peak_memory_in_bytes ? memory.peak_memory_in_bytes : -1;
  } else if (tt_status_code(status) != TT_UNIMPLEMENTED) {
    return status;
  }
  tt_status_free(status);
  PJRT_Executable_GetCostAnalysis_Args costs = TT_PJRT_ARGS(PJRT_Executable_GetCostAnalysis, .executable = executable);
  status = TT_PJRT_CALL(plugin, PJRT_Executable_GetCostAnalysis, &costs);
  if (!status) {
    out_stats->flops = property(&costs, "flops");
    out_stats->bytes_accessed = property(&costs, "bytes accessed");
    out_stats->optimal_seconds = property(&costs, "optimal_seconds");
  } else if (tt_status_code(status) != TT_UNIMPLEMENTED) {
    return status;
  }
  tt_status_free(status);
  return NULL;
}

tt_status_t tt_exe_stats(tt_exe_t* exe, tt_exe_stats_t* out_stats) {
  return tt_executable_stats(exe->client->plugin, exe->executable, out_stats);
}
