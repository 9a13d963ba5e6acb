"""Published numbers of flows that take long."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.estimation import standard_errors
from simkit.core.rollout import segment, trajectory
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import refined_axis
from simkit.flow.obstacles import Body, ScalarSurface, ball, bodies_in, points_around
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from simkit.flow.systems.turbulent_channel import turbulent_channel
from simkit.flow.systems.viscosity_from_frames import viscosity_from_frames
from tests.physics import test_channel, test_cylinder, test_flow_derivatives, test_lid_driven_cavity
from tests.physics.test_cylinder import DRAG, LIFT, METHODS, PRESSURE, channel, history, oscillation
from tests.physics.test_viscosity_from_frames import TRUE, at_truth
from tests.tables import every


def shedding(name, method):
    """A diagnostic while vortices are shed regularly: with 16 cells, or 48 for direct forcing."""
    found = history(16, 100.0, 0.02, 40.0) if method == "immersed_boundary" else history(48, 100.0, 0.006, 36.0, method)
    return found[name][found["time"] > (30 if method == "immersed_boundary" else 24)]


def test_steady_drag_lift_and_pressure_of_direct_forcing_converge_to_those_of_the_benchmark():
    last = {name: values[-1] for name, values in history(48, 20.0, 0.0025, 16.0, "direct_forcing").items()}
    assert last["drag_coefficient"] == pytest.approx(DRAG, rel=1e-3)
    assert last["pressure_difference"] == pytest.approx(PRESSURE, rel=5e-3)
    assert last["lift_coefficient"] == pytest.approx(LIFT, rel=0.01)


@METHODS
def test_vortices_at_reynolds_100_are_shed_as_often_as_in_the_benchmark(method):
    time, lift = shedding("time", method), shedding("lift_coefficient", method)
    above = lift - lift.mean()
    rises = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    crossings = time[rises] - above[rises] * (time[rises + 1] - time[rises]) / (above[rises + 1] - above[rises])
    # Measured: 0.303 and 0.304.
    assert 0.295 < (len(crossings) - 1) / (crossings[-1] - crossings[0]) < 0.305


def test_largest_drag_and_lift_at_reynolds_100_are_near_those_of_the_benchmark_with_16_cells():
    # Measured: 3.274, published 3.22 to 3.24; and 0.961, published 0.99 to 1.01. Direct forcing: 3.062 and 0.652.
    assert shedding("drag_coefficient", "immersed_boundary").max() == pytest.approx(3.23, rel=0.02)
    assert shedding("lift_coefficient", "immersed_boundary").max() == pytest.approx(1.0, rel=0.05)


def test_largest_drag_and_lift_in_a_pulse_are_near_those_of_the_benchmark_with_16_cells():
    """The third case, 2D-3; values of John, Int. J. Numer. Meth. Fluids 44, 777 (2004), doi:10.1002/fld.679."""
    found = history(16, 100.0, 0.02, 80.0, pulse=80.0, growth=0.015)
    # Measured: 2.989 and 0.475.
    assert found["drag_coefficient"].max() == pytest.approx(2.9509, rel=0.02)
    assert found["lift_coefficient"].max() == pytest.approx(0.4779, rel=0.05)


def test_pressure_after_a_pulse_is_that_of_the_benchmark_with_24_cells():
    found = history(24, 100.0, 0.02, 80.0, pulse=80.0, growth=0.03)
    # Measured: -0.1113; with 16 cells -0.1032, 7.6 % off: the wake that is left of the pulse needs them.
    assert found["pressure_difference"][-1] == pytest.approx(-0.1116, rel=0.01)


def test_largest_drag_of_direct_forcing_at_reynolds_100_is_that_of_the_benchmark():
    # Measured: 3.226; with 24 cells per diameter, 3.16.
    assert 3.22 < shedding("drag_coefficient", "direct_forcing").max() < 3.24


def test_drag_changes_as_smoothly_with_the_position_of_the_cylinder_as_on_a_finer_grid():
    """While the cylinder moves through a cell, at Reynolds number 20."""

    def drags(cells, time_step, places):
        simulation = channel(cells, 0.04, reynolds=20.0, disturbance=0.0, time_step=time_step)
        simulation = dataclasses.replace(simulation, observe=lambda state, params: {})
        steps = round(12 / time_step)
        run = jax.jit(lambda p: trajectory(simulation, steps, steps)(p, jax.random.key(0))[2]["drag_coefficient"][-1])
        return np.array([run(simulation.params | {"center_x": jnp.asarray(x)}) for x in places])

    with jax.enable_x64(True):
        places = 2 + np.linspace(0, 1, 6) / 16
        slopes = np.diff(drags(16, 0.0133, places)) / np.diff(places)
        fine = np.diff(drags(32, 0.0055, places[[0, -1]])) / (places[-1] - places[0])
    # Measured: -0.598 to -0.507 and -0.550; within 9 %. Direct forcing: +0.59 to -1.57.
    np.testing.assert_allclose(slopes, fine[0], rtol=0.1)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="0.949 with 48 cells per diameter, 0.827 with 24: second order, toward 0.989",
)
def test_largest_lift_of_direct_forcing_at_reynolds_100_is_that_of_the_benchmark():
    assert 0.99 < shedding("lift_coefficient", "direct_forcing").max() < 1.01


REYNOLDS, PRANDTL, CELLS = 20.0, 0.7, 12


def test_nusselt_number_of_a_heated_cylinder_is_the_published_one():
    """Bharti, Chhabra and Eswaran, Heat Mass Transfer 43, 639 (2007), doi:10.1007/s00231-006-0155-1: 2.4653."""
    axes = (
        refined_axis(1 / CELLS, (-1.0, 1.0), 45.0, 0.06, -15.0),
        refined_axis(1 / CELLS, (-1.0, 1.0), 50.0, 0.06, -25.0),
    )
    place = domain(axes, (("inflow", "outflow"), ("free_slip", "free_slip")))
    still, diffusivity = (0.0, 0.0), 1 / (REYNOLDS * PRANDTL)
    warm = Body(
        lambda p: ball((0.0, 0.0), 0.5),
        lambda p: (0.0, 0.0),
        points=points_around(3.1416, 1 / CELLS),
        scalar=ScalarSurface(value=lambda p, t: 1.0),
    )
    held = bodies_in(place, "immersed_boundary", {"cylinder": warm}, 1 / REYNOLDS)
    scalar = TransportedScalar(place, (("value", "insulated"), ("insulated", "insulated")), lambda p: diffusivity)
    stream = (((1.0, 0.0), still), (still, still))
    equations = Equations(
        place, 1 / REYNOLDS, fixed_time_step, boundary=lambda p, t: stream, obstacle=held, scalar=scalar
    )
    start, step = stepper(equations)
    params = {"time_step": jnp.asarray(0.024)}

    @jax.jit
    def last():
        velocity = jnp.ones(place.grid.shape(0)), jnp.zeros(place.grid.shape(1))
        first = start(velocity, params, jnp.zeros(place.grid.cells))
        return jax.lax.scan(lambda s, _: (step(s, params), None), first, None, length=1050)[0].load

    # Measured after 25 units of time: 2.4525, after 40 units 2.4494.
    assert held.heat_of("cylinder", last()) / (jnp.pi * diffusivity) == pytest.approx(2.4653, rel=0.015)


def drag_and_added_mass(method, cells):
    """The coefficients of Morison's equation in the fourth period at KC = 5, Re = 100."""
    period, amplitude, steps = 5.0, 5 / (2 * np.pi), round(5 * cells / 0.3)
    t, loads = oscillation(method, cells, amplitude + 0.8, 20.0, 0.05, 1 / 100, period, steps, 4, amplitude, None)
    last, w = t > 3 * period, 2 * np.pi / period
    velocity, acceleration = -np.cos(w * t[last]), w * np.sin(w * t[last])
    shapes = np.stack([-0.5 * np.abs(velocity) * velocity, -np.pi / 4 * acceleration], axis=1)
    return np.linalg.lstsq(shapes, loads[last, 0])[0]


def test_oscillating_cylinder_has_the_drag_and_added_mass_of_the_benchmark():
    """Duetsch, Durst, Becker and Lienhart, J. Fluid Mech. 360, 249 (1998), doi:10.1017/S002211209800860X."""
    # Measured: 2.1425 and 1.478 with 16 cells per diameter, 2.086 and 1.469 with 24.
    np.testing.assert_allclose(drag_and_added_mass("immersed_boundary", 16), [2.09, 1.45], rtol=0.03)


def test_minimal_channel_has_the_published_mean_profile_and_stresses():
    """A mean over t = 8 to 24; half a minute on two quiet cores.

    Published: Kim, Moin and Moser (1987) and Moser, Kim and Mansour (1999), in a box of 4 pi x 2 x 4/3 pi or wider. The
    smallest box (Jimenez and Moin 1991) has the same statistics below y+ = 40 or so, within 5 %, and fluctuates more.
    """
    simulation = turbulent_channel(settle=400)
    state = jax.jit(segment(simulation, 1200))(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    found = {**simulation.observe(state, simulation.params), **simulation.diagnose(state, simulation.params)}
    faces, centers = (simulation.coordinates[name] for name in ("y_face", "y"))

    def folded(profile):
        return (np.asarray(profile) + np.asarray(profile)[::-1])[: len(profile) // 2] / 2

    y_plus = 180 * (1 + centers[: len(centers) // 2])
    profile = folded(found["mean_velocity"])
    assert found["mean_bulk_velocity"] == pytest.approx(15.63, rel=0.05)
    assert np.interp(5, y_plus, profile) == pytest.approx(4.9, rel=0.05)
    assert np.interp(30, y_plus, profile) == pytest.approx(13.5, rel=0.08)
    assert np.sqrt(folded(found["reynolds_stress_uu"]).max()) == pytest.approx(2.66, rel=0.07)
    assert 10 < y_plus[folded(found["reynolds_stress_uu"]).argmax()] < 20
    assert np.sqrt(folded(found["reynolds_stress_vv"]).max()) == pytest.approx(0.84, rel=0.1)
    assert np.sqrt(folded(found["reynolds_stress_ww"]).max()) == pytest.approx(1.08, rel=0.1)
    # The total shear stress is -y but for what the mean flow gains and loses within 16 h/u_tau: 0.3 u_tau of 16.
    np.testing.assert_allclose(found["shear_stress"], -faces, rtol=0, atol=0.05)
    # What the pressure gradient spends is dissipated, but for the change of the kinetic energy: 5 of 16 per unit time.
    assert found["mean_dissipation"] == pytest.approx(float(found["mean_bulk_velocity"]), rel=0.03)


@every([(128, 100), (128, 400)])
def test_velocity_on_the_centerlines_of_a_fine_cavity_is_that_of_ghia(cells, reynolds):
    test_lid_driven_cavity.test_velocity_on_the_centerlines_is_that_of_ghia.check(cells, reynolds)


def test_small_oscillations_of_an_immersed_boundary_have_the_force_and_torque_of_stokes():
    test_cylinder.test_small_oscillations_have_the_force_and_torque_of_stokes.check("immersed_boundary")


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


def test_shipped_optimization_finds_the_truth_within_its_standard_error():
    found = simkit.optimize("viscosity_from_frames", ["reynolds", "forcing"], iterations=20)
    with jax.enable_x64(True):
        simulation = viscosity_from_frames()
        errors = standard_errors(simulation, at_truth(simulation), 40, tuple(TRUE), "uv")
    for name, truth in TRUE.items():
        assert abs(float(found[f"best_{name}"][-1]) - truth) < 4 * errors[name], (name, errors)
