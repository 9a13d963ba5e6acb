"""Sides of several parts in a flow described as data, such as a wall with a slot through which fluid enters.

Walls and inflows both give the velocity on a side, so that a side of such parts is one whose velocity differs from
place to place: conditions may take parameters and the time, and nothing of the program depends on them.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from simkit.core.expressions.expression import expression
from simkit.core.expressions.scope import Formula, Scope
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.composed.places import COMPONENTS, Places

PARTS = ("wall", "inflow")

# Settings of a part: its kind, its table, and the path of its key.
type Part = tuple[str, Mapping[str, Any], str]
# Conditions of the parts of a side, as numbers: 1 where they hold and 0 elsewhere.
type Conditions = dict[tuple[int, int], list[Formula]]


def parts_of(settings: Any, where: str) -> list[Part]:
    """Return the parts of a side; one for a side that is a word or a table.

    Args:
        settings: the setting of the side.
        where: path of its key.

    Raises:
        UserError: if several are not walls and inflows, the first of them has a condition, or another has none.
    """
    entries = settings if isinstance(settings, tuple) else (settings,)
    found: list[Part] = []
    for index, one in enumerate(entries):
        path = f"{where}[{index}]" if isinstance(settings, tuple) else where
        given: Mapping[str, Any] = one if isinstance(one, Settings) else {}
        found.append((one["kind"] if isinstance(one, Settings) else one, given, path))
    if not isinstance(settings, tuple):
        return found
    if len(found) < 2:
        raise UserError(f"{where} is a list of {len(found)}; write the rest of the side and a part of it, or no list")
    for index, (kind, given, path) in enumerate(found):
        if kind not in PARTS:
            raise UserError(
                f"{path} is of kind '{kind}', which can be no part of a side; parts are of kind {' and '.join(PARTS)}"
            )
        if given.get("pressure") is not None:
            raise UserError(f"{path}.pressure is given, and a side of kind '{kind}' does not take it; remove it")
        if "drawn" in getattr(given, "given", ()):
            raise UserError(f"{path}.drawn is given, and pictures show a side as one; remove it")
        has_condition = given.get("where") is not None
        if has_condition != bool(index):
            raise UserError(
                f"{path}.where is {'given' if has_condition else 'missing'}; the first of the list is the rest of the "
                "side, and each of the others says where it is"
            )
    return found


def velocity_of(
    parts: list[Part], component: int, through: bool, scope: Scope, names: tuple[str, ...]
) -> Formula | None:
    """Return the formula of one component of the velocity on a side of several parts; None where all are at rest.

    Args:
        parts: of the side.
        component: which one.
        through: whether it passes the side.
        scope: of formulas.
        names: what they may take besides parameters: coordinates and the time.

    Raises:
        UserError: if an inflow has no velocity through the side, or a wall has one.
    """
    name, text, written = COMPONENTS[component], "0", []
    for kind, given, path in parts:
        said = given.get(name)
        if through and kind == "wall" and said is not None:
            raise UserError(f"{path}.{name} is given, and a wall lets nothing pass; remove it, or make it an 'inflow'")
        if through and kind == "inflow" and said is None:
            raise UserError(f"{path}.{name} is missing; give the velocity with which the flow comes in there")
        if said is not None:
            scope.formula(said, names)
            written.append(f"{path}.{name}")
        value = "0" if said is None else f"({said.text})"
        text = value if given.get("where") is None else f"where({given['where'].text}, {value}, {text})"
    return scope.formula(FormulaText(text, " and ".join(written)), names) if written else None


def conditions_of(parts: list[Part], scope: Scope, names: tuple[str, ...]) -> list[Formula]:
    """Return the conditions of all parts but the first, as numbers."""
    said, known = [given["where"] for _, given, _ in parts[1:]], {*scope.parameters, *scope.derived, *names}
    for one in said:
        expression(one.text, one.where, known, is_condition=True)
    return [scope.formula(FormulaText(f"where({one.text}, 1, 0)", one.where), names) for one in said]


def check_parts(conditions: Conditions, places: Places, params: Params, time: jax.Array) -> None:
    """Refuse parts of sides that hold on no face at the start, on all of them, or where another part does.

    Raises:
        UserError: that names the key.
    """
    for (axis, side), formulas in conditions.items():
        shape = [1 if k == axis else n for k, n in enumerate(places.domain.grid.cells)]
        taken = np.zeros(shape, bool)
        given = places.on_side(axis, side, None, params)
        for formula in formulas:
            held = np.broadcast_to(np.asarray(formula.on(places.axes, params, **given, time=time)) > 0.5, shape)
            if not held.any():
                raise UserError(f"{formula.where} holds at the center of no face of the side at the start; widen it")
            if (held & taken).any():
                raise UserError(f"{formula.where} holds where another part of the side does; make them apart")
            taken = taken | held
        if taken.all():
            raise UserError(f"{formulas[-1].where} leaves nothing of the rest of the side; narrow it, or write no list")
