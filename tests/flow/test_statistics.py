"""Statistics of channel flow: exact balances, moments of known fields, and means that resume and vectorize."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.measures import kinetic_energy, mean_velocity
from simkit.flow.diagnosis.statistics import ChannelStatistics, with_statistics
from simkit.flow.equations import Equations
from simkit.flow.operators.advection import advection
from simkit.flow.operators.differences import divergence
from simkit.flow.operators.diffusion import laplacian, shear
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import fixed_time_step
from simkit.flow.systems.turbulent_channel import random_waves, reichardt, turbulent_channel
from tests.flow.flows import DOMAINS, inner, solenoidal_noise

KEY = jax.random.key(0)
PLACES = pytest.mark.parametrize(
    "place", [DOMAINS[name] for name in ("even", "stretched", "channel 3-D")], ids=["even", "stretched", "3-D"]
)
WALL = 0.7


def moving_walls(place):
    rest = (0.0,) * (place.grid.dimension - 1)
    sides = ((0.0, *rest), (WALL, *rest))
    return lambda params, time: (None, sides, *place.sides[2:])


def statistics_of(place, **options) -> ChannelStatistics:
    return ChannelStatistics(place, lambda params: params["viscosity"], **options)


def state_of(velocity, iteration=0) -> FlowState:
    zero = jnp.zeros((), velocity[0].dtype)
    return FlowState(
        velocity=velocity,
        pressure=zero,
        scalar=(),
        explicit=(),
        drive=zero,
        load=zero,
        hold=(),
        time=jnp.stack([zero, zero]),
        time_step=zero,
        iteration=jnp.int32(iteration),
    )


def moments(statistics, velocity):
    return statistics.sample(state_of(velocity), {"viscosity": jnp.asarray(1.0)})


def viscosity(nu):
    return {"viscosity": jnp.asarray(nu)}


@PLACES
def test_dissipation_is_the_work_of_viscosity(place, x64):
    """On any field: ``sum of strain = -<u . laplacian(u)>`` and the work of the moving wall."""
    boundary, velocity = moving_walls(place), solenoidal_noise(place.grid, 0)
    statistics = statistics_of(place, boundary=boundary)
    numbers = statistics.numbers(moments(statistics, velocity), viscosity(0.3))
    friction = laplacian(surround(velocity, boundary({}, 0.0), place), place)
    work = shear(velocity[0], 0, 1, boundary({}, 0.0), place)[:, -1].mean() * WALL / place.grid.axes[1].length
    # Rounding of a mean of squares of differences over cells of about 0.1.
    assert numbers["mean_dissipation"] == pytest.approx(
        float(0.3 * (work - inner(velocity, friction, place.grid))), rel=1e-12
    )


@PLACES
def test_slope_of_the_shear_stress_is_the_force_on_each_layer(place, x64):
    """On any field: the effect of advection and friction on the mean of u in a layer of cells."""
    boundary, velocity, axis = moving_walls(place), solenoidal_noise(place.grid, 1), place.grid.axes[1]
    statistics = statistics_of(place, boundary=boundary, reference=np.linspace(0, 1, axis.cells))
    profiles = statistics.profiles(moments(statistics, velocity), viscosity(0.3))
    around = surround(velocity, boundary({}, 0.0), place)
    force = (0.3 * laplacian(around, place)[0] - advection(around, place)[0]).mean(
        axis=tuple(i for i in range(place.grid.dimension) if i != 1)
    )
    slope = np.diff(profiles["shear_stress"]) / axis.widths
    assert np.max(np.abs(slope)) > 0.1
    # Rounding of stresses of order 10 over cells of about 0.1. The reference drops out: no flow passes a layer.
    np.testing.assert_allclose(slope, force, rtol=0, atol=1e-11)


@PLACES
def test_moments_of_known_fields(place, x64):
    """Take u = U(y) + a s(x), v = 0 and w = b s(x) with a wave s of mean square 1/2."""
    grid = place.grid
    y, x = grid.axes[1].centers, grid.axes[0].points
    profile = 1 - y**2
    wave = np.sin(2 * np.pi * x / grid.axes[0].length)
    shape = [1] * (grid.dimension - 2)
    u = jnp.asarray((profile + 0.4 * wave[:, None]).reshape(*grid.shape(0)[:2], *shape)) + jnp.zeros(grid.shape(0))
    velocity = (u, *(jnp.zeros(grid.shape(i)) for i in range(1, grid.dimension)))
    for reference in (None, profile + 0.01 * y):
        statistics = statistics_of(place, reference=reference)
        found = statistics.profiles(moments(statistics, velocity), viscosity(0.1))
        # Rounding of numbers of order 1.
        exact = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-14)
        exact(found["mean_velocity"], profile)
        exact(found["reynolds_stress_uu"], 0.08)
        exact(found["reynolds_stress_vv"], 0)
        exact(found["reynolds_stress_uv"], 0)
        # Of du'/dx alone away from the walls, by the differences of the grid.
        step = grid.axes[0].length / grid.cells[0]
        slope = 0.4 * (2 / step) * np.sin(np.pi * step / grid.axes[0].length)
        np.testing.assert_allclose(found["dissipation"][1:-1], 0.1 * slope**2 / 2, rtol=1e-12)


def test_moments_over_time_are_those_of_all_samples_together(x64):
    """Two instants with other mean profiles: their difference counts as fluctuation."""
    place = DOMAINS["channel 3-D"]
    statistics = statistics_of(place, reference=np.linspace(0, 1, place.grid.cells[1]))
    fields = [solenoidal_noise(place.grid, seed) for seed in (0, 1)]
    fields[1] = (fields[1][0] + 1.5, *fields[1][1:])
    samples = [moments(statistics, field) for field in fields]
    mean = jax.tree.map(lambda a, b: (a + b) / 2, *samples)
    found = statistics.profiles(mean, viscosity(1.0))
    u, _, w = (np.stack([field[i] for field in fields]) for i in range(3))
    # Rounding of means of numbers of order 1.
    for name, f in (("uu", u), ("ww", w)):
        np.testing.assert_allclose(found[f"reynolds_stress_{name}"], f.var(axis=(0, 1, 3)), rtol=1e-12)
    np.testing.assert_allclose(found["mean_velocity"], u.mean(axis=(0, 1, 3)), rtol=0, atol=1e-14)


def forced(place, *, method="runge_kutta", drive=True, wall=True) -> Simulation:
    """A channel driven by a pressure gradient of 1, from random waves."""
    boundary = moving_walls(place) if wall else None
    start, step = stepper(
        Equations(
            place,
            lambda params: params["viscosity"],
            fixed_time_step,
            boundary=boundary,
            force=(lambda velocity, c, params, time: (1.0, *(0.0,) * (place.grid.dimension - 1))) if drive else None,
            method=method,
        )
    )

    def init(params, key):
        waves = random_waves(place.grid, key, params["viscosity"].dtype)
        return start(jax.tree.map(lambda f: params["waves"] * f, waves), params)

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"profile": state.velocity[0].mean(axis=(0, 2))},
        diagnose=lambda state, params: {
            "time": state.time[0],
            "energy": kinetic_energy(state.velocity, place.grid),
            "bulk": mean_velocity(state.velocity, 0, place.grid),
        },
        params={n: jnp.asarray(x, float) for n, x in {"viscosity": 0.05, "waves": 1.0, "time_step": 0.01}.items()},
    )


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


WAVY = DOMAINS["channel 3-D"].grid
PROFILE = np.round(160 * (1 - WAVY.axes[1].centers ** 2)) / 8


@functools.cache
def waving() -> Simulation:
    """A profile of 20 with a wave of 1/128 whose sign changes from step to step; statistics of every step."""
    # One and minus one in turn, on a profile of eighths: a program may add up a plane in any order and round nothing.
    wave = np.where(np.arange(WAVY.cells[0]) % 2, 1.0, -1.0)[:, None, None] * np.ones(WAVY.shape(0))

    def state(n, params):
        amplitude = params["amplitude"] * jnp.where(n % 2 == 0, 1, -1).astype(jnp.float32)
        u = jnp.asarray(PROFILE, jnp.float32)[None, :, None] + amplitude * jnp.asarray(wave, jnp.float32)
        return state_of((u, *(jnp.zeros(WAVY.shape(i), jnp.float32) for i in (1, 2))), n)

    moving = Simulation(
        init=lambda params, key: state(jnp.int32(0), params),
        step=lambda before, params: state(before.iteration + 1, params),
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"time": state.time[0]},
        params={"viscosity": jnp.float32(1.0), "amplitude": jnp.float32(1 / 128)},
    )
    return with_statistics(moving, statistics_of(DOMAINS["channel 3-D"], reference=PROFILE), every=1, skip=0)


def test_single_precision_keeps_small_stresses_through_a_hundred_thousand_samples():
    simulation = waving()
    state = jax.jit(segment(simulation, 100_000))(simulation.init(simulation.params, KEY), simulation.params)
    found = simulation.observe(state, simulation.params)
    # The samples are exact; of 100,000 updates compensation leaves the rounding of the weights, 6e-8 of each.
    np.testing.assert_allclose(found["reynolds_stress_uu"], 1 / 128**2, rtol=1e-6)
    np.testing.assert_allclose(found["mean_velocity"], PROFILE, rtol=1e-7)


def test_segments_give_the_same_bits_and_members_have_their_own_statistics():
    simulation = waving()
    start, half = simulation.init(simulation.params, KEY), jax.jit(segment(simulation, 7))
    twice = half(half(start, simulation.params), simulation.params)
    once = jax.jit(segment(simulation, 14))(start, simulation.params)
    for a, b in zip(jax.tree.leaves(twice), jax.tree.leaves(once), strict=True):
        np.testing.assert_array_equal(a, b)
    many = ensemble(simulation, ["amplitude"])
    params = simulation.params | {"amplitude": jnp.asarray([1 / 128, 0.5], jnp.float32)}
    together = jax.jit(segment(many, 14))(many.init(params, jax.random.split(KEY, 2)), params)
    stresses = many.observe(together, params)["reynolds_stress_uu"]
    for member in range(2):
        own = simulation.params | {"amplitude": params["amplitude"][member]}
        alone = jax.jit(segment(simulation, 14))(simulation.init(own, KEY), own)
        # Sums in another order, and for small waves the last bits of the profile.
        np.testing.assert_allclose(stresses[member], simulation.observe(alone, own)["reynolds_stress_uu"], rtol=1e-5)


def test_other_domains_are_refused():
    for name in ("periodic", "cavity", "slip"):
        with pytest.raises(UserError, match="are not those of a channel"):
            statistics_of(DOMAINS[name])


def test_waves_of_the_start_are_solenoidal_and_reichardt_fits_the_laws_of_the_wall(x64):
    grid = DOMAINS["channel 3-D"].grid
    waves = random_waves(grid, KEY, jnp.dtype(float))
    # Rounding over cells of 0.1; the definition of the scale.
    assert jnp.max(jnp.abs(divergence(waves, grid))) < 1e-12
    assert 2 * kinetic_energy(waves, grid) == pytest.approx(1, rel=1e-12)
    assert not jnp.array_equal(waves[0], random_waves(grid, jax.random.key(1), jnp.dtype(float))[0])
    # u+ = y+ at the wall, but for (0.4/2 - 7.8 (0.33 - 1/22)/11 ...) y+: 2 % at y+ = 0.1. ln(y+)/0.4 + 5.5 far away.
    assert reichardt(0.1, 1.0) == pytest.approx(0.1, rel=0.02)
    assert reichardt(1000.0, 1.0) == pytest.approx(np.log(1000) / 0.4 + 5.5, rel=0.005)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cells": (8, 8)}, "is not three integers"),
        ({"lengths": 3.0}, "is not two periods"),
        ({"drive": "pump"}, "drive = 'pump' is unknown"),
        ({"settle": -1}, "skip = -1 is negative"),
    ],
)
def test_mistakes_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        turbulent_channel(**values)


def test_means_of_profiles_on_faces_weigh_unequal_cells():
    """Half the cell beside a wall belongs to its face; the mean of y^2 over -1 to 1 is 1/3."""
    place = DOMAINS["stretched"]
    simulation = with_statistics(forced(place, method="runge_kutta"), statistics_of(place), every=1, skip=0)
    y, widths = simulation.coordinates["y_face"], simulation.coordinates["y_face_widths"]
    assert np.sum(widths) == pytest.approx(y[-1] - y[0])
    mean = np.sum(widths * y**2) / np.sum(widths)
    assert mean == pytest.approx((y[-1] ** 3 - y[0] ** 3) / 3 / (y[-1] - y[0]), rel=0.01)
