"""Compiled graphs and the cache on disk: a second process compiles nothing; why one missed; whose line a refusal is."""
import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch._dynamo

from common import DEV
from torch_tpu._compile import blame, missed

CHILD = """
    import sys, torch, torch.nn.functional as F
    torch.manual_seed(0)
    size, options = int(sys.argv[1]), eval(sys.argv[2])
    model = torch.nn.Sequential(torch.nn.Linear(size, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)).to("tpu")
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    x, y = torch.randn(4, size).to("tpu"), torch.tensor([0, 1, 2, 1]).to("tpu")
    f = torch.compile(lambda x, y: F.cross_entropy(model(x), y), backend="tpu", options=options)
    step = torch.compile(opt.step, backend="tpu")
    for _ in range(2):
        opt.zero_grad()
        f(x, y).backward()
        step()
    torch.tpu.synchronize()
    print(torch.tpu.counters()["compiles"])
"""


def child(cache, size=6, options="{}"):
    env = {**os.environ, "TORCH_TPU_CACHE_DIR": str(cache), "TORCH_LOGS": "torch_tpu._compile"}
    p = subprocess.run([sys.executable, "-c", textwrap.dedent(CHILD), str(size), options], env=env, capture_output=True, text=True, timeout=400)
    assert p.returncode == 0, p.stderr[-3000:]
    return int(p.stdout.split()[-1]), [line for line in p.stderr.splitlines() if "compiled a graph" in line]


def test_a_second_process_compiles_nothing(tmp_path):
    compiles, said = child(tmp_path)
    assert compiles > 0 and said and all("not been compiled with this cache before" in line for line in said)
    assert child(tmp_path) == (0, [])
    compiles, said = child(tmp_path, options="{'precision': 'high'}")
    assert len(said) == 2 and all("options: Options(" in line and "graph:" not in line for line in said)  # forward and backward
    (tmp_path / missed.FILE).unlink()
    assert child(tmp_path) == (0, [])


def test_reasons():
    a = {"graph": "g", "options": "o", "platform_version": "1"}
    assert "has not been compiled" in missed.reason(a, [{**a, "graph": "h"}])
    assert missed.reason(a, [{**a, "options": "p", "platform_version": "2"}, {**a, "platform_version": "0"}]) == "platform_version: 0 before, 1 now"
    assert "gone" in missed.reason(a, [a])
    assert "library: None before, x now" in missed.reason({**a, "library": "x"}, [a])


def test_a_torn_record_is_no_record(tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text(json.dumps({"graph": "g"}) + "\n{\"graph\": \n[1]\n")
    assert missed._known(path) == [{"graph": "g"}]
    assert missed._known(tmp_path / "none") == []


def graph_of(f, *args):
    seen = []

    def keep(gm, inputs):
        seen.append(gm)
        return gm

    from torch._dynamo.backends.common import aot_autograd

    torch._dynamo.reset()
    torch.compile(f, backend=aot_autograd(fw_compiler=keep), fullgraph=True)(*args)
    return seen[0]


def test_the_operator_that_is_refused_is_found():
    def f(x, y):
        a = x + y
        b = a.sin() * 2
        low, high = torch.aminmax(b)
        return (b - low).tan() / high, a.cos()

    gm = graph_of(f, torch.ones(3), torch.ones(3))
    for name in ("add.Tensor", "sin.default", "tan.default", "cos.default", "aminmax.default"):
        asked = []

        def refuses(prefix):
            asked.append(prefix)
            return any(str(n.target) == f"aten.{name}" for n in prefix.graph.nodes)

        node = blame.find(gm, refuses)
        assert str(node.target) == f"aten.{name}" and "in f" in node.meta["stack_trace"]
        assert len(asked) <= 6
    assert blame.find(gm, lambda prefix: True) is None  # a flag's fault, say
    assert blame.find(gm, lambda prefix: False, limit=-1) is None


def test_a_refusal_that_is_nobodys_line():
    torch._dynamo.reset()
    f = torch.compile(lambda x: x.sin() + 1, backend="tpu", options={"xla": {"xla_no_such_flag": 1}})
    with pytest.raises(Exception, match="xla_no_such_flag"):
        f(torch.ones(3, device=DEV))
