"""Drawing of a page: views, labels, colors and bodies as data of its script."""

import base64
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from simkit.errors import known
from simkit.render.bodies.camera import direction_of
from simkit.render.bodies.light import nice_length
from simkit.render.bodies.motion import are_balls_in_plane, body_colors, read_bodies
from simkit.render.color import ColorScale, color_scale
from simkit.render.field import cell_edges
from simkit.render.page import Window, read_sides
from simkit.render.particles import particle_colors
from simkit.render.selection import drawn_cell, drawn_coordinates, field_values, is_oblique, observed
from simkit.render.style import BODIES, plain, shown_unit, with_unit
from simkit.render.views import Clip, new_painter


def plain_text(text: str) -> str:
    """Return a label without TeX markup: ``"$u_x$"`` becomes ``"u_x"``.

    Args:
        text: of a scenario file or a simulation.
    """
    return re.sub(r"\$([^$]*)\$", lambda match: re.sub(r"[\\{}]", "", match[1]), text)


def scale_data(scale: ColorScale) -> dict[str, Any]:
    """Return a color scale as plain data: its range, its levels and 257 RGBA colors in base64, the last one for NaN.

    Args:
        scale: continuous, or with one color per level.
    """
    positions = np.append(np.arange(256) + 0.5, np.nan)
    return {
        "low": scale.low,
        "high": scale.high,
        "levels": None if scale.levels is None else list(scale.levels),
        "words": None if scale.levels is None else [plain_text(scale.word(level)) for level in scale.levels],
        "table": base64.b64encode(scale.colors(positions).tobytes()).decode(),
    }


def label_of(clip: Clip) -> str:
    """Return the label of the color bar, with its unit."""
    return plain_text(with_unit(clip.settings.label, clip.settings.unit))


_ARRAYS = (
    *("position", "orientation", "radius", "half_lengths", "links", "planes", "target", "disk", "pivots", "trace"),
    "corners",
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
        UserError: if the camera cannot show such bodies.
    """
    settings, bodies = clip.settings, read_bodies(clip.frames)
    shape = bodies.present.shape
    body_of_shape = clip.coordinates.get("body_of_shape")
    _, scale = body_colors([clip.frames], settings, shape, body_of_shape)
    of_shape = np.arange(shape[1]) if body_of_shape is None else np.unique(body_of_shape, return_inverse=True)[1]
    of_bodies = np.shape(clip.frames.get(settings.quantity, ()))[1:2] == (of_shape.max(initial=-1) + 1,)
    row_of_shape = of_shape if of_bodies else np.arange(shape[1])
    is_flat = are_balls_in_plane([bodies])
    kind = "side" if (settings.options.get("camera") or ("side" if is_flat else "perspective")) == "side" else "bodies"
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
        "row_of_shape": row_of_shape.tolist(),
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
    azimuth, elevation = direction_of(clip.settings, low, high)
    size = float(np.linalg.norm(high - low)) or 1.0
    if not (high - low).any():
        low, high = low - 0.05 * size, high + 0.05 * size
    return {
        "low": low.tolist(),
        "high": high.tolist(),
        "azimuth": azimuth,
        "elevation": elevation,
        "tile": nice_length(size / 6),
    }


# Direction of the camera in degrees.
_DIRECTION = (-68.0, 20.0)


def drawing_of(clip: Clip) -> tuple[dict[str, Any], list[str]]:
    """Return the drawing of a page as plain data, and the names of the observed arrays that it needs.

    Args:
        clip: a run, with its drawing settings.

    Raises:
        UserError: if pages do not draw the view, or the run lacks arrays that it needs.
    """
    known(clip.settings.view, _VIEWS, "render.view", "view that pages draw")
    # The painter of the view refuses what it cannot draw.
    new_painter(clip.frames, clip.diagnostics, clip.coordinates, clip.title, clip.settings, units=clip.units)
    return _VIEWS[clip.settings.view](clip)


def _field(clip: Clip) -> tuple[dict[str, Any], list[str]]:
    name, settings = clip.settings.quantity, clip.settings
    coordinates = drawn_coordinates(clip.coordinates, np.shape(clip.frames[name])[-1])
    centers = [np.asarray(coordinates.get(axis, ()), float) for axis in "xy"]
    edges = [cell_edges(line) for line in centers]
    whole = Window(*(float(edge) for line in edges for edge in (line[0], line[-1])))
    window = whole.cut(settings.options.get("window", {}))
    scale = color_scale(
        field_values(clip.runs, name), settings.options.get("colormap"), settings.limits, default="inferno", signed=True
    )
    names = [str(label) for label in np.ravel(coordinates.get("axis_labels", ("x", "y")))]
    units = [clip.units.get(axis, "") for axis in "xy"]
    drawing = {
        "kind": "field",
        "quantity": name,
        "x": centers[0].tolist(),
        "y": centers[1].tolist(),
        "window": list(window),
        "scale": scale_data(scale),
        "label": label_of(clip),
        "labels": [plain_text(with_unit(*pair)) for pair in zip(names, units, strict=True)],
        "sides": list(read_sides(coordinates).of_part(whole, window)),
        "ticks": [_ticks(coordinates.get(f"{axis}_ticks")) for axis in "xy"],
    }
    for gap in ("x_gap", "y_gap"):
        if gap in coordinates:
            drawing[gap] = np.atleast_2d(np.asarray(coordinates[gap], float)).tolist()
    return drawing, [name, *(other for other in ("body_distance", "side_velocity") if other in clip.frames)]


def _ticks(pairs: Any) -> list[Any] | None:
    if pairs is None:
        return None
    return [[float(position), f"{float(number):.3g}"] for position, number in np.atleast_2d(np.asarray(pairs))]


def _particles(clip: Clip) -> tuple[dict[str, Any], list[str]]:
    position = observed(clip.frames, "position", axes=3).astype(float)
    diameter = observed(clip.frames, "diameter", axes=2).astype(float)
    names = ["position", "diameter", clip.settings.quantity]
    cell = drawn_cell(clip.frames, clip.coordinates.get("periodic"))
    if cell is None:
        present = np.isfinite(position).all(axis=-1) & np.isfinite(diameter)
        center, radius = position[present], diameter[present][:, None] / 2
        ends = np.concatenate([center - radius, center + radius]) if len(center) else np.zeros((1, position.shape[2]))
    else:
        ends = cell.corners.reshape(-1, position.shape[2])
    drawing = {
        "kind": "disks" if position.shape[2] == 2 else "spheres",
        "quantity": clip.settings.quantity,
        "scale": scale_data(particle_colors(clip)),
        "label": label_of(clip),
        "low": ends.min(axis=0).tolist(),
        "high": ends.max(axis=0).tolist(),
        "azimuth": _DIRECTION[0],
        "elevation": _DIRECTION[1],
    }
    if cell is not None:
        drawing |= {"cell": cell.low.tolist(), "periodic": cell.periodic.tolist()}
        # The extent of a page may change, so it shows cells that repeat along all axes.
        is_whole = is_oblique(clip.frames) or "box" not in clip.frames
        names += ["cell" if is_whole else "box"] if cell.periodic.all() else []
    return drawing, names


def _chart(clip: Clip) -> tuple[dict[str, Any], list[str]]:
    name, settings = clip.settings.quantity, clip.settings
    limits = None if settings.limits is None else [float(limit) for limit in settings.limits]
    return {"kind": "chart", "quantity": name, "label": label_of(clip), "limits": limits}, []


def clock_of(clip: Clip) -> dict[str, str]:
    """Return name, symbol, unit and label of the diagnostic that counts time or iterations.

    Args:
        clip: a run.
    """
    if "time" in clip.diagnostics:
        bodies = clip.settings.view == "bodies"
        unit = shown_unit(clip.units.get("time", "s" if bodies else ""))
        return {"name": "time", "symbol": "t =", "unit": unit, "label": with_unit("time", unit)}
    name = "iteration" if "iteration" in clip.diagnostics else "step"
    return {"name": name, "symbol": name, "unit": "", "label": name}


def diagnostics_of(clip: Clip, docs: dict[str, str]) -> list[dict[str, str]]:
    """Return name, label, unit and meaning of each diagnostic that a page lists.

    Args:
        clip: a run.
        docs: meanings by name.
    """
    return [
        {
            "name": name,
            "label": plain(name),
            "unit": shown_unit(clip.units.get(name, "")),
            "doc": docs.get(name, ""),
        }
        for name, values in clip.diagnostics.items()
        if np.ndim(values) == 1
    ]


_VIEWS: dict[str, Callable[[Clip], tuple[dict[str, Any], list[str]]]] = {
    "field": _field,
    "particles": _particles,
    "bodies": drawing_of_bodies,
    "chart": _chart,
}
