"""Charts of sweeps over one, two and more parameters."""

import numpy as np
import pytest

from tests.render.test_sweep_charts import check_long_names, grid


def test_a_parameter_that_does_not_vary_and_a_result_without_values_are_drawn(drawn):
    points = {"a": np.arange(4.0), "b": np.ones(4), "c": np.geomspace(1, 1000, 4)}
    for values in (np.full((4, 1), np.nan), np.full((4, 1), 2.0)):
        drawn(points, {"x": values})
        drawn(grid([1.0], [2.0, 3.0, 4.0, 5.0]), {"x": values})


@pytest.mark.parametrize("parameters", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, 5, 13])
def test_any_number_of_long_names_is_drawn_without_overlap(count, parameters, drawn):
    check_long_names(count, parameters, drawn)
