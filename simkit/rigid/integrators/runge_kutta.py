"""The classical Runge-Kutta method on the group of rotations: fourth order."""

import dataclasses
from collections.abc import Callable

import jax

from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, cross, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity
from simkit.rigid.integrators.kick import kick


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
    rates: list[tuple[Vector, Vector, Wrench]] = []
    stage, rotation, duration = motion, nothing, 0 * time_step
    for following in (time_step / 2, time_step / 2, time_step, None):
        wrench = load(stage, time + duration)
        rates.append((stage.velocity, _rotation_rate(rotation, angular_velocity(stage, bodies)), wrench))
        if following is not None:
            duration = following
            stage, rotation = _moved(motion, bodies, rates[-1], duration)
    (va, ra, wa), (vb, rb, wb), (vc, rc, wc), (vd, rd, wd) = rates
    mean = (
        (va + 2 * (vb + vc) + vd) / 6,
        (ra + 2 * (rb + rc) + rd) / 6,
        Wrench(
            force=(wa.force + 2 * (wb.force + wc.force) + wd.force) / 6,
            torque=(wa.torque + 2 * (wb.torque + wc.torque) + wd.torque) / 6,
        ),
    )
    return _moved(motion, bodies, mean, time_step)[0]


def _rotation_rate(rotation: Vector, omega: Vector) -> Vector:
    turning = cross(rotation, omega)
    return omega - turning / 2 + cross(rotation, turning) / 12


def _moved(
    motion: Motion, bodies: Bodies, rates: tuple[Vector, Vector, Wrench], duration: jax.Array
) -> tuple[Motion, Vector]:
    velocity, rotation_rate, wrench = rates
    rotation = rotation_rate * duration
    kicked = kick(motion, bodies, wrench, duration)
    moved = dataclasses.replace(
        kicked,
        position=motion.position + velocity * duration,
        orientation=turn(motion.orientation, rotation),
    )
    return moved, rotation
