"""Types of numbers: files keep every value and its type, or refuse the type by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
from simkit.export import data_file

VALUES = {
    "uint8": [200, 255],
    "uint16": [3, 60000],
    "uint32": [7, 2**32 - 1],
    "int64": [-5, 2**40],
    "uint64": [1, 2**64 - 1],
    "float16": [0.5, 6e4],
    "bool": [True, False],
}


def choosing(observed, diagnosed):
    """Return a simulation of which the parameter ``index`` chooses one of two values of each array."""

    def chosen(arrays):
        return lambda state, params: {n: jnp.asarray(a)[(params["index"] > 0.5).astype(int)] for n, a in arrays.items()}

    return simkit.Simulation(
        params={"index": simkit.Parameter(0.0, doc="which value", bounds=(0.0, 1.0))},
        init=lambda params, key: params["index"],
        step=lambda state, params: state,
        observe=chosen(observed),
        diagnose=chosen(diagnosed),
    )


def counting(dtype, values=(0, 1)):
    """Return a simulation that shows and counts two values of a type."""
    return choosing({"shown": np.asarray(values, dtype)}, {"count": np.asarray(values, dtype)})


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def test_files_of_a_sweep_keep_every_value_and_its_type(double, tmp_path):
    simulation = choosing({"shown": np.zeros(2)}, {name: np.asarray(both, name) for name, both in VALUES.items()})
    over = {"index": [0.0, 1.0]}
    in_memory = simkit.sweep(simulation, over, steps=1)
    simkit.sweep(simulation, over, steps=1, output=tmp_path / "sweep")
    opened = simkit.open_run(tmp_path / "sweep")
    exported = xarray.open_dataset(data_file(in_memory, "netcdf", tmp_path / "sweep.nc"))
    for dtype, values in VALUES.items():
        for result in (in_memory, opened):
            found = result[dtype].isel(frame=-1, seed=0)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, np.asarray(values, dtype), err_msg=dtype)
        assert opened[dtype].attrs == in_memory[dtype].attrs
        # Beyond 2**53, where float64 is too short, as text.
        found = exported[dtype].isel(frame=-1, seed=0).values.tolist()
        assert [type(given)(value) for value, given in zip(found, values, strict=True)] == values, dtype
    assert opened["status"].dtype.kind == in_memory["status"].dtype.kind == "U"


def multiples(observed, diagnosed):
    """Return a simulation whose arrays are known multiples of its parameter."""
    return simkit.Simulation(
        params={"a": 1.0},
        init=lambda params, key: params["a"],
        step=lambda state, params: state,
        observe=lambda state, params: {name: value * params["a"] * jnp.ones(1) for name, value in observed.items()},
        diagnose=lambda state, params: {name: value * params["a"] for name, value in diagnosed.items()},
    )


def test_no_array_of_a_run_takes_the_place_of_another():
    result = simkit.run(multiples({"x": 4.0, "observed_x": 5.0}, {"x": 6.0}), steps=1)
    names = {"x": 6.0, "observed_x": 5.0, "observed_observed_x": 4.0}
    assert {name: float(result[name].values.flat[-1]) for name in result.data_vars} == names
