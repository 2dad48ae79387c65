"""Autograd on the device: gradients, hooks, higher orders, custom functions."""
import gc

import pytest
import torch
import torch.nn.functional as F

from common import DEV, close, same, to


def gradients(f, inputs, device):
    args = to(inputs, device)
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    out = f(*args)
    return out, torch.autograd.grad(out.square().sum() if out.dtype.is_floating_point else out.abs().sum(), leaves, allow_unused=True)


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


FUNCTIONS = {
    "matmul": (lambda a, b: a @ b, (leaf(3, 4), leaf(4, 2))),
    "broadcast": (lambda a, b: a * b + b, (leaf(3, 4), leaf(4))),
    "softmax": (lambda a: a.softmax(1)[:, 1:], (leaf(3, 4),)),
    "index": (lambda a: a[torch.tensor([0, 2, 0])], (leaf(3, 4),)),
    "gather": (lambda a: a.gather(1, torch.tensor([[0, 0], [3, 1], [2, 2]], device=a.device)), (leaf(3, 4),)),
    "inplace": (lambda a: a.clone().mul_(2).sin_(), (leaf(3, 4),)),
    "view_write": (lambda a, b: torch.zeros(3, 4, device=a.device).index_put((torch.tensor([1], device=a.device),), b).add(a), (leaf(3, 4), leaf(4))),
    "slice_assign": (lambda a, b: (lambda c: c.__setitem__((slice(None), 1), b) or c)(a.clone()), (leaf(3, 4), leaf(3))),
    "cat": (lambda a, b: torch.cat([a, b.t()], 1).cumsum(1), (leaf(3, 4), leaf(2, 3))),
    "norms": (lambda a: F.layer_norm(a, (4,)) + a.norm(dim=1, keepdim=True), (leaf(3, 4),)),
    "where": (lambda a, b: torch.where(a > 0, a, b), (leaf(3, 4), leaf(3, 4))),
    "prod": (lambda a: a.prod(1), (leaf(3, 4),)),
    "max": (lambda a: a.max(1).values, (leaf(3, 4),)),
    "sort": (lambda a: a.sort(1).values[:, :2], (leaf(3, 4),)),
    "conv_t": (lambda a, w: F.conv_transpose2d(a, w, stride=2, padding=1), (leaf(1, 2, 4, 4), leaf(2, 3, 3, 3))),
    "interpolate": (lambda a: F.interpolate(a, scale_factor=2, mode="bilinear"), (leaf(1, 2, 4, 4),)),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), (leaf(2, 3, 4), leaf(2, 4, 2))),
    "linalg": (lambda a: torch.linalg.inv(a @ a.t() + 3 * torch.eye(3, device=a.device)), (leaf(3, 4),)),
    "logsumexp": (lambda a: a.logsumexp(0), (leaf(3, 4),)),
    "cdist": (lambda a, b: torch.cdist(a, b), (leaf(3, 4), leaf(2, 4))),
    "grid_sample": (lambda a, g: F.grid_sample(a, g.tanh(), align_corners=False), (leaf(1, 2, 4, 4), leaf(1, 3, 3, 2))),
    "complex": (lambda a: torch.fft.rfft(a), (leaf(3, 4),)),
    "embedding": (lambda w: F.embedding(torch.tensor([[0, 2], [2, 1]], device=w.device), w, padding_idx=1), (leaf(3, 4),)),
    "sdpa": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (leaf(1, 2, 3, 4), leaf(1, 2, 5, 4), leaf(1, 2, 5, 4))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    f, inputs = FUNCTIONS[name]
    close(gradients(f, inputs, DEV), gradients(f, inputs, "cpu"), rtol=2e-4, atol=2e-5)


def test_gradcheck():
    x = torch.randn(2, 3, dtype=torch.float64).to(DEV).requires_grad_()
    w = torch.randn(3, 2, dtype=torch.float64).to(DEV).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: torch.tanh(a @ b).sum(1), (x, w))
    assert torch.autograd.gradgradcheck(lambda a: a.sin().prod(1), (x,))


def test_second_order():
    for d in ("cpu", DEV):
        x = torch.tensor([1.0, 2.0, -0.5], device=d, requires_grad=True)
        (g,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        close(h, torch.tensor([6.0, 12.0, -3.0]))


def test_accumulation_hooks_and_retain():
    x = torch.ones(3, device=DEV, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.clone()) or g * 10)
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    z = y.sum()
    z.backward(retain_graph=True)
    z.backward()
    same(x.grad, torch.full((3,), 40.0))
    same(y.grad, torch.full((3,), 20.0))
    same(seen[1], torch.full((3,), 20.0))


def test_custom_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert g.device.type == "tpu"
            return 3 * x * x * g

    x = torch.tensor([2.0, -1.0], device=DEV, requires_grad=True)
    Cube.apply(x).sum().backward()
    same(x.grad, torch.tensor([12.0, 3.0]))


def test_across_devices():
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, device="tpu:1", requires_grad=True)
    ((a.to(DEV) * 3).cpu().sum() + (b.to("tpu:0") * a.to(DEV)).sum().cpu()).backward()
    same(a.grad, torch.full((3,), 4.0))
    assert b.grad.device.index == 1
    same(b.grad, torch.ones(3))


def test_functional_transforms():
    from torch.func import grad, hessian, jacrev, jvp, vmap

    w, x = torch.randn(3, 4), torch.randn(5, 4)
    f = lambda w, x: torch.tanh(w @ x).square().sum()  # noqa: E731
    for g in (vmap(grad(f), (None, 0)), lambda w, x: jacrev(lambda w: torch.tanh(x @ w.t()).sum(0))(w),
              lambda w, x: jvp(lambda w: torch.tanh(x @ w.t()), (w,), (torch.ones_like(w),)),
              lambda w, x: hessian(lambda v: (v ** 3).sum())(x[0])):
        close(g(w.to(DEV), x.to(DEV)), g(w, x))


def test_modes():
    x = torch.ones(2, device=DEV, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="second time"):
        z = (x * x).sum()
        z.backward()
        z.backward()
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="nan"):
        t = torch.zeros(2, device=DEV, requires_grad=True)
        (t.sqrt() * 0).sum().backward()


def test_graph_is_freed():
    x = torch.ones(1000, device=DEV, requires_grad=True)
    gc.collect()
    before = torch.tpu.memory_allocated()
    y = x
    for _ in range(10):
        y = y.sin()
    assert torch.tpu.memory_allocated() > before
    del y
    gc.collect()
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() == before


def test_saved_tensor_hooks():
    x = torch.ones(3, device=DEV, requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x.exp()
    y.sum().backward()
    close(x.grad, torch.ones(3).exp())


def test_transposed_convolution_padded_by_more_than_a_stride():
    def run(device):
        g = torch.Generator().manual_seed(0)
        x, w = (torch.randn(s, generator=g).to(device).requires_grad_() for s in ((2, 2, 4, 4), (2, 2, 4, 5)))
        y = torch.nn.functional.conv_transpose2d(x, w, stride=(3, 2), padding=(1, 2), output_padding=(2, 3), groups=2, dilation=4)
        return torch.autograd.grad(y, (x, w), torch.randn(y.shape, generator=g).to(device))

    for a, e in zip(run("tpu"), run("cpu")):
        torch.testing.assert_close(a.cpu(), e)
