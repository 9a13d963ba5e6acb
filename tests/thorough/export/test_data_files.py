"""Files of other formats hold the data of their results."""

import numpy as np
import pytest
import xarray

from simkit.export import data_file
from tests.export.test_data_files import sweep  # noqa: F401


@pytest.mark.parametrize("to", ["netcdf", "zarr"])
def test_netcdf_and_zarr_hold_the_whole_result(to, flow, sweep, tmp_path):
    for name, result in (("run", flow[0]), ("sweep", sweep)):
        path = data_file(result, to, tmp_path / name)
        found = xarray.open_zarr(path, consolidated=False) if to == "zarr" else xarray.open_dataset(path)
        for variable in result.data_vars:
            expected = result[variable].values
            given = found[variable].values.astype(expected.dtype)
            np.testing.assert_array_equal(given, expected)
            assert found[variable].attrs.get("units") == result[variable].attrs.get("units")
        assert float(found.attrs["time_step"])
