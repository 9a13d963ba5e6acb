"""Drawing of rigid bodies in a page: their colors, and the window or the camera that holds their motion."""

from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.export.page.labels import label_of, scale_data
from simkit.render.bodies.camera import default_direction
from simkit.render.bodies.ground import nice_length
from simkit.render.bodies.motion import are_balls_in_plane, body_colors, read_bodies
from simkit.render.clip import Clip
from simkit.render.style import BODIES

_ARRAYS = (
    *("position", "orientation", "radius", "half_lengths", "links", "planes", "target", "disk", "pivots", "trace"),
)
# Blank margin around a motion seen from the side, as a fraction of its extent.
_BODY_MARGIN = 0.07
# Most bodies whose paths are drawn, by camera.
_MOST_PATHS = {"side": 32, "bodies": 8}


def drawing_of_bodies(clip: Clip) -> tuple[dict[str, Any], list[str]]:
    """Return the drawing of a run of rigid bodies as plain data, and the names of the observed arrays that it needs.

    Args:
        clip: the run.

    Raises:
        UserError: if an array is missing or has a wrong shape, or the camera cannot show such bodies.
    """
    settings, bodies = clip.settings, read_bodies(clip.frames)
    shape = bodies.present.shape
    body_of_shape = clip.coordinates.get("body_of_shape")
    _, scale = body_colors([clip.frames], settings, shape, body_of_shape)
    of_shape = np.arange(shape[1]) if body_of_shape is None else np.unique(body_of_shape, return_inverse=True)[1]
    is_flat = are_balls_in_plane([bodies])
    kind = "side" if (settings.camera or ("side" if is_flat else "perspective")) == "side" else "bodies"
    if kind == "side" and bodies.half_lengths[bodies.present].any():
        raise UserError('the camera "side" shows balls only; use camera = "perspective" for boxes and capsules')
    floor, (points, radii) = bodies.has_floor(), bodies.outline()
    if not len(points):
        points, radii = np.zeros((1, 3)), np.ones(1)
    if floor:
        # The view also holds the point of the floor under each body.
        points, radii = np.concatenate([points, points * [1, 1, 0]]), np.concatenate([radii, 0 * radii])
    low, high = (points - radii[:, None]).min(axis=0), (points + radii[:, None]).max(axis=0)
    drawing = {
        "kind": kind,
        "quantity": settings.quantity,
        "palette": list(BODIES),
        "body_of_shape": of_shape.tolist(),
        "scale": None if scale is None else scale_data(scale),
        "label": label_of(clip),
        "floor": bool(floor),
        "two_faced": settings.quantity == "orientation",
        "most_paths": _MOST_PATHS[kind],
        **(_window(low, high) if kind == "side" else _camera(low, high, clip)),
    }
    names = [name for name in dict.fromkeys((*_ARRAYS, settings.quantity)) if _is_drawn(clip, name)]
    return drawing, names


def _is_drawn(clip: Clip, name: str) -> bool:
    """Return whether the run has an array of this name that is not empty, or is the quantity drawn."""
    return name in clip.frames and (name == clip.settings.quantity or clip.frames[name].size > 0)


def _window(low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
    margin = _BODY_MARGIN * float((high - low)[[0, 2]].max()) or 1.0
    return {"window": [float(end) for axis in (0, 2) for end in (low[axis] - margin, high[axis] + margin)]}


def _camera(low: np.ndarray, high: np.ndarray, clip: Clip) -> dict[str, Any]:
    azimuth, elevation = default_direction(low, high)
    settings = clip.settings
    size = float(np.linalg.norm(high - low)) or 1.0
    if not (high - low).any():
        low, high = low - 0.05 * size, high + 0.05 * size
    return {
        "low": low.tolist(),
        "high": high.tolist(),
        "azimuth": azimuth if settings.azimuth is None else settings.azimuth,
        "elevation": elevation if settings.elevation is None else settings.elevation,
        "tile": nice_length(size / 6),
    }
