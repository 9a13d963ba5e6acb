"""Default view of frames, from the names and shapes of their arrays."""

from collections.abc import Mapping
from typing import Any

from simkit.scenario.build import NOTHING, VIEW_ARRAYS

CLOCKS = ("time", "iteration")


def likely_view(
    observed: Mapping[str, Any],
    diagnosed: Mapping[str, Any],
    coordinates: Mapping[str, tuple[int, ...]],
    view: str | None = None,
    quantity: str | None = None,
) -> tuple[str, str]:
    """Return a view and the quantity that it draws.

    Bodies have positions, orientations and radii, particles positions and diameters; a field has the shape of the cell
    centers ``x`` and ``y``. The default otherwise is a chart of the first diagnostic.

    Args:
        observed: arrays, or their shapes, of one frame.
        diagnosed: of one frame; without scalars the quantity of a chart is `NOTHING`.
        coordinates: ``{name: shape}``.
        view: the view, if given.
        quantity: the drawn quantity, if given.
    """
    possible = {each: _drawn(each, observed, diagnosed, coordinates) for each in VIEW_ARRAYS}
    view = view or next((each for each, names in possible.items() if names), "chart")
    return view, quantity or next(iter(possible.get(view, ())), NOTHING)


def _drawn(
    view: str, observed: Mapping[str, Any], diagnosed: Mapping[str, Any], coordinates: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """Return the names of the quantities that a view could draw, the likeliest first."""
    if view == "chart":
        numbers = [name for name, array in diagnosed.items() if array.shape == ()]
        return sorted(numbers, key=lambda name: name in CLOCKS)
    if any(name not in observed for name in VIEW_ARRAYS[view]):
        return []
    if view == "field":
        cells = coordinates.get("x", ()) + coordinates.get("y", ())
        return [name for name, array in observed.items() if len(cells) == 2 and array.shape == cells]
    count, size = observed["position"].shape[:1], VIEW_ARRAYS[view][-1]
    return [*(name for name, array in observed.items() if array.shape == count and name != size), size]
