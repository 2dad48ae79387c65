"""Saving and loading."""
import copy
import io
import pickle

import pytest
import torch

from common import DEV, same


def roundtrip(obj, **kw):
    f = io.BytesIO()
    torch.save(obj, f)
    f.seek(0)
    return torch.load(f, **kw)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.float64, torch.uint8, torch.float8_e4m3fn])
def test_dtypes(dtype):
    x = (torch.arange(6) % 2 if dtype == torch.bool else torch.arange(6)).to(torch.float32).to(dtype)
    y = roundtrip(x.to(DEV))
    assert y.device == torch.device("tpu:0") and y.dtype == dtype
    same(y.view(torch.uint8) if dtype == torch.float8_e4m3fn else y, x.view(torch.uint8) if dtype == torch.float8_e4m3fn else x)
    if dtype != torch.float8_e4m3fn:  # PyTorch cannot pickle those outside torch.save, on the CPU either
        same(pickle.loads(pickle.dumps(x.to(DEV))), x)


def test_map_location():
    x = torch.arange(4.0, device="tpu:1")
    assert roundtrip(x).device.index == 1
    assert roundtrip(x, map_location="cpu").device.type == "cpu"
    assert roundtrip(x, map_location="tpu:0").device.index == 0
    assert roundtrip(x, map_location={"tpu:1": "tpu:2"}).device.index == 2
    assert roundtrip(x, map_location=lambda s, loc: s).device.type == "cpu"
    assert roundtrip(x.cpu(), map_location="tpu").device.type == "tpu"
    same(roundtrip(x.cpu(), map_location="tpu"), x)


def test_sharing_and_views_survive():
    x = torch.arange(12.0, device=DEV).reshape(3, 4)
    a, b = roundtrip((x, x[1:, ::2]))
    assert b.stride() == (4, 2) and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    b.fill_(7)
    assert a[1, 0].item() == 7 and a[0, 0].item() == 0
    c, d = copy.deepcopy((x, x.t()))
    d.zero_()
    assert c.sum().item() == 0 and x.sum().item() == 66


def test_module_and_optimizer():
    m = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).to(DEV)
    opt = torch.optim.AdamW(m.parameters())
    m(torch.randn(4, 3, device=DEV)).sum().backward()
    opt.step()
    saved = roundtrip({"m": m.state_dict(), "o": opt.state_dict()}, map_location="cpu")
    n = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    n.load_state_dict(saved["m"])
    same(dict(n.state_dict()), dict(m.state_dict()))
    opt2 = torch.optim.AdamW(n.to(DEV).parameters())
    opt2.load_state_dict(saved["o"])
    assert all(v["exp_avg"].device.type == "tpu" for v in opt2.state.values())
    whole = roundtrip(m, weights_only=False)
    assert next(whole.parameters()).device.type == "tpu"
    k = copy.deepcopy(m)
    same(dict(k.state_dict()), dict(m.state_dict()))
    p = copy.deepcopy(torch.nn.Parameter(torch.ones(2, device=DEV), requires_grad=False))
    assert isinstance(p, torch.nn.Parameter) and not p.requires_grad


def test_old_format_and_mmap(tmp_path):
    x = torch.arange(5.0, device=DEV)
    torch.save(x, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    same(torch.load(tmp_path / "old.pt"), x)
    torch.save(x, tmp_path / "new.pt")
    same(torch.load(tmp_path / "new.pt", mmap=True, map_location="cpu"), x)


def test_file_loads_without_us(tmp_path, python):
    torch.save({"w": torch.arange(5.0, device=DEV), "p": torch.nn.Parameter(torch.ones(2, device=DEV))}, tmp_path / "w.pt")
    out = python(f"""
import torch
assert not hasattr(torch, 'tpu')
d = torch.load({str(tmp_path / 'w.pt')!r}, map_location='cpu')
print(d['w'].tolist(), d['p'].requires_grad)
""", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert out.strip() == "[0.0, 1.0, 2.0, 3.0, 4.0] True"


def test_rng_state_and_storage():
    same(roundtrip(torch.tpu.get_rng_state()), torch.tpu.get_rng_state())
    s = torch.arange(4.0, device=DEV).untyped_storage()
    assert bytes(s.cpu()) == bytes(torch.arange(4.0).untyped_storage())
    assert roundtrip(s).device.type == "tpu"


def test_safetensors(tmp_path):
    st = pytest.importorskip("safetensors.torch")
    x = {"a": torch.arange(6.0, device=DEV).reshape(2, 3), "b": torch.ones(2, dtype=torch.bfloat16, device=DEV)}
    st.save_file(x, tmp_path / "x.safetensors")
    same(st.load_file(tmp_path / "x.safetensors"), x)
