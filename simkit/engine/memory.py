"""Sizes of states and frames, free memory, and memory sizes as text."""

import contextlib
import math
import os
from typing import Any

from simkit.core.devices import devices
from simkit.core.pytrees import size_in_bytes
from simkit.core.simulation import Arrays, Simulation
from simkit.errors import UserError

# Fraction of the free memory for a program; the rest is for results on the host and for other programs.
SHARE = 0.6


def shapes_of(simulation: Simulation) -> tuple[Any, Arrays]:
    """Return the shapes and types of a simulation's state and of a frame, without computing them.

    Args:
        simulation: the simulation.

    Returns:
        The state, and ``{"observed.NAME" | "diagnosed.NAME": array}`` of one frame.
    """
    state, *arrays = simulation.shapes
    groups = zip(("observed", "diagnosed"), arrays, strict=True)
    return state, {f"{group}.{name}": array for group, named in groups for name, array in named.items()}


def frame_bytes(frame: Arrays) -> tuple[int, int]:
    """Return the bytes of the observed arrays of one frame, and those of its diagnostics.

    Args:
        frame: from `shapes_of`.
    """
    observed, diagnosed = (
        size_in_bytes([array for name, array in frame.items() if name.startswith(group)])
        for group in ("observed.", "diagnosed.")
    )
    return observed, diagnosed


def available_bytes() -> int:
    """Return the bytes free for arrays: on the first device that computes if it reports them, else on this machine."""
    statistics = devices(local=True)[0].memory_stats()
    if statistics and "bytes_limit" in statistics:
        return statistics["bytes_limit"] - statistics.get("bytes_in_use", 0)
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_in_bytes(size: int | str) -> int:
    """Return the bytes of a memory size: a number of bytes, or text such as ``"8GiB"`` or ``"500 MB"``.

    Raises:
        UserError: if the size is neither, or not from 1 B to 2^60 B.
    """
    number: Any = math.nan if isinstance(size, bool) else size
    if isinstance(size, str):
        powers = {"K": 1, "M": 2, "G": 3, "T": 4}
        units = {"B": 1} | {f"{k}B": 1000**n for k, n in powers.items()}
        units |= {f"{k}IB": 1024**n for k, n in powers.items()}
        digits = size.strip().rstrip("bBiIkKmMgGtT ")
        unit = size.strip()[len(digits) :].strip().upper() or "B"
        with contextlib.suppress(ValueError):
            number = float(digits) * units.get(unit, math.nan)
    if not isinstance(number, int | float) or not 1 <= number < 2**60:
        raise UserError(f"memory = {size!r:.40} is not a memory size; give a number of bytes, or text such as '8GiB'")
    return int(number)


def check_room(what: str, need: float, limit: float, remedy: str, source: str = "may be used") -> None:
    """Refuse what needs more bytes than there are.

    Args:
        what: needs the memory, with its verb, such as ``"one member needs"``.
        need: bytes needed.
        limit: bytes that there are.
        remedy: what to do.
        source: whose bytes they are, as a verb.

    Raises:
        UserError: with both numbers and the remedy.
    """
    if need > limit:
        raise UserError(f"{what} {format_bytes(need)} and {format_bytes(limit)} {source}; {remedy}")


def format_bytes(size: float) -> str:
    """Return a number of bytes as text, such as ``"1.5 GiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
