"""Quantities that mean the same whatever is done with the particles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.rollout import segment

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


def displaced(**more):
    """Two free particles and a third, after 1 unit of time at the velocities of temperature 0.5 or in its bath."""
    simulation = molecular.system(
        dimension=2,
        particles={"A": {"count": 2}, "B": {"count": 1, "frozen": more.pop("frozen", False)}},
        start={"positions": [[0.0, 0.0], [4.0, 0.0], [8.0, 0.0]]},
        interactions=[{"energy": "weight*exp(-r)"}],
        fields=more.pop("fields", []),
        observed=["displacement"],
        task="dynamics",
        dynamics={"time_step": 0.05, "temperature": 0.5, **more},
        parameters={"weight": 0.0},
    )
    start = simulation.init(simulation.params, jax.random.key(1))
    end = jax.jit(segment(simulation, 20))(start, simulation.params)
    away = jnp.linalg.norm(end.position - start.position, axis=1)
    return simulation.observe(end, simulation.params)["displacement"], away


@pytest.mark.parametrize(
    "more",
    [{"frozen": True}, {"method": "langevin", "friction": 1.0}, {"fields": [{"energy": "weight*x"}]}],
    ids=["frozen", "bath", "field"],
)
def test_displacement_is_from_the_start_where_something_holds_the_particles(x64, more):
    found, away = displaced(**more)
    assert found == pytest.approx(np.asarray(away), abs=1e-12)


def test_displacement_leaves_out_a_common_drift_of_free_particles(x64):
    found, away = displaced()
    # Free particles start without momentum, so that there is no drift to leave out.
    assert found == pytest.approx(np.asarray(away), abs=1e-12)
