"""The physics of flow on finer grids and by further methods."""

import pytest

from tests.physics import test_channel, test_flow_derivatives, test_lid_driven_cavity, test_oscillating_cylinder
from tests.tables import every


@every([(128, 100), (128, 400)])
def test_velocity_on_the_centerlines_of_a_fine_cavity_is_that_of_ghia(cells, reynolds):
    test_lid_driven_cavity.test_velocity_on_the_centerlines_is_that_of_ghia.check(cells, reynolds)


def test_small_oscillations_of_an_immersed_boundary_have_the_force_and_torque_of_stokes():
    test_oscillating_cylinder.test_small_oscillations_have_the_force_and_torque_of_stokes.check("immersed_boundary")


@pytest.mark.usefixtures("x64")
@every(["Runge-Kutta, implicit, adaptive", "Adams-Bashforth", "Adams-Bashforth, implicit"])
def test_derivatives_equal_central_differences_with_more_methods(scheme):
    test_flow_derivatives.test_derivatives_equal_central_differences.check(scheme)


@pytest.mark.usefixtures("x64")
@every([(ny, *drive) for ny in (4, 8) for drive in test_channel.DRIVES])
def test_steady_flow_is_the_sum_of_both_profiles_on_more_grids(ny, wall_velocity, forcing):
    test_channel.test_steady_flow_is_the_sum_of_linear_and_parabolic_profile_to_round_off.check(
        ny, wall_velocity, forcing
    )
