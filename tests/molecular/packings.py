"""Configurations of packings of soft disks and spheres, as in the scenario soft_sphere_packing."""

import math

from simkit import molecular

# Area of a small and a large disk, or volume of such spheres, of diameters d and D: over d^2 + D^2, or d^3 + D^3.
PAIR = {2: "pi*(d**2 + large**2)/8", 3: "pi*(d**3 + large**3)/12"}
OBSERVED = ["contacts", "energy_of_particle", "load", "packing_fraction"]


def packing(particles=256, *, dimension=2, exponent=2.0, minimizer="fire", force_tolerance=1e-10, **values):
    """Return the relaxation of small and large elastic spheres, half and half, from random places."""
    given = {"packing_fraction": 0.9, "diameter_ratio": 1.4, "stiffness": 1.0, "small_diameter": 1.0} | values
    sigma = {"small_small": "small_diameter", "small_large": "(small_diameter + large)/2", "large_large": "large"}
    return molecular.system(
        dimension=dimension,
        particles={
            "small": {"count": particles // 2, "diameter": "small_diameter"},
            "large": {"count": particles // 2, "diameter": "large"},
        },
        start={"separation": 0},
        cell={"density": f"packing_fraction/({PAIR[dimension].replace('d*', 'small_diameter*')})"},
        interactions=[
            {"potential": "soft_sphere", "exponent": exponent, "values": {"epsilon": "stiffness", "sigma": sigma}}
        ],
        relax={"minimizer": minimizer, "force_tolerance": force_tolerance},
        observed=OBSERVED + (["hexatic_order"] if dimension == 2 else []),
        derived={"large": "diameter_ratio*small_diameter"},
        parameters=given,
    )


def side(particles, packing_fraction=0.9, ratio=1.4):
    """Return the side of the square that holds half small disks of diameter one and half larger ones."""
    return math.sqrt(math.pi / 4 * particles / 2 * (1 + ratio**2) / packing_fraction)
