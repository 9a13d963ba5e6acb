"""Motion of a pendulum and a falling ball in every engine, alone and in an ensemble."""

import numpy as np

from tests.rigid.models.models import FALLING, GRAVITY, run

TIME_STEP = 0.002


def check_fall(engine):
    _, observed, diagnosed = run(FALLING, engine, 150, 25, initial_velocity=(0.5, 0, 0, 0, 0, 0))
    steps = 25 * np.arange(7)
    # The semi-implicit Euler method falls by g dt^2 n (n + 1) / 2 in n steps, exactly.
    height = 0.5 - GRAVITY * TIME_STEP**2 * steps * (steps + 1) / 2
    flying = height > 0.1
    assert flying[:5].all() and not flying[-1]
    np.testing.assert_allclose(diagnosed["height"][flying], height[flying], rtol=1e-12)
    np.testing.assert_allclose(observed["position"][flying, 0, 0], 0.5 * TIME_STEP * steps[flying], atol=1e-12)
    # What is observed belongs to the coordinates of the same moment, not to those of a step before.
    np.testing.assert_allclose(observed["position"][:, 0], observed["joint_position"][:, :3], atol=1e-14)
    speed = np.hypot(0.5, GRAVITY * TIME_STEP * steps)[flying]
    np.testing.assert_allclose(diagnosed["momentum"][flying], 2 * speed, rtol=1e-12)
    assert (diagnosed["contacts"][flying] == 0).all() and (diagnosed["penetration"][flying] == 0).all()
    # On the floor it is held: without it the ball would be 0.04 m below by then.
    depth = np.max(diagnosed["penetration"])
    assert diagnosed["contacts"].max() == 1 and 0 < depth < 0.05


def test_a_ball_falls_freely_and_then_has_contact_with_the_floor(x64):
    check_fall("mujoco")
