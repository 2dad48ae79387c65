"""Derivatives of one call, the same on every device: what opinfo_driver.py compares for each of its kinds of derivative.

  grad        first order, reverse mode
  gradgrad    gradients of a product with those, by the inputs and by the cotangents
  forward_ad  tangents of the results, by dual numbers
  vmap        torch.func.vmap of the call, over two copies of every differentiable input
  func        torch.func.vmap of torch.func.grad
"""
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

KINDS = ("grad", "gradgrad", "forward_ad", "vmap", "func")


def asked_for(kind, op, dtype):
    """Does the database say that the entry has this kind of derivative?"""
    if not op.supports_autograd or dtype not in op.supported_backward_dtypes("cpu"):
        return False
    return {"gradgrad": op.supports_gradgrad, "forward_ad": op.supports_forward_ad}.get(kind, True)


def _differentiable(tree):
    return [t for t in tree_flatten(tree)[0] if isinstance(t, torch.Tensor) and t.requires_grad]


def _random(like, seed):
    """The same numbers on every device and in every precision."""
    g = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(t.shape, generator=g, dtype=torch.complex64 if t.dtype.is_complex else torch.float32) for t in like]
    return [d.to(t.dtype).to(t.device) for d, t in zip(drawn, like)]


def _reverse(call, args, kwargs, second):
    inputs = _differentiable((args, kwargs))
    outs = _differentiable(call(args, kwargs))
    if not inputs or not outs:
        return None
    cotangents = _random(outs, 3)
    if not second:
        return torch.autograd.grad(outs, inputs, cotangents, allow_unused=True)
    cotangents = [c.requires_grad_() for c in cotangents]
    grads = torch.autograd.grad(outs, inputs, cotangents, create_graph=True, allow_unused=True)
    grads = [g for g in grads if g is not None and g.requires_grad]
    return torch.autograd.grad(grads, inputs + cotangents, _random(grads, 4), allow_unused=True) if grads else None


def _forward(call, args, kwargs):
    flat, spec = tree_flatten((args, kwargs))
    chosen = _differentiable(flat)
    if not chosen:
        return None
    tangents = iter(_random(chosen, 5))
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        flat = [fw.make_dual(t.detach(), next(tangents)) if isinstance(t, torch.Tensor) and t.requires_grad else t for t in flat]
        outs = [t for t in tree_flatten(call(*tree_unflatten(flat, spec)))[0] if isinstance(t, torch.Tensor)]
        found = [fw.unpack_dual(t).tangent if t.is_floating_point() or t.is_complex() else None for t in outs]
        return [t if t is None else t.detach().clone() for t in found] if any(t is not None for t in found) else None


def _mapped(call, args, kwargs, gradient):
    flat, spec = tree_flatten((args, kwargs))
    at = [i for i, t in enumerate(flat) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not at:
        return None
    flat = [t.detach() if isinstance(t, torch.Tensor) else t for t in flat]

    def outputs(*inputs):
        now = list(flat)
        for i, t in zip(at, inputs):
            now[i] = t
        outs = [t for t in tree_flatten(call(*tree_unflatten(now, spec)))[0] if isinstance(t, torch.Tensor)]
        return tuple(t for t in outs if t.is_floating_point() or t.is_complex())

    def number(*inputs):
        total = sum((t * c).sum() for t, c in zip(outputs(*inputs), cotangents))
        return total.real if total.is_complex() else total

    cotangents = _random(outputs(*(flat[i] for i in at)), 3) if gradient else None  # no random numbers under vmap
    f = torch.func.grad(number, argnums=tuple(range(len(at)))) if gradient else outputs
    return torch.func.vmap(f)(*(torch.stack([flat[i], flat[i]]) for i in at))


def derive(kind, call, args, kwargs):
    """The derivatives of |call|(args, kwargs), a list of tensors or None; None when there are none to ask for."""
    if kind in ("grad", "gradgrad"):
        return _reverse(call, args, kwargs, kind == "gradgrad")
    if kind == "forward_ad":
        return _forward(call, args, kwargs)
    return _mapped(call, args, kwargs, kind == "func")
