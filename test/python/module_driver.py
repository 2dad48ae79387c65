"""Runs PyTorch's database of modules (ModuleInfo) on the tpu device against the CPU, forward and backward.

    python test/python/module_driver.py --modules 'nn.(Linear|LSTM)' --dtypes float32,float64 --kinds train,eval

Kinds: train, eval (the module's mode). Every input set of the database: outputs, gradients of parameters and inputs, and
buffers after the step. Modules that draw random numbers are compared in metadata only. See sweep.py for the verdicts.
"""
import argparse
import copy
import re
import sys

import sweep
from sweep import Mismatch, to_device

KINDS = ("train", "eval")


def _worker():
    import warnings

    warnings.filterwarnings("ignore")
    import torch
    from torch.testing._internal.common_modules import module_db
    from torch.utils._pytree import tree_flatten

    by_name = {m.name: m for m in module_db}

    def step(module, call):
        """Results, then gradients of parameters and inputs, then buffers."""
        args, kwargs = call
        out = module(*args, **kwargs)
        outs = [t for t in tree_flatten(out)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        wanted = [p for p in module.parameters() if p.requires_grad]
        wanted += [t for t in tree_flatten(call)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        grads = []
        if outs and wanted:
            g = torch.Generator().manual_seed(3)
            cot = [torch.randn(t.shape, dtype=t.dtype, generator=g).to(t.device) for t in outs]
            grads = [x if x is not None else 0 for x in torch.autograd.grad(outs, wanted, cot, allow_unused=True)]
        return out, grads, list(module.buffers())

    def one(info, training, inp, dtype):
        ctor, call = inp.constructor_input, (inp.forward_input.args, inp.forward_input.kwargs)
        module = info.module_cls(*ctor.args, **ctor.kwargs).to(dtype).train(training)
        if info.is_lazy:
            module(*to_device(call, "cpu")[0])
        ours = copy.deepcopy(module).to("tpu")
        state = torch.get_rng_state()
        expected = step(module, to_device(call, "cpu"))
        random = not torch.equal(state, torch.get_rng_state())
        actual = step(ours, to_device(call, "tpu"))
        worst = sweep.compare(actual[0], expected[0], values=not random)
        for a, e in zip(actual[1:], expected[1:]):
            if sweep.compare(a, e, values=not random, strides=False) == "loose":
                worst = "loose"
        return worst

    def judge(name, dtype_name, kind):
        info, dtype, training = by_name[name], getattr(torch, dtype_name), kind == "train"
        worst, n = "ok", 0
        for i, inp in enumerate(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)):
            if inp.forward_input is None:
                continue
            n += 1
            try:
                worst = "loose" if one(info, training, inp, dtype) == "loose" else worst
            except Mismatch as e:
                return "fail", n, f"input {i} {inp.desc}: {e}"
            except Exception as e:
                return "fail", n, f"input {i} {inp.desc}: {type(e).__name__}: {str(e)[:300]}"
        return (worst if n else "none"), n, ""

    sweep.serve(judge)


def _cases(args):
    import torch
    from torch.testing._internal.common_modules import module_db

    for m in module_db:
        if re.search(args.modules, m.name):
            for d in args.dtypes.split(","):
                if getattr(torch, d) in m.supported_dtypes("cpu"):
                    for k in args.kinds.split(","):
                        yield m.name, d, k


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--modules", default="", help="regular expression over module names")
    p.add_argument("--dtypes", default="float32")
    p.add_argument("--kinds", default=",".join(KINDS))
    return sweep.main(__file__, p, _worker, _cases)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
