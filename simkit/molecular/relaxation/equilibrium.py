"""Equations of mechanical equilibrium of a relaxed configuration, and the rigid motions that cost no energy."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.formulation import precise_product
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.relaxation.landscape import Landscape
from simkit.molecular.spaces import Space

# Norm, relative to the size of the body and to the interaction's length, below which a rotation is no independent
# motion: about the axis of a linear molecule it is round-off, and that of particles in one place is the residue of
# their relaxation, which mixes with a translation as large as itself.
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


def rigid_motions(
    position: jax.Array, *, rotations: bool, length: jax.Array | float, among: jax.Array | None = None
) -> RigidMotions:
    """Return an orthonormal basis of the rigid motions of a body.

    Args:
        position: (N, d), d = 2 or 3.
        rotations: whether to include rotations.
        length: of the interaction; a body far smaller than this is a point, which does not rotate.
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
            field = precise_product(arm, turn)
            # Two passes of Gram-Schmidt: the first leaves round-off.
            for other, other_turn in basis * 2:
                overlap = jnp.sum(share * field * other)
                field, turn = field - overlap * other, turn - overlap * other_turn
            norm = jnp.sqrt(jnp.sum(share * field**2))
            factor = jnp.where(norm > NOTHING_LEFT * jnp.maximum(size, length), 1 / jnp.where(norm > 0, norm, 1), 0)
            basis = [*basis, (factor * field, factor * turn)]
    fields, turns = zip(*basis, strict=True)
    return RigidMotions(displacement=jnp.stack(fields), turn=jnp.stack(turns))


def zero_modes(
    force: Callable[[jax.Array], jax.Array],
    position: jax.Array,
    *,
    rotations: bool,
    length: jax.Array | float,
    among: jax.Array | None = None,
    images: jax.Array | None = None,
    translates: bool = False,
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
        length: of the interaction, see `rigid_motions`.
        among: mask of the particles that are displaced, (N,) booleans; ``None`` for all. Invariance is tested for
            motions of all particles.
        images: images of the positions in a periodic cell that rotate together, see `gathered`; ``None`` for the
            positions themselves.
        translates: whether translations leave the energy unchanged by construction, so that they are not tested: the
            round-off of sums over wave vectors exceeds the limit of the test.

    Returns:
        Displacements, (k, N, d), zero for motions with a restoring force. Without a derivative.

    Reference: Hestenes, J. SIAM 6, 51 (1958), doi:10.1137/0106005 (one-sided Jacobi rotations).
    """
    position = jax.lax.stop_gradient(position)
    around = position if images is None else jax.lax.stop_gradient(images)
    motions = rigid_motions(around, rotations=rotations, length=length, among=among)
    value, change = jax.linearize(force, position)
    random = jax.random.normal(jax.random.key(0), position.shape, position.dtype)
    # Sequential: batched, the pair sums would need several times their memory.
    changes = jax.lax.map(change, jnp.concatenate([motions.displacement, random[None] / jnp.linalg.norm(random)]))
    difference = changes[:-1] - jnp.einsum("na,kab->knb", value, motions.turn, precision="highest")
    if translates:
        difference = difference.at[: position.shape[1]].set(0)
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
    return jnp.einsum(
        "k,kna->na", jnp.einsum("kna,na->k", basis, displacement, precision="highest"), basis, precision="highest"
    )


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


# Largest difference between the starts of two programs that counts as round-off, in units of the rounding unit times
# the largest coordinate.
SAME = 100


def residual(landscape: Landscape, coordinates: jax.Array, params: Params) -> jax.Array:
    """Return minus the force on the coordinates of a landscape, plus a constraint on every zero mode.

    The value of the constraint is zero, its derivative is not.

    Args:
        landscape: energy or enthalpy, stationary at the solution.
        coordinates: as for `Landscape.arrangement`.
        params: parameters.
    """
    fixed, constants = jax.lax.stop_gradient((coordinates, params))
    displacement, dimension = coordinates - fixed, coordinates.shape[1]
    position, deformed = landscape.arrangement(fixed, constants)
    count = len(position)
    neighbors = landscape.interaction.prepare(position, deformed, constants)
    # Rattlers and frozen particles; ``None`` if there can be none.
    immobile = None if landscape.frozen is None else jnp.asarray(landscape.frozen)
    if landscape.rattlers is not None:
        rattlers = landscape.rattlers(position, deformed, constants, neighbors)
        immobile = rattlers if immobile is None else rattlers | immobile

    def force(moved: jax.Array) -> jax.Array:
        if landscape.frozen is not None:
            moved = jnp.where(landscape.frozen[:, None], fixed[:count], moved)
        return landscape.force(jnp.concatenate([moved, fixed[count:]]), constants, neighbors)[:count]

    # A cluster rotates freely in a constant cell far larger than itself, but not in a relaxing cell.
    among = None if immobile is None else ~immobile
    together = gathered(spaces.of_cell(deformed, dimension), position, among)
    scale = landscape.scale(constants)
    rotations = not landscape.relax_cell
    motions = zero_modes(
        force,
        fixed[:count],
        rotations=rotations,
        length=scale.length,
        among=among,
        images=together,
        translates=landscape.interaction.is_translation_invariant and landscape.frozen is None,
    )
    constraint = projection(motions, displacement[:count])
    dragged = _frozen_displacement(landscape, fixed[:count], params)
    if immobile is not None:
        particles = jnp.where(immobile[:, None], fixed[:count] + dragged, coordinates[:count])
        coordinates = jnp.concatenate([particles, coordinates[count:]])
    forces = landscape.force(coordinates, params, neighbors)
    if immobile is not None:
        constraint = jnp.where(immobile[:, None], displacement[:count] - dragged, constraint)
        forces = jnp.concatenate([jnp.where(immobile[:, None], 0, forces[:count]), forces[count:]])
    if landscape.relax_cell:
        strain = displacement[-dimension:]
        constraint = jnp.concatenate([constraint, strain - landscape.free(strain)])
    return scale.stiffness * constraint - forces


def _frozen_displacement(landscape: Landscape, position: jax.Array, params: Params) -> jax.Array:
    """Return the displacement of frozen particles with the params, (N, d): zero, but not its derivative.

    It is NaN if their start depends on the random key, which is not stored.
    """
    frozen = landscape.frozen
    if frozen is None:
        return jnp.zeros_like(position)
    start = landscape.start(params, jax.random.key(0))
    value = jax.lax.stop_gradient(start)
    is_same = jnp.abs(value - position) <= SAME * jnp.finfo(position.dtype).eps * jnp.abs(position).max()
    # As a factor, so that the derivative is NaN too.
    valid = jnp.where((is_same | ~frozen[:, None]).all(), 1, jnp.nan).astype(position.dtype)
    return jnp.where(frozen[:, None], valid * (start - value), 0)
