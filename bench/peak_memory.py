"""Peak device bytes of a training step against what its live tensors need: how much eager work holds beyond them.

The need is counted from outside: after each operation, the bytes of all storages that a tensor of the program still
refers to. The peak is the device's own account, temporaries of the compiled operations included.

    python bench/peak_memory.py --models mlp,gpt,resnet
"""
import argparse

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from train_steps import gpt, mlp, resnet


class Need(TorchDispatchMode):
    """``peak``: most bytes of live device storages after any operation so far."""

    def __init__(self):
        super().__init__()
        self.live, self.peak = {}, 0

    def add(self, t):
        if isinstance(t, torch.Tensor) and t.device.type == "tpu":
            s = t.untyped_storage()
            if s._cdata not in self.live or self.live[s._cdata][0].expired():
                self.live[s._cdata] = (StorageWeakRef(s), s.nbytes())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_iter((args, kwargs, out)):
            self.add(t)
        self.live = {k: v for k, v in self.live.items() if not v[0].expired()}
        self.peak = max(self.peak, sum(n for _, n in self.live.values()))
        return out


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", default="mlp,gpt,resnet")
    known = {"mlp": mlp, "gpt": gpt, "resnet": resnet}
    print(f"{'model':8} {'need MiB':>10} {'peak MiB':>10} {'ratio':>7}")
    for name in p.parse_args().models.split(","):
        model, loss, optimizer = known[name]("tpu")

        def step():
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()

        step()
        step()
        torch.tpu.synchronize()
        need = Need()
        for t in (*model.parameters(), *model.buffers(), *tree_iter(optimizer.state_dict())):
            need.add(t)
        torch.tpu.reset_peak_memory_stats()
        step()
        torch.tpu.synchronize()
        peak = torch.tpu.max_memory_allocated()
        with need:
            step()
        print(f"{name:8} {need.peak / 2**20:10.2f} {peak / 2**20:10.2f} {peak / need.peak:7.3f}")


if __name__ == "__main__":
    main()
