"""Runs PyTorch's own operator database (OpInfo) on the tpu device against the CPU, every case in a process that may die.

    python test/python/opinfo_driver.py --ops 'add|mul' --dtypes float32,int64 --kinds forward,variants,grad,error
    python test/python/opinfo_driver.py --dtypes float32 --out results.jsonl      # resumable: finished cases are kept
    python test/python/opinfo_driver.py --report results.jsonl                     # summary and gap list

A case is (operator entry, dtype, kind). Kinds:
  forward   every sample, and each again with non-contiguous inputs: values, dtype, shape, strides
  variants  in-place and out= forms
  grad, gradgrad, forward_ad, vmap, func   derivatives of every sample that has them: see opinfo_derivatives.py
  compiled  torch.compile(backend="tpu", fullgraph=True) of every sample; |why| says where a graph was no program
  error     OpInfo's error inputs: type of the exception, and its message against OpInfo's pattern
Verdicts: ok (torch.testing's tolerances or the entry's own overrides), nearer (not within them, but nowhere farther than
the CPU's result from the one computed in a wider dtype), loose (within 1e-3, what PyTorch's
test_compare_cpu asks of an accelerator), fail, crash, timeout, none (no sample applies).
Entries whose CPU result changes from run to run (random ones) and uninitialised ones are compared in metadata only.
"""
import argparse
import functools
import re
import sys

import sweep
from sweep import Mismatch, to_device

KINDS = ("forward", "variants", "grad", "gradgrad", "forward_ad", "vmap", "func", "error", "compiled")
# Vectors are unique up to a sign or phase: compared as OpInfo's own gradient tests do, which make them unique.
GAUGE = re.compile(r"^(linalg\.)?(svd|eigh?)$")
# PyTorch says that among equal values any index may be given (the CPU's depends on how its library sorts): the values that
# the indices pick are compared. Where `dim` stands in the arguments.
TIES = {"kthvalue": 2, "topk": 2, "median": 1, "nanmedian": 1, "mode": 1, "sort": 1, "argsort": 1}
# Where the CPU's saved statistics of halves are halves: ours are f32, as those of PyTorch's other devices are and as its meta
# kernels (and so torch.compile) say; a backward pass through statistics rounded to bf16 is off by 0.4 %.
STATISTICS = {"_batch_norm_with_update", "_native_batch_norm_legit", "native_batch_norm", "native_layer_norm"}
UNINITIALISED = re.compile(r"^(new_|_refs\.)?empty")


# ---------------------------------------------------------------- worker
def _worker():
    import warnings

    warnings.filterwarnings("ignore")
    import torch
    from torch.testing._internal import common_methods_invocations as cmi
    from torch.testing._internal.common_device_type import tol, toleranceOverride  # noqa: F401
    from torch.utils._pytree import tree_flatten, tree_map_only

    import opinfo_derivatives as derivatives

    torch.manual_seed(0)
    torch.ones(1, device="tpu").sum().item()
    by_name = {}
    for op in cmi.op_db:
        by_name[op.name + ("." + op.variant_test_name if op.variant_test_name else "")] = op

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

    def moved(op, args, device):
        if op.name == "to":  # names a device by a string
            args = tree_map_only(str, lambda name: device if name == "cpu" else name, args)
        r = to_device(args, device)
        if op.name == "tensor_split":  # PyTorch wants the indices on the CPU, whatever the device; so OpInfo gives them
            r = r[:1] + to_device(args[1:], "cpu")
        return r

    def copies(op, sample, device):
        args = moved(op, (sample.input,) + tuple(sample.args), device)
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

    def compare(actual, expected, op, dtype, values, strides=True, exact=None):
        if op.name in STATISTICS and dtype in (torch.float16, torch.bfloat16) and isinstance(actual, tuple):
            actual = tuple(a.to(e.dtype) if isinstance(a, torch.Tensor) and 0 < i < 3 else a for i, (a, e) in enumerate(zip(actual, expected)))
        return sweep.compare(actual, expected, overrides(op, dtype), values, strides, anywhere=op.name == "tensor_split", exact=exact)

    WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128, torch.float16: torch.float64,
             torch.bfloat16: torch.float64}

    def widened(t):
        return t.detach().to(WIDER.get(t.dtype, t.dtype), copy=True).requires_grad_(t.requires_grad)

    def exactly(op, args, kwargs):
        """The same call in a wider dtype, as two functions: its results, and its arguments after it. They give nothing
        where that does not run."""
        args, kwargs = tree_map_only(torch.Tensor, widened, (args, kwargs))
        kwargs = tree_map_only(torch.dtype, lambda d: WIDER.get(d, d), kwargs)

        @functools.lru_cache(maxsize=None)
        def run():
            try:
                return op(*args, **kwargs), args
            except Exception:
                return (), ()

        return lambda: run()[0], lambda: run()[1]

    torch.manual_seed(1)
    fresh = torch.get_rng_state()

    def is_random(op, sample):
        """Did the CPU draw random numbers for this sample? (OpInfo's seeding wrapper hides it: taken at its word.)"""
        if "wrapper_set_seed" in getattr(getattr(op.op, "__code__", None), "co_names", ()):
            return True
        torch.manual_seed(1)
        a, k = copies(op, sample, "cpu")
        op(*a, **k)
        return not torch.equal(torch.get_rng_state(), fresh)

    def picked(op, args, kwargs, indices):
        """The elements of the input that |indices| name, in their shape. No element is named twice."""
        x = args[0]
        if x.dim() == 0:
            return x.reshape(indices.shape)
        dim = kwargs.get("dim", args[TIES[op.name]] if len(args) > TIES[op.name] else -1)
        gone = indices.dim() < x.dim()
        if not gone and indices.shape[dim] > 1 and bool((indices.cpu().sort(dim).values.diff(dim=dim) == 0).any()):
            raise Mismatch("an index is given twice")
        found = x.gather(dim, indices.unsqueeze(dim) if gone else indices)
        return found.squeeze(dim) if gone else found

    def any_of_equals(op, args, kwargs):
        """May the indices of this call differ from the CPU's among equal values?"""
        return op.name in TIES and not kwargs.get("stable")

    def run_forward(op, dtype, samples):
        worst, n = "ok", 0
        for i, s in enumerate(samples):
            try:
                random = is_random(op, s) or bool(UNINITIALISED.match(op.name))
            except Exception:
                continue
            for form in ("", "noncontiguous"):
                args, kwargs = copies(op, s, "cpu")
                torch.manual_seed(0)
                if form:
                    args, kwargs = noncontiguous(args), noncontiguous(kwargs)
                targs = moved(op, args, "tpu")
                tkw = factory_kwargs(op, targs, device_kwargs(to_device(kwargs, "tpu"), "tpu"))
                if form:
                    targs, tkw = noncontiguous(targs), noncontiguous(tkw)
                exact, written = (None, None) if random or dtype not in WIDER else exactly(op, args, kwargs)
                try:
                    expected = op(*args, **kwargs)
                except Exception:
                    continue
                n += 1
                try:
                    actual = op(*targs, **tkw)
                    try:
                        v = compare(actual, expected, op, dtype, not random, exact=exact)
                    except Mismatch:
                        compare(actual, expected, op, dtype, False)
                        if GAUGE.match(op.name):
                            v = compare(s.output_process_fn_grad(actual), s.output_process_fn_grad(expected), op, dtype, True)
                        elif any_of_equals(op, args, kwargs):
                            ours, theirs = (actual[1], expected[1]) if isinstance(actual, tuple) else (actual, expected)
                            if isinstance(actual, tuple):
                                v = compare(actual[0], expected[0], op, dtype, True)
                            compare(picked(op, targs, tkw, ours), picked(op, args, kwargs, theirs), op, dtype, True, strides=False)
                        else:
                            raise
                    compare(targs, args, op, dtype, not random, strides=False, exact=written)
                except Mismatch as e:
                    return "fail", n, f"sample {i} {form}: {e}"
                except Exception as e:
                    return "fail", n, f"sample {i} {form}: {type(e).__name__}: {str(e)[:300]}"
                worst = sweep.worse(worst, v)
        return (worst if n else "none"), n, ""

    def inner(f):
        """The function that OpInfo's seeding wrapper calls: no compiler takes torch.manual_seed into a whole graph."""
        names = getattr(getattr(f, "__code__", None), "co_names", ())
        if names[:1] != ("wrapper_set_seed",) or len(names) < 2:
            return f
        found = f.__globals__[names[1]]
        for name in names[2:]:
            found = getattr(found, name)
        return found

    def run_compiled(op, dtype, samples):
        import logging

        import torch._dynamo

        torch._dynamo.config.capture_dynamic_output_shape_ops = torch._dynamo.config.capture_scalar_outputs = True
        whole = []  # graphs that were no program
        handler = logging.Handler()
        handler.emit = lambda record: whole.append(record.getMessage()) if "op by op" in record.getMessage() else None
        logging.getLogger("torch_tpu._compile").addHandler(handler)
        worst, n = "ok", 0
        for i, s in enumerate(samples):
            args, kwargs = copies(op, s, "cpu")
            targs = moved(op, args, "tpu")
            tkw = factory_kwargs(op, targs, device_kwargs(to_device(kwargs, "tpu"), "tpu"))
            try:
                random = is_random(op, s) or bool(UNINITIALISED.match(op.name))
                torch.manual_seed(0)
                expected = op(*args, **kwargs)
            except Exception:
                continue
            n += 1
            torch._dynamo.reset()
            f = inner(op.op)
            try:
                actual = torch.compile(lambda a, k: f(*a, **k), backend="tpu", fullgraph=True, dynamic=False)(targs, tkw)
                v = compare(actual, expected, op, dtype, not random)
                compare(targs, args, op, dtype, not random, strides=False)
            except Mismatch as e:
                return "fail", n, f"sample {i}: {e}"
            except Exception as e:
                lines = [line for line in str(e).splitlines() if line.strip()]
                return "fail", n, f"sample {i}: {type(e).__name__}: {' '.join(lines)[:400]}"
            worst = sweep.worse(worst, v)
        return (worst if n else "none"), n, whole[0][:200] if whole else ""

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
                (args, kwargs), (targs, tkw) = copies(op, s, "cpu"), copies(op, s, "tpu")
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
                        worst = sweep.worse(worst, v)
                    except Mismatch as e:
                        return "fail", n, f"sample {i} in-place: {e}"
                    except Exception as e:
                        return "fail", n, f"sample {i} in-place: {type(e).__name__}: {str(e)[:300]}"
            if op.supports_out:
                (args, kwargs), (targs, tkw) = copies(op, s, "cpu"), copies(op, s, "tpu")
                try:
                    with torch.no_grad():
                        expected = op(*args, **kwargs)
                    if not isinstance(expected, torch.Tensor) and not (isinstance(expected, tuple) and all(isinstance(t, torch.Tensor) for t in expected)):
                        continue
                    many = not isinstance(expected, torch.Tensor)
                    outs = [torch.empty_like(t) for t in (expected if many else (expected,))]
                    if i % 2:  # of another shape: resized
                        outs = [torch.empty((3, 0), dtype=t.dtype) for t in outs]
                    touts = [torch.empty_like(t, device="tpu") for t in outs]
                    with torch.no_grad():
                        op(*args, out=tuple(outs) if many else outs[0], **kwargs)
                    if any(t.shape != o.shape or not torch.allclose(t.to(o.dtype), o, equal_nan=True) for t, o in zip(expected if many else (expected,), outs)):
                        continue  # ihfftn of one dim writes nothing, lstsq resizes not all
                except Exception:
                    continue
                n += 1
                try:
                    with torch.no_grad():
                        op(*targs, out=tuple(touts) if many else touts[0], **tkw)
                    try:
                        v = compare(touts, outs, op, dtype, True)
                    except Mismatch:
                        compare(touts, outs, op, dtype, False)
                        if not GAUGE.match(op.name):
                            raise
                        post = s.output_process_fn_grad
                        v = compare(post(tuple(touts)), post(tuple(outs)), op, dtype, True)
                    worst = sweep.worse(worst, v)
                except Mismatch as e:
                    return "fail", n, f"sample {i} out=: {e}"
                except Exception as e:
                    return "fail", n, f"sample {i} out=: {type(e).__name__}: {str(e)[:300]}"
        return (worst if n else "none"), n, ""

    def run_derivative(kind, op, dtype, samples):
        worst, n = "ok", 0
        for i, s in enumerate(samples):
            def call(args, kwargs):
                return s.output_process_fn_grad(op(*args, **kwargs))

            def exact():
                try:
                    return derivatives.derive(kind, call, *tree_map_only(torch.Tensor, widened, (args, kwargs)))
                except Exception:
                    return ()

            try:
                if is_random(op, s):
                    return "none", 0, ""
                (args, kwargs), (targs, tkw) = copies(op, s, "cpu"), copies(op, s, "tpu")
                expected = derivatives.derive(kind, call, args, kwargs)
            except Exception:
                continue  # the CPU has no such derivative
            if expected is None:
                continue
            n += 1
            try:
                actual = derivatives.derive(kind, call, targs, tkw)
                if [a is None for a in actual] != [e is None for e in expected]:
                    raise Mismatch("a derivative is None on one side")
                worst = sweep.worse(worst, compare(list(actual), list(expected), op, dtype, True, strides=False, exact=exact))
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

    def some(samples):
        """All samples, or as many as asked for, spread evenly over them."""
        samples, limit = list(samples), sweep.sample_limit()
        return samples if not limit or len(samples) <= limit else [samples[i * len(samples) // limit] for i in range(limit)]

    def judge(name, dtype_name, kind):
        op, dtype = by_name[name], getattr(torch, dtype_name)
        if kind == "error":
            return run_error(op, dtype)
        if kind in derivatives.KINDS:
            if not derivatives.asked_for(kind, op, dtype):
                return "none", 0, ""
            return run_derivative(kind, op, dtype, some(op.sample_inputs("cpu", dtype, requires_grad=True)))
        samples = some(op.sample_inputs("cpu", dtype, requires_grad=False))
        return {"forward": run_forward, "variants": run_variants, "compiled": run_compiled}[kind](op, dtype, samples)

    sweep.serve(judge)


# ---------------------------------------------------------------- parent
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
            first = min((str(t)[6:] for t in supported), default="float32")  # listed for no dtype of the CPU: it says itself
            for k in kinds:
                yield name, first, k


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--ops", default="", help="regular expression over entry names")
    p.add_argument("--dtypes", default="float32")
    p.add_argument("--kinds", default="forward", help="of " + ",".join(KINDS))
    return sweep.main(__file__, p, _worker, lambda a: _cases(a.ops, a.dtypes.split(","), a.kinds.split(",")))


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
