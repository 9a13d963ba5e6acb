"""Settings that a system cannot have are refused in one line."""

import jax
import pytest

from simkit.errors import UserError
from simkit.molecular import bubble_raft, colloid_assembly, jamming
from simkit.molecular.systems.basin_hopping import basin_hopping
from tests.molecular.packings import packing
from tests.tables import every


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
    with pytest.raises(UserError, match=r"packing_fraction = -1 leaves 16 particles a box nan"):
        simulation.check(simulation.with_params(packing_fraction=-1.0).params, jax.random.key(0))


REFUSED = [
    (packing, {"exponent": 1.0}, "interactions\\[0\\].exponent = 1 is below its lower bound 2"),
    (packing, {"force_tolerance": 0.0}, "relax.force_tolerance = 0 is below its lower bound"),
    (jamming, {"particles": 17}, "particles = 17 is not an even integer of 16"),
    (jamming, {"dimension": 3, "particles": 32}, "particles = 32 is not an even integer of 64"),
    (jamming, {"dimension": 4}, "dimension = 4 is not an integer of 2 to 3"),
    (jamming, {"exponent": 1.5}, "exponent = 1.5 is below its lower bound 2"),
    (jamming, {"force_tolerance": 0.1}, "force_tolerance = 0.1 is above its upper bound 0.01"),
    (jamming, {"minimizer": "newton"}, "unknown minimizer"),
    (bubble_raft, {"repeats": (3, 3)}, r"repeats\[0\] = 3 is not an integer of at least 4"),
    (bubble_raft, {"repeats": (10,)}, "not a list of 2 entries"),
    (bubble_raft, {"arrangement": -1}, "arrangement = -1 is not an integer of at least 0"),
    (bubble_raft, {"exponent": 1.5}, "exponent = 1.5 is below its lower bound 2"),
    (bubble_raft, {"force_tolerance": 2.0}, "force_tolerance = 2 is above its upper bound"),
    (colloid_assembly, {"repeats": (5,)}, "not a list of 2 entries"),
    (colloid_assembly, {"repeats": (3, 2)}, "the cut-off of 3 needs 6"),
    (colloid_assembly, {"start": "honycomb"}, "start = 'honycomb' is unknown; did you mean 'honeycomb'"),
    (colloid_assembly, {"pattern": -1}, "pattern = -1 is not an integer of at least 0"),
    (colloid_assembly, {"switch_on": 3.5}, "switch_on = 3.5 is above its upper bound 2.97"),
    (basin_hopping, {"hops": 0}, "hops = 0 is not an integer of at least 1"),
    (basin_hopping, {"quench_tolerance": 2.0}, "quench_tolerance = 2 is above its upper bound"),
    (basin_hopping, {"force_tolerance": 0.0}, "force_tolerance = 0 is not above 0"),
    (basin_hopping, {"quench_steps": 0}, "quench_steps = 0 is not an integer of at least 1"),
    (basin_hopping, {"particles": 1}, "particles = 1 is not an integer of 2"),
    (basin_hopping, {"potential": "mors"}, "did you mean 'morse'"),
]


@every("system, wrong, message", REFUSED)
def test_settings_that_a_system_cannot_have_are_refused(x64, system, wrong, message):
    with pytest.raises(UserError, match=message):
        system(**wrong)
