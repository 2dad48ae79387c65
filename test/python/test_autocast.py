"""Mixed precision."""
import pytest
import torch
import torch.nn.functional as F

from common import DEV, close


def test_default_is_bf16():
    a = torch.randn(4, 4, device=DEV)
    assert torch.get_autocast_dtype("tpu") == torch.bfloat16
    with torch.autocast("tpu"):
        assert torch.is_autocast_enabled("tpu")
        assert (a @ a).dtype == torch.bfloat16 and F.linear(a, a).dtype == torch.bfloat16
        assert F.conv2d(a[None, None], a[None, None]).dtype == torch.bfloat16
        assert F.scaled_dot_product_attention(*[a[None, None]] * 3).dtype == torch.bfloat16
        assert (a @ a).softmax(-1).dtype == torch.float32
        assert (a @ a).sum().dtype == torch.float32 and F.layer_norm((a @ a), (4,)).dtype == torch.float32
        assert (a + a).dtype == torch.float32
        assert torch.cat([a @ a, a]).dtype == torch.float32
        with torch.autocast("tpu", enabled=False):
            assert (a @ a).dtype == torch.float32
    assert not torch.is_autocast_enabled("tpu")


def test_fp16_and_custom_ops():
    a = torch.randn(4, 4, device=DEV)
    with torch.autocast("tpu", dtype=torch.float16):
        assert (a @ a).dtype == torch.float16

    class F1(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="tpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            assert x.dtype == torch.float32 and not torch.is_autocast_enabled("tpu")
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="tpu")
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, device=DEV, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("tpu"):
        F1.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_training_is_near_cpu():
    torch.manual_seed(1)
    w, x = torch.randn(8, 8), torch.randn(16, 8)
    grads = []
    for d in ("cpu", DEV):
        p = w.clone().to(d).requires_grad_()
        with torch.autocast(d, torch.bfloat16):
            loss = F.gelu(x.to(d) @ p).float().square().mean()
        loss.backward()
        assert p.grad.dtype == torch.float32
        grads.append(p.grad.cpu())
    close(grads[1], grads[0], rtol=5e-2, atol=5e-3)


def test_weights_are_cast_once():
    m = torch.nn.Linear(4, 4).to(DEV)
    x = torch.randn(2, 4, device=DEV)
    with torch.autocast("tpu"):
        (m(x) + m(x)).sum().backward()
    assert m.weight.grad.dtype == torch.float32


@pytest.mark.parametrize("found", [False, True])
def test_grad_scaler(found):
    p = torch.nn.Parameter(torch.ones(3, device=DEV))
    opt = torch.optim.SGD([p], lr=0.5)
    scaler = torch.amp.GradScaler("tpu", init_scale=8.0, growth_interval=1)
    loss = (p * (float("inf") if found else 2.0)).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_([p], 1e6) if not found else None
    scaler.step(opt)
    scaler.update()
    if found:
        assert p.tolist() == [1, 1, 1] and scaler.get_scale() == 4.0
    else:
        assert p.tolist() == [0, 0, 0] and scaler.get_scale() == 16.0
    again = torch.amp.GradScaler("tpu")
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == scaler.get_scale()
