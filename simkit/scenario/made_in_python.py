"""Scenarios of simulations made in Python, and loading of scenarios by name, path or object."""

import dataclasses
import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from simkit.core import paths
from simkit.core.arguments import check_type
from simkit.core.parameter import Parameter
from simkit.core.precision import precision
from simkit.core.settings import unwrapped
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.scenario.build import check_record
from simkit.scenario.catalog import FILE, find_scenario, parse_scenario
from simkit.scenario.checks import to_toml
from simkit.scenario.drawing import CLOCKS, Frame, likely_view
from simkit.scenario.overrides import with_files, with_values
from simkit.scenario.scenario import IN_PYTHON, Scenario, shortest
from simkit.scenario.sections import RUN_KEYS

# Keywords of a run of a simulation besides its parameters.
SETTINGS = ("name", "title", "steps", "every", "seed", "view", "quantity", "frames_per_second")
USUAL_FRAMES = 100
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def scenario_of(simulation: Simulation, values: Mapping[str, Any] = {}) -> tuple[Scenario, dict[str, Any]]:
    """Return the scenario of a simulation, and the values of its parameters.

    Every diagnostic is an objective, its value at the end of the run. Frames are drawn by the view that fits the names
    of the observed arrays (`simkit.scenario.drawing.likely_view`).

    Args:
        simulation: any.
        values: settings by name: ``steps``, ``every`` (default: for about 100 frames), ``seed``, ``name``, ``title``,
            ``view``, ``quantity`` (colored, or drawn in a chart), ``frames_per_second``; and parameters.

    Raises:
        UserError: if ``steps`` is missing, or a setting is not possible.
    """
    settings = {key: unwrapped(value, key) for key, value in values.items() if key in SETTINGS}
    parameter_values = {key: value for key, value in values.items() if key not in SETTINGS}
    parameters = paths.leaves(simulation.params)
    for key in parameter_values:
        name = key.removeprefix("params.")
        if name not in parameters and not paths.is_branch(name, parameters):
            if key == "precision":
                raise UserError(
                    "the precision of a simulation is that of its parameters; make it inside "
                    "`with jax.enable_x64(True):` for float64"
                )
            hint = paths.hint(key, {*SETTINGS, *parameters})
            raise UserError(f"'{key}' is neither a setting nor a parameter of the simulation", hint)
    if "steps" not in settings:
        raise UserError("steps is missing; give steps=1000, and every=10 for a frame every tenth step")
    name = FILE["name"].check(settings.get("name", "simulation"), "name")
    steps = RUN_KEYS["steps"].check(settings["steps"], "steps")
    with precision(precision_of(simulation)):
        observed, diagnosed = simulation.programs.cached(("record", name), lambda: check_record(simulation, name))
        program = fingerprint(simulation)
    lengths = {axis: np.shape(values) for axis, values in simulation.coordinates.items()}
    frame = Frame(observed, diagnosed, lengths)
    view, quantity = likely_view(frame, settings.get("view"), settings.get("quantity"))
    declared = simulation.quantities.get(quantity)
    render = {"view": view, "quantity": quantity, "unit": declared.unit if declared else "1"}
    render |= {key: settings[key] for key in ("frames_per_second",) if key in settings}
    objectives = {
        name: (simulation.quantities[name].doc if name in simulation.quantities else "") or "at the end of the run"
        for name, array in diagnosed.items()
        if name not in CLOCKS and array.shape == () and array.dtype.kind == "f"
    }
    tables = {
        "": {
            "name": name,
            "title": settings.get("title", name.replace("_", " ").capitalize()),
            "summary": "A simulation that was made in Python; this file keeps its values, not its program.",
            "simulation": IN_PYTHON,
        },
        "config": {"program": program},
        **{f"params.{key}": _declared(simulation, key, default) for key, default in parameters.items()},
        "run": {
            "steps": steps,
            "every": settings.get("every", _usual_every(steps)),
            "precision": precision_of(simulation),
            "seed": settings.get("seed", 0),
        },
        **{f'objectives."{key}"': {"doc": doc} for key, doc in objectives.items()},
        "render": render,
    }
    text = to_toml(tables)
    return dataclasses.replace(parse_scenario(text, Path(name)), made=simulation), parameter_values


def with_simulation(scenario: Scenario, simulation: Simulation, path: Path) -> Scenario:
    """Return a stored scenario with its simulation.

    Args:
        scenario: as stored.
        simulation: made in Python again.
        path: of the run directory, for the error.

    Raises:
        UserError: if the simulation of the scenario is a registered one, or the run began with another one.
    """
    if scenario.simulation != IN_PYTHON:
        raise UserError(f"{path} runs {scenario.simulation}, which has a name; leave simulation= out")
    with precision(scenario.run.precision):
        same = (
            set(paths.leaves(simulation.params)) == set(scenario.parameter_settings)
            and precision_of(simulation) == scenario.run.precision
        )
        if not same or fingerprint(simulation) != scenario.config.get("program"):
            raise UserError(
                f"{path} began with another simulation than the one handed over (or with another version of JAX): its "
                "start, step, quantities, parameters or precision differ; hand over that one, or run again"
            )
    return dataclasses.replace(scenario, made=simulation)


def precision_of(simulation: Simulation) -> str:
    """Return the precision of a simulation: that of its parameters, or of JAX if it has none."""
    wide = {value.dtype.itemsize > 4 for value in jax.tree.leaves(simulation.params)} or {jax.config.jax_enable_x64}
    return "float64" if True in wide else "float32"


def fingerprint(simulation: Simulation) -> str:
    """Return a checksum of the program of a simulation, from the traces of its functions.

    Args:
        simulation: ``init``, ``step``, ``observe`` and ``diagnose`` are traced, but not run.
    """
    return simulation.programs.cached("fingerprint", lambda: _fingerprint(simulation))


def _fingerprint(simulation: Simulation) -> str:
    key = jax.eval_shape(jax.random.key, 0)
    state = jax.eval_shape(simulation.init, simulation.params, key)
    checksum = hashlib.sha256()
    for function, argument in (
        (lambda state, params: simulation.init(params, state), key),
        (simulation.step, state),
        (simulation.observe, state),
        (simulation.diagnose, state),
    ):
        traced = jax.make_jaxpr(function)(argument, simulation.params)
        # Functions inside a program are printed with their addresses in memory.
        checksum.update(_ADDRESS.sub("", str(traced.jaxpr)).encode())
        for constant in _constants_of(traced):
            if not jax.numpy.issubdtype(constant.dtype, jax.dtypes.extended):
                checksum.update(np.asarray(constant).tobytes())
    return checksum.hexdigest()[:32]


def _constants_of(program: Any) -> Iterator[Any]:
    """Yield the constants of a traced program, and of the programs of its calls, loops and branches."""
    yield from getattr(program, "consts", ())
    for equation in getattr(program, "jaxpr", program).eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, list | tuple) else (value,):
                if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                    yield from _constants_of(inner)


def _declared(simulation: Simulation, name: str, value: Any) -> dict[str, Any]:
    declared = simulation.parameters.get(name, Parameter(0.0))
    table = {"default": shortest(value), "bounds": list(declared.bounds), "unit": declared.unit}
    return table | {"doc": declared.doc or "not described"}


def _usual_every(steps: int) -> int:
    """Return the divisor of ``steps`` for which the number of frames is nearest to the usual one."""
    divisors = [d for small in range(1, math.isqrt(steps) + 1) if steps % small == 0 for d in (small, steps // small)]
    return min(divisors, key=lambda every: abs(math.log(steps / every / USUAL_FRAMES)))


type Source = str | Path | Scenario | Simulation
"""Name of a shipped scenario, path of a TOML file, a scenario, or a simulation made in Python."""


def load(scenario: Source, values: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario with values replaced.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a simulation.
        values: parameter, config or run settings by key; for a simulation also ``view`` and others, see
            `simkit.scenario.made_in_python.scenario_of`.

    Raises:
        UserError: if there is no such scenario or a value is not allowed.

    Example:
        >>> faster = simkit.load("projectile", {"launch_speed": 10.0, "steps": 50})
        >>> run = simkit.run(faster)
        >>> run.attrs["scenario"], float(run["time"][-1])
        ('projectile', 0.5)
    """
    if not isinstance(scenario, str | Path | Scenario):
        wanted = "a name, the path of a .toml file, or a simkit.Simulation"
        check_type("scenario", scenario, wanted, Simulation)
        scenario, values = scenario_of(scenario, values or {})
    chosen = scenario if isinstance(scenario, Scenario) else find_scenario(scenario)
    return with_values(chosen, with_files(values)) if values else chosen
