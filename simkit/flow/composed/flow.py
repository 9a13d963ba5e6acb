"""A flow described as data: its checked formulas, and the equations made of them."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from simkit.core.expressions.names import CONSTANTS, FUNCTIONS
from simkit.core.expressions.scope import Formula, Scope, scope
from simkit.core.settings import Settings
from simkit.core.simulation import TAKEN as OF_DATA_SETS
from simkit.core.simulation import Params, as_arrays
from simkit.errors import UserError
from simkit.flow.composed.initial import InitialVelocity
from simkit.flow.composed.names import names_at
from simkit.flow.composed.obstacles import FORCED, IMMERSED, ObstacleFormulas, obstacles_of
from simkit.flow.composed.open_sides import pressures_on_sides, side_pressure_of
from simkit.flow.composed.places import AXES, COMPONENTS, SHEAR_RATE, TIME, Places
from simkit.flow.composed.scalars import ScalarFormulas, carried_scalar
from simkit.flow.composed.sides import (
    ENDS,
    OnSides,
    boundary_of,
    built_domain,
    conditions_on_sides,
    velocities_on_sides,
)
from simkit.flow.composed.terms import flow_rate_of, force_of, viscosity_of
from simkit.flow.equations import Equations
from simkit.flow.scalar import TransportedScalar
from simkit.flow.several_scalars import TransportedScalars
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step

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
        on_sides: formulas of the velocity on the sides.
        conditions: formulas that say where the parts of a side are, for sides of several parts, by (axis, side).
        pressures: formulas of the pressure on open sides, by (axis, side).
        force: formulas of the forces, by component.
        flow_rate: formula of the prescribed flow rate; or None.
        viscosity: formula of the viscosity.
        initial: velocity at the start.
        scalars: formulas of the scalars, by name.
        obstacles: formulas of the obstacles, by name.
        carried: the scalars as the equations take them, by name.
        courant_number: formula of the Courant number that sets the time step; None for a fixed one.
        largest_speed: formula of the largest speed expected, or one for each component; empty where none is given.
        equations: the equations made of all of these.
    """

    settings: Settings
    parameters: Mapping[str, Any]
    places: Places
    on_sides: OnSides
    conditions: Mapping[tuple[int, int], list[Formula]]
    pressures: Mapping[tuple[int, int], Formula]
    force: Mapping[int, Formula]
    flow_rate: Formula | None
    viscosity: Formula
    initial: InitialVelocity
    scalars: Mapping[str, ScalarFormulas]
    carried: Mapping[str, TransportedScalar]
    obstacles: Mapping[str, ObstacleFormulas]
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
        domain = built_domain(settings["axes"], settings["wall_slope"])
        places = Places(domain)
        dimension = len(places.axes)
        names = tuple(settings["scalars"])
        moving = (*places.axes, TIME, *places.components, *names)
        fields = (*moving, "speed", SHEAR_RATE)
        defaults = as_arrays(dict(parameters))
        known = _scope(settings, defaults, fields)
        known.refuse_unknown(settings, functools.partial(names_at, axes=places.axes, fields=(*moving, "speed")))
        formulas = {
            i: known.formula(settings["force"][name], moving)
            for i, name in enumerate(AXES[:dimension])
            if settings["force"][name] is not None
        }
        if dimension == 2 and settings["force"]["z"] is not None:
            raise settings["force"].refuse("z", "is given, and the flow is plane; remove it, or give axes.z")
        on_sides = velocities_on_sides(settings["axes"], known, dimension)
        boundary = boundary_of(on_sides, places)
        pressures = pressures_on_sides(settings["axes"], known, dimension)
        scalars = {
            name: ScalarFormulas(one, known, places, (*moving, "speed")) for name, one in settings["scalars"].items()
        }
        carried = {name: carried_scalar(name, one, places) for name, one in scalars.items()}
        viscosity = known.formula(settings["viscosity"], fields)
        flow_rate = None if settings["flow_rate"] is None else known.formula(settings["flow_rate"], (TIME,))
        nu = viscosity_of(viscosity, boundary, places, fields)
        part = settings["implicit_viscosity"]
        inner = None if part is None else known.formula(part)
        varies = viscosity.takes(*fields)
        obstacles = {
            name: ObstacleFormulas(one, known, dimension, names) for name, one in settings["obstacles"].items()
        }
        said = settings["courant_number"]
        courant_number = None if said is None else known.formula(said)
        if courant_number is not None and settings["largest_speed"] is not None:
            raise settings.refuse("largest_speed", "has no effect beside courant_number; leave it out")
        plain = not varies and flow_rate is None and courant_number is None
        immersed = dimension == 2 and plain and not settings["implicit"]
        if settings["obstacle_method"] is not None and not obstacles:
            raise settings.refuse("obstacle_method", "has no effect without obstacles; leave it out")
        way = settings["obstacle_method"] or (IMMERSED if immersed else FORCED)
        equations = Equations(
            domain=domain,
            viscosity=nu,
            time_step=fixed_time_step if courant_number is None else adaptive_time_step(courant_number.number),
            boundary=boundary,
            side_pressure=side_pressure_of(pressures, places),
            force=force_of(formulas, places),
            flow_rate=flow_rate_of(flow_rate),
            scalar=TransportedScalars(carried) if carried else None,
            obstacle=obstacles_of(obstacles, way, domain, nu, defaults),
            method=settings["method"],
            implicit=_implicit(settings, places, varies),
            implicit_viscosity=None if inner is None else lambda params: inner.number(params),
            scheme=settings["scheme"],
        )
        return cls(
            settings=settings,
            parameters=parameters,
            places=places,
            on_sides=on_sides,
            conditions=conditions_on_sides(settings["axes"], known, dimension),
            pressures=pressures,
            force=formulas,
            flow_rate=flow_rate,
            viscosity=viscosity,
            initial=InitialVelocity(settings["initial"], known, places),
            scalars=scalars,
            carried=carried,
            obstacles=obstacles,
            courant_number=courant_number,
            largest_speed=_largest_speed(settings, known, dimension),
            equations=equations,
        )


def _scope(settings: Settings, params: Params, fields: tuple[str, ...]) -> Scope:
    """Return the names that formulas may use, after checking that no name has two meanings."""
    reserved = {*AXES, *COMPONENTS, TIME, SHEAR_RATE, *TAKEN, *FUNCTIONS, *CONSTANTS, *params}
    walls = (f"{axis}_{end}" for axis in AXES for end in ENDS)
    for table, taken in (("scalars", reserved), ("obstacles", {*reserved, *walls, *settings["scalars"]})):
        for name in settings[table]:
            if name in taken:
                raise UserError(f"{table}.{name}: the name '{name}' is taken; choose another")
    return scope(params, settings["derived"], fields)


def _largest_speed(settings: Settings, known: Scope, dimension: int) -> tuple[Formula, ...]:
    """Return the formula of the largest speed expected, or one for each component of the velocity; empty without."""
    said = settings["largest_speed"]
    if not isinstance(said, tuple):
        return () if said is None else (known.formula(said),)
    if len(said) != dimension:
        raise settings.refuse(
            "largest_speed", f"has {len(said)} components, and the flow {dimension}; give one for each, or one speed"
        )
    return tuple(map(known.formula, said))


def _implicit(settings: Settings, places: Places, varies: bool) -> tuple[int, ...]:
    """Return the axes of implicit friction: those in the settings, by default those with a wall."""
    domain, said = places.domain, settings["implicit"]
    if said is not None:
        for name in said:
            if name not in places.axes:
                raise settings.refuse("implicit", f"names '{name}', and the flow is plane; remove it")
        return tuple(AXES.index(name) for name in dict.fromkeys(said))
    if settings["obstacles"] or (varies and settings["implicit_viscosity"] is None):
        return ()
    return tuple(i for i in domain.bounded() if any(domain.side(i, side).sticks for side in (0, 1)))
