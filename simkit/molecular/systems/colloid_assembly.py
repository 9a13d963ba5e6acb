"""Relaxation of colloids with a designed pair potential, as a measure of the stability of their honeycomb lattice."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import root
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.settings import arguments, number, row, whole, word
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis.order import polygon_order
from simkit.molecular.declarations import particle_quantities
from simkit.molecular.interactions.interaction import Interaction, combined, user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import PairPotential, pair_potential, switched
from simkit.molecular.relaxation import relaxation
from simkit.molecular.spaces import Cell
from simkit.molecular.structures import lattices

DIMENSION = 2
STARTS = ("honeycomb", "random")
# Width of the Gaussian well, as published: exp(-40 (r - r0)^2).
SHARPNESS = 40.0
# Cut-off of a neighbor, in bonds: between the first shell of the honeycomb, 1, and the second, sqrt(3).
REACH = 1.35
# Below this distance the energy is linear, so that overlapping starts have finite forces.
CORE = 0.6
# Curvature of the potential at the published well: 2 * 40 * 0.4.
STIFFNESS = 32.0
# Parameters of the published potential, except for the distance of its well, 1.823 as published.
POTENTIAL = {
    "attraction": Parameter(5.89, doc="strength of the term -attraction / r^10"),
    "repulsion": Parameter(17.9, doc="strength of the shoulder repulsion exp(-decay r)"),
    "decay": Parameter(2.49, doc="decay rate of the shoulder"),
    "well_depth": Parameter(0.4, doc="depth of the well; 0.4 in the published potential"),
    "well_distance": Parameter(
        2.0, doc="distance of the Gaussian well of the potential; 1.823 in the published honeycomb potential"
    ),
}
PARAMETERS = POTENTIAL | {
    "bond": Parameter(1.0525, POSITIVE, doc="distance of nearest neighbors in the honeycomb; sets the density"),
    "push": Parameter(0.3, NOT_NEGATIVE, doc="root mean square of the fixed random forces on the particles"),
    "disorder": Parameter(
        0.05, NOT_NEGATIVE, doc="largest random displacement of a particle from its site along each axis, in bonds"
    ),
}


@described(
    particle_quantities("bond", dimension="2", force="energy / bond"),
    honeycomb_order=("1", "order of the bonds, 1 for three at equal angles (diagnosed, the mean)"),
    neighbors=("1", "neighbors of each particle (diagnosed, the mean)"),
    deviation=("1", "root mean square displacement from the honeycomb"),
    energy_above_honeycomb=("energy", "energy per particle above that of the honeycomb"),
    honeycomb_energy=("energy", "energy per particle of the honeycomb"),
    triangular_energy=("energy", "energy per particle of the triangular lattice"),
)
@arguments(
    repeats=row("unit cells of four particles along each axis", whole("along x", low=1), whole("along y", low=1)),
    start=word("how the particles start", STARTS),
    pattern=whole("seed of the random forces"),
    cutoff=number("distance beyond which the potential is zero", bounds=POSITIVE),
)
def colloid_assembly(
    *,
    repeats: Sequence[int] = (5, 3),
    start: str = "honeycomb",
    pattern: int = 0,
    cutoff: float = 3.0,
    switch_on: float = 2.4,
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-10,
) -> Simulation:
    """Return the relaxation of colloids with a designed potential from a disordered honeycomb or random positions.

    ``V(r) = 5 / r^12 - a / r^10 + b exp(-c r) - w exp(-40 (r - s)^2)``, switched off between ``switch_on`` and
    ``cutoff``, in reduced units. For ``a, b, c, w, s = 5.89, 17.9, 2.49, 0.4, 1.823`` the honeycomb is the ground state
    at its density. A weak constant random force acts on every particle, as of a rough substrate. It makes the deviation
    a smooth measure of the stability of the honeycomb; without it the deviation and its derivative vanish wherever the
    honeycomb is stable.

    a is the parameter ``attraction``, b ``repulsion``, c ``decay``, w ``well_depth`` and s ``well_distance``.

    Args:
        repeats: unit cells of four particles along each axis; half the box must exceed the cut-off.
        start: ``"honeycomb"``, displaced by ``disorder``; or ``"random"``, uniform in the box, where ``deviation`` has
            no meaning.
        pattern: seed of the random forces, an integer from 0.
        cutoff: distance beyond which the potential is zero.
        switch_on: distance at which the switch begins.
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest residual force. Good values: 1e-10 in float64, 1e-3 in float32.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> honeycomb = molecular.colloid_assembly(repeats=(4, 3), force_tolerance=1e-3)
        >>> run = simkit.run(honeycomb, steps=500, every=500)
        >>> run.attrs["status"], run.sizes["particle"]
        ('converged', 48)

    Reference: Rechtsman, Stillinger, Torquato, Phys. Rev. Lett. 95, 228301 (2005),
    doi:10.1103/PhysRevLett.95.228301.
    """
    number("where the switch begins", bounds=(POSITIVE[0], 0.99 * cutoff)).check(switch_on, "switch_on")
    perfect = lattices.honeycomb((repeats[0], repeats[1]))
    sites, sides = np.asarray(perfect.position), np.diag(np.asarray(perfect.cell))
    if sides.min() < 2 * cutoff:
        raise UserError(
            f"repeats = {list(repeats)} make a box {sides.min():.3g} bonds wide; "
            f"the cut-off of {cutoff:g} needs {2 * cutoff:g}"
        )
    count = len(sites)
    potential = switched(colloid_potential())

    def potential_parameters(params: Params) -> dict[str, jax.Array]:
        ends = {"switch_on": switch_on, "cutoff": cutoff}
        dtype = params["bond"].dtype
        return {name: params[name] for name in POTENTIAL} | {k: jnp.asarray(v, dtype) for k, v in ends.items()}

    between = pair_interaction(potential, cutoff=cutoff, parameters=potential_parameters, method="all_pairs")

    def cell(params: Params) -> jax.Array:
        return jnp.asarray(sides, params["bond"].dtype) * params["bond"]

    def home(params: Params) -> jax.Array:
        return jnp.asarray(sites, params["bond"].dtype) * params["bond"]

    pushes = _pattern(pattern, count)
    interaction = combined(between, fixed_forces(lambda params: params["push"] * jnp.asarray(pushes), home))

    def begin(params: Params, key: jax.Array) -> jax.Array:
        dtype = params["bond"].dtype
        if start == "random":
            return jax.random.uniform(key, sites.shape, dtype) * cell(params)
        shift = jax.random.uniform(key, sites.shape, dtype, minval=-1, maxval=1)
        return home(params) + params["disorder"] * params["bond"] * shift

    def displacement(position: jax.Array, box: Cell, params: Params) -> jax.Array:
        """Return the displacement of every particle from its site, without the mean displacement, in bonds, (N, d)."""
        space = spaces.of_cell(box, DIMENSION)
        return spaces.displacement_without_drift(space, position, home(params)) / params["bond"]

    def order(position: jax.Array, box: Cell, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return the order |psi_3| of the bonds of each particle and its number of neighbors, (N,) each."""
        apart = pairs.all_pairs(position, spaces.of_cell(box, DIMENSION), REACH * params["bond"])
        return polygon_order(apart, apart.is_pair, 3), apart.is_pair.sum(axis=1).astype(position.dtype)

    def observe(position: jax.Array, box: Cell, params: Params) -> Arrays:
        honeycomb_order, neighbors = order(position, box, params)
        return {
            "diameter": jnp.full(count, 1, position.dtype) * params["bond"],
            "honeycomb_order": honeycomb_order,
            "neighbors": neighbors,
        }

    def measure(position: jax.Array, box: Cell, params: Params) -> Arrays:
        honeycomb_order, neighbors = order(position, box, params)
        deviation = root(jnp.sum(displacement(position, box, params) ** 2, axis=1).mean())
        own = between.energy(position, box, params, ()) / count
        honeycomb = between.energy(home(params), box, params, ()) / count
        area = 3 * math.sqrt(3) / 4 * params["bond"] ** 2
        triangular = _triangular_energy(potential, potential_parameters(params), cutoff, area)
        return {
            "deviation": deviation,
            "honeycomb_order": honeycomb_order.mean(),
            "neighbors": neighbors.mean(),
            "energy_above_honeycomb": own - honeycomb,
            "honeycomb_energy": honeycomb,
            "triangular_energy": triangular,
        }

    return relaxation(
        interaction,
        begin,
        params=PARAMETERS,
        scale=lambda params: Scale(length=params["bond"], stiffness=jnp.full_like(params["bond"], STIFFNESS)),
        cell=cell,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        force_unit=lambda params: jnp.ones_like(params["bond"]),
        observe=observe,
        measure=measure,
        dimensions={"honeycomb_order": ("particle",), "neighbors": ("particle",)},
    )


def colloid_potential() -> PairPotential:
    """Return ``V(r) = 5 / r^12 - a / r^10 + b exp(-c r) - w exp(-40 (r - s)^2)``.

    A core, a shoulder that allows three nearest neighbors only, and a well for the second neighbors. The parameters are
    ``attraction`` a, ``repulsion`` b, ``decay`` c, ``well_depth`` w and ``well_distance`` s. Below 0.6 the energy is
    continued linearly.
    """

    def bare(r: jax.Array, a: jax.Array, b: jax.Array, c: jax.Array, w: jax.Array, s: jax.Array) -> jax.Array:
        inverse = 1 / (r * r)
        fifth = inverse**5
        return 5 * fifth * inverse - a * fifth + b * jnp.exp(-c * r) - w * jnp.exp(-SHARPNESS * (r - s) ** 2)

    def energy(
        distance: jax.Array,
        *,
        attraction: jax.Array,
        repulsion: jax.Array,
        decay: jax.Array,
        well_depth: jax.Array,
        well_distance: jax.Array,
    ) -> jax.Array:
        shape = attraction, repulsion, decay, well_depth, well_distance
        outside = bare(jnp.maximum(distance, CORE), *shape)
        core = jnp.asarray(CORE, distance.dtype)
        slope = jax.grad(bare)(core, *shape)
        return outside + jnp.where(distance < CORE, slope * (distance - CORE), 0)

    return pair_potential(energy)


def fixed_forces(forces: Callable[[Params], jax.Array], origin: Callable[[Params], jax.Array]) -> Interaction:
    """Return constant forces on the particles, ``E = -sum_i f_i . (x_i - o_i)``.

    They do not depend on position, so the box may be periodic: a particle that crosses it gains the work of its force.
    They do not contribute to the stress.

    Args:
        forces: ``params -> f``, with sum zero, (N, d).
        origin: ``params -> o``, positions of zero energy, (N, d).
    """

    def energy(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        return -jnp.sum(forces(params).astype(position.dtype) * (position - origin(params)))

    return dataclasses.replace(
        user_energy(energy),
        stress=lambda position, cell, params, neighbors: jnp.zeros((position.shape[1],) * 2, position.dtype),
        is_translation_invariant=True,
    )


def _pattern(number: int, count: int) -> np.ndarray:
    """Return random forces with sum zero and root mean square one, (N, 2)."""
    forces = np.random.default_rng(number).normal(size=(count, DIMENSION))
    forces -= forces.mean(axis=0)
    return forces / np.sqrt((forces**2).sum(axis=1).mean())


def _triangular_energy(
    potential: PairPotential, parameters: dict[str, jax.Array], cutoff: float, area: jax.Array
) -> jax.Array:
    """Return the energy per particle of an infinite triangular lattice with a given area per particle."""
    # Distances in a lattice of spacing one, up to 6: beyond any cut-off at the densities of colloids.
    reach = range(-8, 9)
    shells = np.sqrt([i * i + i * j + j * j for i in reach for j in reach if (i, j) != (0, 0)])
    distances, counts = np.unique(np.round(shells[shells <= 6], 12), return_counts=True)
    spacing = jnp.sqrt(2 / math.sqrt(3) * area)
    r = jnp.asarray(distances, spacing.dtype) * spacing
    each = jnp.where(r < cutoff, potential.energy(jnp.minimum(r, cutoff), **parameters), 0)
    return jnp.sum(jnp.asarray(counts, spacing.dtype) * each) / 2
