"""torch.compile(backend="tpu"): each graph that AOTAutograd hands over becomes one StableHLO program.

The graph's ATen calls go through the same op table as eager work (``_C.Graph.call``), so compiled and eager agree
because they are the same lowering. Inputs that the graph mutates are written by the program and donated to it. Sizes
that Dynamo left symbolic are bounded (``dynamic.py``): one executable for each set of bounds, or, where an operation
has no treatment of symbolic sizes, for each set of sizes. ``options.py`` says what ``options=`` accepts.
"""
import itertools
import logging
import os
import threading
import time

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .. import _C
from . import blame, dynamic_programs, fakes, missed  # noqa: F401 - fakes registers
from .dynamic_programs import BoundedPrograms
from .lowering import Lowering, row_name
from .options import Options, parse
from .sizes import CannotLower, DependsOnData, bind
from .split import Chain

log = logging.getLogger(__name__)
_number = itertools.count()  # of dumped graphs


def _decompositions(symbolic):
    """PyTorch's decompositions of everything that has no row of its own, or, in a |symbolic| graph, no treatment of
    symbolic sizes."""
    from torch._decomp import decomposition_table

    table = {}
    for op, rule in decomposition_table.items():
        if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
            continue
        name = row_name(op)
        if not _C.has_row(name) or (symbolic and not dynamic_programs.has_rule(name)):
            table[op] = rule
    return table


def _device_of(gm, values):
    """Number of the tpu device that the graph works on; None when nothing of it is ours."""
    for v in itertools.chain(values, (n.meta.get("val") for n in gm.graph.nodes)):
        if isinstance(v, torch.Tensor) and v.device.type == "tpu":
            return v.device.index or 0
    return None


def _dump(directory, number, suffix, text):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, f"{number:03d}.{suffix}"), "w") as f:
        f.write(text)


class _Compiler:
    """What is made of one AOTAutograd graph: its programs, by the sizes they were made for."""

    def __init__(self, gm, device, options):
        self.gm = gm
        self.device = device
        self.options = options
        self.placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self.number = next(_number) if options.dump else None
        self.part = itertools.count()  # of programs of a divided graph
        if options.dump:
            _dump(options.dump, self.number, "fx.py", gm.print_readable(print_output=False))

    def build(self, args, symbolic):
        """The callable for inputs like |args|: a program, or, where one cannot be had, the graph itself."""
        bindings = {}
        if symbolic:
            for node, actual in zip(self.placeholders, args):
                bind(node.meta.get("val"), actual, bindings)
        try:
            lowered = self.lower(self.gm, bindings)
        except CannotLower as reason:
            if reason.node is None:
                log.warning("torch.compile(backend='tpu'): this graph runs op by op: %s", reason)
                return self.op_by_op
            return Chain(self.gm, self.build_part, self.report)
        if not self.options.async_compile:
            return self.compile(lowered)
        return self.later(lowered)

    def lower(self, gm, bindings, part=""):
        with _disable_current_modes():  # constants must be real
            lowered = Lowering(gm, bindings, self.device, self.options).run()
            self.dump_program(lowered, bindings, part)
        return lowered

    def dump_program(self, lowered, bindings, part=""):
        if self.options.dump:
            sizes = [f"{symbol}={value}" for symbol, value in sorted(bindings.items(), key=str)]
            _dump(self.options.dump, self.number, ".".join([part] * bool(part) + sizes + ["mlir"]), lowered.graph.text())

    def build_part(self, gm, bindings):
        return self.compile(self.lower(gm, bindings, f"part{next(self.part)}"))

    def compile(self, lowered):
        """|lowered|'s callable. Says in the log why it was not in the cache, and in the compiler's error whose line it is."""
        before, start = _C.counters()["compiles"], time.monotonic()
        try:
            program = lowered.compile()
        except RuntimeError as e:
            if blame.REFUSED not in str(e):
                raise

            def lower(prefix):
                with _disable_current_modes():
                    return Lowering(prefix, lowered.bindings, self.device, self.options).run()

            raise blame.located(e, lowered.gm, lower) from None
        if _C.counters()["compiles"] > before:
            missed.compiled(missed.parts(lowered.gm, lowered.bindings, self.options, self.device), time.monotonic() - start)
        return program

    def report(self, node, reason):
        level = logging.INFO if isinstance(reason, DependsOnData) else logging.WARNING
        log.log(level, "torch.compile(backend='tpu'): the graph is divided at %s, which runs by itself: %s",
                node.args[1] if str(node.target) == "with_effects" else node.target, reason)

    def op_by_op(self, args):
        return self.gm(*args)

    def later(self, lowered):
        """Op by op until the program, compiled on a thread of its own, is ready. What the compiler raises is raised at
        the first call after it."""
        state = {}

        def work():
            try:
                state["program"] = self.compile(lowered)
            except BaseException as e:  # noqa: BLE001 - raised where somebody looks
                state["error"] = e

        thread = threading.Thread(target=work, name="tpu-compile")
        thread.start()  # not a daemon: the plugin must not go away under it

        def call(args):
            if "error" in state:
                raise state["error"]
            return state["program"](args) if "program" in state else self.op_by_op(args)

        return call


def _is_symbolic(v):
    return isinstance(v, torch.SymInt) or (isinstance(v, FakeTensor) and v._has_symbolic_sizes_strides)


def compile_fx(gm, example_inputs, options=Options()):
    """One AOTAutograd graph -> a callable taking a list of inputs (boxed) and returning a list of outputs."""
    device = _device_of(gm, example_inputs)
    if device is None:  # nothing of ours in it
        return _boxed(lambda args: gm(*args))
    symbolic = any(_is_symbolic(v) for v in example_inputs)
    compiler = _Compiler(gm, device, options)
    if not symbolic:
        return _boxed(compiler.build(example_inputs, False))
    programs = {}
    bounded = BoundedPrograms(compiler, options.dynamic) if options.dynamic is not None else None

    def dynamic(args):
        program = bounded.find(args) if bounded is not None else None
        if program is not None:
            return program(args)
        key = tuple(a if isinstance(a, int) else tuple(a.shape) if isinstance(a, torch.Tensor) else None for a in args)
        program = programs.get(key)
        if program is None:
            program = programs[key] = compiler.build(args, True)
        return program(args)

    return _boxed(dynamic)


def _boxed(fn):
    def run(args):
        out = fn(args)
        if isinstance(args, list):
            args.clear()
        return out

    run._boxed_call = True
    return run


_backends = {}  # (Options, whether sizes are symbolic) -> AOTAutograd around compile_fx


def backend(gm, example_inputs, mode=None, options=None):
    """The Dynamo backend. Raises ValueError or TypeError for an option or a mode that is not in ``options.py``."""
    options = parse(options, mode)
    symbolic = any(_is_symbolic(v) for v in example_inputs)
    if (options, symbolic) not in _backends:
        from .. import tpu

        tpu._lazy_init()
        table = _decompositions(symbolic and options.dynamic is not None)

        def compiler(graph, inputs):
            return compile_fx(graph, inputs, options)

        _backends[options, symbolic] = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler,
                                          decompositions=table, keep_inference_input_mutations=True)
    return _backends[options, symbolic](gm, example_inputs)
