"""Disks of true size as one Matplotlib artist, updated from frame to frame."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection

from simkit.render.sheet import Sheet
from simkit.render.style import INK


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
