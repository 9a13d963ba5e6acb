"""Pages of an exact size in pixels: margins, title, axes, color bar and sides of a flow, drawn once."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from matplotlib.transforms import IdentityTransform

from simkit.core.settings import line, several, word
from simkit.errors import UserError
from simkit.render.color import ColorScale
from simkit.render.style import (
    COLD,
    HOT,
    INK,
    MUTED,
    PAPER,
    WALL,
    drawable,
    drawing_style,
    fit,
    house_style,
    shown_unit,
    stamps,
    with_unit,
)
from simkit.render.views import DEFAULT_PIXELS, Clip, Size
from simkit.scenario.scenario import RenderSettings

# Limits of width and height of a page of free aspect ratio, in pixels of the design.
_NARROWEST, _WIDEST, _MOST_FOR_HEADER = 420, 960, 620
_LOWEST, _HIGHEST = 180, 640


class Window(NamedTuple):
    """The part of the plane that is shown, in data units."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    @property
    def width(self) -> float:
        """Extent in x."""
        return self.x_high - self.x_low

    @property
    def height(self) -> float:
        """Extent in y."""
        return self.y_high - self.y_low

    def cut(self, chosen: Mapping[str, tuple[float, float]]) -> "Window":
        """Return a part of the window.

        Args:
            chosen: lowest and highest coordinate by axis, ``"x"`` or ``"y"``; an absent axis is kept whole.

        Raises:
            UserError: if it is not within this window.
        """
        ends: list[float] = []
        for name, low, high in (("x", self.x_low, self.x_high), ("y", self.y_low, self.y_high)):
            begin, end = chosen.get(name, (low, high))
            # Ends of the field may differ from the given ones by the rounding of stored coordinates.
            if begin < low - 1e-6 * (high - low) or end > high + 1e-6 * (high - low):
                raise UserError(
                    f"render.window.{name} = [{begin:g}, {end:g}] is not within the field; choose from {low:g} to "
                    f"{high:g}"
                )
            ends += [max(begin, low), min(end, high)]
        return Window(*ends)


class Box(NamedTuple):
    """A rectangle in pixels, from the lower left corner of the page."""

    left: int
    bottom: int
    width: int
    height: int

    def fractions(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """Return (left, bottom, width, height) as fractions of a page of ``size`` pixels."""
        return self.left / size[0], self.bottom / size[1], self.width / size[0], self.height / size[1]


class Margins(NamedTuple):
    """Pixels of the page around a window."""

    left: int
    right: int
    below: int
    above: int


def filling_scale(pixels: float, window: Window, across: float, up: float) -> float:
    """Return the pixels per data unit with which a window and its margins fill a page of a given area.

    Args:
        pixels: width times height of the page.
        window: the window.
        across: sum of the left and right margins in pixels.
        up: sum of the margins below and above in pixels.
    """
    # The positive root of (width s + across) (height s + up) = pixels.
    a, b = window.width * window.height, window.width * up + window.height * across
    c = across * up - pixels
    return 2 * max(-c, 0.0) / (b + (b * b - 4 * a * min(c, 0.0)) ** 0.5)


def page_for(pixels: int, window: Window, margins: Margins, unit: float, header: float = 0.0) -> tuple[int, int]:
    """Return the even width and height of a page with the aspect ratio of a window.

    Args:
        pixels: approximate area of the page; smaller where it would become a narrow band.
        window: the window.
        margins: margins around the window.
        unit: pixels per pixel of the design.
        header: width required by title and time stamp.
    """
    across, up = margins.left + margins.right, margins.below + margins.above
    scale = filling_scale(pixels, window, across, up)
    scale = min(scale, (_WIDEST * unit - across) / window.width, (_HIGHEST * unit - up) / window.height)
    width = max(window.width * scale + across, min(max(header, _NARROWEST * unit), _MOST_FOR_HEADER * unit))
    height = max(window.height * scale + up, _LOWEST * unit)
    return 2 * round(width / 2), 2 * round(height / 2)


def tick_locator(length: float) -> MaxNLocator:
    """Return a locator of ticks at round numbers for an axis of ``length`` pixels at 640 x 360."""
    return MaxNLocator(int(np.clip(length / 45, 1, 8)), steps=[1, 2, 5, 10])


# Reference size of the design; fonts and lines are scaled with the picture.
_REFERENCE = (640, 360)
_REFERENCE_DPI = 100.0


def scale_of(size: Size) -> float:
    """Return the scale of fonts and lines in a picture of ``size`` pixels, relative to 640 x 360.

    The size is width and height, or their product for a picture of free aspect ratio. The scale is the square root of
    the ratio of areas, limited by width / 320 and height / 180 so that margins do not fill very flat or tall pictures.
    """
    if isinstance(size, int):
        return (size / DEFAULT_PIXELS) ** 0.5
    width, height = size
    area = width * height / (_REFERENCE[0] * _REFERENCE[1])
    return min(area**0.5, width / 320, height / 180)


def new_figure(size: tuple[int, int], scale: float | None = None) -> Figure:
    """Return an empty figure with an Agg canvas.

    Args:
        size: width and height in pixels, met exactly.
        scale: enlargement of fonts and lines; ``None`` chooses it to suit the size.
    """
    dpi = _REFERENCE_DPI * (scale or scale_of(size))
    figure = Figure(dpi=dpi)
    FigureCanvasAgg(figure)
    resize(figure, size)
    return figure


def resize(figure: Figure, size: tuple[int, int]) -> None:
    """Set the size of a figure in pixels exactly, without scaling fonts and lines."""
    # Agg truncates inches * dpi to integers: a thousandth of a pixel more compensates for round-off.
    width, height = ((side + 1e-3) / figure.dpi for side in size)
    figure.set_size_inches(width, height)


def canvas_of(figure: Figure) -> FigureCanvasAgg:
    """Return the canvas of a figure made by ``new_figure``."""
    return cast(FigureCanvasAgg, figure.canvas)


def page_of(figure: Figure) -> np.ndarray:
    """Return the pixels of a figure, RGBA (height, width, 4) of uint8, as a writable view."""
    return np.asarray(canvas_of(figure).get_renderer().buffer_rgba())


def drawn(figure: Figure) -> np.ndarray:
    """Draw a figure and return a copy of its pixels, RGB (height, width, 3) of uint8."""
    figure.canvas.draw()
    return rgb_copy(page_of(figure))


def rgb_copy(page: np.ndarray) -> np.ndarray:
    """Return a copy of RGBA pixels without the alpha channel."""
    picture = np.empty((*page.shape[:2], 3), np.uint8)
    # Copying page[..., :3] at once takes six times as long as channel by channel.
    for channel in range(3):
        picture[..., channel] = page[..., channel]
    return picture


# Color of each kind of wall.
_WALLS = {"wall": WALL, "hot": HOT, "cold": COLD}
# Kinds of sides that are not drawn.
_OPEN = ("inflow", "outflow", "pressure", "periodic")
KINDS = (*_WALLS, "free_slip", *_OPEN)
# Distance between chevrons on a moving wall and length of their points, in wall thicknesses.
_APART, _POINT = 9.0, 0.75


class Sides(NamedTuple):
    """The kinds of the four sides of a window, each one of ``KINDS``, or several as in ``"wall to 0.4, inflow"``."""

    left: str = "periodic"
    right: str = "periodic"
    below: str = "periodic"
    above: str = "periodic"

    def pieces(self, index: int, low: float, high: float) -> list[tuple[str, float, float]]:
        """Return kind, lower and upper end of each part of a side between two coordinates along it."""
        found, begin = [], -np.inf
        for words in self[index].split(", "):
            kind, _, end = words.partition(" to ")
            piece = max(begin, low), min(float(end or np.inf), high)
            begin = piece[1]
            found += [(kind, *piece)] if piece[0] < piece[1] else []
        return found

    def kinds(self, index: int) -> list[str]:
        """Return the kinds along a side."""
        return [kind for kind, *_ in self.pieces(index, -np.inf, np.inf)]

    def have_bands(self) -> list[bool]:
        """Return which of the four sides are drawn: as a wall, or as a dashed line at the same distance."""
        return [not set(self.kinds(index)) <= set(_OPEN) for index in range(4)]

    def of_part(self, whole: Window, part: Window) -> "Sides":
        """Return the sides of a part of the window; ends inside the whole window are not drawn.

        Args:
            whole: the window of these sides.
            part: a window within it.
        """
        triples = zip(self, whole, part, strict=True)
        return Sides(*(kind if end == other else "periodic" for kind, end, other in triples))


def read_sides(coordinates: Mapping[str, np.ndarray]) -> Sides:
    """Return the sides of a run.

    Args:
        coordinates: with an entry ``sides``, the kinds of the left, right, lower and upper side; or with an entry
            ``walls``, of any value, which means walls below and above; or with neither.

    Raises:
        UserError: if there are not four kinds, or one is unknown.
    """
    if "sides" not in coordinates:
        return Sides(below="wall", above="wall") if "walls" in coordinates else Sides()
    words = [str(kind) for kind in np.ravel(coordinates["sides"])]
    several(line("kind"), "left, right, lower and upper", (4,)).check(words, "coordinate 'sides'")
    sides = Sides(*words)
    for kind in (kind for index in range(4) for kind in sides.kinds(index)):
        word("of a side", tuple(KINDS)).check(kind, "coordinate 'sides'")
    return sides


def draw_sides(figure: Figure, box: Box, window: Window, band: int, sides: Sides, motion: np.ndarray) -> None:
    """Draw the sides of a window just outside it: bands for walls, dashed lines for free slip.

    Args:
        figure: the figure.
        box: pixels of the window.
        window: the window, along whose sides parts begin and end.
        band: thickness of walls in pixels.
        sides: kinds of the sides.
        motion: tangential velocity (4,) of the sides; chevrons on moving walls point in its direction.
    """
    # Walls below and above extend around the corners, where the side beside them ends in a wall.
    corners = [[band * (sides.kinds(index)[end] in _WALLS) for index in (0, 1)] for end in (0, -1)]
    for index in range(4):
        along = 1 if index < 2 else 0
        low, high = window[2 * along : 2 * along + 2]
        first, length = box[along], box[2 + along]
        across = (box.left - band, box.left + box.width, box.bottom - band, box.bottom + box.height)[index]
        for kind, begin, end in sides.pieces(index, low, high):
            start, stop = (first + round((place - low) / (high - low) * length) for place in (begin, end))
            if along == 0:
                start -= corners[index - 2][0] * (begin == low)
                stop += corners[index - 2][1] * (end == high)
            corner, size = (start, across), (stop - start, band)
            if along == 1:
                corner, size = (across, start), (band, stop - start)
            if kind in _WALLS:
                wall = Rectangle(corner, *size, color=_WALLS[kind], lw=0)
                wall.set_transform(IdentityTransform())
                figure.add_artist(wall)
                if motion[index]:
                    _add_chevrons(figure, corner, size, along, float(np.sign(motion[index])))
            elif kind == "free_slip":
                middle = np.array([corner, corner]) + np.array([[0, 0], size])
                middle[:, 1 - along] = across + band / 2
                line = LineCollection([middle], colors=MUTED, linewidths=0.9, linestyles=[(0, (6, 3))])
                line.set_transform(IdentityTransform())
                figure.add_artist(line)


def _add_chevrons(
    figure: Figure, corner: tuple[float, float], size: tuple[float, float], along: int, direction: float
) -> None:
    thickness, length = size[1 - along], size[along]
    count = max(int(length / (_APART * thickness)), 1)
    middles = corner[along] + length * (np.arange(count) + 0.5) / count
    across = corner[1 - along] + thickness * np.array([0.15, 0.5, 0.85])
    lines = np.empty((count, 3, 2))
    lines[..., 1 - along] = across
    lines[..., along] = middles[:, None] + direction * _POINT * thickness * np.array([-0.5, 0.5, -0.5])
    chevrons = LineCollection(list(lines), colors=PAPER, linewidths=1.0)
    chevrons.set_transform(IdentityTransform())
    figure.add_artist(chevrons)


# Lengths of the design at 640 x 360 pixels.
_THICKNESS = 11
_GAP = 14


class ColorBar:
    """A color bar at the right of a window, or below it and its labels.

    Args:
        figure: figure of the bar.
        scale: color scale.
        settings: label and unit of the quantity.
        below: whether the bar is below the window.

    Attributes:
        axes: Matplotlib axes of the bar.
    """

    def __init__(self, figure: Figure, scale: ColorScale, settings: RenderSettings, below: bool) -> None:
        self.axes = figure.add_axes((0, 0, 1, 1))
        self.below = below
        self._axis = self.axes.xaxis if below else self.axes.yaxis
        self._ticks_move = scale.levels is None
        bar = figure.colorbar(scale.mappable(), cax=self.axes, orientation="horizontal" if below else "vertical")
        if scale.levels is not None:
            shown = scale.levels[:: -(-len(scale.levels) // 8)]
            bar.set_ticks(list(shown), labels=[drawable(scale.word(level)) for level in shown])
            self.axes.tick_params(length=0)
        bar.minorticks_off()
        bar.outline.set_visible(False)
        self._label = settings.label, settings.unit
        bar.set_label("", labelpad=2 if below else 5)

    def place(self, window: Box, wall: int, reach: int, size: tuple[int, int], unit: float) -> None:
        """Place the bar beside the window, with the length of the window.

        Args:
            window: pixels of the window.
            wall: thickness of the wall at the right of the window, in pixels.
            reach: extent of the labels below the window, in pixels.
            size: width and height of the page in pixels.
            unit: pixels per pixel of the design.
        """
        gap, thickness = round(_GAP * unit), max(round(_THICKNESS * unit), 1)
        if self.below:
            place = Box(window.left, window.bottom - reach - gap - thickness, window.width, thickness)
        else:
            place = Box(window.left + window.width + wall + gap, window.bottom, thickness, window.height)
        length = place.width if self.below else place.height
        self.axes.set_position(place.fractions(size))
        if self._ticks_move:
            self._axis.set_major_locator(tick_locator(length / unit))
        self._axis.set_label_text(drawable(self._label_text()))
        fit(self._axis.label, length)

    def _label_text(self) -> str:
        """Return the label with the common power of ten of the numbers, which above the bar would meet the title."""
        label, unit = self._label
        formatter = self._axis.get_major_formatter()
        formatter.set_locs(self._axis.get_majorticklocs().tolist())
        power = re.search(r"10\^\{(-?[0-9]+)\}", formatter.get_offset().replace("\N{MINUS SIGN}", "-"))
        self._axis.offsetText.set_visible(False)
        return with_unit(label, f"10^{power[1]} {shown_unit(unit)}".rstrip() if power else unit)


# Lengths of the design at 640 x 360 pixels.
PADDING = 14
_HEADER = 44
_BAND = 6
# Estimated sums of margins for header, labels and color bar, horizontal and vertical, with the bar right or below.
_BAR_RIGHT = (150, 128)
_BAR_BELOW = (90, 175)
# Factor by which a bar below must enlarge the window of a page of free aspect ratio, to be preferred.
_WIDE = 1.15
# Range of the aspect ratio of a page whose window is stretched to fill it.
_STRETCHED = (0.9, 3.0)


class Page:
    """A page with a title at its upper left and a time stamp at its upper right, drawn once but for what moves.

    Args:
        clip: the run; its title is shortened where it does not fit.
        size: width and height of the picture in pixels.
        unit: pixels per pixel of the design.
        time_unit: unit of time, where the run has none.

    Attributes:
        size: width and height of the picture in pixels.
        axes: Matplotlib axes in data units. Artists added before the first picture are drawn once, unless animated.
        box: pixels of the window that a frame may fill with colors.
        stamp: the time stamp, a Matplotlib text.
    """

    box: Box

    def __init__(self, clip: Clip, size: tuple[int, int], unit: float, time_unit: str = "") -> None:
        self.size, self._unit = size, unit
        self._stamps = stamps(clip.diagnostics, len(clip), clip.units.get("time", time_unit))
        self.figure = new_figure(size, unit)
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        style = {"transform": IdentityTransform(), "va": "baseline"}
        self.stamp = self.figure.text(0, 0, max(self._stamps, key=len), color=MUTED, size=10, **style)
        self.stamp.set_animated(True)
        self._heading = self.figure.text(0, 0, drawable(clip.title), color=INK, size=12, weight="bold", **style)

    def picture(self, index: int, artists: Iterable[Artist] = (), pixels: np.ndarray | None = None) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8.

        Args:
            index: index of the frame, for the time stamp.
            artists: animated artists of ``axes``, drawn in this order.
            pixels: packed colors (box height, box width) of the window, first row at the bottom.
        """
        page = page_of(self.figure)
        np.copyto(page, self._background)
        if pixels is not None:
            top = self.size[1] - self.box.bottom - self.box.height
            rows, columns = slice(top, top + self.box.height), slice(self.box.left, self.box.left + self.box.width)
            page[rows, columns] = pixels[::-1, :, None].view(np.uint8)
        with drawing_style():
            self.stamp.set_text(self._stamps[index])
            for artist in artists:
                self.axes.draw_artist(artist)
            self.figure.draw_artist(self.stamp)
        return rgb_copy(page)

    @cached_property
    def _background(self) -> np.ndarray:
        with house_style():
            self.figure.canvas.draw()
        return page_of(self.figure).copy()

    def _pixels(self, length: float) -> int:
        return round(length * self._unit)

    def _place_header(self) -> None:
        width, height = self.size
        padding = self._pixels(PADDING)
        baseline = height - self._pixels(PADDING + 14)
        # Left-aligned at the start of the longest stamp, so that a stamp that gains a digit does not move.
        start = width - padding - int(np.ceil(self.stamp.get_window_extent().width))
        self.stamp.set_position((start, baseline))
        self._heading.set_position((padding, baseline))
        fit(self._heading, start - 2 * padding)


class Sheet(Page):
    """A page showing a window of the plane at equal scale in x and y.

    Args:
        clip: the run.
        size: width and height of the picture in pixels; or their product, for a page of the window's aspect ratio.
        window: part of the plane to show.
        scale: color scale of the color bar; ``None`` for no bar.
        time_unit: unit of time, where the run has none.
        axis_labels: names of the two axes; ``None`` draws neither labels nor ticks.
        stretch: whether to widen the window to fill the page instead of centering it.
        sides: kinds of the sides of the window.
        motion: tangential velocity (4,) of the sides.
        ticks: for x and y, positions of ticks and the numbers there (n, 2); ``None`` chooses them.
        gap: lower and upper end (1, 2) of a gap along y, on both sides of which the label has a part.

    Attributes:
        window: the window shown; wider than requested if ``stretch``.
        bar: the color bar, or ``None``.
        band: thickness of walls in pixels; 0 without any.
    """

    def __init__(
        self,
        clip: Clip,
        size: Size,
        window: Window,
        scale: ColorScale | None,
        time_unit: str = "",
        axis_labels: tuple[str, str] | None = None,
        stretch: bool = False,
        sides: Sides | None = None,
        motion: np.ndarray | None = None,
        ticks: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
        gap: np.ndarray | None = None,
    ) -> None:
        self._free = size if isinstance(size, int) else None
        with house_style():
            super().__init__(clip, (640, 360) if isinstance(size, int) else size, scale_of(size), time_unit)
            sides = sides or Sides()
            self.band = max(1, self._pixels(_BAND)) if any(sides.have_bands()) else 0
            self._bands = [self.band * drawn for drawn in sides.have_bands()]
            self.axes.set_autoscale_on(False)
            below = not stretch and self._larger_with_bar_below(window)
            # A single color, as of particles of one species, needs no bar.
            has_bar = scale is not None and (scale.levels is None or len(scale.levels) > 1)
            self.bar = ColorBar(self.figure, scale, clip.settings, below) if scale and has_bar else None
            self._label_axes(axis_labels)
            if axis_labels and gap is not None:
                low, high = (window.y_low + gap[0, 0]) / 2, (window.y_high + gap[0, 1]) / 2
                self._label_parts(axis_labels[1], (low, high))
            for axis, pairs in zip((self.axes.xaxis, self.axes.yaxis), ticks, strict=True):
                if pairs is not None:
                    axis.set_ticks(
                        pairs[:, 0], [f"{number:.3g}".replace("-", "\N{MINUS SIGN}") for number in pairs[:, 1]]
                    )
            self._place(window, stretch)
            draw_sides(self.figure, self.box, self.window, self.band, sides, np.zeros(4) if motion is None else motion)
            self._place_header()

    def _larger_with_bar_below(self, window: Window) -> bool:
        def scale(lengths: tuple[int, int]) -> float:
            across, up = (self._pixels(length) for length in lengths)
            if self._free:
                return filling_scale(self._free, window, across, up)
            width, height = (max(side - used, 1) for side, used in zip(self.size, (across, up), strict=True))
            return min(width / window.width, height / window.height)

        # A page of free aspect ratio is preferably wide.
        return scale(_BAR_BELOW) > scale(_BAR_RIGHT) * (_WIDE if self._free else 1.0)

    def _label_axes(self, labels: tuple[str, str] | None) -> None:
        self.axes.spines[:].set_visible(False)
        if labels is None:
            self.axes.xaxis.set_major_locator(NullLocator())
            self.axes.yaxis.set_major_locator(NullLocator())
            return
        self.axes.set_xlabel(drawable(labels[0]), labelpad=2)
        self.axes.set_ylabel(drawable(labels[1]), labelpad=4)
        for spine, band in ((self.axes.spines.left, self._bands[0]), (self.axes.spines.bottom, self._bands[2])):
            if band:
                spine.set_position(("outward", band * 72 / self.figure.dpi))

    def _label_parts(self, label: str, middles: tuple[float, float]) -> None:
        """Write the parts of a label beside the middles of two planes, as minor ticks without marks."""
        if len(words := label.split(" | ")) == 2:
            self.axes.set_ylabel("")
            self.axes.yaxis.remove_overlapping_locs = False
            self.axes.yaxis.set_ticks(middles, [drawable(word) for word in words], minor=True)
            self.axes.tick_params(axis="y", which="minor", length=0, pad=28, labelrotation=90, labelsize=9.5)
            for text in self.axes.yaxis.get_minorticklabels():
                text.set_verticalalignment("center")

    def _place(self, window: Window, stretch: bool) -> None:
        """Fit the window between its labels, whose measured sizes depend on the ticks and so on the window."""
        reach = self._pixels(40)
        labels = [self._pixels(length) for length in (40, 56, 40)]
        for _ in range(3):
            margins = self._margins(labels)
            if self._free:
                shape = _limited(window) if stretch else window
                self.size = page_for(self._free, shape, margins, self._unit, self._header_width())
                resize(self.figure, self.size)
            self.box, self.window = self._fit(margins, window, stretch)
            self.axes.set_position(self.box.fractions(self.size))
            self.axes.set(xlim=self.window[:2], ylim=self.window[2:])
            for axis, length in ((self.axes.xaxis, self.box.width), (self.axes.yaxis, self.box.height)):
                if not isinstance(axis.get_major_locator(), NullLocator | FixedLocator):
                    axis.set_major_locator(tick_locator(length / self._unit))
            if self.bar:
                self.bar.place(self.box, self._bands[1], reach, self.size, self._unit)
            reach, labels = self._measure()

    def _margins(self, labels: Sequence[int]) -> Margins:
        """Return the margins around the window.

        Args:
            labels: extents of labels and color bar to the left, right and below; walls may extend farther.
        """
        padding = self._pixels(PADDING)
        left, right, below = (padding + max(label, band) for label, band in zip(labels, self._bands[:3], strict=True))
        return Margins(left, right, below, self._pixels(_HEADER) + self._bands[3])

    def _measure(self) -> tuple[int, list[int]]:
        """Return the extent of labels below the window, and of labels and bar to the left, right and below it."""
        renderer = canvas_of(self.figure).get_renderer()
        drawn = [self.axes, self.bar.axes] if self.bar else [self.axes]
        around = (axes.get_tightbbox(renderer) for axes in drawn)
        extents = np.array([bounds.extents for bounds in around if bounds])
        box = self.box
        reach = max(0, int(np.ceil(box.bottom - extents[0, 1])))
        left, below = (np.array([box.left, box.bottom]) - extents[:, :2].min(axis=0)).tolist()
        right = extents[:, 2].max() - box.left - box.width
        return reach, [max(0, int(np.ceil(length))) for length in (left, right, below)]

    def _fit(self, margins: Margins, window: Window, stretch: bool) -> tuple[Box, Window]:
        room_width = max(self.size[0] - margins.left - margins.right, 1)
        room_height = max(self.size[1] - margins.below - margins.above, 1)
        scale = min(room_width / window.width, room_height / window.height)
        if stretch:
            spare = (room_width / scale - window.width) / 2
            top = window.y_low + room_height / scale
            shown = Window(window.x_low - spare, window.x_high + spare, window.y_low, top)
            return Box(margins.left, margins.below, room_width, room_height), shown
        width, height = max(round(window.width * scale), 1), max(round(window.height * scale), 1)
        corner = margins.left + (room_width - width) // 2, margins.below + (room_height - height) // 2
        return Box(*corner, width, height), window

    def _header_width(self) -> float:
        """Return the width of a page that title and time stamp fit on."""
        return 4 * self._pixels(PADDING) + sum(text.get_window_extent().width for text in (self._heading, self.stamp))


def _limited(window: Window) -> Window:
    """Return a window of the same aspect ratio, limited to that of a page."""
    low, high = _STRETCHED
    ratio = float(np.clip(window.width / window.height, low, high))
    return Window(0.0, ratio, 0.0, 1.0)
