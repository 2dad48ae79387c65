"""Calling a compiled program with a flat list of inputs; shared by torch.compile and bundles."""
import torch


def caller(program, device, inputs, results, writes):
    """The callable: list of inputs -> list of outputs.

    inputs: for each parameter (number of the input, or a tensor, and the order of its dims in memory, or None).
    results: ("value", number of the program's result) | ("input", number) | ("constant", object).
    writes: (number of the program's result, number of the input that takes it).
    """
    reordered = [(k, order) for k, (_, order) in enumerate(inputs) if order is not None]

    def call(args):
        tensors = [args[i] if isinstance(i, int) else i for i, _ in inputs]
        if any(t.device.type != "tpu" for t in tensors):
            tensors = [t if t.device.type == "tpu" else t.to(device) for t in tensors]
        for k, order in reordered:
            tensors[k] = tensors[k].permute(order)
        out = program.run_in_place(tensors, [(n, args[i]) for n, i in writes]) if writes else program.run(tensors)
        return [out[r] if kind == "value" else args[r] if kind == "input" else r for kind, r in results]

    return call
