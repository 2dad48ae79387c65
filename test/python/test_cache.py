"""Programs are compiled once: not again for a value that changes, and not again in the next process."""
import pytest
import torch
import torch.nn.functional as F

from common import DEV

STEP = """
import torch
torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(7, 3)).to("tpu")
opt = torch.optim.AdamW(m.parameters())
for i in range(3):
    opt.zero_grad()
    torch.nn.functional.cross_entropy(m(torch.randn(4, 5).to("tpu")), torch.tensor([0, 1, 2, 0]).to("tpu")).backward()
    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
x = m(torch.ones(2, 5, device="tpu"))
x[:, 1] = x[0, 2] + 1
print(x.sum().item())
c = torch.tpu.counters()
print(c["compiles"], c["lowerings"], c["disk_hits"])
"""


def test_second_process_compiles_nothing(python, tmp_path):
    first = python(STEP, TORCH_TPU_CACHE_DIR=tmp_path).split()
    second = python(STEP, TORCH_TPU_CACHE_DIR=tmp_path).split()
    assert int(first[1]) > 10 and int(first[2]) > 10
    assert second[0] == first[0]
    assert int(second[1]) == 0 and int(second[2]) == 0 and int(second[3]) > 10


def test_cache_can_be_off(python):
    out = python("import torch; (torch.ones(3, device='tpu') + 1).sum().item(); c = torch.tpu.counters(); print(c['disk_writes'], c['disk_hits'], c['compiles'] > 0)",
                 TORCH_TPU_CACHE_DIR="")
    assert out.split() == ["0", "0", "True"]


def test_damaged_files_are_no_matter(python, tmp_path):
    python(STEP, TORCH_TPU_CACHE_DIR=tmp_path)
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) > 10
    for i, p in enumerate(files):
        data = p.read_bytes()
        p.write_bytes([data[: len(data) // 2], b"", b"x" * len(data), data[:-1] + bytes([data[-1] ^ 1]) if data else b""][i % 4])
    python(STEP, TORCH_TPU_CACHE_DIR=tmp_path)


X = torch.arange(24.0).reshape(4, 6)
CHANGING = {
    "add_scalar": lambda x, i: x + (i * 0.5 + 2.25),
    "mul_int": lambda x, i: x * (i + 3),
    "alpha": lambda x, i: torch.add(x, x, alpha=i * 0.25 + 2),
    "pow_exponent": lambda x, i: x ** (i * 0.3 + 2.1),
    "slice_offset": lambda x, i: x[:, i:i + 2] + 1,
    "row": lambda x, i: x[i % 4] + 1,
    "slice_write": lambda x, i: x.clone()[:, i:i + 2].mul_(2),
    "set_row": lambda x, i: x.clone().__setitem__(i % 4, 3.0),
    "fill": lambda x, i: torch.full((3,), i + 0.5, device=DEV),
    "clamp": lambda x, i: x.clamp(i * 0.5, 9.0 + i),
    "roll": lambda x, i: x.roll(i, 1),
    "dropout_p": lambda x, i: F.dropout(x, 0.1 + 0.15 * i),
    "eps": lambda x, i: F.layer_norm(x, (6,), eps=1e-5 * (i + 1)),
    "arange": lambda x, i: torch.arange(i, i + 6, device=DEV),
    "threshold": lambda x, i: F.leaky_relu(x, 0.01 * (i + 1)),
    "masked_fill": lambda x, i: x.masked_fill(x > 3, float(i)),
    "uniform": lambda x, i: x.clone().uniform_(-i, i + 1.0),
    "lerp": lambda x, i: torch.lerp(x, x * 2, 0.1 * i),
    "addcmul": lambda x, i: torch.addcmul(x, x, x, value=i + 0.5),
    "compare": lambda x, i: x > i,
    "foreach": lambda x, i: torch._foreach_add([x, x], i + 0.5),
    "seed": lambda x, i: (torch.manual_seed(i), torch.randn(3, device=DEV)),
}


@pytest.mark.parametrize("name", CHANGING)
def test_changing_values_do_not_recompile(name):
    x = X.to(DEV)
    for i in range(2):
        CHANGING[name](x, i)
    before = torch.tpu.counters()
    for i in range(2, 5):
        CHANGING[name](x, i)
    after = torch.tpu.counters()
    for c in ("compiles", "disk_hits", "lowerings"):
        assert after[c] == before[c], c


def test_a_step_makes_no_new_signatures():
    m = torch.nn.Linear(4, 4).to(DEV)
    opt = torch.optim.Adam(m.parameters())

    def step(i):
        opt.zero_grad()
        (m(torch.full((2, 4), float(i), device=DEV)) ** 2).mean().backward()
        opt.step()

    for i in range(3):
        step(i)
    before = torch.tpu.counters()
    for i in range(3, 8):
        step(i)
    after = torch.tpu.counters()
    for c in ("compiles", "lowerings", "signature_misses", "metas", "traces"):
        assert after[c] == before[c], c
