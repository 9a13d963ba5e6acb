"""Impacts in time: events, flat landings, and what is not an impact."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import vector, zeros
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import applied, gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.shapes.disk import disk
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.rigid.contact.test_contact import GRAVITY
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


SHAPES = {
    "sphere": lambda *surface: sphere(1.0, 0.1, *surface),
    "box": lambda *surface: box(1.0, (0.2, 0.3, 0.1), *surface),
    "capsule": lambda *surface: capsule(1.0, 0.05, 0.4, *surface),
}


def scene_of(kinds, planes=None):
    """Return bodies in flight; positions, rotation vectors and velocities are parameters, (n, 3) each."""
    params = {name: jnp.zeros((len(kinds), 3)) for name in ("at", "turned", "velocity", "spin")}
    params |= {name: jnp.asarray(value) for name, value in {"time_step": 0.01, "e": 0.5, "friction": 0.0}.items()}
    return simulate(
        Scene(
            params=params,
            bodies=lambda p: gather([SHAPES[kind](p["friction"], p["e"]) for kind in kinds]),
            start=lambda p, bodies, key: motion_of(
                bodies, vector(p["at"]), exponential(vector(p["turned"])), vector(p["velocity"]), vector(p["spin"])
            ),
            dynamics=Impulses(),
            planes=None if planes is None else lambda p: planes(),
            measures=lambda motion, bodies, time, p: {"speed": motion.velocity.z[0]},
        )
    )


@functools.cache
def compiled(kinds, steps, planes=None):
    simulation = scene_of(kinds, planes)
    run = jax.jit(trajectory(simulation, steps, 1))

    def with_values(**values):
        given = {name: jnp.asarray(value, dtype=float) for name, value in values.items()}
        _, observed, diagnosed = run({**simulation.params, **given}, jax.random.key(0))
        return {name: np.asarray(value) for name, value in {**observed, **diagnosed}.items()}

    return with_values


def test_friction_on_a_flat_landing_loses_energy_without_spin_about_the_normal():
    run = compiled(("box",), 3, floor)
    for speed in (0.3, 1.0, 3.0):
        found = run(at=[[0, 0, 0.051]], velocity=[[speed, 0, -2.0]], friction=0.3, e=0.5)
        assert found["angular_velocity"][-1, 0, 2] == pytest.approx(0, abs=1e-9)
        assert found["velocity"][-1, 0, 0] < 0.95 * speed
        assert np.all(np.diff(found["energy"]) < 1e-12)


QUARTER = np.pi / 2


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_a_body_that_lands_flat_leaves_with_its_restitution_and_does_not_turn(restitution):
    faces = [
        ("box", [0, 0, 0], 0.05),
        ("box", [QUARTER, 0, 0], 0.15),
        ("box", [0, QUARTER, 0], 0.1),
        ("box", [0, 0, 0.7], 0.05),
        ("capsule", [QUARTER, 0, 0], 0.05),
        ("capsule", [0, QUARTER, 0], 0.05),
    ]
    for kind, turned, height in faces:
        run = compiled((kind,), 3, floor)
        for friction in (0.0, 0.4):
            found = run(
                at=[[0, 0, height + 1e-3]], turned=[turned], velocity=[[0, 0, -2.0]], e=restitution, friction=friction
            )
            np.testing.assert_allclose(found["velocity"][-1, 0], [0, 0, 2 * restitution], rtol=0, atol=1e-11)
            assert np.abs(found["angular_velocity"][-1]).max() < 1e-10


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_two_boxes_that_collide_face_to_face_separate_with_their_restitution(restitution):
    run = compiled(("box", "box"), 3)
    for shift in (0.0, 0.05):
        found = run(
            at=[[0, 0, 0.1005], [shift, shift, 0]], velocity=[[0, 0, -2.0], [0, 0, 1.0]], e=restitution, friction=0.3
        )
        if shift == 0:
            assert found["velocity"][-1, :, 2] == pytest.approx([-0.5 + 1.5 * restitution, -0.5 - 1.5 * restitution])
            assert np.abs(found["angular_velocity"][-1]).max() < 1e-9
        for kept in ("momentum", "angular_momentum"):
            np.testing.assert_allclose(found[kept], found[kept][0], rtol=0, atol=1e-12)
        if restitution == 1 and shift == 0:
            np.testing.assert_allclose(found["energy"], found["energy"][0], rtol=1e-12)
        assert found["energy"][-1] <= found["energy"][0] * (1 + 1e-12)


def test_no_oblique_impact_of_boxes_gains_energy():
    """Points that meet at different times, with friction: 20 draws of two boxes above a floor."""
    run, struck = compiled(("box", "capsule"), 20, floor), 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = run(
            at=[[0, 0, 0.3], [0.05, 0, 0.75]],
            turned=rng.normal(size=(2, 3)),
            velocity=np.add([[0, 0, -3], [0, 0, -5]], rng.normal(size=(2, 3))),
            spin=rng.normal(size=(2, 3)),
            friction=0.3,
            e=0.9,
            time_step=0.005,
        )
        # The splitting of a free rotation keeps energy to (omega dt)^2 / 12 of that of rotation.
        assert np.all(np.diff(found["energy"]) <= 2e-3 * found["energy"][0])
        struck += found["energy"][-1] < 0.99 * found["energy"][0]
    assert struck > 5


@pytest.mark.parametrize(
    "beyond, deflected", [(-1e-3, True), (-1e-5, True), (1e-5, False), (1e-3, False), (1e-2, False)]
)
def test_bodies_are_deflected_only_if_they_touch(beyond, deflected):
    cases = [
        ("sphere", "sphere", 0.1 + 0.1, [0, 0, 0]),
        ("sphere", "box", 0.1 + 0.05, [0, 0, 0]),
        ("box", "box", 0.05 + 0.05, [0, 0, 0]),
        ("box", "box", 0.05 + np.hypot(0.15, 0.05), [np.arctan2(0.15, 0.05), 0, 0]),
        ("capsule", "capsule", 0.05 + 0.05, [QUARTER, 0, 0]),
    ]
    for first, second, reach, turned in cases:
        run = compiled((first, second), 12)
        for start in (-0.55, -0.583):
            found = run(
                at=[[start, 0, 0], [0, 0, reach + beyond]],
                turned=[[0, QUARTER, 0] if first == "capsule" else [0, 0, 0], turned],
                velocity=[[10, 0, 0], [0, 0, 0]],
            )
            change = np.abs(found["velocity"][-1] - found["velocity"][0]).max()
            assert (change > 1e-3) == deflected, (first, second, start)


def test_derivative_of_an_oblique_bounce_equals_central_differences():
    """The corners of a box lie at four heights: only one has an impact, for any small change of the restitution."""
    simulation = scene_of(("box",), floor)
    start = {
        "at": jnp.asarray([[0.0, 0, 0.2]]),
        "turned": jnp.asarray([[0.3, 0.2, 0.1]]),
        "velocity": jnp.asarray([[0.5, 0.2, -2.0]]),
        "friction": jnp.asarray(0.3),
    }
    objective = Objective(simulation, "speed", 12)

    @jax.jit
    def end(e):
        return objective({**simulation.params, **start, "e": e}, jax.random.key(0))

    step = 1e-5
    difference = (end(0.5 + step) - end(0.5 - step)) / (2 * step)
    assert abs(float(difference)) > 0.1
    for slope in (jax.jacfwd, jax.grad):
        assert float(jax.jit(slope(end))(0.5)) == pytest.approx(float(difference), rel=1e-6)


FAR_SHAPES = {
    "cube": lambda *surface: box(1.0, (0.2, 0.2, 0.2), *surface),
    "slab": lambda *surface: box(1.0, (0.6, 0.4, 0.1), *surface),
    "plank": lambda *surface: box(1.0, (1.0, 0.1, 0.05), *surface),
    "capsule": lambda *surface: capsule(1.0, 0.05, 0.4, *surface),
}


@functools.cache
def thrown(kinds, steps, planes=None, push=None, every=None, method=None):
    """Return the compiled run of bodies; positions, rotation vectors and velocities are parameters, (n, 3) each."""
    count = len(kinds)

    def load(motion, bodies, time, params):
        nothing = zeros(bodies.mass)
        force = vector(params["force"])
        return Wrench(force=dataclasses.replace(nothing, x=force.x, y=force.y, z=force.z), torque=nothing)

    params = {name: jnp.zeros((count, 3)) for name in ("at", "turned", "velocity", "spin", "force")}
    params |= {"gravity": 0.0, "time_step": 1e-3, "restitution": 0.0, "friction": 0.0}
    simulation = simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in params.items()},
            bodies=lambda p: gather(
                [
                    sphere(1.0, 0.1, p["friction"], p["restitution"])
                    if kind == "sphere"
                    else FAR_SHAPES[kind](p["friction"], p["restitution"])
                    for kind in kinds
                ]
            ),
            start=lambda p, bodies, key: motion_of(
                bodies, vector(p["at"]), exponential(vector(p["turned"])), vector(p["velocity"]), vector(p["spin"])
            ),
            dynamics=method or Impulses(),
            planes=None if planes is None else lambda p: planes(),
            loads=(gravity(), applied(load)),
        )
    )
    compiled = jax.jit(trajectory(simulation, steps, every or steps))

    def run(**values):
        given = {name: jnp.asarray(value, dtype=float) for name, value in values.items()}
        state, observed, diagnosed = compiled({**simulation.params, **given}, jax.random.key(0))
        found = {name: np.asarray(value) for name, value in {**observed, **diagnosed}.items()}
        return found, Status(int(simulation.status(state, simulation.params)))

    return run


def test_a_bounce_does_not_depend_on_forces_on_a_distant_ball():
    run = thrown(("sphere", "sphere"), 420, floor, every=1)
    for force in (0.0, 1e4):
        found, status = run(
            at=[[0, 0, 1.1], [50, 0, 5]],
            force=[[0, 0, 0], [0, force, 0]],
            gravity=9.81,
            time_step=2e-3,
            restitution=0.8,
        )
        # Between two frames the apex is missed by g dt^2 / 8 at most.
        assert abs(found["position"][250:, 0, 2].max() - 0.1 - 0.64) < 9.81 * 4e-6 / 8 + 1e-12
        assert status == Status.STEPPED_IMPACT


def test_correction_of_an_overlap_does_not_depend_on_forces_on_another_body():
    run = thrown(("sphere", "sphere"), 420, floor, every=1)
    left = [
        run(at=[[0, 0, 0.09], [50, 0, 5]], force=[[0, 0, 0], [0, force, 0]], gravity=9.81, time_step=2e-3)[0]
        for force in (0.0, 1e4)
    ]
    # 2 g dt^2 = 0.08 mm is left.
    assert all(found["position"][-1, 0, 2] > 0.1 - 1e-4 for found in left)


def test_balls_pressed_together_by_loads_rest():
    """A row between a wall and a force, whose middle ball has no load, and two balls under opposite forces."""
    run = thrown(("sphere", "sphere", "sphere"), 400, floor, every=1)
    row = {"at": [[0, 0, 0.1], [0, 0, 0.3], [9, 0, 9]], "time_step": 2e-3, "restitution": 0.8}
    found, status = run(**row, force=[[0, 0, 0], [0, 0, -20.0], [0, 0, 0]])
    np.testing.assert_allclose(found["position"][-1, :2, 2], [0.1, 0.3], rtol=0, atol=2e-4)
    assert np.abs(found["velocity"][-1]).max() < 1e-6
    assert status == Status.OK
    row["at"] = [[0, 0, 5.1], [0, 0, 5.3], [9, 0, 9]]
    found, status = run(**row, force=[[0, 0, 20.0], [0, 0, -20.0], [0, 0, 0]])
    assert np.abs(found["velocity"][-1]).max() < 1e-6
    assert status == Status.OK
