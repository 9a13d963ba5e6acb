"""Rigid water from a scenario's data."""

import jax
import numpy as np
import pytest

from simkit.molecular import system
from tests.molecular.description.test_molecules import RIGID


def test_rigid_water_keeps_its_lengths_and_energy_and_is_differentiable_by_them():
    with jax.enable_x64(True):
        water = system(**RIGID)

        @jax.jit
        def run(length):
            params = water.params | {"r_OH": length}
            start = water.init(params, jax.random.key(0))
            end = jax.lax.fori_loop(0, 20, lambda _, state: water.step(state, params), start)
            return *(water.diagnose(state, params)["energy"] for state in (start, end)), end

        before, after, end = run(1.0)
        kinetic = float(water.diagnose(end, water.params)["kinetic_energy"])
        assert float(water.diagnose(end, water.params)["bond_error"]) < 1e-12
        assert abs(float(after - before)) < 2e-3 * kinetic
        sides = np.linalg.norm(np.diff(end.position.reshape(8, 3, 3)[:, [0, 1, 2, 0]], axis=1), axis=-1)
        np.testing.assert_allclose(sides, np.broadcast_to([1, 1.63298, 1], (8, 3)), rtol=1e-12)
        slope = jax.jit(jax.jacfwd(lambda length: run(length)[1]))(1.0)
        differences = (run(1 + 1e-5)[1] - run(1 - 1e-5)[1]) / 2e-5
        assert float(slope) == pytest.approx(float(differences), rel=1e-6)
