"""Relaxation of crystals, cells, clusters and beside frozen particles, and its implicit derivative, also in fields."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.core.converge import converge
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.dynamics import langevin, stochastic_cell_rescaling
from simkit.molecular.interactions.interaction import Interaction, combined, user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import force_shifted, lennard_jones, morse, pair_potential, soft_sphere
from simkit.molecular.relaxation import relaxation
from simkit.molecular.relaxation.equilibrium import zero_modes
from tests.differences import fourth_order
from tests.molecular.dynamics.moving import floats
from tests.molecular.resting import at_rest

MAX_STEPS = 5000
CUTOFF = 2.4


def triangular(columns=6, rows=6, spacing=1.1):
    """Return the positions and the box of a triangular lattice, (columns * 2 * rows / 2, 2)."""
    i, j = np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij")
    position = np.stack([i + 0.5 * (j % 2) + 0.25, (j + 0.5) * np.sqrt(3) / 2], axis=-1).reshape(-1, 2)
    return spacing * position, spacing * np.array([columns, rows * np.sqrt(3) / 2])


def crystal(
    *, vacancy=True, relax_cell=False, minimizer="lbfgs", method="all_pairs", noise=0.02, tolerance=1e-12, capacity=None
):
    """A triangular Lennard-Jones crystal of two species, most of it epsilon_aa, one particle missing."""
    sites, box = triangular()
    sites = sites[1:] if vacancy else sites
    species = [int(k % 3 == 0) for k in range(len(sites))]

    def tables(params):
        a, ab, b = params["epsilon"], params["epsilon_mixed"], params["epsilon_other"]
        epsilon = jnp.stack([jnp.stack([a, ab]), jnp.stack([ab, b])])
        return {"epsilon": epsilon, "sigma": params["sigma"], "cutoff": CUTOFF * params["sigma"]}

    def start(params, key):
        jitter = noise * jax.random.normal(key, sites.shape, params["sigma"].dtype)
        return params["sigma"] * (jnp.asarray(sites, params["sigma"].dtype) + jitter)

    defaults = {"epsilon": 1.0, "epsilon_mixed": 1.2, "epsilon_other": 0.7, "sigma": 1.0, "pressure": 0.3, "width": 1.0}

    def cell(params):
        stretched = jnp.stack([params["width"], jnp.ones_like(params["width"])])
        return params["sigma"] * stretched * jnp.asarray(box, params["sigma"].dtype)

    potential = force_shifted(lennard_jones())
    return relaxation(
        pair_interaction(
            potential,
            cutoff=lambda p: CUTOFF * p["sigma"],
            parameters=tables,
            species=species,
            method=method,
            capacity=capacity,
        ),
        start,
        params={name: jnp.asarray(value, dtype=float) for name, value in defaults.items()},
        scale=lambda p: Scale(length=p["sigma"], stiffness=57 * p["epsilon"] / p["sigma"] ** 2),
        cell=cell,
        minimizer=minimizer,
        force_tolerance=tolerance,
        force_unit=lambda p: p["epsilon"] / p["sigma"],
        relax_cell=relax_cell,
    )


@functools.cache
def reference_energy(relax_cell):
    return at_rest(crystal(relax_cell=relax_cell))[1]["energy"]


@pytest.mark.parametrize("relax_cell", [False, True])
@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "fire2", "conjugate_gradient", "gradient_descent"])
def test_every_minimizer_relaxes_a_vacancy_to_the_same_energy(x64, minimizer, relax_cell):
    result, end = at_rest(crystal(minimizer=minimizer, relax_cell=relax_cell, tolerance=1e-10))
    # The kept force and the one worked out anew differ by round-off, 1e-13.
    assert end["max_force"] < 1.01e-10
    # Quadratic in the remaining force: round-off of 35 energies is all there is.
    assert end["energy"] == pytest.approx(reference_energy(relax_cell), rel=1e-12)
    assert end["force_evaluations"] == int(result.iterations) + 1
    if relax_cell:
        assert end["max_stress_error"] < 1.1e-10
        # 2-D stress in units of epsilon / sigma^2, to the tolerance.
        assert end["pressure"] == pytest.approx(0.3, abs=1.1e-10)


@pytest.mark.parametrize("name", ["epsilon_mixed", "width"])
def test_implicit_derivative_of_a_vacancy_equals_the_relaxed_difference(x64, name):
    check_derivative(crystal(), name, ["pressure", "spread"])


@pytest.mark.parametrize("name", ["epsilon_other", "pressure"])
def test_implicit_derivative_with_a_relaxed_cell_equals_the_relaxed_difference(x64, name):
    check_derivative(crystal(relax_cell=True), name, ["volume", "spread"])


def check_derivative(simulation, name, quantities):
    state = at_rest(simulation)[0].state

    def measured(value):
        params = {**simulation.params, name: value}
        result = converge(simulation, MAX_STEPS)(state, params)
        end = simulation.diagnose(result.state, params)
        position = result.state.descent.position
        # Distances from the first particle: sees every displacement but the rigid ones.
        end["spread"] = jnp.sum((position[1:35] - position[0]) ** 2 * jnp.arange(34)[:, None])
        return {quantity: end[quantity] for quantity in quantities}

    value = simulation.params[name]
    # Truncation 1e-16 times a fifth derivative, round-off 1e-12 / 1e-4 = 1e-8 of the slope.
    differences = fourth_order(jax.jit(measured), value, 1e-4)
    forward = jax.jit(jax.jacfwd(measured))(value)
    reverse = jax.jit(jax.jacrev(measured))(value)
    for quantity, difference in differences.items():
        assert abs(difference) > 1e-3
        assert float(forward[quantity]) == pytest.approx(float(difference), rel=1e-5), quantity
        assert float(reverse[quantity]) == pytest.approx(float(forward[quantity]), rel=1e-7), quantity


def test_derivative_at_an_unstable_row_is_nan(x64):
    # A row of four disks under compression is at rest by symmetry and buckles at a touch: ``push`` is that touch.
    sites = np.array([[0.5, 1.0], [1.5, 1.0], [2.5, 1.0], [3.5, 1.0]])
    zigzag = np.array([[0.0, 1.0], [0.0, -1.0], [0.0, 1.0], [0.0, -1.0]])
    touch = Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: (),
        energy=lambda position, cell, params, _: -params["push"] * jnp.sum(zigzag * position),
        force=lambda position, cell, params, _: params["push"] * jnp.asarray(zigzag),
        stress=lambda position, cell, params, _: jnp.zeros((2, 2)),
    )
    disks = pair_interaction(soft_sphere(), cutoff=lambda p: p["sigma"])
    simulation = relaxation(
        combined(disks, touch),
        lambda params, key: jnp.asarray(sites),
        params={name: jnp.asarray(value) for name, value in {"epsilon": 1.0, "sigma": 1.2, "push": 0.0}.items()},
        scale=lambda p: Scale(length=p["sigma"], stiffness=p["epsilon"] / p["sigma"] ** 2),
        cell=lambda p: jnp.array([4.0, 4.0]),
    )

    def height(push):
        params = {**simulation.params, "push": push}
        result = converge(simulation, 100)(simulation.init(params, jax.random.key(0)), params)
        return result.state.descent.position[0, 1], result.status

    gradient, status = jax.jit(jax.grad(height, has_aux=True))(0.0)
    assert int(status) == Status.CONVERGED
    assert np.isnan(gradient)


@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "fire2", "conjugate_gradient", "gradient_descent"])
def test_a_tolerance_below_round_off_ends_as_stalled(minimizer):
    # Single precision cannot bring the force below about 1e-5.
    simulation = crystal(minimizer=minimizer, tolerance=1e-12)
    params = simulation.params
    result = jax.jit(converge(simulation, 20_000))(simulation.init(params, jax.random.key(0)), params)
    assert int(result.status) == Status.STALLED
    assert float(simulation.diagnose(result.state, params)["max_force"]) < 1e-3


def test_masks_that_do_not_match_are_refused():
    with pytest.raises(UserError, match="particles of which none is frozen"):
        relaxation(
            pair_interaction(lennard_jones(), cutoff=2.0),
            lambda params, key: jnp.zeros((2, 2)),
            params={"epsilon": 1.0, "sigma": 1.0, "pressure": 0.0},
            scale=lambda p: Scale(length=p["sigma"], stiffness=p["epsilon"]),
            cell=lambda params: 4 * jnp.eye(2),
            relax_cell=True,
            frozen=[True, False],
        )
    for mask, message in (
        ([True] * 5, "names 5 of 5 particles"),
        ([True, False], "names 1 of 2 particles, and there are 5"),
    ):
        simulation = cluster(frozen=mask)
        with pytest.raises(UserError, match=message):
            simulation.init(simulation.params, jax.random.key(0))


# Two frozen ends and two atoms between and beside them, in units of sigma.
ENDS = np.array([[0.0, 0.0, 0.0], [2.1, 0.1, 0.0]])
OTHERS = np.array([[1.05, 0.2, 0.1], [1.0, 1.1, -0.1], [1.2, 0.4, 1.0]])
FROZEN = np.array([True, True, False, False, False])


def cluster(minimizer="lbfgs", *, frozen=FROZEN, drawn=0.0, others=OTHERS, noise=0.03):
    """Return Lennard-Jones atoms of which two do not move; the start of the others is random."""

    def start(params, key):
        kind = params["sigma"].dtype
        jitter = jax.random.normal(key, (5, 3), kind) * jnp.where(jnp.asarray(FROZEN)[:, None], drawn, noise)
        # The second end also follows a parameter of its own.
        ends = jnp.asarray(ENDS, kind).at[1, 0].add(params["stretch"])
        return params["sigma"] * (jnp.concatenate([ends, jnp.asarray(others, kind)]) + jitter)

    return relaxation(
        pair_interaction(lennard_jones(), cutoff=None),
        start,
        params={"epsilon": 1.0, "sigma": 1.1, "stretch": 0.0},
        scale=lambda p: Scale(length=p["sigma"], stiffness=57 * p["epsilon"] / p["sigma"] ** 2),
        minimizer=minimizer,
        force_tolerance=1e-12,
        frozen=frozen,
    )


@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "conjugate_gradient"])
def test_frozen_particles_keep_every_bit_and_the_others_relax(x64, minimizer):
    simulation = cluster(minimizer)
    result, found = at_rest(simulation, seed=1)
    state = result.state
    start = simulation.init(simulation.params, jax.random.key(1)).descent.position
    np.testing.assert_array_equal(state.descent.position[:2], start[:2])
    assert found["max_force"] < 1e-10
    # The ends are held by forces.
    force = pair_interaction(lennard_jones(), cutoff=None).force(state.descent.position, None, simulation.params, ())
    assert float(jnp.abs(force[:2]).max()) > 0.1
    assert float(jnp.abs(force[2:]).max()) < 1e-10


def test_implicit_derivative_with_frozen_particles_equals_the_relaxed_difference(x64):
    first = cluster()
    # From where they are at rest, so that neighboring values lead into the same minimum.
    others = at_rest(first, seed=1)[0].state.descent.position[2:] / first.params["sigma"]
    simulation, weights = cluster(others=others, noise=0.0), jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))

    def energy_at_rest(params):
        state = converge(simulation, 4000)(simulation.init(params, jax.random.key(1)), params).state
        energy = simulation.diagnose(state, params)["energy"]
        return jnp.stack([jnp.sum(weights * state.descent.position), energy])

    derivative = jax.jit(jax.jacrev(energy_at_rest))(simulation.params)
    step, value = 1e-4, jax.jit(energy_at_rest)
    for name, at in simulation.params.items():
        low, high = (value({**simulation.params, name: at + sign * step}) for sign in (-1, 1))
        # Of second order in the step: 1e-8 times a third derivative.
        np.testing.assert_allclose(derivative[name], (high - low) / (2 * step), rtol=1e-6, atol=1e-6)
        assert np.abs(derivative[name]).max() > 0.1


def test_frozen_particles_follow_the_params_when_a_relaxation_continues(x64):
    # A spring of length 1 to a frozen post at d, and the trap (x^2 + y^2) / 100, which turns it: x = (d - 1) / 1.02.
    simulation = molecular.system(
        particles={"post": {"count": 1, "frozen": True}, "A": {"count": 1}},
        start={"positions": [["d", 0.0], ["d+1", 0.1]]},
        interactions=[{"energy": "(r-1)**2/2"}],
        fields=[{"energy": "0.01*(x**2+y**2)"}],
        relax={"force_tolerance": 1e-12},
        parameters={"d": 2.0},
    )
    params, other = simulation.params, {"d": jnp.asarray(2.1)}
    relax = converge(simulation, 500)
    begun = relax(simulation.init(params, jax.random.key(0)), params).state
    again = relax(begun, other)
    expected = relax(simulation.init(other, jax.random.key(0)), other)
    assert int(again.status) == Status.CONVERGED
    found = again.state.descent.position
    np.testing.assert_allclose(found, expected.state.descent.position, atol=1e-10)
    np.testing.assert_allclose(found, [[2.1, 0.0], [1.1 / 1.02, 0.0]], atol=1e-10)
    for quantity in ("potential_energy", "energy_per_particle"):
        check = simkit.check_gradient(simkit.Objective(simulation, quantity, 500), params, jax.random.key(0), "d")
        assert check.verdict["d"] == "agrees"


def test_derivative_is_nan_if_frozen_positions_depend_on_the_key(x64):
    simulation = cluster(drawn=0.01)

    def energy(sigma):
        params = {**simulation.params, "sigma": sigma}
        state = converge(simulation, 4000)(simulation.init(params, jax.random.key(1)), params).state
        return simulation.diagnose(state, params)["energy"]

    value, slope = jax.jit(jax.value_and_grad(energy))(simulation.params["sigma"])
    assert np.isfinite(value)
    assert np.isnan(slope)


def relax(interaction, start, params, *, stiffness=57.0, tolerance=1e-12, **options):
    return relaxation(
        interaction,
        lambda params, key: jnp.asarray(start, dtype=float),
        params=params,
        scale=lambda p: Scale(length=jnp.asarray(1.0), stiffness=jnp.asarray(stiffness)),
        force_tolerance=tolerance,
        force_unit=lambda p: jnp.asarray(1.0),
        **options,
    )


def blob(count, dimension, seed=3):
    """A compact start: lattice points near the origin, shaken."""
    grid = np.stack(np.meshgrid(*[np.arange(-3, 4)] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    nearest = grid[np.argsort((grid**2).sum(axis=1), kind="stable")][:count]
    return 1.15 * nearest + 0.05 * np.random.default_rng(seed).normal(size=(count, dimension))


def cohesion():
    return pair_interaction(lennard_jones(), cutoff=None, method="all_pairs")


def check_slopes(simulation, measure, **steps):
    """Hold implicit derivatives of a measure against fourth-order differences of converged values."""
    names = list(steps)

    def measured(values, state):
        params = {**simulation.params, **dict(zip(names, values, strict=True))}
        result = converge(simulation, MAX_STEPS)(state, params)
        return measure(result.state.descent.position), (result.state, result.status)

    values = jnp.stack([simulation.params[name] for name in names])
    run = jax.jit(measured)
    _, (state, status) = run(values, simulation.init(simulation.params, jax.random.key(0)))
    assert int(status) == Status.CONVERGED
    slopes = jax.jit(jax.jacfwd(lambda values: measured(values, state)[0]))(values)
    for index, step in enumerate(steps.values()):
        moved = np.eye(len(names))[index] * step
        difference = fourth_order(lambda values: run(values, state)[0], values, moved)
        assert np.abs(difference).max() > 1e-3
        # What is left of the forces, 1e-12, over the softest curvature and the step: below 1e-6 of the largest slope.
        tolerance = 1e-6 * np.abs(difference).max()
        np.testing.assert_allclose(slopes[..., index], difference, rtol=1e-5, atol=tolerance, err_msg=names[index])
    return state.descent.position


@pytest.mark.parametrize("rotations", [False, True])
def test_a_periodic_substrate_carries_the_particles_along(x64, rotations):
    # E = -sum cos(2 pi (x - c) / a), free along y: the springs between neighbors alone hold y differences.
    def energy(x, cell, p):
        bonds = jnp.sum((x[1:] - x[:-1] - jnp.array([1.0, 0.2])) ** 2)
        return bonds - jnp.sum(jnp.cos(2 * jnp.pi * (x[:, 0] - p["c"])))

    start = np.array([[0.1, 0.0], [1.1, 0.3], [2.1, 0.5]])
    cell = None if rotations else (lambda p: jnp.array([10.0, 10.0]))
    simulation = relax(user_energy(energy), start, floats(c=0.05), cell=cell)

    def place(c):
        params = {"c": c}
        result = converge(simulation, MAX_STEPS)(simulation.init(params, jax.random.key(0)), params)
        return result.state.descent.position

    slope = jax.jit(jax.jacfwd(place))(0.05)
    # Everything follows the substrate by symmetry, and y, which nothing holds, is left where it is.
    np.testing.assert_allclose(slope, np.tile([1.0, 0.0], (3, 1)), atol=1e-10)


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_cluster_follows_an_anisotropic_trap(x64, dimension):
    stiffness = np.array([0.3, 0.7, 1.1])[:dimension]

    def trap(x, cell, p):
        along, center = jnp.array([jnp.cos(p["turn"]), jnp.sin(p["turn"])]), jnp.zeros(dimension).at[0].set(p["c"])
        y = x - center
        turned = jnp.stack([y[:, 0] * along[0] + y[:, 1] * along[1], y[:, 1] * along[0] - y[:, 0] * along[1]], axis=1)
        turned = jnp.concatenate([turned, y[:, 2:]], axis=1)
        return jnp.sum(stiffness * turned**2) / 2

    interaction = combined(cohesion(), user_energy(trap))
    simulation = relax(interaction, blob(7, dimension), floats(epsilon=1.0, sigma=1.0, c=0.2, turn=0.3))
    # The trap is all that holds the orientation of a nearly round cluster, so epsilon takes a long step.
    check_slopes(simulation, lambda x: x, c=1e-3, turn=1e-3, epsilon=1e-2)


@pytest.mark.parametrize("dimension", [2, 3])
def test_zero_modes_in_an_isotropic_trap_are_rotations_about_its_center(x64, dimension):
    # It holds one particle of the cluster, so the point is not its center: no rotation about the center is free.
    def trap(x, cell, p):
        return jnp.sum((x[0] - jnp.full(dimension, p["c"])) ** 2) + 0.01 * jnp.sum(x[0] - p["c"]) ** 4

    interaction = combined(cohesion(), user_energy(trap))
    simulation = relax(interaction, blob(6, dimension) + 0.5, floats(epsilon=1.0, sigma=1.0, c=0.4))

    def measure(x):
        arm = x - x[0]
        # Where the held one is, and the shape: all that does not depend on how the cluster is turned about it.
        return jnp.concatenate([x[0], (arm @ arm.T).ravel()])

    position = check_slopes(simulation, measure, c=1e-3, sigma=1e-3)
    free = free_of(interaction, position, simulation.params)
    assert len(free) == dimension * (dimension - 1) // 2
    # The held particle rests on the point, about which all others turn.
    np.testing.assert_allclose(free[:, 0], 0, atol=1e-10)


def free_of(interaction, position, params, cell=None):
    """Return what is free among the translations and rotations."""

    @jax.jit
    def run(position, params):
        neighbors = interaction.prepare(position, cell, params)
        return zero_modes(lambda x: interaction.force(x, cell, params, neighbors), position, rotations=True, length=1.0)

    basis = run(position, params)
    return basis[jnp.sum(basis**2, axis=(1, 2)) > 0.5]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_zero_modes_are_counted_in_either_precision(precision, dimension):
    with jax.enable_x64(precision == "float64"):
        params = floats(epsilon=1.0, sigma=1.0)
        # Far from rest, too: what is examined is the energy's symmetry and not whether forces are left.
        position = jnp.asarray(blob(9, dimension) + 20.0, dtype=float)
        turns, cohesive = dimension * (dimension - 1) // 2, cohesion()
        gravity = user_energy(lambda x, cell, p: 1e-2 * jnp.sum(x[:, 1] ** 2))
        central = user_energy(lambda x, cell, p: jnp.sum((x - 20.3) ** 2))
        assert len(free_of(cohesive, position, params)) == dimension + turns
        # A layer leaves the translations along it and the rotation about its normal.
        assert len(free_of(combined(cohesive, gravity), position, params)) == (1 if dimension == 2 else 3)
        assert len(free_of(combined(cohesive, central), position, params)) == turns
        # A constant force along y: its direction breaks the rotations, but no translation changes a force.
        pull = user_energy(lambda x, cell, p: 0.3 * jnp.sum(x[:, 1]))
        assert len(free_of(combined(cohesive, pull), position, params)) == dimension + (0 if dimension == 2 else 1)


def test_derivative_of_particles_under_gravity_on_a_floor(x64):
    # A pile of three on a soft floor: down is held by the floor, sideways by nothing.
    def weight(x, cell, p):
        depth = jnp.maximum(0.5 - x[:, 1], 0)
        return jnp.sum(p["g"] * x[:, 1]) + 50 * jnp.sum(depth**2)

    interaction = combined(cohesion(), user_energy(weight))
    start = [[0.0, 0.45], [1.1, 0.45], [0.55, 1.4]]
    simulation = relax(interaction, start, floats(epsilon=1.0, sigma=1.0, g=0.5))
    check_slopes(simulation, lambda x: jnp.concatenate([x[:, 1], x[1:, 0] - x[0, 0]]), g=1e-3, sigma=1e-3)


def test_derivative_in_a_field_with_a_relaxing_cell(x64):
    # A crystal over grooves of the cell's own period, which drag it along.
    def grooves(x, cell, p):
        return -0.05 * jnp.sum(jnp.cos(2 * jnp.pi * (8 * x[:, 0] / spaces.lattice_vectors(cell)[0, 0] - p["c"])))

    row, column = np.divmod(np.arange(16), 4)
    sites = np.stack([column + 0.5 * (row % 2) + 0.05, np.sqrt(0.75) * row], axis=1)
    disks = pair_interaction(soft_sphere(), cutoff=lambda p: p["sigma"], method="all_pairs")
    simulation = relax(
        combined(disks, user_energy(grooves)),
        sites,
        floats(epsilon=10.0, sigma=1.2, c=0.1, pressure=0.5),
        cell=lambda p: jnp.array([4.0, 4 * np.sqrt(0.75)]),
        relax_cell=True,
        isotropic=True,
    )
    check_slopes(simulation, lambda x: x[:, 0], c=1e-3, pressure=1e-3)


@pytest.mark.parametrize("cell", [(12.0, 12.0, 12.0), ((12.0, 0.0, 0.0), (3.0, 12.0, 0.0), (0.0, 2.0, 13.0))])
@pytest.mark.parametrize("shift", [(6.0, 6.0, 6.0), (0.0, 0.1, -0.2), (12.1, 6.0, 0.0)])
def test_a_cluster_across_the_faces_of_its_cell_has_the_derivatives_of_one_in_free_space(cell, shift, x64):
    def relaxed(sigma, cell):
        cutoff = None if cell is None else 5.0
        simulation = relax(
            pair_interaction(morse(), cutoff=cutoff, parameters=["epsilon", "sigma", "rho"], method="all_pairs"),
            blob(7, 3) + jnp.asarray(shift),
            floats(epsilon=1.0, sigma=1.0, rho=6.0),
            cell=None if cell is None else lambda p: jnp.asarray(cell),
        )
        params = {**simulation.params, "sigma": sigma}
        space = spaces.of_cell(None if cell is None else jnp.asarray(cell), 3)
        start = simulation.init(params, jax.random.key(0))
        # As read from a file, in which positions are inside the cell.
        inside = space.wrap(start.descent.position)
        start = dataclasses.replace(start, descent=dataclasses.replace(start.descent, trial=inside, position=inside))
        return simulation, converge(simulation, MAX_STEPS)(start, params).state, params

    def distance(sigma, cell):
        _, state, _ = relaxed(sigma, cell)
        space = spaces.of_cell(None if cell is None else jnp.asarray(cell), 3)
        first = tuple(state.descent.position[0] - state.descent.position[4])
        return sum(part**2 for part in space.nearest_image(first))

    slope, expected = (jax.jit(jax.grad(distance), static_argnums=1)(jnp.asarray(1.0), each) for each in (cell, None))
    assert slope == pytest.approx(float(expected), rel=1e-6)
    # The equations have one solution: rotations of the images are constrained too.
    simulation, state, params = relaxed(jnp.asarray(1.0), cell)
    jacobian = jax.jit(jax.jacfwd(lambda x: simulation.equilibrium.residual(x, params)))(state.descent.position)
    assert np.linalg.eigvalsh(jacobian.reshape(21, 21)).min() > 0.1


SIDE = 4.5
TOLD = "shrank its cell to less than twice the cut-off"
PLACES = np.stack(np.meshgrid(*[np.arange(4) + 0.5] * 2), axis=-1).reshape(-1, 2) * SIDE / 4


def soft(cutoff):
    energy = pair_potential(lambda distance, epsilon: epsilon * jnp.maximum(cutoff - distance, 0) ** 2)
    return pair_interaction(energy, cutoff=cutoff, parameters=["epsilon"])


def interaction():
    return combined(soft(2.0), soft(1.5))


def cell(params):
    return jnp.full(2, SIDE, params["epsilon"].dtype)


def start(params, key):
    return jnp.asarray(PLACES, params["epsilon"].dtype)


def under(pressure, start=start, **options):
    """The relaxation of particles and their cell under a pressure."""
    return relaxation(
        interaction(),
        start,
        params={"epsilon": 1.0, "pressure": pressure},
        scale=lambda params: Scale(jnp.ones_like(params["epsilon"]), params["epsilon"]),
        cell=cell,
        relax_cell=True,
        **options,
    )


@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "gradient_descent"])
def test_relaxation_under_too_high_a_pressure_ends_as_cell_too_small(minimizer, x64):
    squeezed = under(100.0, minimizer=minimizer, isotropic=True)
    with pytest.warns(UserWarning, match=TOLD):
        run = simkit.run(squeezed, steps=3000)
    assert float(run["volume"][-1]) < 4.0**2 * 1.0001


def test_a_cell_above_twice_the_cutoff_converges(x64):
    run = simkit.run(under(0.6, isotropic=True), steps=3000, every=3000)
    assert float(run["volume"][-1]) > 4.0**2 and float(run["max_force"][-1]) < 1e-9


@pytest.mark.parametrize("isotropic", [True, False])
def test_dynamics_under_too_high_a_pressure_ends_as_cell_too_small(isotropic):
    moved = langevin(
        interaction(),
        start,
        cell=cell,
        params={
            "epsilon": 1.0,
            "mass": 1.0,
            "temperature": 0.1,
            "friction": 1.0,
            "time_step": 0.005,
            "pressure": 100.0,
            "compressibility": 0.05,
            "barostat_time": 1.0,
        },
        barostat=stochastic_cell_rescaling(isotropic=isotropic),
    )
    with pytest.warns(UserWarning, match=TOLD):
        simkit.run(moved, steps=400)


def test_other_non_finite_numbers_end_as_non_finite():
    broken = under(1.0, lambda params, key: start(params, key) * jnp.nan)
    state = broken.init(broken.params, jax.random.key(0))
    assert int(status_of(broken)(state, broken.params)) == Status.NON_FINITE
