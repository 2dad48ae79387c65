"""torch.compile with symbolic sizes: one executable for each bound, values as on the CPU at every size."""
import copy
import logging

import pytest
import torch
import torch._dynamo
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_leaves

import dynamic_programs
from common import DEV, close, counter, same
from torch_tpu._compile.bounds import Ladder, parse_ladder


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


R = torch.randn
statistics = torch.tpu.compile_statistics


def ints(high, *sizes):
    return torch.randint(0, high, sizes)


def check(f, make, marks=None, lengths=(2, 3, 7, 8, 9), exact=0, bounded=None, rtol=1e-4, **kw):
    """|f| compiled for symbolic sizes is |f| on the CPU for make(n), n in |lengths|: values, sizes, strides.

    |marks|: for each argument the dims that are symbolic; None: all that may be.
    """
    before = statistics()
    g = torch.compile(f, backend="tpu", **{"dynamic": None if marks else True, "fullgraph": True, **kw})
    for n in lengths:
        args = make(n)
        mine = [a.to(DEV) for a in args]
        for a, dims in zip(mine, marks or ()):
            torch._dynamo.mark_dynamic(a, dims)
        want, got = tree_leaves(f(*args)), tree_leaves(g(*mine))
        for w, x in zip(want, got):
            if isinstance(w, torch.Tensor):
                assert (x.shape, x.stride(), x.dtype) == (w.shape, w.stride(), w.dtype), n
                close(x, w, rtol=rtol)
            else:
                assert x == w
    after = statistics()
    assert after["exact_graphs"] - before["exact_graphs"] == exact
    if bounded is not None:
        assert after["bounded_programs"] - before["bounded_programs"] == bounded
    return g


CASES = {
    "elementwise": (lambda x: ((x * 2).relu() + 1, x // 2, x.abs().floor() % 3, torch.where(x > 0, x, 1.0)), lambda n: (R(n, 3),)),
    "zero divisors": (lambda x, y: x // y, lambda n: (ints(9, n), ints(4, n) + 1)),
    "reductions": (lambda x: (x.exp().sum(0), x.sum(), x.mean(0, keepdim=True), x.mean(), x.amax(1), x.amin(), x.prod(0), (x > 0).all(0),
                              (x > 1).any(), x.logsumexp(0), x.norm(dim=0), x.var(0), x.std(), x.count_nonzero(0)), lambda n: (R(n, n + 1),)),
    "halves": (lambda x: (x.mean(0), x.sum(0), (x * 8).sum()), lambda n: (ints(9, n, 3).bfloat16(),)),
    "arg": (lambda x: (x.argmax(), x.argmin(1), x.max(0), x.min(1)), lambda n: (R(n, n),)),
    "softmax": (lambda x: (x.softmax(0), x.log_softmax(1)), lambda n: (R(3, n),)),
    "scans": (lambda x: (x.cumsum(0), x.cumprod(1), x.cummax(0), x.logcumsumexp(0)), lambda n: (R(n, n + 2),)),
    "order": (lambda x: (x.sort(0), x.sort(0, descending=True), x.topk(2, 0), x.topk(x.shape[0] // 2, 0, largest=False)), lambda n: (R(n, 2),)),
    "order of NaN": (lambda x: (x.sort(0), x.sort(0, descending=True)), lambda n: (torch.full((n, 2), float("nan")).index_fill(0, torch.tensor(0), 1.0),)),
    "products": (lambda x, y: (x.cos() @ y.cos(), y.t() @ y, torch.addmm(x[:, :1] @ y[:1], x, y)), lambda n: (R(3, n), R(n, 4))),
    "batched products": (lambda x, y: (torch.bmm(x, y), (x @ y).transpose(0, 1) + 1, x[0] @ y[0, :, 0]), lambda n: (R(n, 3, n), R(n, n, 2))),
    "merged dims": (lambda x: (x.exp().reshape(-1), x.exp().reshape(-1).cumsum(0), x.exp().flatten(1) * 2, x.exp().view(2, -1).sum(1)), lambda n: (R(4, n, 3),)),
    "merged and split": (lambda x: (x.exp().view(-1, 4).exp().view(x.shape), x.transpose(0, 1).reshape(-1).view(-1, 2)), lambda n: (R(n, n + 1, 4),)),
    "divided": (lambda x: (x.exp().reshape(-1, x.shape[0]), x.exp().unflatten(1, (-1, 2)).sum(1)), lambda n: (R(n, 2 * n),)),
    "cat": (lambda x, y: (torch.cat([x, y, x]), torch.cat([x, x], 1), torch.stack([x, x], 1), torch.cat([y, x])), lambda n: (R(n, 2), R(3, 2))),
    "slices": (lambda x: (x[1:] * x[:-1], x[-2:] + 1, x[:, ::2] + 1, x[-1] + 1, x[:, 1] + 1, x[x.shape[0] // 2:] + 1), lambda n: (R(n, n + 2),)),
    "pieces": (lambda x: [y + 1 for y in (*x.split(2, 1), *x.chunk(2, 1), *x.unbind(1), *x.split([1, x.shape[0] - 1]))], lambda n: (R(n, 4),)),
    "moved": (lambda x: (x.flip(0), x.roll(2, 0), x.repeat(2, 3), x.tril(), x.expand(2, *x.shape) + 1, x.t().exp()), lambda n: (R(n, 3),)),
    "padded": (lambda x: (F.pad(x, (1, 2), value=3.0), F.pad(x, (0, -1)) + 1, F.pad(x, (2, 0)).sum(1)), lambda n: (R(2, n),)),
    "numbers": (lambda x: (x.sum() / x.shape[0], x * x.shape[0], x + torch.arange(x.shape[0], device=x.device), x.new_full((2,), x.shape[0]), x.shape[0] + 1,
                           torch.zeros(x.shape[0], 2, device=x.device), x.pow(x.shape[0])), lambda n: (R(n),)),
    "indices": (lambda x, i, j: (x[i], x[:, i], x.index_select(0, i.abs()), x[i, :2], x.gather(0, j), x[i[:, None], i.abs()]),
                lambda n: (R(n, n), ints(2 * n, 4) - n, ints(n, n, n)) if n > 2 else (R(n, n), torch.tensor([-1, 0, 1, -2]), ints(n, n, n))),
    "symbolic indices": (lambda x, i: (x[i], F.embedding(i, x), x.index_select(0, i[0])), lambda n: (R(7, 2), ints(7, 3, n))),
    "scattered": (lambda x, i, s: (x.scatter_add(0, i, s), x.scatter(0, i[:2], s), x.index_put((i[:, 0],), s, accumulate=True), x.scatter(0, i[:1], 9.0)),
                  lambda n: (R(5, 2), ints(5, n, 2), R(n, 2))),
    "layer norm": (lambda x: F.layer_norm(x, (4,)), lambda n: (R(n, n, 4),)),
    "group norm": (lambda x: F.group_norm(x, 2), lambda n: (R(n, 4, 3),), [[0]]),
    "losses": (lambda x, y, t: (F.mse_loss(x, y), F.l1_loss(x, y), F.cross_entropy(x, t), F.nll_loss(x, t, reduction="none"), F.smooth_l1_loss(x, y, reduction="sum"),
                                F.binary_cross_entropy_with_logits(x, y)), lambda n: (R(n, 3), R(n, 3), ints(3, n)), [[0]] * 3),
    "input lies transposed": (lambda x: (x.exp(), x.sum(0)), lambda n: (R(n, 3).t(),)),
    "result lies transposed": (lambda x: x.exp().permute(2, 0, 1), lambda n: (R(n, 2, 3),)),
    "attention": (lambda q, k, m: (F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q, k, k),
                                   F.scaled_dot_product_attention(q, k, k, attn_mask=m), F.scaled_dot_product_attention(q, k, k, attn_mask=m > 0),
                                   F.scaled_dot_product_attention(q, k, k, is_causal=True)),
                  lambda n: (R(2, 2, n, 4), R(2, 2, n + 3, 4), R(n, n + 3).index_fill(1, torch.tensor(0), 1.0)), [[2], [2], [0, 1]]),
}


@pytest.mark.parametrize("case", CASES)
def test_equal_to_cpu(case):
    check(*CASES[case], lengths=(3, 8, 9) if case != "moved" else (2, 3, 4, 5))


def test_one_program_for_each_bound():
    check(lambda x: (x @ x.t()).softmax(-1).sum(0), lambda n: (R(n, 3),), lengths=(5, 6, 7, 8, 9, 16, 12, 5, 17), bounded=3)


def test_convolutions():
    conv, line = nn.Conv2d(3, 4, 3, padding=1), nn.Conv1d(3, 4, 5, stride=2, padding=1)
    up = nn.ConvTranspose1d(3, 2, 4, stride=2, padding=1)
    for m, make in ((conv, lambda n: (R(2, 3, n + 2, 8),)), (line, lambda n: (R(n, 3, n + 4),)), (up, lambda n: (R(2, 3, n + 1),))):
        mine = copy.deepcopy(m).to(DEV)
        before = statistics()["exact_graphs"]
        g = torch.compile(mine, backend="tpu", dynamic=True)
        for n in (2, 3, 9):
            x, = make(n)
            got, want = g(x.to(DEV)), m(x)
            assert got.shape == want.shape
            close(got, want)
        assert statistics()["exact_graphs"] == before


def trained(m, x_of, y_of, loss, dim=0, lengths=(2, 3, 9)):
    """Losses, gradients and buffers of |m| compiled are the CPU's while dim |dim| of its input changes."""
    mine = copy.deepcopy(m).to(DEV)
    g = torch.compile(mine, backend="tpu")
    before = statistics()
    for n in lengths:
        x, y = x_of(n), y_of(n)
        there = x.to(DEV)
        torch._dynamo.mark_dynamic(there, dim)
        want, got = loss(m(x), y), loss(g(there), y.to(DEV))
        want.backward(), got.backward()
        close(got, want, rtol=1e-3)
        for p, q in zip(m.parameters(), mine.parameters()):
            close(q.grad, p.grad, rtol=1e-3, atol=1e-4)
        close(list(mine.buffers()), list(m.buffers()), rtol=1e-3)
        m.zero_grad(), mine.zero_grad()
    after = statistics()
    assert after["exact_graphs"] == before["exact_graphs"]
    assert after["bounded_programs"] > before["bounded_programs"]


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.b, self.out = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        return self.out(F.relu(self.b(self.c(x))).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.qkv, self.n, self.out = nn.Embedding(11, 8), nn.Linear(8, 24), nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, i):
        x = self.n(self.e(i))
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, 8)
        return self.out(x)


def test_training_batch():
    trained(Cnn(), lambda n: R(n, 2, 5, 5), lambda n: ints(3, n), F.cross_entropy)


def test_training_height():
    trained(Cnn(), lambda n: R(3, 2, n + 3, 5), lambda n: ints(3, 3), F.cross_entropy, dim=2)


def test_training_length():
    trained(Attention(), lambda n: ints(11, 2, n), lambda n: ints(5, 2, n), lambda o, y: F.cross_entropy(o.flatten(0, 1), y.flatten()), dim=1)


def test_automatic_dynamic():
    before = statistics()["bounded_programs"]
    g = check(lambda x: x.exp().sum(0), lambda n: (R(n, 3),), lengths=(5, 6, 7, 8), dynamic=None)
    assert statistics()["bounded_programs"] == before + 1  # 5 alone, then up to 8
    same(g(torch.zeros(6, 3, device=DEV)), torch.full((3,), 6.0))


def test_marked_bounds():
    before = counter("compiles"), statistics()["bounded_programs"]
    g = torch.compile(lambda x: x.exp().sum(), backend="tpu", options={"dynamic": [512]})
    for n in (5, 70, 100):
        x = torch.zeros(n).to(DEV)
        torch._dynamo.mark_dynamic(x, 0, min=4, max=100)
        assert g(x).item() == n
    assert counter("compiles") - before[0] <= 1
    assert statistics()["bounded_programs"] == before[1] + 1


def test_ladder():
    assert [Ladder().bound(n)[0] for n in (1, 4, 5, 64, 65)] == [4, 4, 8, 64, 128]
    assert [parse_ladder([10, 30]).bound(n) for n in (3, 11, 31, 61)] == [(10, 0), (30, 10), (60, 30), (90, 60)]
    assert [parse_ladder({"min": 8, "factor": 1.5}).bound(n)[0] for n in (1, 9, 13)] == [8, 12, 18]
    assert parse_ladder(False) is None
    for bad in ({"max": 3}, {"min": 0}, {"factor": 1}, [], [4, 2], [0]):
        with pytest.raises(ValueError):
            parse_ladder(bad)
    with pytest.raises(TypeError):
        parse_ladder("pow2")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no entry 'max'"):
        torch.compile(lambda x: x + 1, backend="tpu", options={"dynamic": {"max": 3}})(torch.ones(2, device=DEV))


def test_no_rounding():
    before = statistics()["bounded_programs"]
    check(lambda x: x.exp().sum(0), lambda n: (R(n, 3),), options={"dynamic": False})
    assert statistics()["bounded_programs"] == before


def test_without_treatment(caplog):
    """An operation nobody knows what to do with: each size has its program, and a log says why."""
    with caplog.at_level(logging.WARNING):
        check(lambda x: torch.cdist(x, x), lambda n: (R(n, 3),), exact=1, bounded=0)
    assert "for each set of sizes" in caplog.text and "_euclidean_dist" in caplog.text or "cdist" in caplog.text


def test_index_out_of_the_true_size():
    g = torch.compile(lambda x, i: x[i], backend="tpu", dynamic=True)
    x = R(6, 2)
    i = torch.tensor([5, -6, 0])
    same(g(x.to(DEV), i.to(DEV)), x[i])
    with pytest.raises(IndexError, match="index 6 is out of bounds"):
        g(x.to(DEV), torch.tensor([0, 6, 1]).to(DEV)).cpu()
    with pytest.raises(IndexError, match="index -7 is out of bounds"):
        g(x.to(DEV), torch.tensor([0, -7, 1]).to(DEV)).cpu()
    same(g(x.to(DEV), i.to(DEV)), x[i])


def test_mutation():
    def f(x, y):
        x.add_(y)
        y.mul_(2)
        return x.sum(0)

    g = torch.compile(f, backend="tpu", dynamic=True)
    for n in (2, 3, 9):
        args = [R(n, 3), R(n, 3)]
        mine = [a.to(DEV) for a in args]
        kept = mine[0].clone()
        first = args[0].clone()
        for _ in range(2):
            close(g(*mine), f(*args))
            close(mine, args)
        same(kept, first)
        part = torch.zeros(n + 2, 3, device=DEV)
        whole = torch.zeros(n + 2, 3)
        g(part[1:-1], mine[1]), f(whole[1:-1], args[1])
        close(part, whole)


def test_results_are_tensors_like_any_other():
    """They lie in buffers with room for more, which nobody can tell."""
    g = torch.compile(lambda x: x.exp() * 2, backend="tpu", dynamic=True)
    for n in (3, 6):
        x = R(n, 3)
        got, want = g(x.to(DEV)), x.exp() * 2
        close(got + 1, want + 1)
        close(got.t().contiguous(), want.t().contiguous())
        close(got.view(-1)[1:], want.view(-1)[1:])
        close(copy.deepcopy(got), want)
        other = got.clone()
        other[0] = 5
        got[1].mul_(3)
        want[1].mul_(3)
        close(got, want)
        assert other[0, 0].item() == 5
        assert got.untyped_storage().nbytes() == want.untyped_storage().nbytes()
        close(torch.frombuffer(bytearray(got.untyped_storage().cpu()), dtype=torch.float32), want.view(-1))
        close(g(g(got)), ((want.exp() * 2).exp() * 2))


def test_fused_region_takes_a_padded_value():
    g = torch.compile(lambda x: x.exp() * 2, backend="tpu", dynamic=True)
    with torch.tpu.set_eager_mode("DEFER_AND_FUSE"):
        for _ in range(4):
            x = R(3, 3)
            close((g(x.to(DEV)) + 1).sin().sum(0), (x.exp() * 2 + 1).sin().sum(0))


def test_cost_of_padding():
    before = statistics()
    g = torch.compile(lambda x: x + 1, backend="tpu", dynamic=True)
    g(torch.zeros(5, 1, device=DEV))
    after = statistics()
    assert after["bounded_calls"] == before["bounded_calls"] + 1
    assert after["true_elements"] - before["true_elements"] == 5
    assert after["padded_elements"] - before["padded_elements"] == 8


@pytest.mark.parametrize("seed", [1, 2, 6, 12])
def test_random_programs(seed):
    f, before = dynamic_programs.build(seed), statistics()["bounded_programs"]
    g = torch.compile(f, backend="tpu", dynamic=True)
    for n, m in ((2, 3), (5, 4), (7, 6), (8, 9)):
        args = dynamic_programs.inputs(seed, n, m)
        want, got = f(*args), g(*(a.to(DEV) for a in args))
        close(got, want, rtol=1e-3, atol=1e-4)
    assert statistics()["bounded_programs"] > before


def test_growing_cache():
    """What is appended to at each step: programs follow the ladder, not the steps."""
    def step(cache, x):
        cache = torch.cat([cache, x], 1)
        return cache, F.scaled_dot_product_attention(x, cache, cache)

    g = torch.compile(step, backend="tpu")
    cache = R(2, 5, 8)
    mine = cache.to(DEV)
    before = counter("compiles") + counter("disk_hits")
    for _ in range(28):
        x = R(2, 1, 8)
        cache, want = step(cache, x)
        torch._dynamo.mark_dynamic(mine, 1)
        mine, got = g(mine, x.to(DEV))
        close(got, want)
    close(mine, cache)
    assert counter("compiles") + counter("disk_hits") - before <= 10
