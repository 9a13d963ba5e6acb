"""Averages over a run: the same simulation with running means of what is measured along the way."""

import dataclasses
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.compensated import compensated_sum
from simkit.core.pytree import pytree
from simkit.core.rollout import segment
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.core.status import asked_at_every_step, status_of
from simkit.errors import UserError


@pytree
class AveragedState:
    """A simulation and the means so far.

    Attributes:
        current: the simulation's own state.
        mean: of every sample after the first ``skip``; zero while there is none.
        excess: by how much rounding has made ``mean`` too large, which the next sample takes back (Kahan).
        taken: int32, samples taken, those that were skipped included.
    """

    current: State
    mean: Arrays
    excess: Arrays
    taken: jax.Array


def averaged(
    simulation: Simulation,
    sample: Callable[[State, Params], Arrays],
    *,
    every: int,
    skip: int,
    observe: Callable[[Arrays, Params], Arrays] | None = None,
    diagnose: Callable[[Arrays, Params], Arrays] | None = None,
    dimensions: Mapping[str, tuple[str, ...]] | None = None,
    coordinates: Mapping[str, np.ndarray] | None = None,
) -> Simulation:
    """Return the simulation each of whose steps is ``every`` steps of the given one and then a sample.

    ``mean_n = mean_{n-1} + (sample_n - mean_{n-1}) / n``, over the samples after the first ``skip``. What rounding
    takes from one update is added to the next, so that no number of samples is too large for the working precision.
    The means are as differentiable as the samples. Until there is a sample that counts, what is shown of them is NaN:
    the mean of none.

    Args:
        simulation: one that runs a fixed number of steps.
        sample: ``(state, params) -> {name: float array}`` of the given simulation.
        every: its steps per sample, at least 1.
        skip: samples to leave out at the start, while the simulation settles.
        observe: ``(mean, params) -> arrays``, what else a frame stores.
        diagnose: ``(mean, params) -> scalars``, further diagnostics.
        dimensions: the dimension names of what ``observe`` returns.
        coordinates: the values of those dimensions.

    Raises:
        UserError: if ``every`` or ``skip`` is out of its range.
    """
    if every < 1:
        raise UserError(f"every = {every}; at least 1 step goes by between samples, 10 for instance")
    if skip < 0:
        raise UserError(f"skip = {skip} is negative; choose 0 to keep every sample")
    advance, status = segment(simulation, every), status_of(simulation)

    def init(params: Params, key: jax.Array) -> AveragedState:
        current = simulation.init(params, key)
        nothing = jax.tree.map(jnp.zeros_like, sample(current, params))
        return AveragedState(current=current, mean=nothing, excess=nothing, taken=jnp.int32(0))

    def step(state: AveragedState, params: Params) -> AveragedState:
        return sampled(state, advance(state.current, params), params)

    def step_members(states: AveragedState, params: Params) -> AveragedState:
        # Imported where members are: a run of one has no use for it.
        from simkit.core.ensemble import ensemble

        together = segment(ensemble(simulation, simulation.params), every)
        return jax.vmap(sampled)(states, together(states.current, params), params)

    def sampled(state: AveragedState, current: State, params: Params) -> AveragedState:
        number = state.taken + 1 - skip

        def change(mean: jax.Array, value: jax.Array) -> jax.Array:
            weight = jnp.where(number > 0, 1 / jnp.maximum(number, 1).astype(mean.dtype), 0)
            return weight * (value - mean)

        changes = jax.tree.map(change, state.mean, sample(current, params))
        mean, excess = compensated_sum(state.mean, state.excess, changes)
        return AveragedState(current=current, mean=mean, excess=excess, taken=state.taken + 1)

    def shown(of: Callable[[Arrays, Params], Arrays] | None, state: AveragedState, params: Params) -> Arrays:
        found = {} if of is None else of(state.mean, params)
        return jax.tree.map(lambda value: jnp.where(state.taken > skip, value, jnp.nan), found)

    def observed(state: AveragedState, params: Params) -> Arrays:
        return simulation.observe(state.current, params) | shown(observe, state, params)

    def diagnosed(state: AveragedState, params: Params) -> Arrays:
        return simulation.diagnose(state.current, params) | shown(diagnose, state, params)

    def sized_like(state: AveragedState) -> Simulation:
        return averaged(simulation.with_buffers_of(state.current), sample, every=every, skip=skip)

    return dataclasses.replace(
        simulation,
        init=init,
        step=step,
        observe=observed,
        diagnose=diagnosed,
        status=lambda state, params: status(state.current, params),
        watched=asked_at_every_step(simulation),
        step_members=simulation.step_members and step_members,
        sized_like=simulation.sized_like and sized_like,
        dimensions={**simulation.dimensions, **(dimensions or {})},
        coordinates={**simulation.coordinates, **(coordinates or {})},
    )
