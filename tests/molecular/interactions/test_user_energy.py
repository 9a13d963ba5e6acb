"""Interaction of a user's energy function: forces, stress, derivatives, parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.gradient import check_gradient
from simkit.core.objective import Objective
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.dynamics import velocity_verlet
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.interactions.user_energy import user_energy
from simkit.molecular.potentials import lennard_jones


def gaussians(position, cell, params):
    """Return the energy of Gaussian repulsion between nearest images, with a bond between the first two particles."""
    space = spaces.of_cell(cell, position.shape[1])
    apart = spaces.displacement(space, position[:, None], position[None])
    pairs = jnp.exp(-(apart**2).sum(-1) / params["width"] ** 2)
    bond = spaces.displacement(space, position[0], position[1])
    return params["height"] * (pairs.sum() - len(position)) / 2 + jnp.sum(bond**2)


PARAMS = {"width": 0.7, "height": 2.0}


def random_particles():
    rng = np.random.default_rng(0)
    cell = jnp.asarray(4 * np.eye(3) + rng.uniform(-0.5, 0.5, (3, 3)))
    return jnp.asarray(rng.uniform(0, 1, (20, 3))) @ cell, cell, {k: jnp.asarray(v) for k, v in PARAMS.items()}


def test_force_is_minus_the_central_difference_of_the_energy(x64):
    interaction, (position, cell, params) = user_energy(gaussians), random_particles()
    neighbors = interaction.refresh(interaction.prepare(position, cell, params), position, cell, params)
    along, step = jnp.asarray(np.random.default_rng(1).normal(size=position.shape)), 1e-6
    ahead, behind = (interaction.energy(position + s * along, cell, params, neighbors) for s in (step, -step))
    power = -jnp.sum(interaction.force(position, cell, params, neighbors) * along)
    # Energies of order 10: round-off 1e-14 / 1e-6 = 1e-8 beside a power of order 10.
    assert float(power) == pytest.approx(float((ahead - behind) / (2 * step)), rel=1e-7)


@pytest.mark.parametrize("shape", ["edges", "vectors"])
def test_stress_is_the_central_difference_under_strain(x64, shape):
    interaction, (position, cell, params) = user_energy(gaussians), random_particles()
    if shape == "edges":
        cell = jnp.array([4.0, 4.2, 4.4])
    vectors = spaces.lattice_vectors(cell)
    strain, step = jnp.asarray(np.random.default_rng(2).normal(size=(3, 3))), 1e-6

    def at(amount):
        deformation = jnp.eye(3) + amount * strain
        return interaction.energy(position @ deformation, vectors @ deformation, params, ())

    slope = (at(step) - at(-step)) / (2 * step) / jnp.abs(jnp.linalg.det(vectors))
    assert float(jnp.sum(interaction.stress(position, cell, params, ()) * strain)) == pytest.approx(
        float(slope), rel=1e-6
    )


def test_energy_is_differentiated_with_respect_to_params(x64):
    interaction, (position, cell, params) = user_energy(gaussians), random_particles()
    slope = jax.grad(interaction.energy, argnums=2)(position, cell, params, ())["height"]
    without = interaction.energy(position, cell, {**params, "height": jnp.asarray(0.0)}, ())
    once = interaction.energy(position, cell, {**params, "height": jnp.asarray(1.0)}, ())
    assert float(slope) == pytest.approx(float(once - without), rel=1e-12)


def test_free_space_has_no_stress(x64):
    interaction, (position, _, params) = user_energy(gaussians), random_particles()
    assert bool(jnp.isfinite(interaction.force(position, None, params, ())).all())
    with pytest.raises(UserError, match="no volume"):
        interaction.stress(position, None, params, ())


def test_declared_parameters_are_all_that_the_energy_takes(x64):
    _, (position, cell, params) = user_energy(gaussians), random_particles()
    declared, everything = user_energy(gaussians, parameters=["width", "height"]), user_energy(gaussians)
    beside = {**params, "mass": jnp.asarray(1.0)}
    for name in ("energy", "force", "stress"):
        found, expected = (getattr(which, name)(position, cell, beside, ()) for which in (declared, everything))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["width", "height", "mass"], "does not depend on the parameter 'mass'; remove it"),
        (["width", "heigth"], "parameter 'heigth' is not among the params; did you mean 'height'"),
    ],
)
def test_declared_parameters_without_effect_or_value_are_refused(x64, names, message):
    _, (position, cell, params) = user_energy(gaussians), random_particles()
    with pytest.raises(UserError, match=message):
        user_energy(gaussians, parameters=names).force(position, cell, {**params, "mass": jnp.asarray(1.0)}, ())


def network_energy(position, cell, params):
    """Return springs to the origin, and a small network of the distance from it for each particle."""
    (first, shift), last = params["net"]["hidden"], params["net"]["last"]
    square = jnp.sum(position**2, axis=1, keepdims=True)
    return params["stiffness"] / 2 * jnp.sum(square) + jnp.sum(jnp.tanh(square * first + shift) @ last)


def test_weights_of_a_network_are_differentiated_by_their_branch_through_dynamics(x64):
    places = np.random.default_rng(3).normal(size=(4, 2))
    simulation = velocity_verlet(
        user_energy(network_energy, parameters=["stiffness", "net"]),
        lambda params, key: jnp.asarray(places),
        params={
            "stiffness": 1.0,
            "mass": 1.0,
            "time_step": 0.05,
            "net": {"hidden": (np.asarray([0.5, -0.3, 0.2]), np.asarray([0.1, 0.0, -0.2])), "last": np.ones(3) / 3},
        },
        isolated=False,
        velocity=lambda params, key: jnp.zeros((4, 2)),
    )
    measured = simulation.with_quantities(far=lambda state, params: jnp.sum(state.position**2))
    checked = check_gradient(Objective(measured, "far", 10), measured.params, jax.random.key(0), ["net", "stiffness"])
    assert set(checked.verdict) == {"net.hidden.0", "net.hidden.1", "net.last", "stiffness"}
    assert set(checked.verdict.values()) == {"agrees"} and max(checked.relative_difference.values()) < 1e-7


@pytest.mark.parametrize(
    "make",
    [
        lambda names: user_energy(gaussians, parameters=names),
        lambda names: pair_interaction(lennard_jones(), cutoff=1.0, parameters=names),
        lambda names: from_jax_md(gaussians, parameters=names),
    ],
)
def test_names_as_one_text_are_refused(make):
    with pytest.raises(UserError, match=r"parameters = 'width' is one text, and a list is wanted; write \[\"width\"\]"):
        make("width")
