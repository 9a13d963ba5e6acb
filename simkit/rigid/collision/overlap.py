"""Check of a start: bodies that overlap each other or a plane are refused."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.collision.pairs import contacts, plane_contacts
from simkit.rigid.collision.tournament import rounds
from simkit.rigid.scene import Planes

# Allowed overlap at the start, relative to the size of the smaller body.
TOUCHING = 1e-3


def check_apart(bodies: Bodies, motion: Motion, planes: Planes) -> None:
    """Refuse bodies that overlap each other or a plane; on the host.

    An overlap up to a thousandth of their size (radius, or least half length of a box) counts as touching.

    Args:
        bodies: of the scene.
        motion: state at the start.
        planes: the fixed planes.

    Raises:
        UserError: naming the two that overlap most.
    """
    pairs, on_planes = (np.asarray(gaps) for gaps in _least_gaps(bodies, motion, planes))
    count = len(bodies.kinds)
    sizes = np.append(_sizes(bodies), np.inf)
    first, second = (side.ravel() for side in rounds(count))
    margin = pairs + TOUCHING * np.minimum(sizes[first], sizes[second])
    if margin.min() < 0:
        worst = margin.argmin()
        i, j = sorted((int(first[worst]), int(second[worst])))
        names = f"bodies {i} ({bodies.kinds[i]}) and {j} ({bodies.kinds[j]})"
        raise UserError(f"{names} overlap by {-pairs[worst]:.3g} m at the start; move them apart")
    margin = on_planes + TOUCHING * np.tile(sizes[:count], planes.offset.shape[0])
    if margin.size and margin.min() < 0:
        worst = int(margin.argmin())
        name = f"body {worst % count} ({bodies.kinds[worst % count]}) and plane {worst // count}"
        raise UserError(f"{name} overlap by {-on_planes[worst]:.3g} m at the start; move them apart")


@jax.jit
def _least_gaps(bodies: Bodies, motion: Motion, planes: Planes) -> tuple[jax.Array, jax.Array]:
    on_planes = plane_contacts(bodies, motion, planes).gap
    return jnp.min(contacts(bodies, motion).gap, axis=0), jnp.min(on_planes, axis=0)


def _sizes(bodies: Bodies) -> np.ndarray:
    halves = np.stack([np.asarray(half) for half in jax.tree.leaves(bodies.half_lengths)])
    return np.asarray(bodies.radius) + halves.min(axis=0)
