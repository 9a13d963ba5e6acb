"""Packing of soft disks with an energy function of jax-md."""

import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.minimizers import Scale
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.relaxation import relaxation
from simkit.molecular.sizes import check_particles
from simkit.molecular.spaces import Cell

DIMENSION = 2


PARAMETERS = {
    "epsilon": Parameter(
        1.0, POSITIVE, "energy", "energy scale of a contact, (epsilon / exponent) (1 - distance / sigma)^exponent"
    ),
    "sigma": Parameter(1.0, POSITIVE, "length", "diameter of the disks"),
    "packing_fraction": Parameter(0.95, POSITIVE, doc="area of all disks / area of the box"),
}


@described(particle_quantities())
def jax_md_soft_spheres(
    *, particles: int = 64, exponent: float = 2.0, minimizer: str = "lbfgs", force_tolerance: float = 1e-10
) -> Simulation:
    """Return the relaxation of equal elastic disks in a periodic square, with the energy function of jax-md.

    The energy is that of `jax_md.energy.soft_sphere_pair`, ``(epsilon / alpha) (1 - r / sigma)^alpha`` over
    overlapping pairs. The square has the side ``L = sigma sqrt(N pi / (4 phi))``; disks start at uniformly random
    positions.

    Equal disks crystallize, mostly with defects, above a packing fraction of 0.84.

    Args:
        particles: number of disks, at least 16.
        exponent: alpha, 2 (harmonic) or 2.5 (Hertzian).
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest residual force, in units of epsilon / sigma. Good values: 1e-10 in float64, 1e-5 in
            float32.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Schoenholz, Cubuk, Advances in Neural Information Processing Systems 33 (2020), arXiv:1912.04232.
    """
    if particles < 16:
        raise UserError(f"particles = {particles}; a packing needs at least 16")
    check_particles(particles, f"particles = {particles}")
    potential = soft_sphere(exponent)

    # The import takes seconds and issues warnings about other packages.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax_md

    displacement, _ = jax_md.space.periodic(jnp.ones(DIMENSION))
    # jax-md converts values that are not JAX arrays to float32, and later values to the same type.
    one = jnp.asarray(1.0, dtype=float)
    energy = jax_md.energy.soft_sphere_pair(displacement, sigma=one, epsilon=one, alpha=exponent * one)
    interaction = from_jax_md(energy, box=np.ones(DIMENSION), parameters=["epsilon", "sigma"])

    def cell(params: Params) -> jax.Array:
        side = params["sigma"] * jnp.sqrt(particles * math.pi / (4 * params["packing_fraction"]))
        return jnp.broadcast_to(side, (DIMENSION,))

    def start(params: Params, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (particles, DIMENSION), params["sigma"].dtype) * cell(params)

    def observe(position: jax.Array, box: Cell, params: Params) -> Arrays:
        apart = pairs.all_pairs(position, spaces.of_cell(box, DIMENSION))
        each = pairs.energy_per_particle(apart, potential, epsilon=params["epsilon"], sigma=params["sigma"])
        return {"overlap_energy": each}

    return relaxation(
        interaction,
        start,
        params=PARAMETERS,
        scale=lambda params: Scale(length=params["sigma"], stiffness=params["epsilon"] / params["sigma"] ** 2),
        cell=cell,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        observe=observe,
        dimensions={"overlap_energy": ("particle",)},
    )
