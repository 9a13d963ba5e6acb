"""Validation of scenarios against expected numbers."""

import numpy as np

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
    return "\n[[validation]]\n" + "\n".join(lines) + "\ntolerance = 1e-12\nsource = 'known'\n"


def test_values_of_a_history_are_compared():
    series = begin(Run(toy()), None).arrays["diagnosed.position"]
    assert np.ptp(series) > 0
    claims = [claim(quantity="position", reduce=name, expected=float(of(series))) for name, of in NUMPY.items()]
    checks = validate(toy(PENDULUMS + "".join(claims)))
    names = ["position" if name == "final" else f"position ({name.replace('_', ' ')})" for name in NUMPY]
    assert [(check.what, check.passed) for check in checks] == [(name, True) for name in names]
