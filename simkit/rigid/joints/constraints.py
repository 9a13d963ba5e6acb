"""Constraint equations of joints, for positions and velocities, and their impulses."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.pytree import pytree
from simkit.rigid.algebra.quaternion import Quaternion, axes_of, conjugate, multiply, rotate
from simkit.rigid.algebra.tensor import rotated
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm, normalize
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity
from simkit.rigid.joints.joint import HOLDS, Joint

type Joints = Sequence[Joint]


@pytree
class Placement:
    """Joints in space, one number each along the first axis.

    Attributes:
        separation: d, from the second anchor to the first, in m.
        lever: r, from the center of the first body to its anchor, in m.
        base_lever: s, from the center of the second body (or the origin of space) to the *first* anchor, in m.
        axes: of the joint's frame in the second body.
        base_frame: the same as a quaternion.
        relative: orientation of the joint's frame in the first body, seen from that in the second.
    """

    separation: Vector
    lever: Vector
    base_lever: Vector
    axes: tuple[Vector, Vector, Vector]
    base_frame: Quaternion
    relative: Quaternion


@pytree
class Jacobian:
    """Derivative of every row in the motion of every body; its transpose spreads impulses over the bodies.

    Attributes:
        linear: in the velocities, (rows, bodies, ...).
        angular: in the angular velocities, (rows, bodies, ...).
    """

    linear: Vector
    angular: Vector


def rows_of(joints: Joints) -> list[tuple[int, np.ndarray]]:
    """Return, for each thing that joints hold (see `HOLDS`), the indices of those that do; rows are in this order."""
    held = [(row, [place for place, joint in enumerate(joints) if row in HOLDS[joint.kind]]) for row in range(7)]
    return [(row, np.array(places)) for row, places in held if places]


def row_count(joints: Joints) -> int:
    """Return how many rows joints have."""
    return sum(len(HOLDS[joint.kind]) for joint in joints)


def place(joints: Joints, motion: Motion) -> Placement:
    """Return where joints are.

    Args:
        joints: of the scene.
        motion: of the bodies they connect.
    """
    space = motion.position.x.shape[0]
    first = [joint.first for joint in joints]
    second = [space if joint.second is None else joint.second for joint in joints]
    position, orientation = motion.position, motion.orientation
    if space in second:
        # Space is one more body, which stays where it is.
        position = each(lambda values: jnp.concatenate([values, jnp.zeros_like(values[:1])]), position)
        orientation = Quaternion(
            jnp.concatenate([orientation.w, jnp.ones_like(orientation.w[:1])]),
            each(lambda values: jnp.concatenate([values, jnp.zeros_like(values[:1])]), orientation.v),
        )
    shape = motion.position.x.shape[1:]

    def stack_joints[T](parts: list[T]) -> T:
        return each(lambda *values: jnp.stack([jnp.broadcast_to(value, shape) for value in values]), *parts)

    lever = rotate(_take(orientation, first), stack_joints([joint.anchor for joint in joints]))
    base_orientation, base_position = _take(orientation, second), _take(position, second)
    base_lever = _take(position, first) + lever - base_position
    frame = multiply(_take(orientation, first), stack_joints([joint.frame for joint in joints]))
    base_frame = multiply(base_orientation, stack_joints([joint.base_frame for joint in joints]))
    return Placement(
        separation=base_lever - rotate(base_orientation, stack_joints([joint.base for joint in joints])),
        lever=lever,
        base_lever=base_lever,
        axes=axes_of(base_frame),
        base_frame=base_frame,
        relative=multiply(conjugate(base_frame), frame),
    )


def violations(joints: Joints, placed: Placement) -> jax.Array:
    """Return what the joints want to be zero: in m along axes of the joint, or rotations in rad (exact near zero).

    With d the separation of the anchors, e_k the axes of the joint and q the relative orientation the rows are
    ``e_k . d``, ``2 q_k`` and ``|d| - length``.

    Args:
        joints: of the scene.
        placed: placement of the joints.

    Returns:
        (rows, ...).
    """
    turns = (placed.relative.v.x, placed.relative.v.y, placed.relative.v.z)
    values = []
    for row, places in rows_of(joints):
        if row < 3:
            values.append(dot(_take(placed.axes[row], places), _take(placed.separation, places)))
        elif row < 6:
            values.append(2 * _take(turns[row - 3], places))
        else:
            apart = norm(_take(placed.separation, places))
            values.append(apart - jnp.stack([jnp.broadcast_to(joints[j].length, apart.shape[1:]) for j in places]))
    return jnp.concatenate(computed_once(values))


def jacobian(joints: Joints, placed: Placement, bodies: int) -> Jacobian:
    """Return how the rows change with the velocities, exactly.

    Along a direction n the row of a first body is ``(n, r x n)`` and that of a second ``(-n, -s x n)``: equal and
    opposite forces that both act at the first anchor, so momentum and angular momentum stay what they are. A relative
    rotation by the angular velocity w changes ``2 q`` by the vector part of ``w' q``, w' = w in the joint's frame.

    Args:
        joints: of the scene.
        placed: placement of the joints.
        bodies: how many there are.
    """
    linear, angular, base_angular = [], [], []
    w, v = placed.relative.w, placed.relative.v
    zero, one = jnp.zeros_like(w), jnp.ones_like(w)
    units = (Vector(one, zero, zero), Vector(zero, one, zero), Vector(zero, zero, one))
    for row, places in rows_of(joints):
        if 3 <= row < 6:
            turned = rotate(placed.base_frame, w * units[row - 3] + cross(v, units[row - 3]))
            moment = _take(turned, places)
            linear.append(each(jnp.zeros_like, moment))
            angular.append(moment)
            base_angular.append(-moment)
        else:
            apart = _take(placed.separation, places)
            direction = _take(placed.axes[row], places) if row < 3 else normalize(apart, _take(units[0], places))
            linear.append(direction)
            angular.append(cross(_take(placed.lever, places), direction))
            base_angular.append(-cross(_take(placed.base_lever, places), direction))
    # In passes of their own: one loop over the concatenation would work out each part again for every place, and its
    # derivative would take minutes to compile.
    parts = computed_once((linear, angular, base_angular))
    stack_joints = [each(lambda *values: jnp.concatenate(values), *part) for part in parts]
    owners = [joints[place] for _, places in rows_of(joints) for place in places]
    firsts = np.array([[owner.first == body for body in range(bodies)] for owner in owners], float)
    seconds = np.array([[owner.second == body for body in range(bodies)] for owner in owners], float)

    def spread(values: Vector, to: np.ndarray) -> Vector:
        factor = jnp.asarray(to, w.dtype).reshape(*to.shape, *(1,) * (w.ndim - 1))
        return each(lambda component: component[:, None] * factor, values)

    return Jacobian(
        linear=spread(stack_joints[0], firsts - seconds),
        angular=spread(stack_joints[1], firsts) + spread(stack_joints[2], seconds),
    )


def spread_impulse(rows: Jacobian, impulse: jax.Array) -> tuple[Vector, Vector]:
    """Return the impulses and the angular ones that every body gets, ``J^T lambda``.

    Args:
        rows: J.
        impulse: lambda of every row, in N s or N m s, (rows, ...).
    """
    push, turn = (
        each(lambda part: jnp.sum(part * impulse[:, None], axis=0), half) for half in (rows.linear, rows.angular)
    )
    return push, turn


def rates_of(rows: Jacobian, motion: Motion, bodies: Bodies) -> jax.Array:
    """Return how fast the rows change in a motion, in m/s or rad/s, (rows, ...)."""
    spin = angular_velocity(motion, bodies)
    return jnp.sum(dot(rows.linear, motion.velocity) + dot(rows.angular, spin), axis=1)


def mobility(rows: Jacobian, motion: Motion, bodies: Bodies) -> jax.Array:
    """Return the rates that a unit impulse in each row gives to all rows, ``J M^-1 J^T``, (rows, rows, ...).

    Args:
        rows: J at the present positions.
        motion: with the orientations, on which the inertia M depends.
        bodies: constants of the bodies.
    """
    moments = bodies.inertia
    inverse = rotated(Vector(1 / moments.x, 1 / moments.y, 1 / moments.z), motion.orientation)

    def pairs(one: Vector, other: Vector) -> jax.Array:
        left, right = each(lambda part: part[:, None], one), each(lambda part: part[None, :], other)
        return jnp.sum(dot(left, right), axis=2)

    return pairs(rows.linear, rows.linear / bodies.mass) + pairs(rows.angular, inverse @ rows.angular)


def _take[T](tree: T, indices: Sequence[int] | np.ndarray) -> T:
    """Return the places of an array that a fixed list names, by slices, whose derivatives need no scatter."""
    indices = [int(index) for index in indices]

    def taken(values: jax.Array) -> jax.Array:
        if indices == list(range(values.shape[0])):
            return values
        return jnp.concatenate([values[index : index + 1] for index in indices])

    return each(taken, tree)
