"""Interface of interactions: one record of pure functions for relaxations and dynamics; energies given by the user."""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.dependence import without_effect
from simkit.core.formulation import precise_product
from simkit.core.simulation import Params
from simkit.core.tracing import kernel
from simkit.errors import UserError, known, listed
from simkit.molecular import spaces
from simkit.molecular.spaces import Cell

type Quantities = tuple[Literal["energy", "force", "stress"], ...]


@dataclasses.dataclass(frozen=True)
class Interaction:
    """An interaction of particles, as pure functions of (position, cell, params).

    Positions are (N, d); ``cell`` is ``None``, (d,) side lengths or (d, d) lattice vectors as rows. Energy, force and
    stress are differentiable, forward and reverse and twice, with respect to position, cell and params. They are NaN
    instead of wrong: after a buffer overflow, and if a cut-off exceeds half the width of the cell.

    Attributes:
        prepare: ``(position, cell, params) -> neighbors``, a pytree.
        refresh: ``(neighbors, position, cell, params) -> neighbors`` for the new positions; to be called whenever
            positions, cell or params change, before energy, force or stress.
        energy: ``(position, cell, params, neighbors) -> scalar``.
        force: ``(position, cell, params, neighbors) -> (N, d)``.
        stress: ``(position, cell, params, neighbors) -> (d, d)``, (1/V) dE/dstrain; positive under tension.
        sized_like: ``neighbors -> interaction``, on the host, if neighbors are or contain a
            `simkit.core.buffers.Buffer`: the same interaction with a ``prepare`` that makes lists of the same capacity;
            its other functions take lists of any capacity.
        is_translation_invariant: whether by construction the energy is unchanged when all particles move together; if
            false, molecular dynamics determines the directions of conserved momentum numerically.
        fits: ``(cell, params) -> boolean``, whether a periodic cell is wide enough for the cut-offs; ``None`` if any
            cell is.
        together: ``(names, position, cell, params, neighbors) -> values`` of some of energy, force and stress in one
            pass over the neighbors, see `several`; ``None`` if that is no faster than one after the other.

    Example:
        >>> weight = molecular.interactions.Interaction(
        ...     prepare=lambda position, cell, params: (),
        ...     refresh=lambda neighbors, position, cell, params: neighbors,
        ...     energy=lambda position, cell, params, neighbors: params["g"] * jnp.sum(position[:, 1]),
        ...     force=lambda position, cell, params, neighbors: jnp.zeros_like(position).at[:, 1].set(-params["g"]),
        ...     stress=lambda position, cell, params, neighbors: jnp.zeros((2, 2)),
        ...     is_translation_invariant=False,
        ... )
        >>> weight.force(jnp.zeros((1, 2)), None, {"g": 10.0}, ()).tolist()
        [[0.0, -10.0]]
    """

    prepare: Callable[[jax.Array, Cell, Params], Any]
    refresh: Callable[[Any, jax.Array, Cell, Params], Any]
    energy: Callable[[jax.Array, Cell, Params, Any], jax.Array]
    force: Callable[[jax.Array, Cell, Params, Any], jax.Array]
    stress: Callable[[jax.Array, Cell, Params, Any], jax.Array]
    sized_like: "Callable[[Any], Interaction] | None" = None
    is_translation_invariant: bool = False
    fits: Callable[[Cell, Params], jax.Array] | None = None
    together: "Callable[[Quantities, jax.Array, Cell, Params, Any], tuple[jax.Array, ...]] | None" = None

    def __post_init__(self) -> None:
        """Make kernels of its functions, which every part of a simulation calls."""
        for name in ("prepare", "refresh", "energy", "force", "stress"):
            object.__setattr__(self, name, kernel(getattr(self, name)))
        if self.together is not None:
            object.__setattr__(self, "together", kernel(self.together, static="names"))

    def several(
        self, names: "Quantities", position: jax.Array, cell: Cell, params: Params, neighbors: Any
    ) -> tuple[jax.Array, ...]:
        """Return some of energy, force and stress.

        Args:
            names: of them, in the order of the result.
            position: length, (N, d).
            cell: as for `simkit.molecular.spaces.of_cell`; not free space for the stress.
            params: parameters.
            neighbors: current.

        Example:
            >>> pairs = molecular.interactions.pair_interaction(molecular.potentials.lennard_jones(), cutoff=None)
            >>> x, params = jnp.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]), {"epsilon": 1.0, "sigma": 1.0}
            >>> energy, force = pairs.several(("energy", "force"), x, None, params, pairs.prepare(x, None, params))
            >>> print(f"{energy:.4f} {force[0, 0]:.4f}")
            -0.0615 0.1816
        """
        if self.together is None or len(names) == 1:
            return tuple(getattr(self, name)(position, cell, params, neighbors) for name in names)
        return self.together(names, position, cell, params, neighbors)

    def misses_pairs(self, cell: Cell, params: Params, margin: float = 0.0) -> jax.Array:
        """Return whether a cell is too small for the cut-offs, so that energy, force and stress are NaN.

        Args:
            cell: as for `simkit.molecular.spaces.of_cell`; false for a cell with NaN.
            params: parameters.
            margin: relative reduction of the cell before the test.

        Example:
            >>> pairs = molecular.interactions.pair_interaction(molecular.potentials.lennard_jones(), cutoff=2.5)
            >>> params = {"epsilon": 1.0, "sigma": 1.0}
            >>> [bool(pairs.misses_pairs(side * jnp.eye(3), params)) for side in (4.0, 6.0)]
            [True, False]
        """
        if self.fits is None or cell is None:
            return jnp.bool_(False)
        return ~jnp.isnan(cell).any() & ~self.fits(cell * (1 - margin), params)


class Atoms(NamedTuple):
    """What the description of a system fixes of its particles before any parameter has a value.

    Attributes:
        species: index of the species of each particle, int32, (N,).
        names: of the species, in the order of the indices.
        excluded: pairs of particles that do not interact because they are bonded, (K, 2) with the lower index first.
        cell: lattice vectors as rows at the default parameters, (d, d), for an interaction that sums over images.
        cutoff: its cut-off there, length.

    Example:
        >>> molecular.interactions.Atoms(np.array([0, 1, 1]), ("O", "H"), np.array([[0, 1], [0, 2], [1, 2]])).names
        ('O', 'H')
    """

    species: np.ndarray
    names: tuple[str, ...]
    excluded: np.ndarray
    cell: np.ndarray | None = None
    cutoff: float | None = None


class ManyBody(NamedTuple):
    """An interaction of all particles that is no sum of pairs, as scenario files name it.

    Attributes:
        interaction: with the declared values as its params; or ``atoms -> interaction`` where it depends on the species
            or on excluded pairs.
        reach: ``(**values) -> distance`` beyond which no two particles interact.
        bond: ``(**values) -> (length, stiffness)``, see `simkit.molecular.potentials.PairPotential`; ``None`` where
            the values do not tell.
        dimensions: dimensions of space in which it is defined.
        of_one_species: whether it serves one species only.
        of_particles: names of numbers of the particles, such as ``charge``, which it takes beside the values as params,
            (N,) each.
        knows_excluded: whether it leaves out pairs that molecules exclude; if not, it is refused beside them.
        usual_cutoff: of an interaction that sums over all images itself, in a cell that repeats along all axes:
            ``(space, number of particles) -> `` cut-off of its sum over pairs, which joins its values as ``cutoff``,
            where the settings give none; ``None`` for an interaction of nearest images.
        of_two: of an interaction that leaves out excluded pairs: energy of two particles alone, ``(distance, **values)
            -> energy``, which a pair three bonds apart has with a weight; it takes numbers of the particles as
            ``charge_i`` and ``charge_j``. ``None`` where no such weight may be given.

    Example:
        >>> spread = molecular.interactions.user_energy(
        ...     lambda x, cell, params: params["k"] * jnp.sum((x - x.mean(axis=0)) ** 2)
        ... )
        >>> swarm = molecular.interactions.ManyBody(
        ...     spread, reach=lambda k: jnp.inf, bond=lambda k: (1.0, k), dimensions=(2, 3)
        ... )
        >>> swarm.bond(k=3.0)
        (1.0, 3.0)
    """

    interaction: Interaction | Callable[[Atoms], Interaction]
    reach: Callable[..., jax.Array]
    bond: Callable[..., tuple[jax.Array, jax.Array]] | None
    dimensions: tuple[int, ...] = (2, 3)
    of_one_species: bool = True
    of_particles: tuple[str, ...] = ()
    knows_excluded: bool = False
    usual_cutoff: Callable[[spaces.Space, int], jax.Array] | None = None
    of_two: Callable[..., jax.Array] | None = None


def combined(*interactions: Interaction) -> Interaction:
    """Return the sum of interactions, such as a pair and a three-body part.

    Args:
        *interactions: at least one; each has its own neighbors.

    Example:
        >>> pull = molecular.interactions.user_energy(lambda x, cell, params: params["k"] / 2 * jnp.sum(x**2))
        >>> push = molecular.interactions.user_energy(lambda x, cell, params: -params["f"] * jnp.sum(x[:, 0]))
        >>> both, x, params = molecular.interactions.combined(pull, push), jnp.array([[1.0, 0.0]]), {"k": 2.0, "f": 3.0}
        >>> float(both.energy(x, None, params, both.prepare(x, None, params)))
        -2.0
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

    def together(
        names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: Any
    ) -> tuple[jax.Array, ...]:
        parts = [
            part.several(names, position, cell, params, n) for part, n in zip(interactions, neighbors, strict=True)
        ]
        return tuple(functools.reduce(operator.add, each) for each in zip(*parts, strict=True))

    fit_tests = [part.fits for part in interactions if part.fits is not None]
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
        fits=(lambda cell, params: jnp.stack([fits(cell, params) for fits in fit_tests]).all()) if fit_tests else None,
        together=together,
    )


type View = Callable[[jax.Array, Cell, Params], tuple[jax.Array, Cell, Params]]


def viewed(
    interaction: Interaction,
    view: View,
    energy: Callable[[jax.Array], jax.Array] = lambda value: value,
    force: Callable[[jax.Array, int], jax.Array] = lambda vectors, count: vectors,
) -> Interaction:
    """Return an interaction whose arguments are first converted by a function.

    Args:
        interaction: interaction with arguments of its own.
        view: ``(position, cell, params) -> `` those of the interaction.
        energy: ``energy of the interaction -> `` that of the particles.
        force: ``(forces of the interaction, number of particles) -> `` those on the particles, (N, d).
    """
    resize, fits = interaction.sized_like, interaction.fits

    def fits_viewed(cell: Cell, params: Params) -> jax.Array:
        assert fits is not None and cell is not None  # asked for only where there are both
        return fits(*view(jnp.zeros((0, len(cell)), cell.dtype), cell, params)[1:])

    def together(
        names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: Any
    ) -> tuple[jax.Array, ...]:
        values = interaction.several(names, *view(position, cell, params), neighbors)
        back = {"energy": energy, "force": lambda vectors: force(vectors, len(position)), "stress": lambda value: value}
        return tuple(back[name](value) for name, value in zip(names, values, strict=True))

    return Interaction(
        prepare=lambda *moment: interaction.prepare(*view(*moment)),
        refresh=lambda neighbors, *moment: interaction.refresh(neighbors, *view(*moment)),
        energy=lambda *moment: energy(interaction.energy(*view(*moment[:3]), moment[3])),
        force=lambda *moment: force(interaction.force(*view(*moment[:3]), moment[3]), len(moment[0])),
        stress=lambda *moment: interaction.stress(*view(*moment[:3]), moment[3]),
        sized_like=resize and (lambda neighbors: viewed(resize(neighbors), view, energy, force)),
        is_translation_invariant=interaction.is_translation_invariant,
        fits=fits and fits_viewed,
        together=together,
    )


def user_energy(
    energy: Callable[[jax.Array, Cell, Params], jax.Array], *, parameters: Sequence[str] | None = None
) -> Interaction:
    """Return the interaction of an energy function, with force and stress by differentiation.

    ``F = -dE/dx`` and ``stress = (1/V) dE/dstrain`` for ``x -> x (1 + strain)``, cell likewise.

    Args:
        energy: ``(position, cell, params) -> E``, scalar, for positions (N, d) that may lie outside the cell. It must
            be smooth, and in a periodic cell unchanged when a particle moves by a lattice vector:
            `simkit.molecular.spaces.of_cell` gives nearest images. The cell is as the caller has it, and for the
            stress always lattice vectors as rows, (d, d), since a strained box has other angles: take both, as
            ``of_cell`` does. Where the energy of a box differs between its sides and its vectors, the stress is NaN.
        parameters: names (of branches too) of the params that the energy takes; ``None`` passes all.

    Raises:
        UserError: if ``parameters`` is one text; when the energy is first evaluated, if one of them is not among the
            params or has no effect on it.

    Example:
        >>> springs = molecular.interactions.user_energy(lambda x, cell, params: params["k"] / 2 * jnp.sum(x**2))
        >>> x = jnp.array([[1.0, 0.0], [0.0, 2.0]])
        >>> float(springs.energy(x, None, {"k": 2.0}, ())), springs.force(x, None, {"k": 2.0}, ()).tolist()
        (5.0, [[-2.0, -0.0], [-0.0, -4.0]])
    """
    names = None if parameters is None else listed(parameters, "user_energy: parameters")

    def evaluate(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        if names is None:
            return energy(position, cell, params)
        return energy(position, cell, taken(lambda each: energy(position, cell, each), params, names, "user_energy"))

    interaction = differentiated(lambda position, cell, params, _: evaluate(position, cell, params))

    def stress(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        found = interaction.stress(position, cell, params, neighbors)
        if cell is None or cell.ndim == 2:
            return found
        # An energy that takes sides alone would give a wrong stress, or none.
        sides, vectors = (evaluate(position, each, params) for each in (cell, spaces.lattice_vectors(cell)))
        is_same = jnp.abs(sides - vectors) <= SAME_ENERGY * (jnp.abs(sides) + jnp.abs(vectors))
        return jnp.where(is_same, found, jnp.nan)

    # Both forms of the cell are compared for the stress alone.
    return dataclasses.replace(interaction, stress=stress, together=None)


# Relative difference of an energy between the two forms of a cell that rounding explains.
SAME_ENERGY = 1e-4


def differentiated(
    energy: Callable[[jax.Array, Cell, Params, Any], jax.Array],
    prepare: Callable[[jax.Array, Cell, Params], Any] = lambda position, cell, params: (),
    refresh: Callable[[Any, jax.Array, Cell, Params], Any] = lambda neighbors, position, cell, params: neighbors,
    sized_like: Callable[[Any], Interaction] | None = None,
    fits: Callable[[Cell, Params], jax.Array] | None = None,
) -> Interaction:
    """Return the interaction of an energy of the neighbors too, with force and stress by differentiation.

    Args:
        energy: ``(position, cell, params, neighbors) -> E``.
        prepare: as for `Interaction`; by default there are no neighbors.
        refresh: likewise.
        sized_like: likewise.
        fits: likewise.
    """

    def together(
        names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: Any
    ) -> tuple[jax.Array, ...]:
        if "stress" not in names:
            value, slope = jax.value_and_grad(energy)(position, cell, params, neighbors)
            found = {"energy": value, "force": -slope}
            return tuple(found[name] for name in names)
        volume = spaces.volume_of(cell, position.shape[1])
        identity = jnp.eye(position.shape[1], dtype=position.dtype)
        assert cell is not None  # it has a volume

        def strained(position: jax.Array, strain: jax.Array) -> jax.Array:
            vectors, change = spaces.lattice_vectors(cell), identity + strain
            return energy(precise_product(position, change), precise_product(vectors, change), params, neighbors)

        value, (slope, strain) = jax.value_and_grad(strained, (0, 1))(position, jnp.zeros_like(identity))
        found = {"energy": value, "force": -slope, "stress": strain / volume}
        return tuple(found[name] for name in names)

    return Interaction(
        prepare=prepare,
        refresh=refresh,
        energy=energy,
        force=lambda position, cell, params, neighbors: -jax.grad(energy)(position, cell, params, neighbors),
        stress=lambda *moment: together(("stress",), *moment)[0],
        sized_like=sized_like,
        fits=fits,
        together=together,
    )


def taken(energy: Callable[[Params], jax.Array], params: Params, names: Sequence[str], where: str) -> Params:
    """Return the params of these names; while tracing, so that a run has no overhead.

    Args:
        energy: ``params -> E``.
        params: of the system.
        names: those that the energy takes.
        where: name of the function, for messages.

    Raises:
        UserError: if one is not among the params, or has no effect on the energy.
    """
    chosen = {name: params[known(name, params, f"parameter of {where}")] for name in names}
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), chosen)
    if idle := without_effect(energy, shapes):
        problem = f"'{idle[0]}' has no effect on the energy, whose function may not take it; remove it from parameters"
        raise UserError(f"{where}: parameter {problem}")
    return chosen
