// Events: something of the plugin's that will be done.
#include "base/alloc.h"
#include "pjrt/objects.h"

tt_status_t tt_pevent_await(tt_client_t* client, tt_pevent_t* event) {
  PJRT_Event_Await_Args args = TT_PJRT_ARGS(PJRT_Event_Await, .event = event);
  return TT_PJRT_CALL(client->plugin, PJRT_Event_Await, &args);
}

bool tt_pevent_is_ready(tt_client_t* client, tt_pevent_t* event) {
  PJRT_Event_IsReady_Args args = TT_PJRT_ARGS(PJRT_Event_IsReady, .event = event);
  tt_status_t status = TT_PJRT_CALL(client->plugin, PJRT_Event_IsReady, &args);
  if (!status) return args.is_ready;
  tt_status_free(status);
  return false;
}

typedef struct on_ready_t {
  tt_plugin_t* plugin;
  void (*fn)(tt_status_t status, void* ctx);
  void* ctx;
} on_ready_t;

static void run_on_ready(PJRT_Error* error, void* user_arg) {
  on_ready_t call = *(on_ready_t*)user_arg;
  tt_free(user_arg);
  call.fn(tt_pjrt_check(call.plugin, error, "PJRT_Event_OnReady", __FILE__, __LINE__), call.ctx);
}

tt_status_t tt_pevent_on_ready(tt_client_t* client, tt_pevent_t* event, void (*fn)(tt_status_t status, void* ctx),
                               void* ctx) {
  on_ready_t* call = tt_malloc(sizeof *call);
  if (!call) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  *call = (on_ready_t){client->plugin, fn, ctx};
  PJRT_Event_OnReady_Args args =
      TT_PJRT_ARGS(PJRT_Event_OnReady, .event = event, .callback = run_on_ready, .user_arg = call);
  tt_status_t status = TT_PJRT_CALL(client->plugin, PJRT_Event_OnReady, &args);
  if (status) tt_free(call);
  return status;
}

void tt_pevent_free(tt_client_t* client, tt_pevent_t* event) {
  if (!event) return;
  PJRT_Event_Destroy_Args args = TT_PJRT_ARGS(PJRT_Event_Destroy, .event = event);
  TT_PJRT_CALL_QUIETLY(client->plugin, PJRT_Event_Destroy, &args);
}
