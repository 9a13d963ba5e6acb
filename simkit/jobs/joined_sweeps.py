"""Joined sweeps: the settings that they must share, and the source of each member of the joined sweep."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.jobs.points import MOST_NUMBERS
from simkit.jobs.sweeps import Sweep
from simkit.scenario.scenario import Scenario
from simkit.storage.run_directory import RunDirectory


@dataclasses.dataclass(frozen=True)
class JoinedSweep:
    """Several sweeps joined into one.

    Attributes:
        sweep: the joined sweep, whose chunk size is not chosen yet.
        axis: axis along which the sweeps are joined, among those of points and seeds.
        shapes: shape of the members of each sweep, seeds last.
        source: index of the source sweep at each index along the axis, int (length,).
        source_index: index along the axis of the source sweep, int (length,).
    """

    sweep: Sweep
    axis: int
    shapes: tuple[tuple[int, ...], ...]
    source: np.ndarray
    source_index: np.ndarray

    def locate(self, members: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Return the sources of members: index of a sweep, positions in ``members``, and member indices in that sweep.

        Args:
            members: member indices in the joined sweep, int (n,).
        """
        indices = list(np.unravel_index(members, self.sweep.shape))
        sources, source_indices = self.source[indices[self.axis]], self.source_index[indices[self.axis]]
        for index in np.unique(sources).tolist():
            here = np.flatnonzero(sources == index)
            inside = [along[here] for along in indices]
            inside[self.axis] = source_indices[here]
            yield index, here, np.ravel_multi_index(inside, self.shapes[index])


def joined_sweeps(directories: Sequence[RunDirectory], sweeps: Sequence[Sweep]) -> JoinedSweep:
    """Join sweeps of the same scenario and settings.

    Grids that differ in the values of one parameter become one grid, grids that differ in their seeds one grid with all
    seeds, and all others a list of points.

    Args:
        directories: run directories of the sweeps.
        sweeps: jobs of the sweeps.

    Raises:
        UserError: naming a difference in their settings, or a point or seed that two of them share.
    """
    for directory, sweep in zip(directories[1:], sweeps[1:], strict=True):
        if found := difference(sweeps[0], sweep, directories[0], directory):
            raise UserError(
                f"{directories[0].path} and {directory.path} differ: {found}; merge sweeps of the same scenario and "
                "settings"
            )
    paths = [directory.path for directory in directories]
    seeds = [(sweep.scenario.run.seed, sweep.seeds) for sweep in sweeps]
    same_points = all(sweep.zip == sweeps[0].zip and sweep.over == sweeps[0].over for sweep in sweeps)
    if same_points:
        return _by_seeds(paths, sweeps)
    if len(set(seeds)) > 1:
        first = seeds.index(next(pair for pair in seeds if pair != seeds[0]))
        raise UserError(
            f"{paths[0]} and {paths[first]} differ in points and in seeds ({_range(*seeds[0])} and "
            f"{_range(*seeds[first])}); merge sweeps that share one of the two"
        )
    names = list(sweeps[0].over)
    different = [name for name in names if any(sweep.over[name] != sweeps[0].over[name] for sweep in sweeps)]
    if len(different) == 1 and not any(sweep.zip for sweep in sweeps):
        return _by_values(paths, sweeps, different[0])
    return _by_points(paths, sweeps)


def difference(one: Sweep, other: Sweep, directory: RunDirectory, other_directory: RunDirectory) -> str | None:
    """Return the first difference in the settings of two sweeps, in words, or ``None``.

    Args:
        one: the first sweep.
        other: the other sweep.
        directory: run directory of the first.
        other_directory: run directory of the other.
    """
    if (a := list(one.over)) != (b := list(other.over)):
        return f"one is over {', '.join(a) or 'seeds only'} and the other over {', '.join(b) or 'seeds only'}"
    settings, other_settings = _settings(one), _settings(other)
    for name in sorted(settings.keys() | other_settings.keys()):
        if settings.get(name) != other_settings.get(name):
            return f"{name} is {settings.get(name)!r:.60} and {other_settings.get(name)!r:.60}"
    request, other_request = directory.manifest["request"], other_directory.manifest["request"]
    if any(request[key] != other_request[key] for key in ("arrays", "labels")):
        return "they store different arrays"
    if _comparable(one) != _comparable(other):
        return "their scenarios differ"
    return None


def _settings(sweep: Sweep) -> dict[str, Any]:
    """Return the settings that decide a member's result, by name, without its point and seed."""
    scenario = sweep.scenario
    values = {name: p.default for name, p in scenario.parameters.items() if name not in sweep.over}
    run = {key: value for key, value in vars(scenario.run).items() if key != "seed"}
    named = {"scenario": scenario.name, "simulation": scenario.simulation, "final_frames": sweep.final_frames}
    sections = {"config": scenario.config, "params": values, "run": run}
    return named | {f"{part}.{key}": value for part, entries in sections.items() for key, value in entries.items()}


def _comparable(sweep: Sweep) -> Scenario:
    """Return the scenario without the fields in which joined sweeps may differ."""
    scenario = sweep.scenario
    parameters = {name: dataclasses.replace(p, default=0.0) for name, p in scenario.parameters.items()}
    run = dataclasses.replace(scenario.run, seed=0)
    return dataclasses.replace(scenario, source=Path(), parameter_settings={}, known_parameters=parameters, run=run)


def _by_seeds(paths: Sequence[Path], sweeps: Sequence[Sweep]) -> JoinedSweep:
    """Join sweeps of the same points."""
    order = sorted(range(len(sweeps)), key=lambda index: sweeps[index].scenario.run.seed)
    for before, after in itertools.pairwise(order):
        end, begin = sweeps[before].scenario.run.seed + sweeps[before].seeds, sweeps[after].scenario.run.seed
        if begin != end:
            have = "the same points and seeds" if begin < end else f"no seeds from {end} to {begin - 1} between them"
            raise UserError(
                f"{paths[before]} and {paths[after]} have {have}; merge sweeps whose seeds follow each other"
            )
    source = np.concatenate([np.full(sweeps[index].seeds, index) for index in order])
    source_index = np.concatenate([np.arange(sweeps[index].seeds) for index in order])
    first = sweeps[order[0]]
    whole = dataclasses.replace(first, seeds=len(source))
    return JoinedSweep(whole, len(first.points.shape), tuple(sweep.shape for sweep in sweeps), source, source_index)


def _by_values(paths: Sequence[Path], sweeps: Sequence[Sweep], name: str) -> JoinedSweep:
    """Join grids along one parameter."""
    lists = [sweep.over[name] for sweep in sweeps]
    _refuse_shared(paths, [[(value,) for value in values] for values in lists], [name])
    values = np.concatenate([np.asarray(one) for one in lists])
    source = np.concatenate([np.full(len(one), index) for index, one in enumerate(lists)])
    source_index = np.concatenate([np.arange(len(one)) for one in lists])
    if all(list(one) == sorted(one) for one in lists):
        order = np.argsort(values, kind="stable")
        values, source, source_index = values[order], source[order], source_index[order]
    whole = dataclasses.replace(sweeps[0], over={**sweeps[0].over, name: tuple(values.tolist())})
    return JoinedSweep(
        whole, list(sweeps[0].over).index(name), tuple(sweep.shape for sweep in sweeps), source, source_index
    )


def _by_points(paths: Sequence[Path], sweeps: Sequence[Sweep]) -> JoinedSweep:
    """Join any points, as a list."""
    names = list(sweeps[0].over)
    counts = [sweep.members // sweep.seeds for sweep in sweeps]
    if sum(counts) * len(names) > MOST_NUMBERS:
        raise UserError(f"the points of all sweeps are over {MOST_NUMBERS} numbers; merge fewer")
    values = [sweep.points.values_of(np.arange(count)) for sweep, count in zip(sweeps, counts, strict=True)]
    _refuse_shared(paths, [list(zip(*(one[name].tolist() for name in names), strict=True)) for one in values], names)
    over = {name: tuple(np.concatenate([one[name] for one in values]).tolist()) for name in names}
    origins = ", ".join(dict.fromkeys(sweep.origin or "grid" for sweep in sweeps))
    whole = dataclasses.replace(sweeps[0], over=over, zip=True, origin=f"merged: {origins}")
    source = np.concatenate([np.full(count, index) for index, count in enumerate(counts)])
    source_index = np.concatenate([np.arange(count) for count in counts])
    return JoinedSweep(
        whole, 0, tuple((count, sweep.seeds) for count, sweep in zip(counts, sweeps, strict=True)), source, source_index
    )


def _refuse_shared(paths: Sequence[Path], points: Sequence[Sequence[tuple[float, ...]]], names: Sequence[str]) -> None:
    """Refuse sweeps with a common point, which would then have two results."""
    seen: dict[tuple[float, ...], int] = {}
    for index, one in enumerate(points):
        for point in one:
            if seen.setdefault(point, index) != index:
                where = ", ".join(f"{name} = {value:g}" for name, value in zip(names, point, strict=True))
                raise UserError(f"{paths[seen[point]]} and {paths[index]} both have {where}; leave one of them out")


def _range(first: int, count: int) -> str:
    return f"{first} to {first + count - 1}" if count > 1 else f"{first}"
