from itertools import product

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.spectral import leading_wave
from simkit.flow.spectral.orr_sommerfeld import lobatto_points
from tests.tables import every


def test_growth_rate_and_phase_speed_are_those_of_orszag():
    """Orszag 1971: c = 0.23752649 + 0.00373967 i at Re = 10000, alpha = 1."""
    wave = leading_wave(10000, 1.0)
    # Half a unit in the last digit given.
    assert wave.growth_rate == pytest.approx(0.00373967, abs=5e-9)
    assert wave.phase_speed == pytest.approx(0.23752649, abs=5e-9)


def test_poiseuille_flow_becomes_unstable_at_the_critical_reynolds_number():
    """Orszag 1971: Re = 5772.22 at alpha = 1.02056, c = 0.26400174."""
    wave = leading_wave(5772.22, 1.02056)
    # d(growth)/d(Re) is 7e-7 there, times half a unit in the last digit of Re.
    assert abs(wave.growth_rate) < 5e-9
    assert wave.phase_speed == pytest.approx(0.26400174, abs=5e-9)
    assert leading_wave(5700, 1.02056).growth_rate < 0 < leading_wave(5850, 1.02056).growth_rate
    # The critical wavenumber is that of greatest growth, so its neighbors are stable.
    assert leading_wave(5772.22, 1.00).growth_rate < 0 and leading_wave(5772.22, 1.04).growth_rate < 0


@every(product([500, 5000, 20000], [0.5, 1.0, 2.0]))
def test_couette_flow_is_stable(reynolds, wavenumber):
    """Romanov 1973 proved it for every Reynolds number and wavenumber."""
    assert leading_wave(reynolds, wavenumber, flow="couette").growth_rate < -1e-3


def test_the_wave_satisfies_equation_and_boundary_conditions():
    reynolds, alpha = 8000, 1.1
    wave = leading_wave(reynolds, alpha, points=81)
    y = np.linspace(-0.95, 0.95, 50)  # none of them a collocation point
    phi, d2, d4 = (wave.shape(y, derivative) for derivative in (0, 2, 4))
    laplacian, bilaplacian = d2 - alpha**2 * phi, d4 - 2 * alpha**2 * d2 + alpha**4 * phi
    advected = (1 - y**2) * laplacian + 2 * phi
    residual = wave.eigenvalue * laplacian + 1j * alpha * advected - bilaplacian / reynolds
    # Rounding of the coefficients, 1e-16, in a fourth derivative, up to 80^4/0.3^4 away from the walls, over Re.
    assert np.max(np.abs(residual)) < 1e-9 * np.max(np.abs(laplacian))
    walls = np.array([-1.0, 1.0])
    assert np.max(np.abs(wave.shape(walls))) < 1e-13  # sums of coefficients up to 1
    assert np.max(np.abs(wave.shape(walls, 1))) < 1e-10  # the same, times up to 80^2
    largest = np.abs(wave.shape(lobatto_points(81), 1))
    assert np.max(largest) == pytest.approx(1, abs=1e-9)


@every(
    [
        ({"reynolds": -1.0, "wavenumber": 1.0}, "reynolds"),
        ({"reynolds": 1e4, "wavenumber": 0.0}, "wavenumber"),
        ({"reynolds": float("nan"), "wavenumber": 1.0}, "reynolds"),
        ({"reynolds": 1e4, "wavenumber": 1.0, "flow": "pipe"}, "flow"),
        ({"reynolds": 1e4, "wavenumber": 1.0, "points": 5}, "points"),
    ]
)
def test_bad_arguments_are_refused_in_one_line_with_a_remedy(arguments, name):
    with pytest.raises(UserError, match=f"^{name} = .*(choose|write)") as error:
        leading_wave(**arguments)
    assert "\n" not in str(error.value)
