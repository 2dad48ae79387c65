"""Devices, guards, indices, and PyTorch's device-neutral names."""
import threading

import pytest
import torch

from common import DEV, same


def test_names():
    assert torch.tpu.is_available() and torch.tpu.device_count() >= 1
    assert torch._C._get_privateuse1_backend_name() == "tpu"
    assert torch.device("tpu").type == "tpu" and torch.device("tpu:1").index == 1
    x = torch.ones(2, device=DEV)
    assert x.is_tpu and x.device == torch.device("tpu:0") and x.get_device() == 0
    assert not torch.ones(2).is_tpu
    assert torch.ones(2).tpu().device.type == "tpu"
    assert torch.nn.Linear(2, 2).tpu().weight.device.type == "tpu"
    assert torch.tpu.get_device_name(0)
    assert torch.tpu.get_device_properties(0).name == torch.tpu.get_device_name(0)


def test_accelerator():
    a = torch.accelerator
    assert a.is_available() and a.current_accelerator().type == "tpu"
    assert a.device_count() == torch.tpu.device_count()
    assert a.current_device_index() == 0
    a.set_device_index(1)
    try:
        assert torch.tpu.current_device() == 1
        assert torch.ones(1, device=DEV).device.index == 1
    finally:
        a.set_device_index(0)
    with a.device_index(2):
        assert a.current_device_index() == 2
    assert a.current_device_index() == 0
    a.synchronize()
    assert a.memory_allocated() == torch.tpu.memory_allocated()
    assert a.current_stream().device.type == "tpu"


def test_guards_nest():
    with torch.tpu.device(1):
        assert torch.empty(1, device=DEV).device.index == 1
        with torch.tpu.device("tpu:2"):
            assert torch.empty(1, device=DEV).device.index == 2
            with torch.tpu.device(None), torch.tpu.device(-1):
                assert torch.tpu.current_device() == 2
        assert torch.tpu.current_device() == 1
    assert torch.tpu.current_device() == 0
    with torch.tpu.device_of(torch.ones(1, device="tpu:3")):
        assert torch.tpu.current_device() == 3
    with torch.tpu.device_of(torch.ones(1)):
        assert torch.tpu.current_device() == 0
    with torch.device("tpu:1"):
        assert torch.zeros(2).device == torch.device("tpu:1")
    with pytest.raises(ZeroDivisionError):
        with torch.tpu.device(1):
            1 / 0
    assert torch.tpu.current_device() == 0


def test_default_device():
    torch.set_default_device("tpu")
    try:
        assert torch.randn(2).device.type == "tpu" and torch.tensor([1]).device.type == "tpu"
        assert torch.nn.Linear(2, 3).weight.device.type == "tpu"
    finally:
        torch.set_default_device(None)
    assert torch.randn(2).device.type == "cpu"


@pytest.mark.parametrize("make", [
    lambda: torch.ones(1, device="tpu:99"),
    lambda: torch.ones(1).to("tpu:99"),
    lambda: torch.tpu.set_device(99),
    lambda: torch.tpu.device(99).__enter__(),
])
def test_bad_index(make):
    with pytest.raises((RuntimeError, AssertionError), match="99"):
        make()
    assert torch.tpu.current_device() == 0


def test_bad_properties_and_wrong_kind():
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.tpu.get_device_properties(99)
    with pytest.raises(ValueError, match="tpu"):
        torch.tpu.set_device("cpu")


def test_devices_are_distinct():
    a, b = torch.full((3,), 1.0, device="tpu:0"), torch.full((3,), 2.0, device="tpu:1")
    with pytest.raises(RuntimeError, match="same device"):
        a + b
    same(a + b.to("tpu:0"), torch.full((3,), 3.0))
    same(b.to(a.device), torch.full((3,), 2.0))
    c = torch.empty(3, device="tpu:1")
    c.copy_(a)
    a += 10
    same(c, torch.ones(3))
    with torch.tpu.device(1):
        same((b * 2), torch.full((3,), 4.0))
        assert (b * 2).device.index == 1
        assert torch.arange(3, device=DEV).device.index == 1
    d = torch.randn(4, 6, device="tpu:2")
    same(d.t()[1:].to("tpu:3"), d.cpu().t()[1:])


def test_training_on_the_last_device():
    index = torch.tpu.device_count() - 1
    m = torch.nn.Linear(3, 2).to(f"tpu:{index}")
    m(torch.ones(2, 3, device=f"tpu:{index}")).sum().backward()
    assert m.weight.grad.device.index == index
    same(m.bias.grad, torch.full((2,), 2.0))


def test_current_device_is_per_thread():
    seen = []

    def work():
        seen.append(torch.tpu.current_device())
        torch.tpu.set_device(2)
        seen.append(torch.ones(1, device=DEV).device.index)

    torch.tpu.set_device(1)
    try:
        t = threading.Thread(target=work)
        t.start()
        t.join()
        assert seen == [0, 2] and torch.tpu.current_device() == 1
    finally:
        torch.tpu.set_device(0)


def test_printing():
    x = torch.tensor([[1.0, float("nan")], [float("inf"), -2.5]], device=DEV)
    assert repr(x) == repr(x.cpu())[:-1] + ", device='tpu:0')"
    assert "device='tpu:0'" in repr(torch.ones(0, device=DEV))
    assert repr(torch.ones(2, device=DEV, requires_grad=True)) == "tensor([1., 1.], device='tpu:0', requires_grad=True)"
    assert f"{torch.tensor(2.5, device=DEV):.2f}" == "2.50"


def test_python_protocols():
    x = torch.arange(4, device=DEV)
    assert len(x) == 4 and [int(v) for v in x] == [0, 1, 2, 3] and x.tolist() == [0, 1, 2, 3]
    assert 2 in x and 9 not in x
    assert list(range(5))[torch.tensor(3, device=DEV)] == 3
    assert bool(torch.tensor(True, device=DEV)) and not torch.tensor(0.0, device=DEV)
    with pytest.raises(TypeError, match="convert tpu:0 device type tensor to numpy"):
        x.numpy()
    assert x.cpu().numpy().sum() == 6


def test_from_numpy_like_sources():
    import numpy as np

    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    same(torch.as_tensor(a, device=DEV), torch.from_numpy(a))
    same(torch.tensor([[1, 2], [3, 4]], device=DEV), torch.tensor([[1, 2], [3, 4]]))
    same(torch.from_numpy(a.T).to(DEV), torch.from_numpy(a).T)
