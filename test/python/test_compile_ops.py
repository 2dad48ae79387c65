"""Operators whose compiled form differs from their eager one: results nobody looks at, fake kernels of our own."""
import pytest
import torch
import torch._dynamo
import torch.nn.functional as F

from common import DEV, close

OFFSETS = torch.tensor([2, 2, 8], dtype=torch.int32)


@pytest.mark.parametrize("f, inputs", [
    (lambda a, b: torch._grouped_mm(a, b, OFFSETS.to(a.device)), [(8, 4), (3, 4, 8)]),
    (lambda a, b: torch._grouped_mm(a, b, OFFSETS.to(a.device)), [(4, 8), (8, 8)]),
    (lambda a, b: torch._grouped_mm(a, b, OFFSETS.to(a.device)), [(3, 4, 8), (8, 8)]),
    (lambda a, b: torch._grouped_mm(a, b), [(3, 4, 8), (3, 8, 4)]),
    (lambda a: F.logsigmoid(a) * 2, [(3, 4)]),
    (lambda a: torch.linalg.lu_factor(a)[0], [(3, 4, 4)]),
    (lambda a: torch.geqrf(a), [(5, 3)]),
    (lambda a: F.embedding_bag(torch.tensor([[0, 1], [2, 1]], device=a.device), a), [(3, 4)]),
], ids="grouped_2d_3d grouped_2d_2d grouped_3d_2d grouped_3d_3d logsigmoid lu_factor geqrf embedding_bag".split())
def test_equal(f, inputs):
    torch._dynamo.reset()
    g = torch.Generator().manual_seed(0)
    args = [torch.randn(s, generator=g) for s in inputs]
    close(torch.compile(f, backend="tpu", fullgraph=True)(*(a.to(DEV) for a in args)), f(*args), rtol=1e-4, atol=1e-5)


def test_more_results_than_usual():
    f = lambda xs: torch._foreach_mul(torch._foreach_add(xs, 1), 2)  # noqa: E731
    xs = [torch.full((2,), float(i)) for i in range(150)]
    close(torch.compile(f, backend="tpu", fullgraph=True)([x.to(DEV) for x in xs]), f(xs))
