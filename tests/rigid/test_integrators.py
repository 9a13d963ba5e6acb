"""Integrators: their order under forces of every kind, conserved quantities, and reversibility."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from simkit.errors import UserError
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.quaternion import rotate
from simkit.rigid.algebra.vector import Vector, cross
from simkit.rigid.bodies.bodies import gather, sphere, with_inertia
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, kinetic_energy, motion_of
from simkit.rigid.integrators import INTEGRATORS, integrator_named
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

MASS, MOMENTS, DURATION = 1.3, np.array([0.4, 1.0, 0.7]), 1.0
POSITION, VELOCITY, OMEGA = np.array([0.3, -0.2, 1.0]), np.array([1.0, 0.5, -0.3]), np.array([2.0, 1.5, -1.0])
HOOK = np.array([0.2, -0.1, 0.3])  # where a spring pulls, in the body's frame
STIFFNESS, DRAG = 9.0, 0.4


def asymmetric_body():
    return gather([with_inertia(sphere(MASS, 0.5), MOMENTS)])


def start():
    return motion_of(
        asymmetric_body(),
        vector.vector(jnp.array([POSITION])),
        velocity=vector.vector(jnp.array([VELOCITY])),
        angular_velocity=vector.vector(jnp.array([OMEGA])),
    )


def pulled(motion: Motion, time: jax.Array, drag: float = 0.0) -> Wrench:
    """A spring from the hook to a point that moves in time, a torque that turns in time, and drag."""
    arm = rotate(motion.orientation, Vector(*(jnp.full(1, component) for component in HOOK)))
    anchor = Vector(jnp.cos(3 * time), jnp.sin(3 * time), 0 * time)
    force = -STIFFNESS * (motion.position + arm - anchor)
    turning = Vector(jnp.sin(2 * time), 0 * time, jnp.cos(2 * time))
    return Wrench(force=force - drag * motion.velocity, torque=cross(arm, force) + turning)


def as_numbers(motion: Motion) -> np.ndarray:
    parts = (
        vector.stacked(motion.position),
        quaternion.stacked(motion.orientation),
        vector.stacked(motion.velocity),
        vector.stacked(motion.angular_momentum),
    )
    return np.concatenate([np.asarray(part)[0] for part in parts])


@functools.cache
def exact(drag: float) -> np.ndarray:
    """The same motion by Euler's equations in the body frame, with SciPy, independent of the code under test."""

    def matrix(q):
        w, x, y, z = q
        return np.array(
            [
                [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
            ]
        )

    def rate(time, state):
        x, q, v, inside = state[:3], state[3:7], state[7:10], state[10:]
        turn = matrix(q)
        arm = turn @ HOOK
        force = -STIFFNESS * (x + arm - [np.cos(3 * time), np.sin(3 * time), 0])
        torque = np.cross(arm, force) + np.array([np.sin(2 * time), 0, np.cos(2 * time)])
        a, b, c = inside
        q_rate = 0.5 * np.array(
            [
                -q[1] * a - q[2] * b - q[3] * c,
                q[0] * a + q[2] * c - q[3] * b,
                q[0] * b + q[3] * a - q[1] * c,
                q[0] * c + q[1] * b - q[2] * a,
            ]
        )
        spin_rate = (turn.T @ torque - np.cross(inside, MOMENTS * inside)) / MOMENTS
        return np.concatenate([v, q_rate, (force - drag * v) / MASS, spin_rate])

    state = np.concatenate([POSITION, [1, 0, 0, 0], VELOCITY, OMEGA])
    end = solve_ivp(rate, (0, DURATION), state, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    return np.concatenate([end[:10], matrix(end[3:7]) @ (MOMENTS * end[10:])])


@functools.cache
def runner(name: str, drag: float = 0.0, loaded: bool = True):
    """Return a compiled ``(motion, time, time_step, steps) -> (motion, time)``."""
    bodies, advance = asymmetric_body(), integrator_named(name)

    def load(motion, time):
        free = Wrench(force=vector.zeros(bodies.mass), torque=vector.zeros(bodies.mass))
        return pulled(motion, time, drag) if loaded else free

    def run(motion, time, time_step, steps):
        def step(_, state):
            motion, time = state
            return advance(motion, bodies, load, time, time_step), time + time_step

        return jax.lax.fori_loop(0, steps, step, (motion, time))

    return jax.jit(run)


def end(name, steps, drag=0.0):
    return as_numbers(runner(name, drag)(start(), jnp.array(0.0), jnp.array(DURATION / steps), steps)[0])


@every("name", INTEGRATORS)
def test_a_free_body_keeps_its_momenta_to_the_last_bit(name):
    after, _ = runner(name, loaded=False)(start(), jnp.array(0.0), jnp.array(0.01), 1000)
    before = as_numbers(start())
    np.testing.assert_array_equal(as_numbers(after)[7:], before[7:])


@every("name", ["velocity_verlet", "semi_implicit_euler"])
def test_the_energy_of_a_free_body_oscillates_without_drift(name):
    bodies, run = asymmetric_body(), runner(name, loaded=False)
    motion, energies = start(), []
    for _ in range(100):
        motion, _ = run(motion, jnp.array(0.0), jnp.array(0.01), 100)
        energies.append(float(kinetic_energy(motion, bodies)))
    error = np.abs(np.array(energies) / float(kinetic_energy(start(), bodies)) - 1)
    # (omega dt)^2 / 12 with omega dt = 0.03 is 8e-5; over 10,000 steps it only swings.
    assert error.max() < 8e-5
    assert error[-10:].max() < 1.5 * error[:10].max()


@every("loaded", [True, False])
def test_velocity_verlet_run_backwards_returns_to_its_start(loaded):
    run, steps = runner("velocity_verlet", loaded=loaded), 100
    there = run(start(), jnp.array(0.0), jnp.array(0.02), steps)
    back, time = run(*there, jnp.array(-0.02), steps)
    assert abs(float(time)) < 1e-14
    # Rounding of 200 steps by 1e-16 or two, which this motion multiplies by ten or so.
    np.testing.assert_allclose(as_numbers(back), as_numbers(start()), atol=200 * 2e-16 * 10)


def check_derivative(name):
    def outcome(omega):
        bodies = asymmetric_body()
        motion = motion_of(
            bodies,
            vector.vector(jnp.array([POSITION])),
            velocity=vector.vector(jnp.array([VELOCITY])),
            angular_velocity=vector.vector(omega[None]),
        )

        def step(motion, time):
            return integrator_named(name)(motion, bodies, pulled, time, jnp.array(0.02)), None

        motion, _ = jax.lax.scan(step, motion, 0.02 * jnp.arange(50))
        return vector.stacked(motion.position)[0] + vector.stacked(angular_velocity(motion, bodies))[0]

    compiled, step = jax.jit(outcome), 1e-5
    slope = jax.jit(jax.jacfwd(outcome))(jnp.asarray(OMEGA))
    difference = np.stack(
        [(compiled(OMEGA + step * e) - compiled(OMEGA - step * e)) / (2 * step) for e in np.eye(3)], axis=1
    )
    # step^2 / 6 of third derivatives of order 10, and 50 roundings of 1e-15 over the step.
    np.testing.assert_allclose(slope, difference, atol=1e-8)


def test_float32_agrees_within_its_rounding():
    with jax.enable_x64(False):
        bodies, advance = asymmetric_body(), integrator_named("velocity_verlet")

        @jax.jit
        def run(motion):
            def step(_, state):
                motion, time = state
                return advance(motion, bodies, pulled, time, jnp.float32(0.01)), time + jnp.float32(0.01)

            return jax.lax.fori_loop(0, 100, step, (motion, jnp.float32(0)))[0]

        single = run(start())
        assert {leaf.dtype.name for leaf in jax.tree.leaves(single)} == {"float32"}
    # 100 steps of a few roundings of 6e-8 each of numbers up to 3, multiplied by the motion by ten or so.
    np.testing.assert_allclose(as_numbers(single), end("velocity_verlet", 100), atol=100 * 6e-8 * 10)


def test_an_unknown_integrator_is_refused_with_the_list():
    with pytest.raises(UserError, match=r"did you mean 'velocity_verlet'.*semi_implicit_euler, velocity_verlet, runge"):
        integrator_named("velocity_verlett")
