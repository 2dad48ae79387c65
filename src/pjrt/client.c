// Clients and their devices.
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/caps.h"
#include "pjrt/objects.h"

// What the compiler behind a platform can do. Platforms not listed get the first row's caps: the safe forms.
typedef struct platform_t {
  const char* name;
  uint32_t caps;
  bool is_host_memory;
  const char* flags;       // compiler flags every program needs there to compute what PyTorch computes
  const char* fast_flags;  // further flags that trade a little speed of the program for compile time
  const char* lean_flags;  // further flags for programs whose temporaries are large
} platform_t;

// Measured with the XLA CPU plugin of API 0.106, CPU ms to compile / us to run, plugin's defaults -> fast flags,
// medians of four interleaved rounds: add 64x64 65/13 -> 33/13, tanh 256x512 58/58 -> 42/62, gelu 65/81 -> 40/83,
// row sum 18/29 -> 15/23, softmax 98/157 -> 58/240. The newer plugin (0.115) has no fusion emitters to turn off.
static const platform_t k_platforms[] = {
    {"", 0, false, NULL, NULL, NULL},
    {"cpu", TT_CAP_F64 | TT_CAP_SLOW_SMALL_CONV | TT_CAP_CUSTOM_LINALG, true,
     "?xla_cpu_enable_fast_min_max=false",  // else max(NaN, x) is x
     "?xla_cpu_use_fusion_emitters=false;?xla_backend_optimization_level=1",
     // The plugin's own schedule lets temporaries live side by side: a CNN's training step needs 17 MiB instead of 22.
     "?xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"},
    {"tpu", TT_CAP_F64 | TT_CAP_CUSTOM_LINALG, false, NULL, NULL, NULL},
    {"cuda", TT_CAP_F64, false, NULL, NULL, NULL},
    {"rocm", TT_CAP_F64, false, NULL, NULL, NULL},
};

static const platform_t* find_platform(const char* name) {
  for (size_t i = 1; i < sizeof k_platforms / sizeof k_platforms[0]; i++) {
    if (!strcmp(k_platforms[i].name, name)) return &k_platforms[i];
  }
  return &k_platforms[0];
}

const char* tt_platform_flags(const char* platform) {
  const char* flags = find_platform(platform)->flags;
  return flags ? flags : "";
}

const char* tt_platform_fast_flags(const char* platform) {
  const char* flags = find_platform(platform)->fast_flags;
  return flags ? flags : "";
}

// A program of the CPU's plugins takes 3 memory maps (code, constants, tables), as measured with API 0.106; a quarter of the
// system's maps stays for everything else.
static int max_executables(bool is_host_memory) {
  long maps = 0;
  FILE* f = is_host_memory ? fopen("/proc/sys/vm/max_map_count", "r") : NULL;
  if (!f) return INT_MAX;
  if (fscanf(f, "%ld", &maps) != 1 || maps <= 0) maps = 65530;
  fclose(f);
  return maps / 4 < INT_MAX ? (int)(maps / 4) : INT_MAX;
}

static tt_status_t no_memory(void) { return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted"); }

static tt_status_t read_names(tt_client_t* client) {
  PJRT_Client_PlatformName_Args name = TT_PJRT_ARGS(PJRT_Client_PlatformName, .client = client->client);
  PJRT_Client_PlatformVersion_Args version = TT_PJRT_ARGS(PJRT_Client_PlatformVersion, .client = client->client);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Client_PlatformName, &name));
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Client_PlatformVersion, &version));
  client->platform = tt_string_copy(name.platform_name, name.platform_name_size);
  client->platform_version = tt_string_copy(version.platform_version, version.platform_version_size);
  if (!client->platform || !client->platform_version) return no_memory();
  for (char* c = client->platform; *c; c++) *c = (char)tolower((unsigned char)*c);
  const platform_t* platform = find_platform(client->platform);
  client->caps = platform->caps;
  client->flags = platform->flags ? platform->flags : "";
  client->fast_flags = platform->fast_flags ? platform->fast_flags : "";
  client->lean_flags = platform->lean_flags ? platform->lean_flags : "";
  client->is_host_memory = platform->is_host_memory;
  client->max_exes = max_executables(client->is_host_memory);
  return NULL;
}

static tt_status_t read_device(tt_client_t* client, tt_device_t* device) {
  PJRT_Device_GetDescription_Args get = TT_PJRT_ARGS(PJRT_Device_GetDescription, .device = device->device);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Device_GetDescription, &get));
  device->description = get.device_description;
  PJRT_DeviceDescription_Id_Args id =
      TT_PJRT_ARGS(PJRT_DeviceDescription_Id, .device_description = device->description);
  PJRT_DeviceDescription_Kind_Args kind =
      TT_PJRT_ARGS(PJRT_DeviceDescription_Kind, .device_description = device->description);
  PJRT_DeviceDescription_ToString_Args text =
      TT_PJRT_ARGS(PJRT_DeviceDescription_ToString, .device_description = device->description);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_DeviceDescription_Id, &id));
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_DeviceDescription_Kind, &kind));
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_DeviceDescription_ToString, &text));
  device->id = id.id;
  device->kind = tt_string_copy(kind.device_kind, kind.device_kind_size);
  device->text = tt_string_copy(text.to_string, text.to_string_size);
  return device->kind && device->text ? NULL : no_memory();
}

static tt_status_t read_devices(tt_client_t* client) {
  PJRT_Client_AddressableDevices_Args args = TT_PJRT_ARGS(PJRT_Client_AddressableDevices, .client = client->client);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Client_AddressableDevices, &args));
  if (!args.num_addressable_devices) {
    return tt_error(TT_FAILED_PRECONDITION, "PJRT plugin %s found no device", client->plugin->path);
  }
  client->devices = tt_calloc(args.num_addressable_devices, sizeof *client->devices);
  if (!client->devices) return no_memory();
  client->device_count = (int)args.num_addressable_devices;
  for (int i = 0; i < client->device_count; i++) {
    client->devices[i].device = args.addressable_devices[i];
    TT_TRY(read_device(client, &client->devices[i]));
  }
  return NULL;
}

static tt_status_t create_client(tt_plugin_t* plugin, const PJRT_NamedValue* options, size_t count,
                                 PJRT_Client** out_client) {
  PJRT_Client_Create_Args args = TT_PJRT_ARGS(PJRT_Client_Create, .create_options = options, .num_options = count);
  tt_status_t status = TT_PJRT_CALL(plugin, PJRT_Client_Create, &args);
  *out_client = args.client;
  return status;
}

// A plugin that does not know the option says so in its own words, but always with the option's name.
static bool is_refused_option(tt_status_t status) {
  return strstr(tt_status_message(status), "cpu_device_count") != NULL;
}

static tt_status_t create_with_options(tt_plugin_t* plugin, const tt_client_options_t* options,
                                       PJRT_Client** out_client) {
  tt_named_values_t values;
  TT_TRY(tt_named_values_parse(options ? options->extra : NULL, &values));
  size_t given = values.count;
  tt_status_t status = NULL;
  if (options && options->cpu_device_count > 0 && given < sizeof values.items / sizeof values.items[0]) {
    values.items[values.count++] = (PJRT_NamedValue){
        .struct_size = PJRT_NamedValue_STRUCT_SIZE,
        .name = "cpu_device_count",
        .name_size = strlen("cpu_device_count"),
        .type = PJRT_NamedValue_kInt64,
        .int64_value = options->cpu_device_count,
        .value_size = 1,
    };
  }
  status = create_client(plugin, values.items, values.count, out_client);
  if (status && values.count > given && is_refused_option(status)) {
    tt_status_free(status);
    status = create_client(plugin, values.items, given, out_client);
  }
  tt_named_values_deinit(&values);
  return status;
}

tt_status_t tt_client_create(tt_plugin_t* plugin, const tt_client_options_t* options, tt_client_t** out_client) {
  *out_client = NULL;
  TT_TRY(tt_plugin_initialize(plugin));
  tt_client_t* client = tt_calloc(1, sizeof *client);
  if (!client) return no_memory();
  atomic_init(&client->refs, 1);
  client->plugin = plugin;
  tt_plugin_retain(plugin);
  tt_status_t status;
  TT_TRY_GOTO(status, fail, create_with_options(plugin, options, &client->client));
  TT_TRY_GOTO(status, fail, read_names(client));
  TT_TRY_GOTO(status, fail, read_devices(client));
  *out_client = client;
  return NULL;
fail:
  tt_client_release(client);
  return status;
}

void tt_client_retain(tt_client_t* client) { atomic_fetch_add(&client->refs, 1); }

void tt_client_release(tt_client_t* client) {
  if (!client || atomic_fetch_sub(&client->refs, 1) != 1) return;
  if (client->client) {
    PJRT_Client_Destroy_Args args = TT_PJRT_ARGS(PJRT_Client_Destroy, .client = client->client);
    TT_PJRT_CALL_QUIETLY(client->plugin, PJRT_Client_Destroy, &args);
  }
  for (int i = 0; i < client->device_count; i++) {
    tt_free(client->devices[i].kind);
    tt_free(client->devices[i].text);
  }
  tt_free(client->devices);
  tt_free(client->platform);
  tt_free(client->platform_version);
  tt_plugin_release(client->plugin);
  tt_free(client);
}

// ---------------------------------------------------------------- asking
static const tt_device_t* device_at(const tt_client_t* client, int device) {
  return device >= 0 && device < client->device_count ? &client->devices[device] : NULL;
}

tt_plugin_t* tt_client_plugin(const tt_client_t* client) { return client->plugin; }
const char* tt_client_platform(const tt_client_t* client) { return client->platform; }
const char* tt_client_platform_version(const tt_client_t* client) { return client->platform_version; }
int tt_client_device_count(const tt_client_t* client) { return client->device_count; }
int tt_client_max_executables(const tt_client_t* client) { return client->max_exes; }
uint32_t tt_client_caps(const tt_client_t* client) { return client->caps; }
uint32_t tt_platform_caps(const char* platform) { return find_platform(platform)->caps; }
const char* tt_client_flags(const tt_client_t* client) { return client->flags; }
const char* tt_client_fast_flags(const tt_client_t* client) { return client->fast_flags; }
const char* tt_client_lean_flags(const tt_client_t* client) { return client->lean_flags; }

const char* tt_client_device_kind(const tt_client_t* client, int device) {
  const tt_device_t* d = device_at(client, device);
  return d ? d->kind : "";
}

const char* tt_client_device_string(const tt_client_t* client, int device) {
  const tt_device_t* d = device_at(client, device);
  return d ? d->text : "";
}

int tt_client_device_id(const tt_client_t* client, int device) {
  const tt_device_t* d = device_at(client, device);
  return d ? d->id : -1;
}

bool tt_client_device_attribute_int(const tt_client_t* client, int device, const char* name, int64_t* out) {
  const tt_device_t* d = device_at(client, device);
  if (!d) return false;
  PJRT_DeviceDescription_Attributes_Args args =
      TT_PJRT_ARGS(PJRT_DeviceDescription_Attributes, .device_description = d->description);
  tt_status_t status = TT_PJRT_CALL(client->plugin, PJRT_DeviceDescription_Attributes, &args);
  if (status) {
    tt_status_free(status);
    return false;
  }
  size_t len = strlen(name);
  for (size_t i = 0; i < args.num_attributes; i++) {
    const PJRT_NamedValue* v = &args.attributes[i];
    if (v->name_size == len && !memcmp(v->name, name, len) && v->type == PJRT_NamedValue_kInt64) {
      *out = v->int64_value;
      return true;
    }
  }
  return false;
}

tt_status_t tt_client_memory_stats(tt_client_t* client, int device, int64_t* out_in_use, int64_t* out_limit,
                                   int64_t* out_peak) {
  *out_in_use = *out_limit = *out_peak = 0;
  const tt_device_t* d = device_at(client, device);
  if (!d) return tt_error(TT_INVALID_ARGUMENT, "device %d of %d", device, client->device_count);
  PJRT_Device_MemoryStats_Args args = TT_PJRT_ARGS(PJRT_Device_MemoryStats, .device = d->device);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Device_MemoryStats, &args));
  *out_in_use = args.bytes_in_use;
  if (args.bytes_limit_is_set) *out_limit = args.bytes_limit;
  if (args.peak_bytes_in_use_is_set) *out_peak = args.peak_bytes_in_use;
  return NULL;
}
