"""Masks of frozen particles, which keep their initial positions in relaxations and dynamics."""

from collections.abc import Sequence

import numpy as np

from simkit.errors import UserError


def frozen_mask(frozen: Sequence[bool] | np.ndarray | None) -> np.ndarray | None:
    """Return the mask of frozen particles, (N,) booleans, or ``None`` if none is frozen.

    Args:
        frozen: one boolean for each particle, or ``None``.

    Raises:
        UserError: if it is not a vector of booleans.
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
    """Refuse a mask of another length than the number of particles, or with all particles frozen.

    Args:
        mask: (N,) booleans.
        count: number of particles.

    Raises:
        UserError: if the length differs, or all are frozen.
    """
    if len(mask) != count:
        raise UserError(f"frozen names {len(mask)} particles and there are {count}; give true or false for each")
    if mask.all():
        raise UserError(f"frozen names all {count} particles, so nothing moves; leave at least one free")
