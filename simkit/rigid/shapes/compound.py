"""Bodies of several shapes, such as a cup, an L or a dumbbell."""

import dataclasses
import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from simkit.core.parameter import POSITIVE
from simkit.core.parts import Choice, PartTable
from simkit.core.settings import formula, several
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import axes_of, conjugate, identity, multiply, rotate
from simkit.rigid.algebra.tensor import SymmetricTensor, principal, rotated
from simkit.rigid.algebra.vector import Vector, dot, each
from simkit.rigid.bodies.bodies import Bodies, Compound, Frame, Shape, body
from simkit.rigid.bodies.motion import Places, rotations_of, vectors_of
from simkit.rigid.parts import SOLIDS
from simkit.rigid.shapes.solid import COPY, solid

# Kinds of which no part is made: a plane is no body, a disk stays in its plane, a compound is one list of parts.
WHOLE = ("plane", "disk", "compound")


def _why_whole(part: Any) -> str | None:
    return None if getattr(part, "__name__", "") not in WHOLE else "is no part of a compound"


def _coordinates(doc: str, counts: tuple[int, ...] = (3,)) -> Any:
    return several(formula("a component", takes=COPY), doc, counts, [0, 0, 0])


PART = PartTable(
    (Choice(SOLIDS, "shape", "shape of the part", unfit=_why_whole),),
    {
        "mass": formula("mass, in place of that of the body", None, unit="kg", bounds=POSITIVE, takes=COPY),
        "density": formula(
            "mass per volume, in place of that of the body", None, unit="kg/m^3", bounds=POSITIVE, takes=COPY
        ),
        "position": _coordinates("place of its center in the frame of the body, in m"),
        "orientation": _coordinates("rotation in that frame: a rotation vector in rad, or a quaternion", (3, 4)),
    },
)


@solid(keys={"parts": several(PART.setting("a part"), "shapes that move as one body", least=1)})
def compound(parts: Sequence[Bodies], positions: Places, orientations: Any | None = None) -> Bodies:
    """Return one body of several shapes: its mass and moments of inertia are theirs, and each touches other bodies.

    The body moves about its center of mass and its principal axes; `simkit.rigid.motion_of` takes its place and
    orientation as those of the frame in which the parts are placed here. Parts may overlap; their masses then add. Its
    friction and restitution are the largest of theirs.

    Args:
        parts: single bodies, of any shapes but disks and compounds.
        positions: of their centers in m, (parts, 3).
        orientations: their rotations, as for `simkit.rigid.motion_of`.

    Raises:
        UserError: if a part is a disk, a compound or several bodies, or there are not as many positions as parts.

    Example:
        >>> ball = rigid.sphere(1.0, 0.1)
        >>> dumbbell = rigid.compound([ball, ball], [(0.0, 0.0, -0.3), (0.0, 0.0, 0.3)])
        >>> print(f"{dumbbell.mass:.1f} kg, {dumbbell.inertia.x:.3f} kg m^2 = 2 (2/5 m r^2 + m l^2)")
        2.0 kg, 0.188 kg m^2 = 2 (2/5 m r^2 + m l^2)
    """
    if not parts:
        raise UserError("a compound has no parts; give at least one")
    for index, part in enumerate(parts):
        if not isinstance(part, Bodies) or jnp.ndim(part.mass) or part.kinds[0] in WHOLE:
            what = part.kinds[0] if isinstance(part, Bodies) and not jnp.ndim(part.mass) else f"{part!r:.40}"
            raise UserError(f"part {index} of a compound is {what}; give single bodies, such as box(1.0, 0.1)")
    mass, inertia, half, radius = each(
        lambda *values: jnp.stack(values),
        *((part.mass, part.inertia, part.half_lengths, part.radius) for part in parts),
    )
    place = each(lambda values: jnp.broadcast_to(values, mass.shape), vectors_of("positions", positions, mass.shape))
    turned = identity(mass) if orientations is None else rotations_of(orientations, mass)

    whole = jnp.sum(mass)
    center = each(lambda values: jnp.sum(mass * values) / whole, place)
    arm = place - each(lambda value: value[None], center)
    own, square = rotated(inertia, turned), dot(arm, arm)
    tensor = SymmetricTensor(
        own.diagonal + mass * Vector(square - arm.x**2, square - arm.y**2, square - arm.z**2),
        own.rest - mass * Vector(arm.y * arm.z, arm.z * arm.x, arm.x * arm.y),
    )
    moments, axes = principal(each(jnp.sum, tensor))
    given = conjugate(axes)
    everywhere = each(lambda value: value[None], given)
    frame = Frame(place=rotate(everywhere, arm), orientation=multiply(everywhere, turned))
    shapes = Shape(frame=frame, half_lengths=half, radius=radius)
    box = _box_around(shapes)
    made = body(
        "compound",
        whole,
        (moments.x, moments.y, moments.z),
        (box.x, box.y, box.z),
        0,
        functools.reduce(jnp.maximum, (part.friction for part in parts)),
        functools.reduce(jnp.maximum, (part.restitution for part in parts)),
    )
    return dataclasses.replace(
        made,
        composition=(tuple((part.kinds[0], part.forms[0]) for part in parts),),
        compound=Compound(
            given=Frame(place=-rotate(given, center), orientation=given),
            shapes=tuple(each(lambda values, index=index: values[index], shapes) for index in range(len(parts))),
        ),
    )


def _box_around(shapes: Shape) -> Vector:
    """Return the half lengths of a box about the center of the body that contains its shapes, (shapes,)."""
    half = shapes.half_lengths
    edges = [
        size * axis for size, axis in zip((half.x, half.y, half.z), axes_of(shapes.frame.orientation), strict=True)
    ]
    reach = functools.reduce(operator.add, (each(jnp.abs, edge) for edge in [shapes.frame.place, *edges]))
    return each(lambda values: jnp.max(values + shapes.radius), reach)
