"""Obstacles of a flow described as data: shapes, positions and motions."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.expressions.scope import Formula, Scope
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.flow.boundary.domain import Domain
from simkit.flow.composed.places import TIME
from simkit.flow.composed.scalars import INSULATED, End, condition
from simkit.flow.composed.shapes import Shaped, refuse_sizes, shape_of
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.immersed_boundary import points_around
from simkit.flow.obstacles.methods import bodies_in
from simkit.flow.obstacles.motion import Motion
from simkit.flow.obstacles.outline import outline
from simkit.flow.obstacles.scalar_surface import ScalarSurface
from simkit.flow.obstacles.shapes import Shape, rotate, translate
from simkit.flow.viscosity import Viscosity

IMMERSED, FORCED = "immersed_boundary", "direct_forcing"
# Number of points at which the length of an outline is measured.
MEASURED = 64


class ObstacleFormulas:
    """Formulas of one obstacle.

    Attributes:
        shape: shape around the origin, a function of parameters.
        numbers: formulas of the shape, by key.
        position: formulas of the coordinates, one for each axis; may depend on time.
        angle: formula of the angle; may depend on time; or None.
        size: formula of the scale factor; may depend on time; or None.
        spin: formula of the surface's angular velocity; or None.
        moves: whether any of these formulas depends on time.
        conditions: boundary condition of each scalar on its surface, by name.
        points: number of points on the outline; None derives it from the cell width.
        pressures: angles of the points of the surface where the pressure is diagnosed, by name.
    """

    def __init__(self, settings: Settings, scope: Scope, dimension: int, scalars: Collection[str] = ()) -> None:
        """Check the settings of one obstacle.

        Args:
            settings: its settings.
            scope: of formulas.
            dimension: number of axes.
            scalars: names of the scalars that the flow carries.

        Raises:
            UserError: if settings contradict each other; names the key.
        """
        self.settings = settings
        self.shape, self.numbers = shape_of(settings, scope, dimension)
        if len(settings["position"]) != dimension:
            raise settings.refuse(
                "position", f"has {len(settings['position'])} entries; write {dimension}, one for each axis"
            )
        self.position = tuple(scope.formula(one, (TIME,)) for one in settings["position"])

        def maybe(key: str, names: tuple[str, ...] = ()) -> Formula | None:
            return None if settings[key] is None else scope.formula(settings[key], names)

        self.angle, self.size, self.spin = maybe("angle", (TIME,)), maybe("size", (TIME,)), maybe("spin")
        self.points = settings["points"]
        if settings["pressure_at"] and dimension == 3:
            raise settings.refuse("pressure_at", "is given, which is for plane flows; remove it")
        self.pressures = {name: scope.formula(one, (TIME,)) for name, one in settings["pressure_at"].items()}
        places = (*self.position, *(one for one in (self.angle, self.size) if one is not None))
        self.moves = any(one.takes(TIME) for one in places)
        for name in settings["scalars"]:
            if name not in scalars:
                raise UserError(
                    f"{settings.path('scalars')}.{name} is not a scalar of this flow{nearest(name, list(scalars))}"
                )
        if scalars and self.size is not None and self.size.takes(TIME):
            raise settings.refuse(
                "size", "changes in time, which obstacles beside scalars do not; leave the time out of it"
            )
        self.conditions: dict[str, End] = {
            name: condition(settings["scalars"][name], f"{settings.path('scalars')}.{name}", scope, (TIME,))
            if name in settings["scalars"]
            else (INSULATED, None)
            for name in scalars
        }

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formulas of position, angle, size, diagnosed points and scalars."""
        given = (self.angle, self.size, *self.pressures.values(), *(formula for _, formula in self.conditions.values()))
        return (*self.position, *(one for one in given if one is not None))

    def at(self, params: Params, time: Any) -> tuple[jax.Array, ...]:
        """Return its position at a time, one coordinate per axis."""
        return computed_once(tuple(one.number(params, time=time) for one in self.position))

    def body(self, domain: Domain, params: Params) -> Body:
        """Return the body of the obstacle.

        Args:
            domain: the domain.
            params: default parameters, by which the number of points on its outline is found.
        """
        angle, size, spin = self.angle, self.size, self.spin
        surfaces = {name: _surface(*one) for name, one in self.conditions.items()} or None
        turns = None if spin is None else (lambda params: spin.number(params))
        if not self.moves:
            return Body(
                self._placed,
                lambda params: self.at(params, 0.0),
                turns,
                None,
                self._count(self._placed, domain, params),
                surfaces,
            )
        motion = Motion(
            self.at,
            None if angle is None else (lambda params, time: angle.number(params, time=time)),
            None if size is None else (lambda params, time: size.number(params, time=time)),
        )
        origin = (0.0,) * len(self.position)
        return Body(self.shape, lambda params: origin, turns, motion, self._count(self.shape, domain, params), surfaces)

    def cell(self, domain: Domain, params: Params) -> float:
        """Return the least width of the cells around its place at the start.

        Args:
            domain: the domain.
            params: default parameters.
        """
        place = zip(self.at(params, 0.0), domain.grid.axes, strict=True)
        return min(float(np.interp(float(x), axis.centers, axis.widths)) for x, axis in place)

    def _placed(self, params: Params) -> Shape:
        """Return the shape at its position, for an obstacle that does not move."""
        shape = self.shape(params)
        if self.size is not None:
            shape = _scaled(shape, self.size.number(params, time=0.0))
        if self.angle is not None:
            shape = rotate(shape, self.angle.number(params, time=0.0), (0.0, 0.0))
        return translate(shape, self.at(params, 0.0))

    def _count(self, shape: Shaped, domain: Domain, params: Params) -> int | None:
        """Return the number of points on the outline in the plane, for the cells around the start."""
        if self.points is not None or domain.grid.dimension != 2:
            return self.points
        # The length of an outline that is none would ask for any number of points.
        refuse_sizes(self.numbers, params)
        place = [float(x) for x in self.at(params, 0.0)]
        reach = math.hypot(*(axis.length for axis in domain.grid.axes))
        pivot = tuple(jnp.asarray(0.0 if self.moves else p, float) for p in place)
        # One program compiles faster than each of its operations.
        around = jax.jit(lambda params: outline(shape(params), pivot, MEASURED, reach))(params)
        size = float(self.size.number(params, time=0.0)) if self.moves and self.size is not None else 1.0
        perimeter = size * float(jnp.sum(around.spacing))
        # A multiple of four: a point on an axis of a symmetric body, where rays meet the outline, would follow the rays
        # of one side, and derivatives would lose the symmetry.
        width = self.cell(domain, params)
        return 4 * math.ceil(max(points_around(perimeter, width), 8) / 4) if np.isfinite(perimeter) else 8


def obstacles_of(
    formulas: Mapping[str, ObstacleFormulas], method: str, domain: Domain, viscosity: Viscosity, params: Params
) -> Any:
    """Return the bodies that the equations take; None if there are no obstacles.

    Args:
        formulas: formulas of the obstacles, by name.
        method: "immersed_boundary" or "direct_forcing".
        domain: the domain.
        viscosity: viscosity of the equations.
        params: default parameters.

    Raises:
        UserError: if the method does not support them.
    """
    if not formulas:
        return None
    bodies = {name: one.body(domain, params) for name, one in formulas.items()}
    return bodies_in(domain, method, bodies, viscosity)  # type: ignore[arg-type]


def _surface(kind: str, formula: Formula | None) -> ScalarSurface:
    """Return the boundary condition of a scalar on an obstacle."""
    if formula is None:
        return ScalarSurface(flux=lambda params, time: 0.0)

    def given(params: Params, time: jax.Array) -> jax.Array:
        return formula.number(params, time=time)

    return ScalarSurface(value=given) if kind == "value" else ScalarSurface(flux=given)


def _scaled(shape: Shape, size: jax.Array) -> Shape:
    return lambda *x: size * shape(*(a / size for a in x))
