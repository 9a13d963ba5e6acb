"""Charges and mixed values of species in systems described as data."""

import itertools
import math

import jax
import numpy as np

from tests.molecular.description.test_charges import energy


def test_excluded_charges_of_rigid_water_have_the_energy_of_a_sum_over_images():
    # The geometry and charges of SPC/E, doi:10.1021/j100308a038; the second molecule reaches across a face of the cell.
    half, side = math.acos(-1 / 3) / 2, 6.0
    water = np.array([[0, 0, 0], [math.sin(half), math.cos(half), 0], [-math.sin(half), math.cos(half), 0]])
    offsets = np.array([[0.3, 1.0, 0.2], [2.9, 1.5, -0.4]])
    places = np.concatenate([water + offsets[0], water[:, [2, 0, 1]] + offsets[1]])
    charges = 0.4238 * np.array([-2, 1, 1] * 2)
    products = charges[:, None] * charges

    def summed(most):
        images = side * np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * 3), axis=-1).reshape(-1, 3)
        images = images[images.any(axis=1)]
        inverse = [[np.sum(1 / np.linalg.norm(a - b + images, axis=1)) for a in places] for b in places]
        between = products[:3, 3:] / np.linalg.norm(places[:3, None] - places[None, 3:], axis=-1)
        # Surroundings conduct: without the energy of the surface, de Leeuw et al., doi:10.1098/rspa.1980.0135.
        surface = 2 * np.pi / 3 / side**3 * np.sum((charges @ places) ** 2)
        return np.sum(products * inverse) / 2 + np.sum(between) - surface

    # A cube of images lacks terms in even powers of 1 / (2 n + 1): Richardson extrapolation leaves 1e-9.
    sums, ratio = [summed(most) for most in (1, 4, 13)], 9
    first, second = (after + (after - before) / (ratio - 1) for before, after in itertools.pairwise(sums))
    image_energy = second + (second - first) / (ratio**2 - 1)
    bonds = [{"potential": "harmonic", "members": [[0, 1], [0, 2]], "values": {"stiffness": 100.0, "length": 1.0}}]
    molecule = {"atoms": ["O", "H", "H"], "count": 2, "exclude": "angles", "bonds": bonds}
    for precise in (False, True):
        with jax.enable_x64(precise):
            found = energy(
                [{"potential": "ewald", "tolerance": 1e-12}],
                particles={"O": {"charge": -0.8476}, "H": {"charge": 0.4238}},
                molecules={"water": molecule},
                start={"positions": places.tolist()},
                cell={"lengths": [side] * 3},
            )
            # The parts that cancel are of order one.
            np.testing.assert_allclose(found, image_energy, rtol=0, atol=1e-8 if precise else 1e-6)


def test_a_weight_of_pairs_three_bonds_apart_is_that_of_their_plain_coulomb_energy(x64):
    places = np.array([[0.1, 0.2, 0.3], [1.1, 0.2, 0.3], [1.4, 1.1, 0.3], [2.2, 1.4, 0.9]])
    apart = np.linalg.norm(places[3] - places[0])
    ewald = {"potential": "ewald", "tolerance": 1e-12, "values": {"coulomb_constant": 2.0}}

    def of(exclude, **weight):
        chain = {"atoms": ["A", "B", "B", "A"], "rigid": [{"members": "chain", "length": 1.0}], "exclude": exclude}
        return energy(
            [ewald | weight],
            particles={"A": {"charge": "q"}, "B": {"charge": "-q"}},
            molecules={"chain": chain},
            start={"positions": places.tolist()},
            cell={"lengths": [9.0, 9.0, 9.0]},
            task="dynamics",
            dynamics={"time_step": 0.01},
        )

    full, weighted, left_out = of("angles"), of("angles", one_four=0.3), of("dihedrals", one_four=0.3)
    np.testing.assert_allclose(full - weighted, 2.0 * 0.7 / apart, rtol=1e-9)
    np.testing.assert_allclose(left_out, weighted, rtol=1e-12)
