"""The PyTorch device ``tpu``, over any PJRT plugin.

``import torch`` finds this package by its entry point and calls :func:`_autoload`; importing it by hand does the same.
Nothing touches a device until a tensor does.
"""

__version__ = "0.1.0"

_loaded = False


def _autoload() -> None:
    """Registers the device with PyTorch. Safe to call twice."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    try:
        from . import _loader

        _loader.load()
    except Exception as error:  # `import torch` must go on: the error is raised where the device is used
        _loaded = False
        _stand_in(error)


def _stand_in(error: Exception) -> None:
    """Makes ``torch.tpu`` a module that says why the device is not there."""
    import sys
    import types

    import torch

    class Unavailable(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise RuntimeError(f"torch.tpu.{name}: the device 'tpu' could not be loaded: {error}") from error

    module = Unavailable("torch_tpu.tpu", "The device 'tpu' could not be loaded.")
    module.is_available = lambda: False
    module.device_count = lambda: 0
    module.is_initialized = lambda: False
    module._is_in_bad_fork = lambda: False
    module.manual_seed_all = lambda seed: None
    sys.modules.pop("torch_tpu.tpu", None)
    try:
        torch.utils.rename_privateuse1_backend("tpu")
        torch._register_device_module("tpu", module)
    except RuntimeError:  # another backend has the place: nothing of ours is needed
        pass


def __getattr__(name):
    # Submodules by attribute, so that none is imported before it is used.
    if name in ("tpu", "_plugin", "_decompose", "_loader"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'torch_tpu' has no attribute {name!r}")


def _load_with_torch() -> None:
    import sys

    torch = sys.modules.get("torch")
    # While torch is being imported, it calls the entry point itself when it is ready.
    if torch is None or hasattr(torch, "_import_device_backends"):
        import torch  # noqa: F401

        _autoload()


_load_with_torch()
