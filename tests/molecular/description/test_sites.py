"""Virtual sites of molecules as data: their places, forces on their parents, derivatives, and what is refused."""

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import system

FOUR_SITES = {
    "atoms": ["O", "H", "H", "M"],
    "count": 2,
    "bonds": [{"potential": "harmonic", "members": [[0, 1], [0, 2], [1, 2]], "values": {"stiffness": 50, "length": 1}}],
    "sites": [{"members": [[3, 0, 1, 2]], "weights": [0.7, 0.2, 0.1]}],
}


def four_sites(**further):
    shape = np.array([[0, 0, 0], [1, 0, 0.1], [0.4, 0.9, 0], [7, 7, 7]])
    return {
        "particles": {"O": {"mass": 16}, "H": {"charge": 0.5}, "M": {"charge": -1}},
        "molecules": {"water": FOUR_SITES | further.pop("molecule", {})},
        "interactions": [
            {"potential": "coulomb", "values": {"coulomb_constant": "constant"}},
            {"potential": "lennard_jones", "between": ["O_O"], "values": {"epsilon": 0.5, "sigma": 2.2}},
        ],
        "start": {"positions": np.concatenate([shape, shape[:, [1, 2, 0]] + 1.5]).tolist()},
        "parameters": {"constant": 2.0},
    } | further


def test_a_virtual_site_that_is_no_mean_is_refused():
    for sites, match in (
        ({"members": [[3, 0, 1, 2]], "weights": [0.7, 0.2, 0.2]}, r"weights are 3 that sum to 1\.1"),
        ({"members": [[3, 0, 1]], "weights": [0.7, 0.2, 0.1]}, r"members has \[3, 0, 1\]; give a site and 3 other"),
        ({"members": [[3, 0, 3, 1]], "weights": [0.7, 0.2, 0.1]}, r"members has \[3, 0, 3, 1\]"),
    ):
        with pytest.raises(UserError, match=match):
            system(**four_sites(molecule={"sites": [sites]}))
