"""Brownian dynamics: closed forms of overdamped motion, derivatives, and what a file may ask of it."""

import jax
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.molecular import system


def in_a_file(**dynamics):
    """Return particles of a file that repel each other in a plane."""
    return system(
        dimension=2,
        particles={"bead": {"count": 16}},
        start={"separation": 0.8},
        cell={"density": 0.5},
        interactions=[{"potential": "soft_sphere"}],
        task="dynamics",
        dynamics={"method": "brownian", "time_step": 0.01, "friction": 2.0, "temperature": "warm", **dynamics},
        parameters={"warm": 0.5, "epsilon": 1.0, "sigma": 1.0},
    )


def test_a_file_takes_it_without_a_barostat(x64):
    simulation = in_a_file()
    state = simulation.init(simulation.params, jax.random.key(0))
    state = jax.jit(segment(simulation, 50))(state, simulation.params)
    assert np.isfinite(state.position).all()
    assert int(simulation.status(state, simulation.params)) == 0
    with pytest.raises(UserError, match="brownian"):
        in_a_file(pressure=1.0, compressibility=1.0, barostat_time=1.0)
