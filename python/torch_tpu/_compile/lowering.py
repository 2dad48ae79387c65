"""One FX graph of ATen calls, with concrete sizes, as one program."""
import operator

import torch

from .. import _C
from .._run import caller
from . import control
from .host import Host, is_host
from .options import PRECISIONS
from .sizes import CannotLower, DependsOnData, concrete, mapped

aten = torch.ops.aten
# Of sizes: true or false once those are known.
ASSERTIONS = (aten._assert_scalar.default, aten.sym_constrain_range.default, aten.sym_constrain_range_for_size.default)
# Names that AOTAutograd writes for rows called otherwise.
ALIASES = {"true_divide.Tensor": "div.Tensor", "true_divide.Scalar": "div.Scalar"}
SIZES = (aten.sym_size.int, aten.sym_stride.int, aten.sym_numel.default)


def row_name(op):
    name = op._schema.name.removeprefix("aten::")
    name = name if op._overloadname == "default" else f"{name}.{op._overloadname}"
    return ALIASES.get(name, name)


def gives_one(target):
    """Whether an operator's result is one tensor, and no tuple or list."""
    return len(target._schema.returns) == 1 and "List" not in str(target._schema.returns[0].type)


def users_line(node):
    """The user's line that made |node|, for messages; "" when it is not known."""
    trace = (node.meta.get("stack_trace") or "").strip().splitlines()
    return "\n".join(trace[-2:])


def _with_line(error, node):
    line = users_line(node)
    message = f"torch.compile(backend='tpu'): {node.target}: {error}" + (f"\nin the user's code:\n{line}" if line else "")
    try:
        return type(error)(message)
    except Exception:  # noqa: BLE001 - an exception that wants more than a message
        return RuntimeError(message)


class Lowering:
    """Lowers ``gm`` for the sizes in ``bindings`` on tpu:``device``.

    Raises CannotLower when a node has no place in a program, and what the op table raises, with the user's line.
    """

    def __init__(self, gm, bindings, device, options, graph=None):
        self.gm = gm
        self.bindings = bindings
        self.device = device
        self.options = options
        self.graph = graph or _C.Graph(device)
        if options.precision is not None:
            self.graph.precision(PRECISIONS[options.precision])
        self.placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self.inputs = []  # (index of the placeholder, or the tensor itself for attributes; order of dims in memory, or None)
        self.param_of = {}  # placeholder number -> number of the program's parameter
        self.attributes = {}  # id of a tensor -> (the tensor, its value)
        self.written = {}  # placeholder number -> its new value
        self.results = []  # ("value", output number) | ("input", placeholder) | ("constant", object)
        self.write_results = []  # (output number, placeholder)
        # A graph that is only printed, or written to a file, may have been traced on the CPU: all of it is the device's.
        self.host = Host(gm, self.placeholders) if graph is None else Host(gm, [])
        self.host_results = []  # (node, number in results, or None, placeholder that it is written to, or None)

    def run(self):
        env = self.host_numbers()
        for index, node in enumerate(self.placeholders):
            if node not in env:
                env[node] = self.placeholder(node, index)
        output = self.interpret(self.gm, env)
        self.output(output, env)
        return self

    # ------------------------------------------------------------ inputs
    def host_numbers(self):
        """Placeholders of single numbers on the host: one parameter for all those of a dtype."""
        env = {}
        for dtype, found in self.host.numbers.items():
            self.inputs.append((found, None))
            together = self.graph.param(dtype, [len(found)])
            for k, index in enumerate(found):
                env[self.placeholders[index]] = self.graph.call("select.int", together, 0, k, _outs=[(dtype, [])])[0]
        return env

    def placeholder(self, node, index):
        example = node.meta.get("val")
        if not isinstance(example, torch.Tensor):
            return concrete(example, self.bindings)
        sizes = [concrete(s, self.bindings) for s in example.shape]
        strides = self.dense_strides(example)
        order = sorted(range(len(sizes)), key=lambda d: -strides[d]) if strides else list(range(len(sizes)))
        self.param_of[index] = len(self.inputs)
        if order == sorted(order):
            self.inputs.append((index, None))
            return self.graph.param(example.dtype, sizes)
        # Taken in memory order, so that a transposed input is not copied first.
        self.inputs.append((index, order))
        value = self.graph.param(example.dtype, [sizes[d] for d in order])
        back = [order.index(d) for d in range(len(order))]
        return self.graph.call("permute", value, back, _outs=[(example.dtype, sizes)])[0]

    def attribute(self, gm, name):
        value = gm
        for part in name.split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self.attributes:
            self.attributes[id(value)] = value, self.graph.param(value.dtype, list(value.shape))
            self.inputs.append((value, None))
        return self.attributes[id(value)][1]

    # ------------------------------------------------------------ nodes
    def interpret(self, gm, env):
        """Lowers every node of |gm|; |env| holds its placeholders and is filled. Returns its output node."""
        for node in gm.graph.nodes:
            if node.op == "get_attr":
                env[node] = self.attribute(gm, node.target)
            elif node.op == "call_function":
                try:
                    env[node] = self.call(node, env)
                except CannotLower as e:
                    raise self.at(node, e, gm)
                except NotImplementedError as e:
                    raise self.at(node, CannotLower(str(self.located(e, node))), gm) from e
                except Exception as e:  # noqa: BLE001 - the same error, with the line
                    raise self.located(e, node) from e
            elif node.op == "output":
                return node
            elif node.op != "placeholder":
                raise CannotLower(f"{node.op} {node.target}")
        raise CannotLower("a graph without an output")

    def located(self, error, node):
        """|error| with the user's line."""
        return _with_line(error, node)

    def at(self, node, reason, gm):
        """|reason| with the node of the whole graph that it is about."""
        if gm is self.gm:
            reason.node = node
        return reason

    def inline(self, gm, values):
        """The outputs of |gm| called on |values|, lowered where we are."""
        if not isinstance(gm, torch.fx.GraphModule):
            raise CannotLower(f"{gm!r} is no graph")
        places = [n for n in gm.graph.nodes if n.op == "placeholder"]
        if len(places) != len(values):
            raise CannotLower(f"a graph of {len(places)} arguments is given {len(values)}")
        env = dict(zip(places, values))
        return self.argument(self.interpret(gm, env).args[0], env)

    def argument(self, a, env):
        """The argument |a| of a node, in the graph's values and numbers."""
        return mapped(a, lambda x: env[x] if isinstance(x, torch.fx.Node) else self.plain_argument(x))

    def plain_argument(self, a):
        return concrete(a, self.bindings)

    def types(self, node, all_of_them=False):
        value = node.meta.get("val")
        if value is None:
            return None
        values = value if isinstance(value, (list, tuple)) else (value,)
        if not all(v is None or isinstance(v, torch.Tensor) for v in values):
            return None
        used = range(len(values))
        if not all_of_them and isinstance(value, (list, tuple)) and all(u.target is operator.getitem for u in node.users):
            used = {u.args[1] for u in node.users}  # what nobody looks at may not exist (an output mask, for one)
        return [(None, []) if v is None else (v.dtype if i in used else None, [concrete(s, self.bindings) for s in v.shape])
                for i, v in enumerate(values)]

    def call(self, node, env):
        target = node.target
        args = [self.argument(a, env) for a in node.args]
        kwargs = {k: self.argument(v, env) for k, v in node.kwargs.items()}
        if target is operator.getitem:
            return args[0][args[1]]
        if isinstance(target, torch._ops.HigherOrderOperator):
            lower = control.TABLE.get(target.name())
            if lower is None:
                raise CannotLower(f"{target} has no lowering")
            return lower(self, node, *args, **kwargs)
        if not isinstance(target, torch._ops.OpOverload):
            if any(isinstance(a, _C.Node) for a in args):
                raise CannotLower(f"{target} on a tensor's value")
            return target(*args, **kwargs)  # arithmetic on sizes
        if target.namespace == "prims" and target._schema.name.endswith("device_put"):
            return args[0]
        if target is torch.ops.prims.convert_element_type.default:
            return self.graph.call("_to_copy", args[0], dtype=args[1], _outs=self.types(node))[0]
        if target in ASSERTIONS and not any(isinstance(a, _C.Node) for a in args):
            return target(*args, **kwargs)
        if target is aten.copy_.default and node.args[0] in self.placeholders and env is not None:
            return self.write(node, env, args[1])
        if target is aten._local_scalar_dense.default:
            raise DependsOnData("a tensor's value becomes a number of the host")
        name = row_name(target)
        if not _C.has_row(name):
            if target in SIZES:
                return concrete(node.meta["val"], self.bindings)
            raise CannotLower(f"{target} is not in the op table")
        if _C.row_flags(name) & _C.OP_DATA_DEPENDENT:
            raise DependsOnData(f"{target} has a result whose size depends on values")
        nodes = self.graph.call(name, *args, **kwargs, _outs=self.types(node))
        return nodes[0] if gives_one(target) else nodes

    def write(self, node, env, value):
        """The epilogue of a mutation: input |node.args[0]| takes |value|."""
        place = node.args[0]
        example = place.meta["val"]
        sizes = [concrete(s, self.bindings) for s in example.shape]
        value = self.graph.call("expand", self.graph.call("_to_copy", value, dtype=example.dtype)[0], sizes,
                                _outs=[(example.dtype, sizes)])[0]
        self.written[self.placeholders.index(place)] = value
        env[place] = value
        return value

    # ------------------------------------------------------------ results
    def dense_strides(self, example):
        """Strides the result has in eager mode, when they are those of a dense tensor; else None (row-major)."""
        if not isinstance(example, torch.Tensor):
            return None
        sizes = [concrete(s, self.bindings) for s in example.shape]
        strides = [concrete(s, self.bindings) for s in example.stride()]
        expected = 1
        for stride, size in sorted((st, si) for st, si in zip(strides, sizes) if si != 1):
            if stride != expected:
                return None
            expected *= size
        return strides

    def output(self, node, env):
        values, strides, donate, seen = [], [], [], {}
        writers = {n: n.args[0] for n in self.gm.graph.nodes
                   if n.op == "call_function" and n.target is aten.copy_.default and n.args[0] in self.placeholders}
        for a in node.args[0]:
            a = writers.get(a, a) if isinstance(a, torch.fx.Node) else a
            if isinstance(a, torch.fx.Node) and a.op == "placeholder":
                self.results.append(("input", self.placeholders.index(a)))
            elif isinstance(a, torch.fx.Node) and a in self.host.nodes:
                self.host_results.append((a, len(self.results), None))
                self.results.append(("constant", None))
            elif isinstance(a, torch.fx.Node) and isinstance(env[a], _C.Node):
                if a not in seen:
                    seen[a] = len(values)
                    values.append(env[a])
                    strides.append(self.dense_strides(a.meta.get("val")))
                    donate.append(-1)
                self.results.append(("down" if self.host.placeholders and is_host(a.meta.get("val")) else "value", seen[a]))
            else:
                self.results.append(("constant", self.argument(a, env)))
        donate = self.donations(node, seen) or donate
        sources = {self.placeholders.index(place): n.args[1] for n, place in writers.items()}
        for index, value in self.written.items():
            example = self.placeholders[index].meta["val"]
            source = sources.get(index)
            if source in self.host.nodes and source.meta["val"].dtype == example.dtype and source.meta["val"].shape == example.shape:
                self.host_results.append((source, None, index))
                continue
            self.write_results.append((len(values), index))
            values.append(value)
            strides.append(self.dense_strides(example))
            # What lives on the host is copied to the device for the program: nothing of it to take over.
            mine = self.options.donation and example.device.type == "tpu"
            donate.append(self.param_of[index] if mine else -1)
        self.graph.outputs(values, donate, strides)
        for number, _ in self.write_results:
            if donate[number] >= 0:
                self.graph.write_back(number)

    def donations(self, node, order):
        """For each value of the program (``order``: node -> its number), the parameter whose buffer it may take, or -1."""
        return None

    def ours(self):
        """The number of inputs, where every parameter comes as a tpu tensor (Dynamo's guards see to it that it stays so)."""
        mine = all((i.device if isinstance(i, torch.Tensor) else self.placeholders[i].meta["val"].device).type == "tpu"
                   for i, _ in self.inputs if not isinstance(i, list))
        return len(self.placeholders) if mine and not self.host.numbers else None

    def compile(self):
        """The callable: list of inputs -> list of outputs."""
        program = self.graph.compile(self.options.overrides)
        self.graph = None
        call = caller(program, torch.device("tpu", self.device), self.inputs, self.results, self.write_results, ours=self.ours())
        if not self.host_results:
            return call
        host, results = self.host.program([n for n, _, _ in self.host_results]), [(r, place) for _, r, place in self.host_results]

        def call_both(args):
            values = host(args)
            out = call(args)
            for value, (result, place) in zip(values, results):
                if place is not None:
                    args[place].copy_(value)
                else:
                    out[result] = value
            return out

        return call_both
