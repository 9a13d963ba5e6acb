"""Elastic sides of capsules: an energy along the axis, smooth from crossing to lying alongside, and its force.

With p(s) on the axis of a capsule, and D(s) its distance from the other body's axis (of a capsule) or surface (of a
box), and R the radius of the capsule, or the sum of both, the energy is

    E = 3/8 k / sqrt(2 R) integral of d(s)^2 ds,   d(s) = (R^2 - D(s)^2) / (2 R), not negative
        + 2/5 k sum over the two ends of (overlap of the end's ball)^(5/2)

d is the overlap for overlaps small compared with R. Its square is piecewise a polynomial of degree four, and so is the
force that each part of the side contributes: three points of Gauss's rule on each piece give both without error.
Where an axis crosses another, an edge or a corner at a right angle, the integral is 2/5 k d^(5/2), as for two balls.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.pytree import pytree
from simkit.rigid.algebra.quaternion import axes_of, rotate, unrotate
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, dot, each, perpendicular
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.pairs import placed
from simkit.rigid.collision.points import Placed, Points
from simkit.rigid.collision.slots import along_slots, clamp, midway, sign
from simkit.rigid.collision.spheres import along, sphere_box, sphere_capsule

# Gauss's rule for polynomials up to degree five on (-1, 1).
NODES, WEIGHTS = (-math.sqrt(0.6), 0.0, math.sqrt(0.6)), (5 / 9, 8 / 9, 5 / 9)
# Component of a unit vector below which a line runs along a slab.
ALONG = 1e-9
# Square of the sine below which lines count as parallel where the ends of their overlap are looked for: these would be
# thousands of meters away.
LEAST_CURVATURE = 1e-12


@pytree
class Pushes:
    """Points at which capsules push, one pair each along the second axis, and how strongly.

    Attributes:
        points: where, and along which normal, from the second body to the first.
        strength: the elastic force over the stiffness k, in m^(3/2).
    """

    points: Points
    strength: jax.Array


def kinds_of(kinds: tuple[str, ...], index: np.ndarray) -> np.ndarray:
    """Return the shapes of bodies by number, ``"none"`` for a number past the end, which stands for no body.

    Args:
        kinds: of the bodies.
        index: numbers, of any shape.
    """
    return np.array([*kinds, "none"])[index]


def have_sides(kinds: tuple[str, ...], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return of which pairs the contact is that of a capsule's side: capsules with capsules and boxes.

    Args:
        kinds: of the bodies.
        first: numbers of the first bodies; a number past the end stands for no body.
        second: likewise.
    """
    one, other = kinds_of(kinds, first), kinds_of(kinds, second)
    flat = ("capsule", "box")
    return ((one == "capsule") & np.isin(other, flat)) | ((other == "capsule") & np.isin(one, flat))


def pushes(bodies: Bodies, motion: Motion) -> list[tuple[np.ndarray, np.ndarray, Pushes]]:
    """Return where capsules push capsules and boxes: numbers of the first bodies and the second ones, and how.

    Args:
        bodies: of the scene.
        motion: state of the bodies.
    """
    kinds, all_shapes = np.array(bodies.kinds), placed(bodies, motion)
    capsules, boxes = np.flatnonzero(kinds == "capsule"), np.flatnonzero(kinds == "box")
    one, other = np.triu_indices(len(capsules), 1)
    found = []
    for first, second, view in (
        (capsules[one], capsules[other], _of_capsules),
        (np.repeat(capsules, len(boxes)), np.tile(boxes, len(capsules)), _on_boxes),
    ):
        if first.size:
            a, b = (
                each(lambda values, index=index: jnp.take(values, index, axis=0), all_shapes)
                for index in (first, second)
            )
            found.append((first, second, view(a, b)))
    return found


def _of_capsules(a: Placed, b: Placed) -> Pushes:
    """Return the mean of what the first ones' axes meet in the second capsules and the other way round."""
    one, other = _seen_from(a, b, boxes=False), _seen_from(b, a, boxes=False)
    turned = dataclasses.replace(other.points, normal=-other.points.normal)
    both = _in_turn(one, dataclasses.replace(other, points=turned))
    return dataclasses.replace(both, strength=both.strength / 2)


def _on_boxes(a: Placed, b: Placed) -> Pushes:
    return _seen_from(a, b, boxes=True)


def _seen_from(a: Placed, b: Placed, boxes: bool) -> Pushes:
    """Return how the sides and the ends of capsules push other bodies.

    Args:
        a: the capsules.
        b: boxes, or capsules.
        boxes: which.
    """
    _, _, axis = axes_of(a.orientation)
    found = _side(a, axis, b, boxes)
    for end in (-1, 1):
        ball = dataclasses.replace(a, position=a.position + end * a.half_lengths.z * axis)
        points = (sphere_box if boxes else sphere_capsule)(ball, b)
        overlap = jnp.maximum(-points.gap, 0)
        # The root of no overlap has no derivative, and is not needed there.
        strength = overlap * jnp.sqrt(jnp.where(overlap > 0, overlap, 1))
        found = _in_turn(found, staged(computed_once(Pushes(points=points, strength=strength))))
    return found


def _side(a: Placed, axis: Vector, b: Placed, boxes: bool) -> Pushes:
    center, axis = unrotate(b.orientation, a.position - b.position), unrotate(b.orientation, axis)
    center, axis = staged(computed_once((center, axis)))
    half, halves, radius = a.half_lengths.z, b.half_lengths, a.radius + b.radius
    coordinates = list(zip(*((v.x, v.y, v.z) for v in (center, axis, halves)), strict=True))

    # The square of the distance is a polynomial between places where the axis passes from one side of a slab to
    # another; a capsule is a box without extent in two directions.
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
    found = Pushes(
        points=Points(position=position, normal=rotate(b.orientation, normal), gap=gap),
        strength=3 / 4 / jnp.sqrt(2 * radius) * weight * depth * distance / radius,
    )
    return staged(computed_once(found))


def _sorted(values: list[jax.Array]) -> list[jax.Array]:
    """Return a few arrays in ascending order, at each place on its own."""
    values = list(values)
    for last in range(len(values) - 1, 0, -1):
        for index in range(last):
            one, other = values[index], values[index + 1]
            values[index], values[index + 1] = jnp.minimum(one, other), jnp.maximum(one, other)
    return values


def _in_turn(one: Pushes, other: Pushes) -> Pushes:
    return staged(computed_once(each(lambda *values: jnp.concatenate(values), one, other)))
