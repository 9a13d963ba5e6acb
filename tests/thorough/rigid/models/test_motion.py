"""Motion of a pendulum and a falling ball in every engine, alone and in an ensemble."""

import functools

import numpy as np
import pytest
from scipy.special import ellipk

from tests.rigid.models.models import ENGINES, FALLING, GRAVITY, INERTIA, LENGTH, MASS, PENDULUM, run

START = 1.0
STEPS = 800
# Softness of brax's springs: on its way the rod pulls with up to m g (3 - 2 cos 1) = 1.9 m g at the pivot, whose
# stiffness is k = 2000 N/m, and so lengthens by up to 9.4 mm of 300, 3 %; the period by at most half of that. brax's
# positions are pulled together by half the gap in each step: a change of 0.3 %, which we measured. The others
# integrate the angle itself by the semi-implicit Euler method, whose period is off by (omega dt)^2 / 24 = 4e-6.
EXACT = dict.fromkeys(("brax-generalized", "mjx", "mujoco"), 1e-5)
TOLERANCE = {"brax-spring": 0.015, "brax-positional": 0.005} | EXACT
swing = functools.cache(functools.partial(run, PENDULUM, steps=STEPS, every=4, initial_position=(START,)))


def crossings(time, angle):
    """Return when the angle passes through zero, by linear interpolation."""
    before = np.flatnonzero(angle[:-1] * angle[1:] <= 0)
    part = angle[before] / (angle[before] - angle[before + 1])
    return time[before] + part * (time[before + 1] - time[before])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pendulum_keeps_its_analytic_period(x64, engine):
    _, observed, diagnosed = swing(engine)
    first, second = crossings(diagnosed["time"], observed["joint_position"][:, 0])
    small = np.sqrt(INERTIA / (MASS * GRAVITY * LENGTH))
    period = 4 * small * ellipk(np.sin(START / 2) ** 2)
    np.testing.assert_allclose(2 * (second - first), period, rtol=TOLERANCE[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_diagnostics_of_a_pendulum_are_those_of_mechanics(x64, engine):
    _, observed, diagnosed = swing(engine)
    angle, rate = observed["joint_position"][:, 0], observed["joint_velocity"][:, 0]
    # Soft joints give way and swing by 3 % of the length, and so by twice that or more in energies and momenta.
    near = 1e-10 if TOLERANCE[engine] < 1e-3 else 0.1
    scale = MASS * GRAVITY * LENGTH
    energy = MASS * GRAVITY - scale * np.cos(angle) + INERTIA * rate**2 / 2
    np.testing.assert_allclose(diagnosed["energy"], energy, atol=near * scale)
    # The method keeps the energy but for a swing of half a step's work, dt/2 times the greatest power.
    power = scale * np.max(np.abs(rate))
    assert np.ptp(diagnosed["energy"]) < TIME_STEP * power + near * scale
    np.testing.assert_allclose(diagnosed["momentum"], MASS * LENGTH * np.abs(rate), atol=near * 2)
    place = np.stack([-LENGTH * np.sin(angle), 0 * angle, 1 - LENGTH * np.cos(angle)], axis=1)
    np.testing.assert_allclose(observed["position"][:, 0], place, atol=near * LENGTH)
    # brax's positions turn a quaternion by its derivative: its length is off by (omega dt / 2)^4 / 8, about 1e-8.
    np.testing.assert_allclose(
        np.linalg.norm(observed["orientation"], axis=2), 1, rtol=1e-12 if engine in EXACT else 1e-7
    )
    assert (diagnosed["contacts"] == 0).all()


# What a machine compiles for minutes: only MuJoCo in C runs in the quick set.
@pytest.mark.parametrize("engine", ENGINES[:-1])
def test_a_ball_falls_freely_and_then_has_contact_with_the_floor(x64, engine):
    check_fall(engine)


def test_engines_with_the_same_equations_agree(x64):
    values = {"initial_position": (0.4,), "control": (0.3,), "control_amplitude": (0.2,), "control_phase": (1.0,)}
    reference = run(PENDULUM, "mujoco", 20, 5, **values)
    found = run(PENDULUM, "mjx", 20, 5, **values)
    for group in (1, 2):
        for name, value in reference[group].items():
            # The same arithmetic in another order, over 20 steps.
            np.testing.assert_allclose(found[group][name], value, rtol=1e-10, atol=1e-12, err_msg=name)


def test_mass_of_a_body_scales_its_inertia(x64):
    values = {"initial_position": (0.4,), "initial_velocity": (1.0,)}
    light = run(PENDULUM, "mujoco", 20, 5, **values)
    heavy = run(PENDULUM, "mujoco", 20, 5, **values, mass=(1.5,), mass_scale=2.0)
    # A free pendulum of three times the mass moves alike, with three times the energy (but for that of the armature).
    np.testing.assert_allclose(heavy[1]["position"], light[1]["position"], rtol=1e-12)
    np.testing.assert_allclose(heavy[2]["energy"], 3 * light[2]["energy"], rtol=1e-12)


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


def test_a_ball_falls_freely_and_then_has_contact_with_the_floor_in_the_first_cases(x64):
    check_fall("mujoco")
