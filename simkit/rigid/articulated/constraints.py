"""Constraints of a mechanism in joint coordinates: contacts of geoms, limits and friction of joints, equalities.

Every pair of geoms that may touch has a fixed number of points, each with a gap and a normal at all times, so that a
step has no conditions: one for a ball and for the nearest points of two capsules, two for a capsule on a plane, eight
for a box on a plane, one for each corner of the hull of a mesh, the lowest one of an ellipsoid and of each end of a
cylinder, and four on the rim of either end, which touch while it stands.
"""

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.quaternion import Quaternion, rotate, unrotate
from simkit.rigid.algebra.vector import Vector, cross, dot, each, times
from simkit.rigid.articulated.contact_laws import Impulses, Rows
from simkit.rigid.articulated.dynamics import Kinematics, Twist
from simkit.rigid.articulated.tree import Tree, like, vectors_like
from simkit.rigid.collision.against_plane import LEVEL, STANDS
from simkit.rigid.collision.points import FAR

type Shape = Literal["plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"]
# By the numbers of `mujoco.mjtGeom`.
SHAPES: dict[int, Shape] = {
    0: "plane",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """Points at which geoms may touch: P against planes, and Q between segments (balls and capsules).

    Bodies are numbered from 0, and the world is -1; places are in the frame of the body.

    Attributes:
        plane: body of each plane, (P,).
        plane_at: point of each plane in m, (P, 3).
        plane_normal: of each plane, (P, 3).
        point: body of each point, (P,).
        point_at: center of the ball at each point in m, (P, 3).
        point_radius: of that ball in m, (P,).
        round: points, among the P, that are centers of ellipsoids or, with a half axis of zero, disks, (R,).
        half_axes: of those in m, (R, 3).
        round_frame: their orientations in the frames of their bodies, (R, 4).
        rim: points, among the P, that touch only while their axis is nearly along the normal, (K,).
        rim_axis: that axis in the frame of the body, (K, 3).
        first: body of the first segment, (Q,).
        first_ends: of that segment in m, (Q, 2, 3).
        second: body of the second segment, (Q,).
        second_ends: of that segment in m, (Q, 2, 3).
        radius: sum of both radii in m, (Q,).
        friction: coefficients at each point of sliding, and of torsion and rolling in m, first the P, then the Q,
            (P + Q, 3).
    """

    plane: np.ndarray
    plane_at: np.ndarray
    plane_normal: np.ndarray
    point: np.ndarray
    point_at: np.ndarray
    point_radius: np.ndarray
    round: np.ndarray
    half_axes: np.ndarray
    round_frame: np.ndarray
    rim: np.ndarray
    rim_axis: np.ndarray
    first: np.ndarray
    first_ends: np.ndarray
    second: np.ndarray
    second_ends: np.ndarray
    radius: np.ndarray
    friction: np.ndarray

    @property
    def twisting(self) -> tuple[int, ...]:
        """Points with torsional or rolling friction."""
        return tuple(np.flatnonzero(self.friction[:, 1:].any(axis=1)).tolist())

    @property
    def bodies(self) -> np.ndarray:
        """First and second body of each contact, (P + Q, 2)."""
        return np.concatenate([np.stack([self.plane, self.point], 1), np.stack([self.first, self.second], 1)])


@dataclasses.dataclass(frozen=True, eq=False)
class Constraints:
    """All constraints of a model.

    Attributes:
        contacts: points at which geoms may touch.
        limited: velocity of each limited joint, (N,).
        coordinate: of the same joints, (N,).
        limits: of the same joints in rad or m, (N, 2).
        rubbing: velocities with friction, (F,).
        bodies: that each equality of points holds together, (E, 2); -1 is the world.
        anchors: of each equality of points in the frames of its bodies in m, (E, 2, 3).
        turned: which of the equalities hold orientations too, (W,).
        relative: orientation of the second body in the first there, (W, 4).
        gears: velocity of the joints of each equality of joints, (G, 2); the second is -1 if there is none.
        gear_coordinates: of the same joints, (G, 2).
        gear_references: coordinates of the same joints at the reference, (G, 2).
        polynomial: coefficients of each equality of joints, (G, 5).
    """

    contacts: Candidates
    limited: np.ndarray
    coordinate: np.ndarray
    limits: np.ndarray
    rubbing: np.ndarray
    bodies: np.ndarray
    anchors: np.ndarray
    turned: np.ndarray
    relative: np.ndarray
    gears: np.ndarray
    gear_coordinates: np.ndarray
    gear_references: np.ndarray
    polynomial: np.ndarray

    @property
    def equalities(self) -> int:
        """Number of scalar rows of equalities."""
        return 3 * len(self.bodies) + 3 * len(self.turned) + len(self.gears)

    @property
    def joints(self) -> tuple[tuple[int, float], ...]:
        """Velocity and sign of each scalar row of one joint: limits from below, from above, friction."""
        first, rubbing = self.limited.tolist(), self.rubbing.tolist()
        return (*((n, 1.0) for n in first), *((n, -1.0) for n in first), *((n, 1.0) for n in rubbing))

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of contacts and of scalar rows: limits from below, from above, friction, equalities."""
        scalar = 2 * len(self.limited) + len(self.rubbing) + self.equalities
        return len(self.contacts.friction), scalar


@pytree
class Situation:
    """Constraints at given coordinates.

    Attributes:
        normal: of each contact, (C, 3).
        contact: its Jacobian, (C, 3, nv).
        twist: Jacobians of the relative angular velocity, where it has friction, (T, 3, nv).
        gap: its distance in m, negative where shapes overlap, (C,).
        place: where it is in m, (C, 3).
        scalar: Jacobians of the scalar rows, (S, nv).
        error: of limits the distance to them, of equalities how far they are violated, of friction 0, (S,).
    """

    normal: jax.Array
    contact: jax.Array
    twist: jax.Array
    gap: jax.Array
    place: jax.Array
    scalar: jax.Array
    error: jax.Array


def situation(constraints: Constraints, tree: Tree, kinematics: Kinematics, position: jax.Array) -> Situation:
    """Return the constraints at given coordinates.

    Args:
        constraints: of the model.
        tree: its kinematic tree.
        kinematics: places of its bodies at the coordinates.
        position: the coordinates, (nq,).
    """
    normal, at, gap = _contacts(constraints.contacts, kinematics, position)
    contact = (
        _relative(tree, kinematics, constraints.contacts.bodies, at)
        if len(gap)
        else jnp.zeros((0, 3, *_members(tree, position)))
    )
    twisting = constraints.contacts.bodies[list(constraints.contacts.twisting)]
    scalar, error = [], []
    one = np.eye(len(tree.link))
    low, high = (like(end, position) for end in constraints.limits.T)
    value = position[constraints.coordinate]
    for rows, errors in (
        (one[constraints.limited], value - low),
        (-one[constraints.limited], high - value),
        (one[constraints.rubbing], 0 * position[:1][np.zeros(len(constraints.rubbing), int)]),
    ):
        scalar.append(
            jnp.broadcast_to(like(rows, kinematics.axes.turn.x[None]), (len(rows), *_members(tree, position)))
        )
        error.append(errors)
    for rows, errors in (
        *_points_held(constraints, tree, kinematics, position),
        *_joints_held(constraints, tree, position),
    ):
        scalar.append(rows)
        error.append(errors)
    return Situation(
        normal=normal,
        contact=jnp.asarray(contact, position.dtype),
        twist=jnp.asarray(_turned(tree, kinematics, twisting), position.dtype),
        gap=gap,
        place=jnp.stack([at.x, at.y, at.z], axis=1),
        scalar=jnp.concatenate(scalar),
        error=jnp.concatenate(error),
    )


def rows_of(
    constraints: Constraints,
    now: Situation,
    friction: jax.Array,
    joint_friction: jax.Array,
    time_step: jax.Array,
) -> Rows:
    """Return the rows of a step: what is apart may close in it, what overlaps may not approach.

    Args:
        constraints: of the model.
        now: the constraints at the start of the step.
        friction: coefficients of each contact, (C, 3).
        joint_friction: force or torque of friction of the velocities that have it, (F,).
        time_step: in s.
    """
    limits, equal = 2 * len(constraints.limited), constraints.equalities
    twisting = constraints.contacts.twisting
    impulse = joint_friction * time_step
    none = jnp.zeros_like(now.error[:limits])
    free = jnp.full_like(now.error[:equal], jnp.inf)
    return Rows(
        normal=now.normal,
        contact=now.contact,
        closing=jnp.maximum(now.gap, 0) / time_step,
        friction=friction[:, 0],
        twisting=twisting,
        twist=now.twist,
        torsion=friction[list(twisting), 1],
        rolling=friction[list(twisting), 2],
        joints=constraints.joints,
        scalar=now.scalar[len(constraints.joints) :],
        offset=jnp.concatenate([jnp.maximum(now.error[:limits], 0) / time_step, 0 * now.error[limits:]]),
        lower=jnp.concatenate([none, -impulse, -free]),
        upper=jnp.concatenate([none + jnp.inf, impulse, free]),
    )


def forces_of(
    constraints: Constraints, tree: Tree, kinematics: Kinematics, position: jax.Array, impulses: Impulses
) -> Twist:
    """Return the impulses of contacts and equalities of points on each body, about the origin of the world, B of each.

    Args:
        constraints: of the model.
        tree: its kinematic tree.
        kinematics: places of its bodies at the coordinates.
        position: the coordinates, (nq,).
        impulses: of the constraints.
    """
    _, at, _ = _contacts(constraints.contacts, kinematics, position)
    pairs = constraints.contacts.bodies
    pushed = vector.vector(impulses.contact)
    parts = [(pairs[:, 1], cross(at, pushed), pushed), (pairs[:, 0], cross(at, -pushed), -pushed)]
    twisted = vector.vector(impulses.twist)
    for n, sign in ((0, -1.0), (1, 1.0)):
        parts.append((pairs[list(constraints.contacts.twisting), n], sign * twisted, 0 * twisted))
    first = len(constraints.joints)
    held, turned = 3 * len(constraints.bodies), 3 * len(constraints.turned)
    pulled = vector.vector(impulses.scalar[first : first + held].reshape(-1, 3))
    twisted = vector.vector(impulses.scalar[first + held : first + held + turned].reshape(-1, 3))
    for n, sign in ((0, -1.0), (1, 1.0)):
        bodies = constraints.bodies[:, n]
        place = _placed(kinematics, bodies, constraints.anchors[:, n], position)
        parts.append((bodies, cross(place, sign * pulled), sign * pulled))
        parts.append((bodies[constraints.turned], sign * twisted, 0 * twisted))
    which = np.concatenate([bodies for bodies, _, _ in parts]) == np.arange(len(tree.links_of_bodies))[:, None]
    table = jnp.concatenate(
        [jnp.concatenate([vector.stacked(turn), vector.stacked(shift)], axis=1) for _, turn, shift in parts]
    )
    sums = jnp.tensordot(jnp.asarray(which, table.dtype), table, 1, precision="highest")
    return Twist(turn=vector.vector(sums[:, :3]), shift=vector.vector(sums[:, 3:]))


def _members(tree: Tree, position: jax.Array) -> tuple[int, ...]:
    return (len(tree.link), *position.shape[1:])


def _in_world(kinematics: Kinematics, bodies: np.ndarray) -> tuple[Vector, Quaternion]:
    """Return position and orientation of the frames of bodies, of which -1 is the world."""
    one = jnp.ones_like(kinematics.position.x[:1])
    world = vector.zeros(one), quaternion.identity(one)
    frames = kinematics.position, kinematics.orientation
    return each(lambda a, end: jnp.concatenate([a, end])[bodies], frames, world)


def _placed(kinematics: Kinematics, bodies: np.ndarray, at: np.ndarray, position: jax.Array) -> Vector:
    place, turned = _in_world(kinematics, bodies)
    return place + rotate(turned, vectors_like(at, position))


def _contacts(contacts: Candidates, kinematics: Kinematics, position: jax.Array) -> tuple[jax.Array, Vector, jax.Array]:
    """Return normals (C, 3), points and gaps of all candidates."""
    origin = _placed(kinematics, contacts.plane, contacts.plane_at, position)
    normal = rotate(_in_world(kinematics, contacts.plane)[1], vectors_like(contacts.plane_normal, position))
    center = _placed(kinematics, contacts.point, contacts.point_at, position)
    if len(contacts.round):
        down = _support(contacts, kinematics, normal, position)
        center = each(lambda values, arm: values.at[contacts.round].add(arm), center, down)
    radius = like(contacts.point_radius, position)
    gap = dot(center - origin, normal) - radius
    at = center - each(lambda n: (radius + gap / 2) * n, normal)
    if len(contacts.rim):
        _, turned = _in_world(kinematics, contacts.point[contacts.rim])
        along = dot(rotate(turned, vectors_like(contacts.rim_axis, position)), normal[contacts.rim])
        stands = jnp.abs(along) > (1 - STANDS**2) ** 0.5
        gap = gap.at[contacts.rim].set(jnp.where(stands, gap[contacts.rim], FAR))
    ends = [
        _placed(kinematics, body, places[:, n], position)
        for body, places in ((contacts.first, contacts.first_ends), (contacts.second, contacts.second_ends))
        for n in (0, 1)
    ]
    a, b = nearest_of_segments(ends[0], ends[1], ends[2], ends[3])
    between = b - a
    squared = dot(between, between)
    # Axes that cross: the normal is upward, and the depth the sum of radii.
    apart = squared > 0
    distance = jnp.sqrt(jnp.where(apart, squared, 1))
    way = each(lambda d: jnp.where(apart, d / distance, 0), between)
    way = Vector(way.x, way.y, jnp.where(apart, way.z, 1))
    near = jnp.where(apart, distance, 0) - like(contacts.radius, position)
    middle = each(lambda p, q: (p + q) / 2, a, b)
    normals = each(_joined, normal, way)
    return (
        jnp.stack([normals.x, normals.y, normals.z], axis=1),
        each(_joined, at, middle),
        _joined(gap, near),
    )


def _support(contacts: Candidates, kinematics: Kinematics, normal: Vector, position: jax.Array) -> Vector:
    """Return the lowest points of ellipsoids and disks relative to their centers, ``-A^2 n / |A n|``, R of each.

    The lowest point of a level disk is its center.
    """
    _, turned = _in_world(kinematics, contacts.point[contacts.round])
    own = contacts.round_frame
    turned = quaternion.multiply(turned, Quaternion(like(own[:, 0], position), vectors_like(own[:, 1:], position)))
    axes = vectors_like(contacts.half_axes, position)
    scaled = times(axes, unrotate(turned, normal[contacts.round]))
    level = np.where(contacts.half_axes.min(axis=1) > 0, 0, LEVEL * contacts.half_axes.max(axis=1) ** 2)
    size = jnp.sqrt(dot(scaled, scaled) + like(level, position))
    return rotate(turned, each(lambda x: -x / size, times(axes, scaled)))


def _joined(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.concatenate([a, b])


def _flat(rows: jax.Array) -> jax.Array:
    """Return vectors (n, 3, ...) as scalars (3 n, ...)."""
    return rows.reshape(-1, *rows.shape[2:])


def nearest_of_segments(a: Vector, b: Vector, c: Vector, d: Vector) -> tuple[Vector, Vector]:
    """Return the nearest points of the segments from a to b and from c to d; a segment may be a point.

    Of parallel segments the middle of their overlap is nearest.

    Args:
        a: first end of the first segment.
        b: its second end.
        c: first end of the second segment.
        d: its second end.
    """
    u, v, w = b - a, d - c, a - c
    uu, uv, vv, uw, vw = dot(u, u), dot(u, v), dot(v, v), dot(u, w), dot(v, w)
    tiny = jnp.finfo(uu.dtype).tiny ** 0.5
    long_u, long_v = jnp.where(uu > 0, uu, 1), jnp.where(vv > 0, vv, 1)
    square = uu * vv - uv * uv
    parallel = square <= 1e-6 * uu * vv + tiny

    def within(x: jax.Array) -> jax.Array:
        return jnp.clip(x, 0, 1)

    # Along u: the ends of the other segment, and the middle of what they cover.
    start, end = within(-uw / long_u), within((uv - uw) / long_u)
    s = jnp.where(parallel, (start + end) / 2, within((uv * vw - vv * uw) / jnp.where(parallel, 1, square)))
    t = within((uv * s + vw) / long_v)
    s = jnp.where(parallel, s, within((uv * t - uw) / long_u))
    s = jnp.where(vv > 0, s, within(-uw / long_u))
    return a + each(lambda x: s * x, u), c + each(lambda x: t * x, v)


def _signs(tree: Tree, bodies: np.ndarray) -> np.ndarray:
    """Return by which sign each velocity moves the second body of pairs (n, 2) away from the first, (n, nv)."""
    carries = np.concatenate([tree.carries[tree.link][:, tree.links_of_bodies], np.zeros((len(tree.link), 1))], axis=1)
    return (carries[:, bodies[:, 1]] - carries[:, bodies[:, 0]]).T


def _relative(tree: Tree, kinematics: Kinematics, bodies: np.ndarray, at: Vector) -> jax.Array:
    """Return the Jacobians (n, 3, nv) of the velocity at points of the second bodies relative to the first."""
    axes, reference = kinematics.axes, kinematics.reference[tree.link]
    arm = each(lambda p, r: p[:, None] - r[None], at, reference)
    turn, shift = each(lambda a: a[None], (axes.turn, axes.shift))
    moved = shift + cross(turn, arm)
    signs = like(_signs(tree, bodies), moved.x)
    return jnp.stack([signs * moved.x, signs * moved.y, signs * moved.z], axis=1)


def _turned(tree: Tree, kinematics: Kinematics, bodies: np.ndarray) -> jax.Array:
    """Return the Jacobians (n, 3, nv) of the angular velocities of the second bodies relative to the first."""
    signs = like(_signs(tree, bodies), kinematics.axes.turn.x[None])
    return jnp.stack([signs * a[None] for a in jax.tree.leaves(kinematics.axes.turn)], axis=1)


def _points_held(
    constraints: Constraints, tree: Tree, kinematics: Kinematics, position: jax.Array
) -> list[tuple[jax.Array, jax.Array]]:
    """Return Jacobians and errors of equalities that hold points of two bodies together, and their orientations."""
    if not len(constraints.bodies):
        return []
    first, second = constraints.bodies.T
    a = _placed(kinematics, first, constraints.anchors[:, 0], position)
    b = _placed(kinematics, second, constraints.anchors[:, 1], position)
    # At each body's own point, which differ by the error.
    onto_world = np.full_like(first, -1)
    moved = _relative(tree, kinematics, np.stack([onto_world, second], 1), b) - _relative(
        tree, kinematics, np.stack([onto_world, first], 1), a
    )
    apart = b - a
    held = [(_flat(moved), _flat(jnp.stack([apart.x, apart.y, apart.z], axis=1)))]
    if len(constraints.turned):
        pairs = constraints.bodies[constraints.turned]
        (_, base), (_, carried) = _in_world(kinematics, pairs[:, 0]), _in_world(kinematics, pairs[:, 1])
        inside = constraints.relative
        wanted = Quaternion(like(inside[:, 0], position), vectors_like(inside[:, 1:], position))
        off = quaternion.multiply(carried, quaternion.conjugate(quaternion.multiply(base, wanted)))
        sign = jnp.where(off.w < 0, -2, 2)
        held.append(
            (
                _flat(_turned(tree, kinematics, pairs)),
                _flat(jnp.stack([sign * off.v.x, sign * off.v.y, sign * off.v.z], axis=1)),
            )
        )
    return held


def _joints_held(constraints: Constraints, tree: Tree, position: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    """Return Jacobians and errors of equalities between the coordinates of two joints."""
    if not len(constraints.gears):
        return []
    has_second = constraints.gears[:, 1] >= 0
    value = position[constraints.gear_coordinates[:, 0]] - like(constraints.gear_references[:, 0], position[:1])
    other = position[constraints.gear_coordinates[:, 1]] - like(constraints.gear_references[:, 1], position[:1])
    other = like(has_second, position) * other
    coefficients = [like(column, position) for column in constraints.polynomial.T]
    wanted, slope = coefficients[4], 0 * coefficients[4]
    for coefficient in reversed(coefficients[:4]):
        slope = slope * other + wanted
        wanted = wanted * other + coefficient
    one = np.eye(len(tree.link))
    first, second = one[constraints.gears[:, 0]], one[constraints.gears[:, 1]] * has_second[:, None]
    scale = (slope + 0 * other)[:, None]
    return [(like(first, scale) - scale * like(second, scale), value - wanted)]
