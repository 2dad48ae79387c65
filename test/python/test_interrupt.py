"""Ctrl-C, and the end of the interpreter, with work or compilation under way: nothing hangs, nothing is lost."""
import os
import signal
import subprocess
import sys
import time

import pytest

PRELUDE = """
import os, sys, threading, torch
d = "tpu"
def ready():
    print("ready", flush=True)
"""


def start(body, **env):
    return subprocess.Popen([sys.executable, "-c", PRELUDE + body], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **env})


def finish(process, timeout=120):
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail("hangs: " + "".join(process.communicate()))


WORK = """
x, w = torch.randn(700, 700, device=d) / 30, torch.randn(700, 700, device=d) / 30
def work(n):
    y = x
    for _ in range(n):
        y = torch.tanh(y @ w)
    return y
work(1).sum().item()
"""

COMPILE = """
def compile_something(k):
    y = torch.randn(5 + k, 7, device=d)
    for i in range(2, 40):
        y = torch.cat([y, y[:1] * i]).cumsum(0).sort(0).values
    return y.sum().item()
compile_something(-1)  # PyTorch imports parts of itself here, and what Ctrl-C stops an import of stays half imported
"""


@pytest.mark.parametrize("where", ["run", "compile"])
def test_ctrl_c(where):
    body = {
        "run": WORK + "ready()\ntry:\n    while True: work(60).sum().item()\n",
        "compile": COMPILE + "ready()\ntry:\n    for k in range(10**6): compile_something(k)\n",
    }[where]
    p = start(body + "except KeyboardInterrupt:\n    pass\n"
              "print((torch.arange(4., device=d) + 1).sum().item(), flush=True)\n", TORCH_TPU_CACHE_DIR="")
    assert p.stdout.readline() == "ready\n", finish(p)
    time.sleep(0.7)
    p.send_signal(signal.SIGINT)
    out, err = finish(p)
    assert p.returncode == 0 and out.strip() == "10.0", (p.returncode, out, err)


@pytest.mark.parametrize("where", ["run", "defer", "thread"])
def test_exit_with_work_in_flight(where):
    body = {
        "run": WORK + "y = work(80)\nready()\n",
        "defer": "torch.tpu.set_eager_mode('DEFER_AND_FUSE')\n" + WORK + "for _ in range(3): y = work(20); torch.tpu.synchronize()\n"
                 "y = work(15)\nready()\n",
        "thread": WORK + COMPILE + "t = threading.Thread(target=lambda: [compile_something(k) for k in range(10**6)], daemon=True)\n"
                  "t.start(); import time; time.sleep(0.5)\nready()\n",
    }[where]
    p = start(body, TORCH_TPU_CACHE_DIR="")
    out, err = finish(p)
    assert p.returncode == 0 and out == "ready\n" and err == "", (p.returncode, out, err)
