"""Differentiable physics on JAX: scenarios to run, sweep, differentiate and optimize.

JAX and the domains are imported when they are first used, so importing simkit is cheap.
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simkit.core.display import DISPLAYS
from simkit.render import VIEWS
from simkit.scenario import registry

if TYPE_CHECKING:
    from simkit import export, flow, interop, molecular, rigid
    from simkit.core.converge import converge
    from simkit.core.ensemble import ensemble
    from simkit.core.gradient import check_gradient
    from simkit.core.objective import Objective
    from simkit.core.parameter import Parameter
    from simkit.core.rollout import segment, trajectory
    from simkit.core.simulation import Equilibrium, Quantity, Simulation
    from simkit.core.status import Status, converged_when
    from simkit.errors import UserError
    from simkit.export.onnx.runtime import onnxjit
    from simkit.export.pictures import animate, picture
    from simkit.export.report import report
    from simkit.jobs.differentiation import hessian, value_and_grad
    from simkit.jobs.ensemble_derivatives import ensemble_derivative
    from simkit.jobs.optimizations import optimize
    from simkit.jobs.runs import RunFailedError, run
    from simkit.jobs.stored_jobs import open_run, resume
    from simkit.jobs.sweep_functions import merge, sweep
    from simkit.scenario.build import build
    from simkit.scenario.made_in_python import load

__version__ = "0.1.0"

# Modules of the public names.
_HOMES = {
    "Equilibrium": "simkit.core.simulation",
    "Objective": "simkit.core.objective",
    "Parameter": "simkit.core.parameter",
    "Quantity": "simkit.core.simulation",
    "RunFailedError": "simkit.jobs.runs",
    "Simulation": "simkit.core.simulation",
    "Status": "simkit.core.status",
    "UserError": "simkit.errors",
    "animate": "simkit.export.pictures",
    "build": "simkit.scenario.build",
    "check_gradient": "simkit.core.gradient",
    "converge": "simkit.core.converge",
    "converged_when": "simkit.core.status",
    "ensemble": "simkit.core.ensemble",
    "ensemble_derivative": "simkit.jobs.ensemble_derivatives",
    "hessian": "simkit.jobs.differentiation",
    "load": "simkit.scenario.made_in_python",
    "merge": "simkit.jobs.sweep_functions",
    "onnxjit": "simkit.export.onnx.runtime",
    "open_run": "simkit.jobs.stored_jobs",
    "optimize": "simkit.jobs.optimizations",
    "picture": "simkit.export.pictures",
    "report": "simkit.export.report",
    "resume": "simkit.jobs.stored_jobs",
    "run": "simkit.jobs.runs",
    "segment": "simkit.core.rollout",
    "sweep": "simkit.jobs.sweep_functions",
    "trajectory": "simkit.core.rollout",
    "value_and_grad": "simkit.jobs.differentiation",
}
_PACKAGES = ("export", "flow", "interop", "molecular", "rigid")

__all__ = [
    "Equilibrium",
    "Objective",
    "Parameter",
    "Quantity",
    "RunFailedError",
    "Simulation",
    "Status",
    "UserError",
    "animate",
    "build",
    "check_gradient",
    "converge",
    "converged_when",
    "ensemble",
    "ensemble_derivative",
    "export",
    "flow",
    "hessian",
    "interop",
    "load",
    "merge",
    "molecular",
    "onnxjit",
    "open_run",
    "optimize",
    "picture",
    "report",
    "resume",
    "rigid",
    "run",
    "segment",
    "sweep",
    "trajectory",
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


registry.VIEWS.add(VIEWS)


def _display(home: str, name: str) -> Callable[..., Any]:
    """Return a function of a higher layer that is imported when it is first called."""
    return lambda *arguments, **options: getattr(importlib.import_module(home), name)(*arguments, **options)


DISPLAYS |= {
    kind: _display("simkit.export.notebook", kind) for kind in ("result", "derivative", "scenario", "simulation")
}
DISPLAYS |= {"progress": _display("simkit.cli.progress", "Progress")}
