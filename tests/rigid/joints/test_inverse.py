"""The generalized inverse solves every system that has a solution, however many rows are redundant."""

import jax
import numpy as np
import pytest

from simkit.rigid.joints.inverse import generalized_inverse
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every("rank", [3, 6, 8])
def test_inverse_of_singular_matrices_side_by_side(rank):
    rng = np.random.default_rng(rank)
    factors = rng.normal(size=(5, 8, rank))
    matrices = factors @ factors.transpose(0, 2, 1)
    inverses = np.asarray(jax.jit(generalized_inverse)(np.moveaxis(matrices, 0, -1)))
    for index, matrix in enumerate(matrices):
        inverse = inverses[..., index]
        # Pivots of random matrices of this size stay above 1e-3 of the diagonal, so round-off grows a thousandfold.
        np.testing.assert_allclose(matrix @ inverse @ matrix, matrix, atol=1e-12 * np.abs(matrix).max())
        np.testing.assert_array_equal(np.count_nonzero(np.any(inverse != 0, axis=1)), rank)
