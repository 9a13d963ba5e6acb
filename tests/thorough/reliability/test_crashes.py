"""Simulated crashes of jobs after every single file operation."""

import pytest

from tests.reliability.test_crashes import WORK, check_crashes


@pytest.mark.parametrize("kind", WORK)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_job_that_crashes_anywhere_is_absent_or_resumes(kind, tmp_path, monkeypatch):
    check_crashes(kind, tmp_path, monkeypatch)
