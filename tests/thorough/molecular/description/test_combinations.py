"""Every kind of interaction in every kind of cell, and derivatives by every kind of parameter."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.settings import read
from simkit.errors import UserError
from simkit.molecular import system
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.neighbors.neighbor_list import NeighborList
from tests.differences import central_difference, fourth_order
from tests.molecular.dynamics.moving import floats

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
    body = composition(read(described(cell, kind, method, dimension), SETTINGS), floats(**PARAMETERS))
    acts = body.interaction

    def at(position, neighbors, params):
        room = None if body.cell is None else body.cell(params)
        neighbors = acts.refresh(neighbors, position, room, params)
        return (
            neighbors,
            acts.energy(position, room, params, neighbors),
            acts.force(position, room, params, neighbors),
        )

    params = floats(**PARAMETERS)
    position = body.placing.start(params, jax.random.key(3))
    room = None if body.cell is None else body.cell(params)
    shapes = jax.eval_shape(acts.prepare, position, room, params)
    # Lists built at no place at all are built anew where they are used first: one list to compile in place of two.
    neighbors = jax.tree.map(
        lambda leaf: np.full(leaf.shape, np.nan if leaf.dtype.kind == "f" else 0, leaf.dtype), shapes
    )
    told = jax.jit(at).lower(position, neighbors, params).compile({"xla_backend_optimization_level": 0})
    return np.asarray(position), neighbors, told


def check(cell, kind, method, dimension, strength):
    """Check forces against central differences, and what velocity Verlet conserves; return where it ends."""
    position, neighbors, told = compiled(cell, kind, method, dimension)
    params = floats(**PARAMETERS | {"strength": strength})
    random = np.random.default_rng(1)
    neighbors, energy, force = jax.tree.map(np.asarray, told(position, neighbors, params))
    assert np.isfinite(energy) and np.abs(force).max() > 0.1
    along, h = random.normal(size=position.shape), 1e-4
    slope = fourth_order(lambda k: told(position + k * along, neighbors, params)[1], 0.0, h)
    assert float(slope) == pytest.approx(-np.sum(force * along), rel=1e-8)
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
    for leaf in jax.tree.leaves(neighbors, is_leaf=lambda leaf: isinstance(leaf, NeighborList)):
        assert not isinstance(leaf, NeighborList) or (int(leaf.builds) > 1 and not bool(leaf.overflowed))
    return position, float(energy), force


PAIRS = [(cell, dimension) for dimension in CELLS for cell in CELLS[dimension]]


@pytest.mark.parametrize("strength", [0.0, 0.8])
@pytest.mark.parametrize(("cell", "dimension"), PAIRS)
def test_pairs_of_every_cell_conserve_and_lists_hold_all_of_them(x64, cell, dimension, strength):
    check(cell, "shipped", "all_pairs", dimension, strength)
    position, energy, force = check(cell, "typed", "neighbor_list", dimension, strength)
    _, none, all_pairs = compiled(cell, "shipped", "all_pairs", dimension)
    _, expected, forces = all_pairs(position, none, floats(**PARAMETERS | {"strength": strength}))
    assert energy == pytest.approx(float(expected), rel=1e-13)
    np.testing.assert_allclose(force, forces, rtol=0, atol=1e-12 * np.abs(forces).max())


@pytest.mark.parametrize("strength", [0.0, 0.8])
@pytest.mark.parametrize(("cell", "dimension"), [one for one in PAIRS if one[0] in ("free", "periodic", "triclinic")])
def test_energies_of_jax_md_conserve_in_every_cell(x64, cell, dimension, strength):
    check(cell, "jax_md", None, dimension, strength)


@pytest.mark.parametrize("strength", [0.0, 0.8])
@pytest.mark.parametrize("cell", CELLS[3])
def test_stillinger_weber_conserves_in_every_cell(x64, cell, strength):
    check(cell, "stillinger_weber", None, 3, strength)


@pytest.mark.parametrize("dimension", [2, 3])
def test_an_energy_of_jax_md_beyond_half_the_cell_is_refused(x64, dimension):
    made = system(**described("small", "jax_md", None, dimension), parameters=PARAMETERS)
    with pytest.raises(UserError, match="reaches beyond half the cell"):
        made.check_values(made.params, jax.random.key(0))


PAIR = {
    "energy": "4*depth*((size/r)**12 - (size/r)**6) + q_i*q_j/r",
    "values": {"depth": {"A_A": "epsilon", "A_B": "1.5*epsilon", "B_B": 0.5}, "size": "bonds*sigma"},
    "cutoff": "2*sigma",
}
OF_THE_MIXTURE = {
    "epsilon": 1.0,
    "sigma": 0.9,
    "bonds": [[1.0, 0.9], [0.9, 0.95]],
    "charge": 0.2,
    "density": 0.9,
    "strength": 0.3,
    "speed": 2.0,
    "time_step": 0.004,
    "hot": 0.3,
    "weight": 1.5,
    "softness": 1.2,
}


def moved(made, params):
    """Return a number that depends on all particles after some steps of dynamics."""
    state = made.init(params, jax.random.key(0))
    for _ in range(3):
        state = made.step(state, params)
    return jnp.sum(jnp.sin(state.position)) + jnp.sum(state.velocity**2)


def mixture():
    """Return charged particles of two kinds, with masses, tables, a field in time, a wall and a bath that cools."""
    return system(
        particles={
            "A": {"count": 5, "mass": "weight", "values": {"q": "charge"}},
            "B": {"count": 4, "values": {"q": "-charge"}},
        },
        interactions=[PAIR],
        fields=[{"energy": "strength*cos(2*pi*x/side - speed*time)", "on": ["A"]}],
        walls=[{"distance": "y + 0.3", "potential": "soft_sphere", "values": {"epsilon": "softness", "sigma": 1}}],
        start={"lattice": "square", "repeats": [3, 3], "arrangement": 1, "disorder": 0.05},
        cell={"density": "density", "periodic": [True, False]},
        derived={"side": "sqrt(9/density)"},
        task="dynamics",
        dynamics={"method": "langevin", "friction": 0.5, "time_step": "time_step", "temperature": "hot*exp(-time)"},
        parameters=OF_THE_MIXTURE,
    )


def test_dynamics_has_derivatives_by_every_kind_of_parameter(x64):
    made = mixture()
    params = made.params
    slopes = jax.jit(jax.jacrev(lambda values: moved(made, values)))(params)
    function = jax.jit(lambda values: moved(made, values))
    for name, difference in central_difference(function, params, list(params)).items():
        np.testing.assert_allclose(slopes[name], difference, rtol=2e-6, atol=1e-9, err_msg=name)
        assert np.all(np.asarray(slopes[name]) != 0), name
