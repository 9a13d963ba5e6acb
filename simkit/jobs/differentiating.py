"""Derivatives from Python: in memory, or stored in a run directory."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError
from simkit.jobs.derivatives import Mode, differentiate, parameter_names
from simkit.jobs.entrance import enter
from simkit.jobs.gradients import gradient_job
from simkit.jobs.job import begin
from simkit.jobs.mean_derivatives import differentiate_mean
from simkit.jobs.outcome import NOT_FINITE
from simkit.scenario.loading import Source, load

if TYPE_CHECKING:
    from simkit.core.objective import Measure


def value_and_grad(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    objective: "str | Measure | None" = None,
    mode: Mode = "shortest",
    memory: int | str | None = None,
    seeds: int | None = None,
    output: Path | str | None = None,
    overwrite: bool = False,
    **values: Any,
) -> tuple[float, dict[str, np.ndarray]]:
    """Return an objective's value and its derivatives.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names; of nested ones the path, ``"closure.0.weight"``, or a branch for all below it.
        objective: name of the objective; ``None`` takes the first in the file. Or a function ``(frames, diagnostics) ->
            scalar`` in ``jax.numpy`` of the observed arrays and diagnostics, with a leading frame axis (of length 1,
            the last frame, if the simulation converges).
        mode: ``"reverse"``, ``"forward"`` or ``"shortest"``, see `simkit.core.gradient.with_derivative`.
        memory: memory limit of the derivative, ``"200MB"`` or a number of bytes: as many states are stored as fit, and
            steps are recomputed from them, see `simkit.core.budget`; with ``output`` it limits a piece of the run.
            ``None`` stores about the square root of the number of steps.
        seeds: differentiate the mean over this number of consecutive seeds, beginning with the scenario's, as one
            vectorized program. ``simkit grad --seeds`` also prints the standard errors.
        output: run directory, for a derivative of many steps: the states between about 20 pieces of the run are stored
            in it, and `simkit.resume` finishes the derivative after an interruption. ``None`` keeps all in memory.
        overwrite: replace an existing run directory.
        **values: parameters, config or run settings.

    Returns:
        The value and ``{path: derivative}``. Warns if the run failed, if a number is not finite, or if the derivative
        is not that of the physics.

    Raises:
        UserError: if an argument is wrong.
    """
    enter("value_and_grad", scenario, values, overwrite=overwrite)
    found = load(scenario, values)
    if output is not None and seeds is not None:
        raise UserError("output= stores the derivative of one run, not of a mean; leave it out, or leave seeds= out")
    if seeds is not None:
        result = differentiate_mean(found, parameter_names(wrt), objective, mode, seeds, memory)
    elif output is None:
        result = differentiate(found, parameter_names(wrt), objective, mode, memory)
    else:
        result = begin(gradient_job(found, parameter_names(wrt), objective, mode, memory), output, overwrite)
    note = result.note
    if not note and not result.is_finite:
        note = f"{found.name}: the objective or a derivative is not finite: {NOT_FINITE}"
    if note:
        warnings.warn(note, stacklevel=2)
    return result.value, result.derivative
