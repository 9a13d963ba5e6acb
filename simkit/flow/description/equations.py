"""Equations of a flow described as data: names in formulas, viscosity, forces, initial velocity."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, precision_of, scope
from simkit.core.expressions.syntax import CONSTANTS, FUNCTIONS
from simkit.core.settings import Settings
from simkit.core.simulation import TAKEN as OF_DATA_SETS
from simkit.core.simulation import Params, as_arrays
from simkit.errors import UserError
from simkit.flow.boundary.domain import prescribe, velocity_on_sides
from simkit.flow.description.formulas import AXES, COMPONENTS, EVERY_FIELD, SHEAR_RATE, TIME, Names, Places, expanded
from simkit.flow.description.obstacles import ObstacleFormulas, with_obstacles
from simkit.flow.description.scalars import ScalarFormulas, carried_scalar
from simkit.flow.description.sides import ENDS, Sides, boundary_of, side_pressure_of, sides_of
from simkit.flow.eddies import random_eddies
from simkit.flow.equations import Equations
from simkit.flow.grid import Velocity, end, with_end
from simkit.flow.operators.differences import curl, divergence, gradient
from simkit.flow.scalar import TransportedScalar, TransportedScalars
from simkit.flow.solvers.pressure import pressure_solver
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
        return lambda params: formula.number(params)

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


def flow_rate_of(formula: Formula | None) -> Callable[[Params, jax.Array], jax.Array] | None:
    """Return the prescribed flow rate as a function of parameters and time; None if there is none.

    Args:
        formula: formula of time; or None.
    """
    return None if formula is None else lambda params, time: formula.number(params, time=time)


class InitialVelocity:
    """Formulas of the velocity at the start.

    Attributes:
        components: formulas of velocity components, by index of the component.
        stream: formula of a stream function in place of components; or None.
        eddies: formula of the speed of random eddies; or None.
    """

    def __init__(self, settings: Settings, names: Names, places: Places) -> None:
        """Check the settings.

        Args:
            settings: settings of the start.
            names: names that formulas may use.
            places: of the domain.

        Raises:
            UserError: if settings contradict each other; names the key.
        """
        self._places = places
        given = {key: names.formula(text) for key, text in settings.items() if text is not None}
        self.components = {i: given[name] for i, name in enumerate(COMPONENTS) if name in given}
        self.stream, self.eddies = given.get("stream_function"), given.get("eddies")
        if self.stream is not None and self.components:
            raise settings.refuse("stream_function", "is given beside components; give one")
        kinds = places.domain.sides
        if self.eddies is not None and (len(kinds) == 3 or kinds[0] is not None or kinds[1] is None):
            raise settings.refuse("eddies", "need a plane flow, periodic along x and bounded along y; remove them")
        open_sides = places.domain.open_sides()
        self._solve = pressure_solver(places.domain.grid, open_sides=open_sides) if self.needs_projection else None
        # For checks before a run: a hundred single operations take longer.
        self.compiled = jax.jit(self.__call__, static_argnums=2)

    @property
    def needs_projection(self) -> bool:
        """Whether the velocity of the formulas may have a divergence or differ from the boundary conditions."""
        domain = self._places.domain
        through_walls = self.stream is not None and bool(domain.bounded())
        return bool(self.components) or bool(domain.entrances()) or through_walls

    def said(self, params: Params) -> Velocity:
        """Return the velocity of the formulas, without eddies and before projection."""
        places, grid = self._places, self._places.domain.grid
        dtype = precision_of(params)
        if self.stream is not None:
            axes = zip(places.axes, grid.axes, strict=True)
            corners = {name: Named(jnp.asarray(axis.points, dtype), (name,)) for name, axis in axes}
            field = self.stream.on(places.axes, params, **corners)
            return curl(jnp.broadcast_to(field, [len(axis.points) for axis in grid.axes]), grid)
        found = []
        for i in range(grid.dimension):
            field = jnp.zeros((), dtype)
            if i in self.components:
                field = self.components[i].on(places.axes, params, **places.coordinates(i, params))
            found.append(jnp.broadcast_to(field, grid.shape(i)))
        return tuple(found)

    def __call__(self, params: Params, key: jax.Array, boundary: Callable[[Params, Any], Any] | None) -> Velocity:
        """Return the divergence-free initial velocity.

        Args:
            params: parameters.
            key: random key of the eddies.
            boundary: velocity on the sides, ``(params, time) -> values``; or None.
        """
        domain = self._places.domain
        grid = domain.grid
        velocity = self.said(params)
        dtype = velocity[0].dtype
        if self.eddies is not None:
            size = self.eddies.number(params)
            velocity = tuple(f + size * eddy for f, eddy in zip(velocity, random_eddies(grid, key, dtype), strict=True))
        velocity = _closed(velocity, self._places)
        if self._solve is None:
            return velocity
        velocity = prescribe(velocity, velocity_on_sides(boundary, domain, params, jnp.zeros((), dtype)), domain)
        slopes = gradient(self._solve(divergence(velocity, grid)), grid, domain.open_sides())
        return jax.tree.map(jnp.subtract, velocity, slopes)


def _closed(velocity: Velocity, places: Places) -> Velocity:
    """Return the velocity with zero normal component on impermeable sides."""
    components = list(velocity)
    for axis in places.domain.bounded():
        for side in (0, 1):
            kind = places.domain.side(axis, side)
            if not (kind.enters or kind.leaves or kind.gives_pressure):
                nothing = jnp.zeros_like(end(components[axis], axis, side))
                components[axis] = with_end(components[axis], nothing, axis, side)
    return tuple(components)


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
    equations: Equations

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
        scalars = {name: ScalarFormulas(each, known, places) for name, each in settings["scalars"].items()}
        carried = {name: carried_scalar(name, each, places) for name, each in scalars.items()}
        viscosity, flow_rate = known.formula(settings["viscosity"]), maybe("flow_rate")
        nu = viscosity_of(viscosity, boundary, places, fields)
        implicit_viscosity = maybe("implicit_viscosity")
        varies = viscosity.takes(*fields)
        obstacles = {name: ObstacleFormulas(each, known) for name, each in settings["obstacles"].items()}
        courant_number = maybe("courant_number")
        for key, is_idle, why in (
            ("largest_speed", courant_number is not None, "beside courant_number"),
            ("obstacle_method", not obstacles, "without obstacles"),
        ):
            if is_idle and settings[key] is not None:
                raise settings.refuse(key, f"has no effect {why}; leave it out")
        equations = Equations(
            domain=sides.domain,
            viscosity=nu,
            time_step=fixed_time_step if courant_number is None else adaptive_time_step(courant_number.number),
            boundary=boundary,
            side_pressure=side_pressure_of(sides.pressures, places),
            force=force_of(formulas, places),
            drag=drag_of(drag, places),
            flow_rate=flow_rate_of(flow_rate),
            scalar=TransportedScalars(carried) if carried else None,
            method=settings["method"],
            implicit=_implicit(settings, places, varies),
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
            initial=InitialVelocity(settings["initial"], known, places),
            scalars=scalars,
            carried=carried,
            obstacles=obstacles,
            implicit_viscosity=implicit_viscosity,
            courant_number=courant_number,
            largest_speed=_largest_speed(settings, known),
            equations=equations,
        )


def _names(settings: Settings, params: Params, fields: tuple[str, ...], dimension: int) -> Names:
    """Return the names that formulas may use, after checking that no name has two meanings."""
    reserved = {*AXES, *COMPONENTS, TIME, SHEAR_RATE, *TAKEN, *FUNCTIONS, *CONSTANTS, *params}
    walls = (f"{axis}_{end}" for axis in AXES for end in ENDS)
    for table, taken in (("scalars", reserved), ("obstacles", {*reserved, *walls, *settings["scalars"]})):
        for name in settings[table]:
            if name in taken:
                raise UserError(f"{table}.{name}: the name '{name}' is taken; choose another")
    return Names(scope(params, settings["derived"], fields), dimension, tuple(settings["scalars"]))


def _largest_speed(settings: Settings, names: Names) -> tuple[Formula, ...]:
    """Return the formula of the largest speed expected, or one for each component of the velocity; empty without."""
    texts = settings["largest_speed"]
    return () if texts is None else tuple(map(names.formula, texts if isinstance(texts, tuple) else (texts,)))


def _implicit(settings: Settings, places: Places, varies: bool) -> tuple[int, ...]:
    """Return the axes of implicit friction: those in the settings, by default those with a wall."""
    domain, said = places.domain, settings["implicit"]
    if said is not None:
        return tuple(AXES.index(name) for name in dict.fromkeys(said))
    if settings["obstacles"] or (varies and settings["implicit_viscosity"] is None):
        return ()
    return tuple(i for i in domain.bounded() if any(domain.side(i, side).sticks for side in (0, 1)))
