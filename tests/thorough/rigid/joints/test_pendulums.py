"""Pendulums against their exact motion."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from simkit.core.gradient import with_derivative
from simkit.core.rollout import segment
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import box, gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.joints.joint import hinge, weld
from simkit.rigid.joints.measures import hinge_angle
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import gravity
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate
from simkit.rigid.systems.double_pendulum import double_pendulum
from tests.physics.test_pendulums import check_energy, check_period, energies
from tests.rigid.joints.scenes import AXIS, key, moment, params_of, pendulum

# What each precision rounds off in a thousand steps of a few operations each.
ROUND_OFF = {"float64": 1e-12, "float32": 1e-4}


def test_energy_error_falls_with_the_fourth_power_of_the_step(x64):
    coarse, fine = (np.max(np.abs(energies(4, step, round(1.2 / step))["energy"])) for step in (8e-3, 4e-3))
    # 2^4, and the next order changes that by (omega dt)^2, some percent at 10 rad/s and 8 ms.
    assert 13 < coarse / fine < 20


def test_double_pendulum_follows_lagranges_equations(x64):
    steps, time_step = 300, 5e-3
    simulation = double_pendulum().with_params(
        time_step=time_step, upper_length=0.9, lower_length=1.2, upper_mass=1.5, lower_mass=0.7, lower_angle=30.0
    )
    params = {name: float(value) for name, value in simulation.params.items()}
    state = simulation.init(simulation.params, key())
    inertia = np.asarray(jax.jit(lambda: double_bodies(simulation))().inertia.y)
    end = jax.jit(segment(simulation, steps))(state, simulation.params)
    found = simulation.diagnose(end, simulation.params)
    first, second = params["upper_mass"], params["lower_mass"]
    a, b, g = params["upper_length"], params["lower_length"], params["gravity"]

    def derivative(_, y):
        one, two, one_rate, two_rate = y
        coupling = second * a * b / 2
        mass = np.array(
            [
                [inertia[0] + first * a**2 / 4 + second * a**2, coupling * np.cos(one - two)],
                [coupling * np.cos(one - two), inertia[1] + second * b**2 / 4],
            ]
        )
        force = -np.array(
            [
                coupling * np.sin(one - two) * two_rate**2 + (first / 2 + second) * g * a * np.sin(one),
                -coupling * np.sin(one - two) * one_rate**2 + second * g * b / 2 * np.sin(two),
            ]
        )
        return [one_rate, two_rate, *np.linalg.solve(mass, force)]

    start = [np.deg2rad(params["upper_angle"]), np.deg2rad(params["lower_angle"]), 0, 0]
    one, two = solve_ivp(derivative, (0, steps * time_step), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:2, -1]
    # (omega dt)^4 / 1000 for Suzuki's composition at omega = 8 rad/s and 5 ms.
    np.testing.assert_allclose(found["tip_x"], a * np.sin(one) + b * np.sin(two), atol=2e-6)
    np.testing.assert_allclose(found["tip_z"], -a * np.cos(one) - b * np.cos(two), atol=2e-6)


def double_bodies(simulation):
    from simkit.rigid.systems.double_pendulum import _bodies

    return _bodies(simulation.params)


def test_derivatives_of_a_small_swing_are_the_analytic_ones(x64):
    steps = 400
    simulation = pendulum((gravity(),), order=4, angle=1e-4, gravity=9.81, time_step=5e-3)

    def angle(params):
        end = segment(simulation, steps)(simulation.init(params, key()), params)
        return simulation.diagnose(end, params)["angle"]

    slope = jax.jit(jax.grad(angle))(simulation.params)

    def exact(gravity, length, mass, angle):
        return angle * jnp.cos(jnp.sqrt(mass * gravity * length / 2 / moment(length, mass)) * steps * 5e-3)

    values = {name: simulation.params[name] for name in ("gravity", "length", "mass", "angle")}
    expected = jax.grad(lambda values: exact(**values))(values)
    for name in ("gravity", "length", "angle"):
        # The swing changes the frequency by angle^2 / 16 = 6e-10, the method by (omega dt)^4 / 1000 = 3e-10; a phase of
        # 7 rad and a slope of its own magnify both tenfold.
        np.testing.assert_allclose(slope[name], expected[name], rtol=1e-7)
    # A pendulum does not know its mass.
    assert abs(slope["mass"]) < 1e-12


def welded(**values):
    """Return the pendulum whose bar is two halves, welded end to end."""

    def joints(params):
        quarter = params["length"] / 4
        return (
            hinge(0, anchor=(0, 0, quarter), base=(0, 0, 0), axis=AXIS),
            weld(1, 0, anchor=(0, 0, quarter), base=(0, 0, -quarter)),
        )

    def start(params, bodies, key):
        angle, rate = params["angle"] + jnp.zeros(2), params["rate"] + jnp.zeros(2)
        none, reach = jnp.zeros(2), params["length"] * jnp.asarray([0.25, 0.75])
        along = (jnp.sin(angle), none, -jnp.cos(angle))
        across = (jnp.cos(angle), none, jnp.sin(angle))
        return motion_of(
            bodies,
            Vector(*(reach * x for x in along)),
            exponential(Vector(none, -angle, none)),
            Vector(*(reach * rate * x for x in across)),
            Vector(none, -rate, none),
        )

    return simulate(
        Scene(
            params=params_of(**({"length": 1.0, "mass": 1.0, "time_step": 1e-3} | values)),
            bodies=lambda params: gather([box(params["mass"] / 2, (0.1, 0.1, params["length"] / 2))] * 2),
            start=start,
            dynamics=Jointed(order=4),
            joints=joints,
            loads=(gravity(),),
            measures=lambda motion, bodies, time, params: {"angle": hinge_angle(motion, joints(params)[0])},
        )
    )


def test_two_welded_halves_equal_one_bar_in_motion_and_derivatives(x64):
    values = {"angle": 0.8, "rate": 0.5, "gravity": 9.81, "time_step": 5e-3}
    found = []
    for simulation in (welded(**values), pendulum((gravity(),), order=4, **values)):

        def angle(params, key, simulation=simulation):
            end = segment(simulation, 100)(simulation.init(params, key), params)
            return simulation.diagnose(end, params)["angle"]

        found.append(jax.jit(with_derivative(angle, ["angle", "rate", "length"], "forward"))(simulation.params, key()))
    # Both are of fourth order, at 5 rad/s and 5 ms (omega dt)^4 / 100 per step, and errors do not add up in a swing.
    (halves, slopes), (whole, expected) = found
    np.testing.assert_allclose(halves, whole, rtol=1e-7)
    for name in expected:
        np.testing.assert_allclose(slopes[name], expected[name], rtol=1e-6, err_msg=name)


def test_period_and_energy_in_single_precision():
    check_period("float32")
    check_energy("float32", 3e-4)
