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
from simkit.core.pytrees import pytree
from simkit.core.rollout import segment
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import status_of
from simkit.errors import UserError, known

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
    made = sampling(simulation, quantity, wrt, steps=steps, every=every, skip=skip)
    advance = segment(made.simulation, made.steps)

    def run(params: Params, key: jax.Array) -> tuple[EnsembleDerivative, State, jax.Array]:
        last = advance(made.simulation.init(params, key), params)
        return made.result(last, params), last.state, status_of(simulation)(last.state, params)

    return compiled(run)


@pytree
class Sampled:
    """State of a simulation, and means over its samples.

    Attributes:
        state: the state.
        count: samples so far; below zero before the first.
        origin: A, (), and dA/dp and g, (P,), of the first sample: means of products of large numbers would lose digits.
        means: of the batches: A, (B,), dA/dp, g and A g, (B, P), where A and g are deviations from the first.
    """

    state: State
    count: jax.Array
    origin: tuple[jax.Array, jax.Array, jax.Array]
    means: tuple[jax.Array, jax.Array, jax.Array, jax.Array]


class Sampling(NamedTuple):
    """A simulation of which each step is several of another and a sample.

    Attributes:
        simulation: with states `Sampled`.
        steps: number of its steps.
        result: ``(last state, params) -> EnsembleDerivative``, NaN before the last sample.
    """

    simulation: Simulation
    steps: int
    result: Callable[[Sampled, Params], EnsembleDerivative]


def sampling(
    simulation: Simulation, quantity: str, wrt: str | Sequence[str], *, steps: int, every: int, skip: int
) -> Sampling:
    """Return the samples of `ensemble_derivative` as a simulation, which runs in pieces.

    Args:
        simulation: as for `ensemble_derivative`, as are all others.
        quantity: name of a diagnostic.
        wrt: paths of parameters.
        steps: of the run.
        every: steps between samples.
        skip: steps before the first sample.

    Raises:
        UserError: as `ensemble_derivative` does.
    """
    weight = weight_of(simulation)
    if isinstance(weight, str):
        raise UserError(f"there is no derivative by fluctuations: {weight}; take the one through time")
    known(quantity, simulation.shapes.diagnosed, "quantity")
    names = paths.selected(wrt, paths.leaves(simulation.params))
    for what in jax.eval_shape(weight.fixed, simulation.params):
        idle = without_effect(lambda params, what=what: weight.fixed(params)[what], simulation.params)
        if moving := [name for name in names if name not in idle]:
            raise UserError(f"'{moving[0]}' changes {what}, whose effect on an average fluctuations do not tell")
    each = (steps - skip) // every // BATCHES
    if each < 2:
        raise UserError(
            f"steps = {steps}, skip = {skip}, every = {every} leave fewer than {2 * BATCHES} samples; take more steps"
        )
    # What is left over is skipped, too; the number of all steps is a multiple of the batches.
    before = steps - every * each * BATCHES
    skipped = before // every // BATCHES * BATCHES

    def sample(state: State, params: Params) -> tuple[jax.Array, jax.Array, jax.Array]:
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

    def init(params: Params, key: jax.Array) -> Sampled:
        state = segment(simulation, before - skipped * every)(simulation.init(params, key), params)
        origin = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(sample, state, params))
        value, slope, score = (jnp.zeros((BATCHES, *x.shape), x.dtype) for x in origin)
        means = value, slope, score, jnp.zeros_like(score)
        return Sampled(state=state, count=jnp.int32(-skipped), origin=origin, means=means)

    def step(sampled: Sampled, params: Params) -> Sampled:
        state = advance(sampled.state, params)

        def added() -> tuple[Any, Any]:
            new = sample(state, params)
            origin = jax.tree.map(lambda x, first: jnp.where(sampled.count == 0, x, first), new, sampled.origin)
            value, score = new[0] - origin[0], new[2] - origin[2]
            terms, batch = (value, new[1], score, value * score), sampled.count // each
            return origin, jax.tree.map(lambda mean, x: mean.at[batch].add(x / each), sampled.means, terms)

        origin, means = jax.lax.cond(sampled.count >= 0, added, lambda: (sampled.origin, sampled.means))
        return Sampled(state=state, count=sampled.count + 1, origin=origin, means=means)

    def result(last: Sampled, params: Params) -> EnsembleDerivative:
        means, origin = last.means, last.origin
        means = jax.tree.map(lambda mean: jnp.where(last.count >= each * BATCHES, mean, jnp.nan), means)
        value, value_error = _jackknife(lambda value, slope, score, both: value, means)
        slope, error = _jackknife(lambda value, slope, score, both: slope + both - value * score, means)
        unravel = ravel_pytree({name: paths.leaves(params)[name] for name in names})[1]
        away = means[0] - means[0].mean()
        return EnsembleDerivative(
            value=origin[0] + value,
            value_error=value_error,
            derivative=unravel(slope),
            error=unravel(error),
            correlation=jnp.sum(away[1:] * away[:-1]) / jnp.sum(away**2),
        )

    def sized_like(sampled: Sampled) -> Simulation:
        resized = simulation.with_buffers_of(sampled.state)
        return sampling(resized, quantity, wrt, steps=steps, every=every, skip=skip).simulation

    inner = status_of(simulation)
    made = Simulation(
        init=init,
        step=step,
        observe=lambda sampled, params: {},
        diagnose=lambda sampled, params: {"samples": jnp.maximum(sampled.count, 0)},
        params=simulation.params,
        status=lambda sampled, params: inner(sampled.state, params),
        sized_like=simulation.sized_like and sized_like,
    )
    return Sampling(made, skipped + each * BATCHES, result)


def _jackknife(estimate: Callable[..., jax.Array], means: Any) -> tuple[jax.Array, jax.Array]:
    """Return an estimate without its bias of first order, and its standard error, from the means of batches."""
    whole_run = jax.tree.map(lambda each: each.mean(axis=0), means)
    others = jax.tree.map(lambda mean, each: mean + (mean - each) / (BATCHES - 1), whole_run, means)
    without = jax.vmap(estimate)(*others)
    center = without.mean(axis=0)
    spread = jnp.sqrt((BATCHES - 1) / BATCHES * jnp.sum((without - center) ** 2, axis=0))
    return BATCHES * estimate(*whole_run) - (BATCHES - 1) * center, spread
