"""Joints: the bodies that they connect, their anchors and axes, the motions that they constrain, and their measures."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.core import Tracer

from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import formula, several
from simkit.errors import UserError, known
from simkit.rigid.algebra.quaternion import Quaternion, conjugate, multiply, rotate, unit
from simkit.rigid.algebra.vector import Vector, cross, dot, each, normalize
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity

type Number = jax.Array | float
type Three = Sequence[Number]

# Constraints of each kind, in the joint frame, whose axis 2 is the axis of the joint: separation of the anchors along
# axes 0, 1, 2 (constraints 0, 1, 2), rotation about axes 0, 1, 2 (3, 4, 5), and distance of the anchors (6).
HOLDS: dict[str, tuple[int, ...]] = {
    "hinge": (0, 1, 2, 3, 4),
    "slider": (0, 1, 3, 4, 5),
    "ball": (0, 1, 2),
    "weld": (0, 1, 2, 3, 4, 5),
    "distance": (6,),
    "attachment": (),
}


@pytree
class Joint:
    """One joint between a first body and a second one, or the world.

    Attributes:
        anchor: anchor of the first body, in its body frame, in m.
        base: anchor of the second body in its body frame, or of the world in the world frame, in m.
        frame: rotation from the joint frame to the frame of the first body.
        base_frame: rotation from the joint frame to the frame of the second body, or to the world frame.
        length: length of a distance joint in m; zero for others.
        kind: one of `HOLDS`; static, so changing it compiles a new program.
        first: index of the first body.
        second: index of the second body; None for the world.

    Example:
        >>> pivot = rigid.hinge(0, anchor=(0.0, 0.0, 0.5), base=(0.0, 0.0, 1.0), axis=(0.0, 1.0, 0.0))
        >>> isinstance(pivot, rigid.Joint), pivot.kind, float(pivot.base.z)
        (True, 'hinge', 1.0)
    """

    anchor: Vector
    base: Vector
    frame: Quaternion
    base_frame: Quaternion
    length: jax.Array
    kind: str = dataclasses.field(metadata={"static": True})
    first: int = dataclasses.field(metadata={"static": True})
    second: int | None = dataclasses.field(metadata={"static": True})


AXIS = several(
    formula("a component", takes=("index",)), "axis in the frame of the second body, or of the world", (3,), [0, 0, 1]
)


def joint(
    kind: str,
    first: int,
    second: int | None = None,
    *,
    anchor: Three = (0.0, 0.0, 0.0),
    base: Three = (0.0, 0.0, 0.0),
    axis: Three = (0.0, 0.0, 1.0),
    rest: Quaternion | None = None,
    length: Number = 0.0,
) -> Joint:
    """Return a joint of a kind given by its name.

    Args:
        kind: "hinge", "slider", "ball", "weld", "distance", or "attachment", which constrains no motion.
        first: index of a body.
        second: index of another body; None for the world.
        anchor: position of the joint in the frame of the first body, in m.
        base: position of the joint in the frame of the second body, or in the world frame, in m.
        axis: axis of the joint in the frame of the second body, or in the world frame; any length but zero.
        rest: orientation of the first body relative to the second at angle zero; the identity by default.
        length: length of a distance joint in m.

    Raises:
        UserError: for an unknown kind, a joint of a body with itself, or an axis without a direction.
    """
    name = f"{kind} joint of body {first} with {'the world' if second is None else f'body {second}'}"
    known(kind, HOLDS, "kind")
    if first == second:
        raise UserError(f"{name} connects a body with itself; name two bodies, or None for the world")
    along = _vector(axis)
    components = (along.x, along.y, along.z)
    if not any(isinstance(component, Tracer) for component in components) and not all(jnp.ravel(dot(along, along)) > 0):
        raise UserError(f"{name}: axis = (0, 0, 0) has no direction; give it three numbers that are not all zero")
    base_frame = _frame_along(along)
    return Joint(
        anchor=_vector(anchor),
        base=_vector(base),
        frame=base_frame if rest is None else multiply(conjugate(rest), base_frame),
        base_frame=base_frame,
        length=jnp.asarray(length, dtype=float),
        kind=kind,
        first=first,
        second=second,
    )


@part(values={"axis": AXIS})
def hinge(
    first: int,
    second: int | None = None,
    *,
    anchor: Three,
    base: Three,
    axis: Three,
    rest: Quaternion | None = None,
) -> Joint:
    """Return a joint that allows rotation about its axis only; arguments as in `joint`.

    Example:
        >>> pivot = rigid.hinge(0, anchor=(0.0, 0.0, 0.5), base=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        >>> scene = rigid.Scene(
        ...     params={"time_step": 0.01},
        ...     bodies=rigid.capsule(1.0, 0.02, 1.0),
        ...     start=lambda params, bodies, key: rigid.motion_of(
        ...         bodies, (0.0, 0.0, -0.5), velocity=(-1.0, 0.0, 0.0), angular_velocity=(0.0, 2.0, 0.0)
        ...     ),
        ...     dynamics=rigid.Jointed(),
        ...     joints=(pivot,),
        ...     measures=lambda motion, bodies, time, params: {"angle": rigid.hinge_angle(motion, pivot)},
        ... )
        >>> print(f"{float(simkit.run(rigid.simulate(scene), steps=25)['angle'][-1]):.3f} rad = 2 rad/s for 0.25 s")
        0.500 rad = 2 rad/s for 0.25 s
    """
    return joint("hinge", first, second, anchor=anchor, base=base, axis=axis, rest=rest)


@part(values={"axis": AXIS})
def slider(
    first: int,
    second: int | None = None,
    *,
    anchor: Three,
    base: Three,
    axis: Three,
    rest: Quaternion | None = None,
) -> Joint:
    """Return a joint that allows displacement along its axis only; arguments as in `joint`.

    Example:
        >>> rail = rigid.slider(0, anchor=(0.0, 0.0, 0.0), base=(0.0, 0.0, 0.0), axis=(0.8, 0.0, 0.6))
        >>> scene = rigid.Scene(
        ...     params={"gravity": 10.0, "time_step": 0.01},
        ...     bodies=rigid.sphere(1.0, 0.1),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (0.0, 0.0, 0.0)),
        ...     dynamics=rigid.Jointed(),
        ...     joints=(rail,),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(scene), steps=100)
        >>> print(f"{float(run['position'][-1, 0, 2]):.3f} m = -g sin(slope)^2 t^2 / 2")
        -1.800 m = -g sin(slope)^2 t^2 / 2
    """
    return joint("slider", first, second, anchor=anchor, base=base, axis=axis, rest=rest)


@part()
def ball(first: int, second: int | None = None, *, anchor: Three, base: Three) -> Joint:
    """Return a joint that allows every rotation about one point; arguments as in `joint`.

    Example:
        >>> shoulder = rigid.ball(0, anchor=(0.0, 0.0, 0.5), base=(0.0, 0.0, 0.0))
        >>> scene = rigid.Scene(
        ...     params={"gravity": 10.0, "time_step": 0.01},
        ...     bodies=rigid.capsule(1.0, 0.02, 1.0),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (0.0, 0.0, -0.5)),
        ...     dynamics=rigid.Jointed(),
        ...     joints=(shoulder,),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(scene), steps=10)
        >>> print(f"hangs at rest: {float(run['position'][-1, 0, 2]):.3f} m")
        hangs at rest: -0.500 m
    """
    return joint("ball", first, second, anchor=anchor, base=base)


@part()
def weld(first: int, second: int | None = None, *, anchor: Three, base: Three, rest: Quaternion | None = None) -> Joint:
    """Return a joint that allows no relative motion; arguments as in `joint`.

    Example:
        >>> glue = rigid.weld(1, 0, anchor=(0.0, 0.0, -0.1), base=(0.0, 0.0, 0.1))
        >>> scene = rigid.Scene(
        ...     params={"gravity": 10.0, "time_step": 0.01},
        ...     bodies=rigid.gather([rigid.sphere(2.0, 0.1), rigid.sphere(1.0, 0.1)]),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, [[0.0, 0.0, 1.0], [0.0, 0.0, 1.2]]),
        ...     dynamics=rigid.Jointed(),
        ...     joints=(glue,),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(scene), steps=20)
        >>> print(f"{float(run['position'][-1, 1, 2] - run['position'][-1, 0, 2]):.3f} m apart while they fall")
        0.200 m apart while they fall
    """
    return joint("weld", first, second, anchor=anchor, base=base, rest=rest)


@part(
    values={
        "length": formula(
            "length of the rod; left out, the distance of the anchors at the start",
            None,
            unit="m",
            bounds=POSITIVE,
            takes=("index",),
        )
    }
)
def distance(first: int, second: int | None = None, *, anchor: Three, base: Three, length: Number) -> Joint:
    """Return a massless rod of a length in m with a ball joint at either end; arguments as in `joint`.

    Example:
        >>> rod = rigid.distance(0, anchor=(0.0, 0.0, 0.0), base=(0.0, 0.0, 0.0), length=1.0)
        >>> scene = rigid.Scene(
        ...     params={"gravity": 10.0, "time_step": 0.01},
        ...     bodies=rigid.sphere(1.0, 0.1),
        ...     start=lambda params, bodies, key: rigid.motion_of(bodies, (1.0, 0.0, 0.0)),
        ...     dynamics=rigid.Jointed(),
        ...     joints=(rod,),
        ...     loads=(rigid.gravity(),),
        ... )
        >>> run = simkit.run(rigid.simulate(scene), steps=30)
        >>> print(f"{float(np.linalg.norm(run['position'][-1, 0])):.3f} m from the pivot as it swings")
        1.000 m from the pivot as it swings
    """
    return joint("distance", first, second, anchor=anchor, base=base, length=length)


@part()
def attachment(
    first: int, second: int | None = None, *, anchor: Three = (0.0, 0.0, 0.0), base: Three = (0.0, 0.0, 0.0)
) -> Joint:
    """Return a pair of anchors for a spring or damper, which constrains no motion; arguments as in `joint`.

    Example:
        >>> ceiling = rigid.attachment(0, base=(0.0, 0.0, 2.0))
        >>> pull = rigid.spring(lambda params: ceiling, stiffness=8.0, length=1.0)
        >>> ball = rigid.repeat(rigid.sphere(1.0, 0.1), 1)
        >>> pull.wrench(rigid.motion_of(ball, (0.0, 0.0, 0.0)), ball, 0.0, {}).force.z.tolist()
        [8.0]
    """
    return joint("attachment", first, second, anchor=anchor, base=base)


def _vector(values: Three) -> Vector:
    x, y, z = (jnp.asarray(value, dtype=float) for value in values)
    return Vector(*jnp.broadcast_arrays(x, y, z))


def _frame_along(axis: Vector) -> Quaternion:
    """Return the shortest rotation from z to an axis n; for n_z < 0, half a turn about x, then the shortest from -z."""
    zero = jnp.zeros_like(axis.x)
    one = jnp.ones_like(axis.x)
    n = normalize(axis, Vector(zero, zero, one))
    up = n.z >= 0
    sign = jnp.where(up, one, -one)
    # The shortest rotation from z to sign * n, by the sum of the two, whose length is at least sqrt(2).
    q = unit(Quaternion(1 + sign * n.z, Vector(-sign * n.y, sign * n.x, zero)))
    flip = Quaternion(jnp.where(up, one, zero), Vector(jnp.where(up, zero, one), zero, zero))
    return multiply(q, flip)


def anchors(motion: Motion, joint: Joint) -> tuple[Vector, Vector]:
    """Return the positions of the anchors of the first and second body in the world frame, in m.

    Args:
        motion: state of all bodies.
        joint: a joint of any kind.
    """
    return _point(motion, joint.first, joint.anchor), _point(motion, joint.second, joint.base)


def anchor_velocities(motion: Motion, bodies: Bodies, joint: Joint) -> tuple[Vector, Vector]:
    """Return the velocities of the anchors of the first and second body in the world frame, in m/s.

    Args:
        motion: state of all bodies.
        bodies: constants of the bodies.
        joint: a joint of any kind.
    """
    spin = angular_velocity(motion, bodies)

    def moving(body: int | None, anchor: Vector) -> Vector:
        if body is None:
            return each(jnp.zeros_like, _point(motion, body, anchor))
        return motion.velocity[body] + cross(spin[body], rotate(motion.orientation[body], anchor))

    return moving(joint.first, joint.anchor), moving(joint.second, joint.base)


def axis_of(motion: Motion, joint: Joint) -> Vector:
    """Return the axis of a joint in the world frame, as fixed in its second body.

    Args:
        motion: state of all bodies.
        joint: a hinge or slider.
    """
    return _axis(_frame(motion, joint.second, joint.base_frame))


def hinge_angle(motion: Motion, joint: Joint, near: jax.Array | float = 0.0) -> jax.Array:
    """Return the angle in rad of the first body about the axis of a hinge, relative to the second.

    ``2 atan2(q_z, q_w)`` of the relative orientation q, which has a derivative everywhere. Of the angles that differ by
    whole turns the result is the one within half a turn of ``near``, and is continuous within that range.

    Args:
        motion: state of all bodies.
        joint: a hinge.
        near: reference angle in rad, such as the target of a servo or the rest angle of a spring.

    Example:
        >>> pivot = rigid.hinge(0, anchor=(0.0, 0.0, 0.0), base=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        >>> rod = rigid.repeat(rigid.capsule(1.0, 0.02, 1.0), 1)
        >>> turned = (np.cos(np.pi / 12), 0.0, np.sin(np.pi / 12), 0.0)
        >>> motion = rigid.motion_of(rod, (0.0, 0.0, 0.0), orientation=turned)
        >>> print(f"{np.degrees(rigid.hinge_angle(motion, pivot)):.1f} degrees")
        30.0 degrees
    """
    frame = _frame(motion, joint.first, joint.frame)
    relative = multiply(conjugate(_frame(motion, joint.second, joint.base_frame)), frame)
    angle = 2 * jnp.arctan2(relative.v.z, relative.w)
    return angle - 2 * jnp.pi * jax.lax.stop_gradient(jnp.round((angle - near) / (2 * jnp.pi)))


def hinge_rate(motion: Motion, bodies: Bodies, joint: Joint) -> jax.Array:
    """Return the angular velocity of the first body about the axis of a hinge, relative to the second, in rad/s.

    Args:
        motion: state of all bodies.
        bodies: constants of the bodies.
        joint: a hinge.
    """
    spin = angular_velocity(motion, bodies)
    relative = spin[joint.first] if joint.second is None else spin[joint.first] - spin[joint.second]
    return dot(axis_of(motion, joint), relative)


def slider_displacement(motion: Motion, joint: Joint) -> jax.Array:
    """Return the displacement of the first anchor from the second along the axis of a slider, in m.

    Args:
        motion: state of all bodies.
        joint: a slider.
    """
    first, second = anchors(motion, joint)
    return dot(axis_of(motion, joint), first - second)


def _point(motion: Motion, body: int | None, anchor: Vector) -> Vector:
    like = motion.position.x[0]
    if body is None:
        return each(lambda component: jnp.broadcast_to(component, like.shape), anchor)
    return motion.position[body] + rotate(motion.orientation[body], anchor)


def _frame(motion: Motion, body: int | None, frame: Quaternion) -> Quaternion:
    return frame if body is None else multiply(motion.orientation[body], frame)


def _axis(frame: Quaternion) -> Vector:
    w, x, y, z = frame.w, frame.v.x, frame.v.y, frame.v.z
    return Vector(2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
