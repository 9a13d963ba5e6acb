"""Every kind of interaction in every kind of cell, over lists and all pairs, with and without a field, or a refusal."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import system

pytestmark = pytest.mark.usefixtures("x64")

TYPED = {"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"}
SHIPPED = {"potential": "lennard_jones"}
FIELD = {"energy": "0.3*cos(2*pi*y/side)"}
PARAMETERS = {"epsilon": 1.2, "sigma": 0.9, "side": 4.0}
# In all of them a field of one period along y is the same on both sides.
CELLS = {
    "free": {"periodic": False},
    "periodic": {"lengths": ["side", "side", "side"]},
    "mixed": {"lengths": ["side", "side", "side"], "periodic": [True, False, True]},
    "triclinic": {"vectors": [["side", 0, 0], [0, "side", 0], ["0.3*side", 0, "side"]]},
    "small": {"lengths": ["side", "side", "side"]},
}
DYNAMICS = {"time_step": 0.002, "temperature": 0.5}


@functools.cache
def measured(cell, kind, method, has_field):
    """Return energy, forces and the slope of the energy along a random direction with minus the work of the forces."""
    cutoff = "2.5*sigma" if cell == "small" else "2*sigma"
    made = system(
        particles={"A": {}},
        interactions=[kind_of(kind) | {"cutoff": cutoff, "method": method}],
        fields=[FIELD] if has_field else [],
        start={"lattice": "face_centered_cubic", "repeats": [2, 2, 2], "spacing": "side/sqrt(8)", "disorder": 0.1},
        cell=CELLS[cell],
        task="dynamics",
        dynamics=DYNAMICS,
        parameters=PARAMETERS,
    )
    key = jax.random.key(3)
    made.check_values(made.params, key)

    def told(params):
        state = made.init(params, key)
        along = jax.random.normal(jax.random.key(1), state.position.shape, state.position.dtype)

        def energy(position):
            return made.diagnose(dataclasses.replace(state, position=position), params)["potential_energy"]

        value, slope = jax.jvp(energy, (state.position,), (along,))
        return value, state.force, slope, -jnp.sum(state.force * along)

    return jax.tree.map(np.asarray, jax.jit(told)(made.params))


def kind_of(name):
    return {"typed": TYPED, "shipped": SHIPPED}[name]


@pytest.mark.parametrize("cell", CELLS)
def test_interactions_of_every_cell_are_derivatives_and_conserve_momentum(cell):
    energy, force, slope, work = measured(cell, "shipped", "all_pairs", False)
    assert slope == pytest.approx(work, rel=1e-9)
    assert np.abs(force.sum(axis=0)).max() < 1e-12 * np.abs(force).max() * len(force)
    listed = measured(cell, "typed", "neighbor_list", False)
    assert listed[0] == pytest.approx(energy, rel=1e-13)
    np.testing.assert_allclose(listed[1], force, rtol=0, atol=1e-12 * np.abs(force).max())


@pytest.mark.parametrize("cell", CELLS)
def test_a_field_adds_to_interactions_in_every_cell(cell):
    energy, force, slope, work = measured(cell, "typed", "all_pairs", True)
    assert slope == pytest.approx(work, rel=1e-9)
    bare = measured(cell, "shipped", "all_pairs", False)
    assert abs(energy - bare[0]) > 1e-3 and np.abs(force - bare[1]).max() > 1e-3


def test_a_cell_of_any_shape_that_repeats_along_some_axes_is_refused():
    with pytest.raises(UserError, match=r"cell\.periodic repeats a cell of any shape along some axes only"):
        system(
            particles={"A": {"count": 4}},
            interactions=[SHIPPED | {"cutoff": 1.0}],
            cell={"vectors": [[4, 0], [1, 4]], "periodic": [True, False]},
            parameters=PARAMETERS,
        )


@pytest.mark.parametrize("cell", ["free", "mixed"])
def test_stillinger_weber_is_refused_where_it_has_no_lists(cell):
    with pytest.raises(UserError, match="is of one species in a cell that repeats along three axes"):
        system(
            particles={"Si": {}},
            interactions=[{"potential": "stillinger_weber", "values": {"tetrahedral_strength": 21}}],
            start={"lattice": "diamond", "repeats": [2, 2, 2], "spacing": 1.1},
            cell=CELLS[cell],
            parameters=PARAMETERS,
        )


METHODS = {
    "velocity_verlet": {},
    "langevin": {"friction": 1.0},
    "nose_hoover": {"thermostat_time": 0.1},
    "bussi": {"thermostat_time": 0.1},
}
BAROSTAT = {"pressure": "1 + time", "barostat_time": 1.0, "compressibility": 0.05}


def moving(method, **more):
    return system(
        particles={"A": {"mass": 2}},
        interactions=[
            {"energy": "epsilon*where(r < sigma, (1 - r/sigma)**2.5, 0)", "cutoff": "sigma", "ending": "truncate"}
        ],
        start={"lattice": "triangular", "repeats": [4, 3]},
        cell={"density": 1.3},
        task="dynamics",
        dynamics={"method": method, "time_step": 0.002, "temperature": 0.1, **METHODS[method], **more},
        parameters={"epsilon": 20.0, "sigma": 1.0, "cooling": 2.0},
    )


def run(simulation, steps):
    def whole(params):
        begin = simulation.init(params, jax.random.key(0))
        end = jax.lax.fori_loop(0, steps, lambda _, state: simulation.step(state, params), begin)
        return simulation.diagnose(begin, params), simulation.diagnose(end, params)

    return jax.jit(whole)(simulation.params)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_conserves_what_it_should_at_a_constant_temperature(method):
    begin, end = run(moving(method), 100)
    conserved = {"velocity_verlet": "energy", "nose_hoover": "conserved_energy", "bussi": "conserved_energy"}.get(
        method
    )
    if conserved:
        assert float(end[conserved]) == pytest.approx(float(begin[conserved]), rel=2e-4)
    if method != "langevin":
        assert float(end["momentum"]) < 1e-12
    assert np.isfinite(float(end["energy"]))


@pytest.mark.parametrize("method", METHODS)
def test_every_bath_follows_a_schedule_and_a_barostat_or_refuses_them(method):
    changes = {"temperature": "0.1*exp(-cooling*time)", **BAROSTAT}
    if method == "velocity_verlet":
        with pytest.raises(UserError, match="method = 'velocity_verlet' has no bath; choose another"):
            moving(method, temperature="0.1*exp(-time)")
        with pytest.raises(UserError, match="pressure of a barostat needs a thermostat"):
            moving(method, **BAROSTAT)
        return
    begin, end = run(moving(method, **changes), 20)
    assert float(end["volume"]) != float(begin["volume"]) and np.isfinite(float(end["energy"]))
