"""Preview run of a page, which sets its color limits, the extent of its picture and its buffer capacities."""

import dataclasses
from typing import TYPE_CHECKING

import jax
import numpy as np

from simkit.core.growth import with_room
from simkit.core.rollout import recorded
from simkit.core.simulation import Simulation
from simkit.core.status import MESSAGES, Status, failed
from simkit.errors import UserError
from simkit.render.clip import Clip

if TYPE_CHECKING:
    from simkit.scenario.scenario import Scenario


@dataclasses.dataclass(frozen=True)
class Preview:
    """A finished run.

    Attributes:
        simulation: with the buffer capacities that the run needed.
        clip: frames, diagnostics and drawing settings.
    """

    simulation: Simulation
    clip: Clip


def preview_of(scenario: "Scenario", simulation: Simulation) -> Preview:
    """Run a scenario to its end in memory.

    Args:
        scenario: for steps, seed and drawing settings.
        simulation: built from the scenario.

    Raises:
        UserError: if the run fails, or the simulation has several members.
    """
    run, key = scenario.run, jax.random.key(scenario.run.seed)
    simulation.check_values(simulation.params, key)

    def attempt(simulation: Simulation, _: object) -> tuple:
        state, found = jax.jit(recorded(simulation, run.steps, run.every))(simulation.params, key)
        return state, found.status, (simulation, found)

    simulation, found = with_room(simulation, attempt)
    status = np.asarray(found.status)
    if status.ndim > 1:
        raise UserError(f"{scenario.name} has several members, and a page shows one simulation; leave them out")
    if failed(status[-1]):
        raise UserError(f"{scenario.name} {MESSAGES[Status(int(status[-1]))]}; a page begins with a run that succeeds")
    stored = np.asarray(found.stored)
    frames = {name: np.asarray(array)[stored] for name, array in found.observed.items()}
    diagnostics = {name: np.asarray(array)[stored] for name, array in found.diagnosed.items()}
    coordinates = {name: np.asarray(values) for name, values in simulation.coordinates.items()}
    units = {name: quantity.unit for name, quantity in simulation.quantities.items()}
    return Preview(simulation, Clip(frames, diagnostics, coordinates, scenario.title, scenario.render, units))
