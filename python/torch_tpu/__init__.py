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
    except BaseException:
        _loaded = False
        raise


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
