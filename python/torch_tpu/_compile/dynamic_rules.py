"""What is done, operation by operation, about dims whose true size is below their bound.

A rule takes the lowering and the operation's arguments and gives its results as Val. Its results are verified against
the sizes that PyTorch expects, so that a rule that does not fit makes the graph fall back, not give wrong values.
"""
import types

import torch

from .. import _C
from .bounds import code
from .dynamic import ONE, Sym, Val, is_static, room, true_size
from .sizes import CannotLower

RULES = {}


def rule(*names):
    def register(f):
        for name in names:
            RULES[name] = f
        return f

    return register


def find(name):
    """The rule of row |name|, or None."""
    found = RULES.get(name)
    if found is None and _C.has_row(name) and _C.row_flags(name) & _C.OP_POINTWISE and not _C.row_flags(name) & _C.OP_RANDOM:
        return pointwise
    return found


def bind(name, target, args, kwargs, outs):
    """The call's arguments by the schema's names, with defaults; ``a.name``, ``a.outs``, ``a.positional`` (in order),
    ``a.overload``."""
    a = types.SimpleNamespace()
    positional = []
    for i, arg in enumerate(target._schema.arguments):
        if i < len(args):
            v = args[i]
        elif arg.name in kwargs:
            v = kwargs[arg.name]
        else:
            v = arg.default_value
        setattr(a, "input" if arg.name == "self" else arg.name, v)
        positional.append(v)
    if target.namespace == "prims":  # dtypes are converted by one row
        positional, a.input = list(args), args[0]
        a.keywords = dict(kwargs)
    else:
        a.keywords = {}
    a.name, a.outs, a.positional, a.overload = name, outs, positional, target
    return a


def wrapped(dim, rank):
    return dim + rank if dim < 0 else dim


def first(a):
    """(dtype, sizes) of the one result."""
    return a.outs[0]


def sized(low, a, i=0):
    """Plain dims of result |i|."""
    return tuple(low.dim(s) for s in a.outs[i][1])


def emit(low, a, dims, *args, i=0, name=None, **kwargs):
    """One row whose result |i| has |dims|: a Val."""
    return low.row(name or a.name, a.outs[i][0], dims, *args, **kwargs)


def emit_all(low, a, all_dims, *args):
    """One row with several results; |all_dims|: of each, None where nobody looks at it."""
    types_ = [(None, []) if o is None or d is None else (o[0], [room(x) for x in d]) for o, d in zip(a.outs, all_dims)]
    nodes = low.graph.call(a.name, *args, _outs=types_)
    return [None if o is None or d is None else Val(n, o[0], tuple(d)) for n, o, d in zip(nodes, a.outs, all_dims)]


def static_ints(a, *values):
    for v in values:
        for x in v if isinstance(v, (list, tuple)) else (v,):
            if isinstance(x, Sym):
                raise CannotLower(f"{a.name} with an argument that depends on sizes")


# ---------------------------------------------------------------- elementwise
def _scalar_forms(name):
    base, _, overload = name.partition(".")
    return {"Scalar": [f"{base}.Tensor"], "Tensor_Scalar": [f"{base}.Tensor_Tensor"], "Scalar_mode": [f"{base}.Tensor_mode"],
            "ScalarOther": [f"{base}.self"], "Scalar_Tensor": [f"{base}.Tensor"]}.get(overload, [])


def pointwise(low, a):
    """Padding meets padding. What checks its values sees ones there instead."""
    values = [v for v in a.positional if isinstance(v, Val)]
    if any(isinstance(v, (list, tuple)) and any(isinstance(x, (Val, Sym)) for x in v) for v in a.positional):
        raise CannotLower(f"{a.name} on lists of values that depend on sizes")
    if _C.row_flags(a.name) & _C.OP_CHECKS:
        values = [low.fill(v, 1) for v in values]
    values, dims = low.broadcast(values)
    given, name = [], a.name
    rest = iter(values)
    for arg, v in zip(a.overload._schema.arguments, a.positional):
        if isinstance(v, Val):
            given.append(next(rest).node)
        elif isinstance(v, Sym):
            if "Tensor" not in str(arg.type):
                forms = [f for f in _scalar_forms(name) if _C.has_row(f)]
                if not forms or arg.name in ("alpha", "beta", "value"):
                    raise CannotLower(f"{a.name} with {arg.name}={v}, which depends on sizes")
                name = forms[0]
            given.append(scalar(low, v))
        else:
            given.append(v)
    kwargs = a.keywords
    if len(a.outs) == 1:
        return [emit(low, a, dims, *given, name=name, **kwargs)]
    return emit_all(low, a, [dims] * len(a.outs), *given)


def scalar(low, v):
    """0-d value of a number that depends on sizes."""
    if v.expr.is_integer:
        return low.size_node(v.expr)
    raise CannotLower(f"the number {v}, which is no integer")


# ---------------------------------------------------------------- shape
@rule("alias", "detach", "lift_fresh", "lift_fresh_copy", "alias_copy", "detach_copy", "contiguous")
def same_value(low, a):
    return [a.input]


@rule("view", "_unsafe_view", "reshape", "view_copy", "_reshape_copy", "_reshape_alias", "flatten.using_ints",
      "unflatten.int", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims", "unsqueeze_copy")
def view(low, a):
    dtype, sizes = first(a)
    return [low.regroup(a.input, sizes)]


def _permuted(low, a, order):
    v = a.input
    return [emit(low, a, [v.dims[d] for d in order], v.node, list(order), name="permute")]


@rule("permute")
def permute(low, a):
    return _permuted(low, a, [wrapped(d, a.input.rank) for d in a.dims])


@rule("transpose.int", "transpose_copy.int", "swapdims", "swapaxes")
def transpose(low, a):
    order = list(range(a.input.rank))
    if order:
        d0, d1 = (wrapped(d, a.input.rank) for d in a.positional[1:3])
        order[d0], order[d1] = d1, d0
    return _permuted(low, a, order)


@rule("t", "mT", "numpy_T")
def t(low, a):
    order = list(range(a.input.rank))
    if a.name == "mT" or len(order) == 2:
        order[-2:] = order[-2:][::-1]
    else:
        order.reverse()
    return _permuted(low, a, order)


@rule("expand", "expand_copy")
def expand(low, a):
    v, (dtype, sizes) = a.input, first(a)
    lead = len(sizes) - v.rank
    dims = []
    for d, s in enumerate(sizes):
        mine = v.dims[d - lead] if d >= lead else ONE
        dims.append(low.dim(s) if mine == ONE else mine)
    return [emit(low, a, dims, v.node, [room(d) for d in dims], name="expand")]


@rule("slice.Tensor", "slice_copy.Tensor")
def slice_(low, a):
    d = wrapped(a.dim, a.input.rank)
    start, step = a.start if a.start is not None else 0, a.step
    size = first(a)[1][d]
    static_ints(a, step)
    return [window(low, a.input, d, start, size, step)]


def window(low, v, d, start, size, step=1):
    """x[start::step] along |d|, |size| of it."""
    if is_static(v.dims[d]) and isinstance(start, int) and isinstance(size, int):
        n = room(v.dims[d])
        start = max(0, min(n, start + n if start < 0 else start))
        dims = (*v.dims[:d], ((size, size),), *v.dims[d + 1:])
        return low.row("slice.Tensor", v.dtype, dims, v.node, d, start, max(start, start + (size - 1) * step + 1), step)
    v = low.plain(v, [d])
    want, whole = low.dim(size), true_size(v.dims[d])
    span = (room(want) - 1) * step + 1  # of x that is looked at
    if isinstance(start, int) and start >= 0:
        short = start + span - room(v.dims[d])
        if short > 0:
            v = low.resize(v, d, ((whole, room(v.dims[d]) + short),))
        return low.row("slice.Tensor", v.dtype, (*v.dims[:d], want, *v.dims[d + 1:]), v.node, d, start, start + span, step)
    begin = low.number(f"window_start({code(start.expr) if isinstance(start, Sym) else start}, {code(whole)})")
    v = low.resize(v, d, ((whole, room(v.dims[d]) + span),))  # so that no window is moved to be inside
    node, dims = low.graph.slice(v.node, d, begin, span), (*v.dims[:d], want, *v.dims[d + 1:])
    return Val(node, v.dtype, dims) if step == 1 else low.row("slice.Tensor", v.dtype, dims, node, d, 0, span, step)


def row_at(low, v, d, index):
    """Place |index| along |d|, which goes; window_start wraps what is negative."""
    row = window(low, v, d, index, 1)
    return low.view(row, (*row.dims[:d], *row.dims[d + 1:]))


@rule("select.int", "select_copy.int")
def select(low, a):
    return [row_at(low, a.input, wrapped(a.dim, a.input.rank), a.index)]


@rule("split.Tensor", "split_copy.Tensor", "unsafe_split.Tensor", "split.sizes", "split_with_sizes", "split_with_sizes_copy",
      "unsafe_split_with_sizes", "chunk", "unsafe_chunk")
def split(low, a):
    v = a.input
    d = wrapped(a.dim, v.rank)
    start, out = 0, []
    for o in a.outs:
        if o is None:
            raise CannotLower(f"{a.name}: a piece of unknown size")
        out.append(window(low, v, d, Sym(start) if not isinstance(start, int) else start, o[1][d]))
        start = start + o[1][d]
    return out


@rule("unbind.int", "unbind_copy.int")
def unbind(low, a):
    v = a.input
    d = wrapped(a.dim, v.rank)
    if v.dynamic([d]):
        raise CannotLower("unbind along a symbolic dim")
    return [row_at(low, v, d, i) for i in range(room(v.dims[d]))]


@rule("cat")
def cat(low, a):
    dtype, sizes = first(a)
    pieces = [low.convert(v, dtype) for v in a.tensors if not (v.rank == 1 and v.dims[0] == ((0, 0),) and len(sizes) != 1)]
    return [concat(low, pieces, wrapped(a.dim, len(sizes)), sizes[wrapped(a.dim, len(sizes))])]


def concat(low, pieces, d, size):
    """|pieces|, of one dtype, one after another along |d|: |size| in all."""
    rank = pieces[0].rank
    pieces = low.unify(pieces, [[k] * len(pieces) for k in range(rank) if k != d])
    pieces = [low.plain(v, [d]) for v in pieces]
    want = low.dim(size)
    dtype, rest = pieces[0].dtype, pieces[0].dims
    dims = lambda n: (*rest[:d], n, *rest[d + 1:])  # noqa: E731
    last_dynamic = [i for i, v in enumerate(pieces) if v.dynamic([d])]
    if not last_dynamic or last_dynamic == [len(pieces) - 1]:
        total = sum(room(v.dims[d]) for v in pieces)
        out = low.row("cat", dtype, dims(((size, total),)), [v.node for v in pieces], d)
        return low.resize(out, d, want) if total != room(want) else Val(out.node, dtype, dims(want))
    spare = max((room(v.dims[d]) for v in pieces[1:] if v.dynamic([d])), default=0)
    buffer = low.resize(pieces[0], d, ((size, room(want) + spare),))
    node, start = buffer.node, true_size(pieces[0].dims[d])
    for v in pieces[1:]:  # each overwrites the padding behind the one before
        node = low.graph.update(node, v.node, d, low.number(code(start)))
        start = start + true_size(v.dims[d])
    return low.resize(Val(node, dtype, buffer.dims), d, want)


@rule("stack", "_stack")
def stack(low, a):
    dtype, sizes = first(a)
    d = wrapped(a.dim, len(sizes))
    pieces = [low.convert(v, dtype) for v in a.tensors]
    pieces = low.unify(pieces, [[k] * len(pieces) for k in range(pieces[0].rank)])
    n = len(pieces)
    return [emit(low, a, (*pieces[0].dims[:d], ((n, n),), *pieces[0].dims[d:]), [v.node for v in pieces], d, name="stack")]


@rule("repeat")
def repeat(low, a):
    v, (dtype, sizes) = a.input, first(a)
    static_ints(a, a.repeats)
    times = list(a.repeats)
    lead = len(times) - v.rank
    split_dims = []
    for d, n in enumerate(times):
        split_dims += [((n, n),) if n != 1 else ONE, v.dims[d - lead] if d >= lead else ONE]
    ones = low.view(v, tuple(ONE if k % 2 == 0 else x for k, x in enumerate(split_dims)))
    wide = low.row("expand", dtype, split_dims, ones.node, [room(d) for d in split_dims])
    return [low.regroup(wide, sizes)]


@rule("flip")
def flip(low, a):
    v = a.input
    which = sorted({wrapped(d, v.rank) for d in a.dims})
    v = low.plain(v, [d for d in which if v.dynamic([d])])
    out = emit(low, a, v.dims, v.node, which)
    for d in v.dynamic(which):  # what was in front is now behind the padding
        size, bound = v.dims[d][0]
        wide = low.resize(out, d, ((size, 2 * bound),))
        out = Val(low.graph.slice(wide.node, d, low.number(f"{bound} - ({code(size)})"), bound), out.dtype, out.dims)
    return [out]


@rule("roll")
def roll(low, a):
    v = a.input
    static_ints(a, a.shifts)
    if not a.dims:
        raise CannotLower("roll of a flattened value")
    for shift, d in zip(a.shifts, a.dims):
        d = wrapped(d, v.rank)
        v = low.plain(v, [d])
        size, bound = v.dims[d][0]
        twice = concat(low, [v, v], d, 2 * size)
        start = low.number(f"(-{shift}) % max({code(size)}, 1)")
        wide = low.resize(twice, d, ((2 * size, room(twice.dims[d]) + bound),))
        v = Val(low.graph.slice(wide.node, d, start, bound), v.dtype, v.dims)
    return [v]


@rule("tril", "triu")
def triangle(low, a):
    v = low.plain(a.input, [a.input.rank - 2, a.input.rank - 1])
    static_ints(a, a.diagonal)
    return [emit(low, a, v.dims, v.node, a.diagonal)]


@rule("constant_pad_nd")
def pad(low, a):
    v, sizes = a.input, first(a)[1]
    static_ints(a, a.pad, a.value)
    pads = list(a.pad)
    for k in range(len(pads) // 2):
        d = v.rank - 1 - k
        if v.dynamic([d]):
            v = low.plain(v, [d])
            if pads[2 * k + 1] > 0:
                v = low.fill(v, a.value, [d])
    dims = [((s, room(v.dims[d])),) for d, s in enumerate(sizes)]
    for k in range(len(pads) // 2):
        d = v.rank - 1 - k
        if pads[2 * k] or pads[2 * k + 1]:
            dims[d] = ((sizes[d], room(v.dims[d]) + pads[2 * k] + max(pads[2 * k + 1], 0)),)
            pads[2 * k + 1] = max(pads[2 * k + 1], 0)  # cutting off at the end is a smaller true size
        else:
            dims[d] = v.dims[d]
    out = emit(low, a, dims, v.node, pads, a.value)
    for d in range(out.rank):
        if dims[d] is not v.dims[d]:
            out = low.resize(out, d, low.dim(sizes[d]), a.value)
    return [out]


# ---------------------------------------------------------------- made from nothing
@rule("full", "zeros", "ones", "empty.memory_format", "new_zeros", "new_ones", "new_full", "new_empty", "empty_strided",
      "new_empty_strided", "empty_permuted")
def filled(low, a):
    dtype, sizes = first(a)
    dims = tuple(low.dim(s) for s in sizes)
    fill = getattr(a, "fill_value", 1 if "ones" in a.name else 0)
    node = low.op("_to_copy", dtype, (), scalar(low, fill), dtype=dtype) if isinstance(fill, Sym) else low.constant(fill, dtype)
    return [low.row("expand", dtype, dims, node, [room(d) for d in dims])]


@rule("scalar_tensor")
def scalar_tensor(low, a):
    dtype, _ = first(a)
    return [Val(low.op("_to_copy", dtype, (), scalar(low, a.s), dtype=dtype), dtype, ())]


@rule("arange", "arange.start", "arange.start_step")
def arange(low, a):
    dtype, sizes = first(a)
    start, step = getattr(a, "start", 0), getattr(a, "step", 1)
    dims = (low.dim(sizes[0]),)
    n = room(dims[0])
    work = torch.int64 if not dtype.is_floating_point else torch.float64 if dtype == torch.float64 else torch.float32
    at = low.op("arange.start_step", work, [n], 0, n, 1, dtype=work)

    def number(x):
        if not isinstance(x, Sym):
            return low.constant(x, work)
        return low.op("_to_copy", work, (), scalar(low, x), dtype=work)

    if step != 1:
        at = low.op("mul.Tensor", work, [n], at, number(step))
    if start != 0:
        at = low.op("add.Tensor", work, [n], at, number(start))
    return [low.convert(Val(at, work, dims), dtype)]


def count(low, v, which):
    """0-d i64: how many elements there are along the dims |which|."""
    n = 1
    for d in which:
        n = true_size(v.dims[d]) * n
    return low.constant(n, torch.int64) if isinstance(n, int) else low.size_node(n)
