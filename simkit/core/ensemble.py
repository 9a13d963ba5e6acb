"""Ensembles: many members as one simulation."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import as_often, checks_every_step, status_of, stops
from simkit.errors import UserError


def ensemble(simulation: Simulation, over: Collection[str] = ()) -> Simulation:
    """Return the simulation whose state is a batch of states of ``simulation``.

    It uses ``step_members`` where the simulation has one, which is faster than ``jax.vmap`` of ``step``. ``init`` takes
    one key per member; parameters in ``over`` have a leading member axis, the others are shared. It runs, checkpoints,
    resumes and differentiates like any `Simulation`. A member whose status stops it keeps its state; the ensemble stops
    when all members have stopped; ``status`` returns one code per member.

    Args:
        simulation: the simulation of one member.
        over: paths of the parameters that differ between members; a branch stands for all below it.

    Raises:
        UserError: if a name is not a parameter, or ``init`` is given a single key.

    Example:
        >>> balls = simkit.ensemble(rigid.bouncing_ball(), over=["launch_speed"])
        >>> params = balls.params | {"launch_speed": jnp.array([2.0, 4.0])}
        >>> states = balls.init(params, jax.random.split(jax.random.key(0), 2))
        >>> print(balls.diagnose(simkit.segment(balls, 40)(states, params), params)["position_x"])
        [0.3999999 0.7999998]
    """
    differing = paths.selected(over, paths.leaves(simulation.params))
    axes = paths.axes(simulation.params, differing)

    def batched[**P](function: Callable[P, Any]) -> Callable[P, Any]:
        return jax.vmap(function, in_axes=(0, axes))

    def init(params: Params, keys: jax.Array) -> State:
        if jnp.ndim(keys) == 0:
            raise UserError(
                "an ensemble starts from one key per member and was given one key: use jax.random.split(key, members), "
                "or give the simulation itself to simkit.sweep, which makes the members"
            )
        return jax.vmap(simulation.init, in_axes=(axes, 0))(params, keys)

    step = batched(simulation.step)
    step_members = simulation.step_members
    if step_members is not None:

        def step_together(state: State, params: Params) -> State:
            count = jax.tree.leaves(state)[0].shape[0]

            def of_each(path: str, value: jax.Array) -> jax.Array:
                return value if path in differing else jnp.broadcast_to(value, (count, *value.shape))

            return step_members(state, paths.mapped(of_each, params))

        step = step_together

    status_of_each = batched(status_of(simulation))
    if checks_every_step(simulation):
        step_of_all = step

        def step_of_running(state: State, params: Params) -> State:
            def keep(stopped: jax.Array, old: State, new: State) -> State:
                return jax.tree.map(lambda old, new: jnp.where(stopped, old, new), old, new)

            return jax.vmap(keep)(stops(status_of_each(state, params)), state, step_of_all(state, params))

        step = step_of_running

    return dataclasses.replace(
        simulation,
        init=init,
        step=step,
        observe=batched(simulation.observe),
        diagnose=batched(simulation.diagnose),
        # One linear solve for the whole batch would couple its members; differentiate the member and vmap that.
        equilibrium=None,
        status=as_often(simulation, status_of_each),
        step_members=None,
        sized_like=simulation.sized_like and (lambda states: ensemble(simulation.with_buffers_of(states), over)),
        dimensions={name: ("member", *dimensions) for name, dimensions in simulation.dimensions.items()},
    )
