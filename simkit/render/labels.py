"""The words and numbers on a picture: time stamps, units, titles that fit."""

from collections.abc import Mapping

import numpy as np
from matplotlib.text import Text


def with_unit(label: str, unit: str) -> str:
    """Return ``"label (unit)"``, or the label alone for a dimensionless quantity (unit ``"1"`` or empty)."""
    return label if unit in ("", "1") else f"{label} ({unit})"


def plain(name: str) -> str:
    """Return an identifier as words: ``"kinetic_energy"`` becomes ``"kinetic energy"``."""
    return name.replace("_", " ")


def stamps(diagnostics: Mapping[str, np.ndarray], count: int, unit: str = "") -> list[str]:
    """Return one time stamp per frame, with as many decimals as even steps need.

    Args:
        diagnostics: per-frame scalars; ``time`` is preferred, then ``iteration``, then the frame number.
        count: number of frames.
        unit: unit of time.
    """
    if "time" in diagnostics:
        return [f"t = {text} {unit}".rstrip() for text in _fixed(np.asarray(diagnostics["time"], float)[:count])]
    name = "iteration" if "iteration" in diagnostics else "frame"
    values = np.asarray(diagnostics.get("iteration", np.arange(1, count + 1)))[:count]
    return [f"{name} {int(value)}" for value in values]


def _fixed(values: np.ndarray) -> list[str]:
    finite = values[np.isfinite(values)]
    largest = float(np.abs(finite).max(initial=0.0))
    if largest and not 1e-3 <= largest < 1e6:
        return [f"{value:.3e}" for value in values]
    # Evenly spaced frames must look so: rounding stays below a twentieth of the shortest interval, if four decimals
    # (about what a float32 time is good for) allow it.
    intervals = np.diff(np.unique(finite))
    shortest = float(intervals.min()) if intervals.size else 1.0
    errors = {decimals: np.abs(np.round(finite, decimals) - finite).max(initial=0.0) for decimals in range(1, 4)}
    decimals = next((decimals for decimals, error in errors.items() if error <= 0.05 * shortest), 4)
    return [f"{value:.{decimals}f}" for value in values]


def fit(text: Text, length: float) -> None:
    """Shorten ``text`` to ``length`` pixels along its line: first the font, to three quarters, then the words."""
    actual = _length(text)
    if actual <= length:
        return
    text.set_fontsize(float(text.get_fontsize()) * max(0.75, length / actual))
    words = text.get_text()
    while len(words) > 1 and _length(text) > length:
        words = words[:-1]
        text.set_text(words.rstrip() + "\N{HORIZONTAL ELLIPSIS}")


def _length(text: Text) -> float:
    extent = text.get_window_extent()
    return extent.height if text.get_rotation() == 90 else extent.width
