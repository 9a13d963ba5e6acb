"""Largest relative difference of each output of another runtime from that of JAX, and its limit."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Relative to the largest number of an output. One step is a few hundred roundings; round-off grows along a run.
OF_A_STEP = {"float32": 1e-5, "float64": 1e-10}
OF_A_RUN = {"float32": 3e-4, "float64": 1e-8}
# An output may differ by as much as this many times what moving sums and states by one rounding changes it: a program
# rounds in each operation, and elementary functions of other runtimes are some units off.
ROUNDINGS = 100.0
# How often the roundings of a program are disturbed: what they decide with a chance of one half is missed once in 256.
SAMPLES = 8
# Outputs smaller than this many roundings of the largest number of all outputs are nothing but round-off.
ROUND_OFF = 16.0
# An output that may differ by more than this share of its largest number is not compared: it may be anything.
LARGEST_ALLOWED = 0.1
# What is that small beside the other outputs (a divergence that is zero but for rounding) must stay so.
LARGEST_BESIDE_OTHERS = 1e-3

type Arrays = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Difference:
    """How one output of a runtime compares with the reference.

    Attributes:
        output: its name.
        error: largest difference relative to the largest number of the reference; of integers and truth values the
            share of those that differ; infinite where one is not finite and the other is.
        allowed: the largest error that is not a miss; ``None`` where it is not compared, because rounding the inputs
            changes integers, or numbers by more than `LARGEST_ALLOWED`.
        beside_others: whether both are relative to the largest number of all outputs, beside which it is round-off.
    """

    output: str
    error: float
    allowed: float | None
    beside_others: bool = False

    @property
    def compared(self) -> bool:
        """Whether an error can be too large."""
        return self.allowed is not None

    @property
    def passed(self) -> bool:
        """Whether the error is allowed."""
        return self.allowed is None or self.error <= self.allowed


def usual_tolerance(form: str, precision: str) -> float:
    """Return the tolerance that a program is held to, relative to the largest number of each output.

    Args:
        form: of the program.
        precision: ``"float32"`` or ``"float64"``.
    """
    return (OF_A_STEP if form in ("step", "advance", "show") else OF_A_RUN)[precision]


def error_of(expected: np.ndarray, found: np.ndarray) -> float:
    """Return how far an output is from the reference, see `Difference`.

    Args:
        expected: of JAX.
        found: of the same shape.
    """
    if expected.dtype.kind != "f":
        return float(np.mean(expected != found)) if expected.size else 0.0
    usual = _is_usual(expected)
    if not np.array_equal(usual, _is_usual(found)) or not np.array_equal(
        expected[~usual], found[~usual], equal_nan=True
    ):
        return np.inf
    scale = largest_of(expected)
    difference = np.subtract(expected, found, where=usual, out=np.zeros(expected.shape), dtype=np.float64)
    largest = float(np.max(np.abs(difference), initial=0.0))
    return largest / scale if scale else largest


def largest_of(array: np.ndarray) -> float:
    """Return the largest number of an array without its sign, of those that mean one."""
    return float(np.max(np.abs(array), where=_is_usual(array), initial=0.0))


def _is_usual(array: np.ndarray) -> np.ndarray:
    """Tell which numbers mean one: neither infinite nor near the largest of their type, which stands for infinity."""
    return np.abs(array) < float(np.finfo(array.dtype).max) ** 0.5


def allowed_errors(disturbed: Callable[[int], Arrays], expected: Arrays, tolerance: float) -> list[float | None]:
    """Return the largest error of each output that is not a miss.

    That is the tolerance, and what rounding does: how far outputs move when roundings inside of the program are
    disturbed. What is left of a cancellation (a divergence that is zero but for rounding), what a chaotic motion
    multiplies, and numbers that rounding decides (of points that just touch) cannot agree more closely in any two
    runtimes. An output that is round-off beside the others must stay round-off.

    Args:
        disturbed: ``sample -> outputs``, see `simkit.export.programs.rounding.disturbed`.
        expected: the outputs of JAX.
        tolerance: relative to the largest number of an output.
    """
    exact = disturbed(0)
    worst = [0.0] * len(exact)
    for sample in range(1, SAMPLES + 1):
        found = disturbed(sample)
        worst = [max(change, error_of(a, b)) for change, a, b in zip(worst, exact, found, strict=True)]
    largest = max((largest_of(array) for array in expected if array.dtype.kind == "f"), default=0.0)
    return [
        tolerance + ROUNDINGS * change + _round_off(array, largest)
        if array.dtype.kind == "f"
        else 0.0
        if change == 0
        else None
        for array, change in zip(expected, worst, strict=True)
    ]


def _round_off(array: np.ndarray, largest: float) -> float:
    """Return the error that an output may have because it is round-off; 0 for others."""
    scale, level = largest_of(array), ROUND_OFF * float(np.finfo(array.dtype).eps) * largest
    return 0.0 if scale > level else level / scale if scale else level


def differences(names: Sequence[str], expected: Arrays, found: Arrays, allowed: Sequence[float | None]) -> list[Any]:
    """Return how outputs compare, one `Difference` each.

    Args:
        names: of the outputs.
        expected: of JAX.
        found: of another runtime.
        allowed: of `allowed_errors`.
    """
    largest = max((largest_of(array) for array in expected if array.dtype.kind == "f"), default=0.0)
    return [
        _difference(name, largest_of(a) / largest if largest and a.dtype.kind == "f" else 0.0, error_of(a, b), most)
        for name, a, b, most in zip(names, expected, found, allowed, strict=True)
    ]


def _difference(name: str, share: float, error: float, allowed: float | None) -> Difference:
    """Return how an output compares, of which its largest number is that share of the largest of all."""
    if allowed is None or allowed <= LARGEST_ALLOWED:
        return Difference(name, error, allowed)
    if 0 < share * allowed <= LARGEST_BESIDE_OTHERS:
        return Difference(name, share * error, share * allowed, beside_others=True)
    # What may not even become infinite where the reference is finite is asked for, always.
    return Difference(name, error, None if np.isfinite(error) else allowed)


def worst_of(found: Sequence[Difference]) -> Difference | None:
    """Return the output that comes nearest to a miss, or misses most; one that is compared, if there is any.

    Args:
        found: of any number of outputs; ``None`` is returned for none.
    """
    return max(
        found, key=lambda one: (one.compared, one.error / one.allowed if one.allowed else one.error), default=None
    )


def not_compared(found: Sequence[Difference]) -> list[str]:
    """Return the names of outputs that were not compared, each once.

    Args:
        found: of any number of cases.
    """
    return list(dict.fromkeys(one.output for one in found if not one.compared))
