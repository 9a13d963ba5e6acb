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


def test_a_nearly_redundant_row_is_dropped_for_a_better_pivot():
    # Row 1 differs from row 0 by 1e-5, a pivot of 1e-10 that round-off would not hide; row 2 spans the same plane well.
    rows = np.array([[1.0, 0.0], [1.0, 1e-5], [0.0, 1.0]])
    inverse = np.asarray(generalized_inverse(jax.numpy.asarray(rows @ rows.T)))
    assert np.abs(inverse).max() < 1.1
    np.testing.assert_array_equal(inverse[1], 0)
