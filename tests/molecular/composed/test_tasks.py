"""Quantities that mean the same whatever is done with the particles."""

import jax
import pytest

from simkit import molecular

DYNAMICS = {"time_step": 0.01, "temperature": 0.7}


@pytest.mark.parametrize("task", ["relax", "dynamics", ["dynamics", "relax"]], ids=str)
def test_potential_energy_is_that_of_the_positions_in_every_task(x64, task):
    """Two particles 1.5 apart on a spring of length 1: U = 0.5 0.5^2, while ``energy`` of dynamics adds motion."""
    moves = task != "relax"
    settings = {"dynamics": DYNAMICS | ({"steps": 3} if task != "dynamics" else {})} if moves else {}
    simulation = molecular.system(
        dimension=2,
        particles={"A": {"count": 2}},
        start={"positions": [[0.0, 0.0], [1.5, 0.0]]},
        interactions=[{"energy": "0.5*stiffness*(r - 1)**2"}],
        task=task,
        parameters={"stiffness": 1.0},
        **settings,
    )
    numbers = simulation.diagnose(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    assert numbers["potential_energy"] == pytest.approx(0.125)
    assert numbers["potential_energy_per_particle"] == pytest.approx(0.0625)
    assert simulation.quantities["potential_energy"].unit == "energy"
