"""Kolmogorov flow: exact solutions, energy balance, derivatives."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment, trajectory
from simkit.errors import UserError
from simkit.flow import kolmogorov_turbulence

pytest.importorskip("jax_cfd.spectral")
KEY = jax.random.key(3)
CELLS = 32


@functools.cache
def turbulence():
    return kolmogorov_turbulence(cells=CELLS)


@functools.cache
def advance(steps):
    return jax.jit(segment(turbulence(), steps))


@functools.cache
def compiled(name):
    return jax.jit(getattr(turbulence(), name))


def with_vorticity(params, values):
    """Return the state with the given vorticity at the points."""
    hat = jnp.fft.rfftn(values)
    return dataclasses.replace(compiled("init")(params, KEY), flow=jnp.stack([hat.real, hat.imag]))


def points():
    x = np.arange(CELLS) * 2 * np.pi / CELLS
    return np.meshgrid(x, x, indexing="ij")


def params_with(**values):
    return turbulence().with_params(**values).params


def test_single_wave_decays_at_its_exact_rate(x64):
    # A wave along one direction does not advect itself: w = exp(-(nu k^2 + alpha) t) cos(2 x + 3 y), k^2 = 13.
    params = params_with(viscosity=0.1, drag=0.2, forcing=0.0, time_step=0.02)
    x, y = points()
    wave = np.cos(2 * x + 3 * y)
    state = advance(50)(with_vorticity(params, wave), params)
    rate = 0.1 * 13 + 0.2
    # Crank-Nicolson multiplies by (1 - r h/2)/(1 + r h/2) = exp(-r h - (r h)^3/12 ...) in steps of h = 1/3, 5/12 and
    # 1/4 of dt, whose cubes add up to 0.125 dt^3.
    slowness = rate**3 * 0.02**2 * 0.125 / 12
    found = compiled("observe")(state, params)["vorticity"]
    np.testing.assert_allclose(found, np.exp(-rate - slowness) * wave, rtol=0, atol=1e-9)
    assert 1e-7 < slowness < 2e-5


def test_laminar_flow_is_steady(x64):
    params = params_with(viscosity=0.05, drag=0.1, forcing=0.8, time_step=0.01)
    _, y = points()
    speed = 0.8 / (0.05 * 16 + 0.1)
    state = advance(50)(with_vorticity(params, -4 * speed * np.cos(4 * y)), params)
    seen, numbers = compiled("observe")(state, params), compiled("diagnose")(state, params)
    # Round-off, which the instability of this flow has no time to magnify.
    np.testing.assert_allclose(seen["u"], speed * np.sin(4 * y), rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen["v"], 0, rtol=0, atol=1e-12)
    assert float(numbers["kinetic_energy"]) == pytest.approx(speed**2 / 4, rel=1e-12)
    assert float(numbers["energy_input"]) == pytest.approx(0.8 * speed / 2, rel=1e-12)
    assert float(numbers["dissipation"]) == pytest.approx(0.05 * 16 * speed**2 / 2, rel=1e-12)
    assert float(numbers["drag_loss"]) == pytest.approx(0.1 * speed**2 / 2, rel=1e-12)
    assert float(numbers["energy_rate"]) == pytest.approx(0, abs=1e-12)


def test_energy_changes_by_input_minus_losses(x64):
    params = params_with(viscosity=0.02, time_step=2e-3)
    _, _, numbers = jax.jit(trajectory(turbulence(), 100, 1))(params, KEY)
    net = numbers["energy_input"] - numbers["dissipation"] - numbers["drag_loss"]
    change = (numbers["kinetic_energy"][2:] - numbers["kinetic_energy"][:-2]) / (2 * 2e-3)
    # The flow turns at a rate of some 10 per unit of time: the central difference is off by (10 dt)^2/6 = 7e-5 of
    # rates below 1. Losses alone are above 0.05.
    np.testing.assert_allclose(change, net[1:-1], rtol=0, atol=7e-5)
    assert float(jnp.min(numbers["dissipation"])) > 0.05


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cells": 17}, "cells = 17 is not an even integer"),
        ({"cells": 8}, "at least 16"),
        ({"cells": True}, "cells = True is not"),
        ({"wave_number": 0}, "wave_number = 0 is not an integer of at least 1"),
        ({"cells": 16, "wave_number": 5}, "wave_number = 5 is not an integer from 1 to 4"),
    ],
)
def test_bad_configuration_is_refused(config, message):
    with pytest.raises(UserError, match=message):
        kolmogorov_turbulence(**config)
