"""Higher-order operators inside a graph: branches and loops of StableHLO.

``associative_scan`` and ``flex_attention`` do not come here: PyTorch opens the first into ATen calls itself
(combine_mode="generic", the only one it allows outside CUDA and XPU) and refuses the second on devices it does not list.
"""
import torch

from .. import _C
from .sizes import CannotLower

BRANCH, CONDITION, BODY = range(3)  # tt_region_kind_t


def _values(name, values):
    """The values of a region that are tensors; None passes, anything else has no place in one."""
    for v in values:
        if v is not None and not isinstance(v, _C.Node):
            raise CannotLower(f"{name}: {v!r} among its tensors")
    return [v for v in values if v is not None]


def _flat(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def cond(low, node, pred, true_graph, false_graph, operands=()):
    """stablehlo.if; a predicate known while tracing chooses its branch here."""
    if isinstance(pred, bool):
        return low.inline(true_graph if pred else false_graph, operands)
    graph, regions, holes = low.graph, [], None
    for branch in (true_graph, false_graph):
        region = graph.region_begin(BRANCH)
        outputs = _flat(low.inline(branch, operands))
        mine = [v is None for v in outputs]
        if holes is not None and mine != holes:
            raise CannotLower("cond: its branches give None in different places")
        holes = mine
        graph.region_end(region, _values("cond", outputs))
        regions.append(region)
    results = iter(graph.branch(pred, *regions, holes.count(False)))
    return [None if hole else next(results) for hole in holes]


def _loop(low, init, condition, body):
    """stablehlo.while. |condition| and |body|: carried values -> value(s)."""
    graph = low.graph
    types = [graph.type(v) for v in init]
    regions = []
    for kind, step in ((CONDITION, condition), (BODY, body)):
        region = graph.region_begin(kind)
        carried = [graph.region_arg(region, dtype, sizes) for dtype, sizes in types]
        graph.region_end(region, _values("loop", _flat(step(carried))))
        regions.append(region)
    return graph.loop(init, *regions)


def while_loop(low, node, cond_graph, body_graph, carried, additional=()):
    for v in carried:
        if not isinstance(v, _C.Node):
            raise CannotLower(f"while_loop carries {v!r}, which is no tensor")
    return _loop(low, list(carried), lambda c: low.inline(cond_graph, [*c, *additional]),
                 lambda c: low.inline(body_graph, [*c, *additional]))


def scan(low, node, combine, init, xs, additional=()):
    """One turn of a while for each row of |xs|; the results' rows are written in place."""
    init, xs = _values("scan", init), _values("scan", xs)
    types = low.types(node, all_of_them=True)
    if not xs or types is None or any(dtype is None for dtype, _ in types):
        raise CannotLower("scan without rows or with results that are no tensors")
    graph, length, n = low.graph, low.graph.type(xs[0])[1][0], len(init)
    if length == 0:
        raise CannotLower("scan over no rows")
    stacks = [graph.call("full", sizes, 0, dtype=dtype, _outs=[(dtype, sizes)])[0] for dtype, sizes in types[n:]]
    for (dtype, sizes), v in zip(types[:n], init):
        if graph.type(v) != (dtype, list(sizes)):
            raise CannotLower("scan carries values whose type changes")

    def condition(carried):
        return graph.call("lt.Scalar", carried[0], length)

    def body(carried):
        i, carry, stacked = carried[0], carried[1:1 + n], carried[1 + n:]
        outputs = _flat(low.inline(combine, [*carry, *(graph.row(x, i) for x in xs), *additional]))
        rows = _values("scan", outputs[n:])
        if len(rows) != len(stacked):
            raise CannotLower("scan: results that are no tensors")
        following = graph.call("add.Tensor", i, graph.constant(torch.tensor(1)))[0]
        return [following, *outputs[:n], *(graph.set_row(s, i, r) for s, r in zip(stacked, rows))]

    return _loop(low, [graph.constant(torch.tensor(0)), *init, *stacks], condition, body)[1:]


def map_rows(low, node, f, xs, additional=()):
    return scan(low, node, f, [], xs, additional)


def invoke_subgraph(low, node, subgraph, identifier, *operands):
    return _flat(low.inline(subgraph, operands))


TABLE = {"cond": cond, "while_loop": while_loop, "scan": scan, "map_impl": map_rows, "invoke_subgraph": invoke_subgraph}
