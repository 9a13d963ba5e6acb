"""Loops and branches: each one Loop or If, whose bodies read what is computed outside of them directly."""

from collections.abc import Callable, Sequence

import numpy as np

from simkit.export.onnx import tracing
from simkit.export.onnx.equations import Aval, Equation
from simkit.export.onnx.graph import Graph, Node, Scope, Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.shapes import reversed_along, row
from simkit.export.onnx.tracing import Program
from simkit.export.onnx.values import Value, parts_of


def _run(graph: Graph, program: Program, values: Sequence[Value]) -> list[Value]:
    from simkit.export.onnx.convert import run

    return run(graph, program, values)


@primitive("custom_linear_solve", whole=True)
def custom_linear_solve(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """Its own solver, given what it closes over and the right side."""
    solver, first, end = tracing.linear_solve(equation)
    sides = values[sum(equation.params["const_lengths"]) :]
    return _run(graph, solver, [*values[first:end], *sides])


@primitive("scan", whole=True)
def scan(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """One Loop with a scan output for each stacked result; a single step is no loop."""
    parts = tracing.scan(equation)
    constants, carry = values[: parts.constants], values[parts.constants : parts.constants + parts.carry]
    stacked = values[parts.constants + parts.carry :]
    rows = equation.outputs[parts.carry :]
    if parts.length == 0:
        return [*carry, *(_empty(graph, aval) for aval in rows)]
    if parts.length == 1:
        first = [_each(value, lambda part: row(graph, part, 0, 0)) for value in stacked]
        results = _run(graph, parts.body, [*constants, *carry, *first])
        last = [_each(v, lambda part: graph.reshape(part, (1, *part.shape))) for v in results[parts.carry :]]
        return [*results[: parts.carry], *last]

    def body(iteration: Tensor, state: list[Value]) -> tuple[Tensor | None, list[Value], list[Value]]:
        place = iteration
        if parts.reverse:
            place = graph.elementwise("Sub", graph.constant(np.int64(parts.length - 1)), iteration)
        current = [_each(value, lambda part: _row(graph, part, place)) for value in stacked]
        results = _run(graph, parts.body, [*constants, *state, *current])
        return None, results[: parts.carry], results[parts.carry :]

    state, collected = loop(graph, graph.constant(np.int64(parts.length)), None, carry, body, rows, parts.length)
    if parts.reverse:
        collected = [_each(value, lambda part: reversed_along(graph, part, [0])) for value in collected]
    return [*state, *collected]


@primitive("while", whole=True)
def while_loop(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """One Loop, which ends when its test is false."""
    parts = tracing.while_loop(equation)
    tested = values[: parts.test_constants]
    used = values[parts.test_constants : parts.test_constants + parts.body_constants]
    carry = values[parts.test_constants + parts.body_constants :]

    def test(state: Sequence[Value]) -> Tensor:
        return _run(graph, parts.test, [*tested, *state])[0].parts[0]

    def body(_: Tensor, state: list[Value]) -> tuple[Tensor | None, list[Value], list[Value]]:
        after = _run(graph, parts.body, [*used, *state])
        return test(after), after, []

    return loop(graph, None, test(carry), carry, body, (), 0)[0]


type Body = Callable[[Tensor, list[Value]], tuple[Tensor | None, list[Value], list[Value]]]


def loop(
    graph: Graph,
    turns: Tensor | None,
    condition: Tensor | None,
    carry: Sequence[Value],
    body: Body,
    rows: Sequence[Aval],
    length: int,
) -> tuple[list[Value], list[Value]]:
    """Add a Loop, and return the final state and the stacked rows.

    What the body does not change, and returns as it is, stays outside.

    Args:
        graph: under construction.
        turns: number of turns, int64 scalar; ``None`` for as many as the condition lasts.
        condition: whether there is a first turn; ``None`` for always.
        carry: the state at the start.
        body: ``(turn, state) -> (whether there is another turn, state, rows)``.
        rows: shapes and types of the stacked rows.
        length: number of stacked rows.
    """
    scope = Scope(graph.scope, hoists=True)
    outer, graph.scope = graph.scope, scope
    turn, going = graph.input((), np.int64), graph.input((), bool)
    inside = [Value(tuple(graph.input(p.shape, p.dtype) for p in value.parts), value.key) for value in carry]
    again, after, made = body(turn, inside)
    flat = [part for value in after for part in value.parts]
    own = _owned(graph, [again if again is not None else going, *flat, *(p for value in made for p in value.parts)])
    scope.outputs += own
    graph.scope = outer
    start = [part for value in carry for part in value.parts]
    sizes = [(part.shape, part.dtype) for part in start]
    for aval in rows:
        count, dtype = parts_of(aval)
        sizes += [((length, *aval.shape[1:]), dtype)] * count
    made_outside = [graph.tensor(shape, dtype, outer) for shape, dtype in sizes]
    first = condition if condition is not None else graph.constant(True)
    outer.nodes.append(Node("Loop", [turns, first, *start], made_outside, {}, {"body": scope}, graph.origin))
    parts = iter(made_outside)
    state = [Value(tuple(next(parts) for _ in value.parts), value.key) for value in carry]
    return state, [Value(tuple(next(parts) for _ in range(parts_of(aval)[0])), aval.key) for aval in rows]


@primitive("cond", whole=True)
def cond(graph: Graph, equation: Equation, which: Value, *values: Value) -> list[Value]:
    """One If, nested for more than two branches; a known one is no If."""
    programs = tracing.branches(equation)
    index = which.parts[0]
    if index.value is not None:
        return _run(graph, programs[min(max(int(index.value), 0), len(programs) - 1)], values)
    return _branch(graph, index, programs, values, equation.outputs)


def _branch(
    graph: Graph, index: Tensor, programs: list[Program], values: Sequence[Value], avals: Sequence[Aval]
) -> list[Value]:
    if len(programs) == 1:
        return _run(graph, programs[0], values)
    last = len(programs) - 1
    # Whether it is the last branch; whatever is beyond it is so too.
    condition = graph.elementwise("GreaterOrEqual", index, graph.constant(last, index.dtype), dtype=bool)
    outer = graph.scope
    bodies = {}
    for name, chosen in (("then_branch", programs[last:]), ("else_branch", programs[:last])):
        graph.scope = Scope(outer)
        results = _branch(graph, index, chosen, values, avals)
        graph.scope.outputs += _owned(graph, [part for value in results for part in value.parts])
        bodies[name] = graph.scope
    graph.scope = outer
    sizes = [(aval.shape, parts_of(aval)[1]) for aval in avals for _ in range(parts_of(aval)[0])]
    made = [graph.tensor(shape, dtype, outer) for shape, dtype in sizes]
    outer.nodes.append(Node("If", [condition], made, {}, bodies, graph.origin))
    parts = iter(made)
    return [Value(tuple(next(parts) for _ in range(parts_of(aval)[0])), aval.key) for aval in avals]


def _owned(graph: Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors that the current scope computes, each of its own name, as ONNX wants outputs of a body."""
    scope, seen, own = graph.scope, set(), []
    produced = {id(tensor) for node in scope.nodes for tensor in node.outputs}
    for tensor in tensors:
        if id(tensor) not in produced or tensor.name in seen:
            copy = graph.tensor(tensor.shape, tensor.dtype, scope)
            scope.nodes.append(Node("Identity", [tensor], [copy], {}, origin=graph.origin))
            tensor = copy
        seen.add(tensor.name)
        own.append(tensor)
    return own


def _row(graph: Graph, x: Tensor, place: Tensor) -> Tensor:
    if x.narrow is not None and (len(x.narrow.shape) < len(x.shape) or x.narrow.shape[0] == 1):
        narrow = x.narrow.shape[1:] if len(x.narrow.shape) == len(x.shape) else x.narrow.shape
        return graph.expand(graph.reshape(x.narrow, narrow), x.shape[1:])
    return graph.op("Gather", [x, place], x.shape[1:], x.dtype, axis=0)


def _each(value: Value, function: Callable[[Tensor], Tensor]) -> Value:
    return Value(tuple(function(part) for part in value.parts), value.key)


def _empty(graph: Graph, aval: Aval) -> Value:
    count, dtype = parts_of(aval)
    return Value(tuple(graph.constant(np.zeros(aval.shape, dtype)) for _ in range(count)), aval.key)
