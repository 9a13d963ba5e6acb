"""Loads in joints and between anchors: springs, dampers, motors and servos."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_integer
from simkit.core.parameter import NOT_NEGATIVE
from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.core.simulation import Params
from simkit.rigid.algebra.quaternion import rotate
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm, normalize, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.joints.joint import Joint, anchor_velocities, anchors, axis_of, hinge_angle, hinge_rate
from simkit.rigid.scene import Load, parameter_of_load

type Number = jax.Array | float
# The name of a parameter, a number, or a function of the parameters (of time and the parameters for motors and servos).
type Quantity = str | Number | Callable[[Params], Number]
type QuantityInTime = str | Number | Callable[[jax.Array, Params], Number]
type JointOf = Callable[[Params], Joint]
TIME = ("time",)
IN_JOINT = {"on": "which acts in a joint"}


@part(
    values={
        "stiffness": formula("force per stretch", unit="N/m", bounds=NOT_NEGATIVE),
        "length": formula("length at rest", 0.0, unit="m", bounds=NOT_NEGATIVE),
    },
    excludes=IN_JOINT,
)
def spring(joint: JointOf, stiffness: Quantity, length: Quantity = 0.0) -> Load:
    """Return a spring between the anchors of a joint, ``F = -k (|d| - l) d/|d|`` on the first body.

    Args:
        joint: ``params -> Joint``, for instance an `attachment`; only its bodies and anchors are used.
        stiffness: k in N/m.
        length: rest length l in m.

    Example:
        >>> ball = rigid.repeat(rigid.sphere(1.0, 0.1), 1)
        >>> pull = rigid.spring(lambda params: rigid.attachment(0), stiffness=8.0, length=1.0)
        >>> motion = rigid.motion_of(ball, (1.5, 0.0, 0.0))
        >>> pull.wrench(motion, ball, 0.0, {}).force.x.tolist(), pull.energy(motion, ball, {}).tolist()
        ([-4.0], 1.0)
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del time
        joint_now = joint(params)
        separation, direction = _line(motion, joint_now)
        force = _value(stiffness, params) * (_value(length, params) * direction - separation)
        return pull(motion, bodies, joint_now, force)

    def energy(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
        del bodies
        stretch = norm(_line(motion, joint(params))[0]) - _value(length, params)
        return _value(stiffness, params) * stretch**2 / 2

    return Load(wrench=wrench, energy=energy)


@part(values={"damping": formula("force per speed", unit="N s/m", bounds=NOT_NEGATIVE)}, excludes=IN_JOINT)
def damper(joint: JointOf, damping: Quantity) -> Load:
    """Return a damper along the line between the anchors of a joint, ``F = -c (v . n) n``, n = d/|d|.

    Args:
        joint: ``params -> Joint``; only its bodies and anchors are used.
        damping: c in N s/m.

    Example:
        >>> ball = rigid.repeat(rigid.sphere(1.0, 0.1), 1)
        >>> brake = rigid.damper(lambda params: rigid.attachment(0), damping=2.0)
        >>> motion = rigid.motion_of(ball, (1.0, 0.0, 0.0), velocity=(3.0, 4.0, 0.0))
        >>> brake.wrench(motion, ball, 0.0, {}).force.x.tolist()
        [-6.0]
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del time
        joint_now = joint(params)
        first, second = anchor_velocities(motion, bodies, joint_now)
        direction = _line(motion, joint_now)[1]
        return pull(motion, bodies, joint_now, -_value(damping, params) * dot(first - second, direction) * direction)

    return Load(wrench=wrench)


@part(
    values={
        "stiffness": formula("torque per angle", unit="N m/rad", bounds=NOT_NEGATIVE),
        "angle": formula("angle at rest", 0.0, unit="rad"),
    },
    excludes=IN_JOINT,
)
def torsion_spring(joint: JointOf, stiffness: Quantity, angle: Quantity = 0.0) -> Load:
    """Return a spring about a hinge, ``N = -k (theta - theta_0)`` on the first body, theta within pi of theta_0.

    Args:
        joint: ``params -> Joint``, a hinge.
        stiffness: k in N m/rad.
        angle: rest angle theta_0 in rad.

    Example:
        >>> origin = (0.0, 0.0, 0.0)
        >>> pivot = lambda params: rigid.hinge(0, anchor=origin, base=origin, axis=(0.0, 1.0, 0.0))
        >>> rod = rigid.repeat(rigid.capsule(1.0, 0.02, 1.0), 1)
        >>> motion = rigid.motion_of(rod, (0.0, 0.0, 0.0), orientation=(np.cos(0.25), 0.0, np.sin(0.25), 0.0))
        >>> coil = rigid.torsion_spring(pivot, stiffness=4.0)
        >>> print(f"{coil.wrench(motion, rod, 0.0, {}).torque.y[0]:.3f} N m = -4 N m/rad * 0.5 rad")
        -2.000 N m = -4 N m/rad * 0.5 rad
    """

    def turn(motion: Motion, params: Params) -> jax.Array:
        rest = _value(angle, params)
        return hinge_angle(motion, joint(params), rest) - rest

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del time
        return twist(motion, bodies, joint(params), -_value(stiffness, params) * turn(motion, params))

    def energy(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
        del bodies
        return _value(stiffness, params) * turn(motion, params) ** 2 / 2

    return Load(wrench=wrench, energy=energy)


@part(values={"damping": formula("torque per speed", unit="N m s/rad", bounds=NOT_NEGATIVE)}, excludes=IN_JOINT)
def torsion_damper(joint: JointOf, damping: Quantity) -> Load:
    """Return a damper about a hinge, ``N = -c theta'`` on the first body.

    Args:
        joint: ``params -> Joint``, a hinge.
        damping: c in N m s/rad.

    Example:
        >>> origin = (0.0, 0.0, 0.0)
        >>> pivot = lambda params: rigid.hinge(0, anchor=origin, base=origin, axis=(0.0, 1.0, 0.0))
        >>> rod = rigid.repeat(rigid.capsule(1.0, 0.02, 1.0), 1)
        >>> motion = rigid.motion_of(rod, (0.0, 0.0, 0.0), angular_velocity=(0.0, 3.0, 0.0))
        >>> brake = rigid.torsion_damper(pivot, damping=0.5)
        >>> print(f"{brake.wrench(motion, rod, 0.0, {}).torque.y[0]:.3f} N m")
        -1.500 N m
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del time
        joint_now = joint(params)
        return twist(motion, bodies, joint_now, -_value(damping, params) * hinge_rate(motion, bodies, joint_now))

    return Load(wrench=wrench)


@part(values={"torque": formula("torque on the first body about the axis", unit="N m", takes=TIME)})
def motor(joint: JointOf, torque: QuantityInTime) -> Load:
    """Return a motor in a hinge: a torque on the first body about the axis, and the opposite one on the second.

    Args:
        joint: ``params -> Joint``, a hinge.
        torque: in N m; a parameter's name, a number, or ``(time, params) -> torque``.

    Example:
        >>> origin = (0.0, 0.0, 0.0)
        >>> pivot = lambda params: rigid.hinge(0, anchor=origin, base=origin, axis=(0.0, 1.0, 0.0))
        >>> rod = rigid.repeat(rigid.capsule(1.0, 0.02, 1.0), 1)
        >>> drive = rigid.motor(pivot, torque=lambda time, params: params["torque"] * jnp.cos(time))
        >>> motion = rigid.motion_of(rod, (0.0, 0.0, 0.0))
        >>> print(f"{drive.wrench(motion, rod, 0.0, {'torque': 2.0}).torque.y[0]:.1f} N m")
        2.0 N m
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        return twist(motion, bodies, joint(params), _value_at(torque, time, params))

    return Load(wrench=wrench)


@part(
    values={
        "rate": formula("speed that it keeps", unit="rad/s", takes=TIME),
        "damping": formula("torque per difference of speeds", unit="N m s/rad", bounds=NOT_NEGATIVE),
    }
)
def speed_motor(joint: JointOf, rate: QuantityInTime, damping: Quantity) -> Load:
    """Return a motor that keeps a speed, ``N = c (omega - theta')`` on the first body of a hinge.

    Args:
        joint: ``params -> Joint``, a hinge.
        rate: omega in rad/s; a parameter's name, a number, or ``(time, params) -> rate``.
        damping: c in N m s/rad, torque per difference of speeds.

    Example:
        >>> origin = (0.0, 0.0, 0.0)
        >>> pivot = lambda params: rigid.hinge(0, anchor=origin, base=origin, axis=(0.0, 1.0, 0.0))
        >>> rod = rigid.repeat(rigid.capsule(1.0, 0.02, 1.0), 1)
        >>> drive = rigid.speed_motor(pivot, rate=3.0, damping=2.0)
        >>> motion = rigid.motion_of(rod, (0.0, 0.0, 0.0), angular_velocity=(0.0, 1.0, 0.0))
        >>> print(f"{drive.wrench(motion, rod, 0.0, {}).torque.y[0]:.1f} N m = 2 (3 - 1)")
        4.0 N m = 2 (3 - 1)
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        joint_now = joint(params)
        lag = _value_at(rate, time, params) - hinge_rate(motion, bodies, joint_now)
        return twist(motion, bodies, joint_now, _value(damping, params) * lag)

    return Load(wrench=wrench)


@part(
    values={
        "target": formula("angle that it turns to", unit="rad", takes=TIME),
        "stiffness": formula("torque per difference of angles", unit="N m/rad", bounds=NOT_NEGATIVE),
        "damping": formula("torque per speed", unit="N m s/rad", bounds=NOT_NEGATIVE),
    }
)
def servo(joint: JointOf, target: QuantityInTime, stiffness: Quantity, damping: Quantity) -> Load:
    """Return a PD actuator, ``N = k (theta* - theta) - c theta'`` on the first body of a hinge.

    The angle is taken within half a turn of the target, so the servo turns the shorter way.

    Args:
        joint: ``params -> Joint``, a hinge.
        target: theta* in rad; a parameter's name, a number, or ``(time, params) -> angle``.
        stiffness: k in N m/rad, the proportional gain.
        damping: c in N m s/rad, the derivative gain; ``2 sqrt(k I)`` is critical for a moment of inertia I.

    Example:
        >>> origin = (0.0, 0.0, 0.0)
        >>> pivot = lambda params: rigid.hinge(0, anchor=origin, base=origin, axis=(0.0, 1.0, 0.0))
        >>> rod = rigid.repeat(rigid.capsule(1.0, 0.02, 1.0), 1)
        >>> hold = rigid.servo(pivot, target="angle", stiffness=10.0, damping=1.0)
        >>> motion = rigid.motion_of(rod, (0.0, 0.0, 0.0))
        >>> print(f"{hold.wrench(motion, rod, 0.0, {'angle': 0.3}).torque.y[0]:.2f} N m")
        3.00 N m
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        joint_now, angle = joint(params), _value_at(target, time, params)
        error = angle - hinge_angle(motion, joint_now, angle)
        drag = _value(damping, params) * hinge_rate(motion, bodies, joint_now)
        return twist(motion, bodies, joint_now, _value(stiffness, params) * error - drag)

    return Load(wrench=wrench)


# Loads about the axis of a hinge.
IN_HINGES = (torsion_spring, torsion_damper, motor, speed_motor, servo)


def pull(motion: Motion, bodies: Bodies, joint: Joint, force: Vector) -> Wrench:
    """Return a force on the first body at its anchor, and the opposite one on the second at its own.

    Args:
        motion: state of all bodies.
        bodies: constants of the bodies.
        joint: a joint of any kind.
        force: in N, in the world frame.
    """
    total = Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass))
    for body, anchor, sign in ((joint.first, joint.anchor, 1), (joint.second, joint.base, -1)):
        if body is not None:
            lever = rotate(motion.orientation[body], anchor)
            total += Wrench(force=_on(body, sign * force, bodies), torque=_on(body, sign * cross(lever, force), bodies))
    return total


def twist(motion: Motion, bodies: Bodies, joint: Joint, torque: Number) -> Wrench:
    """Return a torque on the first body about the axis of a joint, and the opposite one on the second.

    Args:
        motion: state of all bodies.
        bodies: constants of the bodies.
        joint: a hinge.
        torque: in N m.
    """
    moment = torque * axis_of(motion, joint)
    total = _on(joint.first, moment, bodies)
    if joint.second is not None:
        total += _on(joint.second, -moment, bodies)
    return Wrench(force=zeros(bodies.mass), torque=total)


def _on(body: int, value: Vector, bodies: Bodies) -> Vector:
    """Return vectors of all bodies, zero but for one body.

    Raises:
        UserError: if there is no such body.
    """
    count = len(bodies.mass)
    check_integer("body of a load", body, 0, count - 1)

    def padded(component: jax.Array) -> jax.Array:
        zero = jnp.zeros_like(bodies.mass)
        entry = jnp.broadcast_to(component, zero.shape[1:])[None]
        return jnp.concatenate([zero[:body], entry, zero[body + 1 :]])

    return each(padded, value)


def _line(motion: Motion, joint: Joint) -> tuple[Vector, Vector]:
    """Return the separation of the anchors, and its direction; both are zero where the anchors coincide."""
    first, second = anchors(motion, joint)
    separation = first - second
    return separation, normalize(separation, each(jnp.zeros_like, separation))


def _value(quantity: Quantity, params: Params) -> Number:
    if isinstance(quantity, str):
        return parameter_of_load(quantity, params)
    return quantity(params) if callable(quantity) else quantity


def _value_at(quantity: QuantityInTime, time: jax.Array, params: Params) -> Number:
    if isinstance(quantity, str):
        return parameter_of_load(quantity, params)
    return quantity(time, params) if callable(quantity) else quantity
