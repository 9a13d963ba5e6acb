"""Differentiable physics on JAX: run a named scenario, sweep its parameters, differentiate through it.

Importing simkit is cheap: JAX and the domains are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simkit import export, flow, molecular, rigid
    from simkit.core.parameter import Parameter
    from simkit.core.simulation import Quantity, Simulation
    from simkit.errors import UserError
    from simkit.export.pictures import animate, picture
    from simkit.jobs.derivatives import value_and_grad
    from simkit.jobs.optimizations import optimize
    from simkit.jobs.outcome import RunFailedError
    from simkit.jobs.reopening import open_run, resume
    from simkit.jobs.runs import run
    from simkit.jobs.sweeps import sweep
    from simkit.scenario.build import build
    from simkit.scenario.loading import load

__version__ = "0.1.0"

_HOMES = {
    # For layers below, which do not import these.
    "Progress": "simkit.cli.progress",
    "Parameter": "simkit.core.parameter",
    "Quantity": "simkit.core.simulation",
    "RunFailedError": "simkit.jobs.outcome",
    "Simulation": "simkit.core.simulation",
    "UserError": "simkit.errors",
    "animate": "simkit.export.pictures",
    "build": "simkit.scenario.build",
    "load": "simkit.scenario.loading",
    "open_run": "simkit.jobs.reopening",
    "optimize": "simkit.jobs.optimizations",
    "picture": "simkit.export.pictures",
    "resume": "simkit.jobs.reopening",
    "run": "simkit.jobs.runs",
    "sweep": "simkit.jobs.sweeps",
    "value_and_grad": "simkit.jobs.derivatives",
}
_PACKAGES = ("export", "flow", "molecular", "rigid")

__all__ = [
    "Parameter",
    "Quantity",
    "RunFailedError",
    "Simulation",
    "UserError",
    "animate",
    "build",
    "export",
    "flow",
    "load",
    "molecular",
    "open_run",
    "optimize",
    "picture",
    "resume",
    "rigid",
    "run",
    "sweep",
    "value_and_grad",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _PACKAGES:
        return importlib.import_module(f"simkit.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'simkit' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
