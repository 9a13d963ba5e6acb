"""Kinematic trees: which body hangs on which by which joint, and the coordinates of those joints.

Coordinates and velocities are those of MuJoCo, in its order: a hinge has an angle in rad and a slider a length in m; a
ball joint a unit quaternion and the angular velocity in the frame of its body; a free joint position in m and
quaternion, with the velocity in the world frame and the angular velocity in that of the body.
"""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.quaternion import Quaternion, exponential
from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.models.source import compiled, read_spec

type Kind = Literal["free", "ball", "slide", "hinge"]
KINDS: tuple[Kind, ...] = ("free", "ball", "slide", "hinge")


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """A kinematic tree of L links with nq coordinates and nv velocities.

    A body with several joints is a chain of links, all but the last without mass; a link's frame has its origin at
    the anchor of its joint. Index L stands for the world.

    Attributes:
        body: index of the body whose last link this is, else -1; the first body that is not the world is 0, (L,).
        parent: link that this one hangs on, (L,).
        offset: of the anchor in the frame of the parent in m, (L, 3).
        orientation: of the link in its parent at the reference coordinates, (L, 4).
        anchor: of the joint in the frame of the body in m, (L, 3).
        kind: of the joint of each degree of freedom's link, by index into ``KINDS``; -1 for a link that is fixed, (L,).
        coordinate: first coordinate of each joint, (L,).
        velocity: first velocity of each joint, (L,).
        reference: coordinate at which a joint is not displaced, (L,).
        axis: of each degree of freedom in the frame of its link, (nv, 3).
        link: of each degree of freedom, (nv,).
        turns: whether a degree of freedom is a rotation, (nv,).
        attached: whether its axis moves with the link; that of a free joint's displacement does not, (nv,).
        quaternions: first entry of each quaternion among the coordinates.
        names: of the joints, "" for a link that is fixed.

    Example:
        >>> arm = '''<mujoco> <worldbody> <body> <joint name="shoulder"/> <geom size="0.1"/>
        ...   <body pos="1 0 0"> <joint name="elbow"/> <geom size="0.1"/> </body> </body> </worldbody> </mujoco>'''
        >>> tree = rigid.articulated.kinematic_tree(arm)
        >>> isinstance(tree, rigid.articulated.Tree), tree.names, tree.parent
        (True, ('shoulder', 'elbow'), array([2, 0]))
    """

    body: np.ndarray
    parent: np.ndarray
    offset: np.ndarray
    orientation: np.ndarray
    anchor: np.ndarray
    kind: np.ndarray
    coordinate: np.ndarray
    velocity: np.ndarray
    reference: np.ndarray
    axis: np.ndarray
    link: np.ndarray
    turns: np.ndarray
    attached: np.ndarray
    quaternions: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def links_of_bodies(self) -> np.ndarray:
        """Last link of each body, (B,)."""
        links = np.flatnonzero(self.body >= 0)
        return links[np.argsort(self.body[links])]

    @property
    def carries(self) -> np.ndarray:
        """Whether link i is link j or an ancestor of it, (L, L)."""
        links = len(self.parent)
        carries = np.eye(links, dtype=bool)
        for link, parent in enumerate(self.parent):
            if parent < links:
                carries[:, link] |= carries[:, parent]
        return carries

    @property
    def roots(self) -> np.ndarray:
        """First link of the tree of each link, (L,)."""
        return np.argmax(self.carries, axis=0)


def kinematic_tree(model: Any) -> Tree:
    """Return the kinematic tree of a model.

    Args:
        model: a `mujoco.MjModel`; or path or text of MJCF or URDF, as for `simkit.rigid.mjcf`.

    Raises:
        UserError: if the model is missing or malformed.

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree = rigid.articulated.kinematic_tree(swing)
        >>> tree.parent, tree.axis[0]  # it hangs on the world, which has the index 1
        (array([1]), array([0., 1., 0.]))
    """
    model = model_of(model)
    rows: list[tuple[Any, ...]] = []
    last: dict[int, int | None] = {0: None}  # the last link of each body
    for body in range(1, model.nbody):
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        below, place, turned = last[int(model.body_parentid[body])], model.body_pos[body], model.body_quat[body]
        for index in range(count) if count else (None,):
            joint = None if index is None else first + index
            kind = -1 if joint is None else int(model.jnt_type[joint])
            anchor = np.zeros(3) if joint is None or kind == 0 else model.jnt_pos[joint]
            if kind == 0:
                place, turned = np.zeros(3), np.array([1.0, 0, 0, 0])
            offset = place + turned_by(turned, anchor) - (np.zeros(3) if below is None else rows[below][4])
            is_last = index is None or index == count - 1
            rows.append((body - 1 if is_last else -1, below, offset, turned, anchor, kind, joint))
            # The next joint of the body starts from its frame at the reference.
            below, place, turned = len(rows) - 1, np.zeros(3), np.array([1.0, 0, 0, 0])
        last[body] = len(rows) - 1
    links = len(rows)
    owner, parent, offset, turned, anchor, kind, joint = zip(*rows, strict=True)
    moving = [-1 if each is None else each for each in joint]

    def of_joints(values: np.ndarray, fixed: int) -> np.ndarray:
        return np.array([fixed if each < 0 else values[each] for each in moving])

    coordinate, velocity = of_joints(model.jnt_qposadr, 0), of_joints(model.jnt_dofadr, 0)
    scalar = np.array(kind) >= KINDS.index("slide")
    link_of_joint = {each: link for link, each in enumerate(moving) if each >= 0}
    link = np.array([link_of_joint[int(each)] for each in model.dof_jntid], dtype=int)
    kinds = model.jnt_type[model.dof_jntid]
    place_in_joint = np.arange(model.nv) - model.jnt_dofadr[model.dof_jntid]
    shifts = (kinds == KINDS.index("free")) & (place_in_joint < 3)
    has_own_axis = kinds >= KINDS.index("slide")
    axis = np.where(has_own_axis[:, None], model.jnt_axis[model.dof_jntid], np.eye(3)[place_in_joint % 3])
    return Tree(
        body=np.array(owner),
        parent=np.array([links if each is None else each for each in parent]),
        offset=np.array(offset),
        orientation=np.array(turned),
        anchor=np.array(anchor),
        kind=np.array(kind),
        coordinate=coordinate,
        velocity=velocity,
        reference=np.where(scalar, model.qpos0[coordinate], 0.0),
        axis=axis,
        link=link,
        turns=(kinds == KINDS.index("hinge")) | (kinds == KINDS.index("ball")) | (~shifts & (kinds == 0)),
        attached=~shifts,
        quaternions=tuple(
            int(first + 3 * (each == 0))
            for each, first in zip(model.jnt_type, model.jnt_qposadr, strict=True)
            if each < 2
        ),
        names=tuple("" if each < 0 else model.joint(each).name for each in moving),
    )


def model_of(model: Any) -> Any:
    """Return the `mujoco.MjModel` of a model, or of its path or text."""
    return model if hasattr(model, "jnt_type") else compiled(read_spec(model))


def turned_by(turn: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return a vector turned by a quaternion.

    Args:
        turn: unit quaternion, (4,).
        a: vector, (3,).
    """
    w, v = turn[0], turn[1:]
    return a + 2 * w * np.cross(v, a) + 2 * np.cross(v, np.cross(v, a))


def displacements(tree: Tree, position: jax.Array) -> tuple[Vector, Quaternion]:
    """Return by how much each joint moves its link, in the frame of the link: shift in m and turn, L of each.

    Args:
        tree: the kinematic tree.
        position: coordinates, (nq, ...).
    """
    hinges, slides = tree.kind == KINDS.index("hinge"), tree.kind == KINDS.index("slide")
    value = position[tree.coordinate] - like(tree.reference, position)
    # The axis of a joint of one degree of freedom; one of other joints is multiplied by zero.
    axes = np.where((hinges | slides)[:, None], tree.axis[np.where(tree.kind >= 0, tree.velocity, 0)], 0.0)
    axis = vectors_like(axes, position)
    shift = like(slides, position) * value * axis
    turn = exponential(like(hinges, position) * value * axis)
    free, several = tree.kind == KINDS.index("free"), (tree.kind >= 0) & (tree.kind <= KINDS.index("ball"))
    if several.any():
        first = np.where(several, tree.coordinate, 0)
        begin = np.where(several, first + 3 * free, tree.quaternions[0])
        entries = [position[begin + n] for n in range(4)]
        given = quaternion.unit(Quaternion(entries[0], Vector(*entries[1:])))
        is_given, is_free = like(several, position, bool), like(free, position, bool)
        turn = each(lambda a, b: jnp.where(is_given, b, a), turn, given)
        at = np.where(free, first, 0)
        placed = Vector(*(position[np.minimum(at + n, len(position) - 1)] for n in range(3)))
        shift = vector.select(is_free, placed, shift)
    return shift, turn


def integrate(tree: Tree, position: jax.Array, velocity: jax.Array, time: jax.Array) -> jax.Array:
    """Return the coordinates after a time of constant velocities: quaternions turn exactly.

    Args:
        tree: the kinematic tree.
        position: coordinates, (nq, ...).
        velocity: velocities, (nv, ...).
        time: in s, (...).

    Example:
        >>> swing = '''<mujoco> <worldbody> <body> <joint axis="0 1 0"/>
        ...   <geom size="0.1" pos="0 0 -1" mass="2"/> </body> </worldbody> </mujoco>'''
        >>> tree = rigid.articulated.kinematic_tree(swing)
        >>> rigid.articulated.integrate(tree, jnp.array([0.5]), jnp.array([2.0]), 0.1)
        Array([0.7], dtype=float32)
    """
    moved = time * velocity
    rate = np.zeros(len(position), int)
    for link, kind in enumerate(tree.kind):
        for n in range({0: 3, 1: 0}.get(int(kind), 1) if kind >= 0 else 0):
            rate[tree.coordinate[link] + n] = tree.velocity[link] + n
    result = position + moved[rate]
    if not tree.quaternions:
        return result
    begin = np.array(tree.quaternions)
    turning = np.array([int(tree.velocity[link] + 3 * (tree.kind[link] == 0)) for link in _with_quaternions(tree)])
    before = Quaternion(position[begin], Vector(*(position[begin + n] for n in (1, 2, 3))))
    turned = quaternion.multiply(before, exponential(Vector(*(moved[turning + n] for n in range(3)))))
    entries = jnp.concatenate(jax.tree.leaves(quaternion.unit(turned)))
    # Where each coordinate comes from: the moved ones, followed by the entries of the quaternions.
    source = np.arange(len(position))
    for index, first in enumerate(tree.quaternions):
        source[first : first + 4] = len(position) + index + len(begin) * np.arange(4)
    return jnp.concatenate([result, entries])[source]


def _with_quaternions(tree: Tree) -> list[int]:
    """Return the links on ball and free joints, in the order of the quaternions."""
    links = [link for link, kind in enumerate(tree.kind) if kind in (0, 1)]
    return sorted(links, key=lambda link: int(tree.coordinate[link]))


def like(values: np.ndarray, array: jax.Array, dtype: Any = None) -> jax.Array:
    """Return constants as an array with as many axes, and of the precision, of another.

    Args:
        values: of the leading axes of the array.
        array: with further axes, such as that of members.
        dtype: another type.
    """
    values = np.asarray(values)
    return jnp.asarray(values.reshape(values.shape + (1,) * (array.ndim - values.ndim)), dtype or array.dtype)


def vectors_like(values: np.ndarray, array: jax.Array) -> Vector:
    """Return constant vectors as `like` returns constants.

    Args:
        values: (n, 3).
        array: (n, ...).
    """
    return Vector(*(like(column, array) for column in values.T))
