"""Classical Runge-Kutta method of fourth order on the rotation group."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, cross, each, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity
from simkit.rigid.integrators.splitting import kick

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
