"""torch.export -> torch.tpu.save_bundle -> torch.tpu.load_bundle in a process that has neither Dynamo nor the model."""
import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from common import DEV, close


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.out = nn.Embedding(11, 8), nn.LayerNorm(8), nn.Linear(8, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, ids, scale, *, mask=None):
        self.calls += 1
        x = self.norm(self.embed(ids)) * scale
        if mask is not None:
            x = x.masked_fill(mask[..., None], float("-inf")).softmax(1)
        return {"logits": self.out(x), "pooled": (F.gelu(x).amax(1), self.calls + 0)}


def example(device):
    g = torch.Generator().manual_seed(0)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[1, 3:] = True
    return (torch.randint(0, 11, (2, 5), generator=g).to(device), torch.tensor(1.5).to(device)), {"mask": mask.to(device)}


CHILD = """
    import sys, torch
    args, kwargs, expected = torch.load(sys.argv[2])
    before = torch.tpu.counters()["compiles"]
    f = torch.tpu.load_bundle(sys.argv[1])
    print("compiles", torch.tpu.counters()["compiles"] - before)
    move = lambda t: t.to("tpu")
    args, kwargs = [move(a) for a in args], {k: move(v) for k, v in kwargs.items()}
    for n in (1, 2):
        out = f(*args, **kwargs)
        torch.testing.assert_close(out["logits"].cpu(), expected["logits"], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(out["pooled"][0].cpu(), expected["pooled"][0], rtol=1e-4, atol=1e-5)
        assert out["pooled"][1].item() == f.state["calls"].item() == n
    torch.tpu.synchronize()
    before = torch.tpu.counters()["executions"]
    f(*args, **kwargs)
    print("executions", torch.tpu.counters()["executions"] - before)
    try:
        f(*args)
    except TypeError:
        print("refused")
    print("dynamo", "torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("device", ["cpu", DEV])
def test_in_another_process(tmp_path, device):
    torch.manual_seed(0)
    model = Model().eval()
    args, kwargs = example("cpu")
    expected = model(*args, **kwargs)
    model.calls.zero_()
    torch.save((args, kwargs, expected), tmp_path / "example.pt")
    args, kwargs = example(device)
    program = torch.export.export(model.to(device), args, kwargs)
    torch.tpu.save_bundle(tmp_path / "model.tpu", program)
    said = []
    for cache in ("one", "one"):  # an empty cache of its own: the executable comes from the file
        env = {**os.environ, "TORCH_TPU_CACHE_DIR": str(tmp_path / cache)}
        p = subprocess.run([sys.executable, "-c", textwrap.dedent(CHILD), tmp_path / "model.tpu", tmp_path / "example.pt"], env=env,
                           capture_output=True, text=True, timeout=300)
        assert p.returncode == 0, p.stderr[-3000:]
        said.append(p.stdout.split())
    assert said[0] == said[1] == "compiles 0 executions 1 refused dynamo False".split()


def test_what_has_no_place_in_a_bundle(tmp_path):
    class Sized(nn.Module):
        def forward(self, x):
            return x.nonzero()

    program = torch.export.export(Sized(), (torch.ones(3),))
    with pytest.raises(ValueError, match="nonzero|dynamic"):
        torch.tpu.save_bundle(tmp_path / "x", program)
    with pytest.raises(TypeError, match="ExportedProgram"):
        torch.tpu.save_bundle(tmp_path / "x", Sized())


def test_cond_and_random_numbers(tmp_path):
    class Drawn(nn.Module):
        def forward(self, x):
            y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
            return y + torch.rand_like(x)

    x = torch.randn(4)
    torch.tpu.save_bundle(tmp_path / "x", torch.export.export(Drawn(), (x,)))
    f = torch.tpu.load_bundle(tmp_path / "x")
    for v in (x.abs(), -x.abs()):
        torch.manual_seed(1)
        out = f(v.to(DEV))
        torch.manual_seed(1)
        noise = torch.rand(4, device=DEV)
        close(out - noise, v.sin() if v.sum() > 0 else v.cos(), rtol=1e-4, atol=1e-5)
