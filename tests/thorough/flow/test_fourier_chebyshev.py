import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.spectral.stokes_modes import fields, stokes_modes
from tests.flow.test_spectral import SMALL, STRONG, after, channel, compiled
from tests.tables import every


@every([("float32", 6e-8), ("float64", 1e-16)])
def test_no_divergence_and_no_slip(precision, rounding):
    with jax.enable_x64(precision == "float64"):
        state, measured, _ = after(40, "rest")
        modes = stokes_modes(SMALL["points"], SMALL["length"])
        u, v, _ = fields(modes, np.linspace(0, 5, 7), np.array([-1.0, 1.0]))(state.amplitudes)
    assert float(measured["fluctuation_energy"]) > 1e-3
    # Velocities up to 1, differentiated by a matrix with entries up to 17^2/3; u is a sum of slopes up to 17.
    assert float(measured["divergence"]) < 300 * rounding
    assert np.max(np.abs(u)) < 100 * rounding and np.max(np.abs(v)) < 100 * rounding


def test_a_mirrored_flow_stays_mirrored(x64):
    _, init, advance, _ = compiled("laminar", SMALL["points"], "float64")
    params = {name: jnp.asarray(value) for name, value in (STRONG | {"wall_velocity": 0.0}).items()}
    state = init(params, jax.random.key(0))
    y = np.array([0.3])
    modes = stokes_modes(SMALL["points"], SMALL["length"])
    # psi(y) becomes -psi(-y), so a mode is kept if its slope is even, and changes its sign if it is odd.
    flip = np.sign(modes.at(y, 1) * modes.at(-y, 1)).swapaxes(1, 2)
    assert set(flip.flat) == {-1.0, 1.0}
    flipped = advance(dataclasses.replace(state, amplitudes=flip * state.amplitudes), params, 40)
    # Rounding in each of 40 steps.
    np.testing.assert_allclose(flipped.amplitudes, flip * advance(state, params, 40).amplitudes, atol=1e-13)


def test_the_largest_allowed_time_step_is_stable(x64):
    """Little viscosity, strong eddies, and a Courant number just below 0.7."""
    settings = {"reynolds": 1e5, "perturbation": 0.1, "forcing": 1.0, "wall_velocity": 0.0, "time_step": 0.3}
    start, end = (after(steps, **settings)[1] for steps in (0, 600))
    assert 0.5 < start["courant_number"] < 0.7
    # Pressure supplies no more than friction of the laminar flow takes, 4/3 / 1e5 in a unit of time.
    assert end["kinetic_energy"] < start["kinetic_energy"] + 1e-5 * 4 / 3 * 180


@pytest.mark.usefixtures("x64")
@every(["laminar"])
def test_laminar_flow_is_steady(start):
    sim = channel(start)
    state, measured, params = after(
        50, start, perturbation=0.0, forcing=1.2, wall_velocity=-0.7, time_step=0.4, reynolds=4000.0
    )
    # Rounding in each of 50 steps.
    assert measured["poiseuille_deviation"] < 1e-13
    assert measured["bulk_velocity"] == pytest.approx(1.2 * 2 / 3 - 0.35, abs=1e-13)
    assert measured["centerline_velocity"] == pytest.approx(1.2 - 0.35, abs=1e-13)
    assert measured["wall_shear_stress"] == pytest.approx((2.4 - 0.35) / 4000, abs=1e-15)
    assert abs(measured["net_force"]) < 1e-15
    y = sim.coordinates["y"]
    observed = sim.observe(state, params)
    np.testing.assert_allclose(observed["profile"], 1.2 * (1 - y**2) - 0.35 * (1 + y), atol=1e-13)
    np.testing.assert_allclose(observed["vorticity"][0], 2.4 * y + 0.35, atol=1e-12)
    # Integral of (1.2 (1 - y^2) - 0.35 (1 + y))^2 over [-1, 1], divided by 4.
    energy = (1.44 * 16 / 15 - 0.84 * 4 / 3 + 0.1225 * 8 / 3) / 4
    assert measured["kinetic_energy"] == pytest.approx(energy, abs=1e-13)
    assert measured["growth_rate"] == 0 and measured["phase_speed"] == 0
