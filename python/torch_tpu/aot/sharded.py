"""Programs that many devices run together: DTensor, tensor parallelism, FSDP2, traced on one rank without any other.

Every rank's program is the same but for numbers that follow from its place in the mesh. The program is traced on rank 0
and on a few others, over fake process groups; where their graphs differ in an integer, it is written as a function of the
place (``ranks.py``). FSDP2's own hooks move memory about in ways that a program has no use for; what they mean is traced
instead: each parameter is gathered from its shards before its module runs, gathered again in the backward pass, and its
gradient is reduced to shards.
"""
import contextlib
import functools
import gc
import math
import warnings
from collections import OrderedDict

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState, _get_module_fsdp_state
from torch.distributed.tensor import DTensor
from torch.utils import _pytree as pytree

from .trace import Program, TraceError

funcol = torch.ops._c10d_functional


class Mesh:
    """Names and sizes of a mesh's dims: ``{"dp": 64, "tp": 8}``. Rank r is at ``numpy.unravel_index(r, sizes)``."""

    def __init__(self, dims: dict):
        self.names, self.sizes = tuple(dims), tuple(int(n) for n in dims.values())
        if not self.names or any(n < 1 for n in self.sizes):
            raise ValueError(f"mesh={dims!r}: names of dims with their sizes are expected, {{'dp': 4, 'tp': 2}}")
        self.world = math.prod(self.sizes)
        self.strides = tuple(math.prod(self.sizes[d + 1 :]) for d in range(len(self.sizes)))

    def place(self, rank: int) -> tuple:
        return tuple(rank // stride % size for stride, size in zip(self.strides, self.sizes))

    def ranks_along(self, dims) -> list:
        """Groups of ranks that differ in |dims| alone, each in the mesh's order; group by group."""
        grid = torch.arange(self.world).view(self.sizes)
        others = [d for d in range(len(self.sizes)) if d not in dims]
        return grid.permute(*others, *dims).reshape(-1, math.prod(self.sizes[d] for d in dims)).tolist()

    def dims_of(self, ranks) -> tuple:
        """The dims that the group |ranks|, with rank 0 or its like in it, extends over. ValueError when it is none of the mesh's."""
        first = self.place(ranks[0])
        dims = tuple(d for d in range(len(self.sizes)) if any(self.place(r)[d] != first[d] for r in ranks))
        if list(ranks) not in ([[ranks[0]]] if not dims else self.ranks_along(dims)):
            raise ValueError(f"process group {list(ranks)[:16]} is not along dims of the mesh {dict(zip(self.names, self.sizes))}")
        return dims

    def probes(self) -> list:
        """Ranks whose programs tell all others': the first, its neighbour along each dim, and the last."""
        neighbours = [stride for stride, size in zip(self.strides, self.sizes) if size > 1]
        return list(dict.fromkeys([0, *neighbours, self.world - 1]))


def _forget_meshes():
    """DTensor remembers what it decided for a mesh, in several caches, and takes the same mesh on another rank for equal."""
    from torch.distributed.tensor.debug import _clear_sharding_prop_cache

    _clear_sharding_prop_cache()
    for cache in gc.get_objects():
        if type(cache) is functools._lru_cache_wrapper and (cache.__module__ or "").startswith("torch.distributed.tensor"):
            cache.cache_clear()


@contextlib.contextmanager
def fake_world(mesh: Mesh, rank: int):
    """This process as |rank| of a world in which nobody else is; yields the DeviceMesh."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        raise TraceError("compiling for a mesh makes process groups of its own, and this process has some already: "
                         "call it before init_process_group, or in another process")
    _forget_meshes()
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=mesh.world)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a default device: there is none
            device_mesh = DeviceMesh("tpu", torch.arange(mesh.world, device="cpu").view(mesh.sizes), mesh_dim_names=mesh.names)
        yield device_mesh
    finally:
        dist.destroy_process_group()
        _forget_meshes()


# ---------------------------------------------------------------- FSDP2
class _Unit:
    """One FSDP parameter: its shards, and how they come together."""

    def __init__(self, parameter):
        self.p = parameter
        info = parameter.mesh_info
        self.size = getattr(info, "shard_mesh_size", 1)
        self.group = info.shard_process_group.group_name if self.size > 1 else None
        self.ranks = dist.get_process_group_ranks(info.shard_process_group) if self.size > 1 else None
        replicas = getattr(info, "replicate_mesh_size", 1)
        self.replica_group = info.replicate_process_group.group_name if replicas > 1 else None
        self.world = self.size * replicas
        self.dim = parameter.fsdp_placement.dim
        self.original, self.padded = parameter._orig_size, parameter.padded_sharded_param_size
        policy = parameter.mp_policy
        self.dtype = policy.param_dtype
        self.reshards = parameter.post_forward_mesh_info is not None
        self.reduce_dtype = policy.reduce_dtype or policy.param_dtype

    def gather(self, shard, after=None):
        x = shard if self.dtype is None else shard.to(self.dtype)
        if self.group is None:
            return x.clone()
        if after is not None:
            x = torch.ops.tpu.after(x, after)
        x = x.movedim(self.dim, 0).contiguous() if self.dim else x
        x = funcol.wait_tensor(funcol.all_gather_into_tensor(x, self.size, self.group))
        x = x.movedim(0, self.dim).contiguous() if self.dim else x
        return x if x.size(self.dim) == self.original[self.dim] else x.narrow(self.dim, 0, self.original[self.dim]).clone()

    def reduce(self, grad, dtype, factor):
        g = grad if self.reduce_dtype is None else grad.to(self.reduce_dtype)
        missing = self.padded[self.dim] * self.size - self.original[self.dim]
        g = g.movedim(self.dim, 0)
        if missing:
            g = torch.nn.functional.pad(g, [0, 0] * (g.dim() - 1) + [0, missing])
        g = g.contiguous()
        if self.group is not None:
            g = funcol.wait_tensor(funcol.reduce_scatter_tensor(g, "sum", self.size, self.group))
        if self.replica_group is not None:
            g = funcol.wait_tensor(funcol.all_reduce(g, "sum", self.replica_group))
        g = g / (self.world if factor is None else factor)
        return g.movedim(0, self.dim).to(dtype)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, unit, factor):
        ctx.unit, ctx.factor, ctx.dtype = unit, factor, shard.dtype
        return unit.gather(shard)

    @staticmethod
    def backward(ctx, grad):
        return ctx.unit.reduce(grad, ctx.dtype, ctx.factor), None, None


def _storage(t):
    t = getattr(t, "elem", t)
    return t.untyped_storage()._cdata


def _local(t):
    return t._local_tensor if isinstance(t, DTensor) else t


class _Reshard:
    """Saved for the backward pass is not the gathered parameter but the wish to gather it again then."""

    def __init__(self):
        self.units = {}  # storage of a gathered parameter -> (unit, shard, the gathered parameter)
        self.again = {}  # storage -> gathered in the backward pass
        self.grads = []  # of modules' results, in the order of the backward pass

    def add(self, unit, shard, full):
        self.units[_storage(full)] = unit, shard, full

    def pack(self, t):
        local = _local(t)
        key = _storage(local)
        if key not in self.units:
            return t
        return key, tuple(local.shape), local.stride(), local.storage_offset(), t._spec if isinstance(t, DTensor) else None

    def unpack(self, kept):
        if not isinstance(kept, tuple):
            return kept
        key, shape, stride, offset, spec = kept
        if key not in self.again:
            unit, shard, _ = self.units[key]
            # Not before the backward pass is there: one module ahead of the one that needs it, as FSDP2 does.
            self.again[key] = unit.gather(shard.detach(), self.grads[-2] if len(self.grads) > 1 else self.grads[-1] if self.grads else shard)
        full = self.again[key]
        if shape == tuple(full.shape) and stride == full.stride():
            out = full
        elif len(shape) == 2 and offset == 0 and shape == tuple(full.shape)[::-1] and stride == full.stride()[::-1]:
            out = full.t()
        else:
            out = full.as_strided(shape, stride, offset)
        return out if spec is None else DTensor(out, spec, requires_grad=False)

    def saw(self, grad):
        self.grads.append(_local(grad))


def _is_fsdps(hook) -> bool:
    while hook is not None:
        if isinstance(getattr(hook, "__self__", None), FSDPState):
            return True
        hook = getattr(hook, "__wrapped__", None)
    return False


@contextlib.contextmanager
def _without_fsdps_hooks(module):
    """FSDP2's forward hooks taken out, and put back."""
    kept = []
    for m in module.modules():
        for name in ("_forward_pre_hooks", "_forward_hooks"):
            hooks = getattr(m, name)
            if any(_is_fsdps(h) for h in hooks.values()):
                kept.append((m, name, hooks))
                setattr(m, name, OrderedDict((k, h) for k, h in hooks.items() if not _is_fsdps(h)))
    try:
        yield
    finally:
        for m, name, hooks in kept:
            setattr(m, name, hooks)


def _cast(value, dtype):
    if dtype is None:
        return value
    return pytree.tree_map(lambda t: t.to(dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t, value)


class ShardedProgram(Program):
    """One rank's program. ``placements``: by input, (DTensorSpec, how the rank's piece lies in the whole) or None."""

    def __init__(self, mesh: Mesh, *args):
        self.mesh = mesh
        self.placements = {}
        self.axes = {}  # id of a DeviceMesh -> for each of its dims, the dims of the whole mesh
        super().__init__(*args)

    def add_piece(self, kind, name, tensor, spec, local):
        i = self.add(kind, name, local)
        self.placements[i] = spec
        self.note(spec)
        return i

    def note(self, spec):
        """Remembers which dims of the whole mesh each dim of |spec|'s extends over; only while the world stands can it be asked."""
        if spec is None or id(spec.mesh) in self.axes:
            return
        ranks, dims = spec.mesh.mesh, []
        for d in range(ranks.dim()):
            line = ranks.movedim(d, -1).reshape(-1, ranks.shape[d])[0].tolist()
            dims.append(self.mesh.dims_of(line))
        self.axes[id(spec.mesh)] = dims

    def argument(self, name, tensor):
        if isinstance(tensor, DTensor):
            return self.add_piece("argument", name, tensor, tensor._spec, tensor._local_tensor)
        return super().argument(name, tensor)

    def given(self, number, value):
        spec = self.placements.get(number)
        return value if spec is None else _wrap(value, spec)

    def module_inputs(self):
        self.units, self.factors = {}, {}
        for m in self.module.modules():
            state = _get_module_fsdp_state(m) if isinstance(m, FSDPModule) else None
            for group in state._fsdp_param_groups if state else ():
                for p in group.fsdp_params:
                    unit = self.units[id(p.sharded_param)] = _Unit(p)
                    if m is self.module and state._auto_reshard_after_forward:
                        unit.reshards = False  # the root's parameters are needed first in the backward pass
                    self.factors[id(p.sharded_param)] = group.gradient_divide_factor
        self.params, self.buffers, self.state, self.unit_of = {}, {}, {}, {}
        for name, p in self.module.named_parameters():
            unit, local, spec = self.units.get(id(p)), _local(p.data), getattr(p, "_spec", None)
            if unit is not None:  # padded to the same size on every rank
                local = torch.empty(unit.padded, dtype=p.dtype, device="meta")
                self.unit_of[name] = unit, self.factors[id(p)]
                self.note(unit.p._unsharded_dtensor_spec)
            local = local.detach().requires_grad_(p.requires_grad)
            self.params[name] = self.add_piece("parameter", name, p, spec, local)
            self.parameters += p.numel()
        for name, b in self.module.named_buffers():
            self.buffers[name] = self.add_piece("buffer", name, b, getattr(b, "_spec", None), _local(b))
        self.optimizer_inputs()

    def forward(self, values, args, kwargs):
        reshard, named = _Reshard(), {}
        for name, i in (*self.params.items(), *self.buffers.items()):
            named[name] = self.parameter(name, i, values[i], reshard)
        hooks = [h for m in self.module.modules() if isinstance(m, FSDPModule) for h in self.hooks(m, reshard)]
        try:
            with _without_fsdps_hooks(self.module), torch.autograd.graph.saved_tensors_hooks(reshard.pack, reshard.unpack):
                return torch.func.functional_call(self.module, named, args, kwargs)
        finally:
            for h in hooks:
                h.remove()

    def parameter(self, name, i, value, reshard):
        if name not in self.unit_of:
            return value if self.placements[i] is None else _wrap(value, self.placements[i])
        unit, factor = self.unit_of[name]
        full = _Gather.apply(value, unit, factor)
        if unit.reshards and unit.group is not None:
            reshard.add(unit, value, full)
        spec = unit.p._unsharded_dtensor_spec
        return full if spec is None else _wrap(full, spec)

    def hooks(self, module, reshard):
        policy = _get_module_fsdp_state(module)._mp_policy
        dtype = policy.param_dtype if policy.cast_forward_inputs else None

        def before(_, args, kwargs):
            return _cast(args, dtype), _cast(kwargs, dtype)

        def after(_, args, out):
            out = _cast(out, policy.output_dtype)
            for t in pytree.tree_leaves(out):
                if isinstance(t, torch.Tensor) and t.requires_grad:
                    t.register_hook(reshard.saw)
            return out

        return [module.register_forward_pre_hook(before, prepend=True, with_kwargs=True), module.register_forward_hook(after)]

    def loss_value(self, loss):
        return loss.full_tensor() if isinstance(loss, DTensor) else loss

    def tensors(self, out):
        return [_local(t) if isinstance(t, DTensor) else t for t in super().tensors(out)]


def _wrap(local, spec):
    """|local| as this rank's piece of a tensor; gradients flow."""
    return DTensor.from_local(local, spec.mesh, spec.placements, run_check=False, shape=spec.shape, stride=spec.stride)


def trace_sharded(make, mesh: Mesh, train=False, loss=None, optimizer="adamw"):
    """``make(device_mesh)`` gives the model and what it is called with, as ``torch-tpu explain`` takes them. Gives (Traced of
    every rank's program, process groups by name, the ShardedProgram of rank 0)."""
    from . import ranks
    from .trace import traced

    found, groups, first = {}, {}, None
    for rank in mesh.probes():
        with fake_world(mesh, rank) as device_mesh:
            with torch.device("meta"):
                given = made(make(device_mesh))
            program = ShardedProgram(mesh, given["model"], given["args"], given["kwargs"], train, given.get("loss") or loss, optimizer)
            with torch.autograd.set_multithreading_enabled(False):  # DTensor remembers by thread
                found[rank] = traced(program)
            named = ranks.name_groups(found[rank].graph, mesh)
            first = first or program
            groups.update(named)
    return ranks.one_program(mesh, found), groups, first


def made(found) -> dict:
    """What a maker gave, as a dict with ``model``, ``args``, ``kwargs``, ``loss``."""
    if isinstance(found, dict) and "model" in found:
        program = {k: found.get(k) for k in ("model", "args", "kwargs", "loss")}
    elif isinstance(found, (tuple, list)) and 2 <= len(found) <= 3:
        program = {"loss": None, **dict(zip(("model", "args", "kwargs"), (*found, None)))}
    else:
        raise TypeError(f"it gives {type(found).__name__}; (model, args), (model, args, kwargs) or a dict is expected")
    args = program.get("args")
    program["args"] = tuple(args) if isinstance(args, (tuple, list)) else () if args is None else (args,)
    program["kwargs"] = dict(program.get("kwargs") or {})
    return program
