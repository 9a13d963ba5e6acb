"""Relaxation of a cluster of atoms in free space from random positions to the nearest minimum."""

from simkit.core.quantities import described
from simkit.core.simulation import Simulation
from simkit.molecular.models.cluster_model import cluster_model
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.relaxation import relaxation


@described(particle_quantities(dimension="3"))
def cluster(
    *,
    particles: int = 13,
    potential: str = "lennard_jones",
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-10,
    spread: float = 1.25,
) -> Simulation:
    """Return the relaxation of a cluster of atoms in free space from random positions.

    The energy is the sum over all pairs of ``4 epsilon ((sigma/r)^12 - (sigma/r)^6)``, or of ``epsilon x (x - 2)`` with
    ``x = exp(rho (1 - r / sigma))``. The atoms start at uniformly random positions in a sphere, where they may overlap,
    and relax until no force exceeds the tolerance. Which of the many minima they reach depends on the key;
    `simkit.molecular.search.basin_hopping.basin_hopping` searches for the lowest.

    The parameters are ``epsilon``, the depth of the pair potential, ``sigma``, its zero (Lennard-Jones) or minimum
    (Morse), and for Morse ``rho``: 3 for a long range, 6 for the curvature of Lennard-Jones, 14 for sticky atoms.

    Args:
        particles: number of atoms, at least 2.
        potential: ``"lennard_jones"`` or ``"morse"``.
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest residual force, in units of epsilon / sigma. Good values: 1e-10 in float64, 1e-3 in
            float32.
        spread: radius of the sphere of starts, in units of the radius of a close-packed ball of the atoms. Good values:
            1 to 1.5; from a larger sphere the atoms may condense into two clusters.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Wales and Doye, J. Phys. Chem. A 101, 5111 (1997), doi:10.1021/jp970984n; Cambridge Cluster Database.
    """
    model = cluster_model(particles=particles, potential=potential, spread=spread)
    return relaxation(
        model.interaction,
        model.start,
        params=model.params,
        scale=model.scale,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        force_unit=model.force_unit,
        observe=model.observe,
        dimensions={"energy_of_particle": ("particle",)},
    )
