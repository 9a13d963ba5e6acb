"""Obstacles of a flow described as data: shapes, positions and motions."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, refuse_out_of_bounds
from simkit.core.formulation import computed_once
from simkit.core.parts import declaration_of
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import within
from simkit.flow.boundary.domain import Domain
from simkit.flow.description.formulas import AXES, TIME, Names, OfTime, arguments_of
from simkit.flow.description.settings import SHAPE
from simkit.flow.description.sides import Timed
from simkit.flow.equations import Equations
from simkit.flow.obstacles.body import Body, Motion
from simkit.flow.obstacles.immersed_boundary import points_around
from simkit.flow.obstacles.methods import bodies_in, method_for
from simkit.flow.obstacles.outline import outline
from simkit.flow.obstacles.shapes import Shape, rotate, translate
from simkit.flow.obstacles.surface_conditions import ScalarSurface
from simkit.flow.parts import SURFACES

type Shaped = Callable[[Params], Shape]


def shape_of(settings: Settings, names: Names) -> tuple[Shaped, tuple[Formula, ...]]:
    """Return the shape of an obstacle as a function of the parameters, around the origin, and the formulas of numbers.

    Args:
        settings: settings of the obstacle.
        names: names that formulas may use.
    """
    function, declared = SHAPE.part(settings), declaration_of(SHAPE.part(settings))
    options = {key: settings[key] for key in declared.keys}
    texts = arguments_of(settings, {}, declared.values, lambda value: value)
    flat, structure = jax.tree.flatten(texts)
    formulas = [(names.formula(text), not set(AXES).isdisjoint(text.takes)) for text in flat]
    numbers = tuple(formula for formula, of_points in formulas if not of_points)

    def shape(params: Params) -> Shape:
        # The compiler would evaluate shapes of constant size beforehand, with other rounding in every program.
        values = iter(computed_once(tuple(formula.number(params) for formula in numbers)))
        leaves = [
            _function_of_points(formula, params, names) if of_points else next(values)
            for formula, of_points in formulas
        ]
        with within(f"{settings.where}: ", settings.where):
            return function(**options, **jax.tree.unflatten(structure, leaves))

    return shape, numbers


def _function_of_points(formula: Formula, params: Params, names: Names) -> Shape:
    """Return a formula of the coordinates as a function of points."""

    def value(*points: jax.Array) -> jax.Array:
        points = tuple(jnp.broadcast_arrays(*points))
        axes = tuple(f"points_{k}" for k in range(points[0].ndim))
        coordinates = {name: Named(x, axes) for name, x in zip(AXES[: names.dimension], points, strict=True)}
        array = formula.on(axes, params, **coordinates) if axes else formula.number(params, **coordinates)
        return jnp.broadcast_to(array, points[0].shape)

    return value


# Number of points at which the length of an outline is measured.
MEASURED = 64


class ObstacleFormulas:
    """Formulas of one obstacle.

    Attributes:
        shape: shape around the origin, a function of parameters.
        numbers: formulas of the shape.
        position: formulas of the coordinates, one for each axis; may depend on time.
        angle: formula of the angle; may depend on time; or None.
        size: formula of the scale factor; may depend on time; or None.
        spin: formula of the surface's angular velocity; or None.
        reference: formulas of the speed and the length (in space the area) of its coefficients, by name; or empty.
        moves: whether any of these formulas depends on time.
        surfaces: boundary condition of each scalar on its surface, by name.
        points: number of points on the outline; None derives it from the cell width.
        attached: whether it may touch sides.
        pressures: angles of the points of the surface where the pressure is diagnosed, by name.
    """

    def __init__(self, settings: Settings, names: Names) -> None:
        """Check the settings of one obstacle.

        Args:
            settings: its settings.
            names: names that formulas may use.

        Raises:
            UserError: if a formula is wrong; names the key.
        """
        self.settings = settings
        self.shape, self.numbers = shape_of(settings, names)
        self.position = tuple(map(names.formula, settings["position"]))
        self.angle, self.size, self.spin = (
            None if settings[key] is None else names.formula(settings[key]) for key in ("angle", "size", "spin")
        )
        reference = settings["reference"] or {}
        self.reference = {key: names.formula(text) for key, text in reference.items() if text is not None}
        self.points, self.attached = settings["points"], settings["attached"]
        pressures = settings["pressure_at"] or {}
        self.pressures = {name: names.formula(text) for name, text in pressures.items()}
        places = (*self.position, *(each for each in (self.angle, self.size) if each is not None))
        self.moves = any(each.takes(TIME) for each in places)
        self._on_surface: list[Timed] = []
        self.surfaces = {name: self._surface(settings["scalars"][name], names) for name in names.scalars}

    def _surface(self, settings: Settings, names: Names) -> ScalarSurface:
        """Return the boundary condition of a scalar, after adding its formulas to those on the surface."""
        function = SURFACES.resolve(settings["kind"])
        declared = declaration_of(function)

        def value(text: FormulaText) -> OfTime:
            formula = names.formula(text)
            self._on_surface.append((formula, formula.of_time))
            return formula.of_time

        return function(**arguments_of(settings, declared.keys, declared.values, value))

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """All formulas that are one number, at a time for some of them."""
        others = (self.angle, self.size, self.spin, *self.reference.values(), *self.pressures.values())
        on_surface = (formula for formula, _ in self._on_surface)
        return (*self.numbers, *self.position, *(each for each in others if each is not None), *on_surface)

    def check_shape(self, params: Params) -> None:
        """Refuse numbers of the shape that are out of bounds or do not fit each other.

        Args:
            params: concrete parameters.

        Raises:
            UserError: naming the formula, or the obstacle.
        """
        for formula in self.numbers:
            refuse_out_of_bounds(formula, formula.number(params))
        self.shape(params)

    def at(self, params: Params, time: Any) -> tuple[jax.Array, ...]:
        """Return its position at a time, one coordinate per axis."""
        return computed_once(tuple(coordinate.number(params, time=time) for coordinate in self.position))

    def body(self, domain: Domain, params: Params) -> Body:
        """Return the body of the obstacle.

        Args:
            domain: the domain.
            params: default parameters, by which the number of points on its outline is found.
        """
        angle, size, spin = self.angle, self.size, self.spin
        surfaces = self.surfaces or None
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
        self.check_shape(params)
        place = [float(x) for x in self.at(params, 0.0)]
        reach = math.hypot(*(axis.length for axis in domain.grid.axes))
        pivot = tuple(jnp.asarray(0.0 if self.moves else p, float) for p in place)
        # One program compiles faster than each of its operations, and without the points in half the time.
        spacing = jax.jit(lambda params: outline(shape(params), pivot, MEASURED, reach).spacing)(params)
        size = float(self.size.number(params, time=0.0)) if self.moves and self.size is not None else 1.0
        perimeter = size * float(jnp.sum(spacing))
        # A multiple of four: a point on an axis of a symmetric body, where rays meet the outline, would follow the rays
        # of one side, and derivatives would lose the symmetry.
        width = self.cell(domain, params)
        return 4 * math.ceil(max(points_around(perimeter, width), 8) / 4) if np.isfinite(perimeter) else 8


def with_obstacles(
    equations: Equations, formulas: Mapping[str, ObstacleFormulas], method: str | None, params: Params
) -> Equations:
    """Return equations with obstacles.

    Args:
        equations: of the flow without them.
        formulas: formulas of the obstacles, by name.
        method: "immersed_boundary" or "direct_forcing"; None for the first that serves.
        params: default parameters.

    Raises:
        UserError: if the method does not support them.
    """
    if not formulas:
        return equations
    domain = equations.domain
    bodies = {name: one.body(domain, params) for name, one in formulas.items()}
    obstacle = bodies_in(domain, method or method_for(equations, bodies), bodies, equations.viscosity)  # type: ignore[arg-type]
    return dataclasses.replace(equations, obstacle=obstacle)


def _scaled(shape: Shape, size: jax.Array) -> Shape:
    return lambda *x: size * shape(*(a / size for a in x))
