"""Directions of conserved momentum with traps, grooves, gravity and walls, and the temperature without them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.dynamics import velocity_verlet
from simkit.molecular.dynamics.measures import conserved_directions
from simkit.molecular.interactions.interaction import combined, user_energy
from tests.molecular.dynamics.moving import floats, gas_interaction

SIDE = 5.2
SITES = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2) * 1.3


def bonds(x, cell, params):
    """Return the energy of springs between successive particles, which sees differences only."""
    return jnp.sum((x[1:] - x[:-1]) ** 2) / 2


def stripes(x, cell, params):
    """Return the energy of grooves that run along (1, -1), with two sites in each period: forces add up to zero."""
    return jnp.sum(jnp.cos(2 * jnp.pi / 2.6 * (x[:, 0] + x[:, 1])))


# Each with the projection onto the directions along which momentum is conserved.
FIELDS = {
    "nothing": (lambda x, cell, params: 0.0 * jnp.sum(x), np.eye(2)),
    "bonds": (bonds, np.eye(2)),
    "trap": (lambda x, cell, params: jnp.sum(x**2) / 2, np.zeros((2, 2))),
    "trap about the center, to the fourth power": (
        lambda x, cell, params: jnp.sum((x - 1.95) ** 4),
        np.zeros((2, 2)),
    ),
    "gravity": (lambda x, cell, params: 0.01 * jnp.sum(x[:, 1]), np.diag([1.0, 0.0])),
    "gravity across": (lambda x, cell, params: jnp.sum(x @ jnp.array([0.3, 0.4])), [[0.64, -0.48], [-0.48, 0.36]]),
    "stripes": (stripes, [[0.5, -0.5], [-0.5, 0.5]]),
    "a wall that none touches": (lambda x, cell, params: jnp.sum(jnp.maximum(x[:, 0] - 8, 0) ** 2), np.diag([0, 1.0])),
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", FIELDS)
def test_directions_of_conserved_momentum_are_those_in_which_a_field_is_constant(name, precision):
    with jax.enable_x64(precision == "float64"):
        field, expected = FIELDS[name]
        params, position = floats(epsilon=1.0, sigma=1.0), jnp.asarray(SITES, dtype=float)
        interaction = combined(gas_interaction("all_pairs"), user_energy(field))
        neighbors = interaction.prepare(position, None, params)
        measure = jax.jit(lambda x: conserved_directions(interaction, x, None, params, neighbors))
        np.testing.assert_allclose(measure(position), expected, atol=1e-6)


def test_directions_are_found_in_a_cell_with_a_neighbor_list(x64):
    params, cell = floats(epsilon=1.0, sigma=1.0), jnp.array([SIDE, SIDE])
    position = jnp.asarray(SITES + 0.1 * np.random.default_rng(0).normal(size=SITES.shape))
    for field, expected in ((stripes, [[0.5, -0.5], [-0.5, 0.5]]), (lambda x, cell, params: 0.0, np.eye(2))):
        interaction = combined(gas_interaction("neighbor_list", capacity=20), user_energy(field))
        neighbors = interaction.prepare(position, cell, params)
        found = jax.jit(conserved_directions, static_argnums=0)(interaction, position, cell, params, neighbors)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def grooved():
    """Return a gas over grooves across x, of a depth that may be zero, at rest or started at a temperature."""

    def grooves(x, cell, params):
        return -params["depth"] * jnp.sum(jnp.cos(2 * jnp.pi / SIDE * x[:, 0]))

    return velocity_verlet(
        combined(gas_interaction("all_pairs"), user_energy(grooves)),
        lambda params, key: jnp.asarray(SITES),
        params=floats(epsilon=1.0, sigma=1.0, mass=2.0, temperature=0.8, time_step=0.005, depth=0.5),
        cell=lambda params: jnp.array([SIDE, SIDE]),
    )


def test_directions_of_conserved_momentum_follow_the_params_of_each_member(x64):
    simulation = grooved()
    depth = jnp.array([0.0, 0.5])
    params, axes = {**simulation.params, "depth": depth}, {**dict.fromkeys(simulation.params), "depth": 0}
    states = jax.jit(jax.vmap(simulation.init, in_axes=(axes, None)))(params, jax.random.key(0))
    momentum = 2.0 * np.asarray(states.velocity).sum(axis=1)
    # Grooves hold x, so the center of mass moves along x as thermally as any particle: sqrt(16 m T) = 5.
    assert abs(momentum[1, 0]) > 0.1
    assert np.abs(momentum.ravel()[[0, 1, 3]]).max() < 1e-12
    diagnose = jax.jit(jax.vmap(simulation.diagnose, in_axes=(0, axes)))
    # Afterwards under the other params: what is counted is what they conserve, not what those of the start did.
    for order in ([0, 1], [1, 0]):
        found = diagnose(states, {**params, "depth": depth[jnp.array(order)]})
        along = np.array([[1.0, 1.0], [0.0, 1.0]])[order]
        thermal = np.asarray(found["kinetic_energy"]) - np.sum(along * momentum**2, axis=1) / (2 * 16 * 2.0)
        np.testing.assert_allclose(found["temperature"], 2 * thermal / (32 - along.sum(axis=1)), rtol=1e-12)
