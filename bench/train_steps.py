"""Training steps of small models: torch CPU, strict, fused and compiled, in one run. Prints times and ratios, and for the
device executions, compiles and core allocations of the last step.

    python bench/train_steps.py --models mlp,gpt,resnet --modes cpu,strict,fused,compiled --steps 12

Mode torch_xla needs an interpreter of its own, with torch_xla 2.9 and the torch it asks for: --xla-python PATH.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(device):
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    x, y = torch.randn(128, 784).to(device), torch.randint(0, 10, (128,)).to(device)
    return model, lambda m: F.cross_entropy(m(x), y), torch.optim.AdamW(model.parameters(), lr=1e-3)


class GPTBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.n1(x)).split(d, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(a)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary=65, d=384, layers=6, heads=6, length=256):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.blocks = nn.Sequential(*(GPTBlock(d, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))


def gpt(device, shrink=1):
    """|shrink| divides width, depth and length."""
    model = GPT(d=384 // shrink, layers=max(1, 6 // shrink), length=256 // shrink).to(device)
    x, y = (torch.randint(0, 65, (8, 256 // shrink)).to(device) for _ in range(2))
    return model, lambda m: F.cross_entropy(m(x).flatten(0, 1), y.flatten()), torch.optim.AdamW(model.parameters(), lr=3e-4)


class ResBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                                  nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o))
        self.side = nn.Identity() if stride == 1 and i == o else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return F.relu(self.body(x) + self.side(x))


def resnet(device):
    layers, i = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for o, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [ResBlock(i, o, stride), ResBlock(o, o, 1)]
        i = o
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)).to(device)
    x, y = torch.randn(32, 3, 64, 64).to(device), torch.randint(0, 10, (32,)).to(device)
    return model, lambda m: F.cross_entropy(m(x), y), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


MODELS = {"mlp": mlp, "gpt": gpt, "resnet": resnet}


def training(forward, loss_of, optimizer, end_step=lambda: None):
    """One step, as a function that gives the loss."""
    def step():
        optimizer.zero_grad()
        loss = loss_of(forward)
        loss.backward()
        optimizer.step()
        end_step()
        return loss.item()
    return step


def timed(step, mode, steps, settled=lambda: None):
    """Seconds of wall and of CPU time of each of |steps|, the last value, and what the device's counters gained in the last.
    |settled| is called before the seventh step, when everything has been compiled."""
    counters = torch.tpu.counters if mode in ("strict", "fused", "compiled") else dict
    wall, cpu, value = [], [], None
    for i in range(steps):
        if mode == "fused" and 3 <= i < 6:  # what was met twice is compiled behind the program's back
            from torch_tpu import _C

            _C.defer_wait()
        if i == 6:
            settled()
        before, w, c = counters(), time.perf_counter(), time.process_time()
        value = step()
        wall.append(time.perf_counter() - w)
        cpu.append(time.process_time() - c)
    after = counters()
    return wall, cpu, value, {k: after[k] - before[k] for k in after}


def run(name, mode, steps):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device, end_step = ("cpu" if mode == "cpu" else "tpu"), lambda: None
    if mode == "torch_xla":
        import torch_xla

        device, end_step = torch_xla.device(), torch_xla.sync
    model, loss_of, optimizer = MODELS[name](device)
    if mode == "fused":
        torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE)
    forward = torch.compile(model, backend="tpu") if mode == "compiled" else model
    wall, cpu, value, gained = timed(training(forward, loss_of, optimizer, end_step), mode, steps)
    tail = max(1, steps // 2)
    peak = torch.tpu.max_memory_allocated() / 2**20 if device == "tpu" else 0
    return {"loss": value, "first": sum(wall[:3]), "wall": statistics.median(wall[-tail:]), "cpu": statistics.median(cpu[-tail:]), "peak": peak,
            **{k: gained[k] for k in ("executions", "compiles", "allocs") if k in gained}}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--models", default="mlp")
    p.add_argument("--modes", default="cpu,strict,fused,compiled")
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--xla-python", default=sys.executable)
    p.add_argument("--one", nargs=2)
    args = p.parse_args()
    if args.one:
        print(json.dumps(run(*args.one, args.steps)))
        return
    for name in args.models.split(","):
        reference = None
        for mode in args.modes.split(","):  # a process each: caches and allocators do not help one another
            python, env = sys.executable, dict(os.environ)
            if mode == "torch_xla":
                python, env["PJRT_DEVICE"] = args.xla_python, "CPU"
            out = subprocess.run([python, os.path.abspath(__file__), "--one", name, mode, "--steps", str(args.steps)],
                                 env=env,
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
            r = json.loads(out.strip().splitlines()[-1])
            reference = reference or r
            extra = "".join(f"  {k} {r[k]}" for k in ("executions", "compiles", "allocs") if k in r)
            print(f"{name:7} {mode:9} loss {r['loss']:.5f}  step {r['wall'] * 1e3:8.1f} ms ({r['wall'] / reference['wall']:.2f}x)  "
                  f"cpu {r['cpu'] * 1e3:8.1f} ms ({r['cpu'] / reference['cpu']:.2f}x)  first 3 {r['first']:.2f} s  peak {r['peak']:.0f} MiB{extra}", flush=True)


if __name__ == "__main__":
    main()
