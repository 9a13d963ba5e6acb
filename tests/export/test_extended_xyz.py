"""Extended XYZ files hold the stored frames of runs of particles."""

import io

import ase.io
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.export.data_files import export_frames
from simkit.jobs.runs import Outcome
from simkit.scenario.catalog import find_scenario

FRAMES, PARTICLES = 3, 5


def outcome(observed, diagnosed=None, dimensions=None, coordinates=None):
    """Return what a run might have stored."""
    named = {name: ("particle", "axis")[: array.ndim - 1] for name, array in observed.items()}
    named |= {"box": ("axis",), "cell": ("lattice_vector", "axis")} | (dimensions or {})
    diagnosed = {"iteration": np.arange(FRAMES, dtype=np.int32)} | (diagnosed or {})
    arrays = {f"observed.{name}": array for name, array in observed.items()}
    arrays |= {f"diagnosed.{name}": array for name, array in diagnosed.items()} | {"status": np.zeros(FRAMES, np.int32)}
    labels = {"dimensions": named, "coordinates": coordinates or {}}
    return Outcome(arrays, labels, np.asarray(0), FRAMES - 1, None, find_scenario("soft_sphere_packing"))


def particles(dimension=3, dtype=np.float64):
    rng = np.random.default_rng(1)
    return {
        "position": rng.normal(size=(FRAMES, PARTICLES, dimension)).astype(dtype),
        "diameter": rng.random((FRAMES, PARTICLES)).astype(dtype),
    }


def exported(outcome, folder):
    written = export_frames(outcome, folder / "frames.xyz")
    assert (written.frames, written.particles) == (FRAMES, PARTICLES)
    assert [path.name for path in folder.iterdir()] == ["frames.xyz"]
    return ase.io.read(io.StringIO(written.file.read_text()), ":", format="extxyz")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frames_in_extended_xyz_are_exact(tmp_path, dtype):
    rng = np.random.default_rng(2)
    observed = particles(dtype=dtype) | {
        "velocity": rng.normal(size=(FRAMES, PARTICLES, 3)).astype(dtype),
        "contacts": rng.integers(0, 9, (FRAMES, PARTICLES)),
        "cell": (5 * np.eye(3) + rng.random((FRAMES, 3, 3))).astype(dtype),
        "box": np.full((FRAMES, 3), 5, dtype),
        "species": np.tile([0, 1, 0, 2, 3], (FRAMES, 1)),
    }
    diagnosed = {"energy": rng.normal(size=FRAMES), "max_force": np.array([1.0, np.nan, 1e-300])}
    coordinates = {"species_names": ["Si", "O", "Ar", "large"]}
    frames = exported(outcome(observed, diagnosed, coordinates=coordinates), tmp_path)
    assert len(frames) == FRAMES
    for index, atoms in enumerate(frames):
        np.testing.assert_array_equal(atoms.positions.astype(dtype), observed["position"][index])
        np.testing.assert_array_equal(np.asarray(atoms.cell).astype(dtype), observed["cell"][index])
        np.testing.assert_array_equal(atoms.arrays["observed_species"], observed["species"][index])
        for name in ("diameter", "velocity", "contacts"):
            np.testing.assert_array_equal(atoms.arrays[name].astype(observed[name].dtype), observed[name][index])
        assert atoms.get_chemical_symbols() == ["Si", "O", "Si", "Ar", "X"] and atoms.pbc.all()
        assert atoms.get_potential_energy() == diagnosed["energy"][index]
        np.testing.assert_array_equal(atoms.info["max_force"], diagnosed["max_force"][index])
        assert atoms.info["iteration"] == index
        assert set(atoms.arrays) == {*("numbers", "positions", "diameter", "velocity", "contacts", "observed_species")}


@pytest.mark.parametrize("box", [None, 0.0, np.inf])
def test_free_space_has_no_cell(tmp_path, box):
    observed = particles() | ({} if box is None else {"box": np.full((FRAMES, 3), box)})
    for atoms in exported(outcome(observed), tmp_path):
        assert not atoms.cell.any() and not atoms.pbc.any()
        assert set(atoms.get_chemical_symbols()) == {"X"}


def test_frames_of_plane_systems_have_zero_z(tmp_path):
    observed = particles(dimension=2) | {"box": np.full((FRAMES, 2), 4.0)}
    for index, atoms in enumerate(exported(outcome(observed), tmp_path)):
        np.testing.assert_array_equal(atoms.positions[:, :2], observed["position"][index])
        assert not atoms.positions[:, 2].any()
        np.testing.assert_array_equal(atoms.cell, np.diag([4.0, 4.0, 1.0]))
        assert list(atoms.pbc) == [True, True, False]


def test_reserved_names_get_a_prefix(tmp_path):
    of_each, of_all = np.ones((FRAMES, PARTICLES)), np.arange(FRAMES) / 7
    observed = particles() | {"energy": of_each, "species": of_each.astype(int), "profile": of_each}
    diagnosed = {"energy": of_all, "stress": of_all}
    frames = exported(outcome(observed, diagnosed, {"profile": ("distance",)}), tmp_path)
    assert frames[2].get_potential_energy() == frames[2].info["diagnosed_stress"] == of_all[2]
    np.testing.assert_array_equal(frames[2].arrays["observed_energy"], of_each[2])
    np.testing.assert_array_equal(frames[2].arrays["observed_species"], of_each[2])
    # As long as there are particles, but not one entry for each.
    assert "profile" not in frames[2].arrays


@pytest.mark.parametrize(
    "observed",
    [
        {"speed": np.zeros((FRAMES, 4, 4))},
        {"position": np.zeros((FRAMES, 2))},
        {"position": np.zeros((FRAMES, PARTICLES, 4))},
    ],
)
def test_frames_without_particles_are_refused_in_one_line(tmp_path, observed):
    with pytest.raises(UserError, match="no particles with a position in space") as caught:
        export_frames(outcome(observed), tmp_path / "frames.xyz")
    assert str(caught.value).isprintable()
    assert not list(tmp_path.iterdir())


OLD = "1\nProperties=species:S:1:pos:R:3\nX 0 0 0\n"


def test_existing_file_is_replaced_only_when_asked(tmp_path):
    file = tmp_path / "frames.xyz"
    file.write_text(OLD)
    with pytest.raises(UserError, match="exists; choose another file"):
        export_frames(outcome(particles()), file)
    assert file.read_text() == OLD
    export_frames(outcome(particles()), file, overwrite=True)
    assert file.read_text() != OLD
    for content in ("", "mine", "1\nmine\nX 0 0 0"):
        file.write_text(content)
        with pytest.raises(UserError, match="is no earlier export"):
            export_frames(outcome(particles()), file, overwrite=True)
        assert file.read_text() == content


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "frames.xyz"
    file.write_text(OLD)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        export_frames(outcome(particles()), file, overwrite=True)
    assert file.read_text() == OLD and len(list(tmp_path.iterdir())) == 1
