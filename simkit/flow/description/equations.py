"""Equations of a flow described as data: names in formulas, viscosity and forces."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.expressions.scope import Formula, TableInTime, precision_of, scope, tables_in_time
from simkit.core.expressions.syntax import CONSTANTS, FUNCTIONS
from simkit.core.settings import Settings
from simkit.core.simulation import TAKEN as OF_DATA_SETS
from simkit.core.simulation import Params, as_arrays
from simkit.errors import Remedy, untaken
from simkit.flow.boundary.domain import velocity_on_sides
from simkit.flow.boundary.side_data import OwnValues
from simkit.flow.description.formulas import AXES, COMPONENTS, EVERY_FIELD, SHEAR_RATE, TIME, Names, Places, expanded
from simkit.flow.description.obstacles import ObstacleFormulas, with_obstacles
from simkit.flow.description.scalars import ScalarFormulas, carried_scalar
from simkit.flow.description.sides import ENDS, Sides, boundary_of, side_pressure_of, sides_of
from simkit.flow.description.start import InitialVelocity, StoredFields
from simkit.flow.equations import Equations
from simkit.flow.grid import Velocity
from simkit.flow.scalar import TransportedScalar, TransportedScalars
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step
from simkit.flow.viscosity import Viscosity

type Drag = Callable[[Params, jax.Array], tuple[tuple, tuple]]
type Force = Callable[[Velocity, Any, Params, jax.Array], tuple]


def viscosity_of(formula: Formula, boundary: Any, places: Places, fields: tuple[str, ...]) -> Viscosity:
    """Return the viscosity for the equations: a function of parameters, or a field.

    Args:
        formula: formula of the viscosity.
        boundary: velocity on the sides, see `simkit.flow.description.sides.boundary_of`.
        places: of the domain.
        fields: names that make it a field: coordinates, time, velocity, shear rate and scalars.
    """
    if not formula.takes(*fields):
        return formula.number

    def field(velocity: Velocity, params: Params, scalar: Any, time: jax.Array) -> jax.Array:
        return places.at_centers(
            formula,
            velocity,
            scalar,
            params,
            time,
            lambda: velocity_on_sides(boundary, places.domain, params, time),
        )

    return field


def force_of(formulas: Mapping[int, Formula], places: Places) -> Force | None:
    """Return the force function of the equations; None if there are no forces.

    Args:
        formulas: by component.
        places: of the domain.
    """
    if not formulas:
        return None

    def force(velocity: Velocity, scalar: Any, params: Params, time: jax.Array) -> tuple:
        return tuple(
            places.at_faces(formulas[i], i, velocity, scalar, params, time) if i in formulas else 0.0
            for i in range(len(places.axes))
        )

    return force


def drag_of(formulas: Mapping[str, Formula], places: Places) -> Drag | None:
    """Return the drag function of the equations; None if there is no drag.

    Args:
        formulas: of the coefficient and of the components of the velocity of what drags, by key; empty without drag.
        places: of the domain.
    """
    if not formulas:
        return None

    def drag(params: Params, time: jax.Array) -> tuple[tuple, tuple]:
        faces = [places.coordinates(i, params, where_moving=True) for i in range(len(places.axes))]
        along = [formulas[name] for name in places.components]
        coefficients = tuple(formulas["coefficient"].on(places.axes, params, **at, time=time) for at in faces)
        return coefficients, tuple(
            one.on(places.axes, params, **at, time=time) for one, at in zip(along, faces, strict=True)
        )

    return drag


# Names of arrays in frames, diagnostics and data sets, which no scalar or obstacle may have.
TAKEN = (
    *("pressure", "vorticity", "drive", "sides", "divergence", "kinetic_energy", "courant_number", "speed"),
    *(
        "largest_velocity",
        "last_time_step",
        "side_velocity",
        "body_distance",
        "mean_u",
        "mean_v",
        "mean_w",
        "iteration",
    ),
    *("stream_function", "u_face", "v_face", "w_face", "x_face", "y_face", "z_face"),
    *OF_DATA_SETS,
)


@dataclasses.dataclass(frozen=True, eq=False)
class ComposedFlow:
    """A flow described as data.

    Attributes:
        settings: checked settings of the flow.
        parameters: default values, or `simkit.core.parameter.Parameter`, by name.
        places: points of the grid at which formulas are evaluated.
        sides: the sides, with the formulas of what is given on them.
        force: formulas of the forces, by component.
        drag: formulas of its coefficient and of the velocity of what drags, by key; empty without drag.
        flow_rate: formula of the prescribed flow rate; or None.
        viscosity: formula of the viscosity.
        initial: velocity at the start.
        scalars: formulas of the scalars, by name.
        obstacles: formulas of the obstacles, by name.
        carried: the scalars as the equations take them, by name.
        implicit_viscosity: formula of the part of a viscosity field that is implicit; or None.
        courant_number: formula of the Courant number that sets the time step; None for a fixed one.
        largest_speed: formula of the largest speed expected, or one for each component; empty where none is given.
        tables_in_time: tables that may end during a run.
        equations: the equations made of all of these.
    """

    settings: Settings
    parameters: Mapping[str, Any]
    places: Places
    sides: Sides
    force: Mapping[int, Formula]
    drag: Mapping[str, Formula]
    flow_rate: Formula | None
    viscosity: Formula
    initial: InitialVelocity
    scalars: Mapping[str, ScalarFormulas]
    carried: Mapping[str, TransportedScalar]
    obstacles: Mapping[str, ObstacleFormulas]
    implicit_viscosity: Formula | None
    courant_number: Formula | None
    largest_speed: tuple[Formula, ...]
    tables_in_time: tuple[TableInTime, ...]
    equations: Equations

    @functools.cached_property
    def fields_at_start(self) -> Callable[[Params, jax.Array], Any]:
        """Compiled ``(params, key) -> start as given, velocity, scalars``, which the checks of all runs share."""

        def fields(params: Params, key: jax.Array) -> Any:
            begun = {name: scalar.start(self.places, params) for name, scalar in self.scalars.items()}
            return self.initial.said(params), self.initial(params, key, self.equations.boundary), begun

        return jax.jit(fields)

    @functools.cached_property
    def velocities_on_sides(self) -> dict[Any, Callable[..., Any]]:
        """Compiled ``(params, time) -> values`` of each given velocity, by axis, side and component."""
        return {
            which: jax.jit(self.places.of_side(formula, *which)) for which, formula in self.sides.velocities.items()
        }

    @classmethod
    def of(cls, settings: Settings, parameters: Mapping[str, Any]) -> "ComposedFlow":
        """Return the flow described by settings.

        Args:
            settings: checked settings.
            parameters: all of them.

        Raises:
            UserError: if settings contradict each other; names the key.
        """
        dimension = sum(axis is not None for axis in settings["axes"].values())
        names = tuple(settings["scalars"])
        fields = expanded(EVERY_FIELD, dimension, names)
        defaults = as_arrays(dict(parameters))
        known = _names(settings, defaults, fields, dimension)
        known.scope.refuse_unknown(settings, known.at)
        sides = sides_of(settings["axes"], settings["wall_slope"], known)
        places = Places(sides.domain)
        boundary = boundary_of(sides.velocities, places)

        def maybe(key: str) -> Formula | None:
            return None if settings[key] is None else known.formula(settings[key])

        force = settings["force"]
        formulas = {i: known.formula(force[name]) for i, name in enumerate(AXES) if force[name] is not None}
        drag = {key: known.formula(text) for key, text in (settings["drag"] or {}).items() if text is not None}
        stored = StoredFields(settings, places)
        scalars = {
            name: ScalarFormulas(each, known, places, stored.scalars.get(name))
            for name, each in settings["scalars"].items()
        }
        carried = {name: carried_scalar(name, each, places, fields) for name, each in scalars.items()}
        viscosity, flow_rate = known.formula(settings["viscosity"]), maybe("flow_rate")
        nu = viscosity_of(viscosity, boundary, places, fields)
        implicit_viscosity = maybe("implicit_viscosity")
        varies = viscosity.takes(*fields)
        obstacles = {name: ObstacleFormulas(each, known) for name, each in settings["obstacles"].items()}
        courant_number = maybe("courant_number")
        if settings["obstacle_method"] is not None and not obstacles:
            raise settings.refuse("obstacle_method", "has no effect without obstacles; leave it out", Remedy("remove"))
        equations = Equations(
            domain=sides.domain,
            viscosity=nu,
            time_step=fixed_time_step if courant_number is None else adaptive_time_step(courant_number.number),
            boundary=boundary,
            side_pressure=side_pressure_of(sides.pressures, places),
            force=force_of(formulas, places),
            drag=drag_of(drag, places),
            flow_rate=None if flow_rate is None else flow_rate.of_time,
            scalar=TransportedScalars(carried) if carried else None,
            method=settings["method"],
            implicit=_implicit(settings, places, varies, carried, defaults),
            implicit_viscosity=None if implicit_viscosity is None else implicit_viscosity.number,
            scheme=settings["scheme"],
        )
        equations = with_obstacles(equations, obstacles, settings["obstacle_method"], defaults)
        return cls(
            settings=settings,
            parameters=parameters,
            places=places,
            sides=sides,
            force=formulas,
            drag=drag,
            flow_rate=flow_rate,
            viscosity=viscosity,
            initial=InitialVelocity(settings["initial"], known, places, stored.velocity),
            scalars=scalars,
            carried=carried,
            obstacles=obstacles,
            implicit_viscosity=implicit_viscosity,
            courant_number=courant_number,
            largest_speed=_largest_speed(settings, known),
            tables_in_time=tables_in_time(known.made),
            equations=equations,
        )


def _names(settings: Settings, params: Params, fields: tuple[str, ...], dimension: int) -> Names:
    """Return the names that formulas may use, after checking that no name has two meanings."""
    reserved = {*AXES, *COMPONENTS, TIME, SHEAR_RATE, *TAKEN, *FUNCTIONS, *CONSTANTS, *params, *settings["tables"]}
    walls = (f"{axis}_{end}" for axis in AXES for end in ENDS)
    for table, taken in (("scalars", reserved), ("obstacles", {*reserved, *walls, *settings["scalars"]})):
        for name in settings[table]:
            untaken(name, taken, f"{table}.{name}")
    known = scope(params, settings["derived"], fields, tables=settings["tables"])
    return Names(known, dimension, tuple(settings["scalars"]))


def _largest_speed(settings: Settings, names: Names) -> tuple[Formula, ...]:
    """Return the formula of the largest speed expected, or one for each component of the velocity; empty without."""
    texts = settings["largest_speed"]
    return () if texts is None else tuple(map(names.formula, texts if isinstance(texts, tuple) else (texts,)))


def _implicit(
    settings: Settings, places: Places, varies: bool, scalars: Mapping[str, TransportedScalar], params: Params
) -> tuple[int, ...]:
    """Return the axes of implicit friction: those in the settings, by default those with a wall that are served.

    Implicit friction and diffusion serve sides with values that follow from the parameters on one of the axes that a
    field sees: of those axes the one with the thinnest cells is taken.
    """
    domain, names = places.domain, settings["implicit"]
    if names is not None:
        return tuple(AXES.index(name) for name in dict.fromkeys(names))
    if settings["obstacles"] or (varies and settings["implicit_viscosity"] is None):
        return ()
    served, with_values = [], []
    for i in domain.bounded():
        along, ends = 1 - min(i, 1), [(domain.side(i, side), domain.place(i, side)) for side in (0, 1)]
        shares = [(kind, functools.partial(kind.share, along, place)) for kind, place in ends]
        of_scalars = [(one.known[i][side], domain.place(i, side)) for one in scalars.values() for side in (0, 1)]  # type: ignore[index]
        shares += [(kind, functools.partial(kind.share, place, diffusivity=1.0)) for kind, place in of_scalars]
        is_wall = any(kind.sticks or kind.is_wall() for kind, _ in ends)
        if is_wall and all(_is_number(share, kind, params) for kind, share in shares):
            served.append(i)
        # In the plane a component of the velocity sees the sides of one axis.
        if any(kind.has_values for kind, _ in (of_scalars if len(places.axes) == 2 else [*ends, *of_scalars])):
            with_values.append(i)
    thinnest = sorted((i for i in served if i in with_values), key=lambda i: domain.grid.axes[i].widths.min())
    return tuple(i for i in served if i not in thinnest[1:])


def _is_number(share: Callable[[Any], Any], kind: OwnValues, params: Params) -> bool:
    """Return whether the share of a side is one number, as implicit friction and diffusion need it."""
    shape = jax.eval_shape(lambda params: share(kind.values(params, jnp.zeros((), precision_of(params)))), params)
    return shape is not None and shape.ndim == 0
