"""Bodies that land flat do not start to rotate, and bodies that pass each other closely have no impact."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import vector
from simkit.rigid.bodies.bodies import box, capsule, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

pytestmark = pytest.mark.usefixtures("x64")
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
