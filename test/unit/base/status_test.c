// Statuses, their names, and the table of dtypes.
#include "test/unit/unit.h"

#include "base/status.h"

static tt_status_t inner(int n) {
  if (n < 0) return tt_error(TT_OUT_OF_RANGE, "index %d", n);
  return NULL;
}

static tt_status_t outer(int n, bool* out_went_on) {
  *out_went_on = false;
  TT_TRY(inner(n));
  *out_went_on = true;
  return NULL;
}

static tt_status_t with_goto(int n, int* out_cleaned) {
  tt_status_t status;
  TT_TRY_GOTO(status, done, inner(n));
  TT_TRY_GOTO(status, done, inner(-2));
done:
  ++*out_cleaned;
  return status;
}

static void test_make(void** state) {
  (void)state;
  tt_status_t s = tt_error(TT_INVALID_ARGUMENT, "%s of %d", "size", 3);
  assert_int_equal(tt_status_code(s), TT_INVALID_ARGUMENT);
  assert_string_equal(tt_status_message(s), "size of 3");
  assert_memory_equal(tt_status_site(s), "status_test.c:", 14);
  tt_status_t copy = tt_status_clone(s);
  s = tt_status_annotate(s, "tensor %d", 2);
  assert_string_equal(tt_status_message(s), "tensor 2: size of 3");
  assert_memory_equal(tt_status_site(s), "status_test.c:", 14);
  tt_status_free(s);
  assert_string_equal(tt_status_message(copy), "size of 3");
  assert_int_equal(tt_status_code(copy), TT_INVALID_ARGUMENT);
  tt_status_free(copy);
  char text[5000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  s = tt_status_create(TT_INTERNAL, text);
  assert_string_equal(tt_status_message(s), text);
  s = tt_status_annotate(s, "%s", text);  // a context is cut, the message is not
  assert_non_null(strstr(tt_status_message(s), text));
  tt_status_free(s);
}

static void test_null_is_ok(void** state) {
  (void)state;
  assert_int_equal(tt_status_code(NULL), TT_OK);
  assert_string_equal(tt_status_message(NULL), "");
  assert_string_equal(tt_status_site(NULL), "");
  assert_null(tt_status_annotate(NULL, "context"));
  assert_null(tt_status_clone(NULL));
  tt_status_free(NULL);
}

static void test_try(void** state) {
  (void)state;
  bool went_on;
  int cleaned = 0;
  OK(outer(1, &went_on));
  assert_true(went_on);
  FAILS(outer(-1, &went_on), TT_OUT_OF_RANGE, "index -1");
  assert_false(went_on);
  FAILS(with_goto(-1, &cleaned), TT_OUT_OF_RANGE, "index -1");
  FAILS(with_goto(1, &cleaned), TT_OUT_OF_RANGE, "index -2");
  assert_int_equal(cleaned, 2);
}

static void test_names(void** state) {
  (void)state;
#define TT_X(name, number, exception)                           \
  assert_int_equal(TT_##name, number);                          \
  assert_string_equal(tt_code_name(TT_##name), #name);          \
  assert_string_equal(tt_code_exception(TT_##name), exception);
  TT_STATUS_CODES(TT_X)
#undef TT_X
  assert_string_equal(tt_code_name(TT_OK), "OK");
  assert_string_equal(tt_code_name((tt_code_t)999), "UNKNOWN");
  assert_string_equal(tt_code_exception((tt_code_t)999), "RuntimeError");
}

static void test_dtypes(void** state) {
  (void)state;
  int n = 0;
#define TT_X(name, bytes, mlir, torch, pjrt, kind)              \
  n++;                                                          \
  assert_int_equal(tt_dtype_size(TT_##name), bytes);            \
  assert_string_equal(tt_dtype_mlir(TT_##name), mlir);          \
  assert_string_equal(tt_dtype_name(TT_##name), torch);         \
  assert_int_equal(tt_dtype_pjrt(TT_##name), pjrt);             \
  assert_int_equal(tt_dtype_kind(TT_##name), kind);
  TT_DTYPES(TT_X)
#undef TT_X
  assert_int_equal(n, TT_DTYPE_COUNT - 1);
  for (int i = 1; i < TT_DTYPE_COUNT; i++)
    for (int k = 1; k < i; k++) {
      assert_int_not_equal(tt_dtype_pjrt((tt_dtype_t)i), tt_dtype_pjrt((tt_dtype_t)k));
      assert_string_not_equal(tt_dtype_mlir((tt_dtype_t)i), tt_dtype_mlir((tt_dtype_t)k));
    }
  assert_int_equal(tt_dtype_size(TT_DT_NONE), 0);
  assert_int_equal(tt_dtype_size((tt_dtype_t)-1), 0);
  assert_int_equal(tt_dtype_size(TT_DTYPE_COUNT), 0);
  assert_true(tt_is_integral(TT_BOOL) && !tt_is_int(TT_BOOL) && tt_is_unsigned(TT_U8) && tt_is_float(TT_BF16) &&
              tt_is_complex(TT_C64) && !tt_is_float(TT_C64));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_make), cmocka_unit_test(test_null_is_ok),
                                     cmocka_unit_test(test_try), cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_dtypes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
