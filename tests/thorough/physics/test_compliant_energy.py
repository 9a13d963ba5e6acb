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


def axes(rows):
    """Return rotation matrices of quaternions (w, x, y, z)."""
    w, x, y, z = rows
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def view(place, rotation, half, other_place, other_rotation, halves, radius):
    """Return the energy over k of a capsule's side and ends against a box, or a line, rounded by a radius."""

    def squared(points):
        local = (points - other_place) @ other_rotation
        beyond = np.maximum(np.abs(local) - halves, 0)
        return (beyond**2).sum(axis=-1)

    along = np.linspace(-half, half, 20001)
    depth = np.maximum(radius**2 - squared(place + along[:, None] * rotation[:, 2]), 0) / (2 * radius)
    side = 3 / 8 / np.sqrt(2 * radius) * np.trapezoid(depth**2, along)
    ends = place + np.array([[-half], [half]]) * rotation[:, 2]
    overlap = np.maximum(radius - np.sqrt(squared(ends)), 0)
    return side + 2 / 5 * (overlap**2.5).sum()


def energy(kind, motion):
    """Return the energy over k of a capsule and another body, by many points along the axes."""
    place, rotation = np.asarray(stacked(motion.position)), []
    for number in range(2):
        v = motion.orientation.v
        rotation.append(axes([float(values[number]) for values in (motion.orientation.w, v.x, v.y, v.z)]))
    if kind == "box":
        return view(place[0], rotation[0], 0.5, place[1], rotation[1], np.array([0.25, 0.35, 0.45]), 0.1)
    line = np.array([0, 0, 0.5])
    one = view(place[0], rotation[0], 0.5, place[1], rotation[1], line, 0.2)
    return (one + view(place[1], rotation[1], 0.5, place[0], rotation[0], line, 0.2)) / 2


@functools.cache
def wrench_of(kind):
    """Return ``motion -> Wrench`` at a stiffness of 1, compiled."""
    bodies = gather([body("capsule"), body(kind)])
    params = {"stiffness": jnp.asarray(1.0), "dissipation": jnp.asarray(0.0)}
    setting = Setting(bodies=bodies, planes=no_planes(), load=None, params=params)
    return bodies, jax.jit(lambda motion: Compliant().force(motion, setting))


def overlapping(kind, seed):
    """Return a capsule and another body of random orientation that overlap by 1 cm or so."""
    bodies, _ = wrench_of(kind)
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(2, 4))
    orientation = quaternions(jnp.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True)))
    direction = generator.normal(size=3)
    direction /= np.linalg.norm(direction)

    def at(distance):
        return motion_of(bodies, vector(jnp.asarray([np.zeros(3), distance * direction])), orientation)

    low, high = 0.0, 2.0
    for _ in range(20):
        low, high = (low, (low + high) / 2) if energy(kind, at((low + high) / 2)) == 0 else ((low + high) / 2, high)
    return at(low - 0.01)


@pytest.mark.parametrize("kind", ["capsule", "box"])
def test_force_and_torque_are_the_gradient_of_the_energy(kind):
    _, wrench = wrench_of(kind)
    for seed in range(5):
        motion = overlapping(kind, seed)
        found, step = wrench(motion), 1e-5

        def moved(body, axis, by, turned, motion=motion):
            by = by * jnp.zeros((2, 3)).at[body, axis].set(1.0)
            if turned:
                return dataclasses.replace(motion, orientation=turn(motion.orientation, vector(by)))
            return dataclasses.replace(motion, position=motion.position + vector(by))

        for what, turned in ((found.force, False), (found.torque, True)):
            slopes = [
                [
                    (energy(kind, moved(body, axis, step, turned)) - energy(kind, moved(body, axis, -step, turned)))
                    / (2 * step)
                    for axis in range(3)
                ]
                for body in range(2)
            ]
            # Forces are 1e-3 and more; the sum along the axis has an error of some 1e-9.
            np.testing.assert_allclose(stacked(what), -np.array(slopes), atol=2e-7, rtol=1e-4)


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
