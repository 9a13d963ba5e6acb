"""Style of all pictures: colors, fonts and line widths."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import matplotlib
import numpy as np

PAPER = "#ffffff"
INK = "#1d2733"
MUTED = "#5d6875"
FAINT = "#d5dae0"
WALL = "#8793a1"
HOT, COLD = "#b40426", "#3b4cc0"
MISSING = "#b9bec5"
ACCENT = "#d1495b"
FONT = "DejaVu Sans"
# Weights of red, green and blue in the luminance of a color.
LUMINANCE = np.array([0.299, 0.587, 0.114])
BODIES = ("#1f6fb2", "#e0793a", "#3a9a6d", "#8b5fbf", "#c2a11c", "#c14d7d", "#2a9aa8", "#7a6a5d")

_OURS = {
    "font.family": "sans-serif",
    "font.sans-serif": [FONT],
    "mathtext.fontset": "dejavusans",
    "font.size": 9.0,
    "text.hinting": "default",
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.titlecolor": INK,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.pad": 2.5,
    "ytick.major.pad": 2.5,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}

# Matplotlib settings that do not affect pictures and are left unchanged.
_FOREIGN = (
    "backend",
    "date",
    "docstring",
    "figure.max",
    "figure.raise",
    "interactive",
    "timezone",
    "tk.",
    "toolbar",
    "webagg",
)


# Settings that Matplotlib reads again whenever it draws a text.
_DRAWING = {name: _OURS[name] for name in ("font.family", "font.sans-serif", "text.hinting")}


def house_style() -> AbstractContextManager[None]:
    """Return a context in which figures are made in this style, independent of the user's Matplotlib configuration."""
    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(_FOREIGN)}
    return _context(defaults | _OURS)


def drawing_style() -> AbstractContextManager[None]:
    """Return a context for redrawing artists made in ``house_style``; entering it is three times faster."""
    return _context(_DRAWING)


def _context(settings: Mapping[Any, Any]) -> AbstractContextManager[None]:
    return matplotlib.rc_context(dict(settings))
