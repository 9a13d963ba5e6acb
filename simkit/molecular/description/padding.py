"""Structures of different sizes as one system: each is padded with absent atoms, and a parameter chooses one of them.

Slots are the particles of the system: of each species as many as the structure with most atoms of it has. A structure
fills some of them; the others are absent. No neighbor list holds an absent atom, since its position is NaN where lists
are built, and energies that end at a cut-off are sums over lists, so that absent atoms have no energy, exert no force
and stay where they are.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula, precision_of
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params, Quantity, Simulation, State
from simkit.errors import UserError
from simkit.molecular.interactions.interaction import Interaction, Quantities
from simkit.molecular.spaces import Cell
from simkit.molecular.structures.structures import FROZEN, Structure

# Among the parameters where a certain structure is meant, whatever the formula gives; no parameter has such a name.
FRAME = "frame of the structure"
PARTICLES = Quantity("1", "number of particles of the structure")
PER_PARTICLE = ("energy_per_particle", "potential_energy_per_particle")


@dataclasses.dataclass(frozen=True)
class Padding:
    """Structures in the slots of one system.

    Attributes:
        which: number of the structure, of the parameters.
        slots: slot of each atom in the order of its structure, then the empty ones, int32, (F, N).
        counts: number of atoms of each structure, (F,).
    """

    which: Formula
    slots: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        """Return the number of structures, F."""
        return len(self.counts)

    def index(self, params: Params) -> jax.Array:
        """Return the number of the structure, int32; the nearest one where it is no number of any."""
        if FRAME in params:
            return jnp.asarray(params[FRAME], jnp.int32)
        number = jnp.round(jax.lax.stop_gradient(self.which.number(params)))
        return jnp.clip(number, 0, len(self) - 1).astype(jnp.int32)

    def of(self, table: np.ndarray, params: Params) -> jax.Array:
        """Return the row of a table, (F, ...), that is of the structure; NaN where the number is that of none."""
        row = jnp.asarray(table, precision_of(params))[self.index(params)]
        if FRAME in params:
            return row
        return jnp.where(self.which.number(params) == self.index(params), row, jnp.nan)

    def count(self, params: Params) -> jax.Array:
        """Return the number of atoms of the structure, int32."""
        return jnp.asarray(self.counts, jnp.int32)[self.index(params)]

    def atoms(self, index: int) -> np.ndarray:
        """Return the slots of the atoms of a structure, in its order, (n,)."""
        return self.slots[index, : self.counts[index]]

    def absent(self, params: Params) -> jax.Array:
        """Return the mask of the slots that the structure leaves empty, (N,) booleans."""
        is_absent = np.ones(self.slots.shape, bool)
        for index in range(len(self)):
            is_absent[index, self.atoms(index)] = False
        return jnp.asarray(is_absent)[self.index(params)]

    def hidden(self, position: jax.Array, params: Params) -> jax.Array:
        """Return positions that are NaN in empty slots, (N, d)."""
        return jnp.where(self.absent(params)[:, None], jnp.nan, position)

    def spread(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Return arrays of the atoms of each structure, (n, ...) each, by slot, (F, N, ...); zero in empty slots."""
        table = np.zeros((*self.slots.shape, *arrays[0].shape[1:]))
        for index, array in enumerate(arrays):
            table[index, self.atoms(index)] = array
        return table

    def each(self, params: Params) -> list[Params]:
        """Return the parameters of each of the structures."""
        return [{**params, FRAME: np.int32(index)} for index in range(len(self))]


def padding_of(which: Formula, frames: Sequence[Structure], where: str) -> tuple[Padding, tuple[str, ...]]:
    """Return the padding of structures, and the symbol of each slot.

    Args:
        which: number of the structure.
        frames: the structures.
        where: path of their key.

    Raises:
        UserError: if they differ in what must be alike, or one holds atoms in place.
    """
    for index, frame in enumerate(frames):
        if np.any(frame.arrays.get(FROZEN, False)):
            problem = f"{where}: frame {index} holds atoms in place, and all frames share what is held"
            raise UserError(f"{problem}; give those atoms a species of their own, with frozen = true")
        if frame.periodic != frames[0].periodic:
            raise UserError(f"{where}: frame {index} repeats along other axes than frame 0; give each kind by itself")
    kinds = dict.fromkeys(symbol for frame in frames for symbol in frame.symbols)
    symbols = [kind for kind in kinds for _ in range(max(frame.symbols.count(kind) for frame in frames))]
    slots = np.array([_slots_of(frame.symbols, symbols) for frame in frames], np.int32)
    return Padding(which, slots, np.array([len(frame) for frame in frames])), tuple(symbols)


def _slots_of(symbols: tuple[str, ...], slots: list[str]) -> list[int]:
    free = {kind: iter(range(slots.index(kind), len(slots))) for kind in set(symbols)}
    filled = [next(free[symbol]) for symbol in symbols]
    return filled + sorted(set(range(len(slots))) - set(filled))


def on_lists(settings: Settings) -> Settings:
    """Return the settings of an interaction whose pairs are those of neighbor lists.

    Raises:
        UserError: if they say otherwise.
    """
    if settings["method"] == "all_pairs":
        raise settings.refuse("method", "= 'all_pairs' has no place for frames of different sizes; leave it out")
    return Settings({**settings, "method": "neighbor_list"}, settings.where, settings.given)


def padded(interaction: Interaction, padding: Padding) -> Interaction:
    """Return an interaction in which absent atoms take no part.

    Args:
        interaction: of all slots, by neighbor lists alone.
        padding: which of them are empty.
    """

    def shown(position: jax.Array, params: Params) -> jax.Array:
        return jnp.where(padding.absent(params)[:, None], 0, position)

    def together(names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> tuple:
        return interaction.several(names, shown(position, params), cell, params, neighbors)

    resize = interaction.sized_like
    return dataclasses.replace(
        interaction,
        prepare=lambda x, cell, params: interaction.prepare(padding.hidden(x, params), cell, params),
        refresh=lambda old, x, cell, params: interaction.refresh(old, padding.hidden(x, params), cell, params),
        energy=lambda x, *others: interaction.energy(shown(x, others[1]), *others),
        force=lambda x, *others: interaction.force(shown(x, others[1]), *others),
        stress=lambda x, *others: interaction.stress(shown(x, others[1]), *others),
        sized_like=resize and (lambda neighbors: padded(resize(neighbors), padding)),
        together=together,
    )


def unpadded(simulation: Simulation, padding: Padding) -> Simulation:
    """Return a simulation whose arrays have the atoms in the order of their structure, and NaN after the last.

    Args:
        simulation: of all slots.
        padding: which of them are empty.
    """
    axes = {name: dims.index("particle") for name, dims in simulation.dimensions.items() if "particle" in dims}

    def observe(state: State, params: Params) -> Arrays:
        slots = jnp.asarray(padding.slots)[padding.index(params)]
        is_atom = jnp.arange(len(slots)) < padding.count(params)

        def ordered(name: str, array: jax.Array) -> jax.Array:
            if name not in axes:
                return array
            mask = is_atom.reshape([-1 if axis == axes[name] else 1 for axis in range(array.ndim)])
            return jnp.where(mask, jnp.take(array, slots, axes[name]), jnp.nan)

        return {name: ordered(name, array) for name, array in simulation.observe(state, params).items()}

    def diagnose(state: State, params: Params) -> Arrays:
        numbers = simulation.diagnose(state, params)
        count = padding.count(params).astype(numbers["energy"].dtype)
        own = {name: numbers["energy"] / count for name in PER_PARTICLE if name in numbers}
        return numbers | own | {"particles": count}

    return dataclasses.replace(simulation, observe=observe, diagnose=diagnose)


def checked(
    padding: Padding, interaction: Interaction, cell: Callable[[Params], Cell] | None, dimension: int
) -> Callable[[Params], int]:
    """Return ``params -> `` number of the structure, which raises where it is none, or where a lone atom has an energy.

    Args:
        padding: the structures.
        interaction: of all slots, padded.
        cell: of the system; ``None`` in free space.
        dimension: of space.
    """
    last = len(padding) - 1

    def lone(params: Params) -> jax.Array:
        """Return the energy of the structure less that with its absent atoms drawn apart from one another."""
        place = jnp.zeros((padding.slots.shape[1], dimension), precision_of(params))
        at = jnp.full_like(place, jnp.nan), None if cell is None else cell(params), params
        return interaction.energy(place, *at[1:], interaction.prepare(*at))

    def check(params: Params) -> int:
        number = float(padding.which.number(params))
        if number != round(number) or not 0 <= number <= last:
            where = padding.which.where
            raise UserError(
                f"{where} = {number:g}, and there are frames 0 to {last}; give one of these", allowed=(0, last)
            )
        if (alone := float(jax.jit(lone)(params))) != 0:
            raise UserError(
                f"{padding.which.where}: atoms without neighbors have an energy, {alone:g} in all, which absent atoms "
                "would add to that of a smaller frame; subtract it in the interaction, or give the frames one by one"
            )
        return round(number)

    return check


def refuse_unpadded(start: Settings, problems: Iterable[tuple[str, Any]]) -> None:
    """Raise for what has no meaning for atoms that are absent.

    Args:
        start: settings of the start.
        problems: what it is, and whether it is there.
    """
    for what, is_there in problems:
        if is_there:
            problem = f"is an expression, and frames of different sizes have no {what}"
            raise start.refuse("frame", f"{problem}; give a whole number, or leave that out")
