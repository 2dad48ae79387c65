"""torch.compile without a backend: graphs on the device are ours, all others stay Inductor's."""
import subprocess
import sys

import pytest
import torch


def run(code):
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    return out.stdout.split()


def test_a_program_without_the_device_keeps_inductor():
    assert run("import torch; print(torch.compiler.get_default_backend())") == ["inductor"]


def test_default_follows_the_tensors():
    code = """
import torch
a = torch.arange(6.0).reshape(2, 3).to("tpu")
f = torch.compile(lambda x: (x * 2).sum(0), fullgraph=True)
f(a)
before = torch.tpu.counters()["executions"]
y = f(a)
after = torch.tpu.counters()["executions"]
print(y.device.type, y.tolist() == [6.0, 10.0, 14.0], after - before)
f = torch.compile(lambda: torch.ones(2, device="tpu") + 1)
print(f().tolist() == [2.0, 2.0])
m = torch.nn.Linear(3, 2).to("tpu")
want = m(a)
m.compile()
print(torch.equal(m(a), want))
import torch._inductor.utils
def on_cpu():
    return torch.compile(lambda x: x * 2)(a.cpu())
out, code = torch._inductor.utils.run_and_get_code(on_cpu)
print(torch.equal(out, a.cpu() * 2), len(code))
"""
    assert run(code) == ["tpu", "True", "1", "True", "True", "True", "1"]


def test_a_default_of_the_users_stays():
    code = """
import torch
torch.compiler.set_default_backend("eager")
torch.ones(1, device="tpu")
print(torch.compiler.get_default_backend())
"""
    assert run(code) == ["eager"]


def test_inductors_options_are_dropped_with_a_warning():
    x = torch.ones(3, device="tpu")
    from torch_tpu._default_backend import default

    f = torch.compile(lambda x: x + 1, backend=default, options={"max_autotune": True})
    with pytest.warns(UserWarning, match="'max_autotune' is an option of Inductor"):
        assert f(x).tolist() == [2.0, 2.0, 2.0]
    f = torch.compile(lambda x: x + 1, backend=default, options={"no_such_option": True})
    with pytest.raises(Exception, match="there is no option 'no_such_option'"):
        f(x)


def test_inductor_by_name_says_what_to_write():
    f = torch.compile(lambda x: x + 1, backend="inductor")
    with pytest.raises(Exception, match="backend='tpu'"):
        f(torch.ones(3, device="tpu"))
