"""Every kind of interaction in every kind of cell, over lists and all pairs, with and without a field, or a refusal."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.errors import UserError
from simkit.molecular import system
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.description.system import composition
from simkit.molecular.neighbors.neighbor_list import NeighborList

pytestmark = pytest.mark.usefixtures("x64")

TYPED = {"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"}
SHIPPED = {"potential": "lennard_jones"}
KINDS = {
    "typed": TYPED,
    "shipped": SHIPPED,
    "jax_md": {"jax_md": "morse", "values": {"alpha": "5"}},
    "stillinger_weber": {"potential": "stillinger_weber"},
}
# One period along y, so that it is the same on both sides of every cell.
FIELD = {"energy": "strength*cos(2*pi*y/side)"}
PARAMETERS = {"epsilon": 1.2, "sigma": 0.9, "side": 4.0, "strength": 0.0}
CELLS = {
    3: {
        "free": {"periodic": False},
        "periodic": {"lengths": ["side", "side", "side"]},
        "mixed": {"lengths": ["side", "side", "side"], "periodic": [True, False, True]},
        "triclinic": {"vectors": [["side", 0, 0], [0, "side", 0], ["0.1*side", 0, "side"]]},
        "small": {"lengths": ["side", "side", "side"]},
    },
    2: {
        "free": {"periodic": False},
        "periodic": {"lengths": ["side", "side"]},
        "mixed": {"lengths": ["side", "side"], "periodic": [True, False]},
        "triclinic": {"vectors": [["side", 0], ["0.1*side", "side"]]},
        "small": {"lengths": ["side", "side"]},
    },
}
STARTS = {
    3: {"lattice": "face_centered_cubic", "repeats": [2, 2, 2], "spacing": "side/sqrt(8)", "disorder": 0.05},
    2: {"lattice": "square", "repeats": [4, 4], "spacing": "side/4", "disorder": 0.05},
}
DIAMOND = {"lattice": "diamond", "repeats": [2, 2, 2], "spacing": "side*sqrt(3)/8", "disorder": 0.03}
OF_ONE_CELL = {"lattice": "diamond", "repeats": [1, 1, 1], "spacing": "side*sqrt(3)/4", "disorder": 0.05}
# For Verlet's error to be small: twenty steps or more in the period of the stiffest bond.
TIME_STEP, STEPS = 0.003, 60


def described(cell, kind, method, dimension, **more):
    """Return the settings of a cell of the table."""
    interaction, start = dict(KINDS[kind]), STARTS[dimension]
    if kind == "stillinger_weber":
        sigma, start = ("1.4", OF_ONE_CELL) if cell == "small" else ("0.55", DIAMOND)
        interaction["values"] = {"tetrahedral_strength": "21", "sigma": sigma}
    else:
        interaction |= {"cutoff": ("2.4" if cell == "small" else "1.9") + ("" if kind == "jax_md" else "*sigma/0.9")}
    if method is not None:
        interaction["method"] = method
    return {
        "particles": {"A": {}},
        "interactions": [interaction],
        "fields": [FIELD],
        "start": start,
        "cell": CELLS[dimension][cell],
        **more,
    }


@functools.cache
def compiled(cell, kind, method, dimension):
    """Return ``(params) -> position, neighbors`` at the start and ``(position, neighbors, params) -> told``."""
    body = composition(read(described(cell, kind, method, dimension), SETTINGS), floats(PARAMETERS)).body()
    acts = body.interaction

    def at(position, neighbors, params):
        room = None if body.cell is None else body.cell(params)
        neighbors = acts.refresh(neighbors, position, room, params)
        return (
            neighbors,
            acts.energy(position, room, params, neighbors),
            acts.force(position, room, params, neighbors),
        )

    params = floats(PARAMETERS)
    position = body.start(params, jax.random.key(3))
    room = None if body.cell is None else body.cell(params)
    shapes = jax.eval_shape(acts.prepare, position, room, params)
    # Lists built at no place at all are built anew where they are used first: one list to compile in place of two.
    neighbors = jax.tree.map(
        lambda leaf: np.full(leaf.shape, np.nan if leaf.dtype.kind == "f" else 0, leaf.dtype), shapes
    )
    told = jax.jit(at).lower(position, neighbors, params).compile({"xla_backend_optimization_level": 0})
    return np.asarray(position), neighbors, told


def floats(values):
    return {name: jnp.asarray(value, float) for name, value in values.items()}


def lists_in(neighbors):
    return [
        found
        for found in jax.tree.leaves(neighbors, is_leaf=lambda leaf: isinstance(leaf, NeighborList))
        if isinstance(found, NeighborList)
    ]


def check(cell, kind, method, dimension, strength):
    """Check forces against central differences, and what velocity Verlet conserves; return where it ends."""
    position, neighbors, told = compiled(cell, kind, method, dimension)
    params = floats(PARAMETERS | {"strength": strength})
    random = np.random.default_rng(1)
    neighbors, energy, force = jax.tree.map(np.asarray, told(position, neighbors, params))
    assert np.isfinite(energy) and np.abs(force).max() > 0.1
    along, h = random.normal(size=position.shape), 1e-4
    away = [float(told(position + k * h * along, neighbors, params)[1]) for k in (-2, -1, 1, 2)]
    slope = (8 * (away[2] - away[1]) - (away[3] - away[0])) / (12 * h)
    assert slope == pytest.approx(-np.sum(force * along), rel=1e-8)
    velocity = random.normal(size=position.shape) * 0.7
    velocity -= velocity.mean(axis=0)
    first = energy + np.sum(velocity**2) / 2
    kinetic = [np.sum(velocity**2) / 2]
    for _ in range(STEPS):
        velocity = velocity + TIME_STEP / 2 * force
        position = position + TIME_STEP * velocity
        neighbors, energy, force = told(position, neighbors, params)
        force = np.asarray(force)
        velocity = velocity + TIME_STEP / 2 * force
        kinetic.append(np.sum(velocity**2) / 2)
    assert np.ptp(kinetic) > 0.03 * kinetic[0]
    # Verlet's error: what is exchanged between both energies differs by the square of step times frequency.
    assert float(energy) + kinetic[-1] == pytest.approx(first, abs=0.02 * np.ptp(kinetic))
    drift = np.abs(velocity.mean(axis=0))
    if strength:
        # The field acts along y alone.
        assert drift[1] > 1e-5
        drift = np.delete(drift, 1)
    assert drift.max() < 1e-13
    for found in lists_in(neighbors):
        assert int(found.builds) > 1 and not bool(found.overflowed)
    return position, float(energy), force


PAIRS = [(cell, dimension) for dimension in CELLS for cell in CELLS[dimension]]


@pytest.mark.parametrize("strength", [0.0, 0.8])
@pytest.mark.parametrize(("cell", "dimension"), PAIRS)
def test_pairs_of_every_cell_conserve_and_lists_hold_all_of_them(cell, dimension, strength):
    check(cell, "shipped", "all_pairs", dimension, strength)
    position, energy, force = check(cell, "typed", "neighbor_list", dimension, strength)
    _, none, all_pairs = compiled(cell, "shipped", "all_pairs", dimension)
    _, expected, forces = all_pairs(position, none, floats(PARAMETERS | {"strength": strength}))
    assert energy == pytest.approx(float(expected), rel=1e-13)
    np.testing.assert_allclose(force, forces, rtol=0, atol=1e-12 * np.abs(forces).max())


@pytest.mark.parametrize("strength", [0.0, 0.8])
@pytest.mark.parametrize(("cell", "dimension"), [one for one in PAIRS if one[0] in ("free", "periodic", "triclinic")])
def test_energies_of_jax_md_conserve_in_every_cell(cell, dimension, strength):
    check(cell, "jax_md", None, dimension, strength)


@pytest.mark.parametrize("strength", [0.0, 0.8])
@pytest.mark.parametrize("cell", CELLS[3])
def test_stillinger_weber_conserves_in_every_cell(cell, strength):
    check(cell, "stillinger_weber", None, 3, strength)


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


REFUSED = {
    "small": (("small", "jax_md", None, 3), "reaches beyond half the cell"),
    "small 2": (("small", "jax_md", None, 2), "reaches beyond half the cell"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_energy_of_jax_md_beyond_half_the_cell_is_refused(case):
    arguments, message = REFUSED[case]
    made = system(**described(*arguments), parameters=PARAMETERS)
    with pytest.raises(UserError, match=message):
        made.check_values(made.params, jax.random.key(0))


@pytest.mark.parametrize("method", [method for method in METHODS if method != "velocity_verlet"])
def test_every_bath_follows_a_schedule_and_a_barostat(method):
    begin, end = run(moving(method, temperature="0.1*exp(-cooling*time)", **BAROSTAT), 20)
    assert float(end["volume"]) != float(begin["volume"]) and np.isfinite(float(end["energy"]))
