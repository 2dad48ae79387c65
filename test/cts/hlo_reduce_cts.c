// Conformance: reductions, windows, scans, sorting, control flow.
#include "hlo_case.h"

#define IN cts_in
#define EXPECT cts_expect
#define D(...) ((const int64_t[]){__VA_ARGS__})

// ---------------------------------------------------------------- reductions
static void reduces(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,3", "1 2 3 4 nan 6"), i = IN(c, TT_I64, "2,2", "-3 5 7 1");
  hlo_t p = IN(c, TT_BOOL, "2,2", "true false true true");
  EXPECT(c, hlo_reduce(b, x, HLO_R_ADD, 1, D(0)), "3", "5 nan 9");
  EXPECT(c, hlo_reduce(b, x, HLO_R_MAX, 1, D(-1)), "2", "3 nan");
  EXPECT(c, hlo_reduce(b, x, HLO_R_MIN, 2, D(0, 1)), "", "nan");
  EXPECT(c, hlo_reduce_keep(b, x, HLO_R_MUL, 1, D(1)), "2,1", "6 nan");
  EXPECT(c, hlo_reduce_all(b, i, HLO_R_ADD), "", "10");
  EXPECT(c, hlo_reduce(b, i, HLO_R_MAX, 1, D(0)), "2", "7 5");
  EXPECT(c, hlo_reduce(b, i, HLO_R_MIN, 1, D(1)), "2", "-3 1");
  EXPECT(c, hlo_reduce(b, i, HLO_R_AND, 1, D(1)), "2", "5 1");
  EXPECT(c, hlo_reduce(b, i, HLO_R_XOR, 1, D(1)), "2", "-8 6");
  EXPECT(c, hlo_reduce(b, p, HLO_R_AND, 1, D(1)), "2", "false true");
  EXPECT(c, hlo_reduce(b, p, HLO_R_OR, 1, D(0)), "2", "true true");
  EXPECT(c, hlo_reduce(b, p, HLO_R_MAX, 1, D(0)), "2", "true true");
  EXPECT(c, hlo_reduce(b, p, HLO_R_ADD, 0, NULL), "2,2", "true false true true");
  EXPECT(c, hlo_reduce(b, IN(c, TT_C64, "2", "1 2 3 4"), HLO_R_MUL, 1, D(0)), "", "-5 10");
  hlo_t e = IN(c, TT_F32, "2,0", "");
  EXPECT(c, hlo_reduce(b, e, HLO_R_ADD, 1, D(1)), "2", "0 0");
  EXPECT(c, hlo_reduce(b, e, HLO_R_MUL, 1, D(1)), "2", "1 1");
  EXPECT(c, hlo_reduce(b, e, HLO_R_MAX, 1, D(1)), "2", "-inf -inf");
  EXPECT(c, hlo_reduce(b, e, HLO_R_ADD, 1, D(0)), "0", "");
}

static void long_nan_reduce(cts_t* c) {  // vectorised code must propagate NaN too
  hlo_builder_t* b = c->b;
  hlo_t x = hlo_pad(b, IN(c, TT_F32, "1", "nan"), hlo_scalar(b, TT_F32, 1), D(100), D(1000), NULL);
  EXPECT(c, hlo_reduce_all(b, x, HLO_R_MAX), "", "nan");
  EXPECT(c, hlo_reduce_all(b, x, HLO_R_MIN), "", "nan");
  EXPECT(c, hlo_reduce_all(b, hlo_maximum(b, x, hlo_scalar(b, TT_F32, 0)), HLO_R_ADD), "", "nan");
}

static void arg_case(cts_t* c, hlo_t x, bool is_max, int dim, const char* dims, const char* value, const char* index) {
  hlo_t v, i;
  hlo_arg_reduce(c->b, x, is_max, dim, &v, &i);
  EXPECT(c, v, dims, value);
  EXPECT(c, i, dims, index);
}

static void arg_reduces(cts_t* c) {
  hlo_t x = IN(c, TT_F32, "4,4", "1 5 5 2 nan 3 nan 9 -inf -inf -inf -inf 0 -0 0 -0");
  arg_case(c, x, true, 1, "4", "5 nan -inf ?", "1 0 0 0");
  arg_case(c, x, false, 1, "4", "1 nan -inf ?", "0 0 0 0");
  arg_case(c, x, true, 0, "4", "nan 5 nan 9", "1 0 1 1");
  arg_case(c, IN(c, TT_I32, "3", "-2147483648 -2147483648 -2147483648"), true, 0, "", "-2147483648", "0");
  arg_case(c, IN(c, TT_BOOL, "3", "false true true"), true, 0, "", "true", "1");
  arg_case(c, IN(c, TT_BOOL, "3", "true false false"), false, 0, "", "false", "1");
  arg_case(c, IN(c, TT_U8, "3", "0 200 200"), true, -1, "", "200", "1");
  arg_case(c, IN(c, TT_F32, "", "3"), true, 0, "", "3", "0");
  arg_case(c, IN(c, TT_F32, "0,3", ""), true, 1, "0", "", "");
}

static void windows(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "1,6", "1 5 2 4 3 6");
  hlo_window_t w = {.size = D(1, 2), .stride = D(1, 2)};
  EXPECT(c, hlo_reduce_window(b, x, hlo_lowest(b, TT_F32), HLO_R_MAX, &w), "1,3", "5 4 6");
  hlo_window_t padded = {.size = D(1, 3), .pad_lo = D(0, 1), .pad_hi = D(0, 1)};
  EXPECT(c, hlo_reduce_window(b, x, hlo_scalar(b, TT_F32, 0), HLO_R_ADD, &padded), "1,6", "6 8 11 9 13 9");
  hlo_window_t dilated = {.size = D(1, 2), .window_dilation = D(1, 3)};
  EXPECT(c, hlo_reduce_window(b, x, hlo_scalar(b, TT_F32, 0), HLO_R_ADD, &dilated), "1,3", "5 8 8");
  hlo_window_t based = {.size = D(1, 2), .base_dilation = D(1, 2)};
  EXPECT(c, hlo_reduce_window(b, x, hlo_scalar(b, TT_F32, 0), HLO_R_ADD, &based), "1,10", "1 5 5 2 2 4 4 3 3 6");
  hlo_window_t pool = {.size = D(2, 1, 1), .stride = D(2, 1, 1)};  // TPUs want two dims without a window
  EXPECT(c, hlo_select_and_scatter(b, hlo_reshape(b, x, 3, D(6, 1, 1)), IN(c, TT_F32, "3,1,1", "10 20 30"),
                                   hlo_scalar(b, TT_F32, 0), HLO_GE, HLO_R_ADD, &pool),
         "6,1,1", "0 10 0 20 0 30");
}

static void window_pairs(cts_t* c) {  // max and its position in one variadic window
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "6", "1 5 2 4 3 6"), xs[2] = {x, hlo_iota(b, TT_I32, 1, D(6), 0)};
  hlo_t inits[2] = {hlo_lowest(b, TT_F32), hlo_scalar_int(b, TT_I32, -1)}, out[2];
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t a = hlo_region_arg(b, r, TT_F32, 0, NULL), ai = hlo_region_arg(b, r, TT_I32, 0, NULL);
  hlo_t v = hlo_region_arg(b, r, TT_F32, 0, NULL), vi = hlo_region_arg(b, r, TT_I32, 0, NULL);
  hlo_t keep = hlo_compare(b, HLO_GE, a, v), res[2] = {hlo_select(b, keep, a, v), hlo_select(b, keep, ai, vi)};
  hlo_region_end(b, r, 2, res);
  hlo_window_t w = {.size = D(3), .stride = D(3)};
  hlo_reduce_window_region(b, 2, xs, inits, &w, r, out);
  EXPECT(c, out[0], "2", "5 6");
  EXPECT(c, out[1], "2", "1 5");
}

static void scans(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,5", "1 2 3 4 5 -1 nan 2 0 1"), i = IN(c, TT_I64, "5", "3 1 4 1 5");
  EXPECT(c, hlo_scan(b, x, HLO_R_ADD, 1, false), "2,5", "1 3 6 10 15 -1 nan nan nan nan");
  EXPECT(c, hlo_scan(b, x, HLO_R_ADD, 1, true), "2,5", "15 14 12 9 5 nan nan 3 1 1");
  EXPECT(c, hlo_scan(b, x, HLO_R_MAX, 1, false), "2,5", "1 2 3 4 5 -1 nan nan nan nan");
  EXPECT(c, hlo_scan(b, x, HLO_R_ADD, 0, false), "2,5", "1 2 3 4 5 0 nan 5 4 6");
  EXPECT(c, hlo_scan(b, i, HLO_R_MUL, 0, false), "5", "3 3 12 12 60");
  EXPECT(c, hlo_scan(b, i, HLO_R_MAX, 0, false), "5", "3 3 4 4 5");
  EXPECT(c, hlo_scan(b, i, HLO_R_MIN, 0, true), "5", "1 1 1 1 5");
  EXPECT(c, hlo_scan(b, IN(c, TT_BOOL, "4", "false true false false"), HLO_R_OR, 0, false), "4",
         "false true true true");
  EXPECT(c, hlo_scan(b, IN(c, TT_F32, "", "3"), HLO_R_ADD, 0, false), "", "3");
  EXPECT(c, hlo_scan(b, IN(c, TT_F32, "2,0", ""), HLO_R_ADD, 1, false), "2,0", "");
  EXPECT(c, hlo_scan(b, IN(c, TT_C64, "2", "1 1 2 3"), HLO_R_MUL, 0, false), "2", "1 1 -1 5");
}

// Scans of sizes around and above the block size, checked against closed forms.
static void long_scans(cts_t* c) {
  hlo_builder_t* b = c->b;
  static const int64_t k_sizes[] = {15, 16, 17, 127, 128, 129, 1000, 4097, 70000};
  for (size_t k = 0; k < sizeof k_sizes / sizeof *k_sizes; k++) {
    int64_t n = k_sizes[k];
    for (int reverse = 0; reverse < 2; reverse++) {
      hlo_t i = hlo_optimization_barrier(b, hlo_iota(b, TT_I64, 2, D(2, n), 1)), one = hlo_scalar_int(b, TT_I64, 1);
      hlo_t j = reverse ? hlo_subtract(b, hlo_scalar_int(b, TT_I64, n - 1), i) : i;  // position from the start
      hlo_t want = hlo_divide(b, hlo_multiply(b, j, hlo_add(b, j, one)), hlo_scalar_int(b, TT_I64, 2));
      hlo_t same = hlo_compare(b, HLO_EQ, hlo_scan(b, j, HLO_R_ADD, 1, reverse), want);
      EXPECT(c, hlo_reduce_all(b, same, HLO_R_AND), "", "true");
      hlo_t t = hlo_swap_dims(b, j, 0, 1);
      same = hlo_compare(b, HLO_EQ, hlo_scan(b, t, HLO_R_MAX, 0, reverse), t);
      EXPECT(c, hlo_reduce_all(b, same, HLO_R_AND), "", "true");
    }
  }
}

const cts_case_t k_reduce_cases[] = {{"reduce/reduce", reduces},       {"reduce/long_nan", long_nan_reduce},
                                     {"reduce/arg", arg_reduces},      {"reduce/window", windows},
                                     {"reduce/window_pair", window_pairs}, {"reduce/scan", scans},
                                     {"reduce/long_scan", long_scans}, {NULL, NULL}};

// ---------------------------------------------------------------- sort
static void sort_case(cts_t* c, hlo_t x, int dim, bool descending, const char* dims, const char* values,
                      const char* index) {
  hlo_t v, i;
  hlo_sort_with_index(c->b, x, dim, descending, &v, &i);
  EXPECT(c, v, dims, values);
  EXPECT(c, i, dims, index);
}

static void sorts(cts_t* c) {
  hlo_t x = IN(c, TT_F32, "8", "3 nan -0 0 -inf nan 3 -1");
  sort_case(c, x, 0, false, "8", "-inf -1 -0 0 3 3 nan nan", "4 7 2 3 0 6 1 5");
  sort_case(c, x, 0, true, "8", "nan nan 3 3 -0 0 -1 -inf", "1 5 0 6 2 3 7 4");
  hlo_t m = IN(c, TT_I64, "2,3", "3 1 2 6 7 6");
  sort_case(c, m, 1, false, "2,3", "1 2 3 6 6 7", "1 2 0 0 2 1");
  sort_case(c, m, 0, true, "2,3", "6 7 6 3 1 2", "1 1 1 0 0 0");
  sort_case(c, IN(c, TT_BOOL, "4", "true false true false"), 0, false, "4", "false false true true", "1 3 0 2");
  sort_case(c, IN(c, TT_U8, "3", "200 3 100"), 0, true, "3", "200 100 3", "0 2 1");
  sort_case(c, IN(c, TT_F32, "", "5"), -1, false, "", "5", "0");
  sort_case(c, IN(c, TT_F32, "2,0", ""), 1, false, "2,0", "", "");
  sort_case(c, hlo_convert(c->b, x, TT_BF16), 0, false, "8", "-inf -1 -0 0 3 3 nan nan", "4 7 2 3 0 6 1 5");
}

static void raw_sort(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t xs[2] = {IN(c, TT_I32, "4", "4 2 3 1"), IN(c, TT_F32, "4", "0 1 2 3")}, out[2];
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t l = hlo_region_arg(b, r, TT_I32, 0, NULL), rhs = hlo_region_arg(b, r, TT_I32, 0, NULL);
  (void)hlo_region_arg(b, r, TT_F32, 0, NULL);
  (void)hlo_region_arg(b, r, TT_F32, 0, NULL);
  hlo_t before = hlo_compare(b, HLO_GT, l, rhs);
  hlo_region_end(b, r, 1, &before);
  hlo_sort(b, 2, xs, 0, true, r, out);
  EXPECT(c, out[0], "4", "4 3 2 1");
  EXPECT(c, out[1], "4", "0 2 1 3");
}

// ---------------------------------------------------------------- control flow
static void whiles(cts_t* c) {  // doubles until above an outer value; captures it, and a constant
  hlo_builder_t* b = c->b;
  hlo_t bound = IN(c, TT_I32, "", "100"), step = IN(c, TT_F32, "2", "1 2"), two = hlo_scalar(b, TT_I32, 2);
  hlo_t init[2] = {IN(c, TT_I32, "", "3"), hlo_splat(b, TT_F32, 0, 1, D(2))}, out[2];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t i = hlo_region_arg(b, cond, TT_I32, 0, NULL);
  (void)hlo_region_arg(b, cond, TT_F32, 1, D(2));
  hlo_t go = hlo_compare(b, HLO_LT, i, bound);
  hlo_region_end(b, cond, 1, &go);
  hlo_region_t* body = hlo_region_begin(b);
  i = hlo_region_arg(b, body, TT_I32, 0, NULL);
  hlo_t s = hlo_region_arg(b, body, TT_F32, 1, D(2));
  hlo_t total = hlo_reduce(b, step, HLO_R_ADD, 1, D(0));  // a region inside a region
  hlo_t next[2] = {hlo_multiply(b, i, two), hlo_add(b, s, hlo_add(b, step, total))};
  hlo_region_end(b, body, 2, next);
  hlo_while(b, 2, init, cond, body, out);
  EXPECT(c, out[0], "", "192");
  EXPECT(c, out[1], "2", "24 30");
}

static void ifs(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2", "1 2"), p = IN(c, TT_BOOL, "", "false"), out[2];
  hlo_t three = hlo_scalar(b, TT_F32, 3);
  hlo_region_t* yes = hlo_region_begin(b);
  hlo_t y[2] = {hlo_negate(b, x), three};
  hlo_region_end(b, yes, 2, y);
  hlo_region_t* no = hlo_region_begin(b);
  hlo_t n[2] = {hlo_multiply(b, x, three), hlo_scalar(b, TT_F32, 4)};
  hlo_region_end(b, no, 2, n);
  hlo_if(b, p, yes, no, 2, out);
  EXPECT(c, out[0], "2", "3 6");
  EXPECT(c, out[1], "", "4");
}

static void rngs(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t state = IN(c, TT_U64, "2", "7 0"), next;
  static const tt_dtype_t k[] = {TT_U8, TT_U16, TT_U32, TT_U64};
  for (int i = 0; i < 4; i++) {
    hlo_t bits = hlo_rng_bits(b, state, k[i], 2, D(64, 4), &next);
    hlo_t mean = hlo_divide(b, hlo_reduce_all(b, hlo_convert(b, bits, TT_F32), HLO_R_ADD), hlo_scalar(b, TT_F32, 256));
    hlo_t scaled = hlo_divide(b, mean, hlo_convert(b, hlo_highest(b, k[i]), TT_F32));
    hlo_t off = hlo_abs(b, hlo_subtract(b, scaled, hlo_scalar(b, TT_F32, 0.5)));
    EXPECT(c, hlo_compare(b, HLO_LT, off, hlo_scalar(b, TT_F32, 0.1)), "", "true");
    EXPECT(c, hlo_reduce_all(b, hlo_compare(b, HLO_NE, next, state), HLO_R_OR), "", "true");
  }
  EXPECT(c, hlo_rng_bits(b, state, TT_U32, 1, D(0), &next), "0", "");
  EXPECT(c, next, "2", "7 0");
}

const cts_case_t k_control_cases[] = {{"control/sort_with_index", sorts}, {"control/sort", raw_sort},
                                      {"control/while", whiles}, {"control/if", ifs},
                                      {"control/rng", rngs}, {NULL, NULL}};
