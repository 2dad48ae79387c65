// The view planner, against plain index arithmetic on random strided views.
#include "test/unit/unit.h"

#include "ops/view.h"

typedef struct view_t {
  int rank;
  int64_t total, offset, sizes[TT_MAX_RANK], strides[TT_MAX_RANK];
} view_t;

static int64_t numel(const view_t* v) {
  int64_t n = 1;
  for (int d = 0; d < v->rank; d++) n *= v->sizes[d];
  return n;
}

// Storage position of the view's element number |e| (row-major over the dims in |order|, or 0..rank).
static int64_t position(const view_t* v, int64_t e, int n, const int8_t* order) {
  int64_t at = v->offset;
  for (int i = n - 1; i >= 0; i--) {
    int d = order[i];
    at += e % v->sizes[d] * v->strides[d];
    e /= v->sizes[d];
  }
  return at;
}

// A view as PyTorch makes them: a dense block, then narrowed, stepped, permuted, expanded, sometimes anything at all.
static view_t random_view(void) {
  view_t v = {.rank = (int)random_below(6)};
  int64_t stride = 1 + (random_below(4) == 0) * random_below(3);
  for (int d = v.rank - 1; d >= 0; d--) {
    int64_t full = 1 + random_below(5), step = 1 + (random_below(4) == 0);
    v.sizes[d] = 1 + random_below((full + step - 1) / step);
    v.strides[d] = stride * step;
    stride *= full;
    if (random_below(8) == 0) v.strides[d] = 0, v.sizes[d] = 1 + random_below(4);
    if (random_below(60) == 0) v.sizes[d] = 0;
    if (random_below(12) == 0) v.strides[d] = random_below(9);
  }
  for (int i = v.rank - 1; i > 0 && random_below(2); i--) {
    int k = (int)random_below(i + 1);
    int64_t n = v.sizes[i], s = v.strides[i];
    v.sizes[i] = v.sizes[k], v.strides[i] = v.strides[k];
    v.sizes[k] = n, v.strides[k] = s;
  }
  int64_t reach = 1;
  for (int d = 0; d < v.rank; d++) reach += v.sizes[d] ? (v.sizes[d] - 1) * v.strides[d] : 0;
  v.offset = random_below(3) ? random_below(20) : 0;
  v.total = reach + v.offset + (random_below(3) ? random_below(20) : 0);
  return v;
}

static void check_plan(const view_t* v) {
  tt_view_plan_t p;
  tt_view_plan(v->total, v->rank, v->sizes, v->strides, v->offset, &p);
  int64_t n = numel(v), distinct = 1, weight[TT_MAX_RANK + 1], box = 1, in_box = 1;
  assert_int_equal(p.form == TT_VIEW_EMPTY, n == 0);
  if (n == 0) return;
  for (int i = 0; i < p.n_sorted; i++) {
    distinct *= v->sizes[p.sorted[i]];
    assert_true(v->sizes[p.sorted[i]] > 1 && v->strides[p.sorted[i]] != 0);
    if (i) assert_true(v->strides[p.sorted[i - 1]] >= v->strides[p.sorted[i]]);
  }
  if (p.form == TT_VIEW_GATHER) {
    assert_int_equal(p.n, 1);
    assert_int_equal(p.start[0], v->offset);
    return;
  }
  assert_in_range(p.n, 1, TT_MAX_RANK + 1);
  for (int i = p.n - 1; i >= 0; i--) {
    weight[i] = box;
    box *= p.radix[i];
    in_box *= p.len[i];
    assert_true(p.start[i] >= 0 && p.len[i] >= 1 && p.start[i] + p.len[i] <= p.radix[i]);
  }
  assert_true(box >= v->total);
  assert_int_equal(in_box, distinct);
  for (int64_t e = 0; e < distinct; e++) {  // the box's elements, in order, are the view's in sorted order
    int64_t rest = e, at = 0;
    for (int i = p.n - 1; i >= 0; i--) {
      at += (p.start[i] + rest % p.len[i]) * weight[i];
      rest /= p.len[i];
    }
    assert_int_equal(at, position(v, e, p.n_sorted, p.sorted));
    assert_true(at < v->total);
  }
}

static void test_plans(void** state) {
  (void)state;
  for (int i = 0; i < 40000; i++) {
    view_t v = random_view();
    check_plan(&v);
  }
}

static tt_view_form_t form_of(int64_t total, int rank, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  tt_view_plan_t p;
  tt_view_plan(total, rank, sizes, strides, offset, &p);
  return p.form;
}
#define FORM(total, rank, sizes, strides, offset) form_of(total, rank, (const int64_t[]){sizes}, (const int64_t[]){strides}, offset)
#define LIST(...) __VA_ARGS__

static void test_forms(void** state) {
  (void)state;
  assert_int_equal(form_of(1, 0, NULL, NULL, 0), TT_VIEW_BOX);
  assert_int_equal(form_of(7, 0, NULL, NULL, 6), TT_VIEW_BOX);
  assert_int_equal(FORM(24, 3, LIST(2, 3, 4), LIST(12, 4, 1), 0), TT_VIEW_BOX);
  assert_int_equal(FORM(24, 3, LIST(4, 3, 2), LIST(1, 4, 12), 0), TT_VIEW_BOX);       // transposed
  assert_int_equal(FORM(24, 2, LIST(2, 3), LIST(12, 4), 3), TT_VIEW_BOX);             // select
  assert_int_equal(FORM(24, 2, LIST(5, 3), LIST(0, 4), 3), TT_VIEW_BOX);              // expand
  assert_int_equal(FORM(10, 1, LIST(5), LIST(2), 1), TT_VIEW_BOX);                    // every other
  assert_int_equal(FORM(8, 2, LIST(2, 3), LIST(3, 1), 1), TT_VIEW_MERGED);           // a view of a moved slice
  assert_int_equal(FORM(10, 2, LIST(4, 3), LIST(1, 1), 0), TT_VIEW_GATHER);           // overlapping windows
  assert_int_equal(FORM(10, 1, LIST(3), LIST(4), 0), TT_VIEW_BOX);                    // no multiple of the stride
  assert_int_equal(FORM(10, 2, LIST(0, 3), LIST(3, 1), 0), TT_VIEW_EMPTY);
}

static void test_dense_and_overlap(void** state) {
  (void)state;
  static int hits[4096];
  int n_dense = 0, n_overlapping = 0;
  for (int i = 0; i < 20000; i++) {
    view_t v = random_view();
    int64_t n = numel(&v), largest = 0, smallest = INT64_MAX;
    int8_t order[TT_MAX_RANK], perm[TT_MAX_RANK];
    for (int d = 0; d < v.rank; d++) order[d] = (int8_t)d;
    if (v.total > 4096) continue;
    memset(hits, 0, sizeof hits);
    bool shared = false, row_major = true;
    for (int64_t e = 0; e < n; e++) {
      int64_t at = position(&v, e, v.rank, order);
      shared = shared || hits[at]++;
      row_major = row_major && at == v.offset + e;
      if (at > largest) largest = at;
      if (at < smallest) smallest = at;
    }
    bool dense = n == 0 || (!shared && largest - smallest + 1 == n);
    assert_int_equal(tt_view_is_contiguous(v.rank, v.sizes, v.strides), row_major);
    assert_int_equal(tt_view_is_dense(v.rank, v.sizes, v.strides, perm), dense);
    if (dense) {
      n_dense++;
      bool seen[TT_MAX_RANK] = {false};
      for (int d = 0; d < v.rank; d++) seen[perm[d]] = true;
      for (int d = 0; d < v.rank; d++) assert_true(seen[d]);
      for (int64_t e = 0; e < n; e++) assert_int_equal(position(&v, e, v.rank, perm), v.offset + e);
    }
    bool may = tt_view_overlaps(v.rank, v.sizes, v.strides);
    if (shared) assert_true(may);  // it may say yes where there is none, never no where there is one
    if (dense && n) assert_false(may);
    n_overlapping += shared;
  }
  assert_true(n_dense > 1000 && n_overlapping > 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans), cmocka_unit_test(test_forms),
                                     cmocka_unit_test(test_dense_and_overlap)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
