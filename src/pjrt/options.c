// Options for plugins: named values for clients and topologies, CompileOptionsProto for compilers.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pb_out.h"
#include "pjrt/objects.h"

// A value in text, told apart: true/false, an integer, a floating point number, else a string.
typedef struct option_value_t {
  PJRT_NamedValue_Type type;
  bool b;
  int64_t i;
  double f;
} option_value_t;

static option_value_t read_value(const char* text) {
  option_value_t v = {.type = PJRT_NamedValue_kString};
  char* end;
  if (!strcmp(text, "true") || !strcmp(text, "false")) {
    v.type = PJRT_NamedValue_kBool;
    v.b = text[0] == 't';
    return v;
  }
  if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) return v;  // keeps "inf", "nan", "0x1" strings
  errno = 0;
  long long i = strtoll(text, &end, 10);
  if (!*end && !errno) {
    v.type = PJRT_NamedValue_kInt64;
    v.i = i;
    return v;
  }
  errno = 0;
  double f = strtod(text, &end);
  if (!*end && !errno) {
    v.type = PJRT_NamedValue_kFloat;
    v.f = f;
  }
  return v;
}

// Cuts the next "name=value" out of |*cursor|, which is overwritten with NULs. False at the end.
static bool next_pair(char** cursor, char** out_name, char** out_value) {
  while (**cursor == ';' || **cursor == ' ') ++*cursor;
  if (!**cursor) return false;
  char* item = *cursor;
  char* end = item + strcspn(item, ";");
  *cursor = *end ? end + 1 : end;
  *end = 0;
  char* equals = strchr(item, '=');
  *out_name = item;
  *out_value = equals ? equals + 1 : NULL;
  if (equals) *equals = 0;
  return true;
}

tt_status_t tt_named_values_parse(const char* text, tt_named_values_t* out) {
  memset(out, 0, sizeof *out);
  if (!text || !*text) return NULL;
  out->text = tt_strdup(text);
  if (!out->text) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_status_t status = NULL;
  char *cursor = out->text, *name, *value;
  while (!status && next_pair(&cursor, &name, &value)) {
    if (!value || !*name) {
      status = tt_error(TT_INVALID_ARGUMENT, "options are \"name=value;name=value\"; this one is not: \"%s\"", name);
    } else if (out->count == sizeof out->items / sizeof out->items[0]) {
      status = tt_error(TT_INVALID_ARGUMENT, "more than %zu options", out->count);
    } else {
      option_value_t v = read_value(value);
      PJRT_NamedValue* item = &out->items[out->count++];
      item->struct_size = PJRT_NamedValue_STRUCT_SIZE;
      item->name = name;
      item->name_size = strlen(name);
      item->type = v.type;
      item->value_size = 1;
      if (v.type == PJRT_NamedValue_kBool) item->bool_value = v.b;
      if (v.type == PJRT_NamedValue_kInt64) item->int64_value = v.i;
      if (v.type == PJRT_NamedValue_kFloat) item->float_value = (float)v.f;
      if (v.type == PJRT_NamedValue_kString) {
        item->string_value = value;
        item->value_size = strlen(value);
      }
    }
  }
  if (status) tt_named_values_deinit(out);
  return status;
}

void tt_named_values_deinit(tt_named_values_t* values) {
  tt_free(values->text);
  memset(values, 0, sizeof *values);
}

// ---------------------------------------------------------------- flags a compiler may not know
bool tt_unknown_flags_has(const tt_unknown_flags_t* flags, const char* name) {
  int n = flags ? atomic_load_explicit(&flags->count, memory_order_acquire) : 0;
  for (int i = 0; i < n; i++) {
    if (!strcmp(flags->names[i], name)) return true;
  }
  return false;
}

// XLA's words for it: "No such compile option: 'name'".
static bool refused_name(tt_status_t status, char* out_name, size_t size) {
  static const char k_words[] = "No such compile option: '";
  const char* s = strstr(tt_status_message(status), k_words);
  if (!s) return false;
  s += sizeof k_words - 1;
  size_t len = strcspn(s, "'");
  if (!s[len] || len >= size) return false;
  memcpy(out_name, s, len);
  out_name[len] = 0;
  return true;
}

bool tt_unknown_flags_learn(tt_unknown_flags_t* flags, tt_status_t status, const char* overrides) {
  char pattern[TT_FLAG_NAME_SIZE + 2] = "?";
  if (!overrides || !refused_name(status, pattern + 1, TT_FLAG_NAME_SIZE)) return false;
  size_t len = strlen(pattern);
  const char* s = overrides;
  while ((s = strstr(s, pattern)) != NULL && s[len] != '=') s += len;
  if (!s) return false;  // not one of those that may be missing
  pthread_mutex_lock(&flags->lock);
  int n = atomic_load(&flags->count);
  bool learned = tt_unknown_flags_has(flags, pattern + 1);
  if (!learned && n < TT_MAX_UNKNOWN_FLAGS) {
    memcpy(flags->names[n], pattern + 1, len);
    atomic_store_explicit(&flags->count, n + 1, memory_order_release);
    learned = true;
  }
  pthread_mutex_unlock(&flags->lock);
  return learned;
}

// ---------------------------------------------------------------- CompileOptionsProto
// Field numbers of xla/pjrt/proto/compile_options.proto and xla/xla_data.proto.
enum {
  COMPILE_BUILD_OPTIONS = 3,
  COMPILE_ENV_OVERRIDES = 7,
  BUILD_NUM_REPLICAS = 4,
  BUILD_NUM_PARTITIONS = 5,
  BUILD_USE_SPMD = 6,
  BUILD_DEVICE_ASSIGNMENT = 9,
  ASSIGNMENT_REPLICAS = 1,
  ASSIGNMENT_COMPUTATIONS = 2,
  ASSIGNMENT_DEVICES = 3,
  ASSIGNMENT_DEVICE_IDS = 1,
  MAP_KEY = 1,
  MAP_VALUE = 2,
  OVERRIDE_STRING = 1,
  OVERRIDE_BOOL = 2,
  OVERRIDE_INT = 3,
  OVERRIDE_DOUBLE = 4,
};

static void write_override(const char* name, const char* text, tt_strbuf_t* out) {
  tt_strbuf_t value, entry;
  tt_strbuf_init(&value);
  tt_strbuf_init(&entry);
  option_value_t v = read_value(text);
  switch (v.type) {
    case PJRT_NamedValue_kBool: tt_pb_int(&value, OVERRIDE_BOOL, v.b); break;
    case PJRT_NamedValue_kInt64: tt_pb_int(&value, OVERRIDE_INT, v.i); break;
    case PJRT_NamedValue_kFloat: tt_pb_double(&value, OVERRIDE_DOUBLE, v.f); break;
    default: tt_pb_bytes(&value, OVERRIDE_STRING, text, strlen(text)); break;
  }
  tt_pb_bytes(&entry, MAP_KEY, name, strlen(name));
  tt_pb_message(&entry, MAP_VALUE, &value);
  tt_pb_message(out, COMPILE_ENV_OVERRIDES, &entry);
  tt_strbuf_deinit(&value);
  tt_strbuf_deinit(&entry);
}

static tt_status_t write_overrides(const char* overrides, const tt_unknown_flags_t* unknown, tt_strbuf_t* out) {
  if (!overrides || !*overrides) return NULL;
  char* text = tt_strdup(overrides);
  if (!text) return tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted");
  tt_status_t status = NULL;
  char *cursor = text, *name, *value;
  while (!status && next_pair(&cursor, &name, &value)) {
    if (!value || !*name) {
      status =
          tt_error(TT_INVALID_ARGUMENT, "compiler flags are \"name=value;name=value\"; this one is not: \"%s\"", name);
    } else if (name[0] != '?') {
      write_override(name, value, out);
    } else if (!tt_unknown_flags_has(unknown, name + 1)) {
      write_override(name + 1, value, out);
    }
  }
  tt_free(text);
  return status;
}

// One list of devices a partition, with the device of each replica.
static void write_device_assignment(const tt_spread_t* spread, tt_strbuf_t* build) {
  tt_strbuf_t assignment;
  tt_strbuf_init(&assignment);
  tt_pb_int(&assignment, ASSIGNMENT_REPLICAS, (uint64_t)spread->replicas);
  tt_pb_int(&assignment, ASSIGNMENT_COMPUTATIONS, (uint64_t)spread->partitions);
  for (int p = 0; p < spread->partitions; p++) {
    tt_strbuf_t devices, ids;
    tt_strbuf_init(&devices);
    tt_strbuf_init(&ids);
    for (int r = 0; r < spread->replicas; r++)
      tt_pb_varint(&ids, (uint64_t)spread->devices[r * spread->partitions + p]);
    tt_pb_message(&devices, ASSIGNMENT_DEVICE_IDS, &ids);
    tt_pb_message(&assignment, ASSIGNMENT_DEVICES, &devices);
    tt_strbuf_deinit(&ids);
    tt_strbuf_deinit(&devices);
  }
  tt_pb_message(build, BUILD_DEVICE_ASSIGNMENT, &assignment);
  tt_strbuf_deinit(&assignment);
}

tt_status_t tt_compile_options_write(const tt_spread_t* spread, const char* flags, const char* overrides,
                                     const tt_unknown_flags_t* unknown, tt_strbuf_t* out) {
  tt_strbuf_t build;
  tt_strbuf_init(&build);
  // XLA stops the process on zero replicas or partitions, so these two are never left out.
  tt_pb_int(&build, BUILD_NUM_REPLICAS, (uint64_t)spread->replicas);
  tt_pb_int(&build, BUILD_NUM_PARTITIONS, (uint64_t)spread->partitions);
  if (spread->partitions > 1) tt_pb_int(&build, BUILD_USE_SPMD, 1);
  if (spread->devices) write_device_assignment(spread, &build);
  tt_pb_message(out, COMPILE_BUILD_OPTIONS, &build);
  tt_strbuf_deinit(&build);
  TT_TRY(write_overrides(flags, unknown, out));
  TT_TRY(write_overrides(overrides, unknown, out));  // of equal keys in a map the last one counts
  return out->failed ? tt_error(TT_RESOURCE_EXHAUSTED, "host memory is exhausted") : NULL;
}
