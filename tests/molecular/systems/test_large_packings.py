"""Packings large enough for neighbor lists, against sums over all pairs at every step."""

import jax
import pytest

from simkit.errors import UserError
from simkit.molecular import jamming
from tests.molecular.packings import packing


def test_a_cell_narrower_than_two_disks_is_refused_in_one_line(x64):
    simulation = packing(particles=16)
    simulation.check(simulation.params, jax.random.key(0))
    dense = simulation.with_params(packing_fraction=8.0, diameter_ratio=2.0)
    with pytest.raises(UserError, match=r"cutoff of 2 reaches beyond half the cell, whose narrowest width is 1\.98"):
        simulation.check(dense.params, jax.random.key(0))


def test_a_density_with_too_small_a_box_is_refused_in_one_line(x64):
    simulation = jamming(particles=16)
    simulation.check(simulation.params, jax.random.key(0))
    # Eight disks of either size make a box of side (pi / 4 * 8 * (1 + 4) / 8)^(1/2) = 1.98.
    dense = simulation.with_params(packing_fraction=8.0, diameter_ratio=2.0)
    with pytest.raises(
        UserError, match=r"16 particles a box 1\.98 small diameters wide; it must be 4 .*raise particles"
    ):
        simulation.check(dense.params, jax.random.key(0))
    with pytest.raises(UserError, match=r"packing_fraction = -1 .* must be positive"):
        simulation.check(simulation.with_params(packing_fraction=-1.0).params, jax.random.key(0))
