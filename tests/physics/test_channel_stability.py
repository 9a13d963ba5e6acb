"""Growth of Tollmien-Schlichting waves on finite volumes, from the eigenvalues of the discrete equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.operators.advection import advection
from simkit.flow.operators.differences import curl, inside
from simkit.flow.operators.diffusion import laplacian
from simkit.flow.spectral.orr_sommerfeld import leading_wave
from tests.flow.flows import WALLS

REYNOLDS = 7500.0


def growth_rate(cells, stretching, wall_slope):
    """Return the largest growth rate of waves of one period on the parabola, without an error of the time step.

    Stream functions on the corners span the solenoidal velocities, to which gradients are orthogonal: projected on
    them, the linearized equations are a matrix.
    """
    axes = periodic_axis(cells[0], 2 * np.pi), bounded_axis(cells[1], 2.0, -1.0, stretching)
    place = domain(axes, (None, WALLS), wall_slope)
    grid, rest, n = place.grid, no_motion(place), cells[1] - 1
    profile = jnp.broadcast_to(jnp.asarray(1 - axes[1].centers ** 2), grid.shape(0))
    base = profile, jnp.zeros(grid.shape(1))
    x = axes[0].points[:, None]

    def rate(velocity):
        around = surround(velocity, rest, place)
        friction, carried = laplacian(around, place), advection(around, place)
        return jax.tree.map(lambda f, n: f / REYNOLDS - n, friction, carried)

    def flat(components):
        return jnp.concatenate([f.ravel() for f in components])

    @jax.vmap
    def image(amplitudes):
        cosine, sine = (jnp.pad(part, 1) for part in (amplitudes[:n], amplitudes[n:]))
        wave = curl(jnp.cos(x) * cosine + jnp.sin(x) * sine, grid)
        weighted = [inside(f, i, grid) * control_volumes(i, grid) for i, f in enumerate(wave)]
        own = [inside(f, i, grid) for i, f in enumerate(wave)]
        return flat(weighted), flat(own), flat(jax.jvp(rate, (base,), (wave,))[1])

    weighted, own, changes = (np.asarray(f) for f in jax.jit(image)(jnp.eye(2 * n)))
    return np.linalg.eigvals(np.linalg.solve(weighted @ own.T, weighted @ changes.T)).real.max()


# The errors of a second-order scheme with 2 or 7 cells in a wall layer 0.03 thick; those of docs/flow.md.
@pytest.mark.parametrize(
    ("stretching", "wall_slope", "error"),
    [(0.0, "symmetric", -0.101), (0.0, "parabola", -0.471), (2.0, "symmetric", -0.048), (2.0, "parabola", -0.061)],
)
def test_growth_of_tollmien_schlichting_waves(stretching, wall_slope, error, x64):
    exact = leading_wave(REYNOLDS, 1.0).growth_rate
    # Shown to a tenth of a per cent.
    assert growth_rate((64, 128), stretching, wall_slope) / exact - 1 == pytest.approx(error, abs=6e-4)
