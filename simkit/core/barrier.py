"""Optimization barrier that keeps the compiler from recomputing values, see docs/compiler.md."""

import jax


def computed_once[T](tree: T) -> T:
    """Return arrays as they are, but computed in a pass of their own and written to memory.

    Compiled loops otherwise compute them again for each array that follows from them, a concatenation costs them a
    branch for each number, and what is constant is worked out while the program is compiled.

    Args:
        tree: of arrays.
    """
    return jax.lax.optimization_barrier(tree)
