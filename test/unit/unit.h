// What every unit test includes first: cmocka with the headers it wants, and pseudo-random numbers that repeat.
#ifndef TEST_UNIT_UNIT_H_
#define TEST_UNIT_UNIT_H_
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h wants those before it.
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tt/types.h"

static uint64_t g_random = 88172645463325252u;
static inline uint64_t random_u64(void) {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return g_random;
}
static inline int64_t random_below(int64_t n) { return (int64_t)(random_u64() % (uint64_t)n); }

static inline void unit_expect(tt_status_t status, tt_code_t code, const char* words, const char* file, int line) {
  bool right = tt_status_code(status) == code && strstr(tt_status_message(status), words);
  if (!right) {
    print_error("%s:%d: %s: \"%s\", expected %s: \"%s\"\n", file, line, tt_code_name(tt_status_code(status)),
                tt_status_message(status), tt_code_name(code), words);
  }
  tt_status_free(status);
  assert_true(right);
}
#define OK(expr) unit_expect((expr), TT_OK, "", __FILE__, __LINE__)
#define FAILS(expr, code, words) unit_expect((expr), (code), (words), __FILE__, __LINE__)

#endif  // TEST_UNIT_UNIT_H_
