"""Sides of a flow in pictures: walls at rest, moving walls, and free-slip sides."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import IdentityTransform

from simkit.errors import UserError, nearest
from simkit.render.layout import Box, Window
from simkit.render.style import COLD, HOT, MUTED, PAPER, WALL

# Color of the walls of each kind; what is not listed is no wall.
_WALLS = {"wall": WALL, "hot": HOT, "cold": COLD}
# Those at which nothing is drawn.
_OPEN = ("inflow", "outflow", "pressure", "periodic")
KINDS = (*_WALLS, "free_slip", *_OPEN)
# Chevrons on a moving wall, in its thicknesses: distance between them, and how far their points reach.
_APART, _POINT = 9.0, 0.75


class Sides(NamedTuple):
    """The kinds of the four sides of a window, each one of ``KINDS``."""

    left: str = "periodic"
    right: str = "periodic"
    below: str = "periodic"
    above: str = "periodic"

    def are_walls(self) -> tuple[bool, bool, bool, bool]:
        """Return which of the four are solid."""
        return tuple(kind in _WALLS for kind in self)  # type: ignore[return-value]

    def have_bands(self) -> tuple[bool, bool, bool, bool]:
        """Return at which of the four something is drawn: a wall, or a dashed line at the same distance."""
        return tuple(kind not in _OPEN for kind in self)  # type: ignore[return-value]

    def of_part(self, whole: Window, part: Window) -> "Sides":
        """Return the sides of a part of the window: nothing is drawn where it ends within the whole.

        Args:
            whole: the window of these sides.
            part: of it.
        """
        pairs = zip(self, whole, part, strict=True)
        return Sides(*(kind if end == other else "periodic" for kind, end, other in pairs))


def read_sides(coordinates: Mapping[str, np.ndarray]) -> Sides:
    """Return the sides that a run tells of.

    Args:
        coordinates: with an entry ``sides``, the kinds of the left, right, lower and upper side; or with an entry
            ``walls``, of any value, which stands for solid walls below and above; or with neither.

    Raises:
        UserError: if there are not four kinds, or one is unknown.
    """
    if "sides" not in coordinates:
        return Sides(below="wall", above="wall") if "walls" in coordinates else Sides()
    kinds = [str(kind) for kind in np.ravel(coordinates["sides"])]
    if len(kinds) != 4:
        raise UserError(f"coordinate 'sides' has {len(kinds)} entries; give the left, right, lower and upper side")
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"side '{kind}' is unknown{nearest(kind, list(KINDS))}")
    return Sides(*kinds)


def draw_sides(figure: Figure, box: Box, band: int, sides: Sides, motion: np.ndarray) -> None:
    """Draw the sides of a window just outside it: bands for walls, dashed lines where the flow slips.

    Args:
        figure: the figure.
        box: pixels of the window.
        band: thickness of walls in pixels.
        sides: their kinds.
        motion: velocity (4,) of each along itself; a wall that moves has chevrons that point to where it goes.
    """
    left, right, _, _ = (band * solid for solid in sides.are_walls())
    top, end = box.bottom + box.height, box.left + box.width
    # Walls below and above reach around the corners.
    around = (box.left - left, box.width + left + right)
    places = (
        (box.left - band, box.bottom, band, box.height),
        (end, box.bottom, band, box.height),
        (around[0], box.bottom - band, around[1], band),
        (around[0], top, around[1], band),
    )
    for index, (kind, (x, y, width, height)) in enumerate(zip(sides, places, strict=True)):
        along = 1 if index < 2 else 0
        if kind in _WALLS:
            _add_wall(figure, Rectangle((x, y), width, height, color=_WALLS[kind], lw=0))
            if motion[index]:
                _add_chevrons(figure, (x, y), (width, height), along, float(np.sign(motion[index])))
        elif kind == "free_slip":
            middle = np.array([[x, y], [x, y]]) + np.array([[0, 0], [width, height]])
            middle[:, 1 - along] = (x, y)[1 - along] + band / 2
            line = LineCollection([middle], colors=MUTED, linewidths=0.9, linestyles=[(0, (6, 3))])
            line.set_transform(IdentityTransform())
            figure.add_artist(line)


def _add_wall(figure: Figure, wall: Rectangle) -> None:
    wall.set_transform(IdentityTransform())
    figure.add_artist(wall)


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
