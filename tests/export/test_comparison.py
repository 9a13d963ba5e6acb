"""Comparison of exported programs with JAX: errors, limits and reports."""

import numpy as np
import pytest

from simkit.export.programs.stand_alone import error_of
from simkit.export.programs.verification import (
    SMALLEST_SCALES,
    TOLERANCES,
    Difference,
    Report,
    RuntimeReport,
    as_plain,
    differences,
    worst_of,
)

NAMES = ["velocity", "divergence", "count"]
EXPECTED = [np.array([1.0, 2.0]), np.array([1e-16, -2e-16]), np.array([3])]


def found(**changed):
    arrays = [changed.get(name, array) for name, array in zip(NAMES, EXPECTED, strict=True)]
    return differences(NAMES, EXPECTED, arrays, TOLERANCES["float64"])


def test_errors_are_relative_to_the_largest_number_of_an_output():
    assert error_of(np.array([1.0, 100.0]), np.array([1.1, 100.0])) == pytest.approx(1e-3)
    assert error_of(np.array([0.0, np.inf]), np.array([1e-3, np.inf])) == pytest.approx(1e-3)
    assert error_of(np.array([0.0, np.inf]), np.array([0.0, 1.0])) == np.inf
    # A number that stands for infinity hides no error of the others.
    assert error_of(np.array([1.0, 1e308]), np.array([1.1, 1e308])) == pytest.approx(0.1)
    assert error_of(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5])) == 0.25


def test_small_outputs_are_measured_by_a_share_of_the_largest_output():
    assert all(one.passed for one in found(divergence=np.array([3e-15, 0.0])))
    missed = found(divergence=np.array([1e-10, 0.0]))[1]
    assert missed.error == pytest.approx(1e-10 / (2 * SMALLEST_SCALES["float64"]), rel=1e-3) and not missed.passed
    # An output above that share is measured by itself.
    single = [np.float32([1.0]), np.float32([0.5])]
    assert differences("ab", single, [single[0], np.float32([0.501])], 1.0)[1].error == pytest.approx(0.002, rel=1e-3)


def test_integers_must_be_equal_and_infinite_errors_are_misses():
    assert [one.passed for one in found(count=np.array([4]))] == [True, True, False]
    missed = found(velocity=np.array([np.inf, 2.0]), count=np.array([4]))
    assert missed[0].error == np.inf and worst_of(missed) is missed[0]
    assert worst_of(found()) in found() and worst_of([]) is None


def test_each_miss_is_reported_once_and_missing_operators_come_first(tmp_path):
    wrong = [Difference("next.y", 2.0, 0.1), *(Difference("next.x", error, 0.1) for error in (3.0, 7.0, 5.0))]
    runtime = RuntimeReport("onnxruntime", "model.onnx", 1, [*found(), *wrong], 0.0, 0.0, nodes=1)
    outside = {"Less": {"count": 5, "lines": ["a:1", "b:2", "c:3", "d:4"]}}
    report = Report(tmp_path, "step", 0.1, [runtime], outside=outside)
    assert not report.passed and report.misses == [
        "the target has no Less, 5 of which come from a:1, b:2, c:3, ...",
        f"{tmp_path}/model.onnx: next.y differs from JAX by 2 in onnxruntime; 0.1 is allowed",
        f"{tmp_path}/model.onnx: next.x differs from JAX by 7 in onnxruntime; 0.1 is allowed",
    ]
    entry = as_plain(report)["runtimes"][0]
    assert entry["largest_error"] == 7.0 and not entry["passed"]
    assert [one["passed"] for one in entry["differences"]] == [True] * 3 + [False] * 4
