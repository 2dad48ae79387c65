// The plan of a fused region: parts cover it in order, and what a part reads is there or can be computed again.
#include "test/unit/unit.h"

#include "runtime/plan.h"

enum { OPS = 60, WIRES = 3 };

typedef struct made_t {
  rt_plan_op_t ops[OPS];
  int64_t wires[OPS * WIRES], bytes[OPS], external_bytes[4];
  bool is_new[OPS], live[OPS], external_live[4];
  rt_plan_graph_t g;
} made_t;

static void make(made_t* m) {
  memset(m, 0, sizeof *m);
  for (int i = 0; i < OPS; i++) {
    m->ops[i] = (rt_plan_op_t){i * WIRES, (int32_t)random_below(WIRES + 1), i, 1, random_below(2) == 0};
    for (int w = 0; w < WIRES; w++) {
      int64_t kind = random_below(4);
      m->wires[i * WIRES + w] = kind == 0 ? 0 : kind == 1 || !i ? random_below(4) * 2 + 1 : (random_below(i) + 1) * 2;
    }
    m->bytes[i] = random_below(5) * 100;
    m->is_new[i] = random_below(4) > 0;
    m->live[i] = random_below(6) == 0;
  }
  for (int i = 0; i < 4; i++) m->external_bytes[i] = 100, m->external_live[i] = i < 2;
  m->g = (rt_plan_graph_t){OPS, OPS, 4, m->ops, m->wires, m->bytes, m->is_new, m->live, m->external_bytes, m->external_live};
}

// Can part |t| have what |wire| stands for? As the builder goes about it.
static bool available(const made_t* m, const rt_plan_t* plan, const int* part, int64_t wire, int t) {
  if (!wire) return true;
  if (wire % 2) return m->external_live[wire / 2] || plan->last_external[wire / 2] >= t;
  int v = (int)(wire / 2 - 1);
  if (part[v] == t || m->live[v] || plan->last_value[v] >= t) return true;
  if (!m->ops[v].again) return false;
  for (int w = m->ops[v].first_wire; w < m->ops[v].first_wire + m->ops[v].n_wires; w++)
    if (!available(m, plan, part, m->wires[w], t)) return false;
  return true;
}

static void test_everything_read_is_there(void** state) {
  (void)state;
  static made_t m;
  int again = 0;
  for (int round = 0; round < 500; round++) {
    make(&m);
    tt_arena_t arena;
    tt_arena_init(&arena);
    rt_plan_t plan;
    rt_plan_limits_t limits = {0, 2 + (int)random_below(12), 1};
    assert_true(rt_plan_make(&m.g, &limits, &arena, &plan));
    int part[OPS];
    assert_int_equal(plan.first[0], 0);
    assert_int_equal(plan.first[plan.n_parts], OPS);
    for (int p = 0; p < plan.n_parts; p++) {
      assert_true(plan.first[p] < plan.first[p + 1]);
      for (int i = plan.first[p]; i < plan.first[p + 1]; i++) part[i] = p;
    }
    for (int i = 0; i < OPS; i++) {
      for (int w = m.ops[i].first_wire; w < m.ops[i].first_wire + m.ops[i].n_wires; w++) {
        assert_true(available(&m, &plan, part, m.wires[w], part[i]));
        int64_t v = m.wires[w] / 2 - 1;
        if (m.wires[w] && m.wires[w] % 2 == 0 && part[v] < part[i] && !m.live[v] && plan.last_value[v] < part[i]) again++;
      }
    }
    tt_arena_deinit(&arena);
  }
  assert_true(again > 0);
}

static void test_small_regions_are_whole(void** state) {
  (void)state;
  static made_t m;
  make(&m);
  tt_arena_t arena;
  tt_arena_init(&arena);
  rt_plan_t plan;
  rt_plan_limits_t limits = {1 << 20, 8, 1};
  assert_true(rt_plan_make(&m.g, &limits, &arena, &plan));
  assert_int_equal(plan.n_parts, 1);
  tt_arena_deinit(&arena);
}

// up -> gelu -> down, and a backward pass that reads up and gelu: gelu is light and does not stay, up does.
static void test_light_values_do_not_stay(void** state) {
  (void)state;
  enum { LAYERS = 8, N = 3 * LAYERS };
  rt_plan_op_t ops[N + LAYERS];
  int64_t wires[2 * (N + LAYERS)] = {0}, bytes[N + LAYERS], external_bytes[] = {8};
  bool is_new[N + LAYERS], live[N + LAYERS] = {false}, external_live[] = {true};
  for (int i = 0; i < N + LAYERS; i++) {
    ops[i] = (rt_plan_op_t){2 * i, 2, i, 1, i < N && i % 3 == 1};
    bytes[i] = 1000;
    is_new[i] = true;
    wires[2 * i] = i ? 2 * (int64_t)i : 1;  // each reads the one before
  }
  for (int layer = 0; layer < LAYERS; layer++) wires[2 * (N + LAYERS - 1 - layer) + 1] = 2 * ((int64_t)layer * 3 + 1 + 1);  // gelu
  // Its input too, two operations of the backward pass being one here.
  for (int layer = 0; layer < LAYERS; layer++) ops[N + LAYERS - 1 - layer].n_wires = 2;
  rt_plan_graph_t g = {N + LAYERS, N + LAYERS, 1, ops, wires, bytes, is_new, live, external_bytes, external_live};
  tt_arena_t arena;
  tt_arena_init(&arena);
  rt_plan_t plan;
  rt_plan_limits_t limits = {0, 8, 1};
  assert_true(rt_plan_make(&g, &limits, &arena, &plan));
  assert_true(plan.n_parts > 4);
  // Alone, computing gelu again would make its input stay instead: nothing is won, so it stays itself.
  assert_true(plan.last_value[1] >= plan.n_parts - 2);
  for (int layer = 0; layer < LAYERS; layer++) wires[2 * (N + LAYERS - 1 - layer)] = 2 * ((int64_t)layer * 3 + 1);  // and its input is read
  assert_true(rt_plan_make(&g, &limits, &arena, &plan));
  assert_true(plan.last_value[1] < 2 && plan.last_value[0] >= plan.n_parts - 2);
  tt_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_everything_read_is_there),
      cmocka_unit_test(test_small_regions_are_whole),
      cmocka_unit_test(test_light_values_do_not_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
