"""Ops without a row of the op table: PyTorch's decomposition, traced once per signature into the op's own program.

The decomposition runs on meta tensors under a dispatch mode. Every operator that it reaches and that has a row becomes
a call in the graph; the others are decomposed further. A tensor stands for a value of the graph; an in-place operator
gives its tensor a new value. Anything that this cannot follow makes the op decline, and run on the CPU.
"""

import functools

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from . import _C

aten = torch.ops.aten

# Decompositions of PyTorch that are wrong, inexact, or worse than the CPU here.
_REFUSED = {"aten.nonzero.default", "aten.unique_consecutive.default"}

_FACTORIES = ("empty.memory_format", "empty_strided", "empty_like", "new_empty", "new_empty_strided")


class Declined(Exception):
    pass


def _weight_norm_interface_backward(grad_w, saved_v, saved_g, saved_norms, dim):
    dims = [d for d in range(saved_v.dim()) if d != dim]
    norms = saved_norms.to(saved_v.dtype)
    along = (grad_w * saved_v).sum(dims, keepdim=True)
    grad_v = (saved_g / norms) * (grad_w - saved_v * (along / (norms * norms)))
    return grad_v, along / norms


@functools.lru_cache(maxsize=None)
def _table():
    from torch._decomp import core_aten_decompositions, decomposition_table

    table = dict(decomposition_table)
    table.update(core_aten_decompositions())
    table[aten._weight_norm_interface_backward.default] = _weight_norm_interface_backward
    table[aten._add_relu.Tensor] = lambda a, b, *, alpha=1: aten.relu(aten.add(a, b, alpha=alpha))
    table[aten._add_relu.Scalar] = lambda a, b, alpha=1: aten.relu(aten.add(a, b, alpha=alpha))
    return table


def _row(func) -> str:
    name, overload = func._schema.name.partition("::")[2], func._overloadname
    return name if overload == "default" else f"{name}.{overload}"


def _meta_of(value):
    return (value.dtype, list(value.shape))


class _Tracer(TorchDispatchMode):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        self.values = {}  # id(tensor) -> node
        self.keep = []  # tensors whose ids are in use
        self.by_storage = {}  # storage -> tensors over it: writing to one of several is declined
        self.depth = 0

    # ------------------------------------------------------------ tensors and values
    def bind(self, tensor, node):
        if id(tensor) not in self.values:
            self.keep.append(tensor)
            self.by_storage.setdefault(tensor.untyped_storage()._cdata, []).append(tensor)
        self.values[id(tensor)] = node

    def node(self, tensor):
        found = self.values.get(id(tensor))
        if found is not None:
            return found
        if tensor.device.type == "cpu":
            if tensor.numel() > 4096:
                raise Declined("a large constant")
            node = self.graph.constant(tensor)
            self.bind(tensor, node)
            return node
        raise Declined("a tensor of unknown origin")

    # ------------------------------------------------------------ emitting
    def arguments(self, args, kwargs):
        swap = lambda t: self.node(t) if isinstance(t, torch.Tensor) else t  # noqa: E731
        return pytree.tree_map(swap, list(args)), pytree.tree_map(swap, dict(kwargs))

    def emit(self, row, func, args, kwargs):
        """Calls row |row| with |func|'s arguments; gives new meta tensors with their values."""
        node_args, node_kwargs = self.arguments(args, kwargs)
        out = self.run_meta(func, args, kwargs)
        flat = pytree.tree_leaves(out)
        if not all(isinstance(t, torch.Tensor) for t in flat):
            raise Declined(f"{func} returns what is not a tensor")
        nodes = self.graph.call(row, *node_args, _outs=[_meta_of(t) for t in flat], **node_kwargs)
        for tensor, node in zip(flat, nodes):
            self.bind(tensor, node)
        return out

    def run_meta(self, func, args, kwargs):
        def to_meta(x):
            if isinstance(x, torch.Tensor) and x.device.type == "cpu":
                return x.to("meta")
            return x

        args, kwargs = pytree.tree_map(to_meta, (args, kwargs))
        kwargs = dict(kwargs)
        for a in func._schema.arguments:
            if a.name == "device":
                kwargs["device"] = torch.device("meta")
        return func(*args, **kwargs)

    # ------------------------------------------------------------ one operator
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        row = _row(func)
        if func.namespace not in ("aten", "prims"):
            raise Declined(f"{func} is not an ATen operator")
        schema = func._schema
        if schema.is_mutable:
            return self.mutate(func, args, kwargs)
        if row in _FACTORIES or func in (aten.empty_like.default, aten.new_empty.default, aten.new_empty_strided.default):
            return self.allocate(func, args, kwargs)
        if func in (aten.detach.default, aten.alias.default, aten.lift_fresh.default, aten.lift.default):
            out = self.run_meta(func, args, kwargs) if args[0].device.type == "meta" else args[0].clone()
            self.bind(out, self.node(args[0]))
            return out
        if func.namespace == "aten" and _C.has_row(row):
            return self.emit(row, func, args, kwargs)
        if func is aten._local_scalar_dense.default:
            if args[0].device.type == "cpu":
                return func(*args)
            raise Declined("it reads a value")
        return self.decompose(func, args, kwargs)

    def allocate(self, func, args, kwargs):
        out = self.run_meta(func, args, kwargs)
        node = self.graph.call("full", list(out.shape), 0, dtype=out.dtype, _outs=[_meta_of(out)])[0]
        self.bind(out, node)
        return out

    def decompose(self, func, args, kwargs):
        if str(func) in _REFUSED:
            raise Declined(f"{func} has no good decomposition")
        self.depth += 1
        try:
            if self.depth > 24:
                raise Declined(f"{func} decomposes without end")
            function = _table().get(func)
            with self:
                if function is not None:
                    out = function(*args, **kwargs)
                    if out is not NotImplemented:
                        return out
                out = func.decompose(*args, **kwargs)
                if out is not NotImplemented:
                    return out
                key = torch._C.DispatchKey
                for k in (key.CompositeExplicitAutograd, key.CompositeExplicitAutogradNonFunctional):
                    if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), k):
                        return func._op_dk(k, *args, **kwargs)
        finally:
            self.depth -= 1
        raise Declined(f"{func} has no decomposition")

    # ------------------------------------------------------------ writing
    def mutate(self, func, args, kwargs):
        """In-place and out= operators: the functional row, and new values for what is written."""
        written = []
        for i, a in enumerate(func._schema.arguments):
            if a.alias_info is not None and a.alias_info.is_write:
                value = args[i] if i < len(args) else kwargs.get(a.name)
                written.extend(t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor))
        for t in written:
            self.node(t)
            if len(self.by_storage.get(t.untyped_storage()._cdata, ())) > 1:
                raise Declined(f"{func} writes through a view")
        if func is aten.copy_.default:
            source = args[1]
            value = source if isinstance(source, torch.Tensor) else None
            if value is None:
                raise Declined("copy_ of what is not a tensor")
            with self:
                value = aten._to_copy.default(value, dtype=args[0].dtype) if value.dtype != args[0].dtype else value
                value = aten.expand.default(value, list(args[0].shape)) if value.shape != args[0].shape else value
            self.values[id(args[0])] = self.node(value)
            return args[0]
        name, overload = func._schema.name, "" if func._overloadname == "default" else func._overloadname
        row, variant = _C.relate(name, overload)
        base, _, functional_overload = row.partition(".")
        functional = getattr(getattr(aten, base), functional_overload or "default", None)
        if variant == 0 or functional is None or functional._schema.is_mutable:
            raise Declined(f"{func} has no functional form")
        if variant == 2:  # out=
            outs = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
            kwargs = {k: v for k, v in kwargs.items() if k not in outs}
            args = args[: len(func._schema.arguments) - len(outs)]
        with self:
            results = functional(*args, **kwargs)
        results = [t for t in pytree.tree_leaves(results) if isinstance(t, torch.Tensor)]
        for t, r in zip(written, results):
            if r.dtype != t.dtype or r.shape != t.shape:
                with self:
                    r = aten._to_copy.default(r, dtype=t.dtype) if r.dtype != t.dtype else r
                    if r.shape != t.shape:
                        raise Declined(f"{func} resizes its output")
            self.values[id(t)] = self.node(r)
        return written[0] if len(written) == 1 else tuple(written)


def _resolve(row):
    namespace, _, name = row.rpartition("::")
    base, _, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, namespace or "aten"), base, None)
    return getattr(packet, overload or "default", None) if packet is not None else None


def trace(row, args, nodes, graph):
    """Traces operator |row| (its functional overload) over |args|, meta tensors, whose values in |graph| are |nodes|.

    Returns the values of its results, or a sentence why not.
    """
    func = _resolve(row)
    if func is None:
        return f"{row} is unknown to PyTorch"
    tracer = _Tracer(graph)
    for arg, node in zip(args, nodes):
        for a, n in zip(arg, node) if isinstance(arg, (list, tuple)) and isinstance(node, list) else ((arg, node),):
            if isinstance(a, torch.Tensor) and n is not None:
                tracer.bind(a, n)
    schema = func._schema
    positional = [a for a, s in zip(args, schema.arguments) if not s.kwarg_only]
    keyword = {s.name: a for a, s in zip(args, schema.arguments) if s.kwarg_only}
    for s in schema.arguments:
        if s.name == "device":
            keyword["device"] = torch.device("meta")
    written = [a for a, s in zip(args, schema.arguments) if s.alias_info is not None and s.alias_info.is_write]
    try:
        out = tracer.decompose(func, positional, keyword)
        results = [t for t in pytree.tree_leaves(out) if t is None or isinstance(t, torch.Tensor)]
        if schema.is_mutable:
            results = written
        if any(t is None for t in results):
            raise Declined("an undefined result")
        return [tracer.node(t) for t in results]
    except Declined as why:
        return str(why)
    except NotImplementedError as why:
        return f"its decomposition needs what is not implemented: {why}".split("\n")[0]
    except Exception as why:  # a decomposition that fails is no reason for the op to fail
        return f"its decomposition failed ({type(why).__name__}: {why})".split("\n")[0]
