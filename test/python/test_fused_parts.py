"""Regions of large values run as several programs: the same values, less memory."""
import copy
import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from common import DEV, close, counter
from random_programs import PLAN
from torch_tpu import _C

MODES = torch.tpu.EagerMode


@pytest.fixture
def parts():
    _C.defer_plan(0, 10, 1024)  # regions of any size are split
    yield
    _C.defer_plan(*PLAN)


class Block(nn.Module):
    def __init__(self, width, drop):
        super().__init__()
        self.norm, self.up, self.down, self.drop = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(drop)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


def blocks(drop=0.0):
    return nn.Sequential(*(Block(32, drop) for _ in range(6)), nn.Linear(32, 5))


def convs():
    return nn.Sequential(nn.Conv2d(2, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1, bias=False),
                         nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5))


def train(model, mode, x, y, steps=6):
    """Losses, state and gradients at the end, the peak of device bytes of the last step."""
    model = copy.deepcopy(model).to(DEV)
    x, y, losses, peak = x.to(DEV), y.to(DEV), [], 0
    with torch.tpu.set_eager_mode(mode):
        torch.manual_seed(1)
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(steps):
            torch.tpu.synchronize()
            torch.tpu.reset_peak_memory_stats()
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
            peak = torch.tpu.max_memory_allocated()
            _C.defer_wait()
        state = [t.cpu() for t in model.state_dict().values()] + [p.grad.cpu() for p in model.parameters()]
    return losses, state, peak


@pytest.mark.parametrize("make, shape", [(blocks, (256, 32)), (lambda: blocks(0.3), (64, 32)), (convs, (16, 2, 8, 8))])
def test_training_in_parts(parts, make, shape):
    torch.manual_seed(0)
    model, x, y = make(), torch.randn(shape), torch.randint(0, 5, shape[:1])
    expected = train(model, MODES.DEFER_NEVER, x, y)
    before = counter("regions_fused")
    actual = train(model, MODES.DEFER_AND_FUSE, x, y)
    assert counter("regions_fused") >= before + 3
    close(torch.tensor(actual[0]), torch.tensor(expected[0]), rtol=1e-4, atol=1e-5)
    close(actual[1], expected[1], rtol=1e-2, atol=2e-4)
    regions = [r for r in json.loads(_C.defer_report())["regions"] if r["state"] == "fused"]
    assert any(r["programs"] > 3 and r["made_again"] > 0 for r in regions), regions


def test_peak_falls(parts):
    """What the backward pass can compute again from what is there does not stay."""
    torch.manual_seed(0)
    model, x, y = blocks(), torch.randn(512, 32), torch.randint(0, 5, (512,))
    strict = train(model, MODES.DEFER_NEVER, x, y)[2]
    fused = train(model, MODES.DEFER_AND_FUSE, x, y)[2]
    assert fused <= 0.8 * strict, (fused, strict)


def test_small_regions_are_one_program():
    a = torch.ones(8, device=DEV)
    torch.tpu.synchronize()
    with torch.tpu.set_eager_mode(MODES.DEFER_AND_FUSE):
        for _ in range(4):
            before = counter("executions")
            (a.sin() + a.cos() * a.exp()).sum().item()
            _C.defer_wait()
    assert counter("executions") - before == 1


def test_values_live_across_parts_and_regions(parts):
    """Results that the program keeps, views of them, and values written in place in a later part."""
    def step(x, keep):
        a = x.sin()
        b = (a @ a.t()).relu_()
        c = b.exp().mul_(0.5)
        keep.append(a.t()[1:])
        d = (c @ a).tanh() + a
        b.add_(1.0)
        e = (b @ d).cos_() * a
        return e, (a * 2).sum().item()

    x = torch.linspace(-1, 1, 48 * 48, dtype=torch.float64).reshape(48, 48)
    with torch.tpu.set_eager_mode(MODES.DEFER_AND_FUSE):
        for _ in range(4):
            kept, expected_kept = [], []
            actual, expected = step(x.to(DEV), kept), step(x, expected_kept)
            close(actual[0], expected[0], rtol=1e-9, atol=1e-9)
            assert abs(actual[1] - expected[1]) < 1e-6
            close(kept[0], expected_kept[0], rtol=1e-9, atol=1e-9)
            _C.defer_wait()
