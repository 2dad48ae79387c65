"""``torch.tpu.aot``: what a real TPU would do with a program, found out without one.

    import torch
    with torch.device("meta"):
        model = Llama(config)                       # no memory for the weights
    report = torch.tpu.aot.compile(model, (tokens,), topology=["v5e", "v5p", "tpu7x:2x2x1"], train=True, loss=loss)
    print(report)                                   # fits on ...; HBM by kind; FLOPs; time; the lines behind them
    open("report.html", "w").write(report.html())

libtpu, the compiler, needs no TPU (``pip install libtpu``); it runs in a process of its own.
"""
import torch

from .chips import CHIPS, Chip, device_of, full_name
from .compiler import CompileRefused, Compiler, CompilerDied, CompilerMissing, available
from .report import Report, out_of_memory
from .trace import TraceError

__all__ = ["CHIPS", "Chip", "CompileRefused", "Compiler", "CompilerDied", "CompilerMissing", "Report", "TraceError", "available",
           "compile"]
POINTS = 400  # of the picture of memory over program order


def compile(model_or_fn, args=(), kwargs=None, *, topology="v5e:2x2", mesh=None, train=False, loss=None, optimizer="adamw", flags="",
            timeout=1800.0, name=None) -> Report:
    """Compiles a module or function for TPUs that need not be there, and reports on it.

    model_or_fn  an unmodified ``nn.Module`` or a function of tensors; weights may be real, on ``meta``, or fake
    args, kwargs what it is called with; only shapes and dtypes of tensors are used
    topology     ``"v5e:2x2"``, a chip's name, which means one host of it, or a list of them, reported side by side
    mesh         names and sizes of a mesh's dims, ``{"dp": 64, "tp": 8}``: the program is shared out over so many devices.
                 |model_or_fn| is then called with a ``DeviceMesh`` of those, on the ``meta`` device, makes the model, shares
                 it out (``parallelize_module``, ``fully_shard``, DTensor) and gives ``(model, args)``, ``(model, args,
                 kwargs)`` or a dict of them and ``loss``; ``args`` are one rank's. What is reported is one device's part.
    train        one whole train step (forward, backward, update) instead of inference
    loss         ``loss(output, *args)`` -> one number; not needed where the output is one, or has ``.loss``
    optimizer    of the step: "adamw", "sgd" or None (gradients are the results)
    flags        compiler flags, ``"xla_flag=value;..."``
    timeout      seconds for the compiler, for each topology

    A program that cannot be compiled gives a report that says so, with the user's line. Raises CompilerMissing without
    libtpu, CompilerDied when the compiler's process ended or took too long, ValueError for a topology it does not know.
    """
    from . import lower
    from .trace import trace

    names = [full_name(t) for t in ([topology] if isinstance(topology, str) else topology)]
    if mesh is not None:
        from .sharded import Mesh

        mesh = Mesh(mesh)
    title = name or getattr(model_or_fn, "__name__", type(model_or_fn).__name__)
    program = {"name": title, "train": bool(train), "optimizer": optimizer if train else None, "torch": torch.__version__,
               "mesh": dict(zip(mesh.names, mesh.sizes)) if mesh else None}
    with Compiler(timeout) as compiler:
        try:
            if mesh:
                from .sharded import trace_sharded

                traced, groups, _ = trace_sharded(model_or_fn, mesh, train=train, loss=loss, optimizer=optimizer)
                text = lower.stablehlo(traced, groups)
            else:
                traced = trace(model_or_fn, args, kwargs, train=train, loss=loss, optimizer=optimizer)
                text = lower.stablehlo(traced)
        except TraceError as e:
            program.update(error=str(e).split("\n  at ")[0], where=e.where or None)
            return Report({"program": program, "targets": []})
        program.update(_facts(traced, text))
        targets = [_target(compiler, t, text, flags, program, mesh.world if mesh else 1) for t in names]
    return Report({"program": program, "targets": targets})


def _facts(traced, text) -> dict:
    from . import flops, lower

    values = lower.values(traced)
    by_line = flops.by_line(traced, text)
    largest = sorted(values, key=lambda v: -v.bytes)[:20]
    return {
        "parameters": traced.parameters,
        "operators": sum(n.op == "call_function" for n in traced.graph.graph.nodes),
        "inputs": lower.input_bytes(traced),
        "largest": [{"name": v.name, "shape": v.shape, "bytes": v.bytes, "line": str(v.line) if v.line else None} for v in largest],
        "flops_by_line": by_line,
        "product_flops": sum(v["flops"] for v in by_line),
        "f32_products": f32_products(text),
    }


def f32_products(text: str) -> bool:
    """Whether a product or convolution of the program takes f32 operands; what it sums in does not matter."""
    signatures = (line.partition(" : (")[2] for line in text.split("\n") if '"stablehlo.dot_general"' in line or '"stablehlo.convolution"' in line)
    return any("f32>" in signature.partition(") -> ")[0] for signature in signatures)


def _target(compiler, topology, text, flags, program, replicas=1) -> dict:
    try:
        about = compiler.topology(topology)
    except CompileRefused as e:
        raise ValueError(f"topology {topology!r}: {e}") from None
    device = device_of(topology, about["devices"])
    out = {
        "topology": topology, "chip": device.chip.name, "kind": about["kind"], "devices": about["devices"],
        "devices_per_chip": device.per_chip, "used": replicas, "compiler": about["version"].split("\n")[0], "compiles": False, "error": None, "where": None,
        "hbm": {"device": device.hbm_bytes}, "flops": None, "bytes": None, "intensity": None, "seconds": None, "roofline": None,
        "collectives": [], "untrusted": [], "peak": [], "memory_line": [], "top": [], "source": device.chip.source,
    }
    try:
        if replicas > about["devices"]:
            raise CompileRefused(f"the mesh has {replicas} ranks, {topology} has {about['devices']} devices", "INVALID_ARGUMENT")
        answer = compiler.compile(text, topology, flags=flags, replicas=replicas)
    except CompileRefused as e:
        from .hlo import find_line

        needed, room = out_of_memory(str(e))
        out.update(error=str(e), where=find_line(str(e)))
        if needed:
            out["hbm"].update(needed=needed, available=room)
            out["ways"] = _ways(needed, room)
        return out
    _fill(out, answer, device, program)
    return out


def _ways(needed, room) -> int:
    ways = 1
    while ways * room < needed:
        ways *= 2
    return ways


def _fill(out, answer, device, program):
    from .hlo import Module

    m, costs = answer["memory"], answer["costs"]
    hbm = {k: m.get(k, 0) for k in ("arguments", "outputs", "aliased", "temporaries", "code")}
    total = hbm["arguments"] + hbm["outputs"] - hbm["aliased"] + hbm["temporaries"] + hbm["code"]
    out["hbm"].update(hbm, peak=m.get("peak"), total=total, needed=total, available=device.hbm_bytes)
    module = Module(answer["hlo"], answer["format"] == "hlo_with_config")
    flops, moved, time = costs.get("flops"), costs.get("bytes accessed"), costs.get("optimal_seconds")
    if time is not None:
        time += module.unestimated()
        time = time if time > 0 else None
    out.update(compiles=True, compile_seconds=answer["seconds"], flops=flops, bytes=moved, seconds=time,
               transcendentals=costs.get("transcendentals"), intensity=flops / moved if flops and moved else None)
    if flops and moved and time:
        compute, memory = flops / device.bf16_flops, moved / device.hbm_bytes_per_s
        best = max(compute, memory)
        out["roofline"] = {"seconds": best, "compute_seconds": compute, "memory_seconds": memory, "share": best / time,
                           "bound": "compute" if compute > memory else "memory", "mfu": compute / time}
    out["untrusted"] = module.untrusted()
    if program["f32_products"]:
        out["untrusted"].append("f32 products take several bf16 passes: the peak and the roofline here are those of bf16")
    for x, moved in module.moved()[:20]:
        maker = module.maker(x)
        what = maker.op or maker.name
        out["top"].append({"name": what if maker is x else f"copy of {what}", "bytes": moved, "line": _place(maker)})
    if module.collectives():
        out["untrusted"].append("how long collectives take depends on the network between chips: XLA's seconds are of a device's own work")
    groups = {}
    for c in module.collectives():
        shape = module.payload(c)
        key = (c.opcode.removesuffix("-start"), shape.text, _place(c))
        groups[key] = groups.get(key, (0, 0))[0] + 1, shape.size
    out["collectives"] = [{"op": op, "shape": shape, "line": line, "count": n, "bytes": b} for (op, shape, line), (n, b) in groups.items()]
    line, held = module.memory_line()
    step = max(1, -(-len(line) // POINTS))
    out["memory_line"] = [max(line[i : i + step]) for i in range(0, len(line), step)]
    for v in held[:20]:
        x, maker = v.instruction, module.maker(v.instruction)
        shape = x.shape.parts[0].text if x.opcode == "copy-start" and x.shape.parts else x.shape.text
        what = maker.op or (f"copy of {maker.name}" if maker is not x else x.opcode)
        out["peak"].append({"bytes": v.bytes, "shape": shape, "op": what, "line": _place(maker)})


def _place(instruction):
    return f"{instruction.file}:{instruction.line}" if instruction.file.strip("-") and instruction.line else None
