"""View of particles in space as shaded spheres in perspective, with bonds between neighbors."""

from collections.abc import Mapping

import numpy as np

from simkit.errors import UserError
from simkit.render.bodies.camera import fitted, seen_window
from simkit.render.bodies.ground import linear
from simkit.render.bodies.light import lamp, shadow_of
from simkit.render.bodies.raster import Line, draw_lines, packed, shaded, visible
from simkit.render.bodies.solids import BALL, Solid, rod
from simkit.render.color import ColorScale, color_scale
from simkit.render.figure import Size, scale_of
from simkit.render.page import Sheet
from simkit.render.selection import DrawnCell, all_values, drawn_cell, less_whole_vectors, observed
from simkit.render.style import INK, WALL, stamps
from simkit.render.views import Clip

# Azimuth and elevation of the camera in degrees.
_DIRECTION = (-68.0, 20.0)
# Largest distance of bonded particles, in diameters: first neighbors are at 1.1 to 1.15, second ones from 1.6.
_BOND = 1.3
# Largest mean number of bonds per particle with which bonds are drawn, and particles smaller.
_MOST_BONDS = 7.0
# Radius of particles with bonds, of particles without, and of bonds, in diameters.
_SMALL, _FULL, _STICK = 0.29, 0.5, 0.07
# Largest number of particles with cast shadows and full sampling; more hide each other.
_MOST_SHADOWS = 150
# Fraction of paper white mixed into the color of the farthest particles.
_HAZE = 0.35
_EDGE_WIDTH = 1.1
# Distance from a side of the box, as a fraction of its length, within which a particle counts as on that side.
_ON_SIDE = 0.004


class SpherePainter:
    """Draws particles in space, in a cell or in free space, colored by a quantity.

    Args:
        clip: its frames hold ``position`` (frames, N, 3), ``diameter`` (frames, N), ``settings.quantity`` (frames, N),
            and ``box`` (frames, 3), which may be missing; or ``cell``, with the coordinate ``periodic``.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.

    Raises:
        UserError: if an array is missing or has another shape.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        self._position = observed(clip.frames, "position", axes=3).astype(float)
        self._diameter = observed(clip.frames, "diameter", axes=2).astype(float)
        self._values = observed(clip.frames, clip.settings.quantity, axes=2)
        count, number = self._position.shape[:2]
        for name, array in (("diameter", self._diameter), (clip.settings.quantity, self._values)):
            if array.shape != (count, number):
                raise UserError(f"'{name}' has shape {array.shape}; one value per particle would be {(count, number)}")
        repeats = clip.coordinates.get("periodic")
        cell = drawn_cell(clip.frames, repeats)
        self._corners = None if cell is None else cell.corners
        if cell is not None:
            self._position = _in_cell(self._position, cell, steady="time" not in clip.diagnostics)
        runs = clip.runs
        self._scale = particle_colors(clip)
        # No bonds in dynamics, where neighbors keep changing.
        is_sparse = len(_pairs(self._position[-1], self._diameter[-1])) * 2 <= _MOST_BONDS * number
        self._bonds = is_sparse and "time" not in clip.diagnostics
        self._samples = 3 if number <= _MOST_SHADOWS else 2
        points, radii = (
            np.concatenate(parts) for parts in zip(*(_extent(frames, repeats) for frames in runs), strict=True)
        )
        self.sheet = Sheet(
            size,
            clip.title,
            stamps(clip.diagnostics, count, clip.units.get("time", "")),
            seen_window(points, radii, *_DIRECTION),
            bar=(self._scale, clip.settings.label, clip.settings.unit),
            stretch=True,
        )
        box = self.sheet.box
        self._camera = fitted(points, radii, *_DIRECTION, (box.width, box.height))
        self._light = lamp(_DIRECTION[0])
        depth = self._camera.project(points)[2]
        self._depths = float((depth - radii).min()), float((depth + radii).max())

    def __len__(self) -> int:
        return len(self._position)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        camera, samples = self._camera, self._samples
        solids = self._solids(index)
        seen = visible(solids, camera, samples)
        shadows = [shadow_of(body, self._light) for body in solids] if len(solids) <= _MOST_SHADOWS else []
        light, cover = shaded(solids, shadows, camera, self._light, seen, samples)
        image = 1 - cover[..., None] + light
        width = _EDGE_WIDTH * scale_of(self.sheet.size)
        image = draw_lines(image, self._edges(index), camera, width, seen, samples)
        return self.sheet.picture(index, pixels=packed(image))

    def _solids(self, index: int) -> list[Solid]:
        position, diameter = self._position[index], self._diameter[index]
        is_finite = np.isfinite(position).all(axis=1)
        colors = self._scale.colors(self._scale.position(self._values[index]))[..., :3] / 255
        colors = self._hazy(linear(colors), position)
        size, no_lengths = _SMALL if self._bonds else _FULL, np.zeros(3)
        balls = [
            Solid(BALL, position[k], np.eye(3), no_lengths, size * diameter[k], colors[k], plain=True)
            for k in np.flatnonzero(is_finite & (diameter > 0))
        ]
        if self._bonds:
            gray = linear(WALL)
            for i, j in _pairs(position, diameter):
                ends = position[[i, j]]
                balls.append(rod(ends, _STICK * diameter[i], self._hazy(gray, ends.mean(axis=0))))
        return balls

    def _hazy(self, colors: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Return colors (..., 3) that become paler with the distance from the camera."""
        near, far = self._depths
        depth = self._camera.project(position)[2]
        share = _HAZE * np.clip((depth - near) / (far - near), 0.0, 1.0)[..., None]
        return colors + np.nan_to_num(share) * (0.85 - colors)

    def _edges(self, index: int) -> list[Line]:
        if self._corners is None:
            return []
        corners = self._corners[index]
        ink = np.tile(linear(INK), (2, 1))
        pairs = [(a, b) for a in range(8) for b in range(a) if (a ^ b) in (1, 2, 4)]
        return [Line(corners[[a, b]], ink, np.full(2, 0.6)) for a, b in pairs]


def particle_colors(clip: Clip) -> ColorScale:
    """Return the color scale of particles: one color per integer, named by the coordinate ``QUANTITY_names``.

    Args:
        clip: the run.
    """
    name, settings = clip.settings.quantity, clip.settings
    values, names = all_values(clip.runs, name, axes=2), [str(n) for n in clip.coordinates.get(f"{name}_names", ())]
    return color_scale(
        values, settings.options.get("colormap"), settings.limits, default="viridis", whole=True, names=names
    )


def _in_cell(position: np.ndarray, cell: DrawnCell, steady: bool) -> np.ndarray:
    """Return positions (frames, N, 3) inside a cell along its periodic axes.

    Args:
        position: positions inside or outside the cell.
        cell: the cell.
        steady: whether to show each particle near its last position, so that it crosses a side without a jump.
    """
    # Particles on a side of the cell, which round-off puts on either end, are all shown at the same end.
    wrapped = less_whole_vectors(position, cell.vectors, lambda along: np.floor(along + _ON_SIDE), cell.periodic)
    if not steady:
        return wrapped
    return wrapped[-1] + less_whole_vectors(wrapped - wrapped[-1], cell.vectors, np.rint, cell.periodic)


def _pairs(position: np.ndarray, diameter: np.ndarray) -> np.ndarray:
    """Return the pairs (n, 2) of bonded particles, without periodic images."""
    pairs = []
    for i in range(len(position) - 1):
        distance = np.linalg.norm(position[i + 1 :] - position[i], axis=1)
        near = np.flatnonzero(distance < _BOND * (diameter[i + 1 :] + diameter[i]) / 2) + i + 1
        pairs.append(np.stack([np.full(len(near), i), near], axis=1))
    return np.concatenate([np.empty((0, 2), int), *pairs])


def _extent(frames: Mapping[str, np.ndarray], periodic: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return centers and radii of spheres around the corners of all cells, or the particles in free space."""
    cell = drawn_cell(frames, periodic)
    if cell is not None:
        corners = np.unique(cell.corners.reshape(-1, 3), axis=0)
        return corners, np.full(len(corners), 0.5 * float(np.max(frames["diameter"])))
    center, diameter = np.asarray(frames["position"], float), np.asarray(frames["diameter"], float)
    is_finite = np.isfinite(center).all(axis=-1) & np.isfinite(diameter)
    if not is_finite.any():
        return np.zeros((1, 3)), np.ones(1)
    return center[is_finite], diameter[is_finite] / 2
