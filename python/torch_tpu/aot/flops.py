"""FLOPs of products and convolutions by the user's line.

PyTorch's own formulas count an operator that has one. Any other (attention, mv, _grouped_mm, ...) is counted by the
products that it was lowered to, so that no list of operators has to be kept.
"""
import math
import re

import torch
from torch.utils.flop_counter import flop_registry

from .lower import Line, line_of, title

aten = torch.ops.aten
_CONTRACTED = re.compile(r"lhs_contracting_dimensions = \[([\d, ]*)\]")
_TYPES = re.compile(r" : \(tensor<((?:\d+x)*)[^>]*>+, tensor<(?:\d+x)*[^>]*>+\) -> tensor<((?:\d+x)*)")
_LOC = re.compile(r' loc\("([^"]*)"(?:\("([^"]*)":(\d+):\d+\))?\)$')


def _formula(node):
    """FLOPs of |node| by PyTorch's formula; None without one."""
    packet = getattr(node.target, "overloadpacket", None) if node.op == "call_function" else None
    backward = packet is aten.convolution_backward_overrideable
    rule = flop_registry.get(aten.convolution_backward if backward else packet)
    if rule is None:
        return None
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
    if backward:
        args = (*args[:3], None, *args[3:])  # it has no bias_sizes
    return int(rule(*args, **kwargs, out_val=node.meta.get("val")))


def _dims(text):
    return [int(n) for n in text.split("x") if n]


def _product(line):
    """FLOPs of a dot_general as it is printed."""
    contracted, types = _CONTRACTED.search(line), _TYPES.search(line)
    lhs, out = _dims(types.group(1)), _dims(types.group(2))
    return 2 * math.prod(out) * math.prod(lhs[int(d)] for d in contracted.group(1).split(",") if d.strip())


def by_line(traced, text) -> list:
    """``[{"line", "flops"}]``, most first, of |traced| and the program |text| that it was lowered to."""
    total, counted, lines = {}, set(), {}

    def add(line, n):
        total[line] = total.get(line, 0) + n

    for node in traced.graph.graph.nodes:
        line = line_of(node)
        if line:
            lines[line.file, line.line] = line
        n = _formula(node)
        if n is not None:
            counted.add(title(node))
            add(str(line or "?"), n)
    for printed in text.split("\n"):
        if '"stablehlo.dot_general"' not in printed:
            continue
        name, file, number = (_LOC.search(printed) or re.match("()()()", "")).groups()
        if name in counted:
            continue
        line = (lines.get((file, int(number))) or Line(file, int(number), "?", "")) if file else "?"
        add(str(line), _product(printed))
    return [{"line": k, "flops": v} for k, v in sorted(total.items(), key=lambda x: -x[1])]
