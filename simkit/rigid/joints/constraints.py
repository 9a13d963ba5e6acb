"""Constraint equations of joints: violations, Jacobian, impulses, mobility and its inverse, and checks before a run."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_number
from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import Quaternion, axes_of, conjugate, multiply, rotate
from simkit.rigid.algebra.tensor import rotated
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm, normalize
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity
from simkit.rigid.joints.joint import HOLDS, Joint


def generalized_inverse(matrix: jax.Array) -> jax.Array:
    """Return a symmetric G with ``A G A = A``, the inverse of A if it has one.

    The sweep operator (Goodnight, American Statistician 33, 149 (1979)): Gauss-Jordan elimination on the diagonal. It
    takes the largest remaining pivot relative to the diagonal of A, and drops redundant rows, whose pivots are
    round-off. ``G b`` then solves ``A x = b`` whenever a solution exists, with zeros for the dropped rows. In another
    order of the pivots a nearly redundant row, at some placement of a closed loop, is kept and magnifies round-off.

    Args:
        matrix: A, symmetric and positive semidefinite, (n, n, ...); further axes count matrices.
    """
    count, dtype = matrix.shape[0], matrix.dtype
    trailing = (1,) * (matrix.ndim - 2)
    places = jnp.arange(count).reshape(count, *trailing)
    on_diagonal = places[:, None] == places
    diagonal = jnp.sum(jnp.where(on_diagonal, matrix, 0), axis=1)
    # Relative pivot that counts as zero: that of a redundant row is round-off, amplified by ill conditioning.
    least = jnp.finfo(dtype).eps ** (2 / 3)

    def sweep(_: int, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        swept, left = carry
        ratio = jnp.where(left, jnp.sum(jnp.where(on_diagonal, swept, 0), axis=1) / diagonal, -jnp.inf)
        chosen = places == jnp.argmax(ratio, axis=0)
        row = jnp.sum(jnp.where(chosen[:, None], swept, 0), axis=0)
        independent = jnp.max(ratio, axis=0) > least
        pivot = jnp.where(independent, jnp.sum(jnp.where(chosen, row, 0), axis=0), 1)
        row = jnp.where(chosen, -1, row)
        rest = jnp.where(chosen[:, None] | chosen[None, :], 0, swept)
        return rest - jnp.where(independent, row / pivot, 0)[:, None] * row[None, :], left & ~chosen

    left = jnp.ones(diagonal.shape, bool)
    return -jax.lax.fori_loop(0, count, sweep, (matrix, left))[0]


def times_vector(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Return ``A b``; further axes of both arrays count matrices and vectors.

    Args:
        matrix: A, (n, m, ...).
        vector: b, (m, ...).
    """
    return jnp.sum(matrix * vector[None], axis=1)


type Joints = Sequence[Joint]


@pytree
class Placement:
    """Positions and orientations of joints in the world frame; the first axis of every array counts the joints.

    Attributes:
        separation: d, from the second anchor to the first, in m.
        lever: r, from the center of the first body to its anchor, in m.
        base_lever: s, from the center of the second body (or the origin of the world) to the *first* anchor, in m.
        axes: axes e_k of the joint frame in the second body.
        base_frame: orientation of the joint frame in the second body.
        relative: q, orientation of the joint frame in the first body relative to that in the second.
    """

    separation: Vector
    lever: Vector
    base_lever: Vector
    axes: tuple[Vector, Vector, Vector]
    base_frame: Quaternion
    relative: Quaternion


@pytree
class Jacobian:
    """Derivatives of the constraint rows with respect to the velocities of the bodies.

    Attributes:
        linear: with respect to the velocities, (rows, bodies, ...).
        angular: with respect to the angular velocities, (rows, bodies, ...).
    """

    linear: Vector
    angular: Vector


def rows_of(joints: Joints) -> list[tuple[int, np.ndarray]]:
    """Return the constraint types (see `HOLDS`), each with the indices of its joints; rows are in this order."""
    held = [(row, [index for index, joint in enumerate(joints) if row in HOLDS[joint.kind]]) for row in range(7)]
    return [(row, np.array(indices)) for row, indices in held if indices]


def row_count(joints: Joints) -> int:
    """Return the number of constraint rows of joints."""
    return sum(len(HOLDS[joint.kind]) for joint in joints)


def place(joints: Joints, motion: Motion) -> Placement:
    """Return the positions and orientations of joints.

    Args:
        joints: of the scene.
        motion: state of the bodies that they connect.
    """
    world = motion.position.x.shape[0]
    first = [joint.first for joint in joints]
    second = [world if joint.second is None else joint.second for joint in joints]
    position, orientation = motion.position, motion.orientation
    if world in second:
        # The world is appended as a body at the origin.
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
    """Return the violations g of the constraints: in m, or in rad (exact near zero) for rotations.

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
    for row, indices in rows_of(joints):
        if row < 3:
            values.append(dot(_take(placed.axes[row], indices), _take(placed.separation, indices)))
        elif row < 6:
            values.append(2 * _take(turns[row - 3], indices))
        else:
            apart = norm(_take(placed.separation, indices))
            values.append(apart - jnp.stack([jnp.broadcast_to(joints[j].length, apart.shape[1:]) for j in indices]))
    return jnp.concatenate(computed_once(values))


def jacobian(joints: Joints, placed: Placement, bodies: int) -> Jacobian:
    """Return the exact Jacobian of the constraints.

    Along a direction n the row of a first body is ``(n, r x n)`` and that of a second ``(-n, -s x n)``: equal and
    opposite forces that both act at the first anchor, so momentum and angular momentum are conserved. A relative
    rotation by the angular velocity w changes ``2 q`` at the rate of the vector part of ``w' q``, w' = w in the joint
    frame.

    Args:
        joints: of the scene.
        placed: placement of the joints.
        bodies: number of bodies.
    """
    linear, angular, base_angular = [], [], []
    w, v = placed.relative.w, placed.relative.v
    zero, one = jnp.zeros_like(w), jnp.ones_like(w)
    units = (Vector(one, zero, zero), Vector(zero, one, zero), Vector(zero, zero, one))
    for row, indices in rows_of(joints):
        if 3 <= row < 6:
            turned = rotate(placed.base_frame, w * units[row - 3] + cross(v, units[row - 3]))
            moment = _take(turned, indices)
            linear.append(each(jnp.zeros_like, moment))
            angular.append(moment)
            base_angular.append(-moment)
        else:
            apart = _take(placed.separation, indices)
            direction = _take(placed.axes[row], indices) if row < 3 else normalize(apart, _take(units[0], indices))
            linear.append(direction)
            angular.append(cross(_take(placed.lever, indices), direction))
            base_angular.append(-cross(_take(placed.base_lever, indices), direction))
    # Behind a barrier: a loop over the concatenation computes the parts again for every element, and its derivative
    # takes minutes to compile.
    parts = computed_once((linear, angular, base_angular))
    direction, moment, base_moment = (each(lambda *values: jnp.concatenate(values), *part) for part in parts)
    owners = [joints[index] for _, indices in rows_of(joints) for index in indices]
    firsts = np.array([[owner.first == body for body in range(bodies)] for owner in owners], float)
    seconds = np.array([[owner.second == body for body in range(bodies)] for owner in owners], float)

    def spread(values: Vector, incidence: np.ndarray) -> Vector:
        factor = jnp.asarray(incidence, w.dtype).reshape(*incidence.shape, *(1,) * (w.ndim - 1))
        return each(lambda component: component[:, None] * factor, values)

    return Jacobian(
        linear=spread(direction, firsts - seconds),
        angular=spread(moment, firsts) + spread(base_moment, seconds),
    )


def spread_impulse(rows: Jacobian, impulse: jax.Array) -> tuple[Vector, Vector]:
    """Return the impulses and angular impulses on every body, ``J^T lambda``.

    Args:
        rows: J.
        impulse: lambda of every row, in N s or N m s, (rows, ...).
    """
    push, turn = (
        each(lambda part: jnp.sum(part * impulse[:, None], axis=0), half) for half in (rows.linear, rows.angular)
    )
    return push, turn


def rates_of(rows: Jacobian, motion: Motion, bodies: Bodies) -> jax.Array:
    """Return the rates of the constraints, ``J v``, in m/s or rad/s, (rows, ...)."""
    spin = angular_velocity(motion, bodies)
    return jnp.sum(dot(rows.linear, motion.velocity) + dot(rows.angular, spin), axis=1)


def mobility(rows: Jacobian, motion: Motion, bodies: Bodies) -> jax.Array:
    """Return the matrix ``J M^-1 J^T``, the rates of all rows per unit impulse in each row, (rows, rows, ...).

    Args:
        rows: J at the present positions.
        motion: state of the bodies, whose orientations determine the inertia M.
        bodies: constants of the bodies.
    """
    moments = bodies.inertia
    inverse = rotated(Vector(1 / moments.x, 1 / moments.y, 1 / moments.z), motion.orientation)

    def pairs(one: Vector, other: Vector) -> jax.Array:
        left, right = each(lambda part: part[:, None], one), each(lambda part: part[None, :], other)
        return jnp.sum(dot(left, right), axis=2)

    linear, angular = rows.linear / bodies.mass, inverse @ rows.angular
    if any(bodies.held):
        free = (~np.array(bodies.held)).reshape(-1, *(1,) * (linear.x.ndim - 2))
        linear, angular = each(lambda values: jnp.where(free, values, 0), (linear, angular))
    return pairs(rows.linear, linear) + pairs(rows.angular, angular)


def _take[T](tree: T, indices: Sequence[int] | np.ndarray) -> T:
    """Return the rows at static indices, by slices, whose derivatives need no scatter."""
    indices = [int(index) for index in indices]

    def gathered(values: jax.Array) -> jax.Array:
        if indices == list(range(values.shape[0])):
            return values
        return jnp.concatenate([values[index : index + 1] for index in indices])

    return each(gathered, tree)


def name_of(index: int, joints: Joints) -> str:
    """Return the name of a joint in error messages."""
    joint = joints[index]
    other = "the world" if joint.second is None else f"body {joint.second}"
    return f"joint {index} ({joint.kind} of body {joint.first} with {other})"


def check_indices(joints: Joints, count: int) -> None:
    """Refuse joints of bodies that do not exist.

    Args:
        joints: of the scene.
        count: number of bodies.

    Raises:
        UserError: for an index outside 0 to count - 1.
    """
    for index, joint in enumerate(joints):
        for body in (joint.first, joint.second):
            if body is not None:
                check_integer(f"{name_of(index, joints)}: body", body, 0, count - 1)


def check_joints(joints: Joints, motion: Motion, bodies: Bodies) -> None:
    """Refuse joints that are open at the start, or whose velocities would open them.

    Args:
        joints: of the scene.
        motion: state at the start.
        bodies: of the scene.

    Raises:
        UserError: for an index that no body has, a length that is not positive, or anchors, orientations or velocities
            that violate a joint by more than a tolerance for round-off.
    """
    count = motion.position.x.shape[0]
    check_indices(joints, count)
    if not joints:
        return
    for index, joint in enumerate(joints):
        if all(body is None or bodies.held[body] for body in (joint.first, joint.second)) and HOLDS[joint.kind]:
            raise UserError(f"{name_of(index, joints)} holds nothing that moves: its bodies are held; leave it out")
        if joint.kind == "distance":
            check_number(f"{name_of(index, joints)}: length", joint.length)
    placed = place(joints, motion)
    rows = jacobian(joints, placed, count)
    violation, rate = np.abs(violations(joints, placed)), np.abs(rates_of(rows, motion, bodies))
    size = 1 + float(np.max(norm(placed.lever) + norm(placed.base_lever)))
    speed = float(np.max(norm(motion.velocity))) + size * float(np.max(norm(angular_velocity(motion, bodies))))
    tolerance = np.finfo(violation.dtype).eps ** (2 / 3)
    remedy = "place the bodies so that it is closed, for instance by simkit.rigid.joints.rattle.assemble"
    start = 0
    for row, indices in rows_of(joints):
        unit, what = ("rad", "tilted") if 3 <= row < 6 else ("m", "open")
        for number, index in enumerate(indices, start=start):
            if not violation[number] <= tolerance * size:
                raise UserError(
                    f"{name_of(index, joints)} is {what} by {violation[number]:g} {unit} at the start, "
                    f"allowed are {tolerance * size:.1g}; {remedy}"
                )
            if not rate[number] <= tolerance * (1 + speed):
                raise UserError(
                    f"{name_of(index, joints)} starts to open at {rate[number]:g} {unit}/s, "
                    f"allowed are {tolerance * (1 + speed):.1g}; give its bodies velocities that keep it closed"
                )
        start += len(indices)
