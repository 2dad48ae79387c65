"""torch.compile(backend="tpu"): options, donation of what is mutated, messages."""
import os
import time

import pytest
import torch
import torch._dynamo
from torch import nn

from common import DEV, close, counter, raised, same


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(f, **kw):
    return torch.compile(f, backend="tpu", **kw)


def test_mutated_inputs_are_donated():
    def f(x, y):
        x.add_(y)
        y.mul_(2)
        return x.sum()

    for donation in (True, False):
        torch._dynamo.reset()
        g = compiled(f, fullgraph=True, options={"donation": donation})
        x, y = torch.ones(64, device=DEV), torch.full((64,), 2.0, device=DEV)
        g(x, y)
        before, version = torch.tpu.counters(), x._version
        g(x, y)
        after = torch.tpu.counters()
        assert after["executions"] == before["executions"] + 1
        assert after["donations"] - before["donations"] == (2 if donation else 0)
        assert x._version > version
        same((x, y), (torch.full((64,), 7.0), torch.full((64,), 8.0)))


def test_a_value_that_is_read_elsewhere_is_not_donated():
    def f(x):
        x.add_(1)
        return x * 2

    g = compiled(f)
    x = torch.ones(8, device=DEV)
    g(x)
    kept = x.clone()  # shares the value
    g(x)
    same((kept, x), (torch.full((8,), 2.0), torch.full((8,), 3.0)))


def test_views_and_transposed_inputs_are_written():
    def f(x):
        x.mul_(2)
        return x + 1

    base = torch.arange(24.0).reshape(4, 6)
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[1:3], lambda t: t[:, ::2]):
        torch._dynamo.reset()
        a, b = base.clone(), base.clone().to(DEV)
        same(compiled(f)(view(b)), f(view(a)))
        same(b, a)


def test_buffers_and_saved_values():
    bn = nn.BatchNorm1d(3)
    x = torch.randn(5, 3)
    seen = []
    for d in ("cpu", DEV):
        m = nn.BatchNorm1d(3).to(d)
        m.load_state_dict(bn.state_dict())
        g = compiled(m) if d == DEV else m
        for _ in range(3):
            g(x.to(d)).square().sum().backward()
        seen.append([*m.buffers(), *(p.grad for p in m.parameters())])
    close(seen[1], seen[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.1, capturable=True)])
def test_optimizer_step_is_one_program_without_copies(make):
    params = [nn.Parameter(torch.ones(4, 3, device=DEV)), nn.Parameter(torch.ones(5, device=DEV))]
    opt = make(params)
    step = compiled(opt.step)
    for i in range(4):
        for p in params:
            p.grad = torch.full_like(p, i + 1.0)
        torch.tpu.synchronize()
        before = torch.tpu.counters()
        step()
        after = torch.tpu.counters()
    state = sum(isinstance(v, torch.Tensor) for s in opt.state.values() for v in s.values())
    assert after["executions"] - before["executions"] == 1
    assert after["donations"] - before["donations"] == len(params) + state
    reference = [nn.Parameter(torch.ones(4, 3)), nn.Parameter(torch.ones(5))]
    opt = torch.optim.SGD(reference, lr=0.1, momentum=0.9) if "momentum_buffer" in str(opt.state) else torch.optim.AdamW(reference, lr=0.1)
    for i in range(4):
        for p in reference:
            p.grad = torch.full_like(p, i + 1.0)
        opt.step()
    close([p.detach() for p in params], [p.detach() for p in reference])


def test_options():
    x = torch.randn(3, 3)
    for options in ({"xla": {"xla_cpu_enable_fast_math": False}}, {"precision": "highest"}, {"precision": "default"}):
        torch._dynamo.reset()
        close(compiled(lambda x: x @ x + 1, options=options)(x.to(DEV)), x @ x + 1)
    for mode in ("default", "reduce-overhead", "max-autotune"):
        torch._dynamo.reset()
        close(compiled(lambda x: x * 3, mode=mode)(x.to(DEV)), x * 3)


@pytest.mark.parametrize("options, words", [({"donate": True}, "there is no option 'donate'; the options are donation"),
                                            ({"precision": "low"}, "must be one of default, high, highest"),
                                            ({"donation": 1}, "must be True or False"), ({"xla": "a=b"}, "must be a dict")])
def test_bad_options(options, words):
    assert words in str(raised(lambda: compiled(lambda x: x + 1, options=options)(torch.ones(2, device=DEV))))


def test_xla_flag_that_does_not_exist():
    e = raised(lambda: compiled(lambda x: x * 5 - 2, options={"xla": {"xla_no_such_flag": 1}})(torch.ones(2, device=DEV)))
    assert e is not None and "xla_no_such_flag" in str(e)


def test_precision_is_in_the_program(tmp_path):
    for precision in ("default", "highest"):
        torch._dynamo.reset()
        where = tmp_path / precision
        compiled(lambda x: x @ x, options={"precision": precision, "dump": where})(torch.ones(2, 2, device=DEV))
        text = "".join((where / f).read_text() for f in os.listdir(where) if f.endswith(".mlir"))
        assert f"precision {precision.upper()}" in text
        assert any(f.endswith(".fx.py") and "mm" in (where / f).read_text() for f in os.listdir(where))


def test_async_compile():
    g = compiled(lambda x: (x.sin() + x.cos()).exp(), fullgraph=True, options={"async_compile": True})
    x = torch.randn(7)
    want, y = (x.sin() + x.cos()).exp(), x.to(DEV)
    counts, end = [], time.monotonic() + 60
    while (not counts or counts[-1] != 1) and time.monotonic() < end:
        before = counter("executions")
        close(g(y), want)
        counts.append(counter("executions") - before)
    assert counts[-1] == 1


def test_default_backend():
    torch.compiler.set_default_backend("tpu")
    try:
        g = torch.compile(lambda x: x.sin() * 2 + x, fullgraph=True)
        x = torch.randn(4, device=DEV)
        g(x)
        before = counter("executions")
        g(x)
        assert counter("executions") == before + 1
    finally:
        torch.compiler.set_default_backend(None)


def test_the_compilers_message_has_the_users_line():
    from torch_tpu._compile.lowering import Lowering
    from torch_tpu._compile.options import Options

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2, 3, device="meta")
    y = graph.call_function(torch.ops.aten.mm.default, (x, x))
    y.meta["stack_trace"] = '  File "model.py", line 12, in forward\n    y = x @ x'
    graph.output((y,))
    e = raised(lambda: Lowering(torch.fx.GraphModule({}, graph), {}, 0, Options()).run())
    assert "aten.mm" in str(e) and 'File "model.py", line 12' in str(e) and "y = x @ x" in str(e)
