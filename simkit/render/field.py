"""View of a scalar field in the plane: one color per pixel, walls and a color bar."""

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import to_rgba

from simkit.errors import UserError
from simkit.render.clip import Clip
from simkit.render.color import color_scale
from simkit.render.figure import Size
from simkit.render.labels import stamps, with_unit
from simkit.render.layout import Window
from simkit.render.resample import cell_edges, resample, samples
from simkit.render.select import field_values, observed
from simkit.render.sheet import Sheet
from simkit.render.style import WALL
from simkit.render.walls import read_sides

_PAPER = np.uint32(0xFFFFFFFF)


class FieldPainter:
    """Draws a field given at cell centers, indexed [x, y]; values between the centers are interpolated linearly.

    Args:
        clip: its ``settings.quantity`` has shape (frames, nx, ny); cells that are not finite are drawn in gray. Its
            coordinates hold the cell centers ``x`` (nx,) and ``y`` (ny,), increasing, evenly spaced or not, and
            ``sides`` or ``walls`` as for ``read_sides``. Optional frames: ``body_distance`` (frames, nx, ny), signed
            distance from a solid body that is drawn, negative inside; ``side_velocity`` (frames, 4), tangential
            velocity of each side, drawn as chevrons on moving walls. Optional coordinates, for several planes side by
            side: ``x_ticks`` or ``y_ticks`` (n, 2), positions of ticks and the numbers there; ``axis_labels`` (2,);
            ``x_gap`` or ``y_gap`` (2,), an interval left blank.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.

    Raises:
        UserError: if the quantity or a coordinate is missing or has another shape.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        frames, coordinates, settings = clip.frames, clip.coordinates, clip.settings
        self._values = observed(frames, settings.quantity, axes=3)
        centers = []
        for name, cells in zip("xy", self._values.shape[1:], strict=True):
            centers.append(np.asarray(coordinates.get(name, ()), dtype=float))
            if centers[-1].shape != (cells,):
                raise UserError(
                    f"the field view needs the {cells} cell centers of '{settings.quantity}' as coordinate '{name}'; "
                    f"found an array of shape {centers[-1].shape}"
                )
        values = field_values(clip.runs, settings.quantity)
        self._scale = color_scale(values, settings.colormap, settings.limits, default="inferno", signed=True)
        edges = [cell_edges(line) for line in centers]
        whole = Window(edges[0][0], edges[0][-1], edges[1][0], edges[1][-1])
        window = whole.cut(settings.window)
        self.sheet = Sheet(
            size,
            clip.title,
            stamps(clip.diagnostics, len(self._values), clip.units.get("time", "")),
            window,
            axis_labels=_axis_labels(coordinates, clip.units),
            bar=(self._scale, settings.label, settings.unit),
            sides=read_sides(coordinates).of_part(whole, window),
            motion=_motion(frames),
            ticks=(_pairs(coordinates, "x_ticks"), _pairs(coordinates, "y_ticks")),
        )
        self._columns = samples(centers[0], self.sheet.box.width, window.x_low, window.x_high)
        self._rows = samples(centers[1], self.sheet.box.height, window.y_low, window.y_high)
        self._distance = observed(frames, "body_distance", axes=3) if "body_distance" in frames else None
        self._gaps = [self._pixels_of_gap(_pairs(coordinates, f"{name}_gap"), axis) for axis, name in enumerate("xy")]
        self._pixel = window.width / self.sheet.box.width

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
        return self.sheet.picture(index, pixels=pixels)

    def _pixels_of_gap(self, gap: np.ndarray | None, axis: int) -> slice:
        if gap is None:
            return slice(0)
        begin, end = self.sheet.window[2 * axis : 2 * axis + 2]
        low, high = np.rint((gap[0] - begin) / (end - begin) * self.sheet.box[2 + axis]).astype(int)
        return slice(low, high)


def _axis_labels(coordinates: Mapping[str, np.ndarray], units: Mapping[str, str]) -> tuple[str, str]:
    labels = [str(label) for label in np.ravel(coordinates.get("axis_labels", ("$x$", "$y$")))]
    if len(labels) != 2:
        raise UserError(f"coordinate 'axis_labels' has {len(labels)} entries; give one for x and one for y")
    return with_unit(labels[0], units.get("x", "")), with_unit(labels[1], units.get("y", ""))


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
    velocity = observed(frames, "side_velocity", axes=2).astype(float)
    if velocity.shape[1] != 4:
        raise UserError(f"'side_velocity' has shape {velocity.shape}; one number per side would be {len(velocity), 4}")
    return np.nan_to_num(velocity).mean(axis=0)


def _with_body(pixels: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return packed colors with a body drawn over them, antialiased over one pixel; distances are in pixels."""
    cover = np.clip(0.5 - distance, 0, 1)[..., None]
    colors = pixels[..., None].view(np.uint8)
    body = np.array(to_rgba(WALL)) * 255
    return np.rint(colors + cover * (body - colors)).astype(np.uint8).view(np.uint32)[..., 0]
