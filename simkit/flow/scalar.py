"""What a flow carries and spreads: temperature, dye, concentration."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.flow.differences import (
    difference_at_centers,
    difference_at_faces,
    inside,
    mean_at_faces,
    neighbors,
    with_ends,
)
from simkit.flow.domain import Domain, Sides, Velocity, end, like
from simkit.flow.grid import Grid
from simkit.flow.sides import slope_at_side

type SideValues = tuple[tuple[jax.Array | float, jax.Array | float] | None, ...]

KINDS = ("value", "flux", "insulated")
SCHEMES = ("central", "bounded")


@dataclasses.dataclass(frozen=True, eq=False)
class TransportedScalar:
    """A scalar c at the cell centers, as `simkit.flow.equations.Equations` takes it.

        dc/dt + div(u c) = D laplacian(c) + source

    ==========  ====================================================  ============================================
    side        diffusion through it                                  what a flow through it carries
    ==========  ====================================================  ============================================
    value       slope of the parabola through the given value and     the given value
                the two nearest points
    flux        the given amount per area and time, into the fluid    the value in the nearest cells
    insulated   none                                                  the value in the nearest cells
    ==========  ====================================================  ============================================

    Sides through which the flow enters have a value, those through which it leaves are best insulated.

    Advection is the divergence of a flux through the faces, so that the mean over the volume changes only through the
    sides. ``central`` takes the plain mean of both neighbors there: of second order, and without diffusion it keeps the
    variance too, in a solenoidal flow on any grid. ``bounded`` takes van Leer's limited line from upstream: of second
    order where the scalar is smooth, and a largest value never grows nor a smallest one falls, but for what the time
    step adds; for fronts that the grid does not resolve, at the price of some variance.

    Attributes:
        domain: that of the flow.
        sides: for each axis the kinds of its lower and upper side; ``None`` where it is periodic.
        diffusivity: ``params -> D``.
        values: ``(params, time) -> ((lower, upper), ...)``, numbers or arrays of one layer, what the sides of kind
            ``value`` and ``flux`` are given; ``None`` for a periodic axis. By default all are zero.
        source: ``(scalar, velocity, params, time) -> array``, what is added per volume and time; or None.
        scheme: of advection, "central" or "bounded".

    Raises:
        UserError: if the sides do not fit the domain, or a name is unknown.

    Reference: van Leer, J. Comput. Phys. 14, 361 (1974), doi:10.1016/0021-9991(74)90019-9.
    """

    domain: Domain
    sides: tuple[Sides | None, ...]
    diffusivity: Callable[[Params], jax.Array]
    values: Callable[[Params, jax.Array], SideValues] | None = None
    source: Callable[[jax.Array, Velocity, Params, jax.Array], jax.Array] | None = None
    scheme: str = "central"

    def __post_init__(self) -> None:
        """Refuse sides that do not fit the domain."""
        if self.scheme not in SCHEMES:
            raise UserError(f"scheme = '{self.scheme}' is unknown{nearest(self.scheme, list(SCHEMES))}")
        if [pair is None for pair in self.sides] != [pair is None for pair in self.domain.sides]:
            raise UserError(
                f"sides = {self.sides!r} of the scalar; give two for each bounded axis, None for the others"
            )
        for i, pair in enumerate(self.sides):
            for side, kind in enumerate(pair or ()):
                if kind not in KINDS:
                    raise UserError(
                        f"side '{kind}' of the scalar on axis {'xyz'[i]} is unknown{nearest(kind, list(KINDS))}"
                    )
                if kind != "value" and (self.domain.sides[i] or ())[side] == "inflow":
                    raise UserError(f"the scalar that flows in along {'xyz'[i]} is not given; make that side a 'value'")

    def rate(self, scalar: jax.Array, velocity: Velocity, params: Params, time: jax.Array) -> jax.Array:
        """Return the rate of change at the cell centers.

        Args:
            scalar: at the cell centers.
            velocity: components on their faces.
            params: parameters.
            time: time.
        """
        grid = self.domain.grid
        change = jnp.zeros_like(scalar)
        for axis in range(grid.dimension):
            carried = _carried(scalar, inside(velocity[axis], axis, grid), axis, grid, self.scheme)
            diffusing = -self.diffusivity(params) * difference_at_faces(scalar, axis, grid)
            if not grid.axes[axis].periodic:
                lower, upper = (self._value(scalar, params, time, axis, side) for side in (0, 1))
                carried = with_ends(lower, carried, upper, axis)
                lower, upper = (self.side_flux(scalar, params, time, axis, side) for side in (0, 1))
                diffusing = with_ends(lower, diffusing, -upper, axis)
            change = change - difference_at_centers(velocity[axis] * carried + diffusing, axis, grid)
        return change if self.source is None else change + self.source(scalar, velocity, params, time)

    def side_flux(self, scalar: jax.Array, params: Params, time: jax.Array, axis: int, side: int) -> jax.Array:
        """Return what diffuses into the fluid through one side, per area and time, as an array of one layer.

        Args:
            scalar: at the cell centers.
            params: parameters.
            time: time.
            axis: across the side, a bounded one.
            side: 0 for the lower, 1 for the upper one.
        """
        kind = (self.sides[axis] or ())[side]
        given = self._given(scalar, params, time, axis, side)
        if kind == "flux":
            return given
        if kind == "insulated":
            return jnp.zeros_like(given)
        slope = slope_at_side(scalar, given, axis, side, self.domain.grid)
        return self.diffusivity(params) * (slope if side else -slope)

    def _given(self, scalar: jax.Array, params: Params, time: jax.Array, axis: int, side: int) -> jax.Array:
        pair = None if self.values is None else self.values(params, time)[axis]
        nearest_cells = end(scalar, axis, side)
        return jnp.broadcast_to(like(scalar, 0.0 if pair is None else pair[side]), nearest_cells.shape)

    def _value(self, scalar: jax.Array, params: Params, time: jax.Array, axis: int, side: int) -> jax.Array:
        """Return what a flow through one side carries."""
        if (self.sides[axis] or ())[side] == "value":
            return self._given(scalar, params, time, axis, side)
        return end(scalar, axis, side)


def mean_scalar(scalar: jax.Array, grid: Grid) -> jax.Array:
    """Return the mean over the volume."""
    for i, axis in enumerate(grid.axes):
        scalar = scalar * like(scalar, grid.along(axis.widths / axis.length, i))
    return jnp.sum(scalar)


def scalar_variance(scalar: jax.Array, grid: Grid) -> jax.Array:
    """Return the mean over the volume of the squared distance from the mean."""
    return mean_scalar((scalar - mean_scalar(scalar, grid)) ** 2, grid)


def _carried(scalar: jax.Array, flow: jax.Array, axis: int, grid: Grid, scheme: str) -> jax.Array:
    """Return the scalar on the inner faces across an axis (all if periodic), where ``flow`` crosses them."""
    if scheme == "central":
        return mean_at_faces(scalar, axis, grid)
    lower, upper = neighbors(scalar, axis, grid)
    step = upper - lower
    if grid.axes[axis].periodic:
        below, above = jnp.roll(step, 1, axis), jnp.roll(step, -1, axis)
    else:
        padded = jnp.pad(step, [(1, 1) if i == axis else (0, 0) for i in range(step.ndim)])
        size = padded.shape[axis]
        below = jax.lax.slice_in_dim(padded, 0, size - 2, axis=axis)
        above = jax.lax.slice_in_dim(padded, 2, size, axis=axis)
    return jnp.where(flow > 0, lower + _limited(below, step) / 2, upper - _limited(above, step) / 2)


def _limited(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the harmonic mean of two steps, zero where they differ in sign."""
    same = a * b > 0
    return jnp.where(same, 2 * a * b / jnp.where(same, a + b, 1), 0)
