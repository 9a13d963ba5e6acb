"""Implicit derivatives in external fields that break the symmetry of some rigid motions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import combined, user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import lennard_jones, morse, soft_sphere
from simkit.molecular.relaxation import relaxation
from simkit.molecular.relaxation.equilibrium import zero_modes

MAX_STEPS = 5000


def floats(**values):
    return {name: jnp.asarray(value, dtype=float) for name, value in values.items()}


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
        far2, far1, next1, next2 = (run(values + k * moved, state)[0] for k in (-2, -1, 1, 2))
        difference = (8 * (next1 - far1) - (next2 - far2)) / (12 * step)
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


def test_a_batch_of_traps_in_single_precision():
    interaction = combined(cohesion(), user_energy(lambda x, cell, p: p["k"] / 2 * jnp.sum((x - p["c"]) ** 2)))
    simulation = relax(interaction, blob(7, 3), floats(epsilon=1.0, sigma=1.0, c=0.2, k=0.5), tolerance=1e-3)

    def center(c, k):
        params = {**simulation.params, "c": c, "k": k}
        result = converge(simulation, MAX_STEPS)(simulation.init(params, jax.random.key(0)), params)
        return result.state.descent.position.mean()

    strength = jnp.array([0.0, 0.05, 0.5, 5.0])
    slope = jax.jit(jax.vmap(jax.grad(center), in_axes=(None, 0)))(jnp.float32(0.2), strength)
    # The trap carries the center along whatever its strength; without one nothing does.
    np.testing.assert_allclose(slope, [0, 1, 1, 1], atol=1e-3)


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


def test_a_cluster_in_a_large_cell_has_rotations_as_zero_modes(x64):
    # A cluster in a cell far larger than itself.
    interaction = pair_interaction(
        morse(), cutoff=lambda p: 4.0 * p["sigma"], parameters=["epsilon", "sigma", "rho"], method="all_pairs"
    )
    params = floats(epsilon=1.0, sigma=1.0, rho=6.0)
    position = jnp.asarray(blob(5, 2) + 10.0)
    assert len(free_of(interaction, position, params, cell=jnp.array([20.0, 20.0]))) == 3


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
