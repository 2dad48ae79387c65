// What the pooling files share: windows, the pair reduction of max pooling, scattering into planes.
//
// Depends on: ops/nn.h.
// Threads: as op.h.
#ifndef TT_OPS_POOL_H_
#define TT_OPS_POOL_H_
#include "ops/nn.h"

#define TT_POOL_MAX 3  // spatial dims

// Windows over the last |n| dims of an input.
typedef struct tt_pool_t {
  int n;
  int64_t in[TT_POOL_MAX], out[TT_POOL_MAX];
  int64_t kernel[TT_POOL_MAX], stride[TT_POOL_MAX], padding[TT_POOL_MAX], dilation[TT_POOL_MAX];
} tt_pool_t;

// Region that reduces (value, index) pairs to the one max pooling keeps: the largest value at its first index, but the
// last of NaNs (PyTorch's CPU kernels let each NaN replace the one before). Commutative and associative.
hlo_region_t* tt_pool_max_region(hlo_builder_t* b, tt_dtype_t value, tt_dtype_t index);
// Flat position of every element within its plane of the last |n| dims, in x's dims; i32 unless a plane is larger.
hlo_t tt_plane_index(hlo_builder_t* b, hlo_t x, int n);
// Zeros of |dims| (rank |rank|) with |values| added (ADD) or put (ASSIGN) at flat |indices| of the last |n| dims.
hlo_t tt_put_planes(hlo_builder_t* b, hlo_t values, hlo_t indices, int n, int rank, const int64_t* dims,
                    hlo_reducer_t reducer);
// Gradient of a max pooling whose window of output o starts at o * stride - padding: every input gathers from the few
// windows that cover it and took its index.
hlo_t tt_max_pool_gradient(hlo_builder_t* b, hlo_t grad, hlo_t indices, const tt_pool_t* p);

#endif  // TT_OPS_POOL_H_
