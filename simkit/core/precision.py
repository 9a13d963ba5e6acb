"""States in another precision: a coarse run in float32 from which a fine one in float64 goes on."""

import jax

from simkit.core.simulation import Simulation, State


def in_precision_of(simulation: Simulation, state: State) -> State:
    """Return a state in the precision of a simulation that was built like the one it comes from.

    A relaxation takes the numbers it kept for those of other parameters, forgets them, and evaluates where it stands.

    Args:
        simulation: whose step is to go on from there, in the precision that JAX runs in now.
        state: of the same simulation in another precision.

    Raises:
        ValueError: if the state is of another kind of simulation.
    """
    key = jax.eval_shape(jax.random.key, 0)
    template = jax.eval_shape(simulation.init, simulation.params, key)
    return jax.tree.map(lambda like, leaf: leaf.astype(like.dtype), template, state)
