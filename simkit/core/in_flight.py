"""In-flight batching: in each lane, a member that has converged is replaced by the next."""

from collections.abc import Callable, Collection

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.compilation import compiled
from simkit.core.converge import Converged, differentiable_solution
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, status_of, stops

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
