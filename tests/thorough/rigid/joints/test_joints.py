"""Joints: pendulums, linkages, loads, and joints that cannot be."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson, solve_ivp

from simkit import build, load
from simkit.core.rollout import segment, trajectory
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.joints.joint import ball, distance, hinge, joint, slider, weld
from simkit.rigid.joints.rattle import Jointed, assemble
from simkit.rigid.loads import gravity
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.simulate import simulate
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.physics.test_pendulums import check_energy, check_period, energies
from tests.rigid.joints.scenes import at_rest, key, moment, params_of, pendulum
from tests.tables import every

SIZES = ((0.2, 0.3, 1.0), (0.3, 0.2, 0.9), (0.25, 0.3, 0.8), (0.3, 0.3, 0.4), (0.2, 0.2, 0.6), (0.3, 0.4, 0.5))


def chain(time_step=2e-3, order=2):
    """Return six floating boxes, a joint of every kind between them, thrown into motion."""

    def joints(params):
        end, start = (0.1, 0.05, -0.5 * params["length"]), (0, 0.1, 0.45)
        return (
            hinge(0, 1, anchor=end, base=start, axis=(1.0, 1.0, 0.5)),
            ball(1, 2, anchor=end, base=start),
            slider(2, 3, anchor=end, base=start, axis=(0.0, 1.0, 1.0)),
            weld(3, 4, anchor=end, base=start),
            distance(4, 5, anchor=end, base=start, length=0.7 * params["length"]),
        )

    def start(params, bodies, key):
        rough = at_rest(bodies, [(0.03 * i, 0.02 * i * i, -1.0 * i) for i in range(6)])
        speeds = jnp.asarray(np.random.default_rng(3).normal(size=(6, 6)), params["length"].dtype)
        x, y, z, a, b, c = speeds * params["speed"]
        rough = motion_of(bodies, rough.position, rough.orientation, Vector(x, y, z), Vector(a, b, c))
        return assemble(rough, bodies, joints(params))

    return simulate(
        Scene(
            params=params_of(length=1.0, speed=1.0, mass=1.5, time_step=time_step),
            bodies=lambda params: gather([box(params["mass"], size) for size in SIZES]),
            start=start,
            dynamics=Jointed(order=order),
            joints=joints,
            measures=lambda motion, bodies, time, params: {"x": motion.position.x[5], "z": motion.position.z[0]},
        )
    )


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_joints_of_every_kind_hold_and_conserve_momenta_and_energy(precision):
    with jax.enable_x64(precision == "float64"):
        simulation = chain()
        simulation.check(simulation.params, jax.random.key(0))
        end, _, found = jax.jit(trajectory(simulation, 500, 10))(simulation.params, key())
        eps = float(jnp.finfo(precision).eps)
        # Coordinates reach 5 m and speeds 5 m/s; some digits go in chains of six.
        assert found["joint_error"].max() < 50 * eps and found["joint_tilt"].max() < 50 * eps
        assert found["joint_error_rate"].max() < 100 * eps and found["joint_tilt_rate"].max() < 100 * eps
        for name in ("momentum", "angular_momentum"):
            # 500 steps of a few roundings each.
            np.testing.assert_allclose(found[name], found[name][0], rtol=500 * eps, atol=500 * eps)
        # The error of second order, (omega dt)^2 / 12 at 10 rad/s and 2 ms, and the loss of the projection none.
        np.testing.assert_allclose(found["energy"], found["energy"][0], rtol=1e-4)
        assert status_of(simulation)(end, simulation.params) == Status.OK


def test_too_few_iterations_set_the_status(x64):
    simulation = chain(time_step=0.1)
    state = jax.jit(segment(simulation, 5))(simulation.init(simulation.params, key()), simulation.params)
    # Angular velocities of 5 rad/s times 0.1 s leave 0.5^8 of the error: far above round-off.
    assert status_of(simulation)(state, simulation.params) == Status.JOINTS_APART
    # The scene is held at the last state in which they were closed.
    assert float(state.time) < 0.45
    assert float(simulation.diagnose(state, simulation.params)["joint_error"]) < 1e-7
    later = jax.jit(segment(simulation, 5))(state, simulation.params)
    jax.tree.map(np.testing.assert_array_equal, later, state)


def test_energy_error_falls_with_the_fourth_power_of_the_step(x64):
    coarse, fine = (np.max(np.abs(energies(4, step, round(1.2 / step))["energy"])) for step in (8e-3, 4e-3))
    # 2^4, and the next order changes that by (omega dt)^2, some percent at 10 rad/s and 8 ms.
    assert 13 < coarse / fine < 20


def test_double_pendulum_follows_lagranges_equations(x64):
    steps, time_step = 300, 5e-3
    simulation = build(load("double_pendulum")).with_params(
        time_step=time_step, upper_length=0.9, lower_length=1.2, upper_mass=1.5, lower_mass=0.7, lower_angle=30.0
    )
    params = {name: float(value) for name, value in simulation.params.items()}
    state = simulation.init(simulation.params, key())
    inertia = [
        float(capsule(params[f"{rod}_mass"], params["radius"], params[f"{rod}_length"]).inertia.y)
        for rod in ("upper", "lower")
    ]
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


def test_period_and_energy_in_single_precision():
    check_period("float32")
    check_energy("float32", 3e-4)


@functools.cache
def revolution(precision):
    with jax.enable_x64(precision == "float64"):
        simulation = build(load("four_bar_linkage", {"precision": precision}))
        _, observed, found = jax.jit(trajectory(simulation, 2200, 4))(simulation.params, key())
        return jax.tree.map(np.asarray, (observed, found))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_coupler_curve_is_that_of_the_position_analysis(precision):
    observed, found = revolution(precision)
    eps = float(jnp.finfo(precision).eps)
    assert np.ptp(np.unwrap(found["crank_angle"])) > 2 * np.pi
    # Lengths of 1 m, to which the sharp triangles of the loop add about a digit.
    assert found["curve_error"].max() < 30 * eps
    assert np.abs(found["freudenstein"]).max() < 30 * eps
    assert found["joint_error"].max() < 10 * eps and found["joint_tilt"].max() < 30 * eps
    assert np.abs(observed["position"][..., 1]).max() < 30 * eps


def test_energy_grows_by_the_work_of_the_motor():
    _, found = revolution("float64")
    power = 10.0 * (3.0 - found["crank_rate"]) * found["crank_rate"]
    work = cumulative_simpson(power, x=found["time"], initial=0)
    # The method's error is (omega dt)^2 / 12 of 8 J, at the 20 rad/s of the sharpest turns: 2.7e-4 J. Simpson's rule on
    # 4 ms adds less.
    np.testing.assert_allclose(found["energy"] - found["energy"][0], work, atol=3e-4)


def scene(joints, **changes):
    """Return two unit boxes, one above the other, with joints."""
    return simulate(
        Scene(
            params=params_of(gap=1.0, gravity=9.81, time_step=1e-3) | params_of(**changes),
            bodies=lambda params: gather([box(1.0, (1.0, 1.0, 1.0))] * 2),
            start=lambda params, bodies, key: at_rest(bodies, [(0, 0, 0), (0, 0, 1)]),
            dynamics=Jointed(),
            joints=lambda params: joints,
            loads=(gravity(),),
        )
    )


UP, DOWN = (0.0, 0.0, 0.5), (0.0, 0.0, -0.5)


@every(
    ("make", "message"),
    [
        (lambda: joint("hing", 0, 1), "kind = 'hing' is unknown; did you mean 'hinge'"),
        (lambda: ball(1, 1, anchor=UP, base=DOWN), "connects a body with itself"),
        (lambda: hinge(0, 1, anchor=UP, base=DOWN, axis=(0, 0, 0)), "has no direction"),
        (lambda: ball(0, 2, anchor=UP, base=DOWN), "body = 2 is not an integer from 0 to"),
        (lambda: ball(0, 1, anchor=UP, base=UP), "is open by 1 m at the start"),
        (lambda: distance(0, 1, anchor=UP, base=DOWN, length=0.0), "length = 0 m is not positive"),
        (lambda: weld(0, 1, anchor=UP, base=DOWN, rest=turned()), "is tilted by"),
    ],
)
def test_impossible_joints_are_refused_in_one_line(x64, make, message):
    with pytest.raises(UserError) as refused:
        simulation = scene((make(),))
        simulation.check(simulation.params, jax.random.key(0))
    assert message in str(refused.value) and "\n" not in str(refused.value)


def turned():
    return exponential(Vector(jnp.asarray(0.1), jnp.asarray(0.0), jnp.asarray(0.0)))


def test_bars_that_just_close_are_not_refused(x64):
    build(load("four_bar_linkage", {"coupler_length": 1.029}))
