"""Number of pairs that may touch, for which MJX and brax keep room in every step."""

from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.rigid.models.source import library

# A contact has up to 4 rows of nv entries each, in float64.
BYTES = 4 * 8
MAX_BYTES = 2**30


def refuse_too_many_contacts(name: str, model: Any) -> None:
    """Refuse a model for whose contacts an engine on JAX would take more than 1 GiB.

    Args:
        name: of the engine.
        model: a `mujoco.MjModel`.

    Raises:
        UserError: saying how many pairs may touch.
    """
    pairs = most_pairs(model)
    contacts = min(pairs, _numeric(model, "max_contact_points", pairs))
    if contacts * model.nv * BYTES > MAX_BYTES:
        raise UserError(
            f"{name} would keep room for contacts of {pairs} pairs of shapes with {model.nv} velocities each, over "
            "1 GiB; choose engine = 'mujoco', let fewer shapes collide (contype, conaffinity), or give the model "
            "<custom><numeric name='max_contact_points' data='100'/></custom>"
        )


def most_pairs(model: Any) -> int:
    """Return how many pairs of geoms may touch at most: those of which one moves, and whose bits allow it.

    Args:
        model: a `mujoco.MjModel`.
    """
    moves = model.body_weldid[model.geom_bodyid] != 0
    kinds, counts = np.unique(
        np.stack([model.geom_contype, model.geom_conaffinity, moves], axis=1), axis=0, return_counts=True
    )
    types, affinities, moving = kinds.T
    total = int(model.npair)
    for kind, count in enumerate(counts):
        others = slice(kind + 1, None)
        allowed = (types[kind] & affinities[others]) | (types[others] & affinities[kind]) != 0
        total += int(count * counts[others][allowed & (moving[others] | moving[kind] != 0)].sum())
        if moving[kind] and types[kind] & affinities[kind]:
            total += int(count * (count - 1) // 2)
    return total


def _numeric(model: Any, name: str, default: int) -> int:
    """Return a number that the model carries for engines on JAX."""
    mujoco = library("mujoco")
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
    if index < 0 or model.numeric_data[model.numeric_adr[index]] < 0:
        return default
    return int(model.numeric_data[model.numeric_adr[index]])
