"""In-flight batching: a member that has converged is replaced in its lane by the next, so that none waits."""

from collections.abc import Callable, Collection

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.compilation import compiled
from simkit.core.converge import Converged, differentiable_solution
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, status_of, stops

# Each narrower batch is compiled apart; an eighth keeps their number, and the idle slots, small.
NARROWING = 8


def in_flight(
    simulation: Simulation, *, slots: int, max_steps: int, over: Collection[str] = (), steps_per_round: int = 8
) -> Callable[[State, Params], Converged]:
    """Return ``(states, params) -> Converged`` that brings every member of an ensemble to rest, a few at a time.

    The states of all members, waiting, under way and finished, lie in one array. Each round takes the first ``slots``
    unfinished members out of it, advances them together and puts them back; a member that is done, has failed or has
    used up its steps is not taken again, and one that waited takes its place. When fewer members are left than
    slots, the rounds go on with fewer slots. Every member takes the steps it would take alone, so only round-off
    of batched arithmetic tells the two apart, and nothing depends on the order.

    Where the simulation has an ``equilibrium``, the result has the implicit derivative of
    `simkit.core.converge.converge` with respect to ``params``, member by member, and NaN for members that failed.

    Args:
        simulation: one that converges.
        slots: members that run together. Good values: 32 to 128 on a CPU (what its cache holds), thousands on a GPU.
        max_steps: largest number of steps of each member.
        over: paths of the parameters that carry a leading member axis; the others are shared.
        steps_per_round: steps between exchanges; a finished member idles half as many on average.

    Returns:
        A function of the initial states, stacked along a leading member axis (``jax.vmap(simulation.init)``), and the
        params. Its result has, per member, the state, the status and the number of steps, in the members' order.

    Raises:
        ValueError: if the simulation does not converge, or a size is below 1.
    """
    if not simulation.converges:
        raise ValueError("in_flight needs a simulation with converges=True; use trajectory for this one")
    if slots < 1 or max_steps < 1 or steps_per_round < 1:
        raise ValueError(f"slots, max_steps, steps_per_round = {slots}, {max_steps}, {steps_per_round}: below 1")
    status_after = status_of(simulation)

    def advance(member: tuple[State, jax.Array, jax.Array], params: Params) -> tuple[State, jax.Array, jax.Array]:
        state, status, iterations = member
        going = ~stops(status)
        stepped = simulation.step(state, params)
        state = jax.tree.map(lambda new, old: jnp.where(going, new, old), stepped, state)
        iterations = iterations + going
        status = jnp.where(going, status_after(state, params), status)
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
            # Slots without a member repeat the last one; what they compute is dropped.
            return jax.tree.map(lambda a: jnp.take(a, chosen, axis=0, mode="clip"), tree)

        def narrow(members: tuple[State, jax.Array, jax.Array], width: int, until: int):
            def unfinished(members: tuple[State, jax.Array, jax.Array]) -> jax.Array:
                return jnp.sum(~stops(members[1])) > until

            def exchange(members: tuple[State, jax.Array, jax.Array]) -> tuple[State, jax.Array, jax.Array]:
                (chosen,) = jnp.nonzero(~stops(members[1]), size=width, fill_value=count)
                batch = take(members, chosen)
                of_each = paths.leaves(fixed)
                shared = paths.replaced(fixed, {path: take(of_each[path], chosen) for path in differing})
                together = jax.vmap(advance, in_axes=(0, axes))
                batch = jax.lax.fori_loop(0, steps_per_round, lambda _, batch: together(batch, shared), batch)
                return jax.tree.map(lambda a, b: a.at[chosen].set(b, mode="drop"), members, batch)

            return jax.lax.while_loop(unfinished, exchange, members)

        width = min(slots, count)
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
