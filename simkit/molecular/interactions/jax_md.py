"""Adapter of jax-md energy functions as interactions."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp

from simkit.core.buffers import Buffer
from simkit.core.formulation import precise_product
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.errors import UserError, listed
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, differentiated, taken
from simkit.molecular.spaces import Cell

# Doublings of the capacity of a list before its positions are refused.
MOST_ENLARGEMENTS = 12


def from_jax_md(
    energy: Callable[..., jax.Array],
    *,
    box: Any = None,
    parameters: Sequence[str] = (),
    neighbor_list: Any = None,
    position: jax.Array | None = None,
) -> Interaction:
    """Return the interaction of a jax-md energy function.

    A cell other than the box is the box deformed by F: positions are mapped back into the box, and the jax-md keyword
    ``perturbation`` F deforms every separation, so stress and cell derivatives are exact. A jax-md neighbor list is for
    the box only: with a list, any other cell gives NaN (derivatives at the box are right).

    Args:
        energy: ``energy(R, **keywords)`` for positions in units of length, or ``energy(R, neighbor=list, **keywords)``;
            it must pass unknown keywords to its displacement function, as those of jax-md do.
        box: box of the displacement function: a side, (d,) sides, or (d, d) lattice vectors as columns with
            ``fractional_coordinates=False``; ``None`` for `jax_md.space.free`.
        parameters: names of params to pass as keywords. They take precedence over values fixed in jax-md, which should
            be float64 arrays: jax-md stores some Python numbers in single precision. A name without effect on the
            energy is refused: jax-md passes it to the displacement function, which ignores it.
        neighbor_list: the `NeighborListFns` that came with the energy, if any; made in units of length.
        position: with a neighbor list, example positions (N, d), concrete, that determine its capacity.

    Raises:
        UserError: if a neighbor list comes without example positions, or without a box; when the energy is first
            evaluated, if one of ``parameters`` has no effect on it, or is not among the params.

    Example:
        >>> from jax_md import energy, space
        >>> displacement, shift = space.free()
        >>> pairs = molecular.interactions.from_jax_md(energy.lennard_jones_pair(displacement), box=None)
        >>> x = jnp.array([[0.0, 0.0], [2 ** (1 / 6), 0.0]])
        >>> print(f"{pairs.energy(x, None, {}, pairs.prepare(x, None, {})):.3f}")
        -1.000
    """
    template = None
    if neighbor_list is not None:
        if position is None or box is None:
            raise UserError("a neighbor list needs a box and example positions; give box and position")
        template = _allocated(neighbor_list, _in_box(position, box))
    return _interaction(energy, box, listed(parameters, "from_jax_md: parameters"), neighbor_list, template)


def _interaction(
    energy: Callable[..., jax.Array], box: Any, parameters: tuple[str, ...], neighbor_list: Any, template: Any
) -> Interaction:
    def evaluate(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        keywords: dict[str, Any] = {}
        if (box is None) != (cell is None):
            raise UserError("either both the jax-md box and the cell are given, or neither (free space)")
        is_valid = jnp.bool_(True)
        if cell is not None:
            reference = _lattice_vectors(box, position)
            deformation = precise_product(spaces.inverse_of(reference), spaces.lattice_vectors(cell))
            position = precise_product(position, spaces.inverse_of(deformation))
            keywords["perturbation"] = deformation.T
            strain = jnp.abs(deformation - jnp.eye(len(reference), dtype=position.dtype)).max()
            # Computed sides may differ from given ones by round-off.
            is_valid = (neighbor_list is None) | (strain < 100 * jnp.finfo(position.dtype).eps)
        if neighbor_list is not None:
            keywords["neighbor"] = neighbors.lists
            is_valid = is_valid & ~neighbors.overflowed
        # jax-md passes a keyword that no function takes to its displacement function, which ignores it.
        chosen = taken(lambda each: energy(position, **keywords, **each), params, parameters, "from_jax_md")
        # NaN instead of a wrong value.
        return jnp.where(is_valid, energy(position, **keywords, **chosen), jnp.nan)

    def prepare(position: jax.Array, cell: Cell, params: Params) -> Any:
        if template is None:
            return ()
        return JaxMdNeighbors(lists=_updated(template, _in_box(position, box)), functions=neighbor_list)

    def refresh(neighbors: Any, position: jax.Array, cell: Cell, params: Params) -> Any:
        if template is None:
            return neighbors
        return dataclasses.replace(neighbors, lists=_updated(neighbors.lists, _in_box(position, box)))

    def sized_like(neighbors: JaxMdNeighbors) -> Interaction:
        return _interaction(energy, box, parameters, neighbor_list, neighbors.first)

    return differentiated(evaluate, prepare, refresh, sized_like=None if template is None else sized_like)


def _lattice_vectors(box: Any, position: jax.Array) -> jax.Array:
    box, dimension = jnp.asarray(box, position.dtype), position.shape[1]
    # Lattice vectors are rows here and columns in jax-md.
    return box.T if box.ndim == 2 else jnp.diag(jnp.broadcast_to(box, (dimension,)))


def _in_box(position: jax.Array, box: Any) -> jax.Array:
    # The cell list of jax-md starts at the origin: it would put a particle outside the box into a wrong cell.
    position = jax.lax.stop_gradient(position)
    return spaces.of_cell(_lattice_vectors(box, position), position.shape[1]).wrap(position)


def _allocated(neighbor_list: Any, position: jax.Array, extra: int = 0) -> Any:
    neighbors = neighbor_list.allocate(position, extra_capacity=extra)
    if neighbors.cell_size is None:
        return neighbors
    # It is static data of the pytree, where comparing arrays fails when compiled code receives a second list.
    return dataclasses.replace(neighbors, cell_size=float(neighbors.cell_size))


@pytree
class JaxMdNeighbors(Buffer):
    """Neighbor list of jax-md, with an overflow flag but without a count of the needed entries.

    Attributes:
        lists: `jax_md.partition.NeighborList`, of one member or of many.
        functions: the `NeighborListFns` of the list.
    """

    lists: Any
    functions: Any

    @property
    def overflowed(self) -> jax.Array:
        """Whether a neighbor is or was missing; bits of the error code are never cleared."""
        return _overflowed(self.lists)

    @property
    def first(self) -> Any:
        """The list of the first member."""
        leading = self.lists.reference_position.ndim - 2
        return jax.tree.map(lambda leaf: leaf[(0,) * leading], self.lists)

    def enlarged(self) -> Self:
        """Return one list with enough capacity for the neighbors of every member, on the host."""
        positions = self.lists.reference_position
        lists = _enlarged(self.functions, positions.reshape(-1, *positions.shape[-2:]))
        return dataclasses.replace(self, lists=lists)

    def sized_like(self, example: Any) -> Self:
        """Return lists of the same positions with the capacity of another."""
        larger, members = example.first, self.lists.reference_position
        lists = jax.vmap(lambda member: _updated(larger, member))(members.reshape(-1, *members.shape[-2:]))
        lists = jax.tree.map(lambda leaf: leaf.reshape(*members.shape[:-2], *leaf.shape[1:]), lists)
        return dataclasses.replace(self, lists=lists)


def _enlarged(neighbor_list: Any, positions: jax.Array) -> Any:
    """Return a list with enough capacity for the neighbors at any of these positions, (members, N, d)."""
    extra = 0
    for _ in range(MOST_ENLARGEMENTS):
        larger = _allocated(neighbor_list, positions[0], extra)
        if not any(bool(_overflowed(_updated(larger, member))) for member in positions):
            return larger
        extra = max(2 * extra, 8)
    raise UserError("the neighbor list of jax-md overflows at any capacity; check the positions and the box")


def _overflowed(neighbors: Any) -> jax.Array:
    return jnp.not_equal(neighbors.did_buffer_overflow | neighbors.cell_size_too_small, 0)


@jax.custom_batching.custom_vmap
def _updated(neighbors: Any, position: jax.Array) -> Any:
    """Return the list, rebuilt if it may miss a pair at these positions; bits of its error code are never cleared."""
    return neighbors.update(position)


@_updated.def_vmap
def _(axis_size: int, in_batched: Any, neighbors: Any, position: jax.Array) -> tuple[Any, Any]:
    # Under vmap the condition becomes a selection, and every list would be rebuilt at every step.
    def batch(leaf: jax.Array, batched: bool) -> jax.Array:
        return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape))

    members = jax.tree.map(batch, (neighbors, position), tuple(in_batched))
    result = jax.lax.map(lambda member: _updated(*member), members)
    return result, jax.tree.map(lambda _: True, result)
