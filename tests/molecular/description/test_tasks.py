"""Quantities that mean the same whatever is done with the particles."""

import jax
import pytest

from simkit import molecular

DYNAMICS = {"time_step": 0.01, "temperature": 0.7}


def test_potential_energy_is_that_of_the_positions_in_every_task(x64):
    """Two particles 1.5 apart on a spring of length 1: U = 0.5 0.5^2, while ``energy`` of dynamics adds motion."""
    for task in ("relax", "dynamics", ["dynamics", "relax"]):
        settings = {} if task == "relax" else {"dynamics": DYNAMICS | ({} if task == "dynamics" else {"steps": 3})}
        simulation = molecular.system(
            dimension=2,
            particles={"A": {"count": 2}},
            start={"positions": [[0.0, 0.0], [1.5, 0.0]]},
            interactions=[{"energy": "0.5*stiffness*(r - 1)**2"}],
            task=task,
            parameters={"stiffness": 1.0},
            **settings,
        )

        def start(params, simulation=simulation):
            numbers = simulation.diagnose(simulation.init(params, jax.random.key(0)), params)
            return numbers["potential_energy"], numbers["potential_energy_per_particle"]

        found = [float(number) for number in jax.jit(start)(simulation.params)]
        assert found == pytest.approx([0.125, 0.0625]), task
        assert simulation.quantities["potential_energy"].unit == "energy", task
