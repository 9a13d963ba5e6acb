"""Zero modes: the rigid motions (translations and rotations) that leave the energy unchanged."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.spaces import Space

# Norm, relative to the size of the body, below which a rotation is no independent motion after orthogonalization: the
# rotation about the axis of a linear molecule is round-off.
NOTHING_LEFT = 1e-4
# Change of force along a unit rigid motion that counts as round-off, in units of the rounding unit times the change
# along a random unit displacement. Measured in either precision: at most 0.4 for clusters in two and three dimensions,
# 0 for packings of soft spheres in a cell.
ROUNDING = 30
# Sweeps of the Jacobi rotations below, which converge quadratically: six vectors need four or five.
SWEEPS = 8


class RigidMotions(NamedTuple):
    """Rigid motions of a body, ``u_i = v + (r_i - r_0) W``, W antisymmetric.

    Attributes:
        displacement: of every particle, (k, N, d); orthonormal over the particles of the body, or zero for a rotation
            that moves none of them.
        turn: W, (k, d, d); zero for translations.
    """

    displacement: jax.Array
    turn: jax.Array


def rigid_motions(position: jax.Array, *, rotations: bool, among: jax.Array | None = None) -> RigidMotions:
    """Return an orthonormal basis of the rigid motions of a body.

    Args:
        position: (N, d), d = 2 or 3.
        rotations: whether to include rotations.
        among: mask of the particles of the body, (N,) booleans; ``None`` for all.

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
            # Two passes of Gram-Schmidt: the first leaves round-off.
            for other, other_turn in basis * 2:
                overlap = jnp.sum(share * field * other)
                field, turn = field - overlap * other, turn - overlap * other_turn
            norm = jnp.sqrt(jnp.sum(share * field**2))
            factor = jnp.where(norm > NOTHING_LEFT * size, 1 / jnp.where(norm > 0, norm, 1), 0)
            basis = [*basis, (factor * field, factor * turn)]
    fields, turns = zip(*basis, strict=True)
    return RigidMotions(displacement=jnp.stack(fields), turn=jnp.stack(turns))


def zero_modes(
    force: Callable[[jax.Array], jax.Array],
    position: jax.Array,
    *,
    rotations: bool,
    among: jax.Array | None = None,
    images: jax.Array | None = None,
) -> jax.Array:
    """Return an orthonormal basis of the rigid motions that leave the energy unchanged.

    If the energy is invariant under a rigid motion u with rotation W, forces rotate along: ``dF/dx . u = F W``. A field
    or wall that breaks the symmetry appears as a difference of the two, also away from equilibrium. Combinations of
    motions may remain invariant (a trap allows rotations about its center), so the motions are combined by Jacobi
    rotations until the differences of all are orthogonal; zero modes are those whose difference is round-off.

    Args:
        force: ``position -> force``, (N, d), the negative gradient of the energy.
        position: (N, d).
        rotations: whether to include rotations.
        among: mask of the particles that are displaced, (N,) booleans; ``None`` for all. Invariance is tested for
            motions of all particles.
        images: images of the positions in a periodic cell that rotate together, see `gathered`; ``None`` for the
            positions themselves.

    Returns:
        Displacements, (k, N, d), zero for motions with a restoring force. Without a derivative.

    Reference: Hestenes, J. SIAM 6, 51 (1958), doi:10.1137/0106005 (one-sided Jacobi rotations).
    """
    position = jax.lax.stop_gradient(position)
    around = position if images is None else jax.lax.stop_gradient(images)
    motions = rigid_motions(around, rotations=rotations, among=among)
    value, change = jax.linearize(force, position)
    random = jax.random.normal(jax.random.key(0), position.shape, position.dtype)
    # Sequential: batched, the pair sums would need several times their memory.
    changes = jax.lax.map(change, jnp.concatenate([motions.displacement, random[None] / jnp.linalg.norm(random)]))
    difference = changes[:-1] - jnp.einsum("na,kab->knb", value, motions.turn)
    scale = jnp.sqrt(jnp.max(jnp.sum(changes**2, axis=(1, 2))))
    difference, displacement = orthogonalized(difference, motions.displacement)
    size = jnp.sqrt(jnp.sum(difference**2, axis=(1, 2)))
    is_free = size <= ROUNDING * jnp.finfo(position.dtype).eps * scale
    return jax.lax.stop_gradient(jnp.where(is_free[:, None, None], displacement, 0) * _share(position, among))


def gathered(space: Space, position: jax.Array, among: jax.Array | None = None) -> jax.Array:
    """Return the image of each particle nearest to the middle of the body, (N, d).

    A body may lie across the faces of a periodic cell; its rotations move these images. The middle is the particle
    nearest to the circular mean of the positions along each axis.

    Args:
        space: geometry of the cell.
        position: (N, d).
        among: mask of the particles of the body, (N,) booleans; ``None`` for all.
    """
    if not space.is_periodic:
        return position
    share = _share(position, among)[:, 0]
    columns = tuple(position[:, axis] for axis in range(position.shape[1]))
    phases = [2 * jnp.pi * part for part in space.fractional(columns)]
    nearness = sum(
        jnp.cos(phase - jnp.arctan2(jnp.sum(share * jnp.sin(phase)), jnp.sum(share * jnp.cos(phase))))
        for phase in phases
    )
    middle = position[jnp.argmax(jnp.where(share > 0, nearness, -jnp.inf))]
    away = space.nearest_image(tuple(column - middle[axis] for axis, column in enumerate(columns)))
    return middle + jnp.stack(away, axis=1)


def projection(basis: jax.Array, displacement: jax.Array) -> jax.Array:
    """Return the projection of a displacement field onto the span of an orthonormal basis.

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
    """Combine the sources of a linear map by rotations until their images are orthogonal.

    Args:
        images: of each source, (k, ...).
        sources: (k, ...), orthonormal, of the same number of axes.

    Returns:
        Images and sources after the rotations; sources in the kernel of the map have vanishing images.
    """
    count = len(images)
    first, second = jnp.triu_indices(count, 1)

    def rotate(index: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, b = first[index % len(first)], second[index % len(first)]
        x, y = pair[0][a], pair[0][b]
        angle = jnp.arctan2(2 * jnp.sum(x * y), jnp.sum(x**2) - jnp.sum(y**2)) / 2
        c, s = jnp.cos(angle), jnp.sin(angle)

        def mixed(rows: jax.Array) -> jax.Array:
            return rows.at[a].set(c * rows[a] + s * rows[b]).at[b].set(c * rows[b] - s * rows[a])

        return mixed(pair[0]), mixed(pair[1])

    return jax.lax.fori_loop(0, SWEEPS * len(first), rotate, (images, sources))
