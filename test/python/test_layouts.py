"""Results lie in memory as PyTorch's CPU kernels leave them, also those whose size depends on values."""
import itertools

import pytest
import torch

CUBE = torch.tensor([[[1, 0, 1], [0, 0, 1]], [[1, 0, 1], [1, 1, 0]], [[1, 0, 1], [0, 0, 1]]]).float()


def same(actual, expected, **tolerance):
    """Values, shapes, and strides where they mean something; then once more through an op that reads the result."""
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            same(a, e, **tolerance)
        return
    assert actual.shape == expected.shape
    if expected.numel():
        assert [s for s, n in zip(actual.stride(), actual.shape) if n > 1] == [s for s, n in zip(expected.stride(), expected.shape) if n > 1]
    torch.testing.assert_close(actual.cpu(), expected, **tolerance)
    torch.testing.assert_close((actual + 1).cpu(), expected + 1, **tolerance)


def on_tpu(x):
    """A copy with the same strides."""
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="tpu").copy_(x)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_unique_along_any_dim(dim):
    same(torch.unique(CUBE.to("tpu"), dim=dim, return_inverse=True, return_counts=True),
         torch.unique(CUBE, dim=dim, return_inverse=True, return_counts=True))
    same(torch.unique_consecutive(CUBE.to("tpu"), dim=dim), torch.unique_consecutive(CUBE, dim=dim))


@pytest.mark.parametrize("shape", [(3, 4, 5), (7,), (), (4, 0), (2, 3)])
def test_nonzero(shape):
    x = (torch.arange(torch.Size(shape).numel()) % 3).reshape(shape)
    same(torch.nonzero(x.to("tpu")), torch.nonzero(x))
    same(torch.nonzero(torch.zeros_like(x, device="tpu")), torch.nonzero(torch.zeros_like(x)))


def test_sizes_read_from_values():
    x, w = torch.tensor([3, 1, 0, 7, 3, 3]), torch.tensor([.5, 1, 2, 4, 8, 16])
    before = torch.tpu.fallback_counts()
    same(torch.bincount(x.to("tpu")), torch.bincount(x))
    same(torch.bincount(x.to("tpu"), w.to("tpu"), minlength=12), torch.bincount(x, w, minlength=12))
    same(torch.bincount(x.to("tpu").to(torch.uint8), w.double().to("tpu")), torch.bincount(x.to(torch.uint8), w.double()))
    same(torch.repeat_interleave(x.to("tpu")), torch.repeat_interleave(x))
    assert torch.tpu.fallback_counts() == before
    same(torch.bincount(x[:0].to("tpu"), minlength=4), torch.bincount(x[:0], minlength=4))
    with pytest.raises(RuntimeError, match="only supports 1-d non-negative"):
        torch.bincount(-x.to("tpu"))
    with pytest.raises(RuntimeError, match="can not be negative"):
        torch.repeat_interleave(torch.tensor([2, -1, 3], device="tpu")).cpu()


def test_bincount_compiles_for_few_sizes():
    torch.bincount(torch.tensor([33], device="tpu"))
    compiles = torch.tpu.counters()["compiles"]
    for largest in range(33, 60):
        assert torch.bincount(torch.tensor([largest], device="tpu")).shape == (largest + 1,)
    assert torch.tpu.counters()["compiles"] == compiles


def test_columns_of_matrices():
    torch.manual_seed(0)
    tall = torch.randn(2, 4, 3)
    same(tuple(torch.geqrf(tall.to("tpu"))), tuple(torch.geqrf(tall)), atol=1e-5, rtol=1e-5)
    for a, full in itertools.product((tall, tall.mT.contiguous()), (False, True)):
        for x, y in zip(torch.linalg.svd(a.to("tpu"), full_matrices=full), torch.linalg.svd(a, full_matrices=full)):
            assert x.stride() == y.stride()
    rhs = torch.randn(2, 4, 2)
    x, y = torch.linalg.lstsq(tall.to("tpu"), rhs.to("tpu")), torch.linalg.lstsq(tall, rhs)
    same((x.solution, x.residuals), (y.solution, y.residuals), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["_fft_r2c", "_fft_c2c", "_fft_c2r"])
def test_transforms(name):
    x = torch.randn(5, 6, 7)
    if name != "_fft_r2c":
        x = x.to(torch.complex64)
    for t in (x, x.permute(2, 0, 1)):
        for d in ((0,), (1,), (0, 1), (2, 0), (0, 1, 2), (2, 1, 0)):
            args = (list(d), 0, 2 * t.shape[d[-1]] - 2 if name == "_fft_c2r" else True)
            assert getattr(torch, name)(on_tpu(t), *args).stride() == getattr(torch, name)(t, *args).stride()


def test_unpooling_keeps_channels_last():
    x = torch.randn(1, 2, 4, 6).to(memory_format=torch.channels_last)
    pooled, at = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    same(torch.nn.functional.max_unpool2d(on_tpu(pooled), on_tpu(at), 2), torch.nn.functional.max_unpool2d(pooled, at, 2))


def test_batch_norm_saves_nothing_in_eval():
    for op in (torch.native_batch_norm, torch.ops.aten._native_batch_norm_legit):
        args = (None, None, torch.zeros(3), torch.ones(3), False, .1, 1e-5)
        x = torch.randn(2, 3, 4)
        same(op(x.to("tpu"), *[a.to("tpu") if isinstance(a, torch.Tensor) else a for a in args]), op(x, *args))


def test_f8_products_saturate():
    a, b = torch.full((16, 16), 8.).to(torch.float8_e4m3fn), torch.full((16, 16), 8.).to(torch.float8_e4m3fn).t()
    one = torch.ones(())
    y = torch._scaled_mm(a.to("tpu"), on_tpu(b), one.to("tpu"), one.to("tpu"))
    assert torch.equal(y.cpu().float(), torch._scaled_mm(a, b, one, one).float()) and y.cpu().float().max() == 448


def test_trigamma_close_to_poles():
    x = torch.tensor([-1e-4, -1 - 1e-4, -2.05, 1e-4])
    torch.testing.assert_close(torch.polygamma(1, x.to("tpu")).cpu(), torch.polygamma(1, x.double()).float(), rtol=2e-6, atol=0)


@pytest.mark.parametrize("name", ["qr", "eigh", "svd", "lu_factor", "ldl_factor"])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_outputs_that_are_resized_lie_as_the_cpus(name):
    """out= of a factorisation: empty outputs get the sizes and the strides that the CPU gives them."""
    op, a = getattr(torch.linalg, name), torch.randn(2, 5, 5) + 4 * torch.eye(5)
    a = a + a.mT
    got = {}
    for device in ("cpu", "tpu"):
        outs = tuple(torch.empty(0, dtype=t.dtype, device=device) for t in op(a))
        op(a.to(device), out=outs)
        got[device] = [(tuple(t.shape), t.stride()) for t in outs]
    assert got["tpu"] == got["cpu"]
