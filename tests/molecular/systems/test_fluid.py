"""Lennard-Jones fluid of molecular.system: averages, with and without a bath."""

import pytest

from simkit.errors import UserError
from simkit.molecular import system
from tests.tables import every

SKIP = 5
MEANS = ["temperature", "pressure", "potential_energy_per_particle"]


def fluid(repeats=(4, 4, 4), **averages):
    """Return 256 atoms that leave their sites at constant energy, with means over the run."""
    given = {"every": 10, "skip": SKIP, "of": MEANS, "radial_distribution": {"reach": 3.0, "bins": 600}}
    return system(
        particles={"atom": {}},
        start={"lattice": "face_centered_cubic", "repeats": repeats},
        cell={"density": "density"},
        interactions=[
            {
                "potential": "lennard_jones",
                "values": {"epsilon": 1, "sigma": 1},
                "cutoff": 3.0,
                "switch_on": 2.5 / 3.0,
                "tail": True,
            }
        ],
        task="dynamics",
        dynamics={"time_step": "time_step", "temperature": "temperature"},
        observed=["displacement", "origin"],
        averages=given | averages,
        parameters={"density": 0.86, "temperature": 0.9, "time_step": 0.005},
    )


@every(
    ("values", "message"),
    [
        ({"repeats": (5, 5)}, "start.repeats"),
        ({"every": 0}, r"averages.every = 0 is not an integer of at least 1"),
        ({"of": ["presure"]}, r"averages.of.*'presure' is no diagnostic.*did you mean 'pressure'"),
        ({"radial_distribution": {"reach": 3.0, "bins": 2}}, r"averages.radial_distribution.bins = 2"),
    ],
)
def test_values_out_of_range_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        fluid(**values)


def test_averages_are_those_of_motion():
    with pytest.raises(UserError, match='averages are those of task = "dynamics"'):
        system(
            particles={"A": {"count": 2}},
            dimension=3,
            start={"radius": 2},
            interactions=[{"energy": "epsilon/r"}],
            averages={},
            parameters={"epsilon": 1.0},
        )
