// Trains a small network with the C interface alone: no Python, no PyTorch.
//
//   train_spiral PLUGIN.so [CACHE_DIR]
//
// Three interleaved spirals in the plane, a 2-64-64-3 network, softmax cross-entropy, SGD with momentum. One training
// step is ONE program: forward, backward and update, with the parameters' buffers donated to their successors.
// Exits with 0 when at least 97 % of the points are classified right.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tt/tt.h"

enum { POINTS = 300, CLASSES = 3, HIDDEN = 64, STEPS = 1500, PARAMS = 6 };

static void check(tt_status_t status) {
  if (!status) return;
  fprintf(stderr, "%s: %s\n", tt_code_name(tt_status_code(status)), tt_status_message(status));
  exit(1);
}

// ---------------------------------------------------------------- graph building in one line an op
static tt_graph_t* g;
static tt_value_t node(int id) { return (tt_value_t){.kind = TT_V_NODE, .u.i = id}; }
static tt_value_t number(double v) { return (tt_value_t){.kind = TT_V_FLOAT, .u.f = v}; }
static tt_value_t integer(int64_t v) { return (tt_value_t){.kind = TT_V_INT, .u.i = v}; }
static tt_value_t boolean(bool v) { return (tt_value_t){.kind = TT_V_BOOL, .u.i = v}; }
static const tt_value_t none = {.kind = TT_V_NONE};

static int call(const char* op, int n, const tt_value_t* args) {
  int ids[4], count = 4;
  check(tt_graph_call(g, op, n, args, 0, NULL, ids, &count));
  return ids[0];
}
#define CALL(op, ...) call(op, (int)(sizeof((tt_value_t[]){__VA_ARGS__}) / sizeof(tt_value_t)), (tt_value_t[]){__VA_ARGS__})

static int mm(int a, int b) { return CALL("mm", node(a), node(b)); }
static int transposed(int a) { return CALL("transpose.int", node(a), integer(0), integer(1)); }
static int add(int a, int b, double alpha) { return CALL("add.Tensor", node(a), node(b), number(alpha)); }
static int mul(int a, int b) { return CALL("mul.Tensor", node(a), node(b)); }
static int sum_rows(int a) {
  static const int64_t dim = 0;
  return CALL("sum.dim_IntList", node(a), ((tt_value_t){.kind = TT_V_INTS, .n = 1, .u.ints = &dim}), boolean(false), none);
}
static int relu_gradient(int gradient, int output) { return CALL("threshold_backward", node(gradient), node(output), number(0)); }

static const int64_t k_dims[PARAMS][2] = {{2, HIDDEN}, {HIDDEN, 0}, {HIDDEN, HIDDEN}, {HIDDEN, 0}, {HIDDEN, CLASSES}, {CLASSES, 0}};
static int rank_of(int i) { return k_dims[i][1] ? 2 : 1; }
static int64_t count_of(int i) { return k_dims[i][0] * (k_dims[i][1] ? k_dims[i][1] : 1); }

// Parameters and velocities in, the same out, then the loss and the scores.
static tt_program_t* build_step(void) {
  check(tt_graph_create(0, &g));
  int p[PARAMS], v[PARAMS], x, y;
  for (int i = 0; i < PARAMS; i++) check(tt_graph_param(g, TT_F32, rank_of(i), k_dims[i], &p[i]));
  for (int i = 0; i < PARAMS; i++) check(tt_graph_param(g, TT_F32, rank_of(i), k_dims[i], &v[i]));
  check(tt_graph_param(g, TT_F32, 2, (const int64_t[]){POINTS, 2}, &x));
  check(tt_graph_param(g, TT_F32, 2, (const int64_t[]){POINTS, CLASSES}, &y));

  int h1 = CALL("relu", node(add(mm(x, p[0]), p[1], 1)));
  int h2 = CALL("relu", node(add(mm(h1, p[2]), p[3], 1)));
  int scores = add(mm(h2, p[4]), p[5], 1);
  int log_probs = CALL("_log_softmax", node(scores), integer(1), boolean(false));
  int loss = CALL("mul.Tensor", node(CALL("sum", node(mul(log_probs, y)), none)), node(CALL("full", ((tt_value_t){.kind = TT_V_INTS}), number(-1.0 / POINTS), none, none, none, none)));

  int d3 = CALL("div.Tensor", node(add(CALL("exp", node(log_probs)), y, -1)), node(CALL("full", ((tt_value_t){.kind = TT_V_INTS}), number(POINTS), none, none, none, none)));
  int d2 = relu_gradient(mm(d3, transposed(p[4])), h2);
  int d1 = relu_gradient(mm(d2, transposed(p[2])), h1);
  int grad[PARAMS] = {mm(transposed(x), d1), sum_rows(d1), mm(transposed(h1), d2), sum_rows(d2), mm(transposed(h2), d3), sum_rows(d3)};

  int outs[2 * PARAMS + 2], donate[2 * PARAMS + 2];
  for (int i = 0; i < PARAMS; i++) {
    int velocity = add(grad[i], v[i], 0.9);
    outs[i] = add(p[i], velocity, -0.2);
    outs[PARAMS + i] = velocity;
    donate[i] = i;
    donate[PARAMS + i] = PARAMS + i;
  }
  outs[2 * PARAMS] = loss;
  outs[2 * PARAMS + 1] = scores;
  donate[2 * PARAMS] = donate[2 * PARAMS + 1] = -1;
  check(tt_graph_outputs(g, 2 * PARAMS + 2, outs, donate));
  tt_program_t* program;
  check(tt_graph_compile(g, NULL, &program));
  tt_graph_destroy(g);
  return program;
}

// ---------------------------------------------------------------- data
static double uniform(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}

static void make_spirals(float* x, float* y) {
  memset(y, 0, sizeof(float) * POINTS * CLASSES);
  for (int i = 0; i < POINTS; i++) {
    int label = i % CLASSES;
    double r = (double)(i / CLASSES) / (POINTS / CLASSES), angle = label * 2.0944 + r * 4 + (uniform() - 0.5) * 0.3;
    x[2 * i] = (float)(r * sin(angle));
    x[2 * i + 1] = (float)(r * cos(angle));
    y[i * CLASSES + label] = 1;
  }
}

// A tensor on the device, filled from the host.
static tt_tensor_t upload(int rank, const int64_t* dims, const int64_t* strides, const float* data, int64_t count) {
  tt_tensor_t t = {.sizes = dims, .strides = strides, .rank = rank, .dtype = TT_F32};
  check(tt_storage_create(0, (size_t)count * sizeof(float), &t.storage));
  check(tt_copy_from_host(&t, data, TT_F32));
  return t;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s PLUGIN.so [CACHE_DIR]\n", argv[0]);
    return 2;
  }
  tt_runtime_options_t options = {.plugin_path = argv[1], .cache_dir = argc > 2 ? argv[2] : NULL};
  check(tt_runtime_open(&options));
  printf("device: %s on platform %s, PJRT %s\n", tt_device_kind(0), tt_runtime_info("platform"), tt_runtime_info("api_version"));

  static float x[POINTS * 2], y[POINTS * CLASSES], scores[POINTS * CLASSES], init[HIDDEN * HIDDEN];
  make_spirals(x, y);
  static int64_t strides[PARAMS][2];
  tt_tensor_t args[2 * PARAMS + 2];
  for (int i = 0; i < 2 * PARAMS; i++) {
    int k = i % PARAMS;
    strides[k][0] = k_dims[k][1] ? k_dims[k][1] : 1;
    strides[k][1] = 1;
    double scale = i < PARAMS && rank_of(k) == 2 ? sqrt(6.0 / (double)(k_dims[k][0] + k_dims[k][1])) : 0;
    for (int64_t e = 0; e < count_of(k); e++) init[e] = (float)((uniform() * 2 - 1) * scale);
    args[i] = upload(rank_of(k), k_dims[k], strides[k], init, count_of(k));
  }
  static const int64_t x_dims[2] = {POINTS, 2}, x_strides[2] = {2, 1}, y_dims[2] = {POINTS, CLASSES}, y_strides[2] = {CLASSES, 1};
  args[2 * PARAMS] = upload(2, x_dims, x_strides, x, POINTS * 2);
  args[2 * PARAMS + 1] = upload(2, y_dims, y_strides, y, POINTS * CLASSES);

  tt_program_t* step = build_step();
  tt_results_t results = {0};
  float loss = 0;
  for (int s = 0; s < STEPS; s++) {
    check(tt_program_run(step, 2 * PARAMS + 2, args, NULL, &results));
    for (int i = 0; i < 2 * PARAMS; i++) {
      tt_storage_release(args[i].storage);
      args[i].storage = results.items[i].storage;
    }
    tt_tensor_t loss_t = {.storage = results.items[2 * PARAMS].storage, .dtype = TT_F32};
    tt_tensor_t scores_t = {.storage = results.items[2 * PARAMS + 1].storage, .sizes = y_dims, .strides = y_strides, .rank = 2, .dtype = TT_F32};
    if (s % 300 == 0 || s == STEPS - 1) {
      check(tt_copy_to_host(&loss_t, &loss));
      printf("step %4d  loss %.4f\n", s, (double)loss);
    }
    if (s == STEPS - 1) check(tt_copy_to_host(&scores_t, scores));
    tt_storage_release(loss_t.storage);
    tt_storage_release(scores_t.storage);
  }
  int right = 0;
  for (int i = 0; i < POINTS; i++) {
    int best = 0;
    for (int c = 1; c < CLASSES; c++)
      if (scores[i * CLASSES + c] > scores[i * CLASSES + best]) best = c;
    right += best == i % CLASSES;
  }
  for (int i = 0; i < 2 * PARAMS + 2; i++) tt_storage_release(args[i].storage);
  tt_results_free(&results);
  tt_program_release(step);
  printf("%d of %d points right; %lld compiles, %lld executions\n", right, POINTS, (long long)tt_counter("compiles"), (long long)tt_counter("executions"));
  tt_runtime_shutdown();
  return right >= POINTS * 97 / 100 ? 0 : 1;
}
