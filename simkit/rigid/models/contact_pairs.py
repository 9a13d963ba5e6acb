"""Bound on the number of contact pairs, for which MJX and brax allocate arrays in every step."""

from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.rigid.models.source import library

# Bytes per contact and velocity: up to 4 rows of nv entries in float64.
BYTES = 4 * 8
MAX_BYTES = 2**30


def refuse_too_many_contacts(name: str, model: Any) -> None:
    """Refuse a model whose contacts would take more than 1 GiB in an engine on JAX.

    Args:
        name: of the engine.
        model: a `mujoco.MjModel`.

    Raises:
        UserError: with the number of pairs that may touch.
    """
    pairs = most_pairs(model)
    contacts = min(pairs, _numeric(model, "max_contact_points", pairs))
    if contacts * model.nv * BYTES > MAX_BYTES:
        raise UserError(
            f"{name} would allocate contacts for {pairs} pairs of shapes with {model.nv} velocities each, over "
            "1 GiB; choose engine = 'mujoco', let fewer shapes collide (contype, conaffinity), or give the model "
            "<custom><numeric name='max_contact_points' data='100'/></custom>"
        )


def most_pairs(model: Any) -> int:
    """Return the largest number of pairs of geoms in contact: at least one moves, and their bits allow contact.

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
    """Return a custom number of the model, or the default if it is missing or negative."""
    mujoco = library("mujoco")
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
    if index < 0 or model.numeric_data[model.numeric_adr[index]] < 0:
        return default
    return int(model.numeric_data[model.numeric_adr[index]])
