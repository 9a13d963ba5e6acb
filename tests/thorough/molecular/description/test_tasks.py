"""Quantities that mean the same whatever is done with the particles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.core.rollout import segment


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


def test_a_run_that_ends_before_its_relaxation_begins_did_not_converge():
    simulation = molecular.system(
        particles={"A": {"count": 4}},
        start={"lattice": "square", "repeats": [2, 2]},
        interactions=[{"energy": "4*epsilon*(1/r**12 - 1/r**6)", "cutoff": 2.5}],
        cell={"lengths": [6, 6]},
        task=["dynamics", "relax"],
        dynamics={"time_step": 0.001, "temperature": 0.1, "steps": 30},
        parameters={"epsilon": 1.0},
    )
    assert simkit.run(simulation, steps=20).attrs["status"] == "max_steps"
