"""Symbolic sizes of a graph: what is an int once the symbols are known."""
import torch


class CannotLower(Exception):
    """A node that has no place in a program; the graph then runs op by op."""


def concrete(value, bindings):
    """An int for an int or SymInt, given values of the symbols."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        result = value.node.expr.subs(bindings)
        if result.free_symbols:
            raise CannotLower(f"the size {value} depends on data")
        if isinstance(value, torch.SymBool):
            return bool(result)
        return float(result) if isinstance(value, torch.SymFloat) else int(result)
    return value


def bind(example, actual, bindings):
    """Learns symbols from one input."""
    if isinstance(example, torch.SymInt):
        expr = example.node.expr
        if expr.is_Symbol:
            bindings[expr] = int(actual)
    elif isinstance(example, torch.Tensor):
        for size, real in zip((*example.shape, *example.stride()), (*actual.shape, *actual.stride())):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                bindings.setdefault(size.node.expr, int(real))
