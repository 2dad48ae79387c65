"""Symbolic sizes of a graph: what is an int once the symbols are known."""
import sympy
import torch


class CannotLower(Exception):
    """A node that has no place in a program; it then runs by itself. |node|: of the graph that is lowered, once known."""

    node = None


class DependsOnData(CannotLower):
    """The reason is in the program's nature: a size or a number of the host that only values give."""


def concrete(value, bindings):
    """An int for an int or SymInt, given values of the symbols."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        result = value.node.expr.subs(bindings)
        if result.free_symbols:
            raise DependsOnData(f"{value} depends on data")
        if isinstance(value, torch.SymBool):
            return bool(result)
        return float(result) if isinstance(value, torch.SymFloat) else int(result)
    return value


def bind(example, actual, bindings):
    """Learns symbols from one value."""
    if isinstance(example, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        expr = example.node.expr
        if expr.is_Symbol:
            bindings[expr] = float(actual) if isinstance(example, torch.SymFloat) else int(actual)
        elif isinstance(example, torch.SymBool) and isinstance(expr, sympy.Eq) and expr.lhs.is_Symbol and expr.rhs == 1:
            bindings[expr.lhs] = int(actual)  # how PyTorch writes the value of a bool tensor
    elif isinstance(example, torch.Tensor) and actual is not None:  # None: a token that orders effects
        for size, real in zip((*example.shape, *example.stride()), (*actual.shape, *actual.stride())):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                bindings.setdefault(size.node.expr, int(real))


def mapped(tree, f):
    """|tree| of lists, tuples and dicts with f(leaf) in place of each leaf."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(x, f) for x in tree) if type(tree) in (list, tuple) else [mapped(x, f) for x in tree]
    if isinstance(tree, dict):
        return {k: mapped(v, f) for k, v in tree.items()}
    return f(tree)
