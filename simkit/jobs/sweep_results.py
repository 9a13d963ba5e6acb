"""Results of sweeps: objectives of members, totals and statistics, sensitivity, and the files of a result."""

import ast
import dataclasses
import hashlib
import io
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np
import xarray

from simkit.core.expressions.measures import measure_of
from simkit.core.expressions.syntax import dotted, parse
from simkit.core.objective import reduced
from simkit.core.status import FAILURES, MESSAGES, Status, checks_every_step, failed, stops
from simkit.jobs.runs import NOT_FINITE
from simkit.scenario.scenario import ObjectiveSettings, Scenario
from simkit.storage.datasets import from_netcdf_types, to_netcdf_types
from simkit.storage.files import DamagedFileError, read_bytes, read_sealed_json, write_bytes, write_sealed_json
from simkit.storage.run_directory import SUMMARY, RunDirectory

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation


OMITTED_OBJECTIVES = "objectives_left_out"
"""Attribute of a data set: names of the objectives not in it, since they need frames that a sweep does not store."""
OBJECTIVE = "objective"
"""Attribute of a variable of a data set: the name of the objective that it holds."""
PREFIX = "objective_"
"""Prefix, in the data set, of an objective's name that another variable has."""
type Arrays = Mapping[str, np.ndarray]


def objectives_to_compute(objectives: Mapping[str, ObjectiveSettings]) -> dict[str, ObjectiveSettings]:
    """Return the objectives other than the last value of a diagnostic, which every result holds.

    Args:
        objectives: settings by name.
    """
    return {
        name: settings
        for name, settings in objectives.items()
        if settings.expression or settings.reduce != "final" or settings.square
    }


class MemberObjectives:
    """Functions that compute objectives of members from the arrays that a sweep stores of them.

    Attributes:
        omitted: names of the objectives that need arrays which are not stored.

    Args:
        simulation: simulation of one member.
        scenario: scenario that declares the objectives.
        objectives: objectives from `objectives_to_compute`.
        observed: names of the stored arrays of last frames.
        diagnosed: names of the diagnostics.
    """

    def __init__(
        self,
        simulation: "Simulation",
        scenario: Scenario,
        objectives: Mapping[str, ObjectiveSettings],
        observed: Collection[str],
        diagnosed: Collection[str],
    ) -> None:
        self._simulation, self._dtype = simulation, np.dtype(scenario.run.precision)
        self._used: dict[str, list[str]] = {}
        self._functions: dict[str, Callable[..., jax.Array]] = {}
        self.omitted: list[str] = []
        for name, settings in objectives.items():
            used = [one for one in settings.made_of if one in observed and one not in diagnosed]
            missing = [one for one in settings.made_of if one not in observed and one not in diagnosed]
            if _needs_more(settings, used, [one for one in missing if one not in simulation.coordinates]):
                self.omitted.append(name)
            else:
                self._used[name] = used
                self._functions[name] = jax.jit(_measure(simulation, scenario, settings))

    def values(self, observed: Arrays, diagnosed: Arrays, status: np.ndarray) -> dict[str, np.ndarray]:
        """Return the objectives of members by name, each (members,), of the precision of the run.

        Args:
            observed: last frame of each member, (members, ...).
            diagnosed: diagnostics of each member, (members, frames, ...), held from the frame at which it stopped.
            status: final status codes, int32 (members,).
        """
        if not self._functions:
            return {}
        counted = _stored(diagnosed, stops(status)) if diagnosed and checks_every_step(self._simulation) else None
        # Observed arrays are used in the last frame alone, here repeated beside the diagnostics of every frame.
        frames = max((array.shape[1] for array in diagnosed.values()), default=1)

        found = {}
        for name, used in self._used.items():

            def value(index: int, name: str = name, used: Collection[str] = used) -> Any:
                last = {one: np.broadcast_to(observed[one][index], (frames, *observed[one].shape[1:])) for one in used}
                of_frames = {one: array[index] for one, array in diagnosed.items()}
                return self._functions[name](last, of_frames, None if counted is None else counted[index])

            # One member at a time, so that the bits of its value do not depend on the other members.
            found[name] = np.array([value(index) for index in range(len(status))], self._dtype)
        return found


def objectives_in(result: "xarray.Dataset", scenario: Scenario) -> dict[str, "xarray.DataArray"]:
    """Return the objectives stored by a sweep, by their names in its data set.

    Args:
        result: result of the sweep.
        scenario: scenario with the objectives.
    """
    names = ((f"{PREFIX}{name}", name) for name in scenario.objectives)
    found = (prefixed if prefixed in result else name for prefixed, name in names)
    return {name: result[name] for name in found if name in result and result[name].dims == result["status"].dims}


def _measure(simulation: "Simulation", scenario: Scenario, settings: ObjectiveSettings) -> Callable[..., "jax.Array"]:
    """Return ``(frames, diagnostics, stored) -> number``."""
    if settings.expression:
        where = f"{scenario.file}: objectives.{settings.name}"
        return cast("Callable[..., jax.Array]", measure_of(simulation, settings.expression, where))

    def measure(frames: Any, diagnostics: Any, stored: Any) -> "jax.Array":
        value = reduced(settings.reduce, diagnostics[settings.quantity], stored)  # type: ignore[arg-type]
        return value**2 if settings.square else value

    return measure


def _needs_more(settings: ObjectiveSettings, used: Collection[str], missing: Collection[str]) -> bool:
    """Return whether an objective needs missing arrays, or an observed array before the last frame."""
    if missing or not used:
        return bool(missing)
    syntax = parse(settings.expression, "")
    return syntax.over_frames and _is_outside_final(syntax.tree, used)


def _is_outside_final(node: ast.AST, names: Collection[str]) -> bool:
    """Return whether a formula uses one of the names outside ``final(...)``."""
    if isinstance(node, ast.Call) and dotted(node.func) == "final":
        return False
    if isinstance(node, ast.Name | ast.Attribute) and dotted(node) in names:
        return True
    return any(_is_outside_final(part, names) for part in ast.iter_child_nodes(node))


def _stored(diagnosed: Arrays, stopped: np.ndarray) -> np.ndarray:
    """Return a mask of the frames up to the one at which a member stopped, bool (members, frames).

    Later frames repeat that one: they agree with the last frame in every diagnostic, including time.
    """
    count, frames = len(stopped), next(iter(diagnosed.values())).shape[1]
    same_as_last = np.ones((count, frames), bool)
    for array in diagnosed.values():
        rows = array.reshape(count, frames, -1)
        same_as_last &= ((rows == rows[:, -1:]) | (np.isnan(rows) & np.isnan(rows[:, -1:]))).all(axis=-1)
    # True from the first frame that equals all later ones.
    constant = np.logical_and.accumulate(same_as_last[:, ::-1], axis=1)[:, ::-1]
    repeats = np.zeros_like(constant)
    repeats[:, 1:] = constant[:, :-1]
    return ~repeats | ~stopped[:, None]


# Attribute of a result with the statuses that are failures, if these are not those of a run.
FAILURE_STATUSES = "failure_statuses"
FRACTIONS = {"5 %": 0.05, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "95 %": 0.95}
# Members read together.
BLOCK = 2**14


@dataclasses.dataclass(frozen=True)
class Totals:
    """Totals of members.

    Attributes:
        statuses: number of members by status, in words.
        failed: number of failed members.
        quantiles: quantiles of each array with finite numbers, without those of failed members.
    """

    statuses: dict[str, int]
    failed: int
    quantiles: dict[str, dict[str, float]]

    def plain(self) -> dict[str, Any]:
        """Return the totals as plain data."""
        return {"statuses": dict(sorted(self.statuses.items())), "quantiles": self.quantiles}


def totals(
    status: Sequence[np.ndarray], final: Sequence[Mapping[str, np.ndarray]], failures: Sequence[str] = ()
) -> Totals:
    """Return the totals of members.

    Args:
        status: codes of `simkit.core.status.Status` of some members each, int32 (members,).
        final: their final diagnostics and objectives by name, each (members,).
        failures: names of the statuses that are failures, in lower case; empty for those of a run.
    """
    ended = np.concatenate(status)
    codes, counts = np.unique(ended, return_counts=True)
    statuses = {Status(code).name.lower(): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
    failed, quantiles = is_failure(ended, failures), {}
    for name in final[0]:
        values = np.concatenate([part[name] for part in final]).astype(np.float64)
        if (fine := np.isfinite(values) & ~failed).any():
            quantiles[name] = dict(
                zip(FRACTIONS, np.quantile(values[fine], [*FRACTIONS.values()]).tolist(), strict=True)
            )
    return Totals(statuses, int(failed.sum()), quantiles)


def is_failure(status: np.ndarray, failures: Sequence[str] = ()) -> np.ndarray:
    """Return which members failed, booleans of the shape of their statuses.

    Args:
        status: codes, or their names as in a result.
        failures: names of the statuses that are failures, in lower case; empty for those of a run.
    """
    return failed(status, [Status[name.upper()] for name in failures] or FAILURES)


def failures_of(result: "xarray.Dataset") -> tuple[str, ...]:
    """Return the names of the statuses that are failures of a result; empty if they are those of a run.

    Args:
        result: result of a sweep, or of an optimization from several starts.
    """
    return tuple(str(result.attrs.get(FAILURE_STATUSES, "")).split())


def totals_of(result: "xarray.Dataset") -> Totals:
    """Return the totals of a sweep, read a block of members at a time.

    Args:
        result: result of a sweep.
    """
    status, final = list[np.ndarray](), list[dict[str, np.ndarray]]()
    for _, block in blocks_of(result):
        status.append(codes_of(block["status"].values).ravel())
        arrays = final_numbers(block) | objective_arrays(block)
        final.append({name: array.values.ravel() for name, array in arrays.items()})
    return totals(status, final, failures_of(result))


def final_numbers(result: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the final diagnostics of members, by name.

    Args:
        result: result of a sweep.
    """
    axes = result["status"].dims
    return {str(n): a.isel(frame=-1) for n, a in result.data_vars.items() if a.dims == (*axes, "frame")}


def objective_arrays(result: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the objectives of members other than the last value of a diagnostic, by name in the data set.

    Args:
        result: result of a sweep.
    """
    return {str(name): array for name, array in result.data_vars.items() if OBJECTIVE in array.attrs}


def codes_of(words: np.ndarray) -> np.ndarray:
    """Return statuses in words as codes of `simkit.core.status.Status`.

    Args:
        words: statuses of a result, such as ``"converged"``.
    """
    known = {status.name.lower(): status.value for status in Status}
    unique, inverse = np.unique(words, return_inverse=True)
    return np.array([known[str(word)] for word in unique], np.int32)[inverse].reshape(np.shape(words))


def blocks_of(result: "xarray.Dataset", most: int = BLOCK) -> "Iterator[tuple[tuple[int, ...], xarray.Dataset]]":
    """Yield a result in blocks of members, in their order, each with its start index along each axis.

    Args:
        result: result of a sweep.
        most: maximum number of members per block, for a result in memory.
    """
    status = result["status"]
    sizes = {str(axis): length for axis, length in status.sizes.items()}
    # Members of one chunk are read together.
    stored = status.encoding.get("preferred_chunks")
    lengths = tuple(stored[axis] for axis in sizes) if stored else block_lengths(status.shape, most)
    for starts in itertools.product(*(range(0, n, step) for n, step in zip(sizes.values(), lengths, strict=True))):
        ranges = zip(sizes, starts, lengths, strict=True)
        yield starts, result.isel({axis: slice(start, start + step) for axis, start, step in ranges})


def block_lengths(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the lengths, along each axis, of blocks that are contiguous ranges of flat member indices.

    Args:
        shape: shape of the members, points and seeds.
        most: maximum number of members per block.
    """
    lengths, room = list[int](), max(most, 1)
    for length in reversed(shape):
        lengths.append(min(length, max(room, 1)))
        room = room // length if lengths[-1] == length else 0
    return tuple(reversed(lengths))


RESULT = "sweep.nc"
# Maximum number of failed members that are named.
MOST_NAMED = 1000
POINT = "point"
"""Name of the axis of zipped, sampled or tabulated points."""


def store_result(directory: RunDirectory, result: "xarray.Dataset", *, in_one_file: bool) -> "xarray.Dataset":
    """Store the summary of a sweep's result, and the result itself if it is one file; return the result.

    Args:
        directory: run directory of the sweep.
        result: result of the sweep.
        in_one_file: whether the result is stored as one file; otherwise it stays in its chunks.
    """
    digest = None
    if in_one_file:
        data = bytes(to_netcdf_types(result).to_netcdf(engine="scipy"))
        write_bytes(directory.path / RESULT, data)
        digest = _digest(data)
    totals = totals_of(result)
    result = result.assign_attrs(failed=totals.failed)
    counts = {"members": int(result["status"].size), "failures": totals.failed}
    summary = {**counts, "failed": failures(result), **totals.plain(), "result": digest}
    write_sealed_json(directory.path / SUMMARY, summary, directory.identity)
    return result


def read_result(directory: RunDirectory) -> "xarray.Dataset":
    """Read the result of a finished sweep from its file.

    Args:
        directory: run directory of the sweep.

    Raises:
        DamagedFileError: if a file is damaged, missing, or from another sweep.
    """
    path = directory.path / RESULT
    data = read_bytes(path)
    if read_sealed_json(directory.path / SUMMARY, directory.identity).get("result") != _digest(data):
        raise DamagedFileError(f"{path}: its checksum does not match its content")
    with xarray.open_dataset(io.BytesIO(data), engine="scipy") as dataset:
        return from_netcdf_types(dataset.load())


def read_summary(directory: RunDirectory) -> dict[str, Any]:
    """Read the summary of a finished sweep.

    Args:
        directory: run directory of the sweep.

    Raises:
        DamagedFileError: if it is damaged, missing, from another sweep or of an earlier version.
    """
    path = directory.path / SUMMARY
    summary = read_sealed_json(path, directory.identity)
    if not {"members", "failures", "statuses", "quantiles"} <= summary.keys():
        raise DamagedFileError(f"{path}: it is not the summary of a sweep")
    return summary


def columns_of(result: "xarray.Dataset") -> dict[str, np.ndarray]:
    """Return the swept values, without seeds, at every point.

    Args:
        result: result of a sweep.

    Returns:
        ``{name: values}``, each with the shape of the points.
    """
    axes = [str(axis) for axis in result["status"].dims[:-1]]
    shape = result["status"].shape[:-1]
    columns = {}
    for index, axis in enumerate(axes):
        names = [axis]
        if axis == POINT:
            names = [str(n) for n, array in result.coords.items() if array.dims == (POINT,) and n != POINT]
        along = [-1 if other == index else 1 for other in range(len(axes))]
        columns |= {name: np.broadcast_to(result[name].values.reshape(along), shape) for name in names}
    return columns


def failures(result: "xarray.Dataset", most: int = MOST_NAMED) -> list[str]:
    """Return one line per failed member, with its index and parameters, and a line with the number of further ones.

    Args:
        result: result of a sweep.
        most: maximum number of named members.
    """
    lines = list[str]()
    count = result.attrs.get("failed")
    if count == 0:
        return lines
    columns, shape = columns_of(result), result["status"].shape
    seeds = result["seed"].values
    for start, block in blocks_of(result[["status"]]):
        status = block["status"].values
        for place in np.argwhere(is_failure(status, failures_of(result))):
            if len(lines) == most:
                more = f"{count - most} more" if count is not None else "more"
                members = "member" if count is not None and count - most == 1 else "members"
                return [*lines, f"{more} {members} failed; the status in the result shows which"]
            where = tuple(int(i + j) for i, j in zip(start, place, strict=True))
            values = {name: array[where[:-1]].item() for name, array in columns.items()}
            values["seed"] = int(seeds[where[-1]])
            word = str(status[tuple(place)])
            index = int(np.ravel_multi_index(where, shape))
            lines.append(f"{named(index, values)} {MESSAGES[Status[word.upper()]]}")
    return lines


def undefined_objectives(result: "xarray.Dataset") -> list[str]:
    """Return one line per objective that is not finite in members that did not fail, with their number.

    Args:
        result: result of a sweep.
    """
    names = list(objective_arrays(result))
    fine, bad = 0, dict.fromkeys(names, 0)
    for _, block in blocks_of(result[["status", *names]]) if names else ():
        good = ~is_failure(block["status"].values, failures_of(result))
        fine += int(good.sum())
        for name in names:
            bad[name] += int((good & ~np.isfinite(block[name].values)).sum())
    return [
        f"objective {result[name].attrs[OBJECTIVE]} is not finite in {count} of {fine} members that did not fail: "
        + NOT_FINITE
        for name, count in bad.items()
        if count
    ]


def named(index: int, values: Mapping[str, float | str]) -> str:
    """Return the description of a member of a sweep.

    Args:
        index: index of the member.
        values: its swept values and its seed.
    """
    words = (f"{name} = {v if isinstance(v, str) else f'{v:g}'}" for name, v in values.items())
    return f"member {index} ({', '.join(words)})"


def _digest(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()}"


# With fewer points there are too few classes to distinguish a dependence from chance.
FEWEST = 64


def first_order_indices(points: Mapping[str, np.ndarray], result: np.ndarray) -> dict[str, float]:
    """Return the first-order Sobol index of each parameter, from a sample that fills its ranges evenly.

    The index of x is Var(E[y | x]) / Var(y). Points are sorted by x and divided into about sqrt(n) classes of equal
    size, whose means estimate E[y | x]; the variance of the k class means by chance, (k - 1) times the variance within
    classes, is subtracted. The indices of y = sum of independent terms add up to 1; a smaller sum indicates
    interactions. The error is about 1 / sqrt(n), and a dependence that changes sign within a class is missed.

    Source: E. Plischke, E. Borgonovo and C. L. Smith, Global sensitivity measures from given data, Eur. J. Oper. Res.
    226, 536 (2013), doi:10.1016/j.ejor.2012.11.047, with the unbiased correlation ratio of T. L. Kelley, Proc. Natl.
    Acad. Sci. 21, 554 (1935), doi:10.1073/pnas.21.9.554.

    Args:
        points: values by parameter, each (n,).
        result: result at each point, (n,); non-finite ones are omitted.

    Returns:
        ``{parameter: index}``, clipped to [0, 1]; empty for fewer than `FEWEST` points or a constant result.
    """
    finite = np.isfinite(result)
    y = np.asarray(result, np.float64)[finite]
    count = y.size
    if count < FEWEST or np.ptp(y) <= 1e-12 * np.abs(y).max():
        return {}
    y = y - y.mean()
    total, indices = float(y @ y), {}
    for name, values in points.items():
        classes = np.array_split(y[np.argsort(np.asarray(values)[finite], kind="stable")], int(np.sqrt(count)))
        between = sum(len(one) * one.mean() ** 2 for one in classes)
        chance = (len(classes) - 1) * (total - between) / (count - len(classes))
        indices[name] = float(np.clip((between - chance) / total, 0.0, 1.0))
    return indices
