"""Integrators of free bodies, by name: velocity Verlet, semi-implicit Euler, and Runge-Kutta on rotations."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.errors import known
from simkit.rigid.algebra.quaternion import Quaternion, axes_of, turn
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, cross, dot, each, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity


def velocity_verlet(
    motion: Motion, bodies: Bodies, load: Callable[[Motion, jax.Array], Wrench], time: jax.Array, time_step: jax.Array
) -> Motion:
    """Return the state one step later: half a kick, free motion, half a kick; second order, symplectic, reversible.

    A force that depends on velocity makes it first order in that force.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        load: ``(motion, time) -> wrench``, the total load.
        time: in s.
        time_step: dt in s.
    """
    motion = move_freely(kick(motion, bodies, load(motion, time), time_step / 2), bodies, time_step)
    return kick(motion, bodies, load(motion, time + time_step), time_step / 2)


def semi_implicit_euler(
    motion: Motion, bodies: Bodies, load: Callable[[Motion, jax.Array], Wrench], time: jax.Array, time_step: jax.Array
) -> Motion:
    """Return the state one step later, ``p' = p + F dt``, ``x' = x + p'/m dt``, and a free rotation with the new L.

    A rotation at the angular velocity of the start of the step would not be symplectic: the energy of a body that
    spins about its stable axis grows, until it spins about another.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        load: ``(motion, time) -> wrench``, the total load.
        time: in s.
        time_step: dt in s.
    """
    return move_freely(kick(motion, bodies, load(motion, time), time_step), bodies, time_step)


def kick(motion: Motion, bodies: Bodies, wrench: Wrench, duration: jax.Array) -> Motion:
    """Return the motion after a wrench has acted for a time, ``v' = v + F t / m``, ``L' = L + N t``.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        wrench: constant forces F and torques N.
        duration: t in s.
    """
    return dataclasses.replace(
        motion,
        velocity=motion.velocity + wrench.force * (duration / bodies.mass),
        angular_momentum=motion.angular_momentum + wrench.torque * duration,
    )


def move_freely(motion: Motion, bodies: Bodies, time_step: jax.Array) -> Motion:
    """Return bodies after a time without forces and torques, with the rotation of `rotate_freely`.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        time_step: in s.
    """
    return Motion(
        position=motion.position + time_step * motion.velocity,
        orientation=rotate_freely(motion.orientation, motion.angular_momentum, bodies.inertia, time_step),
        velocity=motion.velocity,
        angular_momentum=motion.angular_momentum,
    )


def rotate_freely(
    orientation: Quaternion, angular_momentum: Vector, inertia: Vector, time_step: jax.Array
) -> Quaternion:
    """Return the orientation of bodies after torque-free rotation for a time.

    With l = R^T L in the body frame the energy is ``L^2 / 2 I_y + l_x^2 (1/I_x - 1/I_y) / 2 + l_z^2 (1/I_z - 1/I_y)
    / 2``. Each term alone turns the body at a constant rate about L or about its axis x or z. The first commutes with
    the others, so only these are split, symmetrically, x - z - x. This is exact for a sphere and for a body symmetric
    about x or z, and of second order otherwise; L is unchanged.

    Splittings of this kind: Dullweber, Leimkuhler and McLachlan, J. Chem. Phys. 107, 5840 (1997),
    doi:10.1063/1.474310.

    Args:
        orientation: R.
        angular_momentum: L in the world frame.
        inertia: principal moments I.
        time_step: in s.
    """
    half_x = time_step / 2 * (1 / inertia.x - 1 / inertia.y)
    whole_z = time_step * (1 / inertia.z - 1 / inertia.y)
    for axis, duration in ((0, half_x), (2, whole_z), (0, half_x)):
        half = duration / 2 * dot(axes_of(orientation)[axis], angular_momentum)
        orientation = staged(_about_own_axis(orientation, axis, *staged((jnp.cos(half), jnp.sin(half)))))
    return turn(orientation, angular_momentum * (time_step / inertia.y))


def _about_own_axis(q: Quaternion, axis: int, cosine: jax.Array, sine: jax.Array) -> Quaternion:
    """Return orientations turned about the body axis x (0) or z (2), given cosine and sine of half the angle."""
    w, (x, y, z) = q.w, (q.v.x, q.v.y, q.v.z)
    if axis == 0:
        other = Vector(w, z, -y)
        return Quaternion(cosine * w - sine * x, cosine * q.v + sine * other)
    return Quaternion(cosine * w - sine * z, cosine * q.v + sine * Vector(y, -x, w))


# Velocity, rate of rotation and wrench.
type Rates = tuple[Vector, Vector, Wrench]

# Per stage: its time as a fraction of the step, reached with the rates of the previous stage, and its weight.
STAGES = ((0, 1 / 6), (1 / 2, 1 / 3), (1 / 2, 1 / 3), (1, 1 / 6))


def runge_kutta(
    motion: Motion, bodies: Bodies, load: Callable[[Motion, jax.Array], Wrench], time: jax.Array, time_step: jax.Array
) -> Motion:
    """Return the state one step later; forces may depend on position, velocity and time.

    Rotations are integrated as the rotation vector u from the start of the step, ``q = exp(u/2) q0``, which obeys
    ``u' = omega - u x omega / 2 + u x (u x omega) / 12`` up to fifth order (Munthe-Kaas, BIT 38, 92 (1998),
    doi:10.1007/BF02510919), so that orientations stay rotations at every stage.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        load: ``(motion, time) -> wrench``, the total load.
        time: in s.
        time_step: dt in s.
    """
    zero = zeros(motion.velocity.x)
    zero_rates = (zero, zero, Wrench(force=zero, torque=zero))

    # A scan over the stages, not four copies of them: programs and their compilation are four times smaller.
    def stage(carry: tuple[Rates, Rates], coefficients: jax.Array) -> tuple[tuple[Rates, Rates], None]:
        previous, mean = carry
        fraction, weight = coefficients
        duration = fraction * time_step
        moved, rotation = _moved(motion, bodies, previous, duration)
        wrench = load(moved, time + duration)
        rates = (moved.velocity, _rotation_rate(rotation, angular_velocity(moved, bodies)), wrench)
        return (rates, each(lambda total, rate: total + weight * rate, mean, rates)), None

    coefficients = jnp.asarray(STAGES, dtype=motion.velocity.x.dtype)
    (_, mean), _ = jax.lax.scan(stage, (zero_rates, zero_rates), coefficients)
    return _moved(motion, bodies, mean, time_step)[0]


def _rotation_rate(rotation: Vector, omega: Vector) -> Vector:
    u_x_omega = cross(rotation, omega)
    return omega - u_x_omega / 2 + cross(rotation, u_x_omega) / 12


def _moved(motion: Motion, bodies: Bodies, rates: Rates, duration: jax.Array) -> tuple[Motion, Vector]:
    velocity, rotation_rate, wrench = rates
    rotation = rotation_rate * duration
    kicked = kick(motion, bodies, wrench, duration)
    moved = dataclasses.replace(
        kicked,
        position=motion.position + velocity * duration,
        orientation=turn(motion.orientation, rotation),
    )
    return moved, rotation


type Loading = Callable[[Motion, jax.Array], Wrench]
type Integrator = Callable[[Motion, Bodies, Loading, jax.Array, jax.Array], Motion]

INTEGRATORS: dict[str, Integrator] = {
    "semi_implicit_euler": semi_implicit_euler,
    "velocity_verlet": velocity_verlet,
    "runge_kutta": runge_kutta,
}


def integrator_named(name: str) -> Integrator:
    """Return the integrator ``(motion, bodies, load, time, time_step) -> motion`` of a name.

    Args:
        name: "semi_implicit_euler", "velocity_verlet" or "runge_kutta".

    Raises:
        UserError: if there is no integrator of that name.
    """
    return INTEGRATORS[known(name, INTEGRATORS, "integrator")]
