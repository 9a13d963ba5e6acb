"""The kinds of jobs, and where each is declared."""

import importlib
from typing import Any

# A job is declared beside what it does, above this layer, so that it stands here as text.
KINDS = {
    "run": "simkit.jobs.runs:Run",
    "sweep": "simkit.jobs.sweeps:Sweep",
    "config_sweep": "simkit.jobs.config_sweeps:ConfigSweep",
    "optimize": "simkit.jobs.optimizations:Optimization",
    "optimize_starts": "simkit.jobs.starts:Starts",
}


def kind_of(name: str) -> Any:
    """Return a kind of job, a subclass of `simkit.jobs.job.Job`.

    Args:
        name: as in a manifest, a key of `KINDS`.
    """
    module, _, declared = KINDS[name].partition(":")
    return getattr(importlib.import_module(module), declared)
