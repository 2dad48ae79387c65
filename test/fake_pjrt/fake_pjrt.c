// The fake plugin's clients, buffers, executables, topologies and its function table.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_core.h"

#define EXPORT __attribute__((visibility("default")))

struct PJRT_DeviceDescription {
  int id;
  char text[32];
};

struct PJRT_Device {
  PJRT_DeviceDescription description;
  PJRT_Client* client;
};

struct PJRT_Client {
  int device_count;
  char platform[16];
  PJRT_Device devices[FAKE_MAX_DEVICES];
  PJRT_Device* device_list[FAKE_MAX_DEVICES];
};

struct PJRT_Buffer {
  mlir_type_t type;
  PJRT_Device* device;
  void* data;  // owned unless |host_done|
  fake_async_t* ready;
  fake_async_t* host_done;  // of a zero-copy buffer: completed when it goes
  bool deleted;
};

typedef struct program_t {
  int refs;
  int n_args, n_results;
  mlir_type_t args[FAKE_MAX_VALUES], results[FAKE_MAX_VALUES];
  char* text;
  size_t len;
} program_t;

struct PJRT_Executable {
  program_t* program;
};

struct PJRT_LoadedExecutable {
  program_t* program;
  PJRT_Client* client;
  int device_id;
};

enum { TOPOLOGY_DEVICES = 4, FIRST_TOPOLOGY_ID = 10 };
struct PJRT_TopologyDescription {
  PJRT_DeviceDescription devices[TOPOLOGY_DEVICES];
  PJRT_DeviceDescription* list[TOPOLOGY_DEVICES];
};

struct PJRT_SerializedExecutable {
  char* bytes;
};

static char g_options[4096];
static int64_t g_options_len;

static const void* last_options(int64_t* out_len) {
  *out_len = g_options_len;
  return g_options;
}

// ---------------------------------------------------------------- plugin and client
static PJRT_Error* plugin_initialize(PJRT_Plugin_Initialize_Args* args) {
  (void)args;
  FAKE_ENTER(PJRT_Plugin_Initialize);
  return NULL;
}

static PJRT_Error* plugin_attributes(PJRT_Plugin_Attributes_Args* args) {
  static const int64_t k_version[] = {1, 13, 3};
  static const PJRT_NamedValue k_attributes[] = {
      {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
       .name = "stablehlo_current_version",
       .name_size = 25,
       .type = PJRT_NamedValue_kInt64List,
       .int64_array_value = k_version,
       .value_size = 3},
      {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
       .name = "motto",
       .name_size = 5,
       .type = PJRT_NamedValue_kString,
       .string_value = "nothing computed",
       .value_size = 16},
      {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
       .name = "is_fake",
       .name_size = 7,
       .type = PJRT_NamedValue_kBool,
       .bool_value = true,
       .value_size = 1},
  };
  FAKE_ENTER(PJRT_Plugin_Attributes);
  args->attributes = k_attributes;
  args->num_attributes = sizeof k_attributes / sizeof k_attributes[0];
  return NULL;
}

static PJRT_Error* client_create(PJRT_Client_Create_Args* args) {
  FAKE_ENTER(PJRT_Client_Create);
  int count = 4;
  char platform[16] = "Fake";
  for (size_t i = 0; i < args->num_options; i++) {
    const PJRT_NamedValue* o = &args->create_options[i];
    const char* no_count = getenv("FAKE_PJRT_NO_COUNT");
    if (!strncmp(o->name, "cpu_device_count", o->name_size) && o->type == PJRT_NamedValue_kInt64 && !no_count) {
      count = o->int64_value < 1 ? 1 : o->int64_value > FAKE_MAX_DEVICES ? FAKE_MAX_DEVICES : (int)o->int64_value;
    } else if (!strncmp(o->name, "platform", o->name_size) && o->type == PJRT_NamedValue_kString) {
      snprintf(platform, sizeof platform, "%.*s", (int)o->value_size, o->string_value);
    } else {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "Unexpected option name passed to PJRT_Client_Create: %.*s",
                        (int)o->name_size, o->name);
    }
  }
  PJRT_Client* c = fake_new(sizeof *c);
  c->device_count = count;
  memcpy(c->platform, platform, sizeof platform);
  for (int i = 0; i < count; i++) {
    c->devices[i].client = c;
    c->devices[i].description.id = i;
    snprintf(c->devices[i].description.text, sizeof c->devices[i].description.text, "FakeDevice(id=%d)", i);
    c->device_list[i] = &c->devices[i];
  }
  args->client = c;
  return NULL;
}

static PJRT_Error* client_destroy(PJRT_Client_Destroy_Args* args) {
  fake_delete(args->client);
  return fake_enter("PJRT_Client_Destroy");
}

static PJRT_Error* client_platform_name(PJRT_Client_PlatformName_Args* args) {
  FAKE_ENTER(PJRT_Client_PlatformName);
  args->platform_name = args->client->platform;
  args->platform_name_size = strlen(args->client->platform);
  return NULL;
}

static PJRT_Error* client_platform_version(PJRT_Client_PlatformVersion_Args* args) {
  FAKE_ENTER(PJRT_Client_PlatformVersion);
  args->platform_version = "fake 1";
  args->platform_version_size = 6;
  return NULL;
}

static PJRT_Error* client_addressable_devices(PJRT_Client_AddressableDevices_Args* args) {
  FAKE_ENTER(PJRT_Client_AddressableDevices);
  args->addressable_devices = args->client->device_list;
  args->num_addressable_devices = (size_t)args->client->device_count;
  return NULL;
}

// ---------------------------------------------------------------- devices
static PJRT_Error* device_get_description(PJRT_Device_GetDescription_Args* args) {
  FAKE_ENTER(PJRT_Device_GetDescription);
  args->device_description = &args->device->description;
  return NULL;
}

static PJRT_Error* description_id(PJRT_DeviceDescription_Id_Args* args) {
  FAKE_ENTER(PJRT_DeviceDescription_Id);
  args->id = args->device_description->id;
  return NULL;
}

static PJRT_Error* description_kind(PJRT_DeviceDescription_Kind_Args* args) {
  FAKE_ENTER(PJRT_DeviceDescription_Kind);
  args->device_kind = "fake";
  args->device_kind_size = 4;
  return NULL;
}

static PJRT_Error* description_to_string(PJRT_DeviceDescription_ToString_Args* args) {
  FAKE_ENTER(PJRT_DeviceDescription_ToString);
  args->to_string = args->device_description->text;
  args->to_string_size = strlen(args->to_string);
  return NULL;
}

static PJRT_Error* description_attributes(PJRT_DeviceDescription_Attributes_Args* args) {
  static const PJRT_NamedValue k_cores = {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                                          .name = "num_cores",
                                          .name_size = 9,
                                          .type = PJRT_NamedValue_kInt64,
                                          .int64_value = 2,
                                          .value_size = 1};
  FAKE_ENTER(PJRT_DeviceDescription_Attributes);
  args->attributes = &k_cores;
  args->num_attributes = 1;
  return NULL;
}

static PJRT_Error* device_memory_stats(PJRT_Device_MemoryStats_Args* args) {
  (void)args;
  FAKE_ENTER(PJRT_Device_MemoryStats);
  return fake_error(PJRT_Error_Code_UNIMPLEMENTED, "fake devices keep no account");
}

// ---------------------------------------------------------------- buffers
static PJRT_Buffer* new_buffer(const mlir_type_t* type, PJRT_Device* device, void* take_data, const void* copy_from) {
  PJRT_Buffer* b = fake_new(sizeof *b);
  size_t bytes = mlir_type_bytes(type);
  b->type = *type;
  b->device = device;
  b->ready = fake_async_new();
  b->data = take_data ? take_data : calloc(1, bytes + 1);
  if (!b->data) abort();
  if (copy_from) memcpy(b->data, copy_from, bytes);
  return b;
}

static void drop_data(PJRT_Buffer* b) {
  b->deleted = true;
  if (b->host_done) {
    fake_async_complete(b->host_done, NULL);
    fake_async_release(b->host_done);
    b->host_done = NULL;
  } else {
    free(b->data);
  }
  b->data = NULL;
}

static PJRT_Error* buffer_from_host(PJRT_Client_BufferFromHostBuffer_Args* args) {
  FAKE_ENTER(PJRT_Client_BufferFromHostBuffer);
  mlir_type_t type = {.rank = (int)args->num_dims, .alias = -1};
  if (args->num_dims > TT_MAX_RANK) return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "rank %zu", args->num_dims);
  for (size_t i = 0; i < args->num_dims; i++) type.dims[i] = args->dims[i];
  for (int d = 1; d < TT_DTYPE_COUNT; d++) {
    if (tt_dtype_pjrt((tt_dtype_t)d) == (int)args->type) type.dtype = (tt_dtype_t)d;
  }
  if (!type.dtype) return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "element type %d", (int)args->type);
  bool zero_copy = args->host_buffer_semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy;
  fake_async_t* done = fake_async_new();
  if (zero_copy) {
    void* data;
    memcpy(&data, &args->data, sizeof data);  // never written: donation copies such buffers
    args->buffer = new_buffer(&type, args->device, data, NULL);
    args->buffer->host_done = fake_async_retain(done);
  } else {
    args->buffer = new_buffer(&type, args->device, NULL, args->data);
    fake_async_complete(done, NULL);
  }
  args->done_with_host_buffer = fake_event_new(done);
  fake_async_release(done);
  fake_async_schedule(args->buffer->ready, NULL);
  return NULL;
}

static PJRT_Error* buffer_destroy(PJRT_Buffer_Destroy_Args* args) {
  PJRT_Buffer* b = args->buffer;
  if (b) {
    if (!b->deleted) drop_data(b);
    fake_async_release(b->ready);
    fake_delete(b);
  }
  return fake_enter("PJRT_Buffer_Destroy");
}

static PJRT_Error* buffer_element_type(PJRT_Buffer_ElementType_Args* args) {
  FAKE_ENTER(PJRT_Buffer_ElementType);
  args->type = (PJRT_Buffer_Type)tt_dtype_pjrt(args->buffer->type.dtype);
  return NULL;
}

static PJRT_Error* buffer_dimensions(PJRT_Buffer_Dimensions_Args* args) {
  FAKE_ENTER(PJRT_Buffer_Dimensions);
  args->dims = args->buffer->type.dims;
  args->num_dims = (size_t)args->buffer->type.rank;
  return NULL;
}

static PJRT_Error* buffer_size(PJRT_Buffer_OnDeviceSizeInBytes_Args* args) {
  FAKE_ENTER(PJRT_Buffer_OnDeviceSizeInBytes);
  args->on_device_size_in_bytes = mlir_type_bytes(&args->buffer->type);
  return NULL;
}

static PJRT_Error* buffer_device(PJRT_Buffer_Device_Args* args) {
  FAKE_ENTER(PJRT_Buffer_Device);
  args->device = args->buffer->device;
  return NULL;
}

static PJRT_Error* buffer_delete(PJRT_Buffer_Delete_Args* args) {
  FAKE_ENTER(PJRT_Buffer_Delete);
  if (!args->buffer->deleted) drop_data(args->buffer);
  return NULL;
}

static PJRT_Error* buffer_is_deleted(PJRT_Buffer_IsDeleted_Args* args) {
  FAKE_ENTER(PJRT_Buffer_IsDeleted);
  args->is_deleted = args->buffer->deleted;
  return NULL;
}

static PJRT_Error* deleted_error(void) {
  return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "Buffer has been deleted or donated.");
}

static PJRT_Error* buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args* args) {
  FAKE_ENTER(PJRT_Buffer_CopyToDevice);
  if (args->buffer->deleted) return deleted_error();
  if (args->buffer->device == args->dst_device) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "the buffer is already on this device");
  }
  args->dst_buffer = new_buffer(&args->buffer->type, args->dst_device, NULL, args->buffer->data);
  fake_async_schedule(args->dst_buffer->ready, NULL);
  return NULL;
}

static PJRT_Error* buffer_to_host(PJRT_Buffer_ToHostBuffer_Args* args) {
  FAKE_ENTER(PJRT_Buffer_ToHostBuffer);
  if (args->src->deleted) return deleted_error();
  size_t bytes = mlir_type_bytes(&args->src->type);
  if (!args->dst) {
    args->dst_size = bytes;
    return NULL;
  }
  if (args->dst_size < bytes) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "`dst_size` must be >= %zu, got %zu.", bytes, args->dst_size);
  }
  if (bytes) memcpy(args->dst, args->src->data, bytes);
  args->event = fake_event_new(args->src->ready);
  return NULL;
}

static PJRT_Error* buffer_ready_event(PJRT_Buffer_ReadyEvent_Args* args) {
  FAKE_ENTER(PJRT_Buffer_ReadyEvent);
  args->event = fake_event_new(args->buffer->ready);
  return NULL;
}

static PJRT_Error* buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args* args) {
  FAKE_ENTER(PJRT_Buffer_UnsafePointer);
  if (args->buffer->deleted) return deleted_error();
  args->buffer_pointer = (uintptr_t)args->buffer->data;
  return NULL;
}

// ---------------------------------------------------------------- options
// Just enough of a protobuf reader: the field's payload, and what follows it.
static const uint8_t* read_varint(const uint8_t* s, const uint8_t* end, uint64_t* out) {
  *out = 0;
  for (int shift = 0; s < end && shift < 64; shift += 7) {
    *out |= (uint64_t)(*s & 0x7f) << shift;
    if (!(*s++ & 0x80)) return s;
  }
  return NULL;
}

static const uint8_t* next_field(const uint8_t* s, const uint8_t* end, int* out_field, uint64_t* out_int,
                                 const uint8_t** out_bytes) {
  uint64_t tag;
  *out_bytes = NULL;
  s = read_varint(s, end, &tag);
  if (!s) return NULL;
  *out_field = (int)(tag >> 3);
  if ((tag & 7) == 1) return s + 8 <= end ? s + 8 : NULL;
  s = read_varint(s, end, out_int);
  if (!s || (tag & 7) == 0) return s;
  if ((tag & 7) != 2 || *out_int > (uint64_t)(end - s)) return NULL;
  *out_bytes = s;
  return s + *out_int;
}

// Follows |path| of nested messages; the last one's bytes. False when absent.
static bool find_message(const uint8_t* s, const uint8_t* end, const int* path, int depth, const uint8_t** out,
                         const uint8_t** out_end) {
  int field;
  uint64_t n;
  const uint8_t* bytes;
  while (s && s < end) {
    s = next_field(s, end, &field, &n, &bytes);
    if (!s || !bytes || field != path[0]) continue;
    if (depth > 1) return find_message(bytes, bytes + n, path + 1, depth - 1, out, out_end);
    *out = bytes;
    *out_end = bytes + n;
    return true;
  }
  return false;
}

static PJRT_Error* read_options(const char* data, size_t len, int* out_device) {
  static const int k_build[] = {3}, k_device[] = {3, 9, 3, 1};
  const uint8_t *s = (const uint8_t*)data, *end = s + len, *at, *at_end;
  *out_device = 0;
  g_options_len = (int64_t)(len < sizeof g_options ? len : sizeof g_options);
  memcpy(g_options, data, (size_t)g_options_len);
  if (!find_message(s, end, k_build, 1, &at, &at_end)) abort();  // as XLA does
  if (find_message(s, end, k_device, 4, &at, &at_end)) {
    uint64_t id;
    if (read_varint(at, at_end, &id)) *out_device = (int)id;
  }
  while (s && s < end) {
    static const int k_key[] = {1};
    int field;
    uint64_t n;
    const uint8_t* bytes;
    s = next_field(s, end, &field, &n, &bytes);
    if (!s || field != 7 || !bytes || !find_message(bytes, bytes + n, k_key, 1, &at, &at_end)) continue;
    if (at_end - at < 5 || memcmp(at, "fake_", 5) != 0) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "No such compile option: '%.*s'", (int)(at_end - at),
                        (const char*)at);
    }
  }
  return NULL;
}

// ---------------------------------------------------------------- executables
static PJRT_Error* new_program(const char* text, size_t len, program_t** out) {
  program_t* p = fake_new(sizeof *p);
  p->refs = 1;
  if (!mlir_parse_main(text, len, p->args, FAKE_MAX_VALUES, &p->n_args, p->results, FAKE_MAX_VALUES, &p->n_results)) {
    fake_delete(p);
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "fake:1:1: error: no @main whose types can be read");
  }
  p->text = malloc(len + 1);
  if (!p->text) abort();
  memcpy(p->text, text, len);
  p->len = len;
  *out = p;
  return NULL;
}

static program_t* retain_program(program_t* p) {
  __atomic_add_fetch(&p->refs, 1, __ATOMIC_SEQ_CST);
  return p;
}

static void release_program(program_t* p) {
  if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_SEQ_CST)) return;
  free(p->text);
  fake_delete(p);
}

static PJRT_Error* load(PJRT_Client* client, const char* text, size_t len, const char* options, size_t options_len,
                        PJRT_LoadedExecutable** out) {
  int device;
  program_t* program;
  PJRT_Error* e = read_options(options, options_len, &device);
  if (!e) e = new_program(text, len, &program);
  if (e) return e;
  if (device >= client->device_count) {
    release_program(program);
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "no device %d", device);
  }
  PJRT_LoadedExecutable* exe = fake_new(sizeof *exe);
  *exe = (PJRT_LoadedExecutable){program, client, device};
  *out = exe;
  return NULL;
}

static PJRT_Error* client_compile(PJRT_Client_Compile_Args* args) {
  FAKE_ENTER(PJRT_Client_Compile);
  return load(args->client, args->program->code, args->program->code_size, args->compile_options,
              args->compile_options_size, &args->executable);
}

static const char k_magic[8] = "FAKEEXE1";

static PJRT_Error* executable_serialize(PJRT_Executable_Serialize_Args* args);

static void free_serialized(PJRT_SerializedExecutable* s) {
  free(s->bytes);
  fake_delete(s);
}

static PJRT_Error* executable_serialize(PJRT_Executable_Serialize_Args* args) {
  FAKE_ENTER(PJRT_Executable_Serialize);
  program_t* p = args->executable->program;
  PJRT_SerializedExecutable* s = fake_new(sizeof *s);
  s->bytes = malloc(sizeof k_magic + p->len);
  if (!s->bytes) abort();
  memcpy(s->bytes, k_magic, sizeof k_magic);
  memcpy(s->bytes + sizeof k_magic, p->text, p->len);
  args->serialized_bytes = s->bytes;
  args->serialized_bytes_size = sizeof k_magic + p->len;
  args->serialized_executable = s;
  args->serialized_executable_deleter = free_serialized;
  return NULL;
}

static PJRT_Error* executable_deserialize(PJRT_Executable_DeserializeAndLoad_Args* args) {
  FAKE_ENTER(PJRT_Executable_DeserializeAndLoad);
  size_t len = args->serialized_executable_size;
  if (len < sizeof k_magic || memcmp(args->serialized_executable, k_magic, sizeof k_magic) != 0) {
    return fake_error(PJRT_Error_Code_INTERNAL, "Deserializing serialized executable failed");
  }
  return load(args->client, args->serialized_executable + sizeof k_magic, len - sizeof k_magic,
              args->overridden_serialized_compile_options, args->overridden_serialized_compile_options_size,
              &args->loaded_executable);
}

static PJRT_Executable* new_executable(program_t* program) {
  PJRT_Executable* e = fake_new(sizeof *e);
  e->program = program;
  return e;
}

static PJRT_Error* loaded_get_executable(PJRT_LoadedExecutable_GetExecutable_Args* args) {
  FAKE_ENTER(PJRT_LoadedExecutable_GetExecutable);
  args->executable = new_executable(retain_program(args->loaded_executable->program));
  return NULL;
}

static PJRT_Error* executable_destroy(PJRT_Executable_Destroy_Args* args) {
  if (args->executable) release_program(args->executable->program);
  fake_delete(args->executable);
  return fake_enter("PJRT_Executable_Destroy");
}

static PJRT_Error* loaded_destroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  if (args->executable) release_program(args->executable->program);
  fake_delete(args->executable);
  return fake_enter("PJRT_LoadedExecutable_Destroy");
}

static PJRT_Error* executable_num_outputs(PJRT_Executable_NumOutputs_Args* args) {
  FAKE_ENTER(PJRT_Executable_NumOutputs);
  args->num_outputs = (size_t)args->executable->program->n_results;
  return NULL;
}

static PJRT_Error* executable_memory_stats(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  FAKE_ENTER(PJRT_Executable_GetCompiledMemoryStats);
  program_t* p = args->executable->program;
  for (int i = 0; i < p->n_args; i++) args->argument_size_in_bytes += (int64_t)mlir_type_bytes(&p->args[i]);
  for (int i = 0; i < p->n_results; i++) args->output_size_in_bytes += (int64_t)mlir_type_bytes(&p->results[i]);
  args->generated_code_size_in_bytes = (int64_t)p->len;
  return NULL;
}

static PJRT_Error* executable_costs(PJRT_Executable_GetCostAnalysis_Args* args) {
  static const PJRT_NamedValue k_costs[] = {
      {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
       .name = "flops",
       .name_size = 5,
       .type = PJRT_NamedValue_kFloat,
       .float_value = 42,
       .value_size = 1},
  };
  FAKE_ENTER(PJRT_Executable_GetCostAnalysis);
  args->properties = k_costs;
  args->num_properties = 1;
  return NULL;
}

static PJRT_Error* check_arguments(const PJRT_LoadedExecutable* exe, const PJRT_LoadedExecutable_Execute_Args* args) {
  const program_t* p = exe->program;
  if (args->num_devices != 1) return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "%zu devices", args->num_devices);
  if (args->num_args != (size_t)p->n_args) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "Execution supplied %zu buffers but compiled program expected %d buffers", args->num_args,
                      p->n_args);
  }
  for (int i = 0; i < p->n_args; i++) {
    const PJRT_Buffer* b = args->argument_lists[0][i];
    if (b->deleted) return deleted_error();
    if (b->device->description.id != exe->device_id) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "Buffer passed to Execute() as argument %d is on device %d",
                        i, b->device->description.id);
    }
    if (mlir_type_bytes(&b->type) != mlir_type_bytes(&p->args[i])) {
      return fake_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "Executable expected parameter %d of size %zu but got buffer with incompatible size %zu", i,
                        mlir_type_bytes(&p->args[i]), mlir_type_bytes(&b->type));
    }
  }
  return NULL;
}

static bool is_kept(const PJRT_ExecuteOptions* options, int i) {
  for (size_t k = 0; k < options->num_non_donatable_input_indices; k++) {
    if (options->non_donatable_input_indices[k] == i) return true;
  }
  return false;
}

static PJRT_Buffer* make_output(const PJRT_LoadedExecutable* exe, const PJRT_LoadedExecutable_Execute_Args* args,
                                int o) {
  const program_t* p = exe->program;
  const mlir_type_t* type = &p->results[o];
  PJRT_Device* device = &exe->client->devices[exe->device_id];
  PJRT_Buffer* same = NULL;
  for (int i = 0; i < p->n_args; i++) {
    PJRT_Buffer* b = args->argument_lists[0][i];
    if (p->args[i].alias == o && b->data) {
      if (is_kept(args->options, i) || b->host_done) return new_buffer(type, device, NULL, b->data);
      void* data = b->data;
      b->data = NULL;
      b->deleted = true;
      return new_buffer(type, device, data, NULL);
    }
    if (!same && b->data && mlir_type_bytes(&b->type) == mlir_type_bytes(type)) same = b;
  }
  return new_buffer(type, device, NULL, same ? same->data : NULL);
}

static PJRT_Error* loaded_execute(PJRT_LoadedExecutable_Execute_Args* args) {
  FAKE_ENTER(PJRT_LoadedExecutable_Execute);
  PJRT_LoadedExecutable* exe = args->executable;
  PJRT_Error* e = check_arguments(exe, args);
  if (e) return e;
  const char* failure = fake_take_execution_failure();
  for (int o = 0; o < exe->program->n_results; o++) args->output_lists[0][o] = make_output(exe, args, o);
  for (int o = 0; o < exe->program->n_results; o++) fake_async_schedule(args->output_lists[0][o]->ready, failure);
  if (args->device_complete_events) {
    fake_async_t* done = fake_async_new();
    args->device_complete_events[0] = fake_event_new(done);
    fake_async_schedule(done, failure);
    fake_async_release(done);
  }
  return NULL;
}

// ---------------------------------------------------------------- topologies
static PJRT_Error* topology_create(PJRT_TopologyDescription_Create_Args* args) {
  FAKE_ENTER(PJRT_TopologyDescription_Create);
  if (args->topology_name_size < 5 || memcmp(args->topology_name, "fake:", 5) != 0) {
    return fake_error(PJRT_Error_Code_INVALID_ARGUMENT, "unknown topology");
  }
  args->topology = fake_new(sizeof *args->topology);
  for (int i = 0; i < TOPOLOGY_DEVICES; i++) {
    args->topology->devices[i].id = FIRST_TOPOLOGY_ID + i;
    args->topology->list[i] = &args->topology->devices[i];
  }
  return NULL;
}

// Facts about a topology: they are not told to fail, since whoever asks does without.
static PJRT_Error* topology_devices(PJRT_TopologyDescription_GetDeviceDescriptions_Args* args) {
  args->descriptions = args->topology->list;
  args->num_descriptions = TOPOLOGY_DEVICES;
  return NULL;
}

static PJRT_Error* topology_platform(PJRT_TopologyDescription_PlatformName_Args* args) {
  args->platform_name = "Fake";
  args->platform_name_size = 4;
  return NULL;
}

static PJRT_Error* topology_version(PJRT_TopologyDescription_PlatformVersion_Args* args) {
  args->platform_version = "fake 1";
  args->platform_version_size = 6;
  return NULL;
}

static PJRT_Error* topology_destroy(PJRT_TopologyDescription_Destroy_Args* args) {
  fake_delete(args->topology);
  return fake_enter("PJRT_TopologyDescription_Destroy");
}

static PJRT_Error* compile(PJRT_Compile_Args* args) {
  FAKE_ENTER(PJRT_Compile);
  int device;
  program_t* program;
  PJRT_Error* e = read_options(args->compile_options, args->compile_options_size, &device);
  if (!e) e = new_program(args->program->code, args->program->code_size, &program);
  if (!e) args->executable = new_executable(program);
  return e;
}

// ---------------------------------------------------------------- the table
#define ENTRY(Fn, function) .Fn = function
static PJRT_Api g_api = {
    .struct_size = PJRT_Api_STRUCT_SIZE,
    .pjrt_api_version = {.struct_size = PJRT_Api_Version_STRUCT_SIZE,
                         .major_version = PJRT_API_MAJOR,
                         .minor_version = PJRT_API_MINOR},
    ENTRY(PJRT_Error_Destroy, fake_error_destroy),
    ENTRY(PJRT_Error_Message, fake_error_message),
    ENTRY(PJRT_Error_GetCode, fake_error_code),
    ENTRY(PJRT_Plugin_Initialize, plugin_initialize),
    ENTRY(PJRT_Plugin_Attributes, plugin_attributes),
    ENTRY(PJRT_Event_Destroy, fake_event_destroy),
    ENTRY(PJRT_Event_IsReady, fake_event_is_ready),
    ENTRY(PJRT_Event_Error, fake_event_error),
    ENTRY(PJRT_Event_Await, fake_event_await),
    ENTRY(PJRT_Event_OnReady, fake_event_on_ready),
    ENTRY(PJRT_Client_Create, client_create),
    ENTRY(PJRT_Client_Destroy, client_destroy),
    ENTRY(PJRT_Client_PlatformName, client_platform_name),
    ENTRY(PJRT_Client_PlatformVersion, client_platform_version),
    ENTRY(PJRT_Client_AddressableDevices, client_addressable_devices),
    ENTRY(PJRT_Client_Compile, client_compile),
    ENTRY(PJRT_Client_BufferFromHostBuffer, buffer_from_host),
    ENTRY(PJRT_DeviceDescription_Id, description_id),
    ENTRY(PJRT_DeviceDescription_Attributes, description_attributes),
    ENTRY(PJRT_DeviceDescription_Kind, description_kind),
    ENTRY(PJRT_DeviceDescription_ToString, description_to_string),
    ENTRY(PJRT_Device_GetDescription, device_get_description),
    ENTRY(PJRT_Device_MemoryStats, device_memory_stats),
    ENTRY(PJRT_Executable_Destroy, executable_destroy),
    ENTRY(PJRT_Executable_NumOutputs, executable_num_outputs),
    ENTRY(PJRT_Executable_GetCostAnalysis, executable_costs),
    ENTRY(PJRT_Executable_Serialize, executable_serialize),
    ENTRY(PJRT_LoadedExecutable_Destroy, loaded_destroy),
    ENTRY(PJRT_LoadedExecutable_GetExecutable, loaded_get_executable),
    ENTRY(PJRT_LoadedExecutable_Execute, loaded_execute),
    ENTRY(PJRT_Executable_DeserializeAndLoad, executable_deserialize),
    ENTRY(PJRT_Buffer_Destroy, buffer_destroy),
    ENTRY(PJRT_Buffer_ElementType, buffer_element_type),
    ENTRY(PJRT_Buffer_Dimensions, buffer_dimensions),
    ENTRY(PJRT_Buffer_OnDeviceSizeInBytes, buffer_size),
    ENTRY(PJRT_Buffer_Device, buffer_device),
    ENTRY(PJRT_Buffer_Delete, buffer_delete),
    ENTRY(PJRT_Buffer_IsDeleted, buffer_is_deleted),
    ENTRY(PJRT_Buffer_CopyToDevice, buffer_copy_to_device),
    ENTRY(PJRT_Buffer_ToHostBuffer, buffer_to_host),
    ENTRY(PJRT_Buffer_ReadyEvent, buffer_ready_event),
    ENTRY(PJRT_Buffer_UnsafePointer, buffer_unsafe_pointer),
    ENTRY(PJRT_TopologyDescription_Create, topology_create),
    ENTRY(PJRT_TopologyDescription_Destroy, topology_destroy),
    ENTRY(PJRT_TopologyDescription_GetDeviceDescriptions, topology_devices),
    ENTRY(PJRT_TopologyDescription_PlatformName, topology_platform),
    ENTRY(PJRT_TopologyDescription_PlatformVersion, topology_version),
    ENTRY(PJRT_Compile, compile),
    ENTRY(PJRT_Executable_GetCompiledMemoryStats, executable_memory_stats),
};

typedef struct cut_t {
  const char* name;
  size_t offset;
} cut_t;
#define CUT(Fn) {#Fn, offsetof(PJRT_Api, Fn)}
static const cut_t k_cuts[] = {
    CUT(PJRT_Error_Destroy),
    CUT(PJRT_Client_Create),
    CUT(PJRT_Executable_Serialize),
    CUT(PJRT_LoadedExecutable_Execute),
    CUT(PJRT_Executable_DeserializeAndLoad),
    CUT(PJRT_Buffer_Destroy),
    CUT(PJRT_Buffer_CopyToDevice),
    CUT(PJRT_Buffer_UnsafePointer),
    CUT(PJRT_TopologyDescription_Create),
    CUT(PJRT_Compile),
    CUT(PJRT_Executable_GetCompiledMemoryStats),
};

static const fake_pjrt_control_t k_control = {
    fake_reset, fake_fail_at,    fake_fail_function,  fake_has_failed, fake_calls,
    fake_live,  fake_set_events, fake_fail_execution, last_options,
};

EXPORT const fake_pjrt_control_t* fake_pjrt_control(void) { return &k_control; }

EXPORT const PJRT_Api* GetPjrtApi(void);
EXPORT const PJRT_Api* GetPjrtApi(void) {
  const char* cut = getenv("FAKE_PJRT_CUT");
  const char *major = getenv("FAKE_PJRT_MAJOR"), *minor = getenv("FAKE_PJRT_MINOR");
  if (getenv("FAKE_PJRT_CRASH")) abort();
  if (getenv("FAKE_PJRT_EXIT")) exit(0);
  if (getenv("FAKE_PJRT_NULL")) return NULL;
  if (major) g_api.pjrt_api_version.major_version = atoi(major);
  if (minor) g_api.pjrt_api_version.minor_version = atoi(minor);
  for (size_t i = 0; cut && i < sizeof k_cuts / sizeof k_cuts[0]; i++) {
    if (!strcmp(k_cuts[i].name, cut)) g_api.struct_size = k_cuts[i].offset;
  }
  return &g_api;
}
