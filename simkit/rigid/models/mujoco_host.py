"""MuJoCo's side of the calls from JAX: members of an ensemble on all cores."""

import copy
import os
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from simkit.rigid.models.source import library

# Numbers that sensors tell of a body: position and orientation of its frame, center, velocity, angular velocity.
WIDTHS = (3, 4, 3, 3, 3)


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
        self._many = rollout.Rollout(nthread=self._threads)
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for data in self._data:
            self._idle.put((rollout.Rollout(nthread=0), data, data.qacc_warmstart))
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="mujoco")
        self._model, self._copies, self._lock = model, [], threading.Lock()
        self._subtrees, self._mujoco = _subtrees(model), mujoco

    def advance(self, numbers: np.ndarray, steps: int) -> np.ndarray:
        """Return states, warm starts, contacts and what sensors tell after some time steps, (members, width).

        Args:
            numbers: of each member: state, warm start, controls of each time step, masses, moments of inertia, factor
                on friction, gravity, time step; (members, width).
            steps: how many time steps; none only reads the sensors.
        """
        model, bodies, members = self._model, self._model.nbody - 1, len(numbers)
        sizes = [model.nq + model.nv + model.na, model.nv, steps * model.nu, bodies, 3 * bodies, 1, 3, 1]
        state, warm_start, controls, *physics = np.split(numbers, np.cumsum(sizes)[:-1], axis=1)
        state = np.concatenate([np.zeros((members, 1)), state], axis=1)  # the time, which nothing depends on
        warm_start = warm_start.copy()
        with self._lock:
            models = self._models(physics)
            # MuJoCo writes a file of its complaints wherever it runs; the run's own status tells them.
            before = self._mujoco.get_mju_user_warning()
            self._mujoco.set_mju_user_warning(lambda _: None)
            try:
                if steps:
                    controls = np.ascontiguousarray(controls.reshape(members, steps, model.nu))
                    state = self._steps(models, state, warm_start, controls)
                # Sensors tell of the state before a step: one step more is made, and only its sensors are read.
                data, still = self._data, np.zeros((members, 1, model.nu))
                _, sensed = self._many.rollout(models, data, state, still, initial_warmstart=warm_start)
            finally:
                self._mujoco.set_mju_user_warning(before)
        told = sensed[:, 0, -(2 + sum(WIDTHS) * bodies) :]
        # Where MuJoCo stopped at a state that turned bad, it repeats the last one; it must not pass for motion.
        told[~np.isfinite(state).all(axis=1)] = np.nan
        return np.concatenate([state[:, 1:], warm_start, told], axis=1)

    def _steps(self, models: list[Any], state: np.ndarray, warm_start: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Return states (members, 1 + nq + nv + na) after time steps, and put the solvers' warm starts in place.

        `mujoco.rollout` gives no warm start back: it is called for one member at a time, and its data are read.
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

        # Groups smaller than a thread's share, so that slow members do not hold up the rest.
        size = -(-members // (4 * self._threads))
        groups = [range(members)[first : first + size] for first in range(0, members, size)]
        if members == 1:
            advance(groups[0])
        else:
            list(self._pool.map(advance, groups))
        return states[:, -1]

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


def _subtrees(model: Any) -> np.ndarray:
    hangs = np.eye(model.nbody)
    for body in range(model.nbody - 1, 0, -1):
        hangs[model.body_parentid[body]] += hangs[body]
    return hangs
