"""Clusters of atoms in free space as data, relaxed from random positions in a ball."""

import math

from simkit import molecular
from simkit.core.simulation import Simulation

# Length of a bond in units of sigma, and the force of its stiffness times its length in units of epsilon / sigma.
BONDS = {"lennard_jones": (2 ** (1 / 6), 72 / 2 ** (1 / 6)), "morse": (1.0, 72.0)}


def cluster(
    *,
    particles: int = 13,
    potential: str = "lennard_jones",
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-10,
    spread: float = 1.25,
) -> Simulation:
    """Return the relaxation of a cluster.

    Args:
        particles: number of atoms.
        potential: ``"lennard_jones"`` or ``"morse"``, of range rho = 6.
        minimizer: name of the minimizer.
        force_tolerance: largest residual force, in units of epsilon / sigma.
        spread: radius of the ball of starts, in units of the radius of a close-packed ball of the atoms.
    """
    bond, force = BONDS[potential]
    radius = spread * bond * (3 * particles / (4 * math.pi * math.sqrt(2))) ** (1 / 3)
    return molecular.system(
        particles={"atom": {"count": particles, "diameter": f"{bond}*sigma"}},
        interactions=[{"potential": potential}],
        start={"radius": f"{radius}*sigma", "separation": 0},
        dimension=3,
        relax={"minimizer": minimizer, "force_tolerance": force_tolerance / force},
        observed=["energy_of_particle"],
        parameters={"epsilon": 1.0, "sigma": 1.0} | ({"rho": 6.0} if potential == "morse" else {}),
    )
