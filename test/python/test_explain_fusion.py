"""torch.tpu.explain_fusion(): where regions end, with the lines of the program; and traced operations inside regions."""
import pytest
import torch

from common import DEV, close, counter
from torch_tpu import _C, cli

MODES = torch.tpu.EagerMode


@pytest.fixture
def defer():
    with torch.tpu.set_eager_mode(MODES.DEFER_AND_FUSE):
        yield


def cuts(**want):
    return [c for c in torch.tpu.explain_fusion().data["cuts"] if all(c[k] == v for k, v in want.items())]


def loop(x, n):
    for _ in range(n):
        x = (x * 1.01).sin() + 0.5
        float(x[0])  # the read that cuts
        x = x.cos() * 0.5
        torch.tpu.synchronize()
        _C.defer_wait()
    return x


def test_cuts_name_the_line_and_what_they_cost(defer, tmp_path):
    loop(torch.ones(6, device=DEV), 6)
    read = [c for c in cuts(reason="read") if "in loop" in c["where"]]
    sync = [c for c in cuts(reason="sync") if "in loop" in c["where"]]
    assert len(read) == 1 and read[0]["where"].startswith("test_explain_fusion.py:"), read
    assert read[0]["count"] == 6 and len(sync) == 1 and sync[0]["count"] == 6
    assert read[0]["nodes_before"] >= 18 and read[0]["nodes_after"] >= 12
    report = torch.tpu.explain_fusion()
    assert report.without_read(read[0]) >= 5
    assert 0 < report.hit_rate < 1
    text = report.text(10000)
    assert read[0]["where"] in text and "would be one program" in text
    mine = [r for r in report.data["regions"] if r.get("cut", {}).get("where") == read[0]["where"]]
    assert mine and max(r["ran_fused"] for r in mine) >= 3 and mine[0]["first"]["where"].startswith("test_explain_fusion.py:")
    report.save(tmp_path / "r.json")
    assert cli.main(["fusion", str(tmp_path / "r.json")]) == 0
    (tmp_path / "bad.json").write_text("{}")
    assert cli.main(["fusion", str(tmp_path / "bad.json")]) == 1


def test_an_operation_that_cuts_is_named(defer):
    x = torch.arange(5.0, device=DEV) - 1
    (x * 2).nonzero()
    assert any("nonzero" in c["op"] and "test_explain_fusion.py" in c["where"] for c in cuts(reason="op"))


TRACED = r"""
import torch
from torch_tpu import _C
assert not _C.has_row("_weight_norm_interface") and not _C.has_row("_weight_norm_interface.default")
torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE)
v, g = torch.linspace(-1, 1, 24).reshape(4, 6), torch.linspace(1, 2, 4).reshape(4, 1)
x, y = v.to("tpu"), g.to("tpu")
torch.tpu.synchronize()
before = torch.tpu.counters()
for _ in range(5):
    out = (torch._weight_norm(x * 2, y) + 1).cpu()
    _C.defer_wait()
after = torch.tpu.counters()
torch.testing.assert_close(out, torch._weight_norm(v * 2, g) + 1)
print(*(after[k] - before[k] for k in ("traces", "cuts_op", "regions_fused", "fused_failures")))
"""


def test_traced_operations_are_recorded_and_fused(python, tmp_path):
    """Cold, where the decomposition is traced; then warm, where its record comes from the disk with the executable."""
    cold = [int(n) for n in python(TRACED, TORCH_TPU_CACHE_DIR=tmp_path).split()]
    warm = [int(n) for n in python(TRACED, TORCH_TPU_CACHE_DIR=tmp_path).split()]
    assert cold == [1, 0, 3, 0]
    assert warm == [0, 0, 3, 0]


def test_training_loops_stop_compiling(defer):
    """Logging every k steps, evaluation in between, accumulation, a shorter last batch: the second epoch compiles nothing."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = [torch.randn(n, 8) for n in (8, 8, 8, 8, 8, 8, 8, 5)]

    def epoch():
        for i, x in enumerate(data):
            loss = model(x.to(DEV)).square().mean()
            (loss / 2).backward()
            if i % 2:
                opt.step()
                opt.zero_grad()
            if i % 4 == 3:
                loss.item()
                with torch.no_grad():
                    model(data[0].to(DEV)).argmax(1).float().mean().item()
        _C.defer_wait()

    for _ in range(4):
        epoch()
    before = torch.tpu.counters()
    for _ in range(2):
        epoch()
    after = torch.tpu.counters()
    grew = {k: after[k] - before[k] for k in ("compiles", "signature_misses", "fused_compiles", "regions_unfused")}
    assert not any(grew.values()), grew
    assert after["regions_fused"] - before["regions_fused"] >= 8
