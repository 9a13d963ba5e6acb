"""A rigid body in a flow: its shape, its pivot, and its prescribed motion."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.boundary.domain import Domain
from simkit.flow.obstacles.shapes import Point, Shape
from simkit.flow.obstacles.surface_conditions import ScalarSurface


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
    """A motion that maps every point X of a body, in the coordinates of its shape, to x.

        x = position(t) + size(t) R(angle(t)) (X - pivot)

    R turns counterclockwise in the x-y plane. The velocity of the surface is the derivative of x in time, by automatic
    differentiation: give functions of time that are differentiable.

    Attributes:
        position: ``(params, time) -> point``, position of the pivot.
        angle: ``(params, time) -> number``, in radians; or None for a body that does not turn.
        size: ``(params, time) -> number``, positive scale factor of the shape; or None.

    Example:
        >>> swing = flow.obstacles.Motion(position=lambda params, time: (params["amplitude"] * jnp.sin(time), 0.0))
        >>> shape = lambda params: flow.obstacles.ball((0.0, 0.0), 0.5)
        >>> body = flow.obstacles.Body(shape, pivot=lambda params: (0.0, 0.0), motion=swing)
        >>> now = body.now({"amplitude": 2.0}, 0.0)
        >>> [float(each) for each in now.velocity]
        [2.0, 0.0]
    """

    position: Callable[[Params, jax.Array], Point]
    angle: Callable[[Params, jax.Array], jax.Array] | None = None
    size: Callable[[Params, jax.Array], jax.Array] | None = None


class Kinematics(NamedTuple):
    """Position and velocity of a body at a time.

        U(x) = velocity + growth (x - position) + turning (-(y - position_y), x - position_x, 0)

    Attributes:
        position: of the pivot.
        angle: in radians; None for a body that keeps its angle.
        size: scale factor of the shape; None for a body of constant size.
        velocity: of the pivot; None for a pivot at rest.
        turning: angular velocity, counterclockwise; None for a body that does not turn.
        growth: rate of the size over the size; None for one of constant size.
    """

    position: tuple[jax.Array | float, ...]
    angle: jax.Array | None = None
    size: jax.Array | None = None
    velocity: tuple[jax.Array, ...] | None = None
    turning: jax.Array | None = None
    growth: jax.Array | None = None

    def component(self, i: int, arm: Sequence[jax.Array]) -> jax.Array | float:
        """Return component i of the velocity of the body at points ``arm`` away from the pivot; 0.0 at rest."""
        total = 0.0
        if self.velocity is not None:
            total = total + self.velocity[i]
        if self.growth is not None:
            total = total + self.growth * arm[i]
        if self.turning is not None and i < 2:
            total = total + self.turning * (arm[0] if i == 1 else -arm[1])
        return total

    def gradient(self, dimension: int) -> jax.Array:
        """Return the matrix G of ``U = velocity + G arm``."""
        turning = 0.0 if self.turning is None else self.turning
        growth = 0.0 if self.growth is None else self.growth
        turn = jnp.zeros((dimension, dimension)).at[0, 1].set(-1.0).at[1, 0].set(1.0)
        return turning * turn + growth * jnp.eye(dimension)


def kinematics(
    motion: Motion | None,
    pivot: Point,
    spin: Callable[[Params], jax.Array] | None,
    params: Params,
    time: jax.Array,
) -> Kinematics:
    """Return position and velocity of a body at a time.

    Args:
        motion: its motion; None for a body at rest.
        pivot: position of the pivot at rest.
        spin: ``params -> number``, angular velocity of its surface besides that of the motion; or None.
        params: parameters.
        time: time.
    """
    turning = None if spin is None else spin(params)
    if motion is None:
        return Kinematics(pivot, turning=turning)
    time = jnp.asarray(time)

    def at(moved: Callable) -> tuple:
        return jax.jvp(lambda t: jax.tree.map(lambda f: jnp.asarray(f, t.dtype), moved(params, t)), *along)

    along = (time,), (jnp.ones_like(time),)
    position, velocity = at(lambda p, t: tuple(motion.position(p, t)))
    kinematics = Kinematics(position, velocity=velocity, turning=turning)
    if motion.angle is not None:
        angle, rate = at(motion.angle)
        kinematics = kinematics._replace(angle=angle, turning=rate if turning is None else rate + turning)
    if motion.size is not None:
        size, rate = at(motion.size)
        kinematics = kinematics._replace(size=size, growth=rate / size)
    return kinematics


def carried(points: Sequence[jax.Array], pivot: Point, now: Kinematics) -> list[jax.Array]:
    """Return positions of points of a body, from their coordinates in its shape.

    Args:
        points: coordinates in the shape.
        pivot: in the shape.
        now: position of the body.
    """
    arm = turned([x - c for x, c in zip(points, pivot, strict=True)], now.angle)
    size = 1.0 if now.size is None else now.size
    return [p + size * a for p, a in zip(now.position, arm, strict=True)]


def carried_shape(shape: Shape, pivot: Point, now: Kinematics) -> Shape:
    """Return the shape of a body at its position, from the shape itself.

    Args:
        shape: the body.
        pivot: in the shape.
        now: position of the body.
    """

    def distance(*x: jax.Array) -> jax.Array:
        size = 1.0 if now.size is None else now.size
        arm = turned([a - p for a, p in zip(x, now.position, strict=True)], None if now.angle is None else -now.angle)
        return size * shape(*(c + a / size for c, a in zip(pivot, arm, strict=True)))

    return distance


def turned(vector: Sequence[jax.Array], angle: jax.Array | None) -> list[jax.Array]:
    """Return a vector turned counterclockwise in the x-y plane; unchanged for None."""
    if angle is None:
        return list(vector)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    x, y, *z = vector
    return [cosine * x - sine * y, sine * x + cosine * y, *z]


@dataclasses.dataclass(frozen=True, eq=False)
class Body:
    """A rigid body, at rest or on a prescribed motion.

    Attributes:
        shape: ``params -> shape``, see `simkit.flow.obstacles.shapes`.
        pivot: ``params -> point`` in the coordinates of the shape, about which the body turns and torque is taken.
        spin: ``params -> number``, angular velocity of the surface, counterclockwise in the x-y plane, that does not
            turn the shape: for a circle, or a body of revolution about z; or None.
        motion: prescribed motion; or None for a body at rest.
        points: number of points on its outline, for an immersed boundary alone, see
            `simkit.flow.obstacles.immersed_boundary.points_around`.
        scalar: boundary condition of the scalar that the flow carries, or of several by name; None without scalars.
        attached: whether it may touch sides of the domain and reach through them, for direct forcing alone. Its load is
            then not that of the flow around it: the fluid inside presses on the sides too.

    Example:
        >>> wheel = flow.obstacles.Body(
        ...     shape=lambda params: flow.obstacles.ball((0.0, 0.0), params["radius"]),
        ...     pivot=lambda params: (0.0, 0.0),
        ...     spin=lambda params: params["spin"],
        ... )
        >>> float(wheel.shape({"radius": 0.5})(2.0, 0.0))
        1.5
    """

    shape: Callable[[Params], Shape]
    pivot: Callable[[Params], Point]
    spin: Callable[[Params], jax.Array] | None = None
    motion: Motion | None = None
    points: int | None = None
    scalar: ScalarSurface | Mapping[str, ScalarSurface] | None = None
    attached: bool = False

    @property
    def surfaces(self) -> Mapping[str | None, ScalarSurface]:
        """The boundary condition of each scalar, by name; the key is None for a single scalar without a name."""
        if self.scalar is None:
            return {}
        if isinstance(self.scalar, ScalarSurface):
            return {None: self.scalar}
        # In the order of keys in a pytree.
        return dict(sorted(self.scalar.items()))

    def now(self, params: Params, time: jax.Array | float) -> Kinematics:
        """Return position and velocity of the body at a time.

        Example:
            >>> swing = flow.obstacles.Motion(position=lambda params, time: (jnp.sin(params["omega"] * time), 0.0))
            >>> shape = lambda params: flow.obstacles.ball((0.0, 0.0), 0.5)
            >>> body = flow.obstacles.Body(shape, pivot=lambda params: (0.0, 0.0), motion=swing)
            >>> float(body.now({"omega": 2.0}, 0.0).velocity[0])
            2.0
        """
        return kinematics(self.motion, self.pivot(params), self.spin, params, jnp.asarray(time))

    def shape_at(self, params: Params, now: Kinematics, domain: Domain) -> Shape:
        """Return the shape at the body's position; periodic images of a point are the same point.

        Args:
            params: parameters.
            now: position and velocity, see `now`.
            domain: the domain.
        """
        shape = self.shape(params)
        if self.motion is None:
            return lambda *x: shape(*self._nearest(x, now, domain))
        moved = carried_shape(shape, self.pivot(params), now)
        return lambda *x: moved(*(p + a for p, a in zip(now.position, self.arm(x, now, domain), strict=True)))

    def arm(self, points: Sequence[jax.Array], now: Kinematics, domain: Domain) -> list[jax.Array]:
        """Return the vector from the pivot to points, to their image that is nearest to it.

        Args:
            points: coordinates.
            now: position and velocity, see `now`.
            domain: the domain.
        """
        return [x - p for x, p in zip(self._nearest(points, now, domain), now.position, strict=True)]

    def _nearest(self, points: Sequence[jax.Array], now: Kinematics, domain: Domain) -> list[jax.Array]:
        """Return the images of points that are nearest to the pivot."""
        return [
            x - axis.length * jax.lax.stop_gradient(jnp.round((x - p) / axis.length)) if axis.periodic else x
            for x, p, axis in zip(points, now.position, domain.grid.axes, strict=True)
        ]
