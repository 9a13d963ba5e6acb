"""Floating-point precision of computations, and conversion of states to another."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation, State


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Compute in ``"float32"`` or ``"float64"`` inside the block.

    Args:
        name: the precision.
    """
    import jax

    with jax.enable_x64(name == "float64"):
        yield


def in_precision_of(simulation: "Simulation", state: "State") -> "State":
    """Return a state in the precision of a simulation that was built like the one it comes from.

    A relaxation takes the numbers it kept for those of other parameters, forgets them, and evaluates where it stands.

    Args:
        simulation: whose step is to go on from there, in the precision that JAX runs in now.
        state: of the same simulation in another precision.

    Raises:
        ValueError: if the state is of another kind of simulation.
    """
    import jax

    key = jax.eval_shape(jax.random.key, 0)
    template = jax.eval_shape(simulation.init, simulation.params, key)
    return jax.tree.map(lambda like, leaf: leaf.astype(like.dtype), template, state)
