"""The way of balls between two events: a polynomial in time, from loads sampled at three times."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.contact.timing.balls import Balls
from simkit.rigid.contact.timing.resting import Footing, with_reaction


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
        inverse_moment: 1/I in 1/(kg m^2), the same about every axis that a ball turns about.
        time_step: dt in s, the unit of time of the polynomials.
    """

    motion: Motion
    acceleration: Quadratic[Vector]
    torque: Quadratic[Vector]
    pressure: Quadratic[jax.Array]
    inverse_moment: jax.Array
    time_step: jax.Array

    def position_at(self, duration: jax.Array) -> Vector:
        """Return the positions some time after the start, in s."""
        dt, duration = self.of_each(self.time_step), self.of_each(duration)
        way = dt * dt * self.acceleration.double_integral(duration / dt)
        return self.motion.position + duration * self.motion.velocity + way

    def at(self, duration: jax.Array) -> Motion:
        """Return the motion some time after the start, in s."""
        motion, dt, duration = self.motion, self.of_each(self.time_step), self.of_each(duration)
        s = duration / dt
        turned = duration * motion.angular_momentum + dt * dt * self.torque.double_integral(s)
        return Motion(
            position=self.position_at(duration),
            orientation=turn(motion.orientation, turned * self.inverse_moment),
            velocity=motion.velocity + dt * self.acceleration.integral(s),
            angular_momentum=motion.angular_momentum + dt * self.torque.integral(s),
        )

    def of_each(self, number: jax.Array) -> jax.Array:
        """Return a number for each ball; used many times, it then has one sum over the balls for its derivative."""
        return jnp.broadcast_to(number, self.inverse_moment.shape)


def path_under(
    load: Callable[[Motion, jax.Array], Wrench],
    motion: Motion,
    balls: Balls,
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
        balls: what moves.
        stand: how balls rest on planes.
        time: in s.
        time_step: in s; the way may be followed for that long.
    """

    def path_of(*parts: tuple[Wrench, jax.Array]) -> Path:
        wrenches, pressures = zip(*parts, strict=True)
        return Path(
            motion=motion,
            acceleration=Quadratic(*(wrench.force * balls.inverse_mass for wrench in wrenches)),
            torque=Quadratic(*(wrench.torque for wrench in wrenches)),
            pressure=Quadratic(*pressures),
            inverse_moment=balls.inverse_moment,
            time_step=time_step,
        )

    now = load(motion, time)
    constant = with_reaction(now, balls, stand)
    nothing = each(jnp.zeros_like, constant)
    ahead = path_of(constant, nothing, nothing)
    # As differences, so that three equal samples give exactly a constant.
    halfway, whole = (
        each(lambda later, start: later - start, load(ahead.at(after), time + after), now)
        for after in (time_step / 2, time_step)
    )
    linear = each(lambda halfway, whole: 4 * halfway - whole, halfway, whole)
    square = each(lambda halfway, whole: 2 * whole - 4 * halfway, halfway, whole)
    return path_of(constant, with_reaction(linear, balls, stand), with_reaction(square, balls, stand))
