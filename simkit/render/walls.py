"""Sides of a flow in pictures: walls, moving walls and free-slip sides."""

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

# Color of each kind of wall.
_WALLS = {"wall": WALL, "hot": HOT, "cold": COLD}
# Kinds of sides that are not drawn.
_OPEN = ("inflow", "outflow", "pressure", "periodic")
KINDS = (*_WALLS, "free_slip", *_OPEN)
# Distance between chevrons on a moving wall and length of their points, in wall thicknesses.
_APART, _POINT = 9.0, 0.75


class Sides(NamedTuple):
    """The kinds of the four sides of a window, each one of ``KINDS``."""

    left: str = "periodic"
    right: str = "periodic"
    below: str = "periodic"
    above: str = "periodic"

    def are_walls(self) -> tuple[bool, bool, bool, bool]:
        """Return which of the four sides are walls."""
        return tuple(kind in _WALLS for kind in self)  # type: ignore[return-value]

    def have_bands(self) -> tuple[bool, bool, bool, bool]:
        """Return which of the four sides are drawn: as a wall, or as a dashed line at the same distance."""
        return tuple(kind not in _OPEN for kind in self)  # type: ignore[return-value]

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
    kinds = [str(kind) for kind in np.ravel(coordinates["sides"])]
    if len(kinds) != 4:
        raise UserError(f"coordinate 'sides' has {len(kinds)} entries; give the left, right, lower and upper side")
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"side '{kind}' is unknown{nearest(kind, list(KINDS))}")
    return Sides(*kinds)


def draw_sides(figure: Figure, box: Box, band: int, sides: Sides, motion: np.ndarray) -> None:
    """Draw the sides of a window just outside it: bands for walls, dashed lines for free slip.

    Args:
        figure: the figure.
        box: pixels of the window.
        band: thickness of walls in pixels.
        sides: kinds of the sides.
        motion: tangential velocity (4,) of the sides; chevrons on moving walls point in its direction.
    """
    left, right, _, _ = (band * solid for solid in sides.are_walls())
    top, end = box.bottom + box.height, box.left + box.width
    # Walls below and above extend around the corners.
    start, length = box.left - left, box.width + left + right
    bands = (
        (box.left - band, box.bottom, band, box.height),
        (end, box.bottom, band, box.height),
        (start, box.bottom - band, length, band),
        (start, top, length, band),
    )
    for index, (kind, (x, y, width, height)) in enumerate(zip(sides, bands, strict=True)):
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
