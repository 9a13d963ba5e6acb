"""Sweeps: many members of one scenario as one vmapped program, in chunks that fit in memory."""

import dataclasses
import hashlib
import io
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.precision import precision
from simkit.engine.compilation_cache import use_compilation_cache
from simkit.engine.plan import plan_of
from simkit.errors import UserError, nearest
from simkit.jobs.chunks import Report, Sweep, execute, program_of
from simkit.jobs.fitting import check_declared, fitting_chunk
from simkit.jobs.outcome import RunFailedError
from simkit.scenario import checks
from simkit.scenario.build import build
from simkit.scenario.loading import Source, load
from simkit.scenario.scenario import Scenario
from simkit.scenario.toml import one_line
from simkit.storage import datasets
from simkit.storage.chunk_files import check_chunks
from simkit.storage.files import DamagedFileError, read_bytes, read_sealed_json, write_bytes, write_sealed_json
from simkit.storage.manifest import describe_frames
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import SUMMARY, RunDirectory, check_output, folder_of

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation

type Axes = Mapping[str, Sequence[float]]

RESULT = "sweep.nc"
# Members that are checked before a sweep, at a few milliseconds each.
CHECKED = 1000


def sweep(
    scenario: Source,
    over: Axes,
    *,
    seeds: int = 1,
    output: Path | str | None = None,
    overwrite: bool = False,
    chunk: int | None = None,
    memory: int | None = None,
    final_frames: bool = True,
    **values: Any,
) -> "xarray.Dataset":
    """Run every combination of parameter values and seeds and return one labeled data set.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        over: ``{parameter: values}``.
        seeds: random seeds per combination.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        chunk: members that run together; ``None`` chooses by memory. Those of simulations that end when they are done
            leave one by one, and others take their place.
        memory: bytes the program may take; ``None`` takes a share of what is free.
        final_frames: keep the last frame of every member.
        **values: other parameters, config or run settings.

    Returns:
        Diagnostics with dimensions (swept parameters..., seed, frame), final frames without ``frame``, and ``status``.

    Raises:
        UserError: if anything given is wrong or does not fit in memory.
        RunFailedError: if every member turns non-finite; otherwise those that fail are named in a warning.
    """
    from simkit.jobs.notebook import progress_of

    use_compilation_cache()
    found = load(scenario, values)
    with progress_of(found.name) as update:
        result = start_sweep(
            found,
            _grid(found, over),
            seeds=checks.unwrapped(seeds),
            output=folder_of(output) if output else None,
            overwrite=overwrite,
            chunk=checks.unwrapped(chunk),
            memory=checks.unwrapped(memory),
            final_frames=final_frames,
            report=update,
        )
    return checked(result)


def checked(result: "xarray.Dataset") -> "xarray.Dataset":
    """Return a sweep's result, raising if every member turned non-finite and warning of those that failed."""
    if messages := failures(result):
        if bool((result["status"] == "non_finite").all()):
            raise RunFailedError(f"{messages[0]}, and so did every other member")
        warnings.warn("; ".join(messages), stacklevel=3)
    return result


def _grid(scenario: Scenario, over: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    """Return the values of all swept parameters, checked."""
    if not isinstance(over, Mapping):
        raise UserError(f"over is of type {type(over).__name__}; give {{name of a parameter: list of values}}")
    return {name: _points(scenario, name, points) for name, points in over.items()}


def _points(scenario: Scenario, name: str, points: Sequence[float]) -> tuple[float, ...]:
    """Return the values of one swept parameter, checked."""
    if name not in scenario.parameters:
        raise UserError(f"'{name}' is not a parameter of {scenario.name}{nearest(name, list(scenario.parameters))}")
    if isinstance(scenario.parameters[name].default, tuple):
        raise UserError(f"'{name}' is an array; only single numbers are swept")
    label, values = f"over {name}", np.asarray(points).tolist()
    if not isinstance(values, list) or not values:
        raise UserError(f"{label} has no values; give a list of numbers")
    numbers = tuple(checks.number(value, label) for value in values)
    if len(set(numbers)) < len(numbers):
        raise UserError(f"{label} lists a value twice; keep one of them")
    for number in numbers:
        checks.inside(number, label, scenario.parameters[name].bounds)
    return numbers


def start_sweep(
    scenario: Scenario,
    over: dict[str, tuple[float, ...]],
    *,
    seeds: int = 1,
    output: Path | None = None,
    overwrite: bool = False,
    chunk: int | None = None,
    memory: int | None = None,
    final_frames: bool = True,
    report: Report = lambda fraction, words: None,
) -> "xarray.Dataset":
    """Sweep from the beginning; arguments as for `sweep`, already checked.

    Raises:
        UserError: if the scenario cannot be built, a member could not be run, the output cannot be written, or the
            sweep does not fit in memory.
    """
    from simkit.engine.memory import shapes_of

    _check_counts(scenario, seeds, chunk, memory)
    if output:
        check_output(output, overwrite=overwrite)
    with precision(scenario.run.precision):
        plan = Sweep(scenario, over, seeds, chunk or 1, final_frames)
        kept = plan.members if final_frames else 0
        simulation = build(
            scenario, examine=lambda s: check_declared(s, kept, "pass --no-frames or sweep fewer values")
        )
        _check_corners(simulation, over, range(scenario.run.seed, scenario.run.seed + seeds))
        program = program_of(simulation, plan)
        shapes = shapes_of(simulation)
        fitting = fitting_chunk(simulation, shapes, plan, program, chunk, memory, output)
        plan = dataclasses.replace(plan, chunk=fitting)
        request = {
            "labels": datasets.labels_of(simulation),
            "arrays": describe_frames(shapes[1]),
            "over": over,
            "seeds": seeds,
            "chunk": plan.chunk,
            "final_frames": final_frames,
        }
        if output is None:
            return execute(simulation, plan, program, None, report, warnings.warn)
        with RunDirectory.begun(output, "sweep", scenario, request, overwrite=overwrite) as directory:
            return _store_result(directory, execute(simulation, plan, program, directory, report, warnings.warn))


def _check_counts(scenario: Scenario, seeds: int, chunk: int | None, memory: int | None = None) -> None:
    """Refuse numbers of seeds or members that cannot be.

    Raises:
        UserError: that names the number and what is allowed.
    """
    for name, count in (("seeds", seeds), ("chunk", chunk), ("memory", memory)):
        if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
            raise UserError(f"{name} = {count!r:.40} is not an integer; give at least 1")
    if seeds < 1:
        raise UserError(f"seeds = {seeds} is not allowed; give at least 1")
    if scenario.run.seed + seeds > 2**31:
        raise UserError(f"{seeds} seeds from seed = {scenario.run.seed} go past 2147483647; begin with a smaller seed")
    if chunk is not None and chunk < 1:
        raise UserError(f"chunk = {chunk} is not allowed; give at least 1")


def _check_corners(simulation: "Simulation", over: dict[str, tuple[float, ...]], seeds: range) -> None:
    """Refuse a sweep if a run would refuse one of its extreme members, of the least and largest value of each axis.

    Where the start depends on the seed, these are looked at with every seed, the first `CHECKED` in all. Checks
    work on the host, one member after another, so that those in between are left to their status.

    Raises:
        UserError: that names the member by its index and parameters.
    """
    import jax

    from simkit.core.simulation import draws

    if simulation.check is None and not simulation.parameters:
        return
    ends = [sorted({int(np.argmin(values)), int(np.argmax(values))}) for values in over.values()]
    drawn = seeds if draws(simulation) else seeds[:1]
    # Every corner with the first seed comes first. (A product of the seeds themselves would hold them all.)
    corners = ((seed, places) for seed in drawn for places in itertools.product(*ends))
    for seed, places in itertools.islice(corners, CHECKED):
        chosen = {name: values[place] for (name, values), place in zip(over.items(), places, strict=True)}
        try:
            simulation.check_values(simulation.with_params(**chosen).params, jax.random.key(seed))
        except UserError as error:
            index = np.ravel_multi_index(places, [len(values) for values in over.values()]) if places else 0
            member = int(index) * len(seeds) + seed - seeds[0]
            raise UserError(f"{_named(member, chosen | {'seed': seed})}: {one_line(error)}") from None


def proceed_sweep(
    directory: RunDirectory,
    *,
    report: Report = lambda fraction, words: None,
    warn: Callable[[str], None] = warnings.warn,
) -> "xarray.Dataset":
    """Finish an interrupted sweep.

    Args:
        directory: of kind ``"sweep"``.
        report: told of progress.
        warn: told in one line what was damaged.

    Raises:
        UserError: if the directory cannot be read back.
    """
    scenario, request = directory.scenario(), directory.manifest["request"]
    directory.warn_of_changes(warn)
    over = {name: _points(scenario, name, points) for name, points in request["over"].items()}
    _check_counts(scenario, request["seeds"], request["chunk"])
    plan = Sweep(scenario, over, request["seeds"], request["chunk"], request["final_frames"])
    if (result := _whole(directory, plan)) is not None:
        return result
    with precision(scenario.run.precision), directory.locked():
        simulation = build(scenario)
        return _store_result(
            directory, execute(simulation, plan, program_of(simulation, plan), directory, report, warn)
        )


def read_sweep(directory: RunDirectory) -> "xarray.Dataset":
    """Return the result of a finished sweep.

    Raises:
        UserError: if it is not finished or its file is damaged.
    """
    if not all(check_regular(directory.path / name) for name in (RESULT, SUMMARY)):
        raise UserError(f"{directory.path} is not finished; finish it with: simkit resume {directory.path}")
    try:
        return _read(directory)
    except DamagedFileError as error:
        raise UserError(f"{error}; make it again with: simkit resume {directory.path}") from None


def _whole(directory: RunDirectory, plan: Sweep) -> "xarray.Dataset | None":
    """Return the result of a finished sweep whose every file is whole, which needs no permission to write.

    Raises:
        UserError: if something else than a file is in the place of one.
    """
    if not all(check_regular(directory.path / name) for name in (RESULT, SUMMARY)):
        return None
    try:
        check_chunks(directory, plan.members, plan_of(plan.scenario).frames + 1)
        return _read(directory)
    except DamagedFileError:
        return None


def _read(directory: RunDirectory) -> "xarray.Dataset":
    """Return the result of a finished sweep.

    Raises:
        DamagedFileError: if a file is damaged, missing, or of another sweep.
    """
    import xarray

    path = directory.path / RESULT
    data = read_bytes(path)
    if read_sealed_json(directory.path / SUMMARY, directory.identity).get("result") != _digest(data):
        raise DamagedFileError(f"{path}: its checksum does not fit its content")
    with xarray.open_dataset(io.BytesIO(data), engine="scipy") as dataset:
        # NetCDF has no words of fixed length.
        loaded = dataset.load()
        words = {name: v.astype(str) for name, v in loaded.variables.items() if v.dtype.kind in "OS"}
        coordinates = {name: words[name] for name in loaded.coords if name in words}
        return loaded.assign({"status": words["status"]}).assign_coords(coordinates)


def failures(result: "xarray.Dataset") -> list[str]:
    """Return one line per member that failed, with its index and parameters.

    Args:
        result: of a sweep.
    """
    from simkit.core.status import MESSAGES, Status, failed

    lines = []
    status, axes = result["status"].values, result["status"].dims
    for where in np.argwhere(failed(status)):
        values = {str(axis): float(result[axis].values[i]) for axis, i in zip(axes, where, strict=True)}
        index = int(np.ravel_multi_index(tuple(where), status.shape))
        lines.append(f"{_named(index, values)} {MESSAGES[Status[str(status[tuple(where)]).upper()]]}")
    return lines


def _named(index: int, values: Mapping[str, float]) -> str:
    """Return a member in words."""
    return f"member {index} ({', '.join(f'{name} = {value:g}' for name, value in values.items())})"


def _store_result(directory: RunDirectory, dataset: "xarray.Dataset") -> "xarray.Dataset":
    data = bytes(dataset.to_netcdf(engine="scipy"))
    write_bytes(directory.path / RESULT, data)
    summary = {"members": int(dataset["status"].size), "failed": failures(dataset), "result": _digest(data)}
    write_sealed_json(directory.path / SUMMARY, summary, directory.identity)
    return dataset


def _digest(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()}"
