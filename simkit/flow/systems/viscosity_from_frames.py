"""Viscosity and drive of a channel flow, recovered from noisy frames of its velocity."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import AveragedState
from simkit.core.estimation import beside_recording
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.settings import arguments, number, several
from simkit.core.simulation import Params, Simulation, described
from simkit.flow.description.system import system
from simkit.flow.grid import CELLS, LENGTH, bounded_axis, periodic_axis

# The eddies at the start are known; noise comes from the run's seed.
EDDIES_SEED = 0
# Rows of cells at rest, a wall, between both pictures.
GAP = 3


PARAMETERS = {
    "reynolds": Parameter(60.0, POSITIVE, "1", "bulk Reynolds number that is tried"),
    "forcing": Parameter(0.6, unit="3 U^2 / (h reynolds)", doc="mean pressure gradient per density that is tried"),
    "perturbation": Parameter(0.5, unit="U", doc="root-mean-square speed of the known eddies at the start"),
    "time_step": Parameter(0.02, POSITIVE, "h/U", "time step; keep courant_number below 0.5"),
    "noise": Parameter(0.1, POSITIVE, "U", "standard deviation of the errors of the recorded velocities"),
}


@described(
    comparison=("U", "u that is tried, and beside it the recorded u"),
    recorded_u=("U", "recorded velocity along x, with noise"),
    recorded_v=("U", "recorded velocity along y, with noise"),
    misfit=("1", "mean squared misfit in units of the noise, so far"),
    distance=("U", "root mean square difference from the recorded flow"),
)
@arguments(
    cells=several(CELLS, "cells along and across the channel", (2,)),
    length=LENGTH,
    true_reynolds=number("Reynolds number of the recorded flow", bounds=(POSITIVE[0], 1e6)),
    true_forcing=number("forcing of the recorded flow", bounds=(POSITIVE[0], 1e6)),
)
def viscosity_from_frames(
    *,
    cells: tuple[int, int] = (48, 32),
    length: float = 4.0,
    true_reynolds: float = 150.0,
    true_forcing: float = 1.0,
    frame_every: int = 4,
) -> Simulation:
    """Return a channel flow compared with the recorded frames of another, and the misfit between them.

    The recorded flow has the Reynolds number and forcing ``true_reynolds`` and ``true_forcing``; both start from the
    same eddies, see `simkit.flow.random_eddies`. One step is ``frame_every`` time steps and one recorded frame: both
    components of the velocity at the cell centers, u*, with normal errors of standard deviation ``noise``. The misfit

        misfit = mean over frames, cells and components of ((u - u*)/noise)^2

    is about 1 at the true parameters. Its minimum is the maximum-likelihood estimate; for the standard errors see
    `simkit.core.estimation.standard_errors`.

    The parameters ``reynolds`` and ``forcing`` are those that are tried; the others are those of both flows. All of
    `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those of `simkit.flow.system`:
        misfit: as above, up to now.
        distance: root of the mean square of the difference to the recorded flow now, without the errors, unit U.

    Args:
        cells: number of cells along and across the channel, each at least 4.
        length: period of the flow along the channel, unit of its half-width.
        true_reynolds: of the recorded flow.
        true_forcing: of the recorded flow.
        frame_every: time steps between recorded frames.

    Raises:
        UserError: if the configuration is not of that kind.

    Example:
        >>> frames = flow.viscosity_from_frames(cells=(16, 12), true_reynolds=150.0, true_forcing=1.0)
        >>> run = simkit.run(frames, steps=10, every=10, reynolds=150.0, forcing=1.0)
        >>> print(f"misfit about 1 at the true parameters: {float(run['misfit'][-1]):.1f}")
        misfit about 1 at the true parameters: 1.0
    """
    along, across = periodic_axis(cells[0], length), bounded_axis(cells[1], 2.0, -1.0)
    tried = system(
        axes={
            "x": {"cells": cells[0], "length": length, "periodic": True},
            "y": {"cells": cells[1], "from": -1, "to": 1, "lower": "wall", "upper": "wall"},
        },
        viscosity="1/reynolds",
        force={"x": "3*forcing/reynolds"},
        initial={"eddies": "perturbation"},
        method="adams_bashforth",
        implicit=["x", "y"],
        largest_speed=["1.5*abs(forcing)", 0],
        observed=["u", "v"],
        units={"length": "h", "velocity": "U"},
        parameters={name: declared for name, declared in PARAMETERS.items() if name != "noise"},
    )
    pair = beside_recording(
        dataclasses.replace(tried, dimensions={}, coordinates={}),
        {"reynolds": true_reynolds, "forcing": true_forcing},
        tried.observe,
        every=frame_every,
        noise=PARAMETERS["noise"],
        start=lambda key: jax.random.key(EDDIES_SEED),
    )

    def observe(state: AveragedState, params: Params) -> dict[str, jax.Array]:
        seen = pair.observe(state, params)
        blank = jnp.zeros((cells[0], GAP), seen["u"].dtype)
        return {"comparison": jnp.concatenate([seen["u"], blank, seen["recorded_u"]], axis=1)} | seen

    gap = GAP * 2 / cells[1]
    rows = 2 / cells[1] * (np.arange(2 * cells[1] + GAP) - cells[1] - (GAP - 1) / 2)
    return dataclasses.replace(
        pair,
        params=pair.params | PARAMETERS,
        observe=observe,
        quantities=tried.quantities,
        dimensions={"comparison": ("x", "y")} | {n: ("x", "y_cell") for n in ("u", "v", "recorded_u", "recorded_v")},
        coordinates={
            "x": along.centers,
            "y": rows,
            "y_cell": across.centers,
            "y_ticks": np.array([(middle + y, y) for middle in (-1 - gap / 2, 1 + gap / 2) for y in (-1, 0, 1)]),
            "y_gap": rows[cells[1] + GAP // 2] + np.array([-0.5, 0.5]) * gap,
            "y_gap_sides": np.array(["wall", "wall"]),
            "axis_labels": np.array(["$x$", "$y$, tried | $y$, recorded"]),
            "sides": np.array(["periodic", "periodic", "wall", "wall"]),
        },
    )
