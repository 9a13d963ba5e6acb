from itertools import product

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.spectral import leading_wave, waves
from simkit.flow.spectral.orr_sommerfeld import lobatto_points
from tests.flow.flows import over


def test_growth_rate_and_phase_speed_are_those_of_orszag():
    """Orszag 1971: c = 0.23752649 + 0.00373967 i at Re = 10000, alpha = 1."""
    wave = leading_wave(10000, 1.0)
    # Half a unit in the last digit given.
    assert wave.growth_rate == pytest.approx(0.00373967, abs=5e-9)
    assert wave.phase_speed == pytest.approx(0.23752649, abs=5e-9)


def test_the_result_does_not_depend_on_the_number_of_points():
    # Between too few points and round-off, which grows like the fourth power of their number.
    found = [leading_wave(10000, 1.0, points=points).eigenvalue for points in (61, 81, 101)]
    np.testing.assert_allclose(found, found[0], rtol=0, atol=1e-9)


def test_poiseuille_flow_becomes_unstable_at_the_critical_reynolds_number():
    """Orszag 1971: Re = 5772.22 at alpha = 1.02056, c = 0.26400174."""
    wave = leading_wave(5772.22, 1.02056)
    # d(growth)/d(Re) is 7e-7 there, times half a unit in the last digit of Re.
    assert abs(wave.growth_rate) < 5e-9
    assert wave.phase_speed == pytest.approx(0.26400174, abs=5e-9)
    assert leading_wave(5700, 1.02056).growth_rate < 0 < leading_wave(5850, 1.02056).growth_rate
    # The critical wavenumber is that of greatest growth, so its neighbors are stable.
    assert leading_wave(5772.22, 1.00).growth_rate < 0 and leading_wave(5772.22, 1.04).growth_rate < 0


@over(product([500, 5000, 20000], [0.5, 1.0, 2.0]))
def test_couette_flow_is_stable(reynolds, wavenumber):
    """Romanov 1973 proved it for every Reynolds number and wavenumber."""
    assert leading_wave(reynolds, wavenumber, flow="couette").growth_rate < -1e-3


def test_waves_on_couette_flow_come_in_pairs_of_opposite_phase_speed():
    eigenvalues = waves(300, 1.0, flow="couette", points=49)[0][:8]
    # Ill-conditioned eigenvalues magnify rounding a thousand times and more.
    for eigenvalue in eigenvalues:
        assert np.min(np.abs(eigenvalues - np.conj(eigenvalue))) < 1e-9


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


def test_streamfunction_at_corners_gives_a_velocity_without_divergence():
    alpha, nx, faces = 1.0, 12, np.tanh(2 * np.linspace(-1, 1, 17)) / np.tanh(2)
    wave = leading_wave(10000, alpha)
    x = 2 * np.pi / alpha * np.arange(nx + 1) / nx
    psi = wave.streamfunction(x, faces)
    # Rounding of psi, below 1.
    np.testing.assert_allclose(psi[0], psi[-1], atol=1e-14)
    np.testing.assert_allclose(psi[:, [0, -1]], 0, atol=1e-13)
    u = np.diff(psi, axis=1) / np.diff(faces)
    v = -np.diff(psi, axis=0) / np.diff(x)[:, None]
    divergence = np.diff(u, axis=0) / np.diff(x)[:, None] + np.diff(v, axis=1) / np.diff(faces)
    # Rounding of psi divided by the area of the smallest cell, 0.5 * 0.02.
    assert np.max(np.abs(divergence)) < 1e-12 < np.max(np.abs(u))
    # Face velocities are means of the exact ones: midpoint rule, second order on the fine cells near the wall.
    middle = (faces[1:] + faces[:-1]) / 2
    exact = np.real(np.exp(1j * alpha * x)[:, None] * wave.shape(middle, 1))
    assert np.max(np.abs(u - exact)) < 0.1 * np.max(np.abs(exact))


def test_the_wave_travels_and_grows():
    wave, x, y = leading_wave(10000, 1.0), np.linspace(0, 6, 7), np.array([-0.9, 0.0, 0.3])
    later, time = wave.streamfunction(x, y, 20.0), 20.0
    moved = np.exp(wave.growth_rate * time) * wave.streamfunction(x - wave.phase_speed * time, y)
    np.testing.assert_allclose(later, moved, atol=1e-14)  # rounding


@over(
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
