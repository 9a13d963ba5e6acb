"""Random pairs of shapes, and their distances by NumPy and SciPy."""

import functools
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from simkit.rigid.algebra.quaternion import quaternion
from simkit.rigid.algebra.vector import stacked, vector
from simkit.rigid.collision.boxes import box_box
from simkit.rigid.collision.capsules import capsule_box, capsule_capsule
from simkit.rigid.collision.points import Placed
from simkit.rigid.collision.spheres import sphere_box, sphere_capsule, sphere_sphere

# All tests that can use this many pairs, so that they share compiled programs.
COUNT = 200
CORNERS = np.array(list(product((-1, 1), repeat=3)))
TOUCHES = {
    ("sphere", "sphere"): sphere_sphere,
    ("sphere", "capsule"): sphere_capsule,
    ("sphere", "box"): sphere_box,
    ("capsule", "capsule"): capsule_capsule,
    ("capsule", "box"): capsule_box,
    ("box", "box"): box_box,
}
ROUNDED = [pair for pair in TOUCHES if pair != ("box", "box")]


@functools.cache
def touching(first, second):
    """Return the compiled contact function of two kinds of shapes."""
    return jax.jit(TOUCHES[first, second])


class Shapes:
    """Shapes as NumPy arrays: centers, rotation matrices, half lengths and radii."""

    def __init__(self, center, turning, halves, radius):
        self.center, self.turning, self.halves, self.radius = center, turning, halves, radius

    def __getitem__(self, k):
        return Shapes(self.center[k], self.turning[k], self.halves[k], self.radius[k])

    def placed(self):
        x, y, z, w = Rotation.from_matrix(self.turning).as_quat().T
        return Placed(
            position=vector(jnp.asarray(self.center)),
            orientation=quaternion(jnp.asarray(np.stack([w, x, y, z], axis=-1))),
            half_lengths=vector(jnp.asarray(self.halves)),
            radius=jnp.asarray(self.radius),
        )

    def moved(self, turning, shift):
        return Shapes(self.center @ turning.T + shift, turning @ self.turning, self.halves, self.radius)

    def at(self, center):
        return Shapes(center, self.turning, self.halves, self.radius)

    def corners(self):
        """Return the corners of one box, (8, 3)."""
        return self.center + (CORNERS * self.halves) @ self.turning.T

    def beyond(self, points):
        """Return the distances of points, one for each shape, from the shapes; zero inside."""
        inside = np.einsum("kij,ki->kj", self.turning, points - self.center)
        return np.maximum(np.linalg.norm(inside - np.clip(inside, -self.halves, self.halves), axis=1) - self.radius, 0)


def random_shapes(kind, seed, spread, count=COUNT):
    random = np.random.default_rng(seed)
    center, turning = spread * random.normal(size=(count, 3)), Rotation.random(count, rng=random).as_matrix()
    halves, radius = np.zeros((count, 3)), np.zeros(count)
    if kind == "box":
        halves = random.uniform(0.2, 1, (count, 3))
    elif kind == "capsule":
        halves[:, 2], radius = random.uniform(0.2, 1, count), random.uniform(0.1, 0.5, count)
    else:
        radius = random.uniform(0.2, 1, count)
    return Shapes(center, turning, halves, radius)


def nearest(a, b):
    """Return the distance of two shapes by bounded least squares, that of their cores, and the direction."""
    matrix = np.concatenate([a.turning * a.halves, -b.turning * b.halves], axis=1)
    used, apart = np.concatenate([a.halves, b.halves]) > 0, a.center - b.center
    if used.any():
        apart = apart + matrix[:, used] @ lsq_linear(matrix[:, used], -apart, (-1, 1), method="bvls", tol=1e-14).x
    core = np.linalg.norm(apart)
    return core - a.radius - b.radius, core, apart / max(core, 1e-300)


def nearest_of_all(first, second):
    return tuple(
        np.array(column)
        for column in zip(*(nearest(first[k], second[k]) for k in range(len(first.center))), strict=True)
    )


def separation(a, b):
    """Return the largest separation of two boxes along their fifteen axes, from the projections of their corners."""
    axes = [*a.turning.T, *b.turning.T, *(np.cross(u, v) for u in a.turning.T for v in b.turning.T)]
    unit = [axis / np.linalg.norm(axis) for axis in axes if np.linalg.norm(axis) > 1e-6]
    one, other = a.corners() @ np.array(unit).T, b.corners() @ np.array(unit).T
    return np.maximum(one.min(axis=0) - other.max(axis=0), other.min(axis=0) - one.max(axis=0)).max()


def array(points):
    """Return positions, normals and gaps as NumPy arrays, (slots, pairs, ...)."""
    return np.asarray(stacked(points.position)), np.asarray(stacked(points.normal)), np.asarray(points.gap)
