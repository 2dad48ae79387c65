"""Public facts about TPU chips, and the device that a topology name gives.

Figures are per chip, from the specification tables of Google Cloud's TPU documentation
(https://cloud.google.com/tpu/docs/v4, /v5e, /v5p, /v6e and /tpu7x). XLA compiles for a *device*: a whole chip, or one
of a chip's two TensorCores where the compiler shows them separately (tpu7x always; v4 and v5p when it says so).
"""
from typing import NamedTuple

GiB = 1 << 30


class Chip(NamedTuple):
    name: str
    hbm_bytes: int  # of a chip
    bf16_flops: float  # peak FLOP/s of a chip
    hbm_bytes_per_s: float  # of a chip
    source: str


_DOCS = "https://cloud.google.com/tpu/docs/"
CHIPS = {
    c.name: c
    for c in (
        Chip("v4", 32 * GiB, 275e12, 1228e9, _DOCS + "v4"),
        Chip("v5e", 16 * GiB, 197e12, 819e9, _DOCS + "v5e"),
        Chip("v5p", 95 * GiB, 459e12, 2765e9, _DOCS + "v5p"),
        Chip("v6e", 32 * GiB, 918e12, 1638e9, _DOCS + "v6e"),
        Chip("tpu7x", 192 * GiB, 2307e12, 7380e9, _DOCS + "tpu7x"),
    )
}
ONE_HOST = {"v4": "v4:2x2x1", "v5e": "v5e:2x2", "v5p": "v5p:2x2x1", "v6e": "v6e:2x2", "tpu7x": "tpu7x:2x2x1"}


def full_name(topology: str) -> str:
    """``"v5e"`` -> ``"v5e:2x2"``, one host's worth; a name with a shape stays. ValueError for a chip not in the table."""
    chip = topology.partition(":")[0]
    if chip not in CHIPS:
        raise ValueError(f"topology {topology!r}: the chip is one of {', '.join(CHIPS)}, as in 'v5e:2x2' or 'tpu7x:2x2x1'")
    return topology if ":" in topology else ONE_HOST[chip]


def chips_in(topology: str) -> int:
    """Chips of ``"tpu7x:2x2x1"``: the product of its shape. ValueError when it has none."""
    shape = full_name(topology).partition(":")[2]
    try:
        count = 1
        for side in shape.split("x"):
            count *= int(side)
        return count
    except ValueError:
        raise ValueError(f"topology {topology!r}: a shape like 2x2 or 2x2x1 is expected after the colon") from None


class Device(NamedTuple):
    """What one program runs on: a chip, or a share of it."""

    chip: Chip
    per_chip: int  # devices of a chip

    @property
    def hbm_bytes(self) -> int:
        return self.chip.hbm_bytes // self.per_chip

    @property
    def bf16_flops(self) -> float:
        return self.chip.bf16_flops / self.per_chip

    @property
    def hbm_bytes_per_s(self) -> float:
        return self.chip.hbm_bytes_per_s / self.per_chip


def device_of(topology: str, devices: int) -> Device:
    """The device of a topology that the compiler says has |devices| devices."""
    name = full_name(topology)
    return Device(CHIPS[name.partition(":")[0]], max(1, devices // chips_in(name)))
