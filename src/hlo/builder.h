// Building StableHLO programs: typed values, shape inference at construction, errors that stick.
//
// Depends on: base.
// Threads: thread-compatible (one builder, one thread).
// A builder owns an arena; every value, attribute and region lives there until hlo_builder_deinit. Functions never
// return NULL: a mistake records the builder's first error and yields a harmless scalar, so lowerings read as
// expressions and check once (hlo_builder_error). Values are logical arrays: dense, no strides.
// Binary functions broadcast like NumPy (trailing dims aligned); dtypes must be equal, conversions are explicit.
#ifndef TT_HLO_BUILDER_H_
#define TT_HLO_BUILDER_H_
#include "base/arena.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "tt/types.h"

typedef struct hlo_builder_t hlo_builder_t;
typedef struct hlo_region_t hlo_region_t;

// A value: result |index| of an operation, or an argument. Immutable after creation.
typedef struct hlo_value_t {
  tt_dtype_t dtype;
  int32_t rank;
  const int64_t* dims;          // |rank| of them
  struct hlo_op_t* op;          // defining op; NULL for arguments
  int32_t index;                // result index, or argument number
  int32_t id;                   // assigned by the printer
} hlo_value_t;
typedef const hlo_value_t* hlo_t;

// ---------------------------------------------------------------- builder
hlo_builder_t* hlo_builder_create(void);          // NULL when memory is out
void hlo_builder_destroy(hlo_builder_t* b);       // accepts NULL
tt_arena_t* hlo_builder_arena(hlo_builder_t* b);  // for lowerings' own scratch; same lifetime as the values
// Records an error (the first one wins) and returns a scalar f32 stand-in.
hlo_t hlo_fail(hlo_builder_t* b, tt_code_t code, const char* format, ...) TT_PRINTF(3, 4);
bool hlo_failed(const hlo_builder_t* b);
TT_MUST_USE tt_status_t hlo_builder_error(hlo_builder_t* b);  // a clone of the first error; NULL when none
// Everything built so far passes over its data once: elementwise work, moves, plain reductions; no products of matrices,
// no windows, sorts, loops, indices in memory, random bits or calls.
bool hlo_is_light(const hlo_builder_t* b);

// "DEFAULT", "HIGH" or "HIGHEST" for every dot and convolution built from now on. Starts at HIGHEST.
typedef enum hlo_precision_t { HLO_PRECISION_DEFAULT, HLO_PRECISION_HIGH, HLO_PRECISION_HIGHEST } hlo_precision_t;
void hlo_set_precision(hlo_builder_t* b, hlo_precision_t precision);
// Ops made from now on carry a location: |name| is what made them, |file|:|line| where; NULL |name|: none, as at first.
// Locations are part of the text, so programs that are cached by text have none.
void hlo_set_where(hlo_builder_t* b, const char* name, const char* file, int line);

// A new argument of @main, in order of creation.
hlo_t hlo_param(hlo_builder_t* b, tt_dtype_t dtype, int rank, const int64_t* dims);
int hlo_param_count(const hlo_builder_t* b);

// Appends the module's text. |aliases[i]| is the parameter donated to result |i|, or -1; NULL when none is donated.
// Ops that no result needs are not printed. Text is the same for the same construction order: it is a cache key.
TT_MUST_USE tt_status_t hlo_print(hlo_builder_t* b, int n_results, const hlo_t* results, const int* aliases,
                                  tt_strbuf_t* out);

// ---------------------------------------------------------------- shapes
static inline int64_t hlo_numel(hlo_t v) {
  int64_t n = 1;
  for (int i = 0; i < v->rank; i++) n *= v->dims[i];
  return n;
}
bool hlo_same_dims(hlo_t x, hlo_t y);
int hlo_dim(hlo_builder_t* b, int64_t dim, int rank);  // wraps a negative dim; fails OUT_OF_RANGE; rank 0 acts as 1

// ---------------------------------------------------------------- constants
hlo_t hlo_scalar(hlo_builder_t* b, tt_dtype_t dtype, double value);       // 0-d; any dtype; inf and nan are fine
hlo_t hlo_scalar_int(hlo_builder_t* b, tt_dtype_t dtype, int64_t value);  // 0-d; exact for 64-bit integers
hlo_t hlo_scalar_complex(hlo_builder_t* b, tt_dtype_t dtype, double re, double im);
hlo_t hlo_splat(hlo_builder_t* b, tt_dtype_t dtype, double value, int rank, const int64_t* dims);
hlo_t hlo_zeros_like(hlo_builder_t* b, hlo_t like);
hlo_t hlo_full_like(hlo_builder_t* b, hlo_t like, double value);
// One element of a float dtype, f8 to f64, from and to a double; encoding rounds once, to nearest even.
void hlo_encode_float(tt_dtype_t dtype, double value, void* out);
double hlo_decode_float(tt_dtype_t dtype, const void* data);
// Dense row-major data of |dtype|; |data| is copied. For small tables only: the text holds every element.
hlo_t hlo_array(hlo_builder_t* b, tt_dtype_t dtype, int rank, const int64_t* dims, const void* data);
hlo_t hlo_iota(hlo_builder_t* b, tt_dtype_t dtype, int rank, const int64_t* dims, int dim);
// Extremes of a dtype as 0-d: -inf or the smallest integer (false for bool); +inf or the largest.
hlo_t hlo_lowest(hlo_builder_t* b, tt_dtype_t dtype);
hlo_t hlo_highest(hlo_builder_t* b, tt_dtype_t dtype);

// ---------------------------------------------------------------- elementwise
#define HLO_UNARY_OPS(X)                                                                                        \
  X(abs, "abs") X(cbrt, "cbrt") X(ceil, "ceil") X(count_leading_zeros, "count_leading_zeros") X(cosine, "cosine") \
  X(exponential, "exponential") X(exponential_minus_one, "exponential_minus_one") X(floor, "floor") X(log, "log") \
  X(log_plus_one, "log_plus_one") X(logistic, "logistic") X(negate, "negate") X(not_, "not") X(popcnt, "popcnt")  \
  X(round_nearest_afz, "round_nearest_afz") X(round_nearest_even, "round_nearest_even") X(rsqrt, "rsqrt")         \
  X(sign, "sign") X(sine, "sine") X(sqrt, "sqrt") X(tan, "tan") X(tanh, "tanh")
#define HLO_BINARY_OPS(X)                                                                                        \
  X(add, "add") X(and_, "and") X(atan2, "atan2") X(divide, "divide") X(maximum, "maximum") X(minimum, "minimum")   \
  X(multiply, "multiply") X(or_, "or") X(power, "power") X(remainder, "remainder") X(shift_left, "shift_left")     \
  X(shift_right_arithmetic, "shift_right_arithmetic") X(shift_right_logical, "shift_right_logical")               \
  X(subtract, "subtract") X(xor_, "xor")
// chlo: decomposed by the compiler; use where the polynomial would otherwise be written by hand. Floats only.
#define HLO_CHLO_UNARY_OPS(X)                                                                                     \
  X(acos, "acos") X(acosh, "acosh") X(asin, "asin") X(asinh, "asinh") X(atan, "atan") X(atanh, "atanh")            \
  X(bessel_i1e, "bessel_i1e") X(cosh, "cosh") X(digamma, "digamma") X(erf, "erf") X(erf_inv, "erf_inv")            \
  X(erfc, "erfc") X(lgamma, "lgamma") X(sinh, "sinh")
#define HLO_CHLO_BINARY_OPS(X) X(next_after, "next_after") X(polygamma, "polygamma") X(zeta, "zeta")

typedef enum hlo_unary_t {
#define X(name, text) HLO_##name,
  HLO_UNARY_OPS(X) HLO_CHLO_UNARY_OPS(X)
#undef X
  HLO_UNARY_COUNT
} hlo_unary_t;
typedef enum hlo_binary_t {
#define X(name, text) HLO_##name,
  HLO_BINARY_OPS(X) HLO_CHLO_BINARY_OPS(X)
#undef X
  HLO_BINARY_COUNT
} hlo_binary_t;
hlo_t hlo_unary(hlo_builder_t* b, hlo_unary_t op, hlo_t x);  // abs of complex is real
hlo_t hlo_binary(hlo_builder_t* b, hlo_binary_t op, hlo_t x, hlo_t y);
#define X(name, text) \
  static inline hlo_t hlo_##name(hlo_builder_t* b, hlo_t x) { return hlo_unary(b, HLO_##name, x); }
HLO_UNARY_OPS(X) HLO_CHLO_UNARY_OPS(X)
#undef X
#define X(name, text) \
  static inline hlo_t hlo_##name(hlo_builder_t* b, hlo_t x, hlo_t y) { return hlo_binary(b, HLO_##name, x, y); }
HLO_BINARY_OPS(X) HLO_CHLO_BINARY_OPS(X)
#undef X

typedef enum hlo_cmp_t { HLO_EQ, HLO_NE, HLO_LT, HLO_LE, HLO_GT, HLO_GE } hlo_cmp_t;
hlo_t hlo_compare(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, hlo_t y);        // i1; broadcasts; FLOAT/SIGNED/... by dtype
hlo_t hlo_compare_total(hlo_builder_t* b, hlo_cmp_t cmp, hlo_t x, hlo_t y);  // TOTALORDER for floats: -nan < -inf … inf < nan
hlo_t hlo_select(hlo_builder_t* b, hlo_t pred, hlo_t on_true, hlo_t on_false);  // broadcasts all three
hlo_t hlo_clamp(hlo_builder_t* b, hlo_t lo, hlo_t x, hlo_t hi);                 // broadcasts lo and hi to x
hlo_t hlo_is_finite(hlo_builder_t* b, hlo_t x);
hlo_t hlo_is_nan(hlo_builder_t* b, hlo_t x);   // x != x; false for integers; either part for complex
// Value conversion with C semantics as PyTorch's .to(): to bool is != 0; float to int truncates; complex to real
// takes the real part; same dtype is no op.
hlo_t hlo_convert(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype);
// Same bytes. Equal sizes keep the dims; smaller target adds a last dim; larger one removes it (StableHLO's rule).
hlo_t hlo_bitcast(hlo_builder_t* b, hlo_t x, tt_dtype_t dtype);
hlo_t hlo_complex(hlo_builder_t* b, hlo_t re, hlo_t im);
hlo_t hlo_real(hlo_builder_t* b, hlo_t x);  // of a real value: itself
hlo_t hlo_imag(hlo_builder_t* b, hlo_t x);  // of a real value: zeros
hlo_t hlo_optimization_barrier(hlo_builder_t* b, hlo_t x);
hlo_t hlo_after(hlo_builder_t* b, hlo_t x, hlo_t y);  // x, not before y is there: nothing is moved or merged across

// ---------------------------------------------------------------- shape
hlo_t hlo_reshape(hlo_builder_t* b, hlo_t x, int rank, const int64_t* dims);          // same numel
hlo_t hlo_flatten(hlo_builder_t* b, hlo_t x);                                          // to 1-D
hlo_t hlo_broadcast_in_dim(hlo_builder_t* b, hlo_t x, int rank, const int64_t* dims, const int64_t* map);  // map: x.rank
hlo_t hlo_broadcast_to(hlo_builder_t* b, hlo_t x, int rank, const int64_t* dims);     // NumPy rule, trailing alignment
void hlo_broadcast2(hlo_builder_t* b, hlo_t* x, hlo_t* y);                             // both to their common shape
hlo_t hlo_transpose(hlo_builder_t* b, hlo_t x, const int64_t* perm);
hlo_t hlo_swap_dims(hlo_builder_t* b, hlo_t x, int d0, int d1);
hlo_t hlo_unsqueeze(hlo_builder_t* b, hlo_t x, int dim);
hlo_t hlo_squeeze(hlo_builder_t* b, hlo_t x, int dim);                                 // dims[dim] must be 1
hlo_t hlo_slice(hlo_builder_t* b, hlo_t x, const int64_t* start, const int64_t* limit, const int64_t* stride);  // stride may be NULL
hlo_t hlo_slice_dim(hlo_builder_t* b, hlo_t x, int dim, int64_t start, int64_t limit, int64_t stride);
hlo_t hlo_pad(hlo_builder_t* b, hlo_t x, hlo_t value, const int64_t* lo, const int64_t* hi, const int64_t* interior);  // interior may be NULL; lo/hi may be negative
hlo_t hlo_concat(hlo_builder_t* b, int n, const hlo_t* xs, int dim);
hlo_t hlo_reverse(hlo_builder_t* b, hlo_t x, int n_dims, const int64_t* dims);
// |starts|: x.rank 0-d integer values of one dtype. XLA clamps them so that the window is inside.
hlo_t hlo_dynamic_slice(hlo_builder_t* b, hlo_t x, const hlo_t* starts, const int64_t* sizes);
hlo_t hlo_dynamic_update_slice(hlo_builder_t* b, hlo_t x, hlo_t update, const hlo_t* starts);
// The same along one dim: x[start, start + size), and x with |update| written from |start| on. |start|: 0-d integer.
hlo_t hlo_slice_at(hlo_builder_t* b, hlo_t x, int dim, hlo_t start, int64_t size);
hlo_t hlo_update_at(hlo_builder_t* b, hlo_t x, hlo_t update, int dim, hlo_t start);

// ---------------------------------------------------------------- indexing
typedef struct hlo_gather_t {
  int n_offset_dims; const int64_t* offset_dims;
  int n_collapsed; const int64_t* collapsed_slice_dims;
  int n_operand_batching; const int64_t* operand_batching_dims;
  int n_indices_batching; const int64_t* start_indices_batching_dims;
  int n_map; const int64_t* start_index_map;
  int64_t index_vector_dim;
  const int64_t* slice_sizes;  // operand rank
  bool indices_are_sorted;
} hlo_gather_t;
hlo_t hlo_gather(hlo_builder_t* b, hlo_t x, hlo_t indices, const hlo_gather_t* dims);
typedef struct hlo_scatter_t {
  int n_update_window; const int64_t* update_window_dims;
  int n_inserted; const int64_t* inserted_window_dims;
  int n_input_batching; const int64_t* input_batching_dims;
  int n_indices_batching; const int64_t* scatter_indices_batching_dims;
  int n_map; const int64_t* scatter_dims_to_operand_dims;
  int64_t index_vector_dim;
  bool indices_are_sorted, unique_indices;
} hlo_scatter_t;
// How two values combine. ASSIGN keeps the second.
typedef enum hlo_reducer_t { HLO_R_ADD, HLO_R_MUL, HLO_R_MAX, HLO_R_MIN, HLO_R_AND, HLO_R_OR, HLO_R_XOR, HLO_R_ASSIGN } hlo_reducer_t;
// Out-of-range updates are dropped by XLA.
hlo_t hlo_scatter(hlo_builder_t* b, hlo_t x, hlo_t indices, hlo_t updates, hlo_reducer_t reducer, const hlo_scatter_t* dims);
// The two forms nearly everything needs:
// take: out[..., i..., ...] = x[..., index[i...], ...] along |dim| (torch.index_select generalised to any index rank).
hlo_t hlo_take(hlo_builder_t* b, hlo_t x, hlo_t index, int dim);
// take_along: torch.gather (index.rank == x.rank; other dims may be smaller than x's). Indices must be in range.
hlo_t hlo_take_along(hlo_builder_t* b, hlo_t x, hlo_t index, int dim);
// put_along: torch.scatter(_reduce) of |src| (dims >= index's) into x along |dim|; only index's extent of src is used.
hlo_t hlo_put_along(hlo_builder_t* b, hlo_t x, hlo_t index, hlo_t src, int dim, hlo_reducer_t reducer);

// ---------------------------------------------------------------- reductions
// Neutral element of |reducer| as 0-d (0, 1, lowest, highest, all ones…).
hlo_t hlo_neutral(hlo_builder_t* b, hlo_reducer_t reducer, tt_dtype_t dtype);
hlo_t hlo_reduce(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int n_dims, const int64_t* dims);  // drops the dims; max/min propagate NaN
hlo_t hlo_reduce_all(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer);                                 // over every dim: 0-d
hlo_t hlo_reduce_keep(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int n_dims, const int64_t* dims);  // keeps them as 1
// (value, index i64) of the max or min along |dim|; the first index wins; NaN beats all. Dim is dropped.
void hlo_arg_reduce(hlo_builder_t* b, hlo_t x, bool is_max, int dim, hlo_t* out_value, hlo_t* out_index);
typedef struct hlo_window_t {  // per operand dim; NULL arrays mean 1 (dilations, strides) or 0 (padding)
  const int64_t *size, *stride, *base_dilation, *window_dilation, *pad_lo, *pad_hi;
} hlo_window_t;
hlo_t hlo_reduce_window(hlo_builder_t* b, hlo_t x, hlo_t init, hlo_reducer_t reducer, const hlo_window_t* window);
hlo_t hlo_select_and_scatter(hlo_builder_t* b, hlo_t x, hlo_t source, hlo_t init, hlo_cmp_t select, hlo_reducer_t scatter, const hlo_window_t* window);  // strides, size and padding only
// Inclusive scan along |dim| with |reducer|. O(n log n) work, no unrolling by size beyond log2(n).
hlo_t hlo_scan(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int dim, bool reverse);

// ---------------------------------------------------------------- linear algebra
// Result dims: batch, then lhs free, then rhs free. |result| dtype may be wider (f32 out of bf16); NONE: lhs's.
hlo_t hlo_dot_general(hlo_builder_t* b, hlo_t lhs, hlo_t rhs, int n_batch, const int64_t* lhs_batch, const int64_t* rhs_batch,
                      int n_contract, const int64_t* lhs_contract, const int64_t* rhs_contract, tt_dtype_t result);
hlo_t hlo_matmul(hlo_builder_t* b, hlo_t lhs, hlo_t rhs);  // [..., m, k] x [..., k, n]; equal leading dims; rank >= 2
typedef struct hlo_conv_t {  // |n_spatial| spatial dims; NULL arrays: strides/dilations 1, padding 0
  int n_spatial;
  const int64_t *stride, *pad_lo, *pad_hi, *lhs_dilation, *rhs_dilation;
  bool window_reversal;       // flip the kernel in every spatial dim
  int64_t feature_groups, batch_groups;  // 0 means 1
  // Dim numbers; spatial dims follow in order. -1 in lhs_batch asks for the default: NC…, OI…, NC….
  int64_t lhs_batch, lhs_feature, rhs_out, rhs_in, out_batch, out_feature;
  const int64_t *lhs_spatial, *rhs_spatial, *out_spatial;
} hlo_conv_t;
hlo_t hlo_convolution(hlo_builder_t* b, hlo_t lhs, hlo_t rhs, const hlo_conv_t* conv, tt_dtype_t result);
hlo_t hlo_cholesky(hlo_builder_t* b, hlo_t x, bool lower);
hlo_t hlo_triangular_solve(hlo_builder_t* b, hlo_t a, hlo_t rhs, bool left_side, bool lower, bool unit_diagonal, int transpose /*0 no, 1 transpose, 2 adjoint*/);
typedef enum hlo_fft_t { HLO_FFT, HLO_IFFT, HLO_RFFT, HLO_IRFFT } hlo_fft_t;
hlo_t hlo_fft(hlo_builder_t* b, hlo_t x, hlo_fft_t type, int n_lengths, const int64_t* lengths);  // over the last dims
// stablehlo.custom_call; results' types are given; |config| is an MLIR attribute dictionary text or NULL.
void hlo_custom_call(hlo_builder_t* b, const char* target, int n_in, const hlo_t* in, int n_out, const tt_dtype_t* dtypes,
                     const int* ranks, const int64_t* const* dims, const char* config, hlo_t* out);

// ---------------------------------------------------------------- collectives
// Which replicas take part together: |n| groups of |size| replica ids, group by group; every replica is in one. The
// order within a group is the order of its members' pieces.
typedef struct hlo_groups_t {
  int64_t n, size;
  const int64_t* ids;
} hlo_groups_t;
hlo_t hlo_replica_id(hlo_builder_t* b);                                                    // 0-d u32
hlo_t hlo_all_reduce(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, const hlo_groups_t* groups);
hlo_t hlo_all_gather(hlo_builder_t* b, hlo_t x, int dim, const hlo_groups_t* groups);      // pieces concatenated
hlo_t hlo_reduce_scatter(hlo_builder_t* b, hlo_t x, hlo_reducer_t reducer, int dim, const hlo_groups_t* groups);
// Cuts |split_dim| into a piece for each member, and concatenates what arrives along |concat_dim|.
hlo_t hlo_all_to_all(hlo_builder_t* b, hlo_t x, int split_dim, int concat_dim, const hlo_groups_t* groups);
// |pairs|: n (from, to); a replica that is sent nothing gets zeros.
hlo_t hlo_collective_permute(hlo_builder_t* b, hlo_t x, int n, const int64_t* pairs);

// ---------------------------------------------------------------- regions and control flow
// Ops built between begin and end go into the region. Regions nest. Only while/if/case bodies may use outer values.
hlo_region_t* hlo_region_begin(hlo_builder_t* b);
hlo_t hlo_region_arg(hlo_builder_t* b, hlo_region_t* region, tt_dtype_t dtype, int rank, const int64_t* dims);
void hlo_region_end(hlo_builder_t* b, hlo_region_t* region, int n, const hlo_t* results);
// Stable sort of |n| operands of equal dims along |dim|. The comparator region has 2n 0-d arguments (l0, r0, l1, r1, …)
// and returns i1 "l before r".
void hlo_sort(hlo_builder_t* b, int n, const hlo_t* xs, int dim, bool stable, hlo_region_t* comparator, hlo_t* out);
// Sort along |dim| with PyTorch's order (NaN last ascending, first descending); returns values and i64 indices. Stable.
void hlo_sort_with_index(hlo_builder_t* b, hlo_t x, int dim, bool descending, hlo_t* out_values, hlo_t* out_indices);
void hlo_while(hlo_builder_t* b, int n, const hlo_t* init, hlo_region_t* cond, hlo_region_t* body, hlo_t* out);
void hlo_if(hlo_builder_t* b, hlo_t pred, hlo_region_t* then_region, hlo_region_t* else_region, int n, hlo_t* out);
// Variadic reduce with a region of 2n 0-d arguments (acc0.., x0..) and n results.
void hlo_reduce_region(hlo_builder_t* b, int n, const hlo_t* xs, const hlo_t* inits, int n_dims, const int64_t* dims,
                       hlo_region_t* region, hlo_t* out);
void hlo_reduce_window_region(hlo_builder_t* b, int n, const hlo_t* xs, const hlo_t* inits, const hlo_window_t* window,
                              hlo_region_t* region, hlo_t* out);
// A scatter whose update computation is the region (2n 0-d arguments).
void hlo_scatter_region(hlo_builder_t* b, int n, const hlo_t* xs, hlo_t indices, const hlo_t* updates, const hlo_scatter_t* dims,
                        hlo_region_t* region, hlo_t* out);

// ---------------------------------------------------------------- random
// THREE_FRY. |state| is u64[2]; gives the new state and |rank|-dimensional bits of u8…u64.
hlo_t hlo_rng_bits(hlo_builder_t* b, hlo_t state, tt_dtype_t dtype, int rank, const int64_t* dims, hlo_t* out_state);

#endif  // TT_HLO_BUILDER_H_
