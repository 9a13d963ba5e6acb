"""Quantities of a scenario's simulation, and the arguments of its factory that the file leaves out."""

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
        name: of it.
        kind: ``"observed"`` or ``"diagnosed"``.
        dimensions: names and lengths of its axes, such as ``{"x": 64, "y": 48}``.
        unit: physical unit; empty where the simulation does not say.
        doc: what it means; empty where the simulation does not say.
    """

    name: str
    kind: str
    dimensions: dict[str, int]
    unit: str
    doc: str


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a simulation has.

    Attributes:
        quantities: what it observes and diagnoses.
        arguments: defaults of the factory's arguments that the file does not mention; ``None`` for those without one.
    """

    quantities: tuple[Content, ...]
    arguments: dict[str, Any]


def bare_scenario(simulation: str) -> Scenario:
    """Return a scenario that says nothing but which simulation it is of, for looking at what that has.

    Args:
        simulation: as registered, such as ``"flow.channel"``.
    """
    return Scenario(
        name=simulation,
        title=simulation,
        summary="with its default configuration",
        simulation=simulation,
        tags=(),
        references=(),
        config={},
        differences={},
        run=RunSettings(1, 1, "float32", 0),
        objectives={},
        render=RenderSettings("chart", "time", "time", "1", None, None, 20.0),
        validations=(),
        source=Path(simulation),
        text="",
    )


def contents_of(scenario: Scenario) -> Contents:
    """Build a scenario's simulation and return what it has; nothing is computed.

    Args:
        scenario: overrides applied; one without a file, as of `bare_scenario`, is not checked.

    Raises:
        UserError: if it cannot be built.
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
