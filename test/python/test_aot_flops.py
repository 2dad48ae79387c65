"""FLOPs of products by the user's line: attention and whatever else PyTorch has no formula for are counted too."""
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_tpu import aot
from torch_tpu.aot import flops, lower
from torch_tpu.aot.trace import trace

B, H, Q, K, D, E = 2, 4, 16, 32, 8, 24


def counted(target, *args, **options):
    t = trace(target, [torch.empty(a, device="meta") if isinstance(a, tuple) else a for a in args], **options)
    return flops.by_line(t, lower.stablehlo(t))


def total(*args, **options):
    return sum(v["flops"] for v in counted(*args, **options))


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.q, self.k, self.v = (nn.Parameter(torch.empty(shape, device="meta")) for shape in ((B, H, Q, D), (B, H, K, D), (B, H, K, E)))
        self.options = options

    def forward(self):
        return F.scaled_dot_product_attention(self.q, self.k, self.v, **self.options).sum()


@pytest.mark.parametrize("options", [{}, {"scale": 0.5}, {"is_causal": True}])
def test_attention(options):
    """Two products forward; the scores again and four more backward."""
    found = counted(Attention(**options))
    assert len(found) == 1 and "in forward: return F.scaled_dot_product_attention" in found[0]["line"]
    assert found[0]["flops"] == 2 * B * H * Q * K * (D + E)
    step = counted(Attention(**options), train=True, optimizer=None)
    assert len(step) == 1 and step[0]["flops"] == 2 * B * H * Q * K * ((D + E) + (3 * D + 2 * E))


def test_attention_of_grouped_queries():
    def gqa(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    assert total(gqa, (B, H, Q, D), (B, H // 2, K, D), (B, H // 2, K, E)) == 2 * B * H * Q * K * (D + E)


@pytest.mark.parametrize("f, shapes, expected", [
    (torch.mv, ((4, 5), (5,)), 2 * 4 * 5),
    (torch.dot, ((7,), (7,)), 2 * 7),
    (torch.bmm, ((2, 3, 4), (2, 4, 5)), 2 * 2 * 3 * 4 * 5),
    (torch.addbmm, ((3, 5), (2, 3, 4), (2, 4, 5)), 2 * 2 * 3 * 4 * 5),
    (lambda a, b: torch.einsum("bij,bjk->bik", a, b), ((2, 3, 4), (2, 4, 5)), 2 * 2 * 3 * 4 * 5),
    (lambda a, b: a + b, ((3,), (3,)), 0),
], ids=["mv", "dot", "bmm", "addbmm", "einsum", "add"])
def test_products(f, shapes, expected):
    assert total(f, *shapes) == expected


def test_convolution():
    """Forward, the weight's gradient and the input's: as many each."""
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, padding=1, device="meta"), nn.Conv2d(8, 4, 3, stride=2, device="meta")

        def forward(self, x):
            return self.b(self.a(x)).sum()

    first, second = 2 * 2 * 8 * 9 * 9 * 27, 2 * 2 * 4 * 4 * 4 * 72
    assert total(Two(), (2, 3, 9, 9)) == first + second
    assert total(Two(), (2, 3, 9, 9), train=True, optimizer=None) == 2 * first + 3 * second


@pytest.mark.skipif(not aot.available(), reason="libtpu is not installed: pip install libtpu")
def test_attention_agrees_with_the_compiler():
    """XLA counts the same work. Forward and backward in one program, it keeps the scores instead of making them again: six
    products are left of PyTorch's seven."""
    class Long(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Parameter(torch.empty(1, 2, 2048, 128, device="meta", dtype=torch.bfloat16)) for _ in range(3))

        def forward(self):
            return F.scaled_dot_product_attention(self.q, self.k, self.v).float().sum()

    for train, share in ((False, 1), (True, 6 / 7)):
        r = aot.compile(Long(), topology="v5e", train=train, optimizer=None)
        assert 1 <= r.targets[0]["flops"] / (share * r.data["program"]["product_flops"]) < 1.05
