// Conformance: dots, convolutions, factorisations, transforms, custom calls.
#include "hlo_case.h"

#define IN cts_in
#define EXPECT cts_expect
#define D(...) ((const int64_t[]){__VA_ARGS__})

static void dots(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,3", "1 2 3 4 5 6"), y = IN(c, TT_F32, "3,2", "1 0 0 1 1 1");
  EXPECT(c, hlo_matmul(b, x, y), "2,2", "4 5 10 11");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_F64), hlo_convert(b, y, TT_F64)), "2,2", "4 5 10 11");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_I64), hlo_convert(b, y, TT_I64)), "2,2", "4 5 10 11");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_I32), hlo_convert(b, y, TT_I32)), "2,2", "4 5 10 11");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_I16), hlo_convert(b, y, TT_I16)), "2,2", "4 5 10 11");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_U8), hlo_convert(b, y, TT_U8)), "2,2", "4 5 10 11");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_BOOL), hlo_convert(b, y, TT_BOOL)), "2,2", "true true true true");
  hlo_t xi = hlo_convert(b, x, TT_I64), yi = hlo_convert(b, hlo_swap_dims(b, y, 0, 1), TT_I64);
  EXPECT(c, hlo_dot_general(b, xi, yi, 1, D(0), D(0), 1, D(-1), D(1), TT_DT_NONE), "2", "4 11");
  EXPECT(c, hlo_dot_general(b, xi, xi, 2, D(1, 0), D(1, 0), 0, NULL, NULL, TT_DT_NONE), "3,2", "1 16 4 25 9 36");
  EXPECT(c, hlo_dot_general(b, xi, yi, 0, NULL, NULL, 2, D(0, 1), D(0, 1), TT_DT_NONE), "", "15");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_C128), hlo_convert(b, y, TT_C128)), "2,2", "4 0 5 0 10 0 11 0");
  EXPECT(c, hlo_matmul(b, hlo_convert(b, x, TT_C64), hlo_convert(b, y, TT_C64)), "2,2", "4 0 5 0 10 0 11 0");
  hlo_set_precision(b, HLO_PRECISION_DEFAULT);
  hlo_t xb = hlo_convert(b, x, TT_BF16), yb = hlo_convert(b, y, TT_BF16);
  EXPECT(c, hlo_matmul(b, xb, yb), "2,2", "4 5 10 11");
  EXPECT(c, hlo_dot_general(b, xb, yb, 0, NULL, NULL, 1, D(1), D(0), TT_F32), "2,2", "4 5 10 11");
  hlo_set_precision(b, HLO_PRECISION_HIGH);
  EXPECT(c, hlo_dot_general(b, x, x, 1, D(0), D(0), 1, D(-1), D(1), TT_DT_NONE), "2", "14 77");
  EXPECT(c, hlo_dot_general(b, x, x, 0, NULL, NULL, 2, D(0, 1), D(0, 1), TT_DT_NONE), "", "91");
  EXPECT(c, hlo_dot_general(b, hlo_flatten(b, x), hlo_flatten(b, y), 0, NULL, NULL, 0, NULL, NULL, TT_DT_NONE),
         "6,6", "?");
  EXPECT(c, hlo_matmul(b, hlo_reshape(b, x, 3, D(2, 1, 3)), hlo_reshape(b, x, 3, D(2, 3, 1))), "2,1,1", "14 77");
  EXPECT(c, hlo_matmul(b, IN(c, TT_F32, "2,0", ""), IN(c, TT_F32, "0,2", "")), "2,2", "0 0 0 0");
  EXPECT(c, hlo_matmul(b, IN(c, TT_F32, "0,2", ""), y->rank ? IN(c, TT_F32, "2,2", "1") : y), "0,2", "");
}

static void convolutions(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "1,1,3,3", "1 2 3 4 5 6 7 8 9"), k = IN(c, TT_F32, "1,1,2,2", "1 0 0 2");
  hlo_conv_t plain = {.n_spatial = 2, .lhs_batch = -1};
  EXPECT(c, hlo_convolution(b, x, k, &plain, TT_DT_NONE), "1,1,2,2", "11 14 20 23");
  hlo_conv_t flipped = plain;
  flipped.window_reversal = true;
  EXPECT(c, hlo_convolution(b, x, k, &flipped, TT_DT_NONE), "1,1,2,2", "7 10 16 19");
  hlo_conv_t strided = {.n_spatial = 2, .lhs_batch = -1, .stride = D(2, 2), .pad_lo = D(1, 1), .pad_hi = D(0, 0)};
  EXPECT(c, hlo_convolution(b, x, k, &strided, TT_DT_NONE), "1,1,2,2", "2 6 14 23");
  hlo_conv_t dilated = {.n_spatial = 2, .lhs_batch = -1, .rhs_dilation = D(2, 2)};
  EXPECT(c, hlo_convolution(b, x, k, &dilated, TT_DT_NONE), "1,1,1,1", "19");
  hlo_conv_t transposed = {.n_spatial = 2, .lhs_batch = -1, .lhs_dilation = D(2, 2), .pad_lo = D(1, 1),
                           .pad_hi = D(1, 1)};
  hlo_t row = hlo_slice(b, x, D(0, 0, 0, 0), D(1, 1, 1, 2), NULL);
  EXPECT(c, hlo_convolution(b, row, k, &transposed, TT_DT_NONE), "1,1,2,4", "2 0 4 0 0 1 0 2");
  // NHWC by HWIO, two groups
  hlo_t y = IN(c, TT_F32, "1,1,2,2", "1 2 3 4"), w = IN(c, TT_F32, "1,1,1,2", "10 100");
  hlo_conv_t nhwc = {.n_spatial = 2, .feature_groups = 2, .lhs_batch = 0, .lhs_feature = 3, .lhs_spatial = D(1, 2),
                     .rhs_out = 3, .rhs_in = 2, .rhs_spatial = D(0, 1), .out_batch = 0, .out_feature = 3,
                     .out_spatial = D(1, 2)};
  EXPECT(c, hlo_convolution(b, y, w, &nhwc, TT_DT_NONE), "1,1,2,2", "10 200 30 400");
  hlo_conv_t batched = {.n_spatial = 1, .lhs_batch = -1, .batch_groups = 2};
  EXPECT(c, hlo_convolution(b, IN(c, TT_F32, "2,1,2", "1 2 3 4"), IN(c, TT_F32, "2,1,1", "1 10"), &batched, TT_DT_NONE),
         "1,2,2", "1 2 30 40");
  EXPECT(c, hlo_convolution(b, hlo_convert(b, x, TT_BF16), hlo_convert(b, k, TT_BF16), &plain, TT_F32), "1,1,2,2",
         "11 14 20 23");
  hlo_conv_t none = {.n_spatial = 0, .lhs_batch = -1};
  EXPECT(c, hlo_convolution(b, IN(c, TT_F32, "1,2", "3 4"), IN(c, TT_F32, "1,2", "1 10"), &none, TT_DT_NONE), "1,1",
         "43");
}

static void factorisations(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t a = IN(c, TT_F32, "2,2", "4 2 2 5"), l = IN(c, TT_F32, "2,2", "2 0 1 2"), r = IN(c, TT_F32, "2,1", "2 5");
  hlo_t row = IN(c, TT_F32, "1,2", "2 4");
  EXPECT(c, hlo_cholesky(b, a, true), "2,2", "2 ? 1 2");
  EXPECT(c, hlo_cholesky(b, a, false), "2,2", "2 1 ? 2");
  EXPECT(c, hlo_triangular_solve(b, l, r, true, true, false, 0), "2,1", "1 2");
  EXPECT(c, hlo_triangular_solve(b, l, r, true, true, false, 1), "2,1", "-0.25 2.5");
  EXPECT(c, hlo_triangular_solve(b, l, r, true, true, true, 0), "2,1", "2 3");
  EXPECT(c, hlo_triangular_solve(b, l, row, false, true, false, 0), "1,2", "0 2");
  EXPECT(c, hlo_triangular_solve(b, IN(c, TT_C64, "1,1,1", "0 1"), IN(c, TT_C64, "1,1,1", "1 0"), true, true, false, 2),
         "1,1,1", "? 1");
  EXPECT(c, hlo_cholesky(b, IN(c, TT_F64, "3,0,0", ""), true), "3,0,0", "");
}

static void ffts(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t z = IN(c, TT_C64, "4", "1 0 2 0 3 0 4 0"), x = IN(c, TT_F32, "4", "1 2 3 4");
  EXPECT(c, hlo_fft(b, z, HLO_FFT, 1, D(4)), "4", "10 0 -2 2 -2 ? -2 -2");
  EXPECT(c, hlo_fft(b, hlo_fft(b, z, HLO_FFT, 1, D(4)), HLO_IFFT, 1, D(4)), "4", "1 ? 2 ? 3 ? 4 ?");
  EXPECT(c, hlo_fft(b, x, HLO_RFFT, 1, D(4)), "3", "10 ? -2 2 -2 ?");
  EXPECT(c, hlo_fft(b, hlo_fft(b, x, HLO_RFFT, 1, D(4)), HLO_IRFFT, 1, D(4)), "4", "1 2 3 4");
  EXPECT(c, hlo_fft(b, hlo_reshape(b, z, 2, D(2, 2)), HLO_FFT, 2, D(2, 2)), "2,2", "10 ? -2 ? -4 ? 0 ?");
  EXPECT(c, hlo_fft(b, IN(c, TT_C64, "0,4", ""), HLO_FFT, 1, D(4)), "0,4", "");
}

static void qr_call(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,2", "3 1 4 1"), out[2];
  tt_dtype_t dtypes[2] = {TT_F32, TT_F32};
  int ranks[2] = {2, 1};
  const int64_t* dims[2] = {D(2, 2), D(2)};
  hlo_custom_call(b, "Qr", 1, &x, 2, dtypes, ranks, dims, NULL, out);
  EXPECT(c, hlo_abs(b, out[0]), "2,2", "5 1.4 ? 0.2");
}

const cts_case_t k_linalg_cases[] = {{"linalg/dot", dots}, {"linalg/convolution", convolutions},
                                     {"linalg/factorisation", factorisations}, {"linalg/fft", ffts},
                                     {"linalg/custom_call", qr_call}, {NULL, NULL}};
