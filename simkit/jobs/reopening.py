"""Finish or read back what a run directory holds, be it a run, a sweep or an optimization."""

from pathlib import Path
from typing import TYPE_CHECKING

from simkit.engine.compilation_cache import use_compilation_cache
from simkit.errors import UserError
from simkit.jobs import sweeps
from simkit.jobs.optimizations import proceed_optimization
from simkit.jobs.outcome import checked
from simkit.jobs.runs import proceed, stored
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


def resume(directory: Path | str, *, simulation: "Simulation | None" = None) -> "xarray.Dataset":
    """Finish an interrupted run, sweep or optimization (nothing is computed twice) and return what it returns.

    Args:
        directory: the run directory.
        simulation: the one it began with, if that was made in Python.

    Raises:
        UserError: if it is not a run directory, cannot be read back, or is of another simulation.
        RunFailedError: if the run turns non-finite.
    """
    from simkit.core.simulation import Simulation

    if simulation is not None and not isinstance(simulation, Simulation):
        raise UserError(f"simulation is of type {type(simulation).__name__}; give a simkit.Simulation")
    use_compilation_cache()
    opened = RunDirectory.open(directory, simulation)
    if opened.kind == "sweep":
        return sweeps.checked(sweeps.proceed_sweep(opened))
    if opened.kind == "optimize":
        return checked(proceed_optimization(opened)).dataset()
    return checked(proceed(opened)).dataset()


def open_run(directory: Path | str) -> "xarray.Dataset":
    """Return what a run, sweep or optimization has stored so far as a labeled data set, without computing anything.

    Args:
        directory: the run directory.

    Raises:
        UserError: if it is not a run directory or its files are damaged.
    """
    opened = RunDirectory.open(directory)
    if opened.kind == "sweep":
        return sweeps.read_sweep(opened)
    return stored(opened).dataset()
