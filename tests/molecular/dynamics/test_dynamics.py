"""Dynamics: velocity Verlet, velocities of the start, a fluid, and combinations and settings that are refused."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.molecular import bubble_raft, colloid_assembly, jamming, system
from simkit.molecular.dynamics import (
    Barostat,
    bussi,
    langevin,
    maxwell_boltzmann,
    nose_hoover,
    splitting,
    stochastic_cell_rescaling,
    velocity_verlet,
)
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.systems.basin_hopping import basin_hopping
from tests.molecular.dynamics.baths import THERMOSTATS, VALUES, liquid
from tests.molecular.dynamics.moving import floats, oscillators, tetramer
from tests.molecular.packings import packing
from tests.tables import every

ISOTROPIC = stochastic_cell_rescaling()


def test_invalid_schedules_are_refused_in_one_line():
    asks = {"temperature": lambda params, time: params["heat"] * time}
    with pytest.raises(UserError, match="the schedule temperature= reads 'heat'; params have barostat_time, "):
        liquid(langevin, options=asks)
    with pytest.raises(
        UserError, match=r"the schedule temperature= returns \(2,\); return one number of \(params, time\)"
    ):
        liquid(nose_hoover, options={"temperature": lambda params, time: jnp.ones(2)})
    with pytest.raises(UserError, match="params lack 'compressibility'"):
        some = {name: value for name, value in VALUES.items() if name != "compressibility"}
        bussi(
            user_energy(lambda x, cell, params: jnp.sum(x**2)),
            lambda params, key: jnp.zeros((2, 2)),
            params=floats(**some),
            cell=lambda params: jnp.ones(2),
            barostat=ISOTROPIC,
        )
    with pytest.raises(UserError, match="chain = 0 is not an integer from 1 to 16"):
        liquid(nose_hoover, options={"chain": 0})


METHODS = {"velocity_verlet": velocity_verlet} | THERMOSTATS
BAROSTATS = {
    "none": None,
    "isotropic": stochastic_cell_rescaling(),
    "anisotropic": stochastic_cell_rescaling(isotropic=False),
}
KINDS, DIMENSIONS = ("free", "sides", "triclinic"), (2, 3)


def heated(params, time):
    return params["temperature"] * (1 + time)


def pressed(params, time):
    return params["pressure"] * (1 + time)


def made(method, barostat, kind, dimension, schedule, frozen):
    """Return a liquid of 8 or 9 particles moved as the arguments say."""
    options = {}
    if barostat != "none":
        options["barostat"] = BAROSTATS[barostat]
        if schedule:
            isotropic = barostat == "isotropic"
            options["barostat"] = stochastic_cell_rescaling(pressure=pressed, isotropic=isotropic)
    if schedule:
        options["temperature"] = heated
    per_side = 3 if dimension == 2 else 2
    if frozen:
        options["frozen"] = np.arange(per_side**dimension) < 2
    density = 0.45 if dimension == 2 else 0.09
    return liquid(METHODS[method], per_side=per_side, dimension=dimension, density=density, kind=kind, options=options)


# Dimensions, schedules and frozen particles take turns, so that every pair of properties is met.
ROWS = [
    (method, barostat, kind, 2 + (a + b + c) % 2, method != "velocity_verlet" and (a + c) % 2 == 0)
    for a, method in enumerate(METHODS)
    for b, barostat in enumerate(BAROSTATS)
    for c, kind in enumerate(KINDS)
    if barostat == "none" or (kind != "free" and method != "velocity_verlet")
]


@every("method", THERMOSTATS)
@every("barostat", ["isotropic", "anisotropic"])
def test_impossible_combinations_are_refused(method, barostat):
    for dimension, schedule in itertools.product(DIMENSIONS, (False, True)):
        with pytest.raises(UserError, match="a barostat moves all particles with the cell; give a cell"):
            made(method, barostat, "free", dimension, schedule, frozen=False)
        for kind in ("sides", "triclinic"):
            with pytest.raises(UserError, match="leave out barostat and frozen"):
                made(method, barostat, kind, dimension, schedule, frozen=True)


def test_velocity_verlet_takes_neither_barostat_nor_schedule():
    with pytest.raises(UserError, match="a barostat needs a thermostat, which velocity_verlet lacks"):
        splitting(None, None, stochastic_cell_rescaling())
    for name, given in (("barostat", stochastic_cell_rescaling()), ("temperature", heated)):
        with pytest.raises(UserError, match=f"velocity_verlet has no bath and takes no {name}=; take langevin"):
            liquid(velocity_verlet, options={name: given})


def test_velocities_of_an_isolated_system_have_no_drift_and_the_right_spread(x64):
    mass = jnp.asarray(np.linspace(0.5, 4.0, 20_000))[:, None]
    draw = functools.partial(maxwell_boltzmann, jax.random.key(3), jnp.asarray(1.7), mass, (*mass.shape[:1], 3))
    still, drifting = draw(drift=False), draw(drift=True)
    # Round-off of 20,000 terms of order one, against a random momentum of sqrt(T sum m) = 277 with drift.
    assert float(jnp.abs(jnp.sum(mass * still, axis=0)).max()) < 1e-9
    assert float(jnp.abs(jnp.sum(mass * drifting, axis=0)).max()) > 1
    # 60,000 squares: sqrt(2 / 60,000) = 0.6 %, four of them.
    assert float(jnp.mean(mass * still**2)) == pytest.approx(1.7, rel=0.025)


def test_free_space_has_neither_box_nor_pressure(x64):
    simulation = tetramer()
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    assert "pressure" not in jax.eval_shape(simulation.diagnose, state, simulation.params)
    assert set(jax.eval_shape(simulation.observe, state, simulation.params)) == {"position", "velocity", "speed"}


@every("dynamics", [velocity_verlet, langevin])
@every("missing", ["time_step", "mass", "temperature"])
def test_missing_parameter_is_named(dynamics, missing):
    params = floats(stiffness=1.0, mass=1.0, temperature=1.0, friction=1.0, time_step=0.1)
    del params[missing]
    with pytest.raises(UserError, match=f"params lack '{missing}'; there are friction, "):
        dynamics(
            user_energy(lambda x, cell, params: jnp.sum(x**2)), lambda params, key: jnp.zeros((2, 2)), params=params
        )


def test_a_missing_friction_and_a_single_isolated_particle_are_refused():
    params = floats(mass=1.0, temperature=1.0, time_step=0.1)
    well = user_energy(lambda position, cell, params: jnp.sum(position**2))
    with pytest.raises(UserError, match="params lack 'friction'"):
        langevin(well, lambda params, key: jnp.zeros((1, 2)), params=params)
    alone = velocity_verlet(well, lambda params, key: jnp.zeros((1, 2)), params=params)
    with pytest.raises(UserError, match="isolated = true needs at least 2 particles"):
        alone.init(params, jax.random.key(0))


KEY = 0


@functools.cache
def program():
    """Return the tetramer and the compiled ``(state, params, steps) -> state`` of any number of steps."""
    simulation = tetramer()

    def run(state, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, state: simulation.step(state, params), state)

    return simulation, jax.jit(simulation.init), jax.jit(run)


def test_error_falls_with_the_square_of_the_time_step(x64):
    (simulation, init, run), ends = program(), []
    for steps in (100, 200, 400):
        params = {**simulation.params, "time_step": jnp.asarray(1.0 / steps)}
        ends.append(run(init(params, jax.random.key(KEY)), params, steps))
    for name in ("position", "velocity"):
        coarse, middle, fine = (np.asarray(getattr(end, name)) for end in ends)
        order = np.log2(np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine))
        assert 1.95 < order < 2.05, name


def test_motion_is_reversible(x64):
    simulation, init, run = program()
    start = init(simulation.params, jax.random.key(KEY))
    there = run(start, simulation.params, 400)
    back = run(dataclasses.replace(there, velocity=-there.velocity), simulation.params, 400)
    assert float(jnp.abs(there.position - start.position).max()) > 0.1
    # 800 steps of round-off 1e-16 each, of which neighbors that attract each other multiply some by a few.
    np.testing.assert_allclose(back.position, start.position, rtol=0, atol=1e-12)
    np.testing.assert_allclose(back.velocity, -start.velocity, rtol=0, atol=1e-12)


def test_frequency_is_that_of_the_harmonic_well_to_second_order(x64):
    # Velocity Verlet turns by arccos(1 - (omega h)^2 / 2) in each step, exactly.
    simulation = oscillators(velocity_verlet, 1, stiffness=4.0, mass=1.0, time_step=0.1)
    start = simulation.init(simulation.params, jax.random.key(KEY))
    start = dataclasses.replace(start, position=jnp.array([[1.0, 0.5]]), velocity=jnp.zeros((1, 2)))
    start = dataclasses.replace(start, force=-4.0 * start.position)
    steps = 1000
    end = jax.jit(segment(simulation, steps))(start, simulation.params)
    angle = steps * np.arccos(1 - (2.0 * 0.1) ** 2 / 2)
    # A thousand roundings.
    np.testing.assert_allclose(end.position[0], np.cos(angle) * np.array([1.0, 0.5]), rtol=0, atol=1e-12)


SKIP = 5
MEANS = ["temperature", "pressure", "potential_energy_per_particle"]


def fluid(repeats=(4, 4, 4), **averages):
    """Return 256 atoms that leave their sites at constant energy, with means over the run."""
    given = {"every": 10, "skip": SKIP, "of": MEANS, "radial_distribution": {"reach": 3.0, "bins": 600}}
    return system(
        particles={"atom": {}},
        start={"lattice": "face_centered_cubic", "repeats": repeats},
        cell={"density": "density"},
        interactions=[
            {
                "potential": "lennard_jones",
                "values": {"epsilon": 1, "sigma": 1},
                "cutoff": 3.0,
                "switch_on": 2.5 / 3.0,
                "tail": True,
            }
        ],
        task="dynamics",
        dynamics={"time_step": "time_step", "temperature": "temperature"},
        observed=["displacement", "origin"],
        averages=given | averages,
        parameters={"density": 0.86, "temperature": 0.9, "time_step": 0.005},
    )


@every(
    ("values", "message"),
    [
        ({"repeats": (5, 5)}, "start.repeats"),
        ({"every": 0}, r"averages.every = 0 is not an integer of at least 1"),
        ({"of": ["presure"]}, r"averages.of.*'presure' is unknown.*did you mean 'pressure'"),
        ({"radial_distribution": {"reach": 3.0, "bins": 2}}, r"averages.radial_distribution.bins = 2"),
    ],
)
def test_values_out_of_range_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        fluid(**values)


def test_averages_are_those_of_motion():
    with pytest.raises(UserError, match='averages are those of task = "dynamics"'):
        system(
            particles={"A": {"count": 2}},
            dimension=3,
            start={"radius": 2},
            interactions=[{"energy": "epsilon/r"}],
            averages={},
            parameters={"epsilon": 1.0},
        )


def test_a_cell_narrower_than_two_disks_is_refused_in_one_line(x64):
    simulation = packing(particles=16)
    simulation.check(simulation.params, jax.random.key(0))
    dense = simulation.with_params(packing_fraction=8.0, diameter_ratio=2.0)
    with pytest.raises(UserError, match=r"cutoff of 2 reaches beyond half the cell, whose narrowest width is 1\.98"):
        simulation.check(dense.params, jax.random.key(0))


def test_a_density_with_too_small_a_box_is_refused_in_one_line(x64):
    simulation = jamming(particles=16)
    simulation.check(simulation.params, jax.random.key(0))
    # Eight disks of either size make a box of side (pi / 4 * 8 * (1 + 4) / 8)^(1/2) = 1.98.
    dense = simulation.with_params(packing_fraction=8.0, diameter_ratio=2.0)
    with pytest.raises(
        UserError, match=r"16 particles a box 1\.98 small diameters wide; it must be 4 .*raise particles"
    ):
        simulation.check(dense.params, jax.random.key(0))
    with pytest.raises(UserError, match=r"packing_fraction = -1 leaves 16 particles a box nan"):
        simulation.check(simulation.with_params(packing_fraction=-1.0).params, jax.random.key(0))


REFUSED = [
    (packing, {"exponent": 1.0}, "interactions\\[0\\].exponent = 1 is below its lower bound 2"),
    (packing, {"force_tolerance": 0.0}, "relax.force_tolerance = 0 is below its lower bound"),
    (jamming, {"particles": 17}, "particles = 17 is not an even integer from 16"),
    (jamming, {"dimension": 3, "particles": 32}, "particles = 32 is not an even integer from 64"),
    (jamming, {"dimension": 4}, "dimension = 4 is not an integer from 2 to 3"),
    (jamming, {"exponent": 1.5}, "exponent = 1.5 is below its lower bound 2"),
    (jamming, {"force_tolerance": 0.1}, "force_tolerance = 0.1 is above its upper bound 0.01"),
    (jamming, {"minimizer": "newton"}, "unknown minimizer"),
    (bubble_raft, {"repeats": (3, 3)}, r"repeats\[0\] = 3 is not an integer of at least 4"),
    (bubble_raft, {"repeats": (10,)}, "not a list of 2 entries"),
    (bubble_raft, {"arrangement": -1}, "arrangement = -1 is not an integer of at least 0"),
    (bubble_raft, {"exponent": 1.5}, "exponent = 1.5 is below its lower bound 2"),
    (bubble_raft, {"force_tolerance": 2.0}, "force_tolerance = 2 is above its upper bound"),
    (colloid_assembly, {"repeats": (5,)}, "not a list of 2 entries"),
    (colloid_assembly, {"repeats": (3, 2)}, "the cut-off of 3 needs 6"),
    (colloid_assembly, {"start": "honycomb"}, "start = 'honycomb' is unknown; did you mean 'honeycomb'"),
    (colloid_assembly, {"pattern": -1}, "pattern = -1 is not an integer of at least 0"),
    (colloid_assembly, {"switch_on": 3.5}, "switch_on = 3.5 is above its upper bound 2.97"),
    (basin_hopping, {"hops": 0}, "hops = 0 is not an integer of at least 1"),
    (basin_hopping, {"quench_tolerance": 2.0}, "quench_tolerance = 2 is above its upper bound"),
    (basin_hopping, {"force_tolerance": 0.0}, "force_tolerance = 0 is not above 0"),
    (basin_hopping, {"quench_steps": 0}, "quench_steps = 0 is not an integer of at least 1"),
    (basin_hopping, {"particles": 1}, "particles = 1 is not an integer from 2"),
    (basin_hopping, {"potential": "mors"}, "did you mean 'morse'"),
]


@every("system, wrong, message", REFUSED)
def test_settings_that_a_system_cannot_have_are_refused(x64, system, wrong, message):
    with pytest.raises(UserError, match=message):
        system(**wrong)


@every("dynamics", [langevin, nose_hoover, bussi, velocity_verlet])
def test_an_unknown_option_of_a_thermostat_is_refused_with_the_nearest(dynamics):
    with pytest.raises(UserError, match="frosen is not a known key; did you mean 'frozen'"):
        liquid(dynamics, options={"frosen": None})


def test_a_barostat_with_an_interval_acts_for_the_time_of_all_its_steps(x64):
    def squeeze(bath, position, velocity, cell, stress, middle):
        factor = 1 - middle.params["rate"] * middle.step
        return bath, factor * position, velocity, factor * cell

    gas = langevin(
        user_energy(lambda x, cell, params: 0.0 * jnp.sum(x)),
        lambda params, key: jax.random.uniform(key, (10, 2)),
        params=floats(time_step=0.1, mass=1.0, temperature=1.0, friction=1.0, rate=0.1),
        barostat=Barostat(lambda params: None, start=lambda params, key: (), rescale=squeeze, interval=5),
        cell=lambda params: jnp.ones(2),
    )
    # At the first, the sixth and the eleventh step.
    state = jax.jit(segment(gas, 12))(gas.init(gas.params, jax.random.key(0)), gas.params)
    np.testing.assert_allclose(state.cell, 0.95**3, rtol=1e-14)
