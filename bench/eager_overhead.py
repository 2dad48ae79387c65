"""Host time of single operations on small tensors, against torch CPU in the same run. Prints microseconds and ratios."""
import argparse
import statistics
import time

import torch


def measure(fn, sync, calls=2000, rounds=7):
    for _ in range(200):
        fn()
    sync()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        times.append((time.perf_counter() - start) / calls * 1e6)
        sync()
    return statistics.median(times)


def cases(device):
    a, b = torch.randn(16, 16, device=device), torch.randn(16, 16, device=device)
    s = torch.randn((), device=device)
    c = a.clone()
    return {
        "add": lambda: a + b,
        "mul by a number": lambda: a * 1.5,
        "add_": lambda: c.add_(b),
        "mm": lambda: a @ b,
        "softmax": lambda: torch.softmax(a, 1),
        "sum": lambda: a.sum(),
        "view": lambda: a.view(256),
        "transpose": lambda: a.t(),
        "empty": lambda: torch.empty(16, 16, device=device),
        "item": lambda: s.item(),
        "slice + add": lambda: a[2:5] + 1,
    }


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--calls", type=int, default=2000)
    args = p.parse_args()
    torch.set_num_threads(1)
    results = {}
    with torch.no_grad():
        cpu, tpu = cases("cpu"), cases("tpu")
        print(f"{'operation':18} {'cpu us':>8} {'tpu us':>8} {'ratio':>7}")
        for name in cpu:
            c = measure(cpu[name], lambda: None, args.calls)
            t = measure(tpu[name], torch.tpu.synchronize, args.calls)
            results[name] = (c, t)
            print(f"{name:18} {c:8.2f} {t:8.2f} {t / c:7.2f}")
    return results


if __name__ == "__main__":
    main()
