"""Streams and events."""
import pytest
import torch

from common import DEV, same


def test_event_timing():
    a, b = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    x = torch.randn(256, 256, device=DEV)
    a.record()
    for _ in range(3):
        x = x @ x
    b.record()
    b.synchronize()
    assert a.query() and b.query()
    assert a.elapsed_time(b) > 0
    assert isinstance(a, torch.tpu.Event) and isinstance(a, torch.Event)


def test_events_without_timing():
    a, b = torch.tpu.Event(), torch.tpu.Event()
    a.record()
    b.record()
    with pytest.raises((RuntimeError, ValueError)):
        a.elapsed_time(b)


def test_streams():
    s = torch.tpu.Stream()
    before = torch.tpu.current_stream()
    assert s != before
    x = torch.ones(4, device=DEV)
    s.wait_stream(before)
    with torch.tpu.stream(s):
        assert torch.tpu.current_stream() == s
        y = x * 2
        y.record_stream(s)
    assert torch.tpu.current_stream() == before
    before.wait_stream(s)
    same(y + x, torch.full((4,), 3.0))
    e = s.record_event()
    e.wait()
    s.wait_event(e)
    s.synchronize()
    assert s.query()


def test_streams_of_other_devices():
    s = torch.tpu.Stream("tpu:1")
    assert s.device.index == 1
    with torch.tpu.stream(s):
        assert torch.tpu.current_device() == 1
        y = torch.ones(2, device="tpu:1") + 1
    assert torch.tpu.current_device() == 0
    same(y, torch.full((2,), 2.0))
    assert torch.tpu.default_stream(1).device.index == 1


def test_generic_names():
    s = torch.Stream(device=DEV)
    with s:
        assert torch.accelerator.current_stream() == s
        x = torch.ones(2, device=DEV)
    assert torch.accelerator.current_stream() != s
    e = torch.Event(DEV)
    s.record_event(e)
    e.synchronize()
    same(x, torch.ones(2))
    assert hash(torch.tpu.current_stream()) == hash(torch.tpu.current_stream())


def test_non_blocking_copies():
    x = torch.arange(1000.0).pin_memory()
    y = x.to(DEV, non_blocking=True)
    z = torch.empty(1000).pin_memory()
    z.copy_(y * 2, non_blocking=True)
    torch.tpu.synchronize()
    same(z, torch.arange(1000.0) * 2)
    src = torch.ones(1000)
    dst = src.to(DEV, non_blocking=True)
    src.fill_(5)  # the copy must have been taken already
    same(dst, torch.ones(1000))
