// Conformance: shape ops, gather and scatter.
#include "hlo_case.h"

#define IN cts_in
#define EXPECT cts_expect
#define D(...) ((const int64_t[]){__VA_ARGS__})

// ---------------------------------------------------------------- shape
static void reshapes(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_I32, "2,3", "1 2 3 4 5 6"), e = IN(c, TT_F32, "0,3", "");
  EXPECT(c, hlo_reshape(b, x, 2, D(3, 2)), "3,2", "1 2 3 4 5 6");
  EXPECT(c, hlo_flatten(b, x), "6", "1 2 3 4 5 6");
  EXPECT(c, hlo_reshape(b, e, 3, D(4, 0, 2)), "4,0,2", "");
  EXPECT(c, hlo_transpose(b, x, D(1, 0)), "3,2", "1 4 2 5 3 6");
  EXPECT(c, hlo_transpose(b, e, D(1, 0)), "3,0", "");
  EXPECT(c, hlo_swap_dims(b, hlo_unsqueeze(b, x, 0), 0, -1), "3,2,1", "1 4 2 5 3 6");
  EXPECT(c, hlo_squeeze(b, hlo_unsqueeze(b, x, -1), 2), "2,3", "1 2 3 4 5 6");
  EXPECT(c, hlo_flatten(b, IN(c, TT_F32, "", "5")), "1", "5");
}

static void broadcasts(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_I32, "2,1", "1 2"), y = IN(c, TT_I32, "3", "10 20 30"), q = IN(c, TT_I32, "2,3", "1 2 3 4 5 6");
  EXPECT(c, hlo_add(b, x, y), "2,3", "11 21 31 12 22 32");
  EXPECT(c, hlo_broadcast_to(b, x, 3, D(2, 2, 3)), "2,2,3", "1 1 1 2 2 2 1 1 1 2 2 2");
  EXPECT(c, hlo_broadcast_in_dim(b, y, 2, D(3, 2), D(0)), "3,2", "10 10 20 20 30 30");
  EXPECT(c, hlo_broadcast_in_dim(b, q, 3, D(3, 2, 2), D(2, 0)), "3,2,2", "1 4 1 4 2 5 2 5 3 6 3 6");
  EXPECT(c, hlo_broadcast_in_dim(b, hlo_broadcast_to(b, x, 2, D(2, 3)), 3, D(3, 2, 2), D(2, 0)), "3,2,2",
         "1 2 1 2 1 2 1 2 1 2 1 2");
  EXPECT(c, hlo_broadcast_to(b, x, 2, D(2, 0)), "2,0", "");
}

static void slices(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,5", "0 1 2 3 4 5 6 7 8 9");
  EXPECT(c, hlo_slice(b, x, D(0, 1), D(2, 5), D(1, 2)), "2,2", "1 3 6 8");
  EXPECT(c, hlo_slice_dim(b, x, -1, 4, 5, 1), "2,1", "4 9");
  EXPECT(c, hlo_slice_dim(b, x, 0, 1, 1, 1), "0,5", "");
  EXPECT(c, hlo_pad(b, x, hlo_scalar(b, TT_F32, 9), D(0, -1), D(1, -2), NULL), "3,2", "1 2 6 7 9 9");
  EXPECT(c, hlo_pad(b, hlo_slice_dim(b, x, 1, 0, 2, 1), hlo_scalar(b, TT_F32, -1), D(0, 1), D(0, 0), D(1, 2)), "3,5",
         "-1 0 -1 -1 1 -1 -1 -1 -1 -1 -1 5 -1 -1 6");
  EXPECT(c, hlo_pad(b, IN(c, TT_F32, "0", ""), hlo_scalar(b, TT_F32, 3), D(1), D(1), D(2)), "2", "3 3");
  hlo_t parts[4] = {x, hlo_slice_dim(b, x, 1, 0, 0, 1), x, hlo_slice_dim(b, x, 1, 3, 4, 1)};
  EXPECT(c, hlo_concat(b, 4, parts, 1), "2,11", "0 1 2 3 4 0 1 2 3 4 3 5 6 7 8 9 5 6 7 8 9 8");
  EXPECT(c, hlo_reverse(b, x, 2, D(0, -1)), "2,5", "9 8 7 6 5 4 3 2 1 0");
  EXPECT(c, hlo_reverse(b, x, 1, D(1)), "2,5", "4 3 2 1 0 9 8 7 6 5");
}

static void dynamic_slices(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_I64, "2,4", "0 1 2 3 4 5 6 7"), u = IN(c, TT_I64, "1,2", "50 60");
  hlo_t at[2] = {IN(c, TT_I32, "", "1"), IN(c, TT_I32, "", "9")};
  EXPECT(c, hlo_dynamic_slice(b, x, at, D(1, 2)), "1,2", "6 7");
  EXPECT(c, hlo_dynamic_update_slice(b, x, u, at), "2,4", "0 1 2 3 4 5 50 60");
  EXPECT(c, hlo_dynamic_update_slice(b, x, IN(c, TT_I64, "0,2", ""), at), "2,4", "0 1 2 3 4 5 6 7");
}

const cts_case_t k_shape_cases[] = {{"shape/reshape", reshapes}, {"shape/broadcast", broadcasts},
                                    {"shape/slice", slices},     {"shape/dynamic_slice", dynamic_slices},
                                    {NULL, NULL}};

// ---------------------------------------------------------------- indexing
static void gathers(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "3,4", "0 1 2 3 4 5 6 7 8 9 10 11"), at = IN(c, TT_I64, "2,2", "0 1 2 2");
  hlo_gather_t g = {.n_offset_dims = 1, .offset_dims = D(1), .n_collapsed = 1, .collapsed_slice_dims = D(0), .n_map = 2,
                    .start_index_map = D(0, 1), .index_vector_dim = 1, .slice_sizes = D(1, 2)};
  EXPECT(c, hlo_gather(b, x, at, &g), "2,2", "1 2 10 11");
  hlo_gather_t batched = {.n_collapsed = 1, .collapsed_slice_dims = D(1), .n_operand_batching = 1,
                          .operand_batching_dims = D(0), .n_indices_batching = 1, .start_indices_batching_dims = D(0),
                          .n_map = 1, .start_index_map = D(1), .index_vector_dim = 2, .slice_sizes = D(1, 1)};
  EXPECT(c, hlo_gather(b, x, IN(c, TT_I32, "3,2", "0 3 1 1 2 0"), &batched), "3,2", "0 3 5 5 10 8");
}

static void takes(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,3", "0 1 2 3 4 5"), i = IN(c, TT_I64, "2,2", "2 0 1 1");
  EXPECT(c, hlo_take(b, x, i, 1), "2,2,2", "2 0 1 1 5 3 4 4");
  EXPECT(c, hlo_take(b, x, IN(c, TT_U8, "", "1"), 0), "3", "3 4 5");
  EXPECT(c, hlo_take(b, x, IN(c, TT_I64, "0", ""), 0), "0,3", "");
  EXPECT(c, hlo_take(b, IN(c, TT_F32, "", "7"), IN(c, TT_I64, "2", "0 0"), 0), "2", "7 7");
  EXPECT(c, hlo_take(b, hlo_reshape(b, x, 3, D(1, 2, 3)), IN(c, TT_I32, "1", "1"), -2), "1,1,3", "3 4 5");
}

static void along(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,3", "0 1 2 3 4 5"), i = IN(c, TT_I64, "1,2", "1 0");
  EXPECT(c, hlo_take_along(b, x, i, 0), "1,2", "3 1");
  EXPECT(c, hlo_take_along(b, x, i, 1), "1,2", "1 0");
  EXPECT(c, hlo_take_along(b, x, IN(c, TT_I64, "2,5", "0 1 2 1 0 2 2 2 0 1"), 1), "2,5", "0 1 2 1 0 5 5 5 3 4");
  EXPECT(c, hlo_take_along(b, x, IN(c, TT_I64, "0,3", ""), 0), "0,3", "");
  EXPECT(c, hlo_take_along(b, IN(c, TT_F32, "", "7"), IN(c, TT_I64, "", "0"), 0), "", "7");
  EXPECT(c, hlo_take_along(b, IN(c, TT_F32, "2,2,2", "0 1 2 3 4 5 6 7"), IN(c, TT_I32, "2,1,2", "0 1 1 0"), 1), "2,1,2",
         "0 3 6 5");
}

static void put_along(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_F32, "2,3", "0 1 2 3 4 5"), i = IN(c, TT_I64, "1,2", "1 0");
  hlo_t s = IN(c, TT_F32, "2,2", "10 20 30 40");
  EXPECT(c, hlo_put_along(b, x, i, s, 0, HLO_R_ASSIGN), "2,3", "0 20 2 10 4 5");
  EXPECT(c, hlo_put_along(b, x, i, s, 1, HLO_R_ADD), "2,3", "20 11 2 3 4 5");
  EXPECT(c, hlo_put_along(b, x, IN(c, TT_I64, "2,2", "1 1 2 2"), s, 1, HLO_R_ADD), "2,3", "0 31 2 3 4 75");
  EXPECT(c, hlo_put_along(b, x, IN(c, TT_I64, "2,2", "1 1 2 2"), s, 1, HLO_R_MUL), "2,3", "0 200 2 3 4 6000");
  EXPECT(c, hlo_put_along(b, x, IN(c, TT_I64, "2,2", "1 1 2 2"), s, 1, HLO_R_MAX), "2,3", "0 20 2 3 4 40");
  EXPECT(c, hlo_put_along(b, x, IN(c, TT_I64, "2,2", "1 1 2 2"), s, 1, HLO_R_MIN), "2,3", "0 1 2 3 4 5");
  EXPECT(c, hlo_put_along(b, x, IN(c, TT_I64, "0,2", ""), s, 1, HLO_R_ADD), "2,3", "0 1 2 3 4 5");
  EXPECT(c, hlo_put_along(b, IN(c, TT_I64, "", "4"), IN(c, TT_I64, "", "0"), IN(c, TT_I64, "", "3"), 0, HLO_R_ADD), "",
         "7");
  hlo_t p = IN(c, TT_BOOL, "3", "false false true");
  EXPECT(c, hlo_put_along(b, p, IN(c, TT_I32, "1", "1"), IN(c, TT_BOOL, "1", "true"), 0, HLO_R_ADD), "3",
         "false true true");
  hlo_t z = IN(c, TT_C64, "2", "1 2 3 4"), w = IN(c, TT_C64, "1", "10 10");
  EXPECT(c, hlo_put_along(b, z, IN(c, TT_I32, "1", "1"), w, 0, HLO_R_ADD), "2",
         "1 2 13 14");
}

static void scatters(cts_t* c) {
  hlo_builder_t* b = c->b;
  hlo_t x = IN(c, TT_I32, "3,2", "0 0 0 0 0 0"), at = IN(c, TT_I64, "3,1", "2 0 7");
  hlo_t u = IN(c, TT_I32, "3,2", "1 2 3 4 5 6");
  hlo_scatter_t rows = {.n_update_window = 1, .update_window_dims = D(1), .n_inserted = 1, .inserted_window_dims = D(0),
                        .n_map = 1, .scatter_dims_to_operand_dims = D(0), .index_vector_dim = 1};
  EXPECT(c, hlo_scatter(b, x, at, u, HLO_R_ASSIGN, &rows), "3,2", "3 4 0 0 1 2");
  EXPECT(c, hlo_scatter(b, x, at, u, HLO_R_XOR, &rows), "3,2", "3 4 0 0 1 2");
  rows.unique_indices = true;
  EXPECT(c, hlo_scatter(b, x, at, u, HLO_R_OR, &rows), "3,2", "3 4 0 0 1 2");
  EXPECT(c, hlo_scatter(b, x, at, u, HLO_R_AND, &rows), "3,2", "0 0 0 0 0 0");
  EXPECT(c, hlo_scatter(b, IN(c, TT_I32, "0,2", ""), at, u, HLO_R_ADD, &rows), "0,2", "");
  // (a, x) -> a - 2 * x, with a constant of the outer program
  hlo_t two = hlo_scalar(b, TT_I32, 2);
  hlo_region_t* r = hlo_region_begin(b);
  hlo_t acc = hlo_region_arg(b, r, TT_I32, 0, NULL), v = hlo_region_arg(b, r, TT_I32, 0, NULL);
  hlo_t y = hlo_subtract(b, acc, hlo_multiply(b, two, v));
  hlo_region_end(b, r, 1, &y);
  hlo_t out;
  hlo_scatter_region(b, 1, &x, at, &u, &rows, r, &out);
  EXPECT(c, out, "3,2", "-6 -8 0 0 -2 -4");
}

const cts_case_t k_index_cases[] = {{"index/gather", gathers},       {"index/take", takes},
                                    {"index/take_along", along},     {"index/put_along", put_along},
                                    {"index/scatter", scatters},     {NULL, NULL}};
