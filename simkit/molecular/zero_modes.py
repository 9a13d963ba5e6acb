"""Motions that cost no energy by symmetry: translations of everything, and rotations in free space."""

import jax
import jax.numpy as jnp

# A rotation about the axis of a linear molecule moves nothing; what is left of it after the others is round-off.
NOTHING_LEFT = 1e-4


def rigid_motions(position: jax.Array, *, rotations: bool, among: jax.Array | None = None) -> list[jax.Array]:
    """Return an orthonormal basis of the rigid motions of a body.

    Args:
        position: (N, d), d = 2 or 3.
        rotations: whether rotations are among them, as in free space; a periodic system has translations only.
        among: the particles that belong to the body, (N,) booleans; ``None`` for all.

    Returns:
        Displacement fields, (N, d) each; zero where a rotation moves nothing. They span ``e_a`` and ``w x (r - r0)``.
    """
    dimension = position.shape[1]
    axes = jnp.eye(dimension, dtype=position.dtype)
    share = jnp.ones(len(position), position.dtype) if among is None else among.astype(position.dtype)
    members = jnp.maximum(share.sum(), 1)
    basis = [share[:, None] * axis / jnp.sqrt(members) for axis in axes]
    if not rotations:
        return basis
    center = (share[:, None] * position).sum(axis=0) / members
    arm = share[:, None] * (position - center)
    size = jnp.sqrt(jnp.sum(arm**2))
    for a in range(dimension):
        for b in range(a):
            turn = arm[:, a, None] * axes[b] - arm[:, b, None] * axes[a]
            # Twice, for what one pass leaves behind by round-off.
            for other in basis * 2:
                turn = turn - jnp.sum(turn * other) * other
            norm = jnp.sqrt(jnp.sum(turn**2))
            moves = norm > NOTHING_LEFT * size
            basis = [*basis, jnp.where(moves, turn / jnp.where(moves, norm, 1), 0)]
    return basis


def onto(basis: list[jax.Array], displacement: jax.Array) -> jax.Array:
    """Return the part of a displacement field that lies in the span of an orthonormal basis.

    Args:
        basis: from `rigid_motions`.
        displacement: (N, d).
    """
    return sum((jnp.sum(motion * displacement) * motion for motion in basis), jnp.zeros_like(displacement))
