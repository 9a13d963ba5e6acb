"""The solid box."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.settings import either, several
from simkit.rigid.bodies.bodies import Bodies, Number, body
from simkit.rigid.shapes.solid import size, solid


@solid(
    values={
        "lengths": either(
            "lengths along x, y and z, or one for a cube",
            size("of a cube"),
            several(size("a length"), "lengths along x, y and z", (3,)),
        )
    },
    volume=lambda lengths: lengths[0] * lengths[1] * lengths[2] if isinstance(lengths, tuple) else lengths**3,
)
def box(mass: Number, lengths: Sequence[Number] | Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid box, ``I_x = m (b^2 + c^2) / 12`` and so on.

    Args:
        mass: m in kg.
        lengths: a, b, c along its axes in m; one number for a cube.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Raises:
        UserError: if there are neither one nor three lengths.

    Example:
        >>> brick = rigid.box(12.0, (0.3, 0.2, 0.1), friction=0.5)
        >>> print([f"{float(each):.2f}" for each in (brick.inertia.x, brick.inertia.y, brick.inertia.z)])
        ['0.05', '0.10', '0.13']
    """
    if isinstance(lengths, jax.Array | np.ndarray | np.generic | float | int):
        lengths = [lengths[i] for i in range(len(lengths))] if np.ndim(lengths) else [lengths] * 3  # pyright: ignore
    check_shape("lengths", lengths, "three, along the axes of the box, or one for a cube", (3,))
    a, b, c = (jnp.asarray(length) ** 2 for length in lengths)
    per_length = jnp.asarray(mass) / 12
    moments = (per_length * (b + c), per_length * (c + a), per_length * (a + b))
    return body("box", mass, moments, [length / 2 for length in lengths], 0, friction, restitution)
