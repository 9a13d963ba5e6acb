"""View of particles as disks of true size, with their periodic images at the edges of the box."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle

from simkit.errors import UserError
from simkit.render.clip import Clip
from simkit.render.disks import Disks
from simkit.render.figure import Size
from simkit.render.labels import stamps
from simkit.render.layout import Window
from simkit.render.select import observed, periodic_box
from simkit.render.sheet import Sheet
from simkit.render.spheres import SpherePainter, particle_colors
from simkit.render.style import INK


class ParticlePainter:
    """Draws particles in the plane, in a periodic box or in free space, colored by a quantity.

    Args:
        clip: its frames hold ``position`` (frames, N, 2), ``diameter`` (frames, N), ``settings.quantity`` (frames, N),
            and ``box`` (frames, 2), which may be missing, zero or infinite for free space.
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
        self._box = periodic_box(clip.frames, count, dimension)
        runs = clip.runs
        self._scale = particle_colors(clip)
        self.sheet = Sheet(
            size,
            clip.title,
            stamps(clip.diagnostics, count, clip.units.get("time", "")),
            _window(runs, dimension),
            bar=(self._scale, clip.settings.label, clip.settings.unit),
        )
        self._disks = Disks(self.sheet, edge=0.5)
        self._outline = Rectangle((0, 0), 1, 1, fill=False, edgecolor=INK, linewidth=0.9)
        self.sheet.axes.add_patch(self._outline)
        self._outline.set(animated=True, clip_on=False)
        self._outline.set_visible(self._box is not None)

    def __len__(self) -> int:
        return len(self._position)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        position, diameter = self._position[index], self._diameter[index]
        colors = self._scale.colors(self._scale.position(self._values[index])) / 255
        drawn = np.flatnonzero(np.isfinite(position).all(axis=1))
        if self._box is not None:
            box = self._box[index, :2]
            self._outline.set_bounds(0, 0, *box)
            self._disks.artist.set_clip_path(self._outline)
            centers, source = periodic_images(position[drawn, :2], diameter[drawn], box)
            drawn = drawn[source]
        else:
            centers = position[drawn, :2]
        self._disks.place(centers, diameter[drawn], colors[drawn])
        return self.sheet.picture(index, [self._disks.artist, self._outline])


def particle_painter(clip: Clip, size: Size) -> "ParticlePainter | SpherePainter":
    """Return the painter of disks in the plane, or of spheres in space; arguments are those of the painters.

    Raises:
        UserError: if an array is missing or has another shape.
    """
    is_spatial = observed(clip.frames, "position", axes=3).shape[2] == 3
    painter = SpherePainter if is_spatial else ParticlePainter
    return painter(clip, size)


def periodic_images(position: np.ndarray, diameter: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centers of all disks visible in a periodic box, images across its edges included.

    Args:
        position: centers (N, 2), inside or outside the box.
        diameter: diameters (N,).
        box: edge lengths (2,); the box starts at the origin.

    Returns:
        Centers (M, 2) with M >= N, and the index (M,) of the particle of each.
    """
    inside = position % box
    centers, sources = [], []
    for shift in np.ndindex(3, 3):
        image = inside + (np.array(shift) - 1) * box
        # The distance from the box to the center, zero where the center is inside.
        gap = np.maximum(np.maximum(-image, image - box), 0.0)
        seen = np.flatnonzero(np.hypot(*gap.T) < diameter / 2) if shift != (1, 1) else np.arange(len(image))
        centers.append(image[seen])
        sources.append(seen)
    return np.concatenate(centers), np.concatenate(sources)


def _window(runs: Sequence[Mapping[str, np.ndarray]], dimension: int) -> Window:
    """Return the largest box of all runs, or in free space a window that holds all particles."""
    boxes = [box for frames in runs if (box := periodic_box(frames, len(frames["position"]), dimension)) is not None]
    if len(boxes) == len(runs):
        across, up = np.concatenate(boxes)[:, :2].max(axis=0)
        return Window(0.0, across, 0.0, up)
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
