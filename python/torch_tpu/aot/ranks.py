"""Graphs of several ranks -> one graph for all of them.

Where ranks' graphs hold different integers, the integer becomes a function of the rank's place in the mesh:
``base + sum(step[d] * place[d])``, read off the ranks that were traced and checked on the last. Anything else that differs
cannot be one program, and is refused with the user's line.
"""
import operator

import torch
from torch import fx

from .lower import line_of
from .sharded import Mesh
from .trace import Traced, TraceError

aten = torch.ops.aten
_COLLECTIVES = ("_c10d_functional", "_dtensor")


class Varying:
    """An integer that follows from the place in the mesh."""

    def __init__(self, base: int, steps: tuple):
        self.base, self.steps = base, steps

    def __mul__(self, n: int):
        return Varying(self.base * n, tuple(s * n for s in self.steps))


def _where(node) -> str:
    return str(line_of(node) or "")


def _fit(mesh: Mesh, by_rank: dict, node) -> Varying:
    base = by_rank[0]
    steps = tuple(by_rank[stride] - base if size > 1 else 0 for stride, size in zip(mesh.strides, mesh.sizes))
    for rank, value in by_rank.items():
        if base + sum(s * p for s, p in zip(steps, mesh.place(rank))) != value:
            raise TraceError(f"{node.target}: an integer of it is {by_rank} by rank: not a sum of multiples of places in the mesh", _where(node))
    return Varying(base, steps)


def _merge(mesh, values: dict, node):
    """The same argument of each rank's node as one: itself where all agree, Varying where integers do not."""
    first = values[0]
    if isinstance(first, fx.Node):
        return first
    if isinstance(first, (list, tuple)) and all(type(v) is type(first) and len(v) == len(first) for v in values.values()):
        return type(first)(_merge(mesh, {r: v[i] for r, v in values.items()}, node) for i in range(len(first)))
    if isinstance(first, dict) and all(isinstance(v, dict) and v.keys() == first.keys() for v in values.values()):
        return {k: _merge(mesh, {r: v[k] for r, v in values.items()}, node) for k in first}
    if all(type(v) is type(first) and (v == first or v != v and first != first) for v in values.values()):
        return first
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values.values()):
        return _fit(mesh, values, node)
    raise TraceError(f"{node.target}: ranks differ in an argument: {dict(list(values.items())[:3])}", _where(node))


def _meta(node):
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else (value,)
    return [(v.dtype, tuple(v.shape)) if isinstance(v, torch.Tensor) else type(v) for v in values]


def name_groups(graph: fx.GraphModule, mesh: Mesh) -> dict:
    """Renames process groups to the mesh's dims they extend over; gives the groups of all ranks by that name."""
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import _resolve_process_group

    groups = {}
    for node in graph.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or getattr(node.target, "namespace", "") not in _COLLECTIVES:
            continue
        for i, a in enumerate(schema.arguments):
            if a.name == "group_name" and i < len(node.args):
                group = node.args[i]
                group = _resolve_process_group(group) if isinstance(group, str) else group
                try:
                    dims = mesh.dims_of(dist.get_process_group_ranks(group))
                except ValueError as e:
                    raise TraceError(f"{node.target}: {e}", _where(node)) from None
                name = ",".join(mesh.names[d] for d in dims) or "alone"
                groups[name] = mesh.ranks_along(dims)
                node.args = (*node.args[:i], name, *node.args[i + 1 :])
    return groups


def one_program(mesh: Mesh, traced: dict) -> Traced:
    """``traced``: rank -> its Traced, with groups named. The graph of rank 0, made every rank's."""
    first = traced[0]
    lists = {r: list(t.graph.graph.nodes) for r, t in traced.items()}
    for r, nodes in lists.items():
        for a, b in zip(lists[0], nodes):
            if a.op != b.op or (a.op == "call_function" and a.target is not b.target):
                raise TraceError(f"rank 0 does {a.target} where rank {r} does {b.target}", _where(a))
            if _meta(a) != _meta(b):
                raise TraceError(f"{a.target} has shape {_meta(a)[0][1:]} on rank 0 and {_meta(b)[0][1:]} on rank {r}: what is sharded "
                                 "must divide evenly", _where(a))
        if len(nodes) != len(lists[0]):
            raise TraceError(f"rank 0's program has {len(lists[0])} operators, rank {r}'s {len(nodes)}")
    numbers = {r: {n: i for i, n in enumerate(nodes)} for r, nodes in lists.items()}
    merged = []
    for i, node in enumerate(lists[0]):
        for r, nodes in lists.items():
            theirs = [numbers[r][n] for n in nodes[i].all_input_nodes]
            if theirs != [numbers[0][n] for n in node.all_input_nodes]:
                raise TraceError(f"{node.target}: rank 0 and rank {r} compute it from different values", _where(node))
        if node.op != "call_function":
            continue
        args = _merge(mesh, {r: tuple(n[i].args) for r, n in lists.items()}, node)
        kwargs = _merge(mesh, {r: dict(n[i].kwargs) for r, n in lists.items()}, node)
        if _has_varying(args) or _has_varying(kwargs):
            merged.append((node, args, kwargs))
    rewriter = _Rewriter(first.graph, mesh)
    for node, args, kwargs in merged:
        rewriter.rewrite(node, args, kwargs)
    first.graph.graph.eliminate_dead_code()
    first.graph.graph.lint()
    return first


def _has_varying(value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_varying, value))
    if isinstance(value, dict):
        return any(map(_has_varying, value.values()))
    return isinstance(value, Varying)


class _Rewriter:
    """Puts operators that know their rank in the place of those with a varying integer."""

    def __init__(self, graph, mesh):
        self.graph, self.mesh = graph.graph, mesh

    def rewrite(self, node, args, kwargs):
        with self.graph.inserting_before(node):
            made = self.replacement(node, args, kwargs)
        if made is None:
            raise TraceError(f"{node.target}: an argument of it depends on the rank, which no program for all ranks can express", _where(node))
        made.meta.update(node.meta)
        node.replace_all_uses_with(made)

    def index(self, v: Varying, like):
        node = self.graph.call_function(torch.ops.tpu.replica_index.default, (v.base, list(self.mesh.strides), list(self.mesh.sizes), list(v.steps)))
        node.meta.update({k: m for k, m in like.meta.items() if k != "val"})
        mode = self.fake_mode(like)
        with mode:
            node.meta["val"] = torch.empty((), dtype=torch.int64, device="tpu:0")
        return node

    def fake_mode(self, node):
        return next(v.fake_mode for n in self.graph.nodes for v in [n.meta.get("val")] if hasattr(v, "fake_mode"))

    def narrow(self, node, x, dim, start, length):
        return self.graph.call_function(torch.ops.tpu.narrow_at.default, (x, dim, self.index(start, node), length))

    def replacement(self, node, args, kwargs):
        # Tensors as the node has them by now: an earlier one of them may have been replaced.
        args = tuple(now if isinstance(now, fx.Node) else a for a, now in zip(args, node.args))
        if kwargs and _has_varying(kwargs):
            return None
        if node.target is operator.getitem and isinstance(args[0], fx.Node):
            return self.piece(node, args[0], args[1])
        if node.target is aten.slice.Tensor and isinstance(args[2], Varying) and (len(args) < 5 or args[4] == 1):
            return self.narrow(node, args[0], args[1], args[2], node.meta["val"].shape[args[1]])
        if node.target is aten.select.int:
            kept = self.narrow(node, args[0], args[1], args[2], 1)
            x = args[0].meta["val"]
            with self.fake_mode(node):
                shape = list(x.shape)
                shape[args[1]] = 1
                kept.meta["val"] = torch.empty(shape, dtype=x.dtype, device="tpu:0")
            return self.graph.call_function(aten.squeeze.dim, (kept, args[1]))
        if node.target in _WITH_TENSOR and len(args) == 2 and isinstance(args[1], Varying):
            return self.graph.call_function(_WITH_TENSOR[node.target], (args[0], self.index(args[1], node)), kwargs)
        return None

    def piece(self, node, split, index):
        """split(x)[rank's place]: equal pieces alone."""
        sizes = split.args[1]
        dim = split.args[2] if len(split.args) > 2 else split.kwargs.get("dim", 0)
        if split.target is aten.split_with_sizes.default and len(set(sizes)) == 1:
            size = sizes[0]
        elif split.target is aten.split.Tensor:
            size = sizes
        elif split.target is aten.unbind.int:
            return None
        else:
            return None
        if node.meta["val"].shape[dim] != size:
            return None
        return self.narrow(node, split.args[0], dim, index * size, size)


_WITH_TENSOR = {
    aten.sub.Tensor: aten.sub.Tensor, aten.add.Tensor: aten.add.Tensor, aten.mul.Tensor: aten.mul.Tensor,
    aten.lt.Scalar: aten.lt.Tensor, aten.le.Scalar: aten.le.Tensor, aten.gt.Scalar: aten.gt.Tensor, aten.ge.Scalar: aten.ge.Tensor,
    aten.eq.Scalar: aten.eq.Tensor, aten.ne.Scalar: aten.ne.Tensor, aten.sub.Scalar: aten.sub.Tensor, aten.add.Scalar: aten.add.Tensor,
}
