"""Host side of the calls from JAX to MuJoCo: members of an ensemble on all cores."""

import copy
import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from simkit.rigid.models.description import subtree_matrix
from simkit.rigid.models.source import library

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
                    one = slice(member, member + 1)
                    rollout.rollout(
                        models[one] if len(models) > 1 else models,
                        [data],
                        state[one],
                        controls[one],
                        control_spec=kind,
                        skip_checks=True,
                        nstep=steps,
                        initial_warmstart=warm_start[one],
                        state=states[one],
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
