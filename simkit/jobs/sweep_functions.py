"""Sweeps in Python: `simkit.sweep` and `simkit.merge`."""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas
import xarray

from simkit.core.arguments import check_type
from simkit.core.devices import computing_as, computing_on
from simkit.core.precision import precision
from simkit.core.settings import unwrapped
from simkit.core.simulation import Simulation
from simkit.engine.memory import memory_in_bytes
from simkit.errors import UserError, argument, one_line
from simkit.jobs.chunk_size import Sizes
from simkit.jobs.chunks import Chunks
from simkit.jobs.config_sweeps import ConfigSweep
from simkit.jobs.executors.choice import executor_of
from simkit.jobs.job import Prepared, begin, check_disk, enter, prepared_of, run_to_dataset
from simkit.jobs.points import POINT, sampled, tabulated
from simkit.jobs.reporting import Report, Warn
from simkit.jobs.sweep_datasets import ChunkReader, member_axis
from simkit.jobs.sweeps import Sweep, SweepJob
from simkit.scenario.made_in_python import Source, load
from simkit.scenario.overrides import place_of
from simkit.scenario.scenario import Scenario
from simkit.storage.files import write_arrays
from simkit.storage.run_directory import RunDirectory, check_output, folder_of

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
    executor: str | None = None,
    device: str = "auto",
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
        executor: name of an executor of another package, with its options after a colon: ``"cluster:queue=short"``.
        device: as for `simkit.run`.
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

    Example:
        >>> sweep = simkit.sweep("projectile", {"launch_angle": [30.0, 60.0], "drag": [0.0, 0.1]}, every=100)
        >>> sweep["height"].dims
        ('launch_angle', 'drag', 'seed', 'frame')
        >>> print(sweep["height"].isel(frame=-1).squeeze().round(3).values)
        [[0.595 0.519]
         [3.523 3.109]]
    """
    enter("sweep", scenario, over, values, overwrite=overwrite, zip=zip, final_frames=final_frames)
    with computing_on(device):
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
            executor=executor_of(workers, scheduler, deadline, executor),
            seeds=unwrapped(seeds, "seeds"),
            chunk=unwrapped(chunk, "chunk"),
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
    check_type("over", over, "{name of a parameter: list of values}", Mapping)
    configs = {name: values for name, values in over.items() if str(name).startswith(CONFIG)}
    points = {name: values for name, values in over.items() if name not in configs}
    ways = {argument("zip", "True"): zip, argument("sample"): sample, argument("table"): table}
    ways = [word for word, value in ways.items() if value]
    problem = ""
    if len(ways) > 1:
        problem = f"{ways[0]} and {ways[1]} are two ways to make points; give one of them"
    elif (sample is None) != (members is None):
        both = f"{argument('sample')} and {argument('members')}, the number of its points"
        problem = f"a sample needs {both}; give both, or leave both out"
    elif table is not None and points:
        problem = f"{argument('table')} gives all points; make '{next(iter(points))}' of over a column of it"
    if problem:
        raise UserError(problem)
    origin = ""
    if sample is not None and members is not None:
        points, origin = sampled(scenario, points, sample, members)
    elif table is not None:
        points, origin = tabulated(scenario, table)
    _check_unset(scenario, (*configs, *(f"params.{name}" for name in points)), overrides)
    fields |= {"zip": bool(ways), "origin": origin, "memory": None if memory is None else memory_in_bytes(memory)}
    if configs:
        return ConfigSweep(scenario, points, configs=configs, **fields)
    return Sweep(scenario, points, **fields)


def _check_unset(scenario: Scenario, swept: Iterable[str], keys: Iterable[str]) -> None:
    """Refuse an override of a swept parameter or key, or of a part of one, which the sweep would replace."""
    for key in keys:
        place = place_of(scenario, key)
        if replaced := next((name for name in swept if f"{place}.".startswith(f"{name}.")), None):
            name = replaced.removeprefix("params.")
            raise UserError(
                f"'{name}' is swept, so the value given for {one_line(key, 80)} has no effect; leave it out"
            )


def merge(
    folders: Sequence[Path | str],
    output: Path | str,
    *,
    overwrite: bool = False,
    simulation: "Simulation | None" = None,
) -> "xarray.Dataset":
    """Merge finished sweeps of the same scenario and settings into one, which is opened and resumed like any other.

    Sweeps of equal points must have consecutive seeds; sweeps of different points must have equal seeds and no common
    point. Damaged chunks of the result are computed again by `resume`, and their last digits may then differ.

    Args:
        folders: run directories of sweeps, at least two.
        output: directory to write.
        overwrite: replace an existing run directory.
        simulation: their simulation, if it was made in Python.

    Returns:
        The result that `simkit.sweep` of all points and seeds returns.

    Raises:
        UserError: naming a folder without a finished sweep, a difference in settings, or a damaged chunk.

    Example:
        >>> for seed in (0, 8):
        ...     options = {"launch_scatter": 0.1, "output": f"runs/seeds_{seed}", "overwrite": True}
        ...     _ = simkit.sweep("bouncing_ball", seeds=8, seed=seed, **options)
        >>> both = simkit.merge(["runs/seeds_0", "runs/seeds_8"], "runs/seeds", overwrite=True)
        >>> both.sizes["seed"]
        16
    """
    enter("merge", simulation, overwrite=overwrite)
    opened = finished_sweeps(folders, simulation)
    work = partial(merged, opened, output, overwrite=overwrite, warn=warnings.warn)
    return run_to_dataset(Sweep.of(opened[0]), lambda report: work(report=report))


def finished_sweeps(folders: Sequence[Path | str], simulation: "Simulation | None" = None) -> list[RunDirectory]:
    """Open the run directories of finished sweeps.

    Args:
        folders: run directories, at least two.
        simulation: their simulation, if it was made in Python.

    Raises:
        UserError: naming a folder that is not a finished sweep, or is given twice.
    """
    listed = list(folders) if isinstance(folders, Iterable) and not isinstance(folders, str | Path) else []
    if len(listed) < 2 or len({folder_of(folder).resolve() for folder in listed}) < len(listed):
        raise UserError(
            f"folders = {one_line(repr(folders), 60)}: merging takes two sweeps or more, each once; give their folders"
        )
    opened = [RunDirectory.open(folder, simulation) for folder in listed]
    for directory in opened:
        words = "; give the folder of a sweep, such as config_0000 in it"
        directory.check_kind(directory.kind == Sweep.kind, words)
        directory.check_finished(Sweep.of(directory).results)
    return opened


def merged(
    opened: Sequence[RunDirectory], output: Path | str, *, overwrite: bool, warn: Warn, report: Report
) -> "xarray.Dataset":
    """Write finished sweeps as one sweep, and return its result.

    Raises:
        UserError: if they cannot be merged.
    """
    folder, sweeps = folder_of(output), [Sweep.of(directory) for directory in opened]
    check_output(folder, overwrite=overwrite)
    if folder.resolve() in [directory.path.resolve() for directory in opened]:
        raise UserError(f"{folder} is one of the sweeps that are merged; choose another with {argument('output')}")
    whole, numbers = joined(opened, sweeps)
    with computing_as(opened[0].device), precision(whole.scenario.run.precision):
        for directory in opened:
            directory.warn_of_changes(warn)
        prepared = prepared_of(whole, new=False)
        job = _chunked(whole, prepared)
        check_disk(Sizes(job, prepared).files, folder, "merge fewer sweeps")
        request = opened[0].manifest["request"]
        request = {**request, **{name: getattr(job, name) for name in (*job.request_checks, *job.request_added_later)}}
        with RunDirectory.created(folder, job.kind, job.scenario, request, overwrite=overwrite) as directory:
            chunks = Chunks(job, prepared, directory)
            frames = chunks.plan.frames + 1
            sources = [
                (ChunkReader(source, frames, sweep.chunk_length(converges=chunks.uses_lanes)), sweep.members)
                for source, sweep in zip(opened, sweeps, strict=True)
            ]
            try:
                for index in range(chunks.count):
                    file, members = chunks.file(index), np.asarray(chunks.members(index))
                    assert file is not None  # there is a directory
                    write_arrays(file.path, _gathered(numbers[members], sources), file.seal)
                    report((index + 1) / chunks.count, f"{members[-1] + 1} of {job.members} members")
            except UserError:
                # Without archives the folder is removed; `resume` would compute the missing chunks of a partial merge.
                for path in directory.path.glob("chunk_*.npz"):
                    path.unlink()
                raise
            return job.execute(prepared, directory, report, warn)


def _chunked(sweep: Sweep, prepared: Prepared) -> Sweep:
    """Return a joined sweep with chunk size, blocks and storage chosen."""
    sizes = Sizes(sweep, prepared)
    job = dataclasses.replace(sweep, in_one_file=sizes.is_in_one_file)
    most = job.members if job.in_one_file else sizes.most_members
    if not prepared.simulation.converges:
        return dataclasses.replace(job, chunk=min(job.chunk or job.members, most))
    return dataclasses.replace(job, blocks=-(-job.members // most))


def _gathered(numbers: np.ndarray, sources: Sequence[tuple[ChunkReader, int]]) -> dict[str, np.ndarray]:
    """Return the arrays of members, given by their number among those of all sweeps, from the chunks of the sweeps."""
    arrays: dict[str, np.ndarray] = {}
    first = 0
    for reader, members in sources:
        within = (numbers >= first) & (numbers < first + members)
        chunks, rows = np.divmod(numbers - first, reader.length)
        for index in np.unique(chunks[within]).tolist():
            here = np.flatnonzero(within & (chunks == index))
            for name, array in reader.read(index).items():
                axis = member_axis(name)
                shape = (*array.shape[:axis], len(numbers), *array.shape[axis + 1 :])
                target = arrays.setdefault(name, np.zeros(shape, array.dtype))
                target[(slice(None),) * axis + (here,)] = np.take(array, rows[here], axis=axis)
        first += members
    return arrays


def joined(directories: Sequence[RunDirectory], sweeps: Sequence[Sweep]) -> tuple[Sweep, np.ndarray]:
    """Join sweeps of the same scenario and settings.

    Grids that differ in the values of one parameter become one grid, grids that differ in their seeds one grid with all
    seeds, and all others a list of points.

    Returns:
        The joined sweep, whose chunk size is not chosen yet, and the number of each of its members among the members of
        all sweeps one after another, int (members,).

    Raises:
        UserError: naming a difference in their settings, or a point or seed that two of them share.
    """
    paths = [directory.path for directory in directories]
    settings = [_settings(sweep, directory) for sweep, directory in zip(sweeps, directories, strict=True)]
    for path, other in zip(paths[1:], settings[1:], strict=True):
        for name, value in settings[0].items():
            if other.get(name, value) != value:
                raise UserError(
                    f"{paths[0]} and {path} differ: {name} is {value!r:.60} and {other[name]!r:.60}; merge sweeps of "
                    "the same scenario and settings"
                )
    axis = _axis_of(paths, sweeps)
    ends = np.cumsum([sweep.members for sweep in sweeps])
    numbered = [_numbered(sweep, end - sweep.members, axis) for sweep, end in zip(sweeps, ends.tolist(), strict=True)]
    whole = xarray.concat(numbered, axis, coords="minimal", compat="override", join="exact")
    if axis == "seed" or (axis != POINT and all(list(s.over[axis]) == sorted(s.over[axis]) for s in sweeps)):
        whole = whole.sortby(axis)
    first = min(sweeps, key=lambda sweep: sweep.scenario.run.seed)
    _check_joined(whole, axis, list(first.over), paths)
    over = {name: tuple(whole[name].values.tolist()) for name in first.over}
    job = dataclasses.replace(first, over=over, seeds=whole.sizes["seed"])
    if axis == POINT:
        origins = ", ".join(dict.fromkeys(sweep.origin or "grid" for sweep in sweeps))
        job = dataclasses.replace(job, zip=True, origin=f"merged: {origins}")
    return job.checked(), whole.values.ravel()


def _axis_of(paths: Sequence[Path], sweeps: Sequence[Sweep]) -> str:
    """Return the axis along which sweeps are joined: ``"seed"``, a parameter, or ``"point"``."""
    if all(sweep.zip == sweeps[0].zip and sweep.over == sweeps[0].over for sweep in sweeps):
        return "seed"
    seeds = [sweep.scenario.run.seed + np.arange(sweep.seeds) for sweep in sweeps]
    for path, other in zip(paths, seeds, strict=True):
        if not np.array_equal(other, seeds[0]):
            raise UserError(
                f"{paths[0]} and {path} differ in points and in seeds ({seeds[0][0]} to {seeds[0][-1]} and {other[0]} "
                f"to {other[-1]}); merge sweeps that share one of the two"
            )
    different = [name for name in sweeps[0].over if any(sweep.over[name] != sweeps[0].over[name] for sweep in sweeps)]
    return different[0] if len(different) == 1 and not any(sweep.zip for sweep in sweeps) else POINT


def _numbered(sweep: Sweep, first: int, axis: str) -> "xarray.DataArray":
    """Return the numbers of a sweep's members, from ``first``, with their points and seeds as coordinates."""
    seed, count = sweep.scenario.run.seed, sweep.members // sweep.seeds
    coordinates: dict[str, Any] = {"seed": np.arange(seed, seed + sweep.seeds)}
    if axis == POINT or sweep.zip:
        dims, shape = (POINT, "seed"), (count, sweep.seeds)
        coordinates |= {name: (POINT, array) for name, array in sweep.points(np.arange(count)).items()}
    else:
        dims, shape = sweep.axes, sweep.shape
        coordinates |= {name: np.asarray(values) for name, values in sweep.over.items()}
    return xarray.DataArray(np.arange(first, first + sweep.members).reshape(shape), coordinates, dims)


def _check_joined(whole: "xarray.DataArray", axis: str, names: Sequence[str], paths: Sequence[Path]) -> None:
    """Refuse sweeps with a common point, which would have two results, and seeds that do not follow each other.

    Raises:
        UserError: naming the point or the seeds.
    """
    folders = ", ".join(map(str, paths))
    if axis == "seed":
        seeds = whole["seed"].values
        if (wrong := np.flatnonzero(np.diff(seeds) != 1)).size:
            pair = " and then ".join(map(str, seeds[wrong[0] : wrong[0] + 2]))
            raise UserError(f"{folders}: of equal points, with the seeds {pair}; merge sweeps with seeds without gaps")
        return
    points = pandas.DataFrame({name: whole[name].values for name in ([axis] if axis != POINT else names)})
    if (twice := points[points.duplicated()]).size:
        where = ", ".join(f"{name} = {value:g}" for name, value in twice.iloc[0].items())
        raise UserError(f"{folders}: two both have {where}; leave one of them out")


def _settings(sweep: Sweep, directory: RunDirectory) -> dict[str, Any]:
    """Return what decides a member's result, by name, without its point and seed, and with what is stored of it."""
    scenario, request = sweep.scenario, directory.manifest["request"]
    run = {key: value for key, value in vars(scenario.run).items() if key != "seed"}
    values = {name: p.default for name, p in scenario.parameters.items() if name not in sweep.over}
    sections = {"config": scenario.config, "params": values, "run": run}
    parameters = {name: dataclasses.replace(p, default=0.0) for name, p in scenario.parameters.items()}
    plain = dataclasses.replace(scenario.run, seed=0)
    return {
        "over": list(sweep.over),
        "scenario": scenario.name,
        "simulation": scenario.simulation,
        "final_frames": sweep.final_frames,
        **{f"{part}.{key}": value for part, entries in sections.items() for key, value in entries.items()},
        **{key: request[key] for key in ("arrays", "labels")},
        "file": dataclasses.replace(
            scenario, source=Path(), parameter_settings={}, known_parameters=parameters, run=plain
        ),
    }
