"""What the sweeps over PyTorch's own databases share: cases in processes that may die, resumable results, comparisons.

A case is a triple of strings (entry, dtype, kind). A driver gives `main` the list of its cases and a worker, which calls
`serve` with a function from a case to (verdict, number of samples, reason). Verdicts: ok (torch.testing's tolerances or
the entry's own), nearer (not within them, but nowhere farther than the CPU's result from the one computed in a wider
dtype), loose (within 1e-3, what PyTorch's test_compare_cpu asks of an accelerator), fail, crash, timeout, none.
"""
import collections
import json
import os
import queue
import subprocess
import sys
import threading
import time


GOOD = ("ok", "nearer", "loose", "none")


class Mismatch(Exception):
    """A result that differs from the CPU's; the text says in what."""


# ---------------------------------------------------------------- worker
def to_device(tree, device):
    """Copies of every tensor on |device|, with the same strides and offset, and device arguments changed to it."""
    import torch
    from torch.utils._pytree import tree_map_only

    def move(t):
        t0 = t.detach()
        if t0.layout != torch.strided or t0.is_conj() or t0.is_neg() or type(t0) is not torch.Tensor:
            r = t0.to(device) if t0.device.type != device else t0.clone()
        else:  # the same strides and offset over a copy of the whole storage
            flat = torch.empty(0, dtype=t0.dtype).set_(t0.untyped_storage())
            flat = flat.to(device) if device != "cpu" else flat.clone()
            r = torch.as_strided(flat, t0.size(), t0.stride(), t0.storage_offset())
        if t.is_leaf and t.requires_grad:
            r = r.detach().requires_grad_(True)
        return r

    return tree_map_only(torch.device, lambda d: torch.device(device), tree_map_only(torch.Tensor, move, tree))


def is_nearer(actual, expected, exact):
    """Is no element of |actual| farther from |exact|, the same in a wider dtype, than the CPU's |expected| is (or than
    torch.testing's tolerances allow)? All three are dense CPU tensors of one shape."""
    import torch

    exact = exact.to(torch.complex128 if exact.is_complex() else torch.float64)
    a, e = actual.to(exact.dtype), expected.to(exact.dtype)
    finite = torch.isfinite(a) & torch.isfinite(exact)
    same = (a == e) | (torch.isnan(a) & torch.isnan(e)) | (a == exact.to(actual.dtype).to(exact.dtype))
    rtol, atol = torch.testing._comparison.default_tolerances(actual)
    off = torch.nan_to_num((e - exact).abs(), nan=0, posinf=0)  # a CPU that overflowed allows nothing
    allowed = torch.maximum(off, atol + rtol * exact.abs())
    return bool(torch.where(finite, (a - exact).abs() <= allowed, same).all())


def close(actual, expected, tolerance=None):
    """'ok' or 'loose'; raises Mismatch. |tolerance|: (atol, rtol) of the entry, or None."""
    import torch

    kw = dict(equal_nan=True, check_device=False, check_dtype=True, check_stride=False)
    try:
        torch.testing.assert_close(actual, expected, **kw)
        return "ok"
    except AssertionError as e:
        first = str(e)
    if tolerance:
        try:
            torch.testing.assert_close(actual, expected, atol=tolerance[0], rtol=tolerance[1], **kw)
            return "ok"
        except AssertionError:
            pass
    d = actual.dtype if isinstance(actual, torch.Tensor) else None
    if d in (torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float16):
        try:
            torch.testing.assert_close(actual, expected, atol=1e-3, rtol=1e-3, **kw)
            return "loose"
        except AssertionError:
            pass
    raise Mismatch(first.replace("\n", " ")[:300])


def worse(v, w):
    """The worse of two verdicts of `compare`."""
    order = ("ok", "nearer", "loose")
    return max(v, w, key=order.index)


def compare(actual, expected, tolerance=None, values=True, strides=True, anywhere=False, exact=None):
    """Trees of results: device (unless |anywhere|), dtype, shape, |strides|, |values|. 'ok', 'nearer' or 'loose'; raises
    Mismatch. |exact|: a function that gives the results computed in a wider dtype, asked for when the values differ."""
    import torch
    from torch.utils._pytree import tree_flatten

    fa, fe = tree_flatten(actual)[0], tree_flatten(expected)[0]
    if len(fa) != len(fe):
        raise Mismatch(f"{len(fa)} results, CPU gives {len(fe)}")
    verdict = "ok"
    for k, (a, e) in enumerate(zip(fa, fe)):
        if isinstance(e, torch.Tensor):
            _compare_metadata(a, e, strides, anywhere)
            if not values:
                continue
            a, e = a.detach().cpu(), e.detach()
            if e.layout != torch.strided:
                a, e = a.to_dense(), e.to_dense()
            a, e = a.resolve_conj().resolve_neg(), e.resolve_conj().resolve_neg()
            v, why = "fail", None
            try:
                v = close(a, e, tolerance)
            except Mismatch as m:
                why = m
            if v != "ok" and exact is not None and (a.is_floating_point() or a.is_complex()):
                fx = tree_flatten(exact())[0]
                if len(fx) == len(fe) and isinstance(fx[k], torch.Tensor) and fx[k].shape == e.shape and is_nearer(a, e, fx[k]):
                    v = "nearer"
            if v == "fail":
                raise why
            verdict = worse(verdict, v)
        elif values and isinstance(e, (int, float, complex, bool)):
            verdict = worse(verdict, close(a, e, tolerance))
    return verdict


def _compare_metadata(a, e, strides, anywhere):
    import torch

    if not isinstance(a, torch.Tensor):
        raise Mismatch(f"{type(a)} instead of a tensor")
    if a.device.type != "tpu" and e.layout == torch.strided and not anywhere:
        raise Mismatch(f"result on {a.device}")
    if a.dtype != e.dtype:
        raise Mismatch(f"dtype {a.dtype}, CPU gives {e.dtype}")
    if a.layout != e.layout:
        raise Mismatch(f"layout {a.layout}, CPU gives {e.layout}")
    if a.shape != e.shape:
        raise Mismatch(f"shape {tuple(a.shape)}, CPU gives {tuple(e.shape)}")
    if strides and e.layout == torch.strided and e.numel() > 0:
        sig = [(x, y) for x, y, n in zip(a.stride(), e.stride(), e.shape) if n > 1]
        if any(x != y for x, y in sig):
            raise Mismatch(f"stride {a.stride()}, CPU gives {e.stride()} for {tuple(e.shape)}")


def sample_limit():
    """At most so many samples a case; 0: all. Set by the parent's --samples."""
    return int(os.environ.get("SWEEP_SAMPLES", "0"))


def serve(judge):
    """The worker's loop: a case a line on stdin, its result a line on stdout."""
    import torch

    torch.ones(1, device="tpu").sum().item()
    for line in sys.stdin:
        case = json.loads(line)
        torch.manual_seed(0)
        before = dict(torch.tpu.fallback_counts())
        t0 = time.time()
        try:
            verdict, n, why = judge(*case)
        except Exception as e:
            verdict, n, why = "none", 0, f"no samples: {type(e).__name__}: {str(e)[:200]}"
        after = torch.tpu.fallback_counts()
        fell = sorted(k for k in after if after[k] > before.get(k, 0))
        print(json.dumps({"op": case[0], "dtype": case[1], "kind": case[2], "verdict": verdict, "samples": n, "why": why,
                          "limit": sample_limit(), "fallback": fell, "seconds": round(time.time() - t0, 2)}), flush=True)


# ---------------------------------------------------------------- parent
class _Worker:
    def __init__(self, script):
        env = dict(os.environ, TORCH_TPU_FALLBACK=os.environ.get("TORCH_TPU_FALLBACK", "off"), OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
        self.process = subprocess.Popen([sys.executable, os.path.abspath(script), "--worker"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(line)
        self.lines.put(None)

    def run(self, case, timeout):
        try:
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            self.process.kill()
            return {"verdict": "timeout", "why": f"over {timeout} s"}
        except BrokenPipeError:
            line = None
        if line is None:
            self.process.wait()
            return {"verdict": "crash", "why": f"worker ended with {self.process.returncode}"}
        return json.loads(line)


def _key(r):
    return r["op"], r["dtype"], r["kind"]


def _run(script, cases, args):
    done = {}
    if args.out and os.path.exists(args.out) and not args.fresh:
        for line in open(args.out):
            r = json.loads(line)
            done[_key(r)] = r
    cases = [tuple(c) for c in cases]
    if args.again:
        cases = [c for c in cases if c in done and done.pop(c)["verdict"] not in GOOD]
    todo = collections.deque(c for c in cases if c not in done)
    results = [done[c] for c in cases if c in done]
    out = open(args.out, "w" if args.fresh else "a") if args.out else None
    lock = threading.Lock()

    def keep(r):
        with lock:
            results.append(r)
            if out:
                out.write(json.dumps(r) + "\n")
                out.flush()
            if r["verdict"] not in ("ok", "none") or args.verbose:
                print(f"{r['verdict']:8} {r['op']} {r['dtype']} {r['kind']} {r['why'][:args.width]}", flush=True)

    def loop():
        worker, used = None, 0
        while True:
            with lock:
                if not todo:
                    break
                case = todo.popleft()
            if worker is None or used >= 150:  # a fresh process now and then: memory, and no leak hides
                if worker:
                    worker.process.kill()
                worker, used = _Worker(script), 0
            used += 1
            r = worker.run(case, args.timeout)
            if r["verdict"] in ("crash", "timeout"):
                r = dict(r, op=case[0], dtype=case[1], kind=case[2], samples=0, fallback=[], seconds=0)
                worker = None
            keep(r)
        if worker:
            worker.process.kill()

    threads = [threading.Thread(target=loop) for _ in range(args.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def report(results):
    """Prints the table of verdicts; returns how many cases failed."""
    table = collections.defaultdict(collections.Counter)
    fell = set()
    for r in results:
        table[(r["kind"], r["dtype"])][r["verdict"]] += 1
        fell.update(r["fallback"])
    for key in sorted(table):
        print(*key, dict(table[key]))
    if fell:
        print("CPU fallbacks:", ", ".join(sorted(fell)))
    good = sum(r["verdict"] in GOOD for r in results)
    print(f"{good} passed, {len(results) - good} failed")
    return len(results) - good


def main(script, parser, worker, cases):
    """A driver's command line. |cases(args)| lists its cases; returns how many failed (0 for a worker)."""
    p = parser
    p.add_argument("--worker", action="store_true")
    p.add_argument("--out", help="JSON lines; finished cases are not run again")
    p.add_argument("--fresh", action="store_true", help="forget what --out holds")
    p.add_argument("--again", action="store_true", help="only the cases that --out says did not pass")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--samples", type=int, default=0, help="at most so many of a case, spread evenly (0: all)")
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--width", type=int, default=200)
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--report")
    args = p.parse_args()
    if args.worker:
        worker()
        return 0
    os.environ["SWEEP_SAMPLES"] = str(args.samples)  # of the workers
    if args.report:
        last = {}
        for line in open(args.report):
            r = json.loads(line)
            last[_key(r)] = r
        for r in last.values():
            if r["verdict"] not in GOOD:
                print(f"{r['verdict']:8} {r['op']} {r['dtype']} {r['kind']} {r['why'][:args.width]}")
        return report(last.values())
    return report(_run(script, cases(args), args))
