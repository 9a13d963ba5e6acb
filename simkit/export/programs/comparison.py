"""Comparison of another runtime with JAX: largest relative difference of each output, and its limit."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

# Tolerances relative to the largest number of an output. One step has a few hundred roundings; round-off grows along a
# run.
OF_A_STEP = {"float32": 1e-5, "float64": 1e-10}
OF_A_RUN = {"float32": 3e-4, "float64": 1e-8}
# Allowed error in units of the change of an output by perturbed roundings: the perturbations leave most operations
# exact, while a program rounds in each, and elementary functions of other runtimes are off by some units.
ROUNDINGS = 100.0
# Number of random perturbations: an event of probability 1/2 is missed by all of them once in 256.
SAMPLES = 8
# Level of round-off: this many units in the last place of the largest number of all outputs. Of a derivative that is
# zero, as of the energy of a crystal at rest, a remainder of 1400 units was measured in float64; in float32 as many
# would hide outputs that are small: hence 16 there.
ROUND_OFF = {"float32": 16.0, "float64": 2048.0}
# Largest allowed error, relative to an output's largest number, at which a comparison means anything.
LARGEST_ALLOWED = 0.1
# The same relative to the largest number of all outputs, for outputs that are round-off (a divergence of zero).
LARGEST_BESIDE_OTHERS = 1e-3

type Arrays = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Difference:
    """Difference of one output of a runtime from the reference.

    Attributes:
        output: its name.
        error: largest difference relative to the largest number of the reference; for integers and booleans the
            fraction that differs; infinite where one is finite and the other is not.
        allowed: largest error that passes; ``None`` for an output that is not compared, because perturbed roundings
            change integers, or change numbers by more than `LARGEST_ALLOWED`.
        beside_others: whether both are relative to the largest number of all outputs, since the output is round-off.
    """

    output: str
    error: float
    allowed: float | None
    beside_others: bool = False

    @property
    def compared(self) -> bool:
        """Whether there is a limit of the error."""
        return self.allowed is not None

    @property
    def passed(self) -> bool:
        """Whether the error is allowed."""
        return self.allowed is None or self.error <= self.allowed


def usual_tolerance(form: str, precision: str) -> float:
    """Return the default tolerance of a program, relative to the largest number of each output.

    Args:
        form: of the program.
        precision: ``"float32"`` or ``"float64"``.
    """
    return (OF_A_STEP if form in ("step", "advance", "show") else OF_A_RUN)[precision]


def error_of(expected: np.ndarray, found: np.ndarray) -> float:
    """Return the error of an output, see `Difference`.

    Args:
        expected: result of JAX.
        found: result of another runtime, of the same shape.
    """
    if expected.dtype.kind != "f":
        return float(np.mean(expected != found)) if expected.size else 0.0
    proper = _is_proper(expected)
    if not np.array_equal(proper, _is_proper(found)) or not np.array_equal(
        expected[~proper], found[~proper], equal_nan=True
    ):
        return np.inf
    scale = largest_of(expected)
    difference = np.subtract(expected, found, where=proper, out=np.zeros(expected.shape), dtype=np.float64)
    largest = float(np.max(np.abs(difference), initial=0.0))
    return largest / scale if scale else largest


def largest_of(array: np.ndarray) -> float:
    """Return the largest absolute value of an array, without NaN, infinities and their stand-ins."""
    return float(np.max(np.abs(array), where=_is_proper(array), initial=0.0))


def _is_proper(array: np.ndarray) -> np.ndarray:
    """Return which elements are neither NaN, nor infinite, nor so large that they stand for infinity."""
    return np.abs(array) < float(np.finfo(array.dtype).max) ** 0.5


def allowed_errors(perturbed: Callable[[int], Arrays], expected: Arrays, tolerance: float) -> list[float | None]:
    """Return the largest error of each output that passes.

    It is the sum of the tolerance and a bound of round-off: `ROUNDINGS` times the change of the output when roundings
    inside of the program are perturbed. The remainder of a cancellation (a divergence that is zero up to round-off),
    the late states of a chaotic motion, and numbers that rounding decides (contacts of points that just touch) cannot
    agree more closely between any two runtimes. An output that is round-off relative to the others must stay so.

    Args:
        perturbed: ``sample -> outputs``, see `simkit.export.programs.rounding.perturbed`.
        expected: the outputs of JAX.
        tolerance: relative to the largest number of an output.
    """
    exact = perturbed(0)
    worst = [0.0] * len(exact)
    for sample in range(1, SAMPLES + 1):
        found = perturbed(sample)
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
    """Return the allowed error of an output that is round-off relative to ``largest``, 0 for others."""
    units = ROUND_OFF.get(str(array.dtype), ROUND_OFF["float32"])
    scale, level = largest_of(array), units * float(np.finfo(array.dtype).eps) * largest
    return 0.0 if scale > level else level / scale if scale else level


def differences(
    names: Sequence[str], expected: Arrays, found: Arrays, allowed: Sequence[float | None]
) -> list[Difference]:
    """Return the difference of each output from the reference.

    Args:
        names: of the outputs.
        expected: results of JAX.
        found: results of another runtime.
        allowed: from `allowed_errors`.
    """
    largest = max((largest_of(array) for array in expected if array.dtype.kind == "f"), default=0.0)
    return [
        _difference(name, largest_of(a) / largest if largest and a.dtype.kind == "f" else 0.0, error_of(a, b), most)
        for name, a, b, most in zip(names, expected, found, allowed, strict=True)
    ]


def _difference(name: str, share: float, error: float, allowed: float | None) -> Difference:
    """Return the difference of an output whose largest number is ``share`` times the largest of all outputs."""
    if allowed is None or allowed <= LARGEST_ALLOWED:
        return Difference(name, error, allowed)
    if 0 < share * allowed <= LARGEST_BESIDE_OTHERS:
        return Difference(name, share * error, share * allowed, beside_others=True)
    # An error that is infinite (finite and not finite numbers at the same element) is a miss in any case.
    return Difference(name, error, None if np.isfinite(error) else allowed)


def worst_of(found: Sequence[Difference]) -> Difference | None:
    """Return the output whose error is largest relative to what is allowed; compared outputs come first.

    Args:
        found: of any number of outputs; ``None`` is returned for none.
    """
    return max(
        found, key=lambda one: (one.compared, one.error / one.allowed if one.allowed else one.error), default=None
    )


def not_compared(found: Sequence[Difference]) -> list[str]:
    """Return the names of outputs that are not compared, without repetitions.

    Args:
        found: differences of one or several cases.
    """
    return list(dict.fromkeys(one.output for one in found if not one.compared))
