"""View of a scalar field in the plane: cell values interpolated to pixels, walls and a color bar."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.colors import to_rgba

from simkit.core.arguments import check_shape
from simkit.core.settings import line, several
from simkit.errors import UserError
from simkit.render.color import color_scale
from simkit.render.page import Sheet, Size, Window, read_sides
from simkit.render.selection import drawn_coordinates, field_values, observed
from simkit.render.style import WALL, with_unit
from simkit.render.tracers import Tracers
from simkit.render.views import Clip


@dataclasses.dataclass(frozen=True)
class Samples:
    """Linear interpolation from a line of cell centers to the pixels of one axis.

    Sample ``s`` reads ``(1 - weight[s]) value[lower[s]] + weight[s] value[lower[s] + 1]``; each pixel is the mean
    of ``per_pixel`` consecutive samples.

    Attributes:
        lower: index of the cell center at or below each sample.
        weight: weight of the next cell center, in [0, 1].
        per_pixel: samples per pixel; more than one where cells are smaller than pixels, so that no cell is skipped.
    """

    lower: np.ndarray
    weight: np.ndarray
    per_pixel: int


def cell_edges(centers: np.ndarray) -> np.ndarray:
    """Return the ``n + 1`` edges of cells with the given ``n`` centers: midpoints, and mirrored at both ends."""
    if len(centers) == 1:
        return np.array([centers[0] - 0.5, centers[0] + 0.5])
    inner = (centers[:-1] + centers[1:]) / 2
    return np.concatenate([[2 * centers[0] - inner[0]], inner, [2 * centers[-1] - inner[-1]]])


def samples(centers: np.ndarray, pixels: int, low: float, high: float) -> Samples:
    """Return the interpolation from a line of cells to pixels, constant in the outer half of the end cells.

    Args:
        centers: centers of the cells, increasing, (n,).
        pixels: number of pixels.
        low: coordinate of the start of the first pixel, within the cells.
        high: coordinate of the end of the last pixel, within the cells.
    """
    edges = cell_edges(centers)
    shown = np.diff(edges)[(edges[1:] > low) & (edges[:-1] < high)]
    per_pixel = max(1, int(np.ceil((high - low) / pixels / shown.min())))
    # Cells clustered at walls would need hundreds of samples per pixel, without a visible difference.
    count = pixels * min(per_pixel, 8)
    points = low + (high - low) * (np.arange(count) + 0.5) / count
    index = np.interp(points, centers, np.arange(len(centers), dtype=float))
    lower = np.clip(index.astype(int), 0, max(len(centers) - 2, 0))
    return Samples(lower, (index - lower).astype(np.float32), count // pixels)


def resample(image: np.ndarray, rows: Samples, columns: Samples) -> np.ndarray:
    """Interpolate ``image`` (cells in y, cells in x) to pixels.

    Pixels inside cells that are not finite are NaN; those around average over finite neighbors only.
    """
    finite = np.isfinite(image)
    if finite.all():
        return _along_both(image, rows, columns, _interpolated)
    total = _along_both(np.where(finite, image, 0).astype(np.float32), rows, columns, _interpolated)
    weight = _along_both(finite.astype(np.float32), rows, columns, _interpolated)
    inside = _along_both(finite.astype(np.float32), rows, columns, _nearest) > 0.5
    return np.where(inside, total / np.where(inside, weight, 1), np.nan)


def _along_both(image: np.ndarray, rows: Samples, columns: Samples, read: Callable) -> np.ndarray:
    return _averaged(read(_averaged(read(image.T, rows), rows).T, columns), columns)


def _averaged(values: np.ndarray, line: Samples) -> np.ndarray:
    if line.per_pixel == 1:
        return values
    return values.reshape(*values.shape[:-1], -1, line.per_pixel).mean(axis=-1)


def _interpolated(image: np.ndarray, line: Samples) -> np.ndarray:
    low = np.take(image, line.lower, axis=-1)
    if image.shape[-1] > 1:
        low += line.weight * (np.take(image, line.lower + 1, axis=-1) - low)
    return low


def _nearest(image: np.ndarray, line: Samples) -> np.ndarray:
    return np.take(image, line.lower + (line.weight > 0.5), axis=-1)


_PAPER = np.uint32(0xFFFFFFFF)
_SOLID = np.array(np.rint(np.array(to_rgba(WALL)) * 255), np.uint8).view(np.uint32)[0]


class FieldPainter:
    """Draws a field given at cell centers, indexed [x, y]; values between the centers are interpolated linearly.

    Args:
        clip: its ``settings.quantity`` has shape (frames, nx, ny); cells that are not finite are drawn in gray. Its
            coordinates hold the cell centers ``x`` (nx,) and ``y`` (ny,), increasing, evenly spaced or not, and
            ``sides`` or ``walls`` as for ``read_sides``. Optional frames: ``body_distance`` (frames, nx, ny), signed
            distance from a solid body that is drawn, negative inside; ``side_velocity`` (frames, 4), tangential
            velocity of each side, drawn as chevrons on moving walls. Optional coordinates, for several planes side by
            side: ``x_ticks`` or ``y_ticks`` (n, 2), positions of ticks and the numbers there; ``axis_labels`` (2,), of
            y one for each side of a gap, with `` | `` between them; ``x_gap`` or ``y_gap`` (2,), an interval left
            blank, with ``y_gap_sides`` (2,), the kinds of its ends; see also `drawn_coordinates`.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.

    Raises:
        UserError: if the quantity or a coordinate is missing or has another shape.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        frames, settings = clip.frames, clip.settings
        self._values = observed(frames, settings.quantity, axes=3)
        coordinates = drawn_coordinates(clip.coordinates, self._values.shape[2])
        centers = []
        for name, cells in zip("xy", self._values.shape[1:], strict=True):
            if name not in coordinates:
                raise UserError(f"view = 'field' needs the coordinate {name} of the cells; choose another view")
            centers.append(np.asarray(coordinates[name], dtype=float))
            check_shape(f"coordinate '{name}'", centers[-1], f"the {cells} cell centers of the field", (cells,))
        values = field_values(clip.runs, settings.quantity)
        self._scale = color_scale(
            values, settings.options.get("colormap"), settings.limits, default="inferno", signed=True
        )
        edges = [cell_edges(line) for line in centers]
        whole = Window(edges[0][0], edges[0][-1], edges[1][0], edges[1][-1])
        window = whole.cut(settings.options.get("window", {}))
        self.sheet = Sheet(
            clip,
            size,
            window,
            self._scale,
            axis_labels=_axis_labels(coordinates, clip.units),
            sides=read_sides(coordinates).of_part(whole, window),
            motion=_motion(frames),
            ticks=(_pairs(coordinates, "x_ticks"), _pairs(coordinates, "y_ticks")),
            gap=_pairs(coordinates, "y_gap"),
        )
        self._columns = samples(centers[0], self.sheet.box.width, window.x_low, window.x_high)
        self._rows = samples(centers[1], self.sheet.box.height, window.y_low, window.y_high)
        self._distance = observed(frames, "body_distance", axes=3) if "body_distance" in frames else None
        self._gaps = [self._pixels_of_gap(_pairs(coordinates, f"{name}_gap"), axis) for axis, name in enumerate("xy")]
        self._gap_walls = self._walls_in(self._gaps[1], np.ravel(coordinates.get("y_gap_sides", ())))
        self._pixel = window.width / self.sheet.box.width

        count = settings.options.get("tracers") or 0
        self._tracers = Tracers(clip, centers, window, count, self._scale.colormap) if count else None
        if self._tracers:
            self.sheet.axes.add_collection(self._tracers.artist)

    def __len__(self) -> int:
        return len(self._values)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        # Interpolating positions in the color table instead of values makes single precision sufficient.
        position = self._scale.position(self._values[index].T).astype(np.float32)
        pixels = self._scale.packed(resample(position, self._rows, self._columns))
        if self._distance is not None:
            distance = resample(self._distance[index].T.astype(np.float32), self._rows, self._columns)
            pixels = _with_body(pixels, distance / self._pixel)
        pixels[:, self._gaps[0]] = _PAPER
        pixels[self._gaps[1]] = _PAPER
        for rows in self._gap_walls:
            pixels[rows] = _SOLID
        return self.sheet.picture(index, [self._tracers.place(index)] if self._tracers else [], pixels)

    def _pixels_of_gap(self, gap: np.ndarray | None, axis: int) -> slice:
        if gap is None:
            return slice(0, 0)
        begin, end = self.sheet.window[2 * axis : 2 * axis + 2]
        low, high = np.rint((gap[0] - begin) / (end - begin) * self.sheet.box[2 + axis]).astype(int)
        return slice(low, high)

    def _walls_in(self, gap: slice, kinds: np.ndarray) -> list[slice]:
        """Return the rows of pixels of the walls at the lower and upper end of a gap."""
        ends = (slice(gap.start, gap.start + self.sheet.band), slice(gap.stop - self.sheet.band, gap.stop))
        return [rows for rows, kind in zip(ends, kinds, strict=False) if kind == "wall"]


def _axis_labels(coordinates: Mapping[str, np.ndarray], units: Mapping[str, str]) -> tuple[str, str]:
    labels = [str(label) for label in np.ravel(coordinates.get("axis_labels", ("$x$", "$y$")))]
    several(line("label", ""), "of x and y", (2,)).check(labels, "coordinate 'axis_labels'")
    x, y = units.get("x", ""), units.get("y", "")
    return with_unit(labels[0], x), " | ".join(with_unit(label, y) for label in labels[1].split(" | "))


def _pairs(coordinates: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    """Return a coordinate of pairs of numbers (n, 2), or ``None`` if it is absent."""
    if name not in coordinates:
        return None
    values = np.atleast_2d(np.asarray(coordinates[name]))
    if values.dtype.kind not in "fiu" or values.ndim != 2 or values.shape[1] != 2 or not np.isfinite(values).all():
        raise UserError(f"coordinate '{name}' has shape {values.shape}; give pairs of finite numbers")
    return values


def _motion(frames: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the tangential velocity (4,) of each side, averaged over frames."""
    if "side_velocity" not in frames:
        return None
    count = len(frames["side_velocity"])
    velocity = observed(frames, "side_velocity", axes=2, shape=(count, 4)).astype(float)
    return np.nan_to_num(velocity).mean(axis=0)


def _with_body(pixels: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return packed colors with a body drawn over them, antialiased over one pixel; distances are in pixels."""
    cover = np.clip(0.5 - distance, 0, 1)[..., None]
    colors = pixels[..., None].view(np.uint8)
    body = np.array(to_rgba(WALL)) * 255
    return np.rint(colors + cover * (body - colors)).astype(np.uint8).view(np.uint32)[..., 0]
