"""What of a graph lives on the host: the step counters of an optimizer that is not capturable, for one.

New values of host tensors that come from host tensors alone are computed on the CPU, so that the call does not wait for
the device; what the device needs of single numbers travels in one transfer for all of them.
"""
import torch


def _tensors(value):
    return [v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, torch.Tensor)]


def is_host(value):
    """Whether a node's value, one tensor or several, is all on the CPU."""
    found = _tensors(value)
    return bool(found) and all(t.device.type == "cpu" for t in found)


class Host:
    """|gm|'s nodes that the CPU can run by itself; ``numbers``: dtype -> placeholders (their numbers) of one element."""

    def __init__(self, gm, placeholders):
        self.placeholders = placeholders
        self.nodes = {n for n in placeholders if is_host(n.meta.get("val"))}
        self.order = []  # of the nodes to run
        self.numbers = {}
        if not self.nodes:
            return
        for index, n in enumerate(placeholders):
            if n in self.nodes and n.meta["val"].dim() == 0:
                self.numbers.setdefault(n.meta["val"].dtype, []).append(index)
        self.numbers = {dtype: found for dtype, found in self.numbers.items() if len(found) > 1}
        for n in gm.graph.nodes:
            if n.op == "call_function" and self.allowed(n):
                self.nodes.add(n)
                self.order.append(n)

    def allowed(self, n):
        schema = getattr(n.target, "_schema", None)
        if schema is not None and (schema.is_mutable or torch.Tag.nondeterministic_seeded in n.target.tags):
            return False
        if not n.all_input_nodes or any(i not in self.nodes for i in n.all_input_nodes):
            return False
        return is_host(n.meta.get("val"))

    def needed(self, wanted):
        """Those of the nodes that |wanted| follow from, in order."""
        seen, todo = set(), list(wanted)
        while todo:
            n = todo.pop()
            if n not in seen:
                seen.add(n)
                todo += n.all_input_nodes
        return [n for n in self.order if n in seen]

    def program(self, wanted):
        """A function: list of inputs -> the values of the nodes |wanted|."""
        steps = self.needed(wanted)
        number = {n: i for i, n in enumerate(self.placeholders)}

        def run(args):
            values = {n: args[i] for n, i in number.items() if n in self.nodes}
            with torch.no_grad():
                for n in steps:
                    a, k = torch.fx.node.map_arg((n.args, n.kwargs), values.__getitem__)
                    values[n] = n.target(*a, **k)
            return [values[n] for n in wanted]

        return run
