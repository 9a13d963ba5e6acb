"""Run directories on the file systems of clusters: without locks, with links to other disks, after power failures."""

import errno
import fcntl
import os
import shutil

import pytest

import simkit
from simkit.errors import UserError
from simkit.storage.run_directory import RunDirectory, is_locked
from tests.tables import every, misses
from tests.toys import begun, toy

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@pytest.fixture(autouse=True)
def warnings_again():
    """Let each test see the warnings that a process gives once."""
    from simkit.storage.files import warn_once

    warn_once.cache_clear()


@every("code", NO_LOCKS)
def test_a_file_system_without_locks_gives_one_warning(code, tmp_path, monkeypatch):
    def refuse(file, how):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="has no locks") as warned:
        for name in ("a", "b"):
            with begun(tmp_path / str(code) / name, toy()).locked():
                assert not is_locked(tmp_path / str(code) / name)
    assert len(warned) == 1


def test_a_folder_that_cannot_be_written_to_the_disk_gives_one_warning(tmp_path, monkeypatch):
    sync = os.fsync

    def refuse_folders(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    with pytest.warns(UserWarning, match="does not write folders on request") as warned:
        begun(tmp_path / "run", toy())
    assert len(warned) == 1 and RunDirectory.open(tmp_path / "run").kind == "run"


def test_segments_may_be_a_link_that_the_user_made_and_nobody_else(run, tmp_path, monkeypatch):
    whole = simkit.open_run(run)
    scratch = shutil.move(run / "segments", tmp_path / "scratch")
    (run / "segments").symlink_to(scratch)
    assert simkit.open_run(run).identical(whole)
    (run / "checkpoint.npz").unlink()
    assert simkit.resume(run).identical(whole)
    assert (run / "segments").is_symlink() and (tmp_path / "scratch" / "000020.npz").exists() is False
    with pytest.raises(UserError, match=r"holds files that no run wrote \(segments\)"):
        simkit.run(toy(), output=run, overwrite=True)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UserError, match="segments is a symbolic link, and simkit needs a folder there"):
        simkit.open_run(run)


def test_a_manifest_emptied_by_a_power_failure_is_taken_from_its_copy(finished, tmp_path):
    whole = simkit.open_run(finished)

    def survives(names):
        folder = shutil.copytree(finished, tmp_path / "_".join(names))
        for name in names:
            (folder / name).write_bytes(b"")
        with pytest.warns(UserWarning, match="manifest_copy.json takes the place"):
            opened = simkit.open_run(folder)
        with pytest.warns(UserWarning, match="manifest_copy.json takes the place"), RunDirectory.open(folder).locked():
            pass
        return opened.identical(whole) and (folder / names[0]).read_bytes() == (finished / names[0]).read_bytes()

    assert not misses([(["manifest.json"],), (["scenario.toml"],), (["manifest.json", "scenario.toml"],)], survives)
    folder = shutil.copytree(finished, tmp_path / "both")
    for name in ("manifest.json", "manifest_copy.json"):
        (folder / name).write_bytes(b"")
    with pytest.raises(UserError, match=r"both cannot be read back .* run the scenario again"):
        simkit.open_run(folder)


def test_files_that_nfs_keeps_do_not_block_overwriting(run):
    (run / "segments" / ".nfs00000000018d8c5f00000001").write_text("")
    simkit.run(toy(seed=3), output=run, overwrite=True)
    assert RunDirectory.open(run).scenario().run.seed == 3


@every("length", [243, 250, 255])
def test_the_longest_names_of_folders_are_written(length, tmp_path):
    begun(tmp_path / ("x" * length), toy())
    assert [len(path.name) for path in tmp_path.glob("x*")][-1] <= 255


def test_an_output_that_is_a_link_to_itself_is_refused_in_one_line(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match=r"loop cannot be written: .*; choose another with output=") as caught:
        simkit.run(toy(), output=tmp_path / "loop")
    assert "\n" not in str(caught.value)


def test_another_kind_of_device_is_reported(stored):
    told = []
    stored.manifest["devices"][:] = ["cuda:0 NVIDIA H100"]
    stored.warn_of_changes(told.append)
    assert len(told) == 1 and "cuda NVIDIA H100 -> cpu" in told[0]
    # Earlier versions stored no models.
    stored.manifest["devices"][:] = ["cpu:0"]
    stored.warn_of_changes(told.append)
    assert len(told) == 1


def test_pictures_are_written_without_locks_beside_those_of_other_writers(tmp_path, monkeypatch):
    from simkit.render.video import whole_file

    def refuse(file, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    name = "x" * 251 + ".gif"
    other = tmp_path / f".{name[:20]}.1.partial"
    other.write_bytes(b"of another writer")
    with pytest.warns(UserWarning, match="has no locks"), whole_file(tmp_path / name) as partial:
        partial.write_bytes(b"picture")
    assert (tmp_path / name).read_bytes() == b"picture" and other.exists()
