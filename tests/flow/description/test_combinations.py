"""Combinations of sides, friction, dimension, scalar and obstacle: conservation of volume and scalars, and refusals."""

import pytest

from simkit import flow
from simkit.errors import UserError
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

BODIES = {
    "at rest": {"position": [0, 0]},
    "turned and larger": {"position": [0, 0], "angle": 0.3, "size": 1.2},
    "on its way": {"position": ["-0.2 + 0.3*time", "0.1*sin(time)"]},
    "turning": {"position": [0, 0], "angle": "0.5*time"},
    "swelling": {"position": [0, 0], "size": "1 + 0.2*time"},
}

ROOM = {name: {"cells": 12, "from": -1.5, "length": 3, "lower": "wall", "upper": "wall"} for name in "xy"}
CARRIED = {
    # Not in the order of their names.
    "salt": {"diffusivity": 0.3},
    "heat": {"diffusivity": "2*nu"},
    "dye": {"diffusivity": 0.01, "initial": 1},
}
GIVEN = {"heat": "hot*exp(-time)", "salt": {"flux": "0.3*hot"}}


def carrying(body, **more):
    return flow.system(
        axes=ROOM,
        viscosity="nu",
        initial={"stream_function": "0.1*(1 - (x/1.5)**2)**2*(1 - (y/1.5)**2)**2"},
        scalars=CARRIED,
        obstacles={"body": {"shape": "ellipse", "half_axes": [0.6, 0.5], "scalars": GIVEN, **BODIES[body]}},
        parameters={"nu": 0.05, "hot": 1.0, "time_step": 0.02},
        **more,
    )


def test_an_obstacle_of_changing_size_with_scalars_is_refused():
    with pytest.raises(UserError, match="a body that changes its size in time does not support scalars"):
        carrying("swelling")


@every(
    [
        ({"haet": 1}, r"obstacles\.body\.scalars\.haet is not a known key; did you mean 'heat'\?"),
        ({"heat": {"value": 1, "flux": 1}}, r"obstacles\.body\.scalars\.heat\.flux has no effect on kind"),
        ({"heat": "x"}, r"obstacles\.body\.scalars\.heat: column 1 of '>>>x': 'x' is not known here"),
    ]
)
def test_scalar_conditions_of_obstacles_are_checked(given, message):
    body = {"shape": "circle", "radius": 0.5, "position": [0, 0], "scalars": given}
    with pytest.raises(UserError, match=message):
        flow.system(axes=ROOM, viscosity=0.1, scalars=CARRIED, obstacles={"body": body}, parameters={"nu": 0.1})


FRICTIONS_REFUSED = {
    "immersed and implicit": (
        {"obstacle_method": "immersed_boundary", "implicit": ["y"], "scalars": None},
        "an immersed boundary does not support implicit friction; choose method direct_forcing",
    ),
    "immersed and a field": (
        {"obstacle_method": "immersed_boundary", "viscosity": "0.1*(1 + shear_rate)", "scalars": None},
        "an immersed boundary does not support a viscosity that varies",
    ),
    "a field, implicit": (
        {"viscosity": "0.1 + 0.01*y", "implicit": ["y"], "obstacles": None},
        "viscosity is a field, and implicit friction needs a number; give implicit_viscosity",
    ),
    "a field, implicit, in stages": (
        {"viscosity": "0.1 + 0.01*y", "implicit": ["y"], "implicit_viscosity": 0.2, "obstacles": None},
        "method 'runge_kutta' does not support implicit friction with a viscosity field",
    ),
    "a part without a field": (
        {"implicit": ["y"], "implicit_viscosity": 0.2, "obstacles": None},
        "implicit_viscosity is given, but the viscosity is one number",
    ),
}


@every(list(FRICTIONS_REFUSED))
def test_unsupported_friction_is_refused_by_name(case):
    changes, message = FRICTIONS_REFUSED[case]
    body = {"shape": "circle", "radius": 0.5, "position": [0, 0]}
    settings = {"axes": ROOM, "viscosity": 0.1, "scalars": CARRIED, "obstacles": {"body": body}} | changes
    with pytest.raises(UserError, match=message):
        flow.system(**settings, parameters={"nu": 0.1})
