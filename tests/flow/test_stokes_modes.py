import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from simkit.flow.spectral.stokes_modes import advection, fields, stokes_modes
from tests.tables import every

POINTS, LENGTH = (8, 17), 5.0


def random_amplitudes(points=POINTS, harmonics=None):
    """Amplitudes that decrease with the mode number; zero for the mean sine, which is no mode."""
    nk, n = points[0] // 2, points[1] - 4
    values = np.random.default_rng(3).normal(size=(nk, 2, n)) / (1 + np.arange(n)) ** 2
    values[0, 1] = 0
    if harmonics is not None:
        values[harmonics:] = 0
    return values


def parabola(y):
    return 1 - y**2


@every([(case,) for case in [(4, 8), (8, 17), (6, 65)]])
def test_modes_are_orthonormal_and_at_rest_on_the_walls(points):
    modes = stokes_modes(points, LENGTH)
    y, weights = np.polynomial.legendre.leggauss(points[1])
    phi, slope = modes.at(y), modes.at(y, 1)
    for k, shape, u in zip(modes.wavenumbers, phi, slope, strict=True):
        gram = (u * weights) @ u.T + k**2 * (shape * weights) @ shape.T
        # Rounding of the coefficients, times a derivative, up to 65^2 / 4.
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)
    walls = np.array([-1.0, 1.0])
    # Rounding of coefficients of order 1/n, and of those times n^2.
    np.testing.assert_allclose(modes.at(walls)[1:], 0, atol=1e-13)
    np.testing.assert_allclose(modes.at(walls, 1), 0, atol=1e-11)


def test_decay_rates_are_those_of_creeping_flow():
    """Modes even in y: p tan(p) = -k tanh(k), odd ones: p cot(p) = k coth(k), and decay = p^2 + k^2."""
    modes = stokes_modes((4, 33), LENGTH)
    k = modes.wavenumbers[1]

    def even(p):
        return p * np.sin(p) + k * np.tanh(k) * np.cos(p)

    def odd(p):
        return p * np.cos(p) - k / np.tanh(k) * np.sin(p)

    exact = []
    for condition in (even, odd):
        grid = np.linspace(0.5, 14, 400)
        signs = np.sign(condition(grid))
        for i in np.flatnonzero(signs[1:] != signs[:-1]):
            exact.append(scipy.optimize.brentq(condition, grid[i], grid[i + 1], xtol=1e-14) ** 2 + k**2)
    # Round-off of the largest singular value, 2e2, relative to the smallest, 3.
    np.testing.assert_allclose(modes.decay[1, :6], np.sort(exact)[:6], rtol=1e-12)
    # The mean flow decays like sines: decay = (m pi/2)^2.
    np.testing.assert_allclose(modes.decay[0, :6], (np.arange(1, 7) * np.pi / 2) ** 2, rtol=1e-12)
    assert np.all(np.diff(modes.decay, axis=1) > 0)


def test_advection_is_the_projection_of_the_lamb_vector(x64):
    """In two dimensions -(u . grad) u is (omega v, -omega u) but for a gradient, which modes do not see."""
    modes, amplitudes = stokes_modes(POINTS, LENGTH), jnp.asarray(random_amplitudes())
    y, weights = np.polynomial.legendre.leggauss(40)
    x = LENGTH * np.arange(32) / 32
    measure = np.where(np.arange(4) == 0, 1, 2)[:, None, None] / 32
    everywhere = fields(modes, x, y)
    u, v, vorticity = everywhere(amplitudes)
    u, vorticity = u + parabola(y), vorticity + 2 * y
    _, of_each = jax.linearize(lambda a: everywhere(a)[:2], amplitudes)
    project = jax.linear_transpose(of_each, amplitudes)
    (expected,) = project((vorticity * v * weights, -vorticity * u * weights))
    found = advection(modes, POINTS)(amplitudes, parabola)
    # Rounding of sums of numbers up to 10, in both.
    np.testing.assert_allclose(found, expected * measure, atol=1e-12)
    assert np.max(np.abs(found)) > 0.1
