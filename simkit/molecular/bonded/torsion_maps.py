"""Maps of two torsions, as CMAP of proteins: energies on a grid of two dihedrals, with a periodic bicubic spline.

The spline is the tensor product of periodic cubic splines through all values of a map, whose second derivatives are
continuous. Its coefficients are those of B-splines, ``C = M E M`` with the inverse M of the circulant matrix of 1/6,
4/6, 1/6, so that every energy of a map may be differentiated by, too.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.errors import UserError
from simkit.molecular.bonded.terms import BondedTerms, Energy, Parameters, Separations, Values, dihedral_of
from simkit.molecular.bonded.topology import Members
from simkit.molecular.interactions.interaction import Interaction

# Least number of values along each axis: of fewer, one value would be met twice by one piece of the spline.
LEAST = 4


class TorsionMaps(BondedTerms):
    """Terms of one grid; ``kinds`` says which map each of them has."""

    def _of_terms(self, name: str, value: jax.Array) -> jax.Array:
        """Return the maps themselves, (S, n, n), which terms share."""
        if value.ndim != 3 or value.shape[1] != value.shape[2] or value.shape[1] < LEAST:
            raise UserError(f"'{name}' has shape {value.shape}; give (S, n, n), n at least {LEAST}: S maps")
        return value


def torsion_map_interaction(
    members: Members, *, parameters: Parameters = ("maps",), kinds: np.ndarray | None = None
) -> Interaction:
    """Return the interaction ``E = sum U(phi, psi)`` over pairs of dihedrals, by maps of energies.

    ``maps[s, i, j]`` is the energy at ``phi = 2 pi i / n`` and ``psi = 2 pi j / n``. CHARMM's own files begin at -pi.

    Args:
        members: atoms of each term, (K, 8): four of phi, then four of psi; or (K, 5) of two dihedrals in a row.
        parameters: the name of the params with the maps, (S, n, n), energy; or ``params -> {name: maps}``.
        kinds: map of each term, (K,) integers; ``None`` for the first one.

    Raises:
        UserError: if a term has another number of atoms; when it is used, if an atom does not exist, or maps have
            another shape.

    Example:
        >>> angles = 2 * np.pi * np.arange(24) / 24
        >>> maps = jnp.asarray(np.cos(angles)[:, None] + np.cos(2 * angles)[None])[None]
        >>> twist = molecular.bonded.torsion_map_interaction([[0, 1, 2, 3, 4]])
        >>> x = jnp.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [2.0, 0.0, 1.0]])
        >>> print(f"{twist.energy(x, None, {'maps': maps}, ()):.3f} = cos(-90 deg) + cos(2 180 deg)")
        1.000 = cos(-90 deg) + cos(2 180 deg)

    Reference: MacKerell, Feig, Brooks, J. Comput. Chem. 25, 1400 (2004), doi:10.1002/jcc.20065.
    """
    return torsion_maps(members, parameters, kinds).interaction()


def torsion_maps(members: Members, parameters: Parameters, kinds: np.ndarray | None) -> TorsionMaps:
    """Return the terms of maps of one grid; arguments as for `torsion_map_interaction`."""
    rows = np.asarray(members, np.int32)
    if rows.ndim != 2 or rows.shape[1] not in (5, 8):
        raise UserError(f"members have shape {rows.shape}; give (K, 8), or (K, 5) of two dihedrals in a row")
    if rows.shape[1] == 5:
        rows = rows[:, [0, 1, 2, 3, 1, 2, 3, 4]]
    which = np.zeros(len(rows), np.int32) if kinds is None else np.asarray(kinds, np.int32)
    made = functools.partial(_energies, which)
    return TorsionMaps(made, lambda phi: phi, rows, parameters, which)


def _energies(kinds: np.ndarray, _: Energy, separations: Separations, values: Values) -> jax.Array:
    """Return the energy of each term, (K,), from the separations of its eight atoms."""
    (maps,) = values.values()
    # The fourth of the seven separations leads from one dihedral to the other.
    return interpolated(maps, kinds, dihedral_of(separations[:3]), dihedral_of(separations[4:]))


def interpolated(maps: jax.Array, kinds: np.ndarray, phi: jax.Array, psi: jax.Array) -> jax.Array:
    """Return the splines of maps at pairs of angles, (K,).

    Args:
        maps: (S, n, n), energy.
        kinds: map of each pair, int32, (K,).
        phi: the first angles, (K,), radians.
        psi: the second ones, (K,).
    """
    count = maps.shape[1]
    inverse = jnp.asarray(_inverse(count), maps.dtype)
    coefficients = precise_product(precise_product(inverse, maps), inverse)
    (rows, along), (columns, across) = (_weights(angle, count) for angle in (phi, psi))
    total = jnp.zeros_like(phi)
    for row, weight in zip(rows, along, strict=True):
        for column, other in zip(columns, across, strict=True):
            total = total + weight * other * coefficients[kinds, row, column]
    return total


def _inverse(count: int) -> np.ndarray:
    """Return M, symmetric, (n, n)."""
    one = np.eye(count)
    return np.linalg.inv((4 * one + np.roll(one, 1, axis=0) + np.roll(one, -1, axis=0)) / 6)


def _weights(angle: jax.Array, count: int) -> tuple[list[jax.Array], list[jax.Array]]:
    """Return the indices of the four B-splines that reach an angle, and their values there, (K,) each."""
    place = angle * (count / (2 * np.pi))
    first = jnp.floor(place)
    t = place - first
    weights = [(1 - t) ** 3, 4 - t**2 * (6 - 3 * t), 1 + t * (3 + t * (3 - 3 * t)), t**3]
    # NaN angles have no index; their weights are NaN.
    start = jnp.where(jnp.isfinite(first), first, 0).astype(jnp.int32)
    return [(start + step) % count for step in (-1, 0, 1, 2)], [weight / 6 for weight in weights]


def steepest(maps: np.ndarray | jax.Array) -> jax.Array:
    """Return a bound of the curvature of each map by one angle, (S,), energy / rad^2, from its differences."""
    maps, step = jnp.asarray(maps), 2 * np.pi / maps.shape[1]
    bends = [jnp.roll(maps, 1, axis) - 2 * maps + jnp.roll(maps, -1, axis) for axis in (1, 2)]
    return jnp.max(jnp.abs(jnp.stack(bends)), axis=(0, 2, 3)) / step**2
