"""The classical Runge-Kutta method on the group of rotations: fourth order."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, cross, each, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity
from simkit.rigid.integrators.kick import kick

# Velocity, rate of rotation and wrench.
type Rates = tuple[Vector, Vector, Wrench]

# How far into the step each stage is, along the rates of the one before, and its weight in the mean.
STAGES = ((0, 1 / 6), (1 / 2, 1 / 3), (1 / 2, 1 / 3), (1, 1 / 6))


def runge_kutta(
    motion: Motion, bodies: Bodies, load: Callable[[Motion, jax.Array], Wrench], time: jax.Array, time_step: jax.Array
) -> Motion:
    """Return the state one step later; forces may depend on position, velocity and time.

    Rotations are followed by their vector u from the start of the step, ``q = exp(u/2) q0``, which obeys
    ``u' = omega - u x omega / 2 + u x (u x omega) / 12`` up to fifth order (Munthe-Kaas, BIT 38, 92 (1998),
    doi:10.1007/BF02510919), so that orientations stay rotations at every stage.

    Args:
        motion: state.
        bodies: what moves.
        load: ``(motion, time) -> wrench``, what acts.
        time: in s.
        time_step: dt in s.
    """
    nothing = zeros(motion.velocity.x)
    still = (nothing, nothing, Wrench(force=nothing, torque=nothing))

    # A loop over the stages, not four copies of them, keeps programs and their compilation four times smaller.
    def stage(carry: tuple[Rates, Rates], coefficients: jax.Array) -> tuple[tuple[Rates, Rates], None]:
        previous, mean = carry
        fraction, weight = coefficients
        duration = fraction * time_step
        moved, rotation = _moved(motion, bodies, previous, duration)
        wrench = load(moved, time + duration)
        rates = (moved.velocity, _rotation_rate(rotation, angular_velocity(moved, bodies)), wrench)
        return (rates, each(lambda total, rate: total + weight * rate, mean, rates)), None

    coefficients = jnp.asarray(STAGES, dtype=motion.velocity.x.dtype)
    (_, mean), _ = jax.lax.scan(stage, (still, still), coefficients)
    return _moved(motion, bodies, mean, time_step)[0]


def _rotation_rate(rotation: Vector, omega: Vector) -> Vector:
    turning = cross(rotation, omega)
    return omega - turning / 2 + cross(rotation, turning) / 12


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
