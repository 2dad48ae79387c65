// Loading plugins: one per library path per process, never unloaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "pjrt/environment.h"
#include "pjrt/load.h"
#include "pjrt/objects.h"

// Oldest minor version whose layout of the tables and argument structs we have checked.
enum { OLDEST_MINOR = 40 };

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static tt_plugin_t* g_plugins;

char* tt_string_copy(const char* data, size_t len) {
  char* s = tt_malloc(len + 1);
  if (!s) return NULL;
  if (len) memcpy(s, data, len);
  s[len] = 0;
  return s;
}

// ---------------------------------------------------------------- errors
tt_status_t tt_pjrt_missing(const tt_plugin_t* plugin, const char* function, const char* file, int line) {
  return tt_status_make(TT_UNIMPLEMENTED, file, line, "%s: not in the plugin %s (PJRT API %d.%d)", function,
                        plugin->path, plugin->major, plugin->minor);
}

void tt_pjrt_drop_error(const tt_plugin_t* plugin, PJRT_Error* error) {
  PJRT_Error_Destroy_Args destroy = TT_PJRT_ARGS(PJRT_Error_Destroy, .error = error);
  if (error && TT_PJRT_HAS(plugin, PJRT_Error_Destroy)) plugin->api->PJRT_Error_Destroy(&destroy);
}

static tt_code_t code_of(const tt_plugin_t* plugin, const PJRT_Error* error) {
  PJRT_Error_GetCode_Args args = TT_PJRT_ARGS(PJRT_Error_GetCode, .error = error);
  if (!TT_PJRT_HAS(plugin, PJRT_Error_GetCode)) return TT_UNKNOWN;
  PJRT_Error* second = plugin->api->PJRT_Error_GetCode(&args);
  if (second) {
    tt_pjrt_drop_error(plugin, second);
    return TT_UNKNOWN;
  }
  if (args.code == PJRT_Error_Code_UNAUTHENTICATED) return TT_PERMISSION_DENIED;
  return args.code >= 1 && args.code <= 15 ? (tt_code_t)args.code : TT_UNKNOWN;
}

tt_status_t tt_pjrt_take_error(const tt_plugin_t* plugin, PJRT_Error* error, const char* function, const char* file,
                               int line) {
  PJRT_Error_Message_Args args = TT_PJRT_ARGS(PJRT_Error_Message, .error = error);
  if (TT_PJRT_HAS(plugin, PJRT_Error_Message)) plugin->api->PJRT_Error_Message(&args);
  int len = args.message ? (args.message_size > 1 << 20 ? 1 << 20 : (int)args.message_size) : 0;
  tt_status_t status =
      len ? tt_status_make(code_of(plugin, error), file, line, "%.*s", len, args.message)
          : tt_status_make(code_of(plugin, error), file, line, "%s failed without a message", function);
  tt_pjrt_drop_error(plugin, error);
  return status;
}

// ---------------------------------------------------------------- opening
static tt_status_t check_file(const char* path) {
  struct stat st;
  if (!strchr(path, '/')) return NULL;  // a bare name: the loader searches
  if (stat(path, &st) != 0) {
    return tt_error(
        TT_NOT_FOUND,
        "PJRT plugin not found: no file %s. Install a plugin package, or point TORCH_TPU_PJRT_PLUGIN at one", path);
  }
  if (S_ISDIR(st.st_mode)) {
    return tt_error(TT_FAILED_PRECONDITION, "PJRT plugin %s is a folder; name the shared library in it", path);
  }
  return NULL;
}

static tt_status_t check_version(const char* path, const PJRT_Api* api) {
  int major = api->pjrt_api_version.major_version, minor = api->pjrt_api_version.minor_version;
  if (major != PJRT_API_MAJOR) {
    return tt_error(TT_FAILED_PRECONDITION,
                    "PJRT plugin %s speaks API %d.%d; this build speaks major version %d. Install a plugin of that "
                    "version, or a newer torch_tpu",
                    path, major, minor, PJRT_API_MAJOR);
  }
  if (minor < OLDEST_MINOR) {
    return tt_error(
        TT_FAILED_PRECONDITION,
        "PJRT plugin %s speaks API %d.%d, which is too old; 0.%d or newer is needed. Install a newer plugin", path,
        major, minor, OLDEST_MINOR);
  }
  if (api->struct_size < offsetof(PJRT_Api, PJRT_Client_Create)) {
    return tt_error(TT_FAILED_PRECONDITION,
                    "PJRT plugin %s gives a function table of %zu bytes, too short to hold even the client functions; "
                    "the file is broken or not a PJRT plugin. Reinstall it",
                    path, api->struct_size);
  }
  return NULL;
}

static tt_status_t load_api(const char* path, const PJRT_Api** out_api) {
  TT_TRY(check_file(path));
  tt_environment_before_load(path);
  TT_TRY(tt_plugin_probe(path));
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return tt_error(TT_FAILED_PRECONDITION,
                    "PJRT plugin %s cannot be loaded: %s. It must be a shared library for this machine, with all the "
                    "libraries it needs; reinstall it or choose another with TORCH_TPU_PJRT_PLUGIN",
                    path, why ? why : "unknown reason");
  }
  const PJRT_Api* (*get_api)(void);
  void* symbol = dlsym(library, "GetPjrtApi");
  if (!symbol) {
    dlclose(library);  // not a plugin, so nothing of XLA runs in it
    return tt_error(TT_FAILED_PRECONDITION,
                    "%s is a shared library but not a PJRT plugin: it has no function GetPjrtApi. Point "
                    "TORCH_TPU_PJRT_PLUGIN at a PJRT plugin",
                    path);
  }
  memcpy(&get_api, &symbol, sizeof get_api);  // ISO C has no cast from object to function pointers
  *out_api = get_api();
  if (!*out_api) {
    return tt_error(TT_FAILED_PRECONDITION, "PJRT plugin %s: GetPjrtApi returned nothing; reinstall the plugin", path);
  }
  return check_version(path, *out_api);
}

static tt_status_t create_locked(const char* path, tt_plugin_t** out_plugin) {
  tt_plugin_t* plugin = tt_calloc(1, sizeof *plugin);
  if (!plugin) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  plugin->path = tt_strdup(path);
  tt_status_t status = plugin->path ? NULL : tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  if (!status) status = load_api(path, &plugin->api);
  if (status) {
    tt_free(plugin->path);
    tt_free(plugin);
    return status;
  }
  plugin->major = plugin->api->pjrt_api_version.major_version;
  plugin->minor = plugin->api->pjrt_api_version.minor_version;
  pthread_mutex_init(&plugin->lock, NULL);
  pthread_mutex_init(&plugin->unknown_flags.lock, NULL);
  plugin->next = g_plugins;
  g_plugins = plugin;
  *out_plugin = plugin;
  return NULL;
}

tt_status_t tt_plugin_open(const char* path, tt_plugin_t** out_plugin) {
  *out_plugin = NULL;
  if (!path || !*path) return tt_error(TT_INVALID_ARGUMENT, "the path of a PJRT plugin is empty");
  char* resolved = strchr(path, '/') ? realpath(path, NULL) : NULL;
  const char* name = resolved ? resolved : path;
  tt_status_t status = NULL;
  pthread_mutex_lock(&g_lock);
  tt_plugin_t* plugin = g_plugins;
  while (plugin && strcmp(plugin->path, name) != 0) plugin = plugin->next;
  if (!plugin) status = create_locked(name, &plugin);
  if (!status) atomic_fetch_add(&plugin->refs, 1);
  pthread_mutex_unlock(&g_lock);
  free(resolved);
  if (!status) *out_plugin = plugin;
  return status;
}

void tt_plugin_retain(tt_plugin_t* plugin) { atomic_fetch_add(&plugin->refs, 1); }

void tt_plugin_release(tt_plugin_t* plugin) {
  if (plugin) atomic_fetch_sub(&plugin->refs, 1);
}

const char* tt_plugin_path(const tt_plugin_t* plugin) { return plugin->path; }

void tt_plugin_version(const tt_plugin_t* plugin, int* out_major, int* out_minor) {
  *out_major = plugin->major;
  *out_minor = plugin->minor;
}

// ---------------------------------------------------------------- attributes, initialisation
static void format_value(const PJRT_NamedValue* v, tt_strbuf_t* out) {
  switch (v->type) {
    case PJRT_NamedValue_kString: tt_strbuf_append(out, v->string_value, v->value_size); break;
    case PJRT_NamedValue_kInt64: tt_strbuf_printf(out, "%lld", (long long)v->int64_value); break;
    case PJRT_NamedValue_kInt64List:
      // A version triple reads as "1.13.3", which is the only kind of list seen so far.
      for (size_t i = 0; i < v->value_size; i++) {
        tt_strbuf_printf(out, i ? ".%lld" : "%lld", (long long)v->int64_array_value[i]);
      }
      break;
    case PJRT_NamedValue_kFloat: tt_strbuf_printf(out, "%g", (double)v->float_value); break;
    case PJRT_NamedValue_kBool: tt_strbuf_puts(out, v->bool_value ? "true" : "false"); break;
    default: break;
  }
}

static void free_attributes(tt_plugin_t* plugin) {
  for (size_t i = 0; i < plugin->attr_count; i++) {
    tt_free(plugin->attrs[i].name);
    tt_free(plugin->attrs[i].value);
  }
  tt_free(plugin->attrs);
  plugin->attrs = NULL;
  plugin->attr_count = 0;
}

static tt_status_t read_attributes_locked(tt_plugin_t* plugin) {
  if (plugin->has_attrs) return NULL;
  PJRT_Plugin_Attributes_Args args = TT_PJRT_ARGS(PJRT_Plugin_Attributes, .attributes = NULL);
  tt_status_t status = TT_PJRT_CALL(plugin, PJRT_Plugin_Attributes, &args);
  if (status) {  // an optional function: a plugin that says nothing is fine
    tt_status_free(status);
    plugin->has_attrs = true;
    return NULL;
  }
  plugin->attrs = tt_calloc(args.num_attributes ? args.num_attributes : 1, sizeof *plugin->attrs);
  if (!plugin->attrs) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  for (size_t i = 0; i < args.num_attributes; i++) {
    tt_strbuf_t text;
    tt_strbuf_init(&text);
    tt_strbuf_puts(&text, "");
    format_value(&args.attributes[i], &text);
    char* name = tt_string_copy(args.attributes[i].name, args.attributes[i].name_size);
    char* value = text.failed ? NULL : tt_string_copy(text.data, text.len);
    tt_strbuf_deinit(&text);
    plugin->attrs[plugin->attr_count++] = (tt_plugin_attr_t){name, value};
    if (!name || !value) {
      free_attributes(plugin);
      return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
    }
  }
  plugin->has_attrs = true;
  return NULL;
}

tt_status_t tt_plugin_initialize(tt_plugin_t* plugin) {
  pthread_mutex_lock(&plugin->lock);
  tt_status_t status = NULL;
  if (!plugin->is_initialized) {
    status = read_attributes_locked(plugin);
    if (!status && TT_PJRT_HAS(plugin, PJRT_Plugin_Initialize)) {
      PJRT_Plugin_Initialize_Args args = TT_PJRT_ARGS(PJRT_Plugin_Initialize, .extension_start = NULL);
      status = TT_PJRT_CALL(plugin, PJRT_Plugin_Initialize, &args);
    }
    plugin->is_initialized = !status;
  }
  pthread_mutex_unlock(&plugin->lock);
  return tt_status_annotate(status, "PJRT plugin %s", plugin->path);
}

const char* tt_plugin_attribute(const tt_plugin_t* plugin, const char* name) {
  tt_plugin_t* p = (tt_plugin_t*)plugin;  // filled on first use; logically constant
  const char* value = NULL;
  pthread_mutex_lock(&p->lock);
  tt_status_t status = read_attributes_locked(p);
  tt_status_free(status);
  for (size_t i = 0; i < p->attr_count && !value; i++) {
    if (!strcmp(p->attrs[i].name, name)) value = p->attrs[i].value;
  }
  pthread_mutex_unlock(&p->lock);
  return value;
}
