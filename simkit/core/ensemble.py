"""Ensembles: many members as one simulation, and batches in which a converged member is replaced by the next."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.compilation import compiled
from simkit.core.converge import Converged, differentiable_solution
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, as_often, checks_every_step, status_of, stops
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


# Factor between the widths of successive batches when members run out. Each width is compiled separately; a factor of 8
# keeps both the number of widths and the number of idle lanes small.
NARROWING = 8


def in_flight(
    simulation: Simulation, *, lanes: int, max_steps: int, over: Collection[str] = (), steps_per_round: int = 8
) -> Callable[[State, Params], Converged]:
    """Return ``(states, params) -> Converged`` that converges all members of an ensemble, a few at a time.

    One array holds the states of all members: waiting, running and finished. Each round gathers the first ``lanes``
    unfinished members, advances them as one batch and scatters them back; a member that has converged, failed or
    reached ``max_steps`` is not gathered again, so its lane is free for a waiting one. When fewer members than lanes
    remain, the batches become narrower. Every member takes the same steps as alone; results differ by the round-off of
    batched arithmetic only and do not depend on the order of members.

    Where the simulation has an ``equilibrium``, the result has the implicit derivative of
    `simkit.core.converge.converge` with respect to ``params``, member by member, and NaN for members that failed.

    Args:
        simulation: one that converges.
        lanes: number of members that run together. Good values: 32 to 128 on a CPU (states that fit in its cache),
            thousands on a GPU.
        max_steps: largest number of steps of each member.
        over: paths of the parameters with a leading member axis; the others are shared.
        steps_per_round: steps between exchanges; a finished member idles for half of them on average.

    Returns:
        A function of the initial states, stacked along a leading member axis (``jax.vmap(simulation.init)``), and the
        params. Its result has the state, the status and the number of steps of each member, in the order given.

    Raises:
        ValueError: if the simulation does not converge, or a size is below 1.
    """
    if not simulation.converges:
        raise ValueError("in_flight needs a simulation with converges=True; use trajectory for this one")
    if lanes < 1 or max_steps < 1 or steps_per_round < 1:
        raise ValueError(f"lanes, max_steps, steps_per_round = {lanes}, {max_steps}, {steps_per_round}: below 1")
    status_after = status_of(simulation)

    def advance(member: tuple[State, jax.Array, jax.Array], params: Params) -> tuple[State, jax.Array, jax.Array]:
        state, status, iterations = member
        running = ~stops(status)
        stepped = simulation.step(state, params)
        state = jax.tree.map(lambda new, old: jnp.where(running, new, old), stepped, state)
        iterations = iterations + running
        status = jnp.where(running, status_after(state, params), status)
        exhausted = ~stops(status) & (iterations >= max_steps)
        return state, jnp.where(exhausted, jnp.int32(Status.MAX_STEPS), status), iterations

    def run(states: State, params: Params) -> Converged:
        fixed = jax.lax.stop_gradient(params)
        states = jax.lax.stop_gradient(states)
        count = jax.tree.leaves(states)[0].shape[0]
        differing = paths.selected(over, paths.leaves(params))
        axes = paths.axes(params, differing)
        members = states, jnp.zeros(count, jnp.int32), jnp.zeros(count, jnp.int32)

        def take(tree: State, chosen: jax.Array) -> State:
            # A lane without a member (index ``count``) repeats the last member; its result is dropped.
            return jax.tree.map(lambda a: jnp.take(a, chosen, axis=0, mode="clip"), tree)

        def narrow(members: tuple[State, jax.Array, jax.Array], width: int, until: int):
            def unfinished(members: tuple[State, jax.Array, jax.Array]) -> jax.Array:
                return jnp.sum(~stops(members[1])) > until

            def exchange(members: tuple[State, jax.Array, jax.Array]) -> tuple[State, jax.Array, jax.Array]:
                (chosen,) = jnp.nonzero(~stops(members[1]), size=width, fill_value=count)
                batch = take(members, chosen)
                leaves = paths.leaves(fixed)
                of_batch = paths.replaced(fixed, {path: take(leaves[path], chosen) for path in differing})
                advance_all = jax.vmap(advance, in_axes=(0, axes))
                batch = jax.lax.fori_loop(0, steps_per_round, lambda _, batch: advance_all(batch, of_batch), batch)
                return jax.tree.map(lambda a, b: a.at[chosen].set(b, mode="drop"), members, batch)

            return jax.lax.while_loop(unfinished, exchange, members)

        width = min(lanes, count)
        while width >= 1:
            narrower = width // NARROWING
            members = narrow(members, width, until=narrower)
            width = narrower
        states, status, iterations = members
        equilibrium = simulation.equilibrium
        if equilibrium is not None:
            attach = jax.vmap(lambda *one: differentiable_solution(equilibrium, *one), in_axes=(0, axes, 0))
            states = attach(states, params, status)
        return Converged(state=states, status=status, iterations=iterations)

    return compiled(run)
