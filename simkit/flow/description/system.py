"""Flows described as data: the factory of ``flow.domain``."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import refuse_ended
from simkit.core.parameter import POSITIVE, UNBOUNDED, Parameter
from simkit.core.settings import declares, read
from simkit.core.simulation import Params, Simulation, over_steps
from simkit.core.status import Status, at_frames
from simkit.errors import UserError
from simkit.flow.description.checks import check_start
from simkit.flow.description.equations import ComposedFlow
from simkit.flow.description.measurements import Measurements, unit_of_time
from simkit.flow.description.settings import RULES, SETTINGS, settings_of
from simkit.flow.diagnosis.status import flow_status
from simkit.flow.stepping.stepper import FlowState, stepper

_LIMIT = "keep courant_number below 1.7 (runge_kutta), 0.5 (adams_bashforth)"
PARAMETERS = {"time_step": Parameter(0.01, POSITIVE, "1", f"time step; {_LIMIT}")}
LONGEST = "longest time step; the flow makes it shorter"


@declares(SETTINGS)
def system(
    *,
    axes: Mapping[str, Any],
    viscosity: float | str,
    force: Mapping[str, Any] | None = None,
    drag: Mapping[str, Any] | None = None,
    flow_rate: float | str | None = None,
    initial: Mapping[str, Any] | None = None,
    start: Mapping[str, Any] | str | None = None,
    scalars: Mapping[str, Any] | None = None,
    obstacles: Mapping[str, Any] | None = None,
    obstacle_method: str | None = None,
    derived: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
    courant_number: float | str | None = None,
    method: str = "runge_kutta",
    implicit: list[str] | None = None,
    implicit_viscosity: float | str | None = None,
    scheme: str = "central",
    wall_slope: str = "parabola",
    largest_speed: float | str | list[float | str] | None = None,
    plane: float | None = None,
    observed: list[str] | None = None,
    units: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Simulation:
    """Return an incompressible flow described as data: axes, sides, forces, scalars, obstacles and start.

        du/dt + div(u u) = -grad(p) + 2 div(viscosity S) + force - drag,    div(u) = 0
        dc/dt + div(u c) = diffusivity laplacian(c) + source,        for each scalar c

    Numbers may be formulas, see docs/scenario_files.md; they take the parameters, ``derived`` values, the coordinates
    x, y and z, and where they are evaluated during the run ``time``, the velocity ``u``, ``v`` and ``w`` and the
    scalars by name. Every parameter may be swept and differentiated.

    Args:
        axes: x, y and, in space, z: cells, ends and sides of each.
        viscosity: kinematic viscosity, a number or a formula; of the coordinates, the velocity, ``shear_rate`` and
            scalars too.
        force: formulas of its components x, y and z, per unit mass.
        drag: ``coefficient`` of an implicit drag, a number or a formula of the coordinates and time, and the velocity
            ``u``, ``v`` and ``w`` of what drags, by default at rest: porous media, and solids by a large coefficient.
        flow_rate: mean velocity along x, a number or a formula of time, kept by a uniform acceleration; a start with
            another mean is shifted to it.
        initial: formulas of u, v and w, or of the ``stream_function``, at the start.
        start: arrays of velocity and scalars at the start, by name, or the file or stored run that has them; the
            velocity is projected.
        scalars: scalars that the flow carries, by name.
        obstacles: bodies in the flow, by name.
        obstacle_method: "immersed_boundary" or "direct_forcing", see `simkit.flow.obstacles.methods.bodies_in`.
        derived: formulas of values that other formulas take, by name.
        tables: tables of numbers, by name, which formulas read by ``interp(y, NAME)``: lists ``x`` and ``y``, or
            columns of a ``file``.
        courant_number: largest number of cells that the flow crosses in a step, a number or a formula; the parameter
            ``time_step`` is then the longest step, see `simkit.flow.stepping.time_step.adaptive_time_step`.
        method: "runge_kutta" or "adams_bashforth".
        implicit: axes along which friction and diffusion are implicit, by default those with a wall or slip.
        implicit_viscosity: where the viscosity is a field, the part of it that is implicit, a number or a formula.
        scheme: of advection, "central" or "upwind".
        wall_slope: "parabola" or "symmetric", see `simkit.flow.boundary.domain.Domain`.
        largest_speed: largest speed expected during the run, or the largest size of each component, for the check of
            the time step.
        plane: position along z of the plane shown in pictures.
        observed: names of the fields that frames store, by default all.
        units: units of length, velocity and time.
        parameters: parameters of the formulas besides ``time_step``: numbers or `Parameter`, by name.

    Raises:
        UserError: if a setting or a formula is wrong (names its key and the column); before a run, if a formula is not
            finite at the start, or the time step is above the limit of stability.

    Example:
        >>> channel = flow.system(
        ...     axes={
        ...         "x": {"cells": 4, "length": 8.0, "periodic": True},
        ...         "y": {"cells": 16, "from": -1.0, "to": 1.0, "lower": "wall", "upper": "wall"},
        ...     },
        ...     viscosity="nu",
        ...     force={"x": "2*nu"},
        ...     parameters={"nu": 1.0, "time_step": 0.1},
        ... )
        >>> run = simkit.run(channel, steps=50, every=50)
        >>> print(f"{float(run['u'][-1].max()):.4f}, 1 - y^2 = {1 - (1 / 16) ** 2:.4f} beside the centerline")
        0.9961, 1 - y^2 = 0.9961 beside the centerline
    """
    keys = dict(locals())
    declared = keys.pop("parameters")
    dimension = 3 if isinstance(axes, Mapping) and axes.get("z") is not None else 2
    carried = tuple(map(str, scalars)) if isinstance(scalars, Mapping) else ()
    settings = read(
        {key: value for key, value in keys.items() if value is not None}, settings_of(dimension, carried), "", RULES
    )
    adapts = settings["courant_number"] is not None
    if adapts and "time_step" not in (declared or {}):
        raise settings.refuse(
            "courant_number", "is given, and nothing says the longest time step; give the parameter time_step"
        )
    flow = ComposedFlow.of(settings, joined_parameters(declared, unit_of_time(settings), adapts))
    seen = Measurements(flow)
    begin, step = stepper(flow.equations)
    status_of_flow = flow_status(flow.equations)

    def init(params: Params, key: jax.Array) -> FlowState:
        velocity = flow.initial(params, key, flow.equations.boundary)
        scalars = {name: one.start(flow.places, params) for name, one in flow.scalars.items()}
        return begin(velocity, params, scalars or ())

    def status(state: FlowState, params: Params) -> jax.Array:
        code = status_of_flow(state, params)
        for each in flow.tables_in_time:
            is_cause = (code == Status.NON_FINITE) & each.has_ended(params, state.time[0])
            code = jnp.where(is_cause, jnp.int32(Status.TABLE_ENDED), code)
        return code

    def lasting(params: Params, steps: int) -> None:
        if flow.courant_number is None:
            refuse_ended(flow.tables_in_time, params, steps * float(params["time_step"]))

    return Simulation(
        init=init,
        step=step,
        observe=seen.observe,
        diagnose=seen.diagnose,
        params=flow.parameters,
        status=at_frames(status),
        check=over_steps(functools.partial(check_start, flow), lasting),
        dimensions=seen.dimensions,
        coordinates=seen.coordinates,
        quantities=seen.quantities,
    )


def joined_parameters(parameters: Mapping[str, Any] | None, time: str = "1", adapts: bool = False) -> dict[str, Any]:
    """Return the declared parameters, with the user's values and declarations applied, and the user's own.

    Args:
        parameters: numbers or `Parameter` by name.
        time: unit of the time step by default.
        adapts: whether the time step follows from the flow.
    """
    joined: dict[str, Any] = dict(parameters or {})
    for name, declared in PARAMETERS.items():
        parameter = joined.get(name, declared)
        parameter = parameter if isinstance(parameter, Parameter) else Parameter(parameter)
        if isinstance(parameter.default, Mapping) or np.shape(parameter.default):
            raise UserError(f"parameter '{name}' is a table or an array; give one number")
        if isinstance(parameter.default, jax.Array) and parameter.default.dtype.itemsize < 4:
            raise UserError(f"parameter '{name}' is of type {parameter.default.dtype}; give a number of 32 or 64 bits")
        joined[name] = Parameter(
            parameter.default,
            declared.bounds if parameter.bounds == UNBOUNDED else parameter.bounds,
            parameter.unit if parameter.unit != "1" else time,
            parameter.doc or (LONGEST if adapts else declared.doc),
        )
    return joined
