"""CMA-ES: a normal distribution that moves, widens and turns toward the better of its samples."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from simkit.core.bounded import Bounds
from simkit.core.optimizers.methods import method
from simkit.core.optimizers.optimizer import Iterate, Optimizer, Problem
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Simulation, State
from simkit.errors import package

# Folded into the random key of the objective, so that the search draws other numbers than the runs.
STREAM = 1


@pytree
class Search:
    """The state of the search.

    Attributes:
        distribution: mean, covariance and evolution paths, a state of evosax.
        key: random key of the next samples.
        range: largest minus smallest value of the last samples.
        width: largest standard deviation, relative to ``max(|mean|, 1)``.
    """

    distribution: Any
    key: jax.Array
    range: jax.Array
    width: jax.Array


@method(evaluates="values")
def cma_es(*, numbers: int, tolerance: float) -> Optimizer:
    """Return the method CMA-ES, for objectives without useful derivatives: jumps, counts, noise.

    An update evaluates 4 + floor(3 ln n) samples of n numbers as one batch; those that are not finite count as the
    worst. The first distribution has a standard deviation of 1 in unbounded coordinates around the start. It has
    converged when no better value was found in 10 + 30 n / samples updates, and the values of the samples differ by at
    most ``tolerance**2 (1 + |value|)``, or by their rounding.

    Args:
        numbers: n.
        tolerance: see above; 1e-6 gives 1e-12, as published.

    Raises:
        UserError: if the package evosax is not installed.

    Reference: Hansen, The CMA evolution strategy: a tutorial, arXiv:1604.00772.
    """
    library = package("evosax.algorithms.distribution_based.cma_es", "cma_es", "simkit-physics[evolution]")
    samples = 4 + math.floor(3 * math.log(numbers))
    patience = 10 + math.ceil(30 * numbers / samples)
    algorithm = library.CMA_ES(samples, jnp.zeros(numbers))
    settings = algorithm.default_params

    def begin(problem: Problem, position: Arrays) -> Iterate:
        flat, _ = ravel_pytree(position)
        key = jax.random.fold_in(problem.key, STREAM)
        distribution = algorithm.init(key, flat, settings)
        infinite = jnp.asarray(jnp.inf, flat.dtype)
        memory = Search(distribution=distribution, key=key, range=infinite, width=infinite)
        return Iterate(position=position, value=problem.value(position), gradient={}, memory=memory)

    def advance(problem: Problem, iterate: Iterate) -> Iterate:
        flat, unravel = ravel_pytree(iterate.position)
        memory: Search = iterate.memory
        key, ask_key, tell_key = jax.random.split(memory.key, 3)
        population, distribution = algorithm.ask(ask_key, memory.distribution, settings)
        population = population.astype(flat.dtype)
        values = jax.vmap(lambda z: problem.value(unravel(z)))(population)
        values = jnp.where(jnp.isfinite(values), values, jnp.inf)
        distribution, _ = algorithm.tell(tell_key, population, values, distribution, settings)
        best = jnp.argmin(values)
        deviations = distribution.std * jnp.sqrt(jnp.diag(distribution.C))
        width = jnp.max(deviations / jnp.maximum(jnp.abs(distribution.mean), 1))
        memory = Search(distribution=distribution, key=key, range=jnp.max(values) - values[best], width=width)
        return Iterate(position=unravel(population[best]), value=values[best], gradient={}, memory=memory)

    def converged(iterate: Iterate, idle: jax.Array, bounds: Bounds) -> jax.Array:
        rounding = 10 * jnp.finfo(iterate.value.dtype).eps
        allowed = jnp.maximum(tolerance**2, rounding) * (1 + jnp.abs(iterate.value))
        return (idle >= patience) & (iterate.memory.range <= allowed)

    def stalled(iterate: Iterate, idle: jax.Array) -> jax.Array:
        return iterate.memory.width < jnp.finfo(iterate.value.dtype).eps

    def diagnose(iterate: Iterate) -> Arrays:
        return {"search_width": iterate.memory.width}

    return Optimizer(begin, advance, converged, stalled, diagnose, improvement=tolerance**2)


def batched_by_members(simulation: Simulation) -> Simulation:
    """Return a simulation of which `jax.vmap` takes ``step_members`` where it has one; without derivatives.

    Args:
        simulation: any.
    """
    together = simulation.step_members
    if together is None:
        return simulation
    step = jax.custom_batching.custom_vmap(simulation.step)

    @step.def_vmap
    def of_members(count: int, batched: Any, state: State, params: Any) -> tuple[State, Any]:
        def spread(is_batched: bool, leaf: jax.Array) -> jax.Array:
            return leaf if is_batched else jnp.broadcast_to(leaf, (count, *leaf.shape))

        stepped = together(*jax.tree.map(spread, tuple(batched), (state, params)))
        return stepped, jax.tree.map(lambda _: True, stepped)

    return dataclasses.replace(simulation, step=step, step_members=None)
