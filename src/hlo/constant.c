// Constants: encoding of values into every dtype, exact text, one op per distinct scalar.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "hlo/ir.h"

// ---------------------------------------------------------------- encoding
// A float format of 16 or 8 bits. |ieee|: has infinities. |fnuz|: one NaN where -0 would be, no infinities.
typedef struct small_float_t {
  int exponent_bits, mantissa_bits, bias;
  bool ieee, fnuz;
} small_float_t;

static const small_float_t* small_float(tt_dtype_t dtype) {
  static const small_float_t k_f16 = {5, 10, 15, true, false}, k_bf16 = {8, 7, 127, true, false};
  static const small_float_t k_e5m2 = {5, 2, 15, true, false}, k_e4m3fn = {4, 3, 7, false, false};
  static const small_float_t k_e5m2fnuz = {5, 2, 16, false, true}, k_e4m3fnuz = {4, 3, 8, false, true};
  switch (dtype) {
    case TT_F16: return &k_f16;
    case TT_BF16: return &k_bf16;
    case TT_F8E5M2: return &k_e5m2;
    case TT_F8E4M3FN: return &k_e4m3fn;
    case TT_F8E5M2FNUZ: return &k_e5m2fnuz;
    case TT_F8E4M3FNUZ: return &k_e4m3fnuz;
    default: return NULL;
  }
}

// Rounds once, to nearest, ties to even. Too large: infinity, or NaN where the format has none.
static uint32_t encode_small(double v, const small_float_t* f) {
  const int m = f->mantissa_bits, e = f->exponent_bits;
  const uint32_t sign = signbit(v) ? 1u << (e + m) : 0;
  const uint32_t inf = ((1u << e) - 1) << m;
  const uint32_t nan = f->fnuz ? 1u << (e + m) : f->ieee ? inf | 1u << (m - 1) : (1u << (e + m)) - 1;
  const uint32_t over = f->ieee ? sign | inf : f->fnuz ? nan : sign | nan;
  if (isnan(v)) return nan;
  if (isinf(v)) return over;
  double a = fabs(v);
  if (a == 0) return f->fnuz ? 0 : sign;
  int x;
  (void)frexp(a, &x);
  x -= 1;
  if (x < 1 - f->bias) x = 1 - f->bias;  // subnormal: fixed quantum
  double q = ldexp(a, m - x), whole = floor(q), rest = q - whole;
  if (rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0)) whole += 1;
  if (x + f->bias > (1 << e)) return over;
  uint32_t code = (uint32_t)whole;  // below 2^m: subnormal, and the code itself
  if (code >= 1u << m) code = ((uint32_t)(x + f->bias) << m) + (code - (1u << m));  // a carry moves the exponent
  const uint32_t last = f->ieee ? inf - 1 : f->fnuz ? (1u << (e + m)) - 1 : (1u << (e + m)) - 2;
  if (code > last) return over;
  return code == 0 && f->fnuz ? 0 : sign | code;
}

static int64_t to_i64(double v) {
  if (isnan(v)) return 0;
  if (v >= 9223372036854775808.0) return INT64_MAX;
  return v <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
}

static uint64_t to_u64(double v) {
  if (v >= 18446744073709551616.0) return UINT64_MAX;
  return v >= 0 ? (uint64_t)v : (uint64_t)to_i64(v);
}

// The low bytes of |v|: truncation is two's complement on every host we run on (all are little-endian).
static void encode_int(tt_dtype_t dtype, int64_t v, void* out) {
  if (dtype == TT_BOOL) v = v != 0;
  memcpy(out, &v, tt_dtype_size(dtype));
}

static void encode_float(tt_dtype_t dtype, double v, void* out) {
  const small_float_t* f = small_float(dtype);
  if (f) {
    uint32_t code = encode_small(v, f);
    memcpy(out, &code, tt_dtype_size(dtype));
  } else if (dtype == TT_F32) {
    float x = (float)v;
    memcpy(out, &x, sizeof x);
  } else {
    memcpy(out, &v, sizeof v);
  }
}

void hlo_encode_float(tt_dtype_t dtype, double v, void* out) { encode_float(dtype, v, out); }

static double decode_small(uint32_t code, const small_float_t* f) {
  const int m = f->mantissa_bits, e = f->exponent_bits;
  const uint32_t magnitude = code & ((1u << (e + m)) - 1), mantissa = magnitude & ((1u << m) - 1), x = magnitude >> m;
  const bool negative = code != magnitude, top = x == (1u << e) - 1;
  if (f->fnuz && negative && magnitude == 0) return NAN;
  if (f->ieee && top) return mantissa ? NAN : negative ? -INFINITY : INFINITY;
  if (!f->ieee && !f->fnuz && top && mantissa == (1u << m) - 1) return NAN;
  double v = x ? ldexp((double)(mantissa + (1u << m)), (int)x - f->bias - m) : ldexp((double)mantissa, 1 - f->bias - m);
  return negative ? -v : v;
}

double hlo_decode_float(tt_dtype_t dtype, const void* data) {
  const small_float_t* f = small_float(dtype);
  uint32_t code = 0;
  double v = 0;
  float single;
  if (f) {
    memcpy(&code, data, tt_dtype_size(dtype));
    return decode_small(code, f);
  }
  if (dtype == TT_F64) {
    memcpy(&v, data, sizeof v);
    return v;
  }
  memcpy(&single, data, sizeof single);
  return (double)single;
}

// ---------------------------------------------------------------- text
// A decimal that reads back to the same bits, or hex bits. MLIR reads a literal as f64 and then rounds to f32.
static void put_wide_float(tt_strbuf_t* s, double v, bool is_f64) {
  if (isfinite(v) && !(v == 0 && signbit(v))) {
    static const int k_digits[] = {1, 6, 8, 16};
    char text[40];
    for (int i = 0; i < (is_f64 ? 4 : 3); i++) {
      (void)snprintf(text, sizeof text, "%.*e", k_digits[i], v);
      double back = strtod(text, NULL);
      if (is_f64 ? back != v : (float)back != (float)v) continue;
      // The decimal point is the locale's; MLIR wants a dot.
      char* p = text + (text[0] == '-') + 1;
      char* rest = p;
      while (*rest && (*rest < '0' || *rest > '9')) rest++;
      tt_strbuf_append(s, text, (size_t)(p - text));
      tt_strbuf_puts(s, ".");
      tt_strbuf_puts(s, rest);
      return;
    }
  }
  uint64_t bits = 0;
  float x = (float)v;
  if (is_f64) memcpy(&bits, &v, sizeof v);
  else memcpy(&bits, &x, sizeof x);
  tt_strbuf_printf(s, is_f64 ? "0x%016llX" : "0x%08llX", (unsigned long long)bits);
}

static void put_int(tt_strbuf_t* s, tt_dtype_t dtype, const void* p) {
  size_t size = tt_dtype_size(dtype);
  uint64_t u = 0;
  memcpy(&u, p, size);
  if (tt_is_unsigned(dtype)) {
    tt_strbuf_printf(s, "%llu", (unsigned long long)u);
    return;
  }
  int shift = 64 - 8 * (int)size;
  int64_t v = (int64_t)(u << shift) >> shift;
  tt_strbuf_printf(s, "%lld", (long long)v);
}

static void put_element(tt_strbuf_t* s, tt_dtype_t dtype, const void* p) {
  if (dtype == TT_BOOL) {
    tt_strbuf_puts(s, *(const uint8_t*)p ? "true" : "false");
  } else if (tt_is_int(dtype)) {
    put_int(s, dtype, p);
  } else if (tt_is_complex(dtype)) {
    tt_dtype_t part = dtype == TT_C64 ? TT_F32 : TT_F64;
    tt_strbuf_puts(s, "(");
    put_element(s, part, p);
    tt_strbuf_puts(s, ", ");
    put_element(s, part, (const char*)p + tt_dtype_size(part));
    tt_strbuf_puts(s, ")");
  } else if (dtype == TT_F32) {
    float x;
    memcpy(&x, p, sizeof x);
    if (isnan(x)) {  // its payload survives only as bits
      uint32_t bits;
      memcpy(&bits, p, sizeof bits);
      tt_strbuf_printf(s, "0x%08X", bits);
    } else {
      put_wide_float(s, (double)x, false);
    }
  } else if (dtype == TT_F64) {
    double x;
    memcpy(&x, p, sizeof x);
    put_wide_float(s, x, true);
  } else {
    uint32_t bits = 0;
    memcpy(&bits, p, tt_dtype_size(dtype));
    tt_strbuf_printf(s, tt_dtype_size(dtype) == 2 ? "0x%04X" : "0x%02X", bits);
  }
}

static hlo_t constant_op(hlo_builder_t* b, tt_dtype_t dtype, int rank, const int64_t* dims, tt_strbuf_t* elements) {
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  tt_strbuf_puts(&s, "value = dense<");
  tt_strbuf_append(&s, elements->data ? elements->data : "", elements->len);
  tt_strbuf_puts(&s, "> : ");
  hlo_put_type(&s, dtype, rank, dims);
  const char* text = s.failed || elements->failed ? NULL : tt_arena_copy(&b->arena, s.data, s.len + 1);
  tt_strbuf_deinit(&s);
  hlo_t v = hlo_op1(b, "stablehlo.constant", 0, NULL, hlo_text_or_fail(b, text), dtype, rank, dims);
  if (v->op) v->op->kind = HLO_KIND_CONSTANT;
  return v;
}

// ---------------------------------------------------------------- scalars
typedef struct constant_key_t {
  const hlo_region_t* region;
  uint64_t dtype;
  uint8_t bytes[16];
} constant_key_t;

// One op per (region, dtype, bits).
static hlo_t scalar_of_bytes(hlo_builder_t* b, tt_dtype_t dtype, const void* bytes) {
  if (b->error) return hlo_poison(b);
  constant_key_t* key = hlo_alloc(b, sizeof *key);
  if (!key) return hlo_poison(b);
  key->region = b->current;
  key->dtype = (uint64_t)dtype;
  memcpy(key->bytes, bytes, tt_dtype_size(dtype));
  uint64_t hash = tt_hash64(key, sizeof *key, 0);
  hlo_value_t* found = tt_map_find(&b->constants, hash, key, sizeof *key);
  if (found) return found;
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  put_element(&s, dtype, bytes);
  hlo_t v = constant_op(b, dtype, 0, NULL, &s);
  tt_strbuf_deinit(&s);
  if (v->op && !tt_map_put(&b->constants, hash, key, sizeof *key, &v->op->results[0])) {
    return hlo_fail(b, TT_RESOURCE_EXHAUSTED, "out of host memory while building a program");
  }
  return v;
}

static bool check_dtype(hlo_builder_t* b, tt_dtype_t dtype) {
  if (b->error) return false;
  if (dtype > TT_DT_NONE && dtype < TT_DTYPE_COUNT) return true;
  hlo_fail(b, TT_INTERNAL, "a constant without a dtype");
  return false;
}

hlo_t hlo_scalar_complex(hlo_builder_t* b, tt_dtype_t dtype, double re, double im) {
  if (!check_dtype(b, dtype)) return hlo_poison(b);
  if (!tt_is_complex(dtype)) return hlo_scalar(b, dtype, re);
  tt_dtype_t part = dtype == TT_C64 ? TT_F32 : TT_F64;
  uint8_t bytes[16] = {0};
  encode_float(part, re, bytes);
  encode_float(part, im, bytes + tt_dtype_size(part));
  return scalar_of_bytes(b, dtype, bytes);
}

hlo_t hlo_scalar(hlo_builder_t* b, tt_dtype_t dtype, double value) {
  if (!check_dtype(b, dtype)) return hlo_poison(b);
  if (tt_is_complex(dtype)) return hlo_scalar_complex(b, dtype, value, 0);
  uint8_t bytes[16] = {0};
  if (tt_is_float(dtype)) encode_float(dtype, value, bytes);
  else if (dtype == TT_BOOL) bytes[0] = value != 0;
  else encode_int(dtype, tt_is_unsigned(dtype) ? (int64_t)to_u64(value) : to_i64(value), bytes);
  return scalar_of_bytes(b, dtype, bytes);
}

hlo_t hlo_scalar_int(hlo_builder_t* b, tt_dtype_t dtype, int64_t value) {
  if (!check_dtype(b, dtype)) return hlo_poison(b);
  if (!tt_is_integral(dtype)) return hlo_scalar(b, dtype, (double)value);
  uint8_t bytes[16] = {0};
  encode_int(dtype, value, bytes);
  return scalar_of_bytes(b, dtype, bytes);
}

// Not a dense<> of the whole shape: some XLA versions materialise that on the host.
hlo_t hlo_splat(hlo_builder_t* b, tt_dtype_t dtype, double value, int rank, const int64_t* dims) {
  return hlo_broadcast_to(b, hlo_scalar(b, dtype, value), rank, dims);
}

hlo_t hlo_full_like(hlo_builder_t* b, hlo_t like, double value) {
  if (!hlo_usable(b, "full_like", 1, &like)) return hlo_poison(b);
  return hlo_splat(b, like->dtype, value, like->rank, like->dims);
}

hlo_t hlo_zeros_like(hlo_builder_t* b, hlo_t like) { return hlo_full_like(b, like, 0); }

static int64_t int_limit(tt_dtype_t dtype, bool highest) {
  int bits = 8 * (int)tt_dtype_size(dtype);
  if (tt_is_unsigned(dtype)) return highest ? -1 : 0;  // all ones
  int64_t max = (int64_t)(UINT64_MAX >> (65 - bits));
  return highest ? max : -max - 1;
}

static hlo_t limit(hlo_builder_t* b, tt_dtype_t dtype, bool highest) {
  if (!check_dtype(b, dtype)) return hlo_poison(b);
  if (tt_is_complex(dtype)) return hlo_fail(b, TT_INVALID_ARGUMENT, "complex numbers have no order");
  if (dtype == TT_BOOL) return hlo_scalar(b, dtype, highest);
  if (tt_is_int(dtype)) return hlo_scalar_int(b, dtype, int_limit(dtype, highest));
  double v = INFINITY;
  if (dtype == TT_F8E4M3FN) v = 448;  // formats without infinities
  if (dtype == TT_F8E5M2FNUZ) v = 57344;
  if (dtype == TT_F8E4M3FNUZ) v = 240;
  return hlo_scalar(b, dtype, highest ? v : -v);
}

hlo_t hlo_lowest(hlo_builder_t* b, tt_dtype_t dtype) { return limit(b, dtype, false); }
hlo_t hlo_highest(hlo_builder_t* b, tt_dtype_t dtype) { return limit(b, dtype, true); }

hlo_t hlo_neutral(hlo_builder_t* b, hlo_reducer_t reducer, tt_dtype_t dtype) {
  switch (reducer) {
    case HLO_R_MUL: return hlo_scalar(b, dtype, 1);
    case HLO_R_MAX: return hlo_lowest(b, dtype);
    case HLO_R_MIN: return hlo_highest(b, dtype);
    case HLO_R_AND: return hlo_scalar_int(b, dtype, -1);
    default: return hlo_scalar(b, dtype, 0);
  }
}

// ---------------------------------------------------------------- arrays
static bool all_equal(const char* data, size_t size, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    if (memcmp(data, data + (size_t)i * size, size) != 0) return false;
  }
  return true;
}

hlo_t hlo_array(hlo_builder_t* b, tt_dtype_t dtype, int rank, const int64_t* dims, const void* data) {
  if (!check_dtype(b, dtype) || !hlo_check_dims(b, "array", rank, dims)) return hlo_poison(b);
  int64_t n = 1, inner[HLO_MAX_RANK + 1];
  inner[rank] = 1;
  for (int d = rank - 1; d >= 0; d--) n = inner[d] = inner[d + 1] * dims[d];
  size_t size = tt_dtype_size(dtype);
  if (n > 0 && all_equal(data, size, n)) {
    return hlo_broadcast_to(b, scalar_of_bytes(b, dtype, data), rank, dims);
  }
  tt_strbuf_t s;
  tt_strbuf_init(&s);
  for (int64_t i = 0; i < n; i++) {
    if (i) tt_strbuf_puts(&s, ", ");
    for (int d = 0; d < rank; d++) {
      if (i % inner[d] == 0) tt_strbuf_puts(&s, "[");
    }
    put_element(&s, dtype, (const char*)data + (size_t)i * size);
    for (int d = 0; d < rank; d++) {
      if ((i + 1) % inner[d] == 0) tt_strbuf_puts(&s, "]");
    }
  }
  hlo_t v = constant_op(b, dtype, rank, dims, &s);
  tt_strbuf_deinit(&s);
  return v;
}

hlo_t hlo_iota(hlo_builder_t* b, tt_dtype_t dtype, int rank, const int64_t* dims, int dim) {
  if (!check_dtype(b, dtype)) return hlo_poison(b);
  if (rank < 1) return hlo_scalar(b, dtype, 0);
  int d = hlo_dim(b, dim, rank);
  if (dtype == TT_BOOL) return hlo_convert(b, hlo_iota(b, TT_I32, rank, dims, d), TT_BOOL);
  return hlo_op1(b, "stablehlo.iota", 0, NULL, hlo_text(b, "iota_dimension = %d : i64", d), dtype, rank, dims);
}
