"""Every architecture in the registry of transformers, small and with random weights: the tpu device against the CPU.

    python test/python/registry_driver.py --models 'llama|bert' --kinds eager,compiled
    python test/python/registry_driver.py --out results.jsonl          # resumable: finished cases are kept
    python test/python/registry_driver.py --report results.jsonl

A case is (model type, float32, kind). Kinds: eager, compiled (torch.compile(backend="tpu"), graph breaks allowed). Each runs
the model forward, and backward where its results have gradients. See registry_models.py for what is built, sweep.py for the
verdicts; "none" is a model that does not run on the CPU, or whose results there change from run to run.
"""
import argparse
import copy
import hashlib
import re
import sys

import sweep
from sweep import Mismatch

KINDS = ("eager", "compiled")
# Sums of hundreds of terms in another order, through all layers: relative to the largest element of a tensor, and for a
# gradient no less than this part of the largest gradient (those of a bias before a softmax are zero but for rounding).
FORWARD, BACKWARD, FLOOR = 1e-3, 5e-3, 1e-3


def _worker():
    import logging
    import warnings

    warnings.filterwarnings("ignore")
    import torch
    import transformers

    import registry_models as registry

    transformers.utils.logging.set_verbosity_error()
    last = [None, None]  # model type, what `reference` gave

    def step(model, feed, call):
        """Results; gradients by parameter's name, or {} when nothing has one."""
        outs = registry.tensors(call(**feed))
        wanted = {n: p for n, p in model.named_parameters() if p.requires_grad}
        roots = [t for t in outs if t.requires_grad]
        if not roots:
            return [t.detach() for t in outs], {}
        g = torch.Generator().manual_seed(3)
        weights = [torch.randn(t.shape, generator=g).to(t.device) for t in roots]
        grads = torch.autograd.grad(roots, list(wanted.values()), weights, allow_unused=True)
        return [t.detach() for t in outs], {n: x for n, x in zip(wanted, grads) if x is not None}

    def reference(kind):
        if last[0] != kind:
            last[:] = kind, None
            model, feed, words = registry.build(kind)
            note = ""
            try:
                expected = step(copy.deepcopy(model), feed, None or model.__call__)
            except Exception as e:
                with torch.no_grad():
                    expected = step(model, feed, model.__call__)
                note = f"; forward only, on the CPU: {type(e).__name__}: {str(e)[:80]}"
            with torch.no_grad():
                again = step(model, feed, model.__call__)[0]
            fixed = all(torch.equal(a, b) or bool(torch.isclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True).all()) for a, b in zip(again, expected[0]))
            last[1] = model, feed, words + note, expected, fixed
        if last[1] is None:
            raise registry.CannotBuild("see above")
        return last[1]

    def compare(name, a, e, tolerance, floor=0.0):
        a = a.cpu()
        if a.shape != e.shape or a.dtype != e.dtype:
            raise Mismatch(f"{name}: {a.dtype} {tuple(a.shape)}, CPU gives {e.dtype} {tuple(e.shape)}")
        if not e.numel():
            return
        finite = torch.isfinite(e)
        if not torch.equal(finite, torch.isfinite(a)):
            raise Mismatch(f"{name}: finite where the CPU is not, or the other way")
        a, e = a[finite].float(), e[finite].float()
        if not e.numel():
            return
        scale = max(e.abs().max().item(), floor)
        error = (a - e).abs().max().item()
        if error > tolerance * scale + 1e-6:
            raise Mismatch(f"{name}: differs by {error:.3g}, its largest element is {scale:.3g}")

    def judge(kind, _, mode):
        try:
            model, feed, words, expected, fixed = reference(kind)
        except registry.CannotBuild as e:
            return "none", 0, str(e)
        if not fixed:
            return "none", 0, "its results change from run to run: " + words
        said = []
        handler = logging.Handler()
        handler.emit = lambda record: said.append(record.getMessage()) if "op by op" in record.getMessage() else None
        logging.getLogger("torch_tpu._compile").addHandler(handler)
        try:
            torch._dynamo.reset()
            ours = copy.deepcopy(model).to("tpu")
            feed = {n: t.to("tpu") for n, t in feed.items()}
            call = torch.compile(ours, backend="tpu") if mode == "compiled" else ours.__call__
            if expected[1]:
                outs, grads = step(ours, feed, call)
            else:
                with torch.no_grad():
                    outs, grads = step(ours, feed, call)
            if len(outs) != len(expected[0]):
                raise Mismatch(f"{len(outs)} results, CPU gives {len(expected[0])}")
            for i, (a, e) in enumerate(zip(outs, expected[0])):
                compare(f"result {i}", a, e, FORWARD)
            if set(grads) != set(expected[1]):
                raise Mismatch(f"gradients of {sorted(set(grads) ^ set(expected[1]))[:4]} on one side only")
            largest = max((g.abs().max().item() for g in expected[1].values() if g.numel()), default=0.0)
            for n, e in expected[1].items():
                compare(f"gradient of {n}", grads[n], e, BACKWARD, FLOOR * largest)
        except Mismatch as e:
            return "fail", 1, f"{e} [{words}]"
        except Exception as e:
            lines = [line for line in str(e).splitlines() if line.strip()]
            return "fail", 1, f"{type(e).__name__}: {' '.join(lines)[:300]} [{words}]"
        finally:
            logging.getLogger("torch_tpu._compile").removeHandler(handler)
        return "ok", 1 + bool(expected[1]), words + (f"; {said[0][:160]}" if said else "")

    sweep.serve(judge)


def _cases(args):
    import registry_models as registry

    wanted = re.compile(args.models)
    # In an order that has nothing to do with names, so that a part of the sweep is a fair sample of the whole.
    order = sorted(registry.architectures(), key=lambda kind: hashlib.sha256(kind.encode()).digest())
    return [(kind, "float32", mode) for kind in order if wanted.fullmatch(kind) for mode in args.kinds.split(",")]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--models", default=".*")
    p.add_argument("--kinds", default=",".join(KINDS))
    return sweep.main(__file__, p, _worker, _cases)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
