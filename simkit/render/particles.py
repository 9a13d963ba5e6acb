"""Views of particles: disks of true size in the plane, shaded spheres with bonds between neighbors in space."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.patches import Polygon

from simkit.errors import UserError
from simkit.render.bodies.camera import fitted, seen_window
from simkit.render.bodies.light import lamp, linear, shadow_of
from simkit.render.bodies.raster import Line, draw_lines, packed, shaded, visible
from simkit.render.bodies.solids import BALL, Solid, rod
from simkit.render.color import ColorScale, color_scale
from simkit.render.page import Sheet, Size, Window, scale_of
from simkit.render.selection import DrawnCell, drawn_cell, less_whole_vectors, observed
from simkit.render.style import INK, WALL
from simkit.render.views import Clip


class Disks:
    """Disks with a thin edge inside them, so that the visible disk has exactly the given diameter.

    Args:
        sheet: the page, in whose data units disks are placed.
        edge: line width in points; 0 for none.
    """

    def __init__(self, sheet: Sheet, edge: float) -> None:
        axes: Axes = sheet.axes
        pixel = sheet.window.width / sheet.box.width
        self._edge = edge * axes.figure.dpi / 72 * pixel
        self.artist = EllipseCollection(
            [], [], [], units="xy", offset_transform=axes.transData, linewidths=edge, edgecolors=INK if edge else "none"
        )
        self.artist.set_animated(True)
        axes.add_collection(self.artist)

    def place(
        self, centers: np.ndarray, diameters: np.ndarray, colors: np.ndarray, edges: np.ndarray | None = None
    ) -> None:
        """Draw disks, later ones over earlier ones.

        Args:
            centers: (N, 2), in data units.
            diameters: (N,), in data units.
            colors: (N, 3) or (N, 4), in [0, 1].
            edges: colors of the edges, like ``colors``, if they differ between disks.
        """
        inner = np.maximum(diameters - self._edge, 0.0)
        self.artist.set_offsets(centers)
        self.artist.set_widths(inner)
        self.artist.set_heights(inner)
        self.artist.set_angles(np.zeros(len(inner)))
        self.artist.set_facecolor(colors.tolist())
        if edges is not None:
            self.artist.set_edgecolor(edges.tolist())


class _Particles:
    """Particles of a run, in a cell or in free space, and their colors.

    Args:
        clip: its frames hold ``position`` (frames, N, d), ``diameter`` (frames, N), ``settings.quantity`` (frames, N),
            and ``box`` (frames, d), which may be missing; or ``cell``, with the coordinate ``periodic``.

    Raises:
        UserError: if an array is missing or has another shape.
    """

    def __init__(self, clip: Clip) -> None:
        self._position = observed(clip.frames, "position", axes=3).astype(float)
        *shape, dimension = self._position.shape
        self._diameter = observed(clip.frames, "diameter", axes=2, shape=shape).astype(float)
        self._values = observed(clip.frames, clip.settings.quantity, axes=2, shape=shape)
        if dimension not in (2, 3):
            raise UserError(f"particles have {dimension} coordinates; this view draws 2 or 3")
        self._cell = drawn_cell(clip.frames, clip.coordinates.get("periodic"))
        self._corners = None if self._cell is None else self._cell.corners
        self._scale = particle_colors(clip)

    def __len__(self) -> int:
        return len(self._position)


class ParticlePainter(_Particles):
    """Draws particles in the plane as disks of true size; arguments as for `particle_painter`."""

    def __init__(self, clip: Clip, size: Size) -> None:
        super().__init__(clip)
        self.sheet = Sheet(clip, size, _window(clip.runs, clip.coordinates.get("periodic")), self._scale)
        self._disks = Disks(self.sheet, edge=0.5)
        self._inside = Polygon(np.zeros((4, 2)), transform=self.sheet.axes.transData)
        self._borders = LineCollection(
            [], colors=INK, linewidths=0.9, capstyle="projecting", animated=True, clip_on=False
        )
        self.sheet.axes.add_collection(self._borders)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        position, diameter = self._position[index], self._diameter[index]
        colors = self._scale.colors(self._scale.position(self._values[index])) / 255
        drawn = np.flatnonzero(np.isfinite(position).all(axis=1))
        if self._cell is not None and self._corners is not None:
            cell, corners = self._cell, self._corners[index]
            self._inside.set_xy(corners[[0, 1, 3, 2]])
            self._disks.artist.set_clip_path(self._inside)
            self._borders.set_segments(_borders(corners, cell.periodic))
            centers, source = periodic_images(position[drawn], diameter[drawn], cell.vectors[index], cell.periodic)
            drawn = drawn[source]
        else:
            centers = position[drawn]
        self._disks.place(centers, diameter[drawn], colors[drawn])
        return self.sheet.picture(index, [self._disks.artist, self._borders])


def particle_painter(clip: Clip, size: Size) -> "ParticlePainter | SpherePainter":
    """Return the painter of disks in the plane, or of spheres in space.

    Args:
        clip: its frames hold ``position`` (frames, N, d), ``diameter`` (frames, N), ``settings.quantity`` (frames, N),
            and ``box`` (frames, d), which may be missing; or ``cell``, with the coordinate ``periodic``.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.

    Raises:
        UserError: if an array is missing or has another shape.
    """
    is_spatial = observed(clip.frames, "position", axes=3).shape[2] == 3
    return (SpherePainter if is_spatial else ParticlePainter)(clip, size)


def periodic_images(
    position: np.ndarray, diameter: np.ndarray, vectors: np.ndarray, periodic: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the centers of all disks visible in a cell, images across its periodic edges included.

    Args:
        position: centers (N, 2), inside or outside the cell.
        diameter: diameters (N,).
        vectors: of the cell as rows, (2, 2); it starts at the origin along those that repeat.
        periodic: whether the cell repeats along each vector, (2,) booleans.

    Returns:
        Centers (M, 2) with M >= N, and the index (M,) of the particle of each; in an oblique cell also some that are
        beside its corners.
    """
    inverse = np.linalg.inv(vectors)
    heights = 1 / np.linalg.norm(inverse, axis=0)
    is_oblique = bool(vectors[0, 1] or vectors[1, 0])
    inside = less_whole_vectors(position, vectors, np.floor, periodic)
    centers, sources = [], []
    for shift in product(*((-1, 0, 1) if repeats else (0,) for repeats in periodic)):
        image = inside + np.array(shift) @ vectors
        along = image @ inverse
        # The distance from the cell to the center, zero where the center is inside.
        gap = np.where(periodic, np.maximum(np.maximum(-along, along - 1), 0.0), 0.0) * heights
        distance = gap.max(axis=1) if is_oblique else np.hypot(*gap.T)
        seen = np.flatnonzero(distance < diameter / 2) if any(shift) else np.arange(len(image))
        centers.append(image[seen])
        sources.append(seen)
    return np.concatenate(centers), np.concatenate(sources)


def _borders(corners: np.ndarray, periodic: np.ndarray) -> list[np.ndarray]:
    """Return the edges of a plane cell across which particles repeat, as pairs of points."""
    ends = {0: ((0, 1), (2, 3)), 1: ((0, 2), (1, 3))}
    return [corners[list(pair)] for axis in (0, 1) if periodic[axis] for pair in ends[axis]]


def _window(runs: Sequence[Mapping[str, np.ndarray]], periodic: np.ndarray | None) -> Window:
    """Return the largest cell of all runs, or in free space a window that holds all particles."""
    cells = [cell for frames in runs if (cell := drawn_cell(frames, periodic)) is not None]
    if len(cells) == len(runs):
        corners = np.concatenate([cell.corners.reshape(-1, 2) for cell in cells])
        low, high = corners.min(axis=0), corners.max(axis=0)
        return Window(low[0], high[0], low[1], high[1])
    corners = []
    for frames in runs:
        center, radius = frames["position"][..., :2].astype(float), frames["diameter"][..., None] / 2
        seen = np.isfinite(center).all(axis=-1)
        corners += [(center - radius)[seen], (center + radius)[seen]]
    corners = np.concatenate(corners)
    if not len(corners):
        return Window(0.0, 1.0, 0.0, 1.0)
    low, high = corners.min(axis=0), corners.max(axis=0)
    margin = 0.03 * (high - low).max() or 1.0
    return Window(low[0] - margin, high[0] + margin, low[1] - margin, high[1] + margin)


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


class SpherePainter(_Particles):
    """Draws particles in space as shaded spheres; arguments as for `particle_painter`."""

    def __init__(self, clip: Clip, size: Size) -> None:
        super().__init__(clip)
        if self._cell is not None:
            self._position = _in_cell(self._position, self._cell, steady="time" not in clip.diagnostics)
        number = self._position.shape[1]
        bonds = clip.coordinates.get("bonds")
        self._members = None if bonds is None else np.asarray(bonds, int).reshape(-1, 2)
        # No bonds of neighbors in dynamics, where these keep changing.
        is_still = self._members is None and "time" not in clip.diagnostics
        is_sparse = is_still and len(_pairs(self._position[-1], self._diameter[-1])) * 2 <= _MOST_BONDS * number
        self._bonds = self._members is not None or is_sparse
        self._samples = 3 if number <= _MOST_SHADOWS else 2
        points, radii = (
            np.concatenate(parts)
            for parts in zip(*(_extent(run, clip.coordinates.get("periodic")) for run in clip.runs), strict=True)
        )
        self.sheet = Sheet(clip, size, seen_window(points, radii, *_DIRECTION), self._scale, stretch=True)
        box = self.sheet.box
        self._camera = fitted(points, radii, *_DIRECTION, (box.width, box.height))
        self._light = lamp(_DIRECTION[0])
        depth = self._camera.project(points)[2]
        self._depths = float((depth - radii).min()), float((depth + radii).max())

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
            pairs = _pairs(position, diameter) if self._members is None else self._whole(index, self._members)
            for i, j in pairs:
                ends = position[[i, j]]
                balls.append(rod(ends, _STICK * diameter[i], self._hazy(gray, ends.mean(axis=0))))
        return balls

    def _whole(self, index: int, bonds: np.ndarray) -> np.ndarray:
        """Return the bonds of molecules, (K, 2), but for those across a side of the cell."""
        first, second = self._position[index][bonds.T]
        apart, is_whole = second - first, np.isfinite(first + second).all(axis=1)
        if self._cell is not None:
            fraction = apart @ np.linalg.inv(self._cell.vectors[index])
            is_whole &= (np.abs(fraction) <= 0.5).all(axis=1)
        return bonds[is_whole & apart.any(axis=1)]

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
    values = np.concatenate([observed(frames, name, axes=2).ravel() for frames in clip.runs])
    names = [str(word) for word in clip.coordinates.get(f"{name}_names", ())]
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
