"""Quantities of the simulation of a scenario, and arguments of its factory that the file does not set."""

import dataclasses
from pathlib import Path
from typing import Any

import jax

from simkit.core.precision import precision
from simkit.core.simulation import Simulation
from simkit.scenario.build import build
from simkit.scenario.factories import arguments_of, needed_arguments
from simkit.scenario.making import make
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import RenderSettings, RunSettings


@dataclasses.dataclass(frozen=True)
class Content:
    """One array that a simulation observes or diagnoses.

    Attributes:
        name: of the array.
        kind: ``"observed"`` or ``"diagnosed"``.
        dimensions: names and lengths of its axes, such as ``{"x": 64, "y": 48}``.
        unit: physical unit; empty if not declared.
        doc: meaning; empty if not declared.
    """

    name: str
    kind: str
    dimensions: dict[str, int]
    unit: str
    doc: str


@dataclasses.dataclass(frozen=True)
class Contents:
    """Quantities of a simulation and further arguments of its factory.

    Attributes:
        quantities: observed arrays and diagnostics.
        arguments: defaults of the arguments of the factory that the file does not set; ``None`` for required ones.
    """

    quantities: tuple[Content, ...]
    arguments: dict[str, Any]


def bare_scenario(simulation: str) -> Scenario:
    """Return a scenario of a simulation with its default configuration, for listing its contents.

    Args:
        simulation: registered name, such as ``"flow.domain"``.
    """
    return Scenario(
        name=simulation,
        title=simulation,
        summary="with its default configuration",
        simulation=simulation,
        tags=(),
        references=(),
        config={},
        parameter_settings={},
        run=RunSettings(1, 1, "float32", 0),
        objectives={},
        render=RenderSettings("chart", "time", "time", "1", None, None, 20.0),
        validations=(),
        source=Path(simulation),
        text="",
    )


def contents_of(scenario: Scenario) -> Contents:
    """Return the contents of the simulation of a scenario, which is built but not run.

    Args:
        scenario: overrides applied; one without a file, from `bare_scenario`, is not checked.

    Raises:
        UserError: if the simulation cannot be built.
    """
    with precision(scenario.run.precision):
        return _contents(scenario, build(scenario) if scenario.text else make(scenario))


def _contents(scenario: Scenario, simulation: Simulation) -> Contents:
    state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
    shapes = {
        "observed": jax.eval_shape(simulation.observe, state, simulation.params),
        "diagnosed": jax.eval_shape(simulation.diagnose, state, simulation.params),
    }
    quantities = []
    for kind, arrays in shapes.items():
        for name, array in arrays.items():
            axes = simulation.dimensions.get(name, ()) if kind == "observed" else ()
            axes = axes if len(axes) == array.ndim else [f"axis {axis}" for axis in range(array.ndim)]
            known = simulation.quantities.get(name)
            unit, doc = (known.unit, known.doc) if known else ("", "")
            quantities.append(Content(name, kind, dict(zip(axes, array.shape, strict=True)), unit, doc))
    factory = None if scenario.made else SIMULATIONS.resolve(scenario.simulation)
    arguments = dict.fromkeys(needed_arguments(factory)) | arguments_of(factory) if factory else {}
    return Contents(
        quantities=tuple(quantities),
        arguments={name: default for name, default in arguments.items() if name not in scenario.config},
    )
