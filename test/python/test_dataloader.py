"""DataLoader: pinned memory, workers, and the default collate functions."""
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from common import DEV, same

X, Y = torch.arange(40.0).reshape(20, 2), torch.arange(20)


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"x": torch.tensor([float(i), i * i]), "name": str(i)}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pin", [False, True])
def test_loader(workers, pin):
    torch.ones(1, device=DEV)  # the runtime is up when workers are forked, as in any training loop
    seen = []
    for x, y in DataLoader(TensorDataset(X, Y), batch_size=6, num_workers=workers, pin_memory=pin):
        assert x.is_pinned() == pin
        d = x.to(DEV, non_blocking=True)
        seen.append((d * 2, y.to(DEV, non_blocking=True)))
    same(torch.cat([a for a, _ in seen]), X * 2)
    same(torch.cat([b for _, b in seen]), Y)


def test_dicts_and_persistent_workers():
    loader = DataLoader(Squares(), batch_size=4, num_workers=1, persistent_workers=True, pin_memory=True)
    for _ in range(2):
        total = sum(b["x"].to(DEV).sum().item() for b in loader)
        assert total == sum(i + i * i for i in range(8))


def test_device_tensors_as_data():
    loader = DataLoader(TensorDataset(X.to(DEV), Y.to(DEV)), batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(1))
    got = torch.cat([y for _, y in loader])
    assert got.device.type == "tpu" and sorted(got.tolist()) == list(range(20))


def test_pinned_memory():
    p = torch.ones(5).pin_memory()
    assert p.is_pinned() and not torch.ones(5).is_pinned() and p.device.type == "cpu"
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert p.pin_memory() is p
    same(p.to(DEV) + 1, torch.full((5,), 2.0))
    assert p[1:].is_pinned()
