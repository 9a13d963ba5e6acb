"""A cylinder that oscillates in a fluid at rest: linear theory, and the benchmark of Duetsch et al."""

import numpy as np

from tests.physics.test_oscillating_cylinder import history


def drag_and_added_mass(method, cells):
    """The coefficients of Morison's equation in the fourth period at KC = 5, Re = 100."""
    period, amplitude, steps = 5.0, 5 / (2 * np.pi), round(5 * cells / 0.3)
    t, loads = history(method, cells, amplitude + 0.8, 20.0, 0.05, 1 / 100, period, steps, 4, amplitude, None)
    last, w = t > 3 * period, 2 * np.pi / period
    velocity, acceleration = -np.cos(w * t[last]), w * np.sin(w * t[last])
    shapes = np.stack([-0.5 * np.abs(velocity) * velocity, -np.pi / 4 * acceleration], axis=1)
    return np.linalg.lstsq(shapes, loads[last, 0])[0]


def test_oscillating_cylinder_has_the_drag_and_added_mass_of_the_benchmark():
    """Duetsch, Durst, Becker and Lienhart, J. Fluid Mech. 360, 249 (1998), doi:10.1017/S002211209800860X."""
    # Measured: 2.1425 and 1.478 with 16 cells per diameter, 2.086 and 1.469 with 24.
    np.testing.assert_allclose(drag_and_added_mass("immersed_boundary", 16), [2.09, 1.45], rtol=0.03)
