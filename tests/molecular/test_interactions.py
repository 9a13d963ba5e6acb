"""Interactions of pairs, of angles and of a user's energy: sums, forces, stress, parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.gradient import check_gradient
from simkit.core.objective import Objective
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.description.particles import in_block
from simkit.molecular.dynamics import velocity_verlet
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.interactions.stillinger_weber import SILICON, stillinger_weber
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import lennard_jones, soft_sphere
from simkit.molecular.relaxation import relaxation
from tests.tables import every

PARTICLES = 48
METHODS = ["all_pairs", "neighbor_list"]
CUTOFF = 1.4
SPECIES = np.arange(PARTICLES) % 2


def params():
    table = jnp.array([[1.0, 1.1], [1.1, 1.3]])
    return {"epsilon": 0.7 * table, "sigma": table, "unused": jnp.asarray(1.0)}


def spheres(method, cutoff=CUTOFF, **options):
    """Return Hertzian spheres of two sizes; smooth enough for two derivatives at the cut-off."""
    options = {"capacity": PARTICLES, "species": SPECIES, **options}
    return pair_interaction(soft_sphere(3.0), cutoff=cutoff, method=method, **options)


def configuration(kind, dimension, seed=0):
    side = {2: 5.0, 3: 3.6}[dimension]
    cell = side * np.array([[1.0, 0, 0], [0.2, 1.1, 0], [-0.1, 0.3, 1.2]])[:dimension, :dimension]
    position = np.random.default_rng(seed).uniform(-0.3, 1.1, (PARTICLES, dimension)) @ cell
    chosen = {"free": None, "orthorhombic": jnp.asarray(np.diag(cell)), "triclinic": jnp.asarray(cell)}
    return jnp.asarray(position), chosen[kind]


def energy_of(interaction, position, cell, params):
    return interaction.energy(position, cell, params, interaction.prepare(position, cell, params))


@every(
    ("options", "message"),
    [
        ({"method": "verlet"}, "is unknown"),
        ({"skin": 0.0}, "skin"),
        ({"capacity": 0}, "capacity"),
        ({"cutoff": -1.0}, "positive length"),
        ({"cutoff": None, "method": "neighbor_list"}, "cutoff = None; give a positive length"),
    ],
)
def test_impossible_arguments_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        pair_interaction(lennard_jones(), **{"cutoff": 2.5, **options})


def test_species_must_fit_particles_and_tables(x64):
    position, cell = configuration("orthorhombic", 2)
    with pytest.raises(UserError, match=r"species has shape \(2,\); give one for each of 48 particles"):
        energy_of(spheres("all_pairs", species=[0, 1]), position, cell, params())
    with pytest.raises(UserError, match="give species, one index"):
        energy_of(spheres("all_pairs", species=None), position, cell, params())


def check_derivatives(dimension, kind):
    """Hold lists against all pairs, and forces and stresses against derivatives of the energy."""
    position, cell = configuration(kind, dimension)
    full = None if cell is None else spaces.lattice_vectors(cell)

    @jax.jit
    def computed(position):
        found = []
        for method in METHODS:
            interaction = spheres(method)

            def energy(position, strain, interaction=interaction):
                at = position + position @ strain, None if full is None else full + full @ strain
                return energy_of(interaction, *at, params())

            slopes = jax.value_and_grad(energy, (0, 1))(position, jnp.zeros((dimension, dimension)))
            neighbors = interaction.prepare(position, cell, params())
            force = interaction.force(position, cell, params(), neighbors)
            stress = () if cell is None else (interaction.stress(position, cell, params(), neighbors),)
            found.append((*slopes, force, *stress))
        return found

    every_pair, listed = computed(position)
    # Some tens of terms of order 0.1, added in another order.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-12), listed, every_pair)
    energy, (gradient, strained), force, *stress = listed
    assert float(energy) > 0.2
    assert float(energy) == pytest.approx(float(every_pair[0]), rel=1e-13)
    assert float(jnp.abs(force).max()) > 0.1
    np.testing.assert_allclose(force, -gradient, rtol=1e-8, atol=1e-12)
    # Newton's third law.
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-12)
    if full is not None:
        np.testing.assert_allclose(stress[0], strained / spaces.of_cell(full, dimension).volume, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(stress[0], stress[0].T)


INTERACTION = stillinger_weber(capacity=40)


def silicon():
    return {name: jnp.asarray(value, dtype=float) for name, value in SILICON.items()}


def cluster(count=14, seed=0):
    """Return the positions of atoms at random in a box that gives each a handful of neighbors."""
    return jnp.asarray(np.random.default_rng(seed).uniform(0, 5.5, (count, 3)))


def gaussians(position, cell, params):
    """Return the energy of Gaussian repulsion between nearest images, with a bond between the first two particles."""
    space = spaces.of_cell(cell, position.shape[1])
    apart = spaces.displacement(space, position[:, None], position[None])
    pairs = jnp.exp(-(apart**2).sum(-1) / params["width"] ** 2)
    bond = spaces.displacement(space, position[0], position[1])
    return params["height"] * (pairs.sum() - len(position)) / 2 + jnp.sum(bond**2)


PARAMS = {"width": 0.7, "height": 2.0}


def random_particles():
    rng = np.random.default_rng(0)
    cell = jnp.asarray(4 * np.eye(3) + rng.uniform(-0.5, 0.5, (3, 3)))
    return jnp.asarray(rng.uniform(0, 1, (20, 3))) @ cell, cell, {k: jnp.asarray(v) for k, v in PARAMS.items()}


@every(
    ("names", "message"),
    [
        (["width", "height", "mass"], "parameter 'mass' has no effect on the energy"),
        (["width", "heigth"], "'heigth' is unknown; did you mean 'height'"),
    ],
)
def test_declared_parameters_without_effect_or_value_are_refused(x64, names, message):
    _, (position, cell, params) = user_energy(gaussians), random_particles()
    with pytest.raises(UserError, match=message):
        user_energy(gaussians, parameters=names).force(position, cell, {**params, "mass": jnp.asarray(1.0)}, ())


def test_the_stress_of_an_energy_that_takes_the_sides_of_a_box_alone_is_nan(x64):
    position, cell, params = jnp.asarray([[0.2, 0.4], [1.0, 0.1], [0.5, 0.7]]), jnp.asarray([2.0, 3.0]), {"k": 2.0}
    both = user_energy(lambda x, at, p: p["k"] * spaces.volume_of(at, 2) ** 2)
    np.testing.assert_allclose(both.stress(position, cell, params, ()), 2 * 2.0 * 6.0 * np.eye(2), atol=1e-12)
    alone = user_energy(lambda x, at, p: p["k"] * jnp.prod(at) ** 2)
    assert np.isnan(alone.stress(position, cell, params, ())).all()
    assert not np.isnan(alone.energy(position, cell, params, ()))


def network_energy(position, cell, params):
    """Return springs to the origin, and a small network of the distance from it for each particle."""
    (first, shift), last = params["net"]["hidden"], params["net"]["last"]
    square = jnp.sum(position**2, axis=1, keepdims=True)
    return params["stiffness"] / 2 * jnp.sum(square) + jnp.sum(jnp.tanh(square * first + shift) @ last)


def test_weights_of_a_network_are_differentiated_by_their_branch_through_dynamics(x64):
    places = np.random.default_rng(3).normal(size=(4, 2))
    simulation = velocity_verlet(
        user_energy(network_energy, parameters=["stiffness", "net"]),
        lambda params, key: jnp.asarray(places),
        params={
            "stiffness": 1.0,
            "mass": 1.0,
            "time_step": 0.05,
            "net": {"hidden": (np.asarray([0.5, -0.3, 0.2]), np.asarray([0.1, 0.0, -0.2])), "last": np.ones(3) / 3},
        },
        isolated=False,
        velocity=lambda params, key: jnp.zeros((4, 2)),
    )
    measured = simulation.with_quantities(far=lambda state, params: jnp.sum(state.position**2))
    checked = check_gradient(Objective(measured, "far", 10), measured.params, jax.random.key(0), ["net", "stiffness"])
    assert set(checked.verdict) == {"net.hidden.0", "net.hidden.1", "net.last", "stiffness"}
    assert set(checked.verdict.values()) == {"agrees"} and max(checked.relative_difference.values()) < 1e-7


def test_params_that_differ_by_rounding_do_not_begin_a_relaxation_anew(x64):
    well = relaxation(
        user_energy(lambda x, cell, params: params["k"] / 2 * jnp.sum(x**2)),
        lambda params, key: jnp.array([[1.0, 2.0]]),
        params={"k": 1.0},
        scale=lambda params: Scale(1.0, params["k"]),
    )
    state, step = well.init(well.params, jax.random.key(0)), jax.jit(well.step)

    def moved(factor):
        return float(jnp.abs(step(state, {"k": jnp.asarray(factor)}).descent.position - state.descent.position).max())

    # As between two programs that derive the same number; a first step for other params evaluates in place.
    assert moved(1 + 5e-15) == pytest.approx(moved(1.0), rel=1e-13) and moved(1.0) > 0.1
    assert moved(1.001) == 0


@every(
    "make",
    [
        lambda names: user_energy(gaussians, parameters=names),
        lambda names: pair_interaction(lennard_jones(), cutoff=1.0, parameters=names),
        lambda names: from_jax_md(gaussians, parameters=names),
    ],
)
def test_names_as_one_text_are_refused(make):
    with pytest.raises(UserError, match=r"parameters = 'width' is one text, and a list is wanted; write \[\"width\"\]"):
        make("width")


def lennard_jones_without(excluded, images, method, **options):
    pairs = pair_interaction(
        lennard_jones(), cutoff=2.0, excluded=excluded, images=images, method=method, **{"capacity": 48, **options}
    )
    return pairs if images is None else in_block(pairs, images)


UNIT = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0)}


def test_a_bonded_pair_further_apart_than_half_a_small_cell_makes_results_nan(x64):
    pairs = lennard_jones_without([[0, 1]], (2, 2), "all_pairs")
    for shift, is_undefined in ((0.9, False), (1.8, True)):
        x = jnp.asarray([[0.0, 0.0], [shift, shift]])
        assert np.isnan(pairs.energy(x, jnp.full(2, 4.0), UNIT, ())) == is_undefined


def test_a_system_without_exclusions_runs_the_program_it_ran_before():
    position, cell = configuration("orthorhombic", 3)
    texts = []
    for options in ({}, {"excluded": np.zeros((0, 2), int)}):
        pairs = spheres("neighbor_list", **options)

        def force(x, pairs=pairs):
            return pairs.force(x, cell, params(), pairs.prepare(x, cell, params()))

        texts.append(str(jax.make_jaxpr(force)(position)))
    assert texts[0] == texts[1]


def test_excluded_pairs_must_be_pairs_of_particles():
    for excluded, message in (
        ([[0, 0]], "is none"),
        ([[-1, 0]], "is none"),
        ([[0, 99]], "a particle of excluded = 99 is not an integer from 0 to"),
    ):
        with pytest.raises(UserError, match=message):
            energy_of(spheres("all_pairs", excluded=excluded), *configuration("free", 2), params())
