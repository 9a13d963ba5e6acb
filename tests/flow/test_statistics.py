"""Statistics of channel flow: exact balances, moments of known fields, and means that resume and vectorize."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.flow.diagnosis.measures import kinetic_energy, mean_velocity
from simkit.flow.diagnosis.statistics import ChannelStatistics, with_statistics
from simkit.flow.equations import Equations
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import fixed_time_step
from simkit.flow.systems.turbulent_channel import random_waves, turbulent_channel
from tests.flow.flows import DOMAINS, solenoidal_noise, some
from tests.tables import every

PLACES = pytest.mark.parametrize(
    "place", [DOMAINS[name] for name in ("even", "stretched", "channel 3-D")], ids=["even", "stretched", "3-D"]
)
WALL = 0.7


def moving_walls(place):
    rest = (0.0,) * (place.grid.dimension - 1)
    sides = ((0.0, *rest), (WALL, *rest))
    return lambda params, time: (None, sides, *place.sides[2:])


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
        hold=(),
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


def forced(place, *, method="runge_kutta", drive=True, wall=True) -> Simulation:
    """A channel driven by a pressure gradient of 1, from random waves."""
    boundary = moving_walls(place) if wall else None
    start, step = stepper(
        Equations(
            place,
            lambda params: params["viscosity"],
            fixed_time_step,
            boundary=boundary,
            force=(lambda velocity, c, params, time: (1.0, *(0.0,) * (place.grid.dimension - 1))) if drive else None,
            method=method,
        )
    )

    def init(params, key):
        waves = random_waves(place.grid, key, params["viscosity"].dtype)
        return start(jax.tree.map(lambda f: params["waves"] * f, waves), params)

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"profile": state.velocity[0].mean(axis=(0, 2))},
        diagnose=lambda state, params: {
            "time": state.time[0],
            "energy": kinetic_energy(state.velocity, place.grid),
            "bulk": mean_velocity(state.velocity, 0, place.grid),
        },
        params={n: jnp.asarray(x, float) for n, x in {"viscosity": 0.05, "waves": 1.0, "time_step": 0.01}.items()},
    )


@every(
    [
        ({"cells": (8, 8)}, "cells has 2 entries; write 3"),
        ({"lengths": 3.0}, "lengths = 3 is no list"),
        ({"drive": "pump"}, "drive = 'pump' is unknown"),
        ({"settle": -1}, "skip = -1 is negative"),
    ]
)
def test_mistakes_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        turbulent_channel(**values)


def test_means_of_profiles_on_faces_weigh_unequal_cells():
    """Half the cell beside a wall belongs to its face; the mean of y^2 over -1 to 1 is 1/3."""
    place = DOMAINS["stretched"]
    simulation = with_statistics(forced(place, method="runge_kutta"), statistics_of(place), every=1, skip=0)
    y, widths = simulation.coordinates["y_face"], simulation.coordinates["y_face_widths"]
    assert np.sum(widths) == pytest.approx(y[-1] - y[0])
    mean = np.sum(widths * y**2) / np.sum(widths)
    assert mean == pytest.approx((y[-1] ** 3 - y[0] ** 3) / 3 / (y[-1] - y[0]), rel=0.01)
