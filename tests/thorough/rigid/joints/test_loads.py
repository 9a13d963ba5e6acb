"""Springs, dampers, motors and servos against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.rigid.joints.joint import attachment
from simkit.rigid.joints.loads import damper, motor, servo, speed_motor, spring, torsion_damper, torsion_spring
from tests.rigid.joints.scenes import carriage, key, moment, pendulum, pivot

pytestmark = pytest.mark.usefixtures("x64")


def after(simulation, steps):
    def end(params):
        return simulation.diagnose(segment(simulation, steps)(simulation.init(params, key()), params), params)

    return jax.jit(end)


def test_spring_on_a_slider_and_its_derivatives(x64):
    simulation = carriage((spring(lambda params: attachment(0), "stiffness"),), stiffness=50.0, time_step=5e-3)
    end, params, time = after(simulation, 200), simulation.params, 1.0
    found, slope = end(params), jax.jit(jax.grad(lambda params: end(params)["x"]))(params)
    omega = 5.0
    # (omega dt)^4 / 1000 in the phase of 5 rad.
    np.testing.assert_allclose(found["x"], 0.3 * np.cos(omega * time), atol=1e-8)
    np.testing.assert_allclose(found["energy"], 50 * 0.3**2 / 2, rtol=1e-8)
    swing = -0.3 * np.sin(omega * time) * time * omega / 2
    np.testing.assert_allclose(slope["stiffness"], swing / 50, rtol=1e-6)
    np.testing.assert_allclose(slope["mass"], -swing / 2, rtol=1e-6)
    np.testing.assert_allclose(slope["displacement"], np.cos(omega * time), rtol=1e-6)


def test_damper_slows_a_sliding_spring(x64):
    def line(params):
        return attachment(0, base=(-20 / 3, -10 / 3, -20 / 3))

    loads = (spring(lambda params: attachment(0), 50.0), damper(line, "damping"))
    found = after(carriage(loads, damping=4.0), 1000)
    simulation = carriage(loads, damping=4.0)
    rate, omega = 1.0, np.sqrt(25 - 1.0)
    exact = 0.3 * np.exp(-rate) * (np.cos(omega) + rate / omega * np.sin(omega))
    # Of second order in a force that depends on velocity: (omega dt)^2 / 12 is 2e-6.
    np.testing.assert_allclose(found(simulation.params)["x"], exact, atol=2e-6)


def test_torsion_spring_and_damper_make_a_damped_oscillation():
    loads = (torsion_spring(pivot, "stiffness"), torsion_damper(pivot, "damping"))
    simulation = pendulum(loads, angle=0.5, stiffness=12.0, damping=0.5)
    rate = 0.5 / (2 * moment())
    omega = np.sqrt(12.0 / moment() - rate**2)
    exact = 0.5 * np.exp(-rate) * (np.cos(omega) + rate / omega * np.sin(omega))
    # (omega dt)^2 / 12 in a phase of 6 rad, omega = 6 rad/s at 1 ms.
    np.testing.assert_allclose(after(simulation, 1000)(simulation.params)["angle"], exact, atol=1e-5)


def test_motor_torque_may_be_constant_or_a_function_of_time():
    constant = pendulum((motor(pivot, "torque"),), torque=1.0)
    # A uniform acceleration is exact for a method of second order.
    np.testing.assert_allclose(after(constant, 1000)(constant.params)["rate"], 1 / moment(), rtol=1e-12)
    varying = pendulum((motor(pivot, lambda time, params: params["torque"] * jnp.cos(time)),), torque=1.0)
    # The trapezoidal rule, dt^2 / 12.
    np.testing.assert_allclose(after(varying, 1000)(varying.params)["rate"], np.sin(1.0) / moment(), rtol=1e-7)


def test_speed_motor_reaches_its_speed_exponentially():
    simulation = pendulum((speed_motor(pivot, "speed", "damping"),), speed=2.0, damping=1.0)
    exact = 2.0 * (1 - np.exp(-1 / moment()))
    # (dt c / I)^2 / 6 = 1.5e-6.
    np.testing.assert_allclose(after(simulation, 1000)(simulation.params)["rate"], exact, rtol=5e-6)


@pytest.mark.parametrize("target", [3.0, 3.5])
def test_servo_at_critical_damping_takes_the_shorter_way(target):
    damping = 2 * np.sqrt(20.0 * moment())
    simulation = pendulum((servo(pivot, "target", 20.0, damping),), target=target)
    short = target if target < np.pi else target - 2 * np.pi
    omega = np.sqrt(20.0 / moment())
    exact = short * (1 - (1 + omega) * np.exp(-omega))
    # (omega dt)^2 at omega = 8 rad/s, over 12.
    np.testing.assert_allclose(after(simulation, 1000)(simulation.params)["angle"], exact, atol=2e-5)
