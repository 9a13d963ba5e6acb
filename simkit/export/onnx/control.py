"""Loops and branches, each as one Loop, Scan or If; their bodies read outer tensors directly."""

from collections.abc import Callable, Sequence

import numpy as np

from simkit.core.dependence import sizes_of_scan
from simkit.export.onnx.arithmetic import choose
from simkit.export.onnx.convert import Value, parts_of, run
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.indexing import row, zeros
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.reductions import any_of
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Aval, Equation, Program


@primitive("custom_linear_solve", whole=True)
def custom_linear_solve(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """Its solver, applied to its constants and the right-hand sides."""
    lengths = equation.params["const_lengths"]
    first, sides = lengths.matvec + lengths.vecmat, values[sum(lengths) :]
    return run(graph, Program(equation.params["jaxprs"].solve), [*values[first : first + lengths.solve], *sides])


@primitive("scan", whole=True)
def scan(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """One Loop, or with stacked inputs or outputs one Scan; a single iteration is unrolled."""
    body, length = Program(equation.params["jaxpr"]), equation.params["length"]
    fixed, carried = sizes_of_scan(equation.params)
    constants, carry, stacked = values[:fixed], values[fixed : fixed + carried], values[fixed + carried :]
    rows = equation.outputs[carried:]
    if length == 0:
        return [*carry, *(zeros(graph, aval) for aval in rows)]
    if length == 1:
        first = [_each(value, lambda part: row(graph, part, 0, 0)) for value in stacked]
        results = run(graph, body, [*constants, *carry, *first])
        last = [_each(v, lambda part: graph.reshape(part, (1, *part.shape))) for v in results[carried:]]
        return [*results[:carried], *last]
    if not stacked and not rows:
        count = graph.constant(np.int64(length))
        return loop(graph, count, None, carry, lambda _, state: (None, run(graph, body, [*constants, *state])))
    # Scan needs a stacked input, whose length is the number of iterations.
    stacked = stacked or [Value((graph.vector(range(length)),))]
    with graph.body() as scope:
        state = [_inputs(graph, value, 0) for value in carry]
        current = [_inputs(graph, value, 1) for value in stacked]
        results = run(graph, body, [*constants, *state, *current][: len(values)])
        scope.outputs += _owned(graph, [part for value in results for part in value.parts])
    count = sum(len(value.parts) for value in stacked)
    sizes = [(part.shape, part.dtype) for value in carry for part in value.parts]
    outputs = [(aval.shape, parts_of(aval)[1]) for aval in rows for _ in range(parts_of(aval)[0])]
    backward = {"scan_input_directions": [1] * count, "scan_output_directions": [1] * len(outputs)}
    attributes = {name: ones for name, ones in backward.items() if ones and equation.params["reverse"]}
    inputs = [part for value in (*carry, *stacked) for part in value.parts]
    made = graph.block("Scan", inputs, [*sizes, *outputs], {"body": scope}, num_scan_inputs=count, **attributes)
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
    with graph.body() as scope:
        scope.outputs += _owned(graph, function([graph.input(each.shape[1:], each.dtype) for each in stacked]))
    sizes = [((-1, *each.shape), each.dtype) for each in scope.outputs]
    return graph.block("Scan", stacked, sizes, {"body": scope}, num_scan_inputs=len(stacked))


@primitive("while", whole=True)
def while_loop(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """One Loop until the condition is false, in a batch for every member."""
    params = equation.params
    first, last = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_test, of_body, carry = values[:first], values[first:last], values[last:]

    def test(state: Sequence[Value]) -> Tensor:
        return run(graph, Program(params["cond_jaxpr"]), [*of_test, *state])[0].parts[0]

    def advance(state: Sequence[Value]) -> list[Value]:
        return run(graph, Program(params["body_jaxpr"]), [*of_body, *state])

    condition = test(carry)
    if condition.shape:
        return _batched(graph, condition, carry, test, advance)

    def body(_: Tensor, state: list[Value]) -> tuple[Tensor | None, list[Value]]:
        after = advance(state)
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
    with graph.body() as scope:
        iteration, before = graph.input((), np.int64), graph.input((), bool)
        again, after = body(iteration, [_inputs(graph, value, 0) for value in carry])
        flat = [part for value in after for part in value.parts]
        scope.outputs += _owned(graph, [before if again is None else again, *flat])
    start = [part for value in carry for part in value.parts]
    first = graph.constant(True) if condition is None else condition
    sizes = [(part.shape, part.dtype) for part in start]
    return _values(graph.block("Loop", [count, first, *start], sizes, {"body": scope}), carry, ())


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
    programs = [Program(branch) for branch in equation.params["branches"]]
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
    condition = graph.elementwise("GreaterOrEqual", index, last)
    bodies = {}
    for name, chosen in (("then_branch", programs[last:]), ("else_branch", programs[:last])):
        with graph.body(hoists=False) as scope:
            results = _branch(graph, index, chosen, values, avals)
            scope.outputs += _owned(graph, [part for value in results for part in value.parts])
        bodies[name] = scope
    sizes = [(aval.shape, parts_of(aval)[1]) for aval in avals for _ in range(parts_of(aval)[0])]
    return _values(graph.block("If", [condition], sizes, bodies), (), avals)


def _owned(graph: Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors as outputs of a body: ONNX requires distinct ones, each computed by a node of the body."""
    scope, seen, owned = graph.scope, set(), []
    produced = {id(tensor) for node in scope.nodes for tensor in node.outputs}
    for tensor in tensors:
        if id(tensor) not in produced or tensor.name in seen:
            tensor = graph.copied(tensor)
        seen.add(tensor.name)
        owned.append(tensor)
    return owned


def _each(value: Value, function: Callable[[Tensor], Tensor]) -> Value:
    return Value(tuple(function(part) for part in value.parts), value.key)
