"""Averages over a run of a system in motion: of diagnostics, and of the radial distribution function."""

from collections.abc import Callable

import jax
import numpy as np

from simkit.core.averages import averaged
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity, Simulation, State
from simkit.errors import UserError, nearest
from simkit.molecular import spaces
from simkit.molecular.analysis.radial_distribution import highest_peak, radial_distribution, shell_centers
from simkit.molecular.composed.cells import SystemCell

RADIAL = "radial_distribution"


def averaged_over_run(simulation: Simulation, settings: Settings, room: SystemCell) -> Simulation:
    """Return the simulation with running means; each of its steps is several time steps and then a sample.

    Args:
        simulation: simulation of the dynamics.
        settings: settings of the averages.
        room: cell of the system.

    Raises:
        UserError: if a name is no diagnostic, or the radial distribution needs another cell.
    """
    key = jax.eval_shape(jax.random.key, 0)
    state = jax.eval_shape(simulation.init, simulation.params, key)
    diagnostics = sorted(jax.eval_shape(simulation.diagnose, state, simulation.params))
    names = settings["of"]
    for index, name in enumerate(names):
        if name not in diagnostics:
            raise settings.refuse("of", f"[{index}] = '{name[:64]}' is no diagnostic{nearest(name, diagnostics)}")
    shells = settings[RADIAL]
    if shells is not None and not room.is_closed:
        raise settings.refuse(RADIAL, "needs a cell that repeats along all axes; leave it out")

    def sample(state: State, params: Params) -> Arrays:
        numbers = simulation.diagnose(state, params)
        selected = {name: numbers[name] for name in names}
        if shells is None:
            return selected
        seen = simulation.observe(state, params)
        return selected | {
            RADIAL: radial_distribution(seen["position"], seen["cell"], reach=shells["reach"], bins=shells["bins"])
        }

    def diagnose(mean: Arrays, params: Params) -> Arrays:
        del params
        numbers = {f"mean_{name}": mean[name] for name in names}
        if shells is None:
            return numbers
        position, height = highest_peak(mean[RADIAL], shells["reach"])
        return numbers | {"radial_peak_position": position, "radial_peak_height": height}

    return averaged(
        simulation,
        sample,
        every=settings["every"],
        skip=settings["skip"],
        observe=lambda mean, params: {} if shells is None else {RADIAL: mean[RADIAL]},
        diagnose=diagnose,
        dimensions={} if shells is None else {RADIAL: ("distance",)},
        coordinates={} if shells is None else {"distance": shell_centers(shells["reach"], shells["bins"])},
    )


def with_shells_inside(
    check: Callable[[Params, jax.Array], None], settings: Settings | None, room: SystemCell
) -> Callable[[Params, jax.Array], None]:
    """Return a check that also refuses a radial distribution beyond half the cell.

    Args:
        check: ``(params, key) -> None``.
        settings: settings of the averages; ``None`` without.
        room: cell of the system.
    """
    if settings is None or settings[RADIAL] is None:
        return check
    reach = settings[RADIAL]["reach"]

    def both(params: Params, key: jax.Array) -> None:
        check(params, key)
        width = float(np.min(spaces.of_cell(room.cell(params), room.dimension).widths))
        # A cell of exactly that width may be smaller by round-off.
        if 2 * reach > width * (1 + 1e-6):
            raise UserError(
                f"{settings.path(RADIAL)}.reach = {reach:g} is beyond half the cell, whose narrowest width is "
                f"{width:g}; shorten it, or enlarge the cell"
            )

    return both


def mean_quantities(quantities: dict[str, Quantity], settings: Settings | None, length: str) -> dict[str, Quantity]:
    """Return units and meanings of averages.

    Args:
        quantities: of the system.
        settings: settings of the averages; ``None`` without.
        length: unit of length.
    """
    if settings is None:
        return {}
    plain = Quantity("1", "a diagnostic")
    selected = {name: quantities.get(name, plain) for name in settings["of"]}
    means = {f"mean_{name}": Quantity(one.unit, f"mean {one.doc} so far") for name, one in selected.items()}
    return means | {
        "distance": Quantity(length, "distance of a pair"),
        RADIAL: Quantity("1", "radial distribution function, mean so far"),
        "radial_peak_position": Quantity(length, "distance of the first peak of the radial distribution"),
        "radial_peak_height": Quantity("1", "height of the first peak of the radial distribution"),
    }
