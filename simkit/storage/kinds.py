"""Kinds of jobs, and the class that declares each."""

import importlib
from typing import Any

# The classes are in a layer above this one, so they are named here as text and imported on demand.
KINDS = {
    "run": "simkit.jobs.runs:Run",
    "sweep": "simkit.jobs.sweeps:Sweep",
    "config_sweep": "simkit.jobs.config_sweeps:ConfigSweep",
    "optimize": "simkit.jobs.optimizations:Optimization",
    "grad": "simkit.jobs.gradients:Gradient",
    "optimize_starts": "simkit.jobs.starts:Starts",
}


def kind_of(name: str) -> Any:
    """Return the class of a kind of job, a subclass of `simkit.jobs.job.Job`.

    Args:
        name: a key of `KINDS`, as stored in a manifest.
    """
    module, _, declared = KINDS[name].partition(":")
    return getattr(importlib.import_module(module), declared)
