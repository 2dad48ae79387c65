"""Reading bundles: a program made by torch.export, its executable and its state in one file.

A zip of four files: ``bundle.json`` (what builds the program's graph through the op table, where each parameter of the
program comes from, what each result is), ``tensors.pt`` (state and constants), ``program.mlir`` (the StableHLO, to be read by
people), ``executable`` (the plugin's serialized executable, taken only where the library, the plugin and the platform are those
that made it; elsewhere the graph is built and compiled again). Needs neither Dynamo nor FX.
"""
import io
import json
import zipfile

import torch
from torch.utils import _pytree as pytree

from . import _C
from ._run import caller

FORMAT, VERSION = "torch_tpu bundle", 1


def _rebuilt(steps, constants, device):
    """The graph that |steps| describe."""
    graph, nodes = _C.Graph(device), {}

    def unpacked(v):
        if isinstance(v, list):
            return [unpacked(x) for x in v]
        if isinstance(v, dict):
            (kind, x), = v.items()
            if kind == "node":
                return nodes[x]
            if kind == "dtype":
                return getattr(torch, x)
            if kind == "float":
                return float.fromhex(x)
            return complex(*(float.fromhex(y) for y in x))
        return v

    def keep(result):
        for node in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(node, _C.Node):
                nodes[node.id] = node

    for name, *rest in steps:
        if name == "constant":
            keep(graph.constant(constants[rest[0]]))
        elif name == "call":
            op, args, kwargs, outs = rest
            outs = None if outs is None else [(unpacked(dtype), sizes) for dtype, sizes in outs]
            keep(graph.call(op, *unpacked(args), _outs=outs, **{k: unpacked(v) for k, v in kwargs.items()}))
        else:
            keep(getattr(graph, name)(*(unpacked(v) for v in rest)))
    return graph


class Bundle:
    """What ``torch.tpu.load_bundle`` gives: call it as the exported module was called.

    ``state``: parameters and buffers by name, on the device; writing into them changes what the program sees.
    Raises TypeError for arguments of another structure than the exported ones, and what the program raises.
    """

    def __init__(self, call, sources, state, names, in_spec, out_spec):
        self._call, self._sources, self._state, self._in, self._out = call, sources, state, in_spec, out_spec
        self._arguments = sum(kind == "argument" for kind, _ in sources)
        self.state = {n: t for n, t in zip(names, state) if n is not None}

    def __call__(self, *args, **kwargs):
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in:
            raise TypeError(f"this bundle takes arguments of the structure {self._in}, not {spec}")
        values = [flat[i] if kind == "argument" else self._state[i] for kind, i in self._sources]
        with torch.no_grad():
            return pytree.tree_unflatten(self._call(values), self._out)


def load(path, device=None):
    device = torch.device("tpu" if device is None else device)
    index = device.index if device.index is not None else torch.tpu.current_device()
    with zipfile.ZipFile(path) as z:
        bundle = json.loads(z.read("bundle.json"))
        if bundle.get("format") != FORMAT or bundle.get("version") != VERSION:
            raise ValueError(f"{path}: not a bundle, or one of version {bundle.get('version')}; this library reads version {VERSION}")
        tensors = torch.load(io.BytesIO(z.read("tensors.pt")), weights_only=True)
        executable = z.read("executable") if "executable" in z.namelist() else None
    torch.tpu.init()
    graph = _rebuilt(bundle["steps"], tensors["constants"], index)
    if executable is not None and bundle["environment"] == _C.runtime_info("environment"):
        _C.executable_import(index, graph.text(), "", executable)
    where = torch.device("tpu", index)
    call = caller(graph.compile(""), where, [(i, order) for i, order in bundle["inputs"]],
                  [(kind, r) for kind, r in bundle["results"]], [tuple(w) for w in bundle["writes"]])
    return Bundle(call, bundle["sources"], [t.to(where) for t in tensors["state"]], bundle["names"],
                  pytree.treespec_loads(bundle["in_spec"]), pytree.treespec_loads(bundle["out_spec"]))
