"""Accounting of device memory, and what happens when there is none left."""
import gc

import pytest
import torch

from common import DEV

MB = 1 << 20


def allocated():
    gc.collect()
    torch.tpu.synchronize()
    return torch.tpu.memory_allocated()


def test_counts_live_tensors():
    before = allocated()
    x = torch.ones(MB, device=DEV)
    assert allocated() - before == 4 * MB
    y = x[10:]
    z = x.view(2, -1)
    assert allocated() - before == 4 * MB
    del x, y
    assert allocated() - before == 4 * MB
    del z
    assert allocated() == before


def test_peak():
    base = allocated()
    torch.tpu.reset_peak_memory_stats()
    x = torch.ones(MB, device=DEV)
    y = x + 1
    torch.tpu.synchronize()  # recorded values that die before they are needed would never take any
    del x, y
    assert torch.tpu.max_memory_allocated() >= base + 8 * MB
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() < base + 4 * MB


def test_in_place_needs_no_second_buffer():
    x = torch.ones(MB, device=DEV)
    base = allocated()
    torch.tpu.reset_peak_memory_stats()
    for _ in range(5):
        x.mul_(1.5).add_(2)
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() == base
    assert torch.tpu.max_memory_allocated() <= base + 4 * MB


def test_statistics():
    s = torch.tpu.memory_stats()
    x = torch.ones(1000, device=DEV)
    t = torch.tpu.memory_stats()
    assert t["allocated_bytes.all.allocated"] >= s["allocated_bytes.all.allocated"] + 4000
    assert t["allocation.all.current"] == s["allocation.all.current"] + 1
    del x
    u = torch.tpu.memory_stats()
    assert u["allocated_bytes.all.current"] == s["allocated_bytes.all.current"]
    assert u["allocated_bytes.all.freed"] >= t["allocated_bytes.all.freed"] + 4000
    assert "tpu:0" in torch.tpu.memory_summary()
    free, total = torch.tpu.mem_get_info()
    assert 0 < free <= total
    torch.tpu.empty_cache()


def test_devices_are_counted_apart():
    a, b = torch.tpu.memory_allocated(0), torch.tpu.memory_allocated(1)
    x = torch.ones(1000, device="tpu:1")
    assert torch.tpu.memory_allocated(0) == a and torch.tpu.memory_allocated(1) == b + 4000
    del x


def test_absurd_size():
    before = torch.tpu.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError) as e:
        x = torch.ones(1 << 46, device=DEV) + 1
        x.sum().item()
    assert "TiB" in str(e.value) or "GiB" in str(e.value) or "bytes" in str(e.value)
    assert isinstance(e.value, RuntimeError)
    assert torch.tpu.memory_stats()["num_ooms"] > before
    assert (torch.ones(3, device=DEV) + 1).sum().item() == 6  # the device goes on


def test_size_overflow():
    for d in ("cpu", DEV):
        with pytest.raises(RuntimeError):
            torch.empty(1 << 40, 1 << 40, device=d)


def test_no_leak_in_a_loop():
    def step():
        x = torch.randn(64, 64, device=DEV, requires_grad=True)
        (x @ x).relu().sum().backward()

    step()
    before = allocated()
    n = torch.tpu.memory_stats()["allocation.all.current"]
    for _ in range(20):
        step()
    assert allocated() == before and torch.tpu.memory_stats()["allocation.all.current"] == n


def test_out_of_memory_lists_the_largest_tensors_with_their_lines():
    kept = torch.ones(3, 1 << 19, device=DEV)  # made here
    line = "test_memory.py:%d in " % (test_out_of_memory_lists_the_largest_tensors_with_their_lines.__code__.co_firstlineno + 1)
    product = kept * 2
    with pytest.raises(torch.OutOfMemoryError) as e:
        (torch.ones(1 << 46, device=DEV) + 1).sum().item()
    text = str(e.value)
    assert line in text and "[3, 524288]" in text and "mul" in text, text
    assert len(text) < 4000
    assert product[2, 5].item() == 2
