"""Pair energies in a table: exact cubics, derivatives by the values, and tables of scenario files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.errors import UserError
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.interactions import pair_interaction
from simkit.molecular.potentials import tabulated
from tests.molecular.dynamics.moving import floats
from tests.molecular.potentials.test_tabulated import POINTS, cubic


def cluster():
    return jnp.asarray(1.3 * np.random.default_rng(0).permutation(list(np.ndindex(2, 2, 2)))) + 0.05 * jnp.eye(8, 3)


def test_derivatives_by_the_values_equal_central_differences(x64):
    acts = pair_interaction(tabulated(POINTS), cutoff=2.0, parameters=["values"])
    values, position = jnp.asarray(cubic(POINTS)), cluster()
    along, step = jnp.asarray(np.random.default_rng(1).normal(size=len(POINTS))), 1e-5

    def work(values):
        """Return the energy and a power of the forces, both linear in the values."""
        at = position, None, {"values": values}, ()
        return acts.energy(*at), jnp.sum(acts.force(*at) ** 3)

    slopes = jax.jit(jax.jacrev(work))(values)
    ahead, behind = (jax.jit(work)(values + s * along) for s in (step, -step))
    forward = jax.jit(lambda v: jax.jvp(work, (v,), (along,))[1])(values)
    for k in range(2):
        expected = float(jnp.dot(slopes[k], along))
        assert float(forward[k]) == pytest.approx(expected, rel=1e-12)
        assert float(ahead[k] - behind[k]) / (2 * step) == pytest.approx(expected, rel=1e-6)


def test_a_table_stands_in_the_place_of_an_energy(x64, tmp_path):
    file = tmp_path / "pair.txt"
    file.write_text("r u\n" + "\n".join(f"{r:.17g} {cubic(r):.17g}" for r in POINTS))
    table = {"file": str(file), "x": "r", "y": "u", "interpolation": "cubic"}

    def made(**changes):
        settings = {
            "particles": {"A": {}},
            "start": {"positions": cluster().tolist()},
            "interactions": [{"energy": table | changes, "cutoff": 2.0, "ending": "truncate"}],
        }
        return composition(read(settings, SETTINGS), floats(unused=1.0)).interaction

    acts, direct = made(), pair_interaction(tabulated(POINTS), cutoff=2.0, parameters=["values"])
    values = {"values": jnp.asarray(cubic(POINTS))}
    energy, force = jax.jit(lambda x, p: (acts.energy(x, None, p, ()), acts.force(x, None, p, ())))(
        cluster(), floats(unused=1.0)
    )
    assert float(energy) == pytest.approx(float(direct.energy(cluster(), None, values, ())), rel=1e-13)
    np.testing.assert_allclose(force, direct.force(cluster(), None, values, ()), rtol=0, atol=1e-12)

    file.write_text("r u\n1 2\n1.5 x\n")
    with pytest.raises(UserError, match=r"interactions\[0\].energy: .*txt, line 3, column 'u': 'x' is not a finite"):
        made()
