"""Contact by events and by impulses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import build
from simkit.core.status import Status
from simkit.rigid.algebra.vector import dot, shortened, vector
from tests.rigid.contact.two_balls import end
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


GRAVITY = 9.81


def test_equal_balls_leave_an_oblique_impact_at_a_right_angle():
    # Contact is at 30 degrees from the line of motion: sin(30 deg) stays, cos(30 deg) goes.
    seen = end(1.0, 100, x1=0.7, y0=-0.1, vx0=1.0, restitution=1.0)
    first, second = seen["velocity"]
    np.testing.assert_allclose([np.linalg.norm(first), np.linalg.norm(second)], [0.5, np.sqrt(3) / 2], rtol=1e-13)
    np.testing.assert_allclose([first @ second, seen["energy"]], [0, 0.25], atol=1e-14)


def test_balls_at_rest_on_the_floor_roll_after_an_impact():
    seen = end(3.0, 300, z0=0.0, z1=0.0, x1=1.0, vx0=2.0, restitution=0.5, friction=0.3, gravity=GRAVITY)
    # The first arrives rolling at 10/7, so friction between the balls makes both hop; at last both roll.
    assert seen["impacts"] >= 1
    assert seen["contacts"] == 2
    rolling = seen["velocity"][:, 0] - 0.1 * seen["angular_velocity"][:, 1]
    np.testing.assert_allclose(rolling, 0, atol=1e-13)
    assert seen["velocity"][1, 0] > seen["velocity"][0, 0] > 0


def test_bouncing_ends_in_permanent_rest():
    seen = end(6.0, 600, z0=1.0, z1=0.0, gravity=GRAVITY)
    assert (seen["contacts"], seen["velocity"][0, 2], seen["position"][0, 2]) == (2, 0, 0.1)
    assert seen["penetration"] == 0


LOW = {"z0": 0.002, "z1": 0.0, "restitution": 1.0, "gravity": GRAVITY}


@every("time_step", [0.04, 0.05, 0.1])
def test_an_elastic_ball_never_stops_bouncing_at_any_flight_time(time_step):
    # Flights of 0.0404 s: with e = 1 no endless bounces end in the rest that stands for them.
    time, fall = 2.0, np.sqrt(2 * 0.002 / GRAVITY)
    seen = end(time, round(time / time_step), **LOW)
    since, speed = (time - fall) % (2 * fall), GRAVITY * fall
    np.testing.assert_allclose(seen["position"][0, 2] - 0.1, speed * since - GRAVITY * since**2 / 2, atol=1e-12)
    np.testing.assert_allclose(seen["energy"], 0.5 * GRAVITY * 0.202, rtol=1e-13)
    assert seen["impacts"] == np.floor((time - fall) / (2 * fall)) + 1
    # The other ball lies still from the start.
    assert (seen["contacts"], seen["position"][1, 2], seen["status"]) == (1, 0.1, Status.OK)


def test_more_elastic_bounces_in_a_step_than_the_budget_set_the_status():
    seen = end(2.0, 5, **LOW)
    assert (seen["status"], seen["time"], seen["position"][0, 2]) == (Status.IMPACT_OVERFLOW, 0, 0.1 + 0.002)


def test_a_periodic_force_lifts_a_ball_when_it_exceeds_the_weight():
    # Up at sin(w t1) = m g / A, then m v = integral of A sin(w t) - m g.
    weight, amplitude, w, time = 0.5 * GRAVITY, 8.0, 5.0, 0.3
    t1 = np.arcsin(weight / amplitude) / w
    t, start = time, -amplitude / w**2 * np.sin(w * t1)
    rise = (
        -amplitude / w**2 * np.sin(w * t)
        - start
        + amplitude / w * np.cos(w * t1) * (t - t1)
        - weight * (t - t1) ** 2 / 2
    ) / 0.5
    error = []
    for steps in (15, 30):
        seen = end(time, steps, z0=0.0, z1=0.0, gravity=GRAVITY, lift=amplitude, frequency=w)
        assert seen["contacts"] == 1
        error.append(abs(seen["position"][0, 2] - 0.1 - rise))
    # Fourth order: the local error of the force, (w dt)^3 / 100 of 16 m/s^2 over one step, at w dt = 0.1.
    assert error[0] < 1e-6
    assert error[1] < error[0] / 8


@every("length", [0.0, 0.5, 2.0])
@every("size", [0.0, 1.0])
def test_friction_within_its_cone_has_finite_and_right_derivatives(size, length):
    direction = jnp.array([0.6, 0.0, 0.8])

    def along(size, length):
        return dot(shortened(vector(size * direction), length), vector(direction))

    value, (by_size, by_length) = jax.value_and_grad(along, (0, 1))(size, length)
    slides = size > length
    assert float(value) == pytest.approx(min(size, length), abs=1e-15)
    # The derivatives are 1 and 0 within the cone, and 0 and 1 outside; rounding is all that is added.
    assert float(by_size) == pytest.approx(0 if slides else 1, abs=1e-15)
    assert float(by_length) == pytest.approx(1 if slides else 0, abs=1e-15)


def test_a_block_placed_on_a_slope_touches_it_with_all_four_corners():
    block = build("sliding_block")

    def contacts(slope):
        params = {**block.params, "slope": slope}
        return block.diagnose(block.init(params, jax.random.key(0)), params)["contacts"]

    # The gaps are round-off of either sign.
    assert (jax.jit(jax.vmap(contacts))(jnp.linspace(-60, 60, 121)) == 4).all()
