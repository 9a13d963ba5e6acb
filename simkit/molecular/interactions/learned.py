"""Learned energies on the neighbor lists of simkit, their weights a branch of the params."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.parameter import POSITIVE
from simkit.core.settings import arguments, number, text, whole
from simkit.core.simulation import Params
from simkit.errors import known
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, differentiated
from simkit.molecular.neighbors.neighbor_list import NeighborList, Within
from simkit.molecular.neighbors.pairs import Pairs, listed_pairs
from simkit.molecular.spaces import Cell

type Model = Callable[[Any, jax.Array, jax.Array | None, Cell, Pairs], jax.Array]
"""``(weights, position, species, cell, neighbors) -> energy``, of all particles (a scalar) or of each, (N,)."""


@arguments(
    cutoff=number("distance beyond which no two particles interact", bounds=POSITIVE),
    weights=text("name of the branch of the params that holds the weights"),
    capacity=whole("neighbors per particle that the list can hold", low=1),
    skin=number("skin of the list, in units of the cut-off", bounds=POSITIVE),
)
def learned_energy(
    energy: Model,
    *,
    cutoff: float,
    species: Sequence[int] | None = None,
    weights: str = "weights",
    capacity: int = 64,
    skin: float = 0.1,
) -> Interaction:
    """Return the interaction of an energy with weights, such as a graph network, on a neighbor list of simkit.

    ``F = -dE/dx`` and ``stress = (1/V) dE/dstrain`` follow by differentiation, and so do derivatives by the weights:
    of energies and forces, of runs, and of what relaxed under them (`simkit.converge`).

    Entries of the neighbors that are no pair within the cut-off have ``is_pair`` false and separations of length zero
    or beyond it: the energy multiplies or selects by ``is_pair``, and is smooth if it vanishes at the cut-off. Its
    float products ask for the highest precision.

    Args:
        energy: ``(weights, position, species, cell, neighbors) -> E``, a scalar or (N,). Positions are (N, d) and may
            lie outside the cell; ``neighbors`` is a `simkit.molecular.neighbors.pairs.Pairs`, K entries per particle.
        cutoff: length; at most half the smallest width of a periodic cell, else energy, force and stress are NaN.
        species: of each particle, integers, (N,), passed to the energy; ``None`` passes ``None``.
        weights: name of the branch of the params with the weights, any tree of arrays.
        capacity: neighbors per particle within cut-off and skin that the list can hold. Runs enlarge it when needed.
        skin: of the list beyond the cut-off, in units of the cut-off.

    Raises:
        UserError: if an argument is out of its range; when it is used, if the params have no such branch, or the energy
            returns neither a number nor one for each particle.

    Example:
        >>> def springs(weights, position, species, cell, neighbors):
        ...     stretch = jnp.where(neighbors.is_pair, neighbors.distance - weights["length"], 0)
        ...     return weights["stiffness"] / 4 * jnp.sum(stretch**2, axis=1)
        >>> model = molecular.interactions.learned_energy(springs, cutoff=3.0)
        >>> x, params = jnp.array([[0.0, 0.0], [1.5, 0.0]]), {"weights": {"length": 1.0, "stiffness": 2.0}}
        >>> neighbors = model.prepare(x, None, params)
        >>> float(model.energy(x, None, params, neighbors)), model.force(x, None, params, neighbors)[0].tolist()
        (0.25, [1.0, -0.0])
    """
    kinds = None if species is None else np.asarray(species, dtype=np.int32)

    within = Within(lambda params: cutoff, skin, capacity)

    def evaluate(position: jax.Array, cell: Cell, params: Params, neighbors: NeighborList) -> jax.Array:
        known(weights, params, "learned_energy: weights")
        space = spaces.of_cell(cell, position.shape[1])
        near = listed_pairs(position, space, neighbors, jnp.asarray(cutoff, position.dtype))
        value = jnp.asarray(
            energy(params[weights], position, None if kinds is None else jnp.asarray(kinds), cell, near)
        )
        wanted = f"one number, or one for each of the {len(position)} particles"
        check_shape("learned_energy: the energy", value, wanted, (), (len(position),))
        return within.valid_or_nan(value.sum(), cell, params, neighbors)

    def sized_like(neighbors: NeighborList) -> Interaction:
        return learned_energy(
            energy, cutoff=cutoff, species=species, weights=weights, capacity=neighbors.capacity, skin=skin
        )

    return differentiated(evaluate, within.prepare, within.refresh, sized_like, within.fits)
