"""Relaxation of crystals, cells and clusters, and its implicit derivative."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge, converge_with_growth
from simkit.core.rollout import trajectory
from simkit.core.status import Status, status_of
from simkit.molecular.interactions.interaction import Interaction, combined
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import force_shifted, lennard_jones, soft_sphere
from simkit.molecular.relaxation import relaxation
from simkit.molecular.relaxation.equilibrium import projection, rigid_motions
from tests.tables import every

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


def relaxed(simulation, params=None, seed=0):
    params = simulation.params if params is None else params

    @jax.jit
    def run(params, key):
        result = converge(simulation, MAX_STEPS)(simulation.init(params, key), params)
        return result, simulation.diagnose(result.state, params)

    return run(params, jax.random.key(seed))


@functools.cache
def reference_energy(relax_cell):
    return float(relaxed(crystal(relax_cell=relax_cell))[1]["energy"])


@pytest.mark.parametrize("relax_cell", [False, True])
@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "fire2", "conjugate_gradient", "gradient_descent"])
def test_every_minimizer_relaxes_a_vacancy_to_the_same_energy(x64, minimizer, relax_cell):
    result, end = relaxed(crystal(minimizer=minimizer, relax_cell=relax_cell, tolerance=1e-10))
    reference = reference_energy(relax_cell)
    assert int(result.status) == Status.CONVERGED
    # The kept force and the one worked out anew differ by round-off, 1e-13.
    assert float(end["max_force"]) < 1.01e-10
    # Quadratic in the remaining force: round-off of 35 energies is all there is.
    assert float(end["energy"]) == pytest.approx(reference, rel=1e-12)
    assert int(end["force_evaluations"]) == int(result.iterations) + 1
    if relax_cell:
        assert float(end["max_stress_error"]) < 1.1e-10
        # 2-D stress in units of epsilon / sigma^2, to the tolerance.
        assert float(end["pressure"]) == pytest.approx(0.3, abs=1.1e-10)


def test_relaxed_cell_is_the_minimum_of_the_enthalpy(x64):
    simulation = crystal(relax_cell=True)
    result, end = relaxed(simulation)
    fixed = crystal()
    strained = []
    for width in (1 - 1e-4, 1.0, 1 + 1e-4):
        cell = simulation.observe(result.state, simulation.params)["cell"]
        enthalpies = enthalpy_of(fixed, simulation, result.state, cell * jnp.array([width, 1.0]))
        strained.append(enthalpies)
    # Curvature of about 60 epsilon per bond and 35 particles: 1e-5 above the minimum on either side, equally.
    assert strained[0] > strained[1] < strained[2]
    rise = np.array([strained[0] - strained[1], strained[2] - strained[1]])
    # The cubic term is a few per cent of strain 1e-4 times an anharmonicity of about 20.
    assert rise[0] == pytest.approx(rise[1], rel=0.01)
    assert float(end["energy"]) < 0


def enthalpy_of(fixed, simulation, state, cell):
    """Return the enthalpy with positions scaled affinely along with the cell, not relaxed."""
    old = simulation.observe(state, simulation.params)
    position = old["position"] / jnp.diagonal(old["cell"]) * jnp.diagonal(cell)
    return float(energy_in(fixed, position, jnp.diagonal(cell)) + 0.3 * jnp.diagonal(cell).prod())


def energy_in(simulation, position, box):
    difference = position[:, None] - position[None, :]
    difference = difference - box * jnp.round(difference / box)
    distance = jnp.sqrt((difference**2).sum(-1) + jnp.eye(len(position)))
    kinds = jnp.array([int(k % 3 == 0) for k in range(len(position))])
    epsilon = jnp.array([[1.0, 1.2], [1.2, 0.7]])[kinds[:, None], kinds[None, :]]
    pairs = force_shifted(lennard_jones()).energy(distance, epsilon=epsilon, sigma=1.0, cutoff=CUTOFF)
    return jnp.where(jnp.eye(len(position), dtype=bool) | (distance > CUTOFF), 0, pairs).sum() / 2


@pytest.mark.parametrize("name", ["epsilon_mixed", "width"])
def test_implicit_derivative_of_a_vacancy_equals_the_relaxed_difference(x64, name):
    check_derivative(crystal(), name, ["pressure", "spread"])


@pytest.mark.parametrize("name", ["epsilon_other", "pressure"])
def test_implicit_derivative_with_a_relaxed_cell_equals_the_relaxed_difference(x64, name):
    check_derivative(crystal(relax_cell=True), name, ["volume", "spread"])


def check_derivative(simulation, name, quantities):
    state = relaxed(simulation)[0].state

    def measured(value):
        params = {**simulation.params, name: value}
        result = converge(simulation, MAX_STEPS)(state, params)
        end = simulation.diagnose(result.state, params)
        position = result.state.descent.position
        # Distances from the first particle: sees every displacement but the rigid ones.
        end["spread"] = jnp.sum((position[1:35] - position[0]) ** 2 * jnp.arange(34)[:, None])
        return {quantity: end[quantity] for quantity in quantities}

    value, step = simulation.params[name], 1e-4
    run = jax.jit(measured)
    near = [run(value + k * step) for k in (-2, -1, 1, 2)]
    forward = jax.jit(jax.jacfwd(measured))(value)
    reverse = jax.jit(jax.jacrev(measured))(value)
    for quantity in quantities:
        far2, far1, next1, next2 = (float(n[quantity]) for n in near)
        # Fourth order: truncation 1e-16 times a fifth derivative, round-off 1e-12 / 1e-4 = 1e-8 of the slope.
        difference = (8 * (next1 - far1) - (next2 - far2)) / (12 * step)
        assert abs(difference) > 1e-3
        assert float(forward[quantity]) == pytest.approx(difference, rel=1e-5), quantity
        assert float(reverse[quantity]) == pytest.approx(float(forward[quantity]), rel=1e-7), quantity


def test_cost_of_the_derivative_does_not_depend_on_the_iterations(x64):
    simulation = crystal()
    state = simulation.init(simulation.params, jax.random.key(0))

    def pressure(epsilon, steps):
        params = {**simulation.params, "epsilon_mixed": epsilon}
        return simulation.diagnose(converge(simulation, steps)(state, params).state, params)["pressure"]

    gradient = jax.jit(jax.grad(pressure), static_argnums=1)
    memory = [gradient.lower(1.2, steps).compile().memory_analysis().temp_size_in_bytes for steps in (10, 5000)]
    assert memory[0] == memory[1]


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


def test_rattlers_do_not_move_and_leave_the_derivative_finite(x64):
    # Three disks in a row that fills the box, and one that touches the first by a hair, held by nothing else.
    sites = np.array([[0.5, 1.0], [1.5, 1.0], [2.5, 1.0], [0.5, 2.2 - 1e-13]])

    def make(rattlers):
        return relaxation(
            pair_interaction(soft_sphere(), cutoff=lambda p: p["sigma"]),
            lambda params, key: jnp.asarray(sites),
            params={name: jnp.asarray(value) for name, value in {"epsilon": 1.0, "sigma": 1.2, "tall": 1.2}.items()},
            scale=lambda p: Scale(length=p["sigma"], stiffness=p["epsilon"] / p["sigma"] ** 2),
            cell=lambda p: jnp.stack([jnp.asarray(3.0), jnp.asarray(4.0)]),
            force_tolerance=1e-10,
            rattlers=rattlers,
        )

    simulation = make(lambda position, cell, params, neighbors: jnp.array([False, False, False, True]))
    state = simulation.init(simulation.params, jax.random.key(0))
    solve = simulation.equilibrium
    matrix = jax.jacfwd(solve.residual)(solve.unknowns(state), simulation.params).reshape(8, 8)
    # Symmetric, with the rattler held and coupled to nothing.
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert float(jnp.abs(matrix[6:, :6]).max()) == 0.0
    stiffness = 1 / 1.2**2
    np.testing.assert_allclose(matrix[6:, 6:], stiffness * np.eye(2), atol=1e-15)


def test_a_change_of_parameters_restarts_the_relaxation(x64):
    simulation = crystal()
    state = relaxed(simulation)[0].state
    other = {**simulation.params, "epsilon_mixed": jnp.asarray(2.5)}
    assert status_of(simulation)(state, simulation.params) == Status.CONVERGED
    assert status_of(simulation)(state, other) != Status.CONVERGED
    again = jax.jit(converge(simulation, MAX_STEPS))(state, other)
    fresh = relaxed(simulation, other)[1]
    assert int(again.status) == Status.CONVERGED
    # Both minima to round-off; the noise of the start is too small to leave the basin.
    assert float(simulation.diagnose(again.state, other)["energy"]) == pytest.approx(float(fresh["energy"]), rel=1e-12)


@pytest.mark.parametrize("minimizer", ["lbfgs", "fire", "fire2", "conjugate_gradient", "gradient_descent"])
def test_a_tolerance_below_round_off_ends_as_stalled(minimizer):
    # Single precision cannot bring the force below about 1e-5.
    simulation = crystal(minimizer=minimizer, tolerance=1e-12)
    result, end = jax.jit(
        lambda key: (lambda result: (result, simulation.diagnose(result.state, simulation.params)))(
            converge(simulation, 20_000)(simulation.init(simulation.params, key), simulation.params)
        )
    )(jax.random.key(0))
    assert int(result.status) == Status.STALLED
    assert float(end["max_force"]) < 1e-3


def test_single_precision_reaches_its_advised_tolerance():
    result, end = relaxed(crystal(tolerance=1e-3, relax_cell=True))
    assert int(result.status) == Status.CONVERGED
    assert end["energy"].dtype == jnp.float32
    assert float(end["max_force"]) < 1.1e-3


@pytest.mark.parametrize("relax_cell", [False, True])
def test_vmap_over_parameters_and_seeds_equals_a_loop(x64, relax_cell):
    simulation = crystal(relax_cell=relax_cell)
    mixed, seeds = jnp.array([0.9, 1.0, 1.3]), jnp.arange(3)

    def run(epsilon, seed):
        params = {**simulation.params, "epsilon_mixed": epsilon}
        result = converge(simulation, MAX_STEPS)(simulation.init(params, jax.random.key(seed)), params)
        return simulation.diagnose(result.state, params)["energy"], result.status

    energy, status = jax.jit(jax.vmap(run))(mixed, seeds)
    np.testing.assert_array_equal(status, Status.CONVERGED)
    for index in range(3):
        # The same minimum, so the energies agree to round-off.
        assert float(energy[index]) == pytest.approx(float(jax.jit(run)(mixed[index], seeds[index])[0]), rel=1e-12)


def test_neighbor_list_and_all_pairs_relax_to_the_same_crystal(x64):
    listed, all_of_them = relaxed(crystal(method="neighbor_list"))[1], relaxed(crystal())[1]
    for name in ("energy", "pressure"):
        # Sums of the same 300 pairs in another order, at minima found to 1e-12.
        assert float(listed[name]) == pytest.approx(float(all_of_them[name]), rel=1e-11), name


def test_a_list_that_overflows_ends_the_relaxation_with_that_status(x64):
    result, _ = relaxed(crystal(method="neighbor_list", capacity=2))
    assert int(result.status) == Status.BUFFER_OVERFLOW
    assert int(result.iterations) == 1


def test_a_relaxation_with_an_overflow_equals_one_with_a_large_list(x64):
    simulation = crystal(method="neighbor_list", capacity=2)
    larger, result = converge_with_growth(simulation, MAX_STEPS)(simulation.params, jax.random.key(0))
    assert int(result.status) == Status.CONVERGED
    end = larger.diagnose(result.state, simulation.params)
    # The same minimum, to the round-off of 300 pairs.
    assert float(end["energy"]) == pytest.approx(reference_energy(False), rel=1e-12)


@pytest.mark.parametrize("relax_cell", [False, True])
def test_step_keeps_every_dtype_and_exports(relax_cell):
    simulation = crystal(relax_cell=relax_cell)
    state = simulation.init(simulation.params, jax.random.key(0))

    def signature(tree):
        return jax.tree.map(lambda a: (a.shape, a.dtype, a.weak_type), tree)

    stepped = jax.eval_shape(simulation.step, state, simulation.params)
    assert signature(jax.eval_shape(lambda: state)) == signature(stepped)
    assert "custom_call" not in jax.jit(simulation.step).lower(state, simulation.params).as_text()


def test_frames_and_diagnostics_have_their_names(x64):
    simulation = crystal(relax_cell=True)
    _, frames, diagnostics = jax.jit(trajectory(simulation, 10, 5))(simulation.params, jax.random.key(0))
    for name, names in simulation.dimensions.items():
        assert frames[name].ndim == len(names) + 1
    assert list(diagnostics["iteration"]) == [0, 5, 10]
    assert diagnostics["iteration"].dtype == jnp.int32
    box = frames["box"][-1]
    assert bool(jnp.all((frames["position"][-1] >= 0) & (frames["position"][-1] <= box.max())))


@every("dimension", [2, 3])
def test_rigid_motions_are_orthonormal_and_cost_no_energy(x64, dimension):
    position = jax.random.normal(jax.random.key(0), (7, dimension))
    basis, turns = rigid_motions(position, rotations=True, length=1.0)
    gram = jnp.einsum("ina,jna->ij", basis, basis)
    # Gram-Schmidt twice: orthonormal to a few roundings.
    np.testing.assert_allclose(gram, np.eye(dimension * (dimension + 1) // 2), atol=1e-14)
    difference = position[:, None] - position[None, :]
    for motion, turn in zip(basis, turns, strict=True):
        relative = motion[:, None] - motion[None, :]
        np.testing.assert_allclose(relative, difference @ turn, atol=1e-14)
        # A rigid motion changes no distance to first order: sums of two products of order one.
        np.testing.assert_allclose((relative * difference).sum(-1), 0, atol=1e-14)
        np.testing.assert_allclose(projection(basis, motion), motion, atol=1e-14)
