import functools
import io
import json
import os
import socket
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.storage.files import (
    UNBOUND,
    DamagedFileError,
    Layout,
    Seal,
    open_regular,
    read_arrays,
    read_json,
    remove_leftovers,
    sealed,
    write_arrays,
    write_bytes,
    write_json,
)
from tests.tables import every

ARRAYS = {
    "segment": np.asarray(3),
    "state.position": np.linspace(-1.0, 1.0, 6).reshape(2, 3),
    "state.key": np.asarray([1, 2], np.uint32),
    "state.resting": np.asarray([True, False]),
    "observed.none": np.zeros((0, 4), np.float32),
    "observed.fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
}


ODD_FILES = {
    "link": lambda path, target: path.symlink_to(target),
    "dangling link": lambda path, target: path.symlink_to("nowhere"),
    "pipe": lambda path, target: os.mkfifo(path),
    "folder": lambda path, target: path.mkdir(),
    "socket": lambda path, target: socket.socket(socket.AF_UNIX).bind(str(path)),
}


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


def test_arrays_are_read_back_unchanged(tmp_path):
    write_arrays(tmp_path / "a.npz", ARRAYS)
    assert_same(read_arrays(tmp_path / "a.npz"), ARRAYS)


def test_arrays_are_an_ordinary_npz_archive(tmp_path):
    write_arrays(tmp_path / "a.npz", ARRAYS)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert_same(dict(archive), ARRAYS)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.testzip() is None


def test_same_arrays_give_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_arrays(tmp_path / name, ARRAYS)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_every_truncation_is_detected(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, ARRAYS)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(DamagedFileError):
            read_arrays(path)


def test_missing_file_is_detected(tmp_path):
    for path in (tmp_path / "missing.npz", tmp_path / "missing" / "a.npz"):
        with pytest.raises(DamagedFileError, match="No such file"):
            read_arrays(path)


@every("seal", [Seal("ab", "segment 2"), Seal("ab", "checkpoint"), Seal("cd", "segment 3")])
def test_archive_of_another_run_or_file_is_refused(seal, tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, ARRAYS, Seal("ab", "segment 3"))
    assert_same(read_arrays(path, Seal("ab", "segment 3")), ARRAYS)
    with pytest.raises(DamagedFileError, match="another run" if seal.run == "cd" else f"segment 3 .*not {seal.file}"):
        read_arrays(path, seal)


def test_arrays_of_another_layout_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, {"x": np.zeros((3, 2), np.float32), "y": np.zeros(3, np.int32)})
    fitting = {"x": ("float32", ("frame", 2)), "y": ("int32", ("frame",))}
    assert set(read_arrays(path, layout=Layout(fitting))) == {"x", "y"}
    assert set(read_arrays(path, layout=Layout(fitting | {"z": ("bool", ())}, frozenset("z")))) == {"x", "y"}
    for changed, message in [
        ({"x": ("float64", ("frame", 2))}, r"array x is float32\(3, 2\), not float64\(frame, 2\)"),
        ({"x": ("float32", ("frame", 3))}, "array x is"),
        ({"x": ("float32", ("frame",))}, "array x is"),
        ({"y": ("int32", (4,))}, "array y is"),
        ({"x": ("float32", (3, "frame"))}, "array y is"),
        ({"z": ("bool", ())}, "lacks the array z"),
    ]:
        with pytest.raises(DamagedFileError, match=message):
            read_arrays(path, layout=Layout(fitting | changed))
    with pytest.raises(DamagedFileError, match="holds the unknown array y"):
        read_arrays(path, layout=Layout({"x": fitting["x"]}))


@every("kind", ODD_FILES)
def test_only_regular_files_are_read_and_replaced(kind, tmp_path):
    folder = tmp_path / kind
    folder.mkdir()
    path, target = folder / "a.npz", folder / "target"
    target.write_bytes(b"precious")
    ODD_FILES[kind](path, target)
    opened = [functools.partial(open_regular, mode=mode) for mode in ("rb", "rb+", "xb")]
    for operate in (read_arrays, read_json, lambda path: write_bytes(path, b"new"), *opened):
        with pytest.raises(UserError, match=r"a\.npz is a .*, and simkit needs a file there; remove"):
            operate(path)
    assert target.read_bytes() == b"precious"
    assert sorted(folder.iterdir()) == [path, target]


def header(shape: str, dtype: str = "'<f8'") -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def archive_of(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def overlapping_archive() -> bytes:
    """Return an archive of 1000 members that all share the same 100 kB."""
    member = header("(12500,)") + bytes(100_000)
    archive = archive_of({"state.x.npy": member})
    start = archive.index(b"PK\x01\x02")
    end = archive.index(b"PK\x05\x06")
    entries = archive[start:end] * 1000
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1000, 1000, len(entries), start, 0)
    return archive[:start] + entries + tail


HOSTILE = {
    "a deflate bomb": archive_of({"state.x.npy": header("(12500000,)") + bytes(10**8)}, zipfile.ZIP_DEFLATED),
    "a huge declared shape": archive_of({"state.x.npy": header("(1000000000000,)")}),
    "an overflowing shape": archive_of({"state.x.npy": header("(0, 10000000000000000000000000)")}),
    "a negative shape": archive_of({"state.x.npy": header("(-1, -1)") + bytes(8)}),
    "a huge item": archive_of({"state.x.npy": header("(1,)", "'V2000000000'")}),
    "a pickle": archive_of({"state.x.npy": header("(1,)", "'|O'") + b"cos\nsystem\n(S'touch /tmp/pwned'\ntR."}),
    "an evil header": archive_of({"state.x.npy": header("__import__('os').getpid()")}),
    "a deep header": archive_of({"state.x.npy": header("(" * 4000 + ")" * 4000)}),
    "another file": archive_of({"state.x.txt": b"hello"}),
    "overlapping members": overlapping_archive(),
}


@every("what", HOSTILE)
def test_hostile_archive_is_refused_without_allocating_memory(what, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(sealed(HOSTILE[what], UNBOUND))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedFileError):
            read_arrays(path)
        # A few copies of the file and its directory; nothing of the declared sizes is allocated.
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_bytes(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_a_killed_write_are_removed(tmp_path):
    (tmp_path / ".a.npz.123.tmp").write_bytes(b"half")
    (tmp_path / "a.npz").write_bytes(b"whole")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_json_has_null_for_non_finite_numbers(tmp_path):
    write_json(tmp_path / "a.json", {"x": [1.0, float("nan")], "y": float("inf"), "z": {"w": "word"}})
    strict = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert strict == {"x": [1.0, None], "y": None, "z": {"w": "word"}}
    assert read_json(tmp_path / "a.json") == strict


@every("content", [b"", b"{", b"[1]", b"\xff\xfe", b'"word"', b"[" * 200_000, b'{"a":' * 200_000])
def test_damaged_json_is_detected(content, tmp_path):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DamagedFileError):
        read_json(tmp_path / "a.json")
