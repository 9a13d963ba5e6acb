"""Bodies that impose the value or the flux of a scalar."""

import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.obstacles import Body, Motion, ScalarSurface, ball, bodies_in, points_around
from simkit.flow.scalar import TransportedScalar, TransportedScalars
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

VALUE = ScalarSurface(value=lambda p, t: p["value"])


def box(cells):
    return domain((periodic_axis(cells, 1.0), periodic_axis(cells, 1.0)), (None, None))


def disk(surface, method, moving):
    motion = Motion(lambda p, t: (p["x"] + p["drift"] * t, 0.5)) if moving else None
    center = (0.0, 0.0) if moving else (0.5, 0.5)
    body = Body(
        lambda p: ball(center, 0.22), lambda p: center, motion=motion, points=points_around(1.4, 1 / 16), scalar=surface
    )
    return bodies_in(box(16), method, {"disk": body}, 0.02)


@every(
    [
        ({"heat": VALUE}, True, "the flow carries the scalars heat, salt, and body 'disk' has conditions of others"),
        (VALUE, True, "the flow carries the scalars heat, salt, and body 'disk' has conditions of others; give"),
        ({"heat": VALUE}, False, "the flow carries one scalar, and body 'disk' has conditions of others; give"),
    ]
)
def test_surfaces_that_are_not_of_the_scalars_of_a_flow_are_refused_by_name(surface, several, message):
    held = disk(surface, "direct_forcing", False)
    one = TransportedScalar(held.domain, (None, None), lambda p: 0.02)
    scalar = TransportedScalars({"heat": one, "salt": one}) if several else one
    with pytest.raises(UserError, match=message):
        stepper(Equations(held.domain, 0.02, fixed_time_step, scalar=scalar, obstacle=held))


@every(
    [
        (None, True, "the flow carries one scalar, and body 'disk' has conditions of others; give it scalar = "),
        (VALUE, False, "the flow carries no scalar, and body 'disk' has conditions of others; give it none"),
        (VALUE, "other", "a body acts on a TransportedScalar or on TransportedScalars only"),
    ]
)
def test_incompatible_bodies_and_scalars_are_refused_by_name(surface, carried, message):
    held = disk(surface, "direct_forcing", False)
    scalar = TransportedScalar(held.domain, (None, None), lambda p: 0.02) if carried is True else None
    equations = Equations(
        held.domain, 0.02, fixed_time_step, scalar=object() if carried == "other" else scalar, obstacle=held
    )
    with pytest.raises(UserError, match=message):
        stepper(equations)
    with pytest.raises(UserError, match="give one of value and flux"):
        ScalarSurface()
