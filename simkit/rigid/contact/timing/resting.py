"""Balls that rest on planes: their constants, normal forces, and friction while slipping or rolling."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.pytrees import pytree
from simkit.rigid.algebra.vector import Vector, cross, dot, norm, normalize, select, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench


@pytree
class Balls:
    """Constants of spheres or disks, arrays (balls, ...).

    Attributes:
        inverse_mass: 1/m in 1/kg.
        inverse_moment: 1/I in 1/(kg m^2), the same about every axis that a ball turns about.
        radius: r in m.
        lever: r/I in 1/(kg m), speed of the surface per angular momentum.
        mobility: 1/m + r^2/I in 1/kg, the slip that a unit of tangential impulse adds at the surface.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.
    """

    inverse_mass: jax.Array
    inverse_moment: jax.Array
    radius: jax.Array
    lever: jax.Array
    mobility: jax.Array
    friction: jax.Array
    restitution: jax.Array


def balls_of(bodies: Bodies) -> Balls:
    """Return the constants of spheres or disks for contact.

    Args:
        bodies: constants of the spheres or disks.
    """
    inverse_mass, inverse_moment = 1 / bodies.mass, 1 / bodies.inertia.y
    lever = bodies.radius * inverse_moment
    return Balls(
        inverse_mass=inverse_mass,
        inverse_moment=inverse_moment,
        radius=bodies.radius,
        lever=lever,
        mobility=inverse_mass + bodies.radius * lever,
        friction=bodies.friction,
        restitution=bodies.restitution,
    )


# Tolerance, in units of round-off, within which a quantity counts as zero.
ROUNDINGS = 64


@pytree
class Footing:
    """Resting contact of each ball with its plane, arrays (balls, ...).

    Attributes:
        held: whether the ball rests on a plane, bool.
        normal: unit normal of the plane; zero for a ball that is not held.
        friction: coefficient of friction of the contact.
        rolls: whether the contact grips, so that the ball rolls; otherwise it slips. bool.
        direction: unit vector along the slip, or along its rate if there is no slip yet; zero without either.
    """

    held: jax.Array
    normal: Vector
    friction: jax.Array
    rolls: jax.Array
    direction: Vector


def slip(velocity: Vector, angular_momentum: Vector, balls: Balls, normal: Vector) -> Vector:
    """Return the slip, the velocity of the surface at the point that faces a plane, ``v_t - r omega x n``.

    For accelerations and torques in place of velocities and angular momenta, it is the rate of the slip.

    Args:
        velocity: v of the centers in m/s.
        angular_momentum: I omega about the centers in kg m^2/s.
        balls: constants of the balls.
        normal: n of the plane, a unit vector.
    """
    along = velocity - dot(velocity, normal) * normal
    return along - cross(angular_momentum, normal) * balls.lever


def footing(
    motion: Motion,
    balls: Balls,
    wrench: Wrench,
    held: jax.Array,
    rolling: jax.Array,
    normal: Vector,
    friction: jax.Array,
) -> Footing:
    """Return the resting contacts now: whether the load still presses a ball down, and whether its contact grips.

    A contact grips if it did so before, or has no slip, and if friction can maintain that, ``|s'| <= k mu N`` with the
    rate s' at which the load alone would change the slip. Otherwise it slips; from zero slip, along s'.

    Args:
        motion: state of the balls.
        balls: constants of the balls.
        wrench: loads on the balls.
        held: whether each ball rested on a plane until now, bool.
        rolling: whether its contact gripped until now, bool.
        normal: unit normal of that plane; zero for a ball that is not held.
        friction: coefficient of friction of that contact.
    """
    pressure = -dot(wrench.force, normal)
    eps = jnp.finfo(pressure.dtype).eps
    held = held & (pressure > ROUNDINGS * eps * norm(wrench.force))
    normal = select(held, normal, zeros(pressure))
    now = slip(motion.velocity, motion.angular_momentum, balls, normal)
    rate = slip(wrench.force * balls.inverse_mass, wrench.torque, balls, normal)
    spin = balls.lever * norm(motion.angular_momentum)
    still = norm(now) <= ROUNDINGS * eps * (norm(motion.velocity) + spin)
    grips = norm(rate) <= balls.mobility * friction * pressure
    return Footing(
        held=held,
        normal=normal,
        friction=friction,
        rolls=held & grips & (rolling | still),
        direction=normalize(select(still, rate, now), zeros(pressure)),
    )


def with_reaction(wrench: Wrench, balls: Balls, footing: Footing) -> tuple[Wrench, jax.Array]:
    """Return loads plus the reactions of planes on resting balls, and the pressure in N.

    ``F + N n + f`` and ``T - r n x f`` with the pressure N = -F.n; the friction f is mu N against the slip while the
    contact slips, and the force that keeps the slip constant while it grips. The result is linear in the load.

    Args:
        wrench: loads on the balls.
        balls: constants of the balls.
        footing: resting contacts of the balls.
    """
    normal = footing.normal
    pressure = -dot(wrench.force, normal)
    rate = slip(wrench.force * balls.inverse_mass, wrench.torque, balls, normal)
    force = select(footing.rolls, rate * (-1 / balls.mobility), footing.direction * (-footing.friction * pressure))
    force = select(footing.held, force, zeros(pressure))
    total = Wrench(
        force=wrench.force + pressure * normal + force, torque=wrench.torque - cross(normal, force) * balls.radius
    )
    return total, pressure


def settled(motion: Motion, balls: Balls, footing: Footing, offset: jax.Array) -> Motion:
    """Return balls projected onto their planes, and onto zero slip where they roll, which removes rounding.

    The correction is zero up to rounding, but its derivative is not, and is physical: a rolling ball at rest that gets
    a small change of velocity keeps 5/7 of it.

    Args:
        motion: state of the balls.
        balls: constants of the balls.
        footing: resting contacts of the balls.
        offset: offset of the plane of each ball in m.
    """
    normal = footing.normal
    rise = jnp.where(footing.held, offset + balls.radius - dot(motion.position, normal), 0)
    slipping = slip(motion.velocity, motion.angular_momentum, balls, normal)
    impulse = select(footing.rolls, slipping * (-1 / balls.mobility), zeros(rise))
    return dataclasses.replace(
        motion,
        position=motion.position + rise * normal,
        velocity=motion.velocity - dot(motion.velocity, normal) * normal + impulse * balls.inverse_mass,
        angular_momentum=motion.angular_momentum - cross(normal, impulse) * balls.radius,
    )
