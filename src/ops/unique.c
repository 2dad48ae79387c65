// Ops whose result size depends on values: unique in its forms, nonzero, masked_select, repeat_interleave.
//
// Depends on: ops/common.h.
// Threads: pure functions.
// All of them *pack*: flags say which entries stay, a running count of the flags is the slot of each, and a scatter
// whose other updates fall outside moves them to the front of an array of the largest possible size.
#include "ops/common.h"

typedef struct packing_t {
  int64_t n;     // entries
  hlo_t group;   // [n] i64: number of flags up to and including here, minus one
  hlo_t slot;    // [n] i64: |group| where flagged, n elsewhere
  hlo_t count;   // 0-d i64: number of flags
} packing_t;

static packing_t pack_flags(hlo_builder_t* b, hlo_t flags) {
  packing_t p = {.n = flags->dims[0]};
  if (p.n == 0) {
    p.group = p.slot = hlo_splat(b, TT_I64, 0, 1, &p.n);
    p.count = hlo_scalar_int(b, TT_I64, 0);
    return p;
  }
  hlo_t running = hlo_scan(b, hlo_convert(b, flags, TT_I64), HLO_R_ADD, 0, false);
  p.count = hlo_squeeze(b, hlo_slice_dim(b, running, 0, p.n - 1, p.n, 1), 0);
  p.group = hlo_subtract(b, running, hlo_scalar_int(b, TT_I64, 1));
  p.slot = hlo_select(b, flags, p.group, hlo_scalar_int(b, TT_I64, p.n));
  return p;
}

// The flagged of |x| [n] at the front of an array of |size|; the rest is |fill| (0-d).
static hlo_t pack(hlo_builder_t* b, const packing_t* p, hlo_t x, int64_t size, hlo_t fill) {
  hlo_t out = hlo_broadcast_to(b, fill, 1, &size);
  if (p->n == 0 || size == 0) return out;
  return hlo_put_along(b, out, p->slot, x, 0, HLO_R_ASSIGN);
}

static hlo_t pack_all(hlo_builder_t* b, const packing_t* p, hlo_t x) {
  return pack(b, p, x, p->n, hlo_convert(b, hlo_scalar(b, TT_F32, 0), x->dtype));
}

// Sizes of the groups, at the front of an array of n.
static hlo_t group_sizes(hlo_builder_t* b, const packing_t* p) {
  hlo_t zeros = hlo_splat(b, TT_I64, 0, 1, &p->n), ones = hlo_splat(b, TT_I64, 1, 1, &p->n);
  return p->n ? hlo_put_along(b, zeros, p->group, ones, 0, HLO_R_ADD) : zeros;
}

// Flags of the entries that differ from the one before, of |rows| [n, width].
static hlo_t group_starts(hlo_builder_t* b, hlo_t rows) {
  int64_t n = rows->dims[0];
  const int64_t lo[] = {1}, hi[] = {0}, width[] = {1};
  if (n == 0) return hlo_splat(b, TT_BOOL, 1, 1, &n);
  hlo_t differs = hlo_compare(b, HLO_NE, hlo_slice_dim(b, rows, 0, 0, n - 1, 1), hlo_slice_dim(b, rows, 0, 1, n, 1));
  differs = hlo_reduce(b, differs, HLO_R_OR, 1, width);
  return hlo_pad(b, differs, hlo_scalar(b, TT_BOOL, 1), lo, hi, NULL);
}

static hlo_t no_positions(hlo_builder_t* b) {
  const int64_t none = 0;
  return hlo_splat(b, TT_I64, 0, 1, &none);
}

// ---------------------------------------------------------------- unique of elements
typedef struct unique_args_t {
  bool sorted, inverse, counts;
  bool has_counts;  // the schema has a third result
} unique_args_t;

static void unique_flat(tt_lower_t* l, unique_args_t args) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0), x = hlo_flatten(b, in), origin = NULL;
  tt_dtype_t dtype = in->dtype;
  if (args.sorted && x->dims[0] > 0) {
    if (dtype == TT_BOOL) x = hlo_convert(b, x, TT_U8);
    hlo_sort_with_index(b, x, 0, false, &x, &origin);
    x = hlo_convert(b, x, dtype);
  }
  packing_t p = pack_flags(b, group_starts(b, hlo_unsqueeze(b, x, 1)));
  tt_ret_sized(l, 0, pack_all(b, &p, x), p.count);
  hlo_t inverse = no_positions(b);
  if (args.inverse) {
    inverse = origin ? hlo_put_along(b, hlo_zeros_like(b, p.group), origin, p.group, 0, HLO_R_ASSIGN) : p.group;
    inverse = hlo_reshape(b, inverse, in->rank, in->dims);
  }
  tt_ret(l, 1, inverse);
  if (!args.has_counts) return;
  if (args.counts) {
    tt_ret_sized(l, 2, group_sizes(b, &p), p.count);
  } else {
    tt_ret(l, 2, no_positions(b));
  }
}

// (self, sorted, return_inverse): PyTorch sorts on the CPU whatever |sorted| says.
static void lower_unique(tt_lower_t* l) {
  unique_flat(l, (unique_args_t){.sorted = true, .inverse = tt_bool(l, 2)});
}

// (self, sorted, return_inverse, return_counts)
static void lower_unique2(tt_lower_t* l) {
  unique_args_t args = {.sorted = true, .inverse = tt_bool(l, 2), .counts = tt_bool(l, 3), .has_counts = true};
  unique_flat(l, args);
}

// ---------------------------------------------------------------- unique of slices
// Order of the rows of |rows| [n, width], lexicographic: one stable sort per column, the last column first. A loop of
// the program, so its size does not depend on the width.
static hlo_t row_order(hlo_builder_t* b, hlo_t rows) {
  const int64_t n = rows->dims[0], width = rows->dims[1], sizes[] = {n, 1};
  hlo_t one = hlo_scalar_int(b, TT_I64, 1), zero = hlo_scalar_int(b, TT_I64, 0);
  hlo_t init[] = {hlo_scalar_int(b, TT_I64, width - 1), hlo_iota(b, TT_I64, 1, &n, 0)}, out[2];
  hlo_region_t* cond = hlo_region_begin(b);
  hlo_t column = hlo_region_arg(b, cond, TT_I64, 0, NULL);
  hlo_region_arg(b, cond, TT_I64, 1, &n);
  hlo_t more = hlo_compare(b, HLO_GE, column, zero);
  hlo_region_end(b, cond, 1, &more);

  hlo_region_t* body = hlo_region_begin(b);
  column = hlo_region_arg(b, body, TT_I64, 0, NULL);
  hlo_t order = hlo_region_arg(b, body, TT_I64, 1, &n), sorted, moved;
  const hlo_t starts[] = {zero, column};
  hlo_t keys = hlo_reshape(b, hlo_dynamic_slice(b, rows, starts, sizes), 1, &n);
  hlo_sort_with_index(b, hlo_take(b, keys, order, 0), 0, false, &sorted, &moved);
  const hlo_t next[] = {hlo_subtract(b, column, one), hlo_take(b, order, moved, 0)};
  hlo_region_end(b, body, 2, next);
  hlo_while(b, 2, init, cond, body, out);
  return out[1];
}

static void unique_rows(tt_lower_t* l, int dim_arg, bool sorted) {
  hlo_builder_t* b = tt_b(l);
  hlo_t in = tt_in(l, 0);
  tt_dtype_t dtype = in->dtype;
  int dim = hlo_dim(b, tt_int(l, dim_arg), in->rank), empty_dims = 0;
  for (int i = 0; i < in->rank; i++) empty_dims += in->dims[i] == 0;
  int64_t n = in->rank ? in->dims[dim] : 1;
  if (empty_dims > 0) {
    if (n > 0 || empty_dims > 1) {
      tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, n > 0
          ? "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
          : "Number of zero sized dimensions is more than one, so unique cannot be applied "));
      return;
    }
    for (int i = 0; i < 3; i++) tt_ret(l, i, i ? no_positions(b) : in);
    return;
  }
  const int64_t matrix[] = {n, hlo_numel(in) / n};
  int64_t front[TT_MAX_RANK];  // |dim| first, the others in their order: so PyTorch's results lie in memory
  int order[TT_MAX_RANK];
  for (int i = 0; i < in->rank; i++) front[i] = order[i] = i == 0 ? dim : i <= dim ? i - 1 : i;
  hlo_t moved = hlo_transpose(b, in, front), rows = hlo_reshape(b, moved, 2, matrix), origin = NULL;
  if (dtype == TT_BOOL) rows = hlo_convert(b, rows, TT_U8);
  if (sorted) {
    origin = row_order(b, rows);
    rows = hlo_take(b, rows, origin, 0);
  }
  packing_t p = pack_flags(b, group_starts(b, rows));
  // Where each of the groups begins, then the rows there: moving rows once is cheaper than scattering them.
  hlo_t firsts = pack_all(b, &p, hlo_iota(b, TT_I64, 1, &n, 0));
  rows = hlo_convert(b, hlo_take(b, rows, firsts, 0), dtype);
  hlo_t values = hlo_reshape(b, rows, in->rank, moved->dims);
  int64_t back[TT_MAX_RANK];
  for (int i = 0; i < in->rank; i++) back[i] = i < dim ? i + 1 : i == dim ? 0 : i;
  tt_ret_sized_dim(l, 0, hlo_transpose(b, values, back), p.count, dim);
  tt_ret_order(l, 0, order);
  tt_ret(l, 1, origin ? hlo_put_along(b, hlo_zeros_like(b, p.group), origin, p.group, 0, HLO_R_ASSIGN) : p.group);
  tt_ret_sized(l, 2, group_sizes(b, &p), p.count);
}

// (self, dim, sorted, return_inverse, return_counts): PyTorch gives inverse and counts whether asked for or not.
static void lower_unique_dim(tt_lower_t* l) { unique_rows(l, 1, true); }
static void lower_unique_dim_consecutive(tt_lower_t* l) { unique_rows(l, 1, false); }

// (self, return_inverse, return_counts, dim)
static void lower_unique_consecutive(tt_lower_t* l) {
  bool flat = !tt_has(l, 3) || (tt_in(l, 0)->rank == 1 && tt_int(l, 3) == 0);
  if (flat) {
    unique_flat(l, (unique_args_t){.inverse = tt_bool(l, 1), .counts = tt_bool(l, 2), .has_counts = true});
  } else {
    unique_rows(l, 3, false);
  }
}

// ---------------------------------------------------------------- positions and values under a mask
// Coordinates [m, rank] of row-major positions |flat| [m] in an array of x's dims.
static hlo_t coordinates(hlo_builder_t* b, hlo_t flat, hlo_t x) {
  const int64_t dims[] = {flat->dims[0], x->rank};
  if (x->rank == 0) return hlo_splat(b, TT_I64, 0, 2, dims);
  hlo_t columns[TT_MAX_RANK];
  for (int i = x->rank - 1; i >= 0; i--) {
    hlo_t size = hlo_scalar_int(b, TT_I64, x->dims[i] > 0 ? x->dims[i] : 1);
    columns[i] = hlo_unsqueeze(b, i ? hlo_remainder(b, flat, size) : flat, 1);
    if (i) flat = hlo_divide(b, flat, size);
  }
  return hlo_concat(b, x->rank, columns, 1);
}

static void lower_nonzero(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0);
  packing_t p = pack_flags(b, hlo_flatten(b, hlo_convert(b, x, TT_BOOL)));
  hlo_t flat = pack_all(b, &p, hlo_iota(b, TT_I64, 1, &p.n, 0));
  tt_ret_sized(l, 0, coordinates(b, flat, x), p.count);
  tt_ret_order(l, 0, (const int[]){1, 0});  // a row a dim, as PyTorch's CPU kernel leaves it
}

// (self, size, fill_value)
static void lower_nonzero_static(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), none = hlo_scalar_int(b, TT_I64, -1);
  packing_t p = pack_flags(b, hlo_flatten(b, hlo_convert(b, x, TT_BOOL)));
  int64_t size = tt_int(l, 1);
  // A longer result needs slots of its own for what is not flagged: beyond its end.
  if (size > p.n) p.slot = hlo_select(b, hlo_compare(b, HLO_EQ, p.slot, hlo_scalar_int(b, TT_I64, p.n)),
                                      hlo_scalar_int(b, TT_I64, size), p.slot);
  hlo_t flat = pack(b, &p, hlo_iota(b, TT_I64, 1, &p.n, 0), size, none);
  hlo_t places = coordinates(b, flat, x), filler = hlo_scalar_int(b, TT_I64, tt_int(l, 2));
  hlo_t unused = hlo_unsqueeze(b, hlo_compare(b, HLO_EQ, flat, none), 1);
  tt_ret(l, 0, hlo_select(b, hlo_broadcast_to(b, unused, 2, places->dims), filler, places));
}

// (self, mask)
static void lower_masked_select(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t x = tt_in(l, 0), mask = tt_in(l, 1);
  if (mask->dtype != TT_BOOL) {
    tt_ret(l, 0, hlo_fail(b, TT_INVALID_ARGUMENT, "masked_select: expected BoolTensor for mask"));
    return;
  }
  hlo_broadcast2(b, &x, &mask);
  packing_t p = pack_flags(b, hlo_flatten(b, mask));
  tt_ret_sized(l, 0, pack_all(b, &p, hlo_flatten(b, x)), p.count);
}

// (repeats, output_size): i stands repeats[i] times. Without the size nothing bounds the result.
static void lower_repeat_interleave(tt_lower_t* l) {
  hlo_builder_t* b = tt_b(l);
  hlo_t repeats = tt_in(l, 0);
  tt_dtype_t dtype = repeats->dtype;
  if (!tt_has(l, 1) || repeats->rank != 1) {
    tt_ret(l, 0, hlo_fail(b, TT_DECLINED, "repeat_interleave: the result's size depends on values"));
    return;
  }
  const int64_t size = tt_int(l, 1), n = repeats->dims[0];
  hlo_t total = hlo_scalar_int(b, TT_I64, size), zero = hlo_scalar_int(b, TT_I64, 0);
  hlo_t out = hlo_splat(b, TT_I64, 0, 1, &size);
  if (n > 0) {
    repeats = hlo_convert(b, repeats, TT_I64);
    hlo_t least = hlo_reduce_all(b, repeats, HLO_R_MIN), sum = hlo_reduce_all(b, repeats, HLO_R_ADD);
    tt_check(l, hlo_compare(b, HLO_LT, least, zero), NULL, TT_INVALID_ARGUMENT, "repeats can not be negative");
    tt_check(l, hlo_compare(b, HLO_NE, sum, total), NULL, TT_INVALID_ARGUMENT,
             "allocated size does not match required size");
  }
  if (n > 0 && size > 0) {
    // A position belongs to the entry whose number is that of the entries that have ended by then.
    hlo_t ends = hlo_scan(b, repeats, HLO_R_ADD, 0, false);
    out = hlo_put_along(b, out, ends, hlo_splat(b, TT_I64, 1, 1, &n), 0, HLO_R_ADD);
    out = hlo_scan(b, out, HLO_R_ADD, 0, false);
  }
  tt_ret(l, 0, hlo_convert(b, out, dtype));
}

static const tt_op_row_t k_rows[] = {
    {.name = "_unique", .lower = lower_unique, .flags = TT_OP_DATA_DEPENDENT},
    {.name = "_unique2", .lower = lower_unique2, .flags = TT_OP_DATA_DEPENDENT},
    {.name = "unique_consecutive", .lower = lower_unique_consecutive, .flags = TT_OP_DATA_DEPENDENT},
    {.name = "unique_dim", .lower = lower_unique_dim, .flags = TT_OP_DATA_DEPENDENT},
    {.name = "unique_dim_consecutive", .lower = lower_unique_dim_consecutive, .flags = TT_OP_DATA_DEPENDENT},
    {.name = "nonzero", .lower = lower_nonzero, .flags = TT_OP_DATA_DEPENDENT},
    // PyTorch's meta kernel says column-major, its CPU kernel gives row-major: the CPU is the reference.
    {.name = "nonzero_static", .lower = lower_nonzero_static, .flags = TT_OP_NO_META},
    {.name = "masked_select", .lower = lower_masked_select, .flags = TT_OP_DATA_DEPENDENT},
    {.name = "repeat_interleave.Tensor", .lower = lower_repeat_interleave, .flags = TT_OP_NO_META | TT_OP_CHECKS},
};
TT_OP_FAMILY(unique, k_rows)
