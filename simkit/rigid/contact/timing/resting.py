"""Balls at rest on a plane: normal forces, and friction while they slip or roll."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.rigid.algebra.vector import Vector, cross, dot, norm, normalize, select, zeros
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.contact.timing.balls import Balls

# Roundings that what is zero but for them may have gathered.
ROUNDINGS = 64


@pytree
class Footing:
    """How each ball stands on its plane.

    Attributes:
        held: whether it rests on one.
        normal: unit vector of the plane; zero for a ball that is not held.
        friction: coefficient of the contact.
        rolls: whether the contact grips, so that the ball rolls; it slips otherwise.
        direction: unit vector along the slip at the start.
    """

    held: jax.Array
    normal: Vector
    friction: jax.Array
    rolls: jax.Array
    direction: Vector


def slip(velocity: Vector, angular_momentum: Vector, balls: Balls, normal: Vector) -> Vector:
    """Return the velocity of the surface at the point that faces a plane, ``v_t - r omega x n``.

    Of accelerations and torques it is the rate at which that changes.

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
    """Return how balls stand now: whether the load still presses them down, and whether the contact grips.

    A contact grips if it did so before, or has no slip, and if friction can keep it so, ``|s'| <= k mu N`` with the
    rate s' at which the load alone would change the slip. Otherwise it slips, from rest along s'.

    Args:
        motion: state of the balls.
        balls: constants of the balls.
        wrench: of the loads on them.
        held: whether each rested on a plane so far.
        rolling: whether its contact gripped so far.
        normal: of that plane; zero for a ball that is not held.
        friction: coefficient of that contact.
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
    """Return loads together with what planes do to the balls that rest on them, and the pressure in N.

    ``F + N n + f`` and ``T - r n x f`` with the pressure N = -F.n; the friction is f = -mu N along the slip while the
    contact slips, and what keeps the slip constant while it grips. All of it is linear in the load.

    Args:
        wrench: of the loads.
        balls: constants of the balls.
        footing: how they stand.
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
    """Return balls without the rounding that would let them leave their plane, or slip where they roll.

    What is taken away is zero but for rounding; its derivative is not, and belongs to the physics: a ball at rest that
    is given a little velocity rolls on with 5/7 of it.

    Args:
        motion: state of the balls.
        balls: constants of the balls.
        footing: how they stand.
        offset: of each ball's plane in m.
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
