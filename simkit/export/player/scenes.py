"""Scenes of a player: what is drawn, as plain data, and the arrays of its frames."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.export.page.drawing import drawing_of, label_of, plain_text, scale_data
from simkit.export.player.encoding import Stored
from simkit.render.color import color_scale
from simkit.render.field import cell_edges
from simkit.render.page import Window
from simkit.render.selection import DrawnCell, drawn_cell, less_whole_vectors
from simkit.render.style import with_unit
from simkit.render.views import Clip

type Scene = tuple[dict[str, Any], dict[str, Stored]]
"""Plain data of a scene, and its arrays by name."""

# Objects of a frame, and cells of a field in space, beyond which a browser becomes slow.
MOST_OBJECTS, MOST_CELLS = 200_000, 100_000
# Precision of positions of particles in diameters: a tenth of a pixel where one has 20.
_FINEST = 0.005
# Distance of bonded particles in diameters, mean number of neighbors above which no bond is drawn, and most bonds.
_BOND, _MOST_NEIGHBORS, _MOST_BONDS = 1.3, 7.0, 20_000
# Distance from a side of the cell, as a fraction of its length, within which a particle counts as on that side.
_ON_SIDE = 0.004


def scene_of(clip: Clip) -> Scene:
    """Return the scene of a run.

    Args:
        clip: the run, with its drawing settings.

    Raises:
        UserError: if its view has nothing to be turned around, or it lacks arrays that the view needs.
    """
    view = clip.settings.view
    if view not in _SCENES:
        raise UserError(
            f"a player shows the views {', '.join(_SCENES)}, and '{clip.settings.quantity}' is drawn as '{view}'; "
            "draw it as a film (gif), or choose another quantity"
        )
    return _SCENES[view](clip)


def _bodies(clip: Clip) -> Scene:
    settings = clip.settings
    # From the side is a direction of the camera here, which is the same for all other scenes.
    from_side = settings.options.get("camera") == "side"
    seen = {"azimuth": -90.0, "elevation": 4.0} if from_side else {}
    options = {**settings.options, **seen, "camera": "perspective"}
    drawing, names = drawing_of(dataclasses.replace(clip, settings=dataclasses.replace(settings, options=options)))
    _refuse_many(np.shape(clip.frames["position"])[1], "bodies")
    arrays = {name: Stored(clip.frames[name]) for name in names}
    if drawing["scale"]:
        values = np.asarray(clip.frames[settings.quantity], float)
        values = np.linalg.norm(values, axis=2) if values.ndim == 3 else values
        arrays[settings.quantity] = Stored(values, 8, ends=_ends(drawing))
    return drawing, arrays


def _particles(clip: Clip) -> Scene:
    position, diameter = (np.asarray(clip.frames[name], float) for name in ("position", "diameter"))
    _refuse_many(position.shape[1], "particles")
    drawing, _ = drawing_of(clip)
    frames, _, dimension = position.shape
    cell = drawn_cell(clip.frames, clip.coordinates.get("periodic"))
    is_relaxation = "time" not in clip.diagnostics
    arrays = {}
    if cell is not None:
        position = _inside(position, cell, is_relaxation)
        arrays["cell"] = Stored(np.broadcast_to(cell.vectors, (frames, dimension, dimension)))
    finite = diameter[np.isfinite(diameter) & (diameter > 0)]
    arrays["position"] = Stored(position, step=_FINEST * float(finite.min()) if finite.size else 0.0)
    arrays["diameter"] = Stored(diameter)
    # Sizes that are also the colors keep their precision.
    arrays.setdefault(clip.settings.quantity, Stored(clip.frames[clip.settings.quantity], 8, ends=_ends(drawing)))
    bonds = _bonds(position, diameter) if dimension == 3 and is_relaxation else []
    return drawing | {"bonds": bonds, "bond": _BOND}, arrays


def _inside(position: np.ndarray, cell: DrawnCell, steady: bool) -> np.ndarray:
    """Return positions inside a cell; if steady, near the last ones, so that none jumps across a side."""
    inside = less_whole_vectors(position, cell.vectors, lambda along: np.floor(along + _ON_SIDE), cell.periodic)
    if not steady:
        return inside
    return inside[-1] + less_whole_vectors(inside - inside[-1], cell.vectors, np.rint, cell.periodic)


def _bonds(position: np.ndarray, diameter: np.ndarray) -> list[list[int]]:
    """Return the pairs of neighbors at the end of a relaxation, none where particles are packed."""
    from scipy.spatial import KDTree

    kept = np.flatnonzero(np.isfinite(position[-1]).all(axis=1) & (diameter[-1] > 0))
    if len(kept) < 2:
        return []
    places, sizes = position[-1, kept], diameter[-1, kept]
    pairs = KDTree(places).query_pairs(_BOND * sizes.max(), output_type="ndarray")
    first, second = pairs.T
    near = np.linalg.norm(places[first] - places[second], axis=1) < _BOND * (sizes[first] + sizes[second]) / 2
    is_sparse = 2 * near.sum() <= min(_MOST_NEIGHBORS * len(kept), 2 * _MOST_BONDS)
    return kept[pairs[near]].tolist() if is_sparse else []


def _field(clip: Clip) -> Scene:
    if (name := _in_space(clip)) is not None:
        return _volume(clip, name)
    drawing, names = drawing_of(clip)
    arrays = {name: Stored(clip.frames[name], 8) for name in names}
    arrays[clip.settings.quantity] = Stored(clip.frames[clip.settings.quantity], 8, ends=_ends(drawing))
    if "body_distance" in arrays:
        # Only the distances near the surface are seen.
        near = 3 * float(max(np.median(np.diff(drawing[axis])) for axis in "xy"))
        arrays["body_distance"] = Stored(clip.frames["body_distance"], 8, ends=(-near, near))
    return drawing, arrays


def _in_space(clip: Clip) -> str | None:
    """Return the name of the field in space that is drawn: the quantity, or that of which it is the middle plane."""
    name = clip.settings.quantity
    names = (name, name.removesuffix("_mid"))
    lengths = tuple(np.size(clip.coordinates.get(axis, ())) for axis in "xyz")
    return next((each for each in names if np.shape(clip.frames.get(each, ()))[1:] == lengths), None)


def _volume(clip: Clip, name: str) -> Scene:
    """Return a field in space on a grid of equal cells, with few enough for a texture of each frame."""
    settings, values = clip.settings, np.asarray(clip.frames[name])
    centers = [np.asarray(clip.coordinates[axis], float) for axis in "xyz"]
    edges = [cell_edges(line) for line in centers]
    window = Window(*(float(edge) for line in edges[:2] for edge in (line[0], line[-1])))
    window = window.cut(settings.options.get("window", {}))
    low, high = np.array([*window[::2], edges[2][0]]), np.array([*window[1::2], edges[2][-1]])
    cell = (np.prod(high - low) / min(MOST_CELLS, values[0].size)) ** (1 / 3)
    places = []
    for axis in range(3):
        count = int(np.clip(round((high - low)[axis] / cell), 2, 256))
        points = low[axis] + (high - low)[axis] * (np.arange(count) + 0.5) / count
        places.append(np.interp(points, centers[axis], np.arange(len(centers[axis]), dtype=float)))
    scale = color_scale(values, settings.options.get("colormap"), settings.limits, default="inferno", signed=True)
    labels = [plain_text(with_unit(axis, clip.units.get(axis, ""))) for axis in "xyz"]
    drawing = {
        "kind": "volume",
        "quantity": name,
        "low": low.tolist(),
        "high": high.tolist(),
        "scale": scale_data(scale),
        "label": label_of(clip),
        "labels": labels,
    }
    arrays = {name: Stored(_resampled(values, places), 8, ends=(scale.low, scale.high))}
    distance = np.asarray(clip.frames.get("body_distance", 0.0))
    if distance.shape == values.shape:
        # Only the surface is seen: distances of a few cells about it.
        arrays["body_distance"] = Stored(_resampled(distance, places), 8, ends=(-3 * float(cell), 3 * float(cell)))
    return drawing, arrays


def _resampled(values: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
    """Return a field (frames, nx, ny, nz), interpolated linearly to places in numbers of cells along each axis."""
    for axis, place in enumerate(places, start=1):
        below = np.clip(place.astype(int), 0, max(values.shape[axis] - 2, 0))
        share = (place - below).astype(np.float32).reshape([-1 if k == axis else 1 for k in range(4)])
        first, second = (values.take(np.minimum(below + k, values.shape[axis] - 1), axis) for k in (0, 1))
        values = first + share * (second - first)
    return values


def _ends(drawing: dict[str, Any]) -> tuple[float, float]:
    return drawing["scale"]["low"], drawing["scale"]["high"]


def _refuse_many(count: int, noun: str) -> None:
    if count > MOST_OBJECTS:
        raise UserError(f"a player shows at most {MOST_OBJECTS} {noun}, and the run has {count}; draw it as a film")


_SCENES: dict[str, Callable[[Clip], Scene]] = {"bodies": _bodies, "field": _field, "particles": _particles}
