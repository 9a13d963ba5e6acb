"""Tracers: particles that a drawn flow carries, with tails along its streamlines."""

from collections.abc import Mapping

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, to_rgba

from simkit.errors import UserError
from simkit.render.page import Window
from simkit.render.style import INK, LUMINANCE, PAPER
from simkit.render.views import Clip

# Frames after which a tracer begins anew elsewhere, so that they stay evenly spread.
_LIFE = 50
# Steps of a tail; its length in root-mean-square speeds, as a fraction of the window's diagonal; most steps per frame.
_TAIL, _LENGTH, _MOST_STEPS = 10, 0.05, 12


class Tracers:
    """Tracers of a flow in the plane; positions follow the velocity in time, tails are streamlines of the frame.

    Args:
        clip: its frames hold the velocity ``u`` and ``v`` (frames, nx, ny) or ``u_mid`` and ``v_mid``, its diagnostics
            ``time``; tracers avoid bodies, where ``body_distance`` is negative.
        centers: centers of the cells along x and y, increasing.
        window: the part of the plane that is drawn.
        count: number of tracers.
        colormap: of the field below, which decides whether they are dark or white.

    Attributes:
        positions: (frames, count, 2).
        artist: the tails, placed by `place`.

    Raises:
        UserError: if the run has no velocity or no time.
    """

    def __init__(self, clip: Clip, centers: list[np.ndarray], window: Window, count: int, colormap: Colormap) -> None:
        shape = tuple(len(line) for line in centers)
        self._velocity = _velocity(clip.frames, shape)
        if "time" not in clip.diagnostics:
            raise UserError("render.tracers needs a run in time; set it to 0")
        self._centers, self._window = centers, window
        self._body = clip.frames.get("body_distance")
        speed = np.sqrt(np.mean([np.nanmean(np.square(part, dtype=float)) for part in self._velocity]) * 2) or 1.0
        self._tail = _LENGTH * float(np.hypot(window.width, window.height) / speed)
        self.positions = self._carried(np.asarray(clip.diagnostics["time"], float), count)
        is_light = float(np.mean(colormap(np.linspace(0.2, 0.8, 5))[:, :3] @ LUMINANCE)) > 0.55
        self.artist = LineCollection([], linewidths=1.1, capstyle="round", animated=True)
        colors = np.tile(to_rgba(INK if is_light else PAPER), (count * _TAIL, 1))
        colors[:, 3] = np.tile(np.linspace(0.75, 0.0, _TAIL), count)
        self.artist.set_color(colors.tolist())

    def place(self, index: int) -> LineCollection:
        """Return the tails of a frame."""
        points = [self.positions[index]]
        for _ in range(_TAIL):
            points.append(self._moved(points[-1], index, index, 0.0, -self._tail / _TAIL))
        line = np.stack(points, axis=1)
        self.artist.set_segments(list(np.stack([line[:, :-1], line[:, 1:]], axis=2).reshape(-1, 2, 2)))
        return self.artist

    def _carried(self, time: np.ndarray, count: int) -> np.ndarray:
        """Return positions in all frames, advanced by midpoint steps of at most about a cell."""
        random = np.random.default_rng(0)
        low, high = np.array(self._window).reshape(2, 2).T
        ages = random.integers(0, _LIFE, count)
        positions = [self._free(random.uniform(low, high, (count, 2)), random, 0)]
        cell = min(float(np.diff(line).min()) for line in self._centers if len(line) > 1)
        largest = max(float(np.nanmax(np.abs(part))) for part in self._velocity)
        for index in range(len(time) - 1):
            span = time[index + 1] - time[index]
            steps = int(np.clip(np.ceil(largest * span / (2 * cell)), 1, _MOST_STEPS))
            points = positions[-1]
            for step in range(steps):
                points = self._moved(points, index, index + 1, (step + 0.5) / steps, span / steps)
            lost = ((points < low) | (points > high)).any(axis=1) | ((ages + index) % _LIFE == 0)
            points = np.where(lost[:, None], random.uniform(low, high, (count, 2)), points)
            positions.append(self._free(points, random, index + 1))
        return np.stack(positions)

    def _free(self, points: np.ndarray, random: np.random.Generator, index: int) -> np.ndarray:
        """Return points with those inside a body elsewhere."""
        if self._body is None:
            return points
        low, high = np.array(self._window).reshape(2, 2).T
        inside = self._at(np.asarray(self._body[index], float), points) < 0
        return np.where(inside[:, None], random.uniform(low, high, points.shape), points)

    def _moved(self, points: np.ndarray, index: int, after: int, share: float, step: float) -> np.ndarray:
        """Return points a step later, in the velocity between two frames."""

        def velocity(places: np.ndarray) -> np.ndarray:
            now, later = (
                np.stack([self._at(part[frame], places) for part in self._velocity], axis=1) for frame in (index, after)
            )
            return now + share * (later - now)

        return points + step * velocity(points + step / 2 * velocity(points))

    def _at(self, values: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return values of a field at points (n, 2), linear between cell centers and constant beyond them."""
        cells, weights = [], []
        for line, along in zip(self._centers, points.T, strict=True):
            place = np.interp(along, line, np.arange(len(line), dtype=float))
            cells.append(np.clip(place.astype(int), 0, max(len(line) - 2, 0)))
            weights.append(place - cells[-1])
        (i, j), (a, b) = cells, weights
        k, m = np.minimum(i + 1, len(self._centers[0]) - 1), np.minimum(j + 1, len(self._centers[1]) - 1)
        below, above = (1 - a) * values[i, j] + a * values[k, j], (1 - a) * values[i, m] + a * values[k, m]
        return np.nan_to_num((1 - b) * below + b * above)


def _velocity(frames: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    for names in (("u", "v"), ("u_mid", "v_mid")):
        if all(np.shape(frames.get(name, ()))[1:] == shape for name in names):
            return [np.asarray(frames[name]) for name in names]
    raise UserError("render.tracers needs the velocity, and frames hold no 'u' and 'v'; observe them, or set it to 0")
