"""Programs shared out over a mesh (DTensor, FSDP2, expert parallelism): the same numbers as the whole one, on several
devices of the CPU plugin in this process; and for slices, by libtpu."""
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard

import aot_sharded_models as models
from torch_tpu import _C, _plugin, aot
from torch_tpu.aot import lower
from torch_tpu.aot.sharded import Mesh, trace_sharded
from torch_tpu.aot.simulate import simulate

needs_libtpu = pytest.mark.skipif(not aot.available(), reason="libtpu is not installed: pip install libtpu")
TOKENS = torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(1))


def whole(config):
    """A step of the whole model on the CPU: (model, loss, gradients by name)."""
    torch.manual_seed(0)
    model = models.Decoder(config)
    loss = models.loss(model(TOKENS), TOKENS)
    loss.backward()
    return model, loss.item(), {n: p.grad for n, p in model.named_parameters()}


def rows(rank, ranks):
    n = len(TOKENS) // ranks
    return [TOKENS[n * rank : n * rank + n]]


def check(simulated, ranks_of_batch, loss, grads):
    losses = [o[0].item() for o in simulated.outputs]
    assert sum(losses[i] for i in ranks_of_batch) / len(ranks_of_batch) == pytest.approx(loss, rel=1e-5)
    assert simulated.gradients.keys() == grads.keys()
    for name, g in grads.items():
        torch.testing.assert_close(simulated.gradients[name], g, rtol=1e-4, atol=1e-5 * g.abs().max().item(), msg=lambda m: f"{name}: {m}")  # noqa: B023


def two_dims(mesh):
    model = models.tensor_parallel(models.Decoder(models.TINY), mesh["tp"])
    models.shard(model, mesh["dp"])
    return {"model": model, "args": (torch.empty(4, 16, dtype=torch.long),), "loss": models.loss}


def test_fsdp_and_tensor_parallel_are_the_whole_model():
    """fully_shard over 2, columns, rows and sequence over 2; the vocabulary's rows are masked by rank."""
    model, loss, grads = whole(models.TINY)
    s = simulate(two_dims, {"dp": 2, "tp": 2}, dict(model.named_parameters()), lambda r: rows(r // 2, 2), train=True)
    check(s, (0, 2), loss, grads)
    assert not dist.is_initialized()


def test_expert_parallel_is_the_whole_model():
    """Qwen3-MoE-like: experts over 2 by all_to_all, their shards over 2, all else over 4."""
    model, loss, grads = whole(models.TINY_MOE)

    def make(mesh):
        return models.expert_parallel(models.Decoder(models.TINY_MOE), mesh), (torch.empty(2, 16, dtype=torch.long),)

    s = simulate(make, {"dp": 2, "ep": 2}, dict(model.named_parameters()), lambda r: rows(r, 4), train=True, loss=models.loss)
    check(s, range(4), loss, grads)


class Uneven(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 7)  # 7 rows over 4 ranks: padded

    def forward(self, x):
        return self.a(x).square().mean()


def test_a_step_with_padded_shards():
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model, x = Uneven(), torch.randn(8, 6)
    model(x).backward()
    s = simulate(lambda mesh: (fully_shard(Uneven(), mesh=mesh), (torch.empty(2, 6),)), {"dp": 4}, dict(model.named_parameters()),
                 lambda r: [x[2 * r : 2 * r + 2]], train=True, optimizer="sgd")
    for name, p in model.named_parameters():
        torch.testing.assert_close(s.updated[name], p.detach() - 1e-3 * p.grad)


# ---------------------------------------------------------------- collectives, one by one
WORLD = 4


def collective(op, *args, groups=((0, 1), (2, 3)), x=None):
    """What each of four replicas gets from row |op|."""
    x = torch.arange(WORLD * 4, dtype=torch.float32).view(WORLD, 4) if x is None else x
    g = _C.Graph(0, "cpu")
    g.group("g", [list(ids) for ids in groups])
    out = g.call(op, g.param(x.dtype, list(x.shape[1:])), *args)
    g.outputs(out)
    _, shape = g.type(out[0])
    results = [[torch.empty(shape, dtype=x.dtype)] for _ in range(WORLD)]
    _C.Replicas(_plugin.cpu_plugin().path, WORLD).run(g.text(), [[row.contiguous()] for row in x], results)
    return torch.stack([r[0] for r in results])


def test_collectives_of_groups():
    x = torch.arange(WORLD * 4, dtype=torch.float32).view(WORLD, 4)
    pairs = x.view(2, 2, 4)
    twice = lambda t: t.repeat_interleave(2, 0)  # noqa: E731
    assert torch.equal(collective("_c10d_functional::all_reduce", "sum", "g"), twice(pairs.sum(1)))
    assert torch.equal(collective("_c10d_functional::all_reduce", "avg", "g"), twice(pairs.mean(1)))
    assert torch.equal(collective("_c10d_functional::all_reduce", "max", "g"), twice(pairs.amax(1)))
    assert torch.equal(collective("_c10d_functional::all_gather_into_tensor", 2, "g"), twice(pairs.reshape(2, 8)))
    assert torch.equal(collective("_c10d_functional::reduce_scatter_tensor", "sum", 2, "g"), pairs.sum(1).view(4, 2))
    swapped = pairs.view(2, 2, 2, 2).transpose(1, 2).reshape(4, 4)
    assert torch.equal(collective("_c10d_functional::all_to_all_single", [2, 2], [2, 2], "g"), swapped)
    far = collective("_c10d_functional::all_gather_into_tensor", 2, "g", groups=((2, 0), (3, 1)))  # the group's order counts
    assert torch.equal(far[0], torch.cat((x[2], x[0]))) and torch.equal(far[3], torch.cat((x[3], x[1])))
    minus = torch.tensor([[-0.0], [1.0], [float("nan")], [2.0]])
    got = collective("_c10d_functional::broadcast", 0, "g", x=minus)
    assert got[1].signbit().item() and got[1].item() == 0 and got[3].isnan().item()  # bits, not a sum


def test_collectives_refuse():
    with pytest.raises(RuntimeError, match="no process group \"h\""):
        collective("_c10d_functional::all_reduce", "sum", "h")
    with pytest.raises(NotImplementedError, match="pieces of different sizes"):
        collective("_c10d_functional::all_to_all_single", [1, 3], [1, 3], "g")
    with pytest.raises(RuntimeError, match="cannot be divided among 3"):
        collective("_c10d_functional::reduce_scatter_tensor", "sum", 3, "g", groups=((0, 1, 2),))


# ---------------------------------------------------------------- meshes and refusals
def test_mesh():
    mesh = Mesh({"a": 2, "b": 3})
    assert mesh.world == 6 and mesh.place(4) == (1, 1) and mesh.probes() == [0, 3, 1, 5]
    assert mesh.ranks_along([0]) == [[0, 3], [1, 4], [2, 5]] and mesh.dims_of([1, 4]) == (0,) and mesh.dims_of(list(range(6))) == (0, 1)
    with pytest.raises(ValueError, match="not along dims"):
        mesh.dims_of([0, 4])
    with pytest.raises(ValueError, match="names of dims"):
        Mesh({})


def test_what_cannot_be_one_program():
    def uneven(mesh):
        w = DTensor.from_local(torch.empty(3 if mesh.get_rank() else 4, 2), mesh, [Shard(0)], run_check=False)
        model = nn.Module()
        model.w = nn.Parameter(w)
        model.forward = lambda x: (x + model.w.to_local().sum())
        return model, (torch.empty(2),)

    with pytest.raises(aot.TraceError, match="must divide evenly"):
        trace_sharded(uneven, Mesh({"x": 2}))

    class Mine(nn.Module):
        def forward(self, x):
            return x * (2.5 if dist.get_rank() else 1.5)

    with pytest.raises(aot.TraceError, match="ranks differ in an argument") as e:
        trace_sharded(lambda mesh: (Mine(), (torch.empty(2),)), Mesh({"x": 2}))
    assert "x * (2.5 if" in e.value.where


def test_hooks_of_fsdp_are_put_back():
    kept = []

    def make(mesh):
        found = two_dims(mesh)
        kept.append((found["model"], [len(m._forward_pre_hooks) + len(m._forward_hooks) for m in found["model"].modules()]))
        return found

    traced, groups, _ = trace_sharded(make, Mesh({"dp": 2, "tp": 2}), True)
    assert groups == {"dp": [[0, 2], [1, 3]], "tp": [[0, 1], [2, 3]]}
    for model, hooks in kept:
        assert [len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.modules()] == hooks
    # Gathered again in the backward pass for the layer's seven parameters, not for the root's three.
    text = lower.stablehlo(traced, groups)
    assert 7 <= text.count("stablehlo.optimization_barrier") < 7 + 2 + 3 and text.count("#a0 = dense") == 1


@needs_libtpu
def test_for_a_slice():
    r = aot.compile(two_dims, topology=["v5e:2x2", "v5e:1x1"], mesh={"dp": 2, "tp": 2}, train=True, name="tiny")
    here, small = r.targets
    assert here["compiles"] and {c["op"] for c in here["collectives"]} >= {"all-gather", "reduce-scatter"}
    assert all(c["bytes"] > 0 for c in here["collectives"]) and any(c["shape"] == "f32[32,32]" and c["bytes"] == 4096 for c in here["collectives"])
    assert "shared out over dp=2 x tp=2" in r.text() and "dp=2 x tp=2" in r.html()
    assert not small["compiles"] and "4 ranks" in small["error"]


def test_replicated_arguments():
    """DTensor arguments: each rank is given its piece."""
    def make(mesh):
        x = DTensor.from_local(torch.empty(2, 4), mesh, [Shard(0)], run_check=False)
        y = DTensor.from_local(torch.empty(4), mesh, [Replicate()], run_check=False)
        model = nn.Module()
        model.forward = lambda x, y: (x * y).sum(0).full_tensor()
        return model, (x, y)

    x, y = torch.randn(8, 4), torch.randn(4)
    s = simulate(make, {"dp": 4}, {}, lambda r: [x, y])
    for out in s.outputs:
        torch.testing.assert_close(out[0], (x * y).sum(0))
