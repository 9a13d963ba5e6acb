"""MuJoCo in C: many members on all cores, forward only."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytree import pytree
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.rigid.models.description import Description
from simkit.rigid.models.engine import Engine, Links
from simkit.rigid.models.mujoco_host import WIDTHS, Host
from simkit.rigid.models.source import compiled, library
from simkit.rigid.models.watch import watched


@pytree
class MujocoMemory:
    """What MuJoCo carries, and what its sensors tell of that.

    Attributes:
        position: coordinates, (nq,).
        velocity: (nv,).
        activation: of actuators that have a state, (na,).
        warm_start: acceleration that the solver starts from, that of the last time step, (nv,).
        bodies: see `WIDTHS`, (B, 16).
        contacts: their number and the least distance in m, (2,).
    """

    position: jax.Array
    velocity: jax.Array
    activation: jax.Array
    warm_start: jax.Array
    bodies: jax.Array
    contacts: jax.Array


def mujoco_engine(spec: Any, description: Description) -> Engine:
    """Return MuJoCo itself for a model: one call to the host for each step of the simulation, whatever the ensemble.

    All members of an ensemble advance in that one call, on all cores; the more substeps, the less the calls cost. It
    cannot be differentiated nor exported.

    Args:
        spec: the model's specification; sensors are added to a copy.
        description: of the model.

    Raises:
        UserError: if the model has a state beyond coordinates, velocities, activations and the warm start.
    """
    spec = spec.copy()
    _add_sensors(spec)
    model = compiled(spec)
    _refuse_other_state(model)
    host = Host(model)
    bodies, sensors = len(description.mass), sum(WIDTHS)

    def refuse() -> None:
        raise UserError(
            "engine = 'mujoco' is compiled C and has no derivative; choose engine = 'mjx' or one of brax to "
            "differentiate or optimize"
        )

    def call(params: Params, memory: MujocoMemory, controls: jax.Array) -> MujocoMemory:
        mass, inertia = description.masses(params)
        state = jnp.concatenate([memory.position, memory.velocity, memory.activation, memory.warm_start])
        given = {
            **{"state": state, "controls": controls},
            **{"mass": mass, "inertia": inertia, "friction": params["friction_scale"][None]},
            **{"gravity": description.gravity_vector(params), "time_step": params["time_step"][None]},
        }
        numbers = watched(jnp.concatenate([part.ravel() for part in given.values()]), on_derivative=refuse)
        words = _words(numbers)
        width = model.nq + 2 * model.nv + model.na + 2 + bodies * sensors
        wanted = jax.ShapeDtypeStruct((width * words.size // numbers.size,), jnp.uint32)
        dtype, steps = memory.position.dtype, len(controls)
        function = functools.partial(_advance, host, steps, np.dtype(dtype))
        found = _numbers(jax.pure_callback(function, wanted, words, vmap_method="broadcast_all"), dtype)
        ends = np.cumsum([model.nq, model.nv, model.na, model.nv, 2])
        position, velocity, activation, warm_start, touching, told = jnp.split(found, ends)
        return MujocoMemory(
            position=position,
            velocity=velocity,
            activation=activation,
            warm_start=warm_start,
            contacts=touching,
            bodies=told.reshape(bodies, sensors),
        )

    def start(params: Params, position: jax.Array, velocity: jax.Array) -> MujocoMemory:
        dtype = position.dtype
        memory = MujocoMemory(
            position=position,
            velocity=velocity,
            activation=jnp.zeros((model.na,), dtype),
            warm_start=jnp.zeros_like(velocity),
            bodies=jnp.zeros((bodies, sensors), dtype),
            contacts=jnp.zeros((2,), dtype),
        )
        return call(params, memory, jnp.zeros((0, model.nu), dtype))

    def links(params: Params, memory: MujocoMemory) -> Links:
        del params
        position, orientation, center, velocity, turning = jnp.split(memory.bodies, np.cumsum(WIDTHS)[:-1], axis=1)
        return Links(
            position=position, orientation=orientation, center=center, velocity=velocity, angular_velocity=turning
        )

    def contacts(params: Params, memory: MujocoMemory) -> tuple[jax.Array, jax.Array]:
        del params
        count, distance = memory.contacts
        return count.astype(jnp.int32), jnp.maximum(-distance, 0)

    return Engine(
        start=start,
        advance=call,
        coordinates=lambda memory: (memory.position, memory.velocity),
        links=links,
        contacts=contacts,
        masses=description.masses,
        has_armature=True,
        check=lambda params: None,
        touches=False,
    )


def _refuse_other_state(model: Any) -> None:
    """Refuse delays and plug-ins, whose state would be lost between two steps of the simulation."""
    mujoco = library("mujoco")
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS.value)
    if size != 1 + model.nq + model.nv + model.na:
        raise UserError(
            "engine = 'mujoco' does not carry the memory of delays (nsample), plastic bodies and plug-ins from step to "
            "step; take them out of the model"
        )


def _advance(host: Host, steps: int, dtype: np.dtype, words: Any) -> np.ndarray:
    """Return the bit patterns of what the host makes of those of any number of members."""
    words = np.ascontiguousarray(np.asarray(words))
    numbers = words.view(dtype).astype(np.float64)
    found = host.advance(numbers.reshape(-1, numbers.shape[-1]), steps).astype(dtype)
    return found.view(np.uint32).reshape(*words.shape[:-1], -1)


def _words(numbers: jax.Array) -> jax.Array:
    """Return the bits of floating-point numbers: a thread that calls back may not know of 64 bits, and would round."""
    return jax.lax.bitcast_convert_type(numbers, jnp.uint32).ravel()


def _numbers(words: jax.Array, dtype: Any) -> jax.Array:
    """Return the floating-point numbers of these bits."""
    halves = np.dtype(dtype).itemsize // 4
    return jax.lax.bitcast_convert_type(words.reshape(-1, halves) if halves > 1 else words, dtype)


def _add_sensors(spec: Any) -> None:
    """Add sensors for the contacts and for every body."""
    mujoco = library("mujoco")
    sensors, objects = mujoco.mjtSensor, mujoco.mjtObj
    # Of all contacts, their number (found) and the distance of the deepest (mindist).
    spec.add_sensor(name="simkit contacts", type=sensors.mjSENS_CONTACT, intprm=[0b1001, 1, 1])
    kinds = (
        (sensors.mjSENS_FRAMEPOS, objects.mjOBJ_XBODY),
        (sensors.mjSENS_FRAMEQUAT, objects.mjOBJ_XBODY),
        (sensors.mjSENS_FRAMEPOS, objects.mjOBJ_BODY),
        (sensors.mjSENS_FRAMELINVEL, objects.mjOBJ_BODY),
        (sensors.mjSENS_FRAMEANGVEL, objects.mjOBJ_BODY),
    )
    for body in spec.bodies[1:]:
        for index, (sensor, kind) in enumerate(kinds):
            spec.add_sensor(name=f"simkit {body.name} {index}", type=sensor, objtype=kind, objname=body.name)
