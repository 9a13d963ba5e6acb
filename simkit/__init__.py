"""Differentiable physics on JAX: run a named scenario, sweep its parameters, differentiate through it.

Importing simkit is cheap: JAX and the domains are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simkit import flow, molecular, rigid
    from simkit.core.simulation import Simulation
    from simkit.errors import UserError
    from simkit.runtime.derivatives import value_and_grad
    from simkit.runtime.loading import load
    from simkit.runtime.optimizations import optimize
    from simkit.runtime.outcome import RunFailedError
    from simkit.runtime.reopening import open_run, resume
    from simkit.runtime.runs import run
    from simkit.runtime.sweeps import sweep
    from simkit.scenario.build import build

__version__ = "0.1.0"

_HOMES = {
    # For layers below, which do not import these.
    "Progress": "simkit.cli.progress",
    "animation_html": "simkit.cli.pictures",
    "RunFailedError": "simkit.runtime.outcome",
    "Simulation": "simkit.core.simulation",
    "UserError": "simkit.errors",
    "build": "simkit.scenario.build",
    "load": "simkit.runtime.loading",
    "open_run": "simkit.runtime.reopening",
    "optimize": "simkit.runtime.optimizations",
    "resume": "simkit.runtime.reopening",
    "run": "simkit.runtime.runs",
    "sweep": "simkit.runtime.sweeps",
    "value_and_grad": "simkit.runtime.derivatives",
}
_DOMAINS = ("flow", "molecular", "rigid")

__all__ = [
    "RunFailedError",
    "Simulation",
    "UserError",
    "build",
    "flow",
    "load",
    "molecular",
    "open_run",
    "optimize",
    "resume",
    "rigid",
    "run",
    "sweep",
    "value_and_grad",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _DOMAINS:
        return importlib.import_module(f"simkit.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'simkit' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
