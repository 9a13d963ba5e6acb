"""Rigid bonds: lengths kept, exact motion, order, reversibility, derivatives, freedom, virial, and what is refused."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.molecular import bonded, constraints
from simkit.molecular.dynamics import (
    brownian,
    velocity_verlet,
)
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.dynamics.moving import floats
from tests.molecular.rigid import (
    RODS,
    cluster,
    dumbbells,
    settled,
)
from tests.tables import every

KEY = jax.random.key(5)
FREE = user_energy(lambda position, cell, params: 0.0 * jnp.sum(position))


@functools.cache
def moving(rigid=settled):
    """Return water molecules at constant energy, and the compiled ``(state, params, steps) -> state``."""
    simulation = cluster(velocity_verlet, rigid=rigid)

    def run(state, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, state: simulation.step(state, params), state)

    return simulation, jax.jit(simulation.init), jax.jit(run)


def test_error_falls_with_the_square_of_the_time_step(x64):
    (simulation, init, run), ends = moving(), []
    for steps in (100, 200, 400):
        params = {**simulation.params, **floats(time_step=1.0 / steps)}
        ends.append(run(init(params, KEY), params, steps))
    for name in ("position", "velocity"):
        coarse, middle, fine = (np.asarray(getattr(end, name)) for end in ends)
        order = np.log2(np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine))
        assert 1.95 < order < 2.05, name


def test_motion_is_reversible(x64):
    simulation, init, run = moving()
    start = init(simulation.params, KEY)
    there = run(start, simulation.params, 300)
    back = run(dataclasses.replace(there, velocity=-there.velocity), simulation.params, 300)
    assert float(jnp.abs(there.position - start.position).max()) > 0.1
    np.testing.assert_allclose(back.position, start.position, rtol=0, atol=1e-11)
    np.testing.assert_allclose(back.velocity, -start.velocity, rtol=0, atol=1e-11)


RIGID = constraints.rigid_bonds([[0, 1]], "length")


def dumbbell(**options):
    """Return two particles of masses 1 and 3 at a rigid distance of 2 in a plane, which turn about each other."""
    velocity = np.array([[0.0, 1.5], [0.0, -0.5]])
    return velocity_verlet(
        options.pop("interaction", FREE),
        lambda params, key: params["length"] * jnp.asarray([[0.0, 0.0], [1.0, 0.0]]),
        params=floats(length=2.0, time_step=0.1, mass=1.0, gravity=1.0),
        mass=lambda params: params["mass"] * jnp.asarray([1.0, 3.0]),
        velocity=lambda params, key: jnp.asarray(velocity),
        **{"constraints": RIGID, **options},
    )


def test_a_rigid_dumbbell_turns_by_an_exact_angle_in_each_step(x64):
    simulation, steps = dumbbell(), 1000
    start = simulation.init(simulation.params, KEY)
    end = jax.jit(segment(simulation, steps))(start, simulation.params)
    # Omega = 2 / 2; velocities at whole steps are central differences of a uniform rotation: sin(angle) = Omega h.
    angle = -steps * np.arcsin(1.0 * 0.1)
    expected = 2 * np.array([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(end.position[1] - end.position[0], expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(end.velocity[1] - end.velocity[0], [-expected[1] * -1, -expected[0]], atol=1e-11)


def test_a_frozen_end_makes_a_pendulum(x64):
    weight = user_energy(lambda position, cell, params: 3 * params["gravity"] * jnp.sum(position[1, 1]))
    simulation = dumbbell(interaction=weight, frozen=[True, False], isolated=False)
    start = simulation.init(simulation.params, KEY)
    assert float(start.freedom.count) == 1
    end = jax.jit(segment(simulation, 1000))(start, simulation.params)
    np.testing.assert_array_equal(end.position[0], start.position[0])
    first, last = (simulation.diagnose(state, simulation.params) for state in (start, end))
    assert abs(float(last["energy"] - first["energy"])) < 5e-3 * 3 * 2
    assert float(end.bond_error) < 1e-14


def test_bonds_that_do_not_reach_their_length_end_the_run(x64):
    rods = constraints.rigid_bonds([[0, 1]], "length", iterations=1)
    simulation = dumbbell(constraints=rods)
    params = {**simulation.params, **floats(time_step=0.8)}
    state = jax.jit(simulation.step)(simulation.init(params, KEY), params)
    assert int(simulation.status(state, params)) == Status.JOINTS_APART


def test_a_chain_of_many_rigid_bonds_is_one_system(x64):
    chain = constraints.rigid_bonds(bonded.chain(30).bonds, "length")
    old = jnp.asarray(np.cumsum(np.random.default_rng(1).choice([-1.0, 1.0], (30, 3)), axis=0)) / np.sqrt(3)
    moved = old + 0.05 * jax.random.normal(KEY, old.shape)
    params = floats(length=1.0)
    held = moved + jax.jit(chain.shift)(moved, old, jnp.ones(30), params)
    assert float(chain.error(held, params)) < 1e-13
    velocity = jax.jit(chain.tangent)(moved, held, jnp.ones(30))
    rates = jnp.sum(jnp.diff(held, axis=0) * jnp.diff(velocity, axis=0), axis=1)
    np.testing.assert_allclose(rates, 0, atol=1e-13)


@every(
    ("make", "message"),
    [
        (lambda: constraints.rigid_bonds([[0, 1], [1, 0]], "length"), r"\(0, 1\) twice"),
        (lambda: constraints.rigid_bonds([[0, 0]], "length"), "two different particles"),
        (lambda: constraints.rigid_bonds(bonded.chain(70).bonds, "length"), "69 rigid bonds are coupled, more than 64"),
        (lambda: constraints.rigid_bonds([[0, 1]], "length", kinds=[0, 1]), "kinds has shape"),
        (lambda: constraints.rigid_water([[0, 1, 1]], ("leg", "base")), "molecules has 1 twice"),
        (lambda: constraints.combined(settled(1), constraints.rigid_bonds([[2, 3]], "length")), "particle 2 is in two"),
        (
            lambda: constraints.rigid_bonds([[0, 4]], "length").check(4, 3),
            "a particle of rigid bonds = 4 is not an integer from 0 to 3",
        ),
        (lambda: settled(1).check(3, 2), "needs three dimensions and no frozen atom"),
        (lambda: settled(1).check(3, 3, np.array([True, False, False])), "needs three dimensions and no frozen atom"),
        (lambda: RODS.check(19, 2, np.arange(19) < 2), r"the rigid bond \[0, 1\] joins two frozen particles"),
        (
            lambda: constraints.rigid_bonds(
                bonded.molecule(4, list(itertools.combinations(range(4), 2))).bonds, "a"
            ).check(4, 2),
            "have 6 rigid bonds, more than keep them rigid",
        ),
        (lambda: dumbbells(brownian), "this method does not keep rigid bonds"),
    ],
)
def test_what_rigid_bonds_cannot_be_is_refused_in_one_line(make, message):
    with pytest.raises(UserError, match=message):
        make()
