"""Loading the extension into PyTorch, and opening the runtime at the first use of a device."""

import atexit
import os
import sys
import threading
import time

_lock = threading.RLock()
_open_error = None


def _check_torch(torch, built_for: str) -> None:
    have = torch.__version__.split("+")[0].split(".")[:2]
    want = built_for.split("+")[0].split(".")[:2]
    if have != want:
        raise ImportError(
            f"torch_tpu was built for torch {'.'.join(want)} and cannot be loaded into torch {torch.__version__}: install "
            f"torch {'.'.join(want)}.*, or the torch_tpu for your torch. TORCH_DEVICE_BACKEND_AUTOLOAD=0 skips it."
        )


def load():
    """Registers the device ``tpu`` with PyTorch and returns ``torch.tpu``. Safe to call twice; opens nothing."""
    import torch

    with _lock:
        module = sys.modules.get("torch_tpu.tpu")
        if module is not None and getattr(torch, "tpu", None) is module:
            return module
        try:
            from ._build import TORCH_VERSION
        except ImportError:
            pass
        else:
            _check_torch(torch, TORCH_VERSION)
        from . import _C

        _check_torch(torch, _C.torch_version)
        torch.utils.rename_privateuse1_backend("tpu")
        from . import tpu

        torch._register_device_module("tpu", tpu)
        torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
        mode = os.environ.get("TORCH_TPU_FALLBACK")
        if mode:
            _C.set_fallback_mode(mode)
        if os.environ.get("TORCH_TPU_LAUNCH_BLOCKING", "0") not in ("", "0"):
            tpu._set_default_mode(tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING)
        elif os.environ.get("TORCH_TPU_DEFER_AND_FUSE", "0") not in ("", "0"):
            tpu._set_default_mode(tpu.EagerMode.DEFER_AND_FUSE)
        return tpu


def _default_cache_dir() -> str:
    for name in ("TORCH_TPU_CACHE_DIR", "TORCH_TPU_TIER2_COMPILATION_CACHE", "TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT"):
        if name in os.environ:
            return os.environ[name]  # "" switches it off
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "torch_tpu")


def _cpu_devices() -> int:
    # Four as PJRT itself has it, and enough for every rank that a launcher started on this machine.
    default = max(4, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    return max(1, int(os.environ.get("TORCH_TPU_CPU_DEVICES", default)))


def planned_device_count() -> int:
    """Devices the runtime is going to have, without opening it."""
    from . import _plugin

    try:
        plugin = _plugin.find()
    except _plugin.PluginNotFound:
        return 0
    if plugin.name == "tpu":
        return max(1, _plugin.tpu_chips())
    return _cpu_devices()


def _end() -> None:
    from . import _C

    daemons = [t.ident for t in threading.enumerate() if t.daemon and t.ident != threading.get_ident()]
    if daemons:
        _C.begin_ending(daemons)
        time.sleep(0.02)  # those that are already waiting for the interpreter get it, and meet the device again later
    _C.shutdown()


def open_runtime() -> None:
    """Opens the plugin. Called by the first operation that needs a device; a second call does nothing."""
    from . import _C

    if _C.in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize TPU in forked subprocess. To use TPU with multiprocessing, you must use the 'spawn' "
            "start method"
        )
    with _lock:
        if _C.is_open():
            return
        if sys.is_finalizing():
            raise RuntimeError("the tpu device cannot be opened while Python is shutting down")
        from . import _default_backend, _plugin, tpu

        plugin = _plugin.find()
        _C.open(
            plugin.path,
            _cpu_devices(),
            os.environ.get("TORCH_TPU_CLIENT_OPTIONS", ""),
            _default_cache_dir(),
            int(os.environ.get("TORCH_TPU_CACHE_LIMIT_BYTES", "0")),
        )
        atexit.register(_end)
        tpu._after_open()
        _default_backend.prepare()
