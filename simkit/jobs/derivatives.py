"""Derivatives of objectives of a scenario, and those of the mean over random seeds."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import budget, gradient, paths
from simkit.core.arguments import check_type
from simkit.core.budget import Fitted
from simkit.core.dependence import draws, in_steps_only
from simkit.core.devices import settle
from simkit.core.expressions.measures import measure_of
from simkit.core.expressions.syntax import parse
from simkit.core.gradient import GradientCheck
from simkit.core.objective import Measure, Objective, Reduce
from simkit.core.precision import precision
from simkit.core.pytrees import size_in_bytes
from simkit.core.simulation import Params, Simulation
from simkit.core.status import CAUTIONS, FAILURES, MESSAGES, Status
from simkit.engine.memory import format_bytes, memory_in_bytes, shapes_of
from simkit.engine.processes import ProcessGroup
from simkit.errors import UserError, argument, nearest
from simkit.jobs.points import check_counts
from simkit.scenario.build import build
from simkit.scenario.scenario import ObjectiveSettings, Scenario

EQUILIBRIUM = "the derivative of an equilibrium"
type Mode = Literal["reverse", "forward", "shortest"]


@dataclasses.dataclass(frozen=True)
class Derivative:
    """The derivative of an objective.

    Attributes:
        value: value of the objective.
        derivative: ``{name: array}``.
        status: status of the run, a code of `simkit.core.status.Status`.
        note: limits of the derivative's validity, in one line; empty if there are none.
        fit: memory used and recomputation, in one line; empty without a memory limit.
        seeds: number of seeds n, of the mean over seeds; ``None`` for one run.
        value_error: standard error of a mean, s / sqrt(n) with the sample standard deviation s of the values.
        error: standard errors of the derivatives of a mean, ``{name: array}``.
    """

    value: float
    derivative: dict[str, np.ndarray]
    status: int
    note: str
    fit: str = ""
    seeds: int | None = None
    value_error: float = 0.0
    error: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def is_finite(self) -> bool:
        """Whether the value and all derivatives are finite."""
        return all(np.isfinite(number).all() for number in (self.value, *self.derivative.values()))


# Seeds named in a message.
SHOWN = 5


def differentiate(
    scenario: Scenario,
    wrt: str | Sequence[str],
    objective: "str | Measure | None",
    mode: Mode,
    memory: int | str | None = None,
    seeds: int | None = None,
    group: "ProcessGroup | None" = None,
) -> Derivative:
    """Return a derivative with the status of its run, or that of the mean over consecutive seeds.

    Args:
        scenario: scenario with overrides applied.
        wrt: paths of the parameters.
        objective: as for `simkit.value_and_grad`, as are the next two.
        mode: mode of differentiation.
        memory: memory limit.
        seeds: number of seeds, at least 2, beginning with the scenario's; ``None`` for one run.
        group: processes over which the seeds are divided.

    Raises:
        UserError: if a name is unknown, the derivative does not fit in memory, the initial state does not depend on the
            seed, or the processes do not divide the seeds.
    """
    names, limit = selected_parameters(scenario, wrt), None if memory is None else memory_in_bytes(memory)
    compiling: Any = gradient.jitted if limit is None else partial(budget.fitted, memory=limit)
    if seeds is not None:
        check_counts(scenario, seeds, least=2)
    with prepared(scenario, objective, seeds=seeds or 1) as (function, params, key), within_memory(scenario, limit):
        if seeds is not None:
            if not draws(function.simulation):
                raise UserError(f"{scenario.name} does not depend on the seed; leave {argument('seeds')} out")
            key = jax.vmap(jax.random.key)(scenario.run.seed + jnp.arange(seeds, dtype=jnp.uint32))
        if group:
            if (seeds or 0) % group.count:
                raise UserError(f"{group.count} processes do not divide seeds = {seeds}; give a multiple")
            params, key, compiling = group.whole(params), group.members(key), _gathering(group, function)
        call, _, *results = gradient.derivative_with_growth(function, names, mode, params, key, compiling)
        values, statuses, slopes = jax.tree.map(np.asarray, results)
        fit = _fit_in_words(call, function, limit) if isinstance(call, budget.Fitted) and limit else ""
    status, note = (int(statuses), "") if seeds is None else _worst(scenario, statuses)
    means = {name: slopes[name] if seeds is None else slopes[name].mean(axis=0) for name in names}
    note = note or note_of(scenario, objective, status, means)
    result = Derivative(float(values.mean()), means, status, note, fit)
    if seeds is None:
        return result
    errors = {name: _standard_error(slopes[name]) for name in names}
    return dataclasses.replace(result, seeds=seeds, value_error=float(_standard_error(values)), error=errors)


def _fit_in_words(call: "Fitted", objective: "Objective", limit: int) -> str:
    """Return the memory of a derivative and its recomputation, in one line."""
    used = f"{format_bytes(call.needed)} of {format_bytes(limit)}"
    if call.nesting is None:
        return f"{used}: {EQUILIBRIUM if objective.converges else 'forward mode'} holds no states of earlier steps"
    held = f"at most {call.nesting.states} states of {format_bytes(call.state)} are held at once"
    return f"{used}: {held}, and each step is computed {call.nesting.levels} times besides its derivative"


@contextmanager
def within_memory(scenario: Scenario, limit: int | None, *, in_pieces: bool = False) -> "Iterator[None]":
    """Refuse, in one line, a derivative that does not fit in memory, of at most ``limit`` bytes.

    Raises:
        UserError: with what it needs, and the remedy, which is not forward mode for one ``in_pieces``.
    """
    try:
        yield
    except budget.NoRoomError as error:
        needs = f"{format_bytes(error.needed)} at least, and {format_bytes(limit or 0)} may be used"
        forward = f", or {argument('mode', '"forward"')} for few parameters" * (error.holds_states and not in_pieces)
        remedy = f"pass a larger {argument('memory')}{forward}"
        raise UserError(f"the derivative of {scenario.name} needs {needs}; {remedy}") from None


def status_note(scenario: Scenario, status: int) -> str:
    """Return the message of a status that limits a derivative: empty unless it is a failure or a caution."""
    return f"{scenario.name} {MESSAGES[Status(status)]}" if status in (*FAILURES, *CAUTIONS) else ""


def note_of(
    scenario: Scenario, objective: "str | Measure | None", status: int, derivative: Mapping[str, np.ndarray]
) -> str:
    """Return the limits of a derivative's validity, in one line: a failure or caution of its run, or steps."""
    zero = [name for name, values in derivative.items() if not np.any(values)]
    return status_note(scenario, status) or note_of_steps(scenario, objective, zero)


def note_of_steps(scenario: Scenario, objective: "str | Measure | None", zero: Sequence[str]) -> str:
    """Return which parameters an objective depends on in steps only, in one line; empty if there are none.

    Args:
        scenario: the scenario that was run.
        objective: its objective, as for `value_and_grad`.
        zero: paths of the parameters whose derivatives are zero; the others are not examined.
    """
    if not zero:
        return ""
    with prepared(scenario, objective) as (function, params, key):
        try:
            stepped, converges = set(in_steps_only(function, params, key)), function.converges
        except TypeError:  # a part of the simulation has a derivative in reverse mode only
            return ""
    if not (names := [name for name in zero if name in stepped]):
        return ""
    how = "as it may come to rest in another state" if converges else "through comparisons such as those of a 'where'"
    return (
        f"{scenario.name} depends on {', '.join(names)} in steps only, {how}: its derivative is 0 wherever there is "
        "one; sweep it instead"
    )


def status_of_run(scenario: Scenario, objective: "str | Measure | None", changed: Mapping[str, Any]) -> int:
    """Return the status code of the run behind an objective, with some parameters changed."""
    with prepared(scenario, objective, changed) as (function, params, key):
        run = function.simulation.programs.cached(
            ("value", function.settings), lambda: jax.jit(function.unshared().with_status)
        )
        return int(run(params, key)[1])


def compare(
    scenario: Scenario, wrt: str | Sequence[str], objective: "str | Measure | None", mode: Mode
) -> "GradientCheck":
    """Compare derivatives with central differences, in the scenario's precision, see `simkit.check_gradient`.

    Args:
        scenario: scenario with overrides applied; float64 except for a rough check.
        wrt: paths of parameters; a branch selects all parameters below it.
        objective: as for `simkit.value_and_grad`.
        mode: as for `simkit.value_and_grad`.
    """
    names = selected_parameters(scenario, wrt)
    bounds = {name: parameter.bounds for name, parameter in scenario.parameters.items()}
    with prepared(scenario, objective) as (function, params, key):
        return gradient.check_gradient(function, params, key, names, mode, bounds)


@contextmanager
def prepared(
    scenario: Scenario, objective: "str | Measure | None", changed: Mapping[str, Any] = {}, seeds: int = 1
) -> "Iterator[tuple[Objective, Params, jax.Array]]":
    """Yield an objective of a scenario, its parameters and its random key, in the scenario's precision."""
    with precision(scenario.run.precision):
        simulation = build(scenario).with_params(changed)
        settle(scenario.name, lambda: seeds * size_in_bytes(shapes_of(simulation)[0]))
        function = objective_of(scenario, simulation, objective)
        yield function, simulation.params, jax.random.key(scenario.run.seed)


def selected_parameters(scenario: Scenario, wrt: str | Sequence[str]) -> list[str]:
    """Return the paths of the selected parameters, given by one name or several; a branch selects all below it.

    Raises:
        UserError: if a name is unknown (with the nearest), or no name is given.
    """
    names = [wrt] if isinstance(wrt, str) else wrt
    check_type("wrt", names, "a name or a list of names", list, tuple)
    return paths.selected(names, scenario.parameters, scenario.name)


def objective_name(scenario: Scenario, name: object) -> str:
    """Return the name of an objective, or its expression; for ``None`` the scenario's first objective.

    Raises:
        UserError: if the name is neither an objective of the scenario nor an expression.
    """
    if not isinstance(name, str | None):
        raise UserError(
            f"objective is of type {type(name).__name__}, and only its name can be stored; declare a "
            f"diagnostic as an objective in {scenario.file} and give that name, or make the function a quantity with "
            "simulation.with_quantities(NAME=function of (state, params))"
        )
    if name is not None and name not in scenario.objectives and not name.isidentifier():
        return parse(name, "objective").text
    names, is_python = list(scenario.objectives), scenario.made is not None
    if name in names or (name is None and (len(names) == 1 or (names and not is_python))):
        return names[0] if name is None else name
    as_final = f"; of a quantity write final({name})"
    if name is None and names:
        problem = [f"the objective is missing; give objective= one of {', '.join(names)}"]
    elif name is not None and names:
        hint = nearest(name, names)
        problem = [f"'{name}' is not an objective of {scenario.name}", hint, "" if hint.meant else as_final]
    else:
        table = f"; add an [objectives.NAME] table to {scenario.file}"
        function = "; give it one with simulation.with_quantities(NAME=function of (state, params))"
        remedy = (function if is_python else table) if name is None else as_final
        problem = [f"{scenario.name} has no objectives{remedy}"]
    raise UserError(*problem)


def objective_settings(scenario: Scenario, name: str) -> ObjectiveSettings:
    """Return the settings of an objective, by its `objective_name`: declared in the scenario, or of an expression."""
    default = ObjectiveSettings(name, "an expression", "", "final", square=False, goal="minimize", expression=name)
    return scenario.objectives.get(name, default)


def objective_of(scenario: Scenario, simulation: "Simulation", name: "str | Measure | None") -> "Objective":
    """Return a scenario's objective, or a measure of its frames and diagnostics, as a function of ``(params, key)``.

    Raises:
        UserError: if the scenario has no such objective, or its reduction does not fit the simulation.
    """
    steps, every = scenario.run.steps, scenario.run.every
    if callable(name):
        try:
            signature = inspect.signature(name)
            signature.bind(None, None, **dict.fromkeys({"stored"} & set(signature.parameters)))
        except ValueError:  # a built-in function has no signature
            pass
        except TypeError:
            raise UserError(
                "objective takes other arguments than a measure; write objective(frames, diagnostics)"
            ) from None
        return Objective(simulation, name, steps, every)
    name = objective_name(scenario, name)
    spec = objective_settings(scenario, name)
    if spec.expression:
        if name in scenario.objectives:
            where, others = f"{scenario.file}: objectives.{name}", {}
        else:
            where, others = "objective", {each: of.as_expression for each, of in scenario.objectives.items()}
        measure = simulation.programs.cached(
            ("measure", spec.expression, where, tuple(others.items())),
            lambda: measure_of(simulation, spec.expression, where, others),
        )
        return Objective(simulation, measure, steps, every)
    reduce = cast("Reduce", spec.reduce)
    try:
        return Objective(simulation, spec.quantity, steps, every, reduce=reduce, square=spec.square)
    except ValueError as error:
        raise UserError(f"{scenario.file}: objectives.{name}: {error}") from None


def _gathering(group: "ProcessGroup", objective: "Objective") -> Any:
    """Return `simkit.core.gradient.jitted` with results that are replicated in all processes."""
    group.check_buffers(objective.simulation)

    def jitted(*arguments: Any) -> Any:
        call = gradient.jitted(*arguments)
        return lambda params, keys: group.whole(call(params, keys))

    return jitted


def _standard_error(samples: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean along the first axis."""
    return np.std(samples, axis=0, ddof=1) / np.sqrt(len(samples))


def _worst(scenario: Scenario, statuses: np.ndarray) -> tuple[int, str]:
    """Return the status that limits the derivative, of a failed member if there is one, and its message with seeds."""
    for group in (FAILURES, CAUTIONS):
        (members,) = np.nonzero(np.isin(statuses, [int(each) for each in group]))
        if members.size:
            status, seeds = int(statuses[members[0]]), [str(scenario.run.seed + index) for index in members[:SHOWN]]
            more = f" and {members.size - SHOWN} more" if members.size > SHOWN else ""
            return status, f"{status_note(scenario, status)} (seed {', '.join(seeds)}{more})"
    return int(statuses[0]), ""
