"""Binary mixture of small and large elastic spheres in a periodic box: interaction, observed arrays, diagnostics."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays, Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis import contacts
from simkit.molecular.analysis.bond_order import polygon_order
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale, largest_norm
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.neighbors.pair_sums import PerParticle
from simkit.molecular.neighbors.pairs import Pairs
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.relaxation.cell_coordinates import CellCoordinates
from simkit.molecular.sizes import check_particles
from simkit.molecular.spaces import Cell

# Initial capacity of the neighbor list by dimension, for a random start at the usual densities.
USUAL_NEIGHBORS = {2: 20, 3: 48}
# Fewest particles by dimension: the box is then two large diameters wide at a ratio of 2 and a packing fraction of 1.5.
FEWEST = {2: 16, 3: 64}
DIMENSIONS = {
    "position": ("particle", "axis"),
    "diameter": ("particle",),
    "box": ("axis",),
    "contacts": ("particle",),
    "overlap_energy": ("particle",),
    "load": ("particle",),
}
PLANAR_DIMENSIONS = DIMENSIONS | {"hexatic_order": ("particle",)}


class Mixture(NamedTuple):
    """Spheres of two sizes in a box of side 1 with an energy scale of 1.

    In these units nothing depends on the parameters ``stiffness`` and ``small_diameter``; results are converted to
    them. The side of the box follows from the packing fraction, ``L^d = sum_i v_i / phi``.

    Attributes:
        particles: number of spheres, even.
        dimension: d, 2 or 3.
        exponent: of the energy of an overlap.
        fraction: name of the parameter that is the packing fraction in the box of side 1.
    """

    particles: int
    dimension: int
    exponent: float
    fraction: str

    @property
    def dimensions(self) -> dict[str, tuple[str, ...]]:
        """Dimension names of the arrays from `observe`."""
        return dict(PLANAR_DIMENSIONS if self.dimension == 2 else DIMENSIONS)

    def side(self, params: Params) -> jax.Array:
        """Return the side of the box in small diameters, scalar."""
        volume = math.pi / (2 * self.dimension) * jnp.sum(self._sizes(params) ** self.dimension)
        volume = volume / params[self.fraction]
        return jnp.sqrt(volume) if self.dimension == 2 else jnp.cbrt(volume)

    def cell(self, params: Params) -> jax.Array:
        """Return the sides of the box, all 1, (d,)."""
        return jnp.ones(self.dimension, params[self.fraction].dtype)

    def scale(self, params: Params) -> Scale:
        """Return a small diameter and the stiffness of a contact."""
        side = self.side(params)
        return Scale(length=1 / side, stiffness=side**2)

    def arrangement(self, coordinates: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return positions, (N, d), and sides of the box, (d,), of a relaxing box.

        Args:
            coordinates: (N + d, d), see `simkit.molecular.relaxation.cell_coordinates.CellCoordinates`.
            params: the parameters.
        """
        return CellCoordinates(self.scale(params).length, isotropic=True).split(coordinates, self.cell(params))

    def check(self, params: Params, key: jax.Array) -> None:
        """Refuse a box in which a sphere could touch two images of another.

        Args:
            params: the parameters.
            key: unused.

        Raises:
            UserError: if the box is less than two large diameters wide.
        """
        del key
        fraction, ratio = float(params[self.fraction]), float(params["diameter_ratio"])
        if not (fraction > 0 and ratio > 0):
            raise UserError(f"{self.fraction} = {fraction:g} and diameter_ratio = {ratio:g} must be positive")
        side, widest = float(self.side(params)), 2 * max(1.0, ratio)
        if side < widest:
            raise UserError(
                f"{self.fraction} = {fraction:g} leaves {self.particles} particles a box {side:.3g} small diameters "
                f"wide; it must be {widest:g} at diameter_ratio = {ratio:g}: raise particles or lower {self.fraction}"
            )

    def start(self, params: Params, key: jax.Array) -> jax.Array:
        """Return uniformly random positions, (N, d)."""
        return jax.random.uniform(key, (self.particles, self.dimension), params[self.fraction].dtype)

    def interaction(self) -> Interaction:
        """Return the interaction of the spheres.

        Raises:
            UserError: if the exponent is below 2.
        """
        return pair_interaction(
            soft_sphere(self.exponent),
            cutoff=lambda params: jnp.maximum(1, params["diameter_ratio"]) / self.side(params),
            parameters=lambda params: {
                "epsilon": jnp.ones_like(self.side(params)),
                "sigma": PerParticle(self._sizes(params) / self.side(params), _mean),
            },
            capacity=USUAL_NEIGHBORS[self.dimension],
        )

    def rattlers(self, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        """Return the mask of rattlers, (N,) booleans.

        Args:
            position: (N, d).
            cell: sides of the box, (d,).
            params: the parameters.
            neighbors: of the interaction, current.
        """
        assert cell is not None  # a mixture is always in a box
        apart, sigma = self._pairs(position, cell, params, neighbors)
        return ~contacts.load_bearing(contacts.contact_network(apart, sigma), self.dimension)

    def observe(self, position: jax.Array, cell: jax.Array, params: Params, neighbors: Any) -> Arrays:
        """Return the arrays of a frame, in the units of ``stiffness`` and ``small_diameter``.

        Args:
            position: (N, d).
            cell: sides of the box, (d,).
            params: the parameters.
            neighbors: of the interaction, current.
        """
        apart, sigma = self._pairs(position, cell, params, neighbors)
        network = contacts.contact_network(apart, sigma)
        potential, length = soft_sphere(self.exponent), params["small_diameter"] * self.side(params)
        touch = {"epsilon": jnp.ones((), position.dtype), "sigma": sigma}
        push = jnp.where(apart.is_pair, potential.force(apart.distance, **touch), 0)
        virial = (push * apart.distance).sum(axis=1)
        mean = virial.mean()
        arrays = {
            "position": length * spaces.periodic(cell).wrap(position),
            "diameter": params["small_diameter"] * self._sizes(params),
            "box": length * cell,
            "contacts": network.touching.sum(axis=1).astype(position.dtype),
            "overlap_energy": params["stiffness"] * pairs.energy_per_particle(apart, potential, **touch),
            "load": virial / jnp.where(mean > 0, mean, 1),
        }
        return arrays | ({"hexatic_order": polygon_order(apart, network.touching, 6)} if self.dimension == 2 else {})

    def diagnose(self, position: jax.Array, cell: jax.Array, params: Params, neighbors: Any) -> Arrays:
        """Return the diagnostics of a state, in the units of ``stiffness`` and ``small_diameter``.

        Args:
            position: (N, d).
            cell: sides of the box, (d,).
            params: the parameters.
            neighbors: of the interaction, current.
        """
        interaction, dtype = self.interaction(), position.dtype
        apart, sigma = self._pairs(position, cell, params, neighbors)
        network = contacts.contact_network(apart, sigma)
        bearing = contacts.load_bearing(network, self.dimension)
        stiffness, length = params["stiffness"], params["small_diameter"] * self.side(params)
        energy = stiffness * interaction.energy(position, cell, params, neighbors)
        stress = jnp.trace(interaction.stress(position, cell, params, neighbors)) / self.dimension
        force = largest_norm(interaction.force(position, cell, params, neighbors))
        numbers = {
            "energy": energy,
            "energy_per_particle": energy / self.particles,
            "pressure": -stiffness / length**self.dimension * stress,
            "max_force": stiffness / length * force,
            "contact_number": contacts.contact_number(network, bearing).astype(dtype),
            "rattler_fraction": 1 - bearing.astype(dtype).mean(),
            "packing_fraction": params[self.fraction] / spaces.periodic(cell).volume,
        }
        if self.dimension == 2:
            numbers["hexatic_order"] = polygon_order(apart, network.touching, 6).mean()
        return numbers

    def _sizes(self, params: Params) -> jax.Array:
        """Return the diameters in units of the small one, (N,)."""
        return jnp.where(jnp.arange(self.particles) >= self.particles // 2, params["diameter_ratio"], 1)

    def _pairs(self, position: jax.Array, cell: jax.Array, params: Params, neighbors: Any) -> tuple[Pairs, jax.Array]:
        """Return the candidate pairs and their contact distances, (N, K)."""
        space = spaces.periodic(cell)
        if isinstance(neighbors, NeighborList):
            apart = pairs.listed_pairs(position, space, neighbors)
        else:
            apart = pairs.all_pairs(position, space)
        diameter = self._sizes(params) / self.side(params)
        return apart, _mean(diameter[:, None], diameter[apart.partner])


def mixture(particles: int, dimension: int, exponent: float, fraction: str) -> Mixture:
    """Return a mixture after checking its arguments.

    Args:
        particles: number of spheres.
        dimension: 2 or 3.
        exponent: of the energy of an overlap.
        fraction: name of the parameter that is the packing fraction in the box of side 1.

    Raises:
        UserError: if an argument is out of its range.
    """
    if dimension not in FEWEST:
        raise UserError(f"dimension = {dimension}; choose 2 (disks) or 3 (spheres)")
    fewest = FEWEST[dimension]
    if particles < fewest or particles % 2:
        where = "" if dimension == 2 else " in three dimensions"
        raise UserError(
            f"particles = {particles}; a half-and-half mixture needs an even number, at least {fewest}{where}"
        )
    check_particles(particles, f"particles = {particles}")
    soft_sphere(exponent)
    return Mixture(particles, dimension, exponent, fraction)


def _mean(a: jax.Array, b: jax.Array) -> jax.Array:
    return (a + b) / 2
