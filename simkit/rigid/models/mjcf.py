"""Articulated models in MJCF or URDF as simulations, with a choice of engines."""

import dataclasses
import functools
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import compensated_sum
from simkit.core.formulation import computed_once, in_blocks, members_first, members_last, precise_product
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, line, named, record, whole, word
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.core.status import Status, at_frames, cautioned, is_finite
from simkit.errors import UserError
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.tensor import rotated
from simkit.rigid.models.brax_pipelines import brax_engine
from simkit.rigid.models.description import Description, describe, place
from simkit.rigid.models.engine import Engine, Memory, silent, watched
from simkit.rigid.models.event_driven import Rules
from simkit.rigid.models.joint_coordinates import simkit_engine
from simkit.rigid.models.mjx import mjx_engine
from simkit.rigid.models.motors import RULES, Motor, add_motors
from simkit.rigid.models.mujoco_c import mujoco_engine
from simkit.rigid.models.sensors import values_of
from simkit.rigid.models.source import compiled, library, read_spec, without_reports
from simkit.rigid.quantities import RIGID

DIMENSIONS = {
    "position": ("shape", "space"),
    "orientation": ("shape", "quaternion"),
    "half_lengths": ("shape", "space"),
    "radius": ("shape",),
    "joint_position": ("coordinate",),
    "joint_velocity": ("degree_of_freedom",),
}
OF_EVENTS = {"impact_position": ("coordinate",), "impact_velocity": ("degree_of_freedom",)}

ENGINES = ("simkit", "mjx", "brax-spring", "brax-generalized", "brax-positional", "mujoco")


def _name_or_index(value: Any, where: str) -> str | int:
    is_name = isinstance(value, str)
    return line("name").check(value, where) if is_name else whole("index").check(value, where)


_checked = arguments(
    engine=word("engine", ENGINES),
    substeps=whole("time steps per step of the simulation", low=1),
    solver_iterations=whole("iterations of the constraint solver; 0 for those of the model", low=0),
    events=record("contact at exact times, by the engine simkit, with these rules", Rules),
    motors=named(
        "motors by joint, behind the actuators of the model", record("a motor", Motor, RULES), r"[\w .:/-]{1,99}"
    ),
    keyframe=dataclasses.replace(
        line("keyframe of the model to start from, by name or index", None),
        kind="a name or an index",
        check=_name_or_index,
        describe=lambda: {"type": ["string", "integer"]},
    ),
)


@pytree
class Articulated:
    """State of a model.

    Attributes:
        memory: state of the engine.
        time: in s.
        excess: accumulated rounding error of ``time``, in s; the exact time is ``time - excess``.
    """

    memory: Memory
    time: jax.Array
    excess: jax.Array


@_checked
def mjcf(
    model: str | Path,
    *,
    engine: str = "simkit",
    substeps: int = 1,
    solver_iterations: int = 0,
    events: Mapping[str, Any] | Rules | None = None,
    motors: Mapping[str, Mapping[str, Any] | Motor] | None = None,
    keyframe: str | int | None = None,
) -> Simulation:
    """Return the simulation of an articulated model.

    Actuators are driven open loop, ``u_i(t) = c_i + a_i sin(2 pi f t + phi_i)``, within their own limits.

    The parameters, all of which may be swept, are ``gravity`` (in the direction of the model), ``mass`` (one per body;
    moments of inertia scale with it), factors on every mass and friction coefficient, joint coordinates and velocities
    at the start in the order and units of MuJoCo, and for a model with actuators ``control`` c, ``control_amplitude``
    a, ``control_phase`` phi, one per actuator, and ``control_frequency`` f.

    With ``"simkit"``, the default, whose contacts are hard, masses are named after bodies; ``damping``, ``stiffness``
    and ``armature`` of joints, and ``gear`` and ``gain`` of actuators, are parameters too. A model with a part that it
    lacks is refused, with the line of the part: ``engine="mjx"`` or ``"mujoco"`` may have it.

    Derivatives between contacts are physical. Through a contact they are those of the equations of the engine, which
    agree with its finite differences but not with physics, unless ``events`` are given; a warning says so. ``mujoco``
    has no derivatives, and ``mjx`` none in reverse mode unless ``solver_iterations = 1``.

    Args:
        model: path of an MJCF or URDF file; or its text; or ``"brax:ant.xml"``, a model of the installed package brax.
        engine: ``"simkit"``, ``"mjx"``, ``"brax-spring"``, ``"brax-generalized"``, ``"brax-positional"`` or
            ``"mujoco"``.
        substeps: time steps per step of the simulation. Good values: 1; with ``"mujoco"`` as many as a frame has.
        solver_iterations: of the constraint solver of ``mjx``, ``brax-generalized`` and ``mujoco``; 0: that of the
            model.
        events: table of `simkit.rigid.models.event_driven.Rules`, possibly empty: contact at exact times, by the engine
            simkit.
        motors: by name of joint, ``drive`` (``"torque"``, ``"position"`` or ``"velocity"``: what the control is),
            ``gain``, ``damping`` (of a position) and ``limit`` (of the force), such as ``{"knee": {"drive":
            "position", "gain": 50.0, "damping": 5.0}}``; their controls follow those of the model's actuators.
        keyframe: name or index of the model's keyframe to start from; by default its custom number ``init_qpos``, else
            its first keyframe.

    Raises:
        UserError: if the model is missing or malformed, or the engine is unknown or does not support it. The ``check``
            of the simulation refuses parameters out of range, and time steps at which ``brax-spring`` is unstable.

    Example:
        >>> ball = '''
        ... <mujoco>
        ...   <worldbody>
        ...     <body pos="0 0 2"> <freejoint/> <geom size="0.1"/> </body>
        ...   </worldbody>
        ... </mujoco>
        ... '''
        >>> run = simkit.run(rigid.mjcf(ball, engine="mujoco"), steps=100)
        >>> print(f"{float(run['position'][-1, 0, 2]):.2f} m, by hand {2 - 9.81 * 0.2**2 / 2:.2f} m")
        1.80 m, by hand 1.80 m
    """
    file = "" if str(model).lstrip().startswith("<") else Path(model).name
    return _simulation(read_spec(model), engine, substeps, solver_iterations, events, motors, keyframe, file)


@_checked
def from_text(
    *,
    model: str,
    engine: str = "simkit",
    substeps: int = 1,
    solver_iterations: int = 0,
    events: Mapping[str, Any] | Rules | None = None,
    motors: Mapping[str, Mapping[str, Any] | Motor] | None = None,
    keyframe: str | int | None = None,
) -> Simulation:
    """Return the simulation of an articulated model, from its text or from the brax package, as scenarios may.

    Args:
        model: MJCF or URDF text, or ``"brax:ant.xml"``.
        engine: ``"simkit"``, ``"mjx"``, ``"brax-spring"``, ``"brax-generalized"``, ``"brax-positional"`` or
            ``"mujoco"``.
        substeps: time steps per step of the simulation.
        solver_iterations: of the constraint solver of ``mjx``, ``brax-generalized`` and ``mujoco``; 0: that of the
            model.
        events: as for `mjcf`.
        motors: by name of joint, which drive it beside the actuators of the model.
        keyframe: name or index of the model's keyframe to start from.

    Raises:
        UserError: as for `mjcf`; and if the model names further files.
    """
    spec = read_spec(model, from_disk=False)
    return _simulation(spec, engine, substeps, solver_iterations, events, motors, keyframe)


@described(
    RIGID,
    joint_position=("1", "coordinates of the joints, in m or rad, quaternions of free ones"),
    joint_velocity=("1", "velocities of the joints, in m/s or rad/s"),
    height=("m", "height of the first body"),
    position_x=("m", "first body along x"),
    residual=("m/s", "largest error of the laws of contact so far"),
    impacts=("1", "impacts so far"),
    impact_position=("1", "coordinates of the joints at the last impact"),
    impact_velocity=("1", "velocities of the joints just after the last impact"),
    impact_period=("s", "time between the last two impacts"),
    friction_used=("1", "largest ratio so far of tangential to normal force of standing points"),
)
def _simulation(
    spec: Any,
    name: str,
    substeps: int,
    solver_iterations: int,
    events: Any = None,
    motors: Any = None,
    keyframe: Any = None,
    file: str = "",
) -> Simulation:
    if events is not None and name != "simkit":
        raise UserError(f"events has no effect beside engine = '{name}'; leave it out, or write engine = 'simkit'")
    add_motors(spec, motors or {})
    if solver_iterations:
        spec.option.iterations = solver_iterations
    description = describe(compiled(without_reports(spec, keep_sensors=name == "simkit")), spec, keyframe, file)
    if name == "mujoco":
        engine = mujoco_engine(spec, description)
    elif name == "simkit":
        engine = simkit_engine(description, events)
    else:
        refuse_too_many_contacts(name, description.mujoco)
        engine = mjx_engine(description) if name == "mjx" else brax_engine(name, description)
    actuators = description.mujoco.nu

    def controls(params: Params, time: jax.Array) -> jax.Array:
        """Return the controls of the time steps of a step, (substeps, nu)."""
        times = time + params["time_step"] * jnp.arange(substeps, dtype=time.dtype)
        if not actuators:
            return jnp.zeros((substeps, 0), time.dtype)
        angle = 2 * jnp.pi * params["control_frequency"] * times[:, None] + params["control_phase"]
        return params["control"] + params["control_amplitude"] * jnp.sin(angle)

    def init(params: Params, key: jax.Array) -> Articulated:
        scatter = params["velocity_scatter"]
        change = scatter * jax.random.normal(key, params["initial_velocity"].shape, scatter.dtype)
        position = _with_unit_quaternions(description, params["initial_position"])
        memory = engine.start(params, position, params["initial_velocity"] + change)
        start = jnp.zeros_like(params["time_step"])
        return Articulated(memory=memory, time=start, excess=start)

    warning = (
        f"derivatives through a contact of engine = '{name}' agree with its own finite differences, not with physics; "
        "trust them only where nothing touches"
    )
    on_derivative = functools.partial(warnings.warn, warning, stacklevel=1) if engine.touches else silent

    def step(state: Articulated, params: Params) -> Articulated:
        # Without the barriers, programs that fuse this step with other code would round it differently.
        state, params = computed_once((state, params))
        memory = engine.advance(params, state.memory, controls(params, state.time))
        time, excess = compensated_sum(state.time, state.excess, substeps * params["time_step"])
        memory, time, excess = computed_once((memory, time, excess))
        return Articulated(memory=watched(memory, on_derivative=on_derivative), time=time, excess=excess)

    def step_members(states: Articulated, params: Params) -> Articulated:
        def step_block(states: Articulated, params: Params) -> Articulated:
            driven = jax.vmap(controls)(params, states.time)
            last = members_last((params, states.memory, driven))
            memory = members_first(engine.advance(*last))
            time, excess = compensated_sum(states.time, states.excess, substeps * params["time_step"])
            return Articulated(memory=memory, time=time, excess=excess)

        return in_blocks(step_block, states, params)

    def sensed(state: Articulated, params: Params) -> tuple[Arrays, Arrays]:
        """Return the numbers and the arrays of sensors."""
        if engine.sense is None or not engine.sensors:
            return {}, {}
        return values_of(
            engine.sensors, engine.sense(params, state.memory, controls(params, state.time)[0], state.time)
        )

    def observe(state: Articulated, params: Params) -> Arrays:
        state, params = computed_once((state, params))
        links, shapes = engine.links(params, state.memory), description.shapes
        position, orientation = place(shapes, links.position, links.orientation)
        joint_position, joint_velocity = engine.coordinates(state.memory)
        return {
            "position": position,
            "orientation": orientation,
            "half_lengths": jnp.asarray(shapes.half_lengths, position.dtype),
            "radius": jnp.asarray(shapes.radius, position.dtype),
            "joint_position": joint_position,
            "joint_velocity": joint_velocity,
            **engine.observe(params, state.memory),
            **sensed(state, params)[1],
        }

    def diagnose(state: Articulated, params: Params) -> Arrays:
        state, params = computed_once((state, params))
        residual = {} if engine.residual is None else {"residual": engine.residual(state.memory)}
        return {
            "time": state.time,
            **measures(engine, description, params, state.memory),
            **residual,
            **engine.measures(params, state.memory),
            **sensed(state, params)[0],
        }

    def status(state: Articulated, params: Params) -> jax.Array:
        del params
        return jnp.where(is_finite(state), engine.status(state.memory), jnp.int32(Status.NON_FINITE))

    return Simulation(
        init=init,
        step=cautioned(step, _caveat_on_second_derivatives(description) if events is None else ""),
        observe=observe,
        diagnose=diagnose,
        status=at_frames(status),
        params=_parameters(description) | dict(engine.parameters),
        step_members=step_members if engine.members_last else None,
        check=lambda params, key: _check(engine, description, params),
        dimensions=DIMENSIONS
        | ({} if events is None else OF_EVENTS)
        | {sensor.name: sensor.axes for sensor in engine.sensors if sensor.axes},
        quantities={sensor.name: sensor.quantity for sensor in engine.sensors},
        # Bodies without a joint between them count as one.
        coordinates={"body_of_shape": description.mujoco.body_weldid[description.shapes.body]},
    )


def _caveat_on_second_derivatives(description: Description) -> str:
    model = description.mujoco
    if model.ngeom < 2 and not model.jnt_limited.any():
        return ""
    return (
        "contacts and limits of models begin and end at whole steps, so second derivatives through them are those of "
        "the steps and not those of the physics"
    )


def _parameters(description: Description) -> dict[str, Parameter]:
    def of(values: Any, *positional: Any, **named: Any) -> Parameter:
        return Parameter(np.asarray(values, np.float64).tolist(), *positional, **named)

    parameters = {
        "gravity": of(description.gravity, unit="m/s^2", doc="acceleration of free fall"),
        "mass": of(description.mass, POSITIVE, "kg", "masses of the bodies that move"),
        "mass_scale": of(1.0, POSITIVE, "1", "factor on every mass"),
        "friction_scale": of(1.0, NOT_NEGATIVE, "1", "factor on every friction coefficient of the model"),
        "initial_position": of(description.position, unit="1", doc="joint coordinates, in m, quaternions and rad"),
        "initial_velocity": of(description.velocity, unit="1", doc="joint velocities, in m/s and rad/s"),
        "velocity_scatter": of(
            0.0,
            NOT_NEGATIVE,
            "1",
            "standard deviation of random changes of the initial velocities, drawn from the seed",
        ),
        "time_step": of(description.mujoco.opt.timestep, POSITIVE, "s", "time step"),
    }
    if not description.mujoco.nu:
        return parameters
    still = 0 * description.control
    return parameters | {
        "control": of(description.control, unit="1", doc="mean of each actuator's control"),
        "control_amplitude": of(still, unit="1", doc="amplitude of each actuator's control"),
        "control_phase": of(still, unit="rad", doc="phase of each actuator's control"),
        "control_frequency": of(1.0, unit="Hz", doc="frequency of the controls"),
    }


def _quaternions(description: Description) -> list[int]:
    """Return where the quaternions of free and ball joints begin among the coordinates."""
    joints = zip(description.mujoco.jnt_type, description.mujoco.jnt_qposadr, strict=True)
    return [int(first + (3 if kind == 0 else 0)) for kind, first in joints if kind < 2]


def _with_unit_quaternions(description: Description, position: jax.Array) -> jax.Array:
    """Return coordinates with quaternions of length 1, so that derivatives by their entries are those of rotations."""
    for begin in _quaternions(description):
        entries = position[begin : begin + 4]
        position = position.at[begin : begin + 4].set(entries / jnp.linalg.norm(entries))
    return position


def _check(engine: Engine, description: Description, params: Params) -> None:
    """Refuse a free or ball joint that starts without an orientation, and values that the engine cannot run with."""
    for begin in _quaternions(description):
        length = float(jnp.linalg.norm(params["initial_position"][begin : begin + 4]))
        if not abs(length - 1) < 1e-3:
            raise UserError(
                f"initial_position[{begin}:{begin + 4}] is a quaternion of length {length:g}; give a unit "
                "quaternion (w, x, y, z), such as (1, 0, 0, 0)"
            )
    engine.check(params)


def measures(engine: Engine, description: Description, params: Params, memory: Memory) -> Arrays:
    """Return the diagnostics of a model, with the masses of its engine.

    ``energy``: kinetic, of rotors, in the field of gravity, and of springs at joints with one coordinate; ``momentum``
    and ``angular_momentum`` (lengths; the latter about the origin); ``position_x`` and ``height`` of the frame of the
    first body; ``contacts``, their number, and ``penetration``, the largest in m.

    Args:
        engine: engine of the model.
        description: of the model.
        params: of the simulation.
        memory: state of the engine.
    """
    links = engine.links(params, memory)
    mass, moments = engine.masses(params)
    position, velocity = engine.coordinates(memory)
    dtype = mass.dtype

    body_frame = quaternion.quaternion(links.orientation)
    inertia_frame = quaternion.quaternion(jnp.asarray(description.inertia_frame, dtype))
    omega = vector.vector(links.angular_velocity)
    spin = rotated(vector.vector(moments), quaternion.multiply(body_frame, inertia_frame)) @ omega
    center, linear = vector.vector(links.center), vector.vector(links.velocity)

    kinetic = jnp.sum(mass * vector.dot(linear, linear) + vector.dot(spin, omega)) / 2
    kinetic = kinetic + jnp.sum(engine.rotors(params) * velocity**2) / 2
    _, where, rest = description.springs
    stretch = position[where.astype(int)] - jnp.asarray(rest, dtype)
    stored = jnp.sum(engine.stiffness(params) * stretch**2) / 2
    potential = stored - jnp.sum(mass * precise_product(links.center, description.gravity_vector(params)))

    contacts, penetration = engine.contacts(params, memory)
    return {
        "energy": kinetic + potential,
        "momentum": vector.norm(vector.total(mass * linear)),
        "angular_momentum": vector.norm(vector.total(vector.cross(center, mass * linear) + spin)),
        "position_x": links.position[0, 0],
        "height": links.position[0, 2],
        "contacts": contacts,
        "penetration": penetration,
    }


# Bytes per contact and velocity: up to 4 rows of nv entries in float64.
BYTES = 4 * 8
MAX_BYTES = 2**30


def refuse_too_many_contacts(name: str, model: Any) -> None:
    """Refuse a model whose contacts would take more than 1 GiB in an engine on JAX.

    Args:
        name: of the engine.
        model: a `mujoco.MjModel`.

    Raises:
        UserError: with the number of pairs that may touch.
    """
    pairs = most_pairs(model)
    contacts = min(pairs, _numeric(model, "max_contact_points", pairs))
    if contacts * model.nv * BYTES > MAX_BYTES:
        raise UserError(
            f"{name} would allocate contacts for {pairs} pairs of shapes with {model.nv} velocities each, over "
            "1 GiB; choose engine = 'mujoco', let fewer shapes collide (contype, conaffinity), or give the model "
            "<custom><numeric name='max_contact_points' data='100'/></custom>"
        )


def most_pairs(model: Any) -> int:
    """Return the largest number of pairs of geoms in contact: at least one moves, and their bits allow contact.

    Args:
        model: a `mujoco.MjModel`.
    """
    moves = model.body_weldid[model.geom_bodyid] != 0
    kinds, counts = np.unique(
        np.stack([model.geom_contype, model.geom_conaffinity, moves], axis=1), axis=0, return_counts=True
    )
    types, affinities, moving = kinds.T
    total = int(model.npair)
    for kind, count in enumerate(counts):
        others = slice(kind + 1, None)
        allowed = (types[kind] & affinities[others]) | (types[others] & affinities[kind]) != 0
        total += int(count * counts[others][allowed & (moving[others] | moving[kind] != 0)].sum())
        if moving[kind] and types[kind] & affinities[kind]:
            total += int(count * (count - 1) // 2)
    return total


def _numeric(model: Any, name: str, default: int) -> int:
    """Return a custom number of the model, or the default if it is missing or negative."""
    mujoco = library("mujoco")
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
    if index < 0 or model.numeric_data[model.numeric_adr[index]] < 0:
        return default
    return int(model.numeric_data[model.numeric_adr[index]])
