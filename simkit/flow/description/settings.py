"""Settings of a flow described as data."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from simkit.core.arrays import arrays
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE
from simkit.core.parts import Choice, Declaration, PartTable, declaration_of
from simkit.core.settings import (
    Setting,
    condition,
    either,
    excludes,
    flag,
    formula,
    named,
    number,
    one_of,
    several,
    table,
    tabulated,
    text,
    whole,
    word,
)
from simkit.errors import Mistakes, Remedy, UserError
from simkit.flow.boundary.domain import WALL_SLOPES
from simkit.flow.boundary.side_data import ON_SIDE
from simkit.flow.boundary.sides import Side
from simkit.flow.description.formulas import ANYWHERE, AXES, COMPONENTS, EVERY_FIELD, MOVING, SCALARS, TIME
from simkit.flow.equations import METHODS as TIME_METHODS
from simkit.flow.grid import MAX_CELLS
from simkit.flow.obstacles.methods import METHODS
from simkit.flow.operators.advection import LAYERS
from simkit.flow.parts import SCALAR_SIDES, SHAPES, SIDES, SURFACES
from simkit.flow.scalar import SCHEMES

WALL_COLORS = ("wall", "hot", "cold")
SIDE = Choice(SIDES, "kind", "what the side is")
SCALAR_SIDE = PartTable((Choice(SCALAR_SIDES, "kind", "condition of the scalar on the side"),), {})
SURFACE = PartTable((Choice(SURFACES, "kind", "condition of the scalar on the surface"),), {})
SHAPE = Choice(SHAPES, "shape", "its shape, around its position")
IN_SPACE = "is along z, and the flow is plane; remove it, or give axes.z"
IN_PLANE = "is for plane flows; remove it"
# What a part of a side, the rest of it, and a side without parts have of the keys beside those of its kind.
WHERE = "where on the side it is, by the coordinates, parameters and time"
NO_COLOR = "since pictures show a side as one"
ROLES = {
    "whole": Declaration(excludes={"where": "which is all of the side; a list gives the rest of it, then its parts"}),
    "rest": Declaration(excludes={"where": "the first of the list, which is the rest of the side", "drawn": NO_COLOR}),
    "part": Declaration(keys={"where": condition(WHERE, takes=ON_SIDE)}, excludes={"drawn": NO_COLOR}),
}


def declared_side(kind: type[Side], axis: int, dimension: int | None, role: str) -> Declaration:
    """Return what a side declares on an axis: data of its own, and the velocity, pressure and color that it takes.

    Args:
        kind: class of the side.
        axis: across the side.
        dimension: number of axes; None for any.
        role: "whole", "rest" or "part".
    """
    declared, place = declaration_of(kind), ROLES[role]
    keys, values = {**declared.keys, **place.keys}, dict(declared.values)
    excludes = {**place.excludes, **declared.excludes}
    for component, name in enumerate(COMPONENTS):
        doc = f"velocity along {AXES[component]}"
        if component == axis and kind.enters:
            values[name] = formula(f"{doc}, through the side", takes=ON_SIDE)
        elif component == axis:
            excludes[name] = "through which no given velocity passes (an 'inflow' takes one)"
        elif component >= (dimension or len(COMPONENTS)):
            excludes[name] = "a velocity along z, and the flow is plane; give axes.z"
        elif kind.takes_along:
            values[name] = formula(doc, None, takes=ON_SIDE)
    if kind.gives_pressure:
        values["pressure"] = formula("pressure over density; by default 0", None, takes=ON_SIDE)
    if kind.is_wall() and role == "whole":
        keys["drawn"] = word("how pictures show it", WALL_COLORS, WALL_COLORS[0])
    along = COMPONENTS[axis if kind.enters else 1 - min(axis, 1)]
    aliases = {**declared.aliases, **({"profile": along} if along in values else {})}
    return dataclasses.replace(declared, keys=keys, values=values, excludes=excludes, aliases=aliases)


def _side(axis: int, dimension: int | None) -> Setting:
    """Return the setting of a side: a name, a table, or a list of the parts of which it consists."""

    def of_role(role: str) -> PartTable:
        def unfit(kind: type[Side]) -> str | None:
            serves = role == "whole" or kind.prescribes_velocity()
            return None if serves else "takes a whole side, and is no part of one"

        declared = functools.partial(declared_side, axis=axis, dimension=dimension, role=role)
        return PartTable((dataclasses.replace(SIDE, declared=declared, unfit=unfit),), {})

    def entry(role: str) -> Setting:
        return either("a part of the side", of_role(role).by_name("a kind"), of_role(role).setting("a part"))

    rest, part, whole_side = entry("rest"), entry("part"), of_role("whole")
    parts = several(part, "the rest of the side, then parts of it")

    def check(value: Any, where: str) -> tuple[Any, ...]:
        if len(value) < 2:
            raise UserError(
                f"{where} is a list of {len(value)}; write the rest of the side and a part of it, or no list"
            )
        mistakes, checked = Mistakes(), []
        for index, each in enumerate(value):
            with mistakes.kept(f"{where}[{index}]"):
                checked.append((part if index else rest).check(each, f"{where}[{index}]"))
        mistakes.raise_if_any()
        return tuple(checked)

    def schema() -> dict[str, Any]:
        return {"type": "array", "prefixItems": [dict(rest.schema)], "items": dict(part.schema), "minItems": 2}

    return either(
        "the side at an end of the axis",
        whole_side.by_name("a kind"),
        whole_side.setting("a kind with its data"),
        dataclasses.replace(parts, check=check, describe=schema),
        default=None,
    )


def _absent(setting: Setting, reason: str, is_absent: bool) -> Setting:
    """Return a setting that is refused for a reason in flows that do not have it."""
    if not is_absent:
        return setting

    def check(value: Any, where: str) -> Any:
        raise UserError(f"{where} {reason}", key=where, remedy=Remedy("remove"))

    return dataclasses.replace(setting, check=check, default=None, is_required=False)


REFINED = {
    "cell": number("width of the cells in the part", bounds=POSITIVE),
    "from": number("where the part begins"),
    "to": number("where it ends, a multiple of the cell from there"),
    "growth": number("part of the distance from there by which cells grow", 0.02, (0.0, 1.0)),
}
AXIS = {
    "cells": whole("number of cells", None, low=4, high=MAX_CELLS),
    "from": number("where the axis begins", 0.0),
    "to": number("where it ends", None),
    "length": number("its length, in place of where it ends", None, POSITIVE),
    "stretching": number("0 for equal cells, about 2 for finer ones at both ends", 0.0, (0.0, 6.0)),
    "refined": table("a part of fine cells, which grow away from there, in place of a number of cells", REFINED),
    "faces": several(number("a position"), "positions of all faces, in place of the keys above", default=None),
    "periodic": flag("periodic: both ends are joined, and there are no sides"),
}
AXIS_RULES = (
    *one_of("cells", "refined", "faces"),
    *one_of("to", "length", unless="faces"),
    *excludes("faces", ("from", "to", "length", "stretching", "periodic")),
    *excludes("refined", ("stretching", "periodic")),
    *excludes("periodic", ("stretching", "lower", "upper")),
)
AXIS_NAMES = ("first axis", "second axis", "third axis; without it the flow is plane")
EDDIES = {
    "energy": formula("mean kinetic energy per mass", bounds=NOT_NEGATIVE),
    "wavenumber": formula(
        "where the spectrum has its maximum, in a periodic box; by default four waves along the shortest axis",
        None,
        bounds=POSITIVE,
    ),
}
UNITS = {
    "length": text("of length", "1"),
    "velocity": text("of velocity", "1"),
    "time": text("of time; by default that of length over that of velocity", ""),
}


def _scalar(dimension: int | None) -> dict[str, Setting]:
    """Return the settings of a scalar."""
    end = either(
        "what is at the end of an axis",
        SCALAR_SIDE.by_name("a condition", "value"),
        SCALAR_SIDE.setting("a condition with its data"),
        default="insulated",
    )
    ends = {"lower": end, "upper": end}
    sides = {name: _absent(table(f"along {name}", ends, {}), IN_SPACE, name == "z" and dimension == 2) for name in AXES}
    return {
        "diffusivity": formula(
            "its diffusivity: of parameters; or a field, by coordinates, time and scalars",
            takes=(*AXES, TIME, SCALARS),
            bounds=NOT_NEGATIVE,
        ),
        "initial": formula("its values at the start, by the coordinates", 0.0, takes=tuple(AXES)),
        "source": formula(
            "amount added per volume and time, by coordinates, time, velocity and scalars", None, takes=ANYWHERE
        ),
        "sides": table("boundary conditions on the sides; insulated by default", sides, {}),
        "scheme": word("of its advection", SCHEMES, SCHEMES[0]),
        "unit": text("its unit", "1"),
        "doc": text("what it is", ""),
    }


def _obstacle(dimension: int | None, scalars: tuple[str, ...] | None) -> Setting:
    """Return the setting of an obstacle; ``scalars`` are the names of those that the flow carries, None for any."""
    count, of_time = (dimension,) if dimension else (2, 3), (TIME,)
    surface = either(
        "boundary condition at the surface of an obstacle",
        SURFACE.by_name("a condition", "value"),
        SURFACE.setting("a condition with its data"),
        default="insulated",
    )
    doc = "boundary conditions of scalars on its surface, by name; insulated by default"
    length = formula("length of the coefficients", bounds=POSITIVE)
    area = formula("area of the coefficients, in place of a length in space", bounds=POSITIVE)
    reference = {
        "speed": formula("speed of the stream", bounds=POSITIVE),
        **({} if dimension == 3 else {"length": length}),
        **({} if dimension == 2 else {"area": area}),
    }
    if dimension is None:
        reference = {key: dataclasses.replace(each, is_required=key == "speed") for key, each in reference.items()}
    common = {
        "position": several(formula("a coordinate", takes=of_time), "its position, by parameters and time", count),
        "angle": formula(
            "by which it is turned counterclockwise in the x-y plane, by parameters and time", None, takes=of_time
        ),
        "size": formula(
            "by which it is larger than its shape, by parameters and time", None, takes=of_time, bounds=POSITIVE
        ),
        "spin": formula("angular velocity of the surface of a round body, besides that of the angle", None),
        "reference": table("what drag and lift coefficients refer to; without it there are none", reference),
        "pressure_at": _absent(
            named(
                "points of its surface where the pressure is diagnosed, in a plane flow: where rays from the position "
                "leave it",
                formula("angle of the ray, counterclockwise from the x axis, by parameters and time", takes=of_time),
            ),
            IN_PLANE,
            dimension == 3,
        ),
        "scalars": named(doc, surface) if scalars is None else table(doc, dict.fromkeys(scalars, surface), {}),
        "attached": flag(
            "whether it may touch walls and inflows and reach through them; its load is then not diagnosed"
        ),
        "points": whole(
            "on the outline of an immersed boundary; by default as many as the cells there ask for", None, 8
        ),
    }
    shape = dataclasses.replace(SHAPE, dimension=dimension, declared=_declared_shape)
    # Of an attached body the load is not known.
    return PartTable((shape,), common, excludes("attached", ("reference",))).setting("an obstacle")


def _declared_shape(shape: Any) -> Declaration:
    """Return what a shape declares, with what others call the position of an obstacle."""
    declared = declaration_of(shape)
    aliases = {"center": "position", "centre": "position", "origin": "position"}
    return dataclasses.replace(declared, aliases={**aliases, **declared.aliases})


@functools.lru_cache(maxsize=16)
def settings_of(dimension: int | None = None, scalars: tuple[str, ...] | None = None) -> Mapping[str, Setting]:
    """Return the settings of a flow.

    Args:
        dimension: number of its axes, 2 or 3; None for the settings of all flows.
        scalars: names of the scalars that it carries; None for any.
    """
    is_plane, is_spatial = dimension == 2, dimension == 3
    axes = AXES[:dimension] if dimension else AXES
    count = (dimension,) if dimension else (2, 3)
    axis_tables = {
        name: dataclasses.replace(
            table(
                AXIS_NAMES[axis],
                AXIS | {"lower": _side(axis, dimension), "upper": _side(axis, dimension)},
                rules=AXIS_RULES,
            ),
            is_required=name != "z",
        )
        for axis, name in enumerate(AXES)
    }
    initial = {
        "u": formula("velocity along x, by the coordinates", None, takes=tuple(AXES)),
        "v": formula("velocity along y", None, takes=tuple(AXES)),
        "w": _absent(formula("velocity along z", None, takes=tuple(AXES)), IN_SPACE, is_plane),
        "stream_function": _absent(
            formula(
                "psi in place of the components, with u = dpsi/dy and v = -dpsi/dx, in a plane flow",
                None,
                takes=tuple(AXES),
            ),
            IN_PLANE,
            is_spatial,
        ),
        "eddies": either(
            "random eddies that are added, in a periodic box, or in a plane flow, periodic along x, between two sides",
            formula("their root-mean-square speed"),
            table("their energy and size", EDDIES),
            default=None,
        ),
    }
    force = {
        "x": formula("along x, by coordinates, time, velocity and scalars, per unit mass", None, takes=MOVING),
        "y": formula("along y", None, takes=MOVING),
        "z": _absent(formula("along z", None, takes=MOVING), IN_SPACE, is_plane),
    }
    of_medium = (*AXES, TIME)
    velocities = {
        "u": formula("velocity of what drags along x, by coordinates and time", 0.0, takes=of_medium),
        "v": formula("along y", 0.0, takes=of_medium),
        "w": _absent(formula("along z", 0.0, takes=of_medium), IN_SPACE, is_plane),
    }
    coefficient = formula("inverse time, by coordinates and time", bounds=NOT_NEGATIVE, takes=of_medium)
    drag = {"coefficient": coefficient, **velocities}
    return {
        "axes": dataclasses.replace(
            table("directions of the domain: x, y and, in space, z", axis_tables), is_required=True
        ),
        "viscosity": formula(
            "kinematic viscosity: of parameters; or a field, by coordinates, time, velocity, shear_rate and scalars",
            takes=EVERY_FIELD,
            bounds=NOT_NEGATIVE,
        ),
        "force": table("forces", force, {}),
        "drag": table(
            "implicit drag -coefficient (u - its velocity) per unit mass, of a porous medium or a solid",
            drag,
        ),
        "flow_rate": formula(
            "mean velocity along x that a uniform acceleration holds, by the time", None, takes=(TIME,)
        ),
        "initial": table(
            "velocity at the start; at rest by default", initial, {}, excludes("stream_function", ("u", "v", "w"))
        ),
        "start": arrays(
            'velocity and scalars at the start, in place of formulas: { file = "start.npz" }, or a frame of a stored '
            'run, { run = "runs/demo", frame = -1 }; u, v and w at the cell centers, or u_face, v_face and w_face'
        ),
        "scalars": named("scalars that the flow carries", table("", _scalar(dimension))),
        "obstacles": named("bodies in the flow", _obstacle(dimension, scalars)),
        "obstacle_method": word(
            "how obstacles hold the flow; by default the first for plane obstacles that it serves", METHODS, None
        ),
        "derived": named(
            "values that formulas may take, each by parameters and by those before it", formula("", takes=EVERY_FIELD)
        ),
        "tables": named("tables of numbers that formulas read, interp(y, NAME)", tabulated("")),
        "courant_number": formula(
            "largest number of cells that the flow crosses in a step, by parameters: each step is then as long as the "
            "flow allows, at most the parameter time_step; by default all steps are as long as that",
            None,
        ),
        "method": word("of the steps in time", TIME_METHODS, TIME_METHODS[0]),
        "implicit": several(
            word("an axis", tuple(axes)),
            "axes along which friction and diffusion are implicit; by default those with a wall, with slip or without, "
            "unless the viscosity is a field or there are obstacles",
            default=None,
        ),
        "implicit_viscosity": formula(
            "part of a viscosity field that is implicit, at least its largest value", None, bounds=NOT_NEGATIVE
        ),
        "scheme": word("of advection", tuple(LAYERS), next(iter(LAYERS))),
        "wall_slope": word("how the slope at a wall is taken", WALL_SLOPES, WALL_SLOPES[0]),
        "largest_speed": either(
            "expected, for the check of the time step; by default that of the start and of the sides",
            formula("in any direction", bounds=POSITIVE),
            several(formula("a size", bounds=NOT_NEGATIVE), "largest size of each component", count),
            default=None,
        ),
        "plane": _absent(
            number("where along z the plane is that pictures show, in space; by default in the middle", None),
            IN_SPACE,
            is_plane,
        ),
        "observed": several(
            text("a name"), "fields that frames store; by default all at the cell centers", default=None
        ),
        "units": table("of length, velocity and time", UNITS, {}),
    }


SETTINGS = settings_of()
RULES = excludes("courant_number", ("largest_speed",))
