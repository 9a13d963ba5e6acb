"""Mistakes in the sizes of bodies held by an immersed boundary."""

from tests.flow.description import test_mistakes as quick
from tests.flow.flows import over


@over(quick.SIZES)
def test_sizes_of_immersed_bodies_that_are_not_above_zero_are_refused(body, message):
    return quick.test_sizes_of_bodies_that_are_not_above_zero_are_refused.check("immersed_boundary", body, message)
