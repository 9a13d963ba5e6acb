"""Rigid motions, translations and rotations, and those among them that leave the energy unchanged."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

# A rotation about the axis of a linear molecule moves nothing; what is left of it after the others is round-off.
NOTHING_LEFT = 1e-4
# Largest force that a motion of length one brings up and that counts as round-off, in units of the rounding unit times
# the force that a random displacement of length one does. Measured in either precision: at most 0.4 for clusters in two
# and three dimensions, 0 for packings of soft spheres in a cell.
ROUNDING = 30
# Sweeps of the Jacobi rotations below, which converge quadratically: six vectors need four or five.
SWEEPS = 8


class RigidMotions(NamedTuple):
    """Rigid motions of a body, ``u_i = v + (r_i - r_0) W``, W antisymmetric.

    Attributes:
        displacement: of every particle, (k, N, d); of the body's particles, orthonormal, or zero where a rotation
            moves none of them.
        turn: W, (k, d, d); zero for translations.
    """

    displacement: jax.Array
    turn: jax.Array


def rigid_motions(position: jax.Array, *, rotations: bool, among: jax.Array | None = None) -> RigidMotions:
    """Return an orthonormal basis of the rigid motions of a body.

    Args:
        position: (N, d), d = 2 or 3.
        rotations: whether rotations are among them.
        among: the particles that belong to the body, (N,) booleans; ``None`` for all.

    Returns:
        d translations, and one rotation in two dimensions or three in three.
    """
    dimension = position.shape[1]
    share = _share(position, among)
    members = jnp.maximum(share.sum(), 1)
    arm = position - (share * position).sum(axis=0) / members
    size = jnp.sqrt(jnp.sum(share * arm**2))
    still = jnp.zeros((dimension, dimension), position.dtype)
    basis = [
        (jnp.broadcast_to(axis, position.shape) / jnp.sqrt(members), still)
        for axis in jnp.eye(dimension, dtype=arm.dtype)
    ]
    for a in range(dimension if rotations else 0):
        for b in range(a):
            turn = still.at[a, b].set(1).at[b, a].set(-1)
            field = arm @ turn
            # Twice, for what one pass leaves behind by round-off.
            for other, other_turn in basis * 2:
                overlap = jnp.sum(share * field * other)
                field, turn = field - overlap * other, turn - overlap * other_turn
            norm = jnp.sqrt(jnp.sum(share * field**2))
            factor = jnp.where(norm > NOTHING_LEFT * size, 1 / jnp.where(norm > 0, norm, 1), 0)
            basis = [*basis, (factor * field, factor * turn)]
    fields, turns = zip(*basis, strict=True)
    return RigidMotions(displacement=jnp.stack(fields), turn=jnp.stack(turns))


def unopposed(
    force: Callable[[jax.Array], jax.Array],
    position: jax.Array,
    *,
    rotations: bool,
    among: jax.Array | None = None,
) -> jax.Array:
    """Return an orthonormal basis of the rigid motions that leave the energy as it is.

    An energy that a rigid motion u with rotation W leaves as it is has forces that follow: ``dF/dx . u = F W``.
    Whatever breaks the symmetry, a field or a wall, shows as a difference of the two, also where forces are left. It
    may leave a combination alone (a trap leaves rotations about its center), so the differences for all motions are
    made orthogonal, by Jacobi rotations of the motions among each other, and those count that are mere round-off.

    Args:
        force: ``position -> force``, (N, d), the negative gradient of the energy.
        position: (N, d).
        rotations: whether rotations are among the motions.
        among: the particles that are displaced, (N,) booleans; ``None`` for all. The energy is examined for motions of
            all of them.

    Returns:
        Displacements, (k, N, d), of which those that are opposed are zero. Without a derivative.

    Reference: Hestenes, J. SIAM 6, 51 (1958), doi:10.1137/0106005 (one-sided Jacobi rotations).
    """
    position = jax.lax.stop_gradient(position)
    motions = rigid_motions(position, rotations=rotations, among=among)
    value, change = jax.linearize(force, position)
    random = jax.random.normal(jax.random.key(0), position.shape, position.dtype)
    # One after another: all at once, the pair sums would need several times their memory.
    answers = jax.lax.map(change, jnp.concatenate([motions.displacement, random[None] / jnp.linalg.norm(random)]))
    opposition = answers[:-1] - jnp.einsum("na,kab->knb", value, motions.turn)
    scale = jnp.sqrt(jnp.max(jnp.sum(answers**2, axis=(1, 2))))
    opposition, displacement = orthogonalized(opposition, motions.displacement)
    size = jnp.sqrt(jnp.sum(opposition**2, axis=(1, 2)))
    is_free = size <= ROUNDING * jnp.finfo(position.dtype).eps * scale
    return jax.lax.stop_gradient(jnp.where(is_free[:, None, None], displacement, 0) * _share(position, among))


def onto(basis: jax.Array, displacement: jax.Array) -> jax.Array:
    """Return the part of a displacement field that lies in the span of an orthonormal basis.

    Args:
        basis: (k, N, d).
        displacement: (N, d).
    """
    return jnp.einsum("k,kna->na", jnp.einsum("kna,na->k", basis, displacement), basis)


def _share(position: jax.Array, among: jax.Array | None) -> jax.Array:
    """Return one for the particles of a body and zero for the others, (N, 1)."""
    is_member = jnp.ones(len(position), bool) if among is None else among
    return is_member[:, None].astype(position.dtype)


def orthogonalized(images: jax.Array, sources: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rotate the sources of a linear map among each other until their images are orthogonal.

    Args:
        images: of each source, (k, ...).
        sources: (k, ...), orthonormal, of the same number of axes.

    Returns:
        Both, rotated alike; images that vanish belong to sources that the map takes to zero.
    """
    count = len(images)
    first, second = jnp.triu_indices(count, 1)

    def rotate(index: jax.Array, both: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, b = first[index % len(first)], second[index % len(first)]
        x, y = both[0][a], both[0][b]
        angle = jnp.arctan2(2 * jnp.sum(x * y), jnp.sum(x**2) - jnp.sum(y**2)) / 2
        c, s = jnp.cos(angle), jnp.sin(angle)

        def mixed(rows: jax.Array) -> jax.Array:
            return rows.at[a].set(c * rows[a] + s * rows[b]).at[b].set(c * rows[b] - s * rows[a])

        return mixed(both[0]), mixed(both[1])

    return jax.lax.fori_loop(0, SWEEPS * len(first), rotate, (images, sources))
