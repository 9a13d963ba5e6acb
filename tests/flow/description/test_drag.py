"""Implicit drag as data: porous media, and solids for which a large coefficient stands."""

import jax
import pytest

from simkit import flow
from simkit.errors import UserError

pytestmark = pytest.mark.usefixtures("x64")


def test_a_stiff_force_is_refused_and_its_message_names_the_drag():
    around = {"cells": 8, "length": 1.0, "periodic": True}
    stiff = {"x": "-where(x < 0.5, 500*u, 0)"}
    simulation = flow.system(axes={"x": around, "y": around}, viscosity=0.01, force=stiff)
    with pytest.raises(UserError, match=r"stability limit of the force, 0.00502, .* as the table drag, which limits"):
        simulation.check(simulation.params, jax.random.key(0))


def test_a_velocity_of_what_drags_that_is_not_a_number_is_refused():
    around = {"cells": 8, "length": 1.0, "periodic": True}
    drag = {"coefficient": 1, "v": "sqrt(low)"}
    not_a_number = flow.system(axes={"x": around, "y": around}, viscosity=0.01, drag=drag, parameters={"low": -1.0})
    with pytest.raises(UserError, match=r"drag\.v: 'sqrt\(low\)' is nan at index"):
        not_a_number.check(not_a_number.params, jax.random.key(0))
