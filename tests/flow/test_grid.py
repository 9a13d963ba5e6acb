import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.grid import axis_of_faces, bounded_axis, periodic_axis, refined_axis
from tests.tables import every


def test_axes_hold_their_cells_between_their_ends():
    faces = [0.0, 1.0, 1.5, 2.5, 4.0]
    for axis in (
        periodic_axis(4, 4.0),
        bounded_axis(4, 4.0),
        bounded_axis(4, 4.0, stretching=2.0),
        axis_of_faces(faces),
    ):
        assert axis.cells == 4 and axis.length == pytest.approx(4, rel=1e-15)
        assert axis.widths.sum() == pytest.approx(4, rel=1e-15)
        assert np.all((axis.faces[:-1] < axis.centers) & (axis.centers < axis.faces[1:]))
    assert len(periodic_axis(4, 4.0).distances) == len(periodic_axis(4, 4.0).points) == 4
    assert len(bounded_axis(4, 4.0).distances) == 3 and len(bounded_axis(4, 4.0).points) == 5


def test_stretched_axis_is_its_own_mirror_image_and_finest_at_its_ends():
    axis = bounded_axis(33, 3.0, -1.5, stretching=2.0)
    assert np.array_equal(axis.faces, -axis.faces[::-1])
    assert np.all(np.diff(axis.widths[:17]) > 0)
    # The slope of tanh(2 s)/tanh(2) at s = 15.5/16.5 is 0.19: cells there are 5.2 times finer than the mean.
    assert axis.widths[0] == pytest.approx(3 / 33 * 2 / np.tanh(2) / np.cosh(2 * 32 / 33) ** 2, rel=0.01)
    assert not axis.uniform and bounded_axis(33, 3.0).uniform


def test_refined_axis_has_equal_cells_in_its_refined_part_and_longer_ones_outside():
    axis = refined_axis(0.1, (1.0, 2.0), 12.0, 0.05, -1.0)
    assert axis.faces[0] == -1 and axis.faces[-1] == 11
    inside = (axis.centers > 1) & (axis.centers < 2)
    assert inside.sum() == 10 and axis.widths[inside] == pytest.approx(0.1, rel=1e-12)
    away = np.maximum(np.maximum(1 - axis.centers, axis.centers - 2), 0)
    # Their number is rounded: by less than half a cell of the 30 below and 73 above.
    assert axis.widths == pytest.approx(0.1 + 0.05 * away, rel=0.02)
    assert refined_axis(0.1, (0.0, 0.5), 2.0, 0.0).widths == pytest.approx(0.1, rel=1e-12)


@every(
    [
        (lambda: periodic_axis(8, 5e-324), "length = 4.94066e-324 is not positive; choose a value above 0"),
        (lambda: bounded_axis(8, 1e300), "width of a cell = 1.25e"),
        (lambda: periodic_axis(8, 1.0, 1e30), "width of a cell = 0 is below its lower bound"),
        (lambda: periodic_axis(3, 1.0), "cells = 3 is not an integer from 4 to 16384"),
        (lambda: bounded_axis(8, -1.0), "length = -1 is not positive"),
        (lambda: bounded_axis(8, 1.0, stretching=7.0), "stretching = 7 is above its upper bound 6"),
        (lambda: refined_axis(0.1, (0.5, 2.5), 2.0, 0.1), "an end of around = 2.5 is above its upper bound 2"),
        (lambda: refined_axis(0.3, (0.5, 1.5), 2.0, 0.1), "cell = 0.3 does not divide"),
        (lambda: refined_axis(0.0, (0.5, 1.5), 2.0, 0.1), "cell = 0 is not positive"),
        (lambda: refined_axis(0.1, (0.5, 1.5), 2.0, -0.1), "growth = -0.1 is below its lower bound 0"),
        (lambda: refined_axis(0.1, (0.5, 1.5), 2.0, "little"), "growth: .*little"),
        (lambda: axis_of_faces([0, 1, 2]), "at least 5 increasing positions"),
        (lambda: axis_of_faces("faces"), "not a list of numbers"),
        (lambda: axis_of_faces([0, 1, 3, 2, 4]), r"faces\[2\] = 3 is followed by 2"),
        (lambda: axis_of_faces([0, 1, float("nan"), 2, 4]), r"faces\[1\] = 1 is followed by nan"),
    ]
)
def test_bad_axes_are_refused_in_one_line(make, message):
    with pytest.raises(UserError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
