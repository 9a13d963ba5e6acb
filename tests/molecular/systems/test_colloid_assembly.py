"""Colloids with a designed potential: stability of the honeycomb and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import colloid_assembly
from simkit.molecular.systems.colloid_assembly import fixed_forces
from tests.every import every

pytestmark = pytest.mark.usefixtures("x64")


def test_fixed_forces_are_minus_the_gradient_of_their_energy_without_stress():
    forces = jnp.asarray(np.random.default_rng(1).normal(size=(5, 2)))
    interaction = fixed_forces(lambda params: params["push"] * forces, lambda params: jnp.ones((5, 2)))
    params = {"push": jnp.asarray(0.3)}
    position, cell = jnp.zeros((5, 2)), jnp.ones(2)
    slope = jax.grad(interaction.energy)(position, cell, params, ())
    np.testing.assert_allclose(interaction.force(position, cell, params, ()), -slope, rtol=1e-14)
    assert float(interaction.energy(jnp.ones((5, 2)), cell, params, ())) == 0
    assert not interaction.stress(position, cell, params, ()).any()


@every(
    ("wrong", "message"),
    [
        ({"repeats": (5,)}, "give two numbers of unit cells"),
        ({"repeats": (3, 2)}, "the cut-off of 3 needs 6"),
        ({"start": "honycomb"}, "unknown start 'honycomb'.*honeycomb"),
        ({"pattern": -1}, "pattern = -1 is negative"),
        ({"switch_on": 3.5}, "switch_on = 3.5 is not between 0 and cutoff"),
    ],
)
def test_bad_configuration_is_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        colloid_assembly(**wrong)
