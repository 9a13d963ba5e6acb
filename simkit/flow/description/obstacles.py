"""Obstacles of a flow described as data: shapes, positions and motions."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, Scope
from simkit.core.formulation import computed_once
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.flow.boundary.domain import Domain
from simkit.flow.description.formulas import AXES, TIME
from simkit.flow.description.scalars import INSULATED, End, condition
from simkit.flow.obstacles.body import Body, Motion
from simkit.flow.obstacles.immersed_boundary import points_around
from simkit.flow.obstacles.methods import bodies_in
from simkit.flow.obstacles.outline import outline
from simkit.flow.obstacles.shapes import (
    Shape,
    airfoil,
    ball,
    box,
    capsule,
    cylinder,
    polygon,
    rotate,
    superellipse,
    translate,
)
from simkit.flow.obstacles.surface_conditions import ScalarSurface
from simkit.flow.viscosity import Viscosity

# For each shape: the number of axes, or None for any; its required keys, and its optional keys.
SHAPES: dict[str, tuple[int | None, tuple[str, ...], tuple[str, ...]]] = {
    "circle": (2, ("radius",), ()),
    "sphere": (3, ("radius",), ()),
    "cylinder": (3, ("radius",), ("half_length",)),
    "capsule": (None, ("radius", "half_length"), ()),
    "polygon": (2, ("corners",), ()),
    "airfoil": (2, ("digits", "chord"), ()),
    "ellipse": (2, ("half_axes",), ()),
    "ellipsoid": (3, ("half_axes",), ()),
    "box": (None, ("half_widths",), ("rounding",)),
}
KEYS = tuple(dict.fromkeys(key for _, needed, allowed in SHAPES.values() for key in (*needed, *allowed)))
# Lengths that are above zero.
SIZES = ("radius", "half_length", "half_axes", "half_widths", "chord")
type Shaped = Callable[[Params], Shape]


def shape_of(settings: Settings, scope: Scope, dimension: int) -> tuple[Shaped, dict[str, tuple[Formula, ...]]]:
    """Return the shape of an obstacle as a function of the parameters, around the origin, and its formulas by key.

    Args:
        settings: settings of the obstacle.
        scope: of formulas.
        dimension: number of axes.

    Raises:
        UserError: if settings contradict each other; names the key.
    """
    word, distance = settings["shape"], settings["distance"]
    if (word is None) == (distance is None):
        ways = "both a shape and a distance are given" if word else "neither a shape nor a distance is given"
        raise settings.refuse("shape", f": {ways}; give one")
    axes, needed, allowed = SHAPES.get(word, (None, (), ()))
    if axes not in (None, dimension):
        fitting = ", ".join(name for name, (count, _, _) in SHAPES.items() if count in (None, dimension))
        raise settings.refuse("shape", f"= '{word}' is not for a flow of {dimension} axes; choose one of {fitting}")
    for key in needed:
        if settings[key] is None:
            raise settings.refuse(key, f"is missing; a shape '{word}' needs it")
    for key in KEYS:
        if settings[key] is not None and key not in (*needed, *allowed):
            raise settings.refuse(key, f"is given, which a {f"shape '{word}'" if word else 'distance'} does not take")
    if distance is not None:
        return _by_distance(scope.formula(distance, AXES[:dimension]), dimension), {}
    given = [key for key in (*needed, *allowed) if settings[key] is not None and key != "digits"]
    numbers = {key: _formulas(settings, key, scope, dimension) for key in given}

    def shape(params: Params) -> Shape:
        values = {key: tuple(formula.number(params) for formula in formulas) for key, formulas in numbers.items()}
        # The compiler would evaluate shapes of constant size beforehand, with other rounding in every program.
        values = computed_once(values)
        center = (0.0,) * dimension
        match word:
            case "circle" | "sphere":
                return ball(center, values["radius"][0])
            case "cylinder" if "half_length" in values:
                return cylinder(center, values["radius"][0], values["half_length"][0])
            case "cylinder":
                return ball(center[:2], values["radius"][0])
            case "capsule":
                ends = [(way * values["half_length"][0], *center[1:]) for way in (-1, 1)]
                return capsule(ends[0], ends[1], values["radius"][0])
            case "polygon":
                return polygon(jnp.stack(values["corners"]).reshape(-1, 2))
            case "airfoil":
                chord = values["chord"][0]
                return translate(airfoil(settings["digits"], chord), (-chord / 4, 0.0))
            case "ellipse" | "ellipsoid":
                return superellipse(center, values["half_axes"])
        return box(center, values["half_widths"], *values.get("rounding", ()))

    return shape, numbers


def refuse_sizes(numbers: Mapping[str, tuple[Formula, ...]], params: Params) -> None:
    """Refuse sizes that are not above zero, and edges of a box with a radius that is negative or beyond its sides.

    Args:
        numbers: formulas of a shape, by key.
        params: concrete parameters.

    Raises:
        UserError: naming the formula.
    """
    found = {key: [float(formula.number(params)) for formula in formulas] for key, formulas in numbers.items()}
    for key, values in found.items():
        for formula, value in zip(numbers[key], values, strict=True):
            if key in SIZES and not value > 0:
                raise UserError(f"{formula.where}: is {value:g} at the start; choose a length above 0")
    for formula, value in zip(numbers.get("rounding", ()), found.get("rounding", ()), strict=True):
        most = min(found["half_widths"])
        if not 0 <= value <= most:
            raise UserError(f"{formula.where}: is {value:g} at the start; choose 0 to {most:g}, the least half width")


def _formulas(settings: Settings, key: str, scope: Scope, dimension: int) -> tuple[Formula, ...]:
    said = settings[key]
    if isinstance(said, FormulaText):
        return (scope.formula(said),)
    if key == "corners":
        return tuple(scope.formula(one) for corner in said for one in corner)
    if len(said) != dimension:
        raise settings.refuse(key, f"has {len(said)} entries; write {dimension}, one for each axis")
    return tuple(scope.formula(one) for one in said)


def _by_distance(formula: Formula, dimension: int) -> Shaped:
    """Return the shape where a formula of the coordinates is negative."""

    def shape(params: Params) -> Shape:
        def distance(*points: jnp.ndarray) -> jnp.ndarray:
            points = tuple(jnp.broadcast_arrays(*points))
            axes = tuple(f"points_{k}" for k in range(points[0].ndim))
            given = {name: Named(x, axes) for name, x in zip(AXES[:dimension], points, strict=True)}
            found = formula.on(axes, params, **given) if axes else formula.number(params, **given)
            return jnp.broadcast_to(found, points[0].shape)

        return distance

    return shape


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
        attached: whether it may touch sides.
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
        self.points, self.attached = settings["points"], settings["attached"]
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
                self.attached,
            )
        motion = Motion(
            self.at,
            None if angle is None else (lambda params, time: angle.number(params, time=time)),
            None if size is None else (lambda params, time: size.number(params, time=time)),
        )
        origin = (0.0,) * len(self.position)
        count = self._count(self.shape, domain, params)
        return Body(self.shape, lambda params: origin, turns, motion, count, surfaces, self.attached)

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
