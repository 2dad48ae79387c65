"""Runs PyTorch's database of optimizers (OptimizerInfo) on the tpu device against the CPU.

    python test/python/optimizer_driver.py --optimizers 'Adam|SGD' --dtypes float32 --kinds default,foreach

Kinds: default, foreach, fused, capturable (five steps of each configuration in the database: parameters and state
against the CPU's plain loop), differentiable (one step, gradients through it). See sweep.py for the verdicts.
"""
import argparse
import copy
import re
import sys

import sweep
from sweep import Mismatch, to_device

KINDS = ("default", "foreach", "fused", "capturable", "differentiable")


def _applies(info, kind):
    if kind == "default":
        return True
    return info.has_capturable_arg if kind == "capturable" else kind in info.supported_impls


def _worker():
    import warnings

    warnings.filterwarnings("ignore")
    import torch
    from torch.testing._internal.common_optimizers import optim_db

    by_name = {o.optim_cls.__name__: o for o in optim_db}
    SHAPES = ((4, 3), (3, 5), (6, 2))

    def tensors(dtype, seed):
        g = torch.Generator().manual_seed(seed)
        return [torch.randn(s, dtype=dtype, generator=g) for s in SHAPES]

    def flags(info, kind):
        return {f: f == kind for f in (*info.supported_impls, *(("capturable",) if info.has_capturable_arg else ()))}

    def train(info, kwargs, dtype, device):
        params = [t.to(device).requires_grad_(True) for t in tensors(dtype, 0)]
        opt = info.optim_cls(params, **kwargs)

        def closure():
            opt.zero_grad()
            targets = [t.to(device) for t in tensors(dtype, 1)]
            loss = sum(((p - t) ** 2).sum() for p, t in zip(params, targets))
            loss.backward()
            return loss

        for i in range(5):
            if info.step_requires_closure:
                opt.step(closure)
                continue
            for p, g in zip(params, tensors(dtype, 10 + i)):
                if info.only_supports_sparse_grads:
                    g = g * torch.tensor([i % 2 == 0] + [True] * (g.shape[0] - 1)).unsqueeze(1)
                    p.grad = g.to_sparse(1).to(device)
                else:
                    p.grad = g.to(device)
            opt.step()
        # Scalars of the state ("step", "mu_product") are on the host unless the step is capturable.
        state = [{k: v.cpu().item() if isinstance(v, torch.Tensor) and v.dim() == 0 else v for k, v in opt.state[p].items()}
                 for p in params if p in opt.state]
        return [p.detach() for p in params], state

    def through(info, kwargs, dtype, device):
        leaves = [t.to(device).requires_grad_(True) for t in tensors(dtype, 0)]
        grads = [t.to(device).requires_grad_(True) for t in tensors(dtype, 1)]
        params = [t.clone() for t in leaves]
        opt = info.optim_cls(params, **kwargs)
        for p, g in zip(params, grads):
            p.grad = g
        opt.step()
        loss = sum((p * t.to(device)).sum() for p, t in zip(params, tensors(dtype, 2)))
        loss.backward()
        return [p.detach() for p in params], [t.grad for t in leaves + grads]

    def judge(name, dtype_name, kind):
        info, dtype = by_name[name], getattr(torch, dtype_name)
        worst, n = "ok", 0
        for inp in info.optim_inputs_func(device="cpu"):
            base = dict(flags(info, ""), **copy.deepcopy(inp.kwargs))
            if kind == "differentiable" and isinstance(base.get("lr"), torch.Tensor):
                continue
            expected_kwargs = dict(base, differentiable=True) if kind == "differentiable" else base
            run = through if kind == "differentiable" else train
            try:
                expected = run(info, copy.deepcopy(expected_kwargs), dtype, "cpu")
            except Exception:
                continue  # a configuration that PyTorch itself refuses
            n += 1
            try:
                actual = run(info, to_device(dict(copy.deepcopy(base), **({kind: True} if kind != "default" else {})), "tpu"), dtype, "tpu")
                if sweep.compare(actual, expected) == "loose":
                    worst = "loose"
            except Mismatch as e:
                return "fail", n, f"{inp.desc}: {e}"
            except Exception as e:
                return "fail", n, f"{inp.desc}: {type(e).__name__}: {str(e)[:300]}"
        return (worst if n else "none"), n, ""

    sweep.serve(judge)


def _cases(args):
    from torch.testing._internal.common_optimizers import optim_db

    for o in optim_db:
        if re.search(args.optimizers, o.optim_cls.__name__):
            for d in args.dtypes.split(","):
                for k in args.kinds.split(","):
                    if _applies(o, k):
                        yield o.optim_cls.__name__, d, k


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--optimizers", default="", help="regular expression over optimizer names")
    p.add_argument("--dtypes", default="float32")
    p.add_argument("--kinds", default=",".join(KINDS))
    return sweep.main(__file__, p, _worker, _cases)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
