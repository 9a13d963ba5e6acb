"""Derivatives of averages by fluctuations: `simkit.ensemble_derivative`, and the job that stores its samples."""

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np

from simkit.core import fluctuations
from simkit.core.devices import computing_on
from simkit.core.simulation import Simulation
from simkit.engine.backward import VALUE
from simkit.engine.driver import Drive, Plan, Program, final_status, segments_of
from simkit.jobs.derivatives import selected_parameters, status_note
from simkit.jobs.job import Job, Prepared, StoredProgress, begin, enter, write_times
from simkit.jobs.reporting import Report, Warn
from simkit.jobs.stored_derivatives import RESULT, SLOPE, STATUS, Gradient, StoredDerivative
from simkit.scenario.build import build
from simkit.scenario.made_in_python import Source, load
from simkit.scenario.scenario import Scenario
from simkit.storage import manifest
from simkit.storage.files import Layout, read_arrays, read_sealed_json, write_arrays, write_sealed_json
from simkit.storage.run_directory import SUMMARY, RunDirectory
from simkit.storage.store import Store

# Part of a run that is skipped by default.
SKIPPED = 5
# Names of arrays of a result, besides those of every derivative.
VALUE_ERROR, ERROR = "value_error", "error."


@dataclasses.dataclass(frozen=True)
class EnsembleAverage:
    """Average of a quantity over the distribution that a simulation samples, and its derivatives.

    Attributes:
        value: the average.
        value_error: its standard error; 95 % of averages are within 2.1 of them.
        derivative: ``{path: array}``.
        error: their standard errors, ``{path: array}``.
        note: limits of the validity, in one line; empty if there are none.
    """

    value: float
    value_error: float
    derivative: dict[str, np.ndarray]
    error: dict[str, np.ndarray]
    note: str = ""


def ensemble_derivative(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    quantity: str,
    every: int = 10,
    skip: int | None = None,
    output: Path | str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    **values: Any,
) -> EnsembleAverage:
    """Return the average of a quantity in a bath, and its derivatives by fluctuations, with error bars.

        d<A>/dp = <dA/dp> - cov(A, dU/dp) / T,    by temperature cov(A, U) / T^2,    by pressure -cov(A, V) / T

    No derivative passes through the time steps, so that chaos does no harm: use it for averages of liquids, where
    `simkit.value_and_grad` is of no use after a short time. It serves molecular dynamics in a bath: ``langevin``,
    ``nose_hoover``, ``bussi``, ``brownian``, at constant volume or pressure. Derivatives are those of the exact
    distribution: zero by the time step, a friction and time constants. Errors take correlations of samples into
    account.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names, as for `simkit.value_and_grad`.
        quantity: name of a diagnostic, such as ``"pressure"``.
        every: steps between samples.
        skip: steps before the first sample, until the run has forgotten its start; ``None`` for a fifth of the run.
        output: run directory for the samples, from which `simkit.resume` goes on after an interruption. ``None`` keeps
            all in memory.
        overwrite: replace an existing run directory.
        device: as for `simkit.run`.
        **values: parameters, config or run settings.

    Returns:
        Value, derivatives and their standard errors. Warns if the run failed, or is too short for its correlations.

    Raises:
        UserError: if an argument is wrong, the simulation declares no distribution, or the effect of a parameter is
            not known from fluctuations: lengths of rigid bonds, places of frozen particles.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: params["k"] / 2 * jnp.sum(x**2))
        >>> values = {"k": 1.0, "temperature": 2.0, "time_step": 0.2, "mass": 1.0, "friction": 1.0}
        >>> cloud = molecular.dynamics.langevin(spring, lambda params, key: jnp.zeros((100, 2)), params=values)
        >>> cloud = cloud.with_quantities(spread=lambda state, params: jnp.mean(state.position**2))
        >>> average = simkit.ensemble_derivative(cloud, ["k", "temperature"], quantity="spread", steps=5000)
        >>> print(f"{average.derivative['temperature']:.0f} = 1 / k,", average.error["temperature"] < 0.2)
        1 = 1 / k, True
    """
    enter("ensemble_derivative", scenario, values, overwrite=overwrite)
    with computing_on(device):
        job = fluctuation_job(load(scenario, values), wrt, quantity, every, skip)
        average = begin(job, output, overwrite)
    if average.note:
        warnings.warn(average.note, stacklevel=2)
    return EnsembleAverage(average.value, average.value_error, average.derivative, average.error, average.note)


@dataclasses.dataclass(frozen=True)
class Fluctuations(Job[StoredDerivative]):
    """An average and its derivatives by fluctuations, whose samples are stored in segments.

    Attributes:
        wrt: parameters to differentiate by.
        objective: name of the diagnostic.
        every: steps between samples.
        skip: steps before the first sample.
    """

    kind = "fluctuations"
    noun = "a derivative by fluctuations"
    files = r"derivative\.npz"
    repair = "compute it"
    request_checks: ClassVar = {
        "wrt": manifest.WORDS,
        "objective": manifest.WORD,
        "every": manifest.COUNT,
        "skip": manifest.NUMBER,
    }
    report = "derivative"

    wrt: tuple[str, ...]
    objective: str
    every: int
    skip: int

    def checked(self) -> "Fluctuations":
        """Return the job with its parameters as paths, and branches replaced by the parameters below them."""
        return dataclasses.replace(self, wrt=tuple(selected_parameters(self.scenario, self.wrt)))

    @property
    def results(self) -> tuple[str, ...]:
        """Files of a finished job."""
        return (SUMMARY, RESULT)

    @property
    def progress(self) -> dict[str, Any]:
        """What is done."""
        return {"doing": "sampling"}

    def _sampling(self) -> fluctuations.Sampling:
        simulation, steps = build(self.scenario), self.scenario.run.steps
        about = ("fluctuations", self.objective, self.wrt, steps, self.every, self.skip)

        def make() -> fluctuations.Sampling:
            each = {"steps": steps, "every": self.every, "skip": self.skip}
            return fluctuations.sampling(simulation.unshared(), self.objective, self.wrt, **each)

        return simulation.programs.cached(about, make)

    def simulation(self, *, new: bool) -> Simulation:
        """Return the simulation whose steps are samples."""
        return self._sampling().simulation

    def program(self, simulation: Simulation) -> Program:
        """Return its program."""
        return Program.of(simulation, self._plan)

    @property
    def _plan(self) -> Plan:
        return Plan(self._sampling().steps, 1)

    def execute(
        self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
    ) -> StoredDerivative:
        """Take the rest of the samples, and store the result."""
        store = None if directory is None else Store(directory.path, directory.seal)
        params, key, plan, last = prepared.simulation.params, jax.random.key(self.scenario.run.seed), self._plan, None
        for last in segments_of(Drive(prepared.program, params, key, plan), store, warn):
            report(last.index / plan.segments, "")
        assert last is not None  # there is always a first segment
        result = jax.tree.map(np.asarray, jax.jit(self._sampling().result)(last.state, params))
        status = int(final_status(prepared.simulation, last.status))
        weight, notes = fluctuations.weight_of(build(self.scenario)), [status_note(self.scenario, status)]
        if isinstance(weight, fluctuations.Weight):
            notes.append(weight.caution)
        if result.correlation > fluctuations.CORRELATED:
            notes.append("a twentieth of the run is not longer than the correlations of samples: errors are too small")
        found = StoredDerivative(
            float(result.value),
            result.derivative,
            status,
            "; ".join(filter(None, notes)),
            value_error=float(result.value_error),
            error=result.error,
            scenario=self.scenario,
            objective=self.objective,
        )
        if directory is not None:
            arrays = {VALUE: result.value, VALUE_ERROR: result.value_error, STATUS: np.asarray(status, np.int32)}
            for begins, each in ((SLOPE, result.derivative), (ERROR, result.error)):
                arrays |= {f"{begins}{path}": array for path, array in each.items()}
            write_arrays(directory.path / RESULT, arrays, directory.seal.of("derivative"))
            summary = {"value": found.value, "note": found.note}
            write_sealed_json(directory.path / SUMMARY, summary, directory.identity)
        return found

    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the number of stored segments."""
        written = Store(directory.path, directory.seal).written()
        count, segments = max(len(written) - 1, 0), self._plan.segments
        words = f"{count} of {segments} segments of samples"
        return StoredProgress(min(count / segments, 1.0), words, [], write_times(written))

    def check_finished(self, directory: RunDirectory) -> None:
        """Check nothing: all that `read` does not read was needed for the computation only."""

    @classmethod
    def read(cls, directory: RunDirectory) -> StoredDerivative:
        """Return the stored average and derivatives."""
        directory.check_finished([SUMMARY], "holds no derivative yet")
        job = cls.of(directory)
        dtype, parameters = job.scenario.run.precision, job.scenario.parameters
        sizes = {path: (dtype, np.shape(parameters[path].default)) for path in job.wrt}
        layout: dict[str, Any] = {f"{begins}{path}": size for begins in (SLOPE, ERROR) for path, size in sizes.items()}
        layout |= {VALUE: (dtype, ()), VALUE_ERROR: (dtype, ()), STATUS: ("int32", ())}
        arrays = read_arrays(directory.path / RESULT, directory.seal.of("derivative"), Layout(layout))
        slopes, errors = ({path: arrays[f"{begins}{path}"] for path in job.wrt} for begins in (SLOPE, ERROR))
        return StoredDerivative(
            float(arrays[VALUE]),
            slopes,
            int(arrays[STATUS]),
            str(read_sealed_json(directory.path / SUMMARY, directory.identity).get("note", "")),
            value_error=float(arrays[VALUE_ERROR]),
            error=errors,
            scenario=job.scenario,
            objective=job.objective,
            version=directory.manifest["versions"].get("simkit", ""),
        )

    dataset = staticmethod(Gradient.dataset)
    warning = staticmethod(Gradient.warning)


def fluctuation_job(
    scenario: Scenario, wrt: str | Sequence[str], quantity: str, every: int, skip: int | None
) -> Fluctuations:
    """Return the job of derivatives by fluctuations.

    Args:
        scenario: scenario with overrides applied.
        wrt: paths of the parameters.
        quantity: name of a diagnostic, or of an objective that is one.
        every: steps between samples.
        skip: steps before the first sample; ``None`` for a fifth of the run.
    """
    declared = scenario.objectives.get(quantity)
    if declared is not None and not declared.expression:
        quantity = declared.quantity
    skip = scenario.run.steps // SKIPPED if skip is None else skip
    return Fluctuations(scenario, tuple(selected_parameters(scenario, wrt)), quantity, every, skip)
