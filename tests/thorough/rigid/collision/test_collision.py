"""Points of contact: against geometry by NumPy and SciPy, their derivatives, and the pairs that are near."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, vector
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.boxes import WIDER
from simkit.rigid.collision.broad_phase import nearby
from simkit.rigid.collision.capsules import CROSSING, FACE_SINE
from simkit.rigid.collision.near_pairs import first_list
from simkit.rigid.collision.pairs import contacts
from simkit.rigid.collision.points import Placed
from simkit.rigid.collision.tournament import rounds
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.rigid.collision.shapes import (
    COUNT,
    ROUNDED,
    TOUCHES,
    Shapes,
    array,
    nearest_of_all,
    random_shapes,
    touching,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def least(points):
    """Return the point of the least gap of each pair."""
    position, normal, gap = array(points)
    slot, pair = gap.argmin(axis=0), np.arange(gap.shape[1])
    return position[slot, pair], normal[slot, pair], gap[slot, pair]


@every("pair", ROUNDED, ids="-".join)
def test_least_gap_is_the_distance_and_the_normal_its_direction(pair):
    a, b = (random_shapes(kind, seed, 0.7) for seed, kind in enumerate(pair))
    distance, core, direction = nearest_of_all(a, b)
    _, normal, gap = least(touching(*pair)(a.placed(), b.placed()))
    # Where cores overlap there is no shortest connection.
    apart = core > 1e-6
    assert apart.sum() > 100 and (distance[apart] < 0).sum() > 30
    error, turned = np.abs(gap - distance)[apart], np.linalg.norm(normal - direction, axis=1)[apart]
    # Bounded least squares is good to 1e-12; directions of short connections (1e-6 at least) lose six digits.
    exact = (error < 1e-10) & (turned < 1e-6)
    if "capsule" in pair and pair[0] != "sphere":
        # Capsules nearly parallel to others or to faces have their ends instead, within what the constants derive.
        size = (a.radius + b.radius)[apart]
        tilted = FACE_SINE**2 * core[apart]
        assert exact.mean() > 0.85
        assert np.all(error < 0.074 * CROSSING * size + tilted)
    else:
        assert exact.all()


def test_flush_cubes_touch_at_their_corners_in_either_precision():
    # A stack as exact as numbers allow, where every edge of one face lies on an edge of the other.
    flat = np.broadcast_to(np.eye(3), (COUNT, 3, 3))
    random = np.random.default_rng(17)
    place = random.uniform(-5, 5, (COUNT, 3))
    halves, radius = np.full((COUNT, 3), 0.1), np.zeros(COUNT)
    lower, upper = Shapes(place, flat, halves, radius), Shapes(place + np.array([0, 0, 0.2]), flat, halves, radius)
    for dtype, rounding in ((np.float64, 1e-15), (np.float32, 6e-8)):
        pairs = jax.tree.map(lambda x, dtype=dtype: x.astype(dtype), (upper.placed(), lower.placed()))
        position, normal, gap = array(touching("box", "box")(*pairs))
        # Places up to 5 m away are rounded, and so are differences.
        assert np.abs(gap).max() < 40 * rounding
        assert np.abs(normal - [0, 0, 1]).max() == 0
        signs = np.sign(position - place)[..., :2]
        expected = place + np.concatenate([0.1 * signs, np.full((4, COUNT, 1), 0.1)], axis=-1)
        assert np.abs(position - expected).max() < 40 * rounding + 0.1 * WIDER
        assert all(len({tuple(row) for row in signs[:, k]}) == 4 for k in range(COUNT))


PAIRS = pytest.mark.parametrize("pair", list(TOUCHES), ids="-".join)


def changed(placed, shift, turning, growth):
    """Return shapes moved, turned and grown."""
    return Placed(
        position=placed.position + shift,
        orientation=turn(placed.orientation, turning),
        half_lengths=(1 + growth) * placed.half_lengths,
        radius=(1 + growth) * placed.radius,
    )


@functools.cache
def along_a_line(pair):
    """Return the points of pairs as a function of a parameter each, their derivative, and those of a sum, compiled."""

    def at(s, a, b, direction):
        shift, turning, growth = direction
        a = changed(a, s * shift, s * turning, s * growth)
        points = touching(*pair)(a, b)
        return points.normal, points.gap, points.position

    def forward(s, *others):
        return jax.jvp(lambda s: at(s, *others), (s,), (jnp.ones_like(s),))[1]

    def weighed(s, *others):
        return sum(jnp.sum(jnp.cos(k + x), axis=0) for k, x in enumerate(jax.tree.leaves(at(s, *others)[:2])))

    def weighed_forward(s, *others):
        return jax.jvp(lambda s: weighed(s, *others), (s,), (jnp.ones_like(s),))[1]

    def weighed_reverse(s, *others):
        return jax.grad(lambda s: jnp.sum(weighed(s, *others)))(s)

    return jax.jit(at), jax.jit(forward), jax.jit(weighed_forward), jax.jit(weighed_reverse)


@PAIRS
def test_derivatives_of_points_equal_central_differences(pair):
    a, b = (random_shapes(kind, seed + 40, 0.7).placed() for seed, kind in enumerate(pair))
    random = np.random.default_rng(0)
    shift, turning = (vector(jnp.asarray(random.normal(size=(COUNT, 3)))) for _ in range(2))
    direction = shift, turning, jnp.asarray(random.normal(size=COUNT))
    at, forward, one, other = along_a_line(pair)
    s, step = jnp.zeros(COUNT), 1e-5
    after, before = at(s + step, a, b, direction), at(s - step, a, b, direction)
    derivatives, shares = forward(s, a, b, direction), []
    for up, down, derivative in zip(*map(jax.tree.leaves, (after, before, derivatives)), strict=True):
        difference = (np.asarray(up) - np.asarray(down)) / (2 * step)
        # Central differences err by the third derivative, 1e3 near edges that are almost parallel, times 1e-10, and by
        # 1e-16 / 1e-5; where a choice changes within the step there is no derivative: in fewer than 1 of 100 numbers.
        wrong = np.abs(difference - np.asarray(derivative)) > 1e-6 * (1 + np.abs(difference))
        shares.append(wrong.mean())
    assert max(shares) < 0.01
    # The two modes add the same numbers, of size 1e3 at most, in another order.
    np.testing.assert_allclose(one(s, a, b, direction), other(s, a, b, direction), rtol=1e-9, atol=1e-11)


def degenerate(first, second):
    """Return pairs in every special position: concentric, aligned, flush, corner on corner, edge on face."""
    places = [
        (0, 0, 0), (0, 0, 1), (0, 0, 0.5), (0.5, 0.5, 0.5), (1, 1, 1), (1, 0, 0), (0.5, 0, 1), (0, 0, 0.9), (1, 1, 0),
        (0.5, 0.5, 1), (0, 1, 1.0001), (0, 0, 1.5), (0, 0, 2),
    ]  # fmt: skip
    angles = [(0, 0, 0), (90, 0, 0), (0, 90, 0), (0, 0, 90), (45, 0, 0), (0, 45, 0), (0, 0, 45), (45, 0, 90)]
    turnings = Rotation.from_euler("xyz", angles, degrees=True).as_matrix()
    sizes = {"box": ((0.5, 0.5, 0.5), 0.0), "capsule": ((0, 0, 0.5), 0.5), "sphere": ((0, 0, 0), 0.5)}

    def shapes(kind, centers, turnings):
        halves, radius = sizes[kind]
        count = len(centers)
        return Shapes(centers, turnings, np.tile(np.array(halves, float), (count, 1)), np.full(count, radius))

    rows = [(np.array(place, float), one, other) for place in places for one in turnings for other in turnings[[0, 4]]]
    centers, ones, others = map(np.array, zip(*rows, strict=True))
    return shapes(first, centers, ones), shapes(second, 0 * centers, others)


@PAIRS
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_and_derivatives_are_finite_where_geometry_degenerates(pair, dtype):
    a, b = (jax.tree.map(lambda x: x.astype(dtype), shapes.placed()) for shapes in degenerate(*pair))

    def outcome(a, b):
        points = TOUCHES[pair](a, b)
        return sum(jnp.sum(jnp.cos(k + x)) for k, x in enumerate(jax.tree.leaves(points))), points

    @jax.jit
    def everything(a, b):
        tangents = jax.tree.map(jnp.ones_like, (a, b))
        derivative, points = jax.grad(outcome, (0, 1), has_aux=True)(a, b)
        return points, derivative, jax.jvp(lambda a, b: outcome(a, b)[1], (a, b), tangents)[1]

    points, *derivatives = everything(a, b)
    length = points.normal.x**2 + points.normal.y**2 + points.normal.z**2
    # The sum of squares of a unit vector rounded a few times.
    assert np.abs(np.asarray(length) - 1).max() < 8 * jnp.finfo(dtype).eps
    for numbers in jax.tree.leaves(derivatives):
        # Sizes are around 1 m, and no special position is a pole.
        assert np.abs(np.asarray(numbers)).max() < 1e3


BODIES = [
    box(1.0, (0.2, 0.1, 0.3)),
    sphere(1.0, 0.1),
    capsule(1.0, 0.3, 0.05),
    box(2.0, (0.1, 0.4, 0.2)),
    sphere(0.5, 0.2),
]


@pytest.mark.parametrize("count", [4, 5])
def test_every_pair_that_a_step_can_bring_together_is_near(x64, count):
    bodies, time_step = gather(BODIES[:count]), jnp.asarray(0.01)
    left_out = 0
    for seed in range(30):
        keys = jax.random.split(jax.random.key(seed), 2)
        at, speed = (scale * jax.random.normal(key, (3, count)) for key, scale in zip(keys, (0.5, 3.0), strict=True))
        motion = motion_of(bodies, Vector(*at), None, Vector(*speed))
        near = np.asarray(nearby(bodies, motion.position, motion.velocity, time_step))
        gap = np.asarray(contacts(bodies, motion).gap).min(axis=0).reshape(near.shape)
        first, second = rounds(count)
        real = np.maximum(first, second) < count
        fastest = 2 * np.linalg.norm(np.asarray(speed), axis=0).max()
        assert np.all(near[real & (gap < 0.01 * fastest)])
        assert not np.any(near[~real])
        left_out += np.sum(~near[real])
    assert left_out > 50


def apart_or_together(spread):
    """Return a scene of three balls on a floor, at distances given by a parameter."""

    def start(params, bodies, key):
        count = params["spread"] * jnp.arange(3.0)
        nothing = jnp.zeros(3)
        return motion_of(bodies, Vector(count, nothing, nothing + 0.15), None, Vector(-count, nothing, nothing))

    return simulate(
        Scene(
            params={"gravity": jnp.asarray(9.81), "time_step": jnp.asarray(0.005), "spread": jnp.asarray(spread)},
            bodies=lambda params: gather([sphere(1.0, 0.1)] * 3),
            start=start,
            dynamics=Impulses(),
            planes=lambda params: floor(),
            loads=(gravity(),),
        )
    )


def test_a_member_does_not_depend_on_near_pairs_of_other_members(x64):
    many = ensemble(apart_or_together(0.0), ("spread",))
    keys = jax.random.split(jax.random.key(0), 2)
    run = jax.jit(segment(many, 100))
    ends = []
    for other in (5.0, 0.25):
        params = many.params | {"spread": jnp.asarray([2.0, other])}
        ends.append(run(many.init(params, keys), params))
    for a, b in zip(*(jax.tree.leaves(end.motion) for end in ends), strict=True):
        np.testing.assert_array_equal(a[0], b[0])
    # The other ones of the second run did meet: 0.5 m/s of the one behind became the mean, 0.25 m/s.
    assert float(ends[1].motion.velocity.x[1, 2]) > -0.3
    assert not np.any(ends[0].memory.pushes.pairs.along)


def test_near_pairs_of_bodies_of_all_shapes_have_the_contacts_that_all_pairs_have():
    random = np.random.default_rng(0)
    shapes = box(1.0, (0.2, 0.3, 0.1)), sphere(1.0, 0.1), capsule(1.0, 0.05, 0.3)
    bodies = gather([shapes[index % 3] for index in range(60)])
    orientation = Rotation.random(60, rng=random).as_quat(scalar_first=True)
    motion = motion_of(bodies, jnp.asarray(random.uniform(-0.6, 0.6, (60, 3)), float), jnp.asarray(orientation, float))
    near = first_list(bodies, motion, 16)
    assert not near.overflowed

    def found(pairs, first, second, real):
        points = jax.jit(lambda motion: contacts(bodies, motion, pairs))(motion)
        turned = np.where(first < second, 1, -1)
        normal = turned * np.stack([np.asarray(getattr(points.normal, axis)) for axis in "xyz"])
        values = np.concatenate([np.asarray(points.gap)[None], normal])[..., real]
        names = zip(np.minimum(first, second)[real].tolist(), np.maximum(first, second)[real].tolist(), strict=True)
        return dict(zip(names, np.moveaxis(values, -1, 0), strict=True))

    first, second = (side.ravel() for side in rounds(60))
    every = found(None, first, second, slice(None))
    some = found(
        near, *(np.asarray(side).ravel() for side in (near.first, near.second)), np.asarray(near.are_real).ravel()
    )
    # No pair that touches is missing, and there are pairs of every two shapes.
    assert {pair for pair, values in every.items() if values[0].min() < 1e-3} <= set(some)
    assert len({(one % 3, other % 3) for one, other in some}) == 9
    for pair, values in some.items():
        touching = values[0] < 1e-2
        np.testing.assert_allclose(values[0], every[pair][0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(values[:, touching], every[pair][:, touching], atol=1e-5)
