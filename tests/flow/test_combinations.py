"""Sides, friction, dimension, scalar, obstacle, method and drive together: conservation and refusals."""

import dataclasses

import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import WALLS, uneven_axis
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

OPEN = ("inflow", "outflow")
SIDES = {
    "periodic": (None, None, None),
    "channel": (None, WALLS, None),
    "half open channel": (None, ("wall", "free_slip"), None),
    "cavity": (WALLS, WALLS, WALLS),
    "duct": (OPEN, WALLS, None),
    "slippery duct": (("outflow", "inflow"), ("free_slip", "free_slip"), WALLS),
    "inflow to pressure": (("inflow", "pressure"), WALLS, None),
    "pressures": (("pressure", "pressure"), ("wall", "pressure"), WALLS),
}


def place_of(sides, dimension, slope):
    axes = []
    for i, pair in enumerate(SIDES[sides][:dimension]):
        cells = 8 if dimension == 3 else 12
        if pair is None:
            axes.append(periodic_axis(cells, 1.0))
        else:
            axes.append(bounded_axis(cells, 1.0, 0.0, 0.5) if i != 1 else uneven_axis(cells, 0.0, 1.0))
    return domain(tuple(axes), SIDES[sides][:dimension], slope)


CHANNEL, DUCT = place_of("channel", 2, "parabola"), place_of("duct", 2, "parabola")


@every(
    [
        (CHANNEL, {"method": "euler"}, "method = 'euler' is unknown; choose one of runge_kutta, adams_bashforth"),
        (CHANNEL, {"scheme": "up"}, "scheme = 'up' is unknown; choose one of central, upwind"),
        (CHANNEL, {"implicit": (2,)}, r"implicit = 2 is not an integer from 0 to 1"),
        (CHANNEL, {"implicit": (1, 1)}, r"implicit has 1 twice; give each once"),
        (DUCT, {}, "boundary is None, so that the inflow has no velocity"),
        (
            DUCT,
            {"boundary": lambda params, time: None, "flow_rate": lambda params, time: 1.0},
            "flow_rate is given, but axis x is bounded",
        ),
        (
            CHANNEL,
            {"scalar": TransportedScalar(DUCT, (("value", "insulated"), ("value", "value")), lambda params: 1.0)},
            "the domain of the scalar is not that of the flow",
        ),
        (
            CHANNEL,
            {
                "obstacle": DirectForcing(
                    dataclasses.replace(CHANNEL, wall_slope="symmetric"),
                    {"body": Body(lambda params: None, lambda params: None)},
                )
            },
            "the domain of the obstacle is not that of the flow",
        ),
    ]
)
def test_incompatible_parts_are_refused_by_name(place, options, message):
    with pytest.raises(UserError, match=message) as caught:
        Equations(place, lambda params: params["viscosity"], fixed_time_step, **options)
    assert "\n" not in str(caught.value)
