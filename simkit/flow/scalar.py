"""Scalars carried by a flow, such as temperature, dye and concentration: advection and diffusion."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.flow.boundary.domain import Domain, Sides, Velocity, end, like
from simkit.flow.boundary.slopes import slope_at_side
from simkit.flow.grid import Grid
from simkit.flow.operators.differences import (
    blend,
    difference_at_centers,
    difference_at_faces,
    inside,
    mean_at_faces,
    neighbors,
    total,
    with_ends,
)
from simkit.flow.operators.diffusion import second_difference_at_centers
from simkit.flow.solvers.deferred import deferred
from simkit.flow.solvers.diffusion import diffusion_solver
from simkit.flow.solvers.modes import Periodic, SecondDifference

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
    value       the slope to the given value, ``domain.wall_slope``   the given value
    flux        the given amount per area and time, into the fluid    the value in the nearest cells
    insulated   none                                                  the value in the nearest cells
    ==========  ====================================================  ============================================

    Diffusion is implicit along the axes along which friction is, see `simkit.flow.equations.Equations`; along the
    others it limits the time step, see `simkit.flow.stepping.time_step.check_time_step`.

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
            ``value`` and ``flux`` are given; ``None`` for a periodic axis, 0.0 for an insulated side. By default all
            are zero.
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

    def rate(
        self, scalar: jax.Array, velocity: Velocity, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> jax.Array:
        """Return the rate of change at the cell centers, without diffusion along implicit axes.

        Args:
            scalar: at the cell centers.
            velocity: components on their faces.
            params: parameters.
            time: time.
            explicit: axes along which it diffuses.
        """
        grid, values = self.domain.grid, self.on_sides(params, time)
        change = jnp.zeros_like(scalar)
        for axis in range(grid.dimension):
            carried = _carried(scalar, inside(velocity[axis], axis, grid), axis, grid, self.scheme)
            if not grid.axes[axis].periodic:
                lower, upper = (self._value(scalar, values, axis, side) for side in (0, 1))
                carried = with_ends(lower, carried, upper, axis)
            flux = velocity[axis] * carried
            if axis in explicit:
                flux = flux + self._diffusing(scalar, values, params, axis)
            change = change - difference_at_centers(flux, axis, grid)
        return change if self.source is None else change + self.source(scalar, velocity, params, time)

    def implicit_diffusion(self, axes: tuple[int, ...]) -> Callable[..., jax.Array] | None:
        """Return the function that adds the diffusion along some axes to an explicit change; None without any.

            change - s part D L change = explicit change + part D L scalar

        ``solve(change, scalar, params, time, part, share)`` returns the change. Values and fluxes on the sides act with
        the weight 1 - s as they are at ``time`` and with the share s as at ``time + part``.

        Args:
            axes: along which diffusion is implicit.
        """
        if not axes:
            return None
        grid = self.domain.grid
        solver = deferred(
            lambda: diffusion_solver([self._matrix(i) if i in axes else None for i in range(grid.dimension)])
        )

        def solve(
            change: jax.Array,
            scalar: jax.Array,
            params: Params,
            time: jax.Array,
            part: jax.Array,
            share: jax.Array | float,
        ) -> jax.Array:
            values = blend(self.on_sides(params, time), self.on_sides(params, time + part), share)
            fluxes = (self._diffusing(scalar, values, params, axis) for axis in axes)
            spread = total(difference_at_centers(flux, axis, grid) for axis, flux in zip(axes, fluxes, strict=True))
            return solver(change - part * spread, share * part * self.diffusivity(params))

        return solve

    def on_sides(self, params: Params, time: jax.Array) -> SideValues:
        """Return what the sides are given."""
        if self.values is None:
            return tuple(None if pair is None else (0.0, 0.0) for pair in self.sides)
        values = self.values(params, time)
        if len(values) != len(self.sides):
            raise UserError(f"the values of the scalar are for {len(values)} axes; give a pair or None for each axis")
        for i, (kinds, given) in enumerate(zip(self.sides, values, strict=True)):
            needed = kinds is not None and set(kinds) != {"insulated"}
            if kinds is None and given is not None:
                raise UserError(f"the scalar is given values on axis {'xyz'[i]}, which is periodic; give None there")
            if needed and (given is None or len(given) != 2):
                raise UserError(f"the scalar needs two values on axis {'xyz'[i]}, for its sides {kinds}; give a pair")
            for kind, value in zip(kinds or (), given or (), strict=False):
                if kind == "insulated" and not (isinstance(value, int | float) and value == 0):
                    raise UserError(
                        f"the scalar is given a value on an insulated side of axis {'xyz'[i]}, which does not use it; "
                        "give 0.0 there, or make the side a 'value' or a 'flux'"
                    )
        return values

    def side_flux(self, scalar: jax.Array, params: Params, time: jax.Array, axis: int, side: int) -> jax.Array:
        """Return what diffuses into the fluid through one side, per area and time, as an array of one layer.

        Args:
            scalar: at the cell centers.
            params: parameters.
            time: time.
            axis: across the side, a bounded one.
            side: 0 for the lower, 1 for the upper one.
        """
        return self._entering(scalar, self.on_sides(params, time), params, axis, side)

    def _entering(self, scalar: jax.Array, values: SideValues, params: Params, axis: int, side: int) -> jax.Array:
        kind = (self.sides[axis] or ())[side]
        given = self._given(scalar, values, axis, side)
        if kind == "flux":
            return given
        if kind == "insulated":
            return jnp.zeros_like(given)
        slope = slope_at_side(scalar, given, axis, side, self.domain)
        return self.diffusivity(params) * (slope if side else -slope)

    def _diffusing(self, scalar: jax.Array, values: SideValues, params: Params, axis: int) -> jax.Array:
        """Return the diffusive flux through all faces across an axis."""
        inner = -self.diffusivity(params) * difference_at_faces(scalar, axis, self.domain.grid)
        if self.sides[axis] is None:
            return inner
        lower, upper = (self._entering(scalar, values, params, axis, side) for side in (0, 1))
        return with_ends(lower, inner, -upper, axis)

    def _matrix(self, axis: int) -> SecondDifference:
        a, pair = self.domain.grid.axes[axis], self.sides[axis]
        if pair is None:
            return Periodic(a.cells, a.length / a.cells)
        return second_difference_at_centers(axis, (pair[0] == "value", pair[1] == "value"), self.domain)

    def _given(self, scalar: jax.Array, values: SideValues, axis: int, side: int) -> jax.Array:
        pair = values[axis]
        return jnp.broadcast_to(like(scalar, 0.0 if pair is None else pair[side]), end(scalar, axis, side).shape)

    def _value(self, scalar: jax.Array, values: SideValues, axis: int, side: int) -> jax.Array:
        """Return what a flow through one side carries."""
        if (self.sides[axis] or ())[side] == "value":
            return self._given(scalar, values, axis, side)
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
