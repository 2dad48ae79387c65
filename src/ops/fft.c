// Fourier transforms: complex to complex, real to complex, complex to real, over any dims.
//
// Depends on: ops/common.h.
// Threads: as op.h (a lowering runs on one thread).
// XLA transforms up to three trailing dims at once and divides inverse transforms by their length; PyTorch asks for any
// dims and names the normalization. So: move the dims last, transform in groups, scale once.
#include <math.h>
#include "ops/common.h"

enum { NORM_NONE = 0, NORM_BY_ROOT_N = 1, NORM_BY_N = 2 };
enum { GROUP = 3 };

typedef struct fft_dims_t {
  int n;
  int dim[TT_MAX_RANK];  // wrapped, in the order given
} fft_dims_t;

static fft_dims_t fft_dims(tt_lower_t* l, int rank) {
  fft_dims_t d = {0};
  const int64_t* given = tt_ints(l, 1, &d.n);
  if (d.n > TT_MAX_RANK) {
    hlo_fail(tt_b(l), TT_INVALID_ARGUMENT, "too many dims");
    d.n = 0;
  }
  for (int i = 0; i < d.n; i++) d.dim[i] = hlo_dim(tt_b(l), given[i], rank);
  return d;
}

// Permutation that moves |n| dims to the end in order, and its inverse.
static void move_last(int rank, int n, const int* dims, int64_t* perm, int64_t* inverse) {
  int at = 0;
  for (int i = 0; i < rank; i++) {
    bool moved = false;
    for (int j = 0; j < n; j++) moved |= dims[j] == i;
    if (!moved) perm[at++] = i;
  }
  for (int j = 0; j < n; j++) perm[at++] = dims[j];
  for (int i = 0; i < rank; i++) inverse[perm[i]] = i;
}

// One XLA transform over up to GROUP dims; |last_size| is the real size of the last one for IRFFT, -1 otherwise.
static hlo_t transform_group(hlo_builder_t* b, hlo_t x, hlo_fft_t type, int n, const int* dims, int64_t last_size) {
  int64_t perm[TT_MAX_RANK], inverse[TT_MAX_RANK], lengths[GROUP];
  move_last(x->rank, n, dims, perm, inverse);
  for (int i = 0; i < n; i++) lengths[i] = x->dims[dims[i]];
  if (last_size >= 0) lengths[n - 1] = last_size;
  return hlo_transpose(b, hlo_fft(b, hlo_transpose(b, x, perm), type, n, lengths), inverse);
}

static hlo_t transform(hlo_builder_t* b, hlo_t x, bool forward, int n, const int* dims) {
  for (int i = 0; i < n; i += GROUP) {
    int count = n - i < GROUP ? n - i : GROUP;
    x = transform_group(b, x, forward ? HLO_FFT : HLO_IFFT, count, dims + i, -1);
  }
  return x;
}

// |n|: product of the transformed sizes; |divided|: XLA has divided by it.
static hlo_t scaled(hlo_builder_t* b, hlo_t x, double n, int64_t norm, bool divided) {
  double scale = norm == NORM_NONE ? 1 : norm == NORM_BY_N ? 1 / n : 1 / sqrt(n);
  if (divided) scale = norm == NORM_NONE ? n : norm == NORM_BY_N ? 1 : sqrt(n);
  return scale == 1 ? x : hlo_multiply(b, x, hlo_scalar(b, x->dtype, scale));
}

static double sizes(hlo_t x, const fft_dims_t* d) {
  double n = 1;
  for (int i = 0; i < d->n; i++) n *= (double)x->dims[d->dim[i]];
  return n;
}

static bool ret_if_empty(tt_lower_t* l, hlo_t x) {
  const tt_type_t* out = tt_out(l, 0);
  int64_t n = 1;
  for (int i = 0; i < out->rank; i++) n *= out->dims[i];
  if (n != 0 && hlo_numel(x) != 0) return false;
  tt_ret(l, 0, hlo_splat(tt_b(l), out->dtype, 0, out->rank, out->dims));
  return true;
}

// ---------------------------------------------------------------- memory
// PyTorch's CPU kernels transform batches laid out one after another: outermost the dims that stay, then the
// transformed ones, each as the input's strides order them; the last dim of a halving transform stays last.
static void transform_order(int rank, const int64_t* strides, int n, const int* dims, bool last_stays, int* order) {
  int at = 0;
  for (int i = 0; i < rank; i++) {
    bool moved = false;
    for (int j = 0; j < n; j++) moved |= dims[j] == i;
    if (!moved) order[at++] = i;
  }
  for (int j = 0; j < n; j++) order[at++] = dims[j];
  int parts[3] = {0, rank - n, last_stays ? rank - 1 : rank};
  for (int p = 0; p < 2; p++) {
    for (int i = parts[p] + 1; i < parts[p + 1]; i++)
      for (int k = i; k > parts[p] && strides[order[k]] > strides[order[k - 1]]; k--) {
        int swap = order[k];
        order[k] = order[k - 1];
        order[k - 1] = swap;
      }
  }
}

// Says how result 0, a transform of argument 0, lies in memory. |two_steps|: all but the last dim are transformed first.
static void ret_order(tt_lower_t* l, const fft_dims_t* d, bool last_stays, bool two_steps) {
  const int64_t *strides = tt_strides(l, 0), *dims = tt_in(l, 0)->dims;
  int rank = tt_in(l, 0)->rank, order[TT_MAX_RANK];
  int64_t between[TT_MAX_RANK], step = 1;
  if (strides == NULL || d->n == 0) return;
  if (two_steps && d->n > 1) {
    transform_order(rank, strides, d->n - 1, d->dim, false, order);
    for (int k = rank - 1; k >= 0; k--) {
      between[order[k]] = step;
      step *= dims[order[k]];
    }
    transform_order(rank, between, 1, d->dim + d->n - 1, false, order);
  } else {
    transform_order(rank, strides, d->n, d->dim, last_stays, order);
  }
  tt_ret_order(l, 0, order);
}

// ---------------------------------------------------------------- the three ops
static void lower_c2c(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in_as(l, 0, tt_out_dtype(l, 0));
  if (ret_if_empty(l, x)) return;
  fft_dims_t d = fft_dims(l, x->rank);
  bool forward = tt_bool(l, 3);
  hlo_t y = transform(b, x, forward, d.n, d.dim);
  tt_ret(l, 0, scaled(b, y, sizes(x, &d), tt_int(l, 2), !forward));
  ret_order(l, &d, false, false);
}

static void lower_r2c(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  tt_dtype_t dtype = tt_out_dtype(l, 0);
  hlo_t x = tt_in_as(l, 0, tt_real_dtype(dtype)), y;
  if (ret_if_empty(l, x)) return;
  fft_dims_t d = fft_dims(l, x->rank);
  if (tt_bool(l, 3) && d.n > 0) {  // one-sided: the last dim given is halved
    int count = d.n < GROUP ? d.n : GROUP;
    y = transform_group(b, x, HLO_RFFT, count, d.dim + d.n - count, -1);
    y = transform(b, y, true, d.n - count, d.dim);
  } else {
    y = transform(b, hlo_convert(b, x, dtype), true, d.n, d.dim);
  }
  tt_ret(l, 0, scaled(b, y, sizes(x, &d), tt_int(l, 2), false));
  ret_order(l, &d, true, false);
}

static void lower_c2r(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in_as(l, 0, tt_complex_dtype(tt_out_dtype(l, 0)));
  if (ret_if_empty(l, x)) return;
  fft_dims_t d = fft_dims(l, x->rank);
  int64_t size = tt_int(l, 3), half = size / 2 + 1;
  int last = d.dim[d.n - 1];
  if (x->dims[last] > half) {
    x = hlo_slice_dim(b, x, last, 0, half, 1);
  } else if (x->dims[last] < half) {
    int64_t lo[TT_MAX_RANK] = {0}, hi[TT_MAX_RANK] = {0};
    hi[last] = half - x->dims[last];
    x = hlo_pad(b, x, hlo_scalar(b, x->dtype, 0), lo, hi, NULL);
  }
  double n = sizes(x, &d) / (double)half * (double)size;
  int count = d.n < GROUP ? d.n : GROUP;
  hlo_t y = transform(b, x, false, d.n - count, d.dim);
  y = transform_group(b, y, HLO_IRFFT, count, d.dim + d.n - count, size);
  tt_ret(l, 0, scaled(b, y, n, tt_int(l, 2), true));
  ret_order(l, &d, false, true);
}

// ---------------------------------------------------------------- rows
static const tt_op_row_t k_rows[] = {
    {.name = "_fft_c2c", .lower = lower_c2c},
    {.name = "_fft_r2c", .lower = lower_r2c},
    {.name = "_fft_c2r", .lower = lower_c2r},
};
TT_OP_FAMILY(fft, k_rows)
