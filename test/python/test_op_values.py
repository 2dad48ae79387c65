"""Values of single operations where a compiler's own form is not PyTorch's: against the CPU, or the exact result."""
import pytest
import torch
from common import DEV, close, cpu, same


def test_zeta_of_whole_numbers():
    x = torch.arange(-4, 5)
    for dtype in (torch.int32, torch.float32, torch.float64):
        a, b = x.to(dtype)[:, None], x.to(dtype)[None]
        close(torch.special.zeta(a.to(DEV), b.to(DEV)), torch.special.zeta(a, b), rtol=1e-6, atol=0)


def test_polygamma_at_whole_numbers():
    for dtype in (torch.int8, torch.int16, torch.float32, torch.float64):
        x = torch.arange(-128, 4).to(dtype)
        for n in range(4):
            close(torch.polygamma(n, x.to(DEV)), torch.polygamma(n, x), rtol=2e-6, atol=0)


def test_polygamma_between_poles():
    x = torch.tensor([-8.5, -3.5, -0.5])
    exact = torch.polygamma(2, x.double())
    assert (torch.polygamma(2, x.to(DEV)).cpu().double() - exact).abs().max() < 5e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_digamma(dtype):
    x = torch.cat([torch.linspace(-30, 40, 1401), torch.tensor([0.0, -0.0, -3, 1e30, -1e30, 1e-30, float("inf"), -float("inf"), float("nan"), 1.4616321])])
    close(torch.digamma(x.to(dtype).to(DEV)), torch.digamma(x.to(dtype)), rtol=1.3e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_linspace_of_integers_is_exact(dtype):
    for steps in (2, 7, 50):
        same(torch.linspace(steps, 1, steps, dtype=dtype, device=DEV), torch.linspace(steps, 1, steps, dtype=dtype))
    same(torch.linspace(torch.tensor(50, device=DEV), torch.tensor(1, device=DEV), 50, dtype=dtype), torch.arange(50, 0, -1).to(dtype))


def test_dropout_backward_of_bools():
    g, mask = torch.tensor([True, False, True]), torch.tensor([True, True, False])
    same(torch.ops.aten.native_dropout_backward(g.to(DEV), mask.to(DEV), 2.5), torch.ops.aten.native_dropout_backward(g, mask, 2.5))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("op", [torch.ops.aten.native_batch_norm, torch.ops.aten._native_batch_norm_legit])
def test_batch_norm_into_given_tensors(op, training):
    before = torch.tpu.fallback_counts()
    x, weight, bias, mean, var = torch.randn(4, 3, 5), torch.rand(3), torch.rand(3), torch.rand(3), torch.rand(3) + 1
    results = []
    for device in ("cpu", DEV):
        args = [t.to(device, copy=True) for t in (x, weight, bias, mean, var)]
        outs = dict(zip(("out", "save_mean", "save_invstd"), (torch.empty(n, device=device) for n in ((4, 3, 5), (0,), (0,)))))
        op(*args, training, 0.3, 1e-5, **outs)
        results.append((list(outs.values()), args))
    close(results[1], results[0], rtol=1e-5, atol=1e-5)
    assert torch.tpu.fallback_counts() == before


def test_sorted_indices_name_their_values():
    x = torch.randint(0, 4, (3, 100)).to(torch.int8)
    values, indices = torch.sort(x.to(DEV), descending=True)
    same(values, x.sort(descending=True).values)
    same(x.gather(1, indices.cpu()), cpu(values))
    assert (indices.cpu().sort(1).values == torch.arange(100)).all()
    same(torch.sort(x.to(DEV), stable=True), tuple(torch.sort(x, stable=True)))
