"""Programs for bounded sizes: one for each set of bounds, the true sizes as an operand.

Every value has room for the largest sizes and keeps its true content at the corner at 0; what lies beyond is anything.
Most operations do not care. Those that would mix the padding in get it filled first with what is neutral for them;
``dynamic_rules.py`` and its siblings say, operation by operation, what is done. An operation without a rule that meets
a symbolic size makes the whole graph fall back to one program for each set of sizes.

A dim is a tuple of *factors* (true size, bound), outermost first. Merging dims whose inner one is padded leaves the
padding in between: the merged dim keeps both factors and no data moves. Most operations work on such a dim as it is.
"""
import dataclasses
import math
import operator

import sympy
import torch

from .. import _C
from .._run import caller
from .bounds import code, expression
from .lowering import ASSERTIONS, SIZES, Lowering, gives_one, row_name
from .sizes import CannotLower, mapped

aten = torch.ops.aten


@dataclasses.dataclass(frozen=True)
class Sym:
    """A number that depends on the true sizes."""

    expr: object

    def __repr__(self):
        return str(self.expr)


@dataclasses.dataclass(eq=False)
class Val:
    """A tensor: the graph's value and, for each dim, its factors."""

    node: object
    dtype: torch.dtype
    dims: tuple

    @property
    def physical(self):
        return [room(d) for d in self.dims]

    @property
    def rank(self):
        return len(self.dims)

    def dynamic(self, which=None):
        """The dims, among |which|, whose true size is not their bound."""
        return [d for d in (range(self.rank) if which is None else which) if not is_static(self.dims[d])]


ONE = ((1, 1),)


def room(dim):
    return math.prod(b for _, b in dim)


def is_static(dim):
    return all(isinstance(s, int) for s, _ in dim)


def true_size(dim):
    total = 1
    for s, _ in dim:
        total = s * total
    return total


def same_size(a, b):
    """Whether two sizes are known to be equal."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return a == b or sympy.expand(a - b) == 0


def collapse(factors):
    """The dim made of |factors|, with those joined between which there is no padding."""
    out = []
    for size, bound in factors:
        if (size, bound) == (1, 1):
            continue
        if out and isinstance(size, int):  # an inner factor without padding
            s, b = out.pop()
            out.append((s * size, b * bound))
        else:
            out.append((size, bound))
    return tuple(out) or ONE


class BoundedLowering(Lowering):
    """Lowers ``gm`` for the bounds in ``bounds``. Raises CannotLower where there is no sound way."""

    def __init__(self, gm, bounds, symbols, device, options, rules, graph=None):
        super().__init__(gm, {}, device, options, graph)
        self.bounds = bounds
        self.symbols = symbols
        self.rules = rules
        self.places = {}  # text -> place in the operand of numbers
        self.result_sizes = []  # texts, of all results one after another
        self.memo = {}
        self.assumptions = set()  # texts that must be true of the symbols, or the program is not for them
        self.elements = {}  # numel expressions of what was lowered -> how often
        self.room = 0
        self.operand = self.graph.sizes(MAX_NUMBERS)

    # ------------------------------------------------------------ sizes
    def dim(self, size):
        """The plain dim of a size (int, SymInt or expression)."""
        e = expression(size) if isinstance(size, (int, torch.SymInt)) else size
        return ((e, self.bounds.of(e)),)

    def number(self, text):
        """0-d i64 value of Python |text| over the symbols."""
        key = ("number", text)
        if key not in self.memo:
            place = self.places.setdefault(text, len(self.places))
            if place >= MAX_NUMBERS:
                raise CannotLower(f"more than {MAX_NUMBERS} numbers that depend on sizes")
            self.memo[key] = self.op("select.int", torch.int64, (), self.operand, 0, place)
        return self.memo[key]

    def size_node(self, e):
        return self.number(code(e))

    def factors(self, dim):
        return [(None if isinstance(s, int) else self.size_node(s), b) for s, b in dim]

    # ------------------------------------------------------------ emitting
    def op(self, name, result, physical, /, *args, **kwargs):
        """One row on values of the graph; |result|, |physical|: dtype and dims of its one result."""
        return self.graph.call(name, *args, _outs=[(result, list(physical))], **kwargs)[0]

    def row(self, name, dtype, dims, /, *args, **kwargs):
        """One row on values of the graph whose one result has |dims|: a Val."""
        dims = tuple(dims)
        return Val(self.op(name, dtype, [room(d) for d in dims], *args, **kwargs), dtype, dims)

    def view(self, v, dims):
        """|v|'s elements as |dims|, with as much room in all."""
        physical = [room(d) for d in dims]
        return self.row("view", v.dtype, dims, v.node, physical)

    def constant(self, value, dtype):
        key = ("constant", value, dtype)
        if key not in self.memo or value != value:
            self.memo[key] = self.graph.constant(torch.tensor(value, dtype=dtype))
        return self.memo[key]

    def convert(self, v, dtype):
        if v.dtype == dtype:
            return v
        return self.row("_to_copy", dtype, v.dims, v.node, dtype=dtype)

    def mask(self, v, which):
        """True where an element of |v| is there, along the dims |which|; broadcastable to it."""
        total = None
        for d in which:
            key = ("mask", v.dims[d])
            if key not in self.memo:
                self.memo[key] = self.graph.mask(self.factors(v.dims[d]))
            shape = [1] * v.rank
            shape[d] = room(v.dims[d])
            m = self.op("view", torch.bool, shape, self.memo[key], shape)
            if total is None:
                total, have = m, shape
            else:
                have = [max(a, b) for a, b in zip(have, shape)]
                total = self.op("bitwise_and.Tensor", torch.bool, have, total, m)
        return total

    def fill(self, v, value, which=None):
        """|v| with |value| in the padding of the dims |which| (None: all)."""
        which = v.dynamic(which)
        if not which:
            return v
        key = ("fill", v.node.id, v.dims, str(value), tuple(which))
        if key not in self.memo:
            self.memo[key] = self.row("where.self", v.dtype, v.dims, self.mask(v, which), v.node, self.constant(value, v.dtype))
        return self.memo[key]

    # ------------------------------------------------------------ room
    def resize(self, v, d, dim, value=0):
        """|v| whose dim |d| is |dim|, of which it holds a prefix or more; |value| in new room."""
        have, want = room(v.dims[d]), room(dim)
        physical = v.physical
        physical[d] = want
        node = v.node
        if want < have:
            node = self.op("slice.Tensor", v.dtype, physical, node, d, 0, want, 1)
        elif want > have:
            pads = [0] * (2 * (v.rank - d))
            pads[-1] = want - have
            node = self.op("constant_pad_nd", v.dtype, physical, node, pads, value)
        return Val(node, v.dtype, (*v.dims[:d], dim, *v.dims[d + 1:]))

    def to_dim(self, v, d, want):
        """|v| whose dim |d| is laid out as |want|, of the same true size."""
        if v.dims[d] == want:
            return v
        if len(v.dims[d]) == 1 and len(want) == 1:
            return self.resize(v, d, want)
        node = self.graph.regroup(v.node, d, self.factors(v.dims[d]), self.factors(want))
        return Val(node, v.dtype, (*v.dims[:d], want, *v.dims[d + 1:]))

    def to_dims(self, v, dims):
        """|v| laid out as |dims|, whose true sizes are its own."""
        for d, want in enumerate(dims):
            v = self.to_dim(v, d, want)
        return v

    def plain(self, v, which=None):
        """|v| with one factor, of its own bound, in each of the dims |which| (None: all)."""
        for d in range(v.rank) if which is None else which:
            v = self.to_dim(v, d, self.dim(true_size(v.dims[d])))
        return v

    def unify(self, values, places):
        """|values| with one layout at each of |places|: for each value the dim it has there, None where it has none."""
        values = list(values)
        for at in places:
            here = [(i, d) for i, d in enumerate(at) if d is not None]
            dims = {values[i].dims[d] for i, d in here}
            if len(dims) < 2:
                continue
            sizes = [true_size(x) for x in dims]
            for s in sizes[1:]:
                self.assume_equal(sizes[0], s)
            want = self.dim(sizes[0])
            for i, d in here:
                values[i] = self.to_dim(values[i], d, want)
        return values

    def broadcast(self, values):
        """|values| whose dims agree where they are aligned from the right, and the dims of what they make together."""
        rank = max((v.rank for v in values), default=0)
        places = []
        for d in range(rank):
            at = [d - (rank - v.rank) for v in values]
            places.append([k if k >= 0 and values[i].dims[k] != ONE else None for i, k in enumerate(at)])
        values = self.unify(values, places)
        dims = []
        for at in places:
            dims.append(next((values[i].dims[k] for i, k in enumerate(at) if k is not None), ONE))
        return values, tuple(dims)

    def regroup(self, v, sizes):
        """|v| viewed with other |sizes| (expressions)."""
        factors = [f for d in v.dims for f in d if f != (1, 1)]
        groups, i, j = [], 0, 0  # (factors, sizes)
        while i < len(factors) or j < len(sizes):
            if j < len(sizes) and sizes[j] == 1:
                groups.append(([], [1]))
                j += 1
                continue
            a, b = [], []
            while True:
                p, q = true_size(a), math.prod(b, start=sympy.Integer(1)) if b else 1
                if a and b and same_size(p, q):
                    break
                grow_a = not a or (b and self.guess(p) < self.guess(q))
                if grow_a and i < len(factors):
                    a.append(factors[i])
                    i += 1
                elif j < len(sizes):
                    b.append(sizes[j])
                    j += 1
                elif i < len(factors):
                    a.append(factors[i])
                    i += 1
                else:
                    break
            groups.append((a, b))
        return self.apply_groups(v, groups)

    def guess(self, e):
        return e if isinstance(e, int) else float(e.subs(self.bounds.rungs))

    def apply_groups(self, v, groups):
        dims, physical = [], [math.prod(b for _, b in a) for a, _ in groups]
        flat = Val(v.node, v.dtype, tuple(collapse(a) for a, _ in groups))
        if flat.physical != v.physical:
            flat.node = self.op("view", v.dtype, physical, v.node, physical)
        for g, (a, b) in enumerate(groups):
            have = flat.dims[g]
            if len(b) == 1:
                dims.append(have if b[0] != 1 else ONE)
                continue
            if not b:
                if have != ONE:
                    raise CannotLower("a view that drops elements")
                continue
            static = all(isinstance(s, int) for s in b)
            inner = math.prod(b[1:]) if all(isinstance(s, int) for s in b[1:]) else None
            if static and is_static(have):
                dims += [((s, s),) for s in b]
            elif len(have) == 1 and inner:
                outer = self.dim(b[0])
                flat = self.resize(flat, g, ((have[0][0], room(outer) * inner),))
                dims += [outer, *(((s, s),) for s in b[1:])]
            else:
                want = [self.dim(s) for s in b]
                joined = tuple(f for d in want for f in d)
                flat = self.to_dim(flat, g, joined)
                dims += want
        out = Val(flat.node, v.dtype, tuple(dims))
        return out if out.physical == flat.physical else self.view(flat, out.dims)

    # ------------------------------------------------------------ inputs
    def host_numbers(self):
        found = super().host_numbers()
        return {n: Val(v, n.meta["val"].dtype, ()) for n, v in found.items()}

    def placeholder(self, node, index):
        example = node.meta.get("val")
        if isinstance(example, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.symbolic(example)
        if not isinstance(example, torch.Tensor):
            return example
        dims = tuple(self.dim(s) for s in example.shape)
        value = Val(None, example.dtype, dims)
        physical = value.physical
        order = self.memory_order(example)
        self.param_of[index] = len(self.inputs)
        if order is None or order == sorted(order):
            self.inputs.append((index, None))
            value.node = self.graph.param(example.dtype, physical)
            return value
        self.inputs.append((index, order))
        param = self.graph.param(example.dtype, [physical[d] for d in order])
        value.node = self.op("permute", example.dtype, physical, param, [order.index(d) for d in range(len(order))])
        return value

    def attribute(self, gm, name):
        value = super().attribute(gm, name)
        if not isinstance(value, _C.Node):
            return value
        dtype, sizes = self.graph.type(value)
        return Val(value, dtype, tuple(((s, s),) for s in sizes))

    # ------------------------------------------------------------ nodes
    def symbolic(self, value):
        e = value.node.expr
        if isinstance(value, torch.SymInt):
            return int(e) if e.is_number else Sym(e)
        if not e.free_symbols:
            return bool(e) if isinstance(value, torch.SymBool) else float(e)
        return Sym(e)

    def plain_argument(self, a):
        return self.symbolic(a) if isinstance(a, (torch.SymInt, torch.SymFloat, torch.SymBool)) else a

    def expected(self, node):
        """Of each result: (dtype, sizes as expressions), None where nobody looks at it or it is no tensor."""
        value = node.meta.get("val")
        if value is None:
            return None
        values = value if isinstance(value, (list, tuple)) else (value,)
        used = range(len(values))
        pieces = isinstance(value, list)  # of one value: where each begins follows from those before it
        if not pieces and isinstance(value, (list, tuple)) and node.users and all(u.target is operator.getitem for u in node.users):
            used = {u.args[1] for u in node.users}
        return [None if i not in used or not isinstance(v, torch.Tensor) else (v.dtype, [expression(s) for s in v.shape])
                for i, v in enumerate(values)]

    def call(self, node, env):
        target = node.target
        args = [self.argument(a, env) for a in node.args]
        kwargs = {k: self.argument(v, env) for k, v in node.kwargs.items()}
        if target is operator.getitem:
            return args[0][args[1]]
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.symbolic(value)
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self.higher_order(node, target, args, kwargs)
        if not isinstance(target, torch._ops.OpOverload):
            if any(isinstance(a, (Val, Sym)) for a in args):
                raise CannotLower(f"{target} on what depends on sizes")
            return target(*args, **kwargs)
        if target is aten.copy_.default and node.args[0] in self.placeholders:
            return self.write(node, env, args[1])
        if target in ASSERTIONS:
            raise CannotLower(f"{target} of what depends on sizes")
        name = row_name(target)
        if target.namespace == "prims":
            if target._schema.name.endswith("device_put"):
                return args[0]
            if not target._schema.name.endswith("convert_element_type"):
                raise CannotLower(f"{target} is not in the op table")
            name, kwargs, args = "_to_copy", {"dtype": args[1]}, args[:1]
        elif target in SIZES:
            return expression(value)
        elif target.namespace != "aten" or not _C.has_row(name):
            raise CannotLower(f"{target} is not in the op table")
        if _C.row_flags(name) & _C.OP_DATA_DEPENDENT:
            raise CannotLower(f"{target} has a result whose size depends on values")
        outs = self.expected(node)
        result = self.apply(name, target, args, kwargs, outs)
        self.account(outs)
        return result[0] if gives_one(target) else result

    def account(self, outs):
        for o in outs or ():
            if o is not None:
                n = math.prod(o[1], start=sympy.Integer(1))
                self.elements[n] = self.elements.get(n, 0) + 1
                self.room += math.prod(self.bounds.of(s) for s in o[1])

    def apply(self, name, target, args, kwargs, outs):
        flat = list(_leaves([args, kwargs]))
        vals = [a for a in flat if isinstance(a, Val)]
        dynamic = any(isinstance(a, Sym) for a in flat) or any(v.dynamic() for v in vals)
        dynamic = dynamic or any(not isinstance(s, int) for o in outs or () if o for s in o[1])
        if not dynamic:
            nodes = self.graph.call(name, *_nodes(args), **_nodes(kwargs),
                                    _outs=[(None, []) if o is None else (o[0], o[1]) for o in outs] if outs else None)
            return self.wrap(nodes, outs)
        rule = self.rules.find(name)
        if rule is None:
            raise CannotLower(f"{name} has no treatment of symbolic sizes")
        result = rule(self, self.rules.bind(name, target, args, kwargs, outs))
        return [self.verified(name, v, o) for v, o in zip(result, outs)]

    def verified(self, name, v, expected):
        """A rule's result, which must be of the expected dtype and sizes, and have the room it says."""
        if v is None or expected is None:
            return v
        dtype, sizes = expected
        real, physical = self.graph.type(v.node)
        if list(physical) != v.physical or real != dtype or v.dtype != dtype or len(sizes) != v.rank:
            raise CannotLower(f"{name}: a result of {v.dims}, {physical} {real} where {sizes} {dtype} is expected")
        for d, s in zip(v.dims, sizes):
            self.assume_equal(true_size(d), s)
        return v

    def assume_equal(self, a, b):
        """The program is right only where two sizes are equal: they are known to be, or calls are looked at for it."""
        if same_size(a, b):
            return
        if isinstance(a, int) and isinstance(b, int):
            raise CannotLower(f"sizes {a} and {b} where equal ones are expected")
        self.assumptions.add(f"({code(a)}) == ({code(b)})")

    def wrap(self, nodes, outs):
        return [n if o is None else Val(n, o[0], tuple(((s, s),) for s in o[1])) for n, o in zip(nodes, outs)]

    def higher_order(self, node, target, args, kwargs):
        raise CannotLower(f"{target} in a graph with symbolic sizes")

    def write(self, node, env, value):
        place = node.args[0]
        example = place.meta["val"]
        want = tuple(self.dim(s) for s in example.shape)
        value = self.convert(value, example.dtype)
        (value,), dims = self.broadcast([value])
        if value.rank < len(want) or any(d == ONE and w != ONE for d, w in zip(value.dims, want)):
            raise CannotLower("an input is written with a value of other sizes")
        value = self.to_dims(value, want)
        self.written[self.placeholders.index(place)] = value
        env[place] = value
        return value

    # ------------------------------------------------------------ results
    def memory_order(self, example):
        """Dims, outermost first, in which a dense tensor like |example| lies in memory; None when it is not dense."""
        sizes = [self.bounds.of(expression(s)) for s in example.shape]
        strides = [self.bounds.of(expression(s)) for s in example.stride()]
        order = sorted(range(len(sizes)), key=lambda d: -strides[d])
        expected = 1
        for d in reversed(order):
            if sizes[d] != 1 and strides[d] != expected:
                return None
            expected *= sizes[d]
        return order

    def strides_of(self, example, physical):
        """Strides of a buffer of |physical| dims that lies in memory as |example| does; None: row-major."""
        order = self.memory_order(example)
        if order is None:
            return None
        strides, step = [0] * len(physical), 1
        for d in reversed(order):
            strides[d] = step
            step *= physical[d]
        return strides

    def output(self, node, env):
        values, strides, donate, shapes, seen = [], [], [], [], {}
        writers = {n: n.args[0] for n in self.gm.graph.nodes
                   if n.op == "call_function" and n.target is aten.copy_.default and n.args[0] in self.placeholders}

        def add(v, example, donor):
            values.append(v.node)
            strides.append(self.strides_of(example, v.physical))
            donate.append(donor)
            shapes.append(example.shape)
            return len(values) - 1

        for a in node.args[0]:
            a = writers.get(a, a) if isinstance(a, torch.fx.Node) else a
            if isinstance(a, torch.fx.Node) and a.op == "placeholder":
                self.results.append(("input", self.placeholders.index(a)))
            elif isinstance(a, torch.fx.Node) and isinstance(env[a], Val):
                if a not in seen:
                    seen[a] = add(self.result(env[a]), a.meta["val"], -1)
                self.results.append(("down" if a.meta["val"].device.type == "cpu" else "value", seen[a]))
            else:
                self.results.append(("constant", self.argument(a, env)))
        for index, v in self.written.items():
            example = self.placeholders[index].meta["val"]
            mine = self.options.donation and example.device.type == "tpu"
            self.write_results.append((add(v, example, self.param_of[index] if mine else -1), index))
        self.graph.outputs(values, donate, strides)
        for number, _ in self.write_results:
            if donate[number] >= 0:
                self.graph.write_back(number)
        self.result_sizes = [code(expression(s)) for shape in shapes for s in shape]

    def result(self, v):
        """|v| as a result: one factor a dim, with room on the ladder where the next program will look for it."""
        v = self.plain(v)
        return self.to_dims(v, tuple(((true_size(d), self.bounds.of_result(true_size(d))),) for d in v.dims))

    def compile(self):
        program = self.graph.compile(self.options.overrides)
        self.graph = None
        return Program(self, program).call


MAX_NUMBERS = 64


class Program:
    """A compiled program for one set of bounds, callable with the graph's inputs and the symbols' values."""

    def __init__(self, lowered, program):
        self.program = program
        self.read = lowered.symbols.read
        numbers = list(lowered.places) + ["0"] * (MAX_NUMBERS - len(lowered.places))
        self.scalars = [k for k, (_, r) in enumerate(lowered.results) if isinstance(r, Sym)]
        scalars = [code(lowered.results[k][1].expr) for k in self.scalars]
        self.texts = [*numbers, *lowered.result_sizes, *scalars]
        self.split = len(numbers), len(numbers) + len(lowered.result_sizes)
        self.evaluate = lowered.symbols.function(self.texts)
        count = " + ".join(f"{n} * ({code(e)})" for e, n in lowered.elements.items()) or "0"
        self.count = lowered.symbols.function([count])
        self.room = lowered.room
        self.known = {}
        from .dynamic_programs import count_call

        self.count_call = count_call
        self.run = caller(program, torch.device("tpu", lowered.device), lowered.inputs, lowered.results, lowered.write_results, self.bounded)

    def host(self, values):
        """(numbers, sizes of results, results that are numbers, elements) at the symbols' |values|."""
        found = self.known.get(values)
        if found is None:
            if len(self.known) > 4096:
                self.known.clear()
            all_of_them = self.evaluate(*values)
            a, b = self.split
            found = self.known[values] = (list(map(int, all_of_them[:a])), list(map(int, all_of_them[a:b])), all_of_them[b:],
                                          int(self.count(*values)[0]))
        return found

    def bounded(self, args, tensors, writes):
        numbers, sizes, _, elements = self.host(self.read(args))
        self.count_call(elements, self.room)
        return self.program.run_bounded(tensors, numbers, sizes, writes)

    def call(self, args):
        out = self.run(args)
        if self.scalars:
            for k, value in zip(self.scalars, self.host(self.read(args))[2]):
                out[k] = value
        return out


def _leaves(tree):
    if isinstance(tree, (list, tuple)):
        for x in tree:
            yield from _leaves(x)
    elif isinstance(tree, dict):
        for x in tree.values():
            yield from _leaves(x)
    else:
        yield tree


def _nodes(tree):
    """|tree| with values of the graph in place of Val."""
    return mapped(tree, lambda x: x.node if isinstance(x, Val) else x)
