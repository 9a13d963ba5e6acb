"""Objectives of a sweep's members, computed from the arrays that the sweep stores."""

import ast
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np

from simkit.core.expressions.measures import measure_of
from simkit.core.expressions.syntax import dotted, parse
from simkit.core.reductions import reduced
from simkit.core.status import checks_every_step, stops
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import ObjectiveSettings

if TYPE_CHECKING:
    import xarray

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
