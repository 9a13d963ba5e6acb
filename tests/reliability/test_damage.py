"""Damaged files: the run resumes from an intact state, or restarts, and never uses wrong data."""

import random
import shutil

import jax
import numpy as np
import pytest

import simkit
from simkit.engine.driver import Plan, Program
from simkit.jobs.job import proceed
from simkit.jobs.runs import Run
from simkit.storage.files import DamagedFileError, read_arrays, write_arrays
from simkit.storage.run_directory import RunDirectory
from simkit.storage.store import CHECKPOINTS, Store
from tests.core.toys import oscillator
from tests.driving import drive
from tests.reliability.faults import WORK, everything, seal_of
from tests.stopping import StopAfter, Stopped
from tests.toys import toy

FRAMES = 10
CURRENT, PREVIOUS = CHECKPOINTS


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


def pickled(path):
    arrays = read_arrays(path, seal_of(path))
    arrays["segment"] = np.array([print], dtype=object)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def another_shape(path):
    seal = seal_of(path)
    write_arrays(path, read_arrays(path, seal) | {"state.position": np.zeros(7)}, seal)
    # A finished run does not need its state.
    (path.parent / "summary.json").unlink(missing_ok=True)


DAMAGE = [truncate, flip, empty, pickled, another_shape]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two finished runs of one kind: what was stored, and a copy to spoil."""
    from simkit.scenario import registry
    from tests.toys import FACTORIES

    folder = tmp_path_factory.mktemp("finished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        for name, target in FACTORIES.items():
            patch.setitem(registry.FACTORIES, name, target)
        simkit.run(toy(), output=folder)
    return folder, everything(folder)


@pytest.fixture
def spoiled(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    return folder


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_checkpoint_falls_back_to_the_previous_one(damage, spoiled, finished, recwarn):
    damage(spoiled / CURRENT)
    simkit.resume(spoiled)
    (warning,) = recwarn
    assert f"{CURRENT} cannot be used" in str(warning.message)
    assert f"resuming from segment {FRAMES - 1}" in str(warning.message)
    assert "\n" not in str(warning.message)
    assert everything(spoiled) == finished[1]


@pytest.mark.parametrize("damages", [(truncate, flip), (empty, pickled), (another_shape, truncate)])
def test_two_damaged_checkpoints_restart_the_run(damages, spoiled, finished, recwarn):
    for name, damage in zip(CHECKPOINTS, damages, strict=True):
        damage(spoiled / name)
    simkit.resume(spoiled)
    (warning,) = recwarn
    assert all(name in str(warning.message) for name in CHECKPOINTS)
    assert "starting from the beginning" in str(warning.message)
    assert everything(spoiled) == finished[1]


def test_restarted_run_removes_all_old_files(spoiled):
    for name in CHECKPOINTS:
        empty(spoiled / name)
    with pytest.raises(Stopped):
        directory = RunDirectory.open(spoiled)
        proceed(Run.of(directory), directory, lambda message: None, StopAfter(2))
    # Old segments may be from other software and inconsistent with the new ones.
    assert sorted(path.stem for path in (spoiled / "segments").iterdir()) == ["000000", "000001"]
    with pytest.raises(simkit.UserError, match=r"segment 000002.npz is missing; repair the run with"):
        simkit.open_run(spoiled)


@pytest.mark.parametrize(("damage", "index"), [(truncate, 0), (flip, 3), (flip, FRAMES - 1), (truncate, FRAMES)])
def test_damaged_segment_is_refused_and_computed_again(damage, index, spoiled, finished, recwarn):
    damage(spoiled / "segments" / f"{index:06d}.npz")
    with pytest.raises(simkit.UserError, match="repair the run with: simkit resume"):
        simkit.open_run(spoiled)
    simkit.resume(spoiled)
    (warning,) = recwarn
    # The previous checkpoint precedes only the newest segment.
    remedy = f"resuming from segment {FRAMES - 1}" if index == FRAMES else "starting from the beginning"
    assert remedy in str(warning.message)
    assert everything(spoiled) == finished[1]


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_missing_checkpoint_is_not_needed(name, spoiled, finished):
    (spoiled / name).unlink()
    simkit.resume(spoiled)
    expected = dict(finished[1])
    if name == PREVIOUS:  # nothing was computed, so no checkpoint was moved there
        del expected[PREVIOUS]
    assert everything(spoiled) == expected


def test_missing_segment_is_computed_again(spoiled, finished, recwarn):
    (spoiled / "segments" / "000004.npz").unlink()
    simkit.resume(spoiled)
    assert "starting from the beginning" in str(recwarn[0].message)
    assert everything(spoiled) == finished[1]


def test_missing_summary_is_written_again(spoiled, finished):
    (spoiled / "summary.json").unlink()
    simkit.resume(spoiled)
    assert everything(spoiled) == finished[1]


def test_altered_summary_is_detected_and_written_again(spoiled, finished):
    summary = spoiled / "summary.json"
    text = summary.read_text()
    changed = text.replace('"status_code": 0', '"status_code": 1')
    assert changed != text
    summary.write_text(changed)
    with pytest.raises(simkit.UserError, match=r"summary\.json: its checksum .* repair the run with: simkit resume"):
        simkit.open_run(spoiled)
    simkit.resume(spoiled)
    assert everything(spoiled) == finished[1]


def test_no_flipped_bit_of_a_checkpoint_gives_a_wrong_state(tmp_path, x64):
    simulation, plan = oscillator(3), Plan(4, 1)
    program, key = Program.of(simulation, plan), jax.random.key(1)
    states = {}
    for piece in drive(simulation, simulation.params, key, plan, store=Store(tmp_path), program=program):
        states[piece.index] = piece.state
    template = jax.eval_shape(program.start, simulation.params, key)
    whole = {name: (tmp_path / name).read_bytes() for name in CHECKPOINTS}
    segments = {path: path.read_bytes() for path in (tmp_path / "segments").iterdir()}
    moments = random.Random(0)
    restored_from = []
    for _ in range(200):
        for name, data in whole.items():
            (tmp_path / name).write_bytes(data)
        for path, data in segments.items():
            path.write_bytes(data)
        name = moments.choice(CHECKPOINTS)
        spoiled = bytearray(whole[name])
        spoiled[moments.randrange(len(spoiled))] ^= 1 << moments.randrange(8)
        (tmp_path / name).write_bytes(spoiled)
        told = []
        index, state, _ = Store(tmp_path).restore(template, told.append)
        restored_from.append(index)
        assert (index, len(told)) == (4 if name == PREVIOUS else 3, 1)
        for found, expected in zip(jax.tree.leaves(state), jax.tree.leaves(states[index]), strict=True):
            if jax.dtypes.issubdtype(found.dtype, jax.dtypes.prng_key):
                found, expected = jax.random.key_data(found), jax.random.key_data(expected)
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    assert set(restored_from) == {3, 4}


def test_pickle_in_a_checkpoint_is_not_executed(spoiled, finished, tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path / "executed").touch, ()

    seal = seal_of(spoiled / CURRENT)
    arrays = read_arrays(spoiled / CURRENT, seal)
    with (spoiled / CURRENT).open("wb") as file:
        np.savez(file, **(arrays | {"state.position": np.array([Evil()], dtype=object)}))
    with pytest.raises(DamagedFileError):
        read_arrays(spoiled / CURRENT, seal)
    with pytest.warns(UserWarning, match="cannot be used"):
        simkit.resume(spoiled)
    assert not (tmp_path / "executed").exists()
    assert everything(spoiled) == finished[1]


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_damaged_optimization_resumes_bit_for_bit(tmp_path):
    for name in ("whole", "spoiled"):
        simkit.optimize(toy(steps=4), "frequency", method="adam", iterations=3, output=tmp_path / name)
    flip(tmp_path / "spoiled" / CURRENT)
    with pytest.warns(UserWarning, match="resuming from segment 2"):
        simkit.resume(tmp_path / "spoiled")
    assert everything(tmp_path / "spoiled") == everything(tmp_path / "whole")


def test_segment_with_an_unknown_status_is_computed_again(tmp_path):
    with pytest.raises(Stopped):
        WORK["half a sweep"](tmp_path / "spoiled", 0)
    WORK["sweep"](tmp_path / "whole", 0)
    segment = sorted((tmp_path / "spoiled").glob("chunk_*/segments/*.npz"))[1]
    arrays, seal = read_arrays(segment, seal_of(segment)), seal_of(segment)
    write_arrays(segment, arrays | {"status": np.full_like(arrays["status"], 77)}, seal)
    with pytest.warns(UserWarning, match="it holds an unknown status code"):
        found = simkit.resume(tmp_path / "spoiled")
    assert found.identical(simkit.open_run(tmp_path / "whole"))


def test_a_finished_run_without_its_segments_is_computed_again(tmp_path, recwarn):
    path = tmp_path / "run"
    simkit.run("projectile", output=path, steps=20, every=10)
    before = everything(path)
    shutil.rmtree(path / "segments")
    with pytest.raises(simkit.UserError, match=r"its segments are missing; .* with: simkit resume"):
        simkit.open_run(path)
    simkit.resume(path)
    assert everything(path) == before
