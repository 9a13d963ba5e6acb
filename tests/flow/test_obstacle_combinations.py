"""Combinations of method, dimension, motion, scalar, friction and time step of bodies: each runs or is refused."""

import itertools

import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.obstacles import Body, Motion, ScalarSurface, ball, bodies_in
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

AXES = {
    "method": ("immersed_boundary", "direct_forcing"),
    "dimension": (2, 3),
    "moving": ("rests", "moves"),
    "scalar": ("no scalar", "value", "flux"),
    "friction": ("explicit", "implicit"),
    "scheme": ("runge_kutta", "adams_bashforth"),
}
SURFACES = {
    "no scalar": None,
    "value": ScalarSurface(value=lambda p, t: 1.0),
    "flux": ScalarSurface(flux=lambda p, t: 0.5),
}
# Every pair of entries of two columns is in one of these rows, as far as they go together.
RUN = [
    ("immersed_boundary", 2, "moves", "value", "explicit", "runge_kutta"),
    ("immersed_boundary", 2, "rests", "flux", "explicit", "adams_bashforth"),
    ("immersed_boundary", 2, "moves", "no scalar", "explicit", "adams_bashforth"),
    ("direct_forcing", 2, "moves", "flux", "implicit", "adams_bashforth"),
    ("direct_forcing", 2, "rests", "no scalar", "explicit", "adams_bashforth"),
    ("direct_forcing", 2, "rests", "value", "implicit", "runge_kutta"),
    ("direct_forcing", 3, "moves", "value", "explicit", "adams_bashforth"),
    ("direct_forcing", 3, "rests", "flux", "explicit", "runge_kutta"),
    ("direct_forcing", 3, "moves", "no scalar", "implicit", "runge_kutta"),
]


def case(method, dimension, moving, surface, friction, scheme):
    cells = 12 if dimension == 2 else 10
    axes = (periodic_axis(cells, 1.0), bounded_axis(cells, 1.0), periodic_axis(cells, 1.0))[:dimension]
    place = domain(axes, (None, ("wall", "wall"), None)[:dimension])
    middle = (0.45, 0.5, 0.5)[:dimension]
    motion = Motion(lambda p, t: (middle[0] + p["drift"] * t, *middle[1:])) if moving == "moves" else None
    pivot = (0.0,) * dimension if moving == "moves" else middle
    body = Body(lambda p: ball(pivot, 0.25), lambda p: pivot, motion=motion, points=13, scalar=SURFACES[surface])
    scalar = None
    if surface != "no scalar":
        sides = (None, ("insulated", "insulated"), None)[:dimension]
        scalar = TransportedScalar(place, sides, lambda p: 0.02)
    held = bodies_in(place, method, {"ball": body}, 0.05)
    implicit = tuple(range(dimension)) if friction == "implicit" else ()
    return Equations(place, 0.05, fixed_time_step, scalar=scalar, obstacle=held, implicit=implicit, method=scheme)


def refused(row):
    method, dimension, _, _, friction, _ = row
    if method == "immersed_boundary" and dimension == 3:
        return "an immersed boundary does not support three axes; choose method direct_forcing"
    if method == "immersed_boundary" and friction == "implicit":
        return "an immersed boundary does not support implicit friction; choose method direct_forcing"
    return None


ROWS = list(itertools.product(*AXES.values()))


@every([(case,) for case in [row for row in ROWS if refused(row)]])
def test_combination_is_refused_by_name(row):
    with pytest.raises(UserError, match=refused(row)):
        stepper(case(*row))
