"""Barriers, saddles and rates of energies with known ones, resumed bands, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.molecular import interactions
from simkit.molecular.barriers import nudged_elastic_band
from simkit.molecular.minimizers import Scale

STEPS = 5000
WELL = {"height": 1.3, "saddle": 0.2, "coupling": 0.4, "stiffness": 3.0, "mass": 1.7, "temperature": 0.25}


def double_well(x, cell, p):
    """Minima at x = -1 and 1, a saddle at x = s; y = c x along the whole path."""
    quartic = x[:, 0] ** 4 / 4 - p["saddle"] * x[:, 0] ** 3 / 3 - x[:, 0] ** 2 / 2 + p["saddle"] * x[:, 0]
    return jnp.sum(4 * p["height"] * quartic + p["stiffness"] / 2 * (x[:, 1] - p["coupling"] * x[:, 0]) ** 2)


def at(*place):
    return lambda params, key: jnp.asarray([place])


def hop(first=(-1.2, -0.3), last=(0.9, 0.5), **options):
    return nudged_elastic_band(
        interactions.user_energy(double_well),
        at(*first),
        at(*last),
        params=dict(WELL),
        scale=lambda p: Scale(jnp.asarray(1.0), 10 * p["height"]),
        force_tolerance=1e-12,
        mass=lambda p: p["mass"],
        temperature=lambda p: p["temperature"],
        **options,
    )


def found(simulation):
    """Return ``params -> (status, stationary points, diagnostics)``."""

    def run(params):
        end = converge(simulation, STEPS)(simulation.init(params, jax.random.key(0)), params)
        return end.status, end.state.stationary, simulation.diagnose(end.state, params)

    return run


def closed_form(p):
    """Return barriers, rate and the saddle of the double well."""
    energy = [double_well(jnp.stack([x, p["coupling"] * x])[None], None, p) for x in (p["saddle"], -1.0, 1.0)]
    saddle = jnp.stack([p["saddle"], p["coupling"] * p["saddle"]])

    def eigenvalues(x):
        curved = 4 * p["height"] * (3 * x**2 - 2 * p["saddle"] * x - 1)
        trace = curved + p["stiffness"] * (1 + p["coupling"] ** 2)
        root = jnp.sqrt(trace**2 / 4 - curved * p["stiffness"])
        return trace / 2 - root, trace / 2 + root

    lowest, stable = eigenvalues(-1.0), eigenvalues(p["saddle"])[1]
    frequency = jnp.sqrt(lowest[0] * lowest[1] / stable / p["mass"]) / (2 * jnp.pi)
    rate = frequency * jnp.exp(-(energy[0] - energy[1]) / p["temperature"])
    return jnp.stack([energy[0] - energy[1], energy[0] - energy[2], rate, *saddle])


def measured(p):
    _, stationary, numbers = found(hop())(p)
    return jnp.stack([numbers["barrier"], numbers["reverse_barrier"], numbers["rate"], *stationary[1, 0]])


def test_only_a_path_over_one_saddle_converges(x64):
    # Both ends fall into one minimum.
    status, _, _ = jax.jit(found(hop(last=(-0.5, 0.3))))(hop().params)
    assert status == Status.STALLED


MULLER_BROWN = {
    "A": [-200.0, -100.0, -170.0, 15.0],
    "a": [-1.0, -1.0, -6.5, 0.7],
    "b": [0.0, 0.0, 11.0, 0.6],
    "c": [-10.0, -10.0, -6.5, 0.7],
    "x": [1.0, 0.0, -0.5, -1.0],
    "y": [0.0, 0.5, 1.5, 1.0],
}


def muller_brown(position, cell, p):
    dx, dy = position[:, :1] - p["x"], position[:, 1:] - p["y"]
    return jnp.sum(p["A"] * jnp.exp(p["a"] * dx**2 + p["b"] * dx * dy + p["c"] * dy**2))


def over_muller_brown(first, last, **options):
    return nudged_elastic_band(
        interactions.user_energy(muller_brown),
        at(*first),
        at(*last),
        params=MULLER_BROWN,
        scale=lambda p: Scale(jnp.asarray(0.1), 10 * jnp.abs(p["A"][0])),
        images=11,
        force_tolerance=1e-10,
        **options,
    )


LEFT, MIDDLE, RIGHT = (-0.55, 1.4), (-0.05, 0.47), (0.6, 0.03)


def test_bad_bands_are_refused_in_one_line(x64):
    with pytest.raises(UserError, match="no gradient"):
        hop(minimizer="lbfgs")
    with pytest.raises(UserError, match="one structure"):
        simkit.run(hop(last=(-1.2, -0.3)), steps=5)
    two = nudged_elastic_band(
        interactions.user_energy(double_well),
        at(-1.0, 0.0),
        lambda p, key: jnp.zeros((2, 2)),
        params=dict(WELL),
        scale=lambda p: Scale(1.0, p["height"]),
    )
    with pytest.raises(UserError, match="1 particles in 2 dimensions and 2 particles"):
        simkit.run(two, steps=5)


def test_barriers_as_data_refuse_what_does_not_fit(x64):
    place = {"positions": [[0, 0, 0], [1.1, 0, 0]]}
    common = {
        "start": place,
        "particles": {"atom": {}},
        "interactions": [{"potential": "lennard_jones"}],
        "parameters": {"epsilon": 1.0, "sigma": 1.0},
        "task": "barrier",
    }
    wrong = {
        "barrier is missing": {},
        "other particles": {"barrier": {"last": {"positions": [[0, 0, 0]]}}},
        "no gradient": {"barrier": {"last": place, "minimizer": "lbfgs"}},
        "observed has no effect": {"barrier": {"last": place}, "observed": ["displacement"]},
        "relax has no effect": {"barrier": {"last": place}, "relax": {"cell": True}},
    }
    for message, settings in wrong.items():
        with pytest.raises(UserError, match=message):
            molecular.system(**{**common, **settings})


def test_a_resumed_band_equals_an_uninterrupted_one(x64):
    simulation = over_muller_brown(MIDDLE, RIGHT)
    step = jax.jit(lambda state, n: jax.lax.fori_loop(0, n, lambda _, s: simulation.step(s, simulation.params), state))
    start = simulation.init(simulation.params, jax.random.key(0))
    whole, halves = step(start, 60), step(step(start, 25), 35)
    pairs = zip(*map(jax.tree.leaves, (whole, halves)), strict=True)
    assert all((np.asarray(one) == np.asarray(other)).all() for one, other in pairs)
