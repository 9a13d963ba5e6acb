"""Scalars carried by a flow, one or several by name: advection, diffusion and sources."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.settings import word
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain, check_same, entries_on_sides, known_sides
from simkit.flow.boundary.ghost_layers import Share
from simkit.flow.boundary.scalar_sides import ScalarSide
from simkit.flow.boundary.side_data import SideValues, on_side, values_on, with_values
from simkit.flow.grid import Grid, Velocity, like
from simkit.flow.operators.differences import (
    blend,
    difference_at_centers,
    difference_at_faces,
    inside,
    linear_at_faces,
    mean_at_faces,
    neighbors,
    total,
    with_ends,
)
from simkit.flow.parts import SCALAR_SIDES
from simkit.flow.solvers.diffusion import solver_between_sides
from simkit.flow.viscosity import number_of_arguments

SCHEMES = ("central", "bounded")


@dataclasses.dataclass(frozen=True, eq=False)
class TransportedScalar:
    """A scalar c at the cell centers, carried by the flow of `simkit.flow.equations.Equations`.

        dc/dt + div(u c) = div(D grad(c)) + source

    ==========  ====================================================  ============================================
    side        diffusion through it                                  what a flow through it carries
    ==========  ====================================================  ============================================
    value       the slope to the given value, ``domain.wall_slope``   the given value
    flux        the given amount per area and time, into the fluid    the value in the nearest cells
    robin       coefficient times (outside - the value there)         the value in the nearest cells
    insulated   none                                                  the value in the nearest cells
    ==========  ====================================================  ============================================

    On an open side of the flow, where the pressure is given, a value is that of the fluid outside: inflow carries it,
    outflow carries the value in the nearest cells, and nothing diffuses.

    These kinds are known by name; others are objects, see `simkit.flow.boundary.scalar_sides.ScalarSide`.

    Diffusion is implicit along the same axes as friction, see `simkit.flow.equations.Equations`; along the others, and
    wherever D varies, it limits the time step, see `simkit.flow.stepping.time_step.check_time_step`. A D that varies is
    interpolated linearly from the centers to the faces; on a side it is that of the nearest cells.

    Sides through which the flow enters need a value; sides through which it leaves are best insulated.

    Advection is the divergence of a flux through the faces, so that the mean over the volume changes only by fluxes
    through the sides. ``central`` takes the plain mean of both neighbors on each face: of second order, and without
    diffusion it conserves the variance too, in a solenoidal flow on any grid. ``bounded`` takes van Leer's limited
    linear reconstruction from upstream: of second order where the scalar is smooth, and free of new extrema up to
    errors of the time step; for fronts that the grid does not resolve, at the cost of some variance.

    Attributes:
        domain: that of the flow.
        sides: for each axis its lower and upper side, names of kinds or objects; ``None`` where it is periodic.
        diffusivity: ``params -> D``, a number; or ``(scalar, params, time) -> D``, an array at the cell centers, where
            ``scalar`` is that of `source`.
        values: ``(params, time) -> ((lower, upper), ...)``, numbers or arrays of one layer, the data of sides of kind
            ``value`` and ``flux``; ``None`` for a periodic axis, 0.0 for an insulated side. Zero by default.
        source: ``(scalar, velocity, params, time) -> array``, the rate of production per volume; or None. With several
            scalars, see `simkit.flow.scalar`, ``scalar`` is a dictionary of all of them by name.
        scheme: of advection, "central" or "bounded".

    Raises:
        UserError: if the sides do not fit the domain, or a name is unknown.

    Example:
        >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 1.0))
        >>> box = flow.domain(axes, (None, ("wall", "wall")))
        >>> heat = flow.TransportedScalar(
        ...     box,
        ...     sides=(None, ("value", "insulated")),
        ...     diffusivity=lambda params: params["kappa"],
        ...     values=lambda params, time: (None, (1.0, 0.0)),
        ... )
        >>> heat.on_sides({"kappa": 0.1}, jnp.array(0.0))
        (None, (1.0, 0.0))

    Reference: van Leer, J. Comput. Phys. 14, 361 (1974), doi:10.1016/0021-9991(74)90019-9.
    """

    domain: Domain
    sides: tuple[tuple[str | ScalarSide, str | ScalarSide] | None, ...]
    diffusivity: Callable[[Params], jax.Array] | Callable[[Any, Params, jax.Array], jax.Array]
    values: Callable[[Params, jax.Array], SideValues] | None = None
    source: Callable[[Any, Velocity, Params, jax.Array], jax.Array] | None = None
    scheme: str = "central"

    def __post_init__(self) -> None:
        """Refuse sides that do not fit the domain."""
        word("of advection", tuple(SCHEMES)).check(self.scheme, "scheme")
        if [pair is None for pair in self.sides] != [pair is None for pair in self.domain.sides]:
            raise UserError(
                f"sides = {self.sides!r} of the scalar; give two for each bounded axis, None for the others"
            )
        for i, pair in enumerate(self.known):
            for side, what in enumerate(pair or ()):
                if not what.is_given and self.domain.side(i, side).enters:
                    raise UserError(f"the scalar that flows in along {'xyz'[i]} is not given; make that side a 'value'")

    @functools.cached_property
    def known(self) -> tuple[tuple[ScalarSide, ScalarSide] | None, ...]:
        """For each axis its lower and upper side as objects, None where it is periodic."""
        return tuple(
            None if pair is None else known_sides(pair, i, " of the scalar", SCALAR_SIDES, ScalarSide)
            for i, pair in enumerate(self.sides)
        )

    @functools.cached_property
    def varies(self) -> bool:
        """Whether the diffusivity is an array."""
        return number_of_arguments(self.diffusivity) > 1

    def diffusivity_at(self, scalar: Any, params: Params, time: jax.Array) -> jax.Array:
        """Return the diffusivity, a number, or an array at the cell centers if it varies.

        Args:
            scalar: at the cell centers; of several scalars all of them by name.
            params: parameters.
            time: time.
        """
        return self.diffusivity(scalar, params, time) if self.varies else self.diffusivity(params)  # type: ignore[call-arg]

    def spreading(
        self, scalar: Any, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> list[tuple[jax.Array, tuple[int, ...]]]:
        """Return the largest diffusivity and the axes along which diffusion is explicit.

        Args:
            scalar: as for `diffusivity_at`.
            params: parameters.
            time: time.
            explicit: axes along which friction is explicit.
        """
        axes = tuple(range(self.domain.grid.dimension)) if self.varies else explicit
        return [(jnp.max(self.diffusivity_at(scalar, params, time)), axes)]

    def rate(
        self, scalar: jax.Array, velocity: Velocity, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> jax.Array:
        """Return the rate of change at the cell centers, without diffusion along implicit axes.

        Arguments are those of `transport`.
        """
        change = self.transport(scalar, velocity, params, time, explicit, scalar)
        made = self.production(scalar, velocity, params, time)
        return change if made is None else change + made

    def production(
        self, scalar: jax.Array, velocity: Velocity, params: Params, time: jax.Array
    ) -> jax.Array | float | None:
        """Return the source, a number or an array at the cell centers; None without one.

        Args:
            scalar: at the cell centers.
            velocity: components on their faces.
            params: parameters.
            time: time.
        """
        return None if self.source is None else self.source(scalar, velocity, params, time)

    def transport(
        self,
        scalar: jax.Array,
        velocity: Velocity,
        params: Params,
        time: jax.Array,
        explicit: tuple[int, ...],
        every: Any,
    ) -> jax.Array:
        """Return the rate of change at the cell centers without the source, and without diffusion along implicit axes.

        Args:
            scalar: at the cell centers.
            velocity: components on their faces.
            params: parameters.
            time: time.
            explicit: axes along which diffusion is explicit, if the diffusivity is a number.
            every: the scalar; of several scalars all of them by name.
        """
        grid, values = self.domain.grid, self.on_sides(params, time)
        change, diffusivity = jnp.zeros_like(scalar), self.diffusivity_at(every, params, time)
        for axis in range(grid.dimension):
            carried = _carried(scalar, inside(velocity[axis], axis, grid), axis, grid, self.scheme)
            if not grid.axes[axis].periodic:
                lower, upper = (self._carried(scalar, velocity, values, axis, side) for side in (0, 1))
                carried = with_ends(lower, carried, upper, axis)
            flux = velocity[axis] * carried
            if axis in explicit or self.varies:
                flux = flux + self._diffusing(scalar, values, diffusivity, axis)
            change = change - difference_at_centers(flux, axis, grid)
        return change

    def implicit_diffusion(self, axes: tuple[int, ...]) -> Callable[..., jax.Array] | None:
        """Return the function that adds implicit diffusion along some axes to an explicit change; None without any.

            change - s part D L change = explicit change + part D L scalar

        ``solve(change, scalar, params, time, part, share)`` returns the change, with s = ``share``. Values and fluxes
        on the sides are weighted: 1 - s times those at ``time`` plus s times those at ``time + part``.

        Args:
            axes: along which diffusion is implicit.
        """
        if not axes or self.varies:
            return None
        grid = self.domain.grid
        solver = solver_between_sides(self.domain, axes)

        def solve(
            change: jax.Array,
            scalar: jax.Array,
            params: Params,
            time: jax.Array,
            part: jax.Array,
            share: jax.Array | float,
        ) -> jax.Array:
            values = blend(self.on_sides(params, time), self.on_sides(params, time + part), share)
            diffusivity = self.diffusivity_at(scalar, params, time)
            fluxes = (self._diffusing(scalar, values, diffusivity, axis) for axis in axes)
            spread = total(difference_at_centers(flux, axis, grid) for axis, flux in zip(axes, fluxes, strict=True))
            shares = {i: self._shares(i, values, diffusivity) for i in axes if self.known[i] is not None}
            return solver([change - part * spread], share * part * diffusivity, [shares])[0]

        return solve

    def on_sides(self, params: Params, time: jax.Array) -> SideValues:
        """Return the boundary data of the sides, with their own values."""
        if self.values is None:
            values = tuple(None if pair is None else (0.0, 0.0) for pair in self.sides)
        else:
            values = self._checked(self.values(params, time))
        return with_values(values, self.known, params, time)

    def _checked(self, values: SideValues) -> SideValues:
        for i, end, value in entries_on_sides("the scalar", values, self.domain):
            side = (self.known[i] or ())[end]
            if not side.takes and not (isinstance(value, int | float) and value == 0):
                raise UserError(
                    f"the scalar is given a value on an {side.kind} side of axis {'xyz'[i]}, which does not use "
                    "it; give 0.0 there, or make the side a 'value' or a 'flux'"
                )
        return values

    def side_flux(
        self, scalar: jax.Array, params: Params, time: jax.Array, axis: int, side: int, every: Any = None
    ) -> jax.Array:
        """Return the diffusive flux into the fluid through one side, per area and time, as an array of one layer.

        Args:
            scalar: at the cell centers.
            params: parameters.
            time: time.
            axis: bounded axis normal to the side.
            side: 0 for the lower, 1 for the upper one.
            every: all scalars by name, where there are several.

        Example:
            >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 1.0))
            >>> box = flow.domain(axes, (None, ("wall", "wall")))
            >>> values = lambda params, time: (None, (1.0, 0.0))
            >>> heat = flow.TransportedScalar(box, (None, ("value", "value")), lambda params: params["kappa"], values)
            >>> scalar = jnp.broadcast_to(1 - box.grid.axes[1].centers, (4, 8))
            >>> flux = heat.side_flux(scalar, {"kappa": 0.1}, jnp.array(0.0), axis=1, side=0)
            >>> print(f"{flux.mean():.3f} = kappa (1 - 0) / 1")
            0.100 = kappa (1 - 0) / 1
        """
        diffusivity = self.diffusivity_at(scalar if every is None else every, params, time)
        return self._entering(scalar, self.on_sides(params, time), diffusivity, axis, side)

    def _entering(
        self, scalar: jax.Array, values: SideValues, diffusivity: jax.Array, axis: int, side: int
    ) -> jax.Array:
        what, place = self._side(axis, side), self.domain.place(axis, side)
        side_values, own = self._given(scalar, values, axis, side), values_on(values, axis, side, what)
        if self._is_outside(axis, side):
            return jnp.zeros_like(side_values)
        diffusivity = place.nearest(diffusivity) if self.varies else diffusivity
        return what.entering(scalar, side_values, diffusivity, place, own)

    def _diffusing(self, scalar: jax.Array, values: SideValues, diffusivity: jax.Array, axis: int) -> jax.Array:
        """Return the diffusive flux through all faces across an axis."""
        grid = self.domain.grid
        on_faces = linear_at_faces(diffusivity, axis, grid) if self.varies else diffusivity
        inner = -on_faces * difference_at_faces(scalar, axis, grid)
        if self.sides[axis] is None:
            return inner
        lower, upper = (self._entering(scalar, values, diffusivity, axis, side) for side in (0, 1))
        return with_ends(lower, inner, -upper, axis)

    def _shares(self, axis: int, values: SideValues, diffusivity: jax.Array) -> tuple[Share, Share]:
        def share(side: int) -> Share:
            if self._is_outside(axis, side):
                return 0.0
            what = self._side(axis, side)
            return what.share(self.domain.place(axis, side), values_on(values, axis, side, what), diffusivity)

        return share(0), share(1)

    def _side(self, axis: int, side: int) -> ScalarSide:
        pair = self.known[axis]
        assert pair is not None, "a periodic axis has no sides"
        return pair[side]

    def _given(self, scalar: jax.Array, values: SideValues, axis: int, side: int) -> jax.Array:
        side_values = 0.0 if values[axis] is None else on_side(values, axis, side)
        return self.domain.place(axis, side).layer(scalar, side_values)

    def _is_outside(self, axis: int, side: int) -> bool:
        """Return whether a side is open and its value is that of the fluid outside."""
        return self._side(axis, side).is_given and self.domain.side(axis, side).gives_pressure

    def _carried(self, scalar: jax.Array, velocity: Velocity, values: SideValues, axis: int, side: int) -> jax.Array:
        """Return the scalar that a flow through one side carries."""
        place = self.domain.place(axis, side)
        carried = self._side(axis, side).carried(scalar, self._given(scalar, values, axis, side), place)
        if not self._is_outside(axis, side):
            return carried
        leaves = place.outward * place.nearest(velocity[axis]) > 0
        return jnp.where(leaves, place.nearest(scalar), carried)


def mean_scalar(scalar: jax.Array, grid: Grid, fluid: jax.Array | None = None) -> jax.Array:
    """Return the mean over the volume, or over the part of it that is fluid.

    Args:
        scalar: at the cell centers.
        grid: the grid.
        fluid: fraction of each cell that is fluid, see `simkit.flow.obstacles.bodies.Bodies.fluid`; None for all.
    """
    if fluid is not None:
        return mean_scalar(fluid * scalar, grid) / mean_scalar(fluid, grid)
    for i, axis in enumerate(grid.axes):
        scalar = scalar * like(scalar, grid.along(axis.widths / axis.length, i))
    return jnp.sum(scalar)


def scalar_variance(scalar: jax.Array, grid: Grid, fluid: jax.Array | None = None) -> jax.Array:
    """Return the mean of the squared distance from the mean; arguments are those of `mean_scalar`."""
    return mean_scalar((scalar - mean_scalar(scalar, grid, fluid)) ** 2, grid, fluid)


def _carried(scalar: jax.Array, flow: jax.Array, axis: int, grid: Grid, scheme: str) -> jax.Array:
    """Return the scalar carried by ``flow`` through the inner faces of an axis (all if periodic)."""
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
    """Return the harmonic mean of two differences, zero where they differ in sign (van Leer's limiter)."""
    same = a * b > 0
    return jnp.where(same, 2 * a * b / jnp.where(same, a + b, 1), 0)


type Scalars = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class TransportedScalars:
    """Scalars by name, carried by the flow of `simkit.flow.equations.Equations`.

    The scalar of the state, of ``Equations.force`` and of every `TransportedScalar.source` is then a dictionary of all
    of them.

    Attributes:
        scalars: by name, at least one, all in one domain.

    Raises:
        UserError: if there is none, or their domains differ.

    Example:
        >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 1.0))
        >>> box = flow.domain(axes, (None, ("wall", "wall")))
        >>> dye = flow.TransportedScalar(box, (None, ("insulated", "insulated")), lambda params: 0.1)
        >>> both = flow.TransportedScalars({"heat": dye, "salt": dye})
        >>> sorted(both.diffusivity_at({"heat": 0.0, "salt": 0.0}, {}, jnp.array(0.0)))
        ['heat', 'salt']
    """

    scalars: Mapping[str, TransportedScalar]

    def __post_init__(self) -> None:
        """Refuse scalars of different domains."""
        if not self.scalars:
            raise UserError("scalars is empty; give at least one, or remove the scalar")
        for name, one in self.scalars.items():
            check_same(f"the scalar '{name}'", one.domain, self.domain)

    @property
    def domain(self) -> Domain:
        """The domain of all of them."""
        return next(iter(self.scalars.values())).domain

    def diffusivity_at(self, scalar: Scalars, params: Params, time: jax.Array) -> dict[str, jax.Array]:
        """Return the diffusivity of each, see `TransportedScalar.diffusivity_at`."""
        return {name: one.diffusivity_at(scalar, params, time) for name, one in self.scalars.items()}

    def spreading(
        self, scalar: Scalars, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> list[tuple[jax.Array, tuple[int, ...]]]:
        """Return the largest diffusivity of each, see `TransportedScalar.spreading`."""
        return [each for one in self.scalars.values() for each in one.spreading(scalar, params, time, explicit)]

    def rate(
        self, scalar: Scalars, velocity: Velocity, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> Scalars:
        """Return the rates of change at the cell centers, without diffusion along implicit axes.

        Args:
            scalar: all of them.
            velocity: components on their faces.
            params: parameters.
            time: time.
            explicit: axes along which diffusion is explicit.
        """
        rates, made = {}, self.production(scalar, velocity, params, time)
        for name, one in self.scalars.items():
            change = one.transport(scalar[name], velocity, params, time, explicit, scalar)
            source = made[name]
            rates[name] = change if source is None else change + source
        return rates

    def production(
        self, scalar: Scalars, velocity: Velocity, params: Params, time: jax.Array
    ) -> dict[str, jax.Array | float | None]:
        """Return the source of each, None for those without one.

        Args:
            scalar: all of them.
            velocity: components on their faces.
            params: parameters.
            time: time.
        """
        return {
            name: None if one.source is None else one.source(scalar, velocity, params, time)
            for name, one in self.scalars.items()
        }

    def implicit_diffusion(self, axes: tuple[int, ...]) -> Callable[..., Scalars] | None:
        """Return the function that adds implicit diffusion along some axes to explicit changes; None if there are none.

        Args:
            axes: along which diffusion is implicit, see `TransportedScalar.implicit_diffusion`.
        """
        implicit = {name: one.implicit_diffusion(axes) for name, one in self.scalars.items()}
        solvers = {name: one for name, one in implicit.items() if one is not None}
        if not solvers:
            return None

        def solve(
            change: Scalars,
            scalar: Scalars,
            params: Params,
            time: jax.Array,
            part: jax.Array,
            share: jax.Array | float,
        ) -> Scalars:
            solved = (
                (name, one(change[name], scalar[name], params, time, part, share)) for name, one in solvers.items()
            )
            return {**change, **dict(solved)}

        return solve
