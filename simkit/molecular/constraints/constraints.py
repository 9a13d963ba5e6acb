"""Rigid bonds of particles: positions and velocities that satisfy them, and the groups of particles they join."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_distinct, check_integer, check_shape
from simkit.core.formulation import precise_product
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.bonded.terms import terms_of_atoms
from simkit.molecular.bonded.topology import Members
from simkit.molecular.constraints.multipliers import Find, gram, multipliers, newton, product, settle, solved
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.spaces import Cell, Components

type Lengths = str | Callable[[Params], jax.Array]
# Rigid bonds of one cluster, which are solved as a dense system.
MOST = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of particles joined by rigid bonds in the same way: C clusters of n particles and m bonds.

    Attributes:
        atoms: particles of each cluster, int32, (n, C).
        bonds: particles of each bond as rows of ``atoms``, int32, (m, 2).
        rows: place of each bond in the list of lengths, int32, (m, C).
        lengths: ``params -> `` lengths, one number or a list of them.
        find: method by which multipliers are computed.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    rows: np.ndarray
    lengths: Callable[[Params], jax.Array]
    find: Find

    @functools.cached_property
    def members(self) -> np.ndarray:
        """Both particles of each bond, (2, m, C)."""
        return self.atoms[self.bonds.T]

    def vectors(self, points: jax.Array) -> Components:
        """Return the differences of the rows of an array (N, d) over each bond, d arrays (m, C)."""
        first, second = (jnp.asarray(ends) for ends in self.members)
        return tuple(
            x.at[second].get(mode="promise_in_bounds") - x.at[first].get(mode="promise_in_bounds")
            for x in jnp.unstack(points, axis=1)
        )

    def squared(self, params: Params, dtype: jnp.dtype) -> jax.Array:
        """Return the squared lengths, (m, C)."""
        lengths = jnp.asarray(self.lengths(params), dtype)
        if lengths.ndim:
            if (last := self.rows.max()) >= len(lengths):
                raise UserError(f"there are {len(lengths)} lengths of rigid bonds; give one for each of {last + 1}")
            lengths = lengths[jnp.asarray(self.rows)]
        return jnp.broadcast_to(lengths**2, self.rows.shape)

    def coupling(self, mobility: jax.Array) -> jax.Array:
        """Return ``G_kl = sum_a B_ka B_la / m_a``, (m, m, C), of inverse masses (N,)."""
        size, number = len(self.bonds), self.atoms.shape[1]
        ends = mobility[jnp.asarray(self.members)].sum(axis=0)
        first, second = np.nonzero((self.incidence @ self.incidence.T) * (1 - np.eye(size)))
        both = self.incidence[first] * self.incidence[second]
        shared = mobility[jnp.asarray(self.atoms[np.abs(both).argmax(axis=1)])] if len(both) else jnp.zeros((0, number))
        matrix = jnp.zeros((size, size, number), mobility.dtype)
        matrix = matrix.at[np.arange(size), np.arange(size)].set(ends)
        return matrix.at[first, second].set(both.sum(axis=1)[:, None].astype(mobility.dtype) * shared)

    @functools.cached_property
    def incidence(self) -> np.ndarray:
        """B, (m, n): 1 for the second particle of each bond, -1 for the first."""
        table = np.zeros((len(self.bonds), len(self.atoms)), np.int32)
        table[np.arange(len(self.bonds)), self.bonds[:, 0]] = -1
        table[np.arange(len(self.bonds)), self.bonds[:, 1]] = 1
        return table

    @functools.cached_property
    def routes(self) -> np.ndarray:
        """Signs of the bonds that lead from the first particle to each, (n, m)."""
        table, reached = np.zeros((len(self.atoms), len(self.bonds))), {0}
        while len(reached) < len(self.atoms):
            for k, (first, second) in enumerate(self.bonds.tolist()):
                for start, end, sign in ((first, second, 1), (second, first, -1)):
                    if start in reached and end not in reached:
                        table[end] = table[start]
                        table[end, k] = sign
                        reached.add(end)
        return table


@dataclasses.dataclass(frozen=True, eq=False)
class Constraints:
    """Rigid bonds; see `rigid_bonds`, `rigid_water` and `combined`.

    Positions are those of whole molecules: the atoms of a bond are not on opposite sides of a periodic cell.

    Attributes:
        clusters: clusters of atoms by their shape.

    Example:
        >>> rod = molecular.constraints.rigid_bonds([[0, 1]], "length")
        >>> x, ones, params = jnp.array([[0.0, 0.0], [2.2, 0.0]]), jnp.ones(2), {"length": 2.0}
        >>> x = x + rod.shift(x, x, ones, params)
        >>> isinstance(rod, molecular.constraints.Constraints), np.round(x, 4).tolist(), rod.count
        (True, [[0.1, 0.0], [2.1, 0.0]], 1)
    """

    clusters: tuple[Clusters, ...]

    @functools.cached_property
    def count(self) -> int:
        """Number of rigid bonds, each of which removes one degree of freedom."""
        return sum(each.rows.size for each in self.clusters)

    def lengths(self, params: Params) -> list[jax.Array]:
        """Return the lengths, as they are given for each set of clusters."""
        return [each.lengths(params) for each in self.clusters]

    @functools.cached_property
    def bonds(self) -> np.ndarray:
        """Atoms of all rigid bonds, (K, 2), in the order of the clusters."""
        return np.concatenate([each.members.reshape(2, -1) for each in self.clusters], axis=1).T

    def check(self, count: int, dimension: int, frozen: np.ndarray | None = None) -> None:
        """Refuse rigid bonds that particles cannot have.

        Args:
            count: number of particles.
            dimension: of space.
            frozen: which particles do not move, (N,), or ``None``.

        Raises:
            UserError: if an atom does not exist, a bond joins frozen particles, water has one or is not in three
                dimensions, or a cluster has more bonds than degrees of freedom besides its rigid motion.
        """
        check_integer("a particle of rigid bonds", self.bonds.max(), 0, count - 1)
        for each in self.clusters:
            atoms, bonds = len(each.atoms), len(each.bonds)
            held = np.zeros(each.atoms.shape, bool) if frozen is None else frozen[each.atoms]
            if each.find is settle and (dimension != 3 or held.any()):
                raise UserError("rigid_water needs three dimensions and no frozen atom of it; give rigid_bonds")
            if (both := held[each.bonds].all(axis=1)).any():
                pair = each.members[:, *np.argwhere(both)[0]].tolist()
                raise UserError(f"the rigid bond {pair} joins two frozen particles; leave it out")
            # Up to d + 1 particles may have all their distances rigid.
            if atoms > dimension + 1 and bonds > dimension * atoms - dimension * (dimension + 1) // 2:
                names = each.atoms[:, 0].tolist()
                raise UserError(f"the {atoms} particles {names} have {bonds} rigid bonds, more than keep them rigid")

    def shift(self, moved: jax.Array, old: jax.Array, mobility: jax.Array, params: Params) -> jax.Array:
        """Return how far the forces of rigid bonds, along the old bonds, move the particles, (N, d).

        Differentiable any number of times by the implicit function theorem.

        Args:
            moved: positions after a move without these forces, (N, d).
            old: positions before, (N, d).
            mobility: inverse masses, zero for frozen particles, (N,).
            params: with the lengths.

        Reference: Ryckaert, Ciccotti, Berendsen, J. Comput. Phys. 23, 327 (1977), doi:10.1016/0021-9991(77)90098-5.
        """

        def impulses(each: Clusters) -> Components:
            before = each.vectors(old)
            values = each.vectors(moved), before, each.coupling(mobility), each.squared(params, moved.dtype)
            strengths = multipliers(each.find, *values)
            return tuple(strengths * s for s in before)

        return self._on_particles(impulses, mobility, moved)

    def tangent(self, velocity: jax.Array, position: jax.Array, mobility: jax.Array) -> jax.Array:
        """Return velocities without the components that would change rigid bonds, (N, d).

        The projection is orthogonal in the metric of the kinetic energy.

        Args:
            velocity: (N, d).
            position: with rigid bonds of their lengths, (N, d).
            mobility: inverse masses, zero for frozen particles, (N,).

        Reference: Andersen, J. Comput. Phys. 52, 24 (1983), doi:10.1016/0021-9991(83)90014-1.
        """

        def impulses(each: Clusters) -> Components:
            bonds = each.vectors(position)
            rates = product(bonds, each.vectors(velocity))
            strengths = solved(gram(bonds, each.coupling(mobility)), -rates)
            return tuple(strengths * r for r in bonds)

        return velocity + self._on_particles(impulses, mobility, velocity)

    def _on_particles(
        self, impulses: Callable[[Clusters], Components], mobility: jax.Array, like: jax.Array
    ) -> jax.Array:
        """Return the sum of the impulses on each particle over its mass, (N, d)."""
        table = jnp.asarray(terms_of_atoms(self.bonds, len(like)))
        of_clusters = [impulses(each) for each in self.clusters]
        columns = []
        for axis in range(like.shape[1]):
            flat = jnp.concatenate([each[axis].ravel() for each in of_clusters])
            both = jnp.concatenate([-flat, flat, jnp.zeros(1, flat.dtype)])
            columns.append(both.at[table].get(mode="promise_in_bounds").sum(axis=0))
        return mobility[:, None] * jnp.stack(columns, axis=-1)

    def error(self, position: jax.Array, params: Params) -> jax.Array:
        """Return the largest relative error of the length of a rigid bond.

        Args:
            position: (N, d).
            params: with the lengths.
        """
        largest = []
        for each in self.clusters:
            bonds, squared = each.vectors(position), each.squared(params, position.dtype)
            largest.append(jnp.max(jnp.abs(product(bonds, bonds) / squared - 1)) / 2)
        return jnp.max(jnp.stack(largest))

    def whole(self, position: jax.Array, cell: Cell) -> jax.Array:
        """Return positions whose rigid bonds join nearest images, each particle moved by lattice vectors, (N, d).

        Args:
            position: (N, d).
            cell: as for `simkit.molecular.spaces.of_cell`.
        """
        if cell is None:
            return position
        nearest = spaces.of_cell(cell, position.shape[1]).nearest_image
        for each in self.clusters:
            bonds = each.vectors(position)
            jumps = jnp.stack([near - far for near, far in zip(nearest(bonds), bonds, strict=True)], axis=-1)
            routes = jnp.asarray(each.routes, position.dtype)
            moves = precise_product(routes, jumps.reshape(len(routes[0]), -1)).reshape(*each.atoms.shape, -1)
            position = position.at[jnp.asarray(each.atoms)].add(moves, unique_indices=True)
        return position

    def groups(self, count: int) -> np.ndarray:
        """Return the particles that move as one with a cell, (M, G): those of each cluster, or a single one.

        Args:
            count: number of particles, N, which marks places without a particle.
        """
        from scipy import sparse

        graph = sparse.coo_matrix((np.ones(len(self.bonds)), self.bonds.T), shape=(count, count))
        labels = sparse.csgraph.connected_components(graph, directed=False)[1]
        return terms_of_atoms(labels[:, None], labels.max() + 1)


@arguments(iterations=whole("iterations of Newton's method for the positions", low=1, high=100))
def rigid_bonds(
    bonds: Members, lengths: Lengths, *, kinds: Sequence[int] | None = None, iterations: int = 6
) -> Constraints:
    """Return bonds of constant length: SHAKE and RATTLE, each cluster of coupled bonds solved by Newton's method.

    In dynamics (`simkit.molecular.dynamics.motion`, ``constraints=``) forces along the bonds before a move keep their
    lengths after it, and velocities their rates zero. Bonds that share atoms are one cluster, with a dense system of as
    many unknowns as it has bonds; clusters alike are solved together. Six iterations reach round-off from relative
    errors of 0.3; if the lengths are not reached, a run ends with the status ``JOINTS_APART``. Three atoms in a line
    cannot have all their distances rigid: the system is singular, and the result NaN.

    Args:
        bonds: pairs of particles, (K, 2), such as ``topology.bonds`` or ``topology.pairs_within("angles")``.
        lengths: name of the param, or ``params -> lengths``: one number, or one for each of the ``kinds``, or without
            these for each bond.
        kinds: kind of each bond, (K,) integers.
        iterations: of Newton's method for the positions.

    Raises:
        UserError: if a pair is given twice or has one particle twice, or a cluster has more than 64 bonds.

    Example:
        >>> bonds = molecular.bonded.chain(3).bonds
        >>> values = {"length": 1.0, "time_step": 0.01, "mass": 1.0, "temperature": 1.0}
        >>> chain = molecular.dynamics.velocity_verlet(
        ...     molecular.interactions.user_energy(lambda x, cell, params: 0.0 * jnp.sum(x)),
        ...     lambda params, key: jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]),
        ...     params=values,
        ...     constraints=molecular.constraints.rigid_bonds(bonds, "length"),
        ... )
        >>> x = simkit.run(chain, steps=100)["position"][-1].values
        >>> print(np.linalg.norm(np.diff(x, axis=0), axis=1).round(4))
        [1. 1.]

    Reference: Ryckaert, Ciccotti, Berendsen, J. Comput. Phys. 23, 327 (1977), doi:10.1016/0021-9991(77)90098-5;
    Andersen, J. Comput. Phys. 52, 24 (1983), doi:10.1016/0021-9991(83)90014-1.
    """
    pairs = np.asarray(bonds, np.int32)
    check_shape("bonds", pairs, "pairs of particles, (K, 2)", (None, 2))
    if pairs.min() < 0 or (pairs[:, 0] == pairs[:, 1]).any():
        raise UserError("rigid bonds join two different particles, counted from 0; correct the pairs")
    check_distinct("bonds", map(tuple, np.sort(pairs, axis=1).tolist()))
    if kinds is not None:
        check_shape("kinds", kinds, "one for each of the bonds", (len(pairs),))
    rows = np.arange(len(pairs), dtype=np.int32) if kinds is None else np.asarray(kinds, np.int32)
    find = functools.partial(newton, iterations=iterations)
    of_params = _named(lengths)
    return Constraints(
        tuple(Clusters(atoms, local, rows[places], of_params, find) for atoms, local, places in _clustered(pairs))
    )


def rigid_water(
    molecules: Members, lengths: Callable[[Params], tuple[jax.Array, jax.Array]] | tuple[str, str]
) -> Constraints:
    """Return rigid molecules of three atoms with two equal bonds, such as water, by SETTLE: positions in closed form.

    Args:
        molecules: the atom between both bonds and the two others of each molecule, (M, 3): oxygen, hydrogen, hydrogen.
        lengths: names of the params, or ``params -> (bond, other)``: the length of both bonds, and the distance of
            their ends. The masses of the two ends must be equal, otherwise positions become NaN.

    Raises:
        UserError: if an atom occurs twice.

    Example:
        >>> water = molecular.bonded.molecule(3, [[0, 1], [0, 2]]).copies(2)
        >>> rigid = molecular.constraints.rigid_water(water.angles[:, [1, 0, 2]], ("bond", "other"))
        >>> rigid.count
        6

    Reference: Miyamoto, Kollman, J. Comput. Chem. 13, 952 (1992), doi:10.1002/jcc.540130805.
    """
    atoms = np.asarray(molecules, np.int32)
    check_shape("molecules", atoms, "the three atoms of each, (M, 3)", (None, 3))
    check_integer("molecules", atoms.min(), 0)
    check_distinct("molecules", atoms.ravel().tolist())

    def both(params: Params) -> jax.Array:
        pair = lengths(params) if callable(lengths) else tuple(params[name] for name in lengths)
        return jnp.stack([jnp.asarray(each) for each in pair])

    rows = np.broadcast_to(np.array([[0], [0], [1]], np.int32), (3, len(atoms)))
    return Constraints((Clusters(atoms.T, np.array([[0, 1], [0, 2], [1, 2]], np.int32), rows, both, settle),))


def combined(*constraints: Constraints) -> Constraints:
    """Return all of several rigid bonds, such as those of a solvent and a molecule in it.

    Args:
        *constraints: without common particles.

    Raises:
        UserError: if a particle is in two of them.

    Example:
        >>> water = molecular.constraints.rigid_water([[0, 1, 2]], ("bond", "other"))
        >>> rod = molecular.constraints.rigid_bonds([[3, 4]], "length")
        >>> molecular.constraints.combined(water, rod).count
        4
    """
    together = Constraints(tuple(cluster for each in constraints for cluster in each.clusters))
    atoms, number = np.unique(np.concatenate([each.atoms.ravel() for each in together.clusters]), return_counts=True)
    if (number > 1).any():
        raise UserError(f"particle {atoms[number > 1][0]} is in two constraints; give its bonds to one of them")
    return together


def _named(lengths: Lengths) -> Callable[[Params], jax.Array]:
    return lengths if callable(lengths) else lambda params: params[lengths]


def _clustered(pairs: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return atoms (n, C), bonds (m, 2) and places (m, C) of the pairs for each shape of cluster."""
    from scipy import sparse

    atoms, ends = np.unique(pairs, return_inverse=True)
    ends = np.sort(ends.reshape(-1, 2), axis=1)
    graph = sparse.coo_matrix((np.ones(len(ends)), ends.T), shape=(len(atoms),) * 2)
    labels = sparse.csgraph.connected_components(graph, directed=False)[1]
    # Atoms by cluster and in their order; the rank of each within its cluster.
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    first = np.cumsum(sizes) - sizes
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - np.repeat(first, sizes)
    cluster = labels[ends[:, 0]]
    by_cluster = np.lexsort((*rank[ends].T[::-1], cluster))
    numbers = np.bincount(cluster, minlength=len(sizes))
    if numbers.max() > MOST:
        raise UserError(
            f"{numbers.max()} rigid bonds are coupled, more than {MOST}; keep fewer rigid, such as those to light atoms"
        )
    start = np.cumsum(numbers) - numbers
    found = []
    for size, number in np.unique(np.stack([sizes, numbers], axis=1), axis=0).tolist():
        alike = np.flatnonzero((sizes == size) & (numbers == number))
        places = by_cluster[start[alike][:, None] + np.arange(number)]
        members = atoms[order[first[alike][:, None] + np.arange(size)]]
        shapes, kind = np.unique(rank[ends[places]].reshape(len(alike), -1), axis=0, return_inverse=True)
        for index, shape in enumerate(shapes):
            here = kind.ravel() == index
            found.append((members[here].T.astype(np.int32), shape.reshape(-1, 2).astype(np.int32), places[here].T))
    return found


def projected(
    interaction: Interaction, constraints: Constraints, stiffness: Callable[[Params], jax.Array]
) -> Interaction:
    """Return the interaction of positions that rigid bonds project, for minimizers.

        E(x) = U(p(x)) + k/2 |x - p(x)|^2

    where p(x) has the lengths of the rigid bonds, moved from x along the bonds. At a minimum x = p(x), and U is minimal
    among the positions that satisfy the rigid bonds; its derivatives by lengths are those of the constrained minimum.

    Args:
        interaction: U.
        constraints: rigid bonds.
        stiffness: ``params -> k``, energy / length^2; that of the scale of a relaxation.

    Example:
        >>> push = molecular.interactions.user_energy(lambda x, cell, params: -jnp.sum(x[1] * jnp.array([3.0, 4.0])))
        >>> pull = molecular.interactions.user_energy(lambda x, cell, params: 50 * jnp.sum(x[0] ** 2))
        >>> rod = molecular.constraints.rigid_bonds([[0, 1]], "length")
        >>> both = molecular.interactions.combined(push, pull)
        >>> held = molecular.relaxation.relaxation(
        ...     molecular.constraints.projected(both, rod, lambda params: 10.0),
        ...     lambda params, key: jnp.array([[0.0, 0.0], [1.0, 0.0]]),
        ...     params={"length": 2.0},
        ...     scale=lambda params: molecular.minimizers.Scale(1.0, 10.0),
        ...     force_tolerance=1e-5,
        ... )
        >>> x = simkit.run(held, steps=200)["position"][-1].values
        >>> print((x[1] - x[0]).round(3), "of length 2")
        [1.2 1.6] of length 2
    """

    def projection(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        constraints.check(len(position), position.shape[1])
        together = constraints.whole(position, cell)
        return together + constraints.shift(together, together, jnp.ones_like(position[:, 0]), params)

    def energy(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        there = projection(position, cell, params)
        away = constraints.whole(position, cell) - there
        return interaction.energy(there, cell, params, neighbors) + stiffness(params) / 2 * jnp.sum(away**2)

    def force(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        there, back = jax.vjp(lambda x: projection(x, cell, params), position)
        spring = stiffness(params) * (constraints.whole(position, cell) - there)
        return back(interaction.force(there, cell, params, neighbors) + spring)[0] - spring

    def stress(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        # Particles are strained before they are projected.
        there, volume = projection(position, cell, params), spaces.volume_of(cell, position.shape[1])
        inner = precise_product(there.T, interaction.force(there, cell, params, neighbors))
        outer = precise_product(constraints.whole(position, cell).T, force(position, cell, params, neighbors))
        return interaction.stress(there, cell, params, neighbors) + (inner - outer) / volume

    resize = interaction.sized_like
    return Interaction(
        prepare=lambda position, cell, params: interaction.prepare(projection(position, cell, params), cell, params),
        refresh=lambda neighbors, position, cell, params: interaction.refresh(
            neighbors, projection(position, cell, params), cell, params
        ),
        energy=energy,
        force=force,
        stress=stress,
        sized_like=resize and (lambda neighbors: projected(resize(neighbors), constraints, stiffness)),
        is_translation_invariant=interaction.is_translation_invariant,
        fits=interaction.fits,
    )
