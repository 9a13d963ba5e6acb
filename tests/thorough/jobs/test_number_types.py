"""Types of numbers: files keep every value and its type, or refuse the type by name."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
from simkit.errors import UserError
from simkit.export import data_file
from tests.jobs.test_number_types import counting, named


@pytest.mark.parametrize("dtype", ["complex64", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize(
    "call", [simkit.run, lambda simulation, **rest: simkit.sweep(simulation, {"index": [0.0]}, **rest)]
)
def test_a_type_that_no_file_has_is_refused_before_the_run(dtype, call, tmp_path):
    simulation = counting(getattr(jnp, dtype))
    with pytest.raises(UserError, match=f"'shown' has type {dtype}, which runs do not store; give it (as real|in ano)"):
        call(simulation, steps=1, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    call(simulation, steps=1)


def test_netcdf_refuses_complex_numbers_and_zarr_stores_them(tmp_path):
    result = simkit.run(counting(np.complex64, [1j, 2j]), steps=1)
    with pytest.raises(UserError, match=r"NetCDF cannot store '.*', of type complex64; choose zarr"):
        data_file(result, "netcdf", tmp_path / "run.nc")
    found = xarray.open_zarr(data_file(result, "zarr", tmp_path / "run.zarr"))
    np.testing.assert_array_equal(found["count"], result["count"])


def test_seeds_reach_the_largest_one(tmp_path):
    largest = 2**32 - 1
    result = simkit.sweep(
        "bouncing_ball", {"launch_speed": [3.0]}, seeds=2, steps=3, every=3, seed=largest - 1, output=tmp_path / "sweep"
    )
    assert result["seed"].values.tolist() == [largest - 1, largest]
    assert simkit.open_run(tmp_path / "sweep")["seed"].values.tolist() == [largest - 1, largest]
    with pytest.raises(UserError, match=f"2 seeds from seed = {largest} go past {largest}; begin with a smaller seed"):
        simkit.sweep("bouncing_ball", {"launch_speed": [3.0]}, seeds=2, steps=3, seed=largest)


@pytest.mark.parametrize("to", ["netcdf", "zarr", "csv"])
def test_an_array_without_elements_is_stored(to, tmp_path):
    simulation = dataclasses.replace(
        counting("float32"), observe=lambda state, params: {"none": jnp.zeros((0, 3)), "shown": state[None]}
    )
    in_memory = simkit.sweep(simulation, {"index": [0.0, 1.0]}, steps=1)
    simkit.sweep(simulation, {"index": [0.0, 1.0]}, steps=1, output=tmp_path / "sweep")
    opened = simkit.open_run(tmp_path / "sweep")
    assert opened["none"].shape == in_memory["none"].shape == (2, 1, 0, 3)
    assert opened["none"].dtype == np.float32 and opened.equals(in_memory)
    assert data_file(opened, to, tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("observed", "diagnosed", "expected"),
    [
        ({}, {"a": 2.0, "diagnosed_a": 3.0}, {"diagnosed_a": 3.0, "diagnosed_diagnosed_a": 2.0}),
        ({}, {"diagnosed_a": 3.0, "a": 2.0}, {"diagnosed_a": 3.0, "diagnosed_diagnosed_a": 2.0}),
        ({"x": 4.0, "final_x": 5.0}, {"x": 6.0}, {"x": 6.0, "final_x": 5.0, "final_final_x": 4.0}),
        ({"x": 4.0}, {"x": 6.0, "final_x": 7.0}, {"x": 6.0, "final_x": 7.0, "final_final_x": 4.0}),
        ({"seed": 4.0, "final_seed": 5.0}, {"seed": 6.0}, {"final_seed": 5.0, "diagnosed_seed": 6.0}),
    ],
)
def test_no_array_of_a_sweep_takes_the_place_of_another(observed, diagnosed, expected, tmp_path):
    result = simkit.sweep(named(observed, diagnosed), {"a": [1.0, 2.0]}, steps=1, output=tmp_path / "sweep")
    assert len(result.data_vars) == len(observed) + len(diagnosed) + 1  # the status
    for found in (result, simkit.open_run(tmp_path / "sweep")):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name].values[1], np.full(found[name].shape[1:], 2 * value))
