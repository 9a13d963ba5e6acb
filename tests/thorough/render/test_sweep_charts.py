"""Charts of sweeps over one, two and more parameters."""

import itertools

import numpy as np

from tests.render.test_sweep_charts import check_long_names
from tests.tables import every


@every("least, span", [(3e-5, 3.5), (50, 29), (3e-5, 1e6)])
def test_numbers_along_a_geometric_axis_stand_apart(least, span, drawn):
    for axes in drawn({"reynolds": np.geomspace(least, span * least, 9)}, dict.fromkeys("abcd", np.ones((9, 1))))[2:]:
        low, high = axes.get_xlim()
        ticks = [*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks()]
        labels = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
        assert len(boxes) >= 2
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


@every("count, parameters", [(5, 1), (1, 2), (1, 8)])
def test_any_number_of_long_names_is_drawn_without_overlap(count, parameters, drawn):
    check_long_names(count, parameters, drawn)
