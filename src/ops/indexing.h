// What indexing lowerings share: checked indices, reads and writes along one dim.
//
// Depends on: ops/op.h.
// Threads: as op.h (a lowering runs on one thread).
#ifndef TT_OPS_INDEXING_H_
#define TT_OPS_INDEXING_H_
#include "ops/op.h"

// How an index that is out of [0, size) is treated.
typedef struct tt_index_rule_t {
  bool wrap;            // negative values count from the end
  tt_code_t code;       // exception of a value out of range
  const char* message;  // NULL: no check; "%lld" stands for the value
} tt_index_rule_t;

// |index| (integers of any dims) made ready to address |size| elements: checked, wrapped, and narrowed to i32 where
// |size| allows, which is what accelerators address with.
hlo_t tt_index_ready(tt_lower_t* l, hlo_t index, int64_t size, const tt_index_rule_t* rule);

// "index %lld is out of bounds for dimension |dim| with size |size|", from the builder's arena.
const char* tt_bounds_message(tt_lower_t* l, int64_t dim, int64_t size);

// The inverse of hlo_take: x[..., index[i...], ...] op= updates[..., i..., ...] along |dim|. Out-of-range indices are
// dropped.
hlo_t tt_put(hlo_builder_t* b, hlo_t x, hlo_t index, hlo_t updates, int dim, hlo_reducer_t reducer);

// hlo_take for an |index| that may be empty or of an empty dim (the result is then zeros).
hlo_t tt_take(hlo_builder_t* b, hlo_t x, hlo_t index, int dim);

// A 0-d value as [1]; others unchanged.
hlo_t tt_at_least_1d(hlo_builder_t* b, hlo_t x);

// The value reshaped to |like|'s dims: undoes tt_at_least_1d.
hlo_t tt_reshape_like(hlo_builder_t* b, hlo_t x, hlo_t like);

// x * scale + shift, for integer values.
hlo_t tt_affine(hlo_builder_t* b, hlo_t x, int64_t scale, int64_t shift);

// Splat of an integer, exact for 64 bits.
hlo_t tt_splat_int(hlo_builder_t* b, tt_dtype_t dtype, int64_t value, int rank, const int64_t* dims);

// Start and end of a Python slice brought into [0, size], end >= start.
void tt_clamp_slice(int64_t size, int64_t* start, int64_t* end);

// Permutation that moves dims |d1| and |d2| behind all others, in this order.
void tt_perm_to_back(int rank, int d1, int d2, int64_t perm[TT_MAX_RANK]);
void tt_perm_inverse(int rank, const int64_t* perm, int64_t inverse[TT_MAX_RANK]);

// Windows over |dim| of x: out[..., i, j, ...] = x[..., i * step + j * dilation, ...], i < n, j < size. The write is
// its transpose: windows are added up into zeros of |length| along |dim|.
hlo_t tt_windows_read(hlo_builder_t* b, hlo_t x, int dim, int64_t n, int64_t size, int64_t step, int64_t dilation);
hlo_t tt_windows_add(hlo_builder_t* b, hlo_t windows, int dim, int64_t length, int64_t step, int64_t dilation);

#endif  // TT_OPS_INDEXING_H_
