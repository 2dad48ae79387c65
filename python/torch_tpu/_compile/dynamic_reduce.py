"""Reductions, softmax, scans, sorts and norms over dims of bounded size."""
import math

import torch

from .dynamic import ONE, Sym, Val, is_static, room, true_size
from .dynamic_rules import count, emit, emit_all, first, rule, static_ints, wrapped
from .sizes import CannotLower


def lowest(dtype):
    return -math.inf if dtype.is_floating_point else False if dtype == torch.bool else torch.iinfo(dtype).min


def highest(dtype):
    return math.inf if dtype.is_floating_point else True if dtype == torch.bool else torch.iinfo(dtype).max


def wide(dtype):
    """The dtype that sums of |dtype| are done in."""
    return torch.float32 if dtype.is_floating_point and dtype != torch.float64 else dtype


def reduced_dims(v, dim):
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(v.rank))
    return sorted({wrapped(d, v.rank) for d in ([dim] if isinstance(dim, int) else dim)}) if v.rank else []


def kept(v, which, keepdim):
    return tuple(ONE if d in which else x for d, x in enumerate(v.dims) if keepdim or d not in which)


NEUTRAL = {
    "sum": lambda t: 0, "sum.dim_IntList": lambda t: 0, "nansum": lambda t: 0, "prod": lambda t: 1, "prod.dim_int": lambda t: 1,
    "amax": lowest, "amin": highest, "max": lowest, "min": highest,
    "any": lambda t: 0, "any.dim": lambda t: 0, "any.dims": lambda t: 0, "all": lambda t: 1, "all.dim": lambda t: 1,
    "all.dims": lambda t: 1, "count_nonzero": lambda t: 0, "count_nonzero.dim_IntList": lambda t: 0,
    "logsumexp": lambda t: -math.inf, "max.dim": lowest, "min.dim": highest, "_is_all_true": lambda t: 1, "_is_any_true": lambda t: 0,
}


@rule(*NEUTRAL)
def reduce(low, a):
    v = a.input
    if a.name == "logsumexp" and not v.dtype.is_floating_point:
        v = low.convert(v, first(a)[0])
    which = reduced_dims(v, getattr(a, "dim", None))
    if a.name in ("max.dim", "min.dim"):  # an index along a dim of one factor
        v = low.plain(v, which)
    v = low.fill(v, NEUTRAL[a.name](v.dtype), which)
    dims = kept(v, which, getattr(a, "keepdim", False))
    return emit_all(low, a, [dims] * len(a.outs), v.node, *a.positional[1:])


@rule("argmax", "argmin")
def arg_reduce(low, a):
    v = a.input
    fill = lowest(v.dtype) if a.name == "argmax" else highest(v.dtype)
    if a.dim is None:
        n = 1
        for d in v.dims:
            n = true_size(d) * n
        row = low.fill(low.plain(low.regroup(v, [n])), fill)
        out = low.op(a.name, torch.int64, (), row.node, 0, False)
        dims = tuple(ONE for _ in first(a)[1])
        return [Val(low.op("view", torch.int64, [1] * len(dims), out, [1] * len(dims)), torch.int64, dims)]
    d = wrapped(a.dim, v.rank)
    v = low.fill(low.plain(v, [d]), fill, [d])
    return [emit(low, a, kept(v, [d], a.keepdim), v.node, d, a.keepdim)]


# ---------------------------------------------------------------- means and variances
def total(low, v, which, dtype):
    """Sum over |which|, kept as 1."""
    return low.row("sum.dim_IntList", dtype, kept(v, which, True), low.fill(v, 0, which).node, which, True, dtype=dtype)


def binary(low, name, x, y):
    (x, y), dims = low.broadcast([x, y])
    return low.row(name, x.dtype, dims, x.node, y.node)


def divided(low, v, n):
    """|v| divided by 0-d |n|, converted."""
    real = v.dtype if not v.dtype.is_complex else torch.float64 if v.dtype == torch.complex128 else torch.float32
    n = low.op("_to_copy", real, (), n, dtype=real)
    return Val(low.op("div.Tensor", v.dtype, v.physical, v.node, n), v.dtype, v.dims)


def mean_of(low, v, which):
    return divided(low, total(low, v, which, v.dtype), count(low, v, which))


def squares(low, v, mean, which):
    """Sum of squared distances from |mean|, kept as 1."""
    d = binary(low, "sub.Tensor", v, mean)
    return total(low, binary(low, "mul.Tensor", d, d), which, v.dtype)


def without(low, v, dims):
    """|v| viewed with |dims| (ones left out)."""
    return v if v.dims == dims else Val(low.op("view", v.dtype, [room(d) for d in dims], v.node, [room(d) for d in dims]), v.dtype, dims)


@rule("mean", "mean.dim")
def mean(low, a):
    v, dtype = a.input, first(a)[0]
    which = reduced_dims(v, getattr(a, "dim", None))
    out = mean_of(low, low.convert(v, wide(dtype)), which)
    return [low.convert(without(low, out, kept(v, which, getattr(a, "keepdim", False))), dtype)]


@rule("var.correction", "std.correction", "var_mean.correction", "std_mean.correction")
def variance(low, a):
    v, dtype = a.input, v_dtype(a)
    if v.dtype.is_complex:
        raise CannotLower("the variance of complex values")
    which = reduced_dims(v, a.dim)
    static_ints(a, a.correction)
    correction = 1 if a.correction is None else a.correction
    x = low.convert(v, wide(v.dtype))
    m = mean_of(low, x, which)
    n = low.op("_to_copy", x.dtype, (), count(low, v, which), dtype=x.dtype)
    n = low.op("clamp", x.dtype, (), low.op("sub.Tensor", x.dtype, (), n, low.constant(correction, x.dtype)), 0)
    s = squares(low, x, m, which)
    out = Val(low.op("div.Tensor", x.dtype, s.physical, s.node, n), x.dtype, s.dims)
    if a.name.startswith("std"):
        out = Val(low.op("sqrt", x.dtype, out.physical, out.node), x.dtype, out.dims)
    dims = kept(v, which, a.keepdim)
    results = [out, m][:len(a.outs)]
    return [None if o is None else low.convert(without(low, r, dims), o[0]) for r, o in zip(results, a.outs)]


def v_dtype(a):
    return next(o[0] for o in a.outs if o is not None)


@rule("linalg_vector_norm")
def vector_norm(low, a):
    v = a.input
    if isinstance(a.ord, Sym) or a.ord < 0:
        raise CannotLower("a norm of negative order over a symbolic dim")
    which = reduced_dims(v, a.dim)
    v = low.fill(v, 0, which)
    return [emit(low, a, kept(v, which, a.keepdim), v.node, *a.positional[1:])]


@rule("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "soft_margin_loss")
def loss(low, a):
    """The loss of each element, then its mean or sum over those that are there."""
    values = [x for x in a.positional if isinstance(x, Val)]
    values, dims = low.broadcast(values)
    rest = iter(values)
    given = [next(rest).node if isinstance(x, Val) else x for x in a.positional]
    at = next(i for i, s in enumerate(a.overload._schema.arguments) if s.name == "reduction")
    how, given[at] = given[at], 0
    dtype = first(a)[0]
    each = emit(low, a, dims, *given)
    if how == 0:
        return [each]
    each = low.convert(each, wide(dtype))
    which = list(range(each.rank))
    out = total(low, each, which, each.dtype) if how == 2 else mean_of(low, each, which)
    return [low.convert(without(low, out, ()), dtype)]


# ---------------------------------------------------------------- softmax and scans
@rule("_softmax", "_log_softmax", "_safe_softmax")
def softmax(low, a):
    v = a.input
    which = [wrapped(a.dim, v.rank)] if v.rank else []
    if v.dtype.is_floating_point:
        v = low.fill(v, -math.inf, which)
    elif v.dynamic(which):
        raise CannotLower("softmax of integers over a symbolic dim")
    return [emit(low, a, v.dims, v.node, *a.positional[1:])]


@rule("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(low, a):
    (grad, output), dims = low.broadcast([a.grad_output, a.output])
    which = [wrapped(a.dim, grad.rank)] if grad.rank else []
    grad, output = low.fill(grad, 0, which), low.fill(output, 0, which)
    return [emit(low, a, dims, grad.node, output.node, a.dim, a.input_dtype)]


@rule("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "_logcumsumexp")
def scan(low, a):
    """What is behind the true size cannot reach what is before it."""
    d = wrapped(a.dim, a.input.rank) if a.input.rank else 0
    v = low.plain(a.input, [d] if a.input.rank else [])
    return emit_all(low, a, [v.dims] * len(a.outs), v.node, *a.positional[1:])


# ---------------------------------------------------------------- order
def at_the_end(dtype, descending):
    """What sorts behind everything else: sorts are stable, so that padding stays behind its equals."""
    if descending:
        return lowest(dtype)
    return math.nan if dtype.is_floating_point else highest(dtype)


@rule("sort", "sort.stable")
def sort(low, a):
    v = a.input
    d = wrapped(a.dim, v.rank) if v.rank else 0
    v = low.fill(low.plain(v, [d] if v.rank else []), at_the_end(v.dtype, a.descending), [d] if v.rank else [])
    return emit_all(low, a, [v.dims] * 2, v.node, *a.positional[1:])


@rule("topk")
def topk(low, a):
    v, sizes = a.input, next(o for o in a.outs if o is not None)[1]
    d = wrapped(a.dim, v.rank)
    v = low.fill(low.plain(v, [d]), at_the_end(v.dtype, a.largest), [d])
    have = room(v.dims[d])
    k = min(low.bounds.of(sizes[d]), have)
    dims = (*v.dims[:d], ((sizes[d], k),), *v.dims[d + 1:])
    out = emit_all(low, a, [dims] * 2, v.node, k, d, a.largest, a.sorted)
    want = low.dim(sizes[d])
    return [r if r is None else low.resize(r, d, want) if k != room(want) else Val(r.node, r.dtype, (*dims[:d], want, *dims[d + 1:])) for r in out]


# ---------------------------------------------------------------- norms
@rule("native_layer_norm")
def layer_norm(low, a):
    v = a.input
    n = len(a.normalized_shape)
    which = list(range(v.rank - n, v.rank))
    if v.dynamic(which):
        raise CannotLower("layer_norm over a symbolic dim")
    stats = kept(v, which, True)
    return emit_all(low, a, [v.dims, stats, stats], v.node, [room(v.dims[d]) for d in which], *map(node_of, a.positional[2:]))


def node_of(x):
    return x.node if isinstance(x, Val) else x


@rule("native_layer_norm_backward")
def layer_norm_backward(low, a):
    """Gradients of weight and bias are sums over everything: rows of padding give nothing."""
    (grad, v), dims = low.broadcast([a.grad_out, a.input])
    n = len(a.normalized_shape)
    which = list(range(v.rank - n, v.rank))
    if v.dynamic(which):
        raise CannotLower("layer_norm over a symbolic dim")
    (mean_, rstd), _ = low.broadcast([a.mean, a.rstd])
    lead = list(range(v.rank - n))
    (v, mean_) = low.unify([v, mean_], [[d, d] for d in lead])
    (v, grad, rstd) = low.unify([v, grad, rstd], [[d, d, d] for d in lead])
    grad, v, mean_, rstd = (low.fill(x, 0) for x in (grad, v, mean_, rstd))
    inner = tuple(((room(v.dims[d]), room(v.dims[d])),) for d in which)
    return emit_all(low, a, [v.dims, inner, inner], grad.node, v.node, [room(v.dims[d]) for d in which], mean_.node, rstd.node,
                    *map(node_of, a.positional[5:]))


@rule("native_group_norm")
def group_norm(low, a):
    v = low.plain(a.input)
    if v.dynamic(range(1, v.rank)):
        raise CannotLower("group_norm over a symbolic dim")
    group = ((a.group, a.group),)
    per_channel = [room(d) for d in v.dims[2:]]
    return emit_all(low, a, [v.dims, (v.dims[0], group), (v.dims[0], group)], v.node, node_of(a.weight), node_of(a.bias),
                    room(v.dims[0]), room(v.dims[1]), math.prod(per_channel), a.group, a.eps)


@rule("_native_batch_norm_legit_no_training")
def batch_norm_eval(low, a):
    v = a.input
    if not all(is_static(v.dims[d]) for d in range(1, min(v.rank, 2))):
        raise CannotLower("batch_norm with symbolic channels")
    return emit_all(low, a, [v.dims, *(tuple(((s, s),) for s in o[1]) if o else None for o in a.outs[1:])], v.node,
                    *map(node_of, a.positional[1:]))


@rule("_native_batch_norm_legit_functional")
def batch_norm_train(low, a):
    v = a.input
    if not a.training or a.running_mean is None or v.dynamic([1]):
        raise CannotLower("this form of batch_norm")
    dtype = v.dtype
    x = low.convert(v, wide(dtype))
    which = [d for d in range(v.rank) if d != 1]
    m = mean_of(low, x, which)
    s = squares(low, x, m, which)
    n = count(low, v, which)
    var = divided(low, s, n)
    scalar = lambda value: low.constant(value, x.dtype)  # noqa: E731
    f = lambda name, y, *args: Val(low.op(name, x.dtype, y.physical, y.node, *args), x.dtype, y.dims)  # noqa: E731
    rstd = f("rsqrt", f("add.Tensor", var, scalar(a.eps)))
    y = binary(low, "mul.Tensor", binary(low, "sub.Tensor", x, m), rstd)
    shape = tuple(v.dims[1] if d == 1 else ONE for d in range(v.rank))
    if a.weight is not None:
        y = binary(low, "mul.Tensor", y, without(low, low.convert(a.weight, x.dtype), shape))
    if a.bias is not None:
        y = binary(low, "add.Tensor", y, without(low, low.convert(a.bias, x.dtype), shape))
    channels = (v.dims[1],)
    less = low.op("sub.Tensor", torch.int64, (), n, low.constant(1, torch.int64))
    unbiased = divided(low, s, less)

    def running(old, new):
        old = low.convert(old, x.dtype)
        new = without(low, new, channels)
        return binary(low, "add.Tensor", f("mul.Tensor", new, scalar(a.momentum)), f("mul.Tensor", old, scalar(1 - a.momentum)))

    results = [y, without(low, m, channels), without(low, rstd, channels), running(a.running_mean, m), running(a.running_var, unbiased)]
    return [None if o is None else low.convert(r, o[0]) for r, o in zip(results, a.outs)]


@rule("native_batch_norm_backward")
def batch_norm_backward(low, a):
    (grad, v), dims = low.broadcast([a.grad_out, a.input])
    if v.dynamic([1]) or not a.train:
        raise CannotLower("this form of batch_norm's backward")
    x = low.convert(v, wide(v.dtype))
    g = low.convert(grad, x.dtype)
    which = [d for d in range(v.rank) if d != 1]
    shape = tuple(v.dims[1] if d == 1 else ONE for d in range(v.rank))
    as_channels = lambda t: without(low, low.convert(t, x.dtype), shape)  # noqa: E731
    rstd = as_channels(a.save_invstd)
    centred = binary(low, "sub.Tensor", x, as_channels(a.save_mean))
    sum_g = total(low, g, which, x.dtype)
    sum_gx = total(low, binary(low, "mul.Tensor", g, centred), which, x.dtype)
    n = count(low, v, which)
    scale = binary(low, "mul.Tensor", rstd, as_channels(a.weight)) if a.weight is not None else rstd
    spread = binary(low, "mul.Tensor", binary(low, "mul.Tensor", rstd, rstd), divided(low, sum_gx, n))
    inner = binary(low, "sub.Tensor", g, binary(low, "mul.Tensor", centred, spread))
    gx = binary(low, "mul.Tensor", binary(low, "sub.Tensor", inner, divided(low, sum_g, n)), scale)
    channels = (v.dims[1],)
    results = [gx, without(low, binary(low, "mul.Tensor", sum_gx, rstd), channels), without(low, sum_g, channels)]
    return [None if o is None else low.convert(r, o[0]) for r, o in zip(results, a.outs)]
