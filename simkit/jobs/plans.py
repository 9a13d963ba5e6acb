"""Sweeps in Python: `simkit.sweep` over grids, lists, samples and tables of parameters, and over configurations."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from simkit.engine.memory import memory_in_bytes
from simkit.errors import UserError, one_line
from simkit.jobs.config_sweeps import ConfigSweep
from simkit.jobs.entrance import enter
from simkit.jobs.executors.choice import executor_of
from simkit.jobs.job import begin, run_to_dataset
from simkit.jobs.samples import sampled
from simkit.jobs.sweeps import Sweep, SweepJob
from simkit.jobs.tables import tabulated
from simkit.scenario import checks
from simkit.scenario.loading import Source, load
from simkit.scenario.overrides import place_of
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

type Over = Mapping[str, Any]
"""Values by name of a swept parameter or configuration key, see `sweep`."""

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
        over: ``{parameter: values}``, by path if nested: ``{"closure.scale": [0.5, 1.0]}``; every combination is run.
            ``{"config.KEY": values}`` sweeps the configuration, with one compilation per value.
        zip: run the first values of all parameters together, then the second ones, and so on, instead of every
            combination.
        sample: ``"sobol"`` or ``"latin_hypercube"``: fill ranges, ``over={parameter: (low, high)}``, or ``(low, high,
            "log")`` evenly in the logarithm; scrambled with the scenario's seed.
        members: number of sampled points; a power of 2 for ``"sobol"``.
        table: CSV or Parquet file with one point per row and columns named after parameters.
        seeds: number of random seeds per point.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        chunk: members that run together; ``None`` chooses by memory. A member of a converging simulation that has
            ended is replaced by the next.
        memory: memory limit of the program, ``"8GiB"`` or a number of bytes; ``None`` takes 60 % of the free memory.
        final_frames: keep the last frame of every member.
        workers: number of worker processes on this machine that compute chunks; ``None`` computes them in this process.
        scheduler: Dask scheduler whose cluster computes chunks, ``"tcp://host:8786"`` or the path of its file;
            ``output`` must then be a folder that all its workers see.
        deadline: seconds without progress after which a chunk is given to another worker; ``None`` is 900.
        **values: other parameters, config or run settings.

    Returns:
        Diagnostics with dimensions (swept parameters..., seed, frame); without ``frame`` final frames, ``status``, and
        the objectives other than the last value of a diagnostic; the attribute ``objectives_left_out`` names those that
        need arrays at every frame. A large result stays in ``output`` and is read when it is indexed, see
        `simkit.open_run`. Parameters that are zipped, sampled or read from a table are coordinates along ``point``.
        Axes of the configuration come first; arrays whose size depends on it are in the data sets of
        ``output/config_NNNN``.

    Raises:
        UserError: if an argument is wrong, or the sweep does not fit in memory.
        RunFailedError: if every member turns non-finite; otherwise a warning names the failed members.
    """
    enter("sweep", scenario, over, values, overwrite=overwrite, zip=zip, final_frames=final_frames)
    counts = {"seeds": seeds, "chunk": chunk}
    counts = {name: checks.unwrapped(count) for name, count in counts.items()}
    executor = executor_of(workers, scheduler, deadline)
    job = planned(
        load(scenario, values),
        over,
        overrides=values,
        zip=zip,
        sample=sample,
        members=members,
        table=table,
        final_frames=final_frames,
        memory=memory,
        executor=executor,
        **counts,
    )
    return run_to_dataset(job, partial(begin, job, output, overwrite))


def planned(
    scenario: Scenario,
    over: Over,
    *,
    zip: bool = False,
    sample: str | None = None,
    members: int | None = None,
    table: Path | str | None = None,
    memory: int | str | None = None,
    overrides: Iterable[str] = (),
    **fields: Any,
) -> SweepJob:
    """Return the job of a sweep.

    Args:
        scenario: scenario with overrides applied.
        over: as for `sweep`, as are the next five.
        zip: whether values at the same index of all lists make a point.
        sample: sampling method.
        members: number of points of a sample.
        table: file of points.
        memory: memory limit of a program.
        overrides: keys of the overrides in ``scenario``, none of which may be swept.
        **fields: further fields of `Sweep`.

    Raises:
        UserError: if the arguments exclude each other, or a sample or table is invalid.
    """
    if not isinstance(over, Mapping):
        raise UserError(f"over is of type {type(over).__name__}; give {{name of a parameter: list of values}}")
    configs = {name: values for name, values in over.items() if str(name).startswith(CONFIG)}
    points = {name: values for name, values in over.items() if name not in configs}
    given = [word for word, is_given in (("zip=True", zip), ("sample=", sample), ("table=", table)) if is_given]
    if len(given) > 1:
        raise UserError(f"{given[0]} and {given[1]} are two ways to make points; give one of them")
    if sample is not None and members is None:
        raise UserError("sample= needs the number of points; give members= too")
    if sample is None and members is not None:
        remedy = "leave it out" if given else "give sample= too, or leave it out"
        raise UserError(f"members= is the number of points of a sample; {remedy}")
    origin = ""
    if sample is not None and members is not None:
        points, origin = sampled(scenario, points, sample, members)
    elif table is not None:
        if points:
            raise UserError(f"table= gives all points; make '{next(iter(points))}' of over a column of it")
        points, origin = tabulated(scenario, table)
    elif zip and len(points) < 2:
        raise UserError(
            "zip=True pairs the values of several parameters; give at least 2 parameters"
            + (", besides config keys, which are combined with every pair" if configs else "")
        )
    _check_unset(scenario, (*configs, *(f"params.{name}" for name in points)), overrides)
    fields |= {"zip": bool(given), "origin": origin, "memory": None if memory is None else memory_in_bytes(memory)}
    if configs:
        return ConfigSweep(scenario, points, configs=configs, **fields)
    return Sweep(scenario, points, **fields)


def _check_unset(scenario: Scenario, swept: Iterable[str], keys: Iterable[str]) -> None:
    """Refuse an override of a swept parameter or key, or of a part of one, which the sweep would replace."""
    for key in keys:
        place = place_of(scenario, key)
        if taken := next((name for name in swept if f"{place}.".startswith(f"{name}.")), None):
            name = taken.removeprefix("params.")
            raise UserError(
                f"'{name}' is swept, so the value given for {one_line(key, 80)} has no effect; leave it out"
            )
