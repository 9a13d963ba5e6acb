"""Validation of scenarios against expected numbers."""

import numpy as np
import pytest

from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.jobs.validation import validate
from tests.toys import PENDULUMS, toy

NUMPY = {
    "final": lambda series: series[-1],
    "mean": np.mean,
    "root_mean_square": lambda series: np.sqrt(np.mean(series**2)),
    "maximum": np.max,
    "minimum": np.min,
    "sum": np.sum,
}


def claim(**keys):
    lines = [f"{key} = {value!r}" if isinstance(value, str) else f"{key} = {value}" for key, value in keys.items()]
    return PENDULUMS + "\n[[validation]]\n" + "\n".join(lines) + "\ntolerance = 1e-12\nsource = 'known'\n"


@pytest.mark.parametrize("reduce", NUMPY)
def test_values_of_a_history_are_compared(reduce):
    series = begin(Run(toy()), None).arrays["diagnosed.position"]
    (check,) = validate(toy(claim(quantity="position", reduce=reduce, expected=float(NUMPY[reduce](series)))))
    assert check.passed and np.ptp(series) > 0
    assert check.what == ("position" if reduce == "final" else f"position ({reduce.replace('_', ' ')})")
