"""Parts of a scene that a method of time stepping supports; unsupported parts are refused by name."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.errors import UserError
from simkit.rigid.algebra.vector import norm, stacked
from simkit.rigid.bodies.bodies import KINDS, Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.joints.checks import name_of
from simkit.rigid.joints.constraints import Joints
from simkit.rigid.scene import Dynamics, Planes

SHAPES = frozenset(KINDS)
# What a scene may hold beside the shapes of its bodies. Every method serves loads, whatever they depend on.
PLANES, JOINTS, FRICTION, RESTITUTION = "planes", "joints", "friction", "restitution"
UNEVEN_SPHERES, TILTED_DISKS = "spheres with unequal moments of inertia", "disks out of the x-z plane"
PARTS = (*KINDS, PLANES, JOINTS, FRICTION, RESTITUTION, UNEVEN_SPHERES, TILTED_DISKS)
# Moments of inertia, and velocities out of a plane, that differ by rounding only.
ROUNDING = 1e-5


def check_structure(
    dynamics: Dynamics, others: Sequence[Dynamics], bodies: Bodies, planes: Planes, joints: Joints
) -> None:
    """Refuse shapes, planes and joints that a method does not support; looks at no number.

    Args:
        dynamics: the method.
        others: every method, of which those that serve the part are named.
        bodies: of the scene, as arrays or their shapes.
        planes: likewise.
        joints: likewise.

    Raises:
        UserError: that names the first such part, the method and those that serve it.
    """
    for index, kind in enumerate(bodies.kinds):
        if kind not in dynamics.serves:
            raise _refusal(dynamics, others, kind, f"body {index} is a {kind}")
    count = planes.offset.shape[0]
    if count and PLANES not in dynamics.serves:
        raise _refusal(dynamics, others, PLANES, f"the scene has {count} plane{'s' * (count > 1)}")
    if joints and JOINTS not in dynamics.serves:
        raise _refusal(dynamics, others, JOINTS, f"the scene has {name_of(0, joints)}")


def check_numbers(dynamics: Dynamics, others: Sequence[Dynamics], bodies: Bodies, planes: Planes) -> None:
    """Refuse friction, restitution and moments of inertia that a method does not support; on the host, with numbers.

    Args:
        dynamics: as for `check_structure`, like the others.
        others: every method.
        bodies: of the scene.
        planes: of the scene.

    Raises:
        UserError: that names the first such part, the method and those that serve it.
    """
    for part, of_bodies, of_planes in (
        (FRICTION, bodies.friction, planes.friction),
        (RESTITUTION, bodies.restitution, planes.restitution),
    ):
        if part in dynamics.serves:
            continue
        for owner, values in (("body", of_bodies), ("plane", of_planes)):
            for index in np.flatnonzero(np.asarray(values)):
                raise _refusal(dynamics, others, part, f"{owner} {index} has {part} = {float(values[index]):g}")
    if UNEVEN_SPHERES not in dynamics.serves:
        moments = np.asarray(stacked(bodies.inertia))
        uneven = np.ptp(moments, axis=1) > ROUNDING * moments.max(axis=1)
        for index in np.flatnonzero(uneven & (np.asarray(bodies.kinds) == "sphere")):
            values = ", ".join(f"{moment:g}" for moment in moments[index])
            raise _refusal(dynamics, others, UNEVEN_SPHERES, f"body {index} is a sphere with moments {values} kg m^2")


def check_disks(dynamics: Dynamics, others: Sequence[Dynamics], bodies: Bodies, planes: Planes, motion: Motion) -> None:
    """Refuse disks that start out of the x-z plane, or meet planes that would push them out of it; with numbers.

    Args:
        dynamics: as for `check_structure`, like the others.
        others: every method.
        bodies: of the scene.
        planes: of the scene.
        motion: at the start.

    Raises:
        UserError: that names the first such disk.
    """
    disks = np.flatnonzero(np.asarray(bodies.kinds) == "disk")
    if TILTED_DISKS in dynamics.serves or not disks.size:
        return
    for index in np.flatnonzero(np.abs(np.asarray(planes.normal.y)) > ROUNDING):
        raise _refusal(dynamics, others, TILTED_DISKS, f"plane {index} would push disks along y")
    for vectors, what, axes in (
        (motion.orientation.v, "orientation", [0, 2]),
        (motion.velocity, "velocity", [1]),
        (motion.angular_momentum, "angular momentum", [0, 2]),
    ):
        values = np.asarray(stacked(vectors))[disks]
        # Of a turn, which is a part of a unit quaternion, the size is 1.
        size = 1 if what == "orientation" else np.abs(values).max(axis=1)
        out = np.abs(values[:, axes]).max(axis=1) > ROUNDING * size
        for place in np.flatnonzero(out):
            raise _refusal(dynamics, others, TILTED_DISKS, f"body {disks[place]} is a disk whose {what} leaves it")


def check_motion(motion: Motion) -> None:
    """Refuse a start that is not made of finite numbers; on the host, with concrete ones.

    Later checks would compare with it and report what they compute from it.

    Args:
        motion: at the start.

    Raises:
        UserError: that names the first such quantity and body.
    """
    for field in dataclasses.fields(motion):
        values = np.stack([np.asarray(leaf) for leaf in jax.tree.leaves(getattr(motion, field.name))])
        for body in np.flatnonzero(~np.isfinite(values).all(axis=0)):
            raise UserError(
                f"body {body} has no {field.name.replace('_', ' ')} at the start: for these parameters the start of "
                "the scene divides by zero, takes a root of a negative number or overflows; choose others"
            )


def disks_leave(dynamics: Dynamics, bodies: Bodies, motion: Motion, time_step: jax.Array) -> jax.Array:
    """Tell, in compiled code, whether a disk leaves the x-z plane under a method that serves none out of it.

    A velocity along y or a spin about another axis counts from `ROUNDING` of the disk's own on, if a time step of it is
    more than rounding of the radius, or of a radian.

    Args:
        dynamics: the method.
        bodies: of the scene.
        motion: of the bodies.
        time_step: in s, a number or (members,).
    """
    disks = np.flatnonzero(np.asarray(bodies.kinds) == "disk")
    if TILTED_DISKS in dynamics.serves or not disks.size:
        return jnp.zeros_like(time_step, bool)
    velocity, spin = motion.velocity[disks], motion.angular_momentum[disks]
    resolved = jnp.finfo(time_step.dtype).eps / time_step
    along = jnp.abs(velocity.y) > ROUNDING * norm(velocity) + resolved * bodies.radius[disks]
    across = jnp.maximum(jnp.abs(spin.x), jnp.abs(spin.z))
    about = across > ROUNDING * norm(spin) + resolved * bodies.inertia.y[disks]
    return jnp.any(along | about, axis=0)


def check_planes(planes: Planes) -> None:
    """Refuse planes that cannot exist; on the host, with concrete numbers.

    Args:
        planes: any number.

    Raises:
        UserError: for a normal that is no unit vector, or a coefficient out of its range.
    """
    lengths = np.linalg.norm(np.asarray(stacked(planes.normal)), axis=-1)
    for index, length in enumerate(lengths):
        name = f"plane {index}"
        if not abs(length - 1) <= ROUNDING:
            raise UserError(f"{name}: its normal has length {length:g}; divide it by that, so that it has length 1")
        if not np.isfinite(float(planes.offset[index])):
            raise UserError(f"{name}: offset = {float(planes.offset[index]):g} m is not finite; choose a number")
        friction, restitution = float(planes.friction[index]), float(planes.restitution[index])
        if not (friction >= 0 and np.isfinite(friction)):
            raise UserError(f"{name}: friction = {friction:g} is negative or not finite; choose 0 or more")
        if not 0 <= restitution <= 1:
            raise UserError(f"{name}: restitution = {restitution:g} is outside [0, 1]; choose one within")


def is_concrete(tree: object) -> bool:
    """Return whether a tree holds numbers, and nothing that is being traced."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def _refusal(dynamics: Dynamics, others: Sequence[Dynamics], part: str, found: str) -> UserError:
    serving = [type(other).__name__ for other in others if part in other.serves]
    name = type(dynamics).__name__
    # A method may serve a part with other settings only.
    name = repr(dynamics) if name in serving else name
    *first, last = serving
    either = f"{', '.join(first)} or {last}" if first else last
    return UserError(f"{found}; {name} does not support {part}: choose dynamics = {either}, or leave {part} out")
