"""Mistakes in a system that is given as data: one line, with the key and the column; and what potentials declare."""

import jax
import pytest

from simkit.errors import UserError
from simkit.molecular import system


def test_a_schedule_of_temperature_that_ends_before_the_run_is_refused():
    schedule = {"x": [0, 0.5], "y": [1.0, 0.1], "at": "time"}
    simulation = system(
        particles={"A": {"count": 2, "diameter": 1}},
        start={"radius": 2.0},
        interactions=[{"energy": "1/r"}],
        dimension=3,
        task="dynamics",
        dynamics={"time_step": "dt", "temperature": schedule, "method": "langevin", "friction": 1.0},
        parameters={"dt": 0.01},
    )
    simulation.check_values(simulation.params, jax.random.key(0), 50)
    with pytest.raises(UserError, match=r"ends at 0\.5, and the run at time 0\.51, where it has no value"):
        simulation.check_values(simulation.params, jax.random.key(0), 51)
