"""Relaxation with frozen particles, and its implicit derivative."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import lennard_jones
from simkit.molecular.relaxation import relaxation

# Two frozen ends and two atoms between and beside them, in units of sigma.
ENDS = np.array([[0.0, 0.0, 0.0], [2.1, 0.1, 0.0]])
OTHERS = np.array([[1.05, 0.2, 0.1], [1.0, 1.1, -0.1], [1.2, 0.4, 1.0]])
FROZEN = np.array([True, True, False, False, False])


def cluster(minimizer="lbfgs", *, frozen=FROZEN, drawn=0.0, others=OTHERS, noise=0.03):
    """Return Lennard-Jones atoms of which two do not move; the start of the others is random."""

    def start(params, key):
        kind = params["sigma"].dtype
        jitter = jax.random.normal(key, (5, 3), kind) * jnp.where(jnp.asarray(FROZEN)[:, None], drawn, noise)
        # The second end also follows a parameter of its own.
        ends = jnp.asarray(ENDS, kind).at[1, 0].add(params["stretch"])
        return params["sigma"] * (jnp.concatenate([ends, jnp.asarray(others, kind)]) + jitter)

    return relaxation(
        pair_interaction(lennard_jones(), cutoff=None),
        start,
        params={"epsilon": 1.0, "sigma": 1.1, "stretch": 0.0},
        scale=lambda p: Scale(length=p["sigma"], stiffness=57 * p["epsilon"] / p["sigma"] ** 2),
        minimizer=minimizer,
        force_tolerance=1e-12,
        frozen=frozen,
    )


def test_masks_that_do_not_match_are_refused():
    with pytest.raises(UserError, match="leave out relax_cell or frozen"):
        relaxation(
            pair_interaction(lennard_jones(), cutoff=2.0),
            lambda params, key: jnp.zeros((2, 2)),
            params={"epsilon": 1.0, "sigma": 1.0, "pressure": 0.0},
            scale=lambda p: Scale(length=p["sigma"], stiffness=p["epsilon"]),
            cell=lambda params: 4 * jnp.eye(2),
            relax_cell=True,
            frozen=[True, False],
        )
    for mask, message in (([True] * 5, "names all 5 particles"), ([True, False], "names 2 particles and there are 5")):
        simulation = cluster(frozen=mask)
        with pytest.raises(UserError, match=message):
            simulation.init(simulation.params, jax.random.key(0))
