"""Formulas of a flow: the values of their names at the points of a grid."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.functions import UNARY
from simkit.core.expressions.scope import Formula, Scope, precision_of
from simkit.core.settings import FormulaText, Setting, Settings
from simkit.core.simulation import Params
from simkit.flow.boundary.domain import Domain
from simkit.flow.diagnosis.measures import magnitude
from simkit.flow.grid import Velocity
from simkit.flow.operators.advection import means_where_moving, moving
from simkit.flow.operators.differences import at_centers, mean_at_centers
from simkit.flow.operators.diffusion import squared_shear_rate

AXES = "xyz"
COMPONENTS = "uvw"
SHEAR_RATE, TIME = "shear_rate", "time"
# Stands for the names of all scalars among the names that a formula takes.
SCALARS = "scalars"
# Names that formulas take besides parameters: on faces that move, at the cell centers, and of a viscosity there.
MOVING = (*AXES, TIME, *COMPONENTS, SCALARS)
ANYWHERE = (*MOVING, "speed")
EVERY_FIELD = (*ANYWHERE, SHEAR_RATE)
type Given = dict[str, Named | jax.Array | float]
type OfTime = Callable[[Params, Any], jax.Array]


@dataclasses.dataclass(frozen=True)
class Names:
    """Names that the formulas of a flow may use; which of them each formula takes is declared with its setting.

    Attributes:
        scope: parameters and derived values.
        dimension: number of axes.
        scalars: names of the scalars that the flow carries.
        made: all formulas that were made.
    """

    scope: Scope
    dimension: int
    scalars: tuple[str, ...]
    made: list[Formula] = dataclasses.field(default_factory=list, compare=False)

    def at(self, text: FormulaText) -> tuple[str, ...]:
        """Return the names that a formula may contain besides parameters and derived values."""
        return expanded(text.takes, self.dimension, self.scalars)

    def formula(self, text: FormulaText) -> Formula:
        """Return the formula of a text.

        Raises:
            UserError: if it takes a name that it may not take.
        """
        self.made.append(self.scope.formula(text, self.at(text)))
        return self.made[-1]


def expanded(takes: tuple[str, ...], dimension: int, scalars: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that formulas take in a flow of a number of axes, with those of its scalars."""
    absent = (*AXES[dimension:], *COMPONENTS[dimension:], SCALARS)
    return (*(name for name in takes if name not in absent), *(scalars if SCALARS in takes else ()))


def arguments_of(
    settings: Settings, keys: Mapping[str, Setting], values: Mapping[str, Setting], made: Callable[[FormulaText], Any]
) -> dict[str, Any]:
    """Return the arguments of a part: options as they are, and values by a function of their text where they are given.

    Args:
        settings: the table of the part.
        keys: options that it declares.
        values: values that it declares.
        made: what the part gets of a value.
    """
    texts = {name: settings[name] for name in values if settings[name] is not None}
    return {key: settings[key] for key in keys} | {name: made(text) for name, text in texts.items()}


@dataclasses.dataclass(frozen=True, eq=False)
class Places:
    """The points of a domain at which formulas are evaluated.

    Attributes:
        domain: the domain.
    """

    domain: Domain

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(AXES[: self.domain.grid.dimension])

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the components of the velocity."""
        return tuple(COMPONENTS[: self.domain.grid.dimension])

    def coordinates(self, component: int | None, params: Params, *, where_moving: bool = False) -> Given:
        """Return the coordinates of the cell centers, or of the faces where a component of the velocity lives.

        Args:
            component: which one; None for the centers.
            params: parameters; their floating-point type is that of the result.
            where_moving: only the faces whose velocity is an unknown: inner faces, and those on open sides.
        """
        coordinates: Given = {}
        for i, (name, axis) in enumerate(zip(self.axes, self.domain.grid.axes, strict=True)):
            points = axis.points if i == component else axis.centers
            if where_moving and i == component and not axis.periodic:
                lower, upper = self.domain.is_open(i)
                points = points[0 if lower else 1 : len(points) - (0 if upper else 1)]
            coordinates[name] = Named(jnp.asarray(points, precision_of(params)), (name,))
        return coordinates

    def on_side(self, axis: int, side: int, component: int | None, params: Params) -> Given:
        """Return the coordinates of the points of a side; the one normal to it is a single number.

        Args:
            axis: across the side.
            side: 0 for the lower, 1 for the upper one.
            component: component of the velocity whose points are taken; None for the centers of the faces.
            params: parameters; their floating-point type is that of the result.
        """
        inside = self.coordinates(None if component == axis else component, params)
        face = self.domain.grid.axes[axis].faces[-1 if side else 0]
        return {**inside, self.axes[axis]: jnp.asarray(face, precision_of(params))}

    def of_side(self, formula: Formula, axis: int, side: int, component: int | None = None) -> OfTime:
        """Return the values of a formula on a side, ``(params, time) -> `` one layer; see `on_side`."""
        return lambda params, time: formula.on(
            self.axes, params, **self.on_side(axis, side, component, params), time=time
        )

    def data_of_side(self, formula: Formula, axis: int, side: int) -> OfTime:
        """Return the values of a formula that a side holds: one number, or one layer if it takes coordinates."""
        # A number serves more solvers than a layer does.
        return self.of_side(formula, axis, side) if formula.takes(*AXES) else formula.of_time

    def at_faces(self, formula: Formula, i: int, velocity: Velocity, scalars: Any, params: Params, time: Any) -> Any:
        """Return the values of a formula on the faces where a component of the velocity is an unknown.

        Args:
            formula: of coordinates, time, velocity and scalars.
            i: the component.
            velocity: components on their faces.
            scalars: at the cell centers, by name; ``()`` without any.
            params: parameters.
            time: the time.
        """
        grid = self.domain.grid

        def component(j: int) -> jax.Array:
            if j == i:
                return moving(velocity[i], i, self.domain)
            return means_where_moving(mean_at_centers(velocity[j], j, grid), i, self.domain)

        makers: dict[str, Callable[..., jax.Array]] = {
            name: lambda j=j: component(j) for j, name in enumerate(self.components)
        }
        makers |= {name: lambda s=s: means_where_moving(s, i, self.domain) for name, s in dict(scalars).items()}
        return self._value(formula, makers, self.coordinates(i, params, where_moving=True), params, time)

    def at_centers(
        self, formula: Formula, velocity: Velocity, scalars: Any, params: Params, time: Any, boundary: Any = None
    ) -> jax.Array:
        """Return the values of a formula at the cell centers.

        Args:
            formula: of coordinates, time, velocity, shear rate and scalars.
            velocity: components on their faces.
            scalars: at the cell centers, by name; ``()`` without any.
            params: parameters.
            time: the time.
            boundary: velocity on the sides, ``() -> values``, needed for the shear rate.
        """
        grid = self.domain.grid
        makers: dict[str, Callable[..., jax.Array]] = {
            name: lambda j=j: mean_at_centers(velocity[j], j, grid) for j, name in enumerate(self.components)
        }
        makers |= {name: lambda s=s: s for name, s in dict(scalars).items()}
        makers["speed"] = lambda: magnitude(at_centers(velocity, grid))
        if boundary is not None:
            makers[SHEAR_RATE] = lambda: UNARY["sqrt"](squared_shear_rate(velocity, boundary(), self.domain))
        field = self._value(formula, makers, self.coordinates(None, params), params, time)
        return jnp.broadcast_to(field, grid.cells)

    def _value(
        self,
        formula: Formula,
        makers: Mapping[str, Callable[[], jax.Array]],
        coordinates: Given,
        params: Params,
        time: Any,
    ) -> jax.Array:
        """Return the values of a formula; only the names it uses are computed."""
        fields = {name: Named(make(), self.axes) for name, make in makers.items() if formula.takes(name)}
        return formula.on(self.axes, params, **{**coordinates, **fields, TIME: time})
