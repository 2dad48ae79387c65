"""A sharded program run here: every rank of it on one of several devices of XLA's CPU plugin, in one process.

What it is for: seeing that a program shared out over a mesh computes what the whole one does, before a slice is rented.
"""
import re
from typing import NamedTuple

import torch

from .. import _C, _plugin
from . import lower
from .sharded import Mesh, ShardedProgram, trace_sharded

_TYPE = re.compile(r"tensor<((?:\d+x)*)([a-z0-9<>]+?)>(?=[,)\s{])")
_DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "i1": torch.bool, "i8": torch.int8,
           "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "ui8": torch.uint8}


class Simulated(NamedTuple):
    outputs: list  # by rank: what the program gives, as torch.tpu.aot.compile would order it (a step: the loss, then the rest)
    updated: dict  # name of a parameter, buffer or state -> its new value, whole
    gradients: dict  # with optimizer=None: name of a parameter -> its gradient, whole


def _split(whole, spec, places):
    for placement, place, n in zip(spec.placements, places, spec.mesh.shape):
        if placement.is_shard():
            chunks = whole.chunk(n, placement.dim)
            if len(chunks) < n or chunks[0].shape != chunks[-1].shape:
                raise ValueError(f"dim {placement.dim} of {tuple(whole.shape)} does not divide among {n}")
            whole = chunks[place]
    return whole


class Pieces:
    """How inputs of a program lie in whole tensors. Made on rank 0, for all."""

    def __init__(self, program: ShardedProgram):
        self.program, self.mesh = program, program.mesh
        self.units = {program.params[n]: unit for n, (unit, _) in program.unit_of.items()}
        for name, slots in program.state.items():
            for i in slots.values():
                of = program.params[name]
                program.placements[i] = program.placements[of]
                if of in self.units:
                    self.units[i] = self.units[of]

    def shape(self, i):
        spec = self.program.placements.get(i)
        return tuple(spec.shape) if spec is not None else tuple(self.program.values[i].shape)

    def places(self, spec, rank):
        """Place of |rank| in each dim of |spec|'s mesh."""
        return [next(g.index(rank) for g in self.mesh.ranks_along(dims) if rank in g) for dims in self.program.axes[id(spec.mesh)]]

    def piece(self, i, whole, rank, fill=0):
        """The rank's piece of input |i| whose whole value is |whole|."""
        unit, spec = self.units.get(i), self.program.placements.get(i)
        if unit is None:
            return whole if spec is None else _split(whole, spec, self.places(spec, rank))
        inner = unit.p._unsharded_dtensor_spec
        if inner is not None:
            whole = _split(whole, inner, self.places(inner, rank))
        if unit.group is None:
            return whole
        place = next(g.index(rank) for g in self.mesh.ranks_along(self.mesh.dims_of(unit.ranks)) if rank in g)
        size, have = unit.padded[unit.dim], whole.shape[unit.dim]
        start = min(have, place * size)
        out = whole.narrow(unit.dim, start, min(size, have - start))
        if out.shape[unit.dim] < size:
            shape = list(out.shape)
            shape[unit.dim] = size - out.shape[unit.dim]
            out = torch.cat((out, out.new_full(shape, fill)), unit.dim)
        return out

    def whole(self, i, pieces):
        """The whole value from each rank's piece; equal where several ranks hold the same part."""
        shape = self.shape(i)
        out = torch.full(shape, float("nan") if pieces[0].is_floating_point() else -1, dtype=pieces[0].dtype)
        numbers = torch.arange(out.numel()).view(shape)
        for rank, piece in enumerate(pieces):
            at = self.piece(i, numbers, rank, fill=-1).reshape(-1)
            values = piece.reshape(-1)[at >= 0]
            out.view(-1)[at[at >= 0]] = values
        return out


def _order(t):
    """The order of dims in memory."""
    return sorted(range(t.dim()), key=lambda d: -t.stride(d))


def simulate(make, mesh: dict, state: dict, arguments, train=False, loss=None, optimizer=None) -> Simulated:
    """Runs ``make``'s program (see :func:`torch.tpu.aot.compile`) for every rank of |mesh|.

    state     whole values of parameters and buffers by name, as ``state_dict`` of the model before it was shared out
    arguments rank -> list of the tensors that rank's model is called with (whole ones for DTensor arguments)
    Moments of an optimizer begin as zeros. Raises TraceError; RuntimeError where the plugin refuses.
    """
    mesh = Mesh(mesh)
    traced, groups, program = trace_sharded(make, mesh, train, loss, optimizer)
    lowering = lower.lowered(traced, groups, "cpu")
    text = lowering.graph.text()
    pieces = Pieces(program)
    inputs = [_inputs(program, pieces, lowering, state, arguments(r), r) for r in range(mesh.world)]
    types = _TYPE.findall(text[text.index(") -> (") : text.index("{\n", text.index(") -> ("))])
    results = [[torch.empty([int(n) for n in dims.split("x") if n], dtype=_DTYPES[kind]) for dims, kind in types] for _ in range(mesh.world)]
    _C.Replicas(_plugin.cpu_plugin().path, mesh.world).run(text, inputs, results)
    return _read(traced, program, pieces, lowering, results, inputs)


def _inputs(program, pieces, lowering, state, arguments, rank):
    out, given = [], iter(arguments)
    values = {}
    for i, what in enumerate(program.inputs):
        if what.kind == "argument":
            whole = next(given)
        elif what.kind == "optimizer state":
            whole = torch.zeros(pieces.shape(i), dtype=program.values[i].dtype)
        else:
            whole = state[what.name].detach()
        values[i] = pieces.piece(i, whole, rank)
    for index, order in lowering.inputs:
        value = values[index] if isinstance(index, int) else index
        if isinstance(index, int) and tuple(value.shape) != tuple(program.values[index].shape):
            raise ValueError(f"{program.inputs[index].name} is {tuple(value.shape)} on rank {rank}; the program takes {tuple(program.values[index].shape)}")
        out.append((value if order is None else value.permute(order)).contiguous())
    return out


def _read(traced, program, pieces, lowering, results, inputs):
    nodes = next(n for n in reversed(traced.graph.graph.nodes) if n.op == "output").args[0]
    by_rank = []
    for rank, given in enumerate(results):
        outputs = []
        for node, (kind, where) in zip(nodes, lowering.results):
            if kind == "input":
                outputs.append(inputs[rank][lowering.param_of[where]])
            elif kind == "value":
                order = _order(node.meta["val"])
                outputs.append(given[where].permute([order.index(d) for d in range(len(order))]))
            else:
                outputs.append(where)
        by_rank.append(outputs)
    updated = {program.inputs[i].name: pieces.whole(i, [o[k] for o in by_rank]) for k, i in traced.updates.items()}
    gradients = {name: pieces.whole(program.params[name], [o[k + 1] for o in by_rank]) for k, name in enumerate(program.gradients)}
    return Simulated(by_rank, updated, gradients)
