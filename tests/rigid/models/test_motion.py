"""Motion of a pendulum and a falling ball in every engine, alone and in an ensemble."""

import numpy as np

from tests.rigid.models.models import FALLING, GRAVITY, PENDULUM, run

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


def test_substeps_equal_time_steps(x64):
    plain = run(PENDULUM, "mujoco", 20, 20, initial_position=(0.4,), control=(0.3,), control_amplitude=(0.2,))
    fewer = run(
        PENDULUM, "mujoco", 4, 4, (("substeps", 5),), initial_position=(0.4,), control=(0.3,), control_amplitude=(0.2,)
    )
    for name, value in plain[2].items():
        np.testing.assert_allclose(fewer[2][name], value, rtol=1e-12, atol=1e-13)


def test_mass_of_a_body_scales_its_inertia(x64):
    values = {"initial_position": (0.4,), "initial_velocity": (1.0,)}
    light = run(PENDULUM, "mujoco", 20, 5, **values)
    heavy = run(PENDULUM, "mujoco", 20, 5, **values, mass=(1.5,), mass_scale=2.0)
    # A free pendulum of three times the mass moves alike, with three times the energy (but for that of the armature).
    np.testing.assert_allclose(heavy[1]["position"], light[1]["position"], rtol=1e-12)
    np.testing.assert_allclose(heavy[2]["energy"], 3 * light[2]["energy"], rtol=1e-12)
