"""What ``torch.compile`` without a ``backend=`` does once the device is in use.

PyTorch's default, Inductor, generates no code for this device. When the runtime opens, :func:`prepare` arranges that

* the default backend becomes :func:`default`, which gives graphs with a tpu tensor to ``backend="tpu"`` and every other
  graph to Inductor with the mode and options it was given; a default the user set stays;
* Inductor asked by name for tpu tensors says what to write instead.

Both go through PyTorch's own registries. Their modules take seconds to import, so they are told when the program
imports them. A program that opens no device sees nothing of this.
"""
import importlib.abc
import importlib.util
import sys
import warnings

_REGISTRY = "torch._dynamo.backends.registry"
_INDUCTOR = "torch._inductor.codegen.common"
_wrappers = {}


def _has_tpu(gm, inputs):
    import torch

    def ours(value):
        return isinstance(value, torch.Tensor) and value.device.type == "tpu"

    if any(map(ours, inputs)):
        return True
    for node in gm.graph.nodes:
        values = (node.meta.get("example_value"), node.meta.get("val"), node.kwargs.get("device"))
        if any(ours(v) or (isinstance(v, (str, torch.device)) and str(v).startswith("tpu")) for v in values):
            return True
    return any(map(ours, gm.parameters())) or any(map(ours, gm.buffers()))


def _for_tpu(options):
    """The options that are for us; Inductor's own say nothing here and are dropped with a warning."""
    import torch._inductor.config as config

    from ._compile.options import Options

    kept = {}
    for name, value in (options or {}).items():
        if name in Options.__dataclass_fields__ or not hasattr(config, name.split(".")[0].replace("-", "_")):
            kept[name] = value
        else:
            warnings.warn(f"torch.compile: {name!r} is an option of Inductor and changes nothing on the tpu device", stacklevel=2)
    return kept or None


def default(gm, example_inputs, mode=None, options=None):
    """The Dynamo backend that looks where the graph's tensors are."""
    if _has_tpu(gm, example_inputs):
        from . import _compile

        return _compile.backend(gm, example_inputs, mode=mode, options=_for_tpu(options))
    import torch

    key = (mode, repr(options))
    if key not in _wrappers:
        _wrappers[key] = torch._TorchCompileInductorWrapper(mode or ("default" if options is None else None), options, None)
    return _wrappers[key](gm, example_inputs)


def _reset():
    for wrapper in _wrappers.values():
        wrapper.reset()


default.reset = _reset


class NoCodeGenerator:
    """Stands for the device in Inductor's registry, as its scheduling and as its wrapper's generator."""

    supports_caching = False

    def __init__(self, *_):
        self.create()

    @staticmethod
    def create(*_, **__):
        raise RuntimeError(
            "torch.compile's Inductor backend generates no code for the tpu device. Use torch.compile(..., backend='tpu'), "
            "or call torch.compile without a backend after the first tensor is on the device."
        )


def _registry_imported(module):
    if hasattr(module, "set_default_backend") and module.get_default_backend() == "inductor":
        module.set_default_backend(default)


def _inductor_imported(module):
    if module.get_scheduling_for_device("tpu") is None:
        module.register_backend_for_device("tpu", NoCodeGenerator, NoCodeGenerator)


class _Later(importlib.abc.MetaPathFinder):
    """Calls a function right after a module is imported for the first time."""

    def __init__(self, wanted):
        self.wanted = wanted  # name -> function of the module

    def find_spec(self, name, path=None, target=None):
        then = self.wanted.pop(name, None)
        if then is None:
            return None
        if not self.wanted:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, then)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, inner, then):
        self.inner, self.then = inner, then

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.inner  # nobody needs to know
        self.inner.exec_module(module)
        self.then(module)


def prepare():
    """Called once, when the runtime has been opened."""
    wanted = {_REGISTRY: _registry_imported, _INDUCTOR: _inductor_imported}
    for name, then in list(wanted.items()):
        module = sys.modules.get(name)
        if module is not None:
            del wanted[name]
            then(module)
    if wanted:
        sys.meta_path.insert(0, _Later(wanted))
