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


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "flow"
    simkit.run(
        "channel_flow", steps=20, every=10, output=folder, **{"config.axes.x.cells": 8, "config.axes.y.cells": 6}
    )
    return folder


@pytest.fixture(scope="module")
def balls():
    return simkit.run("newtons_cradle", steps=20, every=10)


@pytest.fixture(scope="module")
def sweep():
    return simkit.sweep("bouncing_ball", {"launch_speed": [3.0, 4.0]}, seeds=2, steps=30, every=10)


@pytest.mark.parametrize("to", ["netcdf", "zarr"])
def test_netcdf_and_zarr_hold_the_whole_result(to, flow, sweep, tmp_path):
    for name, result in (("run", simkit.open_run(flow)), ("sweep", sweep)):
        path = data_file(result, to, tmp_path / name)
        found = xarray.open_zarr(path, consolidated=False) if to == "zarr" else xarray.open_dataset(path)
        for variable in result.data_vars:
            expected = result[variable].values
            given = found[variable].values.astype(expected.dtype)
            np.testing.assert_array_equal(given, expected)
            assert found[variable].attrs.get("units") == result[variable].attrs.get("units")
        assert float(found.attrs["restitution" if name == "sweep" else "reynolds"])


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_a_table_has_a_row_for_each_frame_or_member(to, flow, sweep, tmp_path):
    import pandas

    read = pandas.read_csv if to == "csv" else pandas.read_parquet
    run = simkit.open_run(flow)
    found = read(data_file(run, to, tmp_path / "run"))
    assert len(found) == 3
    np.testing.assert_allclose(found["kinetic_energy"], run["kinetic_energy"], rtol=1e-6)
    np.testing.assert_allclose(found["time"], run["time"], rtol=1e-6)
    found = read(data_file(sweep, to, tmp_path / "sweep"))
    assert len(found) == 4
    assert list(found["status"]) == ["ok"] * 4
    assert sorted(zip(found["launch_speed"], found["seed"], strict=True)) == [(3, 0), (3, 1), (4, 0), (4, 1)]
    at = found[(found["launch_speed"] == 4) & (found["seed"] == 1)]["height"].item()
    np.testing.assert_allclose(at, sweep["height"].sel(launch_speed=4.0, seed=1)[-1], rtol=1e-12)


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
    run = simkit.open_run(flow)
    folder = data_file(run, "vtk", tmp_path / "vtk")
    listed = xml.etree.ElementTree.parse(folder / "frames.pvd").iter("DataSet")
    listed = {float(one.get("timestep")): (folder / one.get("file")) for one in listed}
    np.testing.assert_allclose(sorted(listed), run["time"], rtol=1e-6)
    arrays = appended(listed[max(listed)])
    # The first axis runs fastest in VTK, as y, x do in a data set.
    np.testing.assert_array_equal(arrays["u"][:, 0], run["u"].values[-1].ravel())
    np.testing.assert_array_equal(arrays["velocity"][:, 1], run["v"].values[-1].ravel())
    assert not arrays["velocity"][:, 2].any()


def test_bodies_are_points_in_vtk(balls, tmp_path):
    folder = data_file(balls, "vtk", tmp_path / "vtk")
    files = sorted(folder.glob("frame_*.vtu"))
    assert len(files) == balls.sizes["time"]
    arrays = appended(files[-1])
    np.testing.assert_array_equal(arrays["points"], balls["position"].values[-1])
    np.testing.assert_array_equal(arrays["velocity"], balls["velocity"].values[-1])
    np.testing.assert_array_equal(arrays["radius"][:, 0], balls["radius"].values[-1])


@pytest.mark.parametrize("to", ["csv", "netcdf", "parquet", "vtk"])
def test_earlier_data_are_replaced_only_when_asked(to, flow, tmp_path):
    run, path = simkit.open_run(flow), tmp_path / "out"
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
    run, folder = simkit.open_run(flow), tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="mine is not a file, and overwrite=True replaces a file"):
        data_file(run, "csv", folder, overwrite=True)
    with pytest.raises(UserError, match="mine holds no earlier export that overwrite=True replaces"):
        data_file(run, "vtk", folder, overwrite=True)
    assert (folder / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize("to", ["csv", "netcdf", "parquet"])
@pytest.mark.parametrize("content", [b"", b"mine", b"time,speed\n0,1\n", b"CDF\x01mine", b"PAR1mine"])
def test_files_that_no_export_wrote_are_kept(to, content, flow, tmp_path):
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(UserError, match="notes is no earlier export that overwrite=True replaces; choose another"):
        data_file(simkit.open_run(flow), to, path, overwrite=True)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("to", "name"), [("csv", "a.parquet"), ("netcdf", "a.csv"), ("zarr", "a.nc"), ("vtk", "a.csv")]
)
def test_endings_of_another_format_are_refused(to, name, flow, tmp_path):
    with pytest.raises(UserError, match=f"{name} has the ending of .*, and {to} is asked for; choose another"):
        data_file(simkit.open_run(flow), to, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_refused_data_file_leaves_nothing(flow, sweep, tmp_path, monkeypatch):
    run = simkit.open_run(flow)
    with pytest.raises(UserError, match="'netcfd' is not a format; did you mean 'netcdf'"):
        data_file(run, "netcfd", tmp_path / "a")
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UserError, match="there exists; choose another"):
        data_file(run, "csv", tmp_path / "there")
    with pytest.raises(UserError, match="not a sweep or an optimization"):
        data_file(sweep, "vtk", tmp_path / "b")
    with pytest.raises(UserError, match="cannot write"):
        data_file(run, "zarr", tmp_path / "there" / "b")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(UserError, match=r"zarr needs the package zarr; install it with: pip install 'simkit\[data\]'"):
        data_file(run, "zarr", tmp_path / "c")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_command_line_writes_to_the_output_path(flow, tmp_path, capsys):
    assert main(["export", str(flow), "--to", "csv", "-o", str(tmp_path / "run.csv")]) == 0
    assert "run.csv" in capsys.readouterr().out
    assert main(["export", str(flow), "--to", "csv", "-o", str(tmp_path / "run.csv")]) == 2
    assert "choose another file with --output" in capsys.readouterr().err
    assert main(["export", str(flow), "--to", "netcdf", "--what", "step"]) == 2
