"""torch.compile(backend="tpu")."""
import copy

import pytest
import torch
import torch._dynamo
import torch.nn.functional as F
from torch import nn

from common import DEV, close, same


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(f, **kw):
    return torch.compile(f, backend="tpu", **kw)


def test_forward():
    f = lambda x, y: (F.gelu(x @ y) + x.mean(1, keepdim=True)).softmax(-1)  # noqa: E731
    x, y = torch.randn(4, 6), torch.randn(6, 5)
    close(compiled(f, fullgraph=True)(x.to(DEV), y.to(DEV)), f(x, y))


def test_one_program():
    x = torch.randn(8, 8, device=DEV)
    g = compiled(lambda x: (x.sin() @ x.cos()).relu().sum(0), fullgraph=True)
    g(x)
    torch.tpu.synchronize()
    before = torch.tpu.counters()["executions"]
    g(x)
    assert torch.tpu.counters()["executions"] == before + 1


def test_training():
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
    curves = []
    for d in ("cpu", DEV):
        m = copy.deepcopy(model).to(d)
        f = compiled(m) if d == DEV else m
        opt = torch.optim.AdamW(m.parameters(), lr=1e-2)
        losses = []
        for _ in range(4):
            opt.zero_grad()
            loss = F.cross_entropy(f(x.to(d)), y.to(d))
            loss.backward()
            opt.step()
            losses.append(loss.item())
        curves.append(losses)
    close(curves[1], curves[0], rtol=1e-3, atol=1e-4)


def test_conv_and_batch_norm():
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2))
    x = torch.randn(3, 2, 8, 8)
    seen = []
    for d in ("cpu", DEV):
        m = copy.deepcopy(model).to(d)
        out = (compiled(m) if d == DEV else m)(x.to(d))
        out.square().mean().backward()
        seen.append((out, [p.grad for p in m.parameters()], list(m.buffers())))
    close(seen[1], seen[0], rtol=1e-3, atol=1e-4)


def test_mutation():
    def f(x, y):
        x.add_(y)
        y[0] = 7
        z = x.t()
        z.mul_(2)
        return x + 1

    args = [torch.ones(3, 3), torch.arange(9.0).reshape(3, 3)]
    mine = [a.to(DEV) for a in args]
    a, b = f(*args), compiled(f)(*mine)
    same(b, a)
    same(mine, args)


def test_views_and_aliases_of_inputs():
    f = lambda x: (x[1:], x.t(), x * 2, x)  # noqa: E731
    x = torch.arange(6.0).reshape(2, 3)
    y = x.to(DEV)
    a, b = f(x), compiled(f)(y)
    same(b, a)
    b[0].zero_()
    assert y[1].sum().item() == 0 and b[3] is y
    assert b[1].stride() == a[1].stride()


def test_dynamic_shapes():
    f = lambda x: x.view(-1, 2).cumsum(0) * x.shape[0] + torch.arange(x.shape[0] // 2, device=x.device)[:, None]  # noqa: E731
    g = compiled(f, dynamic=True)
    for n in (4, 6, 10, 6):
        x = torch.randn(n)
        close(g(x.to(DEV)), f(x))


def test_automatic_dynamic_and_scalars():
    g = compiled(lambda x, s: (x * s).sum())
    for n, s in ((3, 1.5), (4, 2.5), (5, 3.5)):
        close(g(torch.ones(n, device=DEV), s), torch.tensor(n * s))


def test_graph_breaks():
    def f(x):
        y = x * 2
        if y.sum().item() > 0:
            return y.sin()
        torch._dynamo.graph_break()
        return y.cos()

    for x in (torch.ones(3), -torch.ones(3)):
        close(compiled(f)(x.to(DEV)), f(x))


def test_random_numbers():
    f = compiled(lambda x: F.dropout(x, 0.5) + torch.rand_like(x))
    x = torch.ones(1000, device=DEV)
    torch.manual_seed(3)
    a, b = f(x).cpu(), f(x).cpu()
    torch.manual_seed(3)
    same(f(x), a)
    assert not torch.equal(a, b)
    torch.manual_seed(3)
    kept = (f(x) > 1).float().mean().item()
    assert 0.4 < kept < 0.6


def test_dropout_gradient_uses_the_same_mask():
    f = compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(256, device=DEV, requires_grad=True)
    y = f(x)
    y.sum().backward()
    same(x.grad, y)


def test_autocast():
    f = lambda x: x @ x.t()  # noqa: E731
    x = torch.randn(4, 4, device=DEV)
    with torch.autocast("tpu"):
        y = compiled(f)(x)
        assert y.dtype == torch.bfloat16
        same(y, f(x))


def test_index_error_is_late():
    f = compiled(lambda x, i: x[i] * 2)
    with pytest.raises(IndexError):
        f(torch.ones(3, device=DEV), torch.tensor([5], device=DEV))
        torch.tpu.synchronize()


def test_data_dependent_size():
    f = lambda x: x[x > 0] * 2  # noqa: E731
    x = torch.tensor([1.0, -1, 3])
    same(compiled(f)(x.to(DEV)), f(x))


def test_data_on_two_devices():
    f = lambda x: x.cpu() + 1  # noqa: E731
    same(compiled(f)(torch.ones(3, device=DEV)), torch.full((3,), 2.0))


def test_compiled_optimizer():
    p, q = [nn.Parameter(torch.ones(3).to(d)) for d in ("cpu", DEV)]
    for t in (p, q):
        opt = torch.optim.AdamW([t], lr=0.1)
        step = compiled(opt.step) if t is q else opt.step
        for i in range(3):
            t.grad = torch.full_like(t, i + 1.0)
            step()
    close(q, p)


def test_attention():
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    q, k, v = (torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
    mine = [t.detach().to(DEV).requires_grad_() for t in (q, k, v)]
    a, b = f(q, k, v), compiled(f)(*mine)
    a.sum().backward()
    b.sum().backward()
    close((b, [t.grad for t in mine]), (a, [t.grad for t in (q, k, v)]))
