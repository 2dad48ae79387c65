"""Which program a call with symbolic sizes runs: those of one graph, by the bounds they were made for."""
import logging

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import dynamic_products, dynamic_reduce, dynamic_rules  # noqa: F401 - they register their rules
from .bounds import Bounds, Symbols, code, expression
from .dynamic import BoundedLowering
from .sizes import CannotLower

log = logging.getLogger(__name__)

_stats = {"bounded_programs": 0, "exact_graphs": 0, "bounded_calls": 0, "true_elements": 0, "padded_elements": 0}


def statistics():
    """Counts since the process began: programs for bounded sizes, graphs that had to be compiled for each set of sizes,
    calls of bounded programs, and, over those calls, the elements of all values in the graphs: at their true sizes, and
    with padding (``padding_cost`` is how many times the true ones that is; 1.0 before any call)."""
    true, padded = _stats["true_elements"], _stats["padded_elements"]
    return {**_stats, "padding_cost": padded / true if true else 1.0}


def has_rule(name):
    return dynamic_rules.find(name) is not None


class BoundedPrograms:
    """The bounded programs of one graph. ``find(args)`` gives a callable, or None when the graph cannot have one."""

    def __init__(self, compiler, ladder):
        self.compiler = compiler
        self.ladder = ladder
        self.symbols = Symbols(compiler.placeholders)
        self.programs, self.by_values = {}, {}
        self.failed = None
        output = next(n for n in compiler.gm.graph.nodes if n.op == "output")
        sizes = set()
        for a in output.args[0]:
            v = a.meta.get("val") if isinstance(a, torch.fx.Node) else None
            if isinstance(v, torch.Tensor):
                sizes.update(e for e in map(expression, v.shape) if not isinstance(e, int))
        known = set(self.symbols.order)
        self.result_sizes = sorted((e for e in sizes if not Bounds.is_product(e) and e.free_symbols <= known), key=str)
        self.evaluate = self.symbols.function([code(e) for e in self.result_sizes])

    def find(self, args):
        if self.failed is not None:
            return None
        values = self.symbols.read(args)
        if values not in self.by_values:
            if len(self.by_values) > 4096:
                self.by_values.clear()
            found = self.for_values(values)
            self.by_values[values] = found[0] if found is not None and all(found[1](*values)) else None
        return self.by_values[values]

    def for_values(self, values):
        """(program, what it assumes of the symbols), or None."""
        try:
            results = list(zip(self.result_sizes, self.evaluate(*values)))
            bounds = Bounds(self.symbols, self.ladder, values, results)
            if bounds.key not in self.programs:
                self.programs[bounds.key] = self.build(bounds)
        except Exception as reason:  # noqa: BLE001 - an error of the user's is met again at the exact sizes
            if not isinstance(reason, CannotLower):
                log.info("torch.compile(backend='tpu'): while a program for bounded sizes was made", exc_info=True)
            self.failed = str(reason)
            _stats["exact_graphs"] += 1
            log.warning("torch.compile(backend='tpu'): this graph is compiled for each set of sizes: %s", reason)
            return None
        return self.programs[bounds.key]

    def build(self, bounds):
        c = self.compiler
        with _disable_current_modes():
            lowered = BoundedLowering(c.gm, bounds, self.symbols, c.device, c.options, dynamic_rules).run()
            c.dump_program(lowered, {s: f"le{b}" for s, b in bounds.rungs.items()})
        _stats["bounded_programs"] += 1
        holds = self.symbols.function(sorted(lowered.assumptions))
        return (c.later(lowered) if c.options.async_compile else c.compile(lowered)), holds


def count_call(true, padded):
    _stats["bounded_calls"] += 1
    _stats["true_elements"] += true
    _stats["padded_elements"] += padded
