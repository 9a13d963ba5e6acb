"""Scenes of rigid bodies described as data: the factory of ``rigid.scene``."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import refuse_ended, scope, tables_in_time
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.parts import Choice, declaration_of
from simkit.core.settings import Settings, declares, read
from simkit.core.simulation import Params, Simulation, as_arrays, over_steps
from simkit.rigid.bodies.bodies import Bodies, where_held
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.description.bodies import Group, group_of
from simkit.rigid.description.formulas import Names, values_of
from simkit.rigid.description.joints import connections_of, loads_of
from simkit.rigid.description.measures import Measures, measures_of
from simkit.rigid.description.settings import LOCAL, METHOD, SETTINGS
from simkit.rigid.joints.rattle import assemble
from simkit.rigid.parts import TIMES, refusal
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Dynamics, Scene
from simkit.rigid.simulate import METHODS, simulate

PARAMETERS = {"time_step": Parameter(0.005, POSITIVE, "s", "time step")}


@declares(SETTINGS)
def system(
    *,
    bodies: Sequence[Mapping[str, Any]],
    joints: Sequence[Mapping[str, Any]] = (),
    close_joints: bool = False,
    motors: Sequence[Mapping[str, Any]] = (),
    loads: Sequence[Mapping[str, Any]] = (),
    gravity: float | str | Sequence[float | str] | None = None,
    method: str | Mapping[str, Any],
    points: Mapping[str, Any] | None = None,
    forces: Mapping[str, Any] | None = None,
    impacts: Mapping[str, Any] | None = None,
    statistics: Mapping[str, Any] | None = None,
    measured: Sequence[str] = (),
    derived: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Simulation:
    """Return a scene of rigid bodies described as data: bodies, joints, loads, and the method of time stepping.

    Numbers may be formulas, see docs/scenario_files.md; they take the parameters and ``derived`` values, those of a
    body also its number ``index`` among the copies of its entry, those of motors and forces also ``time``. Every
    parameter may be swept and differentiated.

    Args:
        bodies: kinds of bodies: ``shape`` with its sizes, ``mass`` or ``density``, surface, ``count`` or ``grid``, and
            the motion at the start; planes that bound them are among them.
        joints: hinges, sliders, balls, welds, rods and attachments between bodies by ``name``, or with the world.
        close_joints: whether bodies are moved at the start, as little as possible, and their velocities changed, so
            that all joints are closed and stay so; see `simkit.rigid.joints.rattle.assemble`.
        motors: torques, speeds and servos in hinges.
        loads: springs, dampers, drag, forces and potential energies.
        gravity: acceleration of free fall along -z, or its vector.
        method: ``"free"``, ``"events"``, ``"impulses"``, ``"compliant"`` or ``"jointed"``, or a table with its ``name``
            and options; see docs/rigid.md.
        points: points of bodies or of the world, by name, with diagnostics of their coordinates.
        forces: forces of contacts and joints, by name, each with diagnostics.
        impacts: impacts whose number and times are diagnosed, by name.
        statistics: means, sums and extremes over bodies, by name, each a diagnostic.
        measured: names of bodies and joints with diagnostics of their own.
        derived: formulas of values that other formulas take, by name.
        tables: tables of numbers, by name, which formulas read by ``interp(time, NAME)``.
        parameters: parameters of the formulas, and ``time_step`` in s: numbers or `simkit.core.parameter.Parameter`, by
            name. In a scenario file those of ``[params]``.

    Raises:
        UserError: names each key with a mistake; for a part of the scene that the method does not support; before a
            run, for numbers out of their bounds and bodies that overlap.

    Example:
        >>> drop = rigid.system(
        ...     bodies=[
        ...         {"shape": "plane", "restitution": "bounce"},
        ...         {"shape": "sphere", "name": "ball", "radius": 0.1, "mass": 1, "position": [0, 0, 0.6]},
        ...     ],
        ...     gravity=10.0,
        ...     method="events",
        ...     measured=["ball"],
        ...     parameters={"bounce": 0.5, "time_step": 0.01},
        ... )
        >>> run = simkit.run(drop, steps=50, every=1)
        >>> print(f"rises to {float(run['ball.z'][32:].max()) - 0.1:.3f} m = e^2 0.5 m")
        rises to 0.125 m = e^2 0.5 m
    """
    keys = {key: value for key, value in locals().items() if key in SETTINGS and value is not None}
    settings = read(keys, SETTINGS)
    parameters = {**PARAMETERS, **(parameters or {})}
    names = Names(scope(as_arrays(parameters), settings["derived"], LOCAL, tables=settings["tables"]))
    names.scope.refuse_unknown(settings, lambda text: text.takes)
    group = group_of(settings["bodies"], names)
    connections = connections_of(settings["joints"], group, names)
    loads_made = loads_of(settings, group, connections, names)
    measures = measures_of(settings, group, connections, names, loads_made)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        motion = group.start(params, bodies, key)
        if group.path is not None:
            time = jnp.zeros_like(params["time_step"])
            motion = where_held(bodies, group.path(motion, bodies, time, params), motion)
        return assemble(motion, bodies, connections.constraining(params, bodies))

    simulation = simulate(
        Scene(
            params=parameters,
            bodies=group.bodies,
            start=start if settings["close_joints"] else group.start,
            dynamics=_method_of(settings["method"], names, measures),
            planes=group.planes,
            joints=connections.constraining,
            loads=loads_made,
            path=group.path,
            measures=measures.diagnose,
            measures_of_contact=measures.diagnose_contacts if measures.forces else None,
            measures_of_joints=measures.diagnose_joints if measures.in_joints else None,
            observe=measures.observe,
            dimensions=measures.dimensions,
        )
    )
    return dataclasses.replace(
        simulation,
        check=_checker(simulation, group, names),
        quantities=RIGID | measures.quantities,
        coordinates={**simulation.coordinates, "body_names": np.array(group.names)},
    )


def _method_of(settings: Settings, names: Names, measures: Measures) -> Dynamics:
    choice: Choice = METHOD.choices[0]
    part = choice.part(settings)
    options = {key: settings[key] for key in declaration_of(part).keys}
    made = choice.call(settings, (), **options, **values_of(settings, part, lambda text: names.number(text).number))
    if not measures.impacts:
        return made
    if TIMES not in made.supports:
        raise refusal(made, METHODS, TIMES, f"impacts.{measures.impacts[0].name} asks for {TIMES}", frozenset())
    return dataclasses.replace(made, recorded=measures.impacts)


def _checker(simulation: Simulation, group: Group, names: Names) -> Any:
    """Return ``(params, key) -> None``, which raises for parameters with which the scene cannot run."""
    inner, start, bodies = simulation.check, jax.jit(simulation.init), group.bodies
    assert inner is not None  # every scene has one

    def check(params: Params, key: jax.Array) -> None:
        names.check(params)
        if any(entry.region for entry in group.entries):
            group.check_random(params, start(params, key).motion, bodies(params))
        inner(params, key)

    in_time = tables_in_time(names.timed)

    def lasting(params: Params, steps: int) -> None:
        refuse_ended(in_time, params, steps * float(params["time_step"]))

    return over_steps(check, lasting)
