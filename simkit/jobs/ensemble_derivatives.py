"""Derivatives of averages by fluctuations, in Python: `simkit.ensemble_derivative`."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from simkit.core import fluctuations
from simkit.core.converge import with_room
from simkit.core.devices import computing_on
from simkit.core.precision import precision
from simkit.core.simulation import Simulation, State
from simkit.jobs.derivatives import Derivative, selected_parameters, status_note
from simkit.jobs.job import enter
from simkit.scenario.build import build
from simkit.scenario.made_in_python import Source, load
from simkit.scenario.scenario import Scenario

# Part of a run that is skipped by default.
SKIPPED = 5


@dataclasses.dataclass(frozen=True)
class EnsembleAverage:
    """Average of a quantity over the distribution that a simulation samples, and its derivatives.

    Attributes:
        value: the average.
        value_error: its standard error; 95 % of averages are within 2.1 of them.
        derivative: ``{path: array}``.
        error: their standard errors, ``{path: array}``.
        note: limits of the validity, in one line; empty if there are none.
    """

    value: float
    value_error: float
    derivative: dict[str, np.ndarray]
    error: dict[str, np.ndarray]
    note: str = ""


def ensemble_derivative(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    quantity: str,
    every: int = 10,
    skip: int | None = None,
    device: str = "auto",
    **values: Any,
) -> EnsembleAverage:
    """Return the average of a quantity in a bath, and its derivatives by fluctuations, with error bars.

        d<A>/dp = <dA/dp> - cov(A, dU/dp) / T,    by temperature cov(A, U) / T^2,    by pressure -cov(A, V) / T

    No derivative passes through the time steps, so that chaos does no harm: use it for averages of liquids, where
    `simkit.value_and_grad` is of no use after a short time. It serves molecular dynamics in a bath: ``langevin``,
    ``nose_hoover``, ``bussi``, ``brownian``, at constant volume or pressure. Derivatives are those of the exact
    distribution: zero by the time step, a friction and time constants. Errors take correlations of samples into
    account.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names, as for `simkit.value_and_grad`.
        quantity: name of a diagnostic, such as ``"pressure"``.
        every: steps between samples.
        skip: steps before the first sample, until the run has forgotten its start; ``None`` for a fifth of the run.
        device: as for `simkit.run`.
        **values: parameters, config or run settings.

    Returns:
        Value, derivatives and their standard errors. Warns if the run failed, or is too short for its correlations.

    Raises:
        UserError: if an argument is wrong, the simulation declares no distribution, or the effect of a parameter is
            not known from fluctuations: lengths of rigid bonds, places of frozen particles.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: params["k"] / 2 * jnp.sum(x**2))
        >>> values = {"k": 1.0, "temperature": 2.0, "time_step": 0.2, "mass": 1.0, "friction": 1.0}
        >>> cloud = molecular.dynamics.langevin(spring, lambda params, key: jnp.zeros((100, 2)), params=values)
        >>> cloud = cloud.with_quantities(spread=lambda state, params: jnp.mean(state.position**2))
        >>> average = simkit.ensemble_derivative(cloud, ["k", "temperature"], quantity="spread", steps=5000)
        >>> print(f"{average.derivative['temperature']:.0f} = 1 / k,", average.error["temperature"] < 0.2)
        1 = 1 / k, True
    """
    enter("ensemble_derivative", scenario, values)
    with computing_on(device):
        loaded = load(scenario, values)
        average = averaged_over_ensemble(loaded, wrt, quantity, every, skip)
    if average.note:
        warnings.warn(average.note, stacklevel=2)
    return EnsembleAverage(average.value, average.value_error, average.derivative, average.error, average.note)


def averaged_over_ensemble(
    scenario: Scenario, wrt: str | Sequence[str], quantity: str, every: int, skip: int | None
) -> Derivative:
    """Return an average and its derivatives by fluctuations, see `ensemble_derivative`, whose arguments these are."""
    names, steps = selected_parameters(scenario, wrt), scenario.run.steps
    skip = steps // SKIPPED if skip is None else skip

    def program(simulation: Simulation) -> Callable[..., Any]:
        return jax.jit(
            fluctuations.ensemble_derivative(simulation, quantity, names, steps=steps, every=every, skip=skip)
        )

    def attempt(simulation: Simulation, _: State) -> tuple[State, jax.Array, Any]:
        about = ("fluctuations", quantity, tuple(names), steps, every, skip)
        run = simulation.programs.found(about, lambda: program(simulation.unshared()))
        result, state, status = run(simulation.params, jax.random.key(scenario.run.seed))
        return state, status, (jax.tree.map(np.asarray, result), int(status))

    with precision(scenario.run.precision):
        simulation = build(scenario)
        weight = fluctuations.weight_of(simulation)
        result, status = with_room(simulation, attempt)
    notes = [status_note(scenario, status)]
    if isinstance(weight, fluctuations.Weight):
        notes.append(weight.caution)
    if result.correlation > fluctuations.CORRELATED:
        notes.append("a twentieth of the run is not longer than the correlations of samples: errors are too small")
    return Derivative(
        float(result.value),
        result.derivative,
        status,
        "; ".join(filter(None, notes)),
        value_error=float(result.value_error),
        error=result.error,
    )
