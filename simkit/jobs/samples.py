"""Sampled points of a sweep: scrambled Sobol' sequences and Latin hypercubes over ranges of parameters."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.jobs.points import MOST_NUMBERS, check_swept
from simkit.scenario import checks
from simkit.scenario.scenario import Scenario

METHODS = ("sobol", "latin_hypercube")

type Ranges = Mapping[str, Sequence[Any]]
"""``{parameter: (low, high) or (low, high, "log")}``."""


def sampled(scenario: Scenario, ranges: Ranges, method: str, count: int) -> tuple[dict[str, tuple[float, ...]], str]:
    """Return points that fill ranges of parameters evenly, equal for equal seeds of the scenario.

    A Sobol' sequence is scrambled (Owen, J. Complexity 14, 466, 1998; here by a random linear matrix and a digital
    shift, Matousek, J. Complexity 14, 527, 1998) and balanced where the count is a power of 2; a Latin hypercube
    (McKay, Beckman and Conover, Technometrics 21, 239, 1979) has one point in each of ``count`` intervals of every
    parameter. Both by `scipy.stats.qmc`.

    Args:
        scenario: scenario with the parameters and the seed of the scrambling.
        ranges: ends by parameter; linear, or with ``"log"`` evenly in the logarithm.
        method: one of `METHODS`.
        count: number of points.

    Returns:
        Values by parameter, ``count`` of each, and the method in words.

    Raises:
        UserError: if a name, an end, the method or the count is wrong.
    """
    checks.choice(method, "sample", METHODS)
    checks.integer(checks.unwrapped(count), "members", 1, MOST_NUMBERS)
    if not isinstance(ranges, Mapping) or not ranges:
        raise UserError("a sample needs a range of at least one parameter, {name: (low, high)}")
    ends = {name: _ends(scenario, name, given) for name, given in ranges.items()}
    if count * len(ends) > MOST_NUMBERS:
        raise UserError(f"members = {count} of {len(ends)} parameters are over {MOST_NUMBERS} numbers; sample fewer")
    if method == "sobol" and count & (count - 1):
        below = 2 ** (count.bit_length() - 1)
        warnings.warn(
            f"a Sobol' sequence is balanced for powers of 2, and members = {count} is not one; "
            f"{below} and {2 * below} are",
            stacklevel=2,
        )
    unit = _unit_points(method, len(ends), count, scenario.run.seed)
    values = {name: tuple(_scaled(unit[:, i], *given).tolist()) for i, (name, given) in enumerate(ends.items())}
    words = "Sobol' sequence" if method == "sobol" else "Latin hypercube"
    return values, f"{words} of {count} points, scrambled with seed {scenario.run.seed}"


def _unit_points(method: str, dimensions: int, count: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    random = np.random.default_rng(seed)
    if method == "latin_hypercube":
        return qmc.LatinHypercube(dimensions, rng=random).random(count)
    if dimensions > qmc.Sobol.MAXDIM:
        raise UserError(f"a Sobol' sequence has at most {qmc.Sobol.MAXDIM} parameters; use a latin_hypercube")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about counts that are not powers of 2, given above
        return qmc.Sobol(dimensions, rng=random).random(count)


def _scaled(unit: np.ndarray, low: float, high: float, is_log: bool) -> np.ndarray:
    inner = low * np.exp(unit * (math.log(high) - math.log(low))) if is_log else low + unit * (high - low)
    # Rounding must not move a value past the ends, which may be the bounds.
    return np.clip(inner, low, high)


def _ends(scenario: Scenario, name: str, given: Sequence[Any]) -> tuple[float, float, bool]:
    """Return ``(low, high, is_log)`` of the range of a parameter."""
    check_swept(scenario, name, f"'{name}'")
    label, given = f"over {name}", checks.unwrapped(given)
    is_log = isinstance(given, list | tuple) and len(given) == 3 and given[2] == "log"
    if not isinstance(given, list | tuple) or (len(given) != 2 and not is_log):
        raise UserError(f'{label} is not a range to sample; write (low, high) or (low, high, "log")')
    low, high = checks.interval(given[:2], label)
    for end in (low, high):
        checks.inside(end, label, scenario.parameters[name].bounds)
    if is_log and low <= 0:
        raise UserError(f"{label} has an end that is not positive; a logarithmic range needs both ends above 0")
    return low, high, is_log
