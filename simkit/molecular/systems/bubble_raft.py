"""Bubble raft: soft bubbles of two sizes on a triangular lattice, relaxed, with elastic moduli."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.settings import arguments, row, whole
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.molecular import spaces
from simkit.molecular.analysis import order
from simkit.molecular.analysis.elasticity import elastic_constants, voigt_bulk_modulus, voigt_shear_modulus
from simkit.molecular.declarations import particle_quantities
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale, largest_norm
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.pair_sums import PerParticle
from simkit.molecular.potentials import mean_diameter, soft_sphere
from simkit.molecular.potentials.soft_sphere import EXPONENT
from simkit.molecular.relaxation import relaxation
from simkit.molecular.spaces import Cell
from simkit.molecular.structures import lattices

DIMENSION = 2
# Factor on the force tolerance: an evaluated force differs from the stored one of the minimizer by round-off.
SAME_FORCE = 2.0

PARAMETERS = {
    "diameter_ratio": Parameter(
        1.1, POSITIVE, doc="large / small diameter, at the same total area; 1 makes all bubbles equal"
    ),
    "packing_fraction": Parameter(
        1.08, POSITIVE, doc="area of all bubbles / area of the box; equal bubbles touch at 0.907"
    ),
    "stiffness": Parameter(
        1.0, POSITIVE, "energy", "energy scale k of a contact, (k / exponent) (1 - distance / sum of radii)^exponent"
    ),
    "diameter": Parameter(1.0, POSITIVE, "length", "root mean square diameter of the bubbles"),
    "disorder": Parameter(
        0.05,
        NOT_NEGATIVE,
        doc="largest random displacement of a bubble from its lattice site along each axis, in lattice spacings",
    ),
    "target_shear_modulus": Parameter(
        0.1,
        unit="energy / length^2",
        doc="target of the shear modulus; equal bubbles at the default packing fraction have 0.1536",
    ),
}


@described(
    particle_quantities(dimension="2"),
    bubble_pressure=("energy/length^2", "virial pressure of each bubble"),
    shear_modulus=("energy/length^2", "shear modulus"),
    affine_shear_modulus=("energy/length^2", "shear modulus without relaxation"),
    bulk_modulus=("energy/length^2", "bulk modulus"),
    distance_to_target=("energy/length^2", "shear modulus minus its target"),
)
@arguments(
    # The diameter of the largest bubble must not exceed half the box.
    repeats=row("unit cells of two bubbles along each axis", whole("along x", low=4), whole("along y", low=3)),
    arrangement=whole("seed of the arrangement of small and large bubbles"),
    exponent=EXPONENT,
)
def bubble_raft(
    *,
    repeats: Sequence[int] = (10, 6),
    arrangement: int = 0,
    exponent: float = 2.5,
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-13,
) -> Simulation:
    """Return the relaxation of a raft of small and large bubbles, with the elastic moduli of the relaxed raft.

    Bubbles that overlap repel with ``U(r) = (k / alpha) (1 - r / sigma_ij)^alpha``, ``sigma_ij`` the mean of the two
    diameters. Half of them are small, half large, in a fixed random arrangement. They start near the sites of a
    triangular lattice in a periodic box whose area is ``N pi d^2 / (4 phi)``, d the root mean square diameter, so
    that the box does not depend on the diameter ratio. Moduli include the nonaffine relaxation and are averaged over
    directions; they are zero until the raft is relaxed, and NaN at a saddle.

    q is the parameter ``diameter_ratio``, phi ``packing_fraction``, k ``stiffness`` and d ``diameter``;
    ``distance_to_target`` is measured from ``target_shear_modulus``.

    Args:
        repeats: unit cells of two bubbles along each axis; N = 2 repeats[0] repeats[1], at least [4, 3].
        arrangement: seed of the arrangement of small and large bubbles, an integer from 0.
        exponent: alpha; with 2 (harmonic) moduli jump when contacts open or close, with 2.5 (Hertzian) they do not.
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest residual force, in units of k / d. Good values: 1e-13 in float64, 1e-6 in float32.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> raft = molecular.bubble_raft(repeats=(4, 3), force_tolerance=1e-6)
        >>> run = simkit.run(raft, steps=500, every=500)
        >>> f"{run.sizes['particle']} bubbles, packing fraction {float(raft.params['packing_fraction']):.2f}"
        '24 bubbles, packing fraction 1.08'

    Reference: Bragg, Nye, Proc. R. Soc. Lond. A 190, 474 (1947), doi:10.1098/rspa.1947.0089; Durian, Phys. Rev. Lett.
    75, 4780 (1995), doi:10.1103/PhysRevLett.75.4780; Zu, Goodrich, Commun. Mater. 5 (2024),
    doi:10.1038/s43246-024-00583-4.
    """
    perfect = lattices.triangular((repeats[0], repeats[1]))
    sites, sides = np.asarray(perfect.position), np.diag(np.asarray(perfect.cell))
    count = len(sites)
    potential = soft_sphere(exponent)
    is_large = np.random.default_rng(arrangement).permutation(count) < count // 2

    def diameter(params: Params) -> jax.Array:
        """Return the diameters, whose mean square does not depend on the ratio, (N,)."""
        ratio = params["diameter_ratio"]
        small = params["diameter"] * jnp.sqrt(2 / (1 + ratio**2))
        return jnp.where(is_large, ratio * small, small)

    def spacing(params: Params) -> jax.Array:
        return params["diameter"] * jnp.sqrt(math.pi / (2 * math.sqrt(3) * params["packing_fraction"]))

    def cell(params: Params) -> jax.Array:
        return jnp.asarray(sides, params["diameter"].dtype) * spacing(params)

    def start(params: Params, key: jax.Array) -> jax.Array:
        dtype = params["diameter"].dtype
        shift = jax.random.uniform(key, sites.shape, dtype, minval=-1, maxval=1)
        return (jnp.asarray(sites, dtype) + params["disorder"] * shift) * spacing(params)

    def scale(params: Params) -> Scale:
        return Scale(length=params["diameter"], stiffness=params["stiffness"] / params["diameter"] ** 2)

    interaction = pair_interaction(
        potential,
        cutoff=lambda params: diameter(params).max(),
        parameters=lambda params: {
            "epsilon": params["stiffness"],
            "sigma": PerParticle(diameter(params), lambda a, b: (a + b) / 2),
        },
        method="all_pairs",
    )

    def network(position: jax.Array, box: Cell, params: Params) -> tuple[pairs.Pairs, order.Contacts]:
        apart = pairs.all_pairs(position, spaces.of_cell(box, DIMENSION))
        return apart, order.contact_network(apart, mean_diameter(diameter(params)))

    def rattlers(position: jax.Array, box: Cell, params: Params) -> jax.Array:
        return ~order.load_bearing(network(position, box, params)[1], DIMENSION)

    def observe(position: jax.Array, box: Cell, params: Params) -> Arrays:
        apart, touches = network(position, box, params)
        each = diameter(params)
        push = potential.force(apart.distance, epsilon=params["stiffness"], sigma=mean_diameter(each))
        virial = jnp.where(touches.touching, push * apart.distance, 0).sum(axis=1) / 2
        return {
            "diameter": each,
            "contacts": touches.touching.sum(axis=1).astype(position.dtype),
            "bubble_pressure": virial / (DIMENSION * math.pi / 4 * each**2),
        }

    def moduli(position: jax.Array, box: jax.Array, params: Params) -> tuple[jax.Array, ...]:
        mask = rattlers(position, box, params)
        constants = elastic_constants(interaction, position, box, params, rattlers=mask)
        stiffness, born = constants.stiffness, constants.born
        return voigt_shear_modulus(stiffness), voigt_shear_modulus(born), voigt_bulk_modulus(stiffness)

    def measure(position: jax.Array, box: Cell, params: Params) -> Arrays:
        touches = network(position, box, params)[1]
        bearing = order.load_bearing(touches, DIMENSION)
        force = largest_norm(interaction.force(position, box, params, ()))
        limit = SAME_FORCE * force_tolerance * params["stiffness"] / params["diameter"]
        zeros = (jnp.zeros_like(limit),) * 3
        # Away from equilibrium moduli are undefined, and the linear solves for them would not converge.
        shear_modulus, affine, bulk_modulus = jax.lax.cond(
            force < limit, lambda: moduli(position, jnp.asarray(box), params), lambda: zeros
        )
        return {
            "shear_modulus": shear_modulus,
            "affine_shear_modulus": affine,
            "bulk_modulus": bulk_modulus,
            "distance_to_target": shear_modulus - params["target_shear_modulus"],
            "contact_number": order.contact_number(touches, bearing).astype(position.dtype),
            "rattler_fraction": (~bearing).astype(position.dtype).mean(),
        }

    return relaxation(
        interaction,
        start,
        params=PARAMETERS,
        scale=scale,
        cell=cell,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        rattlers=lambda position, box, params, neighbors: rattlers(position, box, params),
        observe=observe,
        measure=measure,
        dimensions={"contacts": ("particle",), "bubble_pressure": ("particle",)},
    )
