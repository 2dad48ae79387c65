"""Helpers that several test files use."""
import time

import torch
from torch.utils._pytree import tree_map_only

DEV = "tpu"


def to(tree, device):
    """Copies of all tensors of |tree| on |device|; leaves stay leaves."""

    def move(t):
        return t.detach().clone().to(device).requires_grad_(t.requires_grad)

    return tree_map_only(torch.Tensor, move, tree)


def cpu(tree):
    return tree_map_only(torch.Tensor, lambda t: t.detach().cpu(), tree)


def same(actual, expected):
    """The same bits, shapes, dtypes."""
    torch.testing.assert_close(cpu(actual), cpu(expected), rtol=0, atol=0, equal_nan=True)


def close(actual, expected, rtol=1e-4, atol=1e-5):
    torch.testing.assert_close(cpu(actual), cpu(expected), rtol=rtol, atol=atol, equal_nan=True)


def counter(name):
    return torch.tpu.counters()[name]


def raised(f):
    """What |f| raises, or None."""
    try:
        f()
    except Exception as e:  # noqa: BLE001
        return e
    return None


def wait_until(condition, seconds=60):
    """Polls |condition| for a bounded time; gives its last value."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value
