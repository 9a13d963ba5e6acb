"""Declarations of parameters of several particle systems."""

from simkit.core.parameter import POSITIVE, Parameter
from simkit.molecular.interactions.stillinger_weber import SILICON

DEPTH = Parameter(1.0, POSITIVE, "energy", "depth of the pair potential")
LENNARD_JONES_PARAMETERS = {
    "epsilon": DEPTH,
    "sigma": Parameter(1.0, POSITIVE, "length", "distance at which the pair potential crosses zero"),
}
MORSE_PARAMETERS = {
    "epsilon": DEPTH,
    "sigma": Parameter(1.0, POSITIVE, "length", "distance of the minimum of the pair potential"),
    "rho": Parameter(6.0, POSITIVE, "1", "sigma over the width of the well"),
}
SILICON_PARAMETERS = {
    "epsilon": Parameter(SILICON["epsilon"], POSITIVE, "eV", "energy of a bond"),
    "sigma": Parameter(SILICON["sigma"], POSITIVE, "angstrom", "length scale; a bond is 2^(1/6) sigma long"),
    "tetrahedral_strength": Parameter(
        SILICON["tetrahedral_strength"], doc="lambda, weight of the three-body energy of non-tetrahedral angles"
    ),
}
# Of a 50:50 mixture of small and large elastic spheres.
MIXTURE_PARAMETERS = {
    "packing_fraction": Parameter(0.9, POSITIVE, "1", "area (or volume) of all spheres / area (or volume) of the box"),
    "diameter_ratio": Parameter(
        1.4, POSITIVE, "1", "large / small diameter; 1 makes all spheres equal, and disks crystallize"
    ),
    "stiffness": Parameter(
        1.0, POSITIVE, "energy", "energy scale k of a contact, (k / exponent) (1 - distance / sum of radii)^exponent"
    ),
    "small_diameter": Parameter(1.0, POSITIVE, "length", "diameter of the small spheres"),
}
