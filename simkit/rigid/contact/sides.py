"""Elastic contact along the sides of capsules: an energy per length of axis, smooth from crossing to parallel.

With p(s) on the axis of a capsule, D(s) its distance from the axis of another capsule or from a box, and R the sum of
the radii, the energy is

    E = 3/8 k / sqrt(2 R) integral of d(s)^2 ds,   d(s) = (R^2 - D(s)^2) / (2 R), not negative
        + 2/5 k sum over the two ends of (overlap of the end's ball)^(5/2)

d is the overlap for overlaps small compared with R. d^2 and the force per length are piecewise polynomials of degree
four, which three Gauss nodes per piece integrate exactly. Where an axis crosses another, an edge or a corner at a right
angle, the integral is 2/5 k d^(5/2), as for two balls.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.quaternion import axes_of, rotate, unrotate
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, dot, each, perpendicular
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.pairs import placed
from simkit.rigid.collision.points import Placed, Points, along_slots, clamp, midway, sign
from simkit.rigid.collision.spheres import along, sphere_box, sphere_capsule

# Gauss-Legendre rule on (-1, 1), exact for polynomials up to degree five.
NODES, WEIGHTS = (-math.sqrt(0.6), 0.0, math.sqrt(0.6)), (5 / 9, 8 / 9, 5 / 9)
# Component of a unit vector below which a line counts as parallel to the sides of a slab.
ALONG = 1e-9
# Lower bound of the squared sine of two lines in the quadratic for the ends of their overlap; with less, these ends are
# thousands of meters away.
LEAST_CURVATURE = 1e-12


@pytree
class Pushes:
    """Points at which capsules push other bodies, arrays (points, pairs, ...).

    Attributes:
        points: positions, normals from the second body to the first, and gaps.
        strength: elastic force over the stiffness k, in m^(3/2).
    """

    points: Points
    strength: jax.Array


def kinds_of(kinds: tuple[str, ...], index: np.ndarray) -> np.ndarray:
    """Return the kinds of bodies by index, ``"none"`` for the index n of a missing partner.

    Args:
        kinds: of the n bodies.
        index: indices, of any shape.
    """
    return np.array([*kinds, "none"])[index]


def have_sides(kinds: tuple[str, ...], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return which pairs touch along the side of a capsule, bool: capsules with capsules, and capsules with boxes.

    Args:
        kinds: of the n bodies.
        first: indices of the first bodies; n marks a missing partner.
        second: indices of the second bodies, likewise.
    """
    one, other = kinds_of(kinds, first), kinds_of(kinds, second)
    extended = ("capsule", "box")
    return ((one == "capsule") & np.isin(other, extended)) | ((other == "capsule") & np.isin(one, extended))


def pushes(bodies: Bodies, motion: Motion) -> list[tuple[np.ndarray, np.ndarray, Pushes]]:
    """Return the pushes of capsules on capsules and boxes: indices of the first and second bodies, and the points.

    Args:
        bodies: of the scene.
        motion: state of the bodies.
    """
    kinds, all_shapes = np.array(bodies.kinds), placed(bodies, motion)
    capsules, boxes = np.flatnonzero(kinds == "capsule"), np.flatnonzero(kinds == "box")
    one, other = np.triu_indices(len(capsules), 1)
    groups = []
    for first, second, pushes_of in (
        (capsules[one], capsules[other], _of_capsules),
        (np.repeat(capsules, len(boxes)), np.tile(boxes, len(capsules)), _on_boxes),
    ):
        if first.size:
            a, b = (
                each(lambda values, index=index: jnp.take(values, index, axis=0), all_shapes)
                for index in (first, second)
            )
            groups.append((first, second, pushes_of(a, b)))
    return groups


def _of_capsules(a: Placed, b: Placed) -> Pushes:
    """Return the mean of the pushes along the axes of the first capsules and along those of the second ones."""
    one, other = _pushes_on(a, b, boxes=False), _pushes_on(b, a, boxes=False)
    reversed_points = dataclasses.replace(other.points, normal=-other.points.normal)
    both = _concatenated(one, dataclasses.replace(other, points=reversed_points))
    return dataclasses.replace(both, strength=both.strength / 2)


def _on_boxes(a: Placed, b: Placed) -> Pushes:
    return _pushes_on(a, b, boxes=True)


def _pushes_on(a: Placed, b: Placed, boxes: bool) -> Pushes:
    """Return the pushes of the sides and the ends of capsules on other bodies.

    Args:
        a: the capsules.
        b: the other bodies, boxes or capsules.
        boxes: whether they are boxes.
    """
    _, _, axis = axes_of(a.orientation)
    contact = _side(a, axis, b, boxes)
    for end in (-1, 1):
        ball = dataclasses.replace(a, position=a.position + end * a.half_lengths.z * axis)
        points = (sphere_box if boxes else sphere_capsule)(ball, b)
        overlap = jnp.maximum(-points.gap, 0)
        # The root has no derivative at zero overlap, where the force is zero anyway.
        strength = overlap * jnp.sqrt(jnp.where(overlap > 0, overlap, 1))
        contact = _concatenated(contact, staged(computed_once(Pushes(points=points, strength=strength))))
    return contact


def _side(a: Placed, axis: Vector, b: Placed, boxes: bool) -> Pushes:
    center, axis = unrotate(b.orientation, a.position - b.position), unrotate(b.orientation, axis)
    center, axis = staged(computed_once((center, axis)))
    half, halves, radius = a.half_lengths.z, b.half_lengths, a.radius + b.radius
    coordinates = list(zip(*((v.x, v.y, v.z) for v in (center, axis, halves)), strict=True))

    # The squared distance is a polynomial between the points where the axis crosses the sides of the slabs; a capsule
    # is a box without extent in two directions.
    cuts = [-half, half]
    for c, u, h in coordinates if boxes else coordinates[2:]:
        slope = jnp.where(jnp.abs(u) < ALONG, ALONG, u)
        cuts += [clamp((side * h - c) / slope, half) for side in (-1, 1)]
    cuts = _sorted(cuts)
    low, high = staged(computed_once((jnp.stack(cuts[:-1]), jnp.stack(cuts[1:]))))

    # Within a piece D^2 - R^2 = curvature s^2 + 2 slope s + rest, negative between its two roots.
    curvature, slope, rest = jnp.zeros_like(low), jnp.zeros_like(low), -jnp.ones_like(low) * radius**2
    for c, u, h in coordinates:
        x = c + u * (low + high) / 2
        beyond = jnp.abs(x) >= h
        excess, rate = jnp.where(beyond, c - sign(x) * h, 0), jnp.where(beyond, u, 0)
        curvature, slope, rest = curvature + rate**2, slope + rate * excess, rest + excess**2
    curvature, slope, rest = staged(computed_once((jnp.maximum(curvature, LEAST_CURVATURE), slope, rest)))
    discriminant = slope**2 - curvature * rest
    meets = discriminant > 0
    larger = -(slope + sign(slope) * jnp.sqrt(jnp.where(meets, discriminant, 1)))
    roots = larger / curvature, rest / larger
    low, high = (
        jnp.where(meets, jnp.clip(root, low, high), low) for root in (jnp.minimum(*roots), jnp.maximum(*roots))
    )

    low, high = staged(computed_once((low, high)))
    middle, width = (low + high) / 2, (high - low) / 2
    place = (middle + along_slots(NODES, middle) * width).reshape(-1, *half.shape)
    weight = (along_slots(WEIGHTS, middle) * width).reshape(-1, *half.shape)
    point = center + place * axis
    apart = staged(computed_once(point - each(clamp, point, halves)))
    across, _ = perpendicular(axis)
    normal, distance = along(apart, radius, across)
    depth = jnp.maximum(radius**2 - dot(apart, apart), 0) / (2 * radius)
    gap = distance - radius
    position = b.position + rotate(b.orientation, midway(point - a.radius * normal, normal, gap))
    contact = Pushes(
        points=Points(position=position, normal=rotate(b.orientation, normal), gap=gap),
        strength=3 / 4 / jnp.sqrt(2 * radius) * weight * depth * distance / radius,
    )
    return staged(computed_once(contact))


def _sorted(values: list[jax.Array]) -> list[jax.Array]:
    """Return a few arrays sorted elementwise in ascending order (bubble sort, without a sort operation)."""
    values = list(values)
    for last in range(len(values) - 1, 0, -1):
        for index in range(last):
            one, other = values[index], values[index + 1]
            values[index], values[index + 1] = jnp.minimum(one, other), jnp.maximum(one, other)
    return values


def _concatenated(one: Pushes, other: Pushes) -> Pushes:
    return staged(computed_once(each(lambda *values: jnp.concatenate(values), one, other)))
