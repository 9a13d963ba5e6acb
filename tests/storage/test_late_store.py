"""Segments of a chunk are written at intervals and in an orderly stop, and not at all if it ends before."""

import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.storage import store as late_store
from simkit.storage.files import Seal
from simkit.storage.store import LateStore

TEMPLATE = {"x": jax.ShapeDtypeStruct((2,), jnp.float32)}


def segment(index):
    return index, {"x": jnp.full(2, index, jnp.float32)}, {"y": np.full(3, index), "status": np.zeros(1, np.int32)}


@pytest.fixture(autouse=True)
def interval(monkeypatch):
    """An interval that does not end by itself on a slow machine."""
    monkeypatch.setattr(late_store, "INTERVAL", 1e9)


def store_of(folder):
    return LateStore(folder / "chunk", Seal("ab", "chunk 0"))


def indices(folder):
    return sorted(int(path.stem) for path in (folder / "chunk").glob("segments/*.npz"))


def test_work_that_ends_within_an_interval_writes_nothing(tmp_path):
    with store_of(tmp_path) as store:
        assert store.restore(TEMPLATE, pytest.fail) is None
        store.create()
        for index in range(3):
            store.write(*segment(index))
        assert [arrays["y"][0] for arrays in store.read()] == [0, 1, 2]
    assert not list(tmp_path.iterdir())


def test_segments_are_written_when_the_interval_is_over(tmp_path, monkeypatch):
    # A clock of its own: other threads read that of the process too.
    clock = types.SimpleNamespace(monotonic=itertools.count(0, late_store.INTERVAL / 2).__next__)
    monkeypatch.setattr(late_store, "time", clock)
    found = []
    with store_of(tmp_path) as store:
        for index in range(5):
            store.write(*segment(index))
            found.append(indices(tmp_path))
    # A flush reads the clock too, so that the next interval begins after it.
    assert found == [[], [0, 1], [0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_interrupted_work_resumes_from_its_last_segment(tmp_path, error):
    with pytest.raises(error), store_of(tmp_path) as store:
        for index in range(3):
            store.write(*segment(index))
        raise error
    with store_of(tmp_path) as store:
        index, state, arrays = store.restore(TEMPLATE, pytest.fail)
        assert (index, list(state["x"]), list(arrays["y"])) == (2, [2, 2], [2, 2, 2])
        store.write(*segment(3))
        assert [arrays["y"][0] for arrays in store.read()] == [0, 1, 2, 3]
    assert indices(tmp_path) == [0, 1, 2]


def test_a_crash_between_segments_and_checkpoint_resumes_from_the_checkpoint_before(tmp_path, monkeypatch):
    monkeypatch.setattr(late_store, "INTERVAL", 0.0)
    with pytest.raises(KeyboardInterrupt), store_of(tmp_path) as store:
        store.write(*segment(0))
        monkeypatch.setattr(store, "write_checkpoint", lambda index, state: (_ for _ in ()).throw(KeyboardInterrupt))
        store.write(*segment(1))
    assert indices(tmp_path) == [0, 1]
    with store_of(tmp_path) as store:
        index, state, _ = store.restore(TEMPLATE, pytest.fail)
        assert index == 0 and not state["x"].any()
        assert len(store.read()) == 1
    assert indices(tmp_path) == [0]
