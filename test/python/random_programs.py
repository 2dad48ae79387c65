"""Random programs over a few tensors, run on the CPU, strictly, deferred and fused, and compiled: equal values, aliasing, errors.

    python test/python/random_programs.py --first 0 --count 1000 [--compiled-every 25] [--seconds 600]

prints every seed that differs. A seed that failed once belongs into REGRESSIONS.
"""
import argparse
import sys
import time

import torch

REGRESSIONS = (1,)
KINDS = 20
PLAN = (8 << 20, 16, 64 << 10)  # the runtime's own


class Picker:
    """Small random numbers from a seed; the same on every device."""

    def __init__(self, seed):
        self.state = seed * 2654435761 + 12345

    def __call__(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
        return (self.state >> 33) % n


def one(kind, pick, pool, a, b, device, draws):
    """One statement. Appends to |pool|, writes into it, or returns what the host read."""
    if kind == 0:
        pool.append(a + b * 0.5)
    elif kind == 1:
        a.mul_(0.75).add_(b, alpha=0.25)
    elif kind == 2:
        a[pick(3)].sub_(1.5)
    elif kind == 3:
        a[:, pick(4)] = b[:, pick(4)] * 2
    elif kind == 4:
        pool.append(torch.tanh(a))
    elif kind == 5:
        a[1:, ::2].copy_(b[:2, 1:3].clone())
    elif kind == 6:
        pool.append(a.t().contiguous().t())
    elif kind == 7:
        return float(a[pick(3), pick(4)])
    elif kind == 8:
        # Both sides meet at a tie: a last digit that differs must not decide between two values.
        pool.append(torch.where(a > b, a - b, (b - a) * 0.5))
    elif kind == 9:
        torch.maximum(a, b, out=pool[pick(3)])
    elif kind == 10:
        pool.append((a.softmax(1) @ b.t())[:, :1] + b)
    elif kind == 11:
        pool.append(a.detach() if pick(2) else a.view_as(a))  # another tensor over the same storage
    elif kind == 12:
        pool.append(a[torch.tensor([2, 0, 1], device=device)])
    elif kind == 13:
        if draws:
            pool.append(torch.rand(3, 4, dtype=a.dtype, device=device) - a)
        else:
            pool.append(a.cumsum(pick(2)) / 4)
    elif kind == 14:
        (a + b[:, :3])  # sizes that do not match: raises
    elif kind == 15:
        (a @ b)  # raises
    elif kind == 16:
        return float(a.reshape(-1)[a.argmax()]), bool((a > b + 1e-3).any())  # not which of equals, for the same reason
    elif kind == 17:
        a.clamp_(-4, 4)
        a.fill_diagonal_(float(pick(5)))
    elif kind == 18:
        torch._foreach_mul_([pool[0], pool[1]], 0.5)
    elif kind == 19:
        a.data = (b / 2).clone() if pick(2) else a.data
    return None


def run(seed, device, draws=False, kinds=KINDS):
    """(pool on the CPU, what was read, errors, who shares whose storage)."""
    pick = Picker(seed)
    length = 5 + pick(60) if pick(4) else 5 + pick(196)
    base = torch.arange(12.0, dtype=torch.float64)
    pool = [base.reshape(3, 4).to(device) / 7, torch.ones(3, 4, dtype=torch.float64).to(device),
            torch.zeros(4, 3, dtype=torch.float64, device=device).t()]
    seen, errors = [], []
    for _ in range(length):
        kind, i, j = pick(kinds), pick(len(pool)), pick(len(pool))
        if kind in (7, 16) and pick(3):  # few reads: long regions
            kind = 4
        try:
            got = one(kind, pick, pool, pool[i], pool[j], device, draws)
            if got is not None:
                seen.append(got)
        except (RuntimeError, IndexError) as e:
            errors.append((type(e).__name__, str(e).split("\n")[0]))
        if len(pool) > 8:
            del pool[3 + pick(3)]
    shares = [(i, j) for i in range(len(pool)) for j in range(i)
              if pool[i].untyped_storage().data_ptr() == pool[j].untyped_storage().data_ptr()]
    strides = [(tuple(t.stride()), t.storage_offset()) for t in pool]
    return [t.cpu() for t in pool], seen, errors, (shares, strides)


def differs(name, got, expected, exact):
    """None, or in which respect |got| is not what was expected."""
    for part, g, e in zip(("values", "reads", "errors", "aliasing"), got, expected):
        try:
            if part in ("values", "reads"):
                torch.testing.assert_close(g, e, rtol=0 if exact else 1e-6, atol=0 if exact else 1e-8, equal_nan=True)
            elif g != e:
                raise AssertionError(f"{g} != {e}")
        except AssertionError as why:
            return f"{name}, {part}: {why}"
    return None


def check(seed, compiled=False):
    """None, or what differs for this seed. Runs the fused program at the third time."""
    from torch_tpu import _C

    modes = torch.tpu.EagerMode
    draws = seed % 5 == 4  # the CPU has another generator: such programs are compared between the modes only
    with torch.tpu.set_eager_mode(modes.DEFER_NEVER):
        torch.manual_seed(seed)
        strict = run(seed, "tpu", draws)
    if not draws:
        problem = differs("strict", strict, run(seed, "cpu"), False)
        if problem:
            return problem
    # Every other program's regions are split into several programs, as those of large values are.
    _C.defer_plan(0, 2 + seed % 9, 1) if seed % 2 else _C.defer_plan(*PLAN)
    try:
        with torch.tpu.set_eager_mode(modes.DEFER_AND_FUSE):
            for turn in range(3):
                torch.manual_seed(seed)
                problem = differs(f"deferred, turn {turn}", run(seed, "tpu", draws), strict, False)
                if problem:
                    return problem
                _C.defer_wait()
    finally:
        _C.defer_plan(*PLAN)
    return check_compiled(seed) if compiled and not draws else None


def check_compiled(seed):
    """The part of the program that has no reads and no errors, as a function of its tensors, compiled."""
    def body(x, y, z):
        pick, pool = Picker(seed), [x.clone(), y.clone(), z.clone()]
        for _ in range(5 + pick(30)):
            kind, i, j = pick(13), pick(len(pool)), pick(len(pool))
            if kind not in (7, 9, 11, 12):
                one(kind, pick, pool, pool[i], pool[j], x.device, False)
            if len(pool) > 8:
                del pool[3 + pick(3)]
        return pool

    args = [torch.arange(12.0, dtype=torch.float64).reshape(3, 4) / 7, torch.ones(3, 4, dtype=torch.float64), torch.zeros(3, 4, dtype=torch.float64)]
    torch._dynamo.reset()
    got = torch.compile(body, backend="tpu")(*(t.to("tpu") for t in args))
    return differs("compiled", ([t.cpu() for t in got],), (body(*args),), False)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--compiled-every", type=int, default=0)
    args = p.parse_args()
    torch.set_num_threads(1)
    end, failed, n = time.monotonic() + args.seconds, [], 0
    for seed in range(args.first, args.first + args.count):
        if time.monotonic() > end:
            break
        problem = check(seed, bool(args.compiled_every) and seed % args.compiled_every == 0)
        n += 1
        if problem:
            failed.append(seed)
            print(f"seed {seed}: {problem}", flush=True)
    print(f"{n} programs, {len(failed)} differ: {failed}; {torch.tpu.counters()['regions_fused']} regions ran fused", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
