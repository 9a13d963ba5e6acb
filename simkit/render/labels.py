"""Text on pictures: time stamps, labels with units, titles shortened to fit."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache

import numpy as np
from matplotlib.cbook import is_math_text
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text

from simkit.render.style import FONT, house_style

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
        diagnostics: per-frame scalars; ``time`` is preferred, then ``iteration``, then the frame number.
        count: number of frames.
        unit: unit of time, ``"1"`` or empty for none.
    """
    if "time" in diagnostics:
        unit = "" if unit == "time" else unit
        return [
            f"t = {text} {shown_unit(unit)}".rstrip() for text in _fixed(np.asarray(diagnostics["time"], float)[:count])
        ]
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
