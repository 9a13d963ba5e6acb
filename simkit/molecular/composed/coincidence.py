"""Refusal of interacting particles that start in one place, where the force between them has no direction."""

import numpy as np

from simkit.errors import UserError

# Distance below which particles coincide, in units of the edges of the cell, or of the extent in free space: at least
# this, and several times the round-off of the positions.
SAME_PLACE, ROUNDINGS = 1e-9, 8
# Particles whose neighbors are searched at a time.
BLOCK = 1024


def refuse_same_place(
    position: np.ndarray,
    vectors: np.ndarray | None,
    periodic: tuple[bool, ...],
    species: np.ndarray,
    interacting: np.ndarray,
    where: str,
) -> None:
    """Raise if two particles whose species interact coincide, also with an image of the other.

    Args:
        position: (N, d).
        vectors: edges of the cell as rows, (d, d); ``None`` if nothing repeats.
        periodic: along which axes the cell repeats.
        species: of each particle, (N,).
        interacting: mask of the pairs of species that interact, (S, S) booleans.
        where: path of the positions.

    Raises:
        UserError: if two coincide, or a position is not finite; names the particles.
    """
    finite = np.isfinite(position).all(axis=1)
    if not finite.all():
        first = int(np.argmin(finite))
        raise UserError(f"{where}: particle {first} (the first is 0) starts at {position[first].tolist()}; move it")
    rounding = np.finfo(position.dtype).eps
    points, repeats = position.astype(np.float64), np.array(periodic)
    if vectors is None:
        points = points - points.min(axis=0)
        points = points / (np.ptp(points) or 1.0)
    else:
        points = points @ np.linalg.inv(vectors.astype(np.float64))
        points = np.where(repeats, points - np.floor(points), points)
        # A small negative fraction is rounded to 1.
        points = np.where(repeats & (points >= 1), 0, points)
    pair = _coincident(points, repeats.astype(float), max(SAME_PLACE, ROUNDINGS * rounding), species, interacting)
    if pair is not None:
        raise UserError(
            f"{where}: particles {pair[0]} and {pair[1]} (the first is 0) are in one place, so the force between them "
            "has no direction; move or remove one of them"
        )


def _coincident(
    points: np.ndarray, sides: np.ndarray, tolerance: float, species: np.ndarray, interacting: np.ndarray
) -> tuple[int, int] | None:
    """Return the first two particles of interacting species nearer than a tolerance, or ``None``."""
    from scipy.spatial import KDTree

    for kind in np.unique(species):
        own, others = np.flatnonzero(species == kind), np.flatnonzero(interacting[kind][species])
        if not len(others):
            continue
        tree = KDTree(points[others], boxsize=sides)
        # In blocks, since a search among very many coincident points is slow.
        for block in np.split(own, range(BLOCK, len(own), BLOCK)):
            # One of the two nearest may be the particle itself.
            partner = np.asarray(tree.query(points[block], k=2, distance_upper_bound=tolerance)[1])
            # Partners that are not found have the index of the number of points.
            partner = np.append(others, -1)[partner]
            is_other = (partner >= 0) & (partner != block[:, None])
            if is_other.any():
                row = int(np.argmax(is_other.any(axis=1)))
                return int(block[row]), int(partner[row][is_other[row]][0])
    return None
