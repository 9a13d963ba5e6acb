"""Derivatives of barriers, saddles and rates, and bands of bound particles and of crystals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.status import Status
from simkit.molecular import interactions, potentials
from simkit.molecular.barriers import nudged_elastic_band
from simkit.molecular.minimizers import Scale
from tests.molecular.test_barriers import (
    MIDDLE,
    MULLER_BROWN,
    RIGHT,
    WELL,
    closed_form,
    found,
    measured,
    over_muller_brown,
)


def summary(simulation):
    """Return the numbers whose derivatives are compared: barriers, rate and the saddle."""

    def run(params):
        _, stationary, numbers = found(simulation)(params)
        return jnp.concatenate([jnp.stack([numbers["barrier"], numbers["reverse_barrier"]]), stationary[1].ravel()])

    return run


def test_derivatives_of_barriers_rate_and_saddle_are_those_of_the_closed_form(x64):
    params = {name: jnp.asarray(value) for name, value in WELL.items()}
    expected = jax.jacfwd(closed_form)(params)
    for derive in (jax.jacfwd, jax.jacrev):
        slopes = jax.jit(derive(measured))(params)
        for name, slope in slopes.items():
            np.testing.assert_allclose(slope, expected[name], rtol=1e-8, atol=1e-9, err_msg=name)


def test_derivatives_of_the_muller_brown_saddle_agree_with_differences(x64):
    run = summary(over_muller_brown(MIDDLE, RIGHT))
    params = {name: jnp.asarray(value) for name, value in MULLER_BROWN.items()}
    keys = jax.random.split(jax.random.key(1), len(params))
    along = {
        name: jax.random.normal(key, (4,)) * jnp.abs(value)
        for key, (name, value) in zip(keys, params.items(), strict=True)
    }
    step = 1e-5
    moved = [jax.tree.map(lambda p, v, sign=sign: p + sign * step * v, params, along) for sign in (1, -1)]
    plus, minus = jax.jit(jax.vmap(run))(jax.tree.map(lambda *each: jnp.stack(each), *moved))
    difference = (plus - minus) / (2 * step)
    _, forward = jax.jit(lambda p, v: jax.jvp(run, (p,), (v,)))(params, along)
    np.testing.assert_allclose(forward, difference, rtol=1e-6, atol=1e-6 * float(jnp.abs(difference).max()))
    (reverse,) = jax.jit(lambda p, w: jax.vjp(run, p)[1](w))(params, weights := jnp.arange(1.0, 5.0))
    inner = sum(float(jnp.vdot(reverse[name], along[name])) for name in params)
    assert inner == pytest.approx(float(weights @ forward), rel=1e-9)


def trimer():
    pair = interactions.pair_interaction(potentials.lennard_jones(), cutoff=None, method="all_pairs")

    def start(side, half=0.56):
        return lambda p, key: p["sigma"] * jnp.asarray([[-half, 0.0], [half, 0.0], [0.05, 0.97 * side]])

    return nudged_elastic_band(
        pair,
        start(1),
        start(-1),
        middle=start(0, half=1.2),
        params={"epsilon": 1.0, "sigma": 1.0},
        scale=lambda p: Scale(p["sigma"], 57 * p["epsilon"] / p["sigma"] ** 2),
        images=7,
        force_tolerance=1e-12,
        mass=lambda p: jnp.asarray(1.0),
    )


def test_three_atoms_turn_over_through_a_line(x64):
    # Collinear: 4 epsilon [(2 + 2^-12) s^2 - (2 + 2^-6) s] with s = (sigma / r)^6, lowest at s = ratio / 2.
    repulsion, attraction = 2 + 2**-12, 2 + 2**-6
    ratio = attraction / repulsion
    energy, bond = -(attraction**2) / repulsion, (ratio / 2) ** (-1 / 6)
    simulation = trimer()

    def run(params):
        status, stationary, numbers = found(simulation)(params)
        span = jnp.sqrt(jnp.sum((stationary[1, 0] - stationary[1, 1]) ** 2))
        return jnp.stack([numbers["energy"], numbers["barrier"], span, numbers["attempt_frequency"]]), status

    (values, status), slopes = jax.jit(lambda p: (run(p), jax.jacrev(lambda p: run(p)[0])(p)))(simulation.params)
    assert status == Status.CONVERGED
    np.testing.assert_allclose(values[:3], [energy, energy + 3, 2 * bond], rtol=1e-10)
    # Everything scales with epsilon and sigma; a frequency is as the root of epsilon over sigma.
    np.testing.assert_allclose(slopes["epsilon"], values * jnp.asarray([1, 1, 0, 0.5]), atol=1e-7)
    np.testing.assert_allclose(slopes["sigma"], values * jnp.asarray([0, 0, 1, -1]), atol=1e-7)


@pytest.fixture(scope="module")
def crystal():
    """Return the hop of a vacancy in a hexagonal crystal, with neighbor lists in a periodic cell."""
    rows, columns = 6, 6
    unit = np.asarray([[0.25, 0.25], [0.75, 0.75]])
    cells = np.stack(np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij"), axis=-1).reshape(-1, 1, 2)
    sites = (unit + cells).reshape(-1, 2) * np.asarray([1.0, np.sqrt(3)]) * 1.115
    middle = int(np.argmin(np.sum((sites - sites.mean(axis=0)) ** 2, axis=1)))
    apart = np.linalg.norm(sites - sites[middle], axis=1)
    neighbor = int(np.argsort(apart)[1])
    first = np.delete(sites, middle, axis=0)
    moved = sites.copy()
    moved[neighbor] = sites[middle]
    last = np.delete(moved, middle, axis=0)
    edges = np.asarray([columns, rows * np.sqrt(3)]) * 1.115
    with jax.enable_x64(True):
        yield nudged_elastic_band(
            interactions.pair_interaction(
                potentials.force_shifted(potentials.lennard_jones()),
                cutoff=lambda p: 2.5 * p["sigma"],
                parameters=lambda p: {**p, "cutoff": 2.5 * p["sigma"]},
                method="neighbor_list",
            ),
            lambda p, key: p["sigma"] * jnp.asarray(first),
            lambda p, key: p["sigma"] * jnp.asarray(last),
            params={"epsilon": 1.0, "sigma": 1.0},
            scale=lambda p: Scale(p["sigma"], 57 * p["epsilon"] / p["sigma"] ** 2),
            cell=lambda p: p["sigma"] * jnp.asarray(edges),
            images=7,
            force_tolerance=1e-11,
            mass=lambda p: jnp.asarray(1.0),
        )


def test_a_vacancy_hops_over_a_symmetric_barrier(x64, crystal):
    def run(params):
        status, _, numbers = found(crystal)(params)
        return jnp.stack([numbers[name] for name in ("barrier", "reverse_barrier", "attempt_frequency")]), status

    (values, status), slope = jax.jit(lambda p: (run(p), jax.grad(lambda p: run(p)[0][0])(p)))(crystal.params)
    assert status == Status.CONVERGED
    # By symmetry: the mirror image of the path is the path back.
    assert float(values[0]) == pytest.approx(float(values[1]), rel=1e-9)
    assert float(values[0]) > 0.1 and np.isfinite(values[2])
    # The barrier is a multiple of epsilon, whatever sigma is.
    np.testing.assert_allclose([slope["epsilon"], slope["sigma"]], [values[0], 0], atol=1e-7)
