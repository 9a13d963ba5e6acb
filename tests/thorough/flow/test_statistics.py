"""Statistics of channel flow: exact balances, moments of known fields, and means that resume and vectorize."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.statistics import with_statistics
from simkit.flow.operators.diffusion import laplacian, shear
from tests.flow.flows import DOMAINS, inner, solenoidal_noise, some
from tests.flow.test_statistics import KEY, WALL, forced, moments, moving_walls, statistics_of, viscosity
from tests.tables import every


@functools.cache
def measured(every=1, skip=0):
    place = DOMAINS["channel 3-D"]
    statistics = statistics_of(place, boundary=moving_walls(place))
    return with_statistics(forced(place, method="adams_bashforth"), statistics, every=every, skip=skip)


@functools.cache
def run(steps):
    return jax.jit(segment(measured(), steps))


def test_mean_shear_stress_balances_the_pressure_gradient_and_the_change_of_momentum(x64):
    """Momentum layer by layer: d(shear stress)/dy + 1 = change of U over time, in a flow that is not even steady."""
    simulation, axis, steps = measured(), DOMAINS["channel 3-D"].grid.axes[1], 100
    before = simulation.init(simulation.params, KEY)
    after = run(steps)(before, simulation.params)
    found = simulation.observe(after, simulation.params)
    profiles = [np.asarray(simulation.observe(state, simulation.params)["profile"]) for state in (before, after)]
    change = (profiles[1] - profiles[0]) / float(after.current.time[0])
    assert np.max(np.abs(change)) > 0.1
    fluctuations = np.max(np.abs(found["reynolds_stress_uv"]))
    assert fluctuations > 0.01
    balance = np.diff(found["shear_stress"]) / axis.widths + 1 - change
    # Adams-Bashforth adds up 3/2 new - 1/2 old terms: but for the two ends, half a sample each in 100, that is the mean
    # of the samples at the start of each step, and these are taken at the end. Rates are of order 1.
    ends = 3 / steps * np.max(np.abs(np.diff(found["shear_stress"]) / axis.widths))
    assert np.max(np.abs(balance)) < ends


def test_laminar_flow_dissipates_the_work_of_the_pressure_gradient(x64):
    place = DOMAINS["channel 3-D"]
    simulation = with_statistics(forced(place, wall=False), statistics_of(place), every=20, skip=150)
    params = simulation.params | {"waves": jnp.asarray(0.0), "viscosity": jnp.asarray(1.0)}
    state = jax.jit(segment(simulation, 200))(simulation.init(params, KEY), params)
    numbers, profiles = simulation.diagnose(state, params), simulation.observe(state, params)
    # The slowest mode has decayed as exp(-pi^2/4 t), from t = 0 to 30 before the first sample: 1e-32.
    assert numbers["mean_wall_shear_stress"] == pytest.approx(1, rel=1e-12)
    assert numbers["friction_velocity"] == pytest.approx(1, rel=1e-12)
    assert numbers["friction_reynolds"] == pytest.approx(1, rel=1e-12)
    assert numbers["mean_dissipation"] == pytest.approx(float(numbers["mean_bulk_velocity"]), rel=1e-12)
    # A line, though a grid without symmetry leaves the walls unequal shares.
    assert np.ptp(profiles["shear_stress"] + place.grid.axes[1].faces) < 1e-12
    for name in ("reynolds_stress_uu", "reynolds_stress_uv", "dissipation"):
        # Squares of velocities of order 1/2 less the same squares.
        np.testing.assert_allclose(profiles[name], 0, rtol=0, atol=1e-13)


@pytest.mark.usefixtures("x64")
@every(some(DOMAINS, "stretched", "channel 3-D"))
def test_dissipation_is_the_work_of_viscosity(place):
    """On any field: ``sum of strain = -<u . laplacian(u)>`` and the work of the moving wall."""
    boundary, velocity = moving_walls(place), solenoidal_noise(place.grid, 0)
    statistics = statistics_of(place, boundary=boundary)

    @jax.jit
    def measured(velocity):
        numbers = statistics.numbers(moments(statistics, velocity), viscosity(0.3))
        friction = laplacian(surround(velocity, boundary({}, 0.0), place), place)
        work = shear(velocity[0], 0, 1, boundary({}, 0.0), place)[:, -1].mean() * WALL / place.grid.axes[1].length
        return numbers["mean_dissipation"], 0.3 * (work - inner(velocity, friction, place.grid))

    dissipated, lost = measured(velocity)
    # Rounding of a mean of squares of differences over cells of about 0.1.
    assert dissipated == pytest.approx(float(lost), rel=1e-12)
