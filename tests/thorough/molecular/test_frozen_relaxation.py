"""Relaxation with frozen particles, and its implicit derivative."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import lennard_jones
from simkit.molecular.relaxation import relaxation


def test_masks_that_do_not_match_are_refused():
    with pytest.raises(UserError, match="particles of which none is frozen"):
        relaxation(
            pair_interaction(lennard_jones(), cutoff=2.0),
            lambda params, key: jnp.zeros((2, 2)),
            params={"epsilon": 1.0, "sigma": 1.0, "pressure": 0.0},
            scale=lambda p: Scale(length=p["sigma"], stiffness=p["epsilon"]),
            cell=lambda params: 4 * jnp.eye(2),
            relax_cell=True,
            frozen=[True, False],
        )
    for mask, message in (
        ([True] * 5, "names 5 of 5 particles"),
        ([True, False], "names 1 of 2 particles, and there are 5"),
    ):
        simulation = cluster(frozen=mask)
        with pytest.raises(UserError, match=message):
            simulation.init(simulation.params, jax.random.key(0))


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


def relaxed(simulation, params=None):
    state, status = jax.jit(functools.partial(at_rest, simulation))(params or simulation.params)
    return state, int(status)


def at_rest(simulation, params):
    """Return the relaxed state and the status, differentiable."""
    found = converge(simulation, 4000)(simulation.init(params, jax.random.key(1)), params)
    return found.state, found.status


@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "conjugate_gradient"])
def test_frozen_particles_keep_every_bit_and_the_others_relax(x64, minimizer):
    simulation = cluster(minimizer)
    state, status = relaxed(simulation)
    assert status == Status.CONVERGED
    start = simulation.init(simulation.params, jax.random.key(1)).descent.position
    np.testing.assert_array_equal(state.descent.position[:2], start[:2])
    found = simulation.diagnose(state, simulation.params)
    assert float(found["max_force"]) < 1e-10
    # The ends are held by forces.
    force = pair_interaction(lennard_jones(), cutoff=None).force(state.descent.position, None, simulation.params, ())
    assert float(jnp.abs(force[:2]).max()) > 0.1
    assert float(jnp.abs(force[2:]).max()) < 1e-10


def test_implicit_derivative_with_frozen_particles_equals_the_relaxed_difference(x64):
    first = cluster()
    # From where they are at rest, so that neighboring values lead into the same minimum.
    others = relaxed(first)[0].descent.position[2:] / first.params["sigma"]
    simulation, weights = cluster(others=others, noise=0.0), jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))

    def energy_at_rest(params):
        state, _ = at_rest(simulation, params)
        energy = simulation.diagnose(state, params)["energy"]
        return jnp.stack([jnp.sum(weights * state.descent.position), energy])

    derivative = jax.jit(jax.jacrev(energy_at_rest))(simulation.params)
    step, value = 1e-4, jax.jit(energy_at_rest)
    for name, at in simulation.params.items():
        low, high = (value({**simulation.params, name: at + sign * step}) for sign in (-1, 1))
        # Of second order in the step: 1e-8 times a third derivative.
        np.testing.assert_allclose(derivative[name], (high - low) / (2 * step), rtol=1e-6, atol=1e-6)
        assert np.abs(derivative[name]).max() > 0.1


def test_a_particle_on_a_spring_to_a_frozen_one_follows_it(x64):
    # U = k |x1 - x0 - b|^2 / 2: x1 = x0 + b, whatever moves x0; a turn about x0 is opposed by none.
    simulation = relaxation(
        user_energy(lambda x, cell, p: p["k"] / 2 * (jnp.sqrt(jnp.sum((x[1] - x[0]) ** 2)) - p["length"]) ** 2),
        lambda p, key: jnp.array([[1.0, 0.0], [2.5, 0.0]]) + p["shift"] * jnp.array([[1.0, 0.0], [0.0, 0.0]]),
        params={"k": 3.0, "length": 1.2, "shift": 0.3},
        scale=lambda p: Scale(length=p["length"], stiffness=p["k"]),
        frozen=[True, False],
    )

    def place(params):
        return at_rest(simulation, params)[0].descent.position[1]

    slopes = jax.jit(jax.jacrev(place))(simulation.params)
    np.testing.assert_allclose(slopes["shift"], [1.0, 0.0], atol=1e-10)
    np.testing.assert_allclose(slopes["length"], [1.0, 0.0], atol=1e-10)
    np.testing.assert_allclose(slopes["k"], [0.0, 0.0], atol=1e-10)


def test_frozen_particles_follow_the_params_when_a_relaxation_continues(x64):
    # A spring of length 1 to a frozen post at d, and the trap (x^2 + y^2) / 100, which turns it: x = (d - 1) / 1.02.
    simulation = molecular.system(
        particles={"post": {"count": 1, "frozen": True}, "A": {"count": 1}},
        start={"positions": [["d", 0.0], ["d+1", 0.1]]},
        interactions=[{"energy": "(r-1)**2/2"}],
        fields=[{"energy": "0.01*(x**2+y**2)"}],
        relax={"force_tolerance": 1e-12},
        parameters={"d": 2.0},
    )
    params, other = simulation.params, {"d": jnp.asarray(2.1)}
    relax = converge(simulation, 500)
    begun = relax(simulation.init(params, jax.random.key(0)), params).state
    again = relax(begun, other)
    expected = relax(simulation.init(other, jax.random.key(0)), other)
    assert int(again.status) == Status.CONVERGED
    found = again.state.descent.position
    np.testing.assert_allclose(found, expected.state.descent.position, atol=1e-10)
    np.testing.assert_allclose(found, [[2.1, 0.0], [1.1 / 1.02, 0.0]], atol=1e-10)
    for quantity in ("potential_energy", "energy_per_particle"):
        check = simkit.check_gradient(simkit.Objective(simulation, quantity, 500), params, jax.random.key(0), "d")
        assert check.verdict["d"] == "agrees"


def test_derivative_is_nan_if_frozen_positions_depend_on_the_key(x64):
    simulation = cluster(drawn=0.01)

    def energy(sigma):
        params = {**simulation.params, "sigma": sigma}
        return simulation.diagnose(at_rest(simulation, params)[0], params)["energy"]

    value, slope = jax.jit(jax.value_and_grad(energy))(simulation.params["sigma"])
    assert np.isfinite(value)
    assert np.isnan(slope)
