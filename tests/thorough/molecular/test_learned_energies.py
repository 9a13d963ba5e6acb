"""Derivatives of what relaxed under a learned energy."""

import ase
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import molecular
from tests.molecular.test_learned_and_ase import double_precision, model, weights

__all__ = ["double_precision", "model", "weights"]


def cluster(model, weights):
    def start(params, key):
        corners = jnp.stack(jnp.meshgrid(*[jnp.arange(2.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        return 1.1 * corners[:6] + 0.02 * jnp.sin(jnp.arange(18.0).reshape(6, 3))

    return molecular.relaxation.relaxation(
        model,
        start,
        params={"weights": jax.tree.map(lambda w: w.astype(jnp.float64), weights)},
        scale=lambda params: molecular.minimizers.Scale(jnp.asarray(1.0), jnp.asarray(50.0)),
        force_tolerance=1e-13,
    )


def test_a_learned_energy_relaxes_and_derivatives_of_the_minimum_by_its_weights_are_those_of_differences(
    model, weights
):
    relaxed = cluster(model, weights)
    relaxed, _ = simkit.core.converge_with_growth(relaxed, 500)(relaxed.params, jax.random.key(0))

    @jax.jit
    def width(params):
        end = simkit.converge(relaxed, 500)(relaxed.init(params, jax.random.key(0)), params)
        position = end.state.descent.position
        return jnp.sum((position - position.mean(axis=0)) ** 2), end.status

    value, status = width(relaxed.params)
    assert status == simkit.Status.CONVERGED and 1 < value < 20
    slope = jax.jit(jax.grad(lambda params: width(params)[0]))(relaxed.params)["weights"]
    for name, entry in (("in", (3, 1)), ("out", (2,))):
        moved = [
            width({"weights": relaxed.params["weights"] | {name: relaxed.params["weights"][name].at[entry].add(step)}})
            for step in (1e-4, -1e-4)
        ]
        assert float(slope[name][entry]) == pytest.approx(float(moved[0][0] - moved[1][0]) / 2e-4, rel=1e-6, abs=1e-9)


def test_a_learned_energy_keeps_symmetries_of_its_cell_and_its_stress_is_the_derivative_of_its_energy(model, weights):
    crystal = molecular.structures.face_centered_cubic((4, 4, 4), spacing=1.2)
    position = crystal.position + 0.05 * np.random.default_rng(0).normal(size=crystal.position.shape)
    cell = crystal.cell + 0.3 * np.eye(3)[::-1]
    roomy = model.sized_like(model.prepare(position, cell, {}).resized(80))

    @jax.jit
    def evaluated(position, cell):
        neighbors = roomy.prepare(position, cell, {"weights": weights})
        return roomy.several(("energy", "force", "stress"), position, cell, {"weights": weights}, neighbors)

    energy, force, stress = evaluated(position, cell)
    moved = evaluated(position + 7 * cell[1] + 0.1, cell)
    np.testing.assert_allclose(moved[0], energy, rtol=1e-12)
    np.testing.assert_allclose(moved[1], force, atol=1e-11)
    strain = 1e-5 * np.outer([1, 0, 0], [0, 1, 0])
    ends = [evaluated(position @ (np.eye(3) + s), cell @ (np.eye(3) + s))[0] for s in (strain, -strain)]
    assert float(stress[0, 1]) == pytest.approx(float(ends[0] - ends[1]) / 2e-5 / np.linalg.det(cell), rel=1e-6)
    change = 1e-5 * np.random.default_rng(1).normal(size=position.shape)
    ends = [evaluated(position + s * change, cell)[0] for s in (1, -1)]
    assert float(ends[1] - ends[0]) / 2 == pytest.approx(float(np.sum(force * change)), rel=1e-6)
    assert np.isnan(evaluated(position, 0.3 * cell)[0])


def test_tools_of_ase_relax_a_cell_by_a_calculator_and_partly_periodic_atoms_need_an_orthorhombic_cell():
    pairs = molecular.interactions.stillinger_weber()
    silicon = ase.build.bulk("Si", a=5.6, cubic=True) * (2, 2, 2)
    silicon.calc = molecular.interactions.ase_calculator(
        pairs, {"epsilon": 2.1683, "sigma": 2.0951, "tetrahedral_strength": 21.0}
    )
    ase.optimize.BFGS(ase.filters.UnitCellFilter(silicon), logfile=None).run(fmax=1e-4)
    assert silicon.cell.lengths() / 2 == pytest.approx(5.431, abs=1e-3)
    assert silicon.get_potential_energy() / len(silicon) == pytest.approx(-4.3366, abs=1e-4)
    slab = ase.build.bulk("Si", a=5.43) * (3, 3, 3)
    slab.pbc = (True, True, False)
    slab.calc = silicon.calc
    with pytest.raises(simkit.UserError, match="not orthorhombic; give lattice vectors"):
        slab.get_potential_energy()
