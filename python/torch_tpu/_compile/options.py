"""What ``torch.compile(backend="tpu", options={...}, mode=...)`` accepts.

==============  ==========================================================================================
option          meaning
==============  ==========================================================================================
donation        bool, True: buffers of inputs that the program mutates are reused for their new values
precision       "default", "high" or "highest": products of f32 in this program; unset: the process's setting
xla             dict of XLA flags for this program's compilation, e.g. {"xla_cpu_enable_fast_math": False}
dump            directory: each graph's FX code (NNN.fx.py) and its StableHLO (NNN.mlir) are written there
async_compile   bool, False: op by op until the program, compiled on another thread, is ready
dynamic         what symbolic sizes are rounded up to. True: 4, 8, 16, ...; a dict {"min": 4, "factor": 2.0} of that
                ladder's first bound and the ratio of the next; a list of ascending bounds (above the last: multiples of
                it); False: no rounding, one executable for each set of sizes
==============  ==========================================================================================

``mode`` may be any of PyTorch's; there is one way to compile here, so it changes nothing.
"""
import dataclasses
import os

from .bounds import Ladder, parse_ladder

PRECISIONS = {"default": 0, "high": 1, "highest": 2}
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclasses.dataclass(frozen=True)
class Options:
    donation: bool = True
    precision: str = None
    xla: tuple = ()  # of (flag, text)
    dump: str = None
    async_compile: bool = False
    dynamic: Ladder = Ladder()

    @property
    def overrides(self):
        """The flags as the core takes them: "flag=value;…"."""
        return ";".join(f"{name}={value}" for name, value in self.xla)


def _flag(name, value):
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, (bool, int, float, str)) or ";" in text or "=" in str(name) or ";" in str(name):
        raise ValueError(f"torch.compile(backend='tpu'): options['xla'][{name!r}] must be a bool, a number or a string without ';', not {value!r}")
    return str(name), text


def parse(options, mode=None):
    """Options from the user's dict. Raises ValueError (unknown name, value out of range) or TypeError (wrong type)."""
    known = [f.name for f in dataclasses.fields(Options)]
    given = dict(options or {})
    for name in given:
        if name not in known:
            raise ValueError(f"torch.compile(backend='tpu'): there is no option {name!r}; the options are {', '.join(known)}")
    if mode is not None and mode not in MODES:
        raise ValueError(f"torch.compile(backend='tpu'): there is no mode {mode!r}; the modes are {', '.join(MODES)}")
    for name in ("donation", "async_compile"):
        if name in given and not isinstance(given[name], bool):
            raise TypeError(f"torch.compile(backend='tpu'): option {name!r} must be True or False, not {given[name]!r}")
    if given.get("precision") is not None and given["precision"] not in PRECISIONS:
        raise ValueError(f"torch.compile(backend='tpu'): option 'precision' must be one of {', '.join(PRECISIONS)}, not {given['precision']!r}")
    if "dynamic" in given:
        given["dynamic"] = parse_ladder(given["dynamic"])
    if "xla" in given:
        if not isinstance(given["xla"], dict):
            raise TypeError(f"torch.compile(backend='tpu'): option 'xla' must be a dict of flags, not {given['xla']!r}")
        given["xla"] = tuple(sorted(_flag(k, v) for k, v in given["xla"].items()))
    if given.get("dump") is not None:
        given["dump"] = os.fspath(given["dump"])
    return Options(**given)
