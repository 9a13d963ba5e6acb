"""Time steps that follow from the flow: what limits them, every combination of parts, and mistakes."""

import jax
import pytest

from simkit import flow
from simkit.errors import UserError
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

AROUND = {"cells": 8, "length": 2.0, "periodic": True}
ROOM = {name: {"cells": 12, "from": -1.5, "length": 3, "lower": "wall", "upper": "wall"} for name in "xy"}
KEY = jax.random.key(0)


def begun(**settings):
    """The length of the first step, and the state at the start."""
    parameters = {"time_step": 0.1} | settings.pop("parameters", {})
    simulation = flow.system(
        axes=settings.pop("axes", {"x": AROUND, "y": {"cells": 10, "to": 1, "lower": "wall", "upper": "wall"}}),
        viscosity=settings.pop("viscosity", 1e-9),
        courant_number=settings.pop("courant_number", 0.5),
        implicit=settings.pop("implicit", []),
        parameters=parameters,
        **settings,
    )
    simulation.check_values(simulation.params, KEY)
    return float(jax.jit(simulation.init)(simulation.params, KEY).time_step)


REFUSED = {
    "too large": ({"courant_number": 1.8}, r"courant_number: is 1.8 at the start; .* at most 1.73, the limit .* runge"),
    "too large for two levels": (
        {"courant_number": "courant", "method": "adams_bashforth", "parameters": {"courant": 0.6}},
        r"courant_number: is 0.6 at the start; .* at most 0.5, the limit of stability of adams_bashforth",
    ),
    "zero": ({"courant_number": 0}, "courant_number: is 0 at the start; choose a number above 0"),
    "a field": ({"courant_number": "x"}, "courant_number: column 1 of '>>>x': 'x' is not known here"),
    "a speed": ({"largest_speed": 2}, "largest_speed has no effect beside courant_number; leave it out"),
}


@every(list(REFUSED))
def test_a_mistake_is_refused_by_name(case):
    settings, message = REFUSED[case]
    with pytest.raises(UserError, match=message):
        begun(**settings)


def test_the_longest_step_must_be_given():
    with pytest.raises(UserError, match="courant_number is given, and nothing says the longest time step; give the"):
        flow.system(axes=ROOM, viscosity=0.1, courant_number=0.5)
