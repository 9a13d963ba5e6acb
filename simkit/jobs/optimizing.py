"""Optimization of parameters in Python: `simkit.optimize`, from one start or several at once."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.optimizers.methods import Method, learning_rate_of
from simkit.jobs.derivatives import Mode, objective_name, parameter_names
from simkit.jobs.entrance import enter
from simkit.jobs.job import begin, run_to_dataset
from simkit.jobs.optimizations import Optimization
from simkit.jobs.starts import starts_of
from simkit.scenario import checks
from simkit.scenario.loading import Source, load

if TYPE_CHECKING:
    import xarray


def optimize(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    objective: str | None = None,
    method: Method = "lbfgs",
    iterations: int = 50,
    learning_rate: float | None = None,
    mode: Mode = "shortest",
    starts: int | Mapping[str, Any] | None = None,
    output: Path | str | None = None,
    overwrite: bool = False,
    **values: Any,
) -> "xarray.Dataset":
    """Minimize an objective (or maximize it, if that is its goal) over parameters within their bounds.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names; of nested ones the path, ``"closure.0.weight"``, or a branch for all below it.
        objective: name of the objective; ``None`` takes the first in the file.
        method: ``"lbfgs"`` for smooth objectives, ``"adam"`` for noisy derivatives, ``"levenberg_marquardt"`` for sums
            of squares, ``"cma_es"`` for objectives without useful derivatives (needs ``simkit[evolution]``).
        iterations: maximum number of updates.
        learning_rate: learning rate of Adam, in units of the bounded coordinate (see
            `simkit.core.optimization.optimization`); ``None`` is 0.1.
        mode: mode of differentiation, see `simkit.core.gradient.with_derivative`.
        starts: optimize from several starts at once: a number of starts between the bounds, or ``{parameter: values}``
            of which every combination is a start; the result then has the axes of `simkit.sweep`.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        **values: other parameters, config or run settings.

    Returns:
        ``loss`` and the parameters over the iterations, and the best parameters so far as ``best_NAME``; ``bound_NAME``
        is -1 or 1 where the best value is at its lower or upper bound, and the attribute ``at_bounds`` lists these.

    Raises:
        UserError: if an argument is wrong.
        RunFailedError: if the objective turns non-finite.
    """
    enter("optimize", scenario, values, overwrite=overwrite)
    found = load(scenario, values)
    names, count = tuple(parameter_names(wrt)), checks.unwrapped(iterations)
    rate, name = learning_rate_of(method, checks.unwrapped(learning_rate)), objective_name(found, objective)
    if starts is not None:
        options = {"method": method, "iterations": count, "learning_rate": rate, "mode": mode}
        several = starts_of(found, names, name, starts, **options)
        return run_to_dataset(several, partial(begin, several, output, overwrite))
    job = Optimization(found, names, name, method, count, rate, mode)
    return run_to_dataset(job, partial(begin, job, output, overwrite))
