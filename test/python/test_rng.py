"""Random numbers: seeds, states, forks, and distributions."""
import math

import pytest
import torch
import torch.nn.functional as F

from common import DEV, same


def draw(n=8, **kw):
    return torch.rand(n, device=DEV, **kw).cpu()


def test_seed_repeats():
    torch.manual_seed(5)
    a, b = draw(), draw()
    torch.manual_seed(5)
    same([draw(), draw()], [a, b])
    assert not torch.equal(a, b)
    torch.tpu.manual_seed(5)
    same(draw(), a)
    torch.manual_seed(6)
    assert not torch.equal(draw(), a)
    assert torch.tpu.initial_seed() == 6


def test_state():
    torch.manual_seed(1)
    draw()
    state = torch.tpu.get_rng_state()
    a = [draw(), torch.randn(3, device=DEV).cpu(), F.dropout(torch.ones(9, device=DEV)).cpu()]
    torch.tpu.set_rng_state(state)
    same([draw(), torch.randn(3, device=DEV), F.dropout(torch.ones(9, device=DEV))], a)
    assert state.device.type == "cpu" and state.dtype == torch.uint8
    assert len(torch.tpu.get_rng_state_all()) == torch.tpu.device_count()


def test_fork():
    torch.manual_seed(2)
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        inside = draw()
    same(draw(), inside)


def test_generators():
    g = torch.Generator(DEV).manual_seed(3)
    h = torch.Generator(device=DEV).manual_seed(3)
    torch.manual_seed(0)
    before = torch.tpu.get_rng_state()
    a = draw(generator=g)
    same(torch.tpu.get_rng_state(), before)
    same(draw(generator=h), a)
    state = g.get_state()
    b = draw(generator=g)
    g.set_state(state)
    same(draw(generator=g), b)
    same(draw(generator=g.clone_state()) if hasattr(g, "clone_state") else draw(generator=h), draw(generator=g) if hasattr(g, "clone_state") else b)
    assert g.device.type == "tpu" and g.initial_seed() == 3
    with pytest.raises(RuntimeError, match="[Ee]xpected a.*generator|device type"):
        torch.rand(3, device=DEV, generator=torch.Generator())


def test_devices_have_their_own():
    torch.manual_seed(4)
    a = draw()
    b = torch.rand(8, device="tpu:1").cpu()
    torch.manual_seed(4)
    same(torch.rand(8, device="tpu:1"), b)
    same(draw(), a)


def test_cpu_stream_is_untouched():
    torch.manual_seed(8)
    torch.rand(3, device=DEV)
    a = torch.rand(3)
    torch.manual_seed(8)
    same(torch.rand(3), a)


KS = 1.95 / math.sqrt(20000)  # p about 0.001; the seed is fixed


@pytest.mark.parametrize("name,make,cdf", [
    ("rand", lambda n: torch.rand(n, device=DEV), lambda x: x),
    ("randn", lambda n: torch.randn(n, device=DEV), lambda x: torch.special.ndtr(x)),
    ("normal_", lambda n: torch.empty(n, device=DEV).normal_(2, 3), lambda x: torch.special.ndtr((x - 2) / 3)),
    ("uniform_", lambda n: torch.empty(n, device=DEV).uniform_(-1, 3), lambda x: (x + 1) / 4),
    ("exponential_", lambda n: torch.empty(n, device=DEV).exponential_(2.0), lambda x: 1 - torch.exp(-2 * x)),
    ("cauchy_", lambda n: torch.empty(n, device=DEV).cauchy_(), lambda x: torch.atan(x) / math.pi + 0.5),
    ("log_normal_", lambda n: torch.empty(n, device=DEV).log_normal_(1, 2), lambda x: torch.special.ndtr((torch.log(x) - 1) / 2)),
    ("gamma", lambda n: torch._standard_gamma(torch.full((n,), 2.0, device=DEV)), lambda x: torch.special.gammainc(torch.tensor(2.0, dtype=x.dtype), x)),
])
def test_distribution(name, make, cdf):
    torch.manual_seed(12)
    n = 20000
    u = cdf(make(n).cpu().double()).sort().values
    grid = torch.arange(1, n + 1, dtype=torch.float64) / n
    assert max((grid - u).max().item(), (u - grid + 1 / n).max().item()) < KS
    u = cdf(make(n).cpu().double())
    assert abs(torch.corrcoef(torch.stack([u[:-1], u[1:]]))[0, 1].item()) < 0.03


def test_discrete():
    torch.manual_seed(3)
    x = torch.randint(2, 7, (10000,), device=DEV)
    counts = torch.bincount(x.cpu())
    assert x.dtype == torch.int64 and counts[:2].sum() == 0 and len(counts) == 7 and (counts[2:] - 2000).abs().max() < 250
    b = torch.bernoulli(torch.full((10000,), 0.3, device=DEV)).mean().item()
    assert abs(b - 0.3) < 0.02
    p = torch.randperm(100, device=DEV).cpu()
    assert p.sort().values.tolist() == list(range(100)) and p.tolist() != list(range(100))
    m = torch.multinomial(torch.tensor([0.1, 0.0, 0.9], device=DEV), 5000, replacement=True)
    c = torch.bincount(m.cpu(), minlength=3)
    assert c[1] == 0 and abs(c[0] / 5000 - 0.1) < 0.02
    assert sorted(torch.multinomial(torch.ones(6, device=DEV), 6).tolist()) == list(range(6))
    po = torch.poisson(torch.full((5000,), 3.0, device=DEV))
    assert abs(po.mean().item() - 3) < 0.15 and abs(po.var().item() - 3) < 0.3


def test_dropout():
    x = torch.ones(10000, device=DEV, requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = (y != 0).float().mean().item()
    assert abs(kept - 0.75) < 0.02
    y.sum().backward()
    same(x.grad, y)
    same(F.dropout(x, 0.5, training=False), torch.ones(10000))
    assert F.dropout(x, 1.0).abs().sum().item() == 0
    z = F.dropout2d(torch.ones(4, 8, 3, 3, device=DEV), 0.5).flatten(2)
    assert ((z == 0).all(2) | (z == 2).all(2)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtypes(dtype):
    torch.manual_seed(1)
    x = torch.rand(4000, dtype=dtype, device=DEV)
    assert x.dtype == dtype and 0 <= x.min().item() and x.max().item() < 1 and abs(x.float().mean().item() - 0.5) < 0.03
    n = torch.randn(4000, dtype=dtype, device=DEV)
    assert n.dtype == dtype and abs(n.float().std().item() - 1) < 0.05


def test_torch_distributions():
    torch.manual_seed(1)
    from torch import distributions as D

    loc = torch.zeros((), device=DEV)
    for d in (D.Normal(loc, loc + 1), D.Gamma(loc + 2, loc + 1), D.Beta(loc + 2, loc + 2), D.Categorical(logits=torch.zeros(4, device=DEV)),
              D.Dirichlet(torch.ones(3, device=DEV)), D.MultivariateNormal(torch.zeros(2, device=DEV), torch.eye(2, device=DEV))):
        s = d.sample((500,))
        assert s.device.type == "tpu" and torch.isfinite(d.log_prob(s)).all()
        assert torch.allclose(s.float().mean(0).cpu(), (d.mean if not isinstance(d, D.Categorical) else loc + 1.5).cpu(), atol=0.2)
