"""Masks of frozen particles: those that stay where they start, in relaxations and in dynamics."""

from collections.abc import Sequence

import numpy as np

from simkit.errors import UserError


def frozen_mask(frozen: Sequence[bool] | np.ndarray | None) -> np.ndarray | None:
    """Return which particles are frozen, (N,) booleans, or ``None`` where none is.

    Args:
        frozen: as given, or ``None``.

    Raises:
        UserError: if it is not one truth value for each particle.
    """
    if frozen is None:
        return None
    mask = np.asarray(frozen)
    if mask.ndim != 1 or mask.dtype != bool:
        raise UserError(
            f"frozen has shape {mask.shape} and type {mask.dtype}; give true or false for each particle, shape (N,)"
        )
    return mask if mask.any() else None


def check_frozen(mask: np.ndarray, count: int) -> None:
    """Refuse a mask that does not fit the particles, or leaves none to move.

    Args:
        mask: (N,) booleans.
        count: how many particles there are.

    Raises:
        UserError: if the length differs, or all are frozen.
    """
    if len(mask) != count:
        raise UserError(f"frozen names {len(mask)} particles and there are {count}; give true or false for each")
    if mask.all():
        raise UserError(f"frozen names all {count} particles, so nothing moves; leave at least one free")
