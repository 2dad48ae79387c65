"""Products, convolutions, attention, indexing over dims of bounded size."""
import math

import torch

from .dynamic import ONE, Sym, Val, is_static, room, true_size
from .dynamic_reduce import node_of
from .dynamic_rules import emit, emit_all, first, rule, static_ints, wrapped
from .sizes import CannotLower


# ---------------------------------------------------------------- products
def contract(low, x, dx, y, dy):
    """|x| and |y| with one layout along the dims that are summed over, where padding is zero on both sides."""
    x, y = low.unify([x, y], [[dx, dy]])
    return low.fill(x, 0, [dx]), low.fill(y, 0, [dy])


@rule("mm")
def mm(low, a):
    x, y = contract(low, a.input, 1, a.mat2, 0)
    return [emit(low, a, (x.dims[0], y.dims[1]), x.node, y.node)]


@rule("bmm")
def bmm(low, a):
    x, y = low.unify([a.input, a.mat2], [[0, 0]])
    x, y = contract(low, x, 2, y, 1)
    return [emit(low, a, (x.dims[0], x.dims[1], y.dims[2]), x.node, y.node)]


@rule("addmm")
def addmm(low, a):
    x, y = contract(low, a.mat1, 1, a.mat2, 0)
    (bias, x, y) = align_bias(low, a.input, x, y, 0, 1)
    return [emit(low, a, (x.dims[0], y.dims[1]), bias.node, x.node, y.node, a.beta, a.alpha)]


def align_bias(low, bias, x, y, rows, columns):
    """The three with one layout where the bias is not broadcast."""
    r = bias.rank
    if r >= 1 and bias.dims[r - 1] != ONE:
        bias, y = low.unify([bias, y], [[r - 1, y.rank - 1]])
    if r >= 2 and bias.dims[r - 2] != ONE:
        bias, x = low.unify([bias, x], [[r - 2, x.rank - 2]])
    return bias, x, y


@rule("baddbmm")
def baddbmm(low, a):
    x, y = low.unify([a.batch1, a.batch2], [[0, 0]])
    x, y = contract(low, x, 2, y, 1)
    (bias, x, y) = align_bias(low, a.input, x, y, 1, 2)
    if bias.rank == 3 and bias.dims[0] != ONE:
        bias, x, y = low.unify([bias, x, y], [[0, 0, 0]])
    return [emit(low, a, (x.dims[0], x.dims[1], y.dims[2]), bias.node, x.node, y.node, a.beta, a.alpha)]


@rule("mv")
def mv(low, a):
    x, y = contract(low, a.input, 1, a.vec, 0)
    return [emit(low, a, (x.dims[0],), x.node, y.node)]


@rule("dot", "vdot")
def dot(low, a):
    x, y = contract(low, a.input, 0, a.positional[1], 0)
    return [emit(low, a, (), x.node, y.node)]


@rule("addmv")
def addmv(low, a):
    x, y = contract(low, a.mat, 1, a.vec, 0)
    bias = a.input
    if bias.rank and bias.dims[0] != ONE:
        bias, x = low.unify([bias, x], [[0, 0]])
    return [emit(low, a, (x.dims[0],), bias.node, x.node, y.node, a.beta, a.alpha)]


@rule("linear")
def linear(low, a):
    x, w = a.input, a.weight
    if w.rank != 2:
        raise CannotLower("linear with a vector of weights")
    x, w = contract(low, x, x.rank - 1, w, 1)
    bias = a.bias
    if bias is not None:
        bias, w = low.unify([bias, w], [[0, 0]])
    return [emit(low, a, (*x.dims[:-1], w.dims[0]), x.node, w.node, node_of(bias))]


# ---------------------------------------------------------------- convolution
def ints(x, n):
    x = list(x) if isinstance(x, (list, tuple)) else [x]
    return x * n if len(x) == 1 else x


def conv_out(n, k, a, d, spatial):
    """Length of a convolution's result along spatial dim |d|."""
    stride, padding, dilation = (ints(x, spatial)[d] for x in (a.stride, a.padding, a.dilation))
    if a.transposed:
        return (n - 1) * stride - 2 * padding + dilation * (k - 1) + 1 + ints(a.output_padding, spatial)[d]
    return (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1


def conv_arguments(low, a, x, w):
    """(input without anything in its spatial padding, dims of the result as the row gives it)."""
    static_ints(a, a.stride, a.padding, a.dilation, a.output_padding, a.groups)
    if not all(map(is_static, w.dims)) or x.dynamic([1]):
        raise CannotLower("a convolution with symbolic channels or kernel")
    spatial = list(range(2, x.rank))
    x = low.fill(low.plain(x, x.dynamic(spatial)), 0, spatial)
    lengths = [conv_out(room(x.dims[d]), room(w.dims[d]), a, d - 2, len(spatial)) for d in spatial]
    if any(n < 1 for n in lengths):
        raise CannotLower("a convolution without a result")
    return x, lengths


@rule("convolution")
def convolution(low, a):
    x, lengths = conv_arguments(low, a, a.input, a.weight)
    sizes = first(a)[1]
    dims = (x.dims[0], ((sizes[1], sizes[1]),), *(((s, n),) for s, n in zip(sizes[2:], lengths)))
    out = emit(low, a, dims, x.node, a.weight.node, node_of(a.bias), *a.positional[3:])
    return [low.to_dims(out, (*dims[:2], *(low.dim(s) for s in sizes[2:])))]


@rule("convolution_backward")
def convolution_backward(low, a):
    x, lengths = conv_arguments(low, a, a.input, a.weight)
    grad, x = low.unify([a.grad_output, x], [[0, 0]])
    grad = low.plain(grad, grad.dynamic(range(2, grad.rank)))
    x, grad = low.fill(x, 0), low.fill(grad, 0)
    for d, n in zip(range(2, grad.rank), lengths):
        if room(grad.dims[d]) != n:
            grad = low.resize(grad, d, ((true_size(grad.dims[d]), n),))
    out = emit_all(low, a, [x.dims, a.weight.dims, (grad.dims[1],)], grad.node, x.node, a.weight.node, *a.positional[3:])
    return out


OUTER = {  # rows whose last n dims are worked on, the others not looked at
    "avg_pool2d": 2, "avg_pool3d": 3, "_adaptive_avg_pool2d": 2, "_adaptive_avg_pool3d": 3, "max_pool2d_with_indices": 2,
    "max_pool3d_with_indices": 3, "adaptive_max_pool2d": 2, "adaptive_max_pool3d": 3, "upsample_nearest1d": 1,
    "upsample_nearest2d": 2, "upsample_nearest3d": 3, "upsample_linear1d": 1, "upsample_bilinear2d": 2, "upsample_bicubic2d": 2,
    "reflection_pad1d": 1, "reflection_pad2d": 2, "replication_pad1d": 1, "replication_pad2d": 2, "pixel_shuffle": 3,
    "pixel_unshuffle": 3, "glu": 1, "avg_pool2d_backward": 2, "max_pool2d_with_indices_backward": 2,
    "_adaptive_avg_pool2d_backward": 2,
}


@rule(*OUTER)
def outer(low, a):
    """Works along static dims only."""
    n = OUTER[a.name]
    values = [v for v in a.positional if isinstance(v, Val)]
    rank = values[0].rank
    if any(v.rank != rank or v.dynamic(range(rank - n, rank)) for v in values):
        raise CannotLower(f"{a.name} along a symbolic dim")
    if a.name == "glu" and wrapped(a.dim, rank) != rank - 1:
        raise CannotLower("glu along another dim than the last")
    values = low.unify(values, [[d] * len(values) for d in range(rank - n)])
    rest = iter(values)
    given = [next(rest).node if isinstance(x, Val) else x for x in a.positional]
    static_ints(a, *(x for x in a.positional if not isinstance(x, Val)))
    dims = [None if o is None else (*values[0].dims[:rank - n], *(((s, s),) for s in o[1][rank - n:])) for o in a.outs]
    return emit_all(low, a, dims, *given)


# ---------------------------------------------------------------- attention
def keys_seen(low, a, q, k):
    """(bias, causal) with keys that are not there masked."""
    bias, causal = a.attn_bias, a.is_causal
    if causal and bias is None and true_size(q.dims[-2]) == true_size(k.dims[-2]):
        return None, True  # a true query never looks past itself
    probe = Val(k.node, k.dtype, (*[ONE] * (q.rank - 1), k.dims[-2]))
    seen = low.mask(probe, [q.rank - 1])
    keys = Val(seen, torch.bool, probe.dims)
    if bias is None:
        return keys, causal
    (bias, keys), dims = low.broadcast([bias, keys])
    if bias.dtype == torch.bool:
        return low.row("bitwise_and.Tensor", torch.bool, dims, bias.node, keys.node), causal
    return low.row("where.self", bias.dtype, dims, keys.node, bias.node, low.constant(-math.inf, bias.dtype)), causal


def attention_operands(low, a):
    q, k, v = a.query, a.key, a.value
    if a.dropout_p:
        raise CannotLower("attention with dropout")
    r = q.rank
    if q.dynamic([r - 1, r - 3]) or k.dynamic([r - 1, r - 3]) or v.dynamic([r - 1]):
        raise CannotLower("attention with symbolic heads or width")
    if r == 4:
        q, k, v = low.unify([q, k, v], [[0, 0, 0]])
    k, v = low.unify([k, v], [[r - 2, r - 2]])
    bias = a.attn_bias
    if bias is not None:  # laid out as the scores are
        lead = r - bias.rank
        for d, (operand, at) in {r - 1: (k, r - 2), r - 2: (q, r - 2)}.items():
            if d - lead >= 0 and bias.dims[d - lead] != ONE:
                if bias.dims[d - lead] != operand.dims[at]:
                    q, k, v, bias = (low.plain(x, [y]) for x, y in ((q, r - 2), (k, r - 2), (v, r - 2), (bias, d - lead)))
        if r == 4 and bias.rank == 4 and bias.dims[0] != ONE:
            q, k, v, bias = low.unify([q, k, v, bias], [[0, 0, 0, 0]])
        for d in range(bias.rank):
            if d + lead in (r - 1, r - 2) and bias.dims[d] != ONE:
                other = (k if d + lead == r - 1 else q).dims[r - 2]
                low.assume_equal(true_size(bias.dims[d]), true_size(other))
                bias = low.to_dims(bias, (*bias.dims[:d], other, *bias.dims[d + 1:]))
        a.attn_bias = bias
    k, v = low.fill(k, 0, [r - 2]), low.fill(v, 0, [r - 2])
    return q, k, v


@rule("_scaled_dot_product_fused_attention_overrideable")
def attention(low, a):
    q, k, v = attention_operands(low, a)
    bias, causal = keys_seen(low, a, q, k) if k.dynamic([k.rank - 2]) else (a.attn_bias, a.is_causal)
    kwargs = {} if a.scale is None else {"scale": a.scale}
    return attention_results(low, a, q, v, [q.node, k.node, v.node, node_of(bias), 0.0, causal, False], kwargs)


def attention_results(low, a, q, v, given, kwargs):
    dims = [None] * len(a.outs)
    dims[0] = (*q.dims[:-1], v.dims[-1])
    if a.outs[1] is not None:
        dims[1] = (*([ONE] if q.rank == 3 and len(a.outs[1][1]) == 3 else []), *q.dims[:-1])
    types_ = [(None, []) if o is None or d is None else (o[0], [room(x) for x in d]) for o, d in zip(a.outs, dims)]
    nodes = low.graph.call(a.name, *given, _outs=types_, **kwargs)
    out = [None if o is None or d is None else Val(n, o[0], tuple(d)) for n, o, d in zip(nodes, a.outs, dims)]
    for i, o in enumerate(a.outs):
        if out[i] is None and o is not None:  # seeds: nothing is drawn
            out[i] = Val(low.constant(0, o[0]), o[0], ())
    return out


@rule("_scaled_dot_product_fused_attention_overrideable_backward")
def attention_backward(low, a):
    """Queries that are not there have no gradient, and none of what they meet may be infinite."""
    q, k, v = attention_operands(low, a)
    r = q.rank
    if a.attn_bias is not None and a.outs[3] is not None:
        raise CannotLower("the gradient of an attention mask")
    bias, causal = keys_seen(low, a, q, k) if k.dynamic([r - 2]) else (a.attn_bias, a.is_causal)
    grad, out, lse = a.grad_out, a.out, a.logsumexp
    places = [d for d in (0, r - 2) if r == 4 or d]
    grad, out, q = low.unify([grad, out, q], [[d] * 3 for d in places])
    shift = lse.rank - (r - 1)
    lse, q = low.unify([lse, q], [[d + shift, d] for d in places])
    grad, out, q = low.unify([grad, out, q], [[d] * 3 for d in places])
    grad, out, q, lse = (low.fill(x, 0) for x in (grad, out, q, lse))
    k, v = low.fill(k, 0), low.fill(v, 0)
    if bias is not None and bias.dtype != torch.bool:
        rows = [d for d in range(bias.rank) if d != bias.rank - 1]
        bias = low.fill(bias, 0, rows)
    dims = [q.dims, k.dims, v.dims, None]
    types_ = [(None, []) if o is None or d is None else (o[0], [room(x) for x in d]) for o, d in zip(a.outs, dims)]
    kwargs = {} if a.scale is None else {"scale": a.scale}
    given = [grad.node, q.node, k.node, v.node, node_of(bias), list(a.grad_input_mask), out.node, lse.node, node_of(a.cum_seq_q),
             node_of(a.cum_seq_k), 0, 0, 0.0, causal, node_of(a.philox_seed), node_of(a.philox_offset)]
    nodes = low.graph.call(a.name, *given, _outs=types_, **kwargs)
    return [None if o is None or d is None else Val(n, o[0], tuple(d)) for n, o, d in zip(nodes, a.outs, dims)]


# ---------------------------------------------------------------- indexing
def safe_index(low, index, dim, what):
    """|index| with zeros in its padding; where |dim|, which it counts, is symbolic, wrapped and checked by its true size."""
    if index.dtype == torch.bool:
        raise CannotLower(f"{what} with a mask")
    index = low.fill(index, 0)
    if is_static(dim):
        return index
    size = low.size_node(true_size(dim))
    index = low.convert(index, torch.int64)
    shape = index.physical
    negative = low.op("lt.Tensor", torch.bool, shape, index.node, low.constant(0, torch.int64))
    wrap = low.op("add.Tensor", torch.int64, shape, index.node, size)
    at = low.op("where.self", torch.int64, shape, negative, wrap, index.node)
    low_, high = (low.op(n, torch.bool, shape, at, y) for n, y in (("lt.Tensor", low.constant(0, torch.int64)), ("ge.Tensor", size)))
    bad = low.op("bitwise_or.Tensor", torch.bool, shape, low_, high)
    worst = low.op("where.self", torch.int64, shape, bad, index.node, low.constant(0, torch.int64))
    at = low.op("where.self", torch.int64, shape, bad, low.constant(0, torch.int64), at)  # nothing is there for a size of 0
    spread = low.op("amax", torch.int64, (), worst, list(range(index.rank)))
    least = low.op("amin", torch.int64, (), worst, list(range(index.rank)))
    shown = low.op("where.self", torch.int64, (), low.op("lt.Tensor", torch.bool, (), least, low.constant(0, torch.int64)), least, spread)
    low.graph.check_index(low.op("any", torch.bool, (), bad), shown, f"{what}: index %lld is out of bounds for its dimension")
    return Val(at, torch.int64, index.dims)


@rule("embedding")
def embedding(low, a):
    w = low.plain(a.weight, [0])
    index = safe_index(low, a.indices, w.dims[0], "embedding")
    return [emit(low, a, (*index.dims, w.dims[1]), w.node, index.node, a.padding_idx, a.scale_grad_by_freq, a.sparse)]


@rule("embedding_dense_backward")
def embedding_backward(low, a):
    static_ints(a, a.num_weights)
    if a.scale_grad_by_freq:
        raise CannotLower("embedding's gradient scaled by frequency")
    index = a.indices
    grad, index = low.unify([a.grad_output, index], [[d, d] for d in range(index.rank)])
    grad, index = low.fill(grad, 0), low.fill(index, 0)
    dims = (((a.num_weights, a.num_weights),), grad.dims[-1])
    return [emit(low, a, dims, grad.node, index.node, *a.positional[2:])]


@rule("index_select")
def index_select(low, a):
    d = wrapped(a.dim, a.input.rank)
    v = low.plain(a.input, [d])
    index = low.plain(a.index)
    index = safe_index(low, index, v.dims[d], "index_select")
    return [emit(low, a, (*v.dims[:d], *(index.dims or (ONE,)), *v.dims[d + 1:]), v.node, d, index.node)]


@rule("index.Tensor", "_unsafe_index.Tensor")
def index(low, a):
    v = a.input
    places = [d for d, x in enumerate(a.indices) if x is not None]
    v = low.plain(v, places)
    found = [safe_index(low, a.indices[d], v.dims[d], "index") for d in places]
    found, dims = low.broadcast(found)
    together = places == list(range(places[0], places[-1] + 1))
    rest = [x for d, x in enumerate(v.dims) if d not in places]
    at = places[0] if together else 0
    nodes = [None] * len(a.indices)
    for d, x in zip(places, found):
        nodes[d] = x.node
    return [emit(low, a, (*rest[:at], *dims, *rest[at:]), v.node, nodes)]


@rule("gather")
def gather(low, a):
    d = wrapped(a.dim, a.input.rank)
    v, index = low.plain(a.input), low.plain(a.index)
    index = safe_index(low, index, v.dims[d], "gather")
    for k in range(v.rank):
        if k != d and room(index.dims[k]) > room(v.dims[k]):
            v = low.resize(v, k, ((true_size(v.dims[k]), room(index.dims[k])),))
    return [emit(low, a, index.dims, v.node, d, index.node, a.sparse_grad)]


def spare_row(low, v, d):
    """|v| with room for one more along |d|, and the place there that nothing true is at."""
    n = room(v.dims[d])
    return low.resize(v, d, ((true_size(v.dims[d]), n + 1),)), n


@rule("scatter.src", "scatter.value", "scatter_add", "scatter.reduce", "scatter.value_reduce", "scatter_reduce.two")
def scatter(low, a):
    """What is written from padding goes to a row of its own, which is then cut off."""
    d = wrapped(a.dim, a.input.rank)
    v, index = low.plain(a.input), low.plain(a.index)
    src = low.plain(a.src) if isinstance(getattr(a, "src", None), Val) else None
    held = index.dynamic()
    index = safe_index(low, index, v.dims[d], a.name)
    for k in range(v.rank):
        if k != d and room(index.dims[k]) > room(v.dims[k]):
            raise CannotLower("scatter with an index larger than its target")
        if src is not None and room(index.dims[k]) > room(src.dims[k]):
            src = low.resize(src, k, ((true_size(src.dims[k]), room(index.dims[k])),))
    wide_, last = spare_row(low, v, d)
    if held:
        node = low.op("where.self", index.dtype, index.physical, low.mask(index, held), index.node, low.constant(last, index.dtype))
        index = Val(node, index.dtype, index.dims)
    given = [src.node if x is getattr(a, "src", None) and src is not None else x for x in a.positional]
    given[0], given[1], given[2] = wide_.node, d, index.node
    if any(isinstance(x, (Sym, Val)) for x in given):
        raise CannotLower("scatter of a value that depends on sizes")
    out = emit(low, a, wide_.dims, *given)
    return [low.resize(out, d, v.dims[d])]


@rule("index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(low, a):
    places = [d for d, x in enumerate(a.indices) if x is not None]
    v = low.plain(a.input)
    found = [safe_index(low, low.plain(a.indices[d]), v.dims[d], "index_put") for d in places]
    found, dims = low.broadcast(found)
    values = low.plain(a.values)
    held = any(x.dynamic() for x in found)
    wide_, last = spare_row(low, v, places[0])
    nodes = [None] * len(a.indices)
    for d, x in zip(places, found):
        nodes[d] = x.node
    if held:
        shape = Val(None, torch.bool, dims)
        x = found[0]
        mask = low.mask(shape, shape.dynamic())
        full = [room(k) for k in dims]
        nodes[places[0]] = low.op("where.self", x.dtype, full, mask, x.node, low.constant(last, x.dtype))
    out = emit(low, a, wide_.dims, wide_.node, nodes, values.node, a.accumulate)
    return [low.resize(out, places[0], v.dims[places[0]])]


# ---------------------------------------------------------------- losses over classes
@rule("nll_loss_forward")
def nll_loss(low, a):
    v = a.input
    if v.rank != 2 or v.dynamic([1]):
        raise CannotLower("nll_loss with symbolic classes")
    v, target = low.unify([v, a.target], [[0, 0]])
    v, target = low.fill(v, 0), low.fill(target, a.ignore_index)
    dims = [(target.dims[0],) if a.reduction == 0 else (), ()]
    return emit_all(low, a, dims, v.node, target.node, node_of(a.weight), a.reduction, a.ignore_index)


@rule("nll_loss_backward")
def nll_loss_backward(low, a):
    v, grad = a.input, a.grad_output
    if v.rank != 2 or v.dynamic([1]):
        raise CannotLower("nll_loss with symbolic classes")
    v, target = low.unify([v, a.target], [[0, 0]])
    if grad.rank:
        v, target, grad = low.unify([v, target, grad], [[0, 0, 0]])
    v, target, grad = low.fill(v, 0), low.fill(target, a.ignore_index), low.fill(grad, 0)
    return [emit(low, a, v.dims, grad.node, v.node, target.node, node_of(a.weight), a.reduction, a.ignore_index, a.total_weight.node)]
