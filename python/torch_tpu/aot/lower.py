"""A traced graph -> StableHLO text for a TPU, each operation with the user's line on it."""
import operator
import re
from typing import NamedTuple, Optional

import torch

from .. import _C
from .._compile.lowering import Lowering
from .._compile.options import Options
from .._compile.sizes import CannotLower
from .trace import Traced, TraceError, user_frame

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)(?:\n\s+([^\n]*))?')


class Line(NamedTuple):
    """A place in the user's program."""

    file: str
    line: int
    function: str
    code: str

    def __str__(self):
        return f"{self.file}:{self.line} in {self.function}" + (f": {self.code}" if self.code else "")


class _Frame(NamedTuple):  # what user_frame reads
    filename: str
    lineno: int
    name: str
    line: str


def line_of(node: torch.fx.Node) -> Optional[Line]:
    """Where the user's program made |node|; for a backward operator, where its forward was made. None when unknown."""
    text = node.meta.get("stack_trace")
    frames = [_Frame(f, int(n), name, code or "") for f, n, name, code in _FRAME.findall(text or "")]
    for i in range(len(frames), 0, -1):
        if user_frame(frames[i - 1 : i]):
            f = frames[i - 1]
            return Line(f.filename, f.lineno, f.name, f.line.strip())
    return None


def title(node: torch.fx.Node) -> str:
    """The operator's name, and the part of the program that it belongs to where no line of the user's made it."""
    maker = node.args[0] if node.target is operator.getitem else node
    part = (maker.meta.get("custom") or {}).get("part")
    return (f"{part}: " if part else "") + str(maker.target).removesuffix(".default")


def _bytes(value) -> int:
    values = value if isinstance(value, (tuple, list)) else (value,)
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


class Value(NamedTuple):
    """A tensor of the program, as PyTorch would make it; XLA fuses many of them away."""

    name: str  # the operator
    shape: str
    bytes: int
    line: Optional[Line]
    first: int  # the program's order
    last: int


# Checks on values: they give nothing, and what is only compiled never fails them.
_NOTHING = (torch.ops.aten._assert_async.msg, torch.ops.aten._assert_async.default)


class _AotLowering(Lowering):
    def __init__(self, traced: Traced, groups=None, platform="tpu"):
        super().__init__(traced.graph, {}, 0, Options(), graph=_C.Graph(0, platform))
        self.updates = traced.updates
        for name, ranks in (groups or {}).items():
            self.graph.group(name, ranks)

    def attribute(self, gm, name):
        value = gm
        for part in name.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor) and value.numel() <= 1024 and value.device.type == "cpu" and type(value) is torch.Tensor:
            return self.graph.constant(value)
        return super().attribute(gm, name)

    def located(self, error, node):
        return error  # it has its line

    def call(self, node, env):
        if node.target in _NOTHING:
            return None
        line = line_of(node)
        name = title(node)
        self.graph.where(name, line.file if line else None, line.line if line else 0)
        try:
            return super().call(node, env)
        except (CannotLower, RuntimeError, NotImplementedError, TypeError, ValueError) as e:
            raise TraceError(f"{name}: {e}", str(line or "")) from e
        finally:
            self.graph.where()

    def donations(self, node, order):
        """The parameter whose buffer each result may take: an updated parameter takes the old one's."""
        numbers = {index: k for k, (index, _) in enumerate(self.inputs) if isinstance(index, int)}
        donate, taken = [-1] * len(order), set()
        for i, result in enumerate(node.args[0]):
            source = numbers.get(self.updates.get(i))
            k = order.get(result)
            if source is not None and k is not None and donate[k] < 0 and source not in taken:
                donate[k] = source
                taken.add(source)
        return donate


def stablehlo(traced: Traced, groups=None, platform="tpu") -> str:
    """The program's text; |groups|: ids of replicas by the name of a process group. Raises TraceError with the user's line for
    an operator that cannot be compiled."""
    return lowered(traced, groups, platform).graph.text()


def lowered(traced: Traced, groups=None, platform="tpu") -> Lowering:
    """The same with what its inputs and results are."""
    return _AotLowering(traced, groups, platform).run()


def _is_view(node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(r.alias_info is not None for r in schema.returns)


def values(traced: Traced) -> list:
    """The program's tensors in order, and until when each is needed: what eager PyTorch would hold."""
    order = {n: i for i, n in enumerate(traced.graph.graph.nodes)}
    out = []
    for node, i in order.items():
        if node.op != "call_function" or _is_view(node) or isinstance(node.meta.get("val"), (list, tuple)):
            continue
        if not _bytes(node.meta.get("val")):
            continue
        val = node.meta["val"]
        last = max((order[u] for u in node.users), default=i)
        shape = f"{str(val.dtype).removeprefix('torch.')}[{','.join(map(str, val.shape))}]"
        out.append(Value(title(node), shape, _bytes(val), line_of(node), i, last))
    return out


def input_bytes(traced: Traced) -> dict:
    """Bytes of the program's inputs by kind ("parameter", "buffer", "optimizer state", "argument")."""
    out = {}
    nodes = [n for n in traced.graph.graph.nodes if n.op == "placeholder"]
    for node, what in zip(nodes, traced.inputs):
        out[what.kind] = out.get(what.kind, 0) + _bytes(node.meta.get("val"))
    return out
