"""Derivatives of averages over a stationary distribution, by fluctuations instead of through the steps.

    d<A>/dp = <dA/dp> + cov(A, d ln w / dp)

for a distribution of states of weight ``w(state, p)``, such as ``exp(-U/T)``: no derivative passes through time, so
that chaos does no harm. Error bars are those of a jackknife over batches of consecutive samples, which are longer than
the correlations of the samples.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from simkit.core import paths
from simkit.core.compilation import compiled
from simkit.core.dependence import without_effect
from simkit.core.objective import diagnostic
from simkit.core.pytrees import pytree
from simkit.core.rollout import segment
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import status_of
from simkit.errors import UserError

# Batches of the jackknife; 95 % of estimates are within this many of its standard errors, Student's t for 19 degrees of
# freedom.
BATCHES, WITHIN_95 = 20, 2.093
# Correlation of neighboring batches above which they are too short: twice its standard error without correlations.
CORRELATED = 2 / BATCHES**0.5


class Weight(NamedTuple):
    """Stationary distribution of the states of a simulation.

    Attributes:
        log: ``(state, params) -> `` logarithm of the density of states, up to a constant.
        carried: ``(state, params) -> state``, the state itself, with derivatives by the params that move it along:
            particles move with a cell that the params give.
        fixed: ``params -> arrays`` that a derivative must leave unchanged, by what they are, since the weight does not
            tell their effect.
        caution: what the result depends on besides, in one line; empty for nothing.
    """

    log: Callable[[State, Params], jax.Array]
    carried: Callable[[State, Params], State] = lambda state, params: state
    fixed: Callable[[Params], Mapping[str, Any]] = lambda params: {}
    caution: str = ""


def weighted(step: Callable[[State, Params], State], weight: Weight | str) -> Callable[[State, Params], State]:
    """Mark a step with the distribution that it samples.

    Args:
        step: ``(state, params) -> state``.
        weight: the distribution, or why there is none.
    """

    def marked(state: State, params: Params) -> State:
        return step(state, params)

    marked.weight = weight  # type: ignore[attr-defined]
    return marked


def weight_of(simulation: Simulation) -> Weight | str:
    """Return the distribution that a simulation samples, see `weighted`, or why there is none."""
    unknown = "it does not declare the distribution that it samples, as molecular dynamics in a bath does"
    return getattr(getattr(simulation.step, "function", simulation.step), "weight", unknown)


@pytree
class EnsembleDerivative:
    """Average of a quantity over a stationary distribution, and its derivatives, with their standard errors.

    Attributes:
        value: the average.
        value_error: its standard error.
        derivative: ``{path: array}``.
        error: standard errors of the derivatives, ``{path: array}``.
        correlation: of the means of neighboring batches; far above zero where batches are shorter than the correlations
            of the samples, and errors too small.
    """

    value: jax.Array
    value_error: jax.Array
    derivative: Arrays
    error: Arrays
    correlation: jax.Array


@arguments(
    steps=whole("steps of the run", low=1),
    every=whole("steps between samples", low=1),
    skip=whole("steps before the first sample"),
)
def ensemble_derivative(
    simulation: Simulation, quantity: str, wrt: str | Sequence[str], *, steps: int, every: int, skip: int
) -> Callable[[Params, jax.Array], tuple[EnsembleDerivative, State, jax.Array]]:
    """Return ``(params, key) -> (result, state, status)``: an average and its derivatives from the samples of one run.

        d<A>/dp = <dA/dp> + <A g> - <A><g>,    g = d ln w / dp

    of a quantity A. Of a canonical distribution, ``g = -dU/dp / T``, by temperature ``U / T^2``; at constant pressure
    also ``-V / T`` by the pressure. Bias and error are those of the jackknife over 20 batches of consecutive samples.

    Args:
        simulation: one with a `Weight`.
        quantity: name of a diagnostic.
        wrt: paths of parameters; a branch stands for all below it.
        steps: of the run.
        every: steps between samples.
        skip: steps before the first sample, until the distribution is stationary.

    Raises:
        UserError: if the simulation declares no distribution, a name is unknown, there are fewer than 40 samples, or
            the weight does not tell the effect of a parameter.

    Reference: Wang, Martinez, Pande, J. Phys. Chem. Lett. 5, 1885 (2014), doi:10.1021/jz500737m (fluctuation
    formulas); Kuensch, Ann. Stat. 17, 1217 (1989), doi:10.1214/aos/1176347265 (jackknife of dependent samples).
    """
    weight = weight_of(simulation)
    each = (steps - skip) // every // BATCHES
    problem = f"there is no derivative by fluctuations: {weight}" if isinstance(weight, str) else ""
    if each < 2:
        problem = f"steps = {steps}, skip = {skip}, every = {every} leave fewer than {2 * BATCHES} samples; take more "
        problem += "steps"
    if isinstance(weight, str) or problem:
        raise UserError(problem)
    diagnostic(simulation.shapes.diagnosed, quantity)
    names = paths.selected(wrt, paths.leaves(simulation.params))
    for what in jax.eval_shape(weight.fixed, simulation.params):
        idle = without_effect(lambda params, what=what: weight.fixed(params)[what], simulation.params)
        if moving := [name for name in names if name not in idle]:
            raise UserError(f"'{moving[0]}' changes {what}, whose effect on an average fluctuations do not tell")
    # What is left over is skipped, too.
    before = steps - every * each * BATCHES

    def sampled(state: State, params: Params) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return A, (), and dA/dp and g as vectors, (P,)."""
        chosen = {name: paths.leaves(params)[name] for name in names}

        def at(chosen: Arrays) -> tuple[jax.Array, jax.Array]:
            there = paths.replaced(params, chosen)
            moved = weight.carried(state, there)
            return simulation.diagnose(moved, there)[quantity], weight.log(moved, there)

        (value, log), back = jax.vjp(at, chosen)
        slopes = (
            back((jnp.ones_like(value), jnp.zeros_like(log)))[0],
            back((jnp.zeros_like(value), jnp.ones_like(log)))[0],
        )
        return value, ravel_pytree(slopes[0])[0], ravel_pytree(slopes[1])[0]

    advance = segment(simulation, every)

    def run(params: Params, key: jax.Array) -> tuple[EnsembleDerivative, State, jax.Array]:
        state = segment(simulation, before)(simulation.init(params, key), params)
        # Sums of deviations from one sample: means of products of large numbers would lose digits.
        origin = sampled(state, params)

        def sample(carry: tuple[State, Any], _: None) -> tuple[tuple[State, Any], None]:
            state, sums = carry
            state = advance(state, params)
            value, slope, score = sampled(state, params)
            value, score = value - origin[0], score - origin[2]
            terms = value, slope, score, value * score
            return (state, jax.tree.map(jnp.add, sums, terms)), None

        def batch(state: State, _: None) -> tuple[State, Any]:
            zeros = jnp.zeros_like(origin[0]), *(jnp.zeros_like(origin[1]),) * 3
            (state, sums), _ = jax.lax.scan(sample, (state, zeros), None, each)
            return state, jax.tree.map(lambda total: total / each, sums)

        state, means = jax.lax.scan(batch, state, None, BATCHES)
        value, value_error = _jackknife(lambda value, slope, score, both: value, means)
        slope, error = _jackknife(lambda value, slope, score, both: slope + both - value * score, means)
        unravel = ravel_pytree({name: paths.leaves(params)[name] for name in names})[1]
        away = means[0] - means[0].mean()
        result = EnsembleDerivative(
            value=origin[0] + value,
            value_error=value_error,
            derivative=unravel(slope),
            error=unravel(error),
            correlation=jnp.sum(away[1:] * away[:-1]) / jnp.sum(away**2),
        )
        return result, state, status_of(simulation)(state, params)

    return compiled(run)


def _jackknife(estimate: Callable[..., jax.Array], means: Any) -> tuple[jax.Array, jax.Array]:
    """Return an estimate without its bias of first order, and its standard error, from the means of batches."""
    whole_run = jax.tree.map(lambda each: each.mean(axis=0), means)
    others = jax.tree.map(lambda mean, each: mean + (mean - each) / (BATCHES - 1), whole_run, means)
    without = jax.vmap(estimate)(*others)
    center = without.mean(axis=0)
    spread = jnp.sqrt((BATCHES - 1) / BATCHES * jnp.sum((without - center) ** 2, axis=0))
    return BATCHES * estimate(*whole_run) - (BATCHES - 1) * center, spread
