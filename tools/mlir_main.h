// Reading argument and result types of @main from StableHLO text: just enough for tools and the fake plugin.
//
// Depends on: include/tt/types.h.
// Threads: pure functions.
#ifndef TT_TOOLS_MLIR_MAIN_H_
#define TT_TOOLS_MLIR_MAIN_H_
#include <stdlib.h>
#include <string.h>

#include "tt/types.h"

typedef struct mlir_type_t {
  tt_dtype_t dtype;
  int rank;
  int64_t dims[TT_MAX_RANK];
  int alias;  // of an argument: output named by tf.aliasing_output, else -1
} mlir_type_t;

static inline size_t mlir_type_count(const mlir_type_t* t) {
  size_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= (size_t)t->dims[i];
  return n;
}

static inline size_t mlir_type_bytes(const mlir_type_t* t) { return mlir_type_count(t) * tt_dtype_size(t->dtype); }

// Parses "tensor<2x3xf32>" at |s|; returns what follows it, or NULL.
static inline const char* mlir_parse_type(const char* s, const char* end, mlir_type_t* out) {
  static const char k_open[] = "tensor<";
  out->rank = 0;
  out->alias = -1;
  out->dtype = TT_DT_NONE;
  if ((size_t)(end - s) < sizeof k_open || memcmp(s, k_open, sizeof k_open - 1) != 0) return NULL;
  s += sizeof k_open - 1;
  while (s < end && *s >= '0' && *s <= '9' && out->rank < TT_MAX_RANK) {
    int64_t n = 0;
    while (s < end && *s >= '0' && *s <= '9') n = n * 10 + (*s++ - '0');
    if (s >= end || *s != 'x') return NULL;
    s++;
    out->dims[out->rank++] = n;
  }
  for (int d = 1; d < TT_DTYPE_COUNT; d++) {
    const char* name = tt_dtype_mlir((tt_dtype_t)d);
    size_t len = strlen(name);
    if ((size_t)(end - s) > len && !memcmp(s, name, len) && (s[len] == '>' || s[len] == ',')) {
      out->dtype = (tt_dtype_t)d;
      s += len;
      while (s < end && *s != '>') s++;  // an encoding
      return s < end ? s + 1 : NULL;
    }
  }
  return NULL;
}

// Types between the parenthesis at |s| and its partner. Returns what follows, or NULL; at most |max| types.
static inline const char* mlir_parse_list(const char* s, const char* end, mlir_type_t* types, int max, int* out_n) {
  static const char k_alias[] = "tf.aliasing_output = ";
  int depth = 0;
  *out_n = 0;
  while (s < end) {
    if (*s == '(') depth++;
    if (*s == ')' && --depth == 0) return s + 1;
    if (*s == 't' && (size_t)(end - s) > 7 && !memcmp(s, "tensor<", 7)) {
      if (*out_n == max) return NULL;
      s = mlir_parse_type(s, end, &types[*out_n]);
      if (!s) return NULL;
      ++*out_n;
      continue;
    }
    if (*s == 't' && *out_n && (size_t)(end - s) > sizeof k_alias && !memcmp(s, k_alias, sizeof k_alias - 1)) {
      types[*out_n - 1].alias = atoi(s + sizeof k_alias - 1);
    }
    s++;
  }
  return NULL;
}

// Arguments and results of @main in |text|. False when there is no @main or a type is unknown.
static inline bool mlir_parse_main(const char* text, size_t len, mlir_type_t* args, int max_args, int* out_n_args,
                                   mlir_type_t* results, int max_results, int* out_n_results) {
  const char *end = text + len, *s = text;
  *out_n_args = *out_n_results = 0;
  while (s + 6 < end && memcmp(s, "@main(", 6) != 0) s++;
  if (s + 6 >= end) return false;
  s = mlir_parse_list(s + 5, end, args, max_args, out_n_args);
  if (!s) return false;
  while (s < end && *s == ' ') s++;
  if (s + 2 >= end || s[0] != '-' || s[1] != '>') return true;  // no results
  s += 2;
  while (s < end && *s == ' ') s++;
  if (s < end && *s == '(') return mlir_parse_list(s, end, results, max_results, out_n_results) != NULL;
  if (max_results < 1 || !mlir_parse_type(s, end, results)) return false;
  *out_n_results = 1;
  return true;
}

#endif  // TT_TOOLS_MLIR_MAIN_H_
