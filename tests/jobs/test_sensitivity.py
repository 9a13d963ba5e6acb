"""First-order Sobol indices, compared with analytic ones."""

import numpy as np
import pytest
from scipy.stats import qmc

from simkit.jobs.sweep_results import FEWEST, first_order_indices
from tests.tables import every


def ishigami(x, a=7.0, b=0.1):
    return np.sin(x[0]) + a * np.sin(x[1]) ** 2 + b * x[2] ** 4 * np.sin(x[0])


def ishigami_indices(a=7.0, b=0.1):
    """Return the exact indices: T. Ishigami and T. Homma, ISUMA 1990, doi:10.1109/ISUMA.1990.151285."""
    total = a**2 / 8 + b * np.pi**4 / 5 + b**2 * np.pi**8 / 18 + 0.5
    return [0.5 * (1 + b * np.pi**4 / 5) ** 2 / total, a**2 / 8 / total, 0.0]


def sample(method, dimensions, count, seed=0):
    return (getattr(qmc, method)(dimensions, rng=np.random.default_rng(seed)).random(count)).T


@every("method", ["Sobol", "LatinHypercube"])
@every("count", [1024, 8192])
def test_indices_of_the_ishigami_function(method, count):
    x = np.pi * (2 * sample(method, 3, count) - 1)
    found = first_order_indices(dict(zip("abc", x, strict=True)), ishigami(x))
    # Statistical errors are about 1 / sqrt(n); variation within classes, up to 0.01, is missed.
    np.testing.assert_allclose([found[name] for name in "abc"], ishigami_indices(), atol=1.2 / np.sqrt(count) + 0.01)


def test_indices_of_the_g_function():
    # A. Saltelli and I. M. Sobol', 1995: product of (|4 x - 2| + a) / (1 + a), whose parts have variance 1/(3 (1+a)^2).
    a = np.array([0.0, 1.0, 4.5, 9.0])
    x = sample("Sobol", 4, 4096)
    y = np.prod((np.abs(4 * x - 2) + a[:, None]) / (1 + a[:, None]), axis=0)
    parts = 1 / (3 * (1 + a) ** 2)
    found = first_order_indices(dict(zip("abcd", x, strict=True)), y)
    np.testing.assert_allclose(list(found.values()), parts / (np.prod(1 + parts) - 1), atol=0.03)


def test_indices_do_not_depend_on_the_scale_of_a_parameter():
    x = sample("Sobol", 2, 256)
    y = np.log(1e3) * x[0] + x[1]
    one = first_order_indices({"a": x[0], "b": x[1]}, y)
    other = first_order_indices({"a": 1e-3 * 1e6 ** x[0], "b": x[1] ** 3}, y)
    assert one == other and one["a"] > 0.9


def test_parameters_without_effect_have_none_on_average():
    x = sample("LatinHypercube", 40, 256)
    y = np.random.default_rng(3).normal(size=256)
    found = np.array(list(first_order_indices({str(i): values for i, values in enumerate(x)}, y).values()))
    # Without the correction for chance, each would be 15 / 255.
    assert found.mean() < 0.025


def test_failed_points_are_omitted():
    x = sample("Sobol", 2, 512)
    y = x[0] + 0.5 * x[1]
    y[::5] = np.nan
    found = first_order_indices({"a": x[0], "b": x[1]}, y)
    error = 1.2 / np.sqrt(np.isfinite(y).sum())
    assert found["a"] == pytest.approx(0.8, abs=error) and found["b"] == pytest.approx(0.2, abs=error)


def test_too_few_points_and_constants_have_no_indices():
    x = sample("Sobol", 1, 64)[0]
    assert first_order_indices({"a": x[: FEWEST - 1]}, x[: FEWEST - 1]) == {}
    assert first_order_indices({"a": x}, np.full(64, 3.0)) == {}
