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
