"""Derivatives of the mean of an objective over random seeds, computed as one vectorized program."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import budget, gradient
from simkit.core.simulation import draws
from simkit.core.status import CAUTIONS, FAILURES
from simkit.engine.memory import memory_in_bytes
from simkit.errors import UserError
from simkit.jobs.derivatives import (
    Derivative,
    Mode,
    fit_in_words,
    memory_message,
    note_of_steps,
    prepared,
    remedy_for,
    selected_parameters,
    status_note,
    zeros_in,
)
from simkit.jobs.points import check_counts
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.core.objective import Measure, Objective
    from simkit.engine.processes import ProcessGroup

# Seeds named in a message.
SHOWN = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeanDerivative(Derivative):
    """The derivative of the mean of an objective over seeds.

    Attributes:
        seeds: number of seeds n.
        value_error: standard error of the mean, s / sqrt(n) with the sample standard deviation s of the values.
        error: standard errors of the derivatives, ``{name: array}``.
    """

    seeds: int
    value_error: float
    error: dict[str, np.ndarray]


def differentiate_mean(
    scenario: Scenario,
    wrt: Sequence[str],
    objective: "str | Measure | None",
    mode: Mode,
    seeds: int,
    memory: int | str | None = None,
    group: "ProcessGroup | None" = None,
) -> MeanDerivative:
    """Return the derivative of the mean over consecutive seeds, beginning with the scenario's.

    Args:
        scenario: scenario with overrides applied.
        wrt: paths of the parameters.
        objective: as for `simkit.value_and_grad`.
        mode: likewise.
        seeds: number of seeds, at least 2.
        memory: memory limit, as for `simkit.value_and_grad`.
        group: processes over which the seeds are divided.

    Raises:
        UserError: if a name is unknown, the derivative does not fit in memory, the initial state does not depend on the
            seed, or the processes do not divide the seeds.
    """
    check_counts(scenario, seeds, None)
    if seeds < 2:
        raise UserError(f"seeds = {seeds} leaves no mean; give at least 2, or leave seeds= out")
    if group and seeds % group.count:
        raise UserError(f"{group.count} processes do not divide seeds = {seeds}; give a multiple")
    if group and memory is not None:
        raise UserError("memory= is for one process; leave it out, or the number of processes")
    names, limit = selected_parameters(scenario, wrt), None if memory is None else memory_in_bytes(memory)
    compiling = gradient.jitted if limit is None else partial(budget.fitted, memory=limit)
    with prepared(scenario, objective) as (function, params, _):
        if not draws(function.simulation):
            raise UserError(f"{scenario.name} does not depend on the seed; leave seeds= out")
        keys = jax.vmap(jax.random.key)(scenario.run.seed + jnp.arange(seeds, dtype=jnp.uint32))
        if group:
            params, keys, compiling = group.whole(params), group.members(keys), _gathering(group, function)
        try:
            call, _, *results = gradient.derivative_with_growth(function, names, mode, params, keys, compiling)
        except budget.NoRoomError as error:
            raise UserError(memory_message(scenario, error.needed, limit or 0, remedy_for(error))) from None
        values, statuses, slopes = jax.tree.map(np.asarray, results)
        fit = fit_in_words(call, function, limit) if isinstance(call, budget.Fitted) and limit else ""
    means = {name: slopes[name].mean(axis=0) for name in names}
    status, note = _worst(scenario, statuses)
    return MeanDerivative(
        float(values.mean()),
        means,
        status,
        note or note_of_steps(scenario, objective, zeros_in(means)),
        fit,
        seeds=seeds,
        value_error=float(_standard_error(values)),
        error={name: _standard_error(slopes[name]) for name in names},
    )


def _gathering(group: "ProcessGroup", objective: "Objective") -> Any:
    """Return `simkit.core.gradient.jitted` with results that are replicated in all processes.

    Raises:
        UserError: if the simulation has buffers that grow.
    """
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
        (found,) = np.nonzero(np.isin(statuses, [int(each) for each in group]))
        if found.size:
            status, seeds = int(statuses[found[0]]), [str(scenario.run.seed + index) for index in found[:SHOWN]]
            more = f" and {found.size - SHOWN} more" if found.size > SHOWN else ""
            return status, f"{status_note(scenario, status)} (seed {', '.join(seeds)}{more})"
    return int(statuses[0]), ""
