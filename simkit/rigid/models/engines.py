"""Table of the engines for articulated models, by name."""

from typing import Any

from simkit.errors import UserError, nearest
from simkit.rigid.models.brax_pipelines import brax_engine
from simkit.rigid.models.contact_pairs import refuse_too_many_contacts
from simkit.rigid.models.description import Description
from simkit.rigid.models.engine import Engine
from simkit.rigid.models.mjx import mjx_engine
from simkit.rigid.models.mujoco_c import mujoco_engine

NAMES = ("brax-spring", "brax-generalized", "brax-positional", "mjx", "mujoco")


def by_name(name: str, spec: Any, description: Description) -> Engine:
    """Return the engine of a name for a model.

    Args:
        name: one of `NAMES`.
        spec: the model's `mujoco.MjSpec`.
        description: of the model.

    Raises:
        UserError: if the name is unknown, or the engine does not support the model.
    """
    if name not in NAMES:
        raise UserError(f"unknown engine '{name}'", nearest(str(name), NAMES))
    if name == "mujoco":
        return mujoco_engine(spec, description)
    refuse_too_many_contacts(name, description.mujoco)
    if name == "mjx":
        return mjx_engine(description)
    return brax_engine(name, description)
