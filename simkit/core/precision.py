"""Floating-point precision of computations, and conversion of states between precisions."""

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
    """Return a state converted to the dtypes of a simulation built with the same configuration.

    A relaxation discards the energies and forces stored in the state and evaluates them again.

    Args:
        simulation: the simulation that continues from the state, built in the present precision of JAX.
        state: state of the same simulation in another precision.

    Raises:
        ValueError: if the state has another structure than the states of the simulation.
    """
    import jax

    return jax.tree.map(lambda like, leaf: leaf.astype(like.dtype), simulation.shapes.state, state)
