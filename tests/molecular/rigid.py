"""Rigid molecules for the tests of constraints."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from simkit.molecular import constraints, spaces
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.dynamics.moving import floats

LEG, BASE = 1.0, 1.633
VALUES = {"leg": LEG, "base": BASE, "charge": 0.8, "mass": 1.0, "time_step": 0.01, "temperature": 1.0}


def triangle(leg, base):
    height = np.sqrt(leg**2 - base**2 / 4)
    return np.array([[0, 0, 0], [-base / 2, -height, 0], [base / 2, -height, 0.0]])


def water(count, spacing=2.5, seed=0):
    """Return the places of water molecules of random orientation on a cubic lattice, (3 count, 3)."""
    random, side = np.random.default_rng(seed), round(count ** (1 / 3) + 0.499)
    sites = np.stack(np.meshgrid(*[np.arange(side)] * 3), axis=-1).reshape(-1, 3)[:count] * spacing
    turns = [np.linalg.qr(random.normal(size=(3, 3)))[0] for _ in range(count)]
    return np.concatenate([site + triangle(LEG, BASE) @ turn for site, turn in zip(sites, turns, strict=True)])


def atoms_of(count):
    return np.arange(3 * count).reshape(count, 3)


def settled(count):
    return constraints.rigid_water(atoms_of(count), ("leg", "base"))


def newtonian(count):
    """Return the same rigid bonds for Newton's method."""
    atoms = atoms_of(count)
    pairs = np.stack([atoms[:, [0, 1]], atoms[:, [0, 2]], atoms[:, [1, 2]]], axis=1).reshape(-1, 2)
    return constraints.rigid_bonds(
        pairs, lambda params: jnp.stack([params["leg"], params["base"]]), kinds=[0, 0, 1] * count
    )


def masses(count):
    return lambda params: params["mass"] * jnp.asarray(np.tile([16.0, 1.0, 1.0], count), params["mass"].dtype)


def attraction(count):
    """Return softened charges of different molecules, and a repulsion of their first atoms."""
    molecule = np.repeat(np.arange(count), 3)
    apart = np.triu(molecule[:, None] != molecule[None])
    first, second = (jnp.asarray(ends) for ends in np.nonzero(apart))
    charges = np.tile([-2.0, 1.0, 1.0], count)
    product = charges[np.asarray(first)] * charges[np.asarray(second)]
    heavy = (np.asarray(first) % 3 == 0) & (np.asarray(second) % 3 == 0)

    def energy(position, cell, params):
        squared = jnp.sum((position[first] - position[second]) ** 2, axis=1)
        electric = params["charge"] ** 2 * jnp.asarray(product, position.dtype) / jnp.sqrt(squared + 0.5)
        return jnp.sum(electric) + jnp.sum(jnp.where(heavy, 20 * squared**-6.0, 0))

    return dataclasses.replace(user_energy(energy), is_translation_invariant=True)


def cluster(dynamics, count=3, rigid=settled, **values):
    """Return some water molecules in free space."""
    options = {} if "friction" in values else {"isolated": True}
    return dynamics(
        attraction(count),
        lambda params, key: jnp.asarray(water(count), params["mass"].dtype),
        params=floats(**VALUES | values),
        mass=masses(count),
        constraints=rigid(count),
        **options,
    )


# Nine dumbbells in a periodic square, some of them across its faces, and a single particle.
RODS = constraints.rigid_bonds(np.arange(18).reshape(9, 2), "length")


def _repulsion(position, cell, params):
    molecule = np.append(np.repeat(np.arange(9), 2), 9)
    first, second = np.nonzero(np.triu(molecule[:, None] != molecule[None]))
    away = position[first] - position[second]
    x, y = spaces.of_cell(cell, 2).nearest_image((away[:, 0], away[:, 1]))
    return params["strength"] * jnp.sum(jnp.exp(-3 * jnp.sqrt(x**2 + y**2 + 0.01)))


REPULSION = dataclasses.replace(user_energy(_repulsion), is_translation_invariant=True)


def dumbbells(dynamics, dtype=float, **options):
    """Return the dumbbells of `RODS`, which repel each other."""
    random = np.random.default_rng(2)
    centers, angle = random.uniform(0, 5, (9, 2)), random.uniform(0, 2 * np.pi, 9)
    half = np.stack([np.cos(angle), np.sin(angle)], axis=1) / 2
    ends = np.stack([centers - half, centers + half], axis=1).reshape(-1, 2)
    places = np.concatenate([ends, [[2.5, 2.5]]]) % 5
    given = floats(strength=30.0, length=1.0, time_step=0.005, mass=1.0, temperature=0.5, friction=1.0)
    return dynamics(
        REPULSION,
        lambda params, key: jnp.asarray(places, dtype),
        params={name: value.astype(dtype) for name, value in given.items()} | options.pop("params", {}),
        cell=lambda params: jnp.full(2, 5.0, dtype),
        constraints=RODS,
        **options,
    )
