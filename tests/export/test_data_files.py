"""Files of other formats hold the data of their results."""

import re
import sys
import xml.etree.ElementTree

import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.export import data_file
from tests.toys import toy


@pytest.fixture(scope="module")
def sweep(factories):
    return simkit.sweep(toy(steps=2), {"frequency": [1.0, 2.0]}, seeds=2)


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_a_table_has_a_row_for_each_frame_or_member(to, flow, sweep, tmp_path):
    import pandas

    read = pandas.read_csv if to == "csv" else pandas.read_parquet
    run = flow[0]
    found = read(data_file(run, to, tmp_path / "run"))
    assert len(found) == 3
    np.testing.assert_allclose(found["kinetic_energy"], run["kinetic_energy"], rtol=1e-6)
    np.testing.assert_allclose(found["time"], run["time"], rtol=1e-6)
    found = read(data_file(sweep, to, tmp_path / "sweep"))
    assert len(found) == 4
    assert list(found["status"]) == ["ok"] * 4
    assert sorted(zip(found["frequency"], found["seed"], strict=True)) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    at = found[(found["frequency"] == 2) & (found["seed"] == 1)]["energy"].item()
    np.testing.assert_allclose(at, sweep["energy"].sel(frequency=2.0, seed=1)[-1], rtol=1e-12)


def appended(path):
    """Return the arrays of a VTK file by name, as its header and its raw data say."""
    text = path.read_bytes()
    header, _, rest = text.partition(b'<AppendedData encoding="raw">')
    data = rest[rest.index(b"_") + 1 :]
    found = {}
    for tag in re.findall(rb"<DataArray [^>]*>", header):
        said = dict(re.findall(r'(\w+)="([^"]*)"', tag.decode()))
        if "offset" in said:
            start = int(said["offset"])
            size = int(np.frombuffer(data, "<u8", 1, start)[0])
            kind = np.dtype(said["type"].lower())
            array = np.frombuffer(data[start + 8 : start + 8 + size], kind)
            found[said["Name"]] = array.reshape(-1, int(said.get("NumberOfComponents", 1)))
    return found


def test_fields_are_a_vtk_series_with_times(flow, tmp_path):
    run = flow[0]
    folder = data_file(run, "vtk", tmp_path / "vtk")
    listed = xml.etree.ElementTree.parse(folder / "frames.pvd").iter("DataSet")
    listed = {float(one.get("timestep")): (folder / one.get("file")) for one in listed}
    np.testing.assert_allclose(sorted(listed), run["time"], rtol=1e-6)
    arrays = appended(listed[max(listed)])
    # The first axis runs fastest in VTK, as y, x do in a data set.
    np.testing.assert_array_equal(arrays["u"][:, 0], run["u"].values[-1].ravel())
    np.testing.assert_array_equal(arrays["velocity"][:, 1], run["v"].values[-1].ravel())
    assert not arrays["velocity"][:, 2].any()


def test_bodies_are_points_in_vtk(tmp_path):
    rng = np.random.default_rng(0)
    position, velocity, radius = rng.random((3, 4, 3)), rng.random((3, 4, 3)), rng.random((3, 4))
    bodies = {"position": position, "velocity": velocity}
    run = xarray.Dataset(
        {name: (("time", "body", "axis"), array) for name, array in bodies.items()}
        | {"radius": (("time", "body"), radius)},
        {"time": [0.0, 0.1, 0.2]},
    )
    files = sorted(data_file(run, "vtk", tmp_path / "vtk").glob("frame_*.vtu"))
    assert len(files) == 3
    arrays = appended(files[-1])
    np.testing.assert_array_equal(arrays["points"], position[-1])
    np.testing.assert_array_equal(arrays["velocity"], velocity[-1])
    np.testing.assert_array_equal(arrays["radius"][:, 0], radius[-1])


@pytest.mark.parametrize("to", ["csv", "netcdf", "parquet", "vtk"])
def test_earlier_data_are_replaced_only_when_asked(to, flow, tmp_path):
    run, path = flow[0], tmp_path / "out"
    data_file(run, to, path)
    before = {file.name: file.read_bytes() for file in (path.iterdir() if path.is_dir() else [path])}
    if path.is_dir():
        next(path.glob("*.vt?")).unlink()
    else:
        path.write_bytes(before["out"][:-9])
    with pytest.raises(UserError, match=r"out exists; choose another .* or pass overwrite=True to replace it"):
        data_file(run, to, path)
    data_file(run, to, path, overwrite=True)
    assert {file.name for file in (path.iterdir() if path.is_dir() else [path])} == set(before)
    assert [inner.name for inner in tmp_path.iterdir()] == ["out"]


def test_only_earlier_data_of_the_same_kind_are_replaced(flow, tmp_path):
    run, folder = flow[0], tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    for to in ("csv", "vtk"):
        with pytest.raises(UserError, match="mine is no earlier export that overwrite=True replaces"):
            data_file(run, to, folder, overwrite=True)
    assert (folder / "thesis.tex").read_text() == "mine"


def test_files_that_no_export_wrote_are_kept(flow, tmp_path):
    path = tmp_path / "notes"
    for content in (b"", b"mine", b"time,speed\n0,1\n", b"CDF\x01mine", b"PAR1mine"):
        path.write_bytes(content)
        for to in ("csv", "netcdf", "parquet"):
            with pytest.raises(
                UserError, match="notes is no earlier export that overwrite=True replaces; choose another"
            ):
                data_file(flow[0], to, path, overwrite=True)
            assert path.read_bytes() == content, (to, content)


def test_endings_of_another_format_are_refused(flow, tmp_path):
    for to, name in (("csv", "a.parquet"), ("netcdf", "a.csv"), ("zarr", "a.nc"), ("vtk", "a.csv")):
        with pytest.raises(UserError, match=f"{name} has the ending of .*, and {to} is asked for; choose another"):
            data_file(flow[0], to, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_refused_data_file_leaves_nothing(flow, sweep, tmp_path, monkeypatch):
    run = flow[0]
    with pytest.raises(UserError, match="to = 'netcfd' is unknown; did you mean 'netcdf'"):
        data_file(run, "netcfd", tmp_path / "a")
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UserError, match="there exists; choose another"):
        data_file(run, "csv", tmp_path / "there")
    with pytest.raises(UserError, match="not a sweep or an optimization"):
        data_file(sweep, "vtk", tmp_path / "b")
    for wrong, path, message in (
        (None, "b", "NoneType is no result; give what simkit.run, sweep"),
        (run, None, "path = None is of type NoneType"),
    ):
        with pytest.raises(UserError, match=message):
            data_file(wrong, "csv", path)
    for dims in ((), ("pendulum", "column")):  # positions of no points, of which no file can be made
        numbers = xarray.Dataset({"position": (("time", *dims), np.ones((2, *[1 for _ in dims])))}, {"time": [0, 1]})
        with pytest.raises(UserError, match="vtk files are made of the frames of a run, of positions or fields along"):
            data_file(numbers, "vtk", tmp_path / "b")
    with pytest.raises(UserError, match="cannot write"):
        data_file(run, "zarr", tmp_path / "there" / "b")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(UserError, match=r"zarr needs the package zarr: pip install 'simkit-physics\[data\]'"):
        data_file(run, "zarr", tmp_path / "c")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_command_line_writes_to_the_output_path(flow, tmp_path, capsys):
    assert main(["export", str(flow[1]), "--to", "csv", "-o", str(tmp_path / "run.csv")]) == 0
    assert "run.csv" in capsys.readouterr().out
    assert main(["export", str(flow[1]), "--to", "csv", "-o", str(tmp_path / "run.csv")]) == 2
    assert "choose another file with --output" in capsys.readouterr().err
    assert main(["export", str(flow[1]), "--to", "netcdf", "--what", "step"]) == 2
