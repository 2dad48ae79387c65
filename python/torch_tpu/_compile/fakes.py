"""Results on fake tpu tensors, for operators whose meta kernel in PyTorch refuses what the device can do.

PyTorch's table of fake implementations is asked before the meta kernel; for tensors of other devices nothing changes.
"""
import torch
from torch._subclasses.fake_impls import register_op_impl

aten = torch.ops.aten


def _on_tpu(*tensors):
    return all(t is None or t.device.type == "tpu" for t in tensors)


@register_op_impl(aten._grouped_mm.default)
def _grouped_mm(mode, func, a, b, offs=None, bias=None, out_dtype=None):
    """The meta kernel takes bf16 alone, as CUDA does; CPU and tpu multiply other dtypes too."""
    if not _on_tpu(a, b, offs) or a.dtype == torch.bfloat16:
        return NotImplemented
    if a.dtype != b.dtype or a.dim() not in (2, 3) or b.dim() not in (2, 3) or bias is not None:
        return NotImplemented  # the meta kernel has the words
    if (a.dim(), b.dim()) == (2, 2):
        sizes = (offs.shape[0], a.shape[0], b.shape[1])
    elif (a.dim(), b.dim()) == (3, 3):
        sizes = (a.shape[0], a.shape[1], b.shape[2])
    elif a.dim() == 2:
        sizes = (a.shape[0], b.shape[2])
    else:
        sizes = (a.shape[1], b.shape[1])
    with mode:
        return torch.empty(sizes, dtype=out_dtype or a.dtype, device=a.device)


@register_op_impl(aten.geqrf.default)
def _geqrf(mode, func, a):
    """A PyTorch kernel that runs for real cannot take a fake tensor of this device."""
    if not _on_tpu(a):
        return NotImplemented
    *batch, m, n = a.shape
    with mode:
        return torch.empty((*batch, n, m), dtype=a.dtype, device=a.device).mT, torch.empty((*batch, min(m, n)), dtype=a.dtype, device=a.device)
