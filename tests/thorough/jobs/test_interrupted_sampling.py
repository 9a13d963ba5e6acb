"""Derivatives by fluctuations that are interrupted and resumed."""

import numpy as np
import pytest

import simkit
from simkit.jobs.ensemble_derivatives import fluctuation_job
from simkit.jobs.job import begin
from simkit.scenario.made_in_python import load
from tests.jobs.test_fluctuations import CLOUD


def test_sampling_goes_on_after_an_interruption_with_the_same_numbers(tmp_path):
    (tmp_path / "cloud.toml").write_text(CLOUD)
    job = fluctuation_job(load(str(tmp_path / "cloud.toml")), ["warm"], "potential_energy", 5, None)
    whole = begin(job, None)

    def stop(fraction, words):
        if fraction > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin(job, tmp_path / "run", report=stop)
    resumed = simkit.resume(tmp_path / "run")
    np.testing.assert_array_equal(resumed["warm"], whole.derivative["warm"])
    assert resumed.attrs["value"] == whole.value
