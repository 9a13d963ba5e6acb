"""Conversion of states between precisions, the longer ones."""

import jax
import pytest

from simkit.core.precision import in_precision_of
from simkit.core.status import Status
from tests.core.test_precision import relaxed
from tests.molecular.packings import packing


def test_float64_continues_a_relaxation_of_float32():
    with jax.enable_x64(False):
        _, _, rough = relaxed(lambda simulation: simulation.init(simulation.params, jax.random.key(0)), 1e-4)
    assert rough.status == Status.CONVERGED
    with jax.enable_x64(True):
        simulation, start, fine = relaxed(lambda simulation: in_precision_of(simulation, rough.state), 1e-12)
        _, _, whole = relaxed(lambda simulation: simulation.init(simulation.params, jax.random.key(0)), 1e-12)
        assert fine.status == Status.CONVERGED
        fresh = simulation.init(simulation.params, jax.random.key(0))
        assert jax.tree.map(lambda leaf: leaf.dtype, start) == jax.tree.map(lambda leaf: leaf.dtype, fresh)
        # The polish takes fewer iterations than the whole way, and the minimum is the one above which float32 stopped.
        assert int(fine.iterations) < int(whole.iterations)
        found, above = (simulation.diagnose(state, simulation.params) for state in (fine.state, start))
        assert float(found["max_force"]) < 1e-12
        # Forces of 1e-4 on 16 disks give f^2 / (2 lambda) each, against modes no softer than lambda = 1e-3.
        assert 0 <= float(above["energy"] - found["energy"]) < 16 * 1e-8 / 2e-3


def test_state_of_another_simulation_is_refused(x64):
    simulation = packing(particles=16)
    with pytest.raises(ValueError, match="pytree"):
        in_precision_of(simulation, {"position": 0.0})
