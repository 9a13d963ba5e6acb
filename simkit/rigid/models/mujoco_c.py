"""MuJoCo (compiled C) as an engine: members of an ensemble on all cores, without derivatives."""

import copy
import functools
import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.rigid.models.description import Description, subtree_matrix
from simkit.rigid.models.engine import Engine, Links, watched
from simkit.rigid.models.source import compiled, library

# Sensor readings per body: position and orientation of its frame, center of mass, velocity, angular velocity.
WIDTHS = (3, 4, 3, 3, 3)


class Host:
    """MuJoCo on the host: a thread per core, and a copy of the model per member with its own physical parameters.

    Args:
        model: a `mujoco.MjModel` with the sensors.
    """

    def __init__(self, model: Any) -> None:
        """Allocate data and threads."""
        mujoco, rollout = library("mujoco"), library("mujoco.rollout")
        # By default MuJoCo resets a diverged state silently; it must stay non-finite instead.
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._data = [mujoco.MjData(model) for _ in range(self._threads)]
        self._many = rollout.Rollout(nthread=self._threads)
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for data in self._data:
            self._idle.put((rollout.Rollout(nthread=0), data, data.qacc_warmstart))
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="mujoco")
        self._model, self._copies, self._lock = model, [], threading.Lock()
        self._subtrees, self._mujoco = subtree_matrix(model), mujoco

    def advance(self, numbers: np.ndarray, steps: int) -> np.ndarray:
        """Return states, warm starts, contacts and sensor readings after some time steps, (members, width).

        Args:
            numbers: of each member: state, warm start, controls of each time step, masses, moments of inertia, factor
                on friction, gravity, time step; (members, width).
            steps: number of time steps; 0 only reads the sensors.
        """
        model, bodies, members = self._model, self._model.nbody - 1, len(numbers)
        sizes = [model.nq + model.nv + model.na, model.nv, steps * model.nu, bodies, 3 * bodies, 1, 3, 1]
        state, warm_start, controls, *physics = np.split(numbers, np.cumsum(sizes)[:-1], axis=1)
        state = np.concatenate([np.zeros((members, 1)), state], axis=1)  # the time, which has no effect
        warm_start = warm_start.copy()
        with self._lock:
            models = self._models(physics)
            # By default MuJoCo writes its warnings to a file in the working directory; the status reports failures.
            before = self._mujoco.get_mju_user_warning()
            self._mujoco.set_mju_user_warning(lambda _: None)
            try:
                if steps:
                    controls = np.ascontiguousarray(controls.reshape(members, steps, model.nu))
                    state = self._steps(models, state, warm_start, controls)
                # Sensors measure the state before a step: of one more step, only the readings are used.
                data, still = self._data, np.zeros((members, 1, model.nu))
                _, sensed = self._many.rollout(models, data, state, still, initial_warmstart=warm_start)
            finally:
                self._mujoco.set_mju_user_warning(before)
        readings = sensed[:, 0, -(2 + sum(WIDTHS) * bodies) :]
        # After divergence MuJoCo repeats its last readings, which must not count as results.
        readings[~np.isfinite(state).all(axis=1)] = np.nan
        return np.concatenate([state[:, 1:], warm_start, readings], axis=1)

    def _steps(self, models: list[Any], state: np.ndarray, warm_start: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Return states (members, 1 + nq + nv + na) after time steps, and update the warm starts in place.

        `mujoco.rollout` does not return warm starts: it is called for one member at a time, and its data are read.
        """
        members, steps, _ = controls.shape
        states = np.empty((members, steps, state.shape[1]))
        sensed = np.empty((1, steps, self._model.nsensordata))
        kind = self._mujoco.mjtState.mjSTATE_CTRL.value

        def advance(group: range) -> None:
            rollout, data, warm = self._idle.get()
            unread = sensed.copy()
            try:
                for member in group:
                    row = slice(member, member + 1)
                    rollout.rollout(
                        models[row] if len(models) > 1 else models,
                        [data],
                        state[row],
                        controls[row],
                        control_spec=kind,
                        skip_checks=True,
                        nstep=steps,
                        initial_warmstart=warm_start[row],
                        state=states[row],
                        sensordata=unread,
                    )
                    warm_start[member] = warm
            finally:
                self._idle.put((rollout, data, warm))

        # Groups smaller than the share of a thread balance the load of slow members.
        size = -(-members // (4 * self._threads))
        groups = [range(members)[first : first + size] for first in range(0, members, size)]
        if members == 1:
            advance(groups[0])
        else:
            list(self._pool.map(advance, groups))
        return states[:, -1]

    def _models(self, physics: list[Any]) -> list[Any]:
        """Return one model per member, or a single one if all have the same physical parameters."""
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


@pytree
class MujocoMemory:
    """State that MuJoCo carries from step to step, and its sensor readings.

    Attributes:
        position: coordinates, (nq,).
        velocity: velocities, (nv,).
        activation: states of actuators, (na,).
        warm_start: acceleration of the last time step, initial guess of the solver, (nv,).
        bodies: sensor readings of the bodies, see `WIDTHS`, (B, 16).
        contacts: number of contacts, and the least distance in m, (2,).
    """

    position: jax.Array
    velocity: jax.Array
    activation: jax.Array
    warm_start: jax.Array
    bodies: jax.Array
    contacts: jax.Array


def mujoco_engine(spec: Any, description: Description) -> Engine:
    """Return MuJoCo as an engine for a model: one host call for each step of the simulation.

    All members of an ensemble advance in that one call, on all cores; more substeps reduce the overhead of the calls.
    The engine can be neither differentiated nor exported.

    Args:
        spec: the `mujoco.MjSpec` of the model; sensors are added to a copy.
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
            "engine = 'mujoco' is compiled C and has no derivative; choose engine = 'simkit' where nothing touches, "
            "else 'mjx' or one of brax, to differentiate or optimize"
        )

    def call(params: Params, memory: MujocoMemory, controls: jax.Array) -> MujocoMemory:
        mass, inertia = description.masses(params)
        state = jnp.concatenate([memory.position, memory.velocity, memory.activation, memory.warm_start])
        arguments = {
            **{"state": state, "controls": controls},
            **{"mass": mass, "inertia": inertia, "friction": params["friction_scale"][None]},
            **{"gravity": description.gravity_vector(params), "time_step": params["time_step"][None]},
        }
        numbers = watched(jnp.concatenate([part.ravel() for part in arguments.values()]), on_derivative=refuse)
        words = _words(numbers)
        width = model.nq + 2 * model.nv + model.na + 2 + bodies * sensors
        result_shape = jax.ShapeDtypeStruct((width * words.size // numbers.size,), jnp.uint32)
        dtype, steps = memory.position.dtype, len(controls)
        function = functools.partial(_advance, host, steps, np.dtype(dtype))
        results = _numbers(jax.pure_callback(function, result_shape, words, vmap_method="broadcast_all"), dtype)
        ends = np.cumsum([model.nq, model.nv, model.na, model.nv, 2])
        position, velocity, activation, warm_start, touching, sensed = jnp.split(results, ends)
        return MujocoMemory(
            position=position,
            velocity=velocity,
            activation=activation,
            warm_start=warm_start,
            contacts=touching,
            bodies=sensed.reshape(bodies, sensors),
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
        position, orientation, center, velocity, spin = jnp.split(memory.bodies, np.cumsum(WIDTHS)[:-1], axis=1)
        return Links(
            position=position, orientation=orientation, center=center, velocity=velocity, angular_velocity=spin
        )

    def contacts(params: Params, memory: MujocoMemory) -> tuple[jax.Array, jax.Array]:
        count, distance = memory.contacts
        return count.astype(jnp.int32), jnp.maximum(-distance, 0)

    return Engine(
        start=start,
        advance=call,
        coordinates=lambda memory: (memory.position, memory.velocity),
        links=links,
        contacts=contacts,
        masses=description.masses,
        rotors=description.rotors,
        stiffness=description.stiffness,
        check=lambda params: None,
        touches=False,
    )


def has_other_state(model: Any) -> bool:
    """Return whether a model has a state beyond time, coordinates, velocities and activations."""
    mujoco = library("mujoco")
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS.value)
    return size != 1 + model.nq + model.nv + model.na


def _refuse_other_state(model: Any) -> None:
    """Refuse delays and plug-ins, whose state would be lost between two steps of the simulation."""
    if has_other_state(model):
        raise UserError(
            "engine = 'mujoco' does not carry the memory of delays (nsample), plastic bodies and plug-ins from step to "
            "step; take them out of the model"
        )


def _advance(host: Host, steps: int, dtype: np.dtype, words: Any) -> np.ndarray:
    """Return the results of the host for any number of members, as bit patterns like its arguments."""
    words = np.ascontiguousarray(np.asarray(words))
    numbers = words.view(dtype).astype(np.float64)
    results = host.advance(numbers.reshape(-1, numbers.shape[-1]), steps).astype(dtype)
    return results.view(np.uint32).reshape(*words.shape[:-1], -1)


def _words(numbers: jax.Array) -> jax.Array:
    """Return floating-point numbers as uint32 words: the thread of a callback may round float64 to float32."""
    return jax.lax.bitcast_convert_type(numbers, jnp.uint32).ravel()


def _numbers(words: jax.Array, dtype: Any) -> jax.Array:
    """Return the floating-point numbers of uint32 words, the inverse of `_words`."""
    halves = np.dtype(dtype).itemsize // 4
    return jax.lax.bitcast_convert_type(words.reshape(-1, halves) if halves > 1 else words, dtype)


def _add_sensors(spec: Any) -> None:
    """Add sensors for the contacts and for every body."""
    mujoco = library("mujoco")
    sensors, objects = mujoco.mjtSensor, mujoco.mjtObj
    # Bits 0 (found) and 3 of intprm[0]: the number of all contacts, and the distance of the deepest (mindist).
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
