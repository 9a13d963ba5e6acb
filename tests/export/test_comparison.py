"""Comparison of exported programs with JAX: limits, outputs that are not compared, and reports."""

import dataclasses

import numpy as np

from simkit.export.programs.comparison import differences, not_compared, worst_of
from simkit.export.programs.verification import Report, RuntimeReport, as_plain

NAMES = ["velocity", "divergence", "chaos", "count"]
EXPECTED = [np.array([1.0, 2.0]), np.array([1e-16, -2e-16]), np.array([0.5, 0.1]), np.array([3])]
ALLOWED = [1e-5, 94.0, 94.0, 0.0]


def found(**changed):
    arrays = [changed.get(name, array) for name, array in zip(NAMES, EXPECTED, strict=True)]
    return differences(NAMES, EXPECTED, arrays, ALLOWED)


def test_output_with_a_limit_above_a_tenth_is_not_compared():
    velocity, divergence, chaos, count = found(chaos=np.array([0.0, 40.0]))
    assert velocity.compared and count.compared and all(one.passed for one in (velocity, count))
    assert not chaos.compared and chaos.allowed is None
    assert not_compared([velocity, divergence, chaos, count]) == ["chaos"]
    assert worst_of([velocity, divergence, chaos, count]) is not chaos


def test_round_off_is_compared_relative_to_the_other_outputs():
    kept = found(divergence=np.array([3e-15, 0.0]))[1]
    assert kept.beside_others and kept.passed and kept.allowed == 94.0 * 1e-16
    assert not found(divergence=np.array([1e-3, 0.0]))[1].passed


def test_infinite_error_is_a_miss_whatever_the_limit():
    assert not found(chaos=np.array([np.inf, 0.1]))[2].passed


def test_report_lists_outputs_not_compared_and_fails_without_any_comparison(tmp_path):
    runtime = RuntimeReport("onnxruntime", "model.onnx", 1, found(), 0.0, 0.0)
    report = Report(tmp_path, "step", 1e-5, [runtime])
    entry = as_plain(report)["runtimes"][0]
    assert report.passed and entry["not_compared"] == ["chaos"]
    assert [one["compared"] for one in entry["differences"]] == [True, True, False, True]
    empty = dataclasses.replace(report, runtimes=[dataclasses.replace(runtime, differences=[found()[2]])])
    assert not empty.passed and "no output can be compared" in empty.misses[0]
