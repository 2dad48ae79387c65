"""Forked children, spawned ones, and threads."""
import threading

import torch

from common import DEV, same


def test_fork_after_start_says_so(python):
    out = python("""
import os, sys, torch
torch.ones(1, device="tpu").item()
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    try:
        torch.ones(1, device="tpu")
        text = "nothing raised"
    except RuntimeError as e:
        text = str(e)
    os.write(w, text.encode())
    os._exit(0)
os.waitpid(pid, 0)
print(os.read(r, 4000).decode())
print((torch.ones(2, device="tpu") + 1).tolist())
""")
    assert "forked subprocess" in out and "spawn" in out and "[2.0, 2.0]" in out


def test_fork_before_start_works(python):
    out = python("""
import os, torch
torch.tpu.device_count()
pid = os.fork()
v = (torch.ones(2, device="tpu") * 3).sum().item()
if pid == 0: os._exit(0 if v == 6 else 1)
print(v, os.waitpid(pid, 0)[1])
""")
    assert out.split() == ["6.0", "0"]


def test_multiprocessing_spawn(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import torch
def work(i, q):
    q.put((torch.ones(2, device="tpu") * i).sum().item())
if __name__ == "__main__":
    import torch.multiprocessing as mp
    torch.ones(1, device="tpu")
    c = mp.get_context("spawn"); q = c.Queue()
    p = c.Process(target=work, args=(5, q)); p.start()
    print(q.get(timeout=100)); p.join(); assert p.exitcode == 0
""")
    assert python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')").strip() == "10.0"


def test_many_threads():
    errors = []

    def work(k):
        try:
            torch.tpu.set_device(k % 2)
            x = torch.full((16,), float(k), device=DEV, requires_grad=True)
            for i in range(10):
                y = (x * (i + 1)).sin().sum() + x[i % 16]
                (g,) = torch.autograd.grad(y, x)
                ref = torch.cos(torch.tensor(float(k) * (i + 1))) * (i + 1)
                assert abs(g[(i + 1) % 16].item() - ref.item()) < 1e-3 * (i + 1), (k, i)
        except Exception as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


def test_writes_of_threads_to_one_storage():
    x = torch.zeros(8, 4, device=DEV)

    def work(k):
        for _ in range(10):
            x[k].add_(k + 1)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expected = torch.zeros(8, 4)
    for k in range(4):
        expected[k] = 10 * (k + 1)
    same(x, expected)
