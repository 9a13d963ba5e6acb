"""Trajectory of balls between two events: a polynomial in time, from loads sampled at three times."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.dependence import depends
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.contact.timing.resting import Balls, Footing, with_reaction


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Quadratic[T: (Vector, jax.Array)]:
    """Vectors or numbers ``a + b s + c s^2`` with the time s in units of the time step.

    Attributes:
        constant: a.
        linear: b; None for a constant quadratic, so that programs compute a only.
        square: c; likewise.
    """

    constant: T
    linear: T | None = None
    square: T | None = None

    @property
    def parts(self) -> tuple[T, ...]:
        """The three coefficients, or the only one of a constant."""
        if self.linear is None or self.square is None:
            return (self.constant,)
        return self.constant, self.linear, self.square

    def map[R: (Vector, jax.Array)](self, function: Callable[[T], R]) -> "Quadratic[R]":
        """Return the quadratic with a linear function applied to each coefficient."""
        return Quadratic(*(function(part) for part in self.parts))

    def at(self, s: jax.Array) -> T:
        """Return the value at s."""
        if self.linear is None or self.square is None:
            return self.constant
        return self.constant + (self.linear + self.square * s) * s

    def slope(self, s: jax.Array) -> T:
        """Return the derivative with respect to s."""
        if self.linear is None or self.square is None:
            return 0 * self.constant
        return self.linear + self.square * (2 * s)

    def integral(self, s: jax.Array) -> T:
        """Return the integral from 0 to s."""
        if self.linear is None or self.square is None:
            return self.constant * s
        return (self.constant + (self.linear / 2 + self.square * (s / 3)) * s) * s

    def double_integral(self, s: jax.Array) -> T:
        """Return the integral of the integral from 0 to s."""
        if self.linear is None or self.square is None:
            return self.constant / 2 * (s * s)
        return (self.constant / 2 + (self.linear / 6 + self.square * (s / 12)) * s) * (s * s)


@pytree
class Path:
    """Trajectory of balls within a step until the next event.

    Attributes:
        motion: state at the start.
        acceleration: of the centers in m/s^2.
        torque: about the centers in N m.
        pressure: force in N by which loads press a resting ball to its plane.
        inverse_moment: 1/I in 1/(kg m^2), the same about every axis that a ball turns about.
        time_step: dt in s, the unit of time of the polynomials.
    """

    motion: Motion
    acceleration: Quadratic[Vector]
    torque: Quadratic[Vector]
    pressure: Quadratic[jax.Array]
    inverse_moment: jax.Array
    time_step: jax.Array

    def at(self, duration: jax.Array) -> Motion:
        """Return the motion at a time after the start, in s."""
        orientation = turn(self.motion.orientation, self._turned(duration))
        return dataclasses.replace(self.shifted(duration), orientation=orientation)

    def shifted(self, duration: jax.Array) -> Motion:
        """Return the motion at a time after the start, in s, with the orientations of the start."""
        motion, dt, duration = self.motion, self.of_each(self.time_step), self.of_each(duration)
        s = duration / dt
        way = dt * dt * self.acceleration.double_integral(s)
        return dataclasses.replace(
            motion,
            position=motion.position + duration * motion.velocity + way,
            velocity=motion.velocity + dt * self.acceleration.integral(s),
            angular_momentum=motion.angular_momentum + dt * self.torque.integral(s),
        )

    def arrival(self, shifted: Motion, duration: jax.Array, correction: jax.Array) -> Motion:
        """Return the motion at a time after the start with the derivatives of that time, from the result of `shifted`.

        Args:
            shifted: result of `shifted` for this duration.
            duration: in s.
            correction: zero, with the derivatives of the time, from `simkit.core.implicit.root_change`; expanded to
                second order, so that the trajectory is not evaluated again.
        """
        s, correction = self.of_each(duration / self.time_step), self.of_each(correction)

        def later(value: Vector, rate: Vector, bend: Vector) -> Vector:
            return each(lambda x, v, a: x + correction * (v + correction / 2 * a), value, rate, bend)

        acceleration, torque = self.acceleration.at(s), self.torque.at(s)
        spin, change = (vector * self.inverse_moment for vector in (shifted.angular_momentum, torque))
        turned = later(self._turned(duration), spin, change)
        dt = self.of_each(self.time_step)
        return Motion(
            position=later(shifted.position, shifted.velocity, acceleration),
            orientation=turn(self.motion.orientation, turned),
            velocity=later(shifted.velocity, acceleration, self.acceleration.slope(s) / dt),
            angular_momentum=later(shifted.angular_momentum, torque, self.torque.slope(s) / dt),
        )

    def pressing(self, duration: jax.Array) -> jax.Array:
        """Return the pressure in N at a time after the start, in s."""
        return self.pressure.at(self.of_each(duration / self.time_step))

    def _turned(self, duration: jax.Array) -> Vector:
        """Return the rotation vectors from the start, in rad."""
        dt, duration = self.of_each(self.time_step), self.of_each(duration)
        turned = duration * self.motion.angular_momentum + dt * dt * self.torque.double_integral(duration / dt)
        return turned * self.inverse_moment

    def of_each(self, number: jax.Array) -> jax.Array:
        """Return a number broadcast to one per ball, so that its derivative has one sum over balls for all its uses."""
        return jnp.broadcast_to(number, self.inverse_moment.shape)


def path_under(
    load: Callable[[Motion, jax.Array], Wrench],
    motion: Motion,
    balls: Balls,
    stand: Footing,
    time: jax.Array,
    time_step: jax.Array,
) -> Path:
    """Return the trajectory of balls under loads sampled now, half a step and a whole step later.

    Exact for loads that are constant or linear in time. Over many steps the error is of fourth order for loads that
    depend on time alone, of third for those that depend on position, of second for those that depend on velocity, and
    of first order where a load turns the direction of a slip. Orientations are exact about a fixed axis and of second
    order where a torque turns it; nothing else depends on them. A load that depends on neither motion nor time, such
    as gravity, is sampled once.

    Args:
        load: ``(motion, time) -> Wrench``.
        motion: state at the start.
        balls: constants of the balls.
        stand: contacts of resting balls.
        time: in s.
        time_step: in s; the trajectory is valid for that long.
    """

    def path_of(*parts: Wrench) -> Path:
        wrenches, pressures = zip(*(with_reaction(part, balls, stand) for part in parts), strict=True)
        return Path(
            motion=motion,
            acceleration=Quadratic(*(wrench.force * balls.inverse_mass for wrench in wrenches)),
            torque=Quadratic(*(wrench.torque for wrench in wrenches)),
            pressure=Quadratic(*pressures),
            inverse_moment=balls.inverse_moment,
            time_step=time_step,
        )

    now = load(motion, time)
    ahead = path_of(now)
    if not depends(load, motion, time):
        return ahead
    # As differences, so that three equal samples give exactly a constant.
    halfway, whole = (
        each(lambda later, start: later - start, load(ahead.at(after), time + after), now)
        for after in (time_step / 2, time_step)
    )
    linear = each(lambda halfway, whole: 4 * halfway - whole, halfway, whole)
    square = each(lambda halfway, whole: 2 * whole - 4 * halfway, halfway, whole)
    return path_of(now, linear, square)
