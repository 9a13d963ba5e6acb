"""Comparisons, logic and selection."""

import functools

from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive

_ORDER = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}


@primitive("eq")
def equal(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x = y``, false where either is NaN."""
    return graph.elementwise("Equal", x, y, dtype=bool)


@primitive("ne")
def unequal(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x != y``."""
    if x.dtype == bool:
        return graph.elementwise("Xor", x, y)
    return graph.elementwise("Not", graph.elementwise("Equal", x, y, dtype=bool))


@primitive(*_ORDER)
def ordered(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x < y`` and the like."""
    return graph.elementwise(_ORDER[equation.name], x, y, dtype=bool)


@primitive("select_n", each=True)
def select(graph: Graph, equation: Equation, which: Tensor, *cases: Tensor) -> Tensor:
    """Element by element, the case of index ``which``."""
    if which.dtype == bool:
        return choose(graph, which, *reversed(cases)) if len(cases) == 2 else cases[0]

    def step(chosen: Tensor, case: tuple[int, Tensor]) -> Tensor:
        is_case = graph.elementwise("Equal", which, graph.constant(case[0], which.dtype), dtype=bool)
        return choose(graph, is_case, case[1], chosen)

    return functools.reduce(step, list(enumerate(cases))[1:], cases[0])


def choose(graph: Graph, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Return ``yes`` where a condition is true and ``no`` elsewhere.

    Args:
        graph: under construction.
        condition: bool, of the shape of the others or a scalar.
        yes: elements where it is true.
        no: elements where it is false.
    """
    known = (condition.narrow or condition).value
    if known is not None and known.size == 1:
        return yes if known.reshape(()) else no
    if yes is no:
        return yes
    if yes.dtype == bool:
        true = graph.elementwise("And", condition, yes)
        return graph.elementwise("Or", true, graph.elementwise("And", graph.elementwise("Not", condition), no))
    return graph.elementwise("Where", condition, yes, no)


@primitive("and", "or", "xor")
def logic(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """Logical for booleans, bitwise for integers."""
    name = equation.name.capitalize()
    return graph.elementwise(name if x.dtype == bool else f"Bitwise{name}", x, y)


@primitive("not")
def negation(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Logical for booleans, bitwise for integers."""
    return graph.elementwise("Not" if x.dtype == bool else "BitwiseNot", x)
