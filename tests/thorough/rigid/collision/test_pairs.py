"""All pairs of a collection, in the order of the rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.collision.pairs import contacts
from tests.rigid.collision.shapes import array
from tests.rigid.collision.test_pairs import KINDS, compiled, scene

pytestmark = pytest.mark.usefixtures("x64")


def test_members_of_an_ensemble_along_the_last_axis_have_the_same_contacts():
    runs = [scene(KINDS, seed)[:2] for seed in (1, 2, 3)]
    members = jax.tree.map(lambda *arrays: jnp.stack(arrays, axis=-1), *runs)
    together_ = array(compiled(contacts)(*members))
    for k, run in enumerate(runs):
        for all_members, single in zip(together_, array(compiled(contacts)(*run)), strict=True):
            index = (..., k, slice(None)) if all_members.ndim == single.ndim + 1 and single.ndim == 3 else (..., k)
            # Round-off of other fused loops.
            assert np.abs(all_members[index] - single).max() < 1e-9
