"""Embedded-atom energies in tables: values between the points, both formats of files, and damaged ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.interactions import read_embedded_atom, tabulated_embedded_atom
from simkit.molecular.interactions.atom_tables import parse_embedded_atom
from tests.molecular.test_atom_tables import (
    CUTOFF,
    density,
    embedding,
    times_energy,
    told,
    written,
)


def cluster():
    """Return atoms none of which are as far apart as the outermost intervals of the tables."""
    for seed in range(1000):
        position = np.random.default_rng(seed).uniform(0, 2.4, (8, 3))
        apart = np.linalg.norm(position[:, None] - position, axis=-1)[np.triu_indices(8, 1)]
        if apart.min() > 0.2 and not ((apart > 2.79) & (apart < CUTOFF)).any():
            return jnp.asarray(position)
    raise AssertionError("no seed serves")


KINDS = np.array([0, 1] * 4)


def by_hand(position, at_by):
    """Return the energy atom by atom, with the density ``at_by(a, b)`` at species a by species b."""
    energy = 0.0
    for i, a in enumerate(KINDS):
        rho = 0.0
        for j, b in enumerate(KINDS):
            r = np.linalg.norm(position[i] - position[j])
            if i != j and r < CUTOFF:
                rho += density(*at_by(a, b), r)
                energy += times_energy(a, b, r) / r / 2
        energy += embedding(a, rho)
    return energy


def test_both_formats_have_the_energy_of_the_functions_they_hold(x64, tmp_path):
    position = cluster()
    for by_pair in (False, True):
        file = tmp_path / "XY.eam"
        file.write_text("\n".join(written("XY", by_pair=by_pair)) + "\n")
        tables = read_embedded_atom(file)
        acts = tabulated_embedded_atom(tables, species=KINDS)
        (energy, gradient), force = jax.jit(
            lambda x, a=acts: (jax.value_and_grad(a.energy)(x, None, {}, ()), told(a, x, {})[1])
        )(position)
        expected = by_hand(np.asarray(position), (lambda a, b: (a, b)) if by_pair else (lambda a, b: (0, b)))
        assert float(energy) == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(force, -gradient, rtol=0, atol=1e-12 * float(jnp.abs(force).max()))
    assert tables.elements == ("X", "Y") and tables.masses.tolist() == [50.0, 51.0]


def test_values_of_tables_are_differentiated(x64):
    tables = parse_embedded_atom("\n".join(written("XY", by_pair=True)), "XY.fs")
    acts = tabulated_embedded_atom(tables, species=KINDS, parameter="tables")
    position, values = cluster(), jax.tree.map(jnp.asarray, tables.values)
    energy = jax.jit(lambda values: told(acts, position, {"tables": values})[0])
    slopes = jax.jit(jax.grad(energy))(values)
    random = np.random.default_rng(3)
    along = jax.tree.map(lambda x: jnp.asarray(random.normal(size=x.shape)), values)
    expected = sum(float(jnp.sum(a * b)) for a, b in zip(*map(jax.tree.leaves, (slopes, along)), strict=True))
    step = 1e-5
    ahead, behind = (energy(jax.tree.map(lambda x, d, s=s: x + s * d, values, along)) for s in (step, -step))
    assert float(ahead - behind) / (2 * step) == pytest.approx(expected, rel=1e-6)
