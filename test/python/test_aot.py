"""torch.tpu.aot: what a real TPU would do, found out without one. Most of it needs libtpu, the compiler, and no TPU."""
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import torch
from torch import nn

import aot_models
from torch_tpu import aot
from torch_tpu.aot import chips, lower, report
from torch_tpu.aot.trace import trace

HERE = os.path.dirname(os.path.abspath(__file__))
needs_libtpu = pytest.mark.skipif(not aot.available(), reason="libtpu is not installed: pip install libtpu")


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(64, 128), nn.BatchNorm1d(128), nn.Linear(128, 10)

    def forward(self, x):
        h = self.norm(self.a(x))
        return self.b(nn.functional.gelu(h))


def small():
    return Small().to("meta"), (torch.empty(32, 64, device="meta"),)


def squares(out, *_):
    return out.pow(2).mean()


def llama():
    with torch.device("meta"):
        p = aot_models.make()
    return p["model"], p["args"]


# ---------------------------------------------------------------- tracing: no compiler, no plugin
def test_lines_of_forward_backward_and_optimizer():
    t = trace(*small(), train=True, loss=squares)
    lines = {}
    for n in t.graph.graph.nodes:
        if n.op == "call_function":
            lines.setdefault(lower.title(n), set()).add(getattr(lower.line_of(n), "code", None))
    assert "return self.b(nn.functional.gelu(h))" in lines["aten.gelu_backward"]
    assert "h = self.norm(self.a(x))" in lines["aten.native_batch_norm_backward"]
    assert "optimizer: aten.sqrt" in lines


def test_a_step_updates_in_place():
    """Parameters, moments and statistics take their inputs' buffers."""
    t = trace(*small(), train=True, loss=squares)
    updated = sorted(t.inputs[i].name for i in t.updates.values() if t.inputs[i].kind != "optimizer state")
    assert updated == ["a.bias", "a.weight", "b.bias", "b.weight", "norm.bias", "norm.num_batches_tracked", "norm.running_mean",
                       "norm.running_var", "norm.weight"]
    head = lower.stablehlo(t).split("{\n", 2)[1]
    assert head.count("tf.aliasing_output") == len(t.updates)


def test_no_memory_for_weights_and_no_device(python):
    """A Llama of 66 billion parameters is traced and lowered in little memory, and the device is not opened."""
    out = python("""
import resource, torch
from aot_models import Llama
from torch_tpu import _C
from torch_tpu.aot import lower
from torch_tpu.aot.trace import trace
with torch.device("meta"):
    model = Llama(16384, 16, 128, 57344, 128256).to(torch.bfloat16)
t = trace(model, (torch.empty(1, 2048, dtype=torch.long, device="meta"),))
print(t.parameters > 65e9, len(lower.stablehlo(t)) > 100000, _C.is_open(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3 << 20)
""")
    assert out.split() == ["True", "True", "False", "True"]


def test_the_users_line_when_it_cannot():
    with pytest.raises(aot.TraceError, match="_local_scalar_dense") as e:
        trace(*aot_models.not_static())
    assert e.value.where.endswith("in forward: if x.sum() > 0:")
    with pytest.raises(aot.TraceError) as e:
        trace(lambda x: x @ x, (torch.empty(2, 3),))
    assert "test_aot.py" in e.value.where
    with pytest.raises(aot.TraceError, match="one number to minimise"):
        trace(*small(), train=True)


def test_the_model_is_left_alone():
    model = Small()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    trace(model, (torch.randn(4, 64),), train=True, loss=squares)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


# ---------------------------------------------------------------- facts and figures
def test_chips():
    assert chips.full_name("v5e") == "v5e:2x2"
    assert chips.device_of("tpu7x:2x2x1", 8).hbm_bytes == 96 << 30
    assert chips.device_of("v5p:2x2x1", 4).bf16_flops == 459e12
    with pytest.raises(ValueError, match="v9"):
        chips.full_name("v9:2x2")


def test_sizes_in_words():
    assert [report.size(n) for n in (5, 1536, 3 << 30)] == ["5 B", "1.5 KiB", "3.0 GiB"]
    assert report.out_of_memory("required for HLO temporaries (32.00G) exceeds available HBM (15.75G).") == (32 << 30, 15.75 * (1 << 30))
    assert report.out_of_memory("something else") == (None, None)


# ---------------------------------------------------------------- with the compiler
@needs_libtpu
def test_compiler_dies_or_hangs_alone():
    bad = [sys.executable, "-c", "import os, sys; sys.stderr.write('I broke'); sys.stderr.flush(); os.kill(os.getpid(), 6)"]
    with aot.Compiler(command=bad) as c, pytest.raises(aot.CompilerDied, match="signal 6(.|\n)*I broke"):
        c.topology("v5e:2x2")
    with aot.Compiler(command=[sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.5) as c:
        with pytest.raises(aot.CompilerDied, match="0.5 s"):
            c.topology("v5e:2x2")


@needs_libtpu
def test_refusals_are_exceptions():
    with aot.Compiler() as c:
        with pytest.raises(aot.CompileRefused):
            c.topology("v5e:7x9x11")
        with pytest.raises(aot.CompileRefused):
            c.compile("this is no program", "v5e:2x2")
        assert c.topology("v5e:2x2")["devices"] == 4  # the same process goes on


@pytest.fixture(scope="module")
def step():
    """A train step for two chips."""
    return aot.compile(*small(), topology=["v5e", "tpu7x:2x2x1"], train=True, loss=squares, name="small")


@needs_libtpu
def test_report_of_a_step(step):
    assert step.compiles and step.error is None
    for t in step.targets:
        assert t["top"][0]["bytes"] >= t["top"][-1]["bytes"] > 0
        h = t["hbm"]
        assert h["total"] == h["arguments"] + h["outputs"] - h["aliased"] + h["temporaries"] + h["code"]
        assert 0 < h["aliased"] <= h["arguments"] and t["flops"] > 0 and t["seconds"] > 0
        assert t["memory_line"] and t["peak"]
    assert step.target("tpu7x:2x2x1")["devices_per_chip"] == 2
    assert any("gelu" in v["line"] for v in step.data["program"]["flops_by_line"])
    assert "fits on v5e:2x2, tpu7x:2x2x1" in step.text()
    assert json.loads(step.json()) == step.data


@needs_libtpu
def test_memory_is_xlas_own(step):
    """The same program through the shim's own class gives the same bytes."""
    code = f"""
import sys
sys.path.insert(0, {HERE!r})
from torch_tpu import _C, _plugin
from test_aot import *
text = lower.stablehlo(trace(*small(), train=True, loss=squares))
compiled = _C.Topology(_plugin.tpu_plugin().path, "v5e:2x2").compile(text)
print("RESULT", json.dumps([compiled.memory(), compiled.costs()["flops"], compiled.optimized()[0], len(compiled.serialize()) > 0]))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    memory, flops, form, serialized = json.loads(out.stdout.split("RESULT", 1)[1])
    ours = step.target("v5e:2x2")
    assert {k: ours["hbm"][k] for k in ("arguments", "outputs", "aliased", "temporaries", "code")} == {k: v for k, v in memory.items() if k != "peak"}
    assert flops == ours["flops"] and form.startswith("hlo") and serialized


@needs_libtpu
@pytest.mark.parametrize("train", [False, True])
def test_flops_agree_with_counting(train):
    """2ND forward, 6ND with backward, within 2 %."""
    model, args = llama()
    r = aot.compile(model, args, topology="v5e", train=train, loss=aot_models.next_token_loss, optimizer="adamw" if train else None)
    expected = (6 if train else 2) * model.products() * args[0].numel()
    # AdamW's arithmetic on every parameter is work too, and XLA counts it: products are counted by themselves.
    assert abs(r.data["program"]["product_flops"] / expected - 1) < 0.02
    assert 0.98 < r.targets[0]["flops"] / expected < (1.08 if train else 1.02)
    assert "in products and convolutions" in r.text() and "in products and convolutions" in r.html()
    # bf16 products keep bf16 operands: nothing is said of several passes.
    assert not r.data["program"]["f32_products"]


@needs_libtpu
def test_fits_here_and_not_there():
    def big(x):
        return (x @ x).tanh() @ x

    x = torch.empty(65536, 65536, dtype=torch.bfloat16, device="meta")
    r = aot.compile(big, (x,), topology=["v5e", "v5p"])
    here, there = r.targets
    assert not here["compiles"] and here["hbm"]["needed"] > here["hbm"]["available"] and here["ways"] == 2
    assert there["compiles"] and there["hbm"]["arguments"] == 65536 * 65536 * 2
    assert "fits on v5p:2x2x1; does not fit on v5e:2x2" in r.text() and not r.compiles
    assert r.html().count('class="no"') == 1


@needs_libtpu
def test_where_a_slice_would_look(tmp_path):
    """The file's key has the parts of the device's own, and the program."""
    text = lower.stablehlo(trace(lambda x: x + 1, (torch.empty(8),)))
    with aot.Compiler() as c:
        c.compile(text, "v5e:2x2", optimized=False, cache=str(tmp_path))
        with pytest.raises(aot.CompileRefused, match="this process uses"):
            c.compile(text, "v5e:2x2", optimized=False, cache=str(tmp_path / "other"))
    files = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size > 1000]
    assert len(files) == 1 and b"\nplatform tpu\nplatform_version " in files[0]
    assert b"\ndevice TPU v5 lite\nstablehlo " in files[0] and b"\ndevice 0\nprogram\n" + text.encode() in files[0]


class Page(HTMLParser):
    VOID = ("meta", "br", "img", "link", "input")

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.refs = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.refs += [v for k, v in attrs if k in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        pass


@needs_libtpu
def test_page(step, tmp_path):
    text = step.html()
    page = Page()
    page.feed(text)
    assert not page.open and not page.refs and "script" not in page.seen and page.seen.count("svg") >= 7
    assert text.count('class="top"') == 2
    assert "url(" not in text and "@import" not in text
    path = tmp_path / "report.html"
    path.write_text(text)
    browser = next((b for b in ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome") if os.path.exists(b)), None)
    if browser is None:
        return  # the structure was looked at; a browser is an extra
    shot = tmp_path / "page.png"
    dump = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,2400", f"--screenshot={shot}",
                           f"--user-data-dir={tmp_path / 'profile'}", f"file://{path}"], capture_output=True, text=True, timeout=120)
    assert dump.returncode == 0 and shot.stat().st_size > 10000, dump.stderr


# ---------------------------------------------------------------- the command
def run(*args, env=None):
    return subprocess.run([sys.executable, "-m", "torch_tpu.cli", "explain", *args], capture_output=True, text=True, timeout=600, cwd=HERE,
                          env={**os.environ, **(env or {})})


@needs_libtpu
def test_command(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text("import torch\ndef make():\n    return torch.nn.Linear(8, 4), torch.zeros(2, 8)\n")
    p = run(f"{script}:make", "--topology", "v5e", "--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html"))
    assert p.returncode == 0, p.stderr
    assert "Linear: inference" in p.stdout and "fits on v5e:2x2" in p.stdout
    assert json.loads((tmp_path / "r.json").read_text())["targets"][0]["compiles"]
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    p = run("aot_models:not_static", "--topology", "v5e")
    assert p.returncode == 1 and re.search(r"aot_models\.py:\d+ in forward: if x\.sum\(\) > 0", p.stdout)


def test_command_says_what_is_wrong(tmp_path):
    p = run("no.such.module:f")
    assert p.returncode == 2 and "cannot import no.such.module" in p.stderr
    (tmp_path / "empty.py").write_text("")
    p = run(str(tmp_path / "empty.py"))
    assert p.returncode == 2 and "has no make or explain" in p.stderr


def test_without_the_compiler(monkeypatch):
    monkeypatch.setattr(aot.compiler._plugin, "tpu_plugin", lambda: None)
    with pytest.raises(aot.CompilerMissing, match="pip install libtpu"):
        aot.compile(lambda x: x + 1, (torch.zeros(2),))


def test_command_without_the_compiler(monkeypatch, capsys):
    from torch_tpu import cli

    monkeypatch.setattr(aot.compiler._plugin, "tpu_plugin", lambda: None)
    monkeypatch.setattr(sys, "argv", ["torch-tpu", "explain", os.path.join(HERE, "aot_models.py"), "--topology", "v5e"])
    with pytest.raises(SystemExit) as e:
        sys.exit(cli.main())
    assert e.value.code == 2 and "pip install libtpu" in capsys.readouterr().err
