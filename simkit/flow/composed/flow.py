"""A flow that is told as data: its checked formulas, and the equations they make."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from simkit.core.expressions.names import CONSTANTS, FUNCTIONS
from simkit.core.expressions.scope import Formula, Scope, scope
from simkit.core.settings import Settings
from simkit.core.simulation import TAKEN as OF_DATA_SETS
from simkit.core.simulation import Params, as_arrays
from simkit.errors import UserError
from simkit.flow.composed.initial import InitialVelocity
from simkit.flow.composed.obstacles import FORCED, IMMERSED, ObstacleFormulas, obstacles_of
from simkit.flow.composed.open_sides import pressures_on_sides, side_pressure_of
from simkit.flow.composed.places import AXES, COMPONENTS, SHEAR_RATE, TIME, Places
from simkit.flow.composed.scalars import INSULATED, ScalarFormulas, carried_scalar
from simkit.flow.composed.sides import (
    ENDS,
    OnSides,
    boundary_of,
    built_domain,
    conditions_on_sides,
    velocities_on_sides,
)
from simkit.flow.composed.start import check_start
from simkit.flow.composed.terms import flow_rate_of, force_of, viscosity_of
from simkit.flow.equations import Equations
from simkit.flow.scalar import TransportedScalar
from simkit.flow.several_scalars import TransportedScalars
from simkit.flow.stepping.time_step import fixed_time_step

# Names of what frames, diagnostics and data sets have, which no scalar or obstacle may take.
TAKEN = (
    *("pressure", "vorticity", "drive", "sides", "divergence", "kinetic_energy", "courant_number", "speed"),
    *("largest_velocity", "side_velocity", "body_distance", "mean_u", "mean_v", "mean_w", "iteration"),
    *("stream_function", "u_face", "v_face", "w_face", "x_face", "y_face", "z_face"),
    *OF_DATA_SETS,
)


@dataclasses.dataclass(frozen=True, eq=False)
class ComposedFlow:
    """A flow that is told as data.

    Attributes:
        told: all settings.
        parameters: default values, or `simkit.core.parameter.Parameter`, by name.
        places: points of its domain.
        on_sides: formulas of the velocity on the sides.
        conditions: of the parts of sides that consist of several, by (axis, side).
        pressures: formulas of the pressure on open sides, by (axis, side).
        force: formulas of the forces, by component.
        flow_rate: that of the held flow rate; or None.
        viscosity: that of the viscosity.
        initial: velocity at the start.
        scalars: formulas of the scalars, by name.
        obstacles: formulas of the obstacles, by name.
        carried: the scalars, by name.
        largest_speed: formula of the largest speed expected; or None.
        equations: that all of this makes.
    """

    told: Settings
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
    largest_speed: Formula | None
    equations: Equations

    @classmethod
    def of(cls, told: Settings, parameters: Mapping[str, Any]) -> "ComposedFlow":
        """Return the flow that settings tell.

        Args:
            told: checked settings.
            parameters: all of them.

        Raises:
            UserError: that names the key of what does not fit.
        """
        domain = built_domain(told["axes"], told["wall_slope"])
        places = Places(domain)
        dimension = len(places.axes)
        names = tuple(told["scalars"])
        moving = (*places.axes, TIME, *places.components, *names)
        fields = (*moving, "speed", SHEAR_RATE)
        defaults = as_arrays(dict(parameters))
        known = _scope(told, defaults, fields)
        known.refuse_unknown(told, (*fields, INSULATED))
        formulas = {
            i: known.formula(told["force"][name], moving)
            for i, name in enumerate(AXES[:dimension])
            if told["force"][name] is not None
        }
        if dimension == 2 and told["force"]["z"] is not None:
            raise told["force"].refuse("z", "is given, and the flow is plane; remove it, or give axes.z")
        on_sides = velocities_on_sides(told["axes"], known, dimension)
        boundary = boundary_of(on_sides, places)
        pressures = pressures_on_sides(told["axes"], known, dimension)
        scalars = {
            name: ScalarFormulas(one, known, places, (*moving, "speed")) for name, one in told["scalars"].items()
        }
        carried = {name: carried_scalar(name, one, places) for name, one in scalars.items()}
        viscosity = known.formula(told["viscosity"], fields)
        flow_rate = None if told["flow_rate"] is None else known.formula(told["flow_rate"], (TIME,))
        nu = viscosity_of(viscosity, boundary, places, fields)
        part = told["implicit_viscosity"]
        inner = None if part is None else known.formula(part)
        varies = viscosity.takes(*fields)
        obstacles = {name: ObstacleFormulas(one, known, dimension, names) for name, one in told["obstacles"].items()}
        immersed = dimension == 2 and not varies and flow_rate is None and not told["implicit"]
        way = told["obstacle_method"] or (IMMERSED if immersed else FORCED)
        equations = Equations(
            domain=domain,
            viscosity=nu,
            time_step=fixed_time_step,
            boundary=boundary,
            side_pressure=side_pressure_of(pressures, places),
            force=force_of(formulas, places),
            flow_rate=flow_rate_of(flow_rate),
            scalar=TransportedScalars(carried) if carried else None,
            obstacle=obstacles_of(obstacles, way, domain, nu, defaults),
            method=told["method"],
            implicit=_implicit(told, places, varies),
            implicit_viscosity=None if inner is None else lambda params: inner.number(params),
            scheme=told["scheme"],
        )
        largest = told["largest_speed"]
        return cls(
            told=told,
            parameters=parameters,
            places=places,
            on_sides=on_sides,
            conditions=conditions_on_sides(told["axes"], known, dimension),
            pressures=pressures,
            force=formulas,
            flow_rate=flow_rate,
            viscosity=viscosity,
            initial=InitialVelocity(told["initial"], known, places),
            scalars=scalars,
            carried=carried,
            obstacles=obstacles,
            largest_speed=None if largest is None else known.formula(largest),
            equations=equations,
        )

    def check(self, params: Params, key: jax.Array) -> None:
        """Refuse parameters with which a formula is not finite at the start, or the time step too long.

        Raises:
            UserError: that names the formula, or the limit of the time step.
        """
        check_start(self, params, key)


def _scope(told: Settings, params: Params, fields: tuple[str, ...]) -> Scope:
    """Return what formulas may take, once no name has two meanings."""
    reserved = {*AXES, *COMPONENTS, TIME, SHEAR_RATE, *TAKEN, *FUNCTIONS, *CONSTANTS, *params}
    walls = (f"{axis}_{end}" for axis in AXES for end in ENDS)
    for table, taken in (("scalars", reserved), ("obstacles", {*reserved, *walls, *told["scalars"]})):
        for name in told[table]:
            if name in taken:
                raise UserError(f"{table}.{name}: the name '{name}' is taken; choose another")
    return scope(params, told["derived"], fields)


def _implicit(told: Settings, places: Places, varies: bool) -> tuple[int, ...]:
    """Return the axes of implicit friction: those that are said, or those with a wall."""
    domain, said = places.domain, told["implicit"]
    if said is not None:
        for name in said:
            if name not in places.axes:
                raise told.refuse("implicit", f"names '{name}', and the flow is plane; remove it")
        return tuple(AXES.index(name) for name in dict.fromkeys(said))
    if told["obstacles"] or (varies and told["implicit_viscosity"] is None):
        return ()
    return tuple(i for i in domain.bounded() if any(domain.side(i, side).sticks for side in (0, 1)))
