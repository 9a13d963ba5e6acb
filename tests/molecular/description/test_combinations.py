"""Combinations of interactions, cells and baths that are refused, and what a bath conserves."""

import pytest

from simkit.errors import UserError
from simkit.molecular import system

pytestmark = pytest.mark.usefixtures("x64")

PARAMETERS = {"epsilon": 20.0, "sigma": 1.0, "alpha": 5.0, "tetrahedral_strength": 21.0, "cooling": 2.0}
CUBE = {"lattice": "face_centered_cubic", "repeats": [2, 2, 2], "spacing": 1.4}
PLANE = {"lattice": "triangular", "repeats": [4, 3]}
MORSE = {"jax_md": "morse", "cutoff": 1.9}
SILICON = {"potential": "stillinger_weber"}
TRICLINIC = {"vectors": [[4, 0, 0], [0, 4, 0], [0.4, 0, 4]], "periodic": [True, True, False]}
OBLIQUE = {"vectors": [[4, 0], [0.4, 4]], "periodic": [True, False]}
BAROSTAT = {"pressure": "1 + time", "barostat_time": 1.0, "compressibility": 0.05}
SOFT = {"energy": "epsilon*where(r < sigma, (1 - r/sigma)**2.5, 0)", "cutoff": "sigma", "ending": "truncate"}


def made(interaction=SOFT, start=PLANE, **more):
    return system(particles={"A": {"mass": 2}}, interactions=[interaction], start=start, parameters=PARAMETERS, **more)


def moving(method, **more):
    dynamics = {"method": method, "time_step": 0.002, "temperature": 0.1, **more}
    return made(cell={"density": 1.3}, task="dynamics", dynamics=dynamics)


ORTHORHOMBIC = "cell.periodic is true along some axes only, which needs an orthorhombic cell"
REFUSED = {
    "jax_md in a slab": (
        lambda: made(MORSE, CUBE, cell={"lengths": [4, 4, 4], "periodic": [True, False, True]}),
        "interactions[0].jax_md needs free space or a cell that repeats along all axes",
    ),
    "a list of jax_md": (
        lambda: made(MORSE | {"method": "neighbor_list"}, CUBE),
        "interactions[0].method has no effect on potential = 'jax_md'",
    ),
    "all pairs of angles": (
        lambda: made(SILICON | {"method": "all_pairs"}, CUBE),
        "interactions[0].method has no effect on potential = 'stillinger_weber'",
    ),
    "angles in a plane": (lambda: made(SILICON), "'stillinger_weber' is of one species in three dimensions"),
    "a slab of any shape": (lambda: made(SOFT, CUBE, cell=TRICLINIC), ORTHORHOMBIC),
    "a strip of any shape": (lambda: made(SOFT, PLANE, cell=OBLIQUE), ORTHORHOMBIC),
    "schedule without a bath": (
        lambda: moving("velocity_verlet", temperature="0.1*exp(-time)"),
        "dynamics.temperature changes in time, and method = 'velocity_verlet' has no bath; choose another",
    ),
    "barostat without a bath": (
        lambda: moving("velocity_verlet", **BAROSTAT),
        "dynamics.pressure has no effect on method = 'velocity_verlet', which has no thermostat",
    ),
}


def test_what_cannot_be_combined_is_refused_by_name():
    missed = []
    for case, (make, message) in REFUSED.items():
        with pytest.raises(UserError) as refused:
            make()
        if message not in str(refused.value):
            missed.append((case, str(refused.value)))
    assert not missed
