"""torch.compile(backend="tpu"): each graph that AOTAutograd hands over becomes one StableHLO program.

The graph's ATen calls go through the same op table as eager work (``_C.Graph.call``), so compiled and eager agree
because they are the same lowering. Sizes that Dynamo left symbolic are bound when the program is called: one executable
for each set of sizes met, without tracing again.
"""
import logging
import operator

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from . import _C

log = logging.getLogger(__name__)


class CannotLower(Exception):
    """A node that has no place in a program; the graph then runs op by op."""


def _row_name(op):
    name = op._schema.name.split("::", 1)[1]
    return name if op._overloadname == "default" else f"{name}.{op._overloadname}"


def _decompositions():
    """PyTorch's decompositions of everything that has no row of its own."""
    from torch._decomp import decomposition_table

    table = {}
    for op, rule in decomposition_table.items():
        if isinstance(op, torch._ops.OpOverload) and op.namespace == "aten" and not _C.has_row(_row_name(op)):
            table[op] = rule
    return table


# ---------------------------------------------------------------- symbolic sizes
def _concrete(value, bindings):
    """An int for an int or SymInt, given values of the symbols."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        result = value.node.expr.subs(bindings)
        if result.free_symbols:
            raise CannotLower(f"the size {value} depends on data")
        if isinstance(value, torch.SymBool):
            return bool(result)
        return float(result) if isinstance(value, torch.SymFloat) else int(result)
    return value


def _bind(example, actual, bindings):
    """Learns symbols from one input."""
    if isinstance(example, torch.SymInt):
        expr = example.node.expr
        if expr.is_Symbol:
            bindings[expr] = int(actual)
    elif isinstance(example, torch.Tensor):
        for size, real in zip((*example.shape, *example.stride()), (*actual.shape, *actual.stride())):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                bindings.setdefault(size.node.expr, int(real))


# ---------------------------------------------------------------- lowering
class _Lowering:
    """One FX graph, with concrete sizes, as one program."""

    def __init__(self, gm, bindings, device, graph=None):
        self.gm = gm
        self.bindings = bindings
        self.device = device
        self.graph = graph or _C.Graph(device)
        self.env = {}
        self.inputs = []  # (index of the placeholder, or the tensor itself for attributes; order of dims in memory, or None)
        self.results = []  # ("value", output number) | ("input", placeholder) | ("constant", object)

    def run(self):
        for index, node in enumerate(n for n in self.gm.graph.nodes if n.op == "placeholder"):
            self.placeholder(node, index)
        for node in self.gm.graph.nodes:
            if node.op == "get_attr":
                self.attribute(node)
            elif node.op == "call_function":
                self.env[node] = self.call(node)
            elif node.op == "output":
                self.output(node)
            elif node.op != "placeholder":
                raise CannotLower(f"{node.op} {node.target}")
        return self

    def placeholder(self, node, index):
        example = node.meta.get("val")
        if isinstance(example, torch.Tensor):
            sizes = [_concrete(s, self.bindings) for s in example.shape]
            strides = self.dense_strides(example)
            order = sorted(range(len(sizes)), key=lambda d: -strides[d]) if strides else list(range(len(sizes)))
            if order == sorted(order):
                self.env[node] = self.graph.param(example.dtype, sizes)
                self.inputs.append((index, None))
                return
            # Taken in memory order, so that a transposed input is not copied first.
            value = self.graph.param(example.dtype, [sizes[d] for d in order])
            back = [order.index(d) for d in range(len(order))]
            self.env[node] = self.graph.call("permute", value, back, _outs=[(example.dtype, sizes)])[0]
            self.inputs.append((index, order))
        else:
            self.env[node] = _concrete(example, self.bindings)

    def attribute(self, node):
        value = self.gm
        for part in node.target.split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            self.env[node] = value
            return
        self.env[node] = self.graph.param(value.dtype, list(value.shape))
        self.inputs.append((value, None))

    def argument(self, a):
        if isinstance(a, torch.fx.Node):
            return self.env[a]
        if isinstance(a, (list, tuple)):
            return [self.argument(x) for x in a]
        return _concrete(a, self.bindings)

    def types(self, node):
        value = node.meta.get("val")
        if value is None:
            return None
        values = value if isinstance(value, (list, tuple)) else (value,)
        if not all(v is None or isinstance(v, torch.Tensor) for v in values):
            return None
        return [(None, []) if v is None else (v.dtype, [_concrete(s, self.bindings) for s in v.shape]) for v in values]

    def call(self, node):
        target = node.target
        args = [self.argument(a) for a in node.args]
        kwargs = {k: self.argument(v) for k, v in node.kwargs.items()}
        if target is operator.getitem:
            return args[0][args[1]]
        if not isinstance(target, torch._ops.OpOverload):
            if isinstance(target, torch._ops.HigherOrderOperator):
                raise CannotLower(f"{target} has no lowering")
            return target(*args, **kwargs)  # arithmetic on sizes
        if target.namespace == "prims" and target._schema.name.endswith("device_put"):
            return args[0]
        name = _row_name(target)
        if target.namespace != "aten" or not _C.has_row(name):
            if target in (torch.ops.aten.sym_size.int, torch.ops.aten.sym_stride.int, torch.ops.aten.sym_numel.default):
                return _concrete(node.meta["val"], self.bindings)
            raise CannotLower(f"{target} is not in the op table")
        if _C.row_flags(name) & 4:
            raise CannotLower(f"{target} has a result whose size depends on values")
        nodes = self.graph.call(name, *args, **kwargs, _outs=self.types(node))
        single = len(target._schema.returns) == 1 and "List" not in str(target._schema.returns[0].type)
        return nodes[0] if single else nodes

    def dense_strides(self, example):
        """Strides the result has in eager mode, when they are those of a dense tensor; else None (row-major)."""
        if not isinstance(example, torch.Tensor):
            return None
        sizes = [_concrete(s, self.bindings) for s in example.shape]
        strides = [_concrete(s, self.bindings) for s in example.stride()]
        expected = 1
        for stride, size in sorted((st, si) for st, si in zip(strides, sizes) if si != 1):
            if stride != expected:
                return None
            expected *= size
        return strides

    def output(self, node):
        values, strides, seen = [], [], {}
        placeholders = {n: i for i, n in enumerate(m for m in self.gm.graph.nodes if m.op == "placeholder")}
        for a in node.args[0]:
            if isinstance(a, torch.fx.Node) and a in placeholders:
                self.results.append(("input", placeholders[a]))
            elif isinstance(a, torch.fx.Node) and isinstance(self.env[a], _C.Node):
                if a not in seen:
                    seen[a] = len(values)
                    values.append(self.env[a])
                    example = a.meta.get("val")
                    strides.append(self.dense_strides(example))
                self.results.append(("value", seen[a]))
            else:
                self.results.append(("constant", self.argument(a)))
        self.graph.outputs(values, self.donations(node, seen), strides)

    def donations(self, node, order):
        """For each value of the program (``order``: node -> its number), the parameter whose buffer it may take, or -1."""
        return None

    def compile(self):
        program = self.graph.compile()
        self.graph = None
        inputs, results = self.inputs, self.results
        reordered = [(k, order) for k, (_, order) in enumerate(inputs) if order is not None]
        device = torch.device("tpu", self.device)

        def call(args):
            tensors = [args[i] if isinstance(i, int) else i for i, _ in inputs]
            if any(t.device.type != "tpu" for t in tensors):
                tensors = [t if t.device.type == "tpu" else t.to(device) for t in tensors]
            for k, order in reordered:
                tensors[k] = tensors[k].permute(order)
            out = program.run(tensors)
            return [out[r] if kind == "value" else args[r] if kind == "input" else r for kind, r in results]

        return call


def _device_of(values):
    for v in values:
        if isinstance(v, torch.Tensor) and v.device.type == "tpu":
            return v.device.index or 0
    return None


def compile_fx(gm, example_inputs):
    """One AOTAutograd graph -> a callable taking a list of inputs (boxed) and returning a list of outputs."""
    device = _device_of(example_inputs)
    if device is None:
        for node in gm.graph.nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor) and value.device.type == "tpu":
                device = value.device.index or 0
                break
    if device is None:  # nothing of ours in it
        return _boxed(lambda args: gm(*args))
    symbolic = any(isinstance(v, torch.SymInt) or (isinstance(v, torch.Tensor) and isinstance(v, FakeTensor) and v._has_symbolic_sizes_strides)
                   for v in example_inputs)
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    programs = {}

    def build(args):
        bindings = {}
        if symbolic:
            for node, actual in zip(placeholders, args):
                _bind(node.meta.get("val"), actual, bindings)
        try:
            with _disable_current_modes():  # constants must be real
                return _Lowering(gm, bindings, device).run().compile()
        except CannotLower as reason:
            log.warning("torch.compile(backend='tpu'): this graph runs op by op: %s", reason)
            return lambda a: gm(*a)

    if not symbolic:
        static = build(example_inputs)
        return _boxed(static)

    def dynamic(args):
        key = tuple(a if isinstance(a, int) else tuple(a.shape) if isinstance(a, torch.Tensor) else None for a in args)
        program = programs.get(key)
        if program is None:
            program = programs[key] = build(args)
        return program(args)

    return _boxed(dynamic)


def _boxed(fn):
    def run(args):
        out = fn(args)
        if isinstance(args, list):
            args.clear()
        return out

    run._boxed_call = True
    return run


_backend = None


def backend(gm, example_inputs, **options):
    """The Dynamo backend. Options of ``torch.compile(options=...)`` that do not apply here are ignored."""
    global _backend
    if _backend is None:
        from . import tpu

        tpu._lazy_init()
        _backend = aot_autograd(fw_compiler=compile_fx, bw_compiler=compile_fx, inference_compiler=compile_fx,
                                decompositions=_decompositions())
    return _backend(gm, example_inputs)
