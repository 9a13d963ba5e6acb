"""Interactions of bonds, angles and dihedrals: energy, force and stress of a list of terms.

A term of m atoms depends on the m - 1 separations of atoms that follow each other, ``v_a = x_(a+1) - x_a`` at the
nearest image. Its energy is differentiated by them; the force on atom a is ``dE/dv_a - dE/dv_(a-1)``, and the
derivative by strain ``sum v_a dE/dv_a``. Each particle gathers the forces of its terms by a static table, so that no
two terms write to one place: two runs give the same bytes on every device.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer, check_shape
from simkit.core.simulation import Params
from simkit.errors import UserError, listed
from simkit.molecular import spaces
from simkit.molecular.bonded.potentials import AngularPotential
from simkit.molecular.bonded.topology import Members
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.potentials import PairPotential
from simkit.molecular.spaces import Cell, Components, Space

type Separations = tuple[Components, ...]
type Energy = Callable[..., jax.Array]
type Values = Mapping[str, jax.Array]
type Parameters = Sequence[str] | Callable[[Params], Values]
type OfSeparations = Callable[[Energy, Separations, Values], jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class BondedTerms:
    """Terms of one energy; see `bond_interaction`, `angle_interaction` and `dihedral_interaction`.

    Attributes:
        energy_of: ``(U, separations, values) -> `` energies of the terms, (K,).
        energy: U, elementwise.
        members: atoms of each term, int32, (K, m).
        parameters: names of params, or ``params -> {name: value}``.
        kinds: kind of each term, int32, (K,), or ``None``.
        is_short: whether separations of half the smallest width of the cell or more make all results NaN.
    """

    energy_of: OfSeparations
    energy: Energy
    members: np.ndarray
    parameters: Parameters
    kinds: np.ndarray | None
    is_short: bool = True

    def interaction(self) -> Interaction:
        """Return the `Interaction` record."""
        return Interaction(
            prepare=lambda position, cell, params: (),
            refresh=lambda neighbors, position, cell, params: neighbors,
            energy=lambda position, cell, params, _: self.energies(position, cell, params).sum(),
            force=lambda position, cell, params, _: self.force(position, cell, params),
            stress=lambda position, cell, params, _: self.stress(position, cell, params),
            is_translation_invariant=True,
        )

    def energies(self, position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        """Return the energy of each term, (K,)."""
        separations = self._separations(position, spaces.of_cell(cell, position.shape[1]))
        return self.energy_of(self.energy, separations, self._values(params, position))

    def force(self, position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        """Return the force on each particle, (N, d)."""
        _, slopes = self._slopes(position, cell, params)
        count, size = len(position), self.members.shape[1]
        zero = jnp.zeros(1, position.dtype)
        table = jnp.asarray(terms_of_atoms(self.members, count))
        columns = []
        for axis in range(position.shape[1]):
            along = [slope[axis] for slope in slopes]
            of_members = [along[0], *(along[a] - along[a - 1] for a in range(1, size - 1)), -along[-1]]
            flat = jnp.concatenate([*of_members, zero])
            columns.append(flat.at[table].get(mode="promise_in_bounds").sum(axis=0))
        return jnp.stack(columns, axis=-1)

    def stress(self, position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        """Return the stress, (d, d).

        Raises:
            UserError: in free space.
        """
        volume = spaces.volume_of(cell, position.shape[1])
        separations, slopes = self._slopes(position, cell, params)
        rows = range(position.shape[1])
        return (
            jnp.stack(
                [
                    jnp.stack(
                        [sum(jnp.sum(v[a] * s[b]) for v, s in zip(separations, slopes, strict=True)) for b in rows]  # type: ignore[misc]
                    )
                    for a in rows
                ]
            )
            / volume
        )

    def _slopes(self, position: jax.Array, cell: Cell, params: Params) -> tuple[Separations, Separations]:
        """Return the separations, and the derivatives of the energy by them, (K,) each."""
        separations = self._separations(position, spaces.of_cell(cell, position.shape[1]))
        values = self._values(params, position)
        slopes = jax.grad(lambda v: self.energy_of(self.energy, v, values).sum())(separations)
        return separations, slopes

    def _separations(self, position: jax.Array, space: Space) -> Separations:
        if self.members.size:
            check_integer("an atom of bonded terms", self.members.max(), 0, len(position) - 1)
        columns = [
            [x.at[jnp.asarray(atoms)].get(mode="promise_in_bounds") for x in jnp.unstack(position, axis=1)]
            for atoms in self.members.T
        ]
        separations = tuple(
            space.nearest_image(tuple(x - y for x, y in zip(after, before, strict=True)))
            for before, after in itertools.pairwise(columns)
        )
        if not (self.is_short and space.is_periodic):
            return separations
        # The nearest image need not be the bonded one beyond: NaN instead of a wrong value.
        limit = (space.widths.min() / 2) ** 2
        is_far = [sum(x * x for x in v) >= limit for v in separations]
        return tuple(tuple(jnp.where(far, jnp.nan, x) for x in v) for far, v in zip(is_far, separations, strict=True))

    def _values(self, params: Params, position: jax.Array) -> Values:
        given = self.parameters
        values = given(params) if callable(given) else {name: params[name] for name in given}
        return {name: self._of_terms(name, jnp.asarray(value, position.dtype)) for name, value in values.items()}

    def _of_terms(self, name: str, value: jax.Array) -> jax.Array:
        """Return a value of each term, one number or (K,)."""
        if not value.ndim:
            return value
        if self.kinds is None:
            check_shape(f"'{name}'", value, "one number, or one for each of the terms", (len(self.members),))
            return value
        return value[jnp.asarray(self.kinds)]


def terms_of_atoms(members: np.ndarray, count: int) -> np.ndarray:
    """Return where each atom finds its forces among those of all members, (M, N); one past the last for none.

    Args:
        members: atoms of each term, (K, m); the forces are those on the first members, then on the second, and so on.
        count: number of atoms, N.
    """
    atoms = members.T.ravel()
    order = np.argsort(atoms, kind="stable")
    counts = np.bincount(atoms, minlength=count)
    rank = np.arange(len(atoms)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((max(int(counts.max(initial=0)), 1), count), len(atoms), np.int32)
    table[rank, atoms[order]] = order
    return table


def bond_interaction(
    potential: PairPotential,
    bonds: Members,
    *,
    parameters: Parameters = ("stiffness", "length"),
    kinds: Sequence[int] | None = None,
) -> Interaction:
    """Return the interaction ``E = sum U(r)`` over bonds.

    In a periodic cell a bond joins nearest images; one that is as long as half the smallest width of the cell makes
    energy, force and stress NaN.

    Args:
        potential: U, a bond such as `harmonic_bond`, or any pair potential.
        bonds: pairs of atoms, (K, 2).
        parameters: names of the params of the potential; or ``params -> {name: value}``. A value is one number, or one
            for each of the ``kinds``, or without these for each bond.
        kinds: kind of each bond, (K,) integers.

    Raises:
        UserError: if a bond has another number of atoms; when it is used, if an atom does not exist.

    Example:
        >>> bond = molecular.bonded.bond_interaction(molecular.bonded.harmonic_bond(), [[0, 1]])
        >>> x, params = jnp.array([[0.0, 0.0, 0.0], [1.5, 0.0, 0.0]]), {"stiffness": 8.0, "length": 1.0}
        >>> float(bond.energy(x, None, params, ())), bond.force(x, None, params, ())[0].tolist()
        (1.0, [4.0, 0.0, 0.0])
    """
    return bonded_terms(potential.energy, bonds, 2, parameters, kinds).interaction()


def angle_interaction(
    potential: AngularPotential,
    angles: Members,
    *,
    parameters: Parameters = ("stiffness", "angle"),
    kinds: Sequence[int] | None = None,
) -> Interaction:
    """Return the interaction ``E = sum U(theta)`` over the angles of two bonds.

    The force is smooth at theta = 0 and pi for an energy whose slope is zero there; for any other it is zero in the
    point itself. If two of the atoms coincide there is no angle, and the energy is NaN.

    Args:
        potential: U, such as `harmonic_angle`.
        angles: triples of atoms with the vertex in the middle, (K, 3).
        parameters: as for `bond_interaction`.
        kinds: kind of each angle, (K,) integers.

    Raises:
        UserError: as for `bond_interaction`.

    Example:
        >>> bend = molecular.bonded.angle_interaction(molecular.bonded.harmonic_angle(), [[1, 0, 2]])
        >>> x, params = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), {"stiffness": 2.0, "angle": np.pi / 2 - 1}
        >>> print(f"{bend.energy(x, None, params, ()):.3f}")
        1.000
    """
    return bonded_terms(potential.energy, angles, 3, parameters, kinds).interaction()


def dihedral_interaction(
    potential: AngularPotential,
    dihedrals: Members,
    *,
    parameters: Parameters = ("strength", "phase"),
    kinds: Sequence[int] | None = None,
) -> Interaction:
    """Return the interaction ``E = sum U(phi)`` over dihedrals or impropers, in three dimensions.

    ``phi = atan2(|b2| b1 . (b2 x b3), (b1 x b2) . (b2 x b3))`` of the bonds b1, b2 and b3, signed, zero in cis: stable
    at all angles. If three atoms in a row lie on a line, to within rounding, there is no dihedral: it then counts as
    zero, without a force. Near a line forces grow without bound, as the inverse of its sine: keep angles away from pi.

    Args:
        potential: U, such as `periodic_dihedral`.
        dihedrals: quadruples of atoms, (K, 4).
        parameters: as for `bond_interaction`.
        kinds: kind of each dihedral, (K,) integers.

    Raises:
        UserError: as for `bond_interaction`.

    Example:
        >>> twist = molecular.bonded.dihedral_interaction(molecular.bonded.periodic_dihedral(1), [[0, 1, 2, 3]])
        >>> x = jnp.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
        >>> print(f"{twist.energy(x, None, {'strength': 1.0, 'phase': np.pi / 2}, ()):.3f}")
        2.000

    Reference: Blondel, Karplus, J. Comput. Chem. 17, 1132 (1996).
    """
    return bonded_terms(potential.energy, dihedrals, 4, parameters, kinds).interaction()


def bonded_terms(
    energy: Energy, members: Members, size: int, parameters: Parameters, kinds: Sequence[int] | np.ndarray | None
) -> BondedTerms:
    """Return the terms of one energy of the distance of two atoms, the angle of three or the dihedral of four.

    Args:
        energy: U, elementwise.
        members: atoms of each term, (K, m).
        size: m, 2 to 4.
        parameters: as for `bond_interaction`.
        kinds: as for `bond_interaction`.

    Raises:
        UserError: as for `bond_interaction`.
    """
    array = np.asarray(members, np.int32).reshape(-1, size) if len(members) == 0 else np.asarray(members, np.int32)
    check_shape("members", array, f"(K, {size}), the {size} atoms of each term", (len(array), size))
    names = parameters if callable(parameters) else listed(parameters, "parameters")
    energy_of = {2: _of_distance, 3: _of_angle, 4: _of_dihedral}[size]
    return BondedTerms(energy_of, energy, array, names, None if kinds is None else np.asarray(kinds, np.int32))


def _dot(a: Components, b: Components) -> jax.Array:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), a[0] * b[0])


def _cross(a: Components, b: Components) -> Components:
    if len(a) == 2:
        return (a[0] * b[1] - a[1] * b[0],)
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _root(squared: jax.Array) -> jax.Array:
    """Return the square root, with the derivative zero at zero; NaN stays NaN."""
    return jnp.where(squared == 0, 0, jnp.sqrt(jnp.where(squared == 0, 1, squared)))


def _of_distance(energy: Energy, separations: Separations, values: Values) -> jax.Array:
    """Return the energy of the distance of two atoms, (K,)."""
    squared = _dot(separations[0], separations[0])
    r = _root(squared)
    return _through(energy, squared / 2, r, r, jnp.ones_like(r), values, near=0.0)


def _of_angle(energy: Energy, separations: Separations, values: Values) -> jax.Array:
    first, second = tuple(-x for x in separations[0]), separations[1]
    normal = _cross(first, second)
    # NaN where two atoms coincide.
    inverse = 1 / jnp.sqrt(_dot(first, first) * _dot(second, second))
    cosine, sine = _dot(first, second) * inverse, _root(_dot(normal, normal)) * inverse
    near = float(jnp.finfo(cosine.dtype).eps) ** (1 / 3)
    return _through(energy, cosine, jnp.atan2(sine, cosine), -sine, -cosine, values, near)


def dihedral_of(separations: Separations) -> jax.Array:
    """Return the signed angle of three bonds in a row, (K,), radians; a constant 0 where two of them are parallel."""
    first, second, third = separations
    if len(first) != 3:
        raise UserError("dihedrals need three dimensions")
    normal, other = _cross(first, second), _cross(second, third)
    x, y = _dot(normal, other), _root(_dot(second, second)) * _dot(first, other)
    is_line = (_is_rounding(normal, first, second) | _is_rounding(other, second, third)) & ~jnp.isnan(x + y)
    return jnp.atan2(jnp.where(is_line, 0, y), jnp.where(is_line, 1, x))


def _is_rounding(normal: Components, a: Components, b: Components) -> jax.Array:
    """Return whether a product of vectors a and b is that of parallel ones, to within rounding."""
    rounding = 8 * float(jnp.finfo(normal[0].dtype).eps)
    return _dot(normal, normal) <= rounding**2 * _dot(a, a) * _dot(b, b)


def _of_dihedral(energy: Energy, separations: Separations, values: Values) -> jax.Array:
    return energy(dihedral_of(separations), **values)


def _through(
    energy: Energy,
    smooth: jax.Array,
    coordinate: jax.Array,
    slope: jax.Array,
    curvature: jax.Array,
    values: Values,
    near: float,
) -> jax.Array:
    """Return ``U(q)``, whose derivative by q goes through a function u(q) that is smooth where q is not.

    A distance has no derivative at zero, nor has an angle at 0 and pi, but ``r^2 / 2`` and ``cos(theta)`` do:
    ``dU = (U' / u') du``, with the limit ``U'' / u''`` where u' vanishes and, as for a smooth energy, U' does.

    Args:
        energy: U.
        smooth: u.
        coordinate: q.
        slope: u'(q).
        curvature: u''(q).
        values: of U.
        near: slope up to which the limit is taken: above, rounding of U' matters less than that of the limit.
    """

    @jax.custom_jvp
    def through(smooth: jax.Array, q: jax.Array, slope: jax.Array, curvature: jax.Array, values: Values) -> jax.Array:
        del smooth, slope, curvature
        return jnp.broadcast_to(energy(q, **values), q.shape)

    @through.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
        _, q, slope, curvature, values = primals
        moved, _, _, _, changes = tangents
        one = jnp.ones_like(q)

        def steepness(q: jax.Array) -> jax.Array:
            return jax.jvp(lambda q: jnp.broadcast_to(energy(q, **values), q.shape), (q,), (one,))[1]

        first, second = jax.jvp(steepness, (q,), (one,))
        size, rounding = jnp.abs(slope), 8 * jnp.finfo(q.dtype).eps
        is_limit = (size <= near) & (jnp.abs(first) <= jnp.abs(second) * (2 * size + rounding))
        regular = jnp.where(is_limit | (size == 0), 1, slope)
        ratio = jnp.where(is_limit, second / jnp.where(is_limit, curvature, 1), first / regular)
        value, change = jax.jvp(lambda values: jnp.broadcast_to(energy(q, **values), q.shape), (values,), (changes,))
        return value, ratio * moved + change

    return through(smooth, coordinate, slope, curvature, dict(values))
