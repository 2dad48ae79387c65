"""Python numbers and 0-d CPU tensors beside narrow integers keep their value where the operation computes wider."""
import pytest
import torch

from common import DEV, same

NARROW = (torch.uint8, torch.int8, torch.int16, torch.int32)
OPS = {
    "div": lambda x, k: x / k,
    "rdiv": lambda x, k: k / x,
    "div0d": lambda x, k: x / torch.tensor(k),
    "mul_wraps": lambda x, k: x * k,
    "add_wraps": lambda x, k: x + k,
}


@pytest.mark.parametrize("name", OPS)
def test_numbers_that_do_not_fit(name):
    for dtype in NARROW:
        for k in (100, 300, 256, 70000, 2**40):
            x = torch.tensor([1, 2, 100], dtype=dtype)
            same(OPS[name](x.to(DEV), k), OPS[name](x, k))


HALF_OPS = {
    "mul": lambda x, k: x * k,
    "div": lambda x, k: x / k,
    "rdiv": lambda x, k: k / x,
    "add": lambda x, k: x + k,
    "sub": lambda x, k: x - k,
    "rsub": lambda x, k: k - x,
    "floor_divide": lambda x, k: x // k,
    "floor": lambda x, k: torch.div(x, k, rounding_mode="floor"),
    "trunc": lambda x, k: torch.div(x, k, rounding_mode="trunc"),
    "mul_": lambda x, k: x.clone().mul_(k),
    "mul0d": lambda x, k: x * torch.tensor(k),
    "mul0d64": lambda x, k: x * torch.tensor(k, dtype=torch.float64),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", HALF_OPS)
def test_numbers_beside_half_floats(name, dtype):
    # bfloat16 1000 times 1.003 is 1004: the number is not rounded to bfloat16, which would make it 1.
    x = torch.tensor([1000.0, 3.0, -7.5, 1e-3, 250.0], dtype=dtype)
    for k in (1.003, 0.1, 1e-8, 300, 1e5):
        same(HALF_OPS[name](x.to(DEV), k), HALF_OPS[name](x, k))
