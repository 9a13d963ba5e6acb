"""Time and memory of derivatives by budget, beside plain reverse mode, for the three domains.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_gradient.py [flow] [molecular] [rigid] [--steps 100,1000]``.
Plain reverse mode is ``jax.grad`` of one ``scan`` over the steps, which stores what each step needs. The memory is what
the compiler reports for the program; of a stored derivative, for the program of one piece. Time is the least of
``--turns`` calls after the first (0: the first), all ways in turn; of a stored derivative of a whole job, with its
files and its compilation from the cache on disk.
"""

import argparse
import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

import simkit
from simkit.core import budget, gradient
from simkit.core.compilation import needed_bytes, use_compilation_cache
from simkit.core.objective import Objective
from simkit.core.precision import precision
from simkit.core.pytrees import size_in_bytes
from simkit.engine.memory import format_bytes
from simkit.jobs.derivatives import objective_of
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.benchmarks.timing import best

CASES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "flow": ("channel_flow", {"config.axes.x.cells": 32, "config.axes.y.cells": 24}, "final(mean(u))", "reynolds"),
    "molecular": ("nose_hoover", {}, "final(temperature)", "temperature"),
    "rigid": ("double_pendulum", {}, "final(tip_x)", "upper_length"),
}
# States that a budget has room for.
BUDGETS = (20, 200)
# Plain reverse mode that needs more memory is not run.
MOST = 18 * 2**30


def plain(objective: Objective, wrt: str, params: Any, key: jax.Array) -> Any:
    """Return plain reverse mode, compiled."""
    simulation = objective.simulation

    def value(number: jax.Array) -> jax.Array:
        values = {**params, wrt: number}
        state, _ = jax.lax.scan(
            lambda state, _: (simulation.step(state, values), None),
            simulation.init(values, key),
            length=objective.steps,
        )
        frame = simulation.observe(state, values), simulation.diagnose(state, values)
        return objective.quantity(*jax.tree.map(lambda leaf: leaf[None], frame))  # type: ignore[operator]

    return jax.jit(jax.value_and_grad(value)).lower(params[wrt]).compile()


def ways(name: str, values: dict[str, Any], expression: str, wrt: str, steps: int) -> dict[str, tuple[Callable, int]]:
    """Return the ways to differentiate a run, ``{name: (call, bytes)}``."""
    scenario = load(name, {**values, "steps": steps, "every": steps, "precision": "float32"})
    simulation = build(scenario)
    params, key = simulation.params, jax.random.key(scenario.run.seed)
    objective = objective_of(scenario, simulation, expression)
    if simulation.sized_like is not None:
        objective = objective.with_room(params, key)
    state = size_in_bytes(jax.eval_shape(objective.simulation.init, params, key))
    found: dict[str, tuple[Callable, int]] = {}
    if steps * state * 4 < MOST:
        program = plain(objective, wrt, params, key)
        if (needed := needed_bytes(program)) < MOST:
            found["plain"] = lambda: jax.block_until_ready(program(params[wrt])), needed
    for memory in ("balanced", "smallest"):
        chosen = dataclasses.replace(objective, memory=memory)
        call = gradient.jitted(chosen, wrt, "reverse", params, key).lower(params, key).compile()
        found[memory] = (lambda call=call: jax.block_until_ready(call(params, key))), needed_bytes(call)
    least = found["smallest"][1]
    for count in BUDGETS:
        fit = budget.fitted(objective, wrt, "reverse", params, key, memory=least + count * state)
        found[f"{count} more states"] = (lambda fit=fit: jax.block_until_ready(fit(params, key))), fit.needed

    def stored() -> None:
        with tempfile.TemporaryDirectory() as folder:
            simkit.value_and_grad(scenario, wrt, objective=expression, output=Path(folder) / "run")

    from simkit.core.budget import Pieces, floats_of
    from simkit.engine.backward import plan_of_pieces
    from simkit.engine.memory import shapes_of

    plan = plan_of_pieces(objective, 20)
    pieces = Pieces(objective, (wrt,), plan.every, plan.frames_per_segment, shapes_of(objective.simulation)[1], ())
    start = jax.eval_shape(objective.simulation.init, params, key)
    piece = jax.jit(lambda state, cotangent: pieces.back(state, params, cotangent, {}))
    found["stored"] = stored, needed_bytes(piece.lower(start, floats_of(start)).compile())
    return found


def main() -> None:
    """Print a table for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--steps", default="100,1000,10000,100000")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    use_compilation_cache()
    for case in arguments.cases or CASES:
        name, values, expression, wrt = CASES[case]
        print(f"\n{case}: {name}, d {expression} / d {wrt}")
        print(f"{'steps':>8} {'way':>16} {'memory':>12} {'seconds':>10} {'of balanced':>12}")
        for steps in map(int, arguments.steps.split(",")):
            with precision("float32"):
                found = ways(name, values, expression, wrt, steps)
                calls = {way: call for way, (call, _) in found.items()}
                first = best(calls, 1, turn=0)
                least = best(calls, arguments.turns, turn=0) if arguments.turns else first
            for way, (_, size) in found.items():
                relative = least[way] / least["balanced"]
                print(
                    f"{steps:>8} {way:>16} {format_bytes(size):>12} {least[way]:>10.4f} {relative:>12.2f}", flush=True
                )


if __name__ == "__main__":
    main()
