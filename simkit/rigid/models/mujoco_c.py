"""MuJoCo in C: many members on all cores, forward only."""

import copy
import functools
import os
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytree import pytree
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.rigid.models.description import Description
from simkit.rigid.models.engine import Engine, Links
from simkit.rigid.models.source import compiled, library
from simkit.rigid.models.watch import watched

# Numbers that sensors tell of a body: position and orientation of its frame, center, velocity, angular velocity.
WIDTHS = (3, 4, 3, 3, 3)


@pytree
class MujocoMemory:
    """What MuJoCo carries, and what its sensors tell of that.

    Attributes:
        position: coordinates, (nq,).
        velocity: (nv,).
        activation: of actuators that have a state, (na,).
        bodies: see `WIDTHS`, (B, 16).
        contacts: their number and the least distance in m, (2,).
    """

    position: jax.Array
    velocity: jax.Array
    activation: jax.Array
    bodies: jax.Array
    contacts: jax.Array


def mujoco_engine(spec: Any, description: Description) -> Engine:
    """Return MuJoCo itself for a model: one call to the host for each step of the simulation, whatever the ensemble.

    All members of an ensemble advance in that one call, by `mujoco.rollout` on all cores; the more substeps, the less
    the calls cost. It cannot be differentiated nor exported.

    Args:
        spec: the model's specification; sensors are added to a copy.
        description: of the model.
    """
    spec = spec.copy()
    _add_sensors(spec)
    model = compiled(spec)
    host = Host(model)
    bodies, sensors = len(description.mass), sum(WIDTHS)

    def refuse() -> None:
        raise UserError(
            "engine = 'mujoco' is compiled C and has no derivative; choose engine = 'mjx' or one of brax to "
            "differentiate or optimize"
        )

    def call(params: Params, memory: MujocoMemory, controls: jax.Array) -> MujocoMemory:
        mass, inertia = description.masses(params)
        given = {
            **{"state": jnp.concatenate([memory.position, memory.velocity, memory.activation]), "controls": controls},
            **{"mass": mass, "inertia": inertia, "friction": params["friction_scale"][None]},
            **{"gravity": description.gravity_vector(params), "time_step": params["time_step"][None]},
        }
        numbers = watched(jnp.concatenate([part.ravel() for part in given.values()]), on_derivative=refuse)
        words = _words(numbers)
        width = model.nq + model.nv + model.na + 2 + bodies * sensors
        wanted = jax.ShapeDtypeStruct((width * words.size // numbers.size,), jnp.uint32)
        dtype, steps = memory.position.dtype, len(controls)
        function = functools.partial(_advance, host, steps, np.dtype(dtype))
        found = _numbers(jax.pure_callback(function, wanted, words, vmap_method="broadcast_all"), dtype)
        ends = np.cumsum([model.nq, model.nv, model.na, 2])
        position, velocity, activation, touching, told = jnp.split(found, ends)
        return MujocoMemory(
            position=position,
            velocity=velocity,
            activation=activation,
            contacts=touching,
            bodies=told.reshape(bodies, sensors),
        )

    def start(params: Params, position: jax.Array, velocity: jax.Array) -> MujocoMemory:
        dtype = position.dtype
        memory = MujocoMemory(
            position=position,
            velocity=velocity,
            activation=jnp.zeros((model.na,), dtype),
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


class Host:
    """MuJoCo's side of the calls: a thread for each core, and a copy of the model for each member that needs its own.

    Args:
        model: a `mujoco.MjModel` with the sensors.
    """

    def __init__(self, model: Any) -> None:
        """Make the threads' data."""
        mujoco, rollout = library("mujoco"), library("mujoco.rollout")
        # A state that turned bad must stay so, not start afresh without a word.
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._data = [mujoco.MjData(model) for _ in range(self._threads)]
        self._many, self._one = rollout.Rollout(nthread=self._threads), rollout.Rollout(nthread=0)
        self._model, self._copies, self._lock = model, [], threading.Lock()
        self._subtrees, self._mujoco = _subtrees(model), mujoco

    def advance(self, numbers: np.ndarray, steps: int) -> np.ndarray:
        """Return states, contacts and what sensors tell after some time steps, (members, width).

        Args:
            numbers: of each member: state, controls of each time step, masses, moments of inertia, factor on friction,
                gravity, time step; (members, width).
            steps: how many time steps; none only reads the sensors.
        """
        model, bodies = self._model, self._model.nbody - 1
        sizes = [model.nq + model.nv + model.na, steps * model.nu, bodies, 3 * bodies, 1, 3, 1]
        state, controls, *physics = np.split(numbers, np.cumsum(sizes)[:-1], axis=1)
        members = len(state)
        states = np.concatenate([np.zeros((members, 1)), state], axis=1)
        # Sensors tell of the state before a step: one step more is made, and only its sensors are read.
        controls = controls.reshape(members, steps, model.nu)
        controls = np.concatenate([controls, controls[:, -1:] if steps else np.zeros((members, 1, model.nu))], axis=1)
        with self._lock:
            models = self._models(physics)
            pool, data = (self._one, self._data[:1]) if members == 1 else (self._many, self._data)
            # MuJoCo writes a file of its complaints wherever it runs; the run's own status tells them.
            before = self._mujoco.get_mju_user_warning()
            self._mujoco.set_mju_user_warning(lambda _: None)
            try:
                found, sensed = pool.rollout(models, data, states, controls)
            finally:
                self._mujoco.set_mju_user_warning(before)
        after = (found[:, steps - 1] if steps else states)[:, 1:]
        told = sensed[:, steps, -(2 + sum(WIDTHS) * bodies) :]
        # Where MuJoCo stopped at a state that turned bad, it repeats the last one; it must not pass for motion.
        told[~np.isfinite(after).all(axis=1)] = np.nan
        return np.concatenate([after, told], axis=1)

    def _models(self, physics: list[Any]) -> list[Any]:
        """Return the model of each member, or one that serves all."""
        count = 1 if all((array == array[:1]).all() for array in physics) else len(physics[0])
        while len(self._copies) < count:
            self._copies.append(copy.copy(self._model))
        for member, model in enumerate(self._copies[:count]):
            mass, inertia, friction, gravity, time_step = (array[member] for array in physics)
            model.body_mass[1:], model.body_inertia[1:] = mass, inertia.reshape(-1, 3)
            model.body_subtreemass[:] = self._subtrees @ model.body_mass
            model.geom_friction[:] = self._model.geom_friction * friction
            model.pair_friction[:] = self._model.pair_friction * friction
            model.opt.gravity[:], model.opt.timestep = gravity, time_step.item()
        return self._copies[:count]


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


def _subtrees(model: Any) -> np.ndarray:
    hangs = np.eye(model.nbody)
    for body in range(model.nbody - 1, 0, -1):
        hangs[model.body_parentid[body]] += hangs[body]
    return hangs
