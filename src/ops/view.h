// Reading and writing strided views: the one place that turns (base, sizes, strides, offset) into StableHLO.
//
// Depends on: hlo.
// Threads: pure functions.
//
// A storage is a row of L elements. A view whose strides nest is a box in a mixed-radix numbering of that row: strides
// s1 > s2 > … (each a multiple of the next) give the shape [L/s1, s1/s2, …, sk], in which the view is a slice, followed
// by a transpose and broadcasts. The start of the slice in each digit is a run-time operand (or a static zero), so that
// a moving offset never recompiles. Views that do not nest (overlapping windows) are gathered element by element.
#ifndef TT_OPS_VIEW_H_
#define TT_OPS_VIEW_H_
#include "hlo/builder.h"

typedef enum tt_view_form_t {
  TT_VIEW_EMPTY,   // no elements
  TT_VIEW_BOX,     // digits over the view's own dims
  TT_VIEW_MERGED,  // digits over the view's dims after merging contiguous neighbours
  TT_VIEW_GATHER,  // by computed indices; one digit: the offset itself
} tt_view_form_t;

typedef struct tt_view_plan_t {
  tt_view_form_t form;
  int n;                                // digits
  int64_t radix[TT_MAX_RANK + 1];
  int64_t len[TT_MAX_RANK + 1];         // extent of the view in each digit
  int64_t start[TT_MAX_RANK + 1];       // of this offset; digits that are zero are static, the others operands
  int n_sorted;                         // view dims with size > 1 and stride != 0, largest stride first
  int8_t sorted[TT_MAX_RANK];
} tt_view_plan_t;

// Plans the view over |total| elements. Everything in the plan but |start| depends on offset only through |form|.
void tt_view_plan(int64_t total, int rank, const int64_t* sizes, const int64_t* strides, int64_t offset, tt_view_plan_t* out);

// True when (sizes, strides) fill a block without holes or overlap; |out_perm| (may be NULL) receives the dims in memory
// order, size-1 dims in their place.
bool tt_view_is_dense(int rank, const int64_t* sizes, const int64_t* strides, int8_t* out_perm);
void tt_view_row_major(int rank, const int64_t* sizes, int64_t* out_strides);  // PyTorch's contiguous strides
bool tt_view_is_contiguous(int rank, const int64_t* sizes, const int64_t* strides);
// True when two elements of the view may share memory (a stride of 0 with size > 1 included).
bool tt_view_overlaps(int rank, const int64_t* sizes, const int64_t* strides);

// The view's value. |base| is the storage's value (any dims and dtype); |digits|: n values of i64, NULL for static zeros.
hlo_t tt_view_read(hlo_builder_t* b, hlo_t base, tt_dtype_t dtype, int rank, const int64_t* sizes, const int64_t* strides,
                   const tt_view_plan_t* plan, const hlo_t* digits);
// The storage's next value after writing |value| (dims = sizes) through the view; dims and dtype as |base|'s.
hlo_t tt_view_write(hlo_builder_t* b, hlo_t base, hlo_t value, int rank, const int64_t* sizes, const int64_t* strides,
                    const tt_view_plan_t* plan, const hlo_t* digits);
// Same bytes as another dtype; both 1-D. A tail that is no whole element is left out.
hlo_t tt_view_reinterpret(hlo_builder_t* b, hlo_t flat, tt_dtype_t dtype);

#endif  // TT_OPS_VIEW_H_
