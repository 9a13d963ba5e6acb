"""Packings of soft disks or spheres in a periodic box, relaxed from random positions to mechanical equilibrium."""

import dataclasses

from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.molecular.models.mixture import Mixture, mixture
from simkit.molecular.models.parameters import MIXTURE_PARAMETERS
from simkit.molecular.models.quantities import particle_quantities
from simkit.molecular.relaxation import RelaxationState, relaxation


@described(particle_quantities())
def soft_sphere_packing(
    *,
    particles: int = 256,
    dimension: int = 2,
    exponent: float = 2.0,
    minimizer: str = "fire",
    force_tolerance: float = 1e-10,
) -> Simulation:
    """Return the relaxation of a 50:50 mixture of small and large elastic spheres to mechanical equilibrium.

    The energy sums ``(k / alpha) (1 - r / sigma_ij)^alpha`` over overlapping pairs, ``sigma_ij`` the mean of the two
    diameters. The box is a periodic square or cube of side L with ``L^d = sum_i v_i / phi``, ``v_i`` the area of a disk
    or volume of a sphere. They start at uniformly random positions and go downhill until no force exceeds the
    tolerance. Above the jamming packing fraction (0.842 for disks of ratio 1.4) they end up jammed, below it without
    overlap.

    Positions are kept in units of the box side: a change of packing fraction carries the particles along. Rattlers,
    which nothing holds, stay where they are when derivatives are taken.

    phi is the parameter ``packing_fraction`` and k ``stiffness``.

    Args:
        particles: how many, even, at least 16 (64 in three dimensions).
        dimension: 2 for disks, 3 for spheres.
        exponent: alpha, 2 (harmonic) or 2.5 (Hertzian).
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest remaining force, in units of stiffness / small diameter. Good values: 1e-10 in
            float64, 1e-5 in float32, where round-off ends the descent near 1e-6.

    Raises:
        UserError: if an argument is out of its range.

    Reference: O'Hern, Silbert, Liu, Nagel, Phys. Rev. E 68, 011306 (2003), doi:10.1103/PhysRevE.68.011306.
    """
    spheres = mixture(particles, dimension, exponent, "packing_fraction")
    return _presented(
        spheres,
        relaxation(
            spheres.interaction(),
            spheres.start,
            params=MIXTURE_PARAMETERS,
            scale=spheres.scale,
            cell=spheres.cell,
            minimizer=minimizer,
            force_tolerance=force_tolerance,
            force_unit=spheres.side,
            loose=spheres.rattlers,
        ),
    )


def _presented(spheres: Mixture, bare: Simulation) -> Simulation:
    """Return the relaxation with what is seen of it as the mixture tells it."""
    refresh = spheres.interaction().refresh

    def current(state: RelaxationState, params: Params) -> tuple:
        # The list was last refreshed at a trial, which may have been rejected.
        position, cell = state.descent.position, spheres.cell(params)
        return position, cell, params, refresh(state.neighbors, position, cell, params)

    def diagnose(state: RelaxationState, params: Params) -> Arrays:
        return {"iteration": state.descent.iteration} | spheres.diagnose(*current(state, params))

    return dataclasses.replace(
        bare,
        observe=lambda state, params: spheres.observe(*current(state, params)),
        diagnose=diagnose,
        check=spheres.check,
        dimensions=spheres.dimensions,
    )
