// CompileOptionsProto and named values, byte by byte.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h wants those before it.
#include <cmocka.h>
#include <string.h>

#include "base/pb_out.h"
#include "pjrt/objects.h"

static void expect_options(int device, const char* flags, const char* overrides, const char* bytes, size_t len) {
  tt_strbuf_t out;
  tt_strbuf_init(&out);
  tt_spread_t spread = {1, 1, device >= 0 ? &device : NULL};
  assert_null(tt_compile_options_write(&spread, flags, overrides, NULL, &out));
  assert_int_equal(out.len, len);
  assert_memory_equal(out.data, bytes, len);
  tt_strbuf_deinit(&out);
}
#define EXPECT(device, flags, overrides, bytes) \
  expect_options((device), (flags), (overrides), (bytes), sizeof(bytes) - 1)

static void test_compile_options(void** state) {
  (void)state;
  EXPECT(-1, NULL, NULL, "\x1a\x04\x20\x01\x28\x01");
  EXPECT(3, NULL, "", "\x1a\x0f\x20\x01\x28\x01\x4a\x09\x08\x01\x10\x01\x1a\x03\x0a\x01\x03");
  EXPECT(-1, "a=true", NULL, "\x1a\x04\x20\x01\x28\x01\x3a\x07\x0a\x01\x61\x12\x02\x10\x01");
  EXPECT(-1, NULL, "a=-1;",
         "\x1a\x04\x20\x01\x28\x01\x3a\x10\x0a\x01\x61\x12\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT(-1, NULL, "a=0.5", "\x1a\x04\x20\x01\x28\x01\x3a\x0e\x0a\x01\x61\x12\x09\x21\x00\x00\x00\x00\x00\x00\xe0\x3f");
  EXPECT(-1, NULL, "a=xy", "\x1a\x04\x20\x01\x28\x01\x3a\x09\x0a\x01\x61\x12\x04\x0a\x02xy");
  EXPECT(-1, "a=1", "?b=2",
         "\x1a\x04\x20\x01\x28\x01\x3a\x07\x0a\x01\x61\x12\x02\x18\x01\x3a\x07\x0a\x01\x62\x12\x02\x18\x02");
}

static void test_named_values(void** state) {
  (void)state;
  tt_named_values_t v;
  assert_null(tt_named_values_parse("i=7;f=1e3;b=false;s=a,b;hex=0x10;e=", &v));
  assert_int_equal(v.count, 6);
  assert_int_equal(v.items[0].type, PJRT_NamedValue_kInt64);
  assert_int_equal(v.items[0].int64_value, 7);
  assert_int_equal(v.items[1].type, PJRT_NamedValue_kFloat);
  assert_true(v.items[1].float_value == 1000.0f);
  assert_int_equal(v.items[2].type, PJRT_NamedValue_kBool);
  assert_false(v.items[2].bool_value);
  assert_int_equal(v.items[3].type, PJRT_NamedValue_kString);
  assert_int_equal(v.items[3].value_size, 3);
  assert_memory_equal(v.items[3].string_value, "a,b", 3);
  assert_int_equal(v.items[4].type, PJRT_NamedValue_kString);
  assert_int_equal(v.items[5].value_size, 0);
  tt_named_values_deinit(&v);
  assert_null(tt_named_values_parse(NULL, &v));
  assert_int_equal(v.count, 0);
  tt_named_values_deinit(&v);
  char many[33 * 4 + 1] = "";
  for (int i = 0; i < 33; i++) strcat(many, "a=1;");
  tt_status_t status = tt_named_values_parse(many, &v);
  assert_int_equal(tt_status_code(status), TT_INVALID_ARGUMENT);
  tt_status_free(status);
  status = tt_named_values_parse("=1", &v);
  assert_int_equal(tt_status_code(status), TT_INVALID_ARGUMENT);
  tt_status_free(status);
}

static void test_varint(void** state) {
  (void)state;
  tt_strbuf_t out;
  tt_strbuf_init(&out);
  tt_pb_varint(&out, 0);
  tt_pb_varint(&out, 300);
  tt_pb_varint(&out, UINT64_MAX);
  assert_int_equal(out.len, 13);
  assert_memory_equal(out.data, "\x00\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
  tt_strbuf_deinit(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_compile_options),
      cmocka_unit_test(test_named_values),
      cmocka_unit_test(test_varint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
