"""Derivatives of gaps and normals, and numbers that stay finite where geometry degenerates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import vector
from simkit.rigid.collision.points import Placed
from tests.rigid.collision.shapes import COUNT, TOUCHES, Shapes, random_shapes, touching

pytestmark = pytest.mark.usefixtures("x64")
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
