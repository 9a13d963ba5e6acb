"""Constants of rigid bodies: shape, mass, moments of inertia and surface."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE
from simkit.core.pytrees import pytree
from simkit.core.settings import number
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import Quaternion, identity
from simkit.rigid.algebra.vector import Vector, each, norm, zeros
from simkit.rigid.shapes.form import CUBE, Form

type Number = jax.Array | float

KINDS = ("sphere", "disk", "capsule", "box", "cylinder", "ellipsoid", "mesh", "compound")
# Contacts are detected among all pairs, 8 million for this number.
MAX_BODIES = 4096
# Relative rounding by which moments of a flat body, whose triangle inequality is an equality, may miss it.
ROUNDING = 1e-6


@pytree
class Frame:
    """A frame in that of each body, (bodies,) arrays.

    Attributes:
        place: of its origin in m.
        orientation: rotation from this frame to that of the body.
    """

    place: Vector
    orientation: Quaternion


@pytree
class Shape:
    """One of the shapes of each body, (bodies,) arrays; zeros for a body with fewer.

    Attributes:
        frame: its own, about its center.
        half_lengths: in m.
        radius: in m.
    """

    frame: Frame
    half_lengths: Vector
    radius: jax.Array


@pytree
class Compound:
    """Shapes of bodies that consist of several.

    Attributes:
        given: the frame in which the places of the shapes were given; that of the body for a body of one shape.
        shapes: the first of each body, the second, and so on.
    """

    given: Frame
    shapes: tuple[Shape, ...]


@pytree
class Bodies:
    """Constants of rigid bodies, (bodies,) arrays; those of a single body have no axis.

    Every shape is a convex form, scaled by half lengths ``h`` and rounded by a radius ``r``. That of a sphere, a
    capsule and a box is a cube, possibly shrunk to a line or a point: a sphere has h = 0, a capsule only a half length
    along its axis z, a box r = 0. A disk has the shape of a sphere and the inertia of a flat disk, and moves in the x-z
    plane. The half lengths of a compound are those of a box about its center that contains its shapes.

    Attributes:
        mass: in kg.
        inertia: principal moments about the center of mass in kg m^2; the body axes are the principal ones.
        half_lengths: h in m.
        radius: r in m.
        friction: coefficient of Coulomb friction; a contact uses the larger of the two.
        restitution: coefficient of restitution, 0 to 1; a contact uses the larger of the two.
        kinds: of each body, one of `KINDS`; static, so changing one compiles a new program.
        held: of each body, whether no force and no contact changes its velocity; static.
        forms: of each body, the `simkit.rigid.shapes.form.Form`; static.
        composition: kind and form of each shape of each body, none for a body of one shape; static.
        compound: the shapes of bodies that consist of several; None if there are no such bodies.
    """

    mass: jax.Array
    inertia: Vector
    half_lengths: Vector
    radius: jax.Array
    friction: jax.Array
    restitution: jax.Array
    kinds: tuple[str, ...] = dataclasses.field(metadata={"static": True})
    held: tuple[bool, ...] = dataclasses.field(metadata={"static": True})
    forms: tuple[Form, ...] = dataclasses.field(metadata={"static": True})
    composition: tuple[tuple[tuple[str, Form], ...], ...] = dataclasses.field(metadata={"static": True})
    compound: Compound | None = None


# Fields with one entry for each body that are no arrays.
STATIC = ("kinds", "held", "forms", "composition")


def with_inertia(body: Bodies, moments: Sequence[Number]) -> Bodies:
    """Return a body with other principal moments of inertia, for example of uneven density.

    Args:
        body: one or several bodies.
        moments: about its axes x, y, z in kg m^2.

    Example:
        >>> shell = rigid.with_inertia(rigid.sphere(1.0, 0.3), moments=[2 / 3 * 0.09] * 3)
        >>> print(f"{shell.inertia.z:.3f} kg m^2, a hollow ball")
        0.060 kg m^2, a hollow ball
    """
    x, y, z = (jnp.broadcast_to(jnp.asarray(moment, dtype=float), body.mass.shape) for moment in moments)
    return dataclasses.replace(body, inertia=Vector(x, y, z))


def gather(bodies: Sequence[Bodies]) -> Bodies:
    """Return single bodies as one collection, in their order.

    Args:
        bodies: each without an axis.

    Example:
        >>> bodies = rigid.gather([rigid.sphere(1.0, 0.1), rigid.box(2.0, 0.2)])
        >>> bodies.mass.tolist()
        [1.0, 2.0]
    """
    return _joined(bodies, lambda *values: jnp.stack(values))


def concatenated(bodies: Sequence[Bodies]) -> Bodies:
    """Return several collections of bodies as one.

    Args:
        bodies: each with the axis of the bodies.
    """
    return _joined(bodies, lambda *values: jnp.concatenate(values))


def _joined(bodies: Sequence[Bodies], join: Callable[..., jax.Array]) -> Bodies:
    most = max((len(body.compound.shapes) for body in bodies if body.compound), default=0)
    numbers = [numbers_of(_with_shapes(body, most)) for body in bodies]
    static = {name: sum((getattr(body, name) for body in bodies), ()) for name in STATIC}
    return dataclasses.replace(each(join, *numbers), **static)


def _with_shapes(body: Bodies, count: int) -> Bodies:
    """Return bodies with as many shapes as others have; those of zeros are none of theirs."""
    present = () if body.compound is None else body.compound.shapes
    if len(present) == count:
        return body
    frame = Frame(place=zeros(body.mass), orientation=identity(body.mass))
    none = Shape(frame=frame, half_lengths=zeros(body.mass), radius=jnp.zeros_like(body.mass))
    given = frame if body.compound is None else body.compound.given
    return dataclasses.replace(
        body, compound=Compound(given=given, shapes=(*present, *[none] * (count - len(present))))
    )


def numbers_of(bodies: Bodies) -> Bodies:
    """Return bodies without their static fields, so that trees of different bodies combine."""
    return dataclasses.replace(bodies, **dict.fromkeys(STATIC, ()))


def copies_of(body: Bodies, arrays: Bodies, count: int) -> Bodies:
    """Return arrays of a number of copies of a body as bodies."""
    return dataclasses.replace(arrays, **{name: getattr(body, name) * count for name in STATIC})


def repeat(body: Bodies, count: int) -> Bodies:
    """Return ``count`` copies of a body as one collection.

    Args:
        body: without an axis.
        count: how many.

    Example:
        >>> rack = rigid.repeat(rigid.sphere(0.17, 0.0286), 15)
        >>> rack.mass.shape
        (15,)
    """
    return copies_of(body, each(lambda value: jnp.broadcast_to(value, (count,)), body), count)


def held(body: Bodies) -> Bodies:
    """Return a body that keeps its velocity, whatever loads, contacts and joints do: a fixed or a moving obstacle.

    A scene may lead it along a path in time, see `simkit.rigid.scene.Scene`. Its mass and moments have no effect;
    energies and momenta of a scene are those of the other bodies.

    Args:
        body: one or several bodies.

    Example:
        >>> table = rigid.held(rigid.box(1.0, (1.0, 1.0, 0.1)))
        >>> table.held
        (True,)
    """
    return dataclasses.replace(body, held=(True,) * len(body.held))


def unless_held[T](bodies: Bodies, values: T) -> T:
    """Return values of bodies, zero for those that are held.

    Args:
        bodies: the n bodies.
        values: a tree of arrays (n, ...).
    """
    if not any(bodies.held):
        return values
    mask = np.array(bodies.held)
    return each(lambda value: jnp.where(mask.reshape(-1, *(1,) * (value.ndim - 1)), 0, value), values)


def where_held[T](bodies: Bodies, values: T, others: T) -> T:
    """Return values for bodies that are held, and others for the rest, trees of arrays (n, ...)."""
    if not any(bodies.held):
        return others
    mask = np.array(bodies.held)
    return each(lambda a, b: jnp.where(mask.reshape(-1, *(1,) * (a.ndim - 1)), a, b), values, others)


def enclosing_radius(bodies: Bodies) -> jax.Array:
    """Return the radius of the sphere about its center that encloses each body, in m.

    Args:
        bodies: of the scene.
    """
    return bodies.radius + norm(bodies.half_lengths)


def thickness(bodies: Bodies) -> jax.Array:
    """Return the least extent of each body, or of the thinnest of its shapes, in m.

    Args:
        bodies: of the scene.
    """

    def of(half: Vector, radius: jax.Array) -> jax.Array:
        return 2 * (radius + jnp.minimum(half.x, jnp.minimum(half.y, half.z)))

    least = of(bodies.half_lengths, bodies.radius)
    for place, shape in enumerate(bodies.compound.shapes if bodies.compound else ()):
        has = np.array([len(shapes) > place for shapes in bodies.composition])
        has = has.reshape(-1, *(1,) * (least.ndim - 1))
        least = jnp.where(has, jnp.minimum(least, of(shape.half_lengths, shape.radius)), least)
    return least


def check_bodies(bodies: Bodies) -> None:
    """Refuse bodies that cannot exist; on the host.

    Args:
        bodies: with the axis of the bodies.

    Raises:
        UserError: for a mass, size or coefficient out of its range, or moments of inertia that no distribution of mass
            has.
    """
    # Numbers of the host: to read one of an array on a device takes as long as to check a body.
    bodies = jax.tree.map(np.asarray, bodies)
    positive, not_negative, share = (number("", bounds=each).check for each in (POSITIVE, NOT_NEGATIVE, SHARE))
    all_moments = np.stack([bodies.inertia.x, bodies.inertia.y, bodies.inertia.z], axis=1)
    for index, kind in enumerate(bodies.kinds):
        name = f"body {index} ({kind})"
        positive(float(bodies.mass[index]), f"{name}: mass")
        lengths = [
            float(length[index]) for length in (bodies.half_lengths.x, bodies.half_lengths.y, bodies.half_lengths.z)
        ]
        radius = float(bodies.radius[index])
        sizes = {"sphere": [radius], "disk": [radius], "capsule": [radius, lengths[2]]}.get(kind, lengths)
        moments = np.sort(all_moments[index])
        for what, values in (("size", sizes), ("moment of inertia", moments)):
            for value in values:
                positive(float(value), f"{name}: {what}")
        if moments[2] > (moments[0] + moments[1]) * (1 + ROUNDING):
            least, middle, most = (f"{moment:g}" for moment in moments)
            raise UserError(
                f"{name}: moments of inertia {least}, {middle}, {most} kg m^2 break the triangle inequality; "
                f"the largest must be at most {moments[0] + moments[1]:g}, the sum of the others"
            )
        not_negative(float(bodies.friction[index]), f"{name}: friction")
        share(float(bodies.restitution[index]), f"{name}: restitution")


def body(
    kind: str,
    mass: Number,
    moments: Sequence[Number],
    half_lengths: Sequence[Number],
    radius: Number,
    friction: Number,
    restitution: Number,
    form: Form = CUBE,
) -> Bodies:
    """Return one body of a kind, for the functions of the shapes.

    Args:
        kind: one of `KINDS`.
        mass: in kg.
        moments: principal moments of inertia in kg m^2.
        half_lengths: of the form, in m.
        radius: by which it is rounded, in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.
        form: convex form in units of the half lengths.

    Raises:
        UserError: for a number with an axis.
    """
    numbers = {"mass": mass, "radius": radius, "friction": friction, "restitution": restitution}
    for name, value in numbers.items():
        check_shape(f"{kind}: {name}", value, "one number; make bodies that differ one by one, and `gather` them", ())
    x, y, z = (jnp.asarray(moment, dtype=float) for moment in moments)
    a, b, c = (jnp.asarray(length, dtype=float) for length in half_lengths)
    return Bodies(
        mass=jnp.asarray(mass, dtype=float),
        inertia=Vector(x, y, z),
        half_lengths=Vector(a, b, c),
        radius=jnp.asarray(radius, dtype=float),
        friction=jnp.asarray(friction, dtype=float),
        restitution=jnp.asarray(restitution, dtype=float),
        kinds=(kind,),
        held=(False,),
        forms=(form,),
        composition=((),),
    )
