"""Optimization barrier that keeps the compiler from recomputing values, see docs/compiler.md."""

import jax


def computed_once[T](tree: T) -> T:
    """Return arrays unchanged, behind an optimization barrier: computed once, in their own loop, and written to memory.

    Without it, XLA fuses the computation into every loop that uses the arrays and repeats it there, reads a fused
    concatenation with a branch per element, and folds constants at compile time, which may take seconds.

    Args:
        tree: pytree of arrays.
    """
    return jax.lax.optimization_barrier(tree)
