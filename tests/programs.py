"""Equations of traced programs, and operations of programs lowered for other devices."""

import collections
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.formulation import formulated_for
from simkit.core.precision import precision
from simkit.core.simulation import Simulation
from simkit.core.tracing import Traced
from simkit.scenario.build import build
from simkit.scenario.scenario import Scenario

FUNCTIONS = ("init", "step", "observe", "diagnose", "status")


def equations(program: Any, seen: dict[int, Any] | None = None) -> Iterator[Any]:
    """Yield the equations of a program and of all programs in it, each once; of `by_device` both formulations."""
    seen, program = {} if seen is None else seen, getattr(program, "jaxpr", program)
    if id(program) in seen:
        return
    seen[id(program)] = program
    for equation in program.eqns:
        yield equation
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "jaxpr")):
            if hasattr(getattr(value, "jaxpr", value), "eqns"):
                yield from equations(value, seen)
        if equation.primitive.name == "by_device":
            shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
            yield from equations(jax.make_jaxpr(equation.params["accelerator"])(*shapes), seen)


def functions_of(simulation: Simulation, *, bare: bool) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield (name, function, shapes of its arguments) of a record; bare ones without what the record adds to them."""
    params, key = simulation.params, jax.eval_shape(jax.random.key, 0)
    state = jax.eval_shape(simulation.init, params, key)
    for name in FUNCTIONS:
        function = getattr(simulation, name)
        if function is not None:
            plain = function.function if bare and isinstance(function, Traced) else function
            yield name, plain, (params, key) if name == "init" else (state, params)


def imprecise(scenario: Scenario, *, bare: bool = True) -> list[str]:
    """Return the function and the source line of each float product of a scenario without full precision."""
    lines = []
    with precision(scenario.run.precision):
        for name, function, arguments in functions_of(build(scenario), bare=bare):
            for equation in equations(jax.make_jaxpr(function)(*arguments)):
                if equation.primitive.name not in ("dot_general", "conv_general_dilated"):
                    continue
                chosen = equation.params["precision"] or (None,)
                highest = all(one == jax.lax.Precision.HIGHEST for one in jax.tree.leaves(chosen)) and any(chosen)
                if jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.inexact) and not highest:
                    lines.append(f"{name}: {_line(equation)}")
    return lines


def repeated_additions(scenario: Scenario) -> list[str]:
    """Return the function and the source line of each float addition at indices that may repeat, on an accelerator.

    Such additions have no definite order there. Functions are those of the record, without their derivatives.
    """
    lines = []
    with precision(scenario.run.precision), formulated_for("accelerator"):
        for name, function, arguments in functions_of(build(scenario), bare=True):
            for equation in equations(jax.make_jaxpr(function)(*arguments)):
                is_addition = equation.primitive.name in ("scatter-add", "scatter-sub", "scatter-mul")
                is_float = jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.inexact) if is_addition else False
                if is_float and not equation.params["unique_indices"]:
                    lines.append(f"{name}: {_line(equation)}")
    return lines


def _line(equation: Any) -> str:
    places = re.findall(r"\S*/(simkit/\S+?\.py)\W+(\d+)", str(equation.source_info.traceback))
    return ":".join(places[0]) if places else "another library"


def operations(scenario: Scenario, platform: str = "cuda") -> collections.Counter[str]:
    """Return how often each operation occurs in the step of a scenario, lowered for a platform."""
    with precision(scenario.run.precision):
        simulation = build(scenario)
        state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
        return operations_of(simulation.step, state, simulation.params, platform=platform)


def operations_of(function: Callable[..., Any], *arguments: Any, platform: str = "cuda") -> collections.Counter[str]:
    """Return how often each operation occurs in a function, lowered for a platform."""
    text = jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,)).as_text()
    # Conditions of `jnp.diagonal` on numbers that are known, which compiled programs lack.
    text = re.sub(r"func\.func private @diagonal.*?\n  }", "", text, flags=re.DOTALL)
    return collections.Counter(re.findall(r"stablehlo\.(\w+)", text))
