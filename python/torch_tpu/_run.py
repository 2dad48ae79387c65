"""Calling a compiled program with a flat list of inputs; shared by torch.compile and bundles."""
import torch


def caller(program, device, inputs, results, writes, run=None, ours=None):
    """The callable: list of inputs -> list of outputs.

    inputs: for each parameter (number of the input, or a tensor, or a list of the numbers of host tensors that travel
    together, stacked; and the order of its dims in memory, or None).
    results: ("value", number of the program's result) | ("down", likewise, but on the host) | ("input", number) |
    ("constant", object).
    writes: (number of the program's result, number of the input that takes it).
    run: instead of the program's own: (inputs, parameters, (result, tensor that takes it)...) -> results.
    ours: the number of inputs, where every parameter is known to come as a tpu tensor, which then is not asked each time.
    """
    plain = (all(isinstance(i, int) and i == k and order is None for k, (i, order) in enumerate(inputs))
             and all(kind == "value" and r == k for k, (kind, r) in enumerate(results)))
    if ours == len(inputs) and plain and not writes and run is None:
        return program.run
    reordered = [(k, order) for k, (_, order) in enumerate(inputs) if order is not None]

    stacks = any(isinstance(i, list) for i, _ in inputs)
    down = [k for k, (kind, _) in enumerate(results) if kind == "down"]
    results = [("value", r) if kind == "down" else (kind, r) for kind, r in results]

    def gathered(i, args):
        return torch.stack([args[k] for k in i]) if isinstance(i, list) else args[i] if isinstance(i, int) else i

    def call(args):
        if stacks:
            tensors = [gathered(i, args) for i, _ in inputs]
        else:
            tensors = [args[i] if isinstance(i, int) else i for i, _ in inputs]
        if ours is None and any(t.device.type != "tpu" for t in tensors):
            tensors = [t if t.device.type == "tpu" else t.to(device) for t in tensors]
        for k, order in reordered:
            tensors[k] = tensors[k].permute(order)
        if run is not None:
            out = run(args, tensors, [(n, args[i]) for n, i in writes])
        else:
            out = program.run_in_place(tensors, [(n, args[i]) for n, i in writes]) if writes else program.run(tensors)
        for k in down:
            out[results[k][1]] = out[results[k][1]].cpu()
        return [out[r] if kind == "value" else args[r] if kind == "input" else r for kind, r in results]

    return call
