"""Motion of bodies: integrators, starts, statuses and controls."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from simkit.cli.main import main
from simkit.core.estimation import controlled
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.rigid.algebra import quaternion
from simkit.rigid.algebra.quaternion import rotate
from simkit.rigid.algebra.vector import Vector, cross, norm, stacked, vector, zeros
from simkit.rigid.bodies.bodies import gather, repeat, with_inertia
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, kinetic_energy, motion_of
from simkit.rigid.free import Free
from simkit.rigid.integrators import INTEGRATORS, integrator_named
from simkit.rigid.loads import applied, gravity
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
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
        vector(jnp.array([POSITION])),
        velocity=vector(jnp.array([VELOCITY])),
        angular_velocity=vector(jnp.array([OMEGA])),
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
        stacked(motion.position),
        quaternion.stacked(motion.orientation),
        stacked(motion.velocity),
        stacked(motion.angular_momentum),
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
        free = Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass))
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


def test_an_unknown_integrator_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="integrator = 'velocity_verlett' is unknown; did you mean 'velocity_verlet'"):
        integrator_named("velocity_verlett")


KEY = jax.random.key(0)


def swirl(motion, bodies, time, params):
    """A force of every kind a user may write: pairs of bodies, sums, time, parameters of any shape."""
    between = motion.position - Vector(*(part[::-1] for part in vars(motion.position).values()))
    wind = params["wind"][0] * jnp.cos(time) * jnp.ones_like(bodies.mass)
    center = jnp.sum(bodies.mass * motion.position.z) / jnp.sum(bodies.mass)
    force = -params["stiffness"] * between + Vector(wind, params["wind"][1] * bodies.mass, center - motion.position.z)
    braking = -1e-2 * angular_velocity(motion, bodies)
    return Wrench(force=force, torque=braking + 1e-3 * cross(force, motion.velocity))


def two_bodies(integrator="velocity_verlet"):
    params = {"mass": 1.0, "spin": 2.0, "stiffness": 3.0, "gravity": 9.81, "time_step": 0.01, "wind": [0.4, -0.2]}

    def start(params, bodies, key):
        position = vector(jnp.array([[0.0, 0.0, 1.0], [0.5, 0.0, 2.0]]) + 0.1 * jax.random.normal(key, (2, 3)))
        return motion_of(bodies, position, angular_velocity=Vector(params["spin"] * jnp.ones(2), *jnp.eye(2)))

    def measures(motion, bodies, time, params):
        return {"distance": norm(motion.position[0] - motion.position[1])}

    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in params.items()},
            bodies=lambda params: gather([sphere(params["mass"], 0.1), box(2.0, (0.1, 0.2, 0.3))]),
            start=start,
            dynamics=Free(integrator),
            loads=(gravity(), applied(swirl)),
            measures=measures,
        )
    )


def test_a_start_that_is_not_finite_is_refused_by_body_and_quantity():
    def start(params, bodies, key):
        speed = jnp.sqrt(jnp.stack([params["speed_squared"], -params["speed_squared"]]))
        place = vector(jnp.array([[0.0, 0.0, 1.0], [0.5, 0.0, 2.0]]))
        return motion_of(bodies, place, velocity=Vector(speed, 0 * speed, 0 * speed))

    simulation = simulate(
        Scene(
            params={"speed_squared": jnp.asarray(1.0), "time_step": jnp.asarray(0.01)},
            bodies=lambda params: gather([sphere(1.0, 0.1), sphere(1.0, 0.1)]),
            start=start,
            dynamics=Free(),
        )
    )
    assert simulation.check is not None
    simulation.check({**simulation.params, "speed_squared": jnp.asarray(0.0)}, KEY)
    with pytest.raises(UserError, match=r"body 1 has no finite velocity at the start: .* a root of a negative number"):
        simulation.check(simulation.params, KEY)


def test_a_non_finite_motion_has_the_status_non_finite():
    simulation = two_bodies()
    state = simulation.init(simulation.params, KEY)
    assert simulation.status is not None
    assert simulation.status(state, simulation.params) == Status.OK
    position = dataclasses.replace(state.motion.position, x=jnp.array([0.0, jnp.nan]))
    broken = dataclasses.replace(state, motion=dataclasses.replace(state.motion, position=position))
    assert simulation.status(broken, simulation.params) == Status.NON_FINITE


def test_impossible_bodies_are_refused_before_a_run():
    simulation = two_bodies()
    assert simulation.check is not None
    simulation.check(simulation.params, jax.random.key(0))
    with pytest.raises(UserError, match=r"body 0 \(sphere\): mass = -1 is not positive"):
        simulation.check({**simulation.params, "mass": jnp.array(-1.0)}, jax.random.key(0))


def test_impossible_moments_of_inertia_end_a_run_with_one_line_and_code_2(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "asymmetric_top", "--set", "moment_z=5"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "moments of inertia 1, 2, 5 kg m^2 break the triangle inequality" in line and "at most 3" in line


DT, PUSHED_MASS, DECISIONS, HELD = 0.02, 2.0, 5, 3
CONTROLS = np.random.default_rng(0).normal(size=DECISIONS)


def pushed(method):
    """Return a ball that a parameter pushes along x."""

    def push(motion, bodies, time, params):
        nothing = zeros(bodies.mass)
        return Wrench(force=dataclasses.replace(nothing, x=nothing.x + params["push"]), torque=nothing)

    names = {"push": 0.0, "stiffness": 1.0, "dissipation": 0.0, "time_step": DT}
    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in names.items()},
            bodies=lambda params: repeat(sphere(PUSHED_MASS, 0.1), 1),
            start=lambda params, bodies, key: motion_of(bodies, Vector(*jnp.zeros((3, 1)))),
            dynamics=method,
            loads=(applied(push),),
            measures=lambda motion, bodies, time, params: {"x": motion.position.x[0], "speed": motion.velocity.x[0]},
        )
    )


def test_controls_are_the_parameters_of_their_steps():
    simulation = pushed(Free())
    state = simulation.init(simulation.params, KEY)
    end, _ = controlled(simulation)(state, simulation.params, {"push": CONTROLS})
    for control in CONTROLS:
        state = jax.jit(simulation.step)(state, simulation.params | {"push": jnp.asarray(control)})
    np.testing.assert_allclose(end.motion.position.x, state.motion.position.x, rtol=1e-14)


@every(
    "controls, message",
    [
        ({"pusch": [1.0]}, "control = 'pusch' is unknown"),
        ({"push": 1.0}, "has shape"),
        ({"push": [[1.0]]}, "has shape"),
        ({"push": [1.0], "stiffness": [1.0, 2.0]}, "give as many for each"),
        ({}, "no values"),
    ],
)
def test_controls_that_do_not_fit_are_refused(controls, message):
    simulation = pushed(Free())
    state = simulation.init(simulation.params, KEY)
    with pytest.raises(UserError, match=message):
        controlled(simulation)(state, simulation.params, {name: jnp.asarray(v) for name, v in controls.items()})
    with pytest.raises(UserError, match="steps = 0"):
        controlled(simulation, 0)
