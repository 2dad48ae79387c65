"""What the C++ shim promises beyond single ops: PyTorch's own words, lazy bits, out=, shared parameters, fallback, forks."""
import copy
import os
import warnings

import pytest
import torch
import torch.nn.functional as F

D = "tpu"


def same(a, b):
    torch.testing.assert_close(a.detach().cpu(), b.detach().cpu(), rtol=0, atol=0, equal_nan=True)


def close(a, b, rtol=1e-4, atol=1e-5):
    torch.testing.assert_close(a.detach().cpu(), b.detach().cpu(), rtol=rtol, atol=atol)


@pytest.mark.parametrize(
    "f",
    [
        lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
        lambda d: torch.ones(2, 3, device=d) @ torch.ones(4, 2, device=d),
        lambda d: torch.ones(3, device=d).sum(4),
        lambda d: torch.ones(3, device=d)[5],
        lambda d: torch.ones(3, dtype=torch.int32, device=d).add_(1.5),
        lambda d: torch.ones(3, device=d).view(2, 2),
        lambda d: torch.cat([torch.ones(2, 2, device=d), torch.ones(3, device=d)]),
        lambda d: torch.ones(3, device=d).softmax(2),
        lambda d: F.linear(torch.ones(2, 3, device=d), torch.ones(4, 5, device=d)),
        lambda d: torch.ones(2, device=d).copy_(torch.ones(3, device=d)),
        lambda d: torch.zeros(3, device=d).expand(4, 3).add_(1),
        lambda d: torch.arange(6.0, device=d).as_strided((5,), (1,), 1).copy_(torch.arange(6.0, device=d)),
        lambda d: torch.ones(3, device=d).masked_fill_(torch.ones(2, dtype=torch.bool, device=d), 1),
    ],
)
def test_errors_are_pytorchs_own(f):
    with pytest.raises(Exception) as want:
        f("cpu")
    with pytest.raises(type(want.value)) as got:
        f(D)
    assert str(got.value).replace("tpu:0", "cpu") == str(want.value)


def test_overlapping_copy_is_refused():
    a = torch.arange(6.0, device=D)
    with pytest.raises(RuntimeError, match="memory"):
        a[1:].copy_(a[:-1])


def test_mixed_devices_are_refused():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"):
        torch.ones(3, device=D) + torch.ones(3)
    same(torch.ones(3, device=D) + torch.tensor(2.0), torch.full((3,), 3.0))


def test_conjugate_and_negative_bits():
    c = torch.randn(4, 4, dtype=torch.complex64)
    same(c.conj().to(D), c.conj().resolve_conj())
    same(c.to(D).conj().cpu().resolve_conj(), c.conj().resolve_conj())
    out = torch.zeros(4, 4, dtype=torch.complex64, device=D)
    out.conj().copy_(c.to(D))
    same(out, c.conj().resolve_conj())
    same(c.to(D)._neg_view().cpu().resolve_neg(), -c)
    close(c.to(D).conj() @ c.to(D), c.conj() @ c)
    same(c.to(D).conj().imag + 0, c.conj().imag + 0)


def test_out_resizes_with_one_warning():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        out = torch.empty(3, 2, device=D)
        torch.add(torch.ones(4, device=D), 1, out=out)
    assert [str(w.message)[:14] for w in seen] == ["An output with"]
    same(out, torch.full((4,), 2.0))
    out = torch.empty(4, 4, device=D).t()
    torch.mul(torch.ones(4, 4, device=D), 2, out=out)
    assert out.stride() == (1, 4)


def test_shared_parameters_stay_shared():
    m = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    m[1].weight = m[0].weight
    assert m.to(D)[1].weight is m[0].weight and m[0].weight.device.type == D
    n = copy.deepcopy(m)
    assert n[1].weight is n[0].weight
    same(n[0].weight, m[0].weight)
    assert m.cpu()[1].weight is m[0].weight and m[0].weight.device.type == "cpu"


@pytest.mark.parametrize("mask", [None, "bool", "float", "causal"])
def test_attention(mask):
    bias = {"bool": torch.rand(5, 7) > 0.3, "float": torch.randn(5, 7)}.get(mask)
    q, k, v = (torch.randn(2, 3, n, 8, requires_grad=True) for n in (5, 7, 7))
    dev = [t.detach().to(D).requires_grad_() for t in (q, k, v)]
    a = F.scaled_dot_product_attention(q, k, v, bias, is_causal=mask == "causal")
    b = F.scaled_dot_product_attention(*dev, None if bias is None else bias.to(D), is_causal=mask == "causal")
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    for host, device in zip((q, k, v), dev):
        close(host.grad, device.grad)


def test_a_forked_child_is_told():
    torch.ones(2, device=D)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            torch.ones(2, device=D)
            os.write(write, b"no error")
        except RuntimeError as e:
            os.write(write, str(e)[:60].encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100).startswith(b"Cannot re-initialize TPU in forked subprocess")


def test_cpu_work_opens_nothing(python):
    out = python(
        "import torch\n"
        "x = torch.ones(3, requires_grad=True); x.sum().backward(); torch.manual_seed(0)\n"
        "print(torch.tpu.is_available(), torch.tpu.device_count() > 0, torch.accelerator.device_count() > 0,"
        " torch.tpu.is_initialized())\n"
    )
    assert out.split() == ["True", "True", "True", "False"]


def test_fallback_is_counted_and_can_be_forbidden(python):
    torch.tpu.reset_fallback_counts()
    x = torch.randn(3, 3)
    close(torch.linalg.eigvals(x.to(D)).abs().sort()[0], torch.linalg.eigvals(x).abs().sort()[0])
    assert sum(torch.tpu.fallback_counts().values()) == 1
    out = python(
        "import torch\n"
        "try:\n    torch.linalg.eigvals(torch.randn(3, 3, device='tpu'))\nexcept NotImplementedError as e:\n    print(e)\n",
        TORCH_TPU_FALLBACK="error",
    )
    assert "would run on the CPU" in out


def test_decompositions_are_traced():
    def step(d):
        torch.manual_seed(0)
        m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 4)).to(d)
        m(torch.ones(2, 3, device=d)).square().sum().backward()
        return [p.grad for p in m.parameters()]

    torch.tpu.reset_fallback_counts()
    for a, b in zip(step("cpu"), step(D)):
        close(a, b)
    assert torch.tpu.fallback_counts() == {}


def test_equal_compares_values_of_two_dtypes():
    dtypes = (torch.bool, torch.uint8, torch.int8, torch.int64, torch.half, torch.float32, torch.float64, torch.complex64)
    rows = ([1, 0], [255, 1], [-1, 1], [2**24 + 1, 0], [0.1, 0], [float("nan"), 0])
    values = [torch.tensor(row).to(dtype) for row in rows for dtype in dtypes]
    on_device = [v.to(D) for v in values]
    for a, x in zip(values, on_device):
        assert [torch.equal(x, y) for y in on_device] == [torch.equal(a, b) for b in values], a
    assert not torch.equal(on_device[0], torch.ones(3, dtype=torch.int64, device=D))
