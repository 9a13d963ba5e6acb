"""The flow of the scenario ``channel_flow``, on a grid of one's own, and at rest at the start."""

from collections.abc import Sequence
from typing import Any

from simkit.core.simulation import Simulation
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load


def plane_channel(
    cells: tuple[int, int],
    *,
    length: float = 6.0,
    stretching: float = 0.0,
    faces: Sequence[float] | None = None,
    is_held: bool = False,
    **params: Any,
) -> Simulation:
    """Return the flow between two walls, with the quantities of the scenario, in the precision of JAX.

    Args:
        cells: number of cells along and across the channel.
        length: period along the channel.
        stretching: of the cells across it.
        faces: positions of the faces across it, in place of equal or stretched cells.
        is_held: whether the flow rate is held, in place of the pressure gradient.
        **params: values of parameters; without perturbation by default.
    """
    walls = {"lower": "wall", "upper": {"kind": "wall", "u": "wall_velocity"}}
    even = {"cells": cells[1], "from": -1.0, "to": 1.0, "stretching": stretching}
    settings = {
        "config.axes.x.cells": cells[0],
        "config.axes.x.length": length,
        "config.axes.y": walls | (even if faces is None else {"faces": list(faces)}),
    }
    if is_held:
        settings |= {"config.force.x": 0, "config.flow_rate": "forcing + wall_velocity/2"}
    return build(load("channel_flow", settings)).with_params({"perturbation": 0.0, **params})
