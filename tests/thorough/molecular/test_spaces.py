"""Geometry of boxes, triclinic cells and free space."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from tests.molecular.test_spaces import SHAPES, cell_of
from tests.tables import every


@every("dimension", [2, 3])
@every("name", SHAPES)
def test_triclinic_displacement_is_the_shortest_image_up_to_half_the_smallest_width(x64, name, dimension):
    cell = cell_of(name, dimension)
    space = spaces.triclinic(cell)
    rng = np.random.default_rng(3)
    a, b = (jnp.asarray(x) for x in rng.uniform(-6, 6, (2, 400, dimension)))
    found = np.asarray(spaces.displacement(space, a, b))
    shifts = np.stack(np.meshgrid(*[np.arange(-9, 10)] * dimension), -1).reshape(-1, dimension) @ np.asarray(cell)
    shortest = np.linalg.norm(np.asarray(a - b)[:, None] + shifts, axis=-1).min(axis=1)
    within = shortest < space.widths.min() / 2
    assert 20 < within.sum() < 400
    # Round-off of coordinates of order 30.
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1)[within], shortest[within], rtol=0, atol=5e-14)
    # Beyond that the image is an image still.
    whole = np.asarray(a - b - found) @ np.linalg.inv(cell)
    np.testing.assert_allclose(whole, np.round(whole), atol=1e-13)


@every("dimension", [2, 3])
def test_a_rectangular_cell_is_the_same_space_either_way(x64, dimension):
    box = jnp.array([3.0, 4.0, 5.0])[:dimension]
    straight, general = spaces.of_cell(box, dimension), spaces.of_cell(jnp.diag(box), dimension)
    a, b = (jnp.asarray(x) for x in np.random.default_rng(4).uniform(-9, 9, (2, 100, dimension)))
    np.testing.assert_allclose(spaces.displacement(general, a, b), spaces.displacement(straight, a, b), atol=1e-14)
    np.testing.assert_allclose(general.wrap(a), straight.wrap(a), atol=1e-14)
    np.testing.assert_allclose(general.widths, straight.widths, rtol=1e-15)
    assert float(general.volume) == pytest.approx(float(straight.volume), rel=1e-15)
