"""Statistics of channel flow: exact balances, moments of known fields, and means that resume and vectorize."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.diagnosis.statistics import ChannelStatistics
from simkit.flow.stepping.stepper import FlowState
from simkit.flow.systems.turbulent_channel import turbulent_channel
from tests.flow.flows import DOMAINS, solenoidal_noise, some
from tests.tables import every


def statistics_of(place, **options) -> ChannelStatistics:
    return ChannelStatistics(place, lambda params: params["viscosity"], **options)


def state_of(velocity, iteration=0) -> FlowState:
    zero = jnp.zeros((), velocity[0].dtype)
    return FlowState(
        velocity=velocity,
        pressure=zero,
        scalar=(),
        explicit=(),
        drive=zero,
        load=zero,
        obstacle_data=(),
        time=jnp.stack([zero, zero]),
        time_step=zero,
        iteration=jnp.int32(iteration),
    )


def moments(statistics, velocity):
    return statistics.sample(state_of(velocity), {"viscosity": jnp.asarray(1.0)})


def viscosity(nu):
    return {"viscosity": jnp.asarray(nu)}


@pytest.mark.usefixtures("x64")
@every(some(DOMAINS, "channel 3-D"))
def test_moments_of_known_fields(place):
    """Take u = U(y) + a s(x), v = 0 and w = b s(x) with a wave s of mean square 1/2."""
    grid = place.grid
    y, x = grid.axes[1].centers, grid.axes[0].points
    profile = 1 - y**2
    wave = np.sin(2 * np.pi * x / grid.axes[0].length)
    shape = [1] * (grid.dimension - 2)
    u = jnp.asarray((profile + 0.4 * wave[:, None]).reshape(*grid.shape(0)[:2], *shape)) + jnp.zeros(grid.shape(0))
    velocity = (u, *(jnp.zeros(grid.shape(i)) for i in range(1, grid.dimension)))
    for reference in (None, profile + 0.01 * y):
        statistics = statistics_of(place, reference=reference)
        found = jax.jit(lambda v, s=statistics: s.profiles(moments(s, v), viscosity(0.1)))(velocity)
        # Rounding of numbers of order 1.
        exact = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-14)
        exact(found["mean_velocity"], profile)
        exact(found["reynolds_stress_uu"], 0.08)
        exact(found["reynolds_stress_vv"], 0)
        exact(found["reynolds_stress_uv"], 0)
        # Of du'/dx alone away from the walls, by the differences of the grid.
        step = grid.axes[0].length / grid.cells[0]
        slope = 0.4 * (2 / step) * np.sin(np.pi * step / grid.axes[0].length)
        np.testing.assert_allclose(found["dissipation"][1:-1], 0.1 * slope**2 / 2, rtol=1e-12)


def test_moments_over_time_are_those_of_all_samples_together(x64):
    """Two instants with other mean profiles: their difference counts as fluctuation."""
    place = DOMAINS["channel 3-D"]
    statistics = statistics_of(place, reference=np.linspace(0, 1, place.grid.cells[1]))
    fields = [solenoidal_noise(place.grid, seed) for seed in (0, 1)]
    fields[1] = (fields[1][0] + 1.5, *fields[1][1:])

    @jax.jit
    def profiles(fields):
        mean = jax.tree.map(lambda a, b: (a + b) / 2, *(moments(statistics, field) for field in fields))
        return statistics.profiles(mean, viscosity(1.0))

    found = profiles(fields)
    u, _, w = (np.stack([field[i] for field in fields]) for i in range(3))
    # Rounding of means of numbers of order 1.
    for name, f in (("uu", u), ("ww", w)):
        np.testing.assert_allclose(found[f"reynolds_stress_{name}"], f.var(axis=(0, 1, 3)), rtol=1e-12)
    np.testing.assert_allclose(found["mean_velocity"], u.mean(axis=(0, 1, 3)), rtol=0, atol=1e-14)


@every(
    [
        ({"cells": (8, 8)}, "cells has 2 entries; write 3"),
        ({"lengths": 3.0}, "lengths = 3 is no list"),
        ({"drive": "pump"}, "drive = 'pump' is unknown"),
        ({"settle": -1}, "skip = -1 is not an integer of at least 0"),
    ]
)
def test_mistakes_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        turbulent_channel(**values)
