"""Joints and linkages that cannot exist are refused in one line."""

import jax.numpy as jnp
import pytest

from simkit.errors import UserError
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.systems.four_bar_linkage import four_bar_linkage
from tests.rigid.joints.scenes import key
from tests.tables import every


def test_bad_configuration_of_the_method_is_refused():
    with pytest.raises(UserError, match="iterations = 0"):
        Jointed(iterations=0)
    with pytest.raises(UserError, match="order = 3"):
        Jointed(order=3)


@every(
    ("lengths", "diagonal", "least", "most"),
    [
        # The diagonal by the law of cosines: sqrt(0.4^2 + 0.2^2 + 2 0.4 0.2 cos 60).
        ({"coupler_length": 2.0}, "0.5292", "0.02915", "1.029"),
        ({"coupler_length": 0.02}, "0.5292", "0.02915", "1.029"),
        ({"rocker_length": 0.05}, "0.5292", "0.4792", "0.5792"),
        # Bars on one line: closed, but with a rocker that would turn at an infinite rate.
        ({"crank_angle": 180.0, "coupler_length": 0.1}, "0.6", "0.1", "1.1"),
    ],
)
def test_bars_that_do_not_close_are_refused_with_the_range_of_lengths_that_close(x64, lengths, diagonal, least, most):
    simulation = four_bar_linkage()
    values = {name: jnp.asarray(value) for name, value in lengths.items()}
    params = {name: value.astype(float) for name, value in {**simulation.params, **values}.items()}
    told = rf"end of the crank is {diagonal} m .* choose coupler_length between {least} and {most} "
    with pytest.raises(UserError, match=told):
        simulation.check(params, key())


def test_a_crank_ending_at_the_other_pivot_is_refused(x64):
    params = {**four_bar_linkage().params, "crank_angle": jnp.asarray(0.0), "ground_length": jnp.asarray(0.2)}
    with pytest.raises(UserError, match="is 0 m from the pivot of the rocker; choose another crank_angle"):
        four_bar_linkage().check(params, key())
