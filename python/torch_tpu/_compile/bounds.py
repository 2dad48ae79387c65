"""Bounds of symbolic sizes, and what the host computes from the true ones at each call.

A symbol's bound is the next rung of a ladder, no more than the upper end of its range (``mark_dynamic(max=)``). Sizes
computed from symbols are bounded by interval arithmetic, products of sizes by products of bounds, so that a view that
merges or splits dims finds room that fits.
"""
import dataclasses
import functools
import math

import sympy
import torch
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from .sizes import CannotLower


@dataclasses.dataclass(frozen=True)
class Ladder:
    """Bounds that sizes are rounded up to: ``rungs``, ascending, then multiples of the last; or, without rungs,
    ``minimum`` times powers of ``factor``."""

    minimum: int = 4
    factor: float = 2.0
    rungs: tuple = ()

    def bound(self, n):
        """(the rung that n is rounded up to, the rung below it)"""
        if self.rungs:
            below = 0
            for rung in self.rungs:
                if n <= rung:
                    return rung, below
                below = rung
            top = self.rungs[-1]
            times = -(-n // top)
            return times * top, (times - 1) * top
        below, rung = 0, self.minimum
        while rung < n:
            below, rung = rung, max(rung + 1, math.ceil(rung * self.factor))
        return rung, below


def parse_ladder(given):
    """The option "dynamic": True, False, a list of rungs, or {"min": int, "factor": float}. None for False.

    Raises TypeError or ValueError.
    """
    where = "torch.compile(backend='tpu'): option 'dynamic'"
    if isinstance(given, bool):
        return Ladder() if given else None
    if isinstance(given, dict):
        extra = set(given) - {"min", "factor"}
        if extra:
            raise ValueError(f"{where} has no entry {sorted(extra)[0]!r}; it takes 'min' and 'factor'")
        minimum, factor = given.get("min", Ladder.minimum), given.get("factor", Ladder.factor)
        if not isinstance(minimum, int) or minimum < 1 or not isinstance(factor, (int, float)) or not 1 < factor <= 1024:
            raise ValueError(f"{where}: 'min' is an int from 1 on and 'factor' a number above 1, not {given!r}")
        return Ladder(minimum, float(factor))
    if isinstance(given, (list, tuple)):
        rungs = tuple(given)
        if not rungs or not all(isinstance(r, int) and r > 0 for r in rungs) or list(rungs) != sorted(set(rungs)):
            raise ValueError(f"{where}: rungs are ascending ints above 0, not {given!r}")
        return Ladder(rungs=rungs)
    raise TypeError(f"{where} must be True, False, a list of bounds or a dict, not {given!r}")


def _quotient(base, divisor):
    """base // divisor, where that is plainly a product or a sum of products."""
    q = sympy.cancel(base / divisor)
    return q if sympy.denom(q) == 1 and q.is_polynomial(*q.free_symbols) and q.is_integer else FloorDiv(base, divisor)


@functools.lru_cache(maxsize=4096)
def simplified(e):
    """|e| without divisions that come out even: (s0*s1) // s1 is what PyTorch makes of view(-1, s1)."""
    return e.replace(FloorDiv, _quotient) if e.has(FloorDiv) else e


def expression(size):
    """An int, or the sympy expression of a SymInt that is not a number."""
    if isinstance(size, torch.SymInt):
        e = simplified(size.node.expr)
        return int(e) if e.is_number else e
    return int(size)


_printer = PythonPrinter()


def code(e):
    """Python text of a size, over the symbols' names."""
    return str(e) if isinstance(e, int) else _printer.doprint(e)


def window_start(start, size):
    """Where a slice begins, as PyTorch clamps it."""
    return max(0, min(size, start + size if start < 0 else start))


_NAMES = {"math": math, "torch": torch, "window_start": window_start}


class Symbols:
    """Where the symbols of a graph's inputs are found at a call.

    Raises CannotLower when a size of the graph has a symbol that no input shows.
    """

    def __init__(self, placeholders):
        self.sources = {}  # symbol -> text over "args"
        self.env = None
        for i, node in enumerate(placeholders):
            v = node.meta.get("val")
            if isinstance(v, torch.SymInt):
                self.learn(v, f"args[{i}]")
        for i, node in enumerate(placeholders):
            v = node.meta.get("val")
            if isinstance(v, torch.Tensor):
                for d, s in enumerate(v.shape):
                    self.learn(s, f"args[{i}].shape[{d}]")
                for d, s in enumerate(v.stride()):
                    self.learn(s, f"args[{i}].stride({d})")
        self.order = sorted(self.sources, key=str)
        self.read = eval(f"lambda args: ({''.join(self.sources[s] + ',' for s in self.order)})", {})  # noqa: S307 - our text

    def learn(self, size, source):
        if isinstance(size, torch.SymInt):
            self.env = size.node.shape_env
            if size.node.expr.is_Symbol:
                self.sources.setdefault(size.node.expr, source)

    def function(self, texts):
        """A function of the symbols' values, in order, that computes |texts|: a tuple."""
        names = ", ".join(map(str, self.order))
        return eval(f"lambda {names}: ({''.join(t + ',' for t in texts)})", dict(_NAMES))  # noqa: S307

    def range(self, symbol):
        found = self.env.var_to_range.get(symbol)
        return found if found is not None else ValueRanges(0, sympy.oo)


def _finite(x):
    return isinstance(x, (int, sympy.Integer))  # not torch's own infinite integer


class Bounds:
    """The bounds of one program: rungs of the symbols, and of results' sizes that are no products of symbols."""

    def __init__(self, symbols, ladder, values, result_sizes):
        """|values|: of the symbols, in order. |result_sizes|: (expression, its value) of the graph's results."""
        self.ranges = {}
        self.rungs = {}
        for symbol, value in zip(symbols.order, values):
            known = symbols.range(symbol)
            top, below = ladder.bound(value)
            if _finite(known.upper):
                top = max(value, min(top, int(known.upper)))
            self.rungs[symbol] = top
            self.ranges[symbol] = ValueRanges(below + 1 if below else 0, top)
        self.results = {e: ladder.bound(v)[0] for e, v in result_sizes if not self.is_product(e)}
        self.memo = {}

    @property
    def key(self):
        return tuple(self.rungs.values()) + tuple(self.results.values())

    @staticmethod
    def is_product(e):
        return isinstance(e, int) or e.is_Symbol or (
            e.is_Mul and all((f.is_Integer and f > 0) or f.is_Symbol or (f.is_Pow and f.base.is_Symbol and f.exp.is_Integer and f.exp > 0)
                             for f in e.args)) or (e.is_Pow and e.base.is_Symbol and e.exp.is_Integer and e.exp > 0)

    def of(self, e):
        """The bound of a size. Raises CannotLower where there is none."""
        if isinstance(e, int):
            return e
        found = self.memo.get(e)
        if found is None:
            found = self.memo[e] = self.compute(e)
        return found

    def compute(self, e):
        missing = [s for s in e.free_symbols if s not in self.rungs]
        if missing:
            raise CannotLower(f"the size {e} depends on data")
        if e.is_Symbol:
            return self.rungs[e]
        if e.is_Mul and all(f.is_Integer and f > 0 or self.whole(f) for f in e.args):
            return math.prod(self.of(f) if not f.is_Integer else int(f) for f in e.args)
        upper = bound_sympy(e, self.ranges).upper
        if not _finite(upper):
            raise CannotLower(f"the size {e} has no bound")
        return max(int(upper), 1)

    def whole(self, f):
        """|f| is an integer that is never negative, by its own bounds."""
        r = bound_sympy(f, self.ranges)
        return bool(f.is_integer) and _finite(r.upper) and bool(r.lower >= 0)

    def of_result(self, e):
        return self.results.get(e) or self.of(e)
