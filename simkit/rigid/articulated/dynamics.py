"""Equations of motion in joint coordinates, ``M(q) dv/dt + c(q, v) = tau``.

Twists and wrenches are written in world axes about one point for each tree, the origin of its first link. Then neither
changes from link to link: the velocity of a link is the sum of its ancestors' joint velocities, and a composite inertia
or a total force the sum over its descendants. Both sums are products with constant matrices of zeros and ones, so that
no loop runs along the tree. After R. Featherstone, Rigid Body Dynamics Algorithms, 2008, doi:10.1007/978-1-4899-7560-7.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once_on_cpu, precise_product
from simkit.core.pytrees import pytree
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.quaternion import Quaternion, multiply, rotate
from simkit.rigid.algebra.tensor import SymmetricTensor, rotated
from simkit.rigid.algebra.vector import Vector, cross, dot, each
from simkit.rigid.articulated.linear import solve
from simkit.rigid.articulated.tree import Tree, displacements, like, model_of, vectors_like


@pytree
class Inertia:
    """Mass distribution of the B bodies, and of the rotors of the joints.

    Attributes:
        mass: in kg, (B,).
        moments: principal moments in kg m^2, B vectors.
        center: center of mass in the frame of the body in m, B vectors.
        orientation: of the principal axes in the frame of the body, B quaternions.
        armature: inertia of rotors, added to the diagonal of the mass matrix, (nv,).

    Example:
        >>> import dataclasses
        >>> ball = '''<mujoco> <worldbody> <body> <freejoint/> <geom size="0.1" mass="2"/> </body>
        ... </worldbody> </mujoco>'''
        >>> inertia = rigid.articulated.inertia_of(ball)
        >>> isinstance(inertia, rigid.articulated.Inertia)
        True
        >>> float(dataclasses.replace(inertia, mass=3 * inertia.mass).mass[0])
        6.0
    """

    mass: jax.Array
    moments: Vector
    center: Vector
    orientation: Quaternion
    armature: jax.Array


def inertia_of(model: Any) -> Inertia:
    """Return the mass distribution of a model.

    Args:
        model: a `mujoco.MjModel`; or path or text of MJCF or URDF, as for `simkit.rigid.mjcf`.

    Raises:
        UserError: if the model is missing or malformed.

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree, inertia = rigid.articulated.kinematic_tree(swing), rigid.articulated.inertia_of(swing)
        >>> inertia.mass, inertia.center.z
        (Array([2.], dtype=float32), Array([-1.], dtype=float32))
    """
    model = model_of(model)
    return Inertia(
        mass=jnp.asarray(model.body_mass[1:]),
        moments=vector.vector(jnp.asarray(model.body_inertia[1:])),
        center=vector.vector(jnp.asarray(model.body_ipos[1:])),
        orientation=quaternion.quaternion(jnp.asarray(model.body_iquat[1:])),
        armature=jnp.asarray(model.dof_armature),
    )


@pytree
class Twist:
    """Velocities, or joint axes: of rotation, and of the point of the body that is at the tree's point of reference."""

    turn: Vector
    shift: Vector


@pytree
class Kinematics:
    """Places of the links and axes of the joints at given coordinates.

    Attributes:
        position: of the body frames in m, B vectors.
        orientation: of the body frames, B quaternions.
        reference: of each link's tree, L vectors in m.
        axes: of the degrees of freedom, as nv twists of unit velocity.

    Example:
        >>> swing = '''<mujoco> <worldbody> <body pos="0 0 3"> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree = rigid.articulated.kinematic_tree(swing)
        >>> kinematics = rigid.articulated.forward_kinematics(tree, jnp.array([0.5]))
        >>> isinstance(kinematics, rigid.articulated.Kinematics), float(kinematics.position.z[0])
        (True, 3.0)
    """

    position: Vector
    orientation: Quaternion
    reference: Vector
    axes: Twist


def forward_kinematics(tree: Tree, position: jax.Array) -> Kinematics:
    """Return the places of all bodies and joint axes.

    Links are composed with their ancestors in ``ceil(log2(depth))`` rounds, each over all links at once.

    Args:
        tree: the kinematic tree.
        position: coordinates, (nq,).

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree = rigid.articulated.kinematic_tree(swing)
        >>> rigid.articulated.forward_kinematics(tree, jnp.array([0.5])).orientation.w  # cos(0.25)
        Array([0.96891241], dtype=float32)
    """
    links = len(tree.parent)

    shift, turn = computed_once_on_cpu(displacements(tree, position))
    fixed = Quaternion(like(tree.orientation[:, 0], position), vectors_like(tree.orientation[:, 1:], position))
    place, orientation = vectors_like(tree.offset, position) + rotate(fixed, shift), multiply(fixed, turn)
    one = jnp.ones_like(place.x[:1])
    world = vector.zeros(one), quaternion.identity(one)
    above = tree.parent
    while (above < links).any():
        upper = each(lambda a, end, above=above: jnp.concatenate([a, end])[above], (place, orientation), world)
        place, orientation = computed_once_on_cpu((upper[0] + rotate(upper[1], place), multiply(upper[1], orientation)))
        above = np.append(above, links)[above]

    own, axis = tree.link, vectors_like(tree.axis, position)
    axis = vector.select(like(tree.attached, position, bool), rotate(orientation[own], axis), axis)
    reference = place[tree.roots]
    none, turns = vector.zeros(axis.x), like(tree.turns, position, bool)
    arm = cross(place[own] - reference[own], axis)
    last = tree.links_of_bodies
    kinematics = Kinematics(
        position=place[last] - rotate(orientation[last], vectors_like(tree.anchor[last], position)),
        orientation=orientation[last],
        reference=reference,
        axes=Twist(turn=vector.select(turns, axis, none), shift=vector.select(turns, arm, axis)),
    )
    return computed_once_on_cpu(kinematics)


def mass_matrix(tree: Tree, inertia: Inertia, position: jax.Array) -> jax.Array:
    """Return the mass matrix M(q), (nv, nv), by composite rigid bodies.

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        position: coordinates, (nq,).

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree, inertia = rigid.articulated.kinematic_tree(swing), rigid.articulated.inertia_of(swing)
        >>> rigid.articulated.mass_matrix(tree, inertia, jnp.array([0.5]))  # m l^2 + 2/5 m r^2
        Array([[2.008]], dtype=float32)
    """
    kinematics = forward_kinematics(tree, position)
    return _mass_matrix(tree, inertia, kinematics)


def bias_forces(
    tree: Tree, inertia: Inertia, position: jax.Array, velocity: jax.Array, gravity: jax.Array
) -> jax.Array:
    """Return the joint forces c(q, v) that hold the velocities constant, against gravity and inertia, (nv,).

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        gravity: acceleration of free fall in m/s^2, (3,).

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree, inertia = rigid.articulated.kinematic_tree(swing), rigid.articulated.inertia_of(swing)
        >>> angle, gravity = jnp.array([0.5]), jnp.array([0.0, 0.0, -9.81])
        >>> rigid.articulated.bias_forces(tree, inertia, angle, 0 * angle, gravity)  # m g l sin(angle)
        Array([9.4064], dtype=float32)
    """
    return inverse_dynamics(tree, inertia, position, velocity, jnp.zeros_like(velocity), gravity)


def inverse_dynamics(
    tree: Tree,
    inertia: Inertia,
    position: jax.Array,
    velocity: jax.Array,
    acceleration: jax.Array,
    gravity: jax.Array,
) -> jax.Array:
    """Return the joint forces that produce an acceleration, ``tau = M(q) a + c(q, v)``, (nv,), by Newton and Euler.

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        acceleration: derivative of the velocities, (nv,).
        gravity: acceleration of free fall in m/s^2, (3,).

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree, inertia = rigid.articulated.kinematic_tree(swing), rigid.articulated.inertia_of(swing)
        >>> angle, gravity = jnp.array([0.0]), jnp.array([0.0, 0.0, -9.81])
        >>> rigid.articulated.inverse_dynamics(tree, inertia, angle, 0 * angle, jnp.array([3.0]), gravity)
        Array([6.024], dtype=float32)
    """
    return _forces(tree, inertia, forward_kinematics(tree, position), velocity, acceleration, gravity)


def acceleration(
    tree: Tree,
    inertia: Inertia,
    position: jax.Array,
    velocity: jax.Array,
    force: jax.Array,
    gravity: jax.Array,
    *,
    implicit: jax.Array | None = None,
) -> jax.Array:
    """Return the acceleration ``M(q)^-1 (tau - c(q, v))``, (nv,), by a Cholesky factor of the mass matrix.

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        force: tau, joint forces in N and torques in N m, (nv,).
        gravity: acceleration of free fall in m/s^2, (3,).
        implicit: symmetric matrix (nv, nv) added to M, such as time step times damping.

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree, inertia = rigid.articulated.kinematic_tree(swing), rigid.articulated.inertia_of(swing)
        >>> angle, gravity = jnp.array([0.0]), jnp.array([0.0, 0.0, -9.81])
        >>> rigid.articulated.acceleration(tree, inertia, angle, 0 * angle, jnp.array([6.024]), gravity)
        Array([3.], dtype=float32)
    """
    _, matrix, bias = equations(tree, inertia, position, velocity, gravity)
    return solve(matrix if implicit is None else matrix + implicit, computed_once_on_cpu(force - bias))


def equations(
    tree: Tree,
    inertia: Inertia,
    position: jax.Array,
    velocity: jax.Array,
    gravity: jax.Array,
    kinematics: Kinematics | None = None,
) -> tuple[Kinematics, jax.Array, jax.Array]:
    """Return kinematics, mass matrix (nv, nv) and bias forces (nv,), with shared terms computed once.

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        gravity: acceleration of free fall in m/s^2, (3,).
        kinematics: at the coordinates, if known.
    """
    kinematics = forward_kinematics(tree, position) if kinematics is None else kinematics
    matrix = computed_once_on_cpu(_mass_matrix(tree, inertia, kinematics))
    return kinematics, matrix, bias_at(tree, inertia, kinematics, velocity, gravity)


def bias_at(tree: Tree, inertia: Inertia, kinematics: Kinematics, velocity: jax.Array, gravity: jax.Array) -> jax.Array:
    """Return the bias forces at given kinematics, (nv,).

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        kinematics: places of its links.
        velocity: velocities, (nv,).
        gravity: acceleration of free fall in m/s^2, (3,).
    """
    return _forces(tree, inertia, kinematics, velocity, jnp.zeros_like(velocity), gravity)


def jacobian(tree: Tree, position: jax.Array, body: int, point: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the matrices J with which a point of a body moves, ``J v``, and the body turns: (3, nv) each.

    Args:
        tree: the kinematic tree.
        position: coordinates, (nq,).
        body: index of the body; the first one is 0.
        point: in the world frame in m, (3,).

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree = rigid.articulated.kinematic_tree(swing)
        >>> moved, turned = rigid.articulated.jacobian(tree, jnp.array([0.0]), 0, jnp.array([0.0, 0.0, -1.0]))
        >>> moved.ravel(), turned.ravel()
        (Array([-1.,  0.,  0.], dtype=float32), Array([0., 1., 0.], dtype=float32))
    """
    kinematics = forward_kinematics(tree, position)
    link = tree.links_of_bodies[body]
    moves = like(tree.carries[tree.link, link], position)
    axes = each(lambda a: moves * a, kinematics.axes)
    arm = vector.vector(point) - kinematics.reference[link]
    moved = axes.shift + cross(axes.turn, each(lambda a: jnp.broadcast_to(a, moves.shape), arm))
    return vector.stacked(moved).T, vector.stacked(axes.turn).T


def velocities(tree: Tree, kinematics: Kinematics, velocity: jax.Array, points: Vector) -> tuple[Vector, Vector]:
    """Return angular velocities of the bodies, and velocities of one point of each, B vectors in the world frame.

    Args:
        tree: the kinematic tree.
        kinematics: places of its links.
        velocity: velocities, (nv,).
        points: one of each body in the world frame in m, B vectors.
    """
    last = tree.links_of_bodies
    twist = _sums(tree.carries[tree.link][:, last].T, each(lambda a: velocity * a, kinematics.axes))
    return twist.turn, twist.shift + cross(twist.turn, points - kinematics.reference[last])


@pytree
class _Body:
    """Inertia about the point of reference in world axes: mass, first moment m c, and second moment."""

    mass: jax.Array
    first: Vector
    second: SymmetricTensor

    def momentum(self, twist: Twist) -> Twist:
        """Return linear (shift) and angular (turn) momentum."""
        return Twist(
            turn=self.second @ twist.turn + cross(self.first, twist.shift),
            shift=self.mass * twist.shift + cross(twist.turn, self.first),
        )


def _bodies(tree: Tree, inertia: Inertia, kinematics: Kinematics) -> _Body:
    """Return the inertia of each body about the point of reference of its tree, B of each."""
    frame = kinematics.orientation
    center = kinematics.position + rotate(frame, inertia.center)
    arm = center - kinematics.reference[tree.links_of_bodies]
    central = rotated(inertia.moments, multiply(frame, inertia.orientation))
    first, squares = inertia.mass * arm, inertia.mass * dot(arm, arm)
    around = SymmetricTensor(
        Vector(squares - first.x * arm.x, squares - first.y * arm.y, squares - first.z * arm.z),
        Vector(-first.y * arm.z, -first.z * arm.x, -first.x * arm.y),
    )
    return computed_once_on_cpu(_Body(mass=inertia.mass, first=first, second=each(jnp.add, central, around)))


def _mass_matrix(tree: Tree, inertia: Inertia, kinematics: Kinematics) -> jax.Array:
    # Bodies carried by the link of each degree of freedom.
    carried = tree.carries[tree.link][:, tree.links_of_bodies]
    axes, momentum = kinematics.axes, _sums(carried, _bodies(tree, inertia, kinematics)).momentum(kinematics.axes)
    # (i, j): momentum of all that j moves along i, right where i moves j.
    along, moved = each(lambda a: a[:, None], axes), each(lambda a: a[None], momentum)
    products = dot(along.turn, moved.turn) + dot(along.shift, moved.shift)
    moves = tree.carries[tree.link][:, tree.link]
    upper, lower = (like(which, products) for which in (moves, moves.T & ~moves))
    rotors = like(np.eye(len(moves)), products) * inertia.armature
    return upper * products + lower * jnp.swapaxes(products, 0, 1) + rotors


def _forces(
    tree: Tree, inertia: Inertia, kinematics: Kinematics, velocity: jax.Array, change: jax.Array, gravity: jax.Array
) -> jax.Array:
    axes, moves = kinematics.axes, tree.carries[tree.link]  # (nv, L)
    _, _, wrench = wrenches(tree, inertia, kinematics, velocity, change, gravity)
    borne = _sums(moves[:, tree.links_of_bodies], wrench)
    along = dot(axes.turn, borne.turn) + dot(axes.shift, borne.shift)
    return along + inertia.armature * change


def wrenches(
    tree: Tree, inertia: Inertia, kinematics: Kinematics, velocity: jax.Array, change: jax.Array, gravity: jax.Array
) -> tuple[Twist, Twist, Twist]:
    """Return twists of the bodies, their rates of change less gravity, and the wrenches that both take, B of each.

    All are about the point of reference of each body's tree; of a wrench, ``shift`` is the force.

    Args:
        tree: the kinematic tree.
        inertia: of its bodies.
        kinematics: places of its links.
        velocity: velocities, (nv,).
        change: derivative of the velocities, (nv,).
        gravity: acceleration of free fall in m/s^2, (3,).
    """
    axes = kinematics.axes
    moves = tree.carries[tree.link]  # (nv, L)
    last = tree.links_of_bodies
    twist = _sums(moves.T, each(lambda a: velocity * a, axes))
    own = each(lambda a: a[tree.link], twist)
    # Rate of change of an axis that moves with its link: [V x S] v.
    attached = like(tree.attached, velocity) * velocity
    rate = Twist(
        turn=attached * cross(own.turn, axes.turn) + change * axes.turn,
        shift=attached * (cross(own.turn, axes.shift) + cross(own.shift, axes.turn)) + change * axes.shift,
    )
    accelerated = _sums(moves[:, last].T, rate)
    # Weight as an acceleration of the frame against gravity.
    falling = Vector(*(accelerated.shift.x * 0 + gravity[i] for i in range(3)))
    accelerated = Twist(turn=accelerated.turn, shift=accelerated.shift - falling)
    moving = each(lambda a: a[last], twist)
    bodies = _bodies(tree, inertia, kinematics)
    momentum, inertial = bodies.momentum(moving), bodies.momentum(accelerated)
    wrench = Twist(
        turn=inertial.turn + cross(moving.turn, momentum.turn) + cross(moving.shift, momentum.shift),
        shift=inertial.shift + cross(moving.turn, momentum.shift),
    )
    return moving, accelerated, wrench


def carried(tree: Tree, wrench: Twist) -> Twist:
    """Return the wrenches that the parents of bodies put on them, from those on each body alone, B of each."""
    last = tree.links_of_bodies
    return _sums(tree.carries[last][:, last], wrench)


def _sums[T](which: np.ndarray, terms: T) -> T:
    """Return the sums of terms, arrays (n, ...), that each row of a constant matrix of booleans selects."""
    leaves, structure = jax.tree.flatten(terms)
    table = computed_once_on_cpu(jnp.stack(leaves, axis=1))
    sums = precise_product(jnp.asarray(which, table.dtype), table.reshape(len(table), -1))
    sums = sums.reshape(len(which), *table.shape[1:])
    return jax.tree.unflatten(structure, [sums[:, n] for n in range(len(leaves))])
