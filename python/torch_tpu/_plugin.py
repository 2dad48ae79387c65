"""Which PJRT plugin to load: the first of an explicit choice, a TPU, and whatever is installed."""

import glob
import os
import sys
from typing import NamedTuple, Optional


class Plugin(NamedTuple):
    name: str  # "cpu", "tpu", or what the plugin's package calls itself
    path: str
    source: str  # how it was found, for messages


class PluginNotFound(RuntimeError):
    pass


def _package_dir(name: str) -> Optional[str]:
    """Folder of an installed package, found without importing it."""
    parts = name.split(".")
    for root in sys.path:
        path = os.path.join(root or ".", *parts)
        if os.path.isdir(path):
            return path
    return None


def _in_package(package: str, *patterns: str) -> Optional[str]:
    folder = _package_dir(package)
    if folder is None:
        return None
    for pattern in patterns:
        found = sorted(glob.glob(os.path.join(folder, pattern)))
        if found:
            return found[0]
    return None


_CPU = (  # in order of preference
    ("fastatomstruct_xla_cpu", "libpjrt_cpu.so"),
    ("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
    ("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
)


def cpu_plugin() -> Optional[Plugin]:
    for package, file in _CPU:
        path = _in_package(package, file)
        if path:
            return Plugin("cpu", path, f"package {package}")
    return None


def tpu_plugin() -> Optional[Plugin]:
    path = os.environ.get("TPU_LIBRARY_PATH")
    if path and os.path.exists(path):
        return Plugin("tpu", path, "TPU_LIBRARY_PATH")
    path = _in_package("libtpu", "libtpu.so")
    return Plugin("tpu", path, "package libtpu") if path else None


def cuda_plugin() -> Optional[Plugin]:
    for package in ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12", "jax_cuda13_plugin", "jax_cuda12_plugin"):
        path = _in_package(package, "xla_cuda_plugin.so", "*.so")
        if path:
            return Plugin("cuda", path, f"package {package}")
    return None


def tpu_chips() -> int:
    """TPU chips of this machine, as the kernel shows them: nothing is opened."""
    chips = len(glob.glob("/dev/accel[0-9]*"))
    if chips:
        return chips
    for vendor in glob.glob("/sys/bus/pci/devices/*/vendor"):
        try:
            with open(vendor) as f:
                if f.read().strip() != "0x1ae0":  # Google
                    continue
            with open(os.path.join(os.path.dirname(vendor), "device")) as f:
                # v4, v5e, v5p, v6e and tpu7x; the vendor's other devices are disks and network cards
                if f.read().strip() in ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"):
                    chips += 1
        except OSError:
            pass
    return chips if glob.glob("/dev/vfio/[0-9]*") else 0


def _registered() -> Optional[Plugin]:
    """Plugins that packages announce, as JAX finds them: entry points, then namespace packages."""
    from importlib import metadata

    for group in ("xla_plugins", "jax_plugins"):
        for entry in metadata.entry_points(group=group):
            path = _in_package(entry.value.split(":")[0], "*.so")
            if path:
                return Plugin(entry.name, path, f"entry point {entry.name} in {group}")
        folder = _package_dir(group)
        for path in sorted(glob.glob(os.path.join(folder, "*", "*.so"))) if folder else ():
            return Plugin(os.path.basename(os.path.dirname(path)), path, f"namespace {group}")
    return None


_NAMED = {"cpu": cpu_plugin, "tpu": tpu_plugin, "cuda": cuda_plugin, "gpu": cuda_plugin}
_found: Optional[Plugin] = None


def find() -> Plugin:
    """The plugin this process uses. Raises :class:`PluginNotFound` with what to do."""
    global _found
    if _found is not None:
        return _found
    _found = _find()
    return _found


def _find() -> Plugin:
    choice = os.environ.get("TORCH_TPU_PJRT_PLUGIN", "").strip()
    if choice:
        if choice in _NAMED:
            plugin = _NAMED[choice]()
            if plugin is None:
                raise PluginNotFound(f"TORCH_TPU_PJRT_PLUGIN={choice}: no PJRT plugin for it is installed")
            return plugin
        if not os.path.exists(choice):
            raise PluginNotFound(
                f"TORCH_TPU_PJRT_PLUGIN={choice}: there is no such file (give a path, or one of {', '.join(_NAMED)})"
            )
        return Plugin(os.path.basename(choice), choice, "TORCH_TPU_PJRT_PLUGIN")
    chips = tpu_chips()
    if chips:
        plugin = tpu_plugin()
        if plugin is None:
            raise PluginNotFound(
                f"this machine has {chips} TPU chips but libtpu is not installed: pip install libtpu, or choose another "
                "plugin with TORCH_TPU_PJRT_PLUGIN"
            )
        return plugin
    plugin = cpu_plugin() or _registered() or cuda_plugin()
    if plugin is None:
        raise PluginNotFound(
            "no PJRT plugin is installed. For CPUs: pip install fastatomstruct-xla-cpu; for TPUs: pip install libtpu; or "
            "set TORCH_TPU_PJRT_PLUGIN to the path of one"
        )
    return plugin


def available() -> bool:
    try:
        find()
        return True
    except PluginNotFound:
        return False
