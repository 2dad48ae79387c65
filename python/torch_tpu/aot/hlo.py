"""The optimised program as the compiler hands it out: just enough of HloModuleProto for reports.

Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto.
"""
import re
from typing import NamedTuple, Optional

_TYPES = {1: ("pred", 1), 2: ("s8", 1), 3: ("s16", 2), 4: ("s32", 4), 5: ("s64", 8), 6: ("u8", 1), 7: ("u16", 2), 8: ("u32", 4),
          9: ("u64", 8), 10: ("f16", 2), 11: ("f32", 4), 12: ("f64", 8), 15: ("c64", 8), 16: ("bf16", 2), 18: ("c128", 16),
          19: ("f8e5m2", 1), 20: ("f8e4m3fn", 1), 21: ("s4", 0.5), 22: ("u4", 0.5)}
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast",
               "ragged-all-to-all")
_NO_BUFFER = ("parameter", "tuple", "get-tuple-element", "bitcast", "constant", "after-all", "opt-barrier")


def _fields(data):
    """(number, value) of a message: ints for varints, bytes for the rest."""
    i, n = 0, len(data)
    while i < n:
        key, i = _varint(data, i)
        kind = key & 7
        if kind == 0:
            value, i = _varint(data, i)
        elif kind == 2:
            size, i = _varint(data, i)
            value, i = data[i : i + size], i + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, i = data[i : i + size], i + size
        else:
            raise ValueError(f"not a protobuf message: wire type {kind}")
        yield key >> 3, value


def _varint(data, i):
    out = shift = 0
    while True:
        byte = data[i]
        i += 1
        out |= (byte & 127) << shift
        if byte < 128:
            return out, i
        shift += 7


def _ints(value):
    """A repeated integer: packed or one by one."""
    if isinstance(value, int):
        return [value]
    out, i = [], 0
    while i < len(value):
        v, i = _varint(value, i)
        out.append(v)
    return out


class Shape(NamedTuple):
    text: str
    bytes: int  # in the device's main memory
    dynamic: bool
    parts: tuple = ()  # of a tuple
    size: int = 0  # bytes, wherever it is kept


def _shape(data) -> Shape:
    kind, dims, parts, space, dynamic = 0, [], [], 0, False
    for number, value in _fields(data):
        if number == 2:
            kind = value
        elif number == 3:
            dims += _ints(value)
        elif number == 4:
            parts.append(_shape(value))
        elif number == 5:
            space = next((v for f, v in _fields(value) if f == 8), 0)
        elif number == 6:
            dynamic = dynamic or any(_ints(value))
    if kind == 13:  # a tuple
        return Shape("(" + ", ".join(p.text for p in parts) + ")", sum(p.bytes for p in parts), any(p.dynamic for p in parts),
                     tuple(parts), sum(p.size for p in parts))
    name, size = _TYPES.get(kind, ("opaque", 0))
    for d in dims:
        size *= d
    return Shape(f"{name}[{','.join(map(str, dims))}]", 0 if space else int(size), dynamic, (), int(size))


class Instruction(NamedTuple):
    id: int
    name: str
    opcode: str
    shape: Shape
    operands: list  # ids
    called: list  # ids of computations
    op: str  # what the program's text said made it
    file: str
    line: int
    target: str  # of a custom call


def _frames(data) -> list:
    """(file, line) by number of a stack frame, the first at 1."""
    files, places, out = [], [], [("", 0)]
    for number, value in _fields(data):
        if number == 1:
            files.append(value.decode(errors="replace"))
        elif number == 3:
            f = dict(_fields(value))
            places.append((f.get(1, 0), f.get(3, 0)))
        elif number == 4:
            place = dict(_fields(value)).get(1, 0)
            file, line = places[place - 1] if 0 < place <= len(places) else (0, 0)
            out.append((files[file - 1] if 0 < file <= len(files) else "", line))
    return out


def _instruction(data, frames) -> Instruction:
    f = {"id": 0, "name": "", "opcode": "", "shape": Shape("", 0, False), "operands": [], "called": [], "op": "", "file": "",
         "line": 0, "target": ""}
    for number, value in _fields(data):
        if number in (1, 2, 28):
            f[{1: "name", 2: "opcode", 28: "target"}[number]] = value.decode(errors="replace")
        elif number == 3:
            f["shape"] = _shape(value)
        elif number == 7:
            for n, v in _fields(value):
                if n in (2, 3):
                    f["op" if n == 2 else "file"] = v.decode(errors="replace")
                elif n == 4:
                    f["line"] = v
                elif n == 15 and v < len(frames):
                    f["file"], f["line"] = frames[v]
        elif number == 35:
            f["id"] = value
        elif number in (36, 38):
            f["operands" if number == 36 else "called"] += _ints(value)
    return Instruction(**f)


class Live(NamedTuple):
    """A value in the device's memory at the program's fullest moment."""

    instruction: Instruction
    bytes: int


class Module:
    """``order``: the entry computation's instructions as the device runs them."""

    def __init__(self, proto: bytes, with_config: bool = True):
        if with_config:
            proto = next(v for n, v in _fields(proto) if n == 1)
        self.computations, roots, entry, sequences = {}, {}, 0, {}
        self.frames = _frames(next((v for n, v in _fields(proto) if n == 17), b""))
        for number, value in _fields(proto):
            if number == 3:
                self._computation(value, roots)
            elif number == 6:
                entry = value
            elif number == 7:
                for n, v in _fields(value):
                    pair = dict(_fields(v)) if n == 1 else {}
                    ids = [i for f, w in _fields(pair.get(2, b"")) if f == 1 for i in _ints(w)]
                    sequences[pair.get(1, 0)] = ids
        items = self.computations.get(entry, [])
        self.root = roots.get(entry)
        self.donated = [_ints(f.get(1, 0))[0] for n, v in _fields(proto) if n == 8 for k, w in _fields(v) if k == 1
                        for f in [dict(_fields(w))] if f.get(1) != b""]  # results that take an argument's place
        self.is_scheduled = entry in sequences
        by_id = {x.id: x for x in items}
        self.order = [by_id[i] for i in sequences[entry] if i in by_id] if self.is_scheduled else items
        self.by_id = by_id

    def _computation(self, data, roots):
        items, number, root = [], 0, 0
        for n, v in _fields(data):
            if n == 2:
                items.append(_instruction(v, self.frames))
            elif n == 5:
                number = v
            elif n == 6:
                root = v
        self.computations[number], roots[number] = items, root

    def all(self):
        for items in self.computations.values():
            yield from items

    def collectives(self) -> list:
        """The instructions that move data between chips; a pair of start and done counts once, by its start."""
        return [x for x in self.all() if x.opcode.removesuffix("-start") in COLLECTIVES]

    def payload(self, x: Instruction) -> Shape:
        """What collective |x| gives: of one that is only begun, the part of its type that is not an operand."""
        parts = x.shape.parts
        if not x.opcode.endswith("-start") or len(parts) < 2:
            return x.shape
        return parts[1]

    def unestimated(self) -> int:
        """Custom calls of the entry computation: the compiler's seconds count each as -1."""
        return sum(x.opcode == "custom-call" for x in self.order)

    def maker(self, x: Instruction) -> Instruction:
        """|x|, or for a copy without a name of its own, what made the value that is copied."""
        while not x.op and x.opcode.startswith(("copy", "bitcast")) and x.operands and x.operands[0] in self.by_id:
            x = self.by_id[x.operands[0]]
        return x

    def untrusted(self) -> list:
        """Why the compiler's estimate of time and FLOPs may be off: what it does not look into."""
        custom = sorted({x.target for x in self.all() if x.opcode == "custom-call" and _hides_work(x.target)})
        out = [f"custom call {t}: its work is not counted" for t in custom]
        if any(x.shape.dynamic for x in self.all()):
            out.append("a size is known only when it runs: the bound is counted, not the size")
        loops = sum(x.opcode == "while" for x in self.all())
        if loops:
            out.append(f"{loops} loop{'s' * (loops > 1)}: each body is counted once where the compiler does not know how often it runs")
        return out

    def memory_line(self):
        """Bytes of values in the device's main memory while each instruction of ``order`` runs, arguments not counted nor results in their place,
        and what is live at the fullest moment, largest first. Values inside fusions and loops are not seen."""
        last = {}
        for i, x in enumerate(self.order):
            for o in x.operands:
                last[self._source(o)] = i
        if self.root is not None:
            last[self._source(self.root)] = len(self.order)
            for o in self.by_id[self.root].operands if self.root in self.by_id else ():
                last[self._source(o)] = len(self.order)
        live, now, line, best, peak = {}, 0, [], 0, []
        elsewhere = self._in_arguments()
        dying = {}
        for i, x in enumerate(self.order):
            size = max(0, self._made(x) - elsewhere.get(x.id, 0))
            if size:
                live[x.id] = size
                now += size
                dying.setdefault(last.get(x.id, i), []).append(x.id)
            line.append(now)
            if now > best:
                best, peak = now, list(live.items())
            for d in dying.pop(i, ()):
                now -= live.pop(d)
        held = [Live(self.by_id[k], v) for k, v in peak]
        return line, sorted(held, key=lambda v: -v.bytes)

    def moved(self) -> list:
        """(instruction, bytes it reads and writes in the device's main memory), most first; loops count as one step."""
        out = []
        for x in self.order:
            if x.opcode in _NO_BUFFER or x.opcode.endswith("-done"):
                continue
            read = sum(self.by_id[o].shape.bytes for o in x.operands if o in self.by_id)
            if x.opcode.endswith("-start"):  # where it writes to is part of its type, beside its operands
                out.append((x, 2 * read))
            else:
                out.append((x, read + x.shape.bytes))
        return sorted(out, key=lambda item: -item[1])

    def _in_arguments(self) -> dict:
        """Bytes of each instruction's result that go where an argument was, because it is donated."""
        root, out = self.by_id.get(self.root), {}
        if root is None or root.opcode != "tuple":
            return out
        for i in self.donated:
            if i < len(root.operands):
                source = self._source(root.operands[i])
                out[source] = out.get(source, 0) + self.by_id[root.operands[i]].shape.bytes
        return out

    def _made(self, x) -> int:
        """Bytes of the buffer that |x| fills."""
        if x.opcode in _NO_BUFFER or x.opcode.endswith("-done"):
            return 0
        if x.opcode == "copy-start":  # (where to, from where, a flag)
            return x.shape.parts[0].bytes if x.shape.parts else x.shape.bytes
        if x.opcode.endswith("-start"):  # its operands are part of its type
            return max(0, x.shape.bytes - sum(self.by_id[o].shape.bytes for o in x.operands if o in self.by_id))
        return x.shape.bytes

    def _source(self, number):
        """The value that |number| is only another name for."""
        x = self.by_id.get(number)
        while x is not None and x.operands and (x.opcode in ("bitcast", "get-tuple-element") or x.opcode.endswith("-done")):
            number = x.operands[0]
            x = self.by_id.get(number)
        return number


def _hides_work(target: str) -> bool:
    quiet = ("AllocateBuffer", "AsyncCollective", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "ConcatBitcast", "SliceBitcast",
             "AssumeGatherIndicesInBound", "annotate_device_placement", "X64")
    return not target.startswith(quiet)


def find_line(text: str) -> Optional[str]:
    """The user's "file:line" in the compiler's words, where it names one."""
    m = re.search(r'"?(/[^"\s:]+\.py)"?:(\d+)', text)
    return f"{m.group(1)}:{m.group(2)}" if m else None
