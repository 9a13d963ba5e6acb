"""Events between balls and planes: laws, rest, budget, and the points where formulas divide by zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.status import Status
from simkit.rigid.bodies.bodies import disk
from tests.rigid.contact.test_events import GRAVITY
from tests.rigid.contact.two_balls import KEY, derivatives, end, two_balls, values

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("kind", ["sphere", "disk"])
def test_unequal_balls_with_friction_conserve_momentum_and_angular_momentum(kind):
    throw = {"x1": 0.7, "z0": 50.0, "z1": 49.9, "vx0": 1.0, "mass1": 1.3, "radius1": 0.15, "spin0": 20.0}
    kinds = {} if kind == "sphere" else {"kind": disk}
    before, after = (end(1.0, 100, friction=0.2, **kinds, **throw, x0=x0) for x0 in (-100.0, 0.0))
    assert (before["impacts"], after["impacts"]) == (0, 1)
    np.testing.assert_allclose(after["momentum"], 0.5, rtol=1e-15)
    # About the origin: 25 kg m^2/s of the motion at a height of 50 m, whose rounding is 4e-15.
    np.testing.assert_allclose(after["angular_momentum"], before["angular_momentum"], atol=2e-13)
    assert after["energy"] < before["energy"] - 0.01
    assert np.abs(after["angular_velocity"][1]).max() > 0.1


def test_a_sliding_disk_ends_rolling_at_two_thirds_of_its_speed():
    # I = m r^2 / 2 keeps m v r + I omega = 3/2 m v r.
    seen = end(1.0, 50, kind=disk, z0=0.0, z1=0.0, vx0=2.0, friction=0.3, gravity=GRAVITY)
    np.testing.assert_allclose(seen["velocity"][0, 0], 4 / 3, rtol=1e-14)


def test_more_impacts_in_a_step_than_the_budget_set_the_status():
    # Down to the floor, up again, and against a ball ten times as large, all in one step.
    moves = {"z0": 0.05, "vx0": 1.0, "vz0": -1.0, "x1": 1.5, "z1": 0.0, "radius1": 1.0, "restitution": 1.0}
    assert end(1.0, 1, **moves)["status"] == Status.OK
    assert end(1.0, 1, **moves)["impacts"] == 2
    simulation, params = two_balls(impacts=1), values(1.0, 1, **moves)
    start = simulation.init(params, KEY)
    state = jax.jit(simulation.step)(start, params)
    assert simulation.status(state, params) == Status.IMPACT_OVERFLOW
    # That step is not taken, and no later one: nothing goes on without contact.
    jax.tree.map(np.testing.assert_array_equal, (state.motion, state.memory, state.time), held_of(start))
    # A shorter step could be taken, but what overflowed stays told.
    again = jax.jit(simulation.step)(state, {**params, "time_step": params["time_step"] / 100})
    jax.tree.map(np.testing.assert_array_equal, again, state)


def held_of(state):
    return state.motion, state.memory, state.time


def test_a_member_that_overflowed_keeps_its_state_while_others_continue():
    moves = {"z0": 0.05, "vx0": 1.0, "vz0": -1.0, "x1": 1.5, "z1": 0.0, "radius1": 1.0, "restitution": 1.0}
    simulation, members = two_balls(impacts=1), [values(1.0, 1, **moves), values(1.0, 1)]
    params = {name: jnp.stack([member[name] for member in members]) for name in members[0]}
    start = jax.vmap(lambda params: simulation.init(params, KEY))(params)
    states = jax.jit(simulation.step_members)(start, params)
    codes = jax.vmap(simulation.status)(states, params)
    assert codes.tolist() == [Status.IMPACT_OVERFLOW, Status.OK]
    assert states.time.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(states.motion.position.z[0], start.motion.position.z[0])


AT_THE_EDGE = {
    "coincident centers": {"x1": 0.0},
    "at rest on the floor": {"z0": 0.0, "z1": 0.0, "friction": 0.3, "gravity": GRAVITY},
    "on a smooth floor": {"z0": 0.0, "z1": 0.0, "gravity": GRAVITY, "vx0": 1.0},
    "touching a floor without gravity": {"z0": 0.0, "z1": 0.0, "friction": 0.3},
    "touching each other": {"x1": 0.2, "vx0": 1.0, "friction": 0.3},
    "falling straight, no slip": {"z0": 0.3, "friction": 0.3, "gravity": GRAVITY},
    "no restitution": {"z0": 0.3, "restitution": 0.0, "gravity": GRAVITY, "vx0": 1.0, "friction": 0.1},
}


@pytest.mark.parametrize("case", AT_THE_EDGE)
def test_values_and_derivatives_are_finite(case):
    found = derivatives(1.0, 50, **AT_THE_EDGE[case])
    assert all(np.isfinite(derivative).all() for derivative in found.values())
    seen = end(1.0, 50, **AT_THE_EDGE[case])
    assert all(np.isfinite(value).all() for value in seen.values())
    assert seen["status"] == Status.OK
