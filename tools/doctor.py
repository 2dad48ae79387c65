"""What is installed and what would be used: plugins, versions, device, cache. Exits with 1 when nothing can run."""
import os
import platform
import sys


def line(what, value):
    print(f"{what:20} {value}")


def main():
    line("python", f"{platform.python_version()} ({sys.executable})")
    try:
        import torch
    except Exception as e:  # an installation that cannot be imported is the finding
        line("torch", f"import failed: {e}")
        return 1
    line("torch", torch.__version__)
    try:
        import torch_tpu
        from torch_tpu import _plugin
    except Exception as e:
        line("torch_tpu", f"import failed: {e} (./dev build)")
        return 1
    line("torch_tpu", os.path.dirname(torch_tpu.__file__))
    line("TPU chips", _plugin.tpu_chips())
    for kind in ("cpu", "tpu", "cuda"):
        found = getattr(_plugin, f"{kind}_plugin")()
        line(f"plugin for {kind}", f"{found.path} ({found.source})" if found else "not installed")
    try:
        used = _plugin.find()
    except _plugin.PluginNotFound as e:
        line("plugin used", f"none: {e}")
        return 1
    line("plugin used", f"{used.path} ({used.source})")
    line("devices", torch.tpu.device_count())
    print(torch.zeros(2, device="tpu").add(1).cpu().tolist(), "computed on", torch.tpu.get_device_name(0))
    from torch_tpu import _C

    for what in ("platform", "platform_version", "api_version", "stablehlo_version", "environment"):
        try:
            value = _C.runtime_info(what)
        except Exception as e:
            value = f"({e})"
        line(what, str(value).replace("\n", " "))
    line("cache", os.environ.get("TORCH_TPU_CACHE_DIR", "default folder"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
