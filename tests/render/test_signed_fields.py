"""Signed fields: a diverging color map with zero in its middle, unless the scenario names another."""

import numpy as np

from simkit.render.color import color_scale
from tests.tables import every


def scale(values, colormap=None, limits=None, signed=True):
    return color_scale(np.array(values), colormap, limits, default="inferno", signed=signed)


def test_zero_is_in_the_middle_of_a_signed_color_scale():
    found = scale([-1.0, 0.0, 3.0])
    assert (found.colormap.name, found.low, found.high) == ("RdBu_r", -3.0, 3.0)


@every(
    ("values", "more", "name", "limits"),
    [
        ([0.0, 3.0], {}, "inferno", (0.0, 3.0)),
        ([-3.0, -1.0], {}, "inferno", (-3.0, -1.0)),
        # An undershoot of 1 % is none of the physics.
        ([-0.03, 3.0], {}, "inferno", (-0.03, 3.0)),
        ([-1.0, 3.0], {"colormap": "viridis"}, "viridis", (-1.0, 3.0)),
        ([-1.0, 3.0], {"limits": (-2.0, 2.0)}, "RdBu_r", (-2.0, 2.0)),
        ([-1.0, 3.0], {"limits": (0.0, 2.0)}, "inferno", (0.0, 2.0)),
        ([-1.0, 3.0], {"signed": False}, "inferno", (-1.0, 3.0)),
        ([0.0, 0.0], {}, "inferno", (0.0, 1.0)),
    ],
)
def test_all_else_keeps_its_map_and_its_range(values, more, name, limits):
    found = scale(values, **more)
    assert (found.colormap.name, found.low, found.high) == (name, *limits)
