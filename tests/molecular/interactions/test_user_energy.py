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
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import lennard_jones
from tests.tables import every


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


@every(
    ("names", "message"),
    [
        (["width", "height", "mass"], "parameter 'mass' has no effect on the energy"),
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


@every(
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
