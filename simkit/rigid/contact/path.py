"""The way of balls between two events: a polynomial in time, from loads sampled at three times."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.contact.resting import Footing, with_reaction


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Quadratic[T: (Vector, jax.Array)]:
    """A vector or number that changes as ``a + b s + c s^2`` with the time s in units of the time step.

    Attributes:
        constant: a.
        linear: b.
        square: c.
    """

    constant: T
    linear: T
    square: T

    @property
    def parts(self) -> tuple[T, T, T]:
        """The three coefficients."""
        return self.constant, self.linear, self.square

    def at(self, s: jax.Array) -> T:
        """Return the value at s."""
        return self.constant + (self.linear + self.square * s) * s

    def integral(self, s: jax.Array) -> T:
        """Return the integral from 0 to s."""
        return (self.constant + (self.linear / 2 + self.square * (s / 3)) * s) * s

    def double_integral(self, s: jax.Array) -> T:
        """Return the integral of the integral from 0 to s."""
        return (self.constant / 2 + (self.linear / 6 + self.square * (s / 12)) * s) * (s * s)


@pytree
class Path:
    """Where balls are at any time of a step, as long as nothing happens to them.

    Attributes:
        motion: at the start.
        acceleration: of the centers in m/s^2.
        torque: about the centers in N m.
        pressure: force in N with which loads press those balls to their plane that rest on one.
        moment: of inertia in kg m^2, the same about every axis that a ball turns about.
        time_step: dt in s, the unit of time of the polynomials.
    """

    motion: Motion
    acceleration: Quadratic[Vector]
    torque: Quadratic[Vector]
    pressure: Quadratic[jax.Array]
    moment: jax.Array
    time_step: jax.Array

    def position_at(self, duration: jax.Array) -> Vector:
        """Return the positions some time after the start, in s."""
        s = duration / self.time_step
        way = self.time_step * self.time_step * self.acceleration.double_integral(s)
        return self.motion.position + duration * self.motion.velocity + way

    def at(self, duration: jax.Array) -> Motion:
        """Return the motion some time after the start, in s."""
        motion, dt = self.motion, self.time_step
        s = duration / dt
        turned = duration * motion.angular_momentum + dt * dt * self.torque.double_integral(s)
        return Motion(
            position=self.position_at(duration),
            orientation=turn(motion.orientation, turned / self.moment),
            velocity=motion.velocity + dt * self.acceleration.integral(s),
            angular_momentum=motion.angular_momentum + dt * self.torque.integral(s),
        )


def path_under(
    load: Callable[[Motion, jax.Array], Wrench],
    motion: Motion,
    bodies: Bodies,
    stand: Footing,
    time: jax.Array,
    time_step: jax.Array,
) -> Path:
    """Return the way of balls under loads, sampled now, half a step and a whole step later.

    Exact for loads that are constant or linear in time. Over many steps the error is of fourth order for loads that
    depend on time alone, of third for those that depend on position, of second for those that depend on velocity, and
    of first order where a load turns the direction of a slip. Orientations are exact about a fixed axis and of second
    order where a torque turns it; nothing else depends on them.

    Args:
        load: ``(motion, time) -> Wrench``.
        motion: at the start.
        bodies: spheres or disks.
        stand: how balls rest on planes.
        time: in s.
        time_step: in s; the way may be followed for that long.
    """
    now = load(motion, time)
    nothing = each(jnp.zeros_like, now)

    def path_of(constant: Wrench, linear: Wrench, square: Wrench) -> Path:
        parts = each(lambda *values: jnp.stack(values), constant, linear, square)
        wrench, pressure = jax.vmap(lambda part: with_reaction(part, bodies, stand))(parts)
        return Path(
            motion=motion,
            acceleration=_quadratic(wrench.force / bodies.mass),
            torque=_quadratic(wrench.torque),
            pressure=Quadratic(pressure[0], pressure[1], pressure[2]),
            moment=bodies.inertia.y,
            time_step=time_step,
        )

    ahead = path_of(now, nothing, nothing)
    after = jnp.stack([time_step / 2, time_step])
    # As differences, so that three equal samples give exactly a constant.
    change = each(
        lambda later, start: later - start, jax.vmap(lambda after: load(ahead.at(after), time + after))(after), now
    )
    linear = each(lambda later: 4 * later[0] - later[1], change)
    return path_of(now, linear, each(lambda later: 2 * later[1] - 4 * later[0], change))


def _quadratic(parts: Vector) -> Quadratic[Vector]:
    return Quadratic(parts[0], parts[1], parts[2])
