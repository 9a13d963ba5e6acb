"""Relaxations whose curvature at the start, or far from the particles, must not set what is a small force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.converge import converge
from simkit.core.settings import read
from simkit.core.status import Status
from simkit.molecular import potentials
from simkit.molecular.composed.settings import SETTINGS
from simkit.molecular.composed.system import composition

pytestmark = pytest.mark.usefixtures("x64")


def test_a_particle_that_no_field_holds_is_not_at_rest():
    simulation = molecular.system(
        particles={"A": {"count": 1}},
        start={"positions": [[1, 2]]},
        fields=[{"energy": "g*y"}],
        dimension=2,
        parameters={"g": 0.1},
    )
    params = simulation.params
    found = jax.jit(lambda key: converge(simulation, 50)(simulation.init(params, key), params))(jax.random.key(0))
    assert int(found.status) == Status.MAX_STEPS


RESCALED = {
    "a potential by name": ([{"potential": "lennard_jones"}], [], None),
    "an expression with a minimum": ([{"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"}], [], None),
    "a repulsion in a field": (
        [{"energy": "epsilon*(sigma/r)**12"}],
        [{"energy": "epsilon*(x**2 + y**2)/sigma**2"}],
        None,
    ),
    "fields alone": ([], [{"energy": "epsilon*(cosh(x/sigma) + 2*cosh(y/sigma))"}], None),
    "a scale of one's own": (
        [{"energy": "epsilon*(sigma/r)**12"}],
        [{"energy": "epsilon*(x**2 + y**2)/sigma**2"}],
        {"length": "sigma", "stiffness": "100*epsilon/sigma**2"},
    ),
}


def test_iterations_do_not_change_with_the_units():
    """Energies, lengths and masses times 10 or a tenth: the same iterations within 1 % for each kind of scale."""
    missed = []
    for case, (interactions, fields, scale) in RESCALED.items():
        simulation = molecular.system(
            particles={"A": {"count": 4, "mass": "mass"}},
            dimension=2,
            start={"positions": [[f"{x}*sigma", f"{y}*sigma"] for x, y in ((0, 0), (1.3, 0.1), (0.4, 1.2), (1.6, 1))]},
            interactions=interactions,
            fields=fields,
            relax={"minimizer": "fire", "force_tolerance": 1e-9} | ({"scale": scale} if scale else {}),
            parameters={"epsilon": 1.0, "sigma": 1.0, "mass": 1.0},
        )

        def run(values, simulation=simulation):
            params = dict(zip(("epsilon", "sigma", "mass"), values, strict=True))
            found = converge(simulation, 3000)(simulation.init(params, jax.random.key(0)), params)
            return found.iterations, found.status

        units = jnp.array([[1, 1, 1], [10, 10, 10], [10, 0.1, 1], [0.1, 10, 0.1]], float)
        iterations, status = jax.jit(lambda units, run=run: jax.lax.map(run, units))(units)
        if (status != Status.CONVERGED).any() or (abs(iterations - iterations[0]) > 0.01 * iterations[0]).any():
            missed.append((case, iterations.tolist(), status.tolist()))
    assert not missed


BONDS = {
    "lennard_jones": (potentials.lennard_jones(), {"epsilon": 1.3, "sigma": 0.8}),
    "mie": (potentials.mie(9, 4), {"epsilon": 1.3, "sigma": 0.8}),
    "morse": (potentials.morse(), {"epsilon": 1.3, "sigma": 0.8, "rho": 5.0}),
    "morse_diatomic": (potentials.morse_diatomic(), {"depth": 1.3, "bond_length": 0.8, "alpha": 5.0}),
}


def test_potentials_declare_their_minimum_and_its_curvature():
    @jax.jit
    def slopes():
        found = {}
        for name, (potential, parameters) in BONDS.items():
            length, stiffness = potential.bond(**parameters)
            push, bend = jax.jvp(lambda r, u=potential, p=parameters: u.force(r, **p), (length,), (jnp.ones(()),))
            found[name] = (push / (stiffness * length), -bend / stiffness)
        return found

    for name, (push, bend) in slopes().items():
        # Of forces of 72 epsilon / sigma the round-off is left.
        assert abs(float(push)) < 1e-14 and float(bend) == pytest.approx(1, rel=1e-12), name


def test_the_scale_of_an_expression_is_that_of_the_potential_by_name():
    def scale(interaction, **values):
        settings = {
            "particles": {"A": {}},
            "interactions": [interaction | {"cutoff": "3*sigma"}],
            "start": {"lattice": "square", "repeats": [6, 6], "spacing": "1.3*sigma"},
        }
        params = {name: jnp.asarray(value) for name, value in values.items()}
        return np.array(composition(read(settings, SETTINGS), params).scale(params))

    typed = {"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"}
    found = scale(typed, epsilon=1.0, sigma=1.0)
    np.testing.assert_allclose(found, scale({"potential": "lennard_jones"}, epsilon=1.0, sigma=1.0), rtol=1e-6)
    # Another unit of energy and length.
    np.testing.assert_allclose(scale(typed, epsilon=3.0, sigma=2.0), found * [2, 3 / 4], rtol=1e-9)
