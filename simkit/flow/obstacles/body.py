"""A rigid body in a flow: its shape, its pivot and how it moves."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.boundary.domain import Domain
from simkit.flow.obstacles.motion import Kinematics, Motion, carried_shape, kinematics
from simkit.flow.obstacles.scalar_surface import ScalarSurface
from simkit.flow.obstacles.shapes import Point, Shape


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
    """

    shape: Callable[[Params], Shape]
    pivot: Callable[[Params], Point]
    spin: Callable[[Params], jax.Array] | None = None
    motion: Motion | None = None
    points: int | None = None
    scalar: ScalarSurface | Mapping[str, ScalarSurface] | None = None

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
        """Return position and velocity of the body at a time."""
        return kinematics(self.motion, self.pivot(params), self.spin, params, jnp.asarray(time))

    def shape_at(self, params: Params, now: Kinematics, domain: Domain) -> Shape:
        """Return the shape at the body's position; if it moves, periodic images of a point are the same point.

        Args:
            params: parameters.
            now: position and velocity, see `now`.
            domain: the domain.
        """
        shape = self.shape(params)
        if self.motion is None:
            return shape
        moved = carried_shape(shape, self.pivot(params), now)
        return lambda *x: moved(*(p + a for p, a in zip(now.position, self.arm(x, now, domain), strict=True)))

    def arm(self, points: Sequence[jax.Array], now: Kinematics, domain: Domain) -> list[jax.Array]:
        """Return the vector from the pivot to points; if the body moves, to their image that is nearest to it.

        Args:
            points: coordinates.
            now: position and velocity, see `now`.
            domain: the domain.
        """
        arm = [x - p for x, p in zip(points, now.position, strict=True)]
        if self.motion is None:
            return arm
        return [
            a - axis.length * jax.lax.stop_gradient(jnp.round(a / axis.length)) if axis.periodic else a
            for a, axis in zip(arm, domain.grid.axes, strict=True)
        ]
