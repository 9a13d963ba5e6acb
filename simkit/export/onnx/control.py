"""Loops and branches, each as one Loop, Scan or If; their bodies read outer tensors directly."""

from collections.abc import Callable, Sequence

import numpy as np

from simkit.export.onnx import tracing
from simkit.export.onnx.arithmetic import choose
from simkit.export.onnx.convert import Value, parts_of, run
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Node, Scope, Tensor
from simkit.export.onnx.reductions import any_of
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.shapes import row
from simkit.export.onnx.tracing import Aval, Equation, Program


@primitive("custom_linear_solve", whole=True)
def custom_linear_solve(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """Its solver, applied to its constants and the right-hand sides."""
    solver, first, end = tracing.linear_solve(equation)
    sides = values[sum(equation.params["const_lengths"]) :]
    return run(graph, solver, [*values[first:end], *sides])


@primitive("scan", whole=True)
def scan(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """One Loop, or with stacked inputs or outputs one Scan; a single iteration is unrolled."""
    parts = tracing.scan(equation)
    constants, carry = values[: parts.constants], values[parts.constants : parts.constants + parts.carry]
    stacked = values[parts.constants + parts.carry :]
    rows = equation.outputs[parts.carry :]
    if parts.length == 0:
        return [*carry, *(_empty(graph, aval) for aval in rows)]
    if parts.length == 1:
        first = [_each(value, lambda part: row(graph, part, 0, 0)) for value in stacked]
        results = run(graph, parts.body, [*constants, *carry, *first])
        last = [_each(v, lambda part: graph.reshape(part, (1, *part.shape))) for v in results[parts.carry :]]
        return [*results[: parts.carry], *last]

    if not stacked and not rows:

        def body(_: Tensor, state: list[Value]) -> tuple[Tensor | None, list[Value]]:
            return None, run(graph, parts.body, [*constants, *state])

        return loop(graph, graph.constant(np.int64(parts.length)), None, carry, body)
    return _scan_of_rows(graph, parts, constants, carry, stacked, rows)


def _scan_of_rows(
    graph: Graph,
    parts: tracing.Scan,
    constants: Sequence[Value],
    carry: Sequence[Value],
    stacked: Sequence[Value],
    rows: Sequence[Aval],
) -> list[Value]:
    """Add a Scan, which slices its stacked inputs and stacks its outputs itself."""
    outer, graph.scope = graph.scope, Scope(graph.scope, hoists=True)
    state = [_inputs(graph, value, 0) for value in carry]
    current = [_inputs(graph, value, 1) for value in stacked]
    if not stacked:
        graph.input((), np.int64)
    results = run(graph, parts.body, [*constants, *state, *current])
    graph.scope.outputs += _owned(graph, [part for value in results for part in value.parts])
    scope, graph.scope = graph.scope, outer
    inputs = [part for value in (*carry, *stacked) for part in value.parts]
    if not stacked:
        # Scan needs a stacked input, whose length is the number of iterations.
        inputs.append(graph.vector(range(parts.length)))
    count = len(inputs) - sum(len(value.parts) for value in carry)
    sizes = [(part.shape, part.dtype) for value in carry for part in value.parts]
    for aval in rows:
        width, dtype = parts_of(aval)
        sizes += [(aval.shape, dtype)] * width
    made = [graph.tensor(shape, dtype, outer) for shape, dtype in sizes]
    backward = {}
    if parts.reverse:
        outputs = len(made) - sum(len(value.parts) for value in carry)
        backward = {"scan_input_directions": [1] * count, "scan_output_directions": [1] * outputs}
        backward = {name: values for name, values in backward.items() if values}
    attributes = {"num_scan_inputs": count, **backward}
    outer.nodes.append(Node("Scan", list(inputs), made, attributes, {"body": scope}, graph.origin))
    return _values(made, carry, rows)


def each_member(
    graph: Graph, stacked: Sequence[Tensor], function: Callable[[Sequence[Tensor]], list[Tensor]]
) -> list[Tensor]:
    """Return a function's results for each member of a batch of any size, by one Scan.

    Args:
        graph: under construction.
        stacked: arguments, with a leading axis of size -1 for the members.
        function: of the arrays of one member.
    """
    outer, graph.scope = graph.scope, Scope(graph.scope, hoists=True)
    graph.scope.outputs += _owned(graph, function([graph.input(each.shape[1:], each.dtype) for each in stacked]))
    scope, graph.scope = graph.scope, outer
    made = [graph.tensor((-1, *each.shape), each.dtype, outer) for each in scope.outputs]
    outer.nodes.append(Node("Scan", list(stacked), made, {"num_scan_inputs": len(stacked)}, {"body": scope}))
    return made


@primitive("while", whole=True)
def while_loop(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """One Loop until the condition is false, in a batch for every member."""
    parts = tracing.while_loop(equation)
    of_test = values[: parts.test_constants]
    of_body = values[parts.test_constants : parts.test_constants + parts.body_constants]
    carry = values[parts.test_constants + parts.body_constants :]

    def test(state: Sequence[Value]) -> Tensor:
        return run(graph, parts.test, [*of_test, *state])[0].parts[0]

    condition = test(carry)
    if condition.shape:
        return _batched(graph, condition, carry, test, lambda state: run(graph, parts.body, [*of_body, *state]))

    def body(_: Tensor, state: list[Value]) -> tuple[Tensor | None, list[Value]]:
        after = run(graph, parts.body, [*of_body, *state])
        return test(after), after

    return loop(graph, None, condition, carry, body)


def _batched(
    graph: Graph,
    condition: Tensor,
    carry: Sequence[Value],
    test: Callable[[Sequence[Value]], Tensor],
    advance: Callable[[list[Value]], list[Value]],
) -> list[Value]:
    """Add the Loop of a batch, which ends when no member is active; members that are not active keep their state.

    Args:
        graph: under construction.
        condition: whether each member is active at the start; its axes are the first ones of every array of the state.
        carry: the state at the start.
        test: ``state -> condition``.
        advance: ``state -> state`` of all members.
    """

    def body(_: Tensor, state: list[Value]) -> tuple[Tensor | None, list[Value]]:
        active = state[0].parts[0]
        after = [
            Value(tuple(_kept(graph, active, *pair) for pair in zip(new.parts, old.parts, strict=True)), old.key)
            for new, old in zip(advance(state[1:]), state[1:], strict=True)
        ]
        again = test(after)
        return any_of(graph, again), [Value((again,)), *after]

    return loop(graph, None, any_of(graph, condition), [Value((condition,)), *carry], body)[1:]


def _kept(graph: Graph, active: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Return ``new`` for active members and ``old`` for the others."""
    row = graph.reshape(active, (*active.shape, *[1] * (len(new.shape) - len(active.shape))))
    return graph.expand(choose(graph, graph.expand(row, new.shape), new, old), new.shape)


type Body = Callable[[Tensor, list[Value]], tuple[Tensor | None, list[Value]]]


def loop(
    graph: Graph, count: Tensor | None, condition: Tensor | None, carry: Sequence[Value], body: Body
) -> list[Value]:
    """Add a Loop, and return the final state.

    Args:
        graph: under construction.
        count: number of iterations, int64 scalar; ``None`` for no limit but the condition.
        condition: whether there is a first iteration; ``None`` for true.
        carry: the state at the start.
        body: ``(iteration, state) -> (condition of another iteration or None for true, state)``.
    """
    outer, graph.scope = graph.scope, Scope(graph.scope, hoists=True)
    iteration, before = graph.input((), np.int64), graph.input((), bool)
    again, after = body(iteration, [_inputs(graph, value, 0) for value in carry])
    flat = [part for value in after for part in value.parts]
    graph.scope.outputs += _owned(graph, [before if again is None else again, *flat])
    scope, graph.scope = graph.scope, outer
    start = [part for value in carry for part in value.parts]
    made = [graph.tensor(part.shape, part.dtype, outer) for part in start]
    first = graph.constant(True) if condition is None else condition
    outer.nodes.append(Node("Loop", [count, first, *start], made, {}, {"body": scope}, graph.origin))
    return _values(made, carry, ())


def _inputs(graph: Graph, value: Value, skipped: int) -> Value:
    """Return new inputs of the current scope for a value, without its first ``skipped`` axes."""
    return Value(tuple(graph.input(part.shape[skipped:], part.dtype) for part in value.parts), value.key)


def _values(made: Sequence[Tensor], carry: Sequence[Value], rows: Sequence[Aval]) -> list[Value]:
    """Return tensors as the values of a state, followed by the values of stacked outputs."""
    rest = iter(made)
    state = [Value(tuple(next(rest) for _ in value.parts), value.key) for value in carry]
    return [*state, *(Value(tuple(next(rest) for _ in range(parts_of(aval)[0])), aval.key) for aval in rows)]


@primitive("cond", whole=True)
def cond(graph: Graph, equation: Equation, which: Value, *values: Value) -> list[Value]:
    """One If, nested for more than two branches; a constant index selects its branch without an If."""
    programs = tracing.branches(equation)
    index = which.parts[0]
    if index.value is not None:
        return run(graph, programs[min(max(int(index.value), 0), len(programs) - 1)], values)
    return _branch(graph, index, programs, values, equation.outputs)


def _branch(
    graph: Graph, index: Tensor, programs: list[Program], values: Sequence[Value], avals: Sequence[Aval]
) -> list[Value]:
    if len(programs) == 1:
        return run(graph, programs[0], values)
    last = len(programs) - 1
    # Larger indices select the last branch, too.
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
    """Return tensors as outputs of a body: ONNX requires distinct ones, each computed by a node of the body."""
    scope, seen, owned = graph.scope, set(), []
    produced = {id(tensor) for node in scope.nodes for tensor in node.outputs}
    for tensor in tensors:
        if id(tensor) not in produced or tensor.name in seen:
            copy = graph.tensor(tensor.shape, tensor.dtype, scope)
            scope.nodes.append(Node("Identity", [tensor], [copy], {}, origin=graph.origin))
            tensor = copy
        seen.add(tensor.name)
        owned.append(tensor)
    return owned


def _each(value: Value, function: Callable[[Tensor], Tensor]) -> Value:
    return Value(tuple(function(part) for part in value.parts), value.key)


def _empty(graph: Graph, aval: Aval) -> Value:
    count, dtype = parts_of(aval)
    return Value(tuple(graph.constant(np.zeros(aval.shape, dtype)) for _ in range(count)), aval.key)
