"""Objectives of the members of a sweep: one number of each, of what a sweep keeps of its run."""

import ast
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from simkit.core.expressions.syntax import dotted, parse
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import ObjectiveSettings

if TYPE_CHECKING:
    import jax
    import xarray

    from simkit.core.simulation import Simulation

LEFT_OUT = "objectives_left_out"
"""Attribute of a data set: names of objectives that are not in it: they need arrays at times at which a sweep does not
keep them, or the result is so large that it stays in its chunks."""
PREFIX = "objective_"
"""Of the name in the data set of an objective whose own is that of something else there."""

type Arrays = Mapping[str, np.ndarray]


def objectives_to_compute(objectives: Mapping[str, ObjectiveSettings]) -> dict[str, ObjectiveSettings]:
    """Return objectives but for those that are the last value of a diagnostic, which a result has in any case.

    Args:
        objectives: by name.
    """
    return {
        name: settings
        for name, settings in objectives.items()
        if settings.expression or settings.reduce != "final" or settings.square
    }


def objective_values(
    simulation: "Simulation",
    scenario: Scenario,
    objectives: Mapping[str, ObjectiveSettings],
    observed: Arrays,
    diagnosed: Arrays,
    status: np.ndarray,
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return objectives of members.

    Args:
        simulation: the member.
        scenario: that declares them.
        objectives: as `objectives_to_compute` returns them.
        observed: the last frame of each member, (members, ...).
        diagnosed: diagnostics of each member, (members, frames, ...), which repeat the frame in which it stopped.
        status: codes at the end, (members,).

    Returns:
        Values (members,) by objective, and names of the objectives that need more than this.
    """
    import jax

    from simkit.core.status import checks_every_step, stops

    if not objectives:
        return {}, []
    counted = _stored(diagnosed, stops(status)) if diagnosed and checks_every_step(simulation) else None
    values, left_out = {}, []
    for name, settings in objectives.items():
        seen = [one for one in settings.made_of if one in observed and one not in diagnosed]
        missing = [one for one in settings.made_of if one not in observed and one not in diagnosed]
        if _needs_more(settings, seen, [one for one in missing if one not in simulation.coordinates]):
            left_out.append(name)
            continue
        # One member after another, so that its value does not depend on which others there are.
        function = jax.jit(_measure(simulation, scenario, settings))
        values[name] = np.array(
            [
                function(
                    {one: observed[one][index][None] for one in seen},
                    {one: array[index] for one, array in diagnosed.items()},
                    None if counted is None else counted[index],
                )
                for index in range(len(status))
            ]
        )
    return values, left_out


def objectives_in(result: "xarray.Dataset", scenario: Scenario) -> dict[str, "xarray.DataArray"]:
    """Return the objectives that a sweep stored, by their names in its data set.

    Args:
        result: of the sweep.
        scenario: with the objectives.
    """
    names = ((f"{PREFIX}{name}", name) for name in scenario.objectives)
    found = (prefixed if prefixed in result else name for prefixed, name in names)
    return {name: result[name] for name in found if name in result and result[name].dims == result["status"].dims}


def _measure(simulation: "Simulation", scenario: Scenario, settings: ObjectiveSettings) -> Callable[..., "jax.Array"]:
    """Return ``(frames, diagnostics, stored) -> number``."""
    from simkit.core.expressions.measures import measure_of
    from simkit.core.reductions import reduced

    if settings.expression:
        where = f"{scenario.file}: objectives.{settings.name}"
        return cast("Callable[..., jax.Array]", measure_of(simulation, settings.expression, where))

    def measure(frames: Any, diagnostics: Any, stored: Any) -> "jax.Array":
        value = reduced(settings.reduce, diagnostics[settings.quantity], stored)  # type: ignore[arg-type]
        return value**2 if settings.square else value

    return measure


def _needs_more(settings: ObjectiveSettings, seen: Collection[str], missing: Collection[str]) -> bool:
    """Tell whether an objective needs arrays that are not there, or earlier than in the last frame."""
    if missing or not seen:
        return bool(missing)
    syntax = parse(settings.expression, "")
    return syntax.over_frames and _is_outside_final(syntax.tree, seen)


def _is_outside_final(node: ast.AST, names: Collection[str]) -> bool:
    """Tell whether a formula takes one of these names other than in its last frame."""
    if isinstance(node, ast.Call) and dotted(node.func) == "final":
        return False
    if isinstance(node, ast.Name | ast.Attribute) and dotted(node) in names:
        return True
    return any(_is_outside_final(part, names) for part in ast.iter_child_nodes(node))


def _stored(diagnosed: Arrays, stopped: np.ndarray) -> np.ndarray:
    """Return which frames of members are none of the repeats after the one in which a member stopped.

    Those repeats agree with the last frame in every diagnostic, time among them.

    Returns:
        (members, frames) booleans.
    """
    count, frames = len(stopped), next(iter(diagnosed.values())).shape[1]
    alike = np.ones((count, frames), bool)
    for array in diagnosed.values():
        rows = array.reshape(count, frames, -1)
        alike &= ((rows == rows[:, -1:]) | (np.isnan(rows) & np.isnan(rows[:, -1:]))).all(axis=-1)
    # From its first frame that is like all those behind it.
    behind = np.logical_and.accumulate(alike[:, ::-1], axis=1)[:, ::-1]
    repeats = np.zeros_like(behind)
    repeats[:, 1:] = behind[:, :-1]
    return ~repeats | ~stopped[:, None]
