"""Iterations of minimizers do not change with the units of energy, length and mass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import minimizers
from tests.molecular.minimizers.test_minimizers import METHODS, cluster, overlapping

pytestmark = pytest.mark.usefixtures("x64")

RESCALED = {
    "a potential by name": ([{"potential": "lennard_jones"}], [], None),
    "an expression with a minimum": ([{"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"}], [], None),
    "a repulsion in a field": (
        [{"energy": "epsilon*(sigma/r)**12"}],
        [{"energy": "epsilon*(x**2 + y**2)/sigma**2"}],
        None,
    ),
    "fields alone": ([], [{"energy": "epsilon*(cosh(x/sigma) + 2*cosh(y/sigma))"}], None),
    "a scale of one's own": (
        [{"energy": "epsilon*(sigma/r)**12"}],
        [{"energy": "epsilon*(x**2 + y**2)/sigma**2"}],
        {"length": "sigma", "stiffness": "100*epsilon/sigma**2"},
    ),
}


def test_iterations_do_not_change_with_the_units():
    """Energies, lengths and masses times 10 or a tenth: the same iterations within 1 % for each kind of scale."""
    missed = []
    for case, (interactions, fields, scale) in RESCALED.items():
        simulation = molecular.system(
            particles={"A": {"count": 4, "mass": "mass"}},
            dimension=2,
            start={"positions": [[f"{x}*sigma", f"{y}*sigma"] for x, y in ((0, 0), (1.3, 0.1), (0.4, 1.2), (1.6, 1))]},
            interactions=interactions,
            fields=fields,
            relax={"minimizer": "fire", "force_tolerance": 1e-9} | ({"scale": scale} if scale else {}),
            parameters={"epsilon": 1.0, "sigma": 1.0, "mass": 1.0},
        )

        def run(values, simulation=simulation):
            params = dict(zip(("epsilon", "sigma", "mass"), values, strict=True))
            found = converge(simulation, 3000)(simulation.init(params, jax.random.key(0)), params)
            return found.iterations, found.status

        units = jnp.array([[1, 1, 1], [10, 10, 10], [10, 0.1, 1], [0.1, 10, 0.1]], float)
        iterations, status = jax.jit(lambda units, run=run: jax.lax.map(run, units))(units)
        if (status != Status.CONVERGED).any() or (abs(iterations - iterations[0]) > 0.01 * iterations[0]).any():
            missed.append((case, iterations.tolist(), status.tolist()))
    assert not missed


def test_every_iterate_is_bit_identical_in_units_of_powers_of_two():
    """A number with a dimension would show. In decimal units iterates differ by round-off, amplified by overlaps."""

    def places(energy_unit, length_unit):
        evaluate, scale = cluster("lennard_jones", energy_unit, length_unit)

        def after(method):
            minimizer = minimizers.by_name(method)
            start = minimizers.start(minimizer, length_unit * overlapping(13), evaluate, scale)
            step = lambda state, _: (minimizers.step(minimizer, state, evaluate, scale), None)  # noqa: E731
            return jax.lax.scan(step, start, length=200)[0].position / length_unit

        return [after(method) for method in METHODS]

    # Roots of stiffness are exact where it is a power of four.
    units = jnp.array([[1, 1], [64, 0.5], [2.0**-10, 2.0**7]])
    for method, (first, *others) in zip(METHODS, jax.jit(jax.vmap(places))(*units.T), strict=True):
        for other in others:
            np.testing.assert_array_equal(first, other, method)
