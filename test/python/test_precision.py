"""Precision of f32 products: torch.set_float32_matmul_precision and torch.tpu.precision."""
import pytest
import torch
from torch_tpu import _C

from common import DEV, close, counter


@pytest.fixture(autouse=True)
def restore():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)
    torch.tpu.precision(None)


def product():
    """The StableHLO text of one product, lowered now."""
    graph = _C.Graph(0)
    a, b = graph.param(torch.float32, [3, 4]), graph.param(torch.float32, [4, 2])
    graph.outputs(graph.call("mm", a, b))
    return graph.text()


def test_highest_is_the_default():
    assert "precision HIGHEST" in product()
    a, b = torch.randn(33, 40), torch.randn(40, 21)
    close((a.to(DEV) @ b.to(DEV)).cpu(), a @ b)


@pytest.mark.parametrize("setting, expected", [("medium", "DEFAULT"), ("high", "HIGH>"), ("highest", "HIGHEST")])
def test_torch_setting_is_followed(setting, expected):
    torch.set_float32_matmul_precision(setting)
    assert f"precision {expected}" in product()


def test_own_setting_goes_first_and_ends():
    torch.set_float32_matmul_precision("high")
    with torch.tpu.precision("default"):
        assert "precision DEFAULT" in product()
        with torch.tpu.precision("highest"):
            assert "precision HIGHEST" in product()
        assert "precision DEFAULT" in product()
    assert "precision HIGH>" in product()
    with pytest.raises(ValueError, match="'exact'"):
        torch.tpu.precision("exact")


def test_eager_programs_are_kept_apart():
    a, b = torch.randn(19, 23, device=DEV), torch.randn(23, 17, device=DEV)
    a @ b
    before = counter("signature_misses")
    torch.set_float32_matmul_precision("medium")
    a @ b
    assert counter("signature_misses") == before + 1
    torch.set_float32_matmul_precision("highest")
    a @ b
    assert counter("signature_misses") == before + 1
