"""``torch.tpu.amp``: mixed precision under the names of ``torch.cuda.amp``. New programs write ``torch.autocast("tpu")``."""

from typing import Any

import torch
from torch.amp import custom_bwd as _custom_bwd
from torch.amp import custom_fwd as _custom_fwd


class autocast(torch.amp.autocast):
    """``torch.autocast("tpu")``, in bfloat16 unless told otherwise."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.bfloat16, cache_enabled: bool = True):
        super().__init__("tpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """``torch.amp.GradScaler("tpu")``."""

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):
        super().__init__("tpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, **kwargs: Any):
    """``torch.amp.custom_fwd(device_type="tpu")``."""
    return _custom_fwd(fwd, device_type="tpu", **kwargs)


def custom_bwd(bwd=None):
    """``torch.amp.custom_bwd(device_type="tpu")``."""
    return _custom_bwd(bwd, device_type="tpu")
