"""View of particles as disks of true size, with their periodic images at the edges of the box."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.patches import Polygon

from simkit.errors import UserError
from simkit.render.figure import Size, Window
from simkit.render.page import Sheet
from simkit.render.selection import drawn_cell, less_whole_vectors, observed
from simkit.render.spheres import SpherePainter, particle_colors
from simkit.render.style import INK, stamps
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


class ParticlePainter:
    """Draws particles in the plane, in a cell or in free space, colored by a quantity.

    Args:
        clip: its frames hold ``position`` (frames, N, 2), ``diameter`` (frames, N), ``settings.quantity`` (frames, N),
            and ``box`` (frames, 2), which may be missing; or ``cell``, with the coordinate ``periodic``.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.

    Raises:
        UserError: if an array is missing or has another shape.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        self._position = observed(clip.frames, "position", axes=3).astype(float)
        self._diameter = observed(clip.frames, "diameter", axes=2).astype(float)
        self._values = observed(clip.frames, clip.settings.quantity, axes=2)
        count, number, dimension = self._position.shape
        if dimension != 2:
            raise UserError(f"particles have {dimension} coordinates; this view draws 2 or 3")
        for name, array in (("diameter", self._diameter), (clip.settings.quantity, self._values)):
            if array.shape != (count, number):
                raise UserError(f"'{name}' has shape {array.shape}; one value per particle would be {(count, number)}")
        self._cell = drawn_cell(clip.frames, clip.coordinates.get("periodic"))
        self._corners = None if self._cell is None else self._cell.corners
        runs = clip.runs
        self._scale = particle_colors(clip)
        self.sheet = Sheet(
            size,
            clip.title,
            stamps(clip.diagnostics, count, clip.units.get("time", "")),
            _window(runs, clip.coordinates.get("periodic")),
            bar=(self._scale, clip.settings.label, clip.settings.unit),
        )
        self._disks = Disks(self.sheet, edge=0.5)
        self._inside = Polygon(np.zeros((4, 2)), transform=self.sheet.axes.transData)
        self._borders = LineCollection(
            [], colors=INK, linewidths=0.9, capstyle="projecting", animated=True, clip_on=False
        )
        self.sheet.axes.add_collection(self._borders)

    def __len__(self) -> int:
        return len(self._position)

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
    """Return the painter of disks in the plane, or of spheres in space; arguments are those of the painters.

    Raises:
        UserError: if an array is missing or has another shape.
    """
    is_spatial = observed(clip.frames, "position", axes=3).shape[2] == 3
    painter = SpherePainter if is_spatial else ParticlePainter
    return painter(clip, size)


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
