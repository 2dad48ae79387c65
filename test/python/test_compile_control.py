"""torch.compile(backend="tpu"): control flow as real control flow."""
import pytest
import torch
import torch._dynamo
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from common import DEV, close, counter, same


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(f, **kw):
    return torch.compile(f, backend="tpu", fullgraph=True, **kw)


def executions(f, *args):
    """How many programs one more call of |f| runs."""
    f(*args)
    torch.tpu.synchronize()
    before = counter("executions")
    f(*args)
    return counter("executions") - before


def test_cond():
    def f(x, w):
        return torch.cond(x.sum() > 0, lambda a, b: (a @ b).sin(), lambda a, b: (a - 1) @ b, (x, w))

    g, w = compiled(f), torch.randn(4, 5)
    for sign in (1, -1):
        x = torch.rand(3, 4) * sign
        close(g(x.to(DEV), w.to(DEV)), f(x, w))
    assert executions(g, x.to(DEV), w.to(DEV)) == 1


def test_cond_gradient():
    f = lambda x: torch.cond(x.sum() > 0, lambda a: a.sin() * 2, lambda a: a ** 3, (x,))  # noqa: E731
    for sign in (1, -1):
        x = (torch.rand(4) * sign).requires_grad_()
        y = x.detach().to(DEV).requires_grad_()
        f(x).sum().backward()
        compiled(f)(y).sum().backward()
        close(y.grad, x.grad)


def test_nested_cond_and_outer_values():
    def f(x, y):
        def inner(a):
            return torch.cond(a.max() > 2, lambda b: b * y, lambda b: b + y, (a,))

        return torch.cond(x.sum() > 0, inner, lambda a: a.clone(), (x,))

    g = compiled(f)
    for x in (torch.tensor([1.0, 3]), torch.tensor([1.0, 1]), torch.tensor([-1.0, -3])):
        y = torch.tensor([5.0, 7])
        same(g(x.to(DEV), y.to(DEV)), f(x, y))


def test_index_error_inside_a_branch():
    def f(x, i, p):
        return torch.cond(p, lambda a, b: a[b] * 2, lambda a, b: a[b * 0], (x, i))

    x, bad = torch.arange(3.0, device=DEV), torch.tensor([1, 5], device=DEV)
    g = compiled(f)
    same(g(x, bad, torch.tensor(False, device=DEV)), torch.zeros(2))
    torch.tpu.synchronize()  # the branch that was not taken says nothing
    with pytest.raises(IndexError, match="5"):
        g(x, bad, torch.tensor(True, device=DEV))
        torch.tpu.synchronize()


def test_while_loop():
    def f(n, x):
        return while_loop(lambda i, y: i < 2 * n, lambda i, y: (i + 1, (y * 1.5).sin() + i), (torch.zeros_like(n), x))

    g = compiled(f)
    for n in (0, 1, 6):
        n, x = torch.tensor(n), torch.randn(5)
        close(g(n.to(DEV), x.to(DEV)), f(n, x))
    assert executions(g, n.to(DEV), x.to(DEV)) == 1


def test_index_error_inside_a_loop():
    def f(x, i):
        return while_loop(lambda k, y: k < 4, lambda k, y: (k + 1, y + x[i + k]), (torch.zeros_like(i[0]), torch.zeros_like(x[:1])))

    x = torch.arange(6.0)
    g = compiled(f)
    close(g(x.to(DEV), torch.tensor([1], device=DEV)), f(x, torch.tensor([1])))
    with pytest.raises(IndexError, match="6"):
        g(x.to(DEV), torch.tensor([3], device=DEV))
        torch.tpu.synchronize()


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse):
    def f(h, xs, w):
        return scan(lambda c, x: ((c @ w + x).tanh(), c.sum(-1)), h, xs, dim=1, reverse=reverse)

    h, xs, w = torch.randn(2, 3), torch.randn(2, 7, 3), torch.randn(3, 3)
    g = compiled(f)
    close(g(h.to(DEV), xs.to(DEV), w.to(DEV)), f(h, xs, w))
    assert executions(g, h.to(DEV), xs.to(DEV), w.to(DEV)) == 1


def test_scan_gradient():
    f = lambda h, xs: scan(lambda c, x: ((c * x).sin(), (c + x)), h, xs)[1]  # noqa: E731
    args = torch.randn(3), torch.randn(5, 3)
    seen = []
    for d in ("cpu", DEV):
        mine = [a.clone().to(d).requires_grad_() for a in args]
        (f if d == "cpu" else compiled(f))(*mine).square().sum().backward()
        seen.append([a.grad for a in mine])
    close(seen[1], seen[0])


def test_associative_scan():
    f = lambda x: associative_scan(lambda a, b: a * b + a + b, x, dim=1, combine_mode="generic")  # noqa: E731
    for n in (1, 8, 13):
        x = torch.rand(2, n) / 4
        want, out = x[:, 0], [x[:, 0]]
        for i in range(1, n):
            want = want * x[:, i] + want + x[:, i]
            out.append(want)
        close(compiled(f)(x.to(DEV)), torch.stack(out, 1))


def test_random_numbers_in_a_loop_are_drawn_anew():
    def f(x):
        return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, torch.cat([y[1:], torch.rand_like(y[:1])])), (torch.zeros((), dtype=torch.int64, device=x.device), x))[1]

    a = compiled(f)(torch.zeros(3, device=DEV)).cpu()
    assert a.unique().numel() == 3
