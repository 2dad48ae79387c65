"""Writing bundles: an exported program as one executable in a file. ``torch_tpu/_bundle.py`` reads them and says what is in one."""
import io
import json
import zipfile

import torch
from torch.utils import _pytree as pytree

from .. import _C
from .._bundle import FORMAT, VERSION
from . import _decompositions
from .lowering import Lowering, row_name
from .options import Options
from .sizes import CannotLower

aten = torch.ops.aten


def _packed(value):
    """An argument of a graph's call as JSON."""
    if isinstance(value, _C.Node):
        return {"node": value.id}
    if isinstance(value, (list, tuple)):
        return [_packed(v) for v in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, float):
        return {"float": value.hex()}  # inf and nan too
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, (torch.layout, torch.memory_format, torch.device)) or value is None:
        return None  # what is where, and in which order, is the graph's own business
    if isinstance(value, (bool, int, str)):
        return value
    raise ValueError(f"save_bundle: {value!r} cannot be written down")


class _Recorder:
    """A graph that notes what is done with it."""

    def __init__(self, device):
        self.graph = _C.Graph(device)
        self.steps = []
        self.constants = []

    def constant(self, tensor):
        self.steps.append(["constant", len(self.constants)])
        self.constants.append(tensor.detach().cpu().contiguous())
        return self.graph.constant(tensor)

    def call(self, name, *args, _outs=None, **kwargs):
        args = [self.constant(a) if isinstance(a, torch.Tensor) else a for a in args]
        outs = None if _outs is None else [[_packed(dtype), list(sizes)] for dtype, sizes in _outs]
        self.steps.append(["call", name, _packed(args), {k: _packed(v) for k, v in kwargs.items()}, outs])
        return self.graph.call(name, *args, _outs=_outs, **kwargs)

    def outputs(self, nodes, donate=None, strides=None):
        self.steps.append(["outputs", _packed(nodes), donate, strides])
        return self.graph.outputs(nodes, donate, strides)

    def __getattr__(self, name):
        method = getattr(self.graph, name)
        if name in ("type", "text", "compile"):
            return method

        def noted(*args):
            self.steps.append([name, *(_packed(a) for a in args)])
            return method(*args)

        return noted


def _state(program, spec):
    """The value of a placeholder that is not an argument of the call."""
    kind = spec.kind.name
    if kind in ("PARAMETER", "BUFFER"):
        return program.state_dict[spec.target] if spec.target in program.state_dict else program.constants[spec.target]
    if kind == "CONSTANT_TENSOR":
        return program.constants[spec.target]
    raise ValueError(f"save_bundle: the program has an input of kind {kind}, which a file cannot hold")


def _written(program):
    """The program's graph with the new values of buffers and inputs copied into them, as AOTAutograd writes it."""
    gm, signature = program.graph_module, program.graph_signature
    places = {n.name: n for n in gm.graph.nodes if n.op == "placeholder"}
    output = next(n for n in gm.graph.nodes if n.op == "output")
    of_target = {s.target: s.arg.name for s in signature.input_specs if s.target is not None}
    kept = []
    for spec, value in zip(signature.output_specs, output.args[0]):
        kind = spec.kind.name
        if kind == "USER_OUTPUT":
            kept.append(value)
        elif kind in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION"):
            place = places[spec.target if kind == "USER_INPUT_MUTATION" else of_target[spec.target]]
            with gm.graph.inserting_before(output):
                copy = gm.graph.call_function(aten.copy_.default, (place, value))
                copy.meta = dict(place.meta)
        else:
            raise ValueError(f"save_bundle: the program has a result of kind {kind}")
    output.args = (tuple(kept),)
    return gm


def _table():
    """What torch.export decomposes, without what has a row, and with what else PyTorch has a rule for."""
    table = torch.export.default_decompositions()
    for op in list(table.keys()):
        if op.namespace == "aten" and _C.has_row(row_name(op)):
            table.pop(op)
    table.update(_decompositions(False))
    return table


def save(path, program):
    if not isinstance(program, torch.export.ExportedProgram):
        raise TypeError(f"save_bundle takes a torch.export.ExportedProgram, not {type(program).__name__}")
    if program.range_constraints:
        raise ValueError("save_bundle: the program has dynamic sizes; export it with static ones, a bundle for each")
    program = program.run_decompositions(_table())
    gm = _written(program)
    recorder = _Recorder(0)
    try:
        lowered = Lowering(gm, {}, 0, Options(), graph=recorder).run()
    except CannotLower as reason:
        raise ValueError(f"save_bundle: {reason.node.target if reason.node else 'the program'} has no place in an executable: {reason}") from reason
    text = recorder.graph.text()
    recorder.graph.compile("")
    executable = _C.executable_export(0, text, "")
    specs = program.graph_signature.input_specs
    sources, state, names = [], [], []
    argument = 0
    for spec in specs:  # by placeholder: where its value comes from
        if spec.kind.name == "USER_INPUT":
            sources.append(["argument", argument])
            argument += 1
        else:
            sources.append(["state", len(state)])
            state.append(_state(program, spec).detach().cpu())
            names.append(spec.target)
    inputs = []
    for index, order in lowered.inputs:
        if not isinstance(index, int):
            names.append(None)
            sources.append(["state", len(state)])
            state.append(index.detach().cpu())
            index = len(sources) - 1
        inputs.append([index, order])
    bundle = {
        "format": FORMAT, "version": VERSION, "environment": _C.runtime_info("environment"),
        "steps": recorder.steps, "sources": sources, "names": names, "inputs": inputs,
        "results": [[kind, _packed(r)] for kind, r in lowered.results], "writes": lowered.write_results,
        "in_spec": pytree.treespec_dumps(program.call_spec.in_spec), "out_spec": pytree.treespec_dumps(program.call_spec.out_spec),
    }
    tensors = io.BytesIO()
    torch.save({"state": state, "constants": recorder.constants}, tensors)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("bundle.json", json.dumps(bundle))
        z.writestr("tensors.pt", tensors.getvalue())
        z.writestr("program.mlir", text, zipfile.ZIP_DEFLATED)
        if executable is not None:
            z.writestr("executable", executable)
