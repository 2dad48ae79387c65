"""Mistakes: the CPU's exception and words where the call is made, and what can only be known later at the next wait."""
import pytest
import torch
import torch.nn.functional as F

from common import DEV, raised

MISTAKES = {
    "broadcast": lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
    "matmul": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "mm_rank": lambda d: torch.mm(torch.ones(3, device=d), torch.ones(3, 3, device=d)),
    "view": lambda d: torch.ones(6, device=d).view(4, 2),
    "index": lambda d: torch.ones(3, device=d)[5],
    "too_many_indices": lambda d: torch.ones(3, device=d)[0, 0],
    "dim": lambda d: torch.ones(3, device=d).sum(2),
    "cat": lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 4, device=d)]),
    "stack": lambda d: torch.stack([torch.ones(2, device=d), torch.ones(3, device=d)]),
    "in_place_dtype": lambda d: torch.ones(3, dtype=torch.int64, device=d).div_(2),
    "in_place_shape": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "expanded_write": lambda d: torch.zeros(1, device=d).expand(3).add_(1),
    "linear": lambda d: F.linear(torch.ones(2, 3, device=d), torch.ones(4, 5, device=d)),
    "conv_channels": lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 2, 3, 3, device=d)),
    "conv_kernel": lambda d: F.conv2d(torch.ones(1, 3, 2, 2, device=d), torch.ones(4, 3, 5, 5, device=d)),
    "embedding_dtype": lambda d: F.embedding(torch.ones(2, device=d), torch.ones(3, 4, device=d)),
    "cross_entropy_shape": lambda d: F.cross_entropy(torch.ones(4, 3, device=d), torch.zeros(5, dtype=torch.int64, device=d)),
    "mse_dtype": lambda d: torch.ones(3, device=d) @ torch.ones(3, device=d, dtype=torch.float64),
    "mean_int": lambda d: torch.ones(3, dtype=torch.int64, device=d).mean(),
    "bool_ambiguous": lambda d: bool(torch.ones(3, device=d)),
    "item": lambda d: torch.ones(3, device=d).item(),
    "sub_bool": lambda d: torch.ones(2, dtype=torch.bool, device=d) - torch.ones(2, dtype=torch.bool, device=d),
    "gather_rank": lambda d: torch.ones(2, 3, device=d).gather(0, torch.zeros(2, dtype=torch.int64, device=d)),
    "mask_shape": lambda d: torch.ones(3, device=d)[torch.ones(4, dtype=torch.bool, device=d)],
    "empty_max": lambda d: torch.ones(0, device=d).max(),
    "split": lambda d: torch.ones(5, device=d).split([2, 2]),
    "chunk": lambda d: torch.ones(5, device=d).chunk(0),
    "randint": lambda d: torch.randint(5, 5, (2,), device=d),
    "arange": lambda d: torch.arange(0, 5, -1, device=d),
    "topk": lambda d: torch.ones(3, device=d).topk(5),
    "layer_norm": lambda d: F.layer_norm(torch.ones(2, 3, device=d), (4,)),
    "batch_norm": lambda d: F.batch_norm(torch.ones(1, 3, device=d), None, None, training=True),
    "dropout_p": lambda d: F.dropout(torch.ones(3, device=d), 1.5),
    "inverse": lambda d: torch.linalg.inv(torch.ones(2, 3, device=d)),
    "no_grad_backward": lambda d: torch.ones(3, device=d).sum().backward(),
    "vector_backward": lambda d: torch.ones(3, device=d, requires_grad=True).mul(2).backward(),
    "leaf_in_place": lambda d: torch.ones(3, device=d, requires_grad=True).mul_(2),
    "reflect_pad": lambda d: F.pad(torch.ones(1, 1, 2, device=d), (3, 3), mode="reflect"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_usual_mistakes(name):
    expected, actual = (raised(lambda: MISTAKES[name](d)) for d in ("cpu", DEV))
    assert expected is not None
    assert type(actual) is type(expected), (actual, expected)
    # Where the words differ on purpose, they differ in the name of a device or of a kernel alone.
    a, e = str(actual).split("\n")[0], str(expected).split("\n")[0]
    assert a == e or a.replace("tpu", "cpu") == e, f"{a!r} != {e!r}"


def test_comparing_complex_numbers():
    """The CPU's words name its kernel: the type alone is compared."""
    a, b = (raised(lambda: torch.ones(2, dtype=torch.complex64, device=d) < 1) for d in ("cpu", DEV))
    assert isinstance(a, RuntimeError) and isinstance(b, RuntimeError)


def test_negative_power_of_integers():
    """A scalar is a run-time value, so this one is found by the device."""
    two = torch.tensor([2], device=DEV)
    assert (two**3).item() == 8
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed.*test_errors.py"):
        two**-1
        torch.tpu.synchronize()


REFUSED = {
    "abs of bool": lambda d: torch.tensor([True], device=d).abs(),
    "ceil of complex": lambda d: torch.ones(2, dtype=torch.complex64, device=d).ceil(),
    "sign of complex": lambda d: torch.ones(2, dtype=torch.complex64, device=d).sign(),
    "frac of int": lambda d: torch.ones(2, dtype=torch.int32, device=d).frac(),
    "gelu of int": lambda d: F.gelu(torch.ones(2, dtype=torch.int64, device=d)),
    "var of int": lambda d: torch.ones(2, dtype=torch.int64, device=d).var(),
    "argmax of bool": lambda d: torch.tensor([True], device=d).argmax(),
    "topk of bool": lambda d: torch.tensor([True, False], device=d).topk(1),
    "sort of complex": lambda d: torch.ones(2, dtype=torch.complex64, device=d).sort(),
    "int in place times float": lambda d: torch.ones(2, dtype=torch.int64, device=d).mul_(2.5),
    "float in place plus complex": lambda d: torch.ones(2, device=d).add_(1j),
    "minus True": lambda d: torch.ones(2, device=d) - True,
    "mm of two dtypes": lambda d: torch.ones(2, 2, device=d) @ torch.ones(2, 2, dtype=torch.float64, device=d),
    "large mm of two dtypes": lambda d: torch.ones(300, 300, device=d) @ torch.ones(300, 300, dtype=torch.float64, device=d),
    "gcd of bool": lambda d: torch.gcd(torch.tensor([True], device=d), torch.tensor([True], device=d)),
    "gcd of floats": lambda d: torch.gcd(torch.ones(2, device=d), torch.ones(2, device=d)),
    "gcd of halves": lambda d: torch.gcd(torch.ones(2, device=d).half(), torch.ones(2, device=d).half()),
    "shift of a float": lambda d: torch.bitwise_left_shift(torch.ones(2, device=d), 2),
    "loss with int32 targets": lambda d: F.cross_entropy(torch.ones(2, 3, device=d), torch.tensor([0, 1], dtype=torch.int32, device=d)),
    "values that do not fit their indices": lambda d: torch.ones(3, device=d).index_put_((torch.tensor([0, 1], device=d),), torch.ones(3, device=d)),
    "more draws than there are": lambda d: torch.ones(2, device=d).multinomial(3),
    "bias of another size": lambda d: F.conv2d(torch.ones(1, 3, 4, 4, device=d), torch.ones(2, 3, 2, 2, device=d), torch.ones(3, device=d)),
    "loss with weights of another dtype": lambda d: F.nll_loss(torch.ones(2, 3, device=d), torch.tensor([0, 1], device=d), torch.ones(3, dtype=torch.float64, device=d)),
    "histogram with bins of another dtype": lambda d: torch.histogram(torch.ones(3, device=d), torch.tensor([0.0, 2.0], dtype=torch.float64, device=d)),
    "bernoulli of int": lambda d: torch.bernoulli(torch.ones(2, dtype=torch.int64, device=d)),
    "arange of bool": lambda d: torch.arange(0, 2, dtype=torch.bool, device=d),
    "linspace of bool": lambda d: torch.linspace(0, 1, 3, dtype=torch.bool, device=d),
    "alpha of True": lambda d: torch.add(torch.ones(2, device=d), torch.ones(2, device=d), alpha=True),
    "negative padding of uint8": lambda d: F.pad(torch.ones(2, dtype=torch.uint8, device=d), (1, 1), value=-1),
    "fill": lambda d: torch.ones(2, dtype=torch.uint8, device=d).fill_(300),
    "full": lambda d: torch.full((2, 2), 300, dtype=torch.int8, device=d),
    "new_full": lambda d: torch.ones(2, dtype=torch.float16, device=d).new_full((2,), 1e10),
    "masked_fill": lambda d: torch.ones(2, dtype=torch.int32, device=d).masked_fill(torch.tensor([True, False], device=d), 2**40),
    "index_fill of inf": lambda d: torch.ones(2, dtype=torch.int64, device=d).index_fill(0, torch.tensor([1], device=d), float("inf")),
    "clamp": lambda d: torch.ones(2, dtype=torch.uint8, device=d).clamp(max=300),
    "set an item": lambda d: torch.ones(2, dtype=torch.int8, device=d).__setitem__(0, 200),
    "imaginary alpha": lambda d: torch.ones(2, 2, device=d).addmm(torch.ones(2, 2, device=d), torch.ones(2, 2, device=d), alpha=1j),
}


@pytest.mark.parametrize("name", REFUSED)
def test_dtypes_the_cpu_refuses(name):
    cpu, tpu = (raised(lambda: REFUSED[name](d)) for d in ("cpu", DEV))
    assert cpu is not None and type(tpu) is type(cpu) and str(tpu) == str(cpu)


def test_negative_repeats():
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        torch.ones(2, device=DEV).repeat_interleave(torch.tensor([1, -2], device=DEV))
        torch.tpu.synchronize()


FITS = {
    "lowest of float32": lambda d: torch.ones(2, device=d).masked_fill(torch.tensor([True, False], device=d), torch.finfo(torch.float32).min),
    "lowest of bfloat16": lambda d: torch.ones(2, device=d).bfloat16().fill_(torch.finfo(torch.bfloat16).min),
    "infinite": lambda d: torch.ones(2, device=d).half().fill_(float("-inf")),
    "wraps": lambda d: torch.ones(2, dtype=torch.uint8, device=d).fill_(-1),
    "added in place": lambda d: torch.ones(2, dtype=torch.uint8, device=d).add_(300),
    "compared": lambda d: torch.ones(2, dtype=torch.uint8, device=d) < 300,
}


@pytest.mark.parametrize("name", FITS)
def test_numbers_that_fit(name):
    assert torch.equal(FITS[name](DEV).cpu(), FITS[name]("cpu"))


@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.float8_e5m2])
def test_float8_saturates_as_on_the_cpu(source):
    x = torch.tensor([1.0, -2.0, 447, 449, 464, 465, 500, -1000, 60000, float("inf"), -float("inf"), float("nan")][: 9 if source == torch.int64 else None]).to(source)
    expected = x.to(torch.float8_e4m3fn).float()
    assert torch.allclose(x.to(DEV).to(torch.float8_e4m3fn).cpu().float(), expected, rtol=0, atol=0, equal_nan=True)


def test_default_dtype_beside_integers():
    x = torch.arange(3, device=DEV)
    assert (x * 0.1).dtype == torch.float32 and x.sin().dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal((x * 0.1).cpu(), x.cpu() * 0.1) and x.sin().dtype == torch.float64
        assert torch.ones(2, device=DEV).dtype == torch.float64 and (x * 1j).dtype == torch.complex128
        assert torch.equal(torch.where(x > 1, 0.1, x).cpu(), torch.where(x.cpu() > 1, 0.1, x.cpu()))
    finally:
        torch.set_default_dtype(torch.float32)
    assert (x * 0.1).dtype == torch.float32 and torch.equal((x * 0.1).cpu(), x.cpu() * 0.1)


def test_two_devices():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(3, device=DEV) + torch.ones(3)
    with pytest.raises(RuntimeError, match="same device"):
        F.linear(torch.ones(1, 3, device=DEV), torch.ones(2, 3))
    assert (torch.ones(3, device=DEV) + torch.tensor(2.0)).sum().item() == 9  # a 0-d CPU tensor may join


LATE = {
    "index": lambda x, i: x[i],
    "embedding": lambda x, i: F.embedding(i, x),
    "gather": lambda x, i: x[:, 0].gather(0, i),
    "index_select": lambda x, i: x.index_select(0, i),
    "scatter": lambda x, i: x[:, 0].scatter(0, i, 2.0),
    "index_put": lambda x, i: x.index_put((i,), x[0, 0]),
    "index_add": lambda x, i: x[:, 0].index_add(0, i, x[:2, 0]),
    "take": lambda x, i: x.take(i),
}


@pytest.mark.parametrize("name", LATE)
def test_index_out_of_range(name):
    expected = raised(lambda: LATE[name](torch.ones(3, 2), torch.tensor([0, 9])))
    x = torch.ones(3, 2, device=DEV)

    def run():
        LATE[name](x, torch.tensor([0, 9], device=DEV))
        torch.tpu.synchronize()

    actual = raised(run)
    assert type(actual) is type(expected), (actual, expected)
    assert "test_errors.py" in str(actual) and "aten::" in str(actual)
    torch.tpu.synchronize()  # reported once
    assert LATE[name](x, torch.tensor([0, 2], device=DEV)).isfinite().all().item()


def test_target_out_of_range():
    for f in (F.cross_entropy, F.nll_loss):
        with pytest.raises(IndexError, match="test_errors.py"):
            f(torch.zeros(2, 3, device=DEV), torch.tensor([0, 3], device=DEV))
            torch.tpu.synchronize()


def test_dtypes_that_only_the_cpu_kernel_lacks():
    """PyTorch's other devices take these, and programs ask for them by the device's name."""
    i, b = torch.tensor([0, 1, 1, 3]), torch.eye(3, dtype=torch.bool)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        got = torch.histc(i.to(DEV, dtype), bins=4, min=0, max=3)
        assert got.dtype == dtype and got.tolist() == [1, 2, 0, 1]
    assert torch.trace(b.to(DEV)).item() == 3
    assert torch.nansum(torch.tensor([1 + 2j, complex("nan"), 3j], device=DEV)).item() == 1 + 5j


def test_launch_blocking_raises_on_the_line():
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING):
        with pytest.raises(IndexError, match="test_errors.py"):
            torch.ones(3, device=DEV)[torch.tensor([4], device=DEV)]


def test_singular_matrix():
    a, b = (raised(lambda: torch.linalg.inv(torch.zeros(2, 2, device=d)).cpu() if d == "cpu" else (torch.linalg.inv(torch.zeros(2, 2, device=d)), torch.tpu.synchronize()))
            for d in ("cpu", DEV))
    assert type(b) is type(a), (b, a)


FALLBACK = """
import torch
from torch.library import Library
lib = Library("mine", "DEF")
lib.define("halve(Tensor x) -> Tensor")
lib.impl("halve", lambda x: x / 2, "CPU")
x = torch.full((3,), 4.0, device="tpu")
for _ in range(3):
    y = torch.ops.mine.halve(x)
print(y.device, y.tolist(), torch.tpu.fallback_counts())
torch.tpu.reset_fallback_counts()
print(torch.tpu.fallback_counts())
"""


def test_fallback_warns_once_and_is_counted(python):
    p = python(FALLBACK, check=False, TORCH_TPU_FALLBACK=None)
    assert p.stdout.splitlines() == ["tpu:0 [2.0, 2.0, 2.0] {'mine::halve': 3}", "{}"]
    assert p.stderr.count("mine::halve runs on the CPU") == 1


def test_fallback_modes(python):
    p = python(FALLBACK, check=False, TORCH_TPU_FALLBACK="off")
    assert p.stderr == "" and "{'mine::halve': 3}" in p.stdout
    p = python(FALLBACK, check=False, TORCH_TPU_FALLBACK="error")
    assert p.returncode != 0 and "mine::halve" in p.stderr and "TORCH_TPU_FALLBACK" in p.stderr
