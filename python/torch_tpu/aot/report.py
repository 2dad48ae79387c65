"""What is known about a program on several chips, as data, as text, as JSON and as a page."""
import json
import re
from typing import Optional

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_OOM = re.compile(r"\(([\d.]+)([KMGT]?)\) exceeds available HBM \(([\d.]+)([KMGT]?)\)")
_OOM_OLD = re.compile(r"Used ([\d.]+)([KMGT]?) of ([\d.]+)([KMGT]?) hbm")
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(n: Optional[float]) -> str:
    """``1536`` -> ``"1.5 KiB"``; ``"?"`` when unknown."""
    if n is None:
        return "?"
    unit = 0
    n = float(n)
    while abs(n) >= 1024 and unit + 1 < len(_UNITS):
        n /= 1024
        unit += 1
    return f"{n:.0f} B" if unit == 0 else f"{n:.1f} {_UNITS[unit]}" if n < 100 else f"{n:.0f} {_UNITS[unit]}"


def count(n: Optional[float], unit: str = "") -> str:
    """``2.5e12`` -> ``"2.50 T"``; ``"?"`` when unknown."""
    if n is None:
        return "?"
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(n) >= scale:
            return f"{n / scale:.2f} {letter}{unit}"
    return f"{n:.0f} {unit}".rstrip()


def seconds(t: Optional[float]) -> str:
    if t is None:
        return "?"
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if t >= scale:
            return f"{t / scale:.2f} {name}"
    return f"{t * 1e9:.0f} ns"


def out_of_memory(words: str):
    """(bytes needed, bytes available) of the compiler's refusal; (None, None) when it is about something else."""
    m = _OOM.search(words) or _OOM_OLD.search(words)
    if not m:
        return None, None
    return float(m.group(1)) * _SCALE[m.group(2)], float(m.group(3)) * _SCALE[m.group(4)]


class Report:
    """``data`` is plain (dicts, lists, numbers, text, None), the same as :meth:`json` writes.

    ``data["program"]`` tells of the program, ``data["targets"]`` of each topology; see docs/explain/ahead-of-time.md.
    """

    def __init__(self, data: dict):
        self.data = data

    @property
    def targets(self) -> list:
        return self.data["targets"]

    @property
    def error(self) -> Optional[str]:
        """Why the program cannot be compiled for any chip; None when it can."""
        return self.data["program"].get("error")

    @property
    def where(self) -> Optional[str]:
        """The user's line that ``error`` is about."""
        return self.data["program"].get("where")

    @property
    def compiles(self) -> bool:
        """Whether it compiles, and so fits, for every topology asked for."""
        return not self.error and all(t["compiles"] for t in self.targets)

    def target(self, topology: str) -> dict:
        return next(t for t in self.targets if t["topology"] == topology)

    def json(self) -> str:
        return json.dumps(self.data, indent=1)

    def html(self) -> str:
        from .html import page

        return page(self.data)

    def __str__(self):
        return self.text()

    # ------------------------------------------------------------ text
    def verdict(self) -> str:
        """One sentence: where it fits."""
        if self.error:
            return "cannot be compiled: " + self.error
        yes = [t["topology"] for t in self.targets if t["compiles"]]
        no = [t["topology"] for t in self.targets if not t["compiles"] and t["hbm"].get("needed")]
        broken = [t["topology"] for t in self.targets if not t["compiles"] and not t["hbm"].get("needed")]
        parts = [f"fits on {', '.join(yes)}"] if yes else []
        parts += [f"does not fit on {', '.join(no)}"] if no else []
        parts += [f"is refused for {', '.join(broken)}"] if broken else []
        return "; ".join(parts)

    def text(self) -> str:
        p = self.data["program"]
        lines = [p["name"] + (": one train step" if p["train"] else ": inference")]
        if p.get("mesh"):
            lines.append("  shared out over " + " x ".join(f"{k}={v}" for k, v in p["mesh"].items()) + "; figures are one device's")
        if p.get("parameters"):
            lines.append(f"  parameters {count(p['parameters'])}, operators {p.get('operators', '?')}")
        if p.get("inputs"):
            lines.append("  inputs     " + ", ".join(f"{k} {size(v)}" for k, v in p["inputs"].items()))
        lines.append("  " + self.verdict())
        if self.where:
            lines.append(f"    at {self.where}")
        for t in self.targets:
            lines += ["", *_target_lines(t, p)]
        if len(self.targets) > 1:
            lines += ["", *_side_by_side(self.targets)]
        if p.get("largest"):
            lines += ["", "largest values as PyTorch makes them (an estimate: the compiler fuses many of them away)"]
            lines += [f"  {size(v['bytes']):>10}  {v['shape']:24} {v['name']}  {v['line'] or ''}" for v in p["largest"][:10]]
        if p.get("flops_by_line"):
            lines += ["", "products and convolutions by line"]
            lines += [f"  {count(v['flops'], 'FLOP'):>12}  {v['line']}" for v in p["flops_by_line"][:10]]
        return "\n".join(lines)


def _products(t, p) -> str:
    n = p.get("product_flops")
    return f", of which {count(n, 'FLOP')} in products and convolutions" if n and t["flops"] else ""


def _target_lines(t: dict, p: dict) -> list:
    h = t["hbm"]
    lines = [f"{t['topology']}  ({t['kind'] or t['chip']}; a program runs on {t.get('used', 1)} of {t['devices']} devices, {size(h['device'])} of HBM each)"]
    if not t["compiles"]:
        if h.get("needed"):
            ways = t.get("ways")
            lines.append(f"  does not fit: needs {size(h['needed'])} of {size(h['available'])}"
                         + (f"; by size alone, {ways} devices would have to share it" if ways else ""))
        else:
            lines.append("  refused: " + t["error"].strip().split("\n")[0])
        if t.get("where"):
            lines.append(f"    at {t['where']}")
        return lines
    used = h["total"]
    lines.append(f"  HBM        {size(used)} of {size(h['device'])} ({100 * used / h['device']:.1f} %): arguments {size(h['arguments'])}, outputs "
                 f"{size(h['outputs'])} (of which {size(h['aliased'])} in the arguments' place), temporaries {size(h['temporaries'])}, code {size(h['code'])}")
    lines.append(f"  work       {count(t['flops'], 'FLOP')}{_products(t, p)}, {size(t['bytes'])} moved, {t['intensity']:.1f} FLOP/byte" if t["intensity"] else "  work       ?")
    r = t["roofline"]
    if r:
        lines.append(f"  time       {seconds(t['seconds'])} by XLA's estimate; the roofline says {seconds(r['seconds'])} ({r['bound']} bound), "
                     f"so {100 * r['share']:.0f} % of it; {100 * r['mfu']:.1f} % of peak bf16 FLOP/s")
    for c in t["collectives"]:
        lines.append(f"  collective {c['count']} x {c['op']} {c['shape']} ({size(c['bytes'])})" + (f"  {c['line']}" if c["line"] else ""))
    for words in t["untrusted"]:
        lines.append(f"  take care  {words}")
    for v in t["peak"][:5]:
        lines.append(f"  at peak    {size(v['bytes']):>10}  {v['shape']} {v['op']}  {v['line'] or ''}")
    return lines


def _side_by_side(targets: list) -> list:
    rows = [("", *[t["topology"] for t in targets]), ("fits", *["yes" if t["compiles"] else "no" for t in targets])]
    cell = {
        "HBM needed": lambda t: size(t["hbm"].get("needed")), "HBM of a device": lambda t: size(t["hbm"]["device"]),
        "XLA's time": lambda t: seconds(t["seconds"]), "roofline": lambda t: seconds(t["roofline"]["seconds"]) if t["roofline"] else "?",
        "of peak FLOP/s": lambda t: f"{100 * t['roofline']['mfu']:.1f} %" if t["roofline"] else "?",
    }
    rows += [(name, *[f(t) for t in targets]) for name, f in cell.items()]
    wide = [max(len(str(r[i])) for r in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(str(c).ljust(w) for c, w in zip(r, wide)).rstrip() for r in rows]
