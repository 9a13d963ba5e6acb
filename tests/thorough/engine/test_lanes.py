"""Lanes: sweeps of converging simulations, with the results of single runs, the longer ones."""

import shutil

import numpy as np
import pytest
import xarray

import simkit
from simkit.core.status import Status
from simkit.jobs.job import begin
from simkit.jobs.sweeps import Sweep
from simkit.storage.store import Store
from tests.engine.test_lanes import OVER, assert_resumes, countdown, springs, swept
from tests.stopping import StopAfter, Stopped


def test_every_member_equals_a_single_run():
    together = swept(3)
    iterations = together["iteration"].isel(frame=-1)
    assert int(iterations.max()) > 2 * int(iterations.min())
    for i, j, seed in np.ndindex(4, 2, 2):
        alone = simkit.run(springs(), stiffness=OVER["stiffness"][i], rest=OVER["rest"][j], seed=seed)
        member = together.isel(stiffness=i, rest=j, seed=seed)
        assert member["status"] == alone.attrs["status"] == "converged"
        frames = alone.sizes["iteration"]
        for name in ("iteration", "length", "max_force"):
            # Vectorized code may round the last bit differently: lengths are of order 5, forces fall below 1e-6.
            np.testing.assert_allclose(member[name][:frames], alone[name], rtol=1e-12, atol=1e-14, err_msg=name)
            assert (member[name][frames:] == member[name][frames - 1]).all()
        np.testing.assert_allclose(member["position"], alone["position"][-1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("chunk", [1, 2, 5, 16, 100])
def test_number_of_lanes_does_not_change_the_result(chunk):
    one, other = swept(3), swept(chunk)
    assert one["iteration"].dims == other["iteration"].dims
    for name in one.data_vars:
        if name == "status":
            assert (one[name].values == other[name].values).all()
        else:
            np.testing.assert_allclose(other[name], one[name], rtol=1e-12, atol=1e-14, err_msg=str(name))


@pytest.mark.parametrize("stop", [1, 7, 20])
def test_interrupted_sweep_of_relaxations_resumes(stop, tmp_path):
    report = StopAfter(stop)
    with pytest.raises(Stopped):
        begin(Sweep(springs(), OVER, seeds=2, chunk=3), tmp_path / "stopped", report=report)
    assert report.calls[-1][1].endswith(" of 16 members")
    result = simkit.resume(tmp_path / "stopped")
    whole = simkit.sweep(springs(), OVER, seeds=2, chunk=3, output=tmp_path / "whole")
    xarray.testing.assert_identical(result, whole)
    xarray.testing.assert_identical(result, swept(3))
    names = {"chunk_0000.npz", "manifest.json", "manifest_copy.json", "scenario.toml", "summary.json", "sweep.nc"}
    assert {path.name for path in (tmp_path / "whole").iterdir()} == names | {".lock"}
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "stopped" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("stop", [3, 5, 9, 11, 13])
def test_an_interrupted_queue_resumes_bit_for_bit(stop, tmp_path):
    assert_resumes(stop, tmp_path)


@pytest.mark.parametrize("lanes", [1, 3, 10])
def test_members_end_with_their_own_status_at_their_own_frame(lanes):
    ok, done, bad, stalled = Status.OK, Status.CONVERGED, Status.NON_FINITE, Status.STALLED
    values = [3.0, 50.0, 0.0, 14.25, 0.5, 40.0, 7.0, -1.0, 12.0, 1.0]
    frames = [3, 40, 0, 1, 2, 40, 7, 1, 12, 1]
    expected = [done, ok, done, stalled, bad, done, done, bad, done, done]
    recorded, observed = countdown(lanes=lanes, values=values)
    for member, (value, end, status) in enumerate(zip(values, frames, expected, strict=True)):
        codes, left = recorded["status"][:, member], recorded["diagnosed.left"][:, member]
        assert (codes[:end] == ok).all() and codes[end] == status
        np.testing.assert_array_equal(left[:end], value - np.arange(end))
        np.testing.assert_array_equal(left[end], np.nan if status == bad else value - end)
        if status in (ok, done):
            assert observed["state"][member] == left[end]


VALUES = [30.5, 3.0, 17.0, 1.0, 9.0, 0.0, -1.0, 12.0, 40.5]


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    folder = tmp_path_factory.mktemp("begun")
    with pytest.raises(Stopped):
        countdown(Store(folder), lanes=2, values=VALUES, report=StopAfter(5))
    return folder


@pytest.fixture
def interrupted(begun, tmp_path):
    """Return a folder with the first five segments of a sweep through two lanes, and the checkpoint after them."""
    return shutil.copytree(begun, tmp_path / "interrupted")
