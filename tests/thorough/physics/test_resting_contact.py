"""Sliding, rolling and stacking in single precision, and derivatives of sliding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import sliding_block
from tests.physics.test_resting_contact import (  # noqa: F401
    GRAVITY,
    test_ball_that_slides_ends_rolling_at_five_sevenths_of_its_speed,
    test_block_comes_to_rest_after_the_distance_of_coulomb_friction,
    test_block_sticks_below_the_angle_of_friction_and_slides_above_it,
    test_stack_of_four_boxes_stays_at_rest,
)


@pytest.fixture
def precision():
    """Run the tests of the laws in single precision."""
    return "float32"


def test_derivatives_of_sliding_are_those_of_coulombs_law(x64):
    time_step = 2e-3
    simulation = sliding_block().with_params(time_step=time_step)
    run = trajectory(simulation, 400, 400)

    def distance(params):
        return run(params, jax.random.key(0))[2]["distance"][-1]

    found = jax.jit(jax.grad(distance))(simulation.params)
    p = {name: float(value) for name, value in simulation.params.items()}
    angle = np.deg2rad(p["slope"])
    drag = p["friction"] * np.cos(angle) - np.sin(angle)
    whole = p["speed"] ** 2 / (2 * GRAVITY * drag)
    exact = {
        "speed": 2 * whole / p["speed"],
        "gravity": -whole / GRAVITY,
        "friction": -whole / drag * np.cos(angle),
        "slope": whole / drag * (p["friction"] * np.sin(angle) + np.cos(angle)) * np.pi / 180,
    }
    # The distance is exact at whole steps and linear in between, so its slope is that of a neighboring time: wrong by
    # the part dt / t of the time of sliding for the first power of it, twice that for the second.
    sliding = p["speed"] / (GRAVITY * drag)
    for name, value in exact.items():
        assert float(found[name]) == pytest.approx(value, rel=2 * time_step / sliding)


def test_derivatives_at_rest_without_friction_and_without_speed_are_finite(x64):
    simulation = sliding_block()
    run = trajectory(simulation, 5, 5)

    def distance(params):
        return run(params, jax.random.key(0))[2]["distance"][-1]

    slope = jax.jit(jax.grad(distance))
    for values in ({"speed": 0.0, "slope": 0.0}, {"friction": 0.0}, {"speed": 0.0, "slope": 0.0, "friction": 0.0}):
        params = simulation.with_params(**values).params
        assert all(bool(jnp.isfinite(derivative)) for derivative in slope(params).values())
