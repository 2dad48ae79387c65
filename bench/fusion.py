"""What deferring and fusing is worth: strict, fused, compiled and torch CPU eager in one run, as ratios.

    python bench/fusion.py                       # all programs, full size
    python bench/fusion.py --programs mlp,chain --modes strict,fused
    python bench/fusion.py --programs gpt --shrink 4

Of each program and mode: the median wall and CPU time of a steady step, the time of the first three, the peak of device bytes in a
steady step, executions and compiles of the last step. Last, the host time that recording one operation takes: a long
chain that nothing reads.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from train_steps import gpt, mlp, resnet, timed, training


def chain(device, shrink):
    x = torch.linspace(-1, 1, 1024 * 1024).reshape(1024, 1024).to(device)

    def body(x):
        for _ in range(10):
            x = torch.sin(x) * 1.01 + 0.1
        return x
    return body, lambda f: lambda: float(f(x)[0, 0])


def of_model(make, shrinks=False):
    def program(device, shrink):
        model, loss_of, optimizer = make(device, shrink) if shrinks else make(device)
        return model, lambda m: training(m, loss_of, optimizer)
    return program


def cnn(device):
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                          nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10)).to(device)
    x, y = torch.randn(96, 1, 28, 28).to(device), torch.randint(0, 10, (96,)).to(device)
    return model, lambda m: F.cross_entropy(m(x), y), torch.optim.Adam(model.parameters(), lr=1e-3)


PROGRAMS = {"mlp": of_model(mlp), "chain": chain, "cnn": of_model(cnn), "gpt": of_model(gpt, shrinks=True), "resnet": of_model(resnet)}


def run(name, mode, steps, shrink):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = "cpu" if mode == "cpu" else "tpu"
    part, make = PROGRAMS[name](device, shrink)
    if mode == "fused":
        torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE)
    step = make(torch.compile(part, backend="tpu") if mode == "compiled" else part)
    out = {}

    def settled():
        if device == "tpu":
            torch.tpu.synchronize()
            out["stays"] = torch.tpu.memory_allocated()
            torch.tpu.reset_peak_memory_stats()

    wall, cpu, out["value"], gained = timed(step, mode, steps, settled)
    out.update(first=sum(wall[:3]), step=statistics.median(wall[6:]), cpu=statistics.median(cpu[6:]))
    if gained:
        out.update({k: gained[k] for k in ("executions", "compiles")}, peak=torch.tpu.max_memory_allocated())
    return out


def recording(n=2000):
    """Seconds of host time that recording one operation takes, and that the same takes strictly; best of several."""
    def best(x):
        times = []
        for _ in range(12):
            torch.tpu.synchronize()
            begin = time.perf_counter()
            for _ in range(n):
                torch.neg(x)
            times.append((time.perf_counter() - begin) / n)
        return min(times)

    with torch.no_grad():
        cpu = torch.ones(16, 16)
        begin = time.perf_counter()
        for _ in range(n):
            torch.neg(cpu)
        best_cpu = (time.perf_counter() - begin) / n
        x = torch.ones(16, 16, device="tpu")
        strict = best(x)
        with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE):
            fused = best(x)
    return {"fused": fused, "strict": strict, "cpu": best_cpu}


def child(args, *one):
    command = [sys.executable, os.path.abspath(__file__), "--steps", str(args.steps), "--shrink", str(args.shrink), "--one", *one]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip().splitlines()[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--programs", default="mlp,chain,cnn,gpt")
    p.add_argument("--modes", default="cpu,strict,fused,compiled")
    p.add_argument("--steps", type=int, default=16)
    p.add_argument("--shrink", type=int, default=1, help="divides the GPT's width, depth and length")
    p.add_argument("--one", nargs=2)
    args = p.parse_args()
    if args.one:
        print(json.dumps(recording() if args.one[0] == "recording" else run(*args.one, args.steps, args.shrink)))
        return
    for name in args.programs.split(","):
        got = {}
        for mode in args.modes.split(","):  # a process each: caches and allocators do not help one another
            r = got[mode] = child(args, name, mode)
            device = f"  peak {r['peak'] / 2**20:8.2f} MiB, stays {r['stays'] / 2**20:8.2f}  executions {r['executions']}  compiles {r['compiles']}" if "peak" in r else ""
            print(f"{name:7} {mode:9} step {r['step'] * 1e3:9.2f} ms  cpu {r['cpu'] * 1e3:9.2f} ms  first 3 {r['first']:6.2f} s{device}", flush=True)
        fused = got.get("fused")
        for mode, r in got.items():
            if fused and mode != "fused":
                peak = f"  peak {fused['peak'] / r['peak']:.2f}" if "peak" in r else ""
                print(f"{name:7} fused / {mode:9} step {fused['step'] / r['step']:.2f}  cpu {fused['cpu'] / r['cpu']:.2f}  first 3 {fused['first'] / r['first']:.2f}{peak}", flush=True)
    r = child(args, "recording", "-")
    print(f"recording an operation: {r['fused'] * 1e6:.2f} us of host time ({r['fused'] / r['strict']:.2f} of strict's call, {r['fused'] / r['cpu']:.2f} of the CPU's)")


if __name__ == "__main__":
    main()
