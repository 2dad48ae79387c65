"""Caches are bounded: compiled programs that were not used for long go, and come back when they are wanted again."""

KEEP = 48

EAGER = """
import torch
wrong = 0
for round in range(2):
    for n in range(1, 101):
        x = torch.arange(n, device="tpu", dtype=torch.float32)
        wrong += not torch.equal(torch.cat([x, x * 2 + round]).cpu(), torch.cat([x.cpu(), x.cpu() * 2 + round]))
c = torch.tpu.counters()
print(wrong, c["programs_dropped"] > 100, c["compiles"] + c["disk_hits"] > 200)
"""

FUSED = """
import torch
from torch_tpu import _C
a = torch.ones(4, device="tpu")
wrong = 0
with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE):
    for n in range(2, 62):
        for again in range(3):
            x = a
            for i in range(n):
                x = x + 1 if i % 3 else x * 2
            got = x.tolist()
            _C.defer_wait()
        want = torch.ones(4)
        for i in range(n):
            want = want + 1 if i % 3 else want * 2
        wrong += got != want.tolist()
c = torch.tpu.counters()
print(wrong, c["programs_dropped"] > 0, c["regions_fused"] > 0)
"""

COMPILED = """
import torch
@torch.compile(backend="tpu", dynamic=False)
def f(x, k):
    return torch.cat([x, x.sin()]).sum() * k
torch._dynamo.config.recompile_limit = 1000
wrong = 0
for round in range(2):
    for n in range(1, 81):
        x = torch.arange(n, dtype=torch.float32)
        wrong += not torch.allclose(f(x.to("tpu"), 2.0).cpu(), torch.cat([x, x.sin()]).sum() * 2.0)
    compiles = [*(compiles if round else []), torch.tpu.counters()["compiles"]]
print(wrong, compiles[1] == compiles[0] >= 80)
"""


def test_eager(python):
    assert python(EAGER, TORCH_TPU_KEEP_PROGRAMS=str(KEEP)).split() == ["0", "True", "True"]


def test_fused(python):
    assert python(FUSED, TORCH_TPU_KEEP_PROGRAMS=str(KEEP)).split() == ["0", "True", "True"]


def test_programs_of_compiled_models_stay(python):
    assert python(COMPILED, TORCH_TPU_KEEP_PROGRAMS="8", TORCH_TPU_CACHE_DIR="").split() == ["0", "True"]
