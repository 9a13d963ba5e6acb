"""Parameters of 0, 1, 2 and 3 dimensions in runs, sweeps, optimizations, storage and export."""

import json

import numpy as np

from simkit.storage.datasets import attribute
from tests.tables import every


@every("value", [1.5, 3, True, "word", "", 2**32 - 1, (), (1, 2.5), ((1, 2), (3, 4)), ("a", "b"), (True,)])
def test_every_plain_value_can_be_stored_as_an_attribute(value):
    import xarray

    stored = xarray.Dataset(attrs={"value": attribute(value)}).to_netcdf(engine="scipy")
    found = xarray.open_dataset(stored, engine="scipy").attrs["value"]
    if value == 2**32 - 1:
        value = str(value)  # NetCDF has no larger integers than 2**31 - 1
    deep = isinstance(value, tuple) and (not value or not isinstance(value[0], int | float) or value == (True,))
    np.testing.assert_array_equal(np.asarray(json.loads(found) if deep else found), np.asarray(value))
