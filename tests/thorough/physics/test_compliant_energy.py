"""Compliant contact without dissipation and friction: its force is that of an energy, without jumps."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid.algebra.quaternion import Quaternion, turn
from simkit.rigid.algebra.vector import Vector, stacked, vector
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.pairs import contacts, plane_contacts
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene, Setting, no_planes
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate

pytestmark = pytest.mark.usefixtures("x64")

STIFFNESS = 3e4


def body(kind):
    """Return a body of 1 kg, in double precision as the fixture is."""
    shapes = {
        "sphere": lambda: sphere(1.0, 0.3),
        "capsule": lambda: capsule(1.0, 0.1, 1.0),
        "box": lambda: box(1.0, (0.5, 0.7, 0.9)),
    }
    return shapes[kind]()


def unit_rows(key, count):
    rows = jax.random.normal(key, (count, 4))
    return rows / jnp.linalg.norm(rows, axis=1, keepdims=True)


def quaternions(rows):
    return Quaternion(rows[:, 0], vector(rows[:, 1:]))


@functools.cache
def collision(*shapes):
    """Return bodies of random orientation that are about to collide, with each other or, a single one, with a floor."""
    count = len(shapes)
    planes = floor() if count == 1 else no_planes()

    def start(params, bodies, key):
        keys = jax.random.split(key, 3)
        orientation = quaternions(unit_rows(keys[0], count))
        spin = vector(0.5 * jax.random.normal(keys[1], (count, 3)))
        sideways = 0.3 * jax.random.normal(keys[2], (2,))

        def at(height):
            last = jnp.zeros((count, 3)).at[-1].set(jnp.array([*sideways, height]))
            return motion_of(bodies, vector(last), orientation)

        def narrowed(_, ends):
            low, high = ends
            motion = at((low + high) / 2)
            gaps = [contacts(bodies, motion).gap.min(), plane_contacts(bodies, motion, planes).gap.min(initial=1.0)]
            apart = jnp.minimum(*gaps) > 1e-3
            return jnp.where(apart, low, (low + high) / 2), jnp.where(apart, (low + high) / 2, high)

        _, height = jax.lax.fori_loop(0, 40, narrowed, (jnp.zeros(()), 2 * jnp.ones(())))
        speed = jnp.zeros(count).at[-1].set(-1.0).at[0].add(0.0 if count == 1 else 1.0)
        velocity = Vector(jnp.zeros(count), jnp.zeros(count), speed)
        return motion_of(bodies, at(height).position, orientation, velocity, spin)

    numbers = {"stiffness": STIFFNESS, "dissipation": 0.0, "time_step": 2e-4}
    return simulate(
        Scene(
            params={name: jnp.asarray(value) for name, value in numbers.items()},
            bodies=lambda params: gather([body(shape) for shape in shapes]),
            start=start,
            dynamics=Compliant(substeps=1),
            planes=lambda params: planes,
        )
    )


@functools.cache
def ratios(*shapes):
    """Return the energy after random collisions over that before, and the statuses."""
    many = ensemble(collision(*shapes))
    run = jax.jit(trajectory(many, 700, 700))
    state, _, diagnosed = run(many.params, jax.random.split(jax.random.key(1), 10))
    energy, ended = np.asarray(diagnosed["energy"]), np.asarray(diagnosed["contacts"][-1]) == 0
    assert ended.sum() >= 4 and (np.asarray(state.memory.shortest) < 10**6).sum() >= 6
    return (energy[-1] / energy[0])[ended], np.asarray(many.status(state, many.params))


@pytest.mark.parametrize(
    "shapes",
    [("capsule", "capsule"), ("capsule", "box"), ("sphere", "box"), ("sphere", "capsule"), ("capsule",), ("box",)],
)
def test_collisions_without_dissipation_conserve_energy(shapes):
    found, statuses = ratios(*shapes)
    np.testing.assert_allclose(found, 1, atol=1e-3)
    assert (statuses == Status.OK).all()


def test_boxes_in_contact_are_reported_since_they_do_not_conserve_energy():
    found, statuses = ratios("box", "box")
    assert np.abs(found - 1).max() > 0.01
    assert (statuses == Status.BOXES_MET).sum() >= 6


@functools.cache
def wrench_of(kind):
    """Return ``motion -> Wrench`` at a stiffness of 1, compiled."""
    bodies = gather([body("capsule"), body(kind)])
    params = {"stiffness": jnp.asarray(1.0), "dissipation": jnp.asarray(0.0)}
    setting = Setting(bodies=bodies, planes=no_planes(), load=None, params=params)
    return bodies, jax.jit(lambda motion: Compliant().force(motion, setting))


def resting(kind, degrees):
    """Return a capsule that lies on another one, or on a box, turned by an angle about the vertical."""
    bodies, _ = wrench_of(kind)
    half, quarter = np.radians(degrees) / 2, np.sqrt(0.5)
    lying = np.array([quarter, 0, quarter, 0])
    crossed = np.array(
        [np.cos(half) * quarter, -np.sin(half) * quarter, np.cos(half) * quarter, np.sin(half) * quarter]
    )
    below = crossed if kind == "capsule" else np.array([np.cos(half), 0, 0, np.sin(half)])
    height = 0.19 if kind == "capsule" else 0.54
    rows = quaternions(jnp.asarray([lying, below]))
    return motion_of(bodies, Vector(jnp.zeros(2), jnp.zeros(2), jnp.array([height, 0.0])), rows)


@pytest.mark.parametrize("kind", ["capsule", "box"])
def test_derivatives_of_the_force_equal_central_differences(kind):
    _, wrench = wrench_of(kind)

    def torque(degrees, by):
        motion = resting(kind, 0.0)
        by = Vector(*(by * jnp.array([part, 0.0]) for part in (0.3, 0.2, 1.0)))
        turned = turn(turn(motion.orientation, Vector(0.0, 0.0, degrees * jnp.array([np.pi / 180, 0.0]))), by)
        return stacked(wrench(dataclasses.replace(motion, orientation=turned)).torque)[0]

    slope, step = jax.jit(jax.jacfwd(torque, argnums=1)), 1e-6
    at = jnp.asarray(1e-3)
    for degrees in (0.0, 3.0, 60.0):
        differences = (torque(degrees, at + step) - torque(degrees, at - step)) / (2 * step)
        np.testing.assert_allclose(slope(degrees, at), differences, rtol=1e-5, atol=1e-7)
        # Also where the two lie exactly alongside.
        assert np.isfinite(slope(degrees, jnp.zeros(()))).all()
