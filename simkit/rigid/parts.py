"""Parts of scenes: those that scenario files name, each in one line, and which of them a method supports.

A package adds a part that files name by an entry point such as ``[project.entry-points."simkit.rigid_loads"]`` with
``"wind" = "my_package.wind:wind"``. See `simkit.core.parts` for what a part declares. By kind, it is a function that
returns

- a rigid shape: one body, of its mass, values, friction and restitution (see `simkit.rigid.shapes.solid`);
- a joint: a `simkit.rigid.joints.joint.Joint`, with the arguments of `simkit.rigid.joints.joint.hinge`;
- a rigid load: a `simkit.rigid.scene.Load`, of a joint or of bodies (see `simkit.rigid.loads.drag`);
- a motor: a `simkit.rigid.scene.Load`, of a joint;
- a rigid method: a `simkit.rigid.scene.Dynamics`.
"""

import dataclasses
from collections.abc import Collection, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.arguments import check_number
from simkit.core.parameter import SHARE, UNBOUNDED
from simkit.errors import UserError
from simkit.plugins import Registry
from simkit.rigid.algebra.vector import norm, stacked
from simkit.rigid.bodies.bodies import KINDS, Bodies
from simkit.rigid.bodies.motion import Motion
from simkit.rigid.joints.constraints import Joints, name_of
from simkit.rigid.scene import Dynamics, Planes

DECLARED = ("declaration",)
SOLIDS = Registry(
    "rigid_shape",
    {
        "box": "simkit.rigid.shapes.box:box",
        "capsule": "simkit.rigid.shapes.capsule:capsule",
        "compound": "simkit.rigid.shapes.compound:compound",
        "cylinder": "simkit.rigid.shapes.cylinder:cylinder",
        "disk": "simkit.rigid.shapes.disk:disk",
        "ellipsoid": "simkit.rigid.shapes.ellipsoid:ellipsoid",
        "mesh": "simkit.rigid.shapes.mesh:mesh",
        "plane": "simkit.rigid.planes:plane",
        "sphere": "simkit.rigid.shapes.sphere:sphere",
    },
    DECLARED,
    aliases={"ball": "sphere", "cube": "box", "cuboid": "box", "floor": "plane", "ground": "plane", "pill": "capsule"},
)
JOINT_KINDS = Registry(
    "joint",
    {
        name: f"simkit.rigid.joints.joint:{name}"
        for name in ("attachment", "ball", "distance", "hinge", "slider", "weld")
    },
    DECLARED,
    aliases={
        "revolute": "hinge",
        "prismatic": "slider",
        "slide": "slider",
        "spherical": "ball",
        "fixed": "weld",
        "rod": "distance",
    },
)
LOADS = Registry(
    "rigid_load",
    {
        "damper": "simkit.rigid.joints.loads:damper",
        "drag": "simkit.rigid.loads:drag",
        "energy": "simkit.rigid.loads:energy",
        "force": "simkit.rigid.loads:force",
        "spring": "simkit.rigid.joints.loads:spring",
        "torsion_damper": "simkit.rigid.joints.loads:torsion_damper",
        "torsion_spring": "simkit.rigid.joints.loads:torsion_spring",
    },
    DECLARED,
)
MOTORS = Registry(
    "motor",
    {
        "servo": "simkit.rigid.joints.loads:servo",
        "speed": "simkit.rigid.joints.loads:speed_motor",
        "torque": "simkit.rigid.joints.loads:motor",
    },
    DECLARED,
    aliases={"velocity": "speed", "position": "servo"},
)
METHODS_BY_NAME = Registry(
    "rigid_method",
    {
        "compliant": "simkit.rigid.contact.compliant:Compliant",
        "events": "simkit.rigid.contact.events:Events",
        "free": "simkit.rigid.free:Free",
        "impulses": "simkit.rigid.contact.impulses:Impulses",
        "jointed": "simkit.rigid.joints.rattle:jointed",
    },
    DECLARED,
    aliases={name.title(): name for name in ("compliant", "events", "free", "impulses", "jointed")},
)

SHAPES = frozenset(KINDS)
# Shapes whose flat sides meet planes and each other at points that appear and vanish as they tilt.
FLAT_SIDED = frozenset({"cylinder", "mesh"})
# Parts of a scene beside the shapes of its bodies. Every method supports loads of any kind.
PLANES, JOINTS, FRICTION, RESTITUTION = "planes", "joints", "friction", "restitution"
HELD = "held bodies"
UNEVEN_SPHERES, TILTED_DISKS = "spheres with unequal moments of inertia", "disks out of the x-z plane"
# Quantities that a scene asks for.
FORCES, JOINT_FORCES, TIMES = "contact forces", "joint forces", "times of impacts"
PARTS = (*KINDS, PLANES, JOINTS, HELD, FRICTION, RESTITUTION, UNEVEN_SPHERES, TILTED_DISKS, FORCES, JOINT_FORCES, TIMES)
# Relative difference of moments of inertia, and relative velocity out of the x-z plane, that count as rounding.
ROUNDING = 1e-5


def check_structure(
    dynamics: Dynamics,
    others: Sequence[Dynamics],
    bodies: Bodies,
    planes: Planes,
    joints: Joints,
    asked: Collection[str] = (),
) -> None:
    """Refuse shapes, planes and joints that a method does not support, without reading any number.

    Args:
        dynamics: the method.
        others: all methods; the error names those that support the part.
        bodies: of the scene, as arrays or their shapes.
        planes: likewise.
        joints: likewise.
        asked: quantities that the scene asks for, of `PARTS`.

    Raises:
        UserError: naming the first such part, the method and those that support it.
    """
    needed = parts_in(bodies, planes, joints) | set(asked)
    for quantity in asked:
        if quantity not in dynamics.supports:
            raise refusal(dynamics, others, quantity, f"the scene asks for {quantity}", needed)
    for index, (kind, shapes) in enumerate(zip(bodies.kinds, bodies.composition, strict=True)):
        for own in (kind, *(shape for shape, _ in shapes)):
            if own not in dynamics.supports:
                cause = f"body {index} is a {kind}" + ("" if own == kind else f" with a {own}")
                raise refusal(dynamics, others, own, cause, needed)
    if any(bodies.held) and HELD not in dynamics.supports:
        raise refusal(dynamics, others, HELD, f"body {bodies.held.index(True)} is held", needed)
    count = planes.offset.shape[0]
    if count and PLANES not in dynamics.supports:
        raise refusal(dynamics, others, PLANES, f"the scene has {count} plane{'s' * (count > 1)}", needed)
    if joints and JOINTS not in dynamics.supports:
        raise refusal(dynamics, others, JOINTS, f"the scene has {name_of(0, joints)}", needed)


def parts_in(bodies: Bodies, planes: Planes, joints: Joints = ()) -> frozenset[str]:
    """Return the `PARTS` of a scene that are seen without reading any number.

    Args:
        bodies: of the scene, as arrays or their shapes.
        planes: likewise.
        joints: likewise.
    """
    others = ((HELD, any(bodies.held)), (PLANES, planes.offset.shape[0]), (JOINTS, joints))
    shapes = {kind for shapes in bodies.composition for kind, _ in shapes}
    return frozenset({*bodies.kinds, *shapes, *(part for part, present in others if present)})


def check_numbers(dynamics: Dynamics, others: Sequence[Dynamics], bodies: Bodies, planes: Planes) -> None:
    """Refuse friction, restitution and moments of inertia that a method does not support; on the host.

    Args:
        dynamics: the method.
        others: all methods; the error names those that support the part.
        bodies: of the scene.
        planes: of the scene.

    Raises:
        UserError: naming the first such part, the method and those that support it.
    """
    needed = parts_in(bodies, planes)
    for part, of_bodies, of_planes in (
        (FRICTION, bodies.friction, planes.friction),
        (RESTITUTION, bodies.restitution, planes.restitution),
    ):
        if part in dynamics.supports:
            continue
        for owner, values in (("body", of_bodies), ("plane", of_planes)):
            for index in np.flatnonzero(np.asarray(values)):
                cause = f"{owner} {index} has {part} = {float(values[index]):g}"
                raise refusal(dynamics, others, part, cause, needed)
    if UNEVEN_SPHERES not in dynamics.supports:
        moments = np.asarray(stacked(bodies.inertia))
        uneven = np.ptp(moments, axis=1) > ROUNDING * moments.max(axis=1)
        for index in np.flatnonzero(uneven & (np.asarray(bodies.kinds) == "sphere")):
            values = ", ".join(f"{moment:g}" for moment in moments[index])
            cause = f"body {index} is a sphere with moments {values} kg m^2"
            raise refusal(dynamics, others, UNEVEN_SPHERES, cause, needed)


def check_disks(dynamics: Dynamics, others: Sequence[Dynamics], bodies: Bodies, planes: Planes, motion: Motion) -> None:
    """Refuse disks that start out of the x-z plane, and planes that would push them out of it; on the host.

    Args:
        dynamics: the method.
        others: all methods; the error names those that support such disks.
        bodies: of the scene.
        planes: of the scene.
        motion: state at the start.

    Raises:
        UserError: naming the first such plane or disk.
    """
    disks = np.flatnonzero(np.asarray(bodies.kinds) == "disk")
    if TILTED_DISKS in dynamics.supports or not disks.size:
        return
    needed = parts_in(bodies, planes)
    for index in np.flatnonzero(np.abs(np.asarray(planes.normal.y)) > ROUNDING):
        raise refusal(dynamics, others, TILTED_DISKS, f"plane {index} would push disks along y", needed)
    for vectors, what, axes in (
        (motion.orientation.v, "orientation", [0, 2]),
        (motion.velocity, "velocity", [1]),
        (motion.angular_momentum, "angular momentum", [0, 2]),
    ):
        values = np.asarray(stacked(vectors))[disks]
        # The vector part of a unit quaternion is compared with 1, other vectors with their own largest component.
        size = 1 if what == "orientation" else np.abs(values).max(axis=1)
        out = np.abs(values[:, axes]).max(axis=1) > ROUNDING * size
        for index in disks[out]:
            cause = f"body {index} is a disk whose {what} leaves the x-z plane"
            raise refusal(dynamics, others, TILTED_DISKS, cause, needed)


def check_motion(motion: Motion) -> None:
    """Refuse a start with numbers that are not finite, or orientations that are no unit quaternions; on the host.

    This check comes first: later ones would report numbers computed from them.

    Args:
        motion: state at the start.

    Raises:
        UserError: naming the first such quantity and body.
    """
    for field in dataclasses.fields(motion):
        values = np.stack([np.asarray(leaf) for leaf in jax.tree.leaves(getattr(motion, field.name))])
        for body in np.flatnonzero(~np.isfinite(values).all(axis=0)):
            raise UserError(
                f"body {body} has no finite {field.name.replace('_', ' ')} at the start: for these parameters the "
                "scene divides by zero, takes a root of a negative number or overflows; choose others"
            )
    parts = np.stack([np.asarray(leaf) for leaf in jax.tree.leaves(motion.orientation)])
    for body, size in enumerate(np.linalg.norm(parts, axis=0)):
        if abs(size - 1) > ROUNDING:
            raise UserError(
                f"body {body} has an orientation of length {size:g} at the start; divide it by that, so that it is a "
                "unit quaternion"
            )


def disks_leave(dynamics: Dynamics, bodies: Bodies, motion: Motion, time_step: jax.Array) -> jax.Array:
    """Return, in compiled code, whether a disk leaves the x-z plane under a method that does not support this.

    A velocity along y, or an angular momentum about x or z, counts if it is more than `ROUNDING` of the disk's total
    and moves the disk within a time step by more than round-off of its radius, or of a radian.

    Args:
        dynamics: the method.
        bodies: of the scene.
        motion: state of the bodies.
        time_step: in s, a number or (members,).
    """
    disks = np.flatnonzero(np.asarray(bodies.kinds) == "disk")
    if TILTED_DISKS in dynamics.supports or not disks.size:
        return jnp.zeros_like(time_step, bool)
    velocity, spin = motion.velocity[disks], motion.angular_momentum[disks]
    resolved = jnp.finfo(time_step.dtype).eps / time_step
    along = jnp.abs(velocity.y) > ROUNDING * norm(velocity) + resolved * bodies.radius[disks]
    across = jnp.maximum(jnp.abs(spin.x), jnp.abs(spin.z))
    about = across > ROUNDING * norm(spin) + resolved * bodies.inertia.y[disks]
    return jnp.any(along | about, axis=0)


def check_planes(planes: Planes) -> None:
    """Refuse planes that cannot exist; on the host.

    Args:
        planes: the fixed planes, possibly none.

    Raises:
        UserError: for a normal that is not a unit vector, or a coefficient out of its range.
    """
    lengths = np.linalg.norm(np.asarray(stacked(planes.normal)), axis=-1)
    for index, length in enumerate(lengths):
        name = f"plane {index}"
        if not abs(length - 1) <= ROUNDING:
            raise UserError(f"{name}: its normal has length {length:g}; divide it by that, so that it has length 1")
        check_number(f"{name}: offset", planes.offset[index], *UNBOUNDED)
        check_number(f"{name}: friction", planes.friction[index], 0)
        check_number(f"{name}: restitution", planes.restitution[index], *SHARE)


def is_concrete(tree: object) -> bool:
    """Return whether no array of a tree is being traced."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def refusal(dynamics: Dynamics, others: Sequence[Dynamics], part: str, cause: str, needed: frozenset[str]) -> UserError:
    """Return the refusal of a part, with the methods that support it beside all other parts of the scene."""
    supporting = [type(other).__name__.lower() for other in others if needed | {part} <= set(other.supports)]
    name = type(dynamics).__name__.lower()
    # A method may support a part with other settings only; its settings are then shown.
    name = repr(dynamics) if name in supporting else name
    if not supporting:
        rest = ", ".join(sorted(needed - {part}))
        return UserError(
            f"{cause}; {name} does not support {part}, and no method supports it beside {rest}: leave out one"
        )
    *first, last = supporting
    either = f"{', '.join(first)} or {last}" if first else last
    return UserError(f"{cause}; {name} does not support {part}: choose the method {either}, or leave {part} out")
