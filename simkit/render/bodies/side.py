"""Side view of rigid bodies: floor, balls of true size with their spin, their paths and apexes."""

from collections.abc import Sequence

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from simkit.errors import UserError
from simkit.render.bodies.motion import BodyFrames, body_colors, read_bodies, seam
from simkit.render.page import Sheet, Size, Window
from simkit.render.particles import Disks
from simkit.render.style import ACCENT, FAINT, INK, LUMINANCE, MUTED, PAPER, WALL, house_style
from simkit.render.views import Clip

# Largest numbers of bodies whose paths, and whose positions at apexes (ghosts), are drawn.
_MOST_TRAILS = 32
_MOST_GHOSTS = 4


class SidePainter:
    """Draws bodies as seen along +y: x to the right, z up, in meters; the floor is z = 0.

    Args:
        clip: frames as for ``read_bodies``, balls only; ``settings.quantity`` as for ``body_colors``.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.

    Raises:
        UserError: if an array is missing or has another shape, or a body is not a ball.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        runs = [read_bodies(run) for run in clip.runs]
        if any(run.half_lengths[run.present].any() for run in runs):
            raise UserError('the camera "side" shows balls only; use camera = "perspective" for boxes and capsules')
        bodies = runs[0]
        count, number = bodies.radius.shape
        self._bodies, self._radius, self._orientation = bodies, bodies.radius, bodies.orientation
        self._target = None if bodies.target is None else bodies.target[:, [0, 2]]
        self._place, self._depth = bodies.position[..., [0, 2]], bodies.position[..., 1]
        self._colors, scale = body_colors(clip.runs, clip.settings, (count, number))
        # Colors that encode values must stay readable on white; colors of bodies may fade further.
        self._faintest = 0.6 if scale else 0.3
        self._apexes = apexes(self._place[..., 1]) if number <= _MOST_GHOSTS else np.empty((0, 2), int)
        self.sheet = Sheet(clip, size, _window(runs), scale, "s", ("$x$ (m)", "$z$ (m)"), stretch=True)
        with house_style():
            self._draw_surroundings()
            self._make_artists()

    def __len__(self) -> int:
        return len(self._place)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        shown = np.flatnonzero(self._bodies.present[index])
        # Farther bodies first, so that nearer ones cover them.
        shown = shown[np.argsort(-self._depth[index, shown], kind="stable")]
        center, radius, color = self._place[index, shown], self._radius[index, shown], self._colors[index, shown]
        self._balls.place(center, 2 * radius, color)
        seams = [seam(quaternion) for quaternion in self._orientation[index, shown]]
        ink = np.where((color @ LUMINANCE)[:, None] < 0.5, to_rgb(PAPER), to_rgb(INK))
        self._seams.set_segments([c + r * s.line for c, r, s in zip(center, radius, seams, strict=True)])
        self._seams.set_color(list(ink))
        self._dots.place(center + radius[:, None] * np.reshape([s.dot for s in seams], (-1, 2)), 0.4 * radius, ink)
        self._place_ghosts(index)
        self._place_trails(index)
        self._links.set_segments(list(self._bodies.links[index][..., [0, 2]]))
        moving = [self._ghosts.artist, self._trails, self._links, self._balls.artist, self._seams, self._dots.artist]
        if self._target is not None:
            for ring in self._bullseye:
                ring.set_data(*self._target[index][:, None])
            moving = [*self._bullseye, *moving]
        return self.sheet.picture(index, moving)

    def _draw_surroundings(self) -> None:
        axes = self.sheet.axes
        if self._bodies.has_floor():
            axes.axhspan(self.sheet.window.y_low, 0.0, color=FAINT, lw=0, zorder=0.5)
            axes.axhline(0.0, color=MUTED, lw=1.2, zorder=0.6)
        axes.grid(axis="y", zorder=0.1)
        axes.tick_params(length=0)

    def _make_artists(self) -> None:
        axes = self.sheet.axes
        self._ghosts, self._balls, self._dots = (Disks(self.sheet, edge) for edge in (0.8, 0.8, 0.0))
        self._trails = LineCollection([], linewidths=1.8, capstyle="round", animated=True)
        self._seams = LineCollection([], linewidths=1.2, animated=True)
        self._links = LineCollection([], linewidths=1.6, colors=WALL, capstyle="round", animated=True)
        axes.add_collection(self._trails)
        axes.add_collection(self._links)
        axes.add_collection(self._seams)
        self._bullseye = []
        if self._target is not None:
            for size, fill in ((13, "none"), (6, ACCENT)):
                style = {"marker": "o", "ms": size, "mfc": fill, "mec": ACCENT, "mew": 1.6, "clip_on": False}
                self._bullseye += axes.plot([], [], animated=True, **style)

    def _place_ghosts(self, index: int) -> None:
        frame, body = self._apexes[self._apexes[:, 0] <= index].T
        color = self._colors[frame, body]
        self._ghosts.place(
            self._place[frame, body], 2 * self._radius[frame, body], tinted(color, 0.2), tinted(color, 0.5)
        )

    def _place_trails(self, index: int) -> None:
        path, colors = self._place[: index + 1], self._colors[1 : index + 1]
        if path.shape[1] > _MOST_TRAILS or index == 0:
            self._trails.set_segments([])
            return
        intervals = np.stack([path[:-1], path[1:]], axis=2)
        age = np.arange(index, 0, -1) / len(self._place)
        strength = self._faintest + (0.9 - self._faintest) * np.exp(-age / 0.12)
        self._trails.set_segments(list(intervals.reshape(-1, 2, 2)))
        self._trails.set_color([tuple(color) for color in tinted(colors, strength[:, None, None]).reshape(-1, 3)])


def apexes(height: np.ndarray) -> np.ndarray:
    """Return the local maxima of the heights of bodies: (frame, body) pairs (n, 2), in order of time.

    Args:
        height: height of each body (frames, B). The first frame is a maximum if the body falls from it. Rises of less
            than 2 % of the whole range of heights are ignored as jitter.
    """
    maxima = []
    least = 0.02 * np.ptp(height[np.isfinite(height)]) if np.isfinite(height).any() else np.inf
    for body, line in enumerate(height.T):
        # A maximum is confirmed by a fall of more than `least`; the next one needs a rise of more than `least` first.
        top, bottom, rising = 0, 0, True
        for frame, value in enumerate(line):
            if rising:
                if value > line[top]:
                    top = frame
                elif line[top] - value > least:
                    maxima.append((top, body))
                    bottom, rising = frame, False
            elif value < line[bottom]:
                bottom = frame
            elif value - line[bottom] > least:
                top, rising = frame, True
    return np.array(sorted(maxima), dtype=int).reshape(-1, 2)


def tinted(colors: np.ndarray, strength: float | np.ndarray) -> np.ndarray:
    """Return ``colors`` mixed with white; strength 1 leaves them unchanged."""
    return 1 - strength * (1 - colors)


def _window(runs: Sequence[BodyFrames]) -> Window:
    """Return the smallest window that contains all objects of all runs and the floor."""
    corners = []
    for run in runs:
        points, radii = run.outline()
        corners += [points[:, [0, 2]] - radii[:, None], points[:, [0, 2]] + radii[:, None]]
    corners = np.concatenate(corners)
    if not len(corners):
        return Window(-1.0, 1.0, -0.1, 1.0)
    low, high = corners.min(axis=0), corners.max(axis=0)
    low[1] = min(low[1], 0.0)
    margin = 0.07 * (high - low).max() or 1.0
    return Window(low[0] - margin, high[0] + margin, low[1] - margin, high[1] + margin)
