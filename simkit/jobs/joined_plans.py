"""The plan of several sweeps as one: what they must share, and where each member of the whole is found."""

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
class Joined:
    """Several sweeps as one.

    Attributes:
        plan: the whole; how it is cut into chunks is not settled.
        axis: along which the sweeps are joined, of their points and seeds.
        shapes: how the members of each are arranged, seeds last.
        source: which sweep has each place along the axis, (length,).
        place: where along its axis that is, (length,).
    """

    plan: Sweep
    axis: int
    shapes: tuple[tuple[int, ...], ...]
    source: np.ndarray
    place: np.ndarray

    def found(self, members: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Return where members of the whole are: the sweep, places in ``members``, and numbers in that sweep.

        Args:
            members: their numbers, (n,).
        """
        where = list(np.unravel_index(members, self.plan.shape))
        sources, places = self.source[where[self.axis]], self.place[where[self.axis]]
        for index in np.unique(sources).tolist():
            here = np.flatnonzero(sources == index)
            inside = [along[here] for along in where]
            inside[self.axis] = places[here]
            yield index, here, np.ravel_multi_index(inside, self.shapes[index])


def joined_plans(directories: Sequence[RunDirectory], plans: Sequence[Sweep]) -> Joined:
    """Return sweeps of the same scenario and settings as one.

    Grids that differ in the values of one parameter become one grid, and those that differ in their seeds one with all
    seeds; other points become a list of points.

    Args:
        directories: of the sweeps.
        plans: their jobs.

    Raises:
        UserError: that names what they do not share, or a point or seed that two of them have.
    """
    for directory, plan in zip(directories[1:], plans[1:], strict=True):
        if (apart := difference(plans[0], plan, directories[0], directory)) is not None:
            raise UserError(
                f"{directories[0].path} and {directory.path} are not of one plan: {apart}; merge sweeps of the same "
                "scenario and settings"
            )
    paths = [directory.path for directory in directories]
    seeds = [(plan.scenario.run.seed, plan.seeds) for plan in plans]
    same_points = all(plan.zip == plans[0].zip and plan.over == plans[0].over for plan in plans)
    if same_points:
        return _by_seeds(paths, plans)
    if len(set(seeds)) > 1:
        first = seeds.index(next(pair for pair in seeds if pair != seeds[0]))
        raise UserError(
            f"{paths[0]} and {paths[first]} have other points and other seeds ({_range(*seeds[0])} and "
            f"{_range(*seeds[first])}); merge sweeps that share one of the two"
        )
    names = list(plans[0].over)
    apart = [name for name in names if any(plan.over[name] != plans[0].over[name] for plan in plans)]
    if len(apart) == 1 and not any(plan.zip for plan in plans):
        return _by_values(paths, plans, apart[0])
    return _by_points(paths, plans)


def difference(one: Sweep, other: Sweep, home: RunDirectory, away: RunDirectory) -> str | None:
    """Return in words what two sweeps do not share, or ``None``.

    Args:
        one: a sweep.
        other: another one.
        home: the directory of the first.
        away: that of the other.
    """
    if (a := list(one.over)) != (b := list(other.over)):
        return f"one is over {', '.join(a) or 'seeds only'} and the other over {', '.join(b) or 'seeds only'}"
    mine, theirs = (_settings(plan) for plan in (one, other))
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            return f"{name} is {mine.get(name)!r:.60} and {theirs.get(name)!r:.60}"
    request, asked = home.manifest["request"], away.manifest["request"]
    if request["arrays"] != asked["arrays"] or request["labels"] != asked["labels"]:
        return "they store other arrays"
    if _comparable(one) != _comparable(other):
        return "their scenarios differ"
    return None


def _settings(plan: Sweep) -> dict[str, Any]:
    """Return what decides a member, by name, but its point and its seed."""
    scenario = plan.scenario
    values = {name: p.default for name, p in scenario.parameters.items() if name not in plan.over}
    run = {key: value for key, value in vars(scenario.run).items() if key != "seed"}
    named = {"scenario": scenario.name, "simulation": scenario.simulation, "final_frames": plan.final_frames}
    sections = {"config": scenario.config, "params": values, "run": run}
    return named | {f"{part}.{key}": value for part, entries in sections.items() for key, value in entries.items()}


def _comparable(plan: Sweep) -> Scenario:
    """Return the scenario without what may differ between sweeps of one plan."""
    scenario = plan.scenario
    known = {name: dataclasses.replace(p, default=0.0) for name, p in scenario.parameters.items()}
    run = dataclasses.replace(scenario.run, seed=0)
    return dataclasses.replace(scenario, source=Path(), parameter_settings={}, known_parameters=known, run=run)


def _by_seeds(paths: Sequence[Path], plans: Sequence[Sweep]) -> Joined:
    """Join sweeps of the same points."""
    order = sorted(range(len(plans)), key=lambda index: plans[index].scenario.run.seed)
    for before, after in itertools.pairwise(order):
        end, begin = plans[before].scenario.run.seed + plans[before].seeds, plans[after].scenario.run.seed
        if begin != end:
            have = "the same points and seeds" if begin < end else f"no seeds from {end} to {begin - 1} between them"
            raise UserError(
                f"{paths[before]} and {paths[after]} have {have}; merge sweeps whose seeds follow each other"
            )
    source = np.concatenate([np.full(plans[index].seeds, index) for index in order])
    place = np.concatenate([np.arange(plans[index].seeds) for index in order])
    first = plans[order[0]]
    whole = dataclasses.replace(first, seeds=len(source))
    return Joined(whole, len(first.points.shape), tuple(plan.shape for plan in plans), source, place)


def _by_values(paths: Sequence[Path], plans: Sequence[Sweep], name: str) -> Joined:
    """Join grids along one parameter."""
    lists = [plan.over[name] for plan in plans]
    _refuse_shared(paths, [[(value,) for value in values] for values in lists], [name])
    values = np.concatenate([np.asarray(one) for one in lists])
    source = np.concatenate([np.full(len(one), index) for index, one in enumerate(lists)])
    place = np.concatenate([np.arange(len(one)) for one in lists])
    if all(list(one) == sorted(one) for one in lists):
        order = np.argsort(values, kind="stable")
        values, source, place = values[order], source[order], place[order]
    whole = dataclasses.replace(plans[0], over={**plans[0].over, name: tuple(values.tolist())})
    return Joined(whole, list(plans[0].over).index(name), tuple(plan.shape for plan in plans), source, place)


def _by_points(paths: Sequence[Path], plans: Sequence[Sweep]) -> Joined:
    """Join any points, as a list."""
    names = list(plans[0].over)
    counts = [plan.members // plan.seeds for plan in plans]
    if sum(counts) * len(names) > MOST_NUMBERS:
        raise UserError(f"the points of all sweeps are over {MOST_NUMBERS} numbers; merge fewer")
    values = [plan.points.values_of(np.arange(count)) for plan, count in zip(plans, counts, strict=True)]
    _refuse_shared(paths, [list(zip(*(one[name].tolist() for name in names), strict=True)) for one in values], names)
    over = {name: tuple(np.concatenate([one[name] for one in values]).tolist()) for name in names}
    origins = ", ".join(dict.fromkeys(plan.origin or "grid" for plan in plans))
    whole = dataclasses.replace(plans[0], over=over, zip=True, origin=f"merged: {origins}")
    source = np.concatenate([np.full(count, index) for index, count in enumerate(counts)])
    place = np.concatenate([np.arange(count) for count in counts])
    return Joined(
        whole, 0, tuple((count, plan.seeds) for count, plan in zip(counts, plans, strict=True)), source, place
    )


def _refuse_shared(paths: Sequence[Path], points: Sequence[Sequence[tuple[float, ...]]], names: Sequence[str]) -> None:
    """Refuse sweeps that have a point in common, which would then have two results."""
    seen: dict[tuple[float, ...], int] = {}
    for index, one in enumerate(points):
        for point in one:
            if seen.setdefault(point, index) != index:
                where = ", ".join(f"{name} = {value:g}" for name, value in zip(names, point, strict=True))
                raise UserError(f"{paths[seen[point]]} and {paths[index]} both have {where}; leave one of them out")


def _range(first: int, count: int) -> str:
    return f"{first} to {first + count - 1}" if count > 1 else f"{first}"
