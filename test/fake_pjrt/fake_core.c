#define _GNU_SOURCE
#include "fake_core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct PJRT_Error {
  PJRT_Error_Code code;
  char message[512];
};

struct PJRT_Event {
  fake_async_t* async;
};

typedef struct counter_t {
  const char* name;
  int64_t calls;
} counter_t;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static counter_t g_counters[128];
static int64_t g_total, g_live, g_fail_in, g_fail_function_in;
static int g_fail_code;
static char g_fail_function[96], g_execution_failure[256], g_taken_failure[256];
static bool g_failed;
static fake_events_t g_events;

// ---------------------------------------------------------------- control
void fake_reset(void) {
  pthread_mutex_lock(&g_lock);
  memset(g_counters, 0, sizeof g_counters);
  g_total = g_fail_in = g_fail_function_in = 0;
  g_fail_function[0] = g_execution_failure[0] = 0;
  g_failed = false;
  g_events = FAKE_EVENTS_NOW;
  pthread_mutex_unlock(&g_lock);
}

void fake_fail_at(int64_t n, int code) {
  pthread_mutex_lock(&g_lock);
  g_fail_in = n;
  g_fail_code = code;
  g_failed = false;
  pthread_mutex_unlock(&g_lock);
}

void fake_fail_function(const char* name, int64_t n) {
  pthread_mutex_lock(&g_lock);
  snprintf(g_fail_function, sizeof g_fail_function, "%s", name ? name : "");
  g_fail_function_in = name ? n : 0;
  g_fail_code = PJRT_Error_Code_INTERNAL;
  g_failed = false;
  pthread_mutex_unlock(&g_lock);
}

bool fake_has_failed(void) { return g_failed; }
void fake_set_events(fake_events_t mode) { g_events = mode; }

void fake_fail_execution(const char* message) {
  snprintf(g_execution_failure, sizeof g_execution_failure, "%s", message);
}

const char* fake_take_execution_failure(void) {
  if (!g_execution_failure[0]) return NULL;
  memcpy(g_taken_failure, g_execution_failure, sizeof g_taken_failure);
  g_execution_failure[0] = 0;
  return g_taken_failure;
}

int64_t fake_calls(const char* name) {
  int64_t n = 0;
  pthread_mutex_lock(&g_lock);
  if (!name) n = g_total;
  for (size_t i = 0; name && i < sizeof g_counters / sizeof g_counters[0] && g_counters[i].name; i++) {
    if (!strcmp(g_counters[i].name, name)) n = g_counters[i].calls;
  }
  pthread_mutex_unlock(&g_lock);
  return n;
}

int64_t fake_live(void) {
  pthread_mutex_lock(&g_lock);
  int64_t n = g_live;
  pthread_mutex_unlock(&g_lock);
  return n;
}

PJRT_Error* fake_enter(const char* function) {
  bool fail = false;
  pthread_mutex_lock(&g_lock);
  g_total++;
  for (size_t i = 0; i < sizeof g_counters / sizeof g_counters[0]; i++) {
    if (!g_counters[i].name) g_counters[i].name = function;
    if (strcmp(g_counters[i].name, function) != 0) continue;
    g_counters[i].calls++;
    break;
  }
  if (g_fail_in > 0 && --g_fail_in == 0) fail = true;
  if (g_fail_function_in > 0 && !strcmp(g_fail_function, function) && --g_fail_function_in == 0) fail = true;
  if (fail) g_failed = true;
  int code = g_fail_code;
  pthread_mutex_unlock(&g_lock);
  return fail ? fake_error((PJRT_Error_Code)code, "%s: failure asked for", function) : NULL;
}

// ---------------------------------------------------------------- objects and errors
void* fake_new(size_t size_bytes) {
  void* p = calloc(1, size_bytes);
  if (!p) abort();
  pthread_mutex_lock(&g_lock);
  g_live++;
  pthread_mutex_unlock(&g_lock);
  return p;
}

void fake_delete(void* object) {
  if (!object) return;
  pthread_mutex_lock(&g_lock);
  g_live--;
  pthread_mutex_unlock(&g_lock);
  free(object);
}

PJRT_Error* fake_error(PJRT_Error_Code code, const char* format, ...) {
  PJRT_Error* e = fake_new(sizeof *e);
  va_list args;
  va_start(args, format);
  vsnprintf(e->message, sizeof e->message, format, args);
  va_end(args);
  e->code = code;
  return e;
}

void fake_error_destroy(PJRT_Error_Destroy_Args* args) { fake_delete(args->error); }

void fake_error_message(PJRT_Error_Message_Args* args) {
  args->message = args->error->message;
  args->message_size = strlen(args->message);
}

PJRT_Error* fake_error_code(PJRT_Error_GetCode_Args* args) {
  args->code = args->error->code;
  return NULL;
}

// ---------------------------------------------------------------- values that will be there
typedef struct waiter_t {
  PJRT_Event_OnReadyCallback fn;
  void* ctx;
  struct waiter_t* next;
} waiter_t;

struct fake_async_t {
  int refs;
  bool done, failed;
  char error[256];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  waiter_t* waiters;
  fake_async_t* next;  // in the queue of the thread below
  char scheduled_error[256];
};

fake_async_t* fake_async_new(void) {
  fake_async_t* a = fake_new(sizeof *a);
  a->refs = 1;
  pthread_mutex_init(&a->lock, NULL);
  pthread_cond_init(&a->changed, NULL);
  return a;
}

fake_async_t* fake_async_retain(fake_async_t* a) {
  __atomic_add_fetch(&a->refs, 1, __ATOMIC_SEQ_CST);
  return a;
}

void fake_async_release(fake_async_t* a) {
  if (!a || __atomic_sub_fetch(&a->refs, 1, __ATOMIC_SEQ_CST)) return;
  pthread_mutex_destroy(&a->lock);
  pthread_cond_destroy(&a->changed);
  fake_delete(a);
}

static PJRT_Error* error_of(const fake_async_t* a) {
  return a->failed ? fake_error(PJRT_Error_Code_INTERNAL, "%s", a->error) : NULL;
}

void fake_async_complete(fake_async_t* a, const char* error) {
  pthread_mutex_lock(&a->lock);
  a->done = true;
  a->failed = error != NULL;
  if (error) snprintf(a->error, sizeof a->error, "%s", error);
  waiter_t* w = a->waiters;
  a->waiters = NULL;
  pthread_cond_broadcast(&a->changed);
  pthread_mutex_unlock(&a->lock);
  while (w) {
    waiter_t* next = w->next;
    w->fn(error_of(a), w->ctx);
    fake_delete(w);
    w = next;
  }
}

bool fake_async_is_done(fake_async_t* a) {
  pthread_mutex_lock(&a->lock);
  bool done = a->done;
  pthread_mutex_unlock(&a->lock);
  return done;
}

PJRT_Error* fake_async_await(fake_async_t* a) {
  pthread_mutex_lock(&a->lock);
  while (!a->done) pthread_cond_wait(&a->changed, &a->lock);
  pthread_mutex_unlock(&a->lock);
  return error_of(a);
}

void fake_async_on_ready(fake_async_t* a, PJRT_Event_OnReadyCallback fn, void* ctx) {
  pthread_mutex_lock(&a->lock);
  bool done = a->done;
  if (!done) {
    waiter_t* w = fake_new(sizeof *w);
    *w = (waiter_t){fn, ctx, a->waiters};
    a->waiters = w;
  }
  pthread_mutex_unlock(&a->lock);
  if (done) fn(error_of(a), ctx);
}

// ---------------------------------------------------------------- completing later
static pthread_mutex_t g_queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_queue_changed = PTHREAD_COND_INITIALIZER;
static fake_async_t* g_queue;  // newest first
static bool g_has_thread;

static fake_async_t* take_locked(void) {
  fake_async_t** at = &g_queue;
  if (g_events != FAKE_EVENTS_REVERSE) {
    while ((*at)->next) at = &(*at)->next;
  }
  fake_async_t* a = *at;
  *at = a->next;
  return a;
}

static void* complete_forever(void* unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&g_queue_lock);
    while (!g_queue) pthread_cond_wait(&g_queue_changed, &g_queue_lock);
    pthread_mutex_unlock(&g_queue_lock);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);  // lets more arrive, so that order can be turned round
    pthread_mutex_lock(&g_queue_lock);
    fake_async_t* a = take_locked();
    pthread_mutex_unlock(&g_queue_lock);
    fake_async_complete(a, a->scheduled_error[0] ? a->scheduled_error : NULL);
    fake_async_release(a);
  }
  return NULL;
}

void fake_async_schedule(fake_async_t* a, const char* error) {
  if (g_events == FAKE_EVENTS_NOW) {
    fake_async_complete(a, error);
    return;
  }
  if (error) snprintf(a->scheduled_error, sizeof a->scheduled_error, "%s", error);
  fake_async_retain(a);
  pthread_mutex_lock(&g_queue_lock);
  if (!g_has_thread) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, complete_forever, NULL)) abort();
    pthread_detach(thread);
    g_has_thread = true;
  }
  a->next = g_queue;
  g_queue = a;
  pthread_cond_signal(&g_queue_changed);
  pthread_mutex_unlock(&g_queue_lock);
}

// ---------------------------------------------------------------- PJRT_Event
PJRT_Event* fake_event_new(fake_async_t* async) {
  PJRT_Event* e = fake_new(sizeof *e);
  e->async = fake_async_retain(async);
  return e;
}

PJRT_Error* fake_event_destroy(PJRT_Event_Destroy_Args* args) {
  if (args->event) {
    fake_async_release(args->event->async);
    fake_delete(args->event);
  }
  return fake_enter("PJRT_Event_Destroy");
}

PJRT_Error* fake_event_is_ready(PJRT_Event_IsReady_Args* args) {
  FAKE_ENTER(PJRT_Event_IsReady);
  args->is_ready = fake_async_is_done(args->event->async);
  return NULL;
}

PJRT_Error* fake_event_error(PJRT_Event_Error_Args* args) {
  FAKE_ENTER(PJRT_Event_Error);
  return fake_async_await(args->event->async);
}

PJRT_Error* fake_event_await(PJRT_Event_Await_Args* args) {
  FAKE_ENTER(PJRT_Event_Await);
  return fake_async_await(args->event->async);
}

PJRT_Error* fake_event_on_ready(PJRT_Event_OnReady_Args* args) {
  FAKE_ENTER(PJRT_Event_OnReady);
  fake_async_on_ready(args->event->async, args->callback, args->user_arg);
  return NULL;
}
