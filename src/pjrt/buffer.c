// Device buffers: to and from the host, between devices, waiting.
#include <string.h>

#include "base/alloc.h"
#include "pjrt/objects.h"

static tt_status_t check_device(const tt_client_t* client, int device) {
  if (device >= 0 && device < client->device_count) return NULL;
  return tt_error(TT_INVALID_ARGUMENT, "device %d is not among the %d devices of platform %s", device,
                  client->device_count, client->platform);
}

// ---------------------------------------------------------------- host to device
typedef struct host_done_t {
  void (*done)(void* ctx);
  void* ctx;
} host_done_t;

static void on_host_done(tt_status_t status, void* ctx) {
  host_done_t call = *(host_done_t*)ctx;
  tt_free(ctx);
  tt_status_free(status);  // the transfer's failure surfaces through the buffer; the memory is free either way
  call.done(call.ctx);
}

// Hands |event| (taken) over to a callback. On failure nothing will be called.
static tt_status_t watch_host_buffer(tt_client_t* client, PJRT_Event* event, void (*done)(void* ctx), void* ctx) {
  host_done_t* call = tt_malloc(sizeof *call);
  if (!call) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  *call = (host_done_t){done, ctx};
  tt_status_t status = tt_pevent_on_ready(client, event, on_host_done, call);
  if (status) tt_free(call);
  return status;
}

tt_status_t tt_pbuf_from_host(tt_client_t* client, int device, tt_dtype_t dtype, int rank, const int64_t* dims,
                              const void* data, tt_host_t semantics, void (*done)(void* ctx), void* ctx,
                              tt_pbuf_t** out_buffer) {
  static const max_align_t k_nothing;  // empty tensors may come without memory; plugins want an address
  *out_buffer = NULL;
  TT_TRY(check_device(client, device));
  PJRT_Client_BufferFromHostBuffer_Args args = TT_PJRT_ARGS(
      PJRT_Client_BufferFromHostBuffer, .client = client->client, .data = data ? data : &k_nothing,
      .type = (PJRT_Buffer_Type)tt_dtype_pjrt(dtype), .dims = dims, .num_dims = (size_t)rank,
      .host_buffer_semantics = semantics == TT_HOST_COPY ? PJRT_HostBufferSemantics_kImmutableOnlyDuringCall
                                                         : PJRT_HostBufferSemantics_kImmutableZeroCopy,
      .device = client->devices[device].device);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Client_BufferFromHostBuffer, &args));
  tt_status_t status = NULL;
  if (done && args.done_with_host_buffer) {
    status = watch_host_buffer(client, args.done_with_host_buffer, done, ctx);
    if (status) {  // nobody would learn when |data| is free, so undo the transfer and wait here
      tt_pbuf_free(client, args.buffer);
      args.buffer = NULL;
      tt_status_free(tt_pevent_await(client, args.done_with_host_buffer));
    }
  } else if (done) {
    done(ctx);
  }
  tt_pevent_free(client, args.done_with_host_buffer);
  *out_buffer = args.buffer;
  return status;
}

// ---------------------------------------------------------------- device to host
tt_status_t tt_pbuf_to_host_async(tt_client_t* client, tt_pbuf_t* buffer, void* out_data, size_t size_bytes,
                                  tt_pevent_t** out_event) {
  static max_align_t s_nothing;
  *out_event = NULL;
  PJRT_Buffer_Dimensions_Args shape = TT_PJRT_ARGS(PJRT_Buffer_Dimensions, .buffer = buffer);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Buffer_Dimensions, &shape));
  // Without a layout the copy would come in the device's own order of dimensions.
  int64_t minor_to_major[TT_MAX_RANK];
  if (shape.num_dims > TT_MAX_RANK) return tt_error(TT_INTERNAL, "a buffer of rank %zu", shape.num_dims);
  for (size_t i = 0; i < shape.num_dims; i++) minor_to_major[i] = (int64_t)(shape.num_dims - 1 - i);
  PJRT_Buffer_MemoryLayout layout = {
      .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
      .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                .minor_to_major = minor_to_major,
                .minor_to_major_size = shape.num_dims},
      .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
  };
  // A null address would ask for the size instead.
  PJRT_Buffer_ToHostBuffer_Args args = TT_PJRT_ARGS(PJRT_Buffer_ToHostBuffer, .src = buffer, .host_layout = &layout,
                                                    .dst = out_data ? out_data : &s_nothing, .dst_size = size_bytes);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Buffer_ToHostBuffer, &args));
  *out_event = args.event;
  return NULL;
}

// Where device memory is host memory, copying it here takes 0.3 us; the plugin's own way hands the copy to another
// thread, 40-150 us. CPU buffers are dense and row-major. False: not possible, go the plugin's way.
static bool copy_host_memory(tt_client_t* client, tt_pbuf_t* buffer, void* out_data, size_t size_bytes,
                             tt_status_t* out_status) {
  const tt_plugin_t* plugin = client->plugin;
  if (!client->is_host_memory || !TT_PJRT_HAS(plugin, PJRT_Buffer_UnsafePointer) ||
      !TT_PJRT_HAS(plugin, PJRT_Buffer_OnDeviceSizeInBytes)) {
    return false;
  }
  *out_status = tt_pbuf_await(client, buffer);
  if (*out_status) return true;
  size_t device_bytes;
  *out_status = tt_pbuf_size_on_device(client, buffer, &device_bytes);
  if (!*out_status && device_bytes != size_bytes) {
    *out_status =
        tt_error(TT_INVALID_ARGUMENT, "a host copy of %zu bytes of a buffer of %zu", size_bytes, device_bytes);
  }
  if (*out_status || !size_bytes) return true;
  PJRT_Buffer_UnsafePointer_Args args = TT_PJRT_ARGS(PJRT_Buffer_UnsafePointer, .buffer = buffer);
  *out_status = TT_PJRT_CALL(plugin, PJRT_Buffer_UnsafePointer, &args);
  if (*out_status || !args.buffer_pointer) {
    tt_status_free(*out_status);
    *out_status = NULL;
    return false;
  }
  memcpy(out_data, (const void*)args.buffer_pointer, size_bytes);
  return true;
}

tt_status_t tt_pbuf_to_host(tt_client_t* client, tt_pbuf_t* buffer, void* out_data, size_t size_bytes) {
  tt_status_t status = NULL;
  if (copy_host_memory(client, buffer, out_data, size_bytes, &status)) return status;
  tt_pevent_t* event;
  TT_TRY(tt_pbuf_to_host_async(client, buffer, out_data, size_bytes, &event));
  status = event ? tt_pevent_await(client, event) : NULL;
  tt_pevent_free(client, event);
  return status;
}

// ---------------------------------------------------------------- life and state
void tt_pbuf_free(tt_client_t* client, tt_pbuf_t* buffer) {
  if (!buffer) return;
  PJRT_Buffer_Destroy_Args args = TT_PJRT_ARGS(PJRT_Buffer_Destroy, .buffer = buffer);
  TT_PJRT_CALL_QUIETLY(client->plugin, PJRT_Buffer_Destroy, &args);
}

tt_status_t tt_pbuf_ready_event(tt_client_t* client, tt_pbuf_t* buffer, tt_pevent_t** out_event) {
  PJRT_Buffer_ReadyEvent_Args args = TT_PJRT_ARGS(PJRT_Buffer_ReadyEvent, .buffer = buffer);
  tt_status_t status = TT_PJRT_CALL(client->plugin, PJRT_Buffer_ReadyEvent, &args);
  *out_event = status ? NULL : args.event;
  return status;
}

tt_status_t tt_pbuf_await(tt_client_t* client, tt_pbuf_t* buffer) {
  tt_pevent_t* event;
  TT_TRY(tt_pbuf_ready_event(client, buffer, &event));
  tt_status_t status = tt_pevent_await(client, event);
  tt_pevent_free(client, event);
  return status;
}

tt_status_t tt_pbuf_size_on_device(tt_client_t* client, tt_pbuf_t* buffer, size_t* out_size_bytes) {
  PJRT_Buffer_OnDeviceSizeInBytes_Args args = TT_PJRT_ARGS(PJRT_Buffer_OnDeviceSizeInBytes, .buffer = buffer);
  tt_status_t status = TT_PJRT_CALL(client->plugin, PJRT_Buffer_OnDeviceSizeInBytes, &args);
  *out_size_bytes = status ? 0 : args.on_device_size_in_bytes;
  return status;
}

bool tt_pbuf_is_deleted(tt_client_t* client, tt_pbuf_t* buffer) {
  PJRT_Buffer_IsDeleted_Args args = TT_PJRT_ARGS(PJRT_Buffer_IsDeleted, .buffer = buffer);
  tt_status_t status = TT_PJRT_CALL(client->plugin, PJRT_Buffer_IsDeleted, &args);
  if (!status) return args.is_deleted;
  tt_status_free(status);
  return false;
}

// ---------------------------------------------------------------- between devices
static tt_dtype_t dtype_of_pjrt(PJRT_Buffer_Type type) {
  for (int d = 1; d < TT_DTYPE_COUNT; d++) {
    if (tt_dtype_pjrt((tt_dtype_t)d) == (int)type) return (tt_dtype_t)d;
  }
  return TT_DT_NONE;
}

// The way that always works: plugins refuse a copy to the buffer's own device, and some have none at all.
static tt_status_t copy_through_host(tt_client_t* client, tt_pbuf_t* buffer, int device, tt_pbuf_t** out_buffer) {
  PJRT_Buffer_ElementType_Args type = TT_PJRT_ARGS(PJRT_Buffer_ElementType, .buffer = buffer);
  PJRT_Buffer_Dimensions_Args shape = TT_PJRT_ARGS(PJRT_Buffer_Dimensions, .buffer = buffer);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Buffer_ElementType, &type));
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Buffer_Dimensions, &shape));
  tt_dtype_t dtype = dtype_of_pjrt(type.type);
  if (!dtype) return tt_error(TT_UNIMPLEMENTED, "copy of a buffer of PJRT type %d", (int)type.type);
  size_t size_bytes = tt_dtype_size(dtype);
  for (size_t i = 0; i < shape.num_dims; i++) size_bytes *= (size_t)shape.dims[i];
  void* data = tt_malloc(size_bytes);
  if (!data) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted (%zu bytes for a copy)", size_bytes);
  tt_status_t status = tt_pbuf_to_host(client, buffer, data, size_bytes);
  if (!status) {
    status = tt_pbuf_from_host(client, device, dtype, (int)shape.num_dims, shape.dims, data, TT_HOST_COPY, NULL, NULL,
                               out_buffer);
  }
  tt_free(data);
  return status;
}

tt_status_t tt_pbuf_copy_to_device(tt_client_t* client, tt_pbuf_t* buffer, int device, tt_pbuf_t** out_buffer) {
  *out_buffer = NULL;
  TT_TRY(check_device(client, device));
  PJRT_Device* target = client->devices[device].device;
  PJRT_Buffer_Device_Args at = TT_PJRT_ARGS(PJRT_Buffer_Device, .buffer = buffer);
  TT_TRY(TT_PJRT_CALL(client->plugin, PJRT_Buffer_Device, &at));
  if (at.device == target) return copy_through_host(client, buffer, device, out_buffer);
  PJRT_Buffer_CopyToDevice_Args args = TT_PJRT_ARGS(PJRT_Buffer_CopyToDevice, .buffer = buffer, .dst_device = target);
  tt_status_t status = TT_PJRT_CALL(client->plugin, PJRT_Buffer_CopyToDevice, &args);
  if (tt_status_code(status) == TT_UNIMPLEMENTED) {
    tt_status_free(status);
    return copy_through_host(client, buffer, device, out_buffer);
  }
  if (!status) *out_buffer = args.dst_buffer;
  return status;
}
