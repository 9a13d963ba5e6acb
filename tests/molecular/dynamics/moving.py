"""Small systems for the tests of molecular dynamics."""

import jax.numpy as jnp
import numpy as np

from simkit.molecular.dynamics import brownian, langevin, velocity_verlet
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import force_shifted, lennard_jones

CUTOFF = 2.0
# The corners of a tetrahedron whose edges are the distance at which two atoms are at rest.
TETRAHEDRON = 2 ** (1 / 6) / np.sqrt(8) * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]])


def floats(**values):
    return {name: jnp.asarray(value, dtype=float) for name, value in values.items()}


def tetramer(**values):
    """Return four Lennard-Jones atoms of different masses in free space, vibrating and turning, by velocity Verlet."""
    velocity = np.array([[0.3, -0.2, 0.1], [0.0, 0.4, -0.3], [-0.2, -0.1, 0.0], [0.1, 0.1, 0.3]])
    defaults = {"epsilon": 1.0, "sigma": 1.0, "mass": [1.0, 1.5, 0.7, 2.0], "time_step": 0.005}
    return velocity_verlet(
        pair_interaction(lennard_jones(), cutoff=None),
        lambda params, key: params["sigma"] * jnp.asarray(TETRAHEDRON),
        params=floats(**{**defaults, **values}),
        velocity=lambda params, key: jnp.asarray(velocity, params["sigma"].dtype),
    )


def gas_interaction(method="neighbor_list", capacity=None):
    """Return Lennard-Jones pairs whose force ends at the cut-off without a jump."""
    return pair_interaction(
        force_shifted(lennard_jones()),
        cutoff=lambda params: CUTOFF * params["sigma"],
        parameters=lambda params: {
            "epsilon": params["epsilon"],
            "sigma": params["sigma"],
            "cutoff": CUTOFF * params["sigma"],
        },
        method=method,
        capacity=capacity,
    )


def gas(dynamics=velocity_verlet, *, per_side=8, method="neighbor_list", capacity=None, density=0.6, **values):
    """Return a hot Lennard-Jones gas in a periodic square, from a square lattice; its frames hold the forces."""
    i, j = np.meshgrid(np.arange(per_side), np.arange(per_side), indexing="ij")
    sites = (np.stack([i, j], axis=-1).reshape(-1, 2) + 0.5) / per_side

    def cell(params):
        return jnp.full(2, per_side / density**0.5, params["sigma"].dtype) * params["sigma"]

    defaults = {"epsilon": 1.0, "sigma": 1.0, "mass": 1.0, "temperature": 1.5, "time_step": 0.005}
    friction = {"friction": 1.0} if dynamics is langevin else {}
    return dynamics(
        gas_interaction(method, capacity),
        lambda params, key: jnp.asarray(sites, params["sigma"].dtype) * cell(params),
        params=floats(**{**defaults, **friction, **values}),
        cell=cell,
        observe=lambda state, cell, params: {"force": state.force},
        dimensions={"force": ("particle", "axis")},
    )


def oscillators(dynamics, count, dimension=2, **values):
    """Return particles at rest at the bottom of one harmonic well each (free ones for a stiffness of zero)."""
    defaults = {"stiffness": 1.0, "mass": 1.0, "temperature": 1.0, "time_step": 0.1}
    friction = {"friction": 1.0} if dynamics is langevin else {}
    options = {} if dynamics in (brownian, langevin) else {"isolated": False}
    return dynamics(
        user_energy(lambda position, cell, params: params["stiffness"] / 2 * jnp.sum(position**2)),
        lambda params, key: jnp.zeros((count, dimension), params["mass"].dtype),
        params=floats(**{**defaults, **friction, **values}),
        **options,
    )
