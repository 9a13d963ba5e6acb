"""The periodic box."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces


@pytest.mark.parametrize("box", [(3.0, 5.0), (3.0, 5.0, 4.0)])
def test_displacement_is_the_shortest_over_all_images(x64, box):
    box = np.array(box)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-3, 3, (2, 50, len(box))) * box
    found = np.asarray(spaces.displacement(spaces.periodic(jnp.asarray(box)), a, b))
    # Differences of up to six boxes per axis: seven images either way cover the nearest one.
    shifts = np.stack(np.meshgrid(*[np.arange(-7, 8)] * len(box)), axis=-1).reshape(-1, len(box)) * box
    images = (a - b)[:, None] + shifts
    shortest = np.linalg.norm(images, axis=-1).min(axis=1)
    # Round-off of coordinates of order 20: 20 * 2.2e-16 * a few operations.
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), shortest, rtol=0, atol=2e-14)


def test_displacement_is_antisymmetric_and_blind_to_whole_boxes(x64):
    box = jnp.array([3.0, 5.0])
    rng = np.random.default_rng(1)
    a, b = jnp.asarray(rng.uniform(0, 3, (2, 50, 2)))
    space = spaces.periodic(box)
    forward = spaces.displacement(space, a, b)
    np.testing.assert_array_equal(forward, -spaces.displacement(space, b, a))
    # Adding two boxes rounds coordinates of order 10 once: 10 * 2.2e-16, twice.
    np.testing.assert_allclose(spaces.displacement(space, a + 2 * box, b), forward, rtol=0, atol=5e-15)


def test_wrapped_positions_lie_in_the_box_even_just_below_zero(x64):
    box = jnp.array([3.0, 5.0])
    space = spaces.periodic(box)
    rng = np.random.default_rng(2)
    position = np.concatenate([rng.uniform(-20, 20, (100, 2)), [[-1e-18, -1e-300], [3.0, 5.0], [-3.0, 10.0]]])
    wrapped = space.wrap(jnp.asarray(position))
    assert bool(jnp.all((wrapped >= 0) & (wrapped < box)))
    # One rounding of coordinates of order 20.
    np.testing.assert_allclose(spaces.displacement(space, wrapped, position), 0, atol=1e-14)


def test_displacement_differentiates_with_respect_to_a_traced_box(x64):
    a, b = jnp.array([0.2, 0.5]), jnp.array([2.9, 0.4])

    def length(side):
        return jnp.linalg.norm(spaces.displacement(spaces.periodic(jnp.stack([side, 5.0])), a, b))

    step = 1e-6
    difference = (length(3.0 + step) - length(3.0 - step)) / (2 * step)
    # Central difference: round-off 2.2e-16 / 1e-6, truncation 1e-12.
    assert float(jax.jit(jax.grad(length))(3.0)) == pytest.approx(float(difference), rel=1e-8)


def test_a_box_that_is_no_box_is_refused():
    with pytest.raises(UserError, match="2 or 3 side lengths"):
        spaces.periodic(jnp.ones(4))
