"""A graph that cannot be one program, as a chain: programs, and between them the single operators that have none.

A chain begins as one part, the whole graph. When lowering a part stops at a node, the part falls into what comes before
the node, the node, and what comes after; the node runs as eager work does, with eager work's own warning when the CPU has
to help. Parts keep the graph's order, so that mutation of inputs and the stream of random numbers stay what they were.
What follows a node whose result has a size that depends on values is lowered when that size is known, for each size once.
"""
import operator

import torch

from .sizes import CannotLower, bind, concrete, mapped


class _Operator:
    """One node, run as it stands."""

    def __init__(self, gm, node):
        self.gm = gm
        self.node = node

    def run(self, values, bindings):
        def real(a):
            return _real(self.gm, a, values, bindings)

        node = self.node
        args, kwargs = mapped((node.args, node.kwargs), real)
        values[node] = result = node.target(*args, **kwargs)
        learn(node.meta.get("val"), result, bindings)


def _real(gm, a, values, bindings):
    """What the argument |a| of a node stands for."""
    if not isinstance(a, torch.fx.Node):
        return concrete(a, bindings)
    if a.op != "get_attr":
        return values[a]
    value = gm
    for name in a.target.split("."):
        value = getattr(value, name)
    return value


def learn(example, actual, bindings):
    """Symbols of |example| (a fake result, or a tree of them) that its real value gives away."""
    if isinstance(example, (list, tuple)):
        for e, a in zip(example, actual):
            learn(e, a, bindings)
    else:
        bind(example, actual, bindings)


def _symbols(value):
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.expr.free_symbols
    if isinstance(value, torch.Tensor):
        return set().union(*(_symbols(s) for s in (*value.shape, *value.stride())))
    if isinstance(value, (list, tuple)):
        return set().union(*(_symbols(v) for v in value))
    return set()


def _copied(gm, nodes, inputs, outputs):
    """A graph module of |nodes| alone, and for each of them and of |inputs| its copy there."""
    graph, copies = torch.fx.Graph(), {}
    for n in inputs:
        copies[n] = graph.placeholder(n.name)
        copies[n].meta = n.meta
    for n in nodes:
        for i in n.all_input_nodes:
            if i.op == "get_attr" and i not in copies:
                copies[i] = graph.node_copy(i)
        copies[n] = graph.node_copy(n, copies.__getitem__)
    graph.output([copies[n] for n in outputs])
    return torch.fx.GraphModule(gm, graph), copies


def part_of(gm, nodes, needed):
    """A graph module of the first |nodes| of |gm|, with all its placeholders, that gives the values of |needed|."""
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
    return _copied(gm, nodes, inputs, [n for n in nodes if n in needed])[0]


class _Part:
    """Consecutive nodes that are to be one program. |needed|: the nodes whose values others want, in order."""

    def __init__(self, gm, nodes, needed):
        self.nodes = nodes
        mine = set(nodes)
        self.inputs = list(dict.fromkeys(i for n in nodes for i in n.all_input_nodes if i not in mine and i.op != "get_attr"))
        self.outputs = [n for n in nodes if n in needed]
        self.symbols = sorted(set().union(*(_symbols(n.meta.get("val")) for n in nodes + self.inputs)), key=str)
        self.gm, copies = _copied(gm, nodes, self.inputs, self.outputs)
        self.original = {copy: n for n, copy in copies.items()}
        self.programs = {}

    def run(self, values, bindings, build):
        key = tuple(bindings.get(s) for s in self.symbols)
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = build(self.gm, {s: v for s, v in zip(self.symbols, key) if v is not None})
        for n, v in zip(self.outputs, program([values[i] for i in self.inputs])):
            values[n] = v


class Chain:
    """The callable: list of inputs -> list of outputs. |build|: (graph module, values of symbols) -> such a callable; it
    raises CannotLower, with the node, where that is no program."""

    def __init__(self, gm, build, report):
        self.gm = gm
        self.build = build
        self.report = report
        self.placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self.result = next(n for n in gm.graph.nodes if n.op == "output")
        self.parts = self.part([n for n in gm.graph.nodes if n.op == "call_function"])

    def part(self, nodes):
        """|nodes| as a list of no or one part."""
        mine = set(nodes)
        needed = {n for n in nodes if any(u not in mine for u in n.users)}
        return [_Part(self.gm, nodes, needed)] if nodes else []

    def divide(self, part, node):
        """|part| without |node|. Items of a tuple stay with what made the tuple."""
        at = part.nodes.index(node)
        before, after = part.nodes[:at], part.nodes[at + 1:]
        items = [n for n in after if n.target is operator.getitem and n.args[0] is node]
        early = {n for n in after if n.target is operator.getitem and n.args[0] in set(before)}
        before += [n for n in after if n in early]
        after = [n for n in after if n not in early and n not in items]
        return self.part(before) + [_Operator(self.gm, n) for n in [node, *items]] + self.part(after)

    def __call__(self, args):
        values, bindings = dict(zip(self.placeholders, args)), {}
        for node, actual in values.items():
            learn(node.meta.get("val"), actual, bindings)
        i = 0
        while i < len(self.parts):
            part = self.parts[i]
            if isinstance(part, _Operator):
                part.run(values, bindings)
                i += 1
                continue
            try:
                part.run(values, bindings, self.build)
            except CannotLower as reason:
                node = part.original.get(reason.node)
                if node is None:
                    raise
                self.report(node, reason)
                self.parts[i:i + 1] = self.divide(part, node)
                continue
            i += 1

        return mapped(list(self.result.args[0]), lambda a: _real(self.gm, a, values, bindings))
