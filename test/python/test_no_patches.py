"""Importing us changes nothing of PyTorch but what it offers for registration, prints nothing, and opens nothing."""
import json

SNAPSHOT = """
import sys, types
def walk():
    out = {}
    for name, m in sorted(sys.modules.items()):
        if not (name == "torch" or name.startswith("torch.")) or m is None: continue
        for k, v in list(vars(m).items()):
            out[name + ":" + k] = id(v)
            if isinstance(v, type) and v.__module__.startswith("torch"):
                for a, b in list(vars(v).items()):
                    if not a.startswith("__"): out[name + ":" + k + "." + a] = id(b)
    return out
"""

COMPARE = SNAPSHOT + """
import gc; gc.disable()
import torch
before = walk()
keep = [vars(m).copy() for n, m in list(sys.modules.items()) if n.startswith("torch") and m is not None]
import torch_tpu
torch_tpu._autoload()
after = walk()
import json
print(json.dumps([[k for k in after if k in before and before[k] != after[k]], [k for k in before if k not in after],
                  sorted({k for k in after if k not in before and k.split(":")[0] in {b.split(":")[0] for b in before}})]))
"""


def test_nothing_is_replaced(python):
    changed, removed, added = json.loads(python(COMPARE, TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines()[-1])
    assert removed == []
    # What PyTorch's own rename_privateuse1_backend sets: its name, and the names in the enumerations of devices.
    allowed = ("backend_registration:_privateuse1_backend_name", "DeviceType.name", "ProfilerActivity.name")
    assert [c for c in changed if not c.endswith(allowed)] == []
    # torch.tpu, and what generate_methods_for_privateuse1_backend and the renaming add.
    mine = (":tpu", ".tpu", ".is_tpu", "DeviceType.TPU", "ProfilerActivity.TPU")
    extra = [a for a in added if not a.endswith(mine)]
    # Submodules that PyTorch itself imports on the way show up as attributes of their parents.
    extra = [a for a in extra if a.replace(":", ".") not in _modules(python)]
    assert extra == [], extra


_cache = []


def _modules(python):
    if not _cache:
        _cache.append(set(python("import torch, sys; print('\\n'.join(sys.modules))").split()))
    return _cache[0]


def test_import_is_silent(python):
    p = python("import torch", check=False)
    assert (p.returncode, p.stdout, p.stderr) == (0, "", "")


def test_import_opens_nothing(python):
    out = python("""
import torch, os
assert not torch.tpu.is_initialized()
torch.manual_seed(3)
torch.tpu.device_count(), torch.tpu.is_available(), torch.device("tpu:0")
assert not torch.tpu.is_initialized()
maps = open("/proc/self/maps").read()
assert "pjrt" not in maps.lower().replace("libtorchtpu", ""), [l for l in maps.splitlines() if "pjrt" in l.lower()]
assert len(os.listdir("/proc/self/task")) <= 2, os.listdir("/proc/self/task")
torch.ones(1, device="tpu")
assert torch.tpu.is_initialized()
print("ok")
""")
    assert out.strip() == "ok"


def test_import_adds_few_modules(python):
    """Import time, without a clock: nothing heavy is imported that PyTorch does not import itself."""
    code = "import torch, sys; print('\\n'.join(sys.modules))"
    without = set(python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").split())
    extra = {m for m in python(code).split() if m not in without}
    heavy = {m for m in extra if m.split(".")[0] in ("sympy", "numpy", "jax", "tensorflow", "scipy") or m.startswith(("torch._dynamo", "torch._inductor", "torch.fx"))}
    assert not heavy and len(extra) < 40, sorted(extra)


def test_autoload_can_be_off_and_called_twice(python):
    assert python("import torch; print(hasattr(torch, 'tpu'))", TORCH_DEVICE_BACKEND_AUTOLOAD="0").strip() == "False"
    assert python("import torch_tpu, torch; torch_tpu._autoload(); torch_tpu._autoload(); print(torch.ones(1, device='tpu').item())",
                  TORCH_DEVICE_BACKEND_AUTOLOAD="0").strip() == "1.0"


def test_cpu_work_is_untouched(python):
    code = "import torch; torch.manual_seed(0); m = torch.nn.Linear(3, 3); print(m(torch.randn(2, 3)).sum().item(), torch.rand(1).item())"
    assert python(code) == python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")


def test_quiet_exit(python):
    p = python("import torch; x = torch.ones(4, device='tpu'); y = x * 2; import threading", check=False)
    assert (p.returncode, p.stderr) == (0, "")
