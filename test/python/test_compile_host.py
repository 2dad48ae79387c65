"""Tensors of the host in a compiled graph: step counters, numbers, results that belong on the CPU."""
import copy

import torch
import torch._dynamo
from torch import nn

from common import DEV, close


def whole(f):
    torch._dynamo.reset()
    return torch.compile(f, backend="tpu", fullgraph=True)


def counted(f):
    torch.tpu.synchronize()
    before = torch.tpu.counters()
    f()
    after = torch.tpu.counters()
    return {k: after[k] - before[k] for k in ("executions", "h2d", "d2h", "compiles")}


def test_step_counters_stay_on_the_host():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 2))
    sides = []
    for device in ("cpu", DEV):
        m = copy.deepcopy(model).to(device)
        opt = torch.optim.AdamW(m.parameters(), lr=0.05)
        step = torch.compile(opt.step, backend="tpu") if device == DEV else opt.step  # it breaks the graph itself, around the step
        for i in range(4):
            for k, p in enumerate(m.parameters()):
                p.grad = torch.full_like(p, i + 1.0 - k)
            told = counted(step)
        sides.append((m, opt, told))
    (reference, ropt, _), (mine, opt, told) = sides
    close(list(mine.parameters()), list(reference.parameters()), rtol=1e-4, atol=1e-5)
    states = [opt.state[p] for p in mine.parameters()]
    assert all(s["step"].device.type == "cpu" and s["step"].item() == 4 for s in states)
    close([s["exp_avg"] for s in states], [ropt.state[p]["exp_avg"] for p in reference.parameters()])
    assert told == {"executions": 1, "h2d": 1, "d2h": 0, "compiles": 0}


def test_results_that_belong_on_the_cpu():
    f = lambda a, x: (a + 1, (x * 2).cpu(), x * 3)  # noqa: E731
    a, x = torch.ones(3), torch.randn(4)
    out = whole(f)(a, x.to(DEV))
    assert [t.device.type for t in out] == ["cpu", "cpu", DEV]
    close(out, f(a, x))


def test_a_host_tensor_written_from_the_device():
    def f(log, total, x):
        log.copy_(x.sum())
        total.add_(1)
        return x * total

    args = [torch.zeros(()), torch.zeros(()), torch.randn(4)]
    mine = [args[0].clone(), args[1].clone(), args[2].to(DEV)]
    g = whole(f)
    for _ in range(2):
        expected, out = f(*args), g(*mine)
        close(out, expected)
        close(mine[:2], args[:2])
        assert mine[0].device.type == "cpu"


def test_numbers_of_several_dtypes():
    f = lambda a, b, c, d, x: (x * a + b) * c - d  # noqa: E731
    numbers = [torch.tensor(2.0), torch.tensor(3.0), torch.tensor(4, dtype=torch.int64), torch.tensor(5, dtype=torch.int64)]
    x = torch.randn(3)
    g = whole(f)
    g(*numbers, x.to(DEV))
    numbers = [n + 1 for n in numbers]
    told = counted(lambda: close(g(*numbers, x.to(DEV)), f(*numbers, x)))
    assert told["compiles"] == 0
