import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.spectral import spectral_channel
from simkit.flow.spectral.stokes_modes import fields, stokes_modes
from tests.tables import every

SMALL: dict = {"points": (8, 17), "length": 5.0, "cells": (8, 6)}

STRONG = {"reynolds": 100.0, "perturbation": 0.3, "wall_velocity": 0.4, "forcing": 0.8, "time_step": 0.05}


def channel(start="laminar", **params):
    """A small simulation with eddies so strong that every term counts."""
    return spectral_channel(**SMALL, start=start).with_params(**(STRONG | params))


@functools.cache
def compiled(start, points, precision):
    """Start, steps (any number of them) and measurements, compiled once."""
    sim = spectral_channel(**(SMALL | {"points": points}), start=start)

    def advance(state, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, state: sim.step(state, params), state)

    return sim, jax.jit(sim.init), jax.jit(advance), jax.jit(sim.diagnose)


def after(steps, start="laminar", points=SMALL["points"], **params):
    """State, measurements and parameters after some steps."""
    precision = "float64" if jax.config.jax_enable_x64 else "float32"
    _, init, _, diagnose = compiled(start, points, precision)
    params = {name: jnp.asarray(value, precision) for name, value in (STRONG | params).items()}
    # Every start is advanced by one and the same program.
    advance = compiled("laminar", points, precision)[2]
    state = advance(init(params, jax.random.key(0)), params, steps)
    return state, diagnose(state, params), params


@every(
    [
        {"points": (7, 17)},
        {"points": (2, 17)},
        {"points": (8, 7)},
        {"points": (8.0, 17)},
        {"points": (True, 17)},
        {"points": (8,)},
        {"points": 8},
        {"cells": (0, 4)},
        {"cells": "44"},
        {"length": 0},
        {"length": float("nan")},
        {"length": 30.0},
        {"start": "turbulent"},
        {"start": 1},
    ]
)
def test_bad_configuration_is_refused_in_one_line_with_a_remedy(config):
    with pytest.raises(UserError, match=rf"^{next(iter(config))}(\[\d\])? = .*(choose|write)") as error:
        spectral_channel(**config)
    assert "\n" not in str(error.value)


def test_a_wave_outside_the_table_is_refused():
    sim = spectral_channel(points=(4, 17))
    sim.check(sim.params, jax.random.key(0))
    with pytest.raises(UserError, match=r"reynolds \* forcing = 1000 is out of .*choose"):
        sim.check(sim.with_params(reynolds=1000.0).params, jax.random.key(0))


def test_float32_parameters_stay_float32_in_64_bit_mode(x64):
    sim = spectral_channel(**SMALL)
    params = jax.tree.map(lambda value: value.astype(jnp.float32), sim.params)
    state = jax.eval_shape(lambda p: sim.step(sim.init(p, jax.random.key(0)), p), params)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(state)} == {"float32", "int32"}
    recorded = [jax.eval_shape(part, state, params) for part in (sim.observe, sim.diagnose)]
    assert {leaf.dtype.name for leaf in jax.tree.leaves(recorded)} == {"float32"}


def test_start_of_poiseuille_flow_follows_its_series(x64):
    """Half-width 1, u = 1 - y^2 at the end: u(center) = 0.19774637 at nu t = 0.1, 0.69945453 at 0.5."""
    for time, expected in ((1.0, 0.19774637), (5.0, 0.69945453)):
        _, measured, _ = after(
            200, "rest", reynolds=10.0, perturbation=0.0, forcing=1.0, wall_velocity=0.0, time_step=time / 200
        )
        # Half a unit in the last digit, and the time step: third order, 1.7e-5 with 10 steps.
        assert measured["centerline_velocity"] == pytest.approx(expected, abs=1e-8)


def test_third_order_in_time(x64):
    finest, *states = (after(n, time_step=2.0 / n)[0].amplitudes for n in (512, 32, 64, 128))
    errors = [float(jnp.max(jnp.abs(state - finest))) for state in states]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    # The finest has (1/4)^3 of the last error, which adds 0.02; the next order is smaller by a step of 1/16.
    assert np.all(np.abs(orders - 3) < 0.1)


def test_energy_is_dissipated_by_friction_only(x64):
    """With walls at rest, dE/dt = 2 F/Re bulk velocity - dissipation, and advection has no part in it."""
    still = {"wall_velocity": 0.0, "time_step": 1e-4}
    state, before, params = after(0, **still)
    later = after(1, **still)[1]
    y, weights = np.polynomial.legendre.leggauss(20)
    modes = stokes_modes(SMALL["points"], SMALL["length"])
    _, _, vorticity = fields(modes, 5 * np.arange(16) / 16, y)(state.amplitudes)
    # Between walls at rest the integrals of the squares of vorticity and of all velocity gradients are equal.
    dissipation = jnp.mean((vorticity + 2 * y) ** 2 @ weights) / 2 / params["reynolds"]
    power = 2 * params["forcing"] / params["reynolds"] * before["bulk_velocity"]
    change = (later["kinetic_energy"] - before["kinetic_energy"]) / params["time_step"]
    # The middle of the step is 5e-5 away, with rates up to 10; rounding is 1e-16/1e-4.
    assert change == pytest.approx(float(power - dissipation), rel=5e-4)
