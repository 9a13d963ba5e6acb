"""Memory and disk checks: a job that does not fit is refused before computation, in one line with the sizes."""

import re

import jax
import numpy as np
import pytest

from simkit.engine import memory
from simkit.engine.driver import Plan
from simkit.errors import UserError
from simkit.jobs import job


def shapes(state, frame):
    return jax.ShapeDtypeStruct((state,), np.float32), {"observed.speed": jax.ShapeDtypeStruct((frame,), np.float32)}


def refusal(state, frame, plan, output=None):
    with pytest.raises(UserError) as caught:
        job.check_frames(*shapes(state, frame), plan, output)
    return str(caught.value)


def test_state_and_frames_that_do_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10 * 2**20)
    job.check_frames(*shapes(1000, 1000), Plan(100, 1), None)
    # 101 frames of 100,000 numbers of 4 bytes; 6 of the 10 MiB may be used.
    told = refusal(1000, 100_000, Plan(100, 1))
    assert "the 101 frames of this run need 38.5 MiB and 6 MiB may be used; store fewer with a larger every" in told
    assert "larger every" not in refusal(1000, 1_000_000, Plan(2, 2))
    assert "the state of this simulation needs 7.63 MiB" in refusal(1_000_000, 1, Plan(2, 2))


def test_frames_that_do_not_fit_on_the_disk_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(job.shutil, "disk_usage", lambda path: job.shutil._ntuple_diskusage(1, 1, 2**20))
    job.check_frames(*shapes(1000, 1000), Plan(100, 1), tmp_path / "new" / "run")
    told = refusal(1000, 10_000, Plan(100, 1), tmp_path / "new" / "run")
    assert re.search(r"run would take 3.86 MiB and 1 MiB are free on its disk; store fewer .* another disk", told)
