"""Style of all pictures: colors, fonts and line widths; labels with units, time stamps, shortened titles."""

import re
import unicodedata
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import matplotlib
import numpy as np
from matplotlib.cbook import is_math_text
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text

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
    return matplotlib.rc_context(dict[Any, Any](defaults | _OURS))


def drawing_style() -> AbstractContextManager[None]:
    """Return a context for redrawing artists made in ``house_style``; entering it is three times faster."""
    return matplotlib.rc_context(dict[Any, Any](_DRAWING))


_SYMBOLS = {unicodedata.name(letter).split()[-1].lower(): letter for letter in "αβγδεζηθικμνξπρστφχψω"} | {
    "lambda": "λ",
    "sqrt": "√",
    "angstrom": "Å",
}
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
# Resolution, and largest width and height in points of a formula that is drawn as mathematics.
_DPI, _WIDEST, _HIGHEST = 72, 2000.0, 100.0


def with_unit(label: str, unit: str) -> str:
    """Return ``"label (unit)"``, or the label alone for a dimensionless quantity (unit ``"1"`` or empty)."""
    return label if unit in ("", "1") else f"{label} ({shown_unit(unit)})"


def shown_unit(unit: str) -> str:
    """Return a unit as printed: ``"u_tau^2"`` becomes ``"u_τ²"``; ``"1"`` becomes empty.

    Args:
        unit: unit as declared by simulations and scenario files; one with ``$`` mathematics is unchanged.
    """
    if unit == "1":
        return ""
    if "$" in unit:
        return unit
    words = re.sub(r"[a-z]+", lambda match: _SYMBOLS.get(match[0], match[0]), unit)
    return re.sub(r"\^(-?[0-9]+)", lambda match: match[1].translate(_SUPERSCRIPTS), words)


def plain(name: str) -> str:
    """Return an identifier as words: ``"kinetic_energy"`` becomes ``"kinetic energy"``."""
    return name.replace("_", " ")


def stamps(diagnostics: Mapping[str, np.ndarray], count: int, unit: str = "") -> list[str]:
    """Return one time stamp per frame, with as many decimals as evenly spaced frames need.

    Args:
        diagnostics: per-frame scalars; ``time`` is preferred, then ``iteration``, then a single one of another name,
            such as a swept parameter, then the frame number.
        count: number of frames.
        unit: unit of time, ``"1"`` or empty for none.
    """
    if "time" in diagnostics:
        unit = "" if unit == "time" else unit
        return [
            f"t = {text} {shown_unit(unit)}".rstrip() for text in _fixed(np.asarray(diagnostics["time"], float)[:count])
        ]
    if len(diagnostics) == 1 and "iteration" not in diagnostics:
        ((name, values),) = diagnostics.items()
        return [f"{plain(name)} = {value:.4g}" for value in np.asarray(values)[:count]]
    name = "iteration" if "iteration" in diagnostics else "frame"
    values = np.asarray(diagnostics.get("iteration", np.arange(1, count + 1)))[:count]
    return [f"{name} {int(value)}" for value in values]


def _fixed(values: np.ndarray) -> list[str]:
    finite = values[np.isfinite(values)]
    largest = float(np.abs(finite).max(initial=0.0))
    if largest and not 1e-3 <= largest < 1e6:
        return [f"{value:.3e}" for value in values]
    # Rounding stays below a twentieth of the shortest interval, so that evenly spaced frames look so, with at most four
    # decimals (about the precision of a float32 time).
    intervals = np.diff(np.unique(finite))
    shortest = float(intervals.min()) if intervals.size else 1.0
    errors = {decimals: np.abs(np.round(finite, decimals) - finite).max(initial=0.0) for decimals in range(1, 4)}
    decimals = next((decimals for decimals, error in errors.items() if error <= 0.05 * shortest), 4)
    return [f"{value:.{decimals}f}" for value in values]


def drawable(text: str) -> str:
    """Return any text as one line that Matplotlib can draw.

    Unprintable characters become spaces, characters that the font lacks a replacement sign. Mathematics that does not
    parse, or is far larger than a page, is shown as written.

    Args:
        text: text from a scenario file.
    """
    words = " ".join("".join(_visible(character) for character in text).split())
    if words.count("$") < 2 or _is_mathematics(words):
        return words
    return words.replace("$", "\\$")


def _visible(character: str) -> str:
    if not character.isprintable():
        return "" if unicodedata.category(character) == "Cf" else " "
    if ord(character) in _characters():
        return character
    # A combining mark is dropped without a replacement sign.
    return "" if unicodedata.category(character).startswith("M") else "\N{REPLACEMENT CHARACTER}"


@cache
def _characters() -> frozenset[int]:
    """Return the code points in the font."""
    return frozenset(get_font(findfont(FontProperties(family=FONT))).get_charmap())


def _is_mathematics(text: str) -> bool:
    """Return whether a text has no mathematics, or Matplotlib can draw it."""
    if not is_math_text(text):
        return True
    try:
        # Parse to outlines only: pixels would take memory for any size that the text demands.
        with house_style():
            shape = MathTextParser("path").parse(text, _DPI, FontProperties(size=10))
    except (ValueError, RecursionError):
        return False
    return shape.width < _WIDEST and shape.height + shape.depth < _HIGHEST


def fit(text: Text, length: float) -> None:
    """Shorten ``text`` to ``length`` pixels: reduce the font size to at least three quarters, then cut the text."""
    actual = _length(text)
    if actual <= length:
        return
    text.set_fontsize(float(text.get_fontsize()) * max(0.75, length / actual))
    if _length(text) <= length:
        return
    words = text.get_text()
    fits, fails = 0, len(words)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        text.set_text(_beginning(words, middle))
        fits, fails = (middle, fails) if _length(text) <= length else (fits, middle)
    text.set_text(_beginning(words, max(fits, 1)))


def _beginning(words: str, count: int) -> str:
    """Return the first characters of a text and an ellipsis, dropping mathematics that would be cut."""
    begin = words[:count]
    dollars = [match.start() for match in re.finditer(r"(?<!\\)\$", begin)]
    if is_math_text(words) and len(dollars) % 2:
        begin = begin[: dollars[-1]]
    return begin.rstrip("\\ ") + "\N{HORIZONTAL ELLIPSIS}"


def _length(text: Text) -> float:
    extent = text.get_window_extent()
    return extent.height if text.get_rotation() == 90 else extent.width
