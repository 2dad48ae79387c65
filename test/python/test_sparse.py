"""Sparse COO and CSR tensors: values, layout and gradients against the CPU, without the CPU's help."""
import pytest
import torch

DENSE = torch.tensor([[0.0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, 4, 0]])


@pytest.fixture(autouse=True)
def nothing_on_the_cpu():
    before = sum(torch.tpu.fallback_counts().values())
    yield
    assert sum(torch.tpu.fallback_counts().values()) == before


def duplicated(device):
    indices = torch.tensor([[2, 0, 2, 1, 0], [1, 3, 1, 0, 3]])
    values = torch.tensor([1.0, 2, 3, 4, -2])
    return torch.sparse_coo_tensor(indices.to(device), values.to(device), (3, 4))


def same(a, e):
    assert a.device.type == "tpu" and a.layout == e.layout and a.dtype == e.dtype and a.shape == e.shape
    if e.layout == torch.sparse_coo:
        assert a.is_coalesced() == e.is_coalesced()
        if not e.is_coalesced():  # the order of its entries, and which are split or explicit zeros, is nobody's promise
            torch.testing.assert_close(a.to_dense().cpu(), e.to_dense())
            return
        torch.testing.assert_close(a._indices().cpu(), e._indices())
        torch.testing.assert_close(a._values().cpu(), e._values())
    elif e.layout == torch.sparse_csr:
        torch.testing.assert_close(a.crow_indices().cpu(), e.crow_indices())
        torch.testing.assert_close(a.col_indices().cpu(), e.col_indices())
        torch.testing.assert_close(a.values().cpu(), e.values())
    else:
        torch.testing.assert_close(a.cpu(), e)


OPS = {
    "to_sparse": lambda d: DENSE.to(d).to_sparse(),
    "to_sparse_dim": lambda d: DENSE.to(d).to_sparse(1),
    "to_dense": lambda d: duplicated(d).to_dense(),
    "coalesce": lambda d: duplicated(d).coalesce(),
    "coalesce_bool": lambda d: duplicated(d).bool().coalesce(),
    "empty": lambda d: torch.sparse_coo_tensor(torch.empty(2, 0, dtype=torch.long, device=d), torch.empty(0, device=d), (2, 3)).coalesce(),
    "mm": lambda d: torch.sparse.mm(duplicated(d), torch.arange(8.0, device=d).reshape(4, 2)),
    "addmm": lambda d: torch.sparse.addmm(torch.ones(3, 2, device=d), duplicated(d), torch.arange(8.0, device=d).reshape(4, 2), beta=0.5, alpha=2),
    "mv": lambda d: duplicated(d) @ torch.arange(4.0, device=d),
    "add": lambda d: duplicated(d) + duplicated(d),
    "add_coalesced": lambda d: duplicated(d).coalesce() + DENSE.to(d).to_sparse(),
    "add_dense": lambda d: DENSE.to(d) + duplicated(d),
    "mul_number": lambda d: duplicated(d) * 3,
    "mul_coalesced": lambda d: duplicated(d).coalesce() * DENSE.to(d).to_sparse(),
    "mul_dense": lambda d: duplicated(d) * DENSE.to(d),
    "mul": lambda d: duplicated(d) * DENSE.to(d).to_sparse(),
    "mask": lambda d: DENSE.to(d).sparse_mask(duplicated(d).coalesce()),
    "neg": lambda d: -duplicated(d).coalesce(),
    "t": lambda d: duplicated(d).t(),
    "csr": lambda d: DENSE.to(d).to_sparse_csr(),
    "csr_to_dense": lambda d: DENSE.to(d).to_sparse_csr().to_dense(),
    "csr_made": lambda d: torch.sparse_csr_tensor(torch.tensor([0, 1, 1, 2], device=d), torch.tensor([3, 0], device=d), torch.tensor([1.0, 2], device=d), (3, 4)),
    "csr_mm": lambda d: DENSE.to(d).to_sparse_csr() @ torch.arange(8.0, device=d).reshape(4, 2),
    "csr_to_coo": lambda d: DENSE.to(d).to_sparse_csr().to_sparse(),
    "coo_to_csr": lambda d: DENSE.to(d).to_sparse().to_sparse_csr(),
    "csr_neg": lambda d: -DENSE.to(d).to_sparse_csr(),
    "csr_sgn_": lambda d: DENSE.to(d).to_sparse_csr().sgn_(),
    "csr_signbit": lambda d: torch.signbit(DENSE.to(d).to_sparse_csr()),
    "csr_mul_number": lambda d: DENSE.to(d).to_sparse_csr() * 3,
    "csr_mul_": lambda d: DENSE.to(d).to_sparse_csr().mul_(3),
    "csr_mul_dense": lambda d: DENSE.to(d).to_sparse_csr() * torch.arange(12.0, device=d).reshape(3, 4),
    "csr_add_dense": lambda d: DENSE.to(d).to_sparse_csr() + torch.ones(3, 4, device=d),
    "csr_sum": lambda d: DENSE.to(d).to_sparse_csr().sum(),
    "csr_mask": lambda d: torch.arange(12.0, device=d).reshape(3, 4).sparse_mask(DENSE.to(d).to_sparse_csr()),
    "sum": lambda d: DENSE.to(d).to_sparse().sum(),
}


@pytest.mark.parametrize("name", OPS)
def test_op(name):
    same(OPS[name]("tpu"), OPS[name]("cpu"))


def test_moves():
    s = duplicated("cpu")
    same(s.to("tpu"), s)
    assert torch.equal(s.to("tpu").cpu().to_dense(), s.to_dense())


def test_gradient():
    def grads(d):
        a = DENSE.to(d).to_sparse().requires_grad_()
        b = torch.arange(8.0, device=d).reshape(4, 2).requires_grad_()
        torch.sparse.mm(a, b).square().sum().backward()
        return a.grad.to_dense(), b.grad

    for a, e in zip(grads("tpu"), grads("cpu")):
        torch.testing.assert_close(a.cpu(), e)


@pytest.mark.parametrize("reduce", ("sum", "mean", "amax", "amin"))
def test_mm_reduce(reduce):
    def run(d):
        a = DENSE.to(d).to_sparse_csr().requires_grad_()
        b = torch.tensor([[1.0, -2], [3, 3], [-1, 5], [0, 3]], device=d).requires_grad_()
        r = torch.sparse.mm(a, b, reduce)
        return r, *torch.autograd.grad(r, (a, b), torch.arange(6.0, device=d).reshape(3, 2) - 2)

    for a, e in zip(run("tpu"), run("cpu")):
        same(a.detach(), e.detach())


def test_sampled_addmm():
    def run(d):
        a = DENSE.to(d).to_sparse_csr().requires_grad_()
        m, n = (torch.arange(6.0, device=d).reshape(3, 2).requires_grad_(), torch.arange(8.0, device=d).reshape(2, 4).requires_grad_())
        r = torch.sparse.sampled_addmm(a, m, n, beta=0.5, alpha=2)
        return r, *torch.autograd.grad(r.to_dense(), (a, m, n), torch.arange(12.0, device=d).reshape(3, 4))

    for a, e in zip(run("tpu"), run("cpu")):
        same(a.detach(), e.detach())


@pytest.mark.parametrize("call", (
    lambda c, d: torch.sparse.mm(c, d, "prod"), lambda c, d: torch.sparse.mm(c, d.t(), "sum"), lambda c, d: torch.sparse.mm(c, d.double(), "sum"),
    lambda c, d: torch.sparse.sampled_addmm(c, d, d), lambda c, d: torch.sparse.sampled_addmm(c, d.double(), d)))
def test_products_refuse(call):
    c, d = DENSE.to_sparse_csr(), torch.ones(4, 2)
    with pytest.raises(RuntimeError) as expected:
        call(c, d)
    with pytest.raises(RuntimeError) as actual:
        call(c.to("tpu"), d.to("tpu"))
    assert str(actual.value) == str(expected.value)


def test_bad_shapes():
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.sparse.mm(duplicated("tpu"), torch.ones(3, 2, device="tpu"))
