"""Positions of bodies in a flow and the loads on each, for every method that imposes their boundary conditions."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.arrays import Velocity, like
from simkit.flow.boundary.domain import Domain
from simkit.flow.diagnosis.measures import integral
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.checks import check_apart, check_obstacle, check_scalar
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.indicator import indicator
from simkit.flow.obstacles.interior import gained_inside, kept_inside, rate_inside
from simkit.flow.obstacles.shapes import Shape
from simkit.flow.operators.differences import total

if TYPE_CHECKING:
    from simkit.flow.equations import Equations


@dataclasses.dataclass(frozen=True, eq=False)
class Bodies:
    """One body or several in a flow.

    Attributes:
        domain: the domain.
        bodies: by name, in the order of their loads.
    """

    domain: Domain
    bodies: Mapping[str, Body]

    def __post_init__(self) -> None:
        """Refuse a flow without bodies."""
        if not self.bodies:
            raise UserError("bodies is empty; give at least one body, or remove the obstacle")

    @property
    def turns(self) -> int:
        """Number of components of force and torque on a body: 3 in the plane, 6 in space."""
        return 3 if self.domain.grid.dimension == 2 else 6

    @property
    def scalars(self) -> tuple[str | None, ...]:
        """Names of the scalars that bodies act on; None for a single one without a name."""
        return tuple(next(iter(self.bodies.values())).surfaces)

    @property
    def loads(self) -> int:
        """Number of components of force and torque on all bodies, and of the amounts of a scalar that they give."""
        return (self.turns + len(self.scalars)) * len(self.bodies)

    @property
    def moves(self) -> bool:
        """Whether any body moves."""
        return any(body.motion is not None for body in self.bodies.values())

    @property
    def swells(self) -> bool:
        """Whether a body changes its size."""
        return any(body.motion is not None and body.motion.size is not None for body in self.bodies.values())

    @property
    def averages_pressure(self) -> bool:
        """Whether the pressure of a state is the mean over a step instead of that of its last stage."""
        return False

    def load_on(self, name: str, load: jax.Array) -> jax.Array:
        """Return force and torque on one body: ``(F_x, F_y, M)``, in space ``(F_x, F_y, F_z, M_x, M_y, M_z)``.

        Args:
            name: of the body.
            load: loads of all bodies, ``FlowState.load``.
        """
        index = list(self.bodies).index(name)
        return load[index * self.turns : (index + 1) * self.turns]

    def heat_of(self, name: str, load: jax.Array, scalar: str | None = None) -> jax.Array:
        """Return the amount of a scalar that one body gives to the surrounding fluid per time.

        What a source of the scalar produces inside the body is no part of it.

        Args:
            name: of the body.
            load: loads of all bodies, ``FlowState.load``.
            scalar: name of the scalar, if there are several.
        """
        count = len(self.bodies)
        return load[count * (self.turns + self.scalars.index(scalar)) + list(self.bodies).index(name)]

    def shapes(self, params: Params, time: jax.Array | float = 0.0) -> dict[str, Shape]:
        """Return the shapes of all bodies at their positions at a time."""
        return {name: body.shape_at(params, body.now(params, time), self.domain) for name, body in self.bodies.items()}

    def distance(self, params: Params, time: jax.Array | float) -> jax.Array:
        """Return the signed distance of the cell centers from the nearest body, negative inside."""
        # The barrier keeps the compiler from folding constants, with a rounding that differs between programs.
        points = computed_once([jnp.asarray(p, jnp.asarray(time).dtype) for p in positions(None, self.domain.grid)])
        found = [distance_and_normal(shape, points)[0] for shape in self.shapes(params, time).values()]
        nearest = found[0]
        for other in found[1:]:
            nearest = jnp.minimum(nearest, other)
        return computed_once(nearest)

    def fluid(self, component: int | None, params: Params, time: jax.Array | float) -> jax.Array:
        """Return the fraction of the volume that is fluid at a time, from 0 in bodies to 1 outside them.

        Args:
            component: of the velocity, for the volumes around its inner faces; None for the cells.
            params: parameters.
            time: the time, scalar.
        """
        dtype, shapes = jnp.asarray(time).dtype, self.shapes(params, time).values()
        bodies = total(indicator(shape, component, self.domain.grid, dtype) for shape in shapes)
        # The indicator leaves the range from 0 to 1 beside the surface, where a mean needs weights that are positive.
        return 1 - jnp.clip(bodies, 0, 1)

    def check(self, params: Params, times: Sequence[float] = (0.0,)) -> None:
        """Refuse bodies that do not fit into their domain, or come too close to each other.

        Args:
            params: the values to run with.
            times: times of the check, by default the start.

        Raises:
            UserError: names the body, and the time if that is not the start.
        """
        for time in times:
            try:
                self.check_places(params, time)
            except UserError as error:
                if not time:
                    raise
                raise UserError(f"at time {time:g}: {error}") from None

    def check_places(self, params: Params, time: float) -> None:
        """Refuse bodies that do not fit at a time."""
        shapes = self.shapes(params, time)
        for name, body in self.bodies.items():
            across = None if body.motion is None else body.now(params, time).position
            check_obstacle(shapes[name], self.domain, across, name, body.now(params, time).position)
        check_apart(shapes, self.domain)

    def check_equations(self, equations: "Equations") -> None:
        """Refuse equations that bodies do not support.

        Raises:
            UserError: names the unsupported part.
        """
        check_scalar(equations, {name: tuple(body.surfaces) for name, body in self.bodies.items()}, self.swells)
        if self.swells and not (equations.domain.exits() or equations.domain.open_sides()):
            raise UserError(
                "a body changes its size, but no fluid can leave the domain; make one side an outflow or a pressure "
                "side, or give its motion no size"
            )

    def crossing_rate(self, params: Params, time: jax.Array) -> jax.Array | None:
        """Return the largest number of cells per time that points of bodies cross; None where all are at rest.

            max over the cell centers inside of |U|/dx + |V|/dy + |W|/dz

        Args:
            params: parameters.
            time: the time, scalar.
        """
        grid, rates = self.domain.grid, []
        points = [like(time, p) for p in positions(None, grid)]
        for body in self.bodies.values():
            if body.motion is None and body.spin is None:
                continue
            now = body.now(params, time)
            arm = body.arm(points, now, self.domain)
            parts = [now.component(i, arm) * like(time, grid.along(1 / a.widths, i)) for i, a in enumerate(grid.axes)]
            inside = distance_and_normal(body.shape_at(params, now, self.domain), points)[0] < 0
            rates.append(jnp.max(jnp.where(inside, total(jnp.abs(part) for part in parts), 0)))
        return functools.reduce(jnp.maximum, rates) if rates else None

    def source(self, params: Params, time: jax.Array) -> jax.Array | None:
        """Return the divergence that fills the insides of bodies that change their size; None where none does."""
        if not self.swells:
            return None
        fields = []
        for body in self.bodies.values():
            now, grid = body.now(params, time), self.domain.grid
            if now.growth is None:
                continue
            shape = body.shape_at(params, now, self.domain)
            fields.append(grid.dimension * now.growth * indicator(shape, None, grid, jnp.asarray(time).dtype))
        return total(fields)

    def hold_scalar(
        self, scalar: Any, before: Any, diffusivity: Any, params: Params, time: jax.Array
    ) -> tuple[Any, jax.Array]:
        """Return a scalar (or several by name) with the bodies' conditions imposed, and the amount added by each body.

        Args:
            scalar: at the cell centers.
            before: that at the start of the stage.
            diffusivity: of the scalar; of several by name.
            params: parameters.
            time: at the end of the stage.
        """
        added, held = [], scalar
        for name in self.scalars:
            now, at_start, spreads = (of_name(every, name) for every in (scalar, before, diffusivity))
            changed = now
            for body in self.bodies.values():
                shape = body.shape_at(params, body.now(params, time), self.domain)
                surface = body.surfaces[name]
                change = surface.force(now, at_start, shape, self.domain, spreads, params, time)
                changed = changed + change
                added.append(integral(change, self.domain.grid))
            held = changed if name is None else {**held, name: changed}
        return held, jnp.stack(added)

    def kept(self, params: Params, before: tuple[jax.Array, Any], after: tuple[jax.Array, Any]) -> jax.Array:
        """Return the increase of the amount of each scalar in the fluid inside each body.

        Args:
            params: parameters.
            before: a time, and the scalar at that time, or several by name.
            after: a later time, likewise.
        """
        (start, first), (end, last) = before, after
        return jnp.stack(
            [
                kept_inside(body, self.domain, params, (start, of_name(first, name)), (end, of_name(last, name)))
                for name in self.scalars
                for body in self.bodies.values()
            ]
        )

    def produced(self, params: Params, before: tuple[jax.Array, Any], after: tuple[jax.Array, Any]) -> jax.Array | None:
        """Return the amount of each scalar that its source produces inside each body; None if no scalar has a source.

        It is integrated over the step by the trapezoidal rule.

        Args:
            params: parameters.
            before: a time, and the source of the scalar at that time, None without one, or of several by name.
            after: a later time, likewise.
        """
        (start, first), (end, last) = before, after
        sources = {name: (of_name(first, name), of_name(last, name)) for name in self.scalars}
        if all(early is None for early, _ in sources.values()):
            return None

        def made(body: Body, early: Any, late: Any) -> jax.Array:
            if early is None:
                return jnp.zeros_like(end)
            rates = [rate_inside(body, self.domain, params, *at) for at in ((start, early), (end, late))]
            return (rates[0] + rates[1]) / 2 * (end - start)

        return jnp.stack([made(body, *both) for both in sources.values() for body in self.bodies.values()])

    def gained(
        self, params: Params, before: tuple[jax.Array, Velocity], after: tuple[jax.Array, Velocity]
    ) -> jax.Array | None:
        """Return the increase of momentum and angular momentum inside each body; None if no body moves.

        Args:
            params: parameters.
            before: a time, and the velocity of the flow at that time.
            after: a later time, likewise.
        """
        if not self.moves:
            return None
        nothing = like(after[1][0], jnp.zeros(self.turns))
        return jnp.concatenate(
            [
                nothing if body.motion is None else gained_inside(body, self.domain, params, before, after)
                for body in self.bodies.values()
            ]
        )


def of_name(scalars: Any, name: str | None) -> Any:
    """Return the entry of the scalar of a name; the argument itself for a single scalar without a name."""
    return scalars if name is None else scalars[name]
