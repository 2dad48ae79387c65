// Layouts, scalar conversions, entries as bytes: the parts of the runtime that need no device.
#include "test/unit/unit.h"

#include <math.h>

#include "base/alloc.h"
#include "runtime/entry.h"

// ---------------------------------------------------------------- layouts
static void test_layouts(void** state) {
  (void)state;
  const int64_t dims[3] = {2, 3, 4}, other[3] = {2, 4, 3};
  rt_lock();
  const rt_layout_t* l = rt_layout_get(TT_BF16, 3, dims);
  assert_ptr_equal(rt_layout_get(TT_BF16, 3, (const int64_t[]){2, 3, 4}), l);
  assert_ptr_not_equal(rt_layout_get(TT_F16, 3, dims), l);
  assert_ptr_not_equal(rt_layout_get(TT_BF16, 3, other), l);
  assert_ptr_not_equal(rt_layout_get(TT_BF16, 2, dims), l);
  assert_int_equal(l->dtype, TT_BF16);
  assert_int_equal(l->rank, 3);
  assert_int_equal(l->numel, 24);
  assert_int_equal(l->size_bytes, 48);
  assert_memory_equal(l->dims, dims, sizeof dims);
  const rt_layout_t* scalar = rt_layout_get(TT_C128, 0, NULL);
  assert_int_equal(scalar->numel, 1);
  assert_int_equal(scalar->size_bytes, 16);
  assert_int_equal(rt_layout_get(TT_F32, 1, (const int64_t[]){0})->size_bytes, 0);
  for (int64_t i = 0; i < 500; i++) assert_int_equal(rt_layout_get(TT_I8, 1, &i)->dims[0], i);
  assert_ptr_equal(rt_layout_get(TT_BF16, 3, dims), l);  // still there after the table has grown
  rt_unlock();
}

// ---------------------------------------------------------------- scalars
static tt_value_t integer(int64_t i) { return (tt_value_t){.kind = TT_V_INT, .u.i = i}; }
static tt_value_t number(double v) { return (tt_value_t){.kind = TT_V_FLOAT, .u.f = v}; }

static uint64_t bits(tt_value_t v, tt_dtype_t dtype) {
  unsigned char out[16];
  uint64_t word;
  assert_int_equal(rt_scalar_bits(&v, dtype, out), tt_dtype_size(dtype));
  for (size_t i = tt_dtype_size(dtype); i < 16; i++) assert_int_equal(out[i], 0);  // a key: nothing stray behind
  memcpy(&word, out, 8);
  return word;
}

static void test_scalars_to_integers(void** state) {
  (void)state;
  static const tt_dtype_t k_ints[] = {TT_I8, TT_I16, TT_I32, TT_I64, TT_U8, TT_U16, TT_U32, TT_U64};
  for (size_t k = 0; k < sizeof k_ints / sizeof *k_ints; k++) {
    int width = 8 * (int)tt_dtype_size(k_ints[k]);
    uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    static const int64_t k_values[] = {0, 1, -1, 127, 128, 255, 65536, INT32_MIN, INT64_MAX, INT64_MIN, 123456789012345};
    for (size_t i = 0; i < sizeof k_values / sizeof *k_values; i++)
      assert_int_equal(bits(integer(k_values[i]), k_ints[k]), (uint64_t)k_values[i] & mask);
    assert_int_equal(bits(number(-3.9), k_ints[k]), (uint64_t)-3 & mask);  // towards zero
    assert_int_equal(bits(number(100.9), k_ints[k]), 100);
    assert_int_equal(bits((tt_value_t){.kind = TT_V_BOOL, .u.i = 1}, k_ints[k]), 1);
    assert_int_equal(bits((tt_value_t){.kind = TT_V_COMPLEX, .u.f = 7, .im = 9}, k_ints[k]), 7);
  }
  assert_int_equal(bits(integer(256), TT_BOOL), 1);
  assert_int_equal(bits(integer(0), TT_BOOL), 0);
  assert_int_equal(bits(number(0.25), TT_BOOL), 1);
  assert_int_equal(bits(number(NAN), TT_BOOL), 1);
  assert_int_equal(bits(number(-0.0), TT_BOOL), 0);
  assert_int_equal(bits((tt_value_t){.kind = TT_V_COMPLEX, .u.f = 0, .im = 1}, TT_BOOL), 1);
}

static uint64_t f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static uint64_t f64_bits(double f) {
  uint64_t u;
  memcpy(&u, &f, 8);
  return u;
}

static void test_scalars_to_floats(void** state) {
  (void)state;
  assert_int_equal(bits(number(0.1), TT_F64), f64_bits(0.1));
  assert_int_equal(bits(number(0.1), TT_F32), f32_bits(0.1f));
  assert_int_equal(bits(number(-0.0), TT_F32), 0x80000000u);
  assert_int_equal(bits(number(1e300), TT_F32), f32_bits(INFINITY));
  assert_int_equal(bits(integer(16777217), TT_F32), f32_bits(16777216.0f));
  assert_int_equal(bits(integer(INT64_MAX), TT_F64), f64_bits(9223372036854775808.0));
  assert_int_equal(bits((tt_value_t){.kind = TT_V_COMPLEX, .u.f = 2, .im = -3}, TT_C64), f32_bits(2) | f32_bits(-3) << 32);
  unsigned char out[16];
  tt_value_t z = {.kind = TT_V_COMPLEX, .u.f = 0.5, .im = 0.25};
  rt_scalar_bits(&z, TT_C128, out);
  assert_memory_equal(out, ((double[]){0.5, 0.25}), 16);
}

static void test_scalars_to_small_floats(void** state) {
  (void)state;
  static const struct {
    double value;
    unsigned f16, bf16;
  } k_cases[] = {
      {0, 0, 0}, {-0.0, 0x8000, 0x8000}, {1, 0x3c00, 0x3f80}, {-2, 0xc000, 0xc000}, {65504, 0x7bff, 0x4780},
      {65519, 0x7bff, 0x4780}, {65520, 0x7c00, 0x4780}, {1e39, 0x7c00, 0x7f80}, {INFINITY, 0x7c00, 0x7f80},
      {-INFINITY, 0xfc00, 0xff80}, {5.960464477539063e-08, 1, 0x3380}, {2.98023223876953125e-08, 0, 0x3300},
      {6.097555160522461e-05, 0x3ff, 0x3880}, {6.103515625e-05, 0x400, 0x3880}, {1.00048828125, 0x3c00, 0x3f80},
      {1.00146484375, 0x3c02, 0x3f80}, {1.00390625, 0x3c04, 0x3f80}, {1.01171875, 0x3c0c, 0x3f82},
  };
  for (size_t i = 0; i < sizeof k_cases / sizeof *k_cases; i++) {
    assert_int_equal(bits(number(k_cases[i].value), TT_F16), k_cases[i].f16);
    assert_int_equal(bits(number(k_cases[i].value), TT_BF16), k_cases[i].bf16);
  }
  assert_int_equal(bits(number(NAN), TT_F16) & 0x7e00, 0x7e00);
  assert_int_equal(bits(number(NAN), TT_BF16) & 0x7fc0, 0x7fc0);
}

// Every 8- and 16-bit float survives the way through f64 and back; rounding goes to the nearest of them.
static void round_trip(tt_dtype_t dtype) {
  size_t size = tt_dtype_size(dtype);
  for (uint32_t code = 0; code < 1u << (8 * size); code++) {
    unsigned char wide[16], back[16];
    double v;
    rt_host_scalar_bits(&code, dtype, TT_F64, wide);
    memcpy(&v, wide, 8);
    rt_host_scalar_bits(wide, TT_F64, dtype, back);
    uint32_t got = 0;
    memcpy(&got, back, size);
    if (!isnan(v)) {
      if (got != code) print_error("%s %x is %g is %x\n", tt_dtype_name(dtype), code, v, got);
      assert_int_equal(got, code);
    } else {
      double again;
      rt_host_scalar_bits(&got, dtype, TT_F64, wide);
      memcpy(&again, wide, 8);
      assert_true(isnan(again));
    }
  }
}

static void test_small_floats_round_trip(void** state) {
  (void)state;
  static const tt_dtype_t k_small[] = {TT_F16, TT_BF16, TT_F8E5M2, TT_F8E4M3FN, TT_F8E5M2FNUZ, TT_F8E4M3FNUZ};
  for (size_t i = 0; i < sizeof k_small / sizeof *k_small; i++) round_trip(k_small[i]);
  assert_int_equal(bits(number(1.5), TT_F8E5M2), 0x3e);
  assert_int_equal(bits(number(448), TT_F8E4M3FN), 0x7e);
  assert_int_equal(bits(integer(-1), TT_F8E4M3FN), 0xb8);
}

static void test_host_scalars(void** state) {
  (void)state;
  for (int from = 1; from < TT_DTYPE_COUNT; from++) {
    for (int to = 1; to < TT_DTYPE_COUNT; to++) {
      unsigned char in[16] = {0}, out[16], want[16];
      tt_value_t one = integer(1);
      rt_scalar_bits(&one, (tt_dtype_t)from, in);
      rt_scalar_bits(&one, (tt_dtype_t)to, want);
      assert_int_equal(rt_host_scalar_bits(in, (tt_dtype_t)from, (tt_dtype_t)to, out), tt_dtype_size((tt_dtype_t)to));
      if (memcmp(out, want, 16)) print_error("%s to %s\n", tt_dtype_name((tt_dtype_t)from), tt_dtype_name((tt_dtype_t)to));
      assert_memory_equal(out, want, 16);
    }
  }
  int8_t minus = -5;
  unsigned char out[16];
  int64_t wide;
  rt_host_scalar_bits(&minus, TT_I8, TT_I64, out);
  memcpy(&wide, out, 8);
  assert_int_equal(wide, -5);
}

// ---------------------------------------------------------------- entries as bytes
static rt_entry_t* make_entry(void) {
  rt_entry_t* e = tt_calloc(1, sizeof *e);
  assert_non_null(e);
  e->refs = 1;
  e->n_operands = 3;
  e->operands = tt_calloc(3, sizeof *e->operands);
  e->operands[0] = (tt_operand_t){.kind = TT_OPERAND_BASE, .index = 0};
  e->operands[1] = (tt_operand_t){.kind = TT_OPERAND_SCALAR, .dtype = TT_F32, .arg = 2, .elem = 1};
  e->operands[2] = (tt_operand_t){.kind = TT_OPERAND_RNG};
  e->n_fresh = 3;
  e->fresh = tt_calloc(3, sizeof *e->fresh);
  e->fresh[0].meta = (tt_meta_t){.sizes = {2, 3}, .strides = {3, 1}, .rank = 2, .dtype = TT_F32, .defined = true};
  e->fresh[0].layout = rt_layout_get(TT_F32, 2, (const int64_t[]){2, 3});
  e->fresh[0].nbytes = 24;
  e->fresh[0].count_output = -1;
  e->fresh[1].meta = (tt_meta_t){.sizes = {0}, .strides = {1}, .rank = 1, .dtype = TT_I64, .defined = true};
  e->fresh[1].output = e->fresh[1].count_output = -1;
  e->fresh[2].output = e->fresh[2].count_output = -1;  // undefined
  e->n_writes = 1;
  e->writes = tt_calloc(1, sizeof *e->writes);
  e->writes[0] = (rt_slot_write_t){.slot = 0, .output = 1, .layout = rt_layout_get(TT_BF16, 0, NULL), .donated = 0};
  e->n_messages = 2;
  e->messages = tt_calloc(2, sizeof *e->messages);
  e->messages[0] = (rt_message_t){TT_OUT_OF_RANGE, tt_strdup("index %lld is out of range")};
  e->messages[1] = (rt_message_t){TT_VALUE_ERROR, tt_strdup("")};
  e->check_output = 2;
  e->rng_drawn = 77;
  e->n_outputs = 3;
  return e;
}

static void test_entry_round_trip(void** state) {
  (void)state;
  rt_lock();
  rt_entry_t* e = make_entry();
  tt_strbuf_t bytes, again;
  tt_strbuf_init(&bytes);
  tt_strbuf_init(&again);
  assert_true(rt_entry_write(e, &bytes));
  rt_entry_t* r = rt_entry_read(bytes.data, bytes.len);
  assert_non_null(r);
  assert_int_equal(r->n_operands, 3);
  assert_memory_equal(r->operands, e->operands, 3 * sizeof *e->operands);
  assert_int_equal(r->n_fresh, 3);
  assert_memory_equal(&r->fresh[0].meta, &e->fresh[0].meta, sizeof e->fresh[0].meta);
  assert_ptr_equal(r->fresh[0].layout, e->fresh[0].layout);
  assert_null(r->fresh[1].layout);
  assert_false(r->fresh[2].meta.defined);
  assert_ptr_equal(r->writes[0].layout, e->writes[0].layout);
  assert_int_equal(r->writes[0].donated, 0);
  assert_string_equal(r->messages[0].text, e->messages[0].text);
  assert_int_equal(r->messages[1].code, TT_VALUE_ERROR);
  assert_int_equal(r->check_output, 2);
  assert_int_equal(r->rng_drawn, 77);
  assert_int_equal(r->n_outputs, 3);
  assert_true(rt_entry_write(r, &again));
  assert_int_equal(again.len, bytes.len);
  assert_memory_equal(again.data, bytes.data, bytes.len);
  rt_entry_release(r);

  for (size_t n = 0; n < bytes.len; n++) {  // in a block of its own, so that reading past its end is seen
    char* part = malloc(n + 1);
    memcpy(part, bytes.data, n);
    assert_null(rt_entry_read(part, n));
    free(part);
  }
  tt_strbuf_puts(&bytes, "x");
  assert_null(rt_entry_read(bytes.data, bytes.len));
  for (int i = 0; i < 20000; i++) {  // damaged: refused or read, never out of bounds
    char* copy = malloc(bytes.len - 1);
    memcpy(copy, bytes.data, bytes.len - 1);
    for (int k = 0; k < 3; k++) copy[random_below((int64_t)bytes.len - 1)] = (char)random_u64();
    rt_entry_release(rt_entry_read(copy, bytes.len - 1));
    free(copy);
  }
  rt_entry_release(e);
  rt_unlock();
  tt_strbuf_deinit(&bytes);
  tt_strbuf_deinit(&again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layouts), cmocka_unit_test(test_scalars_to_integers), cmocka_unit_test(test_scalars_to_floats),
      cmocka_unit_test(test_scalars_to_small_floats), cmocka_unit_test(test_small_floats_round_trip),
      cmocka_unit_test(test_host_scalars), cmocka_unit_test(test_entry_round_trip)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
