"""Settings of a flow described as data."""

import dataclasses
from typing import Any

from simkit.core.parameter import POSITIVE
from simkit.core.settings import (
    Setting,
    condition,
    either,
    flag,
    formula,
    named,
    number,
    several,
    table,
    text,
    whole,
    word,
)
from simkit.errors import UserError
from simkit.flow.description.obstacles import SHAPES
from simkit.flow.grid import MAX_CELLS

SIDE_KINDS = ("wall", "free_slip", "inflow", "outflow", "pressure")


def _side() -> Setting:
    """Return the setting of one side: a word, a table, or a list of the parts of which it consists."""
    kinds = word("what the side is", SIDE_KINDS)
    keys = {
        "kind": kinds,
        "u": formula("velocity along x of a wall or an inflow, by x, y, z and time", None),
        "v": formula("velocity along y, likewise", None),
        "w": formula("velocity along z, likewise", None),
        "pressure": formula("pressure over density on a pressure side, by x, y, z and time; by default 0", None),
        "drawn": word("how pictures show a wall", ("wall", "hot", "cold"), "wall"),
    }
    part = table(
        "", keys | {"where": condition("where on the side it is, by the coordinates, parameters and time", None)}
    )
    parts = several(either("a part of the side", kinds, part), "the rest of the side, then parts of it")
    one = either("the side at an end of the axis", kinds, table("", keys), parts, default=None)

    def check(value: Any, where: str) -> Any:
        if isinstance(value, dict) and "where" in value:
            raise UserError(
                f"{where}.where is given, and nothing says what the rest of the side is; write a list, the rest first"
            )
        return one.check(value, where)

    return dataclasses.replace(one, check=check)


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
    "lower": _side(),
    "upper": _side(),
}
AXES = {
    "x": table("first axis", AXIS),
    "y": table("second axis", AXIS),
    "z": table("third axis; without it the flow is plane", AXIS),
}
INITIAL = {
    "u": formula("velocity along x, by the coordinates", None),
    "v": formula("velocity along y", None),
    "w": formula("velocity along z", None),
    "stream_function": formula("psi in place of the components, with u = dpsi/dy and v = -dpsi/dx", None),
    "eddies": formula(
        "root-mean-square speed of random eddies that are added, in a plane flow, periodic along x, between two sides",
        None,
    ),
}
FORCE = {
    "x": formula("along x, by coordinates, time, velocity and scalars, per unit mass", None),
    "y": formula("along y", None),
    "z": formula("along z", None),
}
SCALAR_END = either(
    "what is at the end of an axis",
    formula('its value there; or "insulated"'),
    table(
        "",
        {
            "value": formula("its value there, by x, y, z and time", None),
            "flux": formula("flux into the fluid, per area and time", None),
        },
    ),
    default="insulated",
)
ENDS = {"lower": SCALAR_END, "upper": SCALAR_END}
SCALAR = {
    "diffusivity": formula("its diffusivity, by parameters"),
    "initial": formula("its values at the start, by the coordinates", 0.0),
    "source": formula("amount added per volume and time, by coordinates, time, velocity and scalars", None),
    "sides": table(
        "boundary conditions on the sides; insulated by default",
        {name: table(f"along {name}", ENDS, {}) for name in "xyz"},
        {},
    ),
    "scheme": word("of its advection", ("central", "bounded"), "central"),
    "unit": text("its unit", "1"),
    "doc": text("what it is", ""),
}
SURFACE = either(
    "boundary condition at the surface of an obstacle",
    formula('the value of the scalar there, by parameters and time; or "insulated"'),
    table(
        "",
        {
            "value": formula("its value there, by parameters and time", None),
            "flux": formula("flux from the obstacle into the fluid, per area and time", None),
        },
    ),
)
OBSTACLE = {
    "shape": word("its shape, around its position", tuple(SHAPES), None),
    "distance": formula(
        "in place of a shape, negative inside: by x, y and z from the position, along axes that turn with it", None
    ),
    "position": several(formula("a coordinate"), "its position, by parameters and time", (2, 3)),
    "angle": formula("by which it is turned counterclockwise in the x-y plane, by parameters and time", None),
    "size": formula("by which it is larger than its shape, by parameters and time", None),
    "spin": formula("angular velocity of the surface of a round body, besides that of the angle", None),
    "radius": formula("of a circle, a sphere, a capsule along x or a cylinder along z", None),
    "half_length": formula("of a capsule between the centers of its ends; of a cylinder, without it endless", None),
    "corners": several(
        several(formula("a coordinate"), "a point", (2,)),
        "of a polygon, in order around it, from its position",
        (),
        None,
    ),
    "digits": text('of an airfoil, four of them, such as "2412"', None),
    "chord": formula("of an airfoil, whose position is a quarter of it behind the nose", None),
    "half_axes": several(formula("a length"), "of an ellipse or an ellipsoid, along each axis", (2, 3), None),
    "half_widths": several(formula("a length"), "of a box, along each axis", (2, 3), None),
    "rounding": formula("radius of the edges of a box", None),
    "pressure_at": named(
        "points of its surface where the pressure is diagnosed, in a plane flow: where rays from the position leave it",
        formula("angle of the ray, counterclockwise from the x axis, by parameters and time"),
    ),
    "scalars": named("boundary conditions of scalars on its surface, by name; insulated by default", SURFACE),
    "attached": flag(
        "whether it may touch walls and inflows and reach through them; its load is then not diagnosed", False
    ),
    "points": whole("on the outline of an immersed boundary; by default as many as the cells there ask for", None, 8),
}
UNITS = {
    "length": text("of length", "1"),
    "velocity": text("of velocity", "1"),
    "time": text("of time; by default that of length over that of velocity", ""),
}
SETTINGS = {
    "axes": table("directions of the domain: x, y and, in space, z", AXES),
    "viscosity": formula(
        "kinematic viscosity: of parameters; or a field, by coordinates, time, velocity, shear_rate and scalars"
    ),
    "force": table("forces", FORCE, {}),
    "flow_rate": formula("mean velocity along x that a uniform acceleration holds, by the time", None),
    "initial": table("velocity at the start; at rest by default", INITIAL, {}),
    "scalars": named("scalars that the flow carries", table("", SCALAR)),
    "obstacles": named("bodies in the flow", table("", OBSTACLE)),
    "obstacle_method": word(
        "how obstacles hold the flow; by default the first for plane obstacles that it serves",
        ("immersed_boundary", "direct_forcing"),
        None,
    ),
    "derived": named("values that formulas may take, each by parameters and by those before it", formula("")),
    "courant_number": formula(
        "largest number of cells that the flow crosses in a step, by parameters: each step is then as long as the flow "
        "allows, at most the parameter time_step; by default all steps are as long as that",
        None,
    ),
    "method": word("of the steps in time", ("runge_kutta", "adams_bashforth"), "runge_kutta"),
    "implicit": several(
        word("an axis", ("x", "y", "z")),
        "axes along which friction and diffusion are implicit; by default those with a wall, unless the viscosity is a "
        "field or there are obstacles",
        default=None,
    ),
    "implicit_viscosity": formula("part of a viscosity field that is implicit, at least its largest value", None),
    "scheme": word("of advection", ("central", "upwind"), "central"),
    "wall_slope": word("how the slope at a wall is taken", ("parabola", "symmetric"), "parabola"),
    "largest_speed": either(
        "expected, for the check of the time step; by default that of the start and of the sides",
        formula("in any direction"),
        several(formula("a size"), "largest size of each component", (2, 3)),
        default=None,
    ),
    "plane": number("where along z the plane is that pictures show, in space; by default in the middle", None),
    "observed": several(text("a name"), "fields that frames store; by default all at the cell centers", default=None),
    "units": table("of length, velocity and time", UNITS, {}),
}
