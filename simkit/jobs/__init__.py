"""Jobs: runs, sweeps, derivatives, optimizations and validations."""

from simkit.core.files import RUNS
from simkit.storage.kinds import KINDS

KINDS |= {
    "run": "simkit.jobs.runs:Run",
    "sweep": "simkit.jobs.sweeps:Sweep",
    "config_sweep": "simkit.jobs.config_sweeps:ConfigSweep",
    "optimize": "simkit.jobs.optimizations:Optimization",
    "grad": "simkit.jobs.stored_derivatives:Gradient",
    "fluctuations": "simkit.jobs.ensemble_derivatives:Fluctuations",
    "optimize_starts": "simkit.jobs.optimizations:Starts",
}
RUNS.add({"frame": "simkit.jobs.stored_jobs:frame_archive"})
