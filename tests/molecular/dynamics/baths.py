"""Systems with a bath for the tests of thermostats and barostats."""

import jax.numpy as jnp
import numpy as np

from simkit.molecular.dynamics import bussi, langevin, nose_hoover
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.spaces import lattice_vectors
from simkit.molecular.structures import lattices
from tests.molecular.dynamics.moving import floats, gas_interaction


def slope(low, high):
    """Return the slope of ln P_high / P_low over the energy, of greatest likelihood.

    Reference: Shirts, J. Chem. Theory Comput. 9, 909 (2013), doi:10.1021/ct300688p.
    """
    energy = np.concatenate([low.ravel(), high.ravel()])
    energy = energy - energy.mean()
    is_high = np.repeat([0.0, 1.0], [low.size, high.size])
    columns, found = np.stack([np.ones_like(energy), energy]), np.zeros(2)
    for _ in range(20):
        expected = 1 / (1 + np.exp(-found @ columns))
        curvature = (columns * (expected * (1 - expected))) @ columns.T
        found = found + np.linalg.solve(curvature, columns @ (is_high - expected))
    return found[1]


THERMOSTATS = {"langevin": langevin, "nose_hoover": nose_hoover, "bussi": bussi}
RATES = {"friction": 2.0, "thermostat_time": 0.2, "compressibility": 0.3, "barostat_time": 1.0}
VALUES = {"epsilon": 1.0, "sigma": 1.0, "mass": 1.0, "temperature": 1.5, "pressure": 1.0, "time_step": 0.005} | RATES


def lattice(per_side, dimension):
    """Return the sites of a cubic lattice in a cell of sides one, (N, d)."""
    axes = np.meshgrid(*[np.arange(per_side)] * dimension, indexing="ij")
    return (np.stack(axes, axis=-1).reshape(-1, dimension) + 0.5) / per_side


def liquid(dynamics, *, per_side=4, dimension=2, density=0.6, kind="sides", options=None, given=None, **values):
    """Return Lennard-Jones particles from a square lattice; ``kind`` of cell is free, sides or triclinic."""
    sites, width = lattice(per_side, dimension), per_side / density ** (1 / dimension)
    shape = np.eye(dimension) * width
    if kind == "triclinic":
        shape[1, 0] = 0.3 * width
    cell = None if kind == "free" else lambda params: jnp.asarray(np.diag(shape) if kind == "sides" else shape)

    def start(params, key):
        return (jnp.asarray(sites) @ jnp.asarray(shape)).astype(params["sigma"].dtype)

    return dynamics(
        given or gas_interaction("all_pairs"),
        start,
        params=floats(**{**VALUES, **values}),
        cell=cell and (lambda params: cell(params).astype(params["sigma"].dtype)),
        **(options or {}),
    )


def ideal_gas(dynamics, count, dimension=2, *, cell, energy=None, options=None, **values):
    """Return particles that do not act on each other; the energy, if any, is one of the cell: ``cell -> energy``."""

    def total(position, cell, params):
        return 0.0 * jnp.sum(position) + (energy(cell, params) if energy else 0.0)

    return dynamics(
        user_energy(total),
        lambda params, key: jnp.zeros((count, dimension), params["mass"].dtype),
        params=floats(**{**VALUES, **values}),
        cell=lambda params: jnp.asarray(cell, params["mass"].dtype),
        **(options or {}),
    )


def crystal(dynamics, kind, *, options=None, **values):
    """Return soft disks on a triangular lattice, which tell the components of their pressure."""
    lattice = lattices.triangular((4, 2), spacing=0.9)
    count = len(lattice.position)
    disks = pair_interaction(soft_sphere(), cutoff=1.0, method="all_pairs")
    cell = np.asarray(lattice.cell)

    def measure(state, cell, params):
        stress, volume = disks.stress(state.position, cell, params, ()), jnp.linalg.det(lattice_vectors(cell))
        # All particles count, also where the motion of their center of mass is taken away.
        share = 1 if dynamics is langevin else count / (count - 1)
        moving = share * params["mass"] * jnp.einsum("na,nb->ab", state.velocity, state.velocity)
        tensor = moving / volume - stress
        return {"pressure_xx": tensor[0, 0], "pressure_yy": tensor[1, 1], "pressure_xy": tensor[0, 1]}

    given = {
        "temperature": 0.003,
        "time_step": 0.05,
        "thermostat_time": 1.0,
        "barostat_time": 2.0,
        "compressibility": 1,
    }
    return dynamics(
        disks,
        lambda params, key: jnp.asarray(lattice.position),
        params=floats(**{**VALUES, **given, **values}),
        cell=lambda params: jnp.asarray(cell if kind == "triclinic" else np.diag(cell)),
        measure=measure,
        **(options or {}),
    )
