"""Declarations of parameters of several particle systems."""

from simkit.core.parameter import POSITIVE, Parameter

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
