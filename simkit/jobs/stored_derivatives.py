"""Derivatives stored piece by piece, which resume after an interruption."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from simkit.core import paths
from simkit.core.budget import NoRoomError
from simkit.core.compilation import needed_bytes
from simkit.core.objective import Objective
from simkit.core.pytrees import size_in_bytes
from simkit.core.simulation import Arrays, Simulation
from simkit.core.status import Status
from simkit.engine.backward import VALUE, backward, last_segment, number_of_pieces, number_within, plan_of_pieces
from simkit.engine.driver import SEGMENTS, Drive, Program, Segment, final_status, plan_of, segments_of
from simkit.engine.memory import format_bytes, memory_in_bytes
from simkit.errors import UserError
from simkit.jobs import derivatives
from simkit.jobs.job import Job, Prepared, StoredProgress, check_disk, write_times
from simkit.jobs.reporting import Report, Warn
from simkit.jobs.runs import RunFailedError
from simkit.scenario.build import build
from simkit.scenario.scenario import Scenario
from simkit.storage import manifest
from simkit.storage.datasets import attributes_of
from simkit.storage.files import (
    DamagedFileError,
    Layout,
    read_arrays,
    read_sealed_json,
    write_arrays,
    write_sealed_json,
)
from simkit.storage.run_directory import SUMMARY, RunDirectory
from simkit.storage.store import Store

if TYPE_CHECKING:
    import xarray

RESULT = "derivative.npz"
# Names of its arrays besides the value.
STATUS, SLOPE = "status", "derivative."


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredDerivative(derivatives.Derivative):
    """A derivative with what it is of.

    Attributes:
        scenario: scenario with overrides applied.
        objective: name of the objective.
        version: version of simkit that began it; empty for the current one.
    """

    scenario: Scenario
    objective: str
    version: str = ""


@dataclasses.dataclass(frozen=True)
class Gradient(Job[StoredDerivative]):
    """A derivative of an objective, in reverse mode with the states between its pieces on disk.

    Of a simulation that converges the run is stored, and the derivative is the implicit one of its last state.

    Attributes:
        wrt: parameters to differentiate by.
        objective: name of the objective.
        segments: number of segments after the first, forward and backward; an upper bound if the run converges.
        fit: memory used and number of pieces, in one line; empty without a memory limit.
        memory: memory limit in bytes of a new derivative, or ``None``; not stored, since the pieces follow from
            ``segments``.
    """

    kind = "grad"
    noun = "a derivative"
    files = r"derivative\.npz"
    repair = "compute it"
    request_checks: ClassVar = {
        "wrt": manifest.WORDS,
        "objective": manifest.WORD,
        "segments": manifest.COUNT,
    }
    request_added_later: ClassVar = {"fit": manifest.WORD}
    report = "derivative"

    wrt: tuple[str, ...]
    objective: str
    segments: int = 1
    fit: str = ""
    memory: int | None = None

    def checked(self) -> "Gradient":
        """Return the job with its parameters as paths, and branches replaced by the parameters below them."""
        wrt = tuple(derivatives.selected_parameters(self.scenario, self.wrt))
        return dataclasses.replace(self, wrt=wrt, objective=derivatives.objective_name(self.scenario, self.objective))

    @property
    def results(self) -> tuple[str, ...]:
        """Files of a finished job."""
        return (SUMMARY, RESULT)

    @property
    def progress(self) -> dict[str, Any]:
        """What is done."""
        return {"doing": "differentiating"}

    @property
    def _key(self) -> "jax.Array":
        return jax.random.key(self.scenario.run.seed)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the simulation, with buffers large enough for the run."""
        made = build(self.scenario)
        objective = derivatives.objective_of(self.scenario, made, self.objective)
        if made.sized_like is None or objective.converges:
            return made
        return objective.with_room(made.params, self._key).simulation

    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of the run, used if it converges."""
        return Program.of(simulation, plan_of(self.scenario))

    def fitted(self, prepared: Prepared, output: Path | None) -> "Gradient":
        """Return the job with its number of segments, if it fits in memory and its files on the disk."""
        objective = derivatives.objective_of(self.scenario, prepared.simulation, self.objective)
        least, fit, params = SEGMENTS, "", prepared.simulation.params
        if self.memory is not None:
            with derivatives.within_memory(self.scenario, self.memory, in_pieces=True):
                if objective.converges:
                    program = self._at_rest(objective).lower(prepared.shapes[0], self._chosen(objective)).compile()
                    needed, what = needed_bytes(program), f"{derivatives.EQUILIBRIUM} holds no states of earlier steps"
                    if needed > self.memory:
                        raise NoRoomError(needed)
                else:
                    least, needed = number_within(objective, self.wrt, params, self._key, self.memory, SEGMENTS)
                    what = f"the run is divided into {least} pieces"
            fit = f"{format_bytes(needed)} of {format_bytes(self.memory)}: {what}"
        plan = plan_of(self.scenario) if objective.converges else plan_of_pieces(objective, least)
        state, frame = prepared.shapes
        # A state for each piece, and checkpoints of a state and a cotangent.
        size = (plan.segments + 7) * size_in_bytes(state) + (plan.frames + 1) * size_in_bytes(frame)
        check_disk(size, output, "make the simulation smaller")
        segments = plan.segments if objective.converges else last_segment(plan.segments)
        return dataclasses.replace(self, segments=segments, fit=fit)

    def _chosen(self, objective: "Objective") -> "Arrays":
        """Return the parameters to differentiate by, ``{path: array}``."""
        leaves = paths.leaves(objective.simulation.params)
        return {path: leaves[path] for path in self.wrt}

    def _at_rest(self, objective: "Objective") -> Any:
        """Return ``(state, chosen) -> (value, derivative)`` of a simulation that has converged."""
        params = objective.simulation.params

        def value(chosen: "Arrays", state: Any) -> "jax.Array":
            return objective.from_state(state, paths.replaced(params, chosen))

        return jax.jit(lambda state, chosen: jax.value_and_grad(value)(chosen, state))

    def execute(
        self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
    ) -> StoredDerivative:
        """Compute the derivative and store it."""
        assert directory is not None  # all that start one give a folder
        objective, params = (
            derivatives.objective_of(self.scenario, prepared.simulation, self.objective),
            prepared.simulation.params,
        )
        store, last = Store(directory.path, directory.seal), None
        if objective.converges:
            work = Drive(prepared.program, params, self._key, plan_of(self.scenario))
        else:
            work = backward(objective, self.wrt, params, self._key, store, number_of_pieces(self.segments))
        try:
            for last in segments_of(work, store, warn):
                report(last.index / self.segments, "")
        except DamagedFileError as error:
            raise UserError(f"{error}; remove this file, then: {directory.resuming}") from None
        assert last is not None  # there is always a first segment
        value, status, slopes = self._result(objective, last)
        note = derivatives.note_of(self.scenario, self.objective, status, slopes)
        arrays = {VALUE: np.asarray(value, self.scenario.run.precision), STATUS: np.asarray(status, np.int32)}
        arrays |= {f"{SLOPE}{path}": array for path, array in slopes.items()}
        write_arrays(directory.path / RESULT, arrays, directory.seal.of("derivative"))
        write_sealed_json(directory.path / SUMMARY, {"value": float(value), "note": note}, directory.identity)
        about = {"scenario": self.scenario, "objective": self.objective}
        return StoredDerivative(float(value), slopes, status, note, self.fit, **about)

    def _result(self, objective: "Objective", last: Segment) -> tuple[Any, int, dict[str, np.ndarray]]:
        """Return value, status and derivatives from the last segment."""
        if not objective.converges:
            slopes = {path: np.asarray(last.state.derivative[path]) for path in self.wrt}
            if VALUE not in last.arrays:  # the run has failed
                slopes = {path: np.full_like(array, np.nan) for path, array in slopes.items()}
            return last.arrays.get(VALUE, np.nan), int(last.status), slopes
        simulation = objective.simulation
        if simulation.sized_like is not None:
            objective = dataclasses.replace(objective, simulation=simulation.with_buffers_of(last.state))
        value, derivative = self._at_rest(objective)(last.state, self._chosen(objective))
        status = int(final_status(simulation, last.status))
        return value, status, {path: np.asarray(derivative[path]) for path in self.wrt}

    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the number of stored segments, forward and backward."""
        written = Store(directory.path, directory.seal).written()
        count = max(len(written) - 1, 0)
        words = f"{count} of {self.segments} segments, forward and backward"
        return StoredProgress(min(count / self.segments, 1.0), words, [], write_times(written))

    def check_finished(self, directory: RunDirectory) -> None:
        """Check nothing: all that `read` does not read was needed for the computation only."""

    @classmethod
    def read(cls, directory: RunDirectory) -> StoredDerivative:
        """Return the stored derivative."""
        directory.check_finished([SUMMARY], "holds no derivative yet")
        job = cls.of(directory)
        dtype, parameters = job.scenario.run.precision, job.scenario.parameters
        layout = {f"{SLOPE}{path}": (dtype, np.shape(parameters[path].default)) for path in job.wrt}
        layout |= {VALUE: (dtype, ()), STATUS: ("int32", ())}
        arrays = read_arrays(directory.path / RESULT, directory.seal.of("derivative"), Layout(layout))
        note = str(read_sealed_json(directory.path / SUMMARY, directory.identity).get("note", ""))
        slopes, version = {p: arrays[f"{SLOPE}{p}"] for p in job.wrt}, directory.manifest["versions"].get("simkit", "")
        about = {"scenario": job.scenario, "objective": job.objective, "version": version}
        return StoredDerivative(float(arrays[VALUE]), slopes, int(arrays[STATUS]), note, job.fit, **about)

    @staticmethod
    def dataset(result: StoredDerivative) -> "xarray.Dataset":
        """Return the derivatives, each named after its parameter, with the value among the attributes."""
        import xarray

        variables = {
            path: (
                tuple(f"{path}_{axis}" for axis in range(array.ndim)),
                array,
                {"long_name": f"derivative of {result.objective} with respect to {path}"},
            )
            for path, array in result.derivative.items()
        }
        about = {"objective": result.objective, "value": result.value, "note": result.note}
        about |= {"status": Status(result.status).name.lower()}
        return xarray.Dataset(variables, attrs=attributes_of(result.scenario, version=result.version) | about)

    @staticmethod
    def warning(result: StoredDerivative) -> str:
        """Return the limits of the derivative's validity."""
        if not np.isfinite(result.value):
            raise RunFailedError(result.note or "the objective is not finite")
        return result.note


def gradient_job(
    scenario: Scenario, wrt: Sequence[str], objective: object, mode: derivatives.Mode, memory: int | str | None = None
) -> Gradient:
    """Return the job of a derivative that is stored.

    Args:
        scenario: scenario with overrides applied.
        wrt: paths of the parameters.
        objective: name of the objective; ``None`` takes the first in the file.
        mode: ``"reverse"`` or ``"shortest"``.
        memory: memory limit, such as ``"200MB"`` or a number of bytes; ``None`` divides the run into about 20 pieces.

    Raises:
        UserError: if the mode is forward, which stores no states, a name is unknown, or the limit is no size.
    """
    if mode == "forward":
        raise UserError("forward mode stores no states between steps; leave the mode out, or the output folder")
    limit = None if memory is None else memory_in_bytes(memory)
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    return Gradient(scenario, names, derivatives.objective_name(scenario, objective), memory=limit).checked()
