"""``torch.tpu``: the device module, in the shape of ``torch.cuda``."""

import contextlib
import enum
import threading
from typing import Any, Iterable, NamedTuple, Optional, Union

import torch

from . import _C, _loader, _plugin

__all__ = [
    "DeferredTpuCallError", "EagerMode", "Event", "Stream", "StreamContext", "compile_statistics", "counters", "current_device",
    "current_stream",
    "default_generators", "default_stream", "device", "device_count", "device_of", "eager_mode", "empty_cache",
    "fallback_counts", "get_amp_supported_dtype", "get_device_capability", "get_device_name", "get_device_properties",
    "get_rng_state", "get_rng_state_all", "init", "initial_seed", "is_available", "is_bf16_supported", "is_initialized",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_summary", "precision", "reset_accumulated_memory_stats", "reset_fallback_counts",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_eager_mode", "set_rng_state", "set_rng_state_all",
    "set_stream", "stream", "synchronize",
]

_device_t = Union[torch.device, str, int, None]

has_half = True


# ---------------------------------------------------------------- devices
def is_available() -> bool:
    """True when a PJRT plugin can be used. Opens nothing."""
    return _C.is_open() or _plugin.available()


def device_count() -> int:
    """Number of devices; 0 when there is no plugin. Opens nothing."""
    return _C.device_count() if _C.is_open() else _loader.planned_device_count()


def is_initialized() -> bool:
    return _C.is_open() and not _is_in_bad_fork()


def __getattr__(name: str):
    if name == "_initialized":  # torch.utils.checkpoint saves the generators' states only where this holds
        return is_initialized()
    if name in ("amp", "aot", "memory", "random", "streams"):  # imported where they are used
        import importlib

        return importlib.import_module(f"torch_tpu.{name}")
    if name in ("AcceleratorError", "OutOfMemoryError"):
        return getattr(torch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def init() -> None:
    _lazy_init()


def _lazy_init() -> None:
    if not _C.is_open() or _C.in_bad_fork():
        _loader.open_runtime()


def _is_in_bad_fork() -> bool:
    return _C.in_bad_fork()


def _is_compiled() -> bool:
    return True


def _get_device_index(device: _device_t, optional: bool = False, allow_cpu: bool = False) -> int:
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "tpu":
            raise ValueError(f"Expected a tpu device, but got: {device}")
        if device.index is not None:
            return device.index
        device = None
    if device is None:
        if not optional:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
        return _C.current_device()
    raise ValueError(f"Expected a tpu device, but got: {device!r}")


class _utils:  # where torch.serialization looks for it
    _get_device_index = staticmethod(_get_device_index)


def current_device() -> int:
    return _C.current_device()


def set_device(device: _device_t) -> None:
    index = _get_device_index(device, True)
    if index >= 0:
        _C.set_device(index)


def _exchange_device(index: int) -> int:
    before = _C.current_device()
    if index >= 0 and index != before:
        _C.set_device(index)
    return before


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index)


class _DeviceGuard:
    """Makes the device of this index current for a while; -1 changes nothing."""

    def __init__(self, index: int):
        self.idx = index
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *exc: Any):
        self.idx = _maybe_exchange_device(self.prev_idx)
        return False


class device(_DeviceGuard):
    """Context manager that makes a device current. ``None`` or -1 changes nothing."""

    def __init__(self, device: Any):
        super().__init__(_get_device_index(device, optional=True))


class device_of(device):
    """Makes the device of a tensor or storage current; other objects change nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if getattr(getattr(obj, "device", None), "type", "") == "tpu" else -1)


class _DeviceProperties(NamedTuple):
    name: str
    type: str
    platform: str
    platform_version: str
    total_memory: int
    multi_processor_count: int
    major: int
    minor: int


def get_device_name(device: _device_t = None) -> str:
    """Beginning with "TPU v" on a TPU."""
    _lazy_init()
    return _C.device_kind(_get_device_index(device, True))


def get_device_capability(device: _device_t = None):
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_device_properties(device: _device_t = None) -> _DeviceProperties:
    _lazy_init()
    index = _get_device_index(device, True)
    if not 0 <= index < device_count():
        raise AssertionError(f"Invalid device id {index}: there are {device_count()} tpu devices")
    name = _C.device_kind(index)
    digits = "".join(c if c.isdigit() else " " for c in name).split()
    return _DeviceProperties(
        name=name,
        type="tpu",
        platform=_C.runtime_info("platform"),
        platform_version=_C.runtime_info("platform_version"),
        total_memory=_C.mem_info(index)[1],
        multi_processor_count=1,
        major=int(digits[0]) if digits else 0,
        minor=0,
    )


def can_device_access_peer(device: _device_t, peer_device: _device_t) -> bool:
    return _get_device_index(device, True) != _get_device_index(peer_device, True)


def synchronize(device: _device_t = None) -> None:
    """Waits for all work of a device, and raises what failed since the last time."""
    if _C.is_open():
        _C.synchronize(_get_device_index(device, True))


# ---------------------------------------------------------------- streams and events
class Stream(torch.Stream):
    """A stream. Work of one device runs in the order of issue on all of its streams."""

    def __new__(cls, device: _device_t = None, priority: int = 0, **kwargs: Any):
        if kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, device=torch.device("tpu", _get_device_index(device, True)), priority=priority)

    def __repr__(self) -> str:
        return f"torch.tpu.Stream(device={self.device}, id={self.stream_id})"


class _EventType(type):
    def __instancecheck__(cls, obj) -> bool:
        return isinstance(obj, torch.Event) and obj.device is not None and obj.device.type == "tpu"


class Event(metaclass=_EventType):
    """A mark in the order of issue. With ``enable_timing`` two of them measure the time between.

    What is made is a ``torch.Event``: PyTorch's own streams accept no subclass of it.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> torch.Event:
        return torch.Event(device="tpu", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def _as_stream(s: torch.Stream) -> Stream:
    return Stream(stream_id=s.stream_id, device_index=s.device.index, device_type=torch._C._autograd.DeviceType.PrivateUse1.value) if not isinstance(s, Stream) else s


def current_stream(device: _device_t = None) -> Stream:
    index = _get_device_index(device, True)
    return _as_stream(torch._C._accelerator_getStream(index))


def default_stream(device: _device_t = None) -> Stream:
    index = _get_device_index(device, True)
    return Stream(stream_id=0, device_index=index, device_type=torch._C._autograd.DeviceType.PrivateUse1.value)


def set_stream(stream: Optional[torch.Stream]) -> None:
    """Makes |stream| current, without changing the current device."""
    if stream is not None:
        before = current_device()
        torch._C._accelerator_setStream(stream)
        if current_device() != before:
            set_device(before)


class StreamContext:
    def __init__(self, stream: Optional[torch.Stream]):
        self.stream = stream
        self._before = None

    def __enter__(self):
        if self.stream is not None:
            self._device = current_device()
            self._before = current_stream(self.stream.device)
            torch._C._accelerator_setStream(self.stream)
        return self.stream

    def __exit__(self, *exc: Any):
        if self._before is not None:
            set_stream(self._before)
            set_device(self._device)


def stream(stream: Optional[torch.Stream]) -> StreamContext:
    return StreamContext(stream)


# ---------------------------------------------------------------- random numbers
_queued: list = []  # seeding that waits for the runtime to be opened
_queued_lock = threading.Lock()


class DeferredTpuCallError(Exception):
    pass


def _lazy_call(function) -> None:
    if _C.is_open():
        function()
        return
    with _queued_lock:
        _queued.append(function)


def _after_open() -> None:
    with _queued_lock:
        waiting, _queued[:] = list(_queued), []
    for function in waiting:
        function()


def _generator(device: _device_t = None) -> torch.Generator:
    _lazy_init()
    return _C.default_generator(_get_device_index(device, True))


class _Generators:
    def __len__(self) -> int:
        return device_count()

    def __getitem__(self, i: int) -> torch.Generator:
        if not 0 <= i < device_count():
            raise IndexError(i)
        return _generator(i)


default_generators = _Generators()


def manual_seed(seed: int) -> None:
    seed = int(seed)
    index = current_device()
    _lazy_call(lambda: _C.default_generator(index).manual_seed(seed))


def manual_seed_all(seed: int) -> None:
    seed = int(seed)

    def apply():
        for i in range(_C.device_count()):
            _C.default_generator(i).manual_seed(seed)

    if not _C.is_open():
        with _queued_lock:
            _queued.clear()  # whatever waits is overwritten
    _lazy_call(apply)


def seed() -> None:
    _generator().seed()


def seed_all() -> None:
    value = _generator(0).seed()
    manual_seed_all(value)


def initial_seed() -> int:
    return _generator().initial_seed()


def get_rng_state(device: _device_t = "tpu") -> torch.Tensor:
    return _generator(device).get_state()


def get_rng_state_all() -> list:
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: _device_t = "tpu") -> None:
    state = new_state.clone(memory_format=torch.contiguous_format)
    index = _get_device_index(device, True)
    _lazy_call(lambda: _C.default_generator(index).set_state(state))


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def _get_generator(device: _device_t) -> torch.Generator:
    return _generator(device)


def _set_rng_state_offset(offset: int, device: _device_t = "tpu") -> None:
    _generator(device).set_offset(offset)


def _get_rng_state_offset(device: _device_t = "tpu") -> int:
    return _generator(device).get_offset()


# ---------------------------------------------------------------- memory
def memory_stats(device: _device_t = None) -> dict:
    """Our own account of live storages, under the names that ``torch.cuda.memory_stats`` uses."""
    raw = _C.memory_stats(_get_device_index(device, True))
    out: dict = {}
    for what in ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"):
        for pool in ("all", "large_pool", "small_pool"):
            mine = pool != "small_pool"
            out[f"{what}.{pool}.current"] = raw["allocated"] if mine else 0
            out[f"{what}.{pool}.peak"] = raw["peak_allocated"] if mine else 0
            out[f"{what}.{pool}.allocated"] = raw["total_allocated"] if mine else 0
            out[f"{what}.{pool}.freed"] = raw["total_freed"] if mine else 0
    for what in ("allocation", "segment", "active"):
        out[f"{what}.all.current"] = raw["live_storages"]
        out[f"{what}.all.allocated"] = raw["allocations"]
        out[f"{what}.all.freed"] = raw["frees"]
    out["num_ooms"] = raw["oom_count"]
    out["num_alloc_retries"] = 0
    return out


def memory_stats_as_nested_dict(device: _device_t = None) -> dict:
    return _C.memory_stats(_get_device_index(device, True))


def memory_allocated(device: _device_t = None) -> int:
    return _C.memory_stats(_get_device_index(device, True))["allocated"]


def max_memory_allocated(device: _device_t = None) -> int:
    return _C.memory_stats(_get_device_index(device, True))["peak_allocated"]


def memory_reserved(device: _device_t = None) -> int:
    return memory_allocated(device)


def max_memory_reserved(device: _device_t = None) -> int:
    return max_memory_allocated(device)


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def reset_peak_memory_stats(device: _device_t = None) -> None:
    _C.reset_peak_memory_stats(_get_device_index(device, True))


reset_max_memory_allocated = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: _device_t = None) -> None:
    _C.reset_accumulated_memory_stats(_get_device_index(device, True))


def mem_get_info(device: _device_t = None) -> tuple:
    """(free, total) bytes."""
    _lazy_init()
    return _C.mem_info(_get_device_index(device, True))


def memory_summary(device: _device_t = None, abbreviated: bool = False) -> str:
    """Totals, and the largest live storages with the lines that made them."""
    index = _get_device_index(device, True)
    raw = _C.memory_stats(index)
    lines = [f"tpu:{index}"] + [f"  {name:<16}{value:>20,}" for name, value in raw.items()]
    if not abbreviated and _C.is_open():
        lines.append(_C.memory_report(index))
    return "\n".join(lines)


def empty_cache() -> None:
    """Does nothing: a freed buffer goes back to the plugin at once."""


def set_per_process_memory_fraction(fraction: float, device: _device_t = None) -> None:
    raise NotImplementedError("the PJRT plugin owns the device's memory; it has no limit per process to set here")


# ---------------------------------------------------------------- dtypes
def get_amp_supported_dtype() -> list:
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def is_current_stream_capturing() -> bool:
    """False: there are no captured graphs; ``torch.compile(backend="tpu")`` makes programs of many operations."""
    return False


def is_tf32_supported() -> bool:
    return False


# ---------------------------------------------------------------- modes, counters
class EagerMode(enum.Enum):
    """How eager operations run."""

    DEFER_NEVER = 0  # at once, asynchronously
    DEFER_NEVER_AND_LAUNCH_BLOCKING = 1  # each op is waited for: an error is raised on the line that made it
    DEFER_AND_FUSE = 2  # recorded, and run as fused programs


def _as_mode(mode) -> EagerMode:
    if isinstance(mode, str):
        return EagerMode[mode.upper()]
    return EagerMode(mode)


def eager_mode() -> EagerMode:
    """The mode in force."""
    return EagerMode(_C.mode_get())


class set_eager_mode(contextlib.ContextDecorator):
    """Sets the mode: as a call for good, as a context manager for a while.

    The mode is the process's, not the thread's: autograd runs half of a training step on threads of its own.
    """

    def __init__(self, mode: Union[EagerMode, str, int]):
        mode = _as_mode(mode)
        self._before = _C.mode_get()
        _C.mode_set_default(mode.value)

    def __enter__(self):
        return self

    def __exit__(self, *exc: Any):
        _C.mode_set_default(self._before)
        return False


class precision(contextlib.ContextDecorator):
    """How exact products of f32 matrices are: "highest" (f32, PyTorch's default), "high" (three bf16 passes on a TPU) or
    "default" (one bf16 pass). As a call for good, as a context manager for a while; None: what
    `torch.set_float32_matmul_precision` says, which is also what holds without this. On the CPU plugin all three are f32.
    The setting is the process's.
    """

    _values = {None: -1, "default": 0, "medium": 0, "high": 1, "highest": 2}

    def __init__(self, value: Optional[str]):
        if value not in self._values:
            raise ValueError(f"precision {value!r}: one of 'highest', 'high', 'default' or None is wanted")
        self._before = _C.precision_get()
        _C.precision_set(self._values[value])

    def __enter__(self):
        return self

    def __exit__(self, *exc: Any):
        _C.precision_set(self._before)
        return False


def _set_default_mode(mode: EagerMode) -> None:
    _C.mode_set_default(mode.value)


def counters() -> dict:
    """What the runtime did so far: executions, compiles, cache hits, copies, …"""
    return _C.counters()


def compile_statistics() -> dict:
    """Counts of torch.compile(backend="tpu") with symbolic sizes since the process began.

    ``bounded_programs``; ``exact_graphs``, graphs that had to be compiled for each set of sizes; ``bounded_calls``; and
    over those calls the elements of all values in their graphs, ``true_elements`` at their true sizes and
    ``padded_elements`` with room up to the bounds. ``padding_cost``: how many times the true ones the latter are.
    """
    from ._compile.dynamic_programs import statistics

    return statistics()


def explain_fusion():
    """Where recorded regions ended and why, what was compiled, what the cuts cost: a :class:`torch_tpu._explain.Fusion`.

    ``print`` it, look into its ``.data``, or ``.save(path)`` it for ``torch-tpu fusion path``. Counts are since the start
    of the process.
    """
    from . import _explain

    return _explain.collect()


def save_bundle(path, program) -> None:
    """Writes a ``torch.export.ExportedProgram`` with its executable, its state and its calling convention to one file.

    The program's sizes must be static; it may have been exported on the CPU or on ``tpu``. Raises ValueError for a program
    that cannot be one executable. :func:`load_bundle` needs neither Dynamo nor the model's code.
    """
    from ._compile.bundle import save

    save(path, program)


def load_bundle(path, device=None):
    """The program that :func:`save_bundle` wrote, as a callable with the exported module's arguments and results.

    Its executable is taken from the file where the file was made for this very library, plugin and platform; elsewhere the
    program is compiled once. Mutated buffers are kept: ``.state`` has parameters and buffers by name, on the device.
    """
    from ._bundle import load

    return load(path, device)


def fallback_counts() -> dict:
    """Calls per operator that ran on the CPU because the device cannot."""
    return _C.fallback_counts()


def reset_fallback_counts() -> None:
    _C.reset_fallback_counts()
