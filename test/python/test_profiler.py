"""PyTorch's profiler over the device: device time for each operation, and nothing on the terminal."""
import subprocess
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def work(x):
    for _ in range(3):
        x = (x @ x).sin()
    return x.sum().item()


def test_operations_are_seen_once_each():
    x = torch.randn(64, 64, device="tpu")
    work(x)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as p:
        with record_function("mine"):
            work(x)
    events = {e.key: e for e in p.key_averages()}
    assert events["aten::mm"].count == 3 and events["aten::sin"].count == 3 and events["mine"].count == 1


def test_device_time_of_operations():
    x = torch.randn(64, 64, device="tpu")
    work(x)
    with torch.autograd.profiler.profile(use_device="tpu", use_kineto=False) as p:
        work(x)
    products = [e for e in p.key_averages() if e.key == "aten::mm"]  # two rows where one took less than a microsecond
    assert sum(e.count for e in products) == 3 and sum(e.device_time_total for e in products) > 0
    assert "TPU total" in p.key_averages().table()


def test_autograd_profiler_and_trace_file(tmp_path):
    x = torch.randn(16, 16, device="tpu", requires_grad=True)
    with torch.autograd.profiler.profile(use_device="tpu") as p:
        (x * 2).sum().backward()
    assert any("MulBackward" in e.key for e in p.key_averages())
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    assert "aten::mul" in (tmp_path / "trace.json").read_text()


def test_the_profiler_is_quiet():
    code = """
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(4, device="tpu")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as p:
    (x + 1).sum().item()
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0 and "Exception" not in out.stderr and "assert" not in out.stderr.lower()
