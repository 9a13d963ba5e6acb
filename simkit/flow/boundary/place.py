"""Position of a side on the grid, with the one-sided slopes and fluxes that are taken there."""

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from simkit.flow.arrays import end, like
from simkit.flow.grid import Grid


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    """Position of a side: the lower or upper end of a bounded axis.

    Attributes:
        grid: the grid.
        axis: the axis across the side.
        side: 0 for its lower, 1 for its upper end.
        wall_slope: "parabola" or "symmetric", see `simkit.flow.boundary.domain.Domain`.
    """

    grid: Grid
    axis: int
    side: int
    wall_slope: str

    @property
    def name(self) -> str:
        """Name of the side in messages."""
        return f"the {('lower', 'upper')[self.side]} side of axis {'xyz'[self.axis]}"

    @property
    def outward(self) -> int:
        """The direction out of the domain along the axis, 1 or -1."""
        return 1 if self.side else -1

    @property
    def width(self) -> float:
        """Width of the nearest cells."""
        return float(self.grid.axes[self.axis].widths[-1 if self.side else 0])

    @property
    def area(self) -> float:
        """Area of the side; in two dimensions its length."""
        return math.prod(a.length for i, a in enumerate(self.grid.axes) if i != self.axis)

    @functools.cached_property
    def weights(self) -> tuple[float, float]:
        """Weights (near, far) of the one-sided derivative.

        A field f that is f_0 on the side, and f_a and f_b at the first and second center from it, has the slope
        ``near (f_a - f_0) - far (f_b - f_0)`` into the domain.
        """
        a = self.grid.axes[self.axis]
        near, far = a.faces[-1] - a.centers[:-3:-1] if self.side else a.centers[:2] - a.faces[0]
        if self.wall_slope == "symmetric":
            return float(1 / near), 0.0
        return float(far / (near * (far - near))), float(near / (far * (far - near)))

    def slope(self, f: jax.Array, value: jax.Array) -> jax.Array:
        """Return the derivative along the axis on the side, as one layer, of a field that has a value there.

        Args:
            f: the field, at the cell centers along the axis.
            value: value of the field on the side.
        """
        near, far = self.weights
        slope = near * (end(f, self.axis, self.side) - value)
        if far:
            index = f.shape[self.axis] - 2 if self.side else 1
            second = jax.lax.slice_in_dim(f, index, index + 1, axis=self.axis)
            slope = slope - far * (second - value)
        return -slope if self.side else slope

    def layer(self, f: jax.Array, value: jax.Array | float) -> jax.Array:
        """Return a value as one layer on the side, in the shape of a field."""
        return jnp.broadcast_to(like(f, value), tuple(1 if i == self.axis else n for i, n in enumerate(f.shape)))

    def nearest(self, f: jax.Array) -> jax.Array:
        """Return the layer of a field nearest to the side, or on it."""
        return end(f, self.axis, self.side)

    def flux(self, velocity: Sequence[jax.Array]) -> jax.Array:
        """Return the volume per time that leaves through the side."""
        face = self.nearest(velocity[self.axis])
        for other, a in enumerate(self.grid.axes):
            if other != self.axis:
                face = face * like(face, self.grid.along(a.widths, other))
        return jnp.sum(face) * self.outward
