"""Means of a flow described as data are over the fluid outside its obstacles."""

import math

import jax
import numpy as np
import pytest

from simkit import flow
from tests.differences import central_difference

pytestmark = pytest.mark.usefixtures("x64")

RADIUS, KEY = 0.4, jax.random.key(0)


def stream(cells=24, *, scalar="1", **body):
    """A round body in a stream of velocity y^2, periodic in a square of side 3, and a scalar."""
    return flow.system(
        axes={
            "x": {"cells": cells, "from": -1.5, "to": 1.5, "periodic": True},
            "y": {"cells": cells, "from": -1.5, "to": 1.5, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity=0.05,
        initial={"u": "y**2"},
        scalars={"dye": {"diffusivity": 0.1, "initial": scalar}},
        obstacles={"post": {"shape": "circle", "radius": RADIUS, "position": ["place", 0], **body}},
        obstacle_method="direct_forcing",
        parameters={"place": 0.3, "time_step": 0.01},
    )


def at_start(simulation, **params):
    """The diagnostics of the start."""
    params = simulation.params | params
    return jax.jit(lambda params: simulation.diagnose(simulation.init(params, KEY), params))(params)


def test_the_scalar_inside_a_body_is_not_counted():
    # The peak around the center of the body is 100 exp(-16) = 1e-5 at its surface.
    found = at_start(stream(scalar="1 + 100*exp(-100*((x - 0.3)**2 + y**2))"))
    assert found["dye.mean"] == pytest.approx(1, abs=1e-4)
    assert 0 <= found["dye.variance"] < 1e-4


def test_mean_and_variance_are_those_outside_the_disk():
    found = at_start(stream(48, scalar="x"))
    # Moments of a square of side 3 less those of the disk about x = 0.3.
    disk = math.pi * RADIUS**2
    area = 9 - disk
    mean = -disk * 0.3 / area
    square = (9 * 9 / 12 - disk * (0.3**2 + RADIUS**2 / 4)) / area
    # The area of the body of 13 cells is right to 0.4 %, which is 0.0001 in the mean; cells give h^2/12 = 3e-4.
    assert found["dye.mean"] == pytest.approx(mean, abs=1e-4)
    assert found["dye.variance"] == pytest.approx(square - mean**2, abs=6e-4)


def test_kinetic_energy_is_that_of_the_fluid_and_the_mean_velocity_that_of_the_domain():
    found = at_start(stream(48))
    # Means of y^4 and y^2 over the square, and over the disk about y = 0.
    disk = math.pi * RADIUS**2
    energy = (9 * 1.5**4 / 5 - disk * RADIUS**4 / 8) / (9 - disk) / 2
    # Cells and the area of the body are right to 0.1 % of it.
    assert found["kinetic_energy"] == pytest.approx(energy, rel=2e-3)
    assert found["mean_u"] == pytest.approx(1.5**2 / 3, rel=1e-3)


@pytest.mark.parametrize("name", ["dye.mean", "dye.variance", "kinetic_energy"])
def test_means_are_differentiable_by_the_position_of_a_body(name):
    simulation = stream(scalar="x*y + y**2 + x")

    def measured(params):
        return at_start(simulation, **params)[name]

    derivative = jax.grad(measured)(simulation.params)["place"]
    assert abs(derivative) > 1e-4
    difference = central_difference(measured, simulation.params, ["place"], 1e-5)["place"]
    np.testing.assert_allclose(derivative, difference, rtol=1e-5)


def test_the_divergence_that_fills_a_growing_body_is_no_error():
    sides = {"lower": "free_slip", "upper": "free_slip"}
    growing = flow.system(
        axes={
            "x": {"cells": 16, "from": -1.5, "to": 1.5, "lower": "free_slip", "upper": "pressure"},
            "y": {"cells": 16, "from": -1.5, "to": 1.5, **sides},
        },
        viscosity=0.05,
        obstacles={"ball": {"shape": "circle", "radius": RADIUS, "position": [0, 0], "size": "1 + 0.3*time"}},
        obstacle_method="direct_forcing",
        parameters={"time_step": 0.01},
    )

    @jax.jit
    def after_a_step(params):
        return growing.diagnose(growing.step(growing.init(params, KEY), params), params)

    assert after_a_step(growing.params)["divergence"] < 1e-12
