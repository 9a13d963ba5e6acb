"""Choose parameters so that an objective is smallest: from where they are, or from several starts at once."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.compilation import use_compilation_cache
from simkit.jobs.derivatives import Mode, names_of, objective_name
from simkit.jobs.job import begin, returned
from simkit.jobs.optimizations import Method, Optimization, learning_rate_of
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
    """Choose parameters, within their bounds, so that an objective is smallest (or largest, if that is its goal).

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names; of nested ones the path, ``"closure.0.weight"``, or a branch for all below it.
        objective: which objective; ``None`` takes the first in the file.
        method: ``"lbfgs"`` for smooth objectives, ``"adam"`` for noisy ones.
        iterations: at most this many updates.
        learning_rate: of Adam, in units of the bounded coordinate (see `simkit.core.optimization.optimization`);
            ``None`` is 0.1.
        mode: how derivatives propagate, see `simkit.core.gradient.with_derivative`.
        starts: begin at several places at once: so many between the bounds, or ``{parameter: values}``, of which every
            combination is one; the result then has them as axes, as that of `simkit.sweep`.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        **values: other parameters, config or run settings.

    Returns:
        ``loss`` and the parameters over the iterations, and the best parameters so far as ``best_NAME``; ``bound_NAME``
        is -1 or 1 where its lower or upper bound holds that, and the attribute ``at_bounds`` says so in words.

    Raises:
        UserError: if anything given is wrong.
        RunFailedError: if the objective turns non-finite.
    """
    use_compilation_cache()
    found = load(scenario, values)
    names, count = tuple(names_of(wrt)), checks.unwrapped(iterations)
    rate, named = learning_rate_of(method, checks.unwrapped(learning_rate)), objective_name(found, objective)
    if starts is not None:
        asked = {"method": method, "iterations": count, "learning_rate": rate, "mode": mode}
        several = starts_of(found, names, named, starts, **asked)
        return returned(several, partial(begin, several, output, overwrite))
    job = Optimization(found, names, named, method, count, rate, mode)
    return returned(job, partial(begin, job, output, overwrite))
