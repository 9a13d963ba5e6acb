"""Motion of bodies read from frames: positions, shapes, links and colors, and marks of their orientation."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb

from simkit.core.arguments import check_shape
from simkit.errors import UserError
from simkit.render.color import ColorScale, color_scale
from simkit.render.selection import observed
from simkit.render.style import BODIES
from simkit.scenario.scenario import RenderSettings

_ANGLES = np.linspace(0.0, 2 * np.pi, 73)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros_like(_ANGLES)], axis=-1)
# On the seam, halfway between rim and middle in the initial orientation: it stays visible when the ball rolls.
_DOT = np.array([1.0, -1.0, 0.0]) / np.sqrt(2)


class Seam(NamedTuple):
    """The visible part of a ball's seam, in units of its radius around its center, seen along +y.

    Attributes:
        line: points (n, 2) of (x, z); empty if the seam is hidden.
        dot: (x, z) of the dot (2,); NaN if it is hidden.
    """

    line: np.ndarray
    dot: np.ndarray


def seam(quaternion: np.ndarray) -> Seam:
    """Return the visible half of the great circle around the body's z axis.

    Args:
        quaternion: orientation (w, x, y, z), from body to world coordinates.
    """
    turned = rotation(quaternion)
    circle, dot = _CIRCLE @ turned.T, turned @ _DOT
    # The viewer is at negative y. A circle that coincides with the rim counts as visible.
    visible = circle[:-1, 1] <= 1e-9
    begins = np.flatnonzero(visible & ~np.roll(visible, 1))
    if visible.all():
        line = circle
    elif begins.size:
        # Starting at the first visible point, the visible half is contiguous.
        line = np.roll(circle[:-1], -begins[0], axis=0)[: visible.sum()]
    else:
        line = circle[:0]
    return Seam(line[:, [0, 2]], dot[[0, 2]] if dot[1] < 0.1 else np.full(2, np.nan))


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Return rotation matrices (..., 3, 3) from body to world coordinates of quaternions (..., 4) in (w, x, y, z)."""
    w, x, y, z = np.moveaxis(quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


_SIGNS = np.array(list(np.ndindex(2, 2, 2))) * 2 - 1
type Frames = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class BodyFrames:
    """Bodies in every frame.

    Attributes:
        position: centers (frames, B, 3) in m.
        orientation: quaternions (frames, B, 4), w first.
        half_lengths: half-lengths (frames, B, 3) in m; zero for balls.
        radius: radii (frames, B) in m; zero for boxes.
        links: ends (frames, L, 2, 3) of thin rods or strings in m.
        planes: unit normal and offset (in m) of planes (frames, P, 4).
        target: target point (frames, 3) in m, or ``None``.
        disk: 1 (frames, B) for a cylinder about its z axis, with the first and third half-length, 2 for an ellipsoid, 3
            for the hull of its corners.
        pivots: fixed points (frames, P, 3) of bodies in m.
        corners: points (frames, B, C, 3) in m in the frames of bodies, whose hull is drawn; C may be 0.
        trace: points (frames, T, 3) in m whose paths are drawn instead of those of the centers; T may be 0.
    """

    position: np.ndarray
    orientation: np.ndarray
    half_lengths: np.ndarray
    radius: np.ndarray
    links: np.ndarray
    planes: np.ndarray
    target: np.ndarray | None
    disk: np.ndarray
    pivots: np.ndarray
    trace: np.ndarray
    corners: np.ndarray

    @property
    def present(self) -> np.ndarray:
        """Whether each body (frames, B) has finite coordinates; a failed run leaves NaN."""
        numbers = (self.position, self.orientation, self.half_lengths, self.radius[..., None])
        finite = np.all([np.isfinite(array).all(axis=-1) for array in numbers], axis=0)
        return finite & (self.orientation != 0).any(axis=-1)

    @property
    def reach(self) -> np.ndarray:
        """Distance (frames, B) from a body's center to its farthest point, in m."""
        return np.linalg.norm(self.half_lengths, axis=-1) + self.radius

    def outline(self) -> tuple[np.ndarray, np.ndarray]:
        """Return centers (n, 3) and radii (n,) of spheres with the convex hull of all objects in all frames."""
        balls = self.present & ~self.half_lengths.any(axis=-1)
        others = self.present & ~balls
        lengths = (_SIGNS * self.half_lengths[others][:, None])[..., None]
        corners = self.position[others][:, None] + (rotation(self.orientation[others])[:, None] @ lengths)[..., 0]
        marks = self.target if self.target is not None else np.empty((0, 3))
        ends = np.concatenate([part.reshape(-1, 3) for part in (self.links, marks, self.pivots, self.trace)])
        points = np.concatenate([self.position[balls], corners.reshape(-1, 3), ends])
        radii = [self.radius[balls], np.repeat(self.radius[others], len(_SIGNS)), np.zeros(len(ends))]
        kept = np.isfinite(points).all(axis=1)
        return points[kept], np.concatenate(radii)[kept]

    def has_floor(self) -> bool:
        """Return whether to draw a floor z = 0: unless a body extends below it by more than half its size."""
        present = self.present
        upward = rotation(self.orientation[present])[:, 2]
        height = (np.abs(upward) * self.half_lengths[present]).sum(axis=-1) + self.radius[present]
        return not (self.position[present][:, 2] - height < -0.5 * self.reach[present]).any()


def read_bodies(frames: Frames) -> BodyFrames:
    """Return the bodies in the frames of a run.

    Args:
        frames: ``position``, ``orientation``, ``radius`` and, where there are any, ``half_lengths``, ``links``,
            ``planes``, ``target``, ``disk``, ``pivots``, ``trace`` and ``corners``, shaped as in `BodyFrames`.

    Raises:
        UserError: if an array is missing or has another shape.
    """
    count, bodies = observed(frames, "position", axes=3).shape[:2]
    # Numbers of optional objects; 0 if the array is absent or has no entry.
    names = ("links", "planes", "pivots", "trace")
    links, planes, pivots, traced = ((*np.shape(frames.get(name, ())), 0, 0)[1] for name in names)
    optional = {
        "half_lengths": (count, bodies, 3),
        "links": (count, links, 2, 3),
        "planes": (count, planes, 4),
        "disk": (count, bodies),
        "pivots": (count, pivots, 3),
        "trace": (count, traced, 3),
        "corners": (count, bodies, (*np.shape(frames.get("corners", ())), 0, 0, 0)[2], 3),
    }
    arrays = {}
    for name, shape in optional.items():
        is_empty = name not in frames or (0 in shape and np.shape(frames[name]) == shape)
        arrays[name] = np.zeros(shape) if is_empty else _of_shape(frames, name, shape)
    return BodyFrames(
        position=_of_shape(frames, "position", (count, bodies, 3)),
        orientation=_of_shape(frames, "orientation", (count, bodies, 4)),
        radius=_of_shape(frames, "radius", (count, bodies)),
        target=_of_shape(frames, "target", (count, 3)) if "target" in frames else None,
        **arrays,
    )


def are_balls_in_plane(runs: Sequence[BodyFrames]) -> bool:
    """Return whether all bodies are balls that stay with their links in one plane y = const, without other planes."""
    heights, largest = [], 0.0
    for run in runs:
        present = run.present
        if run.half_lengths[present].any() or run.planes.size:
            return False
        heights += [run.position[present][:, 1], run.links[np.isfinite(run.links).all(axis=(2, 3))][..., 1].ravel()]
        largest = max(largest, np.max(run.radius[present], initial=0.0))
    y = np.concatenate(heights)
    return not y.size or bool(np.ptp(y) <= 1e-3 * largest)


def body_colors(
    runs: Sequence[Frames], settings: RenderSettings, shape: tuple[int, int], body_of_shape: np.ndarray | None = None
) -> tuple[np.ndarray, ColorScale | None]:
    """Return the color (frames, B, 3) of each body of the first run, and the scale for the color bar if there is one.

    Args:
        runs: frames of the run that is drawn, then of those drawn for comparison.
        settings: the quantity; for ``position``, ``orientation``, ``radius`` or ``half_lengths`` each body has its own
            color.
        shape: (frames, B).
        body_of_shape: body index (B,) of each shape, if bodies consist of several shapes, which then share one color.

    Raises:
        UserError: if the quantity is not one number or vector per body, or there is not one index per shape.
    """
    if settings.quantity in ("position", "orientation", "radius", "half_lengths"):
        palette = np.array([to_rgb(color) for color in BODIES])
        bodies = _bodies_of(shape[1], body_of_shape)
        return np.broadcast_to(palette[bodies % len(palette)], (*shape, 3)), None
    magnitudes = [_magnitude(frames, settings.quantity) for frames in runs]
    if body_of_shape is not None:
        bodies = _bodies_of(shape[1], body_of_shape)
        # A number of each body is that of all of its shapes.
        magnitudes = [each[:, bodies] if each.shape[1:] == (bodies.max() + 1,) else each for each in magnitudes]
    if magnitudes[0].shape != shape:
        raise UserError(f"'{settings.quantity}' does not hold one number or vector for each of {shape[1]} bodies")
    values = np.concatenate([magnitude.ravel() for magnitude in magnitudes])
    scale = color_scale(values, settings.options.get("colormap"), settings.limits, default="viridis")
    return scale.colors(scale.position(magnitudes[0]))[..., :3] / 255, scale


def _bodies_of(shapes: int, body_of_shape: np.ndarray | None) -> np.ndarray:
    if body_of_shape is None:
        return np.arange(shapes)
    check_shape("coordinate 'body_of_shape'", body_of_shape, "the body of each shape", (shapes,))
    return np.unique(body_of_shape, return_inverse=True)[1]


def _magnitude(frames: Frames, name: str) -> np.ndarray:
    values = observed(frames, name, axes=np.ndim(frames.get(name, 0))).astype(float)
    # Squares of the numbers of a run that blows up may overflow.
    return np.hypot.reduce(values, axis=2) if values.ndim == 3 else values


def _of_shape(frames: Frames, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return observed(frames, name, axes=len(shape), shape=shape).astype(float)
