"""Pair energy learned from the structure of a liquid: inverse Monte Carlo, in the weights of splines."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.rollout import segment
from simkit.core.settings import arguments, number, whole
from simkit.core.simulation import Arrays, Params, Simulation, as_arrays, described
from simkit.core.status import Status, is_finite, status_of
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.dynamics.langevin import langevin
from simkit.molecular.dynamics.method import DynamicsState
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.splines import NEAREST, basis, spline_energy, sum_over_pairs
from simkit.molecular.neighbors.pairs import all_pairs
from simkit.molecular.potentials import lennard_jones, switched
from simkit.molecular.structures import lattices

DIMENSION = 2
# Largest change of a weight in one iteration, in units of the temperature, and iterations after which it halves.
LARGEST, HALVED = 1.0, 4.0
POINTS = 81

WEIGHTS = "of the splines before learning, from near to far; they may come from another run"
PARAMETERS = {
    "temperature": Parameter(1.0, POSITIVE, "energy", "temperature of the liquid, and of the one that learns"),
    "density": Parameter(0.6, POSITIVE, "1 / length^2", "particles per area"),
    "epsilon": Parameter(1.0, POSITIVE, "energy", "depth of the energy to be found, that of Lennard-Jones"),
    "sigma": Parameter(1.0, POSITIVE, "length", "distance at which it crosses zero"),
    "mass": Parameter(1.0, POSITIVE, "mass", "mass of a particle"),
    "friction": Parameter(1.0, NOT_NEGATIVE, "1 / time", "friction of the bath"),
    "time_step": Parameter(0.01, POSITIVE, "time", "time step"),
}


@pytree
class LearningState:
    """State of the learning.

    Attributes:
        iteration: number of changes of the weights, int32.
        weights: of the splines, energy, (K,).
        moving: state of the liquid under the learned energy.
        target: mean splines of all pairs per particle in the liquid to be imitated, (K,).
        mean: the same under the weights before the last change, (K,).
        held: positions that served for nothing else, of the liquid to be imitated, length, (H, N, d).
    """

    iteration: jax.Array
    weights: jax.Array
    moving: DynamicsState
    target: jax.Array
    mean: jax.Array
    held: jax.Array


def solved(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """Return the solution of a few linear equations by elimination, which is exported as it is.

    Args:
        matrix: symmetric and positive definite, (K, K).
        right: right-hand side, (K,).

    Example:
        >>> from simkit.molecular.systems.learned_pair import solved
        >>> solved(jnp.array([[2.0, 1.0], [1.0, 3.0]]), jnp.array([3.0, 4.0])).tolist()
        [1.0, 1.0]
    """

    def eliminate(index: jax.Array, rows: jax.Array) -> jax.Array:
        pivot = rows[index] / rows[index, index]
        return (rows - jnp.outer(rows[:, index], pivot)).at[index].set(pivot)

    rows = jnp.concatenate([matrix, right[:, None]], axis=1)
    return jax.lax.fori_loop(0, len(right), eliminate, rows)[:, -1]


@described(
    misfit=("1", "relative difference of the splines of all pairs from those of the liquid"),
    force_error=("1", "root mean square error of forces on configurations not learned from, relative"),
    well_depth=("energy", "depth of the learned energy"),
    pair_energy=("energy", "energy of a pair: learned, and that to be found"),
    distance=("length", "distance of a pair"),
    weights=("energy", "weights of the splines"),
    iteration=("1", "changes of the weights"),
)
@arguments(
    side=whole("particles along each side of the square lattice at the start", low=4, high=64),
    knots=whole("number of splines", low=4, high=64),
    reach=number("distance at which both energies end", bounds=POSITIVE),
    samples=whole("samples of an iteration", low=2),
    target_samples=whole("samples of the liquid to be imitated", low=2),
    sample_steps=whole("time steps between samples", low=1),
    settle=whole("samples left out at the start of an iteration", low=0),
    held_out=whole("configurations on which forces are compared", low=1),
    ridge=number("share of the mean variance that is added to that of each spline", bounds=(1e-6, 1.0)),
)
def learned_pair(
    *,
    side: int = 8,
    knots: int = 16,
    reach: float = 2.5,
    samples: int = 300,
    target_samples: int = 6000,
    sample_steps: int = 10,
    settle: int = 40,
    held_out: int = 8,
    ridge: float = 1e-3,
) -> Simulation:
    """Return the recovery of the pair energy of a liquid from its structure alone.

        U(r) = core(r) + sum_k w_k B_k(r),    change of w = (cov(B_k, B_l) / T)^-1 (<B_k> - target_k)

    B_k are cubic B-splines summed over all pairs, whose means are integrals over the radial distribution function g(r).
    Each step runs the liquid under the learned energy, and changes the weights by Newton's method for equal means:
    ``d<B_k>/dw_l = -cov(B_k, B_l) / T``, the derivative by fluctuations. For pair energies the solution is unique but
    for a constant. The target is that of Lennard-Jones particles in the plane, with a smooth end at the reach; the
    force error is that on later configurations of theirs, which served for nothing else.

    Args:
        side: N = side^2 particles.
        knots: number of splines.
        reach: at most half the side of the periodic box.
        samples: of an iteration.
        target_samples: of the liquid to be imitated.
        sample_steps: time steps between samples.
        settle: samples left out at the start of an iteration, and 20 times as many of the liquid to be imitated.
        held_out: configurations for the force error.
        ridge: share of the mean variance of the splines that is added to that of each, without which weights at
            distances that no pair has would be undetermined; a larger one is steadier and slower.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> learning = molecular.learned_pair(side=6, knots=12)
        >>> learning.shapes.observed["weights"].shape
        (12,)

    Reference: Lyubartsev and Laaksonen, Phys. Rev. E 52, 3730 (1995), doi:10.1103/PhysRevE.52.3730; Henderson, Phys.
    Lett. A 49, 197 (1974), doi:10.1016/0375-9601(74)90847-0 (uniqueness).
    """
    sites, count = np.asarray(lattices.square((side, side)).position) / side, side * side
    lennard_jones_until_reach = switched(lennard_jones())
    grid = np.linspace(NEAREST * reach, reach, POINTS)

    learned = spline_energy(reach)

    def true(distance: jax.Array, values: Mapping[str, jax.Array]) -> jax.Array:
        ends = {name: jnp.asarray(end, distance.dtype) for name, end in (("cutoff", reach), ("switch_on", 0.8 * reach))}
        return lennard_jones_until_reach.energy(distance, **values, **ends)

    def with_pair(params: Params, values: Arrays) -> Params:
        """Return the params of a liquid."""
        bath = {name: params[name] for name in ("temperature", "mass", "friction", "time_step")}
        return {"pair": values, "edge": jnp.sqrt(count / params["density"]), **bath}

    def of_learned(params: Params, weights: jax.Array) -> Params:
        return with_pair(params, {"weights": weights, "repulsion": params["temperature"]})

    def of_true(params: Params) -> Params:
        return with_pair(params, {name: params[name] for name in ("epsilon", "sigma")})

    def box(inner: Params) -> jax.Array:
        return jnp.broadcast_to(inner["edge"], (DIMENSION,))

    def liquid(interaction: Interaction, inner: Params) -> Simulation:
        def start(inner: Params, key: jax.Array) -> jax.Array:
            return jnp.asarray(sites, inner["edge"].dtype) * inner["edge"]

        return langevin(interaction, start, params=inner, cell=box)

    parameters = PARAMETERS | {"weights": Parameter(np.zeros(knots), (-100.0, 100.0), "energy", WEIGHTS)}
    numbers = as_arrays({name: parameter.default for name, parameter in parameters.items()})
    imitated, imitating = (sum_over_pairs(energy, reach, "pair", count) for energy in (true, learned))
    original = liquid(imitated, of_true(numbers))
    copy = liquid(imitating, of_learned(numbers, numbers["weights"]))

    def all_splines(position: jax.Array, inner: Params) -> jax.Array:
        """Return the splines summed over all pairs, (K,)."""
        near = all_pairs(position, spaces.of_cell(box(inner), DIMENSION), inner["edge"] * 0 + reach)
        each = basis(jnp.where(near.is_pair, near.distance, 2 * reach), knots, reach)
        return each.sum(axis=(0, 1)) / 2

    def sampled(
        simulation: Simulation, state: DynamicsState, inner: Params, number: int, about: jax.Array
    ) -> tuple[DynamicsState, jax.Array, jax.Array]:
        """Return the state after some samples, their mean from ``about``, (K,), and their covariance, (K, K)."""
        advance = segment(simulation, sample_steps)

        def sample(carry: tuple[DynamicsState, Any], _: None) -> tuple[tuple[DynamicsState, Any], None]:
            state, (first, second) = carry
            state = advance(state, inner)
            away = all_splines(state.position, inner) - about
            return (state, (first + away / number, second + jnp.outer(away, away) / number)), None

        nothing = jnp.zeros_like(about), jnp.zeros((knots, knots), about.dtype)
        (state, (mean, square)), _ = jax.lax.scan(sample, (state, nothing), None, number)
        return state, mean, square - jnp.outer(mean, mean)

    def init(params: Params, key: jax.Array) -> LearningState:
        inner, keys = of_true(params), jax.random.split(key)
        zero = jnp.zeros(knots, params["density"].dtype)
        state = segment(original, 20 * settle * sample_steps)(original.init(inner, keys[0]), inner)
        state, target, _ = sampled(original, state, inner, target_samples, zero)
        advance = segment(original, 20 * sample_steps)

        def later(state: DynamicsState, _: None) -> tuple[DynamicsState, jax.Array]:
            state = advance(state, inner)
            return state, state.position

        _, held = jax.lax.scan(later, state, None, held_out)
        weights = params["weights"]
        moving = copy.init(of_learned(params, weights), keys[1])
        return LearningState(
            iteration=jnp.int32(0), weights=weights, moving=moving, target=target, mean=zero * jnp.nan, held=held
        )

    def step(state: LearningState, params: Params) -> LearningState:
        inner = of_learned(params, state.weights)
        moving = segment(copy, settle * sample_steps)(state.moving, inner)
        moving, excess, covariance = sampled(copy, moving, inner, samples, state.target)
        slope = covariance / params["temperature"]
        least = ridge * jnp.trace(slope) / knots
        change = solved(slope + least * jnp.eye(knots, dtype=slope.dtype), excess)
        largest = jnp.abs(change).max() / (LARGEST * params["temperature"])
        change = change / jnp.maximum(largest, 1) / (1 + state.iteration / HALVED)
        return dataclasses.replace(
            state,
            iteration=state.iteration + 1,
            weights=state.weights + change,
            moving=moving,
            mean=state.target + excess,
        )

    def force_error(state: LearningState, params: Params) -> jax.Array:
        def squares(position: jax.Array) -> jax.Array:
            forces = []
            for interaction, inner in ((imitating, of_learned(params, state.weights)), (imitated, of_true(params))):
                at = position, box(inner), inner
                forces.append(interaction.force(*at, interaction.prepare(*at)))
            return jnp.stack([jnp.sum((forces[0] - forces[1]) ** 2), jnp.sum(forces[1] ** 2)])

        wrong, all_of_them = jax.lax.map(squares, state.held).sum(axis=0)
        return jnp.sqrt(wrong / all_of_them)

    def curve(state: LearningState, params: Params) -> jax.Array:
        """Return the learned energy and the true one, (points, 2)."""
        distance = jnp.asarray(grid, state.weights.dtype)
        pairs = learned(distance, of_learned(params, state.weights)["pair"]), true(distance, of_true(params)["pair"])
        return jnp.stack(pairs, axis=1)

    def diagnose(state: LearningState, params: Params) -> Arrays:
        return {
            "iteration": state.iteration,
            "misfit": jnp.linalg.norm(state.mean - state.target) / jnp.linalg.norm(state.target),
            "force_error": force_error(state, params),
            "well_depth": -curve(state, params)[:, 0].min(),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        if 2 * reach > (width := float(jnp.sqrt(count / params["density"]))):
            problem = f"reach = {reach:g} is beyond half the box, which is {width:.4g} wide"
            raise UserError(f"{problem}; lower it or the density, or raise side")

    inner_status = status_of(copy)
    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {"pair_energy": curve(state, params), "weights": state.weights},
        diagnose=diagnose,
        params=parameters,
        status=lambda state, params: jnp.where(
            is_finite(state.weights),
            inner_status(state.moving, of_learned(params, state.weights)),
            jnp.int32(Status.NON_FINITE),
        ),
        check=check,
        dimensions={"pair_energy": ("distance", "energy_of"), "weights": ("spline",)},
        coordinates={"distance": grid, "pair_energy_names": np.array(["learned", "of the liquid"])},
    )
