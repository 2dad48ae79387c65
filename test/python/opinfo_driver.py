"""Runs PyTorch's own operator database (OpInfo) on the tpu device against the CPU, every case in a process that may die.

    python test/python/opinfo_driver.py --ops 'add|mul' --dtypes float32,int64 --kinds forward,variants,grad,error
    python test/python/opinfo_driver.py --dtypes float32 --out results.jsonl      # resumable: finished cases are kept
    python test/python/opinfo_driver.py --report results.jsonl                     # summary and gap list

A case is (operator entry, dtype, kind). Kinds:
  forward   every sample, and each again with non-contiguous inputs: values, dtype, shape, strides
  variants  in-place and out= forms
  grad      first-order gradients of every sample that supports them
  error     OpInfo's error inputs: type of the exception, and its message against OpInfo's pattern
Verdicts: ok (torch.testing's tolerances or the entry's own overrides), loose (within 1e-3, what PyTorch's
test_compare_cpu asks of an accelerator), fail, crash, timeout, none (no sample applies).
Entries whose CPU result changes from run to run (random ones) and uninitialised ones are compared in metadata only.
"""
import argparse
import collections
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time

KINDS = ("forward", "variants", "grad", "error")
UNINITIALISED = re.compile(r"^(new_|_refs\.)?empty")


# ---------------------------------------------------------------- worker
def _worker():
    import warnings

    warnings.filterwarnings("ignore")
    import torch
    from torch.testing._internal import common_methods_invocations as cmi
    from torch.testing._internal.common_device_type import tol, toleranceOverride  # noqa: F401
    from torch.utils._pytree import tree_flatten, tree_map_only

    torch.manual_seed(0)
    torch.ones(1, device="tpu").sum().item()
    by_name = {}
    for op in cmi.op_db:
        by_name[op.name + ("." + op.variant_test_name if op.variant_test_name else "")] = op

    def to_device(tree, device):
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

    def device_kwargs(kwargs, device):
        kwargs = dict(kwargs)
        if "device" in kwargs and kwargs["device"] is not None:
            kwargs["device"] = device
        return kwargs

    FACTORIES = ("arange", "linspace", "logspace", "eye", "empty", "empty_strided", "empty_permuted", "full", "ones", "zeros",
                 "randn", "rand", "randint", "randperm", "scalar_tensor", "tril_indices", "triu_indices", "normal", "signal.windows")

    def factory_kwargs(op, args, kwargs):
        """A call without a tensor says where its result goes."""
        tensors = any(isinstance(t, torch.Tensor) for t in tree_flatten((args, kwargs))[0])
        if not tensors and op.name.startswith(FACTORIES) and "device" not in kwargs:
            kwargs = dict(kwargs, device="tpu")
        return kwargs

    def copies(sample, device):
        args = to_device((sample.input,) + tuple(sample.args), device)
        kwargs = device_kwargs(to_device(sample.kwargs, device), device)
        return args, kwargs

    def noncontiguous(tree):
        from torch.testing._internal.common_utils import noncontiguous_like

        def alter(t):
            if t.layout != torch.strided or t.numel() < 2 or t.dim() == 0:
                return t
            r = noncontiguous_like(t.detach())
            return r.requires_grad_(t.requires_grad)

        return tree_map_only(torch.Tensor, alter, tree)

    def overrides(op, dtype):
        best = None
        for d in op.decorators:
            inner = getattr(d, "decorators", [d])
            for i in inner:
                table = getattr(i, "d", None)
                if isinstance(table, dict) and dtype in table and hasattr(table[dtype], "atol"):
                    t = table[dtype]
                    best = (max(t.atol, best[0] if best else 0), max(t.rtol, best[1] if best else 0))
        return best

    class Mismatch(Exception):
        pass

    def close(actual, expected, op, dtype):
        """'ok' or 'loose'; raises Mismatch."""
        kw = dict(equal_nan=True, check_device=False, check_dtype=True, check_stride=False)
        try:
            torch.testing.assert_close(actual, expected, **kw)
            return "ok"
        except AssertionError as e:
            first = str(e)
        extra = overrides(op, dtype)
        if extra:
            try:
                torch.testing.assert_close(actual, expected, atol=extra[0], rtol=extra[1], **kw)
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

    def compare(actual, expected, op, dtype, values, strides=True):
        fa, sa = tree_flatten(actual)
        fe, se = tree_flatten(expected)
        if len(fa) != len(fe):
            raise Mismatch(f"{len(fa)} results, CPU gives {len(fe)}")
        verdict = "ok"
        for a, e in zip(fa, fe):
            if isinstance(e, torch.Tensor):
                if not isinstance(a, torch.Tensor):
                    raise Mismatch(f"{type(a)} instead of a tensor")
                if a.device.type != "tpu" and e.layout == torch.strided and op.name != "to":
                    raise Mismatch(f"result on {a.device}")
                if a.dtype != e.dtype:
                    raise Mismatch(f"dtype {a.dtype}, CPU gives {e.dtype}")
                if a.shape != e.shape:
                    raise Mismatch(f"shape {tuple(a.shape)}, CPU gives {tuple(e.shape)}")
                if strides and e.layout == torch.strided and e.numel() > 0:
                    sig = [(x, y) for x, y, n in zip(a.stride(), e.stride(), e.shape) if n > 1]
                    if any(x != y for x, y in sig):
                        raise Mismatch(f"stride {a.stride()}, CPU gives {e.stride()} for {tuple(e.shape)}")
                if values:
                    a, e = a.detach().cpu(), e.detach()
                    if e.layout != torch.strided:
                        a, e = a.to_dense(), e.to_dense()
                    if close(a.resolve_conj().resolve_neg(), e.resolve_conj().resolve_neg(), op, dtype) == "loose":
                        verdict = "loose"
            elif values and isinstance(e, (int, float, complex, bool)):
                if close(a, e, op, dtype) == "loose":
                    verdict = "loose"
        return verdict

    torch.manual_seed(1)
    fresh = torch.get_rng_state()

    def is_random(op, sample):
        """Did the CPU draw random numbers for this sample? (OpInfo's seeding wrapper hides it: taken at its word.)"""
        if "wrapper_set_seed" in getattr(getattr(op.op, "__code__", None), "co_names", ()):
            return True
        torch.manual_seed(1)
        a, k = copies(sample, "cpu")
        op(*a, **k)
        return not torch.equal(torch.get_rng_state(), fresh)

    def run_forward(op, dtype, samples):
        worst, n = "ok", 0
        for i, s in enumerate(samples):
            try:
                random = is_random(op, s) or bool(UNINITIALISED.match(op.name))
            except Exception:
                continue
            for form in ("", "noncontiguous"):
                args, kwargs = copies(s, "cpu")
                torch.manual_seed(0)
                if form:
                    args, kwargs = noncontiguous(args), noncontiguous(kwargs)
                targs = to_device(args, "tpu")
                tkw = factory_kwargs(op, targs, device_kwargs(to_device(kwargs, "tpu"), "tpu"))
                if form:
                    targs, tkw = noncontiguous(targs), noncontiguous(tkw)
                try:
                    expected = op(*args, **kwargs)
                except Exception:
                    continue
                n += 1
                try:
                    actual = op(*targs, **tkw)
                    v = compare(actual, expected, op, dtype, not random)
                    compare(targs, args, op, dtype, not random, strides=False)
                except Mismatch as e:
                    return "fail", n, f"sample {i} {form}: {e}"
                except Exception as e:
                    return "fail", n, f"sample {i} {form}: {type(e).__name__}: {str(e)[:300]}"
                if v == "loose":
                    worst = "loose"
        return (worst if n else "none"), n, ""

    def run_variants(op, dtype, samples):
        worst, n = "ok", 0
        for i, s in enumerate(samples):
            try:
                if is_random(op, s) or UNINITIALISED.match(op.name):
                    return "none", 0, ""
            except Exception:
                continue
            inplace = op.get_inplace()
            if inplace is not None and not s.broadcasts_input:
                (args, kwargs), (targs, tkw) = copies(s, "cpu"), copies(s, "tpu")
                try:
                    with torch.no_grad():
                        expected = inplace(*args, **kwargs)
                except Exception:
                    expected = None
                if expected is not None:
                    n += 1
                    try:
                        with torch.no_grad():
                            actual = inplace(*targs, **tkw)
                        v = compare((actual, targs), (expected, args), op, dtype, True)
                        worst = "loose" if v == "loose" else worst
                    except Mismatch as e:
                        return "fail", n, f"sample {i} in-place: {e}"
                    except Exception as e:
                        return "fail", n, f"sample {i} in-place: {type(e).__name__}: {str(e)[:300]}"
            if op.supports_out:
                (args, kwargs), (targs, tkw) = copies(s, "cpu"), copies(s, "tpu")
                try:
                    with torch.no_grad():
                        expected = op(*args, **kwargs)
                    if not isinstance(expected, torch.Tensor) and not (isinstance(expected, tuple) and all(isinstance(t, torch.Tensor) for t in expected)):
                        continue
                    many = not isinstance(expected, torch.Tensor)
                    outs = [torch.empty_like(t) for t in (expected if many else (expected,))]
                    wrong = [torch.empty((3, 0), dtype=t.dtype) for t in outs]
                    with torch.no_grad():
                        op(*args, out=tuple(outs) if many else outs[0], **kwargs)
                except Exception:
                    continue
                n += 1
                try:
                    touts = [t.to("tpu") for t in wrong] if i % 2 else [torch.empty_like(t, device="tpu") for t in outs]
                    with torch.no_grad():
                        op(*targs, out=tuple(touts) if many else touts[0], **tkw)
                    v = compare(touts, outs, op, dtype, True)
                    worst = "loose" if v == "loose" else worst
                except Mismatch as e:
                    return "fail", n, f"sample {i} out=: {e}"
                except Exception as e:
                    return "fail", n, f"sample {i} out=: {type(e).__name__}: {str(e)[:300]}"
        return (worst if n else "none"), n, ""

    def leaves(tree):
        return [t for t in tree_flatten(tree)[0] if isinstance(t, torch.Tensor) and t.requires_grad]

    def run_grad(op, dtype, samples):
        worst, n = "ok", 0
        for i, s in enumerate(samples):
            try:
                if is_random(op, s):
                    return "none", 0, ""
                (args, kwargs), (targs, tkw) = copies(s, "cpu"), copies(s, "tpu")
                lc, lt = leaves((args, kwargs)), leaves((targs, tkw))
                if not lc:
                    continue
                post = s.output_process_fn_grad
                outs = [t for t in tree_flatten(post(op(*args, **kwargs)))[0] if isinstance(t, torch.Tensor) and t.requires_grad]
                if not outs:
                    continue
                torch.manual_seed(3)
                cot = [torch.randn_like(t) if not t.dtype.is_complex else torch.randn(t.shape, dtype=t.dtype) for t in outs]
                expected = torch.autograd.grad(outs, lc, cot, allow_unused=True)
            except Exception:
                continue
            n += 1
            try:
                touts = [t for t in tree_flatten(post(op(*targs, **tkw)))[0] if isinstance(t, torch.Tensor) and t.requires_grad]
                actual = torch.autograd.grad(touts, lt, [c.to("tpu") for c in cot], allow_unused=True)
                for a, e in zip(actual, expected):
                    if (a is None) != (e is None):
                        raise Mismatch("gradient is None on one side")
                    if a is not None and compare(a, e, op, dtype, True, strides=False) == "loose":
                        worst = "loose"
            except Mismatch as e:
                return "fail", n, f"sample {i}: {e}"
            except Exception as e:
                return "fail", n, f"sample {i}: {type(e).__name__}: {str(e)[:300]}"
        return (worst if n else "none"), n, ""

    def run_error(op, dtype):
        n = 0
        if op.error_inputs_func is None:
            return "none", 0, ""
        for i, ei in enumerate(op.error_inputs("tpu")):
            s = ei.sample_input
            # OpInfo's own expectation must hold on the CPU for the comparison to mean anything.
            try:
                c = to_device((s.input,) + tuple(s.args), "cpu"), device_kwargs(to_device(s.kwargs, "cpu"), "cpu")
                op(*c[0], **c[1])
                continue
            except ei.error_type as e:
                if not re.search(ei.error_regex, str(e)):
                    continue
            except Exception:
                continue
            n += 1
            try:
                op(s.input, *s.args, **s.kwargs)
                torch.tpu.synchronize()
                return "fail", n, f"error input {i}: nothing raised, expected {ei.error_type.__name__}: {ei.error_regex[:120]}"
            except ei.error_type as e:
                if not re.search(ei.error_regex, str(e)):
                    return "fail", n, f"error input {i}: message {str(e)[:150]!r} does not match {ei.error_regex[:120]!r}"
            except Exception as e:
                return "fail", n, f"error input {i}: {type(e).__name__} instead of {ei.error_type.__name__}: {str(e)[:150]}"
        return ("ok" if n else "none"), n, ""

    for line in sys.stdin:
        name, dtype_name, kind = json.loads(line)
        op, dtype = by_name[name], getattr(torch, dtype_name)
        torch.manual_seed(0)
        before = dict(torch.tpu.fallback_counts())
        t0 = time.time()
        try:
            if kind == "error":
                verdict, n, why = run_error(op, dtype)
            elif kind == "grad":
                if not op.supports_autograd or dtype not in op.supported_backward_dtypes("cpu"):
                    verdict, n, why = "none", 0, ""
                else:
                    verdict, n, why = run_grad(op, dtype, list(op.sample_inputs("cpu", dtype, requires_grad=True)))
            else:
                samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
                verdict, n, why = (run_forward if kind == "forward" else run_variants)(op, dtype, samples)
        except Exception as e:
            verdict, n, why = "none", 0, f"no samples: {type(e).__name__}: {str(e)[:200]}"
        after = torch.tpu.fallback_counts()
        fell = sorted(k for k in after if after[k] > before.get(k, 0))
        print(json.dumps({"op": name, "dtype": dtype_name, "kind": kind, "verdict": verdict, "samples": n, "why": why,
                          "fallback": fell, "seconds": round(time.time() - t0, 2)}), flush=True)


# ---------------------------------------------------------------- parent
class _Worker:
    def __init__(self):
        env = dict(os.environ, TORCH_TPU_FALLBACK=os.environ.get("TORCH_TPU_FALLBACK", "off"), OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--worker"], stdin=subprocess.PIPE,
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


def _cases(pattern, dtypes, kinds):
    import torch
    from torch.testing._internal import common_methods_invocations as cmi

    for op in cmi.op_db:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if pattern and not re.search(pattern, name):
            continue
        supported = op.supported_dtypes("cpu")
        for d in dtypes:
            if getattr(torch, d) in supported:
                for k in kinds:
                    if k != "error" or d == dtypes[0]:
                        yield name, d, k
        if "float32" in dtypes and not any(getattr(torch, d) in supported for d in dtypes):
            first = sorted(str(t)[6:] for t in supported)
            if first:
                for k in kinds:
                    yield name, first[0], k


def _run(args):
    done = {}
    if args.out and os.path.exists(args.out) and not args.fresh:
        for line in open(args.out):
            r = json.loads(line)
            done[(r["op"], r["dtype"], r["kind"])] = r
    cases = list(_cases(args.ops, args.dtypes.split(","), args.kinds.split(",")))
    todo = collections.deque(c for c in cases if c not in done)
    results = [done[c] for c in cases if c in done]
    out = open(args.out, "w" if args.fresh else "a") if args.out else None
    lock = threading.Lock()

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
                worker, used = _Worker(), 0
            used += 1
            r = worker.run(case, args.timeout)
            if r["verdict"] in ("crash", "timeout"):
                r = dict(r, op=case[0], dtype=case[1], kind=case[2], samples=0, fallback=[], seconds=0)
                worker = None
            with lock:
                results.append(r)
                if out:
                    out.write(json.dumps(r) + "\n")
                    out.flush()
                if r["verdict"] not in ("ok", "none") or args.verbose:
                    print(f"{r['verdict']:8} {r['op']} {r['dtype']} {r['kind']} {r['why'][:args.width]}", flush=True)
        if worker:
            worker.process.kill()

    threads = [threading.Thread(target=loop) for _ in range(args.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def report(results):
    table = collections.defaultdict(collections.Counter)
    fell = collections.Counter()
    for r in results:
        table[(r["kind"], r["dtype"])][r["verdict"]] += 1
        for f in r["fallback"]:
            fell[f] += 1
    for key in sorted(table):
        print(*key, dict(table[key]))
    if fell:
        print("CPU fallbacks:", ", ".join(sorted(fell)))
    good = sum(r["verdict"] in ("ok", "loose", "none") for r in results)
    print(f"{good} passed, {len(results) - good} failed")
    return len(results) - good


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--worker", action="store_true")
    p.add_argument("--ops", default="", help="regular expression over entry names")
    p.add_argument("--dtypes", default="float32")
    p.add_argument("--kinds", default="forward", help="of " + ",".join(KINDS))
    p.add_argument("--out", help="JSON lines; finished cases are not run again")
    p.add_argument("--fresh", action="store_true", help="forget what --out holds")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--width", type=int, default=200)
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--report")
    args = p.parse_args()
    if args.worker:
        return _worker()
    if args.report:
        last = {}
        for line in open(args.report):
            r = json.loads(line)
            last[(r["op"], r["dtype"], r["kind"])] = r
        for r in last.values():
            if r["verdict"] not in ("ok", "none", "loose"):
                print(f"{r['verdict']:8} {r['op']} {r['dtype']} {r['kind']} {r['why'][:args.width]}")
        return report(last.values())
    return report(_run(args))


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
