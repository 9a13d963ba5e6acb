"""Interactions of particles, as one record of pure functions that minimizers and dynamics take."""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular.spaces import Cell


class Interaction(NamedTuple):
    """An interaction of particles, as pure functions of (position, cell, params).

    Positions are (N, d); ``cell`` is ``None``, (d,) side lengths or (d, d) lattice vectors as rows. Energy, force and
    stress are differentiable, forward and reverse and twice, with respect to position, cell and params, and are NaN
    where they would be wrong: after an overflow, and where a cut-off reaches beyond half the width of the cell.

    Attributes:
        prepare: ``(position, cell, params) -> neighbors``, a pytree.
        refresh: ``(neighbors, position, cell, params) -> neighbors`` for the new positions; to be called whenever
            they change, before anything else is asked.
        energy: ``(position, cell, params, neighbors) -> scalar``.
        force: ``(position, cell, params, neighbors) -> (N, d)``.
        stress: ``(position, cell, params, neighbors) -> (d, d)``, (1/V) dE/dstrain; positive under tension.
        sized_like: ``neighbors -> interaction``, on the host, where they are or hold a `simkit.core.buffers.Buffer`:
            the same interaction, whose ``prepare`` makes lists as large as these; its other functions take lists of
            any size.
        is_translation_invariant: whether by construction the energy stays the same when all particles move together;
            where false, molecular dynamics measures along which directions the total momentum is conserved.
        fits: ``(cell, params) -> boolean``, whether a periodic cell is wide enough for the cut-offs; ``None`` where any
            cell is.
    """

    prepare: Callable[[jax.Array, Cell, Params], Any]
    refresh: Callable[[Any, jax.Array, Cell, Params], Any]
    energy: Callable[[jax.Array, Cell, Params, Any], jax.Array]
    force: Callable[[jax.Array, Cell, Params, Any], jax.Array]
    stress: Callable[[jax.Array, Cell, Params, Any], jax.Array]
    sized_like: "Callable[[Any], Interaction] | None" = None
    is_translation_invariant: bool = False
    fits: Callable[[Cell, Params], jax.Array] | None = None

    def misses_pairs(self, cell: Cell, params: Params, margin: float = 0.0) -> jax.Array:
        """Tell whether a cell is too small for the cut-offs, so that energy, force and stress are NaN.

        Args:
            cell: as for `simkit.molecular.spaces.of_cell`; one that is not finite is no smaller than any other.
            params: parameters.
            margin: relative; tells also whether a cell smaller by that would be.
        """
        if self.fits is None or cell is None:
            return jnp.bool_(False)
        return ~jnp.isnan(cell).any() & ~self.fits(cell * (1 - margin), params)


def combined(*interactions: Interaction) -> Interaction:
    """Return the sum of interactions, such as a pair and a three-body part.

    Args:
        *interactions: at least one; each keeps neighbors of its own.
    """

    def summed(name: str) -> Callable[[jax.Array, Cell, Params, Any], jax.Array]:
        def total(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
            parts = [
                getattr(part, name)(position, cell, params, n) for part, n in zip(interactions, neighbors, strict=True)
            ]
            return functools.reduce(operator.add, parts)

        return total

    def sized_like(neighbors: Any) -> Interaction:
        return combined(
            *(part.sized_like(n) if part.sized_like else part for part, n in zip(interactions, neighbors, strict=True))
        )

    needs = [part.fits for part in interactions if part.fits is not None]
    return Interaction(
        prepare=lambda position, cell, params: tuple(part.prepare(position, cell, params) for part in interactions),
        refresh=lambda neighbors, position, cell, params: tuple(
            part.refresh(n, position, cell, params) for part, n in zip(interactions, neighbors, strict=True)
        ),
        energy=summed("energy"),
        force=summed("force"),
        stress=summed("stress"),
        sized_like=sized_like,
        is_translation_invariant=all(part.is_translation_invariant for part in interactions),
        fits=(lambda cell, params: jnp.stack([fits(cell, params) for fits in needs]).all()) if needs else None,
    )
