"""Sweep plans: grids, lists, samples and tables of parameters, and values of the configuration, as one job."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from simkit.core.compilation import use_compilation_cache
from simkit.errors import UserError, one_line
from simkit.jobs.config_sweeps import ConfigSweep
from simkit.jobs.executors.choice import executor_of
from simkit.jobs.job import begin, returned
from simkit.jobs.samples import sampled
from simkit.jobs.sweeps import Sweep
from simkit.jobs.tables import tabulated
from simkit.scenario import checks
from simkit.scenario.loading import Source, load
from simkit.scenario.overrides import place_of
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

type Over = Mapping[str, Any]
"""Values by name of what is swept, see `sweep`."""

CONFIG = "config."
NOTHING: Over = MappingProxyType({})


def sweep(
    scenario: Source,
    over: Over = NOTHING,
    *,
    zip: bool = False,
    sample: str | None = None,
    members: int | None = None,
    table: Path | str | None = None,
    seeds: int = 1,
    output: Path | str | None = None,
    overwrite: bool = False,
    chunk: int | None = None,
    memory: int | str | None = None,
    final_frames: bool = True,
    workers: int | None = None,
    scheduler: str | None = None,
    deadline: float | None = None,
    **values: Any,
) -> "xarray.Dataset":
    """Run a scenario over parameters, configurations and seeds and return one labeled data set.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        over: ``{parameter: values}``, by path if it is nested: ``{"closure.scale": [0.5, 1.0]}``; every combination is
            run. ``{"config.KEY": values}`` are values of the configuration, one compilation each.
        zip: run the first values of all parameters together, then the second ones, and so on, instead of every
            combination.
        sample: ``"sobol"`` or ``"latin_hypercube"``: fill ranges, ``over={parameter: (low, high)}``, or ``(low, high,
            "log")`` evenly in the logarithm; scrambled with the scenario's seed.
        members: how many points to sample; a power of 2 for ``"sobol"``.
        table: CSV or Parquet file with a point in each row, its columns named after parameters.
        seeds: random seeds per point.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        chunk: members that run together; ``None`` chooses by memory. Those of simulations that end when they are done
            leave one by one, and others take their place.
        memory: how much the program may take, ``"8GiB"`` or a number of bytes; ``None`` takes a share of what is free.
        final_frames: keep the last frame of every member.
        workers: compute chunks in so many processes of this machine; ``None`` computes them in this one.
        scheduler: compute chunks on the Dask cluster of this scheduler, ``"tcp://host:8786"`` or the path of its file;
            ``output`` is then a folder that all its workers see.
        deadline: seconds without progress after which a chunk is given to another worker; ``None`` is 900.
        **values: other parameters, config or run settings.

    Returns:
        Diagnostics with dimensions (swept parameters..., seed, frame); without ``frame`` final frames, ``status``, and
        the objectives that are more than the last value of a diagnostic; the attribute ``objectives_left_out`` names
        those that need arrays at every frame. A large result stays in ``output`` and is read as it is used, see
        `simkit.open_run`; those objectives are not in it, and the attribute names them all.
        Parameters that walk together, are sampled or come from a table are coordinates along ``point``. Values of the
        configuration come first; arrays whose size depends on them are in the data sets of ``output/config_NNNN``.

    Raises:
        UserError: if anything given is wrong or does not fit in memory.
        RunFailedError: if every member turns non-finite; otherwise those that fail are named in a warning.
    """
    use_compilation_cache()
    counts = {"seeds": seeds, "chunk": chunk}
    counts = {name: checks.unwrapped(count) for name, count in counts.items()}
    executor = executor_of(workers, scheduler, deadline)
    job = planned(
        load(scenario, values),
        over,
        beside=values,
        zip=zip,
        sample=sample,
        members=members,
        table=table,
        final_frames=final_frames,
        memory=memory,
        executor=executor,
        **counts,
    )
    return returned(job, partial(begin, job, output, overwrite))


def planned(
    scenario: Scenario,
    over: Over,
    *,
    zip: bool = False,
    sample: str | None = None,
    members: int | None = None,
    table: Path | str | None = None,
    memory: int | str | None = None,
    beside: Iterable[str] = (),
    **asked: Any,
) -> Sweep:
    """Return the job of a sweep.

    Args:
        scenario: overrides applied.
        over: as for `sweep`, as are the others.
        zip: whether values walk together.
        sample: how ranges are filled.
        members: number of points of a sample.
        table: a file of points.
        memory: how much a program may take.
        beside: keys of the overrides that were applied, none of which may be swept.
        **asked: further fields of `Sweep`.

    Raises:
        UserError: if they do not go together, or a sample or table cannot be made.
    """
    from simkit.engine.memory import size_given

    if not isinstance(over, Mapping):
        raise UserError(f"over is of type {type(over).__name__}; give {{name of a parameter: list of values}}")
    configs = {name: values for name, values in over.items() if str(name).startswith(CONFIG)}
    points = {name: values for name, values in over.items() if name not in configs}
    given = [word for word, is_given in (("zip=True", zip), ("sample=", sample), ("table=", table)) if is_given]
    if len(given) > 1:
        raise UserError(f"{given[0]} and {given[1]} are two ways to make points; give one of them")
    if (members is None) != (sample is None):
        raise UserError("members= is the number of points of a sample; give both sample= and members=, or neither")
    origin = ""
    if sample is not None and members is not None:
        points, origin = sampled(scenario, points, sample, members)
    elif table is not None:
        if points:
            raise UserError(f"table= has all points, so over '{next(iter(points))}' has no place; make it a column")
        points, origin = tabulated(scenario, table)
    elif zip and len(points) < 2:
        raise UserError("zip=True makes values of several parameters walk together; give at least 2 parameters")
    _check_unset(scenario, (*configs, *(f"params.{name}" for name in points)), beside)
    asked |= {"zip": bool(given), "origin": origin, "memory": None if memory is None else size_given(memory)}
    if configs:
        return ConfigSweep(scenario, points, configs=configs, **asked)
    return Sweep(scenario, points, **asked)


def _check_unset(scenario: Scenario, swept: Iterable[str], keys: Iterable[str]) -> None:
    """Refuse a value for what is swept, or for a part of it, which the values of the sweep would replace."""
    for key in keys:
        place = place_of(scenario, key)
        if taken := next((name for name in swept if f"{place}.".startswith(f"{name}.")), None):
            name = taken.removeprefix("params.")
            raise UserError(
                f"'{name}' is swept, so the value given for {one_line(key, 80)} has no effect; leave it out"
            )
