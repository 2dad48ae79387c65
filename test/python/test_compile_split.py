"""Graphs with operators that have no place in a program: torch.compile(backend="tpu", fullgraph=True) divides them."""
import logging

import pytest
import torch
import torch._dynamo

from common import DEV, close, same

LIBRARY = torch.library.Library("tpu_test_split", "DEF")
LIBRARY.define("twice(Tensor x) -> Tensor")
LIBRARY.define("noisy(Tensor x) -> Tensor")
torch.library.impl(LIBRARY, "twice", "CompositeExplicitAutograd")(lambda x: x + x)
torch.library.impl(LIBRARY, "noisy", "CompositeExplicitAutograd")(lambda x: x + torch.rand_like(x))
torch.library.register_fake("tpu_test_split::twice", torch.empty_like, lib=LIBRARY)
torch.library.register_fake("tpu_test_split::noisy", torch.empty_like, lib=LIBRARY)
torch.library.register_autograd("tpu_test_split::twice", lambda ctx, g: g + g, lib=LIBRARY)
twice, noisy = torch.ops.tpu_test_split.twice, torch.ops.tpu_test_split.noisy


@pytest.fixture(autouse=True)
def _capture():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield
    torch._dynamo.reset()


def whole(f):
    return torch.compile(f, backend="tpu", fullgraph=True)


def executions(f, *args):
    f(*args)
    torch.tpu.synchronize()
    before = torch.tpu.counters()["executions"]
    f(*args)
    torch.tpu.synchronize()
    return torch.tpu.counters()["executions"] - before


def test_two_programs_and_the_operator(caplog):
    f = lambda x: twice(x.sin() @ x.cos()).relu().sum(0) - 1  # noqa: E731
    x = torch.randn(5, 5)
    with caplog.at_level(logging.WARNING):
        g = whole(f)
        close(g(x.to(DEV)), f(x))
    assert [r for r in caplog.records if "tpu_test_split.twice" in r.getMessage()]
    assert executions(g, x.to(DEV)) == 3


def test_tuples_cross_the_division():
    def f(x):
        values, order = x.sort(0)
        low, high = torch.aminmax(twice(values))
        return order * 2, low, high, values

    x = torch.randn(6)
    same(whole(f)(x.to(DEV)), f(x))


def test_mutation_and_views():
    def f(x, y):
        x.add_(1)
        z = twice(x)
        x[1:].mul_(2)
        y.copy_(z + x)
        return x[1:], z.t(), y

    args = [torch.randn(3, 3), torch.zeros(3, 3)]
    mine = [a.to(DEV) for a in args]
    expected, actual = f(*args), whole(f)(*mine)
    close(actual, expected)
    close(mine, args)
    actual[0].zero_()
    assert mine[0][1:].abs().sum().item() == 0


def test_random_numbers_keep_their_order():
    def f(x):
        a = x + torch.rand_like(x)
        b = noisy(a)
        return a, b, b * torch.rand_like(b)

    x = torch.ones(64, device=DEV)
    torch.manual_seed(5)
    state = [torch.rand_like(x) for _ in range(3)]
    torch.manual_seed(5)
    a, b, c = whole(f)(x)
    close((a, b, c), (1 + state[0], 1 + state[0] + state[1], (1 + state[0] + state[1]) * state[2]))


def test_training():
    def f(x, w):
        return (twice(x @ w).tanh() ** 2).sum()

    x, w = torch.randn(4, 3), torch.randn(3, 2)
    mine = [x.to(DEV), w.to(DEV)]
    for t in (w, mine[1]):
        t.requires_grad_()
    f(x, w).backward()
    whole(f)(*mine).backward()
    close(mine[1].grad, w.grad)


@pytest.mark.parametrize("f", [
    lambda x: (x * 2).nonzero() + 1,
    lambda x: x[x > 0].sin() * 2,
    lambda x: torch.unique((x * 2).int(), return_inverse=True, return_counts=True),
    lambda x: torch.bincount((x * 2).int().abs()) + 1,
    lambda x: x.masked_select(x < 0).sum() * x,
    lambda x: torch.repeat_interleave(x, (x > 0).long() + 1) + 1,
    lambda x: torch.zeros(int((x > 0).sum().item()), device=x.device) + 1,
    lambda x: (x[0].item(), x.mean()),
    lambda x: x[x > 0][x[x > 0] < 1].sum() + x[0].item(),
], ids="nonzero mask unique bincount masked_select repeat_interleave size_of_item item two".split())
def test_data_dependent(f):
    g = whole(f)
    for seed in (0, 1, 2):  # of different sizes, all of one compiled function
        x = torch.randn(8, generator=torch.Generator().manual_seed(seed))
        close(g(x.to(DEV)), f(x))


def test_item_that_is_computed_with_stays_inside():
    def f(x):
        s = x.sum().item()
        return x * s + s

    g = whole(f)
    assert executions(g, torch.ones(4, device=DEV)) == 1
    compiles = torch.tpu.counters()["compiles"]
    for k in range(3):
        x = torch.full((4,), float(k))
        close(g(x.to(DEV)), f(x))
    assert torch.tpu.counters()["compiles"] == compiles


def test_checks_on_sizes_raise_each_time():
    def f(x):
        n = x.sum().item()
        torch._check(n > 3, lambda: "too few")
        return torch.zeros(int(n), device=x.device)

    g = whole(f)
    x = torch.ones(4, dtype=torch.int64)
    same(g(x.to(DEV)), f(x))
    for _ in range(2):
        with pytest.raises(RuntimeError):
            g((x * 0).to(DEV))
    same(g(x.to(DEV)), f(x))
